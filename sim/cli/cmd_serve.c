/* cli/cmd_serve.c: what users of a served model would feel, request by request. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

extern const rg_command rg_cmd_serve;

static const rg_option options[] = {
    /* what is served, on what */
    {"model", 0, "NAME", NULL, "model by name, model YAML or config.json", false},
    {"hw", 0, "NAME", NULL, "device or node by name or YAML", false},
    {"tp", 0, "N", NULL, "tensor-parallel devices of a replica (1)", false},
    {"pp", 0, "N", NULL, "pipeline stages (1)", false},
    {"ep", 0, "N", NULL, "expert-parallel devices (1)", false},
    {"cp", 0, "N", NULL, "devices over which the KV of a sequence is split (1)", false},
    {"weight-type", 0, "FORMAT", NULL, "format of the weights (the checkpoint's)", false},
    {"kv-type", 0, "FORMAT", NULL, "format of the KV cache (the checkpoint's, else bf16)", false},
    {"replicas", 0, "N", NULL, "replicas (1)", false},
    {"router", 0, "KIND", NULL, "round-robin, least-loaded, prefix or session", false},
    {"prefill-replicas", 0, "N", NULL, "prefill replicas before the others, which only decode (0)",
     false},
    {"transfer-rate", 0, "RATE", NULL, "rate of a prefill replica's link for KV", false},
    {"transfer-latency", 0, "TIME", NULL, "latency of a KV transfer", false},
    {"no-transfer-overlap", 0, NULL, NULL, "KV is sent after the prefill, not layer by layer",
     false},
    {"most-replicas", 0, "N", NULL, "scale out up to N replicas", false},
    {"scale-waiting", 0, "N", NULL, "scale out above N waiting requests a replica (4)", false},
    {"scale-start", 0, "TIME", NULL, "time until a new replica serves (60 s)", false},
    {"scale-interval", 0, "TIME", NULL, "time between decisions to scale (10 s)", false},
    /* requests */
    {"trace", 0, "FILE", NULL,
     "requests: Azure, BurstGPT, Vidur or ridge CSV, Mooncake JSONL, vLLM or ShareGPT JSON", false},
    {"trace-format", 0, "NAME", NULL, "azure, burstgpt, vidur, ridge, mooncake, json or jsonl",
     false},
    {"arrivals", 0, "SPEC", NULL,
     "poisson:10/s, gamma:10/s,cv=2, mmpp:2/s,20/s,30s,5s, uniform:4/s, at-once, closed:32", false},
    {"isl", 0, "SPEC", NULL,
     "prompt tokens: 512, uniform:100-900, lognormal:512,cv=1.2, zipf:16-4096,1.1", false},
    {"osl", 0, "SPEC", NULL, "output tokens, likewise", false},
    {"limit", 0, "N", NULL, "take or make N requests", false},
    {"speed-up", 0, "X", NULL, "divide arrival times by X", false},
    {"load", 0, "LIST", NULL, "sweep: multiply the rate of arrivals by each of 0.5,1,1.5,2", false},
    {"turns", 0, "N", NULL, "made-up sessions of N turns; arrivals are those of sessions", false},
    {"think", 0, "TIME", NULL, "mean pause between an answer and the next turn", false},
    {"system-prompt", 0, "N", NULL, "tokens that all made-up prompts begin with", false},
    {"over-long", 0, "POLICY", NULL, "requests over the model's length: reject, cut or fail",
     false},
    {"measured", 0, "RUN", NULL,
     "replay a measured run and print the errors: folder, requests.csv or benchmark JSON", false},
    {"fit-engine", 0, "FILE", NULL, "fit engine constants on the measured run, write them (-: not)",
     false},
    /* engine */
    {"engine", 0, "NAME", NULL, "engine constants by name or YAML (those of the scheduler)", false},
    {"policy", 0, "NAME", NULL,
     "scheduler: vllm, vllm-v0, sarathi, orca, static, vidur-vllm, trtllm, trtllm-max, "
     "trtllm-static, sglang",
     false},
    {"max-sequences", 0, "N", NULL, "sequences at once", false},
    {"max-tokens", 0, "N", NULL, "tokens of a step", false},
    {"max-model-len", 0, "N", NULL, "prompt and output tokens of a request", false},
    {"long-prefill", 0, "N", NULL, "most prompt tokens of one request in a step", false},
    {"sync", 0, NULL, NULL, "decide a step when the last has ended (vLLM: asynchronous)", false},
    {"chunked-prefill", 0, NULL, NULL, "cut prompts where the engine does not by default", false},
    {"no-chunked-prefill", 0, NULL, NULL, "never cut prompts", false},
    {"by-priority", 0, NULL, NULL, "serve by priority, then arrival", false},
    {"longest-prefix-first", 0, NULL, NULL, "SGLang: longest cached prefix first", false},
    {"mixed-chunk", 0, NULL, NULL, "SGLang: decodes ride along with prefill", false},
    {"conservativeness", 0, "X", NULL, "SGLang: schedule conservativeness (1)", false},
    {"drafts", 0, "N", NULL, "draft tokens of a decode step (0)", false},
    {"acceptance", 0, "P", NULL, "chance that a draft token is accepted", false},
    {"draft-cost", 0, "X", NULL, "time of one draft step over a decode step", false},
    /* KV memory */
    {"kv-blocks", 0, "N", NULL, "blocks of a replica, or 'unlimited' (from memory)", false},
    {"block", 0, "N", NULL, "tokens of a block", false},
    {"memory-utilisation", 0, "X", NULL, "share of device memory that the engine takes", false},
    {"device-memory", 0, "SIZE", NULL, "device memory as the runtime reports it", false},
    {"watermark", 0, "X", NULL, "share of blocks kept free at admission", false},
    {"prefix-caching", 0, NULL, NULL, "reuse prefixes where the engine does not by default", false},
    {"no-prefix-caching", 0, NULL, NULL, "forget every prefix", false},
    {"preempt", 0, "KIND", NULL, "recompute or swap", false},
    {"reservation", 0, "KIND", NULL, "paged, or contiguous for the output or the model's length",
     false},
    {"kv-window", 0, "N", NULL, "newest tokens kept of a sequence", false},
    {"kv-sinks", 0, "N", NULL, "oldest tokens kept beside the window", false},
    {"kv-keep", 0, "X", NULL, "share of the KV kept (selective caching)", false},
    {"recompute-layers", 0, "X", NULL, "share of early layers whose KV is recomputed", false},
    {"offload", 0, "SIZE", NULL, "size of a tier for evicted blocks", false},
    {"offload-rate", 0, "RATE", NULL, "rate at which it is read", false},
    {"offload-disk", 0, "SIZE", NULL, "size of a second tier below it", false},
    {"offload-disk-rate", 0, "RATE", NULL, "rate at which that is read", false},
    {"host-rate", 0, "RATE", NULL, "rate to host memory for swaps", false},
    /* time */
    {"kernel-times", 0, "DIR", NULL,
     "given operator times: dense.csv, attention.csv ... (LLMServingSim), or mlp.csv (Vidur)",
     false},
    {"step-time", 0, "TIME", NULL, "every step takes so long", false},
    {"no-graphs", 0, NULL, NULL, "given times: do not round tokens up to CUDA graph sizes", false},
    {"step-overhead", 0, "TIME", NULL, "time of a step beside its kernels", false},
    {"per-sequence", 0, "TIME", NULL, "time of a step for each sequence", false},
    {"request-overhead", 0, "TIME", NULL, "time from arrival to the engine's queue", false},
    {"attention-skew", 0, "X", NULL, "decode attention: 0 as the mean length, 1 as the longest",
     false},
    {"fitted-on", 0, "DEVICE", NULL, "device of the fit that gave the scales", false},
    {"sustained", 0, NULL, NULL, "long runs under the power cap instead of bursts", false},
    RG_SETUP_CHANGES,
    {"kernel-scale", 0, "X", NULL, "multiplies all kernel times", false},
    {"communication-scale", 0, "X", NULL, "multiplies ridge's own time of collectives", false},
    {"reduce-latency", 0, "TIME", NULL, "given times: latency of an all-reduce", false},
    {"reduce-rate", 0, "RATE", NULL, "given times: bus bandwidth of an all-reduce", false},
    /* limits, money, files */
    {"ttft", 0, "TIME", NULL, "goodput limit: time to first token", false},
    {"tpot", 0, "TIME", NULL, "goodput limit: time per output token", false},
    {"e2e", 0, "TIME", NULL, "goodput limit: whole request", false},
    {"price", 0, "PRICE", NULL, "price of a device, such as 2.5 $/h", false},
    {"requests", 0, "OUT.csv", NULL, "write one row a request", false},
    {"series", 0, "OUT.csv", NULL, "write load and KV use over time", false},
    {"series-interval", 0, "TIME", "1 s", "least time between two rows of it", false},
    {"timeline", 0, "OUT.json", NULL, "write a Chrome/Perfetto trace", false},
    {"plot-latency", 0, "OUT.svg", NULL, "draw distributions of latencies", false},
    {"plot-load", 0, "OUT.svg", NULL, "draw latency against load (with --load)", false},
    {"plot-kv", 0, "OUT.svg", NULL, "draw KV use over time", false},
    {0}};

static rg_status simulate(rg_serve_job *job, rg_serve_files *files, const rg_observer *observer,
                          rg_err *err)
{
    rg_serve_result result;
    const uint64_t seed = rg_arg_seed(job->settings.args);
    if (job->measured) {
        rg_replay_errors errors;
        if (rg_setting_given(&job->settings, "fit-engine"))
            RG_TRY(rg_serve_job_fit(job, err));
        RG_TRY(rg_replay_compare(job->arena, job->measured, &job->deployment, observer, seed,
                                 &result, &errors, err));
        rg_serve_report_errors(job, &errors);
    } else {
        RG_TRY(rg_serve_job_stream(job, err));
        const rg_status status = rg_serve_run(job->arena, &job->deployment, job->stream,
                                              &job->goals, observer, seed, &result, err);
        rg_requests_close(job->stream);
        RG_TRY(status);
    }
    if (job->step_err.status != RG_OK)
        return rg_fail(err, job->step_err.status, job->step_err.pos, "%s", job->step_err.text);
    if (result.finished == 0) {
        const int64_t over = job->stream ? rg_requests_facts(job->stream)->overlong : 0;
        if (over > 0)
            return rg_fail(err, RG_ERR_NO, RG_NOWHERE,
                           "no request was served: %lld are longer than the '%lld' tokens that a "
                           "request may have",
                           (long long)over, (long long)job->deployment.rules.max_model_tokens);
        if (result.over_step > 0)
            return rg_fail(err, RG_ERR_NO, RG_NOWHERE,
                           "no request was served: %lld prompts are longer than the '%lld' tokens "
                           "of a step, and '%s' does not cut them; --max-tokens would do",
                           (long long)result.over_step,
                           (long long)job->deployment.rules.max_batched_tokens,
                           rg_policy_names[job->deployment.rules.policy]);
        return rg_fail(err, RG_ERR_NO, RG_NOWHERE,
                       "no request was served: %lld came, %lld are larger than the KV memory",
                       (long long)result.requests, (long long)result.refused);
    }
    RG_TRY(rg_serve_files_close(files, err));
    rg_serve_report(job, &result);
    rg_serve_files_show(files);
    return RG_OK;
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    rg_serve_job *job = RG_NEW(arena, rg_serve_job, 1, err);
    if (!job)
        return RG_ERR_LIMIT;
    job->arena = arena;
    RG_TRY(rg_settings_open(arena, args, options, &job->settings, err));
    RG_TRY(rg_arg_report(arena, args, 1, &job->report, err));
    if (job->settings.path)
        RG_TRY(rg_report_input(job->report, "scenario", job->settings.path, err));
    rg_pos pos;
    const char *folder = rg_setting(&job->settings, "measured", &pos);
    if (folder) {
        RG_TRY(rg_replay_load(arena, folder, &job->measured, err));
        for (int i = 0; i < job->measured->assumed_count; i++)
            rg_report_assume(job->report, "%s", job->measured->assumed[i]);
        rg_report_setting(job->report, "measured", folder);
    } else if (rg_setting_given(&job->settings, "fit-engine")) {
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "--fit-engine needs --measured RUN");
    }
    RG_TRY(rg_serve_job_deploy(job, err));
    if (rg_setting_given(&job->settings, "load")) {
        if (job->measured)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "--load sweeps a trace, not --measured");
        RG_TRY(rg_serve_job_load(job, err));
        return rg_arg_write(args, job->report, "points", err);
    }
    rg_serve_files *files = NULL;
    rg_observer observer;
    rg_status status = rg_serve_files_open(job, &files, &observer, err);
    if (status == RG_OK)
        status = simulate(job, files, &observer, err);
    rg_serve_files_abandon(files);
    RG_TRY(status);
    return rg_arg_write(args, job->report, "latencies", err);
}

const rg_command rg_cmd_serve = {
    .name = "serve",
    .group = "answer",
    .summary = "latency, goodput and memory of a served model under traffic, request by request",
    .operands = "[SCENARIO.yaml]",
    .least_operands = 0,
    .most_operands = 1,
    .description =
        "Simulates a serving engine step by step: what is admitted, computed, preempted, cached "
        "and\n"
        "emitted, by the rules of the scheduler named. Step times come from ridge's own model, "
        "from\n"
        "given operator times, or are constant. A scenario file has the names of these options as\n"
        "keys; the command line wins. Percentiles come with 95 % intervals.\n"
        "\n"
        "--measured replays the arrivals and lengths of a real run and prints how far off the\n"
        "simulation is; --fit-engine fits the constants of engine and host on it first and writes\n"
        "them as a scenario for other runs. A run is a folder (meta.yaml, requests.csv, "
        "prefix.csv),\n"
        "a table with the columns of --requests, or what 'vllm bench serve --save-result\n"
        "--save-detailed' wrote; the last two need --hw, and the limits that were set.",
    .examples = "  ridge serve --model llama-3.1-8b --hw h100-sxm --arrivals poisson:8/s \\\n"
                "      --isl lognormal:800,cv=1 --osl lognormal:200,cv=0.8 --limit 2000\n"
                "  ridge serve --model llama-3.1-70b --hw hgx-h100 --tp 4 --trace azure.csv\n"
                "  ridge serve --measured bench.json --hw l40s --fit-engine mine.yaml\n"
                "  ridge serve mine.yaml --measured other.json --hw l40s\n",
    .options = options,
    .run = run,
};

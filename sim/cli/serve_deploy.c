/* cli/serve_deploy.c: from settings to a deployment: hardware, model, rules, step time, memory. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "core/file.h"
#include "core/find.h"
#include "net/coll.h"
#include "serve/deploy.h"
#include "step/arrangement.h"

/* ---- names as engines and drivers write them */

static char *lowered(rg_arena *arena, const char *text, rg_err *err)
{
    char *name = rg_arena_strdup(arena, text, err);
    for (char *c = name; c && *c; c++)
        *c = *c == ' ' || *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    return name;
}

static void cut_word(char *name, const char *word)
{
    char *at = strstr(name, word);
    if (at)
        memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

/* "NVIDIA RTX PRO 6000 Blackwell Server Edition" is rtx-pro-6000-server. */
static rg_status device_name(rg_arena *arena, const char *gpu, const char **out, rg_err *err)
{
    static const struct {
        const char *driver, *name;
    } known[] = {{"h100-80gb-hbm3", "h100-sxm"},
                 {"h100-pcie", "h100-pcie"},
                 {"h200", "h200-sxm"},
                 {"b200", "b200-sxm"},
                 {"a100-sxm4-80gb", "a100-sxm-80gb"},
                 {"a100-sxm4-40gb", "a100-sxm-40gb"},
                 {"a100-80gb-pcie", "a100-pcie-80gb"}};
    static const char *const words[] = {"nvidia-",   "geforce-",   "tesla-",   "amd-",
                                        "instinct-", "-blackwell", "-edition", "-generation"};
    char *name = lowered(arena, gpu, err);
    if (!name)
        return RG_ERR_LIMIT;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        cut_word(name, words[i]);
    *out = name;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].driver) == 0)
            *out = known[i].name;
    return RG_OK;
}

/* "meta-llama/Llama-3.1-8B-Instruct": the last part, shortened at dashes until a file has it. */
static rg_status model_name(rg_arena *arena, const char *name, const char **out, rg_err *err)
{
    const char *slash = strrchr(name, '/');
    char *tail = lowered(arena, slash ? slash + 1 : name, err);
    *out = tail;
    if (!tail)
        return RG_ERR_LIMIT;
    char *shorter = rg_arena_strdup(arena, tail, err);
    while (shorter) {
        const char *path;
        RG_TRY(rg_data_try(arena, "models", shorter, &path, err));
        if (path) {
            *out = shorter;
            return RG_OK;
        }
        char *dash = strrchr(shorter, '-');
        if (!dash)
            return RG_OK;
        *dash = 0;
    }
    return RG_OK;
}

static rg_status load_hardware(rg_serve_job *job, rg_err *err)
{
    rg_pos pos;
    const char *name = rg_setting(&job->settings, "hw", &pos);
    if (!name && job->measured && job->measured->gpu)
        RG_TRY(device_name(job->arena, job->measured->gpu, &name, err));
    if (!name)
        return RG_OK;
    const bool own = !rg_setting_given(&job->settings, "hw");
    rg_err missing = {0};
    const rg_status status =
        rg_cluster_load_changed(job->arena, name, &job->setup.changes, &job->cluster, &missing);
    if (status == RG_ERR_USAGE && own &&
        (rg_setting_given(&job->settings, "kernel-times") ||
         rg_setting_given(&job->settings, "step-time"))) {
        rg_report_assume(job->report,
                         "no hardware file for the run's '%s': its memory and links "
                         "are not modelled; give --hw",
                         job->measured->gpu);
        job->cluster = NULL;
        return RG_OK;
    }
    if (status != RG_OK) {
        const rg_pos at = missing.pos.file ? missing.pos : pos;
        return rg_fail(err, at.file ? RG_ERR_INPUT : status, at, "%s", missing.text);
    }
    RG_TRY(rg_report_input(job->report, "hardware", job->cluster->accel->path, err));
    if (job->cluster->path)
        RG_TRY(rg_report_input(job->report, "node", job->cluster->path, err));
    return RG_OK;
}

static rg_status load_model(rg_serve_job *job, rg_err *err)
{
    rg_pos pos;
    const char *name = rg_setting(&job->settings, "model", &pos);
    if (!name && job->measured) {
        const char *config =
            rg_arena_printf(job->arena, err, "%s/config.json", job->measured->folder);
        if (config && rg_file_exists(config))
            name = config;
    }
    if (!name && job->measured && job->measured->model)
        RG_TRY(model_name(job->arena, job->measured->model, &name, err));
    if (!name)
        return RG_OK;
    const rg_status status =
        rg_model_load_changed(job->arena, name, &job->setup.changes, &job->model, err);
    const rg_lookup from = rg_setting_lookup(&job->settings);
    if (status != RG_OK)
        return pos.file ? rg_lookup_placed(status, &from, "model", err) : status;
    if (job->model->path)
        RG_TRY(rg_report_input(job->report, "model", job->model->path, err));
    RG_TRY(rg_formats_read(&from, job->model, &job->formats, err));
    if (job->cluster)
        rg_setup_expand(job->cluster->accel, &job->formats, job->report);
    return RG_OK;
}

/* ---- rules */

static rg_status kv_rules(rg_serve_job *job, rg_engine_rules *rules, rg_err *err)
{
    static const char *const reservations[] = {"paged", "output", "model", NULL};
    static const char *const preemptions[] = {"recompute", "swap", NULL};
    const rg_settings *s = &job->settings;
    int choice = 0;
    RG_TRY(rg_setting_choice(s, "reservation", reservations, &choice, err));
    rules->reservation = (rg_reservation)choice;
    choice = 0;
    RG_TRY(rg_setting_choice(s, "preempt", preemptions, &choice, err));
    rules->preempt = (rg_preempt)choice;
    RG_TRY(rg_setting_int(s, "kv-window", 0, 1000000000, &rules->rule.window, err));
    RG_TRY(rg_setting_int(s, "kv-sinks", 0, 1000000, &rules->rule.sinks, err));
    RG_TRY(rg_setting_real(s, "kv-keep", 0, 1, &rules->rule.keep_ratio, err));
    RG_TRY(rg_setting_real(s, "recompute-layers", 0, 0.9, &rules->recompute_layers_ratio, err));
    RG_TRY(rg_setting_quantity(s, "offload", RG_DIM_BYTES, &rules->tiers[0].capacity_bytes, err));
    RG_TRY(rg_setting_quantity(s, "offload-rate", RG_DIM_BYTES_PER_S, &rules->tiers[0].bytes_per_s,
                               err));
    RG_TRY(
        rg_setting_quantity(s, "offload-disk", RG_DIM_BYTES, &rules->tiers[1].capacity_bytes, err));
    RG_TRY(rg_setting_quantity(s, "offload-disk-rate", RG_DIM_BYTES_PER_S,
                               &rules->tiers[1].bytes_per_s, err));
    if (job->cluster && job->cluster->host_link.known)
        rules->host_bytes_per_s = job->cluster->host_link.value * (double)job->parallel.tp;
    return rg_setting_quantity(s, "host-rate", RG_DIM_BYTES_PER_S, &rules->host_bytes_per_s, err);
}

static void engine_limits(rg_serve_job *job, rg_engine_rules *r)
{
    const rg_settings *s = &job->settings;
    const bool recorded = job->measured && job->measured->limits_recorded;
    if (!rg_rules_follow_engine(r->policy) || recorded || !job->cluster)
        return;
    rg_rules_for_device(&job->engine, job->cluster->accel, &job->parallel, r);
    if (!rg_setting_given(s, "max-sequences") || !rg_setting_given(s, "max-tokens"))
        rg_report_assume(job->report,
                         "engine's own limits for this device: %lld sequences, %lld tokens a step; "
                         "set --max-sequences, --max-tokens",
                         (long long)r->max_sequences, (long long)r->max_batched_tokens);
}

static rg_status read_rules(rg_serve_job *job, rg_err *err)
{
    const rg_settings *s = &job->settings;
    int policy = strcmp(job->engine.name, "sglang") == 0   ? RG_POLICY_SGLANG
                 : strcmp(job->engine.name, "trtllm") == 0 ? RG_POLICY_TRT_NO_EVICT
                                                           : RG_POLICY_VLLM1;
    RG_TRY(rg_setting_choice(s, "policy", rg_policy_names, &policy, err));
    rg_engine_rules *r = &job->deployment.rules;
    *r = rg_engine_rules_default((rg_policy_kind)policy);
    if (job->measured && !rg_setting_given(s, "policy"))
        *r = job->measured->rules;
    if (job->model && job->model->max_positions > 0 &&
        !(job->measured && job->measured->limits_recorded))
        r->max_model_tokens = job->model->max_positions;
    engine_limits(job, r);
    RG_TRY(rg_setting_int(s, "max-sequences", 1, 1 << 20, &r->max_sequences, err));
    RG_TRY(rg_setting_int(s, "max-tokens", 1, 1 << 30, &r->max_batched_tokens, err));
    RG_TRY(rg_setting_int(s, "max-model-len", 2, 1000000000, &r->max_model_tokens, err));
    RG_TRY(rg_setting_int(s, "block", 1, 65536, &r->block_tokens, err));
    RG_TRY(rg_setting_int(s, "long-prefill", 1, 1 << 30, &r->long_prefill_threshold, err));
    RG_TRY(rg_setting_real(s, "watermark", 0, 0.5, &r->watermark_ratio, err));
    RG_TRY(rg_setting_real(s, "conservativeness", 0, 10, &r->conservativeness, err));
    RG_TRY(rg_setting_int(s, "drafts", 0, 64, &r->speculation.drafts, err));
    RG_TRY(rg_setting_real(s, "acceptance", 0, 1, &r->speculation.acceptance, err));
    RG_TRY(rg_setting_real(s, "draft-cost", 0, 10, &r->speculation.draft_time_ratio, err));
    r->asynchronous &= !rg_setting_flag(s, "sync");
    r->chunked_prefill &= !rg_setting_flag(s, "no-chunked-prefill");
    r->chunked_prefill |= rg_setting_flag(s, "chunked-prefill");
    r->prefix_caching &= !rg_setting_flag(s, "no-prefix-caching");
    r->prefix_caching |= rg_setting_flag(s, "prefix-caching");
    r->by_priority |= rg_setting_flag(s, "by-priority");
    r->longest_prefix_first = rg_setting_flag(s, "longest-prefix-first");
    r->mixed_chunk = rg_setting_flag(s, "mixed-chunk");
    RG_TRY(kv_rules(job, r, err));
    if (r->rule.window > 0 || r->rule.keep_ratio > 0)
        r->prefix_caching = false;
    return RG_OK;
}

static rg_status read_constants(rg_serve_job *job, rg_err *err)
{
    const rg_settings *s = &job->settings;
    rg_engine_constants *c = &job->deployment.constants;
    *c = (rg_engine_constants){.kernel_scale = 1};
    rg_pos pos;
    const char *kernel_times = rg_setting(s, "kernel-times", &pos);
    if (kernel_times) {
        /* Sums of kernels leave out gaps between kernels and steps, and profiles that repeat one
         * layer find its weights in L2. Measured runs of vLLM 0.19 ask for 0 to 2 ms a step. */
        c->step_overhead_s = 1e-3;
        if (!rg_setting_given(s, "step-overhead"))
            rg_report_assume(
                job->report,
                "1 ms a step beside the given kernels (runs of vLLM ask for 0 to 2 ms); "
                "set --step-overhead, or fit it with --fit-engine");
    }
    RG_TRY(rg_setting_quantity(s, "step-overhead", RG_DIM_SECONDS, &c->step_overhead_s, err));
    RG_TRY(rg_setting_quantity(s, "per-sequence", RG_DIM_SECONDS, &c->per_sequence_s, err));
    RG_TRY(rg_setting_quantity(s, "request-overhead", RG_DIM_SECONDS, &c->request_overhead_s, err));
    RG_TRY(rg_setting_real(s, "attention-skew", 0, 1, &c->attention_skew, err));
    return kernel_times ? rg_setting_real(s, "kernel-scale", 0.01, 100, &c->kernel_scale, err)
                        : RG_OK;
}

/* ---- memory */

static rg_status derive_memory(rg_serve_job *job, rg_engine_rules *rules, rg_err *err)
{
    const rg_settings *s = &job->settings;
    if (!job->model)
        return RG_OK;
    double utilisation = job->engine.memory_utilisation > 0 ? job->engine.memory_utilisation : 0.9;
    if (job->measured && job->measured->memory_utilisation > 0)
        utilisation = job->measured->memory_utilisation;
    RG_TRY(rg_setting_real(s, "memory-utilisation", 0.01, 1, &utilisation, err));
    double device = 0;
    RG_TRY(rg_setting_quantity(s, "device-memory", RG_DIM_BYTES, &device, err));
    const rg_replica_query query = {.cluster = job->cluster,
                                    .model = job->model,
                                    .formats = &job->formats,
                                    .parallel = &job->parallel,
                                    .utilisation = utilisation,
                                    .share_of = job->engine.memory_share_of,
                                    .bytes_per_logit = job->engine.bytes_per_logit,
                                    .device_bytes = device};
    const int64_t wanted = rules->max_sequences;
    RG_TRY(rg_replica_memory(&query, rules, &job->capacity, err));
    if (rules->max_sequences < wanted)
        rg_report_assume(job->report,
                         "recurrent state of %lld sequences is all that half of the free memory "
                         "holds: no more than that at once",
                         (long long)rules->max_sequences);
    if (!job->cluster)
        return RG_OK;
    job->have_capacity = true;
    return RG_OK;
}

static rg_status set_blocks(rg_serve_job *job, rg_engine_rules *rules, rg_err *err)
{
    rg_pos pos;
    const char *text = rg_setting(&job->settings, "kv-blocks", &pos);
    if (text && strcmp(text, "unlimited") == 0) {
        rules->blocks = 0;
        return RG_OK;
    }
    if (text)
        return rg_setting_int(&job->settings, "kv-blocks", 2, 1 << 30, &rules->blocks, err);
    if (job->measured && job->measured->kv_blocks > 0)
        return RG_OK;
    if (!job->have_capacity) {
        rules->blocks = 0;
        rg_report_assume(job->report, "KV memory is unlimited: no hardware and model to derive it "
                                      "from; set --kv-blocks");
        return RG_OK;
    }
    if (job->capacity.block_bytes == 0 && job->capacity.kv_bytes > 0) {
        rules->blocks = 0;
        rg_report_assume(job->report,
                         "the model keeps no KV: sequences are bounded by their state");
        return RG_OK;
    }
    if (job->capacity.blocks < 2) {
        char weights[40], usable[40];
        rg_quantity_format(job->capacity.weight_bytes, RG_DIM_BYTES, 3, weights, sizeof weights);
        rg_quantity_format(job->capacity.usable_bytes, RG_DIM_BYTES, 3, usable, sizeof usable);
        return rg_fail(err, RG_ERR_NO, RG_NOWHERE,
                       "no memory for KV: weights of %s and activations leave nothing of %s; more "
                       "devices (--tp) or a smaller weight type would do",
                       weights, usable);
    }
    rules->blocks = job->capacity.blocks;
    return RG_OK;
}

/* ---- step time */

static rg_seconds constant_step(void *context, const rg_pass *pass)
{
    (void)pass;
    return RG_S(*(const double *)context);
}

static int64_t moe_layers(const rg_model *model, const rg_layer **layer)
{
    int64_t count = 0;
    for (int64_t i = 0; i < model->layer_count; i++) {
        if (model->layers[i].ffn != RG_FFN_MOE)
            continue;
        *layer = &model->layers[i];
        count++;
    }
    return count;
}

/* Cost of reductions beside given kernel times: from the links of the node, unless given. */
static rg_status reduce_cost(rg_serve_job *job, rg_err *err)
{
    const rg_settings *s = &job->settings;
    if (job->parallel.tp > 1 && job->cluster) {
        rg_coll_query small = {.op = RG_COLL_ALL_REDUCE,
                               .library = RG_LIB_CUSTOM,
                               .ranks = job->parallel.tp,
                               .bytes = {1024}},
                      large = small;
        large.bytes.v = 16.0 * (1 << 20);
        rg_coll_result a, b;
        rg_coll_context *links;
        RG_TRY(rg_coll_prepare(job->arena, job->cluster, NULL, &links, err));
        RG_TRY(rg_coll_time(links, &small, &a, err));
        RG_TRY(rg_coll_time(links, &large, &b, err));
        const double n = (double)job->parallel.tp;
        job->reduce_latency_s = a.time.v;
        job->reduce_bytes_per_s =
            (large.bytes.v - small.bytes.v) * 2 * (n - 1) / n / (b.time.v - a.time.v);
        rg_report_assume(job->report,
                         "all-reduce beside the given kernel times: %.1f us and %.2f GB/s of bus "
                         "bandwidth, by ridge's model of %s",
                         job->reduce_latency_s * 1e6, job->reduce_bytes_per_s * 1e-9,
                         job->cluster->name);
    }
    if (job->parallel.tp > 1 && !job->cluster && !rg_setting_given(s, "reduce-rate"))
        rg_report_assume(job->report,
                         "all-reduces between the %lld devices cost nothing: no "
                         "hardware to derive them from; give --hw or --reduce-rate",
                         (long long)job->parallel.tp);
    RG_TRY(rg_setting_quantity(s, "reduce-latency", RG_DIM_SECONDS, &job->reduce_latency_s, err));
    return rg_setting_quantity(s, "reduce-rate", RG_DIM_BYTES_PER_S, &job->reduce_bytes_per_s, err);
}

static rg_status given_times(rg_serve_job *job, const char *folder, rg_err *err)
{
    if (!job->model)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "--kernel-times needs --model: how many layers its times stand for");
    const rg_layer *expert = NULL;
    RG_TRY(reduce_cost(job, err));
    const int64_t sequences = job->deployment.rules.max_sequences;
    rg_kernel_times_use use = {.layers = job->model->layer_count,
                               .moe_layers = moe_layers(job->model, &expert),
                               .hidden = job->model->hidden,
                               .vocab = job->model->vocab,
                               .tp = job->parallel.tp,
                               .reduce_latency_s = job->reduce_latency_s,
                               .reduce_bytes_per_s = job->reduce_bytes_per_s,
                               .pad_to_graphs = !rg_setting_flag(&job->settings, "no-graphs"),
                               .largest_graph = 2 * sequences < 512 ? 2 * sequences : 512};
    if (expert) {
        use.experts = expert->experts;
        use.top_k = expert->top_k;
    }
    RG_TRY(rg_kernel_times_load(job->arena, folder, &use, &job->kernel_times, err));
    job->deployment.step = (rg_step_model){
        .step_time = rg_kernel_times_step, .context = job->kernel_times, .costly = true};
    rg_report_setting(job->report, "kernel_times", folder);
    rg_report_assume(job->report, "given kernel times, each so often a pass: %s",
                     rg_kernel_times_note(job->kernel_times));
    return RG_OK;
}

static rg_status choose_step(rg_serve_job *job, rg_err *err)
{
    rg_pos pos;
    const char *folder = rg_setting(&job->settings, "kernel-times", &pos);
    if (folder)
        return given_times(job, folder, err);
    if (rg_setting_given(&job->settings, "step-time")) {
        RG_TRY(rg_setting_quantity(&job->settings, "step-time", RG_DIM_SECONDS,
                                   &job->constant_step_s, err));
        job->deployment.step = (rg_step_model){
            .step_time = constant_step, .context = &job->constant_step_s, .costly = false};
        rg_report_assume(job->report, "every step takes %g s, as given", job->constant_step_s);
        return RG_OK;
    }
    return rg_serve_job_own_step(job, err);
}

/* A scheduler goes with its engine, and an engine with its scheduler, unless both are named. */
static rg_status load_engine(rg_serve_job *job, rg_err *err)
{
    rg_pos pos;
    const char *name = rg_setting(&job->settings, "engine", &pos);
    if (!name) {
        const char *policy = rg_setting(&job->settings, "policy", &pos);
        if (!policy && job->measured)
            policy = rg_policy_names[job->measured->rules.policy];
        name = policy && strcmp(policy, "sglang") == 0       ? "sglang"
               : policy && strncmp(policy, "trtllm", 6) == 0 ? "trtllm"
                                                             : "vllm";
    }
    return rg_engine_load_changed(job->arena, name, &job->setup.changes, &job->engine, err);
}

rg_status rg_serve_job_deploy(rg_serve_job *job, rg_err *err)
{
    const rg_settings *s = &job->settings;
    const rg_lookup settings = rg_setting_lookup(s);
    job->parallel = rg_parallel_default();
    if (job->measured)
        job->parallel.tp = job->measured->tp;
    if (job->measured && job->measured->expert_parallel)
        job->parallel.ep = job->measured->tp;
    RG_TRY(rg_parallel_read(job->arena, &settings, &job->parallel, err));
    RG_TRY(rg_setup_changes(job->arena, s->args, job->report, &job->setup, err));
    RG_TRY(load_hardware(job, err));
    RG_TRY(load_model(job, err));
    RG_TRY(load_engine(job, err));
    RG_TRY(read_rules(job, err));
    RG_TRY(read_constants(job, err));
    job->formats.page_tokens = job->deployment.rules.block_tokens;
    RG_TRY(derive_memory(job, &job->deployment.rules, err));
    RG_TRY(set_blocks(job, &job->deployment.rules, err));
    RG_TRY(choose_step(job, err));
    RG_TRY(rg_serve_job_fleet(job, err));
    RG_TRY(rg_setting_quantity(s, "ttft", RG_DIM_SECONDS, &job->goals.ttft_s, err));
    RG_TRY(rg_setting_quantity(s, "tpot", RG_DIM_SECONDS, &job->goals.tpot_s, err));
    return rg_setting_quantity(s, "e2e", RG_DIM_SECONDS, &job->goals.e2e_s, err);
}

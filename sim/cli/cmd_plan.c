/* cli/cmd_plan.c: how many of which device, arranged how, for this traffic and these limits? */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/plan.h"
#include "core/find.h"
#include "core/text.h"

extern const rg_command rg_cmd_plan;

/* A file whose kind is plan; any other file, and any name, is a model. */
static rg_status is_plan_file(rg_arena *arena, const char *text, bool *out, rg_err *err)
{
    rg_node *root;
    *out = false;
    if (!rg_text_ends_with(text, ".yaml") && !rg_text_ends_with(text, ".yml"))
        return RG_OK;
    RG_TRY(rg_doc_load(arena, text, &root, err));
    if (root->kind != RG_NODE_MAP)
        return RG_OK;
    const rg_node *kind = rg_map_find(root, "kind");
    *out = !kind || kind->kind != RG_NODE_SCALAR || strcmp(kind->text, "model") != 0;
    return RG_OK;
}

/* Operand, then options: an option wins over the file. */
static rg_status read_settings(rg_arena *arena, const rg_args *args, rg_plan *out, rg_err *err)
{
    rg_plan_text *text;
    RG_TRY(rg_plan_text_new(arena, &text, err));
    if (rg_arg_operands(args) > 0) {
        const char *operand = rg_arg_operand(args, 0);
        bool plan;
        RG_TRY(is_plan_file(arena, operand, &plan, err));
        if (plan)
            RG_TRY(rg_plan_text_load(text, operand, err));
        else
            RG_TRY(rg_plan_text_add(text, "model", operand, RG_NOWHERE, err));
    }
    for (const rg_option *o = rg_cmd_plan.options; o->name; o++) {
        const char *name = strcmp(o->name, "gpu") == 0 ? "hw" : o->name;
        if (strcmp(name, "plot") == 0 || strcmp(name, "brief") == 0 || !rg_arg_given(args, o->name))
            continue;
        if (!o->argument) {
            RG_TRY(rg_plan_text_add(text, name, "true", RG_NOWHERE, err));
            continue;
        }
        for (int i = 0; i < rg_arg_count(args, o->name); i++)
            RG_TRY(rg_plan_text_add(text, name, rg_arg_nth(args, o->name, i), RG_NOWHERE, err));
    }
    RG_TRY(rg_plan_read(text, out, err));
    out->seed = rg_arg_seed(args);
    return RG_OK;
}

static rg_status inputs(rg_report *report, const rg_plan *plan, const rg_space *s, rg_err *err)
{
    if (plan->path)
        RG_TRY(rg_report_input(report, "plan", plan->path, err));
    if (s->model->path)
        RG_TRY(rg_report_input(report, "model", s->model->path, err));
    if (plan->traffic.trace)
        RG_TRY(rg_report_input(report, "trace", plan->traffic.trace, err));
    for (int i = 0; i < s->machine_count; i++) {
        const rg_cluster *c = s->machines[i].cluster;
        RG_TRY(rg_report_input(report, "hardware", c->accel->path, err));
        if (c->path && strcmp(c->path, c->accel->path) != 0)
            RG_TRY(rg_report_input(report, "cluster", c->path, err));
    }
    return RG_OK;
}

static rg_status answer_fits(rg_arena *arena, const rg_args *args, const rg_plan *plan, rg_err *err)
{
    rg_report *report;
    rg_space *space = RG_NEW(arena, rg_space, 1, err);
    rg_fit *rows;
    int count;
    bool any = false;
    if (!space)
        return RG_ERR_LIMIT;
    if (plan->devices.count == 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "on what? --gpu NAME asks whether it fits; --rate, --users or --trace ask "
                       "for the cheapest; 'ridge list hw' names devices");
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    RG_TRY(rg_plan_fits(arena, plan, space, &rows, &count, err));
    RG_TRY(inputs(report, plan, space, err));
    rg_plan_report_fits(report, plan, space, rows, count);
    RG_TRY(rg_arg_write(args, report, "fits", err));
    for (int i = 0; i < count; i++)
        any |= rows[i].devices > 0;
    return any ? RG_OK
               : rg_fail(err, RG_ERR_NO, RG_NOWHERE, "'%s' fits on no machine of the list",
                         space->model->name);
}

/* After a second or two, as most plans are done by then. */
static void show_progress(void *context, const rg_plan_run *run)
{
    if (time(NULL) - *(const time_t *)context < 2)
        return;
    fprintf(stderr, "\r%lld of %d combinations settled, %lld simulations\033[K",
            (long long)run->settled, run->space.candidate_count, (long long)run->trials);
}

static void wipe_progress(const rg_plan_run *run)
{
    if (run->progress)
        fprintf(stderr, "\r\033[K");
}

static rg_status answer_offline(const rg_plan_answer *x, const rg_args *args, rg_report *report,
                                rg_err *err)
{
    rg_plan_run *run = x->run;
    if (rg_arg_given(args, "plot"))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "--plot draws cost against latency, which --offline does not ask for");
    RG_TRY(rg_plan_offline_search(x->arena, run, err));
    wipe_progress(run);
    RG_TRY(rg_plan_report_offline(report, x, err));
    RG_TRY(rg_arg_write(args, report, "devices", err));
    if (run->winner >= 0)
        return RG_OK;
    char nearest[512];
    rg_plan_nearest_text(run, nearest, sizeof nearest);
    return rg_fail(err, RG_ERR_NO, RG_NOWHERE, "nothing keeps the limits; %s", nearest);
}

static rg_status answer_traffic(rg_plan_answer *x, const rg_args *args, const rg_plan *plan,
                                rg_err *err)
{
    rg_report *report;
    rg_plan_run *run = x->run;
    RG_TRY(rg_arg_report(x->arena, args, 1, &report, err));
    RG_TRY(rg_plan_prepare(x->arena, plan, NULL, NULL, run, err));
    time_t started = time(NULL);
    if (!rg_arg_flag(args, "quiet") && isatty(2)) {
        run->progress = show_progress;
        run->progress_context = &started;
    }
    RG_TRY(inputs(report, plan, &run->space, err));
    if (plan->offline)
        return answer_offline(x, args, report, err);
    RG_TRY(rg_plan_search(x->arena, run, err));
    x->brief = rg_arg_flag(args, "brief");
    if (run->winner >= 0 && !x->brief) {
        RG_TRY(rg_plan_saturation(run, &x->saturation, err));
        RG_TRY(rg_plan_frontier(x->arena, run, &x->points, &x->point_count, err));
        RG_TRY(rg_plan_sensitivity(x->arena, run, &x->swings, &x->swing_count, err));
    }
    wipe_progress(run);
    rg_plan_report(report, x);
    if (rg_arg_given(args, "plot") && x->brief)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "--plot draws the frontier, which --brief leaves out");
    if (rg_arg_given(args, "plot") && run->winner >= 0) {
        RG_TRY(rg_plan_draw(x, rg_arg_text(args, "plot"), err));
        rg_report_image(report, rg_arg_text(args, "plot"), "Cost against latency");
    }
    RG_TRY(rg_arg_write(args, report, "runners_up", err));
    if (run->winner >= 0)
        return RG_OK;
    char nearest[512];
    rg_plan_nearest_text(run, nearest, sizeof nearest);
    return rg_fail(err, RG_ERR_NO, RG_NOWHERE, "nothing keeps the limits; %s", nearest);
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    rg_plan *plan = RG_NEW(arena, rg_plan, 1, err);
    rg_plan_answer *answer = RG_NEW(arena, rg_plan_answer, 1, err);
    if (!plan || !answer)
        return RG_ERR_LIMIT;
    RG_TRY(read_settings(arena, args, plan, err));
    if (!plan->has_traffic)
        return answer_fits(arena, args, plan, err);
    answer->arena = arena;
    answer->run = RG_NEW(arena, rg_plan_run, 1, err);
    if (!answer->run)
        return RG_ERR_LIMIT;
    const rg_status status = answer_traffic(answer, args, plan, err);
    rg_plan_release(answer->run);
    return status;
}

static const rg_option options[] = {
    {"model", 'm', "NAME", NULL, "model: name, model YAML or config.json", false},
    {"hw", 0, "NAME,...", NULL, "devices, nodes or clusters to choose from [all with a price]",
     true},
    {"gpu", 0, "NAME,...", NULL, "the same", true},
    /* traffic */
    {"rate", 0, "RATE", NULL, "requests per second, such as 20/s", false},
    {"users", 0, "N", NULL, "users, each of whom waits for the answer", false},
    {"think", 0, "TIME", NULL, "mean time that a user thinks between two requests", false},
    {"trace", 0, "FILE", NULL, "requests of a trace, in any form that 'ridge serve' reads", false},
    {"trace-format", 0, "NAME", NULL, "azure, burstgpt, vidur, ridge, mooncake, json or jsonl",
     false},
    {"isl", 0, "SPEC", NULL, "prompt tokens: 2048, lognormal:2000,cv=1 [2048]", false},
    {"osl", 0, "SPEC", NULL, "output tokens, likewise [256]", false},
    {"offline", 0, NULL, NULL, "all requests at once: the cheapest throughput, no waiting", false},
    {"system-prompt", 0, "N", NULL, "tokens that all prompts begin with", false},
    {"limit", 0, "N", NULL, "one run of N requests [several of three minutes or more]", false},
    /* limits */
    {"ttft", 0, "LIMIT", NULL, "time to first token: p95:1s, p99.9:3s, mean:300ms", true},
    {"tpot", 0, "LIMIT", NULL, "time per output token after the first, likewise", true},
    {"e2e", 0, "LIMIT", NULL, "whole request, likewise", true},
    /* choices */
    {"weight-type", 0, "TYPE,...", NULL, "weights [the checkpoint's]", true},
    {"kv-type", 0, "TYPE,...", NULL, "KV cache [the checkpoint's, else bf16]", true},
    {"tp", 0, "N,...", NULL, "tensor-parallel ranks [powers of 2 within a domain]", true},
    {"pp", 0, "N,...", NULL, "pipeline stages [1, 2, 4]", true},
    {"ep", 0, "N,...", NULL, "expert-parallel ranks [1 and tp]", true},
    {"cp", 0, "N,...", NULL, "ranks that split the KV of a sequence [1]", true},
    {"attention-dp", 0, "BOOL,...", NULL,
     "data-parallel attention within tp [false; both for MLA with experts]", true},
    {"max-sequences", 0, "N,...", NULL, "sequences at once [the engine's]", true},
    {"max-tokens", 0, "N,...", NULL, "tokens of a step [the engine's]", true},
    {"scheduler", 0, "NAME,...", NULL, "vllm, sglang, trtllm, static, ... [vllm]", true},
    {"pools", 0, "P:D,...", NULL,
     "aggregated, disaggregated, or prefill and decode replicas as 1:2 [aggregated]", true},
    {"prefill-hw", 0, "NAME,...", NULL, "devices of prefill pools [those that decode]", true},
    {"prefill-tp", 0, "N,...", NULL, "tp of prefill pools [as the others]", true},
    {"prefill-pp", 0, "N,...", NULL, "pp of prefill pools [as the others]", true},
    {"prefill-ep", 0, "N,...", NULL, "ep of prefill pools [as the others]", true},
    {"prefix-caching", 0, "BOOL,...", NULL, "[the engine's]", true},
    {"reservation", 0, "KIND,...", NULL, "KV memory: paged, output, model [paged]", true},
    {"speculate", 0, "HOW,...", NULL, "none, draft_model, self, medusa, eagle, mtp [none]", true},
    {"draft-model", 0, "NAME", NULL, "model that writes drafts", false},
    {"drafts", 0, "N,...", NULL, "draft tokens of a decode step [0; with --speculate 3]", true},
    {"acceptance", 0, "P,...", NULL, "chance that a draft token is right, or HOW=P [0.7]", true},
    {"draft-cost", 0, "X", NULL,
     "without --speculate: time of a draft step over a decode step [0.1]", false},
    {"engine", 0, "NAME", NULL, "engine constants [the scheduler's engine]", false},
    {"memory-utilisation", 0, "X", NULL, "share of device memory that the engine takes", false},
    /* money and power */
    {"goal", 0, "GOAL", NULL, "what is made least: cost, devices or power [cost]", false},
    {"prices", 0, "FILE", NULL, "price file [hw/prices.yaml]", false},
    {"price", 0, "DEVICE=PRICE", NULL, "price of a device, such as h100-sxm=2.5$/h", true},
    {"provider", 0, "NAME", NULL, "prices of this provider only", false},
    {"term", 0, "TERM", NULL, "on-demand, spot, reserved or owned [on-demand]", false},
    {"most-devices", 0, "N", NULL, "devices at most [1024]", false},
    {"power-cap", 0, "POWER", NULL, "power at most, devices at TDP with hosts", false},
    {"carbon", 0, "G/KWH", NULL, "carbon intensity of the grid, such as '400 g/kWh'", false},
    {"overhead", 0, "X", NULL, "all power of the place over that of its servers [1]", false},
    {"tariff", 0, "PRICE", NULL, "price of electricity, such as '0.12 $/kWh'", false},
    {"exhaustive", 0, NULL, NULL, "simulate every candidate instead of ruling out by proof", false},
    {"brief", 0, NULL, NULL, "winner and runners-up alone: no frontier, no sensitivity", false},
    {"plot", 'p', "FILE", NULL, "draw cost against latency", false},
    {NULL, 0, NULL, NULL, NULL, false},
};

const rg_command rg_cmd_plan = {
    .name = "plan",
    .group = "answer",
    .summary = "the cheapest arrangement that keeps latency limits under given traffic",
    .operands = "PLAN.yaml|MODEL",
    .least_operands = 0,
    .most_operands = 1,
    .description =
        "A plan file has the names of these options as keys, lists as lists, and kind: plan; the\n"
        "command line wins. Every combination of what may be chosen is screened by a bound that "
        "is\n"
        "proved, the rest is simulated on the same requests, and the least costly one that keeps\n"
        "every limit wins. Exit code 1 when none does; the nearest is named then.\n"
        "\n"
        "With --offline all requests are there at once and the cheapest throughput wins; every\n"
        "device is ranked by output tokens a second. A limit on tpot may be kept.\n"
        "\n"
        "Without traffic, 'ridge plan MODEL --gpu NAME' says whether the model fits, on how many\n"
        "devices by weight type, how fast it is for one user, how many it holds at once, and how\n"
        "fast it is for them together.",
    .examples = "  ridge plan llama-3.1-70b --gpu rtx-4090\n"
                "  ridge plan llama-3.1-70b --rate 20/s --isl 2000 --osl 300 --ttft p95:1s \\\n"
                "      --tpot p95:40ms --hw h100-sxm,h200-sxm,l40s\n"
                "  ridge plan llama-3.3-70b --offline --hw h100-sxm,h200-sxm,b200-sxm --scheduler "
                "trtllm \\\n"
                "      --weight-type fp8 --kv-type fp8 --isl 2048 --osl 128\n"
                "  ridge plan examples/51-plan-deepseek.yaml --plot frontier.svg",
    .options = options,
    .run = run,
};

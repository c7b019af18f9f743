/* cli/cmd_train.c: time, memory and utilisation of a training step. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "cli/args.h"
#include "cli/setup.h"
#include "step/train.h"

extern const rg_command rg_cmd_train;

static rg_status read_train(const rg_args *args, const rg_parallel *p, rg_train *t,
                            rg_report *report, rg_err *err)
{
    static const char *const recomputes[] = {"none", "selective", "full", NULL};
    int choice;
    int64_t zero;
    *t = rg_train_defaults();
    RG_TRY(rg_arg_int(args, "sequence", 1, 1 << 30, &t->sequence_tokens, err));
    RG_TRY(rg_arg_int(args, "micro-batch", 1, 1 << 20, &t->micro_batch, err));
    RG_TRY(rg_arg_int(args, "zero", 0, 3, &zero, err));
    t->zero = (int)zero;
    RG_TRY(rg_arg_choice(args, "recompute", recomputes, &choice, err));
    t->recompute = (rg_recompute)choice;
    RG_TRY(rg_arg_real(args, "overlap", 0, 1, &t->overlap_ratio, err));
    RG_TRY(rg_arg_real(args, "gradient-bytes", 0.5, 8, &t->gradient_bytes, err));
    RG_TRY(rg_coll_algorithm_parse(rg_arg_text(args, "gradient-algorithm"), &t->gradient_algorithm,
                                   err));
    if (rg_arg_given(args, "global-batch")) {
        RG_TRY(rg_arg_int(args, "global-batch", 1, 1LL << 40, &t->global_batch, err));
    } else {
        t->global_batch = t->micro_batch * p->dp * (p->pp > 1 ? 4 * p->pp : 8);
        rg_report_assume(report, "global batch: %lld sequences, %d micro-batches on each replica",
                         (long long)t->global_batch, (int)(p->pp > 1 ? 4 * p->pp : 8));
    }
    return RG_OK;
}

static void put_time(rg_report *report, const rg_train_time *t)
{
    rg_report_figure(report, "step_s", "one step", t->total.v, RG_DIM_SECONDS);
    rg_report_figure(report, "tokens_per_s", "tokens per second", t->tokens_per_s, RG_DIM_NONE);
    rg_report_figure(report, "tokens_per_s_per_device", "  of one device",
                     t->tokens_per_s_per_device, RG_DIM_NONE);
    rg_report_figure(report, "mfu_ratio", "MFU (model flops)", t->mfu_ratio, RG_DIM_SHARE);
    rg_report_figure(report, "hfu_ratio", "HFU (recomputation too)", t->hfu_ratio, RG_DIM_SHARE);
    rg_report_figure(report, "model_flops", "model flops of the step", t->model_flops.v,
                     RG_DIM_FLOPS);
    rg_report_int(report, "devices", "devices", t->devices);
    rg_report_int(report, "micro_batches", "micro-batches of a replica", t->micro_batches);
    rg_table *table = rg_report_table(report, "time", "Where the time goes");
    rg_table_column(table, "part", "part", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "time_s", "time", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "share", "share", RG_CELL_REAL, RG_DIM_SHARE, false);
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"forward", t->forward.v},     {"backward", t->backward.v},
                 {"recompute", t->recompute.v}, {"communication", t->communication.v},
                 {"bubble", t->bubble.v},       {"gradients", t->gradients.v},
                 {"optimiser", t->optimiser.v}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        rg_table_text(table, parts[i].name);
        rg_table_real(table, parts[i].seconds);
        rg_table_real(table, parts[i].seconds / t->total.v);
    }
}

static void put_memory(rg_report *report, const rg_train_time *t)
{
    rg_table *table = rg_report_table(report, "memory", "Memory of the fullest device");
    rg_table_column(table, "part", "part", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "bytes", "bytes", RG_CELL_REAL, RG_DIM_BYTES, false);
    const struct {
        const char *name;
        double bytes;
    } parts[] = {{"weights", t->weights.v},
                 {"gradients", t->gradient_memory.v},
                 {"optimiser", t->optimiser_memory.v},
                 {"activations", t->activations.v},
                 {"total", t->memory.v},
                 {"capacity", t->capacity.v}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        rg_table_text(table, parts[i].name);
        rg_table_real(table, parts[i].bytes);
    }
    if (!t->fits)
        rg_report_line(report, "This does not fit: more tp, pp, zero or recomputation would help.");
}

/** What the replicas tell each other in a step: the "gradients" line, opened up. */
static void put_traffic(rg_report *report, const rg_train *train, const rg_train_time *t)
{
    if (t->gradient_query.ranks == 0)
        return;
    rg_table *table = rg_report_table(
        report, "traffic", "Traffic between replicas: what is not hidden is the line 'gradients'");
    rg_table_column(table, "operation", "operation", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "calls", "calls", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "bytes", "bytes each", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(table, "each_s", "time each", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "total_s", "in all", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "exposed_s", "not hidden", RG_CELL_REAL, RG_DIM_SECONDS, false);
    const struct {
        const char *name;
        const rg_train_traffic *traffic;
    } rows[] = {
        {train->zero >= 1 ? "reduce-scatter of gradients" : "all-reduce of gradients", &t->reduce},
        {"all-gather of weights", &t->gather}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rg_train_traffic *traffic = rows[i].traffic;
        if (traffic->calls == 0)
            continue;
        rg_table_text(table, rows[i].name);
        rg_table_int(table, (long long)traffic->calls);
        rg_table_real(table, traffic->bytes.v);
        rg_table_real(table, traffic->each.v);
        rg_table_real(table, (double)traffic->calls * traffic->each.v);
        rg_table_real(table, traffic->exposed.v);
    }
}

/** The gradients as one all-reduce by every way over nodes, before anything is hidden. */
static rg_status put_reduction(rg_arena *arena, rg_report *report, const rg_cluster *cluster,
                               const rg_train_time *t, rg_err *err)
{
    rg_coll_query q = t->gradient_query;
    if (q.ranks == 0)
        return RG_OK;
    q.op = RG_COLL_ALL_REDUCE;
    rg_coll_context *links;
    RG_TRY(rg_coll_prepare(arena, cluster, NULL, &links, err));
    rg_table *table = rg_report_table(report, "gradient_reduction",
                                      "All-reduce of the gradients by algorithm, to compare");
    rg_table_column(table, "algorithm", "algorithm", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "ranks", "ranks", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "bytes", "bytes", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(table, "time_s", "time", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "busbw_bytes_per_s", "busbw", RG_CELL_REAL, RG_DIM_BYTES_PER_S, false);
    rg_table_column(table, "limit", "limit", RG_CELL_TEXT, RG_DIM_NONE, false);
    static const rg_coll_algorithm ways[] = {RG_ALG_RING, RG_ALG_TREE, RG_ALG_HIERARCHICAL,
                                             RG_ALG_IN_SWITCH, RG_ALG_TORUS};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        q.algorithm = ways[i];
        rg_coll_result r;
        if (rg_coll_time(links, &q, &r, NULL) != RG_OK)
            continue; /* not possible on this cluster or group */
        rg_table_text(table, rg_coll_algorithm_name(ways[i]));
        rg_table_int(table, (long long)q.ranks);
        rg_table_real(table, q.bytes.v);
        rg_table_real(table, r.time.v);
        rg_table_real(table, r.busbw.v);
        rg_table_text(table, rg_coll_limit_name(r.limit));
    }
    return RG_OK;
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    rg_report *report;
    rg_setup s = {0};
    rg_train train;
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    RG_TRY(rg_setup_changes(arena, args, report, &s, err));
    RG_TRY(rg_setup_machine(arena, args, report, &s, err));
    RG_TRY(rg_setup_model(arena, args, report, &s, err));
    RG_TRY(rg_setup_arrangement(arena, args, report, &s, err));
    RG_TRY(rg_arg_int(args, "interleave", 1, 64, &s.parallel.pp_interleave, err));
    int64_t nodes = 0;
    const rg_parallel *p = &s.parallel;
    if (rg_arg_given(args, "nodes")) {
        RG_TRY(rg_arg_int(args, "nodes", 1, 65536, &nodes, err));
    } else {
        const int64_t devices = p->tp * p->pp * p->cp * p->dp;
        nodes = (devices + s.cluster->devices_per_node - 1) / s.cluster->devices_per_node;
        if (nodes < s.cluster->nodes)
            nodes = s.cluster->nodes;
        if (nodes > s.cluster->nodes)
            rg_report_assume(report, "nodes: %lld of '%s', as many as the arrangement needs",
                             (long long)nodes, s.cluster->name);
    }
    s.cluster->nodes = nodes;
    RG_TRY(read_train(args, p, &train, report, err));
    rg_train_time t;
    RG_TRY(rg_train_step(arena, s.cluster, s.model, &s.formats, p, &train, &s.kernel, &t, err));
    char step[32];
    rg_quantity_format(t.total.v, RG_DIM_SECONDS, 3, step, sizeof step);
    rg_report_line(report, "%s on %lld %s: %s a step, %.0f tokens/s, MFU %.1f %%%s", s.model->name,
                   (long long)t.devices, t.devices == 1 ? "device" : "devices", step,
                   t.tokens_per_s, 100 * t.mfu_ratio,
                   t.fits ? "" : ", but it does not fit into memory");
    put_time(report, &t);
    put_memory(report, &t);
    put_traffic(report, &train, &t);
    RG_TRY(put_reduction(arena, report, s.cluster, &t, err));
    const bool a100 = s.accel->arch != NULL && strcmp(s.accel->arch, "ampere") == 0;
    rg_report_assume(
        report, "%s",
        a100 ? "step times and activations: within 10 % of eight published runs on 8 to 512 "
               "A100 (Korthikanti et al. 2022, table 5 and figure 1)"
             : "training is not validated on this device; on A100 it is within 10 % of "
               "eight published runs (Korthikanti et al. 2022, table 5)");
    rg_report_assume(report, "left out: failures, stragglers, data loading and checkpoints; long "
                             "runs on many devices reach less than this");
    rg_report_assume(report,
                     "overlap %.2f of the traffic between replicas with compute (--overlap)",
                     train.overlap_ratio);
    rg_report_assume(report,
                     "bytes of a parameter: weights 2, gradients %g, optimiser 12 (fp32 copy "
                     "and two moments)",
                     train.gradient_bytes);
    return rg_arg_write(args, report, "time", err);
}

static const rg_option options[] = {
    RG_SETUP_MACHINE,
    RG_SETUP_MODEL,
    RG_SETUP_FORMATS,
    RG_SETUP_PARALLEL,
    {"nodes", 0, "N", NULL, "nodes of the cluster [as many as the arrangement needs]", false},
    {"interleave", 0, "N", "1", "model chunks of a pipeline stage", false},
    {"sequence", 0, "N", "4096", "tokens of a sequence", false},
    {"micro-batch", 0, "N", "1", "sequences of a micro-batch on a replica", false},
    {"global-batch", 0, "N", NULL, "sequences of a step on all replicas", false},
    {"zero", 0, "N", "1", "states split over replicas: 1 optimiser, 2 gradients, 3 weights", false},
    {"recompute", 0, "HOW", "selective", "none, selective (attention) or full", false},
    {"gradient-bytes", 0, "N", "4", "bytes of a gradient", false},
    {"gradient-algorithm", 0, "NAME", "auto", "of the reduction: ring, tree, hierarchical ...",
     false},
    {"overlap", 0, "X", "0.5", "share of traffic between replicas that compute hides", false},
    RG_SETUP_KERNEL,
    RG_SETUP_CHANGES,
    {0}};

const rg_command rg_cmd_train = {
    .name = "train",
    .group = "answer",
    .summary = "time, memory and MFU of a training step",
    .description =
        "One optimiser step: micro-batches forward and backward through the pipeline (1F1B or "
        "interleaved), tensor-, expert- and context-parallel traffic, the reduction of the "
        "gradients "
        "over the replicas by every algorithm that the cluster allows, and the optimiser. ZeRO 2 "
        "reduces the gradients of every micro-batch; ZeRO 3 gathers the weights twice for each as "
        "well.\n\n"
        "MFU counts model flops alone: three times a forward pass of the whole model, the causal "
        "half of attention, the same for every arrangement. HFU counts what is computed again too, "
        "in flash attention the scores.",
    .examples = "ridge train --hw hgx-h100 --model llama-3.1-70b --tp 8 --pp 4 --dp 64 "
                "--sequence-parallel\n"
                "ridge train --hw hgx-h100 --model llama-2-7b --dp 2048 --global-batch 2048\n",
    .options = options,
    .run = run,
};

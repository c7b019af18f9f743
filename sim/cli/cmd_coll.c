/* cli/cmd_coll.c: time, bandwidth and algorithm of collectives, beside measured logs. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/coll.h"
#include "cli/coll_workload.h"
#include "core/text.h"

extern const rg_command rg_cmd_coll;

enum { MOST_POINTS = 100000 };

/* ---- the points ---- */

static int line_of(rg_coll_job *j, rg_coll_op op, int64_t ranks)
{
    for (int i = 0; i < j->lines; i++)
        if (j->line_op[i] == op && j->line_ranks[i] == ranks)
            return i;
    if (j->lines == RG_COLL_MOST_LINES)
        return 0;
    j->line_op[j->lines] = op;
    j->line_ranks[j->lines] = ranks;
    return j->lines++;
}

rg_status rg_coll_add_point(rg_coll_job *j, rg_coll_op op, int64_t ranks, double bytes,
                            double measured_s, rg_err *err)
{
    if (j->count == MOST_POINTS)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than %d points", MOST_POINTS);
    rg_coll_point *p = &j->points[j->count++];
    *p = (rg_coll_point){.query = j->base, .simulated_s = NAN, .measured_s = measured_s};
    p->query.op = op;
    p->query.ranks = ranks;
    p->query.bytes = RG_B(bytes);
    p->line = line_of(j, op, ranks);
    RG_TRY(rg_coll_time(j->links, &p->query, &p->result, err));
    if (rg_arg_flag(j->args, "simulate")) {
        rg_arena *own = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
        rg_coll_result r;
        if (own == NULL)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for the simulation");
        rg_coll_query same = p->query;
        rg_err why = {0};
        same.algorithm = p->result.algorithm;
        const rg_status status = rg_coll_simulate(own, j->links, &same, &r, NULL, &why);
        rg_arena_free(own);
        if (status == RG_ERR_MODEL) {
            if (!j->told)
                rg_report_assume(j->report, "not simulated: %s", why.text);
            j->told = true;
            return RG_OK;
        }
        if (status != RG_OK)
            return rg_fail(err, status, RG_NOWHERE, "%s", why.text);
        p->simulated_s = r.time.v;
    }
    return RG_OK;
}

/** "2,4,8" or all powers of two up to the domain. */
static rg_status ranks_of(rg_coll_job *j, int64_t out[RG_COLL_MOST_LISTED], int *count, rg_err *err)
{
    const char *text = rg_arg_text(j->args, "ranks");
    *count = 0;
    if (text == NULL) {
        const rg_cluster *c = j->setup.cluster;
        const int64_t all = c->devices_per_node * c->nodes;
        out[(*count)++] =
            c->scale_up_devices > 1 && c->scale_up_devices < all ? c->scale_up_devices : all;
        if (out[0] < 2)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "'%s' is one device; name a node or cluster, or give --ranks", c->name);
        rg_report_assume(j->report, "ranks: %lld, one scale-up domain", (long long)out[0]);
        return RG_OK;
    }
    while (*text != '\0') {
        char part[24];
        const size_t length = strcspn(text, ",");
        int64_t n;
        if (length == 0 || length >= sizeof part || *count == RG_COLL_MOST_LISTED)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "option --ranks '%s': numbers with commas between, like 2,4,8",
                           rg_arg_text(j->args, "ranks"));
        memcpy(part, text, length);
        part[length] = '\0';
        if (!rg_text_to_int(part, &n) || n < 1)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "option --ranks: '%s' is no number of ranks", part);
        out[(*count)++] = n;
        text += length + (text[length] == ',');
    }
    return RG_OK;
}

static rg_status ops_of(rg_coll_job *j, rg_coll_op out[RG_COLL_MOST_LISTED], int *count,
                        rg_err *err)
{
    *count = rg_arg_count(j->args, "op");
    if (*count > RG_COLL_MOST_LISTED)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "more than %d --op", RG_COLL_MOST_LISTED);
    for (int i = 0; i < *count; i++)
        RG_TRY(rg_coll_op_parse(rg_arg_nth(j->args, "op", i), &out[i], err));
    if (*count == 0)
        out[(*count)++] = RG_COLL_ALL_REDUCE;
    return RG_OK;
}

static rg_status sweep(rg_coll_job *j, rg_err *err)
{
    int64_t ranks[RG_COLL_MOST_LISTED];
    rg_coll_op ops[RG_COLL_MOST_LISTED];
    int rank_count, op_count;
    double least, most, factor;
    RG_TRY(ranks_of(j, ranks, &rank_count, err));
    RG_TRY(ops_of(j, ops, &op_count, err));
    RG_TRY(rg_arg_quantity(j->args, "from", RG_DIM_BYTES, &least, err));
    RG_TRY(rg_arg_quantity(j->args, "to", RG_DIM_BYTES, &most, err));
    RG_TRY(rg_arg_real(j->args, "factor", 1.001, 1e6, &factor, err));
    if (least < 1 || most < least)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "--from must be 1 B or more, and --to not below it");
    const int listed = rg_arg_count(j->args, "bytes");
    for (int o = 0; o < op_count; o++)
        for (int r = 0; r < rank_count; r++) {
            for (int i = 0; i < listed; i++) {
                double bytes;
                RG_TRY(rg_quantity_parse(rg_arg_nth(j->args, "bytes", i), RG_DIM_BYTES, RG_NOWHERE,
                                         "option --bytes", &bytes, err));
                RG_TRY(rg_coll_add_point(j, ops[o], ranks[r], bytes, NAN, err));
            }
            /* a little over the end, so that rounding does not cost the last size */
            for (double bytes = least; listed == 0 && bytes <= most * (1 + 1e-9); bytes *= factor)
                RG_TRY(rg_coll_add_point(j, ops[o], ranks[r], floor(bytes + 0.5), NAN, err));
        }
    return RG_OK;
}

static rg_status read_query(rg_coll_job *j, rg_err *err)
{
    static const char *const protocols[] = {"auto", "ll", "ll128", "simple", NULL};
    static const char *const libraries[] = {"nccl", "custom", "ideal", NULL};
    int choice;
    j->base = (rg_coll_query){.bytes = {0}};
    RG_TRY(rg_coll_algorithm_parse(rg_arg_text(j->args, "algorithm"), &j->base.algorithm, err));
    RG_TRY(rg_arg_choice(j->args, "protocol", protocols, &choice, err));
    j->base.protocol = (rg_coll_protocol)choice;
    RG_TRY(rg_arg_choice(j->args, "library", libraries, &choice, err));
    j->base.library = (rg_coll_library)choice;
    RG_TRY(rg_arg_int(j->args, "stride", 1, 1 << 20, &j->base.stride, err));
    if (rg_arg_given(j->args, "ranks-per-node"))
        RG_TRY(rg_arg_int(j->args, "ranks-per-node", 1, 65536, &j->base.local, err));
    RG_TRY(rg_arg_real(j->args, "imbalance", 1, 1e6, &j->base.imbalance, err));
    j->base.integer = rg_arg_flag(j->args, "integer");
    return RG_OK;
}

static rg_status workload(rg_coll_job *j, rg_err *err)
{
    static const char *const unlike[] = {"op",   "bytes",      "from",     "to",       "factor",
                                         "plot", "crossovers", "measured", "simulate", "stride"};
    const rg_cluster *c = j->setup.cluster;
    int64_t ranks = c->devices_per_node * c->nodes;
    for (size_t i = 0; i < sizeof unlike / sizeof *unlike; i++)
        if (rg_arg_given(j->args, unlike[i]))
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "--workload says what is communicated: leave out --%s", unlike[i]);
    if (rg_arg_given(j->args, "ranks"))
        RG_TRY(rg_arg_int(j->args, "ranks", 1, 1 << 20, &ranks, err));
    RG_TRY(rg_coll_workload(j->arena, rg_arg_text(j->args, "workload"), &j->setup, j->links,
                            &j->base, ranks, j->report, err));
    rg_report_assume(j->report, "%s", rg_coll_note(j->links));
    return rg_arg_write(j->args, j->report, "points", err);
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    rg_coll_job j = {.arena = arena, .args = args};
    RG_TRY(rg_arg_report(arena, args, 1, &j.report, err));
    RG_TRY(rg_setup_changes(arena, args, j.report, &j.setup, err));
    RG_TRY(rg_setup_machine(arena, args, j.report, &j.setup, err));
    if (rg_arg_given(args, "nodes"))
        RG_TRY(rg_arg_int(args, "nodes", 1, 65536, &j.setup.cluster->nodes, err));
    RG_TRY(read_query(&j, err));
    RG_TRY(rg_coll_prepare(arena, j.setup.cluster, NULL, &j.links, err));
    if (rg_arg_given(args, "workload"))
        return workload(&j, err);
    j.points = RG_NEW(arena, rg_coll_point, MOST_POINTS, err);
    if (j.points == NULL)
        return RG_ERR_LIMIT;
    const int logs = rg_arg_count(args, "measured");
    for (int i = 0; i < logs; i++)
        RG_TRY(rg_coll_read_log(&j, rg_arg_nth(args, "measured", i), err));
    if (logs == 0)
        RG_TRY(sweep(&j, err));
    RG_TRY(rg_coll_report(&j, err));
    return rg_arg_write(args, j.report, "points", err);
}

static const rg_option options[] = {
    RG_SETUP_MACHINE,
    RG_SETUP_CHANGES,
    {"op", 0, "OP", NULL,
     "all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, send_recv", true},
    {"ranks", 'n', "N,N,...", NULL, "ranks of the group [one scale-up domain]", false},
    {"stride", 0, "N", "1", "device numbers between neighbours of the group", false},
    {"ranks-per-node", 0, "N", NULL, "most ranks in one scale-up domain [as many as fit]", false},
    {"nodes", 0, "N", NULL, "nodes of the cluster, in place of what its file says", false},
    {"bytes", 0, "SIZE", NULL, "a message size, instead of a sweep", true},
    {"from", 'b', "SIZE", "1 KiB", "first size of the sweep", false},
    {"to", 'e', "SIZE", "1 GiB", "last size of the sweep", false},
    {"factor", 0, "X", "2", "from one size to the next", false},
    {"algorithm", 'a', "NAME", "auto",
     "ring, tree, halving_doubling, one_shot, two_shot, in_switch, hierarchical, torus, direct",
     false},
    {"protocol", 0, "NAME", "auto", "ll, ll128, simple", false},
    {"library", 0, "NAME", "nccl", "nccl, custom (a serving engine's own all-reduce), ideal",
     false},
    {"integer", 0, NULL, NULL, "numbers that switches do not add up, as int8", false},
    {"imbalance", 0, "X", "1", "all-to-all: bytes of the busiest rank over the mean", false},
    {"simulate", 0, NULL, NULL, "also run the schedule as flows over the bare links", false},
    {"crossovers", 0, NULL, NULL, "list the sizes at which the automatic choice changes", false},
    {"measured", 0, "LOG", NULL, "nccl-tests log: predict its rows and compare", true},
    {"workload", 0, "FILE", NULL,
     "time every communication of a Chakra trace (.et) or of ASTRA-sim or SimAI workload text",
     false},
    {"plot", 0, "FILE", NULL, "figure of bus bandwidth (.svg, .png, .pdf, - for the terminal)",
     false},
    {0}};

const rg_command rg_cmd_coll = {
    .name = "coll",
    .group = "answer",
    .summary = "time, bandwidth and algorithm of collectives on a node or cluster",
    .description =
        "Sizes are counted as nccl-tests counts them: for all-reduce the buffer of one rank, for "
        "all-gather and reduce-scatter the whole, for all-to-all what one rank holds for all. "
        "algbw "
        "is bytes over time; busbw is algbw times 2(n-1)/n for all-reduce and (n-1)/n for gather, "
        "scatter and all-to-all.\n\n"
        "With --measured, every out-of-place row of an nccl-tests log is predicted and compared "
        "size "
        "by size; the log's printed average mixes all sizes and is not used.\n\n"
        "With --workload, every node of a Chakra trace, or layer of a workload of ASTRA-sim or "
        "SimAI, is run on one rank's host, device and network: when the last one ends, how much "
        "communication nothing hides, and which collectives it is. Compute times are the file's.",
    .examples =
        "ridge coll --hw hgx-h200\n"
        "ridge coll --hw hgx-h200 --op all_gather --ranks 2,4,8 --plot busbw.svg\n"
        "ridge coll --hw superpod-h200 --ranks 256 --bytes '4 GB' -a hierarchical --simulate\n"
        "ridge coll --hw hgx-h100 --measured all_reduce.log\n"
        "ridge coll --hw hgx-h100 --workload step.0.et\n",
    .options = options,
    .run = run,
};

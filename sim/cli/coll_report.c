/* cli/coll_report.c: what coll prints and draws. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/coll.h"
#include "report/plot.h"

enum { MOST_CROSSOVERS = 32 };

/* What was validated: the sizes, ranks and fabrics that constants were fitted and tested on. */
static const double validated_least_bytes = 512, validated_most_bytes = 536870912.0;
static const int64_t validated_most_ranks = 8;

static bool in_range(const rg_coll_job *j, const rg_coll_point *p)
{
    const bool one_domain = p->query.ranks * (p->query.stride > 0 ? p->query.stride : 1) <=
                            j->setup.cluster->scale_up_devices;
    return one_domain && p->query.ranks <= validated_most_ranks &&
           p->query.bytes.v >= validated_least_bytes && p->query.bytes.v <= validated_most_bytes;
}

static void put_points(rg_coll_job *j)
{
    const bool simulated = rg_arg_flag(j->args, "simulate");
    rg_table *t = rg_report_table(j->report, "points", "Collectives");
    rg_table_column(t, "op", "op", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "ranks", "ranks", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "bytes", "size", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(t, "time_s", "time", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "algbw_bytes_per_s", "algbw", RG_CELL_REAL, RG_DIM_BYTES_PER_S, false);
    rg_table_column(t, "busbw_bytes_per_s", "busbw", RG_CELL_REAL, RG_DIM_BYTES_PER_S, false);
    rg_table_column(t, "algorithm", "algorithm", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "protocol", "protocol", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "limit", "limit", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "steps", "steps", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "latency_s", "latency", RG_CELL_REAL, RG_DIM_SECONDS, true);
    rg_table_column(t, "sent_bytes", "sent", RG_CELL_REAL, RG_DIM_BYTES, true);
    rg_table_column(t, "above_link", "above link", RG_CELL_BOOL, RG_DIM_NONE, true);
    rg_table_column(t, "in_validated_range", "validated", RG_CELL_BOOL, RG_DIM_NONE, true);
    if (simulated)
        rg_table_column(t, "simulated_time_s", "links alone", RG_CELL_REAL, RG_DIM_SECONDS, false);
    if (j->measured) {
        rg_table_column(t, "measured_time_s", "measured", RG_CELL_REAL, RG_DIM_SECONDS, false);
        rg_table_column(t, "error_ratio", "error", RG_CELL_REAL, RG_DIM_NONE, false);
    }
    for (int i = 0; i < j->count; i++) {
        const rg_coll_point *p = &j->points[i];
        rg_table_text(t, rg_coll_op_name(p->query.op));
        rg_table_int(t, (long long)p->query.ranks);
        rg_table_real(t, p->query.bytes.v);
        rg_table_real(t, p->result.time.v);
        rg_table_real(t, p->result.algbw.v);
        rg_table_real(t, p->result.busbw.v);
        rg_table_text(t, rg_coll_algorithm_name(p->result.algorithm));
        rg_table_text(t, rg_coll_protocol_name(p->result.protocol));
        rg_table_text(t, rg_coll_limit_name(p->result.limit));
        rg_table_int(t, (long long)p->result.steps);
        rg_table_real(t, p->result.latency.v);
        rg_table_real(t, p->result.sent.v);
        rg_table_bool(t, p->result.above_link);
        rg_table_bool(t, in_range(j, p));
        if (simulated)
            rg_table_real(t, p->simulated_s);
        if (j->measured) {
            rg_table_real(t, p->measured_s);
            rg_table_real(t, p->result.time.v / p->measured_s - 1);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Median of |error|, below and from 1 MiB on. */
static rg_status put_errors(rg_coll_job *j, rg_err *err)
{
    double *errors = RG_NEW(j->arena, double, j->count, err);
    if (errors == NULL)
        return RG_ERR_LIMIT;
    for (int big = 0; big < 2; big++) {
        int n = 0;
        for (int i = 0; i < j->count; i++) {
            const rg_coll_point *p = &j->points[i];
            if (isfinite(p->measured_s) && (p->query.bytes.v >= 1 << 20) == (big == 1))
                errors[n++] = fabs(p->result.time.v / p->measured_s - 1);
        }
        if (n == 0)
            continue;
        qsort(errors, (size_t)n, sizeof *errors, by_value);
        const double median = n % 2 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2;
        rg_report_figure(
            j->report, big ? "median_error_from_1mib_ratio" : "median_error_below_1mib_ratio",
            big ? "median error from 1 MiB on" : "median error below 1 MiB", median, RG_DIM_NONE);
    }
    return RG_OK;
}

static rg_status put_crossovers(rg_coll_job *j, rg_err *err)
{
    rg_table *t = rg_report_table(j->report, "crossovers", "Automatic choice by size");
    rg_table_column(t, "op", "op", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "ranks", "ranks", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "from_bytes", "from", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(t, "algorithm", "algorithm", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "protocol", "protocol", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int i = 0; i < j->lines; i++) {
        rg_coll_query q = j->base;
        rg_coll_crossover list[MOST_CROSSOVERS];
        int count;
        q.op = j->line_op[i];
        q.ranks = j->line_ranks[i];
        if (q.ranks < 2)
            continue;
        RG_TRY(rg_coll_crossovers(j->links, &q, RG_B(8), RG_B(8.0 * (1 << 30)), list,
                                  MOST_CROSSOVERS, &count, err));
        for (int k = 0; k < count; k++) {
            rg_table_text(t, rg_coll_op_name(q.op));
            rg_table_int(t, (long long)q.ranks);
            rg_table_real(t, list[k].from.v);
            rg_table_text(t, rg_coll_algorithm_name(list[k].algorithm));
            rg_table_text(t, rg_coll_protocol_name(list[k].protocol));
        }
    }
    return RG_OK;
}

/** Which hops are direct, and that the rest goes through host memory. */
static void tell_pcie(rg_coll_job *j)
{
    static const char *const reach[RG_PEER_REACH_COUNT] = {
        [RG_PEER_ROOT] = "behind one CPU",
        [RG_PEER_SWITCH] = "behind one switch",
        [RG_PEER_NONE] = "nowhere",
    };
    rg_report_assume(j->report,
                     "PCIe: devices read each other directly %s (peer_reach of the node's file), "
                     "elsewhere through host memory at %.2f of an uplink",
                     reach[j->setup.cluster->scale_up.peer_reach],
                     rg_coll_constants_of(j->setup.cluster).switch_ratio);
}

static void put_assumptions(rg_coll_job *j)
{
    const rg_cluster *c = j->setup.cluster;
    bool outside = false, above = false;
    for (int i = 0; i < j->count; i++) {
        outside |= j->points[i].query.ranks > 1 && !in_range(j, &j->points[i]);
        above |= j->points[i].result.above_link;
    }
    if (j->base.library == RG_LIB_IDEAL)
        rg_report_assume(j->report, "ideal links: rates and latencies of '%s', no software",
                         c->name);
    else
        rg_report_assume(j->report, "%s", rg_coll_note(j->links));
    if (c->scale_up.kind == RG_FABRIC_PCIE_TREE && j->base.library != RG_LIB_IDEAL)
        tell_pcie(j);
    if (outside && j->base.library != RG_LIB_IDEAL)
        rg_report_assume(
            j->report,
            "points outside 512 B to 512 MiB, 2 to 8 ranks of one node are extrapolated: "
            "not validated");
    if (above)
        rg_report_assume(j->report, "busbw above the link rate: in-switch reduction (NVLS) sends "
                                    "each byte once; algbw stays below the link");
    if (c->scale_up.latency.assumed)
        rg_report_assume(j->report, "link latency: %s", c->scale_up.latency.source);
}

/** What a person wants first: the largest size of each line. */
static void put_answer(rg_coll_job *j)
{
    for (int line = 0; line < j->lines; line++) {
        const rg_coll_point *best = NULL;
        for (int i = 0; i < j->count; i++)
            if (j->points[i].line == line &&
                (best == NULL || j->points[i].query.bytes.v > best->query.bytes.v))
                best = &j->points[i];
        if (best == NULL)
            continue;
        char size[32], time[32], bus[32];
        rg_quantity_format(best->query.bytes.v, RG_DIM_BYTES, 3, size, sizeof size);
        rg_quantity_format(best->result.time.v, RG_DIM_SECONDS, 3, time, sizeof time);
        rg_quantity_format(best->result.busbw.v, RG_DIM_BYTES_PER_S, 3, bus, sizeof bus);
        rg_report_line(j->report, "%s of %s over %lld %s: %s, busbw %s, %s, limited by %s",
                       rg_coll_op_name(best->query.op), size, (long long)best->query.ranks,
                       best->query.ranks == 1 ? "rank" : "ranks", time, bus,
                       rg_coll_algorithm_name(best->result.algorithm),
                       rg_coll_limit_name(best->result.limit));
    }
}

static rg_status draw(rg_coll_job *j, const char *path, rg_err *err)
{
    rg_plot *plot;
    FILE *out;
    RG_TRY(rg_plot_new(j->arena, "coll", strcmp(path, "-") == 0 ? NULL : path, &plot, err));
    rg_plot_text(plot, "figure_title", "collectives on %s", j->setup.cluster->name);
    rg_plot_number(plot, "lines", j->lines);
    rg_plot_number(plot, "has_measured", j->measured);
    rg_plot_number(plot, "link_rate", j->setup.cluster->scale_up.rate_per_direction.value / 1e9);
    for (int i = 0; i < j->lines; i++) {
        char name[16];
        snprintf(name, sizeof name, "name%d", i);
        rg_plot_text(plot, name, "%s, %lld ranks", rg_coll_op_name(j->line_op[i]),
                     (long long)j->line_ranks[i]);
    }
    RG_TRY(rg_plot_data(plot, "coll", &out, err));
    fprintf(out, "line,bytes,busbw_GBs,time_us\n");
    for (int i = 0; i < j->count; i++)
        fprintf(out, "%d,%.17g,%.9g,%.9g\n", j->points[i].line, j->points[i].query.bytes.v,
                j->points[i].result.busbw.v / 1e9, j->points[i].result.time.v * 1e6);
    RG_TRY(rg_plot_data(plot, "measured", &out, err));
    fprintf(out, "line,bytes,busbw_GBs\n");
    for (int i = 0; i < j->count; i++)
        if (isfinite(j->points[i].measured_s))
            fprintf(out, "%d,%.17g,%.9g\n", j->points[i].line, j->points[i].query.bytes.v,
                    j->points[i].query.bytes.v / j->points[i].measured_s / 1e9 *
                        rg_coll_bus_factor(j->points[i].query.op, j->points[i].query.ranks));
    return rg_plot_write(plot, err);
}

rg_status rg_coll_report(rg_coll_job *j, rg_err *err)
{
    put_answer(j);
    if (j->measured)
        RG_TRY(put_errors(j, err));
    put_points(j);
    if (rg_arg_flag(j->args, "crossovers"))
        RG_TRY(put_crossovers(j, err));
    put_assumptions(j);
    if (!rg_arg_given(j->args, "plot"))
        return RG_OK;
    RG_TRY(draw(j, rg_arg_text(j->args, "plot"), err));
    rg_report_image(j->report, rg_arg_text(j->args, "plot"), "Bus bandwidth");
    return RG_OK;
}

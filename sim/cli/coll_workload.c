/* cli/coll_workload.c: every communication of a workload, and when its last node ends. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/coll_workload.h"

#include <math.h>

#include "net/workload.h"
#include "trace/workload.h"

static void put_answer(rg_report *report, const rg_workload *w, const rg_workload_result *r)
{
    char end[32];
    rg_quantity_format(r->end.v, RG_DIM_SECONDS, 3, end, sizeof end);
    rg_report_line(report,
                   "one rank of the %s workload ends after %s; %.0f %% of it is "
                   "communication with the device idle",
                   w->tool, end, r->end.v > 0 ? 100 * r->exposed.v / r->end.v : 0);
    rg_report_figure(report, "end_s", "last node ends", r->end.v, RG_DIM_SECONDS);
    rg_report_figure(report, "compute_s", "device", r->compute.v, RG_DIM_SECONDS);
    rg_report_figure(report, "host_s", "host", r->host.v, RG_DIM_SECONDS);
    rg_report_figure(report, "communication_s", "network", r->comm.v, RG_DIM_SECONDS);
    rg_report_figure(report, "exposed_communication_s", "network, device idle", r->exposed.v,
                     RG_DIM_SECONDS);
}

static void put_points(rg_report *report, const rg_workload_result *r)
{
    rg_table *t = rg_report_table(report, "points", "Communications, the most time first");
    rg_table_column(t, "op", "op", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "group", "group", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "ranks", "ranks", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "bytes", "size", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(t, "count", "count", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "time_s", "each", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "total_s", "all", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "algbw_bytes_per_s", "algbw", RG_CELL_REAL, RG_DIM_BYTES_PER_S, true);
    rg_table_column(t, "busbw_bytes_per_s", "busbw", RG_CELL_REAL, RG_DIM_BYTES_PER_S, false);
    rg_table_column(t, "algorithm", "algorithm", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "protocol", "protocol", RG_CELL_TEXT, RG_DIM_NONE, true);
    rg_table_column(t, "limit", "limit", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int i = 0; i < r->class_count; i++) {
        const rg_workload_class *c = &r->classes[i];
        rg_table_text(t, rg_coll_op_name(c->query.op));
        rg_table_text(t, rg_work_group_name(c->group));
        rg_table_int(t, (long long)c->query.ranks);
        rg_table_real(t, c->query.bytes.v);
        rg_table_int(t, (long long)c->count);
        rg_table_real(t, c->one.time.v);
        rg_table_real(t, c->one.time.v * (double)c->count);
        rg_table_real(t, c->one.algbw.v);
        rg_table_real(t, c->one.busbw.v);
        rg_table_text(t, rg_coll_algorithm_name(c->one.algorithm));
        rg_table_text(t, rg_coll_protocol_name(c->one.protocol));
        rg_table_text(t, rg_coll_limit_name(c->one.limit));
    }
}

rg_status rg_coll_workload(rg_arena *arena, const char *path, const rg_setup *setup,
                           const rg_coll_context *links, const rg_coll_query *base, int64_t ranks,
                           rg_report *report, rg_err *err)
{
    rg_workload *w;
    rg_workload_result r;
    const rg_peak *peak = rg_accel_peak(setup->accel, RG_BF16);
    rg_workload_setup with = {
        .base = *base,
        .ranks = ranks,
        .flops = RG_FPS(peak == NULL ? NAN : peak->rate.value),
        .memory = RG_BPS(rg_accel_level_bandwidth(setup->accel, rg_accel_memory(setup->accel)))};
    RG_TRY(rg_workload_load(arena, path, &w, err));
    RG_TRY(rg_report_input(report, "workload", path, err));
    RG_TRY(rg_workload_run(arena, links, w, &with, &r, err));
    if (r.estimated_nodes > 0 && peak == NULL)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%lld nodes give flops and no time, and '%s' has no bf16 peak",
                       (long long)r.estimated_nodes, setup->accel->name);
    put_answer(report, w, &r);
    put_points(report, &r);
    for (int i = 0; i < w->note_count; i++)
        rg_report_assume(report, "%s: %s", path, w->notes[i]);
    if (r.compute_nodes > r.estimated_nodes)
        rg_report_assume(report,
                         "compute times are the file's, whatever device they were taken on");
    if (r.estimated_nodes > 0)
        rg_report_assume(report,
                         "nodes with flops and no time take the bare roofline of '%s' in "
                         "bf16 (%lld)",
                         setup->accel->name, (long long)r.estimated_nodes);
    if (w->ranks == 0)
        rg_report_assume(report, "ranks: %lld; the file does not say", (long long)ranks);
    rg_report_assume(report, "host, device and network do one thing each at a time: not validated");
    return RG_OK;
}

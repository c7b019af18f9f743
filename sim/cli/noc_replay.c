/* cli/noc_replay.c: a reference curve and what ridge makes of it, side by side. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "cli/noc.h"
#include "noc/replay.h"

static void add_columns(rg_table *t)
{
    rg_table_column(t, "offered_flits", "offered", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "saturated", "saturated", RG_CELL_BOOL, RG_DIM_NONE, false);
    rg_table_column(t, "reference_stable", "ref stable", RG_CELL_BOOL, RG_DIM_NONE, false);
    rg_table_column(t, "packet_latency_cycles", "latency", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "reference_packet_latency_cycles", "reference", RG_CELL_REAL, RG_DIM_NONE,
                    false);
    rg_table_column(t, "latency_deviation_ratio", "deviation", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "hops", "hops", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "accepted_flits", "accepted", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "reference_accepted_flits", "reference", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "accepted_deviation_ratio", "deviation", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "load_share", "of saturation", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "verdict", "verdict", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "network_latency_cycles", "network", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "reference_network_latency_cycles", "reference", RG_CELL_REAL, RG_DIM_NONE,
                    true);
    rg_table_column(t, "latency_deviation_cycles", "deviation", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "reference_hops", "reference", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "packet_latency_p99_cycles", "p99", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "packet_latency_half_width_cycles", "+-", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "accepted_flits_least_node", "least", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "reference_accepted_flits_least_node", "ref least", RG_CELL_REAL,
                    RG_DIM_NONE, true);
    rg_table_column(t, "accepted_flits_most_node", "most", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "reference_accepted_flits_most_node", "ref most", RG_CELL_REAL, RG_DIM_NONE,
                    true);
    rg_table_column(t, "accepted_packets", "packets", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "fragmentation_cycles", "fragmentation", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "converged", "converged", RG_CELL_BOOL, RG_DIM_NONE, true);
    rg_table_column(t, "cycles", "cycles", RG_CELL_INT, RG_DIM_NONE, true);
}

static void add_row(rg_table *t, const rg_noc_replay *replay, const rg_noc_replay_row *row)
{
    const rg_noc_result *got = &row->result;
    const rg_noc_reference *ref = &row->reference;
    const rg_noc_deviation d = rg_noc_replay_compare(replay, row);
    rg_table_real(t, ref->offered_flits);
    rg_table_bool(t, got->saturated);
    rg_table_bool(t, ref->stable);
    rg_table_real(t, got->packet_latency.mean);
    rg_table_real(t, ref->stable ? ref->packet_latency : NAN);
    rg_table_real(t, d.latency_ratio);
    rg_table_real(t, got->hops);
    rg_table_real(t, got->accepted);
    rg_table_real(t, ref->accepted);
    rg_table_real(t, d.accepted_ratio);
    rg_table_real(t, d.load_share);
    rg_table_text(t, !d.judged ? "not judged" : d.within ? "within" : "OUTSIDE");
    rg_table_real(t, got->network_latency.mean);
    rg_table_real(t, ref->stable ? ref->network_latency : NAN);
    rg_table_real(t, d.latency_cycles);
    rg_table_real(t, ref->hops);
    rg_table_real(t, got->packet_latency.p99);
    rg_table_real(t, got->packet_half_width);
    rg_table_real(t, got->accepted_least);
    rg_table_real(t, ref->accepted_least);
    rg_table_real(t, got->accepted_most);
    rg_table_real(t, ref->accepted_most);
    rg_table_real(t, got->accepted_packets);
    rg_table_real(t, got->fragmentation);
    rg_table_bool(t, got->converged);
    rg_table_int(t, got->cycles);
}

rg_status rg_noc_command_replay(rg_arena *arena, const rg_args *args, rg_report *report,
                                rg_err *err)
{
    rg_noc_replay *replay;
    int64_t seeds = 0;
    int judged = 0, within = 0;
    if (rg_arg_given(args, "seeds"))
        RG_TRY(rg_arg_int(args, "seeds", 1, 1024, &seeds, err));
    RG_TRY(rg_noc_replay_load(arena, rg_arg_text(args, "replay"), rg_arg_text(args, "topology"),
                              &replay, err));
    RG_TRY(rg_report_input(report, "curve", replay->path, err));
    if (replay->topology_path != NULL)
        RG_TRY(rg_report_input(report, "topology", replay->topology_path, err));
    RG_TRY(rg_noc_replay_run(arena, replay, (int)seeds, rg_arg_flag(args, "check"), err));
    for (int i = 0; i < replay->count; i++) {
        const rg_noc_deviation d = rg_noc_replay_compare(replay, &replay->rows[i]);
        judged += d.judged;
        within += d.judged && d.within;
    }
    rg_report_line(report,
                   "%d of %d judged rows are within tolerance (latency 2 %% or 0.5 cycles "
                   "up to 70 %% of saturation, 8 %% up to 90 %%; accepted load 3 %% past "
                   "it).",
                   within, judged);
    rg_report_int(report, "rows_judged", "rows judged", judged);
    rg_report_int(report, "rows_within", "rows within tolerance", within);
    rg_report_figure(report, "reference_saturation_flits",
                     "saturation of the reference, flits per injecting node and cycle",
                     replay->saturation, RG_DIM_NONE);
    if (!replay->saturation_bracketed)
        rg_report_assume(report, "no load of the reference is unstable: its highest load stands "
                                 "for saturation");
    if (seeds == 0)
        rg_report_assume(report, "each row sees the packets that BookSim 2 draws from the row's "
                                 "seed; --seeds N averages over N runs of ridge's own drawing");
    for (int i = 0; i < replay->assumption_count; i++)
        rg_report_assume(report, "%s", replay->assumptions[i]);
    rg_report_assume(report, "latency deviations are taken at the sampled number of hops: the "
                             "reference is moved by the cycles per hop times the difference in "
                             "hops");
    rg_table *table = rg_report_table(report, "points", "Reference and result");
    add_columns(table);
    for (int i = 0; i < replay->count; i++)
        add_row(table, replay, &replay->rows[i]);
    RG_TRY(rg_arg_write(args, report, "points", err));
    if (rg_arg_flag(args, "strict") && within < judged)
        return rg_fail(err, RG_ERR_NO, RG_NOWHERE, "%d of %d judged rows are outside tolerance",
                       judged - within, judged);
    return RG_OK;
}

/* cli/noc_feed.c: bandwidths that follow from an accelerator's network, beside those of its file.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "cli/noc.h"
#include "noc/closed.h"

static void add_row(rg_table *t, const char *what, double derived, double stated,
                    const char *source)
{
    rg_table_text(t, what);
    rg_table_real(t, derived);
    rg_table_real(t, stated > 0.0 ? stated : NAN);
    rg_table_real(t, stated > 0.0 ? derived / stated : NAN);
    rg_table_text(t, stated > 0.0 && source != NULL ? source : "");
}

static double known(const rg_figure *figure)
{
    return figure->known ? figure->value : 0.0;
}

/* Stated bandwidth of a level: its own, or bytes per clock times the clock. */
static double stated_rate(const rg_accel *accel, const rg_memory_level *level)
{
    if (level == NULL)
        return 0.0;
    if (level->bandwidth.known)
        return level->bandwidth.value;
    const double clock = level->clock.known ? level->clock.value : known(&accel->boost_clock);
    return known(&level->bytes_per_clock) * clock;
}

static const char *stated_source(const rg_memory_level *level)
{
    if (level == NULL)
        return NULL;
    return level->bandwidth.known ? level->bandwidth.source : level->bytes_per_clock.source;
}

rg_status rg_noc_command_feed(rg_arena *arena, const rg_args *args, rg_report *report, rg_err *err)
{
    rg_accel *accel;
    rg_noc_feed feed;
    RG_TRY(rg_accel_load(arena, rg_arg_text(args, "hw"), &accel, err));
    RG_TRY(rg_report_input(report, "hardware", accel->path, err));
    RG_TRY(rg_noc_feed_of(arena, accel, &feed, err));
    RG_TRY(rg_report_input(report, "network", feed.design->path, err));
    const rg_memory_level *l2 = rg_accel_level(accel, "l2");
    const rg_memory_level *memory = rg_accel_memory(accel);
    rg_report_line(report,
                   "%s: what its on-chip network (%s) carries, without contention at the "
                   "caches and the memory themselves",
                   accel->title, feed.design->title);
    rg_table *t = rg_report_table(report, "feeds", "Feeds");
    rg_table_column(t, "what", "what", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "derived_bytes_per_s", "by the network", RG_CELL_REAL, RG_DIM_BYTES_PER_S,
                    false);
    rg_table_column(t, "stated_bytes_per_s", "by the file", RG_CELL_REAL, RG_DIM_BYTES_PER_S,
                    false);
    rg_table_column(t, "derived_to_stated_ratio", "ratio", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "stated_source", "source", RG_CELL_TEXT, RG_DIM_NONE, true);
    add_row(t, "L2 to units, bound", feed.l2_bound.v, stated_rate(accel, l2), stated_source(l2));
    add_row(t, "L2 to units, sustained", feed.l2_sustained.v,
            l2 != NULL ? known(&l2->measured_bandwidth) : 0.0,
            l2 != NULL ? l2->measured_bandwidth.source : NULL);
    add_row(t, "memory to L2, bound", feed.memory_bound.v, stated_rate(accel, memory),
            stated_source(memory));
    if (feed.link_bound.v > 0.0)
        add_row(t, "links to L2, bound", feed.link_bound.v,
                accel->port_count > 0 ? known(&accel->ports[0].rate_per_direction) : 0.0,
                accel->port_count > 0 ? accel->ports[0].rate_per_direction.source : NULL);
    rg_report_figure(report, "l2_round_trip_s", "L2 round trip on wires and routers",
                     feed.l2_round_trip.v, RG_DIM_SECONDS);
    for (int i = 0; i < feed.design->assumed_count; i++)
        rg_report_assume(report, "%s", feed.design->assumed[i]);
    return rg_arg_write(args, report, "feeds", err);
}

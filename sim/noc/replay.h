/* noc/replay.h: reference curves: one row per offered load, every parameter a column.
 *
 * Reads core, noc/sim.h. Each row becomes a configuration and a protocol of its own; the result is
 * set beside the row.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_REPLAY_H
#define RG_NOC_REPLAY_H

#include "noc/sim.h"

typedef struct rg_noc_reference {
    double offered_flits; /* per injecting node and cycle */
    bool stable;
    double packet_latency, network_latency, hops; /* NaN where the row gives none */
    double accepted, accepted_least, accepted_most;
} rg_noc_reference;

typedef struct rg_noc_replay_row {
    rg_pos pos;
    rg_noc_config config;
    rg_noc_protocol protocol;
    int injecting_nodes;
    double cycles_per_hop; /* of an empty network */
    rg_noc_reference reference;
    rg_noc_result result; /* of rg_noc_replay_run */
} rg_noc_replay_row;

typedef struct rg_noc_replay {
    const char *path;
    const char *topology_path; /* file of a free graph, NULL for regular topologies */
    rg_noc_replay_row *rows;
    int count;
    double saturation; /* offered flits per injecting node: what the reference lets through */
    bool saturation_bracketed; /* the reference has a load that is not stable */
    const char *assumptions[8];
    int assumption_count;
} rg_noc_replay;

/** Read a curve. topology replaces the file that column "network" names, which is otherwise looked
 * for beside the curve and one folder up. Errors: RG_ERR_INPUT names the column's place. */
rg_status rg_noc_replay_load(rg_arena *arena, const char *path, const char *topology,
                             rg_noc_replay **out, rg_err *err);

/** Fills saturation and saturation_bracketed from the rows' references; the load does it. */
void rg_noc_replay_find_saturation(rg_noc_replay *replay);

/** Run every row on all cores; results do not depend on how many there are. seeds 0: once, in
 * lockstep with the reference: the packets that BookSim draws from the row's seed. Else the average
 * over `seeds` runs with random numbers of ridge's own. */
rg_status rg_noc_replay_run(rg_arena *arena, rg_noc_replay *replay, int seeds, bool check,
                            rg_err *err);

/** How a row compares. Latency is compared after the sampled number of hops is taken out: the
 * reference plus cycles_per_hop times the difference in hops. NaN where there is nothing to
 * compare. */
typedef struct rg_noc_deviation {
    double latency_cycles, latency_ratio; /* result - reference, and relative */
    double hops_ratio, accepted_ratio;
    double load_share;   /* of saturation */
    bool within, judged; /* by the tolerances below */
} rg_noc_deviation;

/** Tolerances: latency 2 % or 0.5 cycles up to 70 % of saturation, 8 % up to 90 %; accepted load
 * 3 % where the reference is not stable. */
rg_noc_deviation rg_noc_replay_compare(const rg_noc_replay *replay, const rg_noc_replay_row *row);

#endif

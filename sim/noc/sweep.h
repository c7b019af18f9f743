/* noc/sweep.h: many loads of one network, and the load at which it saturates.
 *
 * Reads core, noc/sim.h. Loads are in flits per injecting node and cycle; with requests and replies
 * they count both directions together; with several classes a load multiplies the share of each.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_SWEEP_H
#define RG_NOC_SWEEP_H

#include "noc/sim.h"

/** Flits that one packet of the class stands for: its own, and its reply's. */
double rg_noc_class_flits(const rg_noc_class *traffic);

/** share of the class, 1 when it gives none. */
double rg_noc_class_share(const rg_noc_class *traffic);
/** Flits per cycle that all nodes together offer at load 1. One class without factors: the number
 * of nodes that inject. */
double rg_noc_offered(const rg_noc_class *classes, int count, int nodes);

/** Each load run with `seeds` seeds, all on all cores; results in the order of the loads. detail:
 * with per-link and per-node arrays. */
rg_status rg_noc_sweep(rg_arena *arena, const rg_noc_config *config,
                       const rg_noc_protocol *protocol, const double *loads, int count, int seeds,
                       bool detail, rg_noc_result *out, rg_err *err);

typedef struct rg_noc_saturation {
    double stable;   /* highest load that was found to be steady */
    double unstable; /* lowest load that was found not to be; infinite when none was */
    double accepted; /* flits per injecting node and cycle that get through at `unstable` */
    int runs;
} rg_noc_saturation;

/** Bisection between 0 and highest until the bracket is within tolerance (relative). */
rg_status rg_noc_find_saturation(rg_arena *arena, const rg_noc_config *config,
                                 const rg_noc_protocol *protocol, double highest, double tolerance,
                                 int seeds, rg_noc_saturation *out, rg_err *err);

#endif

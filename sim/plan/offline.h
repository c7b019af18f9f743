/* plan/offline.h: which arrangement does a heap of requests, all there at once, at least cost?
 *
 * Reads plan/search.h. Throughput of offline benchmarks: nobody waits for an answer, so every
 * candidate runs as one replica (one proportion of pools) until all is done; more replicas do as
 * much more. A limit on time per token may be kept.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_OFFLINE_H
#define RG_PLAN_OFFLINE_H

#include "plan/search.h"

typedef struct rg_offline {
    double output_tokens_per_s, total_tokens_per_s, requests_per_s; /* of the replica */
    double devices;                                                 /* number */
    double goal_per_token; /* dollars, device seconds or joules per output token: made least */
    double bound_ratio; /* time that roofline and memory prove to be needed, over the time taken */
} rg_offline;

/** Simulate every candidate that may be the best of its machine: it is left out when goal x proved
 * least time (rg_least_makespan) exceeds what another on the same machine took. Fills outcomes,
 * winner and order of the run like rg_plan_search. Errors: those of a simulation. */
rg_status rg_plan_offline_search(rg_arena *arena, rg_plan_run *run, rg_err *err);

/** Figures of a candidate that was simulated. */
rg_status rg_plan_offline_of(rg_arena *arena, const rg_plan_run *run, int candidate,
                             rg_offline *out, rg_err *err);

#endif

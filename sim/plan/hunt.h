/* plan/hunt.h: the least count of replicas of one candidate that keeps the limits.
 *
 * Reads plan/search.h, of which it is a part.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_HUNT_H
#define RG_PLAN_HUNT_H

#include "plan/search.h"

typedef struct rg_hunt {
    const rg_plan_run *run;
    rg_worker *worker;
    const rg_candidate *candidate;
    rg_outcome *out;     /* with the bound; filled */
    double best;         /* goal of the best so far, INFINITY in an exhaustive search */
    rg_plan_run *verify; /* not NULL: each count is tried on several draws (plan/verify.h) */
    int64_t start;       /* count to begin with, 0: by averages */
    bool wide;           /* begin with the most replicas that could still win */
    int64_t most;        /* replicas that caps allow */
    int64_t fails_at;    /* greatest count known to fail */
    int64_t works_at;    /* least count known to work, 0: none */
} rg_hunt;

/** Fill the outcome: found with its least count, failed, or pruned when the least count that is
 * still possible costs more than the best. Errors: those of a simulation. */
rg_status rg_hunt_settle(rg_hunt *hunt, rg_err *err);

#endif

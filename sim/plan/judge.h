/* plan/judge.h: latencies of a simulation held against the limits of a plan, with what chance
 * leaves open.
 *
 * Reads plan/trial.h. Requests in a queue are not independent, so order statistics over them would
 * promise far too much. The interval is that of Student's t over parts that nearly are: consecutive
 * batches of one run (batch means; Law, Simulation Modeling and Analysis, 5th edition, section
 * 9.5.3), or whole runs with seeds of their own (replication and deletion, section 9.5.2).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_JUDGE_H
#define RG_PLAN_JUDGE_H

#include "plan/trial.h"

/** Latencies behind the warm-up, in order of arrival; NaN: never served, or no second token. */
typedef struct rg_judged {
    int64_t warm_up, count;          /* requests left out, requests judged */
    double *values[RG_PLAN_METRICS]; /* [count], s */
} rg_judged;

rg_status rg_judged_start(rg_arena *arena, int64_t warm_up, int64_t requests, rg_judged *out,
                          rg_err *err);
/** An rg_observer.served; context is the rg_judged. */
void rg_judged_add(void *context, const rg_served *served);

/** Fill in latencies, values at the limits and the verdict; refused is there already. */
void rg_judge(const rg_plan *plan, rg_judged *judged, rg_trial *trial);

/** Mean of runs of the same fleet with different seeds: latencies and values at the limits are
 * means, the interval is that across the runs, load and steps are those of the first run. ok: the
 * whole interval is within the limits. 2 runs or more. */
void rg_judge_runs(const rg_plan *plan, rg_trial *runs /* [count] */, int count, rg_trial *out);

#endif

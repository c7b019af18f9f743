/* plan/trial.h: one simulation of a candidate with so many replicas, held against the limits.
 *
 * Reads plan/space.h, plan/traffic.h, serve. Each thread has a worker of its own, with the step
 * contexts that it has prepared; what a trial gives depends on nothing but its arguments.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_TRIAL_H
#define RG_PLAN_TRIAL_H

#include "plan/space.h"
#include "plan/traffic.h"

/** Latencies of a trial at the limits' quantiles; index by limit of the plan. */
typedef struct rg_trial {
    int64_t replicas, prefill; /* all, and those of the prefill pool */
    int64_t simulated;         /* of all, those that were simulated with their share of traffic */
    int runs;                  /* that this is the mean of; see plan/verify.h */
    bool ok;                   /* every limit is met */
    int worst;                 /* limit with the greatest value over limit */
    double excess;             /* that ratio; 1 or less when ok */
    double value[RG_PLAN_LIMITS];
    double low[RG_PLAN_LIMITS], high[RG_PLAN_LIMITS]; /* 95 % interval; NaN: too few requests */
    bool sure;         /* ok at the upper, or not ok at the lower ends of the intervals */
    int64_t finished;  /* requests that were served */
    int64_t refused;   /* requests that no replica's memory, or no step, can ever hold */
    int64_t over_step; /* of these, prompts longer than a step */
    double ttft_mean, ttft_p50, ttft_p95, ttft_p99;
    double tpot_mean, tpot_p50, tpot_p95, tpot_p99;
    double e2e_mean, e2e_p50, e2e_p95, e2e_p99;
    double makespan_s, busy_s; /* busy: of all replicas together */
    double replica_s;          /* replicas times makespan */
    int64_t steps, most_running, preemptions, output_tokens, prompt_tokens, prefill_tokens;
    double mean_batch, kv_use_ratio, prefix_hit_ratio;
} rg_trial;

typedef struct rg_worker rg_worker;
rg_status rg_worker_new(const rg_space *space, rg_worker **out, rg_err *err);
void rg_worker_free(rg_worker *worker);

/** Replicas that stand for a fleet where traffic is too heavy to simulate it whole
 * (coverage_ratio): as if they had a router of their own. Made-up arrivals are Poisson, and a
 * random share of a Poisson process is one, so the part sees the fleet's traffic at its own rate;
 * what it lacks is that a router over all replicas could send a request past its part, so queues
 * are, if anything, longer. The bound stands: with m of R replicas and arrivals over R/m times the
 * span, the work fits m (span R/m + T) <= R (span + T). */
enum { RG_PLAN_LEAST_PART = 8 };
int64_t rg_trial_part(const rg_plan_requests *requests, const rg_candidate *candidate,
                      int64_t replicas);

/** How a trial departs from the plan's own traffic. */
typedef struct rg_trial_how {
    bool one_by_one; /* every request alone on one idle replica: what no fleet can beat */
    double speed_up; /* of arrivals; 1 */
} rg_trial_how;

rg_status rg_trial_run(rg_worker *worker, const rg_candidate *candidate,
                       const rg_plan_requests *requests, int64_t replicas, const rg_trial_how *how,
                       rg_trial *out, rg_err *err);

/** Step context of an arrangement, prepared when first asked for. */
rg_status rg_worker_step(rg_worker *worker, const rg_candidate *candidate, rg_step_context **out,
                         rg_err *err);

/** Replicas by averages, where a search may begin: time of a mean request on a replica that decodes
 * as many at once as memory, engine and the limit on TPOT allow. Says nothing about queues. */
rg_status rg_trial_guess(rg_worker *worker, const rg_candidate *candidate,
                         const rg_plan_requests *requests, int64_t *replicas, rg_err *err);

/** What one sequence alone gets: time of a decode step behind a mean prompt. */
rg_status rg_trial_alone(rg_worker *worker, const rg_candidate *candidate, double context_tokens,
                         int64_t batch, double *step_s, rg_err *err);

#endif

/* plan/after.h: what one asks of an answer: what it costs, how far it carries, what it hangs on.
 *
 * Reads plan/search.h, hw/power.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_AFTER_H
#define RG_PLAN_AFTER_H

#include "plan/search.h"

/** Money, energy and carbon of a candidate under a trial's load. NaN: unknown. */
typedef struct rg_plan_bill {
    int64_t devices;
    double usd_per_hour;
    /* all of the cost over tokens of one kind, and over both */
    double usd_per_million_input, usd_per_million_output, usd_per_million_tokens;
    double device_watts; /* mean of one device under this load */
    double watts;        /* of all devices with hosts and the place's overhead */
    double joules_per_output_token;
    double carbon_g_per_hour, carbon_g_per_million_output;
    double electricity_usd_per_hour;
    double compute_ratio, memory_ratio; /* use of peak and bandwidth, mean over the run */
} rg_plan_bill;

/** Requests a second that a fleet served, by those of the part that was simulated. */
double rg_plan_served_per_s(const rg_trial *trial);

/** Power by use of arithmetic and memory (rg_accel_power): flops of the tokens computed and bytes
 * of the steps taken over the run. Errors: none; what is unknown is NaN. */
void rg_plan_bill_of(rg_arena *arena, const rg_plan_run *run, int candidate, const rg_trial *trial,
                     rg_plan_bill *out);

/** Greatest arrival rate (or number of users) that so many replicas of the winner carry within the
 * limits, by bisection to 2 % on the plan's own requests. */
rg_status rg_plan_saturation(rg_plan_run *run, double *load_ratio, rg_err *err);

typedef struct rg_plan_point {
    int candidate;
    rg_trial trial;
    double goal; /* value of what the plan is after: USD/h, devices or W */ /* of the plan: $/h,
                                                                               devices or W */
    bool on_frontier; /* no other point costs no more and has a shorter e2e p95 */
} rg_plan_point;

/** Cost against latency: the winner and the best of other machines, with fewer and more replicas
 * than needed. Points in order of cost. */
rg_status rg_plan_frontier(rg_arena *arena, rg_plan_run *run, rg_plan_point **out, int *count,
                           rg_err *err);

typedef struct rg_plan_swing {
    const char *what, *change; /* "bandwidth", "-20 %" */
    bool known;                /* false: reason says why it was not asked */
    const char *reason;
    bool feasible;
    int candidate; /* of the base plan */
    int64_t replicas;
    double goal, goal_ratio; /* over the base answer's */
    bool other_winner;
} rg_plan_swing;

/** The answer with one thing 20 % smaller and 20 % greater, among the winner and the best rivals
 * (one a machine, RG_PLAN_RIVALS at most). Bandwidth and price are those of the winner's device. */
enum { RG_PLAN_RIVALS = 4 };
rg_status rg_plan_sensitivity(rg_arena *arena, rg_plan_run *run, rg_plan_swing **out, int *count,
                              rg_err *err);

#endif

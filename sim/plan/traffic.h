/* plan/traffic.h: the requests of a plan, kept once and handed to every simulation alike.
 *
 * Reads trace/req.h. Simulations that are compared see the same requests at the same times (common
 * random numbers), so that their difference is that of the arrangements.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_TRAFFIC_H
#define RG_PLAN_TRAFFIC_H

#include "plan/plan.h"

/** A change of the traffic, for asking how much the answer depends on it; all 1: none. */
typedef struct rg_traffic_change {
    double rate, output, system; /* factors on arrivals, answers' lengths, common prefix */
} rg_traffic_change;

/** Sums over requests that a lower bound needs: entry k is the sum of the k least values, k = 0 ..
 * count. */
typedef struct rg_least_sums {
    const double *fresh;        /* prompt tokens that no other request can leave in a cache */
    const double *tokens;       /* fresh + outputs - 1: tokens that go through the model */
    const double *decodes;      /* outputs - 1 */
    const double *decode_cache; /* (outputs - 1) x prompt tokens: cache read by decoding */
} rg_least_sums;

typedef struct rg_plan_requests {
    rg_request *items; /* in order of arrival; times are 0 in a closed loop */
    int64_t count;
    int64_t warm_up; /* of them, that come first and find the fleet emptier than it will be: they
                        are served, and left out of the latencies */
    uint64_t seed;   /* that they were drawn with, and that a simulation of them draws with */
    int draws;       /* as good ones can be had with other seeds, at most; 1: these are the ones */
    int64_t users;   /* closed loop; 0: open */
    double think_s;
    bool shared;           /* some requests begin alike */
    double span_s;         /* first to last arrival, open loop */
    double judged_span_s;  /* first to last arrival behind the warm-up */
    double rate_per_s;     /* (count - 1) / span; 0 in a closed loop or when all come at once */
    double coverage_ratio; /* of the traffic that a fleet should see, what the requests make up: 1,
                              or less where it is so heavy that a part of a fleet is simulated */
    double mean_prompt, mean_output;
    int64_t least_prompt, most_prompt, most_output;
    int64_t over_long; /* left out, as the model cannot take them */
    rg_least_sums least;
    const rg_request_facts *facts; /* of the trace, NULL when made up */
} rg_plan_requests;

/** Runs of the winner with other seeds, at most; see plan/verify.h. */
enum { RG_PLAN_DRAWS = 16 };

/** Make or read them; draw 0 is the plan's own seed, others are independent of it,
 * and longer. Errors: those of
 * the trace, RG_ERR_INPUT when none is left. */
rg_status rg_plan_requests_make(rg_arena *arena, const rg_plan *plan, int64_t max_model_tokens,
                                const rg_traffic_change *change, int draw, rg_plan_requests *out,
                                rg_err *err);

/** A stream over them for one simulation. one_by_one: each waits for the one before to end, so that
 * nothing disturbs it. speed-up divides arrival times, multiplies users. */
rg_status rg_plan_requests_open(rg_arena *arena, const rg_plan_requests *requests, bool one_by_one,
                                double speed_up, rg_requests **out, rg_err *err);

#endif

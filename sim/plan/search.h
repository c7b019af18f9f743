/* plan/search.h: the least costly candidate that keeps every limit, and why the others lost.
 *
 * Reads plan/bound.h, plan/trial.h. Candidates come in the order of the cost that the bound proves;
 * each is simulated with more and with fewer replicas until the least count that keeps the limits
 * lies between one that fails and one that does. A candidate is given up when the least count that
 * is still possible costs more than the best so far, which changes no answer: its own search would
 * end no lower. Exhaustive search gives up none and must find the same winner.
 *
 * Among more than RG_PLAN_FEW combinations a candidate that averages make out to be dearer than the
 * best is first tried with the most replicas that could still win, and given up when they fail.
 * That takes for granted that fewer replicas do not keep limits that more of them break, which
 * holds but for chance in a percentile; the report says so. Of 300 random grids (test_search.c,
 * with RIDGE_RANDOM_GRIDS=300) all had the winner and the count that exhaustive search finds.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_SEARCH_H
#define RG_PLAN_SEARCH_H

#include "plan/bound.h"
#include "plan/trial.h"

typedef enum rg_plan_state {
    RG_PLAN_UNFIT,  /* weights and one block of cache do not fit */
    RG_PLAN_PRUNED, /* proved or found to cost more than another */
    RG_PLAN_FAILED, /* no count within the caps keeps the limits */
    RG_PLAN_FOUND,
} rg_plan_state;

typedef enum rg_lost {
    RG_LOST_NOT, /* the winner */
    RG_LOST_MEMORY,
    RG_LOST_TTFT,
    RG_LOST_TPOT,
    RG_LOST_E2E,
    RG_LOST_PRICE,      /* costs more: dollars, or devices or watts where the goal is those */
    RG_LOST_DEVICES,    /* would need more devices than are allowed */
    RG_LOST_POWER,      /* would need more watts than are allowed */
    RG_LOST_IMPOSSIBLE, /* the machine lacks what it takes: a type, a figure, a link */
} rg_lost;
const char *rg_lost_name(rg_lost lost);

typedef struct rg_outcome {
    rg_plan_state state;
    rg_plan_bound bound;
    int64_t replicas; /* found: the least that keep the limits; else the least not ruled out */
    bool simulated, has_below;
    bool verified;     /* on several draws of the traffic; see plan/verify.h */
    rg_trial at;       /* found: with that many; else the trial that came nearest */
    rg_trial below;    /* the greatest count below that was tried and failed */
    bool unattainable; /* a request alone on an idle replica breaks the limit already */
    bool impossible;   /* the machine lacks something; its reason says what */
    bool by_power;     /* the cap that binds is that on power */
    int trials;
    double cost; /* what is made least: goal of the replicas; offline, goal x seconds that they
                    take, or must take where they were ruled out */
    rg_lost lost;
    double by; /* lost by this ratio over the winner or the limit, 0.2 = 20 % */
    bool tie;  /* within the confidence of the simulation the winner may be this one */
} rg_outcome;

typedef struct rg_plan_run {
    const rg_plan *plan;
    rg_space space;
    rg_plan_requests requests;
    rg_plan_requests draws[RG_PLAN_DRAWS]; /* with other seeds, made when first asked for */
    int draw_count;
    rg_arena *arena;
    rg_traffic_change change;
    int64_t longest_tokens; /* that the model takes */
    rg_outcome *outcomes;   /* [space.candidate_count] */
    int *order;             /* candidates as they lie: found by goal, then failed, pruned, unfit */
    int winner;             /* -1: none */
    int nearest;            /* without a winner: the candidate that comes nearest; -1: none fits */
    int64_t trials;
    int64_t screened;    /* candidates whose bound was worked out */
    int64_t settled;     /* of these, candidates that were simulated or ruled out since */
    bool premise_broken; /* a simulated step beat its roofline: all were simulated instead */
    /* called now and then while it searches, from one thread; may be NULL */
    void (*progress)(void *context, const struct rg_plan_run *run);
    void *progress_context;
    rg_worker **workers;
    int worker_count;
} rg_plan_run;

/** Make the space and the requests. changes and traffic are for asking what if; usually NULL and
 * all 1. */
rg_status rg_plan_prepare(rg_arena *arena, const rg_plan *plan, const rg_changes *changes,
                          const rg_traffic_change *traffic, rg_plan_run *out, rg_err *err);
/** Search. Same result for any number of threads. */
rg_status rg_plan_search(rg_arena *arena, rg_plan_run *run, rg_err *err);
/** Search among some candidates only, for asking how an answer changes. */
rg_status rg_plan_search_among(rg_arena *arena, rg_plan_run *run, const int *candidates, int count,
                               rg_err *err);
void rg_plan_release(rg_plan_run *run);

/** Whether a beats b (-1: none): the less costly; among equals the one with more room below its
 * limits, then the earlier. */
bool rg_plan_better(const rg_plan_run *run, int a, int b);

void rg_plan_show_progress(rg_plan_run *run, int64_t settled);

/** The machine lacks a figure or a link that a candidate needs: it is settled so. */
void rg_plan_cannot_be(rg_plan_run *run, int candidate, const rg_err *why);

/** Goal of the winner, INFINITY when there is none. */
double rg_plan_goal_of_winner(const rg_plan_run *run);

/** Screen alone: bounds of all candidates; what --exhaustive and the search begin with. */
rg_status rg_plan_screen(rg_arena *arena, rg_plan_run *run, rg_err *err);

#endif

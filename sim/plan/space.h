/* plan/space.h: everything that a plan may choose from: machines, arrangements, candidates.
 *
 * Reads plan/plan.h, serve/deploy.h. A machine is a device in its node; an arrangement is a model
 * with number types and a split over the devices of one replica; a candidate adds the engine's
 * limits and pools. Candidates share arrangements, arrangements share machines.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_SPACE_H
#define RG_PLAN_SPACE_H

#include "plan/plan.h"
#include "plan/traffic.h"
#include "serve/deploy.h"

typedef struct rg_machine {
    const char *name; /* as the plan names it */
    const rg_cluster *cluster;
    double usd_per_hour;                  /* of one device; NaN: no price is known */
    const char *provider, *date, *source; /* of the price */
    double watts;                         /* of one device at TDP with its share of the host */
    bool decodes, prefills;               /* may hold the replicas; may hold a prefill pool */
    int64_t impossible;                   /* arrangements that the model or the node rules out */
    char reason[RG_ERR_TEXT_SIZE];        /* of the first of them */
    char lacks[RG_ERR_TEXT_SIZE];         /* what no arrangement can do without and it has not */
} rg_machine;

typedef struct rg_arrangement {
    int machine;
    const char *weight_type, *kv_type; /* as asked; NULL: the checkpoint's */
    rg_formats formats;
    rg_parallel parallel;
    int64_t devices;        /* of one replica */
    bool decodes, prefills; /* may serve whole requests or decode; may be a prefill pool */
    unsigned expanded;      /* weights that the device must expand, as rg_formats_expand says */
} rg_arrangement;

/** Replicas that compute prompts alone, where pools are split. */
typedef struct rg_prefill_pool {
    int arrangement;
    rg_engine_rules rules;
    rg_capacity capacity;
} rg_prefill_pool;

typedef struct rg_candidate {
    int arrangement, engine;
    rg_engine_rules rules; /* with the KV blocks of a replica */
    rg_capacity capacity;
    rg_spec_kind speculate; /* what writes drafts; none with drafts: a share of a decode step */
    rg_plan_pools pools;
    rg_prefill_pool prefill; /* with pools; else the same as above */
    bool replica_fits;       /* weights, activations and one block at least */
    bool fits;               /* weights, activations and one block at least, in both pools */
} rg_candidate;

typedef struct rg_space {
    const rg_plan *plan;
    const rg_model *model;
    rg_machine *machines;
    int machine_count;
    rg_engine engines[RG_POLICY_COUNT]; /* one a scheduler of the plan */
    rg_arrangement *arrangements;
    int arrangement_count, arrangement_room;
    rg_candidate *candidates;
    int candidate_count, candidate_room;
    rg_plan_goal goal;
    bool goal_defaulted; /* no price is known: devices are counted */
} rg_space;

/** All of them, in the order of the plan's lists. Machines without a price are left out where
 * others have one and the goal is cost; their reason says so. Errors: unknown names, RG_ERR_MODEL
 * when nothing at all is possible. */
rg_status rg_space_make(rg_arena *arena, const rg_plan *plan, const rg_changes *changes,
                        rg_space *out, rg_err *err);

/** What so many replicas of a candidate are, the proportion of its pools kept. */
typedef struct rg_usage {
    int64_t prefill, others; /* replicas of the prefill pool (0: no pools), and the others */
    int64_t devices;
    double usd_per_hour; /* NaN: no price is known */
    double watts;        /* devices at TDP with their share of the host */
    double goal;         /* what the plan makes least */
} rg_usage;
rg_usage rg_candidate_usage(const rg_space *space, const rg_candidate *c, int64_t replicas);
double rg_candidate_goal(const rg_space *space, const rg_candidate *c, int64_t replicas);
/** 1, or 2 where pools are split. */
int64_t rg_candidate_least(const rg_candidate *c);
/** Replicas that caps on devices and power allow, 0 when not even the least; *by_power tells which
 * binds. */
int64_t rg_candidate_most(const rg_space *space, const rg_candidate *c, bool *by_power);
/** Replicas whose goal is at most this, 0 when not even the least. */
int64_t rg_candidate_within(const rg_space *space, const rg_candidate *c, double goal);
/** Memory of the pool that does not hold the model, else of the replicas. */
const rg_capacity *rg_candidate_tighter(const rg_candidate *c);
/** "tp4 pp2", with pools "tp4, 1:2 after tp2", into out. */
void rg_candidate_text(const rg_space *space, const rg_candidate *c, char *out, size_t size);

#endif

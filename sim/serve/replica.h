/* serve/replica.h: one replica: its requests, its KV memory, its steps. Private to serve/.
 *
 * Reads serve/serve.h. replica.c owns time, stay.c the memory and the place of a request; sched_*.c
 * decide what a step holds. One rule covers prefill, decode and resume: a request of n prompt
 * tokens with gs tokens generated or in flight has length L = n + gs and computes up to L; the step
 * that gets there emits a token.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_REPLICA_H
#define RG_SERVE_REPLICA_H

#include "serve/serve.h"

typedef struct rg_live rg_live;
struct rg_live {
    int32_t n, o;        /* prompt and output tokens */
    int32_t g, gs;       /* emitted; emitted or in flight */
    int32_t c;           /* computed, at schedule time */
    int32_t peak;        /* most ever computed */
    int32_t room;        /* tokens that its blocks hold */
    int32_t plain_until; /* decodes below that many computed tokens need no more than counting */
    uint8_t state;       /* rg_live_state */
    uint8_t finished;    /* last token is out */
    uint8_t arrived;     /* KV from elsewhere is here */
    uint8_t reserved;    /* holds a reservation that is not blocks */
    uint8_t shares;      /* its blocks get names as they are scheduled */
    uint8_t flying;      /* drafts: steps in flight that emit */
    double last_token_s;
    rg_kv_seq kv;
    int32_t priority;
    int32_t preemptions, recomputed, cached;
    int32_t swapped; /* blocks in host memory */
    int32_t tier_hits;
    double tier_s;               /* time to load them */
    int64_t extent, extent_size; /* contiguous reservation */
    int64_t order;               /* of arrival */
    double scheduled_s, last_chunk_s, first_token_s, ready_s;
    rg_request request; /* segments are its own copy */
    rg_segment *segments;
    int32_t segment_room;
    rg_live *holder; /* keeps its memory on the prefill side */
    int32_t source;  /* prefill replica that holds its KV until it is sent */
    rg_live *link;
    /* lane.c */
    int64_t batch_number; /* step that scheduled it last */
    int64_t lane_joined, lane_base, lane_due;
    rg_live *lane_next, *lane_previous;
    int32_t lane_bucket;
    uint8_t lane_state;
};

typedef enum rg_lane_state {
    RG_LANE_OUTSIDE,
    RG_LANE_MEMBER,
    RG_LANE_DRAINING, /* last token scheduled, not yet out */
    RG_LANE_DONE,
} rg_lane_state;

typedef enum rg_live_state {
    RG_LIVE_WAITING,
    RG_LIVE_RUNNING,
    RG_LIVE_PREEMPTED, /* waits again, nothing in memory */
    RG_LIVE_SWAPPED,   /* waits, blocks in host memory */
    RG_LIVE_REMOTE,    /* waits for KV from a prefill replica */
} rg_live_state;

/** Waiting requests: first come first served, or least (priority, arrival) first. */
typedef struct rg_queue {
    rg_live **items;
    int64_t room, head, count; /* ring of a power of two; a heap when by_priority */
    bool by_priority;
} rg_queue;

typedef struct rg_entry {
    rg_live *live;
    int32_t k;
    bool emits, chunk; /* chunk: of a prompt (or of a resume), not a decode */
} rg_entry;

/** What one step computes. */
typedef struct rg_batch rg_batch;
struct rg_batch {
    rg_entry *entries;
    rg_chunk *chunks;
    int count, chunk_count;
    int64_t decodes, tokens, prefill_tokens;
    double kv_sum, kv_max, recompute_tokens;
    double extra_s; /* swaps, loads */
    bool follows;   /* the replica was busy until it began */
    double start_s, end_s;
    int64_t lane_tick; /* of lane_count members of the lane, beside the entries */
    int32_t lane_count;
    int64_t composition; /* number of the set of running requests, when all decode; else 0 */
};

typedef struct rg_replica rg_replica;

/** A scheduler: fills replica->batch from running and waiting. */
typedef struct rg_policy {
    void (*build)(rg_replica *replica, rg_batch *batch);
    /* A request is done; NULL: its memory is freed at once. */
    void (*release)(rg_replica *replica, rg_live *live);
    bool skippable; /* running requests that all decode go on so until something changes */
    bool retracts;  /* a preempted request waits behind the others, its output forgotten */
} rg_policy;

typedef enum rg_role { RG_ROLE_BOTH, RG_ROLE_PREFILL, RG_ROLE_DECODE } rg_role;

/** The fleet that a replica is part of. */
typedef struct rg_fleet rg_fleet;

/** Requests that decode in every step (lane.c). */
typedef struct rg_lane {
    bool on;
    int64_t tick, emitted; /* steps decided, steps whose tokens are out */
    double emitted_s;
    int head;  /* running[0..head) are members, or wait for their last token */
    int count; /* members */
    int64_t kv_sum, most_base;
    rg_live **first, **last; /* [block_tokens] members by the step that needs a block */
    rg_live **due;           /* heap by the step that schedules the last token */
    rg_live **draining;
    int due_count, draining_count;
} rg_lane;

struct rg_replica {
    rg_arena *arena;
    rg_fleet *fleet;
    const rg_engine_rules *rules;
    const rg_engine_constants *constants;
    const rg_policy *policy;
    const rg_step_model *step;
    rg_serve_result *result;
    rg_role role;
    int number;
    rg_kv_pool pool;
    rg_kv_pool tiers[RG_KV_TIERS]; /* each takes what the one above it evicts */
    int tier_count;
    rg_live **running; /* in order of admission */
    rg_live **leaving; /* scratch */
    int running_count, room;
    rg_queue waiting, swapped;
    rg_batch flights[2];
    int in_flight, depth;
    double boundary_s; /* end of the oldest step in flight; INFINITY when idle */
    double last_end_s;
    int64_t composition, last_emitted;
    int64_t held_tokens; /* tokens stored by those that hold memory */
    int64_t load_tokens; /* still to be computed and generated: for routers */
    int64_t steps;
    double full_power_s; /* at which its devices would have drawn the energy above idle */
    bool preempted_now;
    rg_lane lane;
    double last_completed_s;
    double now_s;   /* of the step that is being decided */
    double until_s; /* next thing from outside */
    int sending;    /* requests whose KV is still here while it is sent elsewhere */
    /* cost of decode steps on a grid of lengths, filled on demand */
    struct rg_grid_node **grid;
    int64_t grid_room;
    /* contiguous reservations: free extents by address */
    struct rg_extent *extents;
    int extent_count, extent_room;
    int64_t extent_total, extent_free;
    double token_ratio;   /* SGLang */
    bool full;            /* SGLang: nobody is admitted until someone leaves */
    struct rg_kept *kept; /* static batches: memory of members that are done */
    int kept_count;
    bool plain; /* no windows, drafts, recomputed layers: a decode keeps one token */
    int32_t *bucket_head, *bucket_next; /* event skipping: who needs a block at which step */
    rg_rng rng;
    double born_s, died_s, last_moment_s;
    bool draining, dead;
    double wake_s; /* something waits for this time (KV on its way) */
    rg_err failed;
};

rg_status rg_replica_start(rg_replica *replica, rg_arena *arena, const rg_engine_rules *rules,
                           const rg_engine_constants *constants, const rg_step_model *step,
                           rg_serve_result *result, rg_err *err);
/** A request reaches the queue at that time. */
void rg_replica_arrive(rg_replica *replica, rg_live *live, double time_s);
/** The next moment at which the replica does something, INFINITY when idle. */
static inline double rg_replica_next(const rg_replica *replica)
{
    return replica->in_flight > 0 || replica->boundary_s < replica->wake_s ? replica->boundary_s
                                                                           : replica->wake_s;
}
/** Do what is due at rg_replica_next; nothing from outside comes before until_s. */
void rg_replica_step(rg_replica *replica, double until_s);

/* ---- parts of a replica */

/** Time of a step of the batch (cost.c); of its decodes alone; what uneven lengths add. The first
 * two add the step to r->full_power_s. */
double rg_replica_batch_cost(rg_replica *r, const rg_batch *batch);
double rg_replica_decode_cost(rg_replica *r, int64_t decodes, double mean);
double rg_replica_skew_cost(rg_replica *r, int64_t decodes, double sum, double most);
/** Add a step to the integrals over time. */
void rg_replica_account(rg_replica *r, double duration, int64_t sequences);
/** Take equal steps while nothing changes (skip.c). */
void rg_replica_skip_equal(rg_replica *r);
/** Up to where a request that decodes may be handled by rg_replica_decode_run. */
void rg_replica_set_plain(const rg_replica *r, rg_live *live);

rg_status rg_tiers_start(rg_replica *r, rg_err *err);
/** Leading full blocks of the first `tokens` tokens, behind `have` in device memory, that lie in
 * the tiers; *load_s is the time to bring them up. */
int32_t rg_tiers_find(rg_replica *r, rg_kv_seq *seq, int32_t have, int64_t tokens, double *load_s);
rg_status rg_lane_start(rg_replica *r, rg_err *err);
/** Put the lane into the step; gives the position in running from which requests are looked at one
 * by one. */
int rg_lane_advance(rg_replica *r, rg_batch *batch, int64_t *budget);
/** Its tokens of a step come out; true when a request has finished. */
bool rg_lane_emit(rg_replica *r, const rg_batch *batch, double time_s);
/** Make all members single requests again. */
void rg_lane_dissolve(rg_replica *r);

/* ---- for schedulers */

/** Blocks (or tokens' worth of them) that a sequence of so many tokens takes. */
static inline int64_t rg_replica_blocks(const rg_replica *r, int64_t tokens)
{
    if (r->rules->rule.window > 0 || r->rules->rule.keep_ratio > 0)
        tokens = rg_kv_resident(&r->rules->rule, tokens);
    return (tokens + r->pool.block_tokens - 1) / r->pool.block_tokens;
}
/** Tokens for which memory may be held beyond those that a request has at its end: drafts of the
 * steps in flight. */
static inline int64_t rg_replica_ahead(const rg_replica *r)
{
    const int64_t drafts = r->rules->speculation.drafts;
    return drafts == 0 ? 0 : drafts + (r->depth - 1) * (1 + drafts);
}
/** Put work of k tokens for a request into the step; its memory is already there. */
void rg_replica_compute(rg_replica *r, rg_batch *batch, rg_live *live, int64_t k);
/** The same for decodes that need no memory, the common case, from position *i of running on while
 * there are such and budget; tokens of the budget used. */
int64_t rg_replica_decode_run(rg_replica *r, rg_batch *batch, int *i, int64_t budget);
/** Hold blocks for so many tokens; false when they do not fit beside `spare` free ones. */
bool rg_replica_hold(rg_replica *r, rg_live *live, int64_t tokens, int64_t spare);
/** Move the head of waiting into running. */
void rg_replica_admit(rg_replica *r, rg_live *live);
/** Take a request out of running (by position), free its memory, let it wait at the front. */
void rg_replica_preempt(rg_replica *r, int position);
/** The same, its blocks copied to host memory. */
void rg_replica_swap_out(rg_replica *r, rg_batch *batch, int position);
/** Free the memory of a request. */
void rg_replica_release(rg_replica *r, rg_live *live);
/** A request leaves the steps in flight: it has ended, or begins anew. */
void rg_replica_forget_flights(rg_replica *r, const rg_live *live);
/** Cached tokens at its start, made its own; *blocked when they and `tokens` do not fit. */
int64_t rg_replica_reuse(rg_replica *r, rg_live *live, int64_t need_tokens, int64_t spare,
                         bool *blocked);
/** For a request whose KV is on its way: memory for its prompt is held first, then the KV is sent,
 * then the request may run; true when it may, its prompt counted as computed. False with
 * live->kv.held 0 when the memory does not fit. */
bool rg_replica_receive(rg_replica *r, rg_live *live);
/** The head of waiting can never run: refuse it. */
void rg_replica_refuse(rg_replica *r, rg_live *live);

/** A request is scheduled for the first time or again, with so many tokens found in the cache. */
void rg_replica_scheduled(rg_replica *r, rg_live *live, int64_t cached);

typedef struct rg_kept {
    rg_kv_seq kv;
    int64_t extent, extent_size;
    bool reserved;
    int32_t c;
} rg_kept;

rg_live *rg_queue_head(const rg_queue *q);
rg_live *rg_queue_pop(rg_queue *q);
void rg_queue_push(rg_arena *arena, rg_queue *q, rg_live *live, rg_err *err);
void rg_queue_push_front(rg_arena *arena, rg_queue *q, rg_live *live, rg_err *err);
rg_live *rg_queue_at(const rg_queue *q, int64_t i);
/** Put the same requests into another order, of a queue that is first come first served. */
void rg_queue_arrange(rg_queue *q, rg_live *const *order);
void rg_queue_remove(rg_queue *q, int64_t i);
/** Is a to be served before b. */
static inline bool rg_live_before(const rg_live *a, const rg_live *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->order < b->order;
}

/* contiguous memory (extent.c) */
typedef struct rg_extent {
    int64_t at, size;
} rg_extent;
bool rg_extent_take(rg_replica *r, rg_live *live, int64_t tokens);
void rg_extent_give(rg_replica *r, rg_live *live);
/** Share of free memory that the largest free extent does not cover. */
double rg_extent_fragmentation(const rg_replica *r);

/* what the fleet is told */
void rg_fleet_finished(rg_fleet *fleet, rg_replica *r, rg_live *live, double time_s);
void rg_fleet_prefilled(rg_fleet *fleet, rg_replica *r, rg_live *live, double time_s);
/** First schedule: prompt tokens looked up and found in the cache. */
void rg_fleet_looked_up(rg_fleet *fleet, rg_replica *r, const rg_live *live);
void rg_fleet_refused(rg_fleet *fleet, rg_replica *r, rg_live *live);
/** Until when equal steps may be skipped without an observer missing something. */
double rg_fleet_unwatched(const rg_fleet *fleet, const rg_replica *r);
void rg_fleet_moment(rg_fleet *fleet, rg_replica *r, const rg_batch *batch);
/** Memory for KV of a request on its way is held: start sending; gives the time of arrival. */
double rg_fleet_send(rg_fleet *fleet, rg_replica *r, rg_live *live, double time_s);

extern const rg_policy rg_policy_vllm1, rg_policy_vllm0, rg_policy_vllm0_chunked,
    rg_policy_vidur_vllm, rg_policy_sarathi, rg_policy_orca, rg_policy_static, rg_policy_trt,
    rg_policy_trt_max, rg_policy_sglang;

#endif

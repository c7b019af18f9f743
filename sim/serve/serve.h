/* serve/serve.h: a discrete-event simulator of LLM serving: schedulers, KV memory, several
 * replicas.
 *
 * Reads trace/req.h, model/pass.h, step. A run takes a stream of requests, a deployment and a model
 * of step time, and gives what users and operators would see. Requests are never averaged away:
 * every step of every replica is decided by the rules of the engine that is named. Time inside is
 * in seconds as double.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_SERVE_H
#define RG_SERVE_SERVE_H

#include <stdio.h>

#include "core/units.h"
#include "model/pass.h"
#include "serve/kv.h"
#include "serve/sample.h"
#include "trace/req.h"

/** Time of one pass on one replica, engine constants not counted. Called for passes with work
 * only. */
typedef struct rg_step_model {
    rg_seconds (*step_time)(void *context, const rg_pass *pass);
    void *context;
    /* what the last step_time left behind: the time at full power that gives the energy of its
     * flops and bytes; NULL: devices draw full power all the time */
    const double *full_power_s;
    bool costly; /* decode-only passes are interpolated on a fine grid instead of asked each time */
} rg_step_model;

typedef enum rg_policy_kind {
    RG_POLICY_VLLM1,
    RG_POLICY_VLLM0,
    RG_POLICY_SARATHI,
    RG_POLICY_ORCA,
    RG_POLICY_STATIC,
    RG_POLICY_VIDUR_VLLM, /* v0 whose budget is batch x longest prompt */
    RG_POLICY_TRT_NO_EVICT,
    RG_POLICY_TRT_MAX_UTILISATION,
    RG_POLICY_TRT_STATIC,
    RG_POLICY_SGLANG,
    RG_POLICY_COUNT,
} rg_policy_kind;
/** "vllm", "vllm-v0", "sarathi", "orca", "static", ...; NULL behind the last. */
extern const char *const rg_policy_names[RG_POLICY_COUNT + 1];

typedef enum rg_reservation {
    RG_RESERVE_PAGED,  /* blocks as tokens come */
    RG_RESERVE_OUTPUT, /* contiguous: prompt + its own maximum output */
    RG_RESERVE_MODEL,  /* contiguous: the model's maximum length */
} rg_reservation;

typedef enum rg_preempt { RG_PREEMPT_RECOMPUTE, RG_PREEMPT_SWAP } rg_preempt;

typedef struct rg_speculation {
    int64_t drafts;          /* per step, 0: none */
    double acceptance;       /* chance that a draft token is accepted, given those before it were */
    double draft_time_ratio; /* time of one draft step as a share of a decode step of the target */
} rg_speculation;

enum { RG_KV_TIERS = 2 };

/** A slower tier that holds blocks evicted from the memory above it (host, then disk). */
typedef struct rg_kv_tier {
    double capacity_bytes;
    double bytes_per_s;
} rg_kv_tier;

/** Rules and limits of one replica. */
typedef struct rg_engine_rules {
    rg_policy_kind policy;
    int64_t max_sequences, max_batched_tokens, max_model_tokens;
    int64_t block_tokens, blocks; /* blocks with the reserved one; 0: unlimited */
    bool chunked_prefill, asynchronous, reserve_full_prompt, prefix_caching, by_priority;
    int64_t long_prefill_threshold; /* 0: off */
    double watermark_ratio;         /* share of blocks kept free at admission */
    bool longest_prefix_first;      /* SGLang: LPM instead of FCFS */
    bool mixed_chunk;               /* SGLang: decodes ride along with prefill */
    double conservativeness;        /* SGLang: schedule conservativeness */
    rg_preempt preempt;
    rg_reservation reservation;
    rg_kv_rule rule;
    rg_speculation speculation;
    rg_kv_tier tiers[RG_KV_TIERS]; /* capacity 0: none */
    double host_bytes_per_s;       /* swap and tier traffic when the tier names no rate */
    double kv_bytes_per_token;     /* one replica, all its devices */
    double recompute_layers_ratio; /* share of early layers whose KV is not stored, recomputed */
} rg_engine_rules;

/** Engine constants: time that is not kernels. */
typedef struct rg_engine_constants {
    double step_overhead_s;    /* per step, not hidden */
    double per_sequence_s;     /* per sequence in the step */
    double attention_skew;     /* 0: decode attention costs as the mean length; 1: as the longest */
    double request_overhead_s; /* from arrival to the engine's queue */
    double kernel_scale;       /* step times are multiplied by this; 1 */
} rg_engine_constants;

typedef enum rg_router {
    RG_ROUTE_ROUND_ROBIN,
    RG_ROUTE_LEAST_LOADED, /* fewest tokens still to be done */
    RG_ROUTE_PREFIX,       /* longest cached prefix while pending requests are in balance */
    RG_ROUTE_SESSION,      /* a session stays on its replica */
} rg_router;

typedef struct rg_autoscale {
    bool on;
    int64_t least, most;
    double target_waiting; /* scale out when waiting requests per replica exceed this */
    double idle_waiting;   /* scale in when they fall below, and load fits on one fewer */
    double start_s;        /* until a new replica serves */
    double interval_s;     /* between decisions */
} rg_autoscale;

typedef struct rg_deployment {
    rg_engine_rules rules;
    rg_engine_constants constants;
    rg_step_model step;
    int64_t replicas;
    rg_router router;
    rg_autoscale autoscale;
    /* disaggregation: prefill replicas beside `replicas` decode replicas; 0: none */
    int64_t prefill_replicas;
    rg_engine_rules prefill_rules;
    rg_step_model prefill_step;
    double transfer_bytes_per_s; /* of one prefill replica's link */
    double transfer_latency_s;
    bool transfer_overlap; /* layers are sent as they are computed */
    int64_t layers;        /* of the model, for the overlap */
    int64_t devices_per_replica, devices_per_prefill_replica;
    double busy_watts, idle_watts; /* per device, at full power and idle; 0: unknown */
    double usd_per_device_hour;    /* 0: unknown */
} rg_deployment;

typedef struct rg_goals {
    double ttft_s, tpot_s, e2e_s; /* 0: no limit */
} rg_goals;

/** One finished request, in order of finishing. */
typedef struct rg_served {
    int64_t index, row, prompt_tokens, output_tokens, cached_tokens, preemptions, recomputed_tokens;
    int replica;
    double arrival_s, scheduled_s, last_chunk_s, first_token_s, last_token_s;
} rg_served;

/** State of one replica at one moment, for time lines. */
typedef struct rg_moment {
    double time_s, duration_s;
    int replica;
    int64_t step, running, waiting, prefill_tokens, decodes, used_blocks;
    double internal_fragmentation_ratio, external_fragmentation_ratio;
} rg_moment;

struct rg_replica;
struct rg_batch;

/** Where single events go; any may be NULL. */
typedef struct rg_observer {
    void *context;
    void (*served)(void *context, const rg_served *served);
    void (*moment)(void *context, const rg_moment *moment);
    void (*progress)(void *context, double time_s, int64_t finished);
    /* every step, with everything inside (serve/replica.h); equal steps are then not skipped */
    void (*inspect)(void *context, const struct rg_replica *replica, const struct rg_batch *batch);
    double moment_interval_s; /* at least so long between two moments of a replica; 0: all */
} rg_observer;

/** A server at work: what ends between the warm-up and the last arrival, of a session where there
 * are such, so that neither the filling of the batch nor its draining is in it. The warm-up is
 * twice what 95 % of requests take: the first ones find an empty server and are quick, those behind
 * them are not. Sessions add twice the time to the first request of the deepest turn. */
typedef struct rg_steady {
    bool known;          /* false: arrivals end within one and a half warm-ups */
    double from_s, to_s; /* after the first arrival */
    double requests_per_s, output_tokens_per_s, total_tokens_per_s;
} rg_steady;

typedef struct rg_serve_result {
    int64_t requests, finished;
    int64_t refused;   /* can never fit the KV memory, or a step */
    int64_t over_step; /* of these, prompts that no step takes whole, and that are not cut */
    int64_t output_tokens, prompt_tokens;
    rg_sample ttft, queue, prefill, first_step, tpot_excl_first, tpot_incl_first, gap, e2e;
    int64_t good;      /* met every goal */
    double makespan_s; /* first arrival to last token */
    rg_steady steady;
    int64_t steps, preemptions, recomputed_tokens, swapped_blocks;
    int64_t prefill_tokens;             /* computed, recomputation counted */
    int64_t queried_tokens, hit_tokens; /* of prompts at first schedule */
    int64_t queried_blocks, hit_blocks; /* trace blocks where the trace has them, else KV blocks */
    int64_t tier_hit_tokens;
    int64_t evicted_blocks;
    int64_t kv_blocks;
    double busy_s, replica_s; /* replica seconds computing, and existing */
    double batch_time, kv_time, internal_time, external_time,
        waiting_time;         /* integrals over time */
    double longest_over_mean; /* ratio of the cached tokens in a decoding batch, summed over them */
    int64_t decoding_steps;
    int64_t most_running, most_blocks, most_waiting;
    int64_t accepted_drafts, drafts;
    double transfer_bytes, transfer_wait_s;
    int64_t transfers;
    int64_t most_replicas;
    int64_t *routed; /* [replicas there ever were, prefill first] requests sent to each */
    int replica_count;
    int64_t balanced; /* of them, sent to the shortest queue instead of the longest prefix */
    double device_s;  /* device seconds existing */
    double energy_j, cost_usd; /* NaN: unknown */
} rg_serve_result;

/** Run to the end of the stream. Same stream, deployment and seed: same result to the last bit.
 * Errors: RG_ERR_USAGE for rules that contradict each other, those of the stream, RG_ERR_LIMIT. */
rg_status rg_serve_run(rg_arena *arena, const rg_deployment *deployment, rg_requests *stream,
                       const rg_goals *goals, const rg_observer *observer, uint64_t seed,
                       rg_serve_result *out, rg_err *err);

/** Rules of an engine with its own defaults; limits of KV memory are left 0. */
rg_engine_rules rg_engine_rules_default(rg_policy_kind policy);

#endif

/* plan/plan.h: the cheapest arrangement of devices that keeps latency limits under given traffic.
 *
 * Reads serve, step, hw. A plan is traffic, limits, and lists of what may be chosen. The search
 * (plan/search.h) screens every combination by a bound that is proved (plan/bound.h), simulates
 * the rest on the same requests (plan/trial.h), and keeps the least costly one that meets every
 * limit.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_PLAN_H
#define RG_PLAN_PLAN_H

#include "core/doc.h"
#include "hw/cluster.h"
#include "hw/power.h"
#include "hw/price.h"
#include "serve/serve.h"
#include "step/speculate.h"

enum { RG_PLAN_LIST = 64, RG_PLAN_LIMITS = 12, RG_PLAN_MOST_REPLICAS = 4096, RG_PLAN_FEW = 256 };

typedef enum rg_plan_metric {
    RG_PLAN_TTFT,
    RG_PLAN_TPOT,
    RG_PLAN_E2E,
    RG_PLAN_METRICS,
} rg_plan_metric;
const char *rg_plan_metric_name(rg_plan_metric metric);

/** "p95 of ttft at most 1 s". */
typedef struct rg_plan_limit {
    rg_plan_metric metric;
    double quantile;                   /* 0..1; negative: the mean */
    double seconds; /* s, the limit */ /* s */
    const char *text;                  /* "p95:1s", as the user wrote it */
    bool assumed;                      /* no limit on waiting was given, and this one stands in */
} rg_plan_limit;

typedef enum rg_plan_goal {
    RG_PLAN_COST,    /* dollars per hour */
    RG_PLAN_DEVICES, /* number of devices */
    RG_PLAN_POWER,   /* watts, devices at TDP with their share of the host */
} rg_plan_goal;

typedef struct rg_plan_names {
    const char *items[RG_PLAN_LIST];
    rg_pos pos[RG_PLAN_LIST];
    int count;
} rg_plan_names;

typedef struct rg_plan_ints {
    int64_t items[RG_PLAN_LIST];
    int count; /* 0: ridge's own choice */
} rg_plan_ints;

typedef struct rg_plan_traffic {
    double rate_per_s; /* 0: not given */
    int64_t users;     /* 0: none; closed loop */
    double think_s;
    const char *trace, *trace_format; /* NULL: made up */
    rg_length_spec prompt, output;
    double mean_prompt, mean_output; /* of the made-up lengths */
    int64_t system_tokens;           /* that all made-up prompts begin with */
    int64_t requests;                /* simulated; 0: ridge's own choice */
} rg_plan_traffic;

/** Prefill and decode replicas in this proportion; 0 and 0: one pool that does both. */
typedef struct rg_plan_pools {
    int64_t prefill, decode;
} rg_plan_pools;

/** One way to speculate. Of a kind, the time of drafts is that of what writes them; of none with
 * drafts, a share of a decode step. */
typedef struct rg_plan_speculation {
    rg_spec_kind kind;
    rg_speculation rule;
} rg_plan_speculation;

/** What the user asks, checked and typed. */
typedef struct rg_plan {
    const char *path; /* plan file, NULL: none */
    const char *model;
    bool has_traffic;
    rg_plan_traffic traffic;
    rg_plan_limit limits[RG_PLAN_LIMITS];
    int limit_count;
    /* what may be chosen */
    rg_plan_names devices, weight_types, kv_types; /* type lists may be empty: the checkpoint's */
    rg_plan_names prefill_devices;                 /* of prefill pools; none: those of the others */
    rg_plan_ints prefill_tp, prefill_pp, prefill_ep; /* of prefill pools; none: as the others */
    rg_plan_ints tp, pp, ep, cp, max_sequences, max_tokens;
    bool attention_dp[2], prefix_caching[2]; /* [false], [true] may be chosen */
    bool attention_dp_given, prefix_caching_given;
    rg_policy_kind policies[RG_POLICY_COUNT];
    int policy_count;
    rg_reservation reservations[3];
    int reservation_count;
    rg_plan_pools pools[RG_PLAN_LIST];
    int pool_count;
    const char *engine; /* NULL: the policy's own */
    rg_plan_speculation speculations[RG_PLAN_LIST];
    int speculation_count;     /* 1 or more; the first may be none */
    const char *draft_model;   /* that writes drafts, NULL: none */
    double memory_utilisation; /* 0: the engine's */
    /* money, power, caps */
    rg_plan_goal goal;
    bool goal_given;
    const char *prices, *provider; /* price file and provider, NULL: the default file, any */
    rg_pos provider_pos;
    rg_price_term term;
    rg_plan_names price_names; /* devices whose price the user gives, and the prices beside */
    double price_values[RG_PLAN_LIST]; /* USD per device and hour */ /* $/h */
    int64_t most_devices;
    double power_cap_w; /* 0: none */
    rg_site site;
    bool exhaustive;
    bool offline; /* all requests are there at once; see plan/offline.h */
    int few; /* combinations up to which nothing is ruled out but by proof; see plan/search.h */
    uint64_t seed;
} rg_plan;

/** Settings as text, from a file, from a command line, or both; the later one wins. */
typedef struct rg_plan_text rg_plan_text;
rg_status rg_plan_text_new(rg_arena *arena, rg_plan_text **out, rg_err *err);
/** Copy of the first length letters of an item, in the memory of the text. */
const char *rg_plan_text_cut(const rg_plan_text *text, const char *item, size_t length,
                             rg_err *err);

/** Set a setting: items are given one by one or separated by commas where the setting is a list.
 * Replaces what a file said; adds to what the same hand gave (repeated options). RG_ERR_INPUT with
 * the nearest name for an unknown setting. */
rg_status rg_plan_text_add(rg_plan_text *text, const char *name, const char *value, rg_pos pos,
                           rg_err *err);
/** Read {kind: plan, setting: value or list, ...}. */
rg_status rg_plan_text_load(rg_plan_text *text, const char *path, rg_err *err);
/** The same from a document that is read already. */
rg_status rg_plan_text_take(rg_plan_text *text, rg_node *root, rg_err *err);
/** Typed and checked. Errors: RG_ERR_INPUT or RG_ERR_USAGE at the setting's place. */
rg_status rg_plan_read(rg_plan_text *text, rg_plan *out, rg_err *err);

/** All of a plan file that can be checked without running it. */
rg_status rg_plan_load(rg_arena *arena, const char *path, rg_plan *out, rg_err *err);

#endif

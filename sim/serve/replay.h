/* serve/replay.h: a measured run of a real server, replayed and compared; engine constants
 * fitted.
 *
 * Reads serve/serve.h, trace/req.h. A folder holds meta.yaml (engine, model, GPU, limits),
 * requests.csv (arrival_s, first_token_s, last_token_s, input_tokens, output_tokens) and, where
 * prompts share text, prefix.csv (request_id, shared_prefix_tokens, shares_with_request). Such a
 * requests.csv alone will do, or the JSON that 'vllm bench serve --save-detailed' and SGLang's
 * bench_serving --output-details write (input_lens, output_lens, ttfts, itls, start_times).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_REPLAY_H
#define RG_SERVE_REPLAY_H

#include "serve/serve.h"

typedef struct rg_replay_request {
    double first_token_s, last_token_s;
} rg_replay_request;

typedef struct rg_replay_run {
    const char *folder, *name, *model, *gpu, *dtype, *engine_version;
    int64_t tp, dp;
    bool expert_parallel;
    bool limits_recorded;      /* else rules are the engine's defaults */
    double memory_utilisation; /* 0: not recorded */
    int64_t kv_blocks;         /* 0: not recorded */
    rg_engine_rules rules;     /* limits as recorded, engine defaults for the rest */
    rg_request *requests;      /* in order of arrival */
    rg_replay_request *measured;
    int64_t count, with_prefix;
    const char *const *assumed; /* what the record does not say, in words */
    int assumed_count;
} rg_replay_run;

/** A folder, or a file whose name ends in .csv or .json. Errors: RG_ERR_IO, RG_ERR_INPUT with the
 * place. */
rg_status rg_replay_load(rg_arena *arena, const char *path, rg_replay_run **out, rg_err *err);

/** Weighted absolute errors, sum |p - m| / sum m over requests; makespan: p / m - 1. */
typedef struct rg_replay_errors {
    double ttft_wape, tpot_wape, e2e_wape, makespan, ttft_bias, tpot_bias, e2e_bias;
    int64_t requests;
} rg_replay_errors;

/** Replay the run's arrivals and lengths on a deployment and compare. observer may be NULL. */
rg_status rg_replay_compare(rg_arena *arena, const rg_replay_run *run,
                            const rg_deployment *deployment, const rg_observer *observer,
                            uint64_t seed, rg_serve_result *result, rg_replay_errors *out,
                            rg_err *err);

/** Constants that a fit may move, and how. */
typedef struct rg_tunable {
    const char *name;
    double value, least, most;
    double spread; /* how far from where it begins it may well be, in its own unit */
    void (*set)(void *context, double value);
    void *context;
} rg_tunable;

/** Move the constants one after another (golden section, seven rounds that narrow) so that the sum
 * of the three weighted errors of the run, with a pull back to where each began, becomes
 * least. *evaluations counts replays. */
rg_status rg_replay_fit(rg_arena *arena, const rg_replay_run *run, const rg_deployment *deployment,
                        rg_tunable *constants, int count, rg_replay_errors *best, int *evaluations,
                        rg_err *err);

#endif

/* fit/serving.h: runs of whole servers against predictions, where the load is the same.
 *
 * Reads step, core. A table of closed-loop runs: model_path, system, tp_size, isl, osl,
 * concurrency, ttft_ms, tpot_ms and, where given, batch_size, attention_dp_size, moe_ep_size,
 * gemm_quant_mode, backend, wip, origin, requests_per_s.
 *
 *   tpot = D(c) + c P / osl        ttft = D(c) + P / (1 - u),  u = c P / (osl tpot), at most 0.9
 *
 * D one decode pass of c sequences at isl + osl/2 tokens, P one prompt's passes: every request in
 * flight sees, while it decodes, the prompts of the c requests that replace finished ones; prompts
 * wait for one another as in a single server that is busy for a share u of the time.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_SERVING_H
#define RG_FIT_SERVING_H

#include "core/stat.h"
#include "step/estimate.h"

typedef enum rg_serving_skip {
    RG_SERVING_COMPARED,
    RG_SERVING_UNFINISHED,  /* flagged as work in progress */
    RG_SERVING_UNKNOWN,     /* no such model or device, or a figure is missing */
    RG_SERVING_UNSUPPORTED, /* an arrangement that is not modelled */
    RG_SERVING_UNLIKE_LOAD, /* Little's law: not the same number in flight */
    RG_SERVING_SKIP_COUNT,
} rg_serving_skip;
const char *rg_serving_skip_name(rg_serving_skip skip);

typedef struct rg_serving_run {
    const char *id, *model, *system, *origin;
    int64_t isl, osl, tp;
    double concurrency, batch; /* requests; batch: what the engine held, each rank of attention
                                * where that is data-parallel, 0 unknown */
    double ranks;              /* of data-parallel attention, else 1 */
    double requests_per_s;     /* 0 unknown */
    double ttft_s, tpot_s;     /* measured */
    double predicted_ttft_s, predicted_tpot_s;    /* NaN when not predicted */
    double measured_decoding, predicted_decoding; /* requests in their decode phase, Little's law */
    rg_serving_skip skip;
    int line;
} rg_serving_run;

typedef struct rg_serving_table {
    rg_serving_run *runs;
    size_t count;
} rg_serving_table;

/** Requests that decode at once when each spends ttft before and (osl - 1) tpot in decoding and
 * `inside` of them are in the system: inside (osl - 1) tpot / (ttft + (osl - 1) tpot). J. D. C.
 * Little, "A proof for the queuing formula L = lambda W", Oper. Res. 9(3), 1961, for one stage. */
double rg_serving_decoding(double inside, double ttft_s, double tpot_s, double osl);
/** Whether two loads differ by more than 20 %: then their times cannot be compared. */
bool rg_serving_unlike(double a, double b);

/** Read the table, predict each run, tell which can be compared. Errors: the table's mistakes. */
rg_status rg_serving_compare(rg_arena *arena, const char *path, rg_serving_table *out, rg_err *err);

/** Rank correlation of predicted with measured tpot over compared runs (C. Spearman, 1904); NaN
 * below 3 runs. */
double rg_serving_rank_correlation(rg_arena *arena, const rg_serving_table *table, rg_err *err);

#endif

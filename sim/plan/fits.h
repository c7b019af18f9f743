/* plan/fits.h: without traffic: does it fit, on how many devices, how fast for one user, for many?
 *
 * Reads plan/trial.h, plan/bound.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_FITS_H
#define RG_PLAN_FITS_H

#include "plan/bound.h"
#include "plan/trial.h"

/** One machine, weight type, number of devices and kind of attention, in the split that is fastest
 * for one user. */
typedef struct rg_fit {
    int machine, candidate;
    const char *weight_type;    /* as stored, "bf16" */
    bool checkpoint;            /* the checkpoint's own */
    int64_t devices;            /* 0: does not fit on the machine at all */
    bool attention_dp;          /* data-parallel attention */
    bool least;                 /* the least number on which it fits */
    double weight_bytes;        /* of one copy of the model */
    double needed_bytes;        /* of the fullest device, beside KV */
    double ttft_s;              /* prompt alone */
    double single_tokens_per_s; /* one user */
    double bound_tokens_per_s;  /* one user, if weights and cache were read at full bandwidth */
    int64_t sequences;          /* of prompt + answer tokens that memory holds at once */
    int64_t batch;              /* of them, as many as the engine runs */
    double output_tokens_per_s; /* of that batch, decoding */
    double usd_per_hour, usd_per_million_output; /* NaN: no price */
} rg_fit;

/** Rows for every machine and weight type of the plan (by default the checkpoint's own, bf16, fp8
 * and int4_g128), by number of devices. Errors: those of loading. */
rg_status rg_plan_fits(rg_arena *arena, const rg_plan *plan, rg_space *space, rg_fit **out,
                       int *count, rg_err *err);

#endif

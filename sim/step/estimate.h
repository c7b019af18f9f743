/* step/estimate.h: what one user and what many users get from one arrangement, queueing left out.
 *
 * Reads step/step.h, roofline. Shared by the commands estimate, sweep and plan.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_STEP_ESTIMATE_H
#define RG_STEP_ESTIMATE_H

#include "step/step.h"

/** A load: equal sequences that decode together on each replica. */
typedef struct rg_load {
    int64_t batch;          /* sequences on each replica, 1 or more */
    int64_t context_tokens; /* of each prompt, 1 or more */
    int64_t output_tokens;  /* of each sequence, 1 or more */
} rg_load;

typedef struct rg_estimate {
    rg_seconds ttft;            /* one prompt on an idle machine, in chunks of the token budget */
    rg_seconds tpot_excl_first; /* mean over the answer: a decode pass at rg_load_context */
    rg_seconds tpot_incl_first; /* (ttft + (outputs - 1) tpot_excl_first) / outputs */
    double single_stream_tokens_per_s; /* 1 / decode pass of one sequence there */
    double output_tokens_per_s;        /* dp * batch / tpot_excl_first: all replicas decode */
    double
        total_tokens_per_s; /* dp batch (prompt + outputs) / (batch prefill_each + outputs tpot) */
    double mfu_prefill_ratio, mfu_decode_ratio; /* model flops / (time * peak * devices) */
    double mbu_decode_ratio;                    /* bytes that must move / (time * bandwidth) */
    rg_joules energy_per_output_token; /* all devices, by hw/power.h; 0 when TDP is unknown */
    int64_t devices;                   /* of all replicas */
    rg_step_time prefill, decode;      /* one prompt alone; the batch */
    rg_seconds prefill_each; /* of a prompt, when each rank of data-parallel attention has one
                                (of batch prompts, if those are fewer); else as prefill */
    rg_step_memory memory;   /* at context + output tokens */
    bool fits;               /* memory holds the batch */
} rg_estimate;

/** Errors: RG_ERR_MODEL for a load without tokens or a figure that the hardware file lacks. A batch
 * that does not fit is no error here: fits is false. */
rg_status rg_estimate_load(rg_step_context *step, const rg_cluster *cluster,
                           const rg_formats *formats, const rg_parallel *parallel,
                           const rg_engine *engine, const rg_load *load, rg_estimate *out,
                           rg_err *err);

/** Tokens in the cache of a sequence, mean over its answer: prompt + outputs / 2. The time of a
 * decode pass is close to linear in it, so the pass there takes the mean time of the answer's. */
double rg_load_context(const rg_load *load);

/** The decode pass of a load, and its prompt as one chunk (which *chunk must outlive). */
rg_pass rg_load_decode_pass(int64_t batch, double context_tokens);

/** Devices of an arrangement: tp pp cp dp; experts lie on the same devices. */
int64_t rg_parallel_devices(const rg_parallel *parallel);

#endif

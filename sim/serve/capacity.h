/* serve/capacity.h: how many KV blocks an engine gets, by the engine's own sum.
 *
 * Reads hw/accel.h, model/pass.h. What the device reports, times the utilisation that the engine
 * may take, less weights, less the peak of a profiling pass, less what is not tensors, is for KV
 * (vLLM; other engines take a share of something else, rg_memory_share).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_CAPACITY_H
#define RG_SERVE_CAPACITY_H

#include "hw/accel.h"
#include "model/pass.h"
#include "step/step.h"

typedef struct rg_capacity_query {
    const rg_accel *accel;
    const rg_model *model;
    const rg_formats *formats;
    const rg_shard *shard; /* of the fullest rank */
    double utilisation;    /* share of device memory that the engine may take */
    rg_memory_share share_of;
    double draft_bytes, draft_token_bytes; /* weights and KV of a token that speculation adds */
    double bytes_per_logit;                /* at the peak of sampling; 0: 30, vLLM's (see below) */
    int64_t max_batched_tokens, max_sequences, block_tokens;
    double device_bytes; /* what the runtime reports as total; 0: from the hardware file */
    int64_t ranks;       /* that talk to one another */
} rg_capacity_query;

typedef struct rg_capacity {
    double device_bytes, driver_bytes;
    double usable_bytes; /* what weights, KV and, but for RG_SHARE_STATIC, all else share */
    double weight_bytes, activation_bytes, graph_bytes, context_bytes;
    double state_bytes;      /* recurrent state of state_sequences sequences */
    int64_t state_sequences; /* max_sequences, or fewer where their state would not fit */
    double kv_bytes, block_bytes;
    int64_t blocks; /* with the reserved one; 0: the weights do not fit */
} rg_capacity;

/** The sum:
 *
 *   blocks = floor(KV / (t k)), by what the utilisation is a share of:
 *   total   KV = u (M - D) - W - A - G - C
 *   static  KV = u (M - D - C) - W, if A + G leave as much
 *   free    KV = u (M - D - W - A - G - C)
 *
 *   u  utilisation                 M  memory as the driver lists it, D  what the driver keeps
 *   W  weights of the rank         A  peak of a pass of max_batched_tokens that ends in sampling
 *   G  CUDA graphs                 C  libraries and buffers outside the tensor allocator
 *   t  tokens of a block           k  KV bytes of a token, every layer paged alike
 *
 * Recurrent state of the sequences (S of each) is taken off too.
 *
 * A is the greater of the widest layer of the pass and of sampling max_sequences rows: logits in 16
 * and 32 bit, in vLLM with their sort, 64-bit indices and its workspace, 30 B an entry of the
 * vocabulary.
 * D, G and C are assumed; their constants are in capacity.c with what they were read from. */
rg_capacity rg_capacity_of(const rg_capacity_query *query);

#endif

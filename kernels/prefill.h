/* kernels/prefill.h: attention of whole prompts, causal or not.
 *
 * Reads value.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_PREFILL_H
#define RG_KERNELS_PREFILL_H

#include "value.h"

typedef struct rg_prefill_params {
    const uint16_t *q, *k, *v; /* bf16 [batch][seq][heads or kv_heads][head_dim] */
    uint16_t *out;             /* bf16 [batch][seq][heads][head_dim] */
    int32_t batch, seq, heads, kv_heads;
    int32_t causal;
    float scale; /* softmax scale times log2(e) */
} rg_prefill_params;

enum {
    RG_PREFILL_THREADS = 128,
    RG_PREFILL_ROWS = 64, /* query rows of a block */
    RG_PREFILL_TILE = 64, /* tokens of a tile */
    RG_PREFILL_STAGES = 2,
};

RG_BOTH int32_t rg_prefill_shared_bytes(int32_t head_dim)
{
    return RG_PREFILL_STAGES * 2 * RG_PREFILL_TILE * (2 * head_dim + 32);
}

#ifdef __cplusplus
extern "C"
#endif
    /** One query row in double: out [head_dim]. */
    void
    rg_prefill_reference_row(const rg_prefill_params *p, int32_t head_dim, int32_t sequence,
                             int32_t row, int32_t head, double *out);

#endif

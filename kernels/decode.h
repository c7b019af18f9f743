/* kernels/decode.h: attention of one new token for each sequence over a paged KV cache.
 *
 * Reads kv.h. Sequences are cut into parts (split KV); a part leaves its maximum, sum and
 * unnormalised output, and a second kernel merges the parts of a head.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_DECODE_H
#define RG_KERNELS_DECODE_H

#include "kv.h"

typedef struct rg_decode_params {
    rg_kv_view kv;
    const uint16_t *q;      /* bf16 [sequence][kv_heads][group][head_dim] */
    uint16_t *out;          /* bf16 [sequence][kv_heads][group][value_dim]; 0 for length 0 */
    float *partial;         /* [slot][group][value_dim + 2]: maximum (base 2), sum, output */
    const rg_kv_work *work; /* [work_count] */
    int32_t work_count;
    int32_t group;     /* query heads for each KV head; for MLA the query heads of a tile */
    int32_t value_dim; /* head_dim; 512 for MLA */
    float scale;       /* softmax scale times log2(e) */
} rg_decode_params;

/** Where the parts of one (sequence, KV head) lie, and which query heads of its group they hold. */
typedef struct rg_merge_work {
    int32_t sequence, head, first_slot, parts;
    int32_t from, count;
} rg_merge_work;

typedef struct rg_merge_params {
    const float *partial;
    uint16_t *out;
    const rg_merge_work *work; /* [gridDim] */
    int32_t kv_heads, group, value_dim;
} rg_merge_params;

enum {
    RG_DECODE_THREADS = 128,
    RG_DECODE_TILE = 64, /* tokens that are in shared memory at a time */
    RG_MERGE_THREADS = 128,
    RG_MLA_THREADS = 256,
    RG_MLA_TILE = 32,
    RG_MLA_LATENT = 512,
    RG_MLA_DIM = 576,
    RG_MLA_MOST_TILES = 4, /* 16 query heads each */
};

/** Bytes between rows in shared memory: 32 or 96 modulo 128, so that the lanes that load one
 * fragment touch all banks once. */
RG_BOTH int32_t rg_decode_pitch(int32_t row_bytes)
{
    return row_bytes + (row_bytes % 64 == 0 ? 32 : 0);
}

/** Stages of the copy pipeline for a row length: as many as keep two blocks on an SM. */
RG_BOTH int32_t rg_decode_stages(int32_t row_bytes)
{
    return row_bytes > 128 ? 2 : 3;
}

/** Dynamic shared memory of the decode kernels. */
RG_BOTH int32_t rg_decode_shared_bytes(rg_store store, int32_t head_dim)
{
    const int32_t row = rg_kv_row_bytes(store, head_dim);
    const int32_t stage =
        2 * RG_DECODE_TILE * (rg_decode_pitch(row) + 4 * rg_kv_scale_words(store, head_dim));
    const int32_t stages = stage * rg_decode_stages(row);
    /* the merge of the warps reuses the stages: 16 rows of floats, maxima and sums */
    const int32_t merge = 16 * (head_dim + 2 * 4 + 4) * 4;
    return (stages > merge ? stages : merge) + 32 * head_dim;
}

/** The same for the kernels without tensor cores, built for `group` query heads. */
RG_BOTH int32_t rg_decode_simt_shared_bytes(rg_store store, int32_t head_dim, int32_t group)
{
    const int32_t row = rg_kv_row_bytes(store, head_dim);
    const int32_t stage =
        2 * RG_DECODE_TILE * (rg_decode_pitch(row) + 4 * rg_kv_scale_words(store, head_dim));
    return stage * rg_decode_stages(row) + group * (head_dim + RG_DECODE_TILE + 3) * 4;
}

/** Dynamic shared memory of the tensor-core MLA kernel for 16 x tiles query heads. */
RG_BOTH int32_t rg_mla_stages(int32_t tiles)
{
    return tiles > 1 ? 2 : 3;
}
RG_BOTH int32_t rg_mla_shared_bytes(rg_store store, int32_t tiles)
{
    const int32_t row = rg_kv_row_bytes(store, RG_MLA_DIM);
    return rg_mla_stages(tiles) * RG_MLA_TILE * rg_decode_pitch(row) + /* latents */
           tiles * 32 * RG_MLA_DIM +                                   /* queries as fragments */
           (tiles == 1 ? 2 : 1) * 16 * tiles * (RG_MLA_TILE + 1) * 4 + /* scores */
           16 * tiles * RG_MLA_TILE * 2 +                              /* probabilities */
           3 * 16 * tiles * 4;                                         /* maxima, sums, factors */
}

#ifdef __cplusplus
extern "C"
#endif
    void
    rg_decode_reference(const rg_decode_params *p, rg_store store, double *out);

#endif

/* kernels/kv.h: a paged key-value cache as kernels and references see it.
 *
 * Reads value.h. A row is the head_dim elements of one token and KV head. Rows of a page lie as
 * [head][token] (head-major, as most attention kernels keep them) or [token][head].
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_KV_H
#define RG_KERNELS_KV_H

#include "value.h"

typedef struct rg_kv_view {
    const uint8_t *k, *v;              /* rows; v NULL: V is the front of K's row (MLA) */
    const uint32_t *k_scale, *v_scale; /* [row][scale_words], NULL when scale_words is 0 */
    const int32_t *pages;              /* [sequence][pages_per_sequence], numbers of pages */
    const int32_t *lengths;            /* [sequence], tokens in the cache */
    float k_factor, v_factor;          /* scale of all elements (fp8) */
    int32_t pages_per_sequence, kv_heads, page_tokens, head_dim;
    int32_t row_bytes, scale_words;
    int32_t page_rows, head_rows, token_rows; /* steps in rows */
    rg_divisor by_page;                       /* division by page_tokens */
} rg_kv_view;

/** A part of one sequence's cache for one KV head: tokens first <= t < last. */
typedef struct rg_kv_work {
    int32_t sequence, head, first, last;
    int32_t slot;  /* where the partial result goes */
    int32_t parts; /* parts that this (sequence, head) is cut into */
} rg_kv_work;

enum { RG_INT4_GROUP = 32 }; /* elements that share a scale and a zero */

/** Bytes of a row and scale words of a row. */
RG_BOTH int32_t rg_kv_row_bytes(rg_store store, int32_t head_dim)
{
    return store == RG_STORE_BF16 ? 2 * head_dim
                                  : (store == RG_STORE_INT4 ? head_dim / 2 : head_dim);
}
RG_BOTH int32_t rg_kv_scale_words(rg_store store, int32_t head_dim)
{
    return store == RG_STORE_INT4 ? head_dim / RG_INT4_GROUP : (store == RG_STORE_INT8 ? 1 : 0);
}

/** Row of a token, through the page table. */
RG_BOTH int64_t rg_kv_row(const rg_kv_view *kv, int32_t sequence, int32_t head, int32_t token)
{
    const int32_t page = token / kv->page_tokens;
    return (int64_t)kv->pages[(int64_t)sequence * kv->pages_per_sequence + page] * kv->page_rows +
           (int64_t)head * kv->head_rows +
           (int64_t)(token - page * kv->page_tokens) * kv->token_rows;
}

#ifndef __CUDACC__
/** Stored element as a double; scale is its row's scale words, factor the scale of all. For
 * references: the value that the stored bits stand for, so that quantisation is no kernel error. */
static inline double rg_kv_element(rg_store store, const uint8_t *row, const uint32_t *scale,
                                   double factor, int32_t index)
{
    switch (store) {
    case RG_STORE_BF16:
        return rg_bf16_value((uint16_t)(row[2 * index] | (row[2 * index + 1] << 8)));
    case RG_STORE_E4M3:
        return factor * rg_e4m3_value(row[index]);
    case RG_STORE_INT8:
        return (double)(int8_t)row[index] * rg_bits_float(scale[0]);
    default: {
        const uint32_t word = scale[index / RG_INT4_GROUP];
        const int code = (row[index / 2] >> (4 * (index & 1))) & 15;
        return (code - (double)rg_bf16_value((uint16_t)(word >> 16))) *
               rg_bf16_value((uint16_t)word);
    }
    }
}
#endif

#endif

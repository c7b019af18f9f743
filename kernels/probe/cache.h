/* kernels/probe/cache.h: paged KV caches for checks and measurements, and how work is cut.
 *
 * Reads gpu.h, ../kv.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_CACHE_H
#define RG_PROBE_CACHE_H

#include "core/arena.h"
#include "gpu.h"
#include "kv.h"

typedef struct rg_cache_spec {
    rg_store store;
    int32_t head_dim, kv_heads, page_tokens, batch;
    bool token_major;       /* [page][token][head] instead of [page][head][token] */
    bool shared_kv;         /* V is the front of K (MLA) */
    bool random_pages;      /* pages in random order instead of one after the other */
    const int32_t *lengths; /* [batch] */
    uint64_t seed;
} rg_cache_spec;

typedef struct rg_cache {
    rg_kv_view host;   /* what references read; k is NULL when the data is on the device only */
    rg_kv_view device; /* what kernels read */
    size_t bytes;      /* of rows and scales on the device */
} rg_cache;

/** Build a cache. With on_host the data is made here, tokens past the lengths and pages of nobody
 * are NaN, and it is copied over; otherwise the device fills its memory by itself. */
rg_status rg_cache_build(rg_arena *arena, rg_gpu *gpu, const rg_cache_spec *spec, bool on_host,
                         rg_cache *out, rg_err *err);

/** Bytes that reading every cached token once moves: rows and scales of K and V. */
double rg_cache_read_bytes(const rg_cache_spec *spec);

/** Cut sequences into parts of whole tiles so that at least `units` parts come out where that is
 * possible with parts of `least` tokens or more. Longest parts first. A sequence of length 0 has
 * one empty part. max_parts gets the most parts of one sequence. */
rg_status rg_work_build(rg_arena *arena, const int32_t *lengths, int32_t batch, int32_t heads,
                        int32_t units, int32_t least, rg_kv_work **work, int32_t *count,
                        int32_t *max_parts, rg_err *err);

/** The store of a measured table's type name (bfloat16, fp8, int8, int4). */
rg_store rg_store_of(const char *dtype);

#endif

/* kernels/probe/cache.c: paged KV caches.
 *
 * Reads cache.h, core/rng.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "cache.h"

#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

rg_store rg_store_of(const char *dtype)
{
    if (strcmp(dtype, "fp8") == 0)
        return RG_STORE_E4M3;
    if (strcmp(dtype, "int8") == 0)
        return RG_STORE_INT8;
    return strcmp(dtype, "int4") == 0 ? RG_STORE_INT4 : RG_STORE_BF16;
}

double rg_cache_read_bytes(const rg_cache_spec *spec)
{
    double tokens = 0;
    for (int32_t b = 0; b < spec->batch; b++)
        tokens += spec->lengths[b];
    const double row = rg_kv_row_bytes(spec->store, spec->head_dim) +
                       4.0 * rg_kv_scale_words(spec->store, spec->head_dim);
    return tokens * spec->kv_heads * row * (spec->shared_kv ? 1.0 : 2.0);
}

/** Page table [batch][per_sequence]: every used page once; unused entries name the spare page. */
static rg_status number_pages(rg_arena *arena, const rg_cache_spec *spec, int32_t per_sequence,
                              int32_t **out, int32_t *page_count, rg_err *err)
{
    int32_t used = 0;
    for (int32_t b = 0; b < spec->batch; b++)
        used += (spec->lengths[b] + spec->page_tokens - 1) / spec->page_tokens;
    int32_t *order = RG_NEW(arena, int32_t, used, err);
    int32_t *pages = RG_NEW(arena, int32_t, (size_t)spec->batch * (size_t)per_sequence, err);
    if (!order || !pages)
        return RG_ERR_LIMIT;
    rg_rng rng;
    rg_rng_seed(&rng, spec->seed, 1);
    for (int32_t i = 0; i < used; i++)
        order[i] = i;
    for (int32_t i = used - 1; i > 0 && spec->random_pages; i--) {
        const int32_t j = (int32_t)rg_rng_below(&rng, (uint32_t)i + 1);
        const int32_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    int32_t next = 0;
    for (int32_t b = 0; b < spec->batch; b++)
        for (int32_t i = 0; i < per_sequence; i++)
            pages[b * per_sequence + i] =
                i * spec->page_tokens < spec->lengths[b] ? order[next++] : used;
    *out = pages;
    *page_count = used + 1;
    return RG_OK;
}

/** Rows (or scales) on the host: random where a token lives, 0xff elsewhere. */
static uint8_t *host_rows(rg_arena *arena, const rg_cache_spec *spec, const rg_kv_view *view,
                          int32_t page_count, size_t row_bytes, rg_store kind, uint64_t seed,
                          rg_err *err)
{
    const size_t bytes = (size_t)page_count * (size_t)view->page_rows * row_bytes;
    uint8_t *rows = RG_NEW(arena, uint8_t, bytes + 4, err);
    if (!rows)
        return NULL;
    memset(rows, 0xff, bytes);
    for (int32_t b = 0; b < spec->batch; b++)
        for (int32_t h = 0; h < spec->kv_heads; h++)
            for (int32_t t = 0; t < spec->lengths[b]; t++) {
                const size_t at = (size_t)rg_kv_row(view, b, h, t) * row_bytes;
                for (size_t i = 0; i < row_bytes; i += 4) {
                    const uint32_t word = rg_store_word(kind, seed, (at + i) / 4);
                    memcpy(rows + at + i, &word, 4);
                }
            }
    return rows;
}

/** One array of the cache in both places; host stays NULL without on_host. */
static rg_status make_rows(rg_arena *arena, rg_gpu *gpu, const rg_cache_spec *spec, bool on_host,
                           const rg_kv_view *view, int32_t page_count, size_t row_bytes,
                           rg_store kind, uint64_t seed, rg_cache *cache, const void **host,
                           const void **device, rg_err *err)
{
    rg_cu_ptr memory = 0;
    const size_t bytes = (size_t)page_count * (size_t)view->page_rows * row_bytes;
    if (on_host) {
        uint8_t *rows = host_rows(arena, spec, view, page_count, row_bytes, kind, seed, err);
        if (!rows)
            return RG_ERR_LIMIT;
        *host = rows;
        RG_TRY(rg_gpu_upload(gpu, rows, bytes, &memory, err));
    } else {
        RG_TRY(rg_gpu_alloc(gpu, bytes, &memory, err));
        RG_TRY(rg_gpu_fill(gpu, memory, bytes, kind, seed, err));
    }
    cache->bytes += bytes;
    *device = rg_gpu_address(memory);
    return RG_OK;
}

rg_status rg_cache_build(rg_arena *arena, rg_gpu *gpu, const rg_cache_spec *spec, bool on_host,
                         rg_cache *out, rg_err *err)
{
    memset(out, 0, sizeof *out);
    int32_t longest = 1;
    for (int32_t b = 0; b < spec->batch; b++)
        longest = spec->lengths[b] > longest ? spec->lengths[b] : longest;
    rg_kv_view *view = &out->host;
    view->kv_heads = spec->kv_heads;
    view->page_tokens = spec->page_tokens;
    view->by_page = rg_divisor_make((uint32_t)spec->page_tokens);
    view->head_dim = spec->head_dim;
    view->row_bytes = rg_kv_row_bytes(spec->store, spec->head_dim);
    view->scale_words = rg_kv_scale_words(spec->store, spec->head_dim);
    view->page_rows = spec->page_tokens * spec->kv_heads;
    view->head_rows = spec->token_major ? 1 : spec->page_tokens;
    view->token_rows = spec->token_major ? spec->kv_heads : 1;
    view->k_factor = 0.5f;
    view->v_factor = 0.25f;
    view->pages_per_sequence = (longest + spec->page_tokens - 1) / spec->page_tokens;
    int32_t *pages = NULL, page_count = 0;
    RG_TRY(number_pages(arena, spec, view->pages_per_sequence, &pages, &page_count, err));
    view->pages = pages;
    view->lengths = spec->lengths;
    out->device = *view;

    rg_cu_ptr memory = 0;
    RG_TRY(rg_gpu_upload(gpu, pages,
                         sizeof *pages * (size_t)spec->batch * (size_t)view->pages_per_sequence,
                         &memory, err));
    out->device.pages = rg_gpu_address(memory);
    RG_TRY(rg_gpu_upload(gpu, spec->lengths, sizeof *spec->lengths * (size_t)spec->batch, &memory,
                         err));
    out->device.lengths = rg_gpu_address(memory);

    const rg_store scale_kind = spec->store == RG_STORE_INT4 ? RG_STORE_SCALE4 : RG_STORE_SCALE8;
    const size_t row = (size_t)view->row_bytes, scale = 4u * (size_t)view->scale_words;
    const void *host[4] = {NULL}, *device[4] = {NULL};
    for (int i = 0; i < 4; i++) { /* K, V, scales of K, of V */
        if ((i % 2 == 1 && spec->shared_kv) || (i >= 2 && scale == 0))
            continue;
        RG_TRY(make_rows(arena, gpu, spec, on_host, view, page_count, i < 2 ? row : scale,
                         i < 2 ? spec->store : scale_kind, spec->seed + (uint64_t)i, out, &host[i],
                         &device[i], err));
    }
    view->k = host[0];
    view->v = host[1];
    view->k_scale = host[2];
    view->v_scale = host[3];
    out->device.k = device[0];
    out->device.v = device[1];
    out->device.k_scale = device[2];
    out->device.v_scale = device[3];
    return RG_OK;
}

static int by_length(const void *a, const void *b)
{
    const rg_kv_work *x = a, *y = b;
    const int32_t lx = x->last - x->first, ly = y->last - y->first;
    return lx != ly ? (lx < ly) - (lx > ly) : (x->slot > y->slot) - (x->slot < y->slot);
}

rg_status rg_work_build(rg_arena *arena, const int32_t *lengths, int32_t batch, int32_t heads,
                        int32_t units, int32_t least, rg_kv_work **work, int32_t *count,
                        int32_t *max_parts, rg_err *err)
{
    int64_t tokens = 0;
    for (int32_t b = 0; b < batch; b++)
        tokens += lengths[b];
    /* parts of equal length over all sequences, so that ragged batches stay even */
    int64_t part = (tokens * heads + units - 1) / units;
    part = (part + least - 1) / least * least;
    if (part < least)
        part = least;
    int32_t total = 0;
    *max_parts = 1;
    for (int32_t b = 0; b < batch; b++) {
        const int32_t parts = lengths[b] > 0 ? (int32_t)((lengths[b] + part - 1) / part) : 1;
        total += parts * heads;
        *max_parts = parts > *max_parts ? parts : *max_parts;
    }
    rg_kv_work *list = RG_NEW(arena, rg_kv_work, total, err);
    if (!list)
        return RG_ERR_LIMIT;
    int32_t next = 0;
    for (int32_t b = 0; b < batch; b++) {
        const int32_t parts = lengths[b] > 0 ? (int32_t)((lengths[b] + part - 1) / part) : 1;
        for (int32_t h = 0; h < heads; h++)
            for (int32_t i = 0; i < parts; i++) {
                const int64_t end = (i + 1) * part;
                list[next++] = (rg_kv_work){
                    b, h,    (int32_t)(i * part), end < lengths[b] ? (int32_t)end : lengths[b],
                    i, parts};
            }
    }
    /* slot orders equal lengths, so give it a total order first */
    for (int32_t i = 0; i < total; i++)
        list[i].slot = i;
    qsort(list, (size_t)total, sizeof *list, by_length);
    *work = list;
    *count = total;
    return RG_OK;
}

/* kernels/kv_read.cu: read a paged KV cache and nothing else, and what it must give.
 *
 * Reads kv_read.h, dev.h. The words of every row are summed, so no load can be left out, and the
 * sums are exact in any order. Pages are found through the page table for each 16-byte chunk: the
 * table entries of a run lie in one cache line, and four chunks of K and of V are under way in each
 * thread, 128 B x 1024 threads = 128 KiB an SM, well above the 32 to 48 KiB that HBM needs.
 */
// SPDX-License-Identifier: Apache-2.0
#include "kv_read.h"

#ifdef RG_HOST

void rg_kv_read_reference(const rg_kv_read_params *p)
{
    for (int32_t w = 0; w < p->work_count; w++) {
        const rg_kv_work *work = &p->work[w];
        uint32_t sum[2] = {0, 0};
        for (int32_t t = work->first; t < work->last; t++) {
            const int64_t row = rg_kv_row(&p->kv, work->sequence, work->head, t);
            for (int32_t b = 0; b < p->kv.row_bytes; b++) {
                sum[0] += (uint32_t)p->kv.k[row * p->kv.row_bytes + b] << (8 * (b & 3));
                if (p->kv.v)
                    sum[1] += (uint32_t)p->kv.v[row * p->kv.row_bytes + b] << (8 * (b & 3));
            }
        }
        p->sums[2 * w] = sum[0];
        p->sums[2 * w + 1] = sum[1];
    }
}

#else
#include "dev.h"

RG_DEVICE uint32_t word_sum(uint4 v)
{
    return v.x + v.y + v.z + v.w;
}

/** Sum over the block; every thread calls it, thread 0 has the result. */
RG_DEVICE uint32_t block_sum(uint32_t v, uint32_t *scratch)
{
    for (int mask = 16; mask > 0; mask /= 2)
        v += rg_shfl_xor_u(v, mask);
    if (RG_TID % 32 == 0)
        scratch[RG_TID / 32] = v;
    rg_sync();
    uint32_t total = 0;
    if (RG_TID == 0)
        for (int w = 0; w < RG_KV_READ_THREADS / 32; w++)
            total += scratch[w];
    rg_sync();
    return total;
}

RG_KERNEL(rg_kv_read, rg_kv_read_params, RG_KV_READ_THREADS, RG_KV_READ_BLOCKS)
{
    RG_SHARED(shared);
    uint32_t *scratch = (uint32_t *)shared;
    const uint32_t row_chunks = (uint32_t)p.kv.row_bytes / 16;
    for (int w = RG_BID; w < p.work_count; w += RG_GRID) {
        const rg_kv_work work = p.work[w];
        const int32_t *pages = p.kv.pages + (int64_t)work.sequence * p.kv.pages_per_sequence;
        const int64_t head_row = (int64_t)work.head * p.kv.head_rows;
        const uint32_t chunks = (uint32_t)(work.last - work.first) * row_chunks;
        uint32_t sum_k = 0, sum_v = 0;
        for (uint32_t start = (uint32_t)RG_TID; start < chunks;
             start += RG_KV_READ_THREADS * RG_KV_READ_UNROLL) {
            int64_t offset[RG_KV_READ_UNROLL];
            uint4 k[RG_KV_READ_UNROLL], v[RG_KV_READ_UNROLL];
            RG_UNROLL
            for (int u = 0; u < RG_KV_READ_UNROLL; u++) {
                const uint32_t i = start + (uint32_t)u * RG_KV_READ_THREADS;
                const uint32_t row_of_run = rg_divide(i, p.by_row);
                const uint32_t token = (uint32_t)work.first + row_of_run;
                const uint32_t page = rg_divide(token, p.kv.by_page);
                const uint32_t in_page = token - page * (uint32_t)p.kv.page_tokens;
                offset[u] = -1;
                if (i < chunks)
                    offset[u] = ((int64_t)pages[page] * p.kv.page_rows + head_row +
                                 (int64_t)in_page * p.kv.token_rows) *
                                    p.kv.row_bytes +
                                (int64_t)(i - row_of_run * row_chunks) * 16;
            }
            RG_UNROLL
            for (int u = 0; u < RG_KV_READ_UNROLL; u++) {
                k[u] = v[u] = make_uint4(0, 0, 0, 0);
                if (offset[u] >= 0) {
                    k[u] = rg_load_stream(p.kv.k + offset[u]);
                    if (p.kv.v)
                        v[u] = rg_load_stream(p.kv.v + offset[u]);
                }
            }
            RG_UNROLL
            for (int u = 0; u < RG_KV_READ_UNROLL; u++) {
                sum_k += word_sum(k[u]);
                sum_v += word_sum(v[u]);
            }
        }
        sum_k = block_sum(sum_k, scratch);
        sum_v = block_sum(sum_v, scratch);
        if (RG_TID == 0) {
            p.sums[2 * w] = sum_k;
            p.sums[2 * w + 1] = sum_v;
        }
    }
}

#endif

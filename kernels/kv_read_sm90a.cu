/* kernels/kv_read_sm90a.cu: read a paged KV cache by bulk copies (Hopper).
 *
 * Reads kv_read.h, dev_sm90.h; reference: rg_kv_read_reference in kv_read.cu. A page's rows of one
 * head follow each other, so a warp of its own copies them in runs into a ring in shared memory, a
 * lane a page, and eight warps add them up: no registers hold data on its way, and three blocks of
 * four stages keep up to 192 KiB an SM under way. Only for the head-major layout.
 */
// SPDX-License-Identifier: Apache-2.0
#include "kv_read.h"

#ifndef RG_HOST
#include "dev_sm90.h"

/** A ring of stages, and how many were filled or emptied so far. */
struct ring {
    unsigned char *stages;
    uint64_t *full, *empty; /* [RG_KV_BULK_STAGES] */
    int count;
};

/** One stage: n tokens of K or of V, a page's tokens by a lane. */
RG_DEVICE void fill(const rg_kv_read_params &p, const rg_kv_work &work, const uint8_t *rows,
                    int token, int n, ring *r)
{
    const int32_t *pages = p.kv.pages + (int64_t)work.sequence * p.kv.pages_per_sequence;
    const int stage = r->count % RG_KV_BULK_STAGES, lane = RG_TID % 32;
    unsigned char *to = r->stages + stage * RG_KV_BULK_STAGE_BYTES;
    rg_barrier_wait(r->empty + stage, (uint32_t)(r->count / RG_KV_BULK_STAGES & 1) ^ 1u);
    if (lane == 0)
        rg_barrier_expect(r->full + stage, (uint32_t)(n * p.kv.row_bytes));
    rg_warp_sync();
    const int first_page = (int)rg_divide((uint32_t)token, p.kv.by_page);
    const int last_page = (int)rg_divide((uint32_t)(token + n - 1), p.kv.by_page);
    for (int page = first_page + lane; page <= last_page; page += 32) {
        const int begin = page * p.kv.page_tokens > token ? page * p.kv.page_tokens : token;
        const int after = (page + 1) * p.kv.page_tokens;
        const int end = after < token + n ? after : token + n;
        const int64_t row = (int64_t)pages[page] * p.kv.page_rows +
                            (int64_t)work.head * p.kv.head_rows + begin - page * p.kv.page_tokens;
        rg_bulk_copy(to + (begin - token) * p.kv.row_bytes, rows + row * p.kv.row_bytes,
                     (uint32_t)((end - begin) * p.kv.row_bytes), r->full + stage);
    }
    r->count++;
}

/** Sum of this thread's words of the next stage. */
RG_DEVICE uint32_t drain(int bytes, ring *r)
{
    const int stage = r->count % RG_KV_BULK_STAGES;
    const uint4 *from = (const uint4 *)(r->stages + stage * RG_KV_BULK_STAGE_BYTES);
    uint32_t sum = 0;
    rg_barrier_wait(r->full + stage, (uint32_t)(r->count / RG_KV_BULK_STAGES & 1));
    for (int i = RG_TID - 32; i < bytes / 16; i += 32 * RG_KV_BULK_WARPS) {
        const uint4 v = from[i];
        sum += v.x + v.y + v.z + v.w;
    }
    rg_warp_sync();
    if (RG_TID % 32 == 0)
        rg_barrier_arrive(r->empty + stage);
    r->count++;
    return sum;
}

RG_DEVICE uint32_t warp_sum(uint32_t v)
{
    for (int mask = 16; mask > 0; mask /= 2)
        v += rg_shfl_xor_u(v, mask);
    return v;
}

RG_KERNEL(rg_kv_read_bulk, rg_kv_read_params, RG_KV_BULK_THREADS, 3)
{
    RG_SHARED(shared);
    ring r;
    r.stages = shared;
    r.full = (uint64_t *)(shared + RG_KV_BULK_STAGES * RG_KV_BULK_STAGE_BYTES);
    r.empty = r.full + RG_KV_BULK_STAGES;
    r.count = 0;
    if (RG_TID == 0) {
        for (int s = 0; s < RG_KV_BULK_STAGES; s++) {
            rg_barrier_init(r.full + s, 1);
            rg_barrier_init(r.empty + s, RG_KV_BULK_WARPS);
        }
        rg_barrier_fence();
    }
    rg_sync();
    const int most = RG_KV_BULK_STAGE_BYTES / p.kv.row_bytes; /* tokens of a stage */
    for (int w = RG_BID; w < p.work_count; w += RG_GRID) {
        const rg_kv_work work = p.work[w];
        uint32_t sum_k = 0, sum_v = 0;
        for (int token = work.first; token < work.last; token += most) {
            const int n = work.last - token < most ? work.last - token : most;
            if (RG_TID < 32) {
                fill(p, work, p.kv.k, token, n, &r);
                if (p.kv.v)
                    fill(p, work, p.kv.v, token, n, &r);
            } else {
                sum_k += drain(n * p.kv.row_bytes, &r);
                if (p.kv.v)
                    sum_v += drain(n * p.kv.row_bytes, &r);
            }
        }
        if (RG_TID < 32)
            continue;
        sum_k = warp_sum(sum_k);
        sum_v = warp_sum(sum_v);
        if (RG_TID % 32 == 0) {
            uint32_t *to = p.sums + (int64_t)w * 2 * RG_KV_BULK_WARPS + RG_TID / 32 - 1;
            to[0] = sum_k;
            to[RG_KV_BULK_WARPS] = sum_v;
        }
    }
}

#endif

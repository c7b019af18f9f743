/* kernels/kv_read.h: read a paged KV cache and nothing else.
 *
 * Reads kv.h. The upper limit of what a decode attention kernel can reach on a given page size, row
 * length and page order.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_KV_READ_H
#define RG_KERNELS_KV_READ_H

#include "kv.h"

typedef struct rg_kv_read_params {
    rg_kv_view kv;
    const rg_kv_work *work; /* [work_count] */
    uint32_t *sums; /* [work_count][2][parts]: words of K and V summed modulo 2^32, in so many
                       parts: 1, or a warp's each for the kernel with bulk copies */
    int32_t work_count;
    rg_divisor by_row; /* division by the 16-byte chunks of a row */
} rg_kv_read_params;

enum {
    RG_KV_READ_THREADS = 256,
    RG_KV_READ_BLOCKS = 4,
    RG_KV_READ_UNROLL = 4,
    /* the kernel for sm_90a: eight warps add up what a ninth has copied into shared memory */
    RG_KV_BULK_WARPS = 8,
    RG_KV_BULK_THREADS = 32 * (RG_KV_BULK_WARPS + 1),
    RG_KV_BULK_STAGES = 4,
    RG_KV_BULK_STAGE_BYTES = 16384,
    RG_KV_BULK_SHARED_BYTES = RG_KV_BULK_STAGES * RG_KV_BULK_STAGE_BYTES + 1024,
};

#ifdef __cplusplus
extern "C"
#endif
    void
    rg_kv_read_reference(const rg_kv_read_params *p);

#endif

/* kernels/tensor_sm90a.cu: peak of warpgroup MMA with operands in shared memory (Hopper).
 *
 * Reads micro.h, dev_sm90.h. The tiles are copied as they are, already swizzled or not: what is
 * multiplied is random either way, and the check knows where each element lies.
 */
// SPDX-License-Identifier: Apache-2.0
#include "micro.h"

#ifndef RG_HOST
#include "dev_sm90.h"

template <bool fp8>
RG_DEVICE void tensor90(const rg_tensor90_params &p, unsigned char *shared)
{
    for (int i = RG_TID; i < RG_TENSOR90_BYTES / 16; i += RG_TENSOR90_THREADS)
        *(uint4 *)(shared + 16 * i) = *(const uint4 *)(p.tiles + 16 * i);
    rg_async_fence();
    rg_sync();
    float d[128];
    RG_UNROLL
    for (int i = 0; i < 128; i++)
        d[i] = 0;
    const uint32_t a = rg_smem_address(shared), b = rg_smem_address(shared + 64 * 128);
    for (int l = 0; l < p.loops; l++) {
        rg_wgmma_begin();
        RG_UNROLL
        for (int s = 0; s < 4; s++) {
            if constexpr (fp8)
                rg_wgmma_e4m3(d, rg_wgmma_rows(a + 32 * s), rg_wgmma_rows(b + 32 * s));
            else
                rg_wgmma_bf16(d, rg_wgmma_rows(a + 32 * s), rg_wgmma_rows(b + 32 * s));
        }
        rg_wgmma_commit();
        rg_wgmma_wait<0>();
    }
    float sum = 0;
    RG_UNROLL
    for (int i = 0; i < 128; i++)
        sum += d[i];
    p.out[(int64_t)RG_BID * RG_TENSOR90_THREADS + RG_TID] = sum;
}

RG_KERNEL(rg_tensor90_bfloat16, rg_tensor90_params, RG_TENSOR90_THREADS, 1)
{
    RG_SHARED(shared);
    tensor90<false>(p, shared);
}

RG_KERNEL(rg_tensor90_fp8, rg_tensor90_params, RG_TENSOR90_THREADS, 1)
{
    RG_SHARED(shared);
    tensor90<true>(p, shared);
}

#endif

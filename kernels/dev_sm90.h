/* kernels/dev_sm90.h: device primitives of sm_90a: memory barriers, tensor copies, warpgroup MMA.
 *
 * Reads dev.h. PTX under nvcc, an emulation otherwise (emu/emulate_sm90.h).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_DEV_SM90_H
#define RG_KERNELS_DEV_SM90_H

#include "dev.h"

#ifdef __CUDACC__

RG_DEVICE void rg_barrier_init(uint64_t *barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(rg_smem_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}
/** After the barriers of a block are set up, before anyone uses them (then sync the block). */
RG_DEVICE void rg_barrier_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}
/** Plain writes to shared memory before warpgroup MMA reads it (then sync the block). */
RG_DEVICE void rg_async_fence(void)
{
    asm volatile("fence.proxy.async;" ::: "memory");
}
RG_DEVICE void rg_barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(rg_smem_address(barrier))
                 : "memory");
}
/** Arrive, and expect this many bytes of copies in this phase. */
RG_DEVICE void rg_barrier_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(rg_smem_address(barrier)),
        "r"(bytes)
        : "memory");
}
/** Wait until the phase of this parity is over. */
RG_DEVICE void rg_barrier_wait(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\n"
                 "bra again;\n"
                 "over:\n"
                 "}" ::"r"(rg_smem_address(barrier)),
                 "r"(parity)
                 : "memory");
}
/** One box of a two-dimensional tensor at (inner, outer) into shared memory; its bytes count
 * towards the barrier, zeros past the edges included. */
RG_DEVICE void rg_tensor_copy(void *shared, const void *map, int inner, int outer,
                              uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(rg_smem_address(shared)),
                 "l"(map), "r"(rg_smem_address(barrier)), "r"(inner), "r"(outer)
                 : "memory");
}
/** bytes (a multiple of 16) in a row from global into shared memory; they count towards the
 * barrier. */
RG_DEVICE void rg_bulk_copy(void *shared, const void *global, uint32_t bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(rg_smem_address(shared)),
                 "l"(global), "r"(bytes), "r"(rg_smem_address(barrier))
                 : "memory");
}
RG_DEVICE void rg_tensor_prefetch(const void *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
template <int registers>
RG_DEVICE void rg_registers_give(void)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
template <int registers>
RG_DEVICE void rg_registers_take(void)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
RG_DEVICE void rg_wgmma_begin(void)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
RG_DEVICE void rg_wgmma_commit(void)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/** Wait until at most `left` committed groups of this warpgroup are under way. */
template <int left>
RG_DEVICE void rg_wgmma_wait(void)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
#endif
}

/* The 128 accumulators of a thread: as PTX calls them, and as operands. */
#define RG_WGMMA_NAMES                                                                             \
    "{"                                                                                            \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "   \
    "%127}"
#define RG_WGMMA_4(d, i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define RG_WGMMA_16(d, i) \
    RG_WGMMA_4(d, i), RG_WGMMA_4(d, (i) + 4), RG_WGMMA_4(d, (i) + 8), RG_WGMMA_4(d, (i) + 12)
#define RG_WGMMA_64(d, i) \
    RG_WGMMA_16(d, i), RG_WGMMA_16(d, (i) + 16), RG_WGMMA_16(d, (i) + 32), RG_WGMMA_16(d, (i) + 48)

/* d += A B for a warpgroup: A 64 rows, B 256 rows of 32 bytes along k, both in shared memory as
 * described by descriptors; element e = 4 j + i of thread t: row 16 (t / 32) + t % 32 / 4 + 8 (i /
 * 2), column 8 j + 2 (t % 4) + i % 2. */
RG_DEVICE void rg_wgmma_bf16(float d[128], uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " RG_WGMMA_NAMES
                 ", %128, %129, 1, 1, 1, 0, 0;"
                 : RG_WGMMA_64(d, 0), RG_WGMMA_64(d, 64)
                 : "l"(a), "l"(b));
#else
    (void)d, (void)a, (void)b;
    asm volatile("trap;");
#endif
}
RG_DEVICE void rg_wgmma_e4m3(float d[128], uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 " RG_WGMMA_NAMES
                 ", %128, %129, 1, 1, 1;"
                 : RG_WGMMA_64(d, 0), RG_WGMMA_64(d, 64)
                 : "l"(a), "l"(b));
#else
    (void)d, (void)a, (void)b;
    asm volatile("trap;");
#endif
}

#else
#include "emu/emulate_sm90.h"
#endif

/** Descriptor of rows of 128 bytes that a tensor copy has swizzled by 128 bytes: groups of 8 rows
 * follow each other at 1024 bytes. address is that of the first row plus the bytes along k. */
RG_DEVICE uint64_t rg_wgmma_rows(uint32_t address)
{
    return (uint64_t)((address & 0x3ffffu) >> 4) | ((uint64_t)1 << 16) | ((uint64_t)64 << 32) |
           ((uint64_t)1 << 62);
}

#endif

/* kernels/dev.h: the device primitives that the kernels are written in.
 *
 * Reads value.h. Under nvcc these are PTX; under a plain C++ compiler they are a CPU emulation
 * (emu/emulate.h), so that the very same kernel source is checked where there is no GPU. Kernels
 * take one struct by value, run on one-dimensional grids, and carve all shared memory from one
 * dynamic block. Only what is written here needs a twin in the emulation.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_DEV_H
#define RG_KERNELS_DEV_H

#include "value.h"

#ifdef __CUDACC__

#define RG_DEVICE static __device__ __forceinline__
#define RG_DEVICE_MEMBER __device__ __forceinline__
#define RG_KERNEL(name, params, threads, blocks_per_sm)                  \
    extern "C" __global__ void __launch_bounds__(threads, blocks_per_sm) \
        name(const __grid_constant__ params p)
#define RG_TID ((int)threadIdx.x)
#define RG_THREADS ((int)blockDim.x)
#define RG_BID ((int)blockIdx.x)
#define RG_GRID ((int)gridDim.x)
#define RG_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
#define RG_UNROLL _Pragma("unroll")

RG_DEVICE void rg_sync(void)
{
    __syncthreads();
}
RG_DEVICE void rg_warp_sync(void)
{
    __syncwarp();
}
RG_DEVICE float rg_shfl_xor(float v, int mask)
{
    return __shfl_xor_sync(0xffffffffu, v, mask);
}
RG_DEVICE uint32_t rg_shfl_xor_u(uint32_t v, int mask)
{
    return __shfl_xor_sync(0xffffffffu, v, mask);
}
/** 16 bytes that nobody on this SM reads again: kept out of L1. */
RG_DEVICE uint4 rg_load_stream(const void *address)
{
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address));
    return v;
}
/** 16 bytes from L2, past L1: for data that other SMs or GPUs write. */
RG_DEVICE uint4 rg_load_l2(const void *address)
{
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address));
    return v;
}
RG_DEVICE uint32_t rg_load_l2_word(const void *address)
{
    uint32_t v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(address));
    return v;
}
RG_DEVICE void rg_store16(void *address, uint4 v)
{
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(address), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}
RG_DEVICE uint32_t rg_smem_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}
/** Asynchronous copy of 16 bytes into shared memory; zeros when on is false. */
RG_DEVICE void rg_copy16(void *shared, const void *global, bool on)
{
    const int bytes = on ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(rg_smem_address(shared)),
                 "l"(global), "r"(bytes)
                 : "memory");
}
RG_DEVICE void rg_copy4(void *shared, const void *global, bool on)
{
    const int bytes = on ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(rg_smem_address(shared)),
                 "l"(global), "r"(bytes)
                 : "memory");
}
RG_DEVICE void rg_copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/** Wait until at most left of this thread's committed groups are still under way. */
template <int left>
RG_DEVICE void rg_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}
/** Two floats as a bf16 pair, first one in the low half. */
RG_DEVICE uint32_t rg_pack_bf16(float lo, float hi)
{
    uint32_t d;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
    return d;
}
RG_DEVICE uint32_t rg_fma_bf16x2(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
RG_DEVICE uint32_t rg_byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
    return __byte_perm(a, b, selector);
}
RG_DEVICE float rg_exp2(float x)
{
    return exp2f(x);
}
/** High word of a 32 x 32 bit product. */
RG_DEVICE uint32_t rg_mul_high(uint32_t a, uint32_t b)
{
    return __umulhi(a, b);
}

/** d += a b, one warp, 16 x 8 x 16, bf16 in, fp32 out. */
RG_DEVICE void rg_mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
RG_DEVICE void rg_mma_fp16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
RG_DEVICE void rg_mma_tf32(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/** d += a b, one warp, 16 x 8 x 32, int8 in, int32 out; d holds int32 bits. */
RG_DEVICE void rg_mma_int8(uint32_t d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/** d += a b, one warp, 16 x 8 x 32, fp8 e4m3 in, fp32 out. Exists from sm_89 on; below it traps,
 * and the host side does not launch it there. */
RG_DEVICE void rg_mma_e4m3(float d[4], const uint32_t a[4], const uint32_t b[2])
{
#if __CUDA_ARCH__ >= 890
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void)d, (void)a, (void)b;
    asm volatile("trap;");
#endif
}

/** Flags between blocks, ranks and GPUs. */
RG_DEVICE void rg_flag_release(uint32_t *flag, uint32_t value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
RG_DEVICE uint32_t rg_flag_acquire(const uint32_t *flag)
{
    uint32_t v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
    return v;
}
/** Add, after everything that this thread wrote or saw before. */
RG_DEVICE void rg_atomic_add_release(uint32_t *address, uint32_t value)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
RG_DEVICE uint64_t rg_cycles(void)
{
    return (uint64_t)clock64();
}
RG_DEVICE uint64_t rg_nanoseconds(void)
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}
RG_DEVICE uint32_t rg_sm_id(void)
{
    uint32_t id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

#else
#include "emu/emulate.h"
#endif

RG_DEVICE float rg_max(float a, float b)
{
    return a > b ? a : b;
}

RG_DEVICE uint32_t rg_divide(uint32_t n, rg_divisor d)
{
    return d.multiplier ? rg_mul_high(n, d.multiplier) >> d.shift : n >> d.shift;
}

#endif

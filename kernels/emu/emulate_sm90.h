/* kernels/emu/emulate_sm90.h: memory barriers, tensor copies and warpgroup MMA on a CPU.
 *
 * Reads emulate.h. Copies and products happen when they are issued; the order that barriers demand
 * is kept, but a missing wait for a product does not show here. Shared addresses are offsets into
 * the block's memory, so descriptors are checked as they are on the device, swizzle included.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_EMU_EMULATE_SM90_H
#define RG_KERNELS_EMU_EMULATE_SM90_H

#include <cstdio>
#include <cstdlib>

/* A barrier's 64 bits: expected arrivals, arrivals still missing, bytes still missing, phase. */
struct rg_emu_mbarrier {
    uint16_t expected, missing;
    int32_t bytes_and_phase; /* bytes * 2 + phase */
};
static_assert(sizeof(rg_emu_mbarrier) == 8, "a barrier is 8 bytes");

RG_DEVICE uint32_t rg_smem_address(const void *shared)
{
    return (uint32_t)((const unsigned char *)shared - rg_emu_here->shared);
}
static inline void rg_emu_mbarrier_step(rg_emu_mbarrier *b, int arrivals, int bytes)
{
    b->missing = (uint16_t)(b->missing - arrivals);
    b->bytes_and_phase += 2 * bytes;
    if (b->missing == 0 && b->bytes_and_phase >> 1 == 0) {
        b->missing = b->expected;
        b->bytes_and_phase ^= 1;
    }
    rg_emu_progress();
}
RG_DEVICE void rg_barrier_init(uint64_t *barrier, uint32_t arrivals)
{
    rg_emu_mbarrier *b = (rg_emu_mbarrier *)barrier;
    b->expected = b->missing = (uint16_t)arrivals;
    b->bytes_and_phase = 0;
}
RG_DEVICE void rg_async_fence(void) {}
RG_DEVICE void rg_barrier_fence(void) {}
RG_DEVICE void rg_barrier_arrive(uint64_t *barrier)
{
    rg_emu_mbarrier_step((rg_emu_mbarrier *)barrier, 1, 0);
}
RG_DEVICE void rg_barrier_expect(uint64_t *barrier, uint32_t bytes)
{
    ((rg_emu_mbarrier *)barrier)->bytes_and_phase += 2 * (int)bytes;
    rg_emu_mbarrier_step((rg_emu_mbarrier *)barrier, 1, 0);
}
RG_DEVICE void rg_barrier_wait(uint64_t *barrier, uint32_t parity)
{
    while (rg_emu_broken != RG_EMU_NO_WAIT &&
           (uint32_t)(((volatile rg_emu_mbarrier *)barrier)->bytes_and_phase & 1) == parity)
        rg_emu_yield();
}

/* What the emulated driver writes into a tensor map. */
struct rg_emu_tensor_map {
    const unsigned char *base;
    uint64_t inner, outer, pitch; /* elements, elements, bytes */
    uint32_t box_inner, box_outer, element_bytes, swizzle_128;
};
RG_DEVICE void rg_tensor_copy(void *shared, const void *map, int inner, int outer,
                              uint64_t *barrier)
{
    rg_emu_tensor_map m;
    memcpy(&m, map, sizeof m);
    unsigned char *to = (unsigned char *)shared;
    const uint32_t row_bytes = m.box_inner * m.element_bytes;
    for (uint32_t r = 0; r < m.box_outer; r++)
        for (uint32_t i = 0; i < m.box_inner; i++) {
            uint32_t at = rg_smem_address(to) + r * row_bytes + i * m.element_bytes;
            if (m.swizzle_128 && rg_emu_broken != RG_EMU_NO_SWIZZLE)
                at ^= (at >> 7 & 7u) << 4;
            const uint64_t x = (uint64_t)inner + i, y = (uint64_t)outer + r;
            if (x < m.inner && y < m.outer)
                memcpy(rg_emu_here->shared + at, m.base + y * m.pitch + x * m.element_bytes,
                       m.element_bytes);
            else
                memset(rg_emu_here->shared + at, 0, m.element_bytes);
        }
    rg_emu_mbarrier_step((rg_emu_mbarrier *)barrier, 0, -(int)(m.box_outer * row_bytes));
}
RG_DEVICE void rg_bulk_copy(void *shared, const void *global, uint32_t bytes, uint64_t *barrier)
{
    memcpy(shared, global, bytes);
    rg_emu_mbarrier_step((rg_emu_mbarrier *)barrier, 0, -(int)bytes);
}
RG_DEVICE void rg_tensor_prefetch(const void *) {}
template <int registers>
RG_DEVICE void rg_registers_give(void)
{
}
template <int registers>
RG_DEVICE void rg_registers_take(void)
{
}
RG_DEVICE void rg_wgmma_begin(void)
{
    rg_emu_group_barrier();
}
RG_DEVICE void rg_wgmma_commit(void) {}
template <int left>
RG_DEVICE void rg_wgmma_wait(void)
{
    rg_emu_group_barrier();
}

/** Address of 16 bytes: row and byte along k of the matrix that a descriptor gives. */
static inline const unsigned char *rg_emu_operand(uint64_t descriptor, int row, int byte)
{
    if (descriptor >> 62 != 1) {
        fprintf(stderr, "emulation: only the 128-byte swizzle is emulated\n");
        abort();
    }
    const uint32_t start = (uint32_t)(descriptor & 0x3fffu) << 4;
    const uint32_t stride = (uint32_t)(descriptor >> 32 & 0x3fffu) << 4;
    uint32_t at = start + (uint32_t)(row / 8) * stride + (uint32_t)(row % 8) * 128 + (uint32_t)byte;
    at ^= (at >> 7 & 7u) << 4;
    return rg_emu_here->shared + at;
}
template <int element_bytes, typename Value>
static inline void rg_emu_wgmma(float d[128], uint64_t a, uint64_t b, Value value)
{
    const int t = RG_TID % 128;
    double x[2][32 / element_bytes];
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 32 / element_bytes; k++)
            x[half][k] =
                value(rg_emu_operand(a, t / 32 * 16 + t % 32 / 4 + 8 * half, k * element_bytes));
    for (int j = 0; j < 32; j++)
        for (int e = 0; e < 2; e++) {
            double sum[2] = {0, 0};
            for (int k = 0; k < 32 / element_bytes; k++) {
                const double w =
                    value(rg_emu_operand(b, 8 * j + 2 * (t % 4) + e, k * element_bytes));
                sum[0] += x[0][k] * w;
                sum[1] += x[1][k] * w;
            }
            d[4 * j + e] += (float)sum[0];
            d[4 * j + 2 + e] += (float)sum[1];
        }
}
RG_DEVICE void rg_wgmma_bf16(float d[128], uint64_t a, uint64_t b)
{
    rg_emu_wgmma<2>(d, a, b, [](const unsigned char *p) {
        return (double)rg_bf16_value((uint16_t)(p[0] | (p[1] << 8)));
    });
}
RG_DEVICE void rg_wgmma_e4m3(float d[128], uint64_t a, uint64_t b)
{
    rg_emu_wgmma<1>(d, a, b, [](const unsigned char *p) { return (double)rg_e4m3_value(p[0]); });
}

#endif

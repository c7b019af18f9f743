/* kernels/emu/emulate.h: the device primitives of dev.h on a CPU.
 *
 * Reads value.h. Every thread of a block is a fibre; blocks run one after the other, or all at once
 * for cooperative launches. Barriers, shuffles and matrix instructions exchange operands through
 * slots, as the PTX manual lays the fragments out, and shared memory starts as NaN so that a read
 * before a write shows. What it cannot find: races between unsynchronised threads, memory-model
 * faults, speed.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_EMU_EMULATE_H
#define RG_KERNELS_EMU_EMULATE_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define RG_DEVICE [[maybe_unused]] static inline
#define RG_DEVICE_MEMBER inline
#define RG_UNROLL
#define __grid_constant__

struct uint4 {
    uint32_t x, y, z, w;
};
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return uint4{x, y, z, w};
}

/** Where the running fibre is. */
struct rg_emu_place {
    int tid, threads, bid, grid;
    unsigned char *shared;
};
extern rg_emu_place *rg_emu_here;

/** What is broken on purpose (RIDGE_EMU_BREAK), so that tests can show that checks would notice. */
enum rg_emu_break {
    RG_EMU_WHOLE,
    RG_EMU_NO_SYNC,    /* block barriers do nothing */
    RG_EMU_LATE_COPY,  /* asynchronous copies land one group later than waited for */
    RG_EMU_NO_SWIZZLE, /* tensor copies lay rows out plainly */
    RG_EMU_NO_WAIT,    /* waits for memory barriers return at once */
    RG_EMU_NO_FLAG,    /* flags between blocks read as set */
};
extern rg_emu_break rg_emu_broken;

enum { RG_EMU_SLOT_WORDS = 16 };
void rg_emu_yield();
void rg_emu_progress(); /* tell the deadlock watch that something moved */
void rg_emu_block_barrier();
void rg_emu_warp_barrier();
/** This warp's exchange slots of the current round, [32][RG_EMU_SLOT_WORDS]; rounds alternate. */
uint32_t (*rg_emu_warp_slots())[RG_EMU_SLOT_WORDS];
void rg_emu_warp_next_round();
/** The same among the 128 threads of a warpgroup. */
void rg_emu_group_barrier();

typedef void (*rg_emu_entry)(const void *params);
struct rg_emu_registration {
    rg_emu_registration(const char *name, rg_emu_entry entry, int threads, size_t params_bytes);
};

#define RG_KERNEL(name, params, threads, blocks_per_sm)                                           \
    static void name(const params &p);                                                            \
    static rg_emu_registration rg_emu_register_##name(                                            \
        #name, [](const void *bytes) { name(*(const params *)bytes); }, threads, sizeof(params)); \
    static void name([[maybe_unused]] const params &p)

#define RG_TID (rg_emu_here->tid)
#define RG_THREADS (rg_emu_here->threads)
#define RG_BID (rg_emu_here->bid)
#define RG_GRID (rg_emu_here->grid)
#define RG_SHARED(name) unsigned char *const name = rg_emu_here->shared

RG_DEVICE void rg_sync(void)
{
    rg_emu_block_barrier();
}
RG_DEVICE void rg_warp_sync(void)
{
    rg_emu_warp_barrier();
}
RG_DEVICE uint32_t rg_shfl_xor_u(uint32_t v, int mask)
{
    const int lane = RG_TID & 31;
    auto slots = rg_emu_warp_slots();
    slots[lane][0] = v;
    rg_emu_warp_barrier();
    const uint32_t got = slots[lane ^ mask][0];
    rg_emu_warp_next_round();
    return got;
}
RG_DEVICE float rg_shfl_xor(float v, int mask)
{
    return rg_bits_float(rg_shfl_xor_u(rg_float_bits(v), mask));
}
RG_DEVICE uint4 rg_load_stream(const void *address)
{
    uint4 v;
    memcpy(&v, address, 16);
    return v;
}
RG_DEVICE uint4 rg_load_l2(const void *address)
{
    return rg_load_stream(address);
}
RG_DEVICE uint32_t rg_load_l2_word(const void *address)
{
    uint32_t v;
    memcpy(&v, address, 4);
    return v;
}
RG_DEVICE void rg_store16(void *address, uint4 v)
{
    memcpy(address, &v, 16);
}

/* Asynchronous copies land when their group is waited for, not before: a missing wait shows as NaN.
 * Kept per fibre in emulate.cc. */
void rg_emu_copy(void *shared, const void *global, int bytes, bool on);
void rg_emu_copy_commit();
void rg_emu_copy_wait(int left);
RG_DEVICE void rg_copy16(void *shared, const void *global, bool on)
{
    rg_emu_copy(shared, global, 16, on);
}
RG_DEVICE void rg_copy4(void *shared, const void *global, bool on)
{
    rg_emu_copy(shared, global, 4, on);
}
RG_DEVICE void rg_copy_commit(void)
{
    rg_emu_copy_commit();
}
template <int left>
RG_DEVICE void rg_copy_wait(void)
{
    rg_emu_copy_wait(left);
}

RG_DEVICE uint32_t rg_pack_bf16(float lo, float hi)
{
    return rg_bf16_from(lo) | ((uint32_t)rg_bf16_from(hi) << 16);
}
RG_DEVICE uint32_t rg_fma_bf16x2(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d = 0;
    for (int h = 0; h < 32; h += 16) {
        const double product =
            (double)rg_bf16_value((uint16_t)(a >> h)) * (double)rg_bf16_value((uint16_t)(b >> h));
        d |= (uint32_t)rg_bf16_from((float)(product + (double)rg_bf16_value((uint16_t)(c >> h))))
             << h;
    }
    return d;
}
RG_DEVICE uint32_t rg_byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
    const uint64_t both = ((uint64_t)b << 32) | a;
    uint32_t d = 0;
    for (int i = 0; i < 4; i++)
        d |= (uint32_t)((both >> (8 * ((selector >> (4 * i)) & 7u))) & 0xffu) << (8 * i);
    return d;
}
RG_DEVICE float rg_exp2(float x)
{
    return exp2f(x);
}
RG_DEVICE uint32_t rg_mul_high(uint32_t a, uint32_t b)
{
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

/* Fragments of mma.m16n8kK: PTX ISA, "Matrix fragments for mma.m16n8k16" and its neighbours. A
 * register holds `per` elements along k; a lane's place is group g = lane / 4, quad q = lane % 4.
 *   A: register 0: row g,     k = per q ..       register 1: row g + 8, same k
 *      register 2: row g,     k = K/2 + per q .. register 3: row g + 8
 *   B: register 0: column g, k = per q ..        register 1: column g, k = K/2 + per q ..
 *   C: element 0, 1: row g, columns 2q, 2q + 1; element 2, 3: row g + 8 */
template <int per, typename Value, typename Sum>
static inline void rg_emu_mma(Sum d[4], const uint32_t a[4], const uint32_t b[2], Value value)
{
    const int lane = RG_TID & 31;
    auto slots = rg_emu_warp_slots();
    memcpy(slots[lane], a, 16);
    memcpy(slots[lane] + 4, b, 8);
    rg_emu_warp_barrier();
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + (e >= 2 ? 8 : 0), column = 2 * (lane % 4) + (e & 1);
        double sum = 0;
        for (int half = 0; half < 2; half++)
            for (int q = 0; q < 4; q++)
                for (int i = 0; i < per; i++) {
                    const uint32_t wa = slots[(row % 8) * 4 + q][2 * half + (row >= 8)];
                    const uint32_t wb = slots[column * 4 + q][4 + half];
                    sum += value(wa, i) * value(wb, i);
                }
        d[e] += (Sum)sum;
    }
    rg_emu_warp_next_round();
}
RG_DEVICE void rg_mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    rg_emu_mma<2>(d, a, b, [](uint32_t w, int i) {
        return (double)rg_bf16_value((uint16_t)(w >> (16 * i)));
    });
}
RG_DEVICE double rg_emu_half(uint16_t h)
{
    const int exponent = (h >> 10) & 31, mantissa = h & 1023;
    const double magnitude =
        exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
    return h & 0x8000 ? -magnitude : magnitude;
}
RG_DEVICE void rg_mma_fp16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    rg_emu_mma<2>(d, a, b,
                  [](uint32_t w, int i) { return rg_emu_half((uint16_t)(w >> (16 * i))); });
}
RG_DEVICE void rg_mma_tf32(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    rg_emu_mma<1>(d, a, b, [](uint32_t w, int) { return (double)rg_bits_float(w & 0xffffe000u); });
}
RG_DEVICE void rg_mma_int8(uint32_t d[4], const uint32_t a[4], const uint32_t b[2])
{
    int32_t sum[4];
    memcpy(sum, d, 16);
    rg_emu_mma<4>(sum, a, b, [](uint32_t w, int i) { return (double)(int8_t)(w >> (8 * i)); });
    memcpy(d, sum, 16);
}
RG_DEVICE void rg_mma_e4m3(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    rg_emu_mma<4>(d, a, b,
                  [](uint32_t w, int i) { return (double)rg_e4m3_value((uint8_t)(w >> (8 * i))); });
}

RG_DEVICE void rg_flag_release(uint32_t *flag, uint32_t value)
{
    *(volatile uint32_t *)flag = value;
    rg_emu_progress();
}
RG_DEVICE uint32_t rg_flag_acquire(const uint32_t *flag)
{
    rg_emu_yield();
    return rg_emu_broken == RG_EMU_NO_FLAG ? 1u << 30 : *(const volatile uint32_t *)flag;
}
RG_DEVICE void rg_atomic_add_release(uint32_t *address, uint32_t value)
{
    *address += value;
    rg_emu_progress();
}
/** Clocks count reads, so that what depends on them is the same in every run. */
uint64_t rg_emu_clock();
RG_DEVICE uint64_t rg_cycles(void)
{
    return rg_emu_clock();
}
RG_DEVICE uint64_t rg_nanoseconds(void)
{
    return rg_emu_clock();
}
RG_DEVICE uint32_t rg_sm_id(void)
{
    return (uint32_t)RG_BID;
}

#endif

/* kernels/value.h: stored number formats and reproducible random data, the same on host and device.
 *
 * Reads nothing. Plain C that nvcc, gcc and g++ all take. Buffers are filled by element index, so a
 * reference can recompute any element without copying the buffer back. Never measure on zeros:
 * tensor units draw less power on them and clocks rise (an H200 does 894 TFLOP/s on zeros and 770
 * to 800 on random data).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_VALUE_H
#define RG_KERNELS_VALUE_H

#include <stdint.h>

#ifdef __CUDACC__
#define RG_BOTH static inline __host__ __device__
#else
#define RG_BOTH static inline
#endif

/** How the elements of a buffer lie in memory. */
typedef enum rg_store {
    RG_STORE_BF16,   /* 2 B */
    RG_STORE_E4M3,   /* 1 B; the NaN code 0x7f is read as 480 on every path, and never written */
    RG_STORE_INT8,   /* 1 B, -127..127, one fp32 scale per token and head */
    RG_STORE_INT4,   /* 4 bit, low nibble first; a word of bf16 scale and bf16 zero per group */
    RG_STORE_FP32,   /* 4 B */
    RG_STORE_SCALE8, /* fp32 scales for INT8 */
    RG_STORE_SCALE4, /* words for INT4: bf16 scale in the low half, bf16 zero (0..15) above it */
    RG_STORE_SMALL_BF16, /* integers -8..8: sums of up to 16 are exact in bf16 in any order */
    RG_STORE_SMALL_FP32, /* integers -1000..1000 */
    RG_STORE_RAW,        /* 32 random bits a word */
} rg_store;

/** 64 mixed bits of (seed, index): splitmix64's finaliser (Steele, Lea, Flood, OOPSLA 2014). */
RG_BOTH uint64_t rg_mix(uint64_t seed, uint64_t index)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + (index + 1) * 0xd1342543de82ef95u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** Bell-shaped noise in [-2, 2], deviation 0.577: the sum of four uniform 16-bit parts. Exact in
 * float, so host and device agree to the bit. */
RG_BOTH float rg_noise(uint64_t seed, uint64_t index)
{
    const uint64_t m = rg_mix(seed, index);
    const int32_t sum = (int32_t)((m & 0xffff) + ((m >> 16) & 0xffff) + ((m >> 32) & 0xffff) +
                                  ((m >> 48) & 0xffff));
    return (float)(sum - 131070) * (1.0f / 65536.0f);
}

RG_BOTH uint32_t rg_float_bits(float x)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = x;
    return v.u;
}

RG_BOTH float rg_bits_float(uint32_t u)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.u = u;
    return v.f;
}

/** bf16 by round to nearest even; finite or infinite input. */
RG_BOTH uint16_t rg_bf16_from(float x)
{
    const uint32_t u = rg_float_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

RG_BOTH float rg_bf16_value(uint16_t b)
{
    return rg_bits_float((uint32_t)b << 16);
}

/** Value of an fp8 e4m3 code (1 sign, 4 exponent, 3 mantissa bits, bias 7). The code's exponent and
 * mantissa put into a float's are 2^120 too small; subnormals come out right as well. */
RG_BOTH float rg_e4m3_value(uint8_t b)
{
    return rg_bits_float(((uint32_t)(b & 0x80u) << 24) | ((uint32_t)(b & 0x7fu) << 20)) *
           1.329227995784916e36f; /* 2^120 */
}

/** The stored word (4 bytes, little endian) at word_index of a buffer of this kind. */
RG_BOTH uint32_t rg_store_word(rg_store kind, uint64_t seed, uint64_t word_index)
{
    const uint64_t m = rg_mix(seed, word_index);
    switch (kind) {
    case RG_STORE_BF16: {
        const uint32_t lo = rg_bf16_from(rg_noise(seed, 2 * word_index));
        return lo | ((uint32_t)rg_bf16_from(rg_noise(seed, 2 * word_index + 1)) << 16);
    }
    case RG_STORE_E4M3: { /* magnitudes 2^-3 to 3.75: exponent codes 4 to 8 */
        uint32_t word = 0;
        for (int i = 0; i < 4; i++) {
            const uint32_t part = (uint32_t)(m >> (16 * i)) & 0xffffu;
            word |= ((0x20u + (part & 0xffu) % 0x28u) | ((part >> 8) & 0x80u)) << (8 * i);
        }
        return word;
    }
    case RG_STORE_INT8: {
        uint32_t word = 0;
        for (int i = 0; i < 4; i++)
            word |= ((((uint32_t)(m >> (16 * i)) & 0xffffu) % 255u - 127u) & 0xffu) << (8 * i);
        return word;
    }
    case RG_STORE_FP32:
        return rg_float_bits(rg_noise(seed, word_index));
    case RG_STORE_SCALE8: /* 2^-7 to 2^-6 */
        return rg_float_bits((1.0f + (float)(m & 0xffffu) / 65536.0f) / 128.0f);
    case RG_STORE_SCALE4: /* 2^-3 to 2^-2, zero 4 to 11 */
        return (uint32_t)rg_bf16_from((1.0f + (float)(m & 0x7fu) / 128.0f) / 8.0f) |
               ((uint32_t)rg_bf16_from((float)(4 + ((m >> 8) & 7u))) << 16);
    case RG_STORE_SMALL_BF16: {
        const uint32_t lo = rg_bf16_from((float)((int)(m % 17) - 8));
        return lo | ((uint32_t)rg_bf16_from((float)((int)((m >> 32) % 17) - 8)) << 16);
    }
    case RG_STORE_SMALL_FP32:
        return rg_float_bits((float)((int)(m % 2001) - 1000));
    case RG_STORE_INT4:
    case RG_STORE_RAW:
        break;
    }
    return (uint32_t)m;
}

/** Division by a number fixed at launch, exact for numerators below 2^31: with s = floor(log2 d)
 * and multiplier m = ceil(2^(32+s)/d) the error m d - 2^(32+s) is below d <= 2^(s+1), so that n
 * times it stays below 2^(32+s) (Granlund and Montgomery, PLDI 1994). Multiplier 0: a power of two.
 */
typedef struct rg_divisor {
    uint32_t multiplier, shift;
} rg_divisor;

RG_BOTH rg_divisor rg_divisor_make(uint32_t d)
{
    rg_divisor r = {0, 0};
    while ((2u << r.shift) <= d && r.shift < 31)
        r.shift++;
    if ((1u << r.shift) != d)
        r.multiplier = (uint32_t)((((uint64_t)1 << (32 + r.shift)) + d - 1) / d);
    return r;
}

#endif

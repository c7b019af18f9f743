/* core/rng.h: seeded random streams, the same on every machine.
 *
 * Reads nothing. xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", ACM TOMS 47(4), 2021) seeded by splitmix64. A stream is picked by (seed, stream), so
 * parts of a simulation draw independently of each other's order.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_RNG_H
#define RG_CORE_RNG_H

#include <math.h>
#include <stdint.h>

typedef struct rg_rng {
    uint64_t state[4];
} rg_rng;

static inline uint64_t rg_rng_splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void rg_rng_seed(rg_rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t x = seed;
    uint64_t y = rg_rng_splitmix(&x) ^ (stream * 0xda942042e4dd58b5u);
    for (int i = 0; i < 4; i++)
        rng->state[i] = rg_rng_splitmix(&y);
}

static inline uint64_t rg_rng_rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static inline uint64_t rg_rng_next(rg_rng *rng)
{
    uint64_t *s = rng->state;
    const uint64_t result = rg_rng_rotl(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rg_rng_rotl(s[3], 45);
    return result;
}

/** Uniform in [0, 1), 53 bits. */
static inline double rg_rng_real(rg_rng *rng)
{
    return (double)(rg_rng_next(rng) >> 11) * 0x1.0p-53;
}

/** Uniform in 0 .. n-1, n > 0, n < 2^32 (multiply-shift; bias below n/2^32). */
static inline uint32_t rg_rng_below(rg_rng *rng, uint32_t n)
{
    return (uint32_t)(((rg_rng_next(rng) >> 32) * (uint64_t)n) >> 32);
}

/** Exponential with mean 1. */
static inline double rg_rng_exponential(rg_rng *rng)
{
    return -log1p(-rg_rng_real(rng));
}

/** Normal with mean 0 and deviation 1 (Box-Muller, one value per call). */
double rg_rng_normal(rg_rng *rng);
/** Gamma with the given shape and mean shape (Marsaglia and Tsang, ACM TOMS 26(3), 2000). */
double rg_rng_gamma(rg_rng *rng, double shape);

#endif

/* noc/knuth.c: ran_array and ranf_array as one recurrence on whole numbers. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/knuth.h"

enum { LONG = RG_KNUTH_LAG, SHORT = 37, SEPARATION = 70 };
static const uint64_t whole_mask = (UINT64_C(1) << 30) - 1, real_mask = (UINT64_C(1) << 52) - 1;

/* Whole numbers are subtracted, real ones added. */
static uint64_t combine(const rg_knuth_stream *s, uint64_t a, uint64_t b)
{
    return (s->mask == whole_mask ? a - b : a + b) & s->mask;
}

/* count numbers into out, at least LONG. */
static void fill(rg_knuth_stream *s, uint64_t *out, int count)
{
    int i = 0, j = 0;
    for (; j < LONG; j++)
        out[j] = s->lag[j];
    for (; j < count; j++)
        out[j] = combine(s, out[j - LONG], out[j - SHORT]);
    for (; i < SHORT; i++, j++)
        s->lag[i] = combine(s, out[j - LONG], out[j - SHORT]);
    for (; i < LONG; i++, j++)
        s->lag[i] = combine(s, out[j - LONG], s->lag[i - SHORT]);
}

/* x^(2^70 + seed) modulo the recurrence's polynomial, bit by bit of the seed. */
static void start(rg_knuth_stream *s, uint64_t mask, uint64_t first, uint64_t seed)
{
    uint64_t x[2 * LONG - 1], value = first;
    s->mask = mask;
    for (int j = 0; j < LONG; j++) {
        x[j] = value;
        value *= 2;
        if (value > mask)
            value -= mask - 1;
    }
    x[1]++;
    for (int t = SEPARATION - 1; t > 0;) {
        for (int j = LONG - 1; j > 0; j--) {
            x[2 * j] = x[j];
            x[2 * j - 1] = 0;
        }
        for (int j = 2 * LONG - 2; j >= LONG; j--) {
            x[j - (LONG - SHORT)] = combine(s, x[j - (LONG - SHORT)], x[j]);
            x[j - LONG] = combine(s, x[j - LONG], x[j]);
        }
        if (seed & 1) {
            for (int j = LONG; j > 0; j--)
                x[j] = x[j - 1];
            x[0] = x[LONG];
            x[SHORT] = combine(s, x[SHORT], x[LONG]);
        }
        if (seed > 0)
            seed /= 2;
        else
            t--;
    }
    for (int j = 0; j < LONG; j++)
        s->lag[(j + LONG - SHORT) % LONG] = x[j];
    for (int warm = 0; warm < 10; warm++)
        fill(s, x, 2 * LONG - 1);
    s->next = LONG;
}

static uint64_t draw(rg_knuth_stream *s)
{
    if (s->next == LONG) {
        fill(s, s->batch, RG_KNUTH_BATCH);
        s->next = 0;
    }
    return s->batch[s->next++];
}

void rg_knuth_seed(rg_knuth *k, uint64_t seed)
{
    const uint64_t bits = seed & whole_mask;
    start(&k->whole, whole_mask, (seed + 2) & (whole_mask - 1), bits);
    start(&k->real, real_mask, 2 * (bits + 2), bits);
}

uint32_t rg_knuth_whole(rg_knuth *k)
{
    return (uint32_t)draw(&k->whole);
}

double rg_knuth_real(rg_knuth *k)
{
    return (double)draw(&k->real) * 0x1.0p-52;
}

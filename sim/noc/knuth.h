/* noc/knuth.h: the lagged Fibonacci generators by which BookSim 2 draws.
 *
 * Reads core. Source: Knuth, "The Art of Computer Programming", volume 2, third edition, ninth
 * printing, section 3.6, programs ran_array and ranf_array: lags 100 and 37, the first 100 of each
 * 1009 numbers are used. Real numbers are kept as multiples of 2^-52, which makes the two programs
 * one.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_KNUTH_H
#define RG_NOC_KNUTH_H

#include <stdint.h>

enum { RG_KNUTH_LAG = 100, RG_KNUTH_BATCH = 1009 };

typedef struct rg_knuth_stream {
    uint64_t lag[RG_KNUTH_LAG], batch[RG_KNUTH_BATCH];
    uint64_t mask; /* 2^30 - 1 or 2^52 - 1 */
    int next;      /* in the batch */
} rg_knuth_stream;

/** Both generators from one seed, as BookSim seeds them. */
typedef struct rg_knuth {
    rg_knuth_stream whole, real;
} rg_knuth;

void rg_knuth_seed(rg_knuth *k, uint64_t seed);
/** From 0 to 2^30 - 1. */
uint32_t rg_knuth_whole(rg_knuth *k);
/** From 0 to below 1. */
double rg_knuth_real(rg_knuth *k);

#endif

/* kernels/micro.h: small kernels that each ask one question of the hardware.
 *
 * Reads value.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_MICRO_H
#define RG_KERNELS_MICRO_H

#include "value.h"

enum {
    RG_STAMP_THREADS = 32,
    RG_MICRO_THREADS = 256,
    RG_TENSOR_SUMS = 8,   /* independent products of a warp */
    RG_TENSOR_WORDS = 20, /* of a lane: A 4, and 2 for B of each product */
    RG_SHARED_READS_BYTES = 32768,
    RG_PING_THREADS = 32,
};

/** Clock and time on one SM. */
typedef struct rg_stamp {
    uint64_t cycles, ns;
    uint32_t sm, unused;
} rg_stamp;
typedef struct rg_stamp_params {
    rg_stamp *out;
} rg_stamp_params;

/** Streams: read sums a; write fills a; copy a = b; triad a = b + 3 c (floats). Each pass covers
 * all vectors. fmas: multiply-adds for each float read (read only). */
typedef struct rg_stream_params {
    uint8_t *a;
    const uint8_t *b, *c;
    uint32_t *sums;  /* read: one word a block */
    int64_t vectors; /* of 16 bytes, in each array */
    int32_t passes;
    int32_t fmas;
} rg_stream_params;

/** Runs of equal length read in the order of a table, summed. */
typedef struct rg_gather_params {
    const uint8_t *from;
    const uint32_t *order; /* [runs] */
    uint32_t *sums;        /* one word a block */
    int64_t chunks;        /* of 16 bytes, in all runs; below 2^31 */
    int32_t run_chunks;
    rg_divisor by_run;
} rg_gather_params;

/** One thread follows next[i] for so many steps, past L1. */
typedef struct rg_chase_params {
    const uint32_t *next; /* 32 words for each place: one every 128 bytes */
    uint32_t *end;
    int32_t steps;
} rg_chase_params;

/** Reads of shared memory, 16 bytes a lane; stride 1: no bank conflicts, 2, 4, 8: that many ways.
 */
typedef struct rg_shared_params {
    uint32_t *sums; /* one word a block */
    int32_t loops, stride;
} rg_shared_params;

/** Products on registers: loops x RG_TENSOR_SUMS MMAs a warp on random fragments. */
typedef struct rg_tensor_params {
    const uint32_t *fragments; /* [32 lanes][RG_TENSOR_WORDS] */
    float *out;                /* [blocks][threads][4]: all products summed */
    int32_t loops;
} rg_tensor_params;

/** Products of tiles in shared memory by warpgroup MMA (sm_90a): loops x 4 m64n256 steps each. */
typedef struct rg_tensor90_params {
    const uint8_t *tiles; /* 64 + 256 rows of 128 bytes, as they lie in shared memory */
    float *out;           /* [blocks][threads] */
    int32_t loops;
} rg_tensor90_params;
enum { RG_TENSOR90_THREADS = 256, RG_TENSOR90_BYTES = 320 * 128 };

/** Grid barriers in one cooperative launch. */
typedef struct rg_barrier_params {
    uint32_t *arrived; /* zero at first */
    uint32_t *count;   /* barriers passed by block 0, of all launches */
    int32_t rounds;
} rg_barrier_params;

/** Two blocks answer each other's flag. */
typedef struct rg_ping_params {
    uint32_t *flags; /* two, and two counts of rounds, 128 bytes apart, zero at first */
    int32_t rounds;
} rg_ping_params;

typedef struct rg_empty_params {
    uint32_t *unused;
} rg_empty_params;

#ifdef __cplusplus
extern "C" {
#endif
/** Sum of the words of vectors, each multiplied by passes, modulo 2^32. */
uint32_t rg_stream_reference_sum(const uint32_t *words, int64_t count, int32_t passes);
/** Row and column of the sum of one loop's products in double. store BF16, E4M3, INT8, FP32 (as
 * tf32) or RAW (as fp16). */
double rg_tensor_reference(const uint32_t *fragments, rg_store store, int row, int column);
#ifdef __cplusplus
}
#endif

#endif

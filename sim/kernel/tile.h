/* kernel/tile.h: which tiles a product is cut into, and how long the SMs are busy with them.
 *
 * Reads kernel/device.h. Used by gemm.c. Y[m,n] = X[m,k] W[n,k] is cut into g x h tiles of a x b, K
 * into s parts; C = g h s work units go over N SMs in ceil(C / N) waves. In a step of 128 bytes of
 * K an SM computes and loads in overlap, then does what its ordinary lanes must:
 *
 *   step   = max(a b c_mma, a c_x + b c_w) + b c_convert + a b c_promote      cycles
 *   cycles = waves ceil(k / (s k_step)) step + (waves - 1) wave
 *
 * The first wave's fill and drain belong to the kernel's start. Libraries differ in the tiles they
 * have and in how they choose; the sets say which. Wave quantisation: NVIDIA, "Matrix
 * Multiplication Background User's Guide" (2023), sections on tile and wave quantisation.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNEL_TILE_H
#define RG_KERNEL_TILE_H

#include "kernel/device.h"

/** Kernels that a library chooses from. */
typedef enum rg_tile_set {
    /* Warp-group products: a side in steps of 8, whatever fills the waves best (CUTLASS, wgmma
     * shapes), K in 1, 2, 4 ... parts. Two SMs of a cluster load what both need once (TMA
     * multicast; NVIDIA Hopper tuning guide, "Thread block clusters"). */
    RG_TILES_FINE,
    /* Products from registers (mma.sync): cuBLAS has tiles of 256 x 128 down to 64 x 64 and a few
     * flat ones. It goes below 256 x 128 only where all tiles run in one wave: on the A100 rows of
     * the measured tables 384 x 10240 takes two waves of large tiles, not three of 128 x 128, up to
     * K = 5120, and larger K is split. */
    RG_TILES_DENSE,
    /* TensorRT-LLM, cutlass_heuristic.cpp, get_candidate_tiles: INT8_ONLY, no split; a kernel
     * without matrix units below 5 rows. */
    RG_TILES_INT8,
    /* The same, WEIGHT_ONLY, K in up to 7 parts that are summed one after the other; the plug-in
     * times all and keeps the best. */
    RG_TILES_WEIGHT_ONLY,
    /* DeepGEMM as TensorRT-LLM calls it (fp8_blockscale_gemm, get_best_gemm_config): 64 or 128
     * rows, columns in steps of 8 by the fewest waves, then the fullest last one, whatever the
     * time; below 32 rows X and W change places. K stays in one piece. */
    RG_TILES_BLOCK,
    /* Its kernel for mma.sync: 32 x 128 and nothing else. */
    RG_TILES_BLOCK_FLAT,
} rg_tile_set;

enum { RG_TILE_SPLITS = 12 };

/* One product on one device. */
typedef struct rg_tile_product {
    rg_tile_set set;
    double m, n, k, batch;
    double units;              /* SMs */
    double k_step;             /* elements of K in a step: 128 bytes */
    double mma_cycles;         /* of a step, one element of the tile */
    double x_cycles, w_cycles; /* of a step, from L2: a row of X, a column of W */
    double convert_cycles;     /* of a step: a column of weights brought to the product's type */
    double promote_cycles;     /* of a step: an element added to what earlier steps summed */
    double empty_cycles;       /* of a step: a row beyond m in a block-scaled kernel's last tile */
    double wave_cycles;
} rg_tile_product;

/** Least SM time for each number of K parts that the set has; INFINITY where it has none. */
typedef struct rg_tile_choice {
    const double *parts; /* [splits] */
    int splits;
    double cycles[RG_TILE_SPLITS]; /* of the SMs, whole product */
    bool compute_bound[RG_TILE_SPLITS];
} rg_tile_choice;

void rg_tile_search(const rg_tile_product *product, rg_tile_choice *out);

#endif

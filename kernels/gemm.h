/* kernels/gemm.h: Y[m,n] = factor X[m,k] W[n,k], X and W with k innermost, Y in bf16.
 *
 * Reads value.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_GEMM_H
#define RG_KERNELS_GEMM_H

#include "value.h"

typedef struct rg_gemm_params {
    const uint8_t *x, *w; /* [m][k], [n][k] */
    uint16_t *y;          /* bf16 [m][n] */
    int32_t m, n, k;      /* k elements are a multiple of 16 bytes */
    float factor;
} rg_gemm_params;

enum {
    RG_GEMM_THREADS = 128,
    RG_GEMM_STAGES = 4,
    RG_GEMM_ROW_BYTES = 64, /* of a tile, along k */
    RG_GEMM_RASTER = 8,     /* tiles along m that neighbouring blocks share W in */
};

/** Tile of output that a block computes, in an order that keeps RASTER row tiles together. */
RG_BOTH void rg_gemm_tile(int32_t index, int32_t tiles_m, int32_t tiles_n, int32_t *tile_m,
                          int32_t *tile_n)
{
    const int32_t band = index / (RG_GEMM_RASTER * tiles_n) * RG_GEMM_RASTER;
    const int32_t height = tiles_m - band < RG_GEMM_RASTER ? tiles_m - band : RG_GEMM_RASTER;
    const int32_t in_band = index - band * tiles_n;
    *tile_m = band + in_band % height;
    *tile_n = in_band / height;
}

#ifdef __cplusplus
#define RG_ALIGN128 alignas(128)
#else
#define RG_ALIGN128 _Alignas(128)
#endif

/* The kernel for sm_90a: TMA brings tiles, warpgroup MMA multiplies them. */
typedef struct rg_gemm_sm90_params {
    RG_ALIGN128 uint64_t x_map[16]; /* CUtensorMap */
    RG_ALIGN128 uint64_t w_map[16];
    uint16_t *y;
    int32_t m, n, k;
    float factor;
} rg_gemm_sm90_params;

enum {
    RG_GEMM90_THREADS = 384, /* one warpgroup loads, two multiply */
    RG_GEMM90_M = 128,
    RG_GEMM90_N = 256,
    RG_GEMM90_ROW_BYTES = 128,
    RG_GEMM90_STAGES = 4,
    RG_GEMM90_STAGE_BYTES = (RG_GEMM90_M + RG_GEMM90_N) * RG_GEMM90_ROW_BYTES,
    RG_GEMM90_SHARED_BYTES = RG_GEMM90_STAGES * RG_GEMM90_STAGE_BYTES + 1024,
};

#ifdef __cplusplus
extern "C"
#endif
    /** Row of Y in double; out [n]. store is BF16, E4M3 or INT8. */
    void
    rg_gemm_reference_row(const rg_gemm_params *p, rg_store store, int32_t row, double *out);

#endif

/* kernels/gemm.cu: matrix product on mma.sync tensor cores, and the reference of all products.
 *
 * Reads gemm.h, dev.h. Both operands have k innermost, so a lane takes 16 bytes of a row as the
 * fragments of two MMA steps at once (k is permuted alike in both), without ldmatrix and without
 * bank conflicts at 64 bytes a row. Four warps, 2 x 2, over a tile of 128 x 128 or 64 x 64;
 * cp.async keeps three stages under way.
 */
// SPDX-License-Identifier: Apache-2.0
#include "gemm.h"

#ifdef RG_HOST

static double element(rg_store store, const uint8_t *row, int32_t i)
{
    if (store == RG_STORE_BF16)
        return rg_bf16_value((uint16_t)(row[2 * i] | (row[2 * i + 1] << 8)));
    return store == RG_STORE_E4M3 ? (double)rg_e4m3_value(row[i]) : (double)(int8_t)row[i];
}

/* y_j = factor sum_i x_i w_ji, summed in double */
void rg_gemm_reference_row(const rg_gemm_params *p, rg_store store, int32_t row, double *out)
{
    const int64_t row_bytes = (int64_t)p->k * (store == RG_STORE_BF16 ? 2 : 1);
    for (int32_t j = 0; j < p->n; j++) {
        double sum = 0;
        for (int32_t i = 0; i < p->k; i++)
            sum +=
                element(store, p->x + row * row_bytes, i) * element(store, p->w + j * row_bytes, i);
        out[j] = p->factor * sum;
    }
}

#else
#include "dev.h"

/** d += a b in the type of the operands; int8 sums are kept as int32 bits in the same registers. */
template <rg_store store>
RG_DEVICE void multiply(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    if constexpr (store == RG_STORE_BF16) {
        rg_mma_bf16(d, a, b);
    } else if constexpr (store == RG_STORE_E4M3) {
        rg_mma_e4m3(d, a, b);
    } else {
        uint32_t sum[4];
        RG_UNROLL
        for (int e = 0; e < 4; e++)
            sum[e] = rg_float_bits(d[e]);
        rg_mma_int8(sum, a, b);
        RG_UNROLL
        for (int e = 0; e < 4; e++)
            d[e] = rg_bits_float(sum[e]);
    }
}

template <rg_store store, int tile_m, int tile_n>
struct gemm {
    static constexpr int row_bytes = RG_GEMM_ROW_BYTES, stages = RG_GEMM_STAGES;
    static constexpr int stage_bytes = (tile_m + tile_n) * row_bytes;
    static constexpr int rows = tile_m / 32, columns = tile_n / 16; /* MMA tiles of a warp */
    static constexpr int element_bytes = store == RG_STORE_BF16 ? 2 : 1;

    /** One stage: 64 bytes of k of tile_m rows of X and tile_n rows of W; zeros past the edges. */
    static RG_DEVICE_MEMBER void load(const rg_gemm_params &p, int m0, int n0, int step,
                                      unsigned char *stage)
    {
        const int64_t pitch = (int64_t)p.k * element_bytes;
        for (int i = RG_TID; i < (tile_m + tile_n) * 4; i += RG_GEMM_THREADS) {
            const int row = i / 4, chunk = i % 4;
            const bool is_x = row < tile_m;
            const int at = is_x ? m0 + row : n0 + row - tile_m;
            const int64_t byte = (int64_t)step * row_bytes + chunk * 16;
            const bool on = at < (is_x ? p.m : p.n) && byte < pitch;
            const uint8_t *from = is_x ? p.x : p.w;
            rg_copy16(stage + row * row_bytes + chunk * 16, from + (on ? at * pitch + byte : 0),
                      on);
        }
    }

    static RG_DEVICE_MEMBER void compute(const unsigned char *stage, float (*d)[columns][4])
    {
        const int warp = RG_TID / 32, g = RG_TID % 32 / 4, quad = RG_TID % 4;
        const unsigned char *x = stage + (warp / 2 * (tile_m / 2) + g) * row_bytes + quad * 16;
        const unsigned char *w =
            stage + (tile_m + warp % 2 * (tile_n / 2) + g) * row_bytes + quad * 16;
        uint4 b[columns];
        RG_UNROLL
        for (int c = 0; c < columns; c++)
            b[c] = *(const uint4 *)(w + c * 8 * row_bytes);
        RG_UNROLL
        for (int r = 0; r < rows; r++) {
            const uint4 lo = *(const uint4 *)(x + r * 16 * row_bytes);
            const uint4 hi = *(const uint4 *)(x + (r * 16 + 8) * row_bytes);
            const uint32_t a0[4] = {lo.x, hi.x, lo.y, hi.y}, a1[4] = {lo.z, hi.z, lo.w, hi.w};
            RG_UNROLL
            for (int c = 0; c < columns; c++) {
                const uint32_t b0[2] = {b[c].x, b[c].y}, b1[2] = {b[c].z, b[c].w};
                multiply<store>(d[r][c], a0, b0);
                multiply<store>(d[r][c], a1, b1);
            }
        }
    }

    static RG_DEVICE_MEMBER void write(const rg_gemm_params &p, int m0, int n0,
                                       float (*d)[columns][4])
    {
        const int warp = RG_TID / 32, g = RG_TID % 32 / 4, quad = RG_TID % 4;
        RG_UNROLL
        for (int r = 0; r < rows; r++)
            RG_UNROLL
        for (int c = 0; c < columns; c++)
            RG_UNROLL
        for (int half = 0; half < 2; half++) {
            const int row = m0 + warp / 2 * (tile_m / 2) + r * 16 + half * 8 + g;
            const int column = n0 + warp % 2 * (tile_n / 2) + c * 8 + 2 * quad;
            float v[2];
            RG_UNROLL
            for (int e = 0; e < 2; e++) {
                v[e] = d[r][c][2 * half + e];
                if constexpr (store == RG_STORE_INT8)
                    v[e] = (float)(int32_t)rg_float_bits(v[e]);
            }
            if (row >= p.m || column >= p.n)
                continue;
            uint16_t *to = p.y + (int64_t)row * p.n + column;
            const uint32_t pair = rg_pack_bf16(v[0] * p.factor, v[1] * p.factor);
            if (p.n % 2 == 0) {
                *(uint32_t *)to = pair;
            } else {
                to[0] = (uint16_t)pair;
                if (column + 1 < p.n)
                    to[1] = (uint16_t)(pair >> 16);
            }
        }
    }

    static RG_DEVICE_MEMBER void run(const rg_gemm_params &p, unsigned char *shared)
    {
        const int tiles_m = (p.m + tile_m - 1) / tile_m, tiles_n = (p.n + tile_n - 1) / tile_n;
        const int steps = (p.k * element_bytes + row_bytes - 1) / row_bytes;
        int at_m, at_n;
        rg_gemm_tile(RG_BID, tiles_m, tiles_n, &at_m, &at_n);
        const int m0 = at_m * tile_m, n0 = at_n * tile_n;
        for (int s = 0; s < stages - 1; s++) {
            if (s < steps)
                load(p, m0, n0, s, shared + s * stage_bytes);
            rg_copy_commit();
        }
        float d[rows][columns][4] = {};
        for (int s = 0; s < steps; s++) {
            rg_copy_wait<stages - 2>();
            rg_sync();
            const int next = s + stages - 1;
            if (next < steps)
                load(p, m0, n0, next, shared + next % stages * stage_bytes);
            rg_copy_commit();
            compute(shared + s % stages * stage_bytes, d);
        }
        write(p, m0, n0, d);
    }
};

#define RG_GEMM(name, store, tile_m, tile_n, blocks)         \
    RG_KERNEL(name, rg_gemm_params, RG_GEMM_THREADS, blocks) \
    {                                                        \
        RG_SHARED(shared);                                   \
        gemm<store, tile_m, tile_n>::run(p, shared);         \
    }

RG_GEMM(rg_gemm_bfloat16_128, RG_STORE_BF16, 128, 128, 2)
RG_GEMM(rg_gemm_bfloat16_64, RG_STORE_BF16, 64, 64, 4)
/* sm_90 runs fp8 mma.sync by way of fp16 and needs registers for it */
RG_GEMM(rg_gemm_fp8_128, RG_STORE_E4M3, 128, 64, 2)
RG_GEMM(rg_gemm_fp8_64, RG_STORE_E4M3, 64, 64, 3)
RG_GEMM(rg_gemm_int8_128, RG_STORE_INT8, 128, 128, 2)
RG_GEMM(rg_gemm_int8_64, RG_STORE_INT8, 64, 64, 4)

#endif

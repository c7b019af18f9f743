/* kernels/gemm_sm90a.cu: matrix product with tensor copies and warpgroup MMA (Hopper).
 *
 * Reads gemm.h, dev_sm90.h; reference: rg_gemm_reference_row in gemm.cu. One warpgroup brings tiles
 * of 128 bytes along k through a ring of four stages, two multiply 64 x 256 each. Blocks stay and
 * take tile after tile, so the next tile is on its way while the last one is written.
 */
// SPDX-License-Identifier: Apache-2.0
#include "gemm.h"

#ifndef RG_HOST
#include "dev_sm90.h"

enum { STEP_BYTES = 32, STEPS = RG_GEMM90_ROW_BYTES / STEP_BYTES };

template <rg_store store>
struct gemm90 {
    static constexpr int element_bytes = store == RG_STORE_BF16 ? 2 : 1;
    static constexpr int tile_k = RG_GEMM90_ROW_BYTES / element_bytes;
    static constexpr int stages = RG_GEMM90_STAGES;

    unsigned char *tiles;
    uint64_t *full, *empty; /* [stages] */
    int tile_count, tiles_m, tiles_n, k_tiles;

    RG_DEVICE_MEMBER void produce(const rg_gemm_sm90_params &p) const
    {
        int count = 0;
        for (int tile = RG_BID; tile < tile_count; tile += RG_GRID) {
            int at_m, at_n;
            rg_gemm_tile(tile, tiles_m, tiles_n, &at_m, &at_n);
            for (int k = 0; k < k_tiles; k++, count++) {
                const int stage = count % stages;
                unsigned char *x = tiles + stage * RG_GEMM90_STAGE_BYTES;
                rg_barrier_wait(empty + stage, (uint32_t)(count / stages & 1) ^ 1u);
                rg_barrier_expect(full + stage, RG_GEMM90_STAGE_BYTES);
                rg_tensor_copy(x, p.x_map, k * tile_k, at_m * RG_GEMM90_M, full + stage);
                rg_tensor_copy(x + RG_GEMM90_M * RG_GEMM90_ROW_BYTES, p.w_map, k * tile_k,
                               at_n * RG_GEMM90_N, full + stage);
            }
        }
    }

    RG_DEVICE_MEMBER void consume(const rg_gemm_sm90_params &p, int half) const
    {
        int count = 0;
        for (int tile = RG_BID; tile < tile_count; tile += RG_GRID) {
            int at_m, at_n;
            rg_gemm_tile(tile, tiles_m, tiles_n, &at_m, &at_n);
            float d[128];
            RG_UNROLL
            for (int i = 0; i < 128; i++)
                d[i] = 0;
            for (int k = 0; k < k_tiles; k++, count++) {
                const int stage = count % stages;
                const unsigned char *x = tiles + stage * RG_GEMM90_STAGE_BYTES;
                rg_barrier_wait(full + stage, (uint32_t)(count / stages & 1));
                multiply(x + half * 64 * RG_GEMM90_ROW_BYTES, x + RG_GEMM90_M * RG_GEMM90_ROW_BYTES,
                         d);
                /* the stage before is free once at most this one's products are under way */
                rg_wgmma_wait<1>();
                if (k > 0 && RG_TID % 32 == 0)
                    rg_barrier_arrive(empty + (count - 1) % stages);
            }
            rg_wgmma_wait<0>();
            if (RG_TID % 32 == 0)
                rg_barrier_arrive(empty + (count - 1) % stages);
            write(p, at_m * RG_GEMM90_M + half * 64, at_n * RG_GEMM90_N, d);
        }
    }

    static RG_DEVICE_MEMBER void multiply(const unsigned char *x, const unsigned char *w, float *d)
    {
        const uint32_t x_address = rg_smem_address(x), w_address = rg_smem_address(w);
        rg_wgmma_begin();
        RG_UNROLL
        for (int s = 0; s < STEPS; s++) {
            const uint64_t a = rg_wgmma_rows(x_address + s * STEP_BYTES);
            const uint64_t b = rg_wgmma_rows(w_address + s * STEP_BYTES);
            if constexpr (store == RG_STORE_BF16)
                rg_wgmma_bf16(d, a, b);
            else
                rg_wgmma_e4m3(d, a, b);
        }
        rg_wgmma_commit();
    }

    static RG_DEVICE_MEMBER void write(const rg_gemm_sm90_params &p, int m0, int n0, const float *d)
    {
        const int thread = RG_TID % 128;
        const int row0 = m0 + thread / 32 * 16 + thread % 32 / 4, column0 = n0 + thread % 4 * 2;
        RG_UNROLL
        for (int j = 0; j < 32; j++)
            RG_UNROLL
        for (int half = 0; half < 2; half++) {
            const int row = row0 + 8 * half, column = column0 + 8 * j;
            if (row < p.m && column < p.n) /* n is even */
                *(uint32_t *)(p.y + (int64_t)row * p.n + column) = rg_pack_bf16(
                    d[4 * j + 2 * half] * p.factor, d[4 * j + 2 * half + 1] * p.factor);
        }
    }

    static RG_DEVICE_MEMBER void run(const rg_gemm_sm90_params &p, unsigned char *shared)
    {
        gemm90 self;
        self.tiles = shared;
        self.full = (uint64_t *)(shared + stages * RG_GEMM90_STAGE_BYTES);
        self.empty = self.full + stages;
        self.tiles_m = (p.m + RG_GEMM90_M - 1) / RG_GEMM90_M;
        self.tiles_n = (p.n + RG_GEMM90_N - 1) / RG_GEMM90_N;
        self.tile_count = self.tiles_m * self.tiles_n;
        self.k_tiles = (p.k + tile_k - 1) / tile_k;
        if (RG_TID == 0) {
            for (int s = 0; s < stages; s++) {
                rg_barrier_init(self.full + s, 1);
                rg_barrier_init(self.empty + s, 8); /* a lane of each multiplying warp */
            }
            rg_barrier_fence();
            rg_tensor_prefetch(p.x_map);
            rg_tensor_prefetch(p.w_map);
        }
        rg_sync();
        const int group = RG_TID / 128;
        if (group == 0) {
            rg_registers_give<40>();
            if (RG_TID == 0)
                self.produce(p);
        } else {
            rg_registers_take<232>();
            self.consume(p, group - 1);
        }
    }
};

RG_KERNEL(rg_gemm_sm90_bfloat16, rg_gemm_sm90_params, RG_GEMM90_THREADS, 1)
{
    RG_SHARED(shared);
    gemm90<RG_STORE_BF16>::run(p, shared);
}

RG_KERNEL(rg_gemm_sm90_fp8, rg_gemm_sm90_params, RG_GEMM90_THREADS, 1)
{
    RG_SHARED(shared);
    gemm90<RG_STORE_E4M3>::run(p, shared);
}

#endif

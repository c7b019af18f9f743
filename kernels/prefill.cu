/* kernels/prefill.cu: attention of whole prompts on tensor cores, and its reference.
 *
 * Reads prefill.h, decode_tile.h (for the order in which lanes take rows). A block has 64 query
 * rows of one head, a warp 16 of them with their running softmax in registers; tiles of 64 tokens
 * of K and V come in by cp.async. Blocks with the longest rows start first, as causal work is a
 * triangle.
 */
// SPDX-License-Identifier: Apache-2.0
#include "prefill.h"

#ifdef RG_HOST

#include <math.h>
#include <stdlib.h>

/* out = sum_t softmax_t(scale q k_t) v_t over t <= row (causal) or all t, in double */
void rg_prefill_reference_row(const rg_prefill_params *p, int32_t head_dim, int32_t sequence,
                              int32_t row, int32_t head, double *out)
{
    const int32_t kv_head = head / (p->heads / p->kv_heads);
    const int32_t tokens = p->causal ? row + 1 : p->seq;
    const int64_t first = (int64_t)sequence * p->seq;
    const uint16_t *q = p->q + ((first + row) * p->heads + head) * head_dim;
    double *score = malloc(sizeof *score * (size_t)tokens);
    double most = -INFINITY, sum = 0;
    for (int32_t d = 0; d < head_dim; d++)
        out[d] = 0;
    for (int32_t t = 0; score && t < tokens; t++) {
        const uint16_t *k = p->k + ((first + t) * p->kv_heads + kv_head) * head_dim;
        score[t] = 0;
        for (int32_t d = 0; d < head_dim; d++)
            score[t] += (double)rg_bf16_value(q[d]) * rg_bf16_value(k[d]);
        score[t] *= p->scale;
        most = fmax(most, score[t]);
    }
    for (int32_t t = 0; score && t < tokens; t++) {
        const uint16_t *v = p->v + ((first + t) * p->kv_heads + kv_head) * head_dim;
        const double weight = exp2(score[t] - most);
        sum += weight;
        for (int32_t d = 0; d < head_dim; d++)
            out[d] += weight * rg_bf16_value(v[d]);
    }
    for (int32_t d = 0; d < head_dim; d++)
        out[d] /= sum;
    free(score);
}

#else
#include "decode_tile.h"

template <int head_dim>
struct prefill {
    static constexpr int pitch = 2 * head_dim + 32, tile = RG_PREFILL_TILE;
    static constexpr int stage_bytes = 2 * tile * pitch;
    static constexpr int steps = head_dim / 16; /* MMA steps of a score */
    static constexpr int columns = tile / 8;    /* score tiles of a warp */

    static RG_DEVICE_MEMBER void load(const rg_prefill_params &p, int64_t first, int kv_head,
                                      int token0, unsigned char *stage)
    {
        constexpr int chunks = head_dim / 8;
        for (int i = RG_TID; i < 2 * tile * chunks; i += RG_PREFILL_THREADS) {
            const int row = i / chunks, chunk = i % chunks, token = token0 + row % tile;
            const bool on = token < p.seq;
            const uint16_t *from = row < tile ? p.k : p.v;
            rg_copy16(
                stage + row * pitch + chunk * 16,
                from + (on ? ((first + token) * p.kv_heads + kv_head) * head_dim + chunk * 8 : 0),
                on);
        }
    }

    /** A fragments of the warp's rows, dimensions in the order of 16-byte vectors. */
    static RG_DEVICE_MEMBER void queries(const rg_prefill_params &p, int64_t first, int head,
                                         int row0, uint32_t (*a)[4])
    {
        const int g = RG_TID % 32 / 4, quad = RG_TID % 4;
        RG_UNROLL
        for (int half = 0; half < 2; half++) {
            const int row = row0 + g + 8 * half;
            RG_UNROLL
            for (int group = 0; group < steps / 2; group++) {
                uint4 v = make_uint4(0, 0, 0, 0);
                if (row < p.seq)
                    v = *(const uint4 *)(p.q + ((first + row) * p.heads + head) * head_dim +
                                         (group * 4 + quad) * 8);
                a[2 * group][half] = v.x, a[2 * group][2 + half] = v.y;
                a[2 * group + 1][half] = v.z, a[2 * group + 1][2 + half] = v.w;
            }
        }
    }

    static RG_DEVICE_MEMBER void scores(const unsigned char *stage, const uint32_t (*a)[4],
                                        float (*c)[4])
    {
        const int g = RG_TID % 32 / 4, quad = RG_TID % 4;
        RG_UNROLL
        for (int j = 0; j < columns; j++) {
            const unsigned char *key = stage + (8 * j + rg_token(g)) * pitch + quad * 16;
            c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
            RG_UNROLL
            for (int group = 0; group < steps / 2; group++) {
                const uint4 v = *(const uint4 *)(key + group * 64);
                const uint32_t b0[2] = {v.x, v.y}, b1[2] = {v.z, v.w};
                rg_mma_bf16(c[j], a[2 * group], b0);
                rg_mma_bf16(c[j], a[2 * group + 1], b1);
            }
        }
    }

    /** Masked scores to weights, with sums and output brought to the new maximum. */
    static RG_DEVICE_MEMBER void softmax(const rg_prefill_params &p, int row0, int token0,
                                         float (*c)[4], float *most, float *sum, float (*o)[4])
    {
        const int g = RG_TID % 32 / 4, quad = RG_TID % 4;
        RG_UNROLL
        for (int half = 0; half < 2; half++) {
            const int row = row0 + g + 8 * half;
            const int last = p.causal ? (row < p.seq ? row + 1 : p.seq) : p.seq;
            float highest = most[half];
            RG_UNROLL
            for (int j = 0; j < columns; j++)
                RG_UNROLL
            for (int e = 0; e < 2; e++) {
                const int token = token0 + 8 * j + rg_token(2 * quad + e);
                float *s = &c[j][2 * half + e];
                *s = token < last ? *s * p.scale : rg_minus_infinity();
                highest = rg_max(highest, *s);
            }
            highest = rg_max(highest, rg_shfl_xor(highest, 1));
            highest = rg_max(highest, rg_shfl_xor(highest, 2));
            const float reference = highest == rg_minus_infinity() ? 0.0f : highest;
            const float factor = rg_exp2(most[half] - reference);
            most[half] = highest;
            sum[half] *= factor;
            RG_UNROLL
            for (int j = 0; j < columns; j++)
                RG_UNROLL
            for (int e = 0; e < 2; e++) {
                float *s = &c[j][2 * half + e];
                *s = rg_exp2(*s - reference);
                sum[half] += *s;
            }
            RG_UNROLL
            for (int t = 0; t < head_dim / 8; t++)
                o[t][2 * half] *= factor, o[t][2 * half + 1] *= factor;
        }
    }

    /** Output tile 2 (4 group + x) + h holds dimension (8 group + column) 8 + 2 x + h. */
    static RG_DEVICE_MEMBER void output(const unsigned char *stage, const float (*c)[4],
                                        float (*o)[4])
    {
        const int g = RG_TID % 32 / 4, quad = RG_TID % 4;
        const unsigned char *values = stage + tile * pitch + g * 16;
        RG_UNROLL
        for (int step = 0; step < tile / 16; step++) {
            const float(*w)[4] = c + 2 * step;
            const uint32_t a[4] = {rg_pack_bf16(w[0][0], w[0][1]), rg_pack_bf16(w[0][2], w[0][3]),
                                   rg_pack_bf16(w[1][0], w[1][1]), rg_pack_bf16(w[1][2], w[1][3])};
            const int rows[4] = {quad, 4 + ((quad + 2) & 3), 8 + quad, 12 + ((quad + 2) & 3)};
            RG_UNROLL
            for (int group = 0; group < head_dim / 64; group++) {
                uint32_t v[4][4];
                RG_UNROLL
                for (int r = 0; r < 4; r++)
                    rg_load_words<16>(values + (16 * step + rows[r]) * pitch + group * 128, v[r]);
                RG_UNROLL
                for (int x = 0; x < 4; x++) {
                    const uint32_t lo[2] = {rg_byte_perm(v[0][x], v[1][x], 0x5410),
                                            rg_byte_perm(v[2][x], v[3][x], 0x5410)};
                    const uint32_t hi[2] = {rg_byte_perm(v[0][x], v[1][x], 0x7632),
                                            rg_byte_perm(v[2][x], v[3][x], 0x7632)};
                    rg_mma_bf16(o[2 * (4 * group + x)], a, lo);
                    rg_mma_bf16(o[2 * (4 * group + x) + 1], a, hi);
                }
            }
        }
    }

    static RG_DEVICE_MEMBER void write(const rg_prefill_params &p, int64_t first, int head,
                                       int row0, float *sum, const float (*o)[4])
    {
        const int g = RG_TID % 32 / 4, quad = RG_TID % 4;
        RG_UNROLL
        for (int half = 0; half < 2; half++) {
            sum[half] += rg_shfl_xor(sum[half], 1);
            sum[half] += rg_shfl_xor(sum[half], 2);
            const int row = row0 + g + 8 * half;
            if (row >= p.seq)
                continue;
            uint16_t *to = p.out + ((first + row) * p.heads + head) * head_dim;
            const float factor = 1.0f / sum[half];
            RG_UNROLL
            for (int t = 0; t < head_dim / 8; t += 8)
                RG_UNROLL
            for (int e = 0; e < 2; e++) { /* 8 tiles hold 8 neighbouring dimensions */
                uint32_t w[4];
                RG_UNROLL
                for (int x = 0; x < 4; x++)
                    w[x] = rg_pack_bf16(o[t + 2 * x][2 * half + e] * factor,
                                        o[t + 2 * x + 1][2 * half + e] * factor);
                rg_store16(to + (t + 2 * quad + e) * 8, make_uint4(w[0], w[1], w[2], w[3]));
            }
        }
    }

    static RG_DEVICE_MEMBER void run(const rg_prefill_params &p, unsigned char *shared)
    {
        const int row_tiles = (p.seq + RG_PREFILL_ROWS - 1) / RG_PREFILL_ROWS;
        const int pairs = p.batch * p.heads;
        const int row_tile = row_tiles - 1 - RG_BID / pairs;
        const int head = RG_BID % pairs % p.heads, sequence = RG_BID % pairs / p.heads;
        const int kv_head = head / (p.heads / p.kv_heads);
        const int64_t first = (int64_t)sequence * p.seq;
        const int block_row = row_tile * RG_PREFILL_ROWS, row0 = block_row + RG_TID / 32 * 16;
        const int end = block_row + RG_PREFILL_ROWS < p.seq ? block_row + RG_PREFILL_ROWS : p.seq;
        const int tiles = ((p.causal ? end : p.seq) + tile - 1) / tile;
        uint32_t a[steps][4];
        float o[head_dim / 8][4] = {}, sum[2] = {0, 0};
        float most[2] = {rg_minus_infinity(), rg_minus_infinity()};
        queries(p, first, head, row0, a);
        load(p, first, kv_head, 0, shared);
        rg_copy_commit();
        for (int t = 0; t < tiles; t++) {
            const unsigned char *stage = shared + t % RG_PREFILL_STAGES * stage_bytes;
            float c[columns][4];
            rg_copy_wait<0>();
            rg_sync();
            if (t + 1 < tiles)
                load(p, first, kv_head, (t + 1) * tile,
                     shared + (t + 1) % RG_PREFILL_STAGES * stage_bytes);
            rg_copy_commit();
            scores(stage, a, c);
            softmax(p, row0, t * tile, c, most, sum, o);
            output(stage, c, o);
        }
        write(p, first, head, row0, sum, o);
    }
};

RG_KERNEL(rg_prefill_bfloat16_64, rg_prefill_params, RG_PREFILL_THREADS, 3)
{
    RG_SHARED(shared);
    prefill<64>::run(p, shared);
}

RG_KERNEL(rg_prefill_bfloat16_128, rg_prefill_params, RG_PREFILL_THREADS, 2)
{
    RG_SHARED(shared);
    prefill<128>::run(p, shared);
}

#endif

/* kernels/decode_mla.cu: decode attention over a latent cache (multi-head latent attention).
 *
 * Reads decode.h, decode_tile.h; reference: rg_decode_reference in decode_mma.cu with V the front
 * of K. A row is 512 latent and 64 rotary elements; all query heads share it, so each byte is read
 * once for 16 or 64 heads. Eight warps: scores are cut by tokens, the output by latent dimensions.
 */
// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#ifndef RG_HOST
#include "decode_tile.h"

/** tiles x 16 query heads in a block. */
template <rg_store store, int tiles>
struct mla {
    using row = rg_row<store, RG_MLA_DIM>;
    static constexpr int tokens = RG_MLA_TILE, heads = 16 * tiles, threads = RG_MLA_THREADS;
    static constexpr int stages = tiles > 1 ? 2 : 3;
    static constexpr int stage_bytes = tokens * row::pitch;
    static constexpr int pairs = 4 * row::pairs_per_word; /* of a 16-byte key vector */
    static constexpr int elements = 128 / row::bits;      /* of the same */
    static constexpr int key_groups = row::bytes / 64;    /* groups of four vectors */
    static constexpr int halves = tiles == 1 ? 2 : 1;     /* cuts of the score's sum */
    static constexpr int warp_tiles =
        tiles == 1 ? 1 : tiles / 2; /* head tiles of a warp's scores */
    static constexpr int score_pitch = tokens + 1;
    static constexpr int value_vector = row::bits == 16 ? 16 : 8; /* 64 dimensions in 8 vectors */
    static constexpr int value_pairs = value_vector / 4 * row::pairs_per_word;

    unsigned char *latents;
    uint4 *queries;   /* [tiles][36 steps][32 lanes] */
    float *score;     /* [halves][heads][score_pitch] */
    uint16_t *weight; /* bf16 [heads][tokens] */
    float *state;     /* [heads][3]: maximum, sum, factor */

    RG_DEVICE_MEMBER void load_queries(const uint16_t *q, int group) const
    {
        for (int i = RG_TID; i < tiles * 36 * 32; i += threads) {
            const int lane = i % 32, step = i / 32 % 36, tile = i / (32 * 36);
            const int base = (step / (pairs / 2) * 4 + lane % 4) * elements;
            uint32_t r[4];
            RG_UNROLL
            for (int e = 0; e < 4; e++) {
                const int head = 16 * tile + lane / 4 + (e % 2) * 8;
                const int pair = step % (pairs / 2) * 2 + e / 2;
                const uint16_t *from = q + head * RG_MLA_DIM + base;
                r[e] = 0;
                if (head < group)
                    r[e] = from[rg_pair_element<store>(pair, 0)] |
                           ((uint32_t)from[rg_pair_element<store>(pair, 1)] << 16);
            }
            queries[i] = make_uint4(r[0], r[1], r[2], r[3]);
        }
        for (int i = RG_TID; i < heads; i += threads) {
            state[3 * i] = rg_minus_infinity();
            state[3 * i + 1] = state[3 * i + 2] = 0;
        }
    }

    /** Warp w: tokens 8 (w % 4) .., and by w / 4 a half of the sum or a half of the head tiles. */
    RG_DEVICE_MEMBER void scores(const rg_decode_params &p, const unsigned char *stage, int token0,
                                 int last) const
    {
        const int warp = RG_TID / 32, lane = RG_TID % 32, quad = lane % 4;
        const int column0 = warp % 4 * 8, upper = warp / 4;
        const int tile0 = halves == 2 ? 0 : upper * warp_tiles;
        const int group0 = halves == 2 ? upper * (key_groups / 2) : 0;
        const int group1 = halves == 2 && upper == 0 ? key_groups / 2 : key_groups;
        const unsigned char *key = stage + (column0 + rg_token(lane / 4)) * row::pitch;
        float c[warp_tiles][4] = {};
        for (int group = group0; group < group1; group++) {
            uint32_t words[4], b[pairs];
            rg_load_words<16>(key + (group * 4 + quad) * 16, words);
            RG_UNROLL
            for (int w = 0; w < 4; w++)
                rg_pairs<store>(words[w], 0, b + w * row::pairs_per_word);
            RG_UNROLL
            for (int s = 0; s < pairs / 2; s++)
                RG_UNROLL
            for (int t = 0; t < warp_tiles; t++) {
                const uint4 f = queries[((tile0 + t) * 36 + group * (pairs / 2) + s) * 32 + lane];
                const uint32_t a[4] = {f.x, f.y, f.z, f.w};
                rg_mma_bf16(c[t], a, b + 2 * s);
            }
        }
        const float factor = p.scale * (store == RG_STORE_E4M3 ? p.kv.k_factor : 1.0f);
        float *const to = score + (halves == 2 ? upper * heads * score_pitch : 0);
        RG_UNROLL
        for (int t = 0; t < warp_tiles; t++)
            RG_UNROLL
        for (int e = 0; e < 4; e++) {
            const int head = 16 * (tile0 + t) + lane / 4 + e / 2 * 8;
            const int token = column0 + rg_token(2 * quad + e % 2);
            const bool on = token0 + token < last;
            to[head * score_pitch + token] = on ? c[t][e] * factor : rg_minus_infinity();
        }
    }

    /** A warp for a head, a lane for a token. */
    RG_DEVICE_MEMBER void softmax() const
    {
        const int lane = RG_TID % 32;
        for (int h = RG_TID / 32; h < heads; h += threads / 32) {
            float s = score[h * score_pitch + lane];
            if constexpr (halves == 2)
                s += score[(heads + h) * score_pitch + lane];
            float most = s;
            for (int mask = 16; mask > 0; mask /= 2)
                most = rg_max(most, rg_shfl_xor(most, mask));
            most = rg_max(most, state[3 * h]);
            const float reference = most == rg_minus_infinity() ? 0.0f : most;
            const float w = rg_exp2(s - reference);
            float sum = w;
            for (int mask = 16; mask > 0; mask /= 2)
                sum += rg_shfl_xor(sum, mask);
            weight[h * tokens + lane] = rg_bf16_from(w);
            rg_warp_sync();
            if (lane == 0) {
                const float factor = rg_exp2(state[3 * h] - reference);
                state[3 * h] = most;
                state[3 * h + 1] = state[3 * h + 1] * factor + sum;
                state[3 * h + 2] = factor;
            }
        }
    }

    /** Warp w: latent dimensions 64 w .. of all heads. */
    RG_DEVICE_MEMBER void output(const unsigned char *stage, float (*o)[8][4]) const
    {
        const int warp = RG_TID / 32, g = RG_TID % 32 / 4, quad = RG_TID % 4;
        RG_UNROLL
        for (int t = 0; t < tiles; t++) {
            const float lo = state[3 * (16 * t + g) + 2], hi = state[3 * (16 * t + g + 8) + 2];
            RG_UNROLL
            for (int n = 0; n < 8; n++) {
                o[t][n][0] *= lo, o[t][n][1] *= lo;
                o[t][n][2] *= hi, o[t][n][3] *= hi;
            }
        }
        RG_UNROLL
        for (int step = 0; step < tokens / 16; step++) {
            const int rows[4] = {16 * step + quad, 16 * step + 4 + ((quad + 2) & 3),
                                 16 * step + 8 + quad, 16 * step + 12 + ((quad + 2) & 3)};
            uint32_t v[4][value_pairs];
            RG_UNROLL
            for (int r = 0; r < 4; r++) {
                uint32_t words[value_vector / 4];
                rg_load_words<value_vector>(
                    stage + rows[r] * row::pitch + (warp * 8 + g) * value_vector, words);
                RG_UNROLL
                for (int w = 0; w < value_vector / 4; w++)
                    rg_pairs<store>(words[w], 0, v[r] + w * row::pairs_per_word);
            }
            RG_UNROLL
            for (int t = 0; t < tiles; t++) {
                const uint16_t *w0 = weight + (16 * t + g) * tokens, *w8 = w0 + 8 * tokens;
                const uint32_t a[4] = {w0[rows[0]] | ((uint32_t)w0[rows[1]] << 16),
                                       w8[rows[0]] | ((uint32_t)w8[rows[1]] << 16),
                                       w0[rows[2]] | ((uint32_t)w0[rows[3]] << 16),
                                       w8[rows[2]] | ((uint32_t)w8[rows[3]] << 16)};
                RG_UNROLL
                for (int x = 0; x < value_pairs; x++) {
                    const uint32_t lo[2] = {rg_byte_perm(v[0][x], v[1][x], 0x5410),
                                            rg_byte_perm(v[2][x], v[3][x], 0x5410)};
                    const uint32_t hi[2] = {rg_byte_perm(v[0][x], v[1][x], 0x7632),
                                            rg_byte_perm(v[2][x], v[3][x], 0x7632)};
                    rg_mma_bf16(o[t][2 * x], a, lo);
                    rg_mma_bf16(o[t][2 * x + 1], a, hi);
                }
            }
        }
    }

    RG_DEVICE_MEMBER void finish(const rg_decode_params &p, const rg_kv_work &work, int head_first,
                                 float (*o)[8][4]) const
    {
        constexpr int value_elements = value_vector * 8 / row::bits;
        const int warp = RG_TID / 32, g = RG_TID % 32 / 4, quad = RG_TID % 4;
        const float factor = store == RG_STORE_E4M3 ? p.kv.k_factor : 1.0f;
        const int64_t row0 = (int64_t)work.sequence * p.group;
        RG_UNROLL
        for (int t = 0; t < tiles; t++)
            RG_UNROLL
        for (int n = 0; n < 8; n++)
            RG_UNROLL
        for (int e = 0; e < 4; e++) {
            const int h = 16 * t + g + e / 2 * 8, head = head_first + h;
            const int d = (warp * 8 + 2 * quad + e % 2) * value_elements +
                          rg_pair_element<store>(n / 2, n % 2);
            if (head >= p.group)
                continue;
            const float value = o[t][n][e] * factor, sum = state[3 * h + 1];
            if (work.parts == 1) {
                p.out[(row0 + head) * RG_MLA_LATENT + d] =
                    rg_bf16_from(sum > 0 ? value / sum : 0.0f);
            } else {
                float *slot =
                    p.partial + ((int64_t)work.slot * p.group + head) * (RG_MLA_LATENT + 2);
                slot[2 + d] = value;
                if (d == 0)
                    slot[0] = state[3 * h], slot[1] = sum;
            }
        }
    }

    /** work.head is the tile of query heads; the cache has one head. */
    static RG_DEVICE_MEMBER void part(const rg_decode_params &p, const rg_kv_work &work,
                                      unsigned char *shared)
    {
        mla self;
        self.latents = shared;
        self.queries = (uint4 *)(shared + stages * stage_bytes);
        self.score = (float *)(self.queries + tiles * 36 * 32);
        self.weight = (uint16_t *)(self.score + halves * heads * score_pitch);
        self.state = (float *)(self.weight + heads * tokens);
        const int32_t *pages = p.kv.pages + (int64_t)work.sequence * p.kv.pages_per_sequence;
        const int head_first = work.head * heads;
        const int count = (work.last - work.first + tokens - 1) / tokens;
        self.load_queries(p.q + ((int64_t)work.sequence * p.group + head_first) * RG_MLA_DIM,
                          p.group - head_first);
        for (int t = 0; t < stages - 1; t++) {
            if (t < count)
                rg_tile_copy<store, RG_MLA_DIM, tokens, threads>(
                    p.kv, pages, 0, work.first + t * tokens, work.last, shared + t * stage_bytes);
            rg_copy_commit();
        }
        float o[tiles][8][4] = {};
        for (int t = 0; t < count; t++) {
            const unsigned char *stage = shared + t % stages * stage_bytes;
            const int next = t + stages - 1;
            rg_copy_wait<stages - 2>();
            rg_sync();
            if (next < count)
                rg_tile_copy<store, RG_MLA_DIM, tokens, threads>(
                    p.kv, pages, 0, work.first + next * tokens, work.last,
                    shared + next % stages * stage_bytes);
            rg_copy_commit();
            self.scores(p, stage, work.first + t * tokens, work.last);
            rg_sync();
            self.softmax();
            rg_sync();
            self.output(stage, o);
        }
        rg_copy_wait<0>();
        rg_sync();
        self.finish(p, work, head_first, o);
        rg_sync();
    }
};

#define RG_DECODE_MLA(name, store, tiles)                    \
    RG_KERNEL(name, rg_decode_params, RG_MLA_THREADS, 1)     \
    {                                                        \
        RG_SHARED(shared);                                   \
        for (int w = RG_BID; w < p.work_count; w += RG_GRID) \
            mla<store, tiles>::part(p, p.work[w], shared);   \
    }

RG_DECODE_MLA(rg_decode_mla_bfloat16_1, RG_STORE_BF16, 1)
RG_DECODE_MLA(rg_decode_mla_bfloat16_4, RG_STORE_BF16, 4)
RG_DECODE_MLA(rg_decode_mla_fp8_1, RG_STORE_E4M3, 1)
RG_DECODE_MLA(rg_decode_mla_fp8_4, RG_STORE_E4M3, 4)

#endif

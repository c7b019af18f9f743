/* kernels/decode_simt.cu: decode attention without tensor cores.
 *
 * Reads decode.h, decode_tile.h; reference: rg_decode_reference in decode_mma.cu. The same tiles as
 * the tensor-core kernel, so the same bytes; the products are plain fp32. With few query heads for
 * a KV head memory hides them, with 8 they decide: the pair shows what a model must tell apart.
 */
// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#ifndef RG_HOST
#include "decode_tile.h"

/** Floats of one stored word, scale included for int4. */
template <rg_store store>
RG_DEVICE void to_floats(uint32_t word, uint32_t scale, float *x)
{
    uint32_t pairs[4];
    rg_pairs<store>(word, scale, pairs);
    constexpr int count = store == RG_STORE_BF16 ? 1 : (store == RG_STORE_INT4 ? 4 : 2);
    RG_UNROLL
    for (int i = 0; i < count; i++) {
        x[rg_pair_element<store>(i, 0)] = rg_bits_float(pairs[i] << 16);
        x[rg_pair_element<store>(i, 1)] = rg_bits_float(pairs[i] & 0xffff0000u);
    }
}

template <rg_store store, int head_dim, int group>
struct simt {
    using row = rg_row<store, head_dim>;
    static constexpr int tile = RG_DECODE_TILE, threads = RG_DECODE_THREADS;
    static constexpr int lane_dims = head_dim / 8, lane_bytes = row::bytes / 8;
    static constexpr int lane_vector = lane_bytes < 16 ? lane_bytes : 16;
    static constexpr int word_dims = 32 / row::bits;

    float *q;     /* [group][head_dim] */
    float *score; /* [group][tile] */
    float *state; /* [group][3]: maximum, sum, factor */

    /** Scores of the tile: 8 lanes for a token, 16 tokens at a time. */
    RG_DEVICE_MEMBER void scores(const rg_decode_params &p, const unsigned char *stage, int token0,
                                 int last) const
    {
        const int lane = RG_TID % 8;
        const uint32_t *k_scales = (const uint32_t *)(stage + 2 * tile * row::pitch);
        for (int t = RG_TID / 8; t < tile; t += threads / 8) {
            float sum[group] = {};
            RG_UNROLL
            for (int v = 0; v < lane_bytes / lane_vector; v++) {
                const int byte = lane * lane_bytes + v * lane_vector;
                uint32_t words[lane_vector / 4];
                rg_load_words<lane_vector>(stage + t * row::pitch + byte, words);
                RG_UNROLL
                for (int w = 0; w < lane_vector / 4; w++) {
                    const int dim = (byte + 4 * w) * 8 / row::bits;
                    float k[word_dims];
                    to_floats<store>(words[w], scale_word(k_scales, t, dim), k);
                    RG_UNROLL
                    for (int g = 0; g < group; g++)
                        RG_UNROLL
                    for (int e = 0; e < word_dims; e++)
                        sum[g] += k[e] * q[g * head_dim + dim + e];
                }
            }
            float factor = p.scale;
            if constexpr (store == RG_STORE_INT8)
                factor *= rg_bits_float(k_scales[t]);
            if constexpr (store == RG_STORE_E4M3)
                factor *= p.kv.k_factor;
            RG_UNROLL
            for (int g = 0; g < group; g++) {
                for (int mask = 1; mask < 8; mask *= 2)
                    sum[g] += rg_shfl_xor(sum[g], mask);
                if (lane == 0)
                    score[g * tile + t] = token0 + t < last ? sum[g] * factor : rg_minus_infinity();
            }
        }
    }

    static RG_DEVICE_MEMBER uint32_t scale_word(const uint32_t *scales, int token, int dim)
    {
        if constexpr (store == RG_STORE_INT4)
            return scales[token * row::scales + dim / RG_INT4_GROUP];
        return 0;
    }

    /** Running softmax: a warp for a head, two tokens a lane. */
    RG_DEVICE_MEMBER void softmax() const
    {
        const int lane = RG_TID % 32;
        for (int g = RG_TID / 32; g < group; g += threads / 32) {
            float *s = score + g * tile;
            float most = rg_max(s[lane], s[lane + 32]);
            for (int mask = 16; mask > 0; mask /= 2)
                most = rg_max(most, rg_shfl_xor(most, mask));
            most = rg_max(most, state[3 * g]);
            const float reference = most == rg_minus_infinity() ? 0.0f : most;
            const float a = rg_exp2(s[lane] - reference), b = rg_exp2(s[lane + 32] - reference);
            float sum = a + b;
            for (int mask = 16; mask > 0; mask /= 2)
                sum += rg_shfl_xor(sum, mask);
            s[lane] = a;
            s[lane + 32] = b;
            rg_warp_sync();
            if (lane == 0) {
                const float factor = rg_exp2(state[3 * g] - reference);
                state[3 * g] = most;
                state[3 * g + 1] = state[3 * g + 1] * factor + sum;
                state[3 * g + 2] = factor;
            }
        }
    }

    /** Output: a thread owns one word of the row (word_dims dimensions) for each of its tokens. */
    static constexpr int row_words = row::bytes / 4;
    static constexpr int token_step = threads / row_words; /* tokens that run side by side */

    RG_DEVICE_MEMBER void output(const unsigned char *stage, float (*o)[word_dims]) const
    {
        const int word = RG_TID % row_words;
        const unsigned char *values = stage + tile * row::pitch;
        const uint32_t *v_scales =
            (const uint32_t *)(stage + 2 * tile * row::pitch) + tile * row::scales;
        RG_UNROLL
        for (int g = 0; g < group; g++)
            RG_UNROLL
        for (int e = 0; e < word_dims; e++)
            o[g][e] *= state[3 * g + 2];
        for (int t = RG_TID / row_words; t < tile; t += token_step) {
            float v[word_dims];
            to_floats<store>(*(const uint32_t *)(values + t * row::pitch + 4 * word),
                             scale_word(v_scales, t, word * word_dims), v);
            float scale = 1.0f;
            if constexpr (store == RG_STORE_INT8)
                scale = rg_bits_float(v_scales[t]);
            RG_UNROLL
            for (int g = 0; g < group; g++) {
                const float weight = score[g * tile + t] * scale;
                RG_UNROLL
                for (int e = 0; e < word_dims; e++)
                    o[g][e] += weight * v[e];
            }
        }
    }

    /** Sum over the side-by-side tokens in a fixed order, and write. */
    RG_DEVICE_MEMBER void finish(const rg_decode_params &p, const rg_kv_work &work,
                                 float (*o)[word_dims], float *total) const
    {
        const int word = RG_TID % row_words, side = RG_TID / row_words;
        for (int s = 0; s < token_step; s++) {
            if (s == side)
                RG_UNROLL
            for (int g = 0; g < group; g++)
                RG_UNROLL
            for (int e = 0; e < word_dims; e++) {
                float *at = total + g * head_dim + word * word_dims + e;
                *at = (s == 0 ? 0.0f : *at) + o[g][e];
            }
            rg_sync();
        }
        const float value_factor = store == RG_STORE_E4M3 ? p.kv.v_factor : 1.0f;
        const int64_t head0 = ((int64_t)work.sequence * p.kv.kv_heads + work.head) * p.group;
        for (int i = RG_TID; i < p.group * head_dim; i += threads) {
            const int g = i / head_dim, d = i % head_dim;
            const float value = total[i] * value_factor, sum = state[3 * g + 1];
            if (work.parts == 1) {
                p.out[head0 * head_dim + i] = rg_bf16_from(sum > 0 ? value / sum : 0.0f);
            } else {
                float *slot = p.partial + ((int64_t)work.slot * p.group + g) * (head_dim + 2);
                slot[2 + d] = value;
                if (d == 0)
                    slot[0] = state[3 * g], slot[1] = sum;
            }
        }
        rg_sync();
    }

    RG_DEVICE_MEMBER void prepare(const rg_decode_params &p, const rg_kv_work &work) const
    {
        const int64_t head0 = ((int64_t)work.sequence * p.kv.kv_heads + work.head) * p.group;
        for (int i = RG_TID; i < group * head_dim; i += threads)
            q[i] = i < p.group * head_dim ? rg_bf16_value(p.q[head0 * head_dim + i]) : 0.0f;
        if (RG_TID < group) {
            state[3 * RG_TID] = rg_minus_infinity();
            state[3 * RG_TID + 1] = state[3 * RG_TID + 2] = 0;
        }
    }

    static RG_DEVICE_MEMBER void part(const rg_decode_params &p, const rg_kv_work &work,
                                      unsigned char *shared)
    {
        constexpr int stage_bytes = 2 * tile * (row::pitch + 4 * row::scales);
        constexpr int stages = row::bytes > 128 ? 2 : 3;
        float *const front = (float *)(shared + stages * stage_bytes);
        const simt self = {front, front + group * head_dim, front + group * (head_dim + tile)};
        const int32_t *pages = p.kv.pages + (int64_t)work.sequence * p.kv.pages_per_sequence;
        const int64_t head_row = (int64_t)work.head * p.kv.head_rows;
        const int tiles = (work.last - work.first + tile - 1) / tile;
        self.prepare(p, work);
        for (int t = 0; t < stages - 1; t++) {
            if (t < tiles)
                rg_tile_copy<store, head_dim, tile, threads>(p.kv, pages, head_row,
                                                             work.first + t * tile, work.last,
                                                             shared + t * stage_bytes);
            rg_copy_commit();
        }
        float o[group][word_dims] = {};
        for (int t = 0; t < tiles; t++) {
            const unsigned char *stage = shared + t % stages * stage_bytes;
            rg_copy_wait<stages - 2>();
            rg_sync();
            const int next = t + stages - 1;
            if (next < tiles)
                rg_tile_copy<store, head_dim, tile, threads>(p.kv, pages, head_row,
                                                             work.first + next * tile, work.last,
                                                             shared + next % stages * stage_bytes);
            rg_copy_commit();
            self.scores(p, stage, work.first + t * tile, work.last);
            rg_sync();
            self.softmax();
            rg_sync();
            self.output(stage, o);
        }
        rg_copy_wait<0>();
        rg_sync();
        self.finish(p, work, o, (float *)shared);
    }
};

#define RG_DECODE_SIMT(name, store, head_dim, group)                  \
    RG_KERNEL(name, rg_decode_params, RG_DECODE_THREADS, 2)           \
    {                                                                 \
        RG_SHARED(shared);                                            \
        for (int w = RG_BID; w < p.work_count; w += RG_GRID)          \
            simt<store, head_dim, group>::part(p, p.work[w], shared); \
    }
#define RG_DECODE_SIMT_GROUPS(name, store, head_dim) \
    RG_DECODE_SIMT(name##_1, store, head_dim, 1)     \
    RG_DECODE_SIMT(name##_4, store, head_dim, 4)     \
    RG_DECODE_SIMT(name##_8, store, head_dim, 8)

RG_DECODE_SIMT_GROUPS(rg_decode_simt_bfloat16_64, RG_STORE_BF16, 64)
RG_DECODE_SIMT_GROUPS(rg_decode_simt_bfloat16_128, RG_STORE_BF16, 128)
RG_DECODE_SIMT_GROUPS(rg_decode_simt_fp8_64, RG_STORE_E4M3, 64)
RG_DECODE_SIMT_GROUPS(rg_decode_simt_fp8_128, RG_STORE_E4M3, 128)
RG_DECODE_SIMT_GROUPS(rg_decode_simt_int8_128, RG_STORE_INT8, 128)
RG_DECODE_SIMT_GROUPS(rg_decode_simt_int4_128, RG_STORE_INT4, 128)

#endif

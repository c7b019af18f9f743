/* kernels/decode_mma.cu: decode attention on tensor cores, the merge of its parts, and the
 * reference of all decode kernels.
 *
 * Reads decode.h, decode_tile.h. The query heads of one KV head are the rows of a 16-row tile, so
 * up to 16 heads cost the same. Four warps share a tile of 64 tokens that cp.async brings in while
 * the tile before is worked on; each warp keeps the running softmax of its own 16 tokens, and the
 * four meet at the end of a part.
 */
// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#ifdef RG_HOST

#include <math.h>
#include <stdlib.h>

/* out[sequence][kv_heads * group][value_dim] = sum_t softmax_t(scale q k_t) v_t in double, from the
 * stored values; zeros for length 0. */
void rg_decode_reference(const rg_decode_params *p, rg_store store, double *out)
{
    const rg_kv_view *kv = &p->kv;
    const rg_kv_work *seen = p->work;
    int32_t sequences = 0, longest = 1;
    for (int32_t w = 0; w < p->work_count; w++) {
        sequences = seen[w].sequence >= sequences ? seen[w].sequence + 1 : sequences;
        longest = kv->lengths[seen[w].sequence] > longest ? kv->lengths[seen[w].sequence] : longest;
    }
    double *score = malloc(sizeof *score * (size_t)longest);
    for (int32_t s = 0; score && s < sequences; s++)
        for (int32_t h = 0; h < kv->kv_heads * p->group; h++) {
            const int32_t kv_head = h / p->group;
            const uint16_t *q = p->q + ((int64_t)s * kv->kv_heads * p->group + h) * kv->head_dim;
            double *o = out + ((int64_t)s * kv->kv_heads * p->group + h) * p->value_dim;
            double most = -INFINITY, sum = 0;
            for (int32_t d = 0; d < p->value_dim; d++)
                o[d] = 0;
            for (int32_t t = 0; t < kv->lengths[s]; t++) {
                const int64_t row = rg_kv_row(kv, s, kv_head, t);
                const uint32_t *scale = kv->k_scale ? kv->k_scale + row * kv->scale_words : NULL;
                score[t] = 0;
                for (int32_t d = 0; d < kv->head_dim; d++)
                    score[t] +=
                        rg_bf16_value(q[d]) *
                        rg_kv_element(store, kv->k + row * kv->row_bytes, scale, kv->k_factor, d);
                score[t] *= p->scale;
                most = fmax(most, score[t]);
            }
            for (int32_t t = 0; t < kv->lengths[s]; t++) {
                const int64_t row = rg_kv_row(kv, s, kv_head, t);
                const uint8_t *v = kv->v ? kv->v : kv->k;
                const uint32_t *scale = kv->v_scale ? kv->v_scale + row * kv->scale_words : NULL;
                const double weight = exp2(score[t] - most);
                sum += weight;
                for (int32_t d = 0; d < p->value_dim; d++)
                    o[d] += weight * rg_kv_element(store, v + row * kv->row_bytes, scale,
                                                   kv->v ? kv->v_factor : kv->k_factor, d);
            }
            for (int32_t d = 0; d < p->value_dim && sum > 0; d++)
                o[d] /= sum;
        }
    free(score);
}

#else
#include "decode_tile.h"

/** Queries of a KV head as A fragments in shared memory, [step][lane] of 16 bytes, in the order in
 * which key vectors give their dimensions. Rows past the group are zeros. */
template <rg_store store, int head_dim>
RG_DEVICE void query_fragments(const uint16_t *q, int group, uint4 *fragments)
{
    using row = rg_row<store, head_dim>;
    constexpr int vector = row::bytes % 64 == 0 ? 16 : 8;
    constexpr int elements = vector * 8 / row::bits;        /* of a vector */
    constexpr int pairs = vector / 4 * row::pairs_per_word; /* of a vector */
    for (int i = RG_TID; i < head_dim / 16 * 32; i += RG_DECODE_THREADS) {
        const int step = i / 32, g = i % 32 / 4, quad = i % 4;
        const int base = (step / (pairs / 2) * 4 + quad) * elements;
        uint32_t r[4];
        RG_UNROLL
        for (int e = 0; e < 4; e++) { /* registers: row g or g + 8, first or second pair */
            const int head = g + (e % 2) * 8, pair = step % (pairs / 2) * 2 + e / 2;
            const uint16_t *from = q + head * head_dim + base;
            r[e] = 0;
            if (head < group)
                r[e] = from[rg_pair_element<store>(pair, 0)] |
                       ((uint32_t)from[rg_pair_element<store>(pair, 1)] << 16);
        }
        fragments[i] = make_uint4(r[0], r[1], r[2], r[3]);
    }
}

/** Scores of 16 rows with 8 tokens: the lane loads the row of its own token. */
template <rg_store store, int head_dim>
RG_DEVICE void score_tile(const unsigned char *key_row, const uint32_t *scales,
                          const uint4 *fragments, float c[4])
{
    using row = rg_row<store, head_dim>;
    constexpr int vector = row::bytes % 64 == 0 ? 16 : 8;
    constexpr int elements = vector * 8 / row::bits;
    constexpr int pairs = vector / 4 * row::pairs_per_word;
    const int lane = RG_TID % 32, quad = lane % 4;
    RG_UNROLL
    for (int group = 0; group < row::bytes / (4 * vector); group++) {
        uint32_t words[vector / 4], b[pairs];
        rg_load_words<vector>(key_row + (group * 4 + quad) * vector, words);
        uint32_t scale = 0;
        if constexpr (store == RG_STORE_INT4)
            scale = scales[(group * 4 + quad) * elements / RG_INT4_GROUP];
        RG_UNROLL
        for (int w = 0; w < vector / 4; w++)
            rg_pairs<store>(words[w], scale, b + w * row::pairs_per_word);
        RG_UNROLL
        for (int s = 0; s < pairs / 2; s++) {
            const uint4 f = fragments[(group * (pairs / 2) + s) * 32 + lane];
            const uint32_t a[4] = {f.x, f.y, f.z, f.w};
            rg_mma_bf16(c, a, b + 2 * s);
        }
    }
}

/** Output += probabilities (16 x 16 tokens) times values: 8-column tiles in the order of pairs. */
template <rg_store store, int head_dim>
RG_DEVICE void output_tiles(const unsigned char *values, const uint32_t *scales,
                            const uint32_t a[4], float (*o)[4])
{
    using row = rg_row<store, head_dim>;
    constexpr int vector = row::bytes / 8 < 16 ? row::bytes / 8 : 16;
    constexpr int elements = vector * 8 / row::bits;
    constexpr int pairs = vector / 4 * row::pairs_per_word;
    const int g = RG_TID % 32 / 4, quad = RG_TID % 4;
    const int tokens[4] = {quad, 4 + ((quad + 2) & 3), 8 + quad, 12 + ((quad + 2) & 3)};
    RG_UNROLL
    for (int group = 0; group < row::bytes / (8 * vector); group++) {
        uint32_t v[4][pairs];
        RG_UNROLL
        for (int t = 0; t < 4; t++) {
            uint32_t words[vector / 4], scale = 0;
            rg_load_words<vector>(values + tokens[t] * row::pitch + (group * 8 + g) * vector,
                                  words);
            if constexpr (store == RG_STORE_INT4)
                scale =
                    scales[tokens[t] * row::scales + (group * 8 + g) * elements / RG_INT4_GROUP];
            RG_UNROLL
            for (int w = 0; w < vector / 4; w++)
                rg_pairs<store>(words[w], scale, v[t] + w * row::pairs_per_word);
        }
        RG_UNROLL
        for (int x = 0; x < pairs; x++) {
            const uint32_t lo[2] = {rg_byte_perm(v[0][x], v[1][x], 0x5410),
                                    rg_byte_perm(v[2][x], v[3][x], 0x5410)};
            const uint32_t hi[2] = {rg_byte_perm(v[0][x], v[1][x], 0x7632),
                                    rg_byte_perm(v[2][x], v[3][x], 0x7632)};
            rg_mma_bf16(o[(group * pairs + x) * 2], a, lo);
            rg_mma_bf16(o[(group * pairs + x) * 2 + 1], a, hi);
        }
    }
}

/** Dimension that output tile `tile`, column `column` holds. */
template <rg_store store, int head_dim>
RG_DEVICE int output_dim(int tile, int column)
{
    using row = rg_row<store, head_dim>;
    constexpr int vector = row::bytes / 8 < 16 ? row::bytes / 8 : 16;
    constexpr int elements = vector * 8 / row::bits;
    const int group = tile / elements, pair = tile % elements / 2, half = tile % 2;
    return (group * 8 + column) * elements + rg_pair_element<store>(pair, half);
}

/** Running softmax of a warp's two rows (g and g + 8). */
struct softmax_rows {
    float most[2], sum[2];
};

/** Scores to probabilities, with the output scaled to the new maximum. */
template <int tiles>
RG_DEVICE void softmax_step(float c[2][4], softmax_rows *rows, float (*o)[4])
{
    RG_UNROLL
    for (int r = 0; r < 2; r++) {
        float most =
            rg_max(rg_max(c[0][2 * r], c[0][2 * r + 1]), rg_max(c[1][2 * r], c[1][2 * r + 1]));
        most = rg_max(most, rg_shfl_xor(most, 1));
        most = rg_max(most, rg_shfl_xor(most, 2));
        most = rg_max(most, rows->most[r]);
        /* no token so far: any finite reference does, all weights are 0 */
        const float reference = most == rg_minus_infinity() ? 0.0f : most;
        const float factor = rg_exp2(rows->most[r] - reference);
        rows->most[r] = most;
        rows->sum[r] *= factor;
        RG_UNROLL
        for (int j = 0; j < 2; j++)
            RG_UNROLL
        for (int e = 0; e < 2; e++) {
            c[j][2 * r + e] = rg_exp2(c[j][2 * r + e] - reference);
            rows->sum[r] += c[j][2 * r + e];
        }
        RG_UNROLL
        for (int t = 0; t < tiles; t++) {
            o[t][2 * r] *= factor;
            o[t][2 * r + 1] *= factor;
        }
    }
}

/** Scores, softmax and output of one warp's 16 tokens in a stage. */
template <rg_store store, int head_dim>
RG_DEVICE void warp_tokens(const rg_decode_params &p, const unsigned char *stage, int token0,
                           int last, const uint4 *fragments, softmax_rows *rows, float (*o)[4])
{
    using row = rg_row<store, head_dim>;
    const int lane = RG_TID % 32, quad = lane % 4, at = RG_TID / 32 * 16;
    const uint32_t *k_scales = (const uint32_t *)(stage + 2 * RG_DECODE_TILE * row::pitch);
    const uint32_t *v_scales = k_scales + RG_DECODE_TILE * row::scales;
    float c[2][4] = {};
    RG_UNROLL
    for (int j = 0; j < 2; j++) {
        const int t = at + 8 * j + rg_token(lane / 4);
        score_tile<store, head_dim>(stage + t * row::pitch, k_scales + t * row::scales, fragments,
                                    c[j]);
        RG_UNROLL
        for (int e = 0; e < 4; e++) {
            const int column = at + 8 * j + rg_token(2 * quad + e % 2);
            float factor = p.scale;
            if constexpr (store == RG_STORE_INT8)
                factor *= rg_bits_float(k_scales[column]);
            if constexpr (store == RG_STORE_E4M3)
                factor *= p.kv.k_factor;
            c[j][e] = token0 + column < last ? c[j][e] * factor : rg_minus_infinity();
        }
    }
    softmax_step<head_dim / 8>(c, rows, o);
    if constexpr (store == RG_STORE_INT8) {
        RG_UNROLL
        for (int j = 0; j < 2; j++)
            RG_UNROLL
        for (int e = 0; e < 4; e++)
            c[j][e] *= rg_bits_float(v_scales[at + 8 * j + rg_token(2 * quad + e % 2)]);
    }
    const uint32_t a[4] = {rg_pack_bf16(c[0][0], c[0][1]), rg_pack_bf16(c[0][2], c[0][3]),
                           rg_pack_bf16(c[1][0], c[1][1]), rg_pack_bf16(c[1][2], c[1][3])};
    output_tiles<store, head_dim>(stage + (RG_DECODE_TILE + at) * row::pitch,
                                  v_scales + at * row::scales, a, o);
}

/** Join the four warps' rows in shared memory and write the part's result. */
template <rg_store store, int head_dim>
RG_DEVICE void finish_part(const rg_decode_params &p, const rg_kv_work &work, softmax_rows rows,
                           float (*o)[4], unsigned char *shared)
{
    float *total = (float *)shared;      /* [16][head_dim] */
    float *most = total + 16 * head_dim; /* [4][16] */
    float *sum = most + 4 * 16;          /* [4][16] */
    const int warp = RG_TID / 32, lane = RG_TID % 32, g = lane / 4, quad = lane % 4;
    RG_UNROLL
    for (int r = 0; r < 2; r++) {
        rows.sum[r] += rg_shfl_xor(rows.sum[r], 1);
        rows.sum[r] += rg_shfl_xor(rows.sum[r], 2);
        if (quad == 0) {
            most[warp * 16 + g + 8 * r] = rows.most[r];
            sum[warp * 16 + g + 8 * r] = rows.sum[r];
        }
    }
    for (int i = RG_TID; i < 16 * head_dim; i += RG_DECODE_THREADS)
        total[i] = 0;
    rg_sync();
    float factor[2];
    RG_UNROLL
    for (int r = 0; r < 2; r++) {
        float highest = rg_minus_infinity();
        for (int w = 0; w < 4; w++)
            highest = rg_max(highest, most[w * 16 + g + 8 * r]);
        factor[r] = highest == rg_minus_infinity() ? 0.0f : rg_exp2(rows.most[r] - highest);
    }
    for (int w = 0; w < 4; w++) { /* one after the other, so that the sum has one order */
        if (w == warp)
            RG_UNROLL
        for (int t = 0; t < head_dim / 8; t++)
            RG_UNROLL
        for (int e = 0; e < 4; e++)
            total[(g + e / 2 * 8) * head_dim + output_dim<store, head_dim>(t, 2 * quad + e % 2)] +=
                o[t][e] * factor[e / 2];
        rg_sync();
    }
    const float value_factor = store == RG_STORE_E4M3 ? p.kv.v_factor : 1.0f;
    const int64_t head0 = ((int64_t)work.sequence * p.kv.kv_heads + work.head) * p.group;
    for (int i = RG_TID; i < p.group * head_dim; i += RG_DECODE_THREADS) {
        const int head = i / head_dim, d = i % head_dim;
        float highest = rg_minus_infinity(), weight = 0;
        for (int w = 0; w < 4; w++)
            highest = rg_max(highest, most[w * 16 + head]);
        for (int w = 0; w < 4 && highest != rg_minus_infinity(); w++)
            weight += sum[w * 16 + head] * rg_exp2(most[w * 16 + head] - highest);
        const float value = total[head * head_dim + d] * value_factor;
        if (work.parts == 1) {
            p.out[head0 * head_dim + i] = rg_bf16_from(weight > 0 ? value / weight : 0.0f);
        } else {
            float *slot = p.partial + ((int64_t)work.slot * p.group + head) * (head_dim + 2);
            slot[2 + d] = value;
            if (d == 0)
                slot[0] = highest, slot[1] = weight;
        }
    }
    rg_sync();
}

template <rg_store store, int head_dim>
RG_DEVICE void decode_part(const rg_decode_params &p, const rg_kv_work &work, unsigned char *shared)
{
    using row = rg_row<store, head_dim>;
    constexpr int stage_bytes = 2 * RG_DECODE_TILE * (row::pitch + 4 * row::scales);
    constexpr int stages = row::bytes > 128 ? 2 : 3;
    constexpr int merge_bytes = 16 * (head_dim + 12) * 4;
    constexpr int front = stages * stage_bytes > merge_bytes ? stages * stage_bytes : merge_bytes;
    uint4 *fragments = (uint4 *)(shared + front);
    const int32_t *pages = p.kv.pages + (int64_t)work.sequence * p.kv.pages_per_sequence;
    const int64_t head_row = (int64_t)work.head * p.kv.head_rows;
    const int tiles = (work.last - work.first + RG_DECODE_TILE - 1) / RG_DECODE_TILE;
    query_fragments<store, head_dim>(p.q + ((int64_t)work.sequence * p.kv.kv_heads + work.head) *
                                               p.group * head_dim,
                                     p.group, fragments);
    for (int t = 0; t < stages - 1; t++) {
        if (t < tiles)
            rg_tile_copy<store, head_dim, RG_DECODE_TILE, RG_DECODE_THREADS>(
                p.kv, pages, head_row, work.first + t * RG_DECODE_TILE, work.last,
                shared + t * stage_bytes);
        rg_copy_commit();
    }
    softmax_rows rows = {{rg_minus_infinity(), rg_minus_infinity()}, {0, 0}};
    float o[head_dim / 8][4] = {};
    for (int t = 0; t < tiles; t++) {
        rg_copy_wait<stages - 2>();
        rg_sync();
        const int next = t + stages - 1;
        if (next < tiles)
            rg_tile_copy<store, head_dim, RG_DECODE_TILE, RG_DECODE_THREADS>(
                p.kv, pages, head_row, work.first + next * RG_DECODE_TILE, work.last,
                shared + next % stages * stage_bytes);
        rg_copy_commit();
        warp_tokens<store, head_dim>(p, shared + t % stages * stage_bytes,
                                     work.first + t * RG_DECODE_TILE, work.last, fragments, &rows,
                                     o);
    }
    rg_copy_wait<0>();
    rg_sync();
    finish_part<store, head_dim>(p, work, rows, o, shared);
}

#define RG_DECODE_MMA(name, store, head_dim)                                     \
    RG_KERNEL(name, rg_decode_params, RG_DECODE_THREADS, head_dim > 128 ? 1 : 2) \
    {                                                                            \
        RG_SHARED(shared);                                                       \
        for (int w = RG_BID; w < p.work_count; w += RG_GRID)                     \
            decode_part<store, head_dim>(p, p.work[w], shared);                  \
    }

RG_DECODE_MMA(rg_decode_mma_bfloat16_64, RG_STORE_BF16, 64)
RG_DECODE_MMA(rg_decode_mma_bfloat16_128, RG_STORE_BF16, 128)
RG_DECODE_MMA(rg_decode_mma_bfloat16_256, RG_STORE_BF16, 256)
RG_DECODE_MMA(rg_decode_mma_fp8_64, RG_STORE_E4M3, 64)
RG_DECODE_MMA(rg_decode_mma_fp8_128, RG_STORE_E4M3, 128)
RG_DECODE_MMA(rg_decode_mma_fp8_256, RG_STORE_E4M3, 256)
RG_DECODE_MMA(rg_decode_mma_int8_64, RG_STORE_INT8, 64)
RG_DECODE_MMA(rg_decode_mma_int8_128, RG_STORE_INT8, 128)
RG_DECODE_MMA(rg_decode_mma_int8_256, RG_STORE_INT8, 256)
RG_DECODE_MMA(rg_decode_mma_int4_64, RG_STORE_INT4, 64)
RG_DECODE_MMA(rg_decode_mma_int4_128, RG_STORE_INT4, 128)
RG_DECODE_MMA(rg_decode_mma_int4_256, RG_STORE_INT4, 256)

/** One block for each (sequence, KV head) in several parts; threads share heads and dimensions. */
RG_KERNEL(rg_decode_merge, rg_merge_params, RG_MERGE_THREADS, 4)
{
    const rg_merge_work work = p.work[RG_BID];
    const int64_t row = p.value_dim + 2;
    const int64_t head0 = ((int64_t)work.sequence * p.kv_heads + work.head) * p.group;
    for (int i = RG_TID; i < work.count * p.value_dim; i += RG_MERGE_THREADS) {
        const int head = work.from + i / p.value_dim, d = i % p.value_dim;
        const float *part = p.partial + ((int64_t)work.first_slot * p.group + head) * row;
        float highest = rg_minus_infinity(), weight = 0, value = 0;
        for (int s = 0; s < work.parts; s++)
            highest = rg_max(highest, part[s * p.group * row]);
        for (int s = 0; s < work.parts && highest != rg_minus_infinity(); s++) {
            const float *at = part + s * p.group * row;
            const float factor = rg_exp2(at[0] - highest);
            weight += factor * at[1];
            value += factor * at[2 + d];
        }
        p.out[(head0 + head) * p.value_dim + d] = rg_bf16_from(weight > 0 ? value / weight : 0.0f);
    }
}

#endif

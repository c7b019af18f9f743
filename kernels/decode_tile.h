/* kernels/decode_tile.h: tiles of a paged KV cache in shared memory, and their conversion to bf16.
 *
 * Reads dev.h, decode.h. Device code of the decode kernels.
 *
 * Fragments are loaded as whole vectors instead of by ldmatrix, which has no form for 8 and 4 bit.
 * That permutes dimensions and tokens; a product does not care as long as both factors are permuted
 * alike:
 *  - scores: lane (g, q) of a warp takes vector q of each 4-vector group of the row of token
 *    rg_token(g); queries lie in shared memory in the same order;
 *  - output: lane (g, q) takes vector g of each 8-vector group of the rows of tokens q, 4 +
 * (q+2)%4, and 8 more of both, which are the tokens of its score fragment.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_DECODE_TILE_H
#define RG_KERNELS_DECODE_TILE_H

#include "decode.h"
#include "dev.h"

/** What is known of a row at compile time. */
template <rg_store store, int head_dim>
struct rg_row {
    static constexpr int bits = store == RG_STORE_BF16 ? 16 : (store == RG_STORE_INT4 ? 4 : 8);
    static constexpr int bytes = head_dim * bits / 8;
    static constexpr int chunks = bytes / 16;
    static constexpr int pitch = bytes + (bytes % 64 == 0 ? 32 : 0);
    static constexpr int scales =
        store == RG_STORE_INT4 ? head_dim / RG_INT4_GROUP : (store == RG_STORE_INT8 ? 1 : 0);
    static constexpr int pairs_per_word = 16 / bits; /* bf16 pairs out of 4 bytes */
};

/** Column of a score tile to the token of its 8 that stands there. */
RG_DEVICE int rg_token(int column)
{
    return column % 2 == 0 ? column / 2 : 4 + ((column / 2 + 2) & 3);
}

/** bf16 pairs of one stored word, as numbers without their scale (int4: without zero and scale when
 * scale_word is that of zero 0 and scale 1). Pair i of a word holds elements 2i, 2i + 1; for int4
 * elements i and i + 4. */
template <rg_store store>
RG_DEVICE void rg_pairs(uint32_t word, uint32_t scale_word, uint32_t *pairs)
{
    if constexpr (store == RG_STORE_BF16) {
        pairs[0] = word;
    } else if constexpr (store == RG_STORE_E4M3) {
        /* a code's bits as those of a bf16 are 2^120 too small; the product is exact */
        RG_UNROLL
        for (int i = 0; i < 2; i++) {
            const uint32_t spread = rg_byte_perm(word, 0, i == 0 ? 0x1404 : 0x3424);
            const uint32_t small = (spread & 0x80008000u) | ((spread & 0x7f007f00u) >> 4);
            pairs[i] = rg_fma_bf16x2(small, 0x7b807b80u, 0x80008000u);
        }
    } else if constexpr (store == RG_STORE_INT8) {
        /* 2^23 + (x + 128) in float, less 2^23 + 128 */
        const uint32_t biased = word ^ 0x80808080u;
        RG_UNROLL
        for (int i = 0; i < 2; i++) {
            const float lo = rg_bits_float(rg_byte_perm(biased, 0x4b000000u, 0x7440u + 2u * i));
            const float hi = rg_bits_float(rg_byte_perm(biased, 0x4b000000u, 0x7441u + 2u * i));
            pairs[i] = rg_pack_bf16(lo - 8388736.0f, hi - 8388736.0f);
        }
    } else {
        /* 128 + code in bf16, less 128 + zero, times scale: the first two are exact */
        const uint32_t scale = rg_byte_perm(scale_word, 0, 0x1010);
        const float zero = rg_bits_float(scale_word & 0xffff0000u);
        const uint32_t less = rg_pack_bf16(-128.0f - zero, -128.0f - zero);
        RG_UNROLL
        for (int i = 0; i < 4; i++) {
            const uint32_t code = ((word >> (4 * i)) & 0x000f000fu) | 0x43004300u;
            pairs[i] = rg_fma_bf16x2(rg_fma_bf16x2(code, 0x3f803f80u, less), scale, 0x80008000u);
        }
    }
}

/** Element of a word's pair and half, in storage order. */
template <rg_store store>
RG_DEVICE constexpr int rg_pair_element(int pair, int half)
{
    return store == RG_STORE_INT4 ? pair % 4 + 4 * half + pair / 4 * 8 : 2 * pair + half;
}

/** bytes (4, 8 or 16) of shared memory into words. */
template <int bytes>
RG_DEVICE void rg_load_words(const void *shared, uint32_t *words)
{
    if constexpr (bytes == 16) {
        const uint4 v = *(const uint4 *)shared;
        words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    } else {
        RG_UNROLL
        for (int i = 0; i < bytes / 4; i++)
            words[i] = ((const uint32_t *)shared)[i];
    }
}

/** Copy one tile of K and V (and scales) into a stage, asynchronously; tokens at or past `last` are
 * zeros. V is left out when p.v is NULL. */
template <rg_store store, int head_dim, int tile, int threads>
RG_DEVICE void rg_tile_copy(const rg_kv_view &kv, const int32_t *pages, int64_t head_row, int first,
                            int last, unsigned char *stage)
{
    using row = rg_row<store, head_dim>;
    unsigned char *const v_stage = stage + tile * row::pitch;
    for (int i = RG_TID; i < tile * row::chunks; i += threads) {
        const int t = i / row::chunks, chunk = i % row::chunks;
        const bool on = first + t < last;
        int64_t from = 0;
        if (on) {
            const uint32_t page = rg_divide((uint32_t)(first + t), kv.by_page);
            const int in_page = first + t - (int)page * kv.page_tokens;
            from = ((int64_t)pages[page] * kv.page_rows + head_row +
                    (int64_t)in_page * kv.token_rows) *
                       row::bytes +
                   chunk * 16;
        }
        rg_copy16(stage + t * row::pitch + chunk * 16, kv.k + from, on);
        if (kv.v)
            rg_copy16(v_stage + t * row::pitch + chunk * 16, kv.v + from, on);
    }
    if constexpr (row::scales > 0) {
        unsigned char *const scales = stage + 2 * tile * row::pitch;
        for (int i = RG_TID; i < tile * row::scales; i += threads) {
            const int t = i / row::scales, word = i % row::scales;
            const bool on = first + t < last;
            int64_t from = 0;
            if (on) {
                const uint32_t page = rg_divide((uint32_t)(first + t), kv.by_page);
                const int in_page = first + t - (int)page * kv.page_tokens;
                from = ((int64_t)pages[page] * kv.page_rows + head_row +
                        (int64_t)in_page * kv.token_rows) *
                           row::scales +
                       word;
            }
            rg_copy4(scales + 4 * i, kv.k_scale + from, on);
            rg_copy4(scales + 4 * (tile * row::scales + i), kv.v_scale + from, on);
        }
    }
}

RG_DEVICE float rg_minus_infinity(void)
{
    return rg_bits_float(0xff800000u);
}

#endif

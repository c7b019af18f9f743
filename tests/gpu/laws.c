/* tests/gpu/laws.c: laws of the host side of the kernels: number formats, division, work lists,
 * tile orders, page tables.
 *
 * Linked with ridge-probe's objects; cmocka.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench.h"
#include "cache.h"
#include "collective.h"
#include "decode.h"
#include "gemm.h"

/* By the definition of OCP FP8 e4m3: (-1)^s 2^(e-7) (1 + m/8), subnormal 2^-6 m/8. */
static void every_fp8_code_has_its_value(void **state)
{
    (void)state;
    for (int code = 0; code < 256; code++) {
        const int e = code >> 3 & 15, m = code & 7;
        const double magnitude = e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
        assert_true((double)rg_e4m3_value((uint8_t)code) == (code & 128 ? -magnitude : magnitude));
    }
}

static void bf16_rounds_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    assert_int_equal(rg_bf16_from(1.0f), 0x3f80);
    assert_int_equal(rg_bf16_from(1.0f + 1.0f / 256), 0x3f80); /* tie, even below */
    assert_int_equal(rg_bf16_from(1.0f + 3.0f / 256), 0x3f82); /* tie, even above */
    assert_int_equal(rg_bf16_from(1.0f + 1.0f / 255), 0x3f81);
    assert_int_equal(rg_bf16_from(-2.5f), 0xc020);
    assert_int_equal(rg_bf16_from(INFINITY), 0x7f80);
    assert_true(isnan(rg_bf16_value(rg_bf16_from(NAN))));
    for (uint32_t b = 0; b < 0x7f80; b += 7) /* values that are bf16 come back */
        assert_int_equal(rg_bf16_from(rg_bf16_value((uint16_t)b)), b);
}

static void division_by_multiplication_is_exact_below_2_31(void **state)
{
    (void)state;
    static const uint32_t divisors[] = {1,  2,  3,   5,   7,     16,    18,      36,
                                        48, 72, 100, 641, 65535, 65536, 1000003, 0x7fffffffu};
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        const uint32_t d = divisors[i];
        const rg_divisor r = rg_divisor_make(d);
        for (uint64_t k = 0; k < 4000; k++) {
            /* around multiples of d all over the range, and random numerators */
            const uint64_t spread = 0x7fffffffu / d;
            const uint32_t near = (uint32_t)(k % 2 ? (spread * k / 4000) * d : rg_mix(d, k) >> 33);
            for (int off = -1; off <= 1; off++) {
                const uint32_t n = (near + (uint32_t)off) & 0x7fffffffu;
                const uint32_t got = r.multiplier
                                         ? (uint32_t)(((uint64_t)n * r.multiplier) >> 32) >> r.shift
                                         : n >> r.shift;
                assert_int_equal(got, n / d);
            }
        }
    }
}

static void noise_has_mean_zero_and_the_deviation_that_is_stated(void **state)
{
    (void)state;
    double sum = 0, square = 0;
    const int n = 200000;
    for (int i = 0; i < n; i++) {
        const double x = rg_noise(3, (uint64_t)i);
        assert_true(fabs(x) <= 2);
        sum += x;
        square += x * x;
    }
    /* deviation of a mean of n is 0.577 / sqrt(n) = 0.0013: four of them; of the square below 1 %
     */
    assert_true(fabs(sum / n) < 0.0052);
    assert_true(fabs(sqrt(square / n) - 0.57735) < 0.006);
}

static void every_token_of_every_head_is_in_one_part(void **state)
{
    (void)state;
    static const int32_t lengths[] = {0, 1, 63, 64, 65, 1000, 0, 4096};
    static const int32_t wanted[] = {1, 7, 132, 5000};
    rg_err err = {0};
    for (size_t u = 0; u < 4; u++) {
        rg_arena *arena = rg_arena_new(64);
        rg_kv_work *work = NULL;
        int32_t count = 0, most = 0;
        assert_int_equal(
            rg_work_build(arena, lengths, 8, 3, wanted[u], 64, &work, &count, &most, &err), RG_OK);
        int32_t seen[8][3] = {{0}}, parts[8][3] = {{0}};
        char *slots = calloc((size_t)count, 1);
        for (int32_t i = 0; i < count; i++) {
            const rg_kv_work *w = &work[i];
            assert_true(w->first >= 0 && w->first <= w->last && w->last <= lengths[w->sequence]);
            assert_true(w->first % 64 == 0);
            assert_true(i == 0 || w->last - w->first <= work[i - 1].last - work[i - 1].first);
            assert_int_equal(slots[w->slot]++, 0);
            seen[w->sequence][w->head] += w->last - w->first;
            parts[w->sequence][w->head]++;
            assert_true(w->parts <= most);
        }
        for (int s = 0; s < 8; s++)
            for (int h = 0; h < 3; h++)
                assert_int_equal(seen[s][h], lengths[s]);
        for (int32_t i = 0; i < count; i++)
            assert_int_equal(parts[work[i].sequence][work[i].head], work[i].parts);
        free(slots);
        rg_arena_free(arena);
    }
}

static void every_output_tile_is_computed_once(void **state)
{
    (void)state;
    for (int32_t m = 1; m < 30; m += 3)
        for (int32_t n = 1; n < 20; n += 2) {
            char seen[30][20] = {{0}};
            for (int32_t i = 0; i < m * n; i++) {
                int32_t at_m = -1, at_n = -1;
                rg_gemm_tile(i, m, n, &at_m, &at_n);
                assert_true(at_m >= 0 && at_m < m && at_n >= 0 && at_n < n);
                assert_int_equal(seen[at_m][at_n]++, 0);
            }
        }
}

static void parts_of_a_collective_cover_all_vectors(void **state)
{
    (void)state;
    for (int64_t vectors = 1; vectors < 100; vectors += 7)
        for (int32_t ranks = 1; ranks <= 16; ranks++) {
            assert_int_equal(rg_part_first(vectors, 0, ranks), 0);
            assert_int_equal(rg_part_first(vectors, ranks, ranks), vectors);
            for (int32_t r = 0; r < ranks; r++)
                assert_true(rg_part_first(vectors, r, ranks) <=
                            rg_part_first(vectors, r + 1, ranks));
        }
}

/* Lanes 0..7 load 16 bytes each of K rows rg_token(0), rg_token(1) and of V rows 0..3: with a pitch
 * of 32 or 96 modulo 128 their chunks fall on all eight 16-byte banks once. */
static void fragment_loads_touch_each_bank_once(void **state)
{
    (void)state;
    static const int32_t rows[] = {32, 64, 128, 256, 512, 576, 1152};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int32_t pitch = rg_decode_pitch(rows[i]);
        assert_true(pitch % 16 == 0 && (pitch % 128 == 32 || pitch % 128 == 96));
        for (int pair = 0; pair < 4; pair++) {
            /* token of an even column c is c / 2, of the odd one beside it 4 + (c / 2 + 2) % 4 */
            const int key[2] = {pair, 4 + (pair + 2) % 4};
            unsigned banks = 0;
            for (int lane = 0; lane < 8; lane++)
                banks |= 1u << (key[lane / 4] * pitch / 16 + lane % 4) % 8;
            assert_int_equal(banks, 0xff);
        }
        unsigned banks = 0;
        for (int lane = 0; lane < 8; lane++) /* quad: row, group: chunk */
            banks |= 1u << (lane % 4 * pitch / 16 + lane / 4) % 8;
        assert_int_equal(banks, 0xff);
    }
}

/* KV bytes by hand: 70B decoder, 8 KV heads of 128 in 16 bit, 4096 tokens: 2 x 8 x 128 x 2 x 4096 a
 * layer; int4 in groups of 32 has 4 bytes of scale and zero for 16 of codes. */
static void cache_bytes_are_those_by_hand(void **state)
{
    (void)state;
    static const int32_t lengths[] = {4096};
    rg_cache_spec spec = {
        .store = RG_STORE_BF16, .head_dim = 128, .kv_heads = 8, .batch = 1, .lengths = lengths};
    assert_true(rg_cache_read_bytes(&spec) == 16777216.0);
    spec.store = RG_STORE_INT4;
    assert_true(rg_cache_read_bytes(&spec) == 16777216.0 / 4 * 1.25);
    spec.store = RG_STORE_INT8;
    assert_true(rg_cache_read_bytes(&spec) == 16777216.0 / 2 * (132.0 / 128));
    spec.store = RG_STORE_BF16;
    spec.head_dim = 576, spec.kv_heads = 1, spec.shared_kv = true;
    assert_true(rg_cache_read_bytes(&spec) == 1152.0 * 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fp8_code_has_its_value),
        cmocka_unit_test(bf16_rounds_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(division_by_multiplication_is_exact_below_2_31),
        cmocka_unit_test(noise_has_mean_zero_and_the_deviation_that_is_stated),
        cmocka_unit_test(every_token_of_every_head_is_in_one_part),
        cmocka_unit_test(every_output_tile_is_computed_once),
        cmocka_unit_test(parts_of_a_collective_cover_all_vectors),
        cmocka_unit_test(fragment_loads_touch_each_bank_once),
        cmocka_unit_test(cache_bytes_are_those_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

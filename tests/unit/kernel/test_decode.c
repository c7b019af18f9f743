/* Attention of one query token against a cache: hand calculations. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_fixture.h"

static rg_op decode(int64_t batch, double tokens, int64_t heads, int64_t kv_heads, int64_t window)
{
    const rg_op_attention a = {.batch = batch,
                               .q_tokens = 1,
                               .kv_tokens = tokens - 1.0,
                               .kv_tokens_max = tokens - 1.0,
                               .heads = heads,
                               .kv_heads = kv_heads,
                               .head_dim = 128,
                               .window = window,
                               .causal = true,
                               .fused = true,
                               .math = RG_BF16,
                               .kv = format_of("bf16")};
    return rg_op_make_attention("attention", RG_OP_ATTN_DECODE, &a);
}

static double seconds(const rg_kernel_device *device, int64_t batch, double tokens, int64_t heads,
                      int64_t kv_heads)
{
    const rg_op op = decode(batch, tokens, heads, kv_heads, 0);
    return seconds_of(device, &op);
}

static void xqa_cuts_long_caches_by_the_root_of_their_length(void **state)
{
    (void)state;
    rg_kernel_device d = bare_device(false);
    d.c[RG_KG_DECODE][RG_DEC_JOIN] = 1000;
    /* 16384 / 128 = 128, sqrt(8 128) = 32. 64 caches would be 20.48 waves of 100: 32 8 / 20.48. */
    assert_close(seconds(&d, 1, 16384, 8, 1), 32e-6, 1e-9);
    assert_close(seconds(&d, 64, 16384, 8, 1), 12e-6, 1e-9);
    assert_close(seconds(&d, 1, 512, 8, 1), 4e-6, 1e-9);
}

static void flash_attention_fills_its_slots_to_85_percent(void **state)
{
    (void)state;
    rg_kernel_device d = bare_device(false);
    d.flash = true;
    d.peak[RG_BF16] = 1e30;
    d.c[RG_KG_DECODE][RG_DEC_JOIN] = 1000;
    /* 128 blocks, 8 tiles on 200 slots. Cuts into 16, 19, 22 fill 64, 76, 88 %, others no more;
     * 76 is the first above 0.85 88. */
    assert_close(seconds(&d, 8, 16384, 8, 1), 19e-6, 1e-9);
    /* One head for each: no cut. */
    assert_true(seconds(&d, 8, 16384, 1, 1) < 1e-9);
}

static void windows_are_dealt_to_all_splits(void **state)
{
    (void)state;
    rg_kernel_device d = bare_device(false);
    d.c[RG_KG_DECODE][RG_DEC_CTA] = 1000;
    d.c[RG_KG_DECODE][RG_DEC_LONE] = 100;
    /* 32 splits of a window of 8192 tokens: 4 steps of 64 each. */
    const rg_op op = decode(1, 16384, 8, 1, 8192);
    assert_close(seconds_of(&d, &op), 1300e-9, 1e-9);
}

static void the_last_wave_takes_as_long_as_a_lone_unit(void **state)
{
    (void)state;
    rg_kernel_device d = bare_device(false);
    d.c[RG_KG_DECODE][RG_DEC_CTA] = 1000;
    /* 100 SMs: 100 units, 101, 200. */
    assert_close(seconds(&d, 100, 64, 8, 1), 1e-6, 1e-9);
    assert_close(seconds(&d, 101, 64, 8, 1), 2e-6, 1e-9);
    assert_close(seconds(&d, 200, 64, 8, 1), 2e-6, 1e-9);
}

static void the_vector_kernel_has_one_cta_on_an_sm(void **state)
{
    (void)state;
    rg_kernel_device d = bare_device(false);
    d.vector_decode = true;
    double *c = d.c[RG_KG_DECODE];
    c[RG_DEC_VECTOR_CTA] = 1000;
    c[RG_DEC_VECTOR_TOKEN] = 10;
    /* 100 and 101 heads; 100 tokens are taken as 128, 2 as 8; 50 heads of 1024 tokens in halves. */
    assert_close(seconds(&d, 100, 100, 1, 1), 2280e-9, 1e-9);
    assert_close(seconds(&d, 101, 100, 1, 1), 2 * 2280e-9, 1e-9);
    assert_close(seconds(&d, 100, 2, 1, 1), 1080e-9, 1e-9);
    assert_close(seconds(&d, 50, 1024, 1, 1), 6120e-9, 1e-9);
    /* 60 heads are 120 CTAs: two waves. */
    assert_close(seconds(&d, 60, 1024, 1, 1), 2 * 6120e-9, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xqa_cuts_long_caches_by_the_root_of_their_length),
        cmocka_unit_test(flash_attention_fills_its_slots_to_85_percent),
        cmocka_unit_test(windows_are_dealt_to_all_splits),
        cmocka_unit_test(the_last_wave_takes_as_long_as_a_lone_unit),
        cmocka_unit_test(the_vector_kernel_has_one_cta_on_an_sm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

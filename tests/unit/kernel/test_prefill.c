/* Attention over many query tokens: hand calculations. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_fixture.h"

static rg_op attention(int64_t q, int64_t heads, int64_t dim, bool causal)
{
    const rg_op_attention a = {.batch = 1,
                               .q_tokens = q,
                               .heads = heads,
                               .kv_heads = 1,
                               .head_dim = dim,
                               .causal = causal,
                               .fused = true,
                               .math = RG_BF16,
                               .kv = format_of("bf16")};
    return rg_op_make_attention("attention", RG_OP_ATTN_PREFILL, &a);
}

static double seconds(const rg_kernel_device *device, int64_t q, int64_t heads, int64_t dim,
                      bool causal)
{
    const rg_op op = attention(q, heads, dim, causal);
    return seconds_of(device, &op);
}

static void a_causal_tile_walks_over_the_keys_it_sees(void **state)
{
    (void)state;
    const rg_kernel_device d = bare_device(true);
    /* 8 tiles of 1 to 8 steps for each of 100 heads on 100 SMs. */
    assert_close(seconds(&d, 1024, 100, 128, true), 36 * step_s, 1e-9);
    /* Heads of 64: steps of 256 keys, as long; tiles of 1, 1, 2, 2, 3, 3, 4 and 4. */
    assert_close(seconds(&d, 1024, 100, 64, true), 20 * step_s, 1e-9);
    /* 64 more rows: a ninth tile of 9 steps that fills one of two warp groups. */
    assert_close(seconds(&d, 1088, 100, 128, true), (36 + 0.5 * 9) * step_s, 1e-9);
    /* A window of 256: two key tiles and the one that is cut. */
    rg_op windowed = attention(1024, 100, 128, true);
    rg_op_attention a = windowed.u.attention;
    a.window = 256;
    windowed = rg_op_make_attention("attention", RG_OP_ATTN_PREFILL, &a);
    assert_close(seconds_of(&d, &windowed), (1 + 2 + 6 * 3) * step_s, 1e-9);
}

static void equal_tiles_run_in_whole_waves(void **state)
{
    (void)state;
    const rg_kernel_device d = bare_device(true);
    assert_close(seconds(&d, 256, 50, 128, false), 2 * step_s, 1e-9);
    assert_close(seconds(&d, 256, 51, 128, false), 4 * step_s, 1e-9);
}

static void small_tiles_share_an_sm(void **state)
{
    (void)state;
    rg_kernel_device d = bare_device(false);
    d.flash = true;
    d.c[RG_KG_PREFILL][RG_PRE_ALONE] = 1.25;
    /* Tiles of 64 rows: half a step. 100 of them are alone, 200 in pairs. */
    assert_close(seconds(&d, 64, 100, 128, true), 1.25 * 0.5 * step_s, 1e-9);
    assert_close(seconds(&d, 64, 200, 128, true), 2.0 * 0.5 * step_s, 1e-9);
    /* One head, 160 tiles of 1 to 80 steps: the last shares an SM with the 60th, which takes 30. */
    assert_close(seconds(&d, 64 * 160, 1, 128, true), (1.25 * 80 + 0.75 * 30) * 0.5 * step_s, 1e-9);
}

static void each_warp_reads_all_keys_and_values_from_shared_memory(void **state)
{
    (void)state;
    rg_kernel_device d = bare_device(false);
    d.flash = true;
    d.shared_bytes_per_cycle = 128;
    d.peak[RG_BF16] = 1e30;
    /* 4 warps, 128 keys, 256 columns, 2 bytes, 128 bytes a cycle. */
    assert_close(seconds(&d, 64, 100, 128, true), 2048e-9, 1e-9);
    d.fine_tiles = true;
    assert_true(seconds(&d, 64, 100, 128, true) < 1e-12);
}

static void flash_attention_writes_the_cache_first(void **state)
{
    (void)state;
    rg_kernel_device d = bare_device(true);
    d.flash = true;
    const double before = seconds(&d, 1024, 100, 128, true);
    d.c[RG_KG_PREFILL][RG_PRE_WRITE] = 100;
    /* 1024 blocks of 4 warps, each 100 4 / 8 cycles, over 100 SMs. */
    assert_close(seconds(&d, 1024, 100, 128, true) - before, 1024 * 4 * 50 / 100.0 * 1e-9, 1e-6);
    rg_op op = attention(1024, 100, 128, true);
    rg_op_attention a = op.u.attention;
    a.no_cache = true;
    op = rg_op_make_attention("attention", RG_OP_ATTN_PREFILL, &a);
    assert_close(seconds_of(&d, &op), before, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_causal_tile_walks_over_the_keys_it_sees),
        cmocka_unit_test(equal_tiles_run_in_whole_waves),
        cmocka_unit_test(small_tiles_share_an_sm),
        cmocka_unit_test(each_warp_reads_all_keys_and_values_from_shared_memory),
        cmocka_unit_test(flash_attention_writes_the_cache_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

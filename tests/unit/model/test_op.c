/* tests/unit/model/test_op.c: flops and bytes of single operators, by hand and by law. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "model/op.h"

static rg_format format(const char *name)
{
    rg_err err = {0};
    rg_format f;
    assert_ok(rg_format_parse(name, RG_NOWHERE, &f, &err));
    return f;
}

static rg_op_attention decode_shape(int64_t heads, int64_t kv_heads)
{
    return (rg_op_attention){.batch = 4,
                             .q_tokens = 1,
                             .kv_tokens = 1023,
                             .heads = heads,
                             .kv_heads = kv_heads,
                             .head_dim = 128,
                             .causal = true,
                             .fused = true,
                             .math = RG_BF16,
                             .kv = format("bf16")};
}

static void a_product_counts_two_flops_a_multiply_add_and_each_operand_once(void **state)
{
    (void)state;
    const rg_format w = format("bf16");
    const rg_op op = rg_op_make_gemm("x", 16, 4096, 8192, &w, RG_BF16, RG_BF16);
    assert_close(op.flops.v, 2.0 * 16 * 4096 * 8192, 0);
    assert_close(op.weight_bytes.v, 2.0 * 4096 * 8192, 0);
    assert_close(op.input_bytes.v, 2.0 * 16 * 8192, 0);
    assert_close(op.output_bytes.v, 2.0 * 16 * 4096, 0);
    /* 32 column tiles pull X, one row tile pulls W. */
    assert_close(op.l2_bytes.v, 32 * op.input_bytes.v + op.weight_bytes.v + op.output_bytes.v, 0);
}

static void scales_of_quantised_weights_are_counted(void **state)
{
    (void)state;
    const rg_format nvfp4 = format("nvfp4"), int4 = format("int4_g128");
    /* 4 bits and one 8-bit scale per 16; 4 bits, a 16-bit scale and a 4-bit zero point per 128. */
    rg_op op = rg_op_make_gemm("x", 1, 1024, 1024, &nvfp4, RG_FP4, RG_BF16);
    assert_close(op.weight_bytes.v, 1048576 * (4 + 8 / 16.0) / 8, 1e-12);
    op = rg_op_make_gemm("x", 1, 1024, 1024, &int4, RG_BF16, RG_BF16);
    assert_close(op.weight_bytes.v, 1048576 * (4 + 20 / 128.0) / 8, 1e-12);
}

static void decode_reads_each_kv_head_once_whatever_the_query_heads(void **state)
{
    (void)state;
    rg_op_attention mha = decode_shape(64, 64), gqa = decode_shape(64, 8);
    const rg_op a = rg_op_make_attention("a", RG_OP_ATTN_DECODE, &mha);
    const rg_op b = rg_op_make_attention("a", RG_OP_ATTN_DECODE, &gqa);
    assert_close(a.kv_read_bytes.v / b.kv_read_bytes.v, 64.0 / 8, 1e-12);
    assert_close(a.flops.v, b.flops.v, 1e-12);
    assert_close(b.kv_read_bytes.v, 4.0 * 1024 * 2 * 8 * 128 * 2, 1e-12);
    assert_close(b.kv_write_bytes.v, 4.0 * 2 * 8 * 128 * 2, 1e-12);
    assert_close(b.flops.v, 4.0 * 64 * 1024 * 4 * 128, 1e-12);
}

static void causal_prefill_counts_half_a_square(void **state)
{
    (void)state;
    assert_close(rg_attention_pairs(1000, 0, 0, 0, true), 500500, 0);
    assert_close(rg_attention_pairs(1000, 0, 0, 0, false), 1000000, 0);
    assert_close(rg_attention_pairs(10, 90, 0, 0, true), 955, 0); /* 91 + ... + 100 */
}

static void a_prompt_in_chunks_costs_the_same_pairs(void **state)
{
    (void)state;
    for (int window = 0; window <= 300; window += 50) {
        double sum = 0;
        for (int past = 0; past < 1024; past += 128)
            sum += rg_attention_pairs(128, past, window, 0, true);
        assert_close(sum, rg_attention_pairs(1024, 0, window, 0, true), 1e-12);
    }
}

static void a_window_never_costs_more_than_full_attention(void **state)
{
    (void)state;
    double last = 0;
    for (int past = 0; past < 4096; past += 37) {
        const double full = rg_attention_pairs(16, past, 0, 0, true);
        const double some = rg_attention_pairs(16, past, 512, 4, true);
        assert_true(some <= full && some >= last);
        assert_true(rg_attention_span(16, past, 512, 4) <= rg_attention_span(16, past, 0, 0));
        last = some;
    }
    assert_close(last, 16.0 * 516, 0);
}

static void window_pairs_equal_a_count_one_by_one(void **state)
{
    (void)state;
    for (int past = 0; past < 40; past += 3)
        for (int window = 1; window < 30; window += 4) {
            int count = 0;
            for (int i = 0; i < 13; i++)
                count += past + i + 1 < window + 2 ? past + i + 1 : window + 2;
            assert_close(rg_attention_pairs(13, past, window, 2, true), count, 0);
        }
}

static void unfused_attention_moves_its_scores_four_times(void **state)
{
    (void)state;
    rg_op_attention shape = decode_shape(32, 8);
    const rg_op fused = rg_op_make_attention("a", RG_OP_ATTN_DECODE, &shape);
    shape.fused = false;
    const rg_op unfused = rg_op_make_attention("a", RG_OP_ATTN_DECODE, &shape);
    assert_close(rg_op_bytes(&unfused).v - rg_op_bytes(&fused).v, 4.0 * 4 * 32 * 1024 * 2, 1e-12);
    assert_close(unfused.flops.v, fused.flops.v, 0);
}

static void absorbed_mla_reads_one_latent_for_all_heads(void **state)
{
    (void)state;
    rg_op_attention shape = {.batch = 1,
                             .q_tokens = 1,
                             .kv_tokens = 4095,
                             .heads = 128,
                             .latent = 512,
                             .rope_dim = 64,
                             .causal = true,
                             .fused = true,
                             .math = RG_BF16,
                             .kv = format("bf16")};
    const rg_op op = rg_op_make_attention("mla", RG_OP_MLA_DECODE, &shape);
    assert_close(op.kv_read_bytes.v, 4096.0 * 576 * 2, 1e-12);
    assert_close(op.flops.v, 128.0 * 4096 * 2 * (576 + 512), 1e-12);
}

static void few_tokens_touch_few_experts_and_many_touch_all(void **state)
{
    (void)state;
    assert_close(rg_moe_touched(1, 256, 8, 0), 8, 1e-12);
    assert_close(rg_moe_touched(1e5, 256, 8, 0), 256, 1e-12);
    double last = 0;
    for (int tokens = 1; tokens < 3000; tokens *= 2) {
        const double now = rg_moe_touched(tokens, 128, 8, 0);
        assert_true(now > last || now >= 128 * (1 - 1e-9));
        assert_true(now <= tokens * 8.0 + 1e-9);
        /* uneven routing leaves experts idle */
        assert_true(rg_moe_touched(tokens, 128, 8, 1.0) <= now + 1e-9);
        last = now;
    }
}

static void experts_split_over_ranks_keep_their_sum(void **state)
{
    (void)state;
    rg_op_moe shape = {.tokens = 100,
                       .hidden = 2048,
                       .inter = 768,
                       .experts = 128,
                       .top_k = 8,
                       .local_experts = 128,
                       .matrices = 3,
                       .weight = format("bf16"),
                       .math = RG_BF16,
                       .act = RG_BF16};
    const rg_op whole = rg_op_make_moe("moe", &shape);
    shape.local_experts = 16;
    const rg_op part = rg_op_make_moe("moe", &shape);
    assert_close(whole.flops.v, 100.0 * 8 * 2 * 3 * 2048 * 768, 1e-12);
    assert_close(8 * part.flops.v, whole.flops.v, 1e-12);
    assert_close(8 * part.weight_bytes.v, whole.weight_bytes.v, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_counts_two_flops_a_multiply_add_and_each_operand_once),
        cmocka_unit_test(scales_of_quantised_weights_are_counted),
        cmocka_unit_test(decode_reads_each_kv_head_once_whatever_the_query_heads),
        cmocka_unit_test(causal_prefill_counts_half_a_square),
        cmocka_unit_test(a_prompt_in_chunks_costs_the_same_pairs),
        cmocka_unit_test(a_window_never_costs_more_than_full_attention),
        cmocka_unit_test(window_pairs_equal_a_count_one_by_one),
        cmocka_unit_test(unfused_attention_moves_its_scores_four_times),
        cmocka_unit_test(absorbed_mla_reads_one_latent_for_all_heads),
        cmocka_unit_test(few_tokens_touch_few_experts_and_many_touch_all),
        cmocka_unit_test(experts_split_over_ranks_keep_their_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/unit/model/test_pass.c: laws of the operator list of a pass, and figures worked by hand. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/doc.h"
#include "model/pass.h"

#define LLAMA_70B                                                                            \
    "{\"model_type\": \"llama\", \"hidden_size\": 8192, \"num_hidden_layers\": 80,"          \
    "\"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"intermediate_size\": 28672," \
    "\"vocab_size\": 128256}"
#define MIXTRAL                                                                              \
    "{\"model_type\": \"mixtral\", \"hidden_size\": 4096, \"num_hidden_layers\": 32,"        \
    "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336," \
    "\"vocab_size\": 32000, \"num_local_experts\": 8, \"num_experts_per_tok\": 2}"
#define DEEPSEEK_V3                                                                         \
    "{\"model_type\": \"deepseek_v3\", \"hidden_size\": 7168, \"num_hidden_layers\": 61,"   \
    "\"num_attention_heads\": 128, \"intermediate_size\": 18432, \"vocab_size\": 129280,"   \
    "\"kv_lora_rank\": 512, \"q_lora_rank\": 1536, \"qk_nope_head_dim\": 128,"              \
    "\"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"n_routed_experts\": 256,"             \
    "\"num_experts_per_tok\": 8, \"n_shared_experts\": 1, \"moe_intermediate_size\": 2048," \
    "\"first_k_dense_replace\": 3}"
#define QWEN3_NEXT                                                                      \
    "{\"model_type\": \"qwen3_next\", \"hidden_size\": 2048, \"num_hidden_layers\": 8," \
    "\"num_attention_heads\": 16, \"num_key_value_heads\": 2, \"head_dim\": 256,"       \
    "\"intermediate_size\": 5120, \"vocab_size\": 151936, \"num_experts\": 64,"         \
    "\"num_experts_per_tok\": 8, \"moe_intermediate_size\": 512,"                       \
    "\"shared_expert_intermediate_size\": 512, \"linear_conv_kernel_dim\": 4,"          \
    "\"linear_key_head_dim\": 128, \"linear_num_key_heads\": 16,"                       \
    "\"linear_num_value_heads\": 32, \"linear_value_head_dim\": 128}"

static rg_arena *arena;

static int make_arena(void **state)
{
    (void)state;
    arena = rg_arena_new(256);
    return 0;
}

static int drop_arena(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

static rg_model *model_of(const char *json)
{
    rg_err err = {0};
    rg_node *root;
    rg_model *m;
    assert_ok(rg_doc_parse(arena, "config.json", json, strlen(json), true, &root, &err));
    assert_ok(rg_model_import(arena, root, NULL, NULL, "test", &m, &err));
    return m;
}

static rg_formats formats_of(const rg_model *m, const char *weight, const char *kv)
{
    rg_err err = {0};
    rg_formats f;
    assert_ok(rg_formats_choose(m, weight, kv, NULL, &f, &err));
    return f;
}

typedef struct sums {
    double flops, products, weights, kv_read, kv_write, attention;
} sums;

static sums sum_of(const rg_model *m, const rg_formats *f, const rg_shard *shard,
                   const rg_pass *pass)
{
    rg_err err = {0};
    rg_op_list list;
    sums s = {0};
    assert_ok(rg_pass_ops(arena, m, f, shard, pass, &list, &err));
    for (int i = 0; i < list.count; i++) {
        const rg_op *op = &list.items[i];
        const double n = (double)op->count;
        const bool attends = op->kind >= RG_OP_ATTN_PREFILL && op->kind <= RG_OP_MLA_DECODE;
        s.flops += n * op->flops.v;
        s.products += op->kind == RG_OP_GEMM || op->kind == RG_OP_MOE ? n * op->flops.v : 0;
        s.attention += attends ? n * op->flops.v : 0;
        s.weights += op->kind == RG_OP_GEMM || op->kind == RG_OP_MOE ? n * op->weight_bytes.v : 0;
        s.kv_read += n * op->kv_read_bytes.v;
        s.kv_write += n * op->kv_write_bytes.v;
    }
    return s;
}

static const rg_shard whole = {.embedding = true, .head = true};

static rg_pass decode(int64_t batch, double context)
{
    return (rg_pass){.decodes = batch,
                     .tokens_per_decode = 1,
                     .decode_kv_tokens = (double)batch * context,
                     .decode_kv_max = context};
}

static void a_70b_token_reads_140_gb_and_does_140_gflop(void **state)
{
    (void)state;
    const rg_model *m = model_of(LLAMA_70B);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_pass pass = decode(1, 0);
    const sums s = sum_of(m, &f, &whole, &pass);
    /* matrices that a token passes: all but the embedding (128256 x 8192) and the 161 norms */
    const double matrices = 70553706496.0 - 128256.0 * 8192 - 161.0 * 8192;
    assert_close(s.products, 2 * matrices, 1e-12);
    assert_close(s.weights, 2 * matrices, 1e-12);
    assert_close(s.weights, 140e9, 0.02);
    assert_close(s.flops / s.weights, 1.0, 0.01);
}

static void kv_of_a_request_is_as_commonly_qualified(void **state)
{
    (void)state;
    rg_model *m = model_of(LLAMA_70B);
    const rg_formats f = formats_of(m, NULL, NULL);
    /* 4096 tokens: 1.34 GB with 8 KV heads; 10.7 GB with 64 */
    assert_close(rg_shard_kv_bytes(m, &f, &whole, 4096).v, 4096 * 327680.0, 1e-12);
    for (int64_t i = 0; i < m->layer_count; i++)
        m->layers[i].kv_heads = 64;
    assert_close(rg_shard_kv_bytes(m, &f, &whole, 4096).v, 8 * 4096 * 327680.0, 1e-12);
}

static void tokens_of_a_prompt_cost_two_flops_a_parameter_and_attention(void **state)
{
    (void)state;
    const rg_model *m = model_of(LLAMA_70B);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_chunk chunk = {.new_tokens = 2048};
    const rg_pass pass = {.chunks = &chunk, .chunk_count = 1};
    const sums s = sum_of(m, &f, &whole, &pass);
    const double layers = 80.0 * (8192.0 * (64 + 16) * 128 + 8192.0 * 8192 + 3.0 * 8192 * 28672);
    const double head = 128256.0 * 8192;
    assert_close(s.products, 2 * (2048 * layers + head), 1e-12);
    assert_close(s.attention, 80 * 64 * 4.0 * 128 * 2048 * 2049 / 2, 1e-12);
    assert_close(s.kv_write, 2048 * 327680.0, 1e-12);
}

static void a_chunked_prompt_adds_up_to_the_whole_one(void **state)
{
    (void)state;
    const rg_model *m = model_of(LLAMA_70B);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_chunk all = {.new_tokens = 4096};
    rg_pass pass = {.chunks = &all, .chunk_count = 1, .logit_rows = 1};
    const sums want = sum_of(m, &f, &whole, &pass);
    double attention = 0, layers = 0;
    for (int64_t past = 0; past < 4096; past += 512) {
        const rg_chunk part = {.new_tokens = 512, .past_tokens = past};
        pass.chunks = &part;
        const sums s = sum_of(m, &f, &whole, &pass);
        attention += s.attention;
        layers += s.products - 2 * 128256.0 * 8192;
    }
    assert_close(attention, want.attention, 1e-12);
    assert_close(layers, want.products - 2 * 128256.0 * 8192, 1e-12);
}

static void ranks_of_a_tensor_parallel_group_add_up(void **state)
{
    (void)state;
    const char *const models[] = {LLAMA_70B, MIXTRAL};
    for (int i = 0; i < 2; i++) {
        const rg_model *m = model_of(models[i]);
        const rg_formats f = formats_of(m, NULL, NULL);
        const rg_chunk chunk = {.new_tokens = 100, .past_tokens = 50};
        rg_pass pass = decode(7, 333);
        pass.chunks = &chunk;
        pass.chunk_count = 1;
        const sums one = sum_of(m, &f, &whole, &pass);
        for (int64_t tp = 2; tp <= 8; tp *= 2) {
            const rg_shard shard = {.tp = tp, .embedding = true, .head = true};
            const sums part = sum_of(m, &f, &shard, &pass);
            /* the router of Mixtral is on every rank: 2 x 107 x 32 x 8 x 4096 flops each */
            const double router = i == 1 ? 2 * 107.0 * 32 * 8 * 4096 : 0;
            assert_close((double)tp * (part.products - router) + router, one.products, 1e-12);
            assert_close((double)tp * part.attention, one.attention, 1e-12);
            assert_close((double)tp * part.kv_read, one.kv_read, 1e-12);
            assert_close((double)tp * rg_shard_kv_bytes(m, &f, &shard, 1000).v,
                         rg_shard_kv_bytes(m, &f, &whole, 1000).v, 1e-12);
        }
    }
}

static void ranks_of_a_hybrid_add_up(void **state)
{
    (void)state;
    const rg_model *m = model_of(QWEN3_NEXT);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_pass pass = decode(9, 100);
    const rg_shard two = {.tp = 2, .embedding = true, .head = true};
    const sums one = sum_of(m, &f, &whole, &pass), part = sum_of(m, &f, &two, &pass);
    const double router = 2 * 9.0 * 8 * 64 * 2048; /* on every rank */
    assert_close(2 * (part.products - router) + router, one.products, 1e-12);
    assert_close(2 * part.attention, one.attention, 1e-12);
    assert_close(2 * rg_shard_state_bytes(m, &two).v, rg_shard_state_bytes(m, &whole).v, 1e-12);
}

static void kv_heads_are_copied_beyond_their_number(void **state)
{
    (void)state;
    const rg_model *m = model_of(LLAMA_70B); /* 8 KV heads */
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_shard eight = {.tp = 8}, sixteen = {.tp = 16};
    assert_close(rg_shard_kv_bytes(m, &f, &sixteen, 100).v, rg_shard_kv_bytes(m, &f, &eight, 100).v,
                 1e-12);
}

static void expert_parallel_ranks_add_up(void **state)
{
    (void)state;
    const rg_model *m = model_of(MIXTRAL);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_pass pass = decode(64, 500);
    const rg_shard tp = {.tp = 8, .embedding = true, .head = true};
    const rg_shard ep = {.tp = 8, .ep = 8, .embedding = true, .head = true};
    const sums a = sum_of(m, &f, &tp, &pass), b = sum_of(m, &f, &ep, &pass);
    assert_close(a.products, b.products, 1e-12);
    assert_close(a.weights, b.weights, 1e-12);
    assert_close(rg_shard_weight_bytes(m, &f, &tp).v, rg_shard_weight_bytes(m, &f, &ep).v, 1e-12);
}

static void stages_of_a_pipeline_add_up(void **state)
{
    (void)state;
    const rg_model *m = model_of(DEEPSEEK_V3);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_pass pass = decode(32, 900);
    const sums all = sum_of(m, &f, &whole, &pass);
    const double bytes = rg_shard_weight_bytes(m, &f, &whole).v;
    double flops = 0, weights = 0;
    for (int64_t stage = 0; stage < 4; stage++) {
        const rg_shard s = {.first_layer = stage * 16,
                            .layer_count = stage == 3 ? 13 : 16,
                            .embedding = stage == 0,
                            .head = stage == 3};
        flops += sum_of(m, &f, &s, &pass).flops;
        weights += rg_shard_weight_bytes(m, &f, &s).v;
    }
    assert_close(flops, all.flops, 1e-12);
    assert_close(weights, bytes, 1e-12);
}

static void weights_in_memory_are_the_parameters(void **state)
{
    (void)state;
    const char *const models[] = {LLAMA_70B, MIXTRAL, DEEPSEEK_V3, QWEN3_NEXT};
    for (int i = 0; i < 4; i++) {
        const rg_model *m = model_of(models[i]);
        const rg_formats f = formats_of(m, NULL, NULL);
        assert_close(rg_shard_weight_bytes(m, &f, &whole).v, 2.0 * (double)m->parameters_total,
                     1e-12);
    }
}

static void attention_reads_what_memory_holds(void **state)
{
    (void)state;
    const char *const models[] = {LLAMA_70B, DEEPSEEK_V3, QWEN3_NEXT};
    for (int i = 0; i < 3; i++) {
        const rg_model *m = model_of(models[i]);
        const rg_formats f = formats_of(m, NULL, "fp8");
        const rg_pass pass = decode(1, 4095);
        const sums s = sum_of(m, &f, &whole, &pass);
        assert_close(s.kv_read, rg_shard_kv_bytes(m, &f, &whole, 4096).v, 1e-12);
        assert_close(s.kv_write, rg_shard_kv_bytes(m, &f, &whole, 1).v, 1e-12);
    }
}

static void heads_over_kv_heads_is_the_ratio_of_kv_bytes(void **state)
{
    (void)state;
    rg_model *m = model_of(LLAMA_70B);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_pass pass = decode(16, 1000);
    const double gqa = sum_of(m, &f, &whole, &pass).kv_read;
    for (int64_t i = 0; i < m->layer_count; i++)
        m->layers[i].kv_heads = 64;
    assert_close(sum_of(m, &f, &whole, &pass).kv_read / gqa, 64.0 / 8, 1e-12);
}

static void a_mixture_reads_few_experts_for_few_tokens(void **state)
{
    (void)state;
    const rg_model *m = model_of(MIXTRAL);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_pass one = decode(1, 10), many = decode(256, 10);
    const double expert = 32 * 3.0 * 4096 * 14336 * 2; /* bytes of one in all layers */
    /* 46.7 B in all, 12.9 B for a token: two of eight experts */
    assert_close(sum_of(m, &f, &whole, &many).weights - sum_of(m, &f, &whole, &one).weights,
                 6 * expert, 1e-9);
    assert_close((double)m->parameters_total - (double)m->parameters_active, 3 * expert, 1e-12);
}

static void absorbed_decode_and_expanded_prefill_do_equal_scores(void **state)
{
    (void)state;
    const rg_model *m = model_of(DEEPSEEK_V3);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_pass pass = decode(4, 1023);
    rg_err err = {0};
    rg_op_list list;
    assert_ok(rg_pass_ops(arena, m, &f, &whole, &pass, &list, &err));
    int found = 0;
    for (int i = 0; i < list.count; i++) {
        const rg_op *op = &list.items[i];
        assert_int_not_equal(op->kind, RG_OP_MLA_PREFILL);
        assert_string_not_equal(op->name, "kv_b_proj");
        if (strcmp(op->name, "mla_bmm_pre") == 0) {
            assert_int_equal(op->u.gemm.batch, 128);
            assert_int_equal(op->u.gemm.m, 4);
            assert_int_equal(op->u.gemm.n, 512);
            assert_int_equal(op->u.gemm.k, 128);
            found++;
        }
        if (op->kind == RG_OP_MLA_DECODE) {
            assert_close(op->kv_read_bytes.v, 4 * 1024 * 576 * 2.0, 1e-12);
            assert_int_equal(op->count, 61);
            found++;
        }
        if (strcmp(op->name, "mla_bmm_post") == 0)
            found++;
    }
    assert_int_equal(found, 3);
}

static void an_expanded_latent_costs_cache_and_no_absorbing(void **state)
{
    (void)state;
    const rg_model *m = model_of(DEEPSEEK_V3);
    rg_formats f = formats_of(m, NULL, NULL);
    f.kv_layout = RG_KV_MLA_EXPANDED;
    const rg_pass pass = decode(1, 4095);
    const sums s = sum_of(m, &f, &whole, &pass);
    assert_close(s.kv_read, 4096 * 61 * 128.0 * (192 + 128) * 2, 1e-12);
    assert_close(s.kv_read, rg_shard_kv_bytes(m, &f, &whole, 4096).v, 1e-12);
    assert_close(rg_shard_weight_bytes(m, &f, &whole).v, 2.0 * (double)m->parameters_total, 1e-12);
    rg_err err = {0};
    rg_op_list list;
    assert_ok(rg_pass_ops(arena, m, &f, &whole, &pass, &list, &err));
    for (int i = 0; i < list.count; i++)
        assert_int_not_equal(list.items[i].kind, RG_OP_MLA_DECODE);
}

static void seven_billion_at_2048_tokens_keep_a_gigabyte_a_request(void **state)
{
    (void)state;
    /* 8.4 GB as quoted is a batch of 8 */
    const rg_model *m =
        model_of("{\"model_type\": \"llama\", \"hidden_size\": 4096, \"num_hidden_layers\": 32,"
                 "\"num_attention_heads\": 32, \"intermediate_size\": 11008,"
                 "\"vocab_size\": 32000}");
    const rg_formats f = formats_of(m, NULL, NULL);
    const double one = rg_shard_kv_bytes(m, &f, &whole, 2048).v;
    assert_close(one, 1.07e9, 0.005);
    assert_close(8 * one, 8.4e9, 0.03);
}

static void data_parallel_attention_divides_sequences_and_not_heads(void **state)
{
    (void)state;
    const rg_model *m = model_of(DEEPSEEK_V3);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_pass pass = decode(64, 2000);
    const rg_shard dp = {.tp = 8, .attention_tp = 1, .ep = 8, .embedding = true, .head = true};
    const sums one = sum_of(m, &f, &whole, &pass), part = sum_of(m, &f, &dp, &pass);
    assert_close(8 * part.attention, one.attention, 1e-12);
    assert_close(8 * part.kv_read, one.kv_read, 1e-12);
}

static void context_parallel_ranks_share_the_cache(void **state)
{
    (void)state;
    const rg_model *m = model_of(LLAMA_70B);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_shard cp = {.cp = 4, .embedding = true, .head = true};
    assert_close(4 * rg_shard_kv_bytes(m, &f, &cp, 8192).v,
                 rg_shard_kv_bytes(m, &f, &whole, 8192).v, 1e-12);
    const rg_chunk chunk = {.new_tokens = 8192};
    const rg_pass pass = {.chunks = &chunk, .chunk_count = 1};
    assert_close(4 * sum_of(m, &f, &cp, &pass).attention, sum_of(m, &f, &whole, &pass).attention,
                 1e-12);
}

static void splits_that_engines_refuse_are_refused_with_a_reason(void **state)
{
    (void)state;
    rg_err err = {0};
    const rg_model *m = model_of(LLAMA_70B), *moe = model_of(MIXTRAL);
    const rg_shard odd = {.tp = 3}, experts = {.ep = 2}, uneven = {.tp = 8, .ep = 3};
    assert_int_equal(rg_shard_check(m, &odd, &err), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "64 query heads"));
    assert_int_equal(rg_shard_check(m, &experts, &(rg_err){0}), RG_ERR_MODEL);
    assert_int_equal(rg_shard_check(moe, &uneven, &(rg_err){0}), RG_ERR_MODEL);
    const rg_shard beyond = {.first_layer = 70, .layer_count = 20};
    assert_int_equal(rg_shard_check(m, &beyond, &(rg_err){0}), RG_ERR_MODEL);
}

static void linear_layers_move_state_and_no_cache(void **state)
{
    (void)state;
    const rg_model *m = model_of(QWEN3_NEXT);
    const rg_formats f = formats_of(m, NULL, NULL);
    const rg_pass near = decode(2, 10), far = decode(2, 10000);
    rg_err err = {0};
    rg_op_list a, b;
    assert_ok(rg_pass_ops(arena, m, &f, &whole, &near, &a, &err));
    assert_ok(rg_pass_ops(arena, m, &f, &whole, &far, &b, &err));
    assert_int_equal(a.count, b.count);
    int scans = 0;
    for (int i = 0; i < a.count; i++)
        if (a.items[i].kind == RG_OP_SCAN) {
            assert_close(a.items[i].input_bytes.v, b.items[i].input_bytes.v, 0);
            /* two sequences x 32 heads x 128 x 128 in 16 bit, and the tokens' own */
            assert_true(a.items[i].input_bytes.v > 2 * 32.0 * 128 * 128 * 2);
            assert_int_equal(a.items[i].count, 6);
            scans++;
        }
    assert_int_equal(scans, 1);
    assert_close(rg_shard_state_bytes(m, &whole).v,
                 6 * (32.0 * 128 * 128 + (32 * 128 + 2 * 16 * 128) * 3.0) * 2, 1e-12);
}

static void a_filled_plan_equals_a_fresh_list(void **state)
{
    (void)state;
    rg_err err = {0};
    const rg_model *m = model_of(DEEPSEEK_V3);
    const rg_formats f = formats_of(m, "fp8_block", "fp8");
    rg_pass_plan *plan;
    assert_ok(rg_pass_prepare(arena, m, &f, &whole, &plan, &err));
    rg_op *items = RG_NEW(arena, rg_op, rg_pass_plan_capacity(plan), &err);
    const rg_chunk chunks[] = {{512, 0}, {100, 1000}};
    rg_pass pass = decode(5, 100);
    pass.chunks = chunks;
    pass.chunk_count = 2;
    rg_op_list list;
    assert_ok(rg_pass_ops(arena, m, &f, &whole, &pass, &list, &err));
    const int count = rg_pass_fill(plan, &pass, items);
    assert_int_equal(count, list.count);
    assert_memory_equal(items, list.items, (size_t)count * sizeof *items);
    assert_int_equal(rg_pass_fill(plan, &(rg_pass){0}, items), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_70b_token_reads_140_gb_and_does_140_gflop),
        cmocka_unit_test(kv_of_a_request_is_as_commonly_qualified),
        cmocka_unit_test(tokens_of_a_prompt_cost_two_flops_a_parameter_and_attention),
        cmocka_unit_test(a_chunked_prompt_adds_up_to_the_whole_one),
        cmocka_unit_test(ranks_of_a_tensor_parallel_group_add_up),
        cmocka_unit_test(ranks_of_a_hybrid_add_up),
        cmocka_unit_test(kv_heads_are_copied_beyond_their_number),
        cmocka_unit_test(expert_parallel_ranks_add_up),
        cmocka_unit_test(stages_of_a_pipeline_add_up),
        cmocka_unit_test(weights_in_memory_are_the_parameters),
        cmocka_unit_test(attention_reads_what_memory_holds),
        cmocka_unit_test(heads_over_kv_heads_is_the_ratio_of_kv_bytes),
        cmocka_unit_test(a_mixture_reads_few_experts_for_few_tokens),
        cmocka_unit_test(absorbed_decode_and_expanded_prefill_do_equal_scores),
        cmocka_unit_test(an_expanded_latent_costs_cache_and_no_absorbing),
        cmocka_unit_test(seven_billion_at_2048_tokens_keep_a_gigabyte_a_request),
        cmocka_unit_test(data_parallel_attention_divides_sequences_and_not_heads),
        cmocka_unit_test(context_parallel_ranks_share_the_cache),
        cmocka_unit_test(splits_that_engines_refuse_are_refused_with_a_reason),
        cmocka_unit_test(linear_layers_move_state_and_no_cache),
        cmocka_unit_test(a_filled_plan_equals_a_fresh_list),
    };
    return cmocka_run_group_tests(tests, make_arena, drop_arena);
}

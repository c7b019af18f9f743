/* tests/unit/step/test_step.c: laws of one pass under every way to split a model. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>

#include "step_fixture.h"

/* ---- tensor parallelism ---- */

static void one_device_does_not_communicate(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    assert_ok(prepare(&b));
    const rg_pass pass = decode_of(16, 1000);
    const rg_step_time t = time_of(&b, &pass);
    assert_true(t.communication.v == 0 && t.bubble.v == 0 && t.host.v == 0);
    assert_close(t.total.v, t.compute.v, 1e-12);
    const rg_step_part *parts;
    int count;
    assert_ok(rg_step_parts(b.arena, b.step, &pass, &parts, &count, &err));
    for (int i = 0; i < count; i++)
        assert_false(parts[i].communication);
}

/** Compute and communication of the account, summed up. */
static void sum_parts(bench *b, const rg_pass *pass, double *compute, double *communication)
{
    const rg_step_part *parts;
    int count;
    assert_ok(rg_step_parts(b->arena, b->step, pass, &parts, &count, &err));
    *compute = *communication = 0;
    for (int i = 0; i < count; i++)
        *(parts[i].communication ? communication : compute) +=
            (double)parts[i].count * parts[i].time.total.v;
}

static void the_account_adds_up_to_the_step(void **state)
{
    const char *configs[] = {dense_config, moe_config};
    for (int c = 0; c < 2; c++) {
        bench b = make_bench(state, configs[c], "hgx-h200");
        b.parallel.tp = 4;
        assert_ok(prepare(&b));
        double compute, communication;
        for (int64_t n = 1; n <= 512; n = n * 3 + 1) {
            const rg_pass pass = decode_of(n, 777.5);
            const rg_step_time t = time_of(&b, &pass);
            sum_parts(&b, &pass, &compute, &communication);
            assert_close(t.compute.v, compute, 1e-12);
            assert_close(t.communication.v, communication, 1e-12);
        }
        /* beyond 512 rows times lie on straight lines of 1/128 octave; a new tile row of a product
         * is a step of a few percent that the line smooths */
        for (int64_t n = 600; n < 20000; n = n * 5 / 3 + 7) {
            const rg_chunk chunks[] = {{n, 0}, {n / 3, 500}};
            rg_pass pass = decode_of(37, 900);
            pass.chunks = chunks;
            pass.chunk_count = 2;
            const rg_step_time t = time_of(&b, &pass);
            sum_parts(&b, &pass, &compute, &communication);
            assert_close(t.compute.v, compute, 0.03);
            assert_close(t.communication.v, communication, 1e-12);
        }
    }
}

static void norms_over_all_heads_add_up_their_squares(void **state)
{
    /* Q and K normed over all heads (OLMo-2): each layer sums two fp32 numbers a token over the
     * ranks; normed head by head there is nothing to sum. */
    static const char full_config[] =
        "{\"model_type\": \"olmo2\", \"hidden_size\": 4096, \"intermediate_size\": 11008,"
        "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 32,"
        "\"vocab_size\": 100352, \"max_position_embeddings\": 4096, \"rope_theta\": 500000.0,"
        "\"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\"}";
    const char *configs[] = {full_config, dense_config};
    for (int c = 0; c < 2; c++) {
        bench b = make_bench(state, configs[c], "hgx-h200");
        b.parallel.tp = 4;
        assert_ok(prepare(&b));
        const rg_pass pass = decode_of(16, 100);
        const rg_step_part *parts;
        int count, found = 0;
        assert_ok(rg_step_parts(b.arena, b.step, &pass, &parts, &count, &err));
        for (int i = 0; i < count; i++)
            if (strcmp(parts[i].name, "all_reduce qk_norm") == 0) {
                found++;
                assert_int_equal(parts[i].count, 32);
                assert_close(parts[i].message.v, 16 * 2 * 4.0, 1e-12);
            }
        assert_int_equal(found, c == 0);
    }
}

static void the_order_of_questions_does_not_matter(void **state)
{
    bench a = make_bench(state, dense_config, "hgx-h200"), b = a;
    a.parallel.tp = b.parallel.tp = 2;
    assert_ok(prepare(&a));
    assert_ok(prepare(&b));
    double first[200];
    for (int i = 0; i < 200; i++) {
        const rg_pass pass = decode_of(1 + 13 * i, 100 + i);
        first[i] = time_of(&a, &pass).total.v;
    }
    for (int i = 199; i >= 0; i--) {
        const rg_pass pass = decode_of(1 + 13 * i, 100 + i);
        assert_true(time_of(&b, &pass).total.v == first[i]);
    }
}

static void work_is_conserved_over_ranks(void **state)
{
    double whole = 0;
    for (int64_t tp = 1; tp <= 8; tp *= 2) {
        bench b = make_bench(state, dense_config, "hgx-h200");
        b.parallel.tp = tp;
        assert_ok(prepare(&b));
        const rg_pass pass = decode_of(64, 2000);
        const rg_step_time t = time_of(&b, &pass);
        /* 8 KV heads, 32 query heads, all widths divide by 8: no work is done twice */
        if (tp == 1)
            whole = t.flops.v;
        else /* but the norms, which every rank does: 1e-4 of the flops */
            assert_true(t.flops.v >= whole && t.flops.v < whole * (1 + 1e-3));
        assert_true(tp == 1 || t.communication.v > 0);
    }
}

static void sequence_parallel_halves_are_scatter_and_gather(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    b.parallel.tp = 8;
    b.parallel.sequence_parallel = true;
    assert_ok(prepare(&b));
    const rg_pass pass = decode_of(64, 100);
    const rg_step_part *parts;
    int count, scatters = 0, gathers = 0;
    assert_ok(rg_step_parts(b.arena, b.step, &pass, &parts, &count, &err));
    for (int i = 0; i < count; i++) {
        assert_null(strstr(parts[i].name, "all_reduce"));
        scatters += strstr(parts[i].name, "reduce_scatter") ? (int)parts[i].count : 0;
        gathers += strstr(parts[i].name, "all_gather") ? (int)parts[i].count : 0;
    }
    assert_int_equal(scatters, 65); /* embedding, and two for each of 32 layers */
    assert_int_equal(gathers, 65);
}

static void what_engines_refuse_is_refused_with_the_reason(void **state)
{
    const struct {
        const char *config;
        rg_parallel p;
        const char *reason;
    } cases[] = {
        {dense_config, {.tp = 3}, "does not divide the 32 query heads"},
        {dense_config, {.tp = 16}, "devices"},
        {dense_config, {.tp = 2, .dp = 5}, "devices"},
        {dense_config, {.pp = 33}, "devices"},
        {dense_config, {.tp = 2, .ep = 2}, "no experts"},
        {moe_config, {.tp = 1, .dp = 16, .ep = 16}, "devices"},
        {moe_config, {.tp = 1, .dp = 3, .ep = 3}, "does not divide 8 experts"},
        {moe_config, {.tp = 2, .ep = 4}, "must divide 2"},
        {dense_config, {.tp = -1}, "not 1 to"},
        {moe_config, {.tp = 8, .ep = 8, .expert_replicas = 3}, "evenly"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench b = make_bench(state, cases[i].config, "hgx-h200");
        b.parallel = cases[i].p;
        assert_int_equal(prepare(&b), RG_ERR_MODEL);
        if (strstr(err.text, cases[i].reason) == NULL)
            print_error("%zu: %s\n", i, err.text);
        assert_non_null(strstr(err.text, cases[i].reason));
    }
    bench b = make_bench(state, moe_config, "superpod-h200");
    b.parallel = (rg_parallel){.dp = 16, .ep = 16};
    assert_int_equal(prepare(&b), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "more than the 8 experts"));
    b = make_bench(state, dense_config, "superpod-h200");
    b.parallel = (rg_parallel){.pp = 33};
    assert_int_equal(prepare(&b), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "more than the 32 layers"));
}

static void more_ranks_than_kv_heads_repeat_them(void **state)
{
    bench b = make_bench(state, dense_config, "superpod-h200");
    b.parallel.tp = 16;
    assert_ok(prepare(&b));
    rg_step_memory sixteen, eight;
    assert_ok(rg_step_memory_of(b.step, 1, 1000, &sixteen, &err));
    b.parallel.tp = 8;
    assert_ok(prepare(&b));
    assert_ok(rg_step_memory_of(b.step, 1, 1000, &eight, &err));
    assert_close(sixteen.kv.v, eight.kv.v, 1e-12); /* one KV head either way */
    /* one head of 128, K and V, 2 bytes, 32 layers */
    assert_close(eight.kv_per_token.v, 2 * 128 * 2 * 32, 1e-12);
}

/* ---- experts ---- */

static void experts_on_ranks_of_their_own_are_dense_products(void **state)
{
    bench b = make_bench(state, moe_config, "hgx-h200");
    const rg_pass pass = decode_of(64, 100);
    b.parallel = (rg_parallel){.tp = 8, .ep = 8};
    assert_ok(prepare(&b));
    const rg_step_part *parts;
    int count;
    assert_ok(rg_step_parts(b.arena, b.step, &pass, &parts, &count, &err));
    const rg_op_moe *moe = NULL;
    double flops = 0;
    for (int i = 0; i < count; i++)
        if (parts[i].op.kind == RG_OP_MOE && !parts[i].communication) {
            moe = &parts[i].op.u.moe;
            flops = parts[i].op.flops.v;
        }
    assert_non_null(moe);
    assert_int_equal(moe->local_experts, 1);
    assert_int_equal(moe->inter, 14336);
    /* 64 tokens x 2 experts over 8 ranks are 16 rows through three matrices of one expert */
    assert_close(flops, 2.0 * 16 * 3 * 4096 * 14336, 1e-12);
}

static void tokens_travel_to_experts_only_when_dealt_out(void **state)
{
    bench b = make_bench(state, moe_config, "hgx-h200");
    const rg_pass pass = decode_of(64, 100);
    const rg_step_part *parts;
    int count;
    for (int kind = 0; kind < 3; kind++) {
        b.parallel =
            kind == 0 ? (rg_parallel){.tp = 8, .ep = 8}
            : kind == 1
                ? (rg_parallel){.tp = 8, .ep = 8, .attention_dp = true, .ep_all_to_all = true}
                : (rg_parallel){.tp = 1, .dp = 8, .ep = 8, .ep_all_to_all = true};
        assert_ok(prepare(&b));
        assert_ok(rg_step_parts(b.arena, b.step, &pass, &parts, &count, &err));
        bool reduces = false, dispatches = false;
        for (int i = 0; i < count; i++) {
            reduces |= strstr(parts[i].name, "all_reduce experts") != NULL;
            dispatches |= strcmp(parts[i].name, "dispatch to experts") == 0;
            if (strcmp(parts[i].name, "dispatch to experts") == 0) {
                /* a token goes to 8 (1 - (7/8)^2) = 1.875 ranks; 8 tokens a rank when dealt out,
                 * 64 when each rank has a batch of its own; bf16, width 4096 */
                const double tokens = kind == 1 ? 8 : 64;
                assert_close(parts[i].message.v, tokens * 1.875 * 4096 * 2, 1e-12);
            }
        }
        assert_int_equal(reduces, kind == 0);
        assert_int_equal(dispatches, kind != 0);
    }
}

static double expert_rows(bench *b, const rg_pass *pass)
{
    const rg_step_part *parts;
    int count;
    assert_ok(rg_step_parts(b->arena, b->step, pass, &parts, &count, &err));
    for (int i = 0; i < count; i++)
        if (parts[i].op.kind == RG_OP_MOE && !parts[i].communication)
            return (double)parts[i].op.u.moe.tokens;
    return 0;
}

static void uneven_experts_load_the_busiest_rank(void **state)
{
    bench b = make_bench(state, moe_config, "hgx-h200");
    const rg_pass pass = decode_of(400, 100);
    /* the first expert has a quarter of all rows: twice the mean of 1/8 */
    const double load[] = {0.25, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.15};
    b.parallel = (rg_parallel){.tp = 8, .ep = 8};
    assert_ok(prepare(&b));
    assert_close(expert_rows(&b, &pass), 400, 1e-12);
    b.parallel.expert_load = load;
    b.parallel.expert_load_count = 8;
    assert_ok(prepare(&b));
    assert_close(expert_rows(&b, &pass), 800, 1e-12);
    /* eight more copies, 2 slots a rank: the first expert gets 3 copies of 1/12, and so on; the
     * busiest rank cannot be below the mean and must be well below twice of it */
    b.parallel.expert_replicas = 8;
    assert_ok(prepare(&b));
    assert_true(expert_rows(&b, &pass) >= 400 && expert_rows(&b, &pass) < 500);
    /* capacity 1.25: the first expert keeps 1.25/8 of the 0.25 */
    b.parallel.expert_replicas = 0;
    b.parallel.capacity_factor = 1.25;
    b.parallel.capacity_drop = true;
    assert_ok(prepare(&b));
    assert_close(expert_rows(&b, &pass), 400 * 1.25, 1e-12);
    /* padded: every expert works through its room, the busiest still has twice the mean */
    b.parallel.capacity_drop = false;
    assert_ok(prepare(&b));
    assert_close(expert_rows(&b, &pass), 800, 1e-12);
    b.parallel.expert_load_count = 7;
    assert_int_equal(prepare(&b), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "load of 7 experts"));
}

/* ---- context parallelism, data-parallel attention ---- */

static void context_ranks_share_the_cache(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    const rg_pass pass = decode_of(4, 100000);
    assert_ok(prepare(&b));
    const double alone = time_of(&b, &pass).total.v;
    rg_step_memory one, four;
    assert_ok(rg_step_memory_of(b.step, 4, 100000, &one, &err));
    b.parallel = (rg_parallel){.cp = 4};
    assert_ok(prepare(&b));
    const rg_step_time t = time_of(&b, &pass);
    assert_ok(rg_step_memory_of(b.step, 4, 100000, &four, &err));
    assert_close(four.kv.v, one.kv.v / 4, 1e-9);
    assert_true(t.communication.v > 0 && t.total.v < alone);
    const rg_chunk chunk = {32768, 0};
    const rg_pass prompt = {.chunks = &chunk, .chunk_count = 1};
    const double ring = time_of(&b, &prompt).communication.v;
    b.parallel.cp_all_gather = true;
    assert_ok(prepare(&b));
    const double gather = time_of(&b, &prompt).communication.v;
    assert_true(ring > 0 && gather > 0 && ring != gather);
}

static void dealt_out_attention_caches_once(void **state)
{
    bench b = make_bench(state, moe_config, "hgx-h200");
    rg_step_memory split, dealt;
    b.parallel = (rg_parallel){.tp = 8, .ep = 8};
    assert_ok(prepare(&b));
    assert_ok(rg_step_memory_of(b.step, 64, 1000, &split, &err));
    b.parallel.attention_dp = true;
    assert_ok(prepare(&b));
    assert_ok(rg_step_memory_of(b.step, 64, 1000, &dealt, &err));
    assert_close(dealt.kv.v, split.kv.v, 1e-9); /* 8 sequences whole, or 64 with a head of 8 */
    assert_true(dealt.weights.v > split.weights.v);
}

/* ---- engines ---- */

static void overlap_hides_its_share_of_communication(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    b.parallel.tp = 8;
    const rg_pass pass = decode_of(64, 1000);
    assert_ok(prepare(&b));
    const rg_step_time none = time_of(&b, &pass);
    b.engine.overlap_ratio = 0.75;
    assert_ok(prepare(&b));
    const rg_step_time most = time_of(&b, &pass);
    assert_close(most.communication.v, 0.25 * none.communication.v, 1e-9);
    assert_close(most.compute.v, none.compute.v, 1e-12);
}

static void asynchronous_scheduling_hides_host_work(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    b.engine.step_overhead_s = 2e-3;
    b.engine.per_sequence_s = 1e-5;
    const rg_pass pass = decode_of(8, 1000);
    assert_ok(prepare(&b));
    const rg_step_time hidden = time_of(&b, &pass);
    b.engine.async_scheduling = false;
    assert_ok(prepare(&b));
    const rg_step_time shown = time_of(&b, &pass);
    assert_close(shown.total.v, hidden.compute.v + 2e-3 + 8e-5, 1e-9);
    assert_close(hidden.total.v, fmax(hidden.compute.v, 2.08e-3), 1e-9);
    assert_close(shown.host.v, 2.08e-3, 1e-9);
}

static void the_longest_sequence_may_hold_up_attention(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    rg_pass even = decode_of(64, 2000), uneven = even;
    uneven.decode_kv_max = 6000;
    assert_ok(prepare(&b));
    const double plain = time_of(&b, &even).total.v;
    assert_true(time_of(&b, &uneven).total.v == plain);
    b.engine.attention_skew_ratio = 0.5;
    assert_ok(prepare(&b));
    assert_true(time_of(&b, &even).total.v == plain);
    /* three times the mean: attention beyond its start-up doubles at half a skew */
    const rg_step_part *parts;
    int count;
    double attention = 0;
    b.engine.attention_skew_ratio = 0;
    assert_ok(prepare(&b));
    assert_ok(rg_step_parts(b.arena, b.step, &even, &parts, &count, &err));
    for (int i = 0; i < count; i++)
        if (parts[i].op.kind == RG_OP_ATTN_DECODE)
            attention += (double)parts[i].count * (parts[i].time.total.v - parts[i].time.fixed.v);
    b.engine.attention_skew_ratio = 0.5;
    assert_ok(prepare(&b));
    assert_close(time_of(&b, &uneven).total.v, plain + attention, 1e-9);
}

static void memory_bounds_the_batch(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    b.engine.memory_utilisation = 0.9;
    b.engine.max_batched_tokens = 8192;
    b.engine.max_sequences = 256;
    assert_ok(prepare(&b));
    rg_step_memory m, next;
    assert_ok(rg_step_memory_of(b.step, 0, 4096, &m, &err));
    assert_true(m.max_sequences > 0);
    /* weights of 8.03e9 parameters in 16 bit */
    assert_close(m.weights.v, 2.0 * (double)b.model->parameters_total, 1e-3);
    assert_ok(rg_step_memory_of(b.step, m.max_sequences, 4096, &next, &err));
    assert_true(next.total.v <= next.usable.v);
    assert_ok(rg_step_memory_of(b.step, m.max_sequences + 1, 4096, &next, &err));
    assert_true(next.total.v > next.usable.v);
}

static void engine_files_say_what_they_hold(void **state)
{
    const char *names[] = {"vllm", "sglang", "trtllm"};
    for (int i = 0; i < 3; i++) {
        rg_engine e;
        assert_ok(rg_engine_load(*state, names[i], &e, &err));
        assert_string_equal(e.name, names[i]);
        assert_true(e.memory_utilisation > 0.5 && e.max_batched_tokens >= 2048);
        for (int k = 0; k < e.figure_count; k++)
            assert_true(e.figures[k].figure->known && strlen(e.figures[k].figure->source) > 10);
    }
    rg_engine e;
    assert_int_equal(rg_engine_load(*state, "vlm", &e, &err), RG_ERR_USAGE);
    assert_non_null(strstr(err.text, "vllm"));
}

static void a_pass_of_nothing_is_an_error(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    assert_ok(prepare(&b));
    const rg_pass nothing = {0};
    rg_step_time t;
    assert_int_equal(rg_step_time_of(b.step, &nothing, &t, &err), RG_ERR_MODEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_device_does_not_communicate),
        TEST(the_account_adds_up_to_the_step),
        TEST(norms_over_all_heads_add_up_their_squares),
        TEST(the_order_of_questions_does_not_matter),
        TEST(work_is_conserved_over_ranks),
        TEST(sequence_parallel_halves_are_scatter_and_gather),
        TEST(what_engines_refuse_is_refused_with_the_reason),
        TEST(more_ranks_than_kv_heads_repeat_them),
        TEST(experts_on_ranks_of_their_own_are_dense_products),
        TEST(tokens_travel_to_experts_only_when_dealt_out),
        TEST(uneven_experts_load_the_busiest_rank),
        TEST(context_ranks_share_the_cache),
        TEST(dealt_out_attention_caches_once),
        TEST(overlap_hides_its_share_of_communication),
        TEST(asynchronous_scheduling_hides_host_work),
        TEST(the_longest_sequence_may_hold_up_attention),
        TEST(memory_bounds_the_batch),
        TEST(engine_files_say_what_they_hold),
        TEST(a_pass_of_nothing_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

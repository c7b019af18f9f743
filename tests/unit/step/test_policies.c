/* tests/unit/step/test_policies.c: speculation, offloading, transfers, training. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "step_fixture.h"

#include "step/offload.h"
#include "step/speculate.h"
#include "step/train.h"

/* ---- speculation ---- */

static void expected_tokens_are_the_geometric_sum(void **state)
{
    (void)state;
    rg_spec spec = {.kind = RG_SPEC_DRAFT_MODEL, .depth = 5, .acceptance = 0.8};
    double got;
    assert_ok(rg_spec_expected_tokens(&spec, &got, &err));
    assert_close(got, (1 - pow(0.8, 6)) / (1 - 0.8), 1e-12); /* 3.689 */
    spec.acceptance = 1;
    assert_ok(rg_spec_expected_tokens(&spec, &got, &err));
    assert_close(got, 6, 1e-12);
    spec.acceptance = 0;
    assert_ok(rg_spec_expected_tokens(&spec, &got, &err));
    assert_close(got, 1, 1e-12);
    spec = (rg_spec){.kind = RG_SPEC_MTP, .depth = 2, .list = {0.85, 0.6}, .list_count = 2};
    assert_ok(rg_spec_expected_tokens(&spec, &got, &err));
    assert_close(got, 1 + 0.85 + 0.85 * 0.6, 1e-12);
    spec = (rg_spec){.kind = RG_SPEC_EAGLE, .depth = 2, .acceptance = 0.5, .width = {4, 2}};
    assert_ok(rg_spec_expected_tokens(&spec, &got, &err));
    const double first = 1 - pow(0.5, 4), second = 1 - pow(0.5, 2);
    assert_close(got, 1 + first + first * second, 1e-12);
    assert_int_equal(rg_spec_nodes(&spec), 6);
}

static void speculation_that_cannot_be_is_refused(void **state)
{
    (void)state;
    double got;
    rg_spec spec = {.kind = RG_SPEC_MTP, .depth = 3, .list = {0.9, 0.8}, .list_count = 2};
    assert_int_equal(rg_spec_expected_tokens(&spec, &got, &err), RG_ERR_MODEL);
    spec = (rg_spec){.kind = RG_SPEC_MTP, .depth = 1, .acceptance = 1.5};
    assert_int_equal(rg_spec_expected_tokens(&spec, &got, &err), RG_ERR_MODEL);
    spec.depth = 0;
    assert_int_equal(rg_spec_expected_tokens(&spec, &got, &err), RG_ERR_MODEL);
    rg_spec_kind kind;
    assert_int_equal(rg_spec_kind_parse("medusae", &kind, &err), RG_ERR_USAGE);
}

/** Target and a draft of its first two layers. */
static bench make_pair(void **state, rg_spec *spec)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    assert_ok(prepare(&b));
    bench draft = b;
    assert_ok(rg_spec_layers(*state, b.model, 0, 2, &draft.model, &err));
    assert_ok(prepare(&draft));
    *spec = (rg_spec){.kind = RG_SPEC_SELF, .depth = 4, .acceptance = 0.8, .draft = draft.step};
    return b;
}

static void speculation_pays_for_one_user_and_not_for_many(void **state)
{
    rg_spec spec;
    bench b = make_pair(state, &spec);
    const rg_pass one = decode_of(1, 50), many = decode_of(2048, 50);
    rg_spec_time t;
    assert_ok(rg_spec_time_of(b.step, &spec, &one, &t, &err));
    assert_close(t.tokens_per_pass, (1 - pow(0.8, 5)) / 0.2, 1e-12);
    assert_close(t.per_token.v, (t.draft.v + t.verify.v) / t.tokens_per_pass, 1e-12);
    assert_true(t.speedup > 1.5 && t.speedup < t.tokens_per_pass);
    assert_ok(rg_spec_time_of(b.step, &spec, &many, &t, &err));
    assert_true(t.speedup < 1);
    int64_t even;
    assert_ok(rg_spec_break_even(b.step, &spec, 50, 4096, &even, &err));
    assert_true(even > 1 && even < 2048);
    spec.acceptance = 0;
    assert_ok(rg_spec_break_even(b.step, &spec, 50, 4096, &even, &err));
    assert_int_equal(even, 1); /* nothing is accepted: it never pays */
}

static void without_speculation_a_pass_is_a_pass(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    assert_ok(prepare(&b));
    const rg_pass pass = decode_of(8, 500);
    rg_spec_time t;
    assert_ok(rg_spec_time_of(b.step, &(rg_spec){0}, &pass, &t, &err));
    assert_close(t.speedup, 1, 1e-12);
    assert_true(t.draft.v == 0 && t.tokens_per_pass == 1);
}

static void more_acceptance_is_never_slower(void **state)
{
    rg_spec spec;
    bench b = make_pair(state, &spec);
    const rg_pass pass = decode_of(4, 1000);
    double last = 0;
    for (int i = 0; i <= 10; i++) {
        rg_spec_time t;
        spec.acceptance = i / 10.0;
        assert_ok(rg_spec_time_of(b.step, &spec, &pass, &t, &err));
        assert_true(t.speedup >= last);
        last = t.speedup;
    }
    spec.kind = RG_SPEC_MEDUSA;
    spec.draft = NULL;
    rg_spec_time medusa;
    assert_ok(rg_spec_time_of(b.step, &spec, &pass, &medusa, &err));
    assert_true(medusa.draft.v > 0 && medusa.speedup > 1);
}

/* ---- host memory, transfers, no cache ---- */

static void offloaded_weights_stream_at_the_host_link(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    assert_ok(prepare(&b));
    const rg_pass pass = decode_of(1, 1000);
    const double step = time_of(&b, &pass).total.v;
    rg_offload_time t;
    assert_ok(rg_offload_time_of(b.step, &pass, &(rg_offload){0}, &t, &err));
    assert_close(t.step.total.v, step, 1e-12);
    assert_ok(rg_offload_time_of(b.step, &pass, &(rg_offload){.weight_ratio = 1}, &t, &err));
    /* 16.06 GB over 64 GB/s, and one of 32 layers ahead */
    const double stream = 2.0 * (double)b.model->parameters_total / 64e9;
    assert_close(t.stream.v, stream, 1e-3);
    assert_close(t.step.total.v, stream * (1 + 1.0 / 32), 1e-3);
    assert_true(t.link_bound);
    assert_ok(rg_offload_time_of(b.step, &pass, &(rg_offload){.weight_ratio = 1, .serial = true},
                                 &t, &err));
    assert_close(t.step.total.v, step + t.stream.v, 1e-12);
    assert_int_equal(rg_offload_time_of(b.step, &pass, &(rg_offload){.kv_ratio = 2}, &t, &err),
                     RG_ERR_MODEL);
}

static void a_cache_moves_whole_and_by_layer(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    b.parallel.tp = 4;
    b.options.ideal = true;
    assert_ok(prepare(&b));
    rg_kv_transfer t;
    assert_ok(rg_kv_transfer_of(b.step, 4096, 8, false, false, &t, &err));
    /* 128 KiB a token (Llama-3.1-8B); four ports of 50 GB/s send */
    assert_close(t.bytes.v, 4096.0 * 131072, 1e-9);
    assert_close(t.time.v, 4096.0 * 131072 / 200e9, 1e-9);
    assert_close(t.visible.v, t.time.v, 1e-12);
    assert_ok(rg_kv_transfer_of(b.step, 4096, 2, false, true, &t, &err));
    assert_close(t.time.v, 4096.0 * 131072 / 100e9, 1e-9); /* two receive */
    assert_close(t.visible.v, t.time.v / 32, 1e-9);
}

static void a_cache_saves_the_whole_prompt(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    assert_ok(prepare(&b));
    rg_no_cache n;
    assert_ok(rg_no_cache_of(*state, b.step, 1, 4096, &n, &err));
    assert_true(n.ratio > 5);
    /* without it all 4097 tokens go through all matrices; attention adds to both */
    assert_true(n.uncached_flops.v > 3000 * n.cached_flops.v);
}

/* ---- training ---- */

static rg_status train(bench *b, const rg_train *t, rg_train_time *out)
{
    err = (rg_err){0};
    return rg_train_step(b->arena, b->cluster, b->model, &b->formats, &b->parallel, t, &b->options,
                         out, &err);
}

static void training_flops_are_three_times_forward(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h100");
    rg_train t = rg_train_defaults();
    rg_train_time r;
    b.options.ideal = true;
    assert_ok(train(&b, &t, &r));
    /* 6 N flops a token, without the input embedding's N; attention's products on top:
     * 2 s h flops a token and layer causal forward, 3 times that in all */
    const double n = (double)(b.model->parameters_total - b.model->embedding_params);
    const double tokens = 4096, attention = 3 * 2 * 4096 * 4096 * 32.0;
    assert_close(r.model_flops.v, tokens * (6 * n + attention), 1e-3);
    /* flash attention makes the scores anew, half of its forward products */
    assert_close(r.hfu_ratio / r.mfu_ratio, 1 + attention / 6 / (6 * n + attention), 1e-3);
    /* but for norms and the like, which move bytes, products run at the peak */
    const double products = r.model_flops.v / 989.4e12, computed = r.forward.v + r.backward.v;
    assert_true(products < computed && products > 0.85 * computed);
    assert_close(r.bubble.v, 0, 1e-12);
    t.recompute = RG_RECOMPUTE_FULL;
    rg_train_time full;
    assert_ok(train(&b, &t, &full));
    assert_close(full.model_flops.v, r.model_flops.v, 1e-12);
    assert_true(full.hfu_ratio > 1.25 * full.mfu_ratio && full.hfu_ratio < 1.36 * full.mfu_ratio);
    /* inputs of layers alone, and one layer; what is left is mostly the logits' 8 V a token */
    assert_true(full.activations.v - 8.0 * 4096 * 128256 <
                (r.activations.v - 8.0 * 4096 * 128256) / 8);
}

static void model_flops_do_not_depend_on_the_arrangement(void **state)
{
    static const rg_parallel ways[] = {{.tp = 8},          {.tp = 8, .dp = 2},
                                       {.tp = 2, .pp = 3}, {.tp = 2, .pp = 4, .pp_interleave = 2},
                                       {.tp = 4, .cp = 2}, {.tp = 4, .pp = 8, .dp = 2}};
    rg_train t = rg_train_defaults();
    t.global_batch = 16;
    for (int moe = 0; moe < 2; moe++) {
        bench b = make_bench(state, moe ? moe_config : dense_config, "hgx-h100");
        b.cluster->nodes = 8;
        /* weights that a token meets, by hand: q and o 4096^2 each, k and v 4096 x 1024 each, three
         * FFN matrices (mixtral: of 2 experts of 8, and the router's 8 columns), head */
        const double layer = 2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 +
                             3 * 4096.0 * 14336 * (moe ? 2 : 1) + (moe ? 4096 * 8 : 0);
        const double n = 32 * layer + 4096.0 * (moe ? 32000 : 128256);
        const double want = 16.0 * 4096 * (6 * n + 6 * 4096.0 * 4096 * 32);
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            rg_train_time r;
            b.parallel = ways[i];
            assert_ok(train(&b, &t, &r));
            /* the rest is norms and the like, and the token's own pair with itself: 1 / s */
            assert_close(r.model_flops.v, want, 1e-3);
            const double peak = 989.4e12 * (double)r.devices * r.total.v;
            assert_close(r.mfu_ratio, r.model_flops.v / peak, 1e-3);
        }
    }
}

static void bubbles_follow_the_published_formula(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h100");
    rg_train t = rg_train_defaults();
    rg_train_time r;
    b.parallel = (rg_parallel){.pp = 4};
    t.global_batch = 16;
    assert_ok(train(&b, &t, &r));
    /* bubble / ideal = (p - 1) / m (Narayanan et al. 2021, section 2.2.1) */
    const double ideal = r.total.v - r.bubble.v - r.gradients.v - r.optimiser.v;
    assert_close(r.bubble.v / ideal, 3.0 / 16, 1e-9);
    b.parallel.pp_interleave = 2;
    rg_train_time v;
    assert_ok(train(&b, &t, &v));
    const double ideal_v = v.total.v - v.bubble.v - v.gradients.v - v.optimiser.v;
    assert_close(v.bubble.v / ideal_v, 3.0 / 32, 1e-9);
    t.global_batch = 18;
    assert_int_equal(train(&b, &t, &v), RG_ERR_MODEL); /* 18 micro-batches, not a multiple of 4 */
}

static void zero_stages_split_states_over_replicas(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h100");
    b.parallel = (rg_parallel){.dp = 8};
    rg_train t = rg_train_defaults();
    t.global_batch = 8;
    rg_train_time r[4];
    for (int zero = 0; zero <= 3; zero++) {
        t.zero = zero;
        assert_ok(train(&b, &t, &r[zero]));
    }
    const double n = (double)b.model->parameters_total;
    /* 16 + 2 bytes a parameter: 2 weights, 4 gradients, 12 optimiser (Rajbhandari et al. 2020) */
    assert_close(r[0].weights.v + r[0].gradient_memory.v + r[0].optimiser_memory.v, 18 * n, 1e-3);
    assert_close(r[1].optimiser_memory.v, 12 * n / 8, 1e-3);
    assert_close(r[2].gradient_memory.v, 4 * n / 8, 1e-3);
    assert_close(r[3].weights.v, 2 * n / 8, 1e-3);
    assert_true(r[0].reduce.each.v > 0);
    assert_close(r[0].reduce.bytes.v, 4 * n, 1e-3);
}

static void split_states_travel_with_every_micro_batch(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h100");
    b.cluster->nodes = 64;
    b.parallel = (rg_parallel){.tp = 8, .dp = 64};
    rg_train t = rg_train_defaults();
    t.global_batch = 4 * 64;
    /* calls of a step of four micro-batches: ZeRO 2 reduces each, ZeRO 3 gathers twice for each */
    static const int64_t reductions[] = {1, 1, 4, 4}, gathers[] = {0, 1, 1, 8};
    for (int zero = 0; zero <= 3; zero++) {
        rg_train_time r;
        t.zero = zero;
        t.overlap_ratio = 0;
        assert_ok(train(&b, &t, &r));
        assert_int_equal(r.reduce.calls, reductions[zero]);
        assert_int_equal(r.gather.calls, gathers[zero]);
        const double wire =
            (double)reductions[zero] * r.reduce.each.v + (double)gathers[zero] * r.gather.each.v;
        assert_close(r.gradients.v, wire, 1e-12);
        /* a device sends at the least (dp - 1) / dp of its N / 8 gradients or weights at 50 GB/s */
        const double n = r.parameters_per_device, sent = 63.0 / 64 * n / 50e9;
        assert_true(r.reduce.each.v > (zero > 0 ? 1 : 2) * 4 * sent);
        assert_true(zero == 0 || r.gather.each.v > 2 * sent);
        /* whatever overlaps, a step is not faster than its wires nor than its compute */
        t.overlap_ratio = 1;
        assert_ok(train(&b, &t, &r));
        assert_true(r.total.v >= wire);
        assert_true(r.total.v >= r.forward.v + r.backward.v);
    }
}

static void thousands_of_replicas_reduce_gradients(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h100");
    b.cluster->nodes = 256;
    b.parallel = (rg_parallel){.dp = 2048};
    rg_train t = rg_train_defaults();
    t.global_batch = 2048;
    rg_train_time r;
    assert_ok(train(&b, &t, &r));
    assert_int_equal(r.devices, 2048);
    /* 32 GB of gradients; every port carries 2/8 of them at 50 GB/s at the least: 0.16 s */
    assert_true(r.reduce.each.v > 2.0 / 8 * 32e9 / 50e9 * 0.5);
    assert_true(r.reduce.each.v < 1);
    t.global_batch = 2047;
    assert_int_equal(train(&b, &t, &r), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "multiple of 2048"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(expected_tokens_are_the_geometric_sum),
        TEST(speculation_that_cannot_be_is_refused),
        TEST(speculation_pays_for_one_user_and_not_for_many),
        TEST(without_speculation_a_pass_is_a_pass),
        TEST(more_acceptance_is_never_slower),
        TEST(offloaded_weights_stream_at_the_host_link),
        TEST(a_cache_moves_whole_and_by_layer),
        TEST(a_cache_saves_the_whole_prompt),
        TEST(training_flops_are_three_times_forward),
        TEST(model_flops_do_not_depend_on_the_arrangement),
        TEST(bubbles_follow_the_published_formula),
        TEST(zero_stages_split_states_over_replicas),
        TEST(split_states_travel_with_every_micro_batch),
        TEST(thousands_of_replicas_reduce_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

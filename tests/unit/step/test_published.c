/* tests/unit/step/test_published.c: training steps against published runs.
 *
 * Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models"
 * (arXiv:2205.05198): seconds of an iteration of table 5 and activation memory of figure 1, as
 * calculon-ai/calculon, calculon/llm/validation.py, holds them; MFU of 2240 GPUs from the abstract.
 * Megatron-LM on DGX A100 80GB, sequences of 2048, tp 8. Nothing in ridge was fitted to them:
 * product and collective times come from single kernels.
 */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "step_fixture.h"

#include "step/train.h"

typedef struct published {
    const char *name;
    int64_t hidden, heads, layers, pp, interleave, micro_batch, global_batch;
    double full_s, selective_s; /* iteration, full recomputation; sequence parallel + selective */
    double activations_gib;     /* sequence parallel + selective */
} published;

static const published runs[] = {
    {"22B", 6144, 64, 48, 1, 1, 4, 4, 1.42, 1.10, 9.5625},
    {"175B", 12288, 96, 96, 8, 3, 1, 64, 18.13, 13.75, 12.3515625},
    {"530B", 20480, 128, 105, 35, 3, 1, 280, 49.05, 37.83, 23.076171875},
    {"1T", 25600, 160, 128, 64, 1, 1, 512, 94.42, 71.49, 26.5625},
};

static void run_of(void **state, const published *p, bool selective, int64_t dp, rg_train_time *out)
{
    char config[512];
    snprintf(config, sizeof config,
             "{\"model_type\": \"gpt2\", \"n_embd\": %lld, \"n_head\": %lld, \"n_layer\": %lld, "
             "\"n_positions\": 2048, \"vocab_size\": 51200, \"n_inner\": %lld, "
             "\"tie_word_embeddings\": true}",
             (long long)p->hidden, (long long)p->heads, (long long)p->layers,
             (long long)(4 * p->hidden));
    bench b = make_bench(state, config, "dgx-a100-80gb");
    b.formats.fused_attention = false; /* the softmax was a kernel of its own */
    b.parallel = (rg_parallel){.tp = 8,
                               .pp = p->pp,
                               .pp_interleave = p->interleave,
                               .dp = dp,
                               .sequence_parallel = selective};
    b.cluster->nodes = p->pp * dp;
    rg_train t = rg_train_defaults();
    t.sequence_tokens = 2048;
    t.micro_batch = p->micro_batch;
    t.global_batch = p->global_batch * dp;
    t.zero = 0;
    t.recompute = selective ? RG_RECOMPUTE_SELECTIVE : RG_RECOMPUTE_FULL;
    err = (rg_err){0};
    assert_ok(rg_train_step(b.arena, b.cluster, b.model, &b.formats, &b.parallel, &t, &b.options,
                            out, &err));
}

static void iteration_times_are_those_of_the_paper(void **state)
{
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        for (int selective = 0; selective < 2; selective++) {
            rg_train_time t;
            const double want = selective ? runs[i].selective_s : runs[i].full_s;
            run_of(state, &runs[i], selective, 1, &t);
            print_message("%s %s: %.2f s, published %.2f s, %+.1f %%\n", runs[i].name,
                          selective ? "selective" : "full", t.total.v, want,
                          100 * (t.total.v / want - 1));
            /* kernels of another software generation, clocks under load unknown */
            assert_close(t.total.v, want, 0.10);
        }
}

static void activations_are_those_of_the_paper(void **state)
{
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        rg_train_time t;
        run_of(state, &runs[i], true, 1, &t);
        const double gib = t.activations.v / (1 << 30);
        print_message("%s: %.2f GiB of activations, published %.2f\n", runs[i].name, gib,
                      runs[i].activations_gib);
        /* the paper counts dropout masks (2 h of 34 h a token) and no logits */
        assert_close(gib, runs[i].activations_gib, 0.10);
        assert_true(t.fits);
    }
}

static void utilisation_of_2240_devices_is_that_of_the_abstract(void **state)
{
    rg_train_time t;
    run_of(state, &runs[2], true, 8, &t);
    assert_int_equal(t.devices, 2240);
    /* flops over time: a step 8 % short makes this as much too high, within the times' limit */
    assert_close(t.mfu_ratio, 0.542, 0.10);
    run_of(state, &runs[2], false, 8, &t);
    assert_close(t.mfu_ratio, 0.421, 0.06);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(iteration_times_are_those_of_the_paper),
        TEST(activations_are_those_of_the_paper),
        TEST(utilisation_of_2240_devices_is_that_of_the_abstract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

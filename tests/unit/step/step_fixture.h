/* tests/unit/step/step_fixture.h: small models written out as config.json, on nodes of the hw
 * folder. */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TESTS_STEP_FIXTURE_H
#define RG_TESTS_STEP_FIXTURE_H

#include "step/step.h"

static const char dense_config[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
    "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
    "\"vocab_size\": 128256, \"max_position_embeddings\": 131072, \"rope_theta\": 500000.0,"
    "\"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\"}";

static const char moe_config[] =
    "{\"model_type\": \"mixtral\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
    "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
    "\"num_local_experts\": 8, \"num_experts_per_tok\": 2, \"sliding_window\": null,"
    "\"vocab_size\": 32000, \"max_position_embeddings\": 32768, \"rope_theta\": 1000000.0,"
    "\"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\"}";

typedef struct bench {
    rg_arena *arena;
    rg_cluster *cluster;
    rg_model *model;
    rg_formats formats;
    rg_engine engine;
    rg_parallel parallel;
    rg_kernel_options options;
    rg_step_context *step;
} bench;

static rg_err err;

static inline bench make_bench(void **state, const char *config, const char *cluster)
{
    bench b = {.arena = *state, .engine = rg_engine_ideal()};
    rg_node *root;
    assert_ok(rg_doc_parse(*state, "config.json", config, strlen(config), true, &root, &err));
    assert_ok(rg_model_import(*state, root, NULL, NULL, "test", &b.model, &err));
    assert_ok(rg_cluster_load(*state, cluster, &b.cluster, &err));
    assert_ok(rg_formats_choose(b.model, NULL, NULL, NULL, &b.formats, &err));
    b.formats.fused_attention = true;
    return b;
}

static inline rg_status prepare(bench *b)
{
    err = (rg_err){0};
    return rg_step_prepare(b->arena, b->cluster, b->model, &b->formats, &b->parallel, &b->engine,
                           &b->options, &b->step, &err);
}

static inline rg_pass decode_of(int64_t batch, double context)
{
    return (rg_pass){.decodes = batch,
                     .tokens_per_decode = 1,
                     .decode_kv_tokens = (double)batch * context,
                     .decode_kv_max = context};
}

static inline rg_step_time time_of(bench *b, const rg_pass *pass)
{
    rg_step_time t;
    assert_ok(rg_step_time_of(b->step, pass, &t, &err));
    return t;
}

static int setup(void **state)
{
    *state = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
    return *state == NULL;
}

static int teardown(void **state)
{
    rg_arena_free(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif

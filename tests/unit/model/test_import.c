/* tests/unit/model/test_import.c: real configs against published and computed totals, and the way
 * through YAML and back. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/csv.h"
#include "core/doc.h"
#include "model/spec.h"

#define CONFIGS "../shared/inputs/configs/"

static rg_status import_text(rg_arena *arena, const char *json, rg_model **out, rg_err *err)
{
    rg_node *root;
    RG_TRY(rg_doc_parse(arena, "config.json", json, strlen(json), true, &root, err));
    return rg_model_import(arena, root, NULL, NULL, "test", out, err);
}

static double kv_bytes(const rg_model *m)
{
    rg_err err = {0};
    rg_format bf16;
    assert_ok(rg_format_parse("bf16", RG_NOWHERE, &bf16, &err));
    return rg_model_kv_bytes_per_token(m, &bf16, false).v;
}

static void real_configs_count_to_the_last_parameter(void **state)
{
    (void)state;
    skip_without(CONFIGS "index.csv");
    rg_arena *arena = rg_arena_new(256);
    rg_err err = {0};
    rg_csv *csv;
    bool more;
    int counted = 0, refused = 0;
    assert_ok(rg_csv_open(arena, CONFIGS "index.csv", &csv, &err));
    for (;;) {
        assert_ok(rg_csv_next(csv, &more, &err));
        if (!more)
            break;
        const char *want = rg_csv_text(csv, rg_csv_find(csv, "computed_total"));
        char path[256];
        snprintf(path, sizeof path, CONFIGS "%s.json", rg_csv_text(csv, rg_csv_find(csv, "name")));
        rg_model *m;
        rg_err why = {0};
        const rg_status status = rg_model_load(arena, path, &m, &why);
        if (want[0] == '\0') {
            assert_int_not_equal(status, RG_OK);
            refused++;
            continue;
        }
        if (status != RG_OK)
            print_error("%s: %s\n", path, why.text);
        assert_int_equal(status, RG_OK);
        int64_t total, active, kv;
        assert_ok(rg_csv_int(csv, rg_csv_find(csv, "computed_total"), &total, &err));
        assert_ok(rg_csv_int(csv, rg_csv_find(csv, "computed_active"), &active, &err));
        assert_ok(rg_csv_int(csv, rg_csv_find(csv, "kv_bytes_per_token_bf16"), &kv, &err));
        if (m->parameters_total != total || m->parameters_active != active ||
            kv_bytes(m) != (double)kv)
            print_error("%s\n", path);
        assert_int_equal(m->parameters_total, total);
        assert_int_equal(m->parameters_active, active);
        assert_close(kv_bytes(m), (double)kv, 0);
        counted++;
    }
    rg_csv_close(csv);
    rg_arena_free(arena);
    assert_true(counted >= 30 && refused >= 3);
}

static void a_model_survives_yaml(void **state)
{
    (void)state;
    static const char *const names[] = {
        "gemma3-1b",   "deepseek-v3",   "jamba-v0.1-trimmed",
        "opt-125m",    "kimi-k2.5",     "nemotron-3-super-120b-a12b-fp8",
        "gpt-oss-20b", "llama-4-scout", "qwen3.5-35b-a3b"};
    skip_without(CONFIGS "index.csv");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        rg_arena *arena = rg_arena_new(256);
        rg_err err = {0};
        rg_model *m, *back;
        rg_node *root;
        char path[256], *text, *again;
        snprintf(path, sizeof path, CONFIGS "%s.json", names[i]);
        assert_ok(rg_model_load(arena, path, &m, &err));
        assert_ok(rg_model_write(arena, m, &text, &err));
        assert_ok(rg_doc_parse(arena, "m.yaml", text, strlen(text), false, &root, &err));
        assert_ok(rg_model_read(arena, root, &back, &err));
        assert_int_equal(m->layer_count, back->layer_count);
        for (int64_t l = 0; l < m->layer_count; l++)
            assert_true(rg_layer_equal(&m->layers[l], &back->layers[l]));
        assert_int_equal(m->parameters_total, back->parameters_total);
        assert_ok(rg_model_write(arena, back, &again, &err));
        assert_string_equal(text, again);
        rg_arena_free(arena);
    }
}

#define LLAMA_8B                                                                     \
    "\"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_heads\": 32," \
    "\"num_key_value_heads\": 8, \"intermediate_size\": 14336, \"vocab_size\": 128256"

static void an_unknown_key_of_structure_is_refused_and_a_harmless_one_is_not(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    rg_err err = {0};
    rg_model *m;
    assert_ok(import_text(arena,
                          "{\"model_type\": \"llama\", \"my_comment\": \"x\", \"resid_pdrop\": 0.1,"
                          " \"tie_word_embeddings\": false, " LLAMA_8B "}",
                          &m, &err));
    assert_int_equal(m->parameters_total, 8030261248); /* published */
    assert_int_equal(import_text(arena,
                                 "{\"model_type\": \"llama\", \"compress_ratios\": [4, 128],"
                                 " " LLAMA_8B "}",
                                 &m, &err),
                     RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "compress_ratios"));
    rg_arena_free(arena);
}

static void an_unknown_model_type_is_refused_by_name(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    rg_err err = {0};
    rg_model *m;
    assert_int_equal(import_text(arena, "{\"model_type\": \"lama\", " LLAMA_8B "}", &m, &err),
                     RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "'lama'"));
    assert_non_null(strstr(err.text, "'llama'"));
    assert_int_equal(err.pos.line, 1);
    rg_arena_free(arena);
}

static void kv_layouts_differ_as_engines_do(void **state)
{
    (void)state;
    skip_without(CONFIGS "gpt-oss-20b.json");
    rg_arena *arena = rg_arena_new(64);
    rg_err err = {0};
    rg_model *m;
    rg_format bf16;
    assert_ok(rg_format_parse("bf16", RG_NOWHERE, &bf16, &err));
    assert_ok(rg_model_load(arena, CONFIGS "gpt-oss-20b.json", &m, &err));
    /* 8192 tokens x 32 sequences: 6.09 GiB with windows of 128, 12.00 GiB when all layers keep all
     * (2 x 8 x 64 x 2 B = 2048 B a layer and token). */
    const double ideal = 32 * rg_model_kv_bytes(m, &bf16, RG_KV_IDEAL, 8192, 0).v;
    const double uniform = 32 * rg_model_kv_bytes(m, &bf16, RG_KV_UNIFORM_PAGE, 8192, 16).v;
    assert_close(ideal, 32.0 * 2048 * 12 * (8192 + 128), 0);
    assert_close(uniform, 12.0 * 1073741824, 0);
    double last = 0;
    for (int tokens = 1; tokens < 1000; tokens += 13) { /* never more than full, never falling */
        const double now = rg_model_kv_bytes(m, &bf16, RG_KV_WINDOW_CAPPED, tokens, 16).v;
        assert_true(now <= rg_model_kv_bytes(m, &bf16, RG_KV_UNIFORM_PAGE, tokens, 16).v);
        assert_true(now >= last && now >= rg_model_kv_bytes(m, &bf16, RG_KV_IDEAL, tokens, 0).v);
        last = now;
    }
    assert_ok(rg_model_load(arena, CONFIGS "deepseek-v3.json", &m, &err));
    /* 61 layers: 576 elements as latent; 128 heads of 192 + 128 expanded */
    assert_close(rg_model_kv_bytes(m, &bf16, RG_KV_MLA_LATENT, 4096, 0).v, 287834112, 0);
    assert_close(rg_model_kv_bytes(m, &bf16, RG_KV_MLA_EXPANDED, 1, 0).v,
                 61.0 * 128 * (192 + 128) * 2, 0);
    rg_arena_free(arena);
}

static void quantised_caches_count_their_scales(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    rg_err err = {0};
    rg_model *m;
    rg_format int8, int4, int2;
    assert_ok(import_text(arena, "{\"model_type\": \"llama\", " LLAMA_8B "}", &m, &err));
    assert_ok(rg_format_parse("fp8", RG_NOWHERE, &int8, &err));
    assert_ok(rg_format_parse("int4_g32", RG_NOWHERE, &int4, &err));
    assert_ok(rg_format_parse("int2_g32", RG_NOWHERE, &int2, &err));
    const double elements = 65536; /* 2 x 32 layers x 8 heads x 128 */
    assert_close(rg_model_kv_bytes_per_token(m, &int8, false).v, elements, 0);
    assert_close(rg_model_kv_bytes_per_token(m, &int4, false).v, elements * (4 + 20 / 32.0) / 8,
                 1e-12);
    assert_close(rg_model_kv_bytes_per_token(m, &int2, false).v, elements * (2 + 18 / 32.0) / 8,
                 1e-12);
    rg_arena_free(arena);
}

static void recurrent_state_of_nemotron_h_8b_is_as_counted_elsewhere(void **state)
{
    (void)state;
    /* 24 Mamba-2 layers of 128 heads x 64 x 128 and (8192 + 2 x 8 x 128) x 3: 25,903,104 */
    rg_layer l = {.mixer = RG_MIX_MAMBA2,
                  .ssm_heads = 128,
                  .ssm_head_dim = 64,
                  .ssm_state = 128,
                  .ssm_groups = 8,
                  .ssm_conv = 4};
    assert_int_equal(24 * (rg_layer_state_elements(&l) + rg_layer_conv_elements(&l)), 25903104);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_configs_count_to_the_last_parameter),
        cmocka_unit_test(a_model_survives_yaml),
        cmocka_unit_test(an_unknown_key_of_structure_is_refused_and_a_harmless_one_is_not),
        cmocka_unit_test(an_unknown_model_type_is_refused_by_name),
        cmocka_unit_test(kv_layouts_differ_as_engines_do),
        cmocka_unit_test(quantised_caches_count_their_scales),
        cmocka_unit_test(recurrent_state_of_nemotron_h_8b_is_as_counted_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

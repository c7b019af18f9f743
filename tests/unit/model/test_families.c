/* tests/unit/model/test_families.c: the model files that ship, families beyond the shared samples,
 * and quantisation blocks. Totals are those of the published checkpoints (Hugging Face Hub,
 * safetensors). */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/doc.h"
#include "core/find.h"
#include "model/pass.h"

static rg_arena *arena;

static int make_arena(void **state)
{
    (void)state;
    arena = rg_arena_new(512);
    return 0;
}

static int drop_arena(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

static rg_model *import(const char *json, const char *quant_file)
{
    rg_err err = {0};
    rg_node *root, *quant = NULL;
    rg_model *m;
    assert_ok(rg_doc_parse(arena, "config.json", json, strlen(json), true, &root, &err));
    if (quant_file != NULL)
        assert_ok(rg_doc_parse(arena, "hf_quant_config.json", quant_file, strlen(quant_file), true,
                               &quant, &err));
    assert_ok(rg_model_import(arena, root, quant, NULL, "test", &m, &err));
    return m;
}

static void every_model_file_loads_counts_and_names_its_source(void **state)
{
    (void)state;
    rg_err err = {0};
    const rg_data_entry *entries;
    size_t count;
    assert_ok(rg_data_list(arena, "models", &entries, &count, &err));
    assert_true(count >= 25);
    for (size_t i = 0; i < count; i++) {
        rg_model *m;
        assert_ok(rg_model_load(arena, entries[i].path, &m, &err));
        if (m->source == NULL || strcmp(m->name, entries[i].name) != 0)
            print_error("%s\n", entries[i].path);
        assert_non_null(m->source);
        assert_string_equal(m->name, entries[i].name);
    }
}

static void model_files_have_the_published_totals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t total;
    } rows[] = {
        {"llama-3.1-8b", 8030261248},
        {"llama-3.1-70b", 70553706496},
        {"llama-3.1-405b", 405853388800},
        {"llama-3.2-1b", 1235814400},
        {"llama-3.2-3b", 3212749824},
        {"mistral-7b-v0.1", 7241732096},
        {"mixtral-8x7b", 46702792704},
        {"mixtral-8x22b", 140620634112},
        {"qwen2.5-7b", 7615616512},
        {"qwen2.5-32b", 32763876352},
        {"qwen2.5-72b", 72706203648},
        {"qwen3-8b", 8190735360},
        {"qwen3-32b", 32762123264},
        {"qwen3-30b-a3b", 30532122624},
        {"qwen3-235b-a22b", 235093634560},
        {"gemma-2-9b", 9241705984},
        {"gemma-2-27b", 27227128320},
        {"gpt-oss-20b", 20914757184},
        {"gpt-oss-120b", 116829156672},
        {"deepseek-v3", 671026419200},
        {"kimi-k2", 1026408232448},
        {"phi-3-mini", 3821079552},
        {"nemotron-super-49b", 49867145216},
        {"mistral-7b-v0.3", 7248023552},
        {"mistral-nemo-12b", 12247782400},
        {"mistral-small-24b", 23572403200},
        {"mistral-large-2407", 122610069504},
        {"phi-4", 14659507200},
        {"phi-4-mini", 3836021760},
        {"qwen2.5-0.5b", 494032768},
        {"qwen2.5-1.5b", 1543714304},
        {"qwen2.5-3b", 3085938688},
        {"qwen2.5-14b", 14770033664},
        {"qwen3-1.7b", 1720574976},
        {"qwen3-4b", 4022468096},
        {"qwen3-14b", 14768307200},
        {"qwen3-coder-480b-a35b", 480154875392},
        {"command-a", 111057580032},
        {"granite-3.1-8b", 8170848256},
        {"tinyllama-1.1b", 1100048384},
        {"starcoder2-15b", 15957889024},
        /* with the vision tower, as published, 4300079472 and 12187325040 */
        {"gemma-3-4b", 4300079472 - 416867184 - 1152 * 2560},
        {"gemma-3-12b", 12187325040 - 416867184 - 1152 * 3840},
        /* with the prediction layer, as published, 110468824832 */
        {"glm-4.5-air", 106852251264},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rg_err err = {0};
        rg_model *m;
        assert_ok(rg_model_load(arena, rows[i].name, &m, &err));
        if (m->parameters_total != rows[i].total)
            print_error("%s\n", rows[i].name);
        assert_int_equal(m->parameters_total, rows[i].total);
    }
}

/* Configs as published, without what does not shape the model. */
static const struct {
    const char *json;
    int64_t total;
    double kv_bytes; /* per token, bf16 */
} published[] = {
    /* Nemotron-3-Nano-30B-A3B */
    {"{\"model_type\": \"nemotron_h\", \"hidden_size\": 2688, \"num_hidden_layers\": 52,"
     "\"hybrid_override_pattern\": \"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME\","
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 2, \"head_dim\": 128,"
     "\"mamba_num_heads\": 64, \"mamba_head_dim\": 64, \"n_groups\": 8, \"ssm_state_size\": 128,"
     "\"conv_kernel\": 4, \"n_routed_experts\": 128, \"num_experts_per_tok\": 6,"
     "\"moe_intermediate_size\": 1856, \"moe_shared_expert_intermediate_size\": 3712,"
     "\"n_shared_experts\": 1, \"intermediate_size\": 1856, \"vocab_size\": 131072,"
     "\"time_step_limit\": [0.0, Infinity]}",
     31577940288, 6144},
    /* OLMoE-1B-7B */
    {"{\"model_type\": \"olmoe\", \"hidden_size\": 2048, \"intermediate_size\": 1024,"
     "\"num_attention_heads\": 16, \"num_hidden_layers\": 16, \"num_key_value_heads\": 16,"
     "\"num_experts\": 64, \"num_experts_per_tok\": 8, \"vocab_size\": 50304}",
     6919161856, 131072},
    /* MiniCPM3-4B: no v_head_dim; 62 layers of
       2560*768 + 768 + 768*40*96 + 2560*288 + 256 + 256*40*128 + 40*64*2560 + 3*2560*6400 + 5120 */
    {"{\"model_type\": \"minicpm3\", \"hidden_size\": 2560, \"num_hidden_layers\": 62,"
     "\"num_attention_heads\": 40, \"num_key_value_heads\": 40, \"q_lora_rank\": 768,"
     "\"kv_lora_rank\": 256, \"qk_nope_head_dim\": 64, \"qk_rope_head_dim\": 32,"
     "\"intermediate_size\": 6400, \"vocab_size\": 73448}",
     4073875968, 62 * 288 * 2},
    /* DBRX */
    {"{\"model_type\": \"dbrx\", \"d_model\": 6144, \"n_heads\": 48, \"n_layers\": 40,"
     "\"max_seq_len\": 32768, \"vocab_size\": 100352,"
     "\"attn_config\": {\"clip_qkv\": 8, \"kv_n_heads\": 8, \"rope_theta\": 500000},"
     "\"ffn_config\": {\"ffn_hidden_size\": 10752, \"moe_num_experts\": 16, \"moe_top_k\": 4}}",
     131596523520, 163840},
    /* Command R+ */
    {"{\"model_type\": \"cohere\", \"hidden_size\": 12288, \"intermediate_size\": 33792,"
     "\"num_attention_heads\": 96, \"num_hidden_layers\": 64, \"num_key_value_heads\": 8,"
     "\"vocab_size\": 256000, \"use_qk_norm\": true}",
     103810674688, 262144},
    /* Phi-3.5-MoE: a window as long as the context is none */
    {"{\"model_type\": \"phimoe\", \"hidden_size\": 4096, \"intermediate_size\": 6400,"
     "\"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8,"
     "\"num_local_experts\": 16, \"num_experts_per_tok\": 2, \"vocab_size\": 32064,"
     "\"attention_bias\": true, \"lm_head_bias\": true, \"sliding_window\": 131072,"
     "\"max_position_embeddings\": 131072, \"tie_word_embeddings\": false}",
     41873153344, 131072},
    /* MiniMax-Text-01: 10 of 80 layers keep a cache */
    {"{\"model_type\": \"minimax_text_01\", \"hidden_size\": 6144, \"intermediate_size\": 9216,"
     "\"num_attention_heads\": 64, \"num_hidden_layers\": 80, \"num_key_value_heads\": 8,"
     "\"head_dim\": 128, \"num_local_experts\": 32, \"num_experts_per_tok\": 2,"
     "\"vocab_size\": 200064, \"shared_intermediate_size\": 0, \"attn_type_list\": ["
     "0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,"
     "0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1]}",
     456089655296, 40960},
    /* Codestral Mamba */
    {"{\"model_type\": \"mamba2\", \"hidden_size\": 4096, \"num_hidden_layers\": 64,"
     "\"num_heads\": 128, \"head_dim\": 64, \"state_size\": 128, \"n_groups\": 8,"
     "\"conv_kernel\": 4, \"expand\": 2, \"vocab_size\": 32768, \"tie_word_embeddings\": false}",
     7285403648, 0},
    /* ChatGLM3-6B */
    {"{\"model_type\": \"chatglm\", \"add_bias_linear\": false, \"add_qkv_bias\": true,"
     "\"ffn_hidden_size\": 13696, \"hidden_size\": 4096, \"kv_channels\": 128,"
     "\"multi_query_attention\": true, \"multi_query_group_num\": 2,"
     "\"num_attention_heads\": 32, \"num_layers\": 28, \"padded_vocab_size\": 65024,"
     "\"seq_length\": 8192, \"tie_word_embeddings\": false}",
     6243584000, 28672},
    /* OPT-350m: embedding of half the width, norms behind, none at the end */
    {"{\"model_type\": \"opt\", \"hidden_size\": 1024, \"ffn_dim\": 4096,"
     "\"num_hidden_layers\": 24, \"num_attention_heads\": 16, \"word_embed_proj_dim\": 512,"
     "\"do_layer_norm_before\": false, \"max_position_embeddings\": 2048, \"vocab_size\": 50272}",
     331196416, 98304},
    /* Falcon-40B under its first names */
    {"{\"model_type\": \"RefinedWeb\", \"hidden_size\": 8192, \"n_layer\": 60, \"n_head\": 128,"
     "\"n_head_kv\": 8, \"vocab_size\": 65024, \"alibi\": false, \"bias\": false,"
     "\"parallel_attn\": true, \"multi_query\": true}",
     41303293952, 122880},
    /* DeepSeek-V2 */
    {"{\"model_type\": \"deepseek_v2\", \"hidden_size\": 5120, \"intermediate_size\": 12288,"
     "\"num_hidden_layers\": 60, \"num_attention_heads\": 128, \"kv_lora_rank\": 512,"
     "\"q_lora_rank\": 1536, \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64,"
     "\"v_head_dim\": 128, \"n_routed_experts\": 160, \"n_shared_experts\": 2,"
     "\"num_experts_per_tok\": 6, \"moe_intermediate_size\": 1536, \"first_k_dense_replace\": 1,"
     "\"moe_layer_freq\": 1, \"vocab_size\": 102400}",
     235741434880, 69120},
    /* Seed-OSS-36B */
    {"{\"model_type\": \"seed_oss\", \"hidden_size\": 5120, \"intermediate_size\": 27648,"
     "\"num_hidden_layers\": 64, \"num_attention_heads\": 80, \"num_key_value_heads\": 8,"
     "\"head_dim\": 128, \"attention_bias\": true, \"attention_out_bias\": false,"
     "\"mlp_bias\": false, \"vocab_size\": 155136, \"tie_word_embeddings\": false}",
     36151104512, 262144},
    /* Hunyuan-A13B: sizes as lists, one entry a layer */
    {"{\"model_type\": \"hunyuan_v1_moe\", \"hidden_size\": 4096, \"intermediate_size\": 3072,"
     "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
     "\"attention_head_dim\": 128, \"num_experts\": 64, \"moe_topk\": [8, 8],"
     "\"num_shared_expert\": [1, 1], \"moe_intermediate_size\": [3072, 3072],"
     "\"vocab_size\": 128167, \"tie_word_embeddings\": true, \"use_qk_norm\": true}",
     80393183232, 131072},
    /* ERNIE-4.5-21B-A3B */
    {"{\"model_type\": \"ernie4_5_moe\", \"hidden_size\": 2560, \"intermediate_size\": 12288,"
     "\"num_hidden_layers\": 28, \"num_attention_heads\": 20, \"num_key_value_heads\": 4,"
     "\"moe_num_experts\": 64, \"moe_k\": 6, \"moe_num_shared_experts\": 2,"
     "\"moe_intermediate_size\": 1536, \"moe_layer_start_index\": 1, \"moe_layer_end_index\": 27,"
     "\"moe_layer_interval\": 1, \"vocab_size\": 103424, \"use_bias\": false}",
     21825437888, 57344},
};

static void published_configs_of_other_families_count_exactly(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_format bf16;
    assert_ok(rg_format_parse("bf16", RG_NOWHERE, &bf16, &err));
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        const rg_model *m = import(published[i].json, NULL);
        if (m->parameters_total != published[i].total)
            print_error("%.60s\n", published[i].json);
        assert_int_equal(m->parameters_total, published[i].total);
        assert_close(rg_model_kv_bytes_per_token(m, &bf16, false).v, published[i].kv_bytes, 1e-15);
    }
}

static void granite_4_h_small_has_experts_on_every_layer(void **state)
{
    (void)state;
    char json[4096];
    int used = snprintf(json, sizeof json,
                        "{\"model_type\": \"granitemoehybrid\", \"hidden_size\": 4096,"
                        "\"num_hidden_layers\": 40, \"num_attention_heads\": 32,"
                        "\"num_key_value_heads\": 8, \"num_local_experts\": 72,"
                        "\"num_experts_per_tok\": 10, \"shared_intermediate_size\": 1536,"
                        "\"intermediate_size\": 768, \"mamba_d_state\": 128, \"mamba_d_conv\": 4,"
                        "\"mamba_expand\": 2, \"mamba_n_heads\": 128, \"mamba_d_head\": 64,"
                        "\"mamba_n_groups\": 1, \"tie_word_embeddings\": true,"
                        "\"vocab_size\": 100352, \"layer_types\": [");
    for (int i = 0; i < 40; i++)
        used += snprintf(json + used, sizeof json - (size_t)used, "%s\"%s\"", i ? ", " : "",
                         i % 10 == 5 ? "attention" : "mamba");
    snprintf(json + used, sizeof json - (size_t)used, "]}");
    const rg_model *m = import(json, NULL);
    assert_int_equal(m->parameters_total, 32207337984);
    for (int64_t i = 0; i < m->layer_count; i++)
        assert_int_equal(m->layers[i].ffn, RG_FFN_MOE);
}

static void layers_of_mimo_v2_have_two_kinds_of_cache(void **state)
{
    (void)state;
    /* 9 global layers of 4 KV heads and 39 of 8 within 128 tokens; K of 192, V of 128: 23040 and
     * 199680 bytes a token. */
    char json[4096];
    int used = snprintf(json, sizeof json,
                        "{\"model_type\": \"mimo_v2_flash\", \"hidden_size\": 4096,"
                        "\"intermediate_size\": 16384, \"moe_intermediate_size\": 2048,"
                        "\"num_hidden_layers\": 48, \"num_attention_heads\": 64,"
                        "\"num_key_value_heads\": 4, \"head_dim\": 192, \"v_head_dim\": 128,"
                        "\"swa_num_key_value_heads\": 8, \"n_routed_experts\": 256,"
                        "\"num_experts_per_tok\": 8, \"sliding_window_size\": 128,"
                        "\"add_swa_attention_sink_bias\": true, \"vocab_size\": 152576,"
                        "\"max_position_embeddings\": 262144, \"tie_word_embeddings\": false,"
                        "\"hybrid_layer_pattern\": [");
    for (int i = 0; i < 48; i++)
        used += snprintf(json + used, sizeof json - (size_t)used, "%s%d", i ? ", " : "",
                         !(i == 0 || i == 47 || (i - 5) % 6 == 0));
    used += snprintf(json + used, sizeof json - (size_t)used, "], \"moe_layer_freq\": [0");
    for (int i = 1; i < 48; i++)
        used += snprintf(json + used, sizeof json - (size_t)used, ", 1");
    snprintf(json + used, sizeof json - (size_t)used, "]}");
    rg_err err = {0};
    rg_format bf16;
    assert_ok(rg_format_parse("bf16", RG_NOWHERE, &bf16, &err));
    const rg_model *m = import(json, NULL);
    assert_close(rg_model_kv_bytes(m, &bf16, RG_KV_IDEAL, 1, 0).v, 23040 + 199680, 1e-15);
    assert_close(rg_model_kv_bytes(m, &bf16, RG_KV_IDEAL, 10128, 0).v,
                 10128.0 * 23040 + 128.0 * 199680, 1e-15);
    assert_int_equal(m->layers[0].ffn, RG_FFN_DENSE);
    assert_int_equal(m->layers[1].ffn, RG_FFN_MOE);
}

static void blocks_without_attention_keep_no_cache(void **state)
{
    (void)state;
    const rg_model *m = import(
        "{\"model_type\": \"nemotron-nas\", \"hidden_size\": 8192, \"num_hidden_layers\": 3,"
        "\"num_attention_heads\": 64, \"num_key_value_heads\": null, \"intermediate_size\": null,"
        "\"vocab_size\": 128256, \"block_configs\": ["
        "{\"attention\": {\"n_heads_in_group\": 8, \"no_op\": false}, \"ffn\": {\"ffn_mult\": "
        "5.25}},"
        "{\"attention\": {\"no_op\": true}, \"ffn\": {\"ffn_mult\": 1.0}},"
        "{\"attention\": {\"replace_with_linear\": true}, \"ffn\": {\"no_op\": true}}]}",
        NULL);
    /* 5.25 x 2/3 x 8192 = 28672 as in Llama-3.1-70B; 5461.3 rounds up to 5632 */
    assert_int_equal(m->layers[0].inter, 28672);
    assert_int_equal(m->layers[0].kv_heads, 8);
    assert_int_equal(m->layers[1].inter, 5632);
    assert_int_equal(m->layers[1].mixer, RG_MIX_NONE);
    assert_int_equal(m->layers[2].mixer_params, 8192 * 8192);
    const int64_t first = 8192LL * (64 + 16) * 128 + 8192LL * 8192 + 3LL * 8192 * 28672 + 2 * 8192;
    const int64_t second = 3LL * 8192 * 5632 + 8192, third = 8192LL * 8192 + 8192;
    assert_int_equal(m->parameters_total, first + second + third + 2LL * 128256 * 8192 + 8192);
}

static void windows_that_are_present_but_off_are_off(void **state)
{
    (void)state;
    static const char *const off[] = {
        "{\"model_type\": \"qwen2\", \"sliding_window\": 131072, \"use_sliding_window\": false,"
        "\"max_window_layers\": 2, \"max_position_embeddings\": 262144, ",
        "{\"model_type\": \"mixtral\", \"num_local_experts\": 8, \"num_experts_per_tok\": 2,"
        "\"sliding_window\": null, ",
        "{\"model_type\": \"phi3\", \"sliding_window\": 262144, \"max_position_embeddings\": "
        "131072,",
        "{\"model_type\": \"gemma2\", \"sliding_window\": 4096, \"max_position_embeddings\": "
        "4096,"};
    static const char sizes[] = "\"hidden_size\": 256, \"num_hidden_layers\": 4,"
                                "\"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
                                "\"intermediate_size\": 512, \"vocab_size\": 1000}";
    char json[1024];
    for (int i = 0; i < 4; i++) {
        snprintf(json, sizeof json, "%s%s", off[i], sizes);
        const rg_model *m = import(json, NULL);
        for (int l = 0; l < 4; l++)
            assert_int_equal(m->layers[l].mixer, RG_MIX_FULL);
    }
    snprintf(json, sizeof json, "%s%s",
             "{\"model_type\": \"qwen2\", \"sliding_window\": 100, \"use_sliding_window\": true,"
             "\"max_window_layers\": 2, \"max_position_embeddings\": 4096,",
             sizes);
    const rg_model *m = import(json, NULL);
    assert_int_equal(m->layers[1].mixer, RG_MIX_FULL);
    assert_int_equal(m->layers[2].mixer, RG_MIX_WINDOW);
    assert_int_equal(m->layers[2].window, 100);
}

#define TINY                                                                               \
    "{\"model_type\": \"llama\", \"hidden_size\": 512, \"num_hidden_layers\": 2,"          \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"intermediate_size\": 1024," \
    "\"vocab_size\": 1000, \"torch_dtype\": \"bfloat16\""
#define TINY_MOE                                                                           \
    "{\"model_type\": \"mixtral\", \"hidden_size\": 512, \"num_hidden_layers\": 2,"        \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"intermediate_size\": 1024," \
    "\"vocab_size\": 1000, \"num_local_experts\": 8, \"num_experts_per_tok\": 2"

static void quantisation_blocks_name_the_format(void **state)
{
    (void)state;
    static const struct {
        const char *block, *weight, *activation, *kv;
    } rows[] = {
        {"{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128],"
         "\"activation_scheme\": \"dynamic\"}",
         "fp8_block", "fp8", NULL},
        {"{\"quant_method\": \"fp8\"}", "fp8", "fp8", NULL},
        {"{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 64, \"desc_act\": true,"
         "\"sym\": true}",
         "int4_g64_sym", NULL, NULL},
        {"{\"quant_method\": \"gptq\", \"bits\": 8, \"group_size\": -1, \"sym\": true}",
         "int8_g512_sym", NULL, NULL},
        {"{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 128, \"zero_point\": true}",
         "int4_g128", NULL, NULL},
        {"{\"quant_method\": \"compressed-tensors\", \"format\": \"float-quantized\","
         "\"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": "
         "8,"
         "\"type\": \"float\", \"strategy\": \"channel\"}, \"input_activations\": {\"num_bits\": 8,"
         "\"type\": \"float\"}}}, \"kv_cache_scheme\": {\"num_bits\": 8, \"type\": \"float\"}}",
         "fp8", "fp8", "fp8"},
        {"{\"quant_method\": \"compressed-tensors\", \"format\": \"int-quantized\","
         "\"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 8, \"type\": \"int\","
         "\"strategy\": \"channel\"}, \"input_activations\": {\"num_bits\": 8, \"type\": "
         "\"int\"}}}}",
         "int8", "int8", NULL},
        {"{\"quant_method\": \"compressed-tensors\", \"format\": \"nvfp4-pack-quantized\","
         "\"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 4, \"type\": \"float\","
         "\"strategy\": \"tensor_group\", \"group_size\": 16}, \"input_activations\": {"
         "\"num_bits\": 4, \"type\": \"float\"}}}}",
         "nvfp4", "fp4", NULL},
        {"{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\","
         "\"kv_cache_scheme\": {\"num_bits\": 8, \"type\": \"float\"}}",
         "nvfp4", "fp4", "fp8"},
        {"{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true}", "int4_g64_sym", NULL,
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char json[2048];
        snprintf(json, sizeof json, TINY ", \"quantization_config\": %s}", rows[i].block);
        const rg_model *m = import(json, NULL);
        assert_string_equal(m->quantisation, rows[i].weight);
        assert_string_equal(m->activation_quantisation ? m->activation_quantisation : "none",
                            rows[i].activation ? rows[i].activation : "none");
        assert_string_equal(m->kv_quantisation ? m->kv_quantisation : "none",
                            rows[i].kv ? rows[i].kv : "none");
    }
}

static void a_quant_file_beside_the_config_is_read(void **state)
{
    (void)state;
    const rg_model *m =
        import(TINY "}", "{\"producer\": {\"name\": \"modelopt\"}, \"quantization\": {"
                         "\"quant_algo\": \"NVFP4\", \"kv_cache_quant_algo\": \"FP8\","
                         "\"group_size\": 16, \"exclude_modules\": [\"lm_head\","
                         "\"model.layers.1.self_attn*\", \"model.layers.0.self_attn*\","
                         "\"model.layers.0.input_layernorm\"]}}");
    assert_string_equal(m->quantisation, "nvfp4");
    assert_string_equal(m->mixer_quantisation, "bf16"); /* all layers are named, in any order */
    assert_string_equal(m->kv_quantisation, "fp8");
}

static void parts_that_stay_unquantised_weigh_their_bytes(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_formats f;
    const rg_shard whole = {.embedding = true, .head = true};
    const rg_model *m = import(TINY_MOE ", \"quantization_config\": {\"quant_method\": \"mxfp4\","
                                        "\"modules_to_not_convert\": [\"lm_head\"]}}",
                               NULL);
    assert_null(m->quantisation);
    assert_string_equal(m->expert_quantisation, "mxfp4_wo");
    assert_ok(rg_formats_choose(m, NULL, NULL, NULL, &f, &err));
    const double experts = 2 * 8 * 3.0 * 512 * 1024, rest = (double)m->parameters_total - experts;
    /* 4 bits and an 8-bit scale per 32 */
    assert_close(rg_shard_weight_bytes(m, &f, &whole).v, experts * 4.25 / 8 + rest * 2, 1e-12);
    const rg_model *k =
        import(TINY_MOE
               ", \"quantization_config\": {\"quant_method\": \"compressed-tensors\","
               "\"format\": \"pack-quantized\", \"ignore\": [\"lm_head\", \"re:.*self_attn.*\","
               "\"re:.*shared_experts.*\", \"re:.*mlp\\\\.(gate|up|gate_up|down)_proj.*\"],"
               "\"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 4, \"type\": \"int\","
               "\"strategy\": \"group\", \"group_size\": 32, \"symmetric\": true},"
               "\"input_activations\": null}}}}",
               NULL);
    assert_null(k->quantisation);
    assert_string_equal(k->expert_quantisation, "int4_g32_sym");
}

static void a_format_that_the_user_names_holds_for_all_layers(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_formats f;
    const rg_model *m =
        import(TINY_MOE ", \"quantization_config\": {\"quant_method\": \"mxfp4\"}}", NULL);
    assert_ok(rg_formats_choose(m, "fp8", "int8", NULL, &f, &err));
    assert_string_equal(f.weight.name, "fp8");
    assert_string_equal(f.expert.name, "");
    assert_string_equal(f.kv.name, "int8");
    assert_int_equal(f.math, RG_FP8);
    assert_int_equal(rg_formats_choose(m, "fp9", NULL, NULL, &f, &err), RG_ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_file_loads_counts_and_names_its_source),
        cmocka_unit_test(model_files_have_the_published_totals),
        cmocka_unit_test(published_configs_of_other_families_count_exactly),
        cmocka_unit_test(granite_4_h_small_has_experts_on_every_layer),
        cmocka_unit_test(layers_of_mimo_v2_have_two_kinds_of_cache),
        cmocka_unit_test(blocks_without_attention_keep_no_cache),
        cmocka_unit_test(windows_that_are_present_but_off_are_off),
        cmocka_unit_test(quantisation_blocks_name_the_format),
        cmocka_unit_test(a_quant_file_beside_the_config_is_read),
        cmocka_unit_test(parts_that_stay_unquantised_weigh_their_bytes),
        cmocka_unit_test(a_format_that_the_user_names_holds_for_all_layers),
    };
    return cmocka_run_group_tests(tests, make_arena, drop_arena);
}

/* model/hf_family.c: the families of config.json that ridge reads, one row each, and what is
 * particular to some of them. Facts are those of the published model code (Hugging Face
 * transformers, or the modeling file that the checkpoint carries); a row's bias and tie defaults
 * are its config class's.
 */
// SPDX-License-Identifier: Apache-2.0
#include "model/hf.h"

#include <string.h>

#include "core/text.h"
#include "model/hf_hybrid.h"

/* Multi-head latent attention when the config has its ranks; head_dim of the config is ignored. */
static rg_status mla_sizes(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base;
    if (rg_hf_find(hf, "kv_lora_rank") == NULL)
        return RG_OK;
    l->mixer = RG_MIX_MLA;
    RG_TRY(rg_hf_int(hf, "kv_lora_rank", 1, &l->kv_lora, err));
    RG_TRY(rg_hf_int_or(hf, "q_lora_rank", 0, 0, &l->q_lora, err));
    RG_TRY(rg_hf_int(hf, "qk_nope_head_dim", 1, &l->nope_dim, err));
    RG_TRY(rg_hf_int(hf, "qk_rope_head_dim", 0, &l->rope_dim, err));
    RG_TRY(rg_hf_int(hf, "v_head_dim", 1, &l->v_head_dim, err));
    l->head_dim = l->nope_dim + l->rope_dim;
    l->kv_heads = l->heads;
    l->qk_norm = RG_QK_NORM_NONE;
    RG_TRY(rg_hf_int_or(hf, "index_n_heads", 0, 0, &l->index_heads, err));
    RG_TRY(rg_hf_int_or(hf, "index_head_dim", 0, 0, &l->index_dim, err));
    RG_TRY(rg_hf_int_or(hf, "index_topk", 0, 0, &l->index_top_k, err));
    rg_hf_find(hf, "qk_head_dim|index_topk_freq");
    if (l->index_heads > 0 && (l->index_dim == 0 || l->index_top_k == 0 || l->q_lora == 0))
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf),
                       "index_n_heads needs index_head_dim, index_topk and q_lora_rank");
    return RG_OK;
}

static rg_status deepseek_sizes(rg_hf *hf, rg_err *err)
{
    RG_TRY(mla_sizes(hf, err));
    rg_node *method = rg_hf_find(hf, "topk_method");
    if (method != NULL && strcmp(method->text ? method->text : "", "noaux_tc") == 0)
        hf->expert.router_bias = true;
    const bool needs_mla = strncmp(hf->type, "deepseek_v", 10) == 0;
    if (needs_mla && hf->base.mixer != RG_MIX_MLA)
        return rg_hf_missing(hf, "kv_lora_rank", err);
    return RG_OK;
}

static rg_status deepseek_v3_sizes(rg_hf *hf, rg_err *err)
{
    hf->expert.router_bias = true;
    return deepseek_sizes(hf, err);
}

/* Qwen (first generation): intermediate_size counts both halves of the gated FFN. */
static rg_status qwen1_sizes(rg_hf *hf, rg_err *err)
{
    rg_hf_find(hf, "no_bias|rotary_emb_base|use_dynamic_ntk|use_logn_attn");
    if (hf->base.inter % 2 != 0)
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf), "intermediate_size '%lld' is odd",
                       (long long)hf->base.inter);
    hf->base.inter /= 2;
    return RG_OK;
}

static rg_status chatglm_sizes(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base;
    bool mqa, add_bias, final_norm;
    if (rg_hf_find(hf, "ffn_hidden_size") == NULL)
        return rg_fail(err, RG_ERR_MODEL, rg_hf_pos(hf),
                       "missing key 'ffn_hidden_size': only ChatGLM2 and later are read");
    RG_TRY(rg_hf_bool_or(hf, "multi_query_attention", false, &mqa, err));
    if (mqa)
        RG_TRY(rg_hf_int(hf, "multi_query_group_num", 1, &l->kv_heads, err));
    RG_TRY(rg_hf_bool_or(hf, "add_bias_linear", false, &add_bias, err));
    RG_TRY(rg_hf_bool_or(hf, "post_layer_norm", true, &final_norm, err));
    rg_hf_find(hf, "multi_query_group_num|apply_query_key_layer_scaling");
    l->o_bias = l->ffn_bias = add_bias;
    hf->model->final_norm = final_norm;
    l->rope_dim = l->head_dim / 2; /* the code rotates half of each head */
    return RG_OK;
}

/* Falcon (arXiv 2311.16867): 7B one norm and one KV head, 40B and 180B two norms and KV groups. */
static rg_status falcon_sizes(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base;
    bool mqa, parallel, grouped, alibi;
    const bool old_40b = strcmp(hf->type, "RefinedWeb") == 0;
    const bool old_7b = strcmp(hf->type, "RefinedWebModel") == 0;
    RG_TRY(rg_hf_bool_or(hf, "new_decoder_architecture", old_40b, &grouped, err));
    RG_TRY(rg_hf_bool_or(hf, "multi_query", !old_40b, &mqa, err));
    RG_TRY(rg_hf_bool_or(hf, "parallel_attn", true, &parallel, err));
    RG_TRY(rg_hf_bool_or(hf, "alibi", false, &alibi, err));
    (void)old_7b;
    if (grouped)
        RG_TRY(rg_hf_int_noted(hf, "num_kv_heads|n_head_kv|num_key_value_heads", 1, l->heads,
                               &l->kv_heads, err));
    else
        l->kv_heads = mqa ? 1 : l->heads;
    if (l->heads % l->kv_heads != 0)
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf),
                       "'%lld' KV heads do not divide %lld query heads", (long long)l->kv_heads,
                       (long long)l->heads);
    rg_hf_find(hf, "num_kv_heads");
    rg_hf_find(hf, "n_head_kv");
    rg_hf_find(hf, "ff_factor");
    RG_TRY(rg_hf_int_or(hf, "num_ln_in_parallel_attn", 1,
                        grouped    ? 2
                        : parallel ? 1
                                   : 2,
                        &l->norms, err));
    if (alibi)
        l->rope_dim = 0;
    return RG_OK;
}

static rg_status mpt_sizes(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base;
    bool no_bias, learned, alibi = false;
    RG_TRY(rg_hf_bool_or(hf, "no_bias", false, &no_bias, err));
    RG_TRY(rg_hf_bool_or(hf, "learned_pos_emb", true, &learned, err));
    l->qkv_bias = l->o_bias = l->ffn_bias = l->norm_bias = !no_bias;
    rg_node *ratio = rg_hf_find(hf, "expansion_ratio");
    int64_t times = 4;
    if (ratio != NULL)
        RG_TRY(rg_node_int(ratio, 1, 1024, &times, err));
    l->inter = times * hf->model->hidden;
    rg_node *ffn = rg_hf_find(hf, "ffn_config");
    rg_node *kind = ffn != NULL && ffn->kind == RG_NODE_MAP ? rg_hf_find_in(ffn, "ffn_type") : NULL;
    if (kind != NULL && kind->text != NULL && strcmp(kind->text, "mptmlp") != 0)
        return rg_fail(err, RG_ERR_MODEL, kind->pos, "ffn_type '%s' is not supported", kind->text);
    rg_node *attn = rg_hf_find(hf, "attn_config");
    if (attn != NULL && attn->kind == RG_NODE_MAP) {
        RG_TRY(rg_map_bool_or(attn, "alibi", false, &alibi, err));
        rg_node *kv = rg_hf_find_in(attn, "kv_n_heads");
        rg_node *type = rg_hf_find_in(attn, "attn_type");
        if (type != NULL && strcmp(type->text ? type->text : "", "multiquery_attention") == 0)
            l->kv_heads = 1;
        if (kv != NULL)
            RG_TRY(rg_node_int(kv, 1, l->heads, &l->kv_heads, err));
        bool qk_ln;
        RG_TRY(rg_map_bool_or(attn, "qk_ln", false, &qk_ln, err));
        if (qk_ln)
            l->qk_norm = RG_QK_NORM_FULL;
    }
    l->rope_dim = 0;
    hf->model->position_rows = learned && !alibi ? hf->model->max_positions : 0;
    return RG_OK;
}

static rg_status dbrx_sizes(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base, *e = &hf->expert;
    rg_node *attn = rg_hf_find(hf, "attn_config"), *ffn = rg_hf_find(hf, "ffn_config");
    if (attn == NULL || ffn == NULL || attn->kind != RG_NODE_MAP || ffn->kind != RG_NODE_MAP)
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf), "missing key '%s'",
                       attn == NULL ? "attn_config" : "ffn_config");
    RG_TRY(rg_map_int(attn, "kv_n_heads", 1, l->heads, &l->kv_heads, err));
    RG_TRY(rg_map_int(ffn, "ffn_hidden_size", 1, INT32_MAX, &e->inter, err));
    RG_TRY(rg_map_int(ffn, "moe_num_experts", 1, 65536, &e->experts, err));
    RG_TRY(rg_map_int(ffn, "moe_top_k", 1, 65536, &e->top_k, err));
    e->ffn = RG_FFN_MOE;
    e->gated = true;
    l->inter = e->inter;
    return RG_OK;
}

static rg_status bigcode_sizes(rg_hf *hf, rg_err *err)
{
    bool mqa;
    RG_TRY(rg_hf_bool_or(hf, "multi_query", true, &mqa, err));
    hf->base.kv_heads = mqa ? 1 : hf->base.heads;
    rg_hf_find(hf, "attention_softmax_in_fp32|runner_max_sequence_length");
    return RG_OK;
}

static rg_status opt_sizes(rg_hf *hf, rg_err *err)
{
    bool before, removed, affine, bias;
    int64_t width;
    RG_TRY(rg_hf_bool_or(hf, "do_layer_norm_before", true, &before, err));
    RG_TRY(rg_hf_bool_or(hf, "_remove_final_layer_norm", false, &removed, err));
    RG_TRY(rg_hf_bool_or(hf, "layer_norm_elementwise_affine", true, &affine, err));
    RG_TRY(rg_hf_bool_or(hf, "enable_bias", true, &bias, err));
    RG_TRY(rg_hf_int_or(hf, "word_embed_proj_dim", 1, hf->model->hidden, &width, err));
    hf->base.norm_bare = !affine;
    hf->base.qkv_bias = hf->base.o_bias = hf->base.ffn_bias = bias;
    hf->model->final_norm = before && !removed;
    hf->model->embedding_width = width == hf->model->hidden ? 0 : width;
    return RG_OK;
}

static rg_status bloom_sizes(rg_hf *hf, rg_err *err)
{
    (void)err;
    hf->model->embedding_norm = true;
    rg_hf_find(hf, "skip_bias_add|skip_bias_add_qkv|n_inner|masked_softmax_fusion");
    rg_hf_find(hf, "skip_bias_add_qkv");
    rg_hf_find(hf, "offset_alibi");
    return RG_OK;
}

/* GPT-J, CodeGen and Phi: one norm per layer and a bias on the head. */
static rg_status head_bias(rg_hf *hf, rg_err *err)
{
    hf->model->head_bias = true;
    bool qk;
    RG_TRY(rg_hf_bool_or(hf, "qk_layernorm", false, &qk, err));
    if (qk) /* LayerNorm with bias over the elements of a head, for Q and for K */
        hf->base.mixer_extra = 4 * hf->base.head_dim;
    return RG_OK;
}

static rg_status phimoe_sizes(rg_hf *hf, rg_err *err)
{
    return rg_hf_bool_or(hf, "lm_head_bias", false, &hf->model->head_bias, err);
}

static rg_status stablelm_sizes(rg_hf *hf, rg_err *err)
{
    bool parallel;
    RG_TRY(rg_hf_bool_or(hf, "use_parallel_residual", false, &parallel, err));
    hf->base.norms = parallel ? 1 : 2;
    return RG_OK;
}

static rg_status gpt_neo_layers(rg_hf *hf, rg_err *err)
{
    rg_node *types = rg_hf_find(hf, "attention_layers");
    int64_t window;
    RG_TRY(rg_hf_int_noted(hf, "window_size", 1, 256, &window, err));
    rg_hf_find(hf, "attention_types");
    if (types == NULL)
        rg_hf_note(hf, "no key 'attention_layers': global and local in turn, as published");
    const rg_node *item = types != NULL ? types->first : NULL;
    for (int64_t i = 0; i < hf->model->layer_count; i++) {
        bool local = i % 2 == 1;
        if (types != NULL) {
            if (item == NULL)
                return rg_fail(err, RG_ERR_INPUT, types->pos,
                               "'attention_layers' has fewer entries than layers");
            local = item->text != NULL && strcmp(item->text, "local") == 0;
            item = item->next;
        }
        if (local) {
            hf->model->layers[i].mixer = RG_MIX_WINDOW;
            hf->model->layers[i].window = window;
        }
    }
    return RG_OK;
}

static rg_status gemma3_sizes(rg_hf *hf, rg_err *err)
{
    /* Configs of the vision-language sizes leave out what equals Gemma3TextConfig's default. */
    rg_layer *l = &hf->base;
    if (rg_hf_find(hf, "num_attention_heads") == NULL) {
        RG_TRY(rg_hf_int_noted(hf, "num_attention_heads", 1, 8, &l->heads, err));
        RG_TRY(rg_hf_int_noted(hf, "num_key_value_heads", 1, 4, &l->kv_heads, err));
        RG_TRY(rg_hf_int_noted(hf, "head_dim", 1, 256, &l->head_dim, err));
        l->mixer = RG_MIX_FULL;
        l->qk_norm = RG_QK_NORM_HEAD;
        l->rope_dim = l->head_dim;
    } else if (rg_hf_find(hf, "head_dim") == NULL) {
        RG_TRY(rg_hf_int_noted(hf, "head_dim", 1, 256, &l->head_dim, err));
        l->rope_dim = l->head_dim;
    }
    return RG_OK;
}

/* Llama 4: intermediate_size is the expert's, intermediate_size_mlp the dense layers'. */
static rg_status llama4_sizes(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base, *e = &hf->expert;
    if (e->experts > 0) {
        e->shared_experts = 1;
        e->shared_inter = e->inter;
        RG_TRY(rg_hf_int_or(hf, "intermediate_size_mlp", 1, l->inter, &l->inter, err));
    }
    return RG_OK;
}

static rg_status llama4_layers(rg_hf *hf, rg_err *err)
{
    int64_t interval, chunk;
    rg_node *rope_list;
    RG_TRY(rg_hf_int_or(hf, "no_rope_layer_interval", 1, 4, &interval, err));
    RG_TRY(rg_hf_int_or(hf, "attention_chunk_size", 1, 0, &chunk, err));
    RG_TRY(rg_hf_layer_list(hf, "no_rope_layers", &rope_list, err));
    rg_hf_find(hf, "for_llm_compressor");
    const rg_node *item = rope_list != NULL ? rope_list->first : NULL;
    for (int64_t i = 0; i < hf->model->layer_count; i++) {
        rg_layer *l = &hf->model->layers[i];
        int64_t rope = (i + 1) % interval != 0;
        if (item != NULL) {
            RG_TRY(rg_node_int(item, 0, 1, &rope, err));
            item = item->next;
        }
        if (rope == 0) {
            l->rope_dim = 0;
            l->qk_norm = RG_QK_NORM_NONE;
        } else if (chunk > 0) {
            l->mixer = RG_MIX_CHUNKED;
            l->window = chunk;
        }
    }
    return RG_OK;
}

static rg_status gpt_oss_sizes(rg_hf *hf, rg_err *err)
{
    (void)err;
    hf->base.sink_logits = true;
    hf->expert.ffn_bias = true;
    rg_hf_find(hf, "experts_per_token");
    rg_hf_find(hf, "initial_context_length");
    return RG_OK;
}

/* Ernie 4.5, Hunyuan and Bailing say how wide shared experts are by the expert's width. */
static rg_status hunyuan_sizes(rg_hf *hf, rg_err *err)
{
    bool cla;
    RG_TRY(rg_hf_bool_or(hf, "use_cla", false, &cla, err));
    if (cla)
        return rg_fail(err, RG_ERR_MODEL, rg_hf_pos(hf),
                       "field 'use_cla' (layers that share one cache) is not supported");
    rg_hf_find(hf, "cla_share_factor");
    rg_hf_find(hf, "attention_head_dim");
    rg_hf_find(hf, "use_mixed_mlp_moe");
    rg_hf_find(hf, "num_shared_expert");
    rg_hf_find(hf, "moe_topk");
    rg_hf_find(hf, "expert_hidden_dim");
    bool ranks;
    return rg_hf_bool_or(hf, "mlp_bias", false, &ranks, err);
}

/* Arctic: a dense FFN as wide as the hidden size beside the experts, with a norm of its own. */
static rg_status arctic_sizes(rg_hf *hf, rg_err *err)
{
    bool residual;
    RG_TRY(rg_hf_bool_or(hf, "parallel_attn_mlp_res|use_residual", true, &residual, err));
    if (residual && hf->expert.experts > 0) {
        hf->expert.shared_experts = 1;
        hf->expert.shared_inter = hf->model->hidden;
    }
    rg_hf_find(hf, "moe_token_dropping|moe_min_capacity");
    return RG_OK;
}

static rg_status arctic_layers(rg_hf *hf, rg_err *err)
{
    (void)err;
    for (int64_t i = 0; i < hf->model->layer_count; i++)
        if (hf->model->layers[i].ffn == RG_FFN_MOE && hf->expert.shared_inter > 0)
            hf->model->layers[i].norms = 3;
    return RG_OK;
}

/* MiMo-V2: window layers with heads of their own, K and V of different widths, sinks there. */
static rg_status mimo2_layers(rg_hf *hf, rg_err *err)
{
    rg_node *pattern;
    RG_TRY(rg_hf_layer_list(hf, "hybrid_layer_pattern", &pattern, err));
    if (pattern == NULL)
        return rg_hf_missing(hf, "hybrid_layer_pattern", err);
    int64_t heads, kv_heads, dim, v_dim, window, v_full;
    bool sink_window, sink_full;
    const rg_layer *b = &hf->base;
    RG_TRY(rg_hf_int_or(hf, "v_head_dim", 1, b->head_dim, &v_full, err));
    RG_TRY(rg_hf_int_or(hf, "swa_num_attention_heads", 1, b->heads, &heads, err));
    RG_TRY(rg_hf_int_or(hf, "swa_num_key_value_heads", 1, b->kv_heads, &kv_heads, err));
    RG_TRY(rg_hf_int_or(hf, "swa_head_dim", 1, b->head_dim, &dim, err));
    RG_TRY(rg_hf_int_or(hf, "swa_v_head_dim", 1, v_full, &v_dim, err));
    RG_TRY(rg_hf_int(hf, "sliding_window_size|sliding_window", 1, &window, err));
    RG_TRY(rg_hf_bool_or(hf, "add_swa_attention_sink_bias", false, &sink_window, err));
    RG_TRY(rg_hf_bool_or(hf, "add_full_attention_sink_bias", false, &sink_full, err));
    rg_hf_find(hf, "attention_value_scale");
    rg_hf_find(hf, "hybrid_block_size");
    rg_hf_find(hf, "sliding_window");
    const rg_node *item = pattern->first;
    for (int64_t i = 0; i < hf->model->layer_count; i++, item = item->next) {
        rg_layer *l = &hf->model->layers[i];
        int64_t slides;
        RG_TRY(rg_node_int(item, 0, 1, &slides, err));
        l->mixer = slides ? RG_MIX_WINDOW : RG_MIX_FULL;
        l->window = slides ? window : 0;
        l->heads = slides ? heads : b->heads;
        l->kv_heads = slides ? kv_heads : b->kv_heads;
        l->head_dim = slides ? dim : b->head_dim;
        l->v_head_dim = slides ? v_dim : v_full;
        l->sink_logits = slides ? sink_window : sink_full;
    }
    return RG_OK;
}

/* Apertus: the activation has two learned scalars. */
static rg_status apertus_sizes(rg_hf *hf, rg_err *err)
{
    (void)err;
    hf->base.ffn_extra = 2;
    return RG_OK;
}

static rg_status olmo_sizes(rg_hf *hf, rg_err *err)
{
    rg_hf_find(hf, "clip_qkv");
    (void)err;
    return RG_OK;
}

/* MiniMax-M2, M2.5: routing bias by key. */
static rg_status minimax_m2_sizes(rg_hf *hf, rg_err *err)
{
    rg_node *kind = rg_hf_find(hf, "qk_norm_type");
    if (kind != NULL && strcmp(kind->text ? kind->text : "", "per_layer") != 0 &&
        hf->base.qk_norm != RG_QK_NORM_NONE)
        return rg_fail(err, RG_ERR_MODEL, kind->pos, "qk_norm_type '%s' is not supported",
                       kind->text ? kind->text : "");
    rg_hf_find(hf, "attn_type_list");
    rg_hf_find(hf, "use_mtp");
    rg_hf_find(hf, "mtp_transformer_layers");
    return RG_OK;
}

#define ATTENTION_BIAS "attention_bias|qkv_bias:no"
#define MLP_BIAS "mlp_bias:no"

const rg_hf_family rg_hf_families[] = {
    {.types =
         "llama|mistral|mistral3|ministral|ministral3|yi|Yi|aquila|xverse|smollm3|llama_moe_dense|"
         "deepseek_llm|internlm3|granite|solar|mistral3_text|pixtral|llava|llava_next|idefics3",
     .architectures = "LlamaForCausalLM|MistralForCausalLM|LLaMAForCausalLM|GraniteForCausalLM|"
                      "YiForCausalLM|AquilaForCausalLM|SmolLM3ForCausalLM",
     .qkv_bias = ATTENTION_BIAS,
     .o_bias = "attention_bias|bias:no",
     .ffn_bias = "mlp_bias|bias:no",
     .window = RG_HF_WINDOW_ALL},
    {.types = "internlm",
     .architectures = "InternLMForCausalLM",
     .qkv_bias = "bias|attention_bias:yes",
     .o_bias = "bias|attention_bias:yes"},
    {.types = "internlm2",
     .architectures = "InternLM2ForCausalLM",
     .qkv_bias = "bias:no",
     .o_bias = "bias:no"},
    {.types = "baichuan", .architectures = "BaichuanForCausalLM|BaiChuanForCausalLM"},
    {.types = "orion", .architectures = "OrionForCausalLM", .norm_bias = true},
    {.types = "minicpm",
     .architectures = "MiniCPMForCausalLM",
     .tied = true,
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no"},
    {.types = "minicpm3", .architectures = "MiniCPM3ForCausalLM", .tied = true, .sizes = mla_sizes},
    {.types = "exaone", .architectures = "ExaoneForCausalLM"},
    {.types = "exaone4",
     .architectures = "Exaone4ForCausalLM",
     .qk_norm = "head",
     .window = RG_HF_WINDOW_TYPES,
     .pattern = 4},
    {.types = "qwen", .architectures = "QWenLMHeadModel", .qkv_bias = "yes", .sizes = qwen1_sizes},
    {.types = "qwen2|qwen2_vl|qwen2_5_vl|qwen2_5_vl_text|qwen2_vl_text|mimo",
     .architectures = "Qwen2ForCausalLM|MiMoForCausalLM",
     .qkv_bias = "attention_bias:yes",
     .window = RG_HF_WINDOW_SWITCHED},
    {.types = "qwen2_moe",
     .architectures = "Qwen2MoeForCausalLM",
     .qkv_bias = "qkv_bias:yes",
     .moe = true,
     .shared_gate = true,
     .window = RG_HF_WINDOW_SWITCHED},
    {.types = "qwen3|qwen3_vl|qwen3_vl_text",
     .architectures = "Qwen3ForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "head",
     .window = RG_HF_WINDOW_SWITCHED},
    {.types = "qwen3_moe|qwen3_vl_moe|qwen3_vl_moe_text|qwen3_omni_moe_text",
     .architectures = "Qwen3MoeForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "head",
     .moe = true,
     .window = RG_HF_WINDOW_SWITCHED},
    {.types = "qwen3_next|qwen3_5|qwen3_5_moe|qwen3_5_text|qwen3_5_moe_text",
     .architectures = "Qwen3NextForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "head",
     .moe = true,
     .shared_gate = true,
     .layers = rg_hf_delta_net_layers},
    {.types = "seed_oss",
     .architectures = "SeedOssForCausalLM",
     .qkv_bias = "attention_bias:yes",
     .o_bias = "attention_out_bias:no",
     .ffn_bias = MLP_BIAS},
    {.types = "hunyuan_v1_dense|hunyuan_v1_moe|hunyuan",
     .architectures = "HunYuanDenseV1ForCausalLM|HunYuanMoEV1ForCausalLM|HunYuanForCausalLM",
     .tied = true,
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "use_qk_norm:yes:head",
     .moe = true,
     .sizes = hunyuan_sizes},
    {.types = "ernie4_5",
     .architectures = "Ernie4_5ForCausalLM",
     .tied = true,
     .qkv_bias = "use_bias:no",
     .o_bias = "use_bias:no",
     .ffn_bias = "use_bias:no"},
    {.types = "ernie4_5_moe",
     .architectures = "Ernie4_5_MoeForCausalLM",
     .tied = true,
     .qkv_bias = "use_bias:no",
     .o_bias = "use_bias:no",
     .ffn_bias = "use_bias:no",
     .moe = true,
     .router_bias = "moe_use_aux_free:yes"},
    {.types = "phi3|phi4|phi4mm", .architectures = "Phi3ForCausalLM", .window = RG_HF_WINDOW_ALL},
    {.types = "phimoe",
     .architectures = "PhiMoEForCausalLM|PhimoeForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .norm_bias = true,
     .moe = true,
     .window = RG_HF_WINDOW_ALL,
     .sizes = phimoe_sizes},
    {.types = "phi|phi-msft|mixformer-sequential",
     .architectures = "PhiForCausalLM|MixFormerSequentialForCausalLM",
     .qkv_bias = "yes",
     .o_bias = "yes",
     .ffn_bias = "yes",
     .plain = true,
     .norms = 1,
     .norm_bias = true,
     .inter_ratio = "4",
     .sizes = head_bias},
    {.types = "stablelm|stablelm_epoch",
     .architectures = "StableLmForCausalLM|StableLMEpochForCausalLM",
     .qkv_bias = "use_qkv_bias:no",
     .qk_norm = "qk_layernorm:no:full",
     .norm_bias = true,
     .sizes = stablelm_sizes},
    {.types = "starcoder2",
     .architectures = "Starcoder2ForCausalLM",
     .tied = true,
     .qkv_bias = "use_bias:yes",
     .o_bias = "use_bias:yes",
     .ffn_bias = "use_bias:yes",
     .plain = true,
     .norm_bias = true,
     .window = RG_HF_WINDOW_ALL},
    {.types = "nemotron",
     .architectures = "NemotronForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .ffn_bias = MLP_BIAS,
     .plain = true,
     .norm_bias = true},
    {.types = "arcee",
     .architectures = "ArceeForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .ffn_bias = MLP_BIAS,
     .plain = true},
    {.types = "apertus",
     .architectures = "ApertusForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "head",
     .plain = true,
     .sizes = apertus_sizes},
    {.types = "gemma",
     .architectures = "GemmaForCausalLM",
     .tied = true,
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no"},
    {.types = "gemma2",
     .architectures = "Gemma2ForCausalLM",
     .tied = true,
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .norms = 4,
     .window = RG_HF_WINDOW_TYPES,
     .pattern = 2},
    {.types = "gemma3_text|gemma3",
     .architectures = "Gemma3ForCausalLM",
     .tied = true,
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "head",
     .norms = 4,
     .window = RG_HF_WINDOW_TYPES,
     .pattern = 6,
     .sizes = gemma3_sizes},
    {.types = "cohere",
     .architectures = "CohereForCausalLM",
     .tied = true,
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "use_qk_norm:no:full",
     .norms = 1},
    {.types = "cohere2",
     .architectures = "Cohere2ForCausalLM",
     .tied = true,
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .norms = 1,
     .window = RG_HF_WINDOW_TYPES,
     .pattern = 4},
    {.types = "olmo",
     .architectures = "OlmoForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .norm_bare = true,
     .sizes = olmo_sizes},
    {.types = "olmo2",
     .architectures = "Olmo2ForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "full"},
    {.types = "olmo3",
     .architectures = "Olmo3ForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "full",
     .window = RG_HF_WINDOW_TYPES,
     .pattern = 4},
    {.types = "olmoe",
     .architectures = "OlmoeForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "full",
     .moe = true},
    {.types = "glm", .architectures = "GlmForCausalLM", .qkv_bias = "attention_bias:yes"},
    {.types = "glm4|glm4v|glm4v_text",
     .architectures = "Glm4ForCausalLM",
     .qkv_bias = "attention_bias:no",
     .norms = 4},
    {.types = "chatglm",
     .architectures = "ChatGLMModel|ChatGLMForConditionalGeneration",
     .qkv_bias = "add_qkv_bias:no",
     .sizes = chatglm_sizes},
    {.types = "glm4_moe|glm4v_moe|glm4v_moe_text",
     .architectures = "Glm4MoeForCausalLM",
     .qkv_bias = "attention_bias:yes",
     .qk_norm = "use_qk_norm:no:head",
     .moe = true,
     .router_bias = "yes"},
    {.types = "deepseek",
     .architectures = "DeepseekForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .moe = true},
    {.types = "deepseek_v2",
     .architectures = "DeepseekV2ForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .moe = true,
     .sizes = deepseek_sizes},
    {.types = "deepseek_v3|deepseek_v32|kimi_k2|kimi_k25|kimi_vl|glm4_moe_lite|glm_moe_dsa",
     .architectures = "DeepseekV3ForCausalLM|Glm4MoeLiteForCausalLM|GlmMoeDsaForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .moe = true,
     .sizes = deepseek_v3_sizes},
    {.types = "dots1",
     .architectures = "Dots1ForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "head",
     .moe = true,
     .router_bias = "yes"},
    {.types = "bailing_moe",
     .architectures = "BailingMoeForCausalLM",
     .qkv_bias = "use_qkv_bias:no",
     .o_bias = "use_bias:no",
     .moe = true},
    {.types = "bailing_moe_v2",
     .architectures = "BailingMoeV2ForCausalLM",
     .qkv_bias = "use_qkv_bias:no",
     .o_bias = "use_bias:no",
     .qk_norm = "use_qk_norm:no:head",
     .moe = true,
     .router_bias = "moe_router_enable_expert_bias:no"},
    {.types = "mixtral",
     .architectures = "MixtralForCausalLM",
     .moe = true,
     .window = RG_HF_WINDOW_ALL},
    {.types = "minimax_m2",
     .architectures = "MiniMaxM2ForCausalLM",
     .qk_norm = "use_qk_norm:yes:full",
     .moe = true,
     .router_bias = "use_routing_bias:yes",
     .sizes = minimax_m2_sizes},
    {.types = "minimax_text_01|minimax_m1|minimax",
     .architectures = "MiniMaxText01ForCausalLM|MiniMaxM1ForCausalLM|MiniMaxForCausalLM",
     .moe = true,
     .layers = rg_hf_lightning_layers},
    {.types = "mimo_v2_flash|mimo_v2",
     .architectures = "MiMoV2FlashForCausalLM",
     .qkv_bias = "attention_bias:no",
     .moe = true,
     .router_bias = "yes",
     .window = RG_HF_WINDOW_IGNORED,
     .layers = mimo2_layers},
    {.types = "gpt_oss",
     .architectures = "GptOssForCausalLM",
     .qkv_bias = "attention_bias:yes",
     .o_bias = "attention_bias:yes",
     .moe = true,
     .router_bias = "yes",
     .window = RG_HF_WINDOW_TYPES,
     .pattern = 2,
     .sizes = gpt_oss_sizes},
    {.types = "llama4_text|llama4",
     .architectures = "Llama4ForCausalLM|Llama4ForConditionalGeneration",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .qk_norm = "use_qk_norm:yes:bare",
     .moe = true,
     .window = RG_HF_WINDOW_IGNORED,
     .sizes = llama4_sizes,
     .layers = llama4_layers},
    {.types = "granitemoe|granitemoeshared",
     .architectures = "GraniteMoeForCausalLM|GraniteMoeSharedForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .moe = true},
    {.types = "granitemoehybrid",
     .architectures = "GraniteMoeHybridForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .moe = true,
     .layers = rg_hf_granite_layers},
    {.types = "dbrx", .architectures = "DbrxForCausalLM", .moe = true, .sizes = dbrx_sizes},
    {.types = "arctic",
     .architectures = "ArcticForCausalLM",
     .moe = true,
     .sizes = arctic_sizes,
     .layers = arctic_layers},
    {.types = "grok-1|grok",
     .architectures = "Grok1ModelForCausalLM|Grok1ForCausalLM",
     .tied = true,
     .norms = 4,
     .moe = true},
    {.types = "gpt2",
     .architectures = "GPT2LMHeadModel",
     .tied = true,
     .qkv_bias = "yes",
     .o_bias = "yes",
     .ffn_bias = "yes",
     .plain = true,
     .norm_bias = true,
     .no_rope = true,
     .positions = true,
     .inter_ratio = "4"},
    {.types = "gpt_neo",
     .architectures = "GPTNeoForCausalLM",
     .tied = true,
     .o_bias = "yes",
     .ffn_bias = "yes",
     .plain = true,
     .norm_bias = true,
     .no_rope = true,
     .positions = true,
     .window = RG_HF_WINDOW_IGNORED,
     .inter_ratio = "4",
     .layers = gpt_neo_layers},
    {.types = "gptj|codegen",
     .architectures = "GPTJForCausalLM|CodeGenForCausalLM",
     .ffn_bias = "yes",
     .plain = true,
     .norms = 1,
     .norm_bias = true,
     .inter_ratio = "4",
     .sizes = head_bias},
    {.types = "gpt_neox",
     .architectures = "GPTNeoXForCausalLM",
     .qkv_bias = "attention_bias:yes",
     .o_bias = "attention_bias:yes",
     .ffn_bias = "yes",
     .plain = true,
     .norm_bias = true},
    {.types = "opt",
     .architectures = "OPTForCausalLM",
     .tied = true,
     .plain = true,
     .norm_bias = true,
     .no_rope = true,
     .positions = true,
     .position_extra = 2,
     .sizes = opt_sizes},
    {.types = "bloom",
     .architectures = "BloomForCausalLM|BloomModel",
     .tied = true,
     .qkv_bias = "yes",
     .o_bias = "yes",
     .ffn_bias = "yes",
     .plain = true,
     .norm_bias = true,
     .no_rope = true,
     .inter_ratio = "4",
     .sizes = bloom_sizes},
    {.types = "falcon|RefinedWeb|RefinedWebModel",
     .architectures = "FalconForCausalLM|RWForCausalLM",
     .tied = true,
     .qkv_bias = "bias:no",
     .o_bias = "bias:no",
     .ffn_bias = "bias:no",
     .plain = true,
     .norm_bias = true,
     .inter_ratio = "4",
     .sizes = falcon_sizes},
    {.types = "mpt",
     .architectures = "MPTForCausalLM|MptForCausalLM",
     .tied = true,
     .plain = true,
     .no_rope = true,
     .inter_ratio = "4",
     .sizes = mpt_sizes},
    {.types = "gpt_bigcode",
     .architectures = "GPTBigCodeForCausalLM",
     .tied = true,
     .qkv_bias = "yes",
     .o_bias = "yes",
     .ffn_bias = "yes",
     .plain = true,
     .norm_bias = true,
     .no_rope = true,
     .positions = true,
     .inter_ratio = "4",
     .sizes = bigcode_sizes},
    {.types = "mamba|falcon_mamba",
     .architectures = "MambaForCausalLM|FalconMambaForCausalLM",
     .tied = true,
     .norms = 1,
     .layers = rg_hf_mamba_layers},
    {.types = "mamba2",
     .architectures = "Mamba2ForCausalLM",
     .norms = 1,
     .layers = rg_hf_mamba_layers},
    {.types = "jamba",
     .architectures = "JambaForCausalLM",
     .no_rope = true,
     .moe = true,
     .layers = rg_hf_jamba_layers},
    {.types = "bamba",
     .architectures = "BambaForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .ffn_bias = MLP_BIAS,
     .layers = rg_hf_bamba_layers},
    {.types = "nemotron_h",
     .architectures = "NemotronHForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .ffn_bias = MLP_BIAS,
     .plain = true,
     .norms = 1,
     .no_rope = true,
     .moe = true,
     .router_bias = "yes",
     .layers = rg_hf_nemotron_h_layers},
    {.types = "nemotron-nas|deci|nemotron_nas",
     .architectures = "DeciLMForCausalLM",
     .qkv_bias = "attention_bias:no",
     .o_bias = "attention_bias:no",
     .ffn_bias = MLP_BIAS,
     .sizes = rg_hf_nas_sizes,
     .layers = rg_hf_nas_layers},
    {.types = NULL},
};

/* Known, and known not to be read rightly. */
static const struct {
    const char *types, *why;
} refused[] = {
    {"deepseek_v4",
     "compressed attention (compress_ratios) and hyper-connections are not modelled"},
    {"kimi_k3|kimi_linear", "its linear attention (KDA, linear_attn_config) is not modelled"},
    {"minimax_m3|minimax_m3_text", "its attention is not modelled"},
    {"gemma4|gemma4_text",
     "two head sizes, K = V on global layers, dense and expert FFN in one layer are not modelled"},
    {"gemma3n|gemma3n_text", "per-layer embeddings and shared caches are not modelled"},
    {"step3p7|step3p5|step3|step3_text|step3_vl",
     "its attention and expert layout are not modelled"},
    {"falcon_h1", "attention and Mamba side by side in one layer are not modelled"},
    {"zamba|zamba2", "blocks shared between layers are not modelled"},
    {"recurrent_gemma", "its recurrent block is not modelled"},
    {"rwkv|rwkv5|rwkv6|rwkv7", "its time-mix recurrence is not modelled"},
    {"lfm2|lfm2_moe|lfm2_vl", "its short convolutions are not modelled"},
    {"hymba|plamo2|openelm", "its layers are not modelled"},
    {"longcat_flash", "zero experts and shortcut layers are not modelled"},
    {"mllama|mllama_text_model", "cross-attention layers are not modelled"},
    {"phi3small", "its block-sparse attention is not modelled"},
    {"t5|mt5|bart|mbart|pegasus|whisper|marian|m2m_100", "encoder-decoder models are not modelled"},
    {"bert|roberta|distilbert|albert|electra|deberta|xlm-roberta|modernbert",
     "encoder models are not modelled"},
    {NULL, NULL},
};

static bool names_have(const char *names, const char *name)
{
    const size_t length = strlen(name);
    while (names != NULL && *names != '\0') {
        const size_t part = strcspn(names, "|");
        if (part == length && memcmp(names, name, part) == 0)
            return true;
        names += part + (names[part] == '|');
    }
    return false;
}

const rg_hf_family *rg_hf_family_find(const char *type)
{
    for (const rg_hf_family *f = rg_hf_families; f->types != NULL; f++)
        if (names_have(f->types, type))
            return f;
    return NULL;
}

const rg_hf_family *rg_hf_family_by_architecture(const char *architecture)
{
    for (const rg_hf_family *f = rg_hf_families; f->types != NULL; f++)
        if (names_have(f->architectures, architecture))
            return f;
    return NULL;
}

const char *rg_hf_refusal(const char *type)
{
    for (int i = 0; refused[i].types != NULL; i++)
        if (names_have(refused[i].types, type))
            return refused[i].why;
    return NULL;
}

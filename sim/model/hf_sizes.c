/* model/hf_sizes.c: what is particular to some families of config.json: sizes under other names,
 * norms and biases by rule, layers of different sizes. */
// SPDX-License-Identifier: Apache-2.0
#include "model/hf_sizes.h"

#include <string.h>

/* Multi-head latent attention when the config has its ranks; head_dim of the config is ignored. The
 * width of values must be given where value_width is 0. */
static rg_status mla_sizes(rg_hf *hf, int64_t value_width, rg_err *err)
{
    rg_layer *l = &hf->base;
    if (rg_hf_find(hf, "kv_lora_rank") == NULL)
        return RG_OK;
    l->mixer = RG_MIX_MLA;
    RG_TRY(rg_hf_int(hf, "kv_lora_rank", 1, &l->kv_lora, err));
    RG_TRY(rg_hf_int_or(hf, "q_lora_rank", 0, 0, &l->q_lora, err));
    RG_TRY(rg_hf_int(hf, "qk_nope_head_dim", 1, &l->nope_dim, err));
    RG_TRY(rg_hf_int(hf, "qk_rope_head_dim", 0, &l->rope_dim, err));
    if (value_width > 0)
        RG_TRY(rg_hf_int_or(hf, "v_head_dim", 1, value_width, &l->v_head_dim, err));
    else
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

rg_status rg_hf_mla_sizes(rg_hf *hf, rg_err *err)
{
    return mla_sizes(hf, 0, err);
}

/* Values have the width of plain heads, which the config does not repeat: openbmb/MiniCPM3-4B,
 * modeling_minicpm.py, MiniCPMAttention. */
rg_status rg_hf_minicpm3_sizes(rg_hf *hf, rg_err *err)
{
    int64_t heads;
    RG_TRY(rg_hf_int(hf, "num_attention_heads", 1, &heads, err));
    return mla_sizes(hf, hf->model->hidden / heads, err);
}

rg_status rg_hf_deepseek_sizes(rg_hf *hf, rg_err *err)
{
    RG_TRY(rg_hf_mla_sizes(hf, err));
    rg_node *method = rg_hf_find(hf, "topk_method");
    if (method != NULL && strcmp(method->text ? method->text : "", "noaux_tc") == 0)
        hf->expert.router_bias = true;
    const bool needs_mla = strncmp(hf->type, "deepseek_v", 10) == 0;
    if (needs_mla && hf->base.mixer != RG_MIX_MLA)
        return rg_hf_missing(hf, "kv_lora_rank", err);
    return RG_OK;
}

rg_status rg_hf_deepseek_v3_sizes(rg_hf *hf, rg_err *err)
{
    hf->expert.router_bias = true;
    return rg_hf_deepseek_sizes(hf, err);
}

/* Qwen (first generation): intermediate_size counts both halves of the gated FFN. */
rg_status rg_hf_qwen1_sizes(rg_hf *hf, rg_err *err)
{
    rg_hf_find(hf, "no_bias|rotary_emb_base|use_dynamic_ntk|use_logn_attn");
    if (hf->base.inter % 2 != 0)
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf), "intermediate_size '%lld' is odd",
                       (long long)hf->base.inter);
    hf->base.inter /= 2;
    return RG_OK;
}

rg_status rg_hf_chatglm_sizes(rg_hf *hf, rg_err *err)
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
rg_status rg_hf_falcon_sizes(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base;
    bool mqa, parallel, grouped, alibi;
    const bool old_40b = strcmp(hf->type, "RefinedWeb") == 0;
    const bool old_7b = strcmp(hf->type, "RefinedWebModel") == 0;
    RG_TRY(rg_hf_bool_or(hf, "new_decoder_architecture", old_40b, &grouped, err));
    RG_TRY(rg_hf_bool_or(hf, "multi_query", !old_40b, &mqa, err));
    RG_TRY(rg_hf_bool_or(hf, "parallel_attn", true, &parallel, err));
    RG_TRY(rg_hf_bool_or(hf, "alibi", false, &alibi, err));
    if (!old_40b && !old_7b &&
        rg_hf_find(hf, "new_decoder_architecture|multi_query|parallel_attn") == NULL)
        return rg_hf_missing(hf, "new_decoder_architecture", err);
    if (grouped)
        RG_TRY(rg_hf_int_noted(hf, "num_kv_heads|n_head_kv|num_key_value_heads", 1, l->heads,
                               &l->kv_heads, err));
    else
        l->kv_heads = mqa ? 1 : l->heads;
    if (l->heads % l->kv_heads != 0)
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf),
                       "'%lld' KV heads do not divide %lld query heads", (long long)l->kv_heads,
                       (long long)l->heads);
    rg_hf_find(hf, "num_kv_heads|n_head_kv|ff_factor");
    RG_TRY(rg_hf_int_or(hf, "num_ln_in_parallel_attn", 1,
                        grouped    ? 2
                        : parallel ? 1
                                   : 2,
                        &l->norms, err));
    if (alibi)
        l->rope_dim = 0;
    return RG_OK;
}

rg_status rg_hf_mpt_sizes(rg_hf *hf, rg_err *err)
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

rg_status rg_hf_dbrx_sizes(rg_hf *hf, rg_err *err)
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

rg_status rg_hf_bigcode_sizes(rg_hf *hf, rg_err *err)
{
    bool mqa;
    RG_TRY(rg_hf_bool_or(hf, "multi_query", true, &mqa, err));
    hf->base.kv_heads = mqa ? 1 : hf->base.heads;
    rg_hf_find(hf, "attention_softmax_in_fp32|runner_max_sequence_length");
    return RG_OK;
}

rg_status rg_hf_opt_sizes(rg_hf *hf, rg_err *err)
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

rg_status rg_hf_bloom_sizes(rg_hf *hf, rg_err *err)
{
    (void)err;
    hf->model->embedding_norm = true;
    rg_hf_find(hf, "skip_bias_add|skip_bias_add_qkv|n_inner|masked_softmax_fusion");
    rg_hf_find(hf, "skip_bias_add_qkv");
    rg_hf_find(hf, "offset_alibi");
    return RG_OK;
}

/* GPT-J, CodeGen and Phi have a bias on the head. */
rg_status rg_hf_head_bias(rg_hf *hf, rg_err *err)
{
    hf->model->head_bias = true;
    bool qk;
    RG_TRY(rg_hf_bool_or(hf, "qk_layernorm", false, &qk, err));
    if (qk) /* LayerNorm with bias over the elements of a head, for Q and for K */
        hf->base.mixer_extra = 4 * hf->base.head_dim;
    return RG_OK;
}

rg_status rg_hf_phimoe_sizes(rg_hf *hf, rg_err *err)
{
    return rg_hf_bool_or(hf, "lm_head_bias", false, &hf->model->head_bias, err);
}

rg_status rg_hf_stablelm_sizes(rg_hf *hf, rg_err *err)
{
    bool parallel;
    RG_TRY(rg_hf_bool_or(hf, "use_parallel_residual", false, &parallel, err));
    hf->base.norms = parallel ? 1 : 2;
    return RG_OK;
}

rg_status rg_hf_gpt_neo_layers(rg_hf *hf, rg_err *err)
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

rg_status rg_hf_gemma3_sizes(rg_hf *hf, rg_err *err)
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
rg_status rg_hf_llama4_sizes(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base, *e = &hf->expert;
    if (e->experts > 0) {
        e->shared_experts = 1;
        e->shared_inter = e->inter;
        RG_TRY(rg_hf_int_or(hf, "intermediate_size_mlp", 1, l->inter, &l->inter, err));
    }
    return RG_OK;
}

rg_status rg_hf_llama4_layers(rg_hf *hf, rg_err *err)
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

rg_status rg_hf_gpt_oss_sizes(rg_hf *hf, rg_err *err)
{
    (void)err;
    hf->base.sink_logits = true;
    hf->expert.ffn_bias = true;
    rg_hf_find(hf, "experts_per_token");
    rg_hf_find(hf, "initial_context_length");
    return RG_OK;
}

/* Ernie 4.5, Hunyuan and Bailing say how wide shared experts are by the expert's width. */
rg_status rg_hf_hunyuan_sizes(rg_hf *hf, rg_err *err)
{
    bool cla;
    RG_TRY(rg_hf_bool_or(hf, "use_cla", false, &cla, err));
    if (cla)
        return rg_fail(err, RG_ERR_MODEL, rg_hf_pos(hf),
                       "field 'use_cla' (layers that share one cache) is not supported");
    rg_hf_find(hf,
               "cla_share_factor|attention_head_dim|use_mixed_mlp_moe|num_shared_expert|moe_topk|"
               "expert_hidden_dim|unified_expert|mlp_bias");
    return RG_OK;
}

/* Arctic: a dense FFN as wide as the hidden size beside the experts, with a norm of its own. */
rg_status rg_hf_arctic_sizes(rg_hf *hf, rg_err *err)
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

rg_status rg_hf_arctic_layers(rg_hf *hf, rg_err *err)
{
    (void)err;
    for (int64_t i = 0; i < hf->model->layer_count; i++)
        if (hf->model->layers[i].ffn == RG_FFN_MOE && hf->expert.shared_inter > 0)
            hf->model->layers[i].norms = 3;
    return RG_OK;
}

/* MiMo-V2: window layers with heads of their own, K and V of different widths, sinks there. */
rg_status rg_hf_mimo2_layers(rg_hf *hf, rg_err *err)
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

/* The config class of Mistral and Mixtral has 8 KV heads where the key is missing. */
rg_status rg_hf_mistral_sizes(rg_hf *hf, rg_err *err)
{
    if (rg_hf_find(hf, "num_key_value_heads") == NULL)
        RG_TRY(rg_hf_int_noted(hf, "num_key_value_heads", 1, 8, &hf->base.kv_heads, err));
    if (hf->base.heads % hf->base.kv_heads != 0)
        return rg_hf_missing(hf, "num_key_value_heads", err);
    return RG_OK;
}

/* Apertus: the activation has two learned scalars. */
rg_status rg_hf_apertus_sizes(rg_hf *hf, rg_err *err)
{
    bool qk, behind;
    hf->base.ffn_extra = 2;
    RG_TRY(rg_hf_bool_or(hf, "qk_norm", true, &qk, err));
    RG_TRY(rg_hf_bool_or(hf, "post_norm", false, &behind, err));
    hf->base.qk_norm = qk ? RG_QK_NORM_HEAD : RG_QK_NORM_NONE;
    return RG_OK;
}

rg_status rg_hf_olmo_sizes(rg_hf *hf, rg_err *err)
{
    rg_hf_find(hf, "clip_qkv");
    (void)err;
    return RG_OK;
}

/* MiniMax-M2, M2.5: routing bias by key. */
rg_status rg_hf_minimax_m2_sizes(rg_hf *hf, rg_err *err)
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

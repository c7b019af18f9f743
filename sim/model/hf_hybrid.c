/* model/hf_hybrid.c: layers of Mamba, Jamba, Bamba, Granite 4, Nemotron-H, Qwen3-Next, MiniMax-01
 * and of models pruned block by block. */
// SPDX-License-Identifier: Apache-2.0
#include "model/hf_hybrid.h"

#include <math.h>
#include <string.h>

/* Drop attention fields; what follows fills the state-space ones. */
static void clear_mixer(rg_layer *l, rg_mixer mixer)
{
    l->mixer = mixer;
    l->heads = l->kv_heads = l->head_dim = l->v_head_dim = l->rope_dim = l->window = 0;
    l->qkv_bias = l->o_bias = l->output_gate = l->sink_logits = false;
    l->qk_norm = RG_QK_NORM_NONE;
    l->mixer_extra = 0;
}

static void clear_ffn(rg_layer *l)
{
    const rg_layer none = {0};
    rg_hf_copy_ffn(l, &none);
}

/* An integer that may be the word "auto", which stands for fallback. */
static rg_status int_or_auto(rg_hf *hf, const char *keys, int64_t fallback, int64_t *out,
                             rg_err *err)
{
    rg_node *node = rg_hf_find(hf, keys);
    if (node != NULL && node->text != NULL && strcmp(node->text, "auto") == 0) {
        *out = fallback;
        return RG_OK;
    }
    return rg_hf_int_noted(hf, keys, 1, fallback, out, err);
}

static rg_status read_mamba1(rg_hf *hf, rg_layer *l, rg_err *err)
{
    const int64_t hidden = hf->model->hidden;
    int64_t expand;
    bool bias, conv_bias;
    clear_mixer(l, RG_MIX_MAMBA1);
    RG_TRY(rg_hf_int_noted(hf, "expand|mamba_expand", 1, 2, &expand, err));
    int64_t inner = expand * hidden;
    if (strcmp(hf->type, "jamba") != 0)
        RG_TRY(rg_hf_int_or(hf, "intermediate_size|d_inner", 1, inner, &inner, err));
    l->ssm_heads = inner;
    l->ssm_head_dim = 1;
    RG_TRY(rg_hf_int_noted(hf, "state_size|mamba_d_state", 1, 16, &l->ssm_state, err));
    RG_TRY(rg_hf_int_noted(hf, "conv_kernel|mamba_d_conv", 1, 4, &l->ssm_conv, err));
    RG_TRY(
        int_or_auto(hf, "time_step_rank|mamba_dt_rank", (hidden + 15) / 16, &l->ssm_dt_rank, err));
    RG_TRY(rg_hf_bool_or(hf, "use_bias|mamba_proj_bias", false, &bias, err));
    RG_TRY(rg_hf_bool_or(hf, "use_conv_bias|mamba_conv_bias", true, &conv_bias, err));
    l->ssm_groups = 1;
    l->ssm_bias = bias;
    RG_TRY(rg_hf_bool_or(hf, "mamba_inner_layernorms", strcmp(hf->type, "jamba") == 0, &l->ssm_norm,
                         err));
    if (!conv_bias)
        l->mixer_extra -= inner;
    return RG_OK;
}

static rg_status read_mamba2(rg_hf *hf, rg_layer *l, const char *heads_keys, const char *dim_keys,
                             rg_err *err)
{
    const int64_t hidden = hf->model->hidden;
    bool bias, conv_bias;
    int64_t expand;
    clear_mixer(l, RG_MIX_MAMBA2);
    RG_TRY(rg_hf_int(hf, heads_keys, 1, &l->ssm_heads, err));
    RG_TRY(rg_hf_int_or(hf, "expand|mamba_expand", 1, 2, &expand, err));
    RG_TRY(int_or_auto(hf, dim_keys, expand * hidden / l->ssm_heads, &l->ssm_head_dim, err));
    RG_TRY(rg_hf_int(hf, "ssm_state_size|mamba_d_state|state_size", 1, &l->ssm_state, err));
    RG_TRY(rg_hf_int_noted(hf, "n_groups|mamba_n_groups", 1, 1, &l->ssm_groups, err));
    RG_TRY(rg_hf_int_noted(hf, "conv_kernel|mamba_d_conv", 1, 4, &l->ssm_conv, err));
    RG_TRY(rg_hf_bool_or(hf, "mamba_proj_bias|use_bias", false, &bias, err));
    RG_TRY(rg_hf_bool_or(hf, "use_conv_bias|mamba_conv_bias", true, &conv_bias, err));
    l->ssm_bias = bias;
    l->ssm_norm = true;
    if (!conv_bias)
        l->mixer_extra -= l->ssm_heads * l->ssm_head_dim + 2 * l->ssm_groups * l->ssm_state;
    rg_hf_find(hf,
               "time_step_rank|mamba_chunk_size|mamba_num_heads|mamba_hidden_act|mamba_dt_rank");
    return RG_OK;
}

rg_status rg_hf_mamba_layers(rg_hf *hf, rg_err *err)
{
    rg_model *m = hf->model;
    rg_layer layer = hf->base;
    rg_node *old = rg_hf_find(hf, "ssm_cfg");
    bool second = strcmp(hf->type, "mamba2") == 0;
    if (old != NULL && old->kind == RG_NODE_MAP) {
        rg_node *kind = rg_hf_find_in(old, "layer");
        second =
            second || (kind != NULL && kind->text != NULL && strcmp(kind->text, "Mamba2") == 0);
        rg_node *attn = rg_hf_find(hf, "attn_layer_idx");
        if (attn != NULL && attn->count > 0)
            return rg_fail(err, RG_ERR_MODEL, attn->pos, "field 'attn_layer_idx' is not supported");
    }
    if (second && old != NULL)
        return rg_fail(err, RG_ERR_MODEL, old->pos,
                       "ssm_cfg of Mamba-2 is not read; use the transformers form of the config");
    /* The old form gives the vocabulary before it is padded to a multiple. */
    int64_t multiple;
    RG_TRY(rg_hf_int_or(hf, "pad_vocab_size_multiple", 1, 1, &multiple, err));
    if (old != NULL && m->vocab % multiple != 0) {
        m->vocab += multiple - m->vocab % multiple;
        rg_hf_note(hf, "vocabulary padded to %lld", (long long)m->vocab);
    }
    if (second)
        RG_TRY(read_mamba2(hf, &layer, "num_heads", "head_dim", err));
    else
        RG_TRY(read_mamba1(hf, &layer, err));
    clear_ffn(&layer);
    layer.norms = 1;
    for (int64_t i = 0; i < m->layer_count; i++)
        m->layers[i] = layer;
    return RG_OK;
}

static void set_mixer(rg_layer *l, const rg_layer *from)
{
    rg_layer copy = *from;
    rg_hf_copy_ffn(&copy, l);
    copy.norms = l->norms;
    *l = copy;
}

rg_status rg_hf_jamba_layers(rg_hf *hf, rg_err *err)
{
    int64_t period, offset, experts_period;
    rg_layer mamba = hf->base;
    RG_TRY(rg_hf_int_noted(hf, "attn_layer_period", 1, 8, &period, err));
    RG_TRY(rg_hf_int_noted(hf, "attn_layer_offset", 0, 4, &offset, err));
    if (hf->expert.experts > 0)
        RG_TRY(rg_hf_int(hf, "expert_layer_period", 1, &experts_period, err));
    RG_TRY(read_mamba1(hf, &mamba, err));
    for (int64_t i = 0; i < hf->model->layer_count; i++)
        if (i % period != offset % period)
            set_mixer(&hf->model->layers[i], &mamba);
    return RG_OK;
}

rg_status rg_hf_bamba_layers(rg_hf *hf, rg_err *err)
{
    rg_layer mamba = hf->base;
    rg_node *list = rg_hf_find(hf, "attn_layer_indices");
    RG_TRY(read_mamba2(hf, &mamba, "mamba_n_heads", "mamba_d_head", err));
    for (int64_t i = 0; i < hf->model->layer_count; i++) {
        bool attends = false;
        for (const rg_node *item = list != NULL ? list->first : NULL; item; item = item->next) {
            int64_t index;
            RG_TRY(rg_node_int(item, 0, hf->model->layer_count - 1, &index, err));
            attends = attends || index == i;
        }
        if (!attends)
            set_mixer(&hf->model->layers[i], &mamba);
    }
    return RG_OK;
}

rg_status rg_hf_granite_layers(rg_hf *hf, rg_err *err)
{
    rg_model *m = hf->model;
    rg_node *types;
    RG_TRY(rg_hf_layer_list(hf, "layer_types|layers_block_type", &types, err));
    if (types == NULL)
        return rg_hf_missing(hf, "layer_types", err);
    rg_layer mamba = hf->base;
    bool read = false;
    int64_t shared;
    rg_hf_find(hf,
               "mamba_n_heads|mamba_d_head|mamba_n_groups|mamba_d_state|mamba_d_conv|mamba_expand|"
               "mamba_conv_bias|mamba_proj_bias|mamba_chunk_size"); /* also where no layer is one */
    RG_TRY(rg_hf_int_or(hf, "shared_intermediate_size", 0, 0, &shared, err));
    rg_layer *l = m->layers;
    for (const rg_node *item = types->first; item != NULL; item = item->next, l++) {
        const char *name;
        RG_TRY(rg_node_text(item, &name, err));
        if (hf->expert.experts == 0 && shared > 0)
            l->inter = shared; /* without experts the shared FFN is the only one */
        if (strcmp(name, "attention") == 0 || strcmp(name, "full_attention") == 0)
            continue;
        if (strcmp(name, "mamba") != 0)
            return rg_fail(err, RG_ERR_MODEL, item->pos, "layer type '%s' is not supported", name);
        if (!read)
            RG_TRY(read_mamba2(hf, &mamba, "mamba_n_heads", "mamba_d_head", err));
        read = true;
        set_mixer(l, &mamba);
    }
    return RG_OK;
}

/* One layer is a mixer or an FFN, by letter: M Mamba-2, * attention, - dense, E experts. */
static rg_status nemotron_h_layer(rg_hf *hf, char kind, rg_pos at, const rg_layer *mamba,
                                  rg_layer *l, rg_err *err)
{
    *l = hf->base;
    switch (kind) {
    case 'M':
        *l = *mamba;
        clear_ffn(l);
        return RG_OK;
    case '*':
        clear_ffn(l);
        return l->heads > 0 ? RG_OK : rg_hf_missing(hf, "num_attention_heads", err);
    case '-':
        clear_mixer(l, RG_MIX_NONE);
        return RG_OK;
    case 'E':
        clear_mixer(l, RG_MIX_NONE);
        rg_hf_copy_ffn(l, &hf->expert);
        return hf->expert.experts > 0
                   ? RG_OK
                   : rg_fail(err, RG_ERR_INPUT, at, "expert layers but no n_routed_experts");
    default:
        return rg_fail(err, RG_ERR_MODEL, at, "layer kind '%c' is not one of M, *, -, E", kind);
    }
}

static char block_letter(const char *name)
{
    static const char *const names[] = {"mamba", "attention", "mlp", "moe"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return "M*-E"[i];
    return '?';
}

rg_status rg_hf_nemotron_h_layers(rg_hf *hf, rg_err *err)
{
    rg_model *m = hf->model;
    rg_layer mamba = hf->base;
    rg_node *pattern = rg_hf_find(hf, "hybrid_override_pattern");
    rg_node *list;
    RG_TRY(rg_hf_layer_list(hf, "layers_block_type", &list, err));
    RG_TRY(read_mamba2(hf, &mamba, "mamba_num_heads", "mamba_head_dim", err));
    rg_hf_find(hf, "mtp_hybrid_override_pattern");
    if (pattern == NULL && list == NULL)
        return rg_hf_missing(hf, "hybrid_override_pattern", err);
    const char *letters = pattern != NULL ? pattern->text : NULL;
    if (list == NULL && (letters == NULL || (int64_t)strlen(letters) != m->layer_count))
        return rg_fail(err, RG_ERR_INPUT, pattern->pos,
                       "'hybrid_override_pattern' has %lld letters for %lld layers",
                       (long long)(letters ? strlen(letters) : 0), (long long)m->layer_count);
    const rg_node *item = list != NULL ? list->first : NULL;
    for (int64_t i = 0; i < m->layer_count; i++) {
        char kind = letters != NULL ? letters[i] : '?';
        const rg_pos at = item != NULL ? item->pos : pattern != NULL ? pattern->pos : rg_hf_pos(hf);
        if (item != NULL) {
            const char *name;
            RG_TRY(rg_node_text(item, &name, err));
            kind = block_letter(name);
        }
        RG_TRY(nemotron_h_layer(hf, kind, at, &mamba, &m->layers[i], err));
        item = item != NULL ? item->next : NULL;
    }
    return RG_OK;
}

/* Qwen3-Next and Qwen3.5: gated delta net, and every few layers full attention with a gate. */
rg_status rg_hf_delta_net_layers(rg_hf *hf, rg_err *err)
{
    rg_model *m = hf->model;
    rg_node *types;
    int64_t interval;
    bool gate;
    rg_layer linear = hf->base;
    clear_mixer(&linear, RG_MIX_LINEAR);
    RG_TRY(rg_hf_layer_list(hf, "layer_types", &types, err));
    RG_TRY(rg_hf_int_or(hf, "full_attention_interval", 1, 4, &interval, err));
    RG_TRY(rg_hf_bool_or(hf, "attn_output_gate", true, &gate, err));
    RG_TRY(rg_hf_int(hf, "linear_num_value_heads", 1, &linear.ssm_heads, err));
    RG_TRY(rg_hf_int(hf, "linear_value_head_dim", 1, &linear.ssm_head_dim, err));
    RG_TRY(rg_hf_int(hf, "linear_num_key_heads", 1, &linear.ssm_groups, err));
    RG_TRY(rg_hf_int(hf, "linear_key_head_dim", 1, &linear.ssm_state, err));
    RG_TRY(rg_hf_int(hf, "linear_conv_kernel_dim", 1, &linear.ssm_conv, err));
    linear.ssm_gates = 2;
    linear.ssm_norm = true;
    const rg_node *item = types != NULL ? types->first : NULL;
    for (int64_t i = 0; i < m->layer_count; i++) {
        bool full = (i + 1) % interval == 0;
        if (item != NULL) {
            const char *name;
            RG_TRY(rg_node_text(item, &name, err));
            full = strcmp(name, "full_attention") == 0;
            if (!full && strcmp(name, "linear_attention") != 0)
                return rg_fail(err, RG_ERR_MODEL, item->pos, "layer type '%s' is not supported",
                               name);
            item = item->next;
        }
        if (full)
            m->layers[i].output_gate = gate;
        else
            set_mixer(&m->layers[i], &linear);
    }
    return RG_OK;
}

/* MiniMax-01 (arXiv 2501.08313): lightning attention with an output gate and a norm over all heads.
 */
rg_status rg_hf_lightning_layers(rg_hf *hf, rg_err *err)
{
    rg_model *m = hf->model;
    rg_node *types;
    rg_layer linear = hf->base;
    const int64_t heads = linear.heads, dim = linear.head_dim;
    clear_mixer(&linear, RG_MIX_LINEAR);
    linear.ssm_heads = linear.ssm_groups = heads;
    linear.ssm_head_dim = linear.ssm_state = dim;
    linear.mixer_extra = heads * dim;
    RG_TRY(rg_hf_layer_list(hf, "attn_type_list|layer_types", &types, err));
    if (types == NULL)
        return rg_hf_missing(hf, "attn_type_list", err);
    rg_layer *l = m->layers;
    for (const rg_node *item = types->first; item != NULL; item = item->next, l++) {
        const char *name;
        RG_TRY(rg_node_expect(item, RG_NODE_SCALAR, "a layer type", err));
        name = item->text;
        if (strcmp(name, "0") == 0 || strcmp(name, "linear_attention") == 0)
            set_mixer(l, &linear);
        else if (strcmp(name, "1") != 0 && strcmp(name, "full_attention") != 0)
            return rg_fail(err, RG_ERR_MODEL, item->pos, "layer type '%s' is not supported", name);
    }
    rg_hf_find(hf, "postnorm|block|block_size");
    return RG_OK;
}

/* Nemotron-NAS: what a block keeps is told block by block, so shared sizes may be null. */
rg_status rg_hf_nas_sizes(rg_hf *hf, rg_err *err)
{
    if (rg_hf_find(hf, "block_configs|num_key_value_heads_per_layer") == NULL)
        return rg_hf_missing(hf, "block_configs", err);
    return RG_OK;
}

/* DeciLM-7B: only the KV heads differ between layers. */
static rg_status kv_heads_by_layer(rg_hf *hf, rg_node *list, rg_err *err)
{
    rg_layer *l = hf->model->layers;
    for (const rg_node *item = list->first; item != NULL; item = item->next, l++) {
        RG_TRY(rg_node_int(item, 1, l->heads > 0 ? l->heads : 1, &l->kv_heads, err));
        if (l->heads % l->kv_heads != 0)
            return rg_fail(err, RG_ERR_INPUT, item->pos, "'%s' KV heads do not divide %lld",
                           item->text, (long long)l->heads);
    }
    return RG_OK;
}

static rg_status part_flag(rg_node *part, const char *key, bool *out, rg_err *err)
{
    rg_node *node = rg_hf_find_in(part, key);
    *out = false;
    return node == NULL ? RG_OK : rg_node_bool(node, out, err);
}

/* Newer searches put other mixers and experts into a block as maps of their own. */
static rg_status nothing_else(const rg_node *part, rg_err *err)
{
    for (const rg_node *node = part->first; node != NULL; node = node->next)
        if (!node->used && node->kind == RG_NODE_MAP && node->count > 0)
            return rg_fail(err, RG_ERR_MODEL, node->key_pos,
                           "field '%s' in block_configs is not supported", node->key);
    return RG_OK;
}

static rg_status nas_attention(rg_hf *hf, rg_node *part, rg_layer *l, rg_err *err)
{
    bool none, linear;
    RG_TRY(part_flag(part, "no_op", &none, err));
    RG_TRY(part_flag(part, "replace_with_linear", &linear, err));
    rg_node *window = rg_hf_find_in(part, "window_length|sparsify|num_sink_tokens");
    if (window != NULL)
        return rg_fail(err, RG_ERR_MODEL, window->pos,
                       "field '%s' in block_configs is not supported", window->key);
    RG_TRY(nothing_else(part, err));
    if (none || linear) {
        const bool bias = l->o_bias;
        clear_mixer(l, RG_MIX_NONE);
        l->norms -= none;
        if (linear)
            l->mixer_extra = hf->model->hidden * (hf->model->hidden + (bias ? 1 : 0));
        return RG_OK;
    }
    rg_node *group = rg_hf_find_in(part, "n_heads_in_group");
    rg_node *kv_heads = rg_hf_find_in(part, "num_key_value_heads");
    if (group == NULL && kv_heads != NULL) {
        RG_TRY(rg_node_int(kv_heads, 1, l->heads, &l->kv_heads, err));
        return l->heads % l->kv_heads == 0 ? RG_OK
                                           : rg_fail(err, RG_ERR_INPUT, kv_heads->pos,
                                                     "'%s' KV heads do not divide %lld query heads",
                                                     kv_heads->text, (long long)l->heads);
    }
    if (group == NULL)
        return rg_fail(err, RG_ERR_INPUT, part->pos, "missing key 'n_heads_in_group'");
    int64_t size;
    RG_TRY(rg_node_int(group, 1, l->heads, &size, err));
    if (l->heads % size != 0)
        return rg_fail(err, RG_ERR_INPUT, group->pos,
                       "groups of '%lld' do not divide %lld query heads", (long long)size,
                       (long long)l->heads);
    l->kv_heads = l->heads / size;
    return RG_OK;
}

static rg_status nas_ffn(rg_hf *hf, rg_node *part, rg_layer *l, rg_err *err)
{
    bool none, linear;
    RG_TRY(part_flag(part, "no_op", &none, err));
    RG_TRY(part_flag(part, "replace_with_linear", &linear, err));
    rg_node *gated = rg_hf_find_in(part, "gated");
    if (gated != NULL)
        RG_TRY(rg_node_bool(gated, &l->gated, err));
    RG_TRY(nothing_else(part, err));
    if (none || linear) {
        const bool bias = l->ffn_bias;
        clear_ffn(l);
        l->norms -= none;
        if (linear)
            l->ffn_extra = hf->model->hidden * (hf->model->hidden + (bias ? 1 : 0));
        return RG_OK;
    }
    rg_node *width = rg_hf_find_in(part, "intermediate_size");
    if (width != NULL)
        return rg_node_int(width, 1, 1 << 30, &l->inter, err);
    rg_node *mult = rg_hf_find_in(part, "ffn_mult");
    if (mult == NULL)
        return rg_fail(err, RG_ERR_INPUT, part->pos, "missing key 'ffn_mult'");
    double times;
    RG_TRY(rg_node_real(mult, false, &times, err));
    if (!(times > 0 && times < 1024))
        return rg_fail(err, RG_ERR_INPUT, mult->pos, "ffn_mult '%s' is out of range", mult->text);
    /* two thirds of 2 x mult x hidden, up to the next multiple of 256 */
    const int64_t raw = (int64_t)(2.0 * times * (double)hf->model->hidden / 3.0);
    l->inter = (raw + 255) / 256 * 256;
    return RG_OK;
}

rg_status rg_hf_nas_layers(rg_hf *hf, rg_err *err)
{
    rg_node *blocks, *kv_heads;
    RG_TRY(rg_hf_layer_list(hf, "block_configs", &blocks, err));
    RG_TRY(rg_hf_layer_list(hf, "num_key_value_heads_per_layer", &kv_heads, err));
    if (blocks == NULL && kv_heads != NULL)
        return kv_heads_by_layer(hf, kv_heads, err);
    if (blocks == NULL)
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf), "'block_configs' is empty");
    if (hf->base.heads == 0)
        return rg_hf_missing(hf, "num_attention_heads", err);
    rg_layer *l = hf->model->layers;
    for (rg_node *block = blocks->first; block != NULL; block = block->next, l++) {
        rg_node *attention, *ffn;
        RG_TRY(rg_node_expect(block, RG_NODE_MAP, "a block", err));
        RG_TRY(rg_map_get(block, "attention", &attention, err));
        RG_TRY(rg_map_get(block, "ffn", &ffn, err));
        RG_TRY(rg_node_expect(attention, RG_NODE_MAP, "attention", err));
        RG_TRY(rg_node_expect(ffn, RG_NODE_MAP, "ffn", err));
        RG_TRY(nas_attention(hf, attention, l, err));
        RG_TRY(nas_ffn(hf, ffn, l, err));
    }
    return RG_OK;
}

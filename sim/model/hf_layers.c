/* model/hf_layers.c: which layer is what: windows and experts. */
// SPDX-License-Identifier: Apache-2.0
#include "model/hf.h"

#include <string.h>

#include "core/text.h"

enum { MAX_SIZE = 1 << 30 };

rg_status rg_hf_uniform(rg_node *node, int64_t least, int64_t *out, rg_err *err)
{
    if (node->kind == RG_NODE_SCALAR)
        return rg_node_int(node, least, MAX_SIZE, out, err);
    RG_TRY(rg_node_expect(node, RG_NODE_LIST, node->key ? node->key : "value", err));
    if (node->first == NULL)
        return rg_fail(err, RG_ERR_INPUT, node->pos, "list '%s' is empty", node->key);
    RG_TRY(rg_node_int(node->first, least, MAX_SIZE, out, err));
    for (const rg_node *item = node->first->next; item != NULL; item = item->next) {
        int64_t value;
        RG_TRY(rg_node_int(item, least, MAX_SIZE, &value, err));
        if (value != *out)
            return rg_fail(err, RG_ERR_MODEL, item->pos,
                           "'%s' differs between layers (%lld and %lld), which is not supported",
                           node->key, (long long)*out, (long long)value);
    }
    return RG_OK;
}

rg_status rg_hf_layer_list(rg_hf *hf, const char *keys, rg_node **out, rg_err *err)
{
    rg_node *list = rg_hf_find(hf, keys);
    *out = NULL;
    if (list == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, list->key, err));
    if (list->count == 0) /* written by some tools for "not used" */
        return RG_OK;
    if ((int64_t)list->count != hf->model->layer_count)
        return rg_fail(err, RG_ERR_INPUT, list->pos, "'%s' has %lld entries for %lld layers",
                       list->key, (long long)list->count, (long long)hf->model->layer_count);
    *out = list;
    return RG_OK;
}

void rg_hf_copy_ffn(rg_layer *to, const rg_layer *from)
{
    to->ffn = from->ffn;
    to->gated = from->gated;
    to->ffn_bias = from->ffn_bias;
    to->inter = from->inter;
    to->experts = from->experts;
    to->top_k = from->top_k;
    to->shared_experts = from->shared_experts;
    to->shared_inter = from->shared_inter;
    to->shared_gate = from->shared_gate;
    to->router_bias = from->router_bias;
    to->latent = from->latent;
    to->ffn_extra = from->ffn_extra;
}

rg_status rg_hf_experts(rg_hf *hf, rg_err *err)
{
    rg_layer *e = &hf->expert;
    rg_node *node = rg_hf_find(hf, "num_local_experts|num_experts|n_routed_experts|"
                                   "moe_num_experts|num_routed_experts");
    if (node == NULL)
        return RG_OK;
    RG_TRY(rg_hf_uniform(node, 0, &e->experts, err));
    if (e->experts <= 1) { /* dense: what is said of experts means nothing */
        e->experts = 0;
        rg_hf_find(hf, "num_experts_per_tok|moe_intermediate_size|expert_layer_period|"
                       "expert_layer_offset|decoder_sparse_step|mlp_only_layers|n_shared_experts");
        return RG_OK;
    }
    e->ffn = RG_FFN_MOE;
    e->gated = hf->base.gated;
    e->ffn_bias = hf->base.ffn_bias;
    node = rg_hf_find(hf, "num_experts_per_tok|num_experts_per_token|moe_k|moe_topk|moe_top_k|"
                          "experts_per_token|top_k_experts|num_selected_experts");
    if (node == NULL)
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf),
                       "missing key 'num_experts_per_tok' beside %lld experts",
                       (long long)e->experts);
    RG_TRY(rg_hf_uniform(node, 1, &e->top_k, err));
    if (e->top_k > e->experts)
        return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' of %lld experts, but there are %lld",
                       node->key, (long long)e->top_k, (long long)e->experts);
    e->inter = hf->base.inter;
    node = rg_hf_find(hf, "moe_intermediate_size|expert_ffn_hidden_size|moe_ffn_hidden_size");
    if (node != NULL)
        RG_TRY(rg_hf_uniform(node, 1, &e->inter, err));

    node = rg_hf_find(hf, "n_shared_experts|num_shared_experts|moe_num_shared_experts|"
                          "num_shared_expert");
    if (node != NULL)
        RG_TRY(rg_hf_uniform(node, 0, &e->shared_experts, err));
    rg_node *width = rg_hf_find(hf, "moe_shared_expert_intermediate_size|"
                                    "shared_expert_intermediate_size|shared_intermediate_size");
    if (width != NULL) {
        RG_TRY(rg_hf_uniform(width, 0, &e->shared_inter, err));
        if (node == NULL)
            e->shared_experts = e->shared_inter > 0;
        e->shared_inter *= e->shared_experts;
    } else {
        e->shared_inter = e->shared_experts * e->inter;
    }
    e->shared_gate = hf->family->shared_gate && e->shared_inter > 0;
    RG_TRY(rg_hf_int_or(hf, "moe_latent_size", 1, 0, &e->latent, err));
    return rg_hf_flag(hf, hf->family->router_bias, &e->router_bias, err);
}

/* What the config says of the layers that hold experts; absent keys hold for every layer. */
typedef struct placement {
    int64_t first, last, step, step_offset; /* (i + step_offset) % step == 0 */
    rg_node *dense_list, *expert_list;      /* indices */
    rg_node *flags;                         /* one a layer, 0 = dense */
    rg_node *types;                         /* one a layer, "dense" or "sparse" */
} placement;

static rg_status read_placement(rg_hf *hf, placement *p, rg_err *err)
{
    *p = (placement){.last = INT64_MAX, .step = 1};
    RG_TRY(rg_hf_int_or(hf, "first_k_dense_replace|moe_layer_start_index|moe_layer_num_skipped", 0,
                        0, &p->first, err));
    rg_node *end = rg_hf_find(hf, "moe_layer_end_index");
    if (end != NULL) {
        RG_TRY(rg_node_int(end, -1, MAX_SIZE, &p->last, err));
        if (p->last < 0)
            p->last = INT64_MAX;
    }
    rg_node *freq = rg_hf_find(hf, "moe_layer_freq");
    if (freq != NULL && freq->kind == RG_NODE_LIST)
        RG_TRY(rg_hf_layer_list(hf, "moe_layer_freq", &p->flags, err));
    else if (freq != NULL)
        RG_TRY(rg_node_int(freq, 1, MAX_SIZE, &p->step, err));
    rg_node *next = rg_hf_find(hf, "decoder_sparse_step|interleave_moe_layer_step|"
                                   "moe_layer_interval|moe_layer_frequency");
    if (next != NULL) {
        RG_TRY(rg_node_int(next, 0, MAX_SIZE, &p->step, err));
        p->step_offset = 1;
        if (p->step == 0) { /* no layer is sparse */
            p->step = 1;
            p->first = INT64_MAX;
        }
    }
    rg_node *period = rg_hf_find(hf, "expert_layer_period");
    if (period != NULL) {
        int64_t offset;
        RG_TRY(rg_node_int(period, 1, MAX_SIZE, &p->step, err));
        RG_TRY(rg_hf_int(hf, "expert_layer_offset", 0, &offset, err));
        p->step_offset = p->step - offset % p->step;
    }
    RG_TRY(rg_hf_layer_list(hf, "mlp_layer_types", &p->types, err));
    p->dense_list = rg_hf_find(hf, "mlp_only_layers");
    p->expert_list = rg_hf_find(hf, "moe_layers");
    if (p->expert_list != NULL && p->expert_list->kind == RG_NODE_LIST) {
        if (p->expert_list->count == 0)
            p->expert_list = NULL;
        else
            p->step = 1;
    }
    return RG_OK;
}

static rg_status list_has(const rg_node *list, int64_t index, bool *has, rg_err *err)
{
    *has = false;
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, list->key, err));
    for (const rg_node *item = list->first; item != NULL; item = item->next) {
        int64_t value;
        RG_TRY(rg_node_int(item, 0, MAX_SIZE, &value, err));
        *has = *has || value == index;
    }
    return RG_OK;
}

static rg_status place_experts(rg_hf *hf, rg_err *err)
{
    placement p;
    RG_TRY(read_placement(hf, &p, err));
    const rg_node *flag = p.flags != NULL ? p.flags->first : NULL;
    const rg_node *type = p.types != NULL ? p.types->first : NULL;
    for (int64_t i = 0; i < hf->model->layer_count; i++) {
        bool sparse = i >= p.first && i <= p.last && (i + p.step_offset) % p.step == 0;
        bool has;
        if (p.dense_list != NULL) {
            RG_TRY(list_has(p.dense_list, i, &has, err));
            sparse = sparse && !has;
        }
        if (p.expert_list != NULL) {
            RG_TRY(list_has(p.expert_list, i, &has, err));
            sparse = has;
        }
        if (flag != NULL) {
            int64_t value;
            RG_TRY(rg_node_int(flag, 0, 1, &value, err));
            sparse = value != 0;
            flag = flag->next;
        }
        if (type != NULL) {
            static const char *const names[] = {"dense", "sparse", NULL};
            int index;
            RG_TRY(rg_node_choice(type, names, &index, err));
            sparse = index == 1;
            type = type->next;
        }
        if (sparse)
            rg_hf_copy_ffn(&hf->model->layers[i], &hf->expert);
    }
    return RG_OK;
}

static void make_window(rg_layer *l, rg_mixer kind, int64_t window)
{
    l->mixer = kind;
    l->window = window;
}

#define PATTERN_KEYS "sliding_window_pattern|_sliding_window_pattern|layer_switch"

/* Full layers by a pattern: a number n (every n-th is full) or letters, L for a window. */
static rg_status window_by_pattern(rg_hf *hf, int64_t window, rg_err *err)
{
    rg_node *node = rg_hf_find(hf, PATTERN_KEYS);
    int64_t every = hf->family->pattern;
    const char *letters = NULL;
    if (node != NULL && (node->text == NULL || !rg_text_to_int(node->text, &every)))
        RG_TRY(rg_node_text(node, &letters, err));
    if (letters != NULL && letters[strspn(letters, "LG")] != '\0')
        return rg_fail(err, RG_ERR_INPUT, node->pos,
                       "'%s' is not a pattern; write a number or letters L and G", letters);
    if (node != NULL && letters == NULL && every < 1)
        return rg_fail(err, RG_ERR_INPUT, node->pos, "pattern '%s' is below 1", node->text);
    for (int64_t i = 0; i < hf->model->layer_count; i++) {
        const bool full = letters != NULL && letters[0] != '\0'
                              ? letters[(size_t)i % strlen(letters)] == 'G'
                              : every > 0 && (i + 1) % every == 0;
        if (!full)
            make_window(&hf->model->layers[i], RG_MIX_WINDOW, window);
    }
    return RG_OK;
}

static rg_status window_by_types(rg_hf *hf, rg_node *types, int64_t window, rg_err *err)
{
    rg_layer *l = hf->model->layers;
    for (rg_node *item = types->first; item != NULL; item = item->next, l++) {
        const char *name;
        RG_TRY(rg_node_text(item, &name, err));
        const bool slides = strcmp(name, "sliding_attention") == 0;
        const bool chunks = strcmp(name, "chunked_attention") == 0;
        if (slides || chunks) {
            if (window > 0)
                make_window(l, chunks ? RG_MIX_CHUNKED : RG_MIX_WINDOW, window);
        } else if (strcmp(name, "full_attention") != 0 && hf->family->layers == NULL) {
            return rg_fail(err, RG_ERR_MODEL, item->pos,
                           "layer type '%s' is not supported in model_type '%s'", name, hf->type);
        }
    }
    return RG_OK;
}

/* The width of the window, 0 when windows are off. */
static rg_status window_width(rg_hf *hf, int64_t *out, rg_err *err)
{
    *out = 0;
    rg_node *node = rg_hf_find(hf, "sliding_window|sliding_window_size|window_size");
    bool on;
    RG_TRY(rg_hf_bool_or(hf, "use_sliding_window", hf->family->window != RG_HF_WINDOW_SWITCHED, &on,
                         err));
    if (node == NULL || !on || hf->family->window == RG_HF_WINDOW_IGNORED)
        return RG_OK;
    int64_t window;
    RG_TRY(rg_node_int(node, 0, MAX_SIZE, &window, err));
    if (hf->model->max_positions > 0 && window >= hf->model->max_positions) {
        rg_hf_note(hf, "%s %lld is not below the context of %lld: no window", node->key,
                   (long long)window, (long long)hf->model->max_positions);
        window = 0;
    }
    *out = window;
    return RG_OK;
}

static rg_status place_windows(rg_hf *hf, rg_err *err)
{
    rg_node *types;
    RG_TRY(rg_hf_layer_list(hf, "layer_types", &types, err));
    int64_t window;
    RG_TRY(window_width(hf, &window, err));
    rg_hf_find(hf, PATTERN_KEYS); /* known, also where layer_types says it */
    if (types != NULL)
        return window_by_types(hf, types, window, err);
    if (window == 0)
        return RG_OK;
    int64_t from = 0;
    switch (hf->family->window) {
    case RG_HF_WINDOW_SWITCHED:
        RG_TRY(rg_hf_int_or(hf, "max_window_layers", 0, 0, &from, err));
        break;
    case RG_HF_WINDOW_ALL:
        break;
    default:
        return window_by_pattern(hf, window, err);
    }
    for (int64_t i = from; i < hf->model->layer_count; i++)
        make_window(&hf->model->layers[i], RG_MIX_WINDOW, window);
    return RG_OK;
}

rg_status rg_hf_lay_out(rg_hf *hf, rg_err *err)
{
    for (int64_t i = 0; i < hf->model->layer_count; i++)
        hf->model->layers[i] = hf->base;
    if (hf->expert.experts > 0)
        RG_TRY(place_experts(hf, err));
    return place_windows(hf, err);
}

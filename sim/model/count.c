/* model/count.c: parameters, KV and state of a model, from its layers. */
// SPDX-License-Identifier: Apache-2.0
#include "model/spec.h"

#include <math.h>
#include <string.h>

#include "core/text.h"

static const char *const mixer_names[] = {"none",   "full",   "window", "chunked", "mla",
                                          "linear", "mamba1", "mamba2", NULL};
static const char *const ffn_names[] = {"none", "dense", "moe", NULL};
static const char *const qk_norm_names[] = {"none", "head", "full", "bare", NULL};
static const char *const layout_names[] = {"ideal",      "window_capped", "uniform_page",
                                           "mla_latent", "mla_expanded",  NULL};

const char *rg_mixer_name(rg_mixer mixer)
{
    return mixer_names[mixer];
}

const char *rg_ffn_name(rg_ffn ffn)
{
    return ffn_names[ffn];
}

const char *rg_qk_norm_name(rg_qk_norm norm)
{
    return qk_norm_names[norm];
}

const char *rg_kv_layout_name(rg_kv_layout layout)
{
    return layout_names[layout];
}

rg_status rg_kv_layout_parse(const char *name, rg_kv_layout *out, rg_err *err)
{
    for (int i = 0; layout_names[i] != NULL; i++) {
        if (strcmp(name, layout_names[i]) == 0) {
            *out = (rg_kv_layout)i;
            return RG_OK;
        }
    }
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                   "KV layout '%s' is not known; one of ideal, window_capped, uniform_page, "
                   "mla_latent, mla_expanded",
                   name);
}

/* Widths of a state-space or linear layer. */
typedef struct ssm_widths {
    int64_t inner, conv, project_in, scalars;
} ssm_widths;

static ssm_widths ssm_widths_of(const rg_layer *l)
{
    ssm_widths w = {.inner = l->ssm_heads * l->ssm_head_dim};
    const int64_t shared = l->ssm_groups * l->ssm_state;
    switch (l->mixer) {
    case RG_MIX_MAMBA1: /* x and z; dt, B, C come from x */
        w.conv = w.inner;
        w.project_in = 2 * w.inner;
        break;
    case RG_MIX_MAMBA2: /* z, x, B, C and dt in one product */
        w.conv = w.inner + 2 * shared;
        w.project_in = w.inner + w.conv + l->ssm_heads;
        w.scalars = 3 * l->ssm_heads; /* A, D, dt bias */
        break;
    case RG_MIX_LINEAR: /* q, k, v, output gate, scalar gates */
        w.conv = l->ssm_conv > 0 ? w.inner + 2 * shared : 0;
        w.project_in = 2 * w.inner + 2 * shared + l->ssm_gates * l->ssm_heads;
        w.scalars = l->ssm_gates > 0 ? 2 * l->ssm_heads : 0; /* A, dt bias */
        break;
    default:
        break;
    }
    return w;
}

static int64_t qk_norm_params(const rg_layer *l)
{
    switch (l->qk_norm) {
    case RG_QK_NORM_HEAD:
        return l->kv_shared ? l->head_dim : 2 * l->head_dim;
    case RG_QK_NORM_FULL:
        return l->heads * l->head_dim + (l->kv_shared ? 0 : l->kv_heads * l->head_dim);
    default:
        return 0;
    }
}

static int64_t attention_params(const rg_layer *l, int64_t hidden)
{
    const int64_t q = l->heads * l->head_dim * (l->output_gate ? 2 : 1);
    const int64_t kv = l->kv_shared ? 0 : l->kv_heads * (l->head_dim + rg_layer_v_dim(l));
    const int64_t o = l->heads * rg_layer_v_dim(l);
    return hidden * (q + kv + o) + (l->qkv_bias ? q + kv : 0) + (l->o_bias ? hidden : 0) +
           qk_norm_params(l) + (l->sink_logits ? l->heads : 0);
}

/* DeepSeek-V2 paper (arXiv 2405.04434), section 2.1: down and up projections of Q and of K, V, with
 * a norm on each latent. The indexer is DeepSeek-V3.2's. */
static int64_t mla_params(const rg_layer *l, int64_t hidden)
{
    const int64_t rope = l->rope_dim, v = rg_layer_v_dim(l);
    const int64_t q_width = l->heads * (l->nope_dim + rope);
    int64_t sum =
        l->q_lora > 0 ? hidden * l->q_lora + l->q_lora + l->q_lora * q_width : hidden * q_width;
    sum += hidden * (l->kv_lora + rope) + l->kv_lora;
    sum += l->kv_lora * l->heads * (l->nope_dim + v);
    sum += l->heads * v * hidden;
    if (l->qkv_bias)
        sum += l->q_lora + l->kv_lora + rope;
    if (l->o_bias)
        sum += hidden;
    if (l->index_heads > 0)
        sum += l->q_lora * l->index_heads * l->index_dim + hidden * l->index_dim +
               2 * l->index_dim + hidden * l->index_heads;
    return sum;
}

/* Mamba (arXiv 2312.00752) as its reference code lays it out; Mamba-2 (arXiv 2405.21060); gated
 * delta net as in Qwen3-Next. */
static int64_t ssm_params(const rg_layer *l, int64_t hidden)
{
    const ssm_widths w = ssm_widths_of(l);
    int64_t sum = hidden * w.project_in + w.inner * hidden + w.scalars;
    if (l->ssm_bias)
        sum += w.project_in + hidden;
    if (l->mixer == RG_MIX_MAMBA1) {
        const int64_t dt = l->ssm_dt_rank, state = l->ssm_state;
        sum += w.inner * l->ssm_conv + w.inner; /* convolution with bias */
        sum += w.inner * (dt + 2 * state);      /* dt, B, C */
        sum += dt * w.inner + w.inner;          /* dt up, with bias */
        sum += w.inner * state + w.inner;       /* A, D */
        sum += l->ssm_norm ? dt + 2 * state : 0;
    } else if (l->mixer == RG_MIX_MAMBA2) {
        sum += w.conv * l->ssm_conv + w.conv;
        sum += l->ssm_norm ? w.inner : 0;
    } else {
        sum += w.conv * l->ssm_conv;
        sum += l->ssm_norm ? l->ssm_head_dim : 0;
    }
    return sum;
}

static void count_layer(rg_layer *l, int64_t hidden)
{
    int64_t mixer = l->mixer_extra;
    if (l->mixer == RG_MIX_MLA)
        mixer += mla_params(l, hidden);
    else if (rg_layer_has_state(l))
        mixer += ssm_params(l, hidden);
    else if (l->mixer != RG_MIX_NONE)
        mixer += attention_params(l, hidden);
    l->mixer_params = mixer;

    const int64_t matrices = l->gated ? 3 : 2, ups = matrices - 1;
    int64_t all = l->ffn_extra, idle = 0;
    if (l->ffn == RG_FFN_DENSE) {
        all += matrices * hidden * l->inter + (l->ffn_bias ? ups * l->inter + hidden : 0);
    } else if (l->ffn == RG_FFN_MOE) {
        const int64_t width = l->latent > 0 ? l->latent : hidden;
        const int64_t one =
            matrices * width * l->inter + (l->ffn_bias ? ups * l->inter + width : 0);
        all += l->experts * one + l->experts * hidden + (l->router_bias ? l->experts : 0);
        all += matrices * hidden * l->shared_inter + (l->shared_gate ? hidden : 0);
        all += l->latent > 0 ? 2 * hidden * l->latent : 0;
        idle = (l->experts - l->top_k) * one;
    }
    l->ffn_params = all;
    l->ffn_active_params = all - idle;
    l->norm_params = l->norm_bare ? 0 : l->norms * hidden * (l->norm_bias ? 2 : 1);
}

/* Products of sizes are bounded by the readers (each below 2^31, layers below 2^16), but their
 * products with layers are not: count in double beside, and refuse what an int64_t cannot hold. */
static bool layer_overflows(const rg_layer *l, double hidden)
{
    const double width = (double)l->heads * (double)(l->head_dim + l->v_head_dim + l->nope_dim +
                                                     l->rope_dim + l->kv_lora) +
                         (double)l->kv_heads * (double)(l->head_dim + l->v_head_dim) +
                         (double)l->ssm_heads * (double)(l->ssm_head_dim + 4) +
                         (double)l->ssm_groups * (double)l->ssm_state +
                         (double)l->index_heads * (double)l->index_dim;
    const double lora =
        (double)(l->q_lora + l->kv_lora + l->ssm_dt_rank + l->ssm_conv + l->ssm_state + 8);
    const double ffn =
        (double)(l->experts + 1) * (double)(l->inter + l->latent + 1) + (double)l->shared_inter;
    return (hidden + lora) * width * 8 + ffn * (hidden + (double)l->latent) * 8 > 1e17;
}

/* What readers have said already with a better place, and what no reader may let through. */
static const char *contradiction(const rg_layer *l)
{
    const bool attends = l->mixer >= RG_MIX_FULL && l->mixer <= RG_MIX_MLA;
    if (attends && (l->heads < 1 || l->kv_heads < 1 || l->heads % l->kv_heads != 0))
        return "KV heads do not divide query heads";
    if (rg_layer_has_state(l) &&
        (l->ssm_heads < 1 || (l->ssm_groups > 0 && l->ssm_heads % l->ssm_groups != 0)))
        return "groups do not divide state-space heads";
    if (l->ffn == RG_FFN_MOE && (l->experts < 1 || l->top_k < 1 || l->top_k > l->experts))
        return "top_k does not lie between 1 and the number of experts";
    if ((l->mixer == RG_MIX_WINDOW || l->mixer == RG_MIX_CHUNKED) && l->window < 1)
        return "a window layer has no window";
    return NULL;
}

static void find_equal(rg_model *m)
{
    for (int64_t i = 0; i < m->layer_count; i++) {
        m->layers[i].same_as = i;
        for (int64_t j = i - 1; j >= 0 && m->layers[i].same_as == i; j--)
            if (rg_layer_equal(&m->layers[m->layers[j].same_as], &m->layers[i]))
                m->layers[i].same_as = m->layers[j].same_as;
    }
}

rg_status rg_model_count(rg_model *m, rg_err *err)
{
    double total = 0;
    for (int64_t i = 0; i < m->layer_count; i++) {
        rg_layer *l = &m->layers[i];
        const char *wrong = contradiction(l);
        if (wrong != NULL)
            return rg_fail(err, RG_ERR_MODEL, (rg_pos){m->path, 0, 0}, "layer %lld: %s",
                           (long long)i, wrong);
        if (layer_overflows(l, (double)m->hidden))
            return rg_fail(err, RG_ERR_MODEL, (rg_pos){m->path, 0, 0},
                           "layer %lld has more than 1e17 parameters; a size is wrong",
                           (long long)i);
        count_layer(l, m->hidden);
        if (l->mixer_params < 0 || l->ffn_params < 0 || l->ffn_active_params < 0)
            return rg_fail(err, RG_ERR_MODEL, (rg_pos){m->path, 0, 0},
                           "layer %lld has fewer than no parameters; an extra_params is wrong",
                           (long long)i);
        total += (double)(l->mixer_params + l->ffn_params + l->norm_params);
    }
    const int64_t width = m->embedding_width > 0 ? m->embedding_width : m->hidden;
    const bool norm_bias = m->layer_count > 0 && m->layers[0].norm_bias;
    const bool bare = m->layer_count > 0 && m->layers[0].norm_bare;
    const int64_t norm = bare ? 0 : m->hidden * (norm_bias ? 2 : 1);
    m->embedding_params = m->vocab * width;
    m->head_params = (m->tied_embeddings ? 0 : m->vocab * width) + (m->head_bias ? m->vocab : 0);
    m->other_params = m->position_rows * m->hidden + (m->embedding_norm ? norm : 0) +
                      (m->final_norm ? norm : 0) + m->extra_params +
                      (m->embedding_width > 0 ? 2 * width * m->hidden : 0);
    const double outer =
        (double)m->embedding_params + (double)m->head_params + (double)m->other_params;
    if (total + outer > 4e18)
        return rg_fail(err, RG_ERR_MODEL, (rg_pos){m->path, 0, 0},
                       "the model has more than 4e18 parameters; a size is wrong");
    int64_t sum = 0, used = 0;
    for (int64_t i = 0; i < m->layer_count; i++) {
        const rg_layer *l = &m->layers[i];
        sum += l->mixer_params + l->ffn_params + l->norm_params;
        used += l->mixer_params + l->ffn_active_params + l->norm_params;
    }
    const int64_t rest = m->embedding_params + m->head_params + m->other_params;
    m->parameters_total = sum + rest;
    m->parameters_active = used + rest;
    find_equal(m);
    m->active_convention = "all parameters but those of routed experts that a token does not "
                           "choose; input embedding and LM head counted";
    return RG_OK;
}

int64_t rg_model_active_without_embedding(const rg_model *m)
{
    return m->parameters_active - (m->tied_embeddings ? 0 : m->embedding_params);
}

int64_t rg_layer_kv_elements(const rg_layer *l, bool expanded)
{
    if (!rg_layer_has_kv(l))
        return 0;
    if (l->mixer == RG_MIX_MLA && !expanded)
        return l->kv_lora + l->rope_dim;
    if (l->mixer == RG_MIX_MLA)
        return l->heads * (l->nope_dim + l->rope_dim + rg_layer_v_dim(l));
    return l->kv_heads * (l->head_dim + rg_layer_v_dim(l));
}

int64_t rg_layer_index_bytes(const rg_layer *l)
{
    return l->index_heads > 0 ? l->index_dim + 4 : 0;
}

int64_t rg_layer_state_elements(const rg_layer *l)
{
    if (!rg_layer_has_state(l))
        return 0;
    return l->ssm_heads * l->ssm_head_dim * l->ssm_state;
}

int64_t rg_layer_conv_elements(const rg_layer *l)
{
    if (!rg_layer_has_state(l) || l->ssm_conv < 2)
        return 0;
    return ssm_widths_of(l).conv * (l->ssm_conv - 1);
}

rg_bytes rg_model_kv_bytes_per_token(const rg_model *m, const rg_format *kv, bool expanded)
{
    double elements = 0;
    for (int64_t i = 0; i < m->layer_count; i++)
        elements += (double)rg_layer_kv_elements(&m->layers[i], expanded);
    return rg_format_bytes(kv, elements);
}

rg_bytes rg_model_kv_bytes(const rg_model *m, const rg_format *kv, rg_kv_layout layout,
                           double context, int64_t page_tokens)
{
    const bool expanded = layout == RG_KV_MLA_EXPANDED;
    const bool paged = layout == RG_KV_WINDOW_CAPPED || layout == RG_KV_UNIFORM_PAGE;
    const double page = page_tokens > 0 ? (double)page_tokens : 1.0;
    double elements = 0, index = 0;
    for (int64_t i = 0; i < m->layer_count; i++) {
        const rg_layer *l = &m->layers[i];
        double tokens = context;
        if (l->window > 0 && layout != RG_KV_UNIFORM_PAGE)
            tokens = fmin(tokens, (double)l->window);
        if (paged)
            tokens = ceil(tokens / page) * page;
        elements += tokens * (double)rg_layer_kv_elements(l, expanded);
        index += tokens * (double)rg_layer_index_bytes(l);
    }
    return RG_B(rg_format_bytes(kv, elements).v + index);
}

/* model/shard.c: what one rank of an arrangement holds, and whether the arrangement is possible. */
// SPDX-License-Identifier: Apache-2.0
#include "model/pass_plan.h"

#include <math.h>
#include <string.h>

static rg_status refuse(rg_err *err, const rg_model *m, const char *what, int64_t size,
                        const char *by, int64_t parts)
{
    return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                   "%s: %lld %s do not divide by %s %lld, and engines refuse that", m->name,
                   (long long)size, what, by, (long long)parts);
}

static rg_status check_layer(const rg_model *m, const rg_layer *l, const rg_split *s, rg_err *err)
{
    const int64_t tp = s->attention_tp;
    const bool attends = l->mixer >= RG_MIX_FULL && l->mixer <= RG_MIX_MLA;
    if (attends && l->heads % tp != 0)
        return refuse(err, m, "query heads", l->heads, "tensor parallelism", tp);
    if (attends && l->mixer != RG_MIX_MLA && l->kv_heads % tp != 0 && tp % l->kv_heads != 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%s: %lld KV heads and tensor parallelism %lld: one must divide the other",
                       m->name, (long long)l->kv_heads, (long long)tp);
    if (rg_layer_has_state(l) && l->ssm_heads % tp != 0)
        return refuse(err, m, "state-space heads", l->ssm_heads, "tensor parallelism", tp);
    if (rg_layer_has_state(l) && l->ssm_groups > 1 && l->ssm_groups % tp != 0 &&
        tp % l->ssm_groups != 0)
        return refuse(err, m, "state-space groups", l->ssm_groups, "tensor parallelism", tp);
    if (l->ffn == RG_FFN_DENSE && l->inter % s->tp != 0)
        return refuse(err, m, "FFN columns", l->inter, "tensor parallelism", s->tp);
    if (l->ffn != RG_FFN_MOE)
        return RG_OK;
    if ((l->experts + s->expert_replicas) % s->ep != 0)
        return refuse(err, m, "experts", l->experts, "expert parallelism", s->ep);
    if (l->inter % s->expert_tp != 0)
        return refuse(err, m, "columns of an expert", l->inter, "tensor parallelism", s->expert_tp);
    if (l->shared_inter > 0 && s->attention_groups == 1 && l->shared_inter % s->tp != 0)
        return refuse(err, m, "columns of the shared expert", l->shared_inter, "tensor parallelism",
                      s->tp);
    return RG_OK;
}

rg_status rg_shard_check(const rg_model *m, const rg_shard *shard, rg_err *err)
{
    const rg_split s = rg_split_of(m, shard);
    if (shard->tp < 0 || shard->attention_tp < 0 || shard->ep < 0 || shard->expert_tp < 0 ||
        shard->cp < 0 || shard->ep_groups < 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "a number of ranks is negative");
    if (s.first < 0 || s.count < 1 || s.first + s.count > m->layer_count)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%s has %lld layers; layers %lld to %lld are asked for", m->name,
                       (long long)m->layer_count, (long long)s.first,
                       (long long)(s.first + s.count - 1));
    if (s.tp % s.attention_tp != 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "attention over %lld ranks does not divide the %lld of the tp group",
                       (long long)s.attention_tp, (long long)s.tp);
    bool experts = false;
    for (int64_t i = s.first; i < s.first + s.count; i++) {
        RG_TRY(check_layer(m, &m->layers[i], &s, err));
        experts = experts || m->layers[i].ffn == RG_FFN_MOE;
    }
    for (int64_t i = 0; i < m->layer_count && !experts; i++)
        experts = m->layers[i].ffn == RG_FFN_MOE;
    if (s.ep > 1 && !experts)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%s has no experts, so expert parallelism %lld means nothing", m->name,
                       (long long)s.ep);
    return RG_OK;
}

typedef struct weight_sum {
    const rg_model *model;
    const rg_formats *formats;
    bool embedding; /* the rank holds the embedding */
    double bytes;
} weight_sum;

static void add_weight(void *context, const rg_template *t)
{
    weight_sum *w = context;
    const rg_format *format = &w->formats->head;
    if (t->kind == RG_TEMPLATE_GEMM) {
        format = &t->op.u.gemm.weight;
        if (t->rows == RG_ROWS_LOGITS && w->model->tied_embeddings && w->embedding &&
            t->op.name[0] == 'l')
            return; /* the head is the embedding */
    } else if (t->kind == RG_TEMPLATE_MOE) {
        format = &t->op.u.moe.weight;
    }
    w->bytes += (double)t->op.count * rg_format_bytes(format, t->stored).v;
}

rg_bytes rg_shard_weight_bytes(const rg_model *m, const rg_formats *f, const rg_shard *shard)
{
    weight_sum sum = {.model = m, .formats = f, .embedding = shard->embedding};
    const rg_template_sink sink = {add_weight, &sum};
    rg_templates_emit(m, f, shard, &sink);
    if (shard->head) { /* final norm, bias of the head, and the like */
        const double tables = (double)m->position_rows * (double)m->hidden +
                              2.0 * (double)m->embedding_width * (double)m->hidden;
        const double rest =
            (double)m->other_params - tables + (m->head_bias ? (double)m->vocab : 0);
        sum.bytes += rg_format_bytes(&f->head, rest).v;
    }
    return RG_B(sum.bytes);
}

static double kv_elements(const rg_layer *l, const rg_split *s, bool expanded)
{
    if (!rg_layer_has_kv(l))
        return 0;
    if (l->mixer == RG_MIX_MLA && !expanded)
        return (double)(l->kv_lora + l->rope_dim);
    const int64_t width = l->mixer == RG_MIX_MLA ? l->nope_dim + l->rope_dim + rg_layer_v_dim(l)
                                                 : l->head_dim + rg_layer_v_dim(l);
    return (double)(rg_split_kv_heads(l, s->attention_tp) * width);
}

rg_bytes rg_shard_kv_bytes_in(const rg_model *m, const rg_formats *f, const rg_shard *shard,
                              rg_kv_layout layout, double context)
{
    const rg_split s = rg_split_of(m, shard);
    const bool paged = layout == RG_KV_WINDOW_CAPPED || layout == RG_KV_UNIFORM_PAGE;
    const double page = f->page_tokens > 0 ? (double)f->page_tokens : 1.0;
    double elements = 0, index = 0;
    for (int64_t i = s.first; i < s.first + s.count; i++) {
        const rg_layer *l = &m->layers[i];
        double tokens = context;
        if (l->window > 0 && layout != RG_KV_UNIFORM_PAGE)
            tokens = fmin(tokens, (double)l->window);
        tokens /= (double)s.cp;
        if (paged)
            tokens = ceil(tokens / page) * page;
        elements += tokens * kv_elements(l, &s, layout == RG_KV_MLA_EXPANDED);
        index += tokens * (double)rg_layer_index_bytes(l);
    }
    return RG_B(rg_format_bytes(&f->kv, elements).v + index);
}

rg_bytes rg_shard_kv_bytes(const rg_model *m, const rg_formats *f, const rg_shard *shard,
                           double context)
{
    return rg_shard_kv_bytes_in(m, f, shard, f->kv_layout, context);
}

rg_bytes rg_shard_state_bytes(const rg_model *m, const rg_shard *shard)
{
    const rg_split s = rg_split_of(m, shard);
    rg_dtype type = RG_BF16;
    if (m->state_type != NULL)
        rg_dtype_parse(m->state_type, RG_NOWHERE, &type, NULL);
    double bytes = 0;
    for (int64_t i = s.first; i < s.first + s.count; i++) {
        const rg_layer *l = &m->layers[i];
        bytes += (double)rg_layer_state_elements(l) * rg_dtype_bits(type) / 8.0 +
                 (double)rg_layer_conv_elements(l) * 2.0;
    }
    return RG_B(bytes / (double)s.attention_tp);
}

rg_bytes rg_shard_activation_bytes(const rg_model *m, const rg_formats *f, const rg_shard *shard,
                                   int64_t tokens, int64_t logit_rows)
{
    const rg_split s = rg_split_of(m, shard);
    const double act = rg_dtype_bits(f->act) / 8.0, h = (double)m->hidden;
    double widest = 0;
    for (int64_t i = s.first; i < s.first + s.count; i++) {
        const rg_layer *l = &m->layers[i];
        const double tp = (double)s.attention_tp;
        double mixer = 0, ffn = 0;
        if (l->mixer == RG_MIX_MLA)
            mixer =
                (double)(l->heads * (2 * l->nope_dim + 2 * l->rope_dim + 2 * rg_layer_v_dim(l))) /
                    tp +
                (double)(l->q_lora + l->kv_lora + l->rope_dim);
        else if (rg_layer_has_state(l))
            mixer =
                (double)(3 * l->ssm_heads * l->ssm_head_dim + 4 * l->ssm_groups * l->ssm_state) /
                tp;
        else
            mixer = (double)((l->heads + l->kv_heads) * (l->head_dim + rg_layer_v_dim(l))) / tp;
        const double ups = l->gated ? 2 : 1;
        if (l->ffn == RG_FFN_DENSE)
            ffn = (ups + 1) * (double)l->inter / (double)s.tp;
        else if (l->ffn == RG_FFN_MOE)
            ffn = (double)l->top_k / (double)s.ep * (double)s.ep_groups *
                      (2 * (double)(l->latent > 0 ? l->latent : m->hidden) +
                       (ups + 1) * (double)l->inter / (double)s.expert_tp) +
                  (ups + 1) * (double)l->shared_inter / (double)s.tp;
        widest = fmax(widest, fmax(mixer, ffn));
    }
    const double logits = s.head ? (double)logit_rows * (double)rg_ceil_div(m->vocab, s.tp) * 4 : 0;
    return RG_B((double)tokens / (double)s.cp * (2 * h + widest) * act + logits);
}

static rg_status format_or(const char *name, const char *fallback, rg_format *out, rg_err *err)
{
    return rg_format_parse(name != NULL ? name : fallback, RG_NOWHERE, out, err);
}

rg_status rg_formats_choose(const rg_model *m, const char *weight, const char *kv, const char *act,
                            rg_formats *out, rg_err *err)
{
    /* engines load a checkpoint of 32 bit in 16 */
    const char *plain = m->dtype != NULL && strcmp(m->dtype, "fp32") != 0 ? m->dtype : "bf16";
    *out = (rg_formats){.act = RG_BF16, .fused_attention = true};
    if (act != NULL)
        RG_TRY(rg_dtype_parse(act, RG_NOWHERE, &out->act, err));
    else if (strcmp(plain, "fp16") == 0)
        out->act = RG_FP16;
    RG_TRY(format_or(weight != NULL ? weight : m->quantisation, plain, &out->weight, err));
    RG_TRY(format_or(m->head_quantisation, plain, &out->head, err));
    RG_TRY(format_or(kv != NULL ? kv : m->kv_quantisation, "bf16", &out->kv, err));
    if (weight == NULL && m->expert_quantisation != NULL)
        RG_TRY(rg_format_parse(m->expert_quantisation, RG_NOWHERE, &out->expert, err));
    if (weight == NULL && m->mixer_quantisation != NULL)
        RG_TRY(rg_format_parse(m->mixer_quantisation, RG_NOWHERE, &out->mixer, err));
    const rg_format *w = &out->weight;
    out->math = w->weight_only || rg_dtype_bits(w->math) >= 16 ? out->act : w->math;
    if (weight == NULL && m->quantisation != NULL && m->activation_quantisation != NULL)
        RG_TRY(rg_dtype_parse(m->activation_quantisation, RG_NOWHERE, &out->math, err));
    return RG_OK;
}

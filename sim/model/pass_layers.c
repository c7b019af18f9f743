/* model/pass_layers.c: the operators of each kind of layer, as templates. */
// SPDX-License-Identifier: Apache-2.0
#include "model/pass_plan.h"

#include <string.h>

typedef struct builder {
    const rg_model *model;
    const rg_formats *formats;
    const rg_template_sink *sink;
    rg_split split;
    const rg_layer *layer;
    int64_t count;   /* of equal layers */
    double whole;    /* matrix elements of the layer so far, unsplit */
    double act;      /* bytes of an activation */
    rg_dtype scores; /* product type of attention */
} builder;

const rg_format *rg_formats_expert(const rg_formats *f)
{
    return f->expert.name[0] != 0 ? &f->expert : &f->weight;
}

const rg_format *rg_formats_mixer(const rg_formats *f)
{
    return f->mixer.name[0] != 0 ? &f->mixer : &f->weight;
}

/* Product type of a layer in this format. */
static rg_dtype math_of(const builder *b, const rg_format *format)
{
    if (format->name[0] != 0 && strcmp(format->name, b->formats->weight.name) == 0)
        return b->formats->math;
    if (format->weight_only || rg_dtype_bits(format->math) >= 16)
        return b->formats->act;
    return format->math;
}

static rg_template blank(const builder *b, rg_template_kind kind, rg_op_kind op, const char *name,
                         rg_rows rows)
{
    return (rg_template){
        .kind = kind, .rows = rows, .op = {.name = name, .kind = op, .count = b->count}};
}

static void emit(builder *b, const rg_template *t)
{
    b->whole += t->whole;
    b->sink->take(b->sink->context, t);
}

/* Y[rows, n] = X[rows, k] W[n, k]; parts: ranks over which W is split. */
static void gemm(builder *b, const char *name, rg_rows rows, int64_t n, int64_t k, int64_t batch,
                 const rg_format *format, double whole, bool copy)
{
    rg_template t = blank(b, RG_TEMPLATE_GEMM, RG_OP_GEMM, name, rows);
    t.op.u.gemm.n = n;
    t.op.u.gemm.k = k;
    t.op.u.gemm.batch = batch;
    t.op.u.gemm.weight = *format;
    t.op.u.gemm.math = math_of(b, format);
    t.op.u.gemm.act = b->formats->act;
    t.copy = copy;
    t.stored = copy ? 0 : (double)n * (double)k * (double)batch;
    t.whole = copy ? 0 : whole;
    emit(b, &t);
}

static void stream(builder *b, const char *name, rg_rows rows, double read, double write,
                   double flops, int64_t kernels)
{
    rg_template t = blank(b, RG_TEMPLATE_STREAM, RG_OP_STREAM, name, rows);
    t.op.u.stream.kernels = kernels;
    t.row_read = read * b->act;
    t.row_write = write * b->act;
    t.row_flops = flops;
    emit(b, &t);
}

/* Norms with the residual sum before them: two vectors in, two out; norms behind a sublayer
 * (Gemma 2) one in, one out. Without a norm of its own a sublayer still adds to the residual. */
static void norms(builder *b)
{
    const double h = (double)b->model->hidden;
    const int64_t count = b->count, n = b->layer->norms;
    const int64_t parts = (b->layer->mixer != RG_MIX_NONE) + (b->layer->ffn != RG_FFN_NONE);
    const int64_t fused = n < parts ? n : parts;
    b->count = count * fused;
    if (fused > 0)
        stream(b, "residual_norm", RG_ROWS_ATTENTION, 2 * h, 2 * h, 4 * h, 1);
    b->count = count * (n - fused);
    if (n > fused)
        stream(b, "norm", RG_ROWS_ATTENTION, h, h, 3 * h, 1);
    b->count = count * (parts - fused);
    if (parts > fused)
        stream(b, "residual_add", RG_ROWS_ATTENTION, 2 * h, h, h, 1);
    b->count = count;
}

static void attention(builder *b)
{
    const rg_layer *l = b->layer;
    const rg_split *s = &b->split;
    const rg_format *w = rg_formats_mixer(b->formats);
    const int64_t h = b->model->hidden, v = rg_layer_v_dim(l);
    const int64_t heads = rg_ceil_div(l->heads, s->attention_tp);
    const int64_t kv = rg_split_kv_heads(l, s->attention_tp);
    const int64_t q_width = heads * l->head_dim * (l->output_gate ? 2 : 1);
    const int64_t kv_width = l->kv_shared ? 0 : kv * (l->head_dim + v);
    const double whole_in =
        (double)h * ((double)l->heads * (double)(l->head_dim * (l->output_gate ? 2 : 1)) +
                     (l->kv_shared ? 0.0 : (double)l->kv_heads * (double)(l->head_dim + v)));
    gemm(b, "qkv_proj", RG_ROWS_ATTENTION, q_width + kv_width, h, 1, w, whole_in, false);
    const double qk = (double)((heads + (l->kv_shared ? 0 : kv)) * l->head_dim);
    if (l->qk_norm != RG_QK_NORM_NONE)
        stream(b, "qk_norm", RG_ROWS_ATTENTION, qk, qk, 3 * qk, 1);
    if (l->rope_dim > 0)
        stream(b, "rope", RG_ROWS_ATTENTION, qk, qk, 3 * qk, 1);

    rg_template t =
        blank(b, RG_TEMPLATE_ATTENTION, RG_OP_ATTN_PREFILL, "attention", RG_ROWS_ATTENTION);
    t.op.u.attention.heads = heads;
    t.op.u.attention.kv_heads = kv;
    t.op.u.attention.head_dim = l->head_dim;
    t.op.u.attention.v_head_dim = v;
    t.op.u.attention.window = l->window;
    t.op.u.attention.causal = true;
    t.op.u.attention.fused = b->formats->fused_attention;
    t.op.u.attention.no_cache = l->kv_shared;
    t.op.u.attention.math = b->scores;
    t.op.u.attention.kv = b->formats->kv;
    t.op.u.attention.page_tokens = b->formats->page_tokens;
    t.chunked = l->mixer == RG_MIX_CHUNKED;
    emit(b, &t);

    const double out = (double)(heads * v);
    if (l->output_gate)
        stream(b, "output_gate", RG_ROWS_ATTENTION, 2 * out, out, 2 * out, 1);
    gemm(b, "o_proj", RG_ROWS_ATTENTION, h, heads * v, 1, w, (double)h * (double)(l->heads * v),
         false);
}

/* Scores of the indexer (DeepSeek-V3.2): every query against all keys, index_heads products of
 * index_dim; keys are kept in fp8. */
static void indexer(builder *b)
{
    const rg_layer *l = b->layer;
    const rg_format *w = rg_formats_mixer(b->formats);
    const int64_t h = b->model->hidden;
    gemm(b, "index_q_proj", RG_ROWS_ATTENTION, l->index_heads * l->index_dim, l->q_lora, 1, w,
         (double)(l->index_heads * l->index_dim) * (double)l->q_lora, false);
    gemm(b, "index_k_proj", RG_ROWS_ATTENTION, l->index_dim + l->index_heads, h, 1, w,
         (double)(l->index_dim + l->index_heads) * (double)h, false);
    rg_template t = blank(b, RG_TEMPLATE_INDEX, RG_OP_STREAM, "index_scores", RG_ROWS_ATTENTION);
    t.op.u.stream.kernels = 2;
    t.row_flops = 2.0 * (double)(l->index_heads * l->index_dim); /* per pair */
    t.row_read = (double)rg_layer_index_bytes(l);                /* per token of the span */
    t.row_write = 4.0;                                           /* per pair: a score */
    emit(b, &t);
}

static rg_template mla_template(const builder *b, rg_template_kind kind, int64_t heads)
{
    const rg_layer *l = b->layer;
    rg_template t = blank(b, kind, RG_OP_MLA_PREFILL, "attention", RG_ROWS_ATTENTION);
    t.op.u.attention.heads = t.op.u.attention.kv_heads = heads;
    t.op.u.attention.head_dim = l->nope_dim + l->rope_dim;
    t.op.u.attention.v_head_dim = rg_layer_v_dim(l);
    t.op.u.attention.latent = l->kv_lora;
    t.op.u.attention.rope_dim = l->rope_dim;
    t.op.u.attention.window = l->index_top_k; /* each query reads the tokens chosen for it */
    t.op.u.attention.causal = true;
    t.op.u.attention.fused = b->formats->fused_attention;
    t.op.u.attention.math = b->scores;
    t.op.u.attention.kv = b->formats->kv;
    t.op.u.attention.page_tokens = b->formats->page_tokens;
    return t;
}

/* The cache holds latents. Prefill expands them; decode takes the same weights into the query and
 * the result. */
static void mla_latent(builder *b, int64_t heads)
{
    const rg_layer *l = b->layer;
    const rg_format *w = rg_formats_mixer(b->formats);
    const int64_t v = rg_layer_v_dim(l);
    gemm(b, "kv_b_proj", RG_ROWS_SPAN, heads * (l->nope_dim + v), l->kv_lora, 1, w,
         (double)l->kv_lora * (double)l->heads * (double)(l->nope_dim + v), false);
    gemm(b, "mla_bmm_pre", RG_ROWS_DECODE, l->kv_lora, l->nope_dim, heads, w, 0, true);
    const rg_template t = mla_template(b, RG_TEMPLATE_MLA, heads);
    emit(b, &t);
    gemm(b, "mla_bmm_post", RG_ROWS_DECODE, v, l->kv_lora, heads, w, 0, true);
}

/* The cache holds K and V of every head: new tokens are expanded once, and attention is plain. */
static void mla_expanded(builder *b, int64_t heads)
{
    const rg_layer *l = b->layer;
    const int64_t width = l->nope_dim + rg_layer_v_dim(l);
    gemm(b, "kv_b_proj", RG_ROWS_ATTENTION, heads * width, l->kv_lora, 1,
         rg_formats_mixer(b->formats), (double)l->kv_lora * (double)l->heads * (double)width,
         false);
    rg_template t = mla_template(b, RG_TEMPLATE_ATTENTION, heads);
    t.op.u.attention.latent = t.op.u.attention.rope_dim = 0;
    emit(b, &t);
}

static void mla(builder *b)
{
    const rg_layer *l = b->layer;
    const rg_split *s = &b->split;
    const rg_format *w = rg_formats_mixer(b->formats);
    const int64_t h = b->model->hidden, v = rg_layer_v_dim(l);
    const int64_t heads = rg_ceil_div(l->heads, s->attention_tp);
    const int64_t q_dim = l->nope_dim + l->rope_dim, latent = l->kv_lora + l->rope_dim;
    const double whole_heads = (double)l->heads;
    /* The ways down into the latents are held by every rank. */
    if (l->q_lora > 0) {
        gemm(b, "q_kv_a_proj", RG_ROWS_ATTENTION, l->q_lora + latent, h, 1, w,
             (double)h * (double)(l->q_lora + latent), false);
        stream(b, "latent_norm", RG_ROWS_ATTENTION, (double)(l->q_lora + l->kv_lora),
               (double)(l->q_lora + l->kv_lora), 3.0 * (double)(l->q_lora + l->kv_lora), 1);
        gemm(b, "q_b_proj", RG_ROWS_ATTENTION, heads * q_dim, l->q_lora, 1, w,
             (double)l->q_lora * whole_heads * (double)q_dim, false);
    } else {
        gemm(b, "q_proj", RG_ROWS_ATTENTION, heads * q_dim, h, 1, w,
             (double)h * whole_heads * (double)q_dim, false);
        gemm(b, "kv_a_proj", RG_ROWS_ATTENTION, latent, h, 1, w, (double)h * (double)latent, false);
        stream(b, "latent_norm", RG_ROWS_ATTENTION, (double)l->kv_lora, (double)l->kv_lora,
               3.0 * (double)l->kv_lora, 1);
    }
    if (l->index_heads > 0)
        indexer(b);
    const double rope = (double)((heads + 1) * l->rope_dim);
    if (l->rope_dim > 0)
        stream(b, "rope", RG_ROWS_ATTENTION, rope, rope, 3 * rope, 1);
    if (b->formats->kv_layout == RG_KV_MLA_EXPANDED)
        mla_expanded(b, heads);
    else
        mla_latent(b, heads);
    gemm(b, "o_proj", RG_ROWS_ATTENTION, h, heads * v, 1, w, (double)h * whole_heads * (double)v,
         false);
}

/* The recurrence: flops per element of state and token are the decay (1), the outer product added
 * (2) and the contraction with the query (2); the delta rule reads the state once more (2). The
 * state is read and written once per sequence and pass. */
static void scan(builder *b, int64_t heads, int64_t width, double flops_per_element,
                 double read_width, double write_width)
{
    const rg_layer *l = b->layer;
    rg_dtype type = RG_BF16;
    if (b->model->state_type != NULL)
        rg_dtype_parse(b->model->state_type, RG_NOWHERE, &type, NULL);
    const double state = (double)(heads * l->ssm_head_dim * l->ssm_state);
    const double tail = (double)(width * (l->ssm_conv > 1 ? l->ssm_conv - 1 : 0));
    if (l->ssm_conv > 0) {
        rg_template c = blank(b, RG_TEMPLATE_STREAM, RG_OP_STREAM, "conv1d", RG_ROWS_ATTENTION);
        c.op.u.stream.kernels = 1;
        c.row_read = c.row_write = (double)width * b->act;
        c.row_flops = 2.0 * (double)(width * l->ssm_conv);
        c.sequence_read = c.sequence_write = tail * b->act;
        emit(b, &c);
    }
    rg_template t = blank(b, RG_TEMPLATE_STREAM, RG_OP_SCAN, "scan", RG_ROWS_ATTENTION);
    t.op.u.stream.kernels = 1;
    t.row_read = read_width * b->act;
    t.row_write = write_width * b->act;
    t.row_flops = flops_per_element * state;
    t.sequence_read = t.sequence_write = state * rg_dtype_bits(type) / 8.0;
    emit(b, &t);
}

static void ssm(builder *b)
{
    const rg_layer *l = b->layer;
    const rg_split *s = &b->split;
    const rg_format *w = rg_formats_mixer(b->formats);
    const int64_t h = b->model->hidden, tp = s->attention_tp;
    const int64_t heads = rg_ceil_div(l->ssm_heads, tp);
    const int64_t groups = l->ssm_groups >= tp ? rg_ceil_div(l->ssm_groups, tp) : 1;
    const int64_t inner = heads * l->ssm_head_dim, shared = groups * l->ssm_state;
    const int64_t all_inner = l->ssm_heads * l->ssm_head_dim;
    const int64_t all_shared = l->ssm_groups * l->ssm_state;
    if (l->mixer == RG_MIX_MAMBA1) {
        const int64_t low = l->ssm_dt_rank + 2 * l->ssm_state;
        gemm(b, "in_proj", RG_ROWS_ATTENTION, 2 * inner, h, 1, w,
             2.0 * (double)h * (double)all_inner, false);
        gemm(b, "x_proj", RG_ROWS_ATTENTION, low, inner, 1, w, (double)low * (double)all_inner,
             false);
        gemm(b, "dt_proj", RG_ROWS_ATTENTION, inner, l->ssm_dt_rank, 1, w,
             (double)l->ssm_dt_rank * (double)all_inner, false);
        scan(b, heads, inner, 5, (double)(3 * inner + 2 * l->ssm_state), (double)inner);
    } else if (l->mixer == RG_MIX_MAMBA2) {
        gemm(b, "in_proj", RG_ROWS_ATTENTION, 2 * inner + 2 * shared + heads, h, 1, w,
             (double)h * (double)(2 * all_inner + 2 * all_shared + l->ssm_heads), false);
        scan(b, heads, inner + 2 * shared, 5, (double)(inner + 2 * shared + heads), (double)inner);
        stream(b, "gated_norm", RG_ROWS_ATTENTION, 2.0 * (double)inner, (double)inner,
               5.0 * (double)inner, 1);
    } else {
        gemm(b, "in_proj", RG_ROWS_ATTENTION, 2 * inner + 2 * shared + l->ssm_gates * heads, h, 1,
             w, (double)h * (double)(2 * all_inner + 2 * all_shared + l->ssm_gates * l->ssm_heads),
             false);
        scan(b, heads, inner + 2 * shared, l->ssm_gates > 0 ? 7 : 5,
             (double)(inner + 2 * shared + l->ssm_gates * heads), (double)inner);
        stream(b, "gated_norm", RG_ROWS_ATTENTION, 2.0 * (double)inner, (double)inner,
               5.0 * (double)inner, 1);
    }
    gemm(b, "out_proj", RG_ROWS_ATTENTION, h, inner, 1, w, (double)h * (double)all_inner, false);
}

static void mlp(builder *b, const char *const names[3], rg_rows rows, int64_t width,
                int64_t whole_width)
{
    const rg_format *w = &b->formats->weight;
    const int64_t h = b->model->hidden;
    const int64_t ups = b->layer->gated ? 2 : 1;
    gemm(b, names[0], rows, ups * width, h, 1, w, (double)(ups * whole_width) * (double)h, false);
    stream(b, names[1], rows, (double)(ups * width), (double)width, 4.0 * (double)width, 1);
    gemm(b, names[2], rows, h, width, 1, w, (double)whole_width * (double)h, false);
}

static void moe(builder *b)
{
    static const char *const shared_names[] = {"shared_gate_up_proj", "shared_activation",
                                               "shared_down_proj"};
    static const char *const shared_plain[] = {"shared_up_proj", "shared_activation",
                                               "shared_down_proj"};
    const rg_layer *l = b->layer;
    const rg_split *s = &b->split;
    const rg_format *w = rg_formats_expert(b->formats);
    const rg_format *router = &b->formats->head;
    const int64_t h = b->model->hidden, width = l->latent > 0 ? l->latent : h;
    const bool own_rows = s->attention_groups > 1;
    const rg_rows rows = own_rows ? RG_ROWS_ATTENTION : RG_ROWS_ALL;
    gemm(b, "router", rows, l->experts, h, 1, router, (double)l->experts * (double)h, false);
    if (l->latent > 0)
        gemm(b, "latent_down_proj", rows, l->latent, h, 1, &b->formats->weight,
             (double)l->latent * (double)h, false);
    rg_template t = blank(b, RG_TEMPLATE_MOE, RG_OP_MOE, "experts", RG_ROWS_EXPERTS);
    t.op.u.moe.hidden = width;
    t.op.u.moe.inter = rg_ceil_div(l->inter, s->expert_tp);
    t.op.u.moe.experts = l->experts;
    t.op.u.moe.top_k = l->top_k;
    t.op.u.moe.local_experts = rg_ceil_div(l->experts, s->ep);
    t.op.u.moe.matrices = l->gated ? 3 : 2;
    t.op.u.moe.skew = b->formats->moe_skew;
    t.op.u.moe.weight = *w;
    t.op.u.moe.math = math_of(b, w);
    t.op.u.moe.act = b->formats->act;
    const double one = (double)t.op.u.moe.matrices * (double)width;
    t.stored = one * (double)t.op.u.moe.inter * (double)t.op.u.moe.local_experts;
    t.whole = one * (double)l->inter * (double)l->experts;
    emit(b, &t);
    if (l->latent > 0)
        gemm(b, "latent_up_proj", rows, h, l->latent, 1, &b->formats->weight,
             (double)l->latent * (double)h, false);
    if (l->shared_inter > 0)
        mlp(b, l->gated ? shared_names : shared_plain, rows,
            own_rows ? l->shared_inter : rg_ceil_div(l->shared_inter, s->tp), l->shared_inter);
}

static void layer_ops(builder *b)
{
    static const char *const gated[] = {"gate_up_proj", "activation", "down_proj"};
    static const char *const plain[] = {"up_proj", "activation", "down_proj"};
    const rg_layer *l = b->layer;
    b->whole = 0;
    norms(b);
    if (l->mixer == RG_MIX_MLA)
        mla(b);
    else if (rg_layer_has_state(l))
        ssm(b);
    else if (l->mixer != RG_MIX_NONE)
        attention(b);
    else if (l->mixer_extra > 0) /* a block whose attention was replaced by one product */
        gemm(b, "linear", RG_ROWS_ATTENTION, b->model->hidden, b->model->hidden, 1,
             rg_formats_mixer(b->formats), (double)b->model->hidden * (double)b->model->hidden,
             false);
    if (l->ffn == RG_FFN_MOE)
        moe(b);
    else if (l->ffn == RG_FFN_DENSE)
        mlp(b, l->gated ? gated : plain, RG_ROWS_ALL, rg_ceil_div(l->inter, b->split.tp), l->inter);
    else if (l->ffn_extra > 0)
        gemm(b, "linear", RG_ROWS_ALL, b->model->hidden, b->model->hidden, 1, &b->formats->weight,
             (double)b->model->hidden * (double)b->model->hidden, false);
}

/* Vectors (norms, biases, scales): what the layer has beside its matrices, on every rank. */
static void layer_vectors(builder *b)
{
    const rg_layer *l = b->layer;
    const double rest = (double)(l->mixer_params + l->ffn_params + l->norm_params) - b->whole;
    rg_template t = blank(b, RG_TEMPLATE_STREAM, RG_OP_STREAM, "", RG_ROWS_ALL);
    t.stored = rest > 0 ? rest : 0;
    emit(b, &t);
}

static void embedding(builder *b)
{
    const rg_model *m = b->model;
    const double width = (double)(m->embedding_width > 0 ? m->embedding_width : m->hidden);
    rg_template t = blank(b, RG_TEMPLATE_STREAM, RG_OP_EMBED, "embedding", RG_ROWS_ATTENTION);
    t.op.u.stream.kernels = 1;
    t.row_weight = rg_format_bytes(&b->formats->head, width * (m->position_rows > 0 ? 2.0 : 1.0)).v;
    t.row_write = width * b->act;
    t.stored = (double)rg_ceil_div(m->vocab, b->split.tp) * width +
               (double)m->position_rows * (double)m->hidden;
    emit(b, &t);
    if (m->embedding_width > 0)
        gemm(b, "embedding_proj", RG_ROWS_ATTENTION, m->hidden, m->embedding_width, 1,
             &b->formats->weight, width * (double)m->hidden, false);
}

static void head(builder *b)
{
    const rg_model *m = b->model;
    const double h = (double)m->hidden;
    const int64_t width = m->embedding_width > 0 ? m->embedding_width : m->hidden;
    const int64_t vocab = rg_ceil_div(m->vocab, b->split.tp);
    if (m->final_norm)
        stream(b, "final_norm", RG_ROWS_ATTENTION, 2 * h, h, 4 * h, 1);
    if (m->embedding_width > 0)
        gemm(b, "head_proj", RG_ROWS_LOGITS, width, m->hidden, 1, &b->formats->weight,
             (double)width * h, false);
    gemm(b, "lm_head", RG_ROWS_LOGITS, vocab, width, 1, &b->formats->head,
         (double)m->vocab * (double)width, false);
    /* Logits in fp32: maximum and sum of the softmax, then the draw. */
    rg_template t = blank(b, RG_TEMPLATE_STREAM, RG_OP_SAMPLE, "sampling", RG_ROWS_LOGITS);
    t.op.u.stream.kernels = 3;
    t.row_read = 2.0 * 4.0 * (double)m->vocab;
    t.row_write = 4.0 * (double)m->vocab;
    t.row_flops = 3.0 * (double)m->vocab;
    emit(b, &t);
}

rg_split rg_split_of(const rg_model *m, const rg_shard *s)
{
    rg_split p = {.tp = s->tp > 0 ? s->tp : 1,
                  .ep = s->ep > 0 ? s->ep : 1,
                  .ep_groups = s->ep_groups > 0 ? s->ep_groups : 1,
                  .expert_replicas = s->expert_replicas,
                  .cp = s->cp > 0 ? s->cp : 1,
                  .first = s->first_layer,
                  .count = s->layer_count > 0 ? s->layer_count : m->layer_count - s->first_layer,
                  .embedding = s->embedding,
                  .head = s->head};
    p.attention_tp = s->attention_tp > 0 ? s->attention_tp : p.tp;
    p.attention_groups = p.tp / p.attention_tp > 0 ? p.tp / p.attention_tp : 1;
    p.expert_tp = s->expert_tp;
    if (p.expert_tp <= 0)
        p.expert_tp = p.ep == 1 ? p.tp : p.tp * p.ep_groups > p.ep ? p.tp * p.ep_groups / p.ep : 1;
    return p;
}

void rg_templates_emit(const rg_model *m, const rg_formats *f, const rg_shard *shard,
                       const rg_template_sink *sink)
{
    builder b = {.model = m,
                 .formats = f,
                 .sink = sink,
                 .split = rg_split_of(m, shard),
                 .count = 1,
                 .act = rg_dtype_bits(f->act) / 8.0,
                 .scores = f->kv.math == RG_FP8 && !f->kv.weight_only ? RG_FP8 : f->act};
    if (b.split.embedding)
        embedding(&b);
    const rg_layer *layers = m->layers + b.split.first;
    for (int64_t i = 0; i < b.split.count; i++) {
        bool seen = false; /* an equal layer before has counted this one */
        for (int64_t j = i; j-- > 0 && !seen;)
            seen = layers[j].same_as == layers[i].same_as;
        if (seen)
            continue;
        b.layer = &layers[i];
        b.count = 0;
        for (int64_t j = i; j < b.split.count; j++)
            b.count += layers[j].same_as == layers[i].same_as;
        layer_ops(&b);
        layer_vectors(&b);
    }
    b.count = 1;
    if (b.split.head)
        head(&b);
}

/* model/pass.c: the operators of one pass on one rank. */
// SPDX-License-Identifier: Apache-2.0
#include "model/pass_plan.h"

#include <math.h>
#include <string.h>

/* Visible pairs of the first n tokens when each sees its own chunk up to itself. */
static double chunk_sum(double n, double chunk)
{
    const double whole = floor(n / chunk), rest = n - whole * chunk;
    return whole * chunk * (chunk + 1.0) / 2.0 + rest * (rest + 1.0) / 2.0;
}

/* Collecting templates: equal ones become one with both counts. */

typedef struct collector {
    rg_arena *arena;
    rg_pass_plan *plan;
    int room;
    bool failed;
} collector;

static bool same_shape(const rg_template *a, const rg_template *b)
{
    if (a->kind == RG_TEMPLATE_GEMM) {
        const rg_op_gemm *g = &a->op.u.gemm, *h = &b->op.u.gemm;
        return g->n == h->n && g->k == h->k && g->batch == h->batch && g->math == h->math &&
               g->act == h->act && strcmp(g->weight.name, h->weight.name) == 0;
    }
    if (a->kind == RG_TEMPLATE_MOE) {
        const rg_op_moe *m = &a->op.u.moe, *n = &b->op.u.moe;
        return m->hidden == n->hidden && m->inter == n->inter && m->experts == n->experts &&
               m->top_k == n->top_k && m->matrices == n->matrices;
    }
    if (a->kind == RG_TEMPLATE_ATTENTION || a->kind == RG_TEMPLATE_MLA) {
        const rg_op_attention *x = &a->op.u.attention, *y = &b->op.u.attention;
        return x->heads == y->heads && x->kv_heads == y->kv_heads && x->head_dim == y->head_dim &&
               x->v_head_dim == y->v_head_dim && x->latent == y->latent &&
               x->rope_dim == y->rope_dim && x->window == y->window && x->no_cache == y->no_cache &&
               a->chunked == b->chunked;
    }
    return a->op.u.stream.kernels == b->op.u.stream.kernels && a->row_read == b->row_read &&
           a->row_write == b->row_write && a->row_flops == b->row_flops &&
           a->row_weight == b->row_weight && a->sequence_read == b->sequence_read &&
           a->sequence_write == b->sequence_write;
}

/* All but the count; what the plan has in common (formats, skew) is not compared. */
static bool same_template(const rg_template *a, const rg_template *b)
{
    return a->kind == b->kind && a->rows == b->rows && a->op.kind == b->op.kind &&
           strcmp(a->op.name, b->op.name) == 0 && same_shape(a, b);
}

static void collect(void *context, const rg_template *item)
{
    collector *c = context;
    if (item->op.name[0] == '\0' || item->op.count == 0)
        return; /* weights only */
    rg_pass_plan *plan = c->plan;
    for (int i = 0; i < plan->count; i++) {
        if (same_template(&plan->items[i], item)) {
            plan->items[i].op.count += item->op.count;
            return;
        }
    }
    if (plan->count == c->room) {
        const int room = c->room > 0 ? 2 * c->room : 48;
        rg_template *items = RG_NEW(c->arena, rg_template, room, NULL);
        if (items == NULL) {
            c->failed = true;
            return;
        }
        for (int i = 0; i < plan->count; i++)
            items[i] = plan->items[i];
        plan->items = items;
        c->room = room;
    }
    plan->items[plan->count++] = *item;
}

rg_status rg_pass_prepare(rg_arena *arena, const rg_model *model, const rg_formats *formats,
                          const rg_shard *shard, rg_pass_plan **out, rg_err *err)
{
    RG_TRY(rg_shard_check(model, shard, err));
    rg_pass_plan *plan = RG_NEW(arena, rg_pass_plan, 1, err);
    if (plan == NULL)
        return RG_ERR_LIMIT;
    collector c = {.arena = arena, .plan = plan};
    const rg_template_sink sink = {collect, &c};
    rg_templates_emit(model, formats, shard, &sink);
    if (c.failed)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for the operators of a pass");
    plan->split = rg_split_of(model, shard);
    for (int i = 0; i < plan->count; i++)
        plan->capacity +=
            plan->items[i].kind == RG_TEMPLATE_ATTENTION || plan->items[i].kind == RG_TEMPLATE_MLA
                ? 2
                : 1;
    *out = plan;
    return RG_OK;
}

int rg_pass_plan_capacity(const rg_pass_plan *plan)
{
    return plan->capacity;
}

static int64_t prefill_tokens(const rg_pass *pass)
{
    int64_t sum = 0;
    for (int i = 0; i < pass->chunk_count; i++)
        sum += pass->chunks[i].new_tokens;
    return sum;
}

static int64_t per_decode(const rg_pass *pass)
{
    return pass->tokens_per_decode > 0 ? pass->tokens_per_decode : 1;
}

int64_t rg_pass_tokens(const rg_pass *pass)
{
    return prefill_tokens(pass) + pass->decodes * per_decode(pass);
}

int64_t rg_pass_logit_rows(const rg_pass *pass)
{
    if (pass->logit_rows > 0)
        return pass->logit_rows;
    return pass->decodes * per_decode(pass) + pass->chunk_count;
}

/* What of the pass falls to this rank. */
typedef struct load {
    int64_t all, attention, experts, decode, logits; /* rows */
    int64_t decodes, chunks;                         /* sequences of this rank */
    double span;                                     /* past and new tokens of its chunks */
    double new_tokens;                               /* of its chunks, before cp */
    double share;                                    /* of the chunks' sums that is this rank's */
    double longest;                                  /* past of a chunk */
} load;

static load load_of(const rg_pass_plan *plan, const rg_pass *pass)
{
    const rg_split *s = &plan->split;
    const int64_t groups = s->attention_groups;
    load d = {.decodes = rg_ceil_div(pass->decodes, groups),
              .chunks = rg_ceil_div(pass->chunk_count, groups)};
    double span = 0, biggest = 0, sum = 0;
    for (int i = 0; i < pass->chunk_count; i++) {
        const rg_chunk *c = &pass->chunks[i];
        sum += (double)c->new_tokens;
        span += (double)(c->new_tokens + c->past_tokens);
        biggest = fmax(biggest, (double)c->new_tokens);
        d.longest = fmax(d.longest, (double)c->past_tokens);
    }
    /* A chunk is not divided among the groups of data-parallel attention, so the busiest group has
     * an equal part or the longest chunk. */
    d.new_tokens = fmax(sum / (double)groups, biggest);
    d.share = sum > 0 ? d.new_tokens / sum : 0;
    d.span = span * d.share;
    const int64_t prefill = (int64_t)ceil(d.new_tokens / (double)s->cp);
    const int64_t per = per_decode(pass);
    d.decode = d.decodes * per;
    d.attention = prefill + d.decode;
    d.all = groups > 1 ? (int64_t)ceil(sum / (double)s->cp) + pass->decodes * per : d.attention;
    d.experts = d.all * s->ep_groups;
    d.logits = rg_pass_logit_rows(pass);
    return d;
}

static int64_t rows_of(const load *d, rg_rows rows)
{
    switch (rows) {
    case RG_ROWS_ALL:
        return d->all;
    case RG_ROWS_ATTENTION:
        return d->attention;
    case RG_ROWS_EXPERTS:
        return d->experts;
    case RG_ROWS_DECODE:
        return d->decode;
    case RG_ROWS_SPAN:
        return (int64_t)ceil(d->span);
    default:
        return d->logits;
    }
}

/* Visible pairs and tokens to read, summed over all chunks of the pass. */
static void chunk_sums(const rg_pass *pass, double window, bool chunked, double *pairs,
                       double *span)
{
    *pairs = *span = 0;
    for (int i = 0; i < pass->chunk_count; i++) {
        const double q = (double)pass->chunks[i].new_tokens;
        const double past = (double)pass->chunks[i].past_tokens;
        if (chunked) {
            *pairs += chunk_sum(past + q, window) - chunk_sum(past, window);
            *span += q + fmod(past, window);
        } else {
            *pairs += rg_attention_pairs(q, past, window, 0, true);
            *span += rg_attention_span(q, past, window, 0);
        }
    }
}

static void fill_prefill(const rg_template *t, const rg_pass *pass, const load *d, int64_t cp,
                         rg_op *op)
{
    const double window = (double)t->op.u.attention.window;
    const bool mla = t->kind == RG_TEMPLATE_MLA;
    double pairs, span;
    chunk_sums(pass, window, t->chunked, &pairs, &span);
    if (mla) { /* choices of different queries differ: all expanded K and V may be read */
        span = 0;
        for (int i = 0; i < pass->chunk_count; i++)
            span += (double)(pass->chunks[i].new_tokens + pass->chunks[i].past_tokens);
    }
    pairs *= d->share / (double)cp;
    span *= d->share;
    *op = t->op;
    op->kind = mla ? RG_OP_MLA_PREFILL : RG_OP_ATTN_PREFILL;
    rg_op_attention *a = &op->u.attention;
    const double batch = (double)d->chunks;
    const double q = fmax(1.0, floor(d->new_tokens / (double)cp / batch + 0.5));
    a->batch = d->chunks;
    a->q_tokens = (int64_t)q;
    a->kv_tokens_max = d->longest;
    /* The past that makes equal chunks have the pairs that these have. */
    if (window == 0)
        a->kv_tokens = fmax(0.0, (pairs / batch - q * (q + 1.0) / 2.0) / q);
    else
        a->kv_tokens = fmax(0.0, (d->span - d->new_tokens) / batch);
    if (a->kv_tokens_max < a->kv_tokens)
        a->kv_tokens_max = a->kv_tokens;
    rg_op_fill_attention(op, pairs, span);
}

static void fill_decode(const rg_template *t, const rg_pass *pass, const load *d, int64_t cp,
                        rg_op *op)
{
    *op = t->op;
    op->kind = t->kind == RG_TEMPLATE_MLA ? RG_OP_MLA_DECODE : RG_OP_ATTN_DECODE;
    rg_op_attention *a = &op->u.attention;
    a->batch = d->decodes;
    a->q_tokens = per_decode(pass);
    a->kv_tokens = pass->decode_kv_tokens / (double)pass->decodes / (double)cp;
    a->kv_tokens_max = fmax(pass->decode_kv_max / (double)cp, a->kv_tokens);
    const double q = (double)a->q_tokens, window = (double)a->window / (double)cp;
    const double batch = (double)a->batch;
    rg_op_fill_attention(op, batch * rg_attention_pairs(q, a->kv_tokens, window, 0, true),
                         batch * rg_attention_span(q, a->kv_tokens, window, 0));
}

static void fill_index(const rg_template *t, const rg_pass *pass, const load *d, int64_t cp,
                       rg_op *op)
{
    double pairs, span;
    chunk_sums(pass, 0, false, &pairs, &span);
    pairs *= d->share;
    span *= d->share;
    if (pass->decodes > 0) {
        const double past = pass->decode_kv_tokens / (double)pass->decodes;
        const double q = (double)per_decode(pass), n = (double)d->decodes;
        pairs += n * rg_attention_pairs(q, past, 0, 0, true);
        span += n * rg_attention_span(q, past, 0, 0);
    }
    *op = t->op;
    op->u.stream.rows = d->attention;
    op->u.stream.read_bytes = span * t->row_read / (double)cp;
    op->u.stream.write_bytes = pairs * t->row_write / (double)cp;
    op->u.stream.flops = pairs * t->row_flops / (double)cp;
    op->flops = RG_F(op->u.stream.flops);
    op->kv_read_bytes = RG_B(op->u.stream.read_bytes);
    op->output_bytes = RG_B(op->u.stream.write_bytes);
    op->l2_bytes = RG_B(op->u.stream.read_bytes + op->u.stream.write_bytes);
}

static void fill_stream(const rg_template *t, const load *d, int64_t rows, rg_op *op)
{
    const double r = (double)rows, sequences = (double)(d->decodes + d->chunks);
    *op = t->op;
    rg_op_stream *s = &op->u.stream;
    s->rows = rows;
    s->read_bytes = r * (t->row_read + t->row_weight) + sequences * t->sequence_read;
    s->write_bytes = r * t->row_write + sequences * t->sequence_write;
    s->flops = r * t->row_flops;
    op->flops = RG_F(s->flops);
    op->weight_bytes = RG_B(r * t->row_weight);
    op->input_bytes = RG_B(s->read_bytes - op->weight_bytes.v);
    op->output_bytes = RG_B(s->write_bytes);
    op->l2_bytes = RG_B(s->read_bytes + s->write_bytes);
}

int rg_pass_fill(const rg_pass_plan *plan, const rg_pass *pass, rg_op *items)
{
    if (rg_pass_tokens(pass) <= 0)
        return 0;
    const load d = load_of(plan, pass);
    const int64_t cp = plan->split.cp;
    const bool prefills = d.new_tokens > 0, decodes = pass->decodes > 0;
    int count = 0;
    for (int i = 0; i < plan->count; i++) {
        const rg_template *t = &plan->items[i];
        const int64_t rows = rows_of(&d, t->rows);
        switch (t->kind) {
        case RG_TEMPLATE_ATTENTION:
        case RG_TEMPLATE_MLA:
            if (prefills)
                fill_prefill(t, pass, &d, cp, &items[count++]);
            if (decodes)
                fill_decode(t, pass, &d, cp, &items[count++]);
            break;
        case RG_TEMPLATE_INDEX:
            fill_index(t, pass, &d, cp, &items[count++]);
            break;
        case RG_TEMPLATE_GEMM:
            if (rows == 0)
                break;
            items[count] = t->op;
            items[count].u.gemm.m = rows;
            rg_op_fill_gemm(&items[count++]);
            break;
        case RG_TEMPLATE_MOE:
            items[count] = t->op;
            items[count].u.moe.tokens = rows;
            rg_op_fill_moe(&items[count++]);
            break;
        case RG_TEMPLATE_STREAM:
            if (rows > 0)
                fill_stream(t, &d, rows, &items[count++]);
            break;
        }
    }
    return count;
}

rg_status rg_pass_ops(rg_arena *arena, const rg_model *model, const rg_formats *formats,
                      const rg_shard *shard, const rg_pass *pass, rg_op_list *out, rg_err *err)
{
    rg_pass_plan *plan;
    RG_TRY(rg_pass_prepare(arena, model, formats, shard, &plan, err));
    if (rg_pass_tokens(pass) <= 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "a pass without tokens has no operators");
    out->capacity = plan->capacity;
    out->items = RG_NEW(arena, rg_op, plan->capacity, err);
    if (out->items == NULL)
        return RG_ERR_LIMIT;
    out->count = rg_pass_fill(plan, pass, out->items);
    return RG_OK;
}

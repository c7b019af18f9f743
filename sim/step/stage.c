/* step/stage.c: one pipeline stage on one rank: what it holds, and its cost, from tables of times.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "step/inner.h"

/* ---- tables by rows ---- */

/** Places around a number of rows, and how far it lies from the first to the second. */
static void places_of(int64_t rows, int *low, int *high, double *ratio)
{
    *ratio = 0;
    if (rows <= EXACT_ROWS) {
        *low = *high = (int)rows;
        return;
    }
    int octave = 0;
    while (octave + 1 < OCTAVES && rows >= (int64_t)EXACT_ROWS << (octave + 1))
        octave++;
    const int64_t base = (int64_t)EXACT_ROWS << octave, step = base / PLACES_PER_OCTAVE;
    const int64_t place = (rows - base) / step;
    if (place >= PLACES_PER_OCTAVE) { /* beyond the table: its last place */
        *low = *high = PLACES - 1;
        return;
    }
    *low = EXACT_ROWS + octave * PLACES_PER_OCTAVE + (int)place;
    *high = *low + 1;
    *ratio = (double)(rows - base - place * step) / (double)step;
    if (*ratio == 0)
        *high = *low;
}

static int64_t rows_at(int place)
{
    if (place <= EXACT_ROWS)
        return place;
    const int octave = (place - EXACT_ROWS) / PLACES_PER_OCTAVE;
    const int64_t base = (int64_t)EXACT_ROWS << octave;
    return base + (place - EXACT_ROWS) % PLACES_PER_OCTAVE * (base / PLACES_PER_OCTAVE);
}

/* ---- operators ---- */

static void add_op(step_cost *sum, const rg_op *op, double time)
{
    const double n = (double)op->count;
    sum->compute += n * time;
    sum->flops += n * op->flops.v;
    sum->bytes += n * rg_op_bytes(op).v;
    sum->kernels += n * rg_step_launches_of(op);
}

/** Rows that decide an operator's time, -1 when more than rows does. */
static int64_t deciding_rows(const rg_op *op)
{
    if (op->kind == RG_OP_GEMM)
        return op->u.gemm.m;
    return op->kind == RG_OP_MOE ? op->u.moe.tokens : -1;
}

static rg_status place_time(const rg_step_context *x, double *table, const rg_op *op, int place,
                            double *out, rg_err *err)
{
    if (isnan(table[place])) {
        rg_op at = *op;
        rg_kernel_time t;
        if (at.kind == RG_OP_GEMM) {
            at.u.gemm.m = rows_at(place);
            rg_op_fill_gemm(&at);
        } else {
            at.u.moe.tokens = rows_at(place);
            rg_op_fill_moe(&at);
        }
        RG_TRY(rg_step_op_time(x, &at, &t, err));
        table[place] = t.total.v;
    }
    *out = table[place];
    return RG_OK;
}

static rg_status op_time(const rg_step_context *x, const known_op *known, const rg_op *op,
                         double *out, rg_err *err)
{
    const int64_t rows = deciding_rows(op);
    if (known == NULL || known->time == NULL || rows < 1) {
        rg_kernel_time t;
        RG_TRY(rg_step_op_time(x, op, &t, err));
        *out = t.total.v;
        return RG_OK;
    }
    int low, high;
    double ratio, a, b;
    places_of(rows, &low, &high, &ratio);
    RG_TRY(place_time(x, known->time, op, low, &a, err));
    if (high == low) {
        *out = a;
        return RG_OK;
    }
    RG_TRY(place_time(x, known->time, op, high, &b, err));
    *out = a + ratio * (b - a);
    return RG_OK;
}

/* ---- a stage ---- */

rg_status rg_step_comm_time(const rg_step_context *x, const comm *c, rg_coll_result *out,
                            rg_err *err)
{
    RG_TRY(rg_coll_time(x->coll, &c->query, out, err));
    if (c->hop || x->options.ideal)
        return RG_OK;
    /* Ranks reach a collective at slightly different times, and all wait for the last: the expected
     * largest of p delays grows about as the logarithm of p. */
    const double wait = x->engine.rank_wait_s * log2((double)c->query.ranks);
    out->time.v += wait;
    out->latency.v += wait;
    return RG_OK;
}

static rg_status add_comms(const rg_step_context *x, const stage *s, const pass_size *size,
                           step_cost *sum, rg_err *err)
{
    comm list[MOST_COMMS];
    const int count = rg_step_comms(x, s, size, list);
    for (int i = 0; i < count; i++) {
        rg_coll_result r;
        RG_TRY(rg_step_comm_time(x, &list[i], &r, err));
        sum->communication += r.time.v * (double)list[i].count;
    }
    return RG_OK;
}

/** Operators of any pass one by one, products and experts from their tables. */
static rg_status whole_pass(const rg_step_context *x, const stage *s, const rg_pass *pass,
                            bool without_decode_attention, step_cost *sum, rg_err *err)
{
    const int count = rg_step_fill(x, s, pass);
    int k = 0;
    for (int i = 0; i < count; i++) {
        const rg_op *op = &s->items[i];
        /* The pass has the plan's operators in the plan's order, some left out. */
        while (k < s->op_count && (s->ops[k].name != op->name || s->ops[k].kind != op->kind))
            k++;
        if (without_decode_attention && rg_step_is_decode_attention(op))
            continue;
        double t;
        RG_TRY(op_time(x, k < s->op_count ? &s->ops[k] : NULL, op, &t, err));
        add_op(sum, op, t);
        k += k < s->op_count;
    }
    const pass_size size = rg_step_size(x, pass);
    return add_comms(x, s, &size, sum, err);
}

static rg_status decode_place(const rg_step_context *x, stage *s, int place, rg_err *err)
{
    step_cost *cost = &s->decode[place];
    if (cost->kernels >= 0)
        return RG_OK;
    step_cost sum = {0};
    const double n = (double)rows_at(place);
    const rg_pass pass = {.decodes = rows_at(place),
                          .tokens_per_decode = s->decode_width,
                          .decode_kv_tokens = n,
                          .decode_kv_max = 1};
    if (pass.decodes > 0)
        RG_TRY(whole_pass(x, s, &pass, true, &sum, err));
    *cost = sum;
    return RG_OK;
}

/** Decode attention from templates: the fill of model/pass.c for these operators alone. */
static rg_status decode_attention(const rg_step_context *x, const stage *s, const rg_pass *pass,
                                  step_cost *sum, rg_err *err)
{
    const double cp = (double)x->parallel.cp;
    const int64_t batch = (pass->decodes + x->attention_ranks - 1) / x->attention_ranks;
    for (int i = 0; i < s->decode_attention_count; i++) {
        rg_op *op = &s->decode_attention[i];
        rg_op_attention *a = &op->u.attention;
        a->batch = batch;
        a->kv_tokens = pass->decode_kv_tokens / (double)pass->decodes / cp;
        a->kv_tokens_max = fmax(pass->decode_kv_max / cp, a->kv_tokens);
        const double q = (double)a->q_tokens, window = (double)a->window / cp;
        rg_op_fill_attention(op,
                             (double)batch * rg_attention_pairs(q, a->kv_tokens, window, 0, true),
                             (double)batch * rg_attention_span(q, a->kv_tokens, window, 0));
        rg_kernel_time t;
        RG_TRY(rg_step_op_time(x, op, &t, err));
        add_op(sum, op, t.total.v);
    }
    return RG_OK;
}

/** Templates and table of decode passes with so many tokens a sequence. */
static void set_decode_width(const rg_step_context *x, stage *s, int64_t width)
{
    s->decode_width = width;
    for (int i = 0; i < PLACES; i++)
        s->decode[i].kernels = -1;
    const rg_pass pass = {.decodes = x->attention_ranks,
                          .tokens_per_decode = width,
                          .decode_kv_tokens = (double)x->attention_ranks,
                          .decode_kv_max = 1};
    const int count = rg_step_fill(x, s, &pass);
    s->decode_attention_count = 0;
    for (int i = 0; i < count; i++)
        if (rg_step_is_decode_attention(&s->items[i]))
            s->decode_attention[s->decode_attention_count++] = s->items[i];
}

static rg_status decode_pass(const rg_step_context *x, stage *s, const rg_pass *pass,
                             step_cost *sum, rg_err *err)
{
    const int64_t width = pass->tokens_per_decode > 0 ? pass->tokens_per_decode : 1;
    if (width != s->decode_width)
        set_decode_width(x, s, width);
    int low, high;
    double ratio;
    places_of(pass->decodes, &low, &high, &ratio);
    RG_TRY(decode_place(x, s, low, err));
    *sum = s->decode[low];
    if (high != low) {
        RG_TRY(decode_place(x, s, high, err));
        const step_cost *b = &s->decode[high];
        sum->compute += ratio * (b->compute - sum->compute);
        sum->communication += ratio * (b->communication - sum->communication);
        sum->flops += ratio * (b->flops - sum->flops);
        sum->bytes += ratio * (b->bytes - sum->bytes);
    }
    return decode_attention(x, s, pass, sum, err);
}

rg_status rg_step_stage_cost(rg_step_context *x, int index, const rg_pass *pass, step_cost *sum,
                             rg_err *err)
{
    stage *s = &x->stages[x->stages[index].same_as];
    *sum = (step_cost){0};
    const bool plain = pass->chunk_count == 0 && pass->logit_rows == 0 && !s->indexed;
    if (plain && pass->decodes > 0)
        return decode_pass(x, s, pass, sum, err);
    return whole_pass(x, s, pass, false, sum, err);
}

/* ---- preparation ---- */

static void count_layers(const rg_step_context *x, stage *s)
{
    for (int64_t i = 0; i < s->shard.layer_count; i++) {
        const rg_layer *layer = &x->model->layers[s->shard.first_layer + i];
        s->mixers += layer->mixer != RG_MIX_NONE;
        s->full_norms += layer->mixer != RG_MIX_NONE && layer->qk_norm == RG_QK_NORM_FULL;
        s->dense_ffns += layer->ffn == RG_FFN_DENSE;
        if (layer->ffn == RG_FFN_MOE) {
            s->moes++;
            s->moe_width = layer->latent > 0 ? layer->latent : x->model->hidden;
            s->top_k = (double)layer->top_k;
        }
        if (!rg_layer_has_kv(layer))
            continue;
        s->attentions++;
        const int64_t elements = rg_layer_kv_elements(layer, false);
        if (elements >= s->kv_elements) {
            s->kv_elements = elements;
            s->heads = layer->heads;
            s->value_dim = rg_layer_v_dim(layer);
        }
    }
}

/** All operators that the plan can yield, in its order. */
static rg_status list_ops(rg_arena *arena, const rg_step_context *x, stage *s, rg_err *err)
{
    const int capacity = rg_pass_plan_capacity(s->plan);
    s->items = RG_NEW(arena, rg_op, capacity, err);
    s->ops = RG_NEW(arena, known_op, capacity, err);
    s->decode_attention = RG_NEW(arena, rg_op, capacity, err);
    s->decode = RG_NEW(arena, step_cost, PLACES, err);
    if (!s->items || !s->ops || !s->decode_attention || !s->decode)
        return RG_ERR_LIMIT;
    const int64_t groups = x->attention_ranks;
    const rg_chunk chunk = {.new_tokens = 64 * groups, .past_tokens = 64};
    const rg_pass pass = {.chunks = &chunk,
                          .chunk_count = 1,
                          .decodes = 2 * groups,
                          .decode_kv_tokens = 64.0 * (double)groups,
                          .decode_kv_max = 64};
    s->op_count = rg_step_fill(x, s, &pass);
    for (int i = 0; i < s->op_count; i++) {
        const rg_op *op = &s->items[i];
        s->ops[i] = (known_op){.name = op->name, .kind = op->kind};
        s->indexed |= strcmp(op->name, "index_scores") == 0;
        if (deciding_rows(op) < 0)
            continue;
        s->ops[i].time = RG_NEW(arena, double, PLACES, err);
        if (s->ops[i].time == NULL)
            return RG_ERR_LIMIT;
        for (int k = 0; k < PLACES; k++)
            s->ops[i].time[k] = NAN;
    }
    set_decode_width(x, s, 1);
    return RG_OK;
}

rg_status rg_step_stage_prepare(rg_arena *arena, const rg_step_context *x, stage *s, rg_err *err)
{
    count_layers(x, s);
    RG_TRY(rg_pass_prepare(arena, x->model, &x->formats, &s->shard, &s->plan, err));
    return list_ops(arena, x, s, err);
}

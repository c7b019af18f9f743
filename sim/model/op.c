/* model/op.c: shape in, flops and bytes out, for each kind of operator. */
// SPDX-License-Identifier: Apache-2.0
#include "model/op.h"

#include <assert.h>
#include <math.h>

enum {
    TILE_N = 128,     /* columns of an output tile of a matrix product */
    TILE_M = 128,     /* rows, fewer when the product has fewer */
    TILE_QUERY = 128, /* query rows that share one read of K and V in prefill */
    TILE_DECODE = 64, /* the same in decode, where the heads of a group are rows too */
    SKEW_STRATA = 64, /* experts are averaged over so many classes of popularity */
    SCORE_PASSES = 4, /* unfused attention writes and reads scores, then probabilities */
};

static double act_bytes(rg_dtype type)
{
    return rg_dtype_bits(type) / 8.0;
}

/* Queries and results lie in memory in 16 bit or wider, also where the products are in FP8. */
static double attention_bytes(rg_dtype math)
{
    return fmax(2.0, act_bytes(math));
}

static double ceil_div(double a, double b)
{
    return ceil(a / b);
}

/* Rows of the output tile that a library picks for m rows: a power of two from 16 to TILE_M. */
static double tile_rows(double m)
{
    double rows = 16;
    while (rows < m && rows < TILE_M)
        rows *= 2;
    return rows;
}

void rg_op_fill_gemm(rg_op *op)
{
    const rg_op_gemm *g = &op->u.gemm;
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k, batch = (double)g->batch;
    const rg_dtype x_type = rg_dtype_bits(g->math) < rg_dtype_bits(g->act) ? g->math : g->act;
    const double x = batch * m * k * act_bytes(x_type);
    const double y = batch * m * n * act_bytes(g->act);
    const double w = rg_format_bytes(&g->weight, batch * n * k).v;
    op->flops = RG_F(2.0 * batch * m * n * k);
    op->weight_bytes = RG_B(w);
    op->input_bytes = RG_B(x);
    op->output_bytes = RG_B(y);
    op->l2_bytes = RG_B(x * ceil_div(n, TILE_N) + w * ceil_div(m, tile_rows(m)) + y);
}

rg_op rg_op_make_bmm(const char *name, int64_t batch, int64_t m, int64_t n, int64_t k,
                     const rg_format *weight, rg_dtype math, rg_dtype act)
{
    assert(batch >= 1 && m >= 0 && n >= 0 && k >= 0);
    rg_op op = {.name = name, .kind = RG_OP_GEMM, .count = 1};
    op.u.gemm = (rg_op_gemm){.m = m,
                             .n = n,
                             .k = k,
                             .batch = batch,
                             .weight = *weight,
                             .math = math,
                             .act = act,
                             .batched = true};
    rg_op_fill_gemm(&op);
    return op;
}

rg_op rg_op_make_gemm(const char *name, int64_t m, int64_t n, int64_t k, const rg_format *weight,
                      rg_dtype math, rg_dtype act)
{
    rg_op op = rg_op_make_bmm(name, 1, m, n, k, weight, math, act);
    op.u.gemm.batched = false;
    return op;
}

double rg_attention_pairs(double q, double past, double window, double sinks, bool causal)
{
    const double all = causal ? q * past + q * (q + 1.0) / 2.0 : q * (past + q);
    if (window <= 0)
        return all;
    const double most = window + sinks;
    if (!causal)
        return fmin(all, q * most);
    /* Query i (from 0) sees min(past + i + 1, most) keys; the first `whole` of them see all. */
    const double whole = fmin(fmax(floor(most - past), 0.0), q);
    return whole * past + whole * (whole + 1.0) / 2.0 + (q - whole) * most;
}

double rg_attention_span(double q, double past, double window, double sinks)
{
    const double all = past + q;
    return window > 0 ? fmin(all, window + sinks + q - 1.0) : all;
}

/* Elements per token of the cache, of a query row and of a result row, and flops per pair and
 * head. */
typedef struct attention_widths {
    double cache, query, result, pair_flops, heads;
} attention_widths;

static attention_widths widths_of(const rg_op_attention *a, rg_op_kind kind)
{
    const double heads = (double)a->heads;
    const double latent = (double)(a->latent + a->rope_dim);
    if (kind == RG_OP_MLA_DECODE)
        return (attention_widths){.cache = latent,
                                  .query = heads * latent,
                                  .result = heads * (double)a->latent,
                                  .pair_flops = 2.0 * (latent + (double)a->latent),
                                  .heads = heads};
    const double value = (double)(a->v_head_dim > 0 ? a->v_head_dim : a->head_dim);
    const double width = (double)a->head_dim + value;
    return (attention_widths){.cache =
                                  kind == RG_OP_MLA_PREFILL ? latent : (double)a->kv_heads * width,
                              .query = heads * (double)a->head_dim,
                              .result = heads * value,
                              .pair_flops = 2.0 * width,
                              .heads = heads};
}

void rg_op_fill_attention(rg_op *op, double pairs, double span)
{
    const rg_op_attention *a = &op->u.attention;
    const attention_widths w = widths_of(a, op->kind);
    const double batch = (double)a->batch, q = (double)a->q_tokens;
    const double rows = batch * q, e = attention_bytes(a->math);
    const bool decode = op->kind == RG_OP_ATTN_DECODE || op->kind == RG_OP_MLA_DECODE;
    double input = rows * w.query * e, kv_read = 0;
    double kv_pulled; /* bytes of one pass over K and V of all sequences */
    if (op->kind == RG_OP_MLA_PREFILL) {
        /* K and V of past and new tokens come expanded from a product before, as activations;
         * the rotary part of K is shared by the heads. */
        const double nope = (double)(a->head_dim - a->rope_dim);
        const double value = (double)(a->v_head_dim > 0 ? a->v_head_dim : a->head_dim);
        kv_pulled = span * (w.heads * (nope + value) + (double)a->rope_dim) * e;
        input += kv_pulled;
    } else {
        kv_pulled = kv_read = rg_format_bytes(&a->kv, span * w.cache).v;
    }
    double output = rows * w.result * e;
    double scores = 0;
    if (!a->fused) {
        const double square = w.heads * (decode ? pairs : rows * (a->kv_tokens + q));
        scores = SCORE_PASSES * square * e;
        input += scores / 2;
        output += scores / 2;
    }
    const bool latent = op->kind == RG_OP_MLA_DECODE || op->kind == RG_OP_MLA_PREFILL;
    const double group = latent || a->kv_heads == 0 ? w.heads : w.heads / (double)a->kv_heads;
    double passes; /* times that K and V are pulled through L2 */
    if (decode)
        passes = ceil_div(q * group, TILE_DECODE);
    else
        passes =
            span > 0 ? fmax(1.0, pairs / fmin(q, TILE_QUERY) / span) * (latent ? 1 : group) : 0;
    op->flops = RG_F(pairs * w.heads * w.pair_flops);
    op->weight_bytes = RG_B(0);
    op->input_bytes = RG_B(input);
    op->output_bytes = RG_B(output);
    op->kv_read_bytes = RG_B(kv_read);
    op->kv_write_bytes = rg_format_bytes(&a->kv, a->no_cache ? 0.0 : rows * w.cache);
    op->l2_bytes =
        RG_B(rows * (w.query + w.result) * e + scores + kv_pulled * passes + op->kv_write_bytes.v);
}

rg_op rg_op_make_attention(const char *name, rg_op_kind kind, const rg_op_attention *shape)
{
    assert(kind == RG_OP_ATTN_PREFILL || kind == RG_OP_ATTN_DECODE || kind == RG_OP_MLA_PREFILL ||
           kind == RG_OP_MLA_DECODE);
    rg_op op = {.name = name, .kind = kind, .count = 1};
    op.u.attention = *shape;
    const double q = (double)shape->q_tokens, past = shape->kv_tokens;
    const double window = (double)shape->window, sinks = (double)shape->sinks;
    const double batch = (double)shape->batch;
    rg_op_fill_attention(&op, batch * rg_attention_pairs(q, past, window, sinks, shape->causal),
                         batch * rg_attention_span(q, past, window, sinks));
    return op;
}

double rg_moe_touched(double tokens, double experts, double top_k, double skew)
{
    const double share = top_k / experts;
    if (skew <= 0)
        return experts * (1.0 - pow(1.0 - share, tokens));
    const int strata = experts < SKEW_STRATA ? (int)experts : SKEW_STRATA;
    double sum = 0;
    for (int i = 0; i < strata; i++)
        sum += pow((i + 0.5) / strata, -skew);
    double touched = 0;
    for (int i = 0; i < strata; i++) {
        const double p = fmin(1.0, share * pow((i + 0.5) / strata, -skew) * strata / sum);
        touched += (1.0 - pow(1.0 - p, tokens)) * experts / strata;
    }
    return touched;
}

void rg_op_fill_moe(rg_op *op)
{
    const rg_op_moe *s = &op->u.moe;
    const double tokens = (double)s->tokens, hidden = (double)s->hidden, inter = (double)s->inter;
    const double experts = (double)s->experts, local = (double)s->local_experts;
    const double top_k = (double)s->top_k, e = act_bytes(s->act);
    const double here = local / experts;         /* share of the experts on this rank */
    const double routed = tokens * top_k * here; /* rows of the expert products */
    const double one_expert = rg_format_bytes(&s->weight, (double)s->matrices * hidden * inter).v;
    double touched = tokens > 0 ? rg_moe_touched(tokens, experts, top_k, s->skew) * here : 0.0;
    if (s->dealt)
        touched = fmin(local, routed);
    /* Tokens that at least one local expert was chosen for: all of them when all are local. */
    const double reached = here >= 1.0 ? tokens : tokens * (1.0 - pow(1.0 - here, top_k));
    op->flops = RG_F(2.0 * routed * hidden * inter * (double)s->matrices);
    op->weight_bytes = RG_B(touched * one_expert);
    op->input_bytes = RG_B((reached * hidden + routed * inter) * e);
    op->output_bytes = RG_B((reached * hidden + routed * inter) * e);
    const double rows = touched > 0 ? routed / touched : 0.0; /* per expert */
    const double up_columns = (double)(s->matrices - 1) * inter;
    op->l2_bytes =
        RG_B(op->weight_bytes.v * ceil_div(rows, tile_rows(rows)) +
             routed * hidden * e * ceil_div(up_columns, TILE_N) +
             routed * inter * e * (1.0 + ceil_div(hidden, TILE_N)) + routed * hidden * e);
}

rg_op rg_op_make_moe(const char *name, const rg_op_moe *shape)
{
    assert(shape->experts >= 1 && shape->local_experts >= 0 && shape->matrices >= 2);
    rg_op op = {.name = name, .kind = RG_OP_MOE, .count = 1};
    op.u.moe = *shape;
    rg_op_fill_moe(&op);
    return op;
}

rg_op rg_op_make_stream(const char *name, const rg_op_stream *shape)
{
    rg_op op = {.name = name, .kind = RG_OP_STREAM, .count = 1};
    op.u.stream = *shape;
    op.flops = RG_F(shape->flops);
    op.input_bytes = RG_B(shape->read_bytes);
    op.output_bytes = RG_B(shape->write_bytes);
    op.l2_bytes = RG_B(shape->read_bytes + shape->write_bytes);
    return op;
}

const char *rg_op_kind_name(rg_op_kind kind)
{
    static const char *const names[RG_OP_KIND_COUNT] = {
        [RG_OP_GEMM] = "gemm",
        [RG_OP_ATTN_PREFILL] = "context_attention",
        [RG_OP_ATTN_DECODE] = "generation_attention",
        [RG_OP_MLA_PREFILL] = "context_mla",
        [RG_OP_MLA_DECODE] = "generation_mla",
        [RG_OP_MOE] = "moe",
        [RG_OP_STREAM] = "stream",
        [RG_OP_EMBED] = "embed",
        [RG_OP_SCAN] = "scan",
        [RG_OP_SAMPLE] = "sample",
    };
    return names[kind];
}

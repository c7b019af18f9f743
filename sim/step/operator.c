/* step/operator.c: time of one operator inside a step: the kernel, and what the engine does to it.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "step/inner.h"

bool rg_step_is_decode_attention(const rg_op *op)
{
    return op->kind == RG_OP_ATTN_DECODE || op->kind == RG_OP_MLA_DECODE;
}

/** The engine quantises X in a kernel of its own: its start-up, X in and out. */
static void add_quantise(const rg_step_context *x, const rg_op *op, rg_kernel_time *out)
{
    if (op->kind != RG_OP_GEMM || op->u.gemm.weight.weight_only)
        return;
    const double wide = rg_dtype_bits(op->u.gemm.act), narrow = rg_dtype_bits(op->u.gemm.math);
    if (narrow >= wide)
        return;
    const double elements = (double)op->u.gemm.m * (double)op->u.gemm.k;
    const double moved = elements * (wide + narrow) / 8.0 / x->quantise_rate;
    out->fixed.v += x->engine.quantise_s;
    out->memory.v += moved;
    out->total.v += x->engine.quantise_s + moved;
}

/** Sequences of a batch end at different times; the kernel waits for the longest as far as its
 * splits do not even that out: t (1 + skew (longest / mean - 1)), start-up apart. */
static void add_skew(const rg_step_context *x, const rg_op *op, rg_kernel_time *out)
{
    const rg_op_attention *a = &op->u.attention;
    if (!rg_step_is_decode_attention(op) || !(a->kv_tokens > 0) || a->kv_tokens_max <= a->kv_tokens)
        return;
    const double longer = a->kv_tokens_max / a->kv_tokens - 1;
    out->total.v += x->engine.attention_skew_ratio * longer * fmax(0, out->total.v - out->fixed.v);
}

rg_status rg_step_op_time(const rg_step_context *x, const rg_op *op, rg_kernel_time *out,
                          rg_err *err)
{
    RG_TRY(rg_kernel_op_time(x->device, op, out, err));
    if (x->quantise_rate > 0 && x->engine.quantise_s > 0)
        add_quantise(x, op, out);
    if (x->engine.attention_skew_ratio > 0)
        add_skew(x, op, out);
    if (x->options.ideal || !x->engine.cuda_graphs || x->engine.graph_kernel_s == 0)
        return RG_OK;
    /* Constants were measured one kernel a graph; in a graph of many, each begins while the one
     * before it drains. No more than half of the start-up goes that way. */
    const double saved = fmin(x->engine.graph_kernel_s, 0.5 * out->fixed.v);
    out->total.v -= saved;
    out->fixed.v -= saved;
    return RG_OK;
}

double rg_step_launches_of(const rg_op *op)
{
    switch (op->kind) {
    case RG_OP_MOE:
        return 5; /* routing, permutation, two products, combine */
    case RG_OP_STREAM:
    case RG_OP_EMBED:
    case RG_OP_SCAN:
    case RG_OP_SAMPLE:
        return (double)(op->u.stream.kernels > 0 ? op->u.stream.kernels : 1);
    default:
        return 1;
    }
}

/* model/op.h: one pass of a model on one rank, as a list of operators.
 *
 * Reads core, model/spec.h. Each operator has its shape, its flops and the bytes that it must move.
 * A multiply-add is 2 flops. Bytes are algorithmic: each operand once; re-reads beyond that are the
 * kernel model's business.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_MODEL_OP_H
#define RG_MODEL_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/units.h"

typedef enum rg_op_kind {
    RG_OP_GEMM,         /* Y[m,n] = X[m,k] W[n,k]; batch > 1: that many independent products */
    RG_OP_ATTN_PREFILL, /* causal (or not) attention of a chunk against itself and the cache */
    RG_OP_ATTN_DECODE,  /* few query tokens a sequence against its cache */
    RG_OP_MLA_PREFILL,
    RG_OP_MLA_DECODE, /* absorbed form: latent cache shared by all heads */
    RG_OP_MOE,        /* routed experts: routing, permutation, two or three products, combine */
    RG_OP_STREAM,     /* norm, rope, activation, residual, cast: moves bytes, few flops */
    RG_OP_EMBED,      /* gather of rows */
    RG_OP_SCAN,       /* state-space or linear-attention recurrence */
    RG_OP_SAMPLE,     /* softmax, top-k and draw over the vocabulary */
    RG_OP_KIND_COUNT,
} rg_op_kind;

typedef struct rg_op_gemm {
    int64_t m, n, k, batch;
    rg_format weight; /* how W is stored */
    rg_dtype math;    /* type of the product */
    rg_dtype act;     /* type of X and Y in memory; math of fewer bits than act: X is quantised */
    bool batched;     /* by the kernel for many products, even where there is one */
} rg_op_gemm;

typedef struct rg_op_attention {
    int64_t batch;        /* sequences */
    int64_t q_tokens;     /* new tokens per sequence */
    double kv_tokens;     /* tokens in the cache per sequence before this pass, mean */
    double kv_tokens_max; /* of the longest sequence; = kv_tokens when even */
    int64_t heads, kv_heads, head_dim, v_head_dim; /* on this rank */
    int64_t latent, rope_dim;                      /* MLA: 512, 64 */
    int64_t window;                                /* 0 = full */
    int64_t sinks;                                 /* tokens kept beside the window */
    bool causal;
    bool fused;          /* false: scores go through memory */
    bool no_cache;       /* encoder: K and V are not kept */
    rg_dtype math;       /* of the products; below 16 bit, Q and the result still lie in 16 bit */
    rg_format kv;        /* how the cache is stored */
    int64_t page_tokens; /* 0 = contiguous */
} rg_op_attention;

typedef struct rg_op_moe {
    int64_t tokens;         /* tokens that reach this rank's router, before top-k */
    int64_t hidden, inter;  /* inter: per expert, on this rank */
    int64_t experts, top_k; /* of the whole layer */
    int64_t local_experts;  /* on this rank */
    int matrices;           /* 3 gated, 2 plain */
    double skew;            /* power-law exponent of the expert loads; 0 = balanced */
    bool dealt; /* balanced by dealing rows out in turn, as benchmarks do: min(experts, rows) are
                 * touched, where even routing leaves some untouched by chance */
    rg_format weight;
    rg_dtype math, act;
} rg_op_moe;

typedef struct rg_op_stream {
    double read_bytes, write_bytes, flops;
    int64_t rows;    /* independent rows (tokens) */
    int64_t kernels; /* launches that this stands for */
} rg_op_stream;

typedef struct rg_op {
    const char
        *name; /* "qkv_proj", "attention", "o_proj", "gate_up_proj", "down_proj", "lm_head" */
    rg_op_kind kind;
    int64_t count; /* equal operators in the pass (layers) */
    union {
        rg_op_gemm gemm;
        rg_op_attention attention;
        rg_op_moe moe;
        rg_op_stream stream; /* also embed, scan, sample */
    } u;
    /* of ONE operator: */
    rg_flops flops;
    rg_bytes weight_bytes;              /* read from device memory */
    rg_bytes input_bytes, output_bytes; /* activations */
    rg_bytes kv_read_bytes, kv_write_bytes;
    rg_bytes l2_bytes; /* what the compute units must pull through L2, tiles counted */
} rg_op;

static inline rg_bytes rg_op_bytes(const rg_op *op)
{
    return RG_B(op->weight_bytes.v + op->input_bytes.v + op->output_bytes.v + op->kv_read_bytes.v +
                op->kv_write_bytes.v);
}

typedef struct rg_op_list {
    rg_op *items;
    int count, capacity;
} rg_op_list;

/** "gemm", "context_attention", "generation_attention", "context_mla", "generation_mla", "moe",
 * "stream", "embed", "scan", "sample": the words of measured tables where they have one. */
const char *rg_op_kind_name(rg_op_kind kind);

/* Builders that fill shape, flops and bytes of one operator from its shape alone; the kernel
 * model's validation uses the same ones. Sums of products only: softmax, scales and the like count
 * no flops, as in the papers that quote model flops. */

/** Y[m,n] = X[m,k] W[n,k]: 2 m n k flops. X is counted in the type that the product reads (math
 * where that is narrower than act; the pass that quantises X is the kernel model's), Y in act. L2:
 * X once for each 128 columns, W once for each tile of 16 to 128 rows, Y once. */
rg_op rg_op_make_gemm(const char *name, int64_t m, int64_t n, int64_t k, const rg_format *weight,
                      rg_dtype math, rg_dtype act);
/** The same, `batch` independent products, each with its own W. */
rg_op rg_op_make_bmm(const char *name, int64_t batch, int64_t m, int64_t n, int64_t k,
                     const rg_format *weight, rg_dtype math, rg_dtype act);

/** Attention: 2 (head_dim + v_head_dim) flops for each query head and visible (query, key) pair;
 * v_head_dim 0 means head_dim. K and V of the visible span are read once per KV head, whatever the
 * number of query heads; the new ones are written once. MLA_DECODE (absorbed): the cache holds
 * latent + rope_dim per token for all heads, 2 (2 latent + rope_dim) flops a pair and head.
 * MLA_PREFILL (expanded): head_dim (with its rotary part) and v_head_dim as in plain attention over
 * expanded K and V, which count as input; only the latent is written. Unfused: scores and
 * probabilities go out and in (4 passes over heads x queries x keys). */
rg_op rg_op_make_attention(const char *name, rg_op_kind kind, const rg_op_attention *shape);

/** Routed experts: tokens x top_k x local/experts rows through `matrices` products. Weights of
 * touched experts only: E (1 - (1 - k/E)^tokens) x local/E under even routing. Bytes: each token
 * that has a local expert in and out, and the rows between the products out and in. */
rg_op rg_op_make_moe(const char *name, const rg_op_moe *shape);
rg_op rg_op_make_stream(const char *name, const rg_op_stream *shape);

/** Visible (query, key) pairs of one sequence with q new tokens behind `past` ones. window > 0:
 * each query sees itself, window - 1 tokens before it and `sinks` first ones; never more than there
 * are. With fractional past (a mean over sequences) the same formula. */
double rg_attention_pairs(double q, double past, double window, double sinks, bool causal);
/** Tokens of which K and V must be read for them: min(past + q, window + sinks + q - 1). */
double rg_attention_span(double q, double past, double window, double sinks);
/** Experts of which at least one of `tokens` tokens makes use, each token choosing top_k of them.
 * skew: expert i of E is chosen with weight (i - 1/2)^-skew (64 classes of popularity). */
double rg_moe_touched(double tokens, double experts, double top_k, double skew);

/** Flops and bytes again, after a change of the shape; attention with the pairs and the span summed
 * over the sequences by the caller (uneven batches). */
void rg_op_fill_gemm(rg_op *op);
void rg_op_fill_attention(rg_op *op, double pairs, double span);
void rg_op_fill_moe(rg_op *op);

#endif

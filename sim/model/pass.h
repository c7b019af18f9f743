/* model/pass.h: what one forward pass processes, and which part of the model a rank holds.
 *
 * Reads model/spec.h, model/op.h. From these three comes the operator list of one rank.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_MODEL_PASS_H
#define RG_MODEL_PASS_H

#include "model/op.h"
#include "model/spec.h"

/** Prefill chunk of one sequence: new tokens behind past ones that lie in the cache. */
typedef struct rg_chunk {
    int64_t new_tokens, past_tokens;
} rg_chunk;

/** One pass: any mix of chunks and decodes (continuous batching). */
typedef struct rg_pass {
    const rg_chunk *chunks;
    int chunk_count;
    int64_t decodes;           /* sequences that decode */
    int64_t tokens_per_decode; /* 1; 1 + drafts when verifying speculation */
    double decode_kv_tokens;   /* sum over the decoding sequences */
    double decode_kv_max;      /* longest of them */
    int64_t logit_rows; /* rows through the LM head; 0: one for each decode token and chunk */
} rg_pass;

/** Formats and choices of the engine that shape the operators. */
typedef struct rg_formats {
    rg_format weight; /* linear layers and experts */
    rg_format head;   /* LM head and embedding (often kept in bf16) */
    rg_format kv;
    rg_dtype act;  /* activations in memory */
    rg_dtype math; /* product type of linear layers; attention uses act unless kv forces fp8 */
    bool fused_attention;
    int64_t page_tokens;
    double moe_skew;
} rg_formats;

/** What one rank holds. tp divides heads and FFN width; ep divides experts; layers by range. */
typedef struct rg_shard {
    int64_t tp, attention_tp; /* attention_tp < tp: data-parallel attention */
    int64_t ep, expert_tp;
    int64_t cp;                       /* KV of a sequence split over cp ranks */
    int64_t first_layer, layer_count; /* layer_count 0 = all */
    bool embedding, head;             /* holds the first, the last stage */
} rg_shard;

/** Operators of one pass on one rank, equal ones of equal layers merged, in order of execution.
 * Errors: RG_ERR_MODEL when the shard does not divide the model in a way that engines accept. */
rg_status rg_pass_ops(rg_arena *arena, const rg_model *model, const rg_formats *formats,
                      const rg_shard *shard, const rg_pass *pass, rg_op_list *out, rg_err *err);

/** Bytes of weights, KV per token, recurrent state per sequence on one rank. */
rg_bytes rg_shard_weight_bytes(const rg_model *model, const rg_formats *formats,
                               const rg_shard *shard);
rg_bytes
rg_shard_kv_bytes(const rg_model *model, const rg_formats *formats, const rg_shard *shard,
                  double context_tokens /* one sequence of this length, windows applied */);
rg_bytes rg_shard_state_bytes(const rg_model *model, const rg_shard *shard);
/** Largest activations alive at once in a pass of so many tokens (rows of logits apart). */
rg_bytes rg_shard_activation_bytes(const rg_model *model, const rg_formats *formats,
                                   const rg_shard *shard, int64_t tokens, int64_t logit_rows);

#endif

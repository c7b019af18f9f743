/* model/pass.h: what one forward pass processes, and which part of the model a rank holds.
 *
 * Reads model/spec.h, model/op.h. From these three comes the operator list of one rank. A caller
 * that asks often prepares a plan once and fills it per pass; the fill allocates nothing.
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

/** One pass: any mix of chunks and decodes (continuous batching). With data-parallel attention it
 * is the pass of the whole tp group, of which a rank's attention takes an equal part. */
typedef struct rg_pass {
    const rg_chunk *chunks;
    int chunk_count;
    int64_t decodes;           /* sequences that decode */
    int64_t tokens_per_decode; /* 1; 1 + drafts when verifying speculation */
    double decode_kv_tokens;   /* sum over the decoding sequences */
    double decode_kv_max;      /* longest of them */
    int64_t logit_rows; /* rows through the LM head; 0: one for each decode token and chunk */
    bool follows;       /* right behind another pass: a pipeline is full when this one begins */
} rg_pass;

/** Formats and choices of the engine that shape the operators. */
typedef struct rg_formats {
    rg_format weight; /* linear layers and experts */
    rg_format expert; /* routed experts where they differ; name empty: as weight */
    rg_format mixer;  /* attention and SSM projections where they differ; name empty: as weight */
    rg_format head;   /* LM head and embedding (often kept in bf16) */
    rg_format kv;
    rg_dtype act;  /* activations in memory */
    rg_dtype math; /* product type of layers in the weight format; attention uses act, or fp8 with
                      an fp8 cache; layers in other formats use the type of their format */
    rg_kv_layout kv_layout; /* what is kept: windows capped or not, MLA as latent or expanded */
    bool fused_attention;
    int64_t page_tokens;
    double moe_skew; /* power-law exponent of the expert loads; 0 = even */
} rg_formats;

/** Formats from a checkpoint and a user's words. weight, kv and act are names or NULL: then weights
 * and KV are as the checkpoint has them (else its dtype, fp32 loaded as bf16; else bf16), act bf16
 * or fp16. A weight that is given holds for experts and attention too; embedding and head keep the
 * checkpoint's dtype. Errors: RG_ERR_INPUT for unknown names. */
rg_status rg_formats_choose(const rg_model *model, const char *weight, const char *kv,
                            const char *act, rg_formats *out, rg_err *err);

/** What one rank holds. tp divides heads and FFN width; ep divides experts; layers by range. Zeros
 * mean 1 (layer_count: all). */
typedef struct rg_shard {
    int64_t tp, attention_tp;         /* attention_tp < tp: data-parallel attention; 0 = tp */
    int64_t ep, expert_tp;            /* expert_tp 0 = tp when ep is 1, else tp / ep, at least 1 */
    int64_t expert_replicas;          /* extra copies of experts on all ep ranks together */
    int64_t ep_groups;                /* tp groups whose tokens meet in these experts (wide EP) */
    int64_t cp;                       /* KV of a sequence split over cp ranks */
    int64_t first_layer, layer_count; /* layer_count 0 = all */
    bool embedding, head;             /* holds the first, the last stage */
} rg_shard;

/** Whether engines can split the model so; RG_ERR_MODEL with the reason when not: query heads must
 * divide by attention_tp, KV heads by it or it by them (then KV heads are copied), FFN and expert
 * widths by their tp, SSM heads by attention_tp, experts by ep. */
rg_status rg_shard_check(const rg_model *model, const rg_shard *shard, rg_err *err);

/** Operators of one pass on one rank, equal ones of equal layers merged, in order of execution.
 * Errors: RG_ERR_MODEL when the shard does not divide the model in a way that engines accept, or
 * the pass is empty. */
rg_status rg_pass_ops(rg_arena *arena, const rg_model *model, const rg_formats *formats,
                      const rg_shard *shard, const rg_pass *pass, rg_op_list *out, rg_err *err);

/** Everything of rg_pass_ops that does not depend on the pass. Immutable once prepared. */
typedef struct rg_pass_plan rg_pass_plan;
rg_status rg_pass_prepare(rg_arena *arena, const rg_model *model, const rg_formats *formats,
                          const rg_shard *shard, rg_pass_plan **out, rg_err *err);
/** Most operators that a fill writes. */
int rg_pass_plan_capacity(const rg_pass_plan *plan);
/** The operators of a pass into items[rg_pass_plan_capacity(plan)]; allocates nothing, returns how
 * many. A pass without tokens gives 0. */
int rg_pass_fill(const rg_pass_plan *plan, const rg_pass *pass, rg_op *items);
/** Tokens of a pass, and rows through its LM head. */
int64_t rg_pass_tokens(const rg_pass *pass);
int64_t rg_pass_logit_rows(const rg_pass *pass);

/** Bytes of weights, KV per token, recurrent state per sequence on one rank. */
rg_bytes rg_shard_weight_bytes(const rg_model *model, const rg_formats *formats,
                               const rg_shard *shard);
/** KV of one sequence of this length in formats->kv_layout. */
rg_bytes rg_shard_kv_bytes(const rg_model *model, const rg_formats *formats, const rg_shard *shard,
                           double context_tokens);
/** The same in any layout, in pages of formats->page_tokens where the layout has pages. */
rg_bytes rg_shard_kv_bytes_in(const rg_model *model, const rg_formats *formats,
                              const rg_shard *shard, rg_kv_layout layout, double context_tokens);
rg_bytes rg_shard_state_bytes(const rg_model *model, const rg_shard *shard);
/** Largest activations alive at once in a pass of so many tokens (rows of logits apart): the
 * residual stream twice, and the widest of what a layer holds beside it; logits in fp32. */
rg_bytes rg_shard_activation_bytes(const rg_model *model, const rg_formats *formats,
                                   const rg_shard *shard, int64_t tokens, int64_t logit_rows);

#endif

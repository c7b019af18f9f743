/* model/pass_plan.h: templates of operators, from which a pass is filled and weights are summed.
 *
 * Reads model/pass.h. Shared by pass.c, pass_layers.c and shard.c only.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_MODEL_PASS_PLAN_H
#define RG_MODEL_PASS_PLAN_H

#include "model/pass.h"

/** What the number of rows of an operator follows. */
typedef enum rg_rows {
    RG_ROWS_ALL,       /* tokens of the tp group's pass */
    RG_ROWS_ATTENTION, /* tokens of which this rank does the attention */
    RG_ROWS_EXPERTS,   /* tokens of all groups that share the experts */
    RG_ROWS_DECODE,    /* decode tokens of this rank */
    RG_ROWS_SPAN,      /* prefill: past and new tokens of this rank's chunks */
    RG_ROWS_LOGITS,
} rg_rows;

typedef enum rg_template_kind {
    RG_TEMPLATE_GEMM,
    RG_TEMPLATE_ATTENTION, /* a prefill and a decode operator */
    RG_TEMPLATE_MLA,       /* the same */
    RG_TEMPLATE_INDEX,     /* scores of a sparse indexer */
    RG_TEMPLATE_MOE,
    RG_TEMPLATE_STREAM, /* also embed, scan, sample */
} rg_template_kind;

/** One operator before its rows are known. */
typedef struct rg_template {
    rg_template_kind kind;
    rg_rows rows;
    rg_op op;             /* shape, formats, count */
    bool chunked;         /* attention within chunks of op's window */
    bool copy;            /* weights are another operator's */
    double stored, whole; /* weight elements on this rank, in the whole model */
    /* streams: per row, and per sequence (recurrent state) */
    double row_read, row_write, row_flops, row_weight;
    double sequence_read, sequence_write;
} rg_template;

/** A shard with its zeros resolved. */
typedef struct rg_split {
    int64_t tp, attention_tp, attention_groups, ep, expert_tp, ep_groups, cp, first, count;
    int64_t expert_replicas;
    bool embedding, head;
} rg_split;
rg_split rg_split_of(const rg_model *model, const rg_shard *shard);

typedef struct rg_template_sink {
    void (*take)(void *context, const rg_template *item);
    void *context;
} rg_template_sink;

/** All templates of a rank, in order of execution, to the sink. Layers that are equal come once,
 * with their number as count. */
void rg_templates_emit(const rg_model *model, const rg_formats *formats, const rg_shard *shard,
                       const rg_template_sink *sink);

struct rg_pass_plan {
    rg_template *items;
    int count, capacity;
    rg_split split;
};

static inline int64_t rg_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
/** KV heads of a rank: at least one, copied when there are more ranks than heads. */
static inline int64_t rg_split_kv_heads(const rg_layer *layer, int64_t attention_tp)
{
    return layer->kv_heads >= attention_tp ? rg_ceil_div(layer->kv_heads, attention_tp)
           : layer->kv_heads > 0           ? 1
                                           : 0;
}
const rg_format *rg_formats_expert(const rg_formats *formats);
const rg_format *rg_formats_mixer(const rg_formats *formats);

#endif

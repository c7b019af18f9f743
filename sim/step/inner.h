/* step/inner.h: what the files of step share; nobody else reads it.
 *
 * Reads step/step.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_STEP_INNER_H
#define RG_STEP_INNER_H

#include "step/step.h"

/* Times by a number of rows: every number up to EXACT_ROWS, then 128 places an octave with straight
 * lines between them. Filled when first asked for; a place's value depends on nothing but its
 * number of rows. */
enum {
    EXACT_ROWS = 512,
    PLACES_PER_OCTAVE = 128,
    OCTAVES = 15, /* up to 16 Mi rows */
    PLACES = EXACT_ROWS + OCTAVES * PLACES_PER_OCTAVE + 1,
    MOST_COMMS = 16,
    MOST_STAGES = 128,
    MOST_HOP_KINDS = 8, /* PCIe switch, socket, sockets apart, network; a few to spare */
};

/** Sums over operators and communications. */
typedef struct step_cost {
    double compute, communication; /* s */
    double flops, bytes;           /* of this rank */
    double kernels;                /* launches */
} step_cost;

/** An operator of the plan, with its time by rows where rows decide it (products, experts). */
typedef struct known_op {
    const char *name;
    rg_op_kind kind;
    double *time; /* [PLACES], NaN where not known yet; NULL: asked anew each time */
} known_op;

/** One pipeline stage on one of its ranks. */
typedef struct stage {
    rg_shard shard;
    int same_as; /* an earlier stage with equal layers, or itself */
    int64_t mixers, dense_ffns, moes;
    int64_t full_norms;                    /* layers whose Q and K are normed over all heads */
    int64_t moe_width;                     /* hidden, or the experts' latent width */
    int64_t attentions;                    /* layers with a KV cache */
    int64_t heads, value_dim, kv_elements; /* of the widest attention layer, whole model */
    double top_k;                          /* experts of a token */
    rg_pass_plan *plan;
    rg_op *items; /* [rg_pass_plan_capacity] of the pass at hand */
    known_op *ops;
    int op_count;
    bool indexed;         /* decode has an operator beside attention that depends on the cache */
    step_cost *decode;    /* [PLACES] pure decode passes without attention; kernels < 0: unknown */
    int64_t decode_width; /* tokens_per_decode of that table and of the templates */
    rg_op *decode_attention; /* templates */
    int decode_attention_count;
} stage;

/** Hops from one stage to the next over links that are alike. */
typedef struct stage_hop {
    int64_t first; /* device that sends in the slowest of its ranks */
    int64_t count; /* how many of the pp - 1 hops are like that */
    double time_s; /* of 1 MiB, to tell kinds apart */
} stage_hop;

struct rg_step_context {
    const rg_cluster *cluster;
    const rg_model *model;
    rg_formats formats;
    rg_parallel parallel;
    rg_engine engine;
    rg_kernel_options options;
    rg_kernel_device *device;
    rg_coll_context *coll;
    stage *stages; /* [pp] */
    int stage_count;
    stage_hop hops[MOST_HOP_KINDS];
    int hop_kinds;           /* 0 with one stage */
    int64_t attention_ranks; /* ranks among which sequences are dealt out: tp with attention_dp */
    int64_t expert_ranks;    /* ep group */
    bool exchange;           /* tokens move to the ranks of their experts and back */
    double expert_imbalance; /* rows of the busiest expert rank over the mean, capacity applied */
    double dropped_ratio;    /* rows beyond capacity */
    double dispatch_bytes;   /* of an element that is dispatched */
    double quantise_rate;    /* byte/s of the engine's quantising kernel; 0: none of its own */
};

/** Name, query and count of a communication of the pass. */
typedef struct comm {
    const char *name;
    rg_coll_query query;
    int64_t count;
    bool hop; /* to the next stage: two ranks, and nobody else waits */
} comm;

/** A pass in the numbers that communication depends on. */
typedef struct pass_size {
    int64_t tokens;      /* of the tp group */
    int64_t rank_tokens; /* of which one rank does the attention */
    int64_t decode_tokens, chunk_tokens, rows;
    bool prefills;
} pass_size;

/** First layer and number of layers of a stage, as engines divide. */
void rg_step_stage_layers(int64_t layers, int64_t stages, int64_t index, int64_t *first,
                          int64_t *count);
pass_size rg_step_size(const rg_step_context *x, const rg_pass *pass);
/** Communications of a stage; returns their number. */
int rg_step_comms(const rg_step_context *x, const stage *s, const pass_size *size,
                  comm out[MOST_COMMS]);
/** Hops of activations to the next stage, one for each kind of link; returns their number. */
int rg_step_stage_hops(const rg_step_context *x, int64_t tokens, comm out[MOST_HOP_KINDS]);
/** Expert loads to imbalance and drops. */
rg_status rg_step_expert_balance(rg_arena *arena, rg_step_context *x, rg_err *err);
/** Operators of a pass on a stage into s->items, experts with the busiest rank's rows. */
int rg_step_fill(const rg_step_context *x, const stage *s, const rg_pass *pass);
/** Time of a communication, waiting for the last rank included. */
rg_status rg_step_comm_time(const rg_step_context *x, const comm *c, rg_coll_result *out,
                            rg_err *err);
/** Plan, operators and tables of a stage whose shard is set. */
rg_status rg_step_stage_prepare(rg_arena *arena, const rg_step_context *x, stage *s, rg_err *err);
/** Cost of a pass on a stage. */
rg_status rg_step_stage_cost(rg_step_context *x, int index, const rg_pass *pass, step_cost *sum,
                             rg_err *err);
bool rg_step_is_decode_attention(const rg_op *op);
/** Kernels that an engine launches for an operator. */
double rg_step_launches_of(const rg_op *op);
/** Kernel time with what the engine's graphs save. */
rg_status rg_step_op_time(const rg_step_context *x, const rg_op *op, rg_kernel_time *out,
                          rg_err *err);

#endif

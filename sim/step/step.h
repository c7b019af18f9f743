/* step/step.h: one pass of a model on a parallel arrangement of devices, split by cause.
 *
 * Reads kernel, net, model, hw. Used by estimate, serve, plan and train.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_STEP_STEP_H
#define RG_STEP_STEP_H

#include "hw/cluster.h"
#include "kernel/kernel.h"
#include "model/pass.h"

/** How the model is spread. All 1 = one device. */
typedef struct rg_parallel {
    int64_t tp, pp, ep, cp, dp;
    bool attention_dp;      /* attention data-parallel over the tp group (DeepSeek style) */
    bool sequence_parallel; /* reduce-scatter + all-gather in place of all-reduce */
    int64_t pp_interleave, micro_batches;
} rg_parallel;

/** Engine constants: parameters of a serving engine, in a YAML, each with its meaning and source.
 */
typedef struct rg_engine {
    const char *name;       /* "vllm", "sglang", "trtllm" */
    double step_overhead_s; /* host work per step that is not hidden */
    double per_sequence_s;  /* host work per sequence in the step */
    double overlap_ratio;   /* share of communication hidden behind compute, 0..1 */
    bool async_scheduling;
    bool cuda_graphs;
    double memory_utilisation; /* share of device memory that the engine may take */
    double reserve_bytes;      /* context, graphs, fragmentation */
    int64_t max_batched_tokens, max_sequences, block_tokens;
} rg_engine;

typedef struct rg_step_time {
    rg_seconds total;
    rg_seconds compute;       /* kernels of the busiest rank */
    rg_seconds communication; /* not hidden */
    rg_seconds bubble;        /* pipeline */
    rg_seconds host;          /* engine */
    rg_flops flops;           /* model flops of the pass, all ranks */
    rg_bytes bytes;           /* device memory bytes that had to move, one rank */
} rg_step_time;

typedef struct rg_step_context rg_step_context;

/** Everything resolved once for (cluster, model, formats, parallel, engine). Errors: RG_ERR_MODEL
 * with the reason when the arrangement is not possible. */
rg_status rg_step_prepare(rg_arena *arena, const rg_cluster *cluster, const rg_model *model,
                          const rg_formats *formats, const rg_parallel *parallel,
                          const rg_engine *engine, const rg_kernel_options *options,
                          rg_step_context **out, rg_err *err);
/** Time of one pass. Allocates nothing; safe to call millions of times. */
rg_status rg_step_time_of(rg_step_context *context, const rg_pass *pass, rg_step_time *out,
                          rg_err *err);

/** One line of a pass's account: an operator, or a communication, as often as the pass has it. */
typedef struct rg_step_part {
    const char *name; /* "qkv_proj", "all_reduce attention" */
    int64_t count;
    bool communication;
    rg_op op;            /* operators */
    rg_kernel_time time; /* of one; communications fill total and bound */
    rg_bytes message;    /* communications: bytes on each rank */
    int64_t ranks;
    const char *algorithm;
} rg_step_part;
/** The account of one pass on the busiest rank, in order of execution. */
rg_status rg_step_parts(rg_arena *arena, rg_step_context *context, const rg_pass *pass,
                        const rg_step_part **parts, int *count, rg_err *err);

/** Memory of the fullest rank when so many sequences of so many tokens are held. */
typedef struct rg_step_memory {
    rg_bytes capacity; /* of the device, as the driver gives it */
    rg_bytes usable;   /* capacity times the engine's memory_utilisation */
    rg_bytes weights, activations, kv, state, reserve, total;
    rg_bytes kv_per_token; /* growth of one sequence */
    int64_t max_sequences; /* of this length that fit; 0 when the weights alone do not */
} rg_step_memory;
rg_status rg_step_memory_of(rg_step_context *context, int64_t sequences, double tokens_each,
                            rg_step_memory *out, rg_err *err);

/** Engine constants by name ("vllm") or path; YAML under hw/engines. */
rg_status rg_engine_load(rg_arena *arena, const char *name_or_path, rg_engine *out, rg_err *err);

#endif

/* step/step.h: one pass of a model on a parallel arrangement of devices, split by cause.
 *
 * Reads kernel, net, model, hw. Used by estimate, serve, plan and train.
 *
 *   device = sum over operators of count x kernel time, + communication that no compute hides
 *   total  = device + gap + host            (host work waits for the device)
 *          = max(device + gap, host)        (asynchronous scheduling)
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_STEP_STEP_H
#define RG_STEP_STEP_H

#include "hw/cluster.h"
#include "kernel/kernel.h"
#include "model/pass.h"
#include "net/coll.h"

/** How the model is spread. All 1 = one device; 0 counts as 1. Ranks are laid out tp innermost,
 * then cp, pp, dp, so that the most talkative neighbours share a scale-up domain. */
typedef struct rg_parallel {
    int64_t tp, pp, ep, cp, dp;
    bool attention_dp;      /* attention data-parallel over the tp group (DeepSeek style) */
    bool sequence_parallel; /* reduce-scatter + all-gather in place of all-reduce */
    int64_t pp_interleave;  /* model chunks of a stage (training) */
    int64_t micro_batches;  /* of a pass over the pipeline; 0 = pp */
    /* further choices; all 0 is the usual */
    bool cp_all_gather;        /* cp: gather K and V instead of passing them round a ring */
    bool ep_all_to_all;        /* attention_dp or ep over dp: dispatch and combine by all-to-all
                                  instead of all-gather and reduce-scatter */
    int64_t expert_replicas;   /* extra copies of the busiest experts, over all ranks */
    double capacity_factor;    /* MoE: room of an expert over its even share; 0 = no limit */
    bool capacity_drop;        /* tokens beyond it are dropped; else all are padded up to it */
    const double *expert_load; /* [experts] share of the rows of each; NULL: formats' moe_skew */
    int64_t expert_load_count;
} rg_parallel;

/** What an engine's memory_utilisation is a share of. */
typedef enum rg_memory_share {
    RG_SHARE_TOTAL,  /* all memory; weights, activations, graphs and KV have to go in (vLLM) */
    RG_SHARE_STATIC, /* all memory; weights and KV go in, the rest lives beside them (SGLang) */
    RG_SHARE_FREE,   /* what weights, activations and graphs leave; KV alone (TensorRT-LLM) */
} rg_memory_share;

/** Engine constants: parameters of a serving engine, in a YAML, each with its meaning and source.
 */
typedef struct rg_engine {
    const char *name;                /* "vllm", "sglang", "trtllm" */
    double step_overhead_s;          /* host work per step that is not hidden */
    double per_sequence_s;           /* host work per sequence in the step */
    double overlap_ratio;            /* share of communication hidden behind compute, 0..1 */
    bool async_scheduling;           /* the next step is scheduled while this one runs */
    bool cuda_graphs;                /* decode steps are replayed; else every kernel is launched */
    double memory_utilisation;       /* share of device memory that the engine may take */
    rg_memory_share memory_share_of; /* of which memory it is the share */
    double bytes_per_logit;          /* at the peak of sampling; 0: as vLLM's profile */
    double reserve_bytes;            /* context, graphs, fragmentation */
    int64_t max_batched_tokens, max_sequences, block_tokens;
    const char *title, *path, *note;
    double device_gap_s;         /* device idle between two steps, even when host work is hidden */
    double attention_skew_ratio; /* of decode attention's time: what follows the longest sequence; 0
                                    when the file gives none, and not calibrated for any engine */
    double rank_wait_s; /* at every collective, for the last of two ranks; x log2 of the ranks */
    double launch_s;    /* host time to launch one kernel outside a graph */
    double quantise_s;  /* kernel that quantises a product's input; 0: the kernel before does it */
    double graph_kernel_s;          /* taken off each kernel's start-up inside a graph */
    rg_coll_library collectives;    /* all-reduce kernels: the engine's own, or the library's */
    bool quantises;                 /* quantise_s holds in place of the kernel model's account */
    rg_expert_library experts;      /* whose block-scaled experts run */
    rg_attention_library attention; /* whose attention runs where the caller does not say */
    const rg_named_figure *figures; /* every constant with its source */
    int figure_count;
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

/** Whether the arrangement is possible at all, without the cost of preparing it; zeros become 1.
 * Errors: RG_ERR_MODEL with the reason. */
rg_status rg_step_check(const rg_cluster *cluster, const rg_model *model, rg_parallel *parallel,
                        rg_err *err);

/** Everything resolved once for (cluster, model, formats, parallel, engine). Errors: RG_ERR_MODEL
 * with the reason when the arrangement is not possible. */
rg_status rg_step_prepare(rg_arena *arena, const rg_cluster *cluster, const rg_model *model,
                          const rg_formats *formats, const rg_parallel *parallel,
                          const rg_engine *engine, const rg_kernel_options *options,
                          rg_step_context **out, rg_err *err);
/** Kernel devices that arrangements on the same machine share. Starts as zeros; lives as long as
 * the arena. */
enum { RG_STEP_SHARED = 32 };
typedef struct rg_step_shared {
    const rg_accel *accel[RG_STEP_SHARED];
    rg_kernel_options options[RG_STEP_SHARED];
    rg_kernel_device *device[RG_STEP_SHARED];
    int count;
} rg_step_shared;
/** The same as rg_step_prepare, with constants resolved once for each machine; for searches over
 * thousands of arrangements. */
rg_status rg_step_prepare_shared(rg_arena *arena, rg_step_shared *shared, const rg_cluster *cluster,
                                 const rg_model *model, const rg_formats *formats,
                                 const rg_parallel *parallel, const rg_engine *engine,
                                 const rg_kernel_options *options, rg_step_context **out,
                                 rg_err *err);
/** The constants of its devices, as the engine's choices leave them. */
const rg_kernel_device *rg_step_kernels(const rg_step_context *context);
/** Time of one pass. Allocates nothing; safe to call millions of times. Fills tables of the context
 * as it goes, so a context belongs to one thread at a time. */
rg_status rg_step_time_of(rg_step_context *context, const rg_pass *pass, rg_step_time *out,
                          rg_err *err);

/** One line of a pass's account: an operator, or a communication, as often as the pass has it. */
typedef struct rg_step_part {
    const char *name; /* "qkv_proj", "all_reduce attention" */
    int64_t count;
    bool communication;
    bool hop;            /* communication to the next stage */
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
    rg_bytes usable;   /* of it, what the engine fills by its memory_utilisation */
    rg_bytes weights, activations, kv, state, reserve, total;
    rg_bytes kv_per_token; /* growth of one sequence */
    int64_t max_sequences; /* of this length that fit; 0 when the weights alone do not */
} rg_step_memory;
rg_status rg_step_memory_of(rg_step_context *context, int64_t sequences, double tokens_each,
                            rg_step_memory *out, rg_err *err);

/** How evenly experts' rows fall on ranks. */
typedef struct rg_step_balance {
    double imbalance;     /* rows of the busiest expert rank over the mean */
    double dropped_ratio; /* of all rows, beyond the experts' capacity */
} rg_step_balance;
void rg_step_balance_of(const rg_step_context *context, rg_step_balance *out);

/** Engine constants by name ("vllm") or path; YAML under hw/engines. */
rg_status rg_engine_load(rg_arena *arena, const char *name_or_path, rg_engine *out, rg_err *err);
/** The same with what-if changes of scope "engine". */
rg_status rg_engine_load_changed(rg_arena *arena, const char *name_or_path,
                                 const rg_changes *changes, rg_engine *out, rg_err *err);

/** The same from a document that is read already. */
rg_status rg_engine_read(rg_arena *arena, rg_node *root, rg_engine *out, rg_err *err);
/** No host work and all of the memory: the bare device. */
rg_engine rg_engine_ideal(void);

/** Weights of a type that the device does not multiply are expanded to the activations' type before
 * the product, and where it lacks one 16-bit type all that is in it is run in the other. Returns
 * which were changed: bit 0 linear layers, 1 experts, 2 attention, 3 the 16-bit type. */
unsigned rg_formats_expand(const rg_accel *accel, rg_formats *formats);

/** Take the engine's own time out: only kernels and links remain. */
void rg_engine_without_host(rg_engine *engine);

#endif

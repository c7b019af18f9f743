/* step/train.h: time, memory and utilisation of one training step.
 *
 * Reads step/step.h. One micro-batch forward is a pass of whole sequences with all logits; backward
 * is built operator by operator; the pipeline, the gradients and the optimiser come on top.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_STEP_TRAIN_H
#define RG_STEP_TRAIN_H

#include "step/step.h"

typedef enum rg_recompute {
    RG_RECOMPUTE_NONE,
    RG_RECOMPUTE_SELECTIVE, /* attention's inside is computed again; flash attention always does */
    RG_RECOMPUTE_FULL,      /* every layer is run forward again from its input */
    RG_RECOMPUTE_COUNT,
} rg_recompute;
const char *rg_recompute_name(rg_recompute recompute);

typedef struct rg_train {
    int64_t sequence_tokens;
    int64_t micro_batch;  /* sequences of one micro-batch on one replica */
    int64_t global_batch; /* sequences of one optimiser step, all replicas */
    int zero; /* 0 all states on every replica; 1 optimiser, 2 and gradients, 3 and weights
                 split over dp (FSDP) */
    rg_recompute recompute;
    double weight_bytes, gradient_bytes, optimiser_bytes; /* of one parameter: 2, 4, 12 */
    double overlap_ratio; /* share of gradient and weight traffic behind backward compute */
    rg_coll_algorithm gradient_algorithm;
} rg_train;

/** 2-byte weights, 4-byte gradients, fp32 copy and two moments, half of the traffic hidden. */
rg_train rg_train_defaults(void);

/** A collective over the replicas, on the fullest device. */
typedef struct rg_train_traffic {
    rg_bytes bytes;     /* of one call: the whole gradients or weights that a device works with */
    int64_t calls;      /* of a step */
    rg_seconds each;    /* one call, nothing hidden */
    rg_seconds exposed; /* all calls, what compute does not hide */
} rg_train_traffic;

typedef struct rg_train_time {
    rg_seconds total;
    rg_seconds forward, backward, recompute; /* compute of all micro-batches, slowest stage */
    rg_seconds communication;                /* tensor, expert, context parallel and stage hops */
    rg_seconds bubble;                       /* pipeline fill and drain */
    rg_seconds gradients;                    /* reduce.exposed + gather.exposed */
    rg_seconds optimiser;
    int64_t micro_batches, devices;
    rg_flops model_flops; /* 3 x forward of the whole model, however it is split; causal half of
                             attention, nothing computed again */
    double mfu_ratio, hfu_ratio; /* of the dense peak; hfu counts recomputation too */
    double tokens_per_s, tokens_per_s_per_device;
    double parameters_per_device;
    /* memory of the fullest device */
    rg_bytes weights, gradient_memory, optimiser_memory, activations, memory, capacity;
    bool fits;
    rg_train_traffic reduce;      /* gradients: all-reduce, from ZeRO 1 on reduce-scatter */
    rg_train_traffic gather;      /* weights, from ZeRO 1 on */
    rg_coll_query gradient_query; /* the reduction; no ranks with one replica */
} rg_train_time;

/** One training step. options may be NULL. Errors: RG_ERR_MODEL when the batch does not divide over
 * replicas and micro-batches, or the arrangement is not possible (rg_step_prepare). */
rg_status rg_train_step(rg_arena *arena, const rg_cluster *cluster, const rg_model *model,
                        const rg_formats *formats, const rg_parallel *parallel,
                        const rg_train *train, const rg_kernel_options *options, rg_train_time *out,
                        rg_err *err);

#endif

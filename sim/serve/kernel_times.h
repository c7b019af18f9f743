/* serve/kernel_times.h: step time from given operator times instead of ridge's own model.
 *
 * Reads core, model/pass.h. A folder holds dense.csv (layer,tokens,time_us), per_sequence.csv
 * (layer,sequences or tokens,time_us), attention.csv (prefill_chunk,kv_prefill,n_decode,kv_decode,
 * time_us) and, for experts, moe.csv (tokens[,activated_experts],time_us), all for one device of a
 * tensor-parallel group and for one layer, as profilers of serving simulators write them. Or it
 * holds Vidur's mlp.csv and attention.csv, or LLMServingSim's older layers.csv and attention.csv.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_KERNEL_TIMES_H
#define RG_SERVE_KERNEL_TIMES_H

#include "core/arena.h"
#include "core/units.h"
#include "model/pass.h"

/** How the tables add up to a pass. */
typedef struct rg_kernel_times_use {
    int64_t layers;         /* of the model */
    int64_t moe_layers;     /* of them with experts; their dense FFN rows do not count */
    int64_t experts, top_k; /* for the number of experts a pass touches */
    int64_t hidden, vocab;
    int64_t tp;                /* ranks that reduce after attention and after the FFN */
    double reduce_latency_s;   /* of one all-reduce */
    double reduce_bytes_per_s; /* algorithm bandwidth times 2(n-1)/n, per rank */
    bool pad_to_graphs;        /* token counts are rounded up to captured CUDA graph sizes */
    int64_t largest_graph;     /* no padding above */
} rg_kernel_times_use;

typedef struct rg_kernel_times rg_kernel_times;

/** Load a folder (or its tp<N> below). Errors: RG_ERR_IO, RG_ERR_INPUT with file, line, column. */
rg_status rg_kernel_times_load(rg_arena *arena, const char *folder, const rg_kernel_times_use *use,
                               rg_kernel_times **out, rg_err *err);
/** Time of a pass; the context of rg_step_model. */
rg_seconds rg_kernel_times_step(void *kernel_times, const rg_pass *pass);
/** Parts of it, for tests and accounts: dense layers, attention, heads, experts, reductions. */
typedef struct rg_kernel_times_parts {
    double dense_s, attention_s, head_s, moe_s, reduce_s;
} rg_kernel_times_parts;
rg_kernel_times_parts rg_kernel_times_of(const rg_kernel_times *times, const rg_pass *pass);
/** Change how reductions cost (fitting). */
void rg_kernel_times_set_reduce(rg_kernel_times *times, double latency_s, double bytes_per_s);
/** In words: layers found and how often each is counted. */
const char *rg_kernel_times_note(const rg_kernel_times *times);
/** vLLM's captured sizes: 1, 2, 4, eights to 256, then sixteens. */
int64_t rg_graph_tokens(int64_t tokens, int64_t largest);

#endif

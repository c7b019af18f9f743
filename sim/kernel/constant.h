/* kernel/constant.h: the constants of the kernel models: what each means, its unit and its range.
 *
 * Reads core. A group is one kind of kernel (a product in one format, decode attention, ...);
 * groups of one family share a list of constants. Values come from the fit: section of hardware
 * files; `start` is the physical guess from which a fit begins and which stands where nothing was
 * fitted.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNEL_CONSTANT_H
#define RG_KERNEL_CONSTANT_H

#include <stdbool.h>

typedef enum rg_kernel_group {
    RG_KG_GEMM_BF16, /* also fp16, tf32, fp32 */
    RG_KG_GEMM_FP8,
    RG_KG_GEMM_FP8_BLOCK,
    RG_KG_GEMM_INT8,
    RG_KG_GEMM_INT8_WO,
    RG_KG_GEMM_INT4_WO,
    RG_KG_GEMM_NVFP4,
    RG_KG_BMM_BF16,
    RG_KG_BMM_FP8,
    RG_KG_PREFILL,
    RG_KG_ENCODER,
    RG_KG_DECODE,
    RG_KG_MLA_PREFILL,
    RG_KG_MLA_DECODE,
    RG_KG_MOE_BF16,
    RG_KG_MOE_FP8,
    RG_KG_MOE_FP8_BLOCK,
    RG_KG_MOE_W4,
    RG_KG_STREAM,
    RG_KG_COUNT,
} rg_kernel_group;

enum { RG_KC_MAX = 24 }; /* constants in a group */

/** One constant. */
typedef struct rg_kernel_constant {
    const char *name; /* key in the hardware file; carries the unit */
    double start, lower, upper;
    double spread; /* prior deviation of ln(value) about start: what is known before a fit */
    bool software; /* follows the kernel library; false: follows the machine's generation */
    const char *meaning;
} rg_kernel_constant;

typedef struct rg_kernel_group_info {
    const char *name; /* key under fit: */
    const rg_kernel_constant *constants;
    int count;
    int fallback; /* group whose values serve where this one has none; -1: the start values */
} rg_kernel_group_info;

extern const rg_kernel_group_info rg_kernel_groups[RG_KG_COUNT];

/* Products. Y[m,n] = X[m,k] W[n,k]. */
enum {
    RG_GEMM_START,   /* start_cycles: launch, first loads, last stores, filling and draining once */
    RG_GEMM_WAVE,    /* wave_cycles: draining and filling the pipeline between two waves of tiles */
    RG_GEMM_L2_SM,   /* l2_sm_bytes_per_cycle: L2 to one SM while a tile's operands stream in */
    RG_GEMM_COMPUTE, /* compute_ratio: share of the matrix peak in a tile's main loop, bursts */
    RG_GEMM_SUSTAINED, /* sustained_ratio: share of it that all SMs together keep in long runs */
    RG_GEMM_MEMORY,    /* memory_ratio: share of the memory bandwidth */
    RG_GEMM_SPLIT,     /* split_cycles: reduction of a split K, beside its bytes */
    RG_GEMM_OVERLAP,   /* overlap_power: p of (a^p + b^p)^(1/p) that joins SM and memory time */
    RG_GEMM_L2_SHARE,  /* l2_share_ratio: part of L2 that holds data for repeated reads */
    RG_GEMM_L2_RATE,   /* l2_ratio: share of the L2 rate that operands found there reach */
    RG_GEMM_QUANTISE,  /* quantise_us: kernels that quantise X, launched before the product */
    RG_GEMM_QUANTISE_PASSES, /* quantise_passes_ratio: times X is moved by them */
    RG_GEMM_EMPTY_ROW,       /* empty_row_cycles: a row of a tile beyond m, in each step of K */
    RG_GEMM_CONVERT,         /* convert_cycles: a column of weights to the product's type, a step */
    RG_GEMM_COUNT,
};

/* Fused attention over many query tokens. */
enum {
    RG_PRE_START,    /* start_cycles: launch of the attention kernel */
    RG_PRE_PREPARE,  /* prepare_cycles: launches of RoPE, QKV preparation and cache write */
    RG_PRE_HEAD,     /* prepare_head_cycles: a query head of 128 of one token in them, on one SM */
    RG_PRE_TILE,     /* tile_cycles: start and end of one tile of 128 query rows */
    RG_PRE_COMPUTE,  /* compute_ratio: share of the matrix peak in the two products */
    RG_PRE_SOFTMAX,  /* softmax_ratio: time of the exponentials over 16 a cycle and SM, 16 bit */
    RG_PRE_SOFTMAX8, /* softmax_fp8_ratio: the same with products in 8 bit (P is converted) */
    RG_PRE_TAIL,     /* tail_ratio: part of the longest tile that ends alone */
    RG_PRE_IO,       /* io_passes_ratio: times that Q, K, V and the result move at full rate */
    RG_PRE_FUSED,    /* fused_prepare_ratio: launches left for a 16-bit cache and head_dim 128 */
    RG_PRE_WINDOW,   /* window_ratio: a step's growth where a window drops the library back to its
                      * older kernel: 16-bit queries, 8-bit cache, warp-group machines */
    RG_PRE_SHORT,    /* short_rows_ratio: work of a tile with rows for one of two warp groups */
    RG_PRE_ALONE,    /* alone_ratio: a step's growth in a tile that has an SM for two to itself */
    RG_PRE_WRITE,    /* write_warp_cycles: a warp of the kernel that writes the cache (vLLM) */
    RG_PRE_COUNT,
};

/* Attention of few query tokens against a cache. */
enum {
    RG_DEC_START,    /* start_cycles: launch, with RoPE and cache write, 16-bit cache */
    RG_DEC_CTA,      /* cta_cycles: one work unit (request, KV head, split) of XQA on one SM */
    RG_DEC_TILE,     /* tile_cycles: 64 tokens of head_dim 128 in one unit of XQA */
    RG_DEC_LONE,     /* lone_tile_cycles: 64 tokens in a unit of XQA that waits for each load */
    RG_DEC_MERGE,    /* merge_cycles: joining the splits of a cache */
    RG_DEC_JOIN,     /* join_cycles: the same for each split */
    RG_DEC_MEMORY,   /* memory_ratio */
    RG_DEC_OVERLAP,  /* overlap_power */
    RG_DEC_L2_SHARE, /* l2_share_ratio */
    RG_DEC_GROUP,    /* wide_group_ratio: growth of a unit per 16 query rows beyond 16 */
    RG_DEC_START8,   /* the same for an 8-bit cache, where another kernel runs */
    RG_DEC_PREPARE8, /* prepare_8bit_cycles: a launch more where head_dim is not 128 */
    RG_DEC_CTA8,
    RG_DEC_TILE8,
    RG_DEC_MERGE8,
    RG_DEC_GROUP8,       /* per 8 rows beyond 8 */
    RG_DEC_VECTOR_START, /* vector_start_cycles: the kernel without matrix units (one CTA a head) */
    RG_DEC_VECTOR_CTA,
    RG_DEC_VECTOR_TOKEN, /* vector_token_cycles: one token of head_dim 128 that lies in L2 */
    RG_DEC_VECTOR_MISS,  /* vector_miss_ratio: delay by bytes from memory, in even shares of it */
    RG_DEC_VECTOR_MERGE,
    RG_DEC_VECTOR_MEMORY, /* vector_memory_ratio */
    RG_DEC_COPY, /* copy_cycles: query heads brought in order for groups (flash attention) */
    RG_DEC_COUNT,
};

/* Multi-head latent attention of few query tokens against its cache. */
enum {
    RG_MLA_START,    /* start_cycles */
    RG_MLA_CTA,      /* cta_cycles: one work unit (request, 64 heads, split) on one SM */
    RG_MLA_COMPUTE,  /* compute_ratio: of the matrix peak, 64 head rows against 64 tokens a step */
    RG_MLA_SOFTMAX,  /* softmax_ratio */
    RG_MLA_MEMORY,   /* memory_ratio */
    RG_MLA_PASSES,   /* prepare_passes_ratio: times that queries and results are moved */
    RG_MLA_MERGE,    /* merge_cycles */
    RG_MLA_OVERLAP,  /* overlap_power */
    RG_MLA_L2_SHARE, /* l2_share_ratio */
    RG_MLA_COUNT,
};

/* Routed experts. */
enum {
    RG_MOE_START,      /* start_cycles: routing, permutation, activation, combine: fixed cost */
    RG_MOE_EXPERT,     /* expert_cycles: one local expert's share of it */
    RG_MOE_ROUTE,      /* route_cycles: one routed row of all ranks, cycles of one SM */
    RG_MOE_SORT_START, /* general_routing_cycles: launches more where the fused kernel does not
                          serve */
    RG_MOE_SORT,       /* general_logit_cycles: one logit there, cycles of one SM */
    RG_MOE_COMPUTE,    /* compute_ratio */
    RG_MOE_MEMORY,     /* memory_ratio */
    RG_MOE_L2_SM,      /* l2_sm_bytes_per_cycle */
    RG_MOE_WAVE,       /* wave_cycles */
    RG_MOE_PASSES,     /* stream_passes_ratio: activation bytes moved over those that must */
    RG_MOE_OVERLAP,    /* overlap_power */
    RG_MOE_COUNT,
};

/* Kernels that only move bytes. */
enum {
    RG_STREAM_START,  /* start_cycles */
    RG_STREAM_MEMORY, /* memory_ratio */
    RG_STREAM_L2,     /* l2_sm_bytes_per_cycle */
    RG_STREAM_SHARE,  /* l2_share_ratio */
    RG_STREAM_COUNT,
};

/** Index of a group by its key, -1 when there is none. */
int rg_kernel_group_find(const char *name);
/** Index of a constant in its group, -1 when there is none. */
int rg_kernel_constant_find(rg_kernel_group group, const char *name);

#endif

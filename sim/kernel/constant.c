/* kernel/constant.c: the constants of the kernel models: what each means, its unit and its range.
 */
// SPDX-License-Identifier: Apache-2.0
#include "kernel/constant.h"

#include <string.h>

/* name, start, lower, upper, spread, software, meaning. Constants that a fit can only find together
 * are lent together: overlap with the rates that it joins, all of decode and of experts with the
 * kernel. Starts are round figures of the size that the mechanism has on any recent GPU; a cycle is
 * one of the boost clock. */
static const rg_kernel_constant gemm[RG_GEMM_COUNT] = {
    [RG_GEMM_START] =
        {"start_cycles", 5000, 500, 20000, 0.7, true,
         "launch, first loads and last stores of one kernel, filling and draining its "
         "pipeline once"},
    [RG_GEMM_WAVE] = {"wave_cycles", 4000, 100, 12000, 0.7, true,
                      "draining and filling the pipeline between two waves of tiles"},
    [RG_GEMM_L2_SM] = {"l2_sm_bytes_per_cycle", 48, 10, 200, 0.3, false,
                       "operand bytes that one SM takes from L2 in a cycle"},
    [RG_GEMM_COMPUTE] = {"compute_ratio", 0.90, 0.3, 1.08, 0.1, false,
                         "share of the dense matrix peak in a tile's main loop, in bursts"},
    [RG_GEMM_SUSTAINED] =
        {"sustained_ratio", 0.80, 0.3, 1.0, 0.03, false,
         "share of it that the power limit leaves to all SMs together in long runs"},
    [RG_GEMM_MEMORY] = {"memory_ratio", 0.87, 0.4, 1.0, 0.03, false,
                        "share of the memory bandwidth that large reads reach"},
    [RG_GEMM_SPLIT] = {"split_cycles", 4000, 100, 40000, 0.7, true,
                       "reduction over the parts of a split K, beside its bytes"},
    [RG_GEMM_OVERLAP] = {"overlap_power", 3, 1, 8, 0.5, false,
                         "p of (a^p + b^p)^(1/p), which joins SM time and memory time"},
    [RG_GEMM_L2_SHARE] = {"l2_share_ratio", 1.0, 0.02, 2.5, 0.5, false,
                          "part of L2 that keeps data for repeated reads"},
    [RG_GEMM_L2_RATE] = {"l2_ratio", 0.6, 0.1, 1.0, 0.4, false,
                         "share of the L2 rate at which operands that lie there arrive"},
    [RG_GEMM_QUANTISE] = {"quantise_us", 5, 0.05, 20, 0.7, true,
                          "kernels that quantise X before the product"},
    [RG_GEMM_QUANTISE_PASSES] = {"quantise_passes_ratio", 2, 0.1, 12, 0.7, true,
                                 "times that X is moved by them, over one read and one write"},
    [RG_GEMM_EMPTY_ROW] = {"empty_row_cycles", 2, 0.01, 20, 1.0, true,
                           "a row of a block-scaled kernel's last tile that lies beyond m, in each "
                           "step of K"},
    [RG_GEMM_CONVERT] = {"convert_cycles", 2, 0.05, 20, 0.7, true,
                         "weight-only kernels: a column of weights brought to the product's type, "
                         "in each step of K"},
};

static const rg_kernel_constant prefill[RG_PRE_COUNT] = {
    [RG_PRE_START] = {"start_cycles", 12000, 2000, 40000, 0.5, true,
                      "launch and end of the attention kernel"},
    [RG_PRE_PREPARE] = {"prepare_cycles", 12000, 500, 60000, 0.5, true,
                        "launches of RoPE, QKV preparation and cache write"},
    [RG_PRE_HEAD] = {"prepare_head_cycles", 80, 5, 1000, 0.7, true,
                     "one query head of 128 elements of one token in them, in cycles of one SM"},
    [RG_PRE_TILE] = {"tile_cycles", 2500, 200, 40000, 0.7, true,
                     "start and end of one tile of 128 query rows on an SM"},
    [RG_PRE_COMPUTE] = {"compute_ratio", 0.85, 0.3, 1.0, 0.2, false,
                        "share of the dense matrix peak in the two products"},
    [RG_PRE_SOFTMAX] = {"softmax_ratio", 1.2, 0.1, 6, 0.4, false,
                        "time of the exponentials over one of 16 a cycle and SM, 16-bit products"},
    [RG_PRE_SOFTMAX8] = {"softmax_fp8_ratio", 1.4, 0.1, 6, 0.4, false,
                         "the same with 8-bit products, where probabilities are converted"},
    [RG_PRE_TAIL] = {"tail_ratio", 0.6, 0.01, 3, 0.7, true,
                     "part of the longest tile that ends alone"},
    [RG_PRE_IO] = {"io_passes_ratio", 1.25, 0.2, 10, 0.3, true,
                   "times that the kernel itself moves Q, K, V and the result at the memory rate"},
    [RG_PRE_FUSED] = {"fused_prepare_ratio", 0.7, 0.05, 1.5, 0.5, true,
                      "share of the preparation's launches where one kernel does all of it: 16-bit "
                      "cache, head_dim 128"},
    [RG_PRE_WINDOW] = {"window_ratio", 2, 0.5, 6, 0.5, true,
                       "growth of a step where a window with 16-bit queries and an 8-bit cache "
                       "drops the library back to its older kernel"},
    [RG_PRE_SHORT] = {"short_rows_ratio", 0.65, 0.3, 1, 0.3, true,
                      "work of a tile of which one of two warp groups has no rows"},
    [RG_PRE_ALONE] = {"alone_ratio", 1.2, 1, 2, 0.3, true,
                      "growth of a step of a tile that has its SM to itself, where two fit"},
    [RG_PRE_WRITE] = {"write_warp_cycles", 100, 5, 1000, 0.7, true,
                      "one warp of the kernel that writes keys and values into the cache"},
};

static const rg_kernel_constant decode[RG_DEC_COUNT] = {
    [RG_DEC_START] = {"start_cycles", 14000, 2000, 60000, 0.5, true,
                      "launch, with RoPE and cache write, 16-bit cache"},
    [RG_DEC_CTA] = {"cta_cycles", 7000, 300, 40000, 0.3, true,
                    "one work unit (request, KV head, split) of XQA on one SM"},
    [RG_DEC_TILE] = {"tile_cycles", 600, 10, 6000, 0.7, true,
                     "64 tokens of head_dim 128 within a unit"},
    [RG_DEC_LONE] = {"lone_tile_cycles", 2000, 200, 8000, 0.5, true,
                     "64 tokens in a unit that waits for each of its loads"},
    [RG_DEC_MERGE] = {"merge_cycles", 5000, 50, 40000, 0.7, true,
                      "joining the splits of the cache"},
    [RG_DEC_JOIN] = {"join_cycles", 300, 10, 2000, 0.5, true, "the same for each split of a cache"},
    [RG_DEC_MEMORY] = {"memory_ratio", 0.88, 0.4, 1.0, 0.1, true,
                       "share of the memory bandwidth that cache reads reach"},
    [RG_DEC_OVERLAP] = {"overlap_power", 2, 1, 6, 0.05, true,
                        "p of (a^p + b^p)^(1/p), which joins SM time and memory time"},
    [RG_DEC_L2_SHARE] = {"l2_share_ratio", 1.0, 0.02, 2.5, 0.5, true,
                         "part of L2 that keeps the cache between repeats"},
    [RG_DEC_GROUP] = {"wide_group_ratio", 0.45, 0.01, 4, 0.7, true,
                      "growth of a unit for each 16 query rows beyond 16"},
    [RG_DEC_START8] = {"start_8bit_cycles", 11000, 2000, 60000, 0.5, true,
                       "launch, with RoPE and cache write, 8-bit cache"},
    [RG_DEC_PREPARE8] = {"prepare_8bit_cycles", 4000, 100, 20000, 0.5, true,
                         "a launch more for an 8-bit cache where head_dim is not 128"},
    [RG_DEC_CTA8] = {"cta_8bit_cycles", 2500, 100, 20000, 0.7, true, "one work unit, 8-bit cache"},
    [RG_DEC_TILE8] = {"tile_8bit_cycles", 400, 10, 3000, 0.7, true,
                      "64 tokens of head_dim 128 within a unit, 8-bit cache"},
    [RG_DEC_MERGE8] = {"merge_8bit_cycles", 4000, 50, 40000, 0.7, true,
                       "joining the splits, 8-bit cache"},
    [RG_DEC_GROUP8] = {"wide_group_8bit_ratio", 0.8, 0.01, 4, 0.7, true,
                       "growth of a unit for each 8 query rows beyond 8, 8-bit cache"},
    [RG_DEC_VECTOR_START] = {"vector_start_cycles", 16000, 2000, 60000, 0.3, true,
                             "launch of the kernel without matrix units (one CTA a query head)"},
    [RG_DEC_VECTOR_CTA] = {"vector_cta_cycles", 2500, 100, 20000, 0.3, true,
                           "one CTA of that kernel on one SM"},
    [RG_DEC_VECTOR_TOKEN] = {"vector_token_cycles", 20, 2, 200, 0.5, true,
                             "one token of one head of head_dim 128 on a full SM there"},
    [RG_DEC_VECTOR_MISS] = {"vector_miss_ratio", 0.3, 0.01, 1, 0.5, true,
                            "delay of an SM by bytes that come from memory, in times that its even "
                            "share of the bandwidth takes"},
    [RG_DEC_VECTOR_MERGE] = {"vector_merge_cycles", 8000, 50, 40000, 0.7, true,
                             "joining the splits of that kernel"},
    [RG_DEC_VECTOR_MEMORY] = {"vector_memory_ratio", 0.88, 0.4, 1.0, 0.1, true,
                              "share of the memory bandwidth that it reaches"},
    [RG_DEC_COPY] = {"copy_cycles", 8000, 50, 40000, 0.5, true,
                     "bringing query heads in order for groups (flash attention)"},
};

static const rg_kernel_constant mla[RG_MLA_COUNT] = {
    [RG_MLA_START] = {"start_cycles", 24000, 2000, 80000, 0.5, true,
                      "launches of the attention kernel and of its preparation"},
    [RG_MLA_CTA] = {"cta_cycles", 8000, 200, 60000, 0.7, true,
                    "one work unit (request, 64 heads, split) on one SM"},
    [RG_MLA_COMPUTE] = {"compute_ratio", 0.7, 0.1, 1.0, 0.3, false,
                        "share of the dense matrix peak in the products"},
    [RG_MLA_SOFTMAX] = {"softmax_ratio", 1.2, 0.05, 6, 0.4, true,
                        "time of the exponentials over one of 16 a cycle and SM"},
    [RG_MLA_MEMORY] = {"memory_ratio", 0.85, 0.3, 1.0, 0.15, false,
                       "share of the memory bandwidth"},
    [RG_MLA_PASSES] = {"prepare_passes_ratio", 1.5, 0.05, 20, 0.7, true,
                       "times that queries and results are moved"},
    [RG_MLA_MERGE] = {"merge_cycles", 6000, 50, 60000, 0.7, true,
                      "joining the splits of the cache"},
    [RG_MLA_OVERLAP] = {"overlap_power", 2, 1, 8, 0.5, true,
                        "p of (a^p + b^p)^(1/p), which joins SM time and memory time"},
    [RG_MLA_L2_SHARE] = {"l2_share_ratio", 1.0, 0.02, 2.5, 0.5, false,
                         "part of L2 that keeps the cache between repeats"},
};

static const rg_kernel_constant moe[RG_MOE_COUNT] = {
    [RG_MOE_START] = {"start_cycles", 45000, 5000, 400000, 0.7, true,
                      "routing, permutation, activation and combine: fixed cost"},
    [RG_MOE_EXPERT] = {"expert_cycles", 60, 1, 3000, 0.7, true, "one local expert's share of it"},
    [RG_MOE_ROUTE] = {"route_cycles", 100, 1, 20000, 1.5, true,
                      "sorting and filtering one routed row (token times top-k), local or not, in "
                      "cycles of one SM"},
    [RG_MOE_SORT_START] = {"general_routing_cycles", 30000, 1000, 200000, 0.7, true,
                           "launches of general top-k and softmax kernels, where the library's "
                           "routing kernel does not take so many experts or so large a top-k"},
    [RG_MOE_SORT] = {"general_logit_cycles", 3, 0.01, 300, 1.5, true,
                     "reading and sorting one logit there, in cycles of one SM"},
    [RG_MOE_COMPUTE] = {"compute_ratio", 0.80, 0.2, 1.0, 0.2, true,
                        "share of the dense matrix peak in a tile's main loop"},
    [RG_MOE_MEMORY] = {"memory_ratio", 0.85, 0.3, 1.0, 0.2, true,
                       "share of the memory bandwidth that expert weights reach"},
    [RG_MOE_L2_SM] = {"l2_sm_bytes_per_cycle", 45, 5, 200, 0.4, true,
                      "operand bytes that one SM takes from L2 in a cycle"},
    [RG_MOE_WAVE] = {"wave_cycles", 3000, 50, 20000, 0.7, true,
                     "filling and draining the pipeline, once for each wave of tiles"},
    [RG_MOE_PASSES] = {"stream_passes_ratio", 1.5, 0.05, 30, 0.3, true,
                       "activation bytes moved over those that must move"},
    [RG_MOE_OVERLAP] = {"overlap_power", 2, 1, 8, 0.5, true,
                        "p of (a^p + b^p)^(1/p), which joins SM time and memory time"},
};

static const rg_kernel_constant stream[RG_STREAM_COUNT] = {
    [RG_STREAM_START] = {"start_cycles", 2200, 300, 20000, 0.7, true, "launch of one kernel"},
    [RG_STREAM_MEMORY] = {"memory_ratio", 0.85, 0.3, 1.0, 0.2, false,
                          "share of the memory bandwidth that large transfers reach"},
    [RG_STREAM_L2] = {"l2_sm_bytes_per_cycle", 30, 5, 128, 0.4, false,
                      "bytes that one SM moves from and to L2 in a cycle"},
    [RG_STREAM_SHARE] = {"l2_share_ratio", 1.0, 0.02, 2.5, 0.5, false,
                         "part of L2 that keeps data for repeated reads"},
};

#define GROUP(key, list, size, back)                                    \
    {                                                                   \
        .name = key, .constants = list, .count = size, .fallback = back \
    }

const rg_kernel_group_info rg_kernel_groups[RG_KG_COUNT] = {
    [RG_KG_GEMM_BF16] = GROUP("gemm_bf16", gemm, RG_GEMM_COUNT, -1),
    [RG_KG_GEMM_FP8] = GROUP("gemm_fp8", gemm, RG_GEMM_COUNT, RG_KG_GEMM_BF16),
    [RG_KG_GEMM_FP8_BLOCK] = GROUP("gemm_fp8_block", gemm, RG_GEMM_COUNT, RG_KG_GEMM_FP8),
    [RG_KG_GEMM_INT8] = GROUP("gemm_int8", gemm, RG_GEMM_COUNT, RG_KG_GEMM_FP8),
    [RG_KG_GEMM_INT8_WO] = GROUP("gemm_int8_wo", gemm, RG_GEMM_COUNT, RG_KG_GEMM_BF16),
    [RG_KG_GEMM_INT4_WO] = GROUP("gemm_int4_wo", gemm, RG_GEMM_COUNT, RG_KG_GEMM_INT8_WO),
    [RG_KG_GEMM_NVFP4] = GROUP("gemm_nvfp4", gemm, RG_GEMM_COUNT, RG_KG_GEMM_FP8),
    [RG_KG_BMM_BF16] = GROUP("bmm_bf16", gemm, RG_GEMM_COUNT, RG_KG_GEMM_BF16),
    [RG_KG_BMM_FP8] = GROUP("bmm_fp8", gemm, RG_GEMM_COUNT, RG_KG_GEMM_FP8_BLOCK),
    [RG_KG_PREFILL] = GROUP("attention_prefill", prefill, RG_PRE_COUNT, -1),
    [RG_KG_ENCODER] = GROUP("attention_encoder", prefill, RG_PRE_COUNT, RG_KG_PREFILL),
    [RG_KG_DECODE] = GROUP("attention_decode", decode, RG_DEC_COUNT, -1),
    [RG_KG_MLA_PREFILL] = GROUP("mla_prefill", prefill, RG_PRE_COUNT, RG_KG_PREFILL),
    [RG_KG_MLA_DECODE] = GROUP("mla_decode", mla, RG_MLA_COUNT, -1),
    [RG_KG_MOE_BF16] = GROUP("moe_bf16", moe, RG_MOE_COUNT, -1),
    [RG_KG_MOE_FP8] = GROUP("moe_fp8", moe, RG_MOE_COUNT, RG_KG_MOE_BF16),
    [RG_KG_MOE_FP8_BLOCK] = GROUP("moe_fp8_block", moe, RG_MOE_COUNT, RG_KG_MOE_FP8),
    [RG_KG_MOE_W4] = GROUP("moe_w4", moe, RG_MOE_COUNT, RG_KG_MOE_BF16),
    [RG_KG_STREAM] = GROUP("stream", stream, RG_STREAM_COUNT, -1),
};

int rg_kernel_group_find(const char *name)
{
    for (int g = 0; g < RG_KG_COUNT; g++)
        if (strcmp(rg_kernel_groups[g].name, name) == 0)
            return g;
    return -1;
}

int rg_kernel_constant_find(rg_kernel_group group, const char *name)
{
    const rg_kernel_group_info *info = &rg_kernel_groups[group];
    for (int i = 0; i < info->count; i++)
        if (strcmp(info->constants[i].name, name) == 0)
            return i;
    return -1;
}

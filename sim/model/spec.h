/* model/spec.h: a model as a list of layers, each with its attention kind and its FFN kind.
 *
 * Reads core. Hybrids need no special code: a layer says full, window, chunked, MLA, linear, SSM or
 * none, and dense or MoE.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_MODEL_SPEC_H
#define RG_MODEL_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/dtype.h"

typedef enum rg_mixer {
    RG_MIX_NONE,
    RG_MIX_FULL,
    RG_MIX_WINDOW,
    RG_MIX_CHUNKED,
    RG_MIX_MLA,
    RG_MIX_LINEAR, /* gated delta net and kin */
    RG_MIX_MAMBA1,
    RG_MIX_MAMBA2,
} rg_mixer;

typedef enum rg_ffn { RG_FFN_NONE, RG_FFN_DENSE, RG_FFN_MOE } rg_ffn;

typedef struct rg_layer {
    rg_mixer mixer;
    int64_t heads, kv_heads, head_dim, v_head_dim;
    int64_t window; /* window and chunked */
    bool qkv_bias, o_bias, qk_norm;
    bool output_gate; /* q projection carries a gate as wide (Qwen3-Next) */
    int64_t q_lora, kv_lora, rope_dim, nope_dim;                                   /* MLA */
    int64_t ssm_heads, ssm_head_dim, ssm_state, ssm_groups, ssm_conv, ssm_dt_rank; /* SSM, linear */
    rg_ffn ffn;
    bool gated; /* three matrices, else two */
    bool ffn_bias;
    int64_t inter; /* dense width, or per expert */
    int64_t experts, top_k, shared_experts, shared_inter;
    int64_t latent;                                /* experts work in this width; 0 = hidden */
    int64_t mixer_params, ffn_params, norm_params; /* filled by the counter */
    int64_t ffn_active_params;
} rg_layer;

typedef struct rg_model {
    const char *name, *family, *path;
    int64_t hidden, vocab, layer_count, max_positions;
    bool tied_embeddings;
    rg_layer *layers;
    int64_t mtp_layers; /* multi-token-prediction layers that the checkpoint carries, not counted */
    int64_t parameters_total, parameters_active;
    const char *active_convention;
    int64_t embedding_params, head_params, other_params;
    const char *quantisation; /* format named by the checkpoint, NULL when none */
    const char *kv_quantisation;
} rg_model;

/** Load by name ("llama-3.1-70b"), model YAML or config.json. */
rg_status rg_model_load(rg_arena *arena, const char *name_or_path, rg_model **out, rg_err *err);

#endif

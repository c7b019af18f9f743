/* model/spec.h: a model as a list of layers, each with its attention kind and its FFN kind.
 *
 * Reads core. Hybrids need no special code: a layer says full, window, chunked, MLA, linear, SSM or
 * none, and dense or MoE. Every parameter of the model follows from these fields (model/count.h).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_MODEL_SPEC_H
#define RG_MODEL_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/doc.h"
#include "core/dtype.h"
#include "core/override.h"

typedef enum rg_mixer {
    RG_MIX_NONE,
    RG_MIX_FULL,
    RG_MIX_WINDOW,
    RG_MIX_CHUNKED,
    RG_MIX_MLA,
    RG_MIX_LINEAR, /* gated delta net, lightning attention */
    RG_MIX_MAMBA1,
    RG_MIX_MAMBA2,
    RG_MIX_COUNT,
} rg_mixer;

typedef enum rg_ffn { RG_FFN_NONE, RG_FFN_DENSE, RG_FFN_MOE, RG_FFN_COUNT } rg_ffn;

/** Norm of Q and K before attention. */
typedef enum rg_qk_norm {
    RG_QK_NORM_NONE,
    RG_QK_NORM_HEAD, /* one weight per element of a head, the same for all heads */
    RG_QK_NORM_FULL, /* a weight for every element of Q and of K */
    RG_QK_NORM_BARE, /* a norm without weights */
    RG_QK_NORM_COUNT,
} rg_qk_norm;

/** What is kept of old keys and values, an input of every memory figure and printed with it. */
typedef enum rg_kv_layout {
    RG_KV_IDEAL,         /* what the mathematics needs: windows capped, MLA as latent */
    RG_KV_WINDOW_CAPPED, /* the same in whole pages */
    RG_KV_UNIFORM_PAGE,  /* every attention layer keeps the whole context, in whole pages */
    RG_KV_MLA_LATENT,    /* as ideal; says of MLA models that the latent is stored */
    RG_KV_MLA_EXPANDED,  /* MLA stored as K and V of every head */
    RG_KV_LAYOUT_COUNT,
} rg_kv_layout;

typedef struct rg_layer {
    rg_mixer mixer;
    int64_t heads, kv_heads, head_dim, v_head_dim; /* v_head_dim 0 = head_dim */
    int64_t window;                                /* window and chunked: tokens */
    int64_t rope_dim;                              /* rotated elements of a head; MLA: of the key */
    bool qkv_bias, o_bias;
    rg_qk_norm qk_norm;
    bool sink_logits;                  /* one learned logit per head beside the scores (gpt-oss) */
    bool output_gate;                  /* q projection carries a gate as wide (Qwen3-Next) */
    bool kv_shared;                    /* reads the cache of an earlier layer: no K, V of its own */
    int64_t q_lora, kv_lora, nope_dim; /* MLA; q_lora 0 = none */
    int64_t index_heads, index_dim, index_top_k; /* MLA with a sparse indexer (DeepSeek-V3.2) */
    /* SSM: heads of ssm_head_dim, groups that share B and C of ssm_state. Mamba-1: heads x head_dim
     * is the inner width. Linear: value heads of ssm_head_dim, ssm_groups key heads of ssm_state.
     */
    int64_t ssm_heads, ssm_head_dim, ssm_state, ssm_groups, ssm_conv, ssm_dt_rank;
    int64_t ssm_gates;   /* linear: scalar projections per value head (delta net: 2) */
    bool ssm_bias;       /* biases on the projections in and out */
    bool ssm_norm;       /* Mamba-1: norms on dt, B, C (Jamba); others: norm before the way out */
    int64_t mixer_extra; /* parameters of the mixer beside those, by the importer's word */
    rg_ffn ffn;
    bool gated; /* three matrices, else two */
    bool ffn_bias;
    int64_t inter;                                        /* dense width, or per expert */
    int64_t experts, top_k, shared_experts, shared_inter; /* shared_inter: of all shared ones */
    bool shared_gate;                                     /* a scalar gate on the shared expert */
    bool router_bias;                                     /* one bias per expert */
    int64_t latent;                                       /* experts work in it; 0 = hidden */
    int64_t ffn_extra;
    int64_t norms;  /* of the hidden width, in this layer */
    bool norm_bias; /* LayerNorm with a bias: two vectors each */
    bool norm_bare; /* norms without weights (OLMo) */
    /* filled by rg_model_count: */
    int64_t mixer_params, ffn_params, norm_params;
    int64_t ffn_active_params;
    int64_t same_as; /* index of the first layer that is equal to this one */
} rg_layer;

typedef struct rg_model {
    const char *name, *family, *path, *source;
    int64_t hidden, vocab, layer_count, max_positions;
    bool tied_embeddings;
    int64_t embedding_width; /* 0 = hidden; else two projections lie between (OPT-350m) */
    int64_t position_rows;   /* learned position table; 0 = none */
    bool embedding_norm;     /* norm behind the embedding (BLOOM) */
    bool final_norm;
    bool head_bias;
    int64_t extra_params;
    rg_layer *layers;
    int64_t mtp_layers; /* multi-token-prediction layers that the checkpoint carries, not counted */
    int64_t parameters_total, parameters_active;
    const char *active_convention;
    int64_t embedding_params, head_params, other_params;
    const char *dtype;        /* type of the checkpoint before quantisation: "bf16"; NULL unknown */
    const char *quantisation; /* format of the linear layers by the checkpoint, NULL when none */
    const char *expert_quantisation; /* of routed experts, NULL: as quantisation */
    const char *mixer_quantisation;  /* of attention projections, NULL: as quantisation */
    const char *head_quantisation;   /* of the LM head, NULL: dtype */
    const char *kv_quantisation;
    const char *state_type;              /* of recurrent state; NULL: bf16 */
    const char *activation_quantisation; /* "fp8" when products take quantised activations */
    const char *quantisation_scheme;     /* what the checkpoint calls it, for people */
    const char *const *notes;            /* what the importer assumed, for people */
    int note_count;
} rg_model;

/** Load by name ("llama-3.1-70b"), model YAML or config.json. A config.json takes a
 * hf_quant_config.json beside it into account (NAME.hf_quant_config.json beside NAME.json,
 * NAME_hf_quant_config.json beside NAME_config.json). */
rg_status rg_model_load(rg_arena *arena, const char *name_or_path, rg_model **out, rg_err *err);
/** The same with what-if changes of scope "model"; a config.json takes none. */
rg_status rg_model_load_changed(rg_arena *arena, const char *name_or_path,
                                const rg_changes *changes, rg_model **out, rg_err *err);

/** A config.json, whatever its file is called; family as below. */
rg_status rg_model_load_config(rg_arena *arena, const char *path, const char *family,
                               rg_model **out, rg_err *err);
/** Import a parsed config.json; quant_config is the root of a hf_quant_config.json or NULL; family
 * overrides model_type when not NULL. name is the model's name in ridge. Errors: RG_ERR_INPUT with
 * the field, RG_ERR_MODEL for an architecture that ridge does not read rightly. */
rg_status rg_model_import(rg_arena *arena, rg_node *config, rg_node *quant_config,
                          const char *family, const char *name, rg_model **out, rg_err *err);
/** Read a model YAML that is parsed already. */
rg_status rg_model_read(rg_arena *arena, rg_node *root, rg_model **out, rg_err *err);
/** The model as YAML, layers grouped into kinds and an order; rg_model_read gives it back. */
rg_status rg_model_write(rg_arena *arena, const rg_model *model, char **out, rg_err *err);

/** Fill the counts of all layers and of the model, and which layers are equal. Errors: RG_ERR_MODEL
 * on overflow. */
rg_status rg_model_count(rg_model *model, rg_err *err);
/** Parameters used for one token, leaving out the input embedding (a lookup), where it is a matrix
 * of its own; parameters_active counts it. */
int64_t rg_model_active_without_embedding(const rg_model *model);
/** True when two layers are equal in all that they are. */
bool rg_layer_equal(const rg_layer *a, const rg_layer *b);

const char *rg_mixer_name(rg_mixer mixer);
const char *rg_ffn_name(rg_ffn ffn);
const char *rg_qk_norm_name(rg_qk_norm norm);
const char *rg_kv_layout_name(rg_kv_layout layout);
rg_status rg_kv_layout_parse(const char *name, rg_kv_layout *out, rg_err *err);

static inline bool rg_layer_has_kv(const rg_layer *layer)
{
    return layer->mixer >= RG_MIX_FULL && layer->mixer <= RG_MIX_MLA && !layer->kv_shared;
}
static inline bool rg_layer_has_state(const rg_layer *layer)
{
    return layer->mixer >= RG_MIX_LINEAR;
}
static inline int64_t rg_layer_v_dim(const rg_layer *layer)
{
    return layer->v_head_dim > 0 ? layer->v_head_dim : layer->head_dim;
}
/** Elements that a layer keeps per token: K and V of its heads, or the latent (expanded: K, V). */
int64_t rg_layer_kv_elements(const rg_layer *layer, bool expanded);
/** Bytes per token that a sparse indexer keeps beside the cache: a key in FP8 with one fp32 scale.
 */
int64_t rg_layer_index_bytes(const rg_layer *layer);
/** Elements of recurrent state per sequence: SSM or linear state, and the convolution's tail. */
int64_t rg_layer_state_elements(const rg_layer *layer);
int64_t rg_layer_conv_elements(const rg_layer *layer);
/** KV bytes per token of the whole model, all layers, windows not applied; without indexer keys. */
rg_bytes rg_model_kv_bytes_per_token(const rg_model *model, const rg_format *kv, bool expanded);
/** KV bytes of one sequence of so many tokens, indexer keys with them; page_tokens 0 counts as 1.
 */
rg_bytes rg_model_kv_bytes(const rg_model *model, const rg_format *kv, rg_kv_layout layout,
                           double context_tokens, int64_t page_tokens);

#endif

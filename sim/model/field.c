/* model/field.c: the table of a layer's fields. */
// SPDX-License-Identifier: Apache-2.0
#include "model/field.h"

#define INT(part, key, member)                              \
    {                                                       \
        part, key, RG_FIELD_INT, offsetof(rg_layer, member) \
    }
#define BOOL(part, key, member)                              \
    {                                                        \
        part, key, RG_FIELD_BOOL, offsetof(rg_layer, member) \
    }

const rg_field rg_layer_fields[] = {
    INT("mixer", "heads", heads),
    INT("mixer", "kv_heads", kv_heads),
    INT("mixer", "head_dim", head_dim),
    INT("mixer", "v_head_dim", v_head_dim),
    INT("mixer", "window", window),
    INT("mixer", "q_lora", q_lora),
    INT("mixer", "kv_lora", kv_lora),
    INT("mixer", "nope_dim", nope_dim),
    INT("mixer", "rope_dim", rope_dim),
    INT("mixer", "index_heads", index_heads),
    INT("mixer", "index_dim", index_dim),
    INT("mixer", "index_top_k", index_top_k),
    BOOL("mixer", "qkv_bias", qkv_bias),
    BOOL("mixer", "o_bias", o_bias),
    {"mixer", "qk_norm", RG_FIELD_QK_NORM, offsetof(rg_layer, qk_norm)},
    BOOL("mixer", "sink_logits", sink_logits),
    BOOL("mixer", "output_gate", output_gate),
    BOOL("mixer", "kv_shared", kv_shared),
    INT("mixer", "ssm_heads", ssm_heads),
    INT("mixer", "ssm_head_dim", ssm_head_dim),
    INT("mixer", "ssm_state", ssm_state),
    INT("mixer", "ssm_groups", ssm_groups),
    INT("mixer", "ssm_conv", ssm_conv),
    INT("mixer", "ssm_dt_rank", ssm_dt_rank),
    INT("mixer", "ssm_gates", ssm_gates),
    BOOL("mixer", "ssm_bias", ssm_bias),
    BOOL("mixer", "ssm_norm", ssm_norm),
    INT("mixer", "extra_params", mixer_extra),
    BOOL("ffn", "gated", gated),
    INT("ffn", "inter", inter),
    BOOL("ffn", "bias", ffn_bias),
    INT("ffn", "experts", experts),
    INT("ffn", "top_k", top_k),
    INT("ffn", "shared_experts", shared_experts),
    INT("ffn", "shared_inter", shared_inter),
    BOOL("ffn", "shared_gate", shared_gate),
    BOOL("ffn", "router_bias", router_bias),
    INT("ffn", "latent", latent),
    INT("ffn", "extra_params", ffn_extra),
    INT("norms", "count", norms),
    BOOL("norms", "bias", norm_bias),
    BOOL("norms", "bare", norm_bare),
    {NULL, NULL, RG_FIELD_INT, 0},
};

int64_t rg_field_get(const rg_field *f, const rg_layer *layer)
{
    const char *at = (const char *)layer + f->offset;
    switch (f->type) {
    case RG_FIELD_BOOL:
        return *(const bool *)at;
    case RG_FIELD_QK_NORM:
        return (int64_t) * (const rg_qk_norm *)at;
    default:
        return *(const int64_t *)at;
    }
}

void rg_field_set(const rg_field *f, rg_layer *layer, int64_t value)
{
    char *at = (char *)layer + f->offset;
    switch (f->type) {
    case RG_FIELD_BOOL:
        *(bool *)at = value != 0;
        break;
    case RG_FIELD_QK_NORM:
        *(rg_qk_norm *)at = (rg_qk_norm)value;
        break;
    default:
        *(int64_t *)at = value;
    }
}

bool rg_layer_equal(const rg_layer *a, const rg_layer *b)
{
    if (a->mixer != b->mixer || a->ffn != b->ffn)
        return false;
    for (const rg_field *f = rg_layer_fields; f->key != NULL; f++)
        if (rg_field_get(f, a) != rg_field_get(f, b))
            return false;
    return true;
}

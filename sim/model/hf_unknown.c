/* model/hf_unknown.c: keys of a config.json that nobody read: harmless, or reason to refuse. */
// SPDX-License-Identifier: Apache-2.0
#include "model/hf.h"

#include <math.h>
#include <string.h>

#include "core/text.h"

/* Parts of names that are harmless wherever they stand; looked at before the suspicious ones. */
static const char *const harmless[] = {
    "dropout",
    "drop",
    "_eps",
    "epsilon",
    "token",
    "initializer",
    "init_",
    "_init",
    "_std",
    "dtype",
    "use_cache",
    "coef",
    "loss",
    "rope_",
    "rotary",
    "_scale",
    "scale_",
    "scaling",
    "theta",
    "softcap",
    "fp32",
    "_implementation",
    "fused",
    "flash",
    "multiplier",
    "label",
    "prefix",
    "beam",
    "pretraining_tp",
    "tensor_parallel",
    "transformers",
    "auto_map",
    "architectures",
    "_name_or_path",
    "act_fn",
    "activation",
    "hidden_act",
    "kernels",
    "summary",
    "task",
    "torchscript",
    "use_bfloat16",
    "prefill_chunk_size",
    "context_window_size",
    "max_batch_size",
    "sink_size",
    "chunk_size",
    "output_",
    "return_",
    "pruned_heads",
    "tie_encoder",
    "router_",
    "routed_scaling",
    "norm_topk",
    "topk_group",
    "n_group",
    "num_expert_group",
    "scoring",
    "topk_method",
    "norm_type",
    "rmsnorm_type",
    "ep_size",
    "seq_aux",
    "time_step",
    "residual_in",
    "rescale",
    "logits",
    "logit",
    "clip",
    "clamp",
    "limit",
    "mup_",
    "temperature",
    "image",
    "video",
    "audio",
    "vision",
    "speech",
    "cross_attention_hidden_size",
    "add_cross_attention",
    "is_",
    "chunk_size_feed_forward",
    "max_length",
    "min_length",
    "num_return",
    "diversity",
    "ngram",
    "penalty",
    "typical_p",
    "top_p",
    "top_k",
    "do_sample",
    "bad_words",
    "suppress",
    "problem_type",
    "cache_implementation",
    "gradient",
    "checkpoint",
    "training",
    "parallel_size",
    "dataset",
    "version",
    "vocab_parallel",
    "max_window_layers",
    "max_position",
    "original_max",
    "seq_length",
    "tokenizer",
    "unk",
    "alibi_bias_max",
    "attn_impl",
    "attn_uses",
    "layernorm_embedding",
    "_noise",
    "jitter",
    "capacity",
    "loss_free",
    "gate_",
    "qk_norm_type",
    "mtp",
    "nextn",
    "use_dedicated",
    "norm_eps",
    "balance",
    "decoder_start",
    "scalar",
    "alpha",
    "beta",
    "floor",
    "ceil",
    "step_",
    "logn",
    "ntk",
    "kv_cache",
    "cache_quant",
    "cache_kernel",
    "softmax_in",
    "attention_bias_in",
    "num_logits",
    "quant",
    "sep_",
    "block_sparse_attn_config",
    "bf16",
    "fp16",
    "pad_vocab",
    "rms_norm",
    "layerscale",
    "interpol",
    "mrope",
    "position_embedding_type",
    "window_layers",
    "use_mamba",
    "full_attn_mod",
    "parallel_block",
    "use_pad_tok",
    "before_gate",
    "anyres",
    "vit_",
    "tensor_parallelism",
    "gradient",
    "pool_",
    "norm_head",
    "org_vocab",
    "dim_model_base",
    "bidirectional",
    "dual_chunk",
    "mm_",
    "spatial_merge",

    "moe_renormalize",
    "aux",
    "shared_expert_overlap",
    "correction_bias",
    NULL,
};

/* Parts of names that speak of structure. */
static const char *const structural[] = {
    "head",    "layer",        "expert",      "moe",       "dim",    "_size",  "rank",   "lora",
    "kv_",     "_kv",          "attn",        "attention", "window", "ssm",    "mamba",  "conv",
    "block",   "latent",       "compress",    "hyper",     "sparse", "index",  "mlp",    "ffn",
    "proj",    "bias",         "gate",        "recurrent", "hybrid", "linear", "memory", "engram",
    "qk_norm", "qk_layernorm", "ngram_embed", "share",     "width",  "hash",   NULL,
};

static bool has_part(const char *name, const char *const *parts)
{
    for (; *parts != NULL; parts++)
        if (strstr(name, *parts) != NULL)
            return true;
    return false;
}

/* Values that switch nothing on: null, false, 0, "", empty, and reals that are no counts. */
static bool idle_value(const rg_node *node)
{
    if (rg_node_is_null(node))
        return true;
    if (node->kind != RG_NODE_SCALAR)
        return node->count == 0;
    if (node->quoted || node->text[0] == '\0')
        return true; /* words name choices of implementation */
    if (strcmp(node->text, "false") == 0)
        return true;
    double value; /* "30.0" is a scale, no count */
    return rg_text_to_real(node->text, &value) &&
           (value == 0 || value != floor(value) || strpbrk(node->text, ".eE") != NULL);
}

rg_status rg_hf_unknown(rg_hf *hf, rg_err *err)
{
    for (const rg_node *node = hf->text->first; node != NULL; node = node->next) {
        if (node->used || idle_value(node) || has_part(node->key, harmless) ||
            !has_part(node->key, structural))
            continue;
        return rg_fail(err, RG_ERR_MODEL, node->key_pos,
                       "field '%s' is not known for model_type '%s' and could change its layers, "
                       "so the config is refused",
                       node->key, hf->type);
    }
    return RG_OK;
}

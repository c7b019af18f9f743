/* model/hf.h: reading a Hugging Face config.json; shared by the files hf*.c only.
 *
 * Reads model/spec.h. hf.c finds the family and the sizes that all share, hf_family.c holds the
 * table of families, hf_layers.c lays out the layers, hf_quant.c reads quantisation blocks.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_MODEL_HF_H
#define RG_MODEL_HF_H

#include "model/spec.h"

typedef struct rg_hf rg_hf;

/** How windows are told in a family that has them. */
typedef enum rg_hf_window {
    RG_HF_WINDOW_IGNORED,  /* the code does not use the key */
    RG_HF_WINDOW_ALL,      /* sliding_window not null: every layer */
    RG_HF_WINDOW_SWITCHED, /* only with use_sliding_window, from layer max_window_layers on */
    RG_HF_WINDOW_PATTERN,  /* every n-th layer is full: sliding_window_pattern or the default */
    RG_HF_WINDOW_TYPES,    /* layer_types, else PATTERN */
} rg_hf_window;

/** Which layers are experts, where the config does not say it all. */
typedef struct rg_hf_family {
    const char *types;         /* model_type names, '|' between */
    const char *architectures; /* for configs without model_type, '|' between; may be NULL */
    /* Biases: NULL no, "yes", or "key|other:yes" = key with its default. */
    const char *qkv_bias, *o_bias, *ffn_bias;
    /* Q/K norm: NULL, "head", "full", or "key:yes:head". */
    const char *qk_norm;
    bool tied;      /* default of tie_word_embeddings */
    bool plain;     /* FFN of two matrices */
    int norms;      /* of hidden width per layer; 0 means 2 */
    bool norm_bias; /* LayerNorm with bias */
    bool norm_bare;
    bool no_rope;
    bool positions;     /* learned position table */
    int position_extra; /* rows beyond max_positions */
    rg_hf_window window;
    int pattern;             /* default of sliding_window_pattern; 0 = none */
    const char *inter_ratio; /* "4": FFN width when no key gives it, as a multiple of hidden */
    bool moe;                /* expert keys are read */
    const char *router_bias; /* as biases */
    bool shared_gate;
    rg_status (*sizes)(rg_hf *hf, rg_err *err);  /* after the shared sizes, before the layers */
    rg_status (*layers)(rg_hf *hf, rg_err *err); /* after the shared layout */
} rg_hf_family;

struct rg_hf {
    rg_arena *arena;
    rg_node *root; /* the file */
    rg_node *text; /* the language model in it */
    rg_node *quant_file;
    const char *type;
    const rg_hf_family *family;
    rg_model *model;
    rg_layer base;   /* what layers share, with the dense FFN */
    rg_layer expert; /* FFN of the expert layers; experts 0 = the model has none */
    const char *notes[32];
    int note_count;
};

/** Families and the architectures that are known but not read. */
extern const rg_hf_family rg_hf_families[];
const rg_hf_family *rg_hf_family_find(const char *type);
const rg_hf_family *rg_hf_family_by_architecture(const char *architecture);
/** Why a known type is refused; NULL when it is not on the list. */
const char *rg_hf_refusal(const char *type);

/* Getters: keys are alternatives with '|' between; null values count as absent. */
rg_node *rg_hf_find(rg_hf *hf, const char *keys);
rg_node *rg_hf_find_in(rg_node *map, const char *keys);
/** "missing key", with the nearest one that nobody has read. */
rg_status rg_hf_missing(rg_hf *hf, const char *keys, rg_err *err);
rg_status rg_hf_int(rg_hf *hf, const char *keys, int64_t least, int64_t *out, rg_err *err);
rg_status rg_hf_int_or(rg_hf *hf, const char *keys, int64_t least, int64_t fallback, int64_t *out,
                       rg_err *err);
rg_status rg_hf_bool_or(rg_hf *hf, const char *keys, bool fallback, bool *out, rg_err *err);
rg_status rg_hf_flag(rg_hf *hf, const char *rule, bool *out, rg_err *err);
/** As rg_hf_int_or; notes the default when it is used. */
rg_status rg_hf_int_noted(rg_hf *hf, const char *keys, int64_t least, int64_t fallback,
                          int64_t *out, rg_err *err);
void rg_hf_note(rg_hf *hf, const char *format, ...) __attribute__((format(printf, 2, 3)));
rg_pos rg_hf_pos(const rg_hf *hf);

/** Windows, expert placement and copies of base into the model's layers. */
rg_status rg_hf_lay_out(rg_hf *hf, rg_err *err);
/** Expert sizes into expert. */
rg_status rg_hf_experts(rg_hf *hf, rg_err *err);
void rg_hf_copy_ffn(rg_layer *to, const rg_layer *from);
/** An integer, or a list of equal ones (one for each layer). */
rg_status rg_hf_uniform(rg_node *node, int64_t least, int64_t *out, rg_err *err);
/** The list with one entry a layer under one of the keys; NULL when absent. */
rg_status rg_hf_layer_list(rg_hf *hf, const char *keys, rg_node **out, rg_err *err);
/** The quantisation block or file into the model. */
rg_status rg_hf_quantisation(rg_hf *hf, rg_err *err);
/** Refuse keys that were not read and that could change the structure. */
rg_status rg_hf_unknown(rg_hf *hf, rg_err *err);

#endif

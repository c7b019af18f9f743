/* model/hf_quant.c: quantisation_config in config.json, and NVIDIA modelopt's hf_quant_config.json.
 */
// SPDX-License-Identifier: Apache-2.0
#include "model/hf.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"

/* What a block says, before it is laid on parts of the model. */
typedef struct quant {
    const char *format;     /* of weights */
    const char *activation; /* NULL: not quantised */
    rg_node *excluded;      /* list of module patterns, NULL when none */
    bool experts_only;
} quant;

static const char *grouped(rg_hf *hf, int64_t bits, int64_t group, bool symmetric, rg_err *err)
{
    return rg_arena_printf(hf->arena, err, "int%lld_g%lld%s", (long long)bits, (long long)group,
                           symmetric ? "_sym" : "");
}

/* GPTQ and AWQ: bits and group size, -1 = one scale for a whole column. */
static rg_status read_grouped(rg_hf *hf, rg_node *block, bool symmetric, quant *q, rg_err *err)
{
    rg_node *bits_node = rg_hf_find_in(block, "bits|w_bit|num_bits");
    rg_node *group_node = rg_hf_find_in(block, "group_size|q_group_size");
    int64_t bits = 4, group = 128;
    if (bits_node == NULL)
        return rg_fail(err, RG_ERR_INPUT, block->pos, "missing key 'bits'");
    RG_TRY(rg_node_int(bits_node, 2, 8, &bits, err));
    if (group_node != NULL)
        RG_TRY(rg_node_int(group_node, -1, 1 << 30, &group, err));
    if (group <= 0)
        group = hf->model->hidden;
    rg_node *sym = rg_hf_find_in(block, "sym|symmetric");
    rg_node *zero = rg_hf_find_in(block, "zero_point");
    if (sym != NULL)
        RG_TRY(rg_node_bool(sym, &symmetric, err));
    if (zero != NULL) {
        bool asymmetric;
        RG_TRY(rg_node_bool(zero, &asymmetric, err));
        symmetric = !asymmetric;
    }
    if (bits != 2 && bits != 3 && bits != 4 && bits != 8)
        return rg_fail(err, RG_ERR_INPUT, bits_node->pos, "'%lld' bits; 2, 3, 4 and 8 are read",
                       (long long)bits);
    q->format = grouped(hf, bits, group, symmetric, err);
    return q->format != NULL ? RG_OK : RG_ERR_LIMIT;
}

/* One config group of compressed-tensors: number type and strategy of weights and activations. */
static rg_status read_compressed(rg_hf *hf, rg_node *block, quant *q, rg_err *err)
{
    rg_node *groups = rg_hf_find_in(block, "config_groups");
    if (groups == NULL || groups->kind != RG_NODE_MAP || groups->first == NULL)
        return rg_fail(err, RG_ERR_INPUT, block->pos, "missing key 'config_groups'");
    rg_node *weights =
        groups->first->kind == RG_NODE_MAP ? rg_hf_find_in(groups->first, "weights") : NULL;
    if (weights == NULL || weights->kind != RG_NODE_MAP)
        return rg_fail(err, RG_ERR_INPUT, groups->pos, "missing key 'weights' in config_groups");
    rg_node *format = rg_hf_find_in(groups->first, "format");
    if (format == NULL)
        format = rg_hf_find_in(block, "format");
    rg_node *inputs = rg_hf_find_in(groups->first, "input_activations");
    int64_t bits, group;
    const char *type, *strategy;
    RG_TRY(rg_map_int(weights, "num_bits", 2, 16, &bits, err));
    RG_TRY(rg_map_text_or(weights, "type", "int", &type, err));
    RG_TRY(rg_map_text_or(weights, "strategy", "tensor", &strategy, err));
    rg_node *group_node = rg_hf_find_in(weights, "group_size");
    group = 0;
    if (group_node != NULL)
        RG_TRY(rg_node_int(group_node, -1, 1 << 30, &group, err));
    const bool real = strcmp(type, "float") == 0;
    if (real && bits == 8) {
        const bool tiles = strcmp(strategy, "block") == 0;
        q->format = tiles ? "fp8_block" : group == 32 ? "mxfp8" : inputs != NULL ? "fp8" : "fp8_wo";
    } else if (real && bits == 4) {
        const bool mx =
            format != NULL && format->text != NULL && strncmp(format->text, "mx", 2) == 0;
        q->format =
            mx || group == 32 ? (inputs ? "mxfp4" : "mxfp4_wo") : (inputs ? "nvfp4" : "nvfp4_wo");
    } else if (!real && bits == 8 && group <= 0) {
        q->format = inputs != NULL ? "int8" : "int8_wo";
    } else if (!real && bits <= 8) {
        bool symmetric = true;
        RG_TRY(rg_map_bool_or(weights, "symmetric", true, &symmetric, err));
        q->format = grouped(hf, bits, group > 0 ? group : hf->model->hidden, symmetric, err);
    } else {
        return rg_fail(err, RG_ERR_INPUT, weights->pos,
                       "weights of type '%s' in %lld bits are not "
                       "known",
                       type, (long long)bits);
    }
    if (q->format == NULL)
        return RG_ERR_LIMIT;
    if (inputs != NULL && inputs->kind == RG_NODE_MAP) {
        RG_TRY(rg_map_int(inputs, "num_bits", 2, 16, &bits, err));
        q->activation = real ? (bits == 4 ? "fp4" : "fp8") : "int8";
    }
    q->excluded = rg_hf_find_in(block, "ignore");
    rg_node *kv = rg_hf_find_in(block, "kv_cache_scheme");
    if (kv != NULL && kv->kind == RG_NODE_MAP) {
        RG_TRY(rg_map_int(kv, "num_bits", 2, 16, &bits, err));
        RG_TRY(rg_map_text_or(kv, "type", "float", &type, err));
        hf->model->kv_quantisation = bits == 8   ? (strcmp(type, "int") == 0 ? "int8" : "fp8")
                                     : bits == 4 ? "nvfp4"
                                                 : NULL;
    }
    return RG_OK;
}

/* modelopt algorithms: TensorRT Model Optimizer's names. */
static const struct {
    const char *name, *format, *activation;
} algorithms[] = {
    {"FP8", "fp8", "fp8"},
    {"FP8_PER_CHANNEL_PER_TOKEN", "fp8", "fp8"},
    {"FP8_PB_WO", "fp8_block", "fp8"},
    {"FP8_BLOCK_SCALES", "fp8_block", "fp8"},
    {"MXFP8", "mxfp8", "fp8"},
    {"NVFP4", "nvfp4", "fp4"},
    {"NVFP4_AWQ", "nvfp4", "fp4"},
    {"W4A8_NVFP4_FP8", "nvfp4", "fp8"},
    {"W4A8_MXFP4_FP8", "mxfp4", "fp8"},
    {"W4A16_MXFP4", "mxfp4_wo", NULL},
    {"W4A16_AWQ", "int4_g128_sym", NULL},
    {"INT4_AWQ", "int4_g128_sym", NULL},
    {"W4A8_AWQ", "int4_g128_sym", "fp8"},
    {"W8A16", "int8_wo", NULL},
    {"W8A8_SQ_PER_CHANNEL", "int8", "int8"},
    {"INT8_SQ", "int8", "int8"},
    {"W4A16", "int4_g128_sym", NULL},
};

static rg_status algorithm(rg_node *node, quant *q, rg_err *err)
{
    const char *name;
    RG_TRY(rg_node_text(node, &name, err));
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        if (strcmp(name, algorithms[i].name) == 0) {
            q->format = algorithms[i].format;
            q->activation = algorithms[i].activation;
            return RG_OK;
        }
    }
    return rg_fail(err, RG_ERR_MODEL, node->pos, "quant_algo '%s' is not known", name);
}

/* MIXED_PRECISION: an algorithm per module; experts, attention and the rest by their majority. */
static rg_status read_mixed(rg_hf *hf, rg_node *layers, quant *q, rg_err *err)
{
    rg_node *experts = NULL, *mixer = NULL, *other = NULL;
    RG_TRY(rg_node_expect(layers, RG_NODE_MAP, "quantized_layers", err));
    for (rg_node *item = layers->first; item != NULL; item = item->next) {
        if (item->kind != RG_NODE_MAP)
            continue;
        rg_node *algo = rg_hf_find_in(item, "quant_algo");
        if (algo == NULL)
            continue;
        if (strstr(item->key, "expert") != NULL && strstr(item->key, "shared") == NULL)
            experts = algo;
        else if (strstr(item->key, "attn") != NULL)
            mixer = algo;
        else
            other = algo;
    }
    quant part = {0};
    if (experts != NULL) {
        RG_TRY(algorithm(experts, &part, err));
        hf->model->expert_quantisation = part.format;
    }
    if (mixer != NULL) {
        RG_TRY(algorithm(mixer, &part, err));
        hf->model->mixer_quantisation = part.format;
    }
    if (other != NULL)
        RG_TRY(algorithm(other, q, err));
    else
        *q = part;
    return RG_OK;
}

static rg_status read_modelopt(rg_hf *hf, rg_node *block, quant *q, rg_err *err)
{
    rg_node *inner = rg_hf_find_in(block, "quantization");
    if (inner != NULL && inner->kind == RG_NODE_MAP)
        block = inner;
    rg_node *algo = rg_hf_find_in(block, "quant_algo");
    rg_node *kv = rg_hf_find_in(block, "kv_cache_quant_algo|kv_cache_scheme");
    if (algo != NULL && algo->text != NULL && strcmp(algo->text, "MIXED_PRECISION") == 0) {
        rg_node *layers = rg_hf_find_in(block, "quantized_layers");
        if (layers == NULL)
            return rg_fail(err, RG_ERR_INPUT, algo->pos,
                           "quant_algo 'MIXED_PRECISION' without 'quantized_layers'");
        RG_TRY(read_mixed(hf, layers, q, err));
    } else if (algo != NULL) {
        RG_TRY(algorithm(algo, q, err));
        rg_node *group = rg_hf_find_in(block, "group_size");
        if (group != NULL && strncmp(q->format, "int4_g", 6) == 0) {
            int64_t size;
            RG_TRY(rg_node_int(group, 1, 1 << 30, &size, err));
            q->format = grouped(hf, 4, size, true, err);
            if (q->format == NULL)
                return RG_ERR_LIMIT;
        }
    }
    q->excluded = rg_hf_find_in(block, "exclude_modules|ignore");
    if (kv != NULL && kv->kind == RG_NODE_MAP) {
        hf->model->kv_quantisation = "fp8";
    } else if (kv != NULL) {
        const char *name;
        RG_TRY(rg_node_text(kv, &name, err));
        if (strcmp(name, "FP8") == 0)
            hf->model->kv_quantisation = "fp8";
        else if (strcmp(name, "NVFP4") == 0 || strcmp(name, "FP4") == 0)
            hf->model->kv_quantisation = "nvfp4";
        else if (strcmp(name, "INT8") == 0)
            hf->model->kv_quantisation = "int8";
        else
            return rg_fail(err, RG_ERR_MODEL, kv->pos, "kv_cache_quant_algo '%s' is not known",
                           name);
    }
    return RG_OK;
}

static rg_status read_bitsandbytes(rg_node *block, quant *q, rg_err *err)
{
    rg_node *four = rg_hf_find_in(block, "load_in_4bit|_load_in_4bit");
    bool is_four = false;
    if (four != NULL)
        RG_TRY(rg_node_bool(four, &is_four, err));
    /* NF4: blocks of 64 with a scale, which double quantisation brings to about 8 bit and less */
    q->format = is_four ? "int4_g64_sym" : "int8_wo";
    q->excluded = rg_hf_find_in(block, "llm_int8_skip_modules");
    return RG_OK;
}

static rg_status read_quark(rg_node *block, quant *q, rg_err *err)
{
    rg_node *global = rg_hf_find_in(block, "global_quant_config");
    rg_node *weight =
        global != NULL && global->kind == RG_NODE_MAP ? rg_hf_find_in(global, "weight") : NULL;
    rg_node *type =
        weight != NULL && weight->kind == RG_NODE_MAP ? rg_hf_find_in(weight, "dtype") : NULL;
    if (type == NULL || type->text == NULL)
        return rg_fail(err, RG_ERR_INPUT, block->pos,
                       "missing key 'global_quant_config.weight.dtype'");
    const bool acts = rg_hf_find_in(global, "input_tensors") != NULL;
    if (strncmp(type->text, "fp8", 3) == 0)
        q->format = acts ? "fp8" : "fp8_wo";
    else if (strcmp(type->text, "fp4") == 0)
        q->format = acts ? "mxfp4" : "mxfp4_wo";
    else if (strcmp(type->text, "int8") == 0)
        q->format = acts ? "int8" : "int8_wo";
    else if (strcmp(type->text, "int4") == 0 || strcmp(type->text, "uint4") == 0)
        q->format = "int4_g128";
    else
        return rg_fail(err, RG_ERR_MODEL, type->pos, "weight dtype '%s' of quark is not known",
                       type->text);
    q->activation = !acts                                ? NULL
                    : strncmp(type->text, "fp4", 3) == 0 ? "fp4"
                    : type->text[0] == 'f'               ? "fp8"
                                                         : "int8";
    q->excluded = rg_hf_find_in(block, "exclude");
    return RG_OK;
}

static rg_status read_fp8(rg_node *block, quant *q, rg_err *err)
{
    rg_node *tile = rg_hf_find_in(block, "weight_block_size");
    q->format = tile != NULL ? "fp8_block" : "fp8";
    if (tile != NULL) {
        RG_TRY(rg_node_expect(tile, RG_NODE_LIST, "weight_block_size", err));
        for (const rg_node *item = tile->first; item != NULL; item = item->next) {
            int64_t size;
            RG_TRY(rg_node_int(item, 1, 65536, &size, err));
            if (size != 128)
                return rg_fail(err, RG_ERR_MODEL, item->pos,
                               "weight_block_size '%lld': only blocks of 128 x 128 are known",
                               (long long)size);
        }
    }
    q->activation = "fp8";
    q->excluded = rg_hf_find_in(block, "modules_to_not_convert|ignored_layers");
    return RG_OK;
}

static rg_status read_block(rg_hf *hf, rg_node *block, quant *q, rg_err *err)
{
    rg_node *node = rg_hf_find_in(block, "quant_method");
    const char *method = "modelopt";
    if (node != NULL)
        RG_TRY(rg_node_text(node, &method, err));
    else if (rg_hf_find_in(block, "quant_algo|quantization") == NULL)
        return rg_fail(err, RG_ERR_INPUT, block->pos,
                       "missing key 'quant_method' in the quantisation block");
    hf->model->quantisation_scheme = method;
    if (strncmp(method, "modelopt", 8) == 0)
        return read_modelopt(hf, block, q, err);
    if (strcmp(method, "compressed-tensors") == 0)
        return read_compressed(hf, block, q, err);
    q->excluded = rg_hf_find_in(block, "modules_to_not_convert");
    if (strcmp(method, "fp8") == 0 || strcmp(method, "fbgemm_fp8") == 0)
        return read_fp8(block, q, err);
    if (strcmp(method, "mxfp4") == 0) {
        q->format = "mxfp4_wo";
        q->experts_only = true;
        return RG_OK;
    }
    if (strcmp(method, "gptq") == 0 || strcmp(method, "gptq_marlin") == 0 ||
        strcmp(method, "auto-round") == 0)
        return read_grouped(hf, block, true, q, err);
    if (strcmp(method, "awq") == 0)
        return read_grouped(hf, block, false, q, err);
    if (strcmp(method, "bitsandbytes") == 0)
        return read_bitsandbytes(block, q, err);
    if (strcmp(method, "quark") == 0)
        return read_quark(block, q, err);
    return rg_fail(
        err, RG_ERR_MODEL, node ? node->pos : block->pos,
        "quant_method '%s' is not known; fp8, mxfp4, compressed-tensors, modelopt, gptq, "
        "awq, bitsandbytes and quark are",
        method);
}

/* Does the list leave out a part? A pattern without a layer number covers all layers; patterns with
 * numbers do when they name most of them. */
static bool leaves_out(const rg_hf *hf, const rg_node *list, const char *part, const char *unless)
{
    enum { MAX_LAYERS = 4096 };
    bool named[MAX_LAYERS] = {false};
    int64_t count = 0;
    for (const rg_node *item = list != NULL ? list->first : NULL; item; item = item->next) {
        if (item->text == NULL || strstr(item->text, part) == NULL ||
            (unless != NULL && strstr(item->text, unless) != NULL))
            continue;
        const char *digit = strstr(item->text, "layers.");
        if (digit == NULL || digit[7] < '0' || digit[7] > '9')
            return true;
        int index = 0;
        for (digit += 7; *digit >= '0' && *digit <= '9' && index < MAX_LAYERS; digit++)
            index = index * 10 + (*digit - '0');
        if (index < MAX_LAYERS && !named[index]) {
            named[index] = true;
            count++;
        }
    }
    return count * 2 > hf->model->layer_count;
}

static rg_status lay_on_model(rg_hf *hf, const quant *q, rg_err *err)
{
    rg_model *m = hf->model;
    rg_format format;
    if (q->format == NULL)
        return RG_OK;
    RG_TRY(rg_format_parse(q->format, rg_hf_pos(hf), &format, err));
    m->activation_quantisation = q->activation;
    const char *plain = m->dtype != NULL ? m->dtype : "bf16";
    const bool dense_out = q->experts_only || leaves_out(hf, q->excluded, "mlp.(gate|up", NULL) ||
                           leaves_out(hf, q->excluded, "shared_expert", NULL);
    const bool mixer_out = q->experts_only || leaves_out(hf, q->excluded, "self_attn", NULL) ||
                           leaves_out(hf, q->excluded, "mixer", "experts");
    const bool sparse = hf->expert.experts > 0;
    m->quantisation = q->format;
    if (sparse && dense_out) {
        if (m->expert_quantisation == NULL)
            m->expert_quantisation = q->format;
        m->quantisation = NULL;
    }
    if (mixer_out && m->mixer_quantisation == NULL && m->quantisation != NULL)
        m->mixer_quantisation = plain;
    return RG_OK;
}

rg_status rg_hf_quantisation(rg_hf *hf, rg_err *err)
{
    rg_node *block = rg_hf_find(hf, "quantization_config");
    if (block == NULL)
        block = rg_hf_find_in(hf->root, "quantization_config");
    rg_node *inline_method = rg_hf_find(hf, "compression_config");
    if (block == NULL)
        block = inline_method;
    quant q = {0};
    if (hf->quant_file != NULL) {
        RG_TRY(rg_node_expect(hf->quant_file, RG_NODE_MAP, "hf_quant_config.json", err));
        RG_TRY(read_block(hf, hf->quant_file, &q, err));
        return lay_on_model(hf, &q, err);
    }
    if (block == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(block, RG_NODE_MAP, "quantization_config", err));
    RG_TRY(read_block(hf, block, &q, err));
    return lay_on_model(hf, &q, err);
}

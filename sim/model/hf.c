/* model/hf.c: Hugging Face config.json to a model: the family, and the sizes that families share.
 */
// SPDX-License-Identifier: Apache-2.0
#include "model/hf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

enum { MAX_SIZE = 1 << 30, MAX_LAYERS = 4096 };

/* Not rg_map_find: that remembers what was asked for, which a config does not need, as its unknown
 * keys are judged by their names. */
static rg_node *child_named(const rg_node *map, const char *key, size_t length)
{
    for (rg_node *child = map->first; child != NULL; child = child->next)
        if (strncmp(child->key, key, length) == 0 && child->key[length] == '\0')
            return child;
    return NULL;
}

rg_node *rg_hf_find_in(rg_node *map, const char *keys)
{
    rg_node *found = NULL;
    while (*keys != '\0') { /* all are looked at, so that none counts as unknown */
        const size_t length = strcspn(keys, "|");
        rg_node *node = child_named(map, keys, length);
        if (node != NULL) {
            node->used = true;
            if (found == NULL && !rg_node_is_null(node))
                found = node;
        }
        keys += length + (keys[length] == '|');
    }
    return found;
}

rg_node *rg_hf_find(rg_hf *hf, const char *keys)
{
    return rg_hf_find_in(hf->text, keys);
}

rg_pos rg_hf_pos(const rg_hf *hf)
{
    return hf->text->pos;
}

void rg_hf_note(rg_hf *hf, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const int most = (int)(sizeof hf->notes / sizeof hf->notes[0]);
    if (hf->note_count < most) {
        const char *copy = rg_arena_strdup(hf->arena, text, NULL);
        if (copy != NULL)
            hf->notes[hf->note_count++] = copy;
    }
}

rg_status rg_hf_missing(rg_hf *hf, const char *keys, rg_err *err)
{
    char key[96];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(keys, "|"), keys);
    const char *names[128] = {NULL};
    size_t count = 0;
    for (const rg_node *child = hf->text->first; child != NULL && count < 127; child = child->next)
        if (!child->used)
            names[count++] = child->key;
    const char *near = rg_text_nearest(key, names);
    return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf), "missing key '%s' (model_type '%s')%s%s%s",
                   key, hf->type, near ? "; is it '" : "", near ? near : "", near ? "'?" : "");
}

rg_status rg_hf_int(rg_hf *hf, const char *keys, int64_t least, int64_t *out, rg_err *err)
{
    rg_node *node = rg_hf_find(hf, keys);
    if (node == NULL)
        return rg_hf_missing(hf, keys, err);
    return rg_node_int(node, least, MAX_SIZE, out, err);
}

rg_status rg_hf_int_or(rg_hf *hf, const char *keys, int64_t least, int64_t fallback, int64_t *out,
                       rg_err *err)
{
    rg_node *node = rg_hf_find(hf, keys);
    *out = fallback;
    return node == NULL ? RG_OK : rg_node_int(node, least, MAX_SIZE, out, err);
}

rg_status rg_hf_int_noted(rg_hf *hf, const char *keys, int64_t least, int64_t fallback,
                          int64_t *out, rg_err *err)
{
    if (rg_hf_find(hf, keys) == NULL)
        rg_hf_note(hf, "no key '%.*s': %" PRId64 ", the default of model_type '%s'",
                   (int)strcspn(keys, "|"), keys, fallback, hf->type);
    return rg_hf_int_or(hf, keys, least, fallback, out, err);
}

rg_status rg_hf_bool_or(rg_hf *hf, const char *keys, bool fallback, bool *out, rg_err *err)
{
    rg_node *node = rg_hf_find(hf, keys);
    *out = fallback;
    return node == NULL ? RG_OK : rg_node_bool(node, out, err);
}

rg_status rg_hf_flag(rg_hf *hf, const char *rule, bool *out, rg_err *err)
{
    *out = false;
    if (rule == NULL)
        return RG_OK;
    const char *colon = strchr(rule, ':');
    if (colon == NULL) {
        *out = strcmp(rule, "yes") == 0;
        return RG_OK;
    }
    const char *keys = rg_arena_copy(hf->arena, rule, (size_t)(colon - rule), err);
    if (keys == NULL)
        return RG_ERR_LIMIT;
    return rg_hf_bool_or(hf, keys, strncmp(colon + 1, "yes", 3) == 0, out, err);
}

/* The map of the language model: multimodal configs hold it in a map of its own. */
static rg_node *language_model(rg_node *root)
{
    rg_node *node = root;
    for (int depth = 0; depth < 2; depth++) {
        rg_node *inner = rg_hf_find_in(
            node, "text_config|llm_config|language_config|thinker_config|language_model_config");
        if (inner == NULL || inner->kind != RG_NODE_MAP)
            break;
        node = inner;
    }
    return node;
}

static rg_status refuse(const rg_node *at, const char *type, const char *why, rg_err *err)
{
    return rg_fail(err, RG_ERR_MODEL, at->pos, "architecture '%s' is not supported: %s", type, why);
}

static rg_status family_by_architecture(rg_hf *hf, rg_node *map, rg_err *err)
{
    rg_node *list = rg_hf_find_in(map, "architectures");
    if (list == NULL || list->kind != RG_NODE_LIST || list->first == NULL)
        return RG_OK;
    const char *name;
    RG_TRY(rg_node_text(list->first, &name, err));
    hf->family = rg_hf_family_by_architecture(name);
    if (hf->family != NULL && hf->type == NULL)
        hf->type =
            rg_arena_copy(hf->arena, hf->family->types, strcspn(hf->family->types, "|"), err);
    return RG_OK;
}

/* The model_type nearest to a word, copied to out; NULL when none is near. */
static const char *nearest_family(const char *type, char *out, size_t size)
{
    const char *found = NULL;
    int best = 1 << 20;
    for (const rg_hf_family *f = rg_hf_families; f->types != NULL; f++)
        for (const char *name = f->types; *name != '\0';) {
            char word[64];
            const int length = (int)strcspn(name, "|");
            snprintf(word, sizeof word, "%.*s", length, name);
            const char *const one[] = {word, NULL};
            const int distance = rg_text_distance(type, word);
            if (distance < best && rg_text_nearest(type, one) != NULL) {
                best = distance;
                snprintf(out, size, "%s", word);
                found = out;
            }
            name += length + (name[length] == '|');
        }
    return found;
}

static rg_status unknown_family(rg_node *at, const char *type, rg_err *err)
{
    char word[64];
    const char *nearest = nearest_family(type, word, sizeof word);
    return rg_fail(err, RG_ERR_MODEL, at->pos,
                   "model_type '%s' is not known%s%s%s; if its layers are those of a known family, "
                   "import it with --family",
                   type, nearest ? ", did you mean '" : "", nearest ? nearest : "",
                   nearest ? "'?" : "");
}

/* The family from --family, the inner model_type, the outer one, or the architecture's name. */
static rg_status find_family(rg_hf *hf, const char *forced, rg_err *err)
{
    rg_node *outer = rg_hf_find_in(hf->root, "model_type");
    rg_node *inner = rg_hf_find_in(hf->text, "model_type");
    rg_node *nodes[] = {inner, hf->text != hf->root ? outer : NULL};
    if (forced != NULL) {
        hf->type = forced;
        hf->family = rg_hf_family_find(forced);
        return hf->family != NULL ? RG_OK : unknown_family(hf->root, forced, err);
    }
    rg_node *seen = NULL;
    for (int i = 0; i < 2; i++) {
        if (nodes[i] == NULL)
            continue;
        const char *type;
        RG_TRY(rg_node_text(nodes[i], &type, err));
        const char *why = rg_hf_refusal(type);
        if (why != NULL)
            return refuse(nodes[i], type, why, err);
        if (seen == NULL)
            seen = nodes[i];
        if (hf->family == NULL) {
            hf->family = rg_hf_family_find(type);
            hf->type = hf->family != NULL ? type : NULL;
        }
    }
    if (hf->family != NULL)
        return RG_OK;
    if (seen != NULL)
        return unknown_family(seen, seen->text, err);
    RG_TRY(family_by_architecture(hf, hf->text, err));
    if (hf->family == NULL && hf->text != hf->root)
        RG_TRY(family_by_architecture(hf, hf->root, err));
    if (hf->family == NULL && rg_hf_find(hf, "ssm_cfg") != NULL) {
        hf->type = "mamba";
        hf->family = rg_hf_family_find("mamba");
    }
    if (hf->family == NULL)
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf),
                       "missing key 'model_type', and 'architectures' names none that is known");
    rg_hf_note(hf, "no model_type: taken as '%s' from its other keys", hf->type);
    return RG_OK;
}

/* A config within a config leaves out what equals its class's default (LlamaConfig, MistralConfig,
 * Gemma3TextConfig of transformers). */
static const struct {
    const char *type, *keys;
    int64_t value;
} nested_defaults[] = {
    {"llama", "hidden_size", 4096},          {"llama", "num_hidden_layers", 32},
    {"llama", "num_attention_heads", 32},    {"llama", "intermediate_size", 11008},
    {"llama", "vocab_size", 32000},          {"mistral", "hidden_size", 4096},
    {"mistral", "num_hidden_layers", 32},    {"mistral", "num_attention_heads", 32},
    {"mistral", "intermediate_size", 14336}, {"mistral", "vocab_size", 32000},
    {"gemma3_text", "hidden_size", 2304},    {"gemma3_text", "num_hidden_layers", 26},
    {"gemma3_text", "vocab_size", 262208},   {"gemma3_text", "intermediate_size", 9216},
};

static bool nested_default(const rg_hf *hf, const char *key, int64_t *out)
{
    for (size_t i = 0; i < sizeof nested_defaults / sizeof nested_defaults[0]; i++)
        if (hf->text != hf->root && strcmp(hf->type, nested_defaults[i].type) == 0 &&
            strcmp(key, nested_defaults[i].keys) == 0) {
            *out = nested_defaults[i].value;
            return true;
        }
    return false;
}

/* A size that must be there, or have a default because the config is nested. */
static rg_status read_size(rg_hf *hf, const char *key, const char *keys, int64_t *out, rg_err *err)
{
    int64_t fallback;
    if (rg_hf_find(hf, keys) == NULL && nested_default(hf, key, &fallback))
        return rg_hf_int_noted(hf, keys, 1, fallback, out, err);
    return rg_hf_int(hf, keys, 1, out, err);
}

static rg_status read_qk_norm(rg_hf *hf, rg_err *err)
{
    const char *rule = hf->family->qk_norm;
    if (rule == NULL)
        return RG_OK;
    bool on = true;
    const char *kind = rule;
    if (strchr(rule, ':') != NULL) {
        RG_TRY(rg_hf_flag(hf, rule, &on, err));
        kind = strrchr(rule, ':') + 1;
    }
    if (on)
        hf->base.qk_norm = strcmp(kind, "full") == 0   ? RG_QK_NORM_FULL
                           : strcmp(kind, "bare") == 0 ? RG_QK_NORM_BARE
                                                       : RG_QK_NORM_HEAD;
    return RG_OK;
}

static rg_status read_rope(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base;
    if (hf->family->no_rope || l->head_dim == 0)
        return RG_OK;
    int64_t rotary;
    RG_TRY(rg_hf_int_or(hf, "rotary_dim|rotary_ndims", 0, 0, &rotary, err));
    if (rotary == 0) {
        double share = 1.0;
        rg_node *node = rg_hf_find(hf, "partial_rotary_factor|rotary_pct|rope_pct");
        rg_node *rope = rg_hf_find(hf, "rope_parameters");
        if (node == NULL && rope != NULL && rope->kind == RG_NODE_MAP)
            node = rg_hf_find_in(rope, "partial_rotary_factor");
        if (node != NULL) {
            RG_TRY(rg_node_real(node, false, &share, err));
            if (!(share >= 0 && share <= 1))
                return rg_fail(err, RG_ERR_INPUT, node->pos,
                               "rotary share '%s' is not between 0 and 1", node->text);
        }
        rotary = (int64_t)(share * (double)l->head_dim);
    }
    l->rope_dim = rotary < l->head_dim ? rotary : l->head_dim;
    return RG_OK;
}

static rg_status read_attention(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base;
    const rg_hf_family *f = hf->family;
    int64_t usual = 0;
    if (rg_hf_find(hf, "num_attention_heads|n_head|n_heads|num_heads") == NULL &&
        nested_default(hf, "num_attention_heads", &usual))
        rg_hf_note(hf, "no key 'num_attention_heads': %" PRId64 ", the default of its class",
                   usual);
    RG_TRY(
        rg_hf_int_or(hf, "num_attention_heads|n_head|n_heads|num_heads", 1, usual, &l->heads, err));
    if (l->heads == 0) /* attention-free models say so by leaving it out; others fail later */
        return RG_OK;
    RG_TRY(rg_hf_int_or(hf, "num_key_value_heads|n_head_kv|num_kv_heads", 1, l->heads, &l->kv_heads,
                        err));
    rg_node *head_dim = rg_hf_find(hf, "head_dim|attention_head_dim|kv_channels|attn_head_dim");
    if (head_dim != NULL) {
        RG_TRY(rg_node_int(head_dim, 1, MAX_SIZE, &l->head_dim, err));
    } else {
        if (hf->model->hidden % l->heads != 0)
            return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf),
                           "missing key 'head_dim', and hidden size %lld is not a multiple of %lld "
                           "heads",
                           (long long)hf->model->hidden, (long long)l->heads);
        l->head_dim = hf->model->hidden / l->heads;
    }
    if (l->kv_heads > l->heads || l->heads % l->kv_heads != 0) {
        rg_node *node = rg_hf_find(hf, "num_key_value_heads|n_head_kv|num_kv_heads");
        return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' KV heads do not divide %lld query heads",
                       node->text, (long long)l->heads);
    }
    l->mixer = RG_MIX_FULL;
    RG_TRY(rg_hf_flag(hf, f->qkv_bias, &l->qkv_bias, err));
    RG_TRY(rg_hf_flag(hf, f->o_bias, &l->o_bias, err));
    RG_TRY(read_qk_norm(hf, err));
    return read_rope(hf, err);
}

static rg_status read_ffn(rg_hf *hf, rg_err *err)
{
    rg_layer *l = &hf->base;
    const rg_hf_family *f = hf->family;
    l->gated = !f->plain;
    l->ffn = RG_FFN_DENSE;
    rg_node *node = rg_hf_find(hf, "intermediate_size|ffn_hidden_size|n_inner|ffn_dim");
    if (node != NULL)
        RG_TRY(rg_hf_uniform(node, 1, &l->inter, err));
    else if (f->inter_ratio != NULL)
        l->inter = 4 * hf->model->hidden;
    else if (nested_default(hf, "intermediate_size", &l->inter))
        rg_hf_note(hf, "no key 'intermediate_size': %" PRId64 ", the default of its class",
                   l->inter);
    return rg_hf_flag(hf, f->ffn_bias, &l->ffn_bias, err);
}

static rg_status read_sizes(rg_hf *hf, rg_err *err)
{
    rg_model *m = hf->model;
    const rg_hf_family *f = hf->family;
    RG_TRY(read_size(hf, "hidden_size", "hidden_size|n_embd|n_embed|d_model", &m->hidden, err));
    RG_TRY(read_size(hf, "num_hidden_layers", "num_hidden_layers|n_layer|n_layers|num_layers",
                     &m->layer_count, err));
    if (m->layer_count > MAX_LAYERS)
        return rg_fail(err, RG_ERR_LIMIT, rg_hf_pos(hf), "'%lld' layers, at most %d are read",
                       (long long)m->layer_count, MAX_LAYERS);
    RG_TRY(read_size(hf, "vocab_size", "padded_vocab_size|vocab_size", &m->vocab, err));
    RG_TRY(rg_hf_int_or(hf,
                        "max_position_embeddings|n_positions|max_seq_len|seq_length|"
                        "max_sequence_length|model_max_length|n_ctx",
                        1, 0, &m->max_positions, err));
    m->tied_embeddings = f->tied;
    rg_node *tie = rg_hf_find(hf, "tie_word_embeddings|weight_tying");
    if (tie == NULL)
        tie = rg_hf_find_in(hf->root, "tie_word_embeddings");
    if (tie != NULL)
        RG_TRY(rg_node_bool(tie, &m->tied_embeddings, err));
    m->final_norm = true;
    hf->base.norms = f->norms > 0 ? f->norms : 2;
    hf->base.norm_bias = f->norm_bias;
    hf->base.norm_bare = f->norm_bare;
    RG_TRY(read_attention(hf, err));
    return read_ffn(hf, err);
}

static rg_status read_positions(rg_hf *hf, rg_err *err)
{
    rg_model *m = hf->model;
    if (!hf->family->positions)
        return RG_OK;
    if (m->max_positions == 0)
        return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf),
                       "missing key 'max_position_embeddings': the learned position table of "
                       "model_type '%s' has that many rows",
                       hf->type);
    m->position_rows = m->max_positions + hf->family->position_extra;
    return RG_OK;
}

static rg_status check_layers(rg_hf *hf, rg_err *err)
{
    for (int64_t i = 0; i < hf->model->layer_count; i++) {
        const rg_layer *l = &hf->model->layers[i];
        const bool attends = l->mixer >= RG_MIX_FULL && l->mixer <= RG_MIX_CHUNKED;
        if ((attends && l->heads == 0) || (l->mixer == RG_MIX_NONE && l->ffn == RG_FFN_DENSE &&
                                           hf->base.heads == 0 && l->norms == 2))
            return rg_hf_missing(hf, "num_attention_heads", err);
        if (l->ffn == RG_FFN_DENSE && l->inter == 0)
            return rg_hf_missing(hf, "intermediate_size", err);
        if (l->ffn == RG_FFN_MOE && (l->top_k < 1 || l->top_k > l->experts || l->inter == 0))
            return rg_fail(err, RG_ERR_INPUT, rg_hf_pos(hf),
                           "layer %lld takes %lld of %lld experts of width %lld; the expert keys "
                           "are not complete",
                           (long long)i, (long long)l->top_k, (long long)l->experts,
                           (long long)l->inter);
    }
    return RG_OK;
}

static rg_status read_rest(rg_hf *hf, rg_err *err)
{
    rg_model *m = hf->model;
    RG_TRY(rg_hf_int_or(hf,
                        "num_nextn_predict_layers|mtp_num_hidden_layers|num_mtp_modules|"
                        "num_mtp_layers",
                        0, 0, &m->mtp_layers, err));
    rg_node *dtype = rg_hf_find(hf, "torch_dtype|dtype");
    if (dtype == NULL)
        dtype = rg_hf_find_in(hf->root, "torch_dtype|dtype");
    if (dtype != NULL && dtype->kind == RG_NODE_SCALAR && strcmp(dtype->text, "auto") != 0) {
        rg_dtype type;
        const char *text = dtype->text + (strncmp(dtype->text, "torch.", 6) == 0 ? 6 : 0);
        RG_TRY(rg_dtype_parse(text, dtype->pos, &type, err));
        m->dtype = rg_dtype_name(type);
    }
    rg_node *state = rg_hf_find(hf, "mamba_ssm_cache_dtype|mamba_ssm_dtype");
    if (state != NULL) {
        rg_dtype type;
        RG_TRY(rg_dtype_parse(state->text, state->pos, &type, err));
        m->state_type = rg_dtype_name(type);
    }
    return rg_hf_quantisation(hf, err);
}

rg_status rg_model_import(rg_arena *arena, rg_node *config, rg_node *quant_config,
                          const char *family, const char *name, rg_model **out, rg_err *err)
{
    RG_TRY(rg_node_expect(config, RG_NODE_MAP, "a config.json", err));
    rg_hf *hf = RG_NEW(arena, rg_hf, 1, err);
    rg_model *m = RG_NEW(arena, rg_model, 1, err);
    if (hf == NULL || m == NULL)
        return RG_ERR_LIMIT;
    *hf = (rg_hf){.arena = arena, .root = config, .quant_file = quant_config, .model = m};
    hf->text = language_model(config);
    m->name = name;
    m->path = config->pos.file;
    RG_TRY(find_family(hf, family, err));
    m->family = hf->type;
    RG_TRY(read_sizes(hf, err));
    if (hf->family->moe)
        RG_TRY(rg_hf_experts(hf, err));
    if (hf->family->sizes != NULL)
        RG_TRY(hf->family->sizes(hf, err));
    RG_TRY(read_positions(hf, err));
    m->layers = RG_NEW(arena, rg_layer, m->layer_count, err);
    if (m->layers == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(rg_hf_lay_out(hf, err));
    if (hf->family->layers != NULL)
        RG_TRY(hf->family->layers(hf, err));
    RG_TRY(check_layers(hf, err));
    RG_TRY(read_rest(hf, err));
    RG_TRY(rg_hf_unknown(hf, err));
    RG_TRY(rg_model_count(m, err));
    const char **notes = RG_NEW(arena, const char *, hf->note_count, err);
    if (notes == NULL)
        return RG_ERR_LIMIT;
    memcpy(notes, hf->notes, (size_t)hf->note_count * sizeof *notes);
    m->notes = notes;
    m->note_count = hf->note_count;
    *out = m;
    return RG_OK;
}

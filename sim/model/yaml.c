/* model/yaml.c: a model as YAML: sizes, the kinds of layers there are, and their order. */
// SPDX-License-Identifier: Apache-2.0
#include "model/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/field.h"

enum { MAX_SIZE = 1 << 30, MAX_LAYERS = 4096, MAX_KINDS = 512, MAX_PERIOD = 24 };
static const int64_t MAX_EXTRA = (int64_t)1 << 45;

static const char *const mixer_kinds[] = {"none",   "full",   "window", "chunked", "mla",
                                          "linear", "mamba1", "mamba2", NULL};
static const char *const ffn_kinds[] = {"none", "dense", "moe", NULL};
static const char *const qk_norm_kinds[] = {"none", "head", "full", "bare", NULL};

/* Reading. */

static bool listed(const char *const *names, const char *name)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static rg_status read_fields(rg_node *map, const char *part, const char *const *required,
                             rg_layer *layer, rg_err *err)
{
    for (const rg_field *f = rg_layer_fields; f->key != NULL; f++) {
        if (strcmp(f->part, part) != 0)
            continue;
        const bool extra = strcmp(f->key, "extra_params") == 0;
        int64_t value = 0;
        rg_node *node = rg_map_find(map, f->key);
        if (node == NULL) {
            if (listed(required, f->key))
                RG_TRY(rg_map_get(map, f->key, &node, err));
            continue;
        }
        if (f->type == RG_FIELD_BOOL) {
            bool flag;
            RG_TRY(rg_node_bool(node, &flag, err));
            value = flag;
        } else if (f->type == RG_FIELD_QK_NORM) {
            int index;
            RG_TRY(rg_node_choice(node, qk_norm_kinds, &index, err));
            value = index;
        } else {
            const int64_t least = extra ? -MAX_EXTRA : listed(required, f->key) ? 1 : 0;
            RG_TRY(rg_node_int(node, least, extra ? MAX_EXTRA : MAX_SIZE, &value, err));
        }
        rg_field_set(f, layer, value);
    }
    return rg_map_done(map, err);
}

static rg_status read_part(rg_node *kind, const char *part, const char *const *names, int *index,
                           rg_node **map, rg_err *err)
{
    *index = 0;
    *map = rg_map_find(kind, part);
    if (*map == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(*map, RG_NODE_MAP, part, err));
    rg_node *name;
    RG_TRY(rg_map_get(*map, "kind", &name, err));
    return rg_node_choice(name, names, index, err);
}

static rg_status check_mixer(const rg_node *map, const rg_layer *l, rg_err *err)
{
    if (l->heads > 0 && l->kv_heads > 0 && (l->kv_heads > l->heads || l->heads % l->kv_heads != 0))
        return rg_fail(err, RG_ERR_INPUT, map->pos,
                       "%" PRId64 " KV heads do not divide %" PRId64 " query heads", l->kv_heads,
                       l->heads);
    if (l->ssm_groups > 0 && l->ssm_heads % l->ssm_groups != 0)
        return rg_fail(err, RG_ERR_INPUT, map->pos,
                       "%" PRId64 " groups do not divide %" PRId64 " heads", l->ssm_groups,
                       l->ssm_heads);
    return RG_OK;
}

static rg_status read_kind(rg_node *node, rg_layer *layer, rg_err *err)
{
    static const char *const attention[] = {"heads", "kv_heads", "head_dim", NULL};
    static const char *const window[] = {"heads", "kv_heads", "head_dim", "window", NULL};
    static const char *const mla[] = {"heads", "kv_lora", "nope_dim", "v_head_dim", NULL};
    static const char *const ssm[] = {"ssm_heads", "ssm_head_dim", "ssm_state", NULL};
    static const char *const mamba1[] = {"ssm_heads",   "ssm_head_dim", "ssm_state",
                                         "ssm_dt_rank", "ssm_conv",     NULL};
    static const char *const dense[] = {"inter", NULL};
    static const char *const moe[] = {"inter", "experts", "top_k", NULL};
    static const char *const nothing[] = {NULL};
    static const char *const *const mixer_needs[] = {nothing, attention, window, window,
                                                     mla,     ssm,       mamba1, ssm};
    static const char *const *const ffn_needs[] = {nothing, dense, moe};
    int index;
    rg_node *map;
    RG_TRY(rg_node_expect(node, RG_NODE_MAP, node->key, err));
    RG_TRY(read_part(node, "mixer", mixer_kinds, &index, &map, err));
    layer->mixer = (rg_mixer)index;
    if (map != NULL) {
        RG_TRY(read_fields(map, "mixer", mixer_needs[index], layer, err));
        RG_TRY(check_mixer(map, layer, err));
        if (layer->mixer == RG_MIX_MLA) {
            layer->head_dim = layer->nope_dim + layer->rope_dim;
            layer->kv_heads = layer->heads;
        }
    }
    RG_TRY(read_part(node, "ffn", ffn_kinds, &index, &map, err));
    layer->ffn = (rg_ffn)index;
    if (map != NULL) {
        RG_TRY(read_fields(map, "ffn", ffn_needs[index], layer, err));
        if (layer->top_k > layer->experts)
            return rg_fail(err, RG_ERR_INPUT, map->pos,
                           "top_k %" PRId64 " is above %" PRId64 " experts", layer->top_k,
                           layer->experts);
    }
    map = rg_map_find(node, "norms");
    if (map != NULL) {
        RG_TRY(rg_node_expect(map, RG_NODE_MAP, "norms", err));
        RG_TRY(read_fields(map, "norms", nothing, layer, err));
    }
    return rg_map_done(node, err);
}

typedef struct kind_table {
    rg_node *nodes[MAX_KINDS];
    rg_layer *layers;
    int count;
} kind_table;

static rg_status kind_of(const kind_table *kinds, const rg_node *name, int *index, rg_err *err)
{
    const char *names[MAX_KINDS + 1] = {NULL};
    for (int i = 0; i < kinds->count; i++)
        names[i] = kinds->nodes[i]->key;
    return rg_node_choice(name, names, index, err);
}

static rg_status append(rg_model *m, const rg_layer *layer, const rg_node *at, rg_err *err)
{
    if (m->layer_count >= MAX_LAYERS)
        return rg_fail(err, RG_ERR_LIMIT, at->pos, "more than %d layers", MAX_LAYERS);
    m->layers[m->layer_count++] = *layer;
    return RG_OK;
}

static rg_status read_order(rg_model *m, const kind_table *kinds, rg_node *order, rg_err *err)
{
    RG_TRY(rg_node_expect(order, RG_NODE_LIST, "order", err));
    for (rg_node *item = order->first; item != NULL; item = item->next) {
        int index;
        if (item->kind == RG_NODE_SCALAR) {
            RG_TRY(kind_of(kinds, item, &index, err));
            RG_TRY(append(m, &kinds->layers[index], item, err));
            continue;
        }
        int64_t repeat;
        rg_node *of;
        RG_TRY(rg_node_expect(item, RG_NODE_MAP, "an entry of order", err));
        RG_TRY(rg_map_int(item, "repeat", 1, MAX_LAYERS, &repeat, err));
        RG_TRY(rg_map_get(item, "of", &of, err));
        RG_TRY(rg_node_expect(of, RG_NODE_LIST, "of", err));
        RG_TRY(rg_map_done(item, err));
        for (int64_t i = 0; i < repeat; i++)
            for (const rg_node *name = of->first; name != NULL; name = name->next) {
                RG_TRY(kind_of(kinds, name, &index, err));
                RG_TRY(append(m, &kinds->layers[index], name, err));
            }
    }
    if (m->layer_count == 0)
        return rg_fail(err, RG_ERR_INPUT, order->pos, "'order' names no layer");
    return RG_OK;
}

/* Layers that an order stands for, as far as it is well formed; the reader says what is not. */
static int64_t length_of(const rg_node *order)
{
    int64_t sum = 0;
    for (const rg_node *item = order->first; item != NULL; item = item->next) {
        int64_t repeat = 1, names = 1;
        for (const rg_node *part = item->kind == RG_NODE_MAP ? item->first : NULL; part != NULL;
             part = part->next) {
            if (strcmp(part->key, "repeat") == 0 &&
                rg_node_int(part, 1, MAX_LAYERS, &repeat, NULL) != RG_OK)
                repeat = 1;
            if (strcmp(part->key, "of") == 0)
                names = (int64_t)part->count;
        }
        sum += repeat * names;
        if (sum > MAX_LAYERS)
            return MAX_LAYERS;
    }
    return sum;
}

static rg_status read_layers(rg_arena *arena, rg_model *m, rg_node *layers, rg_err *err)
{
    rg_node *kinds_node, *order;
    RG_TRY(rg_node_expect(layers, RG_NODE_MAP, "layers", err));
    RG_TRY(rg_map_get(layers, "kinds", &kinds_node, err));
    RG_TRY(rg_map_get(layers, "order", &order, err));
    RG_TRY(rg_map_done(layers, err));
    kind_table *kinds = RG_NEW(arena, kind_table, 1, err);
    m->layers = RG_NEW(arena, rg_layer, length_of(order), err);
    if (kinds == NULL || m->layers == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(rg_node_expect(kinds_node, RG_NODE_MAP, "kinds", err));
    if (kinds_node->count == 0 || kinds_node->count > MAX_KINDS)
        return rg_fail(err, RG_ERR_INPUT, kinds_node->pos, "'kinds' must name 1 to %d kinds",
                       MAX_KINDS);
    kinds->layers = RG_NEW(arena, rg_layer, kinds_node->count, err);
    if (kinds->layers == NULL)
        return RG_ERR_LIMIT;
    for (rg_node *node = kinds_node->first; node != NULL; node = node->next) {
        kinds->nodes[kinds->count] = node;
        RG_TRY(read_kind(node, &kinds->layers[kinds->count++], err));
    }
    return read_order(m, kinds, order, err);
}

static rg_status read_format_name(rg_node *map, const char *key, const char **out, rg_err *err)
{
    rg_node *node = rg_map_find(map, key);
    rg_format format;
    *out = NULL;
    if (node == NULL)
        return RG_OK;
    RG_TRY(rg_node_text(node, out, err));
    return rg_format_parse(*out, node->pos, &format, err);
}

static rg_status read_quantisation(rg_model *m, rg_node *map, rg_err *err)
{
    if (map == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "quantisation", err));
    RG_TRY(rg_map_text_or(map, "scheme", NULL, &m->quantisation_scheme, err));
    RG_TRY(read_format_name(map, "weight", &m->quantisation, err));
    RG_TRY(read_format_name(map, "experts", &m->expert_quantisation, err));
    RG_TRY(read_format_name(map, "mixer", &m->mixer_quantisation, err));
    RG_TRY(read_format_name(map, "head", &m->head_quantisation, err));
    RG_TRY(read_format_name(map, "kv", &m->kv_quantisation, err));
    RG_TRY(read_format_name(map, "activation", &m->activation_quantisation, err));
    return rg_map_done(map, err);
}

/* The counts in the file are a check on its sizes: whoever edits one must know the other. */
static rg_status check_counts(const rg_model *m, rg_node *map, rg_err *err)
{
    if (map == NULL)
        return RG_OK;
    const struct {
        const char *key;
        int64_t counted;
    } rows[] = {{"total", m->parameters_total}, {"active", m->parameters_active}};
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "parameters", err));
    for (int i = 0; i < 2; i++) {
        rg_node *node = rg_map_find(map, rows[i].key);
        int64_t said;
        if (node == NULL)
            continue;
        RG_TRY(rg_node_int(node, 0, INT64_MAX, &said, err));
        if (said != rows[i].counted)
            return rg_fail(err, RG_ERR_INPUT, node->pos,
                           "parameters %s '%" PRId64 "', but the layers add up to %" PRId64,
                           rows[i].key, said, rows[i].counted);
    }
    return rg_map_done(map, err);
}

static rg_status read_notes(rg_arena *arena, rg_model *m, rg_node *list, rg_err *err)
{
    if (list == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, "notes", err));
    const char **notes = RG_NEW(arena, const char *, list->count, err);
    if (notes == NULL)
        return RG_ERR_LIMIT;
    for (const rg_node *item = list->first; item != NULL; item = item->next)
        RG_TRY(rg_node_text(item, &notes[m->note_count++], err));
    m->notes = notes;
    return RG_OK;
}

rg_status rg_model_read(rg_arena *arena, rg_node *root, rg_model **out, rg_err *err)
{
    rg_model *m = RG_NEW(arena, rg_model, 1, err);
    if (m == NULL)
        return RG_ERR_LIMIT;
    static const char *const kinds[] = {"model", NULL};
    int index;
    rg_node *node;
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a model file", err));
    m->path = root->pos.file;
    RG_TRY(rg_map_get(root, "kind", &node, err));
    RG_TRY(rg_node_choice(node, kinds, &index, err));
    RG_TRY(rg_map_text(root, "name", &m->name, err));
    RG_TRY(rg_map_text_or(root, "family", NULL, &m->family, err));
    RG_TRY(rg_map_text_or(root, "source", NULL, &m->source, err));
    RG_TRY(rg_map_int(root, "hidden", 1, MAX_SIZE, &m->hidden, err));
    RG_TRY(rg_map_int(root, "vocab", 1, MAX_SIZE, &m->vocab, err));
    RG_TRY(rg_map_int_or(root, "max_positions", 0, MAX_SIZE, 0, &m->max_positions, err));
    RG_TRY(rg_map_bool_or(root, "tied_embeddings", false, &m->tied_embeddings, err));
    RG_TRY(rg_map_int_or(root, "embedding_width", 0, MAX_SIZE, 0, &m->embedding_width, err));
    RG_TRY(rg_map_int_or(root, "position_rows", 0, MAX_SIZE, 0, &m->position_rows, err));
    RG_TRY(rg_map_bool_or(root, "embedding_norm", false, &m->embedding_norm, err));
    RG_TRY(rg_map_bool_or(root, "final_norm", true, &m->final_norm, err));
    RG_TRY(rg_map_bool_or(root, "head_bias", false, &m->head_bias, err));
    RG_TRY(rg_map_int_or(root, "extra_params", 0, MAX_EXTRA, 0, &m->extra_params, err));
    RG_TRY(rg_map_int_or(root, "mtp_layers", 0, MAX_LAYERS, 0, &m->mtp_layers, err));
    RG_TRY(read_format_name(root, "dtype", &m->dtype, err));
    RG_TRY(read_format_name(root, "state_type", &m->state_type, err));
    RG_TRY(read_quantisation(m, rg_map_find(root, "quantisation"), err));
    RG_TRY(read_notes(arena, m, rg_map_find(root, "notes"), err));
    rg_node *parameters = rg_map_find(root, "parameters");
    RG_TRY(rg_map_get(root, "layers", &node, err));
    RG_TRY(rg_map_done(root, err));
    RG_TRY(read_layers(arena, m, node, err));
    RG_TRY(rg_model_count(m, err));
    RG_TRY(check_counts(m, parameters, err));
    *out = m;
    return RG_OK;
}

/* Writing. */

typedef struct writer {
    FILE *stream;
    const rg_model *model;
    int kind_of[MAX_LAYERS]; /* of each layer */
    int first[MAX_KINDS];    /* layer that shows a kind */
    char names[MAX_KINDS][48];
    int kinds;
} writer;

static void put_text(FILE *f, const char *key, const char *text)
{
    if (text == NULL)
        return;
    fprintf(f, "%s: ", key);
    rg_doc_put_quoted(f, text);
    fputc('\n', f);
}

static void put_int(FILE *f, const char *key, int64_t value)
{
    if (value != 0)
        fprintf(f, "%s: %" PRId64 "\n", key, value);
}

static void put_fields(FILE *f, const char *part, const rg_layer *l)
{
    for (const rg_field *field = rg_layer_fields; field->key != NULL; field++) {
        const int64_t value = rg_field_get(field, l);
        if (strcmp(field->part, part) != 0 || value == 0)
            continue;
        if (l->mixer == RG_MIX_MLA &&
            (strcmp(field->key, "kv_heads") == 0 || strcmp(field->key, "head_dim") == 0))
            continue; /* follow from the others */
        if (field->type == RG_FIELD_BOOL)
            fprintf(f, ", %s: true", field->key);
        else if (field->type == RG_FIELD_QK_NORM)
            fprintf(f, ", %s: %s", field->key, qk_norm_kinds[value]);
        else
            fprintf(f, ", %s: %" PRId64, field->key, value);
    }
}

static void name_kind(writer *w, int kind, bool with_ffn)
{
    const rg_layer *l = &w->model->layers[w->first[kind]];
    char base[24];
    if (l->mixer == RG_MIX_NONE)
        snprintf(base, sizeof base, "%s", l->ffn == RG_FFN_NONE ? "empty" : ffn_kinds[l->ffn]);
    else if (with_ffn && l->ffn != RG_FFN_NONE)
        snprintf(base, sizeof base, "%s_%s", mixer_kinds[l->mixer], ffn_kinds[l->ffn]);
    else
        snprintf(base, sizeof base, "%s", mixer_kinds[l->mixer]);
    int same = 0;
    for (int i = 0; i < kind; i++) {
        const size_t length = strlen(base);
        same += strncmp(w->names[i], base, length) == 0 &&
                (w->names[i][length] == '\0' || w->names[i][length] == '.');
    }
    if (same > 0)
        snprintf(w->names[kind], sizeof w->names[kind], "%s.%d", base, same + 1);
    else
        snprintf(w->names[kind], sizeof w->names[kind], "%s", base);
}

static rg_status find_kinds(writer *w, rg_err *err)
{
    const rg_model *m = w->model;
    bool dense = false, moe = false;
    for (int64_t i = 0; i < m->layer_count; i++) {
        const rg_layer *l = &m->layers[i];
        int kind = 0;
        while (kind < w->kinds && !rg_layer_equal(l, &m->layers[w->first[kind]]))
            kind++;
        if (kind == MAX_KINDS)
            return rg_fail(err, RG_ERR_LIMIT, (rg_pos){m->path, 0, 0},
                           "more than %d kinds of layers", MAX_KINDS);
        if (kind == w->kinds)
            w->first[w->kinds++] = (int)i;
        w->kind_of[i] = kind;
        dense = dense || (l->mixer != RG_MIX_NONE && l->ffn == RG_FFN_DENSE);
        moe = moe || (l->mixer != RG_MIX_NONE && l->ffn == RG_FFN_MOE);
    }
    for (int kind = 0; kind < w->kinds; kind++)
        name_kind(w, kind, dense && moe);
    return RG_OK;
}

/* Times that the next `period` layers from `at` follow upon each other. */
static int64_t repeats_at(const writer *w, int64_t at, int64_t period)
{
    const int64_t count = w->model->layer_count;
    int64_t end = at + period;
    while (end < count && w->kind_of[end] == w->kind_of[end - period])
        end++;
    return (end - at) / period;
}

static void put_order(const writer *w)
{
    const int64_t count = w->model->layer_count;
    fputs("  order:\n", w->stream);
    for (int64_t at = 0; at < count;) {
        int64_t period = 1, repeat = 1;
        for (int64_t p = 1; p <= MAX_PERIOD && at + p <= count; p++) {
            const int64_t r = repeats_at(w, at, p);
            if (r >= 2 && (repeat < 2 || r * p > repeat * period)) {
                period = p;
                repeat = r;
            }
        }
        if (repeat < 2) {
            fprintf(w->stream, "    - %s\n", w->names[w->kind_of[at]]);
            at++;
            continue;
        }
        fprintf(w->stream, "    - {repeat: %" PRId64 ", of: [", repeat);
        for (int64_t i = 0; i < period; i++)
            fprintf(w->stream, "%s%s", i > 0 ? ", " : "", w->names[w->kind_of[at + i]]);
        fputs("]}\n", w->stream);
        at += period * repeat;
    }
}

static void put_quantisation(FILE *f, const rg_model *m)
{
    const struct {
        const char *key, *value;
    } rows[] = {{"scheme", m->quantisation_scheme},
                {"weight", m->quantisation},
                {"experts", m->expert_quantisation},
                {"mixer", m->mixer_quantisation},
                {"head", m->head_quantisation},
                {"kv", m->kv_quantisation},
                {"activation", m->activation_quantisation}};
    int shown = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].value != NULL)
            fprintf(f, "%s%s: %s", shown++ ? ", " : "quantisation: {", rows[i].key, rows[i].value);
    if (shown)
        fputs("}\n", f);
}

static void put_model(const writer *w)
{
    const rg_model *m = w->model;
    FILE *f = w->stream;
    fputs("kind: model\n", f);
    put_text(f, "name", m->name);
    put_text(f, "family", m->family);
    put_text(f, "source", m->source);
    put_int(f, "hidden", m->hidden);
    put_int(f, "vocab", m->vocab);
    put_int(f, "max_positions", m->max_positions);
    fprintf(f, "tied_embeddings: %s\n", m->tied_embeddings ? "true" : "false");
    put_int(f, "embedding_width", m->embedding_width);
    put_int(f, "position_rows", m->position_rows);
    if (m->embedding_norm)
        fputs("embedding_norm: true\n", f);
    if (!m->final_norm)
        fputs("final_norm: false\n", f);
    if (m->head_bias)
        fputs("head_bias: true\n", f);
    put_int(f, "extra_params", m->extra_params);
    put_int(f, "mtp_layers", m->mtp_layers);
    if (m->dtype != NULL)
        fprintf(f, "dtype: %s\n", m->dtype);
    if (m->state_type != NULL)
        fprintf(f, "state_type: %s\n", m->state_type);
    put_quantisation(f, m);
    fprintf(f, "parameters: {total: %" PRId64 ", active: %" PRId64 "}\n", m->parameters_total,
            m->parameters_active);
    if (m->note_count > 0)
        fputs("notes:\n", f);
    for (int i = 0; i < m->note_count; i++) {
        fputs("  - ", f);
        rg_doc_put_quoted(f, m->notes[i]);
        fputc('\n', f);
    }
    fputs("layers:\n  kinds:\n", f);
    for (int kind = 0; kind < w->kinds; kind++) {
        const rg_layer *l = &m->layers[w->first[kind]];
        fprintf(f, "    %s:\n      mixer: {kind: %s", w->names[kind], mixer_kinds[l->mixer]);
        put_fields(f, "mixer", l);
        fprintf(f, "}\n      ffn: {kind: %s", ffn_kinds[l->ffn]);
        put_fields(f, "ffn", l);
        fprintf(f, "}\n      norms: {count: %" PRId64, l->norms);
        if (l->norm_bias)
            fputs(", bias: true", f);
        if (l->norm_bare)
            fputs(", bare: true", f);
        fputs("}\n", f);
    }
    put_order(w);
}

rg_status rg_model_write(rg_arena *arena, const rg_model *model, char **out, rg_err *err)
{
    writer *w = RG_NEW(arena, writer, 1, err);
    if (w == NULL)
        return RG_ERR_LIMIT;
    w->model = model;
    RG_TRY(find_kinds(w, err));
    char *text = NULL;
    size_t length = 0;
    w->stream = open_memstream(&text, &length);
    if (w->stream == NULL)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory");
    put_model(w);
    const bool failed = fclose(w->stream) != 0;
    *out = failed ? NULL : rg_arena_copy(arena, text, length, err);
    free(text);
    return *out != NULL ? RG_OK : rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory");
}

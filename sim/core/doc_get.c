/* core/doc_get.c: typed values out of a document's nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "core/doc.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

enum { MAX_ASKED = 512 };

struct rg_asked {
    const char *name;
    struct rg_asked *next;
};

static const char *const kind_names[] = {"a single value", "a list", "a map of keys"};

/* "key 'tdp'" or "this entry", for messages. */
static const char *name_of(const rg_node *node)
{
    return node->key ? node->key : "value";
}

rg_status rg_node_expect(const rg_node *node, rg_node_kind kind, const char *what, rg_err *err)
{
    if (node->kind == kind)
        return RG_OK;
    return rg_fail(err, RG_ERR_INPUT, node->pos, "%s is %s, expected %s", what,
                   kind_names[node->kind], kind_names[kind]);
}

rg_node *rg_map_find(rg_node *map, const char *key)
{
    assert(map->kind == RG_NODE_MAP);
    struct rg_asked *asked = map->asked;
    while (asked && strcmp(asked->name, key) != 0)
        asked = asked->next;
    if (!asked) {
        const char *name = rg_arena_strdup(map->arena, key, NULL); /* may be a caller's buffer */
        asked = name ? RG_NEW(map->arena, struct rg_asked, 1, NULL) : NULL;
        if (asked) {
            asked->name = name;
            asked->next = map->asked;
            map->asked = asked;
        }
    }
    for (rg_node *child = map->first; child; child = child->next)
        if (strcmp(child->key, key) == 0) {
            child->used = true;
            return child;
        }
    return NULL;
}

/* Nearest key of the map that nobody asked for, for the message on a missing key. */
static const char *nearest_unused(const rg_node *map, const char *key)
{
    const char *names[MAX_ASKED + 1] = {NULL};
    size_t count = 0;
    for (const rg_node *child = map->first; child && count < MAX_ASKED; child = child->next)
        if (!child->used)
            names[count++] = child->key;
    return rg_text_nearest(key, names);
}

rg_status rg_map_get(rg_node *map, const char *key, rg_node **out, rg_err *err)
{
    *out = rg_map_find(map, key);
    if (*out)
        return RG_OK;
    const char *nearest = nearest_unused(map, key);
    const char *quote = nearest ? "'?" : "";
    if (map->key)
        return rg_fail(err, RG_ERR_INPUT, map->pos, "missing key '%s' in '%s'%s%s%s", key, map->key,
                       nearest ? "; is it '" : "", nearest ? nearest : "", quote);
    return rg_fail(err, RG_ERR_INPUT, map->pos, "missing key '%s'%s%s%s", key,
                   nearest ? "; is it '" : "", nearest ? nearest : "", quote);
}

rg_status rg_map_done(const rg_node *map, rg_err *err)
{
    for (const rg_node *child = map->first; child; child = child->next) {
        if (child->used)
            continue;
        const char *names[MAX_ASKED + 1] = {NULL};
        size_t count = 0;
        for (const struct rg_asked *asked = map->asked; asked && count < MAX_ASKED;
             asked = asked->next)
            names[count++] = asked->name;
        const char *nearest = rg_text_nearest(child->key, names);
        if (nearest)
            return rg_fail(err, RG_ERR_INPUT, child->key_pos,
                           "unknown key '%s'; did you mean '%s'?", child->key, nearest);
        char known[400] = "";
        size_t used = 0;
        for (size_t i = count; i-- > 0 && used < sizeof known - 80;)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%.60s", used ? ", " : "",
                                     names[i]);
        return rg_fail(err, RG_ERR_INPUT, child->key_pos, "unknown key '%s'; known here: %s",
                       child->key, known[0] ? known : "none");
    }
    return RG_OK;
}

bool rg_node_is_null(const rg_node *node)
{
    return node->kind == RG_NODE_SCALAR && !node->quoted &&
           (node->text[0] == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0 ||
            strcmp(node->text, "Null") == 0 || strcmp(node->text, "NULL") == 0);
}

static rg_status expect_scalar(const rg_node *node, rg_err *err)
{
    if (node->kind == RG_NODE_SCALAR)
        return RG_OK;
    return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' is %s, expected a single value",
                   name_of(node), kind_names[node->kind]);
}

rg_status rg_node_real(const rg_node *node, bool allow_infinite, double *out, rg_err *err)
{
    RG_TRY(expect_scalar(node, err));
    if (!node->quoted && rg_text_to_real(node->text, out))
        return RG_OK;
    if (allow_infinite && !node->quoted) {
        static const char *const words[] = {"Infinity", "+Infinity", ".inf", "+.inf"};
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (strcmp(node->text, words[i]) == 0) {
                *out = INFINITY;
                return RG_OK;
            }
        if (strcmp(node->text, "-Infinity") == 0 || strcmp(node->text, "-.inf") == 0) {
            *out = -INFINITY;
            return RG_OK;
        }
    }
    return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' is '%s', expected a finite number",
                   name_of(node), node->text);
}

rg_status rg_node_int(const rg_node *node, int64_t least, int64_t most, int64_t *out, rg_err *err)
{
    RG_TRY(expect_scalar(node, err));
    if (node->quoted || !rg_text_to_int(node->text, out))
        return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' is '%s', expected a whole number",
                       name_of(node), node->text);
    if (*out < least || *out > most)
        return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' is '%s', expected %lld to %lld",
                       name_of(node), node->text, (long long)least, (long long)most);
    return RG_OK;
}

rg_status rg_node_bool(const rg_node *node, bool *out, rg_err *err)
{
    RG_TRY(expect_scalar(node, err));
    if (!node->quoted) {
        if (strcmp(node->text, "true") == 0 || strcmp(node->text, "True") == 0) {
            *out = true;
            return RG_OK;
        }
        if (strcmp(node->text, "false") == 0 || strcmp(node->text, "False") == 0) {
            *out = false;
            return RG_OK;
        }
    }
    return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' is '%s', expected true or false",
                   name_of(node), node->text);
}

rg_status rg_node_text(const rg_node *node, const char **out, rg_err *err)
{
    RG_TRY(expect_scalar(node, err));
    if (rg_node_is_null(node))
        return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' is empty, expected text", name_of(node));
    *out = node->text;
    return RG_OK;
}

rg_status rg_node_quantity(const rg_node *node, rg_dim dim, double *out, rg_err *err)
{
    RG_TRY(expect_scalar(node, err));
    return rg_quantity_parse(node->text, dim, node->pos, name_of(node), out, err);
}

rg_status rg_node_choice(const rg_node *node, const char *const *names, int *out, rg_err *err)
{
    const char *text;
    RG_TRY(rg_node_text(node, &text, err));
    char known[400] = "";
    size_t used = 0;
    for (int i = 0; names[i]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return RG_OK;
        }
        if (used < sizeof known - 80)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%.60s", i ? ", " : "",
                                     names[i]);
    }
    const char *nearest = rg_text_nearest(text, names);
    return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' is '%s'%s%s%s one of: %s", name_of(node),
                   text, nearest ? "; did you mean '" : ", expected", nearest ? nearest : "",
                   nearest ? "'?" : "", known);
}

rg_status rg_map_real(rg_node *map, const char *key, double *out, rg_err *err)
{
    rg_node *node;
    RG_TRY(rg_map_get(map, key, &node, err));
    return rg_node_real(node, false, out, err);
}

rg_status rg_map_real_or(rg_node *map, const char *key, double fallback, double *out, rg_err *err)
{
    rg_node *node = rg_map_find(map, key);
    *out = fallback;
    return node ? rg_node_real(node, false, out, err) : RG_OK;
}

rg_status rg_map_int(rg_node *map, const char *key, int64_t least, int64_t most, int64_t *out,
                     rg_err *err)
{
    rg_node *node;
    RG_TRY(rg_map_get(map, key, &node, err));
    return rg_node_int(node, least, most, out, err);
}

rg_status rg_map_int_or(rg_node *map, const char *key, int64_t least, int64_t most,
                        int64_t fallback, int64_t *out, rg_err *err)
{
    rg_node *node = rg_map_find(map, key);
    *out = fallback;
    return node ? rg_node_int(node, least, most, out, err) : RG_OK;
}

rg_status rg_map_bool_or(rg_node *map, const char *key, bool fallback, bool *out, rg_err *err)
{
    rg_node *node = rg_map_find(map, key);
    *out = fallback;
    return node ? rg_node_bool(node, out, err) : RG_OK;
}

rg_status rg_map_text(rg_node *map, const char *key, const char **out, rg_err *err)
{
    rg_node *node;
    RG_TRY(rg_map_get(map, key, &node, err));
    return rg_node_text(node, out, err);
}

rg_status rg_map_text_or(rg_node *map, const char *key, const char *fallback, const char **out,
                         rg_err *err)
{
    rg_node *node = rg_map_find(map, key);
    *out = fallback;
    return node ? rg_node_text(node, out, err) : RG_OK;
}

rg_status rg_map_quantity(rg_node *map, const char *key, rg_dim dim, double *out, rg_err *err)
{
    rg_node *node;
    RG_TRY(rg_map_get(map, key, &node, err));
    return rg_node_quantity(node, dim, out, err);
}

rg_status rg_map_quantity_or(rg_node *map, const char *key, rg_dim dim, double fallback,
                             double *out, rg_err *err)
{
    rg_node *node = rg_map_find(map, key);
    *out = fallback;
    return node ? rg_node_quantity(node, dim, out, err) : RG_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "core/override.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"

rg_status rg_override_parse(rg_arena *arena, const char *text, rg_override *out, rg_err *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "'%s' is not a change; write it as 'memory.hbm.bandwidth=x1.5'", text);
    out->path = rg_arena_copy(arena, text, (size_t)(equals - text), err);
    out->value = rg_arena_strdup(arena, equals + 1, err);
    out->pos = (rg_pos){rg_arena_printf(arena, err, "--set %.200s", text), 0, 0};
    return out->path && out->value && out->pos.file ? RG_OK : RG_ERR_LIMIT;
}

static rg_node *child_of(rg_node *node, const char *name)
{
    if (node->kind == RG_NODE_LIST) {
        int64_t index;
        if (!rg_text_to_int(name, &index))
            return NULL;
        rg_node *child = node->first;
        while (child && index-- > 0)
            child = child->next;
        return child;
    }
    if (node->kind == RG_NODE_MAP)
        for (rg_node *child = node->first; child; child = child->next)
            if (strcmp(child->key, name) == 0)
                return child;
    return NULL;
}

static rg_status not_found(const rg_node *node, const rg_override *change, const char *name,
                           rg_err *err)
{
    enum { MOST = 64 };
    const char *names[MOST + 1] = {NULL};
    size_t count = 0;
    if (node->kind == RG_NODE_MAP)
        for (const rg_node *child = node->first; child && count < MOST; child = child->next)
            names[count++] = child->key;
    const char *nearest = rg_text_nearest(name, names);
    return rg_fail(err, RG_ERR_USAGE, change->pos, "change '%s': no '%s' there%s%s%s", change->path,
                   name, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                   nearest ? "'?" : "");
}

/* "x1.5" of "4.8 TB/s" is "7.2 TB/s". */
static rg_status scaled(const rg_node *node, const rg_override *change, const char **out,
                        rg_err *err)
{
    double factor, value;
    char number[64];
    const size_t digits = strspn(node->text, "+-.0123456789");
    if (!rg_text_to_real(change->value + 1, &factor))
        return rg_fail(err, RG_ERR_USAGE, change->pos,
                       "change '%s=%s': a scale is written as 'x1.5'", change->path, change->value);
    if (digits == 0 || digits >= sizeof number)
        return rg_fail(err, RG_ERR_USAGE, change->pos, "change '%s': '%s' is no number to scale",
                       change->path, node->text);
    memcpy(number, node->text, digits);
    number[digits] = 0;
    if (!rg_text_to_real(number, &value))
        return rg_fail(err, RG_ERR_USAGE, change->pos, "change '%s': '%s' is no number to scale",
                       change->path, node->text);
    *out = rg_arena_printf(node->arena, err, "%.15g%s", value * factor, node->text + digits);
    return *out ? RG_OK : RG_ERR_LIMIT;
}

rg_status rg_override_apply(rg_node *root, const rg_override *change, rg_err *err)
{
    rg_node *node = root;
    for (const char *at = change->path; *at;) {
        char name[128];
        const size_t length = strcspn(at, ".");
        if (length == 0 || length >= sizeof name)
            return not_found(node, change, at, err);
        memcpy(name, at, length);
        name[length] = 0;
        rg_node *child = child_of(node, name);
        if (!child)
            return not_found(node, change, name, err);
        node = child;
        at += length + (at[length] == '.');
    }
    rg_node *source = NULL;
    if (node->kind == RG_NODE_MAP && child_of(node, "value")) {
        source = child_of(node, "source");
        node = child_of(node, "value");
    }
    if (node->kind != RG_NODE_SCALAR)
        return rg_fail(err, RG_ERR_USAGE, change->pos,
                       "change '%s': this is not a single value; go on to one of its keys",
                       change->path);
    const char *old = node->text;
    if (change->value[0] == 'x' &&
        strspn(change->value + 1, "0123456789.eE+-") == strlen(change->value + 1) &&
        change->value[1])
        RG_TRY(scaled(node, change, &node->text, err));
    else
        node->text = change->value;
    if (change->pos.file)
        node->pos = change->pos;
    if (source && source->kind == RG_NODE_SCALAR) {
        source->text = rg_arena_printf(node->arena, err, "what-if: %s in place of %s (%s)",
                                       node->text, old, source->text);
        if (!source->text)
            return RG_ERR_LIMIT;
    }
    return RG_OK;
}

/* The path behind "<scope>.", NULL when the change is of another scope. */
static const char *within(const rg_override *change, const char *scope)
{
    const size_t length = strlen(scope);
    return strncmp(change->path, scope, length) == 0 && change->path[length] == '.'
               ? change->path + length + 1
               : NULL;
}

rg_status rg_changes_apply(rg_node *root, const char *scope, const rg_changes *changes, rg_err *err)
{
    for (int i = 0; changes && i < changes->count; i++) {
        const rg_override *change = &changes->items[i];
        const rg_override inner = {within(change, scope), change->value, change->pos};
        if (inner.path)
            RG_TRY(rg_override_apply(root, &inner, err));
    }
    return RG_OK;
}

bool rg_changes_has(const rg_changes *changes, const char *scope)
{
    for (int i = 0; changes && i < changes->count; i++)
        if (within(&changes->items[i], scope))
            return true;
    return false;
}

/* plan/settings.c: settings of a plan as text, from a file and from a command line. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/settings.h"

#include <string.h>

#include "core/text.h"

/* The settings, which are the options of `ridge plan`; lists are split at commas. */
static const struct {
    const char *name;
    bool list;
} known[] = {
    {"model", false},
    {"hw", true},
    {"rate", false},
    {"users", false},
    {"think", false},
    {"trace", false},
    {"trace-format", false},
    {"isl", false},
    {"osl", false},
    {"system-prompt", false},
    {"limit", false},
    {"ttft", true},
    {"tpot", true},
    {"e2e", true},
    {"weight-type", true},
    {"kv-type", true},
    {"tp", true},
    {"pp", true},
    {"ep", true},
    {"cp", true},
    {"attention-dp", true},
    {"max-sequences", true},
    {"max-tokens", true},
    {"scheduler", true},
    {"pools", true},
    {"prefill-hw", true},
    {"prefill-tp", true},
    {"prefill-pp", true},
    {"prefill-ep", true},
    {"prefix-caching", true},
    {"reservation", true},
    {"drafts", true},
    {"speculate", true},
    {"draft-model", false},
    {"acceptance", true},
    {"draft-cost", false},
    {"engine", false},
    {"memory-utilisation", false},
    {"goal", false},
    {"prices", false},
    {"provider", false},
    {"term", false},
    {"price", true},
    {"most-devices", false},
    {"power-cap", false},
    {"carbon", false},
    {"overhead", false},
    {"tariff", false},
    {"exhaustive", false},
    {"offline", false},
};
enum { KNOWN = sizeof known / sizeof known[0] };

struct rg_plan_text {
    rg_arena *arena;
    const char *path;
    rg_plan_names values[KNOWN];
};

rg_status rg_plan_text_new(rg_arena *arena, rg_plan_text **out, rg_err *err)
{
    *out = RG_NEW(arena, rg_plan_text, 1, err);
    if (!*out)
        return RG_ERR_LIMIT;
    (*out)->arena = arena;
    return RG_OK;
}

static int find(const char *name)
{
    const char *names[KNOWN + 1] = {NULL};
    for (int i = 0; i < KNOWN; i++)
        names[i] = known[i].name;
    const char *same = rg_text_synonym(name, names);
    for (int i = 0; i < KNOWN; i++)
        if (strcmp(known[i].name, same ? same : name) == 0)
            return i;
    return -1;
}

static rg_status find_or_fail(const char *name, rg_pos pos, int *out, rg_err *err)
{
    *out = find(name);
    if (*out >= 0)
        return RG_OK;
    const char *names[KNOWN + 1] = {NULL};
    for (int i = 0; i < KNOWN; i++)
        names[i] = known[i].name;
    const char *nearest = rg_text_nearest(name, names);
    return rg_fail(err, RG_ERR_INPUT, pos, "unknown key '%s'%s%s%s", name,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static rg_status add_item(rg_plan_text *text, int i, const char *start, size_t length, rg_pos pos,
                          rg_err *err)
{
    rg_plan_names *v = &text->values[i];
    if (v->count == RG_PLAN_LIST)
        return rg_fail(err, RG_ERR_LIMIT, pos, "more than %d values of '%s'", RG_PLAN_LIST,
                       known[i].name);
    while (length > 0 && start[0] == ' ') {
        start++;
        length--;
    }
    while (length > 0 && start[length - 1] == ' ')
        length--;
    if (length == 0)
        return rg_fail(err, RG_ERR_INPUT, pos, "an empty value of '%s'", known[i].name);
    v->items[v->count] = rg_arena_copy(text->arena, start, length, err);
    if (!v->items[v->count])
        return RG_ERR_LIMIT;
    v->pos[v->count++] = pos;
    return RG_OK;
}

rg_status rg_plan_text_add(rg_plan_text *text, const char *name, const char *value, rg_pos pos,
                           rg_err *err)
{
    int i;
    RG_TRY(find_or_fail(name, pos, &i, err));
    rg_plan_names *v = &text->values[i];
    /* what a file said gives way to the command line, which has no place */
    if (v->count > 0 && (v->pos[0].file != NULL) != (pos.file != NULL))
        v->count = 0;
    if (!known[i].list) {
        v->count = 0;
        return add_item(text, i, value, strlen(value), pos, err);
    }
    for (;;) {
        const size_t length = strcspn(value, ",");
        RG_TRY(add_item(text, i, value, length, pos, err));
        if (!value[length])
            return RG_OK;
        value += length + 1;
    }
}

rg_status rg_plan_text_load(rg_plan_text *text, const char *path, rg_err *err)
{
    rg_node *root;
    text->path = path;
    RG_TRY(rg_doc_load(text->arena, path, &root, err));
    return rg_plan_text_take(text, root, err);
}

rg_status rg_plan_text_take(rg_plan_text *text, rg_node *root, rg_err *err)
{
    static const char *const kinds[] = {"plan", NULL};
    rg_node *node;
    int kind;
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a plan", err));
    RG_TRY(rg_map_get(root, "kind", &node, err));
    RG_TRY(rg_node_choice(node, kinds, &kind, err));
    for (node = root->first; node; node = node->next) {
        const char *value;
        int i;
        if (strcmp(node->key, "kind") == 0 || strcmp(node->key, "note") == 0)
            continue;
        RG_TRY(find_or_fail(node->key, node->key_pos, &i, err));
        if (node->kind == RG_NODE_LIST && !known[i].list)
            return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' takes one value, not a list",
                           node->key);
        if (node->kind == RG_NODE_LIST && !node->first)
            return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' is an empty list", node->key);
        rg_node *item = node->kind == RG_NODE_LIST ? node->first : node;
        for (; item; item = node->kind == RG_NODE_LIST ? item->next : NULL) {
            RG_TRY(rg_node_text(item, &value, err));
            RG_TRY(add_item(text, i, value, strlen(value), item->pos, err));
        }
    }
    return RG_OK;
}

const char *rg_plan_text_path(const rg_plan_text *text)
{
    return text->path;
}

const rg_plan_names *rg_plan_text_get(const rg_plan_text *text, const char *name)
{
    return &text->values[find(name)];
}

const char *rg_plan_text_cut(const rg_plan_text *text, const char *item, size_t length, rg_err *err)
{
    return rg_arena_copy(text->arena, item, length, err);
}

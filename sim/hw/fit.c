/* hw/fit.c: the fitted constants of a hardware file. */
// SPDX-License-Identifier: Apache-2.0
#include "hw/fit.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FIT_CONSTANTS = 4096 };

/* Keys that say what a fit was made of; they are text, whatever they look like. */
static const char *const provenance_keys[] = {"date",   "data", "rows", "error",
                                              "source", "note", NULL};

typedef struct fit_list {
    rg_arena *arena;
    rg_fit_constant *list;
    int count;
    rg_err *err;
} fit_list;

static bool is_provenance(const char *key)
{
    for (int i = 0; provenance_keys[i] != NULL; i++)
        if (strcmp(key, provenance_keys[i]) == 0)
            return true;
    return false;
}

/** Most constants that a map may hold: its scalars at any depth. */
static size_t count_scalars(const rg_node *map)
{
    size_t count = 0;
    for (const rg_node *node = map->first; node != NULL; node = node->next)
        count += node->kind == RG_NODE_SCALAR ? 1 : count_scalars(node);
    return count;
}

static rg_status read_group(fit_list *to, rg_node *map, const char *group)
{
    for (rg_node *node = map->first; node != NULL; node = node->next) {
        node->used = true;
        if (node->kind == RG_NODE_MAP) {
            const char *inner = rg_arena_printf(to->arena, to->err, "%s.%s", group, node->key);
            if (inner == NULL)
                return RG_ERR_LIMIT;
            RG_TRY(read_group(to, node, inner));
        } else if (node->kind != RG_NODE_SCALAR) {
            return rg_fail(to->err, RG_ERR_INPUT, node->pos,
                           "fit constant '%s' is a list; write one number a name", node->key);
        } else if (!is_provenance(node->key)) {
            rg_fit_constant *constant = &to->list[to->count++];
            *constant = (rg_fit_constant){.group = group, .name = node->key, .pos = node->pos};
            RG_TRY(rg_node_real(node, false, &constant->value, to->err));
        }
    }
    return RG_OK;
}

/** "2026-05-02, gemm H200, 900 rows, ..." out of the provenance keys that are there. */
static rg_status join_provenance(rg_arena *arena, rg_node *map, const char **out, rg_err *err)
{
    char text[1024] = "";
    size_t used = 0;
    for (int i = 0; provenance_keys[i] != NULL; i++) {
        const rg_node *node = rg_map_find(map, provenance_keys[i]);
        if (node == NULL)
            continue;
        const char *value;
        RG_TRY(rg_node_text(node, &value, err));
        const int written = snprintf(text + used, sizeof text - used, "%s%s: %s",
                                     used == 0 ? "" : "; ", provenance_keys[i], value);
        if (written < 0 || used + (size_t)written >= sizeof text)
            return rg_fail(err, RG_ERR_LIMIT, node->pos, "the text about the fit is over %zu bytes",
                           sizeof text);
        used += (size_t)written;
    }
    if (used == 0)
        return RG_OK;
    *out = rg_arena_strdup(arena, text, err);
    return *out == NULL ? RG_ERR_LIMIT : RG_OK;
}

static bool has_constant(const fit_list *list, int count, const rg_fit_constant *constant)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list->list[i].group, constant->group) == 0 &&
            strcmp(list->list[i].name, constant->name) == 0)
            return true;
    return false;
}

/** Add what the lender has and the list has not; say from whom. */
static void borrow_rest(fit_list *list, const rg_accel *lender, rg_accel *accel)
{
    const int own = list->count;
    accel->fit_borrowed_from =
        lender->fit_borrowed_from != NULL ? lender->fit_borrowed_from : lender->name;
    if (accel->fit_source == NULL)
        accel->fit_source = lender->fit_source;
    for (int i = 0; i < lender->fit_count; i++) {
        if (has_constant(list, own, &lender->fit[i]))
            continue;
        list->list[list->count] = lender->fit[i];
        list->list[list->count++].borrowed = true;
    }
}

rg_status rg_fit_borrow(rg_arena *arena, const rg_accel *lender, rg_accel *accel, rg_err *err)
{
    fit_list list = {.arena = arena, .err = err};
    list.list = RG_NEW(arena, rg_fit_constant, lender->fit_count, err);
    if (list.list == NULL)
        return RG_ERR_LIMIT;
    accel->fit_source = NULL;
    borrow_rest(&list, lender, accel);
    accel->fit = list.list;
    accel->fit_count = list.count;
    return RG_OK;
}

rg_status rg_fit_read(rg_arena *arena, rg_node *map, const rg_accel *lender, rg_accel *accel,
                      rg_err *err)
{
    const size_t most = count_scalars(map) + (size_t)(lender == NULL ? 0 : lender->fit_count);
    if (most > MAX_FIT_CONSTANTS)
        return rg_fail(err, RG_ERR_LIMIT, map->pos, "more than %d fit constants",
                       MAX_FIT_CONSTANTS);
    fit_list list = {.arena = arena, .err = err};
    list.list = RG_NEW(arena, rg_fit_constant, most, err);
    if (list.list == NULL)
        return RG_ERR_LIMIT;
    accel->fit_source = NULL;
    accel->fit_borrowed_from = NULL;
    RG_TRY(join_provenance(arena, map, &accel->fit_source, err));
    for (rg_node *node = map->first; node != NULL; node = node->next) {
        rg_map_find(map, node->key); /* any group is a key */
        if (strcmp(node->key, "borrow") == 0 || is_provenance(node->key))
            continue;
        RG_TRY(rg_node_expect(node, RG_NODE_MAP, node->key, err));
        RG_TRY(read_group(&list, node, node->key));
    }
    if (lender != NULL)
        borrow_rest(&list, lender, accel);
    accel->fit = list.list;
    accel->fit_count = list.count;
    return RG_OK;
}

double rg_accel_fit_or(const rg_accel *accel, const char *group, const char *name, double fallback,
                       bool *own)
{
    for (int i = 0; i < accel->fit_count; i++) {
        const rg_fit_constant *constant = &accel->fit[i];
        if (strcmp(constant->name, name) != 0 || strcmp(constant->group, group) != 0)
            continue;
        if (own != NULL)
            *own = !constant->borrowed;
        return constant->value;
    }
    if (own != NULL)
        *own = false;
    return fallback;
}

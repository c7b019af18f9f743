/* fit/guard_rules.c: limits of the guard and their patterns. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard.h"

#include <math.h>
#include <string.h>

#include "core/doc.h"

rg_limits rg_limits_default(void)
{
    return (rg_limits){.max_slowdown = 0.01,
                       .max_noise = 0.15,
                       .min_efficiency = NAN,
                       .max_bytes_ratio = NAN,
                       .max_registers = NAN,
                       .max_spill_bytes = NAN,
                       .min_blocks_per_sm = NAN};
}

bool rg_pattern_fits(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || (*pattern == *text && *pattern != '\0')) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static rg_status rg_limit_read(rg_node *map, const char *key, rg_dim dim, double least, double *out,
                               rg_err *err)
{
    rg_node *node = rg_map_find(map, key);
    if (node == NULL)
        return RG_OK;
    RG_TRY(rg_node_quantity(node, dim, out, err));
    if (!(*out >= least))
        return rg_fail(err, RG_ERR_INPUT, node->pos, "%s '%s' is under %g", key, node->text, least);
    return RG_OK;
}

static rg_status rg_limits_read(rg_node *map, rg_limits *l, rg_err *err)
{
    RG_TRY(rg_limit_read(map, "max_slowdown", RG_DIM_NONE, 0, &l->max_slowdown, err));
    RG_TRY(rg_limit_read(map, "max_noise", RG_DIM_NONE, 0, &l->max_noise, err));
    RG_TRY(rg_limit_read(map, "min_efficiency", RG_DIM_NONE, 0, &l->min_efficiency, err));
    RG_TRY(rg_limit_read(map, "max_bytes_ratio", RG_DIM_NONE, 0, &l->max_bytes_ratio, err));
    RG_TRY(rg_limit_read(map, "max_registers", RG_DIM_NONE, 0, &l->max_registers, err));
    RG_TRY(rg_limit_read(map, "max_spill_bytes", RG_DIM_BYTES, 0, &l->max_spill_bytes, err));
    return rg_limit_read(map, "min_blocks_per_sm", RG_DIM_NONE, 0, &l->min_blocks_per_sm, err);
}

static rg_status rg_rule_read(rg_node *node, rg_rule *rule, rg_err *err)
{
    RG_TRY(rg_node_expect(node, RG_NODE_MAP, "rule", err));
    const rg_limits none = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    *rule = (rg_rule){.limits = none, .pos = node->pos};
    RG_TRY(rg_map_text(node, "kernel", &rule->kernel, err));
    RG_TRY(rg_map_text_or(node, "problem", "*", &rule->problem, err));
    RG_TRY(rg_map_text_or(node, "dtype", "*", &rule->dtype, err));
    RG_TRY(rg_limits_read(node, &rule->limits, err));
    return rg_map_done(node, err);
}

rg_status rg_rules_load(rg_arena *arena, const char *path, rg_rules *out, rg_err *err)
{
    rg_node *root;
    *out = (rg_rules){.defaults = rg_limits_default()};
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "rules file", err));
    rg_node *schema = rg_map_find(root, "schema");
    if (schema != NULL &&
        (schema->kind != RG_NODE_SCALAR || strcmp(schema->text, "ridge.rules/1") != 0))
        return rg_fail(err, RG_ERR_INPUT, schema->pos, "schema is not known; use 'ridge.rules/1'");
    rg_node *defaults = rg_map_find(root, "default");
    if (defaults != NULL) {
        RG_TRY(rg_node_expect(defaults, RG_NODE_MAP, "default", err));
        RG_TRY(rg_limits_read(defaults, &out->defaults, err));
        RG_TRY(rg_map_done(defaults, err));
    }
    rg_node *kernels = rg_map_find(root, "kernels");
    if (kernels != NULL) {
        RG_TRY(rg_node_expect(kernels, RG_NODE_LIST, "kernels", err));
        out->items = RG_NEW(arena, rg_rule, kernels->count, err);
        if (out->items == NULL)
            return RG_ERR_LIMIT;
        for (rg_node *n = kernels->first; n != NULL; n = n->next)
            RG_TRY(rg_rule_read(n, &out->items[out->count++], err));
    }
    return rg_map_done(root, err);
}

/* hw/figure.c: one hardware figure with the place that it comes from. */
// SPDX-License-Identifier: Apache-2.0
#include "hw/figure.h"

#include <math.h>
#include <string.h>

/* Beyond this no figure of any machine lies; it keeps products of figures finite. */
static const double largest_figure = 1e30;

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static rg_status read_source(rg_node *map, unsigned rules, rg_figure *out, rg_err *err)
{
    rg_node *node = rg_map_find(map, "source");
    if (node == NULL)
        return rg_fail(err, RG_ERR_INPUT, map->pos,
                       "%s has no source; add source: \"datasheet, table\", \"measured: how\" or "
                       "\"assumed: why\"",
                       map->key);
    RG_TRY(rg_node_text(node, &out->source, err));
    const char *text = out->source;
    while (*text == ' ')
        text++;
    out->assumed = starts_with(text, "assumed");
    out->measured = starts_with(text, "measured");
    if (*text == 0 || strcmp(text, "assumed") == 0 || strcmp(text, "assumed:") == 0 ||
        strcmp(text, "measured") == 0 || strcmp(text, "measured:") == 0)
        return rg_fail(
            err, RG_ERR_INPUT, node->pos,
            "source '%s' of %s says nothing; name the datasheet and table, or \"assumed: "
            "why\"",
            out->source, map->key);
    if ((rules & RG_FIGURE_MEASURED) && !out->measured && !out->assumed)
        return rg_fail(
            err, RG_ERR_INPUT, node->pos,
            "%s takes a measurement, but its source is '%s'; start it with \"measured:\" "
            "or use the key of the specification",
            map->key, out->source);
    if ((rules & RG_FIGURE_SPEC) && out->measured)
        return rg_fail(err, RG_ERR_INPUT, node->pos,
                       "%s takes a specification, but its source is '%s'; measured figures have a "
                       "key of their own",
                       map->key, out->source);
    return RG_OK;
}

rg_status rg_figure_read(rg_node *node, rg_dim dim, unsigned rules, rg_figure *out, rg_err *err)
{
    *out = (rg_figure){.dim = dim};
    if (node->kind == RG_NODE_SCALAR)
        return rg_fail(err, RG_ERR_INPUT, node->pos,
                       "%s '%s' has no source; write {value: %s, source: \"...\"}", node->key,
                       node->text, node->text);
    RG_TRY(rg_node_expect(node, RG_NODE_MAP, node->key, err));
    rg_node *value;
    RG_TRY(rg_map_get(node, "value", &value, err));
    RG_TRY(rg_node_expect(value, RG_NODE_SCALAR, node->key, err));
    RG_TRY(rg_quantity_parse(value->text, dim, value->pos, node->key, &out->value, err));
    value->used = true;
    out->pos = value->pos;
    const bool zero = out->value == 0 && (rules & RG_FIGURE_ZERO);
    if ((!zero && !(out->value > 0)) || out->value > largest_figure)
        return rg_fail(err, RG_ERR_INPUT, value->pos, "%s '%s' is not above 0%s", node->key,
                       value->text, out->value > 0 ? " and below 1e30" : "");
    if ((rules & RG_FIGURE_WHOLE) && (floor(out->value) != out->value || out->value > 1e9))
        return rg_fail(err, RG_ERR_INPUT, value->pos, "%s '%s' is not a whole number", node->key,
                       value->text);
    RG_TRY(read_source(node, rules, out, err));
    RG_TRY(rg_map_done(node, err));
    out->known = true;
    return RG_OK;
}

rg_status rg_figures_read(rg_node *map, const rg_figure_key *keys, bool required, void *object,
                          rg_err *err)
{
    for (const rg_figure_key *key = keys; key->key != NULL; key++) {
        rg_node *node;
        if (required && (key->rules & RG_FIGURE_REQUIRED)) {
            RG_TRY(rg_map_get(map, key->key, &node, err));
        } else {
            node = rg_map_find(map, key->key);
        }
        if (node != NULL)
            RG_TRY(rg_figure_read(node, key->dim, key->rules, rg_figure_at(key, object), err));
    }
    return RG_OK;
}

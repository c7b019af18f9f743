/* hw/price.c: what a device costs per hour. */
// SPDX-License-Identifier: Apache-2.0
#include "hw/price.h"

#include <string.h>

#include "core/find.h"

static const char *const term_names[] = {"on-demand", "spot", "reserved", "owned", NULL};

const char *rg_price_term_name(rg_price_term term)
{
    return term_names[term];
}

/** A date as 2026-03-10; months and days in range. */
static rg_status read_date(rg_node *map, const char **out, rg_err *err)
{
    RG_TRY(rg_map_text(map, "date", out, err));
    const char *text = *out;
    bool right = strlen(text) == 10 && text[4] == '-' && text[7] == '-';
    for (int i = 0; right && i < 10; i++)
        right = i == 4 || i == 7 || (text[i] >= '0' && text[i] <= '9');
    const int month = right ? (text[5] - '0') * 10 + text[6] - '0' : 0;
    const int day = right ? (text[8] - '0') * 10 + text[9] - '0' : 0;
    if (month < 1 || month > 12 || day < 1 || day > 31)
        return rg_fail(err, RG_ERR_INPUT, rg_map_find(map, "date")->pos,
                       "date '%s' is no date; write it as '2026-03-10'", text);
    return RG_OK;
}

static rg_status read_price(rg_node *map, rg_price *out, rg_err *err)
{
    rg_node *node;
    int term;
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "a price", err));
    RG_TRY(rg_map_text(map, "device", &out->device, err));
    RG_TRY(rg_map_text(map, "provider", &out->provider, err));
    RG_TRY(read_date(map, &out->date, err));
    RG_TRY(rg_map_get(map, "term", &node, err));
    RG_TRY(rg_node_choice(node, term_names, &term, err));
    out->term = (rg_price_term)term;
    RG_TRY(rg_map_get(map, "price", &node, err));
    RG_TRY(rg_figure_read(node, RG_DIM_USD_PER_HOUR, 0, &out->price, err));
    return rg_map_done(map, err);
}

rg_status rg_prices_read(rg_arena *arena, const char *path, rg_node *root, rg_price_list *out,
                         rg_err *err)
{
    *out = (rg_price_list){.path = path};
    static const char *const kinds[] = {"prices", NULL};
    rg_node *node;
    int kind;
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a price file", err));
    RG_TRY(rg_map_get(root, "kind", &node, err));
    RG_TRY(rg_node_choice(node, kinds, &kind, err));
    RG_TRY(rg_map_get(root, "prices", &node, err));
    RG_TRY(rg_node_expect(node, RG_NODE_LIST, "prices", err));
    rg_price *list = RG_NEW(arena, rg_price, node->count, err);
    if (list == NULL)
        return RG_ERR_LIMIT;
    out->list = list;
    for (rg_node *item = node->first; item != NULL; item = item->next)
        RG_TRY(read_price(item, &list[out->count++], err));
    return rg_map_done(root, err);
}

rg_status rg_prices_load(rg_arena *arena, const char *name_or_path, rg_price_list *out, rg_err *err)
{
    *out = (rg_price_list){0};
    if (name_or_path == NULL)
        RG_TRY(rg_data_try(arena, "hw", "prices", &out->path, err));
    else
        RG_TRY(rg_data_find(arena, "hw", "price file", name_or_path, &out->path, err));
    if (out->path == NULL)
        return RG_OK;
    rg_node *root;
    RG_TRY(rg_doc_load(arena, out->path, &root, err));
    return rg_prices_read(arena, out->path, root, out, err);
}

const rg_price *rg_price_least(const rg_price_list *prices, const char *device, rg_price_term term,
                               const char *provider)
{
    const rg_price *least = NULL;
    for (int i = 0; i < prices->count; i++) {
        const rg_price *price = &prices->list[i];
        if (price->term != term || strcmp(price->device, device) != 0 ||
            (provider != NULL && strcmp(price->provider, provider) != 0))
            continue;
        if (least == NULL || price->price.value < least->price.value)
            least = price;
    }
    return least;
}

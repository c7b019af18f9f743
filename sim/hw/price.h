/* hw/price.h: what a device costs per hour, by whom, and when that was read.
 *
 * Reads hw/figure.h. Prices change: the file is data that users replace.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_PRICE_H
#define RG_HW_PRICE_H

#include "core/arena.h"
#include "hw/figure.h"

typedef enum rg_price_term {
    RG_PRICE_ON_DEMAND,
    RG_PRICE_SPOT,
    RG_PRICE_RESERVED,
    RG_PRICE_OWNED, /* all costs of owning, spread over the years of use */
    RG_PRICE_TERM_COUNT,
} rg_price_term;

typedef struct rg_price {
    const char *device;   /* "h200-sxm" */
    const char *provider; /* "RunPod" */
    const char *date;     /* when it was read, "2026-03-10" */
    rg_price_term term;
    rg_figure price; /* $/h for one device */
} rg_price;

typedef struct rg_price_list {
    const char *path;
    const rg_price *list; /* in file order */
    int count;
} rg_price_list;

/** Load a price file by path or name; NULL means "prices" in the hardware folders, and gives an
 * empty list when there is none. Errors: RG_ERR_INPUT, RG_ERR_IO, RG_ERR_USAGE. */
rg_status rg_prices_load(rg_arena *arena, const char *name_or_path, rg_price_list *out,
                         rg_err *err);
/** The same from a parsed document. */
rg_status rg_prices_read(rg_arena *arena, const char *path, rg_node *root, rg_price_list *out,
                         rg_err *err);
/** The least price of a device at a term, of one provider or of all (NULL); the earlier line wins
 * among equals; NULL when there is none. */
const rg_price *rg_price_least(const rg_price_list *prices, const char *device, rg_price_term term,
                               const char *provider);
const char *rg_price_term_name(rg_price_term term);

#endif

/* hw/figure.h: one hardware figure with the place that it comes from.
 *
 * Reads core/doc.h. In a file a figure is {value: 4.8 TB/s, source: "datasheet, table"}; one
 * without a source is refused. A source that starts with "measured:" or "assumed:" says so to every
 * reader.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_FIGURE_H
#define RG_HW_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/doc.h"
#include "core/err.h"
#include "core/quantity.h"

/** One figure with where it comes from. SI without prefix, in the dimension of its key. */
typedef struct rg_figure {
    double value;
    rg_dim dim;
    bool known;
    bool assumed;       /* source starts with "assumed" */
    bool measured;      /* source starts with "measured" */
    const char *source; /* datasheet with table or page, or "measured: ..." */
    rg_pos pos;         /* of the value */
} rg_figure;

/** What a key of a map may hold: a figure at an offset of the struct that the map fills. */
typedef enum rg_figure_rule {
    RG_FIGURE_OPTIONAL = 0,
    RG_FIGURE_REQUIRED = 1,
    RG_FIGURE_WHOLE = 2,    /* a whole number */
    RG_FIGURE_MEASURED = 4, /* the source must be a measurement (or "assumed") */
    RG_FIGURE_SPEC = 8,     /* the source must not be a measurement: that has a key of its own */
    RG_FIGURE_ZERO = 16,    /* may be 0; else it must be above */
} rg_figure_rule;

typedef struct rg_figure_key {
    const char *key; /* NULL ends a table */
    rg_dim dim;
    size_t offset;
    unsigned rules; /* of rg_figure_rule */
} rg_figure_key;

/** Read {value, source}; rules as above. Errors: RG_ERR_INPUT at the place of the mistake. */
rg_status rg_figure_read(rg_node *node, rg_dim dim, unsigned rules, rg_figure *out, rg_err *err);
/** Read every key of the table from map into object. required asks for keys marked so. */
rg_status rg_figures_read(rg_node *map, const rg_figure_key *keys, bool required, void *object,
                          rg_err *err);
/** The figure of a table row in object. */
static inline rg_figure *rg_figure_at(const rg_figure_key *key, void *object)
{
    return (rg_figure *)((char *)object + key->offset);
}

/** A figure under its path in the file, "memory.l2.bandwidth"; figure points into its owner, so
 * that a what-if may change it. */
typedef struct rg_named_figure {
    const char *path;
    rg_figure *figure;
} rg_named_figure;

#endif

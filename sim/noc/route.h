/* noc/route.h: where a routing function sends a packet, as probabilities; private to noc/.
 *
 * Reads noc/sim.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_ROUTE_H
#define RG_NOC_ROUTE_H

#include "noc/sim.h"

typedef struct rg_noc_ways {
    const rg_noc_graph *graph;
    rg_noc_routing routing; /* Valiant: of one leg */
    bool descending;        /* cubes: highest dimension first */
    uint16_t *digit;        /* [routers * dims] places of a cube's routers, NULL otherwise */
    int32_t *towards;       /* [routers * dims * 2] their outputs in + and - direction */
    int32_t *table;         /* [routers * nodes] outputs of free graphs, NULL otherwise */
} rg_noc_ways;

typedef struct rg_noc_way {
    int output;
    double share;
} rg_noc_way;

enum { RG_NOC_MAX_WAYS = 64 };

rg_status rg_noc_ways_new(rg_arena *arena, const rg_noc_graph *graph, rg_noc_routing routing,
                          rg_noc_ways *out, rg_err *err);
/** Place of a cube's router (or node) in a dimension. */
int rg_noc_digit(const rg_noc_graph *graph, int router, int dim);
/** Outputs that a packet for node may take at router, with their probabilities; the number of
 * them (at most RG_NOC_MAX_WAYS: a tree of larger radix is cut to its first up ports). */
int rg_noc_ways_at(const rg_noc_ways *ways, int router, int node, rg_noc_way *list);

#endif

/* noc/traffic.h: who sends to whom: synthetic patterns as samplers and as probabilities.
 *
 * Reads core, noc/graph.h. Names and definitions are those of Dally and Towles, "Principles and
 * Practices of Interconnection Networks", 2004, table 3.1, with node number a = x + k y.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_TRAFFIC_H
#define RG_NOC_TRAFFIC_H

#include <stdbool.h>

#include "noc/graph.h"

typedef enum rg_noc_pattern_kind {
    RG_NOC_UNIFORM,    /* any node, the source included */
    RG_NOC_TRANSPOSE,  /* upper and lower half of the address bits change places */
    RG_NOC_BITCOMP,    /* all address bits inverted */
    RG_NOC_BITREV,     /* address bits in reverse order */
    RG_NOC_SHUFFLE,    /* address bits rotated left by one */
    RG_NOC_TORNADO,    /* each digit d to (d + ceil(k/2) - 1) mod k */
    RG_NOC_NEIGHBOR,   /* each digit d to (d + 1) mod k */
    RG_NOC_DIAGONAL,   /* two in three to itself, one to the next node */
    RG_NOC_ASYMMETRIC, /* the node of either half that has the source's place in it */
    RG_NOC_HOTSPOT,    /* drawn from a list by weight */
    RG_NOC_PERMUTATION /* one fixed random permutation, by its own seed */
} rg_noc_pattern_kind;

typedef struct rg_noc_pattern {
    rg_noc_pattern_kind kind;
    const char *text; /* as the user wrote it */
    int nodes;
    int32_t *target;      /* [nodes] of the permutations, NULL for uniform and hotspot */
    int32_t *spot;        /* [spots] hotspot: nodes of the list */
    int64_t *spot_before; /* [spots + 1] summed weights before each */
    int spots;
} rg_noc_pattern;

/** Parse "uniform", "transpose", "hotspot({{32,33},{1,4}})" (list and optional integer weights),
 * "hotspot(5)", "permutation(SEED)". Errors: RG_ERR_INPUT at pos for unknown names, nodes outside
 * the network and patterns that need a power of two. */
rg_status rg_noc_pattern_parse(rg_arena *arena, const char *text, const rg_noc_graph *graph,
                               rg_pos pos, rg_noc_pattern **out, rg_err *err);

/** How many equally likely tickets decide a destination; 1: nothing is drawn. */
static inline uint32_t rg_noc_pattern_tickets(const rg_noc_pattern *p)
{
    return p->target != 0                 ? 1
           : p->kind == RG_NOC_UNIFORM    ? (uint32_t)p->nodes
           : p->kind == RG_NOC_DIAGONAL   ? 3
           : p->kind == RG_NOC_ASYMMETRIC ? 2
           : p->spots == 1                ? 1
                                          : (uint32_t)p->spot_before[p->spots];
}

/** Destination of a packet from source that drew ticket, 0 to tickets - 1. */
static inline int rg_noc_pattern_pick(const rg_noc_pattern *p, int source, uint32_t ticket)
{
    if (p->target != 0)
        return p->target[source];
    if (p->kind == RG_NOC_UNIFORM)
        return (int)ticket;
    if (p->kind == RG_NOC_DIAGONAL)
        return ticket == 0 ? (source + 1) % p->nodes : source;
    if (p->kind == RG_NOC_ASYMMETRIC)
        return source % (p->nodes / 2) + (ticket != 0 ? p->nodes / 2 : 0);
    int low = 0, high = p->spots;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (p->spot_before[middle] <= ticket)
            low = middle;
        else
            high = middle;
    }
    return p->spot[low];
}

/** Do all sources send to the same nodes with the same shares? */
static inline bool rg_noc_pattern_same_for_all(const rg_noc_pattern *p)
{
    return p->kind == RG_NOC_UNIFORM || p->kind == RG_NOC_HOTSPOT;
}

/** Fill share[nodes] with the probability of each destination from source. */
void rg_noc_pattern_shares(const rg_noc_pattern *p, int source, double *share);

#endif

/* noc/graph.h: the shape of an on-chip network: routers, their ports, channels, nodes.
 *
 * Reads core. Ports are numbered over the whole network, those of one router in a row, in the order
 * in which its round-robin arbiters look at them. Node n puts flits into input node_input[n] and
 * takes them from output node_output[n].
 *
 * Port order: mesh and torus: for each dimension + then -, last the local port; tree: down ports
 * first, then up ports; free graphs: nodes first, then routers, each by number.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_GRAPH_H
#define RG_NOC_GRAPH_H

#include <stdint.h>

#include "core/arena.h"

typedef enum rg_noc_shape {
    RG_NOC_MESH,  /* k[0] x k[1] x ..., one node per router */
    RG_NOC_TORUS, /* the same with wrap-around links; one dimension: a ring */
    RG_NOC_FLY,   /* k-ary n-fly; n = 1: a crossbar */
    RG_NOC_TREE,  /* k-ary n-tree, n k^(n-1) routers, levels from the top */
    RG_NOC_GRAPH, /* anything else; routed by table */
} rg_noc_shape;

enum { RG_NOC_MAX_DIMS = 8, RG_NOC_MAX_NODES = 1 << 20, RG_NOC_MAX_LATENCY = 4096 };

/** One direction of a link. A flit that wins the switch is written traversal_delay cycles later and
 * usable latency + 1 cycles after that. */
typedef struct rg_noc_channel {
    int from_router, to_router; /* -1: a node */
    int node;                   /* of inject and eject channels, else -1 */
    int latency;                /* cycles */
    int credit_latency;         /* cycles, of the credit channel that runs against it */
    int period;                 /* cycles per flit: 1 is full width, 2 half width */
} rg_noc_channel;

typedef struct rg_noc_graph {
    rg_noc_shape shape;
    int extent[RG_NOC_MAX_DIMS]; /* nodes per dimension; fly and tree: extent[0] is k */
    int dims;                    /* dimensions; fly and tree: n */
    int nodes, routers, inputs, outputs;
    int *in_first, *out_first;     /* [routers + 1] */
    int *in_router, *out_router;   /* [inputs], [outputs] */
    rg_noc_channel *in_channel;    /* [inputs] what feeds the input */
    rg_noc_channel *out_channel;   /* [outputs] what the output feeds */
    int *in_source;                /* [inputs] output that feeds it, -1: a node */
    int *out_target;               /* [outputs] input that it feeds, -1: a node */
    int *node_input, *node_output; /* [nodes] */
    const char **router_name;      /* [routers], NULL when the file names none */
    const char **node_name;        /* [nodes], NULL likewise */
} rg_noc_graph;

/** Collects channels, then numbers the ports. Keys order the ports of a router. */
typedef struct rg_noc_builder rg_noc_builder;
rg_noc_builder *rg_noc_builder_new(rg_arena *arena, int nodes, int routers, rg_err *err);
rg_status rg_noc_builder_add(rg_noc_builder *builder, rg_noc_channel channel, int out_key,
                             int in_key, rg_err *err);
/** Errors: RG_ERR_MODEL when a node has no or several injection or ejection channels. */
rg_status rg_noc_builder_finish(rg_noc_builder *builder, rg_noc_graph **out, rg_err *err);

/** A mesh or torus with the given nodes per dimension; node number is x + kx (y + ky (z + ...)). */
rg_status rg_noc_graph_cube(rg_arena *arena, rg_noc_shape shape, const int *extent, int dims,
                            int link_latency, rg_noc_graph **out, rg_err *err);
/** A k-ary n-fly; stage s of router r is r / k^(n-1). n = 1 gives one k x k crossbar. */
rg_status rg_noc_graph_fly(rg_arena *arena, int k, int n, int link_latency, rg_noc_graph **out,
                           rg_err *err);
/** A k-ary n-tree (fat tree of n levels with k^(n-1) routers each). */
rg_status rg_noc_graph_tree(rg_arena *arena, int k, int n, int link_latency, rg_noc_graph **out,
                            rg_err *err);

/** Next output of each router towards each node, [routers * nodes]: shortest by summed latency,
 * ties by the lower router number. Errors: RG_ERR_MODEL when a node cannot be reached. */
rg_status rg_noc_graph_table(rg_arena *arena, const rg_noc_graph *graph, int32_t **out,
                             rg_err *err);

/** k^n, or -1 beyond RG_NOC_MAX_NODES. */
int rg_noc_power(int k, int n);

#endif

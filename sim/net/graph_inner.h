/* net/graph_inner.h: a net from the inside; graph.c lays it out, graph_path.c finds ways in it.
 *
 * Reads net/graph.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NET_GRAPH_INNER_H
#define RG_NET_GRAPH_INNER_H

#include "net/graph.h"

struct rg_net {
    int32_t devices, nodes;
    rg_link *links;
    int32_t link_count, link_room;
    const rg_fabric *up, *out; /* NULL: bare links */
    int64_t domain;            /* devices of one scale-up domain */
    int32_t up_base;           /* first scale-up link */
    int32_t tree_base;         /* first link of PCIe switches to sockets */
    int32_t socket_base;       /* first link between sockets */
    int32_t nic_base;          /* first network port link */
    int32_t leaf_base;         /* first link of a leaf or router */
    int32_t global_base;       /* first link between groups */
    int64_t per_switch, per_socket, leaf_width, routers, groups;
    int32_t *queue, *via; /* breadth-first search of bare links: [nodes] each */
};

/** Leaf of a device: rails keep devices of one number together, else neighbours share a leaf. */
int64_t rg_net_leaf(const rg_net *net, int64_t device);

static inline int64_t rg_net_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif

/* net/graph.h: a cluster as devices, switches and directed links, and the way between two devices.
 *
 * Reads hw/cluster.h. Every link has a rate and a latency for its one direction; a cable is two of
 * them. Switches of a fat tree and routers of a dragonfly are drawn as ideal switches of their
 * aggregate rate: traffic is spread evenly over equal ways, as adaptive routing aims at.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NET_GRAPH_H
#define RG_NET_GRAPH_H

#include "hw/cluster.h"

enum {
    RG_NET_MOST_DEVICES = 65536,
    RG_NET_MOST_HOPS = 512 /* longest way; tori of 1024 in a ring have that many */
};

typedef enum rg_link_class {
    RG_LINK_DEVICE, /* a device's own port into the scale-up fabric */
    RG_LINK_DIRECT, /* a cable between two devices */
    RG_LINK_SWITCH, /* PCIe switch to its socket */
    RG_LINK_SOCKET, /* socket to socket */
    RG_LINK_NIC,    /* a device's network port */
    RG_LINK_LEAF,   /* leaf or router to the rest of the network */
    RG_LINK_GLOBAL, /* between dragonfly groups */
    RG_LINK_CLASS_COUNT,
} rg_link_class;
/** "device port", "network port", ... for messages and tables. */
const char *rg_link_class_name(rg_link_class kind);

typedef struct rg_link {
    int32_t from, to; /* nodes: devices first, switches behind them */
    rg_link_class kind;
    double rate; /* byte/s */
    double latency_s;
} rg_link;

typedef struct rg_net rg_net;

/** Lay out `devices` devices of the cluster (0 = all of it), in the order of their numbers: within
 * a scale-up domain first. Errors: RG_ERR_MODEL when a figure that the fabric needs is not given,
 * or the dimensions of a torus do not multiply to its devices; RG_ERR_LIMIT. */
rg_status rg_net_build(rg_arena *arena, const rg_cluster *cluster, int64_t devices, rg_net **out,
                       rg_err *err);
/** A net from bare links; every pair of devices is routed over the fewest links (ties: the link
 * given first). For tests and for graphs that no cluster file describes. */
rg_status rg_net_from_links(rg_arena *arena, int32_t devices, int32_t nodes, const rg_link *links,
                            int32_t link_count, rg_net **out, rg_err *err);

int32_t rg_net_devices(const rg_net *net);
int32_t rg_net_link_count(const rg_net *net);
const rg_link *rg_net_link(const rg_net *net, int32_t link);

/** The switch that a device's port leads to: of its scale-up domain, or of the network. Flows may
 * begin or end there, for what switches add up and hand out; -1 when it has none. */
int32_t rg_net_switch(const rg_net *net, int32_t device, bool network);

/** Links of the way from one device to another, in order, into path[RG_NET_MOST_HOPS]; returns
 * their number, 0 for a device to itself, -1 when there is no way. One end may be a switch at the
 * device's own port. */
int rg_net_path(const rg_net *net, int32_t source, int32_t target, int32_t *path);

#endif

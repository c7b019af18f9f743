/* net/graph_path.c: the way between two devices of a net. */
// SPDX-License-Identifier: Apache-2.0
#include "net/graph_inner.h"

int64_t rg_net_leaf(const rg_net *net, int64_t device)
{
    if (net->out->kind == RG_FABRIC_DRAGONFLY || !net->out->rail_optimised)
        return device / net->leaf_width;
    const int64_t domain = device / net->domain, rail = device % net->domain;
    return domain / net->leaf_width * net->domain + rail;
}

/** Breadth first over bare links; links are tried in the order in which they were given. */
static int search_path(const rg_net *net, int32_t source, int32_t target, int32_t *path)
{
    for (int32_t i = 0; i < net->nodes; i++)
        net->via[i] = -1;
    int32_t head = 0, tail = 0;
    net->queue[tail++] = source;
    while (head < tail && net->via[target] < 0) {
        const int32_t at = net->queue[head++];
        for (int32_t i = 0; i < net->link_count; i++) {
            const rg_link *link = &net->links[i];
            if (link->from != at || link->to == source || net->via[link->to] >= 0)
                continue;
            net->via[link->to] = i;
            net->queue[tail++] = link->to;
        }
    }
    if (net->via[target] < 0)
        return -1;
    int hops = 0;
    for (int32_t at = target; at != source; at = net->links[net->via[at]].from)
        hops++;
    if (hops > RG_NET_MOST_HOPS)
        return -1;
    int place = hops;
    for (int32_t at = target; at != source; at = net->links[net->via[at]].from)
        path[--place] = net->via[at];
    return hops;
}

/** Dimension by dimension, the shorter way round; when both are alike, plus from even places and
 * minus from odd ones, so that both cables carry as much. */
static int torus_path(const rg_net *net, int32_t source, int32_t target, int32_t *path)
{
    const int dimensions = net->up->dimensions;
    int64_t from = source % net->domain, to = target % net->domain, at = source, scale = 1;
    int hops = 0;
    for (int i = 0; i < dimensions; i++) {
        const int64_t extent = net->up->extent[i];
        const int64_t a = from % extent, b = to % extent;
        from /= extent;
        to /= extent;
        const int64_t ahead = (b - a + extent) % extent;
        const bool plus = 2 * ahead < extent || (2 * ahead == extent && a % 2 == 0);
        const int64_t count = plus ? ahead : extent - ahead;
        for (int64_t k = 0, x = a; k < count; k++) {
            if (hops == RG_NET_MOST_HOPS)
                return -1;
            path[hops++] = (int32_t)(net->up_base + (at * dimensions + i) * 2 + (plus ? 0 : 1));
            const int64_t next = plus ? (x + 1) % extent : (x + extent - 1) % extent;
            at += (next - x) * scale;
            x = next;
        }
        scale *= extent;
    }
    return hops;
}

static int pcie_path(const rg_net *net, int32_t source, int32_t target, int32_t *path)
{
    const int64_t d = source / net->domain, i = source % net->domain, j = target % net->domain;
    const int64_t switches = rg_net_ceil_div(net->domain, net->per_switch);
    const int64_t sockets = rg_net_ceil_div(net->domain, net->per_socket);
    const int64_t a = i / net->per_switch, b = j / net->per_switch;
    const int64_t s = a * net->per_switch / net->per_socket,
                  t = b * net->per_switch / net->per_socket;
    int hops = 0;
    path[hops++] = net->up_base + 2 * source;
    if (a != b) {
        path[hops++] = (int32_t)(net->tree_base + 2 * (d * switches + a));
        if (s != t)
            path[hops++] = (int32_t)(net->socket_base + d * sockets * (sockets - 1) +
                                     s * (sockets - 1) + (t > s ? t - 1 : t));
        path[hops++] = (int32_t)(net->tree_base + 2 * (d * switches + b) + 1);
    }
    path[hops++] = net->up_base + 2 * target + 1;
    return hops;
}

static int network_path(const rg_net *net, int32_t source, int32_t target, int32_t *path)
{
    const int64_t a = rg_net_leaf(net, source), b = rg_net_leaf(net, target);
    int hops = 0;
    path[hops++] = net->nic_base + 2 * source;
    if (a != b && net->out->kind == RG_FABRIC_FAT_TREE) {
        path[hops++] = (int32_t)(net->leaf_base + 2 * a);
        path[hops++] = (int32_t)(net->leaf_base + 2 * b + 1);
    } else if (a != b) {
        const int64_t r = net->routers, g = a / r, h = b / r;
        int64_t at = a;
        if (g != h) {
            const int64_t gate = g * r + h % r, landing = h * r + g % r;
            if (at != gate)
                path[hops++] = (int32_t)(net->leaf_base + (g * r + at % r) * (r - 1) +
                                         (gate % r > at % r ? gate % r - 1 : gate % r));
            path[hops++] =
                (int32_t)(net->global_base + g * (net->groups - 1) + (h > g ? h - 1 : h));
            at = landing;
        }
        if (at != b)
            path[hops++] = (int32_t)(net->leaf_base + (h * r + at % r) * (r - 1) +
                                     (b % r > at % r ? b % r - 1 : b % r));
    }
    path[hops++] = net->nic_base + 2 * target + 1;
    return hops;
}

/* First of a device's two links at a port: to its switch, and back; -1 when it has none. */
static int32_t port_link(const rg_net *net, int32_t device, bool network)
{
    const int32_t link = (network ? net->nic_base : net->up_base) + 2 * device;
    const rg_link_class kind = network ? RG_LINK_NIC : RG_LINK_DEVICE;
    return link < net->link_count && net->links[link].kind == kind ? link : -1;
}

int32_t rg_net_switch(const rg_net *net, int32_t device, bool network)
{
    const int32_t link = port_link(net, device, network);
    return link < 0 ? -1 : net->links[link].to;
}

/* From a device to a switch at its port, or back. */
static int switch_path(const rg_net *net, int32_t source, int32_t target, int32_t *path)
{
    const bool out = target >= net->devices;
    const int32_t device = out ? source : target, node = out ? target : source;
    for (int network = 0; network < 2 && device < net->devices; network++)
        if (rg_net_switch(net, device, network) == node) {
            path[0] = port_link(net, device, network) + (out ? 0 : 1);
            return 1;
        }
    return -1;
}

int rg_net_path(const rg_net *net, int32_t source, int32_t target, int32_t *path)
{
    if (source == target)
        return 0;
    if (net->up == NULL)
        return search_path(net, source, target, path);
    if (source >= net->devices || target >= net->devices)
        return switch_path(net, source, target, path);
    if (source / net->domain != target / net->domain)
        return network_path(net, source, target, path);
    switch (net->up->kind) {
    case RG_FABRIC_SWITCHED:
        path[0] = net->up_base + 2 * source;
        path[1] = net->up_base + 2 * target + 1;
        return 2;
    case RG_FABRIC_MESH: {
        const int64_t d = source / net->domain, i = source % net->domain, j = target % net->domain;
        path[0] = (int32_t)(net->up_base + d * net->domain * (net->domain - 1) +
                            i * (net->domain - 1) + (j > i ? j - 1 : j));
        return 1;
    }
    case RG_FABRIC_PCIE_TREE:
        return pcie_path(net, source, target, path);
    case RG_FABRIC_TORUS:
        return torus_path(net, source, target, path);
    default:
        return -1;
    }
}

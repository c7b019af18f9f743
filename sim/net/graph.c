/* net/graph.c: a cluster as devices, switches and directed links. */
// SPDX-License-Identifier: Apache-2.0
#include "net/graph_inner.h"

const char *rg_link_class_name(rg_link_class kind)
{
    static const char *const names[RG_LINK_CLASS_COUNT] = {
        "device port",  "direct link", "PCIe switch uplink", "socket link",
        "network port", "leaf uplink", "global link"};
    return names[kind];
}

static void add_link(rg_net *net, int64_t from, int64_t to, rg_link_class kind, double rate,
                     double latency_s)
{
    net->links[net->link_count++] = (rg_link){.from = (int32_t)from,
                                              .to = (int32_t)to,
                                              .kind = kind,
                                              .rate = rate,
                                              .latency_s = latency_s};
}

static rg_status need(const rg_cluster *cluster, const rg_figure *figure, const char *what,
                      rg_err *err)
{
    if (figure->known && figure->value > 0)
        return RG_OK;
    return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                   "cluster '%s' gives no %s, which its network needs; add it to its file",
                   cluster->name, what);
}

static double latency_of(const rg_fabric *fabric)
{
    return fabric->latency.known ? fabric->latency.value : 0.0;
}

/* ---- scale-up fabrics ---- */

/** Devices of the torus and its dimensions must agree. */
static rg_status check_torus(const rg_cluster *cluster, const rg_fabric *torus, int64_t domain,
                             rg_err *err)
{
    if (torus->dimensions < 1 || torus->dimensions > 4)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cluster '%s' is a torus of %d dimensions; 1 to 4 would do", cluster->name,
                       torus->dimensions);
    int64_t product = 1;
    for (int i = 0; i < torus->dimensions; i++) {
        if (torus->extent[i] < 1 || torus->extent[i] > RG_NET_MOST_DEVICES)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "cluster '%s': extent %lld of its torus is not 1 to %d", cluster->name,
                           (long long)torus->extent[i], RG_NET_MOST_DEVICES);
        product *= torus->extent[i];
    }
    if (product != domain)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cluster '%s': the extents of its torus multiply to %lld, but it has %lld "
                       "devices in the domain",
                       cluster->name, (long long)product, (long long)domain);
    return RG_OK;
}

/** Two links a dimension and device: plus, minus. Extent 1 has none in use; with extent 2 both lead
 * to the one neighbour and stand for the one cable, half its rate each. */
static void lay_torus(rg_net *net, const rg_fabric *torus, int64_t domains)
{
    const double cable = torus->rate_per_direction.value / (2.0 * torus->dimensions);
    for (int64_t device = 0; device < domains * net->domain; device++) {
        const int64_t base = device / net->domain * net->domain;
        int64_t rest = device - base, scale = 1;
        for (int i = 0; i < torus->dimensions; i++) {
            const int64_t extent = torus->extent[i], at = rest % extent;
            rest /= extent;
            const double rate = extent == 2 ? cable / 2 : cable;
            const int64_t plus = device + ((at + 1) % extent - at) * scale;
            const int64_t minus = device + ((at + extent - 1) % extent - at) * scale;
            add_link(net, device, plus, RG_LINK_DIRECT, rate, latency_of(torus));
            add_link(net, device, minus, RG_LINK_DIRECT, rate, latency_of(torus));
            scale *= extent;
        }
    }
}

static void lay_switched(rg_net *net, const rg_fabric *fabric)
{
    const double rate = fabric->rate_per_direction.value, half = latency_of(fabric) / 2;
    for (int64_t device = 0; device < net->devices; device++) {
        const int64_t hub = net->nodes + device / net->domain;
        add_link(net, device, hub, RG_LINK_DEVICE, rate, half);
        add_link(net, hub, device, RG_LINK_DEVICE, rate, half);
    }
    net->nodes += (int32_t)rg_net_ceil_div(net->devices, net->domain);
}

static void lay_mesh(rg_net *net, const rg_fabric *fabric, int64_t domains)
{
    const double rate = fabric->rate_per_direction.value / (double)(net->domain - 1);
    for (int64_t d = 0; d < domains; d++)
        for (int64_t i = 0; i < net->domain; i++)
            for (int64_t j = 0; j < net->domain; j++)
                if (i != j)
                    add_link(net, d * net->domain + i, d * net->domain + j, RG_LINK_DIRECT, rate,
                             latency_of(fabric));
}

static void lay_pcie(rg_net *net, const rg_fabric *fabric, int64_t domains)
{
    const double rate = fabric->rate_per_direction.value, part = latency_of(fabric) / 2;
    const int64_t switches = rg_net_ceil_div(net->domain, net->per_switch);
    const int64_t sockets = rg_net_ceil_div(net->domain, net->per_socket);
    const int64_t first_switch = net->nodes, first_socket = first_switch + domains * switches;
    net->nodes = (int32_t)(first_socket + domains * sockets);
    for (int64_t device = 0; device < domains * net->domain; device++) {
        const int64_t d = device / net->domain, i = device % net->domain;
        const int64_t hub = first_switch + d * switches + i / net->per_switch;
        add_link(net, device, hub, RG_LINK_DEVICE, rate, part);
        add_link(net, hub, device, RG_LINK_DEVICE, rate, part);
    }
    net->tree_base = net->link_count;
    const double uplink = fabric->uplink_rate.known ? fabric->uplink_rate.value : rate;
    for (int64_t s = 0; s < domains * switches; s++) {
        const int64_t d = s / switches, i = s % switches;
        const int64_t socket = first_socket + d * sockets + i * net->per_switch / net->per_socket;
        add_link(net, first_switch + s, socket, RG_LINK_SWITCH, uplink, part);
        add_link(net, socket, first_switch + s, RG_LINK_SWITCH, uplink, part);
    }
    net->socket_base = net->link_count;
    const double between = fabric->socket_rate.known ? fabric->socket_rate.value : uplink;
    for (int64_t d = 0; d < domains; d++)
        for (int64_t i = 0; i < sockets; i++)
            for (int64_t j = 0; j < sockets; j++)
                if (i != j)
                    add_link(net, first_socket + d * sockets + i, first_socket + d * sockets + j,
                             RG_LINK_SOCKET, between, part);
}

/* ---- networks between domains ---- */

static void lay_ports(rg_net *net, int64_t first_leaf)
{
    const double rate = net->out->rate_per_direction.value, part = latency_of(net->out) / 2;
    net->nic_base = net->link_count;
    for (int64_t device = 0; device < net->devices; device++) {
        add_link(net, device, first_leaf + rg_net_leaf(net, device), RG_LINK_NIC, rate, part);
        add_link(net, first_leaf + rg_net_leaf(net, device), device, RG_LINK_NIC, rate, part);
    }
}

static void lay_fat_tree(rg_net *net, int64_t leaves)
{
    const int64_t first = net->nodes, core = first + leaves;
    net->nodes = (int32_t)(core + 1);
    lay_ports(net, first);
    net->leaf_base = net->link_count;
    const double oversubscription =
        net->out->oversubscription > 0 ? net->out->oversubscription : 1.0;
    const double up =
        net->out->rate_per_direction.value * (double)net->leaf_width / oversubscription;
    for (int64_t leaf = 0; leaf < leaves; leaf++) {
        add_link(net, first + leaf, core, RG_LINK_LEAF, up, latency_of(net->out) / 2);
        add_link(net, core, first + leaf, RG_LINK_LEAF, up, latency_of(net->out) / 2);
    }
}

/** Routers of a group are joined pairwise, groups pairwise by all their global ports together. */
static void lay_dragonfly(rg_net *net)
{
    const int64_t first = net->nodes, routers = net->routers * net->groups;
    net->nodes = (int32_t)(first + routers);
    lay_ports(net, first);
    const double port = net->out->rate_per_direction.value, part = latency_of(net->out) / 2;
    const double oversubscription =
        net->out->oversubscription > 0 ? net->out->oversubscription : 1.0;
    net->leaf_base = net->link_count;
    const double local = net->out->uplink_rate.known ? net->out->uplink_rate.value : port;
    for (int64_t g = 0; g < net->groups; g++)
        for (int64_t i = 0; i < net->routers; i++)
            for (int64_t j = 0; j < net->routers; j++)
                if (i != j)
                    add_link(net, first + g * net->routers + i, first + g * net->routers + j,
                             RG_LINK_LEAF, local, part);
    net->global_base = net->link_count;
    if (net->groups < 2)
        return;
    const double global = (double)(net->routers * net->leaf_width) * port /
                          (double)(net->groups - 1) / oversubscription;
    for (int64_t g = 0; g < net->groups; g++)
        for (int64_t h = 0; h < net->groups; h++)
            if (g != h)
                add_link(net, first + g * net->routers + h % net->routers,
                         first + h * net->routers + g % net->routers, RG_LINK_GLOBAL, global, part);
}

static rg_status check_fabrics(const rg_cluster *cluster, const rg_net *net, rg_err *err)
{
    const bool several = net->devices > net->domain;
    if (net->domain > 1) {
        RG_TRY(need(cluster, &net->up->rate_per_direction, "scale-up link rate", err));
        if (net->up->kind == RG_FABRIC_TORUS)
            RG_TRY(check_torus(cluster, net->up, net->domain, err));
    }
    if (!several)
        return RG_OK;
    if (net->out->kind != RG_FABRIC_FAT_TREE && net->out->kind != RG_FABRIC_DRAGONFLY)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cluster '%s' joins %lld devices at most, and %d are asked for; a scale_out "
                       "network would join more",
                       cluster->name, (long long)net->domain, net->devices);
    return need(cluster, &net->out->rate_per_direction, "network port rate", err);
}

rg_status rg_net_build(rg_arena *arena, const rg_cluster *cluster, int64_t devices, rg_net **out,
                       rg_err *err)
{
    const int64_t all = cluster->devices_per_node * cluster->nodes;
    if (devices == 0)
        devices = all;
    if (devices < 1 || devices > all || devices > RG_NET_MOST_DEVICES)
        return rg_fail(
            err, RG_ERR_MODEL, RG_NOWHERE,
            "%lld devices asked of cluster '%s', which has %lld (at most %d are laid out)",
            (long long)devices, cluster->name, (long long)all, RG_NET_MOST_DEVICES);
    rg_net *net = RG_NEW(arena, rg_net, 1, err);
    if (net == NULL)
        return RG_ERR_LIMIT;
    const int64_t scale_up =
        cluster->scale_up_devices > 0 ? cluster->scale_up_devices : cluster->devices_per_node;
    net->domain = cluster->scale_up.kind == RG_FABRIC_NONE ? 1 : scale_up;
    const bool whole = cluster->scale_up.kind == RG_FABRIC_TORUS ||
                       cluster->scale_up.kind == RG_FABRIC_MESH ||
                       cluster->scale_up.kind == RG_FABRIC_PCIE_TREE;
    if (whole) /* these are laid out by whole domains, whatever part of one is used */
        devices = rg_net_ceil_div(devices, net->domain) * net->domain;
    net->devices = (int32_t)devices;
    net->nodes = net->devices;
    net->up = &cluster->scale_up;
    net->out = &cluster->scale_out;
    net->per_switch = net->up->devices_per_switch > 0 ? net->up->devices_per_switch : net->domain;
    net->per_socket = net->up->devices_per_socket > 0 ? net->up->devices_per_socket : net->domain;
    net->leaf_width = net->out->devices_per_switch > 0 ? net->out->devices_per_switch : 32;
    RG_TRY(check_fabrics(cluster, net, err));

    const int64_t domains = rg_net_ceil_div(devices, net->domain);
    int64_t leaves = 0;
    if (domains > 1) {
        leaves = rg_net_leaf(net, devices - 1) + net->domain; /* not fewer than there are */
        net->routers = net->out->extent[0] > 0 ? net->out->extent[0] : 1;
        net->groups = rg_net_ceil_div(devices, net->leaf_width * net->routers);
    }
    const int64_t room = devices * (2 + 2 + 8) + domains * net->domain * net->domain + 2 * leaves +
                         net->groups * (net->routers * net->routers + net->groups);
    if (room > INT32_MAX / 2)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "cluster '%s' has too many links",
                       cluster->name);
    net->links = RG_NEW(arena, rg_link, room, err);
    if (net->links == NULL)
        return RG_ERR_LIMIT;
    if (net->domain > 1) {
        switch (net->up->kind) {
        case RG_FABRIC_SWITCHED:
            lay_switched(net, net->up);
            break;
        case RG_FABRIC_MESH:
            lay_mesh(net, net->up, domains);
            break;
        case RG_FABRIC_PCIE_TREE:
            lay_pcie(net, net->up, domains);
            break;
        case RG_FABRIC_TORUS:
            lay_torus(net, net->up, domains);
            break;
        default:
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "cluster '%s': a scale-up fabric is switched, mesh, pcie_tree or torus",
                           cluster->name);
        }
    }
    if (domains > 1) {
        if (net->out->kind == RG_FABRIC_FAT_TREE)
            lay_fat_tree(net, leaves);
        else
            lay_dragonfly(net);
    }
    *out = net;
    return RG_OK;
}

rg_status rg_net_from_links(rg_arena *arena, int32_t devices, int32_t nodes, const rg_link *links,
                            int32_t link_count, rg_net **out, rg_err *err)
{
    rg_net *net = RG_NEW(arena, rg_net, 1, err);
    if (net == NULL)
        return RG_ERR_LIMIT;
    *net = (rg_net){.devices = devices, .nodes = nodes, .link_count = link_count};
    net->links = RG_NEW(arena, rg_link, link_count, err);
    net->queue = RG_NEW(arena, int32_t, nodes, err);
    net->via = RG_NEW(arena, int32_t, nodes, err);
    if (net->links == NULL || net->queue == NULL || net->via == NULL)
        return RG_ERR_LIMIT;
    for (int32_t i = 0; i < link_count; i++) {
        if (links[i].from < 0 || links[i].from >= nodes || links[i].to < 0 ||
            links[i].to >= nodes || !(links[i].rate > 0))
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "link %d joins no two of the %d nodes at a positive rate", i, nodes);
        net->links[i] = links[i];
    }
    *out = net;
    return RG_OK;
}

int32_t rg_net_devices(const rg_net *net)
{
    return net->devices;
}

int32_t rg_net_link_count(const rg_net *net)
{
    return net->link_count;
}

const rg_link *rg_net_link(const rg_net *net, int32_t link)
{
    return &net->links[link];
}

/* net/coll_group.c: how a group lies on its cluster, and what its neighbours and pairs reach.
 *
 * PCIe trees. A hop is
 *
 *   behind one switch    direct, at the port's rate                          (peer_reach switch,
 * root) behind one CPU       direct through its root complex: peer_ratio of the uplink   (root)
 *   otherwise            staged: written to host memory by one device, read by the other;
 *                        switch_ratio of the uplink
 *   between sockets      staged, and all that cross share the link: socket_link_ratio of its rate;
 *                        where peers are hidden (reach: switch), as measured on the L40S server,
 *                        socket_ratio of the staged rate
 *
 * Rules and peer_ratio, socket_link_ratio: NCCL, src/graph/paths.cc and topo.h. Ideal links are
 * raw.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "net/coll_inner.h"

/** Whether the ranks of a domain lie behind several switches (or sockets) of `width` devices. */
static bool apart(const rg_coll_context *x, const rg_coll_group *g, int64_t width)
{
    const int64_t start = g->first % x->domain, end = start + (g->local - 1) * g->stride;
    return start / width != end / width;
}

/* ---- PCIe ---- */

/** What PCIe hops of a group reach, byte/s: one device, an uplink in direct and in staged copies,
 * all that crosses between sockets, and one stream of it. */
typedef struct pcie_rates {
    double port, direct, staged, sockets, socket_stream;
} pcie_rates;

static pcie_rates pcie_of(const rg_coll_context *x, double device_ratio)
{
    const rg_coll_constants *c = &x->c;
    if (x->ideal)
        return (pcie_rates){x->up_rate, x->switch_rate, x->switch_rate, x->socket_rate,
                            x->socket_rate};
    const rg_peer_reach reach = x->cluster->scale_up.peer_reach;
    const double staged = c->switch_ratio * x->switch_rate;
    pcie_rates r = {.port = x->up_rate * device_ratio, .direct = staged, .staged = staged};
    if (reach == RG_PEER_NONE)
        r.port = fmin(r.port, c->switch_ratio * x->up_rate);
    if (reach == RG_PEER_ROOT)
        r.direct = c->peer_ratio * device_ratio * x->switch_rate;
    if (reach == RG_PEER_SWITCH) {
        r.sockets = c->socket_ratio * staged;
        r.socket_stream = r.sockets / c->socket_crossings;
    } else {
        r.sockets = c->socket_link_ratio * x->socket_rate;
        r.socket_stream = fmin(staged, r.sockets);
    }
    return r;
}

static void narrow(double rate, rg_coll_limit limit, rg_coll_group *g)
{
    if (rate >= g->ring_rate)
        return;
    g->ring_rate = rate;
    g->ring_limit = limit;
}

static void pcie_ring_rate(const rg_coll_context *x, rg_coll_group *g, double device_ratio)
{
    const pcie_rates r = pcie_of(x, device_ratio);
    g->ring_rate = r.port;
    if (apart(x, g, x->per_switch) && x->per_switch < x->per_socket)
        narrow(r.direct, RG_LIMIT_UPLINK, g);
    else if (apart(x, g, x->per_switch))
        narrow(r.staged, RG_LIMIT_UPLINK, g);
    if (apart(x, g, x->per_socket))
        narrow(r.socket_stream, RG_LIMIT_SOCKET, g);
}

/* ---- neighbours and pairs ---- */

/** alone: one ring in one direction, not as many as the links allow. */
static void ring_rate(const rg_coll_context *x, rg_coll_group *g, double device_ratio, bool alone)
{
    const rg_fabric *up = &x->cluster->scale_up;
    g->ring_rate = x->up_rate * device_ratio;
    g->ring_limit = RG_LIMIT_LINK;
    if (up->kind == RG_FABRIC_MESH && x->domain > 1)
        /* every ring of the group uses a cable of its own: (g - 1) of the (domain - 1) cables */
        g->ring_rate *= (alone ? 1.0 : (double)(g->local - 1)) / (double)(x->domain - 1);
    if (up->kind ==
        RG_FABRIC_TORUS) /* one dimension's two cables; one for one stream, or two ranks */
        g->ring_rate /= up->dimensions * (alone || g->local == 2 ? 2 : 1);
    if (up->kind == RG_FABRIC_PCIE_TREE)
        pcie_ring_rate(x, g, device_ratio);
}

/** Members of the group behind one switch (or socket) of `width` devices, the fullest of them. */
static double members_of(const rg_coll_group *g, int64_t width)
{
    const int64_t n = (width + g->stride - 1) / g->stride;
    return (double)(n < g->local ? n : g->local);
}

/** The same when all send to all: bytes over the uplink of the fullest switch, over the link of the
 * fuller socket. */
static double pcie_direct_cost(const rg_coll_context *x, const rg_coll_group *g,
                               double device_ratio, double share, rg_coll_limit *limit)
{
    const pcie_rates r = pcie_of(x, device_ratio);
    const double local = (double)g->local;
    const double k = members_of(g, x->per_switch), s = fmax(k, members_of(g, x->per_socket));
    double cost = (local - 1) * share / r.port;
    *limit = RG_LIMIT_LINK;
    if (apart(x, g, x->per_switch)) {
        const double uplink = k * share * ((s - k) / r.direct + (local - s) / r.staged);
        if (uplink > cost) {
            cost = uplink;
            *limit = RG_LIMIT_UPLINK;
        }
    }
    if (apart(x, g, x->per_socket)) {
        const double between = s * s * share / r.sockets;
        if (between > cost) {
            cost = between;
            *limit = RG_LIMIT_SOCKET;
        }
    }
    return cost;
}

double rg_coll_neighbour_cost(const rg_coll_context *x, const rg_coll_group *g, double device_ratio,
                              rg_coll_limit *limit)
{
    rg_coll_group pair = *g;
    ring_rate(x, &pair, device_ratio, true);
    *limit = pair.ring_limit;
    return 1 / pair.ring_rate;
}

double rg_coll_direct_cost(const rg_coll_context *x, const rg_coll_group *g, double device_ratio,
                           double share, rg_coll_limit *limit)
{
    const rg_fabric *up = &x->cluster->scale_up;
    const double local = (double)g->local;
    *limit = RG_LIMIT_LINK;
    if (up->kind == RG_FABRIC_PCIE_TREE)
        return pcie_direct_cost(x, g, device_ratio, share, limit);
    if (up->kind == RG_FABRIC_MESH && x->domain > 1)
        return share * (double)(x->domain - 1) / (x->up_rate * device_ratio);
    double cost = (local - 1) * share / (x->up_rate * device_ratio);
    if (up->kind == RG_FABRIC_TORUS) {
        /* Bisection of the longest ring: a quarter of all pairs crosses each of its two cuts'
         * cables one way; d/8 of a rank's buffer passes each cable (d even), as in any ring. */
        int64_t longest = 1;
        for (int i = 0; i < up->dimensions; i++)
            longest = up->extent[i] > longest ? up->extent[i] : longest;
        const double cable = x->up_rate * device_ratio / (2.0 * up->dimensions);
        const double d = (double)longest;
        const double hops = fmod(d, 2) == 0 ? d * d / 8 : (d * d - 1) / 8;
        cost = fmax(cost, share * local / d * hops / cable);
    }
    return cost;
}

/* ---- the group ---- */

rg_status rg_coll_group_of(const rg_coll_context *x, const rg_coll_query *q, rg_coll_group *g,
                           rg_err *err)
{
    *g = (rg_coll_group){
        .ranks = q->ranks, .first = q->first, .stride = q->stride > 0 ? q->stride : 1};
    if (q->ranks < 1 || q->first < 0 ||
        (double)q->first + (double)(q->ranks - 1) * (double)g->stride >= (double)x->devices)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%lld ranks, %lld %s apart, do not fit on the %lld devices of '%s'; give it "
                       "more nodes (--nodes)",
                       (long long)q->ranks, (long long)g->stride,
                       g->stride == 1 ? "device" : "devices", (long long)x->devices,
                       x->cluster->name);
    if (!(q->bytes.v >= 0) || !isfinite(q->bytes.v))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "a message of %g bytes", q->bytes.v);
    /* a group that begins inside a domain has the rest of it, then whole ones */
    const int64_t begun = (x->domain - g->first % x->domain + g->stride - 1) / g->stride;
    int64_t local = (x->domain + g->stride - 1) / g->stride;
    if (q->ranks <= begun)
        local = q->ranks;
    else if (q->ranks - begun < local)
        local = begun > q->ranks - begun ? begun : q->ranks - begun;
    if (q->local > 0 && q->local < local)
        local = q->local;
    g->local = local < q->ranks ? local : q->ranks;
    g->domains = (q->ranks + g->local - 1) / g->local;
    if (g->domains > (x->devices + x->domain - 1) / x->domain)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%lld ranks, %lld in a domain, need %lld domains; '%s' has %lld",
                       (long long)q->ranks, (long long)g->local, (long long)g->domains,
                       x->cluster->name, (long long)((x->devices + x->domain - 1) / x->domain));
    const bool ideal = x->ideal;
    if (g->local > 1)
        ring_rate(x, g, ideal ? 1 : x->c.simple_ratio, false);
    else
        g->ring_rate = INFINITY;
    if (g->domains > 1) {
        g->net_rate = x->net_rate * (ideal ? 1 : x->c.net_ratio);
        /* a ring of each rail: the ports of a domain's ranks carry one ring's bytes together */
        const double ports = g->net_rate * (double)g->local;
        g->path_rate = g->ring_rate;
        g->path_limit = g->ring_limit;
        if (ports < g->path_rate) {
            g->path_rate = ports;
            g->path_limit = RG_LIMIT_NETWORK;
        }
    } else {
        g->path_rate = g->ring_rate;
        g->path_limit = g->ring_limit;
    }
    return RG_OK;
}

/* net/coll_ideal.c: how a group lies on its cluster, and collectives over links alone. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "net/coll_inner.h"

/* ---- the group of a query ---- */

/** Whether the ranks of a domain lie behind several switches (or sockets) of `width` devices. */
static bool apart(const rg_coll_context *x, const rg_coll_group *g, int64_t width)
{
    const int64_t start = g->first % x->domain, end = start + (g->local - 1) * g->stride;
    return start / width != end / width;
}

/** Rate that all ranks reach at once when each sends one stream to its ring neighbour. */
static void ring_rate(const rg_coll_context *x, rg_coll_group *g, double device_ratio)
{
    const rg_fabric *up = &x->cluster->scale_up;
    g->ring_rate = x->up_rate * device_ratio;
    g->ring_limit = RG_LIMIT_LINK;
    if (up->kind == RG_FABRIC_MESH && x->domain > 1)
        /* every ring of the group uses a cable of its own: (g - 1) of the (domain - 1) cables */
        g->ring_rate *= (double)(g->local - 1) / (double)(x->domain - 1);
    if (up->kind == RG_FABRIC_TORUS)
        g->ring_rate /= up->dimensions; /* one dimension's two cables */
    if (up->kind != RG_FABRIC_PCIE_TREE)
        return;
    if (apart(x, g, x->per_switch)) {
        const double uplink = x->switch_rate * (x->ideal ? 1 : x->c.switch_ratio);
        if (uplink < g->ring_rate) {
            g->ring_rate = uplink;
            g->ring_limit = RG_LIMIT_UPLINK;
        }
    }
    if (apart(x, g, x->per_socket)) {
        const double between =
            x->socket_rate * (x->ideal ? 1 : x->c.socket_ratio / x->c.socket_crossings);
        if (between < g->ring_rate) {
            g->ring_rate = between;
            g->ring_limit = RG_LIMIT_SOCKET;
        }
    }
}

/** Members of the group behind one switch (or socket) of `width` devices, the fullest of them. */
static double members_of(const rg_coll_group *g, int64_t width)
{
    const int64_t n = (width + g->stride - 1) / g->stride;
    return (double)(n < g->local ? n : g->local);
}

/** Seconds that every byte of a rank's buffer costs when all send to all within the domain: the
 * slowest of port, uplink and socket link. share: part of the buffer for one peer. */
double rg_coll_direct_cost(const rg_coll_context *x, const rg_coll_group *g, double device_ratio,
                           double share, rg_coll_limit *limit)
{
    const rg_fabric *up = &x->cluster->scale_up;
    const double local = (double)g->local;
    double cost = (local - 1) * share / (x->up_rate * device_ratio);
    *limit = RG_LIMIT_LINK;
    if (up->kind == RG_FABRIC_MESH && x->domain > 1)
        cost = share * (double)(x->domain - 1) / (x->up_rate * device_ratio);
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
    if (up->kind != RG_FABRIC_PCIE_TREE)
        return cost;
    if (apart(x, g, x->per_switch)) {
        const double k = members_of(g, x->per_switch);
        const double rate = x->switch_rate * (x->ideal ? 1 : x->c.switch_ratio);
        const double uplink = k * (local - k) * share / rate;
        if (uplink > cost) {
            cost = uplink;
            *limit = RG_LIMIT_UPLINK;
        }
    }
    if (apart(x, g, x->per_socket)) {
        const double k = members_of(g, x->per_socket);
        const double rate = x->socket_rate * (x->ideal ? 1 : x->c.socket_ratio);
        const double between = k * k * share / rate;
        if (between > cost) {
            cost = between;
            *limit = RG_LIMIT_SOCKET;
        }
    }
    return cost;
}

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
        ring_rate(x, g, ideal ? 1 : x->c.simple_ratio);
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

/* ---- closed forms over links alone ---- */

/** Sequential steps of a ring, and bytes that each rank sends for S bytes. */
void rg_coll_ring_work(rg_coll_op op, double n, double S, double *steps, double *bytes)
{
    const bool both = op == RG_COLL_ALL_REDUCE;
    switch (op) {
    case RG_COLL_ALL_REDUCE:
    case RG_COLL_REDUCE_SCATTER:
    case RG_COLL_ALL_GATHER:
    case RG_COLL_ALL_TO_ALL:
        *steps = (both ? 2 : 1) * (n - 1);
        *bytes = *steps / n * S;
        return;
    case RG_COLL_SEND_RECV:
        *steps = 1;
        *bytes = S;
        return;
    default: /* broadcast, reduce: chunks follow each other, the last rank is n - 1 hops away */
        *steps = n - 1;
        *bytes = S;
        return;
    }
}

static double hops_latency(const rg_coll_context *x, const rg_coll_group *g, double steps)
{
    const double per_round = (double)(g->ranks - 1);
    const double rounds = per_round > 0 ? steps / per_round : 0;
    const double between = rounds * (double)(g->domains - 1);
    return (steps - between) * x->up_latency + between * x->net_latency;
}

bool rg_coll_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/** t = sum over the phases; see coll.h for what each algorithm does. */
rg_status rg_coll_ideal_time(const rg_coll_context *x, const rg_coll_query *q,
                             const rg_coll_group *g, rg_coll_algorithm algorithm,
                             rg_coll_result *out, rg_err *err)
{
    const double n = (double)g->ranks, S = q->bytes.v;
    const bool reduce_all = q->op == RG_COLL_ALL_REDUCE;
    double steps = 0, latency = 0, transfer = 0, sent = 0;
    rg_coll_limit limit = g->path_limit;
    switch (algorithm) {
    case RG_ALG_RING:
        rg_coll_ring_work(q->op, n, S, &steps, &sent);
        latency = hops_latency(x, g, steps);
        transfer = sent / g->path_rate;
        break;
    case RG_ALG_TREE: {
        /* Two trees of half the data each, so that every domain is inside one and a leaf of the
         * other: 2 (m - 1) edges carry S/2 up (and down) among m domains. Within a domain the data
         * passes along a chain, up and down. */
        const double depth = ceil(log2((double)g->domains)), m = (double)g->domains;
        const double chain = (double)(g->local - 1), ways = reduce_all ? 2 : 1;
        steps = ways * (depth + chain);
        latency = ways * (depth * x->net_latency + chain * x->up_latency);
        const double within = g->local > 1 ? ways * S / g->ring_rate : 0;
        const double beyond =
            g->domains > 1 ? ways * (m - 1) / m * S / ((double)g->local * g->net_rate) : 0;
        sent = g->local > 1 ? ways * S : ways * (m - 1) / m * S;
        transfer = fmax(within, beyond);
        limit = beyond > within ? RG_LIMIT_NETWORK : g->ring_limit;
        break;
    }
    case RG_ALG_HALVING_DOUBLING: {
        if (!rg_coll_power_of_two(g->ranks))
            return rg_fail(
                err, RG_ERR_MODEL, RG_NOWHERE,
                "halving-doubling needs a power of two of ranks, not %lld; ring would do",
                (long long)g->ranks);
        rg_coll_ring_work(q->op, n, S, &steps, &sent);
        const double rounds = reduce_all ? 2 : 1;
        steps = rounds * log2(n);
        const double between = rounds * log2((double)g->domains);
        latency = (steps - between) * x->up_latency + between * x->net_latency;
        /* parts halve while distances double, so the large parts stay within the domain */
        double within = 0, beyond = 0, part = S / 2;
        for (int64_t k = 1; k < g->ranks; k *= 2, part /= 2) {
            if (k < g->local)
                within += part;
            else
                beyond += part;
        }
        transfer = rounds * within / g->ring_rate;
        if (beyond > 0)
            transfer += rounds * beyond / g->net_rate;
        break;
    }
    case RG_ALG_ONE_SHOT:
    case RG_ALG_TWO_SHOT:
    case RG_ALG_DIRECT: {
        const bool one = algorithm == RG_ALG_ONE_SHOT;
        const double rounds = algorithm == RG_ALG_TWO_SHOT ? 2 : 1;
        const bool alone = q->op == RG_COLL_SEND_RECV;
        const double share = one || alone ? 1 : 1 / n; /* of S, for each peer */
        rg_coll_limit inner = RG_LIMIT_LINK;
        const double within = g->local > 1 ? rg_coll_direct_cost(x, g, 1, share, &inner) * S : 0;
        const double beyond =
            g->domains > 1 ? (alone ? 1 : n - (double)g->local) * share * S / g->net_rate : 0;
        limit = beyond > within || g->local == 1 ? RG_LIMIT_NETWORK : inner;
        steps = rounds;
        latency = rounds * (g->domains > 1 ? x->net_latency : x->up_latency);
        transfer = rounds * fmax(within, beyond);
        sent = rounds * (n - 1) * share * S;
        break;
    }
    case RG_ALG_IN_SWITCH:
        /* a rank's data is read once through the switch, its own part written once to all */
        steps = 2;
        latency = 2 * x->up_latency;
        sent = S * (1 + 1 / n);
        transfer = sent / x->up_rate;
        limit = RG_LIMIT_SWITCH;
        break;
    case RG_ALG_HIERARCHICAL: {
        const double l = (double)g->local, m = (double)g->domains;
        const double ways = reduce_all ? 2 : 1;
        steps = ways * (l - 1) + ways * (m - 1);
        latency = ways * (l - 1) * x->up_latency + ways * (m - 1) * x->net_latency;
        const double within = g->local > 1 ? ways * (l - 1) / l * S / g->ring_rate : 0;
        const double beyond = g->domains > 1 ? ways * (m - 1) / m * S / l / g->net_rate : 0;
        transfer = within + beyond;
        sent = ways * ((l - 1) / l * S + (m - 1) / m * S / l);
        limit = beyond > within ? RG_LIMIT_NETWORK : g->ring_limit;
        break;
    }
    case RG_ALG_TORUS: {
        const rg_fabric *torus = &x->cluster->scale_up;
        const int k = torus->dimensions;
        const double cable = x->up_rate / (2.0 * k);
        const double ways = reduce_all ? 2 : 1;
        for (int phase = 0; phase < k; phase++) {
            double slowest = 0, most_steps = 0;
            for (int part = 0; part < k; part++) {
                double chunk = S / (2.0 * k);
                for (int before = 0; before < phase; before++)
                    chunk /= (double)torus->extent[(part + before) % k];
                const double d = (double)torus->extent[(part + phase) % k];
                if (d < 2)
                    continue;
                const double rate = d == 2 ? cable / 2 : cable;
                const double t = (d - 1) * (chunk / d / rate + x->up_latency);
                sent += ways * 2 * (d - 1) * chunk / d;
                slowest = fmax(slowest, t);
                most_steps = fmax(most_steps, d - 1);
            }
            steps += ways * most_steps;
            latency += ways * most_steps * x->up_latency;
            transfer += ways * (slowest - most_steps * x->up_latency);
        }
        break;
    }
    default:
        break;
    }
    out->time = RG_S(latency + transfer);
    out->latency = RG_S(latency);
    out->sent = RG_B(sent);
    out->steps = (int64_t)steps;
    out->algorithm = algorithm;
    out->protocol = RG_PROTO_AUTO;
    out->limit = latency > transfer ? RG_LIMIT_LATENCY : limit;
    return RG_OK;
}

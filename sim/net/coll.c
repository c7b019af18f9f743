/* net/coll.c: time of collectives, ideal and calibrated. */
// SPDX-License-Identifier: Apache-2.0
#include "net/coll.h"

#include <math.h>
#include <string.h>

#include "core/text.h"

#include "net/coll_inner.h"

static const char *const op_names[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                       "broadcast",  "reduce",         "send_recv",  NULL};
static const char *const algorithm_names[] = {
    "auto",      "ring",         "tree",  "halving_doubling", "one_shot", "two_shot",
    "in_switch", "hierarchical", "torus", "direct",           NULL};
static const char *const protocol_names[] = {"auto", "ll", "ll128", "simple", NULL};

const char *rg_coll_op_name(rg_coll_op op)
{
    return op_names[op];
}

const char *rg_coll_algorithm_name(rg_coll_algorithm algorithm)
{
    return algorithm_names[algorithm];
}

const char *rg_coll_protocol_name(rg_coll_protocol protocol)
{
    return protocol_names[protocol];
}

const char *rg_coll_limit_name(rg_coll_limit limit)
{
    static const char *const names[RG_LIMIT_COUNT] = {"none",   "latency", "link",  "pcie_uplink",
                                                      "socket", "network", "switch"};
    return names[limit];
}

/** Letters and digits alone, so that "all-to-all", "alltoall" and "AllToAll" are one name. */
static void squeeze(const char *name, char out[64])
{
    size_t n = 0;
    for (; *name != '\0' && n < 63; name++) {
        const char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out[n++] = c;
    }
    out[n] = '\0';
}

static int find_name(const char *name, const char *const *names)
{
    char wanted[64], known[64];
    squeeze(name, wanted);
    for (int i = 0; names[i] != NULL; i++) {
        squeeze(names[i], known);
        if (strcmp(wanted, known) == 0)
            return i;
    }
    return -1;
}

rg_status rg_coll_op_parse(const char *name, rg_coll_op *out, rg_err *err)
{
    const int found = find_name(name, op_names);
    if (found < 0) {
        const char *near = rg_text_nearest(name, op_names);
        return rg_fail(
            err, RG_ERR_USAGE, RG_NOWHERE,
            "collective '%s' is not known%s%s%s; all_reduce, reduce_scatter, all_gather, "
            "all_to_all, broadcast, reduce or send_recv would do",
            name, near ? ", '" : "", near ? near : "", near ? "' is near" : "");
    }
    *out = (rg_coll_op)found;
    return RG_OK;
}

rg_status rg_coll_algorithm_parse(const char *name, rg_coll_algorithm *out, rg_err *err)
{
    int found = find_name(name, algorithm_names);
    if (found < 0 && (strcmp(name, "nvls") == 0 || strcmp(name, "sharp") == 0))
        found = RG_ALG_IN_SWITCH;
    if (found < 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "algorithm '%s' is not known; auto, ring, tree, halving_doubling, one_shot, "
                       "two_shot, in_switch, hierarchical, torus or direct would do",
                       name);
    *out = (rg_coll_algorithm)found;
    return RG_OK;
}

double rg_coll_bus_factor(rg_coll_op op, int64_t ranks)
{
    if (ranks < 2)
        return 0;
    const double n = (double)ranks;
    switch (op) {
    case RG_COLL_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case RG_COLL_REDUCE_SCATTER:
    case RG_COLL_ALL_GATHER:
    case RG_COLL_ALL_TO_ALL:
        return (n - 1) / n;
    default:
        return 1;
    }
}

/* ---- the group of a query ---- */

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
    const int64_t span = (g->local - 1) * g->stride + 1;
    if (span > x->per_switch) {
        const double uplink = x->switch_rate * (x->ideal ? 1 : x->c.switch_ratio);
        if (uplink < g->ring_rate) {
            g->ring_rate = uplink;
            g->ring_limit = RG_LIMIT_UPLINK;
        }
    }
    if (span > x->per_socket) {
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
static double direct_cost(const rg_coll_context *x, const rg_coll_group *g, double device_ratio,
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
    const int64_t span = (g->local - 1) * g->stride + 1;
    if (span > x->per_switch) {
        const double k = members_of(g, x->per_switch);
        const double rate = x->switch_rate * (x->ideal ? 1 : x->c.switch_ratio);
        const double uplink = k * (local - k) * share / rate;
        if (uplink > cost) {
            cost = uplink;
            *limit = RG_LIMIT_UPLINK;
        }
    }
    if (span > x->per_socket) {
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
    *g = (rg_coll_group){.ranks = q->ranks, .stride = q->stride > 0 ? q->stride : 1};
    if (q->ranks < 1 || (double)q->ranks * (double)g->stride > (double)x->devices + g->stride - 1)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%lld ranks, %lld devices apart, do not fit on the %lld devices of '%s'",
                       (long long)q->ranks, (long long)g->stride, (long long)x->devices,
                       x->cluster->name);
    if (!(q->bytes.v >= 0) || !isfinite(q->bytes.v))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "a message of %g bytes", q->bytes.v);
    int64_t local = x->domain / g->stride;
    local = local < 1 ? 1 : local;
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
static void ring_work(rg_coll_op op, double n, double S, double *steps, double *bytes)
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

static bool power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/** t = sum over the phases; see coll.h for what each algorithm does. */
static rg_status ideal_time(const rg_coll_context *x, const rg_coll_query *q,
                            const rg_coll_group *g, rg_coll_algorithm algorithm,
                            rg_coll_result *out, rg_err *err)
{
    const double n = (double)g->ranks, S = q->bytes.v;
    const bool reduce_all = q->op == RG_COLL_ALL_REDUCE;
    double steps = 0, latency = 0, transfer = 0, sent = 0;
    rg_coll_limit limit = g->path_limit;
    switch (algorithm) {
    case RG_ALG_RING:
        ring_work(q->op, n, S, &steps, &sent);
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
        if (!power_of_two(g->ranks))
            return rg_fail(
                err, RG_ERR_MODEL, RG_NOWHERE,
                "halving-doubling needs a power of two of ranks, not %lld; ring would do",
                (long long)g->ranks);
        ring_work(q->op, n, S, &steps, &sent);
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
        rg_coll_limit inner;
        const double within = g->local > 1 ? direct_cost(x, g, 1, share, &inner) * S : 0;
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

/* ---- what libraries reach ---- */

/** (a^q + b^q)^(1/q): parts that overlap more or less than a plain sum says. */
static double power_sum(double a, double b, double q)
{
    if (q == 1)
        return a + b;
    const double big = fmax(a, b), small = fmin(a, b);
    return small > 0 ? big * pow(1 + pow(small / big, q), 1 / q) : big;
}

/** LL bus rate in NCCL's tuning model (src/graph/tuning.cc, llMaxBws, one node), by architecture.
 */
static double ll_table_rate(const char *arch)
{
    if (arch != NULL && strcmp(arch, "ampere") == 0)
        return 87.7e9;
    if (arch != NULL && strncmp(arch, "blackwell", 9) == 0)
        return 282e9;
    return 141e9;
}

typedef struct timing {
    double time, latency;
    rg_coll_limit limit;
} timing;

static timing ring_ll(const rg_coll_context *x, const rg_coll_group *g, rg_coll_op op, double steps,
                      double between, double bytes, double S)
{
    const rg_coll_constants *c = &x->c;
    const bool gather = op == RG_COLL_ALL_GATHER || op == RG_COLL_REDUCE_SCATTER;
    const double hop = gather ? c->gather_hop_us : c->hop_us;
    const double local_part = S / (double)g->ranks;
    const double ratio = c->wide_bytes / fmax(S, 1);
    const double wide = 1e-6 * (c->wide_base_us + c->wide_hop_us * steps) / (1 + ratio * ratio);
    const double latency =
        1e-6 * (c->base_us + (steps - between) * hop + between * c->net_ll_us) + wide;
    double rate = c->ll_wire_ratio * g->path_rate;
    if (g->domains > 1)
        rate = fmin(rate, 1e9 * c->net_ll_gbs * (double)g->local);
    rate = fmin(rate, c->ll_ratio * x->ll_rate);
    const double transfer = (bytes + local_part) / rate;
    return (timing){latency + transfer, latency,
                    latency > transfer ? RG_LIMIT_LATENCY : g->path_limit};
}

static timing ring_ll128(const rg_coll_context *x, const rg_coll_group *g, double steps,
                         double between, double bytes)
{
    const rg_coll_constants *c = &x->c;
    const double latency =
        1e-6 * (c->base_us + c->ll128_base_us + (steps - between) * c->ll128_hop_us +
                between * c->net_simple_us);
    const double transfer = bytes / (c->ll128_ratio * g->path_rate);
    return (timing){power_sum(latency, transfer, c->overlap_power), latency,
                    latency > transfer ? RG_LIMIT_LATENCY : g->path_limit};
}

static timing ring_simple(const rg_coll_context *x, const rg_coll_group *g, rg_coll_op op,
                          double steps, double between, double bytes, double S)
{
    const rg_coll_constants *c = &x->c;
    const double copy = op == RG_COLL_ALL_REDUCE       ? c->copy_all_reduce
                        : op == RG_COLL_REDUCE_SCATTER ? c->copy_reduce_scatter
                        : op == RG_COLL_ALL_GATHER     ? c->copy_all_gather
                                                       : 0;
    const double latency =
        1e-6 * (c->base_us + c->simple_base_us + (steps - between) * c->simple_hop_us +
                between * c->net_simple_us);
    const double transfer = bytes / g->path_rate + copy * S / (double)g->ranks / x->up_rate;
    return (timing){power_sum(latency, transfer, c->overlap_power), latency,
                    latency > transfer ? RG_LIMIT_LATENCY : g->path_limit};
}

/** The protocol that NCCL's own tuning model picks for a ring within one NVLink domain: its table
 * of base and step latencies (us) over 0.8 of the link rate (src/graph/tuning.cc). The pick decides
 * where real times jump, whatever would have been best. */
static rg_coll_protocol tuner_pick(const rg_coll_context *x, double steps, double bytes)
{
    const double bus = 0.8 * x->up_rate;
    const double ll = 6.6e-6 + 0.6e-6 * steps + bytes / fmin(x->ll_rate, 0.5 * bus);
    const double ll128 = 14.0e-6 + 1.9e-6 * steps + bytes / (0.92 * bus);
    const double simple = 8.4e-6 + 3.4e-6 * steps + bytes / bus;
    if (ll <= ll128 && ll <= simple)
        return RG_PROTO_LL;
    return ll128 < simple ? RG_PROTO_LL128 : RG_PROTO_SIMPLE;
}

/** Ring and its relatives under one protocol, or the one that the library picks. */
static timing ring_time(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                        rg_coll_protocol *protocol)
{
    double steps, bytes;
    ring_work(q->op, (double)g->ranks, q->bytes.v, &steps, &bytes);
    const double rounds = g->ranks > 1 ? steps / (double)(g->ranks - 1) : 0;
    const double between = rounds * (double)(g->domains - 1);
    const bool pcie = x->cluster->scale_up.kind == RG_FABRIC_PCIE_TREE;
    if (*protocol == RG_PROTO_AUTO && g->domains == 1 && !pcie)
        *protocol = tuner_pick(x, steps, bytes);
    switch (*protocol) {
    case RG_PROTO_LL:
        return ring_ll(x, g, q->op, steps, between, bytes, q->bytes.v);
    case RG_PROTO_LL128:
        return ring_ll128(x, g, steps, between, bytes);
    case RG_PROTO_SIMPLE:
        return ring_simple(x, g, q->op, steps, between, bytes, q->bytes.v);
    default:
        break;
    }
    timing best = ring_ll(x, g, q->op, steps, between, bytes, q->bytes.v);
    *protocol = RG_PROTO_LL;
    if (!pcie && g->domains == 1) {
        const timing t = ring_ll128(x, g, steps, between, bytes);
        if (t.time < best.time) {
            best = t;
            *protocol = RG_PROTO_LL128;
        }
    }
    const timing t = ring_simple(x, g, q->op, steps, between, bytes, q->bytes.v);
    if (t.time < best.time) {
        best = t;
        *protocol = RG_PROTO_SIMPLE;
    }
    return best;
}

/** Double binary tree over domains with chains inside: each rank passes the data up and down. */
static timing tree_time(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                        rg_coll_protocol *protocol)
{
    const rg_coll_constants *c = &x->c;
    const double ways = q->op == RG_COLL_ALL_REDUCE ? 2 : 1, S = q->bytes.v;
    const double levels = ceil(log2((double)g->domains)), chain = (double)(g->local - 1);
    const double ll_latency =
        1e-6 * (c->base_us + ways * (levels * c->net_tree_us + chain * c->hop_us));
    const double latency = 1e-6 * (c->base_us + c->simple_base_us +
                                   ways * (levels * c->net_simple_us + chain * c->simple_hop_us));
    const double m = (double)g->domains;
    const double beyond =
        g->domains > 1 ? ways * (m - 1) / m * S / ((double)g->local * g->net_rate) : 0;
    const double within = g->local > 1 ? ways * S / (0.92 * g->ring_rate) : 0;
    const rg_coll_limit limit = beyond > within ? RG_LIMIT_NETWORK : g->ring_limit;
    const double wire = fmax(within, beyond);
    const double ll_beyond = beyond * g->net_rate / (1e9 * c->net_ll_gbs);
    const double ll =
        ll_latency + fmax(fmax(2 * within, ll_beyond), ways * S / (c->ll_ratio * x->ll_rate));
    const double simple = power_sum(latency, wire, c->overlap_power);
    if (*protocol == RG_PROTO_AUTO || *protocol == RG_PROTO_LL128)
        *protocol = ll <= simple ? RG_PROTO_LL : RG_PROTO_SIMPLE;
    if (*protocol == RG_PROTO_LL)
        return (timing){ll, ll_latency, 2 * ll_latency > ll ? RG_LIMIT_LATENCY : limit};
    return (timing){simple, latency, 2 * latency > simple ? RG_LIMIT_LATENCY : limit};
}

/** In-switch reduction: NVLS in the domain; between domains a tree or SHARP of what each rank owns.
 */
static timing in_switch_time(const rg_coll_context *x, const rg_coll_query *q,
                             const rg_coll_group *g)
{
    const rg_coll_constants *c = &x->c;
    const double S = q->bytes.v, l = (double)g->local;
    double latency = 1e-6 * (c->base_us + c->nvls_base_us);
    double transfer = S * (1 + 1 / l) / (c->nvls_ratio * x->up_rate);
    rg_coll_limit limit = RG_LIMIT_SWITCH;
    if (g->domains > 1) {
        const bool sharp = x->cluster->scale_out.in_network_reduction;
        const double levels = sharp ? 1 : ceil(log2((double)g->domains));
        latency += 2e-6 * levels * c->net_simple_us;
        /* SHARP: each rank sends its part once and gets the sum once; a tree passes it on twice */
        const double network = (sharp ? 1 : 2) * S / l / g->net_rate;
        limit = network > transfer ? RG_LIMIT_NETWORK : limit;
        transfer = fmax(transfer, network); /* pieces are in both at once */
    }
    return (timing){latency + transfer, latency, latency > transfer ? RG_LIMIT_LATENCY : limit};
}

static timing direct_time(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                          rg_coll_protocol *protocol)
{
    const rg_coll_constants *c = &x->c;
    const double n = (double)g->ranks, S = q->bytes.v * fmax(1, q->imbalance);
    rg_coll_limit limit = RG_LIMIT_NETWORK;
    const bool pcie = x->cluster->scale_up.kind == RG_FABRIC_PCIE_TREE;
    const bool alone = q->op == RG_COLL_SEND_RECV;
    const double share = alone ? 1 : 1 / n;
    const double within = g->local > 1 ? direct_cost(x, g, c->direct_ratio, share, &limit) * S : 0;
    const double beyond =
        g->domains > 1 ? (alone ? 1 : n - (double)g->local) * share * S / g->net_rate : 0;
    limit = beyond > within ? RG_LIMIT_NETWORK : limit;
    const double own = alone || g->local == 1 ? 0 : c->direct_copy * S / n / x->up_rate;
    const double wire = fmax(within, beyond) + own;
    /* Peers in other domains are served by few network steps at once, 8 of them on the way. */
    const double remote = (double)(g->ranks - g->local);
    double latency =
        1e-6 * (c->base_us + c->direct_base_us + (double)(g->local - 1) * c->direct_peer_us +
                (remote > 0 ? c->net_ll_us * (1 + remote / 8) : 0));
    const double ll_wire = pcie ? wire / c->ll_wire_ratio / 0.7 : S / n / (c->direct_ll_gbs * 1e9);
    const double ll = latency + fmax(ll_wire, wire);
    const double simple_latency = latency + 1e-6 * c->direct_simple_us;
    const double simple = power_sum(simple_latency, wire, c->direct_power);
    const bool pick_ll = *protocol == RG_PROTO_LL || (*protocol != RG_PROTO_SIMPLE && ll <= simple);
    *protocol = pick_ll ? RG_PROTO_LL : RG_PROTO_SIMPLE;
    const double time = pick_ll ? ll : simple;
    latency = pick_ll ? latency : simple_latency;
    return (timing){time, latency, 2 * latency > time ? RG_LIMIT_LATENCY : limit};
}

/** An engine's own kernels: all ranks read all buffers, or scatter and gather by direct reads. */
static timing shot_time(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                        bool one)
{
    const rg_coll_constants *c = &x->c;
    const double n = (double)g->ranks, S = q->bytes.v;
    rg_coll_limit limit;
    const double ratio = one ? c->one_shot_ratio : c->two_shot_ratio;
    const double transfer = (one ? 1 : 2) * direct_cost(x, g, ratio, one ? 1 : 1 / n, &limit) * S;
    const double small = 4096 / fmax(S, 1);
    const double latency = 1e-6 * (one ? c->one_shot_base_us + c->one_shot_rank_us * n +
                                             c->one_shot_wide_us * (n - 1) / (1 + small * small)
                                       : c->two_shot_base_us + c->two_shot_rank_us * n);
    return (timing){latency + transfer, latency, latency > transfer ? RG_LIMIT_LATENCY : limit};
}

/** Phases one after the other, each with its own best: scatter within, reduce between, gather. */
static rg_status hierarchical_time(const rg_coll_context *x, const rg_coll_query *q,
                                   const rg_coll_group *g, timing *out, rg_err *err)
{
    rg_coll_query inner = {.op = RG_COLL_REDUCE_SCATTER,
                           .ranks = g->local,
                           .stride = g->stride,
                           .bytes = q->bytes,
                           .library = q->library};
    rg_coll_query between = {.op = q->op,
                             .algorithm = RG_ALG_AUTO,
                             .ranks = g->domains,
                             .stride = x->domain,
                             .bytes = RG_B(q->bytes.v / (double)g->local),
                             .library = q->library};
    rg_coll_result a = {0}, b = {0}, c = {0};
    if (q->op != RG_COLL_ALL_GATHER)
        RG_TRY(rg_coll_time(x, &inner, &a, err));
    RG_TRY(rg_coll_time(x, &between, &b, err));
    inner.op = RG_COLL_ALL_GATHER;
    if (q->op != RG_COLL_REDUCE_SCATTER)
        RG_TRY(rg_coll_time(x, &inner, &c, err));
    out->time = a.time.v + b.time.v + c.time.v;
    out->latency = a.latency.v + b.latency.v + c.latency.v;
    out->limit = b.time.v > a.time.v + c.time.v ? RG_LIMIT_NETWORK : RG_LIMIT_LINK;
    return RG_OK;
}

/* ---- choice ---- */

static bool reduces_in_switch(const rg_coll_context *x, const rg_coll_query *q,
                              const rg_coll_group *g)
{
    return x->cluster->scale_up.in_network_reduction && q->op == RG_COLL_ALL_REDUCE &&
           !q->integer && (double)g->local >= x->c.nvls_least_ranks &&
           (g->domains == 1 || g->local * g->domains == g->ranks);
}

/** Whether the algorithm does the operation on this group; else why not. */
static const char *unfit(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                         rg_coll_algorithm algorithm)
{
    const bool all = q->op == RG_COLL_ALL_REDUCE;
    const bool gather = q->op == RG_COLL_ALL_GATHER || q->op == RG_COLL_REDUCE_SCATTER;
    const rg_fabric *up = &x->cluster->scale_up;
    switch (algorithm) {
    case RG_ALG_RING:
        return NULL;
    case RG_ALG_TREE:
        return all || q->op == RG_COLL_BROADCAST || q->op == RG_COLL_REDUCE
                   ? NULL
                   : "a tree does all-reduce, broadcast and reduce";
    case RG_ALG_HALVING_DOUBLING:
        if (!all && !gather)
            return "halving-doubling does all-reduce, reduce-scatter and all-gather";
        if (up->kind != RG_FABRIC_SWITCHED && up->kind != RG_FABRIC_NONE)
            return "halving-doubling is modelled on switched fabrics";
        return power_of_two(g->ranks) ? NULL : "halving-doubling needs a power of two of ranks";
    case RG_ALG_ONE_SHOT:
    case RG_ALG_TWO_SHOT:
        if (!all)
            return "one-shot and two-shot do all-reduce";
        return g->domains == 1 ? NULL : "one-shot and two-shot stay within a scale-up domain";
    case RG_ALG_IN_SWITCH:
        if (!all || q->integer)
            return "in-switch reduction does all-reduce of floating-point numbers";
        if (!up->in_network_reduction)
            return "the switches of this cluster do not reduce";
        if (g->local == 1 && !x->cluster->scale_out.in_network_reduction)
            return "the network between these ranks does not reduce";
        return NULL;
    case RG_ALG_HIERARCHICAL:
        if (!all && !gather)
            return "the hierarchical algorithm does all-reduce, reduce-scatter and all-gather";
        if (g->domains == 1 || g->local == 1)
            return "hierarchical needs several ranks in each of several domains";
        return g->local * g->domains == g->ranks ? NULL : "hierarchical needs equally full domains";
    case RG_ALG_TORUS:
        if (up->kind != RG_FABRIC_TORUS)
            return "the cluster is no torus";
        if (!all && !gather)
            return "the torus algorithm does all-reduce, reduce-scatter and all-gather";
        return g->ranks == x->domain && g->stride == 1
                   ? NULL
                   : "the torus algorithm needs the whole torus";
    case RG_ALG_DIRECT:
        return q->op == RG_COLL_ALL_TO_ALL || q->op == RG_COLL_SEND_RECV
                   ? NULL
                   : "direct is for all-to-all and send-recv";
    default:
        return "no algorithm";
    }
}

static rg_status time_of(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                         rg_coll_algorithm algorithm, rg_coll_result *out, rg_err *err)
{
    rg_coll_result shape = {
        0}; /* steps and bytes are those of the algorithm, whatever the library */
    RG_TRY(ideal_time(x, q, g, algorithm, &shape, err));
    *out = shape;
    if (x->ideal)
        return RG_OK;
    rg_coll_protocol protocol = q->protocol;
    timing t = {0};
    switch (algorithm) {
    case RG_ALG_RING:
        t = ring_time(x, q, g, &protocol);
        break;
    case RG_ALG_TREE:
        t = tree_time(x, q, g, &protocol);
        break;
    case RG_ALG_IN_SWITCH:
        t = in_switch_time(x, q, g);
        protocol = RG_PROTO_SIMPLE;
        break;
    case RG_ALG_ONE_SHOT:
    case RG_ALG_TWO_SHOT:
        t = shot_time(x, q, g, algorithm == RG_ALG_ONE_SHOT);
        protocol = RG_PROTO_LL;
        break;
    case RG_ALG_DIRECT:
        t = direct_time(x, q, g, &protocol);
        break;
    case RG_ALG_HIERARCHICAL:
        RG_TRY(hierarchical_time(x, q, g, &t, err));
        break;
    default: { /* no library measured: links at the ring's shares, its steps, its floor */
        const double transfer = (shape.time.v - shape.latency.v) / x->c.simple_ratio;
        t.latency = 1e-6 * (x->c.base_us + (double)shape.steps * x->c.ll128_hop_us);
        t.time = power_sum(t.latency, transfer, x->c.overlap_power);
        t.limit = t.latency > transfer ? RG_LIMIT_LATENCY : shape.limit;
        break;
    }
    }
    out->time = RG_S(t.time);
    out->latency = RG_S(t.latency);
    out->limit = t.limit;
    out->protocol = protocol;
    return RG_OK;
}

/** What the library would consider, best first found wins ties. */
static rg_status choose(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                        rg_coll_result *out, rg_err *err)
{
    if (q->op == RG_COLL_ALL_TO_ALL || q->op == RG_COLL_SEND_RECV)
        return time_of(x, q, g, RG_ALG_DIRECT, out, err);
    rg_coll_algorithm candidates[8];
    int count = 0;
    if (x->cluster->scale_up.kind == RG_FABRIC_TORUS && unfit(x, q, g, RG_ALG_TORUS) == NULL)
        candidates[count++] = RG_ALG_TORUS;
    candidates[count++] = RG_ALG_RING;
    if (x->ideal && unfit(x, q, g, RG_ALG_HALVING_DOUBLING) == NULL &&
        x->cluster->scale_up.kind == RG_FABRIC_SWITCHED)
        candidates[count++] = RG_ALG_HALVING_DOUBLING;
    if (g->domains > 1 && unfit(x, q, g, RG_ALG_TREE) == NULL)
        candidates[count++] = RG_ALG_TREE;
    if (reduces_in_switch(x, q, g))
        candidates[count++] = RG_ALG_IN_SWITCH;
    if (x->ideal && unfit(x, q, g, RG_ALG_HIERARCHICAL) == NULL)
        candidates[count++] = RG_ALG_HIERARCHICAL;
    const bool own_kernels = q->library == RG_LIB_CUSTOM &&
                             q->bytes.v <= x->c.one_shot_most_bytes &&
                             x->cluster->scale_up.kind != RG_FABRIC_PCIE_TREE;
    rg_coll_result best = {.time = {INFINITY}};
    for (int i = 0; i < count; i++) {
        rg_coll_result t;
        RG_TRY(time_of(x, q, g, candidates[i], &t, err));
        if (q->library == RG_LIB_CUSTOM) {
            const double saved = fmin(1e-6 * x->c.graph_saves_us, 0.5 * t.latency.v);
            t.time.v -= saved;
            t.latency.v -= saved;
        }
        if (t.time.v < best.time.v)
            best = t;
    }
    for (int k = 0; k < 2 && own_kernels; k++) {
        const rg_coll_algorithm shot = k == 0 ? RG_ALG_ONE_SHOT : RG_ALG_TWO_SHOT;
        rg_coll_result t;
        if (unfit(x, q, g, shot) != NULL)
            continue;
        RG_TRY(time_of(x, q, g, shot, &t, err));
        if (t.time.v < best.time.v)
            best = t;
    }
    *out = best;
    return RG_OK;
}

rg_status rg_coll_finish(const rg_coll_context *x, const rg_coll_query *q, rg_coll_result *out,
                         rg_err *err)
{
    if (!isfinite(out->time.v) || out->time.v < 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "no finite time for %s over %lld ranks of '%s'; a link rate is missing",
                       rg_coll_op_name(q->op), (long long)q->ranks, x->cluster->name);
    out->algbw = RG_BPS(out->time.v > 0 ? q->bytes.v / out->time.v : 0);
    out->busbw = RG_BPS(out->algbw.v * rg_coll_bus_factor(q->op, q->ranks));
    out->above_link = q->ranks > 1 && out->busbw.v > x->up_rate && x->up_rate > 0;
    return RG_OK;
}

rg_status rg_coll_time(const rg_coll_context *context, const rg_coll_query *query,
                       rg_coll_result *out, rg_err *err)
{
    *out = (rg_coll_result){.algorithm = query->algorithm, .protocol = query->protocol};
    rg_coll_context ideal;
    const rg_coll_context *x = context;
    if (query->library == RG_LIB_IDEAL && !context->ideal) {
        ideal = *context;
        ideal.ideal = true;
        x = &ideal;
    }
    rg_coll_group g;
    RG_TRY(rg_coll_group_of(x, query, &g, err));
    if (query->ranks == 1)
        return RG_OK; /* nothing moves */
    if (query->algorithm == RG_ALG_AUTO) {
        RG_TRY(choose(x, query, &g, out, err));
    } else {
        const char *why = unfit(x, query, &g, query->algorithm);
        if (why != NULL)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "%s by %s over %lld ranks: %s",
                           rg_coll_op_name(query->op), rg_coll_algorithm_name(query->algorithm),
                           (long long)query->ranks, why);
        RG_TRY(time_of(x, query, &g, query->algorithm, out, err));
    }
    return rg_coll_finish(x, query, out, err);
}

rg_status rg_coll_crossovers(const rg_coll_context *context, const rg_coll_query *query,
                             rg_bytes least, rg_bytes most, rg_coll_crossover *out, int capacity,
                             int *count, rg_err *err)
{
    *count = 0;
    rg_coll_query q = *query;
    rg_coll_result now, next;
    q.bytes = least;
    RG_TRY(rg_coll_time(context, &q, &now, err));
    out[(*count)++] = (rg_coll_crossover){least, now.algorithm, now.protocol};
    /* Steps of an eighth of an octave, then halving of the step in which the choice changes. */
    for (double size = least.v; size < most.v && *count < capacity;) {
        const double ahead = fmin(size * 1.0905077326652577, most.v);
        q.bytes = RG_B(ahead);
        RG_TRY(rg_coll_time(context, &q, &next, err));
        if (next.algorithm != now.algorithm || next.protocol != now.protocol) {
            double low = size, high = ahead;
            while (high > low * (1 + 1.0 / 64)) {
                const double middle = sqrt(low * high);
                rg_coll_result between;
                q.bytes = RG_B(middle);
                RG_TRY(rg_coll_time(context, &q, &between, err));
                if (between.algorithm == now.algorithm && between.protocol == now.protocol)
                    low = middle;
                else
                    high = middle;
            }
            out[(*count)++] = (rg_coll_crossover){RG_B(high), next.algorithm, next.protocol};
            now = next;
        }
        size = ahead;
    }
    return RG_OK;
}

/* ---- preparation ---- */

rg_status rg_coll_prepare(rg_arena *arena, const rg_cluster *cluster,
                          const rg_coll_constants *constants, rg_coll_context **out, rg_err *err)
{
    rg_coll_context *x = RG_NEW(arena, rg_coll_context, 1, err);
    if (x == NULL)
        return RG_ERR_LIMIT;
    x->cluster = cluster;
    x->c = constants != NULL ? *constants : rg_coll_constants_of(cluster);
    const rg_fabric *up = &cluster->scale_up, *net = &cluster->scale_out;
    const int64_t domain =
        cluster->scale_up_devices > 0 ? cluster->scale_up_devices : cluster->devices_per_node;
    x->devices = cluster->devices_per_node * cluster->nodes;
    x->domain = up->kind == RG_FABRIC_NONE ? 1 : domain;
    x->up_rate = up->rate_per_direction.known ? up->rate_per_direction.value : 0;
    if (x->domain > 1 && !(x->up_rate > 0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cluster '%s' gives no scale-up link rate; add rate_per_direction",
                       cluster->name);
    x->up_latency = up->latency.known ? up->latency.value : 0;
    x->per_switch = up->devices_per_switch > 0 ? up->devices_per_switch : x->domain;
    x->per_socket = up->devices_per_socket > 0 ? up->devices_per_socket : x->domain;
    x->switch_rate = up->uplink_rate.known ? up->uplink_rate.value : x->up_rate;
    x->socket_rate = up->socket_rate.known ? up->socket_rate.value : x->switch_rate;
    const bool several = x->devices > x->domain;
    x->net_rate = net->rate_per_direction.known ? net->rate_per_direction.value : 0;
    if (several && !(x->net_rate > 0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cluster '%s' has several scale-up domains and no scale_out network rate",
                       cluster->name);
    if (net->oversubscription > 1)
        x->net_rate /= net->oversubscription;
    /* port, leaf, core, leaf, port */
    x->net_latency = net->latency.known ? net->latency.value : 0;
    x->ll_rate = ll_table_rate(cluster->accel->arch);
    const char *from = cluster->accel->fit_borrowed_from;
    bool own = false;
    for (int i = 0; i < cluster->accel->fit_count; i++) {
        const rg_fit_constant *constant = &cluster->accel->fit[i];
        own |= strcmp(constant->group, "collective") == 0 && !constant->borrowed;
    }
    x->note = own ? "collectives: constants fitted on this device"
                  : rg_arena_printf(arena, err,
                                    "collectives: constants of architecture '%s'%s%s, not fitted "
                                    "on this device",
                                    cluster->accel->arch ? cluster->accel->arch : "unknown",
                                    from ? " by way of " : "", from ? from : "");
    if (x->note == NULL)
        return RG_ERR_LIMIT;
    *out = x;
    return RG_OK;
}

void rg_coll_retune(rg_coll_context *context, const rg_coll_constants *constants)
{
    context->c = *constants;
}

const char *rg_coll_note(const rg_coll_context *context)
{
    return context->note;
}

/* net/coll_library.c: what NCCL and serving engines reach, from few constants.
 *
 * n steps that follow one another, b bytes that a rank sends, S its buffer, p ranks, R the slowest
 * rate of the ring (a share of the port, an uplink, or the ports of a domain together), B the port.
 *
 *   LL       base + n hop + wide(S) + (b + S/p) / min(table rate, R)
 *   LL128    base + base128 + n hop128 + b / R128
 *   Simple   join(base + fences + n hop, b / R + copy S/(p B))
 *   NVLS     base + base_N + S (1 + 1/p) / (r_N B): read once through the switch, written once
 *   direct   join(base + peers, (p-1)/p S / (r B)) + fill(S), in LL up to 16 KiB for a peer
 *   one-shot base_1 + p rank_1 + (p-1) S / (r_1 B), in a captured graph; two-shot likewise
 *
 * join(L, W) = (L^q + W^q)^(1/q). LL is paid by instructions, so a rank's own part counts like what
 * it sends. Between protocols NCCL picks by a tuning model of its own (src/graph/tuning.cc), and so
 * does this: real times jump where that model changes its mind, not where it should.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "net/coll_inner.h"

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
double rg_coll_ll_table_rate(const char *arch)
{
    if (arch != NULL && strcmp(arch, "ampere") == 0)
        return 87.7e9;
    if (arch != NULL && strcmp(arch, "volta") == 0)
        return 39e9;
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
    /* A channel takes 8 bytes a thread from every rank before a second one joins
     * (threadThresholds of the LL ring, src/graph/tuning.cc): it is a rank's part that counts. */
    const double ratio = c->wide_bytes / fmax(local_part, 1);
    const double wide_hop = c->wide_hop_us + (op == RG_COLL_ALL_GATHER ? c->wide_store_us : 0);
    const double wide = 1e-6 * (c->wide_base_us + wide_hop * steps) / (1 + ratio * ratio);
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
    return (timing){latency + transfer, latency,
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
static rg_coll_protocol tuner_pick(const rg_coll_context *x, double steps, double bytes,
                                   double *cost)
{
    const double bus = 0.8 * x->up_rate;
    const double ll = 6.6e-6 + 0.6e-6 * steps + bytes / fmin(x->ll_rate, 0.5 * bus);
    const double ll128 = 14.0e-6 + 1.9e-6 * steps + bytes / (0.92 * bus);
    const double simple = 8.4e-6 + 3.4e-6 * steps + bytes / bus;
    *cost = fmin(ll, fmin(ll128, simple));
    if (ll <= ll128 && ll <= simple)
        return RG_PROTO_LL;
    return ll128 < simple ? RG_PROTO_LL128 : RG_PROTO_SIMPLE;
}

/** Whether that model prefers in-switch reduction to a ring: 25 us, and 0.85 of the bus rate on
 * Hopper, 0.74 on Blackwell (nvlsEfficiency in the same file). */
bool rg_coll_tuner_in_switch(const rg_coll_context *x, const rg_coll_query *q,
                             const rg_coll_group *g)
{
    double steps, bytes, ring;
    rg_coll_ring_work(q->op, (double)g->ranks, q->bytes.v, &steps, &bytes);
    tuner_pick(x, steps, bytes, &ring);
    const char *arch = x->cluster->accel->arch;
    const bool blackwell = arch != NULL && strncmp(arch, "blackwell", 9) == 0;
    const double rate = 0.8 * x->up_rate * (blackwell ? 0.74 : 0.85);
    return 25e-6 + q->bytes.v / rate < ring;
}

/** Ring and its relatives under one protocol, or the one that the library picks. */
static timing ring_time(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                        rg_coll_protocol *protocol)
{
    double steps, bytes, cost;
    rg_coll_ring_work(q->op, (double)g->ranks, q->bytes.v, &steps, &bytes);
    const double rounds = g->ranks > 1 ? steps / (double)(g->ranks - 1) : 0;
    const double between = rounds * (double)(g->domains - 1);
    const bool pcie = x->cluster->scale_up.kind == RG_FABRIC_PCIE_TREE;
    if (*protocol == RG_PROTO_AUTO && g->domains == 1 && !pcie)
        *protocol = tuner_pick(x, steps, bytes, &cost);
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
    const bool both = q->op == RG_COLL_ALL_REDUCE;
    const double ways = both ? 2 : 1, S = q->bytes.v, chain = (double)(g->local - 1);
    const double levels = rg_coll_tree_levels(g->domains, both);
    const double ll_latency =
        1e-6 * (c->base_us + ways * (levels * c->net_tree_us + chain * c->hop_us));
    const double latency = 1e-6 * (c->base_us + c->simple_base_us +
                                   ways * (levels * c->net_simple_us + chain * c->simple_hop_us));
    const double load = rg_coll_tree_load(g->domains, both);
    const double beyond = g->domains > 1 ? load * S / ((double)g->local * g->net_rate) : 0;
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
    /* Nothing leaves the switch before the first chunk is in. Chunks grow with the message, up to
     * that of 32 MiB. */
    const double whole = 32.0 * (1 << 20);
    const double fill = c->nvls_fill_us * sqrt(fmin(S / whole, 1)) * 450e9 / x->up_rate;
    double latency = 1e-6 * (c->base_us + c->nvls_base_us + fill);
    double transfer = S * (1 + 1 / l) / (c->nvls_ratio * x->up_rate);
    rg_coll_limit limit = RG_LIMIT_SWITCH;
    if (g->domains > 1) {
        const bool sharp = x->cluster->scale_out.in_network_reduction;
        const double levels = sharp ? 1 : rg_coll_tree_levels(g->domains, true);
        latency += 2e-6 * levels * c->net_simple_us;
        /* SHARP: each rank sends its part once and gets the sum once; trees pass it on */
        const double load = sharp ? 1 : rg_coll_tree_load(g->domains, true);
        const double network = load * S / l / g->net_rate;
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
    const bool alone =
        q->op == RG_COLL_SEND_RECV; /* each rank to its next one, from the one before */
    const double share = alone ? 1 : 1 / n;
    const double peers = alone ? 1 : (double)(g->local - 1);
    const double remote = g->domains == 1 ? 0 : alone ? 1 : n - (double)g->local;
    const double within = g->local == 1 ? 0
                          : alone       ? rg_coll_neighbour_cost(x, g, c->direct_ratio, &limit) * S
                                  : rg_coll_direct_cost(x, g, c->direct_ratio, share, &limit) * S;
    const double beyond = remote > 0 ? remote * share * S / g->net_rate : 0;
    limit = beyond > within ? RG_LIMIT_NETWORK : limit;
    const double own = alone || g->local == 1 ? 0 : c->direct_copy * S / n / x->up_rate;
    const double wire = fmax(within, beyond) + own;
    /* Peers in other domains are served by few network steps at once, 8 of them on the way. */
    double latency =
        1e-6 * (c->base_us + c->direct_base_us + (g->local > 1 ? peers : 0) * c->direct_peer_us +
                (remote > 0 ? c->net_ll_us * (1 + remote / 8) : 0));
    const double ll_wire =
        pcie ? wire / c->ll_wire_ratio / 0.7 : share * S / (c->direct_ll_gbs * 1e9);
    const double ll = latency + fmax(ll_wire, wire);
    const double simple_latency = latency + 1e-6 * c->direct_simple_us;
    /* The last chunks wait in their buffers until they are copied: the message, or all buffers. */
    const double buffers = 32.0 * (1 << 20);
    const double fill = 1e-6 * c->direct_fill_us * fmin(S / buffers, 1);
    const double simple = power_sum(simple_latency, wire, c->direct_power) + fill;
    /* NCCL_P2P_LL_THRESHOLD, src/enqueue.cc; parts below 64 KiB have one channel over NVLink */
    const bool small = pcie || g->domains > 1 ? ll <= simple : share * S <= 16384;
    const bool pick_ll = *protocol == RG_PROTO_LL || (*protocol != RG_PROTO_SIMPLE && small);
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
    const double transfer =
        (one ? 1 : 2) * rg_coll_direct_cost(x, g, ratio, one ? 1 : 1 / n, &limit) * S;
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

rg_status rg_coll_time_by(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                          rg_coll_algorithm algorithm, rg_coll_result *out, rg_err *err)
{
    rg_coll_result shape = {
        0}; /* steps and bytes are those of the algorithm, whatever the library */
    RG_TRY(rg_coll_ideal_time(x, q, g, algorithm, &shape, err));
    *out = shape;
    if (x->ideal)
        return RG_OK;
    rg_coll_protocol protocol = q->protocol;
    timing t = {0};
    switch (algorithm) {
    case RG_ALG_RING:
        t = ring_time(x, q, g, &protocol);
        if (q->integer && (q->op == RG_COLL_ALL_REDUCE || q->op == RG_COLL_REDUCE_SCATTER))
            t.time *= x->c.byte_reduce;
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

/* noc/closed.c: channel loads, zero load, bounds. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/closed.h"

#include <math.h>

#include "noc/route.h"
#include "noc/sweep.h"

enum { MAX_NODES = 4096, MAX_PATH = 4096 };

typedef struct walker {
    const rg_noc_graph *graph;
    const rg_noc_router *router;
    rg_noc_ways ways;
    double *load;                   /* [outputs] */
    double *weight;                 /* [routers] of the packets that stand there */
    int *front, *next;              /* [routers] routers with weight */
    double *share, *eject, *inject; /* [nodes] */
    double *depart;                 /* [(buffer + 1) * (MAX_PATH + 2)] of the flits of one packet */
    int path[MAX_PATH];             /* outputs of one way from source to destination */
} walker;

double rg_noc_channel_efficiency(int vcs)
{
    return vcs / (vcs + sqrt(0.5));
}

static rg_status new_walker(rg_arena *arena, const rg_noc_graph *graph, const rg_noc_router *router,
                            walker **out, rg_err *err)
{
    walker *w = RG_NEW(arena, walker, 1, err);
    if (w == NULL)
        return RG_ERR_LIMIT;
    w->graph = graph;
    w->router = router;
    w->load = RG_NEW(arena, double, graph->outputs, err);
    w->weight = RG_NEW(arena, double, graph->routers, err);
    w->front = RG_NEW(arena, int, graph->routers, err);
    w->next = RG_NEW(arena, int, graph->routers, err);
    w->depart = RG_NEW(arena, double, ((size_t)router->buffer + 1) * (MAX_PATH + 2), err);
    w->share = RG_NEW(arena, double, graph->nodes, err);
    w->eject = RG_NEW(arena, double, graph->nodes, err);
    w->inject = RG_NEW(arena, double, graph->nodes, err);
    if (w->share == NULL || w->eject == NULL || w->inject == NULL)
        return RG_ERR_LIMIT;
    if (w->load == NULL || w->weight == NULL || w->front == NULL || w->next == NULL ||
        w->depart == NULL)
        return RG_ERR_LIMIT;
    *out = w;
    return rg_noc_ways_new(arena, graph, router->routing, &w->ways, err);
}

/* Adds flits from a router to a node on every channel that they may take, the exit included. */
static rg_status spread(walker *w, int from, int node, double flits, rg_err *err)
{
    rg_noc_way list[RG_NOC_MAX_WAYS];
    int count = 1;
    w->front[0] = from;
    w->weight[from] = flits;
    for (int hop = 0; count > 0; hop++) {
        int found = 0;
        if (hop > w->graph->routers)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "the route to node '%d' goes in circles",
                           node);
        for (int i = 0; i < count; i++) {
            const int r = w->front[i];
            const double here = w->weight[r];
            w->weight[r] = 0.0;
            const int ways = rg_noc_ways_at(&w->ways, r, node, list);
            for (int k = 0; k < ways; k++) {
                const int to = w->graph->out_channel[list[k].output].to_router;
                w->load[list[k].output] += here * list[k].share;
                if (to < 0)
                    continue;
                if (w->weight[to] == 0.0)
                    w->next[found++] = to;
                w->weight[to] += here * list[k].share;
            }
        }
        int *swap = w->front;
        w->front = w->next;
        w->next = swap;
        count = found;
    }
    return RG_OK;
}

/* Outputs of the first way from source to destination into path; their number. */
static int follow(walker *w, int source, int node)
{
    rg_noc_way list[RG_NOC_MAX_WAYS];
    int r = w->graph->in_router[w->graph->node_input[source]], count = 0;
    while (r >= 0 && count < MAX_PATH) {
        rg_noc_ways_at(&w->ways, r, node, list);
        w->path[count++] = list[0].output;
        r = w->graph->out_channel[list[0].output].to_router;
    }
    return count;
}

/* Latency of a packet alone on w->path (hops outputs): every flit of every stage leaves when it has
 * come, the flit before it has gone, and the slot of the flit `buffer` before it is free again. */
static double lone_packet(walker *w, int source, int hops, int flits)
{
    const rg_noc_router *r = w->router;
    const rg_noc_channel *inject = &w->graph->in_channel[w->graph->node_input[source]];
    const int rows = r->buffer + 1;
    const int longer =
        r->vc_alloc_delay > r->switch_alloc_delay ? r->vc_alloc_delay : r->switch_alloc_delay;
    const int alloc = r->speculative ? longer : r->vc_alloc_delay + r->switch_alloc_delay;
    double last = 0.0;
    for (int i = 0; i < flits; i++) {
        double *now = &w->depart[(size_t)(i % rows) * (MAX_PATH + 2)];
        const double *before = &w->depart[(size_t)((i + rows - 1) % rows) * (MAX_PATH + 2)];
        const double *full = &w->depart[(size_t)((i + 1) % rows) * (MAX_PATH + 2)]; /* i - buffer */
        for (int stage = 0; stage <= hops; stage++) {
            const rg_noc_channel *out =
                stage == 0 ? inject : &w->graph->out_channel[w->path[stage - 1]];
            const rg_noc_channel *in =
                stage <= 1 ? inject : &w->graph->out_channel[w->path[stage - 2]];
            double when = 0.0;
            if (stage > 0)
                when = now[stage - 1] + in->latency + 1 + (stage > 1 ? r->traversal_delay : 0) +
                       (i == 0 ? r->routing_delay + alloc - 1 : r->switch_alloc_delay - 1);
            if (i > 0)
                when = fmax(when, before[stage] + out->period);
            if (i >= r->buffer) {
                /* When the next stage, or the sink, has let the slot go. */
                const double freed = stage < hops
                                         ? full[stage + 1]
                                         : full[stage] + r->traversal_delay + out->latency + 1;
                when =
                    fmax(when, freed + out->credit_latency + 1 + (stage > 0 ? r->credit_delay : 0));
            }
            now[stage] = when;
        }
        last =
            now[hops] + r->traversal_delay + w->graph->out_channel[w->path[hops - 1]].latency + 1;
    }
    return last;
}

static double mean_flits(const rg_noc_class *cl)
{
    return cl->request_reply
               ? cl->write_share * cl->write_request + (1.0 - cl->write_share) * cl->read_request
               : cl->flits;
}

static double mean_reply(const rg_noc_class *cl)
{
    return cl->write_share * cl->write_reply + (1.0 - cl->write_share) * cl->read_reply;
}

typedef struct sums {
    double packets, latency, hops, flits;
    double least;
} sums;

static void add_packet(walker *w, int from, int to, int flits, double weight, sums *s)
{
    if (weight == 0.0 || flits == 0)
        return;
    const int hops = follow(w, from, to);
    const double latency = lone_packet(w, from, hops, flits);
    s->packets += weight;
    s->latency += weight * latency;
    s->hops += weight * hops;
    s->least = latency < s->least ? latency : s->least;
}

/* Requests from source to node, replies back, or plain packets. A reply is born when the request
 * has arrived and enters a cycle later. */
static void add_pair_latency(walker *w, const rg_noc_class *cl, int source, int node, double weight,
                             sums *s)
{
    if (!cl->request_reply) {
        add_packet(w, source, node, cl->flits, weight, s);
        return;
    }
    const double writes = weight * cl->write_share, reads = weight - writes;
    add_packet(w, source, node, cl->read_request, reads, s);
    add_packet(w, source, node, cl->write_request, writes, s);
    sums replies = {.least = INFINITY};
    add_packet(w, node, source, cl->read_reply, reads, &replies);
    add_packet(w, node, source, cl->write_reply, writes, &replies);
    s->packets += replies.packets;
    s->latency += replies.latency + replies.packets;
    s->hops += replies.hops;
    s->least = fmin(s->least, replies.least + 1.0);
}

static int home_of(const rg_noc_graph *g, int node)
{
    return g->in_router[g->node_input[node]];
}

/* May a packet go by way of node m? Valiant: any; ROMM: those between source and node. */
static bool may_go_by(const walker *w, int source, int node, int m)
{
    const rg_noc_graph *g = w->graph;
    for (int d = 0; w->router->routing == RG_NOC_ROUTE_ROMM && d < g->dims; d++) {
        const int a = rg_noc_digit(g, source, d), b = rg_noc_digit(g, node, d);
        const int at = rg_noc_digit(g, m, d);
        if (at < (a < b ? a : b) || at > (a < b ? b : a))
            return false;
    }
    return true;
}

/* One leg to any of the nodes on the way alike, and from there to where the traffic goes. */
static rg_status spread_by_way(walker *w, int source, int node, double flits, rg_err *err)
{
    int count = 0;
    for (int m = 0; m < w->graph->nodes; m++)
        count += may_go_by(w, source, node, m);
    for (int m = 0; m < w->graph->nodes; m++) {
        if (!may_go_by(w, source, node, m))
            continue;
        /* The exit at the middle is not taken; spread counts it, so it is taken back. */
        RG_TRY(spread(w, home_of(w->graph, source), m, flits / count, err));
        w->load[w->graph->node_output[m]] -= flits / count;
        RG_TRY(spread(w, home_of(w->graph, m), node, flits / count, err));
    }
    return RG_OK;
}

static rg_status add_flow(walker *w, int source, int node, double flits, rg_err *err)
{
    const int home = home_of(w->graph, source);
    if (flits == 0.0)
        return RG_OK;
    switch (w->router->routing) {
    case RG_NOC_ROUTE_VALIANT:
    case RG_NOC_ROUTE_ROMM:
        return spread_by_way(w, source, node, flits, err);
    case RG_NOC_ROUTE_XY_YX:
    case RG_NOC_ROUTE_ADAPTIVE_XY_YX: /* an idle network leaves the choice to the coin */
        RG_TRY(spread(w, home, node, 0.5 * flits, err));
        w->ways.descending = true;
        const rg_status status = spread(w, home, node, 0.5 * flits, err);
        w->ways.descending = false;
        return status;
    default:
        return spread(w, home, node, flits, err);
    }
}

/* Valiant's mean over the nodes on the way: hops and links of both legs, the middle router once. */
static void add_valiant_latency(walker *w, const rg_noc_class *cl, int source, int node,
                                double weight, sums *s)
{
    const rg_noc_router *r = w->router;
    const int nodes = w->graph->nodes;
    const rg_noc_channel *inject = &w->graph->in_channel[w->graph->node_input[source]];
    const int longer =
        r->vc_alloc_delay > r->switch_alloc_delay ? r->vc_alloc_delay : r->switch_alloc_delay;
    const int alloc = r->speculative ? longer : r->vc_alloc_delay + r->switch_alloc_delay;
    for (int m = 0; m < nodes; m++) {
        double links = 1.0 + inject->latency;
        int hops = follow(w, source, m) - 1;
        for (int i = 0; i < hops; i++)
            links += w->graph->out_channel[w->path[i]].latency;
        const int second = follow(w, m, node);
        for (int i = 0; i < second; i++)
            links += w->graph->out_channel[w->path[i]].latency;
        hops += second;
        const double latency =
            links + hops * (r->routing_delay + alloc + r->traversal_delay) + (cl->flits - 1);
        s->packets += weight / nodes;
        s->latency += weight / nodes * latency;
        s->hops += weight / nodes * hops;
        s->least = fmin(s->least, latency);
    }
}

static rg_status walk_traffic(walker *w, const rg_noc_class *cl, sums *s, rg_err *err)
{
    const int nodes = w->graph->nodes;
    const bool valiant = w->router->routing == RG_NOC_ROUTE_VALIANT;
    double *share = w->share, *eject = w->eject, *inject = w->inject;
    /* One flit offered by a node of factor 1; with replies, both directions together. */
    const double packets = rg_noc_class_share(cl) / rg_noc_class_flits(cl);
    bool known = false;
    for (int a = 0; a < nodes; a++) {
        const double factor = cl->node_factor != NULL ? cl->node_factor[a] : 1.0;
        if (factor == 0.0)
            continue;
        if (!known)
            rg_noc_pattern_shares(cl->pattern, a, share);
        known = rg_noc_pattern_same_for_all(cl->pattern);
        for (int b = 0; b < nodes; b++) {
            const double weight = factor * packets * share[b];
            if (weight == 0.0)
                continue;
            RG_TRY(add_flow(w, a, b, weight * mean_flits(cl), err));
            eject[b] += weight * mean_flits(cl);
            inject[a] += weight * mean_flits(cl);
            s->flits += weight * rg_noc_class_flits(cl);
            if (cl->request_reply) {
                RG_TRY(add_flow(w, b, a, weight * mean_reply(cl), err));
                eject[a] += weight * mean_reply(cl);
                inject[b] += weight * mean_reply(cl);
            }
            if (valiant)
                add_valiant_latency(w, cl, a, b, weight, s);
            else
                add_pair_latency(w, cl, a, b, weight, s);
        }
    }
    return RG_OK;
}

/* Flits across a cut of the nodes per direction, over its width: the load at which it is full. */
static double cut_limit(const rg_noc_graph *g, const uint8_t *side, const double *crossing)
{
    double width[2] = {0.0, 0.0}, limit = INFINITY;
    for (int o = 0; o < g->outputs; o++) {
        const int to = g->out_channel[o].to_router, from = g->out_router[o];
        if (to >= 0 && side[from] != side[to])
            width[side[from]] += 1.0 / g->out_channel[o].period;
    }
    for (int d = 0; d < 2; d++)
        if (crossing[d] > 0.0)
            limit = fmin(limit, width[d] / crossing[d]);
    return limit;
}

/* Shares that go to each side of a cut. */
static void shares_by_side(const rg_noc_graph *g, const uint8_t *side, const double *share,
                           double *to_side)
{
    to_side[0] = to_side[1] = 0.0;
    for (int b = 0; b < g->nodes; b++)
        to_side[side[g->out_router[g->node_output[b]]]] += share[b];
}

/* Adds the traffic from side 0 to 1 and back, flits per cycle at load 1. */
static void crossing_traffic(const rg_noc_graph *g, const rg_noc_class *cl, const uint8_t *side,
                             double *share, double *crossing)
{
    const double both = rg_noc_class_flits(cl) / rg_noc_class_share(cl);
    const bool same = rg_noc_pattern_same_for_all(cl->pattern);
    double to_side[2];
    for (int a = 0; a < g->nodes; a++) {
        const double factor = cl->node_factor != NULL ? cl->node_factor[a] : 1.0;
        const int from = side[home_of(g, a)], to = 1 - from;
        if (!same || a == 0) {
            rg_noc_pattern_shares(cl->pattern, a, share);
            shares_by_side(g, side, share, to_side);
        }
        crossing[from] += factor * to_side[to] * mean_flits(cl) / both;
        if (cl->request_reply)
            crossing[to] += factor * to_side[to] * mean_reply(cl) / both;
    }
}

typedef struct cutter {
    const rg_noc_graph *graph;
    const rg_noc_class *classes;
    int count;
    uint8_t *side; /* [routers] */
    double *share;
    double limit; /* the tightest so far */
} cutter;

static void try_cut(cutter *c)
{
    double crossing[2] = {0.0, 0.0};
    for (int k = 0; k < c->count; k++)
        crossing_traffic(c->graph, &c->classes[k], c->side, c->share, crossing);
    c->limit = fmin(c->limit, cut_limit(c->graph, c->side, crossing));
}

/* Cuts to try: a cube through the middle of each dimension, anything else through the middle of
 * the router numbers, and each router against the rest. Any cut is a bound, whatever the routing.
 */
static rg_status cut_bound(rg_arena *arena, const walker *w, const rg_noc_class *classes, int count,
                           double *out, rg_err *err)
{
    const rg_noc_graph *g = w->graph;
    cutter c = {.graph = g,
                .classes = classes,
                .count = count,
                .side = RG_NEW(arena, uint8_t, g->routers, err),
                .share = w->share,
                .limit = INFINITY};
    if (c.side == NULL)
        return RG_ERR_LIMIT;
    const bool cube = g->shape == RG_NOC_MESH || g->shape == RG_NOC_TORUS;
    int step = 1;
    for (int d = 0; d < (cube ? g->dims : 1); d++) {
        const int k = cube ? g->extent[d] : g->routers;
        for (int r = 0; r < g->routers; r++)
            c.side[r] = r / step % k >= (k + 1) / 2;
        try_cut(&c);
        step *= k;
    }
    for (int alone = 0; alone < g->routers && g->routers <= 256; alone++) {
        for (int r = 0; r < g->routers; r++)
            c.side[r] = r == alone;
        try_cut(&c);
    }
    *out = c.limit;
    return RG_OK;
}

static void find_bound(const walker *w, rg_noc_closed *out)
{
    const rg_noc_graph *g = w->graph;
    double highest = 0.0;
    out->hottest = -1;
    for (int o = 0; o < g->outputs; o++) {
        const double load = out->link_load[o] * g->out_channel[o].period;
        if (load > highest * (1.0 + 1e-12)) {
            highest = load;
            out->hottest = o;
        }
    }
    for (int n = 0; n < g->nodes; n++) {
        const double in = w->inject[n] * g->in_channel[g->node_input[n]].period;
        out->inject_load = fmax(out->inject_load, in);
        out->eject_load = fmax(out->eject_load, w->eject[n]);
    }
    if (out->inject_load > highest * (1.0 + 1e-12)) {
        highest = out->inject_load;
        out->hottest = -1;
    }
    out->bound = highest > 0.0 ? 1.0 / highest : INFINITY;
}

/* A VC takes the next head only when the tail before it has gone: a packet of n flits holds it for
 * n + 1 cycles, one more with a routing stage, which caps short packets on few VCs. */
static double vc_limit(const rg_noc_router *r, double flits, int vcs)
{
    const int turn =
        r->routing_delay + (r->speculative ? 0 : r->vc_alloc_delay) + r->switch_alloc_delay - 1;
    return fmin(1.0, vcs * flits / (flits + turn));
}

/* VCs that the classes use between them, at most the router's. */
static int used_vcs(const rg_noc_router *router, const rg_noc_class *classes, int count)
{
    int vcs = 0;
    for (int c = 0; c < count; c++)
        vcs += classes[c].vc_count; /* requests and replies load opposite channels: not summed */
    return vcs < router->vcs ? vcs : router->vcs;
}

rg_status rg_noc_closed_form(rg_arena *arena, const rg_noc_graph *graph,
                             const rg_noc_router *router, const rg_noc_class *classes, int count,
                             rg_noc_closed *out, rg_err *err)
{
    walker *w;
    sums s = {.least = INFINITY};
    *out = (rg_noc_closed){0};
    if (graph->nodes > MAX_NODES)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "'%d' nodes; the closed form goes up to %d",
                       graph->nodes, MAX_NODES);
    RG_TRY(new_walker(arena, graph, router, &w, err));
    for (int c = 0; c < count; c++)
        RG_TRY(walk_traffic(w, &classes[c], &s, err));
    if (s.packets == 0.0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "no node sends anything");
    out->link_load = w->load;
    out->zero_load_latency = s.latency / s.packets;
    out->zero_load_least = s.least;
    out->hops = s.hops / s.packets;
    out->packet_flits = s.flits / s.packets;
    find_bound(w, out);
    RG_TRY(cut_bound(arena, w, classes, count, &out->cut_bound, err));
    const int vcs = used_vcs(router, classes, count);
    out->efficiency =
        fmin(rg_noc_channel_efficiency(vcs), vc_limit(router, out->packet_flits, vcs));
    out->saturation = out->bound * out->efficiency;
    return RG_OK;
}

double rg_noc_closed_latency(const rg_noc_closed *closed, const rg_noc_graph *graph, double load)
{
    double wait = 0.0, through = 0.0;
    if (!(load < closed->saturation))
        return NAN;
    for (int o = 0; o < graph->outputs; o++) {
        const int period = graph->out_channel[o].period;
        const double use = closed->link_load[o] * load * period / closed->efficiency;
        wait += closed->link_load[o] * closed->packet_flits * period * use / (2.0 * (1.0 - use));
        through += graph->out_target[o] < 0 ? closed->link_load[o] : 0.0;
    }
    return closed->zero_load_latency + wait / through;
}

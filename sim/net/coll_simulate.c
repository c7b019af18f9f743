/* net/coll_simulate.c: the schedules of collectives as flows over the cluster's links.
 *
 * A ring within one domain is simulated step by step, each transfer waiting for what it passes on
 * and for its own last one. Other schedules go in rounds: the transfers of a round begin together,
 * the next round begins when all have arrived; equal rounds are simulated once.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "net/coll_schedule.h"

enum { MOST_CHAINED_FLOWS = 200000, MOST_ROUND_FLOWS = 4000000 };

rg_status rg_schedule_room(schedule *s, int64_t flows)
{
    if (flows > MOST_ROUND_FLOWS)
        return rg_fail(s->err, RG_ERR_LIMIT, RG_NOWHERE,
                       "%lld transfers at once are more than the %d that are simulated; the closed "
                       "form takes any number",
                       (long long)flows, MOST_ROUND_FLOWS);
    s->count = 0;
    if (flows <= s->room)
        return RG_OK;
    s->flows = RG_NEW(s->arena, rg_flow, flows, s->err);
    s->room = (int32_t)flows;
    return s->flows == NULL ? RG_ERR_LIMIT : RG_OK;
}

int32_t rg_schedule_device(const schedule *s, int64_t rank)
{
    const rg_coll_group *g = &s->group;
    const int64_t domain = rank / g->local, place = rank % g->local;
    if (g->domains == 1)
        return (int32_t)(g->first + rank * g->stride);
    if (g->local == 1)
        return (int32_t)(g->first +
                         rank * (g->stride > s->context->domain ? g->stride : s->context->domain));
    return (int32_t)(g->first + domain * s->context->domain + place * g->stride);
}

void rg_schedule_send(schedule *s, int64_t from, int64_t to, double bytes)
{
    s->flows[s->count++] = (rg_flow){.source = rg_schedule_device(s, from),
                                     .target = rg_schedule_device(s, to),
                                     .bytes = bytes,
                                     .after = {-1, -1}};
}

/** Simulate what is laid, `times` times over, one after the other. */
rg_status rg_schedule_round(schedule *s, double times)
{
    rg_flow_result r;
    RG_TRY(rg_flow_run(s->arena, s->net, s->flows, s->count, &r, s->err));
    for (int32_t i = 0; i < s->count; i++)
        if (s->flows[i].source < rg_net_devices(s->net)) /* not what a switch hands out */
            s->sent[s->flows[i].source] += s->flows[i].bytes * times;
    if (r.end_s * times > s->total.end_s || s->total.busiest_link < 0) {
        s->total.busiest_link = r.busiest_link; /* of the longest phase */
        s->total.busiest_ratio = r.busiest_ratio;
        s->total.end_s = r.end_s * times;
    }
    s->total.bytes_sent += r.bytes_sent * times;
    s->total.link_bytes += r.link_bytes * times;
    s->total.events += r.events;
    s->time += r.end_s * times;
    s->steps += (int64_t)times;
    return RG_OK;
}

/** Ring in one domain, every transfer chained to the two that it waits for. */
static rg_status chained_ring(schedule *s, int64_t n, int64_t steps, double chunk)
{
    RG_TRY(rg_schedule_room(s, n * steps));
    for (int64_t step = 0; step < steps; step++)
        for (int64_t r = 0; r < n; r++) {
            rg_schedule_send(s, r, (r + 1) % n, chunk);
            rg_flow *flow = &s->flows[s->count - 1];
            if (step > 0) {
                flow->after[0] = (int32_t)((step - 1) * n + r);
                flow->after[1] = (int32_t)((step - 1) * n + (r + n - 1) % n);
            }
        }
    RG_TRY(rg_schedule_round(s, 1));
    s->steps += steps - 1;
    return RG_OK;
}

/** One ring over all domains for each rail: within a domain it comes in at device b and leaves at
 * b + 1, from where the next domain's part begins. */
static rg_status rail_rings(schedule *s, int64_t steps, double chunk)
{
    const int64_t l = s->group.local, m = s->group.domains;
    RG_TRY(rg_schedule_room(s, l * l * m));
    for (int64_t rail = 0; rail < l; rail++)
        for (int64_t d = 0; d < m; d++) {
            const int64_t enter = (rail + d) % l;
            for (int64_t k = 0; k < l; k++) {
                const int64_t here = d * l + (enter + l - k) % l;
                const int64_t next_domain = (d + 1) % m;
                const int64_t next = k + 1 < l ? d * l + (enter + l - k - 1) % l
                                               : next_domain * l + (rail + next_domain) % l;
                rg_schedule_send(s, here, next, chunk / (double)l);
            }
        }
    return rg_schedule_round(s, (double)steps);
}

/** On a full mesh n - 1 rings run at once, each cable being part of one (a complete digraph splits
 * into Hamiltonian cycles but for 4 and 6 places: Tillson 1980). Rotations by 1 .. n - 1 stand for
 * them: they load the cables alike. */
static rg_status mesh_rings(schedule *s, int64_t steps, double chunk)
{
    const int64_t n = s->group.ranks;
    RG_TRY(rg_schedule_room(s, n * (n - 1)));
    for (int64_t k = 1; k < n; k++)
        for (int64_t r = 0; r < n; r++)
            rg_schedule_send(s, r, (r + k) % n, chunk / (double)(n - 1));
    return rg_schedule_round(s, (double)steps);
}

/** In a torus two rings run at once, one each way round, over the two cables of a dimension. */
static rg_status both_ways_round(schedule *s, int64_t steps, double chunk)
{
    const int64_t n = s->group.ranks;
    RG_TRY(rg_schedule_room(s, 2 * n));
    for (int64_t r = 0; r < n; r++) {
        rg_schedule_send(s, r, (r + 1) % n, chunk / 2);
        rg_schedule_send(s, r, (r + n - 1) % n, chunk / 2);
    }
    return rg_schedule_round(s, (double)steps);
}

static rg_status ring(schedule *s, int64_t steps, double chunk)
{
    const int64_t n = s->group.ranks;
    if (s->group.domains == 1 && s->context->cluster->scale_up.kind == RG_FABRIC_MESH)
        return mesh_rings(s, steps, chunk);
    if (s->group.domains == 1 && s->context->cluster->scale_up.kind == RG_FABRIC_TORUS && n > 2)
        return both_ways_round(s, steps, chunk);
    if (s->group.domains > 1 && s->group.local > 1)
        return rail_rings(s, steps, chunk);
    if (n * steps <= MOST_CHAINED_FLOWS && s->group.domains == 1)
        return chained_ring(s, n, steps, chunk);
    RG_TRY(rg_schedule_room(s, n));
    for (int64_t r = 0; r < n; r++)
        rg_schedule_send(s, r, (r + 1) % n, chunk);
    return rg_schedule_round(s, (double)steps);
}

static rg_status halving_doubling(schedule *s, bool scatter, bool gather, double S)
{
    const int64_t n = s->group.ranks;
    RG_TRY(rg_schedule_room(s, n));
    double part = S / 2;
    for (int64_t k = 1; k < n; k *= 2, part /= 2) {
        s->count = 0;
        for (int64_t r = 0; r < n; r++)
            rg_schedule_send(s, r, r ^ k, part);
        /* the gathering half is the scattering half backwards: the same transfers again */
        RG_TRY(rg_schedule_round(s, (scatter ? 1 : 0) + (gather ? 1 : 0)));
    }
    return RG_OK;
}

static rg_status all_pairs(schedule *s, double bytes, double rounds, double imbalance)
{
    const int64_t n = s->group.ranks;
    RG_TRY(rg_schedule_room(s, n * (n - 1)));
    for (int64_t shift = 1; shift < n; shift++)
        for (int64_t r = 0; r < n; r++)
            /* skew: rank 0 takes in more than its share, the others less */
            rg_schedule_send(s, r, (r + shift) % n,
                             bytes * ((r + shift) % n == 0
                                          ? imbalance
                                          : ((double)n - imbalance) / (double)(n - 1)));
    return rg_schedule_round(s, rounds);
}

static rg_status hierarchical(schedule *s, bool scatter, bool gather, double S)
{
    const int64_t l = s->group.local, m = s->group.domains;
    const double ways = (scatter ? 1 : 0) + (gather ? 1 : 0);
    RG_TRY(rg_schedule_room(s, l * m));
    for (int64_t d = 0; d < m; d++)
        for (int64_t k = 0; k < l; k++)
            rg_schedule_send(s, d * l + k, d * l + (k + 1) % l, S / (double)l);
    RG_TRY(rg_schedule_round(s, ways * (double)(l - 1)));
    s->count = 0;
    for (int64_t d = 0; d < m; d++)
        for (int64_t k = 0; k < l; k++)
            rg_schedule_send(s, d * l + k, (d + 1) % m * l + k, S / (double)(l * m));
    return rg_schedule_round(s, ways * (double)(m - 1));
}

/** The rings of one part in one phase, both ways round, each transfer chained to its two. */
static void torus_rings(schedule *s, int dimension, double chunk)
{
    const rg_fabric *up = &s->context->cluster->scale_up;
    const int64_t n = s->group.ranks, extent = up->extent[dimension];
    int64_t scale = 1;
    for (int i = 0; i < dimension; i++)
        scale *= up->extent[i];
    const int32_t first = s->count;
    for (int64_t round = 0; round + 1 < extent; round++)
        for (int64_t r = 0; r < n; r++)
            for (int way = 0; way < 2; way++) {
                const int64_t at = r / scale % extent;
                const int64_t plus = r + ((at + 1) % extent - at) * scale;
                const int64_t minus = r + ((at + extent - 1) % extent - at) * scale;
                rg_schedule_send(s, r, way == 0 ? plus : minus, chunk);
                rg_flow *flow = &s->flows[s->count - 1];
                if (round > 0) {
                    const int64_t before = first + (round - 1) * 2 * n;
                    flow->after[0] = (int32_t)(before + 2 * r + way);
                    flow->after[1] = (int32_t)(before + 2 * (way == 0 ? minus : plus) + way);
                }
            }
}

/** Phase by phase; in each, part p works in dimension p + phase, one half in each direction. */
static rg_status torus(schedule *s, bool scatter, bool gather, double S)
{
    const rg_fabric *up = &s->context->cluster->scale_up;
    const int k = up->dimensions;
    const double ways = (scatter ? 1 : 0) + (gather ? 1 : 0);
    for (int phase = 0; phase < k; phase++) {
        int64_t flows = 0, rounds = 0;
        for (int i = 0; i < k; i++) {
            flows += 2 * s->group.ranks * (up->extent[i] - 1);
            rounds = up->extent[i] - 1 > rounds ? up->extent[i] - 1 : rounds;
        }
        RG_TRY(rg_schedule_room(s, flows));
        for (int part = 0; part < k; part++) {
            const int dimension = (part + phase) % k;
            double chunk = S / (2.0 * k) / (double)up->extent[dimension];
            for (int before = 0; before < phase; before++)
                chunk /= (double)up->extent[(part + before) % k];
            torus_rings(s, dimension, chunk);
        }
        RG_TRY(rg_schedule_round(s, ways));
        s->steps += (int64_t)ways * (rounds - 1);
    }
    return RG_OK;
}

static rg_status lay(schedule *s, const rg_coll_query *q, rg_coll_algorithm algorithm)
{
    const bool scatter = q->op == RG_COLL_ALL_REDUCE || q->op == RG_COLL_REDUCE_SCATTER;
    const bool gather = q->op == RG_COLL_ALL_REDUCE || q->op == RG_COLL_ALL_GATHER;
    const double n = (double)q->ranks, S = q->bytes.v;
    const int64_t ways = (scatter ? 1 : 0) + (gather ? 1 : 0);
    switch (algorithm) {
    case RG_ALG_RING:
        if (ways == 0)
            return rg_schedule_chain(s, q->op, S);
        return ring(s, ways * (q->ranks - 1), S / n);
    case RG_ALG_HALVING_DOUBLING:
        return halving_doubling(s, scatter, gather, S);
    case RG_ALG_ONE_SHOT:
        return all_pairs(s, S, 1, 1);
    case RG_ALG_TWO_SHOT:
        return all_pairs(s, S / n, 2, 1);
    case RG_ALG_DIRECT:
        if (q->op == RG_COLL_SEND_RECV) { /* each rank to its next one, as nccl-tests does */
            RG_TRY(rg_schedule_room(s, q->ranks));
            for (int64_t r = 0; r < q->ranks; r++)
                rg_schedule_send(s, r, (r + 1) % q->ranks, S);
            return rg_schedule_round(s, 1);
        }
        return all_pairs(s, S / n, 1, fmax(1, q->imbalance));
    case RG_ALG_HIERARCHICAL:
        return hierarchical(s, scatter, gather, S);
    case RG_ALG_TORUS:
        return torus(s, scatter, gather, S);
    case RG_ALG_TREE:
        return rg_schedule_trees(s, q->op, S);
    case RG_ALG_IN_SWITCH:
        return rg_schedule_in_switch(s, S);
    default:
        break;
    }
    return rg_fail(s->err, RG_ERR_MODEL, RG_NOWHERE, "no flow schedule of %s by %s",
                   rg_coll_op_name(q->op), rg_coll_algorithm_name(algorithm));
}

static rg_coll_limit limit_of(const rg_link *link)
{
    static const rg_coll_limit limits[RG_LINK_CLASS_COUNT] = {
        [RG_LINK_DEVICE] = RG_LIMIT_LINK,    [RG_LINK_DIRECT] = RG_LIMIT_LINK,
        [RG_LINK_SWITCH] = RG_LIMIT_UPLINK,  [RG_LINK_SOCKET] = RG_LIMIT_SOCKET,
        [RG_LINK_NIC] = RG_LIMIT_NETWORK,    [RG_LINK_LEAF] = RG_LIMIT_NETWORK,
        [RG_LINK_GLOBAL] = RG_LIMIT_NETWORK,
    };
    return limits[link->kind];
}

rg_status rg_coll_simulate(rg_arena *arena, const rg_coll_context *context,
                           const rg_coll_query *query, rg_coll_result *out, rg_flow_result *flows,
                           rg_err *err)
{
    rg_coll_query ideal = *query;
    ideal.library = RG_LIB_IDEAL;
    RG_TRY(rg_coll_time(context, &ideal, out, err)); /* checks the query and picks the algorithm */
    if (flows != NULL)
        *flows = (rg_flow_result){.busiest_link = -1};
    if (query->ranks == 1)
        return RG_OK;
    schedule s = {.arena = arena, .context = context, .err = err, .total = {.busiest_link = -1}};
    RG_TRY(rg_coll_group_of(context, &ideal, &s.group, err));
    int64_t devices = (int64_t)rg_schedule_device(&s, query->ranks - 1) + 1;
    rg_net *net;
    RG_TRY(rg_net_build(arena, context->cluster, devices, &net, err));
    s.net = net;
    s.sent = RG_NEW(arena, double, rg_net_devices(net), err);
    if (s.sent == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(lay(&s, &ideal, out->algorithm));
    double most = 0;
    for (int32_t i = 0; i < rg_net_devices(net); i++)
        most = fmax(most, s.sent[i]);
    out->time = RG_S(s.time);
    out->sent = RG_B(most);
    out->steps = s.steps;
    if (s.total.busiest_link >= 0)
        out->limit = limit_of(rg_net_link(net, s.total.busiest_link));
    if (flows != NULL)
        *flows = s.total;
    return rg_coll_finish(context, query, out, err);
}

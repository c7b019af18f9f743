/* net/coll_ideal.c: collectives over links alone, in closed form. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "net/coll_inner.h"

/** Sequential steps of a ring, and bytes that each rank sends for S bytes. */
void rg_coll_ring_work(rg_coll_op op, double n, double S, double *steps, double *bytes)
{
    const double rounds = op == RG_COLL_ALL_REDUCE ? 2 : 1;
    *steps = rounds * (n - 1);
    /* broadcast, reduce: chunks follow each other, the last rank is n - 1 hops away */
    *bytes = op == RG_COLL_BROADCAST || op == RG_COLL_REDUCE ? S : *steps / n * S;
}

static double hops_latency(const rg_coll_context *x, const rg_coll_group *g, double steps)
{
    const double per_round = (double)(g->ranks - 1);
    const double rounds = per_round > 0 ? steps / per_round : 0;
    const double between = rounds * (double)(g->domains - 1);
    return (steps - between) * x->up_latency + between * x->net_latency;
}

double rg_coll_tree_levels(int64_t m, bool both_ways)
{
    if (m < 2)
        return 0;
    return both_ways ? ceil(log2((double)m)) : 1 + ceil(log2((double)(m - 1)));
}

double rg_coll_tree_load(int64_t m, bool both_ways)
{
    return !both_ways ? 1 : (double)(m < 4 ? m : 4) / 2;
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
        /* Two trees over the domains, of half the data each, so that every domain is inside one and
         * a leaf of the other (Sanders, Speck, Traff 2009). Each rail has trees of its own, with
         * its part of the data, and passes it along a chain through the domain, which begins at
         * another rank for each rail. One way, the source's own domain passes the whole along. */
        const double chain = (double)(g->local - 1), l = (double)g->local;
        const double levels = rg_coll_tree_levels(g->domains, reduce_all);
        const bool several = g->domains > 1;
        const double chains = reduce_all || several ? 2 : 1;
        const double inside = g->local == 1 ? 0 : reduce_all ? 2 * chain / l * S : S;
        const double outside = several ? rg_coll_tree_load(g->domains, reduce_all) * S / l : 0;
        steps = (reduce_all ? 2 : 1) * levels + chains * chain;
        latency = (reduce_all ? 2 : 1) * levels * x->net_latency + chains * chain * x->up_latency;
        const double within = inside / g->ring_rate, beyond = several ? outside / g->net_rate : 0;
        sent = q->op == RG_COLL_REDUCE ? S : inside + outside;
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
        const double within = g->local == 1 ? 0
                              : alone       ? rg_coll_neighbour_cost(x, g, 1, &inner) * S
                                            : rg_coll_direct_cost(x, g, 1, share, &inner) * S;
        const double beyond =
            g->domains > 1 ? (alone ? 1 : n - (double)g->local) * share * S / g->net_rate : 0;
        limit = beyond > within || g->local == 1 ? RG_LIMIT_NETWORK : inner;
        steps = rounds;
        latency = rounds * (g->domains > 1 ? x->net_latency : x->up_latency);
        transfer = rounds * fmax(within, beyond);
        sent = alone ? S : rounds * (n - 1) * share * S;
        break;
    }
    case RG_ALG_IN_SWITCH: {
        /* Within a domain a rank's data is read once through the switch and its own part of the sum
         * written once to all; between domains each rank's part is added up in the network (SHARP)
         * or by trees of its rail. */
        const double l = (double)g->local, part = S / l;
        const bool several = g->domains > 1, sharp = x->cluster->scale_out.in_network_reduction;
        const double levels = !several ? 0 : sharp ? 1 : rg_coll_tree_levels(g->domains, true);
        const double inside = g->local > 1 ? S + part : 0;
        const double outside = !several ? 0
                               : sharp  ? part
                                        : rg_coll_tree_load(g->domains, true) * part;
        steps = (g->local > 1 ? 2 : 0) + 2 * levels;
        latency = (g->local > 1 ? 2 * x->up_latency : 0) + 2 * levels * x->net_latency;
        sent = inside + outside;
        const double within = inside > 0 ? inside / x->up_rate : 0;
        const double beyond = several ? outside / g->net_rate : 0;
        transfer = fmax(within, beyond);
        limit = beyond > within ? RG_LIMIT_NETWORK : RG_LIMIT_SWITCH;
        break;
    }
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

/* net/coll_stream.c: schedules that pass chunk after chunk along fixed edges: chains, trees,
 * switches.
 *
 * Once such a pipeline is full, every edge carries data all the time. So all edges flow at once,
 * for all their bytes, in max-min fair shares of the links; filling the pipeline costs the latency
 * of its longest way and, with chunks as small as one likes, nothing else.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "net/coll_schedule.h"

static double way_latency(const schedule *s, const rg_flow *flow)
{
    int32_t path[RG_NET_MOST_HOPS];
    const int hops = rg_net_path(s->net, flow->source, flow->target, path);
    double sum = 0;
    for (int i = 0; i < hops; i++)
        sum += rg_net_link(s->net, path[i])->latency_s;
    return sum;
}

/** All flows at once; the latency is that of the pipeline in place of the last edge's own. */
static rg_status stream(schedule *s, double steps, double latency_s)
{
    const double before = s->time;
    RG_TRY(rg_schedule_round(s, 1));
    double moved = 0;
    for (int32_t i = 0; i < s->count; i++)
        moved = fmax(moved, s->flows[i].arrive_s - way_latency(s, &s->flows[i]));
    s->time = before + moved + latency_s;
    s->steps += (int64_t)steps - 1;
    return RG_OK;
}

/* ---- chains ---- */

/** A buffer passed along the l ranks of domain d, from its first rank (down) or towards it (up), by
 * as many chains as the fabric has room for: on a mesh every cable is part of one (as in mesh_rings
 * of coll_simulate.c), in a torus one goes each way round. */
static void lay_whole_chain(schedule *s, int64_t d, bool up, double bytes)
{
    const int64_t l = s->group.local;
    const rg_fabric_kind kind = s->context->cluster->scale_up.kind;
    const bool mesh = kind == RG_FABRIC_MESH, torus = kind == RG_FABRIC_TORUS && l > 2;
    const int64_t chains = mesh ? l - 1 : torus ? 2 : 1;
    for (int64_t c = 0; c < chains; c++) {
        const int64_t stride = torus && c == 1 ? l - 1 : c + 1;
        for (int64_t k = 0; k < (mesh ? l : l - 1); k++) {
            const int64_t above = d * l + (mesh ? k : k * stride % l),
                          below = d * l + ((mesh ? k : k * stride) + stride) % l;
            rg_schedule_send(s, up ? below : above, up ? above : below, bytes / (double)chains);
        }
    }
}

/** A chain for each rail, which begins at the rail's rank and passes the rail's part on. */
static void lay_rail_chains(schedule *s, int64_t d, bool up, double rail_bytes)
{
    const int64_t l = s->group.local;
    if (s->context->cluster->scale_up.kind == RG_FABRIC_MESH) { /* all rails' chains, evened out */
        lay_whole_chain(s, d, up, rail_bytes * (double)(l - 1));
        return;
    }
    for (int64_t rail = 0; rail < l; rail++)
        for (int64_t k = 1; k < l; k++) {
            const int64_t above = d * l + (rail + k - 1) % l, below = d * l + (rail + k) % l;
            rg_schedule_send(s, up ? below : above, up ? above : below, rail_bytes);
        }
}

rg_status rg_schedule_chain(schedule *s, rg_coll_op op, double bytes)
{
    const int64_t n = s->group.ranks, l = s->group.local, m = s->group.domains;
    const rg_coll_context *x = s->context;
    const bool up = op == RG_COLL_REDUCE;
    const double between = (double)(m - 1), within = (double)(n - 1) - between;
    RG_TRY(rg_schedule_room(s, n * (l + 1)));
    if (m == 1)
        lay_whole_chain(s, 0, up, bytes);
    for (int64_t d = 0; d < m && m > 1; d++) { /* a chain for each rail, out at its last rank */
        lay_rail_chains(s, d, up, bytes / (double)l);
        for (int64_t rail = 0; rail < l && d + 1 < m; rail++) {
            const int64_t above = d * l + rail, below = (d + 1) * l + rail;
            rg_schedule_send(s, up ? below : above, up ? above : below, bytes / (double)l);
        }
    }
    return stream(s, (double)(n - 1), within * x->up_latency + between * x->net_latency);
}

/* ---- trees ---- */

/** Parent of a node in a binary tree over 0 .. m - 1 in which numbers grow from left to right: odd
 * ones are leaves, and the lowest set bit gives the height; -1 for the root, 0. */
static int64_t parent_of(int64_t node, int64_t m)
{
    if (node == 0)
        return -1;
    const int64_t bit = node & -node, above = (node ^ bit) | (bit << 1);
    return above < m ? above : node ^ bit;
}

/** Parent in tree 0 or 1; the second is the first mirrored, or shifted by one when m is odd, so
 * that the leaves of one are inside the other. */
static int64_t parent_in(int tree, int64_t node, int64_t m)
{
    if (tree == 0)
        return parent_of(node, m);
    const bool mirror = m % 2 == 0;
    const int64_t as = mirror ? m - 1 - node : (node + m - 1) % m, up = parent_of(as, m);
    return up < 0 ? -1 : mirror ? m - 1 - up : (up + 1) % m;
}

/** Parent of a domain. One way, domain 0 has or wants the data and stands over both roots. */
static int64_t parent_domain(int tree, int64_t domain, int64_t m, bool both_ways)
{
    if (both_ways)
        return parent_in(tree, domain, m);
    if (domain == 0)
        return -1;
    const int64_t up = parent_in(tree, domain - 1, m - 1);
    return up < 0 ? 0 : up + 1;
}

/** The edges of both trees of every rail; down away from the roots, up towards them. */
static void lay_trees(schedule *s, bool up, bool down, double rail_bytes)
{
    const int64_t l = s->group.local, m = s->group.domains;
    for (int tree = 0; tree < 2; tree++)
        for (int64_t d = 0; d < m; d++) {
            const int64_t parent = parent_domain(tree, d, m, up && down);
            for (int64_t rail = 0; parent >= 0 && rail < l; rail++) {
                if (up)
                    rg_schedule_send(s, d * l + rail, parent * l + rail, rail_bytes / 2);
                if (down)
                    rg_schedule_send(s, parent * l + rail, d * l + rail, rail_bytes / 2);
            }
        }
}

rg_status rg_schedule_trees(schedule *s, rg_coll_op op, double bytes)
{
    const rg_coll_context *x = s->context;
    const int64_t l = s->group.local, m = s->group.domains;
    const bool both = op == RG_COLL_ALL_REDUCE, up = op != RG_COLL_BROADCAST,
               down = op != RG_COLL_REDUCE;
    RG_TRY(rg_schedule_room(s, 4 * m * l + 2 * m * l * l));
    lay_trees(s, up, down, bytes / (double)l);
    for (int64_t d = 0; d < m; d++)
        for (int way = 0; way < 2; way++) {
            if (!(way == 0 ? up : down))
                continue;
            if (!both && d == 0) /* the source's domain: all of it, from its first rank */
                lay_whole_chain(s, d, way == 0, bytes);
            else
                lay_rail_chains(s, d, way == 0, bytes / (double)l);
        }
    const double ways = both ? 2 : 1, chain = (double)(l - 1) * (both || m > 1 ? 2 : 1);
    const double levels = ways * rg_coll_tree_levels(m, both);
    return stream(s, levels + chain, levels * x->net_latency + chain * x->up_latency);
}

/* ---- switches ---- */

rg_status rg_schedule_in_switch(schedule *s, double bytes)
{
    const rg_coll_context *x = s->context;
    const int64_t n = s->group.ranks, l = s->group.local, m = s->group.domains;
    const bool sharp = x->cluster->scale_out.in_network_reduction;
    const double part = bytes / (double)l;
    RG_TRY(rg_schedule_room(s, 6 * n + 4 * m * l));
    for (int64_t r = 0; r < n; r++) {
        const int32_t device = rg_schedule_device(s, r);
        const int32_t hub = l > 1 ? rg_net_switch(s->net, device, false) : -1,
                      leaf = m > 1 && sharp ? rg_net_switch(s->net, device, true) : -1;
        /* read by the owners of all parts, its own part of the sum written; and back */
        const double through[2][2] = {{bytes, part}, {part, bytes}};
        for (int way = 0; hub >= 0 && way < 2; way++)
            for (int k = 0; k < 2; k++)
                s->flows[s->count++] = (rg_flow){.source = way == 0 ? device : hub,
                                                 .target = way == 0 ? hub : device,
                                                 .bytes = through[way][k],
                                                 .after = {-1, -1}};
        for (int way = 0; leaf >= 0 && way < 2; way++)
            s->flows[s->count++] = (rg_flow){.source = way == 0 ? device : leaf,
                                             .target = way == 0 ? leaf : device,
                                             .bytes = part,
                                             .after = {-1, -1}};
    }
    if (m > 1 && !sharp)
        lay_trees(s, true, true, part);
    const double within = l > 1 ? 2 : 0;
    const double levels = m == 1 ? 0 : 2 * (sharp ? 1 : rg_coll_tree_levels(m, true));
    return stream(s, within + levels, within * x->up_latency + levels * x->net_latency);
}

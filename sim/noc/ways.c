/* noc/ways.c: routing functions as probabilities, without the state of a packet. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/route.h"

rg_status rg_noc_ways_new(rg_arena *arena, const rg_noc_graph *graph, rg_noc_routing routing,
                          rg_noc_ways *out, rg_err *err)
{
    *out = (rg_noc_ways){.graph = graph, .routing = routing};
    if (graph->shape == RG_NOC_TREE && graph->extent[0] > RG_NOC_MAX_WAYS)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE,
                       "a tree of radix '%d'; the closed form goes up to %d", graph->extent[0],
                       RG_NOC_MAX_WAYS);
    if (graph->shape == RG_NOC_GRAPH)
        return rg_noc_graph_table(arena, graph, &out->table, err);
    return RG_OK;
}

int rg_noc_digit(const rg_noc_graph *g, int router, int dim)
{
    for (int d = 0; d < dim; d++)
        router /= g->extent[d];
    return router % g->extent[dim];
}

/* Output of a cube's router in dimension d, + or -; ports stand in that order and edges of a mesh
 * leave theirs out. */
static int cube_output(const rg_noc_graph *g, int router, int dim, bool minus)
{
    int port = g->out_first[router], step = 1;
    for (int d = 0; d <= dim; d++) {
        const int k = g->extent[d], digit = router / step % k;
        const bool wraps = g->shape == RG_NOC_TORUS;
        const int plus_ports = digit < k - 1 || wraps;
        if (d == dim)
            return minus ? port + plus_ports : port;
        port += plus_ports + (digit > 0 || wraps);
        step *= k;
    }
    return port;
}

static int cube_ways(const rg_noc_ways *ways, int router, int node, rg_noc_way *list)
{
    const rg_noc_graph *g = ways->graph;
    int count = 0;
    for (int i = 0; i < g->dims; i++) {
        const int d = ways->descending ? g->dims - 1 - i : i, k = g->extent[d];
        const int here = rg_noc_digit(g, router, d), there = rg_noc_digit(g, node, d);
        if (here == there)
            continue;
        const int ahead = (there - here + k) % k;
        const bool torus = g->shape == RG_NOC_TORUS;
        const bool minus = torus ? 2 * ahead > k : there < here;
        list[count++] = (rg_noc_way){cube_output(g, router, d, minus), 1.0};
        if (torus && 2 * ahead == k) {
            list[count - 1].share = 0.5;
            list[count++] = (rg_noc_way){cube_output(g, router, d, true), 0.5};
        }
        if (ways->routing != RG_NOC_ROUTE_ADAPTIVE)
            return count;
    }
    for (int i = 0; i < count; i++)
        list[i].share = 1.0 / count;
    return count;
}

static int tree_ways(const rg_noc_graph *g, int router, int node, rg_noc_way *list)
{
    const int k = g->extent[0], n = g->dims, per_level = rg_noc_power(k, n - 1);
    const int level = router / per_level, position = router % per_level;
    const int below = rg_noc_power(k, n - level), first = g->out_first[router];
    if (node / below == position / rg_noc_power(k, n - level - 1)) {
        list[0] = (rg_noc_way){first + node % below / (below / k), 1.0};
        return 1;
    }
    for (int i = 0; i < k; i++)
        list[i] = (rg_noc_way){first + k + i, 1.0 / k};
    return k;
}

int rg_noc_ways_at(const rg_noc_ways *ways, int router, int node, rg_noc_way *list)
{
    const rg_noc_graph *g = ways->graph;
    const int exit = g->node_output[node];
    if (g->out_router[exit] == router) {
        list[0] = (rg_noc_way){exit, 1.0};
        return 1;
    }
    switch (g->shape) {
    case RG_NOC_MESH:
    case RG_NOC_TORUS:
        return cube_ways(ways, router, node, list);
    case RG_NOC_TREE:
        return tree_ways(g, router, node, list);
    case RG_NOC_FLY: {
        const int k = g->extent[0], stage = router / (g->nodes / k);
        list[0] = (rg_noc_way){
            g->out_first[router] + node / rg_noc_power(k, g->dims - 1 - stage) % k, 1.0};
        return 1;
    }
    default:
        list[0] = (rg_noc_way){ways->table[(size_t)router * (size_t)g->nodes + (size_t)node], 1.0};
        return 1;
    }
}

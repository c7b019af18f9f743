/* noc/ways.c: routing functions as probabilities, without the state of a packet. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/route.h"

int rg_noc_digit(const rg_noc_graph *g, int router, int dim)
{
    for (int d = 0; d < dim; d++)
        router /= g->extent[d];
    return router % g->extent[dim];
}

/* Ports of a cube's router stand by dimension, + before -; edges of a mesh leave theirs out. */
static rg_status fill_places(rg_arena *arena, rg_noc_ways *ways, rg_err *err)
{
    const rg_noc_graph *g = ways->graph;
    const size_t dims = (size_t)g->dims;
    const bool wraps = g->shape == RG_NOC_TORUS;
    ways->digit = RG_NEW(arena, uint16_t, (size_t)g->routers * dims, err);
    ways->towards = RG_NEW(arena, int32_t, (size_t)g->routers * dims * 2, err);
    if (ways->digit == NULL || ways->towards == NULL)
        return RG_ERR_LIMIT;
    for (int r = 0; r < g->routers; r++) {
        int port = g->out_first[r];
        for (int d = 0; d < g->dims; d++) {
            const int digit = rg_noc_digit(g, r, d);
            const size_t at = (size_t)r * dims + (size_t)d;
            ways->digit[at] = (uint16_t)digit;
            ways->towards[2 * at] = digit < g->extent[d] - 1 || wraps ? port++ : -1;
            ways->towards[2 * at + 1] = digit > 0 || wraps ? port++ : -1;
        }
    }
    return RG_OK;
}

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
    if (graph->shape == RG_NOC_MESH || graph->shape == RG_NOC_TORUS)
        return fill_places(arena, out, err);
    return RG_OK;
}

static int cube_ways(const rg_noc_ways *ways, int router, int node, rg_noc_way *list)
{
    const rg_noc_graph *g = ways->graph;
    const uint16_t *here = &ways->digit[(size_t)router * (size_t)g->dims];
    const uint16_t *there = &ways->digit[(size_t)node * (size_t)g->dims];
    const int32_t *towards = &ways->towards[(size_t)router * (size_t)g->dims * 2];
    const bool torus = g->shape == RG_NOC_TORUS;
    int count = 0;
    for (int i = 0; i < g->dims; i++) {
        const int d = ways->descending ? g->dims - 1 - i : i, k = g->extent[d];
        if (here[d] == there[d])
            continue;
        const int ahead = there[d] > here[d] ? there[d] - here[d] : there[d] - here[d] + k;
        const bool minus = torus ? 2 * ahead > k : there[d] < here[d];
        list[count++] = (rg_noc_way){towards[2 * d + minus], 1.0};
        if (torus && 2 * ahead == k) {
            list[count - 1].share = 0.5;
            list[count++] = (rg_noc_way){towards[2 * d + 1], 0.5};
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

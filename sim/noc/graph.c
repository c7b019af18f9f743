/* noc/graph.c: builders of regular networks, port numbering, shortest paths. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/graph.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct edge {
    rg_noc_channel channel;
    int out_key, in_key;
    int output, input; /* numbers given at the end */
    int order;
} edge;

struct rg_noc_builder {
    rg_arena *arena;
    int nodes, routers;
    edge *edges;
    int count, room;
};

int rg_noc_power(int k, int n)
{
    int64_t product = 1;
    for (int i = 0; i < n; i++) {
        product *= k;
        if (product > RG_NOC_MAX_NODES)
            return -1;
    }
    return (int)product;
}

rg_noc_builder *rg_noc_builder_new(rg_arena *arena, int nodes, int routers, rg_err *err)
{
    if (nodes < 1 || routers < 1 || nodes > RG_NOC_MAX_NODES || routers > RG_NOC_MAX_NODES) {
        rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE,
                "a network of '%d' nodes and '%d' routers; 1 to %d of each can be built", nodes,
                routers, RG_NOC_MAX_NODES);
        return NULL;
    }
    rg_noc_builder *builder = RG_NEW(arena, rg_noc_builder, 1, err);
    if (builder != NULL)
        *builder = (rg_noc_builder){.arena = arena, .nodes = nodes, .routers = routers};
    return builder;
}

rg_status rg_noc_builder_add(rg_noc_builder *builder, rg_noc_channel channel, int out_key,
                             int in_key, rg_err *err)
{
    if (channel.latency < 1 || channel.latency > RG_NOC_MAX_LATENCY)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE,
                       "a link latency of '%d' cycles; 1 to %d can be simulated", channel.latency,
                       RG_NOC_MAX_LATENCY);
    if (channel.period < 1 || channel.period > RG_NOC_MAX_LATENCY)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE,
                       "a link that takes '%d' cycles per flit; 1 to %d can be simulated",
                       channel.period, RG_NOC_MAX_LATENCY);
    if (builder->count == builder->room) {
        const int room = builder->room > 0 ? 2 * builder->room : 64;
        edge *grown = RG_NEW(builder->arena, edge, room, err);
        if (grown == NULL)
            return RG_ERR_LIMIT;
        if (builder->count > 0)
            memcpy(grown, builder->edges, (size_t)builder->count * sizeof *grown);
        builder->edges = grown;
        builder->room = room;
    }
    builder->edges[builder->count] = (edge){.channel = channel,
                                            .out_key = out_key,
                                            .in_key = in_key,
                                            .output = -1,
                                            .input = -1,
                                            .order = builder->count};
    builder->count++;
    return RG_OK;
}

static int compare_ints(int a, int b)
{
    return (a > b) - (a < b);
}

static int by_output(const void *left, const void *right)
{
    const edge *a = left, *b = right;
    int c = compare_ints(a->channel.from_router, b->channel.from_router);
    if (c == 0)
        c = compare_ints(a->out_key, b->out_key);
    return c != 0 ? c : compare_ints(a->order, b->order);
}

static int by_input(const void *left, const void *right)
{
    const edge *a = left, *b = right;
    int c = compare_ints(a->channel.to_router, b->channel.to_router);
    if (c == 0)
        c = compare_ints(a->in_key, b->in_key);
    return c != 0 ? c : compare_ints(a->order, b->order);
}

static void number_ports(rg_noc_builder *builder, rg_noc_graph *graph)
{
    edge *edges = builder->edges;
    const size_t count = (size_t)builder->count;
    qsort(edges, count, sizeof *edges, by_output);
    for (size_t i = 0; i < count; i++) {
        if (edges[i].channel.from_router < 0)
            continue;
        edges[i].output = graph->outputs++;
        graph->out_first[edges[i].channel.from_router + 1] = graph->outputs;
    }
    qsort(edges, count, sizeof *edges, by_input);
    for (size_t i = 0; i < count; i++) {
        if (edges[i].channel.to_router < 0)
            continue;
        edges[i].input = graph->inputs++;
        graph->in_first[edges[i].channel.to_router + 1] = graph->inputs;
    }
    for (int r = 0; r < graph->routers; r++) {
        if (graph->out_first[r + 1] < graph->out_first[r])
            graph->out_first[r + 1] = graph->out_first[r];
        if (graph->in_first[r + 1] < graph->in_first[r])
            graph->in_first[r + 1] = graph->in_first[r];
    }
}

static rg_status connect_ports(const rg_noc_builder *builder, rg_noc_graph *graph, rg_err *err)
{
    for (int i = 0; i < graph->nodes; i++)
        graph->node_input[i] = graph->node_output[i] = -1;
    for (int i = 0; i < builder->count; i++) {
        const edge *e = &builder->edges[i];
        if (e->output >= 0) {
            graph->out_router[e->output] = e->channel.from_router;
            graph->out_channel[e->output] = e->channel;
            graph->out_target[e->output] = e->input;
        }
        if (e->input >= 0) {
            graph->in_router[e->input] = e->channel.to_router;
            graph->in_channel[e->input] = e->channel;
            graph->in_source[e->input] = e->output;
        }
        if (e->output >= 0 && e->input >= 0)
            continue;
        int *place = e->output < 0 ? &graph->node_input[e->channel.node]
                                   : &graph->node_output[e->channel.node];
        if (*place >= 0)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "node '%d' is attached twice; attach each node to one router",
                           e->channel.node);
        *place = e->output < 0 ? e->input : e->output;
    }
    for (int i = 0; i < graph->nodes; i++)
        if (graph->node_input[i] < 0 || graph->node_output[i] < 0)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "node '%d' is attached to no router", i);
    return RG_OK;
}

rg_status rg_noc_builder_finish(rg_noc_builder *builder, rg_noc_graph **out, rg_err *err)
{
    rg_arena *arena = builder->arena;
    rg_noc_graph *graph = RG_NEW(arena, rg_noc_graph, 1, err);
    if (graph == NULL)
        return RG_ERR_LIMIT;
    graph->shape = RG_NOC_GRAPH;
    graph->nodes = builder->nodes;
    graph->routers = builder->routers;
    graph->in_first = RG_NEW(arena, int, graph->routers + 1, err);
    graph->out_first = RG_NEW(arena, int, graph->routers + 1, err);
    if (graph->in_first == NULL || graph->out_first == NULL)
        return RG_ERR_LIMIT;
    number_ports(builder, graph);
    graph->in_router = RG_NEW(arena, int, graph->inputs, err);
    graph->in_source = RG_NEW(arena, int, graph->inputs, err);
    graph->in_channel = RG_NEW(arena, rg_noc_channel, graph->inputs, err);
    graph->out_router = RG_NEW(arena, int, graph->outputs, err);
    graph->out_target = RG_NEW(arena, int, graph->outputs, err);
    graph->out_channel = RG_NEW(arena, rg_noc_channel, graph->outputs, err);
    graph->node_input = RG_NEW(arena, int, graph->nodes, err);
    graph->node_output = RG_NEW(arena, int, graph->nodes, err);
    if (graph->in_router == NULL || graph->in_source == NULL || graph->in_channel == NULL ||
        graph->out_router == NULL || graph->out_target == NULL || graph->out_channel == NULL ||
        graph->node_input == NULL || graph->node_output == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(connect_ports(builder, graph, err));
    *out = graph;
    return RG_OK;
}

static rg_noc_channel link_between(int from, int to, int latency)
{
    return (rg_noc_channel){.from_router = from,
                            .to_router = to,
                            .node = -1,
                            .latency = latency,
                            .credit_latency = latency,
                            .period = 1};
}

/* Injection and ejection channel of a node, 1 cycle each. */
static rg_status attach_node(rg_noc_builder *builder, int node, int in_router, int in_key,
                             int out_router, int out_key, rg_err *err)
{
    rg_noc_channel inject = link_between(-1, in_router, 1);
    rg_noc_channel eject = link_between(out_router, -1, 1);
    inject.node = eject.node = node;
    RG_TRY(rg_noc_builder_add(builder, inject, 0, in_key, err));
    return rg_noc_builder_add(builder, eject, out_key, 0, err);
}

/* Links of one router of a mesh or torus in dimension d; step is the distance of neighbours. */
static rg_status cube_links(rg_noc_builder *builder, rg_noc_shape shape, int router, int d, int k,
                            int step, int latency, rg_err *err)
{
    const int digit = router / step % k;
    if (k < 2)
        return RG_OK;
    if (digit < k - 1 || shape == RG_NOC_TORUS) {
        const int right = digit < k - 1 ? router + step : router - (k - 1) * step;
        RG_TRY(rg_noc_builder_add(builder, link_between(router, right, latency), 2 * d, 2 * d + 1,
                                  err));
    }
    if (digit > 0 || shape == RG_NOC_TORUS) {
        const int left = digit > 0 ? router - step : router + (k - 1) * step;
        RG_TRY(rg_noc_builder_add(builder, link_between(router, left, latency), 2 * d + 1, 2 * d,
                                  err));
    }
    return RG_OK;
}

rg_status rg_noc_graph_cube(rg_arena *arena, rg_noc_shape shape, const int *extent, int dims,
                            int link_latency, rg_noc_graph **out, rg_err *err)
{
    int64_t nodes = 1;
    if (dims < 1 || dims > RG_NOC_MAX_DIMS)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "'%d' dimensions; 1 to %d can be built", dims,
                       RG_NOC_MAX_DIMS);
    for (int d = 0; d < dims; d++) {
        if (extent[d] < 1)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "dimension %d has '%d' routers, need 1 or more", d, extent[d]);
        nodes *= extent[d];
        if (nodes > RG_NOC_MAX_NODES)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than %d nodes", RG_NOC_MAX_NODES);
    }
    rg_noc_builder *builder = rg_noc_builder_new(arena, (int)nodes, (int)nodes, err);
    if (builder == NULL)
        return RG_ERR_LIMIT;
    for (int r = 0; r < nodes; r++) {
        int step = 1;
        for (int d = 0; d < dims; d++) {
            RG_TRY(cube_links(builder, shape, r, d, extent[d], step, link_latency, err));
            step *= extent[d];
        }
        RG_TRY(attach_node(builder, r, r, 2 * dims, r, 2 * dims, err));
    }
    RG_TRY(rg_noc_builder_finish(builder, out, err));
    (*out)->shape = shape;
    (*out)->dims = dims;
    for (int d = 0; d < dims; d++)
        (*out)->extent[d] = extent[d];
    return RG_OK;
}

rg_status rg_noc_graph_fly(rg_arena *arena, int k, int n, int link_latency, rg_noc_graph **out,
                           rg_err *err)
{
    const int nodes = k >= 1 && n >= 1 ? rg_noc_power(k, n) : -1;
    if (nodes < 1)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "a '%d'-ary '%d'-fly; k and n must be 1 or more and k^n at most %d", k, n,
                       RG_NOC_MAX_NODES);
    const int per_stage = nodes / k;
    rg_noc_builder *builder = rg_noc_builder_new(arena, nodes, n * per_stage, err);
    if (builder == NULL)
        return RG_ERR_LIMIT;
    for (int node = 0; node < nodes; node++)
        RG_TRY(attach_node(builder, node, node / k, node % k, (n - 1) * per_stage + node / k,
                           node % k, err));
    for (int stage = 0; stage + 1 < n; stage++) {
        /* Output p of router a leads to the router whose digit of this stage is p; the digit that
         * it replaces is the input there. */
        const int shift = rg_noc_power(k, n - 2 - stage);
        for (int a = 0; a < per_stage; a++)
            for (int p = 0; p < k; p++) {
                const int digit = a / shift % k;
                const int to = a + (p - digit) * shift;
                RG_TRY(rg_noc_builder_add(
                    builder,
                    link_between(stage * per_stage + a, (stage + 1) * per_stage + to, link_latency),
                    p, digit, err));
            }
    }
    RG_TRY(rg_noc_builder_finish(builder, out, err));
    (*out)->shape = RG_NOC_FLY;
    (*out)->extent[0] = k;
    (*out)->dims = n;
    return RG_OK;
}

rg_status rg_noc_graph_tree(rg_arena *arena, int k, int n, int link_latency, rg_noc_graph **out,
                            rg_err *err)
{
    const int nodes = k >= 2 && n >= 1 ? rg_noc_power(k, n) : -1;
    if (nodes < 1)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "a '%d'-ary '%d'-tree; k must be 2 or more, n 1 or more, k^n at most %d", k,
                       n, RG_NOC_MAX_NODES);
    const int per_level = nodes / k;
    rg_noc_builder *builder = rg_noc_builder_new(arena, nodes, n * per_level, err);
    if (builder == NULL)
        return RG_ERR_LIMIT;
    for (int level = 0; level + 1 < n; level++) {
        const int branch = rg_noc_power(k, n - 2 - level); /* routers below one down port */
        for (int a = 0; a < per_level; a++) {
            const int up_port = a % (branch * k) / branch;
            for (int b = 0; b < k; b++) {
                const int below = a + (b - up_port) * branch;
                const int upper = level * per_level + a;
                const int lower = (level + 1) * per_level + below;
                RG_TRY(rg_noc_builder_add(builder, link_between(upper, lower, link_latency), b,
                                          k + up_port, err));
                RG_TRY(rg_noc_builder_add(builder, link_between(lower, upper, link_latency),
                                          k + up_port, b, err));
            }
        }
    }
    for (int node = 0; node < nodes; node++) {
        const int leaf = (n - 1) * per_level + node / k;
        RG_TRY(attach_node(builder, node, leaf, node % k, leaf, node % k, err));
    }
    RG_TRY(rg_noc_builder_finish(builder, out, err));
    (*out)->shape = RG_NOC_TREE;
    (*out)->extent[0] = k;
    (*out)->dims = n;
    return RG_OK;
}

/* Binary heap of (distance, router), smallest first, for the shortest paths. */
typedef struct path_heap {
    int64_t *item; /* distance * 2^21 + router */
    int count;
} path_heap;

static void heap_push(path_heap *heap, int64_t item)
{
    int i = heap->count++;
    for (; i > 0 && heap->item[(i - 1) / 2] > item; i = (i - 1) / 2)
        heap->item[i] = heap->item[(i - 1) / 2];
    heap->item[i] = item;
}

static int64_t heap_pop(path_heap *heap)
{
    const int64_t least = heap->item[0], last = heap->item[--heap->count];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && heap->item[child + 1] < heap->item[child])
            child++;
        if (heap->item[child] >= last)
            break;
        heap->item[i] = heap->item[child];
        i = child;
    }
    heap->item[i] = last;
    return least;
}

typedef struct path_scratch {
    int64_t *distance; /* [routers] */
    int32_t *first;    /* [routers] output of the start that leads there */
    bool *done;        /* [routers] */
    path_heap heap;
} path_scratch;

/* Dijkstra from one router; routers at the same distance are taken by number. */
static void paths_from(const rg_noc_graph *graph, int start, path_scratch *s)
{
    for (int r = 0; r < graph->routers; r++) {
        s->distance[r] = INT64_MAX;
        s->first[r] = -1;
        s->done[r] = false;
    }
    s->heap.count = 0;
    s->distance[start] = 0;
    heap_push(&s->heap, start);
    while (s->heap.count > 0) {
        const int r = (int)(heap_pop(&s->heap) & ((1 << 21) - 1));
        if (s->done[r])
            continue;
        s->done[r] = true;
        for (int o = graph->out_first[r]; o < graph->out_first[r + 1]; o++) {
            const int next = graph->out_channel[o].to_router;
            if (next < 0 || s->distance[r] + graph->out_channel[o].latency >= s->distance[next])
                continue;
            s->distance[next] = s->distance[r] + graph->out_channel[o].latency;
            s->first[next] = r == start ? o : s->first[r];
            heap_push(&s->heap, s->distance[next] * (1 << 21) + next);
        }
    }
}

/* Parallel links share the traffic: node n takes the (n mod links)-th of them. */
static int32_t spread_parallel(const rg_noc_graph *graph, int output, int node)
{
    const int r = graph->out_router[output], to = graph->out_channel[output].to_router;
    int count = 0;
    for (int o = graph->out_first[r]; o < graph->out_first[r + 1]; o++)
        count += graph->out_channel[o].to_router == to;
    assert(count > 0); /* the output itself is one */
    int pick = node % count;
    for (int o = graph->out_first[r]; o < graph->out_first[r + 1]; o++)
        if (graph->out_channel[o].to_router == to && pick-- == 0)
            return o;
    return output;
}

rg_status rg_noc_graph_table(rg_arena *arena, const rg_noc_graph *graph, int32_t **out, rg_err *err)
{
    const size_t routers = (size_t)graph->routers, nodes = (size_t)graph->nodes;
    int32_t *table = RG_NEW(arena, int32_t, routers * nodes, err);
    path_scratch s = {.distance = RG_NEW(arena, int64_t, routers, err),
                      .first = RG_NEW(arena, int32_t, routers, err),
                      .done = RG_NEW(arena, bool, routers, err)};
    s.heap.item = RG_NEW(arena, int64_t, (size_t)graph->outputs + 1, err);
    if (table == NULL || s.distance == NULL || s.first == NULL || s.done == NULL ||
        s.heap.item == NULL)
        return RG_ERR_LIMIT;
    for (int r = 0; r < graph->routers; r++) {
        paths_from(graph, r, &s);
        for (int n = 0; n < graph->nodes; n++) {
            const int exit = graph->node_output[n], home = graph->out_router[exit];
            if (home != r && s.first[home] < 0)
                return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                               "router '%d' has no path to node '%d'; add a link", r, n);
            table[(size_t)r * nodes + (size_t)n] =
                home == r ? exit : spread_parallel(graph, s.first[home], n);
        }
    }
    *out = table;
    return RG_OK;
}

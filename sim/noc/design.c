/* noc/design.c: network files, words for regular networks. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/design.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/doc.h"
#include "core/find.h"
#include "core/text.h"
#include "noc/anynet.h"

enum { MAX_ASSUMED = 64, MAX_ROUTER_GROUPS = 32 };

typedef struct loading {
    rg_arena *arena;
    rg_noc_design *design;
    const char *assumed[MAX_ASSUMED];
    rg_noc_group router_groups[MAX_ROUTER_GROUPS];
    int router_group_count, routers, nodes;
    rg_err *err;
} loading;

rg_noc_router rg_noc_router_default(const rg_noc_graph *graph)
{
    const rg_noc_routing routing = graph->shape == RG_NOC_TORUS  ? RG_NOC_ROUTE_TORUS
                                   : graph->shape == RG_NOC_TREE ? RG_NOC_ROUTE_TREE
                                                                 : RG_NOC_ROUTE_TABLE;
    return (rg_noc_router){.vcs = 4,
                           .buffer = 8,
                           .vc_alloc_delay = 1,
                           .switch_alloc_delay = 1,
                           .traversal_delay = 1,
                           .credit_delay = 1,
                           .iterations = 1,
                           .routing = routing};
}

static rg_status finish(loading *in)
{
    rg_noc_design *d = in->design;
    const int kept = d->group_count;
    if (kept == 0 || strcmp(d->groups[0].name, "all") != 0) {
        memmove(&d->groups[1], &d->groups[0],
                (size_t)(kept < RG_NOC_MAX_GROUPS ? kept : RG_NOC_MAX_GROUPS - 1) *
                    sizeof d->groups[0]);
        d->groups[0] = (rg_noc_group){"all", 0, d->graph->nodes};
        d->group_count = kept < RG_NOC_MAX_GROUPS ? kept + 1 : RG_NOC_MAX_GROUPS;
    }
    const char **list = RG_NEW(in->arena, const char *, d->assumed_count, in->err);
    if (list == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < d->assumed_count; i++)
        list[i] = in->assumed[i];
    d->assumed = list;
    return RG_OK;
}

/* A whole number, plain or as {value, source}; an assumed source is remembered. */
static rg_status read_count(loading *in, rg_node *map, const char *key, int least, int most,
                            int fallback, int *out)
{
    rg_node *node = rg_map_find(map, key);
    int64_t value = fallback;
    *out = fallback;
    if (node == NULL)
        return RG_OK;
    if (node->kind == RG_NODE_MAP) {
        const char *source;
        RG_TRY(rg_map_int(node, "value", least, most, &value, in->err));
        RG_TRY(rg_map_text(node, "source", &source, in->err));
        RG_TRY(rg_map_done(node, in->err));
        if (strncmp(source, "assumed", 7) == 0 && in->design->assumed_count < MAX_ASSUMED) {
            const char *line =
                rg_arena_printf(in->arena, in->err, "%s %lld: %s", key, (long long)value, source);
            if (line == NULL)
                return RG_ERR_LIMIT;
            in->assumed[in->design->assumed_count++] = line;
        }
    } else {
        RG_TRY(rg_node_int(node, least, most, &value, in->err));
    }
    *out = (int)value;
    return RG_OK;
}

static rg_status read_quantity(loading *in, rg_node *map, const char *key, rg_dim dim, double *out)
{
    rg_node *node = rg_map_find(map, key);
    *out = 0.0;
    if (node == NULL)
        return RG_OK;
    if (node->kind != RG_NODE_MAP)
        return rg_node_quantity(node, dim, out, in->err);
    const char *source, *text;
    RG_TRY(rg_map_quantity(node, "value", dim, out, in->err));
    RG_TRY(rg_map_text(node, "value", &text, in->err));
    RG_TRY(rg_map_text(node, "source", &source, in->err));
    if (strncmp(source, "assumed", 7) == 0 && in->design->assumed_count < MAX_ASSUMED) {
        const char *line = rg_arena_printf(in->arena, in->err, "%s %s: %s", key, text, source);
        if (line == NULL)
            return RG_ERR_LIMIT;
        in->assumed[in->design->assumed_count++] = line;
    }
    return rg_map_done(node, in->err);
}

/* Where the key is given, it is above 0. */
static rg_status read_above_0(loading *in, rg_node *map, const char *key, rg_dim dim, double *out)
{
    rg_node *node = rg_map_find(map, key);
    RG_TRY(read_quantity(in, map, key, dim, out));
    if (node == NULL || *out > 0.0)
        return RG_OK;
    return rg_fail(in->err, RG_ERR_INPUT, node->pos, "%s is not above 0", key);
}

static rg_status read_choice(rg_node *map, const char *key, const char *const *names, int *out,
                             rg_err *err)
{
    rg_node *node = rg_map_find(map, key);
    return node == NULL ? RG_OK : rg_node_choice(node, names, out, err);
}

static rg_status read_router(loading *in, rg_node *root)
{
    rg_noc_router *r = &in->design->router;
    rg_node *map = rg_map_find(root, "router");
    *r = rg_noc_router_default(in->design->graph);
    if (map == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "router", in->err));
    RG_TRY(read_count(in, map, "vcs", 1, RG_NOC_MAX_VCS, r->vcs, &r->vcs));
    RG_TRY(read_count(in, map, "buffer", 1, 4096, r->buffer, &r->buffer));
    RG_TRY(read_count(in, map, "routing_delay", 0, 256, r->routing_delay, &r->routing_delay));
    RG_TRY(read_count(in, map, "vc_alloc_delay", 1, 256, r->vc_alloc_delay, &r->vc_alloc_delay));
    RG_TRY(read_count(in, map, "switch_alloc_delay", 1, 256, r->switch_alloc_delay,
                      &r->switch_alloc_delay));
    RG_TRY(read_count(in, map, "traversal_delay", 1, 256, r->traversal_delay, &r->traversal_delay));
    RG_TRY(read_count(in, map, "credit_delay", 0, 256, r->credit_delay, &r->credit_delay));
    RG_TRY(read_count(in, map, "iterations", 1, 64, r->iterations, &r->iterations));
    RG_TRY(rg_map_bool_or(map, "speculative", r->speculative, &r->speculative, in->err));
    RG_TRY(rg_map_bool_or(map, "wait_for_tail_credit", r->wait_for_tail_credit,
                          &r->wait_for_tail_credit, in->err));
    int vc = (int)r->vc_allocator, sw = (int)r->switch_allocator, routing = (int)r->routing;
    RG_TRY(read_choice(map, "vc_allocator", rg_noc_allocator_names, &vc, in->err));
    RG_TRY(read_choice(map, "switch_allocator", rg_noc_allocator_names, &sw, in->err));
    RG_TRY(read_choice(map, "routing", rg_noc_routing_names, &routing, in->err));
    r->vc_allocator = (rg_noc_allocator)vc;
    r->switch_allocator = (rg_noc_allocator)sw;
    r->routing = (rg_noc_routing)routing;
    return rg_map_done(map, in->err);
}

/* "nodes:" or "routers:" of a free graph: a map of group names to counts. */
static rg_status read_groups(loading *in, rg_node *root, const char *key, rg_noc_group *groups,
                             int room, int *count, int *total)
{
    rg_node *map;
    RG_TRY(rg_map_get(root, key, &map, in->err));
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, key, in->err));
    for (const rg_node *child = map->first; child != NULL; child = child->next) {
        int n;
        if (*count == room)
            return rg_fail(in->err, RG_ERR_LIMIT, child->pos, "more than %d groups of %s", room,
                           key);
        RG_TRY(read_count(in, map, child->key, 1, RG_NOC_MAX_NODES, 1, &n));
        groups[(*count)++] = (rg_noc_group){child->key, *total, n};
        *total += n;
        if (*total > RG_NOC_MAX_NODES)
            return rg_fail(in->err, RG_ERR_LIMIT, child->pos, "more than %d %s", RG_NOC_MAX_NODES,
                           key);
    }
    return RG_OK;
}

static rg_status find_group(loading *in, rg_node *map, const char *key, const rg_noc_group *groups,
                            int count, const rg_noc_group **out)
{
    rg_node *node;
    const char *name;
    const char *names[RG_NOC_MAX_GROUPS + MAX_ROUTER_GROUPS + 1] = {NULL};
    RG_TRY(rg_map_get(map, key, &node, in->err));
    RG_TRY(rg_node_text(node, &name, in->err));
    for (int i = 0; i < count; i++) {
        names[i] = groups[i].name;
        if (strcmp(groups[i].name, name) == 0) {
            *out = &groups[i];
            return RG_OK;
        }
    }
    const char *near = rg_text_nearest(name, names);
    return rg_fail(in->err, RG_ERR_INPUT, node->pos, "%s '%.60s' is no group%s%s%s", key, name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

typedef struct wire {
    int latency, period, lanes;
} wire;

static rg_status read_wire(loading *in, rg_node *map, wire *w)
{
    RG_TRY(read_count(in, map, "latency", 1, RG_NOC_MAX_LATENCY, 1, &w->latency));
    RG_TRY(read_count(in, map, "cycles_per_flit", 1, RG_NOC_MAX_LATENCY, 1, &w->period));
    return read_count(in, map, "lanes", 1, 1024, 1, &w->lanes);
}

static rg_noc_channel wire_channel(const wire *w, int from, int to, int node)
{
    return (rg_noc_channel){.from_router = from,
                            .to_router = to,
                            .node = node,
                            .latency = w->latency,
                            .credit_latency = w->latency,
                            .period = w->period};
}

/* How many nodes of the group router i takes: the list per_router, or an even spread. */
static rg_status nodes_of_router(loading *in, rg_node *list, int i, int nodes, int routers,
                                 int *out)
{
    *out = nodes / routers + (i < nodes % routers);
    if (list == NULL)
        return RG_OK;
    const rg_node *item = list->first;
    for (int k = 0; k < i && item != NULL; k++)
        item = item->next;
    if (item == NULL || list->count != (size_t)routers)
        return rg_fail(in->err, RG_ERR_INPUT, list->pos,
                       "per_router lists '%zu' counts for %d routers", list->count, routers);
    int64_t n;
    RG_TRY(rg_node_int(item, 0, nodes, &n, in->err));
    *out = (int)n;
    return RG_OK;
}

static rg_status read_attach(loading *in, rg_node *map, rg_noc_builder *builder)
{
    const rg_noc_group *nodes, *routers;
    wire w;
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "an entry of attach", in->err));
    RG_TRY(find_group(in, map, "nodes", in->design->groups, in->design->group_count, &nodes));
    RG_TRY(find_group(in, map, "routers", in->router_groups, in->router_group_count, &routers));
    RG_TRY(read_wire(in, map, &w));
    rg_node *list = rg_map_find(map, "per_router");
    if (list != NULL)
        RG_TRY(rg_node_expect(list, RG_NODE_LIST, "per_router", in->err));
    int node = nodes->first;
    for (int i = 0; i < routers->count; i++) {
        int count;
        RG_TRY(nodes_of_router(in, list, i, nodes->count, routers->count, &count));
        for (; count > 0 && node < nodes->first + nodes->count; count--, node++) {
            const int r = routers->first + i;
            RG_TRY(rg_noc_builder_add(builder, wire_channel(&w, -1, r, node), 0, node, in->err));
            RG_TRY(rg_noc_builder_add(builder, wire_channel(&w, r, -1, node), node, 0, in->err));
        }
    }
    if (node != nodes->first + nodes->count)
        return rg_fail(in->err, RG_ERR_INPUT, map->pos,
                       "'%d' of the %d nodes of '%s' are attached; per_router must sum to all",
                       node - nodes->first, nodes->count, nodes->name);
    return rg_map_done(map, in->err);
}

static rg_status link_pair(loading *in, rg_noc_builder *builder, const wire *w, int a, int b,
                           bool one_way)
{
    for (int lane = 0; lane < w->lanes; lane++) {
        RG_TRY(rg_noc_builder_add(builder, wire_channel(w, a, b, -1), in->nodes + b, in->nodes + a,
                                  in->err));
        if (!one_way)
            RG_TRY(rg_noc_builder_add(builder, wire_channel(w, b, a, -1), in->nodes + a,
                                      in->nodes + b, in->err));
    }
    return RG_OK;
}

static rg_status read_link(loading *in, rg_node *map, rg_noc_builder *builder)
{
    static const char *const patterns[] = {"all", "each", NULL};
    const rg_noc_group *from, *to;
    wire w;
    int pattern = 0;
    bool one_way;
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "an entry of links", in->err));
    RG_TRY(find_group(in, map, "from", in->router_groups, in->router_group_count, &from));
    RG_TRY(find_group(in, map, "to", in->router_groups, in->router_group_count, &to));
    RG_TRY(read_wire(in, map, &w));
    RG_TRY(read_choice(map, "pairs", patterns, &pattern, in->err));
    RG_TRY(rg_map_bool_or(map, "one_way", false, &one_way, in->err));
    for (int i = 0; i < from->count; i++)
        for (int k = 0; k < to->count; k++) {
            const int wide = from->count > to->count ? from->count : to->count;
            const bool joined =
                pattern == 0 || (from->count >= to->count ? i * to->count / wide == k
                                                          : k * from->count / wide == i);
            const int a = from->first + i, b = to->first + k;
            if (!joined || a == b || (from == to && a > b && !one_way))
                continue;
            RG_TRY(link_pair(in, builder, &w, a, b, one_way));
        }
    return rg_map_done(map, in->err);
}

static rg_status read_graph(loading *in, rg_node *root)
{
    rg_node *attach, *links = rg_map_find(root, "links");
    RG_TRY(read_groups(in, root, "nodes", in->design->groups, RG_NOC_MAX_GROUPS - 1,
                       &in->design->group_count, &in->nodes));
    RG_TRY(read_groups(in, root, "routers", in->router_groups, MAX_ROUTER_GROUPS,
                       &in->router_group_count, &in->routers));
    RG_TRY(rg_map_get(root, "attach", &attach, in->err));
    RG_TRY(rg_node_expect(attach, RG_NODE_LIST, "attach", in->err));
    rg_noc_builder *builder = rg_noc_builder_new(in->arena, in->nodes, in->routers, in->err);
    if (builder == NULL)
        return RG_ERR_LIMIT;
    for (rg_node *item = attach->first; item != NULL; item = item->next)
        RG_TRY(read_attach(in, item, builder));
    if (links != NULL) {
        RG_TRY(rg_node_expect(links, RG_NODE_LIST, "links", in->err));
        for (rg_node *item = links->first; item != NULL; item = item->next)
            RG_TRY(read_link(in, item, builder));
    }
    return rg_noc_builder_finish(builder, &in->design->graph, in->err);
}

static rg_status read_extent(loading *in, rg_node *root, int *extent, int *dims)
{
    rg_node *list;
    RG_TRY(rg_map_get(root, "extent", &list, in->err));
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, "extent", in->err));
    if (list->count < 1 || list->count > RG_NOC_MAX_DIMS)
        return rg_fail(in->err, RG_ERR_INPUT, list->pos,
                       "extent has '%zu' dimensions; 1 to %d can be built", list->count,
                       RG_NOC_MAX_DIMS);
    *dims = 0;
    for (const rg_node *item = list->first; item != NULL; item = item->next) {
        int64_t k;
        RG_TRY(rg_node_int(item, 2, RG_NOC_MAX_NODES, &k, in->err));
        extent[(*dims)++] = (int)k;
    }
    return RG_OK;
}

static const char *const topology_names[] = {"mesh", "torus", "ring",   "crossbar", "fly",
                                             "tree", "graph", "anynet", NULL};
enum { MESH, TORUS, RING, CROSSBAR, FLY, TREE, GRAPH, ANYNET };

static rg_status build_topology(loading *in, rg_node *root, int topology)
{
    rg_noc_graph **graph = &in->design->graph;
    int extent[RG_NOC_MAX_DIMS], dims = 1, latency, k, n;
    RG_TRY(read_count(in, root, "link_latency", 1, RG_NOC_MAX_LATENCY, 1, &latency));
    if (topology == MESH || topology == TORUS || topology == RING) {
        RG_TRY(read_extent(in, root, extent, &dims));
        if (topology == RING && dims != 1)
            return rg_fail(in->err, RG_ERR_INPUT, root->pos,
                           "a ring has one dimension, extent has '%d'", dims);
        return rg_noc_graph_cube(in->arena, topology == MESH ? RG_NOC_MESH : RG_NOC_TORUS, extent,
                                 dims, latency, graph, in->err);
    }
    if (topology == GRAPH)
        return read_graph(in, root);
    if (topology == ANYNET) {
        const char *file;
        RG_TRY(rg_map_text(root, "file", &file, in->err));
        const char *slash = strrchr(in->design->path, '/');
        if (file[0] != '/' && slash != NULL)
            file = rg_arena_printf(in->arena, in->err, "%.*s%s",
                                   (int)(slash - in->design->path) + 1, in->design->path, file);
        return file == NULL ? RG_ERR_LIMIT : rg_noc_anynet_load(in->arena, file, graph, in->err);
    }
    RG_TRY(
        read_count(in, root, topology == CROSSBAR ? "nodes" : "radix", 1, RG_NOC_MAX_NODES, 0, &k));
    RG_TRY(read_count(in, root, topology == CROSSBAR ? "stages" : "levels", 1, 20, 1, &n));
    return topology == TREE ? rg_noc_graph_tree(in->arena, k, n, latency, graph, in->err)
                            : rg_noc_graph_fly(in->arena, k, n, latency, graph, in->err);
}

static rg_status read_design(loading *in, rg_node *root)
{
    rg_noc_design *d = in->design;
    const char *kind;
    rg_node *node;
    int topology;
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a network file", in->err));
    RG_TRY(rg_map_text(root, "kind", &kind, in->err));
    if (strcmp(kind, "noc") != 0)
        return rg_fail(in->err, RG_ERR_INPUT, root->pos,
                       "kind is '%.40s'; a network file says 'noc'", kind);
    RG_TRY(rg_map_text(root, "name", &d->name, in->err));
    RG_TRY(rg_map_text_or(root, "title", d->name, &d->title, in->err));
    RG_TRY(read_above_0(in, root, "clock", RG_DIM_HERTZ, &d->clock_hz));
    RG_TRY(read_above_0(in, root, "flit", RG_DIM_BYTES, &d->flit_bytes));
    if (rg_map_find(root, "header") != NULL)
        RG_TRY(read_quantity(in, root, "header", RG_DIM_BYTES, &d->header_bytes));
    RG_TRY(rg_map_get(root, "topology", &node, in->err));
    RG_TRY(rg_node_choice(node, topology_names, &topology, in->err));
    RG_TRY(build_topology(in, root, topology));
    RG_TRY(read_router(in, root));
    return rg_map_done(root, in->err);
}

/* "8x8" or "4,3" from text on; the number of numbers, 0 when it is not that. */
static int read_numbers(const char *text, int *out, int room)
{
    int count = 0;
    for (;;) {
        char *end;
        if (count == room || *text < '0' || *text > '9')
            return 0;
        const long value = strtol(text, &end, 10);
        if (value < 1 || value > RG_NOC_MAX_NODES)
            return 0;
        out[count++] = (int)value;
        if (*end == 0)
            return count;
        if (*end != 'x' && *end != ',')
            return 0;
        text = end + 1;
    }
}

static rg_status build_words(loading *in, const char *words, int topology, const char *numbers)
{
    rg_noc_graph **graph = &in->design->graph;
    int k[RG_NOC_MAX_DIMS] = {1, 1};
    const int count = read_numbers(numbers, k, RG_NOC_MAX_DIMS);
    const bool fits = topology == MESH || topology == TORUS      ? count >= 1
                      : topology == RING || topology == CROSSBAR ? count == 1
                                                                 : count == 2;
    if (!fits || topology > TREE)
        return rg_fail(in->err, RG_ERR_USAGE, RG_NOWHERE,
                       "network '%.80s' is not understood; mesh:8x8, torus:4x4x4, ring:16, "
                       "crossbar:16, fly:4,3 (radix, stages) and tree:4,3 (radix, levels) are",
                       words);
    switch (topology) {
    case MESH:
        return rg_noc_graph_cube(in->arena, RG_NOC_MESH, k, count, 1, graph, in->err);
    case TORUS:
    case RING:
        return rg_noc_graph_cube(in->arena, RG_NOC_TORUS, k, count, 1, graph, in->err);
    case TREE:
        return rg_noc_graph_tree(in->arena, k[0], k[1], 1, graph, in->err);
    default:
        return rg_noc_graph_fly(in->arena, k[0], topology == CROSSBAR ? 1 : k[1], 1, graph,
                                in->err);
    }
}

static rg_status load_words(loading *in, const char *words)
{
    const size_t length = strcspn(words, ":");
    const char *kind = rg_arena_copy(in->arena, words, length, in->err);
    int topology = 0;
    if (kind == NULL)
        return RG_ERR_LIMIT;
    while (topology_names[topology] != NULL && strcmp(topology_names[topology], kind) != 0)
        topology++;
    RG_TRY(build_words(in, words, topology, words + length + 1));
    in->design->name = in->design->title = words;
    in->design->router = rg_noc_router_default(in->design->graph);
    return RG_OK;
}

static rg_status load_file(loading *in, const char *what)
{
    rg_node *root;
    const bool anynet = strchr(what, '/') != NULL || strrchr(what, '.') != NULL;
    if (anynet && !rg_text_ends_with(what, ".yaml") && !rg_text_ends_with(what, ".yml")) {
        in->design->path = what;
        in->design->name = in->design->title = what;
        RG_TRY(rg_noc_anynet_load(in->arena, what, &in->design->graph, in->err));
        in->design->router = rg_noc_router_default(in->design->graph);
        return RG_OK;
    }
    RG_TRY(rg_data_find(in->arena, "hw/noc", "network", what, &in->design->path, in->err));
    RG_TRY(rg_doc_load(in->arena, in->design->path, &root, in->err));
    return read_design(in, root);
}

rg_status rg_noc_design_load(rg_arena *arena, const char *what, rg_noc_design **out, rg_err *err)
{
    loading in = {.arena = arena, .design = RG_NEW(arena, rg_noc_design, 1, err), .err = err};
    if (in.design == NULL)
        return RG_ERR_LIMIT;
    in.design->header_bytes = 8.0; /* as netrace counts: 8 for a request, 72 for 64 of data */
    RG_TRY(strchr(what, ':') != NULL && strchr(what, '/') == NULL ? load_words(&in, what)
                                                                  : load_file(&in, what));
    *out = in.design;
    return finish(&in);
}

rg_status rg_noc_design_group(const rg_noc_design *design, const char *name,
                              const rg_noc_group **out, rg_err *err)
{
    char list[512] = "";
    for (int i = 0; i < design->group_count; i++) {
        if (strcmp(design->groups[i].name, name) == 0) {
            *out = &design->groups[i];
            return RG_OK;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%.40s", i > 0 ? ", " : "",
                 design->groups[i].name);
    }
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "the network has no group '%.60s'; it has %s",
                   name, list);
}

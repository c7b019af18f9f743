/* noc/replay.c: columns to configurations. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/replay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/csv.h"
#include "core/file.h"
#include "noc/anynet.h"

enum { MAX_ROWS = 100000 };

typedef struct curve_reader {
    rg_arena *arena;
    rg_csv *csv;
    rg_noc_replay *replay;
    const char *topology; /* given by the user */
    int longer;           /* flits of read replies and write requests; 0: not known yet */
    char key[512];        /* what the last graph was built from */
    rg_noc_graph *graph;
} curve_reader;

static const char *text_or(const curve_reader *r, const char *column, const char *fallback)
{
    const int c = rg_csv_find(r->csv, column);
    const char *text = c < 0 ? "" : rg_csv_text(r->csv, c);
    return text[0] != 0 ? text : fallback;
}

static rg_status need_text(const curve_reader *r, const char *column, const char **out, rg_err *err)
{
    int c;
    RG_TRY(rg_csv_column(r->csv, column, &c, err));
    *out = rg_csv_text(r->csv, c);
    return RG_OK;
}

static rg_status need_int(const curve_reader *r, const char *column, int *out, rg_err *err)
{
    int c;
    int64_t value;
    RG_TRY(rg_csv_column(r->csv, column, &c, err));
    RG_TRY(rg_csv_int(r->csv, c, &value, err));
    if (value < 0 || value > INT32_MAX)
        return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(r->csv, c),
                       "%s '%lld' is out of range; 0 to 2147483647 would do", column,
                       (long long)value);
    *out = (int)value;
    return RG_OK;
}

static rg_status int_or(const curve_reader *r, const char *column, int fallback, int *out,
                        rg_err *err)
{
    *out = fallback;
    return text_or(r, column, "")[0] == 0 ? RG_OK : need_int(r, column, out, err);
}

static rg_status real_or(const curve_reader *r, const char *column, double fallback, double *out,
                         rg_err *err)
{
    *out = fallback;
    if (text_or(r, column, "")[0] == 0)
        return RG_OK;
    return rg_csv_real(r->csv, rg_csv_find(r->csv, column), out, err);
}

static rg_pos column_pos(const curve_reader *r, const char *column)
{
    return rg_csv_pos(r->csv, rg_csv_find(r->csv, column));
}

static void assume_once(rg_noc_replay *replay, const char *text)
{
    for (int i = 0; i < replay->assumption_count; i++)
        if (strcmp(replay->assumptions[i], text) == 0)
            return;
    if (replay->assumption_count < 8)
        replay->assumptions[replay->assumption_count++] = text;
}

static rg_status find_network(curve_reader *r, const char *name, const char **path, rg_err *err)
{
    *path = r->topology;
    if (r->topology != NULL)
        return RG_OK;
    const char *slash = strrchr(r->replay->path, '/');
    const int folder = slash != NULL ? (int)(slash - r->replay->path) + 1 : 0;
    static const char *const tries[] = {"", "../"};
    for (int i = 0; i < 2; i++) {
        *path = rg_arena_printf(r->arena, err, "%.*s%s%s", folder, r->replay->path, tries[i], name);
        if (*path == NULL)
            return RG_ERR_LIMIT;
        if (rg_file_exists(*path))
            return RG_OK;
    }
    return rg_fail(err, RG_ERR_INPUT, column_pos(r, "network"),
                   "network '%s' is neither beside the curve nor one folder up; give it with "
                   "--topology FILE",
                   name);
}

static rg_status build_graph(curve_reader *r, const char *topology, int k, int n, int link_latency,
                             rg_err *err)
{
    int extent[RG_NOC_MAX_DIMS];
    for (int d = 0; d < n && d < RG_NOC_MAX_DIMS; d++)
        extent[d] = k;
    if (strcmp(topology, "mesh") == 0)
        return rg_noc_graph_cube(r->arena, RG_NOC_MESH, extent, n, link_latency, &r->graph, err);
    if (strcmp(topology, "torus") == 0)
        return rg_noc_graph_cube(r->arena, RG_NOC_TORUS, extent, n, link_latency, &r->graph, err);
    if (strcmp(topology, "fly") == 0)
        return rg_noc_graph_fly(r->arena, k, n, link_latency, &r->graph, err);
    if (strcmp(topology, "fattree") == 0)
        return rg_noc_graph_tree(r->arena, k, n, link_latency, &r->graph, err);
    if (strcmp(topology, "anynet") == 0) {
        const char *path;
        RG_TRY(find_network(r, text_or(r, "network", ""), &path, err));
        r->replay->topology_path = path;
        return rg_noc_anynet_load(r->arena, path, &r->graph, err);
    }
    return rg_fail(err, RG_ERR_INPUT, column_pos(r, "topology"),
                   "topology '%.80s' is unknown; mesh, torus, fly, fattree and anynet can be "
                   "replayed",
                   topology);
}

/* The graph of this row, kept from the row before when nothing has changed. */
static rg_status read_graph(curve_reader *r, rg_noc_config *config, rg_err *err)
{
    const char *topology;
    int k, n, link_latency, nodes;
    RG_TRY(need_text(r, "topology", &topology, err));
    RG_TRY(need_int(r, "k", &k, err));
    RG_TRY(need_int(r, "n", &n, err));
    RG_TRY(int_or(r, "link_latency", 1, &link_latency, err));
    char key[sizeof r->key];
    snprintf(key, sizeof key, "%.100s %d %d %d %.300s", topology, k, n, link_latency,
             text_or(r, "network", ""));
    if (strcmp(key, r->key) != 0) {
        RG_TRY(build_graph(r, topology, k, n, link_latency, err));
        memcpy(r->key, key, sizeof key);
    }
    config->graph = r->graph;
    RG_TRY(int_or(r, "nodes", r->graph->nodes, &nodes, err));
    if (nodes != r->graph->nodes)
        return rg_fail(err, RG_ERR_INPUT, column_pos(r, "nodes"),
                       "nodes '%d' does not fit the topology, which has %d", nodes,
                       r->graph->nodes);
    return RG_OK;
}

static rg_status read_allocator(const curve_reader *r, const char *column, rg_noc_allocator *out,
                                rg_err *err)
{
    const char *name = text_or(r, column, rg_noc_allocator_names[0]);
    for (int i = 0; rg_noc_allocator_names[i] != NULL; i++)
        if (strcmp(name, rg_noc_allocator_names[i]) == 0) {
            *out = (rg_noc_allocator)i;
            return RG_OK;
        }
    return rg_fail(err, RG_ERR_INPUT, column_pos(r, column),
                   "%s '%.80s' is unknown; separable_input_first, separable_output_first, islip "
                   "and wavefront are known",
                   column, name);
}

/* Routing functions by BookSim's names. */
static const struct {
    const char *name;
    rg_noc_shape shape;
    rg_noc_routing routing;
} routings[] = {
    {"dim_order", RG_NOC_MESH, RG_NOC_ROUTE_TABLE},
    {"dor", RG_NOC_MESH, RG_NOC_ROUTE_TABLE},
    {"xy_yx", RG_NOC_MESH, RG_NOC_ROUTE_XY_YX},
    {"adaptive_xy_yx", RG_NOC_MESH, RG_NOC_ROUTE_ADAPTIVE_XY_YX},
    {"min_adapt", RG_NOC_MESH, RG_NOC_ROUTE_ADAPTIVE},
    {"romm", RG_NOC_MESH, RG_NOC_ROUTE_ROMM},
    {"valiant", RG_NOC_MESH, RG_NOC_ROUTE_VALIANT},
    {"dim_order", RG_NOC_TORUS, RG_NOC_ROUTE_TORUS},
    {"min_adapt", RG_NOC_TORUS, RG_NOC_ROUTE_ADAPTIVE},
    {"valiant", RG_NOC_TORUS, RG_NOC_ROUTE_VALIANT},
    {"nca", RG_NOC_TREE, RG_NOC_ROUTE_TREE},
    {"anca", RG_NOC_TREE, RG_NOC_ROUTE_TREE_ADAPTIVE},
    {"dest_tag", RG_NOC_FLY, RG_NOC_ROUTE_TABLE},
    {"min", RG_NOC_GRAPH, RG_NOC_ROUTE_TABLE},
};

static rg_status read_routing(const curve_reader *r, const rg_noc_graph *graph,
                              rg_noc_router *router, rg_err *err)
{
    const char *name = text_or(r, "routing_function", "");
    char known[200] = "";
    router->one_adaptive_vc = true;
    for (size_t i = 0; i < sizeof routings / sizeof routings[0]; i++) {
        if (routings[i].shape != graph->shape)
            continue;
        if (name[0] == 0 || strcmp(routings[i].name, name) == 0) {
            router->routing = routings[i].routing;
            return RG_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                 known[0] != 0 ? ", " : "", routings[i].name);
    }
    return rg_fail(err, RG_ERR_INPUT, column_pos(r, "routing_function"),
                   "routing_function '%.80s' is unknown for this topology; known: %s", name, known);
}

/* Columns that ridge holds to one value. */
static rg_status refuse_others(const curve_reader *r, rg_err *err)
{
    static const struct {
        const char *column, *value;
    } only[] = {{"router", "iq"},
                {"arb_type", "round_robin"},
                {"input_speedup", "1"},
                {"output_speedup", "1"},
                {"internal_speedup", "1.0"},
                {"output_buffer_size", "-1"},
                {"buffer_policy", "private"},
                {"vc_busy_when_full", "0"},
                {"hold_switch_for_packet", "0"},
                {"priority", "none"},
                {"injection_process", "bernoulli"},
                {"include_queuing", "1"},
                {"inj_ej_latency", "1"},
                {"packet_size_rate", ""}};
    for (size_t i = 0; i < sizeof only / sizeof only[0]; i++) {
        const char *value = text_or(r, only[i].column, only[i].value);
        if (strcmp(value, only[i].value) != 0 &&
            !(strcmp(value, "1") == 0 && strcmp(only[i].value, "1.0") == 0))
            return rg_fail(err, RG_ERR_INPUT, column_pos(r, only[i].column),
                           "%s '%.80s' cannot be simulated; '%s' can", only[i].column, value,
                           only[i].value);
    }
    return RG_OK;
}

static rg_status read_router(const curve_reader *r, rg_noc_config *config, rg_err *err)
{
    rg_noc_router *router = &config->router;
    int prepare, final, speculative, wait;
    RG_TRY(need_int(r, "num_vcs", &router->vcs, err));
    RG_TRY(need_int(r, "vc_buf_size", &router->buffer, err));
    RG_TRY(need_int(r, "routing_delay", &router->routing_delay, err));
    RG_TRY(need_int(r, "vc_alloc_delay", &router->vc_alloc_delay, err));
    RG_TRY(need_int(r, "sw_alloc_delay", &router->switch_alloc_delay, err));
    RG_TRY(need_int(r, "st_prepare_delay", &prepare, err));
    RG_TRY(need_int(r, "st_final_delay", &final, err));
    RG_TRY(need_int(r, "credit_delay", &router->credit_delay, err));
    RG_TRY(int_or(r, "speculative", 0, &speculative, err));
    RG_TRY(int_or(r, "wait_for_tail_credit", 0, &wait, err));
    RG_TRY(int_or(r, "alloc_iters", 1, &router->iterations, err));
    router->traversal_delay = prepare + final;
    router->speculative = speculative != 0;
    router->wait_for_tail_credit = wait != 0;
    RG_TRY(read_allocator(r, "vc_allocator", &router->vc_allocator, err));
    RG_TRY(read_allocator(r, "sw_allocator", &router->switch_allocator, err));
    RG_TRY(read_routing(r, config->graph, router, err));
    return refuse_others(r, err);
}

/* "all", or "request 0-1 reply 2-3". */
static rg_status read_vc_map(const curve_reader *r, rg_noc_class *cl, int vcs, rg_err *err)
{
    const char *map = text_or(r, "vc_map", "all");
    int a, b, c, d, used = 0;
    cl->vc_first = cl->reply_vc_first = 0;
    cl->vc_count = cl->reply_vc_count = vcs;
    if (strcmp(map, "all") == 0)
        return RG_OK;
    if (sscanf(map, "request %4d-%4d reply %4d-%4d%n", &a, &b, &c, &d, &used) != 4 ||
        map[used] != 0 || b < a || d < c)
        return rg_fail(
            err, RG_ERR_INPUT, column_pos(r, "vc_map"),
            "vc_map '%.80s' is not understood; 'all' or 'request 0-1 reply 2-3' would do", map);
    cl->vc_first = a;
    cl->vc_count = b - a + 1;
    cl->reply_vc_first = c;
    cl->reply_vc_count = d - c + 1;
    return RG_OK;
}

/* Which nodes inject, when not all do: those that are no destination of the hotspot list, when
 * their number fits, else the first ones. */
static rg_status read_injectors(curve_reader *r, rg_noc_class *cl, int nodes, int *injecting,
                                rg_err *err)
{
    RG_TRY(int_or(r, "inj_nodes", nodes, injecting, err));
    if (*injecting < 1 || *injecting > nodes)
        return rg_fail(err, RG_ERR_INPUT, column_pos(r, "inj_nodes"),
                       "inj_nodes '%d' is not from 1 to %d, the number of nodes", *injecting,
                       nodes);
    if (*injecting == nodes)
        return RG_OK;
    double *factor = RG_NEW(r->arena, double, nodes, err);
    if (factor == NULL)
        return RG_ERR_LIMIT;
    int others = nodes;
    for (int n = 0; n < nodes; n++)
        factor[n] = 1.0;
    for (int i = 0; i < cl->pattern->spots; i++) {
        others -= factor[cl->pattern->spot[i]] != 0.0;
        factor[cl->pattern->spot[i]] = 0.0;
    }
    if (others != *injecting || cl->pattern->spots == 0) {
        for (int n = 0; n < nodes; n++)
            factor[n] = n < *injecting ? 1.0 : 0.0;
        assume_once(r->replay, "the file does not say which nodes inject; the first inj_nodes do");
    } else {
        assume_once(r->replay, "the nodes that inject are those that are no destination");
    }
    cl->node_factor = factor;
    return RG_OK;
}

/* Sizes of requests and replies: short ones have one flit, and the mean length of the first row
 * tells the others; past saturation the mean says more of what gets through. */
static rg_status read_transactions(curve_reader *r, rg_noc_class *cl, double offered, rg_err *err)
{
    double mean;
    RG_TRY(real_or(r, "avg_packet_len", 3.0, &mean, err));
    RG_TRY(real_or(r, "write_fraction", 0.5, &cl->write_share, err));
    if (r->longer == 0)
        r->longer = (int)lround(2.0 * mean - 1.0);
    const int longer = r->longer;
    if (longer < 1 || longer > UINT16_MAX || cl->write_share < 0.0 || cl->write_share > 1.0)
        return rg_fail(err, RG_ERR_INPUT, column_pos(r, "avg_packet_len"),
                       "a mean length of '%g' flits or a write fraction of '%g' is impossible",
                       mean, cl->write_share);
    cl->request_reply = true;
    cl->read_request = cl->write_reply = 1;
    cl->read_reply = cl->write_request = longer;
    cl->packets_per_cycle = offered / (1 + longer);
    assume_once(r->replay, "read requests and write replies have 1 flit, read replies and write "
                           "requests what the mean packet length asks for");
    return RG_OK;
}

static rg_status read_traffic(curve_reader *r, rg_noc_replay_row *row, rg_err *err)
{
    rg_noc_config *config = &row->config;
    rg_noc_class *cl = &config->classes[0];
    const char *traffic;
    rg_noc_pattern *pattern;
    int read_write;
    config->class_count = 1;
    RG_TRY(need_text(r, "traffic", &traffic, err));
    traffic = rg_arena_strdup(r->arena, traffic, err);
    if (traffic == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(rg_noc_pattern_parse(r->arena, traffic, config->graph, column_pos(r, "traffic"),
                                &pattern, err));
    cl->pattern = pattern;
    RG_TRY(need_int(r, "packet_size", &cl->flits, err));
    if (cl->flits < 1 || cl->flits > UINT16_MAX)
        return rg_fail(err, RG_ERR_INPUT, column_pos(r, "packet_size"),
                       "packet_size '%d' is not from 1 to %d", cl->flits, UINT16_MAX);
    RG_TRY(read_vc_map(r, cl, config->router.vcs, err));
    RG_TRY(read_injectors(r, cl, config->graph->nodes, &row->injecting_nodes, err));
    int c;
    double offered;
    RG_TRY(rg_csv_column(r->csv, "offered_flits", &c, err));
    RG_TRY(rg_csv_real(r->csv, c, &offered, err));
    row->reference.offered_flits = offered;
    cl->packets_per_cycle = offered / cl->flits;
    RG_TRY(int_or(r, "use_read_write", 0, &read_write, err));
    if (read_write)
        RG_TRY(read_transactions(r, cl, offered, err));
    if (!(offered > 0.0) || cl->packets_per_cycle > 1.0000001)
        return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(r->csv, c),
                       "offered_flits '%g' is not above 0 and at most one packet a cycle", offered);
    return RG_OK;
}

static rg_status read_protocol(const curve_reader *r, rg_noc_replay_row *row, rg_err *err)
{
    rg_noc_protocol *p = &row->protocol;
    int seed;
    *p = RG_NOC_PROTOCOL_DEFAULT;
    p->backlog_threshold = INFINITY; /* the reference calls such points stable */
    RG_TRY(int_or(r, "sample_period", p->sample_period, &p->sample_period, err));
    RG_TRY(int_or(r, "warmup_periods", p->warmup_periods, &p->warmup_periods, err));
    RG_TRY(int_or(r, "max_samples", p->max_periods, &p->max_periods, err));
    RG_TRY(real_or(r, "latency_thres", p->latency_threshold, &p->latency_threshold, err));
    RG_TRY(real_or(r, "stopping_thres", p->stop_threshold, &p->stop_threshold, err));
    const char *type = text_or(r, "sim_type", "latency");
    if (strcmp(type, "latency") != 0 && strcmp(type, "throughput") != 0)
        return rg_fail(err, RG_ERR_INPUT, column_pos(r, "sim_type"),
                       "sim_type '%.80s' is unknown; latency or throughput would do", type);
    p->latency = strcmp(type, "latency") == 0;
    RG_TRY(int_or(r, "seed", 1, &seed, err));
    row->config.seed = (uint64_t)seed;
    return RG_OK;
}

static rg_status read_reference(const curve_reader *r, rg_noc_reference *ref, rg_err *err)
{
    int stable;
    RG_TRY(int_or(r, "stable", 1, &stable, err));
    ref->stable = stable != 0;
    RG_TRY(real_or(r, "avg_packet_latency", NAN, &ref->packet_latency, err));
    RG_TRY(real_or(r, "avg_network_latency", NAN, &ref->network_latency, err));
    RG_TRY(real_or(r, "avg_router_hops", NAN, &ref->hops, err));
    RG_TRY(real_or(r, "accepted_flits", NAN, &ref->accepted, err));
    RG_TRY(real_or(r, "accepted_flits_min_node", NAN, &ref->accepted_least, err));
    return real_or(r, "accepted_flits_max_node", NAN, &ref->accepted_most, err);
}

static double cycles_per_hop(const rg_noc_config *config)
{
    const rg_noc_router *r = &config->router;
    const rg_noc_graph *g = config->graph;
    const int longer =
        r->vc_alloc_delay > r->switch_alloc_delay ? r->vc_alloc_delay : r->switch_alloc_delay;
    double links = 0.0, latency = 0.0;
    for (int o = 0; o < g->outputs; o++)
        if (g->out_target[o] >= 0) {
            links++;
            latency += g->out_channel[o].latency;
        }
    return r->routing_delay + r->traversal_delay + (links > 0.0 ? latency / links : 0.0) +
           (r->speculative ? longer : r->vc_alloc_delay + r->switch_alloc_delay);
}

static rg_status read_row(curve_reader *r, rg_noc_replay_row *row, rg_err *err)
{
    *row = (rg_noc_replay_row){.pos = rg_csv_pos(r->csv, 0)};
    RG_TRY(read_graph(r, &row->config, err));
    RG_TRY(read_router(r, &row->config, err));
    RG_TRY(read_traffic(r, row, err));
    RG_TRY(read_protocol(r, row, err));
    row->cycles_per_hop = cycles_per_hop(&row->config);
    return read_reference(r, &row->reference, err);
}

rg_status rg_noc_replay_load(rg_arena *arena, const char *path, const char *topology,
                             rg_noc_replay **out, rg_err *err)
{
    rg_noc_replay *replay = RG_NEW(arena, rg_noc_replay, 1, err);
    if (replay == NULL)
        return RG_ERR_LIMIT;
    replay->path = path;
    curve_reader r = {.arena = arena, .replay = replay, .topology = topology};
    int room = 0;
    bool more = true;
    RG_TRY(rg_csv_open(arena, path, &r.csv, err));
    rg_status status = rg_csv_next(r.csv, &more, err);
    while (status == RG_OK && more) {
        if (replay->count == room) {
            room = room > 0 ? 2 * room : 32;
            rg_noc_replay_row *grown =
                room <= MAX_ROWS ? RG_NEW(arena, rg_noc_replay_row, room, err) : NULL;
            if (grown == NULL) {
                status = rg_fail(err, RG_ERR_LIMIT, (rg_pos){path, 0, 0},
                                 "more rows than can be replayed");
                break;
            }
            if (replay->count > 0)
                memcpy(grown, replay->rows, (size_t)replay->count * sizeof *grown);
            replay->rows = grown;
        }
        status = read_row(&r, &replay->rows[replay->count], err);
        if (status == RG_OK) {
            replay->count++;
            status = rg_csv_next(r.csv, &more, err);
        }
    }
    rg_csv_close(r.csv);
    if (status != RG_OK)
        return status;
    if (replay->count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 0, 0}, "holds no row");
    rg_noc_replay_find_saturation(replay);
    *out = replay;
    return RG_OK;
}

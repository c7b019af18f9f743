/* noc/setup.c: from a configuration to the state of a simulation. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/state.h"

const char *const rg_noc_allocator_names[] = {"separable_input_first", "separable_output_first",
                                              "islip", "wavefront", NULL};
const char *const rg_noc_routing_names[] = {"table",         "torus", "tree",  "adaptive",
                                            "valiant",       "romm",  "xy_yx", "adaptive_xy_yx",
                                            "tree_adaptive", NULL};

static rg_status check_between(const char *what, int value, int least, int most, rg_err *err)
{
    if (value >= least && value <= most)
        return RG_OK;
    return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "%s is '%d'; %d to %d can be simulated", what,
                   value, least, most);
}

/* Topologies that a routing function fits, as bits of rg_noc_shape, and the VCs that it needs on a
 * mesh; a torus needs twice as many. */
static const struct {
    unsigned shapes;
    int vcs;
} routings[] = {
    [RG_NOC_ROUTE_TABLE] = {1u << RG_NOC_MESH | 1u << RG_NOC_FLY | 1u << RG_NOC_GRAPH, 1},
    [RG_NOC_ROUTE_TORUS] = {1u << RG_NOC_TORUS, 1},
    [RG_NOC_ROUTE_TREE] = {1u << RG_NOC_TREE, 1},
    [RG_NOC_ROUTE_ADAPTIVE] = {1u << RG_NOC_MESH | 1u << RG_NOC_TORUS, 2},
    [RG_NOC_ROUTE_VALIANT] = {1u << RG_NOC_MESH | 1u << RG_NOC_TORUS, 2},
    [RG_NOC_ROUTE_ROMM] = {1u << RG_NOC_MESH, 2},
    [RG_NOC_ROUTE_XY_YX] = {1u << RG_NOC_MESH, 2},
    [RG_NOC_ROUTE_ADAPTIVE_XY_YX] = {1u << RG_NOC_MESH, 2},
    [RG_NOC_ROUTE_TREE_ADAPTIVE] = {1u << RG_NOC_TREE, 1},
};

static rg_status check_routing(const rg_noc_config *config, rg_err *err)
{
    const rg_noc_graph *graph = config->graph;
    const rg_noc_routing routing = config->router.routing;
    if ((routings[routing].shapes >> graph->shape & 1) == 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "routing '%s' does not fit this topology; a mesh takes table, adaptive, "
                       "valiant, romm, xy_yx or adaptive_xy_yx, a torus torus, adaptive or "
                       "valiant, a tree tree or tree_adaptive, all else table",
                       rg_noc_routing_names[routing]);
    int needed = routings[routing].vcs;
    if (graph->shape == RG_NOC_TORUS)
        needed =
            routing == RG_NOC_ROUTE_ADAPTIVE && !config->router.one_adaptive_vc ? 3 : 2 * needed;
    for (int c = 0; c < config->class_count; c++) {
        const rg_noc_class *cl = &config->classes[c];
        const int least = cl->request_reply && cl->reply_vc_count < cl->vc_count
                              ? cl->reply_vc_count
                              : cl->vc_count;
        if (least < needed)
            return rg_fail(
                err, RG_ERR_MODEL, RG_NOWHERE,
                "class %d has '%d' virtual channels; routing '%s' needs %d or more to be "
                "free of deadlock",
                c, least, rg_noc_routing_names[routing], needed);
    }
    if (graph->shape == RG_NOC_MESH || graph->shape == RG_NOC_TORUS)
        for (int d = 0; d < graph->dims; d++)
            if (graph->extent[d] < 2)
                return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                               "dimension %d has a single router; leave that dimension out", d);
    return RG_OK;
}

static rg_status check_class(const rg_noc_config *config, int c, rg_err *err)
{
    const rg_noc_class *cl = &config->classes[c];
    const int vcs = config->router.vcs;
    if (config->sends == NULL && cl->pattern == NULL)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "class %d has no traffic pattern", c);
    RG_TRY(check_between("the first virtual channel of a class", cl->vc_first, 0, vcs - 1, err));
    RG_TRY(check_between("the number of virtual channels of a class", cl->vc_count, 1,
                         vcs - cl->vc_first, err));
    if (config->sends != NULL)
        return RG_OK;
    if (!cl->request_reply)
        return check_between("the packet length in flits", cl->flits, 1, UINT16_MAX, err);
    RG_TRY(
        check_between("the first virtual channel of replies", cl->reply_vc_first, 0, vcs - 1, err));
    RG_TRY(check_between("the number of virtual channels of replies", cl->reply_vc_count, 1,
                         vcs - cl->reply_vc_first, err));
    RG_TRY(check_between("read request flits", cl->read_request, 1, UINT16_MAX, err));
    RG_TRY(check_between("read reply flits", cl->read_reply, 1, UINT16_MAX, err));
    RG_TRY(check_between("write request flits", cl->write_request, 1, UINT16_MAX, err));
    return check_between("write reply flits", cl->write_reply, 1, UINT16_MAX, err);
}

static rg_status check_sends(const rg_noc_config *config, rg_err *err)
{
    if (config->send_count >= INT32_MAX)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than %d messages", INT32_MAX);
    RG_TRY(check_between("the longest packet in flits", config->max_packet, 1, UINT16_MAX, err));
    for (int64_t i = 0; i < config->send_count; i++) {
        const rg_noc_send *send = &config->sends[i];
        RG_TRY(check_between("a trace message's source", send->source, 0, config->graph->nodes - 1,
                             err));
        RG_TRY(check_between("a trace message's destination", send->destination, 0,
                             config->graph->nodes - 1, err));
        RG_TRY(check_between("a trace message's flits", send->flits, 1, INT32_MAX, err));
        RG_TRY(check_between("a trace message's class", send->class_index, 0,
                             config->class_count - 1, err));
    }
    for (int64_t i = 0; i < config->order_count; i++) {
        const rg_noc_order *order = &config->orders[i];
        const int last = (int)config->send_count - 1;
        RG_TRY(check_between("a message that comes before", order->before, 0, last, err));
        RG_TRY(check_between("a message that comes after", order->after, 0, last, err));
    }
    return RG_OK;
}

static rg_status check_config(const rg_noc_config *config, rg_err *err)
{
    const rg_noc_router *r = &config->router;
    RG_TRY(check_between("the number of virtual channels", r->vcs, 1, RG_NOC_MAX_VCS, err));
    RG_TRY(check_between("the buffer of a virtual channel in flits", r->buffer, 1, 4096, err));
    RG_TRY(check_between("routing_delay", r->routing_delay, 0, 256, err));
    RG_TRY(check_between("vc_alloc_delay", r->vc_alloc_delay, 1, 256, err));
    RG_TRY(check_between("sw_alloc_delay", r->switch_alloc_delay, 1, 256, err));
    RG_TRY(check_between("the switch traversal delay", r->traversal_delay, 1, 256, err));
    RG_TRY(check_between("credit_delay", r->credit_delay, 0, 256, err));
    RG_TRY(check_between("alloc_iters", r->iterations, 1, 64, err));
    RG_TRY(check_between("the number of classes", config->class_count, 1, RG_NOC_MAX_CLASSES, err));
    for (int c = 0; c < config->class_count; c++)
        RG_TRY(check_class(config, c, err));
    if (config->sends != NULL)
        RG_TRY(check_sends(config, err));
    return check_routing(config, err);
}

static rg_status new_bit_set(rg_arena *arena, uint32_t bits, bit_set *set, rg_err *err)
{
    set->words = (bits + 63) / 64;
    set->summaries = (set->words + 63) / 64;
    set->word = RG_NEW(arena, uint64_t, set->words, err);
    set->summary = RG_NEW(arena, uint64_t, set->summaries, err);
    return set->word != NULL && set->summary != NULL ? RG_OK : RG_ERR_LIMIT;
}

static uint32_t range_mask(int first, int count)
{
    return (count == 32 ? UINT32_MAX : (1u << count) - 1) << first;
}

/* Next output by dimension order on a mesh, by destination digit on a fly, as local port. */
static int regular_port(const rg_noc_graph *g, int router, int node)
{
    if (g->shape == RG_NOC_FLY) {
        const int k = g->extent[0], stage = router / (g->nodes / k);
        return node / rg_noc_power(k, g->dims - 1 - stage) % k;
    }
    int step = 1, port = 0;
    for (int d = 0; d < g->dims; d++) {
        const int k = g->extent[d], here = router / step % k, there = node / step % k;
        const int plus = here<k - 1, minus = here> 0;
        if (here < there)
            return port;
        if (here > there)
            return port + plus;
        port += plus + minus;
        step *= k;
    }
    return port;
}

static rg_status fill_table(rg_noc_sim *s, rg_err *err)
{
    const rg_noc_graph *g = s->graph;
    const size_t size = (size_t)g->routers * (size_t)g->nodes;
    s->table = RG_NEW(s->arena, uint32_t, size, err);
    if (s->table == NULL)
        return RG_ERR_LIMIT;
    int32_t *paths = NULL;
    if (g->shape == RG_NOC_GRAPH)
        RG_TRY(rg_noc_graph_table(s->arena, g, &paths, err));
    for (int r = 0; r < g->routers; r++)
        for (int n = 0; n < g->nodes; n++) {
            const size_t i = (size_t)r * (size_t)g->nodes + (size_t)n;
            s->table[i] =
                (uint32_t)(paths != NULL ? paths[i] : g->out_first[r] + regular_port(g, r, n));
        }
    return RG_OK;
}

/* Digits of the nodes, outputs by direction, and the direction in which each input receives. */
static rg_status fill_directions(rg_noc_sim *s, rg_err *err)
{
    const rg_noc_graph *g = s->graph;
    const size_t dims = (size_t)g->dims;
    s->digit = RG_NEW(s->arena, uint16_t, (size_t)g->nodes * dims, err);
    s->direction = RG_NEW(s->arena, int16_t, (size_t)g->routers * 2 * dims, err);
    s->came = RG_NEW(s->arena, int8_t, g->inputs, err);
    if (s->digit == NULL || s->direction == NULL || s->came == NULL)
        return RG_ERR_LIMIT;
    for (int r = 0; r < g->routers; r++) {
        int step = 1, port = 0, input = g->in_first[r];
        for (int d = 0; d < g->dims; d++) {
            const int k = g->extent[d], here = r / step % k;
            const bool wraps = g->shape == RG_NOC_TORUS;
            s->digit[(size_t)r * dims + (size_t)d] = (uint16_t)here;
            int16_t *way = &s->direction[((size_t)r * dims + (size_t)d) * 2];
            way[0] = here < k - 1 || wraps ? (int16_t)port++ : -1;
            way[1] = here > 0 || wraps ? (int16_t)port++ : -1;
            if (way[0] >= 0) /* from the + neighbour, so it travels - */
                s->came[input++] = (int8_t)(2 * d + 1);
            if (way[1] >= 0)
                s->came[input++] = (int8_t)(2 * d);
            step *= k;
        }
        s->came[input] = -1;
    }
    return RG_OK;
}

static rg_status prepare_routing(rg_noc_sim *s, rg_err *err)
{
    const rg_noc_graph *g = s->graph;
    s->routing = s->config->router.routing;
    s->dims = g->dims;
    for (int d = 0; d < RG_NOC_MAX_DIMS; d++)
        s->extent[d] = g->extent[d];
    if (s->routing == RG_NOC_ROUTE_TABLE)
        return fill_table(s, err);
    if (g->shape != RG_NOC_TREE)
        return fill_directions(s, err);
    s->tree_power = RG_NEW(s->arena, int32_t, g->dims + 1, err);
    if (s->tree_power == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i <= g->dims; i++)
        s->tree_power[i] = rg_noc_power(g->extent[0], i);
    return RG_OK;
}

static void fill_output(rg_noc_sim *s, uint32_t port, const rg_noc_channel *channel,
                        uint32_t target, uint32_t delay)
{
    s->output[port] = (output_port){.free = range_mask(0, (int)s->vcs),
                                    .best = RG_NOC_NONE,
                                    .target = target << s->vc_shift,
                                    .delay = delay,
                                    .period = (uint32_t)channel->period};
    s->serial |= channel->period > 1;
}

static void fill_ports(rg_noc_sim *s)
{
    const rg_noc_graph *g = s->graph;
    const rg_noc_router *r = &s->config->router;
    const uint32_t st = (uint32_t)r->traversal_delay, credit = (uint32_t)r->credit_delay;
    for (int o = 0; o < g->outputs; o++) {
        const rg_noc_channel *channel = &g->out_channel[o];
        const uint32_t target = g->out_target[o] >= 0 ? (uint32_t)g->out_target[o]
                                                      : s->inputs + (uint32_t)channel->node;
        fill_output(s, (uint32_t)o, channel, target, st + (uint32_t)channel->latency + 1);
        s->output[o].ptr = (uint32_t)g->in_first[g->out_router[o]] << s->vc_shift;
        if (g->out_target[o] < 0)
            s->input[target] =
                (input_port){.upstream = (uint32_t)o << s->vc_shift,
                             .credit_delay = (uint32_t)channel->credit_latency + 1 + credit};
    }
    for (int i = 0; i < g->inputs; i++) {
        const rg_noc_channel *channel = &g->in_channel[i];
        const uint32_t router = (uint32_t)g->in_router[i];
        const bool from_node = g->in_source[i] < 0;
        const uint32_t feeder =
            from_node ? s->outputs + (uint32_t)channel->node : (uint32_t)g->in_source[i];
        s->input[i] = (input_port){
            .ptr = (uint32_t)g->out_first[router],
            .upstream = feeder << s->vc_shift,
            .credit_delay = (uint32_t)channel->credit_latency + 1 + (from_node ? 0 : credit),
            .row = s->table != NULL ? &s->table[(size_t)router * s->nodes] : NULL};
        if (from_node)
            fill_output(s, feeder, channel, (uint32_t)i, (uint32_t)channel->latency + 1);
    }
}

static rg_status new_ports(rg_noc_sim *s, rg_err *err)
{
    const size_t ivcs = (size_t)s->inputs << s->vc_shift;
    const size_t ovcs = (size_t)(s->outputs + s->nodes) << s->vc_shift;
    s->input = RG_NEW(s->arena, input_port, s->inputs + s->nodes, err);
    s->ivc = RG_NEW(s->arena, input_vc, ivcs, err);
    s->ring = RG_NEW(s->arena, uint32_t, ivcs * (s->ring_mask + 1), err);
    s->output = RG_NEW(s->arena, output_port, s->outputs + s->nodes, err);
    s->ovc = RG_NEW(s->arena, output_vc, ovcs, err);
    s->va_won = RG_NEW(s->arena, uint32_t, ovcs, err);
    s->sa_won = RG_NEW(s->arena, uint32_t, s->outputs, err);
    if (s->input == NULL || s->ivc == NULL || s->ring == NULL || s->output == NULL ||
        s->ovc == NULL || s->va_won == NULL || s->sa_won == NULL)
        return RG_ERR_LIMIT;
    if (s->sa_wait > 0) {
        s->arrived_at = RG_NEW(s->arena, uint32_t, ivcs * (s->ring_mask + 1), err);
        if (s->arrived_at == NULL)
            return RG_ERR_LIMIT;
    }
    for (size_t i = 0; i < ivcs; i++) {
        s->ivc[i].ovc = RG_NOC_NONE;
        s->ivc[i].base = (uint32_t)i * (s->ring_mask + 1);
    }
    for (size_t i = 0; i < ovcs; i++)
        s->ovc[i] =
            (output_vc){.owner = RG_NOC_NONE, .best = RG_NOC_NONE, .credits = (uint16_t)s->buffer};
    s->busy_words = (s->inputs + 63) / 64;
    s->busy = RG_NEW(s->arena, uint64_t, s->busy_words, err);
    if (s->busy == NULL)
        return RG_ERR_LIMIT;
    fill_ports(s);
    return RG_OK;
}

static rg_status new_wheels(rg_noc_sim *s, rg_err *err)
{
    uint32_t longest = s->va_wait + s->sa_wait + (uint32_t)s->config->router.routing_delay + 2;
    for (uint32_t o = 0; o < s->outputs + s->nodes; o++)
        longest = s->output[o].delay > longest ? s->output[o].delay : longest;
    for (uint32_t i = 0; i < s->inputs + s->nodes; i++)
        longest = s->input[i].credit_delay > longest ? s->input[i].credit_delay : longest;
    uint32_t size = 4;
    while (size <= longest + 1)
        size *= 2;
    s->wheel_mask = size - 1;
    s->flit_room = s->outputs + s->nodes;
    s->credit_room = s->inputs + s->nodes;
    s->ready_room = s->slow ? s->inputs << s->vc_shift : 0;
    s->flit_wheel = RG_NEW(s->arena, flit_event, (size_t)size * s->flit_room, err);
    s->credit_wheel = RG_NEW(s->arena, uint32_t, (size_t)size * s->credit_room, err);
    s->ready_wheel = RG_NEW(s->arena, uint32_t, (size_t)size * s->ready_room, err);
    s->flit_end = RG_NEW(s->arena, flit_event *, size, err);
    s->credit_end = RG_NEW(s->arena, uint32_t *, size, err);
    s->ready_count = RG_NEW(s->arena, uint32_t, size, err);
    if (s->flit_wheel == NULL || s->credit_wheel == NULL || s->ready_wheel == NULL ||
        s->flit_end == NULL || s->credit_end == NULL || s->ready_count == NULL)
        return RG_ERR_LIMIT;
    for (uint32_t b = 0; b < size; b++) {
        s->flit_end[b] = &s->flit_wheel[(size_t)b * s->flit_room];
        s->credit_end[b] = &s->credit_wheel[(size_t)b * s->credit_room];
    }
    return RG_OK;
}

static rg_status new_tally(rg_arena *arena, tally *t, rg_err *err)
{
    t->least = UINT32_MAX;
    t->bucket = RG_NEW(arena, uint32_t, TALLY_BUCKETS, err);
    return t->bucket != NULL ? RG_OK : RG_ERR_LIMIT;
}

static rg_status new_pool(rg_noc_sim *s, rg_err *err)
{
    /* Everything that can be in the network at once would fit; most never is. */
    s->pool_size = 4 * s->nodes * (uint32_t)s->config->class_count + 1024;
    s->pool = RG_NEW(s->arena, packet, s->pool_size, err);
    if (s->pool == NULL)
        return RG_ERR_LIMIT;
    s->pool_free = RG_NOC_NONE;
    for (uint32_t i = s->pool_size; i-- > 0;) {
        s->pool[i].link = s->pool_free;
        s->pool_free = i;
    }
    return RG_OK;
}

static void fill_kinds(rg_noc_sim *s)
{
    for (int c = 0; c < s->config->class_count; c++) {
        const rg_noc_class *cl = &s->config->classes[c];
        s->kind_mask[2 * c] = range_mask(cl->vc_first, cl->vc_count);
        s->kind_mask[2 * c + 1] =
            cl->request_reply ? range_mask(cl->reply_vc_first, cl->reply_vc_count) : 0;
    }
}

rg_status rg_noc_sim_new(rg_arena *arena, const rg_noc_config *config, rg_noc_sim **out,
                         rg_err *err)
{
    RG_TRY(check_config(config, err));
    rg_noc_sim *s = RG_NEW(arena, rg_noc_sim, 1, err);
    if (s == NULL)
        return RG_ERR_LIMIT;
    const rg_noc_router *r = &config->router;
    s->config = config;
    s->graph = config->graph;
    s->arena = arena;
    s->vcs = (uint32_t)r->vcs;
    while (1u << s->vc_shift < s->vcs)
        s->vc_shift++;
    s->buffer = (uint32_t)r->buffer;
    while (s->ring_mask + 1 < s->buffer)
        s->ring_mask = 2 * s->ring_mask + 1;
    s->inputs = (uint32_t)config->graph->inputs;
    s->outputs = (uint32_t)config->graph->outputs;
    s->nodes = (uint32_t)config->graph->nodes;
    s->va_wait = (uint32_t)(r->routing_delay + r->vc_alloc_delay - 1);
    s->sa_wait = (uint32_t)r->switch_alloc_delay - 1;
    s->speculative = r->speculative;
    s->slow = s->va_wait > 0 || s->sa_wait > 0;
    s->drain_from = UINT32_MAX;
    s->batch_length = 1;
    s->lookahead = r->routing != RG_NOC_ROUTE_TABLE && r->routing_delay == 0;
    rg_rng_seed(&s->rng, config->seed, 0x6e6f63);
    if (config->lockstep) {
        s->knuth = RG_NEW(arena, rg_knuth, 1, err);
        if (s->knuth == NULL)
            return RG_ERR_LIMIT;
        rg_knuth_seed(s->knuth, config->seed);
    }
    RG_TRY(prepare_routing(s, err));
    RG_TRY(new_ports(s, err));
    RG_TRY(new_wheels(s, err));
    if (r->vc_allocator != RG_NOC_SEPARABLE_INPUT_FIRST ||
        r->switch_allocator != RG_NOC_SEPARABLE_INPUT_FIRST || r->routing == RG_NOC_ROUTE_ADAPTIVE)
        RG_TRY(rg_noc_state_alloc_new(s, err));
    RG_TRY(new_tally(arena, &s->packet_latency, err));
    RG_TRY(new_tally(arena, &s->network_latency, err));
    RG_TRY(new_tally(arena, &s->per_hop, err));
    RG_TRY(new_pool(s, err));
    fill_kinds(s);
    s->source = RG_NEW(arena, source, s->nodes * (uint32_t)config->class_count, err);
    s->last_class = RG_NEW(arena, uint8_t, s->nodes, err);
    s->node_injected = RG_NEW(arena, uint32_t, s->nodes, err);
    s->node_accepted = RG_NEW(arena, uint32_t, s->nodes, err);
    s->node_packets = RG_NEW(arena, uint32_t, s->nodes, err);
    if (s->source == NULL || s->last_class == NULL || s->node_injected == NULL ||
        s->node_accepted == NULL || s->node_packets == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(new_bit_set(arena, s->nodes, &s->active, err));
    RG_TRY(rg_noc_state_sources(s, err));
    if (config->sends != NULL)
        RG_TRY(rg_noc_state_stream_new(s, err));
    *out = s;
    return RG_OK;
}

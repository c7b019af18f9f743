/* noc/traffic.c: patterns from their names. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/traffic.h"

#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/text.h"

static const char *const names[] = {"uniform",    "transpose", "bitcomp",     "bitrev",
                                    "shuffle",    "tornado",   "neighbor",    "diagonal",
                                    "asymmetric", "hotspot",   "permutation", NULL};

static int address_bits(int nodes)
{
    int bits = 0;
    while ((1 << bits) < nodes)
        bits++;
    return (1 << bits) == nodes ? bits : -1;
}

static int bit_target(rg_noc_pattern_kind kind, int a, int bits)
{
    const int mask = (1 << bits) - 1, half = bits / 2;
    int reversed = 0;
    switch (kind) {
    case RG_NOC_TRANSPOSE:
        return ((a << half) | (a >> half)) & mask;
    case RG_NOC_BITCOMP:
        return ~a & mask;
    case RG_NOC_SHUFFLE:
        return bits == 0 ? a : ((a << 1) | (a >> (bits - 1))) & mask;
    default:
        for (int i = 0; i < bits; i++)
            reversed |= (a >> i & 1) << (bits - 1 - i);
        return reversed;
    }
}

/* Tornado and neighbour move every digit by a fixed distance. */
static int digit_target(rg_noc_pattern_kind kind, const rg_noc_graph *graph, int a)
{
    int target = 0, step = 1;
    const int dims = graph->shape == RG_NOC_GRAPH ? 1 : graph->dims;
    for (int d = 0; d < dims; d++) {
        const bool cube = graph->shape == RG_NOC_MESH || graph->shape == RG_NOC_TORUS;
        const int k = graph->shape == RG_NOC_GRAPH ? graph->nodes : graph->extent[cube ? d : 0];
        const int move = kind == RG_NOC_NEIGHBOR ? 1 : (k + 1) / 2 - 1;
        target += (a / step % k + move) % k * step;
        step *= k;
    }
    return target;
}

static void shuffle_nodes(rg_noc_pattern *p, uint64_t seed)
{
    rg_rng rng;
    rg_rng_seed(&rng, seed, 0x7065726d);
    for (int i = 0; i < p->nodes; i++)
        p->target[i] = i;
    for (int i = p->nodes - 1; i > 0; i--) {
        const int j = (int)rg_rng_below(&rng, (uint32_t)i + 1);
        const int32_t kept = p->target[i];
        p->target[i] = p->target[j];
        p->target[j] = kept;
    }
}

typedef struct int_list {
    int64_t *value;
    int count;
} int_list;

/* "{1,2,3}" or a single number from *cursor on; false when it is neither. */
static bool read_list(const char **cursor, int_list *list, int room)
{
    const char *c = *cursor;
    const bool braces = *c == '{';
    c += braces;
    for (list->count = 0;;) {
        char *end;
        if (list->count == room || *c < '0' || *c > '9')
            return false;
        const long long value = strtoll(c, &end, 10);
        if (value > INT32_MAX)
            return false;
        list->value[list->count++] = value;
        c = end;
        if (*c != ',' || !braces)
            break;
        c++;
    }
    if (braces && *c++ != '}')
        return false;
    *cursor = c;
    return true;
}

/* "({{nodes},{weights}})", "({{nodes}})", "({nodes})" or "(node)". */
static bool read_spots(const char *text, int_list *nodes, int_list *weights, int room)
{
    if (*text++ != '(')
        return false;
    const bool outer = text[0] == '{' && text[1] == '{';
    text += outer;
    weights->count = 0;
    if (!read_list(&text, nodes, room))
        return false;
    if (outer && *text == ',') {
        text++;
        if (!read_list(&text, weights, room) || weights->count != nodes->count)
            return false;
    }
    if (outer && *text++ != '}')
        return false;
    return strcmp(text, ")") == 0;
}

static rg_status parse_hotspot(rg_arena *arena, const char *arguments, rg_noc_pattern *p,
                               rg_pos pos, rg_err *err)
{
    const int room = (int)strlen(arguments) + 1;
    int_list nodes = {RG_NEW(arena, int64_t, room, err), 0};
    int_list weights = {RG_NEW(arena, int64_t, room, err), 0};
    if (nodes.value == NULL || weights.value == NULL)
        return RG_ERR_LIMIT;
    if (!read_spots(arguments, &nodes, &weights, room))
        return rg_fail(
            err, RG_ERR_INPUT, pos,
            "traffic '%.80s' is not a list of nodes; write hotspot({{8,9},{3,1}}), nodes "
            "first and weights after them",
            p->text);
    p->spots = nodes.count;
    p->spot = RG_NEW(arena, int32_t, nodes.count, err);
    p->spot_before = RG_NEW(arena, int64_t, nodes.count + 1, err);
    if (p->spot == NULL || p->spot_before == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < nodes.count; i++) {
        if (nodes.value[i] >= p->nodes)
            return rg_fail(err, RG_ERR_INPUT, pos,
                           "hotspot node '%lld' is outside the network of %d nodes (0 to %d)",
                           (long long)nodes.value[i], p->nodes, p->nodes - 1);
        p->spot[i] = (int32_t)nodes.value[i];
        p->spot_before[i + 1] = p->spot_before[i] + (weights.count > 0 ? weights.value[i] : 1);
    }
    if (p->spot_before[p->spots] < 1 || p->spot_before[p->spots] > INT32_MAX)
        return rg_fail(err, RG_ERR_INPUT, pos,
                       "hotspot weights sum to '%lld'; they must sum to 1 up to 2147483647",
                       (long long)p->spot_before[p->spots]);
    return RG_OK;
}

static rg_status fill_targets(rg_arena *arena, const rg_noc_graph *graph, rg_noc_pattern *p,
                              rg_pos pos, rg_err *err)
{
    const int bits = address_bits(p->nodes);
    const bool by_bits = p->kind >= RG_NOC_TRANSPOSE && p->kind <= RG_NOC_SHUFFLE;
    if (by_bits && bits < 0)
        return rg_fail(err, RG_ERR_INPUT, pos,
                       "traffic '%s' works on address bits, and '%d' nodes are no power of two",
                       names[p->kind], p->nodes);
    if (p->kind == RG_NOC_TRANSPOSE && bits % 2 != 0)
        return rg_fail(err, RG_ERR_INPUT, pos,
                       "traffic 'transpose' needs an even number of address bits, and '%d' nodes "
                       "have %d",
                       p->nodes, bits);
    p->target = RG_NEW(arena, int32_t, p->nodes, err);
    if (p->target == NULL)
        return RG_ERR_LIMIT;
    for (int a = 0; a < p->nodes; a++)
        p->target[a] = by_bits ? bit_target(p->kind, a, bits) : digit_target(p->kind, graph, a);
    return RG_OK;
}

rg_status rg_noc_pattern_parse(rg_arena *arena, const char *text, const rg_noc_graph *graph,
                               rg_pos pos, rg_noc_pattern **out, rg_err *err)
{
    const size_t length = strcspn(text, "(");
    const char *name = rg_arena_copy(arena, text, length, err);
    rg_noc_pattern *p = RG_NEW(arena, rg_noc_pattern, 1, err);
    if (name == NULL || p == NULL)
        return RG_ERR_LIMIT;
    if (strcmp(name, "neighbour") == 0)
        name = "neighbor";
    int kind = 0;
    while (names[kind] != NULL && strcmp(names[kind], name) != 0)
        kind++;
    if (names[kind] == NULL) {
        const char *near = rg_text_nearest(name, names);
        return rg_fail(err, RG_ERR_INPUT, pos,
                       "traffic '%.80s' is unknown; %s%s%suniform, transpose, bitcomp, bitrev, "
                       "shuffle, tornado, neighbor, diagonal, asymmetric, hotspot(...) and "
                       "permutation(seed) are known",
                       text, near ? "did you mean '" : "", near ? near : "", near ? "'? " : "");
    }
    *p = (rg_noc_pattern){.kind = (rg_noc_pattern_kind)kind, .text = text, .nodes = graph->nodes};
    *out = p;
    if (p->kind == RG_NOC_HOTSPOT)
        return parse_hotspot(arena, text + length, p, pos, err);
    if (p->kind == RG_NOC_PERMUTATION) {
        int_list seed = {(int64_t[1]){0}, 0}, none = {(int64_t[1]){0}, 0};
        if (text[length] != 0 && !read_spots(text + length, &seed, &none, 1))
            return rg_fail(err, RG_ERR_INPUT, pos,
                           "traffic '%.80s' has no seed that can be read; write permutation(7)",
                           text);
        p->target = RG_NEW(arena, int32_t, p->nodes, err);
        if (p->target == NULL)
            return RG_ERR_LIMIT;
        shuffle_nodes(p, (uint64_t)seed.value[0]);
        return RG_OK;
    }
    if (text[length] != 0)
        return rg_fail(err, RG_ERR_INPUT, pos, "traffic '%s' takes no arguments, found '%.80s'",
                       name, text + length);
    if (p->kind == RG_NOC_ASYMMETRIC && p->nodes % 2 != 0)
        return rg_fail(err, RG_ERR_INPUT, pos,
                       "traffic 'asymmetric' sends to either half, and '%d' nodes have none",
                       p->nodes);
    const bool drawn =
        p->kind == RG_NOC_UNIFORM || p->kind == RG_NOC_DIAGONAL || p->kind == RG_NOC_ASYMMETRIC;
    return drawn ? RG_OK : fill_targets(arena, graph, p, pos, err);
}

void rg_noc_pattern_shares(const rg_noc_pattern *p, int source, double *share)
{
    for (int n = 0; n < p->nodes; n++)
        share[n] = p->kind == RG_NOC_UNIFORM ? 1.0 / p->nodes : 0.0;
    if (p->kind == RG_NOC_UNIFORM)
        return;
    if (p->kind == RG_NOC_HOTSPOT) { /* not ticket by ticket: the weights may be large */
        for (int i = 0; i < p->spots; i++)
            share[p->spot[i]] += (double)(p->spot_before[i + 1] - p->spot_before[i]) /
                                 (double)p->spot_before[p->spots];
        return;
    }
    const uint32_t tickets = rg_noc_pattern_tickets(p);
    for (uint32_t t = 0; t < tickets; t++)
        share[rg_noc_pattern_pick(p, source, t)] += 1.0 / tickets;
}

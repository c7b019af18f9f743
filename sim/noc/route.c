/* noc/route.c: routing functions that depend on more than router and destination. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/state.h"

static uint32_t half_mask(uint32_t mask, bool upper)
{
    const int count = __builtin_popcount(mask);
    uint32_t low = mask;
    for (int i = 0; i < count - count / 2; i++)
        low &= ~(1u << (31 - __builtin_clz(low)));
    return upper ? mask & ~low : low;
}

static uint32_t local_output(const rg_noc_sim *s, uint32_t router)
{
    return (uint32_t)s->graph->node_output[router];
}

/* Output of router in direction d (2 dimension + (0: +, 1: -)). */
static uint32_t output_towards(const rg_noc_sim *s, uint32_t router, int d)
{
    const int local = s->direction[router * 2 * (uint32_t)s->dims + (uint32_t)d];
    return (uint32_t)(s->graph->out_first[router] + local);
}

/* Direction of dimension-order routing, -1 when arrived. On a torus *p keeps the half of the VCs:
 * a packet going + takes the upper half when it will cross the wrap link, one going - when it will
 * not; both say that it starts at the higher digit. */
static int dimension_order(rg_noc_sim *s, packet *p, uint32_t router, uint32_t target, int came)
{
    const uint16_t *here = &s->digit[router * (uint32_t)s->dims];
    const uint16_t *there = &s->digit[target * (uint32_t)s->dims];
    const bool descending = p->flags & PACKET_DESCENDING;
    int d = descending ? s->dims - 1 : 0;
    while (d >= 0 && d < s->dims && here[d] == there[d])
        d += descending ? -1 : 1;
    if (d < 0 || d == s->dims)
        return -1;
    if (s->graph->shape == RG_NOC_MESH)
        return 2 * d + (there[d] < here[d]);
    if (came >= 0 && came / 2 == d)
        return came;
    const int k = s->extent[d], ahead = (there[d] - here[d] + k) % k;
    p->flags = (uint8_t)(here[d] > there[d] ? p->flags | PACKET_UPPER : p->flags & ~PACKET_UPPER);
    const bool back = 2 * ahead > k || (2 * ahead == k && rg_noc_state_below(s, 2) == 0);
    return 2 * d + back;
}

/* Flits that an output has sent and that have not been credited. */
static uint32_t held_behind(const rg_noc_sim *s, uint32_t out)
{
    uint32_t held = 0;
    for (uint32_t vc = 0; vc < s->vcs; vc++)
        held += s->buffer - s->ovc[out << s->vc_shift | vc].credits;
    return held;
}

/* A node between source and destination in every dimension, both included (Nesson and Johnsson,
 * "ROMM routing on mesh and torus networks", SPAA 1995). */
static uint32_t node_between(rg_noc_sim *s, const packet *p)
{
    const uint16_t *from = &s->digit[p->source * (uint32_t)s->dims];
    const uint16_t *to = &s->digit[p->destination * (uint32_t)s->dims];
    uint32_t node = 0, step = 1;
    for (int d = 0; d < s->dims; d++) {
        const uint32_t low = from[d] < to[d] ? from[d] : to[d];
        const uint32_t high = from[d] < to[d] ? to[d] : from[d];
        node += step * (low + rg_noc_state_below(s, high - low + 1));
        step *= (uint32_t)s->extent[d];
    }
    return node;
}

/* What a packet settles at its source: the node on the way, or the order of the dimensions. */
static void settle_at_source(rg_noc_sim *s, packet *p, uint32_t router)
{
    if (s->routing == RG_NOC_ROUTE_VALIANT)
        p->middle = rg_noc_state_below(s, s->nodes);
    else if (s->routing == RG_NOC_ROUTE_ROMM)
        p->middle = node_between(s, p);
    else if (router != p->destination) { /* xy_yx */
        uint32_t up = 0, down = 0;
        if (s->routing == RG_NOC_ROUTE_ADAPTIVE_XY_YX) {
            up = held_behind(
                s, output_towards(s, router, dimension_order(s, p, router, p->destination, -1)));
            p->flags |= PACKET_DESCENDING;
            down = held_behind(
                s, output_towards(s, router, dimension_order(s, p, router, p->destination, -1)));
        }
        const bool descending = up != down ? up > down : rg_noc_state_below(s, 2) == 0;
        p->flags =
            (uint8_t)(descending ? p->flags | PACKET_DESCENDING : p->flags & ~PACKET_DESCENDING);
    }
}

static void route_cube(rg_noc_sim *s, packet *p, uint32_t router, int came)
{
    const bool by_way = s->routing == RG_NOC_ROUTE_VALIANT || s->routing == RG_NOC_ROUTE_ROMM;
    uint32_t mask = s->kind_mask[p->kind];
    if (came < 0 && s->routing != RG_NOC_ROUTE_TORUS)
        settle_at_source(s, p, router);
    if (by_way && !(p->flags & PACKET_SECOND_LEG) && router == p->middle) {
        p->flags |= PACKET_SECOND_LEG;
        came = -1; /* a new leg may turn round */
    }
    const bool first = by_way && !(p->flags & PACKET_SECOND_LEG);
    const int d = dimension_order(s, p, router, first ? p->middle : p->destination, came);
    if (d < 0) {
        p->out = local_output(s, router);
        p->mask = mask;
        return;
    }
    if (s->routing != RG_NOC_ROUTE_TORUS)
        mask = half_mask(mask, p->flags & (PACKET_SECOND_LEG | PACKET_DESCENDING));
    if (s->graph->shape == RG_NOC_TORUS)
        mask = half_mask(mask, p->flags & PACKET_UPPER);
    p->out = output_towards(s, router, d);
    p->mask = mask;
}

static void route_tree(rg_noc_sim *s, packet *p, uint32_t router)
{
    const int n = s->dims;
    const uint32_t k = (uint32_t)s->extent[0];
    const uint32_t per_level = (uint32_t)s->tree_power[n - 1];
    const int level = (int)(router / per_level);
    const uint32_t position = router % per_level;
    const uint32_t below = (uint32_t)s->tree_power[n - level]; /* nodes under this router */
    const uint32_t neighbourhood = position / (uint32_t)s->tree_power[n - level - 1];
    const uint32_t first = (uint32_t)s->graph->out_first[router], up = first + k;
    p->mask = s->kind_mask[p->kind];
    if (p->destination / below == neighbourhood) {
        p->out = first + p->destination % below / (below / k);
        return;
    }
    p->out = up + rg_noc_state_below(s, k);
    if (s->routing == RG_NOC_ROUTE_TREE_ADAPTIVE) {
        const uint32_t other = up + rg_noc_state_below(s, k);
        if (held_behind(s, p->out) > held_behind(s, other))
            p->out = other;
    }
}

/* Escape VCs of a class: the first on a mesh, the first two on a torus, below and above the
 * dateline. */
static uint32_t escape_vcs(const rg_noc_sim *s, uint32_t mask)
{
    const uint32_t first = mask & -mask, rest = mask & ~first;
    return s->graph->shape == RG_NOC_TORUS ? first | (rest & -rest) : first;
}

/* Minimal adaptive after Duato ("A new theory of deadlock-free adaptive routing in wormhole
 * networks", IEEE TPDS 4(12), 1993): out and mask are of the escape way, dimension order on the
 * escape VCs, and a packet on one of them stays on them. The other VCs may be asked for at every
 * productive port, and first: see the candidates. */
static void route_adaptive(rg_noc_sim *s, packet *p, uint32_t router, uint32_t vc, int came)
{
    const uint32_t mask = s->kind_mask[p->kind], escapes = escape_vcs(s, mask);
    const uint32_t low = escapes & -escapes;
    const bool escaped = came >= 0 && (escapes >> vc & 1) != 0;
    const int d = dimension_order(s, p, router, p->destination, escaped ? came : -1);
    p->flags = (uint8_t)(escaped ? p->flags | PACKET_ESCAPED : p->flags & ~PACKET_ESCAPED);
    p->out = d < 0 ? local_output(s, router) : output_towards(s, router, d);
    p->mask = d < 0                                                               ? mask
              : s->graph->shape == RG_NOC_TORUS && (p->flags & PACKET_UPPER) != 0 ? escapes & ~low
                                                                                  : low;
}

void rg_noc_state_route(rg_noc_sim *s, packet *p, uint32_t port, uint32_t vc)
{
    const uint32_t router = (uint32_t)s->graph->in_router[port];
    if (s->graph->shape == RG_NOC_TREE)
        route_tree(s, p, router);
    else if (s->routing == RG_NOC_ROUTE_ADAPTIVE)
        route_adaptive(s, p, router, vc, s->came[port]);
    else
        route_cube(s, p, router, s->came[port]);
}

int rg_noc_state_candidates(const rg_noc_sim *s, uint32_t ivc, candidate *list)
{
    const input_vc *v = &s->ivc[ivc];
    const uint32_t router = (uint32_t)s->graph->in_router[ivc >> s->vc_shift];
    const packet *p = &s->pool[rg_noc_state_front_flit(s, ivc) >> 2];
    const uint16_t *here = &s->digit[router * (uint32_t)s->dims];
    const uint16_t *there = &s->digit[p->destination * (uint32_t)s->dims];
    const bool arrived = v->out == local_output(s, router);
    const uint32_t all = s->kind_mask[p->kind];
    uint32_t free = all & ~escape_vcs(s, all);
    int count = 0;
    list[count++] = (candidate){v->out, v->mask, !arrived};
    if (arrived || (p->flags & PACKET_ESCAPED) || free == 0)
        return count;
    if (s->config->router.one_adaptive_vc && s->graph->shape == RG_NOC_TORUS)
        free = (free & (free - 1)) & -(free & (free - 1)); /* the second of them */
    for (int d = 0; d < s->dims; d++) {
        if (here[d] == there[d])
            continue;
        const int k = s->extent[d], ahead = (there[d] - here[d] + k) % k;
        const bool back = s->graph->shape == RG_NOC_TORUS ? 2 * ahead >= k : there[d] < here[d];
        list[count++] = (candidate){output_towards(s, router, 2 * d + back), free, false};
    }
    return count;
}

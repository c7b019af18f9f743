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
    int d = 0;
    while (d < s->dims && here[d] == there[d])
        d++;
    if (d == s->dims)
        return -1;
    if (s->graph->shape == RG_NOC_MESH)
        return 2 * d + (there[d] < here[d]);
    if (came >= 0 && came / 2 == d)
        return came;
    const int k = s->extent[d], ahead = (there[d] - here[d] + k) % k;
    p->flags = (uint8_t)(here[d] > there[d] ? p->flags | PACKET_UPPER : p->flags & ~PACKET_UPPER);
    const bool back = 2 * ahead > k || (2 * ahead == k && (rg_rng_next(&s->rng) >> 63) != 0);
    return 2 * d + back;
}

static void route_cube(rg_noc_sim *s, input_vc *v, packet *p, uint32_t router, int came)
{
    const bool valiant = s->routing == RG_NOC_ROUTE_VALIANT;
    uint32_t mask = s->kind_mask[p->kind];
    if (valiant && !(p->flags & PACKET_SECOND_LEG) && router == p->middle) {
        p->flags |= PACKET_SECOND_LEG;
        came = -1; /* a new leg may turn round */
    }
    const bool second = p->flags & PACKET_SECOND_LEG;
    const int d =
        dimension_order(s, p, router, valiant && !second ? p->middle : p->destination, came);
    if (d < 0) {
        v->out = local_output(s, router);
        v->mask = mask;
        return;
    }
    if (valiant)
        mask = half_mask(mask, second);
    if (s->graph->shape == RG_NOC_TORUS)
        mask = half_mask(mask, p->flags & PACKET_UPPER);
    v->out = output_towards(s, router, d);
    v->mask = mask;
}

static void route_tree(rg_noc_sim *s, input_vc *v, const packet *p, uint32_t router)
{
    const int n = s->dims;
    const uint32_t k = (uint32_t)s->extent[0];
    const uint32_t per_level = (uint32_t)s->tree_power[n - 1];
    const int level = (int)(router / per_level);
    const uint32_t position = router % per_level;
    const uint32_t below = (uint32_t)s->tree_power[n - level]; /* nodes under this router */
    const uint32_t neighbourhood = position / (uint32_t)s->tree_power[n - level - 1];
    const uint32_t first = (uint32_t)s->graph->out_first[router];
    v->mask = s->kind_mask[p->kind];
    if (p->destination / below == neighbourhood)
        v->out = first + p->destination % below / (below / k);
    else
        v->out = first + k + rg_rng_below(&s->rng, k);
}

void rg_noc_state_route(rg_noc_sim *s, uint32_t ivc, uint32_t flit)
{
    const uint32_t port = ivc >> s->vc_shift;
    packet *p = &s->pool[flit >> 2];
    input_vc *v = &s->ivc[ivc];
    const uint32_t router = s->input[port].router;
    switch (s->routing) {
    case RG_NOC_ROUTE_TREE:
        route_tree(s, v, p, router);
        break;
    case RG_NOC_ROUTE_TORUS:
    case RG_NOC_ROUTE_VALIANT:
        route_cube(s, v, p, router, s->came[port]);
        break;
    case RG_NOC_ROUTE_ADAPTIVE: /* asks for candidates at each VC allocation */
    case RG_NOC_ROUTE_TABLE:
        v->mask = s->kind_mask[p->kind];
        break;
    }
}

/* Minimal adaptive on a mesh after Duato ("A new theory of deadlock-free adaptive routing in
 * wormhole networks", IEEE TPDS 4(12), 1993): the first VC is the dimension-order escape, and a
 * packet on it stays on it; the others may be asked for at every productive port, and first. */
int rg_noc_state_candidates(const rg_noc_sim *s, uint32_t ivc, candidate *list)
{
    const uint32_t port = ivc >> s->vc_shift, vc = ivc & ((1u << s->vc_shift) - 1);
    const uint32_t router = s->input[port].router;
    const packet *p = &s->pool[rg_noc_state_front_flit(s, ivc) >> 2];
    const uint32_t mask = s->kind_mask[p->kind], escape = mask & -mask;
    const uint16_t *here = &s->digit[router * (uint32_t)s->dims];
    const uint16_t *there = &s->digit[p->destination * (uint32_t)s->dims];
    const bool escaped = s->came[port] >= 0 && (1u << vc) == escape;
    int count = 0;
    for (int d = 0; d < s->dims; d++) {
        if (here[d] == there[d])
            continue;
        const uint32_t out = output_towards(s, router, 2 * d + (there[d] < here[d]));
        if (count == 0)
            list[count++] = (candidate){out, escape, true};
        if (!escaped && (mask & ~escape) != 0)
            list[count++] = (candidate){out, mask & ~escape, false};
    }
    if (count == 0)
        list[count++] = (candidate){local_output(s, router), mask, false};
    return count;
}

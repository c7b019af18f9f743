/* noc/engine.c: one cycle of the network.
 *
 * Order of a cycle: arrivals, sources, VC allocation, switch allocation (both on the state after
 * the arrivals), then the grants of both. The cycle is one inlined body: for routers with one-cycle
 * stages, no speculation and full-width links (`plain`) it is built once for each VC width, so that
 * shifts and masks are constants; the general body serves all else. Requests carry their place in
 * round-robin order as an unsigned difference from the arbiter's pointer, so winners do not depend
 * on the order of looking.
 */
// SPDX-License-Identifier: Apache-2.0
#include "noc/state.h"

#define INLINE static inline __attribute__((always_inline))

static inline uint32_t lowest_bit(uint64_t bits)
{
    return (uint32_t)__builtin_ctzll(bits);
}

/* Which body this is: VC width as a shift, whether it is the plain one, and whether routes are
 * looked up in a table. */
typedef struct body {
    uint32_t shift;
    bool plain, table;
} body;

/* What a VC wants, as a bit of its port. The port stays busy until a look finds nothing. */
typedef struct place {
    input_port *in;
    uint32_t port, bit;
} place;

INLINE place place_of(rg_noc_sim *s, body b, uint32_t ivc)
{
    const uint32_t port = ivc >> b.shift;
    return (place){&s->input[port], port, 1u << (ivc & ((1u << b.shift) - 1))};
}
static inline void want_vc(rg_noc_sim *s, place at)
{
    at.in->heads |= at.bit;
    s->busy[at.port >> 6] |= UINT64_C(1) << (at.port & 63);
}
static inline void want_switch(rg_noc_sim *s, place at)
{
    at.in->bids |= at.bit;
    s->busy[at.port >> 6] |= UINT64_C(1) << (at.port & 63);
}

static inline void wheel_ready(rg_noc_sim *s, uint32_t when, uint32_t item)
{
    const uint32_t b = when & s->wheel_mask;
    s->ready_wheel[b * s->ready_room + s->ready_count[b]++] = item;
}

/* A head has come to the front of its VC: route it and let it ask for an output VC. */
INLINE void front(rg_noc_sim *s, body b, input_vc *v, place at, uint32_t ivc, uint32_t flit,
                  uint32_t from)
{
    packet *p = &s->pool[flit >> 2];
    p->hops++;
    if (b.table) {
        v->out = at.in->row[p->destination];
        v->mask = s->kind_mask[p->kind];
    } else {
        if (!s->lookahead)
            rg_noc_state_route(s, p, at.port, lowest_bit(at.bit));
        v->out = p->out;
        v->mask = p->mask;
    }
    if (b.plain || !s->slow) {
        want_vc(s, at);
        return;
    }
    v->ready = from + (uint32_t)s->config->router.routing_delay + s->sa_wait;
    if (s->va_wait == 0)
        want_vc(s, at);
    else
        wheel_ready(s, from + s->va_wait, ivc << 1 | 1);
}

/* The front of an active VC may bid from cycle `from` on; now + 1 is the next look at the bids. */
INLINE void ready_to_bid(rg_noc_sim *s, body b, input_vc *v, place at, uint32_t ivc, uint32_t from,
                         uint32_t look)
{
    if (!b.plain && s->slow) {
        v->ready = from;
        if (from > look) {
            at.in->bids &= ~at.bit;
            wheel_ready(s, from, ivc << 1);
            return;
        }
    }
    if (s->ovc[v->ovc].credits > 0)
        want_switch(s, at);
    else
        at.in->bids &= ~at.bit;
}

INLINE void receive_flit(rg_noc_sim *s, body b, uint32_t ivc, uint32_t flit)
{
    input_vc *v = &s->ivc[ivc];
    const uint32_t slot = v->base + ((v->head + (uint32_t)v->count) & s->ring_mask);
    s->ring[slot] = flit;
    if (!b.plain && s->sa_wait > 0)
        s->arrived_at[slot] = s->now;
    if (v->count++ > 0)
        return;
    const place at = place_of(s, b, ivc);
    if (v->ovc == RG_NOC_NONE)
        front(s, b, v, at, ivc, flit, s->now);
    else
        ready_to_bid(s, b, v, at, ivc, s->now + s->sa_wait, s->now);
}

INLINE void receive_flits(rg_noc_sim *s, body b)
{
    const uint32_t bucket = s->now & s->wheel_mask, sinks = s->inputs << b.shift;
    flit_event *event = &s->flit_wheel[(size_t)bucket * s->flit_room];
    const flit_event *end = s->flit_end[bucket];
    s->flit_end[bucket] = event;
    for (; event < end; event++) {
        const uint32_t target = event->target;
        if (target < sinks)
            receive_flit(s, b, target, event->flit);
        else
            rg_noc_state_sink(s, (target - sinks) >> b.shift, target & ((1u << b.shift) - 1),
                              event->flit);
    }
}

INLINE void release_vc(rg_noc_sim *s, body b, uint32_t ovc)
{
    s->ovc[ovc].owner = RG_NOC_NONE;
    s->output[ovc >> b.shift].free |= 1u << (ovc & ((1u << b.shift) - 1));
}

INLINE void receive_credits(rg_noc_sim *s, body b)
{
    const uint32_t bucket = s->now & s->wheel_mask;
    uint32_t *event = &s->credit_wheel[(size_t)bucket * s->credit_room];
    const uint32_t *end = s->credit_end[bucket];
    s->credit_end[bucket] = event;
    for (; event < end; event++) {
        output_vc *o = &s->ovc[*event];
        const uint32_t before = o->credits++;
        if (!b.plain && o->tail_sent && o->credits == s->buffer) {
            o->tail_sent = 0;
            release_vc(s, b, *event);
        }
        if (before > 0 || o->owner == RG_NOC_NONE)
            continue;
        const input_vc *v = &s->ivc[o->owner];
        if (v->count > 0 && (b.plain || !s->slow || v->ready <= s->now))
            want_switch(s, place_of(s, b, o->owner));
    }
}

static void receive_ready(rg_noc_sim *s, body b)
{
    const uint32_t bucket = s->now & s->wheel_mask, count = s->ready_count[bucket];
    const uint32_t *event = &s->ready_wheel[(size_t)bucket * s->ready_room];
    s->ready_count[bucket] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t ivc = event[i] >> 1;
        if (event[i] & 1)
            want_vc(s, place_of(s, b, ivc));
        else if (s->ovc[s->ivc[ivc].ovc].credits > 0)
            want_switch(s, place_of(s, b, ivc));
    }
}

/* VC allocation, separable input first: each head asks for one free VC, by its own round robin;
 * each output VC takes the first asker in its round robin. */
INLINE uint32_t *va_bid(rg_noc_sim *s, body b, uint32_t ivc, uint32_t *won)
{
    const uint32_t shift = b.shift;
    const input_vc *v = &s->ivc[ivc];
    const uint32_t out = v->out, free = s->output[out].free & v->mask;
    if (free == 0)
        return won;
    uint32_t ahead = 0;
    if (v->va_ptr >> shift == out)
        ahead = free & (UINT32_MAX << (v->va_ptr & ((1u << shift) - 1)));
    const uint32_t ovc = out << shift | lowest_bit(ahead != 0 ? ahead : free);
    output_vc *o = &s->ovc[ovc];
    if (o->best == RG_NOC_NONE) {
        o->best = ivc;
        *won = ovc;
        return won + 1;
    }
    if (ivc - o->ptr < o->best - o->ptr)
        o->best = ivc;
    return won;
}

INLINE void va_grant(rg_noc_sim *s, body b)
{
    const uint32_t count = s->va_count;
    s->va_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t ovc = s->va_won[i];
        output_vc *o = &s->ovc[ovc];
        const uint32_t ivc = o->best;
        input_vc *v = &s->ivc[ivc];
        o->best = RG_NOC_NONE;
        o->owner = ivc;
        if (b.plain || i < s->va_first) {
            o->ptr = ivc + 1;
            v->va_ptr = ovc + 1;
        }
        v->ovc = ovc;
        const uint32_t out = ovc >> b.shift;
        if (!b.plain)
            v->out = out;
        s->output[out].free &= ~(1u << (ovc & ((1u << b.shift) - 1)));
        const place at = place_of(s, b, ivc);
        at.in->heads ^= at.bit;
        const uint32_t from = s->now + 1;
        if (!b.plain && s->slow)
            ready_to_bid(s, b, v, at, ivc,
                         !s->speculative   ? from + s->sa_wait
                         : v->ready > from ? v->ready
                                           : from,
                         from);
        else if (o->credits > 0)
            at.in->bids |= at.bit; /* the port is busy already */
    }
}

/* A head that still waits for its VC bids as well when some VC that it may take has a credit. */
static bool may_speculate(const rg_noc_sim *s, const input_vc *v)
{
    if (s->slow && v->ready > s->now)
        return false;
    for (uint32_t free = s->output[v->out].free & v->mask; free != 0; free &= free - 1)
        if (s->ovc[v->out << s->vc_shift | lowest_bit(free)].credits > 0)
            return true;
    return false;
}

/* The VC that bids for an input with several: first those that hold their VC, then the first
 * output, then the first VC, each in round-robin order. NONE: nobody can. */
INLINE uint32_t choose_vc(const rg_noc_sim *s, body b, const input_port *in, uint32_t base,
                          uint32_t vcs)
{
    uint32_t best = RG_NOC_NONE;
    uint64_t best_key = UINT64_MAX;
    for (; vcs != 0; vcs &= vcs - 1) {
        const uint32_t vc = lowest_bit(vcs), ivc = base | vc;
        const input_vc *v = &s->ivc[ivc];
        const bool speculates = !b.plain && v->ovc == RG_NOC_NONE;
        if (speculates && !may_speculate(s, v))
            continue;
        if (!b.plain && s->serial && s->output[v->out].busy_until > s->now)
            continue;
        const uint64_t key =
            (uint64_t)speculates << 48 | (uint64_t)(v->out - in->ptr) << 8 | ((vc - in->rr) & 0xff);
        if (key < best_key) {
            best_key = key;
            best = ivc;
        }
    }
    return best;
}

INLINE uint32_t *sa_bid(rg_noc_sim *s, body b, uint32_t ivc, uint32_t *won)
{
    const uint32_t out = s->ivc[ivc].out;
    output_port *o = &s->output[out];
    if (o->best == RG_NOC_NONE) {
        o->best = ivc;
        *won = out;
        return won + 1;
    }
    if (!b.plain && s->speculative) {
        const bool mine = s->ivc[ivc].ovc == RG_NOC_NONE;
        const bool theirs = s->ivc[o->best].ovc == RG_NOC_NONE;
        if (mine != theirs) {
            o->best = mine ? o->best : ivc;
            return won;
        }
    }
    if (ivc - o->ptr < o->best - o->ptr)
        o->best = ivc;
    return won;
}

/* One look at the busy ports: heads bid for VCs, and of each port one VC bids for the switch. Where
 * heads may bid for the switch before they hold a VC, that is a second look. */
INLINE void look(rg_noc_sim *s, body b, bool for_vcs, bool for_switch)
{
    uint32_t *va_won = s->va_won, *sa_won = s->sa_won;
    for (uint32_t w = 0; w < s->busy_words; w++)
        for (uint64_t bits = s->busy[w]; bits != 0; bits &= bits - 1) {
            const uint32_t port = w << 6 | lowest_bit(bits), base = port << b.shift;
            const input_port *in = &s->input[port];
            uint32_t heads = in->heads, bids = in->bids;
            if ((heads | bids) == 0) {
                s->busy[w] ^= bits & -bits;
                continue;
            }
            if (!b.plain && s->speculative)
                bids |= heads;
            for (; for_vcs && heads != 0; heads &= heads - 1)
                va_won = va_bid(s, b, base | lowest_bit(heads), va_won);
            if (!for_switch || bids == 0)
                continue;
            uint32_t ivc = base | lowest_bit(bids);
            if (!b.plain || (bids & (bids - 1)) != 0)
                ivc = choose_vc(s, b, in, base, bids);
            if (b.plain || ivc != RG_NOC_NONE)
                sa_won = sa_bid(s, b, ivc, sa_won);
        }
    if (for_vcs)
        s->va_count = (uint32_t)(va_won - s->va_won);
    if (for_switch)
        s->sa_count = (uint32_t)(sa_won - s->sa_won);
}

/* Tells the heads which VC they would get. */
static void offer_vcs(rg_noc_sim *s)
{
    for (uint32_t i = 0; i < s->va_count; i++)
        s->ivc[s->ovc[s->va_won[i]].best].offer = s->va_won[i];
}

/* A speculative winner goes only when its VC came through, for this output and with a credit. */
static void drop_failed_speculation(rg_noc_sim *s)
{
    uint32_t kept = 0, first = 0;
    for (uint32_t i = 0; i < s->sa_count; i++) {
        output_port *o = &s->output[s->sa_won[i]];
        const uint32_t ivc = o->best;
        const input_vc *v = &s->ivc[ivc];
        if (v->ovc == RG_NOC_NONE) {
            const uint32_t ovc = v->offer;
            if (s->ovc[ovc].best != ivc || ovc >> s->vc_shift != s->sa_won[i] ||
                s->ovc[ovc].credits == 0) {
                /* The allocator has matched the pair, so all its pointers have moved. */
                const uint32_t port = ivc >> s->vc_shift;
                o->ptr = (port + 1) << s->vc_shift;
                s->input[port].ptr = s->sa_won[i] + 1;
                s->input[port].rr = (ivc & ((1u << s->vc_shift) - 1)) + 1;
                o->best = RG_NOC_NONE;
                continue;
            }
        }
        first += i < s->sa_first;
        s->sa_won[kept++] = s->sa_won[i];
    }
    s->sa_count = kept;
    s->sa_first = first;
}

/* What stands behind a flit that has left: the same packet's next flit, a new head, or nothing. */
INLINE void advance_vc(rg_noc_sim *s, body b, input_vc *v, place at, uint32_t ivc, uint32_t flit,
                       output_port *port, output_vc *o, uint32_t vc)
{
    if (flit & FLIT_TAIL) {
        v->ovc = RG_NOC_NONE;
        at.in->bids &= ~at.bit;
        o->owner = RG_NOC_NONE;
        if (!b.plain && s->config->router.wait_for_tail_credit)
            o->tail_sent = 1;
        else
            port->free |= 1u << vc;
        if (v->count > 0)
            front(s, b, v, at, ivc, s->ring[v->base + v->head], s->now + 1);
        return;
    }
    if (v->count == 0 || o->credits == 0) {
        at.in->bids &= ~at.bit;
        if (v->count == 0 || b.plain || !s->slow)
            return;
    }
    if (!b.plain && s->slow) {
        uint32_t from = s->now + 1;
        if (s->sa_wait > 0 && s->arrived_at[v->base + v->head] + s->sa_wait > from)
            from = s->arrived_at[v->base + v->head] + s->sa_wait;
        ready_to_bid(s, b, v, at, ivc, from, s->now + 1);
    }
}

INLINE void sa_grant(rg_noc_sim *s, body b)
{
    const uint32_t count = s->sa_count, shift = b.shift, vc_mask = (1u << b.shift) - 1;
    s->sa_count = 0;
    s->flit_hops += count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t out = s->sa_won[i];
        output_port *o = &s->output[out];
        const uint32_t ivc = o->best;
        const place at = place_of(s, b, ivc);
        input_vc *v = &s->ivc[ivc];
        input_port *in = at.in;
        const uint32_t ovc = v->ovc, vc = ovc & vc_mask, head = v->head;
        const uint32_t flit = s->ring[v->base + head];
        output_vc *taken = &s->ovc[ovc];
        v->head = (uint16_t)((head + 1) & s->ring_mask);
        v->count--;
        o->best = RG_NOC_NONE;
        if (b.plain || i < s->sa_first) {
            o->ptr = (at.port + 1) << shift;
            in->ptr = out + 1;
        }
        o->flits++;
        if (!b.plain)
            o->busy_until = s->now + o->period;
        if (shift > 0)
            in->rr = (ivc & vc_mask) + 1;
        taken->credits--;
        if (!b.table && s->lookahead && (flit & FLIT_HEAD) && o->target < s->inputs << shift)
            rg_noc_state_route(s, &s->pool[flit >> 2], o->target >> shift, vc);
        rg_noc_state_send_flit(s, o->delay, o->target | vc, flit);
        rg_noc_state_send_credit(s, in->credit_delay, in->upstream | (ivc & vc_mask));
        advance_vc(s, b, v, at, ivc, flit, o, taken, vc);
    }
}

static void allocate(rg_noc_sim *s, body b)
{
    const rg_noc_router *r = &s->config->router;
    s->va_first = s->sa_first = UINT32_MAX;
    if (r->vc_allocator == RG_NOC_SEPARABLE_INPUT_FIRST && s->routing != RG_NOC_ROUTE_ADAPTIVE)
        look(s, b, true, false);
    else
        rg_noc_state_va(s);
    if (s->speculative)
        offer_vcs(s);
    if (r->switch_allocator != RG_NOC_SEPARABLE_INPUT_FIRST ||
        (s->speculative && s->routing == RG_NOC_ROUTE_ADAPTIVE))
        rg_noc_state_sa(s);
    else
        look(s, b, false, true);
    if (s->speculative)
        drop_failed_speculation(s);
    va_grant(s, b);
    sa_grant(s, b);
}

INLINE void cycles_of(rg_noc_sim *s, body b, int64_t cycles)
{
    for (int64_t i = 0; i < cycles; i++) {
        receive_flits(s, b);
        receive_credits(s, b);
        if (!b.plain && s->slow)
            receive_ready(s, b);
        if (s->stream != NULL)
            rg_noc_state_stream_wake(s);
        rg_noc_state_inject(s);
        if (b.plain) {
            look(s, b, true, true);
            va_grant(s, b);
            sa_grant(s, b);
        } else {
            allocate(s, b);
        }
        s->now++;
    }
}

static void general_cycles(rg_noc_sim *s, int64_t cycles)
{
    cycles_of(s, (body){s->vc_shift, false, s->routing == RG_NOC_ROUTE_TABLE}, cycles);
}

INLINE void plain_cycles(rg_noc_sim *s, uint32_t shift, int64_t cycles)
{
    if (s->routing == RG_NOC_ROUTE_TABLE)
        cycles_of(s, (body){shift, true, true}, cycles);
    else
        cycles_of(s, (body){shift, true, false}, cycles);
}

static bool is_plain(const rg_noc_sim *s)
{
    const rg_noc_router *r = &s->config->router;
    return !s->slow && !s->speculative && !s->serial && !r->wait_for_tail_credit &&
           s->routing != RG_NOC_ROUTE_ADAPTIVE && r->vc_allocator == RG_NOC_SEPARABLE_INPUT_FIRST &&
           r->switch_allocator == RG_NOC_SEPARABLE_INPUT_FIRST;
}

void rg_noc_sim_step(rg_noc_sim *s, int64_t cycles)
{
    const bool plain = is_plain(s);
    if (plain && s->vc_shift == 0)
        plain_cycles(s, 0, cycles);
    else if (plain && s->vc_shift == 1)
        plain_cycles(s, 1, cycles);
    else if (plain && s->vc_shift == 2)
        plain_cycles(s, 2, cycles);
    else if (plain && s->vc_shift == 3)
        plain_cycles(s, 3, cycles);
    else
        general_cycles(s, cycles);
}

int64_t rg_noc_sim_flit_hops(const rg_noc_sim *s)
{
    return s->flit_hops;
}

/* noc/engine.c: one cycle of the network.
 *
 * Order of a cycle: arrivals, sources, VC allocation, switch allocation (both on the state after
 * the arrivals), then the grants of both. Requests carry their place in round-robin order as an
 * unsigned difference from the arbiter's pointer, so winners do not depend on the order of looking.
 */
// SPDX-License-Identifier: Apache-2.0
#include "noc/state.h"

static inline uint32_t lowest_bit(uint64_t bits)
{
    return (uint32_t)__builtin_ctzll(bits);
}

/* Runs body for each index of the set; a body may change the set. */
#define FOR_EACH_WORD(set, w, bits)                                                                \
    for (uint32_t s_ = 0; s_ < (set)->summaries; s_++)                                             \
        for (uint64_t sum_ = (set)->summary[s_]; sum_ != 0; sum_ &= sum_ - 1)                      \
            for (uint32_t w = s_ << 6 | lowest_bit(sum_), once_ = 1; once_; once_ = 0)             \
                for (uint64_t bits = (set)->word[w]; once_; once_ = 0)

static inline void wheel_ready(rg_noc_sim *s, uint32_t when, uint32_t item)
{
    const uint32_t b = when & s->wheel_mask;
    s->ready_wheel[b * s->ready_room + s->ready_count[b]++] = item;
}

void rg_noc_state_front(rg_noc_sim *s, uint32_t ivc, uint32_t flit, uint32_t from)
{
    input_vc *v = &s->ivc[ivc];
    const packet *p = &s->pool[flit >> 2];
    if (s->routing == RG_NOC_ROUTE_TABLE) {
        const input_port *in = &s->input[ivc >> s->vc_shift];
        v->out = in->out_first + s->table[in->row + p->destination];
        v->mask = s->kind_mask[p->kind];
    } else {
        rg_noc_state_route(s, ivc, flit);
    }
    if (!s->slow) {
        bit_set_add(&s->va, ivc);
        return;
    }
    v->ready = from + (uint32_t)s->config->router.routing_delay + s->sa_wait;
    if (s->va_wait == 0)
        bit_set_add(&s->va, ivc);
    else
        wheel_ready(s, from + s->va_wait, ivc << 1 | 1);
}

/* The front of an active VC may bid from cycle `from` on; now + 1 is the next look at the bids. */
static inline void ready_to_bid(rg_noc_sim *s, input_vc *v, uint32_t ivc, uint32_t from,
                                uint32_t look)
{
    if (s->slow) {
        v->ready = from;
        if (from > look) {
            bit_set_remove(&s->sa, ivc);
            wheel_ready(s, from, ivc << 1);
            return;
        }
    }
    if (s->ovc[v->ovc].credits > 0)
        bit_set_add(&s->sa, ivc);
    else
        bit_set_remove(&s->sa, ivc);
}

static inline void receive_flit(rg_noc_sim *s, uint32_t ivc, uint32_t flit)
{
    input_vc *v = &s->ivc[ivc];
    uint32_t slot = (uint32_t)v->head + v->count;
    if (slot >= s->buffer)
        slot -= s->buffer;
    s->ring[ivc * s->buffer + slot] = flit;
    if (s->slow && s->sa_wait > 0)
        s->arrived_at[ivc * s->buffer + slot] = s->now;
    if (v->count++ > 0)
        return;
    if (v->ovc == RG_NOC_NONE)
        rg_noc_state_front(s, ivc, flit, s->now);
    else
        ready_to_bid(s, v, ivc, s->now + s->sa_wait, s->now);
}

static void receive_flits(rg_noc_sim *s)
{
    const uint32_t bucket = s->now & s->wheel_mask, count = s->flit_count[bucket];
    const uint32_t sinks = s->inputs << s->vc_shift;
    const flit_event *event = &s->flit_wheel[(size_t)bucket * s->flit_room];
    s->flit_count[bucket] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t target = event[i].target;
        if (target < sinks)
            receive_flit(s, target, event[i].flit);
        else
            rg_noc_state_sink(s, (target - sinks) >> s->vc_shift,
                              target & ((1u << s->vc_shift) - 1), event[i].flit);
    }
}

static inline void release_vc(rg_noc_sim *s, uint32_t ovc)
{
    s->ovc[ovc].owner = RG_NOC_NONE;
    s->output[ovc >> s->vc_shift].free |= 1u << (ovc & ((1u << s->vc_shift) - 1));
}

static void receive_credits(rg_noc_sim *s)
{
    const uint32_t bucket = s->now & s->wheel_mask, count = s->credit_count[bucket];
    const uint32_t *event = &s->credit_wheel[(size_t)bucket * s->credit_room];
    s->credit_count[bucket] = 0;
    for (uint32_t i = 0; i < count; i++) {
        output_vc *o = &s->ovc[event[i]];
        const uint32_t before = o->credits++;
        if (o->tail_sent && o->credits == s->buffer) {
            o->tail_sent = 0;
            release_vc(s, event[i]);
        }
        if (before > 0 || o->owner == RG_NOC_NONE)
            continue;
        const input_vc *v = &s->ivc[o->owner];
        if (v->count > 0 && (!s->slow || v->ready <= s->now))
            bit_set_add(&s->sa, o->owner);
    }
}

static void receive_ready(rg_noc_sim *s)
{
    const uint32_t bucket = s->now & s->wheel_mask, count = s->ready_count[bucket];
    const uint32_t *event = &s->ready_wheel[(size_t)bucket * s->ready_room];
    s->ready_count[bucket] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t ivc = event[i] >> 1;
        if (event[i] & 1)
            bit_set_add(&s->va, ivc);
        else if (s->ovc[s->ivc[ivc].ovc].credits > 0)
            bit_set_add(&s->sa, ivc);
    }
}

/* VC allocation, separable input first: each head asks for one free VC, by its own round robin;
 * each output VC takes the first asker in its round robin. */
static void va_separable(rg_noc_sim *s)
{
    const uint32_t shift = s->vc_shift;
    FOR_EACH_WORD(&s->va, w, bits)
    {
        if (bits == 0)
            s->va.summary[w >> 6] &= ~(UINT64_C(1) << (w & 63));
        for (; bits != 0; bits &= bits - 1) {
            const uint32_t ivc = w << 6 | lowest_bit(bits);
            const input_vc *v = &s->ivc[ivc];
            const uint32_t free = s->output[v->out].free & v->mask;
            if (free == 0)
                continue;
            uint32_t ahead = 0;
            if (v->va_ptr >> shift == v->out)
                ahead = free & (UINT32_MAX << (v->va_ptr & ((1u << shift) - 1)));
            const uint32_t ovc = v->out << shift | lowest_bit(ahead != 0 ? ahead : free);
            output_vc *o = &s->ovc[ovc];
            if (o->best == RG_NOC_NONE) {
                o->best = ivc;
                s->va_won[s->va_count++] = ovc;
            } else if (ivc - o->ptr < o->best - o->ptr) {
                o->best = ivc;
            }
        }
    }
}

static void va_grant(rg_noc_sim *s)
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
        if (i < s->va_first) {
            o->ptr = ivc + 1;
            v->va_ptr = ovc + 1;
        }
        v->ovc = ovc;
        v->out = ovc >> s->vc_shift;
        s->output[v->out].free &= ~(1u << (ovc & ((1u << s->vc_shift) - 1)));
        bit_set_remove(&s->va, ivc);
        const uint32_t from = s->now + 1;
        if (s->slow)
            ready_to_bid(s, v, ivc,
                         !s->speculative      ? from + s->sa_wait
                         : v->ready > from ? v->ready
                                              : from,
                         from);
        else if (o->credits > 0)
            bit_set_add(&s->sa, ivc);
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
static uint32_t choose_vc(const rg_noc_sim *s, uint64_t group, uint32_t base)
{
    const uint32_t shift = s->vc_shift, vc_mask = (1u << shift) - 1;
    uint32_t best = RG_NOC_NONE;
    uint64_t best_key = UINT64_MAX;
    for (; group != 0; group &= group - 1) {
        const uint32_t ivc = base | lowest_bit(group);
        const input_vc *v = &s->ivc[ivc];
        const input_port *in = &s->input[ivc >> shift];
        const bool speculates = v->ovc == RG_NOC_NONE;
        if (speculates && !may_speculate(s, v))
            continue;
        if (s->serial && s->output[v->out].busy_until > s->now)
            continue;
        const uint64_t key = (uint64_t)speculates << 48 | ((uint64_t)(v->out - in->ptr) & 0xffffffff) << 8 |
                             (((ivc & vc_mask) - in->rr) & 0xff);
        if (key < best_key) {
            best_key = key;
            best = ivc;
        }
    }
    return best;
}

static inline void sa_bid(rg_noc_sim *s, uint32_t ivc)
{
    const uint32_t out = s->ivc[ivc].out;
    output_port *o = &s->output[out];
    if (o->best == RG_NOC_NONE) {
        o->best = ivc;
        s->sa_won[s->sa_count++] = out;
        return;
    }
    if (s->speculative) {
        const bool mine = s->ivc[ivc].ovc == RG_NOC_NONE;
        const bool theirs = s->ivc[o->best].ovc == RG_NOC_NONE;
        if (mine != theirs) {
            o->best = mine ? o->best : ivc;
            return;
        }
    }
    if (ivc - o->ptr < o->best - o->ptr)
        o->best = ivc;
}

/* Switch allocation, separable input first. */
static void sa_separable(rg_noc_sim *s)
{
    const uint64_t port_mask = s->vc_shift == 6 ? UINT64_MAX : (UINT64_C(1) << (1u << s->vc_shift)) - 1;
    const uint32_t vc_mask = (1u << s->vc_shift) - 1;
    const bool plain = !s->serial;
    FOR_EACH_WORD(&s->sa, w, bits)
    {
        if (bits == 0)
            s->sa.summary[w >> 6] &= ~(UINT64_C(1) << (w & 63));
        while (bits != 0) {
            const uint32_t bit = lowest_bit(bits);
            const uint64_t group = bits & (port_mask << (bit & ~vc_mask));
            bits &= ~group;
            uint32_t ivc = w << 6 | bit;
            if (!plain || (group & (group - 1)) != 0) {
                ivc = choose_vc(s, group, w << 6);
                if (ivc == RG_NOC_NONE)
                    continue;
            }
            sa_bid(s, ivc);
        }
    }
}

/* The same when heads may bid before they hold a VC. */
static void sa_speculative(rg_noc_sim *s)
{
    const uint64_t port_mask = s->vc_shift == 6 ? UINT64_MAX : (UINT64_C(1) << (1u << s->vc_shift)) - 1;
    const uint32_t vc_mask = (1u << s->vc_shift) - 1;
    for (uint32_t i = 0; i < s->va_count; i++)
        s->ivc[s->ovc[s->va_won[i]].best].offer = s->va_won[i];
    for (uint32_t t = 0; t < s->sa.summaries; t++) {
        uint64_t sum = s->sa.summary[t] | s->va.summary[t];
        for (; sum != 0; sum &= sum - 1) {
            const uint32_t w = t << 6 | lowest_bit(sum);
            uint64_t bits = s->sa.word[w] | s->va.word[w];
            if (s->sa.word[w] == 0)
                s->sa.summary[t] &= ~(UINT64_C(1) << (w & 63));
            while (bits != 0) {
                const uint64_t group = bits & (port_mask << (lowest_bit(bits) & ~vc_mask));
                bits &= ~group;
                const uint32_t ivc = choose_vc(s, group, w << 6);
                if (ivc != RG_NOC_NONE)
                    sa_bid(s, ivc);
            }
        }
    }
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
                /* The allocator has matched the pair, so its pointers have moved. */
                const uint32_t port = ivc >> s->vc_shift;
                o->ptr = (port + 1) << s->vc_shift;
                s->input[port].ptr = s->sa_won[i] + 1;
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

static inline void send_credit(rg_noc_sim *s, uint32_t ivc)
{
    const input_port *in = &s->input[ivc >> s->vc_shift];
    const uint32_t b = (s->now + in->credit_delay) & s->wheel_mask;
    s->credit_wheel[b * s->credit_room + s->credit_count[b]++] =
        in->upstream | (ivc & ((1u << s->vc_shift) - 1));
}

/* What stands behind a flit that has left: the same packet's next flit, a new head, or nothing. */
static inline void advance_vc(rg_noc_sim *s, input_vc *v, uint32_t ivc, uint32_t flit)
{
    const uint32_t ovc = v->ovc;
    output_vc *o = &s->ovc[ovc];
    if (flit & FLIT_TAIL) {
        v->ovc = RG_NOC_NONE;
        bit_set_remove(&s->sa, ivc);
        if (s->config->router.wait_for_tail_credit) {
            o->tail_sent = 1;
            o->owner = RG_NOC_NONE;
        } else {
            release_vc(s, ovc);
        }
        if (v->count > 0)
            rg_noc_state_front(s, ivc, rg_noc_state_front_flit(s, ivc), s->now + 1);
        return;
    }
    if (v->count == 0 || o->credits == 0) {
        bit_set_remove(&s->sa, ivc);
        if (v->count == 0 || !s->slow)
            return;
    }
    if (s->slow) {
        uint32_t from = s->now + 1;
        if (s->sa_wait > 0 && s->arrived_at[ivc * s->buffer + v->head] + s->sa_wait > from)
            from = s->arrived_at[ivc * s->buffer + v->head] + s->sa_wait;
        ready_to_bid(s, v, ivc, from, s->now + 1);
    }
}

static void sa_grant(rg_noc_sim *s)
{
    const uint32_t count = s->sa_count, shift = s->vc_shift;
    s->sa_count = 0;
    s->flit_hops += count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t out = s->sa_won[i];
        output_port *o = &s->output[out];
        const uint32_t ivc = o->best, port = ivc >> shift;
        input_vc *v = &s->ivc[ivc];
        const uint32_t ovc = v->ovc;
        const uint32_t flit = s->ring[ivc * s->buffer + v->head];
        v->head = v->head + 1u == s->buffer ? 0 : (uint16_t)(v->head + 1);
        v->count--;
        o->best = RG_NOC_NONE;
        if (i < s->sa_first) {
            o->ptr = (port + 1) << shift;
            s->input[port].ptr = out + 1;
        }
        o->flits++;
        if (s->serial)
            o->busy_until = s->now + o->period;
        s->input[port].rr = (ivc & ((1u << shift) - 1)) + 1;
        s->ovc[ovc].credits--;
        const uint32_t b = (s->now + o->delay) & s->wheel_mask;
        s->flit_wheel[b * s->flit_room + s->flit_count[b]++] =
            (flit_event){o->target | (ovc & ((1u << shift) - 1)), flit};
        send_credit(s, ivc);
        if (flit & FLIT_HEAD)
            s->pool[flit >> 2].hops++;
        advance_vc(s, v, ivc, flit);
    }
}

static void allocate(rg_noc_sim *s)
{
    const rg_noc_router *r = &s->config->router;
    s->va_first = s->sa_first = UINT32_MAX;
    if (r->vc_allocator == RG_NOC_SEPARABLE_INPUT_FIRST && s->routing != RG_NOC_ROUTE_ADAPTIVE)
        va_separable(s);
    else
        rg_noc_state_va(s);
    if (r->switch_allocator != RG_NOC_SEPARABLE_INPUT_FIRST ||
        (s->speculative && s->routing == RG_NOC_ROUTE_ADAPTIVE))
        rg_noc_state_sa(s);
    else if (s->speculative)
        sa_speculative(s);
    else
        sa_separable(s);
    if (s->speculative)
        drop_failed_speculation(s);
    va_grant(s);
    sa_grant(s);
}

void rg_noc_sim_step(rg_noc_sim *s, int64_t cycles)
{
    for (int64_t i = 0; i < cycles; i++) {
        receive_flits(s);
        receive_credits(s);
        if (s->slow)
            receive_ready(s);
        if (s->config->sends != NULL)
            rg_noc_state_wake_sends(s);
        rg_noc_state_inject(s);
        allocate(s);
        s->now++;
    }
}

int64_t rg_noc_sim_flit_hops(const rg_noc_sim *s)
{
    return s->flit_hops;
}

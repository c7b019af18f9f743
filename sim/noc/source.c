/* noc/source.c: what enters the network and what leaves it: drawn packets, replies, traces. */
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "noc/state.h"

static uint32_t new_packet(rg_noc_sim *s)
{
    if (s->pool_free == RG_NOC_NONE) {
        rg_err err;
        const uint32_t size = 2 * s->pool_size;
        packet *grown = size < 1u << 29 ? RG_NEW(s->arena, packet, size, &err) : NULL;
        if (grown == NULL) {
            s->starved = true;
            return RG_NOC_NONE;
        }
        memcpy(grown, s->pool, s->pool_size * sizeof *grown);
        for (uint32_t i = size; i-- > s->pool_size;) {
            grown[i].link = s->pool_free;
            s->pool_free = i;
        }
        s->pool = grown;
        s->pool_size = size;
    }
    const uint32_t p = s->pool_free;
    s->pool_free = s->pool[p].link;
    s->packets_alive++;
    return p;
}

static void activate(rg_noc_sim *s, uint32_t node)
{
    bit_set_add(&s->active, node);
}

static const double ln2 = 0.693147180559945309417;

/* ln(1 - p) for 0 < p <= 1/2 by the series of 2 atanh; |t| is at most 1/3, so 20 terms are plenty.
 */
static double log_below_one(double p)
{
    const double t = -p / (2.0 - p);
    double sum = 0.0;
    for (int i = 39; i >= 1; i -= 2)
        sum = sum * t * t + 1.0 / i;
    return 2.0 * t * sum;
}

/* ln(1 - p) for 0 < p < 1. */
static double log_one_minus(double p)
{
    double rest = 1.0 - p;
    int halvings = 0;
    if (p <= 0.5)
        return log_below_one(p);
    while (rest < 0.5) {
        rest *= 2.0;
        halvings++;
    }
    return log_below_one(1.0 - rest) - halvings * ln2;
}

static void fill_logs(log_table *t)
{
    for (int i = 0; i < LOG_STEPS; i++) {
        t->inverse[i] = 1.0 / (1.0 + (i + 0.5) / LOG_STEPS);
        t->logarithm[i] = -log_below_one(1.0 - t->inverse[i]);
    }
}

/* ln(x / 2^53) for 1 <= x <= 2^53: x = m 2^e, m from the table, the rest by its series. */
static double log_of_fraction(const log_table *t, uint64_t x)
{
    const int e = 63 - __builtin_clzll(x);
    const uint64_t fraction = x << (63 - e) << 1; /* of m, without its leading 1 */
    const int step = (int)(fraction >> 57);
    const double m = 1.0 + (double)(fraction >> 11) * 0x1.0p-53;
    const double r = m * t->inverse[step] - 1.0; /* |r| < 2^-8 */
    const double series =
        r * (1.0 + r * (-1.0 / 2 + r * (1.0 / 3 + r * (-1.0 / 4 + r * (1.0 / 5 - r / 6)))));
    return (e - 53) * ln2 + t->logarithm[step] + series;
}

/* Cycles until the next success of a Bernoulli trial per cycle: geometric, at least 1. */
static uint64_t draw_gap(rg_noc_sim *s, const source *q)
{
    if (q->gap_scale == 0.0)
        return 1;
    const double gap = log_of_fraction(&s->logs, (rg_rng_next(&s->rng) >> 11) + 1) * q->gap_scale;
    return gap < 1e15 ? 1 + (uint64_t)gap : UINT64_MAX / 2;
}

static void put_in_calendar(rg_noc_sim *s, uint32_t index)
{
    source *q = &s->source[index];
    if (q->in_calendar || q->birth >= UINT64_MAX / 4)
        return;
    q->in_calendar = true;
    q->calendar_next = s->calendar[q->birth & (CALENDAR - 1)];
    s->calendar[q->birth & (CALENDAR - 1)] = index;
}

static void read_calendar(rg_noc_sim *s)
{
    uint32_t *slot = &s->calendar[s->now & (CALENDAR - 1)];
    uint32_t index = *slot;
    *slot = RG_NOC_NONE;
    while (index != RG_NOC_NONE) {
        source *q = &s->source[index];
        const uint32_t next = q->calendar_next;
        q->in_calendar = false;
        if (q->birth <= s->now)
            activate(s, index / (uint32_t)s->config->class_count);
        else
            put_in_calendar(s, index);
        index = next;
    }
}

static void start_packet(rg_noc_sim *s, packet *p, uint32_t birth)
{
    p->birth = birth;
    p->arrived = p->hops = 0;
    p->link = RG_NOC_NONE;
    if (s->recording && birth < s->drain_from) {
        p->flags |= PACKET_RECORD;
        s->recorded_out++;
    }
}

static uint32_t draw_destination(rg_noc_sim *s, const rg_noc_pattern *pattern, uint32_t node)
{
    const uint32_t tickets = rg_noc_pattern_tickets(pattern);
    const uint32_t ticket = tickets > 1 ? rg_noc_state_below(s, tickets) : 0;
    return (uint32_t)rg_noc_pattern_pick(pattern, (int)node, ticket);
}

static void draw_packet(rg_noc_sim *s, source *q, uint32_t node, uint32_t c)
{
    const rg_noc_class *cl = &s->config->classes[c];
    const uint32_t index = new_packet(s);
    if (index == RG_NOC_NONE)
        return;
    packet *p = &s->pool[index];
    p->source = node;
    p->destination = draw_destination(s, cl->pattern, node);
    p->kind = (uint8_t)(2 * c);
    p->flags = 0;
    p->length = (uint16_t)cl->flits;
    if (cl->request_reply) {
        const bool write = rg_noc_state_real(s) < cl->write_share;
        p->flags = write ? PACKET_WRITE : 0;
        p->length = (uint16_t)(write ? cl->write_request : cl->read_request);
    }
    start_packet(s, p, (uint32_t)q->birth);
    q->birth += s->knuth != NULL ? 0 : draw_gap(s, q);
    q->current = index;
    q->sent = 0;
}

/* The next packet of the message at the head of the queue. */
static void take_send(rg_noc_sim *s, source *q)
{
    stream *st = s->stream;
    const uint32_t m = q->queue;
    const rg_noc_send *send = &s->config->sends[m];
    const uint32_t index = new_packet(s);
    if (index == RG_NOC_NONE)
        return;
    packet *p = &s->pool[index];
    const int32_t most = s->config->max_packet;
    p->source = (uint32_t)send->source;
    p->destination = (uint32_t)send->destination;
    p->kind = (uint8_t)(2 * send->class_index);
    p->flags = 0;
    p->length = (uint16_t)(st->to_send[m] < most ? st->to_send[m] : most);
    p->send = m;
    start_packet(s, p, (uint32_t)st->birth[m]);
    st->to_send[m] -= p->length;
    if (st->to_send[m] == 0)
        q->queue = st->next[m];
    q->current = index;
    q->sent = 0;
}

static bool reply_is_due(const rg_noc_sim *s, const source *q)
{
    return q->queue != RG_NOC_NONE && s->pool[q->queue].birth < s->now;
}

static void take_reply(rg_noc_sim *s, source *q)
{
    q->current = q->queue;
    q->sent = 0;
    q->queue = s->pool[q->current].link;
    s->pool[q->current].link = RG_NOC_NONE;
}

/* As BookSim's traffic manager: one trial for each cycle up to now, until one succeeds; a reply
 * that is due takes the place of a trial and draws a destination in vain, a plain packet draws a
 * subnetwork of one. */
static void lockstep_births(rg_noc_sim *s, source *q, uint32_t node, uint32_t c)
{
    const rg_noc_class *cl = &s->config->classes[c];
    const double factor = cl->node_factor != NULL ? cl->node_factor[node] : 1.0;
    const double rate = cl->packets_per_cycle * factor;
    while (q->current == RG_NOC_NONE && (reply_is_due(s, q) || q->birth <= s->now)) {
        if (reply_is_due(s, q)) {
            take_reply(s, q);
            draw_destination(s, cl->pattern, node);
            continue;
        }
        if (rate > 0.0 && rg_noc_state_real(s) < rate) {
            draw_packet(s, q, node, c);
            if (!cl->request_reply)
                rg_noc_state_below(s, 1);
        }
        q->birth++;
    }
}

/* The packet that goes next; false when none is due. Replies go before new requests. */
static bool take_next(rg_noc_sim *s, source *q, uint32_t node, uint32_t c)
{
    if (s->config->sends != NULL) {
        if (q->queue == RG_NOC_NONE)
            return false;
        take_send(s, q);
    } else if (s->knuth != NULL) {
        lockstep_births(s, q, node, c);
    } else if (q->queue != RG_NOC_NONE) {
        if (!reply_is_due(s, q))
            return false;
        take_reply(s, q);
    } else if (q->birth <= s->now) {
        draw_packet(s, q, node, c);
    }
    return q->current != RG_NOC_NONE;
}

/* A free VC with a credit for a head, searched from the one after the last. When that one lies
 * outside the range (a request after a reply), BookSim looks at the first of the range alone. */
static bool find_vc(const rg_noc_sim *s, source *q, uint32_t port, uint32_t mask)
{
    const uint32_t range = (mask >> q->last_vc & 1) != 0 ? mask : mask & -mask;
    const uint32_t free = s->output[port].free & range;
    uint32_t ahead = free & ~((2u << q->last_vc) - 1), behind = free & ~ahead;
    for (int pass = 0; pass < 2; pass++, ahead = behind)
        for (; ahead != 0; ahead &= ahead - 1) {
            const uint32_t vc = (uint32_t)__builtin_ctz(ahead);
            if (s->ovc[port << s->vc_shift | vc].credits > 0) {
                q->vc = q->last_vc = vc;
                return true;
            }
        }
    return false;
}

static bool put_flit(rg_noc_sim *s, source *q, uint32_t node)
{
    const uint32_t port = s->outputs + node;
    packet *p = &s->pool[q->current];
    output_port *o = &s->output[port];
    if (s->serial && o->busy_until > s->now)
        return false;
    uint32_t flit = q->current << 2;
    if (q->sent == 0) {
        if (!find_vc(s, q, port, s->kind_mask[p->kind]))
            return false;
        o->free &= ~(1u << q->vc);
        if (s->lookahead)
            rg_noc_state_route(s, p, o->target >> s->vc_shift, q->vc);
        p->entered = s->now;
        flit |= FLIT_HEAD;
    }
    output_vc *v = &s->ovc[port << s->vc_shift | q->vc];
    if (v->credits == 0)
        return false;
    v->credits--;
    if (++q->sent == p->length) {
        flit |= FLIT_TAIL;
        q->current = RG_NOC_NONE;
        if (s->config->router.wait_for_tail_credit)
            v->tail_sent = 1;
        else
            o->free |= 1u << q->vc;
    }
    rg_noc_state_send_flit(s, o->delay, o->target | q->vc, flit);
    o->flits++;
    o->busy_until = s->now + o->period;
    s->flits_in++;
    if (s->counting)
        s->node_injected[node]++;
    return true;
}

static void serve_node(rg_noc_sim *s, uint32_t node)
{
    const uint32_t classes = (uint32_t)s->config->class_count;
    const uint32_t last = s->last_class[node];
    bool sent = false, stays = false;
    for (uint32_t i = 1; i <= classes; i++) {
        const uint32_t c = last + i < classes ? last + i : last + i - classes;
        source *q = &s->source[node * classes + c];
        if (q->current != RG_NOC_NONE || take_next(s, q, node, c)) {
            if (!sent && put_flit(s, q, node)) {
                sent = true;
                s->last_class[node] = (uint8_t)c;
            }
        }
        if (q->current != RG_NOC_NONE || q->queue != RG_NOC_NONE || q->birth <= s->now + 1u)
            stays = true;
        else if (s->knuth == NULL)
            put_in_calendar(s, node * classes + c);
    }
    if (!stays)
        bit_set_remove(&s->active, node);
}

void rg_noc_state_inject(rg_noc_sim *s)
{
    if (s->knuth == NULL) {
        read_calendar(s);
    } else { /* all draw before any sends */
        const uint32_t classes = (uint32_t)s->config->class_count;
        for (uint32_t i = 0; i < s->nodes * classes; i++)
            if (s->source[i].current != RG_NOC_NONE ||
                take_next(s, &s->source[i], i / classes, i % classes))
                activate(s, i / classes);
    }
    for (uint32_t t = 0; t < s->active.summaries; t++)
        for (uint64_t sum = s->active.summary[t]; sum != 0; sum &= sum - 1) {
            const uint32_t w = t << 6 | (uint32_t)__builtin_ctzll(sum);
            for (uint64_t bits = s->active.word[w]; bits != 0; bits &= bits - 1)
                serve_node(s, w << 6 | (uint32_t)__builtin_ctzll(bits));
            if (s->active.word[w] == 0)
                s->active.summary[t] &= ~(UINT64_C(1) << (w & 63));
        }
}

rg_status rg_noc_state_sources(rg_noc_sim *s, rg_err *err)
{
    const rg_noc_config *config = s->config;
    const uint32_t classes = (uint32_t)config->class_count;
    fill_logs(&s->logs);
    for (uint32_t i = 0; i < CALENDAR; i++)
        s->calendar[i] = RG_NOC_NONE;
    for (uint32_t i = 0; i < s->nodes * classes; i++) {
        source *q = &s->source[i];
        const rg_noc_class *cl = &config->classes[i % classes];
        *q = (source){.current = RG_NOC_NONE,
                      .queue = RG_NOC_NONE,
                      .queue_last = RG_NOC_NONE,
                      .calendar_next = RG_NOC_NONE,
                      .birth = UINT64_MAX / 2,
                      .last_vc = RG_NOC_MAX_VCS - 1};
        const double factor = cl->node_factor != NULL ? cl->node_factor[i / classes] : 1.0;
        const double rate = cl->packets_per_cycle * factor;
        if (config->sends != NULL || rate == 0.0)
            continue;
        if (!(rate > 0.0) || rate > 1.0 + 1e-12)
            return rg_fail(
                err, RG_ERR_MODEL, RG_NOWHERE,
                "node '%u' would send %g packets a cycle; a source can start at most one "
                "a cycle",
                i / classes, rate);
        if (s->knuth != NULL) {
            q->birth = 0;
            continue;
        }
        q->gap_scale = rate < 1.0 ? 1.0 / log_one_minus(rate) : 0.0;
        q->birth = draw_gap(s, q) - 1;
        put_in_calendar(s, i);
    }
    return RG_OK;
}

static void tally_add(tally *t, uint32_t value)
{
    uint32_t bucket = value;
    if (value >= TALLY_EXACT) {                                     /* 128 steps in each doubling */
        const uint32_t power = 31 - (uint32_t)__builtin_clz(value); /* 11 or more */
        bucket = TALLY_EXACT + (power - 11) * TALLY_STEPS + ((value >> (power - 7)) - TALLY_STEPS);
    }
    t->bucket[bucket]++;
    t->count++;
    t->sum += value;
    t->least = value < t->least ? value : t->least;
    t->most = value > t->most ? value : t->most;
}

static void record_packet(rg_noc_sim *s, const packet *p)
{
    const uint32_t latency = s->now - p->birth, network = s->now - p->entered;
    tally_add(&s->packet_latency, latency);
    tally_add(&s->network_latency, network);
    tally_add(&s->per_hop, 16 * (network - (p->length - 1u)) / p->hops);
    s->fragmentation += (s->now - p->link) - (p->length - 1u);
    s->hop_sum += p->hops;
    uint32_t batch = p->birth > s->record_from ? (p->birth - s->record_from) / s->batch_length : 0;
    batch = batch < BATCHES ? batch : BATCHES - 1;
    s->batch_sum[batch] += latency;
    s->batch_count[batch]++;
}

static void queue_reply(rg_noc_sim *s, const packet *request)
{
    const rg_noc_class *cl = &s->config->classes[request->kind / 2];
    const packet asked = *request; /* the pool may move */
    const uint32_t index = new_packet(s);
    if (index == RG_NOC_NONE)
        return;
    packet *p = &s->pool[index];
    const bool write = asked.flags & PACKET_WRITE;
    p->source = asked.destination;
    p->destination = asked.source;
    p->kind = asked.kind | 1;
    p->flags = asked.flags & (PACKET_WRITE | PACKET_RECORD);
    if (s->recording && s->now < s->drain_from)
        p->flags |= PACKET_RECORD;
    p->length = (uint16_t)(write ? cl->write_reply : cl->read_reply);
    p->birth = s->now;
    p->arrived = p->hops = 0;
    p->link = RG_NOC_NONE;
    s->recorded_out += (p->flags & PACKET_RECORD) != 0;
    const uint32_t classes = (uint32_t)s->config->class_count;
    source *q = &s->source[p->source * classes + asked.kind / 2];
    if (q->queue == RG_NOC_NONE)
        q->queue = index;
    else
        s->pool[q->queue_last].link = index;
    q->queue_last = index;
    activate(s, p->source);
}

void rg_noc_state_sink(rg_noc_sim *s, uint32_t node, uint32_t vc, uint32_t flit)
{
    const input_port *in = &s->input[s->inputs + node];
    rg_noc_state_send_credit(s, in->credit_delay, in->upstream | vc);
    const uint32_t index = flit >> 2;
    packet *p = &s->pool[index];
    p->arrived++;
    s->flits_out++;
    if (s->counting)
        s->node_accepted[node]++;
    if (flit & FLIT_HEAD)
        p->link = s->now;
    if (!(flit & FLIT_TAIL))
        return;
    if (s->counting)
        s->node_packets[node]++;
    if (p->flags & PACKET_RECORD || s->warming)
        record_packet(s, p);
    s->recorded_out -= (p->flags & PACKET_RECORD) != 0;
    if (s->config->sends != NULL)
        rg_noc_state_stream_arrived(s, p->send, p->length);
    else if (!(p->kind & 1) && s->config->classes[p->kind / 2].request_reply)
        queue_reply(s, p);
    s->pool[index].link = s->pool_free;
    s->pool[index].length = 0; /* marks it free */
    s->pool_free = index;
    s->packets_alive--;
}

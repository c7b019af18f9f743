/* noc/alloc.c: allocators other than the plain separable input-first one, and adaptive requests.
 *
 * Requests of a cycle are collected in a list; a matcher leaves the winners in best of the outputs
 * and lists them. Sources: McKeown, "The iSLIP scheduling algorithm for input-queued switches",
 * IEEE/ACM ToN 7(2), 1999; Tamir and Chi, "Symmetric crossbar arbiters for VLSI communication
 * switches", IEEE TPDS 4(1), 1993 (wavefront); Dally and Towles 2004, chapter 19 (separable).
 */
// SPDX-License-Identifier: Apache-2.0
#include "noc/state.h"

#include <stdlib.h>

typedef struct request {
    uint32_t input, output; /* VC allocation: VCs; switch allocation: ports */
    uint32_t ivc, rank;     /* a lower rank goes first */
    uint64_t order;         /* wavefront */
} request;

typedef struct matcher {
    request *list;
    uint32_t count, room;
    uint32_t *in_best, *out_best; /* request index, NONE */
    uint8_t *in_taken, *out_taken;
    bool vc_stage;
} matcher;

rg_status rg_noc_state_alloc_new(rg_noc_sim *s, rg_err *err)
{
    const size_t vcs_in = (size_t)s->inputs << s->vc_shift;
    const size_t vcs_out = (size_t)(s->outputs + s->nodes) << s->vc_shift;
    matcher *m = RG_NEW(s->arena, matcher, 1, err);
    if (m == NULL)
        return RG_ERR_LIMIT;
    const size_t outs = s->routing == RG_NOC_ROUTE_ADAPTIVE ? (size_t)s->dims : 1;
    m->room = (uint32_t)(vcs_in * s->vcs * outs);
    m->list = RG_NEW(s->arena, request, m->room, err);
    m->in_best = RG_NEW(s->arena, uint32_t, vcs_in, err);
    m->out_best = RG_NEW(s->arena, uint32_t, vcs_out, err);
    m->in_taken = RG_NEW(s->arena, uint8_t, vcs_in, err);
    m->out_taken = RG_NEW(s->arena, uint8_t, vcs_out, err);
    if (m->list == NULL || m->in_best == NULL || m->out_best == NULL || m->in_taken == NULL ||
        m->out_taken == NULL)
        return RG_ERR_LIMIT;
    for (size_t i = 0; i < vcs_in; i++)
        m->in_best[i] = RG_NOC_NONE;
    for (size_t i = 0; i < vcs_out; i++)
        m->out_best[i] = RG_NOC_NONE;
    s->alloc = m;
    return RG_OK;
}

/* Place of a request in the round robin of its input's arbiter; smaller goes first. */
static uint64_t input_key(const rg_noc_sim *s, const matcher *m, const request *r)
{
    const uint32_t ptr = m->vc_stage ? s->ivc[r->input].va_ptr : s->input[r->input].ptr;
    const uint32_t vc = r->ivc & ((1u << s->vc_shift) - 1);
    const uint32_t turn = m->vc_stage ? 0 : (vc - s->input[r->input].rr) & 0xff;
    return (uint64_t)r->rank << 48 | (uint64_t)(uint32_t)(r->output - ptr) << 8 | turn;
}

static uint64_t output_key(const rg_noc_sim *s, const matcher *m, const request *r)
{
    const uint32_t ptr =
        m->vc_stage ? s->ovc[r->output].ptr : s->output[r->output].ptr >> s->vc_shift;
    const uint32_t vc = r->ivc & ((1u << s->vc_shift) - 1);
    const uint32_t turn = m->vc_stage ? 0 : (vc - s->input[r->input].rr) & 0xff;
    const uint64_t rank = m->vc_stage ? 0 : r->rank; /* a head's wish binds no output VC */
    return rank << 48 | (uint64_t)(uint32_t)(r->input - ptr) << 8 | turn;
}

static void keep_better(const rg_noc_sim *s, const matcher *m, uint32_t *best, uint32_t i,
                        uint64_t (*key)(const rg_noc_sim *, const matcher *, const request *))
{
    if (*best == RG_NOC_NONE || key(s, m, &m->list[i]) < key(s, m, &m->list[*best]))
        *best = i;
}

static void win(rg_noc_sim *s, matcher *m, const request *r)
{
    m->in_taken[r->input] = m->out_taken[r->output] = 1;
    if (m->vc_stage) {
        s->ovc[r->output].best = r->ivc;
        s->va_won[s->va_count++] = r->output;
    } else {
        s->output[r->output].best = r->ivc;
        s->sa_won[s->sa_count++] = r->output;
    }
}

static bool open(const matcher *m, const request *r)
{
    return !m->in_taken[r->input] && !m->out_taken[r->output];
}

static void match_input_first(rg_noc_sim *s, matcher *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        keep_better(s, m, &m->in_best[m->list[i].input], i, input_key);
    for (uint32_t i = 0; i < m->count; i++)
        if (m->in_best[m->list[i].input] == i)
            keep_better(s, m, &m->out_best[m->list[i].output], i, output_key);
    for (uint32_t i = 0; i < m->count; i++)
        if (m->out_best[m->list[i].output] == i)
            win(s, m, &m->list[i]);
}

static void match_output_first(rg_noc_sim *s, matcher *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (open(m, &m->list[i]))
            keep_better(s, m, &m->out_best[m->list[i].output], i, output_key);
    for (uint32_t i = 0; i < m->count; i++)
        if (m->out_best[m->list[i].output] == i)
            keep_better(s, m, &m->in_best[m->list[i].input], i, input_key);
    for (uint32_t i = 0; i < m->count; i++)
        if (m->in_best[m->list[i].input] == i)
            win(s, m, &m->list[i]);
}

static void forget_best(matcher *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        m->in_best[m->list[i].input] = RG_NOC_NONE;
        m->out_best[m->list[i].output] = RG_NOC_NONE;
    }
}

static int by_order(const void *left, const void *right)
{
    const request *a = left, *b = right;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return (a->input > b->input) - (a->input < b->input);
}

/* The wave starts at another diagonal each cycle; within a diagonal requests never collide. */
static void match_wavefront(rg_noc_sim *s, matcher *m)
{
    const uint32_t shift = m->vc_stage ? s->vc_shift : 0;
    for (uint32_t i = 0; i < m->count; i++) {
        request *r = &m->list[i];
        const uint32_t router = (uint32_t)s->graph->in_router[r->ivc >> s->vc_shift];
        const uint32_t in0 = (uint32_t)s->graph->in_first[router] << shift;
        const uint32_t in1 = (uint32_t)s->graph->in_first[router + 1] << shift;
        const uint32_t out0 = (uint32_t)s->graph->out_first[router] << shift;
        const uint32_t out1 = (uint32_t)s->graph->out_first[router + 1] << shift;
        const uint32_t side = in1 - in0 > out1 - out0 ? in1 - in0 : out1 - out0;
        const uint32_t diagonal = (r->input - in0 + r->output - out0 + side - s->now % side) % side;
        r->order = (uint64_t)r->rank << 56 | (uint64_t)router << 32 | diagonal;
    }
    qsort(m->list, m->count, sizeof *m->list, by_order);
    for (uint32_t i = 0; i < m->count; i++)
        if (open(m, &m->list[i]))
            win(s, m, &m->list[i]);
}

static void match(rg_noc_sim *s, matcher *m, rg_noc_allocator kind, uint32_t *first)
{
    const uint32_t *won = m->vc_stage ? &s->va_count : &s->sa_count;
    const int iterations = kind == RG_NOC_ISLIP ? s->config->router.iterations : 1;
    for (int i = 0; i < iterations; i++) {
        if (kind == RG_NOC_SEPARABLE_INPUT_FIRST)
            match_input_first(s, m);
        else if (kind == RG_NOC_WAVEFRONT)
            match_wavefront(s, m);
        else
            match_output_first(s, m);
        forget_best(m);
        if (i == 0)
            *first = *won; /* pointers move for winners of the first iteration only */
    }
    for (uint32_t i = 0; i < m->count; i++)
        m->in_taken[m->list[i].input] = m->out_taken[m->list[i].output] = 0;
}

static void ask(matcher *m, request r)
{
    m->list[m->count++] = r;
}

/* The next VC at or after i that asks for a VC or bids for the switch, NONE at the end. */
static uint32_t next_that_wants(const rg_noc_sim *s, bool a_vc, uint32_t i)
{
    uint32_t from = i & ((1u << s->vc_shift) - 1);
    for (uint32_t port = i >> s->vc_shift; port < s->inputs; port++, from = 0) {
        const uint32_t vcs = (a_vc ? s->input[port].heads : s->input[port].bids) >> from << from;
        if (vcs != 0)
            return port << s->vc_shift | (uint32_t)__builtin_ctz(vcs);
    }
    return RG_NOC_NONE;
}

static int head_candidates(const rg_noc_sim *s, uint32_t ivc, candidate *list)
{
    if (s->routing == RG_NOC_ROUTE_ADAPTIVE)
        return rg_noc_state_candidates(s, ivc, list);
    list[0] = (candidate){s->ivc[ivc].out, s->ivc[ivc].mask, false};
    return 1;
}

void rg_noc_state_va(rg_noc_sim *s)
{
    matcher *m = s->alloc;
    candidate list[2 * RG_NOC_MAX_DIMS];
    m->vc_stage = true;
    m->count = 0;
    for (uint32_t ivc = next_that_wants(s, true, 0); ivc != RG_NOC_NONE;
         ivc = next_that_wants(s, true, ivc + 1)) {
        const int candidates = head_candidates(s, ivc, list);
        for (int c = 0; c < candidates; c++) {
            uint32_t free = s->output[list[c].out].free & list[c].mask;
            for (; free != 0; free &= free - 1)
                ask(m,
                    (request){.input = ivc,
                              .output = list[c].out << s->vc_shift | (uint32_t)__builtin_ctz(free),
                              .ivc = ivc,
                              .rank = list[c].escape});
        }
    }
    match(s, m, s->config->router.vc_allocator, &s->va_first);
}

static bool has_credit(const rg_noc_sim *s, const candidate *c)
{
    for (uint32_t free = s->output[c->out].free & c->mask; free != 0; free &= free - 1)
        if (s->ovc[c->out << s->vc_shift | (uint32_t)__builtin_ctz(free)].credits > 0)
            return true;
    return false;
}

static void ask_switch(rg_noc_sim *s, matcher *m, uint32_t ivc, uint32_t out, uint32_t rank)
{
    if (s->output[out].busy_until <= s->now)
        ask(m, (request){.input = ivc >> s->vc_shift, .output = out, .ivc = ivc, .rank = rank});
}

void rg_noc_state_sa(rg_noc_sim *s)
{
    matcher *m = s->alloc;
    candidate list[2 * RG_NOC_MAX_DIMS];
    m->vc_stage = false;
    m->count = 0;
    for (uint32_t ivc = next_that_wants(s, false, 0); ivc != RG_NOC_NONE;
         ivc = next_that_wants(s, false, ivc + 1))
        ask_switch(s, m, ivc, s->ivc[ivc].out, 0);
    if (s->speculative) {
        for (uint32_t ivc = next_that_wants(s, true, 0); ivc != RG_NOC_NONE;
             ivc = next_that_wants(s, true, ivc + 1)) {
            if (s->slow && s->ivc[ivc].ready > s->now)
                continue;
            const int candidates = head_candidates(s, ivc, list);
            for (int c = 0; c < candidates; c++)
                if (has_credit(s, &list[c]))
                    ask_switch(s, m, ivc, list[c].out, 1);
        }
    }
    match(s, m, s->config->router.switch_allocator, &s->sa_first);
}

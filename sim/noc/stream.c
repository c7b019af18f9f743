/* noc/stream.c: messages with a time and an order: traces and generated operators. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "noc/state.h"

static bool earlier(const wake_item *a, const wake_item *b)
{
    return a->time != b->time ? a->time < b->time : a->send < b->send;
}

static void wake_later(stream *st, uint32_t send)
{
    const wake_item item = {st->birth[send], send};
    int64_t i = st->wake_count++;
    for (; i > 0 && earlier(&item, &st->wake[(i - 1) / 2]); i = (i - 1) / 2)
        st->wake[i] = st->wake[(i - 1) / 2];
    st->wake[i] = item;
}

static wake_item wake_first(stream *st)
{
    const wake_item least = st->wake[0], last = st->wake[--st->wake_count];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= st->wake_count)
            break;
        if (child + 1 < st->wake_count && earlier(&st->wake[child + 1], &st->wake[child]))
            child++;
        if (earlier(&last, &st->wake[child]))
            break;
        st->wake[i] = st->wake[child];
        i = child;
    }
    st->wake[i] = last;
    return least;
}

void rg_noc_state_stream_arrived(rg_noc_sim *s, uint32_t send, uint32_t flits)
{
    stream *st = s->stream;
    st->to_arrive[send] -= (int32_t)flits;
    if (st->to_arrive[send] > 0)
        return;
    st->left--;
    st->finish[send] = s->now;
    for (int64_t i = st->order_first[send]; i < st->order_first[send + 1]; i++) {
        const uint32_t after = (uint32_t)st->orders[i].after;
        const uint64_t earliest = (uint64_t)s->now + st->orders[i].delay;
        if (st->birth[after] < earliest)
            st->birth[after] = earliest;
        if (--st->waits[after] == 0)
            wake_later(st, after);
    }
}

void rg_noc_state_stream_wake(rg_noc_sim *s)
{
    stream *st = s->stream;
    while (st->wake_count > 0 && st->wake[0].time <= s->now) {
        const uint32_t m = wake_first(st).send;
        const rg_noc_send *send = &s->config->sends[m];
        source *q = &s->source[(uint32_t)send->source * (uint32_t)s->config->class_count +
                               (uint32_t)send->class_index];
        st->next[m] = RG_NOC_NONE;
        if (q->queue == RG_NOC_NONE)
            q->queue = m;
        else
            st->next[q->queue_last] = m;
        q->queue_last = m;
        bit_set_add(&s->active, (uint32_t)send->source);
    }
}

static int by_before(const void *left, const void *right)
{
    const rg_noc_order *a = left, *b = right;
    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    return (a->after > b->after) - (a->after < b->after);
}

static rg_status sort_orders(rg_noc_sim *s, rg_err *err)
{
    const size_t count = (size_t)s->config->order_count;
    rg_noc_order *orders = RG_NEW(s->arena, rg_noc_order, count, err);
    if (orders == NULL)
        return RG_ERR_LIMIT;
    if (count > 0) {
        memcpy(orders, s->config->orders, count * sizeof *orders);
        qsort(orders, count, sizeof *orders, by_before);
    }
    for (size_t i = 0; i < count; i++) {
        s->stream->order_first[orders[i].before + 1]++;
        s->stream->waits[orders[i].after]++;
    }
    for (int64_t i = 0; i < s->config->send_count; i++)
        s->stream->order_first[i + 1] += s->stream->order_first[i];
    s->stream->orders = orders;
    return RG_OK;
}

rg_status rg_noc_state_stream_new(rg_noc_sim *s, rg_err *err)
{
    const size_t count = (size_t)s->config->send_count;
    stream *st = s->stream = RG_NEW(s->arena, stream, 1, err);
    if (st == NULL)
        return RG_ERR_LIMIT;
    st->order_first = RG_NEW(s->arena, int64_t, count + 1, err);
    st->waits = RG_NEW(s->arena, uint32_t, count, err);
    st->birth = RG_NEW(s->arena, uint64_t, count, err);
    st->finish = RG_NEW(s->arena, uint64_t, count, err);
    st->to_send = RG_NEW(s->arena, int32_t, count, err);
    st->to_arrive = RG_NEW(s->arena, int32_t, count, err);
    st->next = RG_NEW(s->arena, uint32_t, count, err);
    st->wake = RG_NEW(s->arena, wake_item, count, err);
    if (st->order_first == NULL || st->waits == NULL || st->birth == NULL || st->finish == NULL ||
        st->to_send == NULL || st->to_arrive == NULL || st->next == NULL || st->wake == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(sort_orders(s, err));
    st->left = s->config->send_count;
    for (size_t i = 0; i < count; i++) {
        st->birth[i] = s->config->sends[i].cycle;
        st->to_send[i] = st->to_arrive[i] = s->config->sends[i].flits;
        if (st->waits[i] == 0)
            wake_later(st, (uint32_t)i);
    }
    return RG_OK;
}

static rg_status blocked(const rg_noc_sim *s, int dead, rg_err *err)
{
    if (dead > 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "deadlock by cycle %u: the flits of %d input VCs can never move again; the "
                       "routing is not free of deadlock with these virtual channels",
                       s->now, dead);
    int64_t first = 0;
    while (s->stream->waits[first] == 0)
        first++;
    return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                   "%lld messages wait for one another in a circle; message %lld is one of them",
                   (long long)s->stream->left, (long long)first);
}

/* An empty network with nothing to do before a later cycle: go there at once. */
static rg_status skip_idle(rg_noc_sim *s, rg_err *err)
{
    if (s->packets_alive > 0 || s->stream->wake_count == 0)
        return RG_OK;
    const uint64_t next = s->stream->wake[0].time;
    if (next >= UINT32_MAX / 2)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE,
                       "cycle %llu of the trace; up to %u can be simulated",
                       (unsigned long long)next, UINT32_MAX / 2);
    if (next <= (uint64_t)s->now + 2u * (s->wheel_mask + 1))
        return RG_OK;
    /* All credits come home first; then the wheels are empty and time may jump. */
    RG_TRY(rg_noc_state_step(s, (int64_t)s->wheel_mask + 1, err));
    s->now = (uint32_t)next;
    return RG_OK;
}

static rg_status run_messages(rg_noc_sim *s, rg_err *err)
{
    int64_t left = s->stream->left, hops = s->flit_hops;
    for (int64_t steps = 1; s->stream->left > 0; steps++) {
        if (s->packets_alive == 0 && s->stream->wake_count == 0) {
            bool waiting = false; /* what has been woken stands in a source queue */
            for (uint32_t i = 0; i < s->nodes * (uint32_t)s->config->class_count; i++)
                waiting |= s->source[i].queue != RG_NOC_NONE;
            if (!waiting)
                return blocked(s, 0, err);
        }
        RG_TRY(skip_idle(s, err));
        RG_TRY(rg_noc_state_step(s, 1, err));
        if (steps % 4096 != 0)
            continue;
        if (left == s->stream->left || hops == s->flit_hops) {
            const int dead = rg_noc_sim_deadlocked(s);
            if (dead > 0)
                return blocked(s, dead, err);
        }
        left = s->stream->left;
        hops = s->flit_hops;
        if (s->now >= UINT32_MAX / 2)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than %u cycles", UINT32_MAX / 2);
    }
    return RG_OK;
}

static rg_status run_stream(rg_arena *work, rg_arena *arena, const rg_noc_config *config,
                            bool detail, uint64_t *makespan, uint64_t *start, uint64_t *finish,
                            rg_noc_result *out, rg_err *err)
{
    rg_noc_sim *s;
    RG_TRY(rg_noc_sim_new(work, config, &s, err));
    rg_noc_state_start_counting(s);
    RG_TRY(run_messages(s, err));
    *makespan = 0;
    for (int64_t i = 0; i < config->send_count; i++) {
        if (s->stream->finish[i] > *makespan)
            *makespan = s->stream->finish[i];
        if (start != NULL)
            start[i] = s->stream->birth[i];
        if (finish != NULL)
            finish[i] = s->stream->finish[i];
    }
    out->converged = true;
    return rg_noc_state_results(arena, s, fmax((double)*makespan, 1.0), detail, out, err);
}

rg_status rg_noc_run_trace(rg_arena *arena, const rg_noc_config *config, bool detail,
                           uint64_t *makespan, uint64_t *start, uint64_t *finish,
                           rg_noc_result *out, rg_err *err)
{
    *out = (rg_noc_result){0};
    if (config->sends == NULL || config->send_count == 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "the trace holds no message");
    rg_arena *work = rg_arena_new(2 * RG_ARENA_DEFAULT_CAP_MIB);
    if (work == NULL)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for a simulation");
    const rg_status status =
        run_stream(work, arena, config, detail, makespan, start, finish, out, err);
    rg_arena_free(work);
    return status;
}

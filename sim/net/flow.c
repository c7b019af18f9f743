/* net/flow.c: transfers that share links, in max-min fair shares, from event to event. */
// SPDX-License-Identifier: Apache-2.0
#include "net/flow.h"

#include <math.h>

/* Times and shares that differ by less than this part are one: rounding, not physics. */
static const double same_ratio = 1e-12;

typedef enum event_kind { EVENT_ARRIVAL, EVENT_START } event_kind;

typedef struct event {
    double time;
    int32_t flow;
    event_kind kind;
} event;

typedef struct run {
    const rg_net *net;
    rg_flow *flows;
    int32_t count;
    int32_t *path_begin; /* [count + 1] into path_links */
    int32_t *path_links;
    double *left, *rate, *latency;
    int32_t *waiting;                     /* dependencies not arrived yet */
    int32_t *first_child, *next_child[2]; /* flows that wait for a flow */
    int32_t *active;
    int32_t active_count;
    double *link_room; /* [links] capacity not given away */
    int32_t *link_flows;
    int32_t *used_links;
    int32_t used_count;
    double *link_bytes;
    event *heap;
    int32_t heap_count;
} run;

static bool event_before(const event *a, const event *b)
{
    if (a->time != b->time)
        return a->time < b->time;
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->flow < b->flow;
}

static void push(run *r, event e)
{
    int32_t i = r->heap_count++;
    while (i > 0 && event_before(&e, &r->heap[(i - 1) / 2])) {
        r->heap[i] = r->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    r->heap[i] = e;
}

static event pop(run *r)
{
    const event top = r->heap[0], last = r->heap[--r->heap_count];
    int32_t i = 0;
    for (;;) {
        int32_t child = 2 * i + 1;
        if (child >= r->heap_count)
            break;
        if (child + 1 < r->heap_count && event_before(&r->heap[child + 1], &r->heap[child]))
            child++;
        if (!event_before(&r->heap[child], &last))
            break;
        r->heap[i] = r->heap[child];
        i = child;
    }
    r->heap[i] = last;
    return top;
}

/** Progressive filling: the link with the least share per flow fills first, with all that tie. */
static void share_links(run *r)
{
    r->used_count = 0;
    for (int32_t k = 0; k < r->active_count; k++) {
        const int32_t f = r->active[k];
        r->rate[f] = -1;
        for (int32_t p = r->path_begin[f]; p < r->path_begin[f + 1]; p++) {
            const int32_t link = r->path_links[p];
            if (r->link_flows[link]++ == 0) {
                r->link_room[link] = rg_net_link(r->net, link)->rate;
                r->used_links[r->used_count++] = link;
            }
        }
    }
    int32_t open = r->active_count;
    while (open > 0) {
        double least = INFINITY;
        for (int32_t u = 0; u < r->used_count; u++) {
            const int32_t link = r->used_links[u];
            if (r->link_flows[link] > 0)
                least = fmin(least, r->link_room[link] / r->link_flows[link]);
        }
        /* Full links are found first, and their flows stopped after, so that ties stop together. */
        for (int32_t k = 0; k < r->active_count; k++) {
            const int32_t f = r->active[k];
            if (r->rate[f] >= 0)
                continue;
            for (int32_t p = r->path_begin[f]; p < r->path_begin[f + 1]; p++) {
                const int32_t link = r->path_links[p];
                if (r->link_room[link] <= least * r->link_flows[link] * (1 + same_ratio)) {
                    r->rate[f] = -2;
                    break;
                }
            }
        }
        for (int32_t k = 0; k < r->active_count; k++) {
            const int32_t f = r->active[k];
            if (r->rate[f] != -2)
                continue;
            r->rate[f] = least;
            open--;
            for (int32_t p = r->path_begin[f]; p < r->path_begin[f + 1]; p++) {
                const int32_t link = r->path_links[p];
                r->link_room[link] -= least;
                r->link_flows[link]--;
            }
        }
    }
    for (int32_t u = 0; u < r->used_count; u++)
        r->link_flows[r->used_links[u]] = 0;
}

static void release_children(run *r, int32_t parent, double now)
{
    int32_t child = r->first_child[parent];
    while (child >= 0) {
        rg_flow *flow = &r->flows[child];
        const int slot = flow->after[0] == parent ? 0 : 1;
        const int32_t next = r->next_child[slot][child];
        if (--r->waiting[child] == 0)
            push(r, (event){now + flow->delay_s, child, EVENT_START});
        child = next;
    }
}

/** Take all events of this moment; starts join the active flows, arrivals release others. */
static void take_events(run *r, double now, int32_t *arrived)
{
    while (r->heap_count > 0 && r->heap[0].time <= now + fabs(now) * same_ratio) {
        const event e = pop(r);
        rg_flow *flow = &r->flows[e.flow];
        if (e.kind == EVENT_ARRIVAL) {
            flow->arrive_s = e.time;
            (*arrived)++;
            release_children(r, e.flow, e.time);
            continue;
        }
        flow->start_s = e.time;
        r->left[e.flow] = flow->bytes;
        if (r->path_begin[e.flow] == r->path_begin[e.flow + 1] || !(flow->bytes > 0))
            push(r, (event){e.time + r->latency[e.flow], e.flow, EVENT_ARRIVAL});
        else
            r->active[r->active_count++] = e.flow;
    }
}

/** Move the active flows on to the moment; those that are through leave their links. */
static void advance(run *r, double from, double to)
{
    int32_t kept = 0;
    for (int32_t k = 0; k < r->active_count; k++) {
        const int32_t f = r->active[k];
        r->left[f] -= r->rate[f] * (to - from);
        /* What a rounding of the time stands for counts as moved, or time could stand still. */
        if (r->left[f] <= fmax(r->flows[f].bytes * same_ratio, r->rate[f] * to * 1e-15))
            push(r, (event){to + r->latency[f], f, EVENT_ARRIVAL});
        else
            r->active[kept++] = f;
    }
    r->active_count = kept;
}

static rg_status lay_paths(rg_arena *arena, run *r, rg_err *err)
{
    int32_t path[RG_NET_MOST_HOPS];
    int64_t total = 0;
    for (int32_t f = 0; f < r->count; f++) {
        const int hops = rg_net_path(r->net, r->flows[f].source, r->flows[f].target, path);
        if (hops < 0)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "no way from device %d to device %d",
                           r->flows[f].source, r->flows[f].target);
        r->path_begin[f] = (int32_t)total;
        total += hops;
        if (total > INT32_MAX)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "the ways of %d flows are too long",
                           r->count);
    }
    r->path_begin[r->count] = (int32_t)total;
    r->path_links = RG_NEW(arena, int32_t, total, err);
    if (r->path_links == NULL)
        return RG_ERR_LIMIT;
    for (int32_t f = 0; f < r->count; f++) {
        const int hops = rg_net_path(r->net, r->flows[f].source, r->flows[f].target,
                                     &r->path_links[r->path_begin[f]]);
        for (int i = 0; i < hops; i++) {
            const int32_t link = r->path_links[r->path_begin[f] + i];
            r->latency[f] += rg_net_link(r->net, link)->latency_s;
            r->link_bytes[link] += r->flows[f].bytes;
        }
    }
    return RG_OK;
}

static void link_children(run *r)
{
    for (int32_t f = 0; f < r->count; f++)
        r->first_child[f] = -1;
    for (int32_t f = r->count - 1; f >= 0; f--)
        for (int slot = 0; slot < 2; slot++) {
            const int32_t parent = r->flows[f].after[slot];
            if (parent < 0 || (slot == 1 && parent == r->flows[f].after[0]))
                continue;
            r->waiting[f]++;
            r->next_child[slot][f] = r->first_child[parent];
            r->first_child[parent] = f;
        }
}

static rg_status prepare(rg_arena *arena, run *r, rg_err *err)
{
    const int32_t links = rg_net_link_count(r->net);
    r->path_begin = RG_NEW(arena, int32_t, (int64_t)r->count + 1, err);
    r->left = RG_NEW(arena, double, r->count, err);
    r->rate = RG_NEW(arena, double, r->count, err);
    r->latency = RG_NEW(arena, double, r->count, err);
    r->waiting = RG_NEW(arena, int32_t, r->count, err);
    r->first_child = RG_NEW(arena, int32_t, r->count, err);
    r->next_child[0] = RG_NEW(arena, int32_t, r->count, err);
    r->next_child[1] = RG_NEW(arena, int32_t, r->count, err);
    r->active = RG_NEW(arena, int32_t, r->count, err);
    r->heap = RG_NEW(arena, event, 2 * (int64_t)r->count + 1, err);
    r->link_room = RG_NEW(arena, double, links, err);
    r->link_flows = RG_NEW(arena, int32_t, links, err);
    r->used_links = RG_NEW(arena, int32_t, links, err);
    r->link_bytes = RG_NEW(arena, double, links, err);
    if (!r->path_begin || !r->left || !r->rate || !r->latency || !r->waiting || !r->first_child ||
        !r->next_child[0] || !r->next_child[1] || !r->active || !r->heap || !r->link_room ||
        !r->link_flows || !r->used_links || !r->link_bytes)
        return RG_ERR_LIMIT;
    RG_TRY(lay_paths(arena, r, err));
    link_children(r);
    return RG_OK;
}

static void sum_up(const run *r, rg_flow_result *out)
{
    out->busiest_link = -1;
    for (int32_t f = 0; f < r->count; f++) {
        out->end_s = fmax(out->end_s, r->flows[f].arrive_s);
        out->bytes_sent += r->flows[f].bytes;
    }
    for (int32_t i = 0; i < rg_net_link_count(r->net); i++) {
        out->link_bytes += r->link_bytes[i];
        const double busy = r->link_bytes[i] / rg_net_link(r->net, i)->rate;
        if (busy > out->busiest_ratio * (1 + same_ratio)) {
            out->busiest_ratio = busy;
            out->busiest_link = i;
        }
    }
    if (out->end_s > 0)
        out->busiest_ratio /= out->end_s;
}

rg_status rg_flow_run(rg_arena *arena, const rg_net *net, rg_flow *flows, int32_t count,
                      rg_flow_result *out, rg_err *err)
{
    *out = (rg_flow_result){.busiest_link = -1};
    run r = {.net = net, .flows = flows, .count = count};
    for (int32_t f = 0; f < count; f++) {
        if (flows[f].after[0] >= count || flows[f].after[1] >= count || !(flows[f].bytes >= 0) ||
            !isfinite(flows[f].bytes))
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "flow %d waits for a flow that is not there, or has no size", f);
    }
    RG_TRY(prepare(arena, &r, err));
    for (int32_t f = 0; f < count; f++)
        if (r.waiting[f] == 0)
            push(&r, (event){flows[f].delay_s, f, EVENT_START});
    double now = 0;
    int32_t arrived = 0;
    take_events(&r, now, &arrived);
    while (r.active_count > 0 || r.heap_count > 0) {
        out->events++;
        double next = r.heap_count > 0 ? r.heap[0].time : INFINITY;
        if (r.active_count > 0) {
            share_links(&r);
            for (int32_t k = 0; k < r.active_count; k++)
                next = fmin(next, now + r.left[r.active[k]] / r.rate[r.active[k]]);
        }
        advance(&r, now, next);
        now = next;
        take_events(&r, now, &arrived);
    }
    if (arrived != count)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "%d of %d flows never begin: they wait for each other", count - arrived,
                       count);
    sum_up(&r, out);
    return RG_OK;
}

/* serve/queue.c: waiting requests: a ring for first come first served, a heap for priorities. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

static rg_live **slot(const rg_queue *q, int64_t i)
{
    return &q->items[q->by_priority ? i : (q->head + i) & (q->room - 1)];
}

rg_live *rg_queue_at(const rg_queue *q, int64_t i)
{
    return *slot(q, i);
}

void rg_queue_arrange(rg_queue *q, rg_live *const *order)
{
    for (int64_t i = 0; i < q->count; i++)
        *slot(q, i) = order[i];
}

rg_live *rg_queue_head(const rg_queue *q)
{
    return q->count ? *slot(q, 0) : NULL;
}

static bool reserve(rg_arena *arena, rg_queue *q, rg_err *err)
{
    if (q->count < q->room)
        return true;
    const int64_t room = q->room ? q->room * 2 : 256;
    rg_live **items = RG_NEW(arena, rg_live *, room, err);
    if (!items)
        return false;
    for (int64_t i = 0; i < q->count; i++)
        items[i] = *slot(q, i);
    q->items = items;
    q->room = room;
    q->head = 0;
    return true;
}

static void sift_up(rg_queue *q, int64_t i)
{
    rg_live *item = q->items[i];
    for (int64_t parent; i > 0 && rg_live_before(item, q->items[parent = (i - 1) / 2]); i = parent)
        q->items[i] = q->items[parent];
    q->items[i] = item;
}

static void sift_down(rg_queue *q, int64_t i)
{
    rg_live *item = q->items[i];
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= q->count)
            break;
        if (child + 1 < q->count && rg_live_before(q->items[child + 1], q->items[child]))
            child++;
        if (!rg_live_before(q->items[child], item))
            break;
        q->items[i] = q->items[child];
        i = child;
    }
    q->items[i] = item;
}

void rg_queue_push(rg_arena *arena, rg_queue *q, rg_live *live, rg_err *err)
{
    if (!reserve(arena, q, err))
        return;
    *slot(q, q->count) = live;
    q->count++;
    if (q->by_priority)
        sift_up(q, q->count - 1);
}

void rg_queue_push_front(rg_arena *arena, rg_queue *q, rg_live *live, rg_err *err)
{
    if (q->by_priority) {
        rg_queue_push(arena, q, live, err);
        return;
    }
    if (!reserve(arena, q, err))
        return;
    q->head = (q->head - 1) & (q->room - 1);
    q->count++;
    *slot(q, 0) = live;
}

void rg_queue_remove(rg_queue *q, int64_t i)
{
    q->count--;
    if (q->by_priority) {
        if (i == q->count)
            return;
        q->items[i] = q->items[q->count];
        sift_down(q, i);
        sift_up(q, i);
        return;
    }
    if (i == 0) {
        q->head = (q->head + 1) & (q->room - 1);
        return;
    }
    for (; i < q->count; i++)
        *slot(q, i) = *slot(q, i + 1);
}

rg_live *rg_queue_pop(rg_queue *q)
{
    rg_live *live = *slot(q, 0);
    rg_queue_remove(q, 0);
    return live;
}

/* serve/lane.c: requests that decode in every step, advanced together.
 *
 * While memory suffices, a decoding request gains one token in every step. So its counts follow
 * from the number of the step, and a step touches only those that need a block, have their last
 * token scheduled, or leave: constant work, whatever the batch. Members are the first `head` of
 * running, so blocks are taken in the order of the plain loop. Whoever must look at single requests
 * (a preemption) dissolves the lane first; tests hold both ways equal to the last bit.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

#include <string.h>

rg_status rg_lane_start(rg_replica *r, rg_err *err)
{
    const rg_engine_rules *rules = r->rules;
    rg_lane *lane = &r->lane;
    *lane = (rg_lane){.on = rules->policy == RG_POLICY_VLLM1 && r->plain && !rules->by_priority &&
                            rules->reservation == RG_RESERVE_PAGED};
    if (!lane->on)
        return RG_OK;
    lane->first = RG_NEW(r->arena, rg_live *, rules->block_tokens, err);
    lane->last = RG_NEW(r->arena, rg_live *, rules->block_tokens, err);
    lane->due = RG_NEW(r->arena, rg_live *, r->room, err);
    lane->draining = RG_NEW(r->arena, rg_live *, r->room, err);
    return lane->first && lane->last && lane->due && lane->draining ? RG_OK : RG_ERR_LIMIT;
}

/* ---- calendar of last tokens: a heap by the step that schedules them */

static bool due_before(const rg_live *a, const rg_live *b)
{
    return a->lane_due != b->lane_due ? a->lane_due < b->lane_due : a->order < b->order;
}

static void due_push(rg_lane *lane, rg_live *live)
{
    int i = lane->due_count++;
    for (int parent; i > 0 && due_before(live, lane->due[parent = (i - 1) / 2]); i = parent)
        lane->due[i] = lane->due[parent];
    lane->due[i] = live;
}

static rg_live *due_pop(rg_lane *lane)
{
    rg_live *top = lane->due[0], *last = lane->due[--lane->due_count];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= lane->due_count)
            break;
        if (child + 1 < lane->due_count && due_before(lane->due[child + 1], lane->due[child]))
            child++;
        if (!due_before(lane->due[child], last))
            break;
        lane->due[i] = lane->due[child];
        i = child;
    }
    lane->due[i] = last;
    return top;
}

/* ---- calendar of blocks: who needs one in which step, modulo the tokens of a block */

static int bucket_of(const rg_replica *r, const rg_live *live)
{
    /* Step t finds base + t - 1 tokens; a block is needed when those fill the room. */
    return (int)((live->room - live->lane_base + 1) % r->pool.block_tokens);
}

static void bucket_append(rg_lane *lane, rg_live *live, int bucket)
{
    live->lane_bucket = bucket;
    live->lane_next = NULL;
    live->lane_previous = lane->last[bucket];
    if (lane->last[bucket])
        lane->last[bucket]->lane_next = live;
    else
        lane->first[bucket] = live;
    lane->last[bucket] = live;
}

static void bucket_remove(rg_lane *lane, rg_live *live)
{
    const int bucket = live->lane_bucket;
    if (live->lane_previous)
        live->lane_previous->lane_next = live->lane_next;
    else
        lane->first[bucket] = live->lane_next;
    if (live->lane_next)
        live->lane_next->lane_previous = live->lane_previous;
    else
        lane->last[bucket] = live->lane_previous;
}

/* ---- in and out */

static bool may_join(const rg_replica *r, const rg_live *live)
{
    /* Scheduled in the step before this one, so its tokens come at the ends of steps without a
     * gap; names are given as blocks are scheduled, so it must not need any. */
    return live->gs > 0 && live->gs < live->o && live->c == live->n + live->gs - 1 &&
           !live->shares && live->batch_number == r->steps - 1;
}

static void join(rg_replica *r, rg_live *live)
{
    rg_lane *lane = &r->lane;
    live->lane_state = RG_LANE_MEMBER;
    live->lane_joined = lane->tick;
    live->lane_base = live->c - lane->tick;
    live->lane_due = lane->tick + live->o - live->gs;
    bucket_append(lane, live, bucket_of(r, live));
    due_push(lane, live);
    if (lane->count == 0 || live->lane_base > lane->most_base)
        lane->most_base = live->lane_base;
    lane->count++;
    lane->kv_sum += live->c;
}

static void find_most(rg_replica *r)
{
    rg_lane *lane = &r->lane;
    bool any = false;
    for (int i = 0; i < lane->head; i++) {
        const rg_live *live = r->running[i];
        if (live->lane_state != RG_LANE_MEMBER || (any && live->lane_base <= lane->most_base))
            continue;
        lane->most_base = live->lane_base;
        any = true;
    }
}

/* Its last token is scheduled: no step holds it any more, but the token is still to come. */
static void drain(rg_replica *r, rg_live *live)
{
    rg_lane *lane = &r->lane;
    bucket_remove(lane, live);
    live->c = (int32_t)(live->lane_base + lane->tick);
    live->gs = live->o;
    live->lane_state = RG_LANE_DRAINING;
    lane->draining[lane->draining_count++] = live;
    lane->count--;
    lane->kv_sum -= live->c;
    if (live->lane_base == lane->most_base)
        find_most(r);
}

int rg_lane_advance(rg_replica *r, rg_batch *batch, int64_t *budget)
{
    rg_lane *lane = &r->lane;
    if (!lane->on || rg_fleet_unwatched(r->fleet, r) < 0)
        return 0;
    while (lane->due_count > 0 && lane->due[0]->lane_due <= lane->tick)
        drain(r, due_pop(lane));
    while (lane->head < r->running_count && may_join(r, r->running[lane->head]))
        join(r, r->running[lane->head++]);
    if (lane->count == 0)
        return lane->head;
    const int bucket = (int)((lane->tick + 1) % r->pool.block_tokens);
    int32_t need = 0;
    for (const rg_live *live = lane->first[bucket]; live; live = live->lane_next)
        need++;
    if (*budget < lane->count || !rg_kv_fits(&r->pool, need)) {
        rg_lane_dissolve(r);
        return 0;
    }
    for (rg_live *live = lane->first[bucket]; live; live = live->lane_next) {
        rg_kv_take(&r->pool, &live->kv, 1);
        live->room += r->pool.block_tokens;
    }
    const double longest = (double)(lane->most_base + lane->tick);
    batch->lane_tick = ++lane->tick;
    batch->lane_count = lane->count;
    batch->decodes += lane->count;
    batch->tokens += lane->count;
    batch->kv_sum += (double)lane->kv_sum;
    batch->kv_max = longest > batch->kv_max ? longest : batch->kv_max;
    lane->kv_sum += lane->count;
    r->load_tokens -= lane->count;
    r->held_tokens += lane->count;
    *budget -= lane->count;
    return lane->head;
}

/* ---- tokens come out */

bool rg_lane_emit(rg_replica *r, const rg_batch *batch, double time_s)
{
    rg_lane *lane = &r->lane;
    rg_sample_add(&r->result->gap, time_s - r->last_completed_s, batch->lane_count);
    lane->emitted = batch->lane_tick;
    lane->emitted_s = time_s;
    bool any = false;
    int kept = 0;
    for (int i = 0; i < lane->draining_count; i++) {
        rg_live *live = lane->draining[i];
        if (live->lane_due != lane->emitted) {
            lane->draining[kept++] = live;
            continue;
        }
        live->g = live->o;
        live->last_token_s = time_s;
        live->lane_state = RG_LANE_DONE;
        live->finished = true;
        any = true;
    }
    lane->draining_count = kept;
    /* With synchronous scheduling nobody has drained yet when the last token comes. */
    while (lane->due_count > 0 && lane->due[0]->lane_due <= lane->emitted) {
        rg_live *live = due_pop(lane);
        drain(r, live);
        lane->draining_count--;
        live->g = live->o;
        live->last_token_s = time_s;
        live->lane_state = RG_LANE_DONE;
        live->finished = true;
        any = true;
    }
    return any;
}

/* ---- back to single requests */

/* Steps in flight name their members. */
static void spell_out(rg_replica *r, rg_batch *batch)
{
    rg_lane *lane = &r->lane;
    int count = 0;
    memmove(batch->entries + batch->lane_count, batch->entries,
            (size_t)batch->count * sizeof *batch->entries);
    for (int i = 0; i < lane->head && count < batch->lane_count; i++) {
        rg_live *live = r->running[i];
        if (live->lane_state != RG_LANE_OUTSIDE && live->lane_joined < batch->lane_tick &&
            batch->lane_tick <= live->lane_due)
            batch->entries[count++] = (rg_entry){live, 1, true, false};
    }
    batch->count += count;
    batch->lane_count = 0;
}

void rg_lane_dissolve(rg_replica *r)
{
    rg_lane *lane = &r->lane;
    if (lane->head == 0)
        return;
    for (int i = 0; i <= r->in_flight && i < 2; i++)
        if (r->flights[i].lane_count > 0)
            spell_out(r, &r->flights[i]);
    for (int i = 0; i < lane->head; i++) {
        rg_live *live = r->running[i];
        if (live->lane_state == RG_LANE_OUTSIDE)
            continue;
        if (lane->emitted > live->lane_joined) {
            live->g += (int32_t)(lane->emitted - live->lane_joined);
            live->last_token_s = lane->emitted_s;
        }
        if (live->lane_state == RG_LANE_MEMBER) {
            live->c = (int32_t)(live->lane_base + lane->tick);
            live->gs += (int32_t)(lane->tick - live->lane_joined);
            live->batch_number = r->steps - 1;
        }
        live->lane_state = RG_LANE_OUTSIDE;
        rg_replica_set_plain(r, live);
    }
    for (int b = 0; b < r->pool.block_tokens; b++)
        lane->first[b] = lane->last[b] = NULL;
    lane->head = lane->count = lane->due_count = lane->draining_count = 0;
    lane->kv_sum = 0;
}

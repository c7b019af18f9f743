/* serve/replica.c: time on one replica: steps begin and end, tokens come out, requests leave.
 *
 * Synchronous: a step is decided when the last one has ended. Asynchronous: step k+1 is decided
 * when step k starts, so a request first seen at one boundary computes after the step in flight,
 * and one whose last token is in flight is not scheduled again. Source: vLLM v1, engine core with a
 * batch queue of two.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const rg_policy *policy_of(const rg_engine_rules *rules)
{
    switch (rules->policy) {
    case RG_POLICY_VLLM1:
        return &rg_policy_vllm1;
    case RG_POLICY_VLLM0:
        return rules->chunked_prefill ? &rg_policy_vllm0_chunked : &rg_policy_vllm0;
    case RG_POLICY_SARATHI:
        return &rg_policy_sarathi;
    case RG_POLICY_ORCA:
        return &rg_policy_orca;
    case RG_POLICY_STATIC:
    case RG_POLICY_TRT_STATIC:
        return &rg_policy_static;
    case RG_POLICY_VIDUR_VLLM:
        return &rg_policy_vidur_vllm;
    case RG_POLICY_TRT_NO_EVICT:
        return &rg_policy_trt;
    case RG_POLICY_TRT_MAX_UTILISATION:
        return &rg_policy_trt_max;
    case RG_POLICY_SGLANG:
        return &rg_policy_sglang;
    case RG_POLICY_COUNT:
        break;
    }
    return NULL;
}

static rg_status start_batch(rg_replica *r, rg_batch *batch, rg_err *err)
{
    batch->entries = RG_NEW(r->arena, rg_entry, r->room, err);
    batch->chunks = RG_NEW(r->arena, rg_chunk, r->room, err);
    return batch->entries && batch->chunks ? RG_OK : RG_ERR_LIMIT;
}

rg_status rg_replica_start(rg_replica *r, rg_arena *arena, const rg_engine_rules *rules,
                           const rg_engine_constants *constants, const rg_step_model *step,
                           rg_serve_result *result, rg_err *err)
{
    *r = (rg_replica){.arena = arena,
                      .rules = rules,
                      .constants = constants,
                      .policy = policy_of(rules),
                      .step = step,
                      .result = result,
                      .boundary_s = INFINITY,
                      .wake_s = INFINITY,
                      .last_moment_s = -INFINITY,
                      .composition = 1};
    r->depth = rules->asynchronous ? 2 : 1;
    r->room = (int)rules->max_sequences + 1;
    r->waiting.by_priority = rules->by_priority;
    const bool paged = rules->reservation == RG_RESERVE_PAGED;
    if (rules->policy == RG_POLICY_SGLANG && rules->prefix_caching && paged)
        RG_TRY(rg_kv_start_tree(&r->pool, arena, rules->blocks, rules->block_tokens, err));
    else
        RG_TRY(rg_kv_start(&r->pool, arena, rules->blocks, rules->block_tokens,
                           rules->prefix_caching && paged, err));
    r->plain = rules->rule.window == 0 && rules->rule.keep_ratio == 0 &&
               rules->speculation.drafts == 0 && rules->recompute_layers_ratio == 0;
    r->running = RG_NEW(arena, rg_live *, r->room, err);
    r->kept = RG_NEW(arena, rg_kept, r->room, err);
    RG_TRY(start_batch(r, &r->flights[0], err));
    RG_TRY(start_batch(r, &r->flights[1], err));
    r->bucket_head = RG_NEW(arena, int32_t, rules->block_tokens + 1, err);
    r->bucket_next = RG_NEW(arena, int32_t, r->room, err);
    r->grid_room = r->room;
    r->grid = RG_NEW(arena, struct rg_grid_node *, r->grid_room, err);
    r->leaving = RG_NEW(arena, rg_live *, r->room, err);
    RG_TRY(rg_lane_start(r, err));
    if (!r->running || !r->kept || !r->leaving || !r->bucket_head || !r->bucket_next || !r->grid)
        return RG_ERR_LIMIT;
    return rg_tiers_start(r, err);
}

/* ---- work of a step */

/* Up to where a request that decodes may be handled by rg_replica_decode_run. */
void rg_replica_set_plain(const rg_replica *r, rg_live *live)
{
    const int32_t last = live->n + live->o - 1;
    /* The token that fills a block of shared text gives it a name, so that one is not plain. */
    const int32_t room = live->room - (live->shares && live->room < INT32_MAX);
    const bool plain = r->plain && live->gs > 0 && live->c == live->n + live->gs - 1;
    live->plain_until = !plain ? 0 : room < last ? room : last;
}

void rg_replica_compute(rg_replica *r, rg_batch *batch, rg_live *live, int64_t k)
{
    const int32_t past = live->c, length = live->n + live->gs;
    const int64_t drafts = r->rules->speculation.drafts;
    const bool decode = live->gs > 0 && past == length - 1;
    bool emits;
    if (decode) {
        const int64_t resident = rg_kv_resident(&r->rules->rule, past);
        batch->decodes++;
        batch->kv_sum += (double)resident;
        batch->kv_max = (double)resident > batch->kv_max ? (double)resident : batch->kv_max;
        batch->recompute_tokens += past;
        k = 1 + drafts;
        emits = true;
    } else {
        rg_chunk *chunk = &batch->chunks[batch->chunk_count++];
        chunk->new_tokens = k;
        chunk->past_tokens = rg_kv_resident(&r->rules->rule, past);
        batch->prefill_tokens += k;
        emits = past + k == length;
        if (past < live->peak) {
            const int64_t again = (past + k < live->peak ? past + k : live->peak) - past;
            live->recomputed += (int32_t)again;
            r->result->recomputed_tokens += again;
        }
        if (live->tier_hits > 0) {
            batch->extra_s += live->tier_s;
            r->result->tier_hit_tokens += (int64_t)live->tier_hits * r->pool.block_tokens;
            live->tier_hits = 0;
        }
    }
    batch->entries[batch->count++] = (rg_entry){live, (int32_t)k, emits, !decode};
    live->batch_number = r->steps;
    batch->tokens += k;
    r->load_tokens -= k;
    r->held_tokens +=
        rg_kv_resident(&r->rules->rule, past + k) - rg_kv_resident(&r->rules->rule, past);
    live->c = (int32_t)(past + k);
    /* All drafts are taken to be right until the step says otherwise. */
    if (emits) {
        live->gs += (int32_t)(decode ? k : 1);
        live->flying += drafts > 0;
    }
    rg_replica_set_plain(r, live);
    if (live->shares && live->c / r->pool.block_tokens > live->kv.registered) {
        const int64_t known = (int64_t)live->n + live->g;
        rg_kv_register(&r->pool, &live->kv, live->c < known ? live->c : known);
    }
}

int64_t rg_replica_decode_run(rg_replica *r, rg_batch *batch, int *i, int64_t budget)
{
    const int first = *i;
    const int64_t number = r->steps;
    int longest = (int)batch->kv_max;
    int64_t sum = 0;
    rg_entry *entry = &batch->entries[batch->count];
    rg_live *const *at = r->running + first;
    rg_live *const *const end =
        r->running + (budget < r->running_count - first ? first + budget : r->running_count);
    for (; at < end; at++) {
        rg_live *live = *at;
        const int32_t past = live->c;
        if (past >= live->plain_until)
            break;
        *entry++ = (rg_entry){live, 1, true, false};
        sum += past;
        longest = past > longest ? past : longest;
        live->c = past + 1;
        live->gs++;
        live->batch_number = number;
    }
    const int64_t used = at - (r->running + first);
    *i = first + (int)used;
    batch->count += (int)used;
    batch->decodes += used;
    batch->tokens += used;
    batch->kv_sum += (double)sum;
    batch->kv_max = longest;
    r->load_tokens -= used;
    r->held_tokens += used;
    return used;
}

/* ---- a step ends */

static void gap_flush(rg_replica *r, double gap, int64_t *same)
{
    if (*same > 0)
        rg_sample_add(&r->result->gap, gap, *same);
    *same = 0;
}

/* Accepted drafts come one after the other, so their number is geometric, cut at the drafts. */
static int32_t accepted(rg_replica *r)
{
    const rg_speculation *s = &r->rules->speculation;
    int32_t count = 0;
    while (count < s->drafts && rg_rng_real(&r->rng) < s->acceptance)
        count++;
    r->result->drafts += s->drafts;
    r->result->accepted_drafts += count;
    return count;
}

/* Of k tokens that a step computed for a request, those count that were drafted right. */
static void verified(rg_replica *r, rg_live *live, int32_t k)
{
    const int32_t room = live->o - live->g, got = 1 + accepted(r);
    const int32_t kept = got < room ? got : room, before = live->c;
    live->g += kept;
    live->gs -= k - kept;
    live->c -= k - kept;
    live->peak = live->c;
    r->held_tokens +=
        rg_kv_resident(&r->rules->rule, live->c) - rg_kv_resident(&r->rules->rule, before);
    r->load_tokens += before - live->c;
}

static void remove_waiting(rg_queue *q, const rg_live *live)
{
    for (int64_t i = 0; i < q->count; i++) {
        if (rg_queue_at(q, i) != live)
            continue;
        rg_queue_remove(q, i);
        return;
    }
}

static void leave(rg_replica *r, rg_live *live, double time_s)
{
    if (live->state == RG_LIVE_PREEMPTED)
        remove_waiting(&r->waiting, live);
    if (r->role == RG_ROLE_PREFILL && live->g < (int32_t)live->request.output_tokens) {
        rg_fleet_prefilled(r->fleet, r, live, time_s);
        return;
    }
    if (r->policy->release)
        r->policy->release(r, live);
    else
        rg_replica_release(r, live);
    rg_fleet_finished(r->fleet, r, live, time_s);
}

/* In the order of the step: members of the lane, which come first in running, then the rest. */
static void finish(rg_replica *r, const rg_batch *batch, double time_s)
{
    int kept = 0, from_lane = 0;
    for (int i = 0; i < r->running_count; i++) {
        rg_live *live = r->running[i];
        if (!live->finished) {
            r->running[kept++] = live;
        } else if (live->lane_state == RG_LANE_DONE) {
            live->lane_state = RG_LANE_OUTSIDE;
            r->lane.head--;
            r->leaving[from_lane++] = live;
        }
    }
    r->running_count = kept;
    r->composition++;
    for (int i = 0; i < from_lane; i++)
        leave(r, r->leaving[i], time_s);
    for (int i = 0; i < batch->count; i++) {
        rg_live *live = batch->entries[i].live;
        if (!live || !live->finished)
            continue;
        if (live->flying > 0)
            rg_replica_forget_flights(r, live);
        leave(r, live, time_s);
    }
}

static void complete(rg_replica *r, const rg_batch *batch, double time_s)
{
    double before = -2; /* last tokens of those counted in `same` */
    int64_t same = 0;
    bool any = batch->lane_count > 0 && rg_lane_emit(r, batch, time_s);
    const bool speculative = r->rules->speculation.drafts > 0, late = r->pool.tree != NULL;
    const rg_entry *end = batch->entries + batch->count;
    for (const rg_entry *e = batch->entries; e < end; e++) {
        rg_live *live = e->live;
        if (!live)
            continue;
        if (late && e->chunk)
            rg_kv_register(&r->pool, &live->kv, live->c);
        if (!e->emits)
            continue;
        live->flying -= speculative;
        if (speculative && !e->chunk)
            verified(r, live, e->k);
        else
            live->g++;
        if (live->last_token_s != before) {
            gap_flush(r, time_s - before, &same);
            before = live->last_token_s;
        }
        same++;
        if (before < 0) {
            live->first_token_s = time_s;
            same = 0;
        }
        live->last_token_s = time_s;
        if (live->g == live->o) {
            live->finished = true;
            any = true;
        }
    }
    gap_flush(r, time_s - before, &same);
    r->last_emitted = batch->composition;
    r->last_completed_s = time_s;
    if (any)
        finish(r, batch, time_s);
}

/* ---- a step is decided */

void rg_replica_account(rg_replica *r, double duration, int64_t sequences)
{
    rg_serve_result *out = r->result;
    const int32_t used = rg_kv_used(&r->pool);
    out->busy_s += duration;
    out->batch_time += duration * (double)sequences;
    out->waiting_time += duration * (double)r->waiting.count;
    out->most_blocks = used > out->most_blocks ? used : out->most_blocks;
    out->most_waiting = r->waiting.count > out->most_waiting ? r->waiting.count : out->most_waiting;
    if (r->rules->reservation != RG_RESERVE_PAGED) {
        const double taken = (double)(r->extent_total - r->extent_free);
        if (taken > 0)
            out->internal_time += duration * (1 - (double)r->held_tokens / taken);
        out->external_time += duration * rg_extent_fragmentation(r);
        out->kv_time += duration * taken / r->pool.block_tokens;
        return;
    }
    out->kv_time += duration * (double)used;
    const double space = (double)used * r->pool.block_tokens;
    /* Shared blocks hold tokens of several requests, so the stored tokens can exceed the space. */
    if (space > (double)r->held_tokens)
        out->internal_time += duration * (1 - (double)r->held_tokens / space);
}

static bool decide(rg_replica *r, double now)
{
    rg_batch *b = &r->flights[r->in_flight];
    b->count = b->chunk_count = b->lane_count = 0;
    b->decodes = b->tokens = b->prefill_tokens = 0;
    b->kv_sum = b->kv_max = b->extra_s = b->recompute_tokens = 0;
    r->preempted_now = false;
    r->policy->build(r, b);
    if (b->count + b->lane_count == 0)
        return false;
    b->start_s = now > r->last_end_s ? now : r->last_end_s;
    b->follows = r->steps > 0 && now <= r->last_end_s;
    const double duration = rg_replica_batch_cost(r, b);
    b->end_s = r->last_end_s = b->start_s + duration;
    for (int i = 0, chunk = 0; chunk < b->chunk_count; i++) {
        rg_live *live = b->entries[i].live;
        if (!b->entries[i].chunk)
            continue;
        chunk++;
        if (live->scheduled_s < 0)
            live->scheduled_s = b->start_s;
        if (live->first_token_s < 0)
            live->last_chunk_s = b->start_s;
    }
    b->composition = b->lane_count == 0 && b->chunk_count == 0 && b->count == r->running_count
                         ? r->composition
                         : 0;
    r->in_flight++;
    r->steps++;
    r->result->steps++;
    r->result->prefill_tokens += b->prefill_tokens;
    rg_replica_account(r, duration, b->count + b->lane_count);
    rg_fleet_moment(r->fleet, r, b);
    return true;
}

static void one_boundary(rg_replica *r, double now)
{
    r->now_s = now;
    r->wake_s = INFINITY;
    if (r->in_flight > 0 && r->boundary_s <= now) {
        rg_batch done = r->flights[0];
        r->flights[0] = r->flights[1];
        r->flights[1] = done;
        r->in_flight--;
        complete(r, &r->flights[1], now);
    }
    while (r->in_flight < r->depth && decide(r, now))
        ;
    /* Nothing runs and the head cannot start: it never will. */
    while (r->in_flight == 0 && r->running_count == 0 && r->waiting.count > 0 && r->sending == 0 &&
           isinf(r->wake_s)) {
        rg_replica_refuse(r, rg_queue_pop(&r->waiting));
        while (r->in_flight < r->depth && decide(r, now))
            ;
    }
}

void rg_replica_step(rg_replica *r, double until_s)
{
    const int64_t finished = r->result->finished, refused = r->result->refused;
    r->until_s = until_s;
    for (;;) {
        one_boundary(r, rg_replica_next(r));
        if (r->in_flight > 0)
            rg_replica_skip_equal(r);
        r->boundary_s = r->in_flight > 0 ? r->flights[0].end_s : INFINITY;
        /* Go on here while nothing can come from outside: an answer may bring the next request. */
        if (r->lane.count == 0 || r->in_flight == 0 || r->boundary_s >= until_s ||
            r->result->finished != finished || r->result->refused != refused || !isinf(r->wake_s) ||
            r->role != RG_ROLE_BOTH)
            break;
    }
    r->failed.status = r->failed.status ? r->failed.status : r->pool.failed.status;
}

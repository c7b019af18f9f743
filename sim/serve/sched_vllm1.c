/* serve/sched_vllm1.c: vLLM v1: one loop over running requests, then admission, one token budget.
 *
 * Running requests are served in order of admission, so decodes come first only because they were
 * admitted first, and a half-done prefill keeps its place. Preemption is by recomputation; nothing
 * is admitted in a step that preempted. Source: vLLM v1 core/sched/scheduler.py.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

/* fcfs: the last of running; by priority: the one served last by (priority, arrival). */
static int victim_of(const rg_replica *r)
{
    int victim = r->running_count - 1;
    if (r->rules->by_priority)
        for (int i = 0; i < r->running_count; i++)
            if (rg_live_before(r->running[victim], r->running[i]))
                victim = i;
    return victim;
}

/* Under priorities a victim may have been scheduled in this very step: take that back. */
static int64_t take_back(rg_replica *r, rg_batch *batch, const rg_live *live)
{
    for (int i = 0; i < batch->count; i++) {
        if (batch->entries[i].live != live)
            continue;
        rg_entry gone = batch->entries[i];
        int chunk = 0;
        for (int j = 0; j < i; j++)
            chunk += batch->entries[j].chunk;
        for (int j = i + 1; j < batch->count; j++)
            batch->entries[j - 1] = batch->entries[j];
        batch->count--;
        batch->tokens -= gone.k;
        const int32_t past = live->c - gone.k;
        if (!gone.chunk) {
            batch->decodes--;
            batch->kv_sum -= past;
        } else {
            batch->prefill_tokens -= gone.k;
            for (int j = chunk + 1; j < batch->chunk_count; j++)
                batch->chunks[j - 1] = batch->chunks[j];
            batch->chunk_count--;
        }
        rg_live *mine = gone.live;
        mine->c = past;
        mine->gs -= gone.emits ? (gone.chunk ? 1 : gone.k) : 0;
        mine->flying -= mine->flying > 0 && gone.emits;
        r->held_tokens -= gone.k;
        r->load_tokens += gone.k;
        return gone.k;
    }
    return 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t running_part(rg_replica *r, rg_batch *batch, int64_t budget)
{
    const rg_engine_rules *rules = r->rules;
    const int64_t lookahead = rules->speculation.drafts;
    for (int i = rg_lane_advance(r, batch, &budget); i < r->running_count && budget > 0; i++) {
        budget -= rg_replica_decode_run(r, batch, &i, budget);
        if (i >= r->running_count || budget <= 0)
            break;
        rg_live *live = r->running[i];
        if (live->gs == live->o && live->c + 1 >= live->n + live->gs && lookahead == 0)
            continue; /* its last token is in flight */
        if (lookahead > 0 && live->flying > 0 && live->g + live->flying >= live->o)
            continue; /* whatever becomes of the drafts */
        int64_t k = live->n + live->gs - live->c;
        if (k > 1) {
            if (rules->long_prefill_threshold > 0)
                k = least(k, rules->long_prefill_threshold);
            k = least(k, budget);
        }
        if (k <= 0)
            continue;
        if (live->c + k + lookahead > live->room) {
            bool gone = false;
            while (!gone && !rg_replica_hold(r, live, live->c + k + lookahead, 0)) {
                rg_lane_dissolve(r);
                const int victim = victim_of(r);
                gone = r->running[victim] == live;
                if (victim < i) {
                    budget += take_back(r, batch, r->running[victim]);
                    i--;
                }
                rg_replica_preempt(r, victim);
            }
            if (gone)
                break;
        }
        rg_replica_compute(r, batch, live, k);
        budget -= k + (k == 1 ? lookahead : 0);
    }
    return budget;
}

static void waiting_part(rg_replica *r, rg_batch *batch, int64_t budget)
{
    const rg_engine_rules *rules = r->rules;
    for (int64_t at = 0; at < r->waiting.count && budget > 0;) {
        if (r->running_count >= rules->max_sequences)
            return;
        rg_live *live = rg_queue_at(&r->waiting, at);
        int64_t cached = 0;
        if (live->state == RG_LIVE_REMOTE) {
            const bool here = rg_replica_receive(r, live);
            if (!here && live->kv.held == 0)
                return;
            if (!here) { /* skipped until its KV is here */
                at++;
                continue;
            }
        }
        const int64_t length = (int64_t)live->n + live->gs;
        int64_t spare = 0;
        if (r->running_count > 0 && rules->watermark_ratio > 0)
            spare = (int64_t)(rules->watermark_ratio * (double)(r->pool.total - 1));
        int64_t limit = budget;
        if (rules->long_prefill_threshold > 0)
            limit = least(limit, rules->long_prefill_threshold);
        if (live->c == 0) {
            bool blocked;
            if (rules->reservation != RG_RESERVE_PAGED) {
                if (!rg_replica_hold(r, live, length, 0))
                    return;
            } else {
                if (!rules->chunked_prefill) {
                    /* A prompt that is not cut must fit the budget after what is cached. */
                    int32_t unused;
                    const int64_t known =
                        (int64_t)rg_kv_lookup(&r->pool, &live->kv, length - 1, &unused) *
                        r->pool.block_tokens;
                    if (length - known > budget)
                        return;
                    limit = length;
                }
                cached = rg_replica_reuse(r, live, limit, spare, &blocked);
                if (blocked)
                    return;
            }
            live->c = (int32_t)cached;
            r->held_tokens += rg_kv_resident(&rules->rule, cached);
            r->load_tokens -= cached;
        }
        const int64_t k = least(length - live->c, limit);
        if (!rg_replica_hold(r, live, live->c + k, 0)) {
            if (live->state == RG_LIVE_REMOTE)
                return; /* keeps what it holds */
            rg_replica_release(r, live);
            r->load_tokens += live->c;
            live->c = 0;
            return;
        }
        rg_queue_remove(&r->waiting, at);
        rg_replica_scheduled(r, live, cached);
        rg_replica_admit(r, live);
        rg_replica_compute(r, batch, live, k);
        budget -= k;
    }
}

static void build(rg_replica *r, rg_batch *batch)
{
    const int64_t budget = running_part(r, batch, r->rules->max_batched_tokens);
    if (!r->preempted_now)
        waiting_part(r, batch, budget);
}

const rg_policy rg_policy_vllm1 = {build, NULL, true, false};

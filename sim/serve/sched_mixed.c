/* serve/sched_mixed.c: schedulers that serve decodes first, then prompts with what is left.
 *
 * Chunked vLLM v0: blocks for the whole prompt at admission, decode slots ignore the watermark.
 * Sarathi (as in Vidur): the same with a chunk budget for the step. Orca (Vidur): output reserved
 * at admission, so nothing is ever preempted; a new prompt is computed whole beside the decodes.
 * TensorRT-LLM in-flight batching: GUARANTEED_NO_EVICT admits only what can finish beside all that
 * was admitted; MAX_UTILIZATION admits what fits now and pauses the latest when memory is full.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

typedef struct mixed {
    bool no_budget;     /* the step has no token limit */
    bool reserve;       /* blocks for the output are held at admission */
    bool reserve_count; /* blocks for the output are counted at admission, held as they come */
    bool whole;         /* prompts are never cut */
} mixed;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t all_tokens(const rg_replica *r, const rg_live *live)
{
    return (int64_t)live->n + live->o - 1 + r->rules->speculation.drafts;
}

/* Tokens of a request that decodes in one step. */
static int64_t decode_tokens(const rg_replica *r)
{
    return 1 + r->rules->speculation.drafts;
}

/* Room for the next token of a decode; the last of running gives way, at last itself. */
static bool slot(rg_replica *r, rg_batch *batch, int position)
{
    rg_live *live = r->running[position];
    while (!rg_replica_hold(r, live, live->c + decode_tokens(r), 0)) {
        const int victim = r->running_count - 1;
        if (r->rules->preempt == RG_PREEMPT_SWAP && r->running[victim]->c > r->running[victim]->n)
            rg_replica_swap_out(r, batch, victim);
        else
            rg_replica_preempt(r, victim);
        if (victim == position)
            return false;
    }
    return true;
}

static bool decodes_next(const rg_live *live)
{
    return live->gs > 0 && live->c == live->n + live->gs - 1;
}

static void swap_in(rg_replica *r, rg_batch *batch, int64_t spare, int64_t *budget)
{
    while (!r->preempted_now && r->swapped.count > 0 && *budget > 0 &&
           r->running_count < r->rules->max_sequences) {
        rg_live *live = rg_queue_head(&r->swapped);
        if (!rg_replica_hold(r, live, live->c + decode_tokens(r), spare))
            return;
        rg_queue_pop(&r->swapped);
        r->held_tokens += live->c;
        batch->extra_s += (double)live->swapped * r->pool.block_tokens *
                          r->rules->kv_bytes_per_token / r->rules->host_bytes_per_s;
        live->swapped = 0;
        rg_replica_admit(r, live);
        rg_replica_compute(r, batch, live, 1);
        *budget -= decode_tokens(r);
    }
}

static int64_t promised(const rg_replica *r)
{
    int64_t blocks = 0;
    for (int i = 0; i < r->running_count; i++)
        blocks += rg_replica_blocks(r, all_tokens(r, r->running[i]));
    return blocks;
}

static void refuse(rg_replica *r, int64_t at)
{
    rg_live *live = rg_queue_at(&r->waiting, at);
    rg_queue_remove(&r->waiting, at);
    rg_replica_refuse(r, live);
}

static void admit(rg_replica *r, rg_batch *batch, const mixed *how, int64_t spare, int64_t budget)
{
    const rg_engine_rules *rules = r->rules;
    int64_t promise = how->reserve_count ? promised(r) : 0;
    for (int64_t at = 0;
         at < r->waiting.count && budget > 0 && r->running_count < rules->max_sequences;) {
        rg_live *live = rg_queue_at(&r->waiting, at);
        const int64_t length = (int64_t)live->n + live->gs;
        const int64_t most = rg_replica_blocks(r, all_tokens(r, live));
        if (live->state == RG_LIVE_REMOTE) {
            const bool holds = live->kv.held > 0;
            if (!holds && how->reserve_count && !r->pool.unlimited &&
                promise + most > r->pool.total - 1)
                return;
            const bool here = rg_replica_receive(r, live);
            if (live->kv.held == 0)
                return;
            promise += most;
            if (!here) { /* skipped until its KV is here */
                at++;
                continue;
            }
            if (!rg_replica_hold(r, live, live->c + decode_tokens(r), 0))
                return;
            rg_queue_remove(&r->waiting, at);
            rg_replica_admit(r, live);
            rg_replica_compute(r, batch, live, 1);
            budget -= decode_tokens(r);
            continue;
        }
        if (how->whole && !how->no_budget && length > rules->max_batched_tokens) {
            r->result->over_step++;
            refuse(r, at);
            continue;
        }
        if (how->reserve_count && !r->pool.unlimited && promise + most > r->pool.total - 1)
            return;
        if (!r->pool.unlimited && rg_replica_blocks(r, length) > r->pool.total - 1 - spare) {
            refuse(r, at);
            continue;
        }
        bool blocked = false;
        int64_t cached = 0;
        if (rules->reservation == RG_RESERVE_PAGED) {
            cached = rg_replica_reuse(r, live, length, spare, &blocked);
            if (blocked)
                return;
        }
        live->c = (int32_t)cached;
        r->held_tokens += cached;
        r->load_tokens -= cached;
        const int64_t k = how->no_budget ? length - cached : least(length - cached, budget);
        if ((how->whole && k < length - cached) ||
            !rg_replica_hold(r, live, how->reserve ? all_tokens(r, live) : length, spare)) {
            rg_replica_release(r, live);
            r->load_tokens += cached;
            live->c = 0;
            return;
        }
        rg_queue_remove(&r->waiting, at);
        rg_replica_scheduled(r, live, cached);
        rg_replica_admit(r, live);
        rg_replica_compute(r, batch, live, k);
        budget -= k;
        promise += most;
    }
}

static void build(rg_replica *r, rg_batch *batch, const mixed *how)
{
    const rg_engine_rules *rules = r->rules;
    int64_t budget = how->no_budget ? INT64_MAX / 2 : rules->max_batched_tokens;
    const int64_t spare =
        r->pool.unlimited ? 0 : (int64_t)(rules->watermark_ratio * (double)r->pool.total);
    for (int i = 0; i < r->running_count && budget > 0; i++) {
        budget -= rg_replica_decode_run(r, batch, &i, budget);
        if (i >= r->running_count || budget <= 0)
            break;
        rg_live *live = r->running[i];
        if (!decodes_next(live))
            continue;
        if (live->c + decode_tokens(r) > live->room && !slot(r, batch, i))
            break;
        if (budget < decode_tokens(r))
            break;
        rg_replica_compute(r, batch, live, 1);
        budget -= decode_tokens(r);
    }
    for (int i = 0; i < r->running_count && budget > 0; i++) {
        rg_live *live = r->running[i];
        /* Decodes of this step have moved on to their next token. */
        if (live->c >= live->n + live->gs - 1 && live->gs > 0)
            continue;
        const int64_t left = (int64_t)live->n + live->gs - live->c;
        if (left <= 0)
            continue;
        const int64_t k = least(left, budget);
        if (!rg_replica_hold(r, live, live->c + k, 0))
            continue;
        rg_replica_compute(r, batch, live, k);
        budget -= k;
    }
    swap_in(r, batch, spare, &budget);
    if (!r->preempted_now && r->swapped.count == 0)
        admit(r, batch, how, spare, budget);
}

static void build_chunked(rg_replica *r, rg_batch *batch)
{
    static const mixed how = {0};
    build(r, batch, &how);
}

static void build_orca(rg_replica *r, rg_batch *batch)
{
    static const mixed how = {.no_budget = true, .reserve = true, .whole = true};
    build(r, batch, &how);
}

static void build_trt(rg_replica *r, rg_batch *batch)
{
    const mixed how = {.reserve_count = true, .whole = !r->rules->chunked_prefill};
    build(r, batch, &how);
}

static void build_trt_max(rg_replica *r, rg_batch *batch)
{
    const mixed how = {.whole = !r->rules->chunked_prefill};
    build(r, batch, &how);
}

const rg_policy rg_policy_vllm0_chunked = {build_chunked, NULL, true, false};
const rg_policy rg_policy_sarathi = {build_chunked, NULL, true, false};
const rg_policy rg_policy_orca = {build_orca, NULL, true, false};
const rg_policy rg_policy_trt = {build_trt, NULL, true, false};
const rg_policy rg_policy_trt_max = {build_trt_max, NULL, true, false};

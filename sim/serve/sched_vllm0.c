/* serve/sched_vllm0.c: vLLM v0 without chunks: a step is all prompts or all decodes, prompts first.
 *
 * Whole prompts are admitted while tokens fit the budget and blocks fit beside the watermark; only
 * when none was admitted do the running requests decode. Preempted single sequences are recomputed
 * (or swapped, by option). Vidur's version limits batch x longest prompt instead of the sum, as if
 * prompts were padded. Source: vLLM v0 core/scheduler.py, core/block_manager.py.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

static bool admit_prompts(rg_replica *r, rg_batch *batch, bool padded)
{
    const rg_engine_rules *rules = r->rules;
    const int64_t watermark =
        r->pool.unlimited ? 0 : (int64_t)(rules->watermark_ratio * (double)r->pool.total);
    const int64_t longest_allowed = rules->max_batched_tokens < rules->max_model_tokens
                                        ? rules->max_batched_tokens
                                        : rules->max_model_tokens;
    int64_t sum = 0, longest = 0, count = 0;
    while (r->waiting.count > 0 && r->running_count < rules->max_sequences) {
        rg_live *live = rg_queue_head(&r->waiting);
        const int64_t length = (int64_t)live->n + live->gs;
        const int64_t blocks = rg_replica_blocks(r, length);
        if (length > longest_allowed ||
            (!r->pool.unlimited && blocks > r->pool.total - 1 - watermark)) {
            r->result->over_step += length > longest_allowed;
            rg_replica_refuse(r, rg_queue_pop(&r->waiting));
            continue;
        }
        const int64_t most = length > longest ? length : longest;
        if (padded ? (count + 1) * most > rules->max_batched_tokens
                   : sum + length > rules->max_batched_tokens)
            break;
        bool blocked = false;
        int64_t cached = 0;
        if (rules->reservation == RG_RESERVE_PAGED) {
            cached = rg_replica_reuse(r, live, length, watermark, &blocked);
            if (blocked)
                break;
        }
        if (!rg_replica_hold(r, live, length, watermark))
            break;
        live->c = (int32_t)cached;
        r->held_tokens += cached;
        r->load_tokens -= cached;
        rg_queue_pop(&r->waiting);
        rg_replica_scheduled(r, live, cached);
        rg_replica_admit(r, live);
        rg_replica_compute(r, batch, live, length - cached);
        sum += length;
        longest = most;
        count++;
    }
    return count > 0;
}

static void decode_all(rg_replica *r, rg_batch *batch)
{
    for (int i = 0; i < r->running_count; i++) {
        rg_replica_decode_run(r, batch, &i, r->running_count);
        if (i >= r->running_count)
            break;
        rg_live *live = r->running[i];
        bool gone = false;
        while (!gone && live->c + 1 > live->room &&
               !rg_replica_hold(r, live, (int64_t)live->c + 1, 0)) {
            const int victim = r->running_count - 1;
            gone = victim == i;
            if (r->rules->preempt == RG_PREEMPT_SWAP)
                rg_replica_swap_out(r, batch, victim);
            else
                rg_replica_preempt(r, victim);
        }
        if (gone)
            break;
        rg_replica_compute(r, batch, live, 1);
    }
    const int64_t watermark =
        r->pool.unlimited ? 0 : (int64_t)(r->rules->watermark_ratio * (double)r->pool.total);
    while (!r->preempted_now && r->swapped.count > 0 &&
           r->running_count < r->rules->max_sequences) {
        rg_live *live = rg_queue_head(&r->swapped);
        if (!rg_replica_hold(r, live, (int64_t)live->c + 1, watermark))
            break;
        rg_queue_pop(&r->swapped);
        r->held_tokens += live->c;
        batch->extra_s += (double)live->swapped * r->pool.block_tokens *
                          r->rules->kv_bytes_per_token / r->rules->host_bytes_per_s;
        live->swapped = 0;
        rg_replica_admit(r, live);
        rg_replica_compute(r, batch, live, 1);
    }
}

static void build(rg_replica *r, rg_batch *batch)
{
    if (r->swapped.count > 0 || !admit_prompts(r, batch, false))
        decode_all(r, batch);
}

static void build_padded(rg_replica *r, rg_batch *batch)
{
    if (r->swapped.count > 0 || !admit_prompts(r, batch, true))
        decode_all(r, batch);
}

const rg_policy rg_policy_vllm0 = {build, NULL, true, false};
const rg_policy rg_policy_vidur_vllm = {build_padded, NULL, true, false};

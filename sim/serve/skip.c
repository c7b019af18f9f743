/* serve/skip.c: many equal steps at once.
 *
 * While all running requests decode and nothing can join, steps differ only in lengths, so they are
 * taken in a loop that touches no request but those that need a block.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

/* While all running requests decode and nothing can join, steps differ only in lengths. Returns
 * how many of them may be taken before one finishes. Fills the buckets: who needs a block when. */
static int32_t equal_steps(rg_replica *r)
{
    int32_t steps = r->pool.block_tokens;
    for (int i = 0; i < r->running_count; i++) {
        const rg_live *live = r->running[i];
        const int32_t left = live->o - live->gs;
        steps = left < steps ? left : steps;
    }
    for (int32_t s = 0; s < steps; s++)
        r->bucket_head[s] = -1;
    for (int i = r->running_count - 1; steps > 0 && i >= 0; i--) {
        const int32_t until = r->running[i]->room - r->running[i]->c;
        if (until >= steps)
            continue;
        r->bucket_next[i] = r->bucket_head[until];
        r->bucket_head[until] = i;
    }
    return steps;
}

/* Blocks for the requests of one bucket; false when they do not fit. */
static bool extend(rg_replica *r, int32_t bucket)
{
    int32_t need = 0;
    for (int32_t i = r->bucket_head[bucket]; i >= 0; i = r->bucket_next[i])
        need++;
    if (!rg_kv_fits(&r->pool, need))
        return false;
    for (int32_t i = r->bucket_head[bucket]; i >= 0; i = r->bucket_next[i]) {
        rg_kv_take(&r->pool, &r->running[i]->kv, 1);
        r->running[i]->room += r->pool.block_tokens;
    }
    return true;
}

static bool all_equal(const rg_replica *r)
{
    if (r->last_emitted != r->composition || r->in_flight != r->depth)
        return false;
    for (int i = 0; i < r->in_flight; i++)
        if (r->flights[i].composition != r->composition)
            return false;
    return true;
}

void rg_replica_skip_equal(rg_replica *r)
{
    if (!r->policy->skippable || !r->plain)
        return;
    if (r->wake_s < r->until_s)
        r->until_s = r->wake_s;
    const double unwatched = rg_fleet_unwatched(r->fleet, r);
    if (unwatched < r->until_s)
        r->until_s = unwatched;
    while (r->flights[0].end_s < r->until_s && all_equal(r)) {
        const int32_t most = equal_steps(r);
        const int64_t n = r->running_count;
        rg_batch *last = &r->flights[r->in_flight - 1];
        double token_s = r->running[0]->last_token_s;
        double sum = last->kv_sum, longest = last->kv_max;
        const double fixed =
            r->constants->step_overhead_s + r->constants->per_sequence_s * (double)n;
        int32_t taken = 0;
        while (taken < most && r->flights[0].end_s < r->until_s && extend(r, taken)) {
            const double now = r->flights[0].end_s;
            rg_sample_add(&r->result->gap, now - token_s, n);
            token_s = now;
            sum += (double)n;
            longest += 1;
            const double duration = (rg_replica_decode_cost(r, n, sum / (double)n) +
                                     rg_replica_skew_cost(r, n, sum, longest)) *
                                        r->constants->kernel_scale +
                                    fixed;
            const double start = r->last_end_s;
            if (r->depth == 2)
                r->flights[0].end_s = r->flights[1].end_s;
            last->start_s = start;
            last->end_s = r->last_end_s = start + duration;
            r->held_tokens += n;
            rg_replica_account(r, duration, n);
            taken++;
        }
        if (taken == 0)
            return;
        last->kv_sum = sum;
        last->kv_max = longest;
        for (int i = 0; i < n; i++) {
            rg_live *live = r->running[i];
            live->c += taken;
            live->g += taken;
            live->gs += taken;
            rg_replica_set_plain(r, live);
            live->last_token_s = token_s;
            if (live->kv.shareable)
                rg_kv_register(&r->pool, &live->kv,
                               live->c < live->n + live->g ? live->c : live->n + live->g);
        }
        r->load_tokens -= taken * n;
        r->steps += taken;
        r->result->steps += taken;
    }
}

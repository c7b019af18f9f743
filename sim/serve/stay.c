/* serve/stay.c: the stay of a request on a replica: it comes, holds memory, is let in, and may have
 * to give way.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

#include <string.h>

/* ---- memory */

static void set_room(rg_replica *r, rg_live *live, int64_t tokens)
{
    const bool plain = r->rules->rule.window == 0 && r->rules->rule.keep_ratio == 0;
    live->room = (int32_t)(plain ? (int64_t)live->kv.held * r->pool.block_tokens : tokens);
}

bool rg_replica_hold(rg_replica *r, rg_live *live, int64_t tokens, int64_t spare)
{
    if (r->rules->reservation != RG_RESERVE_PAGED) {
        if (live->reserved)
            return true;
        const int64_t reserve = r->rules->reservation == RG_RESERVE_MODEL
                                    ? r->rules->max_model_tokens
                                    : (int64_t)live->n + live->o;
        if (!rg_extent_take(r, live, reserve))
            return false;
        live->room = INT32_MAX;
        return true;
    }
    const int64_t need = rg_replica_blocks(r, tokens) - live->kv.held;
    if (need > 0) {
        if (!rg_kv_fits(&r->pool, need + spare))
            return false;
        rg_kv_take(&r->pool, &live->kv, (int32_t)need);
    }
    set_room(r, live, tokens);
    return true;
}

void rg_replica_release(rg_replica *r, rg_live *live)
{
    r->held_tokens -= rg_kv_resident(&r->rules->rule, live->c);
    if (live->reserved)
        rg_extent_give(r, live);
    rg_kv_release(&r->pool, &live->kv);
    live->room = 0;
}

int64_t rg_replica_reuse(rg_replica *r, rg_live *live, int64_t need_tokens, int64_t spare,
                         bool *blocked)
{
    const int64_t length = (int64_t)live->n + live->gs;
    int32_t unused = 0;
    *blocked = false;
    const int32_t hits = rg_kv_lookup(&r->pool, &live->kv, length - 1, &unused);
    double load_s = 0;
    const int32_t more =
        live->kv.shareable ? rg_tiers_find(r, &live->kv, hits, length - 1, &load_s) : 0;
    const int64_t cached = (int64_t)(hits + more) * r->pool.block_tokens;
    int64_t tokens = cached + need_tokens < length ? cached + need_tokens : length;
    if (r->rules->reserve_full_prompt &&
        !rg_kv_fits(&r->pool, rg_replica_blocks(r, length) - hits + unused)) {
        *blocked = true;
        return 0;
    }
    if (!rg_kv_fits(&r->pool, rg_replica_blocks(r, tokens) - hits + unused + spare)) {
        *blocked = true;
        return 0;
    }
    rg_kv_adopt(&r->pool, &live->kv, hits);
    live->tier_hits = more;
    live->tier_s = load_s;
    return cached;
}

/* ---- the life of a request */

void rg_replica_arrive(rg_replica *r, rg_live *live, double time_s)
{
    const int64_t most = (int64_t)live->n + live->o - 1;
    const bool paged = r->rules->reservation == RG_RESERVE_PAGED;
    if (!r->pool.unlimited &&
        (paged ? rg_replica_blocks(r, most + rg_replica_ahead(r)) > r->pool.total - 1
               : most > (int64_t)(r->pool.total - 1) * r->pool.block_tokens)) {
        rg_fleet_refused(r->fleet, r, live);
        return;
    }
    r->load_tokens += most - live->c;
    rg_queue_push(r->arena, &r->waiting, live, &r->failed);
    if (r->in_flight == 0 && r->boundary_s > time_s)
        r->boundary_s = time_s > r->last_end_s ? time_s : r->last_end_s;
}

void rg_replica_refuse(rg_replica *r, rg_live *live)
{
    r->load_tokens -= (int64_t)live->n + live->o - 1;
    rg_fleet_refused(r->fleet, r, live);
}

void rg_replica_admit(rg_replica *r, rg_live *live)
{
    live->state = RG_LIVE_RUNNING;
    r->running[r->running_count++] = live;
    r->composition++;
    if (r->running_count > r->result->most_running)
        r->result->most_running = r->running_count;
}

void rg_replica_scheduled(rg_replica *r, rg_live *live, int64_t cached)
{
    if (live->preemptions > 0 || live->state == RG_LIVE_REMOTE)
        return;
    live->cached = (int32_t)cached;
    rg_fleet_looked_up(r->fleet, r, live);
}

static void leave_running(rg_replica *r, int position)
{
    r->running_count--;
    memmove(&r->running[position], &r->running[position + 1],
            (size_t)(r->running_count - position) * sizeof(rg_live *));
    r->composition++;
}

void rg_replica_forget_flights(rg_replica *r, const rg_live *live)
{
    for (int i = 0; i < r->in_flight; i++)
        for (int j = 0; j < r->flights[i].count; j++)
            if (r->flights[i].entries[j].live == live)
                r->flights[i].entries[j].live = NULL;
}

void rg_replica_preempt(rg_replica *r, int position)
{
    rg_live *live = r->running[position];
    leave_running(r, position);
    if (r->rules->speculation.drafts > 0) {
        /* Whether drafts in flight are right will not be known. */
        rg_replica_forget_flights(r, live);
        live->gs = live->g;
        live->flying = 0;
    }
    if (!r->policy->retracts) {
        /* Its full blocks stay known until they are reused. */
        const int64_t known = (int64_t)live->n + live->g;
        rg_kv_register(&r->pool, &live->kv, live->c < known ? live->c : known);
    }
    rg_replica_release(r, live);
    r->load_tokens += live->c;
    live->peak = live->c > live->peak ? live->c : live->peak;
    live->c = 0;
    live->plain_until = 0;
    live->state = RG_LIVE_PREEMPTED;
    live->preemptions++;
    r->result->preemptions++;
    r->preempted_now = true;
    if (r->policy->retracts)
        rg_queue_push(r->arena, &r->waiting, live, &r->failed);
    else
        rg_queue_push_front(r->arena, &r->waiting, live, &r->failed);
}

void rg_replica_swap_out(rg_replica *r, rg_batch *batch, int position)
{
    rg_live *live = r->running[position];
    leave_running(r, position);
    live->swapped = live->kv.held;
    r->held_tokens -= rg_kv_resident(&r->rules->rule, live->c);
    rg_kv_release(&r->pool, &live->kv);
    live->room = live->plain_until = 0;
    live->state = RG_LIVE_SWAPPED;
    live->preemptions++;
    r->result->preemptions++;
    r->result->swapped_blocks += live->swapped;
    r->preempted_now = true;
    batch->extra_s += (double)live->swapped * r->pool.block_tokens * r->rules->kv_bytes_per_token /
                      r->rules->host_bytes_per_s;
    rg_queue_push_front(r->arena, &r->swapped, live, &r->failed);
}

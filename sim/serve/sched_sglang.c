/* serve/sched_sglang.c: SGLang: prompts before decodes, admission by an estimate of what will be
 * needed, prefix cache of pages, retraction when the estimate was too low.
 *
 * A request is admitted when its input and its output, counted up to 4,096 tokens, fit in memory
 * that is free or evictable less, for each running request, its remaining output (up to 4,096)
 * times a ratio. The ratio starts at 0.7 x conservativeness, falls in 600 decode steps to 0.14 of
 * that, is set anew after a retraction and starts over when the engine is idle. The cache is kept
 * as pages under chain names, merged when equal and reused least recently released first, tails
 * before heads; the radix tree of the original evicts least recently used leaves.
 * Source: SGLang managers/schedule_policy.py, schedule_batch.py, scheduler.py.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

enum {
    CLIP_NEW_TOKENS = 4096,
    LPM_QUEUE = 128,    /* longer queues are served first come first served */
    SHARED_PREFIX = 32, /* in-batch prefix that lets a request wait for an earlier one */
    DECODE_STEPS = 600, /* until the ratio has fallen */
    RETRACT_STEPS = 20  /* decode steps that a new estimate provides for */
};

static double first_ratio(const rg_replica *r)
{
    const double ratio = 0.7 * r->rules->conservativeness;
    return ratio < 1 ? ratio : 1;
}

static int64_t clipped(int64_t tokens)
{
    return tokens < CLIP_NEW_TOKENS ? tokens : CLIP_NEW_TOKENS;
}

static double promised_tokens(const rg_replica *r)
{
    double sum = 0;
    for (int i = 0; i < r->running_count; i++)
        sum += (double)clipped(r->running[i]->o - r->running[i]->gs) * r->token_ratio;
    return sum;
}

static int64_t available_tokens(const rg_replica *r)
{
    return r->pool.unlimited ? INT64_MAX / 4 : (int64_t)r->pool.free_count * r->pool.block_tokens;
}

static int64_t cached_of(rg_replica *r, rg_live *live)
{
    int32_t unused;
    return (int64_t)rg_kv_lookup(&r->pool, &live->kv, (int64_t)live->n + live->gs - 1, &unused) *
           r->pool.block_tokens;
}

/* Name of the first 32 tokens, 0 when the request shares nothing. */
static uint64_t opening(rg_replica *r, rg_live *live)
{
    const int32_t blocks = (SHARED_PREFIX + r->pool.block_tokens - 1) / r->pool.block_tokens;
    if (!live->kv.shareable || (int64_t)blocks * r->pool.block_tokens > live->n)
        return 0;
    rg_kv_name(&r->pool, &live->kv, blocks);
    return live->kv.names ? live->kv.names[blocks - 1] : 0;
}

/* Position in waiting of the request to try next among those not yet tried, -1: none. order[] holds
 * the queue by longest cached prefix (stable), postponed ones last. */
static int order_of_service(rg_replica *r, int *order)
{
    struct {
        int64_t cached;
        uint64_t opening;
        bool late;
    } info[LPM_QUEUE];
    const int count = (int)r->waiting.count;
    for (int i = 0; i < count; i++) {
        rg_live *live = rg_queue_at(&r->waiting, i);
        info[i].cached = cached_of(r, live);
        info[i].opening = opening(r, live);
        info[i].late = false;
        if (info[i].cached <= SHARED_PREFIX && info[i].opening)
            for (int j = 0; j < i && !info[i].late; j++)
                info[i].late = info[j].opening == info[i].opening && !info[j].late;
    }
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0; at--) {
            const int other = order[at - 1];
            const bool earlier = info[i].late != info[other].late
                                     ? !info[i].late
                                     : info[i].cached > info[other].cached;
            if (!earlier)
                break;
            order[at] = other;
        }
        order[at] = i;
    }
    return count;
}

/* Admit one waiting request; false: it does not fit and nobody behind it is tried. */
static bool admit(rg_replica *r, rg_batch *batch, rg_live *live, double promised, int64_t *budget)
{
    const int64_t length = (int64_t)live->n + live->gs;
    const int64_t page = r->pool.block_tokens;
    const int64_t cached = cached_of(r, live);
    const int64_t extend = (length - cached + page - 1) / page * page;
    const int64_t output = clipped(live->o - live->gs);
    const double room = (double)available_tokens(r) - promised;
    if ((double)(extend + output) > room && r->running_count > 0)
        return false;
    if (!r->rules->chunked_prefill && extend > *budget && batch->count > 0)
        return false;
    bool blocked;
    int64_t k = length - cached;
    if (r->rules->chunked_prefill && k > *budget)
        k = *budget;
    const int64_t got = rg_replica_reuse(r, live, k, 0, &blocked);
    if (blocked)
        return false;
    live->c = (int32_t)got;
    r->held_tokens += got;
    r->load_tokens -= got;
    if (!rg_replica_hold(r, live, got + k, 0)) {
        rg_replica_release(r, live);
        r->load_tokens += got;
        live->c = 0;
        return false;
    }
    rg_replica_scheduled(r, live, got);
    rg_replica_admit(r, live);
    rg_replica_compute(r, batch, live, k);
    *budget -= k;
    return true;
}

static void prefill(rg_replica *r, rg_batch *batch)
{
    int64_t budget = r->rules->max_batched_tokens;
    /* The request that was cut goes on first. */
    for (int i = 0; i < r->running_count && budget > 0; i++) {
        rg_live *live = r->running[i];
        int64_t k = (int64_t)live->n + live->gs - live->c;
        if (k <= 1 && live->gs > 0)
            continue;
        k = k < budget ? k : budget;
        if (!rg_replica_hold(r, live, live->c + k, 0))
            return;
        rg_replica_compute(r, batch, live, k);
        budget -= k;
    }
    const bool by_prefix =
        r->rules->longest_prefix_first && r->waiting.count <= LPM_QUEUE && r->waiting.count > 1;
    double promised = promised_tokens(r);
    if (!by_prefix) {
        while (r->waiting.count > 0 && budget > 0 && r->running_count < r->rules->max_sequences) {
            rg_live *live = rg_queue_head(&r->waiting);
            if (!admit(r, batch, live, promised, &budget))
                return;
            rg_queue_pop(&r->waiting);
            promised += (double)clipped(live->o - live->gs) * r->token_ratio;
        }
        return;
    }
    int order[LPM_QUEUE];
    rg_live *queue[LPM_QUEUE];
    const int count = order_of_service(r, order);
    for (int i = 0; i < count; i++)
        queue[i] = rg_queue_at(&r->waiting, order[i]);
    for (int i = 0; i < count && budget > 0 && r->running_count < r->rules->max_sequences; i++) {
        if (!admit(r, batch, queue[i], promised, &budget))
            return;
        for (int64_t at = 0; at < r->waiting.count; at++) {
            if (rg_queue_at(&r->waiting, at) != queue[i])
                continue;
            rg_queue_remove(&r->waiting, at);
            break;
        }
        promised += (double)clipped(queue[i]->o - queue[i]->gs) * r->token_ratio;
    }
}

/* Fewest outputs go first; among equals the longest input. */
static int to_retract(const rg_replica *r)
{
    int worst = r->running_count - 1;
    for (int i = r->running_count - 2; i >= 0; i--) {
        const rg_live *a = r->running[i], *b = r->running[worst];
        if (a->gs < b->gs || (a->gs == b->gs && a->n > b->n))
            worst = i;
    }
    return worst;
}

static void retract(rg_replica *r)
{
    int64_t need = 0;
    for (int i = 0; i < r->running_count; i++)
        need += r->running[i]->c + 1 > r->running[i]->room;
    bool any = false;
    while (!rg_kv_fits(&r->pool, need) && r->running_count > 1) {
        const int victim = to_retract(r);
        need -= r->running[victim]->c + 1 > r->running[victim]->room;
        rg_replica_preempt(r, victim);
        any = true;
    }
    if (!any)
        return;
    double done = 0, most = 0;
    for (int i = 0; i < r->running_count; i++) {
        done += r->running[i]->gs;
        most += r->running[i]->o;
    }
    const double ratio = (done + RETRACT_STEPS * r->running_count) / (most > 0 ? most : 1);
    r->token_ratio = ratio < 1 ? ratio : 1;
}

static void decode(rg_replica *r, rg_batch *batch)
{
    retract(r);
    for (int i = 0; i < r->running_count; i++) {
        rg_live *live = r->running[i];
        if (live->gs == 0 || live->c != live->n + live->gs - 1)
            continue;
        if (!rg_replica_hold(r, live, (int64_t)live->c + 1, 0))
            continue;
        rg_replica_compute(r, batch, live, 1);
    }
    const double high = first_ratio(r), low = 0.14 * high;
    r->token_ratio -= (high - low) / DECODE_STEPS;
    if (r->token_ratio < low)
        r->token_ratio = low;
}

static void build(rg_replica *r, rg_batch *batch)
{
    if (r->running_count == 0 || r->token_ratio == 0)
        r->token_ratio = first_ratio(r);
    prefill(r, batch);
    if (batch->count == 0 || r->rules->mixed_chunk)
        decode(r, batch);
}

/* The ratio falls with every decode step and can open the door to a waiting request, so steps are
 * taken one by one. */
const rg_policy rg_policy_sglang = {build, NULL, false};

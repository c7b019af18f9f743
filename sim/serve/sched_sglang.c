/* serve/sched_sglang.c: SGLang: prompts before decodes, admission by an estimate of what will be
 * needed, a radix tree as prefix cache, retraction when the estimate was too low.
 *
 * A request is admitted when its input and its output, counted up to 4,096 tokens, fit in memory
 * that is vacant or evictable less, for each running request, its remaining output (up to 4,096)
 * times a ratio, less what was admitted before it in the same step. The ratio starts at 0.7 x
 * conservativeness, falls in 600 decode steps to 0.14 of that, is set anew by a retraction and
 * starts over when the engine is idle. After a refusal nobody is looked at until a running request
 * leaves. Pages are taken when the whole step is known, so none that was found is evicted for
 * another. Prompts enter the tree when computed, outputs when the request is done; what a retracted
 * request wrote is forgotten, and it waits behind the others.
 * Source: SGLang managers/schedule_policy.py (SchedulePolicy, PrefillAdder), schedule_batch.py
 * (retract_decode), scheduler.py (get_new_batch_prefill, update_running_batch).
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/kv_tree.h"
#include "serve/replica.h"

enum {
    CLIP_NEW_TOKENS = 4096,
    LPM_QUEUE = 128,    /* longer queues are served first come first served */
    SHARED_PREFIX = 32, /* in-batch prefix that lets a request wait for an earlier one */
    DECODE_STEPS = 600, /* until the ratio has fallen */
    RETRACT_STEPS = 20, /* decode steps that a new estimate provides for */
    RESERVED = 512      /* tokens kept free for each request of a decode pool */
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

static int64_t free_tokens(const rg_replica *r)
{
    return r->pool.unlimited ? INT64_MAX / 4 : (int64_t)r->pool.free_count * r->pool.block_tokens;
}

static int64_t in_pages(const rg_replica *r, int64_t tokens)
{
    const int64_t page = r->pool.block_tokens;
    return (tokens + page - 1) / page * page;
}

static int64_t left_of(const rg_live *live)
{
    return (int64_t)live->n + live->gs - live->c;
}

/* Its prompt is not yet computed to the end. */
static bool cut(const rg_live *live)
{
    return live->gs == 0 || left_of(live) > 1;
}

/* ---- order of the queue */

/* The queue by longest cached prefix, stable; last those that share 32 tokens with an earlier one
 * while hardly any are cached, as they will find more when that one is done. */
static void by_longest_prefix(rg_replica *r)
{
    rg_live *sorted[LPM_QUEUE];
    int64_t cached[LPM_QUEUE];
    bool asked[LPM_QUEUE], late[LPM_QUEUE];
    int order[LPM_QUEUE];
    const int count = (int)r->waiting.count;
    for (int i = 0; i < count; i++) {
        rg_live *live = rg_queue_at(&r->waiting, i);
        const int64_t length = (int64_t)live->n + live->gs;
        int32_t unused;
        cached[i] =
            (int64_t)rg_kv_lookup(&r->pool, &live->kv, length - 1, &unused) * r->pool.block_tokens;
        asked[i] = cached[i] <= SHARED_PREFIX && length >= SHARED_PREFIX && live->kv.text;
        late[i] = false;
        for (int j = 0; asked[i] && !late[i] && j < i; j++)
            late[i] = asked[j] && !late[j] &&
                      rg_radix_common(rg_queue_at(&r->waiting, j)->kv.text, live->kv.text,
                                      SHARED_PREFIX) == SHARED_PREFIX;
        int at = i;
        for (; at > 0; at--) {
            const int other = order[at - 1];
            if (late[i] != late[other] ? late[i] : late[i] || cached[i] <= cached[other])
                break;
            order[at] = other;
        }
        order[at] = i;
    }
    for (int i = 0; i < count; i++)
        sorted[i] = rg_queue_at(&r->waiting, order[i]);
    rg_queue_arrange(&r->waiting, sorted);
}

/* ---- prompts */

typedef struct adder {
    double promised; /* tokens of free memory that are spoken for */
    int64_t budget;  /* tokens that the step may still compute */
    bool continues;  /* a cut request fills the step: no other may be cut too */
} adder;

/* Contiguous memory knows no estimate: the reservation is made or not. */
static bool reserve(rg_replica *r, rg_batch *batch, rg_live *live, adder *a)
{
    const int64_t length = (int64_t)live->n + live->gs;
    const int64_t k = r->rules->chunked_prefill && length > a->budget ? a->budget : length;
    if (!rg_replica_hold(r, live, length, 0))
        return false;
    rg_replica_scheduled(r, live, 0);
    rg_replica_admit(r, live);
    rg_replica_compute(r, batch, live, k);
    a->budget -= k;
    return true;
}

/* Admit a waiting request; false: it does not fit, and nobody behind it is tried. */
static bool admit(rg_replica *r, rg_batch *batch, rg_live *live, adder *a)
{
    if (r->rules->reservation != RG_RESERVE_PAGED)
        return reserve(r, batch, live, a);
    const int64_t length = (int64_t)live->n + live->gs, page = r->pool.block_tokens;
    int32_t unused = 0;
    const int32_t hits = rg_kv_lookup(&r->pool, &live->kv, length - 1, &unused);
    double load_s = 0;
    const int32_t more =
        live->kv.shareable ? rg_tiers_find(r, &live->kv, hits, length - 1, &load_s) : 0;
    const int64_t cached = (int64_t)(hits + more) * page, extend = length - cached;
    /* Pages that are found cannot be evicted any more. */
    const int64_t room = free_tokens(r) - (int64_t)unused * page;
    const int64_t need = length - (int64_t)hits * page + clipped(live->o - live->gs) + page;
    const bool alone = r->running_count == 0 && in_pages(r, length) - hits * page <= room;
    if ((double)need >= (double)room - a->promised && !alone) {
        r->full = true;
        return false;
    }
    int64_t k = extend, output = clipped(live->o);
    if (!r->rules->chunked_prefill) {
        if (in_pages(r, extend) >= a->budget && batch->count > 0)
            return false;
    } else if (in_pages(r, extend) > a->budget) {
        k = a->budget / page * page;
        output = 0;
        if (k == 0 || a->continues)
            return false;
        a->continues = true;
    }
    rg_kv_adopt(&r->pool, &live->kv, hits);
    live->tier_hits = more;
    live->tier_s = load_s;
    live->c = (int32_t)cached;
    r->held_tokens += cached;
    r->load_tokens -= cached;
    rg_replica_scheduled(r, live, cached);
    rg_replica_admit(r, live);
    rg_replica_compute(r, batch, live, k);
    a->promised += (double)(in_pages(r, k + (int64_t)more * page) + output);
    a->budget -= in_pages(r, k);
    return true;
}

/* A decode pool takes a request when its prompt and a reserve fit beside a like reserve for each
 * that is there or under way. What was retracted is behind them, as any other prompt. Source:
 * disaggregation/decode.py, DecodePreallocQueue (SGLANG_NUM_RESERVED_DECODE_TOKENS). */
static void receive(rg_replica *r)
{
    int64_t there = r->running_count;
    for (int64_t at = 0; at < r->waiting.count;) {
        rg_live *live = rg_queue_at(&r->waiting, at);
        const bool remote = live->state == RG_LIVE_REMOTE;
        if (remote && live->kv.held == 0 &&
            (int64_t)live->n + RESERVED * (there + 1) > free_tokens(r) && there > 0)
            return;
        const bool here = remote && rg_replica_receive(r, live);
        if (remote && live->kv.held == 0)
            return;
        there += remote;
        if (!here || r->running_count >= r->rules->max_sequences) {
            at++;
            continue;
        }
        rg_queue_remove(&r->waiting, at);
        rg_replica_admit(r, live);
    }
}

/* One prompt at most is cut, that of the request admitted last; but a decode pool admits others
 * while it computes again what was retracted. */
static rg_live *cut_one(const rg_replica *r)
{
    for (int i = r->running_count - 1; i >= 0; i--) {
        if (cut(r->running[i]))
            return r->running[i];
        if (r->role != RG_ROLE_DECODE)
            break;
    }
    return NULL;
}

static void prefill(rg_replica *r, rg_batch *batch)
{
    adder a = {.budget = r->rules->max_batched_tokens};
    rg_live *chunked = cut_one(r);
    const int decodes = r->running_count - (chunked != NULL);
    if ((r->full || r->waiting.count == 0) && !chunked)
        return;
    for (int i = 0; i < r->running_count; i++)
        if (r->running[i] != chunked)
            a.promised += (double)clipped(r->running[i]->o - r->running[i]->gs) * r->token_ratio;
    if (r->rules->mixed_chunk)
        a.budget -= decodes;
    if (chunked && a.budget > 0) {
        int64_t k = left_of(chunked);
        const int64_t room = free_tokens(r);
        k = k < a.budget ? k : a.budget;
        k = k < room ? k : room;
        if (k > 0) {
            a.continues = k < left_of(chunked);
            rg_replica_compute(r, batch, chunked, k);
            a.promised += (double)(in_pages(r, k) + (a.continues ? 0 : clipped(chunked->o)));
            a.budget -= in_pages(r, k);
        }
    }
    if (r->rules->longest_prefix_first && r->pool.tree && r->waiting.count <= LPM_QUEUE && !r->full)
        by_longest_prefix(r);
    while (r->waiting.count > 0 && a.budget > 0 && !r->full &&
           rg_queue_head(&r->waiting)->state != RG_LIVE_REMOTE) {
        if (r->running_count >= r->rules->max_sequences) {
            r->full = true;
            break;
        }
        if (!admit(r, batch, rg_queue_head(&r->waiting), &a))
            break;
        rg_queue_pop(&r->waiting);
    }
    for (int i = 0; i < batch->count; i++)
        rg_replica_hold(r, batch->entries[i].live, batch->entries[i].live->c, 0);
}

/* ---- decodes */

/* Fewest outputs go first; among equals the longest input. With drafts the latest goes. */
static int to_retract(const rg_replica *r)
{
    int worst = r->running_count - 1;
    for (int i = r->running_count - 2; i >= 0 && r->rules->speculation.drafts == 0; i--) {
        const rg_live *a = r->running[i], *b = r->running[worst];
        if (a->gs < b->gs || (a->gs == b->gs && a->n > b->n))
            worst = i;
    }
    return worst;
}

static int64_t next_tokens(const rg_replica *r, const rg_live *live)
{
    return cut(live) ? live->c : (int64_t)live->c + 1 + r->rules->speculation.drafts;
}

static int64_t next_blocks(const rg_replica *r, const rg_live *live)
{
    const int64_t more = rg_replica_blocks(r, next_tokens(r, live)) - live->kv.held;
    return live->reserved || more < 0 ? 0 : more;
}

/* Make room for one more token of everybody; true when someone had to go. */
static bool retract(rg_replica *r)
{
    const int64_t each = rg_replica_blocks(r, r->rules->speculation.drafts + 1) + 1;
    int64_t need = 0;
    if (rg_kv_fits(&r->pool, each * r->running_count))
        return false;
    for (int i = 0; i < r->running_count; i++)
        need += next_blocks(r, r->running[i]);
    bool any = false;
    while (!rg_kv_fits(&r->pool, need) && r->running_count > 1) {
        const int victim = to_retract(r);
        need -= next_blocks(r, r->running[victim]);
        rg_replica_preempt(r, victim);
        any = true;
    }
    if (!any)
        return false;
    r->full = false;
    double done = 0, most = 1;
    for (int i = 0; i < r->running_count; i++) {
        done += r->running[i]->gs;
        most += r->running[i]->o;
    }
    const double ratio = (done + RETRACT_STEPS * r->running_count) / most;
    r->token_ratio = ratio < 1 ? ratio : 1;
    return true;
}

/* Pages for all that need one, where they fit, so that they decode as a run. */
static void extend(rg_replica *r)
{
    if (!r->pool.tree || !r->plain || !rg_kv_fits(&r->pool, r->running_count))
        return;
    int32_t taken = 0;
    for (int i = 0; i < r->running_count; i++) {
        rg_live *live = r->running[i];
        const int32_t last = live->n + live->o - 1;
        if (live->c < live->room || cut(live))
            continue;
        live->kv.held++;
        live->room += r->pool.block_tokens;
        live->plain_until = live->room < last ? live->room : last;
        taken++;
    }
    rg_kv_tree_reserve(&r->pool, taken);
}

static void decode(rg_replica *r, rg_batch *batch)
{
    const int64_t before = batch->count;
    const bool retracted = before == 0 && retract(r);
    if (before == 0)
        extend(r);
    for (int i = 0; i < r->running_count; i++) {
        if (before == 0)
            rg_replica_decode_run(r, batch, &i, r->running_count);
        if (i >= r->running_count)
            break;
        rg_live *live = r->running[i];
        if (cut(live) || (before > 0 && live->batch_number == r->steps))
            continue;
        if (!rg_replica_hold(r, live, next_tokens(r, live), 0))
            continue;
        rg_replica_compute(r, batch, live, 1);
    }
    const double high = first_ratio(r), low = 0.14 * high;
    if (!retracted)
        r->token_ratio -= (high - low) / DECODE_STEPS;
    if (r->token_ratio < low)
        r->token_ratio = low;
}

static void build(rg_replica *r, rg_batch *batch)
{
    if (r->running_count == 0 || r->token_ratio == 0)
        r->token_ratio = first_ratio(r);
    if (r->running_count == 0)
        r->full = false;
    if (r->role == RG_ROLE_DECODE)
        receive(r);
    prefill(r, batch);
    if (batch->count == 0 || r->rules->mixed_chunk)
        decode(r, batch);
}

/* A request is done: its output is known from now on. */
static void done(rg_replica *r, rg_live *live)
{
    r->full = false;
    rg_kv_register(&r->pool, &live->kv, live->c);
    rg_replica_release(r, live);
}

/* The ratio falls with every decode step and can open the door to a waiting request, so steps are
 * taken one by one. */
const rg_policy rg_policy_sglang = {build, done, false, true};

/* serve/fleet.c: many replicas behind a router; prefill and decode pools; replicas that come and
 * go; what is counted.
 *
 * Time goes from one happening to the next: an arrival, the end of a step, KV that has arrived, a
 * decision to scale. Replicas that share nothing may run ahead to the next happening outside.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 256, MAX_REPLICAS = 4096 };

struct rg_fleet {
    rg_arena *arena;
    const rg_deployment *deployment;
    rg_requests *stream;
    const rg_goals *goals;
    const rg_observer *observer;
    rg_serve_result *out;
    uint64_t seed;
    rg_replica **replicas; /* prefill first, then the others */
    int count, first_decode;
    rg_live *spare;
    int64_t order, turn, prefill_turn, live_count;
    double now_s, last_token_s, first_arrival_s, next_scale_s;
    double *link_free_s; /* [prefill replicas] */
    uint64_t *seen;      /* names of trace blocks already asked for, open addressing */
    int64_t seen_size, seen_used;
    struct delayed { /* arrivals on their way into the engine */
        rg_live *live;
        double at_s;
    } * entering;
    int64_t entering_head, entering_count, entering_room;
    rg_live *sending; /* KV under way: memory of the prefill side is freed at ready_s */
    rg_err failed;
};

/* ---- requests in and out of being */

static rg_live *new_live(rg_fleet *f)
{
    if (!f->spare) {
        rg_live *many = RG_NEW(f->arena, rg_live, CHUNK, &f->failed);
        if (!many)
            return NULL;
        for (int i = 0; i < CHUNK; i++) {
            many[i].link = f->spare;
            f->spare = &many[i];
        }
    }
    rg_live *live = f->spare;
    f->spare = live->link;
    rg_segment *segments = live->segments;
    const int32_t room = live->segment_room;
    *live = (rg_live){.segments = segments,
                      .segment_room = room,
                      .last_token_s = -1,
                      .scheduled_s = -1,
                      .first_token_s = -1,
                      .ready_s = -1};
    f->live_count++;
    return live;
}

static void drop_live(rg_fleet *f, rg_replica *r, rg_live *live)
{
    rg_kv_close(&r->pool, &live->kv);
    live->link = f->spare;
    f->spare = live;
    f->live_count--;
}

static void open_sequence(rg_fleet *f, rg_replica *r, rg_live *live)
{
    const rg_request *q = &live->request;
    const int64_t total = q->prompt_tokens + q->output_tokens + r->rules->speculation.drafts + 1;
    rg_kv_open(&r->pool, &live->kv, total);
    live->kv.segments = live->segments;
    live->kv.segment_count = q->segment_count;
    live->kv.shareable = q->segment_count > 0;
    live->shares = live->kv.shareable && r->pool.caching && !r->late_names;
    /* Text that nobody else knows gets a name of its own. */
    uint64_t own = f->seed ^ (0x6f776e00 + (uint64_t)q->index * 0x9e3779b97f4a7c15u);
    live->kv.tail_id = q->output_id ? q->output_id : rg_rng_splitmix(&own);
    f->failed.status = f->failed.status ? f->failed.status : r->pool.failed.status;
}

static rg_live *make_live(rg_fleet *f, const rg_request *request)
{
    rg_live *live = new_live(f);
    if (!live)
        return NULL;
    live->request = *request;
    live->n = (int32_t)request->prompt_tokens;
    live->o = (int32_t)request->output_tokens;
    live->priority = (int32_t)request->priority;
    live->order = f->order++;
    if (request->segment_count > live->segment_room) {
        live->segment_room = request->segment_count + request->segment_count / 2;
        live->segments = RG_NEW(f->arena, rg_segment, live->segment_room, &f->failed);
        if (!live->segments)
            return NULL;
    }
    if (request->segment_count > 0)
        memcpy(live->segments, request->segments,
               (size_t)request->segment_count * sizeof *live->segments);
    live->request.segments = live->segments;
    return live;
}

/* ---- what is counted */

void rg_fleet_finished(rg_fleet *f, rg_replica *r, rg_live *live, double time_s)
{
    rg_serve_result *out = f->out;
    const rg_request *q = &live->request;
    const double arrival = q->arrival_s, tokens = (double)q->output_tokens;
    const double ttft = live->first_token_s - arrival, e2e = time_s - arrival;
    const double between = time_s - live->first_token_s;
    const double tpot = tokens > 1 ? between / (tokens - 1) : 0;
    out->finished++;
    out->output_tokens += q->output_tokens;
    out->prompt_tokens += q->prompt_tokens;
    rg_sample_add(&out->ttft, ttft, 1);
    rg_sample_add(&out->queue, live->scheduled_s - arrival, 1);
    rg_sample_add(&out->prefill, live->last_chunk_s - live->scheduled_s, 1);
    rg_sample_add(&out->first_step, live->first_token_s - live->last_chunk_s, 1);
    if (tokens > 1)
        rg_sample_add(&out->tpot_excl_first, tpot, 1);
    rg_sample_add(&out->tpot_incl_first, e2e / tokens, 1);
    rg_sample_add(&out->e2e, e2e, 1);
    const rg_goals *goals = f->goals;
    out->good += (goals->ttft_s <= 0 || ttft <= goals->ttft_s) &&
                 (goals->tpot_s <= 0 || tpot <= goals->tpot_s) &&
                 (goals->e2e_s <= 0 || e2e <= goals->e2e_s);
    f->last_token_s = time_s > f->last_token_s ? time_s : f->last_token_s;
    if (f->observer && f->observer->served) {
        const rg_served served = {.index = q->index,
                                  .row = q->row,
                                  .prompt_tokens = q->prompt_tokens,
                                  .output_tokens = q->output_tokens,
                                  .cached_tokens = live->cached,
                                  .preemptions = live->preemptions,
                                  .recomputed_tokens = live->recomputed,
                                  .replica = r->number,
                                  .arrival_s = arrival,
                                  .scheduled_s = live->scheduled_s,
                                  .last_chunk_s = live->last_chunk_s,
                                  .first_token_s = live->first_token_s,
                                  .last_token_s = time_s};
        f->observer->served(f->observer->context, &served);
    }
    if (f->observer && f->observer->progress && (out->finished & 255) == 0)
        f->observer->progress(f->observer->context, time_s, out->finished);
    rg_requests_finished(f->stream, q, time_s);
    drop_live(f, r, live);
}

void rg_fleet_refused(rg_fleet *f, rg_replica *r, rg_live *live)
{
    f->out->refused++;
    rg_requests_finished(f->stream, &live->request, r->now_s > f->now_s ? r->now_s : f->now_s);
    drop_live(f, r, live);
}

double rg_fleet_unwatched(const rg_fleet *f, const rg_replica *r)
{
    const rg_observer *o = f->observer;
    if (!o || (!o->moment && !o->inspect))
        return INFINITY;
    return o->inspect ? -INFINITY : r->last_moment_s + o->moment_interval_s;
}

void rg_fleet_moment(rg_fleet *f, rg_replica *r, const rg_batch *b)
{
    const rg_observer *o = f->observer;
    if (o && o->inspect)
        o->inspect(o->context, r, b);
    if (!o || !o->moment || b->start_s - r->last_moment_s < o->moment_interval_s)
        return;
    r->last_moment_s = b->start_s;
    const double used = (double)rg_kv_used(&r->pool) * r->pool.block_tokens;
    rg_moment m = {.time_s = b->start_s,
                   .duration_s = b->end_s - b->start_s,
                   .replica = r->number,
                   .step = r->steps,
                   .running = r->running_count,
                   .waiting = r->waiting.count,
                   .prefill_tokens = b->prefill_tokens,
                   .decodes = b->decodes,
                   .used_blocks = rg_kv_used(&r->pool)};
    if (r->rules->reservation != RG_RESERVE_PAGED) {
        const double taken = (double)(r->extent_total - r->extent_free);
        m.used_blocks = (int64_t)(taken / r->pool.block_tokens);
        m.internal_fragmentation_ratio = taken > 0 ? 1 - (double)r->held_tokens / taken : 0;
        m.external_fragmentation_ratio = rg_extent_fragmentation(r);
    } else if (used > (double)r->held_tokens) {
        m.internal_fragmentation_ratio = 1 - (double)r->held_tokens / used;
    }
    o->moment(o->context, &m);
}

static bool seen_reserve(rg_fleet *f)
{
    if (f->seen_used * 2 < f->seen_size)
        return true;
    const int64_t size = f->seen_size ? f->seen_size * 2 : 1 << 12;
    uint64_t *seen = RG_NEW(f->arena, uint64_t, size, &f->failed);
    if (!seen)
        return false;
    for (int64_t i = 0; i < f->seen_size; i++) {
        if (!f->seen[i])
            continue;
        int64_t at = (int64_t)(f->seen[i] & (uint64_t)(size - 1));
        while (seen[at])
            at = (at + 1) & (size - 1);
        seen[at] = f->seen[i];
    }
    f->seen = seen;
    f->seen_size = size;
    return true;
}

/* True when the trace block was asked for before; remembers it. */
static bool seen_before(rg_fleet *f, uint64_t id)
{
    id += id == 0;
    if (!seen_reserve(f))
        return false;
    int64_t at = (int64_t)(id & (uint64_t)(f->seen_size - 1));
    while (f->seen[at] && f->seen[at] != id)
        at = (at + 1) & (f->seen_size - 1);
    if (f->seen[at] == id)
        return true;
    f->seen[at] = id;
    f->seen_used++;
    return false;
}

void rg_fleet_looked_up(rg_fleet *f, rg_replica *r, const rg_live *live)
{
    rg_serve_result *out = f->out;
    const rg_request *q = &live->request;
    const int64_t page = r->pool.block_tokens, cached = live->cached;
    out->queried_tokens += live->n;
    out->hit_tokens += cached;
    if (q->trace_block_tokens == 0) {
        out->queried_blocks += live->n / page;
        out->hit_blocks += cached / page;
        return;
    }
    /* In blocks of the trace. The last one is partial, and an engine always computes one token and
     * shares full KV blocks only; so when all was found that could be, every leading block that was
     * asked for before counts. */
    int64_t leading = 0;
    bool run = true;
    for (int i = 0; i < q->segment_count; i++) {
        run &= seen_before(f, live->segments[i].id);
        leading += run;
    }
    int64_t could = leading * q->trace_block_tokens;
    could = could < live->n - 1 ? could : live->n - 1;
    could = could / page * page;
    out->queried_blocks += q->segment_count;
    out->hit_blocks += cached >= could ? leading : cached / q->trace_block_tokens;
}

/* ---- routing */

static bool serves(const rg_replica *r)
{
    return !r->dead && !r->draining;
}

static int64_t cached_tokens(rg_replica *r, const rg_live *live)
{
    rg_kv_seq seq;
    int32_t unused;
    rg_kv_open(&r->pool, &seq, live->n + 1);
    seq.segments = live->segments;
    seq.segment_count = live->request.segment_count;
    seq.tail_id = 1;
    seq.shareable = live->request.segment_count > 0;
    const int64_t hits = rg_kv_lookup(&r->pool, &seq, live->n - 1, &unused);
    rg_kv_close(&r->pool, &seq);
    return hits * r->pool.block_tokens;
}

static rg_replica *least_loaded(rg_fleet *f, int from, int to)
{
    rg_replica *best = NULL;
    for (int i = from; i < to; i++) {
        rg_replica *r = f->replicas[i];
        if (serves(r) && (!best || r->load_tokens < best->load_tokens))
            best = r;
    }
    return best;
}

static rg_replica *round_robin(rg_fleet *f, int from, int to, int64_t *turn)
{
    for (int tries = 0; tries < to - from; tries++) {
        rg_replica *r = f->replicas[from + (int)((*turn)++ % (to - from))];
        if (serves(r))
            return r;
    }
    return NULL;
}

static rg_replica *route(rg_fleet *f, const rg_live *live, int from, int to, int64_t *turn)
{
    switch (f->deployment->router) {
    case RG_ROUTE_LEAST_LOADED:
        return least_loaded(f, from, to);
    case RG_ROUTE_PREFIX: {
        rg_replica *best = NULL;
        int64_t most = -1;
        for (int i = from; i < to; i++) {
            rg_replica *r = f->replicas[i];
            if (!serves(r))
                continue;
            const int64_t cached = cached_tokens(r, live);
            if (!best || cached > most || (cached == most && r->load_tokens < best->load_tokens)) {
                best = r;
                most = cached;
            }
        }
        return best;
    }
    case RG_ROUTE_SESSION:
        if (live->request.session >= 0) {
            uint64_t x = (uint64_t)live->request.session;
            rg_replica *r = f->replicas[from + (int)(rg_rng_splitmix(&x) % (uint64_t)(to - from))];
            if (serves(r))
                return r;
        }
        return least_loaded(f, from, to);
    case RG_ROUTE_ROUND_ROBIN:
        break;
    }
    return round_robin(f, from, to, turn);
}

static void enter(rg_fleet *f, rg_live *live, double time_s)
{
    const bool split = f->first_decode > 0;
    rg_replica *r = split ? route(f, live, 0, f->first_decode, &f->prefill_turn)
                          : route(f, live, 0, f->count, &f->turn);
    open_sequence(f, r, live);
    if (split)
        live->o = 1; /* the first token comes from the prefill side */
    rg_replica_arrive(r, live, time_s);
}

/* ---- disaggregation */

static double kv_bytes(const rg_replica *r, int64_t tokens)
{
    return r->rules->kv_bytes_per_token * (double)rg_kv_resident(&r->rules->rule, tokens);
}

void rg_fleet_prefilled(rg_fleet *f, rg_replica *r, rg_live *live, double time_s)
{
    /* The blocks stay on the prefill side, under a stand-in, until the KV has been sent. */
    rg_live *holder = new_live(f);
    if (!holder)
        return;
    holder->kv = live->kv;
    holder->c = live->c;
    holder->n = live->n;
    holder->source = r->number;
    holder->ready_s = INFINITY;
    r->sending++;
    live->o = (int32_t)live->request.output_tokens;
    live->finished = false;
    live->state = RG_LIVE_REMOTE;
    live->source = r->number;
    live->c = 0;
    live->ready_s = -1;
    live->arrived = false;
    live->swapped = 0;
    live->room = 0;
    live->holder = holder;
    holder->link = f->sending;
    f->sending = holder;
    rg_replica *to = route(f, live, f->first_decode, f->count, &f->turn);
    open_sequence(f, to, live);
    rg_replica_arrive(to, live, time_s);
}

double rg_fleet_send(rg_fleet *f, rg_replica *r, rg_live *live, double time_s)
{
    const rg_deployment *d = f->deployment;
    const double bytes = kv_bytes(r, live->n);
    double wire = bytes / d->transfer_bytes_per_s;
    double *link_free = &f->link_free_s[live->source];
    double start = time_s > *link_free ? time_s : *link_free;
    if (d->transfer_overlap && d->layers > 1) {
        /* Layers left while later ones were computed; what the prefill did not cover remains, the
         * last layer at least. */
        const double covered = live->first_token_s - live->last_chunk_s;
        const double rest = wire - covered;
        wire = rest > wire / (double)d->layers ? rest : wire / (double)d->layers;
    }
    const double ready = start + wire + d->transfer_latency_s;
    *link_free = start + wire;
    rg_live *holder = live->holder;
    holder->ready_s = ready;
    live->holder = NULL;
    f->out->transfers++;
    f->out->transfer_bytes += bytes;
    f->out->transfer_wait_s += ready - live->first_token_s;
    return ready;
}

static double next_sent(const rg_fleet *f)
{
    double next = INFINITY;
    for (const rg_live *h = f->sending; h; h = h->link)
        next = h->ready_s < next ? h->ready_s : next;
    return next;
}

static void free_sent(rg_fleet *f, double time_s)
{
    for (rg_live **at = &f->sending; *at;) {
        rg_live *h = *at;
        if (h->ready_s > time_s) {
            at = &h->link;
            continue;
        }
        *at = h->link;
        rg_replica *r = f->replicas[h->source];
        rg_replica_release(r, h);
        r->sending--;
        if (r->in_flight == 0 && r->waiting.count > 0 && time_s < r->boundary_s)
            r->boundary_s = time_s;
        drop_live(f, r, h);
    }
}

/* ---- replicas come and go */

static rg_status add_replica(rg_fleet *f, bool prefill, double time_s, rg_err *err)
{
    const rg_deployment *d = f->deployment;
    rg_replica *r = RG_NEW(f->arena, rg_replica, 1, err);
    if (!r)
        return RG_ERR_LIMIT;
    RG_TRY(rg_replica_start(r, f->arena, prefill ? &d->prefill_rules : &d->rules, &d->constants,
                            prefill ? &d->prefill_step : &d->step, f->out, err));
    r->fleet = f;
    r->number = f->count;
    r->role = d->prefill_replicas == 0 ? RG_ROLE_BOTH : prefill ? RG_ROLE_PREFILL : RG_ROLE_DECODE;
    r->born_s = time_s;
    r->last_end_s = time_s;
    rg_rng_seed(&r->rng, f->seed, 1000 + (uint64_t)f->count);
    f->replicas[f->count++] = r;
    return RG_OK;
}

/* Rule: out by one when the mean queue is over the target, in by one when it is under the idle mark
 * and the running requests fit on one fewer. */
static rg_status scale(rg_fleet *f, rg_err *err)
{
    const rg_autoscale *a = &f->deployment->autoscale;
    int64_t serving = 0, waiting = 0, running = 0;
    rg_replica *last = NULL;
    for (int i = f->first_decode; i < f->count; i++) {
        rg_replica *r = f->replicas[i];
        if (!serves(r))
            continue;
        serving++;
        waiting += r->waiting.count;
        running += r->running_count;
        last = r;
    }
    if (!last)
        return RG_OK;
    const double mean = (double)waiting / (double)serving;
    if (mean > a->target_waiting && serving < a->most && f->count < MAX_REPLICAS) {
        RG_TRY(add_replica(f, false, f->next_scale_s, err));
        f->replicas[f->count - 1]->last_end_s += a->start_s;
    } else if (mean < a->idle_waiting && serving > a->least &&
               running <= (serving - 1) * f->deployment->rules.max_sequences) {
        last->draining = true;
    }
    f->out->most_replicas =
        serving + 1 > f->out->most_replicas && serving < a->most && mean > a->target_waiting
            ? serving + 1
            : f->out->most_replicas;
    f->next_scale_s += a->interval_s;
    return RG_OK;
}

static void bury(rg_fleet *f, double time_s)
{
    for (int i = 0; i < f->count; i++) {
        rg_replica *r = f->replicas[i];
        if (r->draining && !r->dead && r->running_count == 0 && r->waiting.count == 0 &&
            r->in_flight == 0) {
            r->dead = true;
            r->died_s = time_s;
        }
    }
}

/* ---- the course of time */

static rg_status pull(rg_fleet *f, rg_err *err)
{
    rg_request request;
    bool more;
    RG_TRY(rg_requests_next(f->stream, &request, &more, err));
    if (!more)
        return RG_OK;
    f->out->requests++;
    if (f->out->requests == 1)
        f->first_arrival_s = request.arrival_s;
    rg_live *live = make_live(f, &request);
    if (!live)
        return RG_ERR_LIMIT;
    f->now_s = request.arrival_s;
    const double delay = f->deployment->constants.request_overhead_s;
    if (delay <= 0) {
        enter(f, live, request.arrival_s);
        return RG_OK;
    }
    if (f->entering_count == f->entering_room) {
        const int64_t room = f->entering_room ? f->entering_room * 2 : 256;
        struct delayed *items = RG_NEW(f->arena, struct delayed, room, err);
        if (!items)
            return RG_ERR_LIMIT;
        for (int64_t i = 0; i < f->entering_count; i++)
            items[i] = f->entering[(f->entering_head + i) & (f->entering_room - 1)];
        f->entering = items;
        f->entering_room = room;
        f->entering_head = 0;
    }
    f->entering[(f->entering_head + f->entering_count++) & (f->entering_room - 1)] =
        (struct delayed){live, request.arrival_s + delay};
    return RG_OK;
}

static rg_replica *soonest(const rg_fleet *f, double *time_s)
{
    rg_replica *best = NULL;
    *time_s = INFINITY;
    for (int i = 0; i < f->count; i++) {
        const double next = rg_replica_next(f->replicas[i]);
        if (next < *time_s) {
            *time_s = next;
            best = f->replicas[i];
        }
    }
    return best;
}

static rg_status check_failed(const rg_fleet *f, const rg_replica *r, rg_err *err)
{
    const rg_status status = f->failed.status ? f->failed.status : r ? r->failed.status : RG_OK;
    if (status == RG_OK)
        return RG_OK;
    return rg_fail(err, status, RG_NOWHERE, "simulation out of memory at %.3f s of simulated time",
                   f->now_s);
}

static rg_status run(rg_fleet *f, rg_err *err)
{
    const bool split = f->first_decode > 0;
    for (;;) {
        double arrival, step_s;
        RG_TRY(rg_requests_peek(f->stream, &arrival, err));
        const double entering =
            f->entering_count ? f->entering[f->entering_head].at_s : (double)INFINITY;
        const double sent = split ? next_sent(f) : (double)INFINITY;
        double outside = arrival < entering ? arrival : entering;
        outside = sent < outside ? sent : outside;
        rg_replica *r = soonest(f, &step_s);
        if (isinf(outside) && isinf(step_s)) {
            if (f->live_count == 0)
                return RG_OK;
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "simulation stands still with %lld requests unserved at %.3f s",
                           (long long)f->live_count, f->now_s);
        }
        const bool scaling = f->deployment->autoscale.on && f->live_count > 0;
        if (scaling && f->next_scale_s <= outside && f->next_scale_s <= step_s) {
            RG_TRY(scale(f, err));
        } else if (outside <= step_s) {
            f->now_s = outside;
            if (sent <= outside) {
                free_sent(f, outside);
            } else if (entering <= outside) {
                rg_live *live = f->entering[f->entering_head].live;
                f->entering_head = (f->entering_head + 1) & (f->entering_room - 1);
                f->entering_count--;
                enter(f, live, outside);
            } else {
                RG_TRY(pull(f, err));
            }
        } else {
            /* Closed loops and split pools: a completion may be what comes next from outside. */
            double until = outside;
            if (scaling && f->next_scale_s < until)
                until = f->next_scale_s;
            if (f->count > 1)
                for (int i = 0; split && i < f->count; i++)
                    if (f->replicas[i] != r && rg_replica_next(f->replicas[i]) < until)
                        until = rg_replica_next(f->replicas[i]);
            f->now_s = step_s;
            rg_replica_step(r, until);
            if (r->draining)
                bury(f, step_s);
        }
        if (f->failed.status || (r && r->failed.status))
            RG_TRY(check_failed(f, r, err));
    }
}

static rg_status check(const rg_deployment *d, rg_err *err)
{
    const rg_engine_rules *rules = &d->rules;
    if (rules->max_sequences < 1 || rules->max_sequences > 1 << 20)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "'%lld' sequences at once; 1 to 1048576",
                       (long long)rules->max_sequences);
    if (rules->max_batched_tokens < 1)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "'%lld' tokens a step; 1 or more",
                       (long long)rules->max_batched_tokens);
    if (rules->asynchronous && rules->policy != RG_POLICY_VLLM1)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "asynchronous scheduling is known of vLLM v1 only, not of '%s'",
                       rg_policy_names[rules->policy]);
    if (rules->asynchronous && rules->speculation.drafts > 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "speculation is simulated with synchronous scheduling; switch one off");
    if (rules->speculation.drafts > 0 && rules->policy != RG_POLICY_VLLM1)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "speculation is simulated under the vllm policy only, not '%s'",
                       rg_policy_names[rules->policy]);
    if ((rules->rule.window > 0 || rules->rule.keep_ratio > 0) && rules->prefix_caching)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "a windowed or selective cache cannot share prefixes; switch prefix caching "
                       "off");
    if (rules->preempt == RG_PREEMPT_SWAP &&
        !(rules->host_bytes_per_s > 0 && rules->kv_bytes_per_token > 0))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "swapping needs the host link's rate and the KV bytes per token");
    if (d->prefill_replicas > 0 && !(d->transfer_bytes_per_s > 0))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "split pools need the rate at which KV is sent");
    if (d->prefill_replicas + d->replicas > MAX_REPLICAS || d->replicas < 1)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "'%lld' replicas; 1 to %d",
                       (long long)(d->prefill_replicas + d->replicas), MAX_REPLICAS);
    if (d->prefill_replicas > 0 &&
        (rules->policy != RG_POLICY_VLLM1 || d->prefill_rules.policy != RG_POLICY_VLLM1))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "split pools are simulated under the vllm policy only");
    return RG_OK;
}

static void close_books(rg_fleet *f)
{
    rg_serve_result *out = f->out;
    const rg_deployment *d = f->deployment;
    out->makespan_s = out->finished ? f->last_token_s - f->first_arrival_s : 0;
    double device_s = 0;
    for (int i = 0; i < f->count; i++) {
        const rg_replica *r = f->replicas[i];
        const double born = r->born_s > f->first_arrival_s ? r->born_s : f->first_arrival_s;
        const double died = r->dead ? r->died_s : f->last_token_s;
        const double lived = died > born ? died - born : 0;
        out->replica_s += lived;
        device_s += lived * (double)(i < f->first_decode ? d->devices_per_prefill_replica
                                                         : d->devices_per_replica);
        out->evicted_blocks += r->pool.evicted;
    }
    out->kv_blocks = f->replicas[f->count - 1]->pool.total;
    const double busy = out->replica_s > 0 ? out->busy_s / out->replica_s : 0;
    out->energy_j = d->busy_watts > 0
                        ? device_s * (d->idle_watts + (d->busy_watts - d->idle_watts) * busy)
                        : NAN;
    out->cost_usd = d->usd_per_device_hour > 0 ? device_s / 3600 * d->usd_per_device_hour : NAN;
}

rg_status rg_serve_run(rg_arena *arena, const rg_deployment *deployment, rg_requests *stream,
                       const rg_goals *goals, const rg_observer *observer, uint64_t seed,
                       rg_serve_result *out, rg_err *err)
{
    static const rg_goals no_goals = {0};
    RG_TRY(check(deployment, err));
    *out = (rg_serve_result){0};
    rg_sample *samples[] = {&out->ttft,       &out->queue,           &out->prefill,
                            &out->first_step, &out->tpot_excl_first, &out->tpot_incl_first,
                            &out->e2e};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        rg_sample_start(samples[i], arena, false);
    rg_sample_start(&out->gap, arena, true);
    rg_fleet *f = RG_NEW(arena, rg_fleet, 1, err);
    if (!f)
        return RG_ERR_LIMIT;
    *f = (rg_fleet){.arena = arena,
                    .deployment = deployment,
                    .stream = stream,
                    .goals = goals ? goals : &no_goals,
                    .observer = observer,
                    .out = out,
                    .seed = seed};
    const int64_t prefill = deployment->prefill_replicas;
    const int64_t most = deployment->autoscale.on ? MAX_REPLICAS : prefill + deployment->replicas;
    f->replicas = RG_NEW(arena, rg_replica *, most, err);
    f->link_free_s = RG_NEW(arena, double, prefill + 1, err);
    if (!f->replicas || !f->link_free_s)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < prefill + deployment->replicas; i++)
        RG_TRY(add_replica(f, i < prefill, 0, err));
    f->first_decode = (int)prefill;
    f->next_scale_s = deployment->autoscale.interval_s;
    out->most_replicas = deployment->replicas;
    RG_TRY(run(f, err));
    close_books(f);
    return RG_OK;
}

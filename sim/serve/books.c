/* serve/books.c: what is counted: latencies, goals, cache hits, energy and cost. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/fleet.h"

#include <math.h>
#include <string.h>

/* ---- steady state */

static void count_ended(rg_ended *x, const rg_request *q, double after_s)
{
    if (x->width_s == 0)
        x->width_s = 1e-3;
    while (after_s >= x->width_s * RG_ENDED_BINS) {
        struct rg_ended_bin *b = x->bins;
        for (int i = 0; i < RG_ENDED_BINS / 2; i++)
            b[i] = (struct rg_ended_bin){
                b[2 * i].requests + b[2 * i + 1].requests,
                b[2 * i].output_tokens + b[2 * i + 1].output_tokens,
                b[2 * i].prompt_tokens + b[2 * i + 1].prompt_tokens,
            };
        memset(b + RG_ENDED_BINS / 2, 0, sizeof *b * RG_ENDED_BINS / 2);
        x->width_s *= 2;
    }
    struct rg_ended_bin *bin = &x->bins[(int)(after_s / x->width_s)];
    bin->requests++;
    bin->output_tokens += q->output_tokens;
    bin->prompt_tokens += q->prompt_tokens;
}

/* The last bin at or before a time in which something ended; -1: none. */
static int ended_before(const rg_ended *x, double after_s)
{
    const double at = after_s / x->width_s;
    int i = at < RG_ENDED_BINS ? (int)at : RG_ENDED_BINS - 1;
    while (i >= 0 && x->bins[i].requests == 0)
        i--;
    return i;
}

/* From one end of requests to another, the first not counted, so that batches which end together
 * are counted over as much time as they take. */
static rg_steady steady_of(const rg_ended *x, double warm_s, double arrivals_s)
{
    rg_steady out = {0};
    if (!(warm_s > 0) || !(arrivals_s > 1.5 * warm_s))
        return out;
    const int from = ended_before(x, warm_s), to = ended_before(x, arrivals_s);
    if (from < 0 || to <= from)
        return out;
    int64_t requests = 0, output = 0, prompt = 0;
    for (int i = from + 1; i <= to; i++) {
        requests += x->bins[i].requests;
        output += x->bins[i].output_tokens;
        prompt += x->bins[i].prompt_tokens;
    }
    const double span = (to - from) * x->width_s;
    out.known = true;
    out.from_s = from * x->width_s;
    out.to_s = to * x->width_s;
    out.requests_per_s = (double)requests / span;
    out.output_tokens_per_s = (double)output / span;
    out.total_tokens_per_s = (double)(output + prompt) / span;
    return out;
}

/* ---- requests */

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
    count_ended(&f->ended, q, time_s - f->first_arrival_s);
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
    rg_fleet_drop_live(f, r, live);
}

void rg_fleet_refused(rg_fleet *f, rg_replica *r, rg_live *live)
{
    f->out->refused++;
    rg_requests_finished(f->stream, &live->request, r->now_s > f->now_s ? r->now_s : f->now_s);
    rg_fleet_drop_live(f, r, live);
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

void rg_fleet_close_books(rg_fleet *f)
{
    rg_serve_result *out = f->out;
    const rg_deployment *d = f->deployment;
    out->makespan_s = out->finished ? f->last_token_s - f->first_arrival_s : 0;
    out->replica_count = f->count;
    if (out->finished)
        out->steady = steady_of(&f->ended, 2 * (rg_sample_summarise(&out->e2e).p95 + f->deepest_s),
                                f->last_arrival_s - f->first_arrival_s);
    double device_s = 0, full_power_s = 0;
    for (int i = 0; i < f->count; i++) {
        const rg_replica *r = f->replicas[i];
        const double born = r->born_s > f->first_arrival_s ? r->born_s : f->first_arrival_s;
        const double died = r->dead ? r->died_s : f->last_token_s;
        const double lived = died > born ? died - born : 0;
        out->replica_s += lived;
        const double devices =
            (double)(i < f->first_decode ? d->devices_per_prefill_replica : d->devices_per_replica);
        device_s += lived * devices;
        full_power_s += r->full_power_s * devices;
        out->evicted_blocks += r->pool.evicted;
    }
    out->kv_blocks = f->replicas[f->count - 1]->pool.total;
    out->device_s = device_s;
    out->energy_j = d->busy_watts > 0
                        ? device_s * d->idle_watts + full_power_s * (d->busy_watts - d->idle_watts)
                        : NAN;
    out->cost_usd = d->usd_per_device_hour > 0 ? device_s / 3600 * d->usd_per_device_hour : NAN;
}

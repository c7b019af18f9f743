/* serve/pools.c: which replica a request goes to, and prefill and decode pools with KV between
 * them.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/fleet.h"

#include <math.h>
#include <string.h>

/* ---- routing */

bool rg_replica_serves(const rg_replica *r)
{
    return !r->dead && !r->draining;
}

static int64_t cached_tokens(rg_replica *r, const rg_live *live)
{
    rg_kv_seq seq;
    rg_kv_open(&r->pool, &seq, live->n + 1, live->segments, live->request.segment_count, 1);
    const int64_t hits = rg_kv_peek(&r->pool, &seq, live->n - 1);
    rg_kv_close(&r->pool, &seq);
    return hits * r->pool.block_tokens;
}

/* Thresholds of SGLang's router, its defaults: sgl-router/py_src/sglang_router/router_args.py. */
static const double cache_threshold_ratio = 0.3; /* of the prompt, found in a cache */
static const int64_t balance_abs_requests = 64;  /* between the busiest replica and the idlest */
static const double balance_rel_ratio = 1.5;     /* of the busiest over the idlest */

static int64_t pending(const rg_replica *r)
{
    return r->waiting.count + r->swapped.count + r->running_count;
}

static rg_replica *least_loaded(rg_fleet *f, int from, int to)
{
    rg_replica *best = NULL;
    for (int i = from; i < to; i++) {
        rg_replica *r = f->replicas[i];
        if (rg_replica_serves(r) && (!best || r->load_tokens < best->load_tokens))
            best = r;
    }
    return best;
}

static rg_replica *round_robin(rg_fleet *f, int from, int to, int64_t *turn)
{
    for (int tries = 0; tries < to - from; tries++) {
        rg_replica *r = f->replicas[from + (int)((*turn)++ % (to - from))];
        if (rg_replica_serves(r))
            return r;
    }
    return NULL;
}

/* The rule of SGLang's router (sgl-router/src/policies/cache_aware.rs, select_worker): the shortest
 * queue while pending requests are out of balance, else the longest match, if it is long enough.
 * It then takes the replica that holds least, in an approximate tree of its own; here the caches
 * themselves are asked, and the least loaded stands in for the emptiest. */
static rg_replica *longest_prefix(rg_fleet *f, const rg_live *live, int from, int to)
{
    rg_replica *idlest = NULL;
    int64_t busiest = 0;
    for (int i = from; i < to; i++) {
        rg_replica *r = f->replicas[i];
        if (!rg_replica_serves(r))
            continue;
        const int64_t has = pending(r);
        busiest = has > busiest ? has : busiest;
        if (!idlest || has < pending(idlest))
            idlest = r;
    }
    if (!idlest)
        return NULL;
    const int64_t least = pending(idlest);
    if (busiest - least > balance_abs_requests &&
        (double)busiest > balance_rel_ratio * (double)least) {
        f->out->balanced++;
        return idlest;
    }
    rg_replica *best = NULL;
    int64_t most = 0;
    for (int i = from; i < to; i++) {
        rg_replica *r = f->replicas[i];
        const int64_t cached = rg_replica_serves(r) ? cached_tokens(r, live) : -1;
        if (cached > most || (best && cached == most && r->load_tokens < best->load_tokens)) {
            best = r;
            most = cached;
        }
    }
    return (double)most > cache_threshold_ratio * (double)live->n ? best
                                                                  : least_loaded(f, from, to);
}

static rg_replica *route(rg_fleet *f, const rg_live *live, int from, int to, int64_t *turn)
{
    switch (f->deployment->router) {
    case RG_ROUTE_LEAST_LOADED:
        return least_loaded(f, from, to);
    case RG_ROUTE_PREFIX:
        return longest_prefix(f, live, from, to);
    case RG_ROUTE_SESSION:
        if (live->request.session >= 0) {
            uint64_t x = (uint64_t)live->request.session;
            rg_replica *r = f->replicas[from + (int)(rg_rng_splitmix(&x) % (uint64_t)(to - from))];
            if (rg_replica_serves(r))
                return r;
        }
        return least_loaded(f, from, to);
    case RG_ROUTE_ROUND_ROBIN:
        break;
    }
    return round_robin(f, from, to, turn);
}

rg_replica *rg_fleet_route(rg_fleet *f, const rg_live *live, int from, int to, int64_t *turn)
{
    rg_replica *r = route(f, live, from, to, turn);
    f->out->routed[r->number]++;
    return r;
}

/* ---- disaggregation */

static double kv_bytes(const rg_replica *r, int64_t tokens)
{
    return r->rules->kv_bytes_per_token * (double)rg_kv_resident(&r->rules->rule, tokens);
}

void rg_fleet_prefilled(rg_fleet *f, rg_replica *r, rg_live *live, double time_s)
{
    /* The blocks stay on the prefill side, under a stand-in, until the KV has been sent. */
    rg_live *holder = rg_fleet_new_live(f);
    if (!holder)
        return;
    holder->kv = live->kv;
    holder->c = live->c;
    holder->n = live->n;
    holder->source = r->number;
    holder->ready_s = INFINITY;
    r->sending++;
    r->full = false;
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
    rg_replica *to = rg_fleet_route(f, live, f->first_decode, f->count, &f->turn);
    rg_fleet_open_sequence(f, to, live);
    rg_replica_arrive(to, live, time_s);
}

bool rg_replica_receive(rg_replica *r, rg_live *live)
{
    const double now = r->now_s;
    if (!live->arrived) {
        if (live->kv.held == 0 && !rg_replica_hold(r, live, live->n, 0))
            return false;
        if (live->ready_s < 0)
            live->ready_s = rg_fleet_send(r->fleet, r, live, now);
        live->arrived = live->ready_s <= now;
        if (!live->arrived) {
            if (live->ready_s < r->wake_s)
                r->wake_s = live->ready_s;
            return false;
        }
    }
    r->held_tokens += live->n - live->c;
    live->c = live->n;
    live->peak = live->c;
    return true;
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

double rg_fleet_next_sent(const rg_fleet *f)
{
    double next = INFINITY;
    for (const rg_live *h = f->sending; h; h = h->link)
        next = h->ready_s < next ? h->ready_s : next;
    return next;
}

void rg_fleet_free_sent(rg_fleet *f, double time_s)
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
        r->full = false;
        if (r->in_flight == 0 && r->waiting.count > 0 && time_s < r->boundary_s)
            r->boundary_s = time_s;
        rg_fleet_drop_live(f, r, h);
    }
}

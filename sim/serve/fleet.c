/* serve/fleet.c: many replicas behind a router; prefill and decode pools; replicas that come and
 * go; what is counted.
 *
 * Time goes from one happening to the next: an arrival, the end of a step, KV that has arrived, a
 * decision to scale. Replicas that share nothing may run ahead to the next happening outside.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/fleet.h"

#include <math.h>

enum { MAX_REPLICAS = 4096 };

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
        if (!rg_replica_serves(r))
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

static void enter(rg_fleet *f, rg_live *live, double time_s)
{
    const bool split = f->first_decode > 0;
    rg_replica *r = split ? rg_fleet_route(f, live, 0, f->first_decode, &f->prefill_turn)
                          : rg_fleet_route(f, live, 0, f->count, &f->turn);
    rg_fleet_open_sequence(f, r, live);
    if (split)
        live->o = 1; /* the first token comes from the prefill side */
    rg_replica_arrive(r, live, time_s);
}

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
    if (request.session < 0 || request.turn == 0)
        f->last_arrival_s = request.arrival_s;
    if (request.turn > f->deepest_turn) {
        f->deepest_turn = request.turn;
        f->deepest_s = request.arrival_s - f->first_arrival_s;
    }
    rg_live *live = rg_fleet_make_live(f, &request);
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
        const double sent = split ? rg_fleet_next_sent(f) : (double)INFINITY;
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
                rg_fleet_free_sent(f, outside);
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

/* Schedulers whose engines speculate and split prefill from decode. */
static bool is_modern(rg_policy_kind policy)
{
    return policy == RG_POLICY_VLLM1 || policy == RG_POLICY_SGLANG ||
           policy == RG_POLICY_TRT_NO_EVICT || policy == RG_POLICY_TRT_MAX_UTILISATION;
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
    if (rules->speculation.drafts > 0 && !is_modern(rules->policy))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "speculation runs under vllm, sglang, trtllm and trtllm-max; '%s' as it is "
                       "simulated has none",
                       rg_policy_names[rules->policy]);
    if ((rules->rule.window > 0 || rules->rule.keep_ratio > 0) && rules->prefix_caching)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "a windowed or selective cache cannot share prefixes; switch prefix caching "
                       "off");
    if (rules->longest_prefix_first && rules->by_priority)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "requests are served by priority or by longest prefix; leave one out");
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
        (!is_modern(rules->policy) || !is_modern(d->prefill_rules.policy)))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "split pools run under vllm, sglang, trtllm and trtllm-max; '%s' as it is "
                       "simulated has none",
                       rg_policy_names[rules->policy]);
    if (d->prefill_replicas > 0 && rules->reservation != RG_RESERVE_PAGED)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "KV is sent to pages; split pools and contiguous memory do not go together");
    return RG_OK;
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
    out->routed = RG_NEW(arena, int64_t, most, err);
    if (!f->replicas || !f->link_free_s || !out->routed)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < prefill + deployment->replicas; i++)
        RG_TRY(add_replica(f, i < prefill, 0, err));
    f->first_decode = (int)prefill;
    f->next_scale_s = deployment->autoscale.interval_s;
    out->most_replicas = deployment->replicas;
    RG_TRY(run(f, err));
    rg_fleet_close_books(f);
    return RG_OK;
}

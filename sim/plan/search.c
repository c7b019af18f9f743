/* plan/search.c: search among candidates. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/search.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Candidates that are simulated side by side before the best so far is looked at again: fixed, so
 * that the number of threads changes nothing. */
enum { WAVE = 8, PILOTS = 64, MOST_CANDIDATES = 1000000, LAST_LOOK = 16 };

/* A request alone must break a limit by so much before more replicas are called useless: time of a
 * step need not fall with every sequence that leaves it. */
static const double alone_margin = 1.03;

static const char *const lost_names[] = {"",      "memory",  "ttft",  "tpot",      "e2e",
                                         "price", "devices", "power", "impossible"};

const char *rg_lost_name(rg_lost lost)
{
    return lost_names[lost];
}

static rg_lost lost_by_metric(rg_plan_metric metric)
{
    return metric == RG_PLAN_TTFT   ? RG_LOST_TTFT
           : metric == RG_PLAN_TPOT ? RG_LOST_TPOT
                                    : RG_LOST_E2E;
}

rg_status rg_plan_prepare(rg_arena *arena, const rg_plan *plan, const rg_changes *changes,
                          const rg_traffic_change *traffic, rg_plan_run *out, rg_err *err)
{
    static const rg_traffic_change none = {1, 1, 1};
    *out = (rg_plan_run){.plan = plan, .winner = -1, .nearest = -1};
    RG_TRY(rg_space_make(arena, plan, changes, &out->space, err));
    const rg_space *s = &out->space;
    if (s->candidate_count > MOST_CANDIDATES)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "%d combinations; at most %d are searched",
                       s->candidate_count, MOST_CANDIDATES);
    const int64_t longest = s->model->max_positions > 0 ? s->model->max_positions : 1 << 20;
    RG_TRY(rg_plan_requests_make(arena, plan, longest, traffic ? traffic : &none, &out->requests,
                                 err));
    out->worker_count = omp_get_max_threads();
    out->workers = RG_NEW(arena, rg_worker *, out->worker_count, err);
    out->outcomes = RG_NEW(arena, rg_outcome, s->candidate_count, err);
    out->order = RG_NEW(arena, int, s->candidate_count, err);
    if (!out->workers || !out->outcomes || !out->order)
        return RG_ERR_LIMIT;
    for (int i = 0; i < out->worker_count; i++)
        RG_TRY(rg_worker_new(s, &out->workers[i], err));
    return RG_OK;
}

void rg_plan_release(rg_plan_run *run)
{
    for (int i = 0; i < run->worker_count; i++)
        rg_worker_free(run->workers ? run->workers[i] : NULL);
    run->worker_count = 0;
}

rg_status rg_plan_screen(rg_arena *arena, rg_plan_run *run, rg_err *err)
{
    rg_least_works works = {0};
    for (int i = 0; i < run->space.candidate_count; i++) {
        const rg_candidate *c = &run->space.candidates[i];
        rg_outcome *o = &run->outcomes[i];
        const rg_least_work *work;
        *o = (rg_outcome){.state = c->fits ? RG_PLAN_PRUNED : RG_PLAN_UNFIT};
        run->screened++;
        if (!c->fits) {
            o->lost = RG_LOST_MEMORY;
            continue;
        }
        RG_TRY(rg_least_work_of(arena, &works, &run->space, c, &run->requests, &work, err));
        o->bound = rg_plan_bound_of(&run->space, c, work, &run->requests);
        o->replicas = o->bound.replicas;
    }
    return RG_OK;
}

/* ---- one candidate */

typedef struct hunt {
    const rg_plan_run *run;
    rg_worker *worker;
    const rg_candidate *candidate;
    rg_outcome *out;
    double best;      /* goal of the best so far, INFINITY in an exhaustive search */
    int64_t most;     /* replicas that caps allow */
    int64_t fails_at; /* greatest count known to fail */
    int64_t works_at; /* least count known to work, 0: none */
} hunt;

static const rg_trial_how as_it_is = {.speed_up = 1}, alone = {.one_by_one = true, .speed_up = 1};

static rg_status try_count(hunt *h, int64_t replicas, rg_err *err)
{
    rg_trial t;
    rg_outcome *o = h->out;
    RG_TRY(rg_trial_run(h->worker, h->candidate, &h->run->requests, replicas, &as_it_is, &t, err));
    o->trials++;
    if (t.ok) {
        h->works_at = replicas;
        o->at = t;
        o->simulated = true;
        return RG_OK;
    }
    h->fails_at = replicas;
    o->below = t;
    o->has_below = true;
    if (h->works_at == 0 && (!o->simulated || t.excess < o->at.excess)) {
        o->at = t;
        o->simulated = true;
    }
    return RG_OK;
}

/* The least count that is still possible costs more than another candidate does. */
static bool too_dear(const hunt *h)
{
    return rg_candidate_goal(h->candidate, h->fails_at + 1) > h->best;
}

static rg_status fail_for_ever(hunt *h, bool *out, rg_err *err)
{
    rg_trial t;
    RG_TRY(rg_trial_run(h->worker, h->candidate, &h->run->requests,
                        h->candidate->pools.prefill > 0 ? 2 : 1, &alone, &t, err));
    h->out->trials++;
    *out = t.excess > alone_margin || t.refused > 0;
    if (*out) {
        h->out->at = t;
        h->out->unattainable = true;
    }
    return RG_OK;
}

/* Up from the guess, in growing steps, until some count works. */
static rg_status go_up(hunt *h, int64_t start, rg_err *err)
{
    int64_t at = start, step = 1;
    for (int failures = 0; h->works_at == 0;) {
        RG_TRY(try_count(h, at, err));
        if (h->works_at > 0)
            break;
        h->out->state = RG_PLAN_PRUNED;
        if (too_dear(h))
            return RG_OK;
        h->out->state = RG_PLAN_FAILED;
        bool never = h->out->at.refused > 0;
        const bool last = h->fails_at >= h->most;
        failures++;
        if (!never && (failures == 2 || (last && failures < 2)))
            RG_TRY(fail_for_ever(h, &never, err));
        if (never || last)
            return RG_OK;
        at = h->fails_at + step < h->most ? h->fails_at + step : h->most;
        step *= 2;
    }
    return RG_OK;
}

/* Down from a count that works, in growing steps, then by halves. */
static rg_status go_down(hunt *h, rg_err *err)
{
    bool galloping = true;
    int64_t step = 1;
    while (h->works_at - h->fails_at > 1) {
        int64_t at = h->fails_at + (h->works_at - h->fails_at) / 2;
        if (galloping && h->works_at - step > at)
            at = h->works_at - step;
        const int64_t before = h->works_at;
        RG_TRY(try_count(h, at, err));
        galloping &= h->works_at < before;
        step *= 2;
        if (h->works_at == before && too_dear(h)) {
            h->out->state = RG_PLAN_PRUNED;
            return RG_OK;
        }
    }
    h->out->state = RG_PLAN_FOUND;
    return RG_OK;
}

static rg_status settle(hunt *h, rg_err *err)
{
    rg_outcome *o = h->out;
    const int64_t least = o->bound.replicas;
    int64_t start;
    h->most = rg_candidate_most(&h->run->space, h->candidate, &o->by_power);
    h->fails_at = least - 1;
    if (least > h->most) {
        o->state = RG_PLAN_FAILED;
        o->replicas = least;
        return RG_OK;
    }
    RG_TRY(rg_trial_guess(h->worker, h->candidate, &h->run->requests, &start, err));
    start = start < least ? least : start > h->most ? h->most : start;
    if (h->run->space.candidate_count > RG_PLAN_FEW) { /* see search.h */
        const double can_win = floor(h->best / h->candidate->goal_each);
        if (can_win < (double)start)
            start = can_win < (double)least ? least : (int64_t)can_win;
    }
    RG_TRY(go_up(h, start, err));
    if (h->works_at > 0)
        RG_TRY(go_down(h, err));
    o->replicas = o->state == RG_PLAN_FOUND ? h->works_at : h->fails_at + 1;
    return RG_OK;
}

/* ---- all of them */

typedef struct ranked {
    double goal;
    int index;
} ranked;

static int by_goal(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->goal != y->goal)
        return x->goal < y->goal ? -1 : 1;
    return x->index - y->index;
}

typedef struct wave {
    rg_plan_run *run;
    int items[WAVE];
    int count;
    double best;
    rg_status status[WAVE];
    rg_err err[WAVE];
} wave;

static void check_premise(const rg_plan_run *run, const rg_candidate *c, const rg_outcome *o,
                          const rg_least_work *work, bool *broken)
{
    if (o->simulated && o->at.refused == 0 && !o->unattainable)
        *broken = !rg_plan_bound_kept(&run->space, c, work, &run->requests, o->at.busy_s);
}

static void do_wave(wave *w)
{
    rg_plan_run *run = w->run;
#pragma omp parallel for schedule(dynamic, 1) num_threads(run->worker_count)
    for (int i = 0; i < w->count; i++) {
        hunt h = {.run = run,
                  .worker = run->workers[omp_get_thread_num()],
                  .candidate = &run->space.candidates[w->items[i]],
                  .out = &run->outcomes[w->items[i]],
                  .best = w->best};
        w->err[i] = (rg_err){0};
        w->status[i] = settle(&h, &w->err[i]);
    }
}

/* The less costly; among equals the one with more room below its limits, then the earlier. */
static bool better(const rg_plan_run *run, int a, int b)
{
    if (b < 0)
        return true;
    const rg_outcome *x = &run->outcomes[a], *y = &run->outcomes[b];
    const double p = rg_candidate_goal(&run->space.candidates[a], x->replicas),
                 q = rg_candidate_goal(&run->space.candidates[b], y->replicas);
    if (fabs(p - q) > 1e-9 * q)
        return p < q;
    if (x->at.excess != y->at.excess)
        return x->at.excess < y->at.excess;
    return a < b;
}

/* The machine lacks a figure or a link that the candidate needs. */
static void cannot_be(rg_plan_run *run, int candidate, const rg_err *why)
{
    rg_outcome *o = &run->outcomes[candidate];
    const rg_candidate *c = &run->space.candidates[candidate];
    rg_machine *m = &run->space.machines[run->space.arrangements[c->arrangement].machine];
    memcpy(m->lacks, why->text, sizeof m->lacks);
    o->state = RG_PLAN_FAILED;
    o->simulated = false;
    o->impossible = true;
}

static rg_status finish_wave(rg_arena *arena, wave *w, rg_least_works *works, rg_err *err)
{
    rg_plan_run *run = w->run;
    for (int i = 0; i < w->count; i++) {
        rg_outcome *o = &run->outcomes[w->items[i]];
        const rg_candidate *c = &run->space.candidates[w->items[i]];
        if (w->status[i] != RG_OK && w->status[i] != RG_ERR_MODEL) {
            if (err)
                *err = w->err[i];
            return w->status[i];
        }
        if (w->status[i] == RG_ERR_MODEL)
            cannot_be(run, w->items[i], &w->err[i]);
        const rg_least_work *work;
        RG_TRY(rg_least_work_of(arena, works, &run->space, c, &run->requests, &work, err));
        bool broken = false;
        check_premise(run, c, o, work, &broken);
        run->premise_broken |= broken;
        run->trials += o->trials;
        if (o->state == RG_PLAN_FOUND && better(run, w->items[i], run->winner))
            run->winner = w->items[i];
    }
    return RG_OK;
}

static double goal_of_winner(const rg_plan_run *run)
{
    return run->winner < 0 ? INFINITY
                           : rg_candidate_goal(&run->space.candidates[run->winner],
                                               run->outcomes[run->winner].replicas) *
                                 (1 + 1e-9);
}

static rg_status hunt_all(rg_arena *arena, rg_plan_run *run, const ranked *list, int count,
                          bool exhaustive, rg_err *err)
{
    rg_least_works works = {0};
    for (int next = 0; next < count;) {
        wave w = {.run = run, .best = exhaustive ? INFINITY : goal_of_winner(run)};
        const int size = next == 0 ? 1 : WAVE;
        while (w.count < size && next < count && list[next].goal <= w.best)
            w.items[w.count++] = list[next++].index;
        if (w.count == 0)
            return RG_OK; /* the bound of every other one is above the best */
        do_wave(&w);
        RG_TRY(finish_wave(arena, &w, &works, err));
    }
    return RG_OK;
}

/* One candidate is settled before all others, so that there is a best to hold them against: of
 * those with the least bounds, the one that averages make out to cost least. Moved to the front. */
static rg_status put_pilot_first(rg_arena *arena, rg_plan_run *run, ranked *list, int count,
                                 rg_err *err)
{
    const int looked = count < PILOTS ? count : PILOTS;
    int64_t *guess = RG_NEW(arena, int64_t, looked, err);
    int best = 0;
    double least = INFINITY;
    if (!guess)
        return RG_ERR_LIMIT;
#pragma omp parallel for schedule(dynamic, 1) num_threads(run->worker_count)
    for (int i = 0; i < looked; i++)
        if (rg_trial_guess(run->workers[omp_get_thread_num()],
                           &run->space.candidates[list[i].index], &run->requests, &guess[i],
                           NULL) != RG_OK)
            guess[i] = 0;
    for (int i = 0; i < looked; i++) {
        const int64_t least_count = run->outcomes[list[i].index].bound.replicas;
        const int64_t replicas = guess[i] > least_count ? guess[i] : least_count;
        const double goal = rg_candidate_goal(&run->space.candidates[list[i].index], replicas);
        if (guess[i] > 0 && goal < least) {
            least = goal;
            best = i;
        }
    }
    const ranked pilot = list[best];
    memmove(list + 1, list, (size_t)best * sizeof *list);
    list[0] = pilot;
    return RG_OK;
}

/* ---- why the others lost */

static bool may_be_as_good(const rg_plan_run *run, int index)
{
    const rg_outcome *o = &run->outcomes[index], *best = &run->outcomes[run->winner];
    const rg_candidate *c = &run->space.candidates[index],
                       *winner = &run->space.candidates[run->winner];
    if (o->state != RG_PLAN_FOUND)
        return false;
    const int64_t low = o->has_below && !o->below.sure ? o->below.replicas : o->replicas;
    const int64_t high = best->at.sure ? best->replicas : best->replicas + 1;
    return rg_candidate_goal(c, low) <= rg_candidate_goal(winner, high) * (1 + 1e-9);
}

static void explain(rg_plan_run *run, int index)
{
    rg_outcome *o = &run->outcomes[index];
    const rg_candidate *c = &run->space.candidates[index];
    const rg_plan *plan = run->plan;
    if (o->state == RG_PLAN_UNFIT || (o->simulated && o->at.refused > 0)) {
        o->lost = RG_LOST_MEMORY;
        const double needed = c->capacity.weight_bytes + c->capacity.activation_bytes +
                              c->capacity.graph_bytes + c->capacity.context_bytes;
        o->by = c->capacity.usable_bytes > 0 ? needed / c->capacity.usable_bytes - 1 : 0;
        return;
    }
    if (o->state == RG_PLAN_FAILED) {
        o->lost = o->impossible     ? RG_LOST_IMPOSSIBLE
                  : o->unattainable ? lost_by_metric(plan->limits[o->at.worst].metric)
                  : o->by_power     ? RG_LOST_POWER
                                    : RG_LOST_DEVICES;
        o->by = o->simulated ? o->at.excess - 1 : 0;
        return;
    }
    const double goal = rg_candidate_goal(c, o->replicas);
    o->lost = RG_LOST_PRICE;
    o->by = goal / (goal_of_winner(run) / (1 + 1e-9)) - 1;
    if (fabs(o->by) < 1e-9) { /* equal cost, less room */
        o->by = o->simulated ? o->at.excess / run->outcomes[run->winner].at.excess - 1 : 0;
        if (o->simulated)
            o->lost = lost_by_metric(plan->limits[o->at.worst].metric);
    }
    o->tie = may_be_as_good(run, index);
}

typedef struct place {
    int rank, index;
    double value;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank - y->rank;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->index - y->index;
}

static rg_status put_in_order(rg_arena *arena, rg_plan_run *run, rg_err *err)
{
    static const int ranks[] = {3, 2, 1, 0}; /* unfit, pruned, failed, found */
    const int count = run->space.candidate_count;
    place *places = RG_NEW(arena, place, count, err);
    if (!places)
        return RG_ERR_LIMIT;
    for (int i = 0; i < count; i++) {
        const rg_outcome *o = &run->outcomes[i];
        const rg_candidate *c = &run->space.candidates[i];
        places[i] = (place){ranks[o->state], i, rg_candidate_goal(c, o->replicas)};
        if (o->state == RG_PLAN_FAILED)
            places[i].value = o->simulated ? o->at.excess : 1e300;
        else if (o->state == RG_PLAN_UNFIT)
            places[i].value = c->capacity.weight_bytes;
        if (i == run->winner)
            places[i].rank = -1;
        else if (run->winner >= 0 || o->state != RG_PLAN_PRUNED)
            explain(run, i);
    }
    qsort(places, (size_t)count, sizeof *places, by_place);
    for (int i = 0; i < count; i++)
        run->order[i] = places[i].index;
    return RG_OK;
}

/* Nothing keeps the limits: those that were ruled out unseen are tried with all that is allowed, as
 * someone wants to know how near one can come. */
static rg_status look_for_nearest(rg_plan_run *run, const ranked *list, int count, rg_err *err)
{
    int looked = 0;
    for (int k = 0; k < count; k++) {
        const int i = list[k].index;
        rg_outcome *o = &run->outcomes[i];
        bool by_power;
        const rg_candidate *c = &run->space.candidates[i];
        const int64_t most = rg_candidate_most(&run->space, c, &by_power);
        if (!o->simulated && !o->impossible && looked < LAST_LOOK &&
            most >= (c->pools.prefill > 0 ? 2 : 1)) {
            looked++;
            if (rg_trial_run(run->workers[0], c, &run->requests, most, &as_it_is, &o->at, err) !=
                RG_OK)
                continue;
            o->simulated = true;
            run->trials++;
        }
        if (o->simulated && o->at.refused == 0 &&
            (run->nearest < 0 || o->at.excess < run->outcomes[run->nearest].at.excess))
            run->nearest = i;
    }
    return RG_OK;
}

rg_status rg_plan_search_among(rg_arena *arena, rg_plan_run *run, const int *candidates, int count,
                               rg_err *err)
{
    ranked *list = RG_NEW(arena, ranked, count, err);
    int kept = 0;
    if (!list)
        return RG_ERR_LIMIT;
    run->winner = run->nearest = -1;
    for (int i = 0; i < count; i++) {
        const int index = candidates ? candidates[i] : i;
        const rg_outcome *o = &run->outcomes[index];
        if (o->state == RG_PLAN_UNFIT)
            continue;
        const double goal = rg_candidate_goal(&run->space.candidates[index], o->bound.replicas);
        list[kept++] = (ranked){goal, index};
    }
    qsort(list, (size_t)kept, sizeof *list, by_goal);
    if (kept > 0)
        RG_TRY(put_pilot_first(arena, run, list, kept, err));
    RG_TRY(hunt_all(arena, run, list, kept, run->plan->exhaustive, err));
    if (run->premise_broken && !run->plan->exhaustive) {
        run->winner = -1;
        for (int i = 0; i < kept; i++) {
            rg_outcome *o = &run->outcomes[list[i].index];
            *o = (rg_outcome){.state = RG_PLAN_PRUNED, .bound = {1, RG_LEAST_ONE}, .replicas = 1};
        }
        RG_TRY(hunt_all(arena, run, list, kept, true, err));
    }
    return run->winner < 0 ? look_for_nearest(run, list, kept, err) : RG_OK;
}

static int machine_of(const rg_plan_run *run, int candidate)
{
    return run->space.arrangements[run->space.candidates[candidate].arrangement].machine;
}

/* Of a machine's candidates that were ruled out, the one that averages make out to cost least; -1
 * when one of them was settled, or none is left. */
static rg_status best_ruled_out(rg_plan_run *run, int machine, int *out, rg_err *err)
{
    double least = INFINITY;
    int looked = 0;
    *out = -1;
    for (int i = 0; i < run->space.candidate_count; i++) {
        if (machine_of(run, i) == machine && run->outcomes[i].state == RG_PLAN_FOUND) {
            *out = -1;
            return RG_OK;
        }
        if (machine_of(run, i) != machine || run->outcomes[i].state != RG_PLAN_PRUNED ||
            looked == PILOTS)
            continue;
        int64_t replicas;
        const rg_candidate *c = &run->space.candidates[i];
        looked++;
        rg_err why = {0};
        const rg_status status =
            rg_trial_guess(run->workers[0], c, &run->requests, &replicas, &why);
        if (status == RG_ERR_MODEL) {
            cannot_be(run, i, &why);
            continue;
        }
        if (status != RG_OK) {
            if (err)
                *err = why;
            return status;
        }
        if (replicas < run->outcomes[i].replicas)
            replicas = run->outcomes[i].replicas;
        if (rg_candidate_goal(c, replicas) < least) {
            least = rg_candidate_goal(c, replicas);
            *out = i;
        }
    }
    return RG_OK;
}

/* People want to know what every machine on their list would cost, not only that it is more: one
 * candidate of each that lost is settled too. */
static rg_status settle_one_of_each(rg_arena *arena, rg_plan_run *run, rg_err *err)
{
    rg_least_works works = {0};
    wave w = {.run = run, .best = INFINITY};
    for (int m = 0; m < run->space.machine_count; m++) {
        int chosen;
        RG_TRY(best_ruled_out(run, m, &chosen, err));
        if (chosen >= 0) {
            run->trials -= run->outcomes[chosen].trials; /* counted again below */
            w.items[w.count++] = chosen;
        }
        if (w.count == WAVE || (m + 1 == run->space.machine_count && w.count > 0)) {
            do_wave(&w);
            RG_TRY(finish_wave(arena, &w, &works, err));
            w.count = 0;
        }
    }
    return RG_OK;
}

rg_status rg_plan_search(rg_arena *arena, rg_plan_run *run, rg_err *err)
{
    RG_TRY(rg_plan_screen(arena, run, err));
    RG_TRY(rg_plan_search_among(arena, run, NULL, run->space.candidate_count, err));
    if (run->winner >= 0)
        RG_TRY(settle_one_of_each(arena, run, err));
    return put_in_order(arena, run, err);
}

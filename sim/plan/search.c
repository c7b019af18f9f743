/* plan/search.c: search among candidates. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/search.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "plan/hunt.h"
#include "plan/verdict.h"
#include "plan/verify.h"

/* Candidates that are simulated side by side before the best so far is looked at again: fixed, so
 * that the number of threads changes nothing. */
enum { WAVE = 8, PILOTS = 64, MOST_CANDIDATES = 1000000 };

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
    out->arena = arena;
    out->change = traffic ? *traffic : none;
    out->longest_tokens = longest;
    RG_TRY(rg_plan_requests_make(arena, plan, longest, &out->change, 0, &out->requests, err));
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

void rg_plan_show_progress(rg_plan_run *run, int64_t settled)
{
    run->settled = settled;
    if (run->progress)
        run->progress(run->progress_context, run);
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
        rg_works_of work;
        *o = (rg_outcome){.state = c->fits ? RG_PLAN_PRUNED : RG_PLAN_UNFIT};
        run->screened++;
        if (!c->fits) {
            o->lost = RG_LOST_MEMORY;
            continue;
        }
        RG_TRY(rg_least_work_of(arena, &works, &run->space, c, &run->requests, &work, err));
        o->bound = rg_plan_bound_of(&run->space, c, &work, &run->requests);
        o->replicas = o->bound.replicas;
    }
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
                          const rg_works_of *work, bool *broken)
{
    if (o->simulated && o->at.refused == 0 && !o->unattainable)
        *broken = !rg_plan_bound_kept(&run->space, c, work, &run->requests, o->at.busy_s);
}

static void do_wave(wave *w)
{
    rg_plan_run *run = w->run;
#pragma omp parallel for schedule(dynamic, 1) num_threads(run->worker_count)
    for (int i = 0; i < w->count; i++) {
        rg_hunt h = {.run = run,
                     .worker = run->workers[omp_get_thread_num()],
                     .candidate = &run->space.candidates[w->items[i]],
                     .out = &run->outcomes[w->items[i]],
                     .best = w->best,
                     .wide = run->space.candidate_count > run->plan->few};
        w->err[i] = (rg_err){0};
        w->status[i] = rg_hunt_settle(&h, &w->err[i]);
    }
}

bool rg_plan_better(const rg_plan_run *run, int a, int b)
{
    if (b < 0)
        return true;
    const rg_outcome *x = &run->outcomes[a], *y = &run->outcomes[b];
    const double p = rg_candidate_goal(&run->space, &run->space.candidates[a], x->replicas),
                 q = rg_candidate_goal(&run->space, &run->space.candidates[b], y->replicas);
    if (fabs(p - q) > 1e-9 * q)
        return p < q;
    if (x->at.excess != y->at.excess)
        return x->at.excess < y->at.excess;
    return a < b;
}

void rg_plan_cannot_be(rg_plan_run *run, int candidate, const rg_err *why)
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
            rg_plan_cannot_be(run, w->items[i], &w->err[i]);
        rg_works_of work;
        RG_TRY(rg_least_work_of(arena, works, &run->space, c, &run->requests, &work, err));
        bool broken = false;
        check_premise(run, c, o, &work, &broken);
        run->premise_broken |= broken;
        run->trials += o->trials;
        if (o->state == RG_PLAN_FOUND && rg_plan_better(run, w->items[i], run->winner))
            run->winner = w->items[i];
    }
    return RG_OK;
}

double rg_plan_goal_of_winner(const rg_plan_run *run)
{
    return run->winner < 0 ? INFINITY
                           : rg_candidate_goal(&run->space, &run->space.candidates[run->winner],
                                               run->outcomes[run->winner].replicas);
}

static rg_status hunt_all(rg_arena *arena, rg_plan_run *run, const ranked *list, int count,
                          bool exhaustive, rg_err *err)
{
    rg_least_works works = {0};
    for (int next = 0; next < count;) {
        wave w = {.run = run,
                  .best = exhaustive ? INFINITY : rg_plan_goal_of_winner(run) * (1 + 1e-9)};
        const int size = next == 0 ? 1 : WAVE;
        while (w.count < size && next < count && list[next].goal <= w.best)
            w.items[w.count++] = list[next++].index;
        if (w.count == 0)
            return RG_OK; /* the bound of every other one is above the best */
        do_wave(&w);
        RG_TRY(finish_wave(arena, &w, &works, err));
        rg_plan_show_progress(run, next);
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
        const double goal =
            rg_candidate_goal(&run->space, &run->space.candidates[list[i].index], replicas);
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
        const double goal =
            rg_candidate_goal(&run->space, &run->space.candidates[index], o->bound.replicas);
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
    int *in_order = RG_NEW(arena, int, kept, err);
    if (!in_order)
        return RG_ERR_LIMIT;
    for (int i = 0; i < kept; i++)
        in_order[i] = list[i].index;
    RG_TRY(rg_plan_verify(run, in_order, kept, err));
    if (run->winner >= 0)
        return RG_OK;
    return rg_plan_look_for_nearest(run, in_order, kept, err);
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
            rg_plan_cannot_be(run, i, &why);
            continue;
        }
        if (status != RG_OK) {
            if (err)
                *err = why;
            return status;
        }
        if (replicas < run->outcomes[i].replicas)
            replicas = run->outcomes[i].replicas;
        if (rg_candidate_goal(&run->space, c, replicas) < least) {
            least = rg_candidate_goal(&run->space, c, replicas);
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
    return rg_plan_put_in_order(arena, run, err);
}

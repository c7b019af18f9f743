/* plan/offline.c: the search for the cheapest throughput. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/offline.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "plan/verdict.h"

/* Simulated side by side before the best so far is looked at again: fixed, so that the number of
 * threads changes nothing. */
enum { WAVE = 8 };

typedef struct ranked {
    double least; /* goal x time that is proved to be needed */
    int index;
} ranked;

static int by_least(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->least != y->least)
        return x->least < y->least ? -1 : 1;
    return x->index - y->index;
}

static int64_t fleet_of(const rg_candidate *c)
{
    return c->pools.prefill > 0 ? c->pools.prefill + c->pools.decode : 1;
}

static int machine_of(const rg_plan_run *run, int i)
{
    return run->space.arrangements[run->space.candidates[i].arrangement].machine;
}

/* Bounds of all that fit; what does not is settled here. */
static rg_status screen(rg_arena *arena, rg_plan_run *run, ranked *list, int *count, rg_err *err)
{
    rg_least_works works = {0};
    for (int i = 0; i < run->space.candidate_count; i++) {
        const rg_candidate *c = &run->space.candidates[i];
        rg_outcome *o = &run->outcomes[i];
        rg_works_of work;
        *o = (rg_outcome){.state = c->fits ? RG_PLAN_PRUNED : RG_PLAN_UNFIT,
                          .replicas = fleet_of(c)};
        run->screened++;
        if (!c->fits)
            continue;
        RG_TRY(rg_least_work_of(arena, &works, &run->space, c, &run->requests, &work, err));
        o->cost = rg_candidate_goal(&run->space, c, o->replicas) *
                  rg_least_makespan(&run->space, c, &work, &run->requests, o->replicas);
        list[(*count)++] = (ranked){o->cost, i};
    }
    qsort(list, (size_t)*count, sizeof *list, by_least);
    return RG_OK;
}

static void settle(rg_plan_run *run, int i, rg_status status, const rg_err *why, double *best)
{
    rg_outcome *o = &run->outcomes[i];
    run->trials++;
    if (status == RG_ERR_MODEL) {
        rg_plan_cannot_be(run, i, why);
        return;
    }
    o->simulated = true;
    o->trials = 1;
    o->state = o->at.ok ? RG_PLAN_FOUND : RG_PLAN_FAILED;
    o->cost =
        rg_candidate_goal(&run->space, &run->space.candidates[i], o->replicas) * o->at.makespan_s;
    if (!o->at.ok) /* more replicas do not make one of them faster */
        o->unattainable = true;
    else if (o->cost < best[machine_of(run, i)])
        best[machine_of(run, i)] = o->cost;
}

static rg_status run_wave(rg_plan_run *run, const int *items, int count, double *best, rg_err *err)
{
    rg_status status[WAVE];
    rg_err why[WAVE];
    const rg_trial_how how = {.speed_up = 1};
#pragma omp parallel for schedule(dynamic, 1) num_threads(run->worker_count)
    for (int k = 0; k < count; k++) {
        rg_outcome *o = &run->outcomes[items[k]];
        why[k] = (rg_err){0};
        status[k] =
            rg_trial_run(run->workers[omp_get_thread_num()], &run->space.candidates[items[k]],
                         &run->requests, o->replicas, &how, &o->at, &why[k]);
    }
    for (int k = 0; k < count; k++) {
        if (status[k] != RG_OK && status[k] != RG_ERR_MODEL) {
            if (err)
                *err = why[k];
            return status[k];
        }
        settle(run, items[k], status[k], &why[k], best);
    }
    return RG_OK;
}

static void choose(rg_plan_run *run)
{
    for (int i = 0; i < run->space.candidate_count; i++) {
        const rg_outcome *o = &run->outcomes[i];
        if (o->state == RG_PLAN_FOUND &&
            (run->winner < 0 || o->cost < run->outcomes[run->winner].cost))
            run->winner = i;
        if (o->state == RG_PLAN_FAILED && o->simulated && o->at.refused == 0 &&
            (run->nearest < 0 || o->at.excess < run->outcomes[run->nearest].at.excess))
            run->nearest = i;
    }
}

rg_status rg_plan_offline_search(rg_arena *arena, rg_plan_run *run, rg_err *err)
{
    int count = 0;
    ranked *list = RG_NEW(arena, ranked, run->space.candidate_count, err);
    double *best = RG_NEW(arena, double, run->space.machine_count, err);
    if (!list || !best)
        return RG_ERR_LIMIT;
    RG_TRY(screen(arena, run, list, &count, err));
    for (int m = 0; m < run->space.machine_count; m++)
        best[m] = INFINITY;
    for (int next = 0; next < count;) {
        int items[WAVE], taken = 0;
        while (taken < WAVE && next < count) {
            const ranked *x = &list[next++];
            if (run->plan->exhaustive || x->least <= best[machine_of(run, x->index)])
                items[taken++] = x->index;
        }
        RG_TRY(run_wave(run, items, taken, best, err));
        rg_plan_show_progress(run, next);
    }
    choose(run);
    return rg_plan_put_in_order(arena, run, err);
}

rg_status rg_plan_offline_of(rg_arena *arena, const rg_plan_run *run, int i, rg_offline *out,
                             rg_err *err)
{
    const rg_candidate *c = &run->space.candidates[i];
    const rg_trial *t = &run->outcomes[i].at;
    const rg_usage u = rg_candidate_usage(&run->space, c, t->replicas);
    rg_least_works works = {0};
    rg_works_of work;
    RG_TRY(rg_least_work_of(arena, &works, &run->space, c, &run->requests, &work, err));
    const double seconds = t->makespan_s;
    *out = (rg_offline){
        .output_tokens_per_s = (double)t->output_tokens / seconds,
        .total_tokens_per_s = (double)(t->output_tokens + t->prompt_tokens) / seconds,
        .requests_per_s = (double)run->requests.count / seconds,
        .devices = (double)u.devices,
        .goal_per_token = u.goal * seconds / (double)t->output_tokens,
        .bound_ratio =
            rg_least_makespan(&run->space, c, &work, &run->requests, t->replicas) / seconds};
    return RG_OK;
}

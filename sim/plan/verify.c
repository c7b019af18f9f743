/* plan/verify.c: answers on other draws of the traffic. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/verify.h"

#include <math.h>
#include <omp.h>

#include "plan/hunt.h"
#include "plan/judge.h"

/* Runs until the first verdict, and more by; when so few break a limit by so much, it is broken. */
enum { FIRST_LOOK = 2, STEP = 4 };
static const double far_beyond = 1.2;

static rg_status have_draws(rg_plan_run *run, int count, rg_err *err)
{
    for (; run->draw_count < count; run->draw_count++)
        RG_TRY(rg_plan_requests_make(run->arena, run->plan, run->longest_tokens, &run->change,
                                     run->draw_count + 1, &run->draws[run->draw_count], err));
    return RG_OK;
}

static rg_status run_some(rg_plan_run *run, const rg_candidate *c, int64_t replicas,
                          double speed_up, int from, int to, rg_trial *runs, rg_err *err)
{
    rg_err errors[RG_PLAN_DRAWS] = {0};
    rg_status status[RG_PLAN_DRAWS];
    const rg_trial_how how = {.speed_up = speed_up};
    RG_TRY(have_draws(run, to, err));
#pragma omp parallel for schedule(dynamic, 1) num_threads(run->worker_count)
    for (int k = from; k < to; k++)
        status[k] = rg_trial_run(run->workers[omp_get_thread_num()], c, &run->draws[k], replicas,
                                 &how, &runs[k], &errors[k]);
    for (int k = from; k < to; k++)
        if (status[k] != RG_OK) {
            if (err)
                *err = errors[k];
            return status[k];
        }
    run->trials += to - from;
    rg_plan_show_progress(run, run->settled);
    return RG_OK;
}

rg_status rg_plan_verify_fleet(rg_plan_run *run, const rg_candidate *c, int64_t replicas,
                               double speed_up, rg_trial *out, rg_err *err)
{
    rg_trial runs[RG_PLAN_DRAWS];
    RG_TRY(run_some(run, c, replicas, speed_up, 0, FIRST_LOOK, runs, err));
    int count = FIRST_LOOK;
    bool far = true;
    for (int k = 0; k < count; k++)
        far &= runs[k].refused > 0 || runs[k].excess > far_beyond;
    while (!far && count < RG_PLAN_DRAWS) {
        const int more = count < STEP ? STEP : count + STEP;
        RG_TRY(run_some(run, c, replicas, speed_up, count, more, runs, err));
        count = more;
        rg_judge_runs(run->plan, runs, count, out);
        if (out->sure)
            return RG_OK;
    }
    rg_judge_runs(run->plan, runs, count, out);
    return RG_OK;
}

/* The cheapest that was not verified and may still win; -1: none. */
static int next_of(const rg_plan_run *run, const int *list, int count)
{
    const double best = rg_plan_goal_of_winner(run) * (1 + 1e-9);
    double least = INFINITY;
    int next = -1;
    for (int k = 0; k < count; k++) {
        const rg_outcome *o = &run->outcomes[list[k]];
        if (o->verified || (o->state != RG_PLAN_FOUND && o->state != RG_PLAN_PRUNED))
            continue;
        const double goal =
            rg_candidate_goal(&run->space, &run->space.candidates[list[k]], o->replicas);
        if (goal <= best && goal < least) {
            least = goal;
            next = list[k];
        }
    }
    return next;
}

rg_status rg_plan_verify(rg_plan_run *run, const int *list, int count, rg_err *err)
{
    if (run->winner < 0 || !rg_plan_can_verify(run))
        return RG_OK;
    run->winner = -1;
    for (int i; (i = next_of(run, list, count)) >= 0;) {
        rg_outcome *o = &run->outcomes[i];
        rg_err why = {0};
        const int trials = o->trials;
        rg_hunt h = {.run = run,
                     .worker = run->workers[0],
                     .candidate = &run->space.candidates[i],
                     .out = o,
                     .best = rg_plan_goal_of_winner(run) * (1 + 1e-9),
                     .verify = run,
                     .start = o->state == RG_PLAN_FOUND ? o->replicas : 0};
        *o = (rg_outcome){.state = o->state, .bound = o->bound, .verified = true};
        const rg_status status = rg_hunt_settle(&h, &why);
        run->trials += o->trials;
        o->trials += trials;
        if (status == RG_ERR_MODEL) {
            rg_plan_cannot_be(run, i, &why);
            continue;
        }
        if (status != RG_OK) {
            if (err)
                *err = why;
            return status;
        }
        if (o->state == RG_PLAN_FOUND && rg_plan_better(run, i, run->winner))
            run->winner = i;
    }
    return RG_OK;
}

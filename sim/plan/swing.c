/* plan/swing.c: how an answer changes when one thing changes by a fifth. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "plan/after.h"

static const double down = 0.8, up = 1.2;

/* What a question changes. */
typedef struct question {
    const char *what;
    rg_traffic_change traffic;
    bool price, bandwidth, acceptance;
} question;

static const question questions[] = {
    {.what = "bandwidth", .bandwidth = true},
    {.what = "price", .price = true},
    {.what = "rate", .traffic = {.rate = 1}},
    {.what = "output length", .traffic = {.output = 1}},
    {.what = "prefix share", .traffic = {.system = 1}},
    {.what = "acceptance", .acceptance = true},
};
enum { QUESTIONS = sizeof questions / sizeof questions[0] };

/* The winner first, then the best of each other machine. */
static int rivals(const rg_plan_run *run, int out[RG_PLAN_RIVALS])
{
    int n = 0;
    for (int k = 0; k < run->space.candidate_count && n < RG_PLAN_RIVALS; k++) {
        const int i = run->order[k];
        const rg_outcome *o = &run->outcomes[i];
        if (o->state != RG_PLAN_FOUND && o->state != RG_PLAN_PRUNED)
            continue;
        const int machine = run->space.arrangements[run->space.candidates[i].arrangement].machine;
        bool known = false;
        for (int j = 0; j < n; j++)
            known |= run->space.arrangements[run->space.candidates[out[j]].arrangement].machine ==
                     machine;
        if (!known)
            out[n++] = i;
    }
    return n;
}

static const char *not_asked(const rg_plan_run *run, const question *q)
{
    const rg_candidate *c = &run->space.candidates[run->winner];
    if (q->acceptance && c->rules.speculation.drafts == 0)
        return "no speculation";
    if (q->traffic.system > 0 && run->plan->traffic.trace)
        return "prefixes are the trace's own";
    if (q->traffic.system > 0 && run->plan->traffic.system_tokens == 0)
        return "no prefix is shared";
    if (q->traffic.rate > 0 && run->requests.rate_per_s <= 0 && run->requests.users == 0)
        return "all requests come at once";
    if (q->price && run->space.goal != RG_PLAN_COST)
        return "the goal is not cost";
    return NULL;
}

static double or_one(double asked, double factor)
{
    return asked > 0 ? factor : 1;
}

/* The search again with the change, among the rivals alone; indices stay the same, as lists do. */
static rg_status search_again(rg_arena *arena, const rg_plan_run *base, const question *q,
                              double factor, const int *list, int count, rg_plan_swing *out,
                              rg_err *err)
{
    rg_plan plan = *base->plan;
    rg_plan_run run;
    const rg_traffic_change traffic = {or_one(q->traffic.rate, factor),
                                       or_one(q->traffic.output, factor),
                                       or_one(q->traffic.system, factor)};
    if (q->acceptance)
        for (int i = 0; i < plan.speculation_count; i++)
            plan.speculations[i].rule.acceptance =
                fmin(plan.speculations[i].rule.acceptance * factor, 1);
    plan.exhaustive = false;
    RG_TRY(rg_plan_prepare(arena, &plan, NULL, &traffic, &run, err));
    const int machine =
        base->space.arrangements[base->space.candidates[base->winner].arrangement].machine;
    if (q->bandwidth) {
        rg_accel *accel = run.space.machines[machine].cluster->accel;
        rg_memory_level *memory = &accel->levels[accel->level_count - 1];
        memory->bandwidth.value *= factor;
        memory->measured_bandwidth.value *= factor;
    }
    if (q->price)
        run.space.machines[machine].usd_per_hour *= factor;
    rg_status status = rg_plan_screen(arena, &run, err);
    if (status == RG_OK)
        status = rg_plan_search_among(arena, &run, list, count, err);
    rg_plan_release(&run);
    RG_TRY(status);
    out->feasible = run.winner >= 0;
    out->candidate = out->feasible ? run.winner : base->winner;
    out->other_winner = out->candidate != base->winner;
    if (out->feasible) {
        out->replicas = run.outcomes[run.winner].replicas;
        out->goal = rg_candidate_goal(&run.space, &run.space.candidates[run.winner], out->replicas);
    }
    return RG_OK;
}

rg_status rg_plan_sensitivity(rg_arena *arena, rg_plan_run *run, rg_plan_swing **out, int *count,
                              rg_err *err)
{
    int list[RG_PLAN_RIVALS];
    const int n = rivals(run, list);
    const double base = rg_plan_goal_of_winner(run);
    rg_plan_swing *swings = RG_NEW(arena, rg_plan_swing, 2 * QUESTIONS, err);
    if (!swings)
        return RG_ERR_LIMIT;
    for (int i = 0; i < QUESTIONS; i++) {
        const char *reason = not_asked(run, &questions[i]);
        for (int k = 0; k < 2; k++) {
            rg_plan_swing *s = &swings[2 * i + k];
            *s = (rg_plan_swing){.what = questions[i].what,
                                 .change = k == 0 ? "-20 %" : "+20 %",
                                 .known = reason == NULL,
                                 .reason = reason,
                                 .goal = NAN,
                                 .goal_ratio = NAN};
            if (reason)
                continue;
            RG_TRY(search_again(arena, run, &questions[i], k == 0 ? down : up, list, n, s, err));
            s->goal_ratio = s->goal / base;
        }
    }
    *out = swings;
    *count = 2 * QUESTIONS;
    return RG_OK;
}

/* plan/verdict.c: why the others lost, their order, and the nearest where nothing keeps the limits.
 */
// SPDX-License-Identifier: Apache-2.0
#include "plan/verdict.h"

#include <math.h>
#include <stdlib.h>

/* Candidates that were ruled out unseen and are tried where nothing keeps the limits. */
enum { LAST_LOOK = 16 };

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

static bool may_be_as_good(const rg_plan_run *run, int index)
{
    const rg_outcome *o = &run->outcomes[index], *best = &run->outcomes[run->winner];
    const rg_candidate *c = &run->space.candidates[index],
                       *winner = &run->space.candidates[run->winner];
    if (o->state != RG_PLAN_FOUND)
        return false;
    const int64_t low = o->has_below && !o->below.sure ? o->below.replicas : o->replicas;
    const int64_t high = best->at.sure ? best->replicas : best->replicas + 1;
    return rg_candidate_goal(&run->space, c, low) <=
           rg_candidate_goal(&run->space, winner, high) * (1 + 1e-9);
}

static void explain(rg_plan_run *run, int index)
{
    rg_outcome *o = &run->outcomes[index];
    const rg_candidate *c = &run->space.candidates[index];
    const rg_plan *plan = run->plan;
    if (o->state == RG_PLAN_UNFIT || (o->simulated && o->at.refused > 0)) {
        o->lost = RG_LOST_MEMORY;
        const rg_capacity *m = rg_candidate_tighter(c);
        const double needed =
            m->weight_bytes + m->activation_bytes + m->graph_bytes + m->context_bytes;
        o->by = m->usable_bytes > 0 ? needed / m->usable_bytes - 1 : 0;
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
    o->lost = RG_LOST_PRICE;
    o->by = o->cost / run->outcomes[run->winner].cost - 1;
    if (plan->offline) {
        o->tie = o->state == RG_PLAN_FOUND && o->by < 1e-9;
        return;
    }
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

rg_status rg_plan_put_in_order(rg_arena *arena, rg_plan_run *run, rg_err *err)
{
    static const int ranks[] = {3, 2, 1, 0}; /* unfit, pruned, failed, found */
    const int count = run->space.candidate_count;
    place *places = RG_NEW(arena, place, count, err);
    if (!places)
        return RG_ERR_LIMIT;
    for (int i = 0; i < count && !run->plan->offline; i++)
        run->outcomes[i].cost =
            rg_candidate_goal(&run->space, &run->space.candidates[i], run->outcomes[i].replicas);
    for (int i = 0; i < count; i++) {
        const rg_outcome *o = &run->outcomes[i];
        const rg_candidate *c = &run->space.candidates[i];
        places[i] = (place){ranks[o->state], i, o->cost};
        if (o->state == RG_PLAN_FAILED)
            places[i].value = o->simulated ? o->at.excess : 1e300;
        else if (o->state == RG_PLAN_UNFIT)
            places[i].value = rg_candidate_tighter(c)->weight_bytes;
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
rg_status rg_plan_look_for_nearest(rg_plan_run *run, const int *list, int count, rg_err *err)
{
    const rg_trial_how how = {.speed_up = 1};
    int looked = 0;
    for (int k = 0; k < count; k++) {
        const int i = list[k];
        rg_outcome *o = &run->outcomes[i];
        bool by_power;
        const rg_candidate *c = &run->space.candidates[i];
        const int64_t most = rg_candidate_most(&run->space, c, &by_power);
        if (!o->simulated && !o->impossible && looked < LAST_LOOK && most > 0) {
            looked++;
            if (rg_trial_run(run->workers[0], c, &run->requests, most, &how, &o->at, err) != RG_OK)
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

/* plan/hunt.c: the least count of replicas of one candidate that keeps the limits. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/hunt.h"

#include "plan/verify.h"

/* A request alone must break a limit by so much before more replicas are called useless: time of a
 * step need not fall with every sequence that leaves it. */
static const double alone_margin = 1.03;

static const rg_trial_how as_it_is = {.speed_up = 1}, alone = {.one_by_one = true, .speed_up = 1};

static rg_status try_count(rg_hunt *h, int64_t replicas, rg_err *err)
{
    rg_trial t;
    rg_outcome *o = h->out;
    if (h->verify) {
        RG_TRY(rg_plan_verify_fleet(h->verify, h->candidate, replicas, as_it_is.speed_up, &t, err));
    } else {
        RG_TRY(
            rg_trial_run(h->worker, h->candidate, &h->run->requests, replicas, &as_it_is, &t, err));
        o->trials++;
    }
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
static bool too_dear(const rg_hunt *h)
{
    return rg_candidate_goal(&h->run->space, h->candidate, h->fails_at + 1) > h->best;
}

static rg_status fail_for_ever(rg_hunt *h, bool *out, rg_err *err)
{
    rg_trial t;
    RG_TRY(rg_trial_run(h->worker, h->candidate, &h->run->requests,
                        rg_candidate_least(h->candidate), &alone, &t, err));
    h->out->trials++;
    *out = t.excess > alone_margin || t.refused > 0;
    if (*out) {
        h->out->at = t;
        h->out->unattainable = true;
    }
    return RG_OK;
}

/* Up from the guess, in growing steps, until some count works. */
static rg_status go_up(rg_hunt *h, int64_t start, rg_err *err)
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
static rg_status go_down(rg_hunt *h, rg_err *err)
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

rg_status rg_hunt_settle(rg_hunt *h, rg_err *err)
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
    if (h->start > 0)
        start = h->start;
    else
        RG_TRY(rg_trial_guess(h->worker, h->candidate, &h->run->requests, &start, err));
    start = start < least ? least : start > h->most ? h->most : start;
    if (h->wide) { /* see search.h */
        const int64_t can_win = rg_candidate_within(&h->run->space, h->candidate, h->best);
        if (can_win < start)
            start = can_win < least ? least : can_win;
    }
    RG_TRY(go_up(h, start, err));
    if (h->works_at > 0)
        RG_TRY(go_down(h, err));
    o->replicas = o->state == RG_PLAN_FOUND ? h->works_at : h->fails_at + 1;
    return RG_OK;
}

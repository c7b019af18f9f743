/* plan/candidate.c: what so many replicas of a candidate are and cost, and its name. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>

#include "plan/space.h"

/* ---- so many replicas */

int64_t rg_candidate_least(const rg_candidate *c)
{
    return c->pools.prefill > 0 ? 2 : 1;
}

static void add_side(const rg_space *s, const rg_arrangement *a, int64_t replicas, rg_usage *out)
{
    const rg_machine *m = &s->machines[a->machine];
    const double devices = (double)(a->devices * replicas);
    out->devices += a->devices * replicas;
    out->watts += devices * m->watts;
    out->usd_per_hour += devices * m->usd_per_hour;
}

rg_usage rg_candidate_usage(const rg_space *s, const rg_candidate *c, int64_t replicas)
{
    rg_usage u = {.others = replicas};
    if (c->pools.prefill > 0) {
        const double share =
            (double)c->pools.prefill / (double)(c->pools.prefill + c->pools.decode);
        u.prefill = (int64_t)floor((double)replicas * share + 0.5);
        u.prefill = u.prefill < 1 ? 1 : u.prefill >= replicas ? replicas - 1 : u.prefill;
        u.others = replicas - u.prefill;
        add_side(s, &s->arrangements[c->prefill.arrangement], u.prefill, &u);
    }
    add_side(s, &s->arrangements[c->arrangement], u.others, &u);
    u.goal = s->goal == RG_PLAN_COST    ? u.usd_per_hour
             : s->goal == RG_PLAN_POWER ? u.watts
                                        : (double)u.devices;
    return u;
}

double rg_candidate_goal(const rg_space *s, const rg_candidate *c, int64_t replicas)
{
    return rg_candidate_usage(s, c, replicas).goal;
}

/* The greatest count that is allowed; both pools grow with the count, so all below are too. */
static int64_t most_with(const rg_space *s, const rg_candidate *c,
                         bool (*allowed)(const rg_usage *u, double limit), double limit)
{
    int64_t low = rg_candidate_least(c) - 1, high = RG_PLAN_MOST_REPLICAS + 1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        const rg_usage u = rg_candidate_usage(s, c, middle);
        if (allowed(&u, limit))
            low = middle;
        else
            high = middle;
    }
    return low >= rg_candidate_least(c) ? low : 0;
}

static bool enough_devices(const rg_usage *u, double limit)
{
    return (double)u->devices <= limit;
}

static bool enough_power(const rg_usage *u, double limit)
{
    return u->watts <= limit;
}

static bool cheap_enough(const rg_usage *u, double limit)
{
    return u->goal <= limit;
}

int64_t rg_candidate_most(const rg_space *s, const rg_candidate *c, bool *by_power)
{
    const int64_t most = most_with(s, c, enough_devices, (double)s->plan->most_devices);
    *by_power = false;
    if (s->plan->power_cap_w > 0) {
        const int64_t fed = most_with(s, c, enough_power, s->plan->power_cap_w);
        *by_power = fed < most;
        return fed < most ? fed : most;
    }
    return most;
}

int64_t rg_candidate_within(const rg_space *s, const rg_candidate *c, double goal)
{
    return most_with(s, c, cheap_enough, goal);
}

const rg_capacity *rg_candidate_tighter(const rg_candidate *c)
{
    return c->replica_fits && !c->fits ? &c->prefill.capacity : &c->capacity;
}

/* ---- in words */

static void put_split(const rg_parallel *p, char *out, size_t size, size_t *used)
{
    const struct {
        const char *name;
        int64_t value;
        bool shown;
    } parts[] = {{"tp", p->tp, true},
                 {" pp", p->pp, p->pp > 1},
                 {" ep", p->ep, p->ep > 1},
                 {" cp", p->cp, p->cp > 1}};
    for (int i = 0; i < 4; i++)
        if (parts[i].shown && *used < size)
            *used += (size_t)snprintf(out + *used, size - *used, "%s%lld", parts[i].name,
                                      (long long)parts[i].value);
    if (p->attention_dp && *used < size)
        *used += (size_t)snprintf(out + *used, size - *used, " attention-dp");
}

void rg_candidate_text(const rg_space *s, const rg_candidate *c, char *out, size_t size)
{
    const rg_arrangement *a = &s->arrangements[c->arrangement],
                         *b = &s->arrangements[c->prefill.arrangement];
    size_t used = 0;
    put_split(&a->parallel, out, size, &used);
    if (c->rules.speculation.drafts > 0 && used < size)
        used += (size_t)snprintf(out + used, size - used, " %s%lld",
                                 c->speculate == RG_SPEC_NONE ? "drafts"
                                                              : rg_spec_kind_name(c->speculate),
                                 (long long)c->rules.speculation.drafts);
    if (c->pools.prefill > 0 && used < size) {
        used += (size_t)snprintf(out + used, size - used, " pools %lld:%lld",
                                 (long long)c->pools.prefill, (long long)c->pools.decode);
        if (a != b && used < size) {
            used += (size_t)snprintf(out + used, size - used, ", prefill ");
            if (a->machine != b->machine && used < size)
                used +=
                    (size_t)snprintf(out + used, size - used, "%s ", s->machines[b->machine].name);
            if (used < size)
                put_split(&b->parallel, out, size, &used);
        }
    }
}

/* cli/plan_words.c: an arrangement, a limit and a loss in words. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cli/plan_parts.h"

const char *rg_part_seconds(double value, char out[40])
{
    rg_quantity_format(value, RG_DIM_SECONDS, 3, out, 40);
    return out;
}

/* Dollars an hour, devices or watts: what the plan makes least. */
rg_dim rg_part_goal_dim(const rg_plan_run *run)
{
    return run->space.goal == RG_PLAN_COST    ? RG_DIM_USD_PER_HOUR
           : run->space.goal == RG_PLAN_POWER ? RG_DIM_WATTS
                                              : RG_DIM_NONE;
}

const char *rg_part_goal_key(const rg_plan_run *run)
{
    return run->space.goal == RG_PLAN_COST    ? "usd_per_hour"
           : run->space.goal == RG_PLAN_POWER ? "watts"
                                              : "goal";
}

const char *rg_part_goal_heading(const rg_plan_run *run)
{
    return run->space.goal == RG_PLAN_COST    ? "cost"
           : run->space.goal == RG_PLAN_POWER ? "power"
                                              : "goal";
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

void rg_part_headline(const rg_plan_run *run, int i, const rg_trial *t, char *out, size_t size)
{
    char split[160], pools[192] = "";
    const rg_space *s = &run->space;
    const rg_candidate *c = rg_part_candidate(run, i);
    const rg_arrangement *a = rg_part_arrangement(run, i),
                         *b = &s->arrangements[c->prefill.arrangement];
    const rg_usage u = rg_part_usage(run, i, t->replicas);
    rg_candidate_text(s, c, split, sizeof split);
    if (u.prefill > 0 && a == b) {
        snprintf(pools, sizeof pools, " (%lld for prompts, %lld for answers)", (long long)u.prefill,
                 (long long)u.others);
    } else if (u.prefill > 0) {
        snprintf(pools, sizeof pools,
                 " (%lld for prompts on %lld x %s, %lld for answers on %lld x %s)",
                 (long long)u.prefill, (long long)(u.prefill * b->devices),
                 s->machines[b->machine].cluster->accel->name, (long long)u.others,
                 (long long)(u.others * a->devices), rg_part_machine(run, i)->cluster->accel->name);
    }
    const bool mixed = a->machine != b->machine;
    snprintf(
        out, size, "%lld x %s: %lld replica%s of %s%s, weights %s, KV %s", (long long)u.devices,
        mixed ? "devices" : rg_part_machine(run, i)->cluster->accel->name, (long long)t->replicas,
        plural(t->replicas), split, pools, rg_part_weights(a), a->formats.kv.name);
}

void rg_part_limit(const rg_plan_limit *x, char *out, size_t size)
{
    if (x->quantile < 0)
        snprintf(out, size, "mean %s", rg_plan_metric_name(x->metric));
    else
        snprintf(out, size, "p%g %s", x->quantile * 100, rg_plan_metric_name(x->metric));
}

/* Why nothing was near: no arrangement at all, none that fits, or none with enough devices. */
static void none_text(const rg_plan_run *run, char *out, size_t size)
{
    int unfit = 0;
    for (int i = 0; i < run->space.candidate_count; i++)
        unfit += run->outcomes[i].state == RG_PLAN_UNFIT;
    for (int i = 0; i < run->space.candidate_count; i++)
        if (run->outcomes[i].at.over_step > 0) {
            snprintf(out, size,
                     "prompts are longer than a step of %lld tokens, and '%s' does not cut them; "
                     "--max-tokens would do",
                     (long long)rg_part_candidate(run, i)->rules.max_batched_tokens,
                     rg_policy_names[rg_part_candidate(run, i)->rules.policy]);
            return;
        }
    if (unfit < run->space.candidate_count) {
        snprintf(out, size, "no candidate carries the load on the devices allowed");
        return;
    }
    snprintf(out, size, "no candidate fits in memory");
    for (int i = 0; unfit == 0 && i < run->space.machine_count; i++)
        if (run->space.machines[i].impossible > 0) {
            snprintf(out, size, "no arrangement can be: %s: %s", run->space.machines[i].name,
                     run->space.machines[i].reason);
            return;
        }
}

/* Under which load a limit was broken. */
static const char *at_what(const rg_plan_run *run, const rg_outcome *o, const char *otherwise)
{
    return run->plan->offline ? " with all requests at once"
           : o->unattainable  ? ", even for one request alone"
                              : otherwise;
}

void rg_plan_nearest_text(const rg_plan_run *run, char *out, size_t size)
{
    if (run->nearest < 0) {
        none_text(run, out, size);
        return;
    }
    char who[320], what[48], value[40], limit[40];
    const rg_outcome *o = &run->outcomes[run->nearest];
    const rg_plan_limit *x = &run->plan->limits[o->at.worst];
    rg_part_headline(run, run->nearest, &o->at, who, sizeof who);
    rg_part_limit(x, what, sizeof what);
    snprintf(out, size, "the nearest is %s with %s %s instead of %s%s", who, what,
             rg_part_seconds(o->at.value[o->at.worst], value), rg_part_seconds(x->seconds, limit),
             at_what(run, o, ""));
}

void rg_part_lost(const rg_plan_run *run, int i, char *out, size_t size)
{
    const rg_outcome *o = &run->outcomes[i];
    const rg_candidate *c = rg_part_candidate(run, i);
    char what[48], value[40], limit[40];
    const rg_plan_limit *x = &run->plan->limits[o->at.worst];
    rg_part_limit(x, what, sizeof what);
    if (o->impossible) {
        snprintf(out, size, "%.200s", rg_part_machine(run, i)->lacks);
    } else if (o->state == RG_PLAN_UNFIT) {
        const rg_capacity *m = rg_candidate_tighter(c);
        rg_quantity_format(m->weight_bytes, RG_DIM_BYTES, 3, value, sizeof value);
        rg_quantity_format(m->usable_bytes, RG_DIM_BYTES, 3, limit, sizeof limit);
        snprintf(out, size, "weights of %s a device leave no room for KV in %s", value, limit);
    } else if (o->simulated && o->at.over_step > 0) {
        snprintf(out, size, "%lld prompts are longer than a step of %lld tokens and are not cut",
                 (long long)o->at.over_step, (long long)c->rules.max_batched_tokens);
    } else if (o->simulated && o->at.refused > 0) {
        snprintf(out, size, "%lld requests are larger than its KV memory",
                 (long long)o->at.refused);
    } else if (o->state == RG_PLAN_FAILED && o->simulated) {
        snprintf(out, size, "%s %s, limit %s%s", what,
                 rg_part_seconds(o->at.value[o->at.worst], value),
                 rg_part_seconds(x->seconds, limit), at_what(run, o, " with all that is allowed"));
    } else if (o->state == RG_PLAN_FAILED) {
        snprintf(out, size, "needs at least %lld replicas", (long long)o->replicas);
    } else if (o->lost == RG_LOST_PRICE) {
        snprintf(out, size, "%.1f %% more%s", 100 * o->by,
                 o->state == RG_PLAN_PRUNED ? " at least" : "");
    } else {
        snprintf(out, size, "as dear, with less room: %s %s of %s", what,
                 rg_part_seconds(o->at.value[o->at.worst], value),
                 rg_part_seconds(x->seconds, limit));
    }
}

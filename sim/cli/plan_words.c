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

/* Nothing fits: the candidate with the least to hold, and what it would need. */
static void unfit_text(const rg_plan_run *run, char *out, size_t size)
{
    char split[160], needed[40], there[40];
    const int i = run->order[0];
    const rg_candidate *c = rg_part_candidate(run, i);
    const rg_capacity *m = rg_candidate_tighter(c);
    rg_candidate_text(&run->space, c, split, sizeof split);
    rg_quantity_format(m->weight_bytes + m->activation_bytes + m->graph_bytes + m->context_bytes,
                       RG_DIM_BYTES, 3, needed, sizeof needed);
    rg_quantity_format(m->usable_bytes, RG_DIM_BYTES, 3, there, sizeof there);
    snprintf(out, size,
             "no candidate fits in memory; the nearest is %lld x %s (%s), weights %s: %s a device "
             "for weights and activations, where %s can be had; a smaller --weight-type, larger "
             "devices or a cluster of nodes would do",
             (long long)rg_part_arrangement(run, i)->devices,
             rg_part_machine(run, i)->cluster->accel->name, split,
             rg_part_weights(rg_part_arrangement(run, i)), needed, there);
}

/* Not even the least of the fleets is allowed. */
static bool caps_text(const rg_plan_run *run, char *out, size_t size)
{
    double watts = INFINITY;
    int64_t devices = INT64_MAX;
    for (int i = 0; i < run->space.candidate_count; i++) {
        const rg_candidate *c = rg_part_candidate(run, i);
        bool by_power;
        if (!c->fits)
            continue;
        if (rg_candidate_most(&run->space, c, &by_power) > 0)
            return false;
        const rg_usage u = rg_part_usage(run, i, rg_candidate_least(c));
        watts = fmin(watts, u.watts);
        devices = u.devices < devices ? u.devices : devices;
    }
    char least[40];
    rg_quantity_format(watts, RG_DIM_WATTS, 3, least, sizeof least);
    snprintf(out, size, "the least that holds the model is %lld device%s and %s at TDP",
             (long long)devices, plural(devices), least);
    return true;
}

/* Why nothing was near: no arrangement at all, none that fits, or none with enough devices. */
static void none_text(const rg_plan_run *run, char *out, size_t size)
{
    const rg_space *s = &run->space;
    int unfit = 0, impossible = 0;
    for (int i = 0; i < s->candidate_count; i++) {
        const rg_outcome *o = &run->outcomes[i];
        unfit += o->state == RG_PLAN_UNFIT;
        impossible += o->impossible;
        if (o->at.over_step == 0)
            continue;
        const rg_engine_rules *r = &rg_part_candidate(run, i)->rules;
        snprintf(out, size,
                 "prompts are longer than a step of %lld tokens, and '%s' does not cut them; "
                 "--max-tokens would do",
                 (long long)r->max_batched_tokens, rg_policy_names[r->policy]);
        return;
    }
    if (s->candidate_count == 0) {
        snprintf(out, size, "no arrangement can be");
        for (int i = s->machine_count - 1; i >= 0; i--)
            if (s->machines[i].impossible > 0)
                snprintf(out, size, "no arrangement can be: %s: %s", s->machines[i].name,
                         s->machines[i].reason);
    } else if (unfit == s->candidate_count) {
        unfit_text(run, out, size);
    } else if (impossible + unfit == s->candidate_count) {
        for (int i = s->machine_count - 1; i >= 0; i--)
            if (s->machines[i].lacks[0])
                snprintf(out, size, "no candidate can run: %.400s", s->machines[i].lacks);
    } else if (!caps_text(run, out, size)) {
        snprintf(out, size, "no candidate carries the load on the devices allowed");
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

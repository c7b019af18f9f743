/* cli/plan_report.c: the answer of a plan with traffic, as text, CSV and JSON. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan.h"
#include "report/plot.h"

enum { MOST_RUNNERS = 24 };

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static const rg_candidate *candidate_of(const rg_plan_run *run, int i)
{
    return &run->space.candidates[i];
}

static const rg_arrangement *arrangement_of(const rg_plan_run *run, int i)
{
    return &run->space.arrangements[candidate_of(run, i)->arrangement];
}

static const rg_machine *machine_of(const rg_plan_run *run, int i)
{
    return &run->space.machines[arrangement_of(run, i)->machine];
}

static const char *weights_of(const rg_arrangement *a)
{
    return a->weight_type ? a->weight_type : a->formats.weight.name;
}

static const char *seconds(double value, char out[40])
{
    rg_quantity_format(value, RG_DIM_SECONDS, 3, out, 40);
    return out;
}

/* Dollars an hour, devices or watts: what the plan makes least. */
static rg_dim goal_dim(const rg_plan_run *run)
{
    return run->space.goal == RG_PLAN_COST    ? RG_DIM_USD_PER_HOUR
           : run->space.goal == RG_PLAN_POWER ? RG_DIM_WATTS
                                              : RG_DIM_NONE;
}

static const char *goal_key(const rg_plan_run *run)
{
    return run->space.goal == RG_PLAN_COST    ? "usd_per_hour"
           : run->space.goal == RG_PLAN_POWER ? "watts"
                                              : "goal";
}

static const char *goal_heading(const rg_plan_run *run)
{
    return run->space.goal == RG_PLAN_COST    ? "cost"
           : run->space.goal == RG_PLAN_POWER ? "power"
                                              : "goal";
}

/* ---- JSON of one candidate */

static json_t *arrangement_json(const rg_plan_run *run, int i, int64_t replicas, int64_t prefill)
{
    const rg_candidate *c = candidate_of(run, i);
    const rg_arrangement *a = arrangement_of(run, i);
    const rg_machine *m = machine_of(run, i);
    const rg_parallel *p = &a->parallel;
    json_t *o = json_object();
    json_object_set_new(o, "device", json_string(m->cluster->accel->name));
    json_object_set_new(o, "cluster", json_string(m->cluster->name));
    json_object_set_new(o, "tp", json_integer(p->tp));
    json_object_set_new(o, "pp", json_integer(p->pp));
    json_object_set_new(o, "ep", json_integer(p->ep));
    json_object_set_new(o, "cp", json_integer(p->cp));
    json_object_set_new(o, "attention_dp", json_boolean(p->attention_dp));
    json_object_set_new(o, "replicas", json_integer(replicas));
    json_object_set_new(o, "prefill_replicas", json_integer(prefill));
    json_object_set_new(o, "devices", json_integer(replicas * a->devices));
    json_object_set_new(o, "weight_type", json_string(weights_of(a)));
    json_object_set_new(o, "kv_type", json_string(a->formats.kv.name));
    json_object_set_new(o, "scheduler", json_string(rg_policy_names[c->rules.policy]));
    json_object_set_new(o, "max_sequences", json_integer(c->rules.max_sequences));
    json_object_set_new(o, "max_batched_tokens", json_integer(c->rules.max_batched_tokens));
    json_object_set_new(o, "kv_blocks", json_integer(c->rules.blocks));
    json_object_set_new(o, "kv_block_tokens", json_integer(c->rules.block_tokens));
    json_object_set_new(o, "prefix_caching", json_boolean(c->rules.prefix_caching));
    json_object_set_new(o, "drafts", json_integer(c->rules.speculation.drafts));
    json_object_set_new(o, "usd_per_hour", number(c->usd_per_hour * (double)replicas));
    return o;
}

static json_t *limits_json(const rg_plan_run *run, const rg_trial *t)
{
    json_t *list = json_array();
    for (int i = 0; i < run->plan->limit_count; i++) {
        const rg_plan_limit *x = &run->plan->limits[i];
        json_t *o = json_object();
        json_object_set_new(o, "metric", json_string(rg_plan_metric_name(x->metric)));
        json_object_set_new(o, "quantile", x->quantile < 0 ? json_null() : number(x->quantile));
        json_object_set_new(o, "limit_s", number(x->seconds));
        json_object_set_new(o, "value_s", number(t->value[i]));
        json_object_set_new(o, "low_s", number(t->low[i]));
        json_object_set_new(o, "high_s", number(t->high[i]));
        json_object_set_new(o, "margin_ratio", number(1 - t->value[i] / x->seconds));
        json_array_append_new(list, o);
    }
    return list;
}

static void latencies_json(json_t *o, const rg_trial *t)
{
    const struct {
        const char *key;
        double mean, p50, p95, p99;
    } all[] = {{"ttft_s", t->ttft_mean, t->ttft_p50, t->ttft_p95, t->ttft_p99},
               {"tpot_excl_first_s", t->tpot_mean, t->tpot_p50, t->tpot_p95, t->tpot_p99},
               {"e2e_s", t->e2e_mean, t->e2e_p50, t->e2e_p95, t->e2e_p99}};
    for (int i = 0; i < 3; i++) {
        json_t *x = json_object();
        json_object_set_new(x, "mean", number(all[i].mean));
        json_object_set_new(x, "p50", number(all[i].p50));
        json_object_set_new(x, "p95", number(all[i].p95));
        json_object_set_new(x, "p99", number(all[i].p99));
        json_object_set_new(o, all[i].key, x);
    }
    json_object_set_new(o, "mean_batch", number(t->mean_batch));
    json_object_set_new(o, "utilisation", number(t->busy_s / t->replica_s));
    json_object_set_new(o, "kv_mean_use", number(t->kv_use_ratio));
    json_object_set_new(o, "prefix_hit_tokens_share", number(t->prefix_hit_ratio));
    json_object_set_new(o, "preemptions", json_integer(t->preemptions));
}

static void bill_json(json_t *o, const rg_plan_bill *b)
{
    json_object_set_new(o, "cost_per_million_input_tokens_usd", number(b->usd_per_million_input));
    json_object_set_new(o, "cost_per_million_output_tokens_usd", number(b->usd_per_million_output));
    json_object_set_new(o, "cost_per_million_tokens_usd", number(b->usd_per_million_tokens));
    json_object_set_new(o, "watts", number(b->watts));
    json_object_set_new(o, "device_watts", number(b->device_watts));
    json_object_set_new(o, "energy_per_output_token_joules", number(b->joules_per_output_token));
    json_object_set_new(o, "carbon_g_per_hour", number(b->carbon_g_per_hour));
    json_object_set_new(o, "carbon_g_per_million_output_tokens",
                        number(b->carbon_g_per_million_output));
    json_object_set_new(o, "electricity_usd_per_hour", number(b->electricity_usd_per_hour));
}

/* ---- words */

static void headline(const rg_plan_run *run, int i, const rg_trial *t, char *out, size_t size)
{
    char split[96], pools[96] = "";
    const int64_t replicas = t->replicas;
    const rg_arrangement *a = arrangement_of(run, i);
    rg_candidate_text(&run->space, candidate_of(run, i), split, sizeof split);
    if (t->prefill > 0)
        snprintf(pools, sizeof pools, " (%lld for prompts, %lld for answers)",
                 (long long)t->prefill, (long long)(replicas - t->prefill));
    snprintf(out, size, "%lld x %s: %lld replica%s of %s%s, weights %s, KV %s",
             (long long)(replicas * a->devices), machine_of(run, i)->cluster->accel->name,
             (long long)replicas, replicas == 1 ? "" : "s", split, pools, weights_of(a),
             a->formats.kv.name);
}

static void limit_text(const rg_plan_limit *x, char *out, size_t size)
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

void rg_plan_nearest_text(const rg_plan_run *run, char *out, size_t size)
{
    if (run->nearest < 0) {
        none_text(run, out, size);
        return;
    }
    char who[320], what[48], value[40], limit[40];
    const rg_outcome *o = &run->outcomes[run->nearest];
    const rg_plan_limit *x = &run->plan->limits[o->at.worst];
    headline(run, run->nearest, &o->at, who, sizeof who);
    limit_text(x, what, sizeof what);
    snprintf(out, size, "the nearest is %s with %s %s instead of %s%s", who, what,
             seconds(o->at.value[o->at.worst], value), seconds(x->seconds, limit),
             o->unattainable ? ", even for one request alone" : "");
}

static void lost_text(const rg_plan_run *run, int i, char *out, size_t size)
{
    const rg_outcome *o = &run->outcomes[i];
    const rg_candidate *c = candidate_of(run, i);
    char what[48], value[40], limit[40];
    const rg_plan_limit *x = &run->plan->limits[o->at.worst];
    limit_text(x, what, sizeof what);
    if (o->impossible) {
        snprintf(out, size, "%.200s", machine_of(run, i)->lacks);
    } else if (o->state == RG_PLAN_UNFIT) {
        rg_quantity_format(c->capacity.weight_bytes, RG_DIM_BYTES, 3, value, sizeof value);
        rg_quantity_format(c->capacity.usable_bytes, RG_DIM_BYTES, 3, limit, sizeof limit);
        snprintf(out, size, "weights of %s a device leave no room for KV in %s", value, limit);
    } else if (o->simulated && o->at.refused > 0) {
        snprintf(out, size, "%lld requests are larger than its KV memory",
                 (long long)o->at.refused);
    } else if (o->state == RG_PLAN_FAILED && o->simulated) {
        snprintf(out, size, "%s %s, limit %s%s", what, seconds(o->at.value[o->at.worst], value),
                 seconds(x->seconds, limit),
                 o->unattainable ? ", even for one request alone" : " with all that is allowed");
    } else if (o->state == RG_PLAN_FAILED) {
        snprintf(out, size, "needs at least %lld replicas", (long long)o->replicas);
    } else if (o->lost == RG_LOST_PRICE) {
        snprintf(out, size, "%.1f %% more%s", 100 * o->by,
                 o->state == RG_PLAN_PRUNED ? " at least" : "");
    } else {
        snprintf(out, size, "as dear, with less room: %s %s of %s", what,
                 seconds(o->at.value[o->at.worst], value), seconds(x->seconds, limit));
    }
}

/* ---- sections */

static void limits_table(rg_report *report, const rg_plan_run *run, const rg_trial *t)
{
    rg_table *table = rg_report_table(report, "limits", "Limits and margins");
    rg_table_column(table, "limit", "limit", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "limit_s", "at most", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "value_s", "is", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "low_s", "95 % from", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "high_s", "to", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "margin_ratio", "margin", RG_CELL_REAL, RG_DIM_SHARE, false);
    for (int i = 0; i < run->plan->limit_count; i++) {
        const rg_plan_limit *x = &run->plan->limits[i];
        char what[48];
        limit_text(x, what, sizeof what);
        rg_table_text(table, what);
        rg_table_real(table, x->seconds);
        rg_table_real(table, t->value[i]);
        rg_table_real(table, t->low[i]);
        rg_table_real(table, t->high[i]);
        rg_table_real(table, 1 - t->value[i] / x->seconds);
    }
}

static void runners_table(rg_report *report, const rg_plan_run *run)
{
    rg_table *table = rg_report_table(report, "runners_up", "Runners-up and why they lost");
    static const struct {
        const char *key, *heading;
        rg_cell cell;
        rg_dim dim;
        bool hidden;
    } columns[] = {
        {"device", "device", RG_CELL_TEXT, RG_DIM_NONE, false},
        {"arrangement", "replica", RG_CELL_TEXT, RG_DIM_NONE, false},
        {"weight_type", "weights", RG_CELL_TEXT, RG_DIM_NONE, false},
        {"kv_type", "KV", RG_CELL_TEXT, RG_DIM_NONE, true},
        {"scheduler", "scheduler", RG_CELL_TEXT, RG_DIM_NONE, true},
        {"max_sequences", "sequences", RG_CELL_INT, RG_DIM_NONE, true},
        {"max_batched_tokens", "tokens", RG_CELL_INT, RG_DIM_NONE, true},
        {"replicas", "replicas", RG_CELL_INT, RG_DIM_NONE, false},
        {"devices", "devices", RG_CELL_INT, RG_DIM_NONE, false},
        {"usd_per_hour", "cost", RG_CELL_REAL, RG_DIM_USD_PER_HOUR, false},
        {"least_replicas", "proved least", RG_CELL_INT, RG_DIM_NONE, true},
        {"simulated", "simulated", RG_CELL_BOOL, RG_DIM_NONE, true},
        {"ttft_p95_s", "ttft p95", RG_CELL_REAL, RG_DIM_SECONDS, false},
        {"tpot_p95_s", "tpot p95", RG_CELL_REAL, RG_DIM_SECONDS, false},
        {"lost_because", "lost by", RG_CELL_TEXT, RG_DIM_NONE, false},
        {"lost_by_ratio", "", RG_CELL_REAL, RG_DIM_SHARE, true},
        {"near_tie", "near tie", RG_CELL_BOOL, RG_DIM_NONE, true},
        {"detail", "how much", RG_CELL_TEXT, RG_DIM_NONE, false},
    };
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        rg_table_column(table, columns[i].key, columns[i].heading, columns[i].cell, columns[i].dim,
                        columns[i].hidden);
    int shown = 0;
    for (int k = 0; k < run->space.candidate_count; k++) {
        const int i = run->order[k];
        const rg_outcome *o = &run->outcomes[i];
        const rg_candidate *c = candidate_of(run, i);
        bool first_of_machine = true;
        if (i == run->winner || (run->winner < 0 && o->state == RG_PLAN_PRUNED))
            continue;
        for (int j = 0; j < k && first_of_machine; j++)
            first_of_machine = run->order[j] == run->winner ||
                               machine_of(run, run->order[j]) != machine_of(run, i);
        if (shown >= MOST_RUNNERS && !first_of_machine)
            continue;
        shown++;
        char split[96], detail[256];
        rg_candidate_text(&run->space, c, split, sizeof split);
        lost_text(run, i, detail, sizeof detail);
        const bool latencies = o->simulated && o->at.refused == 0;
        rg_table_text(table, machine_of(run, i)->name);
        rg_table_text(table, split);
        rg_table_text(table, weights_of(arrangement_of(run, i)));
        rg_table_text(table, arrangement_of(run, i)->formats.kv.name);
        rg_table_text(table, rg_policy_names[c->rules.policy]);
        rg_table_int(table, c->rules.max_sequences);
        rg_table_int(table, c->rules.max_batched_tokens);
        const int64_t replicas = o->state == RG_PLAN_UNFIT                    ? 1
                                 : o->state == RG_PLAN_FAILED && o->simulated ? o->at.replicas
                                                                              : o->replicas;
        rg_table_int(table, replicas);
        rg_table_int(table, replicas * arrangement_of(run, i)->devices);
        rg_table_real(table, c->usd_per_hour * (double)replicas);
        rg_table_int(table, o->bound.replicas);
        rg_table_bool(table, o->simulated);
        rg_table_real(table, latencies ? o->at.ttft_p95 : NAN);
        rg_table_real(table, latencies ? o->at.tpot_p95 : NAN);
        rg_table_text(table, rg_lost_name(o->lost));
        rg_table_real(table, o->by);
        rg_table_bool(table, o->tie);
        if (o->tie)
            strncat(detail, ", near tie", sizeof detail - strlen(detail) - 1);
        rg_table_text(table, detail);
    }
}

static void frontier_table(rg_report *report, const rg_plan_answer *x)
{
    const rg_plan_run *run = x->run;
    rg_table *table = rg_report_table(report, "frontier", "Cost against latency");
    rg_table_column(table, goal_key(run), goal_heading(run), RG_CELL_REAL, goal_dim(run), false);
    rg_table_column(table, "device", "device", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "arrangement", "replica", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "replicas", "replicas", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "devices", "devices", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "ttft_p95_s", "ttft p95", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "tpot_p95_s", "tpot p95", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "e2e_p95_s", "e2e p95", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "meets_limits", "within limits", RG_CELL_BOOL, RG_DIM_NONE, false);
    for (int i = 0; i < x->point_count; i++) {
        const rg_plan_point *p = &x->points[i];
        char split[96];
        if (!p->on_frontier)
            continue;
        rg_candidate_text(&run->space, candidate_of(run, p->candidate), split, sizeof split);
        rg_table_real(table, p->goal);
        rg_table_text(table, machine_of(run, p->candidate)->name);
        rg_table_text(table, split);
        rg_table_int(table, p->trial.replicas);
        rg_table_int(table, p->trial.replicas * arrangement_of(run, p->candidate)->devices);
        rg_table_real(table, p->trial.ttft_p95);
        rg_table_real(table, p->trial.tpot_p95);
        rg_table_real(table, p->trial.e2e_p95);
        rg_table_bool(table, p->trial.ok);
    }
}

static void swings_table(rg_report *report, const rg_plan_answer *x)
{
    const rg_plan_run *run = x->run;
    rg_table *table = rg_report_table(report, "sensitivity", "What the answer hangs on");
    rg_table_column(table, "what", "what", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "change", "change", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, goal_key(run), goal_heading(run), RG_CELL_REAL, goal_dim(run), false);
    rg_table_column(table, "ratio", "over now", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "winner", "winner", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int i = 0; i < x->swing_count; i++) {
        const rg_plan_swing *s = &x->swings[i];
        char who[192], split[96];
        if (!s->known) {
            snprintf(who, sizeof who, "not asked: %s", s->reason);
        } else if (!s->feasible) {
            snprintf(who, sizeof who, "none of the rivals keeps the limits");
        } else {
            rg_candidate_text(&run->space, candidate_of(run, s->candidate), split, sizeof split);
            snprintf(who, sizeof who, "%s%lld x %s %s", s->other_winner ? "other: " : "",
                     (long long)s->replicas, machine_of(run, s->candidate)->name, split);
        }
        rg_table_text(table, s->what);
        rg_table_text(table, s->change);
        rg_table_real(table, s->known && s->feasible ? s->goal : NAN);
        rg_table_real(table, s->known && s->feasible ? s->goal_ratio : NAN);
        rg_table_text(table, who);
    }
}

static void winner_lines(rg_report *report, const rg_plan_answer *x, const rg_plan_bill *b)
{
    const rg_plan_run *run = x->run;
    const rg_outcome *o = &run->outcomes[run->winner];
    const rg_candidate *c = candidate_of(run, run->winner);
    const rg_plan_requests *r = &run->requests;
    rg_report_line(report, "%s", "");
    rg_report_figure(report, "usd_per_hour", "cost", b->usd_per_hour, RG_DIM_USD_PER_HOUR);
    rg_report_figure(report, "cost_per_million_input_tokens_usd",
                     "all of it per million input tokens", b->usd_per_million_input, RG_DIM_USD);
    rg_report_figure(report, "cost_per_million_output_tokens_usd",
                     "all of it per million output tokens", b->usd_per_million_output, RG_DIM_USD);
    rg_report_figure(report, "watts", "power under this load, hosts with it", b->watts,
                     RG_DIM_WATTS);
    rg_report_figure(report, "energy_per_output_token_joules", "energy per output token",
                     b->joules_per_output_token, RG_DIM_JOULES);
    if (isfinite(b->carbon_g_per_hour))
        rg_report_line(report,
                       "  carbon                  %.1f kg/h, %.0f g per million output tokens",
                       b->carbon_g_per_hour / 1000, b->carbon_g_per_million_output);
    if (isfinite(b->electricity_usd_per_hour))
        rg_report_figure(report, "electricity_usd_per_hour", "electricity",
                         b->electricity_usd_per_hour, RG_DIM_USD_PER_HOUR);
    /* Against the rate that was asked for: a sample of random arrivals comes a little off it. */
    const double asked = run->plan->traffic.rate_per_s;
    if (r->rate_per_s > 0 && !x->brief)
        rg_report_figure(report, "saturation_requests_per_s", "carries at most, within the limits",
                         x->saturation * (asked > 0 ? asked : r->rate_per_s), RG_DIM_PER_SECOND);
    else if (r->users > 0 && !x->brief)
        rg_report_figure(report, "saturation_users", "users it carries within the limits",
                         floor(x->saturation * (double)r->users + 0.5), RG_DIM_NONE);
    /* Little's law: in the system at once = arrivals x time in it */
    const double rate = r->rate_per_s > 0 ? r->rate_per_s : (double)r->count / o->at.makespan_s;
    const double inside = rate * o->at.e2e_mean;
    const double cache =
        inside * (r->mean_prompt + 0.5 * r->mean_output) * c->rules.kv_bytes_per_token;
    rg_report_figure(report, "requests_in_system", "requests inside at once (rate x time)", inside,
                     RG_DIM_NONE);
    rg_report_figure(report, "kv_bytes_in_use", "KV memory that they hold", cache, RG_DIM_BYTES);
    rg_report_figure(report, "kv_bytes", "KV memory there is",
                     (double)c->rules.blocks * (double)c->rules.block_tokens *
                         c->rules.kv_bytes_per_token * (double)o->replicas,
                     RG_DIM_BYTES);
    rg_report_figure(report, "utilisation", "share of time computing",
                     o->at.busy_s / o->at.replica_s, RG_DIM_NONE);
}

static void hints(rg_report *report, const rg_plan_answer *x, json_t *winner)
{
    static const char *const names[] = {"vllm", "sglang", "tensorrt_llm"};
    const char *lines[3];
    json_t *o = json_object();
    rg_plan_launch_hints(x->arena, &x->run->space, candidate_of(x->run, x->run->winner),
                         x->run->outcomes[x->run->winner].replicas, lines);
    rg_report_line(report, "%s", "");
    rg_report_line(report, "To start one replica");
    for (int i = 0; i < 3; i++) {
        rg_report_line(report, "  %s", lines[i]);
        json_object_set_new(o, names[i], json_string(lines[i]));
    }
    json_object_set_new(winner, "launch", o);
}

static void assumptions(rg_report *report, const rg_plan_run *run)
{
    const rg_plan *plan = run->plan;
    for (int i = 0; i < plan->limit_count; i++)
        if (plan->limits[i].assumed)
            rg_report_assume(report, "no limit on waiting was given: p99 of ttft at most 10 s");
    rg_report_assume(report,
                     "%lld requests are simulated, the same for every candidate; --limit "
                     "changes their number",
                     (long long)run->requests.count);
    rg_report_assume(report,
                     "replicas behind a router that sends each request to the least loaded");
    for (int i = 0; i < run->space.machine_count; i++) {
        const rg_machine *m = &run->space.machines[i];
        if (isfinite(m->usd_per_hour))
            rg_report_assume(report, "%s: %.2f $/h a device, %s%s%s", m->name, m->usd_per_hour,
                             m->provider, m->date ? ", read " : "", m->date ? m->date : "");
        else if (run->space.goal == RG_PLAN_COST)
            rg_report_assume(report,
                             "%s was left out: no price is known; --price %s=2.5$/h gives "
                             "one",
                             m->name, m->name);
        if (!rg_accel_peak(m->cluster->accel, RG_BF16) && rg_accel_peak(m->cluster->accel, RG_FP16))
            rg_report_assume(report, "%s has no bf16 products: fp16 in its place", m->name);
        if (m->impossible > 0)
            rg_report_assume(report, "%s: %lld arrangements cannot be, the first as %s", m->name,
                             (long long)m->impossible, m->reason);
    }
    if (run->space.goal_defaulted)
        rg_report_assume(report, "no price is known: the number of devices is made least");
    if (run->requests.over_long > 0)
        rg_report_assume(report, "%lld requests are longer than the model takes and left out",
                         (long long)run->requests.over_long);
    if (run->space.candidate_count > RG_PLAN_FEW && !plan->exhaustive)
        rg_report_assume(report,
                         "of so many combinations the dearer ones were given up when the most "
                         "replicas that could still win failed: fewer are taken to fail too");
    if (run->premise_broken)
        rg_report_assume(report, "a simulated step was faster than its roofline: the bound was not "
                                 "relied on, all candidates were simulated");
    rg_report_assume(report, "not validated: no measured run of this deployment is stored");
}

static void effort(rg_report *report, const rg_plan_run *run)
{
    int counts[4] = {0};
    for (int i = 0; i < run->space.candidate_count; i++)
        counts[run->outcomes[i].state]++;
    rg_report_line(report, "%s", "");
    rg_report_int(report, "candidates", "combinations", run->space.candidate_count);
    rg_report_int(report, "candidates_unfit", "do not fit in memory", counts[RG_PLAN_UNFIT]);
    rg_report_int(report, "candidates_pruned", "ruled out as dearer", counts[RG_PLAN_PRUNED]);
    rg_report_int(report, "candidates_failed", "keep the limits at no allowed size",
                  counts[RG_PLAN_FAILED]);
    rg_report_int(report, "candidates_found", "keep the limits", counts[RG_PLAN_FOUND]);
    rg_report_int(report, "simulations", "simulations", run->trials);
}

static void infeasible(rg_report *report, const rg_plan_run *run)
{
    char text[512];
    rg_plan_nearest_text(run, text, sizeof text);
    rg_report_line(report, "No: nothing on the list keeps the limits; %s.", text);
    rg_report_json(report, "winner", json_null());
    if (run->nearest < 0) {
        rg_report_json(report, "nearest", json_null());
        return;
    }
    const rg_trial *t = &run->outcomes[run->nearest].at;
    json_t *o = arrangement_json(run, run->nearest, t->replicas, t->prefill);
    latencies_json(o, t);
    json_object_set_new(o, "limits", limits_json(run, t));
    rg_report_json(report, "nearest", o);
    limits_table(report, run, t);
}

void rg_plan_report(rg_report *report, const rg_plan_answer *x)
{
    const rg_plan_run *run = x->run;
    rg_report_json(report, "feasible", json_boolean(run->winner >= 0));
    if (run->winner < 0) {
        infeasible(report, run);
    } else {
        char who[320], first[512] = "", part[48], value[40];
        const rg_outcome *o = &run->outcomes[run->winner];
        rg_plan_bill bill;
        headline(run, run->winner, &o->at, who, sizeof who);
        rg_plan_bill_of(x->arena, run, run->winner, &o->at, &bill);
        for (int i = 0; i < run->plan->limit_count && i < 2; i++) {
            limit_text(&run->plan->limits[i], part, sizeof part);
            snprintf(first + strlen(first), sizeof first - strlen(first), "%s%s %s",
                     i > 0 ? ", " : "", part, seconds(o->at.value[i], value));
        }
        rg_report_line(report, "%s (%s).", who, first);
        json_t *winner = arrangement_json(run, run->winner, o->replicas, o->at.prefill);
        latencies_json(winner, &o->at);
        bill_json(winner, &bill);
        json_object_set_new(winner, "limits", limits_json(run, &o->at));
        winner_lines(report, x, &bill);
        limits_table(report, run, &o->at);
        hints(report, x, winner);
        rg_report_json(report, "winner", winner);
    }
    runners_table(report, run);
    if (x->brief || run->winner < 0)
        rg_report_json(report, "frontier", json_array());
    else
        frontier_table(report, x);
    if (!x->brief && run->winner >= 0)
        swings_table(report, x);
    effort(report, run);
    assumptions(report, run);
}

rg_status rg_plan_draw(const rg_plan_answer *x, const char *path, rg_err *err)
{
    const rg_plan_run *run = x->run;
    rg_plot *plot;
    FILE *out;
    RG_TRY(rg_plot_new(x->arena, "plan_frontier", path, &plot, err));
    rg_plot_size(plot, 1000, 620);
    rg_plot_text(plot, "plot_title", "%s: cost against latency", run->space.model->name);
    rg_plot_text(plot, "cost_label", "%s",
                 run->space.goal == RG_PLAN_COST    ? "cost ($/h)"
                 : run->space.goal == RG_PLAN_POWER ? "power (W)"
                                                    : "devices");
    rg_plot_number(
        plot, "winner_cost",
        rg_candidate_goal(candidate_of(run, run->winner), run->outcomes[run->winner].replicas));
    rg_plot_number(plot, "winner_latency", run->outcomes[run->winner].at.e2e_p95);
    int series = 0;
    for (int m = 0; m < run->space.machine_count; m++) {
        char name[24];
        bool any = false;
        for (int i = 0; i < x->point_count; i++)
            any |= arrangement_of(run, x->points[i].candidate)->machine == m;
        if (!any)
            continue;
        snprintf(name, sizeof name, "s%d", ++series);
        RG_TRY(rg_plot_data(plot, name, &out, err));
        fprintf(out, "cost,e2e_p95_s,meets_limits,on_frontier\n");
        for (int i = 0; i < x->point_count; i++) {
            const rg_plan_point *p = &x->points[i];
            if (arrangement_of(run, p->candidate)->machine == m)
                fprintf(out, "%.9g,%.9g,%d,%d\n", p->goal, p->trial.e2e_p95, p->trial.ok,
                        p->on_frontier);
        }
        snprintf(name, sizeof name, "s%d_title", series);
        rg_plot_text(plot, name, "%s", run->space.machines[m].name);
    }
    rg_plot_number(plot, "series", series);
    RG_TRY(rg_plot_data(plot, "frontier", &out, err));
    fprintf(out, "cost,e2e_p95_s\n");
    for (int i = 0; i < x->point_count; i++)
        if (x->points[i].on_frontier)
            fprintf(out, "%.9g,%.9g\n", x->points[i].goal, x->points[i].trial.e2e_p95);
    return rg_plot_write(plot, err);
}

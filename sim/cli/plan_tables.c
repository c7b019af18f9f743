/* cli/plan_tables.c: tables of a plan: limits, runners-up, frontier, sensitivity. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cli/plan_parts.h"

enum { MOST_RUNNERS = 24 };

void rg_part_limits_table(rg_report *report, const rg_plan_run *run, const rg_trial *t)
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
        rg_part_limit(x, what, sizeof what);
        rg_table_text(table, what);
        rg_table_real(table, x->seconds);
        rg_table_real(table, t->value[i]);
        rg_table_real(table, t->low[i]);
        rg_table_real(table, t->high[i]);
        rg_table_real(table, 1 - t->value[i] / x->seconds);
    }
}

void rg_part_candidate_cells(rg_table *row, const rg_plan_run *run, int i)
{
    const rg_candidate *c = rg_part_candidate(run, i);
    const rg_arrangement *a = rg_part_arrangement(run, i);
    char split[160];
    rg_candidate_text(&run->space, c, split, sizeof split);
    rg_table_text(row, rg_part_machine(run, i)->name);
    rg_table_text(row, split);
    rg_table_text(row, rg_part_weights(a));
    rg_table_text(row, a->formats.kv.name);
    rg_table_text(row, rg_policy_names[c->rules.policy]);
    rg_table_int(row, c->rules.max_sequences);
    rg_table_int(row, c->rules.max_batched_tokens);
}

/* In what a plan chooses; the rest follows from engine and arrangement. */
static bool same_rules(const rg_candidate *c, const rg_candidate *d)
{
    const rg_engine_rules *x = &c->rules, *y = &d->rules;
    return c->engine == d->engine && c->speculate == d->speculate &&
           x->max_sequences == y->max_sequences && x->max_batched_tokens == y->max_batched_tokens &&
           x->blocks == y->blocks && x->speculation.drafts == y->speculation.drafts &&
           x->speculation.acceptance == y->speculation.acceptance;
}

/* Proportions of pools that come to the same fleet. */
static bool same_fleet(const rg_plan_run *run, int i, int j)
{
    const rg_outcome *x = &run->outcomes[i], *y = &run->outcomes[j];
    const rg_candidate *c = rg_part_candidate(run, i), *d = rg_part_candidate(run, j);
    if (c->pools.prefill == 0 || d->pools.prefill == 0 || x->replicas != y->replicas ||
        c->arrangement != d->arrangement || c->prefill.arrangement != d->prefill.arrangement ||
        x->state != y->state || !same_rules(c, d))
        return false;
    return rg_part_usage(run, i, x->replicas).prefill == rg_part_usage(run, j, y->replicas).prefill;
}

static bool listed_already(const rg_plan_run *run, int k)
{
    for (int j = 0; j < k; j++)
        if (same_fleet(run, run->order[j], run->order[k]))
            return true;
    return false;
}

/* What tells the rows of a plan apart beside device, split and weights. */
typedef struct varied {
    bool kv, scheduler, sequences, tokens;
} varied;

static varied what_varies(const rg_plan_run *run)
{
    const rg_plan *plan = run->plan;
    varied v = {.scheduler = plan->policy_count > 1,
                .sequences = plan->max_sequences.count > 1,
                .tokens = plan->max_tokens.count > 1};
    for (int i = 1; i < run->space.candidate_count; i++)
        v.kv |= strcmp(rg_part_arrangement(run, i)->formats.kv.name,
                       rg_part_arrangement(run, 0)->formats.kv.name) != 0;
    return v;
}

void rg_part_runners_table(rg_report *report, const rg_plan_run *run)
{
    rg_table *table = rg_report_table(report, "runners_up", "Runners-up and why they lost");
    const varied v = what_varies(run);
    const struct {
        const char *key, *heading;
        rg_cell cell;
        rg_dim dim;
        bool hidden;
    } columns[] = {
        {"device", "device", RG_CELL_TEXT, RG_DIM_NONE, false},
        {"arrangement", "replica", RG_CELL_TEXT, RG_DIM_NONE, false},
        {"weight_type", "weights", RG_CELL_TEXT, RG_DIM_NONE, false},
        {"kv_type", "KV", RG_CELL_TEXT, RG_DIM_NONE, !v.kv},
        {"scheduler", "scheduler", RG_CELL_TEXT, RG_DIM_NONE, !v.scheduler},
        {"max_sequences", "sequences", RG_CELL_INT, RG_DIM_NONE, !v.sequences},
        {"max_batched_tokens", "tokens", RG_CELL_INT, RG_DIM_NONE, !v.tokens},
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
        bool first_of_machine = true;
        if (i == run->winner || (run->winner < 0 && o->state == RG_PLAN_PRUNED))
            continue;
        if (listed_already(run, k))
            continue;
        for (int j = 0; j < k && first_of_machine; j++)
            first_of_machine = run->order[j] == run->winner ||
                               rg_part_machine(run, run->order[j]) != rg_part_machine(run, i);
        if (shown >= MOST_RUNNERS && !first_of_machine)
            continue;
        shown++;
        char detail[256];
        rg_part_lost(run, i, detail, sizeof detail);
        rg_part_candidate_cells(table, run, i);
        const int64_t replicas = o->state == RG_PLAN_UNFIT                    ? 1
                                 : o->state == RG_PLAN_FAILED && o->simulated ? o->at.replicas
                                                                              : o->replicas;
        /* latencies are those of this count alone: a trial may have been of another */
        const bool latencies = o->simulated && o->at.refused == 0 && o->at.replicas == replicas;
        rg_table_int(table, replicas);
        rg_table_int(table, rg_part_usage(run, i, replicas).devices);
        rg_table_real(table, rg_part_usage(run, i, replicas).usd_per_hour);
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

void rg_part_frontier_table(rg_report *report, const rg_plan_answer *x)
{
    const rg_plan_run *run = x->run;
    rg_table *table = rg_report_table(report, "frontier", "Cost against latency");
    rg_table_column(table, rg_part_goal_key(run), rg_part_goal_heading(run), RG_CELL_REAL,
                    rg_part_goal_dim(run), false);
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
        char split[160];
        if (!p->on_frontier)
            continue;
        rg_candidate_text(&run->space, rg_part_candidate(run, p->candidate), split, sizeof split);
        rg_table_real(table, p->goal);
        rg_table_text(table, rg_part_machine(run, p->candidate)->name);
        rg_table_text(table, split);
        rg_table_int(table, p->trial.replicas);
        rg_table_int(table, rg_part_usage(run, p->candidate, p->trial.replicas).devices);
        rg_table_real(table, p->trial.ttft_p95);
        rg_table_real(table, p->trial.tpot_p95);
        rg_table_real(table, p->trial.e2e_p95);
        rg_table_bool(table, p->trial.ok);
    }
}

void rg_part_swings_table(rg_report *report, const rg_plan_answer *x)
{
    const rg_plan_run *run = x->run;
    rg_table *table = rg_report_table(report, "sensitivity", "What the answer hangs on");
    rg_table_column(table, "what", "what", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "change", "change", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, rg_part_goal_key(run), rg_part_goal_heading(run), RG_CELL_REAL,
                    rg_part_goal_dim(run), false);
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
            rg_candidate_text(&run->space, rg_part_candidate(run, s->candidate), split,
                              sizeof split);
            snprintf(who, sizeof who, "%s%lld x %s %s", s->other_winner ? "other: " : "",
                     (long long)s->replicas, rg_part_machine(run, s->candidate)->name, split);
        }
        rg_table_text(table, s->what);
        rg_table_text(table, s->change);
        rg_table_real(table, s->known && s->feasible ? s->goal : NAN);
        rg_table_real(table, s->known && s->feasible ? s->goal_ratio : NAN);
        rg_table_text(table, who);
    }
}

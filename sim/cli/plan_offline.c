/* cli/plan_offline.c: the answer of a plan whose requests are all there at once. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cli/plan_parts.h"

enum { MOST_ROWS = 24 };

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
    {"devices", "devices", RG_CELL_INT, RG_DIM_NONE, false},
    {"output_tokens_per_s", "out tok/s", RG_CELL_REAL, RG_DIM_NONE, false},
    {"output_tokens_per_s_per_gpu", "a device", RG_CELL_REAL, RG_DIM_NONE, false},
    {"total_tokens_per_s_per_gpu", "in + out", RG_CELL_REAL, RG_DIM_NONE, true},
    {"requests_per_s", "requests/s", RG_CELL_REAL, RG_DIM_NONE, true},
    {"mean_batch", "at once", RG_CELL_REAL, RG_DIM_NONE, false},
    {"kv_mean_use", "KV use", RG_CELL_REAL, RG_DIM_SHARE, false},
    {"tpot_mean_s", "tpot", RG_CELL_REAL, RG_DIM_SECONDS, false},
    {"bound_ratio", "of bound", RG_CELL_REAL, RG_DIM_SHARE, false},
    {"cost_per_million_output_tokens_usd", "$/M out", RG_CELL_REAL, RG_DIM_USD, false},
    {"energy_per_output_token_joules", "a token", RG_CELL_REAL, RG_DIM_JOULES, false},
    {"lost_because", "lost by", RG_CELL_TEXT, RG_DIM_NONE, true},
    {"lost_by_ratio", "", RG_CELL_REAL, RG_DIM_SHARE, true},
    {"detail", "", RG_CELL_TEXT, RG_DIM_NONE, false},
};

static rg_table *new_table(rg_report *report, const char *key, const char *heading)
{
    rg_report_line(report, "%s", "");
    rg_table *table = rg_report_table(report, key, heading);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        rg_table_column(table, columns[i].key, columns[i].heading, columns[i].cell, columns[i].dim,
                        columns[i].hidden);
    return table;
}

static void detail_of(const rg_plan_run *run, int i, char *out, size_t size)
{
    const rg_outcome *o = &run->outcomes[i];
    if (i == run->winner)
        snprintf(out, size, "the cheapest");
    else
        rg_part_lost(run, i, out, size);
    if (o->tie)
        strncat(out, ", the same", size - strlen(out) - 1);
}

static rg_status row(rg_table *table, const rg_plan_answer *x, int i, rg_err *err)
{
    const rg_plan_run *run = x->run;
    const rg_outcome *o = &run->outcomes[i];
    const bool ran = o->simulated && o->at.refused == 0;
    char detail[256];
    rg_offline f = {0};
    rg_plan_bill bill = {0};
    if (ran) {
        RG_TRY(rg_plan_offline_of(x->arena, run, i, &f, err));
        rg_plan_bill_of(x->arena, run, i, &o->at, &bill);
    }
    detail_of(run, i, detail, sizeof detail);
    rg_part_candidate_cells(table, run, i);
    rg_table_int(table, rg_part_usage(run, i, o->replicas).devices);
    rg_table_real(table, ran ? f.output_tokens_per_s : NAN);
    rg_table_real(table, ran ? f.output_tokens_per_s / f.devices : NAN);
    rg_table_real(table, ran ? f.total_tokens_per_s / f.devices : NAN);
    rg_table_real(table, ran ? f.requests_per_s : NAN);
    rg_table_real(table, ran ? o->at.mean_batch : NAN);
    rg_table_real(table, ran ? o->at.kv_use_ratio : NAN);
    rg_table_real(table, ran ? o->at.tpot_mean : NAN);
    rg_table_real(table, ran ? f.bound_ratio : NAN);
    rg_table_real(table, ran ? bill.usd_per_million_output : NAN);
    rg_table_real(table, ran ? bill.joules_per_output_token : NAN);
    rg_table_text(table, rg_lost_name(o->lost));
    rg_table_real(table, o->by);
    rg_table_text(table, detail);
    return RG_OK;
}

/* The best of every device, the winner's first; then all but the winner. */
static rg_status tables(rg_report *report, const rg_plan_answer *x, rg_err *err)
{
    const rg_plan_run *run = x->run;
    const int count = run->space.candidate_count;
    bool *known = RG_NEW(x->arena, bool, run->space.machine_count, err);
    if (!known)
        return RG_ERR_LIMIT;
    rg_table *best = new_table(report, "devices", "The best arrangement on each device");
    for (int k = 0; k < count; k++) {
        bool *seen = &known[rg_part_arrangement(run, run->order[k])->machine];
        if (!*seen)
            RG_TRY(row(best, x, run->order[k], err));
        *seen = true;
    }
    rg_table *others = new_table(report, "runners_up", "Others and why they lost");
    for (int k = 0, shown = 0; k < count && shown < MOST_ROWS; k++)
        if (run->order[k] != run->winner) {
            RG_TRY(row(others, x, run->order[k], err));
            shown++;
        }
    return RG_OK;
}

static rg_status winner(rg_report *report, const rg_plan_answer *x, rg_err *err)
{
    const rg_plan_run *run = x->run;
    const rg_outcome *o = &run->outcomes[run->winner];
    char who[480];
    rg_offline f;
    rg_plan_bill bill;
    RG_TRY(rg_plan_offline_of(x->arena, run, run->winner, &f, err));
    rg_plan_bill_of(x->arena, run, run->winner, &o->at, &bill);
    rg_part_headline(run, run->winner, &o->at, who, sizeof who);
    rg_report_line(report, "%s: %.0f output tokens/s, %.0f a device.", who, f.output_tokens_per_s,
                   f.output_tokens_per_s / f.devices);
    json_t *json = rg_part_arrangement_json(run, run->winner, &o->at);
    rg_part_latencies_json(json, &o->at);
    rg_part_bill_json(json, &bill);
    json_object_set_new(json, "limits", rg_part_limits_json(run, &o->at));
    rg_report_line(report, "%s", "");
    rg_report_figure(report, "output_tokens_per_s", "output tokens/s", f.output_tokens_per_s,
                     RG_DIM_NONE);
    rg_report_figure(report, "output_tokens_per_s_per_gpu", "output tokens/s a device",
                     f.output_tokens_per_s / f.devices, RG_DIM_NONE);
    rg_report_figure(report, "total_tokens_per_s", "prompt and output tokens/s",
                     f.total_tokens_per_s, RG_DIM_NONE);
    rg_report_figure(report, "requests_per_s", "requests/s", f.requests_per_s, RG_DIM_NONE);
    rg_report_figure(report, "makespan_s", "time for all of them", o->at.makespan_s,
                     RG_DIM_SECONDS);
    rg_report_figure(report, "bound_ratio", "time that flops and bytes prove to be needed, over it",
                     f.bound_ratio, RG_DIM_NONE);
    rg_report_figure(report, "usd_per_hour", "cost", bill.usd_per_hour, RG_DIM_USD_PER_HOUR);
    rg_report_figure(report, "cost_per_million_output_tokens_usd",
                     "all of it per million output tokens", bill.usd_per_million_output,
                     RG_DIM_USD);
    rg_report_figure(report, "energy_per_output_token_joules", "energy per output token",
                     bill.joules_per_output_token, RG_DIM_JOULES);
    if (run->plan->limit_count > 0) {
        rg_report_line(report, "%s", "");
        rg_part_limits_table(report, run, &o->at);
    }
    rg_part_hints(report, x, json);
    rg_report_json(report, "winner", json);
    return RG_OK;
}

rg_status rg_plan_report_offline(rg_report *report, const rg_plan_answer *x, rg_err *err)
{
    const rg_plan_run *run = x->run;
    rg_report_json(report, "feasible", json_boolean(run->winner >= 0));
    rg_report_json(report, "frontier", json_array());
    if (run->winner >= 0) {
        RG_TRY(winner(report, x, err));
    } else {
        char text[512];
        rg_plan_nearest_text(run, text, sizeof text);
        rg_report_line(report, "No: nothing on the list keeps the limits; %s.", text);
        rg_report_json(report, "winner", json_null());
    }
    RG_TRY(tables(report, x, err));
    rg_part_effort(report, run);
    const int64_t held = run->winner >= 0 ? run->outcomes[run->winner].at.most_running : 0;
    if (run->requests.count < 4 * held)
        rg_report_assume(report,
                         "the winner holds %lld of them at once: with more requests (--limit) "
                         "filling and draining count for less",
                         (long long)held);
    rg_part_assumptions(report, run);
    return RG_OK;
}

/* cli/plan_report.c: the answer of a plan with traffic, as text, CSV and JSON. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan_parts.h"

static double kv_bytes(const rg_engine_rules *r)
{
    return (double)r->blocks * (double)r->block_tokens * r->kv_bytes_per_token;
}

static void winner_lines(rg_report *report, const rg_plan_answer *x, const rg_plan_bill *b)
{
    const rg_plan_run *run = x->run;
    const rg_outcome *o = &run->outcomes[run->winner];
    const rg_candidate *c = rg_part_candidate(run, run->winner);
    const rg_plan_requests *r = &run->requests;
    const rg_usage u = rg_part_usage(run, run->winner, o->replicas);
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
    const double rate = r->rate_per_s > 0 ? r->rate_per_s : rg_plan_served_per_s(&o->at);
    const double inside = rate * o->at.e2e_mean;
    const double cache =
        inside * (r->mean_prompt + 0.5 * r->mean_output) * c->rules.kv_bytes_per_token;
    rg_report_figure(report, "requests_in_system", "requests inside at once (rate x time)", inside,
                     RG_DIM_NONE);
    rg_report_figure(report, "kv_bytes_in_use", "KV memory that they hold", cache, RG_DIM_BYTES);
    rg_report_figure(report, "kv_bytes", "KV memory there is",
                     kv_bytes(&c->rules) * (double)u.others +
                         kv_bytes(&c->prefill.rules) * (double)u.prefill,
                     RG_DIM_BYTES);
    rg_report_figure(report, "utilisation", "share of time computing",
                     o->at.busy_s / o->at.replica_s, RG_DIM_NONE);
}

static void hints_of(rg_report *report, const rg_plan_answer *x, rg_plan_role role, const char *key,
                     const char *heading, json_t *winner)
{
    static const char *const names[] = {"vllm", "sglang", "tensorrt_llm"};
    const char *lines[3];
    json_t *o = json_object();
    rg_plan_launch_hints(x->arena, x->run, role, lines);
    rg_report_line(report, "%s", "");
    rg_report_line(report, "%s", heading);
    for (int i = 0; i < 3; i++) {
        if (!lines[i])
            continue;
        rg_report_line(report, "  %s", lines[i]);
        json_object_set_new(o, names[i], json_string(lines[i]));
    }
    json_object_set_new(winner, key, o);
}

void rg_part_hints(rg_report *report, const rg_plan_answer *x, json_t *winner)
{
    if (rg_part_candidate(x->run, x->run->winner)->pools.prefill == 0) {
        hints_of(report, x, RG_ROLE_ALL, "launch", "To start one replica", winner);
        return;
    }
    hints_of(report, x, RG_ROLE_PROMPTS, "launch_prefill", "To start one replica for prompts",
             winner);
    hints_of(report, x, RG_ROLE_ANSWERS, "launch", "To start one replica for answers", winner);
}

static const char *spec_form(rg_spec_kind kind)
{
    return kind == RG_SPEC_EAGLE  ? "; one layer like the model's first, and its head"
           : kind == RG_SPEC_MTP  ? "; one layer like the model's last, and its head"
           : kind == RG_SPEC_SELF ? "; a quarter of the layers"
                                  : "";
}

/* What the interval of the winner is made of. */
static void interval_words(rg_report *report, const rg_trial *t)
{
    if (t->runs > 1)
        rg_report_assume(
            report,
            "the winner is the mean of %d runs with requests of their own, twice as many "
            "and half of them to fill the fleet, its 95 %% interval that across them; what could "
            "be cheaper was tried so too",
            t->runs);
    else
        rg_report_assume(report, "one run of the requests given: 95 %% intervals are those of "
                                 "eight batches of it in a row");
}

/* Where the kernel constants of each device are from. */
static void constants_words(rg_report *report, const rg_plan_run *run)
{
    for (int m = 0; m < run->space.machine_count; m++)
        for (int i = 0; i < run->space.candidate_count; i++) {
            rg_step_context *step;
            if (rg_part_arrangement(run, i)->machine != m || run->outcomes[i].impossible ||
                rg_worker_step(run->workers[0], rg_part_candidate(run, i), &step, NULL) != RG_OK)
                continue;
            rg_report_assume(report, "%s: %s", run->space.machines[m].name,
                             rg_kernel_device_note(rg_step_kernels(step)));
            break;
        }
}

void rg_part_assumptions(rg_report *report, const rg_plan_run *run)
{
    const rg_plan *plan = run->plan;
    for (int i = 0; i < plan->limit_count; i++)
        if (plan->limits[i].assumed)
            rg_report_assume(report, "no limit on waiting was given: p99 of ttft at most 10 s");
    rg_report_assume(report,
                     "%lld requests are simulated, the same for every candidate; --limit "
                     "changes their number",
                     (long long)run->requests.count);
    if (run->requests.warm_up > 0)
        rg_report_assume(report,
                         "the first %lld of them fill the fleet and count in no latency (assumed "
                         "to be enough)",
                         (long long)run->requests.warm_up);
    if (run->winner >= 0 && !plan->offline)
        interval_words(report, &run->outcomes[run->winner].at);
    if (plan->offline)
        rg_report_assume(report, "all of them are there at the start; filling and draining count");
    else
        rg_report_assume(report,
                         "replicas behind a router that sends each request to the least loaded");
    for (int i = 0; i < plan->speculation_count; i++) {
        const rg_plan_speculation *x = &plan->speculations[i];
        if (x->rule.drafts > 0 && x->kind == RG_SPEC_NONE)
            rg_report_assume(report,
                             "%lld drafts: each right with chance %g when those before it are, at "
                             "%g of a decode step",
                             (long long)x->rule.drafts, x->rule.acceptance,
                             x->rule.draft_time_ratio);
        else if (x->rule.drafts > 0)
            rg_report_assume(report,
                             "%lld drafts by %s: each right with chance %g when those before it "
                             "are%s",
                             (long long)x->rule.drafts, rg_spec_kind_name(x->kind),
                             x->rule.acceptance, spec_form(x->kind));
    }
    if (run->requests.coverage_ratio < 1)
        rg_report_assume(report,
                         "so many requests come that %.0f %% of a fleet, %d replicas at least, is "
                         "simulated with its share of them, as if behind a router of its own",
                         100 * run->requests.coverage_ratio, RG_PLAN_LEAST_PART);
    for (int i = 0; i < run->space.machine_count; i++) {
        const rg_machine *m = &run->space.machines[i];
        if (isfinite(m->usd_per_hour) && m->source && strncmp(m->source, "assumed", 7) == 0)
            rg_report_assume(report, "%s: %.2f $/h a device is %s; --price %s=... sets it", m->name,
                             m->usd_per_hour, m->source, m->name);
        else if (isfinite(m->usd_per_hour))
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
    if (run->space.candidate_count > plan->few && !plan->exhaustive && !plan->offline)
        rg_report_assume(report,
                         "of more than %d combinations a dearer one was given up when the most "
                         "replicas with which it could still win failed: fewer are taken to fail "
                         "too (not proved; --exhaustive tries them)",
                         plan->few);
    bool dealt = false;
    for (int i = 0; i < run->space.arrangement_count; i++)
        dealt |= run->space.arrangements[i].parallel.attention_dp;
    if (dealt)
        rg_report_assume(report,
                         "attention-dp: sequences are dealt evenly over the ranks and all take the "
                         "mean length; where lengths differ much the busiest rank, for which the "
                         "others wait, is later than that (not calibrated)");
    if (run->premise_broken)
        rg_report_assume(report, "a simulated step was faster than its roofline: the bound was not "
                                 "relied on, all candidates were simulated");
    constants_words(report, run);
    rg_report_assume(report, "not validated: no measured run of this deployment is stored");
}

void rg_part_effort(rg_report *report, const rg_plan_run *run)
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
    json_t *o = rg_part_arrangement_json(run, run->nearest, t);
    rg_part_latencies_json(o, t);
    json_object_set_new(o, "limits", rg_part_limits_json(run, t));
    rg_report_json(report, "nearest", o);
    rg_part_limits_table(report, run, t);
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
        rg_part_headline(run, run->winner, &o->at, who, sizeof who);
        rg_plan_bill_of(x->arena, run, run->winner, &o->at, &bill);
        for (int i = 0; i < run->plan->limit_count && i < 2; i++) {
            rg_part_limit(&run->plan->limits[i], part, sizeof part);
            snprintf(first + strlen(first), sizeof first - strlen(first), "%s%s %s",
                     i > 0 ? ", " : "", part, rg_part_seconds(o->at.value[i], value));
        }
        rg_report_line(report, "%s (%s).", who, first);
        json_t *winner = rg_part_arrangement_json(run, run->winner, &o->at);
        rg_part_latencies_json(winner, &o->at);
        rg_part_bill_json(winner, &bill);
        json_object_set_new(winner, "limits", rg_part_limits_json(run, &o->at));
        winner_lines(report, x, &bill);
        rg_report_line(report, "%s", "");
        rg_part_limits_table(report, run, &o->at);
        rg_part_hints(report, x, winner);
        rg_report_json(report, "winner", winner);
    }
    rg_report_line(report, "%s", "");
    rg_part_runners_table(report, run);
    if (x->brief || run->winner < 0)
        rg_report_json(report, "frontier", json_array());
    else
        rg_part_frontier_table(report, x);
    if (!x->brief && run->winner >= 0)
        rg_part_swings_table(report, x);
    rg_part_effort(report, run);
    rg_part_assumptions(report, run);
}

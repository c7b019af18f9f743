/* cli/plan_parts.h: what the files of the report of a plan share. Private to them.
 *
 * Reads cli/plan.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_PLAN_PARTS_H
#define RG_CLI_PLAN_PARTS_H

#include <math.h>

#include "cli/plan.h"

static inline const rg_candidate *rg_part_candidate(const rg_plan_run *run, int i)
{
    return &run->space.candidates[i];
}

static inline const rg_arrangement *rg_part_arrangement(const rg_plan_run *run, int i)
{
    return &run->space.arrangements[rg_part_candidate(run, i)->arrangement];
}

static inline const rg_machine *rg_part_machine(const rg_plan_run *run, int i)
{
    return &run->space.machines[rg_part_arrangement(run, i)->machine];
}

static inline rg_usage rg_part_usage(const rg_plan_run *run, int i, int64_t replicas)
{
    return rg_candidate_usage(&run->space, rg_part_candidate(run, i), replicas);
}

static inline const char *rg_part_weights(const rg_arrangement *a)
{
    return a->weight_type ? a->weight_type : a->formats.weight.name;
}

/** "94.7 ms", into out. */
const char *rg_part_seconds(double value, char out[40]);
/** "8 x h100-sxm: 4 replicas of tp2, weights bf16, KV bf16", into out. */
void rg_part_headline(const rg_plan_run *run, int candidate, const rg_trial *trial, char *out,
                      size_t size);
/** "p95 ttft", into out. */
void rg_part_limit(const rg_plan_limit *limit, char *out, size_t size);
/** Why a candidate lost, into out. */
void rg_part_lost(const rg_plan_run *run, int candidate, char *out, size_t size);

/** What the plan makes least: its unit, JSON key and heading. */
rg_dim rg_part_goal_dim(const rg_plan_run *run);
const char *rg_part_goal_key(const rg_plan_run *run);
const char *rg_part_goal_heading(const rg_plan_run *run);

/** An arrangement, its latencies, limits and bill as JSON. */
json_t *rg_part_arrangement_json(const rg_plan_run *run, int candidate, const rg_trial *trial);
void rg_part_latencies_json(json_t *into, const rg_trial *trial);
json_t *rg_part_limits_json(const rg_plan_run *run, const rg_trial *trial);
void rg_part_bill_json(json_t *into, const rg_plan_bill *bill);

/** The cells that name a candidate, in this order: device, split, weights, KV, scheduler, limits on
 * sequences and on tokens. */
void rg_part_candidate_cells(rg_table *row, const rg_plan_run *run, int candidate);

/** Tables of a report. */
void rg_part_limits_table(rg_report *report, const rg_plan_run *run, const rg_trial *trial);
void rg_part_runners_table(rg_report *report, const rg_plan_run *run);
void rg_part_frontier_table(rg_report *report, const rg_plan_answer *answer);
void rg_part_swings_table(rg_report *report, const rg_plan_answer *answer);

/** How the winner is started; what was taken for granted; what the search took. */
void rg_part_hints(rg_report *report, const rg_plan_answer *answer, json_t *winner);
void rg_part_assumptions(rg_report *report, const rg_plan_run *run);
void rg_part_effort(rg_report *report, const rg_plan_run *run);

#endif

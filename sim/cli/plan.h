/* cli/plan.h: parts of the command plan. Private to cli/. */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_PLAN_H
#define RG_CLI_PLAN_H

#include "cli/args.h"
#include "plan/after.h"
#include "plan/fits.h"
#include "plan/offline.h"

/** Everything that the report of a plan with traffic is made of. */
typedef struct rg_plan_answer {
    rg_arena *arena;
    rg_plan_run *run;
    rg_plan_point *points;
    int point_count;
    rg_plan_swing *swings;
    int swing_count;
    bool brief;        /* the three were not asked for */
    double saturation; /* load that the winner carries, over the plan's */
} rg_plan_answer;

void rg_plan_report(rg_report *report, const rg_plan_answer *answer);
/** The same where all requests are there at once. Errors: none but memory. */
rg_status rg_plan_report_offline(rg_report *report, const rg_plan_answer *answer, rg_err *err);
/** One line on what is nearest to an impossible demand, for the error. */
void rg_plan_nearest_text(const rg_plan_run *run, char *out, size_t size);
/** The frontier as a figure. */
rg_status rg_plan_draw(const rg_plan_answer *answer, const char *path, rg_err *err);

void rg_plan_report_fits(rg_report *report, const rg_plan *plan, const rg_space *space,
                         const rg_fit *rows, int count);

/** All replicas are alike, or one of two pools is meant. */
typedef enum rg_plan_role { RG_ROLE_ALL, RG_ROLE_PROMPTS, RG_ROLE_ANSWERS } rg_plan_role;
/** How engines are started in the winner's arrangement: vLLM, SGLang, TensorRT-LLM, which is
 * NULL on devices that are not NVIDIA's. Options as their documentation had them in 2026 (vllm
 * serve, sglang server arguments, trtllm-serve). */
void rg_plan_launch_hints(rg_arena *arena, const rg_plan_run *run, rg_plan_role role,
                          const char *out[3]);

#endif

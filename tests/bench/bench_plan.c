/* bench_plan: screening of a plan's candidates, for instruction counts under callgrind.
 *
 * usage: bench_plan PLAN.yaml. Prints the candidates and the CPU time of making and of screening
 * them, and how many that is in a CPU second.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <time.h>

#include "plan/search.h"

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: bench_plan PLAN.yaml\n");
        return 2;
    }
    static rg_plan plan;
    static rg_plan_run run;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
    const double start = cpu_seconds();
    if (rg_plan_load(arena, argv[1], &plan, &err) != RG_OK ||
        rg_plan_prepare(arena, &plan, NULL, NULL, &run, &err) != RG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const double made = cpu_seconds();
    if (rg_plan_screen(arena, &run, &err) != RG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const double screened = cpu_seconds();
    printf("%d candidates: %.3f s to make, %.3f s to screen, %.0f in a CPU second\n",
           run.space.candidate_count, made - start, screened - made,
           run.space.candidate_count / (screened - start));
    rg_plan_release(&run);
    rg_arena_free(arena);
    return 0;
}

/* The guard over a wide grid of simulated noise: how often equal runs alarm, how often slowdowns
 * are found, and how long a pair of runs of 50 kernels takes. usage: build/tests/bench/bench_guard
 * [PAIRS]
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../unit/fit/guard_fixture.h"

static int line(const char *what, const sim_plan *plan, int pairs)
{
    rg_err err = {0};
    sim_score score;
    const clock_t start = clock();
    if (sim_many(plan, pairs, 1, &score, &err) != RG_OK) {
        fprintf(stderr, "bench_guard: %s\n", err.text);
        return 1;
    }
    const double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC / pairs;
    printf("%-14s %4d samples x %d processes, noise %4.1f %%, between %3.1f %%: ", what,
           plan->samples, plan->processes, 100 * plan->noise, 100 * plan->between);
    if (score.slowed > 0)
        printf("%4.1f %% slower found %6.2f %%, ", 100 * plan->slowdown,
               100.0 * score.found / score.slowed);
    printf("%5.2f %% of pairs alarm, %.2f ms a pair\n", 100.0 * score.alarmed / pairs, ms);
    return 0;
}

int main(int argc, char **argv)
{
    static const int samples[] = {5, 10, 20, 30, 100};
    const int pairs = argc > 1 ? atoi(argv[1]) : 100;
    int failed = 0;
    for (int shape = 0; shape < SIM_SHAPES; shape++)
        for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
            failed |= line(sim_names[shape],
                           &(sim_plan){.shape = (sim_shape)shape,
                                       .noise = 0.01,
                                       .samples = samples[i],
                                       .processes = 1,
                                       .kernels = 50},
                           pairs);
    for (int processes = 1; processes <= 5; processes += 2)
        for (int between = 2; between <= 10; between += 4)
            failed |= line("between",
                           &(sim_plan){.noise = 0.01,
                                       .between = 1e-3 * between,
                                       .samples = 20,
                                       .processes = processes,
                                       .kernels = 50},
                           pairs);
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        for (int slower = 2; slower <= 5; slower += 3)
            failed |= line("slowed",
                           &(sim_plan){.noise = 0.01,
                                       .samples = samples[i],
                                       .processes = 1,
                                       .kernels = 50,
                                       .slowdown = 0.01 * slower,
                                       .slowed = 5},
                           pairs);
    return failed;
}

/* bench_noc: the cycle engine at a share of saturation, for instruction counts under callgrind.
 *
 * usage: bench_noc K LOAD CYCLES [VCS [FLITS]]: a K x K mesh, uniform traffic of LOAD flits per
 * node and cycle. Prints flit-hops and seconds; `tests/bench/noc.sh` divides callgrind's count by
 * the flit-hops.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "noc/sim.h"

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: bench_noc K LOAD CYCLES [VCS [FLITS]]\n");
        return 2;
    }
    const int k = atoi(argv[1]), flits = argc > 5 ? atoi(argv[5]) : 1;
    const double load = atof(argv[2]);
    rg_err err;
    rg_arena *arena = rg_arena_new(256);
    rg_noc_graph *graph;
    rg_noc_pattern *uniform;
    rg_noc_sim *sim;
    rg_noc_config config = {.router = {.vcs = argc > 4 ? atoi(argv[4]) : 4,
                                       .buffer = 8,
                                       .vc_alloc_delay = 1,
                                       .switch_alloc_delay = 1,
                                       .traversal_delay = 1,
                                       .credit_delay = 1,
                                       .iterations = 1},
                            .class_count = 1,
                            .seed = 1};
    if (rg_noc_graph_cube(arena, RG_NOC_MESH, (const int[]){k, k}, 2, 1, &graph, &err) != RG_OK ||
        rg_noc_pattern_parse(arena, "uniform", graph, RG_NOWHERE, &uniform, &err) != RG_OK)
        return 1;
    config.graph = graph;
    config.classes[0] = (rg_noc_class){.pattern = uniform,
                                       .packets_per_cycle = load / flits,
                                       .flits = flits,
                                       .vc_count = config.router.vcs};
    if (rg_noc_sim_new(arena, &config, &sim, &err) != RG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    rg_noc_sim_step(sim, atoll(argv[3]));
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("flit_hops %lld seconds %.3f arena_bytes %zu\n", (long long)rg_noc_sim_flit_hops(sim),
           (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec),
           rg_arena_used_bytes(arena));
    rg_arena_free(arena);
    return 0;
}

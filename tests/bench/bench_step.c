/* bench_step: preparing a step and asking for passes, for instruction counts under callgrind.
 *
 * usage: bench_step HW MODEL PASSES: decode passes of 64 sequences at tp 4, then as many with a
 * chunk. Prints the seconds of a pass of each kind.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "step/step.h"

static double seconds_between(struct timespec a, struct timespec b)
{
    return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: bench_step HW MODEL PASSES\n");
        return 2;
    }
    const int passes = atoi(argv[3]) > 0 ? atoi(argv[3]) : 1;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(1024);
    rg_cluster *cluster;
    rg_model *model;
    rg_formats formats;
    rg_engine engine;
    rg_step_context *step;
    const rg_parallel parallel = {.tp = 4};
    if (rg_cluster_load(arena, argv[1], &cluster, &err) != RG_OK ||
        rg_model_load(arena, argv[2], &model, &err) != RG_OK ||
        rg_formats_choose(model, NULL, NULL, NULL, &formats, &err) != RG_OK ||
        rg_engine_load(arena, "vllm", &engine, &err) != RG_OK ||
        rg_step_prepare(arena, cluster, model, &formats, &parallel, &engine, NULL, &step, &err) !=
            RG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double sum = 0, seconds[2];
    for (int kind = 0; kind < 2; kind++) {
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        for (int i = 0; i < passes; i++) {
            const rg_chunk chunk = {.new_tokens = 1 + i % 4096, .past_tokens = i % 977};
            const double kv = 64.0 * (1000 + i % 7919);
            const rg_pass pass = {.chunks = &chunk,
                                  .chunk_count = kind,
                                  .decodes = 64,
                                  .tokens_per_decode = 1,
                                  .decode_kv_tokens = kv,
                                  .decode_kv_max = 9000};
            rg_step_time time;
            if (rg_step_time_of(step, &pass, &time, &err) != RG_OK) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
            }
            sum += time.total.v;
        }
        clock_gettime(CLOCK_MONOTONIC, &after);
        seconds[kind] = seconds_between(before, after) / passes;
    }
    printf("seconds_per_decode_pass %.3g seconds_per_mixed_pass %.3g checksum %.9g\n", seconds[0],
           seconds[1], sum);
    rg_arena_free(arena);
    return 0;
}

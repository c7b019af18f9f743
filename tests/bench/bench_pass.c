/* bench_pass: loading a model, preparing its operators, and filling passes, for instruction counts
 * under callgrind.
 *
 * usage: bench_pass MODEL PASSES: decode passes of 64 sequences with one prefill chunk, tp 1.
 * Prints the operators of a pass and the seconds of a fill.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "model/pass.h"

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bench_pass MODEL PASSES\n");
        return 2;
    }
    const int passes = atoi(argv[2]);
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(256);
    rg_model *model;
    rg_formats formats;
    rg_pass_plan *plan;
    const rg_shard whole = {.embedding = true, .head = true};
    if (rg_model_load(arena, argv[1], &model, &err) != RG_OK ||
        rg_formats_choose(model, NULL, NULL, NULL, &formats, &err) != RG_OK ||
        rg_pass_prepare(arena, model, &formats, &whole, &plan, &err) != RG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    rg_op *items = RG_NEW(arena, rg_op, rg_pass_plan_capacity(plan), &err);
    double flops = 0;
    int count = 0;
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < passes; i++) {
        const rg_chunk chunk = {.new_tokens = 256, .past_tokens = i % 4096};
        const rg_pass pass = {.chunks = &chunk,
                              .chunk_count = 1,
                              .decodes = 64,
                              .tokens_per_decode = 1,
                              .decode_kv_tokens = 64.0 * (1000 + i),
                              .decode_kv_max = 4096};
        count = rg_pass_fill(plan, &pass, items);
        flops += items[count - 1].flops.v;
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    const double seconds =
        (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    printf("operators %d seconds_per_fill %.3g checksum %g arena_bytes %zu\n", count,
           passes > 0 ? seconds / passes : 0.0, flops, rg_arena_used_bytes(arena));
    rg_arena_free(arena);
    return 0;
}

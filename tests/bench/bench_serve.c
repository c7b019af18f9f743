/* bench_serve: scheduler steps per CPU second of the serving simulator.
 *
 * usage: bench_serve [BATCH [REQUESTS [single]]]: a closed loop of BATCH users on vLLM's scheduler
 * with a step time that costs nothing; "single" takes every step by itself. Prints steps, CPU
 * seconds and their ratio.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "serve/serve.h"

static rg_seconds linear(void *context, const rg_pass *pass)
{
    (void)context;
    double t = 0.01 + 1e-5 * (double)pass->decodes + 1e-8 * pass->decode_kv_tokens;
    for (int i = 0; i < pass->chunk_count; i++)
        t += 2e-5 * (double)pass->chunks[i].new_tokens;
    return RG_S(t);
}

static void nothing(void *context, const struct rg_replica *replica, const struct rg_batch *batch)
{
    (void)context;
    (void)replica;
    (void)batch;
}

int main(int argc, char **argv)
{
    const int64_t batch = argc > 1 ? atoll(argv[1]) : 64;
    const rg_synth_spec spec = {
        .requests = argc > 2 ? atoll(argv[2]) : 200000,
        .arrivals = {.kind = RG_ARRIVE_CLOSED, .users = batch},
        .prompt = {.kind = RG_LENGTH_LOGNORMAL, .mean = 500, .cv = 1, .least = 1, .most = 4000},
        .output = {.kind = RG_LENGTH_LOGNORMAL, .mean = 211, .cv = 0.8, .least = 1, .most = 1500},
        .seed = 1};
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(2048);
    rg_requests *stream;
    rg_deployment d = {.rules = rg_engine_rules_default(RG_POLICY_VLLM1),
                       .constants = {.kernel_scale = 1},
                       .step = {linear, NULL, false},
                       .replicas = 1,
                       .devices_per_replica = 1};
    d.rules.blocks = 100000;
    rg_serve_result result;
    const rg_observer single = {.inspect = nothing};
    const clock_t before = clock();
    if (rg_requests_synth(arena, &spec, &stream, &err) != RG_OK ||
        rg_serve_run(arena, &d, stream, NULL, argc > 3 ? &single : NULL, 1, &result, &err) !=
            RG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    printf("steps %lld cpu_seconds %.3f steps_per_cpu_second %.0f mean_batch %.1f tokens %lld "
           "arena_bytes %zu\n",
           (long long)result.steps, seconds, (double)result.steps / seconds,
           result.batch_time / result.busy_s, (long long)result.output_tokens,
           rg_arena_used_bytes(arena));
    rg_arena_free(arena);
    return 0;
}

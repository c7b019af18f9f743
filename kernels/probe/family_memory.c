/* kernels/probe/family_memory.c: what memory gives: HBM, L2, latency, shared memory.
 *
 * Reads bench.h, ../micro.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "core/rng.h"
#include "micro.h"

/* One state for all of these families: each fills what it launches. */
typedef struct memory_state {
    rg_stream_params stream[64];
    rg_gather_params gather[64];
    rg_chase_params chase;
    rg_shared_params shared;
    const void *params[64]; /* of each set */
} memory_state;

static rg_status launch(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err)
{
    const memory_state *state = bench->state;
    return rg_gpu_launch(gpu, &bench->kernels[0], state->params[set], err);
}

static rg_status new_state(rg_arena *arena, rg_bench *out, memory_state **state, rg_err *err)
{
    *state = RG_NEW(arena, memory_state, 1, err);
    out->state = *state;
    out->launch = launch;
    out->kernel_count = 1;
    return *state ? RG_OK : RG_ERR_LIMIT;
}

/** Kernel of a stream variant with as many blocks on an SM as wanted (0: what fits). */
static rg_status stream_kernel(rg_gpu *gpu, const char *variant, int64_t blocks_per_sm,
                               rg_gpu_kernel *kernel, rg_err *err)
{
    static const char *const names[][2] = {
        {"read_1", "rg_stream_read_1"}, {"read_2", "rg_stream_read_2"},
        {"read_4", "rg_stream_read_4"}, {"read_8", "rg_stream_read_8"},
        {"write", "rg_stream_write"},   {"copy", "rg_stream_copy"},
        {"triad", "rg_stream_triad"},   {"fma", "rg_stream_fma"}};
    int shared = 64;
    if (blocks_per_sm > 0) { /* unused shared memory keeps other blocks off */
        const int64_t most = gpu->figures.shared_per_sm / blocks_per_sm - 1024;
        shared = (int)(most < gpu->figures.shared_per_block ? most : gpu->figures.shared_per_block);
        shared = shared / 256 * 256;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], variant) == 0) {
            RG_TRY(rg_gpu_kernel_get(gpu, names[i][1], RG_MICRO_THREADS, shared < 64 ? 64 : shared,
                                     kernel, err));
            kernel->grid = gpu->figures.sms * kernel->blocks_per_sm;
            return RG_OK;
        }
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "no stream variant '%s'", variant);
}

static int stream_arrays(const char *variant)
{
    return strcmp(variant, "triad") == 0 ? 3 : (strcmp(variant, "copy") == 0 ? 2 : 1);
}

/** Buffers of one set: a is written, b and c are read. */
static rg_status stream_buffers(rg_gpu *gpu, const char *variant, int64_t bytes, uint64_t seed,
                                rg_stream_params *p, rg_err *err)
{
    rg_cu_ptr arrays[3] = {0, 0, 0};
    const bool writes = strncmp(variant, "read", 4) != 0 && strcmp(variant, "fma") != 0;
    const bool reads = strcmp(variant, "write") != 0;
    const bool wanted[3] = {writes, reads, strcmp(variant, "triad") == 0};
    for (int i = 0; i < 3; i++) {
        if (!wanted[i])
            continue;
        RG_TRY(rg_gpu_alloc(gpu, (size_t)bytes, &arrays[i], err));
        if (i == 0)
            RG_TRY(rg_gpu_poison(gpu, arrays[i], (size_t)bytes, err));
        else
            RG_TRY(
                rg_gpu_fill(gpu, arrays[i], (size_t)bytes, RG_STORE_FP32, seed + (uint64_t)i, err));
    }
    rg_cu_ptr sums = 0;
    RG_TRY(rg_gpu_alloc(gpu, 4u * 65536, &sums, err));
    *p = (rg_stream_params){rg_gpu_address(arrays[0]),
                            rg_gpu_address(arrays[1]),
                            rg_gpu_address(arrays[2]),
                            rg_gpu_address(sums),
                            bytes / 16,
                            1,
                            0};
    return RG_OK;
}

static rg_status prepare_stream(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                                rg_bench *out, rg_err *err)
{
    memory_state *state;
    RG_TRY(new_state(arena, out, &state, err));
    const int64_t bytes = rg_problem_get(problem, "bytes");
    const bool l2 = strcmp(problem->kernel, "l2") == 0, mix = strcmp(problem->variant, "fma") == 0;
    RG_TRY(stream_kernel(gpu, problem->variant,
                         l2 || mix ? 0 : rg_problem_get(problem, "blocks_per_sm"), &out->kernels[0],
                         err));
    const int64_t passes = l2 ? rg_problem_get(problem, "passes") : 1;
    out->bytes = (double)bytes * stream_arrays(problem->variant) * (double)passes;
    out->set_bytes = (double)bytes * stream_arrays(problem->variant);
    out->sets = rg_bench_sets(gpu, out->set_bytes, cold && !l2);
    if (l2) { /* one block on each of so many SMs, as far as the scheduler spreads them */
        const int64_t sms = rg_problem_get(problem, "sms");
        out->kernels[0].grid = (int)(sms > 0 && sms < gpu->figures.sms ? sms : gpu->figures.sms) *
                               (sms > 0 ? 1 : out->kernels[0].blocks_per_sm);
        out->label = "read again and again: from L2 when it fits";
    }
    if (mix)
        out->flops = 2.0 * (double)rg_problem_get(problem, "fmas") * (double)bytes / 4;
    for (int s = 0; s < out->sets; s++) {
        RG_TRY(
            stream_buffers(gpu, problem->variant, bytes, 8 * (uint64_t)s, &state->stream[s], err));
        state->stream[s].passes = (int32_t)passes;
        state->stream[s].fmas = mix ? (int32_t)rg_problem_get(problem, "fmas") : 0;
        state->params[s] = &state->stream[s];
    }
    return RG_OK;
}

static bool usable_stream(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    (void)gpu;
    const int64_t bytes = rg_problem_get(problem, "bytes");
    if (bytes < 16 || bytes % 16 != 0 || bytes / 16 >= (int64_t)1 << 31) {
        snprintf(why, why_size, "bytes are a multiple of 16 below 2^35");
        return false;
    }
    return true;
}

static void problems_stream(rg_problem_list *list, rg_extent extent)
{
    static const char *const reads[] = {"read_1", "read_2", "read_4", "read_8"};
    static const char *const others[] = {"write", "copy", "triad"};
    const int64_t gib = extent == RG_EXTENT_SMALL ? 65536 : 1073741824;
    for (int r = 0; r < (extent == RG_EXTENT_SMALL ? 1 : 4); r++)
        for (int64_t blocks = 1; blocks <= (extent == RG_EXTENT_SMALL ? 1 : 8); blocks *= 2)
            rg_problem_add(list, "stream", reads[r], "uint32", "bytes", gib, "blocks_per_sm",
                           blocks, NULL);
    for (int o = 0; o < 3; o++)
        rg_problem_add(list, "stream", others[o], "float32", "bytes", gib, "blocks_per_sm",
                       (int64_t)0, NULL);
}

static void problems_mix(rg_problem_list *list, rg_extent extent)
{
    const bool small = extent == RG_EXTENT_SMALL;
    for (int64_t fmas = 1; fmas <= (small ? 1 : 1024); fmas *= 2)
        rg_problem_add(list, "mix", "fma", "float32", "bytes", (int64_t)(small ? 65536 : 536870912),
                       "fmas", fmas, NULL);
}

static void problems_l2(rg_problem_list *list, rg_extent extent)
{
    if (extent == RG_EXTENT_SMALL) {
        rg_problem_add(list, "l2", "read_4", "uint32", "bytes", (int64_t)65536, "passes",
                       (int64_t)2, "sms", (int64_t)0, NULL);
        return;
    }
    for (int64_t mib = 1; mib <= 256; mib *= 2) /* capacity */
        rg_problem_add(list, "l2", "read_4", "uint32", "bytes", mib << 20, "passes",
                       (int64_t)(512 / mib > 4 ? 512 / mib : 4), "sms", (int64_t)0, NULL);
    for (int64_t mib = 24; mib <= 96; mib *= 2)
        rg_problem_add(list, "l2", "read_4", "uint32", "bytes", mib << 20, "passes", (int64_t)8,
                       "sms", (int64_t)0, NULL);
    for (int64_t sms = 1; sms <= 128; sms *= 2) /* bandwidth by SMs */
        rg_problem_add(list, "l2", "read_8", "uint32", "bytes", (int64_t)8 << 20, "passes",
                       (int64_t)4, "sms", sms, NULL);
}

/* Gather. */
static rg_status prepare_gather(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                                rg_bench *out, rg_err *err)
{
    memory_state *state;
    RG_TRY(new_state(arena, out, &state, err));
    const int64_t bytes = rg_problem_get(problem, "bytes"), run = rg_problem_get(problem, "run");
    const uint32_t runs = (uint32_t)(bytes / run);
    uint32_t *order = RG_NEW(arena, uint32_t, runs, err);
    if (!order)
        return RG_ERR_LIMIT;
    rg_rng rng;
    rg_rng_seed(&rng, 11, 0);
    for (uint32_t i = 0; i < runs; i++)
        order[i] = i;
    for (uint32_t i = runs - 1; i > 0; i--) {
        const uint32_t j = rg_rng_below(&rng, i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    RG_TRY(rg_gpu_kernel_get(gpu, "rg_gather", RG_MICRO_THREADS, 64, &out->kernels[0], err));
    out->kernels[0].grid = gpu->figures.sms * out->kernels[0].blocks_per_sm;
    out->bytes = (double)runs * (double)run;
    out->set_bytes = out->bytes;
    out->sets = rg_bench_sets(gpu, out->set_bytes, cold);
    for (int s = 0; s < out->sets; s++) {
        rg_cu_ptr from = 0, table = 0, sums = 0;
        RG_TRY(rg_gpu_alloc(gpu, (size_t)bytes, &from, err));
        RG_TRY(rg_gpu_fill(gpu, from, (size_t)bytes, RG_STORE_RAW, (uint64_t)s, err));
        RG_TRY(rg_gpu_upload(gpu, order, 4u * runs, &table, err));
        RG_TRY(rg_gpu_alloc(gpu, 4u * (size_t)out->kernels[0].grid, &sums, err));
        state->gather[s] =
            (rg_gather_params){rg_gpu_address(from), rg_gpu_address(table),
                               rg_gpu_address(sums), (int64_t)runs * (run / 16),
                               (int32_t)(run / 16),  rg_divisor_make((uint32_t)(run / 16))};
        state->params[s] = &state->gather[s];
    }
    return RG_OK;
}

static bool usable_gather(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    const int64_t run = rg_problem_get(problem, "run");
    if (run < 16 || run % 16 != 0 || rg_problem_get(problem, "bytes") < run) {
        snprintf(why, why_size, "run is a multiple of 16 bytes, bytes at least one run");
        return false;
    }
    return usable_stream(gpu, problem, why, why_size);
}

static void problems_gather(rg_problem_list *list, rg_extent extent)
{
    const bool small = extent == RG_EXTENT_SMALL;
    for (int64_t run = 32; run <= (small ? 32 : 65536); run *= 2)
        rg_problem_add(list, "gather", "runs", "uint32", "bytes",
                       (int64_t)(small ? 65536 : 1073741824), "run", run, NULL);
}

/* Latency. */
static rg_status prepare_chase(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                               rg_bench *out, rg_err *err)
{
    (void)cold;
    memory_state *state;
    RG_TRY(new_state(arena, out, &state, err));
    const uint32_t places = (uint32_t)(rg_problem_get(problem, "bytes") / 128);
    uint32_t *next = RG_NEW(arena, uint32_t, 32 * (size_t)places, err);
    uint32_t *order = RG_NEW(arena, uint32_t, places, err);
    if (!next || !order)
        return RG_ERR_LIMIT;
    rg_rng rng;
    rg_rng_seed(&rng, 12, 0);
    for (uint32_t i = 0; i < places; i++)
        order[i] = i;
    for (uint32_t i = places - 1; i > 1; i--) { /* one cycle through all places, from 0 */
        const uint32_t j = 1 + rg_rng_below(&rng, i), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (uint32_t i = 0; i < places; i++)
        next[32 * (size_t)order[i]] = order[(i + 1) % places];
    rg_cu_ptr memory = 0, end = 0;
    RG_TRY(rg_gpu_upload(gpu, next, 128 * (size_t)places, &memory, err));
    RG_TRY(rg_gpu_alloc(gpu, 4, &end, err));
    RG_TRY(rg_gpu_kernel_get(gpu, "rg_chase", RG_STAMP_THREADS, 0, &out->kernels[0], err));
    const int64_t steps = rg_problem_get(problem, "steps");
    state->chase = (rg_chase_params){rg_gpu_address(memory), rg_gpu_address(end), (int32_t)steps};
    state->params[0] = &state->chase;
    out->set_bytes = 128.0 * places;
    out->sets = 1;
    out->per_launch = (int)steps;
    out->label = "time of one dependent load past L1";
    return RG_OK;
}

static void problems_chase(rg_problem_list *list, rg_extent extent)
{
    const bool small = extent == RG_EXTENT_SMALL;
    for (int64_t kib = 64; kib <= (small ? 64 : 1048576); kib *= 4)
        rg_problem_add(list, "latency", "chase", "uint32", "bytes", kib << 10, "steps",
                       (int64_t)(small ? 16 : 8192), NULL);
}

/* Shared memory. */
static rg_status prepare_shared(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                                rg_bench *out, rg_err *err)
{
    (void)cold;
    memory_state *state;
    rg_cu_ptr sums = 0;
    RG_TRY(new_state(arena, out, &state, err));
    RG_TRY(rg_gpu_kernel_get(gpu, "rg_shared_read", RG_MICRO_THREADS, RG_SHARED_READS_BYTES,
                             &out->kernels[0], err));
    out->kernels[0].grid = gpu->figures.sms * out->kernels[0].blocks_per_sm;
    RG_TRY(rg_gpu_alloc(gpu, 4u * (size_t)out->kernels[0].grid, &sums, err));
    const int32_t loops = (int32_t)rg_problem_get(problem, "loops");
    state->shared =
        (rg_shared_params){rg_gpu_address(sums), loops, (int32_t)rg_problem_get(problem, "stride")};
    state->params[0] = &state->shared;
    out->bytes = 64.0 * loops * RG_MICRO_THREADS * out->kernels[0].grid;
    out->set_bytes = 4.0 * out->kernels[0].grid;
    out->sets = 1;
    out->label = "bytes are those read from shared memory";
    return RG_OK;
}

static void problems_shared(rg_problem_list *list, rg_extent extent)
{
    const bool small = extent == RG_EXTENT_SMALL;
    for (int64_t stride = 1; stride <= (small ? 1 : 8); stride *= 2)
        rg_problem_add(list, "shared", "read", "uint32", "loops", (int64_t)(small ? 4 : 4096),
                       "stride", stride, NULL);
}

/* Checks. */
static rg_status sums_equal(rg_arena *arena, rg_gpu *gpu, const void *device_sums, int blocks,
                            uint32_t want, bool *equal, rg_err *err)
{
    uint32_t *sums = RG_NEW(arena, uint32_t, blocks, err), total = 0;
    if (!sums)
        return RG_ERR_LIMIT;
    RG_TRY(rg_gpu_download(gpu, sums, (rg_cu_ptr)(uintptr_t)device_sums, 4u * (size_t)blocks, err));
    for (int b = 0; b < blocks; b++)
        total += sums[b];
    *equal = total == want;
    return RG_OK;
}

static uint32_t *words_of(rg_arena *arena, rg_store kind, uint64_t seed, size_t count, rg_err *err)
{
    uint32_t *words = RG_NEW(arena, uint32_t, count, err);
    for (size_t i = 0; words && i < count; i++)
        words[i] = rg_store_word(kind, seed, i);
    return words;
}

static rg_status check_stream(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    static const char *const variants[] = {"read_1", "read_2", "read_4", "read_8",
                                           "write",  "copy",   "triad"};
    const int64_t bytes = 16 * 4099; /* a prime, so that no unroll divides it */
    const size_t words = (size_t)bytes / 4;
    for (int v = 0; v < 7; v++) {
        const int mark = rg_gpu_mark(gpu);
        rg_gpu_kernel kernel;
        rg_stream_params p;
        RG_TRY(stream_kernel(gpu, variants[v], v % 3, &kernel, err));
        kernel.grid = 3;
        RG_TRY(stream_buffers(gpu, variants[v], bytes, 50, &p, err));
        p.passes = 3;
        const uint32_t *b = words_of(arena, RG_STORE_FP32, 51, words, err);
        const uint32_t *c = words_of(arena, RG_STORE_FP32, 52, words, err);
        uint32_t *got = RG_NEW(arena, uint32_t, words, err);
        if (!b || !c || !got)
            return RG_ERR_LIMIT;
        RG_TRY(rg_gpu_launch(gpu, &kernel, &p, err));
        double wrong = 0;
        if (v < 4) {
            bool equal = false;
            RG_TRY(sums_equal(arena, gpu, p.sums, kernel.grid,
                              rg_stream_reference_sum(b, (int64_t)words, 3), &equal, err));
            wrong = !equal;
        } else {
            RG_TRY(rg_gpu_download(gpu, got, (rg_cu_ptr)(uintptr_t)p.a, (size_t)bytes, err));
            for (size_t i = 0; i < words; i++) {
                const uint32_t x = ((uint32_t)(i / 4) * 0x9e3779b9u) ^ ((uint32_t)(i / 4) >> 15);
                const uint32_t written[] = {x, x * 0x85ebca6bu, x ^ 0xc2b2ae35u, x * 0x27d4eb2fu};
                const double sum = rg_bits_float(b[i]) + 3.0 * rg_bits_float(c[i]);
                if (v == 4)
                    wrong += got[i] != written[i % 4];
                else if (v == 5)
                    wrong += got[i] != b[i];
                else /* one or two roundings, as the compiler fuses */
                    wrong += !(fabs(rg_bits_float(got[i]) - sum) <= 2e-6);
            }
        }
        rg_check_add(log, wrong, 0, "stream %s: every element", variants[v]);
        rg_gpu_release_to(gpu, mark);
    }
    return RG_OK;
}

static rg_status check_gather(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    static const int64_t runs[] = {16, 48, 4096};
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    for (int r = 0; list && r < 3; r++) {
        const int mark = rg_gpu_mark(gpu);
        const int64_t bytes = runs[r] * (99999 / runs[r]);
        rg_problem *problem =
            rg_problem_add(list, "gather", "runs", "uint32", "bytes", bytes, "run", runs[r], NULL);
        rg_bench bench = {.per_launch = 1};
        bool equal = false;
        RG_TRY(prepare_gather(arena, gpu, problem, false, &bench, err));
        RG_TRY(launch(gpu, &bench, 0, err));
        const memory_state *state = bench.state;
        const uint32_t *words = words_of(arena, RG_STORE_RAW, 0, (size_t)bytes / 4, err);
        if (!words)
            return RG_ERR_LIMIT;
        RG_TRY(sums_equal(arena, gpu, state->gather[0].sums, bench.kernels[0].grid,
                          rg_stream_reference_sum(words, bytes / 4, 1), &equal, err));
        rg_check_add(log, !equal, 0, "gather runs of %lld bytes: each once", (long long)runs[r]);
        rg_gpu_release_to(gpu, mark);
    }
    return list ? RG_OK : RG_ERR_LIMIT;
}

static rg_status check_chase(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    const int mark = rg_gpu_mark(gpu);
    rg_problem *problem = rg_problem_add(list, "latency", "chase", "uint32", "bytes",
                                         (int64_t)128 * 97, "steps", (int64_t)97, NULL);
    rg_bench bench = {.per_launch = 1};
    RG_TRY(prepare_chase(arena, gpu, problem, false, &bench, err));
    const memory_state *state = bench.state;
    uint32_t end[3] = {1, 1, 1};
    rg_chase_params p = state->chase;
    for (int i = 0; i < 3; i++) { /* 96 and 97 steps, and 0 */
        p.steps = i == 2 ? 0 : 96 + i;
        RG_TRY(rg_gpu_launch(gpu, &bench.kernels[0], &p, err));
        RG_TRY(rg_gpu_download(gpu, &end[i], (rg_cu_ptr)(uintptr_t)p.end, 4, err));
    }
    rg_check_add(log, !(end[0] != 0 && end[1] == 0 && end[2] == 0), 0,
                 "latency: the chain is one cycle through all places");
    rg_gpu_release_to(gpu, mark);
    return RG_OK;
}

static rg_status check_shared(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    for (int64_t stride = 1; list && stride <= 4; stride *= 2) {
        const int mark = rg_gpu_mark(gpu);
        rg_problem *problem = rg_problem_add(list, "shared", "read", "uint32", "loops", (int64_t)5,
                                             "stride", stride, NULL);
        rg_bench bench = {.per_launch = 1};
        bool equal = false;
        RG_TRY(prepare_shared(arena, gpu, problem, false, &bench, err));
        bench.kernels[0].grid = 1;
        RG_TRY(launch(gpu, &bench, 0, err));
        uint32_t want = 0;
        const uint32_t count = RG_SHARED_READS_BYTES / 16;
        for (uint32_t t = 0; t < RG_MICRO_THREADS; t++)
            for (uint32_t l = 0; l < 5; l++)
                for (uint32_t u = 0; u < 4; u++)
                    want +=
                        (t * (uint32_t)stride % count + 8 * l + u * RG_MICRO_THREADS) % count + 6;
        const memory_state *state = bench.state;
        RG_TRY(sums_equal(arena, gpu, state->shared.sums, 1, want, &equal, err));
        rg_check_add(log, !equal, 0, "shared memory, stride %lld", (long long)stride);
        rg_gpu_release_to(gpu, mark);
    }
    return list ? RG_OK : RG_ERR_LIMIT;
}

const rg_family rg_family_stream = {
    .name = "stream",
    .summary = "HBM read, write, copy, triad against bytes in flight",
    .problems = problems_stream,
    .usable = usable_stream,
    .prepare = prepare_stream,
    .check = check_stream,
};
const rg_family rg_family_mix = {
    .name = "mix",
    .summary = "reads with 1 to 1024 multiply-adds for each float: the roofline's corner",
    .problems = problems_mix,
    .usable = usable_stream,
    .prepare = prepare_stream,
};
const rg_family rg_family_gather = {
    .name = "gather",
    .summary = "HBM read in runs of 32 B to 64 KiB in random order",
    .problems = problems_gather,
    .usable = usable_gather,
    .prepare = prepare_gather,
    .check = check_gather,
};
const rg_family rg_family_l2 = {
    .name = "l2",
    .summary = "L2 read bandwidth by footprint and by number of SMs",
    .problems = problems_l2,
    .usable = usable_stream,
    .prepare = prepare_stream,
};
const rg_family rg_family_latency = {
    .name = "latency",
    .summary = "time of a dependent load by footprint: L2 near and far, HBM",
    .problems = problems_chase,
    .prepare = prepare_chase,
    .check = check_chase,
};
const rg_family rg_family_shared = {
    .name = "shared",
    .summary = "shared-memory bandwidth, without and with bank conflicts",
    .problems = problems_shared,
    .prepare = prepare_shared,
    .check = check_shared,
};

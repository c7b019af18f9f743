/* kernels/probe/family_compute.c: peaks of the arithmetic units, and the cost of launching and
 * waiting.
 *
 * Reads bench.h, ../micro.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "bench.h"
#include "micro.h"

/* Types of the tensor families: kernel, data, multiply-adds of one MMA. */
typedef struct tensor_type {
    const char *dtype, *mma;
    rg_store store;
    double mma_flops;
} tensor_type;
static const tensor_type types[] = {
    {"bfloat16", "rg_tensor_bfloat16", RG_STORE_BF16, 2.0 * 16 * 8 * 16},
    {"float16", "rg_tensor_float16", RG_STORE_RAW, 2.0 * 16 * 8 * 16},
    {"tf32", "rg_tensor_tf32", RG_STORE_FP32, 2.0 * 16 * 8 * 8},
    {"int8", "rg_tensor_int8", RG_STORE_INT8, 2.0 * 16 * 8 * 32},
    {"fp8", "rg_tensor_fp8", RG_STORE_E4M3, 2.0 * 16 * 8 * 32},
};

typedef struct compute_state {
    rg_tensor_params tensor;
    rg_tensor90_params tensor90;
    rg_barrier_params barrier;
    rg_ping_params ping;
    rg_empty_params empty;
    const void *params;
} compute_state;

static rg_status launch(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err)
{
    (void)set;
    const compute_state *state = bench->state;
    return rg_gpu_launch(gpu, &bench->kernels[0], state->params, err);
}

static const tensor_type *find_type(const char *dtype)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].dtype, dtype) == 0)
            return &types[i];
    return NULL;
}

/* Random words of a type. Random bits are no fp16 data (they hold NaN and wild exponents): take
 * bf16 noise and write it as fp16. */
static uint32_t type_word(const tensor_type *type, uint64_t index)
{
    if (type->store != RG_STORE_RAW)
        return rg_store_word(type->store, 60, index);
    uint32_t word = 0;
    for (uint64_t i = 0; i < 2; i++) {
        /* the top 11 bits of a float are an fp16 but for the bias of the exponent */
        const float x = rg_noise(60, 2 * index + i);
        const uint32_t bits = rg_float_bits(x);
        const int exponent = (int)(bits >> 23 & 255) - 127;
        uint32_t half = bits >> 16 & 0x8000u;
        if (exponent >= -14)
            half |= (uint32_t)(exponent + 15) << 10 | (bits >> 13 & 1023u);
        word |= half << (16 * i);
    }
    return word;
}

static const float fma_factor = -0.9990234375f, fma_term = 1.375f;

static bool usable_tensor(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    const int cc = gpu->figures.major * 10 + gpu->figures.minor;
    if (strcmp(problem->variant, "wgmma") == 0 && cc != 90) {
        snprintf(why, why_size, "warpgroup MMA exists on sm_90 only, this GPU is sm_%d", cc);
        return false;
    }
    if (strcmp(problem->dtype, "fp8") == 0 && cc < 89) {
        snprintf(why, why_size, "fp8 products exist from sm_89 on, this GPU is sm_%d", cc);
        return false;
    }
    return true;
}

static rg_status prepare_wgmma(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem,
                               compute_state *state, rg_bench *out, rg_err *err)
{
    (void)arena;
    const bool fp8 = strcmp(problem->dtype, "fp8") == 0;
    rg_cu_ptr tiles = 0, sums = 0;
    RG_TRY(rg_gpu_kernel_get(gpu, fp8 ? "rg_tensor90_fp8" : "rg_tensor90_bfloat16",
                             RG_TENSOR90_THREADS, RG_TENSOR90_BYTES, &out->kernels[0], err));
    out->kernels[0].grid = gpu->figures.sms;
    RG_TRY(rg_gpu_alloc(gpu, RG_TENSOR90_BYTES, &tiles, err));
    RG_TRY(
        rg_gpu_fill(gpu, tiles, RG_TENSOR90_BYTES, fp8 ? RG_STORE_E4M3 : RG_STORE_BF16, 61, err));
    RG_TRY(rg_gpu_alloc(gpu, 4u * RG_TENSOR90_THREADS * (size_t)gpu->figures.sms, &sums, err));
    const int32_t loops = (int32_t)rg_problem_get(problem, "loops");
    state->tensor90 = (rg_tensor90_params){rg_gpu_address(tiles), rg_gpu_address(sums), loops};
    state->params = &state->tensor90;
    /* two warpgroups a block, 4 steps of 64 x 256 x (32 bytes) a loop */
    out->flops = 2.0 * 64 * 256 * (fp8 ? 32 : 16) * 4 * 2 * loops * gpu->figures.sms;
    return RG_OK;
}

static rg_status prepare_tensor(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                                rg_bench *out, rg_err *err)
{
    (void)cold;
    compute_state *state = RG_NEW(arena, compute_state, 1, err);
    if (!state)
        return RG_ERR_LIMIT;
    out->state = state;
    out->launch = launch;
    out->kernel_count = 1;
    out->sets = 1;
    out->set_bytes = 4096;
    out->label = "operands in registers or shared memory, random data";
    if (strcmp(problem->variant, "wgmma") == 0)
        return prepare_wgmma(arena, gpu, problem, state, out, err);
    const bool fma = strcmp(problem->variant, "fma") == 0;
    const tensor_type *type = fma ? &types[2] : find_type(problem->dtype);
    if (!type)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "no tensor kernel for type '%s'",
                       problem->dtype);
    RG_TRY(rg_gpu_kernel_get(gpu, fma ? "rg_fma_float32" : type->mma, RG_MICRO_THREADS, 0,
                             &out->kernels[0], err));
    rg_gpu_kernel *kernel = &out->kernels[0];
    kernel->grid = gpu->figures.sms * kernel->blocks_per_sm;
    uint32_t words[32 * RG_TENSOR_WORDS];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = type_word(type, i);
    if (fma) { /* x = a x + b stays bounded and keeps changing sign */
        words[0] = rg_float_bits(fma_factor);
        words[1] = rg_float_bits(fma_term);
    }
    rg_cu_ptr fragments = 0, sums = 0;
    RG_TRY(rg_gpu_upload(gpu, words, sizeof words, &fragments, err));
    RG_TRY(rg_gpu_alloc(gpu, 16u * RG_MICRO_THREADS * (size_t)kernel->grid, &sums, err));
    const int32_t loops = (int32_t)rg_problem_get(problem, "loops");
    state->tensor = (rg_tensor_params){rg_gpu_address(fragments), rg_gpu_address(sums), loops};
    state->params = &state->tensor;
    const double threads = (double)kernel->grid * RG_MICRO_THREADS;
    out->flops = fma ? 2.0 * RG_TENSOR_SUMS * loops * threads
                     : type->mma_flops * RG_TENSOR_SUMS * loops * threads / 32;
    return RG_OK;
}

static void problems_tensor(rg_problem_list *list, rg_extent extent)
{
    const int64_t loops = extent == RG_EXTENT_SMALL ? 2 : 4096;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        rg_problem_add(list, "tensor", "mma", types[t].dtype, "loops", loops, NULL);
    rg_problem_add(list, "tensor", "wgmma", "bfloat16", "loops", loops, NULL);
    rg_problem_add(list, "tensor", "wgmma", "fp8", "loops", loops, NULL);
    rg_problem_add(list, "tensor", "fma", "float32", "loops", loops, NULL);
}

static rg_status check_mma(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem,
                           rg_check_log *log, rg_err *err)
{
    rg_bench bench = {.per_launch = 1};
    RG_TRY(prepare_tensor(arena, gpu, problem, false, &bench, err));
    RG_TRY(launch(gpu, &bench, 0, err));
    const compute_state *state = bench.state;
    const tensor_type *type = find_type(problem->dtype);
    const size_t threads = (size_t)bench.kernels[0].grid * RG_MICRO_THREADS;
    float *got = RG_NEW(arena, float, 4 * threads, err);
    double *want = RG_NEW(arena, double, 4 * threads, err);
    uint32_t words[32 * RG_TENSOR_WORDS];
    if (!got || !want)
        return RG_ERR_LIMIT;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = type_word(type, i);
    RG_TRY(rg_gpu_download(gpu, got, (rg_cu_ptr)(uintptr_t)state->tensor.out, 16 * threads, err));
    for (size_t i = 0; i < 4 * threads; i++) {
        const int lane = (int)(i / 4 % 32), e = (int)(i % 4);
        want[i] = state->tensor.loops * rg_tensor_reference(words, type->store,
                                                            lane / 4 + (e >= 2 ? 8 : 0),
                                                            2 * (lane % 4) + (e & 1));
    }
    /* 16 fp32 additions of 2^-24 each; fp8 on sm_90 accumulates with 13 bits or so inside an MMA */
    const double limit = strcmp(problem->dtype, "fp8") == 0 ? 2e-3 : 1e-5;
    rg_check_add(log, rg_check_error(got, want, 4 * threads), limit, "tensor mma %s",
                 problem->dtype);
    return RG_OK;
}

/* The sum of all of a product's elements is that of column sums times row sums. */
static rg_status check_wgmma(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem,
                             rg_check_log *log, rg_err *err)
{
    rg_bench bench = {.per_launch = 1};
    const bool fp8 = strcmp(problem->dtype, "fp8") == 0;
    RG_TRY(prepare_tensor(arena, gpu, problem, false, &bench, err));
    bench.kernels[0].grid = 1;
    RG_TRY(launch(gpu, &bench, 0, err));
    const compute_state *state = bench.state;
    float got[RG_TENSOR90_THREADS];
    RG_TRY(rg_gpu_download(gpu, got, (rg_cu_ptr)(uintptr_t)state->tensor90.out, sizeof got, err));
    double want = 0, sum = 0, scale = 0;
    for (int k = 0; k < 128 / (fp8 ? 1 : 2); k++) {
        double columns[2] = {0, 0}, magnitude[2] = {0, 0};
        for (int row = 0; row < 320; row++) {
            /* the 128-byte swizzle: 16-byte chunks of a row change places by row % 8 */
            const int byte = k * (fp8 ? 1 : 2);
            const size_t at = (size_t)row * 128 + (size_t)(byte ^ ((row % 8) << 4));
            const uint32_t word = rg_store_word(fp8 ? RG_STORE_E4M3 : RG_STORE_BF16, 61, at / 4);
            const double x = fp8 ? (double)rg_e4m3_value((uint8_t)(word >> (8 * (at % 4))))
                                 : (double)rg_bf16_value((uint16_t)(word >> (8 * (at % 4))));
            columns[row >= 64] += x;
            magnitude[row >= 64] += fabs(x);
        }
        want += columns[0] * columns[1];
        scale += magnitude[0] * magnitude[1];
    }
    for (int t = 0; t < 128; t++)
        sum += got[t];
    const double loops = state->tensor90.loops;
    rg_check_add(log, fabs(sum - loops * want) / (loops * scale), fp8 ? 1e-3 : 1e-6,
                 "tensor wgmma %s: sum of all elements", problem->dtype);
    return RG_OK;
}

static rg_status check_fma(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem,
                           rg_check_log *log, rg_err *err)
{
    rg_bench bench = {.per_launch = 1};
    RG_TRY(prepare_tensor(arena, gpu, problem, false, &bench, err));
    RG_TRY(launch(gpu, &bench, 0, err));
    const compute_state *state = bench.state;
    const size_t threads = (size_t)bench.kernels[0].grid * RG_MICRO_THREADS;
    float *got = RG_NEW(arena, float, 4 * threads, err);
    if (!got)
        return RG_ERR_LIMIT;
    RG_TRY(rg_gpu_download(gpu, got, (rg_cu_ptr)(uintptr_t)state->tensor.out, 16 * threads, err));
    double worst = 0;
    for (size_t t = 0; t < threads; t++) {
        double want = 0;
        for (int s = 0; s < RG_TENSOR_SUMS; s++) {
            double x = (double)(t % RG_MICRO_THREADS) + s;
            for (int l = 0; l < state->tensor.loops; l++)
                x = x * fma_factor + fma_term;
            want += x;
        }
        worst = fmax(worst, fabs(got[4 * t] - want) / fmax(fabs(want), 1));
    }
    rg_check_add(log, worst, 1e-5, "tensor fma float32");
    return RG_OK;
}

static rg_status check_tensor(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    problems_tensor(list, RG_EXTENT_SMALL);
    for (int i = 0; i < list->count; i++) {
        const rg_problem *problem = &list->items[i];
        char why[128];
        const int mark = rg_gpu_mark(gpu);
        if (!usable_tensor(gpu, problem, why, sizeof why))
            rg_check_skip(log, why, "tensor %s %s", problem->variant, problem->dtype);
        else if (strcmp(problem->variant, "mma") == 0)
            RG_TRY(check_mma(arena, gpu, problem, log, err));
        else if (strcmp(problem->variant, "wgmma") == 0)
            RG_TRY(check_wgmma(arena, gpu, problem, log, err));
        else
            RG_TRY(check_fma(arena, gpu, problem, log, err));
        rg_gpu_release_to(gpu, mark);
    }
    return RG_OK;
}

/* Launches and waits. */
static rg_status prepare_launch(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                                rg_bench *out, rg_err *err)
{
    (void)cold;
    compute_state *state = RG_NEW(arena, compute_state, 1, err);
    if (!state)
        return RG_ERR_LIMIT;
    const int32_t rounds = (int32_t)rg_problem_get(problem, "rounds");
    rg_cu_ptr memory = 0;
    RG_TRY(rg_gpu_alloc(gpu, 512, &memory, err));
    RG_CU(gpu->cuda, cuMemsetD8Async, (memory, 0, 512, gpu->stream), err);
    uint32_t *words = rg_gpu_address(memory);
    out->state = state;
    out->launch = launch;
    out->kernel_count = 1;
    out->sets = 1;
    out->set_bytes = 512;
    rg_gpu_kernel *kernel = &out->kernels[0];
    if (strcmp(problem->variant, "grid_barrier") == 0) {
        RG_TRY(rg_gpu_kernel_get(gpu, "rg_grid_barrier", RG_MICRO_THREADS, 0, kernel, err));
        kernel->grid = gpu->figures.sms;
        kernel->cooperative = true;
        state->barrier = (rg_barrier_params){words, words + 32, rounds};
        state->params = &state->barrier;
        out->per_launch = rounds;
        out->label = "time of one barrier of one block an SM, launch included / rounds";
    } else if (strcmp(problem->variant, "ping_pong") == 0) {
        RG_TRY(rg_gpu_kernel_get(gpu, "rg_ping_pong", RG_PING_THREADS, 0, kernel, err));
        kernel->grid = 2;
        kernel->cooperative = true;
        state->ping = (rg_ping_params){words, rounds};
        state->params = &state->ping;
        out->per_launch = rounds;
        out->label = "time of one flag there and back between two SMs";
    } else {
        RG_TRY(rg_gpu_kernel_get(gpu, "rg_empty", RG_STAMP_THREADS, 0, kernel, err));
        state->empty = (rg_empty_params){words};
        state->params = &state->empty;
        out->no_graph = strcmp(problem->variant, "stream") == 0;
        out->must_graph = !out->no_graph;
        out->label = out->no_graph ? "one launch call after the other" : "one node of a graph";
    }
    return RG_OK;
}

static bool usable_launch(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    if (!gpu->figures.cooperative && strcmp(problem->variant, "stream") != 0 &&
        strcmp(problem->variant, "graph") != 0) {
        snprintf(why, why_size, "this GPU cannot launch cooperatively");
        return false;
    }
    return rg_problem_get(problem, "rounds") > 0;
}

static void problems_launch(rg_problem_list *list, rg_extent extent)
{
    static const char *const variants[] = {"stream", "graph", "grid_barrier", "ping_pong"};
    for (int v = 0; v < 4; v++)
        rg_problem_add(list, "launch", variants[v], "uint32", "rounds",
                       (int64_t)(v < 2 ? 1 : (extent == RG_EXTENT_SMALL ? 4 : 1000)), NULL);
}

static rg_status check_launch(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    problems_launch(list, RG_EXTENT_SMALL);
    for (int i = 2; i < 4; i++) { /* three launches of four rounds: counts go on */
        const int mark = rg_gpu_mark(gpu);
        rg_bench bench = {.per_launch = 1};
        uint32_t words[64];
        char why[128];
        if (!usable_launch(gpu, &list->items[i], why, sizeof why)) {
            rg_check_skip(log, why, "launch %s", list->items[i].variant);
            continue;
        }
        RG_TRY(prepare_launch(arena, gpu, &list->items[i], false, &bench, err));
        for (int l = 0; l < 3; l++)
            RG_TRY(launch(gpu, &bench, 0, err));
        const compute_state *state = bench.state;
        const uint32_t *at = i == 2 ? state->barrier.arrived : state->ping.flags;
        RG_TRY(rg_gpu_download(gpu, words, (rg_cu_ptr)(uintptr_t)at, sizeof words, err));
        const uint32_t arrivals = 12u * (i == 2 ? (uint32_t)bench.kernels[0].grid : 1u);
        rg_check_add(log, (words[0] != arrivals) + (words[32] != 12), 0,
                     "launch %s: all rounds of three launches", list->items[i].variant);
        rg_gpu_release_to(gpu, mark);
    }
    return RG_OK;
}

const rg_family rg_family_tensor = {
    .name = "tensor",
    .summary = "peak of tensor cores by type (mma.sync, warpgroup MMA) and of fp32 units",
    .problems = problems_tensor,
    .usable = usable_tensor,
    .prepare = prepare_tensor,
    .check = check_tensor,
};
const rg_family rg_family_launch = {
    .name = "launch",
    .summary = "cost of a launch, a graph node, a grid barrier, a flag between SMs",
    .problems = problems_launch,
    .usable = usable_launch,
    .prepare = prepare_launch,
    .check = check_launch,
};

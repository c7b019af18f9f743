/* kernels/probe/family_gemm.c: matrix products: mma.sync, sm_90a, and cuBLASLt beside them.
 *
 * Reads bench.h, cublaslt.h, ../gemm.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cublaslt.h"
#include "gemm.h"

typedef enum gemm_path { PATH_MMA, PATH_SM90, PATH_CUBLASLT, PATH_CUBLASLT_BEST } gemm_path;

typedef struct gemm_plan {
    char name[64];
    gemm_path path;
    rg_store store;
    int32_t m, n, k, tile_m, tile_n;
    int element_bytes;
} gemm_plan;

typedef struct gemm_set {
    rg_gemm_params mma;
    rg_gemm_sm90_params sm90;
    rg_cu_ptr x, w, y;
} gemm_set;

typedef struct gemm_state {
    gemm_plan plan;
    rg_lt_plan lt;
    gemm_set sets[64];
} gemm_state;

static bool is_wide(int32_t m, int32_t n, int32_t sms)
{
    return (int64_t)((m + 127) / 128) * ((n + 127) / 128) >= sms;
}

static void make_plan(const rg_gpu *gpu, const rg_problem *problem, gemm_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->store = strncmp(problem->dtype, "fp8", 3) == 0
                      ? RG_STORE_E4M3
                      : (strncmp(problem->dtype, "int8", 4) == 0 ? RG_STORE_INT8 : RG_STORE_BF16);
    plan->element_bytes = plan->store == RG_STORE_BF16 ? 2 : 1;
    plan->m = (int32_t)rg_problem_get(problem, "m");
    plan->n = (int32_t)rg_problem_get(problem, "n");
    plan->k = (int32_t)rg_problem_get(problem, "k");
    const char *type =
        plan->store == RG_STORE_E4M3 ? "fp8" : (plan->store == RG_STORE_INT8 ? "int8" : "bfloat16");
    if (strcmp(problem->variant, "sm90") == 0) {
        plan->path = PATH_SM90;
        plan->tile_m = RG_GEMM90_M;
        plan->tile_n = RG_GEMM90_N;
        snprintf(plan->name, sizeof plan->name, "rg_gemm_sm90_%s", type);
    } else if (strncmp(problem->variant, "mma", 3) == 0) {
        /* the larger tile where it fills the SMs */
        const bool wide = is_wide(plan->m, plan->n, gpu->figures.sms);
        plan->path = PATH_MMA;
        plan->tile_m = wide ? 128 : 64;
        plan->tile_n = wide && plan->store != RG_STORE_E4M3 ? 128 : 64;
        snprintf(plan->name, sizeof plan->name, "rg_gemm_%s_%d", type, plan->tile_m);
    } else {
        plan->path = strcmp(problem->variant, "cublaslt") == 0 ? PATH_CUBLASLT : PATH_CUBLASLT_BEST;
    }
}

static bool usable(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    gemm_plan plan;
    make_plan(gpu, problem, &plan);
    const int cc = gpu->figures.major * 10 + gpu->figures.minor;
    if (plan.m < 1 || plan.n < 1 || plan.k < 1 || plan.k * plan.element_bytes % 16 != 0) {
        snprintf(why, why_size, "m, n and k must be 1 or more, k a multiple of 16 bytes");
        return false;
    }
    if (plan.path == PATH_SM90 && (cc != 90 || !gpu->cuda->cuTensorMapEncodeTiled)) {
        snprintf(why, why_size, "warpgroup MMA exists on sm_90 only, this GPU is sm_%d", cc);
        return false;
    }
    if (plan.path == PATH_SM90 && plan.n % 2 != 0) {
        snprintf(why, why_size, "the sm_90a kernel writes pairs, n must be even");
        return false;
    }
    if (plan.store == RG_STORE_E4M3 && cc < 89) {
        snprintf(why, why_size, "fp8 products exist from sm_89 on, this GPU is sm_%d", cc);
        return false;
    }
    if (plan.path >= PATH_CUBLASLT && gpu->cuda->emulated) {
        snprintf(why, why_size, "cuBLASLt does not run on an emulated driver");
        return false;
    }
    return plan.path < PATH_CUBLASLT || rg_cublaslt_open(getenv("RIDGE_CUDA_LIB"), why, why_size);
}

static rg_status tensor_map(const rg_gpu *gpu, uint64_t map[16], rg_cu_ptr base, int64_t rows,
                            int64_t k, int element_bytes, int box_rows, rg_err *err)
{
    const uint64_t dims[] = {(uint64_t)k, (uint64_t)rows};
    const uint64_t strides[] = {(uint64_t)(k * element_bytes)};
    const uint32_t box[] = {(uint32_t)(RG_GEMM90_ROW_BYTES / element_bytes), (uint32_t)box_rows};
    const uint32_t steps[] = {1, 1};
    rg_cu_tensor_map encoded;
    RG_CU(gpu->cuda, cuTensorMapEncodeTiled,
          (&encoded, element_bytes == 2 ? RG_CU_TENSOR_BF16 : RG_CU_TENSOR_BYTES, 2,
           rg_gpu_address(base), dims, strides, box, steps, 0, RG_CU_TENSOR_SWIZZLE_128B,
           RG_CU_TENSOR_L2_256B, 0),
          err);
    memcpy(map, &encoded, sizeof encoded);
    return RG_OK;
}

/** Parameters for buffers that lie on the device. */
static rg_status set_params(const rg_gpu *gpu, const gemm_plan *plan, gemm_set *set, float factor,
                            rg_err *err)
{
    set->mma = (rg_gemm_params){rg_gpu_address(set->x),
                                rg_gpu_address(set->w),
                                rg_gpu_address(set->y),
                                plan->m,
                                plan->n,
                                plan->k,
                                factor};
    if (plan->path != PATH_SM90)
        return RG_OK;
    set->sm90 = (rg_gemm_sm90_params){
        .y = rg_gpu_address(set->y), .m = plan->m, .n = plan->n, .k = plan->k, .factor = factor};
    RG_TRY(tensor_map(gpu, set->sm90.x_map, set->x, plan->m, plan->k, plan->element_bytes,
                      RG_GEMM90_M, err));
    return tensor_map(gpu, set->sm90.w_map, set->w, plan->n, plan->k, plan->element_bytes,
                      RG_GEMM90_N, err);
}

static rg_status get_kernel(rg_gpu *gpu, const gemm_plan *plan, rg_gpu_kernel *kernel, rg_err *err)
{
    const int32_t tiles =
        (plan->m + plan->tile_m - 1) / plan->tile_m * ((plan->n + plan->tile_n - 1) / plan->tile_n);
    if (plan->path == PATH_SM90) {
        RG_TRY(rg_gpu_kernel_get(gpu, plan->name, RG_GEMM90_THREADS, RG_GEMM90_SHARED_BYTES, kernel,
                                 err));
        kernel->grid = tiles < gpu->figures.sms ? tiles : gpu->figures.sms;
        return RG_OK;
    }
    RG_TRY(rg_gpu_kernel_get(gpu, plan->name, RG_GEMM_THREADS,
                             RG_GEMM_STAGES * (plan->tile_m + plan->tile_n) * RG_GEMM_ROW_BYTES,
                             kernel, err));
    kernel->grid = tiles;
    return RG_OK;
}

static rg_status launch(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err)
{
    gemm_state *state = bench->state;
    const gemm_set *s = &state->sets[set];
    if (state->plan.path == PATH_MMA)
        return rg_gpu_launch(gpu, &bench->kernels[0], &s->mma, err);
    if (state->plan.path == PATH_SM90)
        return rg_gpu_launch(gpu, &bench->kernels[0], &s->sm90, err);
    return rg_lt_run(&state->lt, gpu, s->x, s->w, s->y, err);
}

static void release(rg_bench *bench)
{
    gemm_state *state = bench->state;
    if (state->plan.path >= PATH_CUBLASLT)
        rg_lt_plan_free(&state->lt);
}

/** Time each of the heuristic's algorithms a few times and keep the fastest. */
static rg_status choose_best(rg_gpu *gpu, gemm_state *state, rg_err *err)
{
    const rg_cuda *cuda = gpu->cuda;
    rg_cu_event start = NULL, stop = NULL;
    RG_CU(cuda, cuEventCreate, (&start, RG_CU_EVENT_DEFAULT), err);
    RG_CU(cuda, cuEventCreate, (&stop, RG_CU_EVENT_DEFAULT), err);
    float best = INFINITY;
    int chosen = 0;
    for (int a = 0; a < state->lt.algorithm_count; a++) {
        const gemm_set *s = &state->sets[0];
        float ms = INFINITY;
        state->lt.chosen = a;
        rg_err ignored = {0};
        if (rg_lt_run(&state->lt, gpu, s->x, s->w, s->y, &ignored) != RG_OK)
            continue;
        RG_CU(cuda, cuEventRecord, (start, gpu->stream), err);
        for (int i = 0; i < 5; i++)
            RG_TRY(rg_lt_run(&state->lt, gpu, s->x, s->w, s->y, err));
        RG_CU(cuda, cuEventRecord, (stop, gpu->stream), err);
        RG_TRY(rg_gpu_sync(gpu, err));
        RG_CU(cuda, cuEventElapsedTime, (&ms, start, stop), err);
        if (ms < best) {
            best = ms;
            chosen = a;
        }
    }
    state->lt.chosen = chosen;
    cuda->cuEventDestroy_v2(start);
    cuda->cuEventDestroy_v2(stop);
    return RG_OK;
}

static rg_status prepare(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                         rg_bench *out, rg_err *err)
{
    /* tensor maps want 128 bytes of alignment, an arena gives 16 */
    unsigned char *memory = RG_NEW(arena, unsigned char, sizeof(gemm_state) + 128, err);
    if (!memory)
        return RG_ERR_LIMIT;
    gemm_state *state = (gemm_state *)(memory + (128 - (uintptr_t)memory % 128));
    gemm_plan *plan = &state->plan;
    make_plan(gpu, problem, plan);
    const size_t x_bytes = (size_t)plan->m * (size_t)plan->k * (size_t)plan->element_bytes;
    const size_t w_bytes = (size_t)plan->n * (size_t)plan->k * (size_t)plan->element_bytes;
    const size_t y_bytes = 2u * (size_t)plan->m * (size_t)plan->n;
    out->flops = 2.0 * plan->m * plan->n * plan->k;
    out->bytes = (double)(x_bytes + w_bytes + y_bytes);
    out->set_bytes = out->bytes;
    out->sets = rg_bench_sets(gpu, out->set_bytes, cold);
    for (int s = 0; s < out->sets; s++) {
        gemm_set *set = &state->sets[s];
        RG_TRY(rg_gpu_alloc(gpu, x_bytes, &set->x, err));
        RG_TRY(rg_gpu_alloc(gpu, w_bytes, &set->w, err));
        RG_TRY(rg_gpu_alloc(gpu, y_bytes, &set->y, err));
        RG_TRY(rg_gpu_fill(gpu, set->x, x_bytes, plan->store, 2 * (uint64_t)s, err));
        RG_TRY(rg_gpu_fill(gpu, set->w, w_bytes, plan->store, 2 * (uint64_t)s + 1, err));
        RG_TRY(set_params(gpu, plan, set, 1.0f, err));
    }
    out->launch = launch;
    out->state = state;
    if (plan->path < PATH_CUBLASLT) {
        char *name = rg_arena_strdup(arena, plan->name, err);
        RG_TRY(get_kernel(gpu, plan, &out->kernels[0], err));
        out->kernels[0].name = name;
        out->kernel_count = 1;
        return name ? RG_OK : RG_ERR_LIMIT;
    }
    char why[512];
    rg_cublaslt *library = rg_cublaslt_open(getenv("RIDGE_CUDA_LIB"), why, sizeof why);
    if (!library)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "no cuBLASLt: %s", why);
    RG_TRY(rg_lt_plan_make(library, gpu, plan->store, plan->m, plan->n, plan->k, &state->lt, err));
    out->release = release;
    return plan->path == PATH_CUBLASLT_BEST ? choose_best(gpu, state, err) : RG_OK;
}

static void add(rg_problem_list *list, const char *variant, const char *dtype, int64_t m, int64_t n,
                int64_t k)
{
    rg_problem_add(list, "gemm", variant, dtype, "m", m, "n", n, "k", k, NULL);
}

static void problems(rg_problem_list *list, rg_extent extent)
{
    static const char *const variants[] = {"mma", "sm90", "cublaslt", "cublaslt_best"};
    /* output, gate/up, down and QKV of 8B and 70B decoders, and squares */
    static const int64_t shapes[][2] = {{4096, 4096},  {28672, 4096}, {4096, 14336},
                                        {10240, 8192}, {57344, 8192}, {8192, 28672}};
    static const int64_t rows[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
    static const int64_t squares[] = {1024, 2048, 4096, 8192};
    if (extent == RG_EXTENT_SMALL) {
        add(list, "mma", "bfloat16", 100, 96, 128);
        add(list, "sm90", "bfloat16", 100, 96, 128);
        return;
    }
    for (size_t v = 0; v < 4; v++) {
        for (size_t q = 0; q < 4; q++) {
            add(list, variants[v], "bfloat16", squares[q], squares[q], squares[q]);
            add(list, variants[v], "fp8_static", squares[q], squares[q], squares[q]);
        }
        for (size_t s = 0; s < 6; s += extent == RG_EXTENT_FULL ? 1 : 3)
            for (size_t m = 0; m < 12; m++)
                add(list, variants[v], "bfloat16", rows[m], shapes[s][0], shapes[s][1]);
    }
    for (size_t q = 0; q < 4; q++)
        add(list, "mma", "int8_static", squares[q], squares[q], squares[q]);
}

/** A product with its result poisoned first, against rows of the reference. */
static rg_status check_one(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem,
                           rg_check_log *log, rg_err *err)
{
    char why[512] = "";
    if (!usable(gpu, problem, why, sizeof why)) {
        rg_check_skip(log, why, "gemm %s %s", problem->variant, problem->dtype);
        return RG_OK;
    }
    gemm_plan plan;
    make_plan(gpu, problem, &plan);
    const int mark = rg_gpu_mark(gpu);
    const size_t x_bytes = (size_t)plan.m * (size_t)plan.k * (size_t)plan.element_bytes;
    const size_t w_bytes = (size_t)plan.n * (size_t)plan.k * (size_t)plan.element_bytes;
    const size_t count = (size_t)plan.m * (size_t)plan.n;
    uint32_t *x = RG_NEW(arena, uint32_t, x_bytes / 4, err);
    uint32_t *w = RG_NEW(arena, uint32_t, w_bytes / 4, err);
    uint16_t *got = RG_NEW(arena, uint16_t, count, err);
    float *values = RG_NEW(arena, float, count, err);
    double *want = RG_NEW(arena, double, count, err);
    if (!x || !w || !got || !values || !want)
        return RG_ERR_LIMIT;
    for (size_t i = 0; i < x_bytes / 4; i++)
        x[i] = rg_store_word(plan.store, 5, i);
    for (size_t i = 0; i < w_bytes / 4; i++)
        w[i] = rg_store_word(plan.store, 6, i);
    gemm_set set;
    rg_gpu_kernel kernel;
    rg_lt_plan lt = {0};
    const float factor = plan.path >= PATH_CUBLASLT ? 1.0f : 0.125f;
    RG_TRY(rg_gpu_upload(gpu, x, x_bytes, &set.x, err));
    RG_TRY(rg_gpu_upload(gpu, w, w_bytes, &set.w, err));
    RG_TRY(rg_gpu_alloc(gpu, 2 * count, &set.y, err));
    RG_TRY(rg_gpu_poison(gpu, set.y, 2 * count, err));
    RG_TRY(set_params(gpu, &plan, &set, factor, err));
    if (plan.path >= PATH_CUBLASLT) {
        RG_TRY(rg_lt_plan_make(rg_cublaslt_open(getenv("RIDGE_CUDA_LIB"), why, sizeof why), gpu,
                               plan.store, plan.m, plan.n, plan.k, &lt, err));
        RG_TRY(rg_lt_run(&lt, gpu, set.x, set.w, set.y, err));
    } else {
        RG_TRY(get_kernel(gpu, &plan, &kernel, err));
        RG_TRY(rg_gpu_launch(gpu, &kernel,
                             plan.path == PATH_SM90 ? (const void *)&set.sm90 : &set.mma, err));
    }
    RG_TRY(rg_gpu_download(gpu, got, set.y, 2 * count, err));
    if (lt.library)
        rg_lt_plan_free(&lt);
    rg_gemm_params host = set.mma;
    host.x = (const uint8_t *)x;
    host.w = (const uint8_t *)w;
    host.factor = factor;
    for (int32_t row = 0; row < plan.m; row++)
        rg_gemm_reference_row(&host, plan.store, row, want + (size_t)row * (size_t)plan.n);
    for (size_t i = 0; i < count; i++)
        values[i] = rg_bf16_value(got[i]);
    /* the result is rounded to bf16: 2^-9 at most, a third of it in the mean; the fp32 sum adds
     * k 2^-24 at most; Hopper's fp8 warpgroup products keep some 14 bits of a sum, 2^-13 a step */
    const bool short_sums = plan.path == PATH_SM90 && plan.store == RG_STORE_E4M3;
    rg_check_add(log, rg_check_error(values, want, count), short_sums ? 6e-3 : 2.5e-3,
                 "gemm %s %s %d x %d x %d", problem->variant, problem->dtype, plan.m, plan.n,
                 plan.k);
    rg_gpu_release_to(gpu, mark);
    return RG_OK;
}

static rg_status check(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    /* edges below, at and past a tile; k below and past the pipeline; odd n; several waves */
    static const int64_t shapes[][3] = {{1, 8, 16},     {63, 65, 48},    {64, 64, 64},
                                        {129, 33, 208}, {200, 129, 112}, {300, 514, 64},
                                        {130, 258, 720}};
    static const char *const variants[] = {"mma", "sm90", "cublaslt"};
    static const char *const types[] = {"bfloat16", "fp8_static", "int8_static"};
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    for (int v = 0; v < 3; v++)
        for (int t = 0; t < (v == 0 ? 3 : 2); t++)
            for (int s = 0; s < 7; s++) {
                const bool even = shapes[s][1] % 2 == 0;
                /* cuBLASLt wants rows of Y at 16 bytes */
                if ((v == 1 && !even) || (v == 2 && (s != 2 || t == 1)))
                    continue;
                add(list, variants[v], types[t], shapes[s][0], shapes[s][1], shapes[s][2]);
                RG_TRY(check_one(arena, gpu, &list->items[list->count - 1], log, err));
            }
    return RG_OK;
}

const rg_family rg_family_gemm = {
    .name = "gemm",
    .summary = "matrix products: mma.sync, sm_90a warpgroup MMA, cuBLASLt",
    .measured_op = "gemm",
    .problems = problems,
    .usable = usable,
    .prepare = prepare,
    .check = check,
};

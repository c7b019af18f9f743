/* kernels/probe/family_prefill.c: attention of whole prompts.
 *
 * Reads bench.h, ../prefill.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "bench.h"
#include "prefill.h"

typedef struct prefill_state {
    rg_prefill_params sets[64];
} prefill_state;

static rg_prefill_params shape(const rg_problem *problem)
{
    const int64_t dim = rg_problem_get(problem, "head_dim");
    return (rg_prefill_params){.batch = (int32_t)rg_problem_get(problem, "batch"),
                               .seq = (int32_t)rg_problem_get(problem, "seq"),
                               .heads = (int32_t)rg_problem_get(problem, "heads"),
                               .kv_heads = (int32_t)rg_problem_get(problem, "kv_heads"),
                               .causal = strcmp(problem->variant, "causal") == 0,
                               .scale = (float)(1.4426950408889634 / sqrt((double)dim))};
}

static bool usable(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    (void)gpu;
    const rg_prefill_params p = shape(problem);
    const int64_t dim = rg_problem_get(problem, "head_dim");
    if (dim != 64 && dim != 128) {
        snprintf(why, why_size, "built for head_dim 64 and 128, not %lld", (long long)dim);
        return false;
    }
    if (p.batch < 1 || p.seq < 1 || p.kv_heads < 1 || p.heads % p.kv_heads != 0) {
        snprintf(why, why_size,
                 "batch, seq and kv_heads must be 1 or more, heads a multiple of kv_heads");
        return false;
    }
    return true;
}

static rg_status get_kernel(rg_gpu *gpu, const rg_prefill_params *p, int32_t dim,
                            rg_gpu_kernel *kernel, rg_err *err)
{
    RG_TRY(rg_gpu_kernel_get(gpu, dim == 64 ? "rg_prefill_bfloat16_64" : "rg_prefill_bfloat16_128",
                             RG_PREFILL_THREADS, rg_prefill_shared_bytes(dim), kernel, err));
    kernel->grid = (p->seq + RG_PREFILL_ROWS - 1) / RG_PREFILL_ROWS * p->batch * p->heads;
    return RG_OK;
}

static rg_status launch(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err)
{
    const prefill_state *state = bench->state;
    return rg_gpu_launch(gpu, &bench->kernels[0], &state->sets[set], err);
}

static rg_status prepare(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                         rg_bench *out, rg_err *err)
{
    prefill_state *state = RG_NEW(arena, prefill_state, 1, err);
    if (!state)
        return RG_ERR_LIMIT;
    rg_prefill_params p = shape(problem);
    const int32_t dim = (int32_t)rg_problem_get(problem, "head_dim");
    const double tokens = (double)p.batch * p.seq;
    const size_t q_bytes = 2u * (size_t)tokens * (size_t)p.heads * (size_t)dim;
    const size_t kv_bytes = 2u * (size_t)tokens * (size_t)p.kv_heads * (size_t)dim;
    /* products with masked tokens are not work that the problem asks for */
    const double pairs = p.causal ? (double)p.batch * p.seq * (p.seq + 1.0) / 2 : tokens * p.seq;
    out->flops = 4.0 * p.heads * dim * pairs;
    out->bytes = 2.0 * (double)q_bytes + 2.0 * (double)kv_bytes;
    out->set_bytes = out->bytes;
    out->sets = rg_bench_sets(gpu, out->set_bytes, cold);
    for (int s = 0; s < out->sets; s++) {
        rg_cu_ptr q = 0, k = 0, v = 0, o = 0;
        const uint64_t seed = 4 * (uint64_t)s;
        RG_TRY(rg_gpu_alloc(gpu, q_bytes, &q, err));
        RG_TRY(rg_gpu_alloc(gpu, kv_bytes, &k, err));
        RG_TRY(rg_gpu_alloc(gpu, kv_bytes, &v, err));
        RG_TRY(rg_gpu_alloc(gpu, q_bytes, &o, err));
        RG_TRY(rg_gpu_fill(gpu, q, q_bytes, RG_STORE_BF16, seed, err));
        RG_TRY(rg_gpu_fill(gpu, k, kv_bytes, RG_STORE_BF16, seed + 1, err));
        RG_TRY(rg_gpu_fill(gpu, v, kv_bytes, RG_STORE_BF16, seed + 2, err));
        p.q = rg_gpu_address(q);
        p.k = rg_gpu_address(k);
        p.v = rg_gpu_address(v);
        p.out = rg_gpu_address(o);
        state->sets[s] = p;
    }
    RG_TRY(get_kernel(gpu, &p, dim, &out->kernels[0], err));
    out->kernel_count = 1;
    out->launch = launch;
    out->state = state;
    return RG_OK;
}

static void add(rg_problem_list *list, const char *variant, int64_t batch, int64_t seq,
                int64_t heads, int64_t kv_heads, int64_t dim)
{
    rg_problem_add(list, "prefill", variant, "bfloat16", "batch", batch, "seq", seq, "heads", heads,
                   "kv_heads", kv_heads, "head_dim", dim, NULL);
}

static void problems(rg_problem_list *list, rg_extent extent)
{
    static const int64_t shapes[][2] = {{1, 128},   {1, 512},  {1, 2048}, {1, 8192},
                                        {1, 32768}, {8, 1024}, {32, 256}, {16, 2048}};
    if (extent == RG_EXTENT_SMALL) {
        add(list, "causal", 1, 100, 4, 2, 64);
        return;
    }
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        add(list, "causal", shapes[s][0], shapes[s][1], 32, 8, 128);
        add(list, "causal", shapes[s][0], shapes[s][1], 32, 32, 64);
        if (extent == RG_EXTENT_FULL || s % 2 == 0)
            add(list, "full", shapes[s][0], shapes[s][1], 32, 8, 128);
    }
}

static rg_status check_one(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem,
                           rg_check_log *log, rg_err *err)
{
    const int mark = rg_gpu_mark(gpu);
    rg_prefill_params p = shape(problem), host;
    const int32_t dim = (int32_t)rg_problem_get(problem, "head_dim");
    const size_t rows = (size_t)p.batch * (size_t)p.seq;
    const size_t counts[3] = {rows * (size_t)p.heads * (size_t)dim,
                              rows * (size_t)p.kv_heads * (size_t)dim,
                              rows * (size_t)p.kv_heads * (size_t)dim};
    uint16_t *data[3];
    rg_cu_ptr device[4];
    for (int i = 0; i < 3; i++) {
        data[i] = RG_NEW(arena, uint16_t, counts[i], err);
        if (!data[i])
            return RG_ERR_LIMIT;
        for (size_t e = 0; e < counts[i]; e++)
            data[i][e] = rg_bf16_from(rg_noise(20 + (uint64_t)i, e));
        RG_TRY(rg_gpu_upload(gpu, data[i], 2 * counts[i], &device[i], err));
    }
    RG_TRY(rg_gpu_alloc(gpu, 2 * counts[0], &device[3], err));
    RG_TRY(rg_gpu_poison(gpu, device[3], 2 * counts[0], err));
    host = p;
    host.q = data[0], host.k = data[1], host.v = data[2];
    p.q = rg_gpu_address(device[0]);
    p.k = rg_gpu_address(device[1]);
    p.v = rg_gpu_address(device[2]);
    p.out = rg_gpu_address(device[3]);
    rg_gpu_kernel kernel;
    RG_TRY(get_kernel(gpu, &p, dim, &kernel, err));
    RG_TRY(rg_gpu_launch(gpu, &kernel, &p, err));
    uint16_t *got = RG_NEW(arena, uint16_t, counts[0], err);
    float *values = RG_NEW(arena, float, counts[0], err);
    double *want = RG_NEW(arena, double, counts[0], err);
    if (!got || !values || !want)
        return RG_ERR_LIMIT;
    RG_TRY(rg_gpu_download(gpu, got, device[3], 2 * counts[0], err));
    for (int32_t s = 0; s < p.batch; s++)
        for (int32_t r = 0; r < p.seq; r++)
            for (int32_t h = 0; h < p.heads; h++)
                rg_prefill_reference_row(
                    &host, dim, s, r, h,
                    want + (((size_t)s * (size_t)p.seq + (size_t)r) * (size_t)p.heads + (size_t)h) *
                               (size_t)dim);
    for (size_t i = 0; i < counts[0]; i++)
        values[i] = rg_bf16_value(got[i]);
    /* weights and output are rounded to bf16, 2^-9 each */
    rg_check_add(log, rg_check_error(values, want, counts[0]), 5e-3,
                 "prefill %s batch %d seq %d heads %d/%d head_dim %d", problem->variant, p.batch,
                 p.seq, p.heads, p.kv_heads, dim);
    rg_gpu_release_to(gpu, mark);
    return RG_OK;
}

static rg_status check(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    static const int64_t lengths[] = {1, 15, 64, 65, 150};
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    for (int n = 0; n < 10; n++) {
        add(list, n % 3 == 2 ? "full" : "causal", 1 + n % 2, lengths[n % 5], 4, n < 5 ? 2 : 1,
            n < 5 ? 128 : 64);
        RG_TRY(check_one(arena, gpu, &list->items[list->count - 1], log, err));
    }
    return RG_OK;
}

const rg_family rg_family_prefill = {
    .name = "prefill",
    .summary = "attention of whole prompts, causal or full",
    .measured_op = "context_attention",
    .problems = problems,
    .usable = usable,
    .prepare = prepare,
    .check = check,
};

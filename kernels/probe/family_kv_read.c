/* kernels/probe/family_kv_read.c: reading a paged KV cache.
 *
 * Reads bench.h, cache.h, ../kv_read.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "bench.h"
#include "cache.h"
#include "kv_read.h"

typedef struct kv_read_state {
    rg_kv_read_params params[64];
} kv_read_state;

static void problems(rg_problem_list *list, rg_extent extent)
{
    static const int64_t pages[] = {1, 2, 4, 8, 16, 32, 64, 128};
    static const int64_t dims[] = {64, 128, 256, 576};
    static const char *const types[] = {"bfloat16", "fp8", "int4"};
    if (extent == RG_EXTENT_SMALL) {
        rg_problem_add(list, "kv_read", "paged", "bfloat16", "batch", (int64_t)2, "kv_len",
                       (int64_t)300, "kv_heads", (int64_t)2, "head_dim", (int64_t)128, "page",
                       (int64_t)16, "token_major", (int64_t)0, "random", (int64_t)1, NULL);
        return;
    }
    for (size_t t = 0; t < 3; t++)
        for (size_t d = 0; d < 4; d++)
            for (size_t p = 0; p < 8; p++) {
                const bool usual = dims[d] == 128 && t == 0;
                if (extent == RG_EXTENT_DEFAULT && !usual && pages[p] != 16 && pages[p] != 64)
                    continue;
                /* 1 GiB of rows whatever the row is, so that figures compare */
                const int64_t row = rg_kv_row_bytes(rg_store_of(types[t]), (int32_t)dims[d]);
                const int64_t heads = dims[d] == 576 ? 1 : 8;
                const int64_t length = 1073741824 / (64 * heads * row * (dims[d] == 576 ? 1 : 2));
                for (int v = 0; v < 2; v++)
                    rg_problem_add(list, "kv_read", v == 0 ? "paged" : "bulk", types[t], "batch",
                                   (int64_t)64, "kv_len", length, "kv_heads", heads, "head_dim",
                                   dims[d], "page", pages[p], "token_major", (int64_t)0, "random",
                                   (int64_t)1, NULL);
            }
    for (int64_t random = 0; random < 2; random++)
        for (size_t p = 0; p < 8; p += 2)
            rg_problem_add(list, "kv_read", "paged", "bfloat16", "batch", (int64_t)64, "kv_len",
                           (int64_t)4096, "kv_heads", (int64_t)8, "head_dim", (int64_t)128, "page",
                           pages[p], "token_major", (int64_t)1, "random", random, NULL);
}

static rg_status set_params(rg_arena *arena, rg_gpu *gpu, bool bulk, const rg_cache_spec *spec,
                            const rg_cache *cache, rg_kv_read_params *device,
                            rg_kv_read_params *host, rg_gpu_kernel *kernel, rg_err *err)
{
    rg_kv_work *work = NULL;
    int32_t count = 0, parts = 0;
    const size_t parts_of_sum = bulk ? RG_KV_BULK_WARPS : 1;
    RG_TRY(rg_gpu_kernel_get(gpu, bulk ? "rg_kv_read_bulk" : "rg_kv_read",
                             bulk ? RG_KV_BULK_THREADS : RG_KV_READ_THREADS,
                             bulk ? RG_KV_BULK_SHARED_BYTES : 64, kernel, err));
    const int32_t units = gpu->figures.sms * kernel->blocks_per_sm;
    RG_TRY(rg_work_build(arena, spec->lengths, spec->batch, spec->kv_heads, 4 * units,
                         spec->page_tokens > 64 ? spec->page_tokens : 64, &work, &count, &parts,
                         err));
    kernel->grid = count < units ? count : units;
    rg_cu_ptr work_memory = 0, sums = 0;
    RG_TRY(rg_gpu_upload(gpu, work, sizeof *work * (size_t)count, &work_memory, err));
    RG_TRY(rg_gpu_alloc(gpu, 8u * (size_t)count * parts_of_sum, &sums, err));
    RG_TRY(rg_gpu_poison(gpu, sums, 8u * (size_t)count * parts_of_sum, err));
    const rg_divisor by_row = rg_divisor_make((uint32_t)cache->host.row_bytes / 16);
    *device = (rg_kv_read_params){cache->device, rg_gpu_address(work_memory), rg_gpu_address(sums),
                                  count, by_row};
    *host = (rg_kv_read_params){cache->host, work, NULL, count, by_row};
    return RG_OK;
}

static bool usable(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    const int64_t page = rg_problem_get(problem, "page"), dim = rg_problem_get(problem, "head_dim");
    if (page < 1 || rg_problem_get(problem, "batch") < 1 || dim < 64 || dim % 32 != 0 ||
        dim > 1024) {
        snprintf(why, why_size,
                 "batch and page must be 1 or more, head_dim a multiple of 32 from 64 to 1024");
        return false;
    }
    if (strcmp(problem->variant, "bulk") != 0)
        return true;
    if (gpu->figures.major != 9) {
        snprintf(why, why_size,
                 "the kernel with bulk copies is built for sm_90a, this GPU is sm_%d%d",
                 gpu->figures.major, gpu->figures.minor);
        return false;
    }
    if (rg_problem_get(problem, "token_major") != 0) {
        snprintf(why, why_size,
                 "bulk copies take a page's rows of a head in one run: head-major only");
        return false;
    }
    return true;
}

static rg_status launch(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err)
{
    const kv_read_state *state = bench->state;
    return rg_gpu_launch(gpu, &bench->kernels[0], &state->params[set], err);
}

static rg_status prepare(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                         rg_bench *out, rg_err *err)
{
    kv_read_state *state = RG_NEW(arena, kv_read_state, 1, err);
    const int32_t batch = (int32_t)rg_problem_get(problem, "batch");
    int32_t *lengths = RG_NEW(arena, int32_t, batch, err);
    if (!state || !lengths)
        return RG_ERR_LIMIT;
    for (int32_t b = 0; b < batch; b++)
        lengths[b] = (int32_t)rg_problem_get(problem, "kv_len");
    rg_cache_spec spec = {.store = rg_store_of(problem->dtype),
                          .head_dim = (int32_t)rg_problem_get(problem, "head_dim"),
                          .kv_heads = (int32_t)rg_problem_get(problem, "kv_heads"),
                          .page_tokens = (int32_t)rg_problem_get(problem, "page"),
                          .batch = batch,
                          .token_major = rg_problem_get(problem, "token_major") != 0,
                          .shared_kv = rg_problem_get(problem, "head_dim") == 576,
                          .random_pages = rg_problem_get(problem, "random") != 0,
                          .lengths = lengths,
                          .seed = 1};
    const bool bulk = strcmp(problem->variant, "bulk") == 0;
    /* the kernel reads rows only: scales are part of decode attention */
    out->bytes = rg_cache_read_bytes(&spec);
    if (spec.store == RG_STORE_INT4 || spec.store == RG_STORE_INT8)
        out->bytes *= (double)rg_kv_row_bytes(spec.store, spec.head_dim) /
                      (rg_kv_row_bytes(spec.store, spec.head_dim) +
                       4.0 * rg_kv_scale_words(spec.store, spec.head_dim));
    out->set_bytes = out->bytes;
    out->sets = rg_bench_sets(gpu, out->set_bytes, cold);
    for (int s = 0; s < out->sets; s++) {
        rg_cache cache;
        rg_kv_read_params host;
        spec.seed = 1 + 16 * (uint64_t)s;
        RG_TRY(rg_cache_build(arena, gpu, &spec, false, &cache, err));
        RG_TRY(set_params(arena, gpu, bulk, &spec, &cache, &state->params[s], &host,
                          &out->kernels[0], err));
    }
    out->kernel_count = 1;
    out->launch = launch;
    out->state = state;
    return RG_OK;
}

/** Run one cache through the kernel and compare every sum. */
static rg_status check_one(rg_arena *arena, rg_gpu *gpu, bool bulk, const rg_cache_spec *spec,
                           const char *type, rg_check_log *log, rg_err *err)
{
    const int mark = rg_gpu_mark(gpu);
    rg_cache cache;
    rg_kv_read_params device, host;
    rg_gpu_kernel kernel;
    RG_TRY(rg_cache_build(arena, gpu, spec, true, &cache, err));
    RG_TRY(set_params(arena, gpu, bulk, spec, &cache, &device, &host, &kernel, err));
    uint32_t *want = RG_NEW(arena, uint32_t, 2 * (size_t)host.work_count, err);
    const size_t parts = bulk ? RG_KV_BULK_WARPS : 1;
    uint32_t *got = RG_NEW(arena, uint32_t, 2 * parts * (size_t)host.work_count, err);
    if (!want || !got)
        return RG_ERR_LIMIT;
    host.sums = want;
    rg_kv_read_reference(&host);
    RG_TRY(rg_gpu_launch(gpu, &kernel, &device, err));
    RG_TRY(rg_gpu_download(gpu, got, (rg_cu_ptr)(uintptr_t)device.sums,
                           8u * parts * (size_t)host.work_count, err));
    int wrong = 0;
    for (int32_t i = 0; i < 2 * host.work_count; i++) {
        uint32_t sum = 0;
        for (size_t part = 0; part < parts; part++)
            sum += got[(size_t)i * parts + part];
        wrong += sum != want[i];
    }
    rg_check_add(log, wrong, 0, "kv_read %s %s head_dim %d page %d %s: sums equal to the bit",
                 bulk ? "bulk" : "paged", type, spec->head_dim, spec->page_tokens,
                 spec->token_major ? "token-major" : "head-major");
    rg_gpu_release_to(gpu, mark);
    return RG_OK;
}

static rg_status check(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    static const int32_t pages[] = {1, 16, 48, 128}, dims[] = {64, 128, 256, 576};
    static const char *const types[] = {"bfloat16", "fp8", "int4"};
    for (int i = 0; i < 12; i++) {
        const int32_t page = pages[i % 4];
        const int32_t lengths[] = {0, 1, page > 1 ? page - 1 : 2, page, page + 1, 3 * page + 5};
        const rg_cache_spec spec = {.store = rg_store_of(types[i % 3]),
                                    .head_dim = dims[(i + i / 4) % 4],
                                    .kv_heads = 2,
                                    .page_tokens = page,
                                    .batch = 6,
                                    .token_major = i % 2 == 1,
                                    .shared_kv = dims[(i + i / 4) % 4] == 576,
                                    .random_pages = true,
                                    .lengths = lengths,
                                    .seed = 7 + (uint64_t)i};
        RG_TRY(check_one(arena, gpu, false, &spec, types[i % 3], log, err));
        if (!spec.token_major && gpu->figures.major == 9)
            RG_TRY(check_one(arena, gpu, true, &spec, types[i % 3], log, err));
    }
    return RG_OK;
}

const rg_family rg_family_kv_read = {
    .name = "kv_read",
    .summary = "read a paged KV cache: page size, row length, element width, page order",
    .problems = problems,
    .usable = usable,
    .prepare = prepare,
    .check = check,
};

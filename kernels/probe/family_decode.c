/* kernels/probe/family_decode.c: decode attention: tensor-core, SIMT and latent (MLA) kernels.
 *
 * Reads bench.h, cache.h, ../decode.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cache.h"
#include "core/rng.h"
#include "decode.h"

/* Which kernel a problem runs on. */
typedef struct decode_plan {
    char name[64];
    bool mla;
    int threads, shared_bytes, tiles;
    rg_store store;
    int32_t batch, heads, kv_heads, head_dim, group, value_dim, page, least;
} decode_plan;

/* One set of buffers. */
typedef struct decode_set {
    rg_decode_params params;
    rg_merge_params merge;
    int32_t merges;
} decode_set;

typedef struct decode_state {
    decode_set sets[64];
} decode_state;

static bool make_plan(const rg_problem *problem, decode_plan *plan, char *why, size_t why_size)
{
    memset(plan, 0, sizeof *plan);
    plan->mla = strcmp(problem->kernel, "decode_mla") == 0;
    plan->store = rg_store_of(problem->dtype);
    plan->batch = (int32_t)rg_problem_get(problem, "batch");
    plan->heads = (int32_t)rg_problem_get(problem, "heads");
    plan->page = (int32_t)rg_problem_get(problem, "page");
    plan->kv_heads = plan->mla ? 1 : (int32_t)rg_problem_get(problem, "kv_heads");
    plan->head_dim = plan->mla ? RG_MLA_DIM : (int32_t)rg_problem_get(problem, "head_dim");
    plan->value_dim = plan->mla ? RG_MLA_LATENT : plan->head_dim;
    plan->group = plan->kv_heads > 0 ? plan->heads / plan->kv_heads : 0;
    if (plan->batch < 1 || plan->page < 1 || plan->group < 1 ||
        plan->group * plan->kv_heads != plan->heads) {
        snprintf(why, why_size,
                 "batch, page and heads must be 1 or more, heads a multiple of "
                 "kv_heads");
        return false;
    }
    if (plan->mla) {
        plan->tiles = plan->heads > 16 ? RG_MLA_MOST_TILES : 1;
        plan->threads = RG_MLA_THREADS;
        plan->least = RG_MLA_TILE;
        plan->shared_bytes = rg_mla_shared_bytes(plan->store, plan->tiles);
        snprintf(plan->name, sizeof plan->name, "rg_decode_mla_%s_%d", problem->dtype, plan->tiles);
        return true;
    }
    plan->threads = RG_DECODE_THREADS;
    plan->least = RG_DECODE_TILE;
    if (strcmp(problem->variant, "mma") == 0) {
        if (plan->group > 16) {
            snprintf(why, why_size,
                     "the tensor-core kernel takes 16 query heads for a KV head, "
                     "not %d",
                     plan->group);
            return false;
        }
        plan->shared_bytes = rg_decode_shared_bytes(plan->store, plan->head_dim);
        snprintf(plan->name, sizeof plan->name, "rg_decode_mma_%s_%d", problem->dtype,
                 plan->head_dim);
        return true;
    }
    const int built = plan->group <= 1 ? 1 : (plan->group <= 4 ? 4 : 8);
    if (plan->group > 8) {
        snprintf(why, why_size, "the SIMT kernel takes 8 query heads for a KV head, not %d",
                 plan->group);
        return false;
    }
    plan->shared_bytes = rg_decode_simt_shared_bytes(plan->store, plan->head_dim, built);
    snprintf(plan->name, sizeof plan->name, "rg_decode_simt_%s_%d_%d", problem->dtype,
             plan->head_dim, built);
    return true;
}

static bool usable(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    decode_plan plan;
    if (!make_plan(problem, &plan, why, why_size))
        return false;
    if (plan.shared_bytes > gpu->figures.shared_per_block) {
        snprintf(why, why_size, "needs %d bytes of shared memory in a block, this GPU has %d",
                 plan.shared_bytes, gpu->figures.shared_per_block);
        return false;
    }
    return true;
}

/** Merge work of what was cut, from the work list (slots of a head follow each other). */
static rg_status merge_list(rg_arena *arena, const rg_kv_work *work, int32_t count,
                            const decode_plan *plan, rg_merge_work **out, int32_t *out_count,
                            rg_err *err)
{
    rg_merge_work *list = RG_NEW(arena, rg_merge_work, count, err);
    const rg_kv_work **by_slot = RG_NEW(arena, const rg_kv_work *, count, err);
    if (!list || !by_slot)
        return RG_ERR_LIMIT;
    for (int32_t i = 0; i < count; i++)
        by_slot[work[i].slot] = &work[i];
    int32_t n = 0;
    for (int32_t s = 0; s < count; s += by_slot[s]->parts) {
        const rg_kv_work *w = by_slot[s];
        if (w->parts == 1)
            continue;
        const int32_t tile = 16 * plan->tiles, from = plan->mla ? w->head * tile : 0;
        const int32_t left = plan->group - from;
        list[n++] = (rg_merge_work){w->sequence, plan->mla ? 0 : w->head,
                                    s,           w->parts,
                                    from,        plan->mla && tile < left ? tile : left};
    }
    *out = list;
    *out_count = n;
    return RG_OK;
}

/** Everything of one buffer set. q_host NULL: random queries on the device. units: parts wanted. */
static rg_status make_set(rg_arena *arena, rg_gpu *gpu, const decode_plan *plan,
                          const rg_cache_spec *spec, const rg_cache *cache, const uint16_t *q_host,
                          int32_t units, decode_set *set, rg_kv_work **work, int32_t *count,
                          rg_err *err)
{
    int32_t parts = 0;
    const int32_t tiles =
        plan->mla ? (plan->heads + 16 * plan->tiles - 1) / (16 * plan->tiles) : plan->kv_heads;
    RG_TRY(rg_work_build(arena, spec->lengths, spec->batch, tiles, units, plan->least, work, count,
                         &parts, err));
    rg_merge_work *merges = NULL;
    RG_TRY(merge_list(arena, *work, *count, plan, &merges, &set->merges, err));
    const size_t q_bytes = 2u * (size_t)plan->batch * (size_t)plan->heads * (size_t)plan->head_dim;
    const size_t o_bytes = 2u * (size_t)plan->batch * (size_t)plan->heads * (size_t)plan->value_dim;
    const size_t p_bytes =
        4u * (size_t)*count * (size_t)plan->group * ((size_t)plan->value_dim + 2);
    rg_cu_ptr q = 0, out = 0, partial = 0, work_memory = 0, merge_memory = 0;
    if (q_host) {
        RG_TRY(rg_gpu_upload(gpu, q_host, q_bytes, &q, err));
    } else {
        RG_TRY(rg_gpu_alloc(gpu, q_bytes, &q, err));
        RG_TRY(rg_gpu_fill(gpu, q, q_bytes, RG_STORE_BF16, spec->seed + 9, err));
    }
    RG_TRY(rg_gpu_alloc(gpu, o_bytes, &out, err));
    RG_TRY(rg_gpu_poison(gpu, out, o_bytes, err));
    RG_TRY(rg_gpu_alloc(gpu, set->merges > 0 ? p_bytes : 4, &partial, err));
    RG_TRY(rg_gpu_poison(gpu, partial, set->merges > 0 ? p_bytes : 4, err));
    RG_TRY(rg_gpu_upload(gpu, *work, sizeof **work * (size_t)*count, &work_memory, err));
    RG_TRY(rg_gpu_upload(gpu, merges, sizeof *merges * (size_t)set->merges, &merge_memory, err));
    const double softmax_scale = plan->mla ? 1.0 / sqrt(192.0) : 1.0 / sqrt((double)plan->head_dim);
    set->params = (rg_decode_params){cache->device,
                                     rg_gpu_address(q),
                                     rg_gpu_address(out),
                                     rg_gpu_address(partial),
                                     rg_gpu_address(work_memory),
                                     *count,
                                     plan->group,
                                     plan->value_dim,
                                     (float)(softmax_scale * 1.4426950408889634)};
    set->merge = (rg_merge_params){
        rg_gpu_address(partial),        rg_gpu_address(out), rg_gpu_address(merge_memory),
        plan->mla ? 1 : plan->kv_heads, plan->group,         plan->value_dim};
    return RG_OK;
}

static rg_status launch_set(rg_gpu *gpu, const rg_gpu_kernel *kernels, const decode_set *set,
                            rg_err *err)
{
    RG_TRY(rg_gpu_launch(gpu, &kernels[0], &set->params, err));
    if (set->merges == 0)
        return RG_OK;
    rg_gpu_kernel merge = kernels[1];
    merge.grid = set->merges;
    return rg_gpu_launch(gpu, &merge, &set->merge, err);
}

static rg_status launch(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err)
{
    const decode_state *state = bench->state;
    return launch_set(gpu, bench->kernels, &state->sets[set], err);
}

static rg_status get_kernels(rg_gpu *gpu, const decode_plan *plan, rg_gpu_kernel *kernels,
                             rg_err *err)
{
    RG_TRY(rg_gpu_kernel_get(gpu, plan->name, plan->threads, plan->shared_bytes, &kernels[0], err));
    return rg_gpu_kernel_get(gpu, "rg_decode_merge", RG_MERGE_THREADS, 0, &kernels[1], err);
}

static rg_status prepare(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                         rg_bench *out, rg_err *err)
{
    char why[256];
    decode_plan plan;
    if (!make_plan(problem, &plan, why, sizeof why))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "%s", why);
    decode_state *state = RG_NEW(arena, decode_state, 1, err);
    int32_t *lengths = RG_NEW(arena, int32_t, plan.batch, err);
    if (!state || !lengths)
        return RG_ERR_LIMIT;
    const int64_t length = rg_problem_get(problem, "kv_len");
    rg_rng rng;
    rg_rng_seed(&rng, 3, 0);
    double tokens = 0;
    for (int32_t b = 0; b < plan.batch; b++) { /* ragged: 1/4 to 7/4 of the length */
        lengths[b] = (int32_t)length;
        if (rg_problem_get(problem, "ragged"))
            lengths[b] = (int32_t)(length / 4 + rg_rng_below(&rng, (uint32_t)(length * 3 / 2 + 1)));
        tokens += lengths[b];
    }
    rg_cache_spec spec = {.store = plan.store,
                          .head_dim = plan.head_dim,
                          .kv_heads = plan.kv_heads,
                          .page_tokens = plan.page,
                          .batch = plan.batch,
                          .shared_kv = plan.mla,
                          .random_pages = true,
                          .lengths = lengths,
                          .seed = 1};
    char *name = rg_arena_strdup(arena, plan.name, err);
    if (!name)
        return RG_ERR_LIMIT;
    RG_TRY(get_kernels(gpu, &plan, out->kernels, err));
    out->kernels[0].name = name;
    out->kernel_count = 2;
    const int32_t units = gpu->figures.sms * out->kernels[0].blocks_per_sm;
    out->bytes = rg_cache_read_bytes(&spec) +
                 2.0 * plan.batch * plan.heads * (plan.head_dim + plan.value_dim);
    out->flops = 2.0 * plan.heads * (plan.head_dim + plan.value_dim) * tokens;
    out->set_bytes = out->bytes;
    out->sets = rg_bench_sets(gpu, out->set_bytes, cold);
    for (int s = 0; s < out->sets; s++) {
        rg_cache cache;
        rg_kv_work *work = NULL;
        int32_t count = 0;
        spec.seed = 1 + 16 * (uint64_t)s;
        RG_TRY(rg_cache_build(arena, gpu, &spec, false, &cache, err));
        RG_TRY(make_set(arena, gpu, &plan, &spec, &cache, NULL, units, &state->sets[s], &work,
                        &count, err));
        out->kernels[0].grid = count < units ? count : units;
        out->kernels[1].grid = state->sets[s].merges;
    }
    if (state->sets[0].merges == 0)
        out->kernel_count = 1;
    out->launch = launch;
    out->state = state;
    return RG_OK;
}

static void add(rg_problem_list *list, const char *variant, const char *dtype, int64_t batch,
                int64_t length, int64_t heads, int64_t kv_heads, int64_t dim, int64_t ragged)
{
    rg_problem_add(list, "decode", variant, dtype, "batch", batch, "kv_len", length, "heads", heads,
                   "kv_heads", kv_heads, "head_dim", dim, "page", (int64_t)64, "ragged", ragged,
                   NULL);
}

static void problems(rg_problem_list *list, rg_extent extent)
{
    static const char *const types[] = {"bfloat16", "fp8", "int8", "int4"};
    static const int64_t shapes[][2] = {{1, 1024},  {1, 8192},   {1, 65536}, {8, 2048},
                                        {32, 4096}, {128, 2048}, {64, 8192}, {128, 256}};
    static const int64_t heads[][2] = {{32, 32}, {32, 8}, {64, 8}, {64, 4}};
    if (extent == RG_EXTENT_SMALL) {
        add(list, "mma", "bfloat16", 2, 200, 8, 2, 128, 0);
        add(list, "simt", "int4", 2, 200, 8, 2, 128, 1);
        return;
    }
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t h = 0; h < 4; h++)
            for (size_t t = 0; t < 4; t++) {
                const bool usual = t == 0 || h == 1;
                if (extent == RG_EXTENT_FULL || usual)
                    add(list, "mma", types[t], shapes[s][0], shapes[s][1], heads[h][0], heads[h][1],
                        128, 0);
            }
    for (size_t s = 1; s < sizeof shapes / sizeof *shapes; s += extent == RG_EXTENT_FULL ? 1 : 3)
        for (size_t h = 0; h < 3; h++) {
            add(list, "simt", "bfloat16", shapes[s][0], shapes[s][1], heads[h][0], heads[h][1], 128,
                0);
            add(list, "mma", "bfloat16", shapes[s][0], shapes[s][1], heads[h][0], heads[h][1], 64,
                0);
            add(list, "mma", "bfloat16", shapes[s][0], shapes[s][1], heads[h][0], heads[h][1], 256,
                0);
            add(list, "mma", "bfloat16", shapes[s][0], shapes[s][1], heads[h][0], heads[h][1], 128,
                1);
        }
}

static void problems_mla(rg_problem_list *list, rg_extent extent)
{
    static const int64_t shapes[][2] = {{1, 1024}, {1, 16384}, {16, 4096}, {64, 4096}, {128, 8192}};
    static const int64_t heads[] = {16, 64, 128};
    static const char *const types[] = {"bfloat16", "fp8"};
    if (extent == RG_EXTENT_SMALL) {
        rg_problem_add(list, "decode_mla", "mma", "bfloat16", "batch", (int64_t)2, "kv_len",
                       (int64_t)100, "heads", (int64_t)16, "page", (int64_t)64, "ragged",
                       (int64_t)0, NULL);
        return;
    }
    for (size_t t = 0; t < 2; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t h = 0; h < 3; h++)
                rg_problem_add(list, "decode_mla", "mma", types[t], "batch", shapes[s][0], "kv_len",
                               shapes[s][1], "heads", heads[h], "page", (int64_t)64, "ragged",
                               (int64_t)0, NULL);
}

/* Queries of a check: random, all zero (equal logits: a plain mean), or so large that one token has
 * nearly all the weight. */
typedef enum query_kind { QUERY_RANDOM, QUERY_ZERO, QUERY_LARGE } query_kind;
static const char *const query_names[] = {"random logits", "equal logits", "one dominating logit"};

static rg_status check_one(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem,
                           const int32_t *lengths, query_kind kind, int32_t units,
                           rg_check_log *log, rg_err *err)
{
    char why[256] = "";
    decode_plan plan;
    if (!usable(gpu, problem, why, sizeof why) || !make_plan(problem, &plan, why, sizeof why)) {
        rg_check_skip(log, why, "%s %s %s", problem->kernel, problem->variant, problem->dtype);
        return RG_OK;
    }
    const int mark = rg_gpu_mark(gpu);
    const rg_cache_spec spec = {.store = plan.store,
                                .head_dim = plan.head_dim,
                                .kv_heads = plan.kv_heads,
                                .page_tokens = plan.page,
                                .batch = plan.batch,
                                .token_major = plan.page % 2 == 1,
                                .shared_kv = plan.mla,
                                .random_pages = true,
                                .lengths = lengths,
                                .seed = 100 + (uint64_t)kind};
    const size_t rows = (size_t)plan.batch * (size_t)plan.heads;
    const size_t outs = rows * (size_t)plan.value_dim, qs = rows * (size_t)plan.head_dim;
    rg_cache cache;
    decode_set set;
    rg_gpu_kernel kernels[2];
    rg_kv_work *work = NULL;
    int32_t count = 0;
    uint16_t *q = RG_NEW(arena, uint16_t, qs, err), *got = RG_NEW(arena, uint16_t, outs, err);
    double *want = RG_NEW(arena, double, outs, err);
    float *values = RG_NEW(arena, float, outs, err);
    if (!q || !got || !want || !values)
        return RG_ERR_LIMIT;
    const float factor = kind == QUERY_ZERO ? 0.0f : (kind == QUERY_LARGE ? 16.0f : 1.0f);
    for (size_t i = 0; i < qs; i++)
        q[i] = rg_bf16_from(factor * rg_noise(77, i));
    RG_TRY(rg_cache_build(arena, gpu, &spec, true, &cache, err));
    RG_TRY(get_kernels(gpu, &plan, kernels, err));
    RG_TRY(make_set(arena, gpu, &plan, &spec, &cache, q, units, &set, &work, &count, err));
    kernels[0].grid = count < 3 ? count : 3; /* fewer blocks than parts: blocks take several */
    rg_decode_params host = set.params;
    host.kv = cache.host;
    host.q = q;
    host.work = work;
    rg_decode_reference(&host, plan.store, want);
    RG_TRY(launch_set(gpu, kernels, &set, err));
    RG_TRY(rg_gpu_download(gpu, got, (rg_cu_ptr)(uintptr_t)set.params.out, 2 * outs, err));
    for (size_t i = 0; i < outs; i++)
        values[i] = rg_bf16_value(got[i]);
    /* weights and output are rounded to bf16, 2^-9 each; int4 is dequantised to bf16 before */
    const double limit = plan.store == RG_STORE_INT4 ? 8e-3 : 5e-3;
    rg_check_add(log, rg_check_error(values, want, outs), limit,
                 "%s %s %s head_dim %d group %d page %d, %d parts, %s", problem->kernel,
                 problem->variant, problem->dtype, plan.head_dim, plan.group, plan.page, count,
                 query_names[kind]);
    rg_gpu_release_to(gpu, mark);
    return RG_OK;
}

static rg_status check(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    static const char *const types[] = {"bfloat16", "fp8", "int8", "int4"};
    static const int64_t dims[] = {64, 128, 256}, groups[] = {1, 4, 8, 16, 3, 5};
    static const int64_t pages[] = {16, 1, 64, 48};
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    int n = 0;
    for (int variant = 0; variant < 2; variant++)
        for (int t = 0; t < 4; t++)
            for (int d = 0; d < 3; d++) {
                if (variant == 1 && (dims[d] == 256 || (dims[d] == 64 && t >= 2)))
                    continue; /* not built */
                for (int repeat = 0; repeat < (variant == 1 ? 3 : 2); repeat++, n++) {
                    const int64_t page = pages[n % 4];
                    int64_t group = variant == 0 ? groups[n % 6] : (int64_t[]){1, 3, 8}[repeat];
                    const int32_t lengths[] = {0,
                                               1,
                                               page > 1 ? (int32_t)page - 1 : 2,
                                               (int32_t)page,
                                               (int32_t)page + 1,
                                               150 + (int32_t)page};
                    rg_problem *problem = rg_problem_add(
                        list, "decode", variant == 0 ? "mma" : "simt", types[t], "batch",
                        (int64_t)6, "kv_len", (int64_t)0, "heads", 2 * group, "kv_heads",
                        (int64_t)2, "head_dim", dims[d], "page", page, "ragged", (int64_t)1, NULL);
                    RG_TRY(check_one(arena, gpu, problem, lengths, (query_kind)(n % 3),
                                     n % 2 == 0 ? 1000 : 1, log, err));
                }
            }
    return RG_OK;
}

static rg_status check_mla(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    static const char *const types[] = {"bfloat16", "fp8"};
    static const int64_t heads[] = {1, 16, 20, 80};
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    for (int n = 0; n < 8; n++) {
        const int32_t page = n % 2 == 0 ? 64 : 1;
        const int32_t lengths[] = {0, 1, page, page + 1, 75};
        rg_problem *problem = rg_problem_add(
            list, "decode_mla", "mma", types[n / 4], "batch", (int64_t)5, "kv_len", (int64_t)0,
            "heads", heads[n % 4], "page", (int64_t)page, "ragged", (int64_t)1, NULL);
        RG_TRY(check_one(arena, gpu, problem, lengths, (query_kind)(n % 3), n % 2 ? 1000 : 1, log,
                         err));
    }
    return RG_OK;
}

const rg_family rg_family_decode = {
    .name = "decode",
    .summary = "one decode step of attention: split KV, grouped heads, 16 to 4 bit caches",
    .measured_op = "generation_attention",
    .problems = problems,
    .usable = usable,
    .prepare = prepare,
    .check = check,
};

const rg_family rg_family_decode_mla = {
    .name = "decode_mla",
    .summary = "one decode step of multi-head latent attention: 512 + 64 wide rows",
    .measured_op = "generation_mla",
    .problems = problems_mla,
    .usable = usable,
    .prepare = prepare,
    .check = check_mla,
};

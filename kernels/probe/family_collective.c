/* kernels/probe/family_collective.c: all-reduce and all-to-all by ridge's kernels.
 *
 * Reads bench.h, ranks.h, ../collective.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "collective.h"
#include "ranks.h"

typedef struct collective_state {
    rg_rank_group group;
    rg_collective_params params[RG_MOST_RANKS];
    rg_gpu_kernel kernels[RG_MOST_RANKS];
} collective_state;

static bool is_virtual(const rg_problem *problem)
{
    return strstr(problem->kernel, "virtual") != NULL;
}

static bool can_map(const rg_gpu *gpu, int ranks)
{
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++) {
            int can = 1;
            if (a != b && (gpu->cuda->cuDeviceCanAccessPeer(&can, a, b) != 0 || !can))
                return false;
        }
    return true;
}

static bool usable(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    const int64_t ranks = rg_problem_get(problem, "ranks"),
                  bytes = rg_problem_get(problem, "bytes");
    if (ranks < 1 || ranks > RG_MOST_RANKS || bytes < 16 * ranks || bytes % (16 * ranks) != 0) {
        snprintf(why, why_size, "ranks are 1 to %d, bytes a multiple of 16 for each rank",
                 RG_MOST_RANKS);
        return false;
    }
    if (!gpu->figures.cooperative) {
        snprintf(why, why_size, "this GPU cannot launch cooperatively");
        return false;
    }
    if (is_virtual(problem))
        return true;
    if (ranks > gpu->cuda->device_count) {
        snprintf(why, why_size, "%lld GPUs wanted, this machine has %d", (long long)ranks,
                 gpu->cuda->device_count);
        return false;
    }
    if (!can_map(gpu, (int)ranks)) {
        snprintf(why, why_size, "these GPUs cannot map each other's memory");
        return false;
    }
    return true;
}

static rg_status zeroed(rg_gpu *gpu, size_t bytes, rg_cu_ptr *out, rg_err *err)
{
    RG_TRY(rg_gpu_alloc(gpu, bytes, out, err));
    RG_CU(gpu->cuda, cuMemsetD8Async, (*out, 0, bytes, gpu->stream), err);
    return RG_OK;
}

/** Buffers, flags, kernels and parameters of all ranks. */
static rg_status set_up(collective_state *state, rg_gpu *gpu, const char *kernel_name, int ranks,
                        bool virtual_ranks, size_t bytes, rg_store fill, rg_err *err)
{
    rg_rank_group *group = &state->group;
    RG_TRY(rg_ranks_join(group, gpu, ranks, virtual_ranks, err));
    rg_collective_params all = {.vectors = (int64_t)(bytes / 16), .ranks = ranks};
    for (int r = 0; r < ranks; r++) {
        rg_gpu *on = group->gpus[r];
        rg_cu_ptr in = 0, out = 0, work = 0, flags = 0, epochs = 0;
        RG_TRY(rg_gpu_use(on, err));
        RG_TRY(rg_gpu_alloc(on, bytes, &in, err));
        RG_TRY(rg_gpu_alloc(on, bytes, &out, err));
        RG_TRY(rg_gpu_alloc(on, bytes, &work, err));
        RG_TRY(zeroed(on, 4u * RG_COLLECTIVE_MOST_BLOCKS * (size_t)ranks, &flags, err));
        RG_TRY(zeroed(on, 4u * RG_COLLECTIVE_MOST_BLOCKS, &epochs, err));
        RG_TRY(rg_gpu_fill(on, in, bytes, fill, 40 + (uint64_t)r, err));
        RG_TRY(rg_gpu_poison(on, out, bytes, err));
        RG_TRY(rg_gpu_poison(on, work, bytes, err));
        RG_TRY(
            rg_gpu_kernel_get(on, kernel_name, RG_COLLECTIVE_THREADS, 0, &state->kernels[r], err));
        RG_TRY(rg_gpu_sync(on, err));
        state->kernels[r].cooperative = true;
        all.in[r] = rg_gpu_address(in);
        all.out[r] = rg_gpu_address(out);
        all.work[r] = rg_gpu_address(work);
        all.flags[r] = rg_gpu_address(flags);
        all.epochs[r] = rg_gpu_address(epochs);
    }
    RG_TRY(rg_gpu_use(gpu, err));
    /* as many blocks as have work, as fit at once, and no more than 64 */
    const int resident = gpu->figures.sms * state->kernels[0].blocks_per_sm;
    int64_t blocks = (all.vectors + RG_COLLECTIVE_THREADS - 1) / RG_COLLECTIVE_THREADS;
    const int64_t most = virtual_ranks ? resident / ranks : resident;
    blocks = blocks > most ? most : blocks;
    blocks = blocks > RG_COLLECTIVE_MOST_BLOCKS ? RG_COLLECTIVE_MOST_BLOCKS : blocks;
    if (blocks < 1)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "'%d' virtual ranks do not fit on this GPU at once", ranks);
    all.blocks = (int32_t)blocks;
    for (int r = 0; r < ranks; r++) {
        state->params[r] = all;
        state->params[r].rank = virtual_ranks ? -1 : r;
        state->kernels[r].grid = (int)blocks * (virtual_ranks ? ranks : 1);
    }
    return RG_OK;
}

static rg_status launch_ranks(collective_state *state, rg_err *err)
{
    const rg_rank_group *group = &state->group;
    if (group->is_virtual)
        return rg_gpu_launch(group->gpus[0], &state->kernels[0], &state->params[0], err);
    for (int r = 0; r < group->ranks; r++) {
        RG_TRY(rg_gpu_use(group->gpus[r], err));
        RG_TRY(rg_gpu_launch(group->gpus[r], &state->kernels[r], &state->params[r], err));
    }
    return rg_gpu_use(group->gpus[0], err);
}

static rg_status launch(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err)
{
    (void)gpu, (void)set;
    return launch_ranks(bench->state, err);
}

static void release(rg_bench *bench)
{
    collective_state *state = bench->state;
    rg_ranks_leave(&state->group);
}

static void kernel_name(const rg_problem *problem, char *out, size_t size)
{
    if (strncmp(problem->kernel, "alltoall", 8) == 0)
        snprintf(out, size, "rg_all_to_all");
    else
        snprintf(out, size, "rg_allreduce_%s_%s", problem->variant, problem->dtype);
}

static rg_status prepare(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                         rg_bench *out, rg_err *err)
{
    (void)cold;
    collective_state *state = RG_NEW(arena, collective_state, 1, err);
    if (!state)
        return RG_ERR_LIMIT;
    char name[64];
    const int ranks = (int)rg_problem_get(problem, "ranks");
    const size_t bytes = (size_t)rg_problem_get(problem, "bytes");
    const bool virtual_ranks = is_virtual(problem);
    kernel_name(problem, name, sizeof name);
    out->state = state;
    out->release = release;
    const rg_status status = set_up(
        state, gpu, name, ranks, virtual_ranks, bytes,
        strcmp(problem->dtype, "float32") == 0 ? RG_STORE_SMALL_FP32 : RG_STORE_SMALL_BF16, err);
    if (status != RG_OK) {
        release(out);
        return status;
    }
    const bool all_to_all = strncmp(problem->kernel, "alltoall", 8) == 0;
    const double share = (ranks - 1.0) / ranks;
    out->link_bytes = virtual_ranks ? 0 : (double)bytes * share * (all_to_all ? 1 : 2);
    /* all ranks' inputs are read and outputs written in the one memory when ranks are virtual */
    out->bytes = 2.0 * (double)bytes * (virtual_ranks ? ranks : 1);
    out->set_bytes = 3.0 * (double)bytes * ranks;
    out->sets = 1;
    out->no_graph = !virtual_ranks;
    out->label = virtual_ranks ? "virtual ranks on one GPU: no interconnect is measured" : NULL;
    char *kept = rg_arena_strdup(arena, name, err);
    out->kernels[0] = state->kernels[0];
    out->kernels[0].name = kept;
    out->kernel_count = 1;
    out->launch = launch;
    return kept ? RG_OK : RG_ERR_LIMIT;
}

static void problems_of(rg_problem_list *list, rg_extent extent, const char *kernel, bool reduce)
{
    static const char *const variants[] = {"one_shot", "two_shot", "ring"};
    const bool small = extent == RG_EXTENT_SMALL;
    for (int v = 0; v < (reduce ? 3 : 1); v++)
        for (int64_t ranks = 2; ranks <= (small ? 2 : 8); ranks *= 2)
            for (int64_t bytes = 1024; bytes <= (small ? 1024 : 268435456);
                 bytes *= extent == RG_EXTENT_FULL ? 2 : 4)
                rg_problem_add(list, kernel, reduce ? variants[v] : "pull", "bfloat16", "ranks",
                               ranks, "bytes", bytes, NULL);
}

static void problems_allreduce(rg_problem_list *list, rg_extent extent)
{
    problems_of(list, extent, "allreduce", true);
}
static void problems_allreduce_virtual(rg_problem_list *list, rg_extent extent)
{
    problems_of(list, extent, "allreduce_virtual", true);
}
static void problems_alltoall(rg_problem_list *list, rg_extent extent)
{
    problems_of(list, extent, "alltoall", false);
}
static void problems_alltoall_virtual(rg_problem_list *list, rg_extent extent)
{
    problems_of(list, extent, "alltoall_virtual", false);
}

/** Integers whose sums are exact in every order: results must be equal to the bit, on every rank,
 * in three launches one after the other (flags and epochs go on counting). */
static rg_status compare_ranks(rg_arena *arena, collective_state *state, rg_store fill, bool reduce,
                               size_t bytes, int *wrong, rg_err *err)
{
    const int ranks = state->group.ranks;
    const int64_t words = (int64_t)(bytes / 4), per = fill == RG_STORE_SMALL_BF16 ? 2 : 1;
    double **in = RG_NEW(arena, double *, ranks, err);
    double *want = RG_NEW(arena, double, words *per, err);
    uint32_t *got = RG_NEW(arena, uint32_t, words, err);
    if (!in || !want || !got)
        return RG_ERR_LIMIT;
    for (int r = 0; r < ranks && reduce; r++) {
        in[r] = RG_NEW(arena, double, words *per, err);
        if (!in[r])
            return RG_ERR_LIMIT;
        for (int64_t i = 0; i < words; i++) {
            const uint32_t word = rg_store_word(fill, 40 + (uint64_t)r, (uint64_t)i);
            if (per == 2) {
                in[r][2 * i] = rg_bf16_value((uint16_t)word);
                in[r][2 * i + 1] = rg_bf16_value((uint16_t)(word >> 16));
            } else {
                in[r][i] = rg_bits_float(word);
            }
        }
    }
    if (reduce)
        rg_allreduce_reference((const double *const *)in, ranks, words * per, want);
    *wrong = 0;
    for (int r = 0; r < ranks; r++) {
        rg_gpu *on = state->group.gpus[r];
        RG_TRY(rg_gpu_use(on, err));
        RG_TRY(rg_gpu_download(on, got, (rg_cu_ptr)(uintptr_t)state->params[0].out[r], bytes, err));
        for (int64_t i = 0; i < words; i++) {
            uint32_t expected = 0;
            if (reduce && per == 2)
                expected = rg_bf16_from((float)want[2 * i]) |
                           ((uint32_t)rg_bf16_from((float)want[2 * i + 1]) << 16);
            else if (reduce)
                expected = rg_float_bits((float)want[i]);
            else {
                const int64_t part = words / ranks;
                expected =
                    rg_store_word(fill, 40 + (uint64_t)(i / part), (uint64_t)(r * part + i % part));
            }
            *wrong += got[i] != expected;
        }
    }
    return rg_gpu_use(state->group.gpus[0], err);
}

/** Nothing of the launch before may stand in for this one's work. */
static rg_status poison_ranks(collective_state *state, size_t bytes, rg_err *err)
{
    for (int r = 0; r < state->group.ranks; r++) {
        rg_gpu *on = state->group.gpus[r];
        RG_TRY(rg_gpu_use(on, err));
        RG_TRY(rg_gpu_poison(on, (rg_cu_ptr)(uintptr_t)state->params[0].out[r], bytes, err));
        RG_TRY(rg_gpu_poison(on, (rg_cu_ptr)(uintptr_t)state->params[0].work[r], bytes, err));
        RG_TRY(rg_gpu_sync(on, err));
    }
    return rg_gpu_use(state->group.gpus[0], err);
}

static rg_status check_one(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem,
                           rg_check_log *log, rg_err *err)
{
    char why[256], name[64];
    const int ranks = (int)rg_problem_get(problem, "ranks");
    const size_t bytes = (size_t)rg_problem_get(problem, "bytes");
    if (!usable(gpu, problem, why, sizeof why)) {
        rg_check_skip(log, why, "%s %s %d ranks", problem->kernel, problem->variant, ranks);
        return RG_OK;
    }
    const int mark = rg_gpu_mark(gpu);
    collective_state *state = RG_NEW(arena, collective_state, 1, err);
    if (!state)
        return RG_ERR_LIMIT;
    kernel_name(problem, name, sizeof name);
    const bool reduce = strncmp(problem->kernel, "allreduce", 9) == 0;
    const rg_store fill =
        strcmp(problem->dtype, "float32") == 0 ? RG_STORE_SMALL_FP32 : RG_STORE_SMALL_BF16;
    int wrong = -1;
    rg_status status = set_up(state, gpu, name, ranks, is_virtual(problem), bytes, fill, err);
    int total = 0;
    for (int i = 0; i < 3 && status == RG_OK; i++) {
        status = poison_ranks(state, bytes, err);
        if (status == RG_OK)
            status = launch_ranks(state, err);
        if (status == RG_OK)
            status = compare_ranks(arena, state, fill, reduce, bytes, &wrong, err);
        total += wrong;
    }
    rg_ranks_leave(&state->group);
    RG_TRY(status);
    rg_check_add(log, total, 0, "%s %s %s %d ranks %zu bytes: equal to the bit on every rank",
                 problem->kernel, problem->variant, problem->dtype, ranks, bytes);
    rg_gpu_release_to(gpu, mark);
    return RG_OK;
}

static rg_status check_kernel(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, const char *kernel,
                              rg_err *err)
{
    static const char *const variants[] = {"one_shot", "two_shot", "ring"};
    static const int64_t ranks[] = {1, 2, 3, 4, 8};
    const bool reduce = strncmp(kernel, "allreduce", 9) == 0;
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    for (int v = 0; v < (reduce ? 3 : 1); v++)
        for (int r = reduce && v == 2 ? 1 : 0; r < 5; r++) {
            /* one vector a rank, and parts that do not divide evenly among blocks */
            const int64_t bytes = 16 * ranks[r] * (r % 2 == 0 ? 1 : 700);
            rg_problem_add(list, kernel, reduce ? variants[v] : "pull",
                           (v + r) % 2 == 0 ? "bfloat16" : "float32", "ranks", ranks[r], "bytes",
                           bytes, NULL);
            RG_TRY(check_one(arena, gpu, &list->items[list->count - 1], log, err));
        }
    return RG_OK;
}

static rg_status check_allreduce(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    return check_kernel(arena, gpu, log, "allreduce", err);
}
static rg_status check_allreduce_virtual(rg_arena *arena, rg_gpu *gpu, rg_check_log *log,
                                         rg_err *err)
{
    return check_kernel(arena, gpu, log, "allreduce_virtual", err);
}
static rg_status check_alltoall(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    return check_kernel(arena, gpu, log, "alltoall", err);
}
static rg_status check_alltoall_virtual(rg_arena *arena, rg_gpu *gpu, rg_check_log *log,
                                        rg_err *err)
{
    return check_kernel(arena, gpu, log, "alltoall_virtual", err);
}

const rg_family rg_family_allreduce = {
    .name = "allreduce",
    .summary = "all-reduce over peer mappings: one shot, two shots, ring",
    .measured_op = "custom_allreduce",
    .problems = problems_allreduce,
    .usable = usable,
    .prepare = prepare,
    .check = check_allreduce,
};
const rg_family rg_family_allreduce_virtual = {
    .name = "allreduce_virtual",
    .summary = "the same among groups of blocks of one GPU: schedule and barrier cost only",
    .problems = problems_allreduce_virtual,
    .usable = usable,
    .prepare = prepare,
    .check = check_allreduce_virtual,
};
const rg_family rg_family_alltoall = {
    .name = "alltoall",
    .summary = "all-to-all over peer mappings",
    .problems = problems_alltoall,
    .usable = usable,
    .prepare = prepare,
    .check = check_alltoall,
};
const rg_family rg_family_alltoall_virtual = {
    .name = "alltoall_virtual",
    .summary = "the same among groups of blocks of one GPU",
    .problems = problems_alltoall_virtual,
    .usable = usable,
    .prepare = prepare,
    .check = check_alltoall_virtual,
};

/* kernels/probe/family_copy.c: copies between host and device, within a device, between devices.
 *
 * Reads bench.h. The copy engines' work, not a kernel's; host memory is pinned.
 */
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "bench.h"

typedef struct copy_state {
    void *host;
    rg_cu_ptr from, to;
    size_t bytes;
    rg_gpu other; /* the peer */
    const char *direction;
    const rg_cuda *cuda;
} copy_state;

static rg_status launch_copy(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err)
{
    (void)set;
    copy_state *s = bench->state;
    if (strcmp(s->direction, "h2d") == 0)
        RG_CU(gpu->cuda, cuMemcpyHtoDAsync_v2, (s->to, s->host, s->bytes, gpu->stream), err);
    else if (strcmp(s->direction, "d2h") == 0)
        RG_CU(gpu->cuda, cuMemcpyDtoHAsync_v2, (s->host, s->from, s->bytes, gpu->stream), err);
    else if (strcmp(s->direction, "d2d") == 0)
        RG_CU(gpu->cuda, cuMemcpyDtoDAsync_v2, (s->to, s->from, s->bytes, gpu->stream), err);
    else
        RG_CU(gpu->cuda, cuMemcpyPeerAsync,
              (s->to, s->other.context, s->from, gpu->context, s->bytes, gpu->stream), err);
    return RG_OK;
}

static void release_copy(rg_bench *bench)
{
    copy_state *s = bench->state;
    if (s->host)
        s->cuda->cuMemFreeHost(s->host);
    rg_gpu_close(&s->other);
}

static rg_status copy_buffers(copy_state *s, rg_gpu *gpu, rg_err *err)
{
    const bool peer = strcmp(s->direction, "p2p") == 0;
    const bool host = strcmp(s->direction, "h2d") == 0 || strcmp(s->direction, "d2h") == 0;
    if (host) {
        RG_CU(gpu->cuda, cuMemHostAlloc, (&s->host, s->bytes, 0), err);
        for (size_t i = 0; i < s->bytes / 4; i++)
            ((uint32_t *)s->host)[i] = rg_store_word(RG_STORE_RAW, 1, i);
    }
    RG_TRY(rg_gpu_alloc(gpu, s->bytes, &s->from, err));
    RG_TRY(rg_gpu_fill(gpu, s->from, s->bytes, RG_STORE_RAW, 2, err));
    RG_TRY(rg_gpu_sync(gpu, err));
    if (!peer)
        return rg_gpu_alloc(gpu, s->bytes, &s->to, err);
    RG_TRY(rg_gpu_open(&s->other, gpu->cuda, (gpu->device + 1) % gpu->cuda->device_count, err));
    RG_TRY(rg_gpu_alloc(&s->other, s->bytes, &s->to, err));
    RG_TRY(rg_gpu_use(gpu, err));
    const rg_cu_result result = gpu->cuda->cuCtxEnablePeerAccess(s->other.context, 0);
    if (result != RG_CU_PEER_ALREADY_ENABLED && result != RG_CU_SUCCESS)
        return rg_cuda_check(gpu->cuda, result, "cuCtxEnablePeerAccess", err);
    return RG_OK;
}

static rg_status prepare_copy(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                              rg_bench *out, rg_err *err)
{
    (void)cold;
    copy_state *state = RG_NEW(arena, copy_state, 1, err);
    if (!state)
        return RG_ERR_LIMIT;
    out->state = state;
    state->cuda = gpu->cuda;
    state->direction = problem->variant;
    state->bytes = (size_t)rg_problem_get(problem, "bytes");
    const rg_status status = copy_buffers(state, gpu, err);
    if (status != RG_OK) {
        release_copy(out);
        rg_err ignored;
        rg_gpu_use(gpu, &ignored);
        return status;
    }
    out->launch = launch_copy;
    out->release = release_copy;
    out->set_bytes = (double)state->bytes;
    out->link_bytes = strcmp(state->direction, "d2d") == 0 ? 0 : (double)state->bytes;
    out->bytes =
        strcmp(state->direction, "d2d") == 0 ? 2.0 * (double)state->bytes : (double)state->bytes;
    out->sets = 1;
    return RG_OK;
}

static bool usable_copy(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    if (rg_problem_get(problem, "bytes") < 4 || rg_problem_get(problem, "bytes") % 4 != 0) {
        snprintf(why, why_size, "bytes are a multiple of 4");
        return false;
    }
    if (strcmp(problem->variant, "p2p") == 0 && gpu->cuda->device_count < 2) {
        snprintf(why, why_size, "two GPUs wanted, this machine has 1");
        return false;
    }
    return true;
}

static void problems_copy(rg_problem_list *list, rg_extent extent)
{
    static const char *const directions[] = {"h2d", "d2h", "d2d", "p2p"};
    for (int d = 0; d < 4; d++)
        for (int64_t bytes = 1024; bytes <= (extent == RG_EXTENT_SMALL ? 1024 : 1073741824);
             bytes *= extent == RG_EXTENT_FULL ? 2 : 8)
            rg_problem_add(list, "copy", directions[d], "uint32", "bytes", bytes, NULL);
}

static rg_status check_copy(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err)
{
    static const char *const directions[] = {"h2d", "d2h", "d2d", "p2p"};
    const size_t words = 1021;
    rg_problem_list *list = RG_NEW(arena, rg_problem_list, 1, err);
    uint32_t *got = RG_NEW(arena, uint32_t, words, err);
    if (!list || !got)
        return RG_ERR_LIMIT;
    for (int d = 0; d < 4; d++) {
        char why[128];
        const int mark = rg_gpu_mark(gpu);
        rg_problem *problem = rg_problem_add(list, "copy", directions[d], "uint32", "bytes",
                                             (int64_t)(4 * words), NULL);
        if (!usable_copy(gpu, problem, why, sizeof why)) {
            rg_check_skip(log, why, "copy %s", directions[d]);
            continue;
        }
        rg_bench bench = {.per_launch = 1};
        RG_TRY(prepare_copy(arena, gpu, problem, false, &bench, err));
        RG_TRY(launch_copy(gpu, &bench, 0, err));
        const copy_state *s = bench.state;
        RG_TRY(rg_gpu_sync(gpu, err));
        if (d == 1)
            memcpy(got, s->host, 4 * words);
        else
            RG_TRY(rg_gpu_download(gpu, got, s->to, 4 * words, err));
        int wrong = 0;
        for (size_t i = 0; i < words; i++)
            wrong += got[i] != rg_store_word(RG_STORE_RAW, d == 0 ? 1 : 2, i);
        release_copy(&bench);
        RG_TRY(rg_gpu_use(gpu, err));
        rg_check_add(log, wrong, 0, "copy %s", directions[d]);
        rg_gpu_release_to(gpu, mark);
    }
    return RG_OK;
}

const rg_family rg_family_copy = {
    .name = "copy",
    .summary = "copies: host to device and back, device to device, peer to peer",
    .problems = problems_copy,
    .usable = usable_copy,
    .prepare = prepare_copy,
    .check = check_copy,
};

/* kernels/probe/family_nccl.c: NCCL's collectives.
 *
 * Reads bench.h, nccl.h, ranks.h. bytes follow nccl-tests: the buffer of a rank for all_reduce, the
 * total over ranks for the others.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "nccl.h"
#include "ranks.h"

typedef struct nccl_state {
    rg_rank_group group;
    const rg_nccl *nccl;
    rg_nccl_comm comms[RG_MOST_RANKS];
    uint8_t *in[RG_MOST_RANKS], *out[RG_MOST_RANKS];
    size_t bytes;
    int type, type_bytes;
    const char *op;
} nccl_state;

static void release(rg_bench *bench)
{
    nccl_state *state = bench->state;
    for (int r = 0; r < state->group.ranks; r++)
        if (state->comms[r])
            state->nccl->ncclCommDestroy(state->comms[r]);
    rg_ranks_leave(&state->group);
}

static bool usable_nccl(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size)
{
    if (gpu->cuda->emulated) {
        snprintf(why, why_size, "NCCL does not run on an emulated driver");
        return false;
    }
    const int64_t ranks = rg_problem_get(problem, "ranks");
    if (ranks < 1 || ranks > RG_MOST_RANKS || ranks > gpu->cuda->device_count) {
        snprintf(why, why_size, "%lld GPUs wanted, this machine has %d", (long long)ranks,
                 gpu->cuda->device_count);
        return false;
    }
    return rg_nccl_open(getenv("RIDGE_CUDA_LIB"), why, why_size) != NULL;
}

static rg_status nccl_check(int status, const char *call, rg_err *err)
{
    if (status == 0)
        return RG_OK;
    return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "%s failed with status '%d'", call, status);
}

static rg_status nccl_rank(nccl_state *s, int r, rg_err *err)
{
    const rg_nccl *nccl = s->nccl;
    const int ranks = s->group.ranks, type = s->type;
    const size_t count = s->bytes / (size_t)s->type_bytes, part = count / (size_t)ranks;
    const uint8_t *in = s->in[r];
    uint8_t *out = s->out[r];
    rg_cu_stream stream = s->group.gpus[r]->stream;
    if (strcmp(s->op, "all_reduce") == 0)
        return nccl_check(
            nccl->ncclAllReduce(in, out, count, type, RG_NCCL_SUM, s->comms[r], stream),
            "ncclAllReduce", err);
    if (strcmp(s->op, "all_gather") == 0)
        return nccl_check(nccl->ncclAllGather(in, out, part, type, s->comms[r], stream),
                          "ncclAllGather", err);
    if (strcmp(s->op, "reduce_scatter") == 0)
        return nccl_check(
            nccl->ncclReduceScatter(in, out, part, type, RG_NCCL_SUM, s->comms[r], stream),
            "ncclReduceScatter", err);
    const size_t step = part * (size_t)s->type_bytes;
    for (int peer = 0; peer < ranks; peer++) {
        RG_TRY(nccl_check(
            nccl->ncclSend(in + (size_t)peer * step, part, type, peer, s->comms[r], stream),
            "ncclSend", err));
        RG_TRY(nccl_check(
            nccl->ncclRecv(out + (size_t)peer * step, part, type, peer, s->comms[r], stream),
            "ncclRecv", err));
    }
    return RG_OK;
}

static rg_status launch_nccl(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err)
{
    (void)gpu, (void)set;
    nccl_state *s = bench->state;
    RG_TRY(nccl_check(s->nccl->ncclGroupStart(), "ncclGroupStart", err));
    rg_status status = RG_OK;
    for (int r = 0; r < s->group.ranks && status == RG_OK; r++)
        status = nccl_rank(s, r, err);
    RG_TRY(nccl_check(s->nccl->ncclGroupEnd(), "ncclGroupEnd", err));
    return status;
}

static rg_status nccl_buffers(nccl_state *s, rg_gpu *gpu, int ranks, rg_err *err)
{
    RG_TRY(rg_ranks_join(&s->group, gpu, ranks, false, err));
    int devices[RG_MOST_RANKS];
    for (int r = 0; r < ranks; r++) {
        rg_gpu *on = s->group.gpus[r];
        rg_cu_ptr in = 0, out = 0;
        RG_TRY(rg_gpu_use(on, err));
        RG_TRY(rg_gpu_alloc(on, s->bytes, &in, err));
        RG_TRY(rg_gpu_alloc(on, s->bytes, &out, err));
        RG_TRY(rg_gpu_fill(on, in, s->bytes, RG_STORE_RAW, (uint64_t)r, err));
        RG_TRY(rg_gpu_sync(on, err));
        s->in[r] = rg_gpu_address(in);
        s->out[r] = rg_gpu_address(out);
        devices[r] = on->device;
    }
    RG_TRY(rg_gpu_use(gpu, err));
    return nccl_check(s->nccl->ncclCommInitAll(s->comms, ranks, devices), "ncclCommInitAll", err);
}

static rg_status prepare_nccl(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                              rg_bench *out, rg_err *err)
{
    (void)cold;
    char why[512];
    nccl_state *s = RG_NEW(arena, nccl_state, 1, err);
    if (!s)
        return RG_ERR_LIMIT;
    const int ranks = (int)rg_problem_get(problem, "ranks");
    s->nccl = rg_nccl_open(getenv("RIDGE_CUDA_LIB"), why, sizeof why);
    s->bytes = (size_t)rg_problem_get(problem, "bytes");
    s->op = problem->variant;
    s->type = strcmp(problem->dtype, "int8") == 0 ? RG_NCCL_INT8 : RG_NCCL_HALF;
    s->type_bytes = s->type == RG_NCCL_INT8 ? 1 : 2;
    out->state = s;
    out->release = release;
    const rg_status status = nccl_buffers(s, gpu, ranks, err);
    if (status != RG_OK) {
        release(out);
        return status;
    }
    out->link_bytes =
        (double)s->bytes * (ranks - 1.0) / ranks * (strcmp(s->op, "all_reduce") == 0 ? 2 : 1);
    out->set_bytes = 2.0 * (double)s->bytes;
    out->sets = 1;
    out->no_graph = true;
    out->label = ranks == 1 ? "one rank: overhead of NCCL only" : NULL;
    out->launch = launch_nccl;
    return RG_OK;
}

static void problems_nccl(rg_problem_list *list, rg_extent extent)
{
    static const char *const ops[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall"};
    for (int o = 0; o < 4; o++)
        for (int64_t ranks = o == 0 ? 1 : 2; ranks <= 8; ranks *= 2)
            for (int64_t bytes = 1024; bytes <= 1073741824;
                 bytes *= extent == RG_EXTENT_FULL ? 2 : 8)
                if (extent != RG_EXTENT_SMALL || bytes == 1024)
                    rg_problem_add(list, "nccl", ops[o], "half", "ranks", ranks, "bytes", bytes,
                                   NULL);
}

const rg_family rg_family_nccl = {
    .name = "nccl",
    .summary = "NCCL's collectives, all ranks in one process",
    .measured_op = "nccl",
    .problems = problems_nccl,
    .usable = usable_nccl,
    .prepare = prepare_nccl,
};

/* kernels/probe/ranks.c: joining GPUs into a group.
 *
 * Reads ranks.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

rg_status rg_ranks_join(rg_rank_group *group, rg_gpu *gpu, int ranks, bool virtual_ranks,
                        rg_err *err)
{
    group->ranks = ranks;
    group->is_virtual = virtual_ranks;
    for (int r = 0; r < ranks; r++)
        group->gpus[r] = gpu;
    for (int r = 1; r < ranks && !virtual_ranks; r++) {
        const int device = (gpu->device + r) % gpu->cuda->device_count;
        RG_TRY(rg_gpu_open(&group->others[r], gpu->cuda, device, err));
        group->gpus[r] = &group->others[r];
    }
    for (int a = 0; a < ranks && !virtual_ranks; a++) {
        RG_TRY(rg_gpu_use(group->gpus[a], err));
        for (int b = 0; b < ranks; b++) {
            if (a == b)
                continue;
            const rg_cu_result result =
                gpu->cuda->cuCtxEnablePeerAccess(group->gpus[b]->context, 0);
            if (result != RG_CU_PEER_ALREADY_ENABLED)
                RG_TRY(rg_cuda_check(gpu->cuda, result, "cuCtxEnablePeerAccess", err));
        }
    }
    return rg_gpu_use(gpu, err);
}

void rg_ranks_leave(rg_rank_group *group)
{
    for (int r = 1; r < group->ranks && !group->is_virtual; r++)
        rg_gpu_close(&group->others[r]);
    rg_err ignored;
    rg_gpu_use(group->gpus[0], &ignored);
}

/* kernels/probe/ranks.h: the ranks of a collective: GPUs that map each other's memory, or one GPU
 * many times.
 *
 * Reads gpu.h, ../collective.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_RANKS_H
#define RG_PROBE_RANKS_H

#include "collective.h"
#include "gpu.h"

/* The ranks of a group: other GPUs, or one GPU many times. */
typedef struct rg_rank_group {
    rg_gpu *gpus[RG_MOST_RANKS]; /* of each rank */
    rg_gpu others[RG_MOST_RANKS];
    int ranks;
    bool is_virtual;
} rg_rank_group;

/** Open the other GPUs and let all see each other's memory. The caller's GPU is rank 0. */
rg_status rg_ranks_join(rg_rank_group *group, rg_gpu *gpu, int ranks, bool virtual_ranks,
                        rg_err *err);
/** Close the other GPUs; rank 0's context is the thread's again. */
void rg_ranks_leave(rg_rank_group *group);

#endif

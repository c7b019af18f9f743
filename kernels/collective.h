/* kernels/collective.h: all-reduce and all-to-all over memory that ranks map from each other.
 *
 * Reads value.h. A rank is a GPU of one process (peer mappings over NVLink or PCIe), or, for checks
 * and for costs inside one GPU, a group of blocks of one launch: a virtual rank. Virtual ranks show
 * schedules, sums, flags and the cost of a barrier through L2; they say nothing of an interconnect.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_COLLECTIVE_H
#define RG_KERNELS_COLLECTIVE_H

#include "value.h"

enum { RG_MOST_RANKS = 16, RG_COLLECTIVE_THREADS = 256, RG_COLLECTIVE_MOST_BLOCKS = 64 };

typedef struct rg_collective_params {
    const uint8_t *in[RG_MOST_RANKS]; /* of each rank, as this rank sees it */
    uint8_t *out[RG_MOST_RANKS];
    uint8_t *work[RG_MOST_RANKS]; /* scratch of the size of in */
    uint32_t
        *flags[RG_MOST_RANKS]; /* [blocks][ranks]: count that rank has reached, zeros at first */
    uint32_t
        *epochs[RG_MOST_RANKS]; /* [blocks]: count at the end of the last launch, zeros at first */
    int64_t vectors;            /* 16-byte vectors of in */
    int32_t ranks, blocks;      /* blocks of each rank */
    int32_t rank;               /* -1: virtual, rank = block / blocks */
} rg_collective_params;

/** Vectors first <= i < last of part `part` out of `parts`. */
RG_BOTH int64_t rg_part_first(int64_t vectors, int32_t part, int32_t parts)
{
    return vectors * part / parts;
}

#ifdef __cplusplus
extern "C"
#endif
    /** out[rank] of an all-reduce of one element sequence: sums in double. in [ranks][count]. */
    void
    rg_allreduce_reference(const double *const *in, int32_t ranks, int64_t count, double *out);

#endif

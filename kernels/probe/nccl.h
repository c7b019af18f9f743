/* kernels/probe/nccl.h: NCCL, opened at run time, all ranks in this process.
 *
 * Reads gpu.h. The few declarations are held against nccl.h by tests/gpu/check_abi.sh.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_NCCL_H
#define RG_PROBE_NCCL_H

#include "gpu.h"

enum { RG_NCCL_INT8 = 0, RG_NCCL_HALF = 6, RG_NCCL_FLOAT = 7, RG_NCCL_BF16 = 9, RG_NCCL_SUM = 0 };

typedef void *rg_nccl_comm;

#define RG_NCCL_CALLS(X)                                                                       \
    X(ncclGetVersion, (int *))                                                                 \
    X(ncclCommInitAll, (rg_nccl_comm *, int, const int *))                                     \
    X(ncclCommDestroy, (rg_nccl_comm))                                                         \
    X(ncclGroupStart, (void))                                                                  \
    X(ncclGroupEnd, (void))                                                                    \
    X(ncclAllReduce, (const void *, void *, size_t, int, int, rg_nccl_comm, rg_cu_stream))     \
    X(ncclAllGather, (const void *, void *, size_t, int, rg_nccl_comm, rg_cu_stream))          \
    X(ncclReduceScatter, (const void *, void *, size_t, int, int, rg_nccl_comm, rg_cu_stream)) \
    X(ncclSend, (const void *, size_t, int, int, rg_nccl_comm, rg_cu_stream))                  \
    X(ncclRecv, (void *, size_t, int, int, rg_nccl_comm, rg_cu_stream))

typedef struct rg_nccl {
    void *library;
#define RG_NCCL_MEMBER(name, arguments) int(*name) arguments;
    RG_NCCL_CALLS(RG_NCCL_MEMBER)
#undef RG_NCCL_MEMBER
} rg_nccl;

/** Open once; NULL with the reason. */
const rg_nccl *rg_nccl_open(const char *folder, char *why, size_t why_size);

#endif

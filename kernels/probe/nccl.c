/* kernels/probe/nccl.c: opening NCCL.
 *
 * Reads nccl.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "nccl.h"

#include <dlfcn.h>
#include <stdio.h>

const rg_nccl *rg_nccl_open(const char *folder, char *why, size_t why_size)
{
    static const char *const names[] = {"libnccl.so.2", NULL};
    static rg_nccl only;
    if (only.ncclRecv)
        return &only;
    only.library = rg_cuda_library(folder, names, why, why_size);
    if (!only.library)
        return NULL;
#define RG_NCCL_LOOKUP(name, arguments)                     \
    *(void **)&only.name = dlsym(only.library, #name);      \
    if (!only.name) {                                       \
        snprintf(why, why_size, "libnccl lacks %s", #name); \
        return NULL;                                        \
    }
    RG_NCCL_CALLS(RG_NCCL_LOOKUP)
#undef RG_NCCL_LOOKUP
    return &only;
}

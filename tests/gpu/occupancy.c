/* tests/gpu/occupancy.c: blocks on an SM of a described GPU, by NVIDIA's own formula.
 *
 * Reads cuda_occupancy.h of a toolkit; needs no device. Lines "kernel arch registers threads
 * shared" on stdin get the number of blocks appended.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_occupancy.h>

/* Shared memory of an SM and of a block at most, and what the driver keeps of each block: CUDA C++
 * Programming Guide 13.0, table "Technical Specifications per Compute Capability". */
static const struct {
    const char *arch;
    int major, minor;
    size_t per_sm, per_block;
} chips[] = {
    {"sm_80", 8, 0, 167936, 166912},
    {"sm_90a", 9, 0, 233472, 232448},
    {"sm_100", 10, 0, 233472, 232448},
};

static int blocks(const char *arch, int registers, int threads, size_t shared)
{
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        if (strcmp(chips[i].arch, arch) != 0)
            continue;
        cudaOccDeviceProp device = {.computeMajor = chips[i].major,
                                    .computeMinor = chips[i].minor,
                                    .maxThreadsPerBlock = 1024,
                                    .maxThreadsPerMultiprocessor = 2048,
                                    .regsPerBlock = 65536,
                                    .regsPerMultiprocessor = 65536,
                                    .warpSize = 32,
                                    .sharedMemPerBlock = 49152,
                                    .sharedMemPerMultiprocessor = chips[i].per_sm,
                                    .numSms = 108,
                                    .sharedMemPerBlockOptin = chips[i].per_block,
                                    .reservedSharedMemPerBlock = 1024};
        cudaOccFuncAttributes function = {.maxThreadsPerBlock = threads,
                                          .numRegs = registers,
                                          .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                          .maxDynamicSharedSizeBytes = shared,
                                          .numBlockBarriers = 1};
        cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED};
        cudaOccResult result = {0};
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads,
                                                    shared) != CUDA_OCC_SUCCESS)
            return -1;
        return result.activeBlocksPerMultiprocessor;
    }
    return -1;
}

int main(void)
{
    char kernel[128], arch[32];
    int registers, threads;
    size_t shared;
    while (scanf("%127s %31s %d %d %zu", kernel, arch, &registers, &threads, &shared) == 5)
        printf("%s %s %d %d %zu %d\n", kernel, arch, registers, threads, shared,
               blocks(arch, registers, threads, shared));
    return 0;
}

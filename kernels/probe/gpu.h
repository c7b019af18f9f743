/* kernels/probe/gpu.h: one opened GPU: its figures, memory, kernels and launches.
 *
 * Reads driver.h, value.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_GPU_H
#define RG_PROBE_GPU_H

#include "driver.h"
#include "value.h"

typedef struct rg_gpu_figures {
    char name[256];
    char uuid[48];
    char pci[32];
    int major, minor, sms, clock_khz, memory_clock_khz, bus_bits, threads_per_sm, blocks_per_sm;
    int shared_per_sm, shared_per_block, registers_per_sm, l2_bytes;
    int64_t memory_bytes, memory_free_bytes;
    bool ecc, mps, mig, integrated, cooperative;
} rg_gpu_figures;

enum { RG_GPU_MAX_MODULES = 16, RG_GPU_MAX_ALLOCATIONS = 256 };

typedef struct rg_gpu {
    const rg_cuda *cuda;
    rg_cu_device device;
    rg_cu_context context;
    rg_cu_stream stream;
    rg_cu_module modules[RG_GPU_MAX_MODULES];
    int module_count;
    rg_cu_ptr allocations[RG_GPU_MAX_ALLOCATIONS];
    int allocation_count;
    rg_gpu_figures figures;
} rg_gpu;

/** A kernel ready to be launched. */
typedef struct rg_gpu_kernel {
    const char *name;
    rg_cu_function function;
    int grid, threads;
    int shared_bytes; /* dynamic */
    bool cooperative;
    int registers, local_bytes, blocks_per_sm, binary_version;
} rg_gpu_kernel;

/** Open device number `index`: primary context, a stream, all embedded kernels. */
rg_status rg_gpu_open(rg_gpu *gpu, const rg_cuda *cuda, int index, rg_err *err);
void rg_gpu_close(rg_gpu *gpu);
/** Make its context the calling thread's. */
rg_status rg_gpu_use(const rg_gpu *gpu, rg_err *err);

/** Device memory that rg_gpu_release_all frees. RG_ERR_DEVICE says how much was asked and free. */
rg_status rg_gpu_alloc(rg_gpu *gpu, size_t bytes, rg_cu_ptr *out, rg_err *err);
/** Allocations made so far, to go back to with rg_gpu_release_to. */
int rg_gpu_mark(const rg_gpu *gpu);
void rg_gpu_release_to(rg_gpu *gpu, int mark);
/** A copy of host memory on the device. */
rg_status rg_gpu_upload(rg_gpu *gpu, const void *host, size_t bytes, rg_cu_ptr *out, rg_err *err);
rg_status rg_gpu_download(rg_gpu *gpu, void *host, rg_cu_ptr from, size_t bytes, rg_err *err);
/** Fill with the reproducible random data of value.h. bytes is a multiple of 4. */
rg_status rg_gpu_fill(rg_gpu *gpu, rg_cu_ptr to, size_t bytes, rg_store kind, uint64_t seed,
                      rg_err *err);
/** Fill with 0xff bytes: NaN in every floating type, so that what was not written shows. */
rg_status rg_gpu_poison(rg_gpu *gpu, rg_cu_ptr to, size_t bytes, rg_err *err);

/** Look a kernel up and set its shared memory; fills registers, local memory and occupancy. grid is
 * left to the caller. */
rg_status rg_gpu_kernel_get(rg_gpu *gpu, const char *name, int threads, int shared_bytes,
                            rg_gpu_kernel *out, rg_err *err);
rg_status rg_gpu_launch(rg_gpu *gpu, const rg_gpu_kernel *kernel, const void *params, rg_err *err);
rg_status rg_gpu_sync(rg_gpu *gpu, rg_err *err);

static inline void *rg_gpu_address(rg_cu_ptr p)
{
    return (void *)(uintptr_t)p;
}

#endif

/* kernels/probe/gpu.c: one opened GPU.
 *
 * Reads gpu.h, embedded.h, ../fill.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"

#include <stdio.h>
#include <string.h>

#include "embedded.h"
#include "fill.h"

static rg_status read_figures(rg_gpu *gpu, rg_err *err)
{
    const rg_cuda *cuda = gpu->cuda;
    rg_gpu_figures *f = &gpu->figures;
    const struct {
        int attribute, *out;
    } wanted[] = {
        {RG_CU_ATTR_MAJOR, &f->major},
        {RG_CU_ATTR_MINOR, &f->minor},
        {RG_CU_ATTR_SMS, &f->sms},
        {RG_CU_ATTR_CLOCK_KHZ, &f->clock_khz},
        {RG_CU_ATTR_MEMORY_CLOCK_KHZ, &f->memory_clock_khz},
        {RG_CU_ATTR_BUS_BITS, &f->bus_bits},
        {RG_CU_ATTR_L2_BYTES, &f->l2_bytes},
        {RG_CU_ATTR_THREADS_PER_SM, &f->threads_per_sm},
        {RG_CU_ATTR_BLOCKS_PER_SM, &f->blocks_per_sm},
        {RG_CU_ATTR_SHARED_PER_SM, &f->shared_per_sm},
        {RG_CU_ATTR_SHARED_PER_BLOCK_OPTIN, &f->shared_per_block},
        {RG_CU_ATTR_REGISTERS_PER_SM, &f->registers_per_sm},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        RG_CU(cuda, cuDeviceGetAttribute, (wanted[i].out, wanted[i].attribute, gpu->device), err);
    int flag = 0;
    RG_CU(cuda, cuDeviceGetAttribute, (&flag, RG_CU_ATTR_ECC, gpu->device), err);
    f->ecc = flag != 0;
    RG_CU(cuda, cuDeviceGetAttribute, (&flag, RG_CU_ATTR_INTEGRATED, gpu->device), err);
    f->integrated = flag != 0;
    RG_CU(cuda, cuDeviceGetAttribute, (&flag, RG_CU_ATTR_COOPERATIVE, gpu->device), err);
    f->cooperative = flag != 0;
    /* drivers older than CUDA 12 do not know the attribute, and then there is nothing to say */
    f->mps = cuda->cuDeviceGetAttribute(&flag, RG_CU_ATTR_MPS, gpu->device) == 0 && flag != 0;
    RG_CU(cuda, cuDeviceGetName, (f->name, (int)sizeof f->name, gpu->device), err);
    f->mig = strstr(f->name, "MIG ") != NULL;
    unsigned char id[16];
    RG_CU(cuda, cuDeviceGetUuid, (id, gpu->device), err);
    char *at = f->uuid + snprintf(f->uuid, sizeof f->uuid, f->mig ? "MIG-" : "GPU-");
    for (int i = 0; i < 16; i++)
        at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id[i]);
    RG_CU(cuda, cuDeviceGetPCIBusId, (f->pci, (int)sizeof f->pci, gpu->device), err);
    size_t total = 0, unused = 0;
    RG_CU(cuda, cuDeviceTotalMem_v2, (&total, gpu->device), err);
    f->memory_bytes = (int64_t)total;
    RG_CU(cuda, cuMemGetInfo_v2, (&unused, &total), err);
    f->memory_free_bytes = (int64_t)unused;
    return RG_OK;
}

/** Load one image; an optional one may have no code for this GPU. */
static rg_status load_module(rg_gpu *gpu, const rg_embedded_image *image, rg_err *err)
{
    const rg_cu_result loaded =
        gpu->cuda->cuModuleLoadData(&gpu->modules[gpu->module_count], image->image);
    if (loaded == RG_CU_NO_BINARY_FOR_GPU && image->optional)
        return RG_OK;
    if (loaded == RG_CU_NO_BINARY_FOR_GPU)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "kernels '%s' have no code for this GPU (sm_%d%d); ridge-probe needs Ampere "
                       "(sm_80) or later, and may have to be built with CUDA_TARGETS=sm_%d%d",
                       image->name, gpu->figures.major, gpu->figures.minor, gpu->figures.major,
                       gpu->figures.minor);
    RG_TRY(rg_cuda_check(gpu->cuda, loaded, "cuModuleLoadData", err));
    gpu->module_count++;
    return RG_OK;
}

rg_status rg_gpu_open(rg_gpu *gpu, const rg_cuda *cuda, int index, rg_err *err)
{
    memset(gpu, 0, sizeof *gpu);
    gpu->cuda = cuda;
    if (index < 0 || index >= cuda->device_count)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "device '%d' is not among the %d that the driver sees, numbered from 0",
                       index, cuda->device_count);
    RG_CU(cuda, cuDeviceGet, (&gpu->device, index), err);
    int mode = 0;
    RG_CU(cuda, cuDeviceGetAttribute, (&mode, RG_CU_ATTR_COMPUTE_MODE, gpu->device), err);
    if (mode == 2)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "device %d is in compute mode 'prohibited'; nvidia-smi -c 0 lets programs "
                       "use it",
                       index);
    RG_CU(cuda, cuDevicePrimaryCtxRetain, (&gpu->context, gpu->device), err);
    RG_CU(cuda, cuCtxSetCurrent, (gpu->context), err);
    RG_CU(cuda, cuStreamCreate, (&gpu->stream, RG_CU_STREAM_NON_BLOCKING), err);
    RG_TRY(read_figures(gpu, err));
    if (rg_embedded_count == 0 && !cuda->emulated)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "this ridge-probe was built without kernels; build it again where nvcc is "
                       "(make CUDA=/usr/local/cuda)");
    for (int i = 0; i < rg_embedded_count; i++)
        RG_TRY(load_module(gpu, &rg_embedded[i], err));
    if (gpu->module_count == 0) { /* an emulated driver knows its kernels by name */
        const rg_embedded_image none = {"of the emulation", NULL, false};
        RG_TRY(load_module(gpu, &none, err));
    }
    return RG_OK;
}

void rg_gpu_close(rg_gpu *gpu)
{
    if (!gpu->context)
        return;
    gpu->cuda->cuCtxSetCurrent(gpu->context);
    rg_gpu_release_to(gpu, 0);
    for (int i = 0; i < gpu->module_count; i++)
        gpu->cuda->cuModuleUnload(gpu->modules[i]);
    if (gpu->stream)
        gpu->cuda->cuStreamDestroy_v2(gpu->stream);
    gpu->cuda->cuDevicePrimaryCtxRelease_v2(gpu->device);
    gpu->context = NULL;
}

rg_status rg_gpu_use(const rg_gpu *gpu, rg_err *err)
{
    RG_CU(gpu->cuda, cuCtxSetCurrent, (gpu->context), err);
    return RG_OK;
}

rg_status rg_gpu_alloc(rg_gpu *gpu, size_t bytes, rg_cu_ptr *out, rg_err *err)
{
    if (gpu->allocation_count == RG_GPU_MAX_ALLOCATIONS)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than %d device buffers in one kernel",
                       RG_GPU_MAX_ALLOCATIONS);
    const rg_cu_result got = gpu->cuda->cuMemAlloc_v2(out, bytes > 0 ? bytes : 4);
    if (got == RG_CU_OUT_OF_MEMORY) {
        size_t unused = 0, total = 0;
        gpu->cuda->cuMemGetInfo_v2(&unused, &total);
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "out of device memory: '%.1f' MiB asked for, %.1f of %.1f MiB free; another "
                       "process may hold the rest",
                       (double)bytes / 1048576.0, (double)unused / 1048576.0,
                       (double)total / 1048576.0);
    }
    RG_TRY(rg_cuda_check(gpu->cuda, got, "cuMemAlloc", err));
    gpu->allocations[gpu->allocation_count++] = *out;
    return RG_OK;
}

int rg_gpu_mark(const rg_gpu *gpu)
{
    return gpu->allocation_count;
}

void rg_gpu_release_to(rg_gpu *gpu, int mark)
{
    while (gpu->allocation_count > mark)
        gpu->cuda->cuMemFree_v2(gpu->allocations[--gpu->allocation_count]);
}

rg_status rg_gpu_upload(rg_gpu *gpu, const void *host, size_t bytes, rg_cu_ptr *out, rg_err *err)
{
    RG_TRY(rg_gpu_alloc(gpu, bytes, out, err));
    if (bytes > 0)
        RG_CU(gpu->cuda, cuMemcpyHtoD_v2, (*out, host, bytes), err);
    return RG_OK;
}

rg_status rg_gpu_download(rg_gpu *gpu, void *host, rg_cu_ptr from, size_t bytes, rg_err *err)
{
    RG_TRY(rg_gpu_sync(gpu, err));
    RG_CU(gpu->cuda, cuMemcpyDtoH_v2, (host, from, bytes), err);
    return RG_OK;
}

rg_status rg_gpu_fill(rg_gpu *gpu, rg_cu_ptr to, size_t bytes, rg_store kind, uint64_t seed,
                      rg_err *err)
{
    rg_gpu_kernel kernel;
    RG_TRY(rg_gpu_kernel_get(gpu, "rg_fill", RG_FILL_THREADS, 0, &kernel, err));
    kernel.grid = gpu->figures.sms * 8;
    const rg_fill_params p = {rg_gpu_address(to), bytes / 4, seed, (int32_t)kind};
    return rg_gpu_launch(gpu, &kernel, &p, err);
}

rg_status rg_gpu_poison(rg_gpu *gpu, rg_cu_ptr to, size_t bytes, rg_err *err)
{
    RG_CU(gpu->cuda, cuMemsetD8Async, (to, 0xff, bytes, gpu->stream), err);
    return RG_OK;
}

rg_status rg_gpu_kernel_get(rg_gpu *gpu, const char *name, int threads, int shared_bytes,
                            rg_gpu_kernel *out, rg_err *err)
{
    const rg_cuda *cuda = gpu->cuda;
    *out =
        (rg_gpu_kernel){.name = name, .grid = 1, .threads = threads, .shared_bytes = shared_bytes};
    for (int i = 0; i < gpu->module_count && !out->function; i++)
        if (cuda->cuModuleGetFunction(&out->function, gpu->modules[i], name) != RG_CU_SUCCESS)
            out->function = NULL;
    if (!out->function)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "kernel '%s' has no code for this GPU (sm_%d%d) in this build", name,
                       gpu->figures.major, gpu->figures.minor);
    if (shared_bytes > gpu->figures.shared_per_block)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "kernel '%s' needs '%d' bytes of shared memory in a block, this GPU has %d",
                       name, shared_bytes, gpu->figures.shared_per_block);
    if (shared_bytes > 48 * 1024)
        RG_CU(cuda, cuFuncSetAttribute,
              (out->function, RG_CU_FUNC_MAX_DYNAMIC_SHARED, shared_bytes), err);
    if (shared_bytes > 0)
        RG_CU(cuda, cuFuncSetAttribute, (out->function, RG_CU_FUNC_CARVEOUT, 100), err);
    RG_CU(cuda, cuFuncGetAttribute, (&out->registers, RG_CU_FUNC_REGISTERS, out->function), err);
    RG_CU(cuda, cuFuncGetAttribute, (&out->local_bytes, RG_CU_FUNC_LOCAL_BYTES, out->function),
          err);
    RG_CU(cuda, cuFuncGetAttribute,
          (&out->binary_version, RG_CU_FUNC_BINARY_VERSION, out->function), err);
    RG_CU(cuda, cuOccupancyMaxActiveBlocksPerMultiprocessor,
          (&out->blocks_per_sm, out->function, threads, (size_t)shared_bytes), err);
    if (out->blocks_per_sm < 1)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "kernel '%s' does not fit on an SM of this GPU", name);
    return RG_OK;
}

rg_status rg_gpu_launch(rg_gpu *gpu, const rg_gpu_kernel *kernel, const void *params, rg_err *err)
{
    void *arguments[] = {(void *)params};
    const unsigned grid = (unsigned)kernel->grid, threads = (unsigned)kernel->threads;
    const unsigned shared = (unsigned)kernel->shared_bytes;
    const rg_cu_result launched =
        kernel->cooperative
            ? gpu->cuda->cuLaunchCooperativeKernel(kernel->function, grid, 1, 1, threads, 1, 1,
                                                   shared, gpu->stream, arguments)
            : gpu->cuda->cuLaunchKernel(kernel->function, grid, 1, 1, threads, 1, 1, shared,
                                        gpu->stream, arguments, NULL);
    return rg_cuda_check(gpu->cuda, launched, kernel->name, err);
}

rg_status rg_gpu_sync(rg_gpu *gpu, rg_err *err)
{
    RG_CU(gpu->cuda, cuStreamSynchronize, (gpu->stream), err);
    return RG_OK;
}

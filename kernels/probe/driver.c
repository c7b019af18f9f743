/* kernels/probe/driver.c: opening the CUDA driver and naming its errors.
 *
 * Reads driver.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *rg_cuda_library(const char *folder, const char *const *names, char *why, size_t why_size)
{
    char path[4096];
    const char *home = getenv("CUDA_HOME");
    const char *folders[] = {folder, "", home ? home : "/usr/local/cuda", "/usr/local/cuda"};
    static const char *const under[] = {"", "/lib64", "/lib", "/extras/CUPTI/lib64"};
    snprintf(why, why_size, "not found");
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        if (!folders[f])
            continue;
        for (size_t u = 0; u < (f < 2 ? 1 : sizeof under / sizeof *under); u++)
            for (const char *const *name = names; *name; name++) {
                snprintf(path, sizeof path, "%s%s%s%s", folders[f], under[u],
                         *folders[f] ? "/" : "", *name);
                void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
                if (library)
                    return library;
                if (f < 2)
                    snprintf(why, why_size, "%s", dlerror());
            }
    }
    return NULL;
}

rg_status rg_cuda_check(const rg_cuda *cuda, rg_cu_result result, const char *call, rg_err *err)
{
    if (result == RG_CU_SUCCESS)
        return RG_OK;
    const char *name = NULL, *text = NULL;
    if (cuda->cuGetErrorName)
        cuda->cuGetErrorName(result, &name);
    if (cuda->cuGetErrorString)
        cuda->cuGetErrorString(result, &text);
    return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "%s failed: %s (%d)%s%s", call,
                   name ? name : "unknown error", result, text ? ", " : "", text ? text : "");
}

static rg_status start(rg_cuda *cuda, rg_err *err)
{
    const rg_cu_result started = cuda->cuInit(0);
    switch (started) {
    case RG_CU_SUCCESS:
        break;
    case RG_CU_STUB_LIBRARY:
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "libcuda.so.1 is the stub library of a CUDA toolkit, not a driver; take its "
                       "folder off the library path and install the NVIDIA driver");
    case RG_CU_NO_DEVICE:
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "the CUDA driver sees no device; look at CUDA_VISIBLE_DEVICES, at the "
                       "container's device options and at nvidia-smi");
    case RG_CU_SYSTEM_DRIVER_MISMATCH:
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "libcuda.so.1 and the kernel module are of different driver versions; "
                       "reboot or reload the module after the driver update");
    case RG_CU_MPS_CONNECTION_FAILED:
    case RG_CU_MPS_SERVER_NOT_READY:
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "an MPS server is configured but does not answer; start "
                       "nvidia-cuda-mps-control or unset CUDA_MPS_PIPE_DIRECTORY");
    default:
        return rg_cuda_check(cuda, started, "cuInit", err);
    }
    RG_CU(cuda, cuDriverGetVersion, (&cuda->driver_version), err);
    RG_CU(cuda, cuDeviceGetCount, (&cuda->device_count), err);
    if (cuda->device_count < 1)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "the CUDA driver sees no device; look at CUDA_VISIBLE_DEVICES");
    return RG_OK;
}

rg_status rg_cuda_open(rg_cuda *cuda, const char *folder, rg_err *err)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    char why[512];
    memset(cuda, 0, sizeof *cuda);
    cuda->library = rg_cuda_library(folder, names, why, sizeof why);
    if (!cuda->library)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "no CUDA driver on this machine (%s)", why);
#define RG_CUDA_LOOKUP(name, arguments)                                                          \
    *(void **)&cuda->name = dlsym(cuda->library, #name);                                         \
    if (!cuda->name)                                                                             \
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,                                           \
                       "the CUDA driver lacks '%s'; ridge-probe needs a driver of CUDA 11.4 or " \
                       "later",                                                                  \
                       #name);
    RG_CUDA_CALLS(RG_CUDA_LOOKUP)
#undef RG_CUDA_LOOKUP
    *(void **)&cuda->cuTensorMapEncodeTiled = dlsym(cuda->library, "cuTensorMapEncodeTiled");
    cuda->emulated = dlsym(cuda->library, "rg_emulated_driver") != NULL;
    return start(cuda, err);
}

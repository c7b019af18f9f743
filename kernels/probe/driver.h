/* kernels/probe/driver.h: the CUDA driver, opened at run time.
 *
 * Reads core/err.h. ridge-probe links nothing of CUDA: it starts on any machine and says what is
 * missing. The declarations are ridge's own, the few that it needs; tests/gpu/check_abi.sh holds
 * them against cuda.h where a toolkit is installed.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_DRIVER_H
#define RG_PROBE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

typedef int rg_cu_result;
typedef int rg_cu_device;
typedef unsigned long long rg_cu_ptr;
typedef struct CUctx_st *rg_cu_context;
typedef struct CUmod_st *rg_cu_module;
typedef struct CUfunc_st *rg_cu_function;
typedef struct CUstream_st *rg_cu_stream;
typedef struct CUevent_st *rg_cu_event;
typedef struct CUgraph_st *rg_cu_graph;
typedef struct CUgraphExec_st *rg_cu_graph_exec;

enum { /* CUresult */
       RG_CU_SUCCESS = 0,
       RG_CU_OUT_OF_MEMORY = 2,
       RG_CU_STUB_LIBRARY = 34,
       RG_CU_NO_DEVICE = 100,
       RG_CU_INVALID_DEVICE = 101,
       RG_CU_NO_BINARY_FOR_GPU = 209,
       RG_CU_PEER_ALREADY_ENABLED = 704,
       RG_CU_MPS_CONNECTION_FAILED = 805,
       RG_CU_MPS_SERVER_NOT_READY = 807,
       RG_CU_NOT_SUPPORTED = 801,
       RG_CU_SYSTEM_DRIVER_MISMATCH = 803,
       RG_CU_NOT_PERMITTED = 800,
};

enum { /* CUdevice_attribute */
       RG_CU_ATTR_CLOCK_KHZ = 13,
       RG_CU_ATTR_SMS = 16,
       RG_CU_ATTR_INTEGRATED = 18,
       RG_CU_ATTR_COMPUTE_MODE = 20,
       RG_CU_ATTR_ECC = 32,
       RG_CU_ATTR_MEMORY_CLOCK_KHZ = 36,
       RG_CU_ATTR_BUS_BITS = 37,
       RG_CU_ATTR_L2_BYTES = 38,
       RG_CU_ATTR_THREADS_PER_SM = 39,
       RG_CU_ATTR_MAJOR = 75,
       RG_CU_ATTR_MINOR = 76,
       RG_CU_ATTR_SHARED_PER_SM = 81,
       RG_CU_ATTR_REGISTERS_PER_SM = 82,
       RG_CU_ATTR_COOPERATIVE = 95,
       RG_CU_ATTR_SHARED_PER_BLOCK_OPTIN = 97,
       RG_CU_ATTR_BLOCKS_PER_SM = 106,
       RG_CU_ATTR_MPS = 133,
};

enum { /* CUfunction_attribute */
       RG_CU_FUNC_STATIC_SHARED = 1,
       RG_CU_FUNC_LOCAL_BYTES = 3,
       RG_CU_FUNC_REGISTERS = 4,
       RG_CU_FUNC_BINARY_VERSION = 6,
       RG_CU_FUNC_MAX_DYNAMIC_SHARED = 8,
       RG_CU_FUNC_CARVEOUT = 9,
};

enum { RG_CU_STREAM_NON_BLOCKING = 1, RG_CU_EVENT_DEFAULT = 0, RG_CU_CAPTURE_RELAXED = 2 };
enum { /* CUtensorMap */
       RG_CU_TENSOR_BYTES = 0,
       RG_CU_TENSOR_BF16 = 9,
       RG_CU_TENSOR_SWIZZLE_128B = 3,
       RG_CU_TENSOR_L2_256B = 3,
};
typedef struct rg_cu_tensor_map {
    _Alignas(128) uint64_t opaque[16];
} rg_cu_tensor_map;

/* name as the library exports it, arguments */
#define RG_CUDA_CALLS(X)                                                                           \
    X(cuInit, (unsigned))                                                                          \
    X(cuDriverGetVersion, (int *))                                                                 \
    X(cuGetErrorName, (rg_cu_result, const char **))                                               \
    X(cuGetErrorString, (rg_cu_result, const char **))                                             \
    X(cuDeviceGetCount, (int *))                                                                   \
    X(cuDeviceGet, (rg_cu_device *, int))                                                          \
    X(cuDeviceGetName, (char *, int, rg_cu_device))                                                \
    X(cuDeviceGetUuid, (unsigned char *, rg_cu_device))                                            \
    X(cuDeviceGetPCIBusId, (char *, int, rg_cu_device))                                            \
    X(cuDeviceGetAttribute, (int *, int, rg_cu_device))                                            \
    X(cuDeviceTotalMem_v2, (size_t *, rg_cu_device))                                               \
    X(cuDevicePrimaryCtxRetain, (rg_cu_context *, rg_cu_device))                                   \
    X(cuDevicePrimaryCtxRelease_v2, (rg_cu_device))                                                \
    X(cuCtxSetCurrent, (rg_cu_context))                                                            \
    X(cuCtxSynchronize, (void))                                                                    \
    X(cuCtxEnablePeerAccess, (rg_cu_context, unsigned))                                            \
    X(cuDeviceCanAccessPeer, (int *, rg_cu_device, rg_cu_device))                                  \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                                       \
    X(cuMemAlloc_v2, (rg_cu_ptr *, size_t))                                                        \
    X(cuMemFree_v2, (rg_cu_ptr))                                                                   \
    X(cuMemHostAlloc, (void **, size_t, unsigned))                                                 \
    X(cuMemFreeHost, (void *))                                                                     \
    X(cuMemcpyHtoD_v2, (rg_cu_ptr, const void *, size_t))                                          \
    X(cuMemcpyDtoH_v2, (void *, rg_cu_ptr, size_t))                                                \
    X(cuMemcpyHtoDAsync_v2, (rg_cu_ptr, const void *, size_t, rg_cu_stream))                       \
    X(cuMemcpyDtoHAsync_v2, (void *, rg_cu_ptr, size_t, rg_cu_stream))                             \
    X(cuMemcpyDtoDAsync_v2, (rg_cu_ptr, rg_cu_ptr, size_t, rg_cu_stream))                          \
    X(cuMemcpyPeerAsync,                                                                           \
      (rg_cu_ptr, rg_cu_context, rg_cu_ptr, rg_cu_context, size_t, rg_cu_stream))                  \
    X(cuMemsetD8Async, (rg_cu_ptr, unsigned char, size_t, rg_cu_stream))                           \
    X(cuModuleLoadData, (rg_cu_module *, const void *))                                            \
    X(cuModuleUnload, (rg_cu_module))                                                              \
    X(cuModuleGetFunction, (rg_cu_function *, rg_cu_module, const char *))                         \
    X(cuFuncGetAttribute, (int *, int, rg_cu_function))                                            \
    X(cuFuncSetAttribute, (rg_cu_function, int, int))                                              \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, rg_cu_function, int, size_t))           \
    X(cuStreamCreate, (rg_cu_stream *, unsigned))                                                  \
    X(cuStreamDestroy_v2, (rg_cu_stream))                                                          \
    X(cuStreamSynchronize, (rg_cu_stream))                                                         \
    X(cuStreamBeginCapture_v2, (rg_cu_stream, int))                                                \
    X(cuStreamEndCapture, (rg_cu_stream, rg_cu_graph *))                                           \
    X(cuGraphInstantiateWithFlags, (rg_cu_graph_exec *, rg_cu_graph, unsigned long long))          \
    X(cuGraphLaunch, (rg_cu_graph_exec, rg_cu_stream))                                             \
    X(cuGraphDestroy, (rg_cu_graph))                                                               \
    X(cuGraphExecDestroy, (rg_cu_graph_exec))                                                      \
    X(cuEventCreate, (rg_cu_event *, unsigned))                                                    \
    X(cuEventDestroy_v2, (rg_cu_event))                                                            \
    X(cuEventRecord, (rg_cu_event, rg_cu_stream))                                                  \
    X(cuEventSynchronize, (rg_cu_event))                                                           \
    X(cuEventElapsedTime, (float *, rg_cu_event, rg_cu_event))                                     \
    X(cuLaunchKernel, (rg_cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                       unsigned, rg_cu_stream, void **, void **))                                  \
    X(cuLaunchCooperativeKernel, (rg_cu_function, unsigned, unsigned, unsigned, unsigned,          \
                                  unsigned, unsigned, unsigned, rg_cu_stream, void **))

typedef struct rg_cuda {
    void *library;
#define RG_CUDA_MEMBER(name, arguments) rg_cu_result(*name) arguments;
    RG_CUDA_CALLS(RG_CUDA_MEMBER)
#undef RG_CUDA_MEMBER
    /* NULL before CUDA 12 */
    rg_cu_result (*cuTensorMapEncodeTiled)(rg_cu_tensor_map *, int, uint32_t, void *,
                                           const uint64_t *, const uint64_t *, const uint32_t *,
                                           const uint32_t *, int, int, int, int);
    int driver_version; /* 13000 for CUDA 13.0 */
    int device_count;
    bool emulated; /* ridge's own stand-in: it knows kernels by name, and its times mean nothing */
} rg_cuda;

/** Open a library of CUDA: from folder (NULL: none), by bare name, from $CUDA_HOME and from the
 * default prefix; names is a NULL-terminated list, newest first. NULL when absent; why gets the
 * loader's last reason. */
void *rg_cuda_library(const char *folder, const char *const *names, char *why, size_t why_size);

/** Open libcuda.so.1 and start it. RG_ERR_DEVICE with a reason of its own for: no driver, the stub
 * library of a toolkit, no device, a driver that does not start. folder as above. */
rg_status rg_cuda_open(rg_cuda *cuda, const char *folder, rg_err *err);

/** RG_OK, or RG_ERR_DEVICE naming the call, the error and what it was for. */
rg_status rg_cuda_check(const rg_cuda *cuda, rg_cu_result result, const char *call, rg_err *err);
#define RG_CU(cuda, call, arguments, err) \
    RG_TRY(rg_cuda_check((cuda), (cuda)->call arguments, #call, (err)))

#endif

/* tests/gpu/abi.c: ridge-probe's own declarations of CUDA, NCCL and cuBLASLt against their headers.
 *
 * Compiled, never run. A call's type is compared as a pointer type with the same widths: handles
 * are pointers in both, enums are ints.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wundef"
#include <cuda.h>
#include <cublasLt.h>
#include <nccl.h>
#pragma GCC diagnostic pop

#include "cublaslt.h"
#include "driver.h"
#include "nccl.h"

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours)

SAME(RG_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(RG_CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(RG_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(RG_CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(RG_CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(RG_CU_PEER_ALREADY_ENABLED, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME(RG_CU_MPS_CONNECTION_FAILED, CUDA_ERROR_MPS_CONNECTION_FAILED);
SAME(RG_CU_MPS_SERVER_NOT_READY, CUDA_ERROR_MPS_SERVER_NOT_READY);
SAME(RG_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(RG_CU_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(RG_CU_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED);
SAME(RG_CU_ATTR_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(RG_CU_ATTR_SMS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(RG_CU_ATTR_INTEGRATED, CU_DEVICE_ATTRIBUTE_INTEGRATED);
SAME(RG_CU_ATTR_COMPUTE_MODE, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SAME(2, CU_COMPUTEMODE_PROHIBITED);
SAME(RG_CU_ATTR_ECC, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
SAME(RG_CU_ATTR_MEMORY_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(RG_CU_ATTR_BUS_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(RG_CU_ATTR_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(RG_CU_ATTR_THREADS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(RG_CU_ATTR_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(RG_CU_ATTR_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(RG_CU_ATTR_SHARED_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(RG_CU_ATTR_REGISTERS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME(RG_CU_ATTR_COOPERATIVE, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
SAME(RG_CU_ATTR_SHARED_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(RG_CU_ATTR_BLOCKS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
SAME(RG_CU_ATTR_MPS, CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
SAME(RG_CU_FUNC_STATIC_SHARED, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(RG_CU_FUNC_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(RG_CU_FUNC_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(RG_CU_FUNC_BINARY_VERSION, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
SAME(RG_CU_FUNC_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(RG_CU_FUNC_CARVEOUT, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME(RG_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(RG_CU_EVENT_DEFAULT, CU_EVENT_DEFAULT);
SAME(RG_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(RG_CU_TENSOR_BYTES, CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME(RG_CU_TENSOR_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(RG_CU_TENSOR_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(RG_CU_TENSOR_L2_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
SAME(sizeof(rg_cu_tensor_map), sizeof(CUtensorMap));
SAME(_Alignof(rg_cu_tensor_map), _Alignof(CUtensorMap));
SAME(sizeof(rg_cu_ptr), sizeof(CUdeviceptr));
SAME(sizeof(rg_cu_device), sizeof(CUdevice));

SAME(RG_LT_R_32F, CUDA_R_32F);
SAME(RG_LT_R_16BF, CUDA_R_16BF);
SAME(RG_LT_R_8F_E4M3, CUDA_R_8F_E4M3);
SAME(RG_LT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(RG_LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(RG_LT_PREF_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(RG_LT_OP_T, CUBLAS_OP_T);
SAME(sizeof(rg_lt_result), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(rg_lt_result, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
SAME(offsetof(rg_lt_result, waves), offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
SAME(sizeof(((rg_lt_result *)0)->algorithm), sizeof(cublasLtMatmulAlgo_t));

SAME(RG_NCCL_INT8, ncclInt8);
SAME(RG_NCCL_HALF, ncclHalf);
SAME(RG_NCCL_FLOAT, ncclFloat);
SAME(RG_NCCL_BF16, ncclBfloat16);
SAME(RG_NCCL_SUM, ncclSum);

/* Calls: the number and the widths of arguments. A wrong count or an integer where a pointer
 * belongs does not compile; handles of other names are converted through void pointers or ints. */
#define DRIVER_CALL(name, ours) \
    void check_##name(void);    \
    void check_##name(void)     \
    {                           \
        ours;                   \
    }
static union {
    void *p;
    int i;
    size_t z;
} a;
DRIVER_CALL(launch, (void)cuLaunchKernel((CUfunction)a.p, 1u, 1u, 1u, 1u, 1u, 1u, 1u, (CUstream)a.p,
                                         (void **)a.p, (void **)a.p))
DRIVER_CALL(cooperative, (void)cuLaunchCooperativeKernel((CUfunction)a.p, 1u, 1u, 1u, 1u, 1u, 1u,
                                                         1u, (CUstream)a.p, (void **)a.p))
DRIVER_CALL(peer, (void)cuMemcpyPeerAsync((CUdeviceptr)a.z, (CUcontext)a.p, (CUdeviceptr)a.z,
                                          (CUcontext)a.p, a.z, (CUstream)a.p))
DRIVER_CALL(instantiate, (void)cuGraphInstantiateWithFlags((CUgraphExec *)a.p, (CUgraph)a.p, 0ull))
DRIVER_CALL(tensor, (void)cuTensorMapEncodeTiled((CUtensorMap *)a.p, (CUtensorMapDataType)a.i,
                                                 (cuuint32_t)2, a.p, (const cuuint64_t *)a.p,
                                                 (const cuuint64_t *)a.p, (const cuuint32_t *)a.p,
                                                 (const cuuint32_t *)a.p, (CUtensorMapInterleave)0,
                                                 (CUtensorMapSwizzle)0, (CUtensorMapL2promotion)0,
                                                 (CUtensorMapFloatOOBfill)0))
DRIVER_CALL(occupancy, (void)cuOccupancyMaxActiveBlocksPerMultiprocessor((int *)a.p,
                                                                         (CUfunction)a.p, a.i, a.z))
DRIVER_CALL(heuristic,
            (void)cublasLtMatmulAlgoGetHeuristic(
                (cublasLtHandle_t)a.p, (cublasLtMatmulDesc_t)a.p, (cublasLtMatrixLayout_t)a.p,
                (cublasLtMatrixLayout_t)a.p, (cublasLtMatrixLayout_t)a.p,
                (cublasLtMatrixLayout_t)a.p, (cublasLtMatmulPreference_t)a.p, a.i,
                (cublasLtMatmulHeuristicResult_t *)a.p, (int *)a.p))
DRIVER_CALL(matmul,
            (void)cublasLtMatmul((cublasLtHandle_t)a.p, (cublasLtMatmulDesc_t)a.p, a.p, a.p,
                                 (cublasLtMatrixLayout_t)a.p, a.p, (cublasLtMatrixLayout_t)a.p, a.p,
                                 a.p, (cublasLtMatrixLayout_t)a.p, a.p, (cublasLtMatrixLayout_t)a.p,
                                 (const cublasLtMatmulAlgo_t *)a.p, a.p, a.z, (cudaStream_t)a.p))
DRIVER_CALL(init_all, (void)ncclCommInitAll((ncclComm_t *)a.p, a.i, (const int *)a.p))
DRIVER_CALL(all_reduce, (void)ncclAllReduce(a.p, a.p, a.z, (ncclDataType_t)a.i, (ncclRedOp_t)a.i,
                                            (ncclComm_t)a.p, (cudaStream_t)a.p))

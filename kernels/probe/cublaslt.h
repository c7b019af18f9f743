/* kernels/probe/cublaslt.h: the vendor's matrix product, as the yardstick of ridge's own.
 *
 * Reads gpu.h. libcublasLt is opened at run time and never needed; the few declarations that it
 * takes are held against cublasLt.h by tests/gpu/check_abi.sh.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_CUBLASLT_H
#define RG_PROBE_CUBLASLT_H

#include "gpu.h"

typedef struct rg_cublaslt rg_cublaslt;

enum { RG_LT_MOST_ALGORITHMS = 8 };

/** Open once; NULL with the reason. folder as for rg_cuda_library. */
rg_cublaslt *rg_cublaslt_open(const char *folder, char *why, size_t why_size);

/* CUBLASLT and cudaDataType values */
enum {
    RG_LT_R_32F = 0,
    RG_LT_R_16BF = 14,
    RG_LT_R_8F_E4M3 = 28,
    RG_LT_COMPUTE_32F = 68,
    RG_LT_DESC_TRANSA = 3,
    RG_LT_PREF_WORKSPACE = 1,
    RG_LT_OP_T = 1,
};

/** A product Y[m,n] = X[m,k] W[n,k]^T that is ready to run. */
/* cublasLtMatmulHeuristicResult_t */
typedef struct rg_lt_result {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} rg_lt_result;

typedef struct rg_lt_plan {
    rg_cublaslt *library;
    void *description, *x_layout, *w_layout, *y_layout, *preference;
    rg_lt_result algorithms[RG_LT_MOST_ALGORITHMS]; /* best first, as the heuristic thinks */
    int algorithm_count, chosen;
    rg_cu_ptr workspace;
    size_t workspace_bytes;
} rg_lt_plan;

/** Set up; store is BF16 or E4M3 (Y is bf16). RG_ERR_DEVICE when the library has no algorithm. */
rg_status rg_lt_plan_make(rg_cublaslt *library, rg_gpu *gpu, rg_store store, int64_t m, int64_t n,
                          int64_t k, rg_lt_plan *plan, rg_err *err);
rg_status rg_lt_run(rg_lt_plan *plan, rg_gpu *gpu, rg_cu_ptr x, rg_cu_ptr w, rg_cu_ptr y,
                    rg_err *err);
void rg_lt_plan_free(rg_lt_plan *plan);

#endif

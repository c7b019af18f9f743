/* kernels/probe/cublaslt.c: the vendor's matrix product.
 *
 * Reads cublaslt.h. The library thinks in columns: Y^T (n x m) = W^T (k x n, transposed) X (k x m).
 */
// SPDX-License-Identifier: Apache-2.0
#include "cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define RG_LT_CALLS(X)                                                                         \
    X(cublasLtCreate, (void **))                                                               \
    X(cublasLtMatmulDescCreate, (void **, int, int))                                           \
    X(cublasLtMatmulDescDestroy, (void *))                                                     \
    X(cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t))                     \
    X(cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))                 \
    X(cublasLtMatrixLayoutDestroy, (void *))                                                   \
    X(cublasLtMatmulPreferenceCreate, (void **))                                               \
    X(cublasLtMatmulPreferenceDestroy, (void *))                                               \
    X(cublasLtMatmulPreferenceSetAttribute, (void *, int, const void *, size_t))               \
    X(cublasLtMatmulAlgoGetHeuristic,                                                          \
      (void *, void *, void *, void *, void *, void *, void *, int, rg_lt_result *, int *))    \
    X(cublasLtMatmul,                                                                          \
      (void *, void *, const void *, const void *, void *, const void *, void *, const void *, \
       const void *, void *, void *, void *, const void *, void *, size_t, rg_cu_stream))

struct rg_cublaslt {
    void *library, *handle;
#define RG_LT_MEMBER(name, arguments) int(*name) arguments;
    RG_LT_CALLS(RG_LT_MEMBER)
#undef RG_LT_MEMBER
};

rg_cublaslt *rg_cublaslt_open(const char *folder, char *why, size_t why_size)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    static rg_cublaslt only; /* a handle serves the whole process */
    if (only.handle)
        return &only;
    only.library = rg_cuda_library(folder, names, why, why_size);
    if (!only.library)
        return NULL;
#define RG_LT_LOOKUP(name, arguments)                           \
    *(void **)&only.name = dlsym(only.library, #name);          \
    if (!only.name) {                                           \
        snprintf(why, why_size, "libcublasLt lacks %s", #name); \
        return NULL;                                            \
    }
    RG_LT_CALLS(RG_LT_LOOKUP)
#undef RG_LT_LOOKUP
    const int status = only.cublasLtCreate(&only.handle);
    if (status != 0) {
        snprintf(why, why_size, "cublasLtCreate failed with status %d", status);
        only.handle = NULL;
        return NULL;
    }
    return &only;
}

static rg_status check(int status, const char *call, rg_err *err)
{
    if (status == 0)
        return RG_OK;
    return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "%s failed with status '%d'", call, status);
}
#define RG_LT(library, call, arguments, err) RG_TRY(check((library)->call arguments, #call, (err)))

static rg_status describe(rg_lt_plan *plan, int type, int64_t m, int64_t n, int64_t k, rg_err *err)
{
    rg_cublaslt *lt = plan->library;
    const int transposed = RG_LT_OP_T;
    RG_LT(lt, cublasLtMatmulDescCreate, (&plan->description, RG_LT_COMPUTE_32F, RG_LT_R_32F), err);
    RG_LT(lt, cublasLtMatmulDescSetAttribute,
          (plan->description, RG_LT_DESC_TRANSA, &transposed, sizeof transposed), err);
    RG_LT(lt, cublasLtMatrixLayoutCreate, (&plan->w_layout, type, (uint64_t)k, (uint64_t)n, k),
          err);
    RG_LT(lt, cublasLtMatrixLayoutCreate, (&plan->x_layout, type, (uint64_t)k, (uint64_t)m, k),
          err);
    RG_LT(lt, cublasLtMatrixLayoutCreate,
          (&plan->y_layout, RG_LT_R_16BF, (uint64_t)n, (uint64_t)m, n), err);
    RG_LT(lt, cublasLtMatmulPreferenceCreate, (&plan->preference), err);
    RG_LT(lt, cublasLtMatmulPreferenceSetAttribute,
          (plan->preference, RG_LT_PREF_WORKSPACE, &plan->workspace_bytes,
           sizeof plan->workspace_bytes),
          err);
    RG_LT(lt, cublasLtMatmulAlgoGetHeuristic,
          (lt->handle, plan->description, plan->w_layout, plan->x_layout, plan->y_layout,
           plan->y_layout, plan->preference, RG_LT_MOST_ALGORITHMS, plan->algorithms,
           &plan->algorithm_count),
          err);
    if (plan->algorithm_count < 1)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "cuBLASLt has no algorithm for this product");
    return RG_OK;
}

rg_status rg_lt_plan_make(rg_cublaslt *library, rg_gpu *gpu, rg_store store, int64_t m, int64_t n,
                          int64_t k, rg_lt_plan *plan, rg_err *err)
{
    *plan = (rg_lt_plan){.library = library, .workspace_bytes = (size_t)64 << 20};
    RG_TRY(rg_gpu_alloc(gpu, plan->workspace_bytes, &plan->workspace, err));
    const rg_status status =
        describe(plan, store == RG_STORE_E4M3 ? RG_LT_R_8F_E4M3 : RG_LT_R_16BF, m, n, k, err);
    if (status != RG_OK)
        rg_lt_plan_free(plan);
    return status;
}

rg_status rg_lt_run(rg_lt_plan *plan, rg_gpu *gpu, rg_cu_ptr x, rg_cu_ptr w, rg_cu_ptr y,
                    rg_err *err)
{
    const float one = 1.0f, zero = 0.0f;
    const rg_lt_result *best = &plan->algorithms[plan->chosen];
    void *to = rg_gpu_address(y);
    RG_LT(plan->library, cublasLtMatmul,
          (plan->library->handle, plan->description, &one, rg_gpu_address(w), plan->w_layout,
           rg_gpu_address(x), plan->x_layout, &zero, to, plan->y_layout, to, plan->y_layout,
           best->algorithm, rg_gpu_address(plan->workspace), plan->workspace_bytes, gpu->stream),
          err);
    return RG_OK;
}

void rg_lt_plan_free(rg_lt_plan *plan)
{
    rg_cublaslt *lt = plan->library;
    if (plan->preference)
        lt->cublasLtMatmulPreferenceDestroy(plan->preference);
    if (plan->x_layout)
        lt->cublasLtMatrixLayoutDestroy(plan->x_layout);
    if (plan->w_layout)
        lt->cublasLtMatrixLayoutDestroy(plan->w_layout);
    if (plan->y_layout)
        lt->cublasLtMatrixLayoutDestroy(plan->y_layout);
    if (plan->description)
        lt->cublasLtMatmulDescDestroy(plan->description);
    plan->preference = plan->x_layout = plan->w_layout = plan->y_layout = plan->description = NULL;
}

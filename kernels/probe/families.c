/* kernels/probe/families.c: the kernel families that ridge-probe has.
 *
 * Reads bench.h. One row a line.
 */
// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

extern const rg_family rg_family_stream;
extern const rg_family rg_family_gather;
extern const rg_family rg_family_l2;
extern const rg_family rg_family_latency;
extern const rg_family rg_family_shared;
extern const rg_family rg_family_mix;
extern const rg_family rg_family_tensor;
extern const rg_family rg_family_launch;
extern const rg_family rg_family_copy;
extern const rg_family rg_family_kv_read;
extern const rg_family rg_family_decode;
extern const rg_family rg_family_decode_mla;
extern const rg_family rg_family_gemm;
extern const rg_family rg_family_prefill;
extern const rg_family rg_family_allreduce;
extern const rg_family rg_family_allreduce_virtual;
extern const rg_family rg_family_alltoall;
extern const rg_family rg_family_alltoall_virtual;
extern const rg_family rg_family_nccl;

// clang-format off: one row a line
const rg_family *const rg_families[] = {
    &rg_family_stream,    &rg_family_gather,
    &rg_family_l2,        &rg_family_latency,
    &rg_family_shared,    &rg_family_mix,
    &rg_family_tensor,    &rg_family_launch,
    &rg_family_copy,      &rg_family_kv_read,
    &rg_family_decode,    &rg_family_decode_mla,
    &rg_family_gemm,      &rg_family_prefill,
    &rg_family_allreduce, &rg_family_allreduce_virtual,
    &rg_family_alltoall,  &rg_family_alltoall_virtual,
    &rg_family_nccl,      NULL,
};
// clang-format on

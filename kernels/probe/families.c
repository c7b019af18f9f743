/* kernels/probe/families.c: the kernel families that ridge-probe has.
 *
 * Reads bench.h. One row a line.
 */
// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

extern const rg_family rg_family_kv_read;
extern const rg_family rg_family_decode;
extern const rg_family rg_family_decode_mla;
extern const rg_family rg_family_gemm;

const rg_family *const rg_families[] = {
    &rg_family_kv_read, &rg_family_decode, &rg_family_decode_mla, &rg_family_gemm, NULL,
};

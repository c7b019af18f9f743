/* kernels/probe/families.c: the kernel families that ridge-probe has.
 *
 * Reads bench.h. One row a line.
 */
// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

extern const rg_family rg_family_kv_read;

const rg_family *const rg_families[] = {
    &rg_family_kv_read,
    NULL,
};

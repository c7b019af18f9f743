/* kernels/micro.h: small kernels that each ask one question of the hardware.
 *
 * Reads value.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_MICRO_H
#define RG_KERNELS_MICRO_H

#include "value.h"

/** Clock and time on one SM. */
typedef struct rg_stamp {
    uint64_t cycles, ns;
    uint32_t sm, unused;
} rg_stamp;
typedef struct rg_stamp_params {
    rg_stamp *out;
} rg_stamp_params;
enum { RG_STAMP_THREADS = 32 };

#endif

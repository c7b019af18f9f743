/* kernels/micro.cu: small kernels that each ask one question of the hardware.
 *
 * Reads micro.h, dev.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "micro.h"

#ifndef RG_HOST
#include "dev.h"

RG_KERNEL(rg_stamp_now, rg_stamp_params, RG_STAMP_THREADS, 1)
{
    if (RG_TID == 0) {
        p.out->sm = rg_sm_id();
        p.out->ns = rg_nanoseconds();
        p.out->cycles = rg_cycles();
    }
}

#endif

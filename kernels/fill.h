/* kernels/fill.h: random data on the device.
 *
 * Reads value.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_FILL_H
#define RG_KERNELS_FILL_H

#include "value.h"

typedef struct rg_fill_params {
    uint32_t *words;
    uint64_t word_count;
    uint64_t seed;
    int32_t kind; /* rg_store */
} rg_fill_params;

enum { RG_FILL_THREADS = 256 };

#endif

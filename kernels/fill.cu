/* kernels/fill.cu: random data on the device, word by word from (seed, index).
 *
 * Reads fill.h, dev.h. The reference is rg_store_word itself.
 */
// SPDX-License-Identifier: Apache-2.0
#include "fill.h"

#ifndef RG_HOST
#include "dev.h"

RG_KERNEL(rg_fill, rg_fill_params, RG_FILL_THREADS, 4)
{
    const uint64_t step = (uint64_t)RG_GRID * RG_FILL_THREADS;
    for (uint64_t i = (uint64_t)RG_BID * RG_FILL_THREADS + (uint64_t)RG_TID; i < p.word_count;
         i += step)
        p.words[i] = rg_store_word((rg_store)p.kind, p.seed, i);
}

#endif

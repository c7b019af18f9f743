/* kernels/emu/engine.h: finding and running emulated kernels.
 *
 * Reads emulate.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_KERNELS_EMU_ENGINE_H
#define RG_KERNELS_EMU_ENGINE_H

#include "emulate.h"

struct rg_emu_kernel {
    rg_emu_entry entry;
    int threads;         /* block size that it is built for */
    size_t params_bytes; /* size of its parameter struct */
};
/** Kernel by name; nullptr when there is none. */
const rg_emu_kernel *rg_emu_find(const char *name);
struct rg_emu_launch {
    rg_emu_entry entry;
    const void *params;
    int grid, threads;
    size_t shared_bytes;
};
/** Run grids: block after block, or all blocks of all grids at once (cooperative launches, and
 * launches on several devices that wait for each other). False: the threads wait for ever. */
bool rg_emu_run(const rg_emu_launch *launches, size_t count, bool at_once);

#endif

/* Any bytes as a run record: entries, or an error; never a crash, never a cost that is no number.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TESTS_FUZZ_RUN_H
#define RG_TESTS_FUZZ_RUN_H

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "fit/guard.h"
#include "trace/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rg_arena *arena = rg_arena_new(256);
    rg_run *run;
    rg_err err = {0};
    const rg_status status =
        rg_run_parse(arena, "fuzz", (const char *)data, size, NULL, &run, &err);
    assert(status == RG_OK || err.text[0]);
    for (int i = 0; status == RG_OK && i < run->count; i++) {
        rg_side side;
        assert(run->entries[i].kernel[0] != '\0');
        if (rg_side_of(arena, &run->entries[i], &side, NULL) == RG_OK && side.usable)
            assert(isfinite(side.centre) && side.centre > 0 && isfinite(side.error));
    }
    rg_arena_free(arena);
    return 0;
}

#endif

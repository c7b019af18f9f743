/* Any bytes as a report of ceilings: positive figures, or an error; never a crash. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/ceiling.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rg_arena *arena = rg_arena_new(64);
    rg_ceilings c;
    rg_err err = {0};
    const rg_status status = rg_ceilings_parse(arena, "fuzz", (const char *)data, size, &c, &err);
    assert(status == RG_OK || err.text[0]);
    for (int i = 0; status == RG_OK && i < c.count; i++)
        assert(isfinite(c.items[i].value) && c.items[i].value > 0);
    rg_arena_free(arena);
    return 0;
}

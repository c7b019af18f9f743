/* Any bytes as a hardware file that a fit is stored into: the text comes back with the constants in
 * it, and storing again replaces them; never a crash. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fit/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rg_arena *arena = rg_arena_new(64);
    rg_err err = {0};
    char *text = rg_arena_copy(arena, (const char *)data, size, &err);
    rg_calibration c = {.group = RG_KG_STREAM, .parameters = 1, .fitted_rows = 3};
    c.parameter[0].name = "start_cycles";
    c.estimate[0] = (rg_lsq_estimate){.value = 1234.5, .low = 1000, .high = 2000, .partner = -1};
    const rg_fit_provenance from = {.data = "table", .split = "random"};
    char *once = NULL, *twice = NULL;
    if (text && rg_fit_store_text(arena, text, &c, 1, &from, &once, &err) == RG_OK) {
        assert(strstr(once, "    start_cycles: 1234.5"));
        assert(rg_fit_store_text(arena, once, &c, 1, &from, &twice, &err) == RG_OK);
        assert(strcmp(once, twice) == 0);
    }
    rg_arena_free(arena);
    return 0;
}

/* Any bytes as CSV: rows, or an error; never a crash. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "core/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rg_arena *arena = rg_arena_new(64);
    rg_csv *csv;
    rg_err err = {0};
    rg_status status = rg_csv_open_text(arena, "fuzz", (const char *)data, size, &csv, &err);
    for (bool more = true; status == RG_OK && more;) {
        status = rg_csv_next(csv, &more, &err);
        double value;
        for (int i = 0; status == RG_OK && more && i < rg_csv_columns(csv); i++)
            (void)rg_csv_real(csv, i, &value, NULL);
    }
    assert(status == RG_OK || err.text[0]);
    rg_arena_free(arena);
    return 0;
}

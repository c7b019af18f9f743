/* Any bytes as a baseline: read and rewritten by an update, the result reads again; or an error. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fit/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool every(void *context, const rg_base_entry *entry)
{
    (void)context;
    return entry->side.usable;
}

static void put(const char *path, const void *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert(file != NULL && fwrite(text, 1, length, file) == length);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/ridge-fuzz-baseline-%ld.yaml", (long)getpid());
    rg_arena *arena = rg_arena_new(256);
    rg_baseline *old, *again;
    rg_err err = {0};
    put(path, data, size);
    const rg_status status = rg_baseline_load(arena, path, &old, &err);
    assert(status == RG_OK || err.text[0]);
    if (status == RG_OK) {
        char *text, *copy = rg_arena_copy(arena, (const char *)data, size, NULL);
        int changed, added;
        rg_err refused = {0};
        if (rg_baseline_update(arena, path, copy, size, old, every, NULL, &text, &changed, &added,
                               &refused) == RG_OK) {
            put(path, text, strlen(text));
            if (rg_baseline_load(arena, path, &again, &refused) == RG_OK)
                assert(again->count == old->count);
        }
    }
    unlink(path);
    rg_arena_free(arena);
    return 0;
}

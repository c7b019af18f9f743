/* Any bytes as YAML and as JSON: an error with a place, or a tree; never a crash. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "core/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int json = 0; json < 2; json++) {
        rg_arena *arena = rg_arena_new(64);
        rg_node *root = NULL;
        rg_err err = {0};
        if (rg_doc_parse(arena, "fuzz", (const char *)data, size, json, &root, &err) != RG_OK)
            assert(err.text[0]);
        rg_arena_free(arena);
    }
    return 0;
}

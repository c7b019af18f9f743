/* Any bytes as a connection matrix: a whole, symmetric one, or an error with words. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rg_arena *arena = rg_arena_new(16);
    rg_err err = {0};
    rg_topo t;
    const char *text = rg_arena_copy(arena, (const char *)data, size, &err);
    if (text != NULL && rg_topo_parse("fuzz", text, &t, &err) == RG_OK) {
        const rg_topo_shape s = rg_topo_shape_of(&t);
        assert(t.devices >= 1 && t.devices <= RG_TOPO_MOST && s.switch_size <= t.devices);
        for (int i = 0; i < t.devices; i++)
            for (int k = 0; k < t.devices; k++)
                assert(t.links[i][k] == t.links[k][i] && t.way[i][k] == t.way[k][i]);
    } else {
        assert(err.text[0]);
    }
    rg_arena_free(arena);
    return 0;
}

/* Any bytes as a workload: a graph that can be walked, or an error with words; never a crash. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rg_arena *arena = rg_arena_new(256);
    rg_workload *w;
    rg_err err = {0};
    const rg_status status = rg_workload_parse(arena, "fuzz", (const char *)data, size, &w, &err);
    assert(status == RG_OK || err.text[0]);
    for (int i = 0; status == RG_OK && i < w->count; i++) {
        const rg_work_node *n = &w->nodes[i];
        assert(n->name != NULL && (n->kind != RG_WORK_COMM || (n->op != NULL && n->bytes > 0)));
        assert(isnan(n->time_s) ? n->flops > 0 : n->time_s >= 0);
    }
    rg_arena_free(arena);
    return 0;
}

/* Any bytes as an anynet file, and as a trace on a small mesh: a network or messages, or an error.
 */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "noc/anynet.h"
#include "noc/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rg_arena *arena = rg_arena_new(256);
    rg_err err = {0};
    rg_noc_graph *graph;
    rg_noc_design *design;
    rg_status status = rg_noc_anynet_parse(arena, "fuzz", (const char *)data, size, &graph, &err);
    assert(status == RG_OK || err.text[0]);
    if (status == RG_OK) {
        int32_t *table;
        assert(graph->nodes > 0 && graph->inputs > 0);
        if ((int64_t)graph->nodes * graph->routers < 10000)
            (void)rg_noc_graph_table(arena, graph, &table, &err);
    }
    err = (rg_err){0};
    status = rg_noc_design_load(arena, "mesh:4x4", &design, &err);
    assert(status == RG_OK);
    const rg_noc_mapping map = {.design = design,
                                .cores = &design->groups[0],
                                .slices = &design->groups[0],
                                .flit_bytes = 32,
                                .line_bytes = 128};
    rg_noc_trace trace;
    status = rg_noc_trace_parse(arena, "fuzz", (const char *)data, size, &map, &trace, &err);
    assert(status == RG_OK || err.text[0]);
    for (int64_t i = 0; status == RG_OK && i < trace.send_count; i++) {
        const rg_noc_send *s = &trace.sends[i];
        assert(s->source >= 0 && s->source < 16 && s->destination >= 0 && s->destination < 16);
        assert(s->flits > 0);
    }
    for (int64_t i = 0; status == RG_OK && i < trace.order_count; i++)
        assert(trace.orders[i].before < trace.send_count &&
               trace.orders[i].after < trace.send_count);
    rg_arena_free(arena);
    return 0;
}

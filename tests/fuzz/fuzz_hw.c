/* Any bytes as a hardware file, a cluster file and a price file: an error with a place, or a struct
 * whose figures are finite and whose checks end; never a crash. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/check.h"
#include "hw/cluster.h"
#include "hw/price.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_accel(rg_arena *arena, rg_accel *accel)
{
    rg_err err = {0};
    rg_findings findings;
    const rg_named_figure *figures;
    int count;
    assert(rg_accel_check(arena, accel, &findings, &err) == RG_OK);
    assert(rg_accel_figures(arena, accel, &figures, &count, &err) == RG_OK);
    for (int i = 0; i < count; i++)
        assert(isfinite(figures[i].figure->value) && figures[i].figure->value > 0);
    for (int i = 0; i < accel->level_count; i++)
        assert(isfinite(rg_accel_level_bandwidth(accel, &accel->levels[i])));
    assert(rg_accel_memory_bytes(accel) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rg_arena *arena = rg_arena_new(64);
    rg_node *root = NULL;
    rg_err err = {0};
    if (rg_doc_parse(arena, "fuzz", (const char *)data, size, false, &root, &err) == RG_OK) {
        rg_accel *accel = NULL;
        rg_cluster *cluster = NULL;
        rg_price_list prices;
        rg_err first = {0}, second = {0}, third = {0};
        if (rg_accel_read(arena, "fuzz", root, &accel, &first) == RG_OK)
            use_accel(arena, accel);
        else
            assert(first.text[0]);
        if (rg_cluster_read(arena, "fuzz", root, &cluster, &second) != RG_OK)
            assert(second.text[0]);
        if (rg_prices_read(arena, "fuzz", root, &prices, &third) != RG_OK)
            assert(third.text[0]);
    }
    rg_arena_free(arena);
    return 0;
}

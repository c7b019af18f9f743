/* Any bytes as a plan file: a plan whose lists and limits are within bounds, or an error with a
 * text. */
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rg_arena *arena = rg_arena_new(256);
    rg_plan_text *text;
    rg_node *root;
    rg_plan plan;
    rg_err err = {0};
    rg_status status = rg_plan_text_new(arena, &text, &err);
    if (status == RG_OK)
        status = rg_doc_parse(arena, "plan.yaml", (const char *)data, size, false, &root, &err);
    if (status == RG_OK)
        status = rg_plan_text_take(text, root, &err);
    if (status == RG_OK)
        status = rg_plan_read(text, &plan, &err);
    assert(status == RG_OK || err.text[0]);
    if (status == RG_OK) {
        assert(plan.model && plan.policy_count >= 1 && plan.pool_count >= 1);
        assert(plan.limit_count >= 1 && plan.limit_count <= RG_PLAN_LIMITS);
        for (int i = 0; i < plan.limit_count; i++)
            assert(plan.limits[i].seconds > 0 && isfinite(plan.limits[i].seconds) &&
                   plan.limits[i].quantile <= 1);
    }
    rg_arena_free(arena);
    return 0;
}

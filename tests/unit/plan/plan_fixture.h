/* tests/unit/plan/plan_fixture.h: plans from settings, for the tests of this folder. */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TESTS_PLAN_FIXTURE_H
#define RG_TESTS_PLAN_FIXTURE_H

#include "unit.h"

#include "plan/search.h"

static rg_err err;

static int setup(void **state)
{
    *state = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
    return *state == NULL;
}

static int teardown(void **state)
{
    rg_arena_free(*state);
    return 0;
}

/* "name=value" strings, NULL behind the last; later ones replace earlier ones. */
static rg_plan plan_with(rg_arena *arena, const char *const *settings, const char *const *more)
{
    rg_plan_text *text;
    rg_plan plan;
    assert_ok(rg_plan_text_new(arena, &text, &err));
    for (int list = 0; list < 2; list++) {
        const char *const *s = list == 0 ? settings : more;
        /* the second list stands for a command line, the first for a file */
        const rg_pos pos = {list == 0 ? "plan.yaml" : NULL, 1, 1};
        for (; s && *s; s++) {
            char name[64];
            const char *sign = strchr(*s, '=');
            snprintf(name, sizeof name, "%.*s", (int)(sign - *s), *s);
            assert_ok(rg_plan_text_add(text, name, sign + 1, pos, &err));
        }
    }
    assert_ok(rg_plan_read(text, &plan, &err));
    return plan;
}

#endif

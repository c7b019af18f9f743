/* Measured roofs: the figures of the report, with what cannot be a roof marked. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "trace/ceiling.h"

static const rg_ceiling *named(const rg_ceilings *c, const char *name, bool compute)
{
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->items[i].name, name) == 0 && c->items[i].compute == compute)
            return &c->items[i];
    print_error("no ceiling '%s'\n", name);
    fail();
    return NULL;
}

static void load(rg_arena *arena, const char *path, rg_ceilings *c)
{
    rg_err err = {0};
    assert_ok(rg_ceilings_load(arena, path, c, &err));
}

static void ert_report_and_json(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    rg_ceilings c;
    load(arena, "tests/fuzz/corpus/ceiling/summary.txt", &c);
    assert_int_equal(c.count, 3);
    assert_close(named(&c, "FP64", true)->value, 4360.14e9, 1e-12);
    assert_close(named(&c, "DRAM", false)->value, 523.62e9, 1e-12);
    rg_ceilings_compare(&c, 732e9); /* P100: 732 GB/s */
    assert_null(named(&c, "DRAM", false)->doubtful);
    rg_ceilings_compare(&c, 900e9);
    assert_non_null(named(&c, "DRAM", false)->doubtful);
    load(arena, "tests/fuzz/corpus/ceiling/roofline.json", &c);
    assert_close(named(&c, "FP32", true)->value, 14100.5e9, 1e-12);
    assert_close(named(&c, "L1", false)->value, 2996.8e9, 1e-12);
    rg_arena_free(arena);
}

static void phantom_level_of_a_real_report_is_marked(void **state)
{
    (void)state;
    skip_without(SHARED("inputs/files/ert_broadwell_report.txt"));
    rg_arena *arena = rg_arena_new(64);
    rg_ceilings c;
    load(arena, SHARED("inputs/files/ert_broadwell_report.txt"), &c);
    assert_close(named(&c, "", true)->value, 908.43e9, 1e-12);
    assert_non_null(named(&c, "L4", false)->doubtful);
    assert_null(named(&c, "L3", false)->doubtful);
    rg_arena_free(arena);
}

static void cache_sweep_has_a_plateau_of_cache_and_one_of_memory(void **state)
{
    (void)state;
    skip_without(SHARED("inputs/files/gpubenches_l2cache_h100_pcie.txt"));
    rg_arena *arena = rg_arena_new(64);
    rg_ceilings c;
    load(arena, SHARED("inputs/files/gpubenches_l2cache_h100_pcie.txt"), &c);
    /* Rows from 4 to 20 MB lie between 6.9 and 7.1 TB/s; the card's memory moves 2.0 TB/s. */
    assert_close(named(&c, "L2", false)->value, 7.0e12, 0.05);
    assert_true(named(&c, "DRAM", false)->value < 2.04e12);
    assert_true(named(&c, "DRAM", false)->value > 1.5e12);
    rg_arena_free(arena);
}

static void a_text_without_ceilings_is_refused(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    rg_ceilings c;
    rg_err err = {0};
    assert_int_equal(rg_ceilings_parse(arena, "x", "hello\n", 6, &c, &err), RG_ERR_INPUT);
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ert_report_and_json),
        cmocka_unit_test(phantom_level_of_a_real_report_is_marked),
        cmocka_unit_test(cache_sweep_has_a_plateau_of_cache_and_one_of_memory),
        cmocka_unit_test(a_text_without_ceilings_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

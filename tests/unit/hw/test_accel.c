/* tests/unit/hw/test_accel.c: hardware files say what datasheets say. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/find.h"
#include "hw/accel.h"

static rg_accel *load(rg_arena *arena, const char *name)
{
    rg_err err = {0};
    rg_accel *accel = NULL;
    assert_ok(rg_accel_load(arena, name, &accel, &err));
    return accel;
}

/* A commonly quoted line: H100 has 528 tensor cores on 132 SMs, 989 TFLOP/s in FP16 and 1979 in
 * FP8, about three times the A100's 312. All of them dense. */
static void h100_has_528_tensor_cores_and_three_times_the_peak_of_an_a100(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *h100 = load(arena, "h100-sxm"), *a100 = load(arena, "a100-sxm-80gb");
    assert_close(h100->units.value, 132, 0);
    assert_close(h100->units.value * h100->matrix_cores_per_unit.value, 528, 0);
    assert_close(rg_accel_peak(h100, RG_FP16)->rate.value, 989e12, 1e-3);
    assert_close(rg_accel_peak(h100, RG_FP8)->rate.value, 1979e12, 1e-3);
    assert_close(rg_accel_peak(a100, RG_FP16)->rate.value, 312e12, 1e-3);
    assert_close(rg_accel_peak(h100, RG_FP16)->rate.value /
                     rg_accel_peak(a100, RG_FP16)->rate.value,
                 3.17, 1e-3);
    rg_arena_free(arena);
}

static const rg_link_port *port(const rg_accel *accel, const char *kind)
{
    for (int i = 0; i < accel->port_count; i++)
        if (strcmp(accel->ports[i].kind, kind) == 0)
            return &accel->ports[i];
    fail_msg("%s has no port %s", accel->name, kind);
    return NULL;
}

/* NVLink 4: 18 links of 50 GB/s make 900 GB/s, both directions counted; PCIe 5 x16 128 GB/s. */
static void nvlink_4_and_pcie_5_carry_half_the_quoted_rate_each_way(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *h100 = load(arena, "h100-sxm");
    const rg_link_port *nvlink = port(h100, "nvlink4");
    assert_int_equal(nvlink->count, 18);
    assert_close(2 * nvlink->rate_per_link.value, 50e9, 1e-12);
    assert_close(2 * nvlink->rate_per_direction.value, 900e9, 1e-12);
    assert_close(2 * port(h100, "pcie5x16")->rate_per_direction.value, 128e9, 1e-12);
    rg_arena_free(arena);
}

static void plain_h100_is_refused_with_its_variants(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    rg_accel *accel;
    assert_int_equal(rg_accel_load(arena, "h100", &accel, &err), RG_ERR_USAGE);
    assert_string_equal(
        err.text, "hardware 'h100' stands for several; name one of: h100-nvl, h100-pcie, h100-sxm");
    rg_arena_free(arena);
}

static void every_figure_has_a_source(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    rg_accel *accel = load(arena, "h200-sxm");
    const rg_named_figure *figures;
    int count;
    assert_ok(rg_accel_figures(arena, accel, &figures, &count, &err));
    assert_true(count > 40);
    for (int i = 0; i < count; i++) {
        assert_true(figures[i].figure->known);
        assert_true(strlen(figures[i].figure->source) > 8);
    }
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h100_has_528_tensor_cores_and_three_times_the_peak_of_an_a100),
        cmocka_unit_test(nvlink_4_and_pcie_5_carry_half_the_quoted_rate_each_way),
        cmocka_unit_test(plain_h100_is_refused_with_its_variants),
        cmocka_unit_test(every_figure_has_a_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

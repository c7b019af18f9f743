/* Claims about the roofline, on figures that a reader can check by hand. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "roofline/roofline.h"

static rg_err err;

/* 1000 TFLOP/s over 4 TB/s of memory and 20 TB/s of L2. */
static rg_accel machine(void)
{
    rg_accel a = {.name = "test", .level_count = 2, .peak_count = 1};
    a.peaks[0] = (rg_peak){.name = "bf16_fp32",
                           .input = RG_BF16,
                           .accumulate = RG_FP32,
                           .matrix = true,
                           .rate = {.value = 1e15, .known = true}};
    a.levels[0] = (rg_memory_level){.name = "l2", .bandwidth = {.value = 20e12, .known = true}};
    a.levels[1] = (rg_memory_level){.name = "hbm", .bandwidth = {.value = 4e12, .known = true}};
    return a;
}

static void both_bounds_meet_at_the_ridge_point(void **state)
{
    (void)state;
    const rg_accel a = machine();
    rg_flop_rate peak;
    rg_byte_rate bandwidth;
    assert_ok(rg_roof_peak(&a, RG_BF16, false, &peak, &err));
    assert_ok(rg_roof_bandwidth(&a, 1, &bandwidth, &err));
    const double ridge = rg_roof_ridge(peak, bandwidth);
    assert_close(ridge, 250.0, 1e-15);
    rg_work work = {.math = RG_BF16, .flops = RG_F(ridge * 1e9), .bytes = {{0}, {1e9}}};
    rg_roof_time time;
    assert_ok(rg_roof_time_of(&a, &work, &time, &err));
    assert_close(time.compute.v, time.level[1].v, 1e-15);
    assert_close(rg_roof_attainable(ridge, peak, bandwidth).v, peak.v, 1e-15);
    assert_close(rg_roof_attainable(ridge / 2, peak, bandwidth).v, peak.v / 2, 1e-15);
}

static void the_slowest_level_binds(void **state)
{
    (void)state;
    const rg_accel a = machine();
    rg_roof_time time;
    /* 1e12 flop: 1 ms. 4e9 bytes of memory: 1 ms. 40e9 of L2: 2 ms. */
    rg_work work = {.math = RG_BF16, .flops = RG_F(1e12), .bytes = {{40e9}, {4e9}}};
    assert_ok(rg_roof_time_of(&a, &work, &time, &err));
    assert_int_equal(time.limit, 0);
    assert_close(time.total.v, 2e-3, 1e-12);
    work.flops = RG_F(3e12);
    assert_ok(rg_roof_time_of(&a, &work, &time, &err));
    assert_int_equal(time.limit, RG_LIMIT_COMPUTE);
    assert_close(time.total.v, 3e-3, 1e-12);
}

static void twice_the_bandwidth_never_slows(void **state)
{
    (void)state;
    rg_accel slow = machine(), fast = machine();
    fast.levels[1].bandwidth.value *= 2.0;
    for (double flops = 1e6; flops < 1e15; flops *= 7.3) {
        rg_work work = {.math = RG_BF16, .flops = RG_F(flops), .bytes = {{0}, {1e9}}};
        rg_roof_time a, b;
        assert_ok(rg_roof_time_of(&slow, &work, &a, &err));
        assert_ok(rg_roof_time_of(&fast, &work, &b, &err));
        assert_true(b.total.v <= a.total.v);
    }
}

static void what_the_machine_lacks_is_named(void **state)
{
    (void)state;
    const rg_accel a = machine();
    rg_flop_rate peak;
    rg_roof_time time;
    assert_int_equal(rg_roof_peak(&a, RG_FP4, false, &peak, &err), RG_ERR_MODEL);
    assert_string_equal(err.text, "test has no matrix peak for 'fp4'; it has bf16_fp32");
    rg_work nothing = {.math = RG_BF16};
    assert_int_equal(rg_roof_time_of(&a, &nothing, &time, &err), RG_ERR_MODEL);
}

static void axes_are_whole_decades_around_the_ceilings(void **state)
{
    (void)state;
    const rg_accel a = machine();
    rg_roof_axes axes;
    assert_ok(rg_roof_axes_of(&a, &axes, &err));
    assert_close(axes.x_least, 0.1, 1e-12);
    assert_close(axes.x_most, 1000.0, 1e-12); /* 250 * 3 = 750 */
    assert_close(axes.y_most, 1e16, 1e-12);
    assert_close(axes.y_least, 1e11, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_bounds_meet_at_the_ridge_point),
        cmocka_unit_test(the_slowest_level_binds),
        cmocka_unit_test(twice_the_bandwidth_never_slows),
        cmocka_unit_test(what_the_machine_lacks_is_named),
        cmocka_unit_test(axes_are_whole_decades_around_the_ceilings),
    };
    return cmocka_run_group_tests_name("roofline", tests, NULL, NULL);
}

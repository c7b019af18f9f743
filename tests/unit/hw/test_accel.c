/* tests/unit/hw/test_accel.c: hardware files say what datasheets say. */
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "unit.h"

#include "core/find.h"
#include "hw/accel.h"
#include "hw/check.h"
#include "hw/fit.h"

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

static rg_accel *parse(rg_arena *arena, const char *text, rg_err *err)
{
    rg_node *root;
    rg_accel *accel = NULL;
    if (rg_doc_parse(arena, "mine.yaml", text, strlen(text), false, &root, err) != RG_OK ||
        rg_accel_read(arena, "mine.yaml", root, &accel, err) != RG_OK)
        return NULL;
    return accel;
}

/* Every device that comes with ridge. */
static void every_file_loads_and_its_figures_agree(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(256);
    const rg_data_entry *entries;
    size_t count, devices = 0;
    assert_ok(rg_data_list(arena, "hw", &entries, &count, &err));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(entries[i].name, "prices") == 0)
            continue;
        const rg_accel *accel = load(arena, entries[i].name);
        rg_findings findings;
        assert_string_equal(accel->name, entries[i].name);
        assert_ok(rg_accel_check(arena, accel, &findings, &err));
        if (findings.count > 0)
            fail_msg("%s: %s", entries[i].name, findings.list[0].text);
        devices++;
    }
    assert_true(devices >= 37);
    rg_arena_free(arena);
}

/* H200: 132 SMs x 4096 flop per clock x 1.83 GHz = 989.4 TFLOP/s;
 * A100: 108 x 2048 x 1.41 GHz = 311.9; MI300X: 304 x 2048 x 2.1 GHz = 1307.4;
 * TPU v5e: 4 MXUs x 2 x 128 x 128 x 1.5 GHz = 196.6. */
static void peaks_are_units_times_width_times_clock(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double flops_per_s;
    } rows[] = {{"h200-sxm", 989.4e12},
                {"a100-sxm-80gb", 311.9e12},
                {"mi300x", 1307.4e12},
                {"tpu-v5e", 196.6e12}};
    rg_arena *arena = rg_arena_new(64);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rg_accel *accel = load(arena, rows[i].name);
        const rg_peak *peak = rg_accel_peak(accel, RG_BF16);
        const double again = accel->units.value * peak->ops_per_clock_per_unit.value *
                             rg_accel_peak_clock(accel, peak);
        assert_close(again, rows[i].flops_per_s, 1e-3);
        assert_close(peak->rate.value, again, 0.01);
    }
    rg_arena_free(arena);
}

/* GeForce: FP16 with FP32 accumulate runs at half the rate of FP16 accumulate. */
static void peaks_differ_by_accumulate_type(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *accel = load(arena, "rtx-4090");
    const double wide = rg_accel_peak_of(accel, true, RG_FP16, RG_FP32)->rate.value;
    const double narrow = rg_accel_peak_of(accel, true, RG_FP16, RG_FP16)->rate.value;
    assert_close(narrow, 2 * wide, 1e-3);
    assert_ptr_equal(rg_accel_peak(accel, RG_FP16),
                     rg_accel_peak_of(accel, true, RG_FP16, RG_FP32));
    assert_null(rg_accel_peak(accel, RG_FP64));
    rg_arena_free(arena);
}

/* A100: 128 B x 108 SMs x 1.41 GHz = 19.49 TB/s of L1; 5120 B x 1.41 GHz = 7.219 TB/s of L2. */
static void level_bandwidth_comes_from_bytes_per_clock(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *accel = load(arena, "a100-sxm-80gb");
    assert_close(rg_accel_level_bandwidth(accel, rg_accel_level(accel, "l1")), 19.491e12, 1e-3);
    assert_close(rg_accel_level_bandwidth(accel, rg_accel_level(accel, "l2")), 7.2192e12, 1e-3);
    assert_close(rg_accel_level_bandwidth(accel, rg_accel_memory(accel)), 2.039e12, 1e-12);
    assert_ptr_equal(rg_accel_level(accel, "hbm"), rg_accel_memory(accel));
    assert_null(rg_accel_level(accel, "l3"));
    rg_arena_free(arena);
}

static void device_memory_goes_by_hbm_whatever_it_is_made_of(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *accel = load(arena, "l4");
    assert_string_equal(rg_accel_memory(accel)->name, "gddr");
    assert_ptr_equal(rg_accel_level(accel, "hbm"), rg_accel_memory(accel));
    rg_arena_free(arena);
}

/* "80 GB" of an H100 are 81559 MiB to software: 85.5e9 byte. */
static void usable_memory_is_what_the_driver_reports(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    assert_close(rg_accel_memory_bytes(load(arena, "h100-sxm")), 81559.0 * 1048576, 1e-12);
    assert_close(rg_accel_memory_bytes(load(arena, "gaudi3")), 128e9, 1e-12);
    rg_arena_free(arena);
}

static void a_file_may_start_from_another_and_change_it(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *old = load(arena, "h200-sxm");
    const rg_accel *accel = parse(arena,
                                  "kind: accelerator\nname: faster\nbase: h200-sxm\nmemory:\n  "
                                  "hbm:\n    bandwidth: {value: 9.6 TB/s, source: \"assumed: "
                                  "twice\"}\n",
                                  &err);
    assert_non_null(accel);
    assert_string_equal(accel->base, "h200-sxm");
    assert_close(rg_accel_memory(accel)->bandwidth.value, 2 * rg_accel_memory(old)->bandwidth.value,
                 1e-12);
    assert_true(rg_accel_memory(accel)->bandwidth.assumed);
    assert_close(rg_accel_memory(accel)->capacity.value, rg_accel_memory(old)->capacity.value, 0);
    assert_close(rg_accel_peak(accel, RG_BF16)->rate.value, rg_accel_peak(old, RG_BF16)->rate.value,
                 0);
    assert_int_equal(accel->level_count, old->level_count);
    assert_int_equal(accel->peak_count, old->peak_count);
    rg_arena_free(arena);
}

#define FIT_FILE(fit)                           \
    "kind: accelerator\nname: mine\nbase: l4\n" \
    "fit:\n" fit

static void fitted_constants_keep_their_groups_and_their_origin(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    bool own = false;
    const rg_accel *accel =
        parse(arena,
              FIT_FILE("  date: 2026-05-02\n  data: a table\n  rows: 900\n"
                       "  gemm: {t0_us: 2.5, error: 4 %, tile: {fill_us: 0.25}}\n"),
              &err);
    assert_non_null(accel);
    assert_close(rg_accel_fit_or(accel, "gemm", "t0_us", 0, &own), 2.5, 0);
    assert_true(own);
    assert_close(rg_accel_fit_or(accel, "gemm.tile", "fill_us", 0, NULL), 0.25, 0);
    assert_close(rg_accel_fit_or(accel, "gemm", "no_such", 7, &own), 7, 0);
    assert_false(own);
    assert_string_equal(accel->fit_source, "date: 2026-05-02; data: a table; rows: 900");
    rg_arena_free(arena);
}

static void borrowed_constants_say_so_and_give_way_to_own_ones(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    rg_accel *lender = load(arena, "l4"), *accel = load(arena, "l4");
    static const rg_fit_constant constants[] = {{.group = "gemm", .name = "t0_us", .value = 2},
                                                {.group = "gemm", .name = "eta", .value = 0.8}};
    lender->fit = constants;
    lender->fit_count = 2;
    rg_node *root;
    static const char text[] = "borrow: l4\ngemm: {t0_us: 3}\n";
    assert_ok(rg_doc_parse(arena, "mine.yaml", text, strlen(text), false, &root, &err));
    assert_ok(rg_fit_read(arena, root, lender, accel, &err));
    bool own = false;
    assert_close(rg_accel_fit_or(accel, "gemm", "t0_us", 0, &own), 3, 0);
    assert_true(own);
    assert_close(rg_accel_fit_or(accel, "gemm", "eta", 0, &own), 0.8, 0);
    assert_false(own);
    assert_string_equal(accel->fit_borrowed_from, "l4");
    rg_arena_free(arena);
}

/* Changing a figure through the list changes the device: what a sweep does. */
static void figures_can_be_changed_by_path(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    rg_accel *accel = load(arena, "h200-sxm");
    const rg_named_figure *figures;
    int count;
    assert_ok(rg_accel_figures(arena, accel, &figures, &count, &err));
    for (int i = 0; i < count; i++)
        if (strcmp(figures[i].path, "memory.hbm.bandwidth") == 0)
            figures[i].figure->value *= 1.5;
    assert_close(rg_accel_memory(accel)->bandwidth.value, 7.2e12, 1e-12);
    rg_arena_free(arena);
}

/* One die of an MI250X is half of its package in everything that adds up. */
static void a_die_is_half_of_the_package(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_accel *die = load(arena, "mi250x-gcd"), *both = load(arena, "mi250x-package");
    assert_close(2 * die->units.value, both->units.value, 0);
    assert_close(2 * rg_accel_peak(die, RG_FP16)->rate.value,
                 rg_accel_peak(both, RG_FP16)->rate.value, 1e-3);
    assert_close(2 * rg_accel_memory(die)->bandwidth.value, rg_accel_memory(both)->bandwidth.value,
                 1e-12);
    assert_close(2 * die->tdp.value, both->tdp.value, 0);
    rg_arena_free(arena);
}

/* A whole hardware file that borrows from another: what l4.yaml says, and a fit. */
static void write_borrower(const char *folder, const char *name, const char *lender)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *from = fopen("hw/l4.yaml", "r"), *to = fopen(path, "w");
    assert_non_null(from);
    assert_non_null(to);
    for (int c = fgetc(from); c != EOF; c = fgetc(from))
        fputc(c, to);
    fprintf(to, "fit: {borrow: %s/%s}\n", folder, lender);
    assert_int_equal(fclose(to), 0);
    fclose(from);
}

static void borrowing_in_a_circle_is_refused(void **state)
{
    (void)state;
    char folder[] = "/tmp/ridge-circle-XXXXXX", path[256];
    assert_non_null(mkdtemp(folder));
    write_borrower(folder, "a.yaml", "b.yaml");
    write_borrower(folder, "b.yaml", "a.yaml");
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(64);
    rg_accel *accel;
    snprintf(path, sizeof path, "%s/a.yaml", folder);
    assert_int_equal(rg_accel_load(arena, path, &accel, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "in a circle"));
    remove(path);
    snprintf(path, sizeof path, "%s/b.yaml", folder);
    remove(path);
    remove(folder);
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h100_has_528_tensor_cores_and_three_times_the_peak_of_an_a100),
        cmocka_unit_test(nvlink_4_and_pcie_5_carry_half_the_quoted_rate_each_way),
        cmocka_unit_test(plain_h100_is_refused_with_its_variants),
        cmocka_unit_test(every_figure_has_a_source),
        cmocka_unit_test(every_file_loads_and_its_figures_agree),
        cmocka_unit_test(peaks_are_units_times_width_times_clock),
        cmocka_unit_test(peaks_differ_by_accumulate_type),
        cmocka_unit_test(level_bandwidth_comes_from_bytes_per_clock),
        cmocka_unit_test(device_memory_goes_by_hbm_whatever_it_is_made_of),
        cmocka_unit_test(usable_memory_is_what_the_driver_reports),
        cmocka_unit_test(a_file_may_start_from_another_and_change_it),
        cmocka_unit_test(fitted_constants_keep_their_groups_and_their_origin),
        cmocka_unit_test(borrowed_constants_say_so_and_give_way_to_own_ones),
        cmocka_unit_test(figures_can_be_changed_by_path),
        cmocka_unit_test(a_die_is_half_of_the_package),
        cmocka_unit_test(borrowing_in_a_circle_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tables, splits, calibration and storing, on tables that the models themselves have made. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "fit/calibrate.h"
#include "fit/compare.h"
#include "fit/store.h"
#include "kernel/device.h"

static char folder[] = "/tmp/ridge-fit-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/gemm.csv", folder);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    remove(path);
    return rmdir(folder);
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Times of products on an H200 whose memory_ratio and start_cycles are set by hand. */
static void write_made_table(double memory_ratio, double start_cycles)
{
    rg_arena *arena = rg_arena_new(64);
    rg_accel *accel;
    rg_kernel_device *device;
    rg_format bf16;
    rg_err err;
    assert_ok(rg_accel_load(arena, "h200-sxm", &accel, &err));
    assert_ok(rg_kernel_prepare(arena, accel, &(rg_kernel_options){.constants_from = "start"},
                                &device, &err));
    assert_ok(rg_format_parse("bf16", RG_NOWHERE, &bf16, &err));
    device->serial = 0;
    device->c[RG_KG_GEMM_BF16][RG_GEMM_MEMORY] = memory_ratio;
    device->c[RG_KG_GEMM_BF16][RG_GEMM_START] = start_cycles;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("kernel,dtype,m,n,k,time_us\n", file);
    static const int m[] = {1, 8, 64, 200, 600, 2000, 5000};
    for (int i = 0; i < 7; i++)
        for (int n = 256; n <= 16384; n *= 2)
            for (int k = 256; k <= 16384; k *= 4) {
                const rg_op op = rg_op_make_gemm("g", m[i], n, k, &bf16, RG_BF16, RG_BF16);
                rg_kernel_time t;
                assert_ok(rg_kernel_op_time(device, &op, &t, &err));
                fprintf(file, "made,bfloat16,%d,%d,%d,%.6f\n", m[i], n, k, t.total.v * 1e6);
            }
    fclose(file);
    rg_arena_free(arena);
}

static const char *const hold_others[] = {"wave_cycles",
                                          "l2_sm_bytes_per_cycle",
                                          "compute_ratio",
                                          "sustained_ratio",
                                          "split_cycles",
                                          "overlap_power",
                                          "l2_share_ratio",
                                          "l2_ratio",
                                          NULL};

static rg_status calibrate(rg_arena *arena, const rg_calibration_options *options,
                           rg_calibration *out, rg_err *err)
{
    rg_measured_table table;
    rg_predictor *predictor;
    int count;
    RG_TRY(rg_measured_load(arena, RG_MEASURED_GEMM, path, &table, err));
    RG_TRY(rg_predictor_new(arena, "h200-sxm", &(rg_kernel_options){.constants_from = "start"},
                            RG_MEASURED_GEMM, &predictor, err));
    RG_TRY(rg_predictor_judge(predictor, &table, err));
    return rg_calibrate(arena, predictor, &table, options, out, 1, &count, err);
}

static void finds_constants_that_made_the_table(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(256);
    rg_err err;
    rg_calibration c = {0};
    rg_calibration_options options = {.hold = hold_others};
    assert_ok(rg_split_parse(arena, "random:0.7", 1, &options.split, &err));
    write_made_table(0.6, 5000.0);
    assert_ok(calibrate(arena, &options, &c, &err));
    /* Times are written to 1e-6 us of some 5 us; the priors pull by far less than a percent. */
    assert_close(c.estimate[RG_GEMM_MEMORY].value, 0.6, 0.01);
    assert_close(c.estimate[RG_GEMM_START].value, 5000.0, 0.02);
    assert_true(c.tested.median_ape < 0.005);
    assert_true(c.fitted_rows > 100 && c.tested_rows > 40);
    rg_arena_free(arena);
}

static void refuses_by_name_what_large_products_cannot_say(void **state)
{
    (void)state;
    /* One size of product, bound by arithmetic: nothing in it depends on the memory's rate. */
    rg_arena *arena = rg_arena_new(256);
    rg_err err;
    rg_calibration c = {0};
    static const char *const hold[] = {"wave_cycles",  "l2_sm_bytes_per_cycle", "sustained_ratio",
                                       "split_cycles", "overlap_power",         "l2_share_ratio",
                                       "l2_ratio",     "start_cycles",          NULL};
    rg_calibration_options options = {.hold = hold};
    assert_ok(rg_split_parse(arena, "random:1", 1, &options.split, &err));
    write_text("kernel,dtype,m,n,k,time_us\n"
               "made,bfloat16,16384,16384,16384,11000\n"
               "made,bfloat16,16384,16384,8192,5500\n"
               "made,bfloat16,16384,8192,16384,5500\n"
               "made,bfloat16,8192,16384,16384,5500\n");
    assert_int_equal(calibrate(arena, &options, &c, &err), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "gemm_bf16.memory_ratio"));
    options.lean_on_prior = true;
    assert_ok(calibrate(arena, &options, &c, &err));
    assert_int_equal(c.estimate[RG_GEMM_MEMORY].note, RG_LSQ_UNIDENTIFIED);
    rg_arena_free(arena);
}

static void a_split_never_cuts_a_shape_in_two(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    rg_err err;
    rg_measured_table table;
    rg_split split;
    write_text("kernel,dtype,m,n,k,time_us\na,bfloat16,1,64,64,5\nb,fp8,1,64,64,9\n"
               "a,bfloat16,2,64,64,5\na,bfloat16,3,64,64,5\n");
    assert_ok(rg_measured_load(arena, RG_MEASURED_GEMM, path, &table, &err));
    assert_true(table.rows[0].shape_hash == table.rows[1].shape_hash);
    assert_true(table.rows[0].shape_hash != table.rows[2].shape_hash);
    assert_ok(rg_split_parse(arena, "regime:m<=2/m>2", 1, &split, &err));
    static const bool want[4] = {true, true, true, false};
    for (int i = 0; i < 4; i++) {
        bool fitted, tested;
        assert_ok(rg_split_row(&split, &table, &table.rows[i], &fitted, &tested, &err));
        assert_true(fitted == want[i] && tested == !want[i]);
    }
    assert_int_equal(rg_split_parse(arena, "half", 1, &split, &err), RG_ERR_USAGE);
    rg_arena_free(arena);
}

static void rows_beyond_physics_are_found_and_told_from_fast_ones(void **state)
{
    (void)state;
    /* H200: 2 16384^3 flop at 989.4 TFLOP/s is 8891 us, so 8000 us is impossible and 9000 us is
     * not. 65536 x 8192 weights are 1.07 GB: 224 us at 4.8 TB/s, so 200 us is impossible; 2 x 64 x
     * 64 fit L2, and nothing is known against them. */
    rg_arena *arena = rg_arena_new(64);
    rg_err err;
    rg_measured_table table;
    rg_predictor *predictor;
    write_text("kernel,dtype,m,n,k,time_us\na,bfloat16,16384,16384,16384,8000\n"
               "a,bfloat16,16384,16384,16384,9000\na,bfloat16,1,65536,8192,200\n"
               "a,bfloat16,1,65536,8192,230\na,bfloat16,2,64,64,0.001\na,bfloat16,2,64,64,0\n"
               "a,nvfp4,2,64,64,5\n");
    assert_ok(rg_measured_load(arena, RG_MEASURED_GEMM, path, &table, &err));
    assert_ok(rg_predictor_new(arena, "h200-sxm", NULL, RG_MEASURED_GEMM, &predictor, &err));
    assert_ok(rg_predictor_judge(predictor, &table, &err));
    static const rg_skip want[7] = {RG_SKIP_IMPOSSIBLE, RG_SKIP_NONE, RG_SKIP_IMPOSSIBLE,
                                    RG_SKIP_NONE,       RG_SKIP_NONE, RG_SKIP_INVALID,
                                    RG_SKIP_UNSUPPORTED};
    for (int i = 0; i < 7; i++)
        assert_int_equal(table.rows[i].skip, want[i]);
    assert_string_equal(table.rows[3].residency, "dram");
    assert_string_equal(table.rows[4].residency, "l2");
    rg_arena_free(arena);
}

static void an_unknown_type_is_refused_at_its_place(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    rg_err err;
    rg_measured_table table;
    write_text("kernel,dtype,m,n,k,time_us\na,bf17,1,64,64,5\n");
    assert_int_equal(rg_measured_load(arena, RG_MEASURED_GEMM, path, &table, &err), RG_ERR_INPUT);
    assert_int_equal(err.pos.line, 2);
    assert_non_null(strstr(err.text, "bf17"));
    /* Beside rows that are known it is one that has no model. */
    write_text("kernel,dtype,m,n,k,time_us\na,bf17,1,64,64,5\na,bfloat16,1,64,64,5\n");
    assert_ok(rg_measured_load(arena, RG_MEASURED_GEMM, path, &table, &err));
    assert_int_equal(table.rows[0].skip, RG_SKIP_UNSUPPORTED);
    assert_int_equal(table.rows[1].skip, RG_SKIP_NONE);
    /* A format that exists and that no measured table has is not supported, even alone. */
    write_text("kernel,q_dtype,kv_dtype,batch,kv_len,heads,kv_heads,head_dim,time_us\n"
               "a,bfloat16,int4,1,64,8,1,128,5\n");
    assert_ok(rg_measured_load(arena, RG_MEASURED_GENERATION_ATTENTION, path, &table, &err));
    assert_int_equal(table.rows[0].skip, RG_SKIP_UNSUPPORTED);
    rg_arena_free(arena);
}

static rg_calibration made_calibration(double value)
{
    rg_calibration c = {
        .group = RG_KG_STREAM, .parameters = 2, .fitted_rows = 10, .tested_rows = 5};
    c.parameter[0] = (rg_lsq_parameter){.name = "start_cycles"};
    c.parameter[1] = (rg_lsq_parameter){.name = "memory_ratio"};
    c.estimate[0] = (rg_lsq_estimate){.value = value, .low = 1, .high = 9, .partner = -1};
    c.held[1] = true;
    c.tested = (rg_error_summary){.count = 5, .median_ape = 0.04, .p90_ape = 0.1, .bias = -0.01};
    return c;
}

static void storing_keeps_the_rest_of_the_file(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    rg_err err;
    const rg_fit_provenance from = {.date = "2026-01-02", .data = "x.csv", .split = "random"};
    rg_calibration c = made_calibration(5.0);
    char *once, *twice;
    assert_ok(rg_fit_store_text(arena,
                                "# head\nname: x\nfit: # kept\n  collective:\n    base_us: 4 # c\n"
                                "\n# tail\nlinks: 1\n",
                                &c, 1, &from, &once, &err));
    assert_non_null(strstr(once, "# head\nname: x\nfit: # kept\n  collective:\n    base_us: 4 # c\n"
                                 "  stream:\n"));
    assert_non_null(strstr(once, "\n# tail\nlinks: 1\n"));
    assert_non_null(strstr(once, "    start_cycles: 5 # 1 to 9\n"));
    assert_null(strstr(once, "memory_ratio"));
    assert_non_null(strstr(once, "all: {median_ratio: 0.040, p90_ratio: 0.100"));
    c = made_calibration(6.0);
    assert_ok(rg_fit_store_text(arena, once, &c, 1, &from, &twice, &err));
    assert_null(strstr(twice, "start_cycles: 5"));
    assert_non_null(strstr(twice, "start_cycles: 6"));
    assert_int_equal(strlen(once), strlen(twice));
    rg_arena_free(arena);
}

static void a_file_without_a_fit_gets_one_at_its_end(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    rg_err err;
    const rg_fit_provenance from = {.data = "x.csv", .split = "random"};
    const rg_calibration c = made_calibration(5.0);
    char *out;
    assert_ok(rg_fit_store_text(arena, "name: x", &c, 1, &from, &out, &err));
    assert_true(strncmp(out, "name: x\nfit:\n  stream:\n    data:", 32) == 0);
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_constants_that_made_the_table),
        cmocka_unit_test(refuses_by_name_what_large_products_cannot_say),
        cmocka_unit_test(a_split_never_cuts_a_shape_in_two),
        cmocka_unit_test(rows_beyond_physics_are_found_and_told_from_fast_ones),
        cmocka_unit_test(an_unknown_type_is_refused_at_its_place),
        cmocka_unit_test(storing_keeps_the_rest_of_the_file),
        cmocka_unit_test(a_file_without_a_fit_gets_one_at_its_end),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}

/* Claims about the small parts of core: quantities, formats, CSV, numbers, statistics, streams,
 * arena, files. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/csv.h"
#include "core/dtype.h"
#include "core/file.h"
#include "core/quantity.h"
#include "core/rng.h"
#include "core/stat.h"
#include "core/text.h"

static rg_arena *arena;
static rg_err err;

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(16);
    return arena ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

static double quantity(const char *text, rg_dim dim)
{
    double value = NAN;
    assert_ok(rg_quantity_parse(text, dim, RG_NOWHERE, "x", &value, &err));
    return value;
}

static void a_GB_is_1e9_and_a_GiB_2_to_the_30(void **state)
{
    (void)state;
    assert_close(quantity("141 GB", RG_DIM_BYTES), 141e9, 0);
    assert_close(quantity("50 MiB", RG_DIM_BYTES), 50.0 * 1048576.0, 0);
    assert_close(quantity("128KiB", RG_DIM_BYTES), 131072.0, 0);
    assert_close(quantity("4.8 TB/s", RG_DIM_BYTES_PER_S), 4.8e12, 1e-15);
    assert_close(quantity("400 Gbit/s", RG_DIM_BYTES_PER_S), 50e9, 0);
    assert_close(quantity("989.4 TFLOP/s", RG_DIM_FLOPS_PER_S), 989.4e12, 1e-15);
    assert_close(quantity("1979 TOP/s", RG_DIM_FLOPS_PER_S), 1979e12, 1e-15);
    assert_close(quantity("1.98 GHz", RG_DIM_HERTZ), 1.98e9, 1e-15);
    assert_close(quantity("345 ns", RG_DIM_SECONDS), 345e-9, 1e-15);
    assert_close(quantity("2.5 $/h", RG_DIM_USD_PER_HOUR), 2.5, 0);
    assert_close(quantity("35 %", RG_DIM_NONE), 0.35, 1e-15);
    assert_close(quantity("20 /s", RG_DIM_PER_SECOND), 20.0, 0);
    assert_close(quantity("5 EB", RG_DIM_BYTES), 5e18, 0);
}

static void what_is_no_quantity_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        rg_dim dim;
    } bad[] = {{"4.8 TBs", RG_DIM_BYTES_PER_S},
               {"4.8", RG_DIM_BYTES_PER_S},
               {"", RG_DIM_BYTES},
               {"GB", RG_DIM_BYTES},
               {"1 Gb", RG_DIM_BYTES},
               {"1e400 B", RG_DIM_BYTES},
               {"1 mB", RG_DIM_BYTES},
               {"1 TFLOPS/s", RG_DIM_FLOPS_PER_S},
               {"1 GiHz", RG_DIM_HERTZ},
               {"1 GB/s/s", RG_DIM_BYTES_PER_S},
               {"3 x", RG_DIM_NONE},
               {"1e300 EB", RG_DIM_BYTES}};
    double value;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (rg_quantity_parse(bad[i].text, bad[i].dim, RG_NOWHERE, "bandwidth", &value, &err) ==
            RG_OK)
            fail_msg("'%s' passed", bad[i].text);
    rg_quantity_parse("4.8 TBs", RG_DIM_BYTES_PER_S, RG_NOWHERE, "bandwidth", &value, &err);
    assert_string_equal(err.text, "bandwidth '4.8 TBs' is not a rate; write it as '4.8 TB/s'");
}

static void printed_quantities_read_back(void **state)
{
    (void)state;
    static const struct {
        double value;
        rg_dim dim;
        const char *text;
    } rows[] = {{4.8e12, RG_DIM_BYTES_PER_S, "4.800 TB/s"},
                {0.0123, RG_DIM_SECONDS, "12.30 ms"},
                {2.5e-6, RG_DIM_SECONDS, "2.500 us"},
                {12.3, RG_DIM_SECONDS, "12.3 s"},
                {999.99e9, RG_DIM_BYTES, "999.990 GB"},
                {0.0, RG_DIM_BYTES, "0.000 B"},
                {0.5, RG_DIM_NONE, "0.500"},
                {123456.0, RG_DIM_NONE, "123456"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        rg_quantity_format(rows[i].value, rows[i].dim, i == 4 ? 6 : 4, text, sizeof text);
        assert_string_equal(text, rows[i].text);
        assert_close(quantity(text, rows[i].dim), rows[i].value, 1e-3);
    }
}

static void formats_count_scales_and_zero_points(void **state)
{
    (void)state;
    rg_format format;
    assert_ok(rg_format_parse("int4_g128", RG_NOWHERE, &format, &err));
    assert_string_equal(format.name, "int4_g128");
    assert_close(rg_format_bytes(&format, 128).v, 64.0 + 2.0 + 0.5, 0); /* nibbles, fp16, zero */
    assert_ok(rg_format_parse("int2_g32", RG_NOWHERE, &format, &err));
    assert_close(rg_format_bytes(&format, 32).v, 8.0 + 2.0 + 0.25, 0);
    assert_ok(rg_format_parse("nvfp4", RG_NOWHERE, &format, &err));
    assert_close(rg_format_bytes(&format, 16).v, 8.0 + 1.0, 0);
    assert_ok(rg_format_parse("mxfp4", RG_NOWHERE, &format, &err));
    assert_close(rg_format_bytes(&format, 32).v, 16.0 + 1.0, 0);
    assert_ok(rg_format_parse("fp8_block", RG_NOWHERE, &format, &err));
    assert_close(rg_format_bytes(&format, 16384).v, 16384.0 + 4.0, 0);
    assert_ok(rg_format_parse("bfloat16", RG_NOWHERE, &format, &err));
    assert_close(rg_format_bytes(&format, 3).v, 6.0, 0);
    assert_int_equal(rg_format_parse("int4_g0", RG_NOWHERE, &format, &err), RG_ERR_INPUT);
    assert_int_equal(rg_format_parse("bf61", RG_NOWHERE, &format, &err), RG_ERR_INPUT);
    assert_string_equal(err.text, "format 'bf61' is not known; did you mean 'bf16'?");
}

static void csv_takes_quotes_crlf_bom_and_a_missing_last_line_end(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbf# tool 1.0\r\na,\"b, c\",d\r\n1,\"x \"\"y\"\"\",2.5\r\n"
                               "\r\n-3,\"two\nlines\",1e3";
    rg_csv *csv;
    assert_ok(rg_csv_open_text(arena, "t.csv", text, sizeof text - 1, &csv, &err));
    int column;
    assert_ok(rg_csv_column(csv, "b, c", &column, &err));
    bool more;
    int64_t whole;
    double real;
    assert_ok(rg_csv_next(csv, &more, &err));
    assert_true(more);
    assert_string_equal(rg_csv_text(csv, column), "x \"y\"");
    assert_ok(rg_csv_real(csv, 2, &real, &err));
    assert_close(real, 2.5, 0);
    assert_ok(rg_csv_next(csv, &more, &err));
    assert_string_equal(rg_csv_text(csv, column), "two\nlines");
    assert_ok(rg_csv_int(csv, 0, &whole, &err));
    assert_int_equal(whole, -3);
    assert_int_equal(rg_csv_pos(csv, 0).line, 5);
    assert_ok(rg_csv_next(csv, &more, &err));
    assert_false(more);
}

static void csv_mistakes_have_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {{"a,b\n1\n", "t.csv:2:1: row has 1 fields, the header 2"},
                {"", "t.csv:1:1: is empty"},
                {"a,a\n", "t.csv:1:3: column 'a' is given twice"},
                {"a,b\n1,\"x\n", "t.csv:2:3: a quote is opened and never closed"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rg_csv *csv;
        bool more = false;
        rg_status status =
            rg_csv_open_text(arena, "t.csv", rows[i].text, strlen(rows[i].text), &csv, &err);
        if (status == RG_OK)
            status = rg_csv_next(csv, &more, &err);
        assert_int_equal(status, RG_ERR_INPUT);
        char got[1400];
        rg_err_format(&err, got, sizeof got);
        assert_non_null(strstr(got, rows[i].want));
    }
}

static void a_swap_of_letters_is_one_mistake(void **state)
{
    (void)state;
    assert_int_equal(rg_text_distance("bandwidht", "bandwidth"), 1);
    assert_int_equal(rg_text_distance("kitten", "sitting"), 3);
    assert_int_equal(rg_text_distance("", "abc"), 3);
    static const char *const names[] = {"h100-sxm", "h200-sxm", NULL};
    assert_null(rg_text_nearest("mi300x", names));
    assert_string_equal(rg_text_nearest("h20-sxm", names), "h200-sxm");
    /* Another name for the only known one of a group; not where two of the group are apart. */
    static const char *const one[] = {"batch", "context", NULL};
    static const char *const both[] = {"prompt", "context", NULL};
    assert_string_equal(rg_text_synonym("isl", one), "context");
    assert_null(rg_text_synonym("isl", both));
    assert_null(rg_text_synonym("osl", one));
    assert_null(rg_text_synonym("batch", one));
}

static void quantiles_are_linear_between_order_statistics(void **state)
{
    (void)state;
    double x[] = {4, 1, 3, 2};
    const rg_summary s = rg_stat_summary(x, 4);
    assert_close(s.p50, 2.5, 1e-15);
    assert_close(s.p90, 3.7, 1e-15); /* 1 + 0.9 * 3 */
    assert_close(s.mean, 2.5, 1e-15);
    assert_close(s.deviation, sqrt(5.0 / 3.0), 1e-15);
    /* t(0.975, 3) = 3.18245 (tables) */
    assert_close(rg_stat_mean_half_width(x, 4, 0.95), 3.18245 * sqrt(5.0 / 3.0) / 2.0, 1e-5);
}

static void errors_are_relative_to_the_measurement(void **state)
{
    (void)state;
    const double predicted[] = {11, 9, 20}, measured[] = {10, 10, 10};
    double scratch[3];
    const rg_error_summary e = rg_stat_errors(predicted, measured, 3, scratch);
    assert_close(e.median_ape, 0.1, 1e-12);
    assert_close(e.mean_ape, 0.4, 1e-12);
    assert_close(e.bias, 0.1, 1e-12);
}

static void streams_of_one_seed_are_independent_and_uniform(void **state)
{
    (void)state;
    enum { N = 200000 };
    rg_rng a, b;
    rg_rng_seed(&a, 7, 0);
    rg_rng_seed(&b, 7, 1);
    double sum = 0, square = 0, cross = 0;
    for (int i = 0; i < N; i++) {
        const double x = rg_rng_real(&a) - 0.5, y = rg_rng_real(&b) - 0.5;
        sum += x;
        square += x * x;
        cross += x * y;
    }
    /* Five standard errors: mean sqrt(1/12/N), variance 1/12 (kurtosis 1.8), correlation 1/sqrt(N).
     */
    assert_true(fabs(sum / N) < 5 * sqrt(1.0 / 12 / N));
    assert_close(square / N, 1.0 / 12, 0.02);
    assert_true(fabs(cross / N * 12) < 5 / sqrt(N));
    double gamma = 0;
    for (int i = 0; i < N; i++)
        gamma += rg_rng_gamma(&a, 0.5);
    assert_close(gamma / N, 0.5, 0.02);
}

static void an_arena_ends_at_its_cap(void **state)
{
    (void)state;
    rg_arena *small = rg_arena_new(1);
    assert_non_null(rg_arena_alloc(small, 1000, 1000, &err));
    assert_null(rg_arena_alloc(small, 1000, 1000, &err));
    assert_int_equal(err.status, RG_ERR_LIMIT);
    assert_null(rg_arena_alloc(small, SIZE_MAX / 2, 4, &err));
    rg_arena_reset(small);
    unsigned char *again = rg_arena_alloc(small, 1000, 1000, &err);
    assert_non_null(again);
    assert_int_equal(again[999], 0);
    rg_arena_free(small);
}

static void an_output_file_is_whole_or_absent(void **state)
{
    (void)state;
    char folder[] = "/tmp/ridge-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out.txt", folder);
    rg_out_file file;
    assert_ok(rg_out_open(&file, path, &err));
    fputs("half", file.stream);
    rg_out_abandon(&file);
    assert_false(rg_file_exists(path));
    assert_ok(rg_out_open(&file, path, &err));
    fputs("abc", file.stream);
    assert_false(rg_file_exists(path));
    assert_ok(rg_out_commit(&file, &err));
    char digest[65], *text;
    size_t length;
    assert_ok(rg_file_sha256(path, digest, &err));
    /* FIPS 180-4 example: SHA-256("abc") */
    assert_string_equal(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_ok(rg_file_read(arena, path, 100, &text, &length, &err));
    assert_int_equal(length, 3);
    assert_int_equal(rg_file_read(arena, path, 2, &text, &length, &err), RG_ERR_LIMIT);
    assert_int_equal(rg_file_read(arena, folder, 100, &text, &length, &err), RG_ERR_IO);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_GB_is_1e9_and_a_GiB_2_to_the_30),
        cmocka_unit_test(what_is_no_quantity_is_refused),
        cmocka_unit_test(printed_quantities_read_back),
        cmocka_unit_test(formats_count_scales_and_zero_points),
        cmocka_unit_test(csv_takes_quotes_crlf_bom_and_a_missing_last_line_end),
        cmocka_unit_test(csv_mistakes_have_their_place),
        cmocka_unit_test(a_swap_of_letters_is_one_mistake),
        cmocka_unit_test(quantiles_are_linear_between_order_statistics),
        cmocka_unit_test(errors_are_relative_to_the_measurement),
        cmocka_unit_test(streams_of_one_seed_are_independent_and_uniform),
        cmocka_unit_test(an_arena_ends_at_its_cap),
        cmocka_unit_test(an_output_file_is_whole_or_absent),
    };
    return cmocka_run_group_tests_name("core", tests, setup, teardown);
}

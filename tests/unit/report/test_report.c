/* Claims about report: one result, four forms, nothing lost between them. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/file.h"
#include "report/report.h"

static rg_arena *arena;
static rg_err err;
static char folder[] = "/tmp/ridge-report-XXXXXX";

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(16);
    return arena && mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return rmdir(folder);
}

static const char *written(rg_form form)
{
    rg_report *report = rg_report_new(arena, "demo", 3, form, &err);
    assert_non_null(report);
    rg_report_line(report, "a <line>");
    rg_report_figure(report, "ttft_s", "first token", 0.0125, RG_DIM_SECONDS);
    rg_report_figure(report, "none_s", "nothing", NAN, RG_DIM_SECONDS);
    rg_table *table = rg_report_table(report, "rows", "\nRows");
    rg_table_column(table, "name", "name", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "size_bytes", "size", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(table, "count", "count", RG_CELL_INT, RG_DIM_NONE, true);
    rg_table_text(table, "a,\"b\"");
    rg_table_real(table, 2e9);
    rg_table_int(table, 7);
    rg_table_text(table, "c");
    rg_table_real(table, INFINITY);
    rg_table_int(table, 8);
    rg_report_assume(report, "KV in %s", "bf16");
    rg_report_assume(report, "KV in %s", "bf16");
    char path[128], *text;
    size_t length;
    snprintf(path, sizeof path, "%s/out", folder);
    assert_ok(rg_report_write(report, path, NULL, &err));
    assert_ok(rg_file_read(arena, path, 1 << 20, &text, &length, &err));
    unlink(path);
    return text;
}

static void text_is_for_people(void **state)
{
    (void)state;
    assert_string_equal(written(RG_FORM_TEXT), "a <line>\n"
                                               "  first token  12.50 ms\n"
                                               "  nothing      -\n"
                                               "\nRows\n"
                                               "  name       size\n"
                                               "  a,\"b\"  2.000 GB\n"
                                               "  c             -\n"
                                               "\nAssumptions\n"
                                               "  - KV in bf16\n");
}

static void csv_holds_every_column_in_full(void **state)
{
    (void)state;
    assert_string_equal(written(RG_FORM_CSV), "name,size_bytes,count\n"
                                              "\"a,\"\"b\"\"\",2000000000,7\n"
                                              "c,,8\n");
}

static void json_has_schema_and_null_for_what_is_not_finite(void **state)
{
    (void)state;
    json_t *json = json_loads(written(RG_FORM_JSON), 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "schema")), "ridge.demo/3");
    assert_close(json_real_value(json_object_get(json, "ttft_s")), 0.0125, 0);
    assert_true(json_is_null(json_object_get(json, "none_s")));
    json_t *rows = json_object_get(json, "rows");
    assert_int_equal(json_array_size(rows), 2);
    assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "size_bytes")));
    assert_int_equal(json_array_size(json_object_get(json, "assumptions")), 1);
    json_decref(json);
}

static void html_escapes_what_it_shows(void **state)
{
    (void)state;
    const char *page = written(RG_FORM_HTML);
    assert_non_null(strstr(page, "a &lt;line&gt;"));
    assert_non_null(strstr(page, "<td>a,&quot;b&quot;</td>"));
    assert_null(strstr(page, "<line>"));
}

static void a_heading_is_a_line_of_text_and_an_h2(void **state)
{
    (void)state;
    for (int html = 0; html < 2; html++) {
        char path[128], *text;
        size_t length;
        rg_report *report =
            rg_report_new(arena, "demo", 1, html ? RG_FORM_HTML : RG_FORM_TEXT, &err);
        assert_non_null(report);
        rg_report_heading(report, "KV & rest");
        snprintf(path, sizeof path, "%s/out", folder);
        assert_ok(rg_report_write(report, path, NULL, &err));
        assert_ok(rg_file_read(arena, path, 1 << 20, &text, &length, &err));
        unlink(path);
        if (html)
            assert_non_null(strstr(text, "<h2>KV &amp; rest</h2>"));
        else
            assert_string_equal(text, "KV & rest\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_for_people),
        cmocka_unit_test(csv_holds_every_column_in_full),
        cmocka_unit_test(json_has_schema_and_null_for_what_is_not_finite),
        cmocka_unit_test(html_escapes_what_it_shows),
        cmocka_unit_test(a_heading_is_a_line_of_text_and_an_h2),
    };
    return cmocka_run_group_tests_name("report", tests, setup, teardown);
}

/* Named values from options and files: what is not set stays, what is wrong is named at its place.
 */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/lookup.h"

static rg_err err;
static rg_arena *arena;

typedef struct value {
    const char *name, *text;
    rg_pos pos;
} value;

static const value values[] = {
    {"tp", "8", {0}},
    {"pp", "none", {"grid.yaml", 4, 7}},
    {"share", "0.5,0.25,0.25", {0}},
    {"shares", "0.5,half", {"grid.yaml", 5, 3}},
    {"wide", "true", {0}},
    {"deep", "perhaps", {0}},
};

static const char *text_of(const void *from, const char *name, rg_pos *pos)
{
    (void)from;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strcmp(values[i].name, name) == 0) {
            *pos = values[i].pos;
            return values[i].text;
        }
    return NULL;
}

static const rg_lookup lookup = {text_of, NULL};

static void what_is_not_set_stays(void **state)
{
    (void)state;
    int64_t n = 7;
    double x = 0.25;
    bool yes = true;
    assert_ok(rg_lookup_int(&lookup, "ep", 1, 64, &n, &err));
    assert_ok(rg_lookup_real(&lookup, "skew", 0, 4, &x, &err));
    assert_ok(rg_lookup_flag(&lookup, "flat", &yes, &err));
    assert_true(n == 7 && x == 0.25 && yes);
}

static void values_are_read_and_ranges_kept(void **state)
{
    (void)state;
    int64_t n = 0;
    bool yes = false;
    assert_ok(rg_lookup_int(&lookup, "tp", 1, 64, &n, &err));
    assert_int_equal(n, 8);
    assert_ok(rg_lookup_flag(&lookup, "wide", &yes, &err));
    assert_true(yes);
    assert_int_equal(rg_lookup_int(&lookup, "tp", 1, 4, &n, &err), RG_ERR_USAGE);
    assert_string_equal(err.text, "option --tp '8' is not a whole number from 1 to 4");
    assert_int_equal(n, 8); /* left alone */
}

static void a_value_of_a_file_is_wrong_at_its_place(void **state)
{
    (void)state;
    int64_t n;
    assert_int_equal(rg_lookup_int(&lookup, "pp", 1, 64, &n, &err), RG_ERR_INPUT);
    char text[RG_ERR_TEXT_SIZE];
    rg_err_format(&err, text, sizeof text);
    assert_string_equal(text, "grid.yaml:4:7: pp 'none' is not a whole number from 1 to 64");
    bool yes;
    assert_int_equal(rg_lookup_flag(&lookup, "deep", &yes, &err), RG_ERR_USAGE);
    assert_string_equal(err.text, "option --deep 'perhaps' is not true or false");
}

static void lists_are_numbers_between_commas(void **state)
{
    (void)state;
    double *list;
    int count;
    assert_ok(rg_lookup_reals(arena, &lookup, "share", 3, &list, &count, &err));
    assert_int_equal(count, 3);
    assert_true(list[0] == 0.5 && list[2] == 0.25);
    assert_int_equal(rg_lookup_reals(arena, &lookup, "share", 2, &list, &count, &err),
                     RG_ERR_USAGE);
    assert_int_equal(rg_lookup_reals(arena, &lookup, "shares", 3, &list, &count, &err),
                     RG_ERR_INPUT);
    assert_int_equal(err.pos.line, 5);
}

static void another_parsers_error_gets_the_place(void **state)
{
    (void)state;
    rg_err inner = {0};
    const rg_status status = rg_fail(&inner, RG_ERR_USAGE, RG_NOWHERE, "no such layout");
    assert_int_equal(rg_lookup_placed(status, &lookup, "pp", &inner), RG_ERR_INPUT);
    assert_int_equal(inner.pos.column, 7);
    inner = (rg_err){0};
    rg_fail(&inner, RG_ERR_INPUT, RG_NOWHERE, "no such layout");
    assert_int_equal(rg_lookup_placed(RG_ERR_INPUT, &lookup, "tp", &inner), RG_ERR_USAGE);
    assert_string_equal(inner.text, "option --tp: no such layout");
}

int main(void)
{
    arena = rg_arena_new(16);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_set_stays),
        cmocka_unit_test(values_are_read_and_ranges_kept),
        cmocka_unit_test(a_value_of_a_file_is_wrong_at_its_place),
        cmocka_unit_test(lists_are_numbers_between_commas),
        cmocka_unit_test(another_parsers_error_gets_the_place),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rg_arena_free(arena);
    return failed;
}

/* tests/unit/core/test_find.c: names become files, by folder order. */
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <unistd.h>

#include "unit.h"

#include "core/find.h"

static char folder[] = "/tmp/ridge-find-XXXXXX";
static const char *const files[] = {"h100-sxm", "h100-pcie", "h200-sxm", "solo-card"};

static void in_folder(char *out, size_t size, const char *file)
{
    snprintf(out, size, "%s/find-test/%s", folder, file);
}

static int make_folder(void **state)
{
    (void)state;
    char path[256];
    if (mkdtemp(folder) == NULL)
        return -1;
    in_folder(path, sizeof path, "");
    if (mkdir(path, 0700) != 0)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.yaml", files[i]);
        in_folder(path, sizeof path, name);
        FILE *file = fopen(path, "w");
        if (file == NULL || fclose(file) != 0)
            return -1;
    }
    return setenv("RIDGE_DATA", folder, 1);
}

static int remove_folder(void **state)
{
    (void)state;
    char path[256];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.yaml", files[i]);
        in_folder(path, sizeof path, name);
        unlink(path);
    }
    in_folder(path, sizeof path, "");
    return rmdir(path) != 0 || rmdir(folder) != 0;
}

static void a_name_gives_its_file_whatever_its_case(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(16);
    const char *path;
    char want[256];
    in_folder(want, sizeof want, "h200-sxm.yaml");
    assert_ok(rg_data_find(arena, "find-test", "hardware", "h200-sxm", &path, &err));
    assert_string_equal(path, want);
    assert_ok(rg_data_find(arena, "find-test", "hardware", "H200_SXM", &path, &err));
    assert_string_equal(path, want);
    rg_arena_free(arena);
}

static void a_path_is_left_alone(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(16);
    const char *path;
    assert_ok(rg_data_find(arena, "find-test", "hardware", "my/own", &path, &err));
    assert_string_equal(path, "my/own");
    assert_ok(rg_data_find(arena, "find-test", "hardware", "config.json", &path, &err));
    assert_string_equal(path, "config.json");
    rg_arena_free(arena);
}

static void a_name_for_several_is_refused_with_the_list(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(16);
    const char *path;
    assert_int_equal(rg_data_find(arena, "find-test", "hardware", "h100", &path, &err),
                     RG_ERR_USAGE);
    assert_string_equal(err.text,
                        "hardware 'h100' stands for several; name one of: h100-pcie, h100-sxm");
    rg_arena_free(arena);
}

static void a_name_that_begins_only_one_means_that_one(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(16);
    const char *path;
    char want[256];
    in_folder(want, sizeof want, "solo-card.yaml");
    assert_ok(rg_data_find(arena, "find-test", "hardware", "solo", &path, &err));
    assert_string_equal(path, want);
    rg_arena_free(arena);
}

static void an_unknown_name_is_refused_with_the_nearest(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(16);
    const char *path;
    assert_int_equal(rg_data_find(arena, "find-test", "hardware", "h200-sxn", &path, &err),
                     RG_ERR_USAGE);
    assert_string_equal(err.text, "no hardware 'h200-sxn'; nearest is 'h200-sxm'");
    rg_arena_free(arena);
}

static void several_folders_are_looked_through_in_order(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(16);
    const rg_data_entry *entries;
    size_t count;
    assert_ok(rg_data_list(arena, "no-such-folder:find-test", &entries, &count, &err));
    assert_int_equal(count, 4);
    rg_arena_free(arena);
}

static void the_list_is_sorted(void **state)
{
    (void)state;
    rg_err err = {0};
    rg_arena *arena = rg_arena_new(16);
    const rg_data_entry *entries;
    size_t count;
    assert_ok(rg_data_list(arena, "find-test", &entries, &count, &err));
    assert_int_equal(count, 4);
    assert_string_equal(entries[0].name, "h100-pcie");
    assert_string_equal(entries[3].name, "solo-card");
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_gives_its_file_whatever_its_case),
        cmocka_unit_test(a_path_is_left_alone),
        cmocka_unit_test(a_name_for_several_is_refused_with_the_list),
        cmocka_unit_test(a_name_that_begins_only_one_means_that_one),
        cmocka_unit_test(an_unknown_name_is_refused_with_the_nearest),
        cmocka_unit_test(several_folders_are_looked_through_in_order),
        cmocka_unit_test(the_list_is_sorted),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

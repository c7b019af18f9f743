/* Claims about core/doc: every mistake in a document has its place, and nothing wrong passes. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/doc.h"
#include "core/override.h"

static rg_arena *arena;
static rg_err err;

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(64);
    return arena ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

static rg_status parse(const char *text, bool json, rg_node **root)
{
    return rg_doc_parse(arena, json ? "x.json" : "x.yaml", text, strlen(text), json, root, &err);
}

static void assert_refused(const char *text, bool json, const char *want)
{
    rg_node *root = NULL;
    assert_int_not_equal(parse(text, json, &root), RG_OK);
    char got[1400];
    rg_err_format(&err, got, sizeof got);
    if (!strstr(got, want)) {
        print_error("got '%s', want '%s' in it\n", got, want);
        fail();
    }
}

static void values_keep_their_place(void **state)
{
    (void)state;
    rg_node *root, *hbm;
    assert_ok(parse("name: h200\nhbm:\n  bandwidth: 4.8 TB/s\n  banks: 6\n", false, &root));
    assert_ok(rg_map_get(root, "hbm", &hbm, &err));
    double rate;
    assert_ok(rg_map_quantity(hbm, "bandwidth", RG_DIM_BYTES_PER_S, &rate, &err));
    assert_close(rate, 4.8e12, 1e-15);
    assert_int_equal(hbm->first->pos.line, 3);
    assert_int_equal(hbm->first->pos.column, 14);
}

static void an_unknown_key_names_the_nearest(void **state)
{
    (void)state;
    rg_node *root;
    double value;
    assert_ok(parse("bandwith: 4.8 TB/s\n", false, &root));
    assert_int_equal(rg_map_quantity_or(root, "bandwidth", RG_DIM_BYTES_PER_S, 1.0, &value, &err),
                     RG_OK);
    assert_int_equal(rg_map_done(root, &err), RG_ERR_INPUT);
    assert_string_equal(err.text, "unknown key 'bandwith'; did you mean 'bandwidth'?");
    assert_int_equal(err.pos.line, 1);
    assert_int_equal(err.pos.column, 1);
}

static void a_missing_key_names_its_map(void **state)
{
    (void)state;
    rg_node *root, *hbm, *out;
    assert_ok(parse("hbm: {bandwidht: 1}\n", false, &root));
    assert_ok(rg_map_get(root, "hbm", &hbm, &err));
    assert_int_equal(rg_map_get(hbm, "bandwidth", &out, &err), RG_ERR_INPUT);
    assert_string_equal(err.text, "missing key 'bandwidth' in 'hbm'; is it 'bandwidht'?");
}

static void a_key_given_twice_is_refused(void **state)
{
    (void)state;
    assert_refused("a: 1\nb: 2\na: 3\n", false,
                   "x.yaml:3:1: key 'a' is given twice, first on line 1");
    assert_refused("{\"a\": 1, \"a\": 2}", true, "x.json:1:10: key 'a' is given twice");
}

static void bad_utf8_has_a_line_and_column(void **state)
{
    (void)state;
    assert_refused("a: 1\nb: \xc3\xa9 \xff\n", false, "x.yaml:2:6: byte 0xff is not UTF-8");
    assert_refused("a: \xed\xa0\x80\n", false, "x.yaml:1:4: byte 0xed");
    assert_refused("a: \xc0\x80\n", false, "x.yaml:1:4: byte 0xc0");
}

static void depth_size_anchors_tags_are_capped(void **state)
{
    (void)state;
    char deep[2 * 200 + 1];
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    deep[400] = 0;
    assert_refused(deep, false, "nested deeper than 64 levels");
    assert_refused("a: &x 1\nb: *x\n", false, "x.yaml:1:4: anchors");
    assert_refused("a: !!int 1\n", false, "x.yaml:1:4: tags");
    assert_refused("a: *x\n", false, "aliases");
    assert_refused("", false, "the document is empty");
    assert_refused("--- 1\n--- 2\n", false, "x.yaml:2:1: a second document");
    assert_refused("a: [1, 2\n", false, "x.yaml:2:1: syntax");
    assert_refused("\ta: 1\n", false, "x.yaml:1:1: syntax");
    assert_refused("? [a]\n: 1\n", false, "a key must be plain text");
    assert_refused("a: \"x\\0y\"\n", false, "NUL");
}

static void json_is_held_to_json(void **state)
{
    (void)state;
    assert_refused("{\"a\": 1,}", true, "not valid JSON");
    assert_refused("{a: 1}", true, "not valid JSON");
    assert_refused("{\"a\": 01}", true, "not valid JSON");
    assert_refused("{\"a\": 1} x", true, "not valid JSON");
    assert_refused("{'a': 1}", true, "not valid JSON");
    rg_node *root;
    double value;
    assert_ok(parse("{\"limit\": [0.0, Infinity], \"s\": \"\\ud83d\\ude00 NaN\"}", true, &root));
    assert_ok(rg_node_real(root->first->first->next, true, &value, &err));
    assert_true(isinf(value));
    assert_int_equal(rg_node_real(root->first->first->next, false, &value, &err), RG_ERR_INPUT);
    assert_string_equal(root->first->next->text, "\xf0\x9f\x98\x80 NaN");
}

static void numbers_are_strict(void **state)
{
    (void)state;
    static const char *const bad[] = {"0x10", "1_000", "1e999", "nan", "'1'", "1 2", "", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64];
        rg_node *root;
        double value;
        int64_t whole;
        snprintf(text, sizeof text, "a: %s\n", bad[i]);
        assert_ok(parse(text, false, &root));
        assert_int_equal(rg_map_real(root, "a", &value, &err), RG_ERR_INPUT);
        assert_int_equal(rg_map_int(root, "a", 0, 10, &whole, &err), RG_ERR_INPUT);
    }
    rg_node *root;
    int64_t whole;
    assert_ok(parse("{a: 1e6, b: 9223372036854775808, c: 1.5, d: 11}", false, &root));
    assert_ok(rg_map_int(root, "a", 0, INT64_MAX, &whole, &err));
    assert_int_equal(whole, 1000000);
    assert_int_equal(rg_map_int(root, "b", 0, INT64_MAX, &whole, &err), RG_ERR_INPUT);
    assert_int_equal(rg_map_int(root, "c", 0, INT64_MAX, &whole, &err), RG_ERR_INPUT);
    assert_int_equal(rg_map_int(root, "d", 0, 10, &whole, &err), RG_ERR_INPUT);
    assert_string_equal(err.text, "'d' is '11', expected 0 to 10");
}

static void a_change_scales_or_replaces_one_value(void **state)
{
    (void)state;
    rg_node *root, *hbm;
    rg_override change;
    double rate;
    const char *source;
    assert_ok(parse("memory: {hbm: {bandwidth: {value: 4.8 TB/s, source: sheet}}, n: [1, 2]}\n",
                    false, &root));
    assert_ok(rg_override_parse(arena, "memory.hbm.bandwidth=x1.5", &change, &err));
    assert_ok(rg_override_apply(root, &change, &err));
    hbm = root->first->first->first;
    assert_ok(rg_map_quantity(hbm, "value", RG_DIM_BYTES_PER_S, &rate, &err));
    assert_close(rate, 7.2e12, 1e-14);
    assert_ok(rg_map_text(hbm, "source", &source, &err));
    assert_string_equal(source, "what-if: 7.2 TB/s in place of 4.8 TB/s (sheet)");
    assert_ok(rg_override_parse(arena, "memory.n.1=5", &change, &err));
    assert_ok(rg_override_apply(root, &change, &err));
    assert_string_equal(root->first->first->next->first->next->text, "5");
    assert_ok(rg_override_parse(arena, "memory.hmb.bandwidth=x2", &change, &err));
    assert_int_equal(rg_override_apply(root, &change, &err), RG_ERR_USAGE);
    assert_string_equal(err.text,
                        "change 'memory.hmb.bandwidth': no 'hmb' there; did you mean 'hbm'?");
    assert_ok(rg_override_parse(arena, "memory=x2", &change, &err));
    assert_int_equal(rg_override_apply(root, &change, &err), RG_ERR_USAGE);
    assert_int_equal(rg_override_parse(arena, "x2", &change, &err), RG_ERR_USAGE);
}

static void a_byte_order_mark_does_no_harm(void **state)
{
    (void)state;
    for (int json = 0; json < 2; json++) {
        static const char text[] = "\xef\xbb\xbf{\"a\": \"b\"}\n";
        rg_node *root;
        const char *value;
        assert_ok(rg_doc_parse(arena, "bom", text, sizeof text - 1, json, &root, &err));
        assert_ok(rg_map_text(root, "a", &value, &err));
        assert_string_equal(value, "b");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_order_mark_does_no_harm),
        cmocka_unit_test(values_keep_their_place),
        cmocka_unit_test(an_unknown_key_names_the_nearest),
        cmocka_unit_test(a_missing_key_names_its_map),
        cmocka_unit_test(a_key_given_twice_is_refused),
        cmocka_unit_test(bad_utf8_has_a_line_and_column),
        cmocka_unit_test(depth_size_anchors_tags_are_capped),
        cmocka_unit_test(json_is_held_to_json),
        cmocka_unit_test(numbers_are_strict),
        cmocka_unit_test(a_change_scales_or_replaces_one_value),
    };
    return cmocka_run_group_tests_name("core/doc", tests, setup, teardown);
}

/* Workloads of other simulators: Chakra traces are built byte by byte from et_def.proto. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "trace/workload.h"

/* ---- a writer of protobuf ---- */

typedef struct bytes {
    unsigned char at[4096];
    size_t n;
} bytes;

static void put_varint(bytes *b, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        b->at[b->n++] = (unsigned char)(v | 0x80);
    b->at[b->n++] = (unsigned char)v;
}

static void put_number(bytes *b, unsigned field, uint64_t v)
{
    put_varint(b, field << 3);
    put_varint(b, v);
}

static void put_block(bytes *b, unsigned field, const void *data, size_t n)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, n);
    memcpy(b->at + b->n, data, n);
    b->n += n;
}

/* Attribute with an integer in the field of its type: 7 int32, 9 int64, 13 uint64, 17 sint64 ... */
static void put_attribute(bytes *node, const char *name, unsigned type, uint64_t v)
{
    bytes a = {.n = 0};
    put_block(&a, 1, name, strlen(name));
    put_number(&a, type, v);
    put_block(node, 10, a.at, a.n);
}

static bytes new_node(uint64_t id, const char *name, uint64_t type)
{
    bytes n = {.n = 0};
    if (id > 0) /* proto3 writes no zero */
        put_number(&n, 1, id);
    put_block(&n, 2, name, strlen(name));
    put_number(&n, 3, type);
    return n;
}

static void put_record(bytes *file, const bytes *record)
{
    put_varint(file, record->n);
    memcpy(file->at + file->n, record->at, record->n);
    file->n += record->n;
}

static bytes new_file(void)
{
    bytes file = {.n = 0}, metadata = {.n = 0};
    put_block(&metadata, 1, "0.0.4", 5);
    put_record(&file, &metadata);
    return file;
}

static rg_status parse(rg_arena *arena, const bytes *file, rg_workload **w, rg_err *err)
{
    return rg_workload_parse(arena, "t.et", (const char *)file->at, file->n, w, err);
}

static rg_status parse_text(rg_arena *arena, const char *text, rg_workload **w, rg_err *err)
{
    return rg_workload_parse(arena, "w.txt", text, strlen(text), w, err);
}

/* ---- Chakra ---- */

static void integers_of_any_type_are_read(void **state)
{
    (void)state;
    static const struct {
        unsigned type;
        uint64_t size, kind;
    } forms[] = {{7, 4096, 6}, {9, 4096, 6}, {11, 4096, 6}, {13, 4096, 6}, {17, 8192, 12}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        rg_arena *arena = rg_arena_new(16);
        rg_err err = {0};
        rg_workload *w;
        bytes file = new_file(), node = new_node(0, "a2a", 7);
        put_attribute(&node, "comm_type", forms[i].type, forms[i].kind);
        put_attribute(&node, "comm_size", forms[i].type, forms[i].size);
        put_record(&file, &node);
        assert_ok(parse(arena, &file, &w, &err));
        assert_int_equal(w->count, 1);
        assert_string_equal(w->nodes[0].op, "all_to_all");
        assert_close(w->nodes[0].bytes, 4096, 1e-15);
        rg_arena_free(arena);
    }
}

static void times_dependencies_and_operations_of_nodes(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(16);
    rg_err err = {0};
    rg_workload *w;
    bytes file = new_file(), compute = new_node(7, "gemm", 4), op = new_node(8, "gemm2", 4),
          gather = new_node(9, "ag", 7);
    put_number(&compute, 7, 250); /* us */
    put_attribute(&op, "num_ops", 13, 2000);
    put_attribute(&op, "tensor_size", 13, 64);
    put_number(&op, 5, 7);
    put_attribute(&gather, "comm_type", 9, 2);
    put_attribute(&gather, "comm_size", 13, 1 << 20);
    const unsigned char packed[] = {7, 8};
    put_block(&gather, 5, packed, sizeof packed);
    put_record(&file, &compute);
    put_record(&file, &op);
    put_record(&file, &gather);
    assert_ok(parse(arena, &file, &w, &err));
    assert_int_equal(w->count, 3);
    assert_close(w->nodes[0].time_s, 250e-6, 1e-12);
    assert_true(isnan(w->nodes[1].time_s));
    assert_close(w->nodes[1].flops, 2000, 1e-12);
    assert_int_equal(w->nodes[1].after_count, 1);
    assert_int_equal(w->nodes[2].after_count, 2);
    assert_int_equal(w->nodes[2].after[1], 8);
    assert_true(w->nodes[2].bytes_a_rank);
    rg_arena_free(arena);
}

static void what_a_trace_must_have_is_asked_for_by_name(void **state)
{
    (void)state;
    static const struct {
        uint64_t type;
        const char *attribute;
        uint64_t value;
        const char *want;
    } cases[] = {{7, "comm_size", 64, "without the attribute comm_type"},
                 {7, "comm_type", 0, "comm_size is absent"},
                 {5, "comm_tag", 1, "comm_size is absent"},
                 {7, "comm_type", 3, "is GATHER"},
                 {7, "comm_type", 77, "comm_type 77"},
                 {4, "num_ops", 0, "no work in any"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rg_arena *arena = rg_arena_new(16);
        rg_err err = {0};
        rg_workload *w;
        bytes file = new_file(), node = new_node(1, "x", cases[i].type);
        put_attribute(&node, cases[i].attribute, 9, cases[i].value);
        put_record(&file, &node);
        assert_int_equal(parse(arena, &file, &w, &err), RG_ERR_INPUT);
        assert_non_null(strstr(err.text, cases[i].want));
        rg_arena_free(arena);
    }
}

static void a_cut_trace_says_where(void **state)
{
    (void)state;
    bytes file = new_file(), node = new_node(1, "all-reduce", 7);
    put_attribute(&node, "comm_type", 9, 0);
    put_attribute(&node, "comm_size", 9, 64);
    put_record(&file, &node);
    const size_t whole = file.n;
    for (file.n = 9; file.n < whole; file.n++) {
        rg_arena *arena = rg_arena_new(16);
        rg_err err = {0};
        rg_workload *w;
        assert_int_equal(parse(arena, &file, &w, &err), RG_ERR_INPUT);
        assert_non_null(strstr(err.text, "at byte"));
        rg_arena_free(arena);
    }
}

static void a_dependency_on_nothing_is_an_error(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(16);
    rg_err err = {0};
    rg_workload *w;
    bytes file = new_file(), node = new_node(1, "gemm", 4);
    put_number(&node, 7, 5);
    put_number(&node, 4, 99);
    put_record(&file, &node);
    assert_int_equal(parse(arena, &file, &w, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "depends on node 99"));
    rg_arena_free(arena);
}

static void a_real_chakra_trace(void **state)
{
    (void)state;
    skip_without(SHARED("inputs/files/chakra_all_gather_16npus_1MB.0.et"));
    rg_arena *arena = rg_arena_new(16);
    rg_err err = {0};
    rg_workload *w;
    assert_ok(rg_workload_load(arena, SHARED("inputs/files/chakra_all_gather_16npus_1MB.0.et"), &w,
                               &err));
    assert_string_equal(w->tool, "chakra");
    assert_int_equal(w->count, 1);
    assert_string_equal(w->nodes[0].op, "all_gather");
    assert_close(w->nodes[0].bytes, 1048576, 1e-15);
    rg_arena_free(arena);
}

/* ---- SimAI ---- */

#define HEAD \
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 2 pp: 1 all_gpus: 16\n"

static void forward_and_backward_of_a_layer(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(16);
    rg_err err = {0};
    rg_workload *w;
    assert_ok(parse_text(arena,
                         HEAD "2\n"
                              "a\t-1\t1000\tALLGATHER\t64\t2000\tNONE\t0\t3000\tALLREDUCE\t32\t50\n"
                              "b -1 10 ALLTOALL_EP 16 0 NONE 0 0 ALLREDUCE_DP_EP 8 0\r\n",
                         &w, &err));
    assert_int_equal(w->tensor, 4);
    assert_int_equal(w->ranks, 16);
    /* forward a: compute, gather; b: compute, all-to-all; back b: reduce; a: compute, compute,
     * reduce */
    assert_int_equal(w->count, 8);
    assert_close(w->nodes[0].time_s, 1e-6, 1e-12);
    assert_int_equal(w->nodes[1].group, RG_GROUP_TENSOR);
    assert_int_equal(w->nodes[2].after[0], w->nodes[1].id); /* the gather blocks layer b */
    assert_int_equal(w->nodes[3].group, RG_GROUP_EXPERT);
    assert_int_equal(w->nodes[4].group, RG_GROUP_DATA_EXPERT);
    assert_int_equal(w->nodes[5].after[0], w->nodes[3].id); /* not on b's weight gradient */
    assert_close(w->nodes[6].time_s, 3.05e-6, 1e-12);
    assert_int_equal(w->nodes[7].group, RG_GROUP_DATA);
    rg_arena_free(arena);
}

static void mistakes_have_a_line_and_a_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
        int line, column;
    } cases[] = {
        {HEAD "x\n", "number of layers", 2, 1},
        {HEAD "2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n", "ends after 1 of 2", 4, 1},
        {HEAD "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0\n", "the row ends before the update", 3, 32},
        {HEAD "1\na -1 1 ALLRED 0 1 NONE 0 1 NONE 0 1\n", "unknown collective 'ALLRED'", 3, 8},
        {HEAD "1\na -1 -4 NONE 0 1 NONE 0 1 NONE 0 1\n", "no number of 0 or more", 3, 6},
        {HEAD "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1 9\n", "behind the 12 columns", 3, 35},
        {HEAD "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\nb\n", "more rows than", 4, 1},
        {HEAD "1\na -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n", "no work", 0, 0},
        {"HYBRID_DLRM\n1\n", "dimensions of ASTRA-sim's network", 1, 1},
        {"HYBRID_TRANSFORMER ep: none\n1\n", "no number of ranks", 1, 24},
        {"layers 12\n", "no workload", 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rg_arena *arena = rg_arena_new(64);
        rg_err err = {0};
        rg_workload *w;
        assert_int_equal(parse_text(arena, cases[i].text, &w, &err), RG_ERR_INPUT);
        if (strstr(err.text, cases[i].want) == NULL)
            print_error("case %zu: %s\n", i, err.text);
        assert_non_null(strstr(err.text, cases[i].want));
        assert_int_equal(err.pos.line, cases[i].line);
        assert_int_equal(err.pos.column, cases[i].column);
        rg_arena_free(arena);
    }
}

static void a_real_simai_workload(void **state)
{
    (void)state;
    skip_without(SHARED("inputs/files/simai_microAllReduce.txt"));
    rg_arena *arena = rg_arena_new(16);
    rg_err err = {0};
    rg_workload *w;
    assert_ok(rg_workload_load(arena, SHARED("inputs/files/simai_microAllReduce.txt"), &w, &err));
    assert_int_equal(w->tensor, 8);
    assert_close(w->nodes[0].time_s, 556e-6, 1e-12);
    assert_close(w->nodes[1].bytes, 16777216, 1e-15);
    assert_close(w->nodes[3].bytes, 67108864, 1e-15);
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_any_type_are_read),
        cmocka_unit_test(times_dependencies_and_operations_of_nodes),
        cmocka_unit_test(what_a_trace_must_have_is_asked_for_by_name),
        cmocka_unit_test(a_cut_trace_says_where),
        cmocka_unit_test(a_dependency_on_nothing_is_an_error),
        cmocka_unit_test(a_real_chakra_trace),
        cmocka_unit_test(forward_and_backward_of_a_layer),
        cmocka_unit_test(mistakes_have_a_line_and_a_column),
        cmocka_unit_test(a_real_simai_workload),
    };
    return cmocka_run_group_tests_name("trace workload", tests, NULL, NULL);
}

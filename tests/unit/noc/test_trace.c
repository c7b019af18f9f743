/* Readers of networks and traces, operator traffic. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>

#include "noc/anynet.h"
#include "noc/closed.h"
#include "noc/sweep.h"
#include "noc/trace.h"
#include "noc/workload.h"

static rg_arena *arena;
static rg_err err;
static rg_noc_design *design;

static int set_up(void **state)
{
    (void)state;
    arena = rg_arena_new(512);
    return arena == NULL || rg_noc_design_load(arena, "mesh:4x4", &design, &err) != RG_OK;
}

static int tear_down(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

static rg_noc_mapping mapping(void)
{
    return (rg_noc_mapping){.design = design,
                            .cores = &design->groups[0],
                            .slices = &design->groups[0],
                            .flit_bytes = 32,
                            .line_bytes = 128,
                            .slice_delay = 5};
}

static rg_status parse(const char *text, size_t length, rg_noc_trace *out)
{
    const rg_noc_mapping map = mapping();
    return rg_noc_trace_parse(arena, "t.csv", text, length, &map, out, &err);
}

static rg_noc_config config_of(const rg_noc_trace *t)
{
    rg_noc_config config = {.graph = design->graph,
                            .router = design->router,
                            .class_count = t->class_count,
                            .sends = t->sends,
                            .send_count = t->send_count,
                            .orders = t->orders,
                            .order_count = t->order_count,
                            .max_packet = 16,
                            .check = true};
    const int vcs = design->router.vcs;
    for (int c = 0; c < t->class_count; c++)
        config.classes[c] =
            (rg_noc_class){.vc_first = vcs * c / t->class_count, .vc_count = vcs / t->class_count};
    return config;
}

static uint64_t makespan_of(const rg_noc_trace *t)
{
    const rg_noc_config config = config_of(t);
    rg_noc_result result;
    uint64_t makespan;
    assert_ok(rg_noc_run_trace(arena, &config, false, &makespan, NULL, NULL, &result, &err));
    return makespan;
}

static void a_csv_trace_keeps_its_order(void **state)
{
    (void)state;
    static const char text[] = "cycle,src,dst,bytes,class,id,after,delay\n"
                               "0,0,3,64,0,a,,\n"
                               "0,3,all:0,1,0,b,a,10\n"
                               "5,1,2,33,0,c,a;b,0\n";
    rg_noc_trace t;
    assert_ok(parse(text, strlen(text), &t));
    assert_int_equal(t.send_count, 3);
    assert_int_equal(t.order_count, 3);
    assert_int_equal(t.sends[0].flits, 2);
    assert_int_equal(t.sends[2].flits, 2);
    assert_close(t.bytes, 98, 1e-12);
    /* a: 4 routers, 2 flits: 2 + 16 + 1; b: 10 later, 2 + 16; c after both: 2 + 8 + 1 */
    assert_int_equal(makespan_of(&t), 19 + 10 + 18 + 11);
}

static void bad_csv_traces_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int line, column;
    } cases[] = {
        {"cycle,src,dst\n0,0,1\n", "bytes", 1, 0},
        {"cycle,src,dst,bytes\n0,16,1,8\n", "node '16' is not in the network", 2, 3},
        {"cycle,src,dst,bytes\n0,0,1,8\n-4,0,1,8\n", "cycle '-4'", 3, 1},
        {"cycle,src,dst,bytes\n0,0,1,8.5\n", "bytes '8.5'", 2, 7},
        {"cycle,src,dst,bytes,after\n0,0,1,8,7\n", "after '7' names no message", 2, 9},
        {"cycle,src,dst,bytes,id\n0,0,1,8,x\n0,0,1,8,x\n", "id 'x' is given twice", 0, 0},
        {"cycle,src,dst,bytes\n0,gpu:1,1,8\n", "group that the network has not", 2, 3},
        {"cycle,src,dst,bytes\n", "holds no message", 0, 0},
        {"BZh91AY", "bunzip2", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rg_noc_trace t;
        assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &t), RG_ERR_INPUT);
        assert_non_null(strstr(err.text, cases[i].message));
        if (cases[i].line > 0)
            assert_int_equal(err.pos.line, cases[i].line);
        if (cases[i].column > 0)
            assert_int_equal(err.pos.column, cases[i].column);
    }
}

static size_t put(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
    return (size_t)bytes;
}

/* Two packets of netrace 1.0: a read request of 8 bytes whose reply of 72 waits for it. */
static size_t netrace_example(unsigned char *data)
{
    size_t n = put(data, 0x484a5455, 4);
    n += put(data + n, 0x3f800000, 4);
    memset(data + n, 0, 64);
    data[n + 30] = 16;           /* nodes, behind the name */
    put(data + n + 32, 1000, 8); /* cycles */
    put(data + n + 40, 2, 8);    /* packets */
    put(data + n + 48, 4, 4);    /* notes */
    n = 72;
    memcpy(data + n, "abc", 4);
    n += 4;
    n += put(data + n, 10, 8);         /* cycle */
    n += put(data + n, 77, 4);         /* id */
    n += put(data + n, 0xabc0, 4);     /* address */
    n += put(data + n, 0x00070001, 4); /* type 1 from 0 to 7 */
    data[n - 4] = 1, data[n - 3] = 0, data[n - 2] = 7, data[n - 1] = 0;
    n += put(data + n, 1, 1); /* one dependant */
    n += put(data + n, 78, 4);
    n += put(data + n, 12, 8);
    n += put(data + n, 78, 4);
    n += put(data + n, 0xabc0, 4);
    data[n] = 2, data[n + 1] = 7, data[n + 2] = 0, data[n + 3] = 0, data[n + 4] = 0;
    return n + 5;
}

static void a_netrace_file_is_read_with_its_dependences(void **state)
{
    (void)state;
    unsigned char data[256];
    const size_t length = netrace_example(data);
    rg_noc_trace t;
    assert_ok(parse((const char *)data, length, &t));
    assert_int_equal(t.send_count, 2);
    assert_int_equal(t.order_count, 1);
    assert_int_equal(t.sends[0].destination, 7);
    assert_int_equal(t.sends[1].flits, 3);
    /* 0 to 7 on a 4 x 4 mesh: 5 routers, 22 cycles; back with 3 flits 24 */
    assert_int_equal(makespan_of(&t), 10 + 22 + 24);
    for (size_t cut = 4; cut < length; cut++)
        assert_true(parse((const char *)data, cut, &t) == RG_ERR_INPUT || cut == 76 ||
                    cut == 76 + 25);
}

static void scale_sim_rows_become_reads(void **state)
{
    (void)state;
    static const char text[] = "0.0, 1000.0, -1, 2000.0,\n7, 3000,\n";
    rg_noc_trace t;
    assert_ok(parse(text, strlen(text), &t));
    assert_int_equal(t.send_count, 6);
    assert_int_equal(t.order_count, 3);
    assert_int_equal(t.sends[2].source, 2); /* third column of addresses */
    assert_int_equal(t.sends[0].destination, rg_noc_slice_of(1000, 128, 16));
    assert_int_equal(t.sends[1].flits, 5); /* 128 + 8 bytes in flits of 32 */
    assert_int_equal(parse("0, 12, abc\n", 11, &t), RG_ERR_INPUT);
    assert_int_equal(err.pos.line, 1);
    assert_int_equal(err.pos.column, 8);
}

static void the_hash_spreads_any_stride_evenly(void **state)
{
    (void)state;
    for (int shift = 7; shift <= 20; shift++) {
        int hits[80] = {0};
        for (uint64_t i = 0; i < 80000; i++)
            hits[rg_noc_slice_of(i << shift, 128, 80)]++;
        for (int s = 0; s < 80; s++)
            assert_true(hits[s] > 800 && hits[s] < 1200); /* 1000 expected, deviation 32 */
    }
}

static void an_operator_moves_its_bytes(void **state)
{
    (void)state;
    const rg_noc_mapping map = mapping();
    rg_noc_trace t;
    rg_noc_operator op = {.kind = RG_NOC_GEMM,
                          .m = 100,
                          .n = 70,
                          .k = 130,
                          .tile_m = 64,
                          .tile_n = 32,
                          .tile_k = 64,
                          .stages = 2,
                          .element_bytes = 2};
    assert_ok(rg_noc_operator_trace(arena, &op, &map, &t, &err));
    /* Rows of 260 bytes do not end on lines; by k-step columns 0-127, 128-255, 256-259 touch one
     * line each of 128 bytes. 6 tiles: rows 64 or 36, columns 32, 32 or 6. */
    const double x_lines = 3 * 100 * 3, w_lines = 3 * 70 * 2;
    const double y_lines = 100 * (1 + 1 + 1);
    assert_close(t.payload_bytes, 128 * (x_lines + w_lines + y_lines), 1e-12);
    assert_true(makespan_of(&t) > 0);

    op = (rg_noc_operator){.kind = RG_NOC_KV_READ, .bytes = 100000, .window = 4};
    assert_ok(rg_noc_operator_trace(arena, &op, &map, &t, &err));
    assert_close(t.payload_bytes, ceil(100000 / 128.0) * 128, 1e-12);
    assert_int_equal(t.send_count, 2 * 782);
    makespan_of(&t);

    op = (rg_noc_operator){.kind = RG_NOC_ALLREDUCE, .bytes = 16000, .window = 1};
    assert_ok(rg_noc_operator_trace(arena, &op, &map, &t, &err));
    assert_close(t.payload_bytes, 2 * 15 * 16000, 1e-12); /* 2 (n - 1) / n of n x bytes */
    makespan_of(&t);

    op = (rg_noc_operator){.kind = RG_NOC_ALLREDUCE_L2, .bytes = 1280, .window = 4};
    assert_ok(rg_noc_operator_trace(arena, &op, &map, &t, &err));
    assert_close(t.payload_bytes, 2 * 16 * 1280, 1e-12);
    makespan_of(&t);

    op.window = 0;
    assert_int_equal(rg_noc_operator_trace(arena, &op, &map, &t, &err), RG_ERR_MODEL);
}

/* One line at a time: request and reply in turn, whatever else the network could do. */
static void a_window_of_one_line_pays_the_round_trip_each_time(void **state)
{
    (void)state;
    rg_noc_group core = {"core", 0, 1}, slice = {"slice", 15, 1};
    rg_noc_mapping map = mapping();
    map.cores = &core;
    map.slices = &slice;
    rg_noc_trace t;
    const rg_noc_operator op = {.kind = RG_NOC_KV_READ, .bytes = 1280, .window = 1};
    assert_ok(rg_noc_operator_trace(arena, &op, &map, &t, &err));
    /* request 2 + 4 * 7, delay 5, reply 4 flits longer, next request a cycle later */
    assert_int_equal(makespan_of(&t), 10 * (30 + 5 + 34) + 9);
}

static void anynet_files_give_routers_links_and_both_ways(void **state)
{
    (void)state;
    static const char text[] = "# two routers\nrouter 0 node 0 node 1 3 router 1 4\n"
                               "router 1 node 2\r\n";
    rg_noc_graph *g;
    assert_ok(rg_noc_anynet_parse(arena, "x.any", text, strlen(text), &g, &err));
    assert_int_equal(g->nodes, 3);
    assert_int_equal(g->routers, 2);
    assert_int_equal(g->outputs, 5);
    assert_int_equal(g->out_channel[g->node_output[1]].latency, 3);
    assert_int_equal(g->out_channel[g->out_first[1] + 1].latency, 4); /* the way back */
    int32_t *table;
    assert_ok(rg_noc_graph_table(arena, g, &table, &err));
    assert_int_equal(table[1 * 3 + 0], g->out_first[1] + 1);
}

static void bad_anynet_files_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int line, column;
    } cases[] = {
        {"", "holds no router", 1, 1},
        {"router 0 node 0\nrouter 1 nod 1\n", "'nod'", 2, 10},
        {"router x node 0\n", "'x' is no router number", 1, 8},
        {"router 0 node 0 router 0\n", "linked with itself", 1, 17},
        {"router 0 node 0 0\n", "below one cycle", 1, 17},
        {"router 0 node 0 router 1\nrouter 1 node 1 router 0 router 0\n", "linked twice", 2, 0},
        {"node 0 router 1\n", "does not start a router", 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rg_noc_graph *g;
        assert_int_equal(
            rg_noc_anynet_parse(arena, "x.any", cases[i].text, strlen(cases[i].text), &g, &err),
            RG_ERR_INPUT);
        assert_non_null(strstr(err.text, cases[i].message));
        assert_int_equal(err.pos.line, cases[i].line);
        if (cases[i].column > 0)
            assert_int_equal(err.pos.column, cases[i].column);
    }
    rg_noc_graph *g;
    const char *cut_off = "router 0 node 0\nrouter 1 node 1\n";
    int32_t *table;
    assert_ok(rg_noc_anynet_parse(arena, "x.any", cut_off, strlen(cut_off), &g, &err));
    assert_int_equal(rg_noc_graph_table(arena, g, &table, &err), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "no path"));
}

static void the_network_of_hw_noc_is_what_it_says(void **state)
{
    (void)state;
    rg_noc_design *d;
    const rg_noc_group *group;
    assert_ok(rg_noc_design_load(arena, "hw/noc/h100-like.yaml", &d, &err));
    assert_int_equal(d->graph->nodes, 132 + 80 + 30 + 18);
    assert_int_equal(d->graph->routers, 10);
    assert_ok(rg_noc_design_group(d, "nvlink", &group, &err));
    assert_int_equal(group->count, 18);
    assert_int_equal(d->graph->out_channel[d->graph->node_output[group->first]].period, 4);
    assert_true(d->assumed_count >= 6);
}

static rg_status load_workload(const char *text, rg_noc_workload *w)
{
    FILE *file = fopen("build/tests/traffic.yaml", "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return rg_noc_workload_load(arena, "build/tests/traffic.yaml", design, w, &err);
}

static void a_workload_gives_each_class_its_rates_and_channels(void **state)
{
    (void)state;
    rg_noc_workload w;
    rg_noc_closed closed;
    assert_ok(load_workload("kind: noc-traffic\nclasses:\n"
                            "  - {name: a, share: 0.25, traffic: hotspot(5), vcs: [0, 1],\n"
                            "     rates: {'0': 2, 'all:1': 0}}\n"
                            "  - {name: b, share: 0.5, traffic: neighbor, flits: 2, vcs: [2, 3]}\n",
                            &w));
    assert_int_equal(w.count, 2);
    assert_int_equal(w.classes[1].vc_first, 2);
    assert_int_equal(w.classes[1].vc_count, 2);
    /* a: 14 nodes by 0.25, one by 0.5, one by 0; b: 16 by 0.5 */
    assert_close(rg_noc_offered(w.classes, 2, 16), 14 * 0.25 + 0.5 + 8.0, 1e-12);
    assert_ok(
        rg_noc_closed_form(arena, design->graph, &design->router, w.classes, 2, &closed, &err));
    assert_close(closed.eject_load, 4.0 + 0.5,
                 1e-12); /* node 5 takes all of a, and its neighbour's */
    assert_close(closed.bound, 1.0 / 4.5, 1e-12);
}

static void bad_workloads_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int line;
    } cases[] = {
        {"kind: noc\n", "says 'noc-traffic'", 1},
        {"kind: noc-traffic\nclasses:\n  - {name: a, share: 0}\n", "share '0'", 3},
        {"kind: noc-traffic\nclasses:\n  - {name: a, share: 1, vcs: [0, 9]}\n", "9", 3},
        {"kind: noc-traffic\nclasses:\n  - {name: a, share: 1, to: cpu}\n", "no group", 3},
        {"kind: noc-traffic\nclasses:\n  - {name: a, share: 1, rates: {'99': 1}}\n", "'99'", 3},
        {"kind: noc-traffic\nclasses:\n  - {name: a, share: 1, shares: 1}\n", "shares", 3},
        {"kind: noc-traffic\nclasses: []\n", "'0' classes", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rg_noc_workload w;
        assert_int_equal(load_workload(cases[i].text, &w), RG_ERR_INPUT);
        assert_non_null(strstr(err.text, cases[i].message));
        assert_int_equal(err.pos.line, cases[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(a_csv_trace_keeps_its_order),
        T(bad_csv_traces_are_refused_at_their_place),
        T(a_netrace_file_is_read_with_its_dependences),
        T(scale_sim_rows_become_reads),
        T(the_hash_spreads_any_stride_evenly),
        T(an_operator_moves_its_bytes),
        T(a_window_of_one_line_pays_the_round_trip_each_time),
        T(anynet_files_give_routers_links_and_both_ways),
        T(bad_anynet_files_are_refused_at_their_place),
        T(the_network_of_hw_noc_is_what_it_says),
        T(a_workload_gives_each_class_its_rates_and_channels),
        T(bad_workloads_are_refused_at_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

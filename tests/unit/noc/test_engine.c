/* The cycle engine: timing by hand, conservation, deadlock, determinism. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>

#include "noc/anynet.h"
#include "noc/closed.h"
#include "noc/design.h"
#include "noc/sim.h"

static rg_arena *arena;
static rg_err err;

static int set_up(void **state)
{
    (void)state;
    arena = rg_arena_new(512);
    return arena == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

/* Router pipelines of the reference curves, and one with every stage longer than a cycle. */
static const rg_noc_router pipelines[] = {
    {.vcs = 4,
     .buffer = 8,
     .vc_alloc_delay = 1,
     .switch_alloc_delay = 1,
     .traversal_delay = 1,
     .credit_delay = 1,
     .iterations = 1},
    {.vcs = 4,
     .buffer = 8,
     .routing_delay = 1,
     .vc_alloc_delay = 1,
     .switch_alloc_delay = 1,
     .traversal_delay = 1,
     .vc_allocator = RG_NOC_ISLIP,
     .switch_allocator = RG_NOC_ISLIP,
     .iterations = 1},
    {.vcs = 4,
     .buffer = 8,
     .vc_alloc_delay = 1,
     .switch_alloc_delay = 1,
     .traversal_delay = 1,
     .credit_delay = 1,
     .speculative = true,
     .iterations = 1},
    {.vcs = 2,
     .buffer = 32,
     .routing_delay = 2,
     .vc_alloc_delay = 3,
     .switch_alloc_delay = 2,
     .traversal_delay = 4,
     .credit_delay = 2,
     .iterations = 1},
    {.vcs = 2,
     .buffer = 32,
     .routing_delay = 1,
     .vc_alloc_delay = 2,
     .switch_alloc_delay = 3,
     .traversal_delay = 2,
     .credit_delay = 1,
     .speculative = true,
     .iterations = 1},
};
enum { PIPELINES = sizeof pipelines / sizeof pipelines[0] };

static int per_hop(const rg_noc_router *r)
{
    const int longer =
        r->vc_alloc_delay > r->switch_alloc_delay ? r->vc_alloc_delay : r->switch_alloc_delay;
    return r->routing_delay + r->traversal_delay +
           (r->speculative ? longer : r->vc_alloc_delay + r->switch_alloc_delay);
}

/* Latency of one message in an otherwise empty network. */
static int lone_latency(const rg_noc_graph *graph, const rg_noc_router *router, int source,
                        int destination, int flits)
{
    const rg_noc_send send = {
        .source = source, .destination = destination, .flits = flits, .cycle = 7};
    const rg_noc_config config = {.graph = graph,
                                  .router = *router,
                                  .class_count = 1,
                                  .classes = {{.vc_count = router->vcs}},
                                  .sends = &send,
                                  .send_count = 1,
                                  .max_packet = 65535,
                                  .seed = 1,
                                  .check = true};
    rg_noc_result result;
    uint64_t makespan;
    assert_ok(rg_noc_run_trace(arena, &config, false, &makespan, NULL, NULL, &result, &err));
    return (int)makespan - 7;
}

static rg_noc_graph *cube(rg_noc_shape shape, int k, int dims, int link)
{
    rg_noc_graph *graph;
    const int extent[] = {k, k, k, k};
    assert_ok(rg_noc_graph_cube(arena, shape, extent, dims, link, &graph, &err));
    return graph;
}

static int mesh_hops(int a, int b, int k)
{
    return abs(a % k - b % k) + abs(a / k - b / k) + 1;
}

static void a_packet_alone_takes_the_formula_on_a_mesh(void **state)
{
    (void)state;
    const rg_noc_graph *graph = cube(RG_NOC_MESH, 4, 2, 1);
    for (int p = 0; p < PIPELINES; p++)
        for (int b = 0; b < 16; b++)
            for (int flits = 1; flits <= 7; flits += 3) {
                const int hops = mesh_hops(5, b, 4);
                /* 1 + Linj + H (rd + alloc + st) + (H - 1) Llink + Lej + flits - 1 */
                const int want = 1 + 1 + hops * per_hop(&pipelines[p]) + (hops - 1) + 1 + flits - 1;
                assert_int_equal(lone_latency(graph, &pipelines[p], 5, b, flits), want);
            }
}

static void a_packet_alone_takes_the_shorter_way_round_a_ring(void **state)
{
    (void)state;
    const rg_noc_graph *graph = cube(RG_NOC_TORUS, 9, 1, 2);
    rg_noc_router router = pipelines[0];
    router.routing = RG_NOC_ROUTE_TORUS;
    for (int b = 0; b < 9; b++) {
        const int ahead = (b - 7 + 9) % 9, steps = ahead <= 4 ? ahead : 9 - ahead;
        assert_int_equal(lone_latency(graph, &router, 7, b, 1), 3 + 3 * (steps + 1) + 2 * steps);
    }
}

static void a_packet_alone_climbs_a_tree_to_the_nearest_common_ancestor(void **state)
{
    (void)state;
    rg_noc_graph *graph;
    assert_ok(rg_noc_graph_tree(arena, 4, 3, 1, &graph, &err));
    rg_noc_router router = pipelines[0];
    router.routing = RG_NOC_ROUTE_TREE;
    assert_int_equal(graph->routers, 48);
    assert_int_equal(lone_latency(graph, &router, 0, 3, 1), 2 + 4 * 1); /* same leaf */
    assert_int_equal(lone_latency(graph, &router, 0, 4, 1), 2 + 4 * 3); /* one level up */
    assert_int_equal(lone_latency(graph, &router, 0, 63, 1), 2 + 4 * 5);
}

static void a_packet_alone_crosses_every_stage_of_a_fly(void **state)
{
    (void)state;
    rg_noc_graph *graph;
    assert_ok(rg_noc_graph_fly(arena, 3, 3, 1, &graph, &err));
    for (int a = 0; a < 27; a += 5)
        for (int b = 0; b < 27; b++)
            assert_int_equal(lone_latency(graph, &pipelines[0], a, b, 1), 2 + 4 * 3);
}

/* Credit loop of the first pipeline: 6 cycles; 4 slots let 4 flits through in 6 cycles. */
static void a_short_buffer_stalls_a_long_packet(void **state)
{
    (void)state;
    const rg_noc_graph *graph = cube(RG_NOC_MESH, 4, 2, 1);
    rg_noc_router router = pipelines[0];
    router.buffer = 4;
    const int one = lone_latency(graph, &router, 0, 15, 1);
    const int many = lone_latency(graph, &router, 0, 15, 401);
    assert_true(many - one >= 400 * 6 / 4 && many - one <= 400 * 6 / 4 + 3);
}

/* The closed form follows the flits through the credit loops; the simulation must agree exactly. */
static void closed_form_and_simulation_agree_on_lone_packets(void **state)
{
    (void)state;
    static const int lengths[] = {1, 3, 8, 17, 40};
    for (int p = 0; p < PIPELINES; p++)
        for (int buffer = 2; buffer <= 12; buffer += 5)
            for (int l = 0; l < 5; l++) {
                rg_noc_graph *graph = cube(RG_NOC_MESH, 3, 2, 1 + p % 3);
                rg_noc_router router = pipelines[p];
                rg_noc_pattern *pattern;
                rg_noc_closed closed;
                router.buffer = buffer;
                assert_ok(
                    rg_noc_pattern_parse(arena, "hotspot(7)", graph, RG_NOWHERE, &pattern, &err));
                double only[9] = {0};
                only[0] = 1.0;
                const rg_noc_class traffic = {.pattern = pattern,
                                              .packets_per_cycle = 1,
                                              .node_factor = only,
                                              .flits = lengths[l],
                                              .vc_count = router.vcs};
                assert_ok(rg_noc_closed_form(arena, graph, &router, &traffic, 1, &closed, &err));
                assert_close(closed.zero_load_latency,
                             lone_latency(graph, &router, 0, 7, lengths[l]), 1e-12);
            }
}

/* Back-to-back one-flit packets on one VC: a new head waits for the cycle after the tail before it.
 */
static void packets_in_one_vc_leave_some_cycles_apart(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    const rg_noc_graph *graph = cube(RG_NOC_MESH, 4, 2, 1);
    static rg_noc_send sends[COUNT];
    for (int i = 0; i < COUNT; i++)
        sends[i] = (rg_noc_send){.source = 0, .destination = 3, .flits = 1};
    for (int rd = 0; rd <= 1; rd++) {
        rg_noc_router router = pipelines[0];
        router.vcs = 1;
        router.routing_delay = rd;
        const rg_noc_config config = {.graph = graph,
                                      .router = router,
                                      .class_count = 1,
                                      .classes = {{.vc_count = 1}},
                                      .sends = sends,
                                      .send_count = COUNT,
                                      .max_packet = 8};
        rg_noc_result result;
        uint64_t makespan;
        assert_ok(rg_noc_run_trace(arena, &config, false, &makespan, NULL, NULL, &result, &err));
        const int first = 3 + 4 * per_hop(&router) + 3;
        assert_int_equal((int)makespan, first + (COUNT - 1) * (2 + rd));
    }
}

static rg_noc_class uniform_traffic(const rg_noc_graph *graph, double flits_per_cycle, int flits,
                                    int vcs)
{
    rg_noc_pattern *pattern;
    assert_ok(rg_noc_pattern_parse(arena, "uniform", graph, RG_NOWHERE, &pattern, &err));
    return (rg_noc_class){.pattern = pattern,
                          .packets_per_cycle = flits_per_cycle / flits,
                          .flits = flits,
                          .vc_count = vcs};
}

/* Every allocator, routing and pipeline at a load past saturation, checked at every cycle. */
static void flits_and_credits_are_conserved_at_every_cycle(void **state)
{
    (void)state;
    rg_noc_graph *graphs[] = {cube(RG_NOC_MESH, 4, 2, 1), cube(RG_NOC_TORUS, 4, 2, 2),
                              cube(RG_NOC_MESH, 3, 3, 1)};
    static const rg_noc_routing routings[3][3] = {
        {RG_NOC_ROUTE_TABLE, RG_NOC_ROUTE_ADAPTIVE, RG_NOC_ROUTE_VALIANT},
        {RG_NOC_ROUTE_TORUS, RG_NOC_ROUTE_VALIANT, RG_NOC_ROUTE_TORUS},
        {RG_NOC_ROUTE_TABLE, RG_NOC_ROUTE_ADAPTIVE, RG_NOC_ROUTE_VALIANT}};
    for (int g = 0; g < 3; g++)
        for (int k = 0; k < 3; k++)
            for (int a = 0; a < 4; a++)
                for (int p = 0; p < PIPELINES; p++) {
                    rg_noc_sim *sim;
                    rg_noc_config config = {
                        .graph = graphs[g], .router = pipelines[p], .class_count = 1, .seed = 3};
                    config.router.vcs = 4;
                    config.router.buffer = 3;
                    config.router.routing = routings[g][k];
                    config.router.vc_allocator = config.router.switch_allocator =
                        (rg_noc_allocator)a;
                    /* A VC that two packets share in a row makes adaptive routing deadlock. */
                    config.router.wait_for_tail_credit =
                        p == 3 || routings[g][k] == RG_NOC_ROUTE_ADAPTIVE;
                    config.router.iterations = 1 + k;
                    config.classes[0] = uniform_traffic(graphs[g], 0.9, 1 + k, 4);
                    assert_ok(rg_noc_sim_new(arena, &config, &sim, &err));
                    for (int cycle = 0; cycle < 250; cycle++) {
                        rg_noc_sim_step(sim, 1);
                        assert_ok(rg_noc_sim_check(sim, &err));
                    }
                    assert_true(rg_noc_sim_flit_hops(sim) > 250);
                    rg_noc_sim_step(sim, 2000);
                    assert_int_equal(rg_noc_sim_deadlocked(sim), 0);
                    rg_arena_reset(arena);
                    graphs[0] = cube(RG_NOC_MESH, 4, 2, 1);
                    graphs[1] = cube(RG_NOC_TORUS, 4, 2, 2);
                    graphs[2] = cube(RG_NOC_MESH, 3, 3, 1);
                }
}

/* A ring of five routers with one VC and nothing that breaks the cycle of channels. */
static const char plain_ring[] = "router 0 node 0 router 1\nrouter 1 node 1 router 2\n"
                                 "router 2 node 2 router 3\nrouter 3 node 3 router 4\n"
                                 "router 4 node 4 router 0\n";

static void a_ring_without_a_dateline_deadlocks_and_says_so(void **state)
{
    (void)state;
    rg_noc_graph *graph;
    rg_noc_pattern *pattern;
    rg_noc_result result;
    assert_ok(rg_noc_anynet_parse(arena, "ring", plain_ring, strlen(plain_ring), &graph, &err));
    rg_noc_config config = {.graph = graph, .router = pipelines[0], .class_count = 1, .seed = 1};
    config.router.vcs = 1;
    config.router.buffer = 2;
    /* All five start in cycle 0, two hops each: every link is held by who wants the next one. */
    assert_ok(rg_noc_pattern_parse(arena, "tornado", graph, RG_NOWHERE, &pattern, &err));
    config.classes[0] =
        (rg_noc_class){.pattern = pattern, .packets_per_cycle = 1.0, .flits = 9, .vc_count = 1};
    const rg_noc_protocol protocol = RG_NOC_PROTOCOL_DEFAULT;
    assert_ok(rg_noc_run(arena, &config, &protocol, false, &result, &err));
    assert_true(result.deadlocked);
    assert_true(result.saturated);
    assert_true(isnan(result.packet_latency.mean));
    rg_noc_send sends[100];
    for (int i = 0; i < 100; i++)
        sends[i] = (rg_noc_send){.source = i % 5, .destination = (i + 2) % 5, .flits = 9};
    config.sends = sends;
    config.send_count = 100;
    config.max_packet = 9;
    uint64_t makespan;
    assert_int_equal(rg_noc_run_trace(arena, &config, false, &makespan, NULL, NULL, &result, &err),
                     RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "deadlock"));
}

static void datelines_keep_a_torus_free_of_deadlock_past_saturation(void **state)
{
    (void)state;
    rg_noc_graph *graph = cube(RG_NOC_TORUS, 5, 2, 1);
    rg_noc_pattern *pattern;
    rg_noc_result result;
    rg_noc_config config = {.graph = graph, .router = pipelines[0], .class_count = 1, .seed = 1};
    config.router.vcs = 2;
    config.router.buffer = 2;
    config.router.routing = RG_NOC_ROUTE_TORUS;
    assert_ok(rg_noc_pattern_parse(arena, "tornado", graph, RG_NOWHERE, &pattern, &err));
    config.classes[0] =
        (rg_noc_class){.pattern = pattern, .packets_per_cycle = 0.2, .flits = 5, .vc_count = 2};
    const rg_noc_protocol protocol = RG_NOC_PROTOCOL_DEFAULT;
    assert_ok(rg_noc_run(arena, &config, &protocol, false, &result, &err));
    assert_false(result.deadlocked);
    assert_true(result.saturated);
    assert_true(result.accepted > 0.05);
}

static void the_same_seed_gives_the_same_figures(void **state)
{
    (void)state;
    rg_noc_graph *graph = cube(RG_NOC_MESH, 4, 2, 1);
    rg_noc_config config = {.graph = graph, .router = pipelines[0], .class_count = 1, .seed = 5};
    config.classes[0] = uniform_traffic(graph, 0.3, 2, 4);
    rg_noc_protocol protocol = RG_NOC_PROTOCOL_DEFAULT;
    protocol.sample_period = 200;
    rg_noc_result a, b;
    assert_ok(rg_noc_run_seeds(arena, &config, &protocol, 4, false, &a, &err));
    assert_ok(rg_noc_run_seeds(arena, &config, &protocol, 4, false, &b, &err));
    assert_true(a.packet_latency.mean == b.packet_latency.mean && a.accepted == b.accepted);
    config.seed = 6;
    assert_ok(rg_noc_run_seeds(arena, &config, &protocol, 4, false, &b, &err));
    assert_true(a.packet_latency.mean != b.packet_latency.mean);
}

/* Little's law in every window: flits in the links and buffers = rate x time. Here as its special
 * case: what goes in comes out, and the links carry accepted x hops. */
static void links_carry_what_is_accepted_times_the_hops(void **state)
{
    (void)state;
    rg_noc_graph *graph = cube(RG_NOC_MESH, 6, 2, 1);
    rg_noc_config config = {.graph = graph, .router = pipelines[0], .class_count = 1, .seed = 5};
    config.classes[0] = uniform_traffic(graph, 0.2, 1, 4);
    rg_noc_protocol protocol = RG_NOC_PROTOCOL_DEFAULT;
    protocol.sample_period = 5000;
    rg_noc_result r;
    assert_ok(rg_noc_run(arena, &config, &protocol, true, &r, &err));
    double sum = 0.0;
    for (int o = 0; o < graph->outputs; o++)
        sum += r.link_load[o];
    assert_close(sum, r.accepted * 36 * r.hops, 0.01); /* edges of the window: 30 of 15000 cycles */
    assert_close(r.accepted, 0.2, 0.02);
    assert_close(r.hops, 1 + 2 * 35.0 / 18.0, 0.01); /* 1 + 2 (k - 1/k) / 3 */
}

static void half_wide_links_halve_what_gets_through(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    static rg_noc_send sends[COUNT];
    uint64_t makespan[2];
    for (int i = 0; i < COUNT; i++)
        sends[i] = (rg_noc_send){.source = 0, .destination = 1, .flits = 4};
    for (int period = 1; period <= 2; period++) {
        rg_noc_builder *b = rg_noc_builder_new(arena, 2, 2, &err);
        rg_noc_graph *graph;
        for (int n = 0; n < 2; n++) {
            assert_ok(rg_noc_builder_add(b, (rg_noc_channel){-1, n, n, 1, 1, 1}, 0, 0, &err));
            assert_ok(rg_noc_builder_add(b, (rg_noc_channel){n, -1, n, 1, 1, 1}, 0, 0, &err));
            assert_ok(
                rg_noc_builder_add(b, (rg_noc_channel){n, 1 - n, -1, 1, 1, period}, 1, 1, &err));
        }
        assert_ok(rg_noc_builder_finish(b, &graph, &err));
        const rg_noc_config config = {.graph = graph,
                                      .router = pipelines[0],
                                      .class_count = 1,
                                      .classes = {{.vc_count = 4}},
                                      .sends = sends,
                                      .send_count = COUNT,
                                      .max_packet = 4,
                                      .check = true};
        rg_noc_result result;
        assert_ok(rg_noc_run_trace(arena, &config, false, &makespan[period - 1], NULL, NULL,
                                   &result, &err));
    }
    assert_close((double)makespan[0], 4 * COUNT, 0.02);
    assert_close((double)makespan[1], 8 * COUNT, 0.02);
}

static void messages_wait_for_what_they_come_after(void **state)
{
    (void)state;
    rg_noc_graph *graph = cube(RG_NOC_MESH, 4, 2, 1);
    const rg_noc_send sends[] = {{.source = 0, .destination = 15, .flits = 20},
                                 {.source = 15, .destination = 0, .flits = 1, .cycle = 3},
                                 {.source = 3, .destination = 4, .flits = 1, .cycle = 100000}};
    const rg_noc_order orders[] = {{.before = 0, .after = 1, .delay = 9}};
    rg_noc_config config = {.graph = graph,
                            .router = pipelines[0],
                            .class_count = 1,
                            .classes = {{.vc_count = 4}},
                            .sends = sends,
                            .send_count = 3,
                            .orders = orders,
                            .order_count = 1,
                            .max_packet = 8};
    uint64_t makespan, start[3], finish[3];
    rg_noc_result result;
    assert_ok(rg_noc_run_trace(arena, &config, false, &makespan, start, finish, &result, &err));
    assert_int_equal(start[1], finish[0] + 9);
    assert_int_equal(finish[1], start[1] + 2 + 4 * 7);
    assert_int_equal(finish[2], 100000 + 2 + 4 * 5);
    assert_int_equal(makespan, finish[2]);
    const rg_noc_order circle[] = {{.before = 0, .after = 1}, {.before = 1, .after = 0}};
    config.orders = circle;
    config.order_count = 2;
    assert_int_equal(rg_noc_run_trace(arena, &config, false, &makespan, NULL, NULL, &result, &err),
                     RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "circle"));
}

static void impossible_routers_are_refused_by_name(void **state)
{
    (void)state;
    rg_noc_graph *graph = cube(RG_NOC_TORUS, 4, 2, 1);
    rg_noc_sim *sim;
    rg_noc_config config = {.graph = graph, .router = pipelines[0], .class_count = 1};
    config.classes[0] = uniform_traffic(graph, 0.1, 1, 4);
    assert_int_equal(rg_noc_sim_new(arena, &config, &sim, &err), RG_ERR_MODEL); /* table */
    assert_non_null(strstr(err.text, "routing 'table'"));
    config.router.routing = RG_NOC_ROUTE_TORUS;
    config.classes[0].vc_count = 1;
    assert_int_equal(rg_noc_sim_new(arena, &config, &sim, &err), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "free of deadlock"));
    config.classes[0].vc_count = 4;
    config.classes[0].packets_per_cycle = 1.5;
    assert_int_equal(rg_noc_sim_new(arena, &config, &sim, &err), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "at most one a cycle"));
    config.router.vcs = 33;
    assert_int_equal(rg_noc_sim_new(arena, &config, &sim, &err), RG_ERR_MODEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(a_packet_alone_takes_the_formula_on_a_mesh),
        T(a_packet_alone_takes_the_shorter_way_round_a_ring),
        T(a_packet_alone_climbs_a_tree_to_the_nearest_common_ancestor),
        T(a_packet_alone_crosses_every_stage_of_a_fly),
        T(a_short_buffer_stalls_a_long_packet),
        T(closed_form_and_simulation_agree_on_lone_packets),
        T(packets_in_one_vc_leave_some_cycles_apart),
        T(flits_and_credits_are_conserved_at_every_cycle),
        T(a_ring_without_a_dateline_deadlocks_and_says_so),
        T(datelines_keep_a_torus_free_of_deadlock_past_saturation),
        T(the_same_seed_gives_the_same_figures),
        T(links_carry_what_is_accepted_times_the_hops),
        T(half_wide_links_halve_what_gets_through),
        T(messages_wait_for_what_they_come_after),
        T(impossible_routers_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

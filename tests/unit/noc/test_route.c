/* Routing functions, deadlock among them, and packets drawn in lockstep with BookSim. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>

#include "noc/design.h"
#include "noc/knuth.h"
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

static rg_noc_config traffic_on(const char *network, const char *traffic, rg_noc_routing routing,
                                double flits_per_cycle, int flits)
{
    rg_noc_design *design;
    rg_noc_pattern *pattern;
    assert_ok(rg_noc_design_load(arena, network, &design, &err));
    assert_ok(rg_noc_pattern_parse(arena, traffic, design->graph, RG_NOWHERE, &pattern, &err));
    rg_noc_config config = {
        .graph = design->graph, .router = design->router, .class_count = 1, .seed = 1};
    config.router.routing = routing;
    config.router.wait_for_tail_credit = routing == RG_NOC_ROUTE_ADAPTIVE;
    config.classes[0] = (rg_noc_class){.pattern = pattern,
                                       .packets_per_cycle = flits_per_cycle / flits,
                                       .flits = flits,
                                       .vc_count = config.router.vcs};
    return config;
}

static rg_noc_result run(const rg_noc_config *config)
{
    rg_noc_result result;
    const rg_noc_protocol protocol = RG_NOC_PROTOCOL_DEFAULT;
    assert_ok(rg_noc_run(arena, config, &protocol, false, &result, &err));
    return result;
}

/* The check values of Knuth's own main programs: number 1009 * 2009 + 1 of the raw sequence, which
 * is number 100 * 2009 + 1 of those that are used. */
static void the_generators_are_knuths(void **state)
{
    (void)state;
    static rg_knuth knuth;
    uint32_t whole = 0;
    double real = 0.0;
    rg_knuth_seed(&knuth, 310952);
    for (int i = 0; i <= 100 * 2009; i++) {
        whole = rg_knuth_whole(&knuth);
        real = rg_knuth_real(&knuth);
    }
    assert_int_equal(whole, 995235265);
    assert_close(real, 0.36410514377569680455, 1e-16);
}

static const struct {
    const char *network;
    rg_noc_routing routing, plain; /* plain: of the shortest ways */
    int vcs;                       /* at least */
} minimal[] = {{"mesh:5x4", RG_NOC_ROUTE_ADAPTIVE, RG_NOC_ROUTE_TABLE, 2},
               {"mesh:5x4", RG_NOC_ROUTE_ROMM, RG_NOC_ROUTE_TABLE, 2},
               {"mesh:3x3x3", RG_NOC_ROUTE_XY_YX, RG_NOC_ROUTE_TABLE, 2},
               {"mesh:5x4", RG_NOC_ROUTE_ADAPTIVE_XY_YX, RG_NOC_ROUTE_TABLE, 2},
               {"torus:5x4", RG_NOC_ROUTE_ADAPTIVE, RG_NOC_ROUTE_TORUS, 3},
               {"tree:3,3", RG_NOC_ROUTE_TREE_ADAPTIVE, RG_NOC_ROUTE_TREE, 1}};
enum { MINIMAL = sizeof minimal / sizeof minimal[0] };

static void minimal_routings_take_as_long_as_the_plain_one_when_alone(void **state)
{
    (void)state;
    for (int i = 0; i < MINIMAL; i++) {
        rg_noc_config config = traffic_on(minimal[i].network, "uniform", minimal[i].plain, 0.1, 1);
        const int nodes = config.graph->nodes;
        for (int to = 0; to < nodes; to++) {
            const rg_noc_send send = {.source = nodes / 3, .destination = to, .flits = 3};
            rg_noc_config alone = config;
            rg_noc_result result;
            uint64_t makespan[2];
            alone.sends = &send;
            alone.send_count = 1;
            alone.max_packet = 8;
            for (int k = 0; k < 2; k++) {
                alone.router.routing = k == 0 ? minimal[i].plain : minimal[i].routing;
                assert_ok(rg_noc_run_trace(arena, &alone, false, &makespan[k], NULL, NULL, &result,
                                           &err));
            }
            assert_int_equal(makespan[0], makespan[1]);
        }
    }
}

static void every_routing_conserves_flits_past_saturation(void **state)
{
    (void)state;
    for (int i = 0; i < MINIMAL; i++)
        for (int a = 0; a < 4; a++)
            for (int delay = 0; delay < 2; delay++) {
                rg_noc_sim *sim;
                rg_noc_config config =
                    traffic_on(minimal[i].network, "uniform", minimal[i].routing, 0.9, 1 + a);
                config.router.buffer = 3;
                config.router.routing_delay = delay;
                config.router.vc_allocator = config.router.switch_allocator = (rg_noc_allocator)a;
                assert_ok(rg_noc_sim_new(arena, &config, &sim, &err));
                for (int cycle = 0; cycle < 200; cycle++) {
                    rg_noc_sim_step(sim, 1);
                    assert_ok(rg_noc_sim_check(sim, &err));
                }
                rg_noc_sim_step(sim, 3000);
                assert_int_equal(rg_noc_sim_deadlocked(sim), 0);
                rg_arena_reset(arena);
            }
}

static void too_few_virtual_channels_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < MINIMAL; i++) {
        rg_noc_sim *sim;
        rg_noc_config config =
            traffic_on(minimal[i].network, "uniform", minimal[i].routing, 0.1, 1);
        config.router.vcs = config.classes[0].vc_count = minimal[i].vcs;
        assert_ok(rg_noc_sim_new(arena, &config, &sim, &err));
        config.router.vcs = config.classes[0].vc_count = minimal[i].vcs - 1;
        assert_int_equal(rg_noc_sim_new(arena, &config, &sim, &err), RG_ERR_MODEL);
    }
}

/* Dimension order sends all of transpose over few links: at most 1/7 of a flit on the diagonal's
 * neighbours of 8 x 8. Two orders halve that. */
static void two_orders_carry_more_of_a_transpose(void **state)
{
    (void)state;
    const rg_noc_config plain = traffic_on("mesh:8x8", "transpose", RG_NOC_ROUTE_TABLE, 0.24, 1);
    const rg_noc_config coin = traffic_on("mesh:8x8", "transpose", RG_NOC_ROUTE_XY_YX, 0.24, 1);
    const rg_noc_config choice =
        traffic_on("mesh:8x8", "transpose", RG_NOC_ROUTE_ADAPTIVE_XY_YX, 0.24, 1);
    assert_true(run(&plain).saturated);
    assert_false(run(&coin).saturated);
    assert_false(run(&choice).saturated);
}

/* Without waiting for the tail's credit two packets share a VC, and the escape is no escape. */
static void adaptive_packets_that_share_a_channel_deadlock_and_say_so(void **state)
{
    (void)state;
    rg_noc_config config = traffic_on("mesh:8x8", "uniform", RG_NOC_ROUTE_ADAPTIVE, 0.9, 1);
    config.router.wait_for_tail_credit = false;
    config.router.vcs = config.classes[0].vc_count = 4;
    config.router.buffer = 4;
    const rg_noc_result result = run(&config);
    assert_true(result.deadlocked);
    assert_true(isnan(result.packet_latency.mean));
}

/* In lockstep the packets depend on the seed alone, so wider routers see the same ones. */
static void lockstep_packets_do_not_depend_on_the_routers(void **state)
{
    (void)state;
    rg_noc_config config = traffic_on("mesh:8x8", "uniform", RG_NOC_ROUTE_TABLE, 0.1, 1);
    config.lockstep = true;
    const rg_noc_result narrow = run(&config);
    config.router.vcs = config.classes[0].vc_count = 8;
    const rg_noc_result wide = run(&config);
    assert_int_equal(narrow.packet_latency.count, wide.packet_latency.count);
    assert_close(narrow.hops, wide.hops, 1e-12);
    config.seed = 2;
    assert_true(run(&config).hops != wide.hops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(the_generators_are_knuths),
        T(minimal_routings_take_as_long_as_the_plain_one_when_alone),
        T(every_routing_conserves_flits_past_saturation),
        T(too_few_virtual_channels_are_refused),
        T(two_orders_carry_more_of_a_transpose),
        T(adaptive_packets_that_share_a_channel_deadlock_and_say_so),
        T(lockstep_packets_do_not_depend_on_the_routers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Channel loads, bounds and bandwidths by hand; patterns. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "noc/closed.h"
#include "noc/sweep.h"

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

static rg_noc_closed closed_of(const char *network, const char *traffic, int flits,
                               rg_noc_design **design)
{
    rg_noc_pattern *pattern;
    rg_noc_closed closed;
    assert_ok(rg_noc_design_load(arena, network, design, &err));
    assert_ok(rg_noc_pattern_parse(arena, traffic, (*design)->graph, RG_NOWHERE, &pattern, &err));
    const rg_noc_class cl = {
        .pattern = pattern, .packets_per_cycle = 1, .flits = flits, .vc_count = 4};
    assert_ok(
        rg_noc_closed_form(arena, (*design)->graph, &(*design)->router, &cl, 1, &closed, &err));
    return closed;
}

/* Half of the traffic of half of a row crosses its middle link: k/2 . 1/2 = k/4 per direction. */
static void a_mesh_is_bound_by_its_middle_links(void **state)
{
    (void)state;
    rg_noc_design *d;
    for (int k = 4; k <= 12; k += 4) {
        char name[32];
        snprintf(name, sizeof name, "mesh:%dx%d", k, k);
        const rg_noc_closed c = closed_of(name, "uniform", 1, &d);
        assert_close(c.bound, 4.0 / k, 1e-9);
        assert_close(c.cut_bound, 4.0 / k, 1e-9);
        assert_close(c.hops, 1.0 + 2.0 * (k - 1.0 / k) / 3.0, 1e-9);
        assert_close(c.zero_load_latency, 2.0 + 4.0 * c.hops, 1e-9);
        assert_close(c.zero_load_least, 6.0, 1e-12);
    }
}

/* Mean distance k/4 per dimension over two links per router and dimension: k/8. */
static void a_torus_carries_twice_as_much(void **state)
{
    (void)state;
    rg_noc_design *d;
    const rg_noc_closed c = closed_of("torus:8x8", "uniform", 1, &d);
    assert_close(c.bound, 1.0, 1e-9);
    assert_close(c.hops, 1.0 + 2.0 * 2.0, 1e-9);
    assert_close(closed_of("torus:4x4x4", "uniform", 1, &d).bound, 1.0, 1e-9); /* exits bind */
}

/* Under tornado each packet goes ceil(k/2) - 1 = 3 links one way: every + link carries 3. */
static void tornado_loads_one_direction_of_a_ring(void **state)
{
    (void)state;
    rg_noc_design *d;
    const rg_noc_closed c = closed_of("ring:8", "tornado", 1, &d);
    assert_close(c.bound, 1.0 / 3.0, 1e-9);
    assert_close(c.hops, 4.0, 1e-9);
}

/* Dimension order sends a whole row's transpose traffic round one corner: k - 1 packets. */
static void transpose_on_a_mesh_meets_at_a_corner(void **state)
{
    (void)state;
    rg_noc_design *d;
    assert_close(closed_of("mesh:8x8", "transpose", 1, &d).bound, 1.0 / 7.0, 1e-9);
}

static void a_crossbar_and_a_tree_are_bound_by_their_nodes(void **state)
{
    (void)state;
    rg_noc_design *d;
    assert_close(closed_of("crossbar:16", "uniform", 1, &d).bound, 1.0, 1e-9);
    assert_close(closed_of("tree:4,3", "uniform", 1, &d).bound, 1.0, 1e-9);
    assert_close(closed_of("fly:4,3", "bitrev", 1, &d).cut_bound, 1.0, 1.0);
    assert_close(closed_of("crossbar:16", "hotspot(3)", 1, &d).bound, 1.0 / 16.0, 1e-9);
}

/* Valiant turns any pattern into two uniform ones: twice the load of uniform traffic, k/4 each. */
static void valiant_levels_any_pattern(void **state)
{
    (void)state;
    rg_noc_design *d;
    rg_noc_pattern *pattern;
    rg_noc_closed c;
    assert_ok(rg_noc_design_load(arena, "mesh:8x8", &d, &err));
    assert_ok(rg_noc_pattern_parse(arena, "transpose", d->graph, RG_NOWHERE, &pattern, &err));
    const rg_noc_class cl = {.pattern = pattern, .packets_per_cycle = 1, .flits = 1, .vc_count = 4};
    d->router.routing = RG_NOC_ROUTE_VALIANT;
    assert_ok(rg_noc_closed_form(arena, d->graph, &d->router, &cl, 1, &c, &err));
    assert_close(c.bound, 1.0 / (2.0 * 8.0 / 4.0), 1e-9);
    assert_close(c.hops, 2.0 * (1.0 + 2.0 * (8 - 0.125) / 3.0) - 1.0, 1e-9);
}

static void loads_sum_to_hops_in_every_topology(void **state)
{
    (void)state;
    static const char *const networks[] = {"mesh:3x4x5", "torus:5x4", "ring:9",
                                           "fly:3,3",    "tree:2,4",  "crossbar:7"};
    for (int i = 0; i < 6; i++) {
        rg_noc_design *d;
        const rg_noc_closed c = closed_of(networks[i], "uniform", 3, &d);
        double sum = 0.0;
        for (int o = 0; o < d->graph->outputs; o++)
            sum += c.link_load[o];
        assert_close(sum, c.hops * d->graph->nodes, 1e-9);
    }
}

/* Below saturation the simulation must carry the closed form's loads on every link. */
static void simulated_links_carry_the_computed_loads(void **state)
{
    (void)state;
    static const char *const networks[] = {"mesh:4x4", "torus:4x4", "tree:2,3", "fly:2,3"};
    for (int i = 0; i < 4; i++) {
        rg_noc_design *d;
        rg_noc_result r;
        rg_noc_pattern *pattern;
        const rg_noc_closed c = closed_of(networks[i], "uniform", 1, &d);
        assert_ok(rg_noc_pattern_parse(arena, "uniform", d->graph, RG_NOWHERE, &pattern, &err));
        const double load = 0.5 * c.saturation;
        const rg_noc_config config = {
            .graph = d->graph,
            .router = d->router,
            .class_count = 1,
            .classes = {{.pattern = pattern, .packets_per_cycle = load, .flits = 1, .vc_count = 4}},
            .seed = 2};
        rg_noc_protocol protocol = RG_NOC_PROTOCOL_DEFAULT;
        protocol.sample_period = 20000;
        assert_ok(rg_noc_run(arena, &config, &protocol, true, &r, &err));
        for (int o = 0; o < d->graph->outputs; o++) {
            const double want = c.link_load[o] * load;
            /* 60000 cycles: deviation of a count n is about sqrt n; five of them */
            const double most = 5.0 * sqrt(want * 60000.0) / 60000.0;
            assert_true(fabs(r.link_load[o] - want) < most + 1e-9);
        }
        /* and its mean latency at half of saturation within 6 %, as the model leaves room for */
        assert_close(rg_noc_closed_latency(&c, d->graph, load), r.packet_latency.mean, 0.06);
    }
}

static void saturation_is_bracketed_by_bisection(void **state)
{
    (void)state;
    rg_noc_design *d;
    rg_noc_saturation s;
    rg_noc_pattern *pattern;
    const rg_noc_closed c = closed_of("mesh:4x4", "transpose", 1, &d);
    assert_ok(rg_noc_pattern_parse(arena, "transpose", d->graph, RG_NOWHERE, &pattern, &err));
    rg_noc_config config = {.graph = d->graph,
                            .router = d->router,
                            .class_count = 1,
                            .classes = {{.pattern = pattern, .flits = 1, .vc_count = 4}},
                            .seed = 2};
    const rg_noc_protocol protocol = RG_NOC_PROTOCOL_DEFAULT;
    assert_ok(rg_noc_find_saturation(arena, &config, &protocol, 1.0, 0.02, 1, &s, &err));
    /* Three packets meet in the corner link: it is full at 1/3, and a bit more can pass as the
     * nodes on the diagonal go on sending to themselves. */
    assert_close(c.bound, 1.0 / 3.0, 1e-9);
    assert_true(s.stable < c.bound * 1.02);
    assert_true(s.stable > 0.85 * c.bound);
    assert_true(s.unstable - s.stable <= 0.02 * s.unstable);
}

static void bandwidth_between_groups_follows_from_ports_and_clock(void **state)
{
    (void)state;
    static const char text[] = "kind: noc\nname: small\nclock: 1 GHz\nflit: 32 B\n"
                               "topology: graph\nnodes: {sm: 8, slice: 4}\n"
                               "routers: {xbar: 1}\nattach:\n"
                               "  - {nodes: sm, routers: xbar}\n"
                               "  - {nodes: slice, routers: xbar}\nrouter: {vcs: 4}\n";
    char folder[] = "/tmp/ridge-noc-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/small.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    rg_noc_design *d;
    rg_byte_rate bound, sustained;
    rg_seconds round_trip;
    assert_ok(rg_noc_design_load(arena, path, &d, &err));
    unlink(path);
    rmdir(folder);
    assert_ok(rg_noc_group_bandwidth(arena, d, "slice", "sm", &bound, &sustained, &err));
    assert_close(bound.v, 4 * 32e9, 1e-9); /* four slices of a flit a cycle */
    assert_close(sustained.v, 4 * 32e9 * 2.0 / (2.0 + sqrt(0.5)), 1e-9);
    assert_ok(rg_noc_group_bandwidth(arena, d, "sm", "slice", &bound, &sustained, &err));
    assert_close(bound.v, 4 * 32e9, 1e-9);
    assert_ok(rg_noc_group_round_trip(arena, d, "sm", "slice", 5, &round_trip, &err));
    assert_close(round_trip.v, (6 + 10) * 1e-9, 1e-9);
    assert_int_equal(rg_noc_group_bandwidth(arena, d, "cu", "slice", &bound, &sustained, &err),
                     RG_ERR_USAGE);
    assert_non_null(strstr(err.text, "all, sm, slice"));
}

/* Karol, Hluchyj and Morgan 1987, table I: 2 - sqrt 2 for one queue per input. */
static void one_virtual_channel_fills_a_channel_to_the_limit_of_input_queueing(void **state)
{
    (void)state;
    assert_close(rg_noc_channel_efficiency(1), 2.0 - sqrt(2.0), 1e-12);
    assert_true(rg_noc_channel_efficiency(8) > 0.9 && rg_noc_channel_efficiency(8) < 1.0);
}

static void patterns_are_those_of_the_book(void **state)
{
    (void)state;
    rg_noc_design *d;
    rg_noc_pattern *p;
    assert_ok(rg_noc_design_load(arena, "mesh:8x8", &d, &err));
    static const struct {
        const char *name;
        int source, target;
    } cases[] = {{"transpose", 0x0b, 0x19}, {"bitcomp", 0x0b, 0x34},   {"bitrev", 0x0b, 0x34},
                 {"shuffle", 0x2b, 0x17},   {"tornado", 9, 4 + 8 * 4}, {"neighbor", 63, 0},
                 {"hotspot(17)", 5, 17}};
    for (int i = 0; i < 7; i++) {
        assert_ok(rg_noc_pattern_parse(arena, cases[i].name, d->graph, RG_NOWHERE, &p, &err));
        assert_int_equal(rg_noc_pattern_tickets(p), 1);
        assert_int_equal(rg_noc_pattern_pick(p, cases[i].source, 0), cases[i].target);
    }
    int hits[64] = {0};
    assert_ok(
        rg_noc_pattern_parse(arena, "hotspot({{1,2,3},{1,2,5}})", d->graph, RG_NOWHERE, &p, &err));
    for (uint32_t i = 0; i < rg_noc_pattern_tickets(p); i++)
        hits[rg_noc_pattern_pick(p, 0, i)]++;
    assert_int_equal(hits[1], 1);
    assert_int_equal(hits[2], 2);
    assert_int_equal(hits[3], 5);
    double share[64], sum = 0.0;
    rg_noc_pattern_shares(p, 0, share);
    for (int n = 0; n < 64; n++)
        sum += share[n];
    assert_close(sum, 1.0, 1e-12);
    assert_close(share[3], 0.625, 1e-12);
    assert_ok(rg_noc_pattern_parse(arena, "diagonal", d->graph, RG_NOWHERE, &p, &err));
    rg_noc_pattern_shares(p, 63, share);
    assert_close(share[63], 2.0 / 3.0, 1e-12);
    assert_close(share[0], 1.0 / 3.0, 1e-12);
    assert_ok(rg_noc_pattern_parse(arena, "asymmetric", d->graph, RG_NOWHERE, &p, &err));
    rg_noc_pattern_shares(p, 40, share);
    assert_close(share[8], 0.5, 1e-12);
    assert_close(share[40], 0.5, 1e-12);
}

static void unknown_patterns_are_refused_with_the_nearest(void **state)
{
    (void)state;
    rg_noc_design *d;
    rg_noc_pattern *p;
    assert_ok(rg_noc_design_load(arena, "mesh:3x3", &d, &err));
    static const struct {
        const char *text, *message;
    } cases[] = {{"unifrom", "did you mean 'uniform'"},
                 {"transpose", "no power of two"},
                 {"hotspot({{99}})", "outside the network"},
                 {"hotspot({{1,2},{3}})", "not a list"},
                 {"hotspot({{1},{0}})", "sum to '0'"},
                 {"hotspot", "not a list"},
                 {"uniform(3)", "no arguments"}};
    for (int i = 0; i < 7; i++) {
        assert_int_equal(rg_noc_pattern_parse(arena, cases[i].text, d->graph, RG_NOWHERE, &p, &err),
                         RG_ERR_INPUT);
        assert_non_null(strstr(err.text, cases[i].message));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(a_mesh_is_bound_by_its_middle_links),
        T(a_torus_carries_twice_as_much),
        T(tornado_loads_one_direction_of_a_ring),
        T(transpose_on_a_mesh_meets_at_a_corner),
        T(a_crossbar_and_a_tree_are_bound_by_their_nodes),
        T(valiant_levels_any_pattern),
        T(loads_sum_to_hops_in_every_topology),
        T(simulated_links_carry_the_computed_loads),
        T(saturation_is_bracketed_by_bisection),
        T(bandwidth_between_groups_follows_from_ports_and_clock),
        T(one_virtual_channel_fills_a_channel_to_the_limit_of_input_queueing),
        T(patterns_are_those_of_the_book),
        T(unknown_patterns_are_refused_with_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

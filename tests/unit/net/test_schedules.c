/* Who sends to whom: PCIe hops, neighbours, trees and switches that reduce. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "schedule_fixture.h"

static int setup(void **state)
{
    *state = rg_arena_new(256);
    return *state == NULL;
}

static int teardown(void **state)
{
    rg_arena_free(*state);
    return 0;
}

/* A hop is direct as far as devices read each other, staged in host memory beyond. The fixture's
 * tree: ports of 32 GB/s, two devices a switch with an uplink of 30, two sockets joined by 20. */
static void pcie_hops_are_direct_as_far_as_peers_reach(void **state)
{
    rg_cluster pcie = pcie_cluster();
    rg_coll_constants c = rg_coll_constants_of(&pcie);
    rg_coll_query q = {.op = RG_COLL_ALL_REDUCE, .algorithm = RG_ALG_RING, .bytes = RG_B(64e9)};
    /* GB/s to the ring neighbour: behind one switch, behind one CPU, between sockets */
    const double direct = 32 * c.simple_ratio, staged = 30 * c.switch_ratio;
    const double through = 30 * c.simple_ratio * c.peer_ratio;
    const double between = fmin(staged, 20 * c.socket_link_ratio);
    const double hidden = staged * c.socket_ratio / c.socket_crossings;
    const double want[RG_PEER_REACH_COUNT][3] = {
        [RG_PEER_ROOT] = {direct, through, between},
        [RG_PEER_SWITCH] = {direct, staged, hidden},
        [RG_PEER_NONE] = {32 * c.switch_ratio, staged, between},
    };
    c.overlap_power = 1; /* time = latency + wire, so that the rate can be read off */
    c.copy_all_reduce = 0;
    for (int reach = 0; reach < RG_PEER_REACH_COUNT; reach++)
        for (int i = 0; i < 3; i++) {
            rg_coll_context *x;
            rg_coll_result r;
            pcie.scale_up.peer_reach = (rg_peer_reach)reach;
            assert_ok(rg_coll_prepare(*state, &pcie, &c, &x, &err));
            q.ranks = 2 << i;
            q.protocol = RG_PROTO_SIMPLE;
            assert_ok(rg_coll_time(x, &q, &r, &err));
            const double n = (double)q.ranks, sent = 2 * (n - 1) / n * q.bytes.v;
            assert_close(sent / (r.time.v - r.latency.v) / 1e9, want[reach][i], 1e-9);
        }
}

/* Each rank sends to its next one: as many ranks as you like, one buffer through each port. */
static void neighbours_send_side_by_side(void **state)
{
    rg_cluster one = switched_cluster(8, 4), mesh = mesh_cluster(8);
    for (int64_t n = 2; n <= 8; n++) {
        const rg_coll_result r = both(state, &one, RG_COLL_SEND_RECV, RG_ALG_DIRECT, n, 1e9, 1e-9);
        assert_close(r.time.v, 1e-6 + 1e9 / 450e9, 1e-12);
        both(state, &mesh, RG_COLL_SEND_RECV, RG_ALG_DIRECT, n, 1e9, 1e-9);
    }
    rg_coll_context *x;
    rg_coll_result two, eight;
    assert_ok(rg_coll_prepare(*state, &one, NULL, &x, &err));
    rg_coll_query q = {.op = RG_COLL_SEND_RECV, .ranks = 2, .bytes = RG_B(1e8)};
    assert_ok(rg_coll_time(x, &q, &two, &err));
    q.ranks = 8;
    assert_ok(rg_coll_time(x, &q, &eight, &err));
    assert_close(two.time.v, eight.time.v, 1e-12);
}

/* ---- trees ---- */

/* Domains of `per_node` devices under one leaf, so that nothing but ports can be full. */
static rg_cluster under_one_leaf(int64_t per_node, int64_t nodes)
{
    rg_cluster c = switched_cluster(per_node, nodes);
    c.scale_out.devices_per_switch = per_node * nodes;
    return c;
}

static void trees_and_their_closed_form_agree(void **state)
{
    const int64_t widths[] = {1, 3, 8};
    for (int i = 0; i < 3; i++)
        for (int64_t m = 1; m <= 9; m++) {
            const int64_t l = widths[i];
            rg_cluster c = under_one_leaf(l, m);
            if (l * m < 2)
                continue;
            for (double bytes = 1e4; bytes < 1e11; bytes *= 1e3) {
                both(state, &c, RG_COLL_ALL_REDUCE, RG_ALG_TREE, l * m, bytes, 1e-9);
                both(state, &c, RG_COLL_BROADCAST, RG_ALG_TREE, l * m, bytes, 1e-9);
                both(state, &c, RG_COLL_REDUCE, RG_ALG_TREE, l * m, bytes, 1e-9);
            }
        }
}

/* Inner nodes of a tree have a parent and two children there, and are leaves of the other: four
 * edges of half the data each way, so from four domains on twice the data passes each port. */
static void trees_over_many_nodes_pass_the_data_twice(void **state)
{
    const double want[] = {0, 0, 1, 1.5, 2, 2, 2, 2, 2};
    for (int64_t m = 2; m <= 8; m++) {
        rg_cluster c = under_one_leaf(1, m);
        const rg_coll_result r = both(state, &c, RG_COLL_ALL_REDUCE, RG_ALG_TREE, m, 1e12, 1e-9);
        assert_close(r.sent.v, want[m] * 1e12, 1e-12);
        assert_close(r.time.v - r.latency.v, want[m] * 1e12 / 50e9, 1e-12);
    }
}

static void chains_of_broadcast_and_reduce_agree(void **state)
{
    rg_cluster one = switched_cluster(8, 1), thin = under_one_leaf(1, 6);
    for (double bytes = 1e4; bytes < 1e11; bytes *= 1e3)
        for (int64_t n = 2; n <= 6; n++) {
            both(state, &one, RG_COLL_BROADCAST, RG_ALG_RING, n, bytes, 1e-9);
            both(state, &thin, RG_COLL_REDUCE, RG_ALG_RING, n, bytes, 1e-9);
        }
}

/* ---- switches that add ---- */

static void sums_in_the_switch_agree(void **state)
{
    rg_cluster one = switched_cluster(16, 1);
    for (double bytes = 1e4; bytes < 1e11; bytes *= 1e3)
        for (int64_t n = 2; n <= 16; n++) {
            const rg_coll_result r =
                both(state, &one, RG_COLL_ALL_REDUCE, RG_ALG_IN_SWITCH, n, bytes, 1e-9);
            /* read once, its part written once; two ways through the switch */
            assert_close(r.time.v, 2e-6 + bytes * (1 + 1.0 / (double)n) / 450e9, 1e-12);
        }
    for (int sharp = 0; sharp < 2; sharp++)
        for (int64_t m = 2; m <= 6; m++)
            for (double bytes = 1e4; bytes < 1e11; bytes *= 1e3) {
                rg_cluster wide = under_one_leaf(4, m), slow = under_one_leaf(4, m);
                wide.scale_out.in_network_reduction = slow.scale_out.in_network_reduction = sharp;
                slow.scale_out.rate_per_direction = figure(5e9); /* the network decides */
                both(state, &wide, RG_COLL_ALL_REDUCE, RG_ALG_IN_SWITCH, 4 * m, bytes, 1e-9);
                both(state, &slow, RG_COLL_ALL_REDUCE, RG_ALG_IN_SWITCH, 4 * m, bytes, 1e-9);
            }
}

/* Every algorithm that the closed form knows has flows that take as long, on every kind of fabric.
 * Ways are one to several hops, and the closed form counts one: so let bytes decide. */
static void every_algorithm_has_flows_that_agree(void **state)
{
    rg_cluster clusters[] = {switched_cluster(8, 4), mesh_cluster(8), pcie_cluster(),
                             torus_cluster(4, 4, 1)};
    int done = 0;
    for (int c = 0; c < 4; c++) {
        rg_coll_context *x;
        clusters[c].scale_up.latency = clusters[c].scale_out.latency = figure(1e-14);
        assert_ok(rg_coll_prepare(*state, &clusters[c], NULL, &x, &err));
        const int64_t all = clusters[c].devices_per_node * clusters[c].nodes;
        for (int op = 0; op < RG_COLL_OP_COUNT; op++)
            for (int alg = RG_ALG_RING; alg < RG_ALG_COUNT; alg++)
                for (int64_t n = 2; n <= all; n *= 2) {
                    rg_coll_query q = {.op = (rg_coll_op)op,
                                       .algorithm = (rg_coll_algorithm)alg,
                                       .ranks = n,
                                       .bytes = RG_B(1e9),
                                       .library = RG_LIB_IDEAL};
                    rg_coll_result closed, flows;
                    if (rg_coll_time(x, &q, &closed, NULL) != RG_OK)
                        continue; /* does not fit here */
                    err = (rg_err){0};
                    assert_ok(rg_coll_simulate(*state, x, &q, &flows, NULL, &err));
                    assert_close(flows.time.v, closed.time.v, 1e-9);
                    done++;
                }
    }
    assert_true(done > 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pcie_hops_are_direct_as_far_as_peers_reach),
        TEST(neighbours_send_side_by_side),
        TEST(trees_and_their_closed_form_agree),
        TEST(trees_over_many_nodes_pass_the_data_twice),
        TEST(chains_of_broadcast_and_reduce_agree),
        TEST(sums_in_the_switch_agree),
        TEST(every_algorithm_has_flows_that_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

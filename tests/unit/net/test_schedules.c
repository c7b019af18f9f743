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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pcie_hops_are_direct_as_far_as_peers_reach),
        TEST(neighbours_send_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

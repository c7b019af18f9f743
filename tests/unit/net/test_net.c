/* tests/unit/net/test_net.c: graphs, fair shares, and closed forms against their simulation. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <time.h>

#include "schedule_fixture.h"

static int setup(void **state)
{
    *state = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
    return *state == NULL;
}

static int teardown(void **state)
{
    rg_arena_free(*state);
    return 0;
}

/* ---- flows ---- */

static void fair_shares_are_those_of_the_textbook(void **state)
{
    /* Two links in a row, both 1 byte/s. A long flow over both, one flow on the first, two on the
     * second: the second link fills at 1/3 for its three flows; the first link's own flow takes
     * the 2/3 that the long one leaves. */
    const rg_link links[] = {{0, 1, RG_LINK_DIRECT, 1, 0}, {1, 2, RG_LINK_DIRECT, 1, 0}};
    rg_net *net;
    assert_ok(rg_net_from_links(*state, 3, 3, links, 2, &net, &err));
    rg_flow flows[] = {
        {.source = 0, .target = 2, .bytes = 1, .after = {-1, -1}},
        {.source = 0, .target = 1, .bytes = 2, .after = {-1, -1}},
        {.source = 1, .target = 2, .bytes = 1, .after = {-1, -1}},
        {.source = 1, .target = 2, .bytes = 1, .after = {-1, -1}},
    };
    rg_flow_result r;
    assert_ok(rg_flow_run(*state, net, flows, 4, &r, &err));
    assert_close(flows[0].arrive_s, 3, 1e-12);
    assert_close(flows[1].arrive_s, 3, 1e-12);
    assert_close(flows[2].arrive_s, 3, 1e-12);
    assert_close(r.bytes_sent, 5, 1e-12);
    assert_close(r.link_bytes, 6, 1e-12); /* the long one passes two links */
}

static void a_flow_speeds_up_when_another_ends(void **state)
{
    /* One link of 1 byte/s, 1 and 3 bytes: both at 1/2 until t = 2, then the second alone for its
     * last 2 bytes: t = 4. */
    const rg_link links[] = {{0, 1, RG_LINK_DIRECT, 1, 0.5}};
    rg_net *net;
    assert_ok(rg_net_from_links(*state, 2, 2, links, 1, &net, &err));
    rg_flow flows[] = {
        {.source = 0, .target = 1, .bytes = 1, .after = {-1, -1}},
        {.source = 0, .target = 1, .bytes = 3, .after = {-1, -1}},
        {.source = 0, .target = 1, .bytes = 1, .after = {0, 1}, .delay_s = 1},
    };
    rg_flow_result r;
    assert_ok(rg_flow_run(*state, net, flows, 3, &r, &err));
    assert_close(flows[0].arrive_s, 2.5, 1e-12);
    assert_close(flows[1].arrive_s, 4.5, 1e-12);
    assert_close(flows[2].start_s, 5.5, 1e-12);
    assert_close(flows[2].arrive_s, 7.0, 1e-12);
}

static void flows_that_wait_for_each_other_are_refused(void **state)
{
    const rg_link links[] = {{0, 1, RG_LINK_DIRECT, 1, 0}};
    rg_net *net;
    assert_ok(rg_net_from_links(*state, 2, 2, links, 1, &net, &err));
    rg_flow flows[] = {
        {.source = 0, .target = 1, .bytes = 1, .after = {1, -1}},
        {.source = 0, .target = 1, .bytes = 1, .after = {0, -1}},
    };
    rg_flow_result r;
    assert_int_equal(rg_flow_run(*state, net, flows, 2, &r, &err), RG_ERR_MODEL);
    rg_flow back = {.source = 1, .target = 0, .bytes = 1, .after = {-1, -1}};
    assert_int_equal(rg_flow_run(*state, net, &back, 1, &r, &err), RG_ERR_MODEL);
}

/* ---- ways ---- */

/** Links of the way follow each other from source to target. */
static void check_way(const rg_net *net, int32_t from, int32_t to)
{
    int32_t path[RG_NET_MOST_HOPS];
    const int hops = rg_net_path(net, from, to, path);
    assert_true(hops > 0);
    int32_t at = from;
    for (int i = 0; i < hops; i++) {
        assert_int_equal(rg_net_link(net, path[i])->from, at);
        at = rg_net_link(net, path[i])->to;
    }
    assert_int_equal(at, to);
}

static void every_way_is_a_chain_of_links(void **state)
{
    rg_cluster clusters[] = {switched_cluster(8, 5),  pcie_cluster(),
                             torus_cluster(4, 3, 2),  mesh_cluster(8),
                             switched_cluster(4, 16), switched_cluster(2, 32)};
    clusters[4].scale_out.kind = RG_FABRIC_DRAGONFLY;
    clusters[4].scale_out.devices_per_switch = 4; /* a router */
    clusters[4].scale_out.extent[0] = 4;          /* routers of a group */
    clusters[5].scale_out.rail_optimised = false;
    clusters[5].scale_out.devices_per_switch = 8;
    for (size_t c = 0; c < sizeof clusters / sizeof clusters[0]; c++) {
        rg_net *net;
        assert_ok(rg_net_build(*state, &clusters[c], 0, &net, &err));
        const int32_t n = rg_net_devices(net);
        for (int32_t i = 0; i < n; i++)
            for (int32_t j = 0; j < n; j++)
                if (i != j)
                    check_way(net, i, j);
    }
}

static void torus_ways_are_shortest(void **state)
{
    rg_cluster cluster = torus_cluster(4, 4, 4);
    rg_net *net;
    int32_t path[RG_NET_MOST_HOPS];
    assert_ok(rg_net_build(*state, &cluster, 0, &net, &err));
    assert_int_equal(rg_net_path(net, 0, 3, path), 1);          /* round the back */
    assert_int_equal(rg_net_path(net, 0, 2, path), 2);          /* half way */
    assert_int_equal(rg_net_path(net, 0, 2 + 8 + 32, path), 6); /* the farthest corner */
}

static void a_torus_whose_extents_do_not_multiply_is_refused(void **state)
{
    rg_cluster cluster = torus_cluster(4, 4, 1);
    cluster.scale_up.extent[1] = 3;
    rg_net *net;
    assert_int_equal(rg_net_build(*state, &cluster, 0, &net, &err), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "multiply to 12"));
    cluster.scale_up.dimensions = 0;
    err = (rg_err){0};
    assert_int_equal(rg_net_build(*state, &cluster, 0, &net, &err), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "0 dimensions"));
    cluster = switched_cluster(8, 1);
    err = (rg_err){0};
    assert_int_equal(rg_net_build(*state, &cluster, 9, &net, &err), RG_ERR_MODEL);
}

/* ---- closed forms ---- */

static void ring_and_its_closed_form_agree(void **state)
{
    rg_cluster cluster = switched_cluster(16, 1);
    for (int64_t n = 2; n <= 16; n++)
        for (double bytes = 1e3; bytes < 1e10; bytes *= 77) {
            const rg_coll_result r =
                both(state, &cluster, RG_COLL_ALL_REDUCE, RG_ALG_RING, n, bytes, 1e-9);
            /* 2 (n-1) (a + m / (n B)) by hand */
            assert_close(r.time.v, 2.0 * (double)(n - 1) * (1e-6 + bytes / ((double)n * 450e9)),
                         1e-12);
            both(state, &cluster, RG_COLL_ALL_GATHER, RG_ALG_RING, n, bytes, 1e-9);
            both(state, &cluster, RG_COLL_REDUCE_SCATTER, RG_ALG_RING, n, bytes, 1e-9);
        }
}

static void other_algorithms_and_their_closed_forms_agree(void **state)
{
    rg_cluster one = switched_cluster(8, 1), mesh = mesh_cluster(8);
    for (double bytes = 1e4; bytes < 1e10; bytes *= 300) {
        both(state, &one, RG_COLL_ALL_REDUCE, RG_ALG_HALVING_DOUBLING, 8, bytes, 1e-9);
        both(state, &one, RG_COLL_ALL_GATHER, RG_ALG_HALVING_DOUBLING, 4, bytes, 1e-9);
        both(state, &one, RG_COLL_ALL_REDUCE, RG_ALG_ONE_SHOT, 8, bytes, 1e-9);
        both(state, &one, RG_COLL_ALL_REDUCE, RG_ALG_TWO_SHOT, 6, bytes, 1e-9);
        both(state, &one, RG_COLL_ALL_TO_ALL, RG_ALG_DIRECT, 7, bytes, 1e-9);
        both(state, &one, RG_COLL_SEND_RECV, RG_ALG_DIRECT, 2, bytes, 1e-9);
        both(state, &mesh, RG_COLL_ALL_TO_ALL, RG_ALG_DIRECT, 8, bytes, 1e-9);
        both(state, &mesh, RG_COLL_ALL_REDUCE, RG_ALG_RING, 8, bytes, 1e-9);
        both(state, &mesh, RG_COLL_ALL_GATHER, RG_ALG_RING, 5, bytes, 1e-9);
        both(state, &mesh, RG_COLL_ALL_REDUCE, RG_ALG_TWO_SHOT, 5, bytes, 1e-9);
    }
}

static void shared_uplinks_slow_the_closed_form_as_the_simulation(void **state)
{
    rg_cluster pcie = pcie_cluster();
    /* latencies differ by the way (1 to 2.5 hops), so let bytes decide */
    pcie.scale_up.latency = figure(1e-12);
    const int64_t ranks[] = {2, 4, 8};
    for (int i = 0; i < 3; i++) {
        both(state, &pcie, RG_COLL_ALL_TO_ALL, RG_ALG_DIRECT, ranks[i], 1e9, 1e-9);
        both(state, &pcie, RG_COLL_ALL_REDUCE, RG_ALG_ONE_SHOT, ranks[i], 1e9, 1e-9);
        both(state, &pcie, RG_COLL_ALL_REDUCE, RG_ALG_RING, ranks[i], 1e9, 1e-9);
    }
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, &pcie, NULL, &x, &err));
    rg_coll_query q = {
        .op = RG_COLL_ALL_TO_ALL, .ranks = 8, .bytes = RG_B(1e9), .library = RG_LIB_IDEAL};
    rg_coll_result r;
    /* four devices of a socket send half of their gigabyte over the 20 GB/s between sockets */
    assert_ok(rg_coll_time(x, &q, &r, &err));
    assert_close(r.time.v, 4 * 0.5e9 / 20e9, 1e-9);
    assert_int_equal(r.limit, RG_LIMIT_SOCKET);
}

static void torus_rings_use_all_cables(void **state)
{
    rg_cluster cube = torus_cluster(4, 4, 4), flat = torus_cluster(8, 4, 1);
    both(state, &cube, RG_COLL_ALL_REDUCE, RG_ALG_TORUS, 64, 1e9, 1e-9);
    both(state, &cube, RG_COLL_REDUCE_SCATTER, RG_ALG_TORUS, 64, 1e6, 1e-9);
    both(state, &flat, RG_COLL_ALL_GATHER, RG_ALG_TORUS, 32, 1e8, 1e-9);
    const rg_coll_result r = both(state, &cube, RG_COLL_ALL_REDUCE, RG_ALG_TORUS, 64, 64e9, 1e-9);
    /* all six cables busy all the time: 2 (63/64) S / 300 GB/s, and 2 x 3 x 3 steps of 1 us */
    assert_close(r.time.v, 2 * 63e9 / 300e9 + 18e-6, 1e-9);
    /* all-to-all: the mean way in a ring of 4 is 1 hop over its two cables, so each cable passes
     * half of a rank's bytes for each dimension: S / 2 over a cable of 50 GB/s */
    const rg_coll_result a = both(state, &cube, RG_COLL_ALL_TO_ALL, RG_ALG_DIRECT, 64, 1e15, 1e-9);
    assert_close(a.time.v, 0.5e15 / 50e9, 1e-9);
}

static void domains_are_joined_rail_by_rail(void **state)
{
    rg_cluster cluster = switched_cluster(8, 16);
    const rg_coll_result h =
        both(state, &cluster, RG_COLL_ALL_REDUCE, RG_ALG_HIERARCHICAL, 128, 1e9, 1e-6);
    /* within: 2 x 7/8 at 450 GB/s; between: 2 x 15/16 of an eighth at 50 GB/s */
    assert_close(h.time.v,
                 2 * 7 * 1e-6 + 2 * 15 * 4e-6 + 2 * 7.0 / 8 * 1e9 / 450e9 +
                     2 * 15.0 / 16 * 0.125e9 / 50e9,
                 1e-9);
    /* rail rings carry 8 x 50 = 400 GB/s between nodes; steps are lock-stepped in the simulation,
     * so only the transfer part is compared */
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, &cluster, NULL, &x, &err));
    rg_coll_query q = {.op = RG_COLL_ALL_REDUCE,
                       .algorithm = RG_ALG_RING,
                       .ranks = 128,
                       .bytes = RG_B(1e13),
                       .library = RG_LIB_IDEAL};
    rg_coll_result closed, simulated;
    assert_ok(rg_coll_time(x, &q, &closed, &err));
    assert_ok(rg_coll_simulate(*state, x, &q, &simulated, NULL, &err));
    assert_close(closed.time.v, 2 * 127.0 / 128 * 1e13 / 400e9, 1e-4);
    assert_close(simulated.time.v, closed.time.v, 1e-4);
    assert_int_equal(closed.limit, RG_LIMIT_NETWORK);
}

static void closed_forms_hold_on_every_shape_of_cluster(void **state)
{
    int compared = 0;
    for (int64_t per = 1; per <= 8; per *= 2)
        for (int64_t nodes = 1; nodes <= 8; nodes *= 2)
            for (int op = 0; op <= RG_COLL_ALL_TO_ALL; op++)
                for (int algorithm = 1; algorithm < RG_ALG_COUNT; algorithm++) {
                    rg_cluster cluster = switched_cluster(per, nodes);
                    rg_arena *own = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
                    rg_coll_context *x;
                    rg_coll_result closed, simulated;
                    const rg_coll_query q = {.op = (rg_coll_op)op,
                                             .algorithm = (rg_coll_algorithm)algorithm,
                                             .ranks = per * nodes,
                                             .bytes = RG_B(3e9),
                                             .library = RG_LIB_IDEAL};
                    /* a ring of several domains is simulated in lock step, so let bytes decide */
                    cluster.scale_up.latency = cluster.scale_out.latency = figure(1e-13);
                    assert_ok(rg_coll_prepare(own, &cluster, NULL, &x, &err));
                    if (q.ranks > 1 && rg_coll_time(x, &q, &closed, &err) == RG_OK &&
                        rg_coll_simulate(own, x, &q, &simulated, NULL, &err) == RG_OK) {
                        assert_close(simulated.time.v, closed.time.v, 1e-6);
                        assert_close(simulated.sent.v, closed.sent.v, 1e-9);
                        compared++;
                    }
                    rg_arena_free(own);
                }
    assert_true(compared > 100);
    (void)state;
}

static void oversubscribed_leaves_are_where_traffic_meets(void **state)
{
    /* 16 single devices, four to a leaf whose uplinks carry half of its ports: each sends 12/16 of
     * its gigabyte beyond its leaf, 3 GB a leaf over 100 GB/s */
    rg_cluster cluster = switched_cluster(1, 16);
    cluster.scale_out.rail_optimised = false;
    cluster.scale_out.devices_per_switch = 4;
    cluster.scale_out.oversubscription = 2;
    cluster.scale_out.latency = figure(1e-12);
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, &cluster, NULL, &x, &err));
    rg_coll_query q = {.op = RG_COLL_ALL_TO_ALL, .ranks = 16, .bytes = RG_B(1e9)};
    rg_coll_result simulated, closed;
    assert_ok(rg_coll_simulate(*state, x, &q, &simulated, NULL, &err));
    assert_close(simulated.time.v, 3e9 / 100e9, 1e-9);
    assert_int_equal(simulated.limit, RG_LIMIT_NETWORK);
    /* the closed form takes all traffic to cross, which is never too fast */
    q.library = RG_LIB_IDEAL;
    assert_ok(rg_coll_time(x, &q, &closed, &err));
    assert_true(closed.time.v >= simulated.time.v && closed.time.v < 1.3 * simulated.time.v);
}

static void bytes_sent_are_bytes_received(void **state)
{
    rg_cluster cluster = switched_cluster(8, 1);
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, &cluster, NULL, &x, &err));
    const rg_coll_algorithm algorithms[] = {RG_ALG_RING, RG_ALG_HALVING_DOUBLING, RG_ALG_TWO_SHOT};
    for (int i = 0; i < 3; i++) {
        rg_coll_query q = {.op = RG_COLL_ALL_REDUCE,
                           .algorithm = algorithms[i],
                           .ranks = 8,
                           .bytes = RG_B(1e8),
                           .library = RG_LIB_IDEAL};
        rg_coll_result r;
        rg_flow_result flows;
        assert_ok(rg_coll_simulate(*state, x, &q, &r, &flows, &err));
        /* every byte passes one port out and one port in */
        assert_close(flows.link_bytes, 2 * flows.bytes_sent, 1e-12);
        assert_close(flows.bytes_sent, 8 * r.sent.v, 1e-12);
        assert_close(r.sent.v, 2 * 7.0 / 8 * 1e8, 1e-12); /* the least that an all-reduce can do */
    }
}

static void skew_makes_the_busiest_rank_last(void **state)
{
    rg_cluster cluster = switched_cluster(8, 1);
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, &cluster, NULL, &x, &err));
    rg_coll_query q = {.op = RG_COLL_ALL_TO_ALL, .ranks = 8, .bytes = RG_B(1e9)};
    rg_coll_result even, skewed, simulated;
    assert_ok(rg_coll_time(x, &q, &even, &err));
    q.imbalance = 2;
    assert_ok(rg_coll_time(x, &q, &skewed, &err));
    assert_true(skewed.time.v > 1.8 * even.time.v && skewed.time.v < 2.2 * even.time.v);
    assert_ok(rg_coll_simulate(*state, x, &q, &simulated, NULL, &err));
    assert_close(simulated.time.v, 1e-6 + 2 * 7.0 / 8 * 1e9 / 450e9, 1e-9);
}

/* ---- calibrated ---- */

static void one_rank_has_nothing_to_do(void **state)
{
    rg_cluster cluster = switched_cluster(8, 1);
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, &cluster, NULL, &x, &err));
    for (int op = 0; op < RG_COLL_OP_COUNT; op++) {
        rg_coll_query q = {.op = (rg_coll_op)op, .ranks = 1, .bytes = RG_B(1e9)};
        rg_coll_result r;
        assert_ok(rg_coll_time(x, &q, &r, &err));
        assert_true(r.time.v == 0 && r.sent.v == 0 && r.limit == RG_LIMIT_NONE);
    }
}

static void what_cannot_be_is_refused_with_a_reason(void **state)
{
    rg_cluster cluster = switched_cluster(8, 1);
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, &cluster, NULL, &x, &err));
    const struct {
        rg_coll_query q;
        const char *reason;
    } cases[] = {
        {{.op = RG_COLL_ALL_REDUCE, .ranks = 9, .bytes = {1}}, "do not fit"},
        {{.op = RG_COLL_ALL_REDUCE, .ranks = 0, .bytes = {1}}, "do not fit"},
        {{.op = RG_COLL_ALL_REDUCE, .ranks = 3, .stride = 4, .bytes = {1}}, "do not fit"},
        {{.op = RG_COLL_ALL_REDUCE, .ranks = 2, .bytes = {-1}}, "-1 bytes"},
        {{.op = RG_COLL_ALL_REDUCE, .algorithm = RG_ALG_HALVING_DOUBLING, .ranks = 6},
         "power of two"},
        {{.op = RG_COLL_ALL_REDUCE, .algorithm = RG_ALG_TORUS, .ranks = 8}, "no torus"},
        {{.op = RG_COLL_ALL_REDUCE, .algorithm = RG_ALG_IN_SWITCH, .ranks = 8, .integer = true},
         "floating-point"},
        {{.op = RG_COLL_ALL_TO_ALL, .algorithm = RG_ALG_TREE, .ranks = 8}, "a tree does"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rg_coll_result r;
        err = (rg_err){0};
        assert_int_equal(rg_coll_time(x, &cases[i].q, &r, &err), RG_ERR_MODEL);
        assert_non_null(strstr(err.text, cases[i].reason));
    }
}

static void more_bytes_never_take_less_time_under_one_protocol(void **state)
{
    rg_cluster clusters[] = {switched_cluster(8, 4), pcie_cluster(), torus_cluster(4, 4, 1)};
    for (int c = 0; c < 3; c++) {
        rg_coll_context *x;
        assert_ok(rg_coll_prepare(*state, &clusters[c], NULL, &x, &err));
        for (int op = 0; op < RG_COLL_OP_COUNT; op++)
            for (int p = 1; p < RG_PROTO_COUNT; p++) {
                double last = 0;
                for (double bytes = 1; bytes < 1e11; bytes *= 3) {
                    rg_coll_query q = {.op = (rg_coll_op)op,
                                       .protocol = (rg_coll_protocol)p,
                                       .ranks = op == RG_COLL_SEND_RECV ? 2 : 8,
                                       .bytes = RG_B(bytes)};
                    rg_coll_result r;
                    assert_ok(rg_coll_time(x, &q, &r, &err));
                    assert_true(r.time.v >= last && isfinite(r.time.v));
                    last = r.time.v;
                }
            }
    }
}

static void thousands_of_ranks_take_less_than_a_second(void **state)
{
    rg_cluster cluster = switched_cluster(8, 512);
    rg_coll_context *x;
    const clock_t begin = clock();
    assert_ok(rg_coll_prepare(*state, &cluster, NULL, &x, &err));
    rg_coll_query q = {.op = RG_COLL_ALL_REDUCE, .ranks = 4096, .bytes = RG_B(4e9)};
    rg_coll_result r;
    assert_ok(rg_coll_time(x, &q, &r, &err));
    q.algorithm = RG_ALG_RING;
    assert_ok(rg_coll_simulate(*state, x, &q, &r, NULL, &err));
    q.algorithm = RG_ALG_HIERARCHICAL;
    assert_ok(rg_coll_simulate(*state, x, &q, &r, NULL, &err));
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 1.0);
}

static void crossovers_are_where_the_choice_changes(void **state)
{
    rg_cluster cluster = switched_cluster(8, 1);
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, &cluster, NULL, &x, &err));
    rg_coll_query q = {.op = RG_COLL_ALL_REDUCE, .ranks = 8};
    rg_coll_crossover list[16];
    int count;
    assert_ok(rg_coll_crossovers(x, &q, RG_B(8), RG_B(8e9), list, 16, &count, &err));
    assert_true(count >= 2);
    assert_int_equal(list[0].protocol, RG_PROTO_LL);
    assert_int_equal(list[count - 1].algorithm, RG_ALG_IN_SWITCH);
    for (int i = 1; i < count; i++) {
        rg_coll_result before, after;
        q.bytes = RG_B(list[i].from.v / 1.04);
        assert_ok(rg_coll_time(x, &q, &before, &err));
        q.bytes = list[i].from;
        assert_ok(rg_coll_time(x, &q, &after, &err));
        assert_true(before.algorithm == list[i - 1].algorithm);
        assert_true(after.algorithm == list[i].algorithm && after.protocol == list[i].protocol);
    }
}

static void in_switch_reduction_may_pass_the_link_rate_and_says_so(void **state)
{
    rg_cluster cluster = switched_cluster(8, 1);
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, &cluster, NULL, &x, &err));
    rg_coll_query q = {.op = RG_COLL_ALL_REDUCE, .ranks = 8, .bytes = RG_B(8e9)};
    rg_coll_result r;
    assert_ok(rg_coll_time(x, &q, &r, &err));
    assert_int_equal(r.algorithm, RG_ALG_IN_SWITCH);
    assert_true(r.above_link && r.busbw.v > 450e9 && r.algbw.v < 450e9);
    q.integer = true;
    assert_ok(rg_coll_time(x, &q, &r, &err));
    assert_int_equal(r.algorithm, RG_ALG_RING);
    assert_false(r.above_link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fair_shares_are_those_of_the_textbook, setup, teardown),
        cmocka_unit_test_setup_teardown(a_flow_speeds_up_when_another_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(flows_that_wait_for_each_other_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(every_way_is_a_chain_of_links, setup, teardown),
        cmocka_unit_test_setup_teardown(torus_ways_are_shortest, setup, teardown),
        cmocka_unit_test_setup_teardown(a_torus_whose_extents_do_not_multiply_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(ring_and_its_closed_form_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(other_algorithms_and_their_closed_forms_agree, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(shared_uplinks_slow_the_closed_form_as_the_simulation,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(torus_rings_use_all_cables, setup, teardown),
        cmocka_unit_test_setup_teardown(domains_are_joined_rail_by_rail, setup, teardown),
        cmocka_unit_test_setup_teardown(closed_forms_hold_on_every_shape_of_cluster, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(oversubscribed_leaves_are_where_traffic_meets, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(bytes_sent_are_bytes_received, setup, teardown),
        cmocka_unit_test_setup_teardown(skew_makes_the_busiest_rank_last, setup, teardown),
        cmocka_unit_test_setup_teardown(one_rank_has_nothing_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_refused_with_a_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(more_bytes_never_take_less_time_under_one_protocol, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(thousands_of_ranks_take_less_than_a_second, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(crossovers_are_where_the_choice_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(in_switch_reduction_may_pass_the_link_rate_and_says_so,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

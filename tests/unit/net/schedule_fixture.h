/* tests/unit/net/schedule_fixture.h: closed forms against the flows of the same schedule. */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TESTS_SCHEDULE_FIXTURE_H
#define RG_TESTS_SCHEDULE_FIXTURE_H

#include "net_fixture.h"

static rg_err err;

/** Closed form and flow simulation of one collective, which must agree. */
static inline rg_coll_result both(void **state, const rg_cluster *cluster, rg_coll_op op,
                                  rg_coll_algorithm algorithm, int64_t ranks, double bytes,
                                  double tolerance)
{
    rg_coll_context *x;
    assert_ok(rg_coll_prepare(*state, cluster, NULL, &x, &err));
    rg_coll_query q = {.op = op,
                       .algorithm = algorithm,
                       .ranks = ranks,
                       .bytes = RG_B(bytes),
                       .library = RG_LIB_IDEAL};
    rg_coll_result closed, simulated;
    rg_flow_result flows;
    assert_ok(rg_coll_time(x, &q, &closed, &err));
    assert_ok(rg_coll_simulate(*state, x, &q, &simulated, &flows, &err));
    assert_close(simulated.time.v, closed.time.v, tolerance);
    assert_close(simulated.sent.v, closed.sent.v, 1e-9);
    assert_int_equal(simulated.steps, closed.steps);
    return closed;
}

#endif

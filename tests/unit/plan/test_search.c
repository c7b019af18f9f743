/* tests/unit/plan/test_search.c: the search against brute force, and laws of its answers. */
// SPDX-License-Identifier: Apache-2.0
#include "plan_fixture.h"

#include <omp.h>

/* Small grids of several kinds: arrangements, types, limits, drafts, pools, users. */
static const char *const grids[][14] = {
    {"model=llama-3.1-8b", "hw=h100-sxm,l40s,a100-sxm-80gb", "rate=30/s", "isl=1200", "osl=80",
     "ttft=p95:600ms", "tpot=p95:40ms", "limit=300", "tp=1,2", "pp=1", NULL},
    {"model=llama-3.1-8b", "hw=l4,l40s", "rate=5/s", "isl=lognormal:600,cv=1", "osl=150",
     "e2e=p90:12s", "limit=300", "tp=1,2", "pp=1,2", "weight-type=bf16,fp8", NULL},
    {"model=qwen3-8b", "hw=h100-sxm,h200-sxm", "rate=30/s", "isl=800", "osl=100", "ttft=p95:500ms",
     "tpot=p95:25ms", "limit=300", "tp=1,2,4", "pp=1", "max-sequences=8,64", "max-tokens=2048,8192",
     NULL},
    {"model=llama-3.1-8b", "hw=h100-sxm", "rate=25/s", "isl=1500", "osl=60", "ttft=p95:700ms",
     "tpot=p95:20ms", "limit=300", "tp=1,2", "pp=1", "pools=aggregated,1:1,2:1", NULL},
    {"model=llama-3.1-8b", "hw=a100-sxm-80gb,l40s", "users=120", "think=2s", "isl=700", "osl=120",
     "ttft=p95:500ms", "tpot=p95:45ms", "limit=600", "tp=1,2", "pp=1", NULL},
    {"model=llama-3.1-8b", "hw=h100-sxm,l40s", "rate=20/s", "isl=500", "osl=150", "tpot=p95:20ms",
     "limit=300", "tp=1,2", "pp=1", "drafts=0,3", "acceptance=0.8", NULL},
};
enum { GRIDS = sizeof grids / sizeof grids[0] };

/* Searched; the caller releases it. plan must outlive the run. */
static void searched(rg_arena *arena, const rg_plan *plan, rg_plan_run *run)
{
    assert_ok(rg_plan_prepare(arena, plan, NULL, NULL, run, &err));
    assert_ok(rg_plan_search(arena, run, &err));
}

/* Cost (or devices, watts) of the answer, INFINITY when there is none. */
static double answer_of(rg_arena *arena, const char *const *settings, const char *const *more)
{
    const rg_plan plan = plan_with(arena, settings, more);
    rg_plan_run run;
    searched(arena, &plan, &run);
    const double goal = run.winner < 0 ? INFINITY
                                       : rg_candidate_goal(&run.space.candidates[run.winner],
                                                           run.outcomes[run.winner].replicas);
    rg_plan_release(&run);
    return goal;
}

static void exhaustive_search_finds_the_same_winner(void **state)
{
    static const char *const all[] = {"exhaustive=true", "most-devices=64", NULL},
                             *const some[] = {"most-devices=64", NULL};
    for (int g = 0; g < GRIDS; g++) {
        const rg_plan quick = plan_with(*state, grids[g], some),
                      whole = plan_with(*state, grids[g], all);
        rg_plan_run a, b;
        searched(*state, &quick, &a);
        searched(*state, &whole, &b);
        assert_int_equal(a.winner, b.winner);
        assert_true(a.winner >= 0);
        assert_int_equal(a.outcomes[a.winner].replicas, b.outcomes[b.winner].replicas);
        assert_false(a.premise_broken);
        rg_plan_release(&a);
        rg_plan_release(&b);
    }
}

/* Every candidate with every count from 1: nothing that keeps the limits costs less. */
static void brute_force_finds_nothing_cheaper(void **state)
{
    for (int g = 0; g < 2; g++) {
        const rg_plan plan = plan_with(*state, grids[g], NULL);
        const rg_trial_how how = {.speed_up = 1};
        rg_plan_run run;
        searched(*state, &plan, &run);
        assert_true(run.winner >= 0);
        const double best =
            rg_candidate_goal(&run.space.candidates[run.winner], run.outcomes[run.winner].replicas);
        for (int i = 0; i < run.space.candidate_count; i++) {
            const rg_candidate *c = &run.space.candidates[i];
            for (int64_t r = 1; c->fits && rg_candidate_goal(c, r) < best * (1 - 1e-9); r++) {
                rg_trial t;
                assert_ok(rg_trial_run(run.workers[0], c, &run.requests, r, &how, &t, &err));
                assert_false(t.ok);
            }
        }
        rg_plan_release(&run);
    }
}

static void the_number_of_threads_changes_nothing(void **state)
{
    const rg_plan plan = plan_with(*state, grids[1], NULL);
    rg_plan_run a, b;
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    searched(*state, &plan, &a);
    omp_set_num_threads(3);
    searched(*state, &plan, &b);
    omp_set_num_threads(threads);
    assert_int_equal(a.winner, b.winner);
    assert_int_equal(a.trials, b.trials);
    for (int i = 0; i < a.space.candidate_count; i++) {
        assert_int_equal(a.order[i], b.order[i]);
        assert_int_equal(a.outcomes[i].replicas, b.outcomes[i].replicas);
        assert_true(a.outcomes[i].at.e2e_mean == b.outcomes[i].at.e2e_mean);
    }
    rg_plan_release(&a);
    rg_plan_release(&b);
}

static void a_lower_price_never_raises_the_cost(void **state)
{
    static const char *const prices[][2] = {{"price=h100-sxm=4 $/h", NULL},
                                            {"price=h100-sxm=2 $/h", NULL},
                                            {"price=h100-sxm=1 $/h", NULL},
                                            {"price=h100-sxm=0.3 $/h", NULL}};
    double last = INFINITY;
    for (int i = 0; i < 4; i++) {
        const double cost = answer_of(*state, grids[0], prices[i]);
        assert_true(isfinite(cost) && cost <= last);
        last = cost;
    }
    assert_true(last < 1.3); /* 0.3 $/h a device: the price was taken */
}

static void a_looser_limit_never_costs_more(void **state)
{
    static const char *const limits[][3] = {{"ttft=p95:150ms", "tpot=p95:15ms", NULL},
                                            {"ttft=p95:300ms", "tpot=p95:15ms", NULL},
                                            {"ttft=p95:300ms", "tpot=p95:30ms", NULL},
                                            {"ttft=p50:300ms", "tpot=p95:30ms", NULL},
                                            {"ttft=p50:3s", "tpot=p50:90ms", NULL}};
    double last = INFINITY;
    for (int i = 0; i < 5; i++) {
        const double cost = answer_of(*state, grids[0], limits[i]);
        assert_true(cost <= last);
        last = cost;
    }
    assert_true(isfinite(last));
}

static void twice_the_rate_never_needs_fewer_devices(void **state)
{
    static const char *const rates[][3] = {{"rate=5/s", "goal=devices", NULL},
                                           {"rate=10/s", "goal=devices", NULL},
                                           {"rate=20/s", "goal=devices", NULL},
                                           {"rate=40/s", "goal=devices", NULL},
                                           {"rate=80/s", "goal=devices", NULL}};
    double last = 0;
    for (int i = 0; i < 5; i++) {
        const double devices = answer_of(*state, grids[0], rates[i]);
        assert_true(devices >= last);
        last = devices;
    }
    assert_true(last >= 2);
}

static void more_choice_never_costs_more(void **state)
{
    static const char *const few[] = {"tp=1", NULL}, *const many[] = {"tp=1,2,4", NULL};
    const double least = answer_of(*state, grids[0], many);
    assert_true(isfinite(least) && least <= answer_of(*state, grids[0], few));
}

static void what_cannot_be_names_the_nearest(void **state)
{
    static const char *const hard[] = {"tpot=p95:1ms", NULL};
    const rg_plan plan = plan_with(*state, grids[0], hard);
    rg_plan_run run;
    searched(*state, &plan, &run);
    assert_int_equal(run.winner, -1);
    assert_true(run.nearest >= 0);
    for (int i = 0; i < run.space.candidate_count; i++) {
        const rg_outcome *o = &run.outcomes[i];
        assert_int_equal(o->state, RG_PLAN_FAILED);
        assert_int_equal(o->lost, RG_LOST_TPOT);
        assert_true(o->at.excess >= run.outcomes[run.nearest].at.excess);
    }
    rg_plan_release(&run);
}

static void caps_on_devices_and_power_bind(void **state)
{
    static const char *const devices[] = {"rate=400/s", "most-devices=2", NULL},
                             *const power[] = {"rate=400/s", "power-cap=2 kW", NULL};
    const rg_plan few = plan_with(*state, grids[0], devices),
                  weak = plan_with(*state, grids[0], power);
    rg_plan_run a, b;
    searched(*state, &few, &a);
    searched(*state, &weak, &b);
    assert_int_equal(a.winner, -1);
    assert_int_equal(b.winner, -1);
    assert_int_equal(a.outcomes[0].lost, RG_LOST_DEVICES);
    assert_int_equal(b.outcomes[0].lost, RG_LOST_POWER);
    rg_plan_release(&a);
    rg_plan_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exhaustive_search_finds_the_same_winner, setup, teardown),
        cmocka_unit_test_setup_teardown(brute_force_finds_nothing_cheaper, setup, teardown),
        cmocka_unit_test_setup_teardown(the_number_of_threads_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lower_price_never_raises_the_cost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_looser_limit_never_costs_more, setup, teardown),
        cmocka_unit_test_setup_teardown(twice_the_rate_never_needs_fewer_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(more_choice_never_costs_more, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_names_the_nearest, setup, teardown),
        cmocka_unit_test_setup_teardown(caps_on_devices_and_power_bind, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

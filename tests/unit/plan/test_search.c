/* tests/unit/plan/test_search.c: the search against brute force, and laws of its answers. */
// SPDX-License-Identifier: Apache-2.0
#include "plan_fixture.h"

#include <omp.h>
#include <stdlib.h>

#include "core/rng.h"

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
    {"model=llama-3.1-8b", "hw=h100-sxm", "rate=25/s", "isl=2500", "osl=60", "ttft=p95:900ms",
     "tpot=p95:15ms", "limit=300", "tp=1,2", "pp=1", "pools=1:1,1:2", "prefill-hw=h100-sxm,l40s",
     "prefill-tp=1,4", NULL},
    {"model=llama-3.1-8b", "hw=a100-sxm-80gb,l40s", "users=120", "think=2s", "isl=700", "osl=120",
     "ttft=p95:500ms", "tpot=p95:45ms", "limit=600", "tp=1,2", "pp=1", NULL},
    {"model=llama-3.1-8b", "hw=h100-sxm,l40s", "rate=20/s", "isl=500", "osl=150", "tpot=p95:20ms",
     "limit=300", "tp=1,2", "pp=1", "drafts=0,3", "acceptance=0.8", NULL},
    {"model=llama-3.1-8b", "hw=h100-sxm,l40s", "rate=20/s", "isl=500", "osl=150", "tpot=p95:12ms",
     "limit=300", "tp=1,2", "pp=1", "speculate=none,eagle,medusa,draft_model,self", "drafts=2",
     "acceptance=0.8,medusa=0.6", "draft-model=llama-3.2-1b", NULL},
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
    const double goal = run.winner < 0 ? INFINITY : rg_plan_goal_of_winner(&run);
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

/* ---- random grids: the short cut of wide grids, forced, against exhaustive search */

static const char *one_of(rg_rng *rng, const char *const *list, int count)
{
    return list[rg_rng_below(rng, (uint32_t)count)];
}

/* A grid of a few dozen combinations; the texts live in room. */
static void random_grid(rg_rng *rng, char room[16][64], const char *out[17])
{
    static const char *const
        devices[] = {"h100-sxm,l40s", "a100-sxm-80gb,h200-sxm", "l4,l40s,h100-sxm"},
        *const tps[] = {"1,2", "1,2,4", "2,4"},
        *const lengths[] = {"300", "lognormal:900,cv=1", "2500", "lognormal:1500,cv=0.5"},
        *const answers[] = {"20", "lognormal:120,cv=1", "200"},
        *const ttfts[] = {"p95:250ms", "p95:1s", "p99:3s", "mean:300ms"},
        *const tpots[] = {"p95:20ms", "p95:40ms", "p50:60ms"},
        *const sequences[] = {"256", "16,256", "64"}, *const tokens[] = {"2048", "2048,8192"},
        *const pools[] = {"aggregated", "aggregated", "aggregated,1:1,1:2"};
    int n = 0;
#define SET(name, list)                                                                        \
    snprintf(room[n], 64, name "=%s", one_of(rng, list, (int)(sizeof list / sizeof list[0]))); \
    out[n] = room[n];                                                                          \
    n++
    out[n++] = "model=llama-3.1-8b";
    out[n++] = "limit=250";
    out[n++] = "pp=1";
    out[n++] = "most-devices=48";
    SET("hw", devices);
    SET("tp", tps);
    SET("isl", lengths);
    SET("osl", answers);
    SET("ttft", ttfts);
    SET("tpot", tpots);
    SET("max-sequences", sequences);
    SET("max-tokens", tokens);
    SET("pools", pools);
#undef SET
    snprintf(room[n], 64, "rate=%.3g/s", 3 * pow(15, rg_rng_real(rng)));
    out[n] = room[n];
    out[++n] = NULL;
}

static void the_short_cut_of_wide_grids_finds_what_exhaustive_search_finds(void **state)
{
    static const char *const all[] = {"exhaustive=true", NULL};
    const char *text = getenv("RIDGE_RANDOM_GRIDS");
    const int count = text ? atoi(text) : 12;
    int answered = 0;
    for (int g = 0; g < count; g++) {
        rg_rng rng;
        rg_rng_seed(&rng, (uint64_t)g + 1, 0);
        char room[16][64];
        const char *settings[17];
        random_grid(&rng, room, settings);
        rg_plan quick = plan_with(*state, settings, NULL);
        const rg_plan whole = plan_with(*state, settings, all);
        quick.few = 0;
        rg_plan_run a, b;
        searched(*state, &quick, &a);
        searched(*state, &whole, &b);
        if (a.winner != b.winner ||
            (a.winner >= 0 && a.outcomes[a.winner].replicas != b.outcomes[b.winner].replicas))
            print_message("grid %d: winner %d, exhaustive %d; goals %g and %g\n", g, a.winner,
                          b.winner, rg_plan_goal_of_winner(&a), rg_plan_goal_of_winner(&b));
        assert_int_equal(a.winner, b.winner);
        answered += a.winner >= 0;
        if (a.winner >= 0)
            assert_int_equal(a.outcomes[a.winner].replicas, b.outcomes[b.winner].replicas);
        rg_plan_release(&a);
        rg_plan_release(&b);
        rg_arena_reset(*state);
    }
    assert_true(2 * answered > count); /* most grids have an answer to compare */
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
        const double best = rg_plan_goal_of_winner(&run);
        for (int i = 0; i < run.space.candidate_count; i++) {
            const rg_candidate *c = &run.space.candidates[i];
            for (int64_t r = 1; c->fits && rg_candidate_goal(&run.space, c, r) < best * (1 - 1e-9);
                 r++) {
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

/* Pools of arrangements of their own: all that one arrangement for both can do, and more. */
static void a_pool_of_its_own_arrangement_never_costs_more(void **state)
{
    static const char *const alike[] = {"pools=1:1,1:2,2:1", "tp=2", NULL}, *const own[] = {
                                                                                "pools=1:1,1:2,2:1",
                                                                                "tp=2",
                                                                                "prefill-tp=1,2,4",
                                                                                NULL};
    const double both = answer_of(*state, grids[3], alike), each = answer_of(*state, grids[3], own);
    assert_true(isfinite(each) && each <= both);
    const rg_plan plan = plan_with(*state, grids[3], own);
    rg_plan_run run;
    searched(*state, &plan, &run);
    for (int i = 0; i < run.space.candidate_count; i++) {
        /* devices, dollars and watts are those of the two pools together */
        const rg_candidate *c = &run.space.candidates[i];
        const rg_machine *m = &run.space.machines[0];
        for (int64_t n = 2; n < 20; n++) {
            const rg_usage u = rg_candidate_usage(&run.space, c, n),
                           less = rg_candidate_usage(&run.space, c, n - 1);
            const int64_t devices =
                u.prefill * run.space.arrangements[c->prefill.arrangement].devices + u.others * 2;
            assert_true(u.prefill >= 1 && u.others >= 1 && u.prefill + u.others == n);
            assert_int_equal(u.devices, devices);
            assert_close(u.usd_per_hour, m->usd_per_hour * (double)devices, 1e-12);
            assert_close(u.watts, m->watts * (double)devices, 1e-12);
            assert_true(n == 2 || (u.prefill >= less.prefill && u.others >= less.others));
            assert_int_equal(rg_candidate_within(&run.space, c, u.goal), n);
        }
    }
    rg_plan_release(&run);
}

/* What writes drafts takes memory and time, and is worth it when they are right. */
static void speculation_is_counted_and_judged_by_its_acceptance(void **state)
{
    static const char *const base[] = {"model=llama-3.1-8b",
                                       "hw=h100-sxm",
                                       "tp=2",
                                       "pp=1",
                                       "rate=1/s",
                                       "isl=500",
                                       "osl=100",
                                       "limit=60",
                                       "tpot=p95:50ms",
                                       "draft-model=llama-3.2-1b",
                                       "speculate=none,eagle,medusa,draft_model,self,mtp",
                                       NULL},
                             *const never[] = {"acceptance=0", NULL},
                             *const mostly[] = {"acceptance=0.9", NULL};
    const rg_trial_how how = {.speed_up = 1};
    double tpot[2][6];
    for (int a = 0; a < 2; a++) {
        const rg_plan plan = plan_with(*state, base, a == 0 ? never : mostly);
        rg_plan_run run;
        assert_ok(rg_plan_prepare(*state, &plan, NULL, NULL, &run, &err));
        assert_int_equal(run.space.candidate_count, 6);
        const rg_candidate *c = run.space.candidates;
        for (int i = 5; i >= 0; i--) {
            rg_trial t;
            assert_ok(rg_trial_run(run.workers[0], &c[i], &run.requests, 1, &how, &t, &err));
            tpot[a][i] = t.tpot_mean;
            assert_true(c[i].speculate == RG_SPEC_SELF || i == 0
                            ? c[i].rules.blocks == c[0].rules.blocks
                            : c[i].rules.blocks < c[0].rules.blocks);
        }
        rg_plan_release(&run);
    }
    assert_close(tpot[0][0], tpot[1][0], 1e-12);
    for (int i = 1; i < 6; i++) {
        assert_true(tpot[0][i] > tpot[0][0]); /* never right: a step as long and the drafts' time */
        assert_true(tpot[1][i] < tpot[0][i] / 2);
    }
    assert_true(tpot[1][1] < tpot[1][0]); /* one layer, nearly always right: faster */
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
        cmocka_unit_test_setup_teardown(
            the_short_cut_of_wide_grids_finds_what_exhaustive_search_finds, setup, teardown),
        cmocka_unit_test_setup_teardown(brute_force_finds_nothing_cheaper, setup, teardown),
        cmocka_unit_test_setup_teardown(the_number_of_threads_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lower_price_never_raises_the_cost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_looser_limit_never_costs_more, setup, teardown),
        cmocka_unit_test_setup_teardown(twice_the_rate_never_needs_fewer_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(more_choice_never_costs_more, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pool_of_its_own_arrangement_never_costs_more, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(speculation_is_counted_and_judged_by_its_acceptance, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_names_the_nearest, setup, teardown),
        cmocka_unit_test_setup_teardown(caps_on_devices_and_power_bind, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

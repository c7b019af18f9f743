/* tests/unit/plan/test_after.c: bill, saturation, frontier and sensitivity of an answer. */
// SPDX-License-Identifier: Apache-2.0
#include "plan_fixture.h"

#include "plan/after.h"
#include "plan/fits.h"

static const char *const ask[] = {"model=llama-3.1-8b",
                                  "hw=h100-sxm,l40s",
                                  "tp=1,2",
                                  "pp=1",
                                  "rate=25/s",
                                  "isl=1000",
                                  "osl=100",
                                  "limit=400",
                                  "ttft=p95:600ms",
                                  "tpot=p95:40ms",
                                  "carbon=400 g/kWh",
                                  "overhead=1.2",
                                  "price=h100-sxm=2 $/h,l40s=1 $/h",
                                  NULL};

static void answered(rg_arena *arena, const rg_plan *plan, rg_plan_run *run)
{
    assert_ok(rg_plan_prepare(arena, plan, NULL, NULL, run, &err));
    assert_ok(rg_plan_search(arena, run, &err));
    assert_true(run->winner >= 0);
}

static void the_bill_adds_up(void **state)
{
    const rg_plan plan = plan_with(*state, ask, NULL);
    rg_plan_run run;
    rg_plan_bill b;
    answered(*state, &plan, &run);
    const rg_outcome *o = &run.outcomes[run.winner];
    const rg_candidate *c = &run.space.candidates[run.winner];
    const rg_arrangement *a = &run.space.arrangements[c->arrangement];
    const rg_machine *m = &run.space.machines[a->machine];
    rg_plan_bill_of(*state, &run, run.winner, &o->at, &b);
    assert_int_equal(b.devices, o->replicas * a->devices);
    assert_close(b.usd_per_hour, m->usd_per_hour * (double)b.devices, 1e-12);
    /* one hour at the arrival rate, 1000 tokens in and 100 out each */
    const double millions_out = run.plan->traffic.rate_per_s * 100 * 3600 / 1e6;
    assert_close(b.usd_per_million_output, b.usd_per_hour / millions_out, 1e-12);
    assert_close(b.usd_per_million_input, b.usd_per_million_output / 10, 1e-12);
    assert_close(b.usd_per_million_tokens, b.usd_per_hour / (11 * millions_out), 1e-12);
    /* energy of one second over tokens of one second; grams by kWh */
    assert_close(b.joules_per_output_token, b.watts / (run.plan->traffic.rate_per_s * 100), 1e-12);
    assert_close(b.carbon_g_per_hour, b.watts / 1000 * 400, 1e-12);
    assert_true(b.device_watts <= m->cluster->accel->tdp.value);
    assert_true(b.watts > 1.2 * b.device_watts * (double)b.devices * (1 - 1e-12));
    rg_plan_release(&run);
}

/* A part of a fleet with its share of the traffic stands for the whole: eight replicas of 24 see
 * and draw what all of them do, but for chance, which grows towards saturation (400/s). */
static void a_part_of_a_fleet_stands_for_it(void **state)
{
    static const char *const heavy[] = {"hw=h100-sxm",          "tp=1", "rate=340/s", "limit=4000",
                                        "pools=aggregated,1:2", NULL};
    const rg_plan plan = plan_with(*state, ask, heavy);
    const rg_trial_how how = {.speed_up = 1};
    rg_plan_run run;
    assert_ok(rg_plan_prepare(*state, &plan, NULL, NULL, &run, &err));
    for (int i = 0; i < run.space.candidate_count; i++) {
        const rg_candidate *c = &run.space.candidates[i];
        rg_trial whole, part;
        rg_plan_bill a, b;
        run.requests.coverage_ratio = 1;
        assert_ok(rg_trial_run(run.workers[0], c, &run.requests, 24, &how, &whole, &err));
        run.requests.coverage_ratio = 0.2; /* of 24, but eight at least */
        assert_ok(rg_trial_run(run.workers[0], c, &run.requests, 24, &how, &part, &err));
        assert_int_equal(whole.simulated, 24);
        assert_int_equal(part.simulated, c->pools.prefill > 0 ? 9 : 8); /* 1:2 in whole */
        assert_int_equal(part.prefill, whole.prefill);
        assert_close(part.tpot_mean, whole.tpot_mean, 0.05);
        assert_close(part.e2e_mean, whole.e2e_mean, 0.05);
        rg_plan_bill_of(*state, &run, i, &whole, &a);
        rg_plan_bill_of(*state, &run, i, &part, &b);
        assert_int_equal(b.devices, a.devices);
        /* the whole is at work for a third of the time, and fills and drains in as long */
        assert_true(b.watts > a.watts && b.watts < 1.25 * a.watts);
        assert_close(b.usd_per_million_output, a.usd_per_million_output, 1e-12);
    }
    rg_plan_release(&run);
}

static void the_winner_carries_its_saturation_and_no_more(void **state)
{
    const rg_plan plan = plan_with(*state, ask, NULL);
    rg_plan_run run;
    double load;
    rg_trial at, beyond;
    answered(*state, &plan, &run);
    assert_ok(rg_plan_saturation(&run, &load, &err));
    assert_true(load >= 1);
    const rg_candidate *c = &run.space.candidates[run.winner];
    const int64_t replicas = run.outcomes[run.winner].replicas;
    const rg_trial_how same = {.speed_up = load}, more = {.speed_up = 1.1 * load};
    assert_ok(rg_trial_run(run.workers[0], c, &run.requests, replicas, &same, &at, &err));
    assert_ok(rg_trial_run(run.workers[0], c, &run.requests, replicas, &more, &beyond, &err));
    assert_true(at.ok);
    assert_false(beyond.ok);
    rg_plan_release(&run);
}

static void no_point_of_the_frontier_is_beaten(void **state)
{
    const rg_plan plan = plan_with(*state, ask, NULL);
    rg_plan_run run;
    rg_plan_point *points;
    int count, on = 0;
    answered(*state, &plan, &run);
    assert_ok(rg_plan_frontier(*state, &run, &points, &count, &err));
    for (int i = 0; i < count; i++) {
        on += points[i].on_frontier;
        for (int k = 0; k < count && points[i].on_frontier; k++)
            assert_false(points[k].goal < points[i].goal &&
                         points[k].trial.e2e_p95 < points[i].trial.e2e_p95);
    }
    assert_true(on >= 2);
    rg_plan_release(&run);
}

static void the_answer_moves_the_way_of_the_change(void **state)
{
    const rg_plan plan = plan_with(*state, ask, NULL);
    rg_plan_run run;
    rg_plan_swing *swings;
    int count;
    answered(*state, &plan, &run);
    assert_ok(rg_plan_sensitivity(*state, &run, &swings, &count, &err));
    for (int i = 0; i < count; i += 2) {
        const rg_plan_swing *less = &swings[i], *more = &swings[i + 1];
        assert_string_equal(less->what, more->what);
        if (!less->known || !less->feasible || !more->feasible)
            continue;
        if (strcmp(less->what, "bandwidth") == 0)
            assert_true(less->goal >= more->goal);
        else
            assert_true(less->goal <= more->goal);
        /* 20 % either way never moves the answer the wrong side of now */
        assert_true(fmin(less->goal_ratio, more->goal_ratio) <= 1 + 1e-12);
    }
    rg_plan_release(&run);
}

static void what_fits_is_within_its_bounds(void **state)
{
    static const char *const bare[] = {"model=llama-3.1-70b", "hw=h100-sxm,l40s", NULL};
    const rg_plan plan = plan_with(*state, bare, NULL);
    rg_space space;
    rg_fit *rows;
    int count, least = 0;
    assert_ok(rg_plan_fits(*state, &plan, &space, &rows, &count, &err));
    assert_true(count >= 6);
    for (int i = 0; i < count; i++) {
        const rg_fit *f = &rows[i];
        least += f->least;
        if (f->devices == 0)
            continue;
        const double memory = rg_accel_memory_bytes(space.machines[f->machine].cluster->accel);
        assert_true(f->weight_bytes <= memory * (double)f->devices);
        assert_true(f->single_tokens_per_s <= f->bound_tokens_per_s);
        assert_true(f->batch <= f->sequences && f->sequences >= 1);
        assert_true(f->output_tokens_per_s >= f->single_tokens_per_s * (1 - 1e-9));
    }
    assert_int_equal(least, 6); /* two machines, three types */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_bill_adds_up, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_of_a_fleet_stands_for_it, setup, teardown),
        cmocka_unit_test_setup_teardown(the_winner_carries_its_saturation_and_no_more, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_point_of_the_frontier_is_beaten, setup, teardown),
        cmocka_unit_test_setup_teardown(the_answer_moves_the_way_of_the_change, setup, teardown),
        cmocka_unit_test_setup_teardown(what_fits_is_within_its_bounds, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

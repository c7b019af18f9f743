/* tests/unit/plan/test_verify.c: warm-up, intervals, and answers on several draws. */
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "plan/judge.h"
#include "plan/verify.h"
#include "plan_fixture.h"

static const char *const base[] = {
    "model=llama-3.1-8b", "hw=h100-sxm", "tp=1",      "pp=1", "isl=1000", "osl=200",
    "tpot=p95:12ms",      "ttft=p95:1s", "rate=40/s", NULL};

static void serve_one(rg_judged *j, int64_t index, double ttft)
{
    const rg_served s = {
        .index = index, .output_tokens = 1, .first_token_s = ttft, .last_token_s = ttft};
    rg_judged_add(j, &s);
}

static void requests_of_the_warm_up_count_in_no_latency(void **state)
{
    rg_judged j;
    rg_trial t = {0};
    rg_plan plan = {.limit_count = 1};
    plan.limits[0] = (rg_plan_limit){.metric = RG_PLAN_TTFT, .quantile = -1, .seconds = 3};
    assert_ok(rg_judged_start(*state, 2, 5, &j, &err));
    for (int64_t i = 4; i >= 0; i--) /* ends in any order: 100 100 | 1 2 3 */
        serve_one(&j, i, i < 2 ? 100 : (double)(i - 1));
    rg_judge(&plan, &j, &t);
    assert_close(t.ttft_mean, 2, 1e-12);
    assert_close(t.ttft_p50, 2, 1e-12);
    assert_close(t.value[0], 2, 1e-12);
    assert_true(t.ok);
    assert_true(isnan(t.high[0])); /* three requests say nothing of chance */
    assert_false(t.sure);
}

static void batches_that_differ_widen_the_interval(void **state)
{
    rg_judged j;
    rg_trial t = {0};
    rg_plan plan = {.limit_count = 1};
    plan.limits[0] = (rg_plan_limit){.metric = RG_PLAN_TTFT, .quantile = 0.95, .seconds = 9};
    assert_ok(rg_judged_start(*state, 0, 160, &j, &err));
    for (int64_t i = 0; i < 160; i++) /* batch b of 20 is b all through: 1 .. 8 */
        serve_one(&j, i, (double)(1 + i / 20));
    rg_judge(&plan, &j, &t);
    /* deviation of 1 .. 8: sqrt(42 / 7) = 2.44949; t of 7 degrees at 0.975: 2.364624 */
    assert_close(t.value[0], 8, 1e-12);
    assert_close(t.high[0] - t.value[0], 2.364624 * 2.44949 / sqrt(8), 1e-5);
    assert_true(t.ok);
    assert_false(t.sure);
}

static void interval_across_runs_is_that_of_student(void **state)
{
    (void)state;
    rg_plan plan = {.limit_count = 1};
    plan.limits[0] = (rg_plan_limit){.metric = RG_PLAN_TTFT, .quantile = 0.95, .seconds = 4};
    rg_trial runs[3] = {{.value = {1}, .ttft_p95 = 1},
                        {.value = {2}, .ttft_p95 = 2},
                        {.value = {3}, .ttft_p95 = 3}},
             mean;
    rg_judge_runs(&plan, runs, 3, &mean);
    /* mean 2, deviation 1; t of 2 degrees at 0.975: 4.302653 */
    assert_close(mean.ttft_p95, 2, 1e-12);
    assert_close(mean.value[0], 2, 1e-12);
    assert_close(mean.high[0], 2 + 4.302653 / sqrt(3), 1e-6);
    assert_false(mean.ok); /* 2 is below 4, but 4.48 may be true */
    assert_false(mean.sure);
    plan.limits[0].seconds = 5;
    rg_judge_runs(&plan, runs, 3, &mean);
    assert_true(mean.ok && mean.sure);
}

/* What an answer promises holds on requests that it has not seen, many times as many. */
static void the_answer_holds_on_a_long_run_of_another_seed(void **state)
{
    static const char *const longer[] = {"limit=40000", NULL};
    rg_plan plan = plan_with(*state, base, NULL), far = plan_with(*state, base, longer);
    rg_plan_run run, check;
    rg_trial t;
    const rg_trial_how how = {.speed_up = 1};
    assert_ok(rg_plan_prepare(*state, &plan, NULL, NULL, &run, &err));
    assert_ok(rg_plan_search(*state, &run, &err));
    assert_true(run.winner >= 0);
    const rg_outcome *o = &run.outcomes[run.winner];
    assert_true(o->verified && o->at.runs >= 4);
    far.seed = plan.seed + 7;
    assert_ok(rg_plan_prepare(*state, &far, NULL, NULL, &check, &err));
    assert_false(rg_plan_can_verify(&check));
    assert_ok(rg_trial_run(check.workers[0], &check.space.candidates[run.winner], &check.requests,
                           o->replicas, &how, &t, &err));
    assert_true(t.ok);
    for (int i = 0; i < plan.limit_count; i++)
        assert_true(t.low[i] <= o->at.high[i] && t.high[i] >= o->at.low[i]);
    if (o->replicas > 1) { /* and one fewer does not do */
        assert_ok(rg_trial_run(check.workers[0], &check.space.candidates[run.winner],
                               &check.requests, o->replicas - 1, &how, &t, &err));
        assert_false(t.ok);
    }
    rg_plan_release(&run);
    rg_plan_release(&check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_of_the_warm_up_count_in_no_latency, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(batches_that_differ_widen_the_interval, setup, teardown),
        cmocka_unit_test_setup_teardown(interval_across_runs_is_that_of_student, setup, teardown),
        cmocka_unit_test_setup_teardown(the_answer_holds_on_a_long_run_of_another_seed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

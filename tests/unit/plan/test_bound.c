/* tests/unit/plan/test_bound.c: the least number of replicas, by hand and against simulation. */
// SPDX-License-Identifier: Apache-2.0
#include "plan_fixture.h"

static const char *const hand[] = {"model=llama-3.1-8b",
                                   "hw=h100-sxm",
                                   "tp=1",
                                   "pp=1",
                                   "rate=40/s",
                                   "isl=1000",
                                   "osl=101",
                                   "limit=200",
                                   "prefix-caching=false",
                                   NULL};

/* Products of the layers of Llama-3.1-8B: per layer q and o 2 x 4096 x 4096, k and v
 * 2 x 4096 x 1024, three of 4096 x 14336; 32 layers. LM head 128256 x 4096. */
static const double layer_weights =
    32.0 * (2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336);
static const double head_weights = 128256.0 * 4096;

static void prompts_within_a_ttft_limit_by_hand(void **state)
{
    static const char *const more[] = {"ttft=p95:1s", NULL};
    const rg_plan plan = plan_with(*state, hand, more);
    rg_plan_run run;
    rg_least_works works = {0};
    rg_works_of work;
    rg_bound_by by;
    assert_ok(rg_plan_prepare(*state, &plan, NULL, NULL, &run, &err));
    const rg_candidate *c = &run.space.candidates[0];
    assert_ok(rg_least_work_of(*state, &works, &run.space, c, &run.requests, &work, &err));
    assert_close(work.replica->flops_per_token, 2 * layer_weights, 1e-12);
    /* 190 of 200 keep a p95: k = floor(199 x 0.95) + 1. 989.4 TFLOP/s. */
    const double busy = 190 * 1000 * 2 * layer_weights / 989.4e12;
    assert_close(rg_least_busy(&run.space, c, &work, &run.requests, 190, RG_PART_PROMPTS, &by),
                 busy, 1e-12);
    const rg_plan_bound bound = rg_plan_bound_of(&run.space, c, &work, &run.requests);
    assert_int_equal(bound.replicas, (int64_t)ceil(busy / (run.requests.span_s + 1)));
    rg_plan_release(&run);
}

static void whole_requests_within_an_e2e_limit_by_hand(void **state)
{
    static const char *const more[] = {"e2e=p95:5s", "max-sequences=16", NULL};
    const rg_plan plan = plan_with(*state, hand, more);
    rg_plan_run run;
    rg_least_works works = {0};
    rg_works_of work;
    rg_bound_by by;
    assert_ok(rg_plan_prepare(*state, &plan, NULL, NULL, &run, &err));
    const rg_candidate *c = &run.space.candidates[0];
    assert_ok(rg_least_work_of(*state, &works, &run.space, c, &run.requests, &work, &err));
    assert_close(work.replica->dense_bytes, 2 * (layer_weights + head_weights), 1e-12);
    /* 190 requests x 100 decodes; 16 to a step; each step reads all weights, each decode the cache
     * of its 1000 prompt tokens, 131072 B each; 3.35 TB/s. */
    const double steps = 190.0 * 100 / 16;
    const double bytes = steps * 2 * (layer_weights + head_weights) + 190.0 * 100 * 1000 * 131072;
    const double busy = bytes / 3.35e12;
    assert_close(rg_least_busy(&run.space, c, &work, &run.requests, 190, RG_PART_WHOLE, &by), busy,
                 1e-12);
    assert_int_equal(by, RG_LEAST_BANDWIDTH);
    const rg_plan_bound bound = rg_plan_bound_of(&run.space, c, &work, &run.requests);
    assert_int_equal(bound.replicas, (int64_t)ceil(busy / (run.requests.span_s + 5)));
    rg_plan_release(&run);
}

static void a_shared_prefix_counts_once_at_most(void **state)
{
    static const char *const more[] = {"system-prompt=600", "isl=400", NULL};
    const rg_plan plan = plan_with(*state, hand, more);
    rg_plan_run run;
    assert_ok(rg_plan_prepare(*state, &plan, NULL, NULL, &run, &err));
    /* 600 common tokens may all be in a cache; 400 of each prompt never are */
    assert_true(run.requests.shared);
    assert_close(run.requests.least.fresh[200], 200.0 * 400, 1e-12);
    rg_plan_release(&run);
}

/* No count below the bound keeps the limits in simulation, on very different machines and loads,
 * and every simulated run is at least as long at work as the bound's work takes. */
static void no_simulation_beats_the_bound(void **state)
{
    static const char *const plans[][10] = {
        {"model=llama-3.1-8b", "hw=h100-sxm", "rate=60/s", "isl=lognormal:1500,cv=1",
         "osl=lognormal:60,cv=1", "ttft=p90:500ms", "limit=400", "tp=1,2", "pp=1", NULL},
        {"model=llama-3.1-8b", "hw=l4", "rate=6/s", "isl=300", "osl=lognormal:300,cv=0.5",
         "tpot=p90:100ms", "limit=300", "tp=1", "pp=1,2", NULL},
        {"model=mixtral-8x7b", "hw=a100-sxm-80gb", "rate=20/s", "isl=700", "osl=100", "e2e=p99:9s",
         "limit=300", "tp=2,4", "pp=1", NULL},
        {"model=llama-3.1-8b", "hw=l40s", "rate=25/s", "isl=900", "osl=120", "ttft=p95:800ms",
         "tpot=p95:60ms", "limit=300", "drafts=0,3", NULL},
        {"model=gpt-oss-20b", "hw=h100-sxm", "rate=80/s", "isl=900", "osl=150", "ttft=p95:800ms",
         "tpot=p95:60ms", "limit=300", "tp=1,2", NULL},
    };
    for (size_t p = 0; p < sizeof plans / sizeof plans[0]; p++) {
        const rg_plan plan = plan_with(*state, plans[p], NULL);
        const rg_trial_how how = {.speed_up = 1};
        rg_plan_run run;
        rg_least_works works = {0};
        assert_ok(rg_plan_prepare(*state, &plan, NULL, NULL, &run, &err));
        for (int i = 0; i < run.space.candidate_count; i++) {
            const rg_candidate *c = &run.space.candidates[i];
            rg_works_of work;
            rg_trial trial;
            if (!c->fits)
                continue;
            assert_ok(rg_least_work_of(*state, &works, &run.space, c, &run.requests, &work, &err));
            const rg_plan_bound bound = rg_plan_bound_of(&run.space, c, &work, &run.requests);
            for (int64_t r = 1; r <= bound.replicas + 1 && r <= 12; r++) {
                assert_ok(rg_trial_run(run.workers[0], c, &run.requests, r, &how, &trial, &err));
                assert_true(r >= bound.replicas || !trial.ok);
                assert_true(rg_plan_bound_kept(&run.space, c, &work, &run.requests, trial.busy_s));
            }
        }
        rg_plan_release(&run);
    }
}

static void a_limit_on_time_per_token_alone_implies_one_on_waiting(void **state)
{
    static const char *const more[] = {"tpot=p95:50ms", NULL};
    const rg_plan plan = plan_with(*state, hand, more);
    assert_int_equal(plan.limit_count, 2);
    assert_int_equal(plan.limits[1].metric, RG_PLAN_TTFT);
    assert_true(plan.limits[1].assumed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prompts_within_a_ttft_limit_by_hand, setup, teardown),
        cmocka_unit_test_setup_teardown(whole_requests_within_an_e2e_limit_by_hand, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_shared_prefix_counts_once_at_most, setup, teardown),
        cmocka_unit_test_setup_teardown(no_simulation_beats_the_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(a_limit_on_time_per_token_alone_implies_one_on_waiting,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tests/unit/plan/test_offline.c: throughput of requests that are all there at once. */
// SPDX-License-Identifier: Apache-2.0
#include "plan_fixture.h"

#include "plan/offline.h"

static const char *const base[] = {"model=llama-3.1-8b",
                                   "offline=true",
                                   "hw=h100-sxm,h200-sxm,b200-sxm",
                                   "tp=1,2,4",
                                   "pp=1",
                                   "scheduler=trtllm",
                                   "weight-type=fp8",
                                   "kv-type=fp8",
                                   "isl=1000",
                                   "osl=200",
                                   "limit=600",
                                   "goal=devices",
                                   NULL};

static void searched(rg_arena *arena, const rg_plan *plan, rg_plan_run *run)
{
    assert_ok(rg_plan_prepare(arena, plan, NULL, NULL, run, &err));
    assert_ok(rg_plan_offline_search(arena, run, &err));
}

/* Output tokens a second and device of the winner. */
static double best_of(rg_arena *arena, const char *const *more)
{
    const rg_plan plan = plan_with(arena, base, more);
    rg_plan_run run;
    rg_offline f;
    searched(arena, &plan, &run);
    assert_true(run.winner >= 0);
    assert_ok(rg_plan_offline_of(arena, &run, run.winner, &f, &err));
    /* a device second is what one output token costs, and the proved bound holds */
    assert_close(f.goal_per_token, f.devices / f.output_tokens_per_s, 1e-12);
    assert_true(f.bound_ratio > 0 && f.bound_ratio <= 1);
    rg_plan_release(&run);
    return f.output_tokens_per_s / f.devices;
}

static void what_is_ruled_out_would_not_have_won(void **state)
{
    static const char *const all[] = {"exhaustive=true", "pools=aggregated,1:1", "scheduler=vllm",
                                      NULL},
                             *const some[] = {"pools=aggregated,1:1", "scheduler=vllm", NULL};
    const rg_plan quick = plan_with(*state, base, some), whole = plan_with(*state, base, all);
    rg_plan_run a, b;
    searched(*state, &quick, &a);
    searched(*state, &whole, &b);
    assert_int_equal(a.winner, b.winner);
    assert_true(a.trials < b.trials);
    for (int i = 0; i < b.space.candidate_count; i++) {
        assert_true(b.outcomes[i].cost >= b.outcomes[b.winner].cost);
        /* the bound of what was not simulated is no more than what it takes */
        if (a.outcomes[i].state == RG_PLAN_PRUNED)
            assert_true(a.outcomes[i].cost <= b.outcomes[i].cost);
    }
    rg_plan_release(&a);
    rg_plan_release(&b);
}

static void longer_prompts_and_older_devices_give_less(void **state)
{
    static const char *const lengths[][2] = {
        {"isl=128", NULL}, {"isl=512", NULL}, {"isl=2048", NULL}, {"isl=8000", NULL}};
    static const char *const devices[][2] = {{"hw=a100-sxm-80gb", NULL},
                                             {"hw=h100-sxm", NULL},
                                             {"hw=h200-sxm", NULL},
                                             {"hw=b200-sxm", NULL}};
    double last = INFINITY;
    for (int i = 0; i < 4; i++) {
        const double now = best_of(*state, lengths[i]);
        assert_true(now < last);
        last = now;
    }
    last = 0;
    for (int i = 0; i < 4; i++) {
        const char *const more[] = {devices[i][0], "weight-type=bf16", "kv-type=bf16", NULL};
        const double now = best_of(*state, more);
        assert_true(now > last);
        last = now;
    }
}

static void a_limit_on_tpot_is_kept_and_costs_throughput(void **state)
{
    static const char *const limited[] = {"tpot=mean:15ms", "max-sequences=8,64,600", NULL},
                             *const loose[] = {"max-sequences=8,64,600", NULL};
    assert_true(best_of(*state, limited) < best_of(*state, loose));
    const rg_plan plan = plan_with(*state, base, limited);
    rg_plan_run run;
    searched(*state, &plan, &run);
    assert_true(run.outcomes[run.winner].at.tpot_mean <= 15e-3);
    rg_plan_release(&run);
}

/* Where attention is data parallel each rank schedules its own: vLLM's and TensorRT-LLM's limits
 * hold for each, SGLang's for all together; activations are those of one rank's tokens. */
static void limits_of_engines_hold_for_each_attention_rank(void **state)
{
    static const char *const more[] = {
        "model=deepseek-v2-lite",       "hw=h200-sxm", "tp=4", "ep=4", "attention-dp=false,true",
        "scheduler=vllm,trtllm,sglang", NULL};
    const rg_plan plan = plan_with(*state, base, more);
    rg_plan_run run;
    assert_ok(rg_plan_prepare(*state, &plan, NULL, NULL, &run, &err));
    const rg_candidate *c = run.space.candidates;
    assert_int_equal(run.space.candidate_count, 6);
    for (int e = 0; e < 3; e++) {
        const rg_candidate *whole = &c[e], *dealt = &c[3 + e];
        const int64_t ranks = whole->rules.policy == RG_POLICY_SGLANG ? 1 : 4;
        assert_int_equal(whole->rules.policy, dealt->rules.policy);
        assert_int_equal(dealt->rules.max_sequences, ranks * whole->rules.max_sequences);
        assert_int_equal(dealt->rules.max_batched_tokens, ranks * whole->rules.max_batched_tokens);
        assert_true(dealt->capacity.activation_bytes <= whole->capacity.activation_bytes * 1.5);
    }
    rg_plan_release(&run);
}

static void limits_on_waiting_and_arrivals_are_refused(void **state)
{
    static const char *const bad[] = {"rate=3/s", "users=3", "ttft=p95:1s", "e2e=p95:9s"};
    for (int i = 0; i < 4; i++) {
        rg_plan_text *text;
        rg_plan plan;
        char name[16];
        const char *sign = strchr(bad[i], '=');
        snprintf(name, sizeof name, "%.*s", (int)(sign - bad[i]), bad[i]);
        assert_ok(rg_plan_text_new(*state, &text, &err));
        assert_ok(rg_plan_text_add(text, "model", "llama-3.1-8b", RG_NOWHERE, &err));
        assert_ok(rg_plan_text_add(text, "offline", "true", RG_NOWHERE, &err));
        assert_ok(rg_plan_text_add(text, name, sign + 1, RG_NOWHERE, &err));
        assert_int_equal(rg_plan_read(text, &plan, &err), RG_ERR_USAGE);
        assert_non_null(strstr(err.text, name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_ruled_out_would_not_have_won, setup, teardown),
        cmocka_unit_test_setup_teardown(longer_prompts_and_older_devices_give_less, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_limit_on_tpot_is_kept_and_costs_throughput, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(limits_of_engines_hold_for_each_attention_rank, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(limits_on_waiting_and_arrivals_are_refused, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

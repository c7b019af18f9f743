/* Queues with known answers: a server that takes one request at a time. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "core/rng.h"
#include "serve/serve.h"

static rg_arena *arena;
static rg_err err;

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(1024);
    err = (rg_err){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

static rg_seconds constant_time(void *context, const rg_pass *pass)
{
    (void)pass;
    return RG_S(*(const double *)context);
}

static rg_seconds exponential_time(void *context, const rg_pass *pass)
{
    (void)pass;
    return RG_S(0.1 * rg_rng_exponential(context));
}

/* One request of one prompt and one output token is one step of one server. */
static rg_serve_result serve_one_by_one(rg_step_model step, double rate, int64_t requests,
                                        uint64_t seed)
{
    const rg_synth_spec spec = {.requests = requests,
                                .arrivals = {.kind = RG_ARRIVE_POISSON, .rate_per_s = rate},
                                .prompt = {.kind = RG_LENGTH_FIXED, .mean = 1},
                                .output = {.kind = RG_LENGTH_FIXED, .mean = 1},
                                .seed = seed};
    rg_requests *stream = NULL;
    assert_ok(rg_requests_synth(arena, &spec, &stream, &err));
    rg_deployment d = {.rules = rg_engine_rules_default(RG_POLICY_VLLM1),
                       .constants = {.kernel_scale = 1},
                       .step = step,
                       .replicas = 1,
                       .devices_per_replica = 1};
    d.rules.asynchronous = false;
    d.rules.max_sequences = 1;
    rg_serve_result result;
    assert_ok(rg_serve_run(arena, &d, stream, NULL, NULL, seed, &result, &err));
    assert_int_equal(result.finished, requests);
    return result;
}

/* M/D/1, Pollaczek-Khinchine: mean wait = rho d / (2 (1 - rho)). d = 0.1 s, rate 7/s: rho = 0.7,
 * wait = 0.7 * 0.1 / 0.6 = 0.116667 s, time in system 0.216667 s. */
static void mean_time_of_m_d_1_is_pollaczek_khinchine(void **state)
{
    (void)state;
    double service = 0.1;
    rg_serve_result r = serve_one_by_one(
        (rg_step_model){.step_time = constant_time, .context = &service}, 7, 400000, 11);
    const rg_sample_summary s = rg_sample_summarise(&r.e2e);
    assert_true(s.mean_half_width > 0 && s.mean_half_width < 0.01);
    assert_true(fabs(s.mean - 0.1 * (1 + 0.7 / 0.6)) < 1.5 * s.mean_half_width);
    /* The server is busy rho of the time; a relative 1 % is 5 sigma of Poisson counts here. */
    assert_close(r.busy_s / r.makespan_s, 0.7, 0.01);
}

/* M/M/1: mean time in system = 1 / (mu - lambda) = 1 / (10 - 7) s; quantile p of it is
 * -ln(1 - p) / (mu - lambda). */
static void times_of_m_m_1_are_exponential(void **state)
{
    (void)state;
    rg_rng rng;
    rg_rng_seed(&rng, 5, 99);
    rg_serve_result r = serve_one_by_one(
        (rg_step_model){.step_time = exponential_time, .context = &rng}, 7, 400000, 12);
    const rg_sample_summary s = rg_sample_summarise(&r.e2e);
    assert_true(fabs(s.mean - 1.0 / 3) < 1.5 * s.mean_half_width);
    /* Quantiles of correlated samples: relative interval of the mean, doubled. */
    const double wide = 2 * s.mean_half_width / s.mean;
    assert_close(s.p50, log(2) / 3, wide);
    assert_close(s.p90, log(10) / 3, wide);
    assert_close(s.p99, log(100) / 3, wide);
}

/* Little: mean number in system = rate x mean time; waiting_time integrates the queue only, so
 * queue = rate x mean wait. */
static void waiting_integral_obeys_little(void **state)
{
    (void)state;
    double service = 0.1;
    rg_serve_result r = serve_one_by_one(
        (rg_step_model){.step_time = constant_time, .context = &service}, 7, 200000, 13);
    rg_sample_summary wait = rg_sample_summarise(&r.queue);
    /* The queue is seen at the start of each step, so it lags arrivals by up to one service. */
    const double seen = r.waiting_time / r.makespan_s;
    assert_true(seen < 7 * wait.mean && seen > 7 * wait.mean - 7 * 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mean_time_of_m_d_1_is_pollaczek_khinchine, setup, teardown),
        cmocka_unit_test_setup_teardown(times_of_m_m_1_are_exponential, setup, teardown),
        cmocka_unit_test_setup_teardown(waiting_integral_obeys_little, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

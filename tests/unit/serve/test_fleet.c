/* Several replicas: routers, split pools, replicas that come and go. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "serve/replica.h"

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

/* 10 ms + 50 us a prompt token + 0.1 ms a decode. */
static rg_seconds linear_time(void *context, const rg_pass *pass)
{
    (void)context;
    double t = 0.01 + 1e-4 * (double)pass->decodes;
    for (int i = 0; i < pass->chunk_count; i++)
        t += 5e-5 * (double)pass->chunks[i].new_tokens;
    return RG_S(t);
}

static rg_deployment deployment(int64_t replicas, rg_router router)
{
    rg_deployment d = {.rules = rg_engine_rules_default(RG_POLICY_VLLM1),
                       .constants = {.kernel_scale = 1},
                       .step = {.step_time = linear_time, .context = NULL},
                       .replicas = replicas,
                       .router = router,
                       .devices_per_replica = 1,
                       .devices_per_prefill_replica = 1};
    d.rules.blocks = 4000;
    d.rules.kv_bytes_per_token = 131072;
    return d;
}

/* Schedulers of engines that send KV from one pool to another. */
static const rg_policy_kind splitting[] = {RG_POLICY_VLLM1, RG_POLICY_SGLANG,
                                           RG_POLICY_TRT_NO_EVICT, RG_POLICY_TRT_MAX_UTILISATION};
enum { SPLITTING = sizeof splitting / sizeof splitting[0] };

static rg_deployment of_policy(rg_policy_kind policy, int64_t replicas, int64_t tokens)
{
    rg_deployment d = deployment(replicas, RG_ROUTE_LEAST_LOADED);
    d.rules = rg_engine_rules_default(policy);
    d.rules.blocks = tokens / d.rules.block_tokens;
    d.rules.kv_bytes_per_token = 131072;
    return d;
}

static rg_synth_spec load(int64_t requests, double rate)
{
    return (rg_synth_spec){
        .requests = requests,
        .arrivals = {.kind = RG_ARRIVE_POISSON, .rate_per_s = rate},
        .prompt = {.kind = RG_LENGTH_LOGNORMAL, .mean = 600, .cv = 1, .least = 8, .most = 4000},
        .output = {.kind = RG_LENGTH_LOGNORMAL, .mean = 100, .cv = 1, .least = 1, .most = 500},
        .seed = 4};
}

static rg_serve_result run(const rg_deployment *d, const rg_synth_spec *spec,
                           const rg_observer *observer)
{
    rg_requests *stream;
    rg_serve_result result;
    assert_ok(rg_requests_synth(arena, spec, &stream, &err));
    assert_ok(rg_serve_run(arena, d, stream, NULL, observer, 1, &result, &err));
    assert_int_equal(result.finished, spec->requests);
    return result;
}

typedef struct counts {
    int64_t of[8];
    int64_t session_replica[400];
    int64_t moved;
    double end_s[8];
} counts;

static void count(void *context, const rg_served *s)
{
    counts *c = context;
    c->of[s->replica]++;
}

static void round_robin_gives_each_its_turn(void **state)
{
    (void)state;
    counts c = {0};
    const rg_observer o = {.context = &c, .served = count};
    const rg_synth_spec spec = load(300, 20);
    const rg_deployment d = deployment(3, RG_ROUTE_ROUND_ROBIN);
    run(&d, &spec, &o);
    for (int i = 0; i < 3; i++)
        assert_int_equal(c.of[i], 100);
}

static void least_loaded_waits_less_than_round_robin(void **state)
{
    (void)state;
    const rg_synth_spec spec = load(3000, 55);
    rg_deployment d = deployment(4, RG_ROUTE_ROUND_ROBIN);
    d.rules.max_sequences = 16;
    rg_serve_result turn = run(&d, &spec, NULL);
    d.router = RG_ROUTE_LEAST_LOADED;
    rg_serve_result least = run(&d, &spec, NULL);
    assert_true(rg_sample_summarise(&least.ttft).mean < rg_sample_summarise(&turn.ttft).mean);
}

/* Sessions whose turns share text find it where they were before. */
static void session_and_prefix_routers_find_more_in_the_cache(void **state)
{
    (void)state;
    rg_synth_spec spec = load(1200, 6);
    spec.prompt.most = 800;
    spec.sessions = (rg_session_spec){.turns = 4, .think_s = 1};
    rg_deployment d = deployment(4, RG_ROUTE_ROUND_ROBIN);
    const int64_t turn = run(&d, &spec, NULL).hit_tokens;
    d.router = RG_ROUTE_SESSION;
    const int64_t session = run(&d, &spec, NULL).hit_tokens;
    d.router = RG_ROUTE_PREFIX;
    const int64_t prefix = run(&d, &spec, NULL).hit_tokens;
    assert_true(session > 2 * turn);
    assert_true(prefix > 2 * turn);
}

/* All prompts begin alike, so every cache that was used once matches; SGLang's router still sends
 * none to a replica that has over 64 requests, and half as many again, more than the idlest. */
static void prefix_router_heeds_the_load(void **state)
{
    (void)state;
    rg_synth_spec spec = load(2000, 60);
    spec.prompt.most = 800;
    spec.sessions = (rg_session_spec){.turns = 1, .system_tokens = 1600};
    rg_deployment d = deployment(2, RG_ROUTE_LEAST_LOADED);
    const rg_serve_result least = run(&d, &spec, NULL);
    assert_int_equal(least.balanced, 0);
    d.router = RG_ROUTE_PREFIX;
    const rg_serve_result prefix = run(&d, &spec, NULL);
    assert_true(prefix.balanced > 0);
    assert_int_equal(prefix.routed[0] + prefix.routed[1], 2000);
    assert_true(prefix.routed[1] > 600);
    assert_true(prefix.makespan_s < 1.1 * least.makespan_s);
}

/* Below the threshold of balance the longest match decides alone. */
static void prefix_router_keeps_few_requests_together(void **state)
{
    (void)state;
    rg_synth_spec spec = load(200, 2);
    spec.prompt.most = 800;
    spec.sessions = (rg_session_spec){.turns = 1, .system_tokens = 1600};
    const rg_deployment d = deployment(2, RG_ROUTE_PREFIX);
    const rg_serve_result r = run(&d, &spec, NULL);
    assert_int_equal(r.balanced, 0);
    assert_true(r.hit_tokens > 200 * 1500);
}

/* One request: prefill step of 0.01 + 1000 x 5e-5 = 0.06 s gives the first token. KV of 1000 tokens
 * x 131,072 B at 1 GB/s is 0.131072 s; latency 1 ms. Then 9 decode steps of 10.1 ms. */
static void split_pools_send_kv_before_they_decode(void **state)
{
    (void)state;
    const rg_synth_spec spec = {.requests = 1,
                                .arrivals = {.kind = RG_ARRIVE_AT_ONCE},
                                .prompt = {.kind = RG_LENGTH_FIXED, .mean = 1000},
                                .output = {.kind = RG_LENGTH_FIXED, .mean = 10}};
    for (int p = 0; p < SPLITTING; p++) {
        rg_deployment d = of_policy(splitting[p], 1, 64000);
        d.prefill_replicas = 1;
        d.prefill_rules = d.rules;
        d.prefill_step = d.step;
        d.transfer_bytes_per_s = 1e9;
        d.transfer_latency_s = 1e-3;
        d.layers = 32;
        rg_serve_result r = run(&d, &spec, NULL);
        assert_close(r.ttft.sum, 0.06, 1e-9);
        assert_close(r.transfer_bytes, 131072e3, 1e-12);
        assert_close(r.e2e.sum, 0.06 + 0.131072 + 0.001 + 9 * 0.0101, 1e-9);
        /* Sent layer by layer, 0.06 s are hidden behind the prefill. */
        d.transfer_overlap = true;
        r = run(&d, &spec, NULL);
        assert_close(r.e2e.sum, 0.06 + 0.071072 + 0.001 + 9 * 0.0101, 1e-9);
        /* On a fast link the last layer remains. */
        d.transfer_bytes_per_s = 1e11;
        r = run(&d, &spec, NULL);
        assert_close(r.e2e.sum, 0.06 + 131072e3 / 1e11 / 32 + 0.001 + 9 * 0.0101, 1e-9);
    }
}

/* Decodes are no longer held up by prompts, so gaps between tokens are even. */
static void split_pools_keep_gaps_between_tokens_even(void **state)
{
    (void)state;
    const rg_synth_spec spec = load(1500, 14);
    rg_deployment d = deployment(2, RG_ROUTE_LEAST_LOADED);
    rg_serve_result mixed = run(&d, &spec, NULL);
    d.replicas = 1;
    d.prefill_replicas = 1;
    d.prefill_rules = d.rules;
    d.prefill_step = d.step;
    d.transfer_bytes_per_s = 50e9;
    d.layers = 32;
    rg_serve_result split = run(&d, &spec, NULL);
    assert_int_equal(split.transfers, 1500);
    assert_true(rg_sample_summarise(&split.gap).p90 < rg_sample_summarise(&mixed.gap).p90);
    assert_int_equal(split.output_tokens, mixed.output_tokens);
}

static void check_blocks(void *context, const rg_replica *r, const rg_batch *batch)
{
    int64_t *violations = context;
    *violations += !rg_kv_conserved(&r->pool) || rg_kv_used(&r->pool) > r->pool.total - 1;
    *violations += batch->end_s <= batch->start_s;
}

/* Memory that is full on either side holds requests back; nothing is lost and nobody starves. */
static void split_pools_keep_their_blocks_when_memory_is_short(void **state)
{
    (void)state;
    rg_synth_spec spec = load(800, 30);
    spec.prompt.most = 2000;
    for (int i = 0; i < 2 * SPLITTING; i++) {
        rg_deployment d = of_policy(splitting[i / 2], 2, 4160); /* two of the longest */
        d.rules.prefix_caching = i % 2;
        d.prefill_replicas = 1;
        d.prefill_rules = d.rules;
        d.prefill_rules.blocks = 2560 / d.rules.block_tokens;
        d.prefill_step = d.step;
        d.transfer_bytes_per_s = 2e9;
        d.transfer_latency_s = 1e-3;
        d.layers = 32;
        int64_t violations = 0;
        const rg_observer o = {.context = &violations, .inspect = check_blocks};
        const rg_serve_result r = run(&d, &spec, &o);
        assert_int_equal(violations, 0);
        assert_int_equal(r.refused, 0);
        print_message("%s: %lld steps, %lld preemptions, makespan %.2f s\n",
                      rg_policy_names[d.rules.policy], (long long)r.steps, (long long)r.preemptions,
                      r.makespan_s);
        const rg_serve_result skipped = run(&d, &spec, NULL);
        assert_true(r.e2e.sum == skipped.e2e.sum && r.steps == skipped.steps);
    }
}

static void replicas_come_with_load_and_go_without(void **state)
{
    (void)state;
    rg_synth_spec spec = load(4000, 40);
    rg_deployment d = deployment(1, RG_ROUTE_LEAST_LOADED);
    d.rules.max_sequences = 32;
    rg_serve_result fixed = run(&d, &spec, NULL);
    d.autoscale = (rg_autoscale){.on = true,
                                 .least = 1,
                                 .most = 6,
                                 .target_waiting = 4,
                                 .idle_waiting = 0.5,
                                 .start_s = 5,
                                 .interval_s = 2};
    rg_serve_result scaled = run(&d, &spec, NULL);
    assert_true(scaled.most_replicas > 1 && scaled.most_replicas <= 6);
    assert_true(rg_sample_summarise(&scaled.ttft).mean < rg_sample_summarise(&fixed.ttft).mean / 2);
    /* Replicas exist only while they are wanted. */
    assert_true(scaled.replica_s < 6 * scaled.makespan_s);
}

/* A step says how long its work would take at full power; the rest of the time devices idle. */
static double work_s;
static rg_seconds half_power(void *context, const rg_pass *pass)
{
    const rg_seconds t = linear_time(context, pass);
    work_s = t.v / 2;
    return t;
}

/* Two devices, 100 W idle and 700 W at most: at half power E = 2 (100 T + 600 B / 2), with T the
 * time there is and B the time computing, by a grid of lengths or without. Without the word of the
 * step model all of B is at 700 W. */
static void energy_follows_the_work_of_steps(void **state)
{
    (void)state;
    const rg_synth_spec spec = load(300, 4);
    rg_deployment d = deployment(1, RG_ROUTE_ROUND_ROBIN);
    d.devices_per_replica = 2;
    d.idle_watts = 100;
    d.busy_watts = 700;
    rg_serve_result r = run(&d, &spec, NULL);
    assert_close(r.energy_j, 2 * (100 * r.makespan_s + 600 * r.busy_s), 1e-9);
    d.step = (rg_step_model){.step_time = half_power, .full_power_s = &work_s};
    for (int grid = 0; grid < 2; grid++) {
        d.step.costly = grid;
        r = run(&d, &spec, NULL);
        assert_close(r.energy_j, 2 * (100 * r.makespan_s + 300 * r.busy_s), 1e-9);
    }
}

/* 10 requests a second of 100 + 400 tokens: in steady state 10 requests and 4000 new tokens a
 * second, though the whole run also waits for the last ones. A run whose arrivals end before
 * three lives have passed has no steady state. */
static void steady_state_is_the_rate_of_arrivals(void **state)
{
    (void)state;
    rg_synth_spec spec = {.requests = 1000,
                          .arrivals = {.kind = RG_ARRIVE_UNIFORM, .rate_per_s = 10},
                          .prompt = {.kind = RG_LENGTH_FIXED, .mean = 100},
                          .output = {.kind = RG_LENGTH_FIXED, .mean = 400},
                          .seed = 1};
    const rg_deployment d = deployment(1, RG_ROUTE_ROUND_ROBIN);
    const rg_serve_result r = run(&d, &spec, NULL);
    assert_true(r.steady.known);
    assert_true(1000 / r.makespan_s < 9.5);
    assert_close(r.steady.requests_per_s, 10, 0.01);
    assert_close(r.steady.output_tokens_per_s, 4000, 0.01);
    assert_close(r.steady.total_tokens_per_s, 5000, 0.01);
    assert_true(r.steady.to_s <= 99.9 + 1e-9);
    spec.requests = 20;
    assert_false(run(&d, &spec, NULL).steady.known);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    rg_requests *stream;
    rg_serve_result result;
    const rg_synth_spec spec = load(10, 1);
    assert_ok(rg_requests_synth(arena, &spec, &stream, &err));
    rg_deployment d = deployment(1, RG_ROUTE_ROUND_ROBIN);
    d.rules = rg_engine_rules_default(RG_POLICY_SARATHI);
    d.rules.speculation.drafts = 3;
    assert_int_equal(rg_serve_run(arena, &d, stream, NULL, NULL, 1, &result, &err), RG_ERR_USAGE);
    assert_non_null(strstr(err.text, "'sarathi'"));
    err = (rg_err){0};
    d = deployment(1, RG_ROUTE_ROUND_ROBIN);
    d.rules.rule.window = 100;
    assert_int_equal(rg_serve_run(arena, &d, stream, NULL, NULL, 1, &result, &err), RG_ERR_USAGE);
    err = (rg_err){0};
    d = deployment(1, RG_ROUTE_ROUND_ROBIN);
    d.rules.policy = RG_POLICY_ORCA;
    assert_int_equal(rg_serve_run(arena, &d, stream, NULL, NULL, 1, &result, &err), RG_ERR_USAGE);
    assert_non_null(strstr(err.text, "'orca'"));
    err = (rg_err){0};
    d = deployment(1, RG_ROUTE_ROUND_ROBIN);
    d.rules = rg_engine_rules_default(RG_POLICY_SGLANG);
    d.rules.longest_prefix_first = d.rules.by_priority = true;
    assert_int_equal(rg_serve_run(arena, &d, stream, NULL, NULL, 1, &result, &err), RG_ERR_USAGE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(round_robin_gives_each_its_turn),
        TEST(least_loaded_waits_less_than_round_robin),
        TEST(session_and_prefix_routers_find_more_in_the_cache),
        TEST(prefix_router_heeds_the_load),
        TEST(prefix_router_keeps_few_requests_together),
        TEST(split_pools_send_kv_before_they_decode),
        TEST(split_pools_keep_gaps_between_tokens_even),
        TEST(split_pools_keep_their_blocks_when_memory_is_short),
        TEST(replicas_come_with_load_and_go_without),
        TEST(energy_follows_the_work_of_steps),
        TEST(steady_state_is_the_rate_of_arrivals),
        TEST(contradictions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Laws that every scheduler keeps at every step, on mixed loads that overfill memory. */
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

/* 5 ms + 20 us a token + 20 ns a token of KV. */
static rg_seconds linear_time(void *context, const rg_pass *pass)
{
    (void)context;
    double t = 0.005 + 2e-5 * (double)pass->decodes + 2e-8 * pass->decode_kv_tokens;
    for (int i = 0; i < pass->chunk_count; i++)
        t += 2e-5 * (double)pass->chunks[i].new_tokens;
    return RG_S(t);
}

typedef struct watch {
    int64_t budget, most_sequences, tokens_emitted, violations;
    int64_t last_first_scheduled; /* arrival order of the latest first schedule */
    int64_t out_of_order;
    double last_end_s;
    double *waited; /* [3] by priority, index % 3 */
} watch;

static void note_wait(void *context, const rg_served *s)
{
    watch *w = context;
    w->waited[s->index % 3] += s->first_token_s - s->arrival_s;
}

static void look(void *context, const rg_replica *r, const rg_batch *b)
{
    watch *w = context;
    int64_t tokens = 0;
    for (int i = 0; i < b->count; i++) {
        const rg_live *live = b->entries[i].live;
        tokens += b->entries[i].k;
        w->tokens_emitted += b->entries[i].emits;
        w->violations += live->c > live->n + live->o - 1 && r->rules->speculation.drafts == 0;
        w->violations += b->entries[i].chunk && r->preempted_now && live->c == b->entries[i].k &&
                         live->preemptions == 0 && live->cached == 0 && live->gs == 0 &&
                         live->scheduled_s == b->start_s && i >= r->running_count;
        if (b->entries[i].chunk && live->scheduled_s == b->start_s && live->preemptions == 0) {
            w->out_of_order += live->order < w->last_first_scheduled;
            w->last_first_scheduled = live->order;
        }
    }
    w->violations += tokens != b->tokens;
    w->violations += b->tokens > w->budget;
    w->violations += r->running_count > w->most_sequences;
    w->violations += b->start_s < w->last_end_s || !(b->end_s > b->start_s);
    w->last_end_s = b->end_s;
    w->violations += !rg_kv_conserved(&r->pool);
}

static rg_synth_spec load(int64_t requests, double rate)
{
    return (rg_synth_spec){
        .requests = requests,
        .arrivals = {.kind = RG_ARRIVE_POISSON, .rate_per_s = rate},
        .prompt = {.kind = RG_LENGTH_LOGNORMAL, .mean = 300, .cv = 1.2, .least = 1, .most = 1500},
        .output = {.kind = RG_LENGTH_LOGNORMAL, .mean = 120, .cv = 1, .least = 1, .most = 500},
        .seed = 7};
}

static rg_serve_result run(const rg_deployment *d, const rg_synth_spec *spec,
                           const rg_observer *observer)
{
    rg_requests *stream = NULL;
    assert_ok(rg_requests_synth(arena, spec, &stream, &err));
    rg_serve_result result;
    assert_ok(rg_serve_run(arena, d, stream, NULL, observer, 3, &result, &err));
    return result;
}

static rg_deployment deployment(rg_policy_kind policy)
{
    rg_deployment d = {.rules = rg_engine_rules_default(policy),
                       .constants = {.kernel_scale = 1, .step_overhead_s = 0.001},
                       .step = {.step_time = linear_time, .context = NULL},
                       .replicas = 1,
                       .devices_per_replica = 1};
    d.rules.max_sequences = 48;
    d.rules.max_batched_tokens = 2048;
    d.rules.max_model_tokens = 2048;
    d.rules.blocks = 250 * 16 / d.rules.block_tokens;
    d.rules.kv_bytes_per_token = 131072;
    d.rules.host_bytes_per_s = 25e9;
    return d;
}

static int64_t outputs_of(const rg_synth_spec *spec)
{
    rg_requests *stream = NULL;
    rg_request request;
    bool more = true;
    int64_t sum = 0;
    assert_ok(rg_requests_synth(arena, spec, &stream, &err));
    while (more) {
        assert_ok(rg_requests_next(stream, &request, &more, &err));
        sum += more ? request.output_tokens : 0;
    }
    return sum;
}

static void every_policy_conserves_blocks_budget_and_tokens(void **state)
{
    (void)state;
    const rg_synth_spec spec = load(600, 25);
    const int64_t outputs = outputs_of(&spec);
    for (int p = 0; p < RG_POLICY_COUNT; p++) {
        rg_deployment d = deployment((rg_policy_kind)p);
        watch w = {.budget =
                       p == RG_POLICY_ORCA || p == RG_POLICY_STATIC || p == RG_POLICY_TRT_STATIC
                           ? INT64_MAX
                           : d.rules.max_batched_tokens,
                   .most_sequences = d.rules.max_sequences};
        const rg_observer observer = {.context = &w, .inspect = look};
        const rg_serve_result r = run(&d, &spec, &observer);
        print_message("%s: %lld steps, %lld preemptions, %lld recomputed, makespan %.2f s\n",
                      rg_policy_names[p], (long long)r.steps, (long long)r.preemptions,
                      (long long)r.recomputed_tokens, r.makespan_s);
        assert_int_equal(w.violations, 0);
        assert_int_equal(r.finished, 600);
        assert_int_equal(r.output_tokens, outputs);
        /* Nothing is emitted twice or lost; a token in flight at a preemption still counts. */
        assert_int_equal(w.tokens_emitted, outputs);
        assert_true(r.most_blocks <= d.rules.blocks - 1);
    }
}

/* The same laws with drafts, where memory is short: what in flight is lost to a preemption is
 * computed again, nothing is emitted twice, and no token of a request that has ended counts. */
static void drafts_keep_the_laws(void **state)
{
    (void)state;
    static const rg_policy_kind kinds[] = {RG_POLICY_VLLM1, RG_POLICY_VLLM1, RG_POLICY_SGLANG,
                                           RG_POLICY_TRT_NO_EVICT, RG_POLICY_TRT_MAX_UTILISATION};
    const rg_synth_spec spec = load(600, 40);
    const int64_t outputs = outputs_of(&spec);
    for (int i = 0; i < 5; i++) {
        rg_deployment d = deployment(kinds[i]);
        d.rules.asynchronous = i == 0;
        d.rules.speculation = (rg_speculation){.drafts = 3, .acceptance = 0.6};
        watch w = {.budget = d.rules.max_batched_tokens, .most_sequences = d.rules.max_sequences};
        const rg_observer observer = {.context = &w, .inspect = look};
        const rg_serve_result r = run(&d, &spec, &observer);
        print_message("%s: %lld steps, %lld preemptions, %lld recomputed, makespan %.2f s\n",
                      rg_policy_names[kinds[i]], (long long)r.steps, (long long)r.preemptions,
                      (long long)r.recomputed_tokens, r.makespan_s);
        assert_int_equal(w.violations, 0);
        assert_int_equal(r.finished, 600);
        assert_int_equal(r.output_tokens, outputs);
        assert_true(r.most_blocks <= d.rules.blocks - 1);
        assert_close((double)r.accepted_drafts / (double)r.drafts, (0.6 + 0.36 + 0.216) / 3, 0.02);
        const rg_serve_result again = run(&d, &spec, NULL);
        assert_true(again.e2e.sum == r.e2e.sum && again.steps == r.steps);
    }
}

static void first_schedules_follow_arrival_without_preemption(void **state)
{
    (void)state;
    const rg_synth_spec spec = load(400, 12);
    for (int p = 0; p < RG_POLICY_COUNT; p++) {
        rg_deployment d = deployment((rg_policy_kind)p);
        d.rules.blocks = 0;
        watch w = {.budget = INT64_MAX, .most_sequences = 48};
        const rg_observer observer = {.context = &w, .inspect = look};
        const rg_serve_result r = run(&d, &spec, &observer);
        assert_int_equal(r.preemptions, 0);
        assert_int_equal(r.recomputed_tokens, 0);
        assert_int_equal(w.out_of_order, 0);
    }
}

/* Skipping equal steps is an optimisation, so it must change nothing at all. */
static void skipping_equal_steps_changes_no_bit(void **state)
{
    (void)state;
    rg_synth_spec spec = load(600, 6);
    for (int p = 0; p < 2 * RG_POLICY_COUNT; p++) {
        if (p == RG_POLICY_COUNT) { /* again, with text that turns share */
            spec.sessions = (rg_session_spec){.turns = 3, .think_s = 1, .system_tokens = 50};
            spec.prompt.most = 400;
            spec.output.most = 200;
        }
        for (int asynchronous = 0; asynchronous < (p % RG_POLICY_COUNT == RG_POLICY_VLLM1 ? 2 : 1);
             asynchronous++) {
            rg_deployment d = deployment((rg_policy_kind)(p % RG_POLICY_COUNT));
            d.rules.asynchronous = asynchronous;
            watch w = {.budget = INT64_MAX, .most_sequences = 48};
            const rg_observer observer = {.context = &w, .inspect = look};
            rg_serve_result a = run(&d, &spec, NULL), b = run(&d, &spec, &observer);
            assert_int_equal(a.steps, b.steps);
            assert_int_equal(a.preemptions, b.preemptions);
            assert_int_equal(a.recomputed_tokens, b.recomputed_tokens);
            assert_true(a.makespan_s == b.makespan_s);
            assert_true(a.e2e.sum == b.e2e.sum);
            assert_true(a.ttft.sum == b.ttft.sum);
            assert_int_equal(a.gap.count, b.gap.count);
            assert_true(a.kv_time == b.kv_time);
        }
    }
}

static void prefix_cache_changes_no_token_count(void **state)
{
    (void)state;
    rg_synth_spec spec = load(400, 6);
    spec.sessions = (rg_session_spec){.turns = 3, .think_s = 2, .system_tokens = 100};
    spec.prompt.most = 400;
    spec.output.most = 200;
    for (int p = 0; p < RG_POLICY_COUNT; p++) {
        rg_deployment d = deployment((rg_policy_kind)p);
        d.rules.max_batched_tokens = 4096;
        d.rules.blocks *= 8;
        d.rules.prefix_caching = true;
        const rg_serve_result on = run(&d, &spec, NULL);
        d.rules.prefix_caching = false;
        const rg_serve_result off = run(&d, &spec, NULL);
        assert_int_equal(on.finished, 400);
        assert_int_equal(off.finished, 400);
        assert_int_equal(off.hit_tokens, 0);
        assert_int_equal(on.output_tokens, off.output_tokens);
        if (p != RG_POLICY_STATIC && p != RG_POLICY_TRT_STATIC) {
            assert_true(on.hit_tokens > 0);
            assert_true(on.prefill_tokens < off.prefill_tokens);
        }
    }
}

/* One request alone: chunks of 2048, 2048 and 904 tokens. */
static void alone_ttft_is_the_sum_of_its_chunk_times(void **state)
{
    (void)state;
    rg_synth_spec spec = {.requests = 1,
                          .arrivals = {.kind = RG_ARRIVE_AT_ONCE},
                          .prompt = {.kind = RG_LENGTH_FIXED, .mean = 5000},
                          .output = {.kind = RG_LENGTH_FIXED, .mean = 1}};
    rg_deployment d = deployment(RG_POLICY_VLLM1);
    d.rules.max_model_tokens = 8192;
    d.rules.blocks = 1000;
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        d.rules.asynchronous = asynchronous;
        const rg_serve_result r = run(&d, &spec, NULL);
        const double want = 3 * (0.005 + 0.001) + 5000 * 2e-5;
        assert_close(r.ttft.sum, want, 1e-12);
        assert_int_equal(r.steps, 3);
    }
}

/* Rules by hand: step of 1 s, arrivals at 0 and 0.5, one prompt token, 3 output tokens.
 * Synchronous: the second joins at 1, first token at 2. Asynchronous: at 0 two steps are decided,
 * 0-1 and 1-2; at 1 the second is seen, its step is 2-3. */
static rg_seconds one_second(void *context, const rg_pass *pass)
{
    (void)context;
    (void)pass;
    return RG_S(1);
}

static void asynchronous_scheduling_costs_one_more_step(void **state)
{
    (void)state;
    rg_synth_spec spec = {.requests = 2,
                          .arrivals = {.kind = RG_ARRIVE_UNIFORM, .rate_per_s = 2},
                          .prompt = {.kind = RG_LENGTH_FIXED, .mean = 1},
                          .output = {.kind = RG_LENGTH_FIXED, .mean = 3}};
    rg_deployment d = deployment(RG_POLICY_VLLM1);
    d.constants.step_overhead_s = 0;
    d.step.step_time = one_second;
    /* arrivals at 0.5 and 1.0: shift by 0.5 */
    d.rules.asynchronous = false;
    rg_serve_result sync = run(&d, &spec, NULL);
    d.rules.asynchronous = true;
    rg_serve_result async = run(&d, &spec, NULL);
    assert_close(sync.ttft.exact[0] + sync.ttft.exact[1], 1 + 1.5, 1e-12);
    assert_close(async.ttft.exact[0] + async.ttft.exact[1], 1 + 2.5, 1e-12);
    /* The first takes 3 steps either way: nothing more is scheduled once its last is in flight. */
    assert_close(sync.e2e.exact[0], 3, 1e-12);
    assert_close(async.e2e.exact[0], 3, 1e-12);
}

static void same_seed_gives_the_same_result(void **state)
{
    (void)state;
    const rg_synth_spec spec = load(300, 12);
    rg_deployment d = deployment(RG_POLICY_VLLM1);
    d.replicas = 3;
    d.router = RG_ROUTE_LEAST_LOADED;
    const rg_serve_result a = run(&d, &spec, NULL), b = run(&d, &spec, NULL);
    assert_true(a.e2e.sum == b.e2e.sum && a.steps == b.steps && a.gap.sum == b.gap.sum);
}

/* vLLM v1 preempts by recomputation; what was computed stays cached until reused, so resuming
 * recomputes less than was lost. */
static void preempted_requests_find_their_blocks_again(void **state)
{
    (void)state;
    const rg_synth_spec spec = load(600, 25);
    rg_deployment d = deployment(RG_POLICY_VLLM1);
    const rg_serve_result on = run(&d, &spec, NULL);
    d.rules.prefix_caching = false;
    const rg_serve_result off = run(&d, &spec, NULL);
    assert_true(on.preemptions > 0 && off.preemptions > 0);
    assert_true((double)on.recomputed_tokens / (double)on.preemptions <
                (double)off.recomputed_tokens / (double)off.preemptions);
}

/* Of two classes that arrive alike, the first waits less; laws hold although victims may have been
 * scheduled in the very step that preempts them. */
static void priorities_are_served_first_and_keep_the_laws(void **state)
{
    (void)state;
    enum { COUNT = 600 };
    const rg_synth_spec spec = load(COUNT, 25);
    rg_requests *stream;
    static rg_request requests[COUNT];
    bool more;
    int64_t outputs = 0;
    assert_ok(rg_requests_synth(arena, &spec, &stream, &err));
    for (int i = 0; i < COUNT; i++) {
        assert_ok(rg_requests_next(stream, &requests[i], &more, &err));
        requests[i].priority = i % 3;
        outputs += requests[i].output_tokens;
    }
    for (int i = 0; i < 4; i++) {
        rg_deployment d = deployment(RG_POLICY_VLLM1);
        d.rules.by_priority = true;
        d.rules.asynchronous = i % 2;
        d.rules.speculation = (rg_speculation){.drafts = i / 2 * 3, .acceptance = 0.6};
        watch w = {.budget = d.rules.max_batched_tokens, .most_sequences = d.rules.max_sequences};
        double waited[3] = {0};
        w.waited = waited;
        const rg_observer observer = {.context = &w, .inspect = look, .served = note_wait};
        rg_serve_result r;
        assert_ok(rg_requests_array(arena, requests, COUNT, &stream, &err));
        assert_ok(rg_serve_run(arena, &d, stream, NULL, &observer, 3, &r, &err));
        assert_int_equal(w.violations, 0);
        assert_int_equal(r.finished, COUNT);
        assert_int_equal(r.output_tokens, outputs);
        assert_true(r.preemptions > 0);
        assert_true(waited[0] < waited[1] && waited[1] < waited[2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drafts_keep_the_laws, setup, teardown),
        cmocka_unit_test_setup_teardown(every_policy_conserves_blocks_budget_and_tokens, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(first_schedules_follow_arrival_without_preemption, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(skipping_equal_steps_changes_no_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(prefix_cache_changes_no_token_count, setup, teardown),
        cmocka_unit_test_setup_teardown(alone_ttft_is_the_sum_of_its_chunk_times, setup, teardown),
        cmocka_unit_test_setup_teardown(asynchronous_scheduling_costs_one_more_step, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(priorities_are_served_first_and_keep_the_laws, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(same_seed_gives_the_same_result, setup, teardown),
        cmocka_unit_test_setup_teardown(preempted_requests_find_their_blocks_again, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

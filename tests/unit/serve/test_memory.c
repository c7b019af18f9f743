/* KV memory: the free queue, names and sharing of blocks; exact prefix hits; paging against
 * contiguous memory; windows, tiers, speculation. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "serve/replica.h"

static rg_arena *arena;
static rg_err err;

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(1500);
    err = (rg_err){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rg_arena_free(arena);
    return 0;
}

static rg_kv_seq sequence(rg_kv_pool *pool, const rg_segment *segments, int count)
{
    rg_kv_seq seq;
    rg_kv_open(pool, &seq, 1000, segments, count, 99);
    seq.shareable = true;
    return seq;
}

/* Pool of 6 blocks, one reserved. A sequence of 3 named blocks is freed: they follow the untouched
 * two in the queue, tail first, so the third block taken forgets the last of them, the fourth the
 * one before. */
static void free_queue_reuses_untouched_blocks_then_tails(void **state)
{
    (void)state;
    const rg_segment text[] = {{7, 12}};
    rg_kv_pool pool;
    assert_ok(rg_kv_start(&pool, arena, 6, 4, true, &err));
    rg_kv_seq a = sequence(&pool, text, 1), other = sequence(&pool, NULL, 0);
    rg_kv_take(&pool, &a, 3);
    rg_kv_register(&pool, &a, 12);
    rg_kv_release(&pool, &a);
    assert_int_equal(pool.free_count, 5);
    const int32_t known[] = {3, 3, 2, 1, 0};
    for (int i = 0; i < 5; i++) {
        rg_kv_seq again = sequence(&pool, text, 1);
        rg_kv_take(&pool, &other, 1);
        assert_int_equal(rg_kv_peek(&pool, &again, 12), known[i]);
        assert_true(rg_kv_conserved(&pool));
        rg_kv_close(&pool, &again);
    }
    assert_false(rg_kv_fits(&pool, 1));
    rg_kv_release(&pool, &other);
    assert_int_equal(pool.free_count, 5);
    assert_true(rg_kv_conserved(&pool));
}

/* Prompts of 12 tokens in blocks of 4 that agree in the first 9: two full blocks are shared, the
 * third block differs although its first token is the same. */
static void full_blocks_of_a_common_prefix_are_shared(void **state)
{
    (void)state;
    const rg_segment first[] = {{7, 9}, {8, 3}}, second[] = {{7, 9}, {9, 3}};
    rg_kv_pool pool;
    assert_ok(rg_kv_start(&pool, arena, 10, 4, true, &err));
    rg_kv_seq a = sequence(&pool, first, 2), b = sequence(&pool, second, 2);
    int32_t unused;
    rg_kv_take(&pool, &a, 3);
    rg_kv_register(&pool, &a, 12);
    assert_int_equal(rg_kv_lookup(&pool, &b, 11, &unused), 2);
    assert_int_equal(unused, 0);
    rg_kv_adopt(&pool, &b, 2);
    assert_int_equal(b.blocks[0], a.blocks[0]);
    assert_int_equal(pool.free_count, 6);
    rg_kv_release(&pool, &a);
    assert_int_equal(pool.free_count, 7);
    rg_kv_release(&pool, &b);
    assert_int_equal(pool.free_count, 9);
    /* Freed blocks are still known, and come out of the queue again. */
    rg_kv_seq c = sequence(&pool, first, 2);
    assert_int_equal(rg_kv_lookup(&pool, &c, 12, &unused), 3);
    assert_int_equal(unused, 3);
    /* At most length - 1 tokens: one is always computed. */
    assert_int_equal(rg_kv_lookup(&pool, &c, 11, &unused), 2);
    assert_true(rg_kv_conserved(&pool));
}

/* Two prompts of the same text computed side by side: vLLM keeps both copies, SGLang one. */
static void equal_blocks_are_merged_where_the_engine_does(void **state)
{
    (void)state;
    const rg_segment text[] = {{7, 12}};
    for (int merging = 0; merging < 2; merging++) {
        rg_kv_pool pool;
        assert_ok(merging ? rg_kv_start_tree(&pool, arena, 10, 4, &err)
                          : rg_kv_start(&pool, arena, 10, 4, true, &err));
        rg_kv_seq a = sequence(&pool, text, 1), b = sequence(&pool, text, 1);
        rg_kv_take(&pool, &a, 3);
        rg_kv_take(&pool, &b, 3);
        rg_kv_register(&pool, &a, 12);
        assert_true(rg_kv_conserved(&pool));
        rg_kv_register(&pool, &b, 12);
        assert_int_equal(pool.free_count, merging ? 6 : 3);
        assert_true(rg_kv_conserved(&pool));
        rg_kv_release(&pool, &a);
        assert_int_equal(pool.free_count, 6);
        rg_kv_release(&pool, &b);
        assert_int_equal(pool.free_count, 9);
        assert_true(rg_kv_conserved(&pool));
    }
}

static void reused_blocks_are_forgotten(void **state)
{
    (void)state;
    const rg_segment text[] = {{7, 12}};
    rg_kv_pool pool;
    assert_ok(rg_kv_start(&pool, arena, 4, 4, true, &err));
    rg_kv_seq a = sequence(&pool, text, 1), other = sequence(&pool, NULL, 0),
              b = sequence(&pool, text, 1);
    int32_t unused;
    rg_kv_take(&pool, &a, 3);
    rg_kv_register(&pool, &a, 12);
    rg_kv_release(&pool, &a);
    rg_kv_take(&pool, &other, 1); /* takes the tail of a */
    assert_int_equal(rg_kv_lookup(&pool, &b, 12, &unused), 2);
    assert_int_equal(pool.evicted, 1);
}

/* ---- exact prefix hits on public traces, against a brute-force set of ids */

static rg_seconds ten_ms(void *context, const rg_pass *pass)
{
    (void)context;
    (void)pass;
    return RG_S(0.01);
}

static rg_deployment deployment(rg_policy_kind policy)
{
    rg_deployment d = {.rules = rg_engine_rules_default(policy),
                       .constants = {.kernel_scale = 1},
                       .step = {.step_time = ten_ms, .context = NULL},
                       .replicas = 1,
                       .devices_per_replica = 1};
    d.rules.kv_bytes_per_token = 131072;
    d.rules.host_bytes_per_s = 25e9;
    return d;
}

/* Leading ids seen before, over all ids; ids of the file are small integers. */
static void brute_force(const char *path, int64_t *hits, int64_t *ids)
{
    static char seen[1 << 20];
    memset(seen, 0, sizeof seen);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    *hits = *ids = 0;
    int c;
    while ((c = fgetc(file)) != EOF) {
        if (c != '[')
            continue;
        int leading = 1, got[4096], count = 0;
        long id;
        while (fscanf(file, "%ld", &id) == 1) {
            got[count++] = (int)id;
            *ids += 1;
            leading = leading && seen[id];
            *hits += leading;
            if (fgetc(file) != ',')
                break;
        }
        for (int i = 0; i < count; i++)
            seen[got[i]] = 1;
    }
    fclose(file);
}

static void check_hits(const char *path, int64_t block_tokens, bool asynchronous)
{
    int64_t hits, ids;
    brute_force(path, &hits, &ids);
    rg_requests *stream;
    rg_serve_result result;
    rg_deployment d = deployment(RG_POLICY_VLLM1);
    d.rules.max_model_tokens = 1000000;
    d.rules.block_tokens = block_tokens;
    d.rules.asynchronous = asynchronous;
    assert_ok(rg_requests_open(arena, path, NULL, &stream, &err));
    assert_ok(rg_serve_run(arena, &d, stream, NULL, NULL, 1, &result, &err));
    rg_requests_close(stream);
    assert_int_equal(result.queried_blocks, ids);
    assert_int_equal(result.hit_blocks, hits);
}

static void prefix_hits_of_mooncake_are_exact_with_unlimited_memory(void **state)
{
    (void)state;
    const char *conversation = SHARED("serving/traces/mooncake_conversation_first1500.jsonl");
    const char *synthetic = SHARED("serving/traces/mooncake_synthetic_first600.jsonl");
    skip_without(conversation);
    skip_without(synthetic);
    check_hits(conversation, 16, true);
    check_hits(conversation, 512, false);
    check_hits(synthetic, 16, true);
}

/* ---- policies of memory */

static rg_serve_result run(const rg_deployment *d, const rg_synth_spec *spec)
{
    rg_requests *stream;
    rg_serve_result result;
    assert_ok(rg_requests_synth(arena, spec, &stream, &err));
    assert_ok(rg_serve_run(arena, d, stream, NULL, NULL, 1, &result, &err));
    assert_int_equal(result.finished + result.refused, spec->requests);
    return result;
}

static rg_synth_spec burst(int64_t requests, double prompt, double output)
{
    return (rg_synth_spec){
        .requests = requests,
        .arrivals = {.kind = RG_ARRIVE_AT_ONCE},
        .prompt = {.kind = RG_LENGTH_LOGNORMAL, .mean = prompt, .cv = 1, .least = 8, .most = 1500},
        .output = {.kind = RG_LENGTH_LOGNORMAL, .mean = output, .cv = 1, .least = 1, .most = 500},
        .seed = 2};
}

/* The same memory holds several times the requests in pages; and pages waste less than half a
 * block a sequence while contiguous reservation wastes what is reserved and not yet there. */
static void pages_hold_more_requests_than_contiguous_memory(void **state)
{
    (void)state;
    const rg_synth_spec spec = burst(400, 300, 150);
    rg_deployment d = deployment(RG_POLICY_VLLM1);
    d.rules.max_model_tokens = 2048;
    d.rules.blocks = 1025; /* 16,384 tokens: 8 of the model's length */
    const rg_serve_result paged = run(&d, &spec);
    d.rules.reservation = RG_RESERVE_MODEL;
    d.rules.prefix_caching = false;
    const rg_serve_result contiguous = run(&d, &spec);
    assert_int_equal(contiguous.most_running, 8);
    assert_true(paged.most_running >= 3 * contiguous.most_running);
    assert_true(paged.makespan_s < contiguous.makespan_s / 2);
    const double paged_waste = paged.internal_time / paged.busy_s,
                 contiguous_waste = contiguous.internal_time / contiguous.busy_s;
    assert_true(paged_waste < 0.05);
    assert_true(contiguous_waste > 0.5);
    assert_true(paged.external_time == 0);
    /* Reserving each request's own maximum leaves holes that no waiting request fits. */
    d.rules.reservation = RG_RESERVE_OUTPUT;
    const rg_serve_result fitted = run(&d, &spec);
    assert_true(fitted.external_time > 0);
    assert_true(fitted.most_running > contiguous.most_running);
}

/* Window 64 and 4 sinks in blocks of 16: no sequence holds more than ceil(68 / 16) = 5 blocks. */
static void windows_with_sinks_bound_memory(void **state)
{
    (void)state;
    const rg_synth_spec spec = {.requests = 10,
                                .arrivals = {.kind = RG_ARRIVE_AT_ONCE},
                                .prompt = {.kind = RG_LENGTH_FIXED, .mean = 100},
                                .output = {.kind = RG_LENGTH_FIXED, .mean = 5000}};
    rg_deployment d = deployment(RG_POLICY_VLLM1);
    d.rules.prefix_caching = false;
    d.rules.rule = (rg_kv_rule){.window = 64, .sinks = 4};
    d.rules.blocks = 51;
    const rg_serve_result bounded = run(&d, &spec);
    assert_int_equal(bounded.most_blocks, 50);
    assert_int_equal(bounded.preemptions, 0);
    assert_int_equal(bounded.finished, 10);
    d.rules.rule = (rg_kv_rule){0};
    const rg_serve_result whole = run(&d, &spec);
    assert_int_equal(whole.refused, 10); /* 5100 tokens never fit 50 blocks */
}

static void selective_caching_keeps_its_share(void **state)
{
    (void)state;
    const rg_synth_spec spec = {.requests = 1,
                                .arrivals = {.kind = RG_ARRIVE_AT_ONCE},
                                .prompt = {.kind = RG_LENGTH_FIXED, .mean = 1600},
                                .output = {.kind = RG_LENGTH_FIXED, .mean = 2}};
    rg_deployment d = deployment(RG_POLICY_VLLM1);
    d.rules.prefix_caching = false;
    d.rules.rule.keep_ratio = 0.2;
    /* 0.2 x 1601 = 321 tokens = 21 blocks of 16. */
    assert_int_equal(run(&d, &spec).most_blocks, 21);
}

/* Swapping keeps what was computed, recomputation does it again. */
static void swapping_recomputes_nothing(void **state)
{
    (void)state;
    const rg_synth_spec spec = burst(300, 300, 150);
    rg_deployment d = deployment(RG_POLICY_VLLM0);
    d.rules.blocks = 300;
    d.rules.max_sequences = 64;
    const rg_serve_result again = run(&d, &spec);
    d.rules.preempt = RG_PREEMPT_SWAP;
    const rg_serve_result swapped = run(&d, &spec);
    assert_true(again.preemptions > 0 && again.recomputed_tokens > 0);
    assert_true(swapped.preemptions > 0 && swapped.swapped_blocks > 0);
    assert_int_equal(swapped.recomputed_tokens, 0);
    assert_int_equal(again.output_tokens, swapped.output_tokens);
}

/* Device memory too small for the sessions: the tier gives back what was evicted. */
static void offload_tier_gives_back_evicted_prefixes(void **state)
{
    (void)state;
    rg_synth_spec spec = burst(200, 200, 60);
    spec.arrivals = (rg_arrival_spec){.kind = RG_ARRIVE_POISSON, .rate_per_s = 4};
    spec.sessions = (rg_session_spec){.turns = 4, .think_s = 20};
    rg_deployment d = deployment(RG_POLICY_VLLM1);
    d.rules.blocks = 400;
    d.rules.max_model_tokens = 6000;
    const rg_serve_result alone = run(&d, &spec);
    d.rules.tiers[0] = (rg_kv_tier){.capacity_bytes = 64e9, .bytes_per_s = 50e9};
    const rg_serve_result tiered = run(&d, &spec);
    assert_true(alone.evicted_blocks > 0);
    assert_true(tiered.tier_hit_tokens > 0);
    assert_true(tiered.hit_tokens > alone.hit_tokens);
    assert_int_equal(tiered.output_tokens, alone.output_tokens);
    /* A small first tier alone loses blocks; a second one below it catches them, at its own rate.
     */
    d.rules.tiers[0].capacity_bytes = 0.4e9;
    const rg_serve_result small = run(&d, &spec);
    d.rules.tiers[1] = (rg_kv_tier){.capacity_bytes = 64e9, .bytes_per_s = 5e9};
    const rg_serve_result both = run(&d, &spec);
    assert_true(small.hit_tokens < tiered.hit_tokens);
    assert_true(both.hit_tokens > small.hit_tokens);
}

/* Expected tokens of a verify step with 4 drafts accepted with 0.7 each:
 * (1 - 0.7^5) / (1 - 0.7) = 2.7731. */
static void speculation_emits_the_geometric_mean(void **state)
{
    (void)state;
    const rg_synth_spec spec = {.requests = 50,
                                .arrivals = {.kind = RG_ARRIVE_AT_ONCE},
                                .prompt = {.kind = RG_LENGTH_FIXED, .mean = 10},
                                .output = {.kind = RG_LENGTH_FIXED, .mean = 4001}};
    static const struct {
        rg_policy_kind policy;
        bool asynchronous;
    } cases[] = {{RG_POLICY_VLLM1, false},
                 {RG_POLICY_VLLM1, true},
                 {RG_POLICY_SGLANG, false},
                 {RG_POLICY_TRT_NO_EVICT, false},
                 {RG_POLICY_TRT_MAX_UTILISATION, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rg_deployment d = deployment(cases[i].policy);
        d.rules.asynchronous = cases[i].asynchronous;
        d.rules.max_batched_tokens = 4096;
        d.rules.speculation = (rg_speculation){.drafts = 4, .acceptance = 0.7};
        const rg_serve_result r = run(&d, &spec);
        assert_int_equal(r.output_tokens, 50 * 4001);
        /* Tokens per sequence and step; 72,000 draws have a standard error of 0.2 %. */
        const double sequences_steps = (double)r.drafts / 4;
        assert_close((double)(r.output_tokens - 50) / sequences_steps, 2.7731, 0.01);
        /* A step of constant time is worth more tokens, so requests are as much shorter. */
        d.rules.speculation.drafts = 0;
        const rg_serve_result plain = run(&d, &spec);
        assert_close(plain.e2e.sum / r.e2e.sum, 2.7731, 0.01);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(free_queue_reuses_untouched_blocks_then_tails),
        TEST(full_blocks_of_a_common_prefix_are_shared),
        TEST(equal_blocks_are_merged_where_the_engine_does),
        TEST(reused_blocks_are_forgotten),
        TEST(prefix_hits_of_mooncake_are_exact_with_unlimited_memory),
        TEST(pages_hold_more_requests_than_contiguous_memory),
        TEST(windows_with_sinks_bound_memory),
        TEST(selective_caching_keeps_its_share),
        TEST(swapping_recomputes_nothing),
        TEST(offload_tier_gives_back_evicted_prefixes),
        TEST(speculation_emits_the_geometric_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

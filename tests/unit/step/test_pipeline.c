/* Pipelines: what the stages hold, how a prompt fills them, and which links their hops take. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "step_fixture.h"

static void stages_hold_all_layers_once(void **state)
{
    bench whole = make_bench(state, dense_config, "superpod-h200");
    assert_ok(prepare(&whole));
    const rg_pass pass = decode_of(7, 300);
    const double flops = time_of(&whole, &pass).flops.v;
    for (int64_t pp = 2; pp <= 32; pp += 3) {
        bench b = whole;
        b.parallel = (rg_parallel){.pp = pp, .micro_batches = 1};
        assert_ok(prepare(&b));
        assert_close(time_of(&b, &pass).flops.v, flops, 1e-9);
    }
}

static void a_prompt_fills_and_drains_the_pipeline(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    b.options.ideal = true;
    const rg_chunk chunks[8] = {{512, 0}, {512, 0}, {512, 0}, {512, 0},
                                {512, 0}, {512, 0}, {512, 0}, {512, 0}};
    const rg_pass all = {.chunks = chunks, .chunk_count = 8};
    const rg_pass one = {.chunks = chunks, .chunk_count = 1};
    b.parallel = (rg_parallel){.pp = 4, .micro_batches = 1};
    assert_ok(prepare(&b));
    const rg_step_time single = time_of(&b, &one);
    b.parallel.micro_batches = 8;
    assert_ok(prepare(&b));
    const rg_step_time many = time_of(&b, &all);
    /* the slowest stage is busy 8 times, the others' one pass and the hops come on top */
    assert_close(many.total.v, single.total.v + 7 * many.compute.v / 8, 1e-9);
    assert_close(many.bubble.v + many.compute.v + many.communication.v, many.total.v, 1e-9);
    b.parallel.micro_batches = 1;
    assert_ok(prepare(&b));
    assert_true(time_of(&b, &all).total.v > many.total.v); /* micro-batches hide bubbles */
}

/* Engines keep pp batches on their way, so prompts behind prompts neither fill nor drain. */
static void a_pass_behind_another_finds_the_pipeline_full(void **state)
{
    bench b = make_bench(state, dense_config, "hgx-h200");
    b.options.ideal = true;
    const rg_chunk chunks[4] = {{512, 0}, {512, 0}, {512, 0}, {512, 0}};
    rg_pass pass = {.chunks = chunks, .chunk_count = 4};
    b.parallel = (rg_parallel){.pp = 4, .micro_batches = 1};
    assert_ok(prepare(&b));
    const rg_pass one = {.chunks = chunks, .chunk_count = 1};
    const double trip = time_of(&b, &one).total.v; /* of one micro-batch through all stages */
    b.parallel.micro_batches = 4;
    assert_ok(prepare(&b));
    const rg_step_time lone = time_of(&b, &pass);
    pass.follows = true;
    const rg_step_time next = time_of(&b, &pass);
    const double busy = lone.compute.v; /* of the slowest stage */
    assert_close(lone.total.v, trip + 3 * busy / 4, 1e-9);
    assert_close(next.total.v, fmax(trip, busy), 1e-9);
    assert_true(next.total.v < 0.7 * lone.total.v);
}

/* Sixteen devices in two nodes of eight: three hops, of which the middle one leaves the node. */
static void each_hop_takes_the_links_that_it_crosses(void **state)
{
    bench b = make_bench(state, dense_config, "superpod-h200");
    b.options.ideal = true;
    b.parallel = (rg_parallel){.tp = 4, .pp = 4, .micro_batches = 1};
    assert_ok(prepare(&b));
    const rg_chunk chunk = {4096, 0};
    const rg_pass pass = {.chunks = &chunk, .chunk_count = 1};
    const double bytes = 4096.0 * 4096 * 2, up = b.cluster->scale_up.rate_per_direction.value,
                 out = b.cluster->scale_out.rate_per_direction.value;
    const double within = b.cluster->scale_up.latency.value + bytes / up;
    const double across = b.cluster->scale_out.latency.value + bytes / out;
    const rg_step_part *parts;
    int count, hops = 0;
    assert_ok(rg_step_parts(b.arena, b.step, &pass, &parts, &count, &err));
    for (int i = 0; i < count; i++)
        if (parts[i].hop) {
            assert_int_equal(parts[i].count, hops == 0 ? 2 : 1);
            assert_close(parts[i].time.total.v, hops == 0 ? within : across, 1e-12);
            hops++;
        }
    assert_int_equal(hops, 2);
    const rg_step_time t = time_of(&b, &pass);
    b.cluster->scale_out.rate_per_direction.value *= 2; /* only the hop between nodes gains */
    assert_ok(prepare(&b));
    assert_close(t.total.v - time_of(&b, &pass).total.v, bytes / out / 2, 1e-9);
}

static void hops_inside_a_node_need_no_network(void **state)
{
    bench b = make_bench(state, dense_config, "superpod-h200");
    b.options.ideal = true;
    b.parallel = (rg_parallel){.tp = 2, .pp = 4, .micro_batches = 1};
    assert_ok(prepare(&b));
    const rg_pass pass = decode_of(8, 1000);
    const double before = time_of(&b, &pass).total.v;
    b.cluster->scale_out.rate_per_direction.value /= 1000;
    assert_ok(prepare(&b));
    assert_close(time_of(&b, &pass).total.v, before, 1e-12);
}

/* Stages of three devices do not divide a node of eight: of the hop from devices 3-5 to 6-8, one
 * rank's leaves the node, and the others wait for it. */
static void the_slowest_rank_of_a_hop_counts(void **state)
{
    static const char config[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 3072, \"intermediate_size\": 12288,"
        "\"num_hidden_layers\": 12, \"num_attention_heads\": 24, \"num_key_value_heads\": 24,"
        "\"vocab_size\": 32001, \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\"}";
    bench b = make_bench(state, config, "superpod-h200");
    b.parallel = (rg_parallel){.tp = 3, .pp = 3, .micro_batches = 1};
    assert_ok(prepare(&b));
    const rg_pass pass = decode_of(8, 1000);
    const rg_step_part *parts;
    int count;
    int64_t within = 0, across = 0;
    assert_ok(rg_step_parts(b.arena, b.step, &pass, &parts, &count, &err));
    for (int i = 0; i < count; i++)
        if (parts[i].hop)
            *(strstr(parts[i].name, "network") ? &across : &within) += parts[i].count;
    assert_int_equal(within, 1);
    assert_int_equal(across, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stages_hold_all_layers_once),
        TEST(a_prompt_fills_and_drains_the_pipeline),
        TEST(a_pass_behind_another_finds_the_pipeline_full),
        TEST(each_hop_takes_the_links_that_it_crosses),
        TEST(hops_inside_a_node_need_no_network),
        TEST(the_slowest_rank_of_a_hop_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

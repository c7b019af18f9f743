/* Given kernel times add up as by hand; measured runs are read, replayed and compared; capacity. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "serve/capacity.h"
#include "serve/kernel_times.h"
#include "serve/replay.h"

static rg_arena *arena;
static rg_err err;
static char folder[64];

static int setup(void **state)
{
    (void)state;
    arena = rg_arena_new(1024);
    err = (rg_err){0};
    strcpy(folder, "/tmp/ridge-replay-XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const files[] = {"dense.csv",  "per_sequence.csv", "attention.csv",
                                        "moe.csv",    "meta.yaml",        "requests.csv",
                                        "prefix.csv", "bench.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
    rg_arena_free(arena);
    return 0;
}

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_tables(void)
{
    put("dense.csv", "layer,tokens,time_us\nembedding,1,2\nembedding,101,2\nlayernorm,1,1\n"
                     "layernorm,101,1\nqkv_proj,1,10\nqkv_proj,101,110\nfinal_layernorm,1,3\n");
    put("per_sequence.csv", "layer,sequences,time_us\nlm_head,1,50\nlm_head,11,60\nsampler,1,5\n");
    put("attention.csv", "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
                         "0,0,1,100,10\n0,0,1,200,20\n0,0,3,100,30\n0,0,3,200,60\n"
                         "100,0,0,0,60\n100,100,0,0,160\n200,0,0,0,210\n200,100,0,0,410\n");
}

static rg_kernel_times *load(rg_kernel_times_use use)
{
    rg_kernel_times *times = NULL;
    assert_ok(rg_kernel_times_load(arena, folder, &use, &times, &err));
    return times;
}

/* 4 layers. 51 decode tokens: qkv 60 us x 4, two norms a layer 8 us, embedding 2, final norm 3. */
static void dense_layers_count_as_often_as_they_run(void **state)
{
    (void)state;
    put_tables();
    rg_kernel_times *t = load((rg_kernel_times_use){.layers = 4, .tp = 1});
    const rg_pass pass = {.decodes = 51, .decode_kv_tokens = 5100, .tokens_per_decode = 1};
    const rg_kernel_times_parts p = rg_kernel_times_of(t, &pass);
    assert_close(p.dense_s, (4 * 60 + 8 * 1 + 2 + 3) * 1e-6, 1e-12);
    /* Above the table the last two points carry on: 51 sequences cost 50 + 50 and 5 us. */
    assert_close(p.head_s, (100 + 5) * 1e-6, 1e-12);
}

/* The decode table is 0.1 us x sequences x length, so between its points it is exact. */
static void decode_attention_is_bilinear(void **state)
{
    (void)state;
    put_tables();
    rg_kernel_times *t = load((rg_kernel_times_use){.layers = 4, .tp = 1});
    const rg_pass pass = {.decodes = 2, .decode_kv_tokens = 300, .tokens_per_decode = 1};
    assert_close(rg_kernel_times_of(t, &pass).attention_s, 4 * 0.1 * 2 * 150 * 1e-6, 1e-12);
}

/* The prefill table is 10 + chunk x (past + chunk / 2) / 100: 150 tokens behind 60 are
 * 10 + 150 x 135 / 100 = 212.5 us, off the grid in both directions. */
static void prefill_attention_follows_its_work(void **state)
{
    (void)state;
    put_tables();
    rg_kernel_times *t = load((rg_kernel_times_use){.layers = 1, .tp = 1});
    const rg_chunk chunk = {150, 60};
    const rg_pass pass = {.chunks = &chunk, .chunk_count = 1};
    assert_close(rg_kernel_times_of(t, &pass).attention_s, 212.5e-6, 1e-9);
    /* Two chunks that together are 200 tokens of mean key length 150: one of 200 behind 50. */
    const rg_chunk two[] = {{100, 100}, {100, 100}};
    const rg_pass both = {.chunks = two, .chunk_count = 2};
    assert_close(rg_kernel_times_of(t, &both).attention_s, 310e-6, 1e-9);
}

/* TP 2 of hidden 1000 in 16 bit: 100 tokens are 200 kB an all-reduce, x 2 (n - 1) / n = 1, at
 * 1 GB/s 200 us + 10 us, (2 x 4 + 1) of them; logits of 1 row of 500: 10 us + 0.5 us. */
static void reductions_are_added_between_ranks(void **state)
{
    (void)state;
    put_tables();
    rg_kernel_times *t = load((rg_kernel_times_use){.layers = 4,
                                                    .tp = 2,
                                                    .hidden = 1000,
                                                    .vocab = 500,
                                                    .reduce_latency_s = 1e-5,
                                                    .reduce_bytes_per_s = 1e9});
    const rg_chunk chunk = {100, 0};
    const rg_pass pass = {.chunks = &chunk, .chunk_count = 1};
    assert_close(rg_kernel_times_of(t, &pass).reduce_s, 9 * 210e-6 + 10e-6 + 0.5e-6, 1e-12);
}

/* 8 experts, 2 of them a token: one token touches 2, many all. Table: 10 us an expert touched. */
static void experts_touched_follow_the_tokens(void **state)
{
    (void)state;
    put_tables();
    put("moe.csv", "tokens,activated_experts,time_us\n1,2,20\n1,8,80\n1000,2,20\n1000,8,80\n");
    rg_kernel_times *t = load(
        (rg_kernel_times_use){.layers = 4, .moe_layers = 3, .experts = 8, .top_k = 2, .tp = 1});
    rg_pass pass = {.decodes = 1, .decode_kv_tokens = 100, .tokens_per_decode = 1};
    assert_close(rg_kernel_times_of(t, &pass).moe_s, 3 * 20e-6, 1e-9);
    pass.decodes = 2; /* 8 (1 - 0.75^2) = 3.5 */
    assert_close(rg_kernel_times_of(t, &pass).moe_s, 3 * 35e-6, 1e-9);
}

#define MLP_HEADER                                                                \
    "time_stats.emb.min,time_stats.emb.median,time_stats.input_layernorm.median," \
    "time_stats.mlp_up_proj.median,n_head,n_embd,use_gated_mlp,num_tokens,"       \
    "num_tensor_parallel_workers\n"
#define VIDUR_ATTENTION                                                                   \
    "time_stats.attn_prefill.median,time_stats.attn_decode.median,"                       \
    "time_stats.attn_kv_cache_save.median,n_embd,num_tensor_parallel_workers,batch_size," \
    "prefill_chunk_size,kv_cache_size,is_prefill\n"                                       \
    "0.06,,0.002,64,2,1,100,0,True\n0.16,,0.002,64,2,1,100,100,True\n"                    \
    "0.21,,0.002,64,2,1,200,0,True\n0.41,,0.002,64,2,1,200,100,True\n"                    \
    ",0.01,0.002,64,2,1,0,100,False\n,0.02,0.002,64,2,1,0,200,False\n"                    \
    ",0.03,0.002,64,2,3,0,100,False\n,0.06,0.002,64,2,3,0,200,False\n"                    \
    ",9,9,64,1,1,0,100,False\n"

/* Vidur's tables, ms, 2 ranks, hidden 64; the rows of one rank and of another model are passed
 * over. 4 layers, 2 decodes of mean length 150 beside 150 tokens behind 60, 152 in all. Dense: emb
 * 1 + 152 us once; a norm of 5, 30 = the mean of 20 and 40, and 2 us of storing KV in each layer.
 * Attention as above, each in its own kernel: 212.5 + 30 us. */
static void tables_of_vidur_add_up(void **state)
{
    (void)state;
    put("mlp.csv",
        MLP_HEADER "0,0.001,0.005,0.02,8,64,True,0,2\n0,0.201,0.005,0.02,8,64,True,200,2\n"
                   "0,0.201,0.005,0.04,8,64,True,200,2\n0,7,7,7,8,64,True,100,1\n"
                   "0,0.001,0.005,0.04,8,64,True,0,2\n0,7,7,7,8,128,True,100,2\n");
    put("attention.csv", VIDUR_ATTENTION);
    rg_kernel_times *t = load((rg_kernel_times_use){.layers = 4, .tp = 2, .hidden = 64});
    const rg_chunk chunk = {150, 60};
    const rg_pass pass = {.chunks = &chunk,
                          .chunk_count = 1,
                          .decodes = 2,
                          .decode_kv_tokens = 300,
                          .tokens_per_decode = 1};
    const rg_kernel_times_parts p = rg_kernel_times_of(t, &pass);
    assert_close(p.dense_s, (153 + 4 * (5 + 30 + 2)) * 1e-6, 1e-9);
    assert_close(p.attention_s, 4 * 242.5e-6, 1e-9);
    assert_close(p.head_s, 0, 0);
    assert_non_null(strstr(rg_kernel_times_note(t), "no output head"));
}

/* The same attention beside layers.csv, ns: q_proj 10 us and up_proj 20 us in each of 4 layers,
 * final norm 3 us once, head 50 us by sequences; 'attn' of the table is not counted again. */
static void older_tables_of_llmservingsim_add_up(void **state)
{
    (void)state;
    put("layers.csv", "layer_name,input,kv_cache,tp_size,latency(ns)\nq_proj,1,0,2,10000\n"
                      "up_proj,1,0,2,20000\nfinal_layernorm,1,0,2,3000\nlm_head,1,0,2,50000\n"
                      "attn,1,0,2,77000\nq_proj,1,0,1,99000\n");
    put("attention.csv", VIDUR_ATTENTION);
    rg_kernel_times *t = load((rg_kernel_times_use){.layers = 4, .tp = 2, .hidden = 64});
    const rg_pass pass = {.decodes = 1, .decode_kv_tokens = 100, .tokens_per_decode = 1};
    const rg_kernel_times_parts p = rg_kernel_times_of(t, &pass);
    assert_close(p.dense_s, (4 * (10 + 20 + 2) + 3) * 1e-6, 1e-9);
    assert_close(p.head_s, 50e-6, 1e-9);
    assert_close(p.attention_s, 4 * 10e-6, 1e-9);
}

static void tables_of_other_models_are_named(void **state)
{
    (void)state;
    rg_kernel_times *t;
    rg_kernel_times_use use = {.layers = 4, .tp = 2, .hidden = 32};
    put("mlp.csv", MLP_HEADER "0,0.001,0.005,0.02,8,64,True,1,2\n");
    put("attention.csv", VIDUR_ATTENTION);
    assert_int_equal(rg_kernel_times_load(arena, folder, &use, &t, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "hidden size 32"));
    err = (rg_err){0};
    use = (rg_kernel_times_use){.layers = 4, .moe_layers = 4, .tp = 2, .hidden = 64};
    assert_int_equal(rg_kernel_times_load(arena, folder, &use, &t, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "no times of experts"));
    err = (rg_err){0};
    put_tables();
    put("attention.csv", "layer,prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
                         "attention,0,0,1,100,10\nindexer,0,0,1,100,10\n");
    use.moe_layers = 0;
    assert_int_equal(rg_kernel_times_load(arena, folder, &use, &t, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "'indexer'"));
    assert_int_equal(err.pos.line, 3);
}

static void bad_tables_are_named(void **state)
{
    (void)state;
    rg_kernel_times *t;
    const rg_kernel_times_use use = {.layers = 4, .tp = 1};
    assert_int_equal(rg_kernel_times_load(arena, folder, &use, &t, &err), RG_ERR_IO);
    put_tables();
    put("dense.csv", "layer,tokens,time_us\nqkv_proj,1,-3\n");
    err = (rg_err){0};
    assert_int_equal(rg_kernel_times_load(arena, folder, &use, &t, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "'-3'"));
    assert_int_equal(err.pos.line, 2);
}

static void graph_sizes_are_those_of_vllm(void **state)
{
    (void)state;
    const int64_t sizes[][2] = {{1, 1},     {2, 2},     {3, 4},     {5, 8},    {37, 40},
                                {256, 256}, {257, 272}, {512, 512}, {513, 513}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_int_equal(rg_graph_tokens(sizes[i][0], 512), sizes[i][1]);
}

/* ---- replay */

static rg_seconds tenth(void *context, const rg_pass *pass)
{
    (void)pass;
    return RG_S(*(double *)context);
}

static const char meta[] = "run: hand\nengine: {name: vllm, version: \"0.19.0\", async_scheduling: "
                           "false}\nmodel: {name: a/B}\ngpu: {name: null}\nparallel: {tp: 1}\n"
                           "limits: {max_num_seqs: 4, max_num_batched_tokens: 100, block_size: 16, "
                           "num_gpu_blocks: 50}\n";

static rg_deployment of(const rg_replay_run *run, double *step)
{
    return (rg_deployment){.rules = run->rules,
                           .constants = {.kernel_scale = 1},
                           .step = {.step_time = tenth, .context = step},
                           .replicas = 1,
                           .devices_per_replica = 1};
}

/* Steps of 0.1 s: both requests start at 0, first tokens at 0.1, the ends at 0.3 and 0.5. The
 * record says 0.2, 0.4 and 0.2, 0.5. TTFT: |0.1 - 0.2| twice over 0.4 = 50 %. E2E: 0.1 over 0.9.
 * TPOT: 0.1 against 0.1 and 0.1 against 0.075: 0.025 over 0.175. */
static void errors_are_weighted_by_the_measured(void **state)
{
    (void)state;
    put("meta.yaml", meta);
    put("requests.csv",
        "request_id,arrival_s,first_token_s,last_token_s,input_tokens,output_tokens\n"
        "0,0,0.2,0.4,20,3\n1,0,0.2,0.5,20,5\n");
    rg_replay_run *run;
    assert_ok(rg_replay_load(arena, folder, &run, &err));
    assert_int_equal(run->kv_blocks, 50);
    assert_true(run->assumed_count > 0);
    double step = 0.1;
    const rg_deployment d = of(run, &step);
    rg_serve_result result;
    rg_replay_errors e;
    assert_ok(rg_replay_compare(arena, run, &d, NULL, 1, &result, &e, &err));
    assert_close(e.ttft_wape, 0.5, 1e-9);
    assert_close(e.e2e_wape, 0.1 / 0.9, 1e-9);
    assert_close(e.tpot_wape, 0.025 / 0.175, 1e-9);
    assert_true(fabs(e.makespan) < 1e-9);
}

static void set_double(void *context, double value)
{
    *(double *)context = value;
}

static void fit_finds_the_constant_that_made_the_data(void **state)
{
    (void)state;
    put("meta.yaml", meta);
    put("requests.csv",
        "request_id,arrival_s,first_token_s,last_token_s,input_tokens,output_tokens\n"
        "0,0,0.137,0.411,20,3\n1,0,0.137,0.685,20,5\n");
    rg_replay_run *run;
    assert_ok(rg_replay_load(arena, folder, &run, &err));
    double step = 0.05;
    const rg_deployment d = of(run, &step);
    rg_tunable constant = {"step", step, 0.01, 0.5, 10, set_double, &step};
    rg_replay_errors e;
    int evaluations;
    assert_ok(rg_replay_fit(arena, run, &d, &constant, 1, &e, &evaluations, &err));
    assert_close(constant.value, 0.137, 0.01);
    assert_true(e.e2e_wape < 0.01);
}

/* Request 1 shares 32 tokens with request 0, request 2 the 16 of them that both have. */
static void prefixes_follow_their_first_owner(void **state)
{
    (void)state;
    put("meta.yaml", meta);
    put("requests.csv",
        "request_id,arrival_s,first_token_s,last_token_s,input_tokens,output_tokens\n"
        "0,0,1,2,40,3\n1,0.1,1,2,40,3\n2,0.2,1,2,40,3\n");
    put("prefix.csv", "request_id,shared_prefix_tokens,shares_with_request\n1,32,0\n2,16,1\n");
    rg_replay_run *run;
    assert_ok(rg_replay_load(arena, folder, &run, &err));
    double step = 0.1;
    rg_deployment d = of(run, &step);
    d.rules.prefix_caching = true;
    rg_serve_result result;
    rg_replay_errors e;
    assert_ok(rg_replay_compare(arena, run, &d, NULL, 1, &result, &e, &err));
    assert_int_equal(result.hit_tokens, 32 + 16);
    assert_int_equal(result.queried_tokens, 120);
}

static void broken_records_are_named(void **state)
{
    (void)state;
    rg_replay_run *run;
    put("meta.yaml", meta);
    put("requests.csv",
        "request_id,arrival_s,first_token_s,last_token_s,input_tokens,output_tokens\n"
        "0,0,1,0.5,40,3\n");
    assert_int_equal(rg_replay_load(arena, folder, &run, &err), RG_ERR_INPUT);
    assert_int_equal(err.pos.line, 2);
    err = (rg_err){0};
    put("requests.csv",
        "request_id,arrival_s,first_token_s,last_token_s,input_tokens,output_tokens\n"
        "0,0,0.4,0.5,40,3\n");
    put("prefix.csv", "request_id,shared_prefix_tokens,shares_with_request\n0,16,8\n");
    assert_int_equal(rg_replay_load(arena, folder, &run, &err), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "'8'"));
}

static rg_status load_bench(const char *text, rg_replay_run **run)
{
    char path[128];
    snprintf(path, sizeof path, "%s/bench.json", folder);
    put("bench.json", text);
    err = (rg_err){0};
    return rg_replay_load(arena, path, run, &err);
}

#define LENGTHS "\"input_lens\": [20, 30, 40], \"output_lens\": [3, 5, 2],"
#define TIMES "\"ttfts\": [0.2, 0.3, 0.4], \"itls\": [[0.1, 0.1], [0.4], [0.5]]"

/* Sent at 7 s, 5 s and 6 s of the client's clock: the second comes first. */
static void results_of_a_benchmark_are_read_one_by_one(void **state)
{
    (void)state;
    rg_replay_run *run;
    assert_ok(load_bench("{\"backend\": \"vllm\", \"model_id\": \"a/B\", " LENGTHS TIMES
                         ", \"generated_texts\": [\"\\ud83d\\ude00\", \"\", \"\"], "
                         "\"start_times\": [7, 5, 6]}",
                         &run));
    assert_int_equal(run->count, 3);
    assert_false(run->limits_recorded);
    assert_string_equal(run->model, "a/B");
    static const double arrival[] = {0, 1, 2}, first[] = {0.3, 1.4, 2.2}, last[] = {0.7, 1.9, 2.4};
    static const int prompt[] = {30, 40, 20}, output[] = {5, 2, 3};
    for (int i = 0; i < 3; i++) {
        assert_close(run->requests[i].arrival_s, arrival[i], 1e-12);
        assert_close(run->measured[i].first_token_s, first[i], 1e-12);
        assert_close(run->measured[i].last_token_s, last[i], 1e-12);
        assert_int_equal(run->requests[i].prompt_tokens, prompt[i]);
        assert_int_equal(run->requests[i].output_tokens, output[i]);
    }
}

/* Two clients: the first is answered at 0.4, the second at 0.7; so the third is sent at 0.4. */
static void clients_of_a_benchmark_send_when_they_are_answered(void **state)
{
    (void)state;
    rg_replay_run *run;
    assert_ok(load_bench("{\"backend\": \"sglang\", \"request_rate\": \"inf\", "
                         "\"max_concurrency\": 2, " LENGTHS TIMES "}",
                         &run));
    assert_int_equal(run->rules.policy, RG_POLICY_SGLANG);
    assert_close(run->requests[1].arrival_s, 0, 0);
    assert_close(run->requests[2].arrival_s, 0.4, 1e-12);
    assert_close(run->measured[2].last_token_s, 1.3, 1e-12);
    /* Without a limit all come at once; a failed request has no output and is left out. */
    assert_ok(load_bench("{\"request_rate\": \"inf\", \"input_lens\": [20, 30, 40], "
                         "\"output_lens\": [3, 0, 2]," TIMES "}",
                         &run));
    assert_int_equal(run->count, 2);
    assert_int_equal(run->requests[1].prompt_tokens, 40);
    assert_close(run->requests[1].arrival_s, 0, 0);
}

static void broken_results_are_named(void **state)
{
    (void)state;
    rg_replay_run *run;
    assert_int_equal(load_bench("{\"request_rate\": 4, " LENGTHS TIMES "}", &run), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "'start_times'"));
    assert_int_equal(load_bench("{\"request_rate\": \"inf\", \"completed\": 3}", &run),
                     RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "--save-detailed"));
    assert_int_equal(load_bench("{" LENGTHS "\"ttfts\": [1], \"itls\": []}", &run), RG_ERR_INPUT);
    assert_non_null(strstr(err.text, "'1' entries"));
    assert_int_equal(
        load_bench("{" LENGTHS "\"ttfts\": [1, 1, 1],\n \"itls\": [[1], [-2], [3]]}", &run),
        RG_ERR_INPUT);
    assert_int_equal(err.pos.line, 2);
    assert_int_equal(load_bench("[1, 2]", &run), RG_ERR_INPUT);
}

/* vLLM 0.19 reported 2588 blocks of 16 tokens for Llama-3.1-8B on an RTX 4090 at 0.9; 1 % is what
 * a planner can live with. The driver's share, graphs and context of the sum were read off this
 * very run, so this holds the sum together; it does not validate it. */
static void capacity_adds_up_to_the_blocks_of_a_real_engine(void **state)
{
    (void)state;
    rg_accel *accel;
    rg_model *model;
    rg_formats formats;
    assert_ok(rg_accel_load(arena, "rtx-4090", &accel, &err));
    assert_ok(rg_model_load(arena, "llama-3.1-8b", &model, &err));
    assert_ok(rg_formats_choose(model, NULL, NULL, NULL, &formats, &err));
    rg_shard shard = {.tp = 1, .embedding = true, .head = true};
    rg_capacity_query q = {.accel = accel,
                           .model = model,
                           .formats = &formats,
                           .shard = &shard,
                           .utilisation = 0.9,
                           .max_batched_tokens = 2048,
                           .max_sequences = 256,
                           .block_tokens = 16,
                           .ranks = 1};
    const rg_capacity c = rg_capacity_of(&q);
    assert_close((double)c.blocks, 2588, 0.01);
    assert_close(c.block_bytes, 16 * 131072, 1e-12);
    assert_close(c.weight_bytes, 2.0 * 8030261248, 1e-3);
    /* Laws: more utilisation, more blocks; an 8-bit cache, twice the blocks. */
    q.utilisation = 0.95;
    assert_true(rg_capacity_of(&q).blocks > c.blocks);
    q.utilisation = 0.9;
    assert_ok(rg_formats_choose(model, NULL, "fp8", NULL, &formats, &err));
    assert_true(llabs(rg_capacity_of(&q).blocks - 2 * c.blocks) <= 1);
    /* A hybrid keeps state of each sequence beside its cache: up to half of what is left. */
    assert_ok(rg_model_load(arena, "nemotron-h-56b", &model, &err));
    assert_ok(rg_accel_load(arena, "h200-sxm", &accel, &err));
    assert_ok(rg_formats_choose(model, NULL, NULL, NULL, &formats, &err));
    q.accel = accel;
    q.model = model;
    q.max_sequences = 1024;
    const rg_capacity h = rg_capacity_of(&q);
    assert_true(h.state_sequences > 0 && h.state_sequences < 1024);
    assert_true(h.blocks > 0 && h.state_bytes <= h.kv_bytes * 1.0001);
    q.device_bytes = 12e9;
    assert_int_equal(rg_capacity_of(&q).blocks, 0);
}

/* The same 0.9 is of all memory, of all for weights and KV alone, or of what is left. */
static void an_engine_s_share_is_of_what_its_documentation_says(void **state)
{
    (void)state;
    rg_accel *accel;
    rg_model *model;
    rg_formats formats;
    assert_ok(rg_accel_load(arena, "h200-sxm", &accel, &err));
    assert_ok(rg_model_load(arena, "llama-3.1-8b", &model, &err));
    assert_ok(rg_formats_choose(model, NULL, NULL, NULL, &formats, &err));
    const rg_shard shard = {.tp = 1, .embedding = true, .head = true};
    rg_capacity_query q = {.accel = accel,
                           .model = model,
                           .formats = &formats,
                           .shard = &shard,
                           .utilisation = 0.9,
                           .share_of = RG_SHARE_TOTAL,
                           .max_batched_tokens = 8192,
                           .max_sequences = 256,
                           .block_tokens = 16,
                           .ranks = 1};
    const rg_capacity total = rg_capacity_of(&q);
    q.share_of = RG_SHARE_STATIC;
    const rg_capacity fixed = rg_capacity_of(&q);
    q.share_of = RG_SHARE_FREE;
    const rg_capacity rest = rg_capacity_of(&q);
    const double there = total.device_bytes - total.driver_bytes;
    const double beside = total.activation_bytes + total.graph_bytes + total.context_bytes;
    assert_close(total.kv_bytes, 0.9 * there - total.weight_bytes - beside, 1e-12);
    assert_close(fixed.kv_bytes, 0.9 * (there - total.context_bytes) - total.weight_bytes, 1e-12);
    assert_close(rest.kv_bytes, 0.9 * (there - total.weight_bytes - beside), 1e-12);
    assert_true(total.kv_bytes < fixed.kv_bytes && total.kv_bytes < rest.kv_bytes);
    /* No share of all memory leaves less for activations than they take. */
    q.utilisation = 1;
    q.share_of = RG_SHARE_STATIC;
    assert_close(rg_capacity_of(&q).kv_bytes, there - total.weight_bytes - beside, 1e-12);
    /* All of what is left is the same. */
    q.share_of = RG_SHARE_FREE;
    assert_close(rg_capacity_of(&q).kv_bytes, there - total.weight_bytes - beside, 1e-12);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(dense_layers_count_as_often_as_they_run),
        TEST(decode_attention_is_bilinear),
        TEST(prefill_attention_follows_its_work),
        TEST(reductions_are_added_between_ranks),
        TEST(experts_touched_follow_the_tokens),
        TEST(tables_of_vidur_add_up),
        TEST(older_tables_of_llmservingsim_add_up),
        TEST(tables_of_other_models_are_named),
        TEST(bad_tables_are_named),
        TEST(graph_sizes_are_those_of_vllm),
        TEST(errors_are_weighted_by_the_measured),
        TEST(fit_finds_the_constant_that_made_the_data),
        TEST(prefixes_follow_their_first_owner),
        TEST(broken_records_are_named),
        TEST(results_of_a_benchmark_are_read_one_by_one),
        TEST(clients_of_a_benchmark_send_when_they_are_answered),
        TEST(broken_results_are_named),
        TEST(capacity_adds_up_to_the_blocks_of_a_real_engine),
        TEST(an_engine_s_share_is_of_what_its_documentation_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

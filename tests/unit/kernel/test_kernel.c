/* Kernel-time model: hand calculations on devices with round constants, laws on real ones. */
// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "kernel/device.h"
#include "kernel/kernel.h"

/* 100 SMs at 1 GHz, 1000 flop a cycle and SM (1e14 flop/s), 1 TB/s, no L2, and constants under
 * which only tiles and bytes count. */
static rg_kernel_device round_device(void)
{
    rg_kernel_device d = {
        .name = "round", .units = 100, .hz = 1e9, .memory_rate = 1e12, .exp_per_cycle = 16};
    d.l2_rate = 1e15;
    d.shared_bytes_per_cycle = 128;
    for (int t = 0; t < RG_DTYPE_COUNT; t++)
        d.peak[t] = 1e14;
    d.vector_peak = 1e13;
    for (int g = 0; g < RG_KG_COUNT; g++)
        for (int i = 0; i < rg_kernel_groups[g].count; i++)
            d.c[g][i] = rg_kernel_groups[g].constants[i].start;
    for (int g = RG_KG_GEMM_BF16; g <= RG_KG_BMM_FP8; g++) {
        double *c = d.c[g];
        c[RG_GEMM_START] = c[RG_GEMM_WAVE] = c[RG_GEMM_SPLIT] = 0.0;
        c[RG_GEMM_COMPUTE] = c[RG_GEMM_SUSTAINED] = c[RG_GEMM_MEMORY] = c[RG_GEMM_L2_RATE] = 1.0;
        c[RG_GEMM_L2_SM] = 1e9;
        c[RG_GEMM_OVERLAP] = 1.0;
        c[RG_GEMM_EMPTY_ROW] = 0.0;
        c[RG_GEMM_QUANTISE] = 7.0;
        c[RG_GEMM_QUANTISE_PASSES] = 1.0;
    }
    return d;
}

static rg_format format(const char *name)
{
    rg_format out;
    rg_err err;
    assert_ok(rg_format_parse(name, RG_NOWHERE, &out, &err));
    return out;
}

static rg_op product(int64_t m, int64_t n, int64_t k)
{
    const rg_format bf16 = format("bf16");
    return rg_op_make_gemm("product", m, n, k, &bf16, RG_BF16, RG_BF16);
}

static double seconds(const rg_kernel_device *device, const rg_op *op)
{
    rg_kernel_time t;
    rg_err err;
    assert_ok(rg_kernel_op_time(device, op, &t, &err));
    return t.total.v;
}

static const rg_kernel_device *real_device(rg_arena *arena, const char *name,
                                           const rg_kernel_options *options)
{
    rg_accel *accel;
    rg_kernel_device *device;
    rg_err err;
    assert_ok(rg_accel_load(arena, name, &accel, &err));
    assert_ok(rg_kernel_prepare(arena, accel, options, &device, &err));
    return device;
}

static void one_wave_of_tiles_and_the_bytes_beside_it(void **state)
{
    (void)state;
    /* 1280 x 1280 is 10 x 10 tiles of 128 x 128 on 100 SMs: one wave of 2 128 128 6400 flop at 1000
     * flop a cycle, 209.7152 us. Bytes: 2 (1280 6400 2 + 1280 1280) = 36044800 at 1 TB/s, 36.0448
     * us; overlap power 1 adds them. Other tiles are no better: 100 units is all there is, and any
     * tiling computes 2 m n k / 1e14 = 209.7152 us at least. */
    const rg_kernel_device d = round_device();
    const rg_op op = product(1280, 1280, 6400);
    assert_close(seconds(&d, &op), 209.7152e-6 + 36.0448e-6, 1e-12);
}

static void a_tile_too_many_goes_to_larger_tiles_or_splits(void **state)
{
    (void)state;
    /* 1281 x 1280 is 11 x 10 tiles of 128 x 128, one wave and 10 more. A library of mma.sync
     * kernels does not start a second wave of them: 6 x 10 = 60 tiles of 256 x 128 in one wave take
     * twice 209.7152 us. Split in 5 parts of 20 steps (of 100) these are 300 units in 3 waves of 20
     * % of that: 251.65824 us, and 8 5 1281 1280 bytes of parts at 1e15 B/s. */
    rg_kernel_device d = round_device();
    const rg_op op = product(1281, 1280, 6400);
    const double bytes = 2.0 * (1281.0 * 6400 + 1280.0 * 6400 + 1281.0 * 1280);
    const double parts = 8.0 * 5.0 * 1281.0 * 1280.0 * 1e-15;
    assert_close(seconds(&d, &op), 251.65824e-6 + bytes * 1e-12 + parts, 1e-12);
    d.c[RG_KG_GEMM_BF16][RG_GEMM_SPLIT] = 1e9; /* a second for a merge: no split */
    assert_close(seconds(&d, &op), 2.0 * 209.7152e-6 + bytes * 1e-12, 1e-12);
    /* Tiles in steps of 8 rows: 15 x 20 = 300 tiles of 88 x 64 are three full waves of 88 64 / (128
     * 128) of the time. */
    d.fine_tiles = true;
    assert_close(seconds(&d, &op), 209.7152e-6 * 3.0 * 0.34375 + bytes * 1e-12, 1e-12);
}

static void waves_after_the_first_pay_for_filling_and_draining(void **state)
{
    (void)state;
    /* 2560 x 1280 is 10 x 10 tiles of 256 x 128 on 50 SMs: two waves of 838.8608 us (twice the
     * flop, half of the SMs at 1000 flop a cycle) and 1 us between them. */
    rg_kernel_device d = round_device();
    d.units = 50;
    d.peak[RG_BF16] = 5e13;
    d.c[RG_KG_GEMM_BF16][RG_GEMM_WAVE] = 1000.0;
    d.c[RG_KG_GEMM_BF16][RG_GEMM_SPLIT] = 1e9;
    const rg_op op = product(2560, 1280, 6400);
    const double bytes = 2.0 * (2560.0 * 6400 + 1280.0 * 6400 + 2560.0 * 1280);
    assert_close(seconds(&d, &op), 2.0 * 419.4304e-6 + 1e-6 + bytes * 1e-12, 1e-12);
}

static void clusters_load_shared_operands_once(void **state)
{
    (void)state;
    /* 128 bytes a cycle from L2 make loads the bound: a step of 128 x 128 loads 256 rows in 256
     * cycles; where two SMs share one side, 192. 10 x 10 tiles, 100 steps, 100 SMs. */
    rg_kernel_device d = round_device();
    const rg_op op = product(1280, 1280, 6400);
    const double bytes = 2.0 * (2.0 * 1280.0 * 6400 + 1280.0 * 1280);
    d.peak[RG_BF16] = 1e18;
    d.c[RG_KG_GEMM_BF16][RG_GEMM_L2_SM] = 128.0;
    d.c[RG_KG_GEMM_BF16][RG_GEMM_WAVE] = 1e6; /* one wave */
    d.c[RG_KG_GEMM_BF16][RG_GEMM_SPLIT] = 1e9;
    assert_close(seconds(&d, &op), 25.6e-6 + bytes * 1e-12, 1e-12);
    d.fine_tiles = true;
    assert_close(seconds(&d, &op), 19.2e-6 + bytes * 1e-12, 1e-12);
}

static void the_power_limit_holds_all_sms_together(void **state)
{
    (void)state;
    /* Half of the peak sustained: a full wave takes twice as long, one that uses 50 of 100 SMs no
     * longer at all. 8 x 10 tiles of 128 x 128 use 80: 209.7152 us against 0.8 / 0.5 of it. */
    rg_kernel_device d = round_device();
    d.options.sustained = true;
    d.c[RG_KG_GEMM_BF16][RG_GEMM_SUSTAINED] = 0.5;
    d.c[RG_KG_GEMM_BF16][RG_GEMM_SPLIT] = 1e9;
    const rg_op full = product(1280, 1280, 6400), part = product(1024, 1280, 6400);
    const double full_bytes = 2.0 * (2.0 * 1280.0 * 6400 + 1280.0 * 1280);
    const double part_bytes = 2.0 * (1024.0 * 6400 + 1280.0 * 6400 + 1024.0 * 1280);
    assert_close(seconds(&d, &full), 2.0 * 209.7152e-6 + full_bytes * 1e-12, 1e-12);
    assert_close(seconds(&d, &part), 1.6 * 209.7152e-6 + part_bytes * 1e-12, 1e-12);
}

static void block_scaled_tiles_follow_the_library_rule(void **state)
{
    (void)state;
    /* 129 rows of 1024 columns on 132 SMs: two rows of tiles, so 16 columns a tile fill one wave
     * best (128 of 132), though each loads 128 rows for them: DeepGEMM's rule. A step of 128 bytes
     * loads 144 rows at 128 bytes a cycle and adds 128 x 16 elements on 128 lanes, 160 cycles; 64
     * steps at 1 GHz. Below 32 rows X and W change places: 8 tiles of 128 columns by 16 rows take
     * as long. 127 rows beyond m cost 2 cycles each in a step, on 128 of 132 SMs. */
    rg_kernel_device d = round_device();
    d.units = 132;
    d.fine_tiles = true;
    d.options.no_quantise = true;
    d.memory_rate = 1e18;
    for (int t = 0; t < RG_DTYPE_COUNT; t++)
        d.peak[t] = 1e18;
    double *c = d.c[RG_KG_GEMM_FP8_BLOCK];
    c[RG_GEMM_L2_SM] = 128.0;
    const rg_format block = format("fp8_block");
    const rg_op few = rg_op_make_gemm("few", 16, 1024, 8192, &block, RG_FP8, RG_BF16);
    const rg_op more = rg_op_make_gemm("more", 129, 1024, 8192, &block, RG_FP8, RG_BF16);
    assert_close(seconds(&d, &few), 64 * 160e-9, 1e-3);
    assert_close(seconds(&d, &more), 64 * 160e-9, 1e-3);
    c[RG_GEMM_EMPTY_ROW] = 2.0;
    assert_close(seconds(&d, &few), 64 * 160e-9, 1e-3);
    assert_close(seconds(&d, &more), 64 * (160e-9 + 127 * 2e-9 * 128.0 / 132.0), 1e-3);
}

static void dynamic_quantisation_adds_its_kernels_and_passes(void **state)
{
    (void)state;
    rg_kernel_device d = round_device();
    const rg_format fp8 = format("fp8");
    const rg_op op = rg_op_make_gemm("product", 1280, 1280, 6400, &fp8, RG_FP8, RG_BF16);
    const double with = seconds(&d, &op);
    d.options.no_quantise = true;
    /* 7 us, and X read in 2 bytes and written in 1 at 1 TB/s: 3 1280 6400 = 24.576 us. */
    assert_close(with - seconds(&d, &op), 7e-6 + 24.576e-6, 1e-9);
}

static void ideal_is_the_roofline_to_the_last_bit(void **state)
{
    (void)state;
    rg_kernel_device d = round_device();
    d.options.ideal = true;
    const rg_op wide = product(4096, 4096, 4096), thin = product(1, 4096, 4096);
    assert_true(seconds(&d, &wide) == 2.0 * 4096.0 * 4096.0 * 4096.0 / 1e14);
    assert_true(seconds(&d, &thin) == 2.0 * (4096.0 * 4096.0 + 4096.0 + 4096.0) / 1e12);
}

static void join_adds_at_one_and_is_pythagoras_at_two(void **state)
{
    (void)state;
    assert_close(rg_kernel_join(3.0, 4.0, 1.0), 7.0, 1e-15);
    assert_close(rg_kernel_join(3.0, 4.0, 2.0), 5.0, 1e-15);
    assert_close(rg_kernel_join(3.0, 0.0, 2.0), 3.0, 0.0);
}

static void half_of_the_reads_hit_when_the_footprint_fills_the_room(void **state)
{
    (void)state;
    assert_close(rg_kernel_hit_ratio(5e7, 5e7), 0.5, 1e-15);
    assert_close(rg_kernel_hit_ratio(1e8, 5e7), 1.0 / 17.0, 1e-15);
    assert_close(rg_kernel_hit_ratio(1.0, 0.0), 0.0, 0.0);
}

static rg_op decode(int64_t batch, double kv, int64_t heads, int64_t kv_heads, const char *cache)
{
    const rg_op_attention a = {.batch = batch,
                               .q_tokens = 1,
                               .kv_tokens = kv,
                               .kv_tokens_max = kv,
                               .heads = heads,
                               .kv_heads = kv_heads,
                               .head_dim = 128,
                               .v_head_dim = 128,
                               .causal = true,
                               .fused = true,
                               .math = RG_BF16,
                               .kv = format(cache),
                               .page_tokens = 64};
    return rg_op_make_attention("attention", RG_OP_ATTN_DECODE, &a);
}

static const char *choice(const rg_kernel_device *device, const rg_op *op)
{
    rg_kernel_time t;
    rg_err err;
    assert_ok(rg_kernel_op_time(device, op, &t, &err));
    return t.choice;
}

static void decode_kernel_follows_the_library_rule(void **state)
{
    (void)state;
    /* 132 SMs: 4 B K max(1, S / 128) >= 132 needs 33 blocks. 16 requests with 2 KV heads are 32,
     * 17 are 34; at 256 tokens each counts twice. Groups of 1 and above 32 are never XQA's. */
    rg_kernel_device d = round_device();
    d.units = 132;
    d.vector_decode = true;
    const rg_op few = decode(16, 100, 16, 2, "bf16"), enough = decode(17, 100, 16, 2, "bf16");
    const rg_op longer = decode(16, 256, 16, 2, "bf16"), single = decode(64, 100, 16, 16, "bf16");
    const rg_op wide = decode(64, 100, 80, 2, "bf16");
    assert_string_equal(choice(&d, &few), "vector kernel");
    assert_string_equal(choice(&d, &enough), "matrix kernel");
    assert_string_equal(choice(&d, &longer), "matrix kernel, split");
    assert_string_equal(choice(&d, &single), "vector kernel");
    assert_string_equal(choice(&d, &wide), "vector kernel");
}

static void a_window_costs_little_more_than_a_cache_of_its_length(void **state)
{
    (void)state;
    const rg_kernel_device d = round_device();
    rg_op windowed = decode(64, 30000, 16, 2, "bf16");
    rg_op_attention a = windowed.u.attention;
    a.window = 1024;
    windowed = rg_op_make_attention("attention", RG_OP_ATTN_DECODE, &a);
    const rg_op cut = decode(64, 1023, 16, 2, "bf16");
    const rg_op full = decode(64, 30000, 16, 2, "bf16");
    /* The same tokens, but as many splits as 30001 tokens have. */
    assert_true(seconds(&d, &windowed) >= seconds(&d, &cut));
    assert_true(seconds(&d, &windowed) < 3.0 * seconds(&d, &cut));
    assert_true(seconds(&d, &windowed) < 0.2 * seconds(&d, &full));
}

static rg_op prefill(int64_t batch, int64_t q, double past, bool causal)
{
    const rg_op_attention a = {.batch = batch,
                               .q_tokens = q,
                               .kv_tokens = past,
                               .kv_tokens_max = past,
                               .heads = 32,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .v_head_dim = 128,
                               .causal = causal,
                               .fused = true,
                               .math = RG_BF16,
                               .kv = format("bf16"),
                               .page_tokens = 64};
    return rg_op_make_attention("attention", RG_OP_ATTN_PREFILL, &a);
}

static void causal_prefill_nears_half_of_the_full_square(void **state)
{
    (void)state;
    /* Q(Q+1)/2 of Q^2 tiles: 0.5039 at Q = 128. On top of 32 8256 / 132 = 2001 steps an SM come a
     * tail of up to 128 steps, the bytes and the launches: up to 6 % of the causal time. */
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *d = real_device(arena, "h200-sxm", NULL);
    const rg_op half = prefill(1, 16384, 0, true), full = prefill(1, 16384, 0, false);
    assert_close(seconds(d, &half) / seconds(d, &full), 0.5039, 0.06);
    rg_arena_free(arena);
}

static void chunks_of_a_prompt_cost_at_least_the_prompt(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *d = real_device(arena, "h200-sxm", NULL);
    const rg_op whole = prefill(1, 8192, 0, true);
    double sum = 0.0;
    for (int i = 0; i < 4; i++) {
        const rg_op chunk = prefill(1, 2048, 2048.0 * i, true);
        sum += seconds(d, &chunk);
    }
    assert_true(sum >= seconds(d, &whole));
    rg_arena_free(arena);
}

static rg_op experts(int64_t tokens, double skew, bool dealt)
{
    const rg_op_moe s = {.tokens = tokens,
                         .hidden = 4096,
                         .inter = 1536,
                         .experts = 128,
                         .top_k = 8,
                         .local_experts = 128,
                         .matrices = 3,
                         .skew = skew,
                         .dealt = dealt,
                         .weight = format("bf16"),
                         .math = RG_BF16,
                         .act = RG_BF16};
    return rg_op_make_moe("experts", &s);
}

static void dealt_rows_touch_more_experts_than_drawn_ones(void **state)
{
    (void)state;
    /* 16 tokens x 8 of 128 experts: all 128 when dealt out; 128 (1 - (1 - 1/16)^16) = 82.4 drawn.
     */
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *d = real_device(arena, "h200-sxm", NULL);
    const rg_op dealt = experts(16, 0.0, true), drawn = experts(16, 0.0, false);
    const double per_expert = 3.0 * 4096 * 1536 * 2;
    assert_close(dealt.weight_bytes.v, 128 * per_expert, 1e-12);
    assert_close(drawn.weight_bytes.v, 128.0 * (1.0 - pow(15.0 / 16.0, 16)) * per_expert, 1e-12);
    assert_true(seconds(d, &dealt) > 1.2 * seconds(d, &drawn));
    rg_arena_free(arena);
}

static void skew_slows_many_tokens_and_spares_few(void **state)
{
    (void)state;
    /* Few tokens: skewed loads touch fewer experts, so less is read. Many: tiles of the busiest
     * experts are full ones, so no time is won and tails are lost. */
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *d = real_device(arena, "h200-sxm", NULL);
    const rg_op few = experts(32, 1.01, false), few_even = experts(32, 0.0, true);
    const rg_op many = experts(4096, 1.01, false), many_even = experts(4096, 0.0, true);
    assert_true(seconds(d, &few) < seconds(d, &few_even));
    assert_true(seconds(d, &many) > 0.97 * seconds(d, &many_even));
    rg_arena_free(arena);
}

static void experts_run_with_the_tile_of_the_power_of_two_below(void **state)
{
    (void)state;
    /* Measured on H200 (160 experts of 6144 x 640, top 8, bf16): 768 tokens take 1184 us with the
     * tile that was tuned at 512, 1024 tokens 1107 us with their own. */
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *d = real_device(arena, "h200-sxm", NULL);
    rg_op_moe s = {.tokens = 768,
                   .hidden = 6144,
                   .inter = 640,
                   .experts = 160,
                   .top_k = 8,
                   .local_experts = 160,
                   .matrices = 3,
                   .dealt = true,
                   .weight = format("bf16"),
                   .math = RG_BF16,
                   .act = RG_BF16};
    const rg_op fewer = rg_op_make_moe("experts", &s);
    s.tokens = 1024;
    const rg_op more = rg_op_make_moe("experts", &s);
    assert_true(seconds(d, &fewer) > seconds(d, &more));
    assert_close(seconds(d, &fewer), 1184e-6, 0.2);
    assert_close(seconds(d, &more), 1107e-6, 0.2);
    rg_arena_free(arena);
}

static void many_choices_are_routed_by_general_kernels(void **state)
{
    (void)state;
    /* The fused routing kernel takes a top-k up to 16. Measured on H200 with one token: 45 us with
     * top 22 of 512, about 24 us with top 8 of 256, at hidden 2048. */
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *d = real_device(arena, "h200-sxm", NULL);
    rg_op_moe s = {.tokens = 1,
                   .hidden = 2048,
                   .inter = 512,
                   .experts = 512,
                   .top_k = 16,
                   .local_experts = 8,
                   .matrices = 3,
                   .weight = format("bf16"),
                   .math = RG_BF16,
                   .act = RG_BF16};
    const rg_op fused = rg_op_make_moe("experts", &s);
    s.top_k = 17;
    const rg_op general = rg_op_make_moe("experts", &s);
    const double more = seconds(d, &general) - seconds(d, &fused);
    assert_true(more > 10e-6 && more < 30e-6);
    rg_arena_free(arena);
}

/* 256 experts of 7168 x 256, top 8, with block-scaled or mxfp4 weights, so many of them here. */
static rg_op narrow_experts(int64_t tokens, int64_t local, const char *weight)
{
    const rg_op_moe s = {.tokens = tokens,
                         .hidden = 7168,
                         .inter = 256,
                         .experts = 256,
                         .top_k = 8,
                         .local_experts = local,
                         .matrices = 3,
                         .weight = format(weight),
                         .math = strcmp(weight, "fp8_block") == 0 ? RG_FP8 : RG_BF16,
                         .act = RG_BF16};
    return rg_op_make_moe("experts", &s);
}

static void idle_experts_cost_nothing_in_a_fused_kernel(void **state)
{
    (void)state;
    /* One token touches 8 of 256 experts. The grouped kernel pays for all of them (measured on
     * H200: 33 us with 8 of 256 here, 68 us with 128), the fused one for those that have rows. */
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_options fused = {.experts = RG_EXPERTS_TRITON};
    const rg_kernel_device *grouped = real_device(arena, "h200-sxm", NULL);
    const rg_kernel_device *triton = real_device(arena, "h200-sxm", &fused);
    const rg_op op = narrow_experts(1, 256, "fp8_block");
    assert_true(seconds(triton, &op) < 0.7 * seconds(grouped, &op));
    /* other formats are not touched */
    const rg_op wide = experts(64, 0.0, false);
    assert_close(seconds(triton, &wide), seconds(grouped, &wide), 1e-12);
    /* and never does it take longer */
    for (int64_t n = 1; n < 20000; n *= 3) {
        const rg_op many = narrow_experts(n, 256, "fp8_block");
        assert_true(seconds(triton, &many) <= seconds(grouped, &many));
    }
    rg_arena_free(arena);
}

static void mxfp4_experts_start_slowly_where_routing_is_cut_down(void **state)
{
    (void)state;
    /* Triton's router of a rank with few of the experts has kernels of its own; Blackwell does not
     * run Triton's kernel, so its start is that of any other experts. */
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *hopper = real_device(arena, "h200-sxm", NULL);
    const rg_kernel_device *blackwell = real_device(arena, "b200-sxm", NULL);
    const rg_op few = narrow_experts(1, 4, "mxfp4_wo"), all = narrow_experts(1, 256, "mxfp4_wo");
    const rg_op plain = narrow_experts(1, 4, "bf16");
    assert_true(seconds(hopper, &few) > 40e-6 + seconds(hopper, &plain));
    assert_true(seconds(hopper, &all) < seconds(hopper, &few));
    assert_true(seconds(blackwell, &few) < 5e-6 + seconds(blackwell, &plain));
    rg_arena_free(arena);
}

static void borrowed_shares_hold_for_what_a_device_sustains(void **state)
{
    (void)state;
    /* AMD measured 708 TFLOP/s at best in bf16 on the MI300X (hipBLASLt, 4096 x 4864 x 32896), of a
     * peak of 1307. Borrowed shares of the peak alone would give over 1000. */
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *d = real_device(arena, "mi300x", NULL);
    const rg_op op = product(4096, 4864, 32896);
    rg_kernel_time t;
    rg_err err;
    assert_ok(rg_kernel_op_time(d, &op, &t, &err));
    assert_close(op.flops.v / t.total.v, 708e12, 0.05);
    assert_close(op.flops.v / t.roofline.v, 1307.4e12, 1e-9); /* the roofline is the data sheet's */
    rg_arena_free(arena);
}

/* A grid of operators of every kind. */
static int grid(rg_op *out)
{
    static const int64_t sizes[] = {1, 16, 100, 257, 1024, 5000};
    int n = 0;
    for (int i = 0; i < 6; i++) {
        const int64_t m = sizes[i];
        out[n++] = product(m, 4096, 4096);
        out[n++] = product(m, 28672, 8192);
        out[n++] = product(m, 1024, 512);
        out[n++] = prefill(1 + m / 500, 16 + 7 * m, 0, true);
        out[n++] = prefill(1, 512, (double)m * 10, true);
        out[n++] = decode(1 + m / 8, 50.0 * (double)m, 32, 8, "bf16");
        out[n++] = decode(1 + m / 8, 50.0 * (double)m, 32, 32, "fp8");
        out[n++] = experts(m, 0.0, false);
        out[n++] = experts(m, 1.2, false);
        const rg_op_stream s = {.read_bytes = 8192.0 * (double)m,
                                .write_bytes = 8192.0 * (double)m,
                                .flops = 5.0 * 4096.0 * (double)m,
                                .rows = m,
                                .kernels = 1};
        out[n++] = rg_op_make_stream("norm", &s);
        rg_op_attention latent = {.batch = 1 + m / 8,
                                  .q_tokens = 1,
                                  .kv_tokens = 50.0 * (double)m,
                                  .heads = 16,
                                  .kv_heads = 16,
                                  .head_dim = 192,
                                  .v_head_dim = 128,
                                  .latent = 512,
                                  .rope_dim = 64,
                                  .causal = true,
                                  .fused = true,
                                  .math = RG_BF16,
                                  .kv = format("bf16")};
        out[n++] = rg_op_make_attention("latent", RG_OP_MLA_DECODE, &latent);
        latent.q_tokens = 16 + m;
        latent.kv_tokens = 0;
        latent.batch = 2;
        out[n++] = rg_op_make_attention("latent", RG_OP_MLA_PREFILL, &latent);
    }
    return n;
}

static void better_machines_are_never_slower(void **state)
{
    (void)state;
    static rg_op ops[128];
    const int n = grid(ops);
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *base = real_device(arena, "h200-sxm", &(rg_kernel_options){0});
    rg_kernel_device slow = *base, fast = *base, wide = *base;
    slow.serial = fast.serial = wide.serial = 0;
    fast.memory_rate *= 2.0;
    for (int t = 0; t < RG_DTYPE_COUNT; t++)
        wide.peak[t] *= 2.0;
    for (int i = 0; i < n; i++) {
        const double before = seconds(&slow, &ops[i]);
        assert_true(seconds(&fast, &ops[i]) <= before * (1.0 + 1e-12));
        assert_true(seconds(&wide, &ops[i]) <= before * (1.0 + 1e-12));
    }
    rg_arena_free(arena);
}

static void cold_predictions_stay_above_the_roofline(void **state)
{
    (void)state;
    static rg_op ops[128];
    const int n = grid(ops);
    rg_arena *arena = rg_arena_new(64);
    static const char *const names[] = {"h200-sxm", "a100-sxm-80gb", "h100-sxm"};
    for (int d = 0; d < 3; d++) {
        const rg_kernel_device *device =
            real_device(arena, names[d], &(rg_kernel_options){.cold_l2 = true});
        for (int i = 0; i < n; i++) {
            if (ops[i].kind == RG_OP_MOE || ops[i].kind == RG_OP_STREAM)
                continue; /* loads of the model's own sampling; activations may lie in L2 */
            rg_kernel_time t;
            rg_err err;
            assert_ok(rg_kernel_op_time(device, &ops[i], &t, &err));
            /* An 8-bit cache lets prefill multiply in 8 bit, twice as fast as its type's roof. */
            assert_true(t.total.v >= t.roofline.v);
        }
    }
    rg_arena_free(arena);
}

static void remembered_shapes_equal_computed_ones(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *kept = real_device(arena, "a100-sxm-80gb", NULL);
    rg_kernel_device fresh = *kept;
    fresh.serial = 0;
    for (int round = 0; round < 2; round++)
        for (int64_t m = 1; m < 3000; m += 7) {
            const rg_op op = product(m, 4096 + 8 * (m % 5), 1024);
            rg_kernel_time a, b;
            rg_err err;
            assert_ok(rg_kernel_op_time(kept, &op, &a, &err));
            assert_ok(rg_kernel_op_time(&fresh, &op, &b, &err));
            assert_memory_equal(&a.total, &b.total, sizeof a.total);
        }
    rg_arena_free(arena);
}

static void a_type_without_a_rate_is_refused_by_name(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *d = real_device(arena, "a100-sxm-80gb", NULL);
    const rg_format fp8 = format("fp8");
    const rg_op op = rg_op_make_gemm("product", 16, 128, 128, &fp8, RG_FP8, RG_BF16);
    rg_kernel_time t;
    rg_err err;
    assert_int_equal(rg_kernel_op_time(d, &op, &t, &err), RG_ERR_MODEL);
    assert_non_null(strstr(err.text, "a100-sxm-80gb"));
    assert_non_null(strstr(err.text, "fp8"));
    rg_arena_free(arena);
}

static void borrowed_constants_are_said_and_have_no_validated_band(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_op op = product(64, 8192, 8192);
    const rg_kernel_device *own = real_device(arena, "h200-sxm", NULL);
    const rg_kernel_device *lent = real_device(arena, "l40s", NULL);
    assert_non_null(strstr(rg_kernel_device_note(lent), "borrowed"));
    assert_non_null(strstr(rg_kernel_device_note(lent), "not validated"));
    assert_int_equal(rg_kernel_band(own, &op).basis, RG_BAND_VALIDATED);
    assert_int_not_equal(rg_kernel_band(lent, &op).basis, RG_BAND_VALIDATED);
    assert_string_equal(rg_kernel_band(own, &op).size_class, "m<=128");
    /* 1e18 flop: no table has a product of minutes. */
    const rg_op endless = product(1000000, 1000000, 500000);
    assert_int_equal(rg_kernel_band(own, &endless).basis, RG_BAND_NONE);
    rg_arena_free(arena);
}

static void sustained_runs_are_no_faster_than_bursts(void **state)
{
    (void)state;
    rg_arena *arena = rg_arena_new(64);
    const rg_kernel_device *burst =
        real_device(arena, "h200-sxm", &(rg_kernel_options){.constants_from = "start"});
    const rg_kernel_device *run = real_device(
        arena, "h200-sxm", &(rg_kernel_options){.constants_from = "start", .sustained = true});
    /* 16384^3 takes over ten milliseconds: nearly all of it at the sustained rate, 0.80 of 0.90. */
    const rg_op large = product(16384, 16384, 16384), small = product(512, 4096, 4096);
    assert_true(seconds(run, &large) >= seconds(burst, &large));
    assert_close(seconds(run, &large) / seconds(burst, &large), 1.0, 0.01);
    assert_true(seconds(run, &small) > 1.02 * seconds(burst, &small));
    rg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_wave_of_tiles_and_the_bytes_beside_it),
        cmocka_unit_test(a_tile_too_many_goes_to_larger_tiles_or_splits),
        cmocka_unit_test(waves_after_the_first_pay_for_filling_and_draining),
        cmocka_unit_test(clusters_load_shared_operands_once),
        cmocka_unit_test(the_power_limit_holds_all_sms_together),
        cmocka_unit_test(block_scaled_tiles_follow_the_library_rule),
        cmocka_unit_test(dynamic_quantisation_adds_its_kernels_and_passes),
        cmocka_unit_test(ideal_is_the_roofline_to_the_last_bit),
        cmocka_unit_test(join_adds_at_one_and_is_pythagoras_at_two),
        cmocka_unit_test(half_of_the_reads_hit_when_the_footprint_fills_the_room),
        cmocka_unit_test(decode_kernel_follows_the_library_rule),
        cmocka_unit_test(a_window_costs_little_more_than_a_cache_of_its_length),
        cmocka_unit_test(causal_prefill_nears_half_of_the_full_square),
        cmocka_unit_test(chunks_of_a_prompt_cost_at_least_the_prompt),
        cmocka_unit_test(dealt_rows_touch_more_experts_than_drawn_ones),
        cmocka_unit_test(skew_slows_many_tokens_and_spares_few),
        cmocka_unit_test(experts_run_with_the_tile_of_the_power_of_two_below),
        cmocka_unit_test(many_choices_are_routed_by_general_kernels),
        cmocka_unit_test(borrowed_shares_hold_for_what_a_device_sustains),
        cmocka_unit_test(idle_experts_cost_nothing_in_a_fused_kernel),
        cmocka_unit_test(mxfp4_experts_start_slowly_where_routing_is_cut_down),
        cmocka_unit_test(better_machines_are_never_slower),
        cmocka_unit_test(cold_predictions_stay_above_the_roofline),
        cmocka_unit_test(remembered_shapes_equal_computed_ones),
        cmocka_unit_test(a_type_without_a_rate_is_refused_by_name),
        cmocka_unit_test(borrowed_constants_are_said_and_have_no_validated_band),
        cmocka_unit_test(sustained_runs_are_no_faster_than_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

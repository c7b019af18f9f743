/* bench_kernel: operator predictions per CPU second, by kind and over the operators of a decode
 * step with changing batch and context, as serving asks for them.
 *
 * usage: bench_kernel [HARDWARE [MILLIONS]]. Prints a line "kind rate_per_s ns_each". Times are CPU
 * time of this thread.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernel/kernel.h"

enum { SHAPES = 512 };

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double run(const rg_kernel_device *device, const rg_op *ops, int count, long calls,
                  const char *name)
{
    rg_kernel_time time;
    double sum = 0.0;
    const double before = cpu_seconds();
    for (long i = 0; i < calls; i++) {
        if (rg_kernel_op_time(device, &ops[i % count], &time, NULL) != RG_OK)
            exit(1);
        sum += time.total.v;
    }
    const double each = (cpu_seconds() - before) / (double)calls;
    printf("%-22s %12.0f /s %8.1f ns (mean %.3g s)\n", name, 1.0 / each, each * 1e9,
           sum / (double)calls);
    return each;
}

/* Llama-3.1-70B on 4 devices: the linear layers of one layer and its attention. */
static int decode_step(rg_op *ops, int64_t batch, double context)
{
    static const int64_t shapes[4][2] = {{2560, 8192}, {8192, 2048}, {14336, 8192}, {8192, 7168}};
    rg_format bf16;
    rg_err err;
    if (rg_format_parse("bf16", RG_NOWHERE, &bf16, &err) != RG_OK)
        exit(1);
    for (int i = 0; i < 4; i++)
        ops[i] =
            rg_op_make_gemm("linear", batch, shapes[i][0], shapes[i][1], &bf16, RG_BF16, RG_BF16);
    const rg_op_attention attention = {.batch = batch,
                                       .q_tokens = 1,
                                       .kv_tokens = context,
                                       .kv_tokens_max = context,
                                       .heads = 16,
                                       .kv_heads = 2,
                                       .head_dim = 128,
                                       .v_head_dim = 128,
                                       .causal = true,
                                       .fused = true,
                                       .math = RG_BF16,
                                       .kv = bf16,
                                       .page_tokens = 16};
    ops[4] = rg_op_make_attention("attention", RG_OP_ATTN_DECODE, &attention);
    const rg_op_stream norm = {.read_bytes = 4.0 * 8192.0 * (double)batch,
                               .write_bytes = 4.0 * 8192.0 * (double)batch,
                               .rows = batch,
                               .kernels = 1};
    ops[5] = rg_op_make_stream("norm", &norm);
    ops[6] = ops[5];
    return 7;
}

int main(int argc, char **argv)
{
    const char *hardware = argc > 1 ? argv[1] : "h200-sxm";
    const long millions = argc > 2 ? atol(argv[2]) : 2;
    rg_arena *arena = rg_arena_new(64);
    rg_accel *accel;
    rg_kernel_device *device;
    rg_err err;
    if (rg_accel_load(arena, hardware, &accel, &err) != RG_OK ||
        rg_kernel_prepare(arena, accel, &(rg_kernel_options){.cold_l2 = true}, &device, &err) !=
            RG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    static rg_op ops[SHAPES * 7];
    int count = 0;
    for (int i = 0; i < SHAPES; i++)
        count += decode_step(ops + count, 1 + i % 256, 1000.0 + 37.0 * i);
    run(device, ops, count, millions * 1000000, "decode step, mixed");
    static rg_op products[1 << 16];
    for (int i = 0; i < 1 << 16; i++) /* every shape new to the memory of recent ones */
        products[i] = rg_op_make_gemm("linear", 1 + i, 8192 + 64 * (i % 7), 4096,
                                      &ops[0].u.gemm.weight, RG_BF16, RG_BF16);
    run(device, products, 1 << 16, millions * 250000, "product, new shape");
    run(device, ops, 4, millions * 1000000, "product, known shape");
    run(device, ops + 4, 1, millions * 1000000, "decode attention");
    run(device, ops + 5, 1, millions * 1000000, "stream");
    rg_op_moe experts = {.tokens = 64,
                         .hidden = 4096,
                         .inter = 1536,
                         .experts = 128,
                         .top_k = 8,
                         .local_experts = 16,
                         .matrices = 3,
                         .weight = ops[0].u.gemm.weight,
                         .math = RG_BF16,
                         .act = RG_BF16};
    rg_op moe = rg_op_make_moe("experts", &experts);
    run(device, &moe, 1, millions * 100000, "experts");
    rg_arena_free(arena);
    return 0;
}

/* kernels/micro.cu: small kernels that each ask one question of the hardware, and their references.
 *
 * Reads micro.h, dev.h. Streams: how much memory gives at how many bytes in flight, which are
 * blocks an SM x 256 threads x 16 B x unroll; unused shared memory is what keeps blocks off an SM.
 */
// SPDX-License-Identifier: Apache-2.0
#include "micro.h"

#ifdef RG_HOST

#include <math.h>

uint32_t rg_stream_reference_sum(const uint32_t *words, int64_t count, int32_t passes)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += words[i];
    return sum * (uint32_t)passes;
}

static double half_value(uint16_t h)
{
    const int exponent = (h >> 10) & 31, mantissa = h & 1023;
    const double magnitude =
        exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return h & 0x8000 ? -magnitude : magnitude;
}

/* Element i of a fragment word. */
static double fragment_element(rg_store store, uint32_t word, int i)
{
    switch (store) {
    case RG_STORE_BF16:
        return rg_bf16_value((uint16_t)(word >> (16 * i)));
    case RG_STORE_RAW:
        return half_value((uint16_t)(word >> (16 * i)));
    case RG_STORE_E4M3:
        return rg_e4m3_value((uint8_t)(word >> (8 * i)));
    case RG_STORE_INT8:
        return (int8_t)(word >> (8 * i));
    default:
        return rg_bits_float(word & 0xffffe000u);
    }
}

/* C[row][column] = sum over s and k of A[row][k] B_s[k][column], fragments as PTX lays out m16n8:
 * word 0 of A is row lane/4, words 1 and 3 are 8 rows below, words 2 and 3 the upper half of k */
double rg_tensor_reference(const uint32_t *fragments, rg_store store, int row, int column)
{
    const int per =
        store == RG_STORE_FP32 ? 1 : (store == RG_STORE_BF16 || store == RG_STORE_RAW ? 2 : 4);
    double sum = 0;
    for (int half = 0; half < 2; half++)
        for (int quad = 0; quad < 4; quad++)
            for (int i = 0; i < per * RG_TENSOR_SUMS; i++) {
                const uint32_t *a = fragments + (row % 8 * 4 + quad) * RG_TENSOR_WORDS;
                const uint32_t *b = fragments + (column * 4 + quad) * RG_TENSOR_WORDS;
                sum += fragment_element(store, a[2 * half + (row >= 8)], i % per) *
                       fragment_element(store, b[4 + 2 * (i / per) + half], i % per);
            }
    return sum;
}

#else
#include "dev.h"

RG_KERNEL(rg_stamp_now, rg_stamp_params, RG_STAMP_THREADS, 1)
{
    if (RG_TID == 0) {
        p.out->sm = rg_sm_id();
        p.out->ns = rg_nanoseconds();
        p.out->cycles = rg_cycles();
    }
}

RG_KERNEL(rg_empty, rg_empty_params, RG_STAMP_THREADS, 1) {}

/** Sum of a word over the block into *out; parts is shared memory, a word a warp. */
RG_DEVICE void block_sum(uint32_t sum, uint32_t *out, unsigned char *shared)
{
    uint32_t *parts = (uint32_t *)shared;
    for (int mask = 16; mask > 0; mask /= 2)
        sum += rg_shfl_xor_u(sum, mask);
    rg_sync();
    if (RG_TID % 32 == 0)
        parts[RG_TID / 32] = sum;
    rg_sync();
    if (RG_TID == 0) {
        uint32_t total = 0;
        for (int w = 0; w < RG_THREADS / 32; w++)
            total += parts[w];
        *out = total;
    }
}

RG_DEVICE uint32_t word_sum(uint4 v)
{
    return v.x + v.y + v.z + v.w;
}

template <int unroll>
RG_DEVICE void stream_read(const rg_stream_params &p, unsigned char *shared)
{
    const int64_t step = (int64_t)RG_GRID * RG_MICRO_THREADS;
    const int64_t start = (int64_t)RG_BID * RG_MICRO_THREADS + RG_TID;
    uint32_t sum = 0;
    for (int pass = 0; pass < p.passes; pass++)
        for (int64_t i = start; i < p.vectors; i += unroll * step) {
            uint4 v[unroll];
            RG_UNROLL
            for (int u = 0; u < unroll; u++) {
                v[u] = make_uint4(0, 0, 0, 0);
                if (i + u * step < p.vectors)
                    v[u] = rg_load_stream(p.b + 16 * (i + u * step));
            }
            RG_UNROLL
            for (int u = 0; u < unroll; u++)
                sum += word_sum(v[u]);
        }
    block_sum(sum, p.sums + RG_BID, shared);
}

#define RG_STREAM_READ(unroll)                                                \
    RG_KERNEL(rg_stream_read_##unroll, rg_stream_params, RG_MICRO_THREADS, 4) \
    {                                                                         \
        RG_SHARED(shared);                                                    \
        stream_read<unroll>(p, shared);                                       \
    }
RG_STREAM_READ(1)
RG_STREAM_READ(2)
RG_STREAM_READ(4)
RG_STREAM_READ(8)

typedef enum stream_kind { STREAM_WRITE, STREAM_COPY, STREAM_TRIAD } stream_kind;

template <stream_kind kind>
RG_DEVICE uint4 stream_value(uint4 b, uint4 c, uint32_t i)
{
    if constexpr (kind == STREAM_WRITE) {
        /* random words, made on the spot */
        const uint32_t x = (i * 0x9e3779b9u) ^ (i >> 15);
        return make_uint4(x, x * 0x85ebca6bu, x ^ 0xc2b2ae35u, x * 0x27d4eb2fu);
    } else if constexpr (kind == STREAM_COPY) {
        return b;
    } else {
        return make_uint4(rg_float_bits(rg_bits_float(b.x) + 3.0f * rg_bits_float(c.x)),
                          rg_float_bits(rg_bits_float(b.y) + 3.0f * rg_bits_float(c.y)),
                          rg_float_bits(rg_bits_float(b.z) + 3.0f * rg_bits_float(c.z)),
                          rg_float_bits(rg_bits_float(b.w) + 3.0f * rg_bits_float(c.w)));
    }
}

template <stream_kind kind>
RG_DEVICE void stream_store(const rg_stream_params &p)
{
    constexpr int unroll = 4;
    const int64_t step = (int64_t)RG_GRID * RG_MICRO_THREADS;
    for (int64_t i = (int64_t)RG_BID * RG_MICRO_THREADS + RG_TID; i < p.vectors;
         i += unroll * step) {
        uint4 b[unroll] = {}, c[unroll] = {};
        RG_UNROLL
        for (int u = 0; u < unroll; u++) {
            if (i + u * step >= p.vectors)
                continue;
            if (kind != STREAM_WRITE)
                b[u] = rg_load_stream(p.b + 16 * (i + u * step));
            if (kind == STREAM_TRIAD)
                c[u] = rg_load_stream(p.c + 16 * (i + u * step));
        }
        RG_UNROLL
        for (int u = 0; u < unroll; u++)
            if (i + u * step < p.vectors)
                rg_store16(p.a + 16 * (i + u * step),
                           stream_value<kind>(b[u], c[u], (uint32_t)(i + u * step)));
    }
}

RG_KERNEL(rg_stream_write, rg_stream_params, RG_MICRO_THREADS, 4)
{
    stream_store<STREAM_WRITE>(p);
}
RG_KERNEL(rg_stream_copy, rg_stream_params, RG_MICRO_THREADS, 4)
{
    stream_store<STREAM_COPY>(p);
}
RG_KERNEL(rg_stream_triad, rg_stream_params, RG_MICRO_THREADS, 4)
{
    stream_store<STREAM_TRIAD>(p);
}

/** Read with fmas multiply-adds for each float: the corner of the roofline. The float sums go out
 * as bits, summed. */
RG_KERNEL(rg_stream_fma, rg_stream_params, RG_MICRO_THREADS, 4)
{
    RG_SHARED(shared);
    constexpr int unroll = 4;
    const int64_t step = (int64_t)RG_GRID * RG_MICRO_THREADS;
    float total[4] = {0, 0, 0, 0};
    for (int64_t i = (int64_t)RG_BID * RG_MICRO_THREADS + RG_TID; i < p.vectors;
         i += unroll * step) {
        uint4 v[unroll];
        RG_UNROLL
        for (int u = 0; u < unroll; u++) {
            v[u] = make_uint4(0, 0, 0, 0);
            if (i + u * step < p.vectors)
                v[u] = rg_load_stream(p.b + 16 * (i + u * step));
        }
        float x[unroll][4];
        RG_UNROLL
        for (int u = 0; u < unroll; u++) {
            x[u][0] = rg_bits_float(v[u].x), x[u][1] = rg_bits_float(v[u].y);
            x[u][2] = rg_bits_float(v[u].z), x[u][3] = rg_bits_float(v[u].w);
        }
        for (int f = 0; f < p.fmas; f++)
            RG_UNROLL
        for (int u = 0; u < unroll; u++)
            RG_UNROLL
        for (int e = 0; e < 4; e++)
            x[u][e] = x[u][e] * 0.5f + 0.25f;
        RG_UNROLL
        for (int u = 0; u < unroll; u++)
            RG_UNROLL
        for (int e = 0; e < 4; e++)
            total[e] += x[u][e];
    }
    block_sum(rg_float_bits(total[0] + total[1] + total[2] + total[3]), p.sums + RG_BID, shared);
}

RG_KERNEL(rg_gather, rg_gather_params, RG_MICRO_THREADS, 4)
{
    RG_SHARED(shared);
    constexpr int unroll = 4;
    const int64_t step = (int64_t)RG_GRID * RG_MICRO_THREADS;
    uint32_t sum = 0;
    for (int64_t i = (int64_t)RG_BID * RG_MICRO_THREADS + RG_TID; i < p.chunks;
         i += unroll * step) {
        int64_t at[unroll];
        uint4 v[unroll];
        RG_UNROLL
        for (int u = 0; u < unroll; u++) {
            const int64_t chunk = i + u * step;
            at[u] = -1;
            if (chunk < p.chunks) {
                const uint32_t run = rg_divide((uint32_t)chunk, p.by_run);
                at[u] = (int64_t)p.order[run] * p.run_chunks + chunk - (int64_t)run * p.run_chunks;
            }
        }
        RG_UNROLL
        for (int u = 0; u < unroll; u++) {
            v[u] = make_uint4(0, 0, 0, 0);
            if (at[u] >= 0)
                v[u] = rg_load_stream(p.from + 16 * at[u]);
        }
        RG_UNROLL
        for (int u = 0; u < unroll; u++)
            sum += word_sum(v[u]);
    }
    block_sum(sum, p.sums + RG_BID, shared);
}

RG_KERNEL(rg_chase, rg_chase_params, RG_STAMP_THREADS, 1)
{
    if (RG_TID != 0)
        return;
    uint32_t at = 0;
    for (int s = 0; s < p.steps; s++)
        at = rg_load_l2_word(p.next + 32 * (int64_t)at);
    *p.end = at;
}

RG_KERNEL(rg_shared_read, rg_shared_params, RG_MICRO_THREADS, 4)
{
    RG_SHARED(shared);
    uint4 *const vectors = (uint4 *)shared;
    constexpr uint32_t count = RG_SHARED_READS_BYTES / 16;
    for (uint32_t i = (uint32_t)RG_TID; i < count; i += RG_MICRO_THREADS)
        vectors[i] = make_uint4(i, 1, 2, 3);
    rg_sync();
    uint32_t sum = 0;
    uint32_t at = (uint32_t)(RG_TID * p.stride) % count;
    for (int l = 0; l < p.loops; l++) {
        RG_UNROLL
        for (uint32_t u = 0; u < 4; u++)
            sum += word_sum(vectors[(at + u * RG_MICRO_THREADS) % count]);
        at = (at + 8) % count; /* keeps the banks, changes the address: nothing to hoist */
    }
    block_sum(sum, p.sums + RG_BID, shared);
}

typedef enum tensor_kind {
    TENSOR_BF16,
    TENSOR_FP16,
    TENSOR_TF32,
    TENSOR_INT8,
    TENSOR_FP8
} tensor_kind;

template <tensor_kind kind>
RG_DEVICE void tensor_loop(const rg_tensor_params &p)
{
    uint32_t a[4], b[RG_TENSOR_SUMS][2];
    const uint32_t *from = p.fragments + RG_TID % 32 * RG_TENSOR_WORDS;
    RG_UNROLL
    for (int i = 0; i < 4; i++)
        a[i] = from[i];
    RG_UNROLL
    for (int s = 0; s < RG_TENSOR_SUMS; s++)
        b[s][0] = from[4 + 2 * s], b[s][1] = from[5 + 2 * s];
    float d[RG_TENSOR_SUMS][4] = {};
    uint32_t n[RG_TENSOR_SUMS][4] = {};
    for (int l = 0; l < p.loops; l++)
        RG_UNROLL
    for (int s = 0; s < RG_TENSOR_SUMS; s++) {
        if constexpr (kind == TENSOR_BF16)
            rg_mma_bf16(d[s], a, b[s]);
        if constexpr (kind == TENSOR_FP16)
            rg_mma_fp16(d[s], a, b[s]);
        if constexpr (kind == TENSOR_TF32)
            rg_mma_tf32(d[s], a, b[s]);
        if constexpr (kind == TENSOR_FP8)
            rg_mma_e4m3(d[s], a, b[s]);
        if constexpr (kind == TENSOR_INT8)
            rg_mma_int8(n[s], a, b[s]);
    }
    float *out = p.out + ((int64_t)RG_BID * RG_MICRO_THREADS + RG_TID) * 4;
    RG_UNROLL
    for (int e = 0; e < 4; e++) {
        float sum = 0;
        uint32_t whole = 0;
        RG_UNROLL
        for (int s = 0; s < RG_TENSOR_SUMS; s++) {
            sum += d[s][e];
            whole += n[s][e];
        }
        out[e] = kind == TENSOR_INT8 ? (float)(int32_t)whole : sum;
    }
}

#define RG_TENSOR(name, kind)                                          \
    RG_KERNEL(rg_tensor_##name, rg_tensor_params, RG_MICRO_THREADS, 2) \
    {                                                                  \
        tensor_loop<kind>(p);                                          \
    }
RG_TENSOR(bfloat16, TENSOR_BF16)
RG_TENSOR(float16, TENSOR_FP16)
RG_TENSOR(tf32, TENSOR_TF32)
RG_TENSOR(int8, TENSOR_INT8)
RG_TENSOR(fp8, TENSOR_FP8)

/** Plain fp32 multiply-adds: 8 chains a thread. */
RG_KERNEL(rg_fma_float32, rg_tensor_params, RG_MICRO_THREADS, 2)
{
    float x[RG_TENSOR_SUMS];
    const float a = rg_bits_float(p.fragments[0]), b = rg_bits_float(p.fragments[1]);
    RG_UNROLL
    for (int s = 0; s < RG_TENSOR_SUMS; s++)
        x[s] = (float)(RG_TID + s);
    for (int l = 0; l < p.loops; l++)
        RG_UNROLL
    for (int s = 0; s < RG_TENSOR_SUMS; s++)
        x[s] = x[s] * a + b;
    float sum = 0;
    RG_UNROLL
    for (int s = 0; s < RG_TENSOR_SUMS; s++)
        sum += x[s];
    p.out[((int64_t)RG_BID * RG_MICRO_THREADS + RG_TID) * 4] = sum;
}

RG_KERNEL(rg_grid_barrier, rg_barrier_params, RG_MICRO_THREADS, 1)
{
    /* a counter that only grows: round r is over when all blocks have arrived r + 1 times */
    uint32_t goal = 0;
    if (RG_TID == 0)
        goal = *p.count * (uint32_t)RG_GRID;
    rg_sync();
    for (int r = 0; r < p.rounds; r++) {
        rg_sync();
        if (RG_TID == 0) {
            goal += (uint32_t)RG_GRID;
            rg_atomic_add_release(p.arrived, 1);
            while ((int32_t)(rg_flag_acquire(p.arrived) - goal) < 0) {
            }
        }
        rg_sync();
    }
    if (RG_TID == 0 && RG_BID == 0)
        *p.count += (uint32_t)p.rounds; /* all have read it: they have passed a barrier */
}

RG_KERNEL(rg_ping_pong, rg_ping_params, RG_PING_THREADS, 1)
{
    if (RG_TID != 0)
        return;
    uint32_t *own = p.flags + 32 * RG_BID, *other = p.flags + 32 * (1 - RG_BID);
    /* a count of its own: the flag may have moved on before this block starts */
    uint32_t *done = p.flags + 64 + 32 * RG_BID;
    const uint32_t base = *done;
    for (int r = 0; r < p.rounds; r++) {
        if (RG_BID == 0)
            rg_flag_release(other, base + (uint32_t)r + 1);
        while ((int32_t)(rg_flag_acquire(own) - (base + (uint32_t)r + 1)) < 0) {
        }
        if (RG_BID == 1)
            rg_flag_release(other, base + (uint32_t)r + 1);
    }
    *done = base + (uint32_t)p.rounds;
}

#endif

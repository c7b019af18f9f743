/* kernel/decode.c: time of attention of few query tokens against a cache.
 *
 * A work unit is (request, KV head, split of the cache); a unit has a fixed cost, because
 * its loads wait for its page table and its query, and units of 64 tokens after that:
 *
 *   t = start / f + join(waves (unit + tiles tile) / f, bytes / W; p) + [split] merge / f
 *
 * and never less than the longest unit's bytes over 1.2 even shares of W, all that one SM can have
 * in flight.
 *
 * Which kernel runs is the library's rule. TensorRT-LLM (decoderXQAImplJIT.cpp, mayHavePerfGain and
 * decoderXQAConstants.h): XQA, one unit for all heads of a group, when 4 B K max(1, S/128) >= N; up
 * to 8 waves of splits of 128 tokens or more. Otherwise, and for groups of 1 or above 32, a vector
 * kernel with one CTA a query head, bound by what an SM takes from L2. Flash attention splits the
 * cache only for groups, and copies the query heads when both batch and KV heads exceed 1.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "kernel/device.h"

enum {
    DECODE_TILE = 64,   /* tokens of a decode step */
    LEAST_SPLIT = 128,  /* kMinHistoryTokensPerBlock */
    SPLIT_WAVES = 8,    /* kTargetWaveFactor */
    VECTOR_SPLIT = 256, /* the vector kernel splits only longer caches */
    WIDEST_GROUP = 32,
};

double rg_kernel_kv_bytes(const rg_op_attention *a)
{
    return rg_format_bytes(&a->kv, 4096.0).v / 4096.0;
}

/* A unit that finds no work costs this share of one that does (windows of 8192 in caches of 16K to
 * 128K tokens, H200). */
static const double empty_unit_share = 0.25;
/* One SM can read this many times its even share of the memory bandwidth: 48 KB in flight over 600
 * ns against 4.8 TB/s over 132 SMs. */
static const double most_sm_share = 2.2;

/* One unit reads at this many times the even share: 23 GB/s against 2.04 TB/s over 108 SMs (A100,
 * one unsplit head, 1K to 128K tokens). */
static const double lone_unit_share = 1.2;

/* What decode attention has to do, the same for each kernel. */
typedef struct decode_work {
    double batch, span, length, heads, kv_heads, rows, dim, kv_bytes;
    double missed, hit; /* bytes from memory, from L2 */
} decode_work;

static decode_work work_of(const rg_kernel_device *device, const double *c, const rg_op *op)
{
    const rg_op_attention *a = &op->u.attention;
    decode_work w = {.batch = (double)a->batch, .heads = (double)a->heads};
    w.kv_heads = a->kv_heads > 0 ? (double)a->kv_heads : w.heads;
    w.dim = (double)a->head_dim;
    w.kv_bytes = rg_kernel_kv_bytes(a);
    w.span =
        rg_attention_span((double)a->q_tokens, a->kv_tokens, (double)a->window, (double)a->sinks);
    w.length = a->kv_tokens + (double)a->q_tokens; /* splits are cut from all of it */
    w.rows = w.heads / w.kv_heads * (double)a->q_tokens;
    const double bytes = rg_op_bytes(op).v;
    const double room = c[RG_DEC_L2_SHARE] * device->l2_room;
    const double reused = device->options.cold_l2 ? op->input_bytes.v + op->output_bytes.v : bytes;
    const double hit_ratio = rg_kernel_hit_ratio(reused, room);
    w.hit = hit_ratio * reused;
    w.missed = bytes - w.hit;
    return w;
}

/* Splits of a cache whose whole length is cut, of which those outside a window find no work: how
 * many work, and on how many tokens each. */
static void busy_splits(const decode_work *w, double splits, double *busy, double *tokens)
{
    const double each = w->length / splits;
    *busy = fmin(splits, rg_kernel_up(w->span / each));
    *tokens = fmin(w->span, each);
}

/* One CTA a query head, no matrix units. */
static void vector_decode(const rg_kernel_device *device, const double *c, const decode_work *w,
                          double memory, double l2, rg_kernel_parts *out)
{
    const double ctas = w->batch * w->heads, units = device->units, f = device->hz;
    double splits = 1.0;
    if (w->length > VECTOR_SPLIT)
        splits =
            fmax(1.0, fmin(rg_kernel_down(units / ctas), rg_kernel_up(w->length / LEAST_SPLIT)));
    double busy, tokens;
    busy_splits(w, splits, &busy, &tokens);
    const double width =
        (w->dim + 16.0) / 144.0 * (w->kv_bytes <= 1.5 ? c[RG_DEC_VECTOR_NARROW] : 1.0);
    const double alone = tokens * c[RG_DEC_VECTOR_ALONE] * width;
    const double pulled = ctas * w->span * c[RG_DEC_VECTOR_TOKEN] * width / units;
    const double starts = fmax(0.0, ctas * busy / units - 1.0) * c[RG_DEC_VECTOR_CTA];
    const double sm = (fmax(alone, pulled) + starts) / f;
    const double launch =
        c[RG_DEC_VECTOR_START] * (w->kv_bytes <= 1.5 ? 1.0 : 0.8 + 0.2 * w->dim / 128.0);
    out->fixed = (launch + (splits > 1.0 ? c[RG_DEC_VECTOR_MERGE] : 0.0)) / f;
    out->l2 = fmax(sm, l2);
    out->compute = 0.0;
    out->total = out->fixed + rg_kernel_join(sm, memory + l2, 3.0);
    out->choice = splits > 1.0 ? "vector kernel, split" : "vector kernel";
}

/* One CTA for all query heads of a KV head; row tiles of 16 (8 with an 8-bit cache). */
static void matrix_decode(const rg_kernel_device *device, const double *c, const decode_work *w,
                          bool narrow, double memory, double l2, rg_kernel_parts *out)
{
    const double units = device->units, f = device->hz, pairs = w->batch * w->kv_heads;
    double splits =
        fmin(rg_kernel_down(SPLIT_WAVES * units / pairs), rg_kernel_up(w->length / LEAST_SPLIT));
    if (splits < 1.0 || (device->flash && w->rows <= 1.0))
        splits = 1.0;
    const double row_tile = narrow ? 8.0 : 16.0;
    const double wide =
        c[narrow ? RG_DEC_GROUP8 : RG_DEC_GROUP] * fmax(0.0, w->rows - row_tile) / row_tile;
    const double width = 0.7 + 0.3 * w->dim / 128.0;
    double busy, tokens;
    busy_splits(w, splits, &busy, &tokens);
    const double waves = fmax(1.0, pairs * busy / units);
    const double tiles = rg_kernel_up(tokens / DECODE_TILE) - 1.0;
    const double unit = c[narrow ? RG_DEC_CTA8 : RG_DEC_CTA] * width * (1.0 + wide);
    const double tile =
        c[narrow ? RG_DEC_TILE8 : RG_DEC_TILE] * w->dim / 128.0 * rg_kernel_up(w->rows / row_tile);
    const double outside = pairs * (splits - busy) / units; /* units that a window leaves empty */
    const double sm = (waves * (unit + tiles * tile) + outside * empty_unit_share * unit) / f;
    if (outside > 0.0) {
        /* The few that work are not many enough to even out: the busiest SM holds whole ones. */
        const double held = pairs * busy / units;
        memory *= held > 1.0 ? rg_kernel_up(held) / held : 1.0 / fmax(held, 1.0 / most_sm_share);
    }
    const bool copied = device->flash && w->rows > 1.0 && w->batch > 1.0 && w->kv_heads > 1.0;
    const bool prepared = narrow && w->kv_bytes <= 1.5 && w->dim != 128.0;
    out->fixed = (c[narrow ? RG_DEC_START8 : RG_DEC_START] + (prepared ? c[RG_DEC_PREPARE8] : 0.0) +
                  (splits > 1.0 ? c[narrow ? RG_DEC_MERGE8 : RG_DEC_MERGE] : 0.0) +
                  (copied ? c[RG_DEC_COPY] : 0.0)) /
                 f;
    out->compute = sm;
    out->l2 = l2;
    /* A unit that is alone on its SM cannot read faster than its loads in flight allow. */
    const double alone = rg_kernel_up(waves) * tokens * 2.0 * w->dim * w->kv_bytes * units /
                         (lone_unit_share * device->memory_rate);
    out->total = out->fixed + fmax(alone, rg_kernel_join(sm, memory + l2, c[RG_DEC_OVERLAP]));
    out->choice = splits > 1.0 ? "matrix kernel, split" : "matrix kernel";
}

rg_status rg_kernel_decode(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                           rg_err *err)
{
    (void)err;
    const double *c = device->c[RG_KG_DECODE];
    const rg_op_attention *a = &op->u.attention;
    const decode_work w = work_of(device, c, op);
    const double l2 = w.hit / device->l2_rate;
    /* Kernels that load asynchronously: those of 8-bit caches on machines with warp-group matrix
     * instructions, those of all caches on the next. */
    const bool narrow = !device->flash &&
                        ((a->kv.element_bits <= 8.0 && device->fine_tiles) || device->async_decode);
    const double group = w.heads / w.kv_heads;
    bool vector = false;
    if (device->vector_decode && !device->flash) {
        const double blocks =
            w.batch * w.kv_heads * fmax(1.0, rg_kernel_down(w.span / LEAST_SPLIT));
        const bool few = 4.0 * blocks < device->units && a->q_tokens == 1;
        vector = group > WIDEST_GROUP || w.rows < 2.0 || (few && !narrow);
    }
    const double memory =
        w.missed / (c[vector ? RG_DEC_VECTOR_MEMORY : RG_DEC_MEMORY] * device->memory_rate);
    if (vector)
        vector_decode(device, c, &w, memory, l2, out);
    else
        matrix_decode(device, c, &w, narrow, memory, l2, out);
    out->memory = memory;
    return RG_OK;
}

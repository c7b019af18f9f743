/* kernel/decode.c: time of attention of few query tokens against a cache.
 *
 * A work unit is (request, KV head, split of the cache). It has a fixed time, because its first
 * loads wait for its page table and its query, and then takes its tokens 64 at a time:
 *
 *   walk = join(units (unit + tiles tile) / (N f), bytes / W; p)
 *   t    = start / f + walk of the full waves + max(walk of the rest, lone unit) +
 *          [split] (merge + splits join) / f
 *
 * The last wave fills only some SMs, and a unit in it that waits for each of its loads takes its
 * time all the same. Tiles are dealt to splits in turn, so those of a window are even too.
 *
 * Which kernel runs is the library's rule. TensorRT-LLM (decoderXQAImplJIT.cpp, mayHavePerfGain and
 * decoderXQAConstants.h): XQA, one unit for all heads of a group, when 4 B K max(1, S/128) >= N.
 * Otherwise, and for groups of 1 or above 32, a vector kernel with one CTA a query head, one on an
 * SM at a time. Flash attention (flash_api.cpp) keeps two units on an SM, splits the cache only for
 * groups, writes the cache first (vLLM) and copies queries and results when both batch and KV heads
 * exceed 1.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "kernel/device.h"

enum {
    DECODE_TILE = 64,   /* tokens of a decode step */
    LEAST_SPLIT = 128,  /* kMinHistoryTokensPerBlock */
    SPLIT_WAVES = 8,    /* kTargetWaveFactor */
    VECTOR_SPLIT = 256, /* the vector kernel splits only longer caches of heads of 128 */
    VECTOR_STEP = 64,   /* tokens that its CTA takes at a time */
    VECTOR_WARPS = 4,   /* that share a step */
    WIDEST_GROUP = 32,
    FLASH_SPLITS = 128, /* most of flash attention */
    COPY_PASSES = 4,    /* queries and results are read and written once more */
};

/* Memory and SM time of the vector kernel are one after the other's shadow: its CTA is alone. */
static const double vector_overlap = 8.0;

double rg_kernel_kv_bytes(const rg_op_attention *a)
{
    return rg_format_bytes(&a->kv, 4096.0).v / 4096.0;
}

/* What decode attention has to do, the same for each kernel. */
typedef struct decode_work {
    double batch, span, length, heads, kv_heads, rows, dim, kv_bytes, query_bytes;
    double missed, hit; /* bytes from memory, from L2 */
    double memory, l2;  /* seconds that they take */
} decode_work;

static decode_work work_of(const rg_kernel_device *device, const double *c, const rg_op *op)
{
    const rg_op_attention *a = &op->u.attention;
    decode_work w = {.batch = (double)a->batch, .heads = (double)a->heads};
    w.kv_heads = a->kv_heads > 0 ? (double)a->kv_heads : w.heads;
    w.dim = (double)a->head_dim;
    w.kv_bytes = rg_kernel_kv_bytes(a);
    w.query_bytes = fmax(2.0, rg_dtype_bits(a->math) / 8.0);
    w.span =
        rg_attention_span((double)a->q_tokens, a->kv_tokens, (double)a->window, (double)a->sinks);
    w.length = a->kv_tokens + (double)a->q_tokens; /* splits are counted from all of it */
    w.rows = w.heads / w.kv_heads * (double)a->q_tokens;
    const double bytes = rg_op_bytes(op).v;
    const double room = c[RG_DEC_L2_SHARE] * device->l2_room;
    const double reused = device->options.cold_l2 ? op->input_bytes.v + op->output_bytes.v : bytes;
    const double hit_ratio = rg_kernel_hit_ratio(reused, room);
    w.hit = hit_ratio * reused;
    w.missed = bytes - w.hit;
    return w;
}

/* One CTA a query head, no matrix units. */
static void vector_decode(const rg_kernel_device *device, const double *c, const decode_work *w,
                          rg_kernel_parts *out)
{
    const double ctas = w->batch * w->heads, units = device->units, f = device->hz;
    const double length = w->span * w->dim / 128.0;
    double splits = 1.0;
    if (length > VECTOR_SPLIT)
        splits = fmin(rg_kernel_up(units / ctas), rg_kernel_up(length / LEAST_SPLIT));
    const double tokens = w->span / splits;
    const double taken =
        fmin(VECTOR_STEP * rg_kernel_up(tokens / VECTOR_STEP), VECTOR_WARPS * tokens);
    const double even_share = device->memory_rate / (units * f); /* of an SM, bytes a cycle */
    const double missed = w->missed / (ctas * splits) / even_share;
    const double cta = c[RG_DEC_VECTOR_CTA] + c[RG_DEC_VECTOR_TOKEN] * w->dim / 128.0 * taken +
                       c[RG_DEC_VECTOR_MISS] * missed;
    const double sm = rg_kernel_up(ctas * splits / units) * cta / f;
    const double launch =
        c[RG_DEC_VECTOR_START] * (w->kv_bytes <= 1.5 ? 1.0 : 0.8 + 0.2 * w->dim / 128.0);
    out->fixed = (launch + (splits > 1.0 ? c[RG_DEC_VECTOR_MERGE] : 0.0)) / f;
    out->l2 = fmax(sm, w->l2);
    out->compute = 0.0;
    out->total = out->fixed + rg_kernel_join(sm, w->memory + w->l2, vector_overlap);
    out->choice = splits > 1.0 ? "vector kernel, split" : "vector kernel";
}

/* computeMultiBlockCount of decoderXQAImplCommon.h. */
static double xqa_splits(const decode_work *w, double units)
{
    double splits = rg_kernel_down(w->length / LEAST_SPLIT);
    splits = fmax(1.0, fmin(splits, rg_kernel_down(sqrt(8.0 * splits) + 0.5)));
    const double waves = w->batch * w->kv_heads * splits / units;
    return waves > SPLIT_WAVES ? fmax(1.0, rg_kernel_down(splits * SPLIT_WAVES / waves)) : splits;
}

/* num_splits_heuristic of flash_api.cpp: the fewest splits that fill the slots for units to 85 % of
 * what any number of them does. */
static double flash_splits(const decode_work *w, double tiles, double slots, double block)
{
    const double blocks = rg_kernel_up(w->length / block);
    if (tiles >= 0.8 * slots)
        return 1.0;
    const double most = fmin(fmin(FLASH_SPLITS, slots), blocks);
    double best = 0.0;
    for (int pass = 0; pass < 2; pass++) {
        double last = 0.0;
        for (double n = 1.0; n <= most && (pass == 1 || best < 0.999); n++) {
            const double each = rg_kernel_up(blocks / n);
            if (each == last)
                continue; /* the last split would be empty */
            last = each;
            const double waves = tiles * n / slots, filled = waves / rg_kernel_up(waves);
            if (pass == 1 && filled >= 0.85 * best)
                return n;
            best = fmax(best, filled);
        }
    }
    return 1.0;
}

/* What vLLM does around flash attention, in s: the cache write; queries and results in order. */
static double around_flash(const rg_kernel_device *device, const double *c, const decode_work *w)
{
    const double write = w->batch *
                         rg_kernel_write_cycles(device->c[RG_KG_PREFILL], w->kv_heads * w->dim) /
                         (device->units * device->hz);
    if (w->rows <= 1.0 || w->batch <= 1.0 || w->kv_heads <= 1.0)
        return write;
    const double moved = COPY_PASSES * w->batch * w->heads * w->dim * w->query_bytes;
    return write + c[RG_DEC_COPY] / device->hz + moved / (w->missed + w->hit) * (w->memory + w->l2);
}

/* Units of a kernel with matrix units, and cycles that they take. */
typedef struct decode_units {
    double all;    /* (request, KV head, tile of rows, split) */
    double splits; /* of one cache */
    double slots;  /* units that run at a time */
    double alone;  /* growth of the fixed cycles of a unit that has no other beside it */
    double unit;   /* fixed cycles of one, with its first step */
    double steps;  /* after that */
    double step;   /* cycles of an SM for one */
    double lone;   /* cycles for one that has no other beside it */
} decode_units;

/* XQA: one CTA for all query heads of a KV head; row tiles of 16 (8 with an 8-bit cache). */
static decode_units xqa_units(const rg_kernel_device *device, const double *c, const decode_work *w,
                              bool narrow)
{
    const double row_tile = narrow ? 8.0 : 16.0, size = w->dim / 128.0;
    const double wide =
        c[narrow ? RG_DEC_GROUP8 : RG_DEC_GROUP] * fmax(0.0, w->rows - row_tile) / row_tile;
    decode_units u = {.splits = xqa_splits(w, device->units), .slots = device->units, .alone = 1.0};
    u.all = w->batch * w->kv_heads * u.splits;
    u.unit = c[narrow ? RG_DEC_CTA8 : RG_DEC_CTA] * (0.7 + 0.3 * size) * (1.0 + wide);
    u.steps = rg_kernel_up(w->span / u.splits / DECODE_TILE) - 1.0;
    u.step = c[narrow ? RG_DEC_TILE8 : RG_DEC_TILE] * size * rg_kernel_up(w->rows / row_tile);
    u.lone = fmax(u.step, c[RG_DEC_LONE]);
    return u;
}

/* Flash attention: tiles and steps as in prefill, of which few query rows fill a part. The kernel
 * with groups of warps (FlashAttention-3) is not measured: its units are assumed to start as XQA's
 * do on the same machine. */
static rg_status flash_units(const rg_kernel_device *device, const double *c, const decode_work *w,
                             const rg_op *op, decode_units *out, rg_err *err)
{
    rg_flash_step step;
    RG_TRY(rg_kernel_flash_step(device, op, &step, err));
    const double tiles = w->batch * w->kv_heads * rg_kernel_up(w->rows / step.rows);
    decode_units u = {.slots = step.resident * device->units};
    u.splits = w->rows > 1.0 ? flash_splits(w, tiles, u.slots, step.keys) : 1.0;
    u.all = tiles * u.splits;
    u.unit = (device->fine_tiles ? xqa_units(device, c, w, false).unit
                                 : (step.ends + step.cycles) *
                                       (1.0 + c[RG_DEC_GROUP] * fmax(0.0, w->rows - 16.0) / 16.0));
    u.alone = device->fine_tiles ? 1.0 : step.alone;
    u.steps = rg_kernel_up(w->span / u.splits / step.keys) - 1.0;
    u.step = step.cycles;
    u.lone = step.cycles * step.alone;
    *out = u;
    return RG_OK;
}

/* Seconds until all units are done. */
static double walk_seconds(const rg_kernel_device *device, const double *c, const decode_work *w,
                           const decode_units *u)
{
    const double sm = u->all / (device->units * device->hz) * (u->unit + u->steps * u->step);
    const double walk = rg_kernel_join(sm, w->memory + w->l2, c[RG_DEC_OVERLAP]);
    const double waves = u->all / u->slots, full = rg_kernel_down(waves);
    const double lone = (u->alone * u->unit + u->steps * u->lone) / device->hz;
    return full / waves * walk + (waves > full ? fmax((waves - full) / waves * walk, lone) : 0.0);
}

/* A kernel with matrix units. */
static void matrix_decode(const rg_kernel_device *device, const double *c, const decode_work *w,
                          const decode_units *u, bool narrow, rg_kernel_parts *out)
{
    const bool prepared = narrow && w->kv_bytes <= 1.5 && w->dim != 128.0;
    const double merge = c[narrow ? RG_DEC_MERGE8 : RG_DEC_MERGE] + u->splits * c[RG_DEC_JOIN];
    out->fixed = (c[narrow ? RG_DEC_START8 : RG_DEC_START] + (prepared ? c[RG_DEC_PREPARE8] : 0.0) +
                  (u->splits > 1.0 ? merge : 0.0)) /
                     device->hz +
                 (device->flash ? around_flash(device, c, w) : 0.0);
    const double walk = walk_seconds(device, c, w, u);
    out->compute = u->all / (device->units * device->hz) * (u->unit + u->steps * u->step);
    out->l2 = w->l2;
    out->total = out->fixed + walk;
    out->choice = u->splits > 1.0 ? "matrix kernel, split" : "matrix kernel";
}

rg_status rg_kernel_decode(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                           rg_err *err)
{
    const double *c = device->c[RG_KG_DECODE];
    const rg_op_attention *a = &op->u.attention;
    decode_work w = work_of(device, c, op);
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
    w.l2 = w.hit / device->l2_rate;
    w.memory = w.missed / (c[vector ? RG_DEC_VECTOR_MEMORY : RG_DEC_MEMORY] * device->memory_rate);
    if (vector) {
        vector_decode(device, c, &w, out);
    } else {
        decode_units units = xqa_units(device, c, &w, narrow);
        if (device->flash)
            RG_TRY(flash_units(device, c, &w, op, &units, err));
        matrix_decode(device, c, &w, &units, narrow, out);
    }
    out->memory = w.memory;
    return RG_OK;
}

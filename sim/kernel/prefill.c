/* kernel/prefill.c: time of fused attention over many query tokens.
 *
 * A tile of query rows of one head walks over the key tiles that it may see. A step over `keys`
 * keys takes (cycles of one SM)
 *
 *   step = products + rows keys / 16 softmax
 *
 * because an SM does 16 exponentials a cycle (CUDA C++ Programming Guide, table "Throughput of
 * Native Arithmetic Instructions") and kernels hide little of them behind the products (J. Shah et
 * al., "FlashAttention-3", 2024, section 3.1); where they run beside the products, the two are
 * joined with p = 3 instead. The masked step at the diagonal costs its exponentials once more.
 *
 * Kernels of machines with warp-group instructions (TensorRT-LLM's fmha_v2 tma_ws_sm90,
 * FlashAttention-3) keep one tile of 128 rows on an SM, 64 for each of two warp groups, and read
 * operands from shared memory once for a group. The others (flash_fwd_splitkv_kernel of
 * FlashAttention-2, which runs on paged caches; other kernels of fmha_v2) have tiles of 64 rows,
 * two on an SM, of which one works while the other waits, and each of their 4 warps of 16 rows
 * reads all keys and values from shared memory:
 *
 *   products = 2 rows keys (d + d_v) N f / (eta_c F), joined with rows / 16 keys (d + d_v) e / 128
 *
 * A key tile is 32 KiB, at most 256 keys; 128 keys in latent attention, 32 where fmha_v2 has no
 * warp groups (fused_multihead_attention_api.h and fmhaRunner.cpp name the kernels and the choice).
 * With P steps over all tiles:
 *
 *   t = (start + prepare) / f + before + join(walk, io / W; 2)
 *   walk = max((B H (P step + tiles tile)) / N + tail longest, what holds the longest tile) / f
 *
 * and whole waves where all tiles are equally long. `before` are the kernels that run first: RoPE,
 * QKV preparation and cache write, bound by their instructions or by their bytes.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "kernel/device.h"

enum {
    KEY_TILE_BYTES = 32768,
    MOST_KEYS = 256,
    LATENT_KEYS = 128, /* of the kernels for heads of 192 and 128 */
    TILED_HEAD = 256,  /* least that fmha_v2 runs in 64_128 nl_tiled; smaller ones in 64_32 */
    WARP_ROWS = 16,
    WRITE_THREADS = 512, /* of a block that writes one token into the cache (reshape_and_cache) */
};

/* The two fitted devices need the same share of the matrix peak when products and reads of shared
 * memory are joined so. */
static const double shared_overlap = 2.5;

/* One kernel launch and what it works on. */
typedef struct prefill_work {
    const rg_kernel_device *device;
    const rg_op_attention *a;
    const double *c;
    bool narrow;       /* products in 8 bit */
    bool narrow_cache; /* cache of 8-bit elements */
    bool causal;       /* keys behind a query are left out; products that stand alone take all */
    double batch, q, heads, kv_heads, value_dim;
    double rows, keys; /* of a tile, of a step */
    double tiles;      /* of one head of one request */
    double steps;      /* of all of them */
    double longest;    /* steps of the tile that sees most */
    bool uniform;      /* all tiles take as long */
    double filled;     /* work of a step over that of a tile full of rows, where there is but one */
} prefill_work;

/* Columns that the products of a head run over: kernels exist for 32, 64, 128 and 256 (fused
 * attention of TensorRT-LLM), in steps of 32 for flash attention; latent attention has a kernel of
 * its own. */
static double padded(const prefill_work *w, double dim)
{
    if (w->a->latent > 0)
        return dim;
    if (w->device->flash)
        return 32.0 * rg_kernel_up(dim / 32.0);
    double columns = 32.0;
    while (columns < dim)
        columns *= 2.0;
    return columns;
}

/* Steps over all tiles of one head, and of the tile that sees most. */
static void count_steps(prefill_work *w)
{
    const rg_op_attention *a = w->a;
    const double bands = rg_kernel_up(w->q / w->keys); /* rows as many as a key tile */
    const double each = w->keys / w->rows, past = a->kv_tokens / w->keys;
    const double all = rg_kernel_up((w->q + a->kv_tokens) / w->keys);
    const double most = a->window > 0 ? rg_kernel_up((double)a->window / w->keys) + 1.0 +
                                            rg_kernel_up((double)a->sinks / w->keys)
                                      : all;
    w->tiles = rg_kernel_up(w->q / w->rows);
    w->longest = w->causal ? fmin(most, all) : all;
    if (!w->causal) {
        w->steps = w->tiles * all;
    } else {
        /* Band i (from 1) sees past + i, at most `most`; the last band may lack tiles. */
        const double rising =
            most >= all ? bands : fmin(bands, fmax(0.0, rg_kernel_down(most - past)));
        w->steps =
            each * (rising * past + rising * (rising + 1.0) / 2.0 + (bands - rising) * most) -
            (each * bands - w->tiles) * w->longest;
    }
    w->uniform = w->steps >= w->tiles * w->longest;
    /* One of two warp groups idles through a last tile of few rows. */
    w->filled = 1.0;
    const double rest = w->q - w->rows * (w->tiles - 1.0);
    if (!w->device->fine_tiles || 2.0 * rest > w->rows)
        return;
    w->steps -= (1.0 - w->c[RG_PRE_SHORT]) * w->longest;
    if (w->tiles <= 1.0)
        w->longest *= w->filled = w->c[RG_PRE_SHORT];
}

static prefill_work work_of(const rg_kernel_device *device, const double *c, const rg_op *op)
{
    const rg_op_attention *a = &op->u.attention;
    prefill_work w = {.device = device, .a = a, .c = c};
    /* A cache in 8 bit makes the kernel multiply in 8 bit where the device can. */
    w.narrow_cache = a->kv.element_bits <= 8.0 && !a->no_cache;
    w.narrow = rg_dtype_bits(a->math) <= 8.0 ||
               (w.narrow_cache && device->peak[RG_FP8] > 0.0 && !device->flash);
    w.causal = a->causal && a->fused;
    w.batch = (double)a->batch;
    w.q = (double)a->q_tokens;
    w.heads = (double)a->heads;
    w.kv_heads = a->kv_heads > 0 ? (double)a->kv_heads : w.heads;
    w.value_dim = (double)(a->v_head_dim > 0 ? a->v_head_dim : a->head_dim);
    w.rows = device->fine_tiles ? 128.0 : 64.0;
    const double key_bytes = padded(&w, w.value_dim) * (w.narrow ? 1.0 : 2.0);
    w.keys = a->latent > 0 ? LATENT_KEYS : fmin(MOST_KEYS, KEY_TILE_BYTES / key_bytes);
    if (!device->fine_tiles && !device->flash && a->head_dim < TILED_HEAD)
        w.keys = w.rows; /* two steps of 32 keys see as far as one of 64 */
    w.keys = fmax(w.rows, w.keys);
    count_steps(&w);
    return w;
}

/* Most steps of a tile that shares its SM with a longest one, when tiles go to SMs in turn: those N
 * tiles before the last one of a head and, unless that is the last head, N after. */
static double steps_beside(const prefill_work *w, double all)
{
    const double units = w->device->units, n = w->tiles;
    if (all <= units)
        return 0.0;
    const double before = n - 1.0 - units + n * rg_kernel_up(fmax(0.0, units + 1.0 - n) / n);
    const double after = n - 1.0 + units - n * rg_kernel_down((n - 1.0 + units) / n);
    const double at = n + units <= all ? fmax(before, after) : before;
    return rg_kernel_up((at + 1.0) / n * w->longest);
}

/* Cycles until all tiles are done, each step of `step`, each tile with `ends` more. */
static double walk_cycles(const prefill_work *w, double step, double ends)
{
    const double units = w->device->units, sequences = w->batch * w->heads;
    const double all = sequences * w->tiles;
    double lone = w->longest * step + ends, last = w->longest * step, resident = 1.0;
    if (!w->device->fine_tiles) {
        const double alone = w->c[RG_PRE_ALONE], beside = steps_beside(w, all);
        resident = 2.0;
        last *= alone;
        lone = alone * lone + (resident - alone) * (beside * step + (beside > 0.0 ? ends : 0.0));
    }
    if (w->uniform)
        return fmax(rg_kernel_up(all / units) * (w->longest * step + ends), lone);
    const double even = (sequences * w->steps * step + all * ends) / units;
    return fmax(even + (all > resident * units ? w->c[RG_PRE_TAIL] * last : 0.0), lone);
}

/* Cycles of an SM for one step of a tile, and those of its exponentials. */
static rg_status step_cycles(const prefill_work *w, double *step, double *exponentials, rg_err *err)
{
    const rg_kernel_device *device = w->device;
    const rg_op_attention *a = w->a;
    double peak;
    RG_TRY(rg_kernel_peak(device, w->narrow ? RG_FP8 : a->math, &peak, err));
    const double columns = padded(w, (double)a->head_dim) + padded(w, w->value_dim);
    const double issued = 2.0 * w->rows * w->keys * columns * device->units * device->hz /
                          (w->c[RG_PRE_COMPUTE] * peak);
    const double fetched = device->fine_tiles
                               ? 0.0
                               : w->rows / WARP_ROWS * w->keys * columns * (w->narrow ? 1.0 : 2.0) /
                                     device->shared_bytes_per_cycle;
    const double products = rg_kernel_join(issued, fetched, shared_overlap);
    *exponentials = w->rows * w->keys / device->exp_per_cycle *
                    w->c[w->narrow ? RG_PRE_SOFTMAX8 : RG_PRE_SOFTMAX];
    *step = device->exp_hidden ? rg_kernel_join(products, *exponentials, 3.0)
                               : products + *exponentials;
    return RG_OK;
}

rg_status rg_kernel_flash_step(const rg_kernel_device *device, const rg_op *op, rg_flash_step *out,
                               rg_err *err)
{
    const prefill_work w = work_of(device, device->c[RG_KG_PREFILL], op);
    double cycles, exponentials;
    RG_TRY(step_cycles(&w, &cycles, &exponentials, err));
    *out = (rg_flash_step){.rows = w.rows,
                           .keys = w.keys,
                           .cycles = cycles,
                           .ends = w.c[RG_PRE_TILE] * w.rows / 128.0,
                           .alone = 1.0,
                           .resident = 1.0};
    if (!device->fine_tiles) {
        out->alone = w.c[RG_PRE_ALONE];
        out->resident = 2.0;
    } else if (w.q * w.heads / w.kv_heads <= w.rows / 2.0) {
        /* FlashAttention-3 packs the heads of a group and does with one warp group. */
        out->rows /= 2.0;
        out->cycles /= 2.0;
        out->ends /= 2.0;
        out->alone = 2.0 * w.c[RG_PRE_SHORT];
    }
    return RG_OK;
}

static rg_status walk_seconds(const prefill_work *w, double *out, rg_err *err)
{
    const rg_kernel_device *device = w->device;
    const rg_op_attention *a = w->a;
    double step, exponentials;
    RG_TRY(step_cycles(w, &step, &exponentials, err));
    if (a->window > 0 && w->q + a->kv_tokens > (double)a->window && w->narrow_cache &&
        rg_dtype_bits(a->math) > 8.0 && device->fine_tiles && !device->cta_pairs)
        step *= w->c[RG_PRE_WINDOW]; /* the library's older kernel */
    const double masked = w->causal ? w->filled * exponentials : 0.0;
    *out = walk_cycles(w, step, w->c[RG_PRE_TILE] * w->rows / 128.0 + masked) / device->hz;
    return RG_OK;
}

/* Bytes that the attention kernel moves: queries, results, keys and values. */
static double attention_bytes(const prefill_work *w)
{
    const rg_op_attention *a = w->a;
    const double e = w->narrow ? 1.0 : fmax(2.0, rg_dtype_bits(a->math) / 8.0);
    const double width = (double)a->head_dim + w->value_dim;
    const double kv = w->kv_heads * width * (a->latent > 0 ? e : rg_kernel_kv_bytes(a));
    return w->batch * (w->q * w->heads * ((double)a->head_dim * e + w->value_dim * 2.0) +
                       (w->q + a->kv_tokens) * kv);
}

/* What the kernels before attention do for one token. */
typedef struct prefill_before {
    double bytes;
    double cycles; /* of one SM */
} prefill_before;

/* vLLM writes keys and values with a block for each token; a warp of a larger block takes longer
 * (15, 40 and 95 us for 8192 tokens in blocks of 4, 8 and 16 warps, A100). */
double rg_kernel_write_cycles(const double *c, double elements)
{
    const double warps = rg_kernel_up(fmin(elements, WRITE_THREADS) / 32.0);
    return warps * warps / (warps + 4.0) * c[RG_PRE_WRITE];
}

static prefill_before before_of(const prefill_work *w)
{
    const rg_op_attention *a = w->a;
    const bool flash = w->device->flash;
    if ((flash && a->no_cache) || (!flash && w->device->options.core_attention))
        return (prefill_before){0};
    const double width = (double)a->head_dim + w->value_dim;
    const double cached = a->no_cache     ? 0.0
                          : a->latent > 0 ? (double)(a->latent + a->rope_dim)
                                          : w->kv_heads * width;
    const double stored = cached * (2.0 + rg_kernel_kv_bytes(a));
    if (flash)
        return (prefill_before){stored, rg_kernel_write_cycles(w->c, cached / 2.0)};
    /* Plain: queries are turned and written. Latent: the rotary part of queries is turned and that
     * of keys given to each head; for products in 8 bit all operands are converted. */
    const double written = w->narrow ? 1.0 : 2.0;
    double elements = w->heads * (double)a->head_dim, bytes = elements * (2.0 + written);
    if (a->latent > 0) {
        elements = w->heads * 2.0 * (double)a->rope_dim;
        bytes = elements * 3.0;
        if (w->narrow) {
            elements += w->heads * ((double)a->head_dim + width);
            bytes += w->heads * ((double)a->head_dim + width) * 3.0;
        }
    }
    return (prefill_before){stored + bytes, elements / 128.0 * w->c[RG_PRE_HEAD]};
}

/* Launches of those kernels: one does it all for heads of 128 in a 16-bit cache, and spares half of
 * the others where queries have the type of an 8-bit cache. */
static double launch_cycles(const prefill_work *w)
{
    const rg_op_attention *a = w->a;
    if (w->device->flash || w->device->options.core_attention)
        return 0.0;
    const double all = w->c[RG_PRE_PREPARE], fused = w->c[RG_PRE_FUSED];
    if (a->latent > 0)
        return all * (w->narrow ? 1.0 : fused);
    if (a->head_dim != 128 || rg_dtype_bits(a->math) != a->kv.element_bits)
        return all;
    return all * (w->narrow_cache ? (1.0 + fused) / 2.0 : fused);
}

rg_status rg_kernel_prefill(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                            rg_err *err)
{
    const rg_op_attention *a = &op->u.attention;
    if (device->flash && a->q_tokens == 1 && !a->no_cache)
        return rg_kernel_decode(device, op, out, err); /* its varlen kernel is the same one */
    const prefill_work w = work_of(device, device->c[rg_kernel_group_of(op)], op);
    double walk;
    RG_TRY(walk_seconds(&w, &walk, err));
    const prefill_before one = before_of(&w);
    const double tokens = w.batch * w.q, prepared = tokens * one.bytes;
    const double io = attention_bytes(&w);
    const double hit_ratio =
        device->options.cold_l2 ? 0.0 : rg_kernel_hit_ratio(io + prepared, device->l2_room);
    const double pace =
        w.c[RG_PRE_IO] * ((1.0 - hit_ratio) / device->memory_rate + hit_ratio / device->l2_rate);
    const double before =
        rg_kernel_join(tokens * one.cycles / (device->units * device->hz), prepared * pace, 3.0);
    /* Scores that leave the kernel are moved by kernels between the two products. */
    const double scores =
        a->fused ? 0.0
                 : (op->input_bytes.v + op->output_bytes.v) * w.c[RG_PRE_IO] / device->memory_rate;
    out->fixed = (w.c[RG_PRE_START] + launch_cycles(&w)) / device->hz;
    out->compute = walk;
    out->memory = before + io * pace + scores;
    out->total = out->fixed + before + rg_kernel_join(walk, io * pace, 2.0) + scores;
    out->choice = w.narrow ? "fused, 8-bit products" : "fused";
    return RG_OK;
}

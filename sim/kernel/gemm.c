/* kernel/gemm.c: time of matrix products, by tiles, waves, split K and the levels of memory.
 *
 *   t = start / f + join(t_sm, t_mem; p) + [split] t_merge + [dynamic 8 or 4 bit] t_quantise
 *
 *   t_sm  = longer of the tiles' cycles / f (kernel/tile.h) and, in long runs, flops / (eta_s F)
 *   t_mem = (1 - hit) (latency + D / (eta_m W)) + hit D / max(eta_L2 W_L2, eta_m W)
 *   merge = split / f + 8 s m n / W_L2
 *
 * F peak flop/s, f clock, W memory byte/s, W_L2 byte/s from L2, D = W, X and Y once, s parts of K.
 * A power limit holds the mean rate of all SMs, not the rate of those at work: a last wave that is
 * half empty loses nothing to it, so it is a bound on the whole product (on the A100 rows of the
 * measured tables, products of 1 to 4 waves with 11 % of the SMs idle reach 0.94 of the peak on the
 * others at any length, and full ones fall to 0.85). Repeats find in L2 what fits there
 * (rg_kernel_hit_ratio); a benchmark that cycles through c = min(5, ceil(L2/W)) copies of W, as in
 * the measured tables, holds c of them.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/tile.h"

enum { MEMORY_SLOTS = 4096 }; /* recent shapes remembered by each thread */

/* Length of a product at which half of the power limit's effect is seen, s: repeats of the measured
 * tables last ten times as long, and regulators of the power limit work in milliseconds. */
static const double burst_seconds = 300e-6;
/* Additions in 32 bits that the lanes of an SM do in a cycle (CUDA C++ Programming Guide, table
 * "Throughput of Native Arithmetic Instructions", 8.6 and later; A100: 64). */
static const double lanes = 128.0;

double rg_kernel_join(double a, double b, double p)
{
    const double most = a > b ? a : b, least = a > b ? b : a;
    if (least <= 0.0)
        return most;
    return most * pow(1.0 + pow(least / most, p), 1.0 / p);
}

double rg_kernel_hit_ratio(double footprint, double room)
{
    if (!(room > 0.0))
        return 0.0;
    const double x = footprint / room, x2 = x * x;
    return 1.0 / (1.0 + x2 * x2);
}

rg_kernel_group rg_kernel_gemm_group(const rg_op_gemm *shape)
{
    if (shape->weight.weight_only)
        return shape->weight.element_bits <= 5.0 ? RG_KG_GEMM_INT4_WO : RG_KG_GEMM_INT8_WO;
    if (shape->batched || shape->batch > 1)
        return rg_dtype_bits(shape->math) <= 8.0 ? RG_KG_BMM_FP8 : RG_KG_BMM_BF16;
    switch (shape->math) {
    case RG_FP8:
        return shape->weight.group > 0 ? RG_KG_GEMM_FP8_BLOCK : RG_KG_GEMM_FP8;
    case RG_INT8:
        return RG_KG_GEMM_INT8;
    case RG_FP4:
    case RG_FP6:
    case RG_INT4:
        return RG_KG_GEMM_NVFP4;
    default:
        return RG_KG_GEMM_BF16;
    }
}

/* Bytes of the product's operands, and the share of them that comes from L2. */
typedef struct traffic {
    double weights, activations, hit_weights, hit_activations;
} traffic;

static traffic traffic_of(const rg_kernel_device *device, const double *c, const rg_op *op)
{
    traffic t = {.weights = op->weight_bytes.v,
                 .activations = op->input_bytes.v + op->output_bytes.v};
    const double room = c[RG_GEMM_L2_SHARE] * device->l2_bytes;
    if (device->options.cold_l2) {
        t.hit_activations = rg_kernel_hit_ratio(t.activations, room);
        return t;
    }
    double copies = t.weights > 0.0 ? rg_kernel_up(device->l2_bytes / t.weights) : 1.0;
    copies = fmin(5.0, fmax(1.0, copies));
    if (device->options.weight_copies > 0)
        copies = device->options.weight_copies;
    if (op->u.gemm.batched)
        copies = 1.0; /* these were timed on the same weights again and again */
    t.hit_weights = rg_kernel_hit_ratio(copies * t.weights + t.activations, room);
    t.hit_activations = t.hit_weights;
    return t;
}

static rg_tile_set tile_set_of(const rg_kernel_device *device, rg_kernel_group group)
{
    if (group == RG_KG_GEMM_FP8_BLOCK)
        return device->fine_tiles ? RG_TILES_BLOCK : RG_TILES_BLOCK_FLAT;
    if (device->fine_tiles)
        return RG_TILES_FINE;
    switch (group) {
    case RG_KG_GEMM_INT8:
        return RG_TILES_INT8;
    case RG_KG_GEMM_INT8_WO:
    case RG_KG_GEMM_INT4_WO:
        return RG_TILES_WEIGHT_ONLY;
    default:
        return RG_TILES_DENSE;
    }
}

static rg_tile_product product_of(const rg_kernel_device *device, const rg_op *op, double peak)
{
    const rg_op_gemm *g = &op->u.gemm;
    const rg_kernel_group group = rg_kernel_gemm_group(g);
    const double *c = device->c[group];
    const double x_bytes = rg_dtype_bits(g->math) / 8.0;
    rg_tile_product p = {.set = tile_set_of(device, group),
                         .m = (double)g->m,
                         .n = (double)g->n,
                         .k = (double)g->k,
                         .batch = g->batch > 1 ? (double)g->batch : 1.0,
                         .units = device->units,
                         .k_step = 128.0 / x_bytes,
                         .x_cycles = 128.0 / c[RG_GEMM_L2_SM],
                         .wave_cycles = c[RG_GEMM_WAVE]};
    const double w_bytes = op->weight_bytes.v / (p.n * p.k * p.batch);
    p.w_cycles = p.x_cycles * w_bytes / x_bytes;
    p.mma_cycles = 2.0 * p.k_step * p.units * device->hz / (c[RG_GEMM_COMPUTE] * peak);
    if (group == RG_KG_GEMM_FP8_BLOCK) {
        p.promote_cycles = 1.0 / lanes;
        p.empty_cycles = c[RG_GEMM_EMPTY_ROW];
    }
    if (g->weight.weight_only)
        p.convert_cycles = c[RG_GEMM_CONVERT];
    return p;
}

static rg_status compute(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                         rg_err *err)
{
    const rg_op_gemm *g = &op->u.gemm;
    const double *c = device->c[rg_kernel_gemm_group(g)];
    double peak;
    RG_TRY(rg_kernel_peak(device, g->math, &peak, err));
    const rg_tile_product p = product_of(device, op, peak);
    rg_tile_choice best;
    rg_tile_search(&p, &best);

    const traffic t = traffic_of(device, c, op);
    const double missed =
        t.weights * (1.0 - t.hit_weights) + t.activations * (1.0 - t.hit_activations);
    const double hit = t.weights + t.activations - missed;
    const double memory_rate = c[RG_GEMM_MEMORY] * device->memory_rate;
    const double memory = device->memory_latency * missed / (missed + hit) + missed / memory_rate;
    const double l2 = hit / fmax(c[RG_GEMM_L2_RATE] * device->l2_rate, memory_rate);
    const double limit = op->flops.v / (c[RG_GEMM_SUSTAINED] * peak);
    const double results = p.m * p.n * p.batch;
    double least = INFINITY;
    for (int i = 0; i < best.splits; i++) {
        if (!(best.cycles[i] < INFINITY))
            continue;
        double sm = best.cycles[i] / device->hz;
        if (limit > sm)
            sm += (limit - sm) * (device->options.sustained ? 1.0 : sm / (sm + burst_seconds));
        const double parts = best.parts[i];
        /* Parts that are summed in turn (weight-only kernels) each wait for the one before. */
        const double sums = p.set == RG_TILES_WEIGHT_ONLY ? parts - 1.0 : 1.0;
        const double merge =
            i == 0 ? 0.0
                   : sums * c[RG_GEMM_SPLIT] / device->hz + 8.0 * parts * results / device->l2_rate;
        if (sm + merge >= least)
            continue; /* joined with anything it stays above what is there */
        const double total = rg_kernel_join(sm, memory + l2, c[RG_GEMM_OVERLAP]) + merge;
        if (total >= least)
            continue;
        least = total;
        out->fixed = merge;
        out->compute = best.compute_bound[i] ? sm : 0.0;
        out->l2 = best.compute_bound[i] ? l2 : fmax(l2, sm);
        out->choice = i > 0 ? "split K" : "tiles";
    }
    out->memory = memory;
    out->fixed += c[RG_GEMM_START] / device->hz;
    out->total = least + c[RG_GEMM_START] / device->hz;
    if (rg_dtype_bits(g->math) < rg_dtype_bits(g->act) && !g->weight.weight_only &&
        !device->options.no_quantise) {
        const double moved =
            p.batch * p.m * p.k * (rg_dtype_bits(g->act) + rg_dtype_bits(g->math)) / 8.0;
        const double quantise =
            c[RG_GEMM_QUANTISE] * 1e-6 + c[RG_GEMM_QUANTISE_PASSES] * moved / device->memory_rate;
        out->fixed += c[RG_GEMM_QUANTISE] * 1e-6;
        out->memory += quantise - c[RG_GEMM_QUANTISE] * 1e-6;
        out->total += quantise;
    }
    return RG_OK;
}

/* The search costs a few hundred ns and a serving run asks for few shapes again and again. Each
 * thread keeps the last ones; what it finds is what the search would give. */
typedef struct remembered {
    unsigned serial;
    int64_t m, n, k, batch;
    int group, math, act;
    double weight_bytes;
    rg_kernel_parts parts;
} remembered;
static _Thread_local remembered memory[MEMORY_SLOTS];

rg_status rg_kernel_gemm(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                         rg_err *err)
{
    const rg_op_gemm *g = &op->u.gemm;
    if (g->m < 1 || g->n < 1 || g->k < 1)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "product of '%lld x %lld x %lld' has no work",
                       (long long)g->m, (long long)g->n, (long long)g->k);
    const int group = (int)rg_kernel_gemm_group(g);
    uint64_t key = (uint64_t)g->m * 0x9e3779b97f4a7c15u ^ (uint64_t)g->n * 0xbf58476d1ce4e5b9u ^
                   (uint64_t)g->k * 0x94d049bb133111ebu ^ (uint64_t)(group + 64 * g->batch);
    remembered *slot = &memory[(key >> 40) % MEMORY_SLOTS];
    if (device->serial && slot->serial == device->serial && slot->m == g->m && slot->n == g->n &&
        slot->k == g->k && slot->batch == g->batch && slot->group == group &&
        slot->math == (int)g->math && slot->act == (int)g->act &&
        slot->weight_bytes == op->weight_bytes.v) {
        *out = slot->parts;
        return RG_OK;
    }
    RG_TRY(compute(device, op, out, err));
    *slot = (remembered){.serial = device->serial,
                         .m = g->m,
                         .n = g->n,
                         .k = g->k,
                         .batch = g->batch,
                         .group = group,
                         .math = (int)g->math,
                         .act = (int)g->act,
                         .weight_bytes = op->weight_bytes.v,
                         .parts = *out};
    return RG_OK;
}

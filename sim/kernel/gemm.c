/* kernel/gemm.c: time of matrix products, by tiles, waves, split K and the levels of memory.
 *
 *   t = start + join(t_sm, t_mem; p) + [split] t_merge + [dynamic 8 or 4 bit] t_quantise
 *
 * Y[m,n] = X[m,k] W[n,k] is cut into g x h tiles of a x b, K into s parts; C = g h s work units go
 * over N SMs in C/N waves. In a step of 128 bytes of K an SM computes and loads in overlap:
 *
 *   step  = max(2 a b k_step N f / (eta_c F), 128 (a + b w/x) / B_sm)        cycles
 *   t_sm  = ceil(C/N) (ceil(k / (s k_step)) step + wave) / f
 *   t_mem = (1 - hit) (ramp + D / (eta_m W)) + hit D / max(eta_L2 W_L2, eta_m W)
 *   merge = split / f + 8 s m n / W_L2
 *
 * F peak flop/s, f clock, W memory byte/s, W_L2 byte/s from L2, D = W, X and Y once, x and w bytes
 * of an element of X and W. The library has many tiles and its heuristic picks well: the least time
 * over the tiles below is what runs. Wave quantisation: NVIDIA, "Matrix Multiplication Background
 * User's Guide" (2023), sections on tile and wave quantisation. Repeats find in L2 what fits there
 * (rg_kernel_hit_ratio); a benchmark that cycles through c = min(5, ceil(L2/W)) copies of W, as in
 * the measured tables, holds c of them.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/device.h"

enum {
    LARGEST_TILE = 53248, /* accumulators: 64K registers less addresses and operands */
    LARGEST_COARSE_TILE = 32768,
    SPLIT_STEPS = 6,     /* 1, 2, 4 ... 32 parts of K */
    FEWEST_STEPS = 4,    /* K steps that a part of a split keeps */
    MEMORY_SLOTS = 4096, /* recent shapes remembered by each thread */
};
/* Length of a run within which clocks have not yet come down, s: repeats of the measured tables
 * last a hundred times as long as the product; regulators of the power limit work in milliseconds.
 */
static const double burst_seconds = 50e-6;

/* One product on one device, with what the tile search needs. */
typedef struct product {
    const double *c;
    double m, n, k, batch;
    double units, hz;
    double compute_cycles;     /* of a step, for one element of the tile */
    double x_cycles, w_cycles; /* L2 to SM cycles of a step, for a row of X, a column of W */
    double k_step;
    int most_split_steps; /* powers of two of K parts that the kernel can do, 1 and up counted */
} product;

typedef struct best_tile {
    double sm_cycles[SPLIT_STEPS]; /* least SM time with 1, 2, 4, ... parts of K */
    bool compute_bound[SPLIT_STEPS];
} best_tile;

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

static void try_tile(const product *p, double a, double b, best_tile *best)
{
    const double tiles = rg_kernel_up(p->m / a) * rg_kernel_up(p->n / b) * p->batch;
    const double compute = a * b * p->compute_cycles;
    const double load = a * p->x_cycles + b * p->w_cycles;
    const double step = compute > load ? compute : load;
    const double steps = rg_kernel_up(p->k / p->k_step), wave = p->c[RG_GEMM_WAVE];
    double parts = 1.0;
    for (int i = 0; i < p->most_split_steps; i++, parts *= 2.0) {
        double part_steps = steps;
        if (i > 0) {
            part_steps = rg_kernel_up(p->k / (parts * p->k_step));
            if (tiles * parts * 0.5 >= p->units || part_steps < FEWEST_STEPS)
                return;
        }
        const double waves = rg_kernel_up(tiles * parts / p->units);
        const double cycles = waves * (part_steps * step + wave);
        if (cycles < best->sm_cycles[i]) {
            best->sm_cycles[i] = cycles;
            best->compute_bound[i] = compute >= load;
        }
    }
}

/* Rows of a tile such that `tiles` of them cover m in steps of 8. */
static double rows_of(double m, double tiles)
{
    return 8.0 * rg_kernel_up(m / tiles * 0.125);
}

/* Tiles whose one side is a multiple of 64 and whose other is whatever fills the waves best. */
static void search_fine(const product *p, best_tile *best)
{
    static const double sides[4] = {64, 128, 192, 256};
    for (int i = 0; i < 4; i++) {
        const double b = sides[i];
        const double h = rg_kernel_up(p->n / b) * p->batch, least = rg_kernel_up(p->m / 256.0);
        double last = 0.0;
        for (int w = 0; w <= 4; w++) {
            /* As many tiles along m as w waves hold; w = 0: the fewest. */
            double g = w == 0 ? least : rg_kernel_down(w * p->units / h);
            if (g < least || (w > 0 && g <= last))
                continue;
            last = g;
            double a = rows_of(p->m, g);
            if (a * b > LARGEST_TILE)
                a = 128.0;
            try_tile(p, a, b, best);
        }
        if (p->m > 64.0)
            try_tile(p, 64.0, b, best);
        if (p->m > 128.0) {
            try_tile(p, 128.0, b, best);
            try_tile(p, 192.0, b, best);
        }
        if (p->m < 64.0)
            continue;
        const double a = sides[i], g = rg_kernel_up(p->m / a) * p->batch;
        const double fewest = rg_kernel_up(p->n / 256.0);
        for (int w = 1; w <= 3; w++) {
            const double columns = rg_kernel_down(w * p->units / g);
            if (columns < fewest)
                continue;
            const double side = rows_of(p->n, columns);
            if (side >= 64.0 && side * a <= LARGEST_TILE)
                try_tile(p, a, side, best);
        }
    }
}

/* Tiles with sides that are powers of two. */
static void search_coarse(const product *p, best_tile *best)
{
    for (double a = 8; a <= 256; a *= 2) {
        if (a >= 2.0 * p->m && a > 8.0)
            return;
        for (double b = a < 64 ? 64 : 32; b <= 256; b *= 2)
            if (a * b <= LARGEST_COARSE_TILE)
                try_tile(p, a, b, best);
    }
}

/* Tiles of block-scaled kernels (DeepGEMM, heuristics of its JIT): 64 or 128 rows, columns in steps
 * of 16; tiles are not shared out further. The last row of tiles waits for loads beyond m. */
static void search_block(const product *p, best_tile *best)
{
    const double a = p->m <= 64.0 ? 64.0 : 128.0, rows = rg_kernel_up(p->m / a);
    const double empty =
        (rows * a - p->m) * rg_kernel_up(p->k / p->k_step) * p->c[RG_GEMM_EMPTY_ROW];
    for (double b = 16.0; b <= 128.0; b += 16.0)
        try_tile(p, a, b, best);
    best->sm_cycles[0] += empty;
}

rg_kernel_group rg_kernel_gemm_group(const rg_op_gemm *shape)
{
    if (shape->weight.weight_only)
        return shape->weight.element_bits <= 5.0 ? RG_KG_GEMM_INT4_WO : RG_KG_GEMM_INT8_WO;
    if (shape->batch > 1)
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
    const double room = c[RG_GEMM_L2_SHARE] * device->l2_room;
    if (device->options.cold_l2) {
        t.hit_activations = rg_kernel_hit_ratio(t.activations, room);
        return t;
    }
    double copies = t.weights > 0.0 ? rg_kernel_up(device->l2_bytes / t.weights) : 1.0;
    copies = fmin(5.0, fmax(1.0, copies));
    if (device->options.weight_copies > 0)
        copies = device->options.weight_copies;
    t.hit_weights = rg_kernel_hit_ratio(copies * t.weights + t.activations, room);
    t.hit_activations = t.hit_weights;
    return t;
}

static rg_status compute(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                         rg_err *err)
{
    const rg_op_gemm *g = &op->u.gemm;
    const rg_kernel_group group = rg_kernel_gemm_group(g);
    const double *c = device->c[group];
    double peak;
    RG_TRY(rg_kernel_peak(device, g->math, &peak, err));
    const double x_bytes = rg_dtype_bits(g->math) / 8.0;
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    const double batch = g->batch > 1 ? (double)g->batch : 1.0;
    const double w_bytes = op->weight_bytes.v / (n * k * batch);
    product p = {.c = c, .m = m, .n = n, .k = k, .batch = batch};
    p.units = device->units;
    p.hz = device->hz;
    p.k_step = 128.0 / x_bytes;
    /* Block-scaled kernels (DeepGEMM) keep K in one piece: scales apply while it is summed. The
     * integer and weight-only kernels of the tables show no split either. */
    const bool block = group == RG_KG_GEMM_FP8_BLOCK;
    p.most_split_steps =
        block || g->weight.weight_only || group == RG_KG_GEMM_INT8 ? 1 : SPLIT_STEPS;
    const double burst = device->options.sustained ? c[RG_GEMM_SUSTAINED] : c[RG_GEMM_COMPUTE];
    p.compute_cycles = 2.0 * p.k_step * p.units * p.hz / (burst * peak);
    p.x_cycles = 128.0 / c[RG_GEMM_L2_SM];
    p.w_cycles = p.x_cycles * w_bytes / x_bytes * (device->cta_pairs ? 0.5 : 1.0);
    best_tile best = {{INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}, {false}};
    if (block)
        search_block(&p, &best);
    else if (device->fine_tiles)
        search_fine(&p, &best);
    else
        search_coarse(&p, &best);

    const traffic t = traffic_of(device, c, op);
    const double missed =
        t.weights * (1.0 - t.hit_weights) + t.activations * (1.0 - t.hit_activations);
    const double hit = t.weights + t.activations - missed;
    const double ramp = c[RG_GEMM_RAMP] * 1e-6 * missed / (missed + hit);
    const double memory = ramp + missed / (c[RG_GEMM_MEMORY] * device->memory_rate);
    const double l2 =
        hit / fmax(c[RG_GEMM_L2_RATE] * device->l2_rate, c[RG_GEMM_MEMORY] * device->memory_rate);
    const double slower = c[RG_GEMM_COMPUTE] / c[RG_GEMM_SUSTAINED] - 1.0;
    double least = INFINITY, parts = 1.0;
    for (int i = 0; i < SPLIT_STEPS; i++, parts *= 2.0) {
        if (!(best.sm_cycles[i] < INFINITY))
            continue;
        double sm = best.sm_cycles[i] / p.hz;
        if (best.compute_bound[i] && slower > 0.0 && !device->options.sustained)
            sm *= 1.0 + slower * sm / (sm + burst_seconds);
        const double merge =
            i == 0 ? 0.0 : c[RG_GEMM_SPLIT] / p.hz + 8.0 * parts * m * n * batch / device->l2_rate;
        if (sm + merge >= least)
            continue; /* joined with anything it stays above what is there */
        const double total = rg_kernel_join(sm, memory + l2, c[RG_GEMM_OVERLAP]) + merge;
        if (total >= least)
            continue;
        least = total;
        out->fixed = merge;
        out->compute = best.compute_bound[i] ? sm : 0.0;
        out->l2 = best.compute_bound[i] ? l2 : fmax(l2, sm);
        out->choice = i > 0                                       ? "split K"
                      : best.sm_cycles[i] > c[RG_GEMM_WAVE] * 1.5 ? "tiles"
                                                                  : "tile";
    }
    out->memory = memory;
    out->fixed += c[RG_GEMM_START] / p.hz;
    out->total = least + c[RG_GEMM_START] / p.hz;
    if (rg_dtype_bits(g->math) < rg_dtype_bits(g->act) && !g->weight.weight_only &&
        !device->options.no_quantise) {
        const double moved = batch * m * k * (rg_dtype_bits(g->act) + rg_dtype_bits(g->math)) / 8.0;
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

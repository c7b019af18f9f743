/* kernel/tile.c: which tiles a product is cut into, and how long the SMs are busy with them. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel/tile.h"

#include <math.h>

enum {
    LARGEST_TILE = 53248, /* accumulators: 64K registers less addresses and operands */
    LARGEST_MMA_TILE = 32768,
    FEWEST_STEPS = 4,      /* K steps that a part of a split keeps */
    SWAPPED_ROWS = 32,     /* DeepGEMM: below, X and W change places */
    MULTICAST_ROWS = 1024, /* and from here on clusters share loads */
    VECTOR_ROWS = 4,       /* TensorRT-LLM, SMALL_M_FAST_PATH */
};

static const double parts_by_two[RG_TILE_SPLITS] = {1, 2, 4, 8, 16, 32};
static const double parts_any[RG_TILE_SPLITS] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32};

/* What a set allows. */
typedef struct rules {
    const double *parts;
    int splits;       /* of them */
    double most_ctas; /* of a split: more waves than this is finer than any library cuts */
    double steps;     /* along K, not split */
    bool shares_loads;
    bool one_wave; /* tiles below the largest run in one wave or not at all */
} rules;

static rules rules_of(const rg_tile_product *p)
{
    const double steps = rg_kernel_up(p->k / p->k_step);
    switch (p->set) {
    case RG_TILES_FINE:
        return (rules){parts_by_two, 6, 2.0 * p->units, steps, true, false};
    case RG_TILES_DENSE:
        return (rules){parts_any, RG_TILE_SPLITS, 6.0 * p->units,
                       steps,     false,          p->m > 64.0 && !(p->batch > 1.0)};
    case RG_TILES_WEIGHT_ONLY:
        return (rules){parts_any, 7, 4.0 * p->units, steps, false, false};
    case RG_TILES_BLOCK:
        return (rules){parts_any, 1, p->units, steps, p->m >= MULTICAST_ROWS, false};
    default:
        return (rules){parts_any, 1, p->units, steps, false, false};
    }
}

static void keep(const rg_tile_product *p, rg_tile_choice *best, int split, double ctas,
                 double tile_cycles, bool compute_bound)
{
    const double waves = rg_kernel_up(ctas / p->units);
    const double cycles = waves * tile_cycles + (waves - 1.0) * p->wave_cycles;
    if (cycles < best->cycles[split]) {
        best->cycles[split] = cycles;
        best->compute_bound[split] = compute_bound;
    }
}

static void try_tile(const rg_tile_product *p, const rules *r, double a, double b,
                     rg_tile_choice *best)
{
    const double tiles = rg_kernel_up(p->m / a) * rg_kernel_up(p->n / b) * p->batch;
    const double mma = a * b * p->mma_cycles;
    const double x = a * p->x_cycles, w = b * p->w_cycles;
    double load = x + w;
    if (r->shares_loads) {
        const double shared_x = p->n > b ? x : 0.0, shared_w = p->m > a ? w : 0.0;
        load -= 0.5 * (shared_x > shared_w ? shared_x : shared_w);
    }
    const double step =
        (mma > load ? mma : load) + b * p->convert_cycles + a * b * p->promote_cycles;
    const bool one_wave = r->one_wave && a * b < LARGEST_MMA_TILE;
    if (one_wave && tiles > p->units)
        return;
    const double most_ctas = one_wave ? p->units : r->most_ctas;
    keep(p, best, 0, tiles, r->steps * step, mma >= load);
    for (int i = 1; i < r->splits; i++) {
        const double parts = r->parts[i];
        if (tiles * parts > most_ctas || r->steps < parts * FEWEST_STEPS)
            return;
        keep(p, best, i, tiles * parts, rg_kernel_up(r->steps / parts) * step, mma >= load);
    }
}

/* Rows of a tile such that `tiles` of them cover m in steps of 8. */
static double rows_of(double m, double tiles)
{
    return 8.0 * rg_kernel_up(m / tiles * 0.125);
}

/* Tiles whose one side is a multiple of 64 and whose other is whatever fills the waves best. */
static void search_fine(const rg_tile_product *p, const rules *r, rg_tile_choice *best)
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
            try_tile(p, r, a, b, best);
        }
        if (p->m > 64.0)
            try_tile(p, r, 64.0, b, best);
        if (p->m > 128.0) {
            try_tile(p, r, 128.0, b, best);
            try_tile(p, r, 192.0, b, best);
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
                try_tile(p, r, a, side, best);
        }
    }
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Tiles from a list, those left out that are taller than m by more than half. */
static void search_list(const rg_tile_product *p, const rules *r, const double (*tiles)[2],
                        size_t count, rg_tile_choice *best)
{
    for (size_t i = 0; i < count; i++)
        if (tiles[i][0] <= 64.0 || tiles[i][0] < 2.0 * p->m)
            try_tile(p, r, tiles[i][0], tiles[i][1], best);
}

/* The side of a tile along n that DeepGEMM picks. */
static double block_side(double rows, double n, double units)
{
    double best = 16.0, fewest = INFINITY, fullest = 0.0;
    for (double b = 16.0; b <= 128.0; b += 8.0) {
        const double tiles = rows * rg_kernel_up(n / b), waves = rg_kernel_up(tiles / units);
        const double last = tiles - (waves - 1.0) * units;
        if (waves < fewest || (waves == fewest && last > fullest)) {
            best = b;
            fewest = waves;
            fullest = last;
        }
    }
    return best;
}

/* Loads beyond m are slow, and the slower the more SMs do them at once: in the measured tables a
 * last tile with 15 rows is done before one with 1 row where all SMs have one, and in the same time
 * where few have. */
static void search_block(const rg_tile_product *p, const rules *r, rg_tile_choice *best)
{
    if (p->m < SWAPPED_ROWS) {
        const double b = p->n <= 64.0 ? 64.0 : 128.0;
        const double columns = rg_kernel_up(p->n / b) * p->batch;
        try_tile(p, r, block_side(columns, p->m, p->units), b, best);
        return;
    }
    const double a = p->m <= 64.0 ? 64.0 : 128.0, rows = rg_kernel_up(p->m / a);
    const double b = block_side(rows * p->batch, p->n, p->units);
    try_tile(p, r, a, b, best);
    const double last = rg_kernel_up(p->n / b) * p->batch, busy = rows * last / p->units;
    best->cycles[0] += (rows * a - p->m) * r->steps * p->empty_cycles * (busy < 1.0 ? busy : 1.0) *
                       rg_kernel_up(last / p->units);
}

void rg_tile_search(const rg_tile_product *p, rg_tile_choice *out)
{
    static const double dense[][2] = {{256, 128}, {128, 256}, {128, 128}, {64, 256}, {256, 64},
                                      {128, 64},  {64, 128},  {96, 64},   {64, 96},  {64, 64},
                                      {32, 128},  {32, 64},   {16, 64},   {8, 64}};
    static const double int8[][2] = {{256, 128}, {128, 256}, {128, 64},
                                     {64, 128},  {64, 64},   {32, 128}};
    static const double weight_only[][2] = {{128, 128}, {64, 128}, {32, 128}, {16, 256}, {16, 128}};
    static const double block_flat[][2] = {{32, 128}};
    const rules r = rules_of(p);
    out->parts = r.parts;
    out->splits = r.splits;
    for (int i = 0; i < r.splits; i++)
        out->cycles[i] = INFINITY;
    switch (p->set) {
    case RG_TILES_FINE:
        search_fine(p, &r, out);
        break;
    case RG_TILES_DENSE:
        search_list(p, &r, dense, COUNT(dense), out);
        break;
    case RG_TILES_INT8:
        if (p->m <= VECTOR_ROWS) {
            out->cycles[0] = r.steps * p->n * p->w_cycles * p->batch / p->units;
            out->compute_bound[0] = false;
        } else {
            search_list(p, &r, int8, COUNT(int8), out);
        }
        break;
    case RG_TILES_WEIGHT_ONLY:
        search_list(p, &r, weight_only, COUNT(weight_only), out);
        break;
    case RG_TILES_BLOCK:
        search_block(p, &r, out);
        break;
    case RG_TILES_BLOCK_FLAT:
        search_list(p, &r, block_flat, COUNT(block_flat), out);
        break;
    }
}

/* kernel/moe.c: time of the routed experts of one layer on one rank.
 *
 * Rows reach experts by routing; each touched expert is a small product with its own tiles, and two
 * grouped products (gate and up, down) run all of them. Routing, permutation, activation and
 * combine are fixed costs and moved bytes:
 *
 *   t = start + experts expert + tokens k route / N + sum over both of join(t_sm, t_mem; p)
 *       + passes B_act / W
 *   t_sm = waves (ceil(k / k_step) step + wave) / f,  waves from sum_e ceil(rows_e / a) ceil(n / b)
 *
 * with step as in gemm.c. The tile a x b is the one that tuning found best: engines time their
 * tiles on random routing at powers of two of the tokens and take what was best at the one below.
 *
 * Loads of the experts: even routing draws, so that E (1 - (1 - k/E)^tokens) are touched and rows
 * are binomial; a benchmark that deals rows out in turn touches min(E, rows). Skew A: loads are
 * distributed with density x^-A over [1, 0.8 tokens] (over [0.01, 2] when there are fewer rows than
 * experts), scaled to the rows that there are and rounded: the sampling of NVIDIA aiconfigurator's
 * collector. Under expert parallelism the busiest rank finishes last.
 *
 * Engines route with one kernel up to a number of experts and a top-k; beyond, with general top-k
 * and softmax kernels, at a cost by logit.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "kernel/device.h"

enum {
    STRATA = 32,
    STEADY_WAVES = 4,
    STAGES = 3, /* of Triton's kernel: default of vLLM and SGLang for block-scaled weights */
};
/* Shared memory of an SM (CUDA C++ Programming Guide, compute capability 9.0 and 10.0). */
static const double shared_bytes = 228.0 * 1024.0;

/* Classes of experts with the same load: how many there are, rows of each. */
typedef struct loads {
    int classes;
    double experts[STRATA + 1], rows[STRATA + 1];
    double touched, total_rows;
} loads;

rg_kernel_group rg_kernel_moe_group(const rg_op_moe *shape)
{
    /* The kernel of the measured tables; other weight-only formats run as 16-bit products that read
     * fewer bytes. */
    if (strncmp(shape->weight.name, "mxfp4", 5) == 0 && rg_dtype_bits(shape->math) > 8.0)
        return RG_KG_MOE_W4;
    if (rg_dtype_bits(shape->math) <= 8.0)
        return shape->weight.group > 0 ? RG_KG_MOE_FP8_BLOCK : RG_KG_MOE_FP8;
    return RG_KG_MOE_BF16;
}

/* Rows of the first rank in a benchmark that deals experts out: token t takes (t + i stride) mod E,
 * i < k, stride = ceil(E / k), tokens spread over a stride when they are fewer (NVIDIA
 * aiconfigurator, collector/helper.py, balanced_logits). Where k does not divide E the last turns
 * come round to the first experts again. */
static double dealt_rows(const rg_op_moe *s)
{
    const double experts = (double)s->experts, local = (double)s->local_experts;
    const double tokens = (double)s->tokens, stride = rg_kernel_up(experts / (double)s->top_k);
    const double rounds = tokens < stride ? 0.0 : rg_kernel_down(tokens / experts);
    const double rest = tokens - rounds * experts; /* tokens of the last round */
    const double dense = tokens < stride ? tokens / stride : 1.0;
    double rows = rounds * (double)s->top_k * local, first = 0.0;
    for (int64_t i = 0; i < s->top_k; i++) {
        /* The local experts seen from expert i stride on, as a ring: [first, first + local). */
        const double last = first + local;
        rows += fmin(rest, rg_kernel_up(fmin(last, experts) * dense)) -
                fmin(rest, rg_kernel_up(first * dense));
        if (last > experts)
            rows += fmin(rest, rg_kernel_up((last - experts) * dense));
        first = first < stride ? first + experts - stride : first - stride;
    }
    return rows;
}

static void dealt_loads(const rg_op_moe *s, loads *out)
{
    const double rows = dealt_rows(s);
    out->classes = 1;
    out->experts[0] = fmin((double)s->local_experts, fmax(1.0, rows));
    out->rows[0] = fmax(1.0, rows / out->experts[0]);
}

/* Every token draws k of the experts: rows of an expert are binomial, their quantiles by the normal
 * law. */
static void drawn_loads(const rg_op_moe *s, double tokens, loads *out)
{
    static const double deviations[8] = {-1.534, -0.887, -0.489, -0.157,
                                         0.157,  0.489,  0.887,  1.534};
    const double share = fmin(1.0, (double)s->top_k / (double)s->experts);
    const double mean = tokens * share, spread = sqrt(mean * (1.0 - share));
    const double touched = (double)s->local_experts * (1.0 - pow(1.0 - share, tokens));
    out->classes = 8;
    for (int i = 0; i < 8; i++) {
        out->experts[i] = touched / 8.0;
        const double rows = mean + deviations[i] * spread;
        out->rows[i] = rows < 1.5 ? 1.0 : rg_kernel_down(rows + 0.5);
    }
}

/* Deviation that the largest of n normal numbers is expected to have: the quantile of
 * (n - 3/8) / (n + 1/4) (Blom 1958), by Abramowitz and Stegun 26.2.23. */
static double largest_deviation(double n)
{
    const double t = sqrt(-2.0 * log(0.625 / (n + 0.25)));
    return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                   (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

/* Rows of the busiest of so many ranks over the mean, from the moments of an expert's load: the
 * largest of their sums, with the skewness that sums of few experts keep (Cornish and Fisher); a
 * sum has no more than the largest loads, peak times the mean. */
static double busiest_rank(double ranks, double local, double variation, double skewness,
                           double peak)
{
    const double z = largest_deviation(ranks),
                 spread = variation * sqrt((1.0 - 1.0 / ranks) / local);
    return fmin(1.0 + spread * (z + (z * z - 1.0) * skewness / (6.0 * sqrt(local))),
                ranks * peak / (peak + ranks - 1.0));
}

static double whole_rows(double load, double tokens)
{
    return fmin(tokens, rg_kernel_down(load + 0.5));
}

static void skewed_loads(const rg_op_moe *s, loads *out)
{
    const double local = (double)s->local_experts, experts = (double)s->experts;
    const double tokens = (double)s->tokens, rows = tokens * (double)s->top_k;
    const double ranks = fmax(1.0, experts / local);
    const bool many = rows > experts;
    const double least = many ? 1.0 : 0.01, most = many ? fmax(1.001, 0.8 * tokens) : 2.0;
    /* Quantiles of the density x^-A; A = 1 is the logarithmic limit, stepped around. */
    const double b = fabs(1.0 - s->skew) < 1e-6 ? 1e-6 : 1.0 - s->skew;
    const double low = pow(least, b), high = pow(most, b);
    double mean = 0.0, square = 0.0, cube = 0.0;
    for (int i = 0; i < STRATA; i++) {
        const double u = (i + 0.5) / STRATA, x = pow((1.0 - u) * low + u * high, 1.0 / b);
        out->rows[i] = x;
        mean += x / STRATA;
        square += x * x / STRATA;
        cube += x * x * x / STRATA;
    }
    /* Rows are whole; those that rounding leaves over go one by one to idle experts of all ranks.
     */
    const double scale = rows / experts / mean;
    double left = rows;
    for (int i = 0; i < STRATA; i++)
        left -= whole_rows(out->rows[i] * scale, tokens) * experts / STRATA;
    /* On the busiest rank large loads are more likely: quantiles u^(1/tilt), as of the largest of
     * `tilt` draws, which for x^-1 raises the mean to tilt peak / (peak + tilt - 1) times. */
    if (ranks > 1.0) {
        const double variance = fmax(1e-12, square / (mean * mean) - 1.0), peak = most / mean;
        const double third = cube / (mean * mean * mean) - 3.0 * variance - 1.0;
        const double busiest =
            fmax(1.0, busiest_rank(ranks, local, sqrt(variance), third / pow(variance, 1.5), peak));
        const double tilt = busiest * (peak - 1.0) / fmax(1e-9, peak - busiest);
        for (int i = 0; i < STRATA; i++) {
            const double u = pow((i + 0.5) / STRATA, 1.0 / tilt);
            out->rows[i] = pow((1.0 - u) * low + u * high, 1.0 / b);
        }
    }
    double kept = 0.0;
    for (int i = 0; i < STRATA; i++) {
        out->rows[i] = whole_rows(out->rows[i] * scale, tokens);
        out->experts[i] = out->rows[i] > 0.0 ? local / STRATA : 0.0;
        kept += out->experts[i];
    }
    out->classes = STRATA + 1;
    out->rows[STRATA] = 1.0;
    out->experts[STRATA] = fmin(local - kept, fmax(fmax(0.0, 1.0 - kept), left / ranks));
}

/* Rows of a tile. */
enum { HEIGHTS = 5 };
static const double heights[HEIGHTS] = {16, 32, 64, 128, 256};

/* A tile of the grouped product: rows of X as a place in heights, columns of W. */
typedef struct tile {
    int height;
    double columns;
} tile;

/* What the libraries have (TensorRT-LLM and FlashInfer, cutlass_heuristic.cpp): with warp-group
 * instructions 128 x 16 to 128 x 256 and 256 x 128, either side along the tokens; before them
 * 128 columns. Block-scaled kernels (DeepGEMM) keep to 128 columns, the length of a scale. */
static const tile wgmma_tiles[] = {{0, 128}, {1, 128}, {2, 128}, {3, 128},
                                   {4, 128}, {3, 256}, {3, 64},  {3, 32}};
static const tile mma_tiles[] = {{0, 128}, {1, 128}, {2, 128}, {3, 128}};
static const tile block_tiles[] = {{0, 128}, {1, 128}, {2, 128}, {3, 128}, {2, 64}, {3, 64}};

typedef struct tile_set {
    const tile *tiles;
    size_t count;
} tile_set;

static tile_set tiles_of(const rg_kernel_device *device, rg_kernel_group group)
{
    if (group == RG_KG_MOE_FP8_BLOCK)
        return (tile_set){block_tiles, sizeof block_tiles / sizeof block_tiles[0]};
    if (device->fine_tiles)
        return (tile_set){wgmma_tiles, sizeof wgmma_tiles / sizeof wgmma_tiles[0]};
    return (tile_set){mma_tiles, sizeof mma_tiles / sizeof mma_tiles[0]};
}

/* Tiles of one height that cover the rows of all experts. */
static double row_tiles(const loads *l, int height)
{
    const double per_row = 1.0 / heights[height];
    double tiles = 0.0;
    for (int e = 0; e < l->classes; e++)
        tiles += l->experts[e] * rg_kernel_up(l->rows[e] * per_row);
    return tiles;
}

/* One of the grouped products: n columns, depth k. */
typedef struct product {
    const double *c;
    double n, steps, units;
    double compute_cycles; /* of a step, for one element of the tile */
    double shared_bytes;   /* of an SM, for the tiles that share it; 0: one tile at a time */
    double w_share;        /* bytes of W over bytes of X that an SM loads for an element */
} product;

/* Cycles of one step of a tile: its products, and its loads into the SM. */
static double product_cycles(const product *p, const tile *t)
{
    return heights[t->height] * t->columns * p->compute_cycles;
}

static double load_cycles(const product *p, const tile *t)
{
    return 128.0 * (heights[t->height] + t->columns * p->w_share) / p->c[RG_MOE_L2_SM];
}

/* Cycles on the SMs. */
static double tile_cycles(const product *p, const tile *t, double covering)
{
    const double rows = heights[t->height];
    const double compute = product_cycles(p, t), load = load_cycles(p, t);
    const double share = covering * rg_kernel_up(p->n / t->columns) / p->units;
    const double waves = share > STEADY_WAVES ? share + 0.5 : rg_kernel_up(share);
    /* Tiles that share an SM fill and drain behind one another's products. */
    double resident = 1.0;
    if (p->shared_bytes > 0.0)
        resident =
            fmax(1.0, rg_kernel_down(p->shared_bytes / (STAGES * 128.0 * (rows + t->columns))));
    return waves * (p->steps * (compute > load ? compute : load) + p->c[RG_MOE_WAVE] / resident);
}

/* The tile that a tuning run finds fastest. */
static const tile *tuned_tile(const product *p, tile_set set, const double covering[HEIGHTS])
{
    const tile *best = set.tiles;
    double least = INFINITY;
    for (size_t i = 0; i < set.count; i++) {
        const double cycles = tile_cycles(p, &set.tiles[i], covering[set.tiles[i].height]);
        if (cycles < least) {
            least = cycles;
            best = &set.tiles[i];
        }
    }
    return best;
}

/* Tokens of the tuning run whose tile a call takes: the power of two at or below, 8192 at most
 * (TensorRT-LLM, MoERunner.tuning_config; FlashInfer and vLLM likewise). DeepGEMM does not tune but
 * picks by the rows at hand. */
static double tuning_tokens(const rg_op_moe *s, rg_kernel_group group)
{
    if (group == RG_KG_MOE_FP8_BLOCK)
        return (double)s->tokens;
    double tokens = 1.0;
    while (tokens < 8192.0 && 2.0 * tokens <= (double)s->tokens)
        tokens *= 2.0;
    return tokens;
}

/* Activations of tokens: all results are written, inputs that local experts were chosen for read.
 */
static double token_bytes(const rg_op_moe *s, const loads *l)
{
    const double tokens = (double)s->tokens;
    return (tokens + fmin(tokens, l->total_rows)) * (double)s->hidden * rg_dtype_bits(s->act) / 8.0;
}

/* Activations of rows, where they are brought in order first: permuted, and passed through memory
 * between the products and after them. Triton's kernel for mxfp4 keeps a place for every row, local
 * or not. */
static double permuted_bytes(const rg_op_moe *s, rg_kernel_group group, const loads *l, double up)
{
    const double all_rows = (double)s->tokens * (double)s->top_k;
    const double rows = group == RG_KG_MOE_W4 ? fmax(all_rows, l->total_rows) : l->total_rows;
    const double act = rg_dtype_bits(s->act) / 8.0, x = rg_dtype_bits(s->math) / 8.0;
    const double hidden = (double)s->hidden, inter = (double)s->inter;
    return rows * (hidden * (x + 2.0 * act) + (up + inter) * act);
}

/* The same where the product gathers its rows itself (vLLM, fused_moe.py, fused_experts_impl):
 * tokens are quantised; rows are activated and quantised between the products; the rows of the
 * second are written, and read to be summed. */
static double gathered_bytes(const rg_op_moe *s, const loads *l, double up)
{
    const double act = rg_dtype_bits(s->act) / 8.0, x = rg_dtype_bits(s->math) / 8.0;
    const double hidden = (double)s->hidden, inter = (double)s->inter;
    return (double)s->tokens * hidden * (2.0 * act + x) +
           l->total_rows * (2.0 * up * act + inter * (2.0 * act + x) + 2.0 * hidden * act);
}

rg_status rg_kernel_moe(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                        rg_err *err)
{
    const rg_op_moe *s = &op->u.moe;
    const rg_kernel_group group = rg_kernel_moe_group(s);
    const double *c = device->c[group];
    double peak;
    RG_TRY(rg_kernel_peak(device, s->math, &peak, err));
    const double hidden = (double)s->hidden, inter = (double)s->inter;
    const double x_bytes = rg_dtype_bits(s->math) / 8.0;
    const double act_bytes = rg_dtype_bits(s->act) / 8.0;
    const double w_bytes = rg_format_bytes(&s->weight, 1048576.0).v / 1048576.0;
    loads l;
    if (s->skew > 0.0)
        skewed_loads(s, &l);
    else if (s->dealt)
        dealt_loads(s, &l);
    else
        drawn_loads(s, (double)s->tokens, &l);
    l.touched = l.total_rows = 0.0;
    for (int i = 0; i < l.classes; i++) {
        l.touched += l.experts[i];
        l.total_rows += l.experts[i] * l.rows[i];
    }
    const tile_set set = tiles_of(device, group);
    const double tuned_at = tuning_tokens(s, group);
    loads drawn;
    const loads *tuning = &l;
    if (s->skew > 0.0 || s->dealt || tuned_at < (double)s->tokens) {
        drawn_loads(s, tuned_at, &drawn);
        tuning = &drawn;
    }
    double covering[HEIGHTS];
    for (int i = 0; i < HEIGHTS; i++)
        covering[i] = row_tiles(tuning, i);
    const double k_step = 128.0 / x_bytes;
    /* Triton's kernels were measured on one of many ranks, where the routing of all experts is cut
     * down to the local ones first (TensorRT-LLM, TritonEPRouter.prune_routing_ep); a rank with all
     * experts starts like any other kernel. */
    const bool pruned = group == RG_KG_MOE_W4 && s->local_experts < s->experts;
    const double start =
        group != RG_KG_MOE_W4 || pruned ? c[RG_MOE_START] : device->c[RG_KG_MOE_BF16][RG_MOE_START];
    /* Blocks of Triton's kernel are laid out over the rows that there are. */
    const bool triton =
        group == RG_KG_MOE_FP8_BLOCK && device->options.experts == RG_EXPERTS_TRITON;
    const double served = triton ? l.touched : (double)s->local_experts;
    out->fixed = (start + c[RG_MOE_EXPERT] * served) / device->hz;
    double routed =
        c[RG_MOE_ROUTE] * (double)s->tokens * (double)s->top_k / (device->units * device->hz);
    if (s->experts > device->routed_experts || s->top_k > device->routed_top_k) {
        out->fixed += c[RG_MOE_SORT_START] / device->hz;
        routed +=
            c[RG_MOE_SORT] * (double)s->tokens * (double)s->experts / (device->units * device->hz);
    }
    out->compute = routed;
    out->total = out->fixed + routed;
    out->choice = s->skew > 0.0 ? "grouped products, skewed" : "grouped products";
    const double up = (double)(s->matrices - 1) * inter;
    const double columns[2] = {up, hidden}, depths[2] = {hidden, inter};
    const double memory_rate = c[RG_MOE_MEMORY] * device->memory_rate;
    for (int g = 0; g < 2; g++) {
        const double weights = l.touched * columns[g] * depths[g] * w_bytes;
        const double moved = l.total_rows * (depths[g] * x_bytes + columns[g] * act_bytes);
        const double hit =
            device->options.cold_l2 ? 0.0 : rg_kernel_hit_ratio(weights, device->l2_room);
        const double memory = (weights * (1.0 - hit) + moved) / memory_rate;
        const double l2 = weights * hit / device->l2_rate;
        const product p = {.c = c,
                           .n = columns[g],
                           .steps = rg_kernel_up(depths[g] / k_step),
                           .units = device->units,
                           .compute_cycles = 2.0 * k_step * device->units * device->hz /
                                             (c[RG_MOE_COMPUTE] * peak),
                           .shared_bytes = triton ? shared_bytes : 0.0,
                           .w_share = (device->cta_pairs ? 0.5 : 1.0) * w_bytes / x_bytes};
        const tile *t = tuned_tile(&p, set, covering);
        const double sm = tile_cycles(&p, t, row_tiles(&l, t->height)) / device->hz;
        /* Low tiles of few rows wait for their weights rather than for their products. */
        const bool loading = load_cycles(&p, t) > product_cycles(&p, t);
        out->compute += loading ? 0.0 : sm;
        out->memory += memory;
        out->l2 += loading ? fmax(l2, sm) : l2;
        out->total += rg_kernel_join(sm, memory + l2, c[RG_MOE_OVERLAP]);
    }
    const double plain = device->c[RG_KG_STREAM][RG_STREAM_MEMORY] * device->memory_rate;
    const double stream =
        triton ? gathered_bytes(s, &l, up) / plain
               : token_bytes(s, &l) / plain +
                     c[RG_MOE_PASSES] * permuted_bytes(s, group, &l, up) / device->memory_rate;
    out->memory += stream;
    out->total += stream;
    return RG_OK;
}

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
 * with step as in gemm.c. Loads of the experts: even routing touches E (1 - (1 - k/E)^tokens) of
 * them; a benchmark that deals rows out in turn touches min(E, rows). Skew A: loads are distributed
 * with density x^-A over [1, 0.8 tokens] (over [0.01, 2] when there are fewer rows than experts),
 * scaled to the rows that there are: the sampling of NVIDIA aiconfigurator's collector. Under
 * expert parallelism the busiest rank finishes last; its load is taken from the largest of ep
 * normal sums.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "kernel/device.h"

enum { STRATA = 32, LARGEST_TILE = 32768, STEADY_WAVES = 4 };

/* Classes of experts with the same load: how many there are, rows of each. */
typedef struct loads {
    int classes;
    double experts[STRATA], rows[STRATA];
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

static void even_loads(const rg_op_moe *s, loads *out)
{
    const double local = (double)s->local_experts, experts = (double)s->experts;
    const double rows = (double)s->tokens * (double)s->top_k * local / experts;
    double touched;
    if (s->dealt)
        touched = fmin(local, fmax(1.0, rows));
    else
        touched =
            local * (1.0 - pow(1.0 - fmin(1.0, (double)s->top_k / experts), (double)s->tokens));
    out->classes = 1;
    out->experts[0] = touched;
    out->rows[0] = touched > 0.0 ? fmax(1.0, rows / touched) : 0.0;
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
    double mean = 0.0, square = 0.0;
    for (int i = 0; i < STRATA; i++) {
        const double u = (i + 0.5) / STRATA;
        out->rows[i] = pow((1.0 - u) * low + u * high, 1.0 / b);
        mean += out->rows[i] / STRATA;
        square += out->rows[i] * out->rows[i] / STRATA;
    }
    const double variation = sqrt(fmax(0.0, square / (mean * mean) - 1.0));
    double busiest = 1.0;
    if (ranks > 1.0)
        busiest =
            fmin(ranks, 1.0 + variation * sqrt(2.0 * log(ranks) / local * (1.0 - 1.0 / ranks)));
    out->classes = STRATA;
    double kept = 0.0;
    for (int i = 0; i < STRATA; i++) {
        const double load = fmin(tokens, out->rows[i] / mean * rows / experts * busiest);
        out->experts[i] = load < 0.5 ? 0.0 : local / STRATA;
        out->rows[i] = fmax(1.0, load);
        kept += out->experts[i];
    }
    if (!(kept > 0.0)) {
        out->experts[STRATA - 1] = fmin(local, fmax(1.0, rows / ranks));
        out->rows[STRATA - 1] = 1.0;
    }
}

/* Time on the SMs of one grouped product with n columns and depth k, s. */
static double grouped_product(const rg_kernel_device *device, const double *c, const loads *l,
                              double n, double k, double peak, double x_bytes, double w_bytes)
{
    static const double heights[4] = {16, 32, 64, 128}, widths[3] = {64, 128, 256};
    const double units = device->units, f = device->hz, k_step = 128.0 / x_bytes;
    const double steps = rg_kernel_up(k / k_step), w_share = device->cta_pairs ? 0.5 : 1.0;
    double least = INFINITY;
    for (int i = 0; i < 4; i++) {
        const double a = heights[i];
        double row_tiles = 0.0;
        for (int e = 0; e < l->classes; e++)
            row_tiles += l->experts[e] * rg_kernel_up(l->rows[e] / a);
        for (int j = 0; j < 3; j++) {
            const double b = widths[j];
            if (a * b > LARGEST_TILE)
                continue;
            const double compute = 2.0 * a * b * k_step * units * f / (c[RG_MOE_COMPUTE] * peak);
            const double load = 128.0 * (a + b * w_share * w_bytes / x_bytes) / c[RG_MOE_L2_SM];
            const double share = row_tiles * rg_kernel_up(n / b) / units;
            const double waves = share > STEADY_WAVES ? share + 0.5 : rg_kernel_up(share);
            const double cycles = waves * (steps * fmax(compute, load) + c[RG_MOE_WAVE]);
            least = fmin(least, cycles);
        }
    }
    return least / f;
}

rg_status rg_kernel_moe(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                        rg_err *err)
{
    const rg_op_moe *s = &op->u.moe;
    const double *c = device->c[rg_kernel_moe_group(s)];
    double peak;
    RG_TRY(rg_kernel_peak(device, s->math, &peak, err));
    const double hidden = (double)s->hidden, inter = (double)s->inter;
    const double x_bytes = rg_dtype_bits(s->math) / 8.0;
    const double act_bytes = rg_dtype_bits(s->act) / 8.0;
    const double w_bytes = rg_format_bytes(&s->weight, 1048576.0).v / 1048576.0;
    loads l = {0};
    if (s->skew > 0.0)
        skewed_loads(s, &l);
    else
        even_loads(s, &l);
    for (int i = 0; i < l.classes; i++) {
        l.touched += l.experts[i];
        l.total_rows += l.experts[i] * l.rows[i];
    }
    out->fixed = (c[RG_MOE_START] + c[RG_MOE_EXPERT] * (double)s->local_experts) / device->hz;
    const double routed =
        c[RG_MOE_ROUTE] * (double)s->tokens * (double)s->top_k / (device->units * device->hz);
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
        const double sm =
            grouped_product(device, c, &l, columns[g], depths[g], peak, x_bytes, w_bytes);
        out->compute += sm;
        out->memory += memory;
        out->l2 += l2;
        out->total += rg_kernel_join(sm, memory + l2, c[RG_MOE_OVERLAP]);
    }
    /* The result is written for every token; of the input, what local experts were chosen for is
     * read and permuted, between the products and after them rows pass through memory. */
    const double reached = fmin((double)s->tokens, l.total_rows);
    const double streamed =
        ((double)s->tokens + reached) * hidden * act_bytes +
        l.total_rows * (hidden * (x_bytes + 2.0 * act_bytes) + (up + inter) * act_bytes);
    const double stream = c[RG_MOE_PASSES] * streamed / device->memory_rate;
    out->memory += stream;
    out->total += stream;
    return RG_OK;
}

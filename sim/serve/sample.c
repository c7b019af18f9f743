/* serve/sample.c: quantiles in bounded memory, batch means. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/sample.h"

#include <math.h>
#include <string.h>

#include "core/stat.h"

/* A bin is the top 10 bits of the mantissa and the exponent of the value, so width/value is between
 * 2^-11 and 2^-10. Values under 2^-40 s count as the least bin, over 2^30 s as the greatest. */
enum { MANTISSA = 10, LEAST_EXPONENT = -40, MOST_EXPONENT = 30 };
enum { BINS = (MOST_EXPONENT - LEAST_EXPONENT) << MANTISSA };

static int64_t bin_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int64_t at =
        (int64_t)(bits >> (52 - MANTISSA)) - ((int64_t)(1023 + LEAST_EXPONENT) << MANTISSA);
    return at < 0 ? 0 : at >= BINS ? BINS - 1 : at;
}

static double bin_value(int64_t bin)
{
    /* Middle of the bin. */
    const int64_t index = bin + ((int64_t)(1023 + LEAST_EXPONENT) << MANTISSA);
    const uint64_t low = (uint64_t)index << (52 - MANTISSA);
    const uint64_t middle = low | (uint64_t)1 << (51 - MANTISSA);
    double value;
    memcpy(&value, &middle, sizeof value);
    return value;
}

void rg_sample_start(rg_sample *sample, rg_arena *arena, bool binned)
{
    *sample = (rg_sample){.arena = arena, .binned = binned, .batch_size = 1, .least = INFINITY};
}

static void to_bins(rg_sample *s)
{
    s->bins = RG_NEW(s->arena, int64_t, BINS, &s->failed);
    if (!s->bins)
        return;
    for (int64_t i = 0; i < s->count && !s->binned; i++)
        s->bins[bin_of(s->exact[i])]++;
    s->binned = true;
}

static void add_exact(rg_sample *s, double value)
{
    if (s->count >= s->exact_room) {
        const int64_t room = s->exact_room ? s->exact_room * 2 : 1024;
        double *exact = RG_NEW(s->arena, double, room, &s->failed);
        if (!exact)
            return;
        if (s->count)
            memcpy(exact, s->exact, (size_t)s->count * sizeof *exact);
        s->exact = exact;
        s->exact_room = room;
    }
    s->exact[s->count] = value;
}

static void add_batch(rg_sample *s, double value)
{
    if (s->batch_filled == 0) {
        if (s->batches == RG_SAMPLE_BATCHES) {
            for (int i = 0; i < RG_SAMPLE_BATCHES / 2; i++)
                s->batch_sum[i] = s->batch_sum[2 * i] + s->batch_sum[2 * i + 1];
            s->batches = RG_SAMPLE_BATCHES / 2;
            s->batch_size *= 2;
        }
        s->batch_sum[s->batches++] = 0;
    }
    s->batch_sum[s->batches - 1] += value;
    if (++s->batch_filled == s->batch_size)
        s->batch_filled = 0;
}

void rg_sample_add(rg_sample *s, double value, int64_t weight)
{
    if (!s->binned && (weight != 1 || s->count >= RG_SAMPLE_EXACT))
        to_bins(s);
    if (s->binned) {
        if (!s->bins)
            to_bins(s);
        if (!s->bins)
            return;
        s->bins[bin_of(value)] += weight;
    } else {
        add_exact(s, value);
    }
    s->count += weight;
    s->sum += value * (double)weight;
    s->least = value < s->least ? value : s->least;
    s->most = value > s->most ? value : s->most;
    if (weight == 1)
        add_batch(s, value);
}

static double rank_value(const rg_sample *s, double rank /* from 0 */)
{
    if (!s->binned)
        return rg_stat_quantile_sorted(s->exact, (size_t)s->count,
                                       s->count > 1 ? rank / (double)(s->count - 1) : 0);
    int64_t seen = 0;
    for (int64_t i = 0; i < BINS; i++) {
        seen += s->bins[i];
        if ((double)seen > rank) {
            const double v = bin_value(i);
            return v < s->least ? s->least : v > s->most ? s->most : v;
        }
    }
    return s->most;
}

static double quantile(const rg_sample *s, double q, double *low, double *high)
{
    const double n = (double)s->count, last = n - 1;
    /* The number below the true quantile is binomial(n, q); 95 % by its normal limit, outwards. */
    const double half = 1.959963984540054 * sqrt(n * q * (1 - q));
    const double a = floor(n * q - half) - 1, b = ceil(n * q + half);
    *low = rank_value(s, a > 0 ? a : 0);
    *high = rank_value(s, b < last ? b : last);
    return rank_value(s, q * last);
}

rg_sample_summary rg_sample_summarise(rg_sample *s)
{
    rg_sample_summary out = {.count = s->count};
    if (s->count == 0) {
        out.mean = out.p50 = out.p90 = out.p95 = out.p99 = out.most = NAN;
        out.mean_half_width = NAN;
        out.p50_low = out.p50_high = out.p90_low = out.p90_high = NAN;
        out.p95_low = out.p95_high = out.p99_low = out.p99_high = NAN;
        return out;
    }
    if (!s->binned)
        rg_stat_sort(s->exact, (size_t)s->count);
    out.mean = s->sum / (double)s->count;
    out.most = s->most;
    out.p50 = quantile(s, 0.5, &out.p50_low, &out.p50_high);
    out.p90 = quantile(s, 0.9, &out.p90_low, &out.p90_high);
    out.p95 = quantile(s, 0.95, &out.p95_low, &out.p95_high);
    out.p99 = quantile(s, 0.99, &out.p99_low, &out.p99_high);
    /* Only full batches count. */
    const int full = s->batches - (s->batch_filled != 0);
    out.mean_half_width = NAN;
    if (full >= 10) {
        double means[RG_SAMPLE_BATCHES];
        for (int i = 0; i < full; i++)
            means[i] = s->batch_sum[i] / (double)s->batch_size;
        out.mean_half_width = rg_stat_mean_half_width(means, (size_t)full, 0.95);
    }
    return out;
}

/* fit/guard_stat.c: medians with honest errors, shifts, and control of false alarms. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard_stat.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stat.h"

/* Autocorrelation -------------------------------------------------------------------------------
 */

typedef struct rg_ranked {
    double value;
    int at;
} rg_ranked;

static int rg_ranked_compare(const void *a, const void *b)
{
    const rg_ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Mid-ranks of x, centred, into ranks. False when all are equal. */
static bool rg_centred_ranks(const double *x, int n, double *ranks)
{
    rg_ranked *order = malloc((size_t)n * sizeof *order);
    if (order == NULL)
        return false;
    for (int i = 0; i < n; i++)
        order[i] = (rg_ranked){x[i], i};
    qsort(order, (size_t)n, sizeof *order, rg_ranked_compare);
    bool differ = false;
    for (int i = 0, j; i < n; i = j) {
        for (j = i; j < n && order[j].value == order[i].value; j++) {
        }
        for (int k = i; k < j; k++)
            ranks[order[k].at] = 0.5 * (i + j - 1) - 0.5 * (n - 1);
        differ = differ || j < n;
    }
    free(order);
    return differ;
}

static double rg_correlation_at(const double *r, int n, int lag, double variance)
{
    double sum = 0;
    for (int i = 0; i + lag < n; i++)
        sum += r[i] * r[i + lag];
    return sum / variance + (double)lag / n / n + 1.0 / n; /* first-order bias of the mean */
}

double rg_stat_autocorrelation_time(const double *x, int n, double *scratch)
{
    if (n < 8 || !rg_centred_ranks(x, n, scratch))
        return 1;
    double variance = 0;
    for (int i = 0; i < n; i++)
        variance += scratch[i] * scratch[i];
    const double floor_of_noise = 1 / sqrt(n);
    double time = 1 + 2 * rg_correlation_at(scratch, n, 1, variance);
    for (int lag = 2; lag + 1 <= n / 2 && lag < 2000; lag += 2) {
        const double pair = rg_correlation_at(scratch, n, lag, variance) +
                            rg_correlation_at(scratch, n, lag + 1, variance);
        if (pair < floor_of_noise)
            break;
        time += 2 * pair;
    }
    if (time < 1)
        return 1;
    return time > n ? n : time;
}

/* One side --------------------------------------------------------------------------------------
 */

/* Ranks l and n-1-l (from 0) whose interval covers the median with at least the wanted probability,
 * for n independent samples; *coverage is the true one. */
static int rg_median_rank(int n, double wanted, double *coverage)
{
    int rank = 0;
    *coverage = 1 - 2 * gsl_cdf_binomial_P(0, 0.5, (unsigned)n);
    for (int l = 1; l < n / 2; l++) {
        const double c = 1 - 2 * gsl_cdf_binomial_P((unsigned)l, 0.5, (unsigned)n);
        if (c < wanted)
            break;
        rank = l;
        *coverage = c;
    }
    return rank;
}

/* Interval of the median of sorted y for n_eff independent samples out of n; *z is the normal
 * quantile of half its coverage. */
static void rg_median_interval(const double *y, int n, double effective, double wanted, double *low,
                               double *high, double *z)
{
    int m = (int)floor(effective);
    if (m > 4000)
        m = 4000; /* exact binomial up to here; the shape no longer changes */
    if (m < 2) {
        *low = y[0];
        *high = y[n - 1];
        *z = 0.6745;
        return;
    }
    double coverage;
    const int rank = rg_median_rank(m, wanted, &coverage);
    double half = 0.5 - (double)rank / (m - 1);
    if (effective > m)
        half *= sqrt(m / effective);
    *low = rg_stat_quantile_sorted(y, (size_t)n, 0.5 - half);
    *high = rg_stat_quantile_sorted(y, (size_t)n, 0.5 + half);
    *z = gsl_cdf_ugaussian_Pinv(0.5 + coverage / 2);
}

/* Two groups: the split of sorted y that explains most variance (Otsu). For a normal sample it
 * explains 2/pi = 64 %, for a uniform one 75 %; two groups must explain 85 %, hold a fifth of the
 * samples each and lie 1 % apart. */
static void rg_side_modes(const double *y, int n, rg_side *s)
{
    s->modes = 1;
    s->mode[0] = s->mode[1] = s->centre;
    if (n < 8)
        return;
    const int least = n / 5 > 2 ? n / 5 : 2;
    const double mean = rg_stat_mean(y, (size_t)n);
    double total = 0, left = 0, best = 0;
    int at = 0;
    for (int i = 0; i < n; i++)
        total += (y[i] - mean) * (y[i] - mean);
    for (int i = 0; i < n; i++) {
        left += y[i] - mean;
        const int k = i + 1;
        if (k < least || n - k < least)
            continue;
        const double between = left * left * n / ((double)k * (n - k));
        if (between > best) {
            best = between;
            at = k;
        }
    }
    if (at == 0 || !(total > 0) || best < 0.85 * total)
        return;
    const double a = rg_stat_quantile_sorted(y, (size_t)at, 0.5);
    const double b = rg_stat_quantile_sorted(y + at, (size_t)(n - at), 0.5);
    if (b - a < 0.01)
        return;
    s->modes = 2;
    s->mode[0] = exp(a);
    s->mode[1] = exp(b);
    s->slow_share = (double)(n - at) / n;
}

/* Median, interval and error of one process's samples y (in order; logarithms). */
static void rg_side_within(double *y, int n, double *scratch, rg_side *s)
{
    const double time = rg_stat_autocorrelation_time(y, n, scratch);
    s->effective = n / time;
    rg_stat_sort(y, (size_t)n);
    const double centre = rg_stat_quantile_sorted(y, (size_t)n, 0.5);
    double low, high, z;
    s->centre = exp(centre);
    rg_median_interval(y, n, s->effective, 0.80, &low, &high, &z);
    const double by_order = (high - low) / (2 * z);
    const double q1 = rg_stat_quantile_sorted(y, (size_t)n, 0.25);
    const double q3 = rg_stat_quantile_sorted(y, (size_t)n, 0.75);
    /* Normal samples: sd = IQR / 1.349, error of the median 1.2533 sd / sqrt(n). The larger of both
     * errors: order statistics of few samples are themselves noisy. */
    const double by_spread = 1.2533 / 1.349 * (q3 - q1) / sqrt(s->effective);
    s->error = fmax(by_order, by_spread);
    s->freedom = fmax(1, s->effective - 1);
    rg_median_interval(y, n, s->effective, 0.95, &low, &high, &z);
    s->low = exp(low);
    s->high = exp(high);
    s->q1 = exp(q1);
    s->q3 = exp(q3);
    s->least = exp(y[0]);
}

/* Three or more processes: their medians are the samples, so that noise between processes counts.
 * Error of the median of P normal values over that of their mean: 1.16 (3), 1.09 (4), 1.20 (5), up
 * to 1.2533; 1.2 is used throughout. */
static void rg_side_between(double *medians, int processes, double within, rg_side *s)
{
    const double deviation = rg_stat_deviation(medians, (size_t)processes);
    rg_stat_sort(medians, (size_t)processes);
    const double centre = rg_stat_quantile_sorted(medians, (size_t)processes, 0.5);
    s->between = deviation;
    s->centre = exp(centre);
    s->error = fmax(1.2 * deviation / sqrt(processes), within / sqrt(processes));
    s->freedom = processes - 1;
    const double half = gsl_cdf_tdist_Pinv(0.975, s->freedom) * s->error;
    s->low = exp(centre - half);
    s->high = exp(centre + half);
}

static rg_status rg_side_samples(rg_arena *arena, const rg_run_entry *e, rg_side *s, rg_err *err)
{
    const int n = e->sample_count;
    double *y = RG_NEW(arena, double, n, err);
    double *part = RG_NEW(arena, double, n, err);
    double *scratch = RG_NEW(arena, double, n, err);
    double *medians = RG_NEW(arena, double, n, err);
    if (y == NULL || part == NULL || scratch == NULL || medians == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < n; i++)
        y[i] = log(e->samples[i]);
    int processes = 0;
    double within = 0, effective = 0;
    for (int p = 0; p < e->processes; p++) {
        int k = 0;
        for (int i = 0; i < n; i++)
            if (e->process[i] == p)
                part[k++] = y[i];
        if (k == 0)
            continue;
        rg_side one = {0};
        rg_side_within(part, k, scratch, &one);
        medians[processes++] = log(one.centre);
        if (k > 1)
            within += one.error * one.error;
        effective += one.effective;
    }
    if (processes == 2 && n == 2)
        within = 0;
    rg_side_within(y, n, scratch, s); /* sorts y */
    if (processes > 1) {
        s->effective = effective;
        within = sqrt(within / processes);
        if (processes >= 3) {
            rg_side_between(medians, processes, within, s);
        } else {
            s->error = fmax(within / sqrt(2), fabs(medians[0] - medians[1]) / 2);
            s->centre = exp((medians[0] + medians[1]) / 2);
            s->freedom = fmax(1, effective - 2);
        }
    }
    s->processes = processes;
    s->count = n;
    s->dispersion = n >= 4 ? (s->q3 - s->q1) / s->centre : NAN;
    rg_side_modes(y, n, s);
    if (n == 1) {
        s->assumed = true;
        s->error = RG_GUARD_SINGLE;
        s->freedom = 1e6;
        s->q1 = s->q3 = s->least = s->dispersion = NAN;
    }
    return RG_OK;
}

/* Half the expected range of n normal values in deviations, for n from 2 (Blom's approximation of
 * the largest order statistic). */
static double rg_half_range(double n)
{
    return gsl_cdf_ugaussian_Pinv((n - 0.375) / (n + 0.25));
}

static void rg_side_summary(const rg_run_entry *e, rg_side *s)
{
    s->centre = isnan(e->median) ? e->mean : e->median;
    s->q1 = e->q1;
    s->q3 = e->q3;
    s->least = e->least;
    const bool counted = e->count >= 1;
    double n = counted ? e->count : 10; /* assumed: ten launches at least */
    double deviation = NAN;
    if (e->q3 > 0 && e->q1 > 0 && e->q3 >= e->q1)
        deviation = (e->q3 - e->q1) / 1.349;
    if (isnan(deviation) || isnan(e->median))
        deviation = fmax(isnan(deviation) ? 0 : deviation, e->deviation);
    if ((isnan(deviation) || deviation == 0) && e->most > e->least && n >= 2)
        deviation = (e->most - e->least) / (2 * rg_half_range(n));
    s->count = s->effective = n;
    if (isnan(deviation) || n < 2) {
        s->assumed = true;
        s->error = RG_GUARD_SINGLE;
        s->freedom = 1e6;
        s->low = s->centre * exp(-1.96 * RG_GUARD_SINGLE);
        s->high = s->centre * exp(1.96 * RG_GUARD_SINGLE);
        return;
    }
    const double relative = deviation / s->centre;
    s->dispersion = 1.349 * relative;
    if (e->processes >= 2) { /* a merged summary: its deviation is that between processes */
        s->between = relative;
        n = e->processes;
    }
    s->error = (isnan(e->median) ? 1 : 1.2533) * relative / sqrt(n);
    s->freedom = fmax(1, n - 1);
    const double half = gsl_cdf_tdist_Pinv(0.975, s->freedom) * s->error;
    s->low = s->centre * exp(-half);
    s->high = s->centre * exp(half);
}

rg_status rg_side_of(rg_arena *arena, const rg_run_entry *entry, rg_side *out, rg_err *err)
{
    *out = (rg_side){.between = NAN,
                     .dispersion = NAN,
                     .q1 = NAN,
                     .q3 = NAN,
                     .least = NAN,
                     .processes = entry->processes,
                     .modes = 1};
    if (entry->unusable != NULL)
        return RG_OK;
    if (entry->sample_count > 0)
        RG_TRY(rg_side_samples(arena, entry, out, err));
    else
        rg_side_summary(entry, out);
    out->usable = isfinite(out->centre) && out->centre > 0 && isfinite(out->error);
    if (out->modes < 2)
        out->mode[0] = out->mode[1] = out->centre;
    return RG_OK;
}

/* Two sides -------------------------------------------------------------------------------------
 */

rg_shift rg_side_shift(const rg_side *a, const rg_side *b, double between)
{
    double va = a->error * a->error, vb = b->error * b->error;
    rg_shift s = {.change = log(b->centre / a->centre)};
    const double denominator = va * va / a->freedom + vb * vb / b->freedom;
    double freedom = denominator > 0 ? (va + vb) * (va + vb) / denominator : 1e6;
    if (a->processes < 3 && !a->assumed)
        va += between * between / fmax(1, a->processes);
    if (b->processes < 3 && !b->assumed)
        vb += between * between / fmax(1, b->processes);
    s.error = sqrt(va + vb);
    s.freedom = freedom > 1e6 ? 1e6 : fmax(1, freedom);
    const double t = s.error > 0 ? s.change / s.error : (s.change > 0) - (s.change < 0);
    s.p_slower = s.error > 0 ? gsl_cdf_tdist_Q(t, s.freedom) : 0.5;
    s.p_faster = s.error > 0 ? gsl_cdf_tdist_P(t, s.freedom) : 0.5;
    const double half = gsl_cdf_tdist_Pinv(0.975, s.freedom) * s.error;
    s.low = s.change - half;
    s.high = s.change + half;
    return s;
}

void rg_stat_holm(const double *p, int m, double *adjusted, int *order)
{
    for (int i = 0; i < m; i++) { /* insertion sort: m is the number of kernels */
        int j = i;
        while (j > 0 && p[order[j - 1]] > p[i]) {
            order[j] = order[j - 1];
            j--;
        }
        order[j] = i;
    }
    double running = 0;
    for (int i = 0; i < m; i++) {
        const double value = fmin(1, p[order[i]] * (m - i));
        running = fmax(running, value);
        adjusted[order[i]] = running;
    }
}

double rg_guard_between(const rg_shift *shifts, int count, double *scratch)
{
    const double most = 0.007;
    int n = 0;
    for (int i = 0; i < count; i++)
        if (shifts[i].change < 0)
            scratch[n++] =
                fmax(0, shifts[i].change * shifts[i].change - shifts[i].error * shifts[i].error);
    if (n < 8)
        return RG_GUARD_BETWEEN;
    rg_stat_sort(scratch, (size_t)n);
    /* Median of the square of a half-normal value is 0.455 of its variance. Kernels more than three
     * deviations off have really changed; without them again, until none leaves. */
    double variance = 0;
    for (int round = 0; round < 20; round++) {
        variance = rg_stat_quantile_sorted(scratch, (size_t)n, 0.5) / 0.455 / 2;
        int kept = n;
        while (kept > 8 &&
               scratch[kept - 1] > 9 * 2 * fmax(variance, RG_GUARD_BETWEEN * RG_GUARD_BETWEEN))
            kept--;
        if (kept == n)
            break;
        n = kept;
    }
    return fmin(most, fmax(RG_GUARD_BETWEEN, sqrt(variance)));
}

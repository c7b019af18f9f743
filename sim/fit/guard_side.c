/* fit/guard_side.c: the median of one kernel with an honest error, and what its samples look like.
 */
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

double rg_stat_autocorrelation_time(const double *x, int n, double *scratch, double *lag1)
{
    *lag1 = NAN;
    if (n < 5 || !rg_centred_ranks(x, n, scratch))
        return 1;
    double variance = 0;
    for (int i = 0; i < n; i++)
        variance += scratch[i] * scratch[i];
    const double floor_of_noise = 1 / sqrt(n);
    *lag1 = rg_correlation_at(scratch, n, 1, variance);
    double time = 1 + 2 * *lag1;
    for (int lag = 2; lag + 1 <= n / 2 && lag < 2000; lag += 2) {
        const double pair = rg_correlation_at(scratch, n, lag, variance) +
                            rg_correlation_at(scratch, n, lag + 1, variance);
        if (pair < floor_of_noise)
            break;
        time += 2 * pair;
    }
    return time > n ? n : time;
}

/* One side --------------------------------------------------------------------------------------
 */

/* Rank l (from 0, with a fraction between order statistics) so that l and n-1-l hold the median of
 * n independent samples between them with the wanted probability; *coverage is the true one, less
 * than wanted where even the extremes cover less. */
static double rg_median_rank(int n, double wanted, double *coverage)
{
    *coverage = wanted;
    if (n > 200) /* the binomial is normal enough: half a width of z sqrt(n) / 2 */
        return 0.5 * (n - 1) - 0.5 * sqrt(n) * gsl_cdf_ugaussian_Pinv(0.5 + wanted / 2);
    double mass = ldexp(1, -n), tail = mass; /* P(X = l), P(X <= l) for X binomial(n, 1/2) */
    double before = 1 - 2 * tail;
    if (before <= wanted) {
        *coverage = before;
        return 0;
    }
    for (int l = 1; l < n / 2; l++) {
        mass *= (double)(n - l + 1) / l;
        tail += mass;
        const double c = 1 - 2 * tail;
        if (c < wanted)
            return l - 1 + (before - wanted) / (before - c);
        before = c;
    }
    *coverage = before;
    const int last = n / 2 - 1;
    return last;
}

/* Interval of the median of sorted y for effective independent samples out of n; *z is the normal
 * quantile of half its coverage. */
static void rg_median_interval(const double *y, int n, double effective, double wanted, double *low,
                               double *high, double *z)
{
    int m = (int)floor(effective);
    if (m < 2) {
        *low = y[0];
        *high = y[n - 1];
        *z = 0.6745;
        return;
    }
    double coverage;
    const double rank = rg_median_rank(m, wanted, &coverage);
    double half = 0.5 - rank / (m - 1);
    if (effective > m)
        half *= sqrt(m / effective);
    *low = rg_stat_quantile_sorted(y, (size_t)n, 0.5 - half);
    *high = rg_stat_quantile_sorted(y, (size_t)n, 0.5 + half);
    *z = gsl_cdf_ugaussian_Pinv(0.5 + coverage / 2);
}

/* Two groups: the split of sorted y that explains most variance (Otsu). How much one group explains
 * by chance falls with n; the limit is the 99 % point for exponential samples (a skewed group,
 * worse than a normal one) found by simulation at n = 8 ... 500, and at least 77 %, as a uniform
 * sample gives 75 %. Each group must hold a fifth of the samples, and they must lie 1 % apart. */
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
    const double needed = fmax(0.77, fmin(0.97, 0.66 + 0.845 * pow(n, -0.445)));
    if (at == 0 || !(total > 0) || best < needed * total)
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

/* A small group (two samples of few, else three and a twelfth) behind a gap in sorted y that is
 * wider than four deviations of the large group and 1 %. */
static void rg_side_outliers(const double *y, int n, rg_side *s)
{
    const int fewest = n < 30 ? 2 : n / 12 > 3 ? n / 12 : 3;
    int at = 0;
    double widest = 0.01;
    if (n < 8 || s->modes > 1)
        return;
    for (int k = fewest; k <= n - fewest; k++)
        if (y[k] - y[k - 1] > widest) {
            widest = y[k] - y[k - 1];
            at = k;
        }
    if (at == 0)
        return;
    const bool fast = at < n - at; /* the small group is the fast one */
    const double *large = fast ? y + at : y;
    const size_t count = (size_t)(fast ? n - at : at);
    const double spread =
        rg_stat_quantile_sorted(large, count, 0.75) - rg_stat_quantile_sorted(large, count, 0.25);
    if (widest < 4 * spread / 1.349)
        return;
    s->modes = 2;
    s->mode[0] = exp(rg_stat_quantile_sorted(y, (size_t)at, 0.5));
    s->mode[1] = exp(rg_stat_quantile_sorted(y + at, (size_t)(n - at), 0.5));
    s->slow_share = (double)(n - at) / n;
}

/* A stretch of the run at another level: successive samples, all more than 2.5 deviations off the
 * centre to one side. Chance gives three or four of them in a row hardly ever, a clock that changes
 * late or early in the run does. The level becomes a group, however small its share. */
static void rg_side_stretch(const double *y, int n, rg_side *s)
{
    const int needed = n < 60 ? 3 : 4;
    const double centre = log(s->centre), far = 2.5 * (log(s->q3) - log(s->q1)) / 1.349;
    if (n < 10 || !(far > 0) || s->modes > 1)
        return;
    for (int side = -1; side <= 1; side += 2)
        for (int i = 0, length = 0; i <= n; i++) {
            if (i < n && side * (y[i] - centre) > fmax(far, 0.01)) {
                length++;
                continue;
            }
            if (length >= needed) {
                double level = 0;
                for (int k = i - length; k < i; k++)
                    level += y[k] / length;
                s->modes = 2;
                s->mode[0] = exp(fmin(level, centre));
                s->mode[1] = exp(fmax(level, centre));
                s->slow_share = side > 0 ? (double)length / n : 1 - (double)length / n;
                return;
            }
            length = 0;
        }
}

/* Range of the medians of successive parts of y in order, where the parts differ: four parts by the
 * Kruskal-Wallis test at 0.5 %, or two halves of few samples without overlap; else 0. A level that
 * moves within a run is known no better than by that range. scratch holds n. */
static double rg_side_wander(const double *y, int n, double *scratch, double *roaming)
{
    *roaming = 0;
    if (n < 12 || !rg_centred_ranks(y, n, scratch))
        return 0;
    const int parts = n >= 16 ? 4 : 2;
    double h = 0, low = INFINITY, high = -INFINITY, ranks[4];
    for (int k = 0; k < parts; k++) {
        const int from = n * k / parts, to = n * (k + 1) / parts;
        double sum = 0;
        for (int i = from; i < to; i++)
            sum += scratch[i];
        ranks[k] = sum;
        h += sum * sum / (to - from);
    }
    h *= 12.0 / ((double)n * (n + 1));
    const int first = n / 2;
    const double separate = 0.5 * first * (n - first); /* rank sum of a half below all others */
    const bool differ = parts == 4 ? gsl_cdf_chisq_Q(h, 3) < 0.005 : fabs(ranks[0]) >= separate;
    for (int k = 0; k < parts; k++) {
        const int from = n * k / parts, to = n * (k + 1) / parts;
        memcpy(scratch, y + from, (size_t)(to - from) * sizeof *scratch);
        rg_stat_sort(scratch, (size_t)(to - from));
        const double median = rg_stat_quantile_sorted(scratch, (size_t)(to - from), 0.5);
        low = fmin(low, median);
        high = fmax(high, median);
    }
    *roaming = high - low;
    return differ ? high - low : 0;
}

void rg_side_unsettle(rg_side *s, double range)
{
    s->error = fmax(s->error, 0.7 * range);
    s->low = fmin(s->low, s->centre * exp(-0.7 * range));
    s->high = fmax(s->high, s->centre * exp(0.7 * range));
}

/* Median, interval and error of one process's samples y (in order; logarithms). */
static void rg_side_within(double *y, int n, double *scratch, rg_side *s)
{
    s->time = rg_stat_autocorrelation_time(y, n, scratch, &s->lag1);
    if (n < 8)
        s->time = 1; /* lag1 counts together with those of other kernels only */
    s->effective = n / fmax(1, s->time);
    s->wander = rg_side_wander(y, n, scratch, &s->roaming);
    rg_stat_sort(y, (size_t)n);
    const double centre = rg_stat_quantile_sorted(y, (size_t)n, 0.5);
    double low, high, z;
    s->centre = exp(centre);
    rg_median_interval(y, n, s->effective, 0.80, &low, &high, &z);
    const double by_order = (high - low) / (2 * z);
    const double q1 = rg_stat_quantile_sorted(y, (size_t)n, 0.25);
    const double q3 = rg_stat_quantile_sorted(y, (size_t)n, 0.75);
    /* Normal samples: sd = IQR / 1.349, error of the median 1.2533 sd / sqrt(n). The larger of both
     * errors: order statistics of few samples are themselves noisy. The larger is too large by at
     * least the divisor, for uniform, normal, exponential, Laplace and t2 samples (by simulation, n
     * = 5 ... 100).
     */
    const double by_spread = 1.2533 / 1.349 * (q3 - q1) / sqrt(s->effective);
    s->error = fmax(by_order, by_spread) / (1.08 + 1.2 / s->effective);
    if (n < 8)
        s->error *= 1.25; /* dependence between so few samples cannot be seen */
    s->freedom = fmax(1, s->effective - 1);
    rg_median_interval(y, n, s->effective, 0.95, &low, &high, &z);
    s->low = exp(low);
    s->high = exp(high);
    rg_side_unsettle(s, s->wander);
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
        s->wander = s->roaming = 0; /* the noise between processes holds it */
        s->lag1 = NAN;
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
    rg_side_outliers(y, n, s);
    for (int i = 0; i < n; i++)
        part[i] = log(e->samples[i]);
    if (processes == 1)
        rg_side_stretch(part, n, s);
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
    *out = (rg_side){.lag1 = NAN,
                     .time = 1,
                     .between = NAN,
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

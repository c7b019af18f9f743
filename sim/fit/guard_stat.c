/* fit/guard_stat.c: medians with honest errors, shifts, and control of false alarms. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard_stat.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_psi.h>
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
    if (n < 8 || !rg_centred_ranks(x, n, scratch))
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
    return n / 2 - 1;
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
    const double separate =
        0.5 * (n / 2) * (n - n / 2); /* rank sum of a half below all of the other */
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

/* A level that moved by so much is known no better than by 0.7 of it. */
static void rg_side_unsettle(rg_side *s, double range)
{
    s->error = fmax(s->error, 0.7 * range);
    s->low = fmin(s->low, s->centre * exp(-0.7 * range));
    s->high = fmax(s->high, s->centre * exp(0.7 * range));
}

/* Median, interval and error of one process's samples y (in order; logarithms). */
static void rg_side_within(double *y, int n, double *scratch, rg_side *s)
{
    s->time = rg_stat_autocorrelation_time(y, n, scratch, &s->lag1);
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

/* Many sides ------------------------------------------------------------------------------------
 */

/* x with psi'(x) = y, by Newton's method on 1/psi' (Smyth 2004, appendix). */
static double rg_trigamma_inverse(double y)
{
    if (y > 1e7)
        return 1 / sqrt(y);
    if (y < 1e-6)
        return 1 / y;
    double x = 0.5 + 1 / y;
    for (int i = 0; i < 50; i++) {
        const double tri = gsl_sf_psi_1(x);
        const double step = tri * (1 - tri / y) / gsl_sf_psi_n(2, x);
        x += step;
        if (-step / x < 1e-8)
            break;
    }
    return x;
}

/* The error is from order statistics. Its square scatters like a variance of about so many degrees
 * of freedom (by simulation, as above). */
static double rg_side_freedom(const rg_side *s)
{
    return s->processes >= 3 ? s->processes - 1 : fmax(1, 1.4 * sqrt(s->effective) - 1.5);
}

static double rg_side_units(const rg_side *s)
{
    return s->processes >= 3 ? s->processes : s->effective;
}

static bool rg_side_clean(const rg_side *s)
{
    return s->usable && !s->assumed && s->error > 0 && s->modes < 2 && s->wander == 0 &&
           rg_side_units(s) >= 2;
}

bool rg_stat_variance_prior(const double *variances, const double *freedoms, int n,
                            double *variance, double *freedom)
{
    double sum = 0, squares = 0, expected = 0;
    if (n < 5)
        return false;
    for (int i = 0; i < n; i++) {
        const double half = freedoms[i] / 2;
        sum += log(variances[i]) - gsl_sf_psi(half) + log(half);
        expected += gsl_sf_psi_1(half);
    }
    const double mean = sum / n;
    for (int i = 0; i < n; i++) {
        const double half = freedoms[i] / 2;
        const double e = log(variances[i]) - gsl_sf_psi(half) + log(half) - mean;
        squares += e * e;
    }
    const double excess = squares / (n - 1) - expected / n;
    if (excess > 0) {
        const double half = rg_trigamma_inverse(excess);
        *freedom = fmin(2 * half, 1000);
        *variance = exp(mean + gsl_sf_psi(half) - log(half));
    } else {
        *freedom = 1000;
        *variance = exp(mean);
    }
    return true;
}

/* Prior variance of one sample and its degrees of freedom, from the clean sides; false for few.
 * scratch holds 2 count. */
static bool rg_sides_prior(rg_side *const *sides, const bool *member, int count, double *scratch,
                           double *variance, double *freedom)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        if (member[i] && rg_side_clean(sides[i])) {
            scratch[n] = sides[i]->error * sides[i]->error * rg_side_units(sides[i]);
            scratch[count + n++] = rg_side_freedom(sides[i]);
        }
    return rg_stat_variance_prior(scratch, scratch + count, n, variance, freedom);
}

/* Where a side's own correlation is within chance (2.6 / sqrt(n)), the mean time of all sides. */
static void rg_sides_correlation(rg_side *const *sides, int count)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < count; i++)
        if (!isnan(sides[i]->lag1)) {
            sum += sides[i]->time;
            n++;
        }
    if (n < 5)
        return;
    const double common = fmax(1, sum / n);
    for (int i = 0; i < count; i++) {
        rg_side *s = sides[i];
        if (isnan(s->lag1) || s->lag1 > 2.6 / sqrt(s->count))
            continue;
        const double scale = sqrt(common / fmax(1, s->time));
        s->error *= scale;
        s->low = s->centre * pow(s->low / s->centre, scale);
        s->high = s->centre * pow(s->high / s->centre, scale);
        s->effective = s->count / common;
        s->freedom = fmax(1, s->effective - 1);
    }
}

static void rg_sides_unsettle(rg_side *const *sides, int count)
{
    int wandering = 0;
    for (int i = 0; i < count; i++)
        wandering += sides[i]->wander > 0;
    if (wandering < 3 || wandering <= 0.05 * count)
        return;
    for (int i = 0; i < count; i++) {
        sides[i]->wander = sides[i]->roaming;
        rg_side_unsettle(sides[i], sides[i]->roaming);
    }
}

static void rg_sides_squeeze(rg_side *const *sides, const bool *member, int count, double *scratch)
{
    double variance, freedom;
    if (!rg_sides_prior(sides, member, count, scratch, &variance, &freedom))
        return;
    for (int i = 0; i < count; i++) {
        rg_side *s = sides[i];
        if (!member[i] || !s->usable || s->assumed)
            continue;
        const double d = rg_side_freedom(s), units = rg_side_units(s);
        const double own = s->error * s->error * units;
        const double squeezed = (freedom * variance + d * own) / (freedom + d);
        if (!rg_side_clean(s) && squeezed < own)
            continue;
        s->error = sqrt(squeezed / units);
        s->freedom = freedom + d;
        if (s->processes >= 3) {
            const double half = gsl_cdf_tdist_Pinv(0.975, s->freedom) * s->error;
            s->low = s->centre * exp(-half);
            s->high = s->centre * exp(half);
        }
    }
}

rg_status rg_sides_moderate(rg_arena *arena, rg_side *const *sides, int count, rg_err *err)
{
    bool *member = RG_NEW(arena, bool, count, err);
    double *scratch = RG_NEW(arena, double, 2 * count, err);
    if (member == NULL || scratch == NULL)
        return RG_ERR_LIMIT;
    rg_sides_correlation(sides, count);
    rg_sides_unsettle(sides, count);
    for (int repeated = 0; repeated < 2; repeated++) {
        for (int i = 0; i < count; i++)
            member[i] = (sides[i]->processes >= 3) == (repeated == 1);
        rg_sides_squeeze(sides, member, count, scratch);
    }
    return RG_OK;
}

/* Two sides -------------------------------------------------------------------------------------
 */

rg_shift rg_side_shift(const rg_side *a, const rg_side *b, double between, double between_freedom)
{
    double va = a->error * a->error, vb = b->error * b->error;
    rg_shift s = {.change = log(b->centre / a->centre)};
    double denominator = va * va / a->freedom + vb * vb / b->freedom;
    const rg_side *sides[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const rg_side *one = sides[i], *other = sides[1 - i];
        if (one->processes >= 3 || one->assumed)
            continue;
        double extra = between * between, freedom = between_freedom;
        if (other->processes >= 3) { /* the other side knows what processes of this kernel do */
            const double seen = other->error * sqrt(other->processes) / 1.2;
            extra = seen * seen;
            freedom = other->freedom;
        }
        extra /= fmax(1, one->processes);
        denominator += extra * extra / freedom;
        va += extra;
    }
    const double freedom = denominator > 0 ? (va + vb) * (va + vb) / denominator : 1e6;
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

double rg_guard_single(const double *changes, int count, double *scratch)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        if (changes[i] < 0)
            scratch[n++] = -changes[i];
    if (n < 10)
        return RG_GUARD_SINGLE;
    rg_stat_sort(scratch, (size_t)n);
    const double both = rg_stat_quantile_sorted(scratch, (size_t)n, 0.9) / 1.645;
    return fmin(RG_GUARD_SINGLE, fmax(0.01, 1.3 * both / sqrt(2)));
}

double rg_guard_between(const rg_shift *shifts, int count, double *freedom, double *scratch)
{
    const double least = RG_GUARD_BETWEEN * RG_GUARD_BETWEEN, most = 0.015;
    double error = 0;
    int n = 0;
    for (int i = 0; i < count; i++)
        if (shifts[i].change < 0) {
            scratch[n++] = shifts[i].change * shifts[i].change;
            error += shifts[i].error * shifts[i].error;
        }
    *freedom = 1e6; /* an assumption */
    if (n < 8)
        return RG_GUARD_BETWEEN;
    error /= n;
    rg_stat_sort(scratch, (size_t)n);
    /* The median of the square of a half-normal value is 0.455 of its variance, here that of both
     * sides. Kernels more than three deviations off have really changed; without them again, until
     * none leaves.
     */
    double variance = least;
    for (int round = 0; round < 20; round++) {
        const double total = rg_stat_quantile_sorted(scratch, (size_t)n, 0.5) / 0.455;
        variance = fmax(least, (total - error) / 2);
        int kept = n;
        while (kept > 8 && scratch[kept - 1] > 9 * (2 * variance + error))
            kept--;
        if (kept == n)
            break;
        n = kept;
    }
    /* 1.5: the estimate from some tens of kernels is itself uncertain by a fifth or so. */
    const double deviation = variance > least ? 1.5 * sqrt(variance) : sqrt(least);
    if (variance > least)
        *freedom = n;
    return fmin(most, deviation);
}

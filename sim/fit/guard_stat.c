/* fit/guard_stat.c: what many kernels know together, shifts between two sides, false alarms. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard_stat.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_psi.h>
#include <math.h>

#include "core/stat.h"

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

/* Autocorrelation time that all sides show together, at least 1: the mean of theirs, or that of an
 * autoregression with their mean correlation, (1 + r) / (1 - r), if r stands out. The correlation
 * of a short series is low by about (1 + 4 r) / n (Kendall, "Note on bias in the estimation of
 * autocorrelation", Biometrika 41, 1954); 1 / n of it is already in lag1. */
static double rg_sides_common_time(rg_side *const *sides, int count)
{
    double times = 0, correlation = 0, variance = 0;
    int n = 0;
    for (int i = 0; i < count; i++) {
        const rg_side *s = sides[i];
        if (isnan(s->lag1))
            continue;
        const double stretch = 1 / fmax(0.33, 1 - 4 / s->count);
        times += s->time;
        correlation += s->lag1 * stretch;
        variance += stretch * stretch / s->count;
        n++;
    }
    if (n < 5)
        return 0;
    correlation = fmin(0.95, correlation / n);
    double time = fmax(1, times / n);
    if (correlation > 2.6 * sqrt(variance) / n)
        time = fmax(time, (1 + correlation) / (1 - correlation));
    return time;
}

/* Where a side's own correlation is within chance (2.6 / sqrt(n)), the time of all sides. */
static void rg_sides_correlation(rg_side *const *sides, int count)
{
    const double common = rg_sides_common_time(sides, count);
    if (common < 1)
        return;
    for (int i = 0; i < count; i++) {
        rg_side *s = sides[i];
        const bool own = s->lag1 > 2.6 / sqrt(s->count) && s->time > common;
        if (isnan(s->lag1) || own)
            continue;
        const double time = fmin(common, s->count);
        const double scale = sqrt(time / fmax(1, s->time));
        s->error *= scale;
        s->low = s->centre * pow(s->low / s->centre, scale);
        s->high = s->centre * pow(s->high / s->centre, scale);
        s->effective = s->count / time;
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
        variance = fmax(least, (total - 0.7 * error) / 2); /* stated errors are the larger side */
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

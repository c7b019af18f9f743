// SPDX-License-Identifier: Apache-2.0
#include "core/stat.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

void rg_stat_sort(double *x, size_t n)
{
    gsl_sort(x, 1, n);
}

double rg_stat_quantile_sorted(const double *x, size_t n, double q)
{
    assert(n > 0);
    return gsl_stats_quantile_from_sorted_data(x, 1, n, q);
}

double rg_stat_mean(const double *x, size_t n)
{
    assert(n > 0);
    return gsl_stats_mean(x, 1, n);
}

double rg_stat_deviation(const double *x, size_t n)
{
    assert(n > 0);
    return n == 1 ? 0.0 : gsl_stats_sd(x, 1, n);
}

rg_summary rg_stat_summary(double *x, size_t n)
{
    const double mean = rg_stat_mean(x, n), deviation = rg_stat_deviation(x, n);
    rg_stat_sort(x, n);
    return (rg_summary){.count = n,
                        .mean = mean,
                        .deviation = deviation,
                        .least = x[0],
                        .p50 = rg_stat_quantile_sorted(x, n, 0.50),
                        .p90 = rg_stat_quantile_sorted(x, n, 0.90),
                        .p95 = rg_stat_quantile_sorted(x, n, 0.95),
                        .p99 = rg_stat_quantile_sorted(x, n, 0.99),
                        .most = x[n - 1]};
}

rg_error_summary rg_stat_errors(const double *predicted, const double *measured, size_t n,
                                double *scratch)
{
    assert(n > 0);
    rg_error_summary out = {.count = n};
    for (size_t i = 0; i < n; i++)
        scratch[i] = predicted[i] / measured[i] - 1.0;
    rg_stat_sort(scratch, n);
    out.bias = rg_stat_quantile_sorted(scratch, n, 0.5);
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(predicted[i] / measured[i] - 1.0);
    out.mean_ape = rg_stat_mean(scratch, n);
    rg_stat_sort(scratch, n);
    out.median_ape = rg_stat_quantile_sorted(scratch, n, 0.5);
    out.p90_ape = rg_stat_quantile_sorted(scratch, n, 0.9);
    return out;
}

double rg_stat_mean_half_width(const double *x, size_t n, double confidence)
{
    assert(n > 1 && confidence > 0.0 && confidence < 1.0);
    const double t = gsl_cdf_tdist_Pinv(0.5 + confidence / 2.0, (double)(n - 1));
    return t * rg_stat_deviation(x, n) / sqrt((double)n);
}

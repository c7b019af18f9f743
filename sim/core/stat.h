/* core/stat.h: order statistics and error measures, in fixed summing order.
 *
 * Reads core/err.h. Quantiles are type 7 (linear, as in R and numpy). Empty samples are refused by
 * assertion: callers name them before they get here.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_STAT_H
#define RG_CORE_STAT_H

#include <stddef.h>

/** Sort ascending in place; NaN must not be present. */
void rg_stat_sort(double *x, size_t n);
/** Quantile of sorted x, q in [0, 1]. */
double rg_stat_quantile_sorted(const double *x, size_t n, double q);
double rg_stat_mean(const double *x, size_t n);
/** Sample deviation (n - 1); 0 for n = 1. */
double rg_stat_deviation(const double *x, size_t n);

typedef struct rg_summary {
    size_t count;
    double mean, deviation, least, p50, p90, p95, p99, most;
} rg_summary;
/** Summary; sorts x in place. */
rg_summary rg_stat_summary(double *x, size_t n);

/** Predicted against measured, n pairs, measured > 0. bias is the median of predicted/measured - 1
 * so that one wild row does not move it. */
typedef struct rg_error_summary {
    size_t count;
    double mean_ape, median_ape, p90_ape, bias;
} rg_error_summary;
rg_error_summary rg_stat_errors(const double *predicted, const double *measured, size_t n,
                                double *scratch /* [n] */);

/** Half width of the two-sided confidence interval of a mean by Student's t. */
double rg_stat_mean_half_width(const double *x, size_t n, double confidence);

#endif

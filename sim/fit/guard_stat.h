/* fit/guard_stat.h: what one side of a comparison knows, and whether two sides differ.
 *
 * Reads core, trace/run.h. A side is the median of a kernel's costs with a standard error that
 * counts dependence between samples and, from three processes on, the noise between processes.
 * Everything is on the logarithm of the cost, so changes are ratios and one slow outlier weighs as
 * one sample.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_GUARD_STAT_H
#define RG_FIT_GUARD_STAT_H

#include <stdbool.h>

#include "trace/run.h"

/** One side. Costs are seconds (or 1/rate); the rest is relative (0.01 = 1 %). */
typedef struct rg_side {
    bool usable;
    double centre;        /* median */
    double low, high;     /* about 95 % interval of the median, from order statistics */
    double q1, q3, least; /* NaN when not known */
    double error;         /* standard error of ln centre, within and between processes as known */
    double freedom;       /* degrees of freedom behind error */
    double count;         /* samples */
    double time;          /* autocorrelation time, in samples */
    double effective;     /* samples / autocorrelation time */
    double processes;     /* count */
    double between;       /* deviation between processes, NaN under 3 processes */
    double dispersion;    /* (q3 - q1) / centre; NaN when not known */
    double wander;        /* range of the medians of successive parts; 0 where noise explains it */
    double roaming;       /* that range whether noise explains it or not */
    double lag1;          /* correlation of successive samples; NaN when not known */
    bool assumed;         /* the file gives no spread; error is the assumed one */
    int modes;            /* 1, or 2 when the samples fall into two groups */
    double mode[2];       /* median of each group, the faster first */
    double slow_share;    /* share of samples in the slower group */
} rg_side;

/** Noise between processes that is assumed where fewer than three processes were run: 0.2 %.
 * assumed: run-to-run medians of long GPU kernels on one device at one clock vary by a few tenths
 * of a per cent; a repeat of three or more processes replaces it. */
#define RG_GUARD_BETWEEN 0.002
/** Noise of a single value of unknown spread (one mean from a log): 5 %.
 * assumed: a mean over tens of launches; give repeats to replace it. */
#define RG_GUARD_SINGLE 0.05

/** Summary of an entry. Scratch comes from the arena. usable is false when the entry has no number.
 */
rg_status rg_side_of(rg_arena *arena, const rg_run_entry *entry, rg_side *out, rg_err *err);

/** Raise a side's error and interval to what a level known no better than by 0.7 of range allows.
 */
void rg_side_unsettle(rg_side *side, double range);

/** Integrated autocorrelation time of x in order of measurement, from the initial positive sequence
 * of the ranks' autocorrelations (Geyer, "Practical Markov chain Monte Carlo", Statistical Science
 * 7(4), 1992, section 3.3), ended where a pair falls under the noise of the estimate. It is not cut
 * at 1, so that its mean over many kernels is fair; 1 for fewer than 5 samples. lag1 gets the
 * correlation of successive samples. scratch holds n. */
double rg_stat_autocorrelation_time(const double *x, int n, double *scratch, double *lag1);

/** Kernels measured in one run share much of their noise; use that, where there are 5 or more.
 * First the autocorrelation time: where a kernel's own is not significant, that of all together
 * stands. Then wandering: where more than 5 % of the kernels (and 3) wander, each is taken to
 * wander by what it shows. Then the errors are squeezed towards what the others show, the more the
 * more alike they are (Smyth, "Linear models and empirical Bayes methods for assessing differential
 * expression", Statistical Applications in Genetics and Molecular Biology 3(1), 2004, sections 4
 * and 6.2), with the degrees of freedom that this gains. Sides that wander, have two groups or an
 * assumed error give nothing to the others and are never made surer. */
rg_status rg_sides_moderate(rg_arena *arena, rg_side *const *sides, int count, rg_err *err);

/** Prior variance and its degrees of freedom behind n variances with their own degrees of freedom,
 * by the moments of their logarithms (Smyth 2004, section 6.2). False for fewer than 5. */
bool rg_stat_variance_prior(const double *variances, const double *freedoms, int n,
                            double *variance, double *freedom);

/** One-sided tests that b is slower, or faster, than a: t = ln(b/a) / sqrt(ea^2 + eb^2 + between^2
 * for each side of fewer than three processes), with Welch's degrees of freedom. */
typedef struct rg_shift {
    double change;  /* ln(b/a) */
    double error;   /* of change */
    double freedom; /* degrees of freedom, count */
    double p_slower, p_faster;
    double low, high; /* 95 % interval of change */
} rg_shift;
rg_shift rg_side_shift(const rg_side *a, const rg_side *b, double between, double between_freedom);

/** Holm's step-down: adjusted[i] from p[i], m of them ("A simple sequentially rejective multiple
 * test procedure", Scandinavian Journal of Statistics 6, 1979). order needs m ints of scratch. */
void rg_stat_holm(const double *p, int m, double *adjusted, int *order);

/** Noise of single values, from a pair of runs in which most kernels did not change: the 90 % point
 * of the shifts to the fast side of zero, over that of a half-normal value (1.645), times 1.3 for
 * its own error. At least 1 %, at most RG_GUARD_SINGLE, which also stands where fewer than 10
 * shifts tell. */
double rg_guard_single(const double *changes, int count, double *scratch /* [count] */);

/** Deviation between processes that the unchanged kernels of a pair of runs show: from the shifts
 * to the fast side of zero, so that slowed kernels cannot hide themselves, with kernels that
 * clearly changed cut off. At least RG_GUARD_BETWEEN, at most 1.5 %; the least value when fewer
 * than 8 shifts tell. */
double rg_guard_between(const rg_shift *shifts, int count, double *freedom,
                        double *scratch /* [count] */);

#endif

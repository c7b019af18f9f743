/* fit/lsq.h: bounded, robust non-linear least squares on the logarithm of predicted over measured.
 *
 * Reads core. GSL's trust-region solver over transformed parameters, reweighted so that wild rows
 * count less, then a coordinate search, because a time that is a minimum over tiles has kinks.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_LSQ_H
#define RG_FIT_LSQ_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"

enum { RG_LSQ_MAX_PARAMETERS = 64 };

/** One parameter: where the search starts and the range in which it has a meaning. */
typedef struct rg_lsq_parameter {
    const char *name;
    double start, lower, upper;
    double spread; /* prior: deviation of ln(value) about start; 0 = none */
} rg_lsq_parameter;

/** Fill residual[rows] = ln(predicted / measured) for the parameter values x. Same x, same
 * residuals; may be called thousands of times. */
typedef void (*rg_lsq_model)(void *context, const double *x, double *residual);

typedef struct rg_lsq_problem {
    int parameters;
    const rg_lsq_parameter *parameter;
    size_t rows;
    rg_lsq_model model;
    void *context;
    int rounds;            /* of reweighting; 0: the default, 6 */
    int coordinate_passes; /* of the search after it; negative: the default, 3 */
} rg_lsq_problem;

typedef enum rg_lsq_note {
    RG_LSQ_FINE,
    RG_LSQ_AT_LOWER, /* within 1 % of the range of its bound: not a measurement of it */
    RG_LSQ_AT_UPPER,
    RG_LSQ_UNIDENTIFIED, /* the rows hardly change when it does */
    RG_LSQ_ENTANGLED,    /* it and `partner` change the rows in the same way */
} rg_lsq_note;

typedef struct rg_lsq_estimate {
    double value;
    double low, high;   /* 95 % interval from the linearised problem, clipped to the range */
    double sensitivity; /* root mean square of d residual / d ln(value) */
    rg_lsq_note note;
    int partner; /* RG_LSQ_ENTANGLED: index of the other, else -1 */
} rg_lsq_estimate;

typedef struct rg_lsq_result {
    rg_lsq_estimate estimate[RG_LSQ_MAX_PARAMETERS];
    double scale;     /* robust deviation of the residuals (1.4826 MAD) */
    double objective; /* mean robust loss at the end */
    int evaluations;
} rg_lsq_result;

/** Fit. A prior counts as one row of deviation 0.1, so data outweigh it wherever they speak.
 * Errors: RG_ERR_MODEL when rows < parameters, or a start value lies outside its range, or the
 * residuals are not finite at the start. */
rg_status rg_lsq_fit(rg_arena *arena, const rg_lsq_problem *problem, rg_lsq_result *out,
                     rg_err *err);

/** Derivative of each residual by ln(parameter) at x, central differences: out[rows][parameters].
 * What `--few` ranks shapes by. */
void rg_lsq_jacobian(const rg_lsq_problem *problem, const double *x, double *scratch /* [2 rows] */,
                     double *out);

/** Rows that identify the parameters best: greedy D-optimal choice over a Jacobian
 * [rows][parameters], count of them into chosen. Rows of the same group (>= 0) are taken once. */
rg_status rg_lsq_choose(rg_arena *arena, const double *jacobian, size_t rows, int parameters,
                        const int *group, int count, int *chosen, rg_err *err);

#endif

/* fit/compare.h: predicted against measured: errors by group, worst rows, limits.
 *
 * Reads fit/calibrate.h. Rows that were fitted, rows that were kept apart, and rows of a device
 * whose constants come from another one are never mixed; nor are rows served from L2 and from
 * memory.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_COMPARE_H
#define RG_FIT_COMPARE_H

#include "fit/calibrate.h"

typedef enum rg_provenance {
    RG_IN_SAMPLE,     /* its shape was on the fitted side of the split */
    RG_OUT_OF_SAMPLE, /* own constants, shape on the other side */
    RG_CARRIED_OVER,  /* constants of another device, physical guesses, or none at all */
    RG_PROVENANCE_COUNT,
} rg_provenance;
const char *rg_provenance_name(rg_provenance sample);

typedef struct rg_compared_row {
    const rg_measured_row *row;
    double predicted; /* s; NaN when skipped as unsupported */
    rg_provenance sample;
} rg_compared_row;

typedef struct rg_compared_group {
    const char *dtype, *size_class, *residency; /* NULL in a summary: all of them */
    rg_provenance sample;
    rg_error_summary errors;
} rg_compared_group;

typedef struct rg_comparison {
    const rg_measured_table *table;
    rg_compared_row *rows;     /* [table->count] */
    rg_compared_group *groups; /* by dtype, size class, residency, sample */
    int group_count;
    rg_compared_group *summary; /* by dtype and sample; rows served from L2 left out */
    int summary_count;
    long skipped[RG_SKIP_COUNT];
    double *scratch; /* [3][table->count] */
} rg_comparison;

/** Predict every row and sum up. The split is the one that the constants were fitted with. */
rg_status rg_compare(rg_arena *arena, const rg_predictor *predictor, const rg_measured_table *table,
                     const rg_split *split, rg_comparison *out, rg_err *err);

/** Errors over all rows for which each of dtype, size_class, residency, sample name that is not
 * NULL is equal; count 0 when there are none. */
rg_status rg_compare_pool(rg_arena *arena, const rg_comparison *comparison, const char *dtype,
                          const char *size_class, const char *residency, const char *sample,
                          rg_error_summary *out, rg_err *err);

/** The same over all sizes, rows served from L2 left out. */
rg_status rg_compare_overall(rg_arena *arena, const rg_comparison *comparison, const char *dtype,
                             const char *sample, rg_error_summary *out, rg_err *err);

/** Errors of one group of constants (rg_predict_group), "all" rows first, then by size class; rows
 * served from L2 left out; *count 0 when it has no rows. */
rg_status rg_compare_classes(rg_arena *arena, const rg_comparison *comparison, int group,
                             rg_class_errors *out, int capacity, int *count, rg_err *err);

/** Rows with the largest |ln(predicted / measured)|, worst first; at most count into out. */
rg_status rg_compare_worst(rg_arena *arena, const rg_comparison *comparison, int count,
                           const rg_compared_row **out, int *found, rg_err *err);

/** One limit that was passed, or that no row speaks of. */
typedef struct rg_limit_breach {
    const char *op, *dtype, *size_class, *residency, *sample; /* of the limit; NULL: any */
    const char *measure;                                      /* "median_ape", ... */
    double limit, value;                                      /* value NaN: no such rows */
} rg_limit_breach;

/** Hold a comparison against a YAML list: limits: [{op, dtype, size_class, residency, sample,
 * median_ape, p90_ape, mean_ape, bias}], selectors and measures each optional. Limits on another op
 * are passed over. Errors: RG_ERR_INPUT with its place. */
rg_status rg_compare_limits(rg_arena *arena, const rg_comparison *comparison, const char *path,
                            rg_limit_breach *out, int capacity, int *count, rg_err *err);

#endif

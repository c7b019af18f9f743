/* fit/calibrate.h: constants of the models from measured rows, with what they are worth.
 *
 * Reads fit/predict.h, fit/lsq.h. Rows are split before anything is fitted, by shape; constants
 * come from the one part, errors are given for both.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_CALIBRATE_H
#define RG_FIT_CALIBRATE_H

#include "core/stat.h"
#include "fit/predict.h"

/** Which rows are fitted. A shape is drawn by its hash and the seed, whatever its type. */
typedef struct rg_split {
    double train_share; /* random split; 1: all rows are fitted, none tested */
    uint64_t seed;
    const char *fit_rows, *test_rows; /* regimes: "m<=256", "m>1024"; NULL: random split */
} rg_split;

/** Parse "random", "random:0.7" or "regime:m<=256/m>1024". RG_ERR_USAGE. */
rg_status rg_split_parse(rg_arena *arena, const char *text, uint64_t seed, rg_split *out,
                         rg_err *err);
/** Whether a row is fitted, whether it is tested. RG_ERR_USAGE when a regime names no column. */
rg_status rg_split_row(const rg_split *split, const rg_measured_table *table,
                       const rg_measured_row *row, bool *fitted, bool *tested, rg_err *err);

typedef struct rg_calibration_options {
    rg_split split;
    const char *const *groups; /* to fit, by key; NULL-terminated, empty: all that have rows */
    const char *const *hold;   /* constants to leave alone, by name; NULL-terminated */
    bool lean_on_prior; /* keep at its prior what the rows cannot identify, instead of refusing */
    int few;            /* 0, or so many shapes chosen as the most informative of the fitted ones */
    bool choose_only;   /* with few: name the shapes, fit nothing; times are not looked at */
    size_t most_rows;   /* 0, or so many rows at most in a fit, drawn by hash */
} rg_calibration_options;

enum { RG_MOST_CLASSES = 8 };

/** Errors of the rows of one size class that were not fitted. */
typedef struct rg_class_errors {
    const char *name;
    rg_error_summary errors;
} rg_class_errors;

typedef struct rg_calibration {
    int group; /* of rg_predict_group */
    int parameters;
    rg_lsq_parameter parameter[RG_LSQ_MAX_PARAMETERS];
    rg_lsq_estimate estimate[RG_LSQ_MAX_PARAMETERS];
    bool held[RG_LSQ_MAX_PARAMETERS]; /* not fitted: no row depends on it, or held by the caller */
    double scale;                     /* robust deviation of the log errors */
    size_t fitted_rows, tested_rows;
    rg_error_summary fitted, tested; /* rows served from L2 left out; count 0: no such rows */
    double least_work, most_work;    /* of one operator: flop, byte where there is no flop */
    rg_class_errors classes[RG_MOST_CLASSES]; /* of the tested rows */
    int class_count;
    const rg_measured_row **chosen; /* [chosen_count] shapes of a few-shot fit */
    int chosen_count;
} rg_calibration;

/** Fit every group that the table has rows of; the predictor is left at the new constants. At most
 * capacity groups into out. Errors: RG_ERR_MODEL naming the constant that the rows cannot identify
 * (not with lean_on_prior), or when a group has too few rows. */
rg_status rg_calibrate(rg_arena *arena, rg_predictor *predictor, const rg_measured_table *table,
                       const rg_calibration_options *options, rg_calibration *out, int capacity,
                       int *count, rg_err *err);

/** "at its lower bound", "not identified", ... */
const char *rg_lsq_note_text(rg_lsq_note note);

#endif

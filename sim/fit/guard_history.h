/* fit/guard_history.h: runs over time in a SQLite file; changes and slow drift across them.
 *
 * Reads fit/guard.h. A run against the one before it cannot see ten steps of 1 %: each is within
 * the tolerance. The history compares the present level with the best one ever held, so it can.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_GUARD_HISTORY_H
#define RG_FIT_GUARD_HISTORY_H

#include "fit/guard.h"

typedef struct rg_history rg_history;

/** Open, or make, a history. The handle is released with the arena. Errors: RG_ERR_IO, RG_ERR_INPUT
 * when the file is no history or of another version. */
rg_status rg_history_open(rg_arena *arena, const char *path, rg_history **out, rg_err *err);
/** Add a run with its sides; label is the commit or any name. digest tells runs apart: a digest
 * that is there already adds nothing and sets *known. All or nothing. */
rg_status rg_history_add(rg_history *history, const rg_run *run, const rg_baseline *sides,
                         const char *label, const char *digest, bool *known, rg_err *err);
/** From here on the present level is the reference for kernels that fit the pattern. */
rg_status rg_history_accept(rg_history *history, const char *pattern, rg_err *err);

typedef struct rg_history_point {
    int64_t run;
    const char *label, *digest;
    double centre, error, clock_hz, processes;
    bool throttled; /* kept for the picture, left out of the analysis */
} rg_history_point;

enum { RG_HISTORY_CHANGES = 8, RG_HISTORY_WINDOW = 3 };

typedef struct rg_history_series {
    const char *kernel, *problem, *dtype, *rate_unit;
    rg_history_point *points; /* oldest first, since the last acceptance */
    int count;
    /* filled by rg_history_analyse: */
    int used;     /* points that were not throttled */
    double noise; /* deviation of a point about a smooth course, relative */
    int change_count;
    struct {
        int at;                    /* first point of the new level */
        double ratio;              /* new level / old level */
    } changes[RG_HISTORY_CHANGES]; /* largest steps that stand out of the noise, oldest first */
    double drift;   /* present level / best level - 1; NaN with fewer than 6 points */
    double p_drift; /* of a drift this large without one, for the windows looked at */
    int best_at;    /* first point of the best window */
    bool drifted;
} rg_history_series;

/** All series of a device and a tool ("" for any), sorted by kernel, problem and type. */
rg_status rg_history_load(rg_arena *arena, rg_history *history, const char *device,
                          const char *tool, rg_history_series **out, int *count, rg_err *err);

/** Change points and drift. Let y be ln of the medians (of the cycles where every clock is known).
 * The noise s is the spread of successive differences about their median, over sqrt 2, at least the
 * stated errors. Drift is median(last 3) - least median of 3 successive earlier points, against s
 * sqrt(2 x 0.449) (variance of a median of three), Student's t with (n - 1)/2 degrees of freedom
 * and what the other series add (their noises are squeezed together as those of kernels are), times
 * the number of windows, Holm over the series; it must exceed tolerance as well. Change points are
 * found by binary segmentation (Scott and Knott, Biometrics 30(3), 1974; Vostrikova 1981) where a
 * step exceeds tolerance and 4 standard errors. */
rg_status rg_history_analyse(rg_arena *arena, rg_history_series *series, int count,
                             double tolerance, double alpha, rg_err *err);

/** A baseline from the last five points of each series before point `skip_digest` (may be NULL):
 * the median, with the deviation between runs as noise. */
rg_status rg_history_baseline(rg_arena *arena, const rg_history_series *series, int count,
                              const char *skip_digest, const rg_run *like, rg_baseline **out,
                              rg_err *err);

#endif

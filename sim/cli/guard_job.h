/* cli/guard_job.h: what `ridge guard` works on. Private to cmd_guard.c and guard_print.c.
 *
 * Reads cli/args.h, fit/guard.h, fit/guard_history.h, report/report.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_GUARD_JOB_H
#define RG_CLI_GUARD_JOB_H

#include "cli/args.h"
#include "fit/guard.h"
#include "fit/guard_history.h"

typedef struct rg_guard_job {
    rg_arena *arena;
    const rg_args *args;
    rg_err *err;
    rg_report *report;
    rg_run *run;       /* NULL: the history alone */
    const char *from;  /* provenance of the run */
    char digest[65];   /* of the first run file */
    rg_baseline *base; /* NULL when there is none */
    rg_rules rules;
    rg_accel *accel;
    rg_guard_options options;
    rg_guard_result result;
    rg_history *history;
    rg_history_series *series;
    int series_count;
} rg_guard_job;

/** The verdict on a series of the history; NULL when there is none. */
rg_verdict *rg_guard_verdict_of(rg_guard_job *job, const rg_history_series *series);
/** Counts, clock state, notes, all verdicts and the changes of the history into the report. */
void rg_guard_report(rg_guard_job *job);
/** --trend: the history of the worst kernels as a figure. */
rg_status rg_guard_trend(rg_guard_job *job);

#endif

/* fit/guard_judge.h: the work of judging one run. Private to guard.c and guard_verdict.c.
 *
 * Reads fit/guard.h. guard.c pairs a run with its baseline, tests and sorts; guard_verdict.c
 * decides on one kernel.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_GUARD_JUDGE_H
#define RG_FIT_GUARD_JUDGE_H

#include <math.h>

#include "fit/guard.h"

typedef struct rg_judge {
    rg_arena *arena;
    const rg_run *run;
    const rg_baseline *base;
    const rg_guard_options *options;
    rg_guard_result *out;
    const rg_run_entry **entry;      /* behind each verdict, NULL for missing ones */
    const rg_base_entry **reference; /* NULL for new ones */
    rg_shift *shift;
    bool *compared;
    rg_limits *limits;
    double between_freedom; /* degrees of freedom */
    rg_err *err;
} rg_judge;

/** Set a verdict with its reason. */
rg_status rg_say(rg_judge *judge, rg_verdict *verdict, rg_verdict_kind kind, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
/** In per cent, without a minus before a zero. */
static inline double rg_shown(double ratio)
{
    return fabs(ratio) < 5e-4 ? 0 : 100 * ratio;
}
/** Why nothing of the run can be compared with the baseline; NULL when it can. */
const char *rg_whole_apart(rg_judge *judge);
/** Why one kernel cannot; NULL when it can. */
const char *rg_one_apart(rg_judge *judge, const rg_run_entry *entry, const rg_base_entry *base);
/** Least time of the work on the device, s; NaN when the record or the device lacks what it takes.
 */
double rg_entry_roofline(const rg_judge *judge, const rg_run_entry *entry);
/** Verdict i by the rules that need no baseline; *broken is false when none is broken. */
rg_status rg_judge_rules(rg_judge *judge, int i, bool *broken);
/** Verdict i by comparison, with its p values corrected for all kernels. */
rg_status rg_judge_compared(rg_judge *judge, int i, double p_slower, double p_faster);
/** Verdict i where its efficiency may lie under the floor. */
rg_status rg_judge_floor(rg_judge *judge, int i);

#endif

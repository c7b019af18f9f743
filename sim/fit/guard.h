/* fit/guard.h: the CI guard: a run against its baseline and its rules, one verdict a kernel.
 *
 * Reads core, hw, trace/run.h, fit/guard_stat.h. A kernel has regressed when its median is slower
 * by more than its tolerance, the one-sided test survives Holm's correction over all kernels
 * compared, the 95 % intervals are disjoint, the clocks do not explain it, and the samples are one
 * group (or no group of them matches the baseline); or when it breaks a rule. What falls short of
 * that but is over the tolerance is inconclusive. Gains never fail.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_GUARD_H
#define RG_FIT_GUARD_H

#include "fit/guard_stat.h"
#include "hw/accel.h"

/* Baseline --------------------------------------------------------------------------------------
 */

/** One kernel of a baseline. */
typedef struct rg_base_entry {
    const char *kernel, *problem, *dtype, *cache;
    const char *rate_unit; /* NULL: seconds */
    rg_side side;
    double clock_hz, cycles, flops, model_bytes, dram_bytes;
    double registers, spill_bytes, shared_bytes, blocks_per_sm;
    const char *throttled;
    double max_slowdown; /* own tolerance, NaN when none */
    const char *note;    /* NULL when none */
    const char *from;    /* file, digest, date, commit it was measured from */
    rg_pos pos;
} rg_base_entry;

typedef struct rg_baseline {
    const char *path, *tool, *device, *driver, *ecc, *clocks; /* "" when unknown */
    rg_base_entry *entries;
    int count;
} rg_baseline;

/** Read a baseline YAML ("schema: ridge.baseline/1"), strictly: an unknown key is an error. */
rg_status rg_baseline_load(rg_arena *arena, const char *path, rg_baseline **out, rg_err *err);
/** A baseline straight from a run record. from is kept as provenance. */
rg_status rg_baseline_of_run(rg_arena *arena, const rg_run *run, const char *from,
                             rg_baseline **out, rg_err *err);
/** Text of the file after an update: kernels of fresh for which picked says true replace what was
 * measured, sorted by kernel, problem and type; tolerances, notes, comments and all other kernels
 * stay as they were, to the letter. old_text NULL makes a new file. *changed and *added count
 * kernels. */
rg_status rg_baseline_update(rg_arena *arena, const char *path, const char *old_text,
                             size_t old_length, const rg_baseline *fresh,
                             bool (*picked)(void *context, const rg_base_entry *entry),
                             void *context, char **text, int *changed, int *added, rg_err *err);

/* Rules -----------------------------------------------------------------------------------------
 */

/** Limits; NaN where there is none. */
typedef struct rg_limits {
    double max_slowdown;    /* 0.01: practical threshold */
    double max_noise;       /* 0.15: dispersion (q3-q1)/median beyond which nothing is said */
    double min_efficiency;  /* roofline time / measured */
    double max_bytes_ratio; /* DRAM bytes / model bytes */
    double max_registers, max_spill_bytes, min_blocks_per_sm;
} rg_limits;

typedef struct rg_rule {
    const char *kernel, *problem, *dtype; /* patterns with * and ? */
    rg_limits limits;
    rg_pos pos;
} rg_rule;

typedef struct rg_rules {
    rg_limits defaults;
    rg_rule *items;
    int count;
} rg_rules;

/** Built-in limits: slowdown 1 %, noise 15 %, nothing else. */
rg_limits rg_limits_default(void);
/** Read a rules YAML: "default:" and "kernels:" (a list with patterns; later ones win), strictly.
 */
rg_status rg_rules_load(rg_arena *arena, const char *path, rg_rules *out, rg_err *err);
/** Shell pattern with * and ?, no other signs. */
bool rg_pattern_fits(const char *pattern, const char *text);

/* Verdicts --------------------------------------------------------------------------------------
 */

typedef enum rg_verdict_kind {
    RG_REGRESSED,
    RG_INCOMPARABLE,
    RG_MISSING,
    RG_INCONCLUSIVE,
    RG_FASTER,
    RG_NEW,
    RG_SAME, /* "ok" */
    RG_VERDICT_KINDS,
} rg_verdict_kind;
/** "regressed", "ok", ... */
const char *rg_verdict_name(rg_verdict_kind kind);

typedef struct rg_verdict {
    rg_verdict_kind kind;
    const char *kernel, *problem, *dtype;
    const char *reason; /* one sentence with the figures that decided */
    const char *note;   /* of the baseline, NULL when none */
    rg_side run, base;
    bool has_run, has_base;
    const char *rate_unit;
    double change;                  /* run / baseline - 1 of the cost; NaN when not compared */
    double change_low, change_high; /* 95 % */
    double cycles_change;           /* the same in cycles, NaN when a clock is unknown */
    double tolerance;               /* that was applied */
    double noise;                   /* standard error of the change */
    double p_adjusted;              /* Holm */
    double roofline_s, efficiency, efficiency_high, bytes_ratio;
    double registers, spill_bytes, blocks_per_sm, clock_hz;
    rg_pos base_pos, run_pos;
} rg_verdict;

typedef enum rg_across {
    RG_ACROSS_DEVICE = 1,
    RG_ACROSS_DRIVER = 2,
    RG_ACROSS_CLOCK = 4,
    RG_ACROSS_CACHE = 8,
    RG_ACROSS_TOOL = 16,
    RG_ACROSS_ECC = 32,
} rg_across;

typedef struct rg_guard_options {
    const rg_rules *rules;
    const rg_accel *accel; /* NULL: no efficiencies */
    unsigned across;       /* differences that may be compared across */
    bool require_locked;   /* clocks must be locked */
    double alpha;          /* false alarms for all kernels together; 0.005 by default */
    const char *only;      /* pattern on the kernel, NULL for all */
} rg_guard_options;

typedef struct rg_guard_result {
    rg_verdict *items; /* worst first */
    int count;
    int counts[RG_VERDICT_KINDS];
    double single;  /* noise of a single value, relative, that was assumed or seen */
    double between; /* noise between processes that was assumed or seen */
    double alike;   /* slowdown that all kernels share while no clock is known; else NaN */
    const char **warnings;
    int warning_count;
} rg_guard_result;

/** Judge a run. base may be NULL: then rules only. */
rg_status rg_guard_judge(rg_arena *arena, const rg_run *run, const rg_baseline *base,
                         const rg_guard_options *options, rg_guard_result *out, rg_err *err);
/** Sort worst first (again): after verdicts were changed. */
void rg_guard_sort(rg_guard_result *result);
/** Exit code: 1 regressed, 4 incomparable or missing, 3 inconclusive when strict, else 0. */
int rg_guard_exit(const rg_guard_result *result, bool strict);

#endif

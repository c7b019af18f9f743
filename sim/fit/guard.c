/* fit/guard.c: verdicts. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roofline/roofline.h"

/* A clock lower by this much is another clock class: the run was held down, or the baseline was
 * not. */
static const double rg_clock_class = 0.03;

const char *rg_verdict_name(rg_verdict_kind kind)
{
    static const char *const names[RG_VERDICT_KINDS] = {
        "regressed", "incomparable", "missing", "inconclusive", "faster", "new", "ok"};
    return names[kind];
}

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
    double between_freedom;
    rg_err *err;
} rg_judge;

static rg_status rg_say(rg_judge *j, rg_verdict *v, rg_verdict_kind kind, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static rg_status rg_say(rg_judge *j, rg_verdict *v, rg_verdict_kind kind, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    v->kind = kind;
    v->reason = rg_arena_strdup(j->arena, text, j->err);
    return v->reason == NULL ? RG_ERR_LIMIT : RG_OK;
}

static rg_status rg_warn(rg_judge *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static rg_status rg_warn(rg_judge *j, const char *format, ...)
{
    enum { MOST = 16 };
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (j->out->warnings == NULL)
        j->out->warnings = RG_NEW(j->arena, const char *, MOST, j->err);
    if (j->out->warnings == NULL)
        return RG_ERR_LIMIT;
    if (j->out->warning_count == MOST)
        return RG_OK;
    const char *copy = rg_arena_strdup(j->arena, text, j->err);
    if (copy == NULL)
        return RG_ERR_LIMIT;
    j->out->warnings[j->out->warning_count++] = copy;
    return RG_OK;
}

/* In per cent, without a minus before a zero. */
static double rg_shown(double ratio)
{
    return fabs(ratio) < 5e-4 ? 0 : 100 * ratio;
}

/* Limits ----------------------------------------------------------------------------------------
 */

static void rg_limit_over(double *into, double from)
{
    if (!isnan(from))
        *into = from;
}

static rg_limits rg_judge_limits(const rg_judge *j, const rg_verdict *v, const rg_base_entry *b)
{
    const rg_rules *rules = j->options->rules;
    rg_limits l = rules == NULL ? rg_limits_default() : rules->defaults;
    for (int i = 0; rules != NULL && i < rules->count; i++) {
        const rg_rule *r = &rules->items[i];
        if (!rg_pattern_fits(r->kernel, v->kernel) || !rg_pattern_fits(r->problem, v->problem) ||
            !rg_pattern_fits(r->dtype, v->dtype))
            continue;
        rg_limit_over(&l.max_slowdown, r->limits.max_slowdown);
        rg_limit_over(&l.max_noise, r->limits.max_noise);
        rg_limit_over(&l.min_efficiency, r->limits.min_efficiency);
        rg_limit_over(&l.max_bytes_ratio, r->limits.max_bytes_ratio);
        rg_limit_over(&l.max_registers, r->limits.max_registers);
        rg_limit_over(&l.max_spill_bytes, r->limits.max_spill_bytes);
        rg_limit_over(&l.min_blocks_per_sm, r->limits.min_blocks_per_sm);
    }
    if (b != NULL)
        rg_limit_over(&l.max_slowdown, b->max_slowdown);
    return l;
}

/* Comparable? -----------------------------------------------------------------------------------
 */

static bool rg_both_differ(const char *a, const char *b)
{
    if (a[0] == '\0' || b[0] == '\0')
        return false;
    for (;;) { /* case and blanks aside */
        while (isspace((unsigned char)*a))
            a++;
        while (isspace((unsigned char)*b))
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return true;
        if (*a == '\0')
            return false;
        a++;
        b++;
    }
}

static bool rg_majors_differ(const char *a, const char *b)
{
    const long x = strtol(a, NULL, 10), y = strtol(b, NULL, 10);
    return a[0] != '\0' && b[0] != '\0' && x != y;
}

/* Reason why nothing of the run can be compared with the baseline; NULL when it can. */
static const char *rg_whole_apart(rg_judge *j)
{
    const rg_run *r = j->run;
    const rg_baseline *b = j->base;
    const unsigned across = j->options->across;
    const struct {
        unsigned bit;
        bool differ;
        const char *what, *run, *base;
    } checks[] = {
        {RG_ACROSS_DEVICE, rg_both_differ(r->device, b->device), "device", r->device, b->device},
        {RG_ACROSS_TOOL, rg_both_differ(r->tool, b->tool), "tool", r->tool, b->tool},
        {RG_ACROSS_DRIVER, rg_majors_differ(r->driver, b->driver), "driver", r->driver, b->driver},
        {RG_ACROSS_ECC, rg_both_differ(r->ecc, b->ecc), "ecc", r->ecc, b->ecc},
        {RG_ACROSS_CLOCK, rg_both_differ(r->clocks, b->clocks), "clock", r->clocks, b->clocks},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i].differ && (across & checks[i].bit) == 0)
            return rg_arena_printf(
                j->arena, j->err,
                "%s of the run is '%s', of the baseline '%s'; measure a baseline "
                "there, or compare with --across %s",
                checks[i].what, checks[i].run, checks[i].base, checks[i].what);
    return NULL;
}

static const char *rg_one_apart(rg_judge *j, const rg_run_entry *e, const rg_base_entry *b)
{
    if (rg_both_differ(e->cache, b->cache) && (j->options->across & RG_ACROSS_CACHE) == 0)
        return rg_arena_printf(j->arena, j->err,
                               "the cache was %s in the run and %s in the baseline", e->cache,
                               b->cache);
    const char *ru = e->rate_unit == NULL ? "" : e->rate_unit,
               *bu = b->rate_unit == NULL ? "" : b->rate_unit;
    if (strcmp(ru, bu) != 0)
        return rg_arena_printf(j->arena, j->err, "the run gives %s, the baseline %s",
                               ru[0] ? ru : "a time", bu[0] ? bu : "a time");
    return NULL;
}

/* Efficiency ------------------------------------------------------------------------------------
 */

static bool rg_entry_type(const char *dtype, rg_dtype *out)
{
    static const struct {
        const char *name;
        rg_dtype type;
    } spelled[] = {{"float", RG_FP32},   {"float32", RG_FP32},  {"half", RG_FP16},
                   {"float16", RG_FP16}, {"bfloat16", RG_BF16}, {"double", RG_FP64},
                   {"float64", RG_FP64}};
    for (size_t i = 0; i < sizeof spelled / sizeof spelled[0]; i++)
        if (strcmp(dtype, spelled[i].name) == 0) {
            *out = spelled[i].type;
            return true;
        }
    return dtype[0] != '\0' && rg_dtype_parse(dtype, RG_NOWHERE, out, NULL) == RG_OK;
}

/* Least time of the work on the device: flops at the dense peak of the type, model bytes (else DRAM
 * bytes) at the memory's bandwidth. NaN when the record or the device lacks what it takes. */
static double rg_entry_roofline(const rg_judge *j, const rg_run_entry *e)
{
    const rg_accel *accel = j->options->accel;
    if (accel == NULL || e->rate_unit != NULL)
        return NAN;
    rg_work work = {0};
    const double bytes = isnan(e->model_bytes) ? e->dram_bytes : e->model_bytes;
    if (bytes > 0)
        work.bytes[accel->level_count - 1] = RG_B(bytes);
    if (e->flops > 0 && rg_entry_type(e->dtype, &work.math))
        work.flops = RG_F(e->flops);
    rg_roof_time time;
    if (rg_roof_time_of(accel, &work, &time, NULL) != RG_OK)
        return NAN;
    return time.total.v;
}

/* Rules that need no baseline; false leaves the verdict alone. */
static rg_status rg_judge_rules(rg_judge *j, int i, bool *broken)
{
    rg_verdict *v = &j->out->items[i];
    const rg_run_entry *e = j->entry[i];
    const rg_limits *l = &j->limits[i];
    *broken = true;
    if (e->wrong != NULL)
        return rg_say(j, v, RG_REGRESSED, "the result is wrong: %s", e->wrong);
    if (!isnan(l->max_registers) && e->registers > l->max_registers)
        return rg_say(j, v, RG_REGRESSED, "%.0f registers a thread, the limit is %.0f",
                      e->registers, l->max_registers);
    if (!isnan(l->max_spill_bytes) && e->spill_bytes > l->max_spill_bytes)
        return rg_say(j, v, RG_REGRESSED, "%.0f bytes spilled, the limit is %.0f", e->spill_bytes,
                      l->max_spill_bytes);
    if (!isnan(l->min_blocks_per_sm) && e->blocks_per_sm < l->min_blocks_per_sm)
        return rg_say(j, v, RG_REGRESSED, "%.0f blocks fit an SM, the limit is %.0f",
                      e->blocks_per_sm, l->min_blocks_per_sm);
    if (!isnan(l->max_bytes_ratio) && v->bytes_ratio > l->max_bytes_ratio)
        return rg_say(j, v, RG_REGRESSED,
                      "DRAM moved %.3f times the bytes that the model needs, the limit is %.3f",
                      v->bytes_ratio, l->max_bytes_ratio);
    if (!isnan(l->min_efficiency) && v->efficiency_high < l->min_efficiency)
        return rg_say(j, v, RG_REGRESSED,
                      "efficiency %.1f %% (at most %.1f %%), the floor is %.1f %%",
                      100 * v->efficiency, 100 * v->efficiency_high, 100 * l->min_efficiency);
    *broken = false;
    return RG_OK;
}

/* Verdicts --------------------------------------------------------------------------------------
 */

/* ln(cycles run / cycles baseline), NaN when a clock is unknown. */
static double rg_cycles_shift(const rg_run_entry *e, const rg_base_entry *b, double change)
{
    if (e->clock_hz > 0 && b->clock_hz > 0)
        return change + log(e->clock_hz / b->clock_hz);
    if (e->cycles > 0 && b->cycles > 0)
        return log(e->cycles / b->cycles);
    return NAN;
}

/* Whether a group of the run's samples matches a group of the baseline's within limit, where one of
 * them has two groups. */
static bool rg_modes_match(const rg_side *run, const rg_side *base, double limit)
{
    if (run->modes < 2 && base->modes < 2)
        return false;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            if (fabs(log(run->mode[i] / base->mode[k])) <= limit)
                return true;
    return false;
}

static rg_status rg_judge_slower(rg_judge *j, int i, double p, rg_shift s)
{
    rg_verdict *v = &j->out->items[i];
    const rg_run_entry *e = j->entry[i];
    const rg_base_entry *b = j->reference[i];
    const double limit = log1p(v->tolerance);
    const double percent = 100 * v->change;
    const double cycles = rg_cycles_shift(e, b, s.change);
    if (isnan(cycles) && (e->throttled != NULL || b->throttled != NULL))
        return rg_say(j, v, RG_INCONCLUSIVE,
                      "%.1f %% slower, but the clock was held down (%s) in the %s", percent,
                      e->throttled != NULL ? e->throttled : b->throttled,
                      e->throttled != NULL ? "run" : "baseline");
    if (!isnan(cycles) && cycles <= limit) {
        const double clock =
            e->clock_hz > 0 && b->clock_hz > 0 ? e->clock_hz / b->clock_hz - 1 : NAN;
        if (clock < -rg_clock_class && (j->options->across & RG_ACROSS_CLOCK) == 0)
            return rg_say(
                j, v, RG_INCOMPARABLE,
                "%.1f %% slower in time but %+.1f %% in cycles: the clock was %.0f MHz, in "
                "the baseline %.0f MHz",
                percent, 100 * expm1(cycles), e->clock_hz / 1e6, b->clock_hz / 1e6);
        return rg_say(j, v, RG_INCONCLUSIVE, "%.1f %% slower in time but %+.1f %% in cycles",
                      percent, 100 * expm1(cycles));
    }
    if (rg_modes_match(&v->run, &v->base, limit + fmin(2 * s.error, 0.02)))
        return rg_say(
            j, v, RG_INCONCLUSIVE,
            "the samples of the %s fall into two groups (%.0f %% are %.1f %% slower), and one "
            "matches the %s",
            v->run.modes > 1 ? "run" : "baseline",
            100 * (v->run.modes > 1 ? v->run.slow_share : v->base.slow_share),
            100 * ((v->run.modes > 1 ? v->run.mode[1] / v->run.mode[0]
                                     : v->base.mode[1] / v->base.mode[0]) -
                   1),
            v->run.modes > 1 ? "baseline" : "run");
    const double spread = fmax(isnan(v->run.dispersion) ? 0 : v->run.dispersion,
                               isnan(v->base.dispersion) ? 0 : v->base.dispersion);
    if (spread > j->limits[i].max_noise && v->change < spread)
        return rg_say(j, v, RG_INCONCLUSIVE,
                      "%.1f %% slower, but the samples spread over %.1f %% (max_noise %.1f %%)",
                      percent, 100 * spread, 100 * j->limits[i].max_noise);
    const bool assumed = v->run.assumed || v->base.assumed;
    const double wander = fmax(v->run.wander, v->base.wander);
    if (!(p < j->options->alpha) && wander > limit)
        return rg_say(j, v, RG_INCONCLUSIVE,
                      "%.1f %% slower, but the times wander by %.1f %% within the %s", percent,
                      100 * expm1(wander), v->run.wander >= v->base.wander ? "run" : "baseline");
    if (!(p < j->options->alpha))
        return rg_say(
            j, v, RG_INCONCLUSIVE,
            "%.1f %% slower is over the tolerance of %.1f %% but within the noise: error of "
            "the change %.2f %%%s, p %.2g over all kernels",
            percent, 100 * v->tolerance, 100 * s.error,
            assumed ? " (the file gives no spread)" : "", p);
    if (!assumed && v->run.low <= v->base.high)
        return rg_say(j, v, RG_INCONCLUSIVE,
                      "%.1f %% slower, but the 95 %% intervals of the medians overlap", percent);
    return rg_say(j, v, RG_REGRESSED,
                  "%.1f %% slower%s (95 %%: %+.1f to %+.1f %%), tolerance %.1f %%", percent,
                  isnan(cycles) ? "" : ", in cycles as well", 100 * v->change_low,
                  100 * v->change_high, 100 * v->tolerance);
}

static rg_status rg_judge_compared(rg_judge *j, int i, double p_slower, double p_faster)
{
    rg_verdict *v = &j->out->items[i];
    const rg_run_entry *e = j->entry[i];
    const rg_base_entry *b = j->reference[i];
    rg_shift s = rg_side_shift(&v->base, &v->run, j->out->between, j->between_freedom);
    v->change = expm1(s.change);
    v->change_low = expm1(s.low);
    v->change_high = expm1(s.high);
    v->noise = s.error;
    v->tolerance = j->limits[i].max_slowdown;
    v->p_adjusted = s.change > 0 ? p_slower : p_faster;
    v->cycles_change = expm1(rg_cycles_shift(e, b, s.change));
    if (v->change > v->tolerance)
        return rg_judge_slower(j, i, p_slower, s);
    if (v->change < -v->tolerance && p_faster < j->options->alpha && e->throttled == NULL &&
        b->throttled == NULL && !rg_modes_match(&v->base, &v->run, log1p(v->tolerance)))
        return rg_say(j, v, RG_FASTER,
                      "%.1f %% faster (95 %%: %+.1f to %+.1f %%); refresh the baseline "
                      "with --update to hold the gain",
                      -100 * v->change, 100 * v->change_low, 100 * v->change_high);
    const double seen = 3 * s.error;
    if (v->run.modes > 1 && v->run.slow_share >= 0.2 && v->base.modes == 1 &&
        b->side.effective >= 8 && v->run.mode[1] > v->base.centre * (1 + v->tolerance))
        return rg_say(
            j, v, RG_INCONCLUSIVE,
            "%+.1f %%, but %.0f %% of the samples are %.1f %% slower than the rest, and the "
            "baseline has no such group",
            100 * v->change, 100 * v->run.slow_share, 100 * (v->run.mode[1] / v->run.mode[0] - 1));
    if (e->spill_bytes > b->spill_bytes)
        return rg_say(j, v, RG_SAME, "%+.1f %%; spills grew from %.0f to %.0f bytes",
                      rg_shown(v->change), b->spill_bytes, e->spill_bytes);
    if (e->dram_bytes > 1.03 * b->dram_bytes)
        return rg_say(j, v, RG_SAME, "%+.1f %%; DRAM bytes grew by %.1f %%", rg_shown(v->change),
                      100 * (e->dram_bytes / b->dram_bytes - 1));
    return rg_say(j, v, RG_SAME, "%+.1f %%, changes under %.1f %% cannot be seen",
                  rg_shown(v->change), 100 * fmax(v->tolerance, seen));
}

static rg_status rg_judge_floor(rg_judge *j, int i)
{
    rg_verdict *v = &j->out->items[i];
    const double floor_of = j->limits[i].min_efficiency;
    if (v->kind == RG_REGRESSED || isnan(floor_of) || isnan(v->efficiency) ||
        v->efficiency >= floor_of)
        return RG_OK;
    return rg_say(j, v, RG_INCONCLUSIVE,
                  "efficiency %.1f %% is under the floor of %.1f %%, but may be as high as %.1f %%",
                  100 * v->efficiency, 100 * floor_of, 100 * v->efficiency_high);
}

/* Pairing ---------------------------------------------------------------------------------------
 */

static const rg_base_entry *rg_base_find(const rg_baseline *base, const rg_run_entry *e)
{
    for (int i = 0; base != NULL && i < base->count; i++) {
        const rg_base_entry *b = &base->entries[i];
        if (strcmp(b->kernel, e->kernel) == 0 && strcmp(b->problem, e->problem) == 0 &&
            (b->dtype[0] == '\0' || e->dtype[0] == '\0' || strcmp(b->dtype, e->dtype) == 0))
            return b;
    }
    return NULL;
}

static bool rg_picked(const rg_judge *j, const char *kernel)
{
    return j->options->only == NULL || rg_pattern_fits(j->options->only, kernel);
}

static const rg_verdict rg_verdict_blank = {.kind = RG_SAME,
                                            .dtype = "",
                                            .change = NAN,
                                            .change_low = NAN,
                                            .change_high = NAN,
                                            .cycles_change = NAN,
                                            .tolerance = NAN,
                                            .noise = NAN,
                                            .p_adjusted = NAN,
                                            .roofline_s = NAN,
                                            .efficiency = NAN,
                                            .efficiency_high = NAN,
                                            .bytes_ratio = NAN,
                                            .registers = NAN,
                                            .spill_bytes = NAN,
                                            .blocks_per_sm = NAN,
                                            .clock_hz = NAN};

static rg_status rg_judge_pair(rg_judge *j)
{
    rg_guard_result *out = j->out;
    for (int i = 0; i < j->run->count; i++) {
        const rg_run_entry *e = &j->run->entries[i];
        if (!rg_picked(j, e->kernel))
            continue;
        const int at = out->count++;
        rg_verdict *v = &out->items[at];
        const rg_base_entry *b = rg_base_find(j->base, e);
        *v = rg_verdict_blank;
        j->entry[at] = e;
        j->reference[at] = b;
        v->kernel = e->kernel;
        v->problem = e->problem;
        v->dtype = e->dtype;
        v->rate_unit = e->rate_unit;
        v->run_pos = e->pos;
        v->registers = e->registers;
        v->spill_bytes = e->spill_bytes;
        v->blocks_per_sm = e->blocks_per_sm;
        v->clock_hz = e->clock_hz;
        v->bytes_ratio = e->model_bytes > 0 ? e->dram_bytes / e->model_bytes : NAN;
        RG_TRY(rg_side_of(j->arena, e, &v->run, j->err));
        v->has_run = v->run.usable;
        v->roofline_s = rg_entry_roofline(j, e);
        if (v->has_run) {
            v->efficiency = v->roofline_s / v->run.centre;
            v->efficiency_high = v->roofline_s / v->run.low;
        }
        if (b != NULL) {
            v->base = b->side;
            v->has_base = b->side.usable;
            v->base_pos = b->pos;
            v->note = b->note;
        }
        j->limits[at] = rg_judge_limits(j, v, b);
    }
    return RG_OK;
}

static rg_status rg_judge_missing(rg_judge *j)
{
    for (int i = 0; j->base != NULL && i < j->base->count; i++) {
        const rg_base_entry *b = &j->base->entries[i];
        bool found = !rg_picked(j, b->kernel);
        for (int k = 0; k < j->out->count && !found; k++)
            found = j->reference[k] == b;
        if (found)
            continue;
        const int at = j->out->count++;
        rg_verdict *v = &j->out->items[at];
        *v = rg_verdict_blank;
        j->entry[at] = NULL;
        j->reference[at] = b;
        v->kernel = b->kernel;
        v->problem = b->problem;
        v->dtype = b->dtype;
        v->rate_unit = b->rate_unit;
        v->base = b->side;
        v->has_base = b->side.usable;
        v->base_pos = b->pos;
        v->note = b->note;
        j->limits[at] = rg_judge_limits(j, v, b);
        RG_TRY(rg_say(j, v, RG_MISSING, "in the baseline, but not in the run"));
    }
    return RG_OK;
}

/* An entry of resources alone, as a build without a device gives. */
static bool rg_static_only(const rg_run_entry *e)
{
    return isfinite(e->registers) || isfinite(e->spill_bytes) || isfinite(e->blocks_per_sm);
}

/* What can be said before any statistics; false in compared[i] when the verdict stands. */
static rg_status rg_judge_first(rg_judge *j, int i, const char *apart)
{
    rg_verdict *v = &j->out->items[i];
    const rg_run_entry *e = j->entry[i];
    const rg_base_entry *b = j->reference[i];
    if (e == NULL)
        return RG_OK;
    bool broken;
    RG_TRY(rg_judge_rules(j, i, &broken));
    if (broken)
        return RG_OK;
    if (j->options->require_locked && strcmp(j->run->clocks, "locked") != 0)
        return rg_say(j, v, RG_INCOMPARABLE,
                      "clocks must be locked (--require-locked) and are '%s'",
                      j->run->clocks[0] ? j->run->clocks : "not recorded");
    const bool no_time = !v->has_run && e->unusable != NULL && !rg_static_only(e);
    if (b == NULL && no_time) /* no valid sample is no success */
        return rg_say(j, v, e->left_out ? RG_NEW : RG_INCOMPARABLE, "no time: %s", e->unusable);
    if (j->base == NULL)
        return rg_say(j, v, RG_SAME, "no rule is broken");
    if (b == NULL)
        return rg_say(j, v, RG_NEW, "not in the baseline; add it with --update");
    if (!v->has_run && b->side.usable)
        return rg_say(j, v, RG_MISSING, "the run gives no time: %s",
                      e->unusable == NULL ? "no number" : e->unusable);
    if (!v->has_run && !b->side.usable)
        return rg_say(j, v, RG_SAME, "no time on either side; no rule is broken");
    if (!b->side.usable)
        return rg_say(j, v, RG_INCOMPARABLE, "the baseline gives no time");
    const char *why = apart == NULL ? rg_one_apart(j, e, b) : apart;
    if (why != NULL)
        return rg_say(j, v, RG_INCOMPARABLE, "%s", why);
    j->compared[i] = true;
    return RG_OK;
}

/* Single values on both sides: their noise from all of them together, where there are many. */
static void rg_judge_singles(rg_judge *j, double *changes, double *scratch)
{
    rg_guard_result *out = j->out;
    int m = 0;
    for (int i = 0; i < out->count; i++) {
        const rg_verdict *v = &out->items[i];
        if (j->compared[i] && v->run.assumed && v->base.assumed)
            changes[m++] = log(v->run.centre / v->base.centre);
    }
    out->single = rg_guard_single(changes, m, scratch);
    for (int i = 0; i < out->count; i++)
        if (j->compared[i] && out->items[i].run.assumed && out->items[i].base.assumed)
            out->items[i].run.error = out->items[i].base.error = out->single;
}

/* nccl-tests times each size out of place and in place. One mean that the other half of the same
 * size does not follow is an outlier of that mean, not a slower collective. */
static rg_status rg_judge_halves(rg_judge *j)
{
    static const char *const halves[2] = {" out-of-place", " in-place"};
    for (int i = 0; i < j->out->count; i++) {
        rg_verdict *v = &j->out->items[i];
        if (v->kind != RG_REGRESSED || !j->compared[i] || !(v->run.assumed || v->base.assumed))
            continue;
        for (int h = 0; h < 2; h++) {
            const size_t n = strlen(v->problem), m = strlen(halves[h]);
            if (n <= m || strcmp(v->problem + n - m, halves[h]) != 0)
                continue;
            for (int k = 0; k < j->out->count; k++) {
                const rg_verdict *w = &j->out->items[k];
                if (!j->compared[k] || strcmp(w->kernel, v->kernel) != 0 ||
                    strncmp(w->problem, v->problem, n - m) != 0 ||
                    strcmp(w->problem + (n - m), halves[1 - h]) != 0 || w->change > v->change / 2)
                    continue;
                RG_TRY(rg_say(
                    j, v, RG_INCONCLUSIVE,
                    "%.1f %% slower, but%s of the same size is not (%+.1f %%): one mean is an "
                    "outlier; repeat the run",
                    100 * v->change, halves[1 - h], rg_shown(w->change)));
                break;
            }
        }
    }
    return RG_OK;
}

static rg_status rg_judge_statistics(rg_judge *j)
{
    rg_guard_result *out = j->out;
    const int n = out->count;
    double *p = RG_NEW(j->arena, double, 4 * n + 4, j->err);
    int *order = RG_NEW(j->arena, int, 2 * n + 2, j->err);
    if (p == NULL || order == NULL)
        return RG_ERR_LIMIT;
    rg_side **sides = RG_NEW(j->arena, rg_side *, n + 1, j->err);
    if (sides == NULL)
        return RG_ERR_LIMIT;
    for (int side = 0; side < 2; side++) { /* run and baseline apart: one may be the noisier */
        int count = 0;
        for (int i = 0; i < n; i++)
            if (j->compared[i])
                sides[count++] = side == 0 ? &out->items[i].run : &out->items[i].base;
        RG_TRY(rg_sides_moderate(j->arena, sides, count, j->err));
    }
    rg_judge_singles(j, p, p + n);
    int m = 0;
    for (int i = 0; i < n; i++)
        if (j->compared[i] && !out->items[i].run.assumed && !out->items[i].base.assumed &&
            out->items[i].run.processes < 3 && out->items[i].base.processes < 3)
            j->shift[m++] = rg_side_shift(&out->items[i].base, &out->items[i].run, 0, 1);
    out->between = rg_guard_between(j->shift, m, &j->between_freedom, p);
    m = 0;
    double *slower = p, *faster = p + n, *adjusted_slower = p + 2 * n, *adjusted_faster = p + 3 * n;
    int *which = order + n;
    for (int i = 0; i < n; i++)
        if (j->compared[i]) {
            const rg_shift s = rg_side_shift(&out->items[i].base, &out->items[i].run, out->between,
                                             j->between_freedom);
            slower[m] = s.p_slower;
            faster[m] = s.p_faster;
            which[m++] = i;
        }
    rg_stat_holm(slower, m, adjusted_slower, order);
    rg_stat_holm(faster, m, adjusted_faster, order);
    for (int k = 0; k < m; k++) {
        RG_TRY(rg_judge_compared(j, which[k], adjusted_slower[k], adjusted_faster[k]));
        RG_TRY(rg_judge_floor(j, which[k]));
    }
    return rg_judge_halves(j);
}

static rg_status rg_judge_warnings(rg_judge *j)
{
    const rg_run *r = j->run;
    int unlocked = 0, throttled = 0, assumed = 0, single = 0;
    for (int i = 0; i < j->out->count; i++) {
        throttled += j->entry[i] != NULL && j->entry[i]->throttled != NULL;
        assumed +=
            j->compared[i] && (j->out->items[i].run.assumed || j->out->items[i].base.assumed);
        single += j->compared[i] && j->out->items[i].run.processes < 3;
    }
    unlocked = strcmp(r->clocks, "unlocked") == 0;
    if (unlocked)
        RG_TRY(rg_warn(j, "clocks were not locked: lock them (nvidia-smi -lgc), or fail on it with "
                          "--require-locked"));
    if (r->clocks[0] == '\0' && j->out->count > 0)
        RG_TRY(rg_warn(j, "the run does not record whether clocks were locked"));
    if (throttled > 0)
        RG_TRY(rg_warn(j, "%d kernels ran while the clock was held down", throttled));
    if (assumed > 0)
        RG_TRY(rg_warn(j,
                       "%d kernels come without any spread: their noise is %s (%.1f %%); "
                       "give repeats as further run files",
                       assumed,
                       j->out->single < RG_GUARD_SINGLE ? "taken from those that did not slow"
                                                        : "assumed",
                       100 * j->out->single));
    if (single > 0)
        RG_TRY(
            rg_warn(j, "noise between processes is %s (%.2f %%): fewer than three runs were given",
                    j->out->between > RG_GUARD_BETWEEN ? "taken from the kernels that did not slow"
                                                       : "assumed",
                    100 * j->out->between));
    return RG_OK;
}

static int rg_verdict_compare(const void *a, const void *b)
{
    const rg_verdict *x = a, *y = b;
    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    const double cx = isnan(x->change) ? -1 : x->change, cy = isnan(y->change) ? -1 : y->change;
    if (cx != cy && x->kind != RG_FASTER)
        return cx > cy ? -1 : 1;
    if (cx != cy)
        return cx < cy ? -1 : 1;
    int order = strcmp(x->kernel, y->kernel);
    if (order == 0)
        order = strcmp(x->problem, y->problem);
    return order != 0 ? order : strcmp(x->dtype, y->dtype);
}

void rg_guard_sort(rg_guard_result *result)
{
    if (result->count > 0)
        qsort(result->items, (size_t)result->count, sizeof *result->items, rg_verdict_compare);
    memset(result->counts, 0, sizeof result->counts);
    for (int i = 0; i < result->count; i++)
        result->counts[result->items[i].kind]++;
}

rg_status rg_guard_judge(rg_arena *arena, const rg_run *run, const rg_baseline *base,
                         const rg_guard_options *options, rg_guard_result *out, rg_err *err)
{
    const int most = run->count + (base == NULL ? 0 : base->count) + 1;
    *out = (rg_guard_result){.between = RG_GUARD_BETWEEN, .single = RG_GUARD_SINGLE};
    rg_judge j = {
        .arena = arena, .run = run, .base = base, .options = options, .out = out, .err = err};
    out->items = RG_NEW(arena, rg_verdict, most, err);
    j.entry = RG_NEW(arena, const rg_run_entry *, most, err);
    j.reference = RG_NEW(arena, const rg_base_entry *, most, err);
    j.shift = RG_NEW(arena, rg_shift, most, err);
    j.compared = RG_NEW(arena, bool, most, err);
    j.limits = RG_NEW(arena, rg_limits, most, err);
    if (out->items == NULL || j.entry == NULL || j.reference == NULL || j.shift == NULL ||
        j.compared == NULL || j.limits == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(rg_judge_pair(&j));
    RG_TRY(rg_judge_missing(&j));
    const char *apart = base == NULL ? NULL : rg_whole_apart(&j);
    for (int i = 0; i < out->count; i++)
        RG_TRY(rg_judge_first(&j, i, apart));
    RG_TRY(rg_judge_statistics(&j));
    RG_TRY(rg_judge_warnings(&j));
    rg_guard_sort(out);
    return RG_OK;
}

int rg_guard_exit(const rg_guard_result *result, bool strict)
{
    if (result->counts[RG_REGRESSED] > 0)
        return 1;
    if (result->counts[RG_INCOMPARABLE] > 0 || result->counts[RG_MISSING] > 0)
        return 4;
    return strict && result->counts[RG_INCONCLUSIVE] > 0 ? 3 : 0;
}

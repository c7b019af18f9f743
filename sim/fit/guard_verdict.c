/* fit/guard_verdict.c: the verdict on one kernel, with the figures that decided. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard_judge.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roofline/roofline.h"

/* A clock lower by this much is another clock class: the run was held down, or the baseline was
 * not. */
static const double rg_clock_class = 0.03;

rg_status rg_say(rg_judge *j, rg_verdict *v, rg_verdict_kind kind, const char *format, ...)
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
const char *rg_whole_apart(rg_judge *j)
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

const char *rg_one_apart(rg_judge *j, const rg_run_entry *e, const rg_base_entry *b)
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
double rg_entry_roofline(const rg_judge *j, const rg_run_entry *e)
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
rg_status rg_judge_rules(rg_judge *j, int i, bool *broken)
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

rg_status rg_judge_compared(rg_judge *j, int i, double p_slower, double p_faster)
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

rg_status rg_judge_floor(rg_judge *j, int i)
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

/* fit/guard.c: pairs a run with its baseline, tests all kernels together, sorts the verdicts. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard_judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/stat.h"

const char *rg_verdict_name(rg_verdict_kind kind)
{
    static const char *const names[RG_VERDICT_KINDS] = {
        "regressed", "incomparable", "missing", "inconclusive", "faster", "new", "ok"};
    return names[kind];
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
    const bool no_time = !v->has_run && e->unusable != NULL && (e->refused || !rg_static_only(e));
    if (b == NULL && no_time) /* no valid sample is no success */
        return rg_say(j, v, e->left_out ? RG_NEW : RG_INCOMPARABLE, "no time: %s", e->unusable);
    if (no_time && e->refused && !b->side.usable)
        return rg_say(j, v, RG_INCOMPARABLE, "no time on either side: %s", e->unusable);
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

/* Without clocks, a machine that got slower and a change in all kernels look the same. Alike: each
 * compared kernel is slower, as far from the median as its tolerance or three errors allow. */
static rg_status rg_judge_alike(rg_judge *j)
{
    rg_guard_result *out = j->out;
    double *changes = RG_NEW(j->arena, double, out->count + 1, j->err);
    if (changes == NULL)
        return RG_ERR_LIMIT;
    int n = 0, regressed = 0;
    for (int i = 0; i < out->count; i++) {
        const rg_verdict *v = &out->items[i];
        regressed += j->compared[i] && v->kind == RG_REGRESSED;
        if (j->compared[i])
            changes[n++] = v->change;
        if (j->compared[i] && (v->change <= 0 || !isnan(v->cycles_change)))
            return RG_OK;
    }
    if (n < 3 || regressed == 0)
        return RG_OK;
    rg_stat_sort(changes, (size_t)n);
    const double median = rg_stat_quantile_sorted(changes, (size_t)n, 0.5);
    for (int i = 0; i < out->count; i++) {
        const rg_verdict *v = &out->items[i];
        if (j->compared[i] && fabs(v->change - median) > fmax(v->tolerance, 3 * v->noise))
            return RG_OK;
    }
    out->alike = median;
    return rg_warn(j,
                   "all %d kernels are slower by about the same (%.1f to %.1f %%), and no clock is "
                   "recorded: a lower clock or power limit, or a busy machine, does that too; "
                   "measure the baseline again as the machine is now, or record clocks, before "
                   "looking for the change",
                   n, 100 * changes[0], 100 * changes[n - 1]);
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
    RG_TRY(rg_judge_alike(j));
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
    *out = (rg_guard_result){.between = RG_GUARD_BETWEEN, .single = RG_GUARD_SINGLE, .alike = NAN};
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

/* fit/guard_trend.c: noise, steps and drift of a history, and the baseline that it gives. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard_history.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "core/stat.h"

static double rg_median3(const double *y)
{
    const double a = fmin(y[0], y[1]), b = fmax(y[0], y[1]);
    return fmax(a, fmin(b, y[2]));
}

/* Spread of successive differences about their median, over sqrt 2; at least what the points state.
 */
static double rg_series_noise(const double *y, const double *error, int n, double *scratch)
{
    double stated = 0;
    for (int i = 0; i < n; i++)
        stated += error[i] * error[i] / n;
    stated = sqrt(stated + RG_GUARD_BETWEEN * RG_GUARD_BETWEEN);
    if (n < 4)
        return stated;
    for (int i = 0; i + 1 < n; i++)
        scratch[i] = y[i + 1] - y[i];
    rg_stat_sort(scratch, (size_t)(n - 1));
    const double middle = rg_stat_quantile_sorted(scratch, (size_t)(n - 1), 0.5);
    for (int i = 0; i + 1 < n; i++)
        scratch[i] = fabs(scratch[i] - middle);
    rg_stat_sort(scratch, (size_t)(n - 1));
    const double mad = rg_stat_quantile_sorted(scratch, (size_t)(n - 1), 0.5);
    return fmax(stated, 1.4826 * mad / sqrt(2));
}

typedef struct rg_steps {
    const double *y;
    const int *index; /* of the point in the series */
    double noise, tolerance;
    rg_history_series *series;
    double strength[RG_HISTORY_CHANGES];
} rg_steps;

static void rg_step_keep(rg_steps *k, int at, double ratio, double strength)
{
    rg_history_series *s = k->series;
    int slot = s->change_count;
    if (slot == RG_HISTORY_CHANGES) { /* full: the weakest goes */
        slot = 0;
        for (int i = 1; i < RG_HISTORY_CHANGES; i++)
            if (k->strength[i] < k->strength[slot])
                slot = i;
        if (k->strength[slot] >= strength)
            return;
    } else {
        s->change_count++;
    }
    s->changes[slot].at = k->index[at];
    s->changes[slot].ratio = ratio;
    k->strength[slot] = strength;
}

/* Best split of y[from, to) by standard errors of the difference of means; recurse on both parts.
 */
static void rg_step_find(rg_steps *k, int from, int to, int depth)
{
    if (to - from < 4 || depth > 12)
        return;
    double total = 0, left = 0, best = 0;
    int at = -1;
    for (int i = from; i < to; i++)
        total += k->y[i];
    for (int i = from; i + 2 < to; i++) {
        left += k->y[i];
        const int l = i - from + 1, r = to - from - l;
        if (l < 2)
            continue;
        const double step = (total - left) / r - left / l;
        const double score = fabs(step) / (k->noise * sqrt(1.0 / l + 1.0 / r));
        if (score > best) {
            best = score;
            at = i + 1;
        }
    }
    if (at < 0 || best < 4)
        return;
    double a = 0, b = 0;
    for (int i = from; i < at; i++)
        a += k->y[i] / (at - from);
    for (int i = at; i < to; i++)
        b += k->y[i] / (to - at);
    if (fabs(b - a) < log1p(k->tolerance))
        return;
    rg_step_keep(k, at, exp(b - a), best);
    rg_step_find(k, from, at, depth + 1);
    rg_step_find(k, at, to, depth + 1);
}

static void rg_series_steps(rg_history_series *s, const double *y, const int *index, int n,
                            double tolerance)
{
    rg_steps k = {.y = y, .index = index, .noise = s->noise, .tolerance = tolerance, .series = s};
    rg_step_find(&k, 0, n, 0);
    for (int i = 1; i < s->change_count; i++) /* oldest first */
        for (int j = i; j > 0 && s->changes[j].at < s->changes[j - 1].at; j--) {
            const int at = s->changes[j].at;
            const double ratio = s->changes[j].ratio;
            s->changes[j] = s->changes[j - 1];
            s->changes[j - 1].at = at;
            s->changes[j - 1].ratio = ratio;
        }
}

/* Present level against the best one. y may be of times or of cycles. */
static double rg_series_drift(const double *y, int n, double noise, double freedom, double *p,
                              int *best_at)
{
    const double now = rg_median3(y + n - RG_HISTORY_WINDOW);
    double best = INFINITY;
    *best_at = 0;
    const int windows = n - 2 * RG_HISTORY_WINDOW + 1;
    for (int i = 0; i < windows; i++) {
        const double level = rg_median3(y + i);
        if (level < best) {
            best = level;
            *best_at = i;
        }
    }
    const double t = (now - best) / (noise * sqrt(2 * 0.449));
    *p = fmin(1, windows * gsl_cdf_tdist_Q(t, freedom));
    return now - best;
}

/* The points of a series that count, as logarithms. */
typedef struct rg_course {
    double *y, *cycles, *error, *scratch;
    int *index; /* of the point in the series */
    int n;
    bool clocks; /* every clock is known */
    double freedom;
} rg_course;

static rg_status rg_course_of(rg_arena *arena, rg_history_series *s, rg_course *c, rg_err *err)
{
    *c = (rg_course){.y = RG_NEW(arena, double, s->count, err),
                     .cycles = RG_NEW(arena, double, s->count, err),
                     .error = RG_NEW(arena, double, s->count, err),
                     .scratch = RG_NEW(arena, double, s->count, err),
                     .index = RG_NEW(arena, int, s->count, err),
                     .clocks = true};
    if (c->y == NULL || c->cycles == NULL || c->error == NULL || c->scratch == NULL ||
        c->index == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < s->count; i++) {
        const rg_history_point *point = &s->points[i];
        if (point->throttled)
            continue;
        const int n = c->n++;
        c->y[n] = log(point->centre);
        c->clocks = c->clocks && point->clock_hz > 0;
        c->cycles[n] = c->clocks ? c->y[n] + log(point->clock_hz) : NAN;
        c->error[n] = isfinite(point->error) ? point->error : RG_GUARD_SINGLE;
        c->index[n] = i;
    }
    s->used = c->n;
    s->drift = s->p_drift = NAN;
    s->change_count = 0;
    s->drifted = false;
    s->noise = c->n >= 4 ? rg_series_noise(c->y, c->error, c->n, c->scratch) : NAN;
    c->freedom = fmax(2, (c->n - 1) / 2.0);
    return RG_OK;
}

/* The noise of each series towards that of all. */
static rg_status rg_courses_squeeze(rg_arena *arena, rg_history_series *series, rg_course *courses,
                                    int count, rg_err *err)
{
    double *variance = RG_NEW(arena, double, count, err),
           *freedom = RG_NEW(arena, double, count, err);
    if (variance == NULL || freedom == NULL)
        return RG_ERR_LIMIT;
    int n = 0;
    for (int i = 0; i < count; i++)
        if (series[i].noise > 0) {
            variance[n] = series[i].noise * series[i].noise;
            freedom[n++] = courses[i].freedom;
        }
    double v, d;
    if (!rg_stat_variance_prior(variance, freedom, n, &v, &d))
        return RG_OK;
    for (int i = 0; i < count; i++)
        if (series[i].noise > 0) {
            const double own = series[i].noise * series[i].noise, f = courses[i].freedom;
            series[i].noise = sqrt((d * v + f * own) / (d + f));
            courses[i].freedom = d + f;
        }
    return RG_OK;
}

static void rg_series_analyse(rg_history_series *s, const rg_course *c, double tolerance)
{
    if (c->n < 4)
        return;
    rg_series_steps(s, c->y, c->index, c->n, tolerance);
    if (c->n < 2 * RG_HISTORY_WINDOW)
        return;
    int best;
    s->drift = expm1(rg_series_drift(c->y, c->n, s->noise, c->freedom, &s->p_drift, &best));
    if (c->clocks) { /* what the clock explains is no drift of the kernel */
        double p;
        int at;
        const double noise = rg_series_noise(c->cycles, c->error, c->n, c->scratch);
        const double in_cycles =
            rg_series_drift(c->cycles, c->n, fmax(noise, s->noise), c->freedom, &p, &at);
        if (in_cycles < log1p(s->drift))
            s->p_drift = fmax(s->p_drift, in_cycles > log1p(tolerance) ? p : 1);
    }
    s->best_at = c->index[best];
}

rg_status rg_history_analyse(rg_arena *arena, rg_history_series *series, int count,
                             double tolerance, double alpha, rg_err *err)
{
    double *p = RG_NEW(arena, double, count, err), *adjusted = RG_NEW(arena, double, count, err);
    int *order = RG_NEW(arena, int, count, err), *which = RG_NEW(arena, int, count, err);
    rg_course *courses = RG_NEW(arena, rg_course, count, err);
    if (p == NULL || adjusted == NULL || order == NULL || which == NULL || courses == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < count; i++)
        RG_TRY(rg_course_of(arena, &series[i], &courses[i], err));
    RG_TRY(rg_courses_squeeze(arena, series, courses, count, err));
    int m = 0;
    for (int i = 0; i < count; i++) {
        rg_series_analyse(&series[i], &courses[i], tolerance);
        if (!isnan(series[i].p_drift)) {
            p[m] = series[i].p_drift;
            which[m++] = i;
        }
    }
    rg_stat_holm(p, m, adjusted, order);
    for (int k = 0; k < m; k++) {
        rg_history_series *s = &series[which[k]];
        s->p_drift = adjusted[k];
        s->drifted = adjusted[k] < alpha && s->drift > tolerance;
    }
    return RG_OK;
}

/* Baseline --------------------------------------------------------------------------------------
 */

static void rg_series_side(const rg_history_series *s, const int *at, int n, rg_side *side)
{
    double y[5], within = 0, clocks = 0;
    for (int i = 0; i < n; i++) {
        y[i] = log(s->points[at[i]].centre);
        within += s->points[at[i]].error * s->points[at[i]].error / n;
        clocks += s->points[at[i]].clock_hz / n;
    }
    (void)clocks;
    const double deviation = rg_stat_deviation(y, (size_t)n);
    rg_stat_sort(y, (size_t)n);
    const double centre = rg_stat_quantile_sorted(y, (size_t)n, 0.5);
    *side = (rg_side){.usable = true,
                      .lag1 = NAN,
                      .time = 1,
                      .centre = exp(centre),
                      .q1 = NAN,
                      .q3 = NAN,
                      .least = exp(y[0]),
                      .count = n,
                      .effective = n,
                      .processes = n,
                      .between = n >= 3 ? deviation : NAN,
                      .dispersion = NAN,
                      .modes = 1};
    side->mode[0] = side->mode[1] = side->centre;
    side->error = sqrt(within / n);
    side->freedom = 10 * n; /* each point is a median of many samples */
    if (n >= 3 && 1.2 * deviation / sqrt(n) > side->error) {
        side->error = 1.2 * deviation / sqrt(n);
        side->freedom = n - 1;
    }
    const double half = gsl_cdf_tdist_Pinv(0.975, side->freedom) * side->error;
    side->low = exp(centre - half);
    side->high = exp(centre + half);
}

rg_status rg_history_baseline(rg_arena *arena, const rg_history_series *series, int count,
                              const char *skip_digest, const rg_run *like, rg_baseline **out,
                              rg_err *err)
{
    enum { LAST = 5 };
    rg_baseline *b = RG_NEW(arena, rg_baseline, 1, err);
    if (b == NULL)
        return RG_ERR_LIMIT;
    *b = (rg_baseline){.path = NULL,
                       .tool = like->tool,
                       .device = like->device,
                       .driver = "",
                       .ecc = "",
                       .clocks = ""};
    b->entries = RG_NEW(arena, rg_base_entry, count, err);
    if (b->entries == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < count; i++) {
        const rg_history_series *s = &series[i];
        int at[LAST], n = 0;
        double clock = 0;
        for (int k = s->count - 1; k >= 0 && n < LAST; k--) {
            if (s->points[k].throttled ||
                (skip_digest != NULL && strcmp(s->points[k].digest, skip_digest) == 0))
                continue;
            at[n++] = k;
            clock += s->points[k].clock_hz;
        }
        if (n == 0)
            continue;
        rg_base_entry *e = &b->entries[b->count++];
        *e = (rg_base_entry){.kernel = s->kernel,
                             .problem = s->problem,
                             .dtype = s->dtype,
                             .cache = "",
                             .rate_unit = s->rate_unit,
                             .clock_hz = clock / n,
                             .cycles = NAN,
                             .flops = NAN,
                             .model_bytes = NAN,
                             .dram_bytes = NAN,
                             .registers = NAN,
                             .spill_bytes = NAN,
                             .shared_bytes = NAN,
                             .blocks_per_sm = NAN,
                             .max_slowdown = NAN,
                             .from = "history"};
        rg_series_side(s, at, n, &e->side);
    }
    *out = b;
    return RG_OK;
}

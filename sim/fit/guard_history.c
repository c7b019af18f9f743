/* fit/guard_history.c: the SQLite side of the history, and what can be learnt from it. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard_history.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "core/stat.h"

struct rg_history {
    sqlite3 *db;
    const char *path;
    rg_arena *arena;
};

static const char rg_schema[] =
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, label TEXT NOT NULL, digest TEXT NOT NULL UNIQUE,"
    " date TEXT NOT NULL, tool TEXT NOT NULL, device TEXT NOT NULL, driver TEXT NOT NULL,"
    " clocks TEXT NOT NULL);"
    "CREATE TABLE points(run INTEGER NOT NULL REFERENCES runs(id), kernel TEXT NOT NULL,"
    " problem TEXT NOT NULL, dtype TEXT NOT NULL, rate_unit TEXT NOT NULL, centre REAL NOT NULL,"
    " error REAL NOT NULL, processes REAL NOT NULL, samples REAL, clock_hz REAL, throttled INTEGER"
    " NOT NULL, PRIMARY KEY(kernel, problem, dtype, run));"
    "CREATE TABLE accepted(pattern TEXT NOT NULL, after_run INTEGER NOT NULL);"
    "PRAGMA user_version = 1;";

static rg_status rg_db_fail(rg_history *h, rg_err *err)
{
    const int code = sqlite3_errcode(h->db);
    const rg_status status =
        code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? RG_ERR_INPUT : RG_ERR_IO;
    return rg_fail(err, status, (rg_pos){h->path, 0, 0}, "history: %s", sqlite3_errmsg(h->db));
}

static rg_status rg_db_run(rg_history *h, const char *sql, rg_err *err)
{
    return sqlite3_exec(h->db, sql, NULL, NULL, NULL) == SQLITE_OK ? RG_OK : rg_db_fail(h, err);
}

static void rg_db_close(void *db)
{
    sqlite3_close(db);
}

rg_status rg_history_open(rg_arena *arena, const char *path, rg_history **out, rg_err *err)
{
    rg_history *h = RG_NEW(arena, rg_history, 1, err);
    if (h == NULL)
        return RG_ERR_LIMIT;
    h->arena = arena;
    h->path = rg_arena_strdup(arena, path, err);
    if (h->path == NULL)
        return RG_ERR_LIMIT;
    const int code =
        sqlite3_open_v2(path, &h->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    RG_TRY(rg_arena_defer(arena, rg_db_close, h->db, err));
    if (code != SQLITE_OK)
        return rg_db_fail(h, err);
    sqlite3_busy_timeout(h->db, 10000);
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(h->db, "PRAGMA user_version", -1, &s, NULL) != SQLITE_OK)
        return rg_db_fail(h, err);
    if (sqlite3_step(s) != SQLITE_ROW) {
        sqlite3_finalize(s);
        return rg_db_fail(h, err);
    }
    const int version = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    if (version == 0) {
        if (sqlite3_prepare_v2(h->db, "SELECT 1 FROM sqlite_master LIMIT 1", -1, &s, NULL) !=
            SQLITE_OK)
            return rg_db_fail(h, err);
        const bool used = sqlite3_step(s) == SQLITE_ROW;
        sqlite3_finalize(s);
        if (used)
            return rg_fail(err, RG_ERR_INPUT, (rg_pos){h->path, 0, 0},
                           "a SQLite file, but no history of ridge guard");
        RG_TRY(rg_db_run(h, "BEGIN IMMEDIATE", err));
        RG_TRY(rg_db_run(h, rg_schema, err));
        RG_TRY(rg_db_run(h, "COMMIT", err));
    } else if (version != 1) {
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){h->path, 0, 0},
                       "history of version '%d'; this ridge reads version 1", version);
    }
    *out = h;
    return RG_OK;
}

static void rg_bind_real(sqlite3_stmt *s, int at, double value)
{
    if (isfinite(value))
        sqlite3_bind_double(s, at, value);
    else
        sqlite3_bind_null(s, at);
}

static rg_status rg_history_insert(rg_history *h, const rg_run *run, const rg_baseline *sides,
                                   const char *label, const char *digest, rg_err *err)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(h->db,
                           "INSERT INTO runs(label, digest, date, tool, device, driver, clocks)"
                           " VALUES(?,?,?,?,?,?,?)",
                           -1, &s, NULL) != SQLITE_OK)
        return rg_db_fail(h, err);
    const char *const texts[] = {label,       digest,      run->date,  run->tool,
                                 run->device, run->driver, run->clocks};
    for (int i = 0; i < 7; i++)
        sqlite3_bind_text(s, i + 1, texts[i], -1, SQLITE_TRANSIENT);
    int code = sqlite3_step(s);
    sqlite3_finalize(s);
    if (code != SQLITE_DONE)
        return rg_db_fail(h, err);
    const sqlite3_int64 id = sqlite3_last_insert_rowid(h->db);
    if (sqlite3_prepare_v2(h->db, "INSERT INTO points VALUES(?,?,?,?,?,?,?,?,?,?,?)", -1, &s,
                           NULL) != SQLITE_OK)
        return rg_db_fail(h, err);
    for (int i = 0; i < sides->count; i++) {
        const rg_base_entry *e = &sides->entries[i];
        if (!e->side.usable)
            continue;
        sqlite3_bind_int64(s, 1, id);
        sqlite3_bind_text(s, 2, e->kernel, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(s, 3, e->problem, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(s, 4, e->dtype, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(s, 5, e->rate_unit == NULL ? "" : e->rate_unit, -1, SQLITE_TRANSIENT);
        sqlite3_bind_double(s, 6, e->side.centre);
        sqlite3_bind_double(s, 7, e->side.error);
        sqlite3_bind_double(s, 8, e->side.processes);
        rg_bind_real(s, 9, e->side.count);
        rg_bind_real(s, 10, e->clock_hz);
        sqlite3_bind_int(s, 11, e->throttled != NULL);
        code = sqlite3_step(s);
        sqlite3_reset(s);
        if (code != SQLITE_DONE) {
            sqlite3_finalize(s);
            return rg_db_fail(h, err);
        }
    }
    sqlite3_finalize(s);
    return RG_OK;
}

rg_status rg_history_add(rg_history *h, const rg_run *run, const rg_baseline *sides,
                         const char *label, const char *digest, bool *known, rg_err *err)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(h->db, "SELECT 1 FROM runs WHERE digest = ?", -1, &s, NULL) != SQLITE_OK)
        return rg_db_fail(h, err);
    sqlite3_bind_text(s, 1, digest, -1, SQLITE_TRANSIENT);
    *known = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    if (*known)
        return RG_OK;
    RG_TRY(rg_db_run(h, "BEGIN IMMEDIATE", err));
    const rg_status status = rg_history_insert(h, run, sides, label, digest, err);
    if (status != RG_OK) {
        (void)rg_db_run(h, "ROLLBACK", NULL);
        return status;
    }
    return rg_db_run(h, "COMMIT", err);
}

rg_status rg_history_accept(rg_history *h, const char *pattern, rg_err *err)
{
    sqlite3_stmt *s;
    /* The present level is held by the runs of the last window. */
    if (sqlite3_prepare_v2(h->db,
                           "INSERT INTO accepted SELECT ?, COALESCE(MIN(id), 1) - 1 FROM"
                           " (SELECT id FROM runs ORDER BY id DESC LIMIT 1)",
                           -1, &s, NULL) != SQLITE_OK)
        return rg_db_fail(h, err);
    sqlite3_bind_text(s, 1, pattern, -1, SQLITE_TRANSIENT);
    const int code = sqlite3_step(s);
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? RG_OK : rg_db_fail(h, err);
}

/* Loading ---------------------------------------------------------------------------------------
 */

typedef struct rg_accepted {
    const char *pattern;
    int64_t after;
} rg_accepted;

static rg_status rg_history_accepted(rg_arena *arena, rg_history *h, rg_accepted **out, int *count,
                                     rg_err *err)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(h->db, "SELECT pattern, after_run FROM accepted", -1, &s, NULL) !=
        SQLITE_OK)
        return rg_db_fail(h, err);
    int capacity = 0;
    *count = 0;
    *out = NULL;
    while (sqlite3_step(s) == SQLITE_ROW) {
        if (*count == capacity) {
            capacity = capacity == 0 ? 16 : 2 * capacity;
            rg_accepted *grown = RG_NEW(arena, rg_accepted, capacity, err);
            if (grown == NULL) {
                sqlite3_finalize(s);
                return RG_ERR_LIMIT;
            }
            if (*count > 0)
                memcpy(grown, *out, (size_t)*count * sizeof *grown);
            *out = grown;
        }
        (*out)[*count].pattern =
            rg_arena_strdup(arena, (const char *)sqlite3_column_text(s, 0), err);
        (*out)[(*count)++].after = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    return RG_OK;
}

static const char *rg_column_copy(rg_arena *arena, sqlite3_stmt *s, int column, rg_err *err)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    return rg_arena_strdup(arena, text == NULL ? "" : text, err);
}

static rg_status rg_series_point(rg_arena *arena, rg_history_series *series, int *capacity,
                                 const rg_history_point *point, rg_err *err)
{
    if (series->count == *capacity) {
        *capacity = *capacity == 0 ? 32 : 2 * *capacity;
        rg_history_point *grown = RG_NEW(arena, rg_history_point, *capacity, err);
        if (grown == NULL)
            return RG_ERR_LIMIT;
        if (series->count > 0)
            memcpy(grown, series->points, (size_t)series->count * sizeof *grown);
        series->points = grown;
    }
    series->points[series->count++] = *point;
    return RG_OK;
}

typedef struct rg_series_list {
    rg_history_series *items;
    int count, capacity, point_capacity;
    int64_t after; /* runs up to this one are accepted history */
} rg_series_list;

static rg_status rg_series_row(rg_arena *arena, rg_series_list *l, sqlite3_stmt *s,
                               const rg_accepted *accepted, int accepted_count, rg_err *err)
{
    const char *key[3];
    for (int i = 0; i < 3; i++)
        if ((key[i] = (const char *)sqlite3_column_text(s, i)) == NULL)
            return RG_OK;
    rg_history_series *now = l->count > 0 ? &l->items[l->count - 1] : NULL;
    if (now == NULL || strcmp(now->kernel, key[0]) != 0 || strcmp(now->problem, key[1]) != 0 ||
        strcmp(now->dtype, key[2]) != 0) {
        if (l->count == l->capacity) {
            l->capacity = l->capacity == 0 ? 64 : 2 * l->capacity;
            rg_history_series *grown = RG_NEW(arena, rg_history_series, l->capacity, err);
            if (grown == NULL)
                return RG_ERR_LIMIT;
            if (l->count > 0)
                memcpy(grown, l->items, (size_t)l->count * sizeof *grown);
            l->items = grown;
        }
        now = &l->items[l->count++];
        *now = (rg_history_series){.kernel = rg_column_copy(arena, s, 0, err),
                                   .problem = rg_column_copy(arena, s, 1, err),
                                   .dtype = rg_column_copy(arena, s, 2, err),
                                   .drift = NAN,
                                   .p_drift = NAN};
        const char *unit = rg_column_copy(arena, s, 3, err);
        if (now->kernel == NULL || now->problem == NULL || now->dtype == NULL || unit == NULL)
            return RG_ERR_LIMIT;
        now->rate_unit = unit[0] != '\0' ? unit : NULL;
        l->point_capacity = 0;
        l->after = 0;
        for (int i = 0; i < accepted_count; i++)
            if (accepted[i].after > l->after && rg_pattern_fits(accepted[i].pattern, now->kernel))
                l->after = accepted[i].after;
    }
    const rg_history_point point = {
        .run = sqlite3_column_int64(s, 4),
        .label = rg_column_copy(arena, s, 5, err),
        .digest = rg_column_copy(arena, s, 6, err),
        .centre = sqlite3_column_double(s, 7),
        .error = sqlite3_column_double(s, 8),
        .processes = sqlite3_column_double(s, 9),
        .clock_hz = sqlite3_column_type(s, 10) == SQLITE_NULL ? NAN : sqlite3_column_double(s, 10),
        .throttled = sqlite3_column_int(s, 11) != 0};
    if (point.label == NULL || point.digest == NULL)
        return RG_ERR_LIMIT;
    if (point.run <= l->after || !(point.centre > 0) || !isfinite(point.centre))
        return RG_OK;
    return rg_series_point(arena, now, &l->point_capacity, &point, err);
}

rg_status rg_history_load(rg_arena *arena, rg_history *h, const char *device, const char *tool,
                          rg_history_series **out, int *count, rg_err *err)
{
    rg_accepted *accepted = NULL;
    int accepted_count = 0;
    RG_TRY(rg_history_accepted(arena, h, &accepted, &accepted_count, err));
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(
            h->db,
            "SELECT kernel, problem, dtype, rate_unit, runs.id, label, digest, centre,"
            " error, processes, clock_hz, throttled FROM points JOIN runs ON"
            " runs.id = points.run WHERE (?1 = '' OR device = ?1) AND"
            " (?2 = '' OR tool = ?2) ORDER BY kernel, problem, dtype, runs.id",
            -1, &s, NULL) != SQLITE_OK)
        return rg_db_fail(h, err);
    sqlite3_bind_text(s, 1, device, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 2, tool, -1, SQLITE_TRANSIENT);
    rg_series_list list = {0};
    rg_status status = RG_OK;
    int code;
    while (status == RG_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
        status = rg_series_row(arena, &list, s, accepted, accepted_count, err);
    sqlite3_finalize(s);
    if (status != RG_OK)
        return status;
    if (code != SQLITE_DONE)
        return rg_db_fail(h, err);
    *out = list.items;
    *count = list.count;
    return RG_OK;
}

/* Analysis --------------------------------------------------------------------------------------
 */

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

/* fit/guard_history.c: the SQLite side of the history. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard_history.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

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

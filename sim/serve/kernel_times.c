/* serve/kernel_times.c: interpolation of given operator times. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/kernel_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/file.h"

/* A piecewise linear function; the last two points carry it on above. */
typedef struct line {
    double *x, *y;
    int count;
} line;

enum { MAX_AXIS = 512, AXES = 4, MAX_LAYERS = 64, NAME_SIZE = 48 };

/* Attention: times on a grid over (prefill chunk, prefill KV, decodes, decode KV). */
typedef struct grid {
    double *axis[AXES];
    int count[AXES];
    double *time; /* NAN where the table has no row */
} grid;

struct rg_kernel_times {
    rg_kernel_times_use use;
    line dense;     /* all dense layers of a pass together, by tokens, s */
    line heads;     /* by sequences, s */
    line moe;       /* one MoE layer, by tokens, s; or: */
    grid moe_grid;  /* by tokens and experts touched */
    grid attention; /* one layer, s */
    double attention_floor;
    const char *note;
};

static double line_at(const line *l, double x)
{
    if (l->count == 0)
        return 0;
    if (l->count == 1)
        return l->y[0];
    int low = 0, high = l->count - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (l->x[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    if (x < l->x[0])
        return l->y[0]; /* below the grid: the least size */
    const double t = (x - l->x[low]) / (l->x[high] - l->x[low]);
    const double y = l->y[low] + (l->y[high] - l->y[low]) * t;
    return y > 0 ? y : 0;
}

/* ---- loading */

typedef struct row {
    char name[NAME_SIZE];
    double x, time;
} row;

typedef struct rows {
    row *items;
    int count, room;
} rows;

static rg_status rows_add(rg_arena *arena, rows *to, const char *name, double x, double time,
                          rg_err *err)
{
    if (to->count == to->room) {
        const int room = to->room ? to->room * 2 : 256;
        row *items = RG_NEW(arena, row, room, err);
        if (!items)
            return RG_ERR_LIMIT;
        if (to->count)
            memcpy(items, to->items, (size_t)to->count * sizeof *items);
        to->items = items;
        to->room = room;
    }
    row *r = &to->items[to->count++];
    *r = (row){.x = x, .time = time};
    strncpy(r->name, name, NAME_SIZE - 1);
    return RG_OK;
}

static int any_column(const rg_csv *csv, const char *a, const char *b)
{
    const int at = rg_csv_find(csv, a);
    return at >= 0 || !b ? at : rg_csv_find(csv, b);
}

static rg_status need(const rg_csv *csv, const char *a, const char *b, int *out, rg_err *err)
{
    *out = any_column(csv, a, b);
    return *out >= 0 ? RG_OK : rg_csv_column(csv, a, out, err);
}

static rg_status read_time(rg_csv *csv, int column, double *seconds, rg_err *err)
{
    double us;
    RG_TRY(rg_csv_real(csv, column, &us, err));
    if (!(us >= 0 && us < 1e12))
        return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(csv, column),
                       "time '%s' us is negative or too large", rg_csv_text(csv, column));
    *seconds = us * 1e-6;
    return RG_OK;
}

static rg_status read_rows(rg_arena *arena, const char *path, const char *size_column,
                           const char *other_column, rows *out, rg_err *err)
{
    rg_csv *csv;
    int layer, size, time;
    RG_TRY(rg_csv_open(arena, path, &csv, err));
    rg_status status = RG_OK;
    layer = rg_csv_find(csv, "layer");
    status = need(csv, size_column, other_column, &size, err);
    if (status == RG_OK)
        status = need(csv, "time_us", NULL, &time, err);
    for (bool more = true; status == RG_OK;) {
        double x, seconds;
        status = rg_csv_next(csv, &more, err);
        if (status != RG_OK || !more)
            break;
        status = rg_csv_real(csv, size, &x, err);
        if (status == RG_OK)
            status = read_time(csv, time, &seconds, err);
        if (status == RG_OK)
            status =
                rows_add(arena, out, layer >= 0 ? rg_csv_text(csv, layer) : "", x, seconds, err);
    }
    rg_csv_close(csv);
    if (status == RG_OK && out->count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 0, 0}, "no row in it");
    return status;
}

static int by_name_and_size(const void *a, const void *b)
{
    const row *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    return names ? names : (x->x > y->x) - (x->x < y->x);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sum over layer names of weight(name) x time, on the union of their sizes. */
static rg_status add_up(rg_arena *arena, rows *from, double (*weight)(const void *, const char *),
                        const void *context, line *out, rg_err *err)
{
    qsort(from->items, (size_t)from->count, sizeof *from->items, by_name_and_size);
    out->x = RG_NEW(arena, double, from->count, err);
    out->y = RG_NEW(arena, double, from->count, err);
    double *x = RG_NEW(arena, double, from->count, err),
           *y = RG_NEW(arena, double, from->count, err);
    if (!out->x || !out->y || !x || !y)
        return RG_ERR_LIMIT;
    for (int i = 0; i < from->count; i++)
        out->x[i] = from->items[i].x;
    qsort(out->x, (size_t)from->count, sizeof *out->x, by_value);
    int unique = 0;
    for (int i = 0; i < from->count; i++)
        if (unique == 0 || out->x[i] != out->x[unique - 1])
            out->x[unique++] = out->x[i];
    out->count = unique;
    for (int start = 0; start < from->count;) {
        line one = {x, y, 0};
        int end = start;
        for (; end < from->count && strcmp(from->items[end].name, from->items[start].name) == 0;
             end++) {
            if (one.count > 0 && x[one.count - 1] == from->items[end].x)
                continue; /* measured twice: the first counts */
            x[one.count] = from->items[end].x;
            y[one.count++] = from->items[end].time;
        }
        const double w = weight(context, from->items[start].name);
        for (int i = 0; i < unique; i++)
            out->y[i] += w * line_at(&one, out->x[i]);
        start = end;
    }
    return RG_OK;
}

/* How often a layer runs in one pass. */
static double dense_weight(const void *context, const char *name)
{
    const rg_kernel_times_use *use = context;
    const double layers = (double)use->layers, dense = (double)(use->layers - use->moe_layers);
    if (strcmp(name, "embedding") == 0 || strcmp(name, "final_layernorm") == 0)
        return 1;
    if (strcmp(name, "layernorm") == 0)
        return 2 * layers; /* before attention and before the FFN */
    if (strcmp(name, "gate_up_proj") == 0 || strcmp(name, "act_fn") == 0 ||
        strcmp(name, "down_proj") == 0)
        return dense;
    return layers;
}

static double once(const void *context, const char *name)
{
    (void)context;
    (void)name;
    return 1;
}

static int axis_find(const grid *g, int axis, double value)
{
    int low = 0, high = g->count[axis] - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (g->axis[axis][middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t cell(const grid *g, const int at[AXES])
{
    size_t index = 0;
    for (int a = 0; a < AXES; a++)
        index = index * (size_t)g->count[a] + (size_t)at[a];
    return index;
}

typedef struct point {
    double at[AXES], time;
} point;

static rg_status make_grid(rg_arena *arena, const char *path, const point *points, int count,
                           grid *out, rg_err *err)
{
    size_t cells = 1;
    for (int a = 0; a < AXES; a++) {
        double *values = RG_NEW(arena, double, count, err);
        if (!values)
            return RG_ERR_LIMIT;
        for (int i = 0; i < count; i++)
            values[i] = points[i].at[a];
        qsort(values, (size_t)count, sizeof *values, by_value);
        int unique = 0;
        for (int i = 0; i < count; i++)
            if (unique == 0 || values[i] != values[unique - 1])
                values[unique++] = values[i];
        if (unique > MAX_AXIS)
            return rg_fail(err, RG_ERR_LIMIT, (rg_pos){path, 0, 0},
                           "'%d' different values in one column; at most %d", unique, MAX_AXIS);
        out->axis[a] = values;
        out->count[a] = unique;
        cells *= (size_t)unique;
    }
    if (cells > (size_t)1 << 24)
        return rg_fail(err, RG_ERR_LIMIT, (rg_pos){path, 0, 0},
                       "a grid of '%zu' cells is too large", cells);
    out->time = RG_NEW(arena, double, cells, err);
    if (!out->time)
        return RG_ERR_LIMIT;
    for (size_t i = 0; i < cells; i++)
        out->time[i] = NAN;
    for (int i = 0; i < count; i++) {
        int at[AXES];
        for (int a = 0; a < AXES; a++)
            at[a] = axis_find(out, a, points[i].at[a]);
        const size_t c = cell(out, at);
        if (isnan(out->time[c]))
            out->time[c] = points[i].time;
    }
    return RG_OK;
}

typedef struct points {
    point *items;
    int count, room;
} points;

static rg_status points_add(rg_arena *arena, points *to, point p, rg_err *err)
{
    if (to->count == to->room) {
        const int room = to->room ? to->room * 2 : 1024;
        point *items = RG_NEW(arena, point, room, err);
        if (!items)
            return RG_ERR_LIMIT;
        if (to->count)
            memcpy(items, to->items, (size_t)to->count * sizeof *items);
        to->items = items;
        to->room = room;
    }
    to->items[to->count++] = p;
    return RG_OK;
}

static rg_status read_attention(rg_arena *arena, const char *path, rg_kernel_times *t, rg_err *err)
{
    rg_csv *csv;
    RG_TRY(rg_csv_open(arena, path, &csv, err));
    int chunk, past, decodes, kv, time;
    points read = {0};
    rg_status status = need(csv, "prefill_chunk", NULL, &chunk, err);
    /* Newer tables give the query-weighted key length, chunk / 2 more than the history. */
    const bool keyed = rg_csv_find(csv, "kv_prefill") < 0 && rg_csv_find(csv, "prefill_key") >= 0;
    if (status == RG_OK)
        status = need(csv, "kv_prefill", "prefill_key", &past, err);
    if (status == RG_OK)
        status = need(csv, "n_decode", NULL, &decodes, err);
    if (status == RG_OK)
        status = need(csv, "kv_decode", NULL, &kv, err);
    if (status == RG_OK)
        status = need(csv, "time_us", NULL, &time, err);
    const int queries = rg_csv_find(csv, "decode_q_len");
    for (bool more = true; status == RG_OK;) {
        point p;
        double query = 1;
        status = rg_csv_next(csv, &more, err);
        if (status != RG_OK || !more)
            break;
        const int columns[AXES] = {chunk, past, decodes, kv};
        for (int a = 0; a < AXES && status == RG_OK; a++)
            status = rg_csv_real(csv, columns[a], &p.at[a], err);
        if (status == RG_OK)
            status = read_time(csv, time, &p.time, err);
        if (status == RG_OK && queries >= 0)
            status = rg_csv_real(csv, queries, &query, err);
        if (status != RG_OK || query != 1)
            continue;
        if (keyed)
            p.at[1] -= p.at[0] / 2;
        if (p.at[0] == 0)
            p.at[1] = 0;
        if (p.at[2] == 0)
            p.at[3] = 0;
        status = points_add(arena, &read, p, err);
    }
    rg_csv_close(csv);
    RG_TRY(status);
    if (read.count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 0, 0}, "no row in it");
    RG_TRY(make_grid(arena, path, read.items, read.count, &t->attention, err));
    t->attention_floor = INFINITY;
    for (int i = 0; i < read.count; i++)
        t->attention_floor =
            read.items[i].time < t->attention_floor ? read.items[i].time : t->attention_floor;
    return RG_OK;
}

static rg_status read_moe(rg_arena *arena, const char *path, rg_kernel_times *t, rg_err *err)
{
    rg_csv *csv;
    RG_TRY(rg_csv_open(arena, path, &csv, err));
    const int experts = rg_csv_find(csv, "activated_experts"), ep = rg_csv_find(csv, "ep");
    int tokens, time;
    rg_status status = need(csv, "tokens", NULL, &tokens, err);
    if (status == RG_OK)
        status = need(csv, "time_us", NULL, &time, err);
    points read = {0};
    rows plain = {0};
    for (bool more = true; status == RG_OK;) {
        point p = {0};
        double group = 1;
        status = rg_csv_next(csv, &more, err);
        if (status != RG_OK || !more)
            break;
        status = rg_csv_real(csv, tokens, &p.at[0], err);
        if (status == RG_OK && experts >= 0)
            status = rg_csv_real(csv, experts, &p.at[1], err);
        if (status == RG_OK && ep >= 0)
            status = rg_csv_real(csv, ep, &group, err);
        if (status == RG_OK)
            status = read_time(csv, time, &p.time, err);
        if (status != RG_OK || group != 1)
            continue;
        status = experts >= 0 ? points_add(arena, &read, p, err)
                              : rows_add(arena, &plain, "moe", p.at[0], p.time, err);
    }
    rg_csv_close(csv);
    RG_TRY(status);
    if (read.count == 0 && plain.count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 0, 0}, "no row in it");
    if (plain.count > 0)
        return add_up(arena, &plain, once, NULL, &t->moe, err);
    return make_grid(arena, path, read.items, read.count, &t->moe_grid, err);
}

static const char *path_in(rg_arena *arena, const char *folder, int64_t tp, const char *file,
                           rg_err *err)
{
    const char *path = rg_arena_printf(arena, err, "%s/%s", folder, file);
    if (path && rg_file_exists(path))
        return path;
    const char *below = rg_arena_printf(arena, err, "%s/tp%lld/%s", folder, (long long)tp, file);
    return below && rg_file_exists(below) ? below : path;
}

rg_status rg_kernel_times_load(rg_arena *arena, const char *folder, const rg_kernel_times_use *use,
                               rg_kernel_times **out, rg_err *err)
{
    rg_kernel_times *t = RG_NEW(arena, rg_kernel_times, 1, err);
    if (!t)
        return RG_ERR_LIMIT;
    t->use = *use;
    rows dense = {0}, heads = {0};
    const char *path = path_in(arena, folder, use->tp, "dense.csv", err);
    RG_TRY(read_rows(arena, path, "tokens", NULL, &dense, err));
    RG_TRY(add_up(arena, &dense, dense_weight, use, &t->dense, err));
    path = path_in(arena, folder, use->tp, "per_sequence.csv", err);
    RG_TRY(read_rows(arena, path, "sequences", "tokens", &heads, err));
    RG_TRY(add_up(arena, &heads, once, use, &t->heads, err));
    path = path_in(arena, folder, use->tp, "attention.csv", err);
    RG_TRY(read_attention(arena, path, t, err));
    path = path_in(arena, folder, use->tp, "moe.csv", err);
    if (use->moe_layers > 0)
        RG_TRY(read_moe(arena, path, t, err));
    /* Names in order, once each, with how often they count. */
    const char *note = "";
    for (int i = 0; i < dense.count; i++)
        if (i == 0 || strcmp(dense.items[i].name, dense.items[i - 1].name) != 0)
            note = rg_arena_printf(arena, err, "%s%s%s x%.0f", note, *note ? ", " : "",
                                   dense.items[i].name, dense_weight(use, dense.items[i].name));
    t->note = note;
    *out = t;
    return note ? RG_OK : RG_ERR_LIMIT;
}

const char *rg_kernel_times_note(const rg_kernel_times *times)
{
    return times->note;
}

void rg_kernel_times_set_reduce(rg_kernel_times *times, double latency_s, double bytes_per_s)
{
    times->use.reduce_latency_s = latency_s;
    times->use.reduce_bytes_per_s = bytes_per_s;
}

/* ---- looking up */

static void bracket(const grid *g, int axis, double value, int *low, double *t)
{
    const int count = g->count[axis];
    if (count == 1) {
        *low = 0;
        *t = 0;
        return;
    }
    int i = axis_find(g, axis, value);
    i = i > 0 ? i - 1 : 0;
    if (i > count - 2)
        i = count - 2;
    *low = i;
    *t = (value - g->axis[axis][i]) / (g->axis[axis][i + 1] - g->axis[axis][i]);
    if (*t < 0 && value < g->axis[axis][0])
        *t = 0;
}

/* Multilinear over two axes of the grid, the others fixed; NAN when a corner is missing. */
static double bilinear(const grid *g, int at[AXES], int a, double x, int b, double y)
{
    int i, j;
    double s, t;
    bracket(g, a, x, &i, &s);
    bracket(g, b, y, &j, &t);
    double value = 0;
    for (int p = 0; p < 2; p++) {
        for (int q = 0; q < 2; q++) {
            const double weight = (p ? s : 1 - s) * (q ? t : 1 - t);
            if (weight == 0)
                continue;
            at[a] = i + p;
            at[b] = j + q;
            value += weight * g->time[cell(g, at)];
        }
    }
    return value;
}

/* Grid index of a value that must be there. */
static int exactly(const grid *g, int axis, double value)
{
    const int i = axis_find(g, axis, value);
    return g->count[axis] > 0 && g->axis[axis][i] == value ? i : -1;
}

static double decode_only(const grid *g, double decodes, double kv)
{
    int at[AXES] = {exactly(g, 0, 0), exactly(g, 1, 0), 0, 0};
    if (at[0] < 0 || at[1] < 0)
        return NAN;
    /* The row "no decodes" is not a decode time. */
    if (decodes < 1)
        return NAN;
    int first = exactly(g, 2, 0);
    if (first >= 0 && g->count[2] > first + 1 && decodes < g->axis[2][first + 1])
        decodes = g->axis[2][first + 1];
    const double least_kv = g->count[3] > 1 && g->axis[3][0] == 0 ? g->axis[3][1] : g->axis[3][0];
    return bilinear(g, at, 2, decodes, 3, kv < least_kv ? least_kv : kv);
}

/* At a fixed key length K = past + chunk / 2 the work of a chunk is chunk x K, so between two
 * chunk sizes the time is nearly linear; past = K - chunk / 2 differs at both ends. */
static double prefill_at(const grid *g, int rest[AXES], double chunk, double past)
{
    const double key = past + chunk / 2;
    int i, at[AXES];
    double s;
    bracket(g, 0, chunk, &i, &s);
    if (g->axis[0][i] == 0) { /* below the least chunk */
        i = i + 1 < g->count[0] ? i + 1 : i;
        s = 0;
        chunk = g->axis[0][i];
    }
    double value = 0;
    for (int p = 0; p < 2; p++) {
        const double weight = p ? s : 1 - s;
        if (weight == 0)
            continue;
        memcpy(at, rest, sizeof at);
        at[0] = i + p;
        const double own_past = key - g->axis[0][i + p] / 2;
        int j;
        double t;
        bracket(g, 1, own_past, &j, &t);
        if (own_past < g->axis[1][0])
            t = g->count[1] > 1 ? (own_past - g->axis[1][0]) / (g->axis[1][1] - g->axis[1][0]) : 0;
        double at_chunk = 0;
        for (int q = 0; q < 2; q++) {
            const double w = q ? t : 1 - t;
            if (w == 0)
                continue;
            at[1] = j + q;
            at_chunk += w * g->time[cell(g, at)];
        }
        value += weight * at_chunk;
    }
    return value;
}

static double prefill_only(const grid *g, double chunk, double past)
{
    int at[AXES] = {0, 0, exactly(g, 2, 0), exactly(g, 3, 0)};
    return at[2] < 0 || at[3] < 0 ? NAN : prefill_at(g, at, chunk, past);
}

static double mixed(const grid *g, double chunk, double past, double decodes, double kv)
{
    int i, j;
    double s, t;
    bracket(g, 2, decodes, &i, &s);
    bracket(g, 3, kv, &j, &t);
    if (g->axis[2][i] == 0 && g->count[2] > i + 2) {
        i++;
        s = 0;
    }
    if (g->axis[3][j] == 0 && g->count[3] > j + 2) {
        j++;
        t = 0;
    }
    double value = 0;
    for (int p = 0; p < 2; p++) {
        for (int q = 0; q < 2; q++) {
            const double weight = (p ? s : 1 - s) * (q ? t : 1 - t);
            if (weight == 0)
                continue;
            int at[AXES] = {0, 0, i + p, j + q};
            value += weight * prefill_at(g, at, chunk, past);
        }
    }
    return value;
}

static double attention_of(const rg_kernel_times *t, const rg_pass *pass)
{
    const grid *g = &t->attention;
    const double decodes = (double)pass->decodes;
    const double kv = pass->decodes ? pass->decode_kv_tokens / decodes : 0;
    double tokens = 0, work = 0, single = 0;
    for (int i = 0; i < pass->chunk_count; i++) {
        const double c = (double)pass->chunks[i].new_tokens,
                     k = (double)pass->chunks[i].past_tokens;
        tokens += c;
        work += c * (k + c / 2);
    }
    if (tokens == 0)
        return decode_only(g, decodes, kv);
    const double past = work / tokens - tokens / 2;
    double prefill;
    if (past < 0) {
        /* Several prompts in one kernel do less work than one chunk of their sum. */
        for (int i = 0; i < pass->chunk_count; i++)
            single += prefill_only(g, (double)pass->chunks[i].new_tokens,
                                   (double)pass->chunks[i].past_tokens) -
                      (i > 0 ? t->attention_floor : 0);
        prefill = single;
    } else {
        prefill = prefill_only(g, tokens, past);
    }
    if (pass->decodes == 0)
        return prefill;
    const double together = past < 0 ? NAN : mixed(g, tokens, past, decodes, kv);
    if (!isnan(together))
        return together;
    return prefill + decode_only(g, decodes, kv) - t->attention_floor;
}

int64_t rg_graph_tokens(int64_t tokens, int64_t largest)
{
    if (tokens > largest || tokens <= 2)
        return tokens;
    const int64_t padded = tokens <= 4     ? 4
                           : tokens <= 256 ? (tokens + 7) / 8 * 8
                                           : (tokens + 15) / 16 * 16;
    return padded <= largest ? padded : tokens;
}

/* Experts touched by so many tokens when routing is even: E (1 - (1 - k/E)^t). */
static double touched(const rg_kernel_times_use *use, double tokens)
{
    const double experts = (double)use->experts;
    return experts * (1 - pow(1 - (double)use->top_k / experts, tokens));
}

rg_kernel_times_parts rg_kernel_times_of(const rg_kernel_times *t, const rg_pass *pass)
{
    const rg_kernel_times_use *use = &t->use;
    int64_t tokens = pass->decodes * (pass->tokens_per_decode > 0 ? pass->tokens_per_decode : 1);
    for (int i = 0; i < pass->chunk_count; i++)
        tokens += pass->chunks[i].new_tokens;
    const int64_t logits = pass->logit_rows ? pass->logit_rows : pass->decodes + pass->chunk_count;
    const double padded =
        (double)(use->pad_to_graphs ? rg_graph_tokens(tokens, use->largest_graph) : tokens);
    rg_kernel_times_parts parts = {.dense_s = line_at(&t->dense, padded),
                                   .head_s = line_at(&t->heads, (double)logits)};
    double attention = attention_of(t, pass);
    if (!(attention > t->attention_floor)) /* also where the table has no rows near */
        attention = t->attention_floor;
    parts.attention_s = attention * (double)use->layers;
    if (use->moe_layers > 0) {
        double one;
        if (t->moe.count > 0) {
            one = line_at(&t->moe, padded);
        } else {
            int at[AXES] = {0};
            one = bilinear(&t->moe_grid, at, 0, padded, 1, touched(use, (double)tokens));
        }
        parts.moe_s = (one > 0 ? one : 0) * (double)use->moe_layers;
    }
    if (use->tp > 1 && use->reduce_bytes_per_s > 0) {
        const double n = (double)use->tp, bytes = padded * (double)use->hidden * 2;
        const double one =
            use->reduce_latency_s + bytes * 2 * (n - 1) / n / use->reduce_bytes_per_s;
        /* After attention and after the FFN of each layer, after the embedding; logits gathered. */
        parts.reduce_s =
            one * (double)(2 * use->layers + 1) + use->reduce_latency_s +
            (double)logits * (double)use->vocab * 2 * (n - 1) / n / use->reduce_bytes_per_s;
    }
    return parts;
}

rg_seconds rg_kernel_times_step(void *kernel_times, const rg_pass *pass)
{
    const rg_kernel_times_parts p = rg_kernel_times_of(kernel_times, pass);
    return RG_S(p.dense_s + p.attention_s + p.head_s + p.moe_s + p.reduce_s);
}

/* serve/kernel_times_load.c: given operator times from the tables of profilers. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "serve/kernel_tables.h"

/* ---- rows as they are read */

rg_status rg_time_rows_add(rg_arena *arena, rg_time_rows *to, const char *name, double x,
                           double time, rg_err *err)
{
    if (to->count == to->room) {
        const int room = to->room ? to->room * 2 : 256;
        rg_time_row *items = RG_NEW(arena, rg_time_row, room, err);
        if (!items)
            return RG_ERR_LIMIT;
        if (to->count)
            memcpy(items, to->items, (size_t)to->count * sizeof *items);
        to->items = items;
        to->room = room;
    }
    rg_time_row *r = &to->items[to->count++];
    *r = (rg_time_row){.x = x, .time = time};
    strncpy(r->name, name, sizeof r->name - 1);
    return RG_OK;
}

rg_status rg_time_points_add(rg_arena *arena, rg_time_points *to, rg_ragged_point p, rg_err *err)
{
    if (to->count == to->room) {
        const int room = to->room ? to->room * 2 : 1024;
        rg_ragged_point *items = RG_NEW(arena, rg_ragged_point, room, err);
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

rg_status rg_time_read(rg_csv *csv, int column, double unit_s, double *seconds, rg_err *err)
{
    double value;
    RG_TRY(rg_csv_real(csv, column, &value, err));
    if (!(value >= 0 && value * unit_s < 1e6))
        return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(csv, column),
                       "time '%s' is negative or too large", rg_csv_text(csv, column));
    *seconds = value * unit_s;
    return RG_OK;
}

rg_status rg_time_table(rg_time_loader *l, const char *file, rg_time_reader *read, rg_err *err)
{
    rg_csv *csv;
    const char *path = rg_time_path(l, file, err);
    if (!path)
        return RG_ERR_LIMIT;
    RG_TRY(rg_csv_open(l->arena, path, &csv, err));
    int64_t taken = 0;
    const rg_status status = read(l, csv, &taken, err);
    rg_csv_close(csv);
    RG_TRY(status);
    return taken > 0 ? RG_OK : rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 0, 0}, "no row in it");
}

const char *rg_time_path(const rg_time_loader *l, const char *file, rg_err *err)
{
    const char *path = rg_arena_printf(l->arena, err, "%s/%s", l->folder, file);
    if (path && rg_file_exists(path))
        return path;
    const char *below =
        rg_arena_printf(l->arena, err, "%s/tp%lld/%s", l->folder, (long long)l->use->tp, file);
    return below && rg_file_exists(below) ? below : path;
}

/* ---- tables by kind of layer: dense.csv, per_sequence.csv, attention.csv, moe.csv */

static rg_status by_layer(rg_time_loader *l, rg_csv *csv, int size, rg_time_rows *out,
                          int64_t *taken, rg_err *err)
{
    int time;
    const int layer = rg_csv_find(csv, "layer");
    RG_TRY(rg_csv_column(csv, "time_us", &time, err));
    for (bool more = true;; ++*taken) {
        double x, seconds;
        RG_TRY(rg_csv_next(csv, &more, err));
        if (!more)
            return RG_OK;
        RG_TRY(rg_csv_real(csv, size, &x, err));
        RG_TRY(rg_time_read(csv, time, 1e-6, &seconds, err));
        RG_TRY(rg_time_rows_add(l->arena, out, layer >= 0 ? rg_csv_text(csv, layer) : "", x,
                                seconds, err));
    }
}

static rg_status read_dense(rg_time_loader *l, rg_csv *csv, int64_t *taken, rg_err *err)
{
    int tokens;
    RG_TRY(rg_csv_column(csv, "tokens", &tokens, err));
    return by_layer(l, csv, tokens, &l->dense, taken, err);
}

static rg_status read_heads(rg_time_loader *l, rg_csv *csv, int64_t *taken, rg_err *err)
{
    int sequences = rg_csv_find(csv, "tokens");
    if (sequences < 0)
        RG_TRY(rg_csv_column(csv, "sequences", &sequences, err));
    return by_layer(l, csv, sequences, &l->heads, taken, err);
}

static rg_status read_attention(rg_time_loader *l, rg_csv *csv, int64_t *taken, rg_err *err)
{
    int chunk, past, decodes, kv, time;
    /* Newer tables give the query-weighted key length, chunk / 2 more than the history. */
    const bool keyed = rg_csv_find(csv, "kv_prefill") < 0 && rg_csv_find(csv, "prefill_key") >= 0;
    RG_TRY(rg_csv_column(csv, "prefill_chunk", &chunk, err));
    RG_TRY(rg_csv_column(csv, keyed ? "prefill_key" : "kv_prefill", &past, err));
    RG_TRY(rg_csv_column(csv, "n_decode", &decodes, err));
    RG_TRY(rg_csv_column(csv, "kv_decode", &kv, err));
    RG_TRY(rg_csv_column(csv, "time_us", &time, err));
    const int queries = rg_csv_find(csv, "decode_q_len"), layer = rg_csv_find(csv, "layer");
    const char *kind = NULL;
    for (bool more = true;;) {
        rg_ragged_point p;
        double query = 1;
        RG_TRY(rg_csv_next(csv, &more, err));
        if (!more)
            return RG_OK;
        const char *name = layer >= 0 ? rg_csv_text(csv, layer) : "";
        if (kind && strcmp(kind, name) != 0)
            return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(csv, layer),
                           "layer '%s' beside '%s': models with several kinds of attention are not "
                           "timed by tables; leave --kernel-times out",
                           name, kind);
        if (!kind)
            kind = rg_arena_strdup(l->arena, name, err);
        const int columns[RG_RAGGED_AXES] = {chunk, past, decodes, kv};
        for (int a = 0; a < RG_RAGGED_AXES; a++)
            RG_TRY(rg_csv_real(csv, columns[a], &p.at[a], err));
        RG_TRY(rg_time_read(csv, time, 1e-6, &p.value, err));
        if (queries >= 0)
            RG_TRY(rg_csv_real(csv, queries, &query, err));
        if (query != 1)
            continue;
        if (keyed)
            p.at[1] -= p.at[0] / 2;
        if (p.at[0] == 0)
            p.at[1] = 0;
        if (p.at[2] == 0)
            p.at[3] = 0;
        RG_TRY(rg_time_points_add(l->arena, &l->attention, p, err));
        ++*taken;
    }
}

static rg_status read_moe(rg_time_loader *l, rg_csv *csv, int64_t *taken, rg_err *err)
{
    const int experts = rg_csv_find(csv, "activated_experts"), ep = rg_csv_find(csv, "ep");
    int tokens, time;
    RG_TRY(rg_csv_column(csv, "tokens", &tokens, err));
    RG_TRY(rg_csv_column(csv, "time_us", &time, err));
    for (bool more = true;;) {
        rg_ragged_point p = {0};
        double group = 1;
        RG_TRY(rg_csv_next(csv, &more, err));
        if (!more)
            return RG_OK;
        RG_TRY(rg_csv_real(csv, tokens, &p.at[0], err));
        if (experts >= 0)
            RG_TRY(rg_csv_real(csv, experts, &p.at[1], err));
        if (ep >= 0)
            RG_TRY(rg_csv_real(csv, ep, &group, err));
        RG_TRY(rg_time_read(csv, time, 1e-6, &p.value, err));
        if (group != 1)
            continue;
        RG_TRY(rg_time_points_add(l->arena, &l->moe, p, err));
        ++*taken;
    }
}

/* ---- what they add up to */

static int by_name_and_size(const void *a, const void *b)
{
    const rg_time_row *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    if (names != 0)
        return names;
    if (x->x != y->x)
        return x->x < y->x ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sum over layer names of weight(name) x time, on the union of their sizes. */
static rg_status add_up(rg_arena *arena, rg_time_rows *from,
                        double (*weight)(const void *, const char *), const void *context,
                        rg_line *out, rg_err *err)
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
        rg_line one = {x, y, 0};
        int end = start, same = 0;
        for (; end < from->count && strcmp(from->items[end].name, from->items[start].name) == 0;
             end++) {
            const rg_time_row *row = &from->items[end];
            same = one.count > 0 && x[one.count - 1] == row->x ? same + 1 : 0;
            one.count += same == 0;
            /* Measured several times: the mean counts. */
            double *mean = &y[one.count - 1];
            *mean = same ? *mean + (row->time - *mean) / (same + 1) : row->time;
            x[one.count - 1] = row->x;
        }
        const double w = weight(context, from->items[start].name);
        for (int i = 0; i < unique; i++)
            out->y[i] += w * rg_line_at(&one, out->x[i]);
        start = end;
    }
    return RG_OK;
}

static bool among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* How often a layer runs in one pass. */
static double dense_weight(const void *context, const char *name)
{
    static const char *const singles[] = {"embedding", "emb", "final_layernorm", NULL};
    static const char *const ffn[] = {"gate_up_proj", "gate_proj",     "up_proj",
                                      "act_fn",       "down_proj",     "mlp_up_proj",
                                      "mlp_act",      "mlp_down_proj", NULL};
    const rg_kernel_times_use *use = context;
    if (among(name, singles))
        return 1;
    if (strcmp(name, "layernorm") == 0)
        return 2 * (double)use->layers; /* before attention and before the FFN */
    return (double)(among(name, ffn) ? use->layers - use->moe_layers : use->layers);
}

static double once(const void *context, const char *name)
{
    (void)context;
    (void)name;
    return 1;
}

static rg_status fill(rg_time_loader *l, rg_kernel_times *t, rg_err *err)
{
    RG_TRY(add_up(l->arena, &l->dense, dense_weight, l->use, &t->dense, err));
    if (l->heads.count > 0)
        RG_TRY(add_up(l->arena, &l->heads, once, l->use, &t->heads, err));
    t->attention_floor = INFINITY;
    for (int i = 0; i < l->attention.count; i++)
        if (l->attention.items[i].value < t->attention_floor)
            t->attention_floor = l->attention.items[i].value;
    RG_TRY(rg_ragged_build(l->arena, l->attention.items, l->attention.count, RG_RAGGED_AXES,
                           &t->attention, err));
    if (l->moe.count > 0)
        RG_TRY(rg_ragged_build(l->arena, l->moe.items, l->moe.count, 2, &t->moe, err));
    /* Names in order, once each, with how often they count. */
    const char *note = "";
    for (int i = 0; note && i < l->dense.count; i++) {
        const char *name = l->dense.items[i].name;
        if (i == 0 || strcmp(name, l->dense.items[i - 1].name) != 0)
            note = rg_arena_printf(l->arena, err, "%s%s%s x%.0f", note, *note ? ", " : "", name,
                                   dense_weight(l->use, name));
    }
    t->note = note && l->heads.count == 0
                  ? rg_arena_printf(l->arena, err, "%s; no output head in these tables", note)
                  : note;
    return t->note ? RG_OK : RG_ERR_LIMIT;
}

static bool there(const rg_time_loader *l, const char *file, rg_err *err)
{
    const char *path = rg_time_path(l, file, err);
    return path && rg_file_exists(path);
}

rg_status rg_kernel_times_load(rg_arena *arena, const char *folder, const rg_kernel_times_use *use,
                               rg_kernel_times **out, rg_err *err)
{
    rg_kernel_times *t = RG_NEW(arena, rg_kernel_times, 1, err);
    if (!t)
        return RG_ERR_LIMIT;
    t->use = *use;
    rg_time_loader l = {.arena = arena, .folder = folder, .use = use};
    if (!there(&l, "dense.csv", err) &&
        (there(&l, "mlp.csv", err) || there(&l, "layers.csv", err))) {
        t->apart = true;
        RG_TRY(rg_time_read_vidur(&l, there(&l, "mlp.csv", err), err));
    } else {
        RG_TRY(rg_time_table(&l, "dense.csv", read_dense, err));
        RG_TRY(rg_time_table(&l, "per_sequence.csv", read_heads, err));
        RG_TRY(rg_time_table(&l, "attention.csv", read_attention, err));
        if (use->moe_layers > 0)
            RG_TRY(rg_time_table(&l, "moe.csv", read_moe, err));
    }
    *out = t;
    return fill(&l, t, err);
}

/* serve/kernel_times.c: interpolation of given operator times. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/kernel_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/file.h"
#include "serve/ragged.h"

/* A piecewise linear function; the last two points carry it on above. */
typedef struct line {
    double *x, *y;
    int count;
} line;

enum { NAME_SIZE = 48 };

struct rg_kernel_times {
    rg_kernel_times_use use;
    line dense;          /* all dense layers of a pass together, by tokens, s */
    line heads;          /* by sequences, s */
    rg_ragged moe;       /* one MoE layer, s, by tokens and experts touched */
    rg_ragged attention; /* one layer, s, by prefill chunk, its past, decodes, their length */
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

typedef struct points {
    rg_ragged_point *items;
    int count, room;
} points;

static rg_status points_add(rg_arena *arena, points *to, rg_ragged_point p, rg_err *err)
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
        rg_ragged_point p;
        double query = 1;
        status = rg_csv_next(csv, &more, err);
        if (status != RG_OK || !more)
            break;
        const int columns[RG_RAGGED_AXES] = {chunk, past, decodes, kv};
        for (int a = 0; a < RG_RAGGED_AXES && status == RG_OK; a++)
            status = rg_csv_real(csv, columns[a], &p.at[a], err);
        if (status == RG_OK)
            status = read_time(csv, time, &p.value, err);
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
    t->attention_floor = INFINITY;
    for (int i = 0; i < read.count; i++)
        t->attention_floor =
            read.items[i].value < t->attention_floor ? read.items[i].value : t->attention_floor;
    return rg_ragged_build(arena, read.items, read.count, RG_RAGGED_AXES, &t->attention, err);
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
    for (bool more = true; status == RG_OK;) {
        rg_ragged_point p = {0};
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
            status = read_time(csv, time, &p.value, err);
        if (status != RG_OK || group != 1)
            continue;
        status = points_add(arena, &read, p, err);
    }
    rg_csv_close(csv);
    RG_TRY(status);
    if (read.count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 0, 0}, "no row in it");
    return rg_ragged_build(arena, read.items, read.count, 2, &t->moe, err);
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

/* Decodes under one prefill chunk (or none): by their number, then their length. */
static double decodes_at(const rg_ragged *node, double decodes, double kv)
{
    int low, high;
    double weight;
    rg_ragged_bracket(node, 0, decodes, &low, &high, &weight);
    const double a = rg_ragged_at(&node->children[low], &kv);
    return weight == 0 ? a : a + (rg_ragged_at(&node->children[high], &kv) - a) * weight;
}

/* Whether decodes were measured beside this chunk at all. */
static bool has_decodes(const rg_ragged *past)
{
    return past->count > 0 && past->children[past->count - 1].at > 0;
}

/* The past axis of one chunk; a past below the least, even below zero, carries the line on. */
static double past_at(const rg_ragged *chunk, double past, double decodes, double kv)
{
    int low, high;
    double weight;
    rg_ragged_bracket(chunk, 0, past, &low, &high, &weight);
    const rg_ragged *first = &chunk->children[low], *second = &chunk->children[high];
    if (past < first->at && high > low)
        weight = (past - first->at) / (second->at - first->at);
    if (decodes > 0 && !has_decodes(first))
        return NAN;
    const double a = decodes_at(first, decodes, kv);
    if (weight == 0)
        return a;
    if (decodes > 0 && !has_decodes(second))
        return NAN;
    return a + (decodes_at(second, decodes, kv) - a) * weight;
}

/* At a fixed key length K = past + chunk / 2 the work of a chunk is chunk x K, so between two chunk
 * sizes the time is nearly linear; past = K - chunk / 2 differs at both ends. */
static double chunk_at(const rg_ragged *root, double chunk, double past, double decodes, double kv)
{
    const double key = past + chunk / 2;
    const int first = root->count > 1 && root->children[0].at == 0 && decodes == 0 ? 1 : 0;
    int low, high;
    double weight;
    if (root->children[first].at == 0 && decodes == 0)
        return NAN; /* no chunk was measured */
    if (chunk < root->children[first].at)
        chunk = root->children[first].at;
    rg_ragged_bracket(root, first, chunk, &low, &high, &weight);
    const rg_ragged *a = &root->children[low], *b = &root->children[high];
    const double at_a = past_at(a, a->at == 0 ? 0 : key - a->at / 2, decodes, kv);
    if (weight == 0)
        return at_a;
    const double at_b = past_at(b, b->at == 0 ? 0 : key - b->at / 2, decodes, kv);
    return at_a + (at_b - at_a) * weight;
}

static double decode_only(const rg_ragged *root, double decodes, double kv)
{
    const rg_ragged *none = &root->children[0];
    return none->at == 0 ? past_at(none, 0, decodes, kv) : NAN;
}

/* Several chunks in one kernel: like one of their tokens with their mean key length; where that
 * would have less than no past, chunk by chunk. */
static double attention_of(const rg_kernel_times *t, const rg_pass *pass)
{
    const rg_ragged *root = &t->attention;
    const double decodes = (double)pass->decodes;
    const double kv = pass->decodes ? pass->decode_kv_tokens / decodes : 0;
    double tokens = 0, work = 0;
    for (int i = 0; i < pass->chunk_count; i++) {
        const double c = (double)pass->chunks[i].new_tokens,
                     k = (double)pass->chunks[i].past_tokens;
        tokens += c;
        work += c * (k + c / 2);
    }
    if (tokens == 0)
        return decode_only(root, decodes, kv);
    const double past = work / tokens - tokens / 2;
    if (pass->decodes > 0 && past >= 0) {
        const double together = chunk_at(root, tokens, past, decodes, kv);
        if (!isnan(together))
            return together;
    }
    double prefill = 0;
    if (past >= 0) {
        prefill = chunk_at(root, tokens, past, 0, 0);
    } else {
        for (int i = 0; i < pass->chunk_count; i++)
            prefill += chunk_at(root, (double)pass->chunks[i].new_tokens,
                                (double)pass->chunks[i].past_tokens, 0, 0) -
                       (i > 0 ? t->attention_floor : 0);
    }
    if (pass->decodes == 0)
        return prefill;
    return prefill + decode_only(root, decodes, kv) - t->attention_floor;
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
        const double at[] = {padded, touched(use, (double)tokens)};
        const double one = rg_ragged_at(&t->moe, at);
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

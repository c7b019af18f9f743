// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/doc.h"
#include "core/file.h"
#include "core/find.h"
#include "plan/journal.h"

enum { MAX_VALUES = 100000, ROW_SIZE = 4096, BLOCK = 256 };
static const int64_t MAX_CELLS = 100000000;

/* ---- grid ---- */

static rg_status read_fixed(rg_node *map, rg_sweep *out, rg_err *err)
{
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "'fixed'", err));
    for (rg_node *child = map->first; child; child = child->next) {
        const char *value;
        RG_TRY(rg_node_text(child, &value, err));
        RG_TRY(rg_cell_set(&out->fixed, child->key, value, child->key_pos, err));
    }
    return RG_OK;
}

static rg_status read_axis(rg_arena *arena, rg_node *list, rg_sweep_axis *axis, rg_err *err)
{
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, list->key, err));
    if (list->count == 0 || list->count > MAX_VALUES)
        return rg_fail(err, RG_ERR_INPUT, list->pos, "'%s' has %zu values, expected 1 to %d",
                       list->key, list->count, MAX_VALUES);
    rg_cell_spec scratch = {.count = 0};
    RG_TRY(rg_cell_set(&scratch, list->key, "", list->key_pos, err));
    axis->name = list->key;
    axis->values = RG_NEW(arena, const char *, list->count, err);
    axis->places = RG_NEW(arena, rg_pos, list->count, err);
    if (!axis->values || !axis->places)
        return RG_ERR_LIMIT;
    for (rg_node *value = list->first; value; value = value->next) {
        RG_TRY(rg_node_text(value, &axis->values[axis->count], err));
        axis->places[axis->count++] = value->pos;
    }
    return RG_OK;
}

static rg_status read_grid(rg_arena *arena, rg_node *grid, rg_sweep *out, rg_err *err)
{
    RG_TRY(rg_node_expect(grid, RG_NODE_MAP, "'grid'", err));
    out->cells = 1;
    for (rg_node *child = grid->first; child; child = child->next) {
        if (out->axis_count == RG_SWEEP_AXES)
            return rg_fail(err, RG_ERR_LIMIT, child->key_pos, "more than %d axes", RG_SWEEP_AXES);
        if (rg_cell_get(&out->fixed, child->key) != NULL)
            for (int i = 0; i < out->fixed.count; i++)
                if (strcmp(out->fixed.settings[i].name, child->key) == 0)
                    return rg_fail(err, RG_ERR_INPUT, child->key_pos,
                                   "'%s' is in 'fixed' too; keep one", child->key);
        rg_sweep_axis *axis = &out->axes[out->axis_count++];
        RG_TRY(read_axis(arena, child, axis, err));
        if (out->cells > MAX_CELLS / axis->count)
            return rg_fail(err, RG_ERR_LIMIT, child->key_pos, "more than %lld cells",
                           (long long)MAX_CELLS);
        out->cells *= axis->count;
    }
    return RG_OK;
}

/* The grid file and every file that its settings name, as one digest. A name that no file has is
 * the cells' business. */
static rg_status digest_of(rg_arena *arena, rg_sweep *sweep, rg_err *err)
{
    static const struct {
        const char *setting, *kind;
    } files[] = {{"hw", "hw/nodes:hw"}, {"model", "models"}, {"engine", "hw/engines"}};
    char part[65];
    RG_TRY(rg_file_sha256(sweep->path, part, err));
    const char *all = rg_arena_printf(arena, err, "ridge %s %s", RG_VERSION, part);
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        const char *const one[] = {rg_cell_get(&sweep->fixed, files[f].setting)};
        const char *const *values = one;
        int64_t count = one[0] != NULL;
        for (int a = 0; a < sweep->axis_count; a++)
            if (strcmp(sweep->axes[a].name, files[f].setting) == 0) {
                values = sweep->axes[a].values;
                count = sweep->axes[a].count;
            }
        for (int64_t i = 0; i < count && all; i++) {
            const char *path;
            if (rg_data_find(arena, files[f].kind, files[f].setting, values[i], &path, NULL) ==
                    RG_OK &&
                rg_file_sha256(path, part, NULL) == RG_OK)
                all = rg_arena_printf(arena, err, "%s %s", all, part);
        }
    }
    if (!all)
        return RG_ERR_LIMIT;
    rg_bytes_sha256(all, strlen(all), sweep->digest);
    return RG_OK;
}

rg_status rg_sweep_load(rg_arena *arena, const char *path, rg_sweep *out, rg_err *err)
{
    static const char *const kinds[] = {"sweep", NULL};
    rg_node *root, *node;
    int kind;
    *out = (rg_sweep){.path = path};
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a sweep file", err));
    node = rg_map_find(root, "kind");
    if (!node)
        return rg_fail(err, RG_ERR_INPUT, root->pos,
                       "missing key 'kind'; a sweep file says 'kind: sweep'");
    RG_TRY(rg_node_choice(node, kinds, &kind, err));
    rg_map_find(root, "note");
    node = rg_map_find(root, "fixed");
    if (node)
        RG_TRY(read_fixed(node, out, err));
    RG_TRY(rg_map_get(root, "grid", &node, err));
    RG_TRY(read_grid(arena, node, out, err));
    RG_TRY(rg_map_done(root, err));
    return digest_of(arena, out, err);
}

rg_status rg_sweep_cell(const rg_sweep *sweep, int64_t index, rg_cell_spec *out, rg_err *err)
{
    *out = sweep->fixed;
    for (int a = sweep->axis_count - 1; a >= 0; a--) {
        const rg_sweep_axis *axis = &sweep->axes[a];
        const int64_t i = index % axis->count;
        index /= axis->count;
        RG_TRY(rg_cell_set(out, axis->name, axis->values[i], axis->places[i], err));
    }
    return RG_OK;
}

/* ---- rows ---- */

static const char metrics[] =
    "status,devices,fits,max_batch,ttft_s,tpot_excl_first_s,tpot_incl_first_s,"
    "single_stream_tokens_per_s,output_tokens_per_s,output_tokens_per_s_per_device,"
    "total_tokens_per_s,mfu_prefill_ratio,mfu_decode_ratio,mbu_decode_ratio,"
    "memory_weights_bytes,memory_kv_bytes,memory_total_bytes,usd_per_million_output_tokens,reason";

/* A field as CSV wants it; returns the letters written. */
static size_t put_field(char *out, size_t room, const char *text)
{
    if (!text[strcspn(text, ",\"\n\r")])
        return (size_t)snprintf(out, room, "%s", text);
    size_t used = 0;
    if (room > 2)
        out[used++] = '"';
    for (; *text && used + 4 < room; text++) {
        if (*text == '"')
            out[used++] = '"';
        out[used++] = (*text == '\n' || *text == '\r') ? ' ' : *text;
    }
    if (used + 1 < room)
        out[used++] = '"';
    out[used < room ? used : room - 1] = 0;
    return used;
}

const char *rg_sweep_header(rg_arena *arena, const rg_sweep *sweep, rg_err *err)
{
    char text[ROW_SIZE];
    size_t used = (size_t)snprintf(text, sizeof text, "cell");
    for (int a = 0; a < sweep->axis_count && used < sizeof text - 200; a++) {
        text[used++] = ',';
        used += put_field(text + used, sizeof text - used, sweep->axes[a].name);
    }
    snprintf(text + used, sizeof text - used, ",%s", metrics);
    return rg_arena_strdup(arena, text, err);
}

static void put_estimate(char *out, size_t room, const rg_estimate *e, const rg_cluster *cluster)
{
    const double devices = (double)e->devices;
    char price[32] = "";
    if (cluster->price.known)
        snprintf(price, sizeof price, "%.12g",
                 cluster->price.value * devices / 3600.0 / e->output_tokens_per_s * 1e6);
    snprintf(out, room,
             ",ok,%lld,%s,%lld,%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,"
             "%.12g,%.12g,%s,",
             (long long)e->devices, e->fits ? "true" : "false", (long long)e->memory.max_sequences,
             e->ttft.v, e->tpot_excl_first.v, e->tpot_incl_first.v, e->single_stream_tokens_per_s,
             e->output_tokens_per_s, e->output_tokens_per_s / devices, e->total_tokens_per_s,
             e->mfu_prefill_ratio, e->mfu_decode_ratio, e->mbu_decode_ratio, e->memory.weights.v,
             e->memory.kv.v, e->memory.total.v, price);
}

/* One cell as a row. What cannot be is a row too; mistakes in the grid end the sweep. */
static rg_status evaluate(rg_cells *cells, const rg_sweep *sweep, int64_t index, char *row,
                          rg_err *err)
{
    rg_cell_spec spec;
    RG_TRY(rg_sweep_cell(sweep, index, &spec, err));
    size_t used = (size_t)snprintf(row, ROW_SIZE, "%lld", (long long)index);
    for (int a = 0; a < sweep->axis_count; a++) {
        row[used++] = ',';
        used += put_field(row + used, ROW_SIZE / 2 - used, rg_cell_get(&spec, sweep->axes[a].name));
        if (used > ROW_SIZE / 2 - 8)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "settings of a cell are too long");
    }
    rg_estimate estimate;
    const rg_cell_setup *setup = NULL;
    rg_status status = rg_cells_prepare(cells, &spec, &setup, err);
    if (status == RG_OK)
        status = rg_estimate_load(setup->step, setup->cluster, &setup->formats, &setup->parallel,
                                  &setup->engine, &setup->load, &estimate, err);
    if (status == RG_OK) {
        put_estimate(row + used, ROW_SIZE - used, &estimate, setup->cluster);
        return RG_OK;
    }
    if (status != RG_ERR_MODEL)
        return status;
    used += (size_t)snprintf(row + used, ROW_SIZE - used, ",impossible,,,,,,,,,,,,,,,,,,");
    put_field(row + used, ROW_SIZE - used, err ? err->text : "");
    return RG_OK;
}

/* ---- execution ---- */

typedef struct execution {
    const rg_sweep *sweep;
    const rg_sweep_run *run;
    rg_journal *journal; /* NULL: none */
    int64_t *missing;    /* [missing_count] cells of this shard that no journal has */
    int64_t missing_count;
    rg_status status;
    rg_err err;
} execution;

static void fail_once(execution *x, rg_status status, const rg_err *err)
{
#pragma omp critical(rg_sweep_error)
    if (x->status == RG_OK) {
        x->status = status;
        x->err = *err;
    }
}

static bool failed(execution *x)
{
    bool result;
#pragma omp critical(rg_sweep_error)
    result = x->status != RG_OK;
    return result;
}

/* A block of cells in parallel, rows kept in order for a sink. */
static void do_block(execution *x, rg_cells **cells, int threads, int64_t first, int64_t count,
                     char (*rows)[ROW_SIZE])
{
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t i = 0; i < count; i++) {
        if (failed(x))
            continue;
        rg_err err = {0};
        const int64_t index = x->missing[first + i];
        rg_status status = evaluate(cells[omp_get_thread_num()], x->sweep, index, rows[i], &err);
        if (status == RG_OK && x->journal)
            status = rg_journal_append(x->journal, index, rows[i], &err);
        if (status != RG_OK)
            fail_once(x, status, &err);
    }
}

static rg_status do_missing(rg_arena *arena, execution *x, rg_err *err)
{
    const int threads = omp_get_max_threads();
    rg_cells **cells = RG_NEW(arena, rg_cells *, threads, err);
    char(*rows)[ROW_SIZE] = rg_arena_alloc(arena, BLOCK, ROW_SIZE, err);
    if (!cells || !rows)
        return RG_ERR_LIMIT;
    rg_status status = RG_OK;
    for (int t = 0; t < threads && status == RG_OK; t++)
        status = rg_cells_new(&cells[t], err);
    for (int64_t first = 0; first < x->missing_count && status == RG_OK; first += BLOCK) {
        const int64_t left = x->missing_count - first, count = left < BLOCK ? left : BLOCK;
        do_block(x, cells, threads, first, count, rows);
        status = x->status;
        if (status != RG_OK && err)
            *err = x->err;
        for (int64_t i = 0; i < count && status == RG_OK && x->run->sink; i++)
            x->run->sink(x->run->context, rows[i]);
        if (status == RG_OK && x->run->progress)
            x->run->progress(x->run->context, first + count, x->missing_count);
    }
    for (int t = 0; t < threads; t++)
        rg_cells_free(cells[t]);
    return status;
}

static rg_status list_missing(rg_arena *arena, execution *x, rg_err *err)
{
    const int64_t shards = x->run->shards;
    x->missing = RG_NEW(arena, int64_t, x->sweep->cells / shards + 1, err);
    if (!x->missing)
        return RG_ERR_LIMIT;
    for (int64_t i = x->run->shard; i < x->sweep->cells; i += shards)
        if (!x->journal || !rg_journal_has(x->journal, i))
            x->missing[x->missing_count++] = i;
    return RG_OK;
}

rg_status rg_sweep_execute(rg_arena *arena, const rg_sweep *sweep, const rg_sweep_run *run,
                           bool *complete, rg_err *err)
{
    execution x = {.sweep = sweep, .run = run};
    *complete = false;
    if (run->output) {
        if (rg_journal_is_done(run->output, sweep->digest)) {
            *complete = true;
            return RG_OK;
        }
        RG_TRY(rg_journal_open(arena, run->output, sweep->digest, sweep->cells, run->shard,
                               run->shards, &x.journal, err));
    }
    rg_status status = list_missing(arena, &x, err);
    if (status == RG_OK)
        status = do_missing(arena, &x, err);
    if (!x.journal) {
        *complete = status == RG_OK && run->shards == 1;
        return status;
    }
    if (status == RG_ERR_INPUT || status == RG_ERR_USAGE) {
        rg_journal_drop(x.journal); /* the grid when mended is another one */
        return status;
    }
    rg_journal_close(x.journal);
    if (status != RG_OK)
        return status;
    const char *header = rg_sweep_header(arena, sweep, err);
    return header ? rg_journal_merge(arena, run->output, sweep->digest, sweep->cells, run->shards,
                                     header, complete, err)
                  : RG_ERR_LIMIT;
}

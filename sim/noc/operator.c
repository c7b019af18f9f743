/* noc/operator.c: the messages that an operator puts on the chip. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "noc/trace.h"

const char *const rg_noc_operator_names[] = {"gemm", "kv-read", "allreduce", "allreduce-l2", NULL};

typedef struct generator {
    rg_noc_trace_builder build;
    const rg_noc_operator *op;
    const rg_noc_mapping *map;
    int cores;
    int64_t *window; /* [cores][slots] last reply that used the slot, -1: none */
    int64_t slots;
    int64_t *line; /* [cores] lines asked for so far */
} generator;

static rg_status start(generator *g, int64_t slots)
{
    g->cores = g->map->cores->count;
    g->slots = slots;
    g->window = RG_NEW(g->build.arena, int64_t, (size_t)g->cores * (size_t)slots, g->build.err);
    g->line = RG_NEW(g->build.arena, int64_t, g->cores, g->build.err);
    if (g->window == NULL || g->line == NULL)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < g->cores * slots; i++)
        g->window[i] = -1;
    return RG_OK;
}

static rg_status add_pair(generator *g, int core, uint64_t address, double asked, double answered)
{
    rg_noc_trace *t = g->build.trace;
    const rg_noc_mapping *map = g->map;
    const int64_t request = t->send_count;
    const int slice = rg_noc_mapping_slice(map, core, address);
    int64_t *slot = &g->window[core * g->slots + g->line[core]++ % g->slots];
    t->bytes += asked + answered;
    RG_TRY(rg_noc_trace_add(&g->build, (rg_noc_send){.source = map->cores->first + core,
                                                     .destination = slice,
                                                     .flits = rg_noc_flits(asked, map->flit_bytes),
                                                     .class_index = 0}));
    RG_TRY(
        rg_noc_trace_add(&g->build, (rg_noc_send){.source = slice,
                                                  .destination = map->cores->first + core,
                                                  .flits = rg_noc_flits(answered, map->flit_bytes),
                                                  .class_index = 1}));
    RG_TRY(rg_noc_trace_order(&g->build, (rg_noc_order){.before = (int32_t)request,
                                                        .after = (int32_t)request + 1,
                                                        .delay = (uint32_t)map->slice_delay}));
    if (*slot >= 0)
        RG_TRY(rg_noc_trace_order(
            &g->build,
            (rg_noc_order){.before = (int32_t)*slot, .after = (int32_t)request, .delay = 1}));
    *slot = request + 1;
    return RG_OK;
}

/* A line is asked for when its slot of the core's window is free again. */
static rg_status read_line(generator *g, int core, uint64_t address)
{
    g->build.trace->payload_bytes += g->map->line_bytes;
    const double header = g->map->design->header_bytes;
    return add_pair(g, core, address, header, g->map->line_bytes + header);
}

static rg_status write_line(generator *g, int core, uint64_t address)
{
    g->build.trace->payload_bytes += g->map->line_bytes;
    const double header = g->map->design->header_bytes;
    return add_pair(g, core, address, g->map->line_bytes + header, header);
}

/* Lines of rows first .. first + count - 1 of a row-major matrix, columns of one k-step. */
static rg_status read_tile(generator *g, int core, uint64_t base, int64_t first, int64_t count,
                           int64_t row_bytes, int64_t from, int64_t bytes)
{
    const int64_t line = g->map->line_bytes;
    for (int64_t row = first; row < first + count; row++)
        for (int64_t at = from / line * line; at < from + bytes; at += line)
            RG_TRY(read_line(g, core, base + (uint64_t)(row * row_bytes + at)));
    return RG_OK;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Lines of one k-step of a full tile: the window that `stages` steps ask for. */
static int64_t step_lines(const generator *g)
{
    const rg_noc_operator *op = g->op;
    const double row = op->tile_k * op->element_bytes / g->map->line_bytes;
    return (op->tile_m + op->tile_n) * (int64_t)ceil(row);
}

static rg_status add_gemm(generator *g)
{
    const rg_noc_operator *op = g->op;
    const int64_t row = (int64_t)ceil((double)op->k * op->element_bytes);
    const int64_t tiles_m = (op->m + op->tile_m - 1) / op->tile_m;
    const int64_t tiles_n = (op->n + op->tile_n - 1) / op->tile_n;
    const int64_t steps = (op->k + op->tile_k - 1) / op->tile_k;
    const uint64_t x = 0, w = (uint64_t)1 << 40, y = (uint64_t)2 << 40;
    const int64_t out_row = (int64_t)ceil((double)op->n * op->element_bytes);
    RG_TRY(start(g, op->stages * step_lines(g)));
    /* Cores work side by side: tile t goes to core t mod cores, and the k-steps of one wave are
     * laid down round by round. */
    for (int64_t wave = 0; wave < tiles_m * tiles_n; wave += g->cores) {
        const int64_t in_wave = least(g->cores, tiles_m * tiles_n - wave);
        for (int64_t step = 0; step <= steps; step++)
            for (int64_t i = 0; i < in_wave; i++) {
                const int64_t tile = wave + i, m0 = tile % tiles_m * op->tile_m;
                const int64_t n0 = tile / tiles_m * op->tile_n;
                const int64_t rows = least(op->tile_m, op->m - m0);
                const int64_t columns = least(op->tile_n, op->n - n0);
                const int64_t from = (int64_t)((double)step * op->tile_k * op->element_bytes);
                if (step < steps) {
                    const int64_t deep = least(op->tile_k, op->k - step * op->tile_k);
                    const int64_t bytes = (int64_t)ceil((double)deep * op->element_bytes);
                    RG_TRY(read_tile(g, (int)i, x, m0, rows, row, from, bytes));
                    RG_TRY(read_tile(g, (int)i, w, n0, columns, row, from, bytes));
                    continue;
                }
                const int64_t line = g->map->line_bytes;
                const int64_t at0 = (int64_t)((double)n0 * op->element_bytes) / line * line;
                const int64_t at1 = (int64_t)ceil((double)(n0 + columns) * op->element_bytes);
                for (int64_t r = m0; r < m0 + rows; r++)
                    for (int64_t at = at0; at < at1; at += line)
                        RG_TRY(write_line(g, (int)i, y + (uint64_t)(r * out_row + at)));
            }
    }
    return RG_OK;
}

static rg_status add_kv_read(generator *g)
{
    const int64_t lines = (g->op->bytes + g->map->line_bytes - 1) / g->map->line_bytes;
    const int64_t each = (lines + g->map->cores->count - 1) / g->map->cores->count;
    RG_TRY(start(g, g->op->window));
    for (int64_t i = 0; i < each; i++)
        for (int core = 0; core < g->cores; core++)
            if (core * each + i < lines)
                RG_TRY(
                    read_line(g, core, (uint64_t)(core * each + i) * (uint64_t)g->map->line_bytes));
    return RG_OK;
}

/* Step s of core c sends what came in step s - 1 from core c - 1; 2 (n - 1) steps of bytes / n. */
static rg_status add_ring(generator *g)
{
    rg_noc_trace *t = g->build.trace;
    const int n = g->map->cores->count;
    const double chunk = ceil((double)g->op->bytes / n);
    for (int step = 0; step < 2 * (n - 1); step++)
        for (int core = 0; core < n; core++) {
            const int64_t mine = t->send_count;
            t->payload_bytes += chunk;
            t->bytes += chunk;
            RG_TRY(rg_noc_trace_add(
                &g->build, (rg_noc_send){.source = g->map->cores->first + core,
                                         .destination = g->map->cores->first + (core + 1) % n,
                                         .flits = rg_noc_flits(chunk, g->map->flit_bytes),
                                         .class_index = 0}));
            if (step > 0)
                RG_TRY(rg_noc_trace_order(
                    &g->build,
                    (rg_noc_order){.before = (int32_t)(mine - core - n + (core + n - 1) % n),
                                   .after = (int32_t)mine,
                                   .delay = 1}));
        }
    return RG_OK;
}

/* Adds go out in an order that starts elsewhere for each core; the read of a line waits for the
 * core's own add of it. */
static rg_status add_reduce_in_slices(generator *g)
{
    const int64_t lines = (g->op->bytes + g->map->line_bytes - 1) / g->map->line_bytes;
    RG_TRY(start(g, g->op->window));
    for (int phase = 0; phase < 2; phase++)
        for (int64_t i = 0; i < lines; i++)
            for (int core = 0; core < g->cores; core++) {
                const int64_t line = (i + core * lines / g->cores) % lines;
                const uint64_t address = (uint64_t)line * (uint64_t)g->map->line_bytes;
                RG_TRY(phase == 0 ? write_line(g, core, address) : read_line(g, core, address));
            }
    return RG_OK;
}

static rg_status check_operator(const rg_noc_operator *op, rg_err *err)
{
    const bool gemm = op->kind == RG_NOC_GEMM;
    if (gemm && (op->m < 1 || op->n < 1 || op->k < 1 || op->tile_m < 1 || op->tile_n < 1 ||
                 op->tile_k < 1 || op->stages < 1 || !(op->element_bytes > 0.0)))
        return rg_fail(
            err, RG_ERR_MODEL, RG_NOWHERE,
            "a product of '%lld' x '%lld' x '%lld' in tiles of %d x %d x %d; all must be "
            "1 or more",
            (long long)op->m, (long long)op->n, (long long)op->k, op->tile_m, op->tile_n,
            op->tile_k);
    if (gemm && ((double)op->m * (double)op->k > 1e12 || (double)op->n * (double)op->k > 1e12 ||
                 (double)op->m * (double)op->n > 1e12))
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "a matrix of more than 1e12 elements");
    if (!gemm && (op->bytes < 1 || op->bytes > INT64_C(1) << 40 || op->window < 1))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "'%lld' bytes with a window of '%d' lines; both must be 1 or more",
                       (long long)op->bytes, op->window);
    return RG_OK;
}

rg_status rg_noc_operator_trace(rg_arena *arena, const rg_noc_operator *op,
                                const rg_noc_mapping *map, rg_noc_trace *out, rg_err *err)
{
    *out = (rg_noc_trace){.kind = rg_noc_operator_names[op->kind], .class_count = 2};
    generator g = {.build = {.arena = arena, .trace = out, .err = err}, .op = op, .map = map};
    RG_TRY(check_operator(op, err));
    switch (op->kind) {
    case RG_NOC_GEMM:
        return add_gemm(&g);
    case RG_NOC_KV_READ:
        return add_kv_read(&g);
    case RG_NOC_ALLREDUCE:
        return add_ring(&g);
    case RG_NOC_ALLREDUCE_L2:
        return add_reduce_in_slices(&g);
    }
    return RG_OK;
}

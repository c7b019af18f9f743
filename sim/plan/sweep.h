/* plan/sweep.h: a what-if grid over any settings, resumable and divisible.
 *
 * Reads plan/cell.h. Cells are numbered in mixed radix, the last axis fastest. Each finished cell
 * is one checked line of a journal beside the output, so that a kill at any point loses none of
 * them and a further run repeats none. The output is made from the journals when all cells are
 * done: the same bytes for any number of threads, shards and restarts.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_SWEEP_H
#define RG_PLAN_SWEEP_H

#include "plan/cell.h"

enum { RG_SWEEP_AXES = 16 };

typedef struct rg_sweep_axis {
    const char *name;
    const char **values;
    rg_pos *places; /* of each value */
    int64_t count;
} rg_sweep_axis;

typedef struct rg_sweep {
    const char *path;
    rg_cell_spec fixed;
    rg_sweep_axis axes[RG_SWEEP_AXES];
    int axis_count;
    int64_t cells;
    char digest[65]; /* of the grid and of the files that it names: a journal belongs to one */
} rg_sweep;

/** Read a grid: {kind: sweep, fixed: {setting: value}, grid: {setting: [values]}}. Errors:
 * RG_ERR_INPUT with the place; RG_ERR_LIMIT beyond 16 axes or 10^8 cells. */
rg_status rg_sweep_load(rg_arena *arena, const char *path, rg_sweep *out, rg_err *err);

/** Settings of one cell, 0 <= index < cells. */
rg_status rg_sweep_cell(const rg_sweep *sweep, int64_t index, rg_cell_spec *out, rg_err *err);

/** Part of a sweep that one process does: cells with index % shards == shard. */
typedef struct rg_sweep_run {
    const char *output;    /* CSV; NULL: rows go to sink and nothing is kept */
    int64_t shard, shards; /* 0 of 1: all */
    void (*progress)(void *context, int64_t done, int64_t all);
    void (*sink)(void *context, const char *row); /* rows in order, without output */
    void *context;
} rg_sweep_run;

/** Header line of the CSV, without line end. */
const char *rg_sweep_header(rg_arena *arena, const rg_sweep *sweep, rg_err *err);

/** Evaluate what is missing on all cores, then write the output when every shard's cells are done
 * (*complete). A cell that cannot be is a row with its reason. Errors: RG_ERR_INPUT for a journal
 * of another grid, RG_ERR_IO. */
rg_status rg_sweep_execute(rg_arena *arena, const rg_sweep *sweep, const rg_sweep_run *run,
                           bool *complete, rg_err *err);

#endif

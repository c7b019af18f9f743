/* serve/kernel_tables.h: tables of given operator times in memory. Private: kernel_times_load.c
 * fills them, kernel_times.c looks up.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_KERNEL_TABLES_H
#define RG_SERVE_KERNEL_TABLES_H

#include "core/csv.h"
#include "serve/kernel_times.h"
#include "serve/ragged.h"

/** A piecewise linear function; the last two points carry it on above. */
typedef struct rg_line {
    double *x, *y;
    int count;
} rg_line;
/** 0 without points; below the first the first. */
double rg_line_at(const rg_line *line, double x);

struct rg_kernel_times {
    rg_kernel_times_use use;
    rg_line dense;          /* all dense layers of a pass together, by tokens, s */
    rg_line heads;          /* by sequences, s */
    rg_ragged moe;          /* one MoE layer, s, by tokens and experts touched */
    rg_ragged attention;    /* one layer, s, by prefill chunk, its past, decodes, their length */
    double attention_floor; /* least of its times, s */
    bool apart;             /* prompts and decodes attend in kernels of their own */
    const char *note;
};

/** One time of one layer: at so many tokens or sequences, s. */
typedef struct rg_time_row {
    char name[48];
    double x, time;
} rg_time_row;

typedef struct rg_time_rows {
    rg_time_row *items;
    int count, room;
} rg_time_rows;

typedef struct rg_time_points {
    rg_ragged_point *items;
    int count, room;
} rg_time_points;

typedef struct rg_time_loader {
    rg_arena *arena;
    const char *folder;
    const rg_kernel_times_use *use;
    rg_time_rows dense, heads;
    rg_time_points attention, moe;
} rg_time_loader;

/** Reads the rows of one table; *taken counts those that were of use. */
typedef rg_status rg_time_reader(rg_time_loader *loader, rg_csv *csv, int64_t *taken, rg_err *err);
/** Open a table of the folder (or of its tp<N>) and read it; an error when nothing was of use. */
rg_status rg_time_table(rg_time_loader *loader, const char *file, rg_time_reader *read,
                        rg_err *err);
/** Where a file of the folder lies, or would lie. */
const char *rg_time_path(const rg_time_loader *loader, const char *file, rg_err *err);
rg_status rg_time_rows_add(rg_arena *arena, rg_time_rows *to, const char *name, double x,
                           double time, rg_err *err);
rg_status rg_time_points_add(rg_arena *arena, rg_time_points *to, rg_ragged_point point,
                             rg_err *err);
/** A time that is written in units of unit_s seconds. */
rg_status rg_time_read(rg_csv *csv, int column, double unit_s, double *seconds, rg_err *err);

/** Vidur's mlp.csv and attention.csv, or layers.csv in place of the first (LLMServingSim before
 * 2026). Errors: those of reading; RG_ERR_INPUT for a model with experts. */
rg_status rg_time_read_vidur(rg_time_loader *loader, bool mlp, rg_err *err);

#endif

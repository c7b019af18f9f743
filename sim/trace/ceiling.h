/* trace/ceiling.h: roofs that a machine was measured to have, from the tools that measure them.
 *
 * Reads core. Empirical Roofline Toolkit (text report and roofline.json) and the cache sweep of
 * gpu-benches. What a report says and what it means are kept apart: a level that is no level ("L4"
 * just above DRAM) is marked doubtful with the reason, and whoever draws roofs leaves it out,
 * saying so.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TRACE_CEILING_H
#define RG_TRACE_CEILING_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/err.h"

typedef struct rg_ceiling {
    const char *name; /* "L1", "L2", "DRAM"; for compute the precision: "FP64", "" when not said */
    bool compute;     /* flop/s, else byte/s */
    double value;     /* SI */
    const char *doubtful; /* why it should not be drawn, NULL when it may */
    rg_pos pos;
} rg_ceiling;

typedef struct rg_ceilings {
    const char *tool; /* "ert", "gpu-benches" */
    rg_ceiling *items;
    int count;
} rg_ceilings;

/** Read a report. Errors: RG_ERR_IO, RG_ERR_INPUT when it is of neither kind or holds no figure. */
rg_status rg_ceilings_load(rg_arena *arena, const char *path, rg_ceilings *out, rg_err *err);
/** The same from memory. */
rg_status rg_ceilings_parse(rg_arena *arena, const char *path, const char *text, size_t length,
                            rg_ceilings *out, rg_err *err);
/** Mark what cannot be: a bandwidth of the memory named "DRAM" or "HBM" above the card's own
 * figure, or under two thirds of it (a bad run). spec in byte/s. */
void rg_ceilings_compare(rg_ceilings *ceilings, double dram_spec);

#endif

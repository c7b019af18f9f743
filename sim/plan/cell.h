/* plan/cell.h: one what-if: named settings in, an estimate out.
 *
 * Reads step/estimate.h, core/override.h. Settings are text under the names of the options of
 * `ridge estimate`, or paths of what-if changes ("hw.memory.hbm.bandwidth"), so that a grid, a plan
 * and a command line say the same thing in the same words.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_CELL_H
#define RG_PLAN_CELL_H

#include "core/override.h"
#include "step/estimate.h"

enum { RG_CELL_SETTINGS = 48 };

typedef struct rg_setting {
    const char *name, *value;
    rg_pos pos; /* where the user wrote it */
} rg_setting;

typedef struct rg_cell_spec {
    rg_setting settings[RG_CELL_SETTINGS];
    int count;
} rg_cell_spec;

/** Everything that a cell resolves to. */
typedef struct rg_cell_setup {
    const rg_cluster *cluster;
    const rg_model *model;
    rg_formats formats;
    rg_parallel parallel;
    rg_engine engine;
    rg_kernel_options kernel;
    rg_step_context *step;
    rg_load load;
} rg_cell_setup;

/** Set or replace a setting. RG_ERR_INPUT at pos for a name that is neither a setting nor a path of
 * a change (with the nearest name), RG_ERR_LIMIT beyond RG_CELL_SETTINGS. */
rg_status rg_cell_set(rg_cell_spec *cell, const char *name, const char *value, rg_pos pos,
                      rg_err *err);

/** Value of a setting, its default when it is not set, NULL when it has none. */
const char *rg_cell_get(const rg_cell_spec *cell, const char *name);

/** Loaded files and prepared arrangements, kept between cells that share them. One for each thread.
 */
typedef struct rg_cells rg_cells;
rg_status rg_cells_new(rg_cells **out, rg_err *err);
void rg_cells_free(rg_cells *cells);

/** Load files, apply changes, check the arrangement; *out stays valid until the next call. Errors:
 * those of the loaders at the setting's place, and RG_ERR_MODEL with the reason for an arrangement
 * that cannot be. */
rg_status rg_cells_prepare(rg_cells *cells, const rg_cell_spec *spec, const rg_cell_setup **out,
                           rg_err *err);

/** Prepare and estimate. */
rg_status rg_cells_estimate(rg_cells *cells, const rg_cell_spec *spec, rg_estimate *out,
                            rg_err *err);

#endif

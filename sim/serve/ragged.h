/* serve/ragged.h: piecewise linear interpolation in tables with holes.
 *
 * Reads core/arena.h. Points lie under one another by their first coordinate, then the second, and
 * so on; each branch has the values that were measured there, so combinations that do not exist
 * (long sequences in large batches that do not fit memory) leave no hole: the branch's own last two
 * points carry it on.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_RAGGED_H
#define RG_SERVE_RAGGED_H

#include "core/arena.h"

enum { RG_RAGGED_AXES = 4 };

typedef struct rg_ragged_point {
    double at[RG_RAGGED_AXES]; /* coordinates, in whatever units the axes have */
    double value;
} rg_ragged_point;

typedef struct rg_ragged rg_ragged;
struct rg_ragged {
    double at;           /* coordinate in the parent's axis */
    double value;        /* leaves */
    rg_ragged *children; /* sorted by at; NULL for leaves */
    int count;
};

/** Build from points over the first `axes` coordinates; sorts the points; of equal ones the first
 * counts. *out is the root. */
rg_status rg_ragged_build(rg_arena *arena, rg_ragged_point *points, int count, int axes,
                          rg_ragged *out, rg_err *err);
/** The two children from index `first` on that x lies between, and the weight of the second: above
 * the last it exceeds 1, below the first it is 0. *low = *high with one child. */
void rg_ragged_bracket(const rg_ragged *node, int first, double x, int *low, int *high,
                       double *weight);
/** Value at x; below the least coordinate of an axis the least counts. */
double rg_ragged_at(const rg_ragged *node, const double *x);

#endif

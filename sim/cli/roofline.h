/* cli/roofline.h: points under a machine's roofs, and the figure of them.
 *
 * Reads cli/setup.h, report/plot.h. Shared by the commands roofline and estimate.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_ROOFLINE_H
#define RG_CLI_ROOFLINE_H

#include "cli/setup.h"
#include "trace/ceiling.h"

enum { RG_ROOF_POINTS = 400, RG_ROOF_MEASURED = RG_BOUND_COUNT };

typedef struct rg_roof_point {
    char id[16];
    const char *name, *source, *phase; /* source: "operator" or "measured kernel" */
    rg_dtype math;
    double flops, bytes, seconds, roofline_seconds, share; /* of one */
    int64_t count;
    int class; /* what binds: an rg_bound, or RG_ROOF_MEASURED */
} rg_roof_point;

typedef struct rg_roof_figure {
    rg_arena *arena;
    rg_report *report;
    const rg_setup *setup;
    rg_ceilings measured; /* roofs that a tool measured; count 0: none */
    rg_roof_point points[RG_ROOF_POINTS];
    int count;
} rg_roof_figure;

/** Take a point. One without flops, bytes or time has no place in the plane: it becomes an
 * assumption of the report, by name. RG_ERR_LIMIT beyond RG_ROOF_POINTS. */
rg_status rg_roof_add(rg_roof_figure *figure, const rg_roof_point *point, rg_err *err);

/** Points of the operators of a pass on the busiest rank, ids "<letter>1", "<letter>2" ...; their
 * shares are of all parts of the step, communication counted. */
rg_status rg_roof_add_pass(rg_roof_figure *figure, rg_step_context *step, const rg_pass *pass,
                           const char *phase, char letter, rg_err *err);

/** Draw roofs and points; path NULL draws on the terminal. */
rg_status rg_roof_draw(const rg_roof_figure *figure, const char *path, rg_err *err);

#endif

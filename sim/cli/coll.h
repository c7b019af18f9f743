/* cli/coll.h: parts of the command coll: its points, measured logs, the report. Private to cli/.
 *
 * Reads cli/setup.h, net/coll.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_COLL_H
#define RG_CLI_COLL_H

#include "cli/setup.h"
#include "net/coll.h"

enum { RG_COLL_MOST_LISTED = 16, RG_COLL_MOST_LINES = RG_COLL_MOST_LISTED * RG_COLL_MOST_LISTED };

typedef struct rg_coll_point {
    rg_coll_query query;
    rg_coll_result result;
    double simulated_s, measured_s; /* NaN where there is none */
    int line;                       /* of the figure: one for each operation and number of ranks */
} rg_coll_point;

typedef struct rg_coll_job {
    rg_arena *arena;
    const rg_args *args;
    rg_report *report;
    rg_setup setup;
    rg_coll_context *links;
    rg_coll_query base;
    rg_coll_point *points;
    int count;
    rg_coll_op line_op[RG_COLL_MOST_LINES];
    int64_t line_ranks[RG_COLL_MOST_LINES];
    int lines;
    bool measured;
    bool told; /* that some points are not simulated */
} rg_coll_job;

/** Predict one point; with --simulate also over the bare links. */
rg_status rg_coll_add_point(rg_coll_job *j, rg_coll_op op, int64_t ranks,
                            double bytes /* as nccl-tests counts */, double measured_s,
                            rg_err *err);
/** Points of the out-of-place rows of an nccl-tests log, text or JSON, on nodes as it says. */
rg_status rg_coll_read_log(rg_coll_job *j, const char *path, rg_err *err);
/** Answer, errors, points, crossovers, assumptions and figure into the report. */
rg_status rg_coll_report(rg_coll_job *j, rg_err *err);

#endif

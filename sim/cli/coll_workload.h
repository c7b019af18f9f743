/* cli/coll_workload.h: the part of `ridge coll` that runs a workload of another simulator. */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_COLL_WORKLOAD_H
#define RG_CLI_COLL_WORKLOAD_H

#include "cli/args.h"
#include "cli/setup.h"
#include "net/coll.h"

/** Read the file of --workload, run it over `links` and put answer, points and assumptions into the
 * report. `base` holds algorithm, protocol and library of every collective; `ranks` those of a
 * group whose size the file does not state. Errors: those of rg_workload_load and rg_workload_run,
 * and RG_ERR_MODEL when compute nodes have no time and the device has no bf16 peak. */
rg_status rg_coll_workload(rg_arena *arena, const char *path, const rg_setup *setup,
                           const rg_coll_context *links, const rg_coll_query *base, int64_t ranks,
                           rg_report *report, rg_err *err);

#endif

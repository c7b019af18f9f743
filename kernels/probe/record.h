/* kernels/probe/record.h: the run record: what was measured, on what, under which conditions.
 *
 * Reads measure.h, counters.h, jansson. The form is kernels/run-record.schema.json; `ridge guard`,
 * `ridge fit` and `ridge validate` read it. Keys carry their units; unknown figures are null.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_RECORD_H
#define RG_PROBE_RECORD_H

#include <jansson.h>

#include "counters.h"
#include "measure.h"

typedef struct rg_record {
    json_t *root, *kernels, *not_run;
} rg_record;

/** A new record of a device; command is the command line. */
void rg_record_begin(rg_record *record, const rg_gpu *gpu, const rg_nvml *nvml, const char *command,
                     bool emulated);
/** State of an optional library: name, whether it is there, why not. */
void rg_record_library(rg_record *record, const char *name, bool available, const char *text);
void rg_record_kernel(rg_record *record, const rg_problem *problem, const rg_bench *bench,
                      const rg_timing *timing, bool cold, const rg_counters *counters,
                      const rg_activity *activity);
void rg_record_not_run(rg_record *record, const rg_problem *problem, const char *reason);
/** Write as sorted-key JSON to path, whole or not at all; "-" is stdout. */
rg_status rg_record_write(const rg_record *record, const char *path, rg_err *err);
void rg_record_end(rg_record *record);

/** Append rows in the columns of the measured tables: DIR/gemm.csv, DIR/generation_attention.csv,
 * ... for those problems that have such a table. */
rg_status rg_record_csv(const rg_record *record, const char *folder, rg_err *err);

#endif

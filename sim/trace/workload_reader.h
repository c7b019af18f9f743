/* trace/workload_reader.h: what the readers of workloads share. Private to trace/.
 *
 * Reads trace/workload.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TRACE_WORKLOAD_READER_H
#define RG_TRACE_WORKLOAD_READER_H

#include "trace/workload.h"

typedef struct rg_work_reader {
    rg_arena *arena;
    const char *path, *text;
    size_t length;
    rg_workload *work;
    int capacity; /* of work->nodes */
} rg_work_reader;

/** A new zeroed node at the end. Errors: RG_ERR_LIMIT. */
rg_status rg_work_add(rg_work_reader *r, rg_work_node **out, rg_err *err);
rg_status rg_work_note(rg_work_reader *r, rg_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** True for a file that starts as a Chakra trace does: a record that fits into the file and whose
 * fields are those of a metadata or a node record. */
bool rg_work_is_chakra(const char *text, size_t length);
rg_status rg_work_read_chakra(rg_work_reader *r, rg_err *err);
/** True when the first word is a parallelisation policy of ASTRA-sim's text workloads. */
bool rg_work_is_simai(const char *text);
rg_status rg_work_read_simai(rg_work_reader *r, rg_err *err);

#endif

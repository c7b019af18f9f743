/* trace/workload.h: the work of one rank in a training or inference step, from other simulators.
 *
 * Reads core. Chakra execution traces (MLCommons, protobuf: et_def.proto; ASTRA-sim's input) and
 * workload text of ASTRA-sim 1 and SimAI. Both become a graph of compute, communication and host
 * nodes. What a file means in its own tool is kept: sizes are turned into the count of nccl-tests,
 * times into seconds; what ridge has no counterpart for is left out and named in a note, or
 * refused.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TRACE_WORKLOAD_H
#define RG_TRACE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"

typedef enum rg_work_kind {
    RG_WORK_HOST,    /* runs on the host's processor */
    RG_WORK_COMPUTE, /* runs on the device */
    RG_WORK_COMM,    /* collective, send or receive */
    RG_WORK_NOTHING, /* only joins dependencies: metadata, or work that is left out */
} rg_work_kind;

/** Ranks that take part in a communication. */
typedef enum rg_work_group {
    RG_GROUP_ALL,
    RG_GROUP_TENSOR,
    RG_GROUP_DATA,
    RG_GROUP_EXPERT,
    RG_GROUP_DATA_EXPERT, /* replicas of one expert */
    RG_GROUP_COUNT,
} rg_work_group;
const char *rg_work_group_name(rg_work_group group); /* "all", "tp", "dp", "ep", "dp_ep" */

typedef struct rg_work_node {
    uint64_t id;
    const char *name;
    rg_work_kind kind;
    const char *op;    /* of RG_WORK_COMM: "all_reduce", "send", "receive", ... */
    double bytes;      /* as nccl-tests counts, except as the next line says */
    bool bytes_a_rank; /* all-gather whose bytes are what one rank brings */
    rg_work_group group;
    double time_s;         /* of compute and host nodes; NaN: from flops and memory_bytes */
    double flops;          /* 0 when not given */
    double memory_bytes;   /* 0 when not given */
    const uint64_t *after; /* ids of nodes that must end first */
    int after_count;
    rg_pos pos;
} rg_work_node;

typedef struct rg_workload {
    const char *tool; /* "chakra", "simai" */
    rg_work_node *nodes;
    int count;
    int64_t tensor, expert, pipeline, ranks; /* degrees that the file states; 0 when it does not */
    const char **notes;                      /* what was left out or understood in a certain way */
    int note_count;
} rg_workload;

enum { RG_WORK_MOST_NODES = 4000000, RG_WORK_MOST_NOTES = 16 };

/** Read a file of either kind, told apart by its content. Errors: RG_ERR_IO, RG_ERR_LIMIT,
 * RG_ERR_INPUT: neither kind, a broken record, an attribute that is needed and absent, an unknown
 * collective, a dependency on a node that does not exist, no work in a file that has nodes. */
rg_status rg_workload_load(rg_arena *arena, const char *path, rg_workload **out, rg_err *err);
/** The same from memory. */
rg_status rg_workload_parse(rg_arena *arena, const char *path, const char *text, size_t length,
                            rg_workload **out, rg_err *err);

#endif

/* net/workload.h: a workload of another simulator on the links of a cluster.
 *
 * Reads trace/workload.h, net/coll.h. One rank stands for all: its host, its device and its network
 * each do one thing at a time, in the order in which things become ready, as ASTRA-sim schedules
 * them; a receive waits for nobody.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NET_WORKLOAD_H
#define RG_NET_WORKLOAD_H

#include "net/coll.h"
#include "trace/workload.h"

typedef struct rg_workload_setup {
    rg_coll_query base; /* algorithm, protocol, library, local, integer; the rest is set here */
    int64_t ranks;      /* of a group of which the workload does not state the size */
    rg_flop_rate flops; /* for compute nodes without a time: roofline of the device */
    rg_byte_rate memory;
} rg_workload_setup;

/** Equal communications: same operation, group and size. */
typedef struct rg_workload_class {
    rg_coll_query query;
    rg_work_group group;
    rg_coll_result one; /* a single one, alone on the links */
    int64_t count;
} rg_workload_class;

typedef struct rg_workload_result {
    rg_seconds end;     /* of the last node */
    rg_seconds compute; /* sum over device nodes */
    rg_seconds host;
    rg_seconds comm;    /* sum over communications */
    rg_seconds exposed; /* time in which the network works and the device does not */
    int64_t compute_nodes, estimated_nodes, comm_nodes; /* estimated: time from flops and bytes */
    rg_workload_class *classes;                         /* largest sum of time first */
    int class_count;
} rg_workload_result;

/** Errors: RG_ERR_MODEL when the cluster has fewer ranks than a group needs or an algorithm does
 * not do an operation, RG_ERR_INPUT when the degrees of the workload do not divide its ranks or its
 * dependencies run in a circle. */
rg_status rg_workload_run(rg_arena *arena, const rg_coll_context *links, const rg_workload *work,
                          const rg_workload_setup *setup, rg_workload_result *out, rg_err *err);

#endif

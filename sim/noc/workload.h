/* noc/workload.h: traffic of several classes from a file (kind: noc-traffic).
 *
 * Reads core, noc/design.h.
 *
 *   kind: noc-traffic
 *   network: h100-like      # what 'ridge check' checks it against; a run names its own
 *   classes:
 *     - {name: reads, from: sm, to: slice, share: 0.2, request_reply: [1, 5, 5, 1], write_share:
 * 0.25, vcs: [0, 1], reply_vcs: [2, 3]}
 *     - {name: dma, from: nvlink, to: mem, share: 0.1, flits: 4, vcs: [0, 1],
 *        rates: {"nvlink:0": 2, "nvlink:1": 0.5}}
 *
 * share is the load of the class in flits per sending node and cycle at load 1; vcs is the first
 * and the last virtual channel; rates multiply the share of single nodes. A class has a pattern
 * (traffic:) or a group to send to (to:), all nodes alike when it has neither.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_WORKLOAD_H
#define RG_NOC_WORKLOAD_H

#include "noc/design.h"

typedef struct rg_noc_workload {
    const char *path;
    const char *names[RG_NOC_MAX_CLASSES];
    rg_noc_class classes[RG_NOC_MAX_CLASSES];
    int count;
} rg_noc_workload;

/** Errors: RG_ERR_INPUT with the place: unknown keys, groups and nodes, VCs that the routers lack.
 */
rg_status rg_noc_workload_load(rg_arena *arena, const char *path, const rg_noc_design *design,
                               rg_noc_workload *out, rg_err *err);

#endif

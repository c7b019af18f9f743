/* noc/anynet.h: reader of BookSim "anynet" topology files.
 *
 * Reads core, noc/graph.h. Each line lists links of one router:
 *   router 0 node 0 node 1 router 4 2
 * A number after "node N" or "router N" is the latency of that link in cycles, 1 when absent. A
 * link whose way back is not listed has the same latency back. '#' starts a comment.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_ANYNET_H
#define RG_NOC_ANYNET_H

#include "noc/graph.h"

/** Errors: RG_ERR_IO, RG_ERR_INPUT with line and column, RG_ERR_MODEL for nodes attached twice. */
rg_status rg_noc_anynet_load(rg_arena *arena, const char *path, rg_noc_graph **out, rg_err *err);
rg_status rg_noc_anynet_parse(rg_arena *arena, const char *name, const char *text, size_t length,
                              rg_noc_graph **out, rg_err *err);

#endif

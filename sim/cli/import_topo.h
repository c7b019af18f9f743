/* cli/import_topo.h: the part of `ridge import` that describes a node from nvidia-smi topo -m. */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_IMPORT_TOPO_H
#define RG_CLI_IMPORT_TOPO_H

#include "hw/cluster.h"

/** The node whose matrix stands in path, with the device, host and network figures of `like` (a
 * device or node, as rg_cluster_load takes it) where the matrix is silent; name NULL: the file's.
 * Errors: those of rg_topo_load and rg_cluster_load; RG_ERR_INPUT when the matrix shows NVLinks
 * that the device does not have. */
rg_status rg_import_topo(rg_arena *arena, const char *path, const char *like, const char *name,
                         rg_cluster **out, rg_err *err);

#endif

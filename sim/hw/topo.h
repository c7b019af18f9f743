/* hw/topo.h: how the devices of a node hang together, as `nvidia-smi topo -m` prints it.
 *
 * Reads core. A matrix of short names: X the device itself, NVn a bond of n NVLinks, PIX one PCIe
 * switch, PXB several PCIe switches, PHB a host bridge, NODE several host bridges of one NUMA node,
 * SYS the link between NUMA nodes (the legend that the tool prints).
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_TOPO_H
#define RG_HW_TOPO_H

#include "core/arena.h"
#include "core/err.h"

enum { RG_TOPO_MOST = 64 };

typedef enum rg_topo_way {
    RG_WAY_SELF,
    RG_WAY_NVLINK,
    RG_WAY_ONE_SWITCH,   /* PIX */
    RG_WAY_SWITCHES,     /* PXB */
    RG_WAY_HOST_BRIDGE,  /* PHB */
    RG_WAY_HOST_BRIDGES, /* NODE */
    RG_WAY_SOCKETS,      /* SYS */
} rg_topo_way;

typedef struct rg_topo {
    int devices, nics;
    int numa[RG_TOPO_MOST]; /* NUMA node of a device, -1 when the text does not say */
    int missing;            /* rows that the text lacks; filled in from the columns of the others */
    rg_topo_way way[RG_TOPO_MOST][RG_TOPO_MOST];
    int links[RG_TOPO_MOST][RG_TOPO_MOST]; /* NVLinks of RG_WAY_NVLINK */
} rg_topo;

/** What the matrix amounts to. */
typedef struct rg_topo_shape {
    int all_pairs;  /* NVLinks between every two devices, when that is one number above 0; else 0 */
    int most_links; /* NVLinks of one device in all, over its neighbours */
    int bridged;    /* devices that reach some, and not all, others by NVLink */
    int switch_size; /* most devices below one PCIe switch or chain of switches; 1: none shared */
    int socket_size; /* most devices of one NUMA node */
} rg_topo_shape;

/** Errors: RG_ERR_IO; RG_ERR_INPUT with line and column: no matrix, a row too short, an unknown
 * name, two devices that see each other differently; RG_ERR_LIMIT beyond RG_TOPO_MOST devices. */
rg_status rg_topo_load(rg_arena *arena, const char *path, rg_topo *out, rg_err *err);
rg_status rg_topo_parse(const char *path, const char *text, rg_topo *out, rg_err *err);
rg_topo_shape rg_topo_shape_of(const rg_topo *topo);

#endif

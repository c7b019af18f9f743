/* hw/cluster.h: nodes and clusters: which devices, joined by which links.
 *
 * Reads hw/accel.h. Only the description; time on it is net's business.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_CLUSTER_H
#define RG_HW_CLUSTER_H

#include "hw/accel.h"

typedef enum rg_fabric_kind {
    RG_FABRIC_NONE,
    RG_FABRIC_SWITCHED,  /* NVLink through NVSwitch: any pair at full port rate */
    RG_FABRIC_MESH,      /* direct links between all pairs: NVLink bridges, Infinity Fabric */
    RG_FABRIC_PCIE_TREE, /* shared uplinks, NUMA */
    RG_FABRIC_TORUS,     /* ICI */
    RG_FABRIC_FAT_TREE,  /* between nodes: InfiniBand, RoCE, rail-optimised */
    RG_FABRIC_DRAGONFLY,
} rg_fabric_kind;

typedef struct rg_fabric {
    rg_fabric_kind kind;
    const char *technology;       /* "nvlink4", "infiniband-ndr", "pcie5x16", "ici" */
    rg_figure rate_per_direction; /* byte/s per device (or per NIC) */
    rg_figure latency;            /* s, one hop */
    rg_figure uplink_rate;        /* byte/s of a shared PCIe switch or socket uplink */
    int64_t devices_per_switch;   /* PCIe: devices that share an uplink; fat tree: leaf width */
    int64_t extent[4];            /* torus */
    int dimensions;
    double oversubscription;   /* fat tree: 1 = full bisection */
    bool in_network_reduction; /* NVLS, SHARP */
    bool rail_optimised;
} rg_fabric;

typedef struct rg_cluster {
    const char *name, *title, *path;
    rg_accel *accel;
    int64_t devices_per_node, nodes;
    rg_fabric scale_up;               /* within a node or domain */
    int64_t scale_up_devices;         /* NVL72: 72 */
    rg_fabric scale_out;              /* between domains */
    rg_figure host_memory, host_link; /* byte, byte/s per device and direction (PCIe, C2C) */
    rg_figure price;                  /* $/h per device; unknown when no price file gives it */
} rg_cluster;

/** Load a node or cluster by name or path; the name of a bare accelerator gives its usual node. */
rg_status rg_cluster_load(rg_arena *arena, const char *name_or_path, rg_cluster **out, rg_err *err);

#endif

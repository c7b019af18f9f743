/* hw/cluster.h: nodes and clusters: which devices, joined by which links.
 *
 * Reads hw/accel.h. Only the description; time on it is net's business.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_CLUSTER_H
#define RG_HW_CLUSTER_H

#include "core/override.h"
#include "hw/accel.h"
#include "hw/check.h"

typedef enum rg_fabric_kind {
    RG_FABRIC_NONE,
    RG_FABRIC_SWITCHED,  /* NVLink through NVSwitch: any pair at full port rate */
    RG_FABRIC_MESH,      /* direct links between all pairs: NVLink bridges, Infinity Fabric */
    RG_FABRIC_PCIE_TREE, /* shared uplinks, NUMA */
    RG_FABRIC_TORUS,     /* ICI */
    RG_FABRIC_FAT_TREE,  /* between nodes: InfiniBand, RoCE, rail-optimised */
    RG_FABRIC_DRAGONFLY,
    RG_FABRIC_KIND_COUNT,
} rg_fabric_kind;

/** How far devices in PCIe slots read each other directly; beyond, copies are staged in host
 * memory. NCCL's rule (src/graph/paths.cc): through one CPU's root complex, not from socket to
 * socket of Intel CPUs. GeForce drivers refuse it altogether; machines that hide their topology
 * often stop at the PCIe switch. */
typedef enum rg_peer_reach {
    RG_PEER_ROOT,   /* behind one CPU; when a file does not say */
    RG_PEER_SWITCH, /* behind one PCIe switch */
    RG_PEER_NONE,   /* not at all */
    RG_PEER_REACH_COUNT,
} rg_peer_reach;

typedef struct rg_fabric {
    rg_fabric_kind kind;
    const char *technology;       /* "nvlink4", "infiniband-ndr", "pcie5x16", "ici" */
    rg_figure rate_per_direction; /* byte/s per device, all its links together; a mesh divides it
                                     evenly among the other devices of the domain */
    rg_figure latency;            /* s, one hop */
    rg_figure uplink_rate;        /* byte/s of a shared PCIe switch or socket uplink */
    rg_figure socket_rate;        /* byte/s between the sockets of a node, one direction */
    int64_t devices_per_switch;   /* PCIe: devices that share an uplink; fat tree: leaf width */
    int64_t devices_per_socket;   /* PCIe: devices below one CPU; 0 when not given */
    rg_peer_reach peer_reach;     /* PCIe */
    int64_t nics_per_node;        /* between nodes; 0 when not given */
    int64_t extent[4];            /* torus */
    int dimensions;
    double oversubscription;   /* fat tree: 1 = full bisection */
    bool in_network_reduction; /* NVLS, SHARP */
    bool rail_optimised;
    rg_pos pos;
} rg_fabric;

typedef struct rg_cluster {
    const char *name, *title, *path;
    const char *note; /* what a reader should know, NULL for none */
    rg_accel *accel;
    int64_t devices_per_node, nodes;
    rg_fabric scale_up;               /* within a node or domain */
    int64_t scale_up_devices;         /* NVL72: 72 */
    rg_fabric scale_out;              /* between domains */
    rg_figure host_memory, host_link; /* byte, byte/s per device and direction (PCIe, C2C) */
    rg_figure overhead_power;         /* W of a node under load besides its devices */
    rg_figure price;                  /* $/h per device; unknown when no price file gives it */
    const char *price_provider;       /* whose price that is; NULL when unknown */
} rg_cluster;

/** Load a node or cluster by name or path; the name or path of a bare accelerator gives its usual
 * node with that accelerator in it, or one device alone when it names none. The price is the least
 * on-demand one in the price file. Errors: as rg_accel_load. */
rg_status rg_cluster_load(rg_arena *arena, const char *name_or_path, rg_cluster **out, rg_err *err);
/** The same with what-if changes: scope "hw" of the accelerator's file, "cluster" of the node's or
 * cluster's. Some take other figures with them: hw/follow.h. changes may be NULL. */
rg_status rg_cluster_load_changed(rg_arena *arena, const char *name_or_path,
                                  const rg_changes *changes, rg_cluster **out, rg_err *err);

/** The same from a parsed document of a cluster or an accelerator, without a price. */
rg_status rg_cluster_read(rg_arena *arena, const char *path, rg_node *root, rg_cluster **out,
                          rg_err *err);

/** The YAML file of a cluster, whose device goes by name; as rg_cluster_load reads it. */
rg_status rg_cluster_write(rg_arena *arena, const rg_cluster *cluster, char **out, rg_err *err);

/** Name of a kind of fabric: "switched", "pcie_tree". */
const char *rg_fabric_kind_name(rg_fabric_kind kind);

/** Every known figure under its path ("scale_up.rate_per_direction"), without those of the device;
 * changing one through the list changes cluster. */
rg_status rg_cluster_figures(rg_arena *arena, rg_cluster *cluster, const rg_named_figure **out,
                             int *count, rg_err *err);

/** Findings on a cluster:
 *
 *   scale-up-rate     rate_per_direction against the device's own port of that technology, 1 %
 *   domain-size       devices of a domain do not divide those of the cluster, or nodes those
 *   torus-extent      the extents do not multiply to the devices of the domain
 *   no-scale-out      several domains, but nothing between them
 *   name-differs      name: is not the name of the file
 */
rg_status rg_cluster_check(rg_arena *arena, const rg_cluster *cluster, rg_findings *out,
                           rg_err *err);

#endif

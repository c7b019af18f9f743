/* tests/unit/net/net_fixture.h: small clusters written out, so that net is tested without files. */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TESTS_NET_FIXTURE_H
#define RG_TESTS_NET_FIXTURE_H

#include "net/coll.h"

static inline rg_figure figure(double value)
{
    return (rg_figure){.value = value, .known = true, .source = "test"};
}

static rg_accel any_accel = {.name = "any", .arch = "hopper"};

/** Nodes of n devices behind one switch at 450 GB/s, joined by 50 GB/s ports. */
static inline rg_cluster switched_cluster(int64_t per_node, int64_t nodes)
{
    return (rg_cluster){
        .name = "switched",
        .accel = &any_accel,
        .devices_per_node = per_node,
        .nodes = nodes,
        .scale_up_devices = per_node,
        .scale_up = {.kind = RG_FABRIC_SWITCHED,
                     .technology = "nvlink4",
                     .rate_per_direction = figure(450e9),
                     .latency = figure(1e-6),
                     .in_network_reduction = true},
        .scale_out = {.kind = RG_FABRIC_FAT_TREE,
                      .technology = "infiniband-ndr",
                      .rate_per_direction = figure(50e9),
                      .latency = figure(4e-6),
                      .devices_per_switch = 32,
                      .oversubscription = 1,
                      .rail_optimised = true},
    };
}

/** Eight PCIe devices, two to a switch, four to a socket. */
static inline rg_cluster pcie_cluster(void)
{
    return (rg_cluster){
        .name = "pcie",
        .accel = &any_accel,
        .devices_per_node = 8,
        .nodes = 1,
        .scale_up_devices = 8,
        .scale_up = {.kind = RG_FABRIC_PCIE_TREE,
                     .technology = "pcie4x16",
                     .rate_per_direction = figure(32e9),
                     .uplink_rate = figure(30e9),
                     .socket_rate = figure(20e9),
                     .latency = figure(1e-6),
                     .devices_per_switch = 2,
                     .devices_per_socket = 4},
    };
}

static inline rg_cluster torus_cluster(int64_t x, int64_t y, int64_t z)
{
    const int64_t n = x * y * z;
    return (rg_cluster){
        .name = "torus",
        .accel = &any_accel,
        .devices_per_node = n,
        .nodes = 1,
        .scale_up_devices = n,
        .scale_up = {.kind = RG_FABRIC_TORUS,
                     .technology = "ici",
                     .rate_per_direction = figure(300e9),
                     .latency = figure(1e-6),
                     .dimensions = z > 1 ? 3 : 2,
                     .extent = {x, y, z}},
    };
}

static inline rg_cluster mesh_cluster(int64_t n)
{
    return (rg_cluster){
        .name = "mesh",
        .accel = &any_accel,
        .devices_per_node = n,
        .nodes = 1,
        .scale_up_devices = n,
        .scale_up = {.kind = RG_FABRIC_MESH,
                     .technology = "infinity_fabric",
                     .rate_per_direction = figure(448e9),
                     .latency = figure(1e-6)},
    };
}

#endif

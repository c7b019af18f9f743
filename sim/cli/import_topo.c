/* cli/import_topo.c: which fabric a connection matrix amounts to. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/import_topo.h"

#include <ctype.h>
#include <string.h>

#include "hw/topo.h"

typedef struct import {
    rg_arena *arena;
    const char *path;
    rg_topo topo;
    rg_topo_shape shape;
    const rg_cluster *like;
    rg_cluster *out;
    const char *note;
} import;

static const rg_link_port *port_of(const rg_accel *accel, const char *stem)
{
    for (int i = 0; i < accel->port_count; i++)
        if (strncmp(accel->ports[i].kind, stem, strlen(stem)) == 0)
            return &accel->ports[i];
    return NULL;
}

static rg_figure stated(double value, rg_dim dim, const char *source)
{
    return (rg_figure){.value = value,
                       .dim = dim,
                       .known = true,
                       .assumed = strncmp(source, "assumed", 7) == 0,
                       .source = source};
}

/* The figures of `like`, when it has this kind of fabric of this technology. */
static bool take_fabric(import *j, rg_fabric_kind kind, const char *technology)
{
    const rg_fabric *from = &j->like->scale_up;
    if (from->kind != kind || strcmp(from->technology, technology) != 0)
        return false;
    j->out->scale_up = *from;
    return true;
}

static rg_status set_nvlink(import *j, int links, rg_err *err)
{
    const rg_link_port *port = port_of(j->like->accel, "nvlink");
    if (port == NULL || (port->links.known && links > (int)port->links.value))
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){.file = j->path, .line = 1},
                       "the matrix shows %d NVLinks, '%s' has %d; name another device with --hw",
                       links, j->like->accel->name, port == NULL ? 0 : (int)port->links.value);
    /* As many links to every single neighbour as a device has in all: a switch stands between. */
    const bool switched = j->topo.devices > 2 && j->shape.all_pairs > 0 &&
                          j->shape.all_pairs * (j->topo.devices - 1) > links;
    const rg_fabric_kind kind = switched ? RG_FABRIC_SWITCHED : RG_FABRIC_MESH;
    if (!take_fabric(j, kind, port->kind))
        j->out->scale_up = (rg_fabric){
            .kind = kind,
            .technology = port->kind,
            .rate_per_direction = port->rate_per_direction,
            .latency = switched
                           ? stated(0.5e-6, RG_DIM_SECONDS,
                                    "assumed: half a microsecond from device to device through "
                                    "one switch")
                           : stated(0.7e-6, RG_DIM_SECONDS, "assumed: one direct link"),
            .oversubscription = 1,
        };
    if (port->links.known && links < (int)port->links.value) {
        const char *source =
            rg_arena_printf(j->arena, err, "derived: %d of %d links that nvidia-smi shows", links,
                            (int)port->links.value);
        if (source == NULL)
            return RG_ERR_LIMIT;
        j->out->scale_up.rate_per_direction = stated(
            port->rate_per_direction.value * links / port->links.value, RG_DIM_BYTES_PER_S, source);
    }
    return RG_OK;
}

static rg_status set_pcie(import *j, rg_err *err)
{
    const rg_link_port *port = port_of(j->like->accel, "pcie");
    if (port == NULL)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){.file = j->path, .line = 1},
                       "the matrix shows PCIe alone, and '%s' has no PCIe port in its file",
                       j->like->accel->name);
    if (!take_fabric(j, RG_FABRIC_PCIE_TREE, port->kind))
        j->out->scale_up = (rg_fabric){
            .kind = RG_FABRIC_PCIE_TREE,
            .technology = port->kind,
            .rate_per_direction = port->rate_per_direction,
            .uplink_rate = stated(port->rate_per_direction.value, RG_DIM_BYTES_PER_S,
                                  "assumed: one x16 uplink for each switch"),
            .socket_rate = stated(62e9, RG_DIM_BYTES_PER_S,
                                  "assumed: three UPI links of 20.8 GB/s between two sockets"),
            .latency =
                stated(1.2e-6, RG_DIM_SECONDS, "assumed: device to device through one PCIe switch"),
            .oversubscription = 1,
        };
    j->out->scale_up.devices_per_switch = j->shape.switch_size;
    j->out->scale_up.devices_per_socket = j->shape.socket_size;
    return RG_OK;
}

/* Each device the same number of links, to three neighbours or more: a cube mesh. */
static bool is_regular_mesh(const import *j)
{
    for (int i = 0; i < j->topo.devices; i++) {
        int links = 0, neighbours = 0;
        for (int k = 0; k < j->topo.devices; k++) {
            links += j->topo.links[i][k];
            neighbours += j->topo.links[i][k] > 0;
        }
        if (links != j->shape.most_links || neighbours < 3)
            return false;
    }
    return true;
}

static rg_status set_scale_up(import *j, rg_err *err)
{
    if (j->topo.devices == 1) {
        j->out->scale_up = (rg_fabric){.kind = RG_FABRIC_NONE};
        return RG_OK;
    }
    if (j->shape.all_pairs > 0) {
        const rg_link_port *port = port_of(j->like->accel, "nvlink");
        const bool direct =
            port != NULL && port->links.known && j->shape.most_links <= (int)port->links.value;
        return set_nvlink(j, direct ? j->shape.most_links : j->shape.all_pairs, err);
    }
    if (j->shape.bridged > 0 && is_regular_mesh(j)) {
        j->note = "Each device has NVLinks to some of the others; described as a full mesh of the "
                  "same total rate.";
        return set_nvlink(j, j->shape.most_links, err);
    }
    if (j->shape.bridged > 0)
        j->note = "NVLink bridges between neighbours are not described here.";
    return set_pcie(j, err);
}

static rg_status set_scale_out(import *j, rg_err *err)
{
    rg_fabric *net = &j->out->scale_out;
    const int64_t had = j->like->scale_out.nics_per_node;
    *net = j->like->scale_out;
    if (j->topo.nics == 0 || net->kind == RG_FABRIC_NONE) {
        *net = (rg_fabric){.kind = RG_FABRIC_NONE};
        return RG_OK;
    }
    net->nics_per_node = j->topo.nics;
    if (had < 1)
        return RG_OK;
    const double card =
        net->rate_per_direction.value * (double)j->like->devices_per_node / (double)had;
    const char *source = rg_arena_printf(
        j->arena, err, "assumed: %d network cards of %.0f Gbit/s that nvidia-smi shows, for %d %s",
        j->topo.nics, card * 8e-9, j->topo.devices, j->topo.devices == 1 ? "device" : "devices");
    if (source == NULL)
        return RG_ERR_LIMIT;
    net->rate_per_direction =
        stated(card * j->topo.nics / j->topo.devices, RG_DIM_BYTES_PER_S, source);
    return RG_OK;
}

/* "logs/My node.txt" -> "my-node". */
static const char *name_of(rg_arena *arena, const char *path, rg_err *err)
{
    const char *slash = strrchr(path, '/');
    char *name = rg_arena_strdup(arena, slash == NULL ? path : slash + 1, err);
    if (name == NULL)
        return NULL;
    name[strcspn(name, ".")] = '\0';
    for (char *c = name; *c != '\0'; c++)
        *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
    return name;
}

rg_status rg_import_topo(rg_arena *arena, const char *path, const char *like, const char *name,
                         rg_cluster **out, rg_err *err)
{
import j = {.arena = arena, .path = path };
    rg_cluster *from;
    RG_TRY(rg_topo_load(arena, path, &j.topo, err));
    RG_TRY(rg_cluster_load(arena, like, &from, err));
    j.like = from;
    j.shape = rg_topo_shape_of(&j.topo);
    j.out = RG_NEW(arena, rg_cluster, 1, err);
    if (j.out == NULL)
        return RG_ERR_LIMIT;
    *j.out = *from;
    j.out->name = name != NULL ? name : name_of(arena, path, err);
    j.out->title = rg_arena_printf(arena, err, "%d x %s, as nvidia-smi topo -m shows it",
                                   j.topo.devices, from->accel->title);
    if (j.out->name == NULL || j.out->title == NULL)
        return RG_ERR_LIMIT;
    j.out->nodes = 1;
    j.out->devices_per_node = j.out->scale_up_devices = j.topo.devices;
    RG_TRY(set_scale_up(&j, err));
    RG_TRY(set_scale_out(&j, err));
    j.out->note = j.note;
    *out = j.out;
    return RG_OK;
}

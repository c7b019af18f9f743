/* hw/cluster.c: reading a description of a node or cluster. */
// SPDX-License-Identifier: Apache-2.0
#include "hw/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/doc.h"
#include "core/find.h"
#include "hw/follow.h"
#include "hw/price.h"

enum { MAX_DEVICES_PER_NODE = 1024, MAX_NODES = 1000000, MAX_EXTENT = 4096 };

static const char *const fabric_names[] = {"none",  "switched", "mesh",      "pcie_tree",
                                           "torus", "fat_tree", "dragonfly", NULL};
static const char *const reach_names[RG_PEER_REACH_COUNT + 1] = {"root", "switch", "none", NULL};

static const rg_figure_key fabric_keys[] = {
    {"rate_per_direction", RG_DIM_BYTES_PER_S, offsetof(rg_fabric, rate_per_direction),
     RG_FIGURE_REQUIRED},
    {"latency", RG_DIM_SECONDS, offsetof(rg_fabric, latency), RG_FIGURE_REQUIRED},
    {"uplink_rate", RG_DIM_BYTES_PER_S, offsetof(rg_fabric, uplink_rate), 0},
    {"socket_rate", RG_DIM_BYTES_PER_S, offsetof(rg_fabric, socket_rate), 0},
    {NULL, RG_DIM_NONE, 0, 0},
};
static const rg_figure_key host_keys[] = {
    {"memory", RG_DIM_BYTES, offsetof(rg_cluster, host_memory), 0},
    {"link", RG_DIM_BYTES_PER_S, offsetof(rg_cluster, host_link), 0},
    {"overhead_power", RG_DIM_WATTS, offsetof(rg_cluster, overhead_power), 0},
    {NULL, RG_DIM_NONE, 0, 0},
};

const char *rg_fabric_kind_name(rg_fabric_kind kind)
{
    return fabric_names[kind];
}

/** extent: [4, 4] of a torus. */
static rg_status read_extent(rg_node *map, rg_fabric *fabric, rg_err *err)
{
    rg_node *list = rg_map_find(map, "extent");
    if (fabric->kind != RG_FABRIC_TORUS) {
        if (list == NULL)
            return RG_OK;
        return rg_fail(err, RG_ERR_INPUT, list->pos, "extent is for a torus, not '%s'",
                       fabric_names[fabric->kind]);
    }
    RG_TRY(rg_map_get(map, "extent", &list, err));
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, "extent", err));
    if (list->count < 1 || list->count > 4)
        return rg_fail(err, RG_ERR_INPUT, list->pos, "extent has %zu dimensions, 1 to 4 will do",
                       list->count);
    for (const rg_node *item = list->first; item != NULL; item = item->next)
        RG_TRY(rg_node_int(item, 1, MAX_EXTENT, &fabric->extent[fabric->dimensions++], err));
    return RG_OK;
}

static rg_status read_reach(rg_node *map, rg_fabric *fabric, rg_err *err)
{
    rg_node *node = rg_map_find(map, "peer_reach");
    int reach;
    if (node == NULL)
        return RG_OK;
    if (fabric->kind != RG_FABRIC_PCIE_TREE)
        return rg_fail(err, RG_ERR_INPUT, node->pos, "peer_reach is for a pcie_tree, not '%s'",
                       fabric_names[fabric->kind]);
    RG_TRY(rg_node_choice(node, reach_names, &reach, err));
    fabric->peer_reach = (rg_peer_reach)reach;
    return RG_OK;
}

static rg_status read_fabric(rg_node *map, const char *what, rg_fabric *out, rg_err *err)
{
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, what, err));
    rg_node *node;
    int kind;
    RG_TRY(rg_map_get(map, "kind", &node, err));
    RG_TRY(rg_node_choice(node, fabric_names, &kind, err));
    *out = (rg_fabric){.kind = (rg_fabric_kind)kind, .pos = map->pos};
    if (out->kind == RG_FABRIC_NONE)
        return rg_map_done(map, err);
    RG_TRY(rg_map_text(map, "technology", &out->technology, err));
    RG_TRY(rg_figures_read(map, fabric_keys, true, out, err));
    RG_TRY(
        rg_map_int_or(map, "devices_per_switch", 1, MAX_NODES, 0, &out->devices_per_switch, err));
    RG_TRY(rg_map_int_or(map, "devices_per_socket", 1, MAX_DEVICES_PER_NODE, 0,
                         &out->devices_per_socket, err));
    RG_TRY(
        rg_map_int_or(map, "nics_per_node", 1, MAX_DEVICES_PER_NODE, 0, &out->nics_per_node, err));
    RG_TRY(rg_map_real_or(map, "oversubscription", 1, &out->oversubscription, err));
    if (out->oversubscription < 1 || out->oversubscription > 1000)
        return rg_fail(err, RG_ERR_INPUT, rg_map_find(map, "oversubscription")->pos,
                       "oversubscription '%g' is not 1 (full bisection) to 1000",
                       out->oversubscription);
    RG_TRY(rg_map_bool_or(map, "in_network_reduction", false, &out->in_network_reduction, err));
    RG_TRY(rg_map_bool_or(map, "rail_optimised", false, &out->rail_optimised, err));
    RG_TRY(read_extent(map, out, err));
    RG_TRY(read_reach(map, out, err));
    return rg_map_done(map, err);
}

static rg_status read_host(rg_node *root, rg_cluster *cluster, rg_err *err)
{
    rg_node *map = rg_map_find(root, "host");
    if (map == NULL)
        return RG_OK;
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "host", err));
    RG_TRY(rg_figures_read(map, host_keys, false, cluster, err));
    return rg_map_done(map, err);
}

/** The device that a cluster file names, or the one that stands in for it. */
static rg_status read_device(rg_arena *arena, rg_node *root, rg_accel *instead, rg_cluster *cluster,
                             rg_err *err)
{
    const char *name;
    RG_TRY(rg_map_text(root, "device", &name, err));
    if (instead != NULL) {
        cluster->accel = instead;
        return RG_OK;
    }
    rg_err inner = {0};
    if (rg_accel_load(arena, name, &cluster->accel, &inner) == RG_OK)
        return RG_OK;
    if (inner.status == RG_ERR_USAGE)
        return rg_fail(err, RG_ERR_INPUT, rg_map_find(root, "device")->pos, "%s", inner.text);
    if (err != NULL)
        *err = inner;
    return inner.status;
}

static rg_status read_cluster(rg_arena *arena, const char *path, rg_node *root, rg_accel *instead,
                              rg_cluster **out, rg_err *err)
{
    rg_cluster *cluster = RG_NEW(arena, rg_cluster, 1, err);
    if (cluster == NULL)
        return RG_ERR_LIMIT;
    cluster->path = path;
    RG_TRY(rg_map_text(root, "name", &cluster->name, err));
    RG_TRY(rg_map_text(root, "title", &cluster->title, err));
    RG_TRY(rg_map_text_or(root, "note", NULL, &cluster->note, err));
    RG_TRY(rg_map_int(root, "devices_per_node", 1, MAX_DEVICES_PER_NODE, &cluster->devices_per_node,
                      err));
    RG_TRY(rg_map_int(root, "nodes", 1, MAX_NODES, &cluster->nodes, err));
    const int64_t devices = cluster->devices_per_node * cluster->nodes;
    RG_TRY(rg_map_int_or(root, "scale_up_devices", 1, devices, cluster->devices_per_node,
                         &cluster->scale_up_devices, err));
    rg_node *node;
    RG_TRY(rg_map_get(root, "scale_up", &node, err));
    RG_TRY(read_fabric(node, "scale_up", &cluster->scale_up, err));
    node = rg_map_find(root, "scale_out");
    if (node != NULL)
        RG_TRY(read_fabric(node, "scale_out", &cluster->scale_out, err));
    RG_TRY(read_host(root, cluster, err));
    RG_TRY(read_device(arena, root, instead, cluster, err));
    *out = cluster;
    return rg_map_done(root, err);
}

/** One device by itself, for an accelerator that names no usual node. */
static rg_status alone(rg_arena *arena, rg_accel *accel, rg_cluster **out, rg_err *err)
{
    rg_cluster *cluster = RG_NEW(arena, rg_cluster, 1, err);
    if (cluster == NULL)
        return RG_ERR_LIMIT;
    *cluster = (rg_cluster){.name = accel->name,
                            .title = accel->title,
                            .path = accel->path,
                            .accel = accel,
                            .devices_per_node = 1,
                            .nodes = 1,
                            .scale_up_devices = 1};
    *out = cluster;
    return RG_OK;
}

/** The usual node of an accelerator, with that very accelerator in it. */
static rg_status usual_node(rg_arena *arena, rg_accel *accel, const rg_changes *changes,
                            rg_cluster **out, rg_err *err)
{
    if (accel->usual_node == NULL)
        return alone(arena, accel, out, err);
    const char *path;
    rg_node *root;
    rg_err why = {0};
    const rg_status status =
        rg_data_find(arena, "hw/nodes", "usual node", accel->usual_node, &path, &why);
    if (status != RG_OK)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){.file = accel->path}, "%s", why.text);
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a cluster file", err));
    RG_TRY(rg_changes_apply(root, "cluster", changes, err));
    rg_map_find(root, "kind");
    return read_cluster(arena, path, root, accel, out, err);
}

static rg_status add_price(rg_arena *arena, rg_cluster *cluster, rg_err *err)
{
    rg_price_list prices;
    RG_TRY(rg_prices_load(arena, NULL, &prices, err));
    const char *device = cluster->accel->base != NULL ? cluster->accel->base : cluster->accel->name;
    const rg_price *price = rg_price_least(&prices, device, RG_PRICE_ON_DEMAND, NULL);
    if (price == NULL)
        return RG_OK;
    cluster->price = price->price;
    cluster->price_provider = price->provider;
    return RG_OK;
}

/** The device of a document with changes of the scope "hw", and before them (NULL: there are none).
 */
static rg_status read_changed_device(rg_arena *arena, const char *path, rg_node *root,
                                     const rg_changes *changes, rg_accel **before, rg_accel **out,
                                     rg_err *err)
{
    *before = NULL;
    if (!rg_changes_has(changes, "hw"))
        return rg_accel_read(arena, path, root, out, err);
    RG_TRY(rg_accel_read(arena, path, root, before, err));
    RG_TRY(rg_changes_apply(root, "hw", changes, err));
    RG_TRY(rg_accel_read(arena, path, root, out, err));
    return rg_follow_device(arena, *before, *out, err);
}

/** The device of a cluster file with changes and before them, when they touch it; else both NULL.
 */
static rg_status changed_device(rg_arena *arena, rg_node *root, const rg_changes *changes,
                                rg_accel **before, rg_accel **out, rg_err *err)
{
    *out = *before = NULL;
    if (!rg_changes_has(changes, "hw"))
        return RG_OK;
    const char *name, *path;
    rg_node *device;
    RG_TRY(rg_map_text(root, "device", &name, err));
    RG_TRY(rg_data_find(arena, "hw", "hardware", name, &path, err));
    RG_TRY(rg_doc_load(arena, path, &device, err));
    return read_changed_device(arena, path, device, changes, before, out, err);
}

static rg_status read_changed(rg_arena *arena, const char *path, rg_node *root,
                              const rg_changes *changes, rg_cluster **out, rg_err *err)
{
    static const char *const kinds[] = {"cluster", "accelerator", NULL};
    rg_node *node;
    int kind;
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a hardware file", err));
    RG_TRY(rg_map_get(root, "kind", &node, err));
    RG_TRY(rg_node_choice(node, kinds, &kind, err));
    rg_accel *before, *accel;
    if (kind == 0) {
        RG_TRY(rg_changes_apply(root, "cluster", changes, err));
        RG_TRY(changed_device(arena, root, changes, &before, &accel, err));
        RG_TRY(read_cluster(arena, path, root, accel, out, err));
    } else {
        RG_TRY(read_changed_device(arena, path, root, changes, &before, &accel, err));
        RG_TRY(usual_node(arena, accel, changes, out, err));
    }
    return before == NULL ? RG_OK : rg_follow_links(arena, before, changes, *out, err);
}

rg_status rg_cluster_read(rg_arena *arena, const char *path, rg_node *root, rg_cluster **out,
                          rg_err *err)
{
    return read_changed(arena, path, root, NULL, out, err);
}

rg_status rg_cluster_load_changed(rg_arena *arena, const char *name_or_path,
                                  const rg_changes *changes, rg_cluster **out, rg_err *err)
{
    const char *path;
    rg_node *root;
    RG_TRY(rg_data_find(arena, "hw/nodes:hw", "hardware", name_or_path, &path, err));
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(read_changed(arena, path, root, changes, out, err));
    return add_price(arena, *out, err);
}

rg_status rg_cluster_load(rg_arena *arena, const char *name_or_path, rg_cluster **out, rg_err *err)
{
    return rg_cluster_load_changed(arena, name_or_path, NULL, out, err);
}

/* ---- writing ---- */

/* "450.000000 GB/s" -> "450 GB/s". */
static void drop_zeros(char *text)
{
    char *unit = strchr(text, ' '), *end = unit;
    if (unit == NULL || strchr(text, '.') == NULL || strchr(text, '.') > unit)
        return;
    while (end[-1] == '0')
        end--;
    if (end[-1] == '.')
        end--;
    memmove(end, unit, strlen(unit) + 1);
}

static void put_figures(FILE *f, const rg_figure_key *keys, const void *object)
{
    for (const rg_figure_key *key = keys; key->key != NULL; key++) {
        const rg_figure *figure = (const rg_figure *)((const char *)object + key->offset);
        char value[48];
        if (!figure->known)
            continue;
        rg_quantity_format(figure->value, key->dim, 9, value, sizeof value);
        drop_zeros(value);
        fprintf(f, "  %s: {value: %s, source: ", key->key, value);
        rg_doc_put_quoted(f, figure->source);
        fputs("}\n", f);
    }
}

static void put_count(FILE *f, const char *key, int64_t value)
{
    if (value > 0)
        fprintf(f, "  %s: %lld\n", key, (long long)value);
}

static void put_fabric(FILE *f, const char *key, const rg_fabric *fabric)
{
    fprintf(f, "%s:\n  kind: %s\n", key, fabric_names[fabric->kind]);
    if (fabric->kind == RG_FABRIC_NONE)
        return;
    fprintf(f, "  technology: %s\n", fabric->technology);
    put_figures(f, fabric_keys, fabric);
    for (int i = 0; i < fabric->dimensions; i++)
        fprintf(f, "%s%lld%s", i == 0 ? "  extent: [" : ", ", (long long)fabric->extent[i],
                i == fabric->dimensions - 1 ? "]\n" : "");
    put_count(f, "nics_per_node", fabric->nics_per_node);
    put_count(f, "devices_per_switch", fabric->devices_per_switch);
    put_count(f, "devices_per_socket", fabric->devices_per_socket);
    if (fabric->kind == RG_FABRIC_PCIE_TREE)
        fprintf(f, "  peer_reach: %s\n", reach_names[fabric->peer_reach]);
    if (fabric->oversubscription != 1)
        fprintf(f, "  oversubscription: %.9g\n", fabric->oversubscription);
    fprintf(f, "  in_network_reduction: %s\n", fabric->in_network_reduction ? "true" : "false");
    if (fabric->rail_optimised)
        fputs("  rail_optimised: true\n", f);
}

rg_status rg_cluster_write(rg_arena *arena, const rg_cluster *c, char **out, rg_err *err)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (f == NULL)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "not enough memory");
    fprintf(f, "kind: cluster\nname: %s\ntitle: ", c->name);
    rg_doc_put_quoted(f, c->title);
    fputs(c->note != NULL ? "\nnote: " : "\n", f);
    if (c->note != NULL) {
        rg_doc_put_quoted(f, c->note);
        fputc('\n', f);
    }
    fprintf(f, "device: %s\ndevices_per_node: %lld\nnodes: %lld\n", c->accel->name,
            (long long)c->devices_per_node, (long long)c->nodes);
    if (c->scale_up_devices != c->devices_per_node)
        fprintf(f, "scale_up_devices: %lld\n", (long long)c->scale_up_devices);
    put_fabric(f, "scale_up", &c->scale_up);
    if (c->scale_out.kind != RG_FABRIC_NONE)
        put_fabric(f, "scale_out", &c->scale_out);
    if (c->host_memory.known || c->host_link.known || c->overhead_power.known) {
        fputs("host:\n", f);
        put_figures(f, host_keys, c);
    }
    const bool whole = fflush(f) == 0 && !ferror(f);
    fclose(f);
    *out = whole ? rg_arena_copy(arena, text, length, err) : NULL;
    free(text);
    return *out == NULL ? RG_ERR_LIMIT : RG_OK;
}

/* ---- figures and findings ---- */

static rg_status add_known(rg_arena *arena, rg_named_figure *list, int *count, const char *prefix,
                           const rg_figure_key *keys, void *object, rg_err *err)
{
    for (const rg_figure_key *key = keys; key->key != NULL; key++) {
        rg_figure *figure = rg_figure_at(key, object);
        if (!figure->known)
            continue;
        const char *path = rg_arena_printf(arena, err, "%s.%s", prefix, key->key);
        if (path == NULL)
            return RG_ERR_LIMIT;
        list[(*count)++] = (rg_named_figure){.path = path, .figure = figure};
    }
    return RG_OK;
}

rg_status rg_cluster_figures(rg_arena *arena, rg_cluster *cluster, const rg_named_figure **out,
                             int *count, rg_err *err)
{
    const size_t most =
        2 * sizeof fabric_keys / sizeof fabric_keys[0] + sizeof host_keys / sizeof host_keys[0] + 1;
    rg_named_figure *list = RG_NEW(arena, rg_named_figure, most, err);
    if (list == NULL)
        return RG_ERR_LIMIT;
    *count = 0;
    RG_TRY(add_known(arena, list, count, "scale_up", fabric_keys, &cluster->scale_up, err));
    RG_TRY(add_known(arena, list, count, "scale_out", fabric_keys, &cluster->scale_out, err));
    RG_TRY(add_known(arena, list, count, "host", host_keys, cluster, err));
    if (cluster->price.known)
        list[(*count)++] = (rg_named_figure){.path = "price", .figure = &cluster->price};
    *out = list;
    return RG_OK;
}

enum { MAX_CLUSTER_FINDINGS = 16 };

typedef struct checking {
    rg_arena *arena;
    rg_finding *list;
    int count;
    rg_err *err;
} checking;

static rg_status found(checking *to, rg_severity severity, const char *name, rg_pos pos,
                       const char *text)
{
    if (text == NULL)
        return RG_ERR_LIMIT;
    if (to->count < MAX_CLUSTER_FINDINGS)
        to->list[to->count++] =
            (rg_finding){.severity = severity, .name = name, .pos = pos, .text = text};
    return RG_OK;
}

/** The rate of the domain must be that of the device's own port of the same technology. */
static rg_status check_rate(checking *to, const rg_cluster *cluster)
{
    const rg_fabric *fabric = &cluster->scale_up;
    for (int i = 0; i < cluster->accel->port_count && fabric->kind != RG_FABRIC_NONE; i++) {
        const rg_link_port *port = &cluster->accel->ports[i];
        const double own = port->rate_per_direction.value;
        if (strcmp(port->kind, fabric->technology) != 0 ||
            fabs(fabric->rate_per_direction.value - own) <= 0.01 * own)
            continue;
        char stated[48], want[48];
        rg_quantity_format(fabric->rate_per_direction.value, RG_DIM_BYTES_PER_S, 4, stated,
                           sizeof stated);
        rg_quantity_format(own, RG_DIM_BYTES_PER_S, 4, want, sizeof want);
        RG_TRY(
            found(to, RG_SEVERITY_ERROR, "scale-up-rate", fabric->rate_per_direction.pos,
                  rg_arena_printf(to->arena, to->err,
                                  "rate_per_direction '%s' is not the '%s' of the %s ports of %s",
                                  stated, want, port->kind, cluster->accel->name)));
    }
    return RG_OK;
}

static rg_status check_counts(checking *to, const rg_cluster *cluster)
{
    const int64_t devices = cluster->devices_per_node * cluster->nodes;
    const int64_t domain = cluster->scale_up_devices;
    const bool fits = devices % domain == 0 && (domain % cluster->devices_per_node == 0 ||
                                                cluster->devices_per_node % domain == 0);
    const rg_pos top = {.file = cluster->path, .line = 1, .column = 1};
    if (!fits)
        RG_TRY(found(to, RG_SEVERITY_ERROR, "domain-size", top,
                     rg_arena_printf(to->arena, to->err,
                                     "domains of '%lld' devices do not divide %lld nodes of %lld",
                                     (long long)domain, (long long)cluster->nodes,
                                     (long long)cluster->devices_per_node)));
    int64_t cells = 1;
    for (int i = 0; i < cluster->scale_up.dimensions; i++)
        cells *= cluster->scale_up.extent[i];
    if (cluster->scale_up.kind == RG_FABRIC_TORUS && cells != domain)
        RG_TRY(found(to, RG_SEVERITY_ERROR, "torus-extent", cluster->scale_up.pos,
                     rg_arena_printf(to->arena, to->err,
                                     "the torus has '%lld' places for %lld devices",
                                     (long long)cells, (long long)domain)));
    if (devices > domain && cluster->scale_out.kind == RG_FABRIC_NONE)
        RG_TRY(found(to, RG_SEVERITY_ERROR, "no-scale-out", top,
                     "several domains, but no scale_out between them"));
    return RG_OK;
}

rg_status rg_cluster_check(rg_arena *arena, const rg_cluster *cluster, rg_findings *out,
                           rg_err *err)
{
    checking to = {.arena = arena, .err = err};
    to.list = RG_NEW(arena, rg_finding, MAX_CLUSTER_FINDINGS, err);
    if (to.list == NULL)
        return RG_ERR_LIMIT;
    const char *slash = strrchr(cluster->path, '/');
    const char *file = slash == NULL ? cluster->path : slash + 1;
    const size_t stem = strcspn(file, ".");
    const rg_pos top = {.file = cluster->path, .line = 1, .column = 1};
    if (strlen(cluster->name) != stem || strncmp(cluster->name, file, stem) != 0)
        RG_TRY(found(&to, RG_SEVERITY_WARNING, "name-differs", top,
                     rg_arena_printf(arena, err, "name '%s' is not the name of the file '%s'",
                                     cluster->name, file)));
    RG_TRY(check_rate(&to, cluster));
    RG_TRY(check_counts(&to, cluster));
    *out = (rg_findings){.list = to.list, .count = to.count};
    for (int i = 0; i < to.count; i++)
        out->errors += to.list[i].severity == RG_SEVERITY_ERROR;
    return RG_OK;
}

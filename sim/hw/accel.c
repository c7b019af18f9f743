/* hw/accel.c: reading a hardware file. Each section is one table of keys (hw/accel_keys.h). */
// SPDX-License-Identifier: Apache-2.0
#include "hw/accel.h"

#include <assert.h>
#include <string.h>

#include "core/find.h"
#include "hw/accel_keys.h"
#include "hw/fit.h"

enum { MAX_BORROWS = 3 };

/* Names of memory levels, from the arithmetic outwards; the last two are device memory. */
static const char *const level_names[] = {"registers", "l1",  "vmem", "sram", "l2",
                                          "l3",        "hbm", "gddr", NULL};
static const char *const port_names[] = {
    "nvlink",        "nvlink2",         "nvlink3", "nvlink4",  "nvlink5",
    "nvlink_bridge", "infinity_fabric", "ici",     "xe_link",  "ethernet",
    "c2c",           "pcie3x16",        "pcie4x8", "pcie4x16", "pcie5x8",
    "pcie5x16",      "pcie6x16",        "pcie4x4", "pcie3x8",  NULL};

/** What one load carries about. */
typedef struct loading {
    rg_arena *arena;
    rg_accel *accel;
    const rg_accel *base; /* device that the file changes, NULL: then keys may be required */
    int depth;            /* files that led here by base: and borrow: */
    rg_err *err;
} loading;

static rg_status load_named(rg_arena *arena, const char *name_or_path, int depth, rg_accel **out,
                            rg_err *err);

/** A map under a key; NULL when the key is absent and may be. */
static rg_status section(const loading *in, rg_node *root, const char *key, bool required,
                         rg_node **out)
{
    if (required && in->base == NULL)
        RG_TRY(rg_map_get(root, key, out, in->err));
    else
        *out = rg_map_find(root, key);
    return *out == NULL ? RG_OK : rg_node_expect(*out, RG_NODE_MAP, key, in->err);
}

/** A section that is nothing but figures of the accelerator itself. */
static rg_status read_plain(const loading *in, rg_node *root, const char *key, bool required,
                            const rg_figure_key *keys)
{
    rg_node *map;
    RG_TRY(section(in, root, key, required, &map));
    if (map == NULL)
        return RG_OK;
    RG_TRY(rg_figures_read(map, keys, in->base == NULL, in->accel, in->err));
    return rg_map_done(map, in->err);
}

static rg_status read_units(const loading *in, rg_node *root)
{
    rg_node *map;
    RG_TRY(section(in, root, "units", true, &map));
    if (map == NULL)
        return RG_OK;
    if (in->base == NULL || rg_map_find(map, "name") != NULL)
        RG_TRY(rg_map_text(map, "name", &in->accel->unit_name, in->err));
    RG_TRY(rg_figures_read(map, rg_accel_unit_keys, in->base == NULL, in->accel, in->err));
    return rg_map_done(map, in->err);
}

/** "bf16_fp32" -> input and accumulate type. */
static rg_status split_types(const loading *in, const rg_node *node, rg_peak *peak)
{
    const char *bar = strchr(node->key, '_');
    if (bar == NULL)
        return rg_fail(in->err, RG_ERR_INPUT, node->key_pos,
                       "peak '%s' names no accumulate type; write it as 'bf16_fp32'", node->key);
    const char *input = rg_arena_copy(in->arena, node->key, (size_t)(bar - node->key), in->err);
    if (input == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(rg_dtype_parse(input, node->key_pos, &peak->input, in->err));
    RG_TRY(rg_dtype_parse(bar + 1, node->key_pos, &peak->accumulate, in->err));
    peak->name = node->key;
    peak->pos = node->key_pos;
    return RG_OK;
}

static rg_status read_peak(const loading *in, rg_node *node, bool matrix)
{
    rg_accel *accel = in->accel;
    rg_peak peak = {.matrix = matrix};
    RG_TRY(split_types(in, node, &peak));
    RG_TRY(rg_node_expect(node, RG_NODE_MAP, node->key, in->err));
    rg_peak *slot = NULL;
    for (int i = 0; i < accel->peak_count; i++) {
        rg_peak *other = &accel->peaks[i];
        if (other->matrix == matrix && other->input == peak.input &&
            other->accumulate == peak.accumulate)
            slot = other;
    }
    if (slot == NULL && accel->peak_count == RG_MAX_PEAKS)
        return rg_fail(in->err, RG_ERR_LIMIT, node->key_pos, "more than %d peaks", RG_MAX_PEAKS);
    if (slot != NULL && in->base == NULL)
        return rg_fail(in->err, RG_ERR_INPUT, node->key_pos,
                       "peak '%s' names the same types as '%s'; keep one", node->key, slot->name);
    const bool fresh = slot == NULL;
    if (fresh) {
        slot = &accel->peaks[accel->peak_count++];
        *slot = peak;
    }
    RG_TRY(rg_figures_read(node, rg_accel_peak_keys, fresh, slot, in->err));
    return rg_map_done(node, in->err);
}

static rg_status read_peaks(const loading *in, rg_node *root)
{
    rg_node *map;
    RG_TRY(section(in, root, "peaks", true, &map));
    if (map == NULL)
        return RG_OK;
    static const char *const kinds[] = {"matrix", "vector"};
    for (int i = 0; i < 2; i++) {
        rg_node *kind;
        RG_TRY(section(in, map, kinds[i], false, &kind));
        for (rg_node *node = kind == NULL ? NULL : kind->first; node != NULL; node = node->next) {
            rg_map_find(kind, node->key); /* any pair of types is a key */
            RG_TRY(read_peak(in, node, i == 0));
        }
    }
    RG_TRY(rg_map_done(map, in->err));
    if (in->accel->peak_count == 0)
        return rg_fail(in->err, RG_ERR_INPUT, map->pos,
                       "no peak is given; add matrix: {bf16_fp32: {rate: ...}}");
    return RG_OK;
}

static rg_status read_level(const loading *in, rg_node *node)
{
    rg_accel *accel = in->accel;
    RG_TRY(rg_node_expect(node, RG_NODE_MAP, node->key, in->err));
    rg_memory_level *level = NULL;
    for (int i = 0; i < accel->level_count; i++)
        if (strcmp(accel->levels[i].name, node->key) == 0)
            level = &accel->levels[i];
    if (level == NULL) {
        if (accel->level_count == RG_MAX_LEVELS)
            return rg_fail(in->err, RG_ERR_LIMIT, node->key_pos, "more than %d memory levels",
                           RG_MAX_LEVELS);
        level = &accel->levels[accel->level_count++];
        *level = (rg_memory_level){.name = node->key, .pos = node->key_pos};
    }
    RG_TRY(rg_map_bool_or(node, "per_unit", level->per_unit, &level->per_unit, in->err));
    RG_TRY(rg_figures_read(node, rg_accel_level_keys, false, level, in->err));
    return rg_map_done(node, in->err);
}

/** Levels in the order of level_names, whatever the order of the file. */
static void sort_levels(rg_accel *accel)
{
    rg_memory_level sorted[RG_MAX_LEVELS];
    int count = 0;
    for (int n = 0; level_names[n] != NULL; n++)
        for (int i = 0; i < accel->level_count; i++)
            if (strcmp(accel->levels[i].name, level_names[n]) == 0)
                sorted[count++] = accel->levels[i];
    assert(count == accel->level_count);
    memcpy(accel->levels, sorted, sizeof sorted[0] * (size_t)count);
}

static bool is_device_memory(const rg_memory_level *level)
{
    return strcmp(level->name, "hbm") == 0 || strcmp(level->name, "gddr") == 0;
}

static rg_status read_memory(const loading *in, rg_node *root)
{
    rg_accel *accel = in->accel;
    rg_node *map;
    RG_TRY(section(in, root, "memory", true, &map));
    if (map == NULL)
        return RG_OK;
    for (int i = 0; level_names[i] != NULL; i++) {
        rg_node *node = rg_map_find(map, level_names[i]);
        if (node != NULL)
            RG_TRY(read_level(in, node));
    }
    RG_TRY(rg_map_done(map, in->err));
    sort_levels(accel);
    if (accel->level_count == 0 || !is_device_memory(rg_accel_memory(accel)))
        return rg_fail(in->err, RG_ERR_INPUT, map->pos,
                       "memory has no 'hbm' or 'gddr'; add the device memory");
    const rg_memory_level *memory = rg_accel_memory(accel);
    if (accel->level_count > 1 && is_device_memory(memory - 1))
        return rg_fail(in->err, RG_ERR_INPUT, memory->pos,
                       "memory has both 'hbm' and 'gddr'; keep one");
    if (!memory->capacity.known || !memory->bandwidth.known)
        return rg_fail(in->err, RG_ERR_INPUT, memory->pos, "missing key '%s' in '%s'",
                       memory->capacity.known ? "bandwidth" : "capacity", memory->name);
    return RG_OK;
}

static rg_status read_port(const loading *in, rg_node *node)
{
    rg_accel *accel = in->accel;
    RG_TRY(rg_node_expect(node, RG_NODE_MAP, node->key, in->err));
    rg_link_port *port = NULL;
    for (int i = 0; i < accel->port_count; i++)
        if (strcmp(accel->ports[i].kind, node->key) == 0)
            port = &accel->ports[i];
    const bool fresh = port == NULL;
    if (fresh) {
        if (accel->port_count == RG_MAX_PORTS)
            return rg_fail(in->err, RG_ERR_LIMIT, node->key_pos, "more than %d kinds of links",
                           RG_MAX_PORTS);
        port = &accel->ports[accel->port_count++];
        *port = (rg_link_port){.kind = node->key, .pos = node->key_pos};
    }
    RG_TRY(rg_figures_read(node, rg_accel_port_keys, fresh, port, in->err));
    port->count = port->links.known ? (int64_t)port->links.value : 1;
    return rg_map_done(node, in->err);
}

static rg_status read_links(const loading *in, rg_node *root)
{
    rg_node *map;
    RG_TRY(section(in, root, "links", false, &map));
    if (map == NULL)
        return RG_OK;
    for (int i = 0; port_names[i] != NULL; i++) {
        rg_node *node = rg_map_find(map, port_names[i]);
        if (node != NULL)
            RG_TRY(read_port(in, node));
    }
    return rg_map_done(map, in->err);
}

static rg_status read_noc(const loading *in, rg_node *root)
{
    rg_node *map;
    RG_TRY(section(in, root, "noc", false, &map));
    if (map == NULL)
        return RG_OK;
    RG_TRY(rg_map_text_or(map, "file", in->accel->noc_file, &in->accel->noc_file, in->err));
    RG_TRY(rg_figures_read(map, rg_accel_noc_keys, false, in->accel, in->err));
    return rg_map_done(map, in->err);
}

static rg_status read_fit(const loading *in, rg_node *root)
{
    rg_accel *accel = in->accel;
    rg_node *map = rg_map_find(root, "fit");
    if (map == NULL)
        return in->base == NULL ? RG_OK : rg_fit_borrow(in->arena, in->base, accel, in->err);
    RG_TRY(rg_node_expect(map, RG_NODE_MAP, "fit", in->err));
    const rg_node *borrow = rg_map_find(map, "borrow");
    const rg_accel *lender = in->base;
    if (borrow != NULL) {
        const char *name;
        RG_TRY(rg_node_text(borrow, &name, in->err));
        rg_accel *loaded;
        rg_err inner = {0};
        if (in->depth >= MAX_BORROWS)
            return rg_fail(in->err, RG_ERR_INPUT, borrow->pos,
                           "'%s' is borrowed from in a circle, or through more than %d files", name,
                           MAX_BORROWS);
        if (strcmp(name, accel->name) == 0 ||
            load_named(in->arena, name, in->depth + 1, &loaded, &inner) != RG_OK)
            return rg_fail(in->err, RG_ERR_INPUT, borrow->pos, "cannot borrow from '%s': %s", name,
                           inner.status == RG_OK ? "that is the device itself" : inner.text);
        lender = loaded;
    }
    return rg_fit_read(in->arena, map, lender, accel, in->err);
}

/** Identity: what the thing is called. */
static rg_status read_names(const loading *in, rg_node *root)
{
    rg_accel *accel = in->accel;
    RG_TRY(rg_map_text(root, "name", &accel->name, in->err));
    const struct {
        const char *key;
        const char **field;
        bool required;
    } names[] = {{"title", &accel->title, true},
                 {"vendor", &accel->vendor, true},
                 {"arch", &accel->arch, true},
                 {"usual_node", &accel->usual_node, false},
                 {"note", &accel->note, false}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].required && in->base == NULL)
            RG_TRY(rg_map_text(root, names[i].key, names[i].field, in->err));
        else
            RG_TRY(rg_map_text_or(root, names[i].key, *names[i].field, names[i].field, in->err));
    }
    return RG_OK;
}

static rg_status read_all(const loading *in, rg_node *root)
{
    RG_TRY(read_names(in, root));
    RG_TRY(read_units(in, root));
    RG_TRY(read_plain(in, root, "clocks", true, rg_accel_clock_keys));
    RG_TRY(read_plain(in, root, "power", true, rg_accel_power_keys));
    RG_TRY(read_peaks(in, root));
    RG_TRY(read_memory(in, root));
    RG_TRY(read_links(in, root));
    RG_TRY(read_noc(in, root));
    RG_TRY(read_fit(in, root));
    return rg_map_done(root, in->err);
}

/** The device that base: names, for the file to change. */
static rg_status load_base(rg_arena *arena, const rg_node *node, rg_accel **out, rg_err *err)
{
    const char *name;
    RG_TRY(rg_node_text(node, &name, err));
    rg_err inner = {0};
    if (load_named(arena, name, 1, out, &inner) == RG_OK)
        return RG_OK;
    return rg_fail(err, RG_ERR_INPUT, node->pos, "cannot start from '%s': %s", name, inner.text);
}

static rg_status read_document(rg_arena *arena, const char *path, rg_node *root, int depth,
                               rg_accel **out, rg_err *err)
{
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a hardware file", err));
    static const char *const kinds[] = {"accelerator", NULL};
    rg_node *kind;
    int choice;
    RG_TRY(rg_map_get(root, "kind", &kind, err));
    RG_TRY(rg_node_choice(kind, kinds, &choice, err));
    rg_accel *accel = RG_NEW(arena, rg_accel, 1, err);
    if (accel == NULL)
        return RG_ERR_LIMIT;
    const rg_node *node = rg_map_find(root, "base");
    if (node != NULL && depth > 0)
        return rg_fail(err, RG_ERR_INPUT, node->pos,
                       "'%s' itself starts from another device; name that one", path);
    rg_accel *base = NULL;
    if (node != NULL) {
        RG_TRY(load_base(arena, node, &base, err));
        *accel = *base;
        accel->base = base->name;
    }
    accel->path = path;
    const loading in = {.arena = arena, .accel = accel, .base = base, .depth = depth, .err = err};
    RG_TRY(read_all(&in, root));
    *out = accel;
    return RG_OK;
}

rg_status rg_accel_read(rg_arena *arena, const char *path, rg_node *root, rg_accel **out,
                        rg_err *err)
{
    return read_document(arena, path, root, 0, out, err);
}

static rg_status load_named(rg_arena *arena, const char *name_or_path, int depth, rg_accel **out,
                            rg_err *err)
{
    const char *path;
    rg_node *root;
    RG_TRY(rg_data_find(arena, "hw", "hardware", name_or_path, &path, err));
    RG_TRY(rg_doc_load(arena, path, &root, err));
    return read_document(arena, path, root, depth, out, err);
}

rg_status rg_accel_load(rg_arena *arena, const char *name_or_path, rg_accel **out, rg_err *err)
{
    return load_named(arena, name_or_path, 0, out, err);
}

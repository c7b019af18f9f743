/* hw/accel.c: reading a hardware file.
 *
 * Each section of the file is one table of keys; the same tables list the figures for `ridge show`
 * and for what-ifs.
 */
// SPDX-License-Identifier: Apache-2.0
#include "hw/accel.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/find.h"
#include "hw/fit.h"

enum { MAX_BORROWS = 3 };

#define AT(type, field) offsetof(type, field)

static const rg_figure_key unit_keys[] = {
    {"count", RG_DIM_NONE, AT(rg_accel, units), RG_FIGURE_REQUIRED | RG_FIGURE_WHOLE},
    {"matrix_cores", RG_DIM_NONE, AT(rg_accel, matrix_cores_per_unit), RG_FIGURE_WHOLE},
    {"systolic_rows", RG_DIM_NONE, AT(rg_accel, systolic_rows), RG_FIGURE_WHOLE},
    {"systolic_columns", RG_DIM_NONE, AT(rg_accel, systolic_columns), RG_FIGURE_WHOLE},
    {"max_threads", RG_DIM_NONE, AT(rg_accel, max_threads_per_unit), RG_FIGURE_WHOLE},
    {"max_blocks", RG_DIM_NONE, AT(rg_accel, max_blocks_per_unit), RG_FIGURE_WHOLE},
    {"registers", RG_DIM_NONE, AT(rg_accel, registers_per_unit), RG_FIGURE_WHOLE},
    {NULL, RG_DIM_NONE, 0, 0},
};
static const rg_figure_key clock_keys[] = {
    {"boost", RG_DIM_HERTZ, AT(rg_accel, boost_clock), RG_FIGURE_REQUIRED},
    {"base", RG_DIM_HERTZ, AT(rg_accel, base_clock), 0},
    {"sustained", RG_DIM_HERTZ, AT(rg_accel, sustained_clock), RG_FIGURE_MEASURED},
    {NULL, RG_DIM_NONE, 0, 0},
};
static const rg_figure_key power_keys[] = {
    {"tdp", RG_DIM_WATTS, AT(rg_accel, tdp), RG_FIGURE_REQUIRED | RG_FIGURE_SPEC},
    {"idle", RG_DIM_WATTS, AT(rg_accel, idle_power), 0},
    {NULL, RG_DIM_NONE, 0, 0},
};
static const rg_figure_key noc_keys[] = {
    {"bandwidth", RG_DIM_BYTES_PER_S, AT(rg_accel, noc_bandwidth), 0},
    {NULL, RG_DIM_NONE, 0, 0},
};
static const rg_figure_key peak_keys[] = {
    {"rate", RG_DIM_FLOPS_PER_S, AT(rg_peak, rate), RG_FIGURE_REQUIRED | RG_FIGURE_SPEC},
    {"sparse", RG_DIM_FLOPS_PER_S, AT(rg_peak, sparse), RG_FIGURE_SPEC},
    {"ops_per_clock_per_unit", RG_DIM_NONE, AT(rg_peak, ops_per_clock_per_unit), RG_FIGURE_WHOLE},
    {"clock", RG_DIM_HERTZ, AT(rg_peak, clock), 0},
    {"sustained", RG_DIM_FLOPS_PER_S, AT(rg_peak, sustained), RG_FIGURE_MEASURED},
    {NULL, RG_DIM_NONE, 0, 0},
};
static const rg_figure_key level_keys[] = {
    {"capacity", RG_DIM_BYTES, AT(rg_memory_level, capacity), RG_FIGURE_SPEC},
    {"usable", RG_DIM_BYTES, AT(rg_memory_level, usable), 0},
    {"shared", RG_DIM_BYTES, AT(rg_memory_level, shared), RG_FIGURE_SPEC},
    {"bandwidth", RG_DIM_BYTES_PER_S, AT(rg_memory_level, bandwidth), RG_FIGURE_SPEC},
    {"bytes_per_clock", RG_DIM_BYTES, AT(rg_memory_level, bytes_per_clock), RG_FIGURE_SPEC},
    {"clock", RG_DIM_HERTZ, AT(rg_memory_level, clock), 0},
    {"bus_width", RG_DIM_NONE, AT(rg_memory_level, bus_width), RG_FIGURE_WHOLE},
    {"pin_rate", RG_DIM_BYTES_PER_S, AT(rg_memory_level, pin_rate), RG_FIGURE_SPEC},
    {"measured_bandwidth", RG_DIM_BYTES_PER_S, AT(rg_memory_level, measured_bandwidth),
     RG_FIGURE_MEASURED},
    {"latency", RG_DIM_SECONDS, AT(rg_memory_level, latency), 0},
    {"line", RG_DIM_BYTES, AT(rg_memory_level, line), RG_FIGURE_WHOLE},
    {"partitions", RG_DIM_NONE, AT(rg_memory_level, partitions), RG_FIGURE_WHOLE},
    {NULL, RG_DIM_NONE, 0, 0},
};
static const rg_figure_key port_keys[] = {
    {"links", RG_DIM_NONE, AT(rg_link_port, links), RG_FIGURE_WHOLE},
    {"rate_per_link", RG_DIM_BYTES_PER_S, AT(rg_link_port, rate_per_link), RG_FIGURE_SPEC},
    {"rate_per_direction", RG_DIM_BYTES_PER_S, AT(rg_link_port, rate_per_direction),
     RG_FIGURE_REQUIRED | RG_FIGURE_SPEC},
    {"latency", RG_DIM_SECONDS, AT(rg_link_port, latency), 0},
    {NULL, RG_DIM_NONE, 0, 0},
};

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
    RG_TRY(rg_figures_read(map, unit_keys, in->base == NULL, in->accel, in->err));
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
    RG_TRY(rg_figures_read(node, peak_keys, fresh, slot, in->err));
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
    RG_TRY(rg_figures_read(node, level_keys, false, level, in->err));
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
    RG_TRY(rg_figures_read(node, port_keys, fresh, port, in->err));
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
    RG_TRY(rg_figures_read(map, noc_keys, false, in->accel, in->err));
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
    RG_TRY(read_plain(in, root, "clocks", true, clock_keys));
    RG_TRY(read_plain(in, root, "power", true, power_keys));
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

const rg_peak *rg_accel_peak_of(const rg_accel *accel, bool matrix, rg_dtype input,
                                rg_dtype accumulate)
{
    for (int i = 0; i < accel->peak_count; i++) {
        const rg_peak *peak = &accel->peaks[i];
        if (peak->matrix == matrix && peak->input == input && peak->accumulate == accumulate)
            return peak;
    }
    return NULL;
}

const rg_peak *rg_accel_peak(const rg_accel *accel, rg_dtype input)
{
    const rg_dtype wide = input == RG_FP64                       ? RG_FP64
                          : input == RG_INT8 || input == RG_INT4 ? RG_INT32
                                                                 : RG_FP32;
    return rg_accel_peak_of(accel, true, input, wide);
}

const rg_memory_level *rg_accel_level(const rg_accel *accel, const char *name)
{
    for (int i = 0; i < accel->level_count; i++)
        if (strcmp(accel->levels[i].name, name) == 0)
            return &accel->levels[i];
    if (strcmp(name, "hbm") == 0 || strcmp(name, "memory") == 0)
        return rg_accel_memory(accel);
    return NULL;
}

double rg_accel_level_bandwidth(const rg_accel *accel, const rg_memory_level *level)
{
    const double parts = level->per_unit ? accel->units.value : 1.0;
    if (level->bandwidth.known)
        return level->bandwidth.value * parts;
    const double clock = level->clock.known ? level->clock.value : accel->boost_clock.value;
    if (level->bytes_per_clock.known)
        return level->bytes_per_clock.value * parts * clock;
    return level->measured_bandwidth.known ? level->measured_bandwidth.value : 0.0;
}

double rg_accel_level_bytes(const rg_accel *accel, const rg_memory_level *level)
{
    const double parts = level->per_unit ? accel->units.value : 1.0;
    return level->capacity.known ? level->capacity.value * parts : 0.0;
}

double rg_accel_peak_clock(const rg_accel *accel, const rg_peak *peak)
{
    return peak->clock.known ? peak->clock.value : accel->boost_clock.value;
}

/** A list of figures that grows; counts only while list is NULL. */
typedef struct figure_list {
    rg_arena *arena;
    rg_named_figure *list;
    int count;
    rg_err *err;
} figure_list;

static rg_status add_figures(figure_list *to, const char *prefix, const rg_figure_key *keys,
                             void *object)
{
    for (const rg_figure_key *key = keys; key->key != NULL; key++) {
        rg_figure *figure = rg_figure_at(key, object);
        if (!figure->known)
            continue;
        if (to->list != NULL) {
            const char *path = rg_arena_printf(to->arena, to->err, "%s.%s", prefix, key->key);
            if (path == NULL)
                return RG_ERR_LIMIT;
            to->list[to->count] = (rg_named_figure){.path = path, .figure = figure};
        }
        to->count++;
    }
    return RG_OK;
}

static rg_status add_all(figure_list *to, rg_accel *accel)
{
    char prefix[128];
    RG_TRY(add_figures(to, "units", unit_keys, accel));
    RG_TRY(add_figures(to, "clocks", clock_keys, accel));
    RG_TRY(add_figures(to, "power", power_keys, accel));
    for (int i = 0; i < accel->peak_count; i++) {
        rg_peak *peak = &accel->peaks[i];
        snprintf(prefix, sizeof prefix, "peaks.%s.%s", peak->matrix ? "matrix" : "vector",
                 peak->name);
        RG_TRY(add_figures(to, prefix, peak_keys, peak));
    }
    for (int i = 0; i < accel->level_count; i++) {
        snprintf(prefix, sizeof prefix, "memory.%s", accel->levels[i].name);
        RG_TRY(add_figures(to, prefix, level_keys, &accel->levels[i]));
    }
    for (int i = 0; i < accel->port_count; i++) {
        snprintf(prefix, sizeof prefix, "links.%s", accel->ports[i].kind);
        RG_TRY(add_figures(to, prefix, port_keys, &accel->ports[i]));
    }
    return add_figures(to, "noc", noc_keys, accel);
}

rg_status rg_accel_figures(rg_arena *arena, rg_accel *accel, const rg_named_figure **out,
                           int *count, rg_err *err)
{
    figure_list counted = {.arena = arena, .err = err};
    RG_TRY(add_all(&counted, accel));
    figure_list list = {.arena = arena, .err = err};
    list.list = RG_NEW(arena, rg_named_figure, counted.count, err);
    if (list.list == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(add_all(&list, accel));
    *out = list.list;
    *count = list.count;
    return RG_OK;
}

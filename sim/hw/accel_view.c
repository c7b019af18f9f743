/* hw/accel_view.c: looking things up in an accelerator, and listing its figures. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "hw/accel.h"
#include "hw/accel_keys.h"

#define AT(type, field) offsetof(type, field)

const rg_figure_key rg_accel_unit_keys[] = {
    {"count", RG_DIM_NONE, AT(rg_accel, units), RG_FIGURE_REQUIRED | RG_FIGURE_WHOLE},
    {"matrix_cores", RG_DIM_NONE, AT(rg_accel, matrix_cores_per_unit), RG_FIGURE_WHOLE},
    {"systolic_rows", RG_DIM_NONE, AT(rg_accel, systolic_rows), RG_FIGURE_WHOLE},
    {"systolic_columns", RG_DIM_NONE, AT(rg_accel, systolic_columns), RG_FIGURE_WHOLE},
    {"max_threads", RG_DIM_NONE, AT(rg_accel, max_threads_per_unit), RG_FIGURE_WHOLE},
    {"max_blocks", RG_DIM_NONE, AT(rg_accel, max_blocks_per_unit), RG_FIGURE_WHOLE},
    {"registers", RG_DIM_NONE, AT(rg_accel, registers_per_unit), RG_FIGURE_WHOLE},
    {"exponentials_per_clock", RG_DIM_NONE, AT(rg_accel, exp_per_clock_per_unit), 0},
    {NULL, RG_DIM_NONE, 0, 0},
};
const rg_figure_key rg_accel_clock_keys[] = {
    {"boost", RG_DIM_HERTZ, AT(rg_accel, boost_clock), RG_FIGURE_REQUIRED},
    {"base", RG_DIM_HERTZ, AT(rg_accel, base_clock), 0},
    {"sustained", RG_DIM_HERTZ, AT(rg_accel, sustained_clock), RG_FIGURE_MEASURED},
    {NULL, RG_DIM_NONE, 0, 0},
};
const rg_figure_key rg_accel_power_keys[] = {
    {"tdp", RG_DIM_WATTS, AT(rg_accel, tdp), RG_FIGURE_REQUIRED | RG_FIGURE_SPEC},
    {"idle", RG_DIM_WATTS, AT(rg_accel, idle_power), 0},
    {NULL, RG_DIM_NONE, 0, 0},
};
const rg_figure_key rg_accel_noc_keys[] = {
    {"bandwidth", RG_DIM_BYTES_PER_S, AT(rg_accel, noc_bandwidth), 0},
    {NULL, RG_DIM_NONE, 0, 0},
};
const rg_figure_key rg_accel_peak_keys[] = {
    {"rate", RG_DIM_FLOPS_PER_S, AT(rg_peak, rate), RG_FIGURE_REQUIRED | RG_FIGURE_SPEC},
    {"sparse", RG_DIM_FLOPS_PER_S, AT(rg_peak, sparse), RG_FIGURE_SPEC},
    {"ops_per_clock_per_unit", RG_DIM_NONE, AT(rg_peak, ops_per_clock_per_unit), RG_FIGURE_WHOLE},
    {"clock", RG_DIM_HERTZ, AT(rg_peak, clock), 0},
    {"sustained", RG_DIM_FLOPS_PER_S, AT(rg_peak, sustained), RG_FIGURE_MEASURED},
    {NULL, RG_DIM_NONE, 0, 0},
};
const rg_figure_key rg_accel_level_keys[] = {
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
const rg_figure_key rg_accel_port_keys[] = {
    {"links", RG_DIM_NONE, AT(rg_link_port, links), RG_FIGURE_WHOLE},
    {"rate_per_link", RG_DIM_BYTES_PER_S, AT(rg_link_port, rate_per_link), RG_FIGURE_SPEC},
    {"rate_per_direction", RG_DIM_BYTES_PER_S, AT(rg_link_port, rate_per_direction),
     RG_FIGURE_REQUIRED | RG_FIGURE_SPEC},
    {"latency", RG_DIM_SECONDS, AT(rg_link_port, latency), 0},
    {NULL, RG_DIM_NONE, 0, 0},
};

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
    RG_TRY(add_figures(to, "units", rg_accel_unit_keys, accel));
    RG_TRY(add_figures(to, "clocks", rg_accel_clock_keys, accel));
    RG_TRY(add_figures(to, "power", rg_accel_power_keys, accel));
    for (int i = 0; i < accel->peak_count; i++) {
        rg_peak *peak = &accel->peaks[i];
        snprintf(prefix, sizeof prefix, "peaks.%s.%s", peak->matrix ? "matrix" : "vector",
                 peak->name);
        RG_TRY(add_figures(to, prefix, rg_accel_peak_keys, peak));
    }
    for (int i = 0; i < accel->level_count; i++) {
        snprintf(prefix, sizeof prefix, "memory.%s", accel->levels[i].name);
        RG_TRY(add_figures(to, prefix, rg_accel_level_keys, &accel->levels[i]));
    }
    for (int i = 0; i < accel->port_count; i++) {
        snprintf(prefix, sizeof prefix, "links.%s", accel->ports[i].kind);
        RG_TRY(add_figures(to, prefix, rg_accel_port_keys, &accel->ports[i]));
    }
    return add_figures(to, "noc", rg_accel_noc_keys, accel);
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

/* hw/check.c: does a hardware file agree with itself and with what is known of its architecture? */
// SPDX-License-Identifier: Apache-2.0
#include "hw/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/find.h"

enum { MAX_FINDINGS = 256 };

/* How far two ways to the same figure may lie apart: datasheets round to three digits. */
static const double recompute_tolerance = 0.01;
static const double sparse_tolerance = 0.03;
/* GB read as GiB is 7.4 % more. */
static const double binary_unit_excess = 0.075;

typedef struct checking {
    rg_arena *arena;
    const rg_accel *accel;
    rg_finding *list;
    int count;
    rg_err *err;
} checking;

static rg_status add(checking *to, rg_severity severity, const char *name, rg_pos pos,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

static rg_status add(checking *to, rg_severity severity, const char *name, rg_pos pos,
                     const char *format, ...)
{
    if (to->count == MAX_FINDINGS)
        return RG_OK;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *copy = rg_arena_strdup(to->arena, text, to->err);
    if (copy == NULL)
        return RG_ERR_LIMIT;
    to->list[to->count++] =
        (rg_finding){.severity = severity, .name = name, .pos = pos, .text = copy};
    return RG_OK;
}

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

/** A value as people write it, in a buffer of the caller. */
typedef struct words {
    char text[48];
} words;

static words say(double value, rg_dim dim)
{
    words w;
    rg_quantity_format(value, dim, 4, w.text, sizeof w.text);
    return w;
}

/* Dense flop per clock and unit of the full matrix unit in 16 bits, and by how much narrower types
 * are faster. Sources: the architecture whitepapers that the files in hw/ name. */
typedef struct known_rate {
    const char *arch;
    double ops16;
    double fp8, int8, fp4; /* factors over 16 bits, 0: not supported or not doubled */
} known_rate;

static const known_rate known_rates[] = {
    {"volta", 1024, 0, 0, 0},         {"turing", 1024, 0, 2, 0},
    {"ampere", 2048, 0, 2, 0},        {"ampere-ga10x", 1024, 0, 2, 0},
    {"ada", 1024, 2, 2, 0},           {"hopper", 4096, 2, 2, 0},
    {"blackwell", 8192, 2, 2, 4},     {"blackwell-ultra", 8192, 2, 2, 6},
    {"blackwell-rtx", 1024, 2, 2, 4}, {"cdna2", 1024, 0, 1, 0},
    {"cdna3", 2048, 2, 2, 0},         {"cdna4", 4096, 2, 2, 4},
};

/** Dense flop per clock and unit that the architecture is known for; 0 when not in the table. */
static double known_ops(const rg_accel *accel, const rg_peak *peak)
{
    if (!peak->matrix)
        return 0;
    for (size_t i = 0; i < sizeof known_rates / sizeof known_rates[0]; i++) {
        const known_rate *row = &known_rates[i];
        if (strcmp(row->arch, accel->arch) != 0)
            continue;
        switch (peak->input) {
        case RG_BF16:
        case RG_FP16:
            return row->ops16;
        case RG_FP8:
            return row->ops16 * row->fp8;
        case RG_INT8:
            return row->ops16 * row->int8;
        case RG_FP4:
            return row->ops16 * row->fp4;
        default:
            return 0;
        }
    }
    return 0;
}

static rg_status check_sparse(checking *to, const rg_peak *peak)
{
    if (!peak->sparse.known)
        return RG_OK;
    const words dense = say(peak->rate.value, RG_DIM_FLOPS_PER_S);
    const words sparse = say(peak->sparse.value, RG_DIM_FLOPS_PER_S);
    if (near(peak->sparse.value, peak->rate.value, recompute_tolerance))
        return add(to, RG_SEVERITY_ERROR, "peak-sparse", peak->rate.pos,
                   "rate of %s is '%s' and so is sparse; rate is the dense one, half of it",
                   peak->name, dense.text);
    if (!near(peak->sparse.value, 2 * peak->rate.value, sparse_tolerance))
        return add(to, RG_SEVERITY_WARNING, "sparse-ratio", peak->sparse.pos,
                   "sparse rate of %s '%s' is not twice the dense '%s'", peak->name, sparse.text,
                   dense.text);
    return RG_OK;
}

static rg_status check_peak_rate(checking *to, const rg_peak *peak)
{
    const rg_accel *accel = to->accel;
    const double clock = rg_accel_peak_clock(accel, peak);
    const double each = accel->units.value * clock;
    const words rate = say(peak->rate.value, RG_DIM_FLOPS_PER_S);
    const double known = known_ops(accel, peak) * each;
    if (known > 0 && peak->rate.value > 1.7 * known) {
        const words dense = say(known, RG_DIM_FLOPS_PER_S);
        return add(to, RG_SEVERITY_ERROR, "peak-sparse", peak->rate.pos,
                   "rate of %s '%s' is %.3g times the '%s' that a dense %s does at %.4g GHz; if it "
                   "counts sparsity, halve it and give the figure as sparse:",
                   peak->name, rate.text, peak->rate.value / known, dense.text, accel->arch,
                   clock / 1e9);
    }
    if (!peak->ops_per_clock_per_unit.known)
        return RG_OK;
    const double recomputed = each * peak->ops_per_clock_per_unit.value;
    const words again = say(recomputed, RG_DIM_FLOPS_PER_S);
    if (near(peak->rate.value, 2 * recomputed, recompute_tolerance))
        return add(
            to, RG_SEVERITY_ERROR, "peak-sparse", peak->rate.pos,
            "rate of %s '%s' is twice the %.0f x %.0f x %.4g GHz = '%s' of the same file; if "
            "it counts sparsity, halve it and give the figure as sparse:",
            peak->name, rate.text, accel->units.value, peak->ops_per_clock_per_unit.value,
            clock / 1e9, again.text);
    if (!near(peak->rate.value, recomputed, recompute_tolerance))
        return add(
            to, RG_SEVERITY_ERROR, "peak-recompute", peak->rate.pos,
            "rate of %s '%s' is not %.0f x %.0f x %.4g GHz = '%s' within 1 %%; mend the rate, "
            "ops_per_clock_per_unit or clock",
            peak->name, rate.text, accel->units.value, peak->ops_per_clock_per_unit.value,
            clock / 1e9, again.text);
    return RG_OK;
}

static rg_status check_peak(checking *to, const rg_peak *peak)
{
    const int before = to->count;
    RG_TRY(check_peak_rate(to, peak));
    if (to->count == before)
        RG_TRY(check_sparse(to, peak));
    const rg_accel *accel = to->accel;
    if (peak->clock.known && peak->clock.value > accel->boost_clock.value * 1.001)
        RG_TRY(add(to, RG_SEVERITY_ERROR, "clock-order", peak->clock.pos,
                   "clock of %s '%.4g GHz' is above the boost clock '%.4g GHz'", peak->name,
                   peak->clock.value / 1e9, accel->boost_clock.value / 1e9));
    if (peak->sustained.known && peak->sustained.value > peak->rate.value)
        RG_TRY(
            add(to, RG_SEVERITY_ERROR, "sustained-over-peak", peak->sustained.pos,
                "sustained rate of %s '%s' is above the peak '%s'; the measurement or the peak is "
                "wrong",
                peak->name, say(peak->sustained.value, RG_DIM_FLOPS_PER_S).text,
                say(peak->rate.value, RG_DIM_FLOPS_PER_S).text));
    const double cell = 2 * accel->systolic_rows.value * accel->systolic_columns.value;
    const double ops = peak->ops_per_clock_per_unit.value;
    if (peak->matrix && accel->systolic_rows.known && accel->systolic_columns.known &&
        peak->ops_per_clock_per_unit.known && fmod(ops, cell) != 0)
        RG_TRY(add(to, RG_SEVERITY_ERROR, "systolic-shape", peak->ops_per_clock_per_unit.pos,
                   "%s does '%.0f' flop per clock, no multiple of 2 x %.0f x %.0f", peak->name, ops,
                   accel->systolic_rows.value, accel->systolic_columns.value));
    return RG_OK;
}

static rg_status check_level_rates(checking *to, const rg_memory_level *level)
{
    const rg_accel *accel = to->accel;
    const double clock = level->clock.known ? level->clock.value : accel->boost_clock.value;
    const words stated = say(level->bandwidth.value, RG_DIM_BYTES_PER_S);
    if (level->bandwidth.known && level->bytes_per_clock.known) {
        const double again = level->bytes_per_clock.value * clock;
        if (!near(level->bandwidth.value, again, recompute_tolerance))
            RG_TRY(add(to, RG_SEVERITY_ERROR, "bandwidth-recompute", level->bandwidth.pos,
                       "bandwidth of %s '%s' is not %.0f B x %.4g GHz = '%s' within 1 %%",
                       level->name, stated.text, level->bytes_per_clock.value, clock / 1e9,
                       say(again, RG_DIM_BYTES_PER_S).text));
    }
    if (level->bandwidth.known && level->bus_width.known && level->pin_rate.known) {
        const double again = level->bus_width.value * level->pin_rate.value;
        if (!near(level->bandwidth.value, again, recompute_tolerance))
            RG_TRY(add(to, RG_SEVERITY_ERROR, "pin-recompute", level->bandwidth.pos,
                       "bandwidth of %s '%s' is not %.0f bits x %.4g Gbit/s = '%s' within 1 %%",
                       level->name, stated.text, level->bus_width.value,
                       level->pin_rate.value * 8e-9, say(again, RG_DIM_BYTES_PER_S).text));
    }
    return RG_OK;
}

static rg_status check_level(checking *to, const rg_memory_level *level)
{
    RG_TRY(check_level_rates(to, level));
    const rg_accel *accel = to->accel;
    const bool specified = level->bandwidth.known || level->bytes_per_clock.known;
    const double spec = rg_accel_level_bandwidth(accel, level);
    if (specified && level->measured_bandwidth.known && level->measured_bandwidth.value > spec)
        RG_TRY(add(to, RG_SEVERITY_ERROR, "measured-over-spec", level->measured_bandwidth.pos,
                   "measured bandwidth of %s '%s' is above the specified '%s'; caches, or the "
                   "specification, are in it",
                   level->name, say(level->measured_bandwidth.value, RG_DIM_BYTES_PER_S).text,
                   say(spec, RG_DIM_BYTES_PER_S).text));
    if (level->usable.known && level->capacity.known &&
        level->usable.value > level->capacity.value * (1 + binary_unit_excess))
        RG_TRY(add(to, RG_SEVERITY_ERROR, "usable-capacity", level->usable.pos,
                   "usable '%s' of %s is above its capacity '%s'",
                   say(level->usable.value, RG_DIM_BYTES).text, level->name,
                   say(level->capacity.value, RG_DIM_BYTES).text));
    const double registers = accel->registers_per_unit.value * 4;
    if (strcmp(level->name, "registers") == 0 && accel->registers_per_unit.known &&
        level->capacity.known && !near(level->capacity.value, registers, recompute_tolerance))
        RG_TRY(add(to, RG_SEVERITY_ERROR, "register-capacity", level->capacity.pos,
                   "register file of '%s' does not hold '%.0f' registers of 4 bytes",
                   say(level->capacity.value, RG_DIM_BYTES).text, accel->registers_per_unit.value));
    return RG_OK;
}

static rg_status check_level_order(checking *to)
{
    const rg_accel *accel = to->accel;
    const rg_memory_level *inner = NULL;
    for (int i = 0; i < accel->level_count; i++) {
        const rg_memory_level *level = &accel->levels[i];
        const double rate = rg_accel_level_bandwidth(accel, level);
        if (rate <= 0)
            continue;
        if (inner != NULL && rate > rg_accel_level_bandwidth(accel, inner))
            RG_TRY(add(to, RG_SEVERITY_WARNING, "level-order", level->pos,
                       "%s moves '%s', more than %s nearer the arithmetic with '%s'", level->name,
                       say(rate, RG_DIM_BYTES_PER_S).text, inner->name,
                       say(rg_accel_level_bandwidth(accel, inner), RG_DIM_BYTES_PER_S).text));
        inner = level;
    }
    return RG_OK;
}

static rg_status check_port(checking *to, const rg_link_port *port)
{
    if (!port->links.known || !port->rate_per_link.known)
        return RG_OK;
    const double again = port->links.value * port->rate_per_link.value;
    const words stated = say(port->rate_per_direction.value, RG_DIM_BYTES_PER_S);
    const words sum = say(again, RG_DIM_BYTES_PER_S);
    if (near(port->rate_per_direction.value, 2 * again, recompute_tolerance))
        return add(to, RG_SEVERITY_ERROR, "link-both-directions", port->rate_per_direction.pos,
                   "rate_per_direction of %s '%s' is twice %.0f links = '%s'; datasheets add both "
                   "directions, give one",
                   port->kind, stated.text, port->links.value, sum.text);
    if (!near(port->rate_per_direction.value, again, recompute_tolerance))
        return add(to, RG_SEVERITY_ERROR, "link-recompute", port->rate_per_direction.pos,
                   "rate_per_direction of %s '%s' is not %.0f links = '%s' within 1 %%", port->kind,
                   stated.text, port->links.value, sum.text);
    return RG_OK;
}

static rg_status check_clocks_and_power(checking *to)
{
    const rg_accel *accel = to->accel;
    const struct {
        const char *name;
        const rg_figure *clock;
    } clocks[] = {{"base", &accel->base_clock}, {"sustained", &accel->sustained_clock}};
    for (int i = 0; i < 2; i++)
        if (clocks[i].clock->known && clocks[i].clock->value > accel->boost_clock.value)
            RG_TRY(add(to, RG_SEVERITY_ERROR, "clock-order", clocks[i].clock->pos,
                       "%s clock '%.4g GHz' is above the boost clock '%.4g GHz'", clocks[i].name,
                       clocks[i].clock->value / 1e9, accel->boost_clock.value / 1e9));
    if (accel->idle_power.known && accel->tdp.known && accel->idle_power.value >= accel->tdp.value)
        RG_TRY(add(to, RG_SEVERITY_ERROR, "power-order", accel->idle_power.pos,
                   "idle power '%.4g W' is not below the TDP '%.4g W'", accel->idle_power.value,
                   accel->tdp.value));
    return RG_OK;
}

static rg_status check_names(checking *to)
{
    const rg_accel *accel = to->accel;
    const char *slash = strrchr(accel->path, '/');
    const char *file = slash == NULL ? accel->path : slash + 1;
    const size_t stem = strcspn(file, ".");
    const rg_pos top = {.file = accel->path, .line = 1, .column = 1};
    if (strlen(accel->name) != stem || strncmp(accel->name, file, stem) != 0)
        RG_TRY(add(to, RG_SEVERITY_WARNING, "name-differs", top,
                   "name '%s' is not the name of the file '%s'", accel->name, file));
    const struct {
        const char *name, *kind, *finding, *key;
    } files[] = {{accel->usual_node, "hw/nodes", "unknown-node", "usual_node"},
                 {accel->noc_file, "hw/noc", "unknown-network", "noc file"}};
    for (int i = 0; i < 2; i++) {
        const char *path = "";
        if (files[i].name != NULL)
            RG_TRY(rg_data_try(to->arena, files[i].kind, files[i].name, &path, to->err));
        if (path == NULL)
            RG_TRY(add(to, RG_SEVERITY_ERROR, files[i].finding, top, "%s '%s' is no file of %s",
                       files[i].key, files[i].name, files[i].kind));
    }
    return RG_OK;
}

rg_status rg_accel_check(rg_arena *arena, const rg_accel *accel, rg_findings *out, rg_err *err)
{
    checking to = {.arena = arena, .accel = accel, .err = err};
    to.list = RG_NEW(arena, rg_finding, MAX_FINDINGS, err);
    if (to.list == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(check_names(&to));
    RG_TRY(check_clocks_and_power(&to));
    for (int i = 0; i < accel->peak_count; i++)
        RG_TRY(check_peak(&to, &accel->peaks[i]));
    for (int i = 0; i < accel->level_count; i++)
        RG_TRY(check_level(&to, &accel->levels[i]));
    RG_TRY(check_level_order(&to));
    for (int i = 0; i < accel->port_count; i++)
        RG_TRY(check_port(&to, &accel->ports[i]));
    *out = (rg_findings){.list = to.list, .count = to.count};
    for (int i = 0; i < to.count; i++)
        out->errors += to.list[i].severity == RG_SEVERITY_ERROR;
    return RG_OK;
}

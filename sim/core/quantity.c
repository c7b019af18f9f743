// SPDX-License-Identifier: Apache-2.0
#include "core/quantity.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

typedef struct unit {
    const char *text;
    double factor;
} unit;

/* How a dimension is written. Prefixes multiply the base names; fixed forms stand alone. */
typedef struct dim_row {
    const char *name, *example, *si, *suffix;
    const char *const *bases; /* names that take a decimal prefix */
    const char *per;          /* behind the base: "/s" */
    bool binary;              /* Ki Mi Gi Ti allowed too */
    const unit *fixed;
} dim_row;

static const char *const no_bases[] = {NULL};
static const char *const byte_bases[] = {"B", NULL};
static const char *const flop_bases[] = {"FLOP", "FLOPS", "FLOPs", "flop",
                                         "OP",   "OPS",   "OPs",   NULL};
static const char *const rate_bases[] = {"FLOP", "OP", "flop", "FLOPs", "OPs", NULL};
static const char *const second_bases[] = {"s", NULL};
static const char *const hertz_bases[] = {"Hz", NULL};
static const char *const watt_bases[] = {"W", NULL};
static const char *const joule_bases[] = {"J", NULL};

static const unit no_units[] = {{NULL, 0}};
static const unit ratio_units[] = {{"%", 0.01}, {NULL, 0}};
static const unit bit_rates[] = {
    {"Gbit/s", 1.25e8}, {"Gb/s", 1.25e8}, {"Tbit/s", 1.25e11}, {"Mbit/s", 1.25e5}, {NULL, 0}};
static const unit second_units[] = {{"min", 60.0}, {"h", 3600.0}, {"us", 1e-6}, {NULL, 0}};
static const unit energy_units[] = {{"kWh", 3.6e6}, {"Wh", 3600.0}, {NULL, 0}};
static const unit dollar_units[] = {{"$", 1.0}, {"USD", 1.0}, {NULL, 0}};
static const unit hourly_units[] = {
    {"$/h", 1.0}, {"USD/h", 1.0}, {"$/year", 1.0 / 8766.0}, {NULL, 0}};
static const unit tariff_units[] = {{"$/kWh", 1.0}, {"USD/kWh", 1.0}, {NULL, 0}};
static const unit carbon_units[] = {{"g/kWh", 1.0}, {"kg/kWh", 1000.0}, {"kg/MWh", 1.0}, {NULL, 0}};
static const unit frequency_units[] = {
    {"/s", 1.0},          {"1/s", 1.0},         {"req/s", 1.0},
    {"requests/s", 1.0},  {"/min", 1.0 / 60.0}, {"req/min", 1.0 / 60.0},
    {"/h", 1.0 / 3600.0}, {"tokens/s", 1.0},    {NULL, 0}};
static const unit cycle_units[] = {{"cycles", 1.0}, {"cycle", 1.0}, {"clk", 1.0}, {NULL, 0}};

static const dim_row dims[RG_DIM_COUNT_OF] = {
    [RG_DIM_NONE] = {"number", "0.85", "", "", no_bases, "", false, ratio_units},
    [RG_DIM_SHARE] = {"share", "35 %", "", "", no_bases, "", false, ratio_units},
    [RG_DIM_BYTES] = {"size", "141 GB", "byte", "_bytes", byte_bases, "", true, no_units},
    [RG_DIM_BYTES_PER_S] = {"rate", "4.8 TB/s", "byte/s", "_bytes_per_s", byte_bases, "/s", true,
                            bit_rates},
    [RG_DIM_FLOPS] = {"number of operations", "2 TFLOP", "flop", "_flops", flop_bases, "", false,
                      no_units},
    [RG_DIM_FLOPS_PER_S] = {"compute rate", "989.4 TFLOP/s", "flop/s", "_flops_per_s", rate_bases,
                            "/s", false, no_units},
    [RG_DIM_SECONDS] = {"time", "345 ns", "s", "_s", second_bases, "", false, second_units},
    [RG_DIM_HERTZ] = {"frequency", "1.98 GHz", "Hz", "_hz", hertz_bases, "", false, no_units},
    [RG_DIM_WATTS] = {"power", "700 W", "W", "_watts", watt_bases, "", false, no_units},
    [RG_DIM_JOULES] = {"energy", "1.2 kWh", "J", "_joules", joule_bases, "", false, energy_units},
    [RG_DIM_USD] = {"price", "30000 $", "$", "_usd", no_bases, "", false, dollar_units},
    [RG_DIM_USD_PER_HOUR] = {"price per hour", "2.5 $/h", "$/h", "_usd_per_hour", no_bases, "",
                             false, hourly_units},
    [RG_DIM_USD_PER_KWH] = {"tariff", "0.12 $/kWh", "$/kWh", "_usd_per_kwh", no_bases, "", false,
                            tariff_units},
    [RG_DIM_GRAMS_PER_KWH] = {"carbon intensity", "400 g/kWh", "g/kWh", "_g_per_kwh", no_bases, "",
                              false, carbon_units},
    [RG_DIM_PER_SECOND] = {"frequency", "20 /s", "1/s", "_per_s", no_bases, "", false,
                           frequency_units},
    [RG_DIM_CYCLES] = {"number of cycles", "33 cycles", "cycles", "_cycles", no_bases, "", false,
                       cycle_units},
};

static const unit prefixes[] = {{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
                                {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
                                {"P", 1e15},    {"E", 1e18},    {"m", 1e-3},    {"u", 1e-6},
                                {"n", 1e-9},    {"p", 1e-12},   {"", 1.0},      {NULL, 0}};

static bool below_one(const dim_row *row)
{
    return row->bases == second_bases || row->bases == watt_bases || row->bases == joule_bases;
}

/* Factor of a unit in a dimension, 0 when it is none. */
static double unit_factor(const char *text, const dim_row *row)
{
    for (const unit *u = row->fixed; u->text; u++)
        if (strcmp(text, u->text) == 0)
            return u->factor;
    for (const unit *p = prefixes; p->text; p++) {
        const size_t n = strlen(p->text);
        if ((p->factor < 1.0 && !below_one(row)) || (n == 2 && !row->binary) ||
            strncmp(text, p->text, n) != 0)
            continue;
        for (const char *const *base = row->bases; *base; base++) {
            const size_t m = strlen(*base);
            if (strncmp(text + n, *base, m) == 0 && strcmp(text + n + m, row->per) == 0)
                return p->factor;
        }
    }
    return 0.0;
}

rg_status rg_quantity_parse(const char *text, rg_dim dim, rg_pos pos, const char *what, double *out,
                            rg_err *err)
{
    const dim_row *row = &dims[dim];
    const size_t digits = strspn(text, "+-0123456789.eE");
    size_t end = digits;
    /* "5 EB": the E belongs to the unit when no digit follows it. */
    while (end > 0 && (text[end - 1] == 'e' || text[end - 1] == 'E'))
        end--;
    char number[64];
    double value;
    if (end == 0 || end >= sizeof number)
        return rg_fail(err, RG_ERR_INPUT, pos, "%s '%s' is not a %s; write it as '%s'", what, text,
                       row->name, row->example);
    memcpy(number, text, end);
    number[end] = 0;
    if (!rg_text_to_real(number, &value))
        return rg_fail(err, RG_ERR_INPUT, pos, "%s '%s' is not a %s; write it as '%s'", what, text,
                       row->name, row->example);
    const char *rest = text + end + strspn(text + end, " ");
    if (*rest == 0) {
        if (dim != RG_DIM_NONE && dim != RG_DIM_SHARE)
            return rg_fail(err, RG_ERR_INPUT, pos, "%s '%s' has no unit; a %s is written as '%s'",
                           what, text, row->name, row->example);
        *out = value;
        return RG_OK;
    }
    const double factor = unit_factor(rest, row);
    if (factor == 0.0)
        return rg_fail(err, RG_ERR_INPUT, pos, "%s '%s' is not a %s; write it as '%s'", what, text,
                       row->name, row->example);
    if (!isfinite(value * factor))
        return rg_fail(err, RG_ERR_INPUT, pos, "%s '%s' is too large", what, text);
    *out = value * factor;
    return RG_OK;
}

/* Decimal prefix for a value, in steps of a thousand within [least, most]. */
static const unit *prefix_for(double magnitude, bool small_too)
{
    static const unit steps[] = {{"E", 1e18}, {"P", 1e15}, {"T", 1e12}, {"G", 1e9},  {"M", 1e6},
                                 {"k", 1e3},  {"", 1.0},   {"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}};
    const int count = small_too ? 10 : 7;
    for (int i = 0; i < count; i++)
        if (magnitude >= steps[i].factor * (1.0 - 1e-12))
            return &steps[i];
    return small_too && magnitude > 0.0 ? &steps[9] : &steps[6];
}

void rg_quantity_format(double value, rg_dim dim, int digits, char *out, size_t size)
{
    const dim_row *row = &dims[dim];
    const double magnitude = fabs(value);
    if (dim == RG_DIM_SHARE) {
        snprintf(out, size, "%.*f %%", digits > 3 ? digits - 3 : 0, 100.0 * value);
        return;
    }
    if (row->bases == no_bases) {
        if (magnitude != 0.0 && (magnitude >= 1e6 || magnitude < 1e-3))
            snprintf(out, size, "%.*g%s%s", digits, value, row->si[0] ? " " : "", row->si);
        else {
            const int whole = magnitude >= 1.0 ? (int)floor(log10(magnitude)) + 1 : 1;
            const int decimals = digits > whole ? digits - whole : 0;
            snprintf(out, size, "%.*f%s%s", decimals, value, row->si[0] ? " " : "", row->si);
        }
        return;
    }
    if (dim == RG_DIM_SECONDS && magnitude >= 1.0) {
        snprintf(out, size, "%.*g s", magnitude >= 1000.0 ? 10 : digits,
                 magnitude >= 1000.0 ? round(value) : value);
        return;
    }
    const bool small_too = below_one(row);
    const unit *p = prefix_for(magnitude, small_too);
    double scaled = value / p->factor;
    const int whole = fabs(scaled) >= 1.0 ? (int)floor(log10(fabs(scaled)) + 1e-12) + 1 : 1;
    const int decimals = digits > whole ? digits - whole : 0;
    const char *base = row->bases[0];
    snprintf(out, size, "%.*f %s%s%s", decimals, scaled, p->text, base, row->per);
}

const char *rg_dim_suffix(rg_dim dim)
{
    return dims[dim].suffix;
}
const char *rg_dim_unit(rg_dim dim)
{
    return dims[dim].si;
}

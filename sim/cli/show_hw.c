/* cli/show_hw.c: one hardware thing in full, for `ridge show`. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** Figures as a JSON object by path: {value, unit, source}. */
static void figures_as_json(rg_report *report, const rg_named_figure *figures, int count)
{
    json_t *all = json_object();
    for (int i = 0; i < count; i++) {
        const rg_figure *figure = figures[i].figure;
        json_t *one = json_object();
        json_object_set_new(one, "value", json_real(figure->value));
        json_object_set_new(one, "unit", json_string(rg_dim_unit(figure->dim)));
        json_object_set_new(one, "source", json_string(figure->source));
        json_object_set_new(one, "assumed", json_boolean(figure->assumed));
        json_object_set_new(one, "measured", json_boolean(figure->measured));
        json_object_set_new(all, figures[i].path, one);
    }
    rg_report_json(report, "figures", all);
}

/** A figure with its unit; whole numbers without a point. */
static void say_figure(const rg_figure *figure, char *out, size_t size)
{
    if (figure->dim == RG_DIM_NONE && floor(figure->value) == figure->value)
        snprintf(out, size, "%.0f", figure->value);
    else
        rg_quantity_format(figure->value, figure->dim, 4, out, size);
}

static void figures_as_table(rg_report *report, const rg_named_figure *figures, int count)
{
    rg_table *table = rg_report_table(report, "figure_table", "Figures");
    rg_table_column(table, "figure", "figure", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "shown", "value", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "value", "value", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(table, "unit", "unit", RG_CELL_TEXT, RG_DIM_NONE, true);
    rg_table_column(table, "source", "source", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int i = 0; i < count; i++) {
        const rg_figure *figure = figures[i].figure;
        char shown[64];
        say_figure(figure, shown, sizeof shown);
        rg_table_text(table, figures[i].path);
        rg_table_text(table, shown);
        rg_table_real(table, figure->value);
        rg_table_text(table, rg_dim_unit(figure->dim));
        rg_table_text(table, figure->source);
    }
}

/** Index of a figure's source among the first ones of their text, counted from 1. */
static int source_number(const rg_named_figure *figures, const int *numbers, int index, int sources)
{
    for (int i = 0; i < index; i++)
        if (strcmp(figures[i].figure->source, figures[index].figure->source) == 0)
            return numbers[i];
    return sources + 1;
}

/** For people: a number in place of each source, and the sources once, below. */
static rg_status figures_as_text(rg_arena *arena, rg_report *report, const rg_named_figure *figures,
                                 int count, rg_err *err)
{
    int *numbers = RG_NEW(arena, int, count, err);
    if (numbers == NULL)
        return RG_ERR_LIMIT;
    rg_table *table = rg_report_table(report, "figure_table", "Figures");
    rg_table_column(table, "figure", "figure", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "shown", "value", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "source", "source", RG_CELL_INT, RG_DIM_NONE, false);
    int sources = 0;
    for (int i = 0; i < count; i++) {
        char shown[64];
        say_figure(figures[i].figure, shown, sizeof shown);
        numbers[i] = source_number(figures, numbers, i, sources);
        sources = numbers[i] > sources ? numbers[i] : sources;
        rg_table_text(table, figures[i].path);
        rg_table_text(table, shown);
        rg_table_int(table, numbers[i]);
    }
    rg_report_line(report, "%s", "");
    rg_report_line(report, "Sources");
    for (int n = 1, i = 0; i < count; i++)
        if (numbers[i] == n)
            rg_report_line(report, "  %2d  %s", n++, figures[i].figure->source);
    return RG_OK;
}

/** The figures in the form that was asked for. */
static rg_status add_figures(rg_arena *arena, rg_report *report, rg_form form,
                             const rg_named_figure *figures, int count, rg_err *err)
{
    int assumed = 0;
    for (int i = 0; i < count; i++)
        assumed += figures[i].figure->assumed;
    rg_report_int(report, "figures_total", "figures", count);
    rg_report_int(report, "figures_assumed", "of them assumed", assumed);
    if (form == RG_FORM_JSON)
        figures_as_json(report, figures, count);
    else if (form == RG_FORM_TEXT)
        return figures_as_text(arena, report, figures, count, err);
    else
        figures_as_table(report, figures, count);
    return RG_OK;
}

/** What a person wants first: peak, memory, and where one limit takes over from the other. */
static void add_summary(const rg_accel *accel, rg_report *report)
{
    const rg_memory_level *memory = rg_accel_memory(accel);
    const rg_peak *peak = rg_accel_peak(accel, RG_BF16);
    if (peak == NULL)
        peak = rg_accel_peak(accel, RG_FP16);
    if (peak != NULL) {
        rg_report_figure(report, "peak_16bit_flops_per_s", "dense 16-bit matrix peak",
                         peak->rate.value, RG_DIM_FLOPS_PER_S);
        rg_report_figure(report, "ridge_point_flops_per_byte", "ridge point, flop per byte",
                         peak->rate.value / memory->bandwidth.value, RG_DIM_NONE);
    }
    rg_report_figure(report, "memory_bytes", "device memory", rg_accel_memory_bytes(accel),
                     RG_DIM_BYTES);
    rg_report_figure(report, "memory_bytes_per_s", "memory bandwidth", memory->bandwidth.value,
                     RG_DIM_BYTES_PER_S);
    if (accel->matrix_cores_per_unit.known)
        rg_report_int(report, "matrix_cores", "matrix cores",
                      (long long)(accel->units.value * accel->matrix_cores_per_unit.value));
}

static void add_fit(const rg_accel *accel, rg_report *report)
{
    if (accel->fit_borrowed_from != NULL)
        rg_report_text(report, "fit_borrowed_from", "fitted constants of",
                       accel->fit_borrowed_from);
    if (accel->fit_source != NULL)
        rg_report_text(report, "fit_source", "fitted on", accel->fit_source);
    if (accel->fit_count == 0)
        return;
    rg_table *table = rg_report_table(report, "fit", "Fitted constants");
    rg_table_column(table, "group", "group", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "name", "constant", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "value", "value", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "borrowed", "borrowed", RG_CELL_BOOL, RG_DIM_NONE, false);
    for (int i = 0; i < accel->fit_count; i++) {
        rg_table_text(table, accel->fit[i].group);
        rg_table_text(table, accel->fit[i].name);
        rg_table_real(table, accel->fit[i].value);
        rg_table_bool(table, accel->fit[i].borrowed);
    }
}

rg_status rg_show_accel(rg_arena *arena, rg_accel *accel, rg_form form, rg_report *report,
                        rg_err *err)
{
    const rg_named_figure *figures;
    int count;
    RG_TRY(rg_report_input(report, "hardware", accel->path, err));
    RG_TRY(rg_accel_figures(arena, accel, &figures, &count, err));
    rg_report_text(report, "kind", "kind", "accelerator");
    rg_report_text(report, "name", "name", accel->name);
    rg_report_text(report, "title", "title", accel->title);
    rg_report_text(report, "vendor", "vendor", accel->vendor);
    rg_report_text(report, "arch", "architecture", accel->arch);
    rg_report_text(report, "unit_name", "unit", accel->unit_name);
    if (accel->usual_node != NULL)
        rg_report_text(report, "usual_node", "usual node", accel->usual_node);
    if (accel->noc_file != NULL)
        rg_report_text(report, "noc", "on-chip network", accel->noc_file);
    if (accel->base != NULL)
        rg_report_text(report, "base", "starts from", accel->base);
    if (accel->note != NULL)
        rg_report_text(report, "note", "note", accel->note);
    add_summary(accel, report);
    RG_TRY(add_figures(arena, report, form, figures, count, err));
    add_fit(accel, report);
    return RG_OK;
}

static void add_fabric(rg_report *report, const char *key, const char *label,
                       const rg_fabric *fabric)
{
    char text[160];
    if (fabric->kind == RG_FABRIC_NONE) {
        rg_report_text(report, key, label, "none");
        return;
    }
    char extent[64] = "";
    size_t used = 0;
    for (int i = 0; i < fabric->dimensions; i++)
        used += (size_t)snprintf(extent + used, sizeof extent - used, "%s%lld", i == 0 ? " " : "x",
                                 (long long)fabric->extent[i]);
    snprintf(text, sizeof text, "%s, %s%s%s%s", fabric->technology,
             rg_fabric_kind_name(fabric->kind), extent,
             fabric->in_network_reduction ? ", reduces in the network" : "",
             fabric->rail_optimised ? ", one rail a device" : "");
    rg_report_text(report, key, label, text);
}

rg_status rg_show_cluster(rg_arena *arena, rg_cluster *cluster, rg_form form, rg_report *report,
                          rg_err *err)
{
    const rg_named_figure *figures;
    int count;
    RG_TRY(rg_report_input(report, "cluster", cluster->path, err));
    RG_TRY(rg_report_input(report, "hardware", cluster->accel->path, err));
    RG_TRY(rg_cluster_figures(arena, cluster, &figures, &count, err));
    rg_report_text(report, "kind", "kind", "cluster");
    rg_report_text(report, "name", "name", cluster->name);
    rg_report_text(report, "title", "title", cluster->title);
    rg_report_text(report, "device", "device", cluster->accel->name);
    rg_report_int(report, "devices", "devices",
                  (long long)cluster->devices_per_node * cluster->nodes);
    rg_report_int(report, "devices_per_node", "devices a node",
                  (long long)cluster->devices_per_node);
    rg_report_int(report, "nodes", "nodes", (long long)cluster->nodes);
    rg_report_int(report, "scale_up_devices", "devices a domain",
                  (long long)cluster->scale_up_devices);
    add_fabric(report, "scale_up", "within a domain", &cluster->scale_up);
    add_fabric(report, "scale_out", "between domains", &cluster->scale_out);
    if (cluster->note != NULL)
        rg_report_text(report, "note", "note", cluster->note);
    return add_figures(arena, report, form, figures, count, err);
}

rg_status rg_show_engine(rg_arena *arena, const rg_engine *engine, rg_form form, rg_report *report,
                         rg_err *err)
{
    RG_TRY(rg_report_input(report, "engine", engine->path, err));
    rg_report_text(report, "kind", "kind", "engine");
    rg_report_text(report, "name", "name", engine->name);
    rg_report_text(report, "title", "title", engine->title);
    if (engine->note != NULL)
        rg_report_text(report, "note", "note", engine->note);
    return add_figures(arena, report, form, engine->figures, engine->figure_count, err);
}

rg_status rg_show_prices(const rg_price_list *prices, rg_report *report, rg_err *err)
{
    RG_TRY(rg_report_input(report, "prices", prices->path, err));
    rg_report_text(report, "kind", "kind", "prices");
    rg_table *table = rg_report_table(report, "prices", "Prices of one device");
    rg_table_column(table, "device", "device", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "provider", "provider", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "term", "term", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "price_usd_per_hour", "price", RG_CELL_REAL, RG_DIM_USD_PER_HOUR, false);
    rg_table_column(table, "date", "date", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "source", "source", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int i = 0; i < prices->count; i++) {
        const rg_price *price = &prices->list[i];
        rg_table_text(table, price->device);
        rg_table_text(table, price->provider);
        rg_table_text(table, rg_price_term_name(price->term));
        rg_table_real(table, price->price.value);
        rg_table_text(table, price->date);
        rg_table_text(table, price->price.source);
    }
    return RG_OK;
}

/* cli/cmd_list.c: what devices, nodes and models there are. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "cli/args.h"
#include "core/find.h"
#include "hw/cluster.h"
#include "hw/price.h"
#include "model/spec.h"
#include "step/step.h"

extern const rg_command rg_cmd_list;

/** Rate of the dense matrix peak, NaN when the device has none. */
static double peak_or_nan(const rg_accel *accel, rg_dtype type)
{
    const rg_peak *peak = rg_accel_peak(accel, type);
    return peak == NULL ? (double)NAN : peak->rate.value;
}

static rg_status list_devices(rg_arena *arena, rg_report *report, rg_err *err)
{
    const rg_data_entry *entries;
    size_t count;
    rg_price_list prices;
    RG_TRY(rg_data_list(arena, "hw", &entries, &count, err));
    RG_TRY(rg_prices_load(arena, NULL, &prices, err));
    rg_table *table = rg_report_table(report, "devices", "Devices (peaks are dense)");
    rg_table_column(table, "name", "name", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "title", "title", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "arch", "architecture", RG_CELL_TEXT, RG_DIM_NONE, true);
    rg_table_column(table, "memory_bytes", "memory", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(table, "memory_bytes_per_s", "bandwidth", RG_CELL_REAL, RG_DIM_BYTES_PER_S,
                    false);
    rg_table_column(table, "bf16_flops_per_s", "bf16", RG_CELL_REAL, RG_DIM_FLOPS_PER_S, false);
    rg_table_column(table, "fp8_flops_per_s", "fp8", RG_CELL_REAL, RG_DIM_FLOPS_PER_S, false);
    rg_table_column(table, "tdp_watts", "TDP", RG_CELL_REAL, RG_DIM_WATTS, false);
    rg_table_column(table, "price_usd_per_hour", "from", RG_CELL_REAL, RG_DIM_USD_PER_HOUR, false);
    for (size_t i = 0; i < count; i++) {
        rg_node *root;
        rg_accel *accel;
        RG_TRY(rg_doc_load(arena, entries[i].path, &root, err));
        const rg_node *kind = root->kind == RG_NODE_MAP ? rg_map_find(root, "kind") : NULL;
        if (kind != NULL && kind->text != NULL && strcmp(kind->text, "prices") == 0)
            continue;
        RG_TRY(rg_accel_read(arena, entries[i].path, root, &accel, err));
        const rg_price *price = rg_price_least(&prices, accel->name, RG_PRICE_ON_DEMAND, NULL);
        rg_table_text(table, entries[i].name);
        rg_table_text(table, accel->title);
        rg_table_text(table, accel->arch);
        rg_table_real(table, rg_accel_memory(accel)->capacity.value);
        rg_table_real(table, rg_accel_memory(accel)->bandwidth.value);
        rg_table_real(table, peak_or_nan(accel, RG_BF16));
        rg_table_real(table, peak_or_nan(accel, RG_FP8));
        rg_table_real(table, accel->tdp.value);
        rg_table_real(table, price == NULL ? (double)NAN : price->price.value);
    }
    return RG_OK;
}

static rg_status list_nodes(rg_arena *arena, rg_report *report, rg_err *err)
{
    const rg_data_entry *entries;
    size_t count;
    RG_TRY(rg_data_list(arena, "hw/nodes", &entries, &count, err));
    rg_table *table = rg_report_table(report, "nodes", "Nodes and clusters");
    rg_table_column(table, "name", "name", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "title", "title", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "device", "device", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "devices", "devices", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "scale_up_devices", "domain", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "scale_up", "joined by", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (size_t i = 0; i < count; i++) {
        rg_cluster *cluster;
        RG_TRY(rg_cluster_load(arena, entries[i].path, &cluster, err));
        rg_table_text(table, entries[i].name);
        rg_table_text(table, cluster->title);
        rg_table_text(table, cluster->accel->name);
        rg_table_int(table, (long long)cluster->devices_per_node * cluster->nodes);
        rg_table_int(table, (long long)cluster->scale_up_devices);
        rg_table_text(table,
                      cluster->scale_up.technology == NULL ? "-" : cluster->scale_up.technology);
    }
    return RG_OK;
}

static rg_status list_models(rg_arena *arena, rg_report *report, rg_err *err)
{
    const rg_data_entry *entries;
    size_t count;
    RG_TRY(rg_data_list(arena, "models", &entries, &count, err));
    rg_table *table = rg_report_table(report, "models", "Models");
    rg_table_column(table, "name", "name", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "family", "family", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "parameters_total", "parameters", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "parameters_active", "active", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "kv_bytes_per_token", "KV a token, bf16", RG_CELL_REAL, RG_DIM_BYTES,
                    false);
    rg_table_column(table, "max_context_tokens", "context", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "path", "file", RG_CELL_TEXT, RG_DIM_NONE, true);
    rg_format bf16;
    RG_TRY(rg_format_parse("bf16", RG_NOWHERE, &bf16, err));
    for (size_t i = 0; i < count; i++) {
        rg_model *model;
        RG_TRY(rg_model_load(arena, entries[i].path, &model, err));
        rg_table_text(table, entries[i].name);
        rg_table_text(table, model->family != NULL ? model->family : "-");
        rg_table_int(table, model->parameters_total);
        rg_table_int(table, model->parameters_active);
        rg_table_real(table, rg_model_kv_bytes_per_token(model, &bf16, false).v);
        rg_table_int(table, model->max_positions);
        rg_table_text(table, entries[i].path);
    }
    return RG_OK;
}

static rg_status list_engines(rg_arena *arena, rg_report *report, rg_err *err)
{
    const rg_data_entry *entries;
    size_t count;
    RG_TRY(rg_data_list(arena, "hw/engines", &entries, &count, err));
    rg_table *table = rg_report_table(report, "engines", "Serving engines");
    rg_table_column(table, "name", "name", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "title", "title", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (size_t i = 0; i < count; i++) {
        rg_engine engine;
        RG_TRY(rg_engine_load(arena, entries[i].path, &engine, err));
        rg_table_text(table, entries[i].name);
        rg_table_text(table, engine.title);
    }
    return RG_OK;
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    static const struct {
        const char *name;
        rg_status (*list)(rg_arena *, rg_report *, rg_err *);
    } kinds[] = {{"hw", list_devices},
                 {"nodes", list_nodes},
                 {"models", list_models},
                 {"engines", list_engines}};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    const char *asked = rg_arg_operand(args, 0);
    rg_report *report;
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    bool found = false;
    for (int i = 0; i < KINDS; i++) {
        if (asked != NULL && strcmp(asked, kinds[i].name) != 0)
            continue;
        found = true;
        RG_TRY(kinds[i].list(arena, report, err));
    }
    if (!found)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "nothing to list of '%s'; hw, nodes, models, engines", asked);
    return rg_arg_write(args, report, NULL, err);
}

const rg_command rg_cmd_list = {
    .name = "list",
    .group = "data",
    .summary = "devices, nodes, models and engines that there are",
    .operands = "[hw|nodes|models|engines]",
    .least_operands = 0,
    .most_operands = 1,
    .description = "Names every device, node, model and engine that the other commands know, from "
                   "$RIDGE_DATA, the "
                   "current folder and what came with ridge. CSV is one list: name which.",
    .examples = "  ridge list\n  ridge list hw --format csv\n",
    .run = run,
};

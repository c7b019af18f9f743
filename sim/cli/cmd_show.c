/* cli/cmd_show.c: one device, node, model, engine or price list in full. */
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cli/args.h"
#include "cli/show.h"
#include "cli/show_model.h"
#include "core/find.h"
#include "core/text.h"

extern const rg_command rg_cmd_show;

/** What the file calls itself: the value of kind:, NULL when it has none. */
static rg_status kind_of(rg_node *root, const char **out, rg_err *err)
{
    *out = NULL;
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a data file", err));
    rg_node *kind = rg_map_find(root, "kind");
    return kind == NULL ? RG_OK : rg_node_text(kind, out, err);
}

static rg_status show_model(rg_arena *arena, const rg_args *args, const char *path, rg_form form,
                            rg_report *report, rg_err *err)
{
    rg_model *model;
    rg_show_kv kv;
    RG_TRY(rg_model_load(arena, path, &model, err));
    RG_TRY(rg_show_kv_options(args, &kv, err));
    RG_TRY(rg_report_input(report, "model", path, err));
    return rg_show_model(model, &kv, form, report, err);
}

static rg_status show_file(rg_arena *arena, const rg_args *args, const char *path, rg_form form,
                           rg_report *report, rg_err *err)
{
    rg_node *root;
    const char *kind;
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(kind_of(root, &kind, err));
    /* A config.json says no kind. */
    if (kind == NULL ? rg_text_ends_with(path, ".json") : strcmp(kind, "model") == 0)
        return show_model(arena, args, path, form, report, err);
    if (kind != NULL && strcmp(kind, "prices") == 0) {
        rg_price_list prices;
        RG_TRY(rg_prices_load(arena, path, &prices, err));
        return rg_show_prices(&prices, report, err);
    }
    if (kind != NULL && strcmp(kind, "engine") == 0) {
        rg_engine engine;
        RG_TRY(rg_engine_load(arena, path, &engine, err));
        return rg_show_engine(arena, &engine, form, report, err);
    }
    if (kind != NULL && strcmp(kind, "cluster") == 0) {
        rg_cluster *cluster;
        RG_TRY(rg_cluster_load(arena, path, &cluster, err));
        return rg_show_cluster(arena, cluster, form, report, err);
    }
    rg_accel *accel;
    RG_TRY(rg_accel_read(arena, path, root, &accel, err));
    return rg_show_accel(arena, accel, form, report, err);
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    rg_report *report;
    const char *path;
    rg_form form;
    RG_TRY(rg_arg_form(args, &form, err));
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    RG_TRY(rg_data_find(arena, "hw:hw/nodes:models:hw/engines", "hardware, model or engine",
                        rg_arg_operand(args, 0), &path, err));
    RG_TRY(show_file(arena, args, path, form, report, err));
    return rg_arg_write(args, report, NULL, err);
}

static const rg_option options[] = {
    RG_SHOW_KV_OPTIONS,
    {NULL, 0, NULL, NULL, NULL, false},
};

const rg_command rg_cmd_show = {
    .name = "show",
    .group = "data",
    .summary = "one device, node, model, engine or price list in full, each figure with its source",
    .operands = "NAME|FILE",
    .least_operands = 1,
    .most_operands = 1,
    .description =
        "Prints everything that a data file says: every hardware figure with its unit "
        "and source, what is assumed, the fitted constants and where they are from. Of a model "
        "(name, model YAML or config.json): parameters, cache, state, layers; the options "
        "are for models.",
    .examples = "  ridge show h200-sxm\n  ridge show gb200-nvl72 --format json\n"
                "  ridge show llama-3.1-70b --kv-type fp8 --context 32768\n",
    .options = options,
    .run = run,
};

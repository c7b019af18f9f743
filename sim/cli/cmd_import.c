/* cli/cmd_import.c: a Hugging Face config.json becomes a model file. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/import_topo.h"
#include "cli/show_model.h"
#include "core/file.h"

extern const rg_command rg_cmd_import;

static rg_status load(rg_arena *arena, const rg_args *args, rg_model **model, rg_err *err)
{
    const char *path = rg_arg_operand(args, 0);
    RG_TRY(rg_model_load_config(arena, path, rg_arg_text(args, "family"), model, err));
    if (rg_arg_text(args, "name") != NULL)
        (*model)->name = rg_arg_text(args, "name");
    (*model)->source = rg_arg_text(args, "source");
    return RG_OK;
}

static void put_lines(rg_report *report, const char *text)
{
    while (*text != '\0') {
        const int length = (int)strcspn(text, "\n");
        rg_report_line(report, "%.*s", length, text);
        text += length + (text[length] == '\n');
    }
}

/* A node file from a connection matrix. */
static rg_status import_node(rg_arena *arena, const rg_args *args, rg_err *err)
{
    static const char *const of_models[] = {"family",    "source",  "kv-type",
                                            "kv-layout", "context", "page"};
    rg_cluster *cluster;
    rg_report *report;
    rg_form form;
    char *yaml;
    for (size_t i = 0; i < sizeof of_models / sizeof *of_models; i++)
        if (rg_arg_given(args, of_models[i]))
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "--%s is for a model's config.json; --hw says that this is a machine",
                           of_models[i]);
    RG_TRY(rg_import_topo(arena, rg_arg_operand(args, 0), rg_arg_text(args, "hw"),
                          rg_arg_text(args, "name"), &cluster, err));
    RG_TRY(rg_arg_form(args, &form, err));
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    RG_TRY(rg_cluster_write(arena, cluster, &yaml, err));
    if (form == RG_FORM_TEXT) {
        put_lines(report, yaml);
    } else {
        RG_TRY(rg_report_input(report, "topology", rg_arg_operand(args, 0), err));
        rg_report_json(report, "yaml", json_string(yaml));
    }
    return rg_arg_write(args, report, NULL, err);
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    if (rg_arg_given(args, "hw"))
        return import_node(arena, args, err);
    rg_model *model;
    rg_report *report;
    rg_show_kv kv;
    rg_form form;
    char *yaml;
    RG_TRY(load(arena, args, &model, err));
    RG_TRY(rg_arg_form(args, &form, err));
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    RG_TRY(rg_model_write(arena, model, &yaml, err));
    if (form == RG_FORM_TEXT) {
        put_lines(report, yaml);
    } else {
        RG_TRY(rg_report_input(report, "config", rg_arg_operand(args, 0), err));
        RG_TRY(rg_show_kv_options(args, &kv, err));
        RG_TRY(rg_show_model(model, &kv, form, report, err));
        rg_report_json(report, "yaml", json_string(yaml));
    }
    return rg_arg_write(args, report, NULL, err);
}

static const rg_option options[] = {
    {"hw", 0, "NAME", NULL, "the file is what 'nvidia-smi topo -m' prints of a node of this device",
     false},
    {"name", 0, "NAME", NULL, "name of the result (default: of the file or its folder)", false},
    {"source", 0, "TEXT", NULL, "where the config is from, kept in the model file", false},
    {"family", 0, "TYPE", NULL, "read it as this model_type, whatever the file says", false},
    RG_SHOW_KV_OPTIONS,
    {NULL, 0, NULL, NULL, NULL, false},
};

const rg_command rg_cmd_import = {
    .name = "import",
    .group = "data",
    .summary = "a Hugging Face config.json becomes a model file, nvidia-smi's matrix a node file",
    .operands = "FILE",
    .least_operands = 1,
    .most_operands = 1,
    .description =
        "Prints the model YAML: the kinds of layers and their order, with the counts that follow. "
        "A hf_quant_config.json beside config.json (or NAME.hf_quant_config.json beside NAME.json) "
        "is read with it. JSON and CSV give the counts instead, JSON also the YAML as text.\n"
        "A field that could change the layers and is not known, or an architecture that is not "
        "modelled, is refused by name.\n\n"
        "With --hw, the file holds the matrix of 'nvidia-smi topo -m', and the result describes "
        "that node: NVLink through a switch or from device to device, or PCIe with the devices "
        "that share a switch and a socket, and the network cards. Other figures are those of the "
        "device's usual node.",
    .examples = "  ridge import config.json > models/mine.yaml\n"
                "  ridge import config.json --name mine --source 'org/mine, revision abc'\n"
                "  nvidia-smi topo -m >box.txt; ridge import box.txt --hw l40s >box.yaml\n",
    .options = options,
    .run = run,
};

/* cli/cmd_import.c: a Hugging Face config.json becomes a model file. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
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

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
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
    {"name", 0, "NAME", NULL, "name of the model (default: of the file or its folder)", false},
    {"source", 0, "TEXT", NULL, "where the config is from, kept in the model file", false},
    {"family", 0, "TYPE", NULL, "read it as this model_type, whatever the file says", false},
    RG_SHOW_KV_OPTIONS,
    {NULL, 0, NULL, NULL, NULL, false},
};

const rg_command rg_cmd_import = {
    .name = "import",
    .group = "data",
    .summary = "a Hugging Face config.json becomes a model file",
    .operands = "CONFIG.json",
    .least_operands = 1,
    .most_operands = 1,
    .description =
        "Prints the model YAML: the kinds of layers and their order, with the counts that follow. "
        "A hf_quant_config.json beside config.json (or NAME.hf_quant_config.json beside NAME.json) "
        "is read with it. JSON and CSV give the counts instead, JSON also the YAML as text.\n"
        "A field that could change the layers and is not known, or an architecture that is not "
        "modelled, is refused by name.",
    .examples = "  ridge import config.json > models/mine.yaml\n"
                "  ridge import config.json --name mine --source 'org/mine, revision abc'\n",
    .options = options,
    .run = run,
};

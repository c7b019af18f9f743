/* cli/cmd_check.c: are data files well formed, and do their figures agree? */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/scenario.h"
#include "core/find.h"
#include "core/text.h"
#include "hw/check.h"
#include "hw/cluster.h"
#include "hw/price.h"
#include "model/spec.h"
#include "noc/design.h"
#include "noc/workload.h"
#include "plan/plan.h"
#include "plan/sweep.h"
#include "step/step.h"

extern const rg_command rg_cmd_check, rg_cmd_serve;

/** What checking one file gave. */
typedef struct checked {
    const char *what;     /* "accelerator h200-sxm" */
    int figures, assumed; /* hardware only */
    rg_findings findings;
} checked;

static void count_figures(checked *out, const rg_named_figure *figures, int count)
{
    out->figures += count;
    for (int i = 0; i < count; i++)
        out->assumed += figures[i].figure->assumed;
}

static rg_status check_accel(rg_arena *arena, const char *path, rg_node *root, checked *out,
                             rg_err *err)
{
    rg_accel *accel;
    const rg_named_figure *figures;
    int count;
    RG_TRY(rg_accel_read(arena, path, root, &accel, err));
    RG_TRY(rg_accel_figures(arena, accel, &figures, &count, err));
    count_figures(out, figures, count);
    out->what = rg_arena_printf(arena, err, "accelerator %s", accel->name);
    return rg_accel_check(arena, accel, &out->findings, err);
}

static rg_status check_cluster(rg_arena *arena, const char *path, rg_node *root, checked *out,
                               rg_err *err)
{
    rg_cluster *cluster;
    const rg_named_figure *figures;
    int count;
    (void)root;
    RG_TRY(rg_cluster_load(arena, path, &cluster, err));
    RG_TRY(rg_cluster_figures(arena, cluster, &figures, &count, err));
    count_figures(out, figures, count);
    out->what = rg_arena_printf(arena, err, "cluster %s", cluster->name);
    return rg_cluster_check(arena, cluster, &out->findings, err);
}

static rg_status check_prices(rg_arena *arena, const char *path, rg_node *root, checked *out,
                              rg_err *err)
{
    rg_price_list prices;
    (void)root;
    RG_TRY(rg_prices_load(arena, path, &prices, err));
    out->figures = prices.count;
    for (int i = 0; i < prices.count; i++)
        out->assumed += prices.list[i].price.assumed;
    out->what = rg_arena_printf(arena, err, "prices");
    return RG_OK;
}

static rg_status check_model(rg_arena *arena, const char *path, rg_node *root, checked *out,
                             rg_err *err)
{
    rg_model *model;
    (void)root;
    RG_TRY(rg_model_load(arena, path, &model, err));
    out->what = rg_arena_printf(arena, err, "model %s, %lld parameters", model->name,
                                (long long)model->parameters_total);
    return RG_OK;
}

static rg_status check_engine(rg_arena *arena, const char *path, rg_node *root, checked *out,
                              rg_err *err)
{
    rg_engine engine;
    (void)path;
    RG_TRY(rg_engine_read(arena, root, &engine, err));
    count_figures(out, engine.figures, engine.figure_count);
    out->what = rg_arena_printf(arena, err, "engine %s", engine.name);
    return RG_OK;
}

static rg_status check_noc(rg_arena *arena, const char *path, rg_node *root, checked *out,
                           rg_err *err)
{
    rg_noc_design *design;
    (void)root;
    RG_TRY(rg_noc_design_load(arena, path, &design, err));
    out->what =
        rg_arena_printf(arena, err, "network %s, %d nodes", design->name, design->groups[0].count);
    out->assumed = design->assumed_count;
    out->figures = design->assumed_count;
    return RG_OK;
}

static rg_status check_noc_traffic(rg_arena *arena, const char *path, rg_node *root, checked *out,
                                   rg_err *err)
{
    rg_noc_design *design;
    rg_noc_workload *traffic = RG_NEW(arena, rg_noc_workload, 1, err);
    const char *network;
    if (traffic == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(rg_map_text_or(root, "network", "", &network, err));
    if (network[0] == 0)
        return rg_fail(err, RG_ERR_INPUT, root->pos,
                       "no network to check the traffic against; network: NAME names one");
    RG_TRY(rg_noc_design_load(arena, network, &design, err));
    RG_TRY(rg_noc_workload_load(arena, path, design, traffic, err));
    out->what = rg_arena_printf(arena, err, "traffic of %d classes on %s", traffic->count, network);
    return RG_OK;
}

static rg_status check_scenario(rg_arena *arena, const char *path, rg_node *root, checked *out,
                                rg_err *err)
{
    (void)path;
    RG_TRY(rg_scenario_read(root, rg_cmd_serve.options, err));
    out->what = rg_arena_printf(arena, err, "scenario of %zu settings", root->count - 1);
    return RG_OK;
}

static rg_status check_sweep(rg_arena *arena, const char *path, rg_node *root, checked *out,
                             rg_err *err)
{
    rg_sweep sweep;
    (void)root;
    RG_TRY(rg_sweep_load(arena, path, &sweep, err));
    out->what = rg_arena_printf(arena, err, "sweep of %lld cells", (long long)sweep.cells);
    return RG_OK;
}

static rg_status check_plan(rg_arena *arena, const char *path, rg_node *root, checked *out,
                            rg_err *err)
{
    rg_plan *plan = RG_NEW(arena, rg_plan, 1, err);
    (void)root;
    if (!plan)
        return RG_ERR_LIMIT;
    RG_TRY(rg_plan_load(arena, path, plan, err));
    out->what =
        rg_arena_printf(arena, err, "plan for %s, %d limits", plan->model, plan->limit_count);
    return RG_OK;
}

/* One row a kind of file: the value of its kind:, and who reads it. */
typedef struct file_kind {
    const char *kind;
    rg_status (*check)(rg_arena *, const char *, rg_node *, checked *, rg_err *);
} file_kind;

static const file_kind file_kinds[] = {
    {"accelerator", check_accel}, {"cluster", check_cluster},
    {"prices", check_prices},     {"model", check_model},
    {"engine", check_engine},     {"noc", check_noc},
    {"sweep", check_sweep},       {"plan", check_plan},
    {"serve", check_scenario},    {"noc-traffic", check_noc_traffic},
};
enum { FILE_KINDS = sizeof file_kinds / sizeof file_kinds[0] };

/** The row of a kind; an unknown one fails with the nearest, or with all. */
static rg_status find_kind(const rg_node *node, const file_kind **out, rg_err *err)
{
    const char *names[FILE_KINDS + 1] = {NULL};
    const char *text;
    char all[256] = "";
    RG_TRY(rg_node_text(node, &text, err));
    for (int i = 0; i < FILE_KINDS; i++) {
        names[i] = file_kinds[i].kind;
        strncat(all, i == 0 ? "" : ", ", sizeof all - strlen(all) - 1);
        strncat(all, names[i], sizeof all - strlen(all) - 1);
        if (strcmp(text, names[i]) == 0) {
            *out = &file_kinds[i];
            return RG_OK;
        }
    }
    const char *nearest = rg_text_nearest(text, names);
    return rg_fail(err, RG_ERR_INPUT, node->pos, "kind '%s' is not known; %s%s%s", text,
                   nearest != NULL ? "did you mean '" : "one of: ", nearest != NULL ? nearest : all,
                   nearest != NULL ? "'?" : "");
}

static rg_status check_file(rg_arena *arena, const char *path, checked *out, rg_err *err)
{
    rg_node *root, *kind;
    const file_kind *row;
    RG_TRY(rg_doc_load(arena, path, &root, err));
    /* A config.json says no kind. */
    if (rg_text_ends_with(path, ".json") &&
        (root->kind != RG_NODE_MAP || rg_map_find(root, "kind") == NULL))
        return check_model(arena, path, root, out, err);
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "a data file", err));
    RG_TRY(rg_map_get(root, "kind", &kind, err));
    RG_TRY(find_kind(kind, &row, err));
    return row->check(arena, path, root, out, err);
}

/** Totals over all files. */
typedef struct totals {
    int files, refused, errors, warnings, figures, assumed;
} totals;

/** Where findings go: lines for people, tables for programs. */
typedef struct outlet {
    rg_report *report;
    rg_table *files, *findings; /* NULL in the text form */
} outlet;

static void start_tables(outlet *to)
{
    rg_table *f = rg_report_table(to->report, "files", "Files");
    rg_table_column(f, "file", "file", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(f, "is", "is", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(f, "figures", "figures", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(f, "assumed", "assumed", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(f, "findings", "findings", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(f, "ok", "ok", RG_CELL_BOOL, RG_DIM_NONE, false);
    rg_table *g = rg_report_table(to->report, "findings", "Findings");
    rg_table_column(g, "file", "file", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(g, "line", "line", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(g, "column", "column", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(g, "severity", "severity", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(g, "name", "name", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(g, "text", "text", RG_CELL_TEXT, RG_DIM_NONE, false);
    to->files = f;
    to->findings = g;
}

static void add_finding(const outlet *to, const char *severity, const char *name, rg_pos pos,
                        const char *text)
{
    rg_err place = {.pos = pos};
    char line[RG_ERR_TEXT_SIZE + 300];
    snprintf(place.file, sizeof place.file, "%s", pos.file);
    snprintf(place.text, sizeof place.text, "%s: %s [%s]", severity, text, name);
    rg_err_format(&place, line, sizeof line);
    rg_report_line(to->report, "%s", line);
    if (to->findings == NULL)
        return;
    rg_table_text(to->findings, pos.file);
    rg_table_int(to->findings, pos.line);
    rg_table_int(to->findings, pos.column);
    rg_table_text(to->findings, severity);
    rg_table_text(to->findings, name);
    rg_table_text(to->findings, text);
}

static void add_file(const outlet *to, const char *path, const checked *result, bool refused)
{
    const bool ok = !refused && result->findings.errors == 0;
    if (to->files == NULL) {
        if (ok)
            rg_report_line(to->report, "%s: ok, %s, %d figures, %d of them assumed", path,
                           result->what, result->figures, result->assumed);
        return;
    }
    rg_table_text(to->files, path);
    rg_table_text(to->files, result->what);
    rg_table_int(to->files, result->figures);
    rg_table_int(to->files, result->assumed);
    rg_table_int(to->files, result->findings.count + refused);
    rg_table_bool(to->files, ok);
}

static rg_status check_one(rg_arena *arena, const char *path, const outlet *to, totals *sum,
                           rg_err *err)
{
    checked result = {.what = "unreadable"};
    rg_err inner = {0};
    const rg_status status = check_file(arena, path, &result, &inner);
    sum->files++;
    sum->figures += result.figures;
    sum->assumed += result.assumed;
    if (status != RG_OK) {
        sum->refused++;
        rg_pos pos = inner.pos;
        pos.file = inner.file[0] != 0 ? inner.file : path;
        pos.file = rg_arena_strdup(arena, pos.file, err);
        const char *text = rg_arena_strdup(arena, inner.text, err);
        if (pos.file == NULL || text == NULL)
            return RG_ERR_LIMIT;
        add_finding(to, "error", "refused", pos, text);
    }
    for (int i = 0; i < result.findings.count; i++) {
        const rg_finding *finding = &result.findings.list[i];
        const bool bad = finding->severity == RG_SEVERITY_ERROR;
        *(bad ? &sum->errors : &sum->warnings) += 1;
        add_finding(to, bad ? "error" : "warning", finding->name, finding->pos, finding->text);
    }
    add_file(to, path, &result, status != RG_OK);
    return RG_OK;
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    outlet to = {0};
    totals sum = {0};
    rg_form form;
    RG_TRY(rg_arg_form(args, &form, err));
    RG_TRY(rg_arg_report(arena, args, 1, &to.report, err));
    if (form != RG_FORM_TEXT)
        start_tables(&to);
    for (int i = 0; i < rg_arg_operands(args); i++)
        RG_TRY(check_one(arena, rg_arg_operand(args, i), &to, &sum, err));
    rg_report_int(to.report, "files_checked", "files", sum.files);
    rg_report_int(to.report, "figures", "figures", sum.figures);
    rg_report_int(to.report, "assumed", "of them assumed", sum.assumed);
    rg_report_int(to.report, "refused", "files refused", sum.refused);
    rg_report_int(to.report, "errors", "contradictions", sum.errors);
    rg_report_int(to.report, "warnings", "warnings", sum.warnings);
    RG_TRY(rg_arg_write(args, to.report, "findings", err));
    if (sum.refused > 0)
        return rg_fail(err, RG_ERR_INPUT, RG_NOWHERE, "refused: %d of %d files", sum.refused,
                       sum.files);
    if (sum.errors > 0)
        return rg_fail(err, RG_ERR_NO, RG_NOWHERE, "contradictions found: %d", sum.errors);
    return RG_OK;
}

const rg_command rg_cmd_check = {
    .name = "check",
    .group = "data",
    .summary = "are data files well formed, and do their figures agree with one another?",
    .operands = "FILE...",
    .least_operands = 1,
    .most_operands = -1,
    .description =
        "Reads each file as the other commands would, and compares its figures: peaks against "
        "units x flop per clock x clock (1 %), bandwidths against bytes per clock or pins, links "
        "against their number, measured against specified, sparse peaks given as dense, idle "
        "power against TDP.\n"
        "Exit: 0 all agree (warnings do not count), 1 figures contradict, 2 a file is refused.",
    .examples = "  ridge check hw/*.yaml hw/nodes/*.yaml\n  ridge check my-chip.yaml -f json\n",
    .run = run,
};

/* cli/cmd_validate.c: ridge validate, error tables of predictions against measured times. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/validate.h"
#include "core/csv.h"
#include "core/file.h"
#include "fit/compare.h"
#include "fit/store.h"
#include "report/plot.h"

enum { MOST_BREACHES = 256, MOST_WORST = 1000 };

static const rg_option options[] = {
    {.name = "hw", .argument = "H", .help = "device that the table was measured on"},
    {.name = "op", .argument = "OP", .help = "operator of the table; default: the file's name"},
    {.name = "measured", .argument = "FILE", .help = "table of measured times (CSV)"},
    {.name = "outliers", .argument = "FILE", .help = "rows to leave out"},
    {.name = "rows", .argument = "FILE", .help = "write every row with its prediction"},
    {.name = "limits", .argument = "FILE", .help = "limits (YAML); exit 1 when one is passed"},
    {.name = "split",
     .argument = "SPLIT",
     .fallback = "random:0.7",
     .help = "split that the constants were fitted with"},
    {.name = "constants",
     .argument = "H",
     .help = "predict with this device's constants, or 'start': guesses"},
    {.name = "weight-copies",
     .argument = "N",
     .fallback = "0",
     .help = "copies of W that the timing loop cycled through; 0: 1 to 5, as many as fill L2"},
    {.name = "sustained", .help = "predict long runs under the power limit, not bursts"},
    {.name = "ideal", .help = "predict the bare roofline"},
    {.name = "worst", .argument = "N", .fallback = "10", .help = "worst rows to list"},
    {.name = "plot", .argument = "FILE", .help = "scatter and error figure (.svg, .png, .pdf)"},
    {.name = "keep-band",
     .help = "keep the errors as the band of carried-over predictions in the file of --constants"},
    {.name = "table",
     .argument = "DIR",
     .help = "accuracy of every table in DIR/<device>/, own constants and carried over"},
    {.name = "brief", .help = "with --table: only what was not fitted, a line an operator"},
    {.name = NULL},
};

static void add_error_columns(rg_table *table)
{
    rg_table_column(table, "rows", "rows", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "mean_ape", "mean", RG_CELL_REAL, RG_DIM_SHARE, false);
    rg_table_column(table, "median_ape", "median", RG_CELL_REAL, RG_DIM_SHARE, false);
    rg_table_column(table, "p90_ape", "p90", RG_CELL_REAL, RG_DIM_SHARE, false);
    rg_table_column(table, "bias", "bias", RG_CELL_REAL, RG_DIM_SHARE, false);
}

static void add_error_cells(rg_table *table, const rg_error_summary *e)
{
    rg_table_int(table, (long long)e->count);
    rg_table_real(table, e->mean_ape);
    rg_table_real(table, e->median_ape);
    rg_table_real(table, e->p90_ape);
    rg_table_real(table, e->bias);
}

static void add_groups(rg_report *report, const rg_comparison *c, bool summary)
{
    rg_table *table = summary
                          ? rg_report_table(report, "summary",
                                            "Errors of predicted over measured, rows served from "
                                            "L2 left out")
                          : rg_report_table(report, "groups", "By size and residency");
    rg_table_column(table, "op", "op", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "dtype", "type", RG_CELL_TEXT, RG_DIM_NONE, false);
    if (!summary) {
        rg_table_column(table, "size_class", "size", RG_CELL_TEXT, RG_DIM_NONE, false);
        rg_table_column(table, "residency", "from", RG_CELL_TEXT, RG_DIM_NONE, false);
    }
    rg_table_column(table, "sample", "sample", RG_CELL_TEXT, RG_DIM_NONE, false);
    add_error_columns(table);
    const rg_compared_group *groups = summary ? c->summary : c->groups;
    const int count = summary ? c->summary_count : c->group_count;
    for (int i = 0; i < count; i++) {
        rg_table_text(table, rg_measured_kind_name(c->table->kind));
        rg_table_text(table, groups[i].dtype);
        if (!summary) {
            rg_table_text(table, groups[i].size_class);
            rg_table_text(table, groups[i].residency);
        }
        rg_table_text(table, rg_provenance_name(groups[i].sample));
        add_error_cells(table, &groups[i].errors);
    }
}

static void add_skipped(rg_report *report, const rg_comparison *c)
{
    rg_table *table = rg_report_table(report, "skipped", "Rows left out");
    rg_table_column(table, "reason", "reason", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "rows", "rows", RG_CELL_INT, RG_DIM_NONE, false);
    for (int s = RG_SKIP_NONE + 1; s < RG_SKIP_COUNT; s++)
        if (c->skipped[s] > 0) {
            rg_table_text(table, rg_skip_name((rg_skip)s));
            rg_table_int(table, c->skipped[s]);
        }
}

/* A row's columns but its time, "m=1 n=2 k=3". */
static const char *point_text(rg_arena *arena, const rg_measured_table *table,
                              const rg_measured_row *row, rg_err *err)
{
    char text[512] = "";
    size_t used = 0;
    for (int i = 0; i < table->columns; i++) {
        if (strcmp(table->column[i], "time_us") == 0 || strcmp(table->column[i], "kernel") == 0)
            continue;
        const int n = snprintf(text + used, sizeof text - used, "%s%s=%s", used ? " " : "",
                               table->column[i], row->fields[i]);
        if (n < 0 || used + (size_t)n >= sizeof text)
            break;
        used += (size_t)n;
    }
    return rg_arena_strdup(arena, text, err);
}

static rg_status add_worst(rg_arena *arena, rg_report *report, const rg_comparison *c, int count,
                           rg_err *err)
{
    const rg_compared_row *worst[MOST_WORST];
    int found;
    RG_TRY(rg_compare_worst(arena, c, count, worst, &found, err));
    rg_table *table = rg_report_table(report, "worst", "Worst rows");
    rg_table_column(table, "line", "line", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "point", "point", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "measured_s", "measured", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "predicted_s", "predicted", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "error", "error", RG_CELL_REAL, RG_DIM_NONE, false);
    for (int i = 0; i < found; i++) {
        const char *point = point_text(arena, c->table, worst[i]->row, err);
        if (!point)
            return RG_ERR_LIMIT;
        rg_table_int(table, worst[i]->row->line);
        rg_table_text(table, point);
        rg_table_real(table, worst[i]->row->seconds);
        rg_table_real(table, worst[i]->predicted);
        rg_table_real(table, worst[i]->predicted / worst[i]->row->seconds - 1.0);
    }
    return RG_OK;
}

static rg_status write_rows(const rg_comparison *c, const char *path, rg_err *err)
{
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, err));
    for (int i = 0; i < c->table->columns; i++) {
        rg_csv_put(file.stream, c->table->column[i]);
        fputc(',', file.stream);
    }
    fputs("predicted_us,skipped\n", file.stream);
    for (size_t r = 0; r < c->table->count; r++) {
        const rg_compared_row *row = &c->rows[r];
        for (int i = 0; i < c->table->columns; i++) {
            rg_csv_put(file.stream, row->row->fields[i]);
            fputc(',', file.stream);
        }
        if (isfinite(row->predicted))
            fprintf(file.stream, "%.6g", row->predicted * 1e6);
        fprintf(file.stream, ",%s\n",
                row->row->skip == RG_SKIP_NONE ? "" : rg_skip_name(row->row->skip));
    }
    return rg_out_commit(&file, err);
}

static const double most_error_shown = 60.0; /* per cent, either way */

static rg_status draw(rg_arena *arena, const rg_comparison *c, const char *device, const char *path,
                      rg_err *err)
{
    rg_plot *plot;
    FILE *data;
    RG_TRY(rg_plot_new(arena, "validate", path, &plot, err));
    rg_plot_size(plot, 1200, 640);
    rg_plot_text(plot, "figure_title", "%s on %s: predicted against measured",
                 rg_measured_kind_name(c->table->kind), device);
    RG_TRY(rg_plot_data(plot, "rows", &data, err));
    fputs("measured_us,predicted_us,error_percent,class\n", data);
    double least = INFINITY, most = 0.0;
    size_t beyond = 0;
    for (size_t i = 0; i < c->table->count; i++) {
        const rg_compared_row *r = &c->rows[i];
        if (r->row->skip != RG_SKIP_NONE)
            continue;
        const double measured = r->row->seconds * 1e6, predicted = r->predicted * 1e6;
        least = fmin(least, fmin(measured, predicted));
        most = fmax(most, fmax(measured, predicted));
        const double error = 100.0 * (predicted / measured - 1.0);
        beyond += fabs(error) > most_error_shown;
        fprintf(data, "%.6g,%.6g,%.4g,%d\n", measured, predicted, error,
                strcmp(r->row->residency, "l2") == 0);
    }
    rg_error_summary e;
    RG_TRY(rg_compare_pool(arena, c, NULL, NULL, NULL, NULL, &e, err));
    rg_plot_text(
        plot, "figure_note",
        "%zu rows, median %.1f %%, p90 %.1f %%, bias %+.1f %%; %zu beyond %.0f %% (left only)",
        e.count, 100.0 * e.median_ape, 100.0 * e.p90_ape, 100.0 * e.bias, beyond, most_error_shown);
    rg_plot_number(plot, "most_error", most_error_shown);
    rg_plot_number(plot, "least_us", pow(10.0, floor(log10(least))));
    rg_plot_number(plot, "most_us", pow(10.0, ceil(log10(most))));
    return rg_plot_write(plot, err);
}

static rg_status hold_limits(rg_arena *arena, rg_report *report, const rg_comparison *c,
                             const char *path, int *passed, rg_err *err)
{
    rg_limit_breach *breach = RG_NEW(arena, rg_limit_breach, MOST_BREACHES, err);
    if (!breach)
        return RG_ERR_LIMIT;
    RG_TRY(rg_report_input(report, "limits", path, err));
    RG_TRY(rg_compare_limits(arena, c, path, breach, MOST_BREACHES, passed, err));
    rg_table *table = rg_report_table(report, "breaches", "Limits passed");
    static const char *const keys[] = {"op", "dtype", "size_class", "residency", "sample"};
    for (int i = 0; i < 5; i++)
        rg_table_column(table, keys[i], keys[i], RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "measure", "measure", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "limit", "limit", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "value", "value", RG_CELL_REAL, RG_DIM_NONE, false);
    for (int i = 0; i < *passed; i++) {
        const rg_limit_breach *b = &breach[i];
        const char *const selectors[] = {b->op, b->dtype, b->size_class, b->residency, b->sample};
        for (int j = 0; j < 5; j++)
            rg_table_text(table, selectors[j] ? selectors[j] : "any");
        rg_table_text(table, b->measure);
        rg_table_real(table, b->limit);
        rg_table_real(table, b->value);
    }
    return RG_OK;
}

/* One table held against one device's models. */
typedef struct job {
    const char *hw, *path, *outliers, *constants;
    rg_measured_kind kind;
    rg_split split;
    bool sustained, ideal;
    int weight_copies;
    rg_measured_table table;
    rg_predictor *predictor;
    rg_comparison comparison;
} job;

static rg_status do_job(rg_arena *arena, job *j, rg_err *err)
{
    RG_TRY(rg_measured_load(arena, j->kind, j->path, &j->table, err));
    if (j->outliers)
        RG_TRY(rg_measured_mark_outliers(arena, &j->table, j->outliers, err));
    const rg_kernel_options kernel = {.constants_from = j->constants,
                                      .sustained = j->sustained,
                                      .ideal = j->ideal,
                                      .weight_copies = j->weight_copies};
    RG_TRY(rg_predictor_new(arena, j->hw, &kernel, j->kind, &j->predictor, err));
    RG_TRY(rg_predictor_judge(j->predictor, &j->table, err));
    return rg_compare(arena, j->predictor, &j->table, &j->split, &j->comparison, err);
}

/* What the constants of another device were worth here, kept beside them. */
static rg_status keep_band(rg_arena *arena, const job *j, rg_err *err)
{
    if (!j->constants)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "option --keep-band is for predictions with --constants of another device");
    rg_accel *lender;
    RG_TRY(rg_accel_load(arena, j->constants, &lender, err));
    const char *data = rg_arena_printf(arena, err, "%s of %s predicted with these constants",
                                       rg_measured_kind_name(j->table.kind),
                                       rg_predictor_accel(j->predictor)->name);
    if (!data)
        return RG_ERR_LIMIT;
    for (int group = 0; group < RG_KG_COUNT; group++) {
        rg_class_errors classes[RG_MOST_CLASSES];
        int count;
        RG_TRY(rg_compare_classes(arena, &j->comparison, group, classes, RG_MOST_CLASSES, &count,
                                  err));
        if (count > 0)
            RG_TRY(rg_fit_store_carried(arena, lender->path, rg_predict_group_name(group), classes,
                                        count, data, err));
    }
    return RG_OK;
}

static rg_status validate_one(rg_arena *arena, const rg_args *args, job *j, rg_err *err)
{
    RG_TRY(do_job(arena, j, err));
    const rg_accel *accel = rg_predictor_accel(j->predictor);
    rg_report *report;
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    RG_TRY(rg_report_input(report, "hardware", accel->path, err));
    RG_TRY(rg_report_input(report, "measured", j->path, err));
    rg_report_setting(report, "split", rg_arg_text(args, "split"));
    rg_report_setting(report, "runs", j->sustained ? "sustained" : "burst");
    rg_report_assume(report, "%s", rg_predictor_note(j->predictor));
    rg_report_assume(report, "predictions are for %s",
                     j->ideal       ? "ideal kernels: the bare roofline"
                     : j->sustained ? "sustained runs, under the power limit"
                                    : "bursts, before the power limit brings clocks down");
    add_groups(report, &j->comparison, true);
    add_groups(report, &j->comparison, false);
    add_skipped(report, &j->comparison);
    int64_t worst;
    RG_TRY(rg_arg_int(args, "worst", 0, MOST_WORST, &worst, err));
    RG_TRY(add_worst(arena, report, &j->comparison, (int)worst, err));
    int passed = 0;
    if (rg_arg_given(args, "limits"))
        RG_TRY(
            hold_limits(arena, report, &j->comparison, rg_arg_text(args, "limits"), &passed, err));
    if (rg_arg_given(args, "rows"))
        RG_TRY(write_rows(&j->comparison, rg_arg_text(args, "rows"), err));
    if (rg_arg_given(args, "plot"))
        RG_TRY(draw(arena, &j->comparison, accel->name, rg_arg_text(args, "plot"), err));
    if (rg_arg_flag(args, "keep-band"))
        RG_TRY(keep_band(arena, j, err));
    RG_TRY(rg_arg_write(args, report, "groups", err));
    if (passed > 0)
        return rg_fail(err, RG_ERR_NO, RG_NOWHERE, "'%d' limits passed", passed);
    return RG_OK;
}

/* Folders of a measured collection and the devices that they stand for; who lends to whom; copies
 * of the weights, where the collector had a fixed number. */
static const struct {
    const char *folder, *hw, *lender;
    int weight_copies;
} devices[] = {
    {"h100_sxm", "h100-sxm", NULL, 0},
    {"h200_sxm", "h200-sxm", "a100-sxm-80gb", 0},
    {"a100_sxm", "a100-sxm-80gb", "h200-sxm", 5},
    {"b200_sxm", "b200-sxm", NULL, 0},
    {"b300_sxm", "b300-sxm", NULL, 0},
    {"gb200", "gb200", NULL, 0},
    {"gb300", "gb300", NULL, 0},
    {"l40s", "l40s", NULL, 0},
    {"rtx_pro_6000_server", "rtx-pro-6000-server", NULL, 0},
};

static void add_accuracy(rg_table *table, const job *j, const char *dtype, rg_provenance sample,
                         const rg_error_summary *errors)
{
    rg_table_text(table, j->hw);
    rg_table_text(table, rg_measured_kind_name(j->kind));
    rg_table_text(table, dtype);
    rg_table_text(table, rg_provenance_name(sample));
    rg_table_text(table, j->constants ? j->constants : "");
    add_error_cells(table, errors);
}

/* What was not fitted, in a line an operator: GEMM by type, all else over its types and ranks. */
static rg_status add_brief(rg_arena *arena, rg_table *table, const job *j, rg_err *err)
{
    static const char *const all[] = {NULL};
    static const char *const types[] = {"bf16", "fp8", "fp8_block", "int8", "int4_wo"};
    const bool gemm = j->kind == RG_MEASURED_GEMM;
    const char *const *dtypes = gemm ? types : all;
    const size_t count = gemm ? sizeof types / sizeof types[0] : 1;
    for (int s = RG_OUT_OF_SAMPLE; s < RG_PROVENANCE_COUNT; s++)
        for (size_t d = 0; d < count; d++) {
            rg_error_summary errors;
            RG_TRY(rg_compare_overall(arena, &j->comparison, dtypes[d],
                                      rg_provenance_name((rg_provenance)s), &errors, err));
            if (errors.count > 0)
                add_accuracy(table, j, dtypes[d] ? dtypes[d] : "all", (rg_provenance)s, &errors);
        }
    return RG_OK;
}

static rg_status tabulate(rg_arena *arena, const rg_args *args, const job *base, const char *dir,
                          rg_err *err)
{
    rg_report *report;
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    rg_table *table =
        rg_report_table(report, "accuracy", "Errors of predicted over measured, L2 rows left out");
    rg_table_column(table, "device", "device", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "op", "op", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "dtype", "type", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "sample", "sample", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "constants", "constants of", RG_CELL_TEXT, RG_DIM_NONE, false);
    add_error_columns(table);
    const char *outliers = rg_arena_printf(arena, err, "%s/outliers.csv", dir);
    if (!outliers)
        return RG_ERR_LIMIT;
    int found = 0;
    for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++)
        for (int kind = 0; kind < RG_MEASURED_KIND_COUNT; kind++)
            for (int lent = 0; lent < (devices[d].lender ? 2 : 1); lent++) {
                job j = *base;
                j.hw = devices[d].hw;
                j.kind = (rg_measured_kind)kind;
                j.constants = lent ? devices[d].lender : NULL;
                j.weight_copies = devices[d].weight_copies;
                j.path = rg_arena_printf(arena, err, "%s/%s/%s.csv", dir, devices[d].folder,
                                         rg_measured_kind_name(j.kind));
                if (!j.path)
                    return RG_ERR_LIMIT;
                const bool collective =
                    j.kind == RG_MEASURED_NCCL || j.kind == RG_MEASURED_CUSTOM_ALLREDUCE;
                if (!rg_file_exists(j.path) || (lent && collective) ||
                    j.kind == RG_MEASURED_COMPUTESCALE)
                    continue;
                if (!j.outliers && rg_file_exists(outliers))
                    j.outliers = outliers;
                /* Each job has an arena of its own: together they would fill one. */
                rg_arena *own = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
                if (!own)
                    return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for '%s'", j.path);
                rg_status status = do_job(own, &j, err);
                if (status == RG_OK && rg_arg_flag(args, "brief"))
                    status = add_brief(own, table, &j, err);
                for (int g = 0; g < j.comparison.summary_count && status == RG_OK &&
                                !rg_arg_flag(args, "brief");
                     g++) {
                    const rg_compared_group *group = &j.comparison.summary[g];
                    add_accuracy(table, &j, group->dtype, group->sample, &group->errors);
                }
                rg_arena_free(own);
                RG_TRY(status);
                found++;
            }
    if (found == 0)
        return rg_fail(err, RG_ERR_IO, (rg_pos){.file = dir},
                       "no tables in folders named after devices, such as '%s/h200_sxm/gemm.csv'",
                       dir);
    return rg_arg_write(args, report, NULL, err);
}

static bool is_serving(const char *op, const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(op ? op : slash ? slash + 1 : path, "serving_agg", 11) == 0;
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    job j = {.hw = rg_arg_text(args, "hw"),
             .path = rg_arg_text(args, "measured"),
             .outliers = rg_arg_text(args, "outliers"),
             .constants = rg_arg_text(args, "constants"),
             .sustained = rg_arg_flag(args, "sustained"),
             .ideal = rg_arg_flag(args, "ideal")};
    RG_TRY(rg_split_parse(arena, rg_arg_text(args, "split"), rg_arg_seed(args), &j.split, err));
    int64_t copies;
    RG_TRY(rg_arg_int(args, "weight-copies", 0, 1000, &copies, err));
    j.weight_copies = (int)copies;
    if (rg_arg_given(args, "table"))
        return tabulate(arena, args, &j, rg_arg_text(args, "table"), err);
    if (j.path && is_serving(rg_arg_text(args, "op"), j.path))
        return rg_validate_serving(arena, args, j.path, err);
    if (!j.hw || !j.path)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "option --%s is missing; give --hw DEVICE --measured FILE.csv, or --table "
                       "DIR",
                       j.hw ? "measured" : "hw");
    RG_TRY(rg_measured_kind_parse(rg_arg_text(args, "op"), j.path, &j.kind, err));
    return validate_one(arena, args, &j, err);
}

const rg_command rg_cmd_validate = {
    .name = "validate",
    .group = "measure",
    .summary = "error tables of predictions against measured times",
    .description =
        "Predicts every row of a table of measured operator times and sums up the errors: mean, "
        "median and 90th percentile of the absolute error, and bias, by operator, type, size and "
        "by where operands lie. Rows that were fitted, rows kept apart from the fit and rows of "
        "a device with borrowed constants stand apart. Rows faster than the hardware allows are "
        "found, counted and left out.\n\n"
        "With --op serving_agg the rows are runs of whole servers; each names its own device and "
        "model. Runs in which, by Little's law, another number of requests was in flight than the "
        "prediction holds for are flagged and not compared.",
    .examples = "ridge validate --hw h200-sxm --op gemm --measured gemm.csv\n"
                "ridge validate --hw h100-sxm --measured moe.csv --limits limits.yaml\n"
                "ridge validate --table measured",
    .options = options,
    .run = run};

/* cli/cmd_fit.c: ridge fit, constants of the kernel models from measured times. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "core/file.h"
#include "fit/calibrate.h"
#include "fit/store.h"

enum { MOST_GROUPS = 32 };

static const rg_option options[] = {
    {.name = "hw", .argument = "H", .help = "device whose constants are fitted"},
    {.name = "measured", .argument = "FILE", .help = "table of measured times (CSV)"},
    {.name = "op", .argument = "OP", .help = "operator of the table; default: the file's name"},
    {.name = "outliers", .argument = "FILE", .help = "rows to leave out"},
    {.name = "split",
     .argument = "SPLIT",
     .fallback = "random:0.7",
     .help = "rows to fit: random, random:SHARE, regime:m<=256/m>1024"},
    {.name = "few", .argument = "N", .help = "fit the N most informative shapes only; lists them"},
    {.name = "choose", .help = "with --few: list the shapes to time, fit nothing"},
    {.name = "group", .argument = "NAME", .help = "fit this group only", .repeatable = true},
    {.name = "hold", .argument = "NAME", .help = "leave a constant as it is", .repeatable = true},
    {.name = "prior", .help = "let priors stand where the rows identify nothing"},
    {.name = "constants",
     .argument = "H",
     .help = "start from this device's constants, or 'start': guesses"},
    {.name = "weight-copies",
     .argument = "N",
     .fallback = "0",
     .help = "copies of W that the timing loop cycled through; 0: 1 to 5, as many as fill L2"},
    {.name = "rows", .argument = "N", .fallback = "3000", .help = "most rows that enter a fit"},
    {.name = "write", .help = "write the constants into the hardware file"},
    {.name = "into", .argument = "FILE", .help = "write into this hardware file instead"},
    {.name = "date", .argument = "DATE", .help = "date of the measurement, kept with the fit"},
    {.name = NULL},
};

static rg_status required(const rg_args *args, const char *name, const char **out, rg_err *err)
{
    *out = rg_arg_text(args, name);
    if (*out)
        return RG_OK;
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option --%s is missing", name);
}

static void add_constants(rg_report *report, const rg_calibration *all, int count)
{
    rg_table *table = rg_report_table(report, "constants", "Constants");
    rg_table_column(table, "group", "group", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "name", "constant", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "value", "value", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "low", "95 % from", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "high", "to", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "start", "was", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "sensitivity", "sensitivity", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(table, "note", "note", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int g = 0; g < count; g++)
        for (int i = 0; i < all[g].parameters; i++) {
            const rg_calibration *c = &all[g];
            const rg_lsq_estimate *e = &c->estimate[i];
            rg_table_text(table, rg_predict_group_name(c->group));
            rg_table_text(table, c->parameter[i].name);
            rg_table_real(table, e->value);
            rg_table_real(table, c->held[i] ? NAN : e->low);
            rg_table_real(table, c->held[i] ? NAN : e->high);
            rg_table_real(table, c->parameter[i].start);
            rg_table_real(table, e->sensitivity);
            char note[160];
            if (c->held[i])
                snprintf(note, sizeof note, "held");
            else if (e->note == RG_LSQ_ENTANGLED && e->partner >= 0)
                snprintf(note, sizeof note, "not told apart from %s",
                         c->parameter[e->partner].name);
            else
                snprintf(note, sizeof note, "%s", rg_lsq_note_text(e->note));
            rg_table_text(table, note);
        }
}

static void add_errors(rg_report *report, const rg_calibration *all, int count)
{
    rg_table *table = rg_report_table(
        report, "errors", "Errors of predicted over measured, rows served from L2 left out");
    rg_table_column(table, "group", "group", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "sample", "rows", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "rows", "count", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "mean_ape", "mean", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "median_ape", "median", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "p90_ape", "p90", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "bias", "bias", RG_CELL_REAL, RG_DIM_NONE, false);
    for (int g = 0; g < count; g++)
        for (int tested = 0; tested < 2; tested++) {
            const rg_error_summary *e = tested ? &all[g].tested : &all[g].fitted;
            if (e->count == 0)
                continue;
            rg_table_text(table, rg_predict_group_name(all[g].group));
            rg_table_text(table, tested ? "out of sample" : "in sample");
            rg_table_int(table, (long long)e->count);
            rg_table_real(table, e->mean_ape);
            rg_table_real(table, e->median_ape);
            rg_table_real(table, e->p90_ape);
            rg_table_real(table, e->bias);
        }
}

static void add_chosen(rg_report *report, const rg_measured_table *measured,
                       const rg_calibration *all, int count)
{
    bool any = false;
    for (int g = 0; g < count; g++)
        any = any || all[g].chosen_count > 0;
    if (!any)
        return;
    rg_table *table =
        rg_report_table(report, "chosen", "Shapes that identify the constants best: time these");
    rg_table_column(table, "group", "group", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int i = 0; i < measured->columns; i++)
        rg_table_column(table, measured->column[i], measured->column[i], RG_CELL_TEXT, RG_DIM_NONE,
                        false);
    for (int g = 0; g < count; g++)
        for (int j = 0; j < all[g].chosen_count; j++) {
            rg_table_text(table, rg_predict_group_name(all[g].group));
            for (int i = 0; i < measured->columns; i++)
                rg_table_text(table, all[g].chosen[j]->fields[i]);
        }
}

static void add_skipped(rg_report *report, const rg_measured_table *measured)
{
    rg_table *table = rg_report_table(report, "skipped", "Rows left out");
    rg_table_column(table, "reason", "reason", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "rows", "rows", RG_CELL_INT, RG_DIM_NONE, false);
    for (int s = RG_SKIP_NONE + 1; s < RG_SKIP_COUNT; s++) {
        long long rows = 0;
        for (size_t i = 0; i < measured->count; i++)
            rows += measured->rows[i].skip == (rg_skip)s;
        if (rows == 0)
            continue;
        rg_table_text(table, rg_skip_name((rg_skip)s));
        rg_table_int(table, rows);
    }
}

/* Values of a repeatable option, NULL-terminated. */
static rg_status list_of(rg_arena *arena, const rg_args *args, const char *name,
                         const char *const **out, rg_err *err)
{
    const int count = rg_arg_count(args, name);
    const char **list = RG_NEW(arena, const char *, count + 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    for (int i = 0; i < count; i++)
        list[i] = rg_arg_nth(args, name, i);
    *out = list;
    return RG_OK;
}

static rg_status read_options(rg_arena *arena, const rg_args *args, rg_calibration_options *out,
                              rg_err *err)
{
    RG_TRY(rg_split_parse(arena, rg_arg_text(args, "split"), rg_arg_seed(args), &out->split, err));
    RG_TRY(list_of(arena, args, "hold", &out->hold, err));
    RG_TRY(list_of(arena, args, "group", &out->groups, err));
    out->lean_on_prior = rg_arg_flag(args, "prior");
    int64_t few = 0, rows;
    if (rg_arg_given(args, "few"))
        RG_TRY(rg_arg_int(args, "few", 4, 100000, &few, err));
    RG_TRY(rg_arg_int(args, "rows", 50, 10000000, &rows, err));
    out->few = (int)few;
    out->choose_only = rg_arg_flag(args, "choose");
    if (out->choose_only && few == 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "option --choose needs --few N, the number of shapes");
    out->most_rows = (size_t)rows;
    return RG_OK;
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    const char *hw, *path;
    RG_TRY(required(args, "hw", &hw, err));
    RG_TRY(required(args, "measured", &path, err));
    rg_calibration_options chosen = {0};
    RG_TRY(read_options(arena, args, &chosen, err));
    rg_measured_kind kind;
    RG_TRY(rg_measured_kind_parse(rg_arg_text(args, "op"), path, &kind, err));
    rg_measured_table measured;
    RG_TRY(rg_measured_load(arena, kind, path, &measured, err));
    const char *outliers = rg_arg_text(args, "outliers");
    if (outliers)
        RG_TRY(rg_measured_mark_outliers(arena, &measured, outliers, err));
    int64_t copies;
    RG_TRY(rg_arg_int(args, "weight-copies", 0, 1000, &copies, err));
    const rg_kernel_options kernel = {.constants_from = rg_arg_text(args, "constants"),
                                      .weight_copies = (int)copies};
    rg_predictor *predictor;
    RG_TRY(rg_predictor_new(arena, hw, &kernel, kind, &predictor, err));
    RG_TRY(rg_predictor_judge(predictor, &measured, err));

    rg_calibration *fitted = RG_NEW(arena, rg_calibration, MOST_GROUPS, err);
    if (!fitted)
        return RG_ERR_LIMIT;
    int count;
    RG_TRY(rg_calibrate(arena, predictor, &measured, &chosen, fitted, MOST_GROUPS, &count, err));

    rg_report *report;
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    const rg_accel *accel = rg_predictor_accel(predictor);
    RG_TRY(rg_report_input(report, "hardware", accel->path, err));
    RG_TRY(rg_report_input(report, "measured", path, err));
    rg_report_setting(report, "split", rg_arg_text(args, "split"));
    if (!chosen.choose_only) {
        add_errors(report, fitted, count);
        add_constants(report, fitted, count);
    }
    add_chosen(report, &measured, fitted, count);
    add_skipped(report, &measured);
    if (!chosen.choose_only && (rg_arg_flag(args, "write") || rg_arg_given(args, "into"))) {
        char digest[65];
        RG_TRY(rg_file_sha256(path, digest, err));
        const char *slash = strrchr(path, '/');
        const rg_fit_provenance provenance = {
            .date = rg_arg_text(args, "date"),
            .data = rg_arena_printf(arena, err, "%s measured on %s, sha256 %.16s",
                                    slash ? slash + 1 : path, accel->name, digest),
            .split =
                rg_arena_printf(arena, err, "%s by shape, seed %llu", rg_arg_text(args, "split"),
                                (unsigned long long)rg_arg_seed(args))};
        if (!provenance.data || !provenance.split)
            return RG_ERR_LIMIT;
        const char *into = rg_arg_given(args, "into") ? rg_arg_text(args, "into") : accel->path;
        RG_TRY(rg_fit_store(arena, into, fitted, count, &provenance, err));
        rg_report_text(report, "written", "written into", into);
    }
    return rg_arg_write(args, report, NULL, err);
}

const rg_command rg_cmd_fit = {
    .name = "fit",
    .group = "measure",
    .summary = "constants of the kernel models from measured times",
    .description =
        "Fits the constants of the kernel and collective models to a table of measured times by "
        "robust least squares on the logarithm of predicted over measured. Rows are split by shape "
        "before anything is fitted; errors are given for both parts. A constant that the rows "
        "cannot identify is refused by name; one that ends at a bound is named.\n\n"
        "With --few N, ridge picks the N shapes that determine the constants best (D-optimal on "
        "the sensitivities) and lists them, so that they can be timed on a new device; with "
        "--choose it "
        "only lists them, from any table of candidate shapes.",
    .examples = "ridge fit --hw h200-sxm --measured gemm.csv --write\n"
                "ridge fit --hw a100-sxm-80gb --constants h200-sxm --few 50 --measured gemm.csv\n"
                "ridge fit --hw h200-sxm --measured gemm.csv --split 'regime:m<=256/m>1024'",
    .options = options,
    .run = run};

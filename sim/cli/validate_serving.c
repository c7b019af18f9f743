/* cli/validate_serving.c: the part of ridge validate for runs of whole servers. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/validate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/file.h"
#include "fit/serving.h"

/* Errors of one measure over compared runs of one model (NULL: all). */
static rg_status errors_of(rg_arena *arena, const rg_serving_table *t, const char *model,
                           bool first_token, rg_error_summary *out, rg_err *err)
{
    *out = (rg_error_summary){0};
    double *predicted = RG_NEW(arena, double, 3 * t->count, err);
    if (!predicted)
        return RG_ERR_LIMIT;
    double *measured = predicted + t->count;
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++) {
        const rg_serving_run *r = &t->runs[i];
        if (r->skip != RG_SERVING_COMPARED ||
            (model && (!r->model || strcmp(model, r->model) != 0)))
            continue;
        predicted[n] = first_token ? r->predicted_ttft_s : r->predicted_tpot_s;
        measured[n++] = first_token ? r->ttft_s : r->tpot_s;
    }
    if (n > 0)
        *out = rg_stat_errors(predicted, measured, n, measured + t->count);
    return RG_OK;
}

static rg_status add_groups(rg_arena *arena, rg_report *report, const rg_serving_table *t,
                            rg_err *err)
{
    rg_table *table =
        rg_report_table(report, "groups", "Errors of predicted over measured, runs at like load");
    rg_table_column(table, "op", "measure", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "dtype", "model", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "rows", "runs", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "mean_ape", "mean", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "median_ape", "median", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "p90_ape", "p90", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "bias", "bias", RG_CELL_REAL, RG_DIM_NONE, false);
    for (int first_token = 0; first_token < 2; first_token++)
        for (size_t i = 0; i <= t->count; i++) {
            const char *model = i < t->count ? t->runs[i].model : NULL;
            bool known = false;
            for (size_t j = 0; model && j < i && !known; j++)
                known = t->runs[j].model && strcmp(t->runs[j].model, model) == 0;
            rg_error_summary e;
            if (!known)
                RG_TRY(errors_of(arena, t, model, first_token, &e, err));
            if (known || e.count == 0)
                continue;
            rg_table_text(table, first_token ? "ttft" : "tpot");
            rg_table_text(table, model ? model : "all");
            rg_table_int(table, (long long)e.count);
            rg_table_real(table, e.mean_ape);
            rg_table_real(table, e.median_ape);
            rg_table_real(table, e.p90_ape);
            rg_table_real(table, e.bias);
        }
    return RG_OK;
}

static void add_skipped(rg_report *report, const rg_serving_table *t)
{
    rg_table *table = rg_report_table(report, "skipped", "Runs left out");
    rg_table_column(table, "reason", "reason", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "rows", "runs", RG_CELL_INT, RG_DIM_NONE, false);
    for (int s = RG_SERVING_COMPARED + 1; s < RG_SERVING_SKIP_COUNT; s++) {
        long long rows = 0;
        for (size_t i = 0; i < t->count; i++)
            rows += t->runs[i].skip == (rg_serving_skip)s;
        if (rows == 0)
            continue;
        rg_table_text(table, rg_serving_skip_name((rg_serving_skip)s));
        rg_table_int(table, rows);
    }
}

static void add_unlike(rg_report *report, const rg_serving_table *t, int64_t most)
{
    rg_table *table = rg_report_table(
        report, "unlike", "Runs whose load is not the one predicted: requests that decode at once");
    rg_table_column(table, "line", "line", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "model", "model", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "concurrency", "concurrency", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "measured_decoding", "measured", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "predicted_decoding", "predicted", RG_CELL_REAL, RG_DIM_NONE, false);
    for (size_t i = 0; i < t->count && most > 0; i++) {
        const rg_serving_run *r = &t->runs[i];
        if (r->skip != RG_SERVING_UNLIKE_LOAD)
            continue;
        rg_table_int(table, r->line);
        rg_table_text(table, r->model);
        rg_table_real(table, r->concurrency);
        rg_table_real(table, r->measured_decoding);
        rg_table_real(table, r->predicted_decoding);
        most--;
    }
}

static rg_status write_runs(const rg_serving_table *t, const char *path, rg_err *err)
{
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, err));
    fputs("line,id,model,system,isl,osl,tp,concurrency,ttft_ms,tpot_ms,predicted_ttft_ms,"
          "predicted_tpot_ms,skipped\n",
          file.stream);
    for (size_t i = 0; i < t->count; i++) {
        const rg_serving_run *r = &t->runs[i];
        fprintf(file.stream, "%d,", r->line);
        const char *const names[] = {r->id, r->model, r->system};
        for (int k = 0; k < 3; k++) {
            rg_csv_put(file.stream, names[k]);
            fputc(',', file.stream);
        }
        fprintf(file.stream, "%lld,%lld,%lld,%g,%.6g,%.6g,", (long long)r->isl, (long long)r->osl,
                (long long)r->tp, r->concurrency, 1e3 * r->ttft_s, 1e3 * r->tpot_s);
        if (isfinite(r->predicted_ttft_s))
            fprintf(file.stream, "%.6g", 1e3 * r->predicted_ttft_s);
        fputc(',', file.stream);
        if (isfinite(r->predicted_tpot_s))
            fprintf(file.stream, "%.6g", 1e3 * r->predicted_tpot_s);
        fprintf(file.stream, ",%s\n",
                r->skip == RG_SERVING_COMPARED ? "" : rg_serving_skip_name(r->skip));
    }
    return rg_out_commit(&file, err);
}

rg_status rg_validate_serving(rg_arena *arena, const rg_args *args, const char *path, rg_err *err)
{
    rg_serving_table table;
    RG_TRY(rg_serving_compare(arena, path, &table, err));
    rg_report *report;
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    RG_TRY(rg_report_input(report, "measured", path, err));
    rg_report_assume(report, "closed loop at each run's concurrency; queueing, prefix hits and "
                             "uneven lengths are left out ('ridge serve' has them)");
    RG_TRY(add_groups(arena, report, &table, err));
    rg_report_figure(report, "tpot_rank_correlation",
                     "rank correlation of predicted and measured time per token",
                     rg_serving_rank_correlation(arena, &table, err), RG_DIM_NONE);
    add_skipped(report, &table);
    int64_t worst;
    RG_TRY(rg_arg_int(args, "worst", 0, 1000, &worst, err));
    add_unlike(report, &table, worst);
    if (rg_arg_given(args, "rows"))
        RG_TRY(write_runs(&table, rg_arg_text(args, "rows"), err));
    return rg_arg_write(args, report, "groups", err);
}

/* cli/serve_load.c: latency against load: the same requests at several rates. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "report/plot.h"

enum { MAX_POINTS = 64 };

static rg_status read_factors(rg_serve_job *job, const char *text, double *factors, int *count,
                              rg_err *err)
{
    char *rest = rg_arena_strdup(job->arena, text, err);
    *count = 0;
    for (char *at = rest; at;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = 0;
        double x;
        if (*count == MAX_POINTS || !rg_text_to_real(at, &x) || !(x > 0 && x <= 1e6))
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "'%.60s' is not a factor of the load; write up to %d of them, such as "
                           "0.5,1,1.5,2",
                           at, MAX_POINTS);
        factors[(*count)++] = x;
        at = comma ? comma + 1 : NULL;
    }
    return *count > 0 ? RG_OK : RG_ERR_USAGE;
}

static void columns(rg_table *t)
{
    rg_table_column(t, "load", "load", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "served_requests_per_s", "served", RG_CELL_REAL, RG_DIM_PER_SECOND, false);
    rg_table_column(t, "goodput_requests_per_s", "goodput", RG_CELL_REAL, RG_DIM_PER_SECOND, false);
    rg_table_column(t, "output_tokens_per_s", "tokens", RG_CELL_REAL, RG_DIM_PER_SECOND, false);
    rg_table_column(t, "ttft_p50_s", "TTFT p50", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "ttft_p99_s", "p99", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "tpot_p50_s", "TPOT p50", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "tpot_p99_s", "p99", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "e2e_p50_s", "whole p50", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "kv_use_share", "KV use", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "preemptions", "preempted", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "overloaded", "overloaded", RG_CELL_BOOL, RG_DIM_NONE, false);
}

static void point(rg_table *t, FILE *data, double factor, rg_serve_result *r)
{
    const rg_sample_summary ttft = rg_sample_summarise(&r->ttft),
                            tpot = rg_sample_summarise(&r->tpot_excl_first),
                            e2e = rg_sample_summarise(&r->e2e);
    const double served = (double)r->finished / r->makespan_s;
    const bool over = rg_serve_overloaded(r);
    rg_table_real(t, factor);
    rg_table_real(t, served);
    rg_table_real(t, (double)r->good / r->makespan_s);
    rg_table_real(t, (double)r->output_tokens / r->makespan_s);
    rg_table_real(t, ttft.p50);
    rg_table_real(t, ttft.p99);
    rg_table_real(t, tpot.p50);
    rg_table_real(t, tpot.p99);
    rg_table_real(t, e2e.p50);
    rg_table_real(t, r->kv_blocks > 1 ? r->kv_time / r->busy_s / (double)(r->kv_blocks - 1) : NAN);
    rg_table_int(t, r->preemptions);
    rg_table_bool(t, over);
    if (data)
        fprintf(data, "%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%d\n", served, ttft.p50, ttft.p99,
                isfinite(tpot.p50) ? tpot.p50 : 0, isfinite(tpot.p99) ? tpot.p99 : 0, e2e.p50,
                (double)r->good / r->makespan_s, over);
}

rg_status rg_serve_job_load(rg_serve_job *job, rg_err *err)
{
    rg_pos pos;
    double factors[MAX_POINTS], least = 0, most = 0, fastest = 0, slowest = 0;
    int count;
    const rg_lookup from = rg_setting_lookup(&job->settings);
    RG_TRY(rg_lookup_placed(
        read_factors(job, rg_setting(&job->settings, "load", &pos), factors, &count, err), &from,
        "load", err));
    const char *path = rg_setting(&job->settings, "plot-load", &pos);
    rg_plot *plot = NULL;
    FILE *data = NULL;
    if (path) {
        RG_TRY(rg_plot_new(job->arena, "serve_load", path, &plot, err));
        RG_TRY(rg_plot_data(plot, "load", &data, err));
        fputs("served,ttft_p50,ttft_p99,tpot_p50,tpot_p99,e2e_p50,goodput,overloaded\n", data);
    }
    rg_table *table = rg_report_table(job->report, "points", "Latency against load");
    columns(table);
    for (int i = 0; i < count; i++) {
        rg_serve_result result;
        RG_TRY(rg_serve_job_stream(job, err));
        RG_TRY(rg_requests_scale_time(job->arena, job->stream, factors[i], &job->stream, err));
        const rg_status status =
            rg_serve_run(job->arena, &job->deployment, job->stream, &job->goals, NULL,
                         rg_arg_seed(job->settings.args), &result, err);
        rg_requests_close(job->stream);
        RG_TRY(status);
        if (result.finished == 0)
            return rg_fail(err, RG_ERR_NO, RG_NOWHERE, "no request was served at load %g",
                           factors[i]);
        point(table, data, factors[i], &result);
        const double each = rg_sample_summarise(&result.tpot_excl_first).p50;
        if (i == 0 || factors[i] < least) {
            least = factors[i];
            fastest = each;
        }
        if (i == 0 || factors[i] > most) {
            most = factors[i];
            slowest = each;
        }
    }
    if (most > least && slowest <= fastest * (1.0 + 1e-9))
        rg_report_assume(job->report,
                         "the time of a token at load %g is no longer than at %g: these loads say "
                         "nothing about speed per user against throughput",
                         most, least);
    if (!plot)
        return RG_OK;
    RG_TRY(rg_plot_write(plot, err));
    rg_report_image(job->report, path, "Latency against load");
    return RG_OK;
}

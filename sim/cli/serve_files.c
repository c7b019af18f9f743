/* cli/serve_files.c: what serve writes beside its report: one row a request, the time line,
 * figures.
 */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "report/plot.h"

enum { PLOT_POINTS = 2000 };

struct rg_serve_files {
    rg_serve_job *job;
    rg_out_file requests, timeline, series;
    bool with_requests, with_timeline, with_series, first_event;
    rg_plot *cdf, *kv;
    FILE *cdf_data, *kv_data;
    bool tty, shown;
    double started_s, drawn_s; /* by a clock that only the progress line looks at */
    int64_t expected;
};

static void write_request(void *context, const rg_served *s)
{
    rg_serve_files *f = context;
    if (f->with_requests)
        fprintf(f->requests.stream, "%lld,%.9f,%.9f,%.9f,%lld,%lld,%.9f,%lld,%lld,%lld,%d\n",
                (long long)s->index, s->arrival_s, s->first_token_s, s->last_token_s,
                (long long)s->prompt_tokens, (long long)s->output_tokens, s->scheduled_s,
                (long long)s->cached_tokens, (long long)s->preemptions,
                (long long)s->recomputed_tokens, s->replica);
    if (f->with_timeline) {
        /* One lane a request within its replica: queue, prefill, decode. */
        const struct {
            const char *name;
            double from, to;
        } parts[] = {{"queue", s->arrival_s, s->scheduled_s},
                     {"prefill", s->scheduled_s, s->first_token_s},
                     {"decode", s->first_token_s, s->last_token_s}};
        for (int i = 0; i < 3; i++) {
            fprintf(f->timeline.stream,
                    "%s{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%lld,\"ts\":%.3f,\"dur\":%."
                    "3f,\"args\":{\"request\":%lld,\"prompt\":%lld,\"output\":%lld}}",
                    f->first_event ? "\n" : ",\n", parts[i].name, s->replica + 1,
                    (long long)s->index + 1, parts[i].from * 1e6,
                    (parts[i].to - parts[i].from) * 1e6, (long long)s->index,
                    (long long)s->prompt_tokens, (long long)s->output_tokens);
            f->first_event = false;
        }
    }
    if (f->cdf_data) {
        const double output = (double)s->output_tokens;
        fprintf(f->cdf_data, "%.9g,%.9g,%.9g\n", s->first_token_s - s->arrival_s,
                output > 1 ? (s->last_token_s - s->first_token_s) / (output - 1) : 0,
                s->last_token_s - s->arrival_s);
    }
}

static void write_moment(void *context, const rg_moment *m)
{
    rg_serve_files *f = context;
    if (f->with_series)
        fprintf(f->series.stream, "%.9f,%d,%lld,%lld,%lld,%lld,%lld,%lld,%.6f,%.6f\n", m->time_s,
                m->replica, (long long)m->step, (long long)m->running, (long long)m->waiting,
                (long long)m->prefill_tokens, (long long)m->decodes, (long long)m->used_blocks,
                m->internal_fragmentation_ratio, m->external_fragmentation_ratio);
    if (f->with_timeline) {
        fprintf(
            f->timeline.stream,
            "%s{\"name\":\"load\",\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"args\":{\"running\":%lld,"
            "\"waiting\":%lld,\"kv_blocks\":%lld}}",
            f->first_event ? "\n" : ",\n", m->replica + 1, m->time_s * 1e6, (long long)m->running,
            (long long)m->waiting, (long long)m->used_blocks);
        f->first_event = false;
    }
    if (f->kv_data && m->replica == 0)
        fprintf(f->kv_data, "%.9g,%lld,%lld,%lld,%.6g\n", m->time_s, (long long)m->used_blocks,
                (long long)m->running, (long long)m->waiting, m->internal_fragmentation_ratio);
}

static double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show_progress(void *context, double time_s, int64_t finished)
{
    rg_serve_files *f = context;
    if (!f->tty)
        return;
    const double now = clock_s();
    if (now - f->started_s < 1 || now - f->drawn_s < 0.1)
        return;
    f->drawn_s = now;
    f->shown = true;
    if (f->expected > 0)
        fprintf(stderr, "\r%3.0f %%  %lld requests, %.0f s simulated ",
                100.0 * (double)finished / (double)f->expected, (long long)finished, time_s);
    else
        fprintf(stderr, "\r%lld requests, %.0f s simulated ", (long long)finished, time_s);
}

static rg_status open_one(const rg_settings *s, const char *name, const char *header,
                          rg_out_file *file, bool *with, rg_err *err)
{
    rg_pos pos;
    const char *path = rg_setting(s, name, &pos);
    if (!path)
        return RG_OK;
    RG_TRY(rg_out_open(file, path, err));
    *with = true;
    fputs(header, file->stream);
    return RG_OK;
}

static rg_status open_plots(rg_serve_files *f, rg_err *err)
{
    const rg_settings *s = &f->job->settings;
    rg_pos pos;
    const char *path = rg_setting(s, "plot-latency", &pos);
    if (path) {
        RG_TRY(rg_plot_new(f->job->arena, "serve_cdf", path, &f->cdf, err));
        RG_TRY(rg_plot_data(f->cdf, "latency", &f->cdf_data, err));
        fputs("ttft_s,tpot_s,e2e_s\n", f->cdf_data);
    }
    path = rg_setting(s, "plot-kv", &pos);
    if (path) {
        RG_TRY(rg_plot_new(f->job->arena, "serve_kv", path, &f->kv, err));
        RG_TRY(rg_plot_data(f->kv, "kv", &f->kv_data, err));
        fputs("time_s,used_blocks,running,waiting,internal_fragmentation\n", f->kv_data);
        rg_plot_number(f->kv, "kv_blocks", (double)f->job->deployment.rules.blocks);
    }
    return RG_OK;
}

rg_status rg_serve_files_open(rg_serve_job *job, rg_serve_files **out, rg_observer *observer,
                              rg_err *err)
{
    rg_serve_files *f = RG_NEW(job->arena, rg_serve_files, 1, err);
    if (!f)
        return RG_ERR_LIMIT;
    *out = f;
    f->job = job;
    f->first_event = true;
    f->started_s = clock_s();
    f->tty = isatty(STDERR_FILENO) && !rg_arg_flag(job->settings.args, "quiet");
    RG_TRY(rg_setting_int(&job->settings, "limit", 1, INT64_C(1) << 40, &f->expected, err));
    RG_TRY(open_one(&job->settings, "requests",
                    "request_id,arrival_s,first_token_s,last_token_s,input_tokens,output_tokens,"
                    "scheduled_s,cached_tokens,preemptions,recomputed_tokens,replica\n",
                    &f->requests, &f->with_requests, err));
    RG_TRY(open_one(&job->settings, "timeline", "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[",
                    &f->timeline, &f->with_timeline, err));
    RG_TRY(open_one(&job->settings, "series",
                    "time_s,replica,step,running,waiting,prefill_tokens,decodes,used_blocks,"
                    "internal_fragmentation,external_fragmentation\n",
                    &f->series, &f->with_series, err));
    RG_TRY(open_plots(f, err));
    *observer = (rg_observer){.context = f, .progress = show_progress, .moment_interval_s = 1};
    RG_TRY(rg_setting_quantity(&job->settings, "series-interval", RG_DIM_SECONDS,
                               &observer->moment_interval_s, err));
    if (f->with_requests || f->with_timeline || f->cdf_data)
        observer->served = write_request;
    if (f->with_series || f->with_timeline || f->kv_data)
        observer->moment = write_moment;
    return RG_OK;
}

rg_status rg_serve_files_close(rg_serve_files *f, rg_err *err)
{
    if (f->shown)
        fprintf(stderr, "\r%60s\r", "");
    if (f->with_requests)
        RG_TRY(rg_out_commit(&f->requests, err));
    if (f->with_timeline) {
        fputs("\n]}\n", f->timeline.stream);
        RG_TRY(rg_out_commit(&f->timeline, err));
    }
    if (f->with_series)
        RG_TRY(rg_out_commit(&f->series, err));
    if (f->cdf)
        RG_TRY(rg_plot_write(f->cdf, err));
    if (f->kv)
        RG_TRY(rg_plot_write(f->kv, err));
    return RG_OK;
}

void rg_serve_files_show(const rg_serve_files *f)
{
    const rg_settings *s = &f->job->settings;
    rg_pos pos;
    if (f->cdf)
        rg_report_image(f->job->report, rg_setting(s, "plot-latency", &pos), "Requests by latency");
    if (f->kv)
        rg_report_image(f->job->report, rg_setting(s, "plot-kv", &pos),
                        "KV memory and requests over time");
}

void rg_serve_files_abandon(rg_serve_files *f)
{
    if (!f)
        return;
    if (f->with_requests)
        rg_out_abandon(&f->requests);
    if (f->with_timeline)
        rg_out_abandon(&f->timeline);
    if (f->with_series)
        rg_out_abandon(&f->series);
}

/* cli/guard_print.c: the report of `ridge guard`, and the figure of its history. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/guard_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/plot.h"

rg_verdict *rg_guard_verdict_of(rg_guard_job *j, const rg_history_series *s)
{
    for (int i = 0; i < j->result.count; i++) {
        rg_verdict *v = &j->result.items[i];
        if (strcmp(v->kernel, s->kernel) == 0 && strcmp(v->problem, s->problem) == 0 &&
            strcmp(v->dtype, s->dtype) == 0)
            return v;
    }
    return NULL;
}

static void rg_guard_report_history(rg_guard_job *j)
{
    if (j->history == NULL)
        return;
    rg_table *t = rg_report_table(j->report, "changes", "Changes in the history");
    rg_table_column(t, "kernel", "kernel", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "problem", "problem", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "dtype", "type", RG_CELL_TEXT, RG_DIM_NONE, true);
    rg_table_column(t, "since", "since", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "change", "change", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "change_ratio", "", RG_CELL_REAL, RG_DIM_NONE, true);
    for (int i = 0; i < j->series_count; i++) {
        const rg_history_series *s = &j->series[i];
        for (int k = 0; k < s->change_count; k++) {
            char text[32];
            snprintf(text, sizeof text, "%+.1f %%", 100 * (s->changes[k].ratio - 1));
            rg_table_text(t, s->kernel);
            rg_table_text(t, s->problem);
            rg_table_text(t, s->dtype);
            rg_table_text(t, s->points[s->changes[k].at].label);
            rg_table_text(t, text);
            rg_table_real(t, s->changes[k].ratio - 1);
        }
    }
}

rg_status rg_guard_trend(rg_guard_job *j)
{
    enum { LINES = 6 };
    const char *path = rg_arg_text(j->args, "trend");
    if (path == NULL)
        return RG_OK;
    if (j->history == NULL)
        return rg_fail(j->err, RG_ERR_USAGE, RG_NOWHERE,
                       "--trend draws a history; give --history FILE");
    rg_plot *plot;
    FILE *data;
    RG_TRY(rg_plot_new(j->arena, "trend", path, &plot, j->err));
    RG_TRY(rg_plot_data(plot, "trend", &data, j->err));
    fprintf(data, "series,run,label,relative,throttled\n");
    int lines = 0, runs = 0;
    double most = 0.0;
    for (int i = 0; i < j->result.count && lines < LINES; i++) { /* worst first */
        for (int k = 0; k < j->series_count; k++) {
            const rg_history_series *s = &j->series[k];
            if (rg_guard_verdict_of(j, s) != &j->result.items[i] || s->count == 0)
                continue;
            double least = INFINITY;
            for (int n = 0; n < s->count; n++)
                if (!s->points[n].throttled && s->points[n].centre < least)
                    least = s->points[n].centre;
            if (!isfinite(least))
                continue;
            for (int n = 0; n < s->count; n++) {
                fprintf(data, "%d,%d,\"", lines, n + 1);
                for (const char *p = s->points[n].label; *p != '\0'; p++)
                    fputc(*p == '"' || *p == '\n' ? '\'' : *p, data);
                fprintf(data, "\",%.6f,%d\n", s->points[n].centre / least, s->points[n].throttled);
                most = fmax(most, s->points[n].centre / least - 1.0);
            }
            runs = s->count > runs ? s->count : runs;
            char name[32];
            snprintf(name, sizeof name, "name%d", lines++);
            rg_plot_text(plot, name, "%s%s%s", s->kernel, s->problem[0] ? " " : "", s->problem);
        }
    }
    rg_plot_number(plot, "lines", lines);
    rg_plot_number(plot, "runs", runs);
    rg_plot_number(plot, "most", most);
    if (lines == 0)
        return rg_fail(j->err, RG_ERR_INPUT, RG_NOWHERE, "the history has no run to draw");
    RG_TRY(rg_plot_write(plot, j->err));
    rg_report_image(j->report, path, "Course of the kernels over the runs");
    return RG_OK;
}

static void rg_percent(double ratio, char *out, size_t size)
{
    if (isfinite(ratio))
        snprintf(out, size, "%+.1f %%", fabs(ratio) < 5e-4 ? 0 : 100 * ratio);
    else
        snprintf(out, size, "-");
}

/* Rates stand in the table where the run holds nothing else. */
static rg_dim rg_guard_rate_dim(const rg_guard_result *r)
{
    const char *unit = r->count > 0 ? r->items[0].rate_unit : NULL;
    for (int i = 0; unit != NULL && i < r->count; i++)
        if (r->items[i].rate_unit == NULL || strcmp(r->items[i].rate_unit, unit) != 0)
            return RG_DIM_NONE;
    return unit == NULL                  ? RG_DIM_NONE
           : strcmp(unit, "FLOP/s") == 0 ? RG_DIM_FLOPS_PER_S
           : strcmp(unit, "byte/s") == 0 ? RG_DIM_BYTES_PER_S
                                         : RG_DIM_NONE;
}

static void rg_guard_columns(rg_table *t, rg_dim rate)
{
    rg_table_column(t, "verdict", "verdict", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "kernel", "kernel", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "problem", "problem", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "dtype", "type", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "change", "change", RG_CELL_TEXT, RG_DIM_NONE, false);
    const bool rates = rate != RG_DIM_NONE;
    rg_table_column(t, "baseline_s", "baseline", RG_CELL_REAL, RG_DIM_SECONDS, rates);
    rg_table_column(t, "run_s", "run", RG_CELL_REAL, RG_DIM_SECONDS, rates);
    if (rates) {
        const bool flops = rate == RG_DIM_FLOPS_PER_S;
        rg_table_column(t, flops ? "baseline_flops_per_s" : "baseline_bytes_per_s", "baseline",
                        RG_CELL_REAL, rate, false);
        rg_table_column(t, flops ? "run_flops_per_s" : "run_bytes_per_s", "run", RG_CELL_REAL, rate,
                        false);
    }
    rg_table_column(t, "reason", "reason", RG_CELL_TEXT, RG_DIM_NONE, false);
    static const char *const ratios[] = {
        "change_ratio",    "change_low_ratio", "change_high_ratio", "cycles_change_ratio",
        "tolerance_ratio", "noise_ratio",      "p_adjusted",        "efficiency_ratio",
        "bytes_ratio",     "baseline_per_s",   "run_per_s",         "samples",
        "processes",       "registers",        "blocks_per_sm",     NULL};
    for (const char *const *r = ratios; *r != NULL; r++)
        rg_table_column(t, *r, "", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "roofline_s", "", RG_CELL_REAL, RG_DIM_SECONDS, true);
    rg_table_column(t, "spill_bytes", "", RG_CELL_REAL, RG_DIM_BYTES, true);
    rg_table_column(t, "baseline_line", "", RG_CELL_INT, RG_DIM_NONE, true);
    rg_table_column(t, "note", "", RG_CELL_TEXT, RG_DIM_NONE, true);
}

static void rg_guard_row(rg_table *t, const rg_verdict *v, bool rates)
{
    char change[32];
    const bool time = v->rate_unit == NULL;
    const double base = v->has_base ? v->base.centre : NAN, run = v->has_run ? v->run.centre : NAN;
    rg_percent(v->change, change, sizeof change);
    rg_table_text(t, rg_verdict_name(v->kind));
    rg_table_text(t, v->kernel);
    rg_table_text(t, v->problem);
    rg_table_text(t, v->dtype);
    rg_table_text(t, change);
    rg_table_real(t, time ? base : NAN);
    rg_table_real(t, time ? run : NAN);
    if (rates) {
        rg_table_real(t, 1 / base);
        rg_table_real(t, 1 / run);
    }
    rg_table_text(t, v->reason);
    const double reals[] = {v->change,
                            v->change_low,
                            v->change_high,
                            v->cycles_change,
                            v->tolerance,
                            v->noise,
                            v->p_adjusted,
                            v->efficiency,
                            v->bytes_ratio,
                            time ? NAN : 1 / base,
                            time ? NAN : 1 / run,
                            v->has_run ? v->run.count : NAN,
                            v->has_run ? v->run.processes : NAN,
                            v->registers,
                            v->blocks_per_sm,
                            v->roofline_s,
                            v->spill_bytes};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        rg_table_real(t, reals[i]);
    rg_table_int(t, v->base_pos.line);
    rg_table_text(t, v->note == NULL ? "" : v->note);
}

void rg_guard_report(rg_guard_job *j)
{
    const rg_guard_result *r = &j->result;
    char counts[256];
    size_t n = 0;
    json_t *numbers = json_object();
    counts[0] = '\0';
    for (int k = 0; k < RG_VERDICT_KINDS; k++) {
        const char *name = rg_verdict_name((rg_verdict_kind)k);
        json_object_set_new(numbers, name, json_integer(r->counts[k]));
        if (r->counts[k] > 0)
            n += (size_t)snprintf(counts + n, sizeof counts - n, "%s%d %s", n > 0 ? ", " : "",
                                  r->counts[k], name);
    }
    rg_report_json(j->report, "counts", numbers);
    rg_report_json(j->report, "alike_slowdown_ratio",
                   isnan(r->alike) ? json_null() : json_real(r->alike));
    rg_report_line(j->report, "%s: %s%s",
                   r->counts[RG_REGRESSED] > 0 ? "Regressed"
                   : r->counts[RG_INCOMPARABLE] + r->counts[RG_MISSING] > 0
                       ? "No regression seen, but not all could be compared"
                       : "No regression",
                   counts[0] ? counts : "nothing to judge",
                   isnan(r->alike) ? "" : ", all alike: possibly the machine, see below");
    if (j->run != NULL) {
        json_t *clock = json_object();
        json_object_set_new(clock, "state",
                            j->run->clocks[0] ? json_string(j->run->clocks) : json_null());
        rg_report_json(j->report, "clock", clock);
        rg_report_line(j->report, "Measured by %s on %s%s%s; clocks %s", j->run->tool,
                       j->run->device[0] ? j->run->device : "an unnamed device",
                       j->run->driver[0] ? ", driver " : "", j->run->driver,
                       j->run->clocks[0] ? j->run->clocks : "not recorded");
        for (int i = 0; i < j->run->note_count; i++)
            rg_report_assume(j->report, "%s", j->run->notes[i]);
    }
    for (int i = 0; i < r->warning_count; i++)
        rg_report_assume(j->report, "%s", r->warnings[i]);
    rg_report_line(j->report, "%s", "");
    rg_table *t = rg_report_table(j->report, "verdicts", "Verdicts, worst first");
    const rg_dim rate = rg_guard_rate_dim(r);
    rg_guard_columns(t, rate);
    for (int i = 0; i < r->count; i++)
        rg_guard_row(t, &r->items[i], rate != RG_DIM_NONE);
    rg_guard_report_history(j);
}

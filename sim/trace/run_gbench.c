/* trace/run_gbench.c: JSON of Google Benchmark, pytest-benchmark and hyperfine.
 *
 * Google Benchmark: rows of run_type "iteration" are the repetitions (samples); "aggregate" rows
 * (mean, median, stddev, cv; older files by the suffix of the name) are used where
 * --benchmark_report_aggregates_only left nothing else. real_time is in time_unit. Rows of
 * error_occurred or skipped are unusable with their message. Fitted complexity rows (BigO, RMS) are
 * no measurements.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

static bool rg_gbench_ends(const char *name, const char *ending, size_t *stem)
{
    const size_t n = strlen(name), m = strlen(ending);
    if (n <= m || strcmp(name + n - m, ending) != 0)
        return false;
    *stem = n - m;
    return true;
}

/* Name of the aggregate, NULL for a repetition; *stem is the length of the run's own name. */
static const char *rg_gbench_aggregate(rg_node *row, const char *name, size_t *stem)
{
    static const char *const suffixes[] = {"_mean", "_median", "_stddev", "_cv", "_BigO",
                                           "_RMS",  "_min",    "_max",    NULL};
    *stem = strlen(name);
    const char *type = rg_json_text(row, "run_type"), *own = rg_json_text(row, "aggregate_name");
    if (strcmp(type, "iteration") == 0)
        return NULL;
    for (const char *const *s = suffixes; *s != NULL; s++)
        if (rg_gbench_ends(name, *s, stem))
            return own[0] != '\0' ? own : *s + 1;
    *stem = strlen(name);
    return own[0] != '\0' ? own : NULL;
}

static rg_status rg_gbench_entry(rg_reader *r, rg_node *row, const char *name, size_t stem,
                                 rg_run_entry **out, rg_err *err)
{
    const char *run_name = rg_json_text(row, "run_name");
    char *full = run_name[0] != '\0' ? rg_arena_strdup(r->arena, run_name, err)
                                     : rg_arena_copy(r->arena, name, stem, err);
    if (full == NULL)
        return RG_ERR_LIMIT;
    char *repeats = strstr(full, "/repeats:");
    if (repeats != NULL && strchr(repeats + 1, '/') == NULL)
        *repeats = '\0';
    /* "BM_gemm<float>/1024/1024/manual_time": the kernel up to the first slash outside <>. */
    int depth = 0;
    char *slash = full;
    for (; *slash != '\0' && !(*slash == '/' && depth == 0); slash++)
        depth += (*slash == '<') - (*slash == '>' && depth > 0);
    const char *problem = "";
    if (*slash == '/') {
        *slash = '\0';
        problem = slash + 1;
    }
    return rg_reader_entry(r, full, problem, "", row->pos, out, err);
}

static void rg_gbench_counters(rg_node *row, double seconds, rg_run_entry *e)
{
    const double bytes = rg_json_number(row, "bytes_per_second");
    if (!isnan(bytes))
        e->model_bytes = bytes * seconds;
    static const struct {
        const char *key;
        double factor;
    } rates[] = {{"FLOPS", 1},     {"FLOP/s", 1},    {"flops", 1},     {"GFLOPS", 1e9},
                 {"GFLOP/s", 1e9}, {"TFLOPS", 1e12}, {"TFLOP/s", 1e12}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        const double rate = rg_json_number(row, rates[i].key);
        if (!isnan(rate))
            e->flops = rate * rates[i].factor * seconds;
    }
}

static void rg_gbench_summary(const char *aggregate, double seconds, double raw, rg_run_entry *e)
{
    if (strcmp(aggregate, "mean") == 0)
        e->mean = seconds;
    else if (strcmp(aggregate, "median") == 0)
        e->median = seconds;
    else if (strcmp(aggregate, "stddev") == 0)
        e->deviation = seconds;
    else if (strcmp(aggregate, "min") == 0)
        e->least = seconds;
    else if (strcmp(aggregate, "max") == 0)
        e->most = seconds;
    else if (strcmp(aggregate, "cv") == 0 && isnan(e->deviation) && !isnan(e->mean))
        e->deviation = raw * e->mean;
}

static rg_status rg_gbench_row(rg_reader *r, rg_node *row, rg_err *err)
{
    RG_TRY(rg_node_expect(row, RG_NODE_MAP, "benchmark", err));
    const char *name = rg_json_text(row, "name");
    size_t stem;
    const char *aggregate = rg_gbench_aggregate(row, name, &stem);
    if (aggregate != NULL && (strcmp(aggregate, "BigO") == 0 || strcmp(aggregate, "RMS") == 0))
        return RG_OK;
    rg_run_entry *e;
    RG_TRY(rg_gbench_entry(r, row, name, stem, &e, err));
    const char *unit = rg_json_text(row, "time_unit");
    double factor = 1e-9;
    if (unit[0] != '\0' && !rg_unit_is_time(unit, &factor))
        return rg_fail(err, RG_ERR_INPUT, row->pos,
                       "time_unit '%s' of '%s' is not known; known are ns, us, ms, s", unit, name);
    if (rg_text_same(rg_json_text(row, "error_occurred"), "true") ||
        rg_text_same(rg_json_text(row, "skipped"), "true")) {
        const char *why = rg_json_text(row, "error_message");
        if (why[0] == '\0')
            why = rg_json_text(row, "skip_message");
        e->unusable = why[0] != '\0' ? why : "the benchmark reported an error";
        e->left_out = rg_text_same(rg_json_text(row, "skipped"), "true");
        return RG_OK;
    }
    const double raw = rg_json_number(row, "real_time"), seconds = raw * factor;
    const double repetitions = rg_json_number(row, "repetitions");
    if (!isnan(repetitions))
        e->count = repetitions;
    else if (aggregate != NULL && rg_json_number(row, "iterations") > 1)
        e->count = rg_json_number(row, "iterations"); /* of an aggregate: the repetitions */
    if (aggregate == NULL) {
        RG_TRY(rg_reader_sample(r, e, seconds, err));
        rg_gbench_counters(row, seconds, e);
    } else {
        rg_gbench_summary(aggregate, seconds, raw, e);
        if (strcmp(aggregate, "mean") == 0 || strcmp(aggregate, "median") == 0)
            rg_gbench_counters(row, seconds, e);
    }
    return RG_OK;
}

/* With repetitions at hand the tool's own aggregates of them are not needed. */
static void rg_gbench_close(rg_run *run)
{
    for (int i = 0; i < run->count; i++) {
        rg_run_entry *e = &run->entries[i];
        if (e->sample_count > 0)
            e->count = e->median = e->mean = e->deviation = e->least = e->most = NAN;
        else if (e->unusable == NULL && isnan(e->median) && isnan(e->mean))
            e->unusable = "neither repetitions nor a mean or median";
    }
}

rg_status rg_run_read_gbench(rg_reader *r, rg_node *root, rg_err *err)
{
    rg_run *run = r->run;
    run->tool = "google-benchmark";
    rg_node *context = rg_json_child(root, "context", RG_NODE_MAP);
    if (context != NULL) {
        static const char *const devices[] = {"device", "gpu", "gpu_name", "device_name", NULL};
        for (const char *const *key = devices; *key != NULL && run->device[0] == '\0'; key++)
            run->device = rg_json_text(context, *key);
        run->driver = rg_json_text(context, "driver");
        run->date = rg_json_text(context, "date");
        run->command = rg_json_text(context, "executable");
        if (rg_text_same(rg_json_text(context, "library_build_type"), "debug"))
            RG_TRY(rg_reader_note(r, err, "the benchmark library is a debug build"));
        if (rg_text_same(rg_json_text(context, "cpu_scaling_enabled"), "true"))
            RG_TRY(rg_reader_note(r, err, "CPU frequency scaling was on: times are noisy"));
    }
    rg_node *rows = rg_json_child(root, "benchmarks", RG_NODE_LIST);
    for (rg_node *row = rows == NULL ? NULL : rows->first; row != NULL; row = row->next)
        RG_TRY(rg_gbench_row(r, row, err));
    rg_gbench_close(run);
    return RG_OK;
}

rg_status rg_run_read_pytest(rg_reader *r, rg_node *root, rg_err *err)
{
    r->run->tool = "pytest-benchmark";
    r->run->date = rg_json_text(root, "datetime");
    rg_node *commit = rg_json_child(root, "commit_info", RG_NODE_MAP);
    if (commit != NULL)
        r->run->commit = rg_json_text(commit, "id");
    rg_node *rows = rg_json_child(root, "benchmarks", RG_NODE_LIST);
    for (rg_node *row = rows == NULL ? NULL : rows->first; row != NULL; row = row->next) {
        RG_TRY(rg_node_expect(row, RG_NODE_MAP, "benchmark", err));
        rg_node *stats = rg_json_child(row, "stats", RG_NODE_MAP);
        const char *name = rg_json_text(row, "fullname");
        rg_run_entry *e;
        RG_TRY(rg_reader_entry(r, name[0] != '\0' ? name : rg_json_text(row, "name"), "", "",
                               row->pos, &e, err));
        rg_node *data = stats == NULL ? NULL : rg_json_child(stats, "data", RG_NODE_LIST);
        for (const rg_node *n = data == NULL ? NULL : data->first; n != NULL; n = n->next) {
            double value = NAN;
            if (n->kind == RG_NODE_SCALAR && !rg_text_to_real(n->text, &value))
                value = NAN;
            RG_TRY(rg_reader_sample(r, e, value, err));
        }
        if (stats != NULL && e->sample_count == 0) {
            e->median = rg_json_number(stats, "median");
            e->mean = rg_json_number(stats, "mean");
            e->q1 = rg_json_number(stats, "q1");
            e->q3 = rg_json_number(stats, "q3");
            e->least = rg_json_number(stats, "min");
            e->most = rg_json_number(stats, "max");
            e->deviation = rg_json_number(stats, "stddev");
            e->count = rg_json_number(stats, "rounds");
        }
        if (e->sample_count == 0 && e->unusable == NULL && !(e->median > 0) && !(e->mean > 0))
            e->unusable = "no statistics";
    }
    return RG_OK;
}

rg_status rg_run_read_hyperfine(rg_reader *r, rg_node *root, rg_err *err)
{
    r->run->tool = "hyperfine";
    rg_node *rows = rg_json_child(root, "results", RG_NODE_LIST);
    for (rg_node *row = rows == NULL ? NULL : rows->first; row != NULL; row = row->next) {
        RG_TRY(rg_node_expect(row, RG_NODE_MAP, "result", err));
        rg_run_entry *e;
        RG_TRY(rg_reader_entry(r, rg_json_text(row, "command"), "", "", row->pos, &e, err));
        rg_node *times = rg_json_child(row, "times", RG_NODE_LIST);
        for (const rg_node *n = times == NULL ? NULL : times->first; n != NULL; n = n->next) {
            double value = NAN;
            if (n->kind == RG_NODE_SCALAR && !rg_text_to_real(n->text, &value))
                value = NAN;
            RG_TRY(rg_reader_sample(r, e, value, err));
            if (e->sample_count > 0) /* each time is a process of its own */
                e->process[e->sample_count - 1] = e->sample_count - 1;
        }
        if (e->sample_count > 0)
            e->processes = e->sample_count;
        else {
            e->median = rg_json_number(row, "median");
            e->mean = rg_json_number(row, "mean");
            e->deviation = rg_json_number(row, "stddev");
            if (e->unusable == NULL && !(e->median > 0) && !(e->mean > 0))
                e->unusable = "neither times nor a mean";
        }
    }
    return RG_OK;
}

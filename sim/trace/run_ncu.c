/* trace/run_ncu.c: Nsight Compute CSV, details page (a row for each metric) and raw page (a column
 * for each metric, units in the second row).
 *
 * Program output and ==PROF== lines may stand before the header and between rows. The locale of the
 * numbers is decided over the whole file. "n/a" is no number. Launches of one kernel with one grid
 * and block are the samples of one entry; ratios are averaged, never summed. ncu flushes caches and
 * holds clocks at base between replays unless told otherwise, so its times stand for a cold cache
 * at base clock and are not to be compared with those of other tools.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct rg_ncu_launch {
    double time_s, cycles, clock_hz, dram_read, dram_write, dram_all;
    double registers, shared_static, shared_dynamic, block_limit, flops, local_spill;
    const char *bad, *bad_value; /* a metric whose value is no measurement; NULL: none */
    int bad_line;
} rg_ncu_launch;

static const rg_ncu_launch rg_ncu_nothing = {.time_s = NAN,
                                             .cycles = NAN,
                                             .clock_hz = NAN,
                                             .dram_read = NAN,
                                             .dram_write = NAN,
                                             .dram_all = NAN,
                                             .registers = NAN,
                                             .shared_static = NAN,
                                             .shared_dynamic = NAN,
                                             .block_limit = NAN,
                                             .flops = NAN,
                                             .local_spill = NAN};

static bool rg_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void rg_plus(double *sum, double value)
{
    *sum = isnan(*sum) ? value : *sum + value;
}

/* Arithmetic of one thread-level or tensor instruction counter; 0 when it is none. Sums only: rates
 * per cycle carry other endings. */
static double rg_ncu_flops_of(const char *metric)
{
    const char *sum = strstr(metric, ".sum");
    if (sum == NULL || sum[4] != '\0')
        return 0;
    if (rg_begins(metric, "sm__ops_path_tensor_src_"))
        return strstr(metric, "sparsity") != NULL ? 0 : 1;
    const char *op = strstr(metric, "sass_thread_inst_executed_op_");
    if (op == NULL)
        return 0;
    op += strlen("sass_thread_inst_executed_op_");
    if (rg_begins(op, "ffma_pred_on") || rg_begins(op, "dfma_pred_on") ||
        rg_begins(op, "hfma_pred_on"))
        return 2;
    if (rg_begins(op, "fadd_pred_on") || rg_begins(op, "fmul_pred_on") ||
        rg_begins(op, "dadd_pred_on") || rg_begins(op, "dmul_pred_on") ||
        rg_begins(op, "hadd_pred_on") || rg_begins(op, "hmul_pred_on"))
        return 1;
    return 0;
}

static bool rg_ncu_is_time(const char *metric)
{
    return strcmp(metric, "gpu__time_duration.sum") == 0 || strcmp(metric, "Duration") == 0 ||
           strcmp(metric, "gpu__time_duration_measured_user.sum") == 0;
}

/* False when the metric is none that is used. */
static bool rg_ncu_metric(rg_ncu_launch *l, const char *metric, double value)
{
    const double flops = rg_ncu_flops_of(metric);
    if (flops > 0)
        rg_plus(&l->flops, flops * value);
    else if (rg_ncu_is_time(metric))
        l->time_s = value;
    else if (strcmp(metric, "Elapsed Cycles") == 0 ||
             strcmp(metric, "sm__cycles_elapsed.max") == 0 ||
             strcmp(metric, "gpc__cycles_elapsed.max") == 0)
        l->cycles = value;
    else if (strcmp(metric, "SM Frequency") == 0 ||
             strcmp(metric, "smsp__cycles_elapsed.avg.per_second") == 0 ||
             strcmp(metric, "sm__cycles_elapsed.avg.per_second") == 0 ||
             strcmp(metric, "gpc__cycles_elapsed.avg.per_second") == 0)
        l->clock_hz = value;
    else if (strcmp(metric, "dram__bytes.sum") == 0)
        l->dram_all = value;
    else if (strcmp(metric, "dram__bytes_read.sum") == 0 ||
             strcmp(metric, "dram__bytes_op_read.sum") == 0 ||
             strcmp(metric, "fbpa__dram_read_bytes.sum") == 0)
        l->dram_read = value;
    else if (strcmp(metric, "dram__bytes_write.sum") == 0 ||
             strcmp(metric, "dram__bytes_op_write.sum") == 0 ||
             strcmp(metric, "fbpa__dram_write_bytes.sum") == 0)
        l->dram_write = value;
    else if (strcmp(metric, "Registers Per Thread") == 0 ||
             strcmp(metric, "launch__registers_per_thread") == 0)
        l->registers = value;
    else if (strcmp(metric, "Static Shared Memory Per Block") == 0 ||
             strcmp(metric, "launch__shared_mem_per_block_static") == 0)
        l->shared_static = value;
    else if (strcmp(metric, "Dynamic Shared Memory Per Block") == 0 ||
             strcmp(metric, "launch__shared_mem_per_block_dynamic") == 0)
        l->shared_dynamic = value;
    else if (rg_begins(metric, "Block Limit ") || rg_begins(metric, "launch__occupancy_limit_"))
        l->block_limit = isnan(l->block_limit) || value < l->block_limit ? value : l->block_limit;
    else
        return false;
    return true;
}

/* Running mean over the launches of an entry that had the value. */
static void rg_ncu_average(double *mean, double value, int launches_before)
{
    if (isnan(value))
        return;
    if (isnan(*mean))
        *mean = value;
    else
        *mean += (value - *mean) / (launches_before + 1);
}

static rg_status rg_ncu_keep(rg_reader *r, const rg_ncu_launch *l, const char *kernel,
                             const char *grid, const char *block, rg_pos pos, rg_err *err)
{
    char problem[256];
    snprintf(problem, sizeof problem, "%s%s%s%s%s", grid[0] ? "grid=" : "", grid,
             grid[0] && block[0] ? " " : "", block[0] ? "block=" : "", block);
    size_t n = 0;
    for (const char *p = problem; *p != '\0'; p++) /* "(256, 1, 1)" as "(256,1,1)" */
        if (!(*p == ' ' && p > problem && p[-1] == ','))
            problem[n++] = *p;
    problem[n] = '\0';
    rg_run_entry *e;
    RG_TRY(rg_reader_entry(r, kernel, problem, "", pos, &e, err));
    const int before = e->sample_count;
    e->cache = "cold";
    if (!isnan(l->time_s))
        RG_TRY(rg_reader_sample(r, e, l->time_s, err));
    else if (e->sample_count == 0 && e->unusable == NULL)
        e->unusable = "no duration among the metrics";
    if (l->bad != NULL)
        RG_TRY(
            rg_reader_refuse(r, e, l->bad, l->bad_value, (rg_pos){r->path, l->bad_line, 1}, err));
    if (e->sample_count > before && !e->refused)
        e->unusable = NULL;
    rg_ncu_average(&e->cycles, l->cycles, before);
    rg_ncu_average(&e->clock_hz, l->clock_hz, before);
    rg_ncu_average(&e->flops, l->flops, before);
    const double dram = isnan(l->dram_all) ? l->dram_read + l->dram_write : l->dram_all;
    rg_ncu_average(&e->dram_bytes, dram, before);
    if (!isnan(l->registers))
        e->registers = l->registers;
    if (!isnan(l->shared_static) || !isnan(l->shared_dynamic))
        e->shared_bytes = (isnan(l->shared_static) ? 0 : l->shared_static) +
                          (isnan(l->shared_dynamic) ? 0 : l->shared_dynamic);
    if (!isnan(l->block_limit))
        e->blocks_per_sm = l->block_limit;
    return RG_OK;
}

typedef struct rg_ncu_columns {
    int id, process, kernel, block, grid, metric, unit, value, last_fixed;
} rg_ncu_columns;

static rg_ncu_columns rg_ncu_find(const rg_row *header)
{
    static const char *const id[] = {"ID", NULL}, *const process[] = {"Process ID", NULL},
                             *const kernel[] = {"Kernel Name", NULL},
                             *const block[] = {"Block Size", "launch__block_size", NULL},
                             *const grid[] = {"Grid Size", "launch__grid_size", NULL},
                             *const metric[] = {"Metric Name", NULL},
                             *const unit[] = {"Metric Unit", NULL},
                             *const value[] = {"Metric Value", "Average", NULL};
    return (rg_ncu_columns){.id = rg_row_find(header, id),
                            .process = rg_row_find(header, process),
                            .kernel = rg_row_find(header, kernel),
                            .block = rg_row_find(header, block),
                            .grid = rg_row_find(header, grid),
                            .metric = rg_row_find(header, metric),
                            .unit = rg_row_find(header, unit),
                            .value = rg_row_find(header, value)};
}

/* What ncu writes where a metric was not collected. */
static bool rg_ncu_absent(const char *text)
{
    return text[0] == '\0' || rg_text_same(text, "n/a") || rg_text_same(text, "(!) n/a");
}

/* A value with its unit into the launch; unknown units of metrics that matter are an error. A
 * metric that is used and has no number for a value, or one under 0, is kept as bad; a time also
 * where it is absent or 0. */
static rg_status rg_ncu_value(rg_reader *r, const rg_locale *locale, rg_ncu_launch *l,
                              const char *metric, const char *unit, const char *text, rg_pos pos,
                              rg_err *err)
{
    double value = 0, factor;
    rg_ncu_launch scratch = rg_ncu_nothing;
    const bool time = rg_ncu_is_time(metric), number = rg_locale_number(locale, text, &value);
    if (!number && !time && rg_ncu_absent(text)) {
        if (text[0] == '\0' && !rg_ncu_metric(&scratch, metric, 1))
            return RG_OK; /* names and such */
        return rg_reader_note(r, err, "metric '%s' is %s where it was asked for", metric,
                              text[0] == '\0' ? "empty" : text);
    }
    if (!number || value < 0 || (time && !(value > 0))) {
        if (l->bad == NULL && rg_ncu_metric(&scratch, metric, 1)) {
            l->bad = metric;
            l->bad_value = text;
            l->bad_line = pos.line;
        }
        return RG_OK; /* else names and such */
    }
    if (!rg_unit_factor(unit, &factor)) {
        if (rg_ncu_is_time(metric))
            return rg_fail(err, RG_ERR_INPUT, pos,
                           "unit '%s' of '%s' is not known; use ns, us, ms, s", unit, metric);
        return RG_OK;
    }
    if (time && unit[0] == '\0') {
        factor = 1e-9;
        RG_TRY(rg_reader_note(
            r, err, "'%s' comes without a unit: taken as ns, the unit of its counter", metric));
    }
    rg_ncu_metric(l, metric, value * factor);
    return RG_OK;
}

static rg_status rg_ncu_details(rg_reader *r, const rg_rows *rows, int header,
                                const rg_ncu_columns *c, rg_err *err)
{
    rg_locale locale = {0};
    for (int i = header + 1; i < rows->count; i++)
        rg_locale_see(&locale, rg_row_get(&rows->items[i], c->value));
    RG_TRY(rg_locale_settle(&locale, (rg_pos){r->path, rows->items[header].line, 1}, err));
    rg_ncu_launch launch = rg_ncu_nothing;
    const rg_row *open = NULL;
    for (int i = header + 1; i <= rows->count; i++) {
        const rg_row *row = i < rows->count ? &rows->items[i] : NULL;
        if (row != NULL &&
            (row->count <= c->kernel || row->count <= c->value || rg_begins(row->field[0], "==")))
            continue; /* program output between rows */
        const bool same = open != NULL && row != NULL &&
                          strcmp(rg_row_get(row, c->id), rg_row_get(open, c->id)) == 0 &&
                          strcmp(rg_row_get(row, c->process), rg_row_get(open, c->process)) == 0 &&
                          strcmp(rg_row_get(row, c->kernel), rg_row_get(open, c->kernel)) == 0 &&
                          strcmp(rg_row_get(row, c->grid), rg_row_get(open, c->grid)) == 0 &&
                          strcmp(rg_row_get(row, c->block), rg_row_get(open, c->block)) == 0;
        if (open != NULL && !same) {
            RG_TRY(rg_ncu_keep(r, &launch, rg_row_get(open, c->kernel), rg_row_get(open, c->grid),
                               rg_row_get(open, c->block), (rg_pos){r->path, open->line, 1}, err));
            launch = rg_ncu_nothing;
        }
        if (row == NULL)
            break;
        if (!same)
            open = row;
        RG_TRY(rg_ncu_value(r, &locale, &launch, rg_row_get(row, c->metric),
                            rg_row_get(row, c->unit), rg_row_get(row, c->value),
                            (rg_pos){r->path, row->line, 1}, err));
    }
    return RG_OK;
}

static rg_status rg_ncu_raw(rg_reader *r, const rg_rows *rows, int header, const rg_ncu_columns *c,
                            rg_err *err)
{
    const rg_row *names = &rows->items[header];
    const rg_row *units = NULL;
    int first = header + 1;
    while (first < rows->count && rows->items[first].count != names->count)
        first++;
    if (first < rows->count && rg_row_get(&rows->items[first], c->id)[0] == '\0')
        units = &rows->items[first++];
    rg_locale locale = {0};
    for (int i = first; i < rows->count; i++)
        for (int k = c->kernel + 1; k < rows->items[i].count; k++)
            if (k != c->block && k != c->grid && rows->items[i].field[k][0] != '(' &&
                strstr(rg_row_get(names, k), "__") != NULL)
                rg_locale_see(&locale, rows->items[i].field[k]);
    RG_TRY(rg_locale_settle(&locale, (rg_pos){r->path, names->line, 1}, err));
    static const char *const device[] = {"device__attribute_display_name", NULL};
    const int device_column = rg_row_find(names, device);
    for (int i = first; i < rows->count; i++) {
        const rg_row *row = &rows->items[i];
        if (row->count != names->count)
            continue;
        const rg_pos pos = {r->path, row->line, 1};
        rg_ncu_launch launch = rg_ncu_nothing;
        for (int k = 0; k < row->count; k++)
            if (strstr(names->field[k], "__") != NULL)
                RG_TRY(rg_ncu_value(r, &locale, &launch, names->field[k],
                                    units == NULL ? "" : rg_row_get(units, k), row->field[k], pos,
                                    err));
        if (r->run->device[0] == '\0' && device_column >= 0)
            r->run->device = rg_row_get(row, device_column);
        RG_TRY(rg_ncu_keep(r, &launch, rg_row_get(row, c->kernel), rg_row_get(row, c->grid),
                           rg_row_get(row, c->block), pos, err));
    }
    return RG_OK;
}

rg_status rg_run_read_ncu(rg_reader *r, const rg_rows *rows, int header, rg_err *err)
{
    r->run->tool = "ncu";
    r->run->clocks = "base";
    const rg_ncu_columns c = rg_ncu_find(&rows->items[header]);
    static const char *const invocations[] = {"Invocations", NULL};
    if (rg_row_find(&rows->items[header], invocations) >= 0)
        RG_TRY(rg_reader_note(r, err,
                              "a summary by kernel: averages over launches, without their spread"));
    RG_TRY(rg_reader_note(r, err,
                          "ncu holds clocks at base and flushes caches unless told otherwise; "
                          "taken as so"));
    if (c.metric >= 0 && c.value >= 0)
        return rg_ncu_details(r, rows, header, &c, err);
    return rg_ncu_raw(r, rows, header, &c, err);
}

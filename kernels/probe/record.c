/* kernels/probe/record.c: writing run records and measured tables.
 *
 * Reads record.h, core/file.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/file.h"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *known(double value) /* negative: unknown */
{
    return value >= 0 ? number(value) : json_null();
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *device_json(const rg_gpu *gpu, const rg_nvml *nvml, bool emulated)
{
    const rg_gpu_figures *f = &gpu->figures;
    char cc[24], driver[24];
    snprintf(cc, sizeof cc, "%d.%d", f->major, f->minor);
    snprintf(driver, sizeof driver, "CUDA %d.%d", gpu->cuda->driver_version / 1000,
             gpu->cuda->driver_version % 1000 / 10);
    json_t *d = json_object();
    set(d, "name", json_string(f->name));
    set(d, "emulated", json_boolean(emulated));
    set(d, "uuid", json_string(f->uuid));
    set(d, "pci", json_string(f->pci));
    set(d, "compute_capability", json_string(cc));
    set(d, "driver", json_string(nvml->driver[0] ? nvml->driver : driver));
    set(d, "cuda_driver_version", json_integer(gpu->cuda->driver_version));
    set(d, "sms", json_integer(f->sms));
    set(d, "default_clock_hz", json_real(1e3 * f->clock_khz));
    set(d, "memory_clock_hz", json_real(1e3 * f->memory_clock_khz));
    set(d, "memory_bus_bits", json_integer(f->bus_bits));
    set(d, "memory_bytes", json_integer(f->memory_bytes));
    set(d, "memory_free_bytes", json_integer(f->memory_free_bytes));
    set(d, "l2_bytes", json_integer(f->l2_bytes));
    set(d, "shared_bytes_per_sm", json_integer(f->shared_per_sm));
    set(d, "registers_per_sm", json_integer(f->registers_per_sm));
    set(d, "ecc", json_boolean(f->ecc));
    set(d, "mig", json_boolean(f->mig || nvml->mig_mode == 1));
    set(d, "mps", json_boolean(f->mps));
    set(d, "power_limit_w", known(nvml->power_limit_w));
    return d;
}

void rg_record_begin(rg_record *record, const rg_gpu *gpu, const rg_nvml *nvml, const char *command,
                     bool emulated)
{
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    record->root = json_object();
    record->kernels = json_array();
    record->not_run = json_array();
    set(record->root, "schema", json_string("ridge.probe/1"));
    set(record->root, "tool", json_string("ridge-probe"));
    set(record->root, "ridge_version", json_string(RG_VERSION));
    set(record->root, "command", json_string(command));
    set(record->root, "date", json_string(date));
    set(record->root, "device", device_json(gpu, nvml, emulated));
    set(record->root, "libraries", json_object());
    json_t *clock = json_object();
    set(clock, "state", json_string("not locked by ridge; effective clock recorded per sample"));
    set(record->root, "clock", clock);
    set(record->root, "kernels", record->kernels);
    set(record->root, "not_run", record->not_run);
}

void rg_record_library(rg_record *record, const char *name, bool available, const char *text)
{
    json_t *library = json_object();
    set(library, "available", json_boolean(available));
    set(library, available ? "version" : "reason", json_string(text));
    set(json_object_get(record->root, "libraries"), name, library);
}

static json_t *problem_json(const rg_problem *problem)
{
    json_t *keys = json_object();
    for (int i = 0; i < problem->key_count; i++)
        set(keys, problem->keys[i].name, json_integer(problem->keys[i].value));
    return keys;
}

static json_t *named(const rg_problem *problem)
{
    char name[128];
    snprintf(name, sizeof name, "%s_%s", problem->kernel, problem->variant);
    json_t *k = json_object();
    set(k, "name", json_string(name));
    set(k, "kernel", json_string(problem->kernel));
    set(k, "variant", json_string(problem->variant));
    set(k, "dtype", json_string(problem->dtype));
    set(k, "problem", problem_json(problem));
    return k;
}

static json_t *state_json(const rg_nvml_state *state)
{
    char throttle[160];
    json_t *s = json_object();
    set(s, "sm_clock_hz", known(state->sm_mhz < 0 ? -1 : 1e6 * state->sm_mhz));
    set(s, "memory_clock_hz", known(state->memory_mhz < 0 ? -1 : 1e6 * state->memory_mhz));
    set(s, "power_w", known(state->power_w));
    set(s, "temperature_c", known(state->temperature_c));
    rg_nvml_throttle_text(state->throttle, throttle, sizeof throttle);
    set(s, "throttle",
        state->throttle_known ? json_string(throttle[0] ? throttle : "none") : json_null());
    return s;
}

static json_t *resources_json(const rg_bench *bench)
{
    json_t *list = json_array();
    for (int i = 0; i < bench->kernel_count; i++) {
        const rg_gpu_kernel *kernel = &bench->kernels[i];
        json_t *r = json_object();
        set(r, "function", json_string(kernel->name));
        set(r, "grid", json_integer(kernel->grid));
        set(r, "threads", json_integer(kernel->threads));
        set(r, "registers", json_integer(kernel->registers));
        set(r, "spill_bytes", json_integer(kernel->local_bytes));
        set(r, "shared_bytes", json_integer(kernel->shared_bytes));
        set(r, "blocks_per_sm", json_integer(kernel->blocks_per_sm));
        set(r, "code_version", json_integer(kernel->binary_version));
        json_array_append_new(list, r);
    }
    return list;
}

static void add_timing(json_t *k, const rg_bench *bench, const rg_timing *t)
{
    json_t *samples = json_array(), *clocks = json_array();
    for (int i = 0; i < t->count; i++) {
        json_array_append_new(samples, json_real(t->samples_us[i]));
        json_array_append_new(clocks,
                              t->clock_mhz[i] > 0 ? json_real(1e6 * t->clock_mhz[i]) : json_null());
    }
    set(k, "samples_us", samples);
    set(k, "samples_clock_hz", clocks);
    set(k, "samples_discarded", json_integer(t->discarded));
    set(k, "launches_per_sample", json_integer(t->launches));
    set(k, "graph", json_boolean(t->graph));
    set(k, "median_us", json_real(t->median_us));
    set(k, "q1_us", json_real(t->q1_us));
    set(k, "q3_us", json_real(t->q3_us));
    set(k, "min_us", json_real(t->min_us));
    const bool clocked = t->median_clock_mhz > 0;
    set(k, "clock_hz", clocked ? json_real(1e6 * t->median_clock_mhz) : json_null());
    set(k, "cycles", clocked ? json_real(t->median_us * t->median_clock_mhz) : json_null());
    set(k, "flops_per_s",
        bench->flops > 0 ? number(bench->flops / t->median_us * 1e6) : json_null());
    set(k, "bytes_per_s",
        bench->bytes > 0 ? number(bench->bytes / t->median_us * 1e6) : json_null());
    set(k, "link_bytes_per_s",
        bench->link_bytes > 0 ? number(bench->link_bytes / t->median_us * 1e6) : json_null());
    set(k, "before", state_json(&t->before));
    set(k, "after", state_json(&t->after));
    char throttle[160];
    rg_nvml_throttle_text(t->before.throttle | t->after.throttle, throttle, sizeof throttle);
    set(k, "throttle",
        t->after.throttle_known ? json_string(throttle[0] ? throttle : "none") : json_null());
}

static void add_counters(json_t *k, const rg_counters *counters, const rg_activity *activity)
{
    json_t *values = json_object();
    if (counters->valid) {
        for (int i = 0; i < counters->count; i++)
            set(values, counters->names[i], number(counters->values[i]));
        set(k, "dram_bytes", number(counters->dram_bytes));
    } else {
        set(k, "dram_bytes", json_null());
        set(k, "counters_missing", json_string(counters->reason));
    }
    set(k, "counters", values);
    if (activity->valid) {
        json_t *a = json_object();
        set(a, "median_us", json_real(activity->median_us));
        set(a, "records", json_integer(activity->count));
        set(a, "dropped", json_integer(activity->dropped));
        set(k, "activity", a);
    } else {
        set(k, "activity", json_null());
        set(k, "activity_missing", json_string(activity->reason));
    }
}

void rg_record_kernel(rg_record *record, const rg_problem *problem, const rg_bench *bench,
                      const rg_timing *timing, bool cold, const rg_counters *counters,
                      const rg_activity *activity)
{
    json_t *k = named(problem);
    set(k, "cache", json_string(cold ? "cold" : "warm"));
    set(k, "buffer_sets", json_integer(bench->sets));
    set(k, "label", bench->label ? json_string(bench->label) : json_null());
    set(k, "flops", json_real(bench->flops));
    set(k, "model_bytes", json_real(bench->bytes));
    set(k, "link_bytes", json_real(bench->link_bytes));
    set(k, "footprint_bytes", json_real(bench->set_bytes));
    add_timing(k, bench, timing);
    add_counters(k, counters, activity);
    set(k, "launches", resources_json(bench));
    if (bench->kernel_count > 0) { /* those of the main kernel at the top as well */
        const rg_gpu_kernel *kernel = &bench->kernels[0];
        set(k, "registers", json_integer(kernel->registers));
        set(k, "spill_bytes", json_integer(kernel->local_bytes));
        set(k, "shared_bytes", json_integer(kernel->shared_bytes));
        set(k, "blocks_per_sm", json_integer(kernel->blocks_per_sm));
    }
    json_array_append_new(record->kernels, k);
}

void rg_record_not_run(rg_record *record, const rg_problem *problem, const char *reason)
{
    json_t *k = named(problem);
    set(k, "reason", json_string(reason));
    json_array_append_new(record->not_run, k);
}

rg_status rg_record_write(const rg_record *record, const char *path, rg_err *err)
{
    const size_t flags = JSON_INDENT(1) | JSON_REAL_PRECISION(12);
    if (strcmp(path, "-") == 0) {
        if (json_dumpf(record->root, stdout, flags) != 0 || putchar('\n') == EOF)
            return rg_fail(err, RG_ERR_IO, RG_NOWHERE, "cannot write the record to stdout");
        return RG_OK;
    }
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, err));
    if (json_dumpf(record->root, file.stream, flags) != 0 || fputc('\n', file.stream) == EOF) {
        rg_out_abandon(&file);
        return rg_fail(err, RG_ERR_IO, RG_NOWHERE, "cannot write '%s'", path);
    }
    return rg_out_commit(&file, err);
}

void rg_record_end(rg_record *record)
{
    json_decref(record->root);
    record->root = NULL;
}

/* Tables of measured times: which columns a family's problems fill. A column is "kernel", "dtype"
 * or a key of the problem; "column=text" is fixed, "column:key" takes a key of another name. Only
 * types (and variants, NULL for all) that mean the same there go in: a table's fp8 product includes
 * its quantisation, and int8 and int4 caches have no name there. */
typedef struct rg_measured_table {
    const char *op, *variant;
    const char *types[3];
    const char *columns[16];
} rg_measured_table;
static const rg_measured_table tables[] = {
    {"gemm", NULL, {"bfloat16"}, {"kernel", "dtype", "m", "n", "k"}},
    {"generation_attention",
     NULL,
     {"bfloat16", "fp8"},
     {"kernel", "q_dtype=bfloat16", "kv_dtype:dtype", "batch", "kv_len", "heads", "kv_heads",
      "head_dim", "window=0"}},
    {"context_attention",
     "causal",
     {"bfloat16"},
     {"kernel", "q_dtype=bfloat16", "kv_dtype:dtype", "batch", "seq", "heads", "kv_heads",
      "head_dim", "window=0"}},
    {"generation_mla", NULL, {"bfloat16", "fp8"}, {"kv_dtype:dtype", "batch", "kv_len", "heads"}},
    {"nccl", NULL, {"half", "int8"}, {"op:variant", "dtype", "ranks", "bytes"}},
    {"custom_allreduce", NULL, {"bfloat16"}, {"dtype", "ranks", "bytes"}},
};

static bool in_table(const rg_measured_table *table, const json_t *kernel)
{
    const rg_family *family = rg_family_find(json_string_value(json_object_get(kernel, "kernel")));
    const char *variant = json_string_value(json_object_get(kernel, "variant"));
    const char *dtype = json_string_value(json_object_get(kernel, "dtype"));
    if (!family || !family->measured_op || strcmp(family->measured_op, table->op) != 0 ||
        (table->variant && strcmp(table->variant, variant) != 0))
        return false;
    const json_t *ragged = json_object_get(json_object_get(kernel, "problem"), "ragged");
    if (ragged && json_integer_value(ragged) != 0)
        return false; /* a table's kv_len is that of every sequence */
    for (int i = 0; i < 3 && table->types[i]; i++)
        if (strcmp(table->types[i], dtype) == 0)
            return true;
    return false;
}

static void print_cell(FILE *out, const char *column, const json_t *kernel)
{
    const char *fixed = strchr(column, '='), *renamed = strchr(column, ':');
    const char *key = renamed ? renamed + 1 : column;
    if (fixed) {
        fputs(fixed + 1, out);
    } else if (strcmp(key, "kernel") == 0) {
        fprintf(out, "%s", json_string_value(json_object_get(kernel, "name")));
    } else if (strcmp(key, "dtype") == 0 || strcmp(key, "variant") == 0) {
        fprintf(out, "%s", json_string_value(json_object_get(kernel, key)));
    } else {
        const json_t *value = json_object_get(json_object_get(kernel, "problem"), key);
        fprintf(out, "%lld", (long long)json_integer_value(value));
    }
}

static void print_table(FILE *out, const rg_record *record, const rg_measured_table *table)
{
    const json_t *device = json_object_get(record->root, "device");
    fprintf(out, "# %s; %s; driver %s; %s; cache state as in the run record\n",
            json_string_value(json_object_get(record->root, "command")),
            json_string_value(json_object_get(device, "name")),
            json_string_value(json_object_get(device, "driver")),
            json_string_value(json_object_get(record->root, "date")));
    for (const char *const *column = table->columns; *column; column++)
        fprintf(out, "%.*s,", (int)strcspn(*column, "=:"), *column);
    fputs("time_us\n", out);
    size_t i = 0;
    json_t *kernel = NULL;
    json_array_foreach(record->kernels, i, kernel)
    {
        if (!in_table(table, kernel))
            continue;
        for (const char *const *column = table->columns; *column; column++) {
            print_cell(out, *column, kernel);
            fputc(',', out);
        }
        fprintf(out, "%.4f\n", json_number_value(json_object_get(kernel, "median_us")));
    }
}

rg_status rg_record_csv(const rg_record *record, const char *folder, rg_err *err)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return rg_fail(err, RG_ERR_IO, RG_NOWHERE, "cannot make folder '%s': %s", folder,
                       strerror(errno));
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        bool any = false;
        size_t i = 0;
        json_t *kernel = NULL;
        json_array_foreach(record->kernels, i, kernel)
        {
            any = any || in_table(&tables[t], kernel);
        }
        if (!any)
            continue;
        char path[4096];
        rg_out_file file;
        snprintf(path, sizeof path, "%s/%s.csv", folder, tables[t].op);
        RG_TRY(rg_out_open(&file, path, err));
        print_table(file.stream, record, &tables[t]);
        RG_TRY(rg_out_commit(&file, err));
    }
    return RG_OK;
}

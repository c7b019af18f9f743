/* trace/run.c: finds the kind of a run record, calls its reader, groups and merges entries. */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "core/stat.h"
#include "core/text.h"
#include "trace/run_reader.h"

enum { RG_RUN_FILE_CAP = 256 << 20, RG_RUN_REFUSALS_NAMED = 1000 };

/* Builder ---------------------------------------------------------------------------------------
 */

static uint64_t rg_key_hash(const char *kernel, const char *problem, const char *dtype)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    const char *part[3] = {kernel, problem, dtype};
    for (int i = 0; i < 3; i++) {
        for (const char *p = part[i]; *p != '\0'; p++)
            h = (h ^ (unsigned char)*p) * 1099511628211u;
        h = (h ^ 0xffu) * 1099511628211u;
    }
    return h;
}

static bool rg_key_same(const rg_run_entry *entry, const char *kernel, const char *problem,
                        const char *dtype)
{
    return strcmp(entry->kernel, kernel) == 0 && strcmp(entry->problem, problem) == 0 &&
           strcmp(entry->dtype, dtype) == 0;
}

static int *rg_index_slot(const rg_reader *r, const char *kernel, const char *problem,
                          const char *dtype)
{
    uint64_t at = rg_key_hash(kernel, problem, dtype);
    for (;; at++) {
        int *slot = &r->index[at & (uint64_t)(r->index_size - 1)];
        if (*slot < 0 || rg_key_same(&r->run->entries[*slot], kernel, problem, dtype))
            return slot;
    }
}

static rg_status rg_index_grow(rg_reader *r, rg_err *err)
{
    r->index_size = r->index_size == 0 ? 256 : 4 * r->index_size;
    r->index = RG_NEW(r->arena, int, r->index_size, err);
    if (r->index == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < r->index_size; i++)
        r->index[i] = -1;
    for (int i = 0; i < r->run->count; i++) {
        const rg_run_entry *e = &r->run->entries[i];
        *rg_index_slot(r, e->kernel, e->problem, e->dtype) = i;
    }
    return RG_OK;
}

static rg_status rg_run_grow(rg_arena *arena, rg_run *run, rg_err *err)
{
    if (run->count < run->capacity)
        return RG_OK;
    const int capacity = run->capacity == 0 ? 32 : 2 * run->capacity;
    rg_run_entry *grown = RG_NEW(arena, rg_run_entry, capacity, err);
    if (grown == NULL)
        return RG_ERR_LIMIT;
    if (run->count > 0)
        memcpy(grown, run->entries, (size_t)run->count * sizeof *grown);
    run->entries = grown;
    run->capacity = capacity;
    return RG_OK;
}

rg_status rg_reader_entry(rg_reader *r, const char *kernel, const char *problem, const char *dtype,
                          rg_pos pos, rg_run_entry **out, rg_err *err)
{
    if (kernel[0] == '\0')
        return rg_fail(err, RG_ERR_INPUT, pos, "an entry without the name of its kernel");
    if (2 * r->run->count >= r->index_size)
        RG_TRY(rg_index_grow(r, err));
    int *slot = rg_index_slot(r, kernel, problem, dtype);
    if (*slot >= 0) {
        *out = &r->run->entries[*slot];
        return RG_OK;
    }
    RG_TRY(rg_run_grow(r->arena, r->run, err));
    rg_run_entry *e = &r->run->entries[r->run->count];
    *e = (rg_run_entry){.cache = "", .pos = pos, .processes = 1};
    e->kernel = rg_arena_strdup(r->arena, kernel, err);
    e->problem = rg_arena_strdup(r->arena, problem, err);
    e->dtype = rg_arena_strdup(r->arena, dtype, err);
    if (e->kernel == NULL || e->problem == NULL || e->dtype == NULL)
        return RG_ERR_LIMIT;
    e->count = e->median = e->mean = e->q1 = e->q3 = e->least = e->most = e->deviation = NAN;
    e->clock_hz = e->cycles = e->flops = e->model_bytes = e->dram_bytes = NAN;
    e->registers = e->spill_bytes = e->shared_bytes = e->blocks_per_sm = e->rank_count = NAN;
    *slot = r->run->count++;
    *out = e;
    return RG_OK;
}

static rg_status rg_entry_sample(rg_arena *arena, rg_run_entry *e, double cost, int process,
                                 rg_err *err)
{
    if (e->sample_count == e->sample_capacity) {
        const int capacity = e->sample_capacity == 0 ? 16 : 2 * e->sample_capacity;
        double *samples = RG_NEW(arena, double, capacity, err);
        int *from = RG_NEW(arena, int, capacity, err);
        if (samples == NULL || from == NULL)
            return RG_ERR_LIMIT;
        if (e->sample_count > 0) {
            memcpy(samples, e->samples, (size_t)e->sample_count * sizeof *samples);
            memcpy(from, e->process, (size_t)e->sample_count * sizeof *from);
        }
        e->samples = samples;
        e->process = from;
        e->sample_capacity = capacity;
    }
    e->samples[e->sample_count] = cost;
    e->process[e->sample_count++] = process;
    return RG_OK;
}

static const char rg_bad_sample[] = "a sample is not a positive number";

rg_status rg_reader_sample(rg_reader *r, rg_run_entry *entry, double cost, rg_err *err)
{
    if (!(isfinite(cost) && cost > 0)) {
        entry->refused = true;
        if (entry->unusable == NULL)
            entry->unusable = rg_bad_sample;
        return RG_OK;
    }
    return rg_entry_sample(r->arena, entry, cost, 0, err);
}

rg_status rg_reader_refuse(rg_reader *r, rg_run_entry *entry, const char *what, const char *value,
                           rg_pos pos, rg_err *err)
{
    const char *why = rg_arena_printf(r->arena, err, "%s '%.40s' is no measurement", what, value);
    if (why == NULL)
        return RG_ERR_LIMIT;
    if (!entry->refused)
        entry->unusable = why;
    entry->refused = true;
    if (++r->refusals > RG_RUN_REFUSALS_NAMED)
        return RG_OK;
    char column[16] = "";
    if (pos.column > 1) /* of lines that are no table of fixed places only the line is known */
        snprintf(column, sizeof column, ":%d", pos.column);
    return rg_reader_note(r, err, "%.200s:%d%s: %.80s%s%.80s: %s", r->path, pos.line, column,
                          entry->kernel, entry->problem[0] ? " " : "", entry->problem, why);
}

rg_status rg_reader_note(rg_reader *r, rg_err *err, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rg_run *run = r->run;
    for (int i = 0; i < run->note_count; i++)
        if (strcmp(run->notes[i], text) == 0)
            return RG_OK;
    if (run->note_count == run->note_capacity) {
        const int capacity = run->note_capacity == 0 ? 8 : 2 * run->note_capacity;
        const char **grown = RG_NEW(r->arena, const char *, capacity, err);
        if (grown == NULL)
            return RG_ERR_LIMIT;
        if (run->note_count > 0)
            memcpy(grown, run->notes, (size_t)run->note_count * sizeof *grown);
        run->notes = grown;
        run->note_capacity = capacity;
    }
    run->notes[run->note_count] = rg_arena_strdup(r->arena, text, err);
    return run->notes[run->note_count++] == NULL ? RG_ERR_LIMIT : RG_OK;
}

/* Which kind ------------------------------------------------------------------------------------
 */

static bool rg_list_of_maps(rg_node *node)
{
    return node != NULL && node->kind == RG_NODE_LIST &&
           (node->first == NULL || node->first->kind == RG_NODE_MAP);
}

static rg_status rg_read_json(rg_reader *r, const char *text, size_t length, rg_err *err)
{
    rg_node *root;
    RG_TRY(rg_doc_parse(r->arena, r->path, text, length, true, &root, err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "run record", err));
    const char *schema = rg_json_text(root, "schema");
    rg_node *benchmarks = rg_map_find(root, "benchmarks");
    rg_node *results = rg_map_find(root, "results");
    if (strncmp(schema, "ridge.probe/", 12) == 0 || rg_list_of_maps(rg_map_find(root, "kernels")))
        return rg_run_read_probe(r, root, err);
    if (rg_list_of_maps(benchmarks) || (benchmarks != NULL && rg_node_is_null(benchmarks))) {
        if (rg_map_find(root, "machine_info") != NULL)
            return rg_run_read_pytest(r, root, err);
        if (rg_map_find(root, "context") != NULL)
            return rg_run_read_gbench(r, root, err);
        rg_node *first = benchmarks->first;
        if (rg_map_find(root, "devices") != NULL ||
            (first != NULL && rg_map_find(first, "states") != NULL))
            return rg_run_read_nvbench(r, root, err);
        return rg_run_read_gbench(r, root, err);
    }
    if (rg_map_find(root, "traceEvents") != NULL)
        return rg_run_read_kineto(r, root, err);
    if (rg_map_find(root, "output_throughput") != NULL || rg_map_find(root, "mean_ttft_ms") != NULL)
        return rg_run_read_vllm(r, root, err);
    rg_node *result = rg_list_of_maps(results) ? results->first : NULL;
    if (result != NULL && rg_map_find(result, "command") != NULL)
        return rg_run_read_hyperfine(r, root, err);
    if (rg_list_of_maps(results) &&
        (rg_map_find(root, "config") != NULL || rg_map_find(root, "args") != NULL ||
         (result != NULL && (rg_map_find(result, "out_of_place") != NULL ||
                             rg_map_find(result, "in_place") != NULL))))
        return rg_run_read_nccl_json(r, root, err);
    return rg_fail(
        err, RG_ERR_INPUT, root->pos,
        "JSON of no known kind; known are run records of ridge-probe ('schema'), nvbench "
        "and Google Benchmark ('benchmarks'), nccl-tests and hyperfine ('results'), "
        "the PyTorch profiler ('traceEvents') and serving benchmarks ('output_throughput')");
}

static const char *const rg_ncu_marks[] = {"Kernel Name", NULL};
static const char *const rg_nsys_marks[] = {"Total Time (ns)", "Total Time",     "Total Time (us)",
                                            "Total Time (ms)", "Total Time (s)", NULL};
static const char *const rg_nsys_trace_marks[] = {"Duration (ns)", "Duration (us)", "Duration (ms)",
                                                  "Duration (s)",  "Duration",      NULL};
static const char *const rg_rocprof_marks[] = {"KernelName", "Kernel_Name", "TotalDurationNs",
                                               "Total_Duration(ns)", NULL};

/* Header of a table that a tool wrote; -1. Program output may stand before it. */
static int rg_find_header(const rg_rows *rows, const char *const *marks, const char *also)
{
    const char *const second[] = {also, NULL};
    for (int i = 0; i < rows->count; i++)
        if (rows->items[i].count >= 3 && rg_row_find(&rows->items[i], marks) >= 0 &&
            (also == NULL || rg_row_find(&rows->items[i], second) >= 0))
            return i;
    return -1;
}

static bool rg_looks_nccl(const char *text, size_t length)
{
    (void)length;
    return strstr(text, "algbw") != NULL && strstr(text, "busbw") != NULL;
}

/* Delimiter of the most likely header: the one that the first lines have most of. */
static char rg_guess_delimiter(const char *text, size_t length)
{
    size_t comma = 0, semicolon = 0, tab = 0;
    for (size_t i = 0; i < length && i < 4096; i++) {
        comma += text[i] == ',';
        semicolon += text[i] == ';';
        tab += text[i] == '\t';
    }
    if (semicolon > 2 && semicolon >= comma)
        return ';';
    return tab > comma && tab > 2 ? '\t' : ',';
}

/* Rows from the line of the first known header on, so that quotes in program output before it
 * cannot swallow it. */
static rg_status rg_read_delimited(rg_reader *r, const char *text, size_t length, rg_err *err)
{
    static const char *const starts[] = {
        "\"ID\",",     "ID,",      "\"Time (%)\"",       "Time (%)",  "Time(%)",
        "\"Time(%)\"", "Start (",  "\"Start (",          "Index,",    "\"Index\"",
        "Dispatch_ID", "\"Kind\"", "\"Correlation_Id\"", "\"Name\",", NULL};
    size_t from = 0;
    int line = 1;
    for (size_t i = 0, at_line = 1; i < length;) {
        bool found = false;
        for (const char *const *s = starts; *s != NULL && !found; s++)
            found = strncmp(text + i, *s, strlen(*s)) == 0;
        if (found) {
            from = i;
            line = (int)at_line;
            break;
        }
        const char *end = memchr(text + i, '\n', length - i);
        if (end == NULL)
            break;
        i = (size_t)(end - text) + 1;
        at_line++;
    }
    rg_rows rows;
    RG_TRY(rg_rows_split(r->arena, r->path, text + from, length - from,
                         rg_guess_delimiter(text + from, length - from), line, &rows, err));
    int header = rg_find_header(&rows, rg_ncu_marks, "Process ID");
    if (header >= 0)
        return rg_run_read_ncu(r, &rows, header, err);
    static const char *const instances[] = {"Instances", NULL};
    header = rg_find_header(&rows, instances, "Name"); /* the kernel report, if there are several */
    if (header >= 0 && rg_row_find(&rows.items[header], rg_nsys_marks) < 0)
        header = -1;
    if (header < 0)
        header = rg_find_header(&rows, rg_nsys_marks, "Name");
    if (header < 0)
        header = rg_find_header(&rows, rg_nsys_marks, "Operation");
    if (header < 0)
        header = rg_find_header(&rows, rg_nsys_trace_marks, "Name");
    if (header >= 0)
        return rg_run_read_nsys(r, &rows, header, err);
    static const char *const metric[] = {"Metric", NULL};
    header = rg_find_header(&rows, metric, "avg");
    if (header >= 0)
        return rg_run_read_genai(r, &rows, header, err);
    header = rg_find_header(&rows, rg_rocprof_marks, NULL);
    if (header >= 0)
        return rg_run_read_rocprof(r, &rows, header, err);
    for (header = 0; header < rows.count; header++)
        if (rows.items[header].count >= 2 && rows.items[header].field[0][0] != '#')
            return rg_run_read_table(r, &rows, header, err);
    return rg_fail(err, RG_ERR_INPUT, (rg_pos){r->path, 1, 1},
                   "no run record: neither JSON, nor an nccl-tests log, nor a table with a header");
}

/* UTF-16 (little-endian, behind its mark) as UTF-8; halves of pairs that stand alone become '?'. */
static rg_status rg_run_from_utf16(rg_arena *arena, const char **text, size_t *length, rg_err *err)
{
    const unsigned char *in = (const unsigned char *)*text;
    char *out = rg_arena_alloc(arena, 2 * *length + 1, 1, err);
    if (out == NULL)
        return RG_ERR_LIMIT;
    size_t n = 0;
    for (size_t i = 2; i + 1 < *length; i += 2) {
        const unsigned c = (unsigned)in[i] | (unsigned)in[i + 1] << 8;
        if (c < 0x80) {
            out[n++] = (char)c;
        } else if (c < 0x800) {
            out[n++] = (char)(0xc0 | c >> 6);
            out[n++] = (char)(0x80 | (c & 0x3f));
        } else if (c >= 0xd800 && c < 0xe000) {
            out[n++] = '?';
        } else {
            out[n++] = (char)(0xe0 | c >> 12);
            out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[n++] = (char)(0x80 | (c & 0x3f));
        }
    }
    *text = out;
    *length = n;
    return RG_OK;
}

/* Two or more lines, each an object of its own: a file to which every run appends. */
static bool rg_is_json_lines(const char *text)
{
    int lines = 0;
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        size_t end = n;
        while (end > 0 && (text[end - 1] == '\r' || text[end - 1] == ' '))
            end--;
        if (end > 0) {
            if (text[0] != '{' || text[end - 1] != '}')
                return false;
            lines++;
        }
        text += n + (text[n] == '\n');
    }
    return lines > 1;
}

/* Each line is a run of the same program: repeats in separate processes. */
static rg_status rg_run_parse_lines(const rg_reader *r, rg_run **out, rg_err *err)
{
    rg_run *all = NULL;
    int number = 0;
    for (const char *p = r->text; *p != '\0';) {
        const size_t n = strcspn(p, "\n");
        rg_run *one;
        number++;
        if (n > 1) {
            RG_TRY(rg_run_parse(r->arena, r->path, p, n, r->options, &one, err));
            for (int i = 0; i < one->count; i++)
                one->entries[i].pos.line = number;
            if (all == NULL)
                all = one;
            else
                RG_TRY(rg_run_merge(r->arena, all, one, err));
        }
        p += n + (p[n] == '\n');
    }
    *out = all;
    return RG_OK;
}

/* Whether there is anything to judge: a time, resources, or why there is no time. */
static bool rg_entry_says(const rg_run_entry *e)
{
    return e->unusable == NULL || e->refused || e->left_out || isfinite(e->registers) ||
           isfinite(e->spill_bytes) || isfinite(e->blocks_per_sm);
}

rg_status rg_run_parse(rg_arena *arena, const char *path, const char *text, size_t length,
                       const rg_run_options *options, rg_run **out, rg_err *err)
{
    rg_run *run = RG_NEW(arena, rg_run, 1, err);
    if (run == NULL)
        return RG_ERR_LIMIT;
    *run = (rg_run){.path = path,
                    .tool = "",
                    .device = "",
                    .driver = "",
                    .date = "",
                    .command = "",
                    .commit = "",
                    .ecc = "",
                    .clocks = ""};
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        length -= 3;
    }
    if (length >= 2 && memcmp(text, "\xff\xfe", 2) == 0) /* a redirect on Windows */
        RG_TRY(rg_run_from_utf16(arena, &text, &length, err));
    if (memchr(text, '\0', length) != NULL)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                       "a binary file; a run record is JSON or text");
    char *copy = rg_arena_copy(arena, text, length, err); /* ends with 0; may be written to */
    if (copy == NULL)
        return RG_ERR_LIMIT;
    for (size_t i = rg_text_utf8_valid(copy, length); i < length;
         i += 1 + rg_text_utf8_valid(copy + i + 1, length - i - 1))
        copy[i] = copy[i] == '\xb5' ? 'u' : '?'; /* Latin-1 micro sign; names in lost encodings */
    text = copy;
    rg_reader r = {.arena = arena,
                   .path = path,
                   .text = text,
                   .length = length,
                   .options = options,
                   .run = run};
    size_t at = 0; /* first line that starts with '{', with nothing but program output before it */
    while (at < length && text[at] != '{') {
        const char *end = memchr(text + at, '\n', length - at);
        if (end == NULL)
            at = length;
        else
            at = (size_t)(end - text) + 1;
    }
    if (at == 0 && rg_is_json_lines(text))
        return rg_run_parse_lines(&r, out, err);
    if (at < length && !(at > 0 && rg_looks_nccl(text, length))) {
        /* Keep the line numbers: what stands before becomes blank lines. */
        for (size_t i = 0; i < at; i++)
            if (copy[i] != '\n')
                copy[i] = ' ';
        RG_TRY(rg_read_json(&r, text, length, err));
    } else if (rg_looks_nccl(text, length)) {
        RG_TRY(rg_run_read_nccl_log(&r, err));
    } else {
        RG_TRY(rg_read_delimited(&r, text, length, err));
    }
    for (int i = 0; i < run->count; i++) {
        const rg_run_entry *e = &run->entries[i];
        if (!e->refused || strcmp(e->unusable, rg_bad_sample) != 0 ||
            ++r.refusals > RG_RUN_REFUSALS_NAMED)
            continue;
        RG_TRY(rg_reader_note(&r, err, "%.200s:%d: %.80s%s%.80s: %s", path, e->pos.line, e->kernel,
                              e->problem[0] ? " " : "", e->problem, e->unusable));
    }
    if (r.refusals > RG_RUN_REFUSALS_NAMED)
        RG_TRY(rg_reader_note(&r, err, "%d further values are no measurement",
                              r.refusals - RG_RUN_REFUSALS_NAMED));
    bool says = run->skipped != NULL;
    for (int i = 0; i < run->count; i++)
        says = says || rg_entry_says(&run->entries[i]);
    if (!says)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                       "%s file without a single measurement", run->tool);
    *out = run;
    return RG_OK;
}

rg_status rg_run_load(rg_arena *arena, const char *path, const rg_run_options *options,
                      rg_run **out, rg_err *err)
{
    char *text;
    size_t length;
    RG_TRY(rg_file_read(arena, path, RG_RUN_FILE_CAP, &text, &length, err));
    if (length == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1}, "the file is empty");
    const char *name = rg_arena_strdup(arena, path, err);
    if (name == NULL)
        return RG_ERR_LIMIT;
    return rg_run_parse(arena, name, text, length, options, out, err);
}

/* Looking up and merging ------------------------------------------------------------------------
 */

const rg_run_entry *rg_run_find(const rg_run *run, const char *kernel, const char *problem,
                                const char *dtype)
{
    for (int i = 0; i < run->count; i++) {
        const rg_run_entry *e = &run->entries[i];
        if (strcmp(e->kernel, kernel) == 0 && strcmp(e->problem, problem) == 0 &&
            (dtype[0] == '\0' || e->dtype[0] == '\0' || strcmp(e->dtype, dtype) == 0))
            return e;
    }
    return NULL;
}

/* A summary without samples joins as one sample of its process: its central value. */
static double rg_entry_centre(const rg_run_entry *e)
{
    return isnan(e->median) ? e->mean : e->median;
}

static rg_status rg_entry_to_samples(rg_arena *arena, rg_run_entry *e, rg_err *err)
{
    if (e->sample_count > 0 || e->unusable != NULL || isnan(rg_entry_centre(e)))
        return RG_OK;
    const double centre = rg_entry_centre(e);
    e->count = e->median = e->mean = e->q1 = e->q3 = e->least = e->most = e->deviation = NAN;
    return rg_entry_sample(arena, e, centre, 0, err);
}

static double rg_mean_of(double a, int weight_a, double b, int weight_b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    return (a * weight_a + b * weight_b) / (weight_a + weight_b);
}

static rg_status rg_entry_merge(rg_arena *arena, rg_run_entry *into, const rg_run_entry *from,
                                rg_err *err)
{
    if (into->unusable != NULL && from->unusable == NULL) {
        *into = *from; /* the repeat has a number */
        return RG_OK;
    }
    if (from->unusable != NULL)
        return RG_OK;
    RG_TRY(rg_entry_to_samples(arena, into, err));
    if (from->sample_count == 0 && !isnan(rg_entry_centre(from)))
        RG_TRY(rg_entry_sample(arena, into, rg_entry_centre(from), into->processes, err));
    for (int i = 0; i < from->sample_count; i++)
        RG_TRY(rg_entry_sample(arena, into, from->samples[i], into->processes + from->process[i],
                               err));
    const int a = into->processes, b = from->processes;
    into->clock_hz = rg_mean_of(into->clock_hz, a, from->clock_hz, b);
    into->cycles = rg_mean_of(into->cycles, a, from->cycles, b);
    into->dram_bytes = rg_mean_of(into->dram_bytes, a, from->dram_bytes, b);
    into->processes = a + b;
    if (into->wrong == NULL)
        into->wrong = from->wrong;
    if (into->throttled == NULL)
        into->throttled = from->throttled;
    return RG_OK;
}

rg_status rg_run_merge(rg_arena *arena, rg_run *run, const rg_run *other, rg_err *err)
{
    const rg_pos pos = {other->path, 1, 0};
    if (strcmp(run->tool, other->tool) != 0)
        return rg_fail(err, RG_ERR_INPUT, pos,
                       "a run measured by '%s' cannot repeat one measured by '%s'", other->tool,
                       run->tool);
    if (strcmp(run->device, other->device) != 0)
        return rg_fail(err, RG_ERR_INPUT, pos,
                       "measured on '%s', but the first run on '%s'; repeats come from one device",
                       other->device, run->device);
    rg_reader r = {.arena = arena, .path = other->path, .run = run};
    RG_TRY(rg_index_grow(&r, err));
    while (r.index_size < 4 * run->count)
        RG_TRY(rg_index_grow(&r, err));
    for (int i = 0; i < other->count; i++) {
        const rg_run_entry *from = &other->entries[i];
        const int before = run->count;
        rg_run_entry *into;
        RG_TRY(
            rg_reader_entry(&r, from->kernel, from->problem, from->dtype, from->pos, &into, err));
        if (run->count > before)
            *into = *from;
        else
            RG_TRY(rg_entry_merge(arena, into, from, err));
    }
    for (int i = 0; i < other->note_count; i++)
        RG_TRY(rg_reader_note(&r, err, "%s", other->notes[i]));
    return RG_OK;
}

double rg_run_cost(rg_arena *arena, const rg_run_entry *entry, rg_err *err)
{
    if (entry->unusable != NULL)
        return NAN;
    if (entry->sample_count == 0)
        return rg_entry_centre(entry);
    double *copy = RG_NEW(arena, double, entry->sample_count, err);
    if (copy == NULL)
        return NAN;
    memcpy(copy, entry->samples, (size_t)entry->sample_count * sizeof *copy);
    rg_stat_sort(copy, (size_t)entry->sample_count);
    return rg_stat_quantile_sorted(copy, (size_t)entry->sample_count, 0.5);
}

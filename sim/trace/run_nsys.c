/* trace/run_nsys.c: Nsight Systems "nsys stats" CSV and rocprof CSV.
 *
 * nsys: cuda_gpu_kern_sum (older: gpukernsum, headers without units in ns) gives a summary for each
 * kernel name, with or without grid and block; cuda_gpu_trace gives every launch. The unit stands
 * in the header. rocprof v1 has KernelName with BeginNs and EndNs where timestamps were asked for,
 * v2 Kernel_Name with Start_Timestamp and End_Timestamp, rocprofv3 the same plus counters one per
 * row, and all have a stats form of Calls and AverageNs.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

/* Column whose heading is name with a unit in brackets or without; *factor to SI. */
static int rg_nsys_column(const rg_row *header, const char *name, double fallback, double *factor)
{
    for (int i = 0; i < header->count; i++) {
        char head[64];
        snprintf(head, sizeof head, "%s", header->field[i]);
        char *open = strrchr(head, '(');
        char *close = open == NULL ? NULL : strchr(open, ')');
        double f = fallback;
        if (open != NULL && close != NULL) {
            *open = *close = '\0';
            if (!rg_unit_factor(open + 1, &f))
                continue;
        }
        if (rg_text_same(head, name)) {
            *factor = f;
            return i;
        }
    }
    return -1;
}

static int rg_nsys_any(const rg_row *header, const char *const *names, double *factor)
{
    for (; *names != NULL; names++) {
        const int column = rg_nsys_column(header, *names, 1e-9, factor);
        if (column >= 0)
            return column;
    }
    return -1;
}

static double rg_nsys_number(const rg_locale *locale, const rg_row *row, int column, double factor)
{
    double value;
    return column >= 0 && rg_locale_number(locale, rg_row_get(row, column), &value) ? value * factor
                                                                                    : NAN;
}

static rg_status rg_nsys_locale(rg_reader *r, const rg_rows *rows, int header, const int *columns,
                                int count, rg_locale *locale, rg_err *err)
{
    *locale = (rg_locale){0};
    for (int i = header + 1; i < rows->count; i++)
        for (int k = 0; k < count; k++)
            rg_locale_see(locale, rg_row_get(&rows->items[i], columns[k]));
    return rg_locale_settle(locale, (rg_pos){r->path, rows->items[header].line, 1}, err);
}

/* "grid=(64,64,1) block=(32,32,1)" from one column each ("  64   64    1" or "64x64x1") or three.
 */
static void rg_nsys_shape(const rg_row *header, const rg_row *row, char *out, size_t size)
{
    static const char *const grid[] = {"GridXYZ", NULL}, *const block[] = {"BlockXYZ", NULL};
    static const char *const axes[2][3] = {{"GrdX", "GrdY", "GrdZ"}, {"BlkX", "BlkY", "BlkZ"}};
    const char *const *joined[2] = {grid, block};
    out[0] = '\0';
    for (int i = 0; i < 2; i++) {
        char text[96] = "";
        const int column = rg_row_find(header, joined[i]);
        if (column >= 0) {
            size_t n = 0;
            for (const char *p = rg_row_get(row, column); *p != '\0' && n + 2 < sizeof text; p++) {
                if (isdigit((unsigned char)*p))
                    text[n++] = *p;
                else if (n > 0 && text[n - 1] != ',')
                    text[n++] = ',';
            }
            while (n > 0 && text[n - 1] == ',')
                n--;
            text[n] = '\0';
        } else {
            int at[3];
            for (int k = 0; k < 3; k++) {
                const char *const name[] = {axes[i][k], NULL};
                at[k] = rg_row_find(header, name);
            }
            if (at[0] >= 0 && rg_row_get(row, at[0])[0] != '\0')
                snprintf(text, sizeof text, "%s,%s,%s", rg_row_get(row, at[0]),
                         rg_row_get(row, at[1]), rg_row_get(row, at[2]));
        }
        if (text[0] != '\0') {
            const size_t n = strlen(out);
            snprintf(out + n, size - n, "%s%s=(%s)", n > 0 ? " " : "", i == 0 ? "grid" : "block",
                     text);
        }
    }
}

/* Another report follows in the same file: a header, or a blank line behind the rows. */
static bool rg_nsys_ends(const rg_row *head, const rg_row *row, int entries)
{
    return entries > 0 && (row->count == 0 || strcmp(row->field[0], head->field[0]) == 0 ||
                           row->field[0][0] == '*');
}

static rg_status rg_nsys_trace(rg_reader *r, const rg_rows *rows, int header, int duration,
                               double factor, int name, rg_err *err)
{
    const rg_row *head = &rows->items[header];
    static const char *const registers[] = {"Reg/Trd", NULL}, *const device[] = {"Device", NULL};
    const int register_column = rg_row_find(head, registers);
    const int device_column = rg_row_find(head, device);
    rg_locale locale;
    RG_TRY(rg_nsys_locale(r, rows, header, &duration, 1, &locale, err));
    int skipped = 0;
    for (int i = header + 1; i < rows->count; i++) {
        const rg_row *row = &rows->items[i];
        if (row->count != head->count)
            continue;
        char shape[256];
        rg_nsys_shape(head, row, shape, sizeof shape);
        if (shape[0] == '\0') { /* copies and sets of memory have no grid */
            skipped++;
            continue;
        }
        rg_run_entry *e;
        RG_TRY(rg_reader_entry(r, rg_row_get(row, name), shape, "", (rg_pos){r->path, row->line, 1},
                               &e, err));
        RG_TRY(rg_reader_sample(r, e, rg_nsys_number(&locale, row, duration, factor), err));
        const double used = rg_nsys_number(&locale, row, register_column, 1);
        if (!isnan(used))
            e->registers = used;
        if (r->run->device[0] == '\0') {
            r->run->device = rg_arena_strdup(r->arena, rg_row_get(row, device_column), err);
            if (r->run->device == NULL)
                return RG_ERR_LIMIT;
            char *index = strstr((char *)r->run->device, " (");
            if (index != NULL)
                *index = '\0'; /* "NVIDIA H200 (0)" */
        }
    }
    if (skipped > 0)
        RG_TRY(rg_reader_note(r, err, "%d rows without a grid (memory copies and sets) left out",
                              skipped));
    return RG_OK;
}

enum { RG_N_TOTAL, RG_N_COUNT, RG_N_MEAN, RG_N_MEDIAN, RG_N_LEAST, RG_N_MOST, RG_N_DEV, RG_N_ALL };

rg_status rg_run_read_nsys(rg_reader *r, const rg_rows *rows, int header, rg_err *err)
{
    static const char *const names[RG_N_ALL][4] = {
        {"Total Time", NULL},     {"Instances", "Num Calls", "Count", NULL},
        {"Avg", "Average", NULL}, {"Med", "Median", NULL},
        {"Min", "Minimum", NULL}, {"Max", "Maximum", NULL},
        {"StdDev", NULL},
    };
    static const char *const name_names[] = {"Name", "Operation", "Kernel Name", NULL};
    r->run->tool = "nsys";
    const rg_row *head = &rows->items[header];
    const int name = rg_row_find(head, name_names);
    double factor[RG_N_ALL], f;
    int column[RG_N_ALL];
    const int duration = rg_nsys_column(head, "Duration", 1e-9, &f);
    for (int k = 0; k < RG_N_ALL; k++)
        column[k] = rg_nsys_any(head, names[k], &factor[k]);
    if (column[RG_N_TOTAL] < 0 && duration >= 0)
        return rg_nsys_trace(r, rows, header, duration, f, name, err);
    if (name < 0 || column[RG_N_COUNT] < 0 || column[RG_N_MEAN] < 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){r->path, head->line, 1},
                       "a header of nsys stats without Instances, Avg or Name; export it with "
                       "'nsys stats --report cuda_gpu_kern_sum --format csv'");
    rg_locale locale;
    RG_TRY(rg_nsys_locale(r, rows, header, column, RG_N_ALL, &locale, err));
    for (int i = header + 1; i < rows->count; i++) {
        const rg_row *row = &rows->items[i];
        if (rg_nsys_ends(head, row, r->run->count))
            break;
        if (row->count != head->count)
            continue;
        char shape[256];
        rg_nsys_shape(head, row, shape, sizeof shape);
        rg_run_entry *e;
        const int before = r->run->count;
        RG_TRY(rg_reader_entry(r, rg_row_get(row, name), shape, "", (rg_pos){r->path, row->line, 1},
                               &e, err));
        if (r->run->count == before)
            continue; /* a second report in the same file */
        e->count = rg_nsys_number(&locale, row, column[RG_N_COUNT], 1);
        e->mean = rg_nsys_number(&locale, row, column[RG_N_MEAN], factor[RG_N_MEAN]);
        e->median = rg_nsys_number(&locale, row, column[RG_N_MEDIAN], factor[RG_N_MEDIAN]);
        e->least = rg_nsys_number(&locale, row, column[RG_N_LEAST], factor[RG_N_LEAST]);
        e->most = rg_nsys_number(&locale, row, column[RG_N_MOST], factor[RG_N_MOST]);
        e->deviation = rg_nsys_number(&locale, row, column[RG_N_DEV], factor[RG_N_DEV]);
        if (!(e->mean > 0))
            e->unusable = "the average is not a positive number";
    }
    return rg_reader_note(r, err,
                          "nsys sums up all launches of a name: problems are not told apart, "
                          "and the cache is as the program left it");
}

/* rocprof ---------------------------------------------------------------------------------------
 */

static rg_status rg_rocprof_stats(rg_reader *r, const rg_rows *rows, int header, rg_err *err)
{
    static const char *const name_names[] = {"Name", "Kernel_Name", NULL},
                             *const calls[] = {"Calls", NULL},
                             *const average[] = {"AverageNs", "Average(ns)", "Average", NULL},
                             *const least[] = {"MinNs", "Min(ns)", NULL},
                             *const most[] = {"MaxNs", "Max(ns)", NULL},
                             *const deviation[] = {"StdDev", "StdDevNs", NULL};
    const rg_row *head = &rows->items[header];
    const int c[6] = {rg_row_find(head, name_names), rg_row_find(head, calls),
                      rg_row_find(head, average),    rg_row_find(head, least),
                      rg_row_find(head, most),       rg_row_find(head, deviation)};
    if (c[0] < 0 || c[2] < 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){r->path, head->line, 1},
                       "rocprof statistics without Name or AverageNs");
    const rg_locale locale = {.decimal = '.'};
    for (int i = header + 1; i < rows->count; i++) {
        const rg_row *row = &rows->items[i];
        if (row->count != head->count)
            continue;
        rg_run_entry *e;
        RG_TRY(rg_reader_entry(r, rg_row_get(row, c[0]), "", "", (rg_pos){r->path, row->line, 1},
                               &e, err));
        e->count = rg_nsys_number(&locale, row, c[1], 1);
        e->mean = rg_nsys_number(&locale, row, c[2], 1e-9);
        e->least = rg_nsys_number(&locale, row, c[3], 1e-9);
        e->most = rg_nsys_number(&locale, row, c[4], 1e-9);
        e->deviation = rg_nsys_number(&locale, row, c[5], 1e-9);
        if (!(e->mean > 0))
            e->unusable = "the average is not a positive number";
    }
    return RG_OK;
}

typedef struct rg_rocprof {
    int name, grid, group, vgpr, lds, scratch, begin, end, fetch, write, counter, value, dispatch;
} rg_rocprof;

static rg_rocprof rg_rocprof_columns(const rg_row *head)
{
#define COLUMN(...) rg_row_find(head, (const char *const[]){__VA_ARGS__, NULL})
    return (rg_rocprof){
        .name = COLUMN("KernelName", "Kernel_Name"),
        .grid = COLUMN("grd", "Grid_Size", "GridSize", "Grid_Size_X"),
        .group = COLUMN("wgr", "Workgroup_Size", "WorkgroupSize", "Workgroup_Size_X"),
        .vgpr = COLUMN("vgpr", "arch_vgpr", "Arch_VGPR", "VGPR_Count", "Arch_VGPR_Count"),
        .lds = COLUMN("lds", "LDS_Block_Size", "LDS_Block_Size_v"),
        .scratch = COLUMN("scr", "Scratch_Size", "Scratch_Per_Workitem"),
        .begin = COLUMN("BeginNs", "Start_Timestamp"),
        .end = COLUMN("EndNs", "End_Timestamp"),
        .fetch = COLUMN("FetchSize", "FETCH_SIZE"),
        .write = COLUMN("WriteSize", "WRITE_SIZE"),
        .counter = COLUMN("Counter_Name"),
        .value = COLUMN("Counter_Value"),
        .dispatch = COLUMN("Dispatch_Id", "Dispatch_ID"),
    };
#undef COLUMN
}

static rg_status rg_rocprof_row(rg_reader *r, const rg_rocprof *c, const rg_row *row,
                                const char *previous_dispatch, rg_err *err)
{
    const rg_locale locale = {.decimal = '.'};
    char shape[128] = "";
    if (c->grid >= 0)
        snprintf(shape, sizeof shape, "grid=%s group=%s", rg_row_get(row, c->grid),
                 rg_row_get(row, c->group));
    rg_run_entry *e;
    RG_TRY(rg_reader_entry(r, rg_row_get(row, c->name), shape, "", (rg_pos){r->path, row->line, 1},
                           &e, err));
    const double vgpr = rg_nsys_number(&locale, row, c->vgpr, 1);
    if (!isnan(vgpr))
        e->registers = vgpr;
    const double lds = rg_nsys_number(&locale, row, c->lds, 1);
    if (!isnan(lds))
        e->shared_bytes = lds;
    const double scratch = rg_nsys_number(&locale, row, c->scratch, 1);
    if (!isnan(scratch))
        e->spill_bytes = scratch;
    /* FetchSize and WriteSize are in KiB. */
    const double moved =
        rg_nsys_number(&locale, row, c->fetch, 1024) + rg_nsys_number(&locale, row, c->write, 1024);
    if (!isnan(moved))
        e->dram_bytes = moved;
    if (previous_dispatch != NULL && strcmp(previous_dispatch, rg_row_get(row, c->dispatch)) == 0)
        return RG_OK; /* another counter of the same dispatch */
    int64_t begin, end;
    if (c->begin < 0 || c->end < 0) {
        e->unusable = "no timestamps; run rocprof with --timestamp on";
        return RG_OK;
    }
    if (!rg_text_to_int(rg_row_get(row, c->begin), &begin) ||
        !rg_text_to_int(rg_row_get(row, c->end), &end) || end <= begin) {
        e->unusable = "the end is not behind the start";
        return RG_OK;
    }
    return rg_reader_sample(r, e, (double)(end - begin) * 1e-9, err);
}

rg_status rg_run_read_rocprof(rg_reader *r, const rg_rows *rows, int header, rg_err *err)
{
    r->run->tool = "rocprof";
    const rg_row *head = &rows->items[header];
    const rg_rocprof c = rg_rocprof_columns(head);
    static const char *const stats[] = {"TotalDurationNs", "Total_Duration(ns)", NULL};
    if (rg_row_find(head, stats) >= 0)
        return rg_rocprof_stats(r, rows, header, err);
    const char *dispatch = NULL;
    for (int i = header + 1; i < rows->count; i++) {
        const rg_row *row = &rows->items[i];
        if (row->count == 0)
            continue;
        if (row->count != head->count)
            return rg_fail(err, RG_ERR_INPUT, (rg_pos){r->path, row->line, 1},
                           "%d fields where the header has %d", row->count, head->count);
        RG_TRY(rg_rocprof_row(r, &c, row, c.counter >= 0 ? dispatch : NULL, err));
        dispatch = rg_row_get(row, c.dispatch);
    }
    return RG_OK;
}

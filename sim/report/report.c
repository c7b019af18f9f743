// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "report/items.h"

static void release_json(void *json)
{
    json_decref(json);
}

rg_report *rg_report_new(rg_arena *arena, const char *command, int version, rg_form form,
                         rg_err *err)
{
    rg_report *report = RG_NEW(arena, rg_report, 1, err);
    if (!report)
        return NULL;
    report->arena = arena;
    report->form = form;
    report->command = command;
    report->json = json_object();
    if (rg_arena_defer(arena, release_json, report->json, err) != RG_OK) {
        json_decref(report->json);
        return NULL;
    }
    json_object_set_new(report->json, "schema", json_sprintf("ridge.%s/%d", command, version));
    json_object_set_new(report->json, "ridge_version", json_string(RG_VERSION));
    report->inputs = json_object();
    json_object_set_new(report->json, "inputs", report->inputs);
    report->assumptions = json_array();
    json_object_set_new(report->json, "assumptions", report->assumptions);
    return report;
}

static const char *keep(rg_report *report, const char *text)
{
    if (!text)
        return NULL;
    const char *copy = rg_arena_strdup(report->arena, text, NULL);
    if (!copy)
        report->failed = true;
    return copy;
}

static rg_item *add_item(rg_report *report, rg_item_kind kind)
{
    rg_item *i = RG_NEW(report->arena, rg_item, 1, NULL);
    if (!i) {
        report->failed = true;
        return NULL;
    }
    i->kind = kind;
    if (report->last)
        report->last->next = i;
    else
        report->first = i;
    report->last = i;
    return i;
}

rg_status rg_report_input(rg_report *report, const char *role, const char *path, rg_err *err)
{
    char digest[65];
    RG_TRY(rg_file_sha256(path, digest, err));
    json_object_set_new(report->inputs, role,
                        json_pack("{s:s, s:s}", "file", path, "sha256", digest));
    return RG_OK;
}

void rg_report_setting(rg_report *report, const char *key, const char *value)
{
    json_object_set_new(report->inputs, key, value ? json_string(value) : json_null());
}

__attribute__((format(printf, 2, 0))) static const char *
format_text(rg_report *report, const char *format, va_list arguments)
{
    char text[2048];
    vsnprintf(text, sizeof text, format, arguments);
    return keep(report, text);
}

void rg_report_assume(rg_report *report, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(report, format, arguments);
    va_end(arguments);
    rg_note *n = RG_NEW(report->arena, rg_note, 1, NULL);
    if (!n || !text) {
        report->failed = true;
        return;
    }
    for (const rg_note *old = report->notes; old; old = old->next)
        if (strcmp(old->text, text) == 0)
            return;
    n->text = text;
    if (report->last_note)
        report->last_note->next = n;
    else
        report->notes = n;
    report->last_note = n;
    json_array_append_new(report->assumptions, json_string(text));
}

void rg_report_line(rg_report *report, const char *format, ...)
{
    rg_item *i = add_item(report, RG_ITEM_LINE);
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(report, format, arguments);
    va_end(arguments);
    if (i)
        i->text = text;
}

void rg_report_heading(rg_report *report, const char *text)
{
    rg_item *i = add_item(report, RG_ITEM_HEADING);
    if (i)
        i->text = keep(report, text);
}

static void add_fact(rg_report *report, const char *key, const char *label, const char *text,
                     const char *raw)
{
    rg_item *i = add_item(report, RG_ITEM_FACT);
    if (!i)
        return;
    i->key = keep(report, key);
    i->label = keep(report, label);
    i->text = keep(report, text);
    i->raw = keep(report, raw);
}

json_t *rg_number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void rg_number_raw(double value, char *out, size_t size)
{
    if (isfinite(value))
        snprintf(out, size, "%.15g", value);
    else
        out[0] = 0;
}

void rg_number_text(double value, rg_dim dim, char *out, size_t size)
{
    if (isfinite(value))
        rg_quantity_format(value, dim, RG_REPORT_DIGITS, out, size);
    else
        snprintf(out, size, "-");
}

/* A key says its unit: "ttft_s" for seconds, "hbm_bytes" or "flops" for a whole name. */
static bool says_unit(const char *key, rg_dim dim)
{
    const char *suffix = rg_dim_suffix(dim);
    return strstr(key, suffix) != NULL || strcmp(key, suffix + (*suffix == '_')) == 0;
}

void rg_report_figure(rg_report *report, const char *key, const char *label, double value,
                      rg_dim dim)
{
    assert(says_unit(key, dim));
    char text[64], raw[64];
    rg_number_text(value, dim, text, sizeof text);
    rg_number_raw(value, raw, sizeof raw);
    json_object_set_new(report->json, key, rg_number_json(value));
    add_fact(report, key, label, text, raw);
}

void rg_report_text(rg_report *report, const char *key, const char *label, const char *value)
{
    json_object_set_new(report->json, key, value ? json_string(value) : json_null());
    add_fact(report, key, label, value ? value : "-", value ? value : "");
}

void rg_report_int(rg_report *report, const char *key, const char *label, long long value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    json_object_set_new(report->json, key, json_integer(value));
    add_fact(report, key, label, text, text);
}

void rg_report_json(rg_report *report, const char *key, json_t *value)
{
    json_object_set_new(report->json, key, value);
}

rg_table *rg_report_table(rg_report *report, const char *key, const char *title)
{
    rg_item *i = add_item(report, RG_ITEM_TABLE);
    rg_table *table = RG_NEW(report->arena, rg_table, 1, NULL);
    static rg_table spare; /* takes the calls that follow an allocation failure */
    if (!i || !table) {
        report->failed = true;
        spare = (rg_table){.report = report};
        return &spare;
    }
    table->report = report;
    table->key = keep(report, key);
    table->title = keep(report, title);
    i->table = table;
    return table;
}

void rg_table_column(rg_table *table, const char *key, const char *heading, rg_cell kind,
                     rg_dim dim, bool hidden)
{
    assert(says_unit(key, dim));
    if (table->column_count == RG_REPORT_COLUMNS) {
        table->report->failed = true;
        return;
    }
    table->columns[table->column_count++] = (rg_column){.key = keep(table->report, key),
                                                        .heading = keep(table->report, heading),
                                                        .cell = kind,
                                                        .dim = dim,
                                                        .hidden = hidden};
}

static rg_value *next_cell(rg_table *table)
{
    static rg_value spare;
    if (table->filled == 0) {
        rg_row *r =
            rg_arena_alloc(table->report->arena, 1,
                           sizeof(rg_row) + sizeof(rg_value) * (size_t)table->column_count, NULL);
        if (!r) {
            table->report->failed = true;
            return &spare;
        }
        if (table->last)
            table->last->next = r;
        else
            table->first = r;
        table->last = r;
    }
    rg_value *c = table->last ? &table->last->cells[table->filled] : &spare;
    table->filled = (table->filled + 1) % table->column_count;
    return c;
}

void rg_table_real(rg_table *table, double value)
{
    next_cell(table)->real = value;
}
void rg_table_int(rg_table *table, long long value)
{
    next_cell(table)->integer = value;
}
void rg_table_bool(rg_table *table, bool value)
{
    next_cell(table)->integer = value;
}
void rg_table_text(rg_table *table, const char *value)
{
    next_cell(table)->text = keep(table->report, value);
}

void rg_report_image(rg_report *report, const char *path, const char *caption)
{
    json_t *figures = json_object_get(report->json, "figures");
    if (!figures) {
        figures = json_array();
        json_object_set_new(report->json, "figures", figures);
    }
    json_array_append_new(figures, json_string(path));
    rg_item *i = add_item(report, RG_ITEM_IMAGE);
    if (!i)
        return;
    i->raw = keep(report, path);
    i->text = keep(report, caption);
}

// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/file.h"

enum { MAX_COLUMNS = 48, DIGITS = 4 };

typedef struct column {
    const char *key, *heading;
    rg_cell cell;
    rg_dim dim;
    bool hidden;
} column;

typedef struct cell {
    double real;
    long long integer;
    const char *text;
} cell;

typedef struct row {
    struct row *next;
    cell cells[];
} row;

struct rg_table {
    rg_report *report;
    const char *key, *title;
    column columns[MAX_COLUMNS];
    int column_count, filled;
    row *first, *last;
};

typedef enum item_kind { ITEM_LINE, ITEM_FACT, ITEM_TABLE } item_kind;

typedef struct item {
    struct item *next;
    item_kind kind;
    const char *key, *label, *text, *raw; /* fact: as people read it; as CSV has it */
    rg_table *table;
} item;

typedef struct note {
    struct note *next;
    const char *text;
} note;

struct rg_report {
    rg_arena *arena;
    rg_form form;
    json_t *json, *inputs, *assumptions;
    item *first, *last;
    note *notes, *last_note;
    rg_err *err;
    bool failed; /* out of memory somewhere; rg_report_write says so */
};

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

static item *add_item(rg_report *report, item_kind kind)
{
    item *i = RG_NEW(report->arena, item, 1, NULL);
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

static const char *format_text(rg_report *report, const char *format, va_list arguments)
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
    note *n = RG_NEW(report->arena, note, 1, NULL);
    if (!n || !text) {
        report->failed = true;
        return;
    }
    for (const note *old = report->notes; old; old = old->next)
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
    item *i = add_item(report, ITEM_LINE);
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(report, format, arguments);
    va_end(arguments);
    if (i)
        i->text = text;
}

static void add_fact(rg_report *report, const char *key, const char *label, const char *text,
                     const char *raw)
{
    item *i = add_item(report, ITEM_FACT);
    if (!i)
        return;
    i->key = keep(report, key);
    i->label = keep(report, label);
    i->text = keep(report, text);
    i->raw = keep(report, raw);
}

static json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void raw_number(double value, char *out, size_t size)
{
    if (isfinite(value))
        snprintf(out, size, "%.15g", value);
    else
        out[0] = 0;
}

static void people_number(double value, rg_dim dim, char *out, size_t size)
{
    if (isfinite(value))
        rg_quantity_format(value, dim, DIGITS, out, size);
    else
        snprintf(out, size, "-");
}

void rg_report_figure(rg_report *report, const char *key, const char *label, double value,
                      rg_dim dim)
{
    char text[64], raw[64];
    people_number(value, dim, text, sizeof text);
    raw_number(value, raw, sizeof raw);
    json_object_set_new(report->json, key, json_number(value));
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
    item *i = add_item(report, ITEM_TABLE);
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
    if (table->column_count == MAX_COLUMNS) {
        table->report->failed = true;
        return;
    }
    table->columns[table->column_count++] = (column){.key = keep(table->report, key),
                                                     .heading = keep(table->report, heading),
                                                     .cell = kind,
                                                     .dim = dim,
                                                     .hidden = hidden};
}

static cell *next_cell(rg_table *table)
{
    static cell spare;
    if (table->filled == 0) {
        row *r = rg_arena_alloc(table->report->arena, 1,
                                sizeof(row) + sizeof(cell) * (size_t)table->column_count, NULL);
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
    cell *c = table->last ? &table->last->cells[table->filled] : &spare;
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

/* ---- writers ---- */

static void cell_text(const column *c, const cell *value, char *out, size_t size)
{
    switch (c->cell) {
    case RG_CELL_REAL:
        people_number(value->real, c->dim, out, size);
        break;
    case RG_CELL_INT:
        snprintf(out, size, "%lld", value->integer);
        break;
    case RG_CELL_BOOL:
        snprintf(out, size, "%s", value->integer ? "yes" : "no");
        break;
    case RG_CELL_TEXT:
        snprintf(out, size, "%s", value->text ? value->text : "-");
        break;
    }
}

/* Width on a terminal: characters, not bytes. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void pad(FILE *out, const char *text, int width, bool right)
{
    const int blanks = width - width_of(text);
    if (right)
        fprintf(out, "%*s%s", blanks > 0 ? blanks : 0, "", text);
    else
        fprintf(out, "%s%*s", text, blanks > 0 ? blanks : 0, "");
}

static void write_text_table(FILE *out, const rg_table *table)
{
    int widths[MAX_COLUMNS] = {0};
    char text[512];
    for (int i = 0; i < table->column_count; i++) {
        const column *c = &table->columns[i];
        if (c->hidden)
            continue;
        widths[i] = width_of(c->heading);
        for (const row *r = table->first; r; r = r->next) {
            cell_text(c, &r->cells[i], text, sizeof text);
            const int width = width_of(text);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    if (table->title && table->title[0])
        fprintf(out, "%s\n", table->title);
    int last = table->column_count - 1;
    while (last > 0 && table->columns[last].hidden)
        last--;
    for (const row *r = NULL;; r = r ? r->next : table->first) {
        fputs("  ", out);
        for (int i = 0; i < table->column_count; i++) {
            const column *c = &table->columns[i];
            if (c->hidden)
                continue;
            if (r)
                cell_text(c, &r->cells[i], text, sizeof text);
            else
                snprintf(text, sizeof text, "%s", c->heading);
            const bool right = c->cell == RG_CELL_REAL || c->cell == RG_CELL_INT;
            pad(out, text, i == last && !right ? 0 : widths[i], right);
            if (i != last)
                fputs("  ", out);
        }
        fputc('\n', out);
        if (r ? !r->next : !table->first)
            break;
    }
}

static void write_text(FILE *out, const rg_report *report)
{
    for (const item *i = report->first; i; i = i->next) {
        if (i->kind == ITEM_LINE)
            fprintf(out, "%s\n", i->text ? i->text : "");
        else if (i->kind == ITEM_TABLE)
            write_text_table(out, i->table);
        else if (i->label) {
            /* Facts in a run share the width of their longest label. */
            int width = 0;
            for (const item *j = report->first; j; j = j->next)
                if (j->kind == ITEM_FACT && j->label && width_of(j->label) > width)
                    width = width_of(j->label);
            fputs("  ", out);
            pad(out, i->label, width + 2, false);
            fprintf(out, "%s\n", i->text);
        }
    }
    if (report->notes)
        fputs("\nAssumptions\n", out);
    for (const note *n = report->notes; n; n = n->next)
        fprintf(out, "  - %s\n", n->text);
}

static void csv_field(FILE *out, const char *text)
{
    if (!text[strcspn(text, ",\"\n\r")]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void write_csv_table(FILE *out, const rg_table *table)
{
    for (int i = 0; i < table->column_count; i++) {
        if (i)
            fputc(',', out);
        csv_field(out, table->columns[i].key);
    }
    fputc('\n', out);
    for (const row *r = table->first; r; r = r->next) {
        for (int i = 0; i < table->column_count; i++) {
            const column *c = &table->columns[i];
            const cell *value = &r->cells[i];
            char number[64];
            if (i)
                fputc(',', out);
            if (c->cell == RG_CELL_REAL) {
                raw_number(value->real, number, sizeof number);
                fputs(number, out);
            } else if (c->cell == RG_CELL_INT) {
                fprintf(out, "%lld", value->integer);
            } else if (c->cell == RG_CELL_BOOL) {
                fputs(value->integer ? "true" : "false", out);
            } else if (value->text) {
                csv_field(out, value->text);
            }
        }
        fputc('\n', out);
    }
}

static void write_csv(FILE *out, const rg_report *report, const char *csv_key)
{
    for (const item *i = report->first; i; i = i->next)
        if (i->kind == ITEM_TABLE && (!csv_key || strcmp(csv_key, i->table->key) == 0)) {
            write_csv_table(out, i->table);
            return;
        }
    fputs("key,value\n", out);
    for (const item *i = report->first; i; i = i->next)
        if (i->kind == ITEM_FACT) {
            csv_field(out, i->key);
            fputc(',', out);
            csv_field(out, i->raw);
            fputc('\n', out);
        }
}

static json_t *table_json(const rg_table *table)
{
    json_t *array = json_array();
    for (const row *r = table->first; r; r = r->next) {
        json_t *object = json_object();
        for (int i = 0; i < table->column_count; i++) {
            const column *c = &table->columns[i];
            const cell *value = &r->cells[i];
            json_t *j = c->cell == RG_CELL_REAL   ? json_number(value->real)
                        : c->cell == RG_CELL_INT  ? json_integer(value->integer)
                        : c->cell == RG_CELL_BOOL ? json_boolean(value->integer)
                        : value->text             ? json_string(value->text)
                                                  : json_null();
            json_object_set_new(object, c->key, j);
        }
        json_array_append_new(array, object);
    }
    return array;
}

static void write_json(FILE *out, rg_report *report)
{
    for (const item *i = report->first; i; i = i->next)
        if (i->kind == ITEM_TABLE)
            json_object_set_new(report->json, i->table->key, table_json(i->table));
    json_dumpf(report->json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    fputc('\n', out);
}

static void write_form(FILE *out, rg_report *report, const char *csv_key)
{
    switch (report->form) {
    case RG_FORM_TEXT:
        write_text(out, report);
        break;
    case RG_FORM_CSV:
        write_csv(out, report, csv_key);
        break;
    case RG_FORM_JSON:
        write_json(out, report);
        break;
    }
}

rg_status rg_report_write(rg_report *report, const char *path, const char *csv_key, rg_err *err)
{
    if (report->failed)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "the result is too large for memory");
    if (!path) {
        write_form(stdout, report, csv_key);
        return RG_OK;
    }
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, err));
    write_form(file.stream, report, csv_key);
    return rg_out_commit(&file, err);
}

// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "core/csv.h"
#include "core/file.h"
#include "report/items.h"

void rg_value_text(const rg_column *c, const rg_value *value, char *out, size_t size)
{
    switch (c->cell) {
    case RG_CELL_REAL:
        rg_number_text(value->real, c->dim, out, size);
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
    int widths[RG_REPORT_COLUMNS] = {0};
    char text[512];
    for (int i = 0; i < table->column_count; i++) {
        const rg_column *c = &table->columns[i];
        if (c->hidden)
            continue;
        widths[i] = width_of(c->heading);
        for (const rg_row *r = table->first; r; r = r->next) {
            rg_value_text(c, &r->cells[i], text, sizeof text);
            const int width = width_of(text);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    if (table->title && table->title[0])
        fprintf(out, "%s\n", table->title);
    int last = table->column_count - 1;
    while (last > 0 && table->columns[last].hidden)
        last--;
    for (const rg_row *r = NULL;; r = r ? r->next : table->first) {
        fputs("  ", out);
        for (int i = 0; i < table->column_count; i++) {
            const rg_column *c = &table->columns[i];
            if (c->hidden)
                continue;
            if (r)
                rg_value_text(c, &r->cells[i], text, sizeof text);
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
    for (const rg_item *i = report->first; i; i = i->next) {
        if (i->kind == RG_ITEM_LINE || i->kind == RG_ITEM_HEADING)
            fprintf(out, "%s\n", i->text ? i->text : "");
        else if (i->kind == RG_ITEM_TABLE)
            write_text_table(out, i->table);
        else if (i->kind == RG_ITEM_IMAGE)
            fprintf(out, "  figure: %s\n", i->raw);
        else if (i->label) {
            /* Facts in a run share the width of their longest label. */
            int width = 0;
            for (const rg_item *j = report->first; j; j = j->next)
                if (j->kind == RG_ITEM_FACT && j->label && width_of(j->label) > width)
                    width = width_of(j->label);
            fputs("  ", out);
            pad(out, i->label, width + 2, false);
            fprintf(out, "%s\n", i->text);
        }
    }
    if (report->notes)
        fputs("\nAssumptions\n", out);
    for (const rg_note *n = report->notes; n; n = n->next)
        fprintf(out, "  - %s\n", n->text);
}

static void write_csv_table(FILE *out, const rg_table *table)
{
    for (int i = 0; i < table->column_count; i++) {
        if (i)
            fputc(',', out);
        rg_csv_put(out, table->columns[i].key);
    }
    fputc('\n', out);
    for (const rg_row *r = table->first; r; r = r->next) {
        for (int i = 0; i < table->column_count; i++) {
            const rg_column *c = &table->columns[i];
            const rg_value *value = &r->cells[i];
            char number[64];
            if (i)
                fputc(',', out);
            if (c->cell == RG_CELL_REAL) {
                rg_number_raw(value->real, number, sizeof number);
                fputs(number, out);
            } else if (c->cell == RG_CELL_INT) {
                fprintf(out, "%lld", value->integer);
            } else if (c->cell == RG_CELL_BOOL) {
                fputs(value->integer ? "true" : "false", out);
            } else if (value->text) {
                rg_csv_put(out, value->text);
            }
        }
        fputc('\n', out);
    }
}

static void write_csv(FILE *out, const rg_report *report, const char *csv_key)
{
    for (const rg_item *i = report->first; i; i = i->next)
        if (i->kind == RG_ITEM_TABLE && (!csv_key || strcmp(csv_key, i->table->key) == 0)) {
            write_csv_table(out, i->table);
            return;
        }
    fputs("key,value\n", out);
    for (const rg_item *i = report->first; i; i = i->next)
        if (i->kind == RG_ITEM_FACT) {
            rg_csv_put(out, i->key);
            fputc(',', out);
            rg_csv_put(out, i->raw);
            fputc('\n', out);
        }
}

static json_t *table_json(const rg_table *table)
{
    json_t *array = json_array();
    for (const rg_row *r = table->first; r; r = r->next) {
        json_t *object = json_object();
        for (int i = 0; i < table->column_count; i++) {
            const rg_column *c = &table->columns[i];
            const rg_value *value = &r->cells[i];
            json_t *j = c->cell == RG_CELL_REAL   ? rg_number_json(value->real)
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
    for (const rg_item *i = report->first; i; i = i->next)
        if (i->kind == RG_ITEM_TABLE)
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
    case RG_FORM_HTML:
        rg_report_write_html(out, report);
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

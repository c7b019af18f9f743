// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "core/file.h"
#include "core/text.h"
#include "report/items.h"

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:70rem;margin:2rem auto;padding:0 "
    "1rem}h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;"
    "font-variant-numeric:tabular-nums}th,td{padding:.25rem "
    ".75rem;text-align:left;border-bottom:1px "
    "solid #e4e4e4}th{color:#555;font-weight:600}.n{text-align:right;white-space:nowrap}"
    ".wide{overflow-x:auto}td:first-child{white-space:nowrap}"
    "figure{margin:1rem 0}figure svg{max-width:100%;height:auto}figcaption,footer,li{color:#555}"
    "div+table{margin-top:1.5rem}footer{margin-top:3rem;font-size:.85rem}pre{white-space:pre-wrap;"
    "overflow-wrap:anywhere;margin:.3rem "
    "0;font:inherit}";

static void escape(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
}

/* Titles of the text form begin with a line feed; a page spaces by style. */
static const char *trimmed(const char *text)
{
    return text ? text + strspn(text, "\n ") : "";
}

static void write_heading(FILE *out, const char *text)
{
    const char *heading = trimmed(text);
    if (!heading[0])
        return;
    fputs("<h2>", out);
    escape(out, heading);
    fputs("</h2>\n", out);
}

static void write_table(FILE *out, const rg_table *table)
{
    write_heading(out, table->title);
    fputs("<div class=\"wide\"><table><thead><tr>", out);
    for (int i = 0; i < table->column_count; i++) {
        const rg_column *c = &table->columns[i];
        if (c->hidden)
            continue;
        const bool number = c->cell == RG_CELL_REAL || c->cell == RG_CELL_INT;
        fprintf(out, "<th scope=\"col\"%s>", number ? " class=\"n\"" : "");
        escape(out, c->heading);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (const rg_row *r = table->first; r; r = r->next) {
        fputs("<tr>", out);
        for (int i = 0; i < table->column_count; i++) {
            const rg_column *c = &table->columns[i];
            if (c->hidden)
                continue;
            char text[512];
            rg_value_text(c, &r->cells[i], text, sizeof text);
            const bool number = c->cell == RG_CELL_REAL || c->cell == RG_CELL_INT;
            fprintf(out, "<td%s>", number ? " class=\"n\"" : "");
            escape(out, text);
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

/* An .svg goes into the page, so that the page is one file; other figures are linked. */
static void write_image(FILE *out, const rg_report *report, const rg_item *image)
{
    fputs("<figure>", out);
    char *svg = NULL;
    size_t length;
    if (rg_text_ends_with(image->raw, ".svg") &&
        rg_file_read(report->arena, image->raw, (size_t)16 << 20, &svg, &length, NULL) == RG_OK) {
        const char *start = strstr(svg, "<svg");
        fputs(start ? start : svg, out);
    } else {
        fputs("<img src=\"", out);
        escape(out, image->raw);
        fputs("\" alt=\"", out);
        escape(out, image->text ? image->text : "");
        fputs("\">", out);
    }
    if (image->text) {
        fputs("<figcaption>", out);
        escape(out, image->text);
        fputs("</figcaption>", out);
    }
    fputs("</figure>\n", out);
}

static void write_items(FILE *out, const rg_report *report)
{
    bool in_facts = false;
    for (const rg_item *i = report->first; i; i = i->next) {
        const bool fact = i->kind == RG_ITEM_FACT;
        if (fact && !i->label)
            continue;
        if (fact != in_facts)
            fputs(fact ? "<table><tbody>\n" : "</tbody></table>\n", out);
        in_facts = fact;
        switch (i->kind) {
        case RG_ITEM_FACT:
            fputs("<tr><td>", out);
            escape(out, trimmed(i->label));
            fputs("</td><td>", out);
            escape(out, i->text);
            fputs("</td></tr>\n", out);
            break;
        case RG_ITEM_LINE:
            if (i->text && trimmed(i->text)[0]) {
                fputs("<pre>", out);
                escape(out, trimmed(i->text));
                fputs("</pre>\n", out);
            }
            break;
        case RG_ITEM_HEADING:
            write_heading(out, i->text);
            break;
        case RG_ITEM_TABLE:
            write_table(out, i->table);
            break;
        case RG_ITEM_IMAGE:
            write_image(out, report, i);
            break;
        }
    }
    if (in_facts)
        fputs("</tbody></table>\n", out);
}

static void write_inputs(FILE *out, const rg_report *report)
{
    const char *role;
    json_t *input;
    fputs("<footer>ridge " RG_VERSION, out);
    json_object_foreach(report->inputs, role, input)
    {
        const char *file = json_string_value(json_object_get(input, "file"));
        const char *digest = json_string_value(json_object_get(input, "sha256"));
        if (!file || !digest)
            continue;
        fputs("<br>", out);
        escape(out, role);
        fputs(": ", out);
        escape(out, file);
        fprintf(out, " (sha256 %.16s)", digest);
    }
    fputs("</footer>\n", out);
}

void rg_report_write_html(FILE *out, const rg_report *report)
{
    fprintf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\"><title>ridge %s</title><style>%s"
        "</style></head><body>\n<h1>ridge %s</h1>\n",
        report->command, style, report->command);
    write_items(out, report);
    if (report->notes) {
        fputs("<h2>Assumptions</h2>\n<ul>\n", out);
        for (const rg_note *n = report->notes; n; n = n->next) {
            fputs("<li>", out);
            escape(out, n->text);
            fputs("</li>\n", out);
        }
        fputs("</ul>\n", out);
    }
    write_inputs(out, report);
    fputs("</body></html>\n", out);
}

/* report/guard_out.c: JUnit XML, Markdown, GitHub and GitLab. */
// SPDX-License-Identifier: Apache-2.0
#include "report/guard_out.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/quantity.h"
#include "core/text.h"

/* Text as XML 1.0 allows it: what no document may hold becomes '?'. */
static void rg_xml(FILE *out, const char *text)
{
    const size_t length = strlen(text);
    const size_t valid = rg_text_utf8_valid(text, length);
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '&')
            fputs("&amp;", out);
        else if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && i >= valid) ||
                 (c == 0xef && i + 2 < valid && (unsigned char)text[i + 1] == 0xbf &&
                  (unsigned char)text[i + 2] >= 0xbe)) /* U+FFFE, U+FFFF */
            fputc(c == '\n' || c == '\t' ? ' ' : '?', out);
        else
            fputc(c, out);
    }
}

static void rg_verdict_title(const rg_verdict *v, char *out, size_t size)
{
    snprintf(out, size, "%s%s%s%s%s%s", v->kernel, v->problem[0] ? " [" : "", v->problem,
             v->problem[0] ? "]" : "", v->dtype[0] ? " " : "", v->dtype);
}

static void rg_cost_text(const rg_verdict *v, const rg_side *side, bool has, char *out, size_t size)
{
    if (!has)
        snprintf(out, size, "-");
    else if (v->rate_unit == NULL)
        rg_quantity_format(side->centre, RG_DIM_SECONDS, 4, out, size);
    else
        rg_quantity_format(1 / side->centre,
                           strcmp(v->rate_unit, "byte/s") == 0   ? RG_DIM_BYTES_PER_S
                           : strcmp(v->rate_unit, "FLOP/s") == 0 ? RG_DIM_FLOPS_PER_S
                                                                 : RG_DIM_PER_SECOND,
                           4, out, size);
}

static void rg_xml_property(FILE *out, const char *title, const char *name, double value)
{
    if (!isfinite(value))
        return;
    fputs("      <property name=\"", out);
    rg_xml(out, title);
    fprintf(out, ": %s\" value=\"%.9g\"/>\n", name, value);
}

static void rg_xml_case(FILE *out, const rg_verdict *v)
{
    char title[1024], base[64], run[64];
    rg_verdict_title(v, title, sizeof title);
    rg_cost_text(v, &v->base, v->has_base, base, sizeof base);
    rg_cost_text(v, &v->run, v->has_run, run, sizeof run);
    fputs("    <testcase classname=\"ridge.guard\" name=\"", out);
    rg_xml(out, title);
    fprintf(out, "\" time=\"%.9f\">\n", v->has_run && v->rate_unit == NULL ? v->run.centre : 0.0);
    const char *element = v->kind == RG_REGRESSED                               ? "failure"
                          : v->kind == RG_MISSING || v->kind == RG_INCOMPARABLE ? "error"
                          : v->kind == RG_INCONCLUSIVE                          ? "skipped"
                                                                                : NULL;
    if (element != NULL) {
        fprintf(out, "      <%s message=\"", element);
        rg_xml(out, v->reason);
        if (strcmp(element, "skipped") == 0) {
            fputs("\"/>\n", out);
        } else {
            fprintf(out, "\" type=\"%s\">", rg_verdict_name(v->kind));
            rg_xml(out, v->base_pos.file == NULL ? "no baseline" : v->base_pos.file);
            if (v->base_pos.file != NULL)
                fprintf(out, ":%d", v->base_pos.line);
            fprintf(out, ": baseline %s, run %s</%s>\n", base, run, element);
        }
    }
    fprintf(out, "      <system-out>%s: ", rg_verdict_name(v->kind));
    rg_xml(out, v->reason);
    fprintf(out, "; baseline %s, run %s</system-out>\n    </testcase>\n", base, run);
}

/* "2026-05-02T10:11:12" out of a recorded date, else the epoch: there is no clock in results. */
static const char *rg_iso_date(const char *date, char out[20])
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    for (int i = 0; i < 19; i++) {
        const bool fits = shape[i] == 'd'   ? isdigit((unsigned char)date[i]) != 0
                          : shape[i] == 'T' ? date[i] == 'T' || date[i] == ' '
                                            : date[i] == shape[i];
        if (!fits)
            return "1970-01-01T00:00:00";
        out[i] = shape[i] == 'T' ? 'T' : date[i];
    }
    out[19] = '\0';
    return out;
}

rg_status rg_guard_write_junit(const char *path, const rg_run *run, const rg_guard_result *result,
                               rg_err *err)
{
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, err));
    FILE *out = file.stream;
    char date[20];
    double total = 0;
    for (int i = 0; i < result->count; i++)
        if (result->items[i].has_run && result->items[i].rate_unit == NULL)
            total += result->items[i].run.centre;
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    fprintf(out,
            "  <testsuite name=\"ridge guard\" package=\"ridge\" id=\"0\" timestamp=\"%s\" "
            "hostname=\"localhost\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" "
            "time=\"%.9f\">\n    <properties>\n",
            rg_iso_date(run->date, date), result->count, result->counts[RG_REGRESSED],
            result->counts[RG_MISSING] + result->counts[RG_INCOMPARABLE],
            result->counts[RG_INCONCLUSIVE], total);
    const char *const facts[][2] = {{"tool", run->tool},     {"device", run->device},
                                    {"driver", run->driver}, {"clocks", run->clocks},
                                    {"commit", run->commit}, {"run", run->path}};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        fprintf(out, "      <property name=\"%s\" value=\"", facts[i][0]);
        rg_xml(out, facts[i][1]);
        fputs("\"/>\n", out);
    }
    for (int i = 0; i < result->count; i++) {
        const rg_verdict *v = &result->items[i];
        char title[1024];
        rg_verdict_title(v, title, sizeof title);
        rg_xml_property(out, title, "change_ratio", v->change);
        rg_xml_property(out, title, "noise_ratio", v->noise);
        rg_xml_property(out, title, "tolerance_ratio", v->tolerance);
        rg_xml_property(out, title, "p_adjusted", v->p_adjusted);
        rg_xml_property(out, title, "efficiency_ratio", v->efficiency);
    }
    fputs("    </properties>\n", out);
    for (int i = 0; i < result->count; i++)
        rg_xml_case(out, &result->items[i]);
    fputs("    <system-out></system-out>\n    <system-err></system-err>\n  </testsuite>\n"
          "</testsuites>\n",
          out);
    return rg_out_commit(&file, err);
}

/* Markdown --------------------------------------------------------------------------------------
 */

static void rg_markdown(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("|\\`*_<>[]", *text) != NULL)
            fputc('\\', out);
        fputc(isprint((unsigned char)*text) || (unsigned char)*text >= 0x80 ? *text : ' ', out);
    }
}

static void rg_markdown_row(FILE *out, const rg_verdict *v)
{
    char title[1024], base[64], run[64], change[32] = "-", efficiency[32] = "-";
    rg_verdict_title(v, title, sizeof title);
    rg_cost_text(v, &v->base, v->has_base, base, sizeof base);
    rg_cost_text(v, &v->run, v->has_run, run, sizeof run);
    if (isfinite(v->change))
        snprintf(change, sizeof change, "%+.1f %%", 100 * v->change);
    if (isfinite(v->efficiency))
        snprintf(efficiency, sizeof efficiency, "%.1f %%", 100 * v->efficiency);
    fprintf(out, "| %s%s%s | ", v->kind == RG_REGRESSED ? "**" : "", rg_verdict_name(v->kind),
            v->kind == RG_REGRESSED ? "**" : "");
    rg_markdown(out, title);
    fprintf(out, " | %s | %s | %s | %s | ", change, base, run, efficiency);
    rg_markdown(out, v->reason);
    fputs(" |\n", out);
}

static const char rg_markdown_head[] =
    "| verdict | kernel | change | baseline | run | efficiency | reason |\n"
    "|---|---|---:|---:|---:|---:|---|\n";

rg_status rg_guard_write_markdown(const char *path, const rg_run *run,
                                  const rg_guard_result *result, rg_err *err)
{
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, err));
    FILE *out = file.stream;
    fprintf(out, "### ridge guard: %s\n\n",
            result->counts[RG_REGRESSED] > 0 ? "regressed" : "no regression");
    const char *separator = "";
    for (int k = 0; k < RG_VERDICT_KINDS; k++)
        if (result->counts[k] > 0) {
            fprintf(out, "%s%d %s", separator, result->counts[k],
                    rg_verdict_name((rg_verdict_kind)k));
            separator = ", ";
        }
    fprintf(out, "%s%d kernels; measured by ", separator[0] ? " of " : "", result->count);
    rg_markdown(out, run->tool);
    if (run->device[0] != '\0') {
        fputs(" on ", out);
        rg_markdown(out, run->device);
    }
    fputs(".\n\n", out);
    for (int i = 0; i < run->note_count; i++) {
        fputs("- ", out);
        rg_markdown(out, run->notes[i]);
        fputs(".\n", out);
    }
    for (int i = 0; i < result->warning_count; i++) {
        fputs("- ", out);
        rg_markdown(out, result->warnings[i]);
        fputs(".\n", out);
    }
    int open = 0;
    for (int i = 0; i < result->count; i++)
        open += result->items[i].kind != RG_SAME;
    if (open > 0) {
        fprintf(out, "\n%s", rg_markdown_head);
        for (int i = 0; i < result->count; i++)
            if (result->items[i].kind != RG_SAME)
                rg_markdown_row(out, &result->items[i]);
    }
    if (open < result->count) {
        fprintf(out, "\n<details><summary>%d ok</summary>\n\n%s", result->count - open,
                rg_markdown_head);
        for (int i = 0; i < result->count; i++)
            if (result->items[i].kind == RG_SAME)
                rg_markdown_row(out, &result->items[i]);
        fputs("\n</details>\n", out);
    }
    return rg_out_commit(&file, err);
}

/* GitHub and GitLab -----------------------------------------------------------------------------
 */

/* Workflow commands escape %, CR and LF everywhere, and ':' and ',' in properties. */
static void rg_github_escape(FILE *out, const char *text, bool property)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
            fprintf(out, "%%%02X", c);
        else
            fputc(c, out);
    }
}

static const char *rg_github_level(rg_verdict_kind kind)
{
    switch (kind) {
    case RG_REGRESSED:
    case RG_MISSING:
    case RG_INCOMPARABLE:
        return "error";
    case RG_INCONCLUSIVE:
        return "warning";
    case RG_FASTER:
    case RG_NEW:
        return "notice";
    default:
        return NULL;
    }
}

static rg_pos rg_verdict_pos(const rg_verdict *v)
{
    return v->base_pos.file != NULL ? v->base_pos : v->run_pos;
}

void rg_guard_print_github(FILE *out, const rg_guard_result *result)
{
    for (int i = 0; i < result->count; i++) {
        const rg_verdict *v = &result->items[i];
        const char *level = rg_github_level(v->kind);
        if (level == NULL)
            continue;
        const rg_pos pos = rg_verdict_pos(v);
        char title[1024];
        rg_verdict_title(v, title, sizeof title);
        fprintf(out, "::%s ", level);
        if (pos.file != NULL) {
            fputs("file=", out);
            rg_github_escape(out, pos.file, true);
            fprintf(out, ",line=%d,", pos.line);
        }
        fputs("title=", out);
        rg_github_escape(out, rg_verdict_name(v->kind), true);
        rg_github_escape(out, ": ", true);
        rg_github_escape(out, title, true);
        fputs("::", out);
        rg_github_escape(out, v->reason, false);
        fputc('\n', out);
    }
}

rg_status rg_guard_write_gitlab(const char *path, const rg_guard_result *result, rg_err *err)
{
    json_t *list = json_array();
    for (int i = 0; i < result->count; i++) {
        const rg_verdict *v = &result->items[i];
        if (rg_github_level(v->kind) == NULL)
            continue;
        const rg_pos pos = rg_verdict_pos(v);
        char title[1024], text[1600], print[40];
        rg_verdict_title(v, title, sizeof title);
        snprintf(text, sizeof text, "%s: %s: %s", rg_verdict_name(v->kind), title, v->reason);
        uint64_t hash = 1469598103934665603u; /* the same finding keeps its mark between runs */
        for (const char *p = title; *p != '\0'; p++)
            hash = (hash ^ (unsigned char)*p) * 1099511628211u;
        snprintf(print, sizeof print, "ridge-%d-%016llx", (int)v->kind, (unsigned long long)hash);
        json_t *item = json_object(), *location = json_object(), *lines = json_object();
        json_object_set_new(item, "description", json_string_nocheck(text));
        json_object_set_new(item, "check_name", json_string("ridge guard"));
        json_object_set_new(item, "fingerprint", json_string(print));
        json_object_set_new(item, "severity",
                            json_string(v->kind == RG_REGRESSED ? "critical"
                                        : v->kind == RG_MISSING || v->kind == RG_INCOMPARABLE
                                            ? "major"
                                        : v->kind == RG_INCONCLUSIVE ? "minor"
                                                                     : "info"));
        json_object_set_new(lines, "begin", json_integer(pos.line > 0 ? pos.line : 1));
        json_object_set_new(location, "path",
                            json_string_nocheck(pos.file != NULL ? pos.file : "run"));
        json_object_set_new(location, "lines", lines);
        json_object_set_new(item, "location", location);
        json_array_append_new(list, item);
    }
    char *text = json_dumps(list, JSON_INDENT(2));
    json_decref(list);
    if (text == NULL)
        return rg_fail(err, RG_ERR_LIMIT, (rg_pos){path, 0, 0},
                       "the report cannot be written as JSON");
    rg_out_file file;
    rg_status status = rg_out_open(&file, path, err);
    if (status == RG_OK) {
        fprintf(file.stream, "%s\n", text);
        status = rg_out_commit(&file, err);
    }
    free(text);
    return status;
}

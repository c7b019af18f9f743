/* report/report.h: the one way out: a result as text, CSV or JSON.
 *
 * Reads core. A command builds one rg_report: facts and tables in order. The writer prints it in
 * the form that was asked for. JSON is "schema", "ridge_version", "inputs", "assumptions", then
 * what the command put in.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_REPORT_REPORT_H
#define RG_REPORT_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "core/arena.h"
#include "core/quantity.h"

typedef enum rg_form { RG_FORM_TEXT, RG_FORM_CSV, RG_FORM_JSON, RG_FORM_HTML } rg_form;

typedef struct rg_report rg_report;

/** A new report of "ridge.<command>/<version>". */
rg_report *rg_report_new(rg_arena *arena, const char *command, int version, rg_form form,
                         rg_err *err);
/** A file that the result depends on; its SHA-256 goes into inputs. role: "hardware", "model". */
rg_status rg_report_input(rg_report *report, const char *role, const char *path, rg_err *err);
/** A setting that the result depends on (JSON inputs.<key>). */
void rg_report_setting(rg_report *report, const char *key, const char *value);
/** Something assumed, borrowed or defaulted, in words. Text form prints it under "Assumptions". */
void rg_report_assume(rg_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** A line of text for people (text form only); empty string for a blank line. */
void rg_report_line(rg_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** A heading of what follows: a line of its own in text, an h2 in HTML. */
void rg_report_heading(rg_report *report, const char *text);
/** One figure: a line "label   4.8 TB/s" in text; key with SI suffix in JSON and CSV. */
void rg_report_figure(rg_report *report, const char *key, const char *label, double value,
                      rg_dim dim);
void rg_report_text(rg_report *report, const char *key, const char *label, const char *value);
void rg_report_int(rg_report *report, const char *key, const char *label, long long value);
/** Anything else into the JSON object; steals value. */
void rg_report_json(rg_report *report, const char *key, json_t *value);

/** A figure that was drawn for this report; HTML shows an .svg in place. */
void rg_report_image(rg_report *report, const char *path, const char *caption);

/** A table: JSON array of objects under key, aligned columns in text, rows in CSV. */
typedef struct rg_table rg_table;
typedef enum rg_cell { RG_CELL_TEXT, RG_CELL_REAL, RG_CELL_INT, RG_CELL_BOOL } rg_cell;
rg_table *rg_report_table(rg_report *report, const char *key, const char *title);
/** A column: key carries the SI suffix ("time_s"); heading and dim are for text, where values are
 * printed with units by dim. hidden columns appear in JSON and CSV only. */
void rg_table_column(rg_table *table, const char *key, const char *heading, rg_cell cell,
                     rg_dim dim, bool hidden);
/** Cells of the next row, in order of the columns. A NaN real is null in JSON, empty in CSV, "-" in
 * text. */
void rg_table_real(rg_table *table, double value);
void rg_table_int(rg_table *table, long long value);
void rg_table_text(rg_table *table, const char *value);
void rg_table_bool(rg_table *table, bool value);

/** Print to path (whole or not at all), or to stdout when NULL. CSV prints the table named by
 * csv_key (NULL: the first). */
rg_status rg_report_write(rg_report *report, const char *path, const char *csv_key, rg_err *err);

#endif

/* report/items.h: what a report holds, for its writers only.
 *
 * Reads report/report.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_REPORT_ITEMS_H
#define RG_REPORT_ITEMS_H

#include <stdio.h>

#include "report/report.h"

enum { RG_REPORT_COLUMNS = 48, RG_REPORT_DIGITS = 4 };

typedef struct rg_column {
    const char *key, *heading;
    rg_cell cell;
    rg_dim dim;
    bool hidden;
} rg_column;

typedef struct rg_value {
    double real;
    long long integer;
    const char *text;
} rg_value;

typedef struct rg_row {
    struct rg_row *next;
    rg_value cells[];
} rg_row;

struct rg_table {
    rg_report *report;
    const char *key, *title;
    rg_column columns[RG_REPORT_COLUMNS];
    int column_count, filled;
    rg_row *first, *last;
};

typedef enum rg_item_kind {
    RG_ITEM_LINE,
    RG_ITEM_HEADING,
    RG_ITEM_FACT,
    RG_ITEM_TABLE,
    RG_ITEM_IMAGE
} rg_item_kind;

typedef struct rg_item {
    struct rg_item *next;
    rg_item_kind kind;
    const char *key, *label, *text, *raw; /* fact: as people read it; as CSV has it */
    rg_table *table;
} rg_item;

typedef struct rg_note {
    struct rg_note *next;
    const char *text;
} rg_note;

struct rg_report {
    rg_arena *arena;
    rg_form form;
    const char *command;
    json_t *json, *inputs, *assumptions;
    rg_item *first, *last;
    rg_note *notes, *last_note;
    bool failed; /* out of memory somewhere; rg_report_write says so */
};

/** Text of a cell as people read it. */
void rg_value_text(const rg_column *column, const rg_value *value, char *out, size_t size);
/** A number with unit, "-" when it is not finite. */
void rg_number_text(double value, rg_dim dim, char *out, size_t size);
/** A number in full, empty when it is not finite. */
void rg_number_raw(double value, char *out, size_t size);
/** A number for JSON, null when it is not finite. */
json_t *rg_number_json(double value);

/** The report as one self-contained HTML page. */
void rg_report_write_html(FILE *out, const rg_report *report);

#endif

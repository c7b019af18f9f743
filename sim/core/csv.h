/* core/csv.h: delimited text with a header, read row by row in constant memory.
 *
 * Reads core/text.h, core/err.h. RFC 4180 quoting, CRLF or LF, missing last line end, UTF-8 BOM,
 * comment lines that start with '#' before the header. A row with another number of fields than the
 * header is RG_ERR_INPUT at its line.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_CSV_H
#define RG_CORE_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/arena.h"

typedef struct rg_csv rg_csv;

/** Open a file and read its header. The reader lives in the arena; close it for the handle. */
rg_status rg_csv_open(rg_arena *arena, const char *path, rg_csv **out, rg_err *err);
/** The same over text in memory, which must outlive the reader. */
rg_status rg_csv_open_text(rg_arena *arena, const char *name, const char *text, size_t length,
                           rg_csv **out, rg_err *err);
void rg_csv_close(rg_csv *csv);

/** Column by name, -1 when absent; the required form fails with the nearest name. */
int rg_csv_find(const rg_csv *csv, const char *column);
rg_status rg_csv_column(const rg_csv *csv, const char *column, int *out, rg_err *err);
int rg_csv_columns(const rg_csv *csv);
const char *rg_csv_name(const rg_csv *csv, int column);

/** Next row; *more is false at the end. Fields stay valid until the next call. */
rg_status rg_csv_next(rg_csv *csv, bool *more, rg_err *err);
const char *rg_csv_text(const rg_csv *csv, int column);
rg_status rg_csv_real(const rg_csv *csv, int column, double *out, rg_err *err);
rg_status rg_csv_int(const rg_csv *csv, int column, int64_t *out, rg_err *err);
/** Place of a field of the current row. */
rg_pos rg_csv_pos(const rg_csv *csv, int column);

/** Write one field, in quotes where it needs them. */
void rg_csv_put(FILE *to, const char *text);

#endif

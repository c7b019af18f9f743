// SPDX-License-Identifier: Apache-2.0
#include "core/csv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

enum { MAX_COLUMNS = 512, MAX_LINE = 1 << 20 };

struct rg_csv {
    const char *file;
    FILE *stream; /* or: */
    const char *text, *end;
    rg_arena *arena;
    char *line; /* the record, quotes removed, fields 0-terminated */
    size_t room, length;
    int line_number; /* of the record's first line */
    int next_line;
    int count; /* fields of the record */
    char **fields;
    int *columns; /* column of each field in its line, from 1 */
    int header_count;
    const char **header;
};

static int next_byte(rg_csv *csv)
{
    if (csv->stream)
        return getc_unlocked(csv->stream);
    return csv->text < csv->end ? (unsigned char)*csv->text++ : EOF;
}

static int peek_byte(rg_csv *csv)
{
    if (!csv->stream)
        return csv->text < csv->end ? (unsigned char)*csv->text : EOF;
    const int c = getc_unlocked(csv->stream);
    if (c != EOF)
        ungetc(c, csv->stream);
    return c;
}

static rg_status push(rg_csv *csv, char c, rg_err *err)
{
    if (csv->length + 1 >= csv->room) {
        if (csv->room >= MAX_LINE)
            return rg_fail(err, RG_ERR_LIMIT, (rg_pos){csv->file, csv->line_number, 1},
                           "a row of more than %d bytes", MAX_LINE);
        char *larger = rg_arena_alloc(csv->arena, csv->room * 2, 1, err);
        if (!larger)
            return RG_ERR_LIMIT;
        memcpy(larger, csv->line, csv->length);
        /* Fields are offsets until the record is whole, so moving is fine. */
        csv->line = larger;
        csv->room *= 2;
    }
    csv->line[csv->length++] = c;
    return RG_OK;
}

/* One record into csv->line; *more false at the end of the file. Blank lines are passed over. */
static rg_status read_record(rg_csv *csv, bool *more, rg_err *err)
{
    size_t starts[MAX_COLUMNS];
    *more = false;
    int c;
    do { /* blank lines */
        csv->line_number = csv->next_line;
        c = next_byte(csv);
        if (c == '\r' && peek_byte(csv) == '\n')
            c = next_byte(csv);
        if (c == '\n')
            csv->next_line++;
    } while (c == '\n');
    if (c == EOF)
        return RG_OK;
    *more = true;
    csv->length = 0;
    csv->count = 0;
    int column = 1;
    bool ended = false;
    while (!ended) {
        if (csv->count == MAX_COLUMNS)
            return rg_fail(err, RG_ERR_LIMIT, (rg_pos){csv->file, csv->line_number, column},
                           "more than %d columns", MAX_COLUMNS);
        starts[csv->count] = csv->length;
        csv->columns[csv->count++] = column;
        bool quoted = c == '"';
        const rg_pos opened = {csv->file, csv->next_line, column};
        if (quoted) {
            c = next_byte(csv);
            column++;
        }
        for (;; c = next_byte(csv), column++) {
            if (c == EOF) {
                if (quoted)
                    return rg_fail(err, RG_ERR_INPUT, opened, "a quote is opened and never closed");
                ended = true;
                break;
            }
            if (quoted) {
                if (c == '"') {
                    if (peek_byte(csv) == '"')
                        next_byte(csv);
                    else {
                        quoted = false;
                        continue;
                    }
                }
                if (c == '\n')
                    csv->next_line++;
            } else if (c == ',') {
                break;
            } else if (c == '\n' ||
                       (c == '\r' && (peek_byte(csv) == '\n' || peek_byte(csv) == EOF))) {
                if (c == '\r')
                    next_byte(csv);
                csv->next_line++;
                ended = true;
                break;
            }
            if (c == 0)
                return rg_fail(err, RG_ERR_INPUT, (rg_pos){csv->file, csv->next_line, column},
                               "a NUL byte; is this a text file?");
            RG_TRY(push(csv, (char)c, err));
        }
        RG_TRY(push(csv, 0, err));
        if (!ended) {
            c = next_byte(csv);
            column++;
        }
    }
    for (int i = 0; i < csv->count; i++)
        csv->fields[i] = csv->line + starts[i];
    return RG_OK;
}

static rg_status read_header(rg_csv *csv, rg_err *err)
{
    bool more;
    do {
        RG_TRY(read_record(csv, &more, err));
        if (!more)
            return rg_fail(err, RG_ERR_INPUT, (rg_pos){csv->file, 1, 1},
                           "is empty; expected a header of column names");
        if (strncmp(csv->fields[0], "\xef\xbb\xbf", 3) == 0)
            csv->fields[0] += 3;
    } while (csv->fields[0][0] == '#');
    csv->header_count = csv->count;
    csv->header = RG_NEW(csv->arena, const char *, csv->count + 1, err);
    if (!csv->header)
        return RG_ERR_LIMIT;
    for (int i = 0; i < csv->count; i++) {
        csv->header[i] = rg_arena_strdup(csv->arena, csv->fields[i], err);
        if (!csv->header[i])
            return RG_ERR_LIMIT;
        for (int j = 0; j < i; j++)
            if (csv->header[i][0] && strcmp(csv->header[i], csv->header[j]) == 0)
                return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(csv, i), "column '%s' is given twice",
                               csv->header[i]);
    }
    return RG_OK;
}

static rg_status open_common(rg_arena *arena, const char *name, rg_csv **out, rg_err *err)
{
    rg_csv *csv = RG_NEW(arena, rg_csv, 1, err);
    if (!csv)
        return RG_ERR_LIMIT;
    csv->arena = arena;
    csv->room = 1024;
    csv->next_line = 1;
    csv->file = rg_arena_strdup(arena, name, err);
    csv->line = rg_arena_alloc(arena, csv->room, 1, err);
    csv->fields = RG_NEW(arena, char *, MAX_COLUMNS, err);
    csv->columns = RG_NEW(arena, int, MAX_COLUMNS, err);
    *out = csv;
    return csv->file && csv->line && csv->fields && csv->columns ? RG_OK : RG_ERR_LIMIT;
}

rg_status rg_csv_open(rg_arena *arena, const char *path, rg_csv **out, rg_err *err)
{
    RG_TRY(open_common(arena, path, out, err));
    (*out)->stream = fopen(path, "rb");
    if (!(*out)->stream)
        return rg_fail(err, RG_ERR_IO, (rg_pos){.file = path}, "cannot be opened: %s",
                       strerror(errno));
    const rg_status status = read_header(*out, err);
    if (status != RG_OK)
        rg_csv_close(*out);
    return status;
}

rg_status rg_csv_open_text(rg_arena *arena, const char *name, const char *text, size_t length,
                           rg_csv **out, rg_err *err)
{
    RG_TRY(open_common(arena, name, out, err));
    (*out)->text = text;
    (*out)->end = text + length;
    return read_header(*out, err);
}

void rg_csv_close(rg_csv *csv)
{
    if (csv->stream)
        fclose(csv->stream);
    csv->stream = NULL;
    csv->text = csv->end = NULL;
}

int rg_csv_find(const rg_csv *csv, const char *column)
{
    for (int i = 0; i < csv->header_count; i++)
        if (strcmp(csv->header[i], column) == 0)
            return i;
    return -1;
}

rg_status rg_csv_column(const rg_csv *csv, const char *column, int *out, rg_err *err)
{
    *out = rg_csv_find(csv, column);
    if (*out >= 0)
        return RG_OK;
    const char *nearest = rg_text_nearest(column, csv->header);
    return rg_fail(err, RG_ERR_INPUT, (rg_pos){csv->file, 1, 1}, "no column '%s'%s%s%s", column,
                   nearest ? "; is it '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

int rg_csv_columns(const rg_csv *csv)
{
    return csv->header_count;
}
const char *rg_csv_name(const rg_csv *csv, int column)
{
    return csv->header[column];
}

rg_status rg_csv_next(rg_csv *csv, bool *more, rg_err *err)
{
    *more = false;
    if (!csv->stream && !csv->text)
        return RG_OK;
    RG_TRY(read_record(csv, more, err));
    if (*more && csv->count != csv->header_count)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){csv->file, csv->line_number, 1},
                       "row has %d fields, the header %d", csv->count, csv->header_count);
    return RG_OK;
}

const char *rg_csv_text(const rg_csv *csv, int column)
{
    return csv->fields[column];
}

rg_status rg_csv_real(const rg_csv *csv, int column, double *out, rg_err *err)
{
    if (rg_text_to_real(csv->fields[column], out))
        return RG_OK;
    return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(csv, column), "%s '%s' is not a finite number",
                   csv->header[column], csv->fields[column]);
}

rg_status rg_csv_int(const rg_csv *csv, int column, int64_t *out, rg_err *err)
{
    if (rg_text_to_int(csv->fields[column], out))
        return RG_OK;
    return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(csv, column), "%s '%s' is not a whole number",
                   csv->header[column], csv->fields[column]);
}

rg_pos rg_csv_pos(const rg_csv *csv, int column)
{
    return (rg_pos){csv->file, csv->line_number, csv->columns[column]};
}

void rg_csv_put(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

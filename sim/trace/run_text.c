/* trace/run_text.c: rows, numbers in any locale, and units of tool outputs. */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "core/text.h"

/* Rows ------------------------------------------------------------------------------------------
 */

typedef struct rg_splitter {
    rg_arena *arena;
    const char *path, *text;
    size_t length, at;
    int line;
    char delimiter;
    const char **fields; /* of the record under way */
    int count, capacity;
} rg_splitter;

static rg_status rg_split_keep(rg_splitter *s, const char *field, rg_err *err)
{
    if (s->count == s->capacity) {
        const int capacity = s->capacity == 0 ? 32 : 2 * s->capacity;
        const char **grown = RG_NEW(s->arena, const char *, capacity, err);
        if (grown == NULL)
            return RG_ERR_LIMIT;
        if (s->count > 0)
            memcpy(grown, s->fields, (size_t)s->count * sizeof *grown);
        s->fields = grown;
        s->capacity = capacity;
    }
    s->fields[s->count++] = field;
    return RG_OK;
}

static rg_status rg_split_quoted(rg_splitter *s, rg_err *err)
{
    const int opened = s->line;
    char *out = rg_arena_alloc(s->arena, 1, 1, err); /* sized below, once the end is known */
    if (out == NULL)
        return RG_ERR_LIMIT;
    size_t end = s->at + 1;
    while (end < s->length) {
        if (s->text[end] == '"') {
            if (end + 1 < s->length && s->text[end + 1] == '"')
                end++;
            else
                break;
        }
        end++;
    }
    if (end >= s->length)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){s->path, opened, 1},
                       "a quote opens here and is never closed; close it or remove it");
    out = RG_NEW(s->arena, char, end - s->at + 1, err);
    if (out == NULL)
        return RG_ERR_LIMIT;
    size_t n = 0;
    for (size_t i = s->at + 1; i < end; i++) {
        if (s->text[i] == '"')
            i++;
        if (s->text[i] == '\n')
            s->line++;
        out[n++] = s->text[i] == '\0' ? ' ' : s->text[i];
    }
    s->at = end + 1;
    while (s->at < s->length && s->text[s->at] != s->delimiter && s->text[s->at] != '\n')
        s->at++; /* blanks, or text glued to a closing quote, which no tool writes */
    return rg_split_keep(s, out, err);
}

static rg_status rg_split_plain(rg_splitter *s, rg_err *err)
{
    size_t from = s->at;
    while (s->at < s->length && s->text[s->at] != s->delimiter && s->text[s->at] != '\n')
        s->at++;
    size_t to = s->at;
    while (from < to && isspace((unsigned char)s->text[from]))
        from++;
    while (to > from && isspace((unsigned char)s->text[to - 1]))
        to--;
    char *field = rg_arena_copy(s->arena, s->text + from, to - from, err);
    if (field == NULL)
        return RG_ERR_LIMIT;
    for (size_t i = 0; i < to - from; i++)
        if (field[i] == '\0')
            field[i] = ' ';
    return rg_split_keep(s, field, err);
}

/* A quote counts only at the start of a field: program output has stray ones. */
static rg_status rg_split_record(rg_splitter *s, rg_err *err)
{
    s->count = 0;
    for (;;) {
        size_t look = s->at;
        while (look < s->length && (s->text[look] == ' ' || s->text[look] == '\t') &&
               s->text[look] != s->delimiter)
            look++;
        if (look < s->length && s->text[look] == '"') {
            s->at = look;
            RG_TRY(rg_split_quoted(s, err));
        } else {
            RG_TRY(rg_split_plain(s, err));
        }
        if (s->at >= s->length)
            return RG_OK;
        if (s->text[s->at++] == '\n') {
            s->line++;
            return RG_OK;
        }
        if (s->at == s->length) /* a delimiter as the last byte: one more empty field */
            return rg_split_keep(s, "", err);
    }
}

rg_status rg_rows_split(rg_arena *arena, const char *path, const char *text, size_t length,
                        char delimiter, int first_line, rg_rows *out, rg_err *err)
{
    rg_splitter s = {.arena = arena,
                     .path = path,
                     .text = text,
                     .length = length,
                     .line = first_line,
                     .delimiter = delimiter};
    *out = (rg_rows){0};
    while (s.at < length) {
        const int line = s.line;
        RG_TRY(rg_split_record(&s, err));
        if (out->count == out->capacity) {
            const int capacity = out->capacity == 0 ? 64 : 2 * out->capacity;
            rg_row *grown = RG_NEW(arena, rg_row, capacity, err);
            if (grown == NULL)
                return RG_ERR_LIMIT;
            if (out->count > 0)
                memcpy(grown, out->items, (size_t)out->count * sizeof *grown);
            out->items = grown;
            out->capacity = capacity;
        }
        rg_row *row = &out->items[out->count++];
        *row = (rg_row){.line = line, .count = s.count};
        if (s.count == 1 && s.fields[0][0] == '\0')
            row->count = 0;
        row->field = RG_NEW(arena, const char *, s.count, err);
        if (row->field == NULL)
            return RG_ERR_LIMIT;
        memcpy(row->field, s.fields, (size_t)s.count * sizeof *row->field);
    }
    return RG_OK;
}

bool rg_text_same(const char *a, const char *b)
{
    for (;;) {
        while (isspace((unsigned char)*a))
            a++;
        while (isspace((unsigned char)*b))
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
        a++;
        b++;
    }
}

bool rg_text_has(const char *text, const char *part)
{
    const size_t n = strlen(part);
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == n)
            return true;
    }
    return n == 0;
}

int rg_row_find(const rg_row *header, const char *const *names)
{
    for (; *names != NULL; names++)
        for (int i = 0; i < header->count; i++)
            if (rg_text_same(header->field[i], *names))
                return i;
    return -1;
}

/* Numbers ---------------------------------------------------------------------------------------
 */

/* The value without group separators that cannot be a decimal sign: blank, U+00A0, U+202F, U+2009,
 * apostrophe, U+2019, underscore. False when something else than digits, signs, points, commas and
 * an exponent is left. */
static bool rg_number_bare(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (p[0] == 0xc2 && p[1] == 0xa0) {
            p += 1;
            continue;
        }
        if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xaf || p[2] == 0x89 || p[2] == 0x99)) {
            p += 2;
            continue;
        }
        if (*p == ' ' || *p == '\'' || *p == '_')
            continue;
        if (!isdigit(*p) && strchr("+-.,eE", *p) == NULL)
            return false;
        if (n + 1 >= size)
            return false;
        out[n++] = (char)*p;
    }
    out[n] = '\0';
    return n > 0 && strpbrk(out, "0123456789") != NULL;
}

void rg_locale_see(rg_locale *locale, const char *text)
{
    char bare[64];
    if (!rg_number_bare(text, bare, sizeof bare))
        return;
    bare[strcspn(bare, "eE")] = '\0';
    const char *point = strrchr(bare, '.'), *comma = strrchr(bare, ',');
    if (point == NULL && comma == NULL)
        return;
    if (point != NULL && comma != NULL) {
        if (point > comma)
            locale->as_point++;
        else
            locale->as_comma++;
        return;
    }
    const char sign = point != NULL ? '.' : ',';
    const char *last = point != NULL ? point : comma;
    const bool repeated = strchr(bare, sign) != last;
    const char *digits = bare + (*bare == '-' || *bare == '+');
    const size_t before = (size_t)(last - digits), behind = strlen(last + 1);
    if (repeated) { /* groups: the other one is the decimal sign */
        if (sign == '.')
            locale->as_comma++;
        else
            locale->as_point++;
    } else if (behind != 3 || before == 0 || before > 3 || digits[0] == '0') { /* a decimal sign */
        if (sign == '.')
            locale->as_point++;
        else
            locale->as_comma++;
    } /* else 117.344: either */
}

rg_status rg_locale_settle(rg_locale *locale, rg_pos pos, rg_err *err)
{
    if (locale->as_point > 0 && locale->as_comma > 0)
        return rg_fail(err, RG_ERR_INPUT, pos,
                       "numbers of two locales in one file: '%d' values need a decimal point and "
                       "'%d' a decimal comma; export it with one locale (LC_ALL=C)",
                       locale->as_point, locale->as_comma);
    locale->decimal = locale->as_comma > 0 ? ',' : '.';
    locale->certain = locale->as_comma > 0 || locale->as_point > 0;
    return RG_OK;
}

bool rg_locale_number(const rg_locale *locale, const char *text, double *out)
{
    char bare[64], clean[64];
    if (!rg_number_bare(text, bare, sizeof bare))
        return false;
    size_t n = 0;
    for (const char *p = bare; *p != '\0'; p++) {
        if (*p == locale->decimal)
            clean[n++] = '.';
        else if (*p != '.' && *p != ',')
            clean[n++] = *p;
    }
    clean[n] = '\0';
    return rg_text_to_real(clean[0] == '+' ? clean + 1 : clean, out);
}

/* Units -----------------------------------------------------------------------------------------
 */

typedef struct rg_unit {
    const char *name;
    double factor;
} rg_unit;

static const rg_unit rg_time_units[] = {
    {"s", 1},
    {"sec", 1},
    {"second", 1},
    {"seconds", 1},
    {"ms", 1e-3},
    {"msec", 1e-3},
    {"msecond", 1e-3},
    {"millisecond", 1e-3},
    {"milliseconds", 1e-3},
    {"us", 1e-6},
    {"usec", 1e-6},
    {"usecond", 1e-6},
    {"microsecond", 1e-6},
    {"microseconds", 1e-6},
    {"\xc2\xb5s", 1e-6},
    {"\xce\xbcs", 1e-6},
    {"ns", 1e-9},
    {"nsec", 1e-9},
    {"nsecond", 1e-9},
    {"nanosecond", 1e-9},
    {"nanoseconds", 1e-9},
    {"ps", 1e-12},
    {"min", 60},
    {NULL, 0},
};

static const rg_unit rg_other_units[] = {
    {"", 1},
    {"%", 1},
    {"inst", 1},
    {"cycle", 1},
    {"cycles", 1},
    {"thread", 1},
    {"block", 1},
    {"warp", 1},
    {"sector", 1},
    {"request", 1},
    {"register/thread", 1},
    {"byte/block", 1},
    {"kbyte/block", 1e3},
    {"byte", 1},
    {"bytes", 1},
    {"b", 1},
    {"kbyte", 1e3},
    {"mbyte", 1e6},
    {"gbyte", 1e9},
    {"tbyte", 1e12},
    {"kb", 1e3},
    {"mb", 1e6},
    {"gb", 1e9},
    {"tb", 1e12},
    {"kib", 1024},
    {"mib", 1048576},
    {"gib", 1073741824},
    {"hz", 1},
    {"khz", 1e3},
    {"mhz", 1e6},
    {"ghz", 1e9},
    {"cycle/second", 1},
    {"cycle/msecond", 1e3},
    {"cycle/usecond", 1e6},
    {"cycle/nsecond", 1e9},
    {"cycle/s", 1},
    {"cycle/ms", 1e3},
    {"cycle/us", 1e6},
    {"cycle/ns", 1e9},
    {"inst/cycle", 1},
    {"warp/cycle", 1},
    {"kblock", 1e3},
    {"kinst", 1e3},
    {"kcycle", 1e3},
    {NULL, 0},
};

static bool rg_unit_in(const rg_unit *units, const char *name, double *factor)
{
    for (; units->name != NULL; units++)
        if (rg_text_same(units->name, name)) {
            *factor = units->factor;
            return true;
        }
    return false;
}

bool rg_unit_is_time(const char *unit, double *factor)
{
    return rg_unit_in(rg_time_units, unit, factor);
}

bool rg_unit_is_rate(const char *unit, double *factor, const char **name)
{
    static const struct {
        const char *spelled;
        double factor;
        const char *name;
    } rates[] = {
        {"flop/s", 1, "FLOP/s"},           {"flops", 1, "FLOP/s"},
        {"gflops", 1e9, "FLOP/s"},         {"gflop/s", 1e9, "FLOP/s"},
        {"gflops/s", 1e9, "FLOP/s"},       {"tflops", 1e12, "FLOP/s"},
        {"tflop/s", 1e12, "FLOP/s"},       {"tflops/s", 1e12, "FLOP/s"},
        {"tops", 1e12, "FLOP/s"},          {"pflop/s", 1e15, "FLOP/s"},
        {"pflops", 1e15, "FLOP/s"},        {"gb/s", 1e9, "byte/s"},
        {"gbps", 1e9, "byte/s"},           {"tb/s", 1e12, "byte/s"},
        {"mb/s", 1e6, "byte/s"},           {"b/s", 1, "byte/s"},
        {"gib/s", 1073741824.0, "byte/s"},
    };
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        if (rg_text_same(rates[i].spelled, unit)) {
            *factor = rates[i].factor;
            *name = rates[i].name;
            return true;
        }
    return false;
}

bool rg_unit_factor(const char *unit, double *factor)
{
    const char *name;
    return rg_unit_in(rg_other_units, unit, factor) || rg_unit_is_time(unit, factor) ||
           rg_unit_is_rate(unit, factor, &name);
}

/* JSON scalars ----------------------------------------------------------------------------------
 */

double rg_json_number(rg_node *map, const char *key)
{
    const rg_node *node = rg_map_find(map, key);
    double value;
    if (node == NULL || node->kind != RG_NODE_SCALAR || !rg_text_to_real(node->text, &value) ||
        !isfinite(value))
        return NAN;
    return value;
}

const char *rg_json_text(rg_node *map, const char *key)
{
    const rg_node *node = rg_map_find(map, key);
    if (node == NULL || node->kind != RG_NODE_SCALAR || rg_node_is_null(node))
        return "";
    return node->text;
}

rg_node *rg_json_child(rg_node *map, const char *key, rg_node_kind kind)
{
    rg_node *node = rg_map_find(map, key);
    return node != NULL && node->kind == kind ? node : NULL;
}

/* fit/guard_update.c: baselines as sorted, diffable YAML; updates that touch only what is named. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/guard.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rg_text_out {
    rg_arena *arena;
    char *text;
    size_t length, capacity;
    bool failed;
} rg_text_out;

static void rg_out_bytes(rg_text_out *o, const char *text, size_t length)
{
    if (o->length + length + 1 > o->capacity) {
        size_t capacity = 2 * o->capacity + length + 4096;
        char *grown = rg_arena_alloc(o->arena, capacity, 1, NULL);
        if (grown == NULL) {
            o->failed = true;
            return;
        }
        if (o->length > 0)
            memcpy(grown, o->text, o->length);
        o->text = grown;
        o->capacity = capacity;
    }
    if (o->text == NULL)
        return;
    memcpy(o->text + o->length, text, length);
    o->length += length;
    o->text[o->length] = '\0';
}

static void rg_out_line(rg_text_out *o, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void rg_out_line(rg_text_out *o, const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof line)
        o->failed = true;
    else
        rg_out_bytes(o, line, (size_t)n);
}

/* A scalar that YAML reads back as the same string: in double quotes with escapes. */
static const char *rg_yaml_quote(char *out, size_t size, const char *text)
{
    size_t n = 0;
    out[n++] = '"';
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0' && n + 8 < size; p++) {
        if (*p == '"' || *p == '\\') {
            out[n++] = '\\';
            out[n++] = (char)*p;
        } else if (*p < 0x20 || *p == 0x7f) {
            n += (size_t)snprintf(out + n, size - n, "\\x%02x", *p);
        } else {
            out[n++] = (char)*p;
        }
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}

static void rg_out_text(rg_text_out *o, const char *key, const char *value)
{
    char quoted[1900];
    if (value != NULL && value[0] != '\0')
        rg_out_line(o, "    %s: %s\n", key, rg_yaml_quote(quoted, sizeof quoted, value));
}

static void rg_out_number(rg_text_out *o, const char *key, double value, double scale,
                          const char *unit)
{
    if (isfinite(value))
        rg_out_line(o, "    %s: %.7g%s%s\n", key, value / scale, unit[0] ? " " : "", unit);
}

/* Costs print as microseconds, or as the rate they stand for. */
static double rg_cost_shown(const rg_base_entry *e, double cost, const char **unit)
{
    if (e->rate_unit == NULL) {
        *unit = "us";
        return cost * 1e6;
    }
    const bool bytes = strcmp(e->rate_unit, "byte/s") == 0;
    const bool flops = strcmp(e->rate_unit, "FLOP/s") == 0;
    *unit = bytes ? "GB/s" : flops ? "TFLOP/s" : "1/s";
    return 1 / cost / (bytes ? 1e9 : flops ? 1e12 : 1);
}

static void rg_out_cost(rg_text_out *o, const char *key, const rg_base_entry *e, double cost)
{
    const char *unit;
    const double value = rg_cost_shown(e, cost, &unit);
    if (isfinite(value))
        rg_out_line(o, "    %s: %.7g %s\n", key, value, unit);
}

static const char *const rg_measured_keys[] = {
    "rate",        "median",       "interval",      "q1",
    "q3",          "min",          "groups",        "slow_share",
    "error",       "between",      "samples",       "effective_samples",
    "processes",   "cache",        "clock",         "cycles",
    "flops",       "model_bytes",  "dram_bytes",    "registers",
    "spill_bytes", "shared_bytes", "blocks_per_sm", "throttled",
    "from",        "correlation",  "wander",        NULL};

/* The measured lines of one kernel, in a fixed order. */
static void rg_out_measured(rg_text_out *o, const rg_base_entry *e)
{
    const rg_side *s = &e->side;
    const char *unit;
    if (e->rate_unit != NULL)
        rg_out_text(o, "rate", e->rate_unit);
    if (s->usable) {
        rg_out_cost(o, "median", e, s->centre);
        if (!s->assumed && isfinite(s->low) && isfinite(s->high)) {
            const double a = rg_cost_shown(e, s->low, &unit), b = rg_cost_shown(e, s->high, &unit);
            rg_out_line(o, "    interval: [%.7g %s, %.7g %s]\n", a, unit, b, unit);
        }
        rg_out_cost(o, "q1", e, s->q1);
        rg_out_cost(o, "q3", e, s->q3);
        rg_out_cost(o, "min", e, s->least);
        if (s->modes > 1) {
            const double a = rg_cost_shown(e, s->mode[0], &unit),
                         b = rg_cost_shown(e, s->mode[1], &unit);
            rg_out_line(o, "    groups: [%.7g %s, %.7g %s]\n", a, unit, b, unit);
            rg_out_number(o, "slow_share", s->slow_share, 1, "");
        }
        if (!s->assumed)
            rg_out_number(o, "error", s->error, 0.01, "%");
        rg_out_number(o, "between", s->between, 0.01, "%");
        rg_out_number(o, "samples", s->count, 1, "");
        if (s->effective < s->count)
            rg_out_number(o, "effective_samples", s->effective, 1, "");
        rg_out_number(o, "correlation", s->lag1, 1, "");
        if (s->wander > 0)
            rg_out_number(o, "wander", s->wander, 0.01, "%");
        rg_out_number(o, "processes", s->processes, 1, "");
    }
    rg_out_text(o, "cache", e->cache);
    rg_out_number(o, "clock", e->clock_hz, 1e6, "MHz");
    rg_out_number(o, "cycles", e->cycles, 1, "");
    rg_out_number(o, "flops", e->flops, 1e9, "GFLOP");
    rg_out_number(o, "model_bytes", e->model_bytes, 1, "B");
    rg_out_number(o, "dram_bytes", e->dram_bytes, 1, "B");
    rg_out_number(o, "registers", e->registers, 1, "");
    rg_out_number(o, "spill_bytes", e->spill_bytes, 1, "B");
    rg_out_number(o, "shared_bytes", e->shared_bytes, 1, "B");
    rg_out_number(o, "blocks_per_sm", e->blocks_per_sm, 1, "");
    rg_out_text(o, "throttled", e->throttled);
    rg_out_text(o, "from", e->from);
}

static void rg_out_entry(rg_text_out *o, const rg_base_entry *e)
{
    char quoted[1900];
    rg_out_line(o, "  - kernel: %s\n", rg_yaml_quote(quoted, sizeof quoted, e->kernel));
    rg_out_text(o, "problem", e->problem);
    rg_out_text(o, "dtype", e->dtype);
    rg_out_measured(o, e);
}

static void rg_out_head(rg_text_out *o, const rg_baseline *b)
{
    char quoted[1900];
    const char *const keys[] = {"tool", "device", "driver", "ecc", "clocks"};
    const char *const values[] = {b->tool, b->device, b->driver, b->ecc, b->clocks};
    rg_out_line(
        o, "# Baseline of ridge guard. 'ridge guard RUN --baseline THIS --update' rewrites the\n"
           "# measured lines of kernels; max_slowdown, note and comments are yours and stay.\n"
           "schema: ridge.baseline/1\n");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (values[i] != NULL && values[i][0] != '\0')
            rg_out_line(o, "%s: %s\n", keys[i], rg_yaml_quote(quoted, sizeof quoted, values[i]));
    rg_out_line(o, "kernels:\n");
}

static int rg_base_compare(const rg_base_entry *a, const rg_base_entry *b)
{
    int order = strcmp(a->kernel, b->kernel);
    if (order == 0)
        order = strcmp(a->problem, b->problem);
    return order != 0 ? order : strcmp(a->dtype, b->dtype);
}

static int rg_base_compare_pointers(const void *a, const void *b)
{
    return rg_base_compare(*(const rg_base_entry *const *)a, *(const rg_base_entry *const *)b);
}

static bool rg_line_key(const char *line, size_t length, char *key, size_t size)
{
    size_t i = 0, n = 0;
    while (i < length && line[i] == ' ')
        i++;
    while (i < length && (isalnum((unsigned char)line[i]) || line[i] == '_') && n + 1 < size)
        key[n++] = line[i++];
    key[n] = '\0';
    return n > 0 && i < length && line[i] == ':';
}

static bool rg_key_measured(const char *key)
{
    for (const char *const *k = rg_measured_keys; *k != NULL; k++)
        if (strcmp(*k, key) == 0)
            return true;
    return false;
}

typedef struct rg_lines {
    const char **at;
    size_t *length; /* with the line end */
    int count;
} rg_lines;

static rg_status rg_lines_of(rg_arena *arena, const char *text, size_t length, rg_lines *out,
                             rg_err *err)
{
    size_t count = 1;
    for (size_t i = 0; i < length; i++)
        count += text[i] == '\n';
    out->at = RG_NEW(arena, const char *, count, err);
    out->length = RG_NEW(arena, size_t, count, err);
    if (out->at == NULL || out->length == NULL)
        return RG_ERR_LIMIT;
    out->count = 0;
    for (size_t i = 0; i < length;) {
        const char *end = memchr(text + i, '\n', length - i);
        const size_t n = end == NULL ? length - i : (size_t)(end - text) - i + 1;
        out->at[out->count] = text + i;
        out->length[out->count++] = n;
        i += n;
    }
    return RG_OK;
}

/* Lines [from, to) of a kernel's block with the measured ones replaced where the first of them
 * stood, every other line to the letter. */
static rg_status rg_block_replace(rg_text_out *o, const rg_lines *lines, int from, int to,
                                  const rg_base_entry *fresh, const char *path, rg_err *err)
{
    char key[64];
    bool written = false;
    int last_identity = from;
    for (int i = from; i < to; i++)
        if (rg_line_key(lines->at[i], lines->length[i], key, sizeof key) &&
            (strcmp(key, "kernel") == 0 || strcmp(key, "problem") == 0 ||
             strcmp(key, "dtype") == 0))
            last_identity = i;
    for (int i = from; i < to; i++) {
        const bool measured = i > from &&
                              rg_line_key(lines->at[i], lines->length[i], key, sizeof key) &&
                              rg_key_measured(key);
        if (i == from && memchr(lines->at[i], '{', lines->length[i]) != NULL)
            return rg_fail(
                err, RG_ERR_INPUT, (rg_pos){path, i + 1, 1},
                "this kernel is written as '{...}' in one line; write it as 'key: value' "
                "lines so that an update can keep your comments");
        if (measured) {
            /* A value over several lines cannot be cut by line. */
            if (i + 1 < to && memchr(lines->at[i], '[', lines->length[i]) != NULL &&
                memchr(lines->at[i], ']', lines->length[i]) == NULL)
                return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, i + 1, 1},
                               "'%s' runs over several lines; write it in one", key);
            if (!written)
                rg_out_measured(o, fresh);
            written = true;
            continue;
        }
        rg_out_bytes(o, lines->at[i], lines->length[i]);
        if (lines->length[i] == 0 || lines->at[i][lines->length[i] - 1] != '\n')
            rg_out_bytes(o, "\n", 1);
        bool later = false; /* measured lines still to come in this block */
        for (int k = i + 1; k < to && !later; k++)
            later = rg_line_key(lines->at[k], lines->length[k], key, sizeof key) &&
                    rg_key_measured(key);
        if (!written && !later && i >= last_identity) {
            rg_out_measured(o, fresh);
            written = true;
        }
    }
    return RG_OK;
}

/* First line of each old entry's block: comments directly above it belong to it. */
static int rg_block_start(const rg_lines *lines, const rg_base_entry *e, int not_before)
{
    int at = e->pos.line - 1;
    while (at - 1 >= not_before) {
        const char *p = lines->at[at - 1];
        while (*p == ' ')
            p++;
        if (*p != '#')
            break;
        at--;
    }
    return at;
}

/* A line of the head that an update of every kernel makes stale, as it is now; false for others. */
static bool rg_head_line(rg_text_out *o, const char *line, size_t length,
                         const rg_baseline *renewed)
{
    char key[64], quoted[1900];
    if (renewed == NULL || !rg_line_key(line, length, key, sizeof key))
        return false;
    const char *const keys[] = {"driver", "ecc", "clocks"};
    const char *const values[] = {renewed->driver, renewed->ecc, renewed->clocks};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0 && values[i][0] != '\0') {
            rg_out_line(o, "%s: %s\n", key, rg_yaml_quote(quoted, sizeof quoted, values[i]));
            return true;
        }
    return false;
}

static rg_status rg_update_old(rg_text_out *o, rg_arena *arena, const rg_baseline *old,
                               const rg_lines *lines, const rg_base_entry **fresh, int count,
                               const rg_baseline *renewed, int *changed, int *added, rg_err *err)
{
    int *start = RG_NEW(arena, int, old->count + 1, err);
    if (start == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < old->count; i++)
        start[i] =
            rg_block_start(lines, &old->entries[i], i > 0 ? old->entries[i - 1].pos.line : 0);
    start[old->count] = lines->count;
    const int head = old->count > 0 ? start[0] : lines->count;
    for (int i = 0; i < head; i++)
        if (!rg_head_line(o, lines->at[i], lines->length[i], renewed))
            rg_out_bytes(o, lines->at[i], lines->length[i]);
    if (head > 0 && lines->at[head - 1][lines->length[head - 1] - 1] != '\n')
        rg_out_bytes(o, "\n", 1);
    int next = 0; /* of fresh, sorted */
    for (int i = 0; i < old->count; i++) {
        const rg_base_entry *mine = &old->entries[i];
        for (; next < count && rg_base_compare(fresh[next], mine) < 0; next++) {
            bool elsewhere = false; /* a file that was sorted by hand in another way */
            for (int k = 0; k < old->count; k++)
                elsewhere = elsewhere || rg_base_compare(fresh[next], &old->entries[k]) == 0;
            if (elsewhere)
                continue;
            rg_out_entry(o, fresh[next]);
            ++*added;
        }
        const rg_base_entry *same = NULL;
        for (int k = 0; k < count; k++)
            if (rg_base_compare(fresh[k], mine) == 0)
                same = fresh[k];
        if (same != NULL) {
            for (int k = start[i]; k < mine->pos.line - 1; k++)
                rg_out_bytes(o, lines->at[k], lines->length[k]);
            RG_TRY(
                rg_block_replace(o, lines, mine->pos.line - 1, start[i + 1], same, old->path, err));
            ++*changed;
        } else {
            for (int k = start[i]; k < start[i + 1]; k++)
                rg_out_bytes(o, lines->at[k], lines->length[k]);
        }
        if (next < count && rg_base_compare(fresh[next], mine) == 0)
            next++;
    }
    for (; next < count; next++) {
        bool elsewhere = false;
        for (int k = 0; k < old->count; k++)
            elsewhere = elsewhere || rg_base_compare(fresh[next], &old->entries[k]) == 0;
        if (elsewhere)
            continue;
        if (o->length > 0 && o->text[o->length - 1] != '\n')
            rg_out_bytes(o, "\n", 1);
        rg_out_entry(o, fresh[next]);
        ++*added;
    }
    return RG_OK;
}

rg_status rg_baseline_update(rg_arena *arena, const char *path, const char *old_text,
                             size_t old_length, const rg_baseline *fresh,
                             bool (*picked)(void *context, const rg_base_entry *entry),
                             void *context, char **text, int *changed, int *added, rg_err *err)
{
    rg_text_out o = {.arena = arena};
    const rg_base_entry **sorted = RG_NEW(arena, const rg_base_entry *, fresh->count, err);
    if (sorted == NULL)
        return RG_ERR_LIMIT;
    int count = 0;
    for (int i = 0; i < fresh->count; i++)
        if (picked(context, &fresh->entries[i]))
            sorted[count++] = &fresh->entries[i];
    qsort(sorted, (size_t)count, sizeof(void *), rg_base_compare_pointers);
    *changed = *added = 0;
    if (old_text == NULL) {
        rg_out_head(&o, fresh);
        for (int i = 0; i < count; i++)
            rg_out_entry(&o, sorted[i]);
        *added = count;
    } else {
        rg_baseline *old;
        rg_lines lines;
        RG_TRY(rg_baseline_load(arena, path, &old, err));
        RG_TRY(rg_lines_of(arena, old_text, old_length, &lines, err));
        int replaced = 0;
        for (int i = 0; i < old->count; i++)
            for (int k = 0; k < count; k++)
                replaced += rg_base_compare(sorted[k], &old->entries[i]) == 0;
        if (replaced < old->count && atoi(old->driver) != atoi(fresh->driver) && old->driver[0] &&
            fresh->driver[0])
            return rg_fail(
                err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                "the baseline is of driver '%s', the run of '%s'; update all its kernels at "
                "once, or keep a baseline for each",
                old->driver, fresh->driver);
        RG_TRY(rg_update_old(&o, arena, old, &lines, sorted, count,
                             replaced == old->count ? fresh : NULL, changed, added, err));
    }
    if (o.failed)
        return rg_fail(err, RG_ERR_LIMIT, (rg_pos){path, 0, 0}, "the baseline is too large");
    *text = o.text;
    return RG_OK;
}

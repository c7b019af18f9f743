/* fit/store.c: fitted constants into the fit: section of a hardware file, the rest untouched. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/store.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/file.h"

enum { LARGEST_FILE = 4 << 20, GROUP_TEXT = 16384 };

static const char carried_key[] = "band_carried";

static const char *line_end(const char *p)
{
    const char *newline = strchr(p, '\n');
    return newline ? newline + 1 : p + strlen(p);
}

static size_t indent_of(const char *line)
{
    return strspn(line, " ");
}

static bool is_blank(const char *line)
{
    const char *p = line + indent_of(line);
    return *p == '\n' || *p == '\r' || *p == '#' || *p == 0;
}

/* End of the block that a key line at some indent opens: the first line that is no deeper. Blank
 * lines and comments behind its last entry belong to what follows. */
static const char *block_end(const char *line)
{
    const size_t indent = indent_of(line);
    const char *last = line_end(line);
    for (const char *p = last; *p; p = line_end(p)) {
        if (is_blank(p))
            continue;
        if (indent_of(p) <= indent)
            break;
        last = line_end(p);
    }
    return last;
}

/* Line "key:" at an indent between start and end; NULL when there is none. */
static const char *find_key(const char *start, const char *end, size_t indent, const char *key)
{
    const size_t length = strlen(key);
    for (const char *p = start; p < end; p = line_end(p))
        if (indent_of(p) == indent && strncmp(p + indent, key, length) == 0 &&
            p[indent + length] == ':')
            return p;
    return NULL;
}

static bool worth_writing(const rg_calibration *c, int i)
{
    return !c->held[i];
}

/* Text under construction. */
typedef struct builder {
    char text[GROUP_TEXT];
    size_t used;
    bool full;
} builder;

static void add(builder *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(builder *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(to->text + to->used, sizeof to->text - to->used, format, arguments);
    va_end(arguments);
    if (n < 0 || to->used + (size_t)n >= sizeof to->text)
        to->full = true;
    else
        to->used += (size_t)n;
}

static rg_status built(rg_arena *arena, const builder *from, char **out, rg_err *err)
{
    if (from->full)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "text of a fit is too long");
    *out = rg_arena_copy(arena, from->text, from->used, err);
    return *out ? RG_OK : RG_ERR_LIMIT;
}

/* "band:" with all rows first, then each size class. */
static void add_band(builder *to, const char *key, const char *data, const rg_error_summary *all,
                     const rg_class_errors *classes, int count)
{
    size_t rows = all ? all->count : 0;
    for (int i = 0; i < count; i++)
        rows += classes[i].errors.count;
    if (rows == 0)
        return;
    add(to, "    %s:\n", key);
    if (data)
        add(to, "      data: \"%s\"\n", data);
    if (all && all->count > 0)
        add(to, "      all: {median_ratio: %.3f, p90_ratio: %.3f, bias_ratio: %.3f, rows: %zu}\n",
            all->median_ape, all->p90_ape, all->bias, all->count);
    for (int i = 0; i < count; i++) {
        const rg_error_summary *e = &classes[i].errors;
        if (e->count > 0)
            add(to,
                "      \"%s\": {median_ratio: %.3f, p90_ratio: %.3f, bias_ratio: %.3f, rows: "
                "%zu}\n",
                classes[i].name, e->median_ape, e->p90_ape, e->bias, e->count);
    }
}

static rg_status group_text(rg_arena *arena, const rg_calibration *c,
                            const rg_fit_provenance *provenance, const char *carried, char **out,
                            rg_err *err)
{
    builder text = {.used = 0};
    add(&text, "  %s:\n", rg_predict_group_name(c->group));
    if (provenance->date)
        add(&text, "    date: \"%s\"\n", provenance->date);
    add(&text, "    data: \"%s\"\n", provenance->data);
    add(&text, "    rows: \"%zu fitted, %zu tested; split %s\"\n", c->fitted_rows, c->tested_rows,
        provenance->split);
    add(&text, "    error: \"median %.1f %%, p90 %.1f %%, bias %+.1f %% on rows not fitted\"\n",
        100.0 * c->tested.median_ape, 100.0 * c->tested.p90_ape, 100.0 * c->tested.bias);
    for (int i = 0; i < c->parameters; i++) {
        if (!worth_writing(c, i))
            continue;
        const rg_lsq_estimate *e = &c->estimate[i];
        add(&text, "    %s: %.5g # %.3g to %.3g", c->parameter[i].name, e->value, e->low, e->high);
        if (e->note == RG_LSQ_ENTANGLED && e->partner >= 0)
            add(&text, "; %s: %s", rg_lsq_note_text(e->note), c->parameter[e->partner].name);
        else if (e->note != RG_LSQ_FINE)
            add(&text, "; %s", rg_lsq_note_text(e->note));
        add(&text, "\n");
    }
    add_band(&text, "band", NULL, &c->tested, c->classes, c->class_count);
    if (c->tested.count > 0 && c->most_work > 0.0)
        add(&text, "      range: {least_work: %.3g, most_work: %.3g}\n", c->least_work,
            c->most_work);
    if (carried)
        add(&text, "%s", carried);
    return built(arena, &text, out, err);
}

/* text with [from, to) replaced by middle. */
static rg_status splice(rg_arena *arena, const char *text, const char *from, const char *to,
                        const char *middle, char **out, rg_err *err)
{
    const int head = (int)(from - text); /* a hardware file, far below 2 GiB */
    const bool whole_line = head == 0 || text[head - 1] == '\n';
    *out =
        rg_arena_printf(arena, err, "%.*s%s%s%s", head, text, whole_line ? "" : "\n", middle, to);
    return *out ? RG_OK : RG_ERR_LIMIT;
}

rg_status rg_fit_store_text(rg_arena *arena, const char *text, const rg_calibration *calibrations,
                            int count, const rg_fit_provenance *provenance, char **out, rg_err *err)
{
    char *now = rg_arena_strdup(arena, text, err);
    if (!now)
        return RG_ERR_LIMIT;
    for (int i = 0; i < count; i++) {
        const char *end = now + strlen(now);
        const char *fit = find_key(now, end, 0, "fit");
        const char *name = rg_predict_group_name(calibrations[i].group);
        /* What other devices showed of the group stays, though it speaks of the constants before.
         */
        const char *was = fit ? find_key(line_end(fit), block_end(fit), 2, name) : NULL;
        const char *band = was ? find_key(line_end(was), block_end(was), 4, carried_key) : NULL;
        char *carried = NULL, *group;
        if (band) {
            carried = rg_arena_copy(arena, band, (size_t)(block_end(band) - band), err);
            if (!carried)
                return RG_ERR_LIMIT;
        }
        RG_TRY(group_text(arena, &calibrations[i], provenance, carried, &group, err));
        if (!fit) {
            const char *with_key = rg_arena_printf(arena, err, "fit:\n%s", group);
            if (!with_key)
                return RG_ERR_LIMIT;
            RG_TRY(splice(arena, now, end, end, with_key, &now, err));
            continue;
        }
        const char *after = block_end(fit);
        RG_TRY(
            splice(arena, now, was ? was : after, was ? block_end(was) : after, group, &now, err));
    }
    *out = now;
    return RG_OK;
}

static rg_status replace_file(const char *path, const char *text, rg_err *err)
{
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, err));
    if (fwrite(text, 1, strlen(text), file.stream) != strlen(text)) {
        rg_out_abandon(&file);
        return rg_fail(err, RG_ERR_IO, (rg_pos){.file = path}, "cannot be written in full");
    }
    return rg_out_commit(&file, err);
}

rg_status rg_fit_store(rg_arena *arena, const char *path, const rg_calibration *calibrations,
                       int count, const rg_fit_provenance *provenance, rg_err *err)
{
    char *text, *changed;
    size_t length;
    RG_TRY(rg_file_read(arena, path, LARGEST_FILE, &text, &length, err));
    RG_TRY(rg_fit_store_text(arena, text, calibrations, count, provenance, &changed, err));
    return replace_file(path, changed, err);
}

rg_status rg_fit_store_carried(rg_arena *arena, const char *path, const char *group,
                               const rg_class_errors *classes, int count, const char *data,
                               rg_err *err)
{
    char *text;
    size_t length;
    RG_TRY(rg_file_read(arena, path, LARGEST_FILE, &text, &length, err));
    const char *fit = find_key(text, text + length, 0, "fit");
    const char *at = fit ? find_key(line_end(fit), block_end(fit), 2, group) : NULL;
    if (!at)
        return RG_OK;
    builder band = {.used = 0};
    add_band(&band, carried_key, data, NULL, classes, count);
    char *middle, *changed;
    RG_TRY(built(arena, &band, &middle, err));
    const char *after = block_end(at);
    const char *old = find_key(line_end(at), after, 4, carried_key);
    RG_TRY(splice(arena, text, old ? old : after, old ? block_end(old) : after, middle, &changed,
                  err));
    return replace_file(path, changed, err);
}

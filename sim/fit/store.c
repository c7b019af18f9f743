/* fit/store.c: fitted constants into the fit: section of a hardware file, the rest untouched. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/store.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/file.h"

enum { LARGEST_FILE = 4 << 20, GROUP_TEXT = 8192 };

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

static rg_status group_text(rg_arena *arena, const rg_calibration *c,
                            const rg_fit_provenance *provenance, char **out, rg_err *err)
{
    char text[GROUP_TEXT];
    size_t used = 0;
#define ADD(...)                                                                        \
    do {                                                                                \
        const int n_ = snprintf(text + used, sizeof text - used, __VA_ARGS__);          \
        if (n_ < 0 || used + (size_t)n_ >= sizeof text)                                 \
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "text of a fit is too long"); \
        used += (size_t)n_;                                                             \
    } while (0)
    ADD("  %s:\n", rg_predict_group_name(c->group));
    if (provenance->date)
        ADD("    date: \"%s\"\n", provenance->date);
    ADD("    data: \"%s\"\n", provenance->data);
    ADD("    rows: \"%zu fitted, %zu tested; split %s\"\n", c->fitted_rows, c->tested_rows,
        provenance->split);
    ADD("    error: \"median %.1f %%, p90 %.1f %%, bias %+.1f %% on rows not fitted\"\n",
        100.0 * c->tested.median_ape, 100.0 * c->tested.p90_ape, 100.0 * c->tested.bias);
    for (int i = 0; i < c->parameters; i++) {
        if (!worth_writing(c, i))
            continue;
        const rg_lsq_estimate *e = &c->estimate[i];
        ADD("    %s: %.5g # %.3g to %.3g", c->parameter[i].name, e->value, e->low, e->high);
        if (e->note == RG_LSQ_ENTANGLED && e->partner >= 0)
            ADD("; %s: %s", rg_lsq_note_text(e->note), c->parameter[e->partner].name);
        else if (e->note != RG_LSQ_FINE)
            ADD("; %s", rg_lsq_note_text(e->note));
        ADD("\n");
    }
#undef ADD
    *out = rg_arena_copy(arena, text, used, err);
    return *out ? RG_OK : RG_ERR_LIMIT;
}

/* text with [from, to) replaced by middle. */
static rg_status splice(rg_arena *arena, const char *text, const char *from, const char *to,
                        const char *middle, char **out, rg_err *err)
{
    const size_t head = (size_t)(from - text), body = strlen(middle), tail = strlen(to);
    char *result = rg_arena_alloc(arena, head + body + tail + 2, 1, err);
    if (!result)
        return RG_ERR_LIMIT;
    memcpy(result, text, head);
    size_t at = head;
    if (at > 0 && result[at - 1] != '\n')
        result[at++] = '\n';
    memcpy(result + at, middle, body);
    memcpy(result + at + body, to, tail + 1);
    *out = result;
    return RG_OK;
}

rg_status rg_fit_store_text(rg_arena *arena, const char *text, const rg_calibration *calibrations,
                            int count, const rg_fit_provenance *provenance, char **out, rg_err *err)
{
    char *now = rg_arena_strdup(arena, text, err);
    if (!now)
        return RG_ERR_LIMIT;
    for (int i = 0; i < count; i++) {
        char *group;
        RG_TRY(group_text(arena, &calibrations[i], provenance, &group, err));
        const char *end = now + strlen(now);
        const char *fit = find_key(now, end, 0, "fit");
        if (!fit) {
            const char *with_key = rg_arena_printf(arena, err, "fit:\n%s", group);
            if (!with_key)
                return RG_ERR_LIMIT;
            RG_TRY(splice(arena, now, end, end, with_key, &now, err));
            continue;
        }
        const char *after = block_end(fit);
        const char *old =
            find_key(line_end(fit), after, 2, rg_predict_group_name(calibrations[i].group));
        RG_TRY(
            splice(arena, now, old ? old : after, old ? block_end(old) : after, group, &now, err));
    }
    *out = now;
    return RG_OK;
}

rg_status rg_fit_store(rg_arena *arena, const char *path, const rg_calibration *calibrations,
                       int count, const rg_fit_provenance *provenance, rg_err *err)
{
    char *text, *changed;
    size_t length;
    RG_TRY(rg_file_read(arena, path, LARGEST_FILE, &text, &length, err));
    RG_TRY(rg_fit_store_text(arena, text, calibrations, count, provenance, &changed, err));
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, err));
    if (fwrite(changed, 1, strlen(changed), file.stream) != strlen(changed)) {
        rg_out_abandon(&file);
        return rg_fail(err, RG_ERR_IO, (rg_pos){.file = path}, "cannot be written in full");
    }
    return rg_out_commit(&file, err);
}

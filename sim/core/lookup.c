// SPDX-License-Identifier: Apache-2.0
#include "core/lookup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

static const char *find(const rg_lookup *l, const char *name, rg_pos *pos)
{
    *pos = RG_NOWHERE;
    return l->text(l->from, name, pos);
}

const char *rg_lookup_text(const rg_lookup *l, const char *name)
{
    rg_pos pos;
    return find(l, name, &pos);
}

bool rg_lookup_given(const rg_lookup *l, const char *name)
{
    return rg_lookup_text(l, name) != NULL;
}

rg_status rg_lookup_fail(const rg_lookup *l, const char *name, rg_err *err, const char *wanted, ...)
{
    rg_pos pos;
    const char *text = find(l, name, &pos);
    char what[160];
    va_list list;
    va_start(list, wanted);
    vsnprintf(what, sizeof what, wanted, list);
    va_end(list);
    if (pos.file)
        return rg_fail(err, RG_ERR_INPUT, pos, "%s '%.80s' is not %s", name, text ? text : "",
                       what);
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option --%s '%.80s' is not %s", name,
                   text ? text : "", what);
}

rg_status rg_lookup_placed(rg_status status, const rg_lookup *l, const char *name, rg_err *err)
{
    if (status == RG_OK)
        return RG_OK;
    rg_pos pos;
    find(l, name, &pos);
    if (pos.file && status == RG_ERR_USAGE)
        status = RG_ERR_INPUT;
    if (!pos.file && status == RG_ERR_INPUT && (!err || !err->file[0]))
        status = RG_ERR_USAGE;
    if (err && !err->file[0]) {
        char text[RG_ERR_TEXT_SIZE - 64];
        snprintf(text, sizeof text, "%.900s", err->text);
        if (pos.file)
            rg_err_set(err, status, pos, "%s", text);
        else
            rg_err_set(err, status, pos, "option --%s: %s", name, text);
    }
    return status;
}

rg_status rg_lookup_int(const rg_lookup *l, const char *name, int64_t least, int64_t most,
                        int64_t *out, rg_err *err)
{
    const char *text = rg_lookup_text(l, name);
    int64_t value;
    if (!text)
        return RG_OK;
    if (!rg_text_to_int(text, &value) || value < least || value > most)
        return rg_lookup_fail(l, name, err, "a whole number from %lld to %lld", (long long)least,
                              (long long)most);
    *out = value;
    return RG_OK;
}

rg_status rg_lookup_real(const rg_lookup *l, const char *name, double least, double most,
                         double *out, rg_err *err)
{
    const char *text = rg_lookup_text(l, name);
    double value;
    if (!text)
        return RG_OK;
    if (!rg_text_to_real(text, &value) || !(value >= least && value <= most))
        return rg_lookup_fail(l, name, err, "a number from %g to %g", least, most);
    *out = value;
    return RG_OK;
}

rg_status rg_lookup_flag(const rg_lookup *l, const char *name, bool *out, rg_err *err)
{
    const char *text = rg_lookup_text(l, name);
    if (!text)
        return RG_OK;
    const bool yes = strcmp(text, "true") == 0 || strcmp(text, "True") == 0;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "False") != 0)
        return rg_lookup_fail(l, name, err, "true or false");
    *out = yes;
    return RG_OK;
}

rg_status rg_lookup_reals(rg_arena *arena, const rg_lookup *l, const char *name, int most,
                          double **out, int *count, rg_err *err)
{
    const char *text = rg_lookup_text(l, name);
    *count = 0;
    *out = RG_NEW(arena, double, most, err);
    if (!*out)
        return RG_ERR_LIMIT;
    while (text && *text) {
        char part[40];
        const size_t length = strcspn(text, ",");
        if (length >= sizeof part || *count == most)
            return rg_lookup_fail(l, name, err, "up to %d numbers with commas between", most);
        memcpy(part, text, length);
        part[length] = 0;
        if (!rg_text_to_real(part, &(*out)[*count]))
            return rg_lookup_fail(l, name, err, "numbers with commas between: '%s' is none", part);
        (*count)++;
        text += length + (text[length] == ',');
    }
    return RG_OK;
}

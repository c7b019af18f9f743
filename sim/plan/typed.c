/* plan/typed.c: settings of a plan as numbers, quantities and choices. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "plan/settings.h"

/* Mistakes of a file are of its input, those of a command line of its usage. */
rg_status rg_plan_text_bad(rg_err *err, const rg_plan_names *v, int i, const char *name,
                           const char *expected)
{
    return rg_fail(err, v->pos[i].file ? RG_ERR_INPUT : RG_ERR_USAGE, v->pos[i],
                   "%s%s '%s' is not %s", v->pos[i].file ? "" : "option --", name, v->items[i],
                   expected);
}

rg_status rg_plan_text_relay(rg_status status, const rg_plan_names *v, const char *name,
                             rg_err *err)
{
    if (status == RG_OK || !err)
        return status;
    char text[RG_ERR_TEXT_SIZE - 64];
    snprintf(text, sizeof text, "%.900s", err->text);
    const rg_pos pos = v->count > 0 ? v->pos[0] : RG_NOWHERE;
    if (pos.file)
        return rg_fail(err, RG_ERR_INPUT, pos, "%s", text);
    return rg_fail(err, RG_ERR_USAGE, pos, "option --%s: %s", name, text);
}

rg_status rg_plan_text_quantity(const rg_plan_text *t, const char *name, rg_dim dim, double *out,
                                rg_err *err)
{
    const rg_plan_names *v = rg_plan_text_get(t, name);
    if (v->count == 0)
        return RG_OK;
    RG_TRY(rg_plan_text_relay(rg_quantity_parse(v->items[0], dim, v->pos[0], name, out, err), v,
                              name, err));
    return *out >= 0 ? RG_OK : rg_plan_text_bad(err, v, 0, name, "0 or more");
}

rg_status rg_plan_text_real(const rg_plan_text *t, const char *name, double least, double most,
                            double *out, rg_err *err)
{
    const rg_plan_names *v = rg_plan_text_get(t, name);
    char expected[64];
    if (v->count == 0)
        return RG_OK;
    if (rg_text_to_real(v->items[0], out) && *out >= least && *out <= most)
        return RG_OK;
    snprintf(expected, sizeof expected, "a number from %g to %g", least, most);
    return rg_plan_text_bad(err, v, 0, name, expected);
}

rg_status rg_plan_text_int(const rg_plan_text *t, const char *name, int64_t least, int64_t most,
                           int64_t *out, rg_err *err)
{
    const rg_plan_names *v = rg_plan_text_get(t, name);
    char expected[64];
    if (v->count == 0)
        return RG_OK;
    if (rg_text_to_int(v->items[0], out) && *out >= least && *out <= most)
        return RG_OK;
    snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)least,
             (long long)most);
    return rg_plan_text_bad(err, v, 0, name, expected);
}

const char *rg_plan_text_one(const rg_plan_text *t, const char *name)
{
    const rg_plan_names *v = rg_plan_text_get(t, name);
    return v->count > 0 ? v->items[0] : NULL;
}

rg_status rg_plan_text_ints(const rg_plan_text *t, const char *name, int64_t least,
                            rg_plan_ints *out, rg_err *err)
{
    const rg_plan_names *v = rg_plan_text_get(t, name);
    for (int i = 0; i < v->count; i++) {
        if (!rg_text_to_int(v->items[i], &out->items[i]) || out->items[i] < least ||
            out->items[i] > 1 << 30)
            return rg_plan_text_bad(err, v, i, name,
                                    least == 0 ? "0 or more" : "a whole number of 1 or more");
        out->count++;
    }
    return RG_OK;
}

rg_status rg_plan_text_bools(const rg_plan_text *t, const char *name, bool out[2], bool *given,
                             rg_err *err)
{
    const rg_plan_names *v = rg_plan_text_get(t, name);
    *given = v->count > 0;
    for (int i = 0; i < v->count; i++) {
        const bool yes = strcmp(v->items[i], "true") == 0;
        if (!yes && strcmp(v->items[i], "false") != 0)
            return rg_plan_text_bad(err, v, i, name, "true or false");
        out[yes] = true;
    }
    return RG_OK;
}

rg_status rg_plan_text_choice(const rg_plan_names *v, int i, const char *name,
                              const char *const *names, int *out, rg_err *err)
{
    for (*out = 0; names[*out]; (*out)++)
        if (strcmp(names[*out], v->items[i]) == 0)
            return RG_OK;
    char all[256] = "one of ";
    for (int n = 0; names[n]; n++) {
        strncat(all, n == 0 ? "" : ", ", sizeof all - strlen(all) - 1);
        strncat(all, names[n], sizeof all - strlen(all) - 1);
    }
    return rg_plan_text_bad(err, v, i, name, all);
}

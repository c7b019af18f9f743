/* trace/req_spec.c: arrival processes and length distributions as written on a command line. */
// SPDX-License-Identifier: Apache-2.0
#include "trace/req.h"

#include <stdlib.h>
#include <string.h>

#include "core/quantity.h"
#include "core/text.h"

enum { MAX_PARTS = 6, PART_SIZE = 64 };

/* "kind:a,b,name=c" cut into the kind and its parts. */
typedef struct parts {
    char kind[PART_SIZE];
    char part[MAX_PARTS][PART_SIZE];
    int count;
} parts;

static bool cut(const char *text, parts *out)
{
    const char *colon = strchr(text, ':');
    const size_t kind = colon ? (size_t)(colon - text) : strlen(text);
    *out = (parts){0};
    if (kind >= PART_SIZE)
        return false;
    memcpy(out->kind, text, kind);
    for (const char *at = colon ? colon + 1 : NULL; at;) {
        const char *comma = strchr(at, ',');
        const size_t length = comma ? (size_t)(comma - at) : strlen(at);
        if (length >= PART_SIZE || out->count == MAX_PARTS)
            return false;
        memcpy(out->part[out->count++], at, length);
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

/* The part "name=...", taken out; NULL when there is none. */
static const char *named(parts *p, const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < p->count; i++) {
        if (strncmp(p->part[i], name, length) != 0 || p->part[i][length] != '=')
            continue;
        static _Thread_local char kept[PART_SIZE];
        memcpy(kept, p->part[i] + length + 1, PART_SIZE - length - 1);
        kept[PART_SIZE - 1] = 0;
        for (int k = i + 1; k < p->count; k++)
            memcpy(p->part[k - 1], p->part[k], PART_SIZE);
        p->count--;
        return kept;
    }
    return NULL;
}

/* A bare number is per second. Faster arrivals than the most are a slip: their gaps drown in the
 * rounding of a clock that has run for hours. */
static rg_status rate(const char *text, double *out, rg_err *err)
{
    if (!rg_text_to_real(text, out))
        RG_TRY(rg_quantity_parse(text, RG_DIM_PER_SECOND, RG_NOWHERE, "arrival rate", out, err));
    if (!(*out > 0))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "arrival rate '%.40s' must be positive, such as 10/s", text);
    if (*out > RG_ARRIVALS_MOST_PER_S)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "arrival rate '%.40s' is more than the most, 1e6/s; at-once lets all come "
                       "together",
                       text);
    return RG_OK;
}

static rg_status duration(const char *text, double *out, rg_err *err)
{
    if (rg_text_to_real(text, out))
        return RG_OK;
    return rg_quantity_parse(text, RG_DIM_SECONDS, RG_NOWHERE, "duration", out, err);
}

static rg_status bad_arrivals(const char *text, rg_err *err)
{
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                   "arrivals '%.80s' not understood; write poisson:10/s, gamma:10/s,cv=2, "
                   "mmpp:2/s,20/s,30s,5s, uniform:4/s, at-once, closed:32 or closed:32,think=2s",
                   text);
}

rg_status rg_arrival_parse(const char *text, rg_arrival_spec *out, rg_err *err)
{
    parts p;
    *out = (rg_arrival_spec){0};
    if (!cut(text, &p))
        return bad_arrivals(text, err);
    static const struct {
        const char *name;
        rg_arrivals kind;
        int count;
    } kinds[] = {{"poisson", RG_ARRIVE_POISSON, 1}, {"gamma", RG_ARRIVE_GAMMA, 1},
                 {"mmpp", RG_ARRIVE_MMPP, 4},       {"uniform", RG_ARRIVE_UNIFORM, 1},
                 {"at-once", RG_ARRIVE_AT_ONCE, 0}, {"closed", RG_ARRIVE_CLOSED, 1}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(p.kind, kinds[i].name) != 0)
            continue;
        out->kind = kinds[i].kind;
        const char *value = named(&p, "cv");
        out->cv = 1;
        if (value && !rg_text_to_real(value, &out->cv))
            return bad_arrivals(text, err);
        value = named(&p, "think");
        if (value)
            RG_TRY(duration(value, &out->think_s, err));
        if (p.count != kinds[i].count)
            return bad_arrivals(text, err);
        if (out->kind == RG_ARRIVE_CLOSED)
            return rg_text_to_int(p.part[0], &out->users) ? RG_OK : bad_arrivals(text, err);
        if (p.count >= 1)
            RG_TRY(rate(p.part[0], &out->rate_per_s, err));
        if (p.count >= 4) {
            RG_TRY(rate(p.part[1], &out->burst_rate_per_s, err));
            RG_TRY(duration(p.part[2], &out->calm_s, err));
            RG_TRY(duration(p.part[3], &out->burst_s, err));
        }
        return RG_OK;
    }
    return bad_arrivals(text, err);
}

static rg_status bad_lengths(const char *text, rg_err *err)
{
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                   "lengths '%.80s' not understood; write 512, uniform:100-900, "
                   "lognormal:512,cv=1.2 or zipf:16-4096,1.1",
                   text);
}

static bool range(const char *text, int64_t *least, int64_t *most)
{
    char first[PART_SIZE];
    const char *dash = strchr(text, '-');
    if (!dash || (size_t)(dash - text) >= sizeof first)
        return false;
    memcpy(first, text, (size_t)(dash - text));
    first[dash - text] = 0;
    return rg_text_to_int(first, least) && rg_text_to_int(dash + 1, most) && *least >= 1;
}

rg_status rg_length_parse(const char *text, rg_length_spec *out, rg_err *err)
{
    parts p;
    *out = (rg_length_spec){.least = 1};
    int64_t tokens;
    if (rg_text_to_int(text, &tokens)) {
        if (tokens < 1 || tokens > 1000000000)
            return bad_lengths(text, err);
        out->kind = RG_LENGTH_FIXED;
        out->mean = (double)tokens;
        return RG_OK;
    }
    if (!cut(text, &p))
        return bad_lengths(text, err);
    const char *value = named(&p, "cv");
    out->cv = 1;
    if (value && !rg_text_to_real(value, &out->cv))
        return bad_lengths(text, err);
    if (strcmp(p.kind, "lognormal") == 0 && (p.count == 1 || p.count == 2)) {
        out->kind = RG_LENGTH_LOGNORMAL;
        if (!rg_text_to_real(p.part[0], &out->mean) ||
            (p.count == 2 && !range(p.part[1], &out->least, &out->most)))
            return bad_lengths(text, err);
        return RG_OK;
    }
    if (strcmp(p.kind, "uniform") == 0 && p.count == 1 && range(p.part[0], &out->least, &out->most))
        out->kind = RG_LENGTH_UNIFORM;
    else if (strcmp(p.kind, "zipf") == 0 && p.count == 2 &&
             range(p.part[0], &out->least, &out->most) &&
             rg_text_to_real(p.part[1], &out->exponent))
        out->kind = RG_LENGTH_ZIPF;
    else
        return bad_lengths(text, err);
    if (out->most < out->least)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "length range '%.80s' is empty; write the lesser length first", p.part[0]);
    return RG_OK;
}

/* trace/req_csv.c: request traces in CSV: Azure 2023 and 2024, BurstGPT, Vidur, ridge. */
// SPDX-License-Identifier: Apache-2.0
#include "trace/req_row.h"

#include <math.h>
#include <string.h>

#include "core/text.h"

/* Columns of a format; the first name that the header has counts. NULL: the format has none. */
typedef struct csv_format {
    const char *name;
    const char *arrival, *prompt, *output, *priority, *session, *turn, *shared, *shared_tokens;
    enum { ARRIVAL_SECONDS, ARRIVAL_DATE } arrival_kind;
    bool arrival_required;
} csv_format;

/* Azure: AzurePublicDataset, AzureLLMInferenceDataset2023.md and ...2024.md. BurstGPT: README of
 * HPMLL/BurstGPT, section "Main characteristics". Vidur: data/processed_traces of microsoft/vidur.
 */
static const csv_format formats[] = {
    {"azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens", NULL, NULL, NULL, NULL, NULL,
     ARRIVAL_DATE, true},
    {"burstgpt", "Timestamp", "Request tokens", "Response tokens", NULL, NULL, NULL, NULL, NULL,
     ARRIVAL_SECONDS, true},
    {"vidur", "arrived_at", "num_prefill_tokens", "num_decode_tokens", NULL, NULL, NULL, NULL, NULL,
     ARRIVAL_SECONDS, false},
    {"ridge", "arrival_s", "input_tokens", "output_tokens", "priority", "session", "turn", "prefix",
     "prefix_tokens", ARRIVAL_SECONDS, false},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* Under which others write arrivals where a format may do without; seconds, or dates. */
static const char *const arrival_names[] = {"arrived_at", "arrival_s", "arrival_time",
                                            "timestamp",  "TIMESTAMP", NULL};

typedef struct csv_reader {
    rg_row_reader base;
    rg_csv *csv;
    const csv_format *format;
    int arrival, prompt, output, priority, session, turn, shared, shared_tokens;
} csv_reader;

static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    /* Days since 1970-01-01 in the proleptic Gregorian calendar, eras of 400 years. */
    y -= m <= 2;
    const int64_t era = (y >= 0 ? y : y - 399) / 400;
    const int64_t yoe = y - era * 400;
    const int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    const int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static bool digits(const char **text, int count, int64_t *out)
{
    int64_t value = 0;
    for (int i = 0; i < count; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        value = value * 10 + (**text - '0');
    }
    *out = value;
    return true;
}

static bool literal(const char **text, const char *any)
{
    if (!**text || !strchr(any, **text))
        return false;
    (*text)++;
    return true;
}

bool rg_row_parse_time(const char *text, int64_t *ns)
{
    int64_t y, mo, d, h, mi, s, fraction = 0, offset_min = 0;
    if (!(digits(&text, 4, &y) && literal(&text, "-/") && digits(&text, 2, &mo) &&
          literal(&text, "-/") && digits(&text, 2, &d) && literal(&text, " T") &&
          digits(&text, 2, &h) && literal(&text, ":") && digits(&text, 2, &mi) &&
          literal(&text, ":") && digits(&text, 2, &s)))
        return false;
    if (y < 1970 || y > 2200 || mo < 1 || mo > 12 || d < 1 || d > 31 || h > 23 || mi > 59 || s > 60)
        return false;
    if (literal(&text, ".,")) {
        int64_t unit = 100000000;
        if (*text < '0' || *text > '9')
            return false;
        for (; *text >= '0' && *text <= '9'; text++, unit /= 10)
            fraction += (*text - '0') * unit;
    }
    if (literal(&text, "Z")) {
        /* UTC */
    } else if (*text == '+' || *text == '-') {
        const int64_t sign = *text++ == '-' ? -1 : 1;
        int64_t oh, om;
        if (!digits(&text, 2, &oh))
            return false;
        literal(&text, ":");
        if (!digits(&text, 2, &om))
            return false;
        offset_min = sign * (oh * 60 + om);
    }
    if (*text)
        return false;
    const int64_t seconds =
        days_from_civil(y, mo, d) * 86400 + h * 3600 + (mi - offset_min) * 60 + s;
    *ns = seconds * 1000000000 + fraction;
    return true;
}

static rg_status read_arrival(csv_reader *r, rg_row *row, rg_err *err)
{
    const char *text = rg_csv_text(r->csv, r->arrival);
    if (r->format->arrival_kind == ARRIVAL_DATE) {
        if (!rg_row_parse_time(text, &row->arrival_ns))
            return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(r->csv, r->arrival),
                           "'%s' is not a time; write it as '2023-11-16 18:17:03.9799600'", text);
    } else if (r->format->arrival_required || !rg_row_parse_time(text, &row->arrival_ns)) {
        double seconds;
        RG_TRY(rg_csv_real(r->csv, r->arrival, &seconds, err));
        if (!(fabs(seconds) < 4e9))
            return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(r->csv, r->arrival),
                           "arrival '%s' s is out of range (under 4e9)", text);
        row->arrival_ns = llround(seconds * 1e9);
    }
    row->has_arrival = true;
    return RG_OK;
}

static rg_status read_count(rg_csv *csv, int column, int64_t *out, rg_err *err)
{
    double value; /* some files write counts as 512.0 */
    RG_TRY(rg_csv_real(csv, column, &value, err));
    if (!(value >= 0 && value <= 1e9) || value != floor(value))
        return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(csv, column),
                       "'%s' is not a number of tokens (0 to 1e9, whole)",
                       rg_csv_text(csv, column));
    *out = (int64_t)value;
    return RG_OK;
}

static rg_status optional_int(rg_csv *csv, int column, int64_t *out, rg_err *err)
{
    if (column < 0 || !*rg_csv_text(csv, column))
        return RG_OK;
    return rg_csv_int(csv, column, out, err);
}

static rg_status csv_next(rg_row_reader *reader, rg_row *row, bool *more, rg_err *err)
{
    csv_reader *r = (csv_reader *)reader;
    RG_TRY(rg_csv_next(r->csv, more, err));
    if (!*more)
        return RG_OK;
    *row = (rg_row){.session = -1, .shared_id = -1, .pos = rg_csv_pos(r->csv, r->prompt)};
    if (r->arrival >= 0)
        RG_TRY(read_arrival(r, row, err));
    RG_TRY(read_count(r->csv, r->prompt, &row->prompt_tokens, err));
    RG_TRY(read_count(r->csv, r->output, &row->output_tokens, err));
    RG_TRY(optional_int(r->csv, r->priority, &row->priority, err));
    RG_TRY(optional_int(r->csv, r->session, &row->session, err));
    RG_TRY(optional_int(r->csv, r->turn, &row->turn, err));
    RG_TRY(optional_int(r->csv, r->shared, &row->shared_id, err));
    if (r->shared_tokens >= 0 && *rg_csv_text(r->csv, r->shared_tokens))
        RG_TRY(read_count(r->csv, r->shared_tokens, &row->shared_tokens, err));
    return RG_OK;
}

static void csv_close(rg_row_reader *reader)
{
    rg_csv_close(((csv_reader *)reader)->csv);
}

static int find(const rg_csv *csv, const char *name)
{
    return name ? rg_csv_find(csv, name) : -1;
}

static rg_status pick_format(const rg_csv *csv, const char *path, const char *wanted,
                             const csv_format **out, rg_err *err)
{
    for (int i = 0; i < FORMATS; i++) {
        const csv_format *f = &formats[i];
        if (wanted ? strcmp(wanted, f->name) == 0
                   : find(csv, f->prompt) >= 0 && find(csv, f->output) >= 0) {
            *out = f;
            return RG_OK;
        }
    }
    if (wanted) {
        const char *names[FORMATS + 1] = {0};
        for (int i = 0; i < FORMATS; i++)
            names[i] = formats[i].name;
        const char *near = rg_text_nearest(wanted, names);
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "'%s' is no CSV trace format; did you mean '%s'? There are azure, burstgpt, "
                       "vidur and ridge",
                       wanted, near ? near : "ridge");
    }
    return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                   "header is of no known trace: wanted TIMESTAMP,ContextTokens,GeneratedTokens "
                   "(Azure), Timestamp,...,Request tokens,Response tokens (BurstGPT), "
                   "num_prefill_tokens,num_decode_tokens (Vidur) or "
                   "arrival_s,input_tokens,output_tokens (ridge); first column is '%s'",
                   rg_csv_columns(csv) > 0 ? rg_csv_name(csv, 0) : "");
}

rg_status rg_row_reader_csv(rg_arena *arena, rg_csv *csv, const char *path, const char *format,
                            rg_row_reader **out, rg_err *err)
{
    csv_reader *r = RG_NEW(arena, csv_reader, 1, err);
    if (!r)
        return RG_ERR_LIMIT;
    RG_TRY(pick_format(csv, path, format, &r->format, err));
    const csv_format *f = r->format;
    r->csv = csv;
    RG_TRY(rg_csv_column(csv, f->prompt, &r->prompt, err));
    RG_TRY(rg_csv_column(csv, f->output, &r->output, err));
    r->arrival = find(csv, f->arrival);
    for (int i = 0; arrival_names[i] && r->arrival < 0 && !f->arrival_required; i++)
        r->arrival = find(csv, arrival_names[i]);
    if (r->arrival < 0 && f->arrival_required)
        RG_TRY(rg_csv_column(csv, f->arrival, &r->arrival, err));
    r->priority = find(csv, f->priority);
    r->session = find(csv, f->session);
    r->turn = find(csv, f->turn);
    r->shared = find(csv, f->shared);
    r->shared_tokens = find(csv, f->shared_tokens);
    r->base = (rg_row_reader){f->name, r->arrival >= 0, false, csv_next, csv_close};
    *out = &r->base;
    return RG_OK;
}

/* trace/run_table.c: tables of times as a do_bench loop or Triton's perf_report writes them.
 *
 * What a column is, its heading says: a name of a kernel (kernel, op, provider, ...), a type, a
 * measure (a unit as in "median_ms", "time (us)", "Triton (TFLOPS)", or a word as in "latency"), a
 * repeat counter, or else a part of the problem ("M", "batch"). One measure column for each
 * provider is perf_report's form; "X-min" and "X-max" belong to X. Rows of equal kernel and problem
 * are samples. Where no heading names a unit, the option does, or the file is refused.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RG_TABLE_COLUMNS = 128, RG_TABLE_HEAD = 96 };

typedef enum rg_role {
    RG_ROLE_PROBLEM,
    RG_ROLE_IGNORED,
    RG_ROLE_KERNEL,
    RG_ROLE_PROVIDER,
    RG_ROLE_DTYPE,
    RG_ROLE_PROCESS,
    RG_ROLE_FLOPS,
    RG_ROLE_BYTES,
    RG_ROLE_DRAM,
    RG_ROLE_REGISTERS,
    RG_ROLE_SPILLS,
    RG_ROLE_CLOCK,
    RG_ROLE_COUNT,
    RG_ROLE_MEASURE,
} rg_role;

typedef enum rg_stat_kind {
    RG_S_CENTRE,
    RG_S_MEDIAN,
    RG_S_MEAN,
    RG_S_LEAST,
    RG_S_MOST,
    RG_S_Q1,
    RG_S_Q3,
    RG_S_DEVIATION,
} rg_stat_kind;

typedef struct rg_column {
    rg_role role;
    rg_stat_kind stat;
    double factor;            /* to s, or to FLOP/s or byte/s; 0 = the heading names no unit */
    const char *rate;         /* NULL for a time */
    char base[RG_TABLE_HEAD]; /* "Triton"; "" when the heading is only a measure */
} rg_column;

typedef struct rg_table_reader {
    rg_reader *r;
    const rg_row *head;
    rg_column column[RG_TABLE_COLUMNS];
    int count;
    rg_locale locale;
} rg_table_reader;

static const struct {
    const char *name;
    rg_role role;
} rg_fixed_roles[] = {
    {"kernel", RG_ROLE_KERNEL},
    {"kernel_name", RG_ROLE_KERNEL},
    {"name", RG_ROLE_KERNEL},
    {"op", RG_ROLE_KERNEL},
    {"operator", RG_ROLE_KERNEL},
    {"benchmark", RG_ROLE_KERNEL},
    {"bench", RG_ROLE_KERNEL},
    {"function", RG_ROLE_KERNEL},
    {"label", RG_ROLE_KERNEL},
    {"test", RG_ROLE_KERNEL},
    {"provider", RG_ROLE_PROVIDER},
    {"impl", RG_ROLE_PROVIDER},
    {"implementation", RG_ROLE_PROVIDER},
    {"backend", RG_ROLE_PROVIDER},
    {"dtype", RG_ROLE_DTYPE},
    {"type", RG_ROLE_DTYPE},
    {"precision", RG_ROLE_DTYPE},
    {"process", RG_ROLE_PROCESS},
    {"run", RG_ROLE_PROCESS},
    {"pid", RG_ROLE_PROCESS},
    {"rep", RG_ROLE_IGNORED},
    {"repeat", RG_ROLE_IGNORED},
    {"repetition", RG_ROLE_IGNORED},
    {"trial", RG_ROLE_IGNORED},
    {"iter", RG_ROLE_IGNORED},
    {"iteration", RG_ROLE_IGNORED},
    {"sample", RG_ROLE_IGNORED},
    {"round", RG_ROLE_IGNORED},
    {"index", RG_ROLE_IGNORED},
    {"", RG_ROLE_IGNORED},
    {"unnamed: 0", RG_ROLE_IGNORED},
    {"speedup", RG_ROLE_IGNORED},
    {"ratio", RG_ROLE_IGNORED},
    {"timestamp", RG_ROLE_IGNORED},
    {"date", RG_ROLE_IGNORED},
    {"commit", RG_ROLE_IGNORED},
    {"flop", RG_ROLE_FLOPS},
    {"flop_count", RG_ROLE_FLOPS},
    {"bytes", RG_ROLE_BYTES},
    {"model_bytes", RG_ROLE_BYTES},
    {"dram_bytes", RG_ROLE_DRAM},
    {"registers", RG_ROLE_REGISTERS},
    {"n_regs", RG_ROLE_REGISTERS},
    {"regs", RG_ROLE_REGISTERS},
    {"spill_bytes", RG_ROLE_SPILLS},
    {"n_spills", RG_ROLE_SPILLS},
    {"spills", RG_ROLE_SPILLS},
    {"clock_hz", RG_ROLE_CLOCK},
    {"samples", RG_ROLE_COUNT},
    {"count", RG_ROLE_COUNT},
    {"n_samples", RG_ROLE_COUNT},
};

/* Cut a unit off the end of the heading: "(ms)", "[us]", "_ms", "-ms", " ms", or the whole of it.
 */
static void rg_table_unit(char *head, rg_column *c)
{
    char *open = strpbrk(head, "([");
    double factor;
    const char *rate;
    if (open != NULL) {
        char unit[RG_TABLE_HEAD];
        snprintf(unit, sizeof unit, "%s", open + 1);
        unit[strcspn(unit, ")]")] = '\0';
        if (rg_unit_is_time(unit, &factor)) {
            c->factor = factor;
            *open = '\0';
        } else if (rg_unit_is_rate(unit, &factor, &rate)) {
            c->factor = factor;
            c->rate = rate;
            *open = '\0';
        }
    } else {
        char *last = head;
        for (char *p = head; *p != '\0'; p++)
            if (*p == '_' || *p == '-' || *p == ' ')
                last = p + 1;
        const bool whole = last == head;
        /* "s" and "min" alone are words of other meaning */
        if (rg_unit_is_time(last, &factor) && !rg_text_same(last, "min") &&
            !(whole && rg_text_same(last, "s"))) {
            c->factor = factor;
            *last = '\0';
        } else if (rg_unit_is_rate(last, &factor, &rate)) {
            c->factor = factor;
            c->rate = rate;
            *last = '\0';
        }
    }
    size_t n = strlen(head);
    while (n > 0 && strchr("_- ", head[n - 1]) != NULL)
        head[--n] = '\0';
}

/* Cut a word of statistics off the end or the start; what is left is the base. */
static bool rg_table_stat(char *head, rg_column *c)
{
    static const struct {
        const char *word;
        rg_stat_kind stat;
    } words[] = {
        {"median", RG_S_MEDIAN},    {"p50", RG_S_MEDIAN},
        {"q50", RG_S_MEDIAN},       {"mean", RG_S_MEAN},
        {"average", RG_S_MEAN},     {"avg", RG_S_MEAN},
        {"minimum", RG_S_LEAST},    {"min", RG_S_LEAST},
        {"maximum", RG_S_MOST},     {"max", RG_S_MOST},
        {"p25", RG_S_Q1},           {"q1", RG_S_Q1},
        {"p20", RG_S_Q1},           {"q20", RG_S_Q1},
        {"p75", RG_S_Q3},           {"q3", RG_S_Q3},
        {"p80", RG_S_Q3},           {"q80", RG_S_Q3},
        {"stddev", RG_S_DEVIATION}, {"stdev", RG_S_DEVIATION},
        {"std", RG_S_DEVIATION},    {"time", RG_S_CENTRE},
        {"latency", RG_S_CENTRE},   {"runtime", RG_S_CENTRE},
        {"duration", RG_S_CENTRE},  {"elapsed", RG_S_CENTRE},
        {"gpu", RG_S_CENTRE},       {"kernel", RG_S_CENTRE},
    };
    bool found = false;
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            const size_t n = strlen(head), m = strlen(words[i].word);
            if (n < m)
                continue;
            char *at = NULL;
            if (rg_text_same(head + n - m, words[i].word) &&
                (n == m || strchr("_- ", head[n - m - 1]) != NULL)) {
                at = head + n - m;
                *at = '\0';
            } else if (n > m && strchr("_- ", head[m]) != NULL) {
                char first[RG_TABLE_HEAD];
                snprintf(first, sizeof first, "%.*s", (int)m, head);
                if (rg_text_same(first, words[i].word)) {
                    memmove(head, head + m + 1, n - m);
                    at = head;
                }
            }
            if (at == NULL)
                continue;
            for (size_t k = strlen(head); k > 0 && strchr("_- ", head[k - 1]) != NULL; k--)
                head[k - 1] = '\0';
            if (words[i].stat != RG_S_CENTRE)
                c->stat = words[i].stat;
            found = again = true;
            break;
        }
    }
    return found;
}

static void rg_table_classify(const char *heading, rg_column *c)
{
    *c = (rg_column){.role = RG_ROLE_PROBLEM};
    for (size_t i = 0; i < sizeof rg_fixed_roles / sizeof rg_fixed_roles[0]; i++)
        if (rg_text_same(rg_fixed_roles[i].name, heading)) {
            c->role = rg_fixed_roles[i].role;
            return;
        }
    char head[RG_TABLE_HEAD];
    snprintf(head, sizeof head, "%s", heading);
    rg_table_unit(head, c);
    const bool stat = rg_table_stat(head, c);
    static const char *const derived[] = {
        "speedup", "ratio", "throughput", "bandwidth", "efficiency", "utilization", "per_sec",
        "gbps",    "tbps",  "tflop",      "gflop",     "error",      "%",           NULL};
    for (const char *const *word = derived; *word != NULL && c->factor == 0; word++)
        if (rg_text_has(heading, *word)) { /* a figure of the same measurement in unknown units */
            c->role = RG_ROLE_IGNORED;
            return;
        }
    if (c->factor > 0 || stat) {
        c->role = RG_ROLE_MEASURE;
        snprintf(c->base, sizeof c->base, "%s", head);
    }
}

/* No heading is a measure: the columns with fractions are, the whole-numbered ones are the problem.
 */
static void rg_table_by_fractions(rg_table_reader *t, const rg_rows *rows, int header)
{
    for (int k = 0; k < t->count; k++) {
        if (t->column[k].role != RG_ROLE_PROBLEM)
            continue;
        bool fraction = false, numbers = true;
        for (int i = header + 1; i < rows->count; i++) {
            double value;
            if (rows->items[i].count != t->head->count)
                continue;
            if (!rg_locale_number(&t->locale, rows->items[i].field[k], &value))
                numbers = false;
            else
                fraction = fraction || value != floor(value);
        }
        if (numbers && fraction) {
            t->column[k].role = RG_ROLE_MEASURE;
            snprintf(t->column[k].base, sizeof t->column[k].base, "%s", t->head->field[k]);
        }
    }
}

static rg_status rg_table_units(rg_table_reader *t, rg_err *err)
{
    const rg_run_options *options = t->r->options;
    const char *unit = options == NULL ? NULL : options->unit;
    double factor = 0;
    const char *rate = NULL;
    if (unit != NULL && !rg_unit_is_time(unit, &factor) && !rg_unit_is_rate(unit, &factor, &rate))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "unit '%s' is not known; use ns, us, ms, s, TFLOP/s or GB/s", unit);
    bool any = false;
    for (int k = 0; k < t->count; k++) {
        rg_column *c = &t->column[k];
        if (c->role != RG_ROLE_MEASURE)
            continue;
        any = true;
        if (c->factor > 0)
            continue;
        for (int j = 0; j < t->count && c->factor == 0;
             j++) /* "X-min" takes the unit of "X (ms)" */
            if (j != k && t->column[j].role == RG_ROLE_MEASURE && t->column[j].factor > 0 &&
                strcmp(t->column[j].base, c->base) == 0) {
                c->factor = t->column[j].factor;
                c->rate = t->column[j].rate;
            }
        if (c->factor > 0)
            continue;
        if (factor == 0)
            return rg_fail(
                err, RG_ERR_INPUT, (rg_pos){t->r->path, t->head->line, 1},
                "column '%s' names no unit; call it '%s_ms' or '%s (TFLOPS)', or give the "
                "unit as an option (--unit ms)",
                t->head->field[k], t->head->field[k], t->head->field[k]);
        c->factor = factor;
        c->rate = rate;
    }
    if (!any)
        return rg_fail(
            err, RG_ERR_INPUT, (rg_pos){t->r->path, t->head->line, 1},
            "no column of times among '%s', '%s', ...; call one 'median_ms', 'time_us' or "
            "the like",
            t->head->field[0], t->head->count > 1 ? t->head->field[1] : "");
    return RG_OK;
}

static double rg_table_number(const rg_table_reader *t, const rg_row *row, rg_role role)
{
    double value;
    for (int k = 0; k < t->count; k++)
        if (t->column[k].role == role && rg_locale_number(&t->locale, row->field[k], &value))
            return value;
    return NAN;
}

static rg_status rg_table_names(rg_table_reader *t, const rg_row *row, const char *base,
                                const char **kernel, const char **problem, const char **dtype,
                                rg_err *err)
{
    const char *name = "", *text = "", *type = "";
    for (int k = 0; k < t->count; k++) {
        const rg_column *c = &t->column[k];
        const char *field = row->field[k];
        if (c->role == RG_ROLE_KERNEL || c->role == RG_ROLE_PROVIDER) {
            name = rg_arena_printf(t->r->arena, err, "%s%s%s", name, name[0] ? "/" : "", field);
        } else if (c->role == RG_ROLE_DTYPE) {
            type = field;
        } else if (c->role == RG_ROLE_PROBLEM) {
            double value;
            if (rg_locale_number(&t->locale, field, &value) && value == floor(value) &&
                fabs(value) < 1e15)
                text = rg_arena_printf(t->r->arena, err, "%s%s%s=%.0f", text, text[0] ? " " : "",
                                       t->head->field[k], value);
            else
                text = rg_arena_printf(t->r->arena, err, "%s%s%s=%s", text, text[0] ? " " : "",
                                       t->head->field[k], field);
        }
        if (name == NULL || text == NULL)
            return RG_ERR_LIMIT;
    }
    if (base[0] != '\0')
        name = rg_arena_printf(t->r->arena, err, "%s%s%s", name, name[0] ? "/" : "", base);
    if (name != NULL && name[0] == '\0') { /* neither column nor provider: the name of the file */
        const char *slash = strrchr(t->r->path, '/');
        char *stem = rg_arena_strdup(t->r->arena, slash == NULL ? t->r->path : slash + 1, err);
        if (stem == NULL)
            return RG_ERR_LIMIT;
        char *point = strrchr(stem, '.');
        if (point != NULL && point > stem)
            *point = '\0';
        name = stem;
    }
    if (name == NULL)
        return RG_ERR_LIMIT;
    *kernel = name;
    *problem = text;
    *dtype = type;
    return RG_OK;
}

typedef struct rg_measure {
    double value[RG_S_DEVIATION + 1]; /* costs; deviation in the measure's own unit */
    const char *rate;
    double rate_value; /* a rate beside the time of the same base */
    const char *rate_name;
    const char *bad, *bad_value; /* a cell that is no positive number; an empty one is a gap */
} rg_measure;

static void rg_table_measure(const rg_table_reader *t, const rg_row *row, const char *base,
                             rg_measure *m)
{
    bool has_time = false;
    *m = (rg_measure){.rate_value = NAN};
    for (int i = 0; i <= RG_S_DEVIATION; i++)
        m->value[i] = NAN;
    for (int k = 0; k < t->count; k++)
        has_time = has_time || (t->column[k].role == RG_ROLE_MEASURE && t->column[k].rate == NULL &&
                                strcmp(t->column[k].base, base) == 0);
    for (int k = 0; k < t->count; k++) {
        const rg_column *c = &t->column[k];
        if (c->role != RG_ROLE_MEASURE || strcmp(c->base, base) != 0)
            continue;
        double value;
        if (!rg_locale_number(&t->locale, row->field[k], &value) || !(value > 0)) {
            if (row->field[k][0] != '\0' && c->stat != RG_S_DEVIATION && m->bad == NULL) {
                m->bad = t->head->field[k];
                m->bad_value = row->field[k];
            }
            continue;
        }
        value *= c->factor;
        if (c->rate == NULL) {
            m->value[c->stat] = value;
        } else if (has_time) {
            m->rate_value = value;
            m->rate_name = c->rate;
        } else { /* the highest rate is the least cost */
            rg_stat_kind stat = c->stat;
            if (stat == RG_S_LEAST || stat == RG_S_MOST)
                stat = stat == RG_S_LEAST ? RG_S_MOST : RG_S_LEAST;
            else if (stat == RG_S_Q1 || stat == RG_S_Q3)
                stat = stat == RG_S_Q1 ? RG_S_Q3 : RG_S_Q1;
            if (stat != RG_S_DEVIATION)
                m->value[stat] = 1 / value;
            m->rate = c->rate;
        }
    }
}

static rg_status rg_table_keep(rg_table_reader *t, const rg_row *row, const char *base, rg_err *err)
{
    const char *kernel, *problem, *dtype;
    rg_measure m;
    rg_run_entry *e;
    RG_TRY(rg_table_names(t, row, base, &kernel, &problem, &dtype, err));
    rg_table_measure(t, row, base, &m);
    RG_TRY(
        rg_reader_entry(t->r, kernel, problem, dtype, (rg_pos){t->r->path, row->line, 1}, &e, err));
    e->rate_unit = m.rate;
    double centre = m.value[RG_S_MEDIAN];
    if (isnan(centre))
        centre = isnan(m.value[RG_S_CENTRE]) ? m.value[RG_S_MEAN] : m.value[RG_S_CENTRE];
    if (m.bad != NULL)
        return rg_reader_refuse(t->r, e, m.bad, m.bad_value, (rg_pos){t->r->path, row->line, 1},
                                err);
    if (isnan(centre)) {
        if (e->sample_count == 0 && isnan(e->median) && isnan(e->mean))
            e->unusable = "no median, mean or time";
        return RG_OK;
    }
    if (!e->refused) /* a gap before may have said so */
        e->unusable = NULL;
    const bool spread = !isnan(m.value[RG_S_Q1] + m.value[RG_S_Q3]) ||
                        !isnan(m.value[RG_S_LEAST] + m.value[RG_S_MOST]) ||
                        !isnan(m.value[RG_S_DEVIATION]);
    if (spread && e->sample_count == 0 && isnan(e->median) && isnan(e->mean)) {
        e->median = isnan(m.value[RG_S_MEDIAN]) ? m.value[RG_S_CENTRE] : m.value[RG_S_MEDIAN];
        e->mean = m.value[RG_S_MEAN];
        e->q1 = m.value[RG_S_Q1];
        e->q3 = m.value[RG_S_Q3];
        e->least = m.value[RG_S_LEAST];
        e->most = m.value[RG_S_MOST];
        e->deviation = m.value[RG_S_DEVIATION];
        e->count = rg_table_number(t, row, RG_ROLE_COUNT);
    } else {
        if (!isnan(e->median) || !isnan(e->mean)) { /* a second summary: both become samples */
            const double first = isnan(e->median) ? e->mean : e->median;
            e->median = e->mean = e->q1 = e->q3 = e->least = e->most = e->deviation = NAN;
            RG_TRY(rg_reader_sample(t->r, e, first, err));
        }
        RG_TRY(rg_reader_sample(t->r, e, centre, err));
        const double process = rg_table_number(t, row, RG_ROLE_PROCESS);
        if (process >= 0 && process < 1e6) {
            e->process[e->sample_count - 1] = (int)process;
            if ((int)process + 1 > e->processes)
                e->processes = (int)process + 1;
        }
    }
    e->flops = rg_table_number(t, row, RG_ROLE_FLOPS);
    e->model_bytes = rg_table_number(t, row, RG_ROLE_BYTES);
    e->dram_bytes = rg_table_number(t, row, RG_ROLE_DRAM);
    e->registers = rg_table_number(t, row, RG_ROLE_REGISTERS);
    e->spill_bytes = rg_table_number(t, row, RG_ROLE_SPILLS);
    e->clock_hz = rg_table_number(t, row, RG_ROLE_CLOCK);
    if (!isnan(m.rate_value) && strcmp(m.rate_name, "FLOP/s") == 0 && isnan(e->flops))
        e->flops = m.rate_value * centre;
    if (!isnan(m.rate_value) && strcmp(m.rate_name, "byte/s") == 0 && isnan(e->model_bytes))
        e->model_bytes = m.rate_value * centre;
    return RG_OK;
}

rg_status rg_run_read_table(rg_reader *r, const rg_rows *rows, int header, rg_err *err)
{
    r->run->tool = "table";
    rg_table_reader *t = RG_NEW(r->arena, rg_table_reader, 1, err);
    if (t == NULL)
        return RG_ERR_LIMIT;
    t->r = r;
    t->head = &rows->items[header];
    t->count = t->head->count;
    if (t->count > RG_TABLE_COLUMNS)
        return rg_fail(err, RG_ERR_LIMIT, (rg_pos){r->path, t->head->line, 1},
                       "%d columns; at most %d are read", t->count, RG_TABLE_COLUMNS);
    bool measures = false;
    for (int k = 0; k < t->count; k++) {
        rg_table_classify(t->head->field[k], &t->column[k]);
        measures = measures || t->column[k].role == RG_ROLE_MEASURE;
    }
    for (int i = header + 1; i < rows->count; i++) /* versions and dates are no numbers */
        for (int k = 0; k < rows->items[i].count && k < t->count; k++)
            if (!measures || t->column[k].role >= RG_ROLE_FLOPS)
                rg_locale_see(&t->locale, rows->items[i].field[k]);
    RG_TRY(rg_locale_settle(&t->locale, (rg_pos){r->path, t->head->line, 1}, err));
    if (!measures)
        rg_table_by_fractions(t, rows, header);
    RG_TRY(rg_table_units(t, err));
    for (int i = header + 1; i < rows->count; i++) {
        const rg_row *row = &rows->items[i];
        if (row->count == 0 || (row->count > 0 && row->field[0][0] == '#'))
            continue;
        if (row->count != t->head->count)
            return rg_fail(err, RG_ERR_INPUT, (rg_pos){r->path, row->line, 1},
                           "%d fields where the header has %d", row->count, t->head->count);
        for (int k = 0; k < t->count; k++) { /* once for each base, at its first column */
            if (t->column[k].role != RG_ROLE_MEASURE)
                continue;
            bool first = true;
            for (int j = 0; j < k; j++)
                first = first && !(t->column[j].role == RG_ROLE_MEASURE &&
                                   strcmp(t->column[j].base, t->column[k].base) == 0);
            if (first)
                RG_TRY(rg_table_keep(t, row, t->column[k].base, err));
        }
    }
    return RG_OK;
}

/* cli/cmd_coll.c: time, bandwidth and algorithm of collectives, beside measured logs. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/coll_workload.h"
#include "cli/setup.h"
#include "core/file.h"
#include "core/text.h"
#include "net/coll.h"
#include "report/plot.h"
#include "trace/run.h"

extern const rg_command rg_cmd_coll;

enum {
    MOST_LISTED = 16,
    MOST_POINTS = 100000,
    MOST_CROSSOVERS = 32,
    MOST_LOG_BYTES = 64 << 20,
};

/* What was validated: the sizes, ranks and fabrics that constants were fitted and tested on. */
static const double validated_least_bytes = 512, validated_most_bytes = 536870912.0;
static const int64_t validated_most_ranks = 8;

typedef struct point {
    rg_coll_query query;
    rg_coll_result result;
    double simulated_s, measured_s; /* NaN where there is none */
    int line;                       /* of the figure: one for each operation and number of ranks */
} point;

typedef struct job {
    rg_arena *arena;
    const rg_args *args;
    rg_report *report;
    rg_setup setup;
    rg_coll_context *links;
    rg_coll_query base;
    point *points;
    int count;
    rg_coll_op line_op[MOST_LISTED * MOST_LISTED];
    int64_t line_ranks[MOST_LISTED * MOST_LISTED];
    int lines;
    bool measured;
    bool told; /* that some points are not simulated */
} job;

/* ---- the points ---- */

static int line_of(job *j, rg_coll_op op, int64_t ranks)
{
    for (int i = 0; i < j->lines; i++)
        if (j->line_op[i] == op && j->line_ranks[i] == ranks)
            return i;
    if (j->lines == MOST_LISTED * MOST_LISTED)
        return 0;
    j->line_op[j->lines] = op;
    j->line_ranks[j->lines] = ranks;
    return j->lines++;
}

static rg_status add_point(job *j, rg_coll_op op, int64_t ranks, double bytes, double measured_s,
                           rg_err *err)
{
    if (j->count == MOST_POINTS)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than %d points", MOST_POINTS);
    point *p = &j->points[j->count++];
    *p = (point){.query = j->base, .simulated_s = NAN, .measured_s = measured_s};
    p->query.op = op;
    p->query.ranks = ranks;
    p->query.bytes = RG_B(bytes);
    p->line = line_of(j, op, ranks);
    RG_TRY(rg_coll_time(j->links, &p->query, &p->result, err));
    if (rg_arg_flag(j->args, "simulate")) {
        rg_arena *own = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
        rg_coll_result r;
        if (own == NULL)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for the simulation");
        rg_coll_query same = p->query;
        rg_err why = {0};
        same.algorithm = p->result.algorithm;
        const rg_status status = rg_coll_simulate(own, j->links, &same, &r, NULL, &why);
        rg_arena_free(own);
        if (status == RG_ERR_MODEL) { /* trees and switches that reduce have no schedule of flows */
            if (!j->told)
                rg_report_assume(j->report, "not simulated: %s", why.text);
            j->told = true;
            return RG_OK;
        }
        if (status != RG_OK)
            return rg_fail(err, status, RG_NOWHERE, "%s", why.text);
        p->simulated_s = r.time.v;
    }
    return RG_OK;
}

/** "2,4,8" or all powers of two up to the domain. */
static rg_status ranks_of(job *j, int64_t out[MOST_LISTED], int *count, rg_err *err)
{
    const char *text = rg_arg_text(j->args, "ranks");
    *count = 0;
    if (text == NULL) {
        const rg_cluster *c = j->setup.cluster;
        const int64_t all = c->devices_per_node * c->nodes;
        out[(*count)++] =
            c->scale_up_devices > 1 && c->scale_up_devices < all ? c->scale_up_devices : all;
        if (out[0] < 2)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "'%s' is one device; name a node or cluster, or give --ranks", c->name);
        rg_report_assume(j->report, "ranks: %lld, one scale-up domain", (long long)out[0]);
        return RG_OK;
    }
    while (*text != '\0') {
        char part[24];
        const size_t length = strcspn(text, ",");
        int64_t n;
        if (length == 0 || length >= sizeof part || *count == MOST_LISTED)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "option --ranks '%s': numbers with commas between, like 2,4,8",
                           rg_arg_text(j->args, "ranks"));
        memcpy(part, text, length);
        part[length] = '\0';
        if (!rg_text_to_int(part, &n) || n < 1)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "option --ranks: '%s' is no number of ranks", part);
        out[(*count)++] = n;
        text += length + (text[length] == ',');
    }
    return RG_OK;
}

static rg_status ops_of(job *j, rg_coll_op out[MOST_LISTED], int *count, rg_err *err)
{
    *count = rg_arg_count(j->args, "op");
    if (*count > MOST_LISTED)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "more than %d --op", MOST_LISTED);
    for (int i = 0; i < *count; i++)
        RG_TRY(rg_coll_op_parse(rg_arg_nth(j->args, "op", i), &out[i], err));
    if (*count == 0)
        out[(*count)++] = RG_COLL_ALL_REDUCE;
    return RG_OK;
}

static rg_status sweep(job *j, rg_err *err)
{
    int64_t ranks[MOST_LISTED];
    rg_coll_op ops[MOST_LISTED];
    int rank_count, op_count;
    double least, most, factor;
    RG_TRY(ranks_of(j, ranks, &rank_count, err));
    RG_TRY(ops_of(j, ops, &op_count, err));
    RG_TRY(rg_arg_quantity(j->args, "from", RG_DIM_BYTES, &least, err));
    RG_TRY(rg_arg_quantity(j->args, "to", RG_DIM_BYTES, &most, err));
    RG_TRY(rg_arg_real(j->args, "factor", 1.001, 1e6, &factor, err));
    if (least < 1 || most < least)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "--from must be 1 B or more, and --to not below it");
    const int listed = rg_arg_count(j->args, "bytes");
    for (int o = 0; o < op_count; o++)
        for (int r = 0; r < rank_count; r++) {
            for (int i = 0; i < listed; i++) {
                double bytes;
                RG_TRY(rg_quantity_parse(rg_arg_nth(j->args, "bytes", i), RG_DIM_BYTES, RG_NOWHERE,
                                         "option --bytes", &bytes, err));
                RG_TRY(add_point(j, ops[o], ranks[r], bytes, NAN, err));
            }
            /* a little over the end, so that rounding does not cost the last size */
            for (double bytes = least; listed == 0 && bytes <= most * (1 + 1e-9); bytes *= factor)
                RG_TRY(add_point(j, ops[o], ranks[r], floor(bytes + 0.5), NAN, err));
        }
    return RG_OK;
}

/* ---- logs ---- */

/** "ranks=8 bytes=1024 out-of-place" of a run record. */
static bool problem_number(const char *problem, const char *key, double *out)
{
    const char *at = strstr(problem, key);
    if (at == NULL)
        return false;
    *out = strtod(at + strlen(key), NULL);
    return *out > 0;
}

/** Seconds of an entry: its samples' mean, else its summary. */
static double seconds_of(const rg_run_entry *e)
{
    double sum = 0;
    for (int i = 0; i < e->sample_count; i++)
        sum += e->samples[i];
    if (e->sample_count > 0)
        return sum / e->sample_count;
    return isfinite(e->median) ? e->median : e->mean;
}

/** Ranks on the host of the first "# Rank 0 ... on HOST device" line, 0 when the log has none. */
static rg_status ranks_of_a_host(job *j, const char *path, int64_t *out, rg_err *err)
{
    char *text, host[64] = "";
    size_t length;
    *out = 0;
    RG_TRY(rg_file_read(j->arena, path, MOST_LOG_BYTES, &text, &length, err));
    for (const char *next = text; *next != '\0';) {
        char line[256]; /* such lines are short; longer ones are something else */
        const size_t width = strcspn(next, "\n");
        const size_t kept = width < sizeof line ? width : sizeof line - 1;
        memcpy(line, next, kept);
        line[kept] = '\0';
        next += width + (next[width] == '\n');
        const char *rank = strstr(line, "Rank"), *on = strstr(line, " on ");
        if (rank == NULL || on == NULL || rank > on || strstr(on, " device ") == NULL)
            continue;
        on += strlen(" on ");
        on += strspn(on, " ");
        const size_t size = strcspn(on, " ");
        if (size == 0 || size >= sizeof host)
            continue;
        if (host[0] == '\0')
            memcpy(host, on, size);
        *out += strlen(host) == size && memcmp(host, on, size) == 0;
    }
    return RG_OK;
}

/** Lay the log's ranks on nodes as it says, where the options do not. */
static rg_status fit_cluster_to(job *j, const char *path, int64_t ranks, rg_err *err)
{
    rg_cluster *c = j->setup.cluster;
    int64_t local;
    RG_TRY(ranks_of_a_host(j, path, &local, err));
    if (local < 1 || local >= ranks || rg_arg_given(j->args, "ranks-per-node"))
        return RG_OK;
    j->base.local = local;
    const int64_t nodes = (ranks + local - 1) / local;
    rg_report_assume(j->report, "%s: %lld %s on each of %lld nodes", path, (long long)local,
                     local == 1 ? "rank" : "ranks", (long long)nodes);
    if (nodes <= c->nodes || rg_arg_given(j->args, "nodes"))
        return RG_OK;
    c->nodes = nodes;
    return rg_coll_prepare(j->arena, c, NULL, &j->links, err);
}

static rg_status read_log(job *j, const char *path, rg_err *err)
{
    rg_run *log;
    RG_TRY(rg_run_load(j->arena, path, NULL, &log, err));
    if (strcmp(log->tool, "nccl-tests") != 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "'%s' is a record of %s, not of nccl-tests",
                       path, log->tool);
    RG_TRY(rg_report_input(j->report, "measured", path, err));
    for (int i = 0; i < log->note_count; i++)
        rg_report_assume(j->report, "%s: %s", path, log->notes[i]);
    int used = 0, other = 0, broken = 0;
    if (log->count > 0)
        RG_TRY(fit_cluster_to(j, path, (int64_t)log->entries[0].rank_count, err));
    for (int i = 0; i < log->count; i++) {
        const rg_run_entry *e = &log->entries[i];
        rg_coll_op op;
        double bytes, ranks = e->rank_count;
        if (strstr(e->problem, "in-place") != NULL)
            continue;
        if (e->unusable != NULL || !(seconds_of(e) > 0) || e->rate_unit != NULL) {
            broken++;
            continue;
        }
        if (rg_coll_op_parse(e->kernel, &op, NULL) != RG_OK) {
            other++;
            continue;
        }
        if (!problem_number(e->problem, "bytes=", &bytes))
            continue;
        if (!(ranks > 0) && !problem_number(e->problem, "ranks=", &ranks))
            continue;
        j->base.integer = strstr(e->dtype, "int") != NULL;
        RG_TRY(add_point(j, op, (int64_t)ranks, bytes, seconds_of(e), err));
        used++;
    }
    if (other > 0)
        rg_report_assume(j->report, "%s: %d rows of '%s' are left out; no model of it", path, other,
                         log->entries[0].kernel);
    if (broken > 0)
        rg_report_assume(j->report, "%s: %d rows without a time are left out", path, broken);
    if (used == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){.file = path, .line = 1},
                       "no out-of-place row with a size in it");
    j->measured = true;
    return RG_OK;
}

/* ---- the report ---- */

static bool in_range(const job *j, const point *p)
{
    const bool one_domain = p->query.ranks * (p->query.stride > 0 ? p->query.stride : 1) <=
                            j->setup.cluster->scale_up_devices;
    return one_domain && p->query.ranks <= validated_most_ranks &&
           p->query.bytes.v >= validated_least_bytes && p->query.bytes.v <= validated_most_bytes;
}

static void put_points(job *j)
{
    const bool simulated = rg_arg_flag(j->args, "simulate");
    rg_table *t = rg_report_table(j->report, "points", "Collectives");
    rg_table_column(t, "op", "op", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "ranks", "ranks", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "bytes", "size", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(t, "time_s", "time", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "algbw_bytes_per_s", "algbw", RG_CELL_REAL, RG_DIM_BYTES_PER_S, false);
    rg_table_column(t, "busbw_bytes_per_s", "busbw", RG_CELL_REAL, RG_DIM_BYTES_PER_S, false);
    rg_table_column(t, "algorithm", "algorithm", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "protocol", "protocol", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "limit", "limit", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "steps", "steps", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "latency_s", "latency", RG_CELL_REAL, RG_DIM_SECONDS, true);
    rg_table_column(t, "sent_bytes", "sent", RG_CELL_REAL, RG_DIM_BYTES, true);
    rg_table_column(t, "above_link", "above link", RG_CELL_BOOL, RG_DIM_NONE, true);
    rg_table_column(t, "in_validated_range", "validated", RG_CELL_BOOL, RG_DIM_NONE, true);
    if (simulated)
        rg_table_column(t, "simulated_time_s", "links alone", RG_CELL_REAL, RG_DIM_SECONDS, false);
    if (j->measured) {
        rg_table_column(t, "measured_time_s", "measured", RG_CELL_REAL, RG_DIM_SECONDS, false);
        rg_table_column(t, "error_ratio", "error", RG_CELL_REAL, RG_DIM_NONE, false);
    }
    for (int i = 0; i < j->count; i++) {
        const point *p = &j->points[i];
        rg_table_text(t, rg_coll_op_name(p->query.op));
        rg_table_int(t, (long long)p->query.ranks);
        rg_table_real(t, p->query.bytes.v);
        rg_table_real(t, p->result.time.v);
        rg_table_real(t, p->result.algbw.v);
        rg_table_real(t, p->result.busbw.v);
        rg_table_text(t, rg_coll_algorithm_name(p->result.algorithm));
        rg_table_text(t, rg_coll_protocol_name(p->result.protocol));
        rg_table_text(t, rg_coll_limit_name(p->result.limit));
        rg_table_int(t, (long long)p->result.steps);
        rg_table_real(t, p->result.latency.v);
        rg_table_real(t, p->result.sent.v);
        rg_table_bool(t, p->result.above_link);
        rg_table_bool(t, in_range(j, p));
        if (simulated)
            rg_table_real(t, p->simulated_s);
        if (j->measured) {
            rg_table_real(t, p->measured_s);
            rg_table_real(t, p->result.time.v / p->measured_s - 1);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Median of |error|, below and from 1 MiB on. */
static rg_status put_errors(job *j, rg_err *err)
{
    double *errors = RG_NEW(j->arena, double, j->count, err);
    if (errors == NULL)
        return RG_ERR_LIMIT;
    for (int big = 0; big < 2; big++) {
        int n = 0;
        for (int i = 0; i < j->count; i++) {
            const point *p = &j->points[i];
            if (isfinite(p->measured_s) && (p->query.bytes.v >= 1 << 20) == (big == 1))
                errors[n++] = fabs(p->result.time.v / p->measured_s - 1);
        }
        if (n == 0)
            continue;
        qsort(errors, (size_t)n, sizeof *errors, by_value);
        const double median = n % 2 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2;
        rg_report_figure(
            j->report, big ? "median_error_from_1mib_ratio" : "median_error_below_1mib_ratio",
            big ? "median error from 1 MiB on" : "median error below 1 MiB", median, RG_DIM_NONE);
    }
    return RG_OK;
}

static rg_status put_crossovers(job *j, rg_err *err)
{
    rg_table *t = rg_report_table(j->report, "crossovers", "Automatic choice by size");
    rg_table_column(t, "op", "op", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "ranks", "ranks", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "from_bytes", "from", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(t, "algorithm", "algorithm", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "protocol", "protocol", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int i = 0; i < j->lines; i++) {
        rg_coll_query q = j->base;
        rg_coll_crossover list[MOST_CROSSOVERS];
        int count;
        q.op = j->line_op[i];
        q.ranks = j->line_ranks[i];
        if (q.ranks < 2)
            continue;
        RG_TRY(rg_coll_crossovers(j->links, &q, RG_B(8), RG_B(8.0 * (1 << 30)), list,
                                  MOST_CROSSOVERS, &count, err));
        for (int k = 0; k < count; k++) {
            rg_table_text(t, rg_coll_op_name(q.op));
            rg_table_int(t, (long long)q.ranks);
            rg_table_real(t, list[k].from.v);
            rg_table_text(t, rg_coll_algorithm_name(list[k].algorithm));
            rg_table_text(t, rg_coll_protocol_name(list[k].protocol));
        }
    }
    return RG_OK;
}

static void put_assumptions(job *j)
{
    const rg_cluster *c = j->setup.cluster;
    bool outside = false, above = false;
    for (int i = 0; i < j->count; i++) {
        outside |= j->points[i].query.ranks > 1 && !in_range(j, &j->points[i]);
        above |= j->points[i].result.above_link;
    }
    if (j->base.library == RG_LIB_IDEAL)
        rg_report_assume(j->report, "ideal links: rates and latencies of '%s', no software",
                         c->name);
    else
        rg_report_assume(j->report, "%s", rg_coll_note(j->links));
    if (outside && j->base.library != RG_LIB_IDEAL)
        rg_report_assume(
            j->report,
            "points outside 512 B to 512 MiB, 2 to 8 ranks of one node are extrapolated: "
            "not validated");
    if (above)
        rg_report_assume(j->report, "busbw above the link rate: in-switch reduction (NVLS) sends "
                                    "each byte once; algbw stays below the link");
    if (c->scale_up.latency.assumed)
        rg_report_assume(j->report, "link latency: %s", c->scale_up.latency.source);
}

/** What a person wants first: the largest size of each line. */
static void put_answer(job *j)
{
    for (int line = 0; line < j->lines; line++) {
        const point *best = NULL;
        for (int i = 0; i < j->count; i++)
            if (j->points[i].line == line &&
                (best == NULL || j->points[i].query.bytes.v > best->query.bytes.v))
                best = &j->points[i];
        if (best == NULL)
            continue;
        char size[32], time[32], bus[32];
        rg_quantity_format(best->query.bytes.v, RG_DIM_BYTES, 3, size, sizeof size);
        rg_quantity_format(best->result.time.v, RG_DIM_SECONDS, 3, time, sizeof time);
        rg_quantity_format(best->result.busbw.v, RG_DIM_BYTES_PER_S, 3, bus, sizeof bus);
        rg_report_line(j->report, "%s of %s over %lld %s: %s, busbw %s, %s, limited by %s",
                       rg_coll_op_name(best->query.op), size, (long long)best->query.ranks,
                       best->query.ranks == 1 ? "rank" : "ranks", time, bus,
                       rg_coll_algorithm_name(best->result.algorithm),
                       rg_coll_limit_name(best->result.limit));
    }
}

static rg_status draw(job *j, const char *path, rg_err *err)
{
    rg_plot *plot;
    FILE *out;
    RG_TRY(rg_plot_new(j->arena, "coll", strcmp(path, "-") == 0 ? NULL : path, &plot, err));
    rg_plot_text(plot, "figure_title", "collectives on %s", j->setup.cluster->name);
    rg_plot_number(plot, "lines", j->lines);
    rg_plot_number(plot, "has_measured", j->measured);
    rg_plot_number(plot, "link_rate", j->setup.cluster->scale_up.rate_per_direction.value / 1e9);
    for (int i = 0; i < j->lines; i++) {
        char name[16];
        snprintf(name, sizeof name, "name%d", i);
        rg_plot_text(plot, name, "%s, %lld ranks", rg_coll_op_name(j->line_op[i]),
                     (long long)j->line_ranks[i]);
    }
    RG_TRY(rg_plot_data(plot, "coll", &out, err));
    fprintf(out, "line,bytes,busbw_GBs,time_us\n");
    for (int i = 0; i < j->count; i++)
        fprintf(out, "%d,%.17g,%.9g,%.9g\n", j->points[i].line, j->points[i].query.bytes.v,
                j->points[i].result.busbw.v / 1e9, j->points[i].result.time.v * 1e6);
    RG_TRY(rg_plot_data(plot, "measured", &out, err));
    fprintf(out, "line,bytes,busbw_GBs\n");
    for (int i = 0; i < j->count; i++)
        if (isfinite(j->points[i].measured_s))
            fprintf(out, "%d,%.17g,%.9g\n", j->points[i].line, j->points[i].query.bytes.v,
                    j->points[i].query.bytes.v / j->points[i].measured_s / 1e9 *
                        rg_coll_bus_factor(j->points[i].query.op, j->points[i].query.ranks));
    return rg_plot_write(plot, err);
}

static rg_status read_query(job *j, rg_err *err)
{
    static const char *const protocols[] = {"auto", "ll", "ll128", "simple", NULL};
    static const char *const libraries[] = {"nccl", "custom", "ideal", NULL};
    int choice;
    j->base = (rg_coll_query){.bytes = {0}};
    RG_TRY(rg_coll_algorithm_parse(rg_arg_text(j->args, "algorithm"), &j->base.algorithm, err));
    RG_TRY(rg_arg_choice(j->args, "protocol", protocols, &choice, err));
    j->base.protocol = (rg_coll_protocol)choice;
    RG_TRY(rg_arg_choice(j->args, "library", libraries, &choice, err));
    j->base.library = (rg_coll_library)choice;
    RG_TRY(rg_arg_int(j->args, "stride", 1, 1 << 20, &j->base.stride, err));
    if (rg_arg_given(j->args, "ranks-per-node"))
        RG_TRY(rg_arg_int(j->args, "ranks-per-node", 1, 65536, &j->base.local, err));
    RG_TRY(rg_arg_real(j->args, "imbalance", 1, 1e6, &j->base.imbalance, err));
    j->base.integer = rg_arg_flag(j->args, "integer");
    return RG_OK;
}

static rg_status workload(job *j, rg_err *err)
{
    static const char *const unlike[] = {"op",   "bytes",      "from",     "to",       "factor",
                                         "plot", "crossovers", "measured", "simulate", "stride"};
    const rg_cluster *c = j->setup.cluster;
    int64_t ranks = c->devices_per_node * c->nodes;
    for (size_t i = 0; i < sizeof unlike / sizeof *unlike; i++)
        if (rg_arg_given(j->args, unlike[i]))
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "--workload says what is communicated: leave out --%s", unlike[i]);
    if (rg_arg_given(j->args, "ranks"))
        RG_TRY(rg_arg_int(j->args, "ranks", 1, 1 << 20, &ranks, err));
    RG_TRY(rg_coll_workload(j->arena, rg_arg_text(j->args, "workload"), &j->setup, j->links,
                            &j->base, ranks, j->report, err));
    rg_report_assume(j->report, "%s", rg_coll_note(j->links));
    return rg_arg_write(j->args, j->report, "points", err);
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    job j = {.arena = arena, .args = args};
    RG_TRY(rg_arg_report(arena, args, 1, &j.report, err));
    RG_TRY(rg_setup_changes(arena, args, j.report, &j.setup, err));
    RG_TRY(rg_setup_machine(arena, args, j.report, &j.setup, err));
    if (rg_arg_given(args, "nodes"))
        RG_TRY(rg_arg_int(args, "nodes", 1, 65536, &j.setup.cluster->nodes, err));
    RG_TRY(read_query(&j, err));
    RG_TRY(rg_coll_prepare(arena, j.setup.cluster, NULL, &j.links, err));
    if (rg_arg_given(args, "workload"))
        return workload(&j, err);
    j.points = RG_NEW(arena, point, MOST_POINTS, err);
    if (j.points == NULL)
        return RG_ERR_LIMIT;
    const int logs = rg_arg_count(args, "measured");
    for (int i = 0; i < logs; i++)
        RG_TRY(read_log(&j, rg_arg_nth(args, "measured", i), err));
    if (logs == 0)
        RG_TRY(sweep(&j, err));
    put_answer(&j);
    if (j.measured)
        RG_TRY(put_errors(&j, err));
    put_points(&j);
    if (rg_arg_flag(args, "crossovers"))
        RG_TRY(put_crossovers(&j, err));
    put_assumptions(&j);
    if (rg_arg_given(args, "plot"))
        RG_TRY(draw(&j, rg_arg_text(args, "plot"), err));
    return rg_arg_write(args, j.report, "points", err);
}

static const rg_option options[] = {
    RG_SETUP_MACHINE,
    RG_SETUP_CHANGES,
    {"op", 0, "OP", NULL,
     "all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, send_recv", true},
    {"ranks", 'n', "N,N,...", NULL, "ranks of the group [one scale-up domain]", false},
    {"stride", 0, "N", "1", "device numbers between neighbours of the group", false},
    {"ranks-per-node", 0, "N", NULL, "most ranks in one scale-up domain [as many as fit]", false},
    {"nodes", 0, "N", NULL, "nodes of the cluster, in place of what its file says", false},
    {"bytes", 0, "SIZE", NULL, "a message size, instead of a sweep", true},
    {"from", 'b', "SIZE", "1 KiB", "first size of the sweep", false},
    {"to", 'e', "SIZE", "1 GiB", "last size of the sweep", false},
    {"factor", 0, "X", "2", "from one size to the next", false},
    {"algorithm", 'a', "NAME", "auto",
     "ring, tree, halving_doubling, one_shot, two_shot, in_switch, hierarchical, torus, direct",
     false},
    {"protocol", 0, "NAME", "auto", "ll, ll128, simple", false},
    {"library", 0, "NAME", "nccl", "nccl, custom (a serving engine's own all-reduce), ideal",
     false},
    {"integer", 0, NULL, NULL, "numbers that switches do not add up, as int8", false},
    {"imbalance", 0, "X", "1", "all-to-all: bytes of the busiest rank over the mean", false},
    {"simulate", 0, NULL, NULL, "also run the schedule as flows over the bare links", false},
    {"crossovers", 0, NULL, NULL, "list the sizes at which the automatic choice changes", false},
    {"measured", 0, "LOG", NULL, "nccl-tests log: predict its rows and compare", true},
    {"workload", 0, "FILE", NULL,
     "time every communication of a Chakra trace (.et) or of ASTRA-sim or SimAI workload text",
     false},
    {"plot", 0, "FILE", NULL, "figure of bus bandwidth (.svg, .png, .pdf, - for the terminal)",
     false},
    {0}};

const rg_command rg_cmd_coll = {
    .name = "coll",
    .group = "answer",
    .summary = "time, bandwidth and algorithm of collectives on a node or cluster",
    .description =
        "Sizes are counted as nccl-tests counts them: for all-reduce the buffer of one rank, for "
        "all-gather and reduce-scatter the whole, for all-to-all what one rank holds for all. "
        "algbw "
        "is bytes over time; busbw is algbw times 2(n-1)/n for all-reduce and (n-1)/n for gather, "
        "scatter and all-to-all.\n\n"
        "With --measured, every out-of-place row of an nccl-tests log is predicted and compared "
        "size "
        "by size; the log's printed average mixes all sizes and is not used.\n\n"
        "With --workload, every node of a Chakra trace, or layer of a workload of ASTRA-sim or "
        "SimAI, is run on one rank's host, device and network: when the last one ends, how much "
        "communication nothing hides, and which collectives it is. Compute times are the file's.",
    .examples =
        "ridge coll --hw hgx-h200\n"
        "ridge coll --hw hgx-h200 --op all_gather --ranks 2,4,8 --plot busbw.svg\n"
        "ridge coll --hw superpod-h200 --ranks 256 --bytes '4 GB' -a hierarchical --simulate\n"
        "ridge coll --hw hgx-h100 --measured all_reduce.log\n"
        "ridge coll --hw hgx-h100 --workload step.0.et\n",
    .options = options,
    .run = run,
};

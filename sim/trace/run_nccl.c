/* trace/run_nccl.c: nccl-tests (and rccl-tests), text log and JSON.
 *
 * A row of the log is size, count, type, [redop, root,] then time, algbw, busbw, #wrong out of
 * place and the same in place; newer releases can add i_min, i_max, i_p99, i_cv% to each half and a
 * timestamp, older ones print an error in place of #wrong. Launchers put "0: " or "[1,0]<stdout>:"
 * in front. Each size is an entry of its own: the printed average mixes latencies with the plateau
 * and is never used. Times are means over "iters" repetitions, in microseconds. JSON as in
 * src/util.cu of the public repository (file version 1); the log format from the same file and from
 * real logs.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

enum { RG_NCCL_TOKENS = 48 };

typedef struct rg_nccl {
    rg_reader *r;
    const char *kernel; /* "all_reduce"; NULL while unknown */
    int half;           /* columns of one half */
    int prefix;         /* columns before the first half, 0 while unknown */
    int halves;         /* halves of the rows so far */
    bool cv;            /* the half has i_min i_max i_p99 i_cv% */
    bool counts_wrong;  /* "#wrong", not the older "error" */
    double iterations;
    int ranks, gpus, threads;
    double factor;    /* busbw / algbw of the row with most bytes */
    const char *host; /* of the first rank */
    const char *row;  /* the row being read, and the columns before it in its line */
    int indent;
    const char *redop;
} rg_nccl;

/* Past "0: ", "[0] ", "[1,0]<stdout>:" and blanks. */
static const char *rg_nccl_unlabel(const char *line)
{
    while (isspace((unsigned char)*line))
        line++;
    if (strlen(line) > 20 && line[4] == '-' && line[7] == '-' &&
        (line[10] == 'T' || line[10] == ' ') && line[13] == ':' &&
        isdigit((unsigned char)line[0])) { /* "2026-05-02T10:11:12.3Z " */
        line += 11;
        while (*line != '\0' && !isspace((unsigned char)*line))
            line++;
        while (isspace((unsigned char)*line))
            line++;
    }
    const char *p = line;
    while (isdigit((unsigned char)*p))
        p++;
    if (p > line && *p == ':' && (p[1] == ' ' || p[1] == '#' || p[1] == '\t')) {
        line = p + 1;
    } else if (*line == '[') {
        p = strchr(line, ']');
        if (p != NULL && p - line < 64) {
            p++;
            if (strncmp(p, "<stdout>", 8) == 0)
                p += 8;
            line = p + (*p == ':');
        }
    }
    while (isspace((unsigned char)*line))
        line++;
    return line;
}

static int rg_nccl_tokens(char *line, char **token)
{
    int n = 0;
    for (char *p = line; *p != '\0' && n < RG_NCCL_TOKENS;) {
        while (isspace((unsigned char)*p))
            *p++ = '\0';
        if (*p == '\0')
            break;
        token[n++] = p;
        while (*p != '\0' && !isspace((unsigned char)*p))
            p++;
    }
    return n;
}

/* "…/build/all_reduce_perf -b 8" -> "all_reduce" */
static const char *rg_nccl_program(rg_reader *r, const char *text, rg_err *err)
{
    const char *end = strstr(text, "_perf");
    if (end == NULL)
        return NULL;
    const char *from = end;
    while (from > text && (isalnum((unsigned char)from[-1]) || from[-1] == '_'))
        from--;
    return from == end ? NULL : rg_arena_copy(r->arena, from, (size_t)(end - from), err);
}

static void rg_nccl_header(rg_nccl *s, char **token, int n)
{
    int times[3] = {0}, count = 0;
    s->cv = s->counts_wrong = false;
    for (int i = 0; i < n; i++) {
        if ((strcmp(token[i], "time") == 0 || strcmp(token[i], "cputime") == 0) && count < 3)
            times[count++] = i;
        s->cv = s->cv || strcmp(token[i], "i_cv%") == 0;
        s->counts_wrong = s->counts_wrong || strcmp(token[i], "#wrong") == 0;
    }
    if (count >= 2 && times[1] - times[0] >= 4) /* time, algbw, busbw, #wrong at least */
        s->half = times[1] - times[0];
    s->prefix = count >= 1 && times[0] >= 3 && times[0] <= 5 ? times[0] : 0;
}

/* A number that a column may hold. "N/A" is the tool's word for what it did not check. */
static bool rg_nccl_valid(const char *text, bool time)
{
    double value;
    if (!time && strcmp(text, "N/A") == 0)
        return true;
    return rg_text_to_real(text, &value) && isfinite(value) && (time ? value > 0 : value >= 0);
}

static rg_status rg_nccl_entry(rg_nccl *s, const char *problem, const char *type, bool in_place,
                               rg_pos pos, rg_run_entry **out, rg_err *err)
{
    rg_reader *r = s->r;
    const char *full =
        rg_arena_printf(r->arena, err, "%s %s", problem, in_place ? "in-place" : "out-of-place");
    if (full == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(rg_reader_entry(r, s->kernel == NULL ? "collective" : s->kernel, full, type, pos, out,
                           err));
    (*out)->count = s->iterations;
    (*out)->rank_count = s->ranks;
    return RG_OK;
}

/* The place of a token of the row being read. */
static rg_pos rg_nccl_at(const rg_nccl *s, const char *token, rg_pos pos)
{
    pos.column = s->indent + (int)(token - s->row) + 1;
    return pos;
}

static rg_status rg_nccl_half(rg_nccl *s, const char *problem, const char *type, char **token,
                              bool in_place, rg_pos pos, rg_err *err)
{
    static const char *const columns[] = {"time", "algbw", "busbw", "#wrong"};
    rg_reader *r = s->r;
    rg_run_entry *e;
    RG_TRY(rg_nccl_entry(s, problem, type, in_place, pos, &e, err));
    for (int i = 0; i < s->half; i++)
        if (!rg_nccl_valid(token[i], i == 0))
            return rg_reader_refuse(r, e, i < 4 ? columns[i] : "column", token[i],
                                    rg_nccl_at(s, token[i], pos), err);
    double us, wrong;
    rg_text_to_real(token[0], &us);
    if (s->counts_wrong && rg_text_to_real(token[3], &wrong) && wrong > 0) {
        e->wrong = rg_arena_printf(r->arena, err, "%s wrong elements", token[3]);
        if (e->wrong == NULL)
            return RG_ERR_LIMIT;
    }
    double cv, least, most;
    if (s->cv && s->half >= 8 && rg_text_to_real(token[7], &cv) &&
        rg_text_to_real(token[4], &least) && rg_text_to_real(token[5], &most) && isnan(e->mean) &&
        e->sample_count == 0) {
        e->mean = us * 1e-6;
        e->deviation = us * 1e-6 * cv / 100;
        e->least = least * 1e-6;
        e->most = most * 1e-6;
        return RG_OK;
    }
    return rg_reader_sample(r, e, us * 1e-6, err);
}

/* Both halves of a row that is cut short, mixed with another rank's output, or of no known size. */
static rg_status rg_nccl_refuse(rg_nccl *s, const char *problem, const char *type, const char *what,
                                const char *value, rg_pos pos, rg_err *err)
{
    for (int in_place = s->halves == 1; in_place < 2; in_place++) {
        rg_run_entry *e;
        RG_TRY(rg_nccl_entry(s, problem, type, in_place, pos, &e, err));
        RG_TRY(rg_reader_refuse(s->r, e, what, value, pos, err));
    }
    return RG_OK;
}

/* Columns before the values of a row of n columns: as the header says, else as many as a known
 * form has. 0: no whole row. */
static int rg_nccl_prefix(const rg_nccl *s, int n)
{
    const int both = n - 2 * s->half, one = n - s->half;
    if (s->prefix > 0)
        return both == s->prefix || one == s->prefix ? s->prefix : 0;
    return both >= 3 && both <= 5 ? both : one >= 3 && one <= 5 ? one : 0;
}

/* Size, count and type, of which one may be spoilt where the columns are as many as they should
 * be. */
static bool rg_nccl_is_row(const rg_nccl *s, char **token, int n)
{
    int64_t number;
    if (n < 4 || !isalpha((unsigned char)token[2][0]))
        return false;
    const bool size = rg_text_to_int(token[0], &number), count = rg_text_to_int(token[1], &number);
    if (size && count)
        return true;
    int numbers = 0;
    const int prefix = s->prefix > 0 ? rg_nccl_prefix(s, n) : 0;
    for (int i = prefix; i < n; i++)
        numbers += rg_nccl_valid(token[i], false);
    return prefix > 0 && 2 * numbers > n - prefix;
}

static rg_status rg_nccl_row(rg_nccl *s, char **token, int n, rg_pos pos, rg_err *err)
{
    int64_t bytes = -1, elements = -1;
    const bool size = rg_text_to_int(token[0], &bytes) && bytes >= 0;
    const char *redop = n > 3 && isalpha((unsigned char)token[3][0]) ? token[3] : "";
    const char *problem =
        rg_arena_printf(s->r->arena, err, "ranks=%d bytes=%s%s%s", s->ranks, token[0],
                        redop[0] && strcmp(redop, "none") != 0 ? " redop=" : "",
                        strcmp(redop, "none") != 0 ? redop : "");
    if (problem == NULL)
        return RG_ERR_LIMIT;
    if (!size)
        return rg_nccl_refuse(s, problem, token[2], "size", token[0], rg_nccl_at(s, token[0], pos),
                              err);
    if (!rg_text_to_int(token[1], &elements) || elements < 0)
        return rg_nccl_refuse(s, problem, token[2], "count", token[1], rg_nccl_at(s, token[1], pos),
                              err);
    const int prefix = rg_nccl_prefix(s, n);
    if (prefix == 0) {
        char columns[32];
        snprintf(columns, sizeof columns, "%d columns", n);
        return rg_nccl_refuse(s, problem, token[2], "a row of", columns, pos, err);
    }
    s->halves = n - prefix > s->half ? 2 : 1;
    double algbw, busbw;
    if (rg_text_to_real(token[prefix + 1], &algbw) && rg_text_to_real(token[prefix + 2], &busbw) &&
        algbw > 1)
        s->factor = busbw / algbw;
    s->redop = rg_arena_strdup(s->r->arena, redop, err);
    if (s->halves == 2)
        RG_TRY(rg_nccl_half(s, problem, token[2], token + prefix, false, pos, err));
    return rg_nccl_half(s, problem, token[2], token + n - s->half, true, pos, err);
}

/* Tokens of a row without its time stamp. */
static int rg_nccl_row_tokens(char *line, char **token)
{
    const int n = rg_nccl_tokens(line, token);
    return n > 5 && strlen(token[n - 1]) == 8 && token[n - 1][2] == ':' &&
                   strlen(token[n - 2]) == 10
               ? n - 2
               : n;
}

/* "# Rank 3 Group 0 Pid 7 on HOST device 3 [0x5d] NVIDIA H200". */
static rg_status rg_nccl_rank(rg_nccl *s, const char *line, int rank, rg_err *err)
{
    rg_run *run = s->r->run;
    if (rank >= 0 && rank < (1 << 20) && rank + 1 > s->ranks)
        s->ranks = rank + 1;
    const char *on = strstr(line, " on "), *device = strstr(line, " device ");
    if (on != NULL && device != NULL && on < device) {
        on += strspn(on + 4, " ") + 4;
        const size_t length = strcspn(on, " ");
        if (s->host == NULL && (s->host = rg_arena_copy(s->r->arena, on, length, err)) == NULL)
            return RG_ERR_LIMIT;
        run->host_ranks += strlen(s->host) == length && memcmp(s->host, on, length) == 0;
    }
    if (run->device[0] != '\0')
        return RG_OK;
    const char *name = strrchr(line, ']') + 1;
    while (isspace((unsigned char)*name))
        name++;
    run->device = rg_arena_strdup(s->r->arena, name, err);
    return run->device == NULL ? RG_ERR_LIMIT : RG_OK;
}

static rg_status rg_nccl_comment(rg_nccl *s, const char *line, rg_err *err)
{
    int a, b, rank;
    const char *p = line;
    while (*p == '#' || isspace((unsigned char)*p))
        p++;
    if (sscanf(p, "Rank %d", &rank) == 1 && strchr(p, ']') != NULL)
        return rg_nccl_rank(s, p, rank, err);
    if (strncmp(p, "Using devices", 13) == 0) { /* the ranks of another test follow */
        s->ranks = s->r->run->host_ranks = 0;
        s->host = NULL;
    } else if (sscanf(p, "nThread %d nGpus %d", &a, &b) == 2 ||
               sscanf(p, "nThread: %d nGpus: %d", &a, &b) == 2) {
        s->threads = a;
        s->gpus = b;
        const char *iters = strstr(p, " iters: "); /* the first one is the warm-up */
        if (iters != NULL && strstr(iters + 8, " iters: ") != NULL && strstr(p, "warmup") != NULL)
            iters = strstr(iters + 8, " iters: ");
        if (iters != NULL && sscanf(iters, " iters: %d", &a) == 1 && a > 0)
            s->iterations = a;
    } else if (strncmp(p, "NCCL version", 12) == 0 || strncmp(p, "nccl-tests version", 18) == 0) {
        return rg_reader_note(s->r, err, "%s", p);
    } else if (strstr(p, "nRanks") == NULL && rg_text_has(p, "NVLS") && rg_text_has(p, "NCCL")) {
        return rg_reader_note(s->r, err, "NVLS (in-switch reduction): busbw is not wire speed");
    }
    return RG_OK;
}

/* A log that starts behind its command line still tells what it ran, by its bus bandwidth factor.
 */
static rg_status rg_nccl_name(rg_nccl *s, rg_err *err)
{
    const double n = s->ranks;
    if (s->kernel != NULL || n < 2)
        return RG_OK;
    const char *name = "collective";
    const bool reduces = s->redop != NULL && s->redop[0] != '\0' && strcmp(s->redop, "none") != 0;
    if (fabs(s->factor - 2 * (n - 1) / n) < 0.01)
        name = "all_reduce";
    else if (fabs(s->factor - (n - 1) / n) < 0.01 && reduces)
        name = "reduce_scatter";
    for (int i = 0; i < s->r->run->count; i++)
        s->r->run->entries[i].kernel = name;
    return rg_reader_note(s->r, err,
                          "no command line in the log; taken as '%s' from busbw/algbw = %.3f", name,
                          s->factor);
}

rg_status rg_run_read_nccl_log(rg_reader *r, rg_err *err)
{
    rg_nccl s = {.r = r, .half = 4, .counts_wrong = true, .iterations = NAN};
    r->run->tool = "nccl-tests";
    int number = 0;
    for (const char *p = r->text; *p != '\0';) {
        const char *end = strchr(p, '\n');
        const size_t length = end == NULL ? strlen(p) : (size_t)(end - p);
        number++;
        char *line = rg_arena_copy(r->arena, p, length, err);
        if (line == NULL)
            return RG_ERR_LIMIT;
        p += length + (end != NULL);
        for (size_t n = length; n > 0 && isspace((unsigned char)line[n - 1]); n--)
            line[n - 1] = '\0';
        char *body = (char *)rg_nccl_unlabel(line);
        if (strstr(body, "_perf") != NULL) { /* a command line; one log may hold several tests */
            const char *program = rg_nccl_program(r, body, err);
            s.kernel = program != NULL ? program : s.kernel;
        }
        if (strstr(body, "algbw") != NULL) {
            char *token[RG_NCCL_TOKENS];
            while (*body == '#' || isspace((unsigned char)*body))
                body++;
            rg_nccl_header(&s, token, rg_nccl_tokens(body, token));
        } else {
            char *token[RG_NCCL_TOKENS], *copy = rg_arena_strdup(r->arena, body, err);
            if (copy == NULL)
                return RG_ERR_LIMIT;
            const int n = body[0] == '#' ? 0 : rg_nccl_row_tokens(copy, token);
            if (!rg_nccl_is_row(&s, token, n)) {
                RG_TRY(rg_nccl_comment(&s, body, err));
                continue;
            }
            if (s.ranks <= 1 && s.gpus * s.threads > 1)
                s.ranks = s.gpus * s.threads;
            s.row = copy;
            s.indent = (int)(body - line);
            RG_TRY(rg_nccl_row(&s, token, n, rg_nccl_at(&s, token[0], (rg_pos){r->path, number, 1}),
                               err));
        }
    }
    RG_TRY(rg_nccl_name(&s, err));
    return rg_reader_note(r, err, "the average bus bandwidth is not used: it mixes all sizes");
}

/* JSON ------------------------------------------------------------------------------------------
 */

static void rg_nccl_json_ranks(rg_run *run, rg_node *config, int *ranks)
{
    const double gpus = rg_json_number(config, "ngpus"),
                 threads = rg_json_number(config, "nthreads");
    const double own = isnan(gpus * threads) ? 1 : gpus * threads;
    const char *host = NULL;
    int listed_on_host = 0;
    rg_node *devices = rg_json_child(config, "devices", RG_NODE_LIST);
    double most = -1;
    for (rg_node *n = devices == NULL ? NULL : devices->first; n != NULL; n = n->next) {
        if (n->kind != RG_NODE_MAP)
            continue;
        const double rank = rg_json_number(n, "rank");
        if (rank > most)
            most = rank;
        const char *name = rg_json_text(n, "hostname");
        host = host == NULL ? name : host;
        listed_on_host += name[0] != '\0' && strcmp(name, host) == 0;
        if (run->device[0] == '\0')
            run->device = rg_json_text(n, "device_info");
    }
    /* The writer lists the first rank of each process, or every rank where processes own one. */
    const double listed = devices == NULL ? 0 : (double)devices->count;
    const bool all = most + 1 == listed && listed > 1;
    double total = all ? listed : most + own;
    const double hosted = listed_on_host * (all ? 1 : own);
    run->host_ranks = hosted < 1e6 ? (int)hosted : 0;
    if (!(total >= 1 && total < 1e6))
        total = own >= 1 && own < 1e6 ? own : 1;
    *ranks = (int)total;
}

static rg_status rg_nccl_json_half(rg_reader *r, rg_node *row, const char *kernel,
                                   const char *problem, bool in_place, double iterations, int ranks,
                                   rg_err *err)
{
    rg_node *half = rg_json_child(row, in_place ? "in_place" : "out_of_place", RG_NODE_MAP);
    if (half == NULL)
        return RG_OK;
    const char *full =
        rg_arena_printf(r->arena, err, "%s %s", problem, in_place ? "in-place" : "out-of-place");
    if (full == NULL)
        return RG_ERR_LIMIT;
    rg_run_entry *e;
    RG_TRY(rg_reader_entry(r, kernel, full, rg_json_text(row, "type"), row->pos, &e, err));
    const double actual = rg_json_number(row, "actual_iterations");
    e->count = isnan(actual) ? iterations : actual;
    e->rank_count = ranks;
    const double wrong = rg_json_number(half, "nwrong");
    if (wrong > 0) {
        e->wrong = rg_arena_printf(r->arena, err, "%.0f wrong elements", wrong);
        if (e->wrong == NULL)
            return RG_ERR_LIMIT;
    }
    rg_node *each =
        rg_json_child(row, in_place ? "in_place_per_iter" : "out_of_place_per_iter", RG_NODE_MAP);
    rg_node *times = each == NULL ? NULL : rg_json_child(each, "times_us", RG_NODE_LIST);
    if (times != NULL && times->count > 1) {
        for (const rg_node *n = times->first; n != NULL; n = n->next) {
            double us = NAN;
            if (n->kind == RG_NODE_SCALAR && !rg_text_to_real(n->text, &us))
                us = NAN;
            RG_TRY(rg_reader_sample(r, e, us * 1e-6, err));
        }
        return RG_OK;
    }
    double us = rg_json_number(half, "time");
    if (isnan(us))
        us = rg_json_number(half, "cpu_time");
    const char *text = rg_json_text(half, "time");
    if (!isnan(us) && us > 0)
        return rg_reader_sample(r, e, us * 1e-6, err);
    if (rg_map_find(half, "time") != NULL)
        return rg_reader_refuse(r, e, "time", text, half->pos, err);
    e->unusable = "no time";
    return RG_OK;
}

rg_status rg_run_read_nccl_json(rg_reader *r, rg_node *root, rg_err *err)
{
    rg_run *run = r->run;
    run->tool = "nccl-tests";
    run->date = rg_json_text(root, "start_time");
    const char *kernel = NULL;
    rg_node *args = rg_json_child(root, "args", RG_NODE_LIST);
    if (args != NULL && args->first != NULL && args->first->kind == RG_NODE_SCALAR)
        kernel = rg_nccl_program(r, args->first->text, err);
    double iterations = NAN;
    int ranks = 1;
    rg_node *config = rg_json_child(root, "config", RG_NODE_MAP);
    if (config != NULL) {
        iterations = rg_json_number(config, "iterations");
        rg_nccl_json_ranks(run, config, &ranks);
    }
    rg_node *results = rg_json_child(root, "results", RG_NODE_LIST);
    for (rg_node *row = results == NULL ? NULL : results->first; row != NULL; row = row->next) {
        RG_TRY(rg_node_expect(row, RG_NODE_MAP, "result", err));
        const char *name = kernel;
        if (name == NULL) {
            const char *own = rg_json_text(row, "experiment_name");
            name = own[0] != '\0' ? own : "collective";
        }
        const char *redop = rg_json_text(row, "redop");
        const bool reduces = redop[0] != '\0' && strcmp(redop, "none") != 0;
        const char *problem = rg_arena_printf(r->arena, err, "ranks=%d bytes=%s%s%s", ranks,
                                              rg_json_text(row, "size"), reduces ? " redop=" : "",
                                              reduces ? redop : "");
        if (problem == NULL)
            return RG_ERR_LIMIT;
        RG_TRY(rg_nccl_json_half(r, row, name, problem, false, iterations, ranks, err));
        RG_TRY(rg_nccl_json_half(r, row, name, problem, true, iterations, ranks, err));
    }
    return rg_reader_note(r, err, "the average bus bandwidth is not used: it mixes all sizes");
}

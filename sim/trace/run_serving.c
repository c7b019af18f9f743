/* trace/run_serving.c: results of serving benchmarks: vLLM and SGLang bench JSON, genai-perf CSV.
 *
 * A run of a serving benchmark is one observation, however many requests it had: its requests queue
 * behind each other. So each figure (median and tail of TTFT, TPOT, ITL, end to end; throughputs)
 * is one sample, and repeats of the run give the noise. vLLM's request_rate may be the string inf,
 * a key ends in a colon, and lengths are strings; throughputs are recomputed from counts and
 * duration and must agree. genai-perf writes several tables split by blank lines, CRLF, numbers in
 * quotes with thousands commas, and changed its labels and units over releases.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/run_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static rg_status rg_serving_time(rg_reader *r, const char *name, const char *problem,
                                 double seconds, rg_pos pos, rg_err *err)
{
    rg_run_entry *e;
    if (isnan(seconds))
        return RG_OK;
    RG_TRY(rg_reader_entry(r, name, problem, "", pos, &e, err));
    return e->refused ? RG_OK : rg_reader_sample(r, e, seconds, err);
}

static rg_status rg_serving_rate(rg_reader *r, const char *name, const char *problem,
                                 double per_second, const char *unit, rg_pos pos, rg_err *err)
{
    rg_run_entry *e;
    if (isnan(per_second))
        return RG_OK;
    RG_TRY(rg_reader_entry(r, name, problem, "", pos, &e, err));
    e->rate_unit = unit;
    return e->refused ? RG_OK : rg_reader_sample(r, e, 1 / per_second, err);
}

/* A figure that is given and is no measurement. */
static rg_status rg_serving_refuse(rg_reader *r, const char *name, const char *problem,
                                   const char *what, const char *value, rg_pos pos, rg_err *err)
{
    rg_run_entry *e;
    RG_TRY(rg_reader_entry(r, name, problem, "", pos, &e, err));
    return rg_reader_refuse(r, e, what, value, pos, err);
}

/* The number of a JSON key, refused under the name when it stands there and is none. */
static rg_status rg_serving_json(rg_reader *r, rg_node *root, const char *key, const char *name,
                                 const char *problem, double *out, rg_err *err)
{
    const rg_node *node = rg_map_find(root, key);
    *out = rg_json_number(root, key);
    if (node == NULL || (node->kind == RG_NODE_SCALAR && rg_node_is_null(node)) || *out > 0)
        return RG_OK;
    *out = NAN;
    return rg_serving_refuse(r, name, problem, key,
                             node->kind == RG_NODE_SCALAR ? node->text : "[...]", node->pos, err);
}

/* A printed throughput that its own counts contradict is named. */
static rg_status rg_serving_check(rg_reader *r, const char *key, double printed, double counted,
                                  rg_err *err)
{
    if (isnan(printed) || isnan(counted) || fabs(printed - counted) <= 1e-3 * counted)
        return RG_OK;
    return rg_reader_note(r, err, "%s is %.6g, but the counts over the duration give %.6g", key,
                          printed, counted);
}

rg_status rg_run_read_vllm(rg_reader *r, rg_node *root, rg_err *err)
{
    rg_run *run = r->run;
    run->tool = "serving benchmark";
    run->device = rg_json_text(root, "gpu");
    run->date = rg_json_text(root, "date");
    const char *rate = rg_json_text(root, "request_rate");
    const char *limit = rg_json_text(root, "max_concurrency");
    const char *model = rg_json_text(root, "model_id");
    const double completed = rg_json_number(root, "completed");
    const double duration = rg_json_number(root, "duration");
    const double output = rg_json_number(root, "total_output_tokens");
    double input = rg_json_number(root, "total_input_tokens");
    if (isnan(input))
        input = rg_json_number(root, "total_input");
    const char *problem =
        rg_arena_printf(r->arena, err, "model=%s requests=%.0f rate=%s%s%s",
                        model[0] ? model : "unnamed", isnan(completed) ? 0 : completed,
                        rate[0] ? rate : "unsaid", limit[0] ? " concurrency=" : "", limit);
    if (problem == NULL)
        return RG_ERR_LIMIT;
    static const char *const figures[] = {"ttft", "tpot", "itl", "e2el", "e2e_latency", NULL};
    static const char *const statistics[] = {"median", "mean", "p90", "p95", "p99", NULL};
    for (const char *const *f = figures; *f != NULL; f++)
        for (const char *const *s = statistics; *s != NULL; s++) {
            char name[48];
            const char *key =
                rg_arena_printf(r->arena, err, "%s_%s_ms", *s, *f); /* a map keeps it */
            if (key == NULL)
                return RG_ERR_LIMIT;
            snprintf(name, sizeof name, "%s %s", *f, *s);
            double ms;
            RG_TRY(rg_serving_json(r, root, key, name, problem, &ms, err));
            RG_TRY(rg_serving_time(r, name, problem, ms * 1e-3, root->pos, err));
        }
    static const struct {
        const char *key, *name, *unit;
    } rates[] = {{"request_throughput", "requests", "request/s"},
                 {"output_throughput", "output tokens", "token/s"},
                 {"total_token_throughput", "total tokens", "token/s"}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        double rate_of;
        RG_TRY(rg_serving_json(r, root, rates[i].key, rates[i].name, problem, &rate_of, err));
        RG_TRY(rg_serving_rate(r, rates[i].name, problem, rate_of, rates[i].unit, root->pos, err));
    }
    RG_TRY(rg_serving_check(r, "request_throughput", rg_json_number(root, "request_throughput"),
                            completed / duration, err));
    RG_TRY(rg_serving_check(r, "output_throughput", rg_json_number(root, "output_throughput"),
                            output / duration, err));
    RG_TRY(rg_serving_check(r, "total_token_throughput",
                            rg_json_number(root, "total_token_throughput"),
                            (input + output) / duration, err));
    const double asked = rg_json_number(root, "output_len");
    if (completed > 0 && asked > 0 && fabs(output / completed - asked) > 0.02 * asked)
        RG_TRY(rg_reader_note(r, err, "%.0f output tokens a request, where %.0f were asked for",
                              output / completed, asked));
    return RG_OK;
}

/* "Time To First Token (ms)" -> "Time To First Token", 1e-3; labels without a unit: ms in the
 * releases that wrote them so, for times only. False when the figure is no time. */
static bool rg_genai_label(const char *label, char *name, size_t size, double *factor)
{
    snprintf(name, size, "%s", label);
    char *open = strchr(name, '(');
    *factor = 1e-3;
    if (open != NULL) {
        char unit[32];
        snprintf(unit, sizeof unit, "%s", open + 1);
        unit[strcspn(unit, ")")] = '\0';
        if (!rg_unit_is_time(unit, factor))
            return false;
        *open = '\0';
    } else if (!rg_text_has(name, "time to") && !rg_text_has(name, "latency")) {
        return false;
    }
    for (size_t n = strlen(name); n > 0 && name[n - 1] == ' '; n--)
        name[n - 1] = '\0';
    return true;
}

rg_status rg_run_read_genai(rg_reader *r, const rg_rows *rows, int header, rg_err *err)
{
    r->run->tool = "genai-perf";
    const rg_locale locale = {.decimal = '.'};
    const rg_row *head = NULL;
    for (int i = header; i < rows->count; i++) {
        const rg_row *row = &rows->items[i];
        if (row->count == 0) {
            head = NULL;
            continue;
        }
        if (head == NULL || rg_text_same(row->field[0], "Metric")) {
            head = row;
            continue;
        }
        char name[96], full[128];
        double factor, value;
        const rg_pos pos = {r->path, row->line, 1};
        if (head->count == 2 && rg_text_same(head->field[1], "Value")) {
            const bool tokens = rg_text_has(row->field[0], "token throughput");
            if (!tokens && !rg_text_has(row->field[0], "request throughput"))
                continue;
            const char *text = rg_row_get(row, 1);
            if (!rg_locale_number(&locale, text, &value) || !(value > 0))
                RG_TRY(rg_serving_refuse(r, tokens ? "output tokens" : "requests", "",
                                         row->field[0], text, pos, err));
            else
                RG_TRY(rg_serving_rate(r, tokens ? "output tokens" : "requests", "", value,
                                       tokens ? "token/s" : "request/s", pos, err));
            continue;
        }
        if (!rg_genai_label(row->field[0], name, sizeof name, &factor))
            continue;
        for (int k = 1; k < head->count; k++) {
            const char *statistic = head->field[k];
            if (!rg_text_same(statistic, "avg") && !rg_text_same(statistic, "p50") &&
                !rg_text_same(statistic, "p90") && !rg_text_same(statistic, "p99"))
                continue;
            snprintf(full, sizeof full, "%s %s", name, statistic);
            const char *text = rg_row_get(row, k);
            if (rg_locale_number(&locale, text, &value) && value > 0)
                RG_TRY(rg_serving_time(r, full, "", value * factor, pos, err));
            else
                RG_TRY(rg_serving_refuse(r, full, "", statistic, text, pos, err));
        }
    }
    return RG_OK;
}

/* fit/serving.c: runs of whole servers against predictions, where the load is the same. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/serving.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/text.h"

enum { MOST_RUNS = 100000, MOST_SETUPS = 256 };
static const double unlike_share = 0.2;

const char *rg_serving_skip_name(rg_serving_skip skip)
{
    static const char *const names[RG_SERVING_SKIP_COUNT] = {
        "compared",
        "flagged as unfinished",
        "model or device not known",
        "arrangement not modelled",
        "unlike load (Little's law)",
    };
    return names[skip];
}

double rg_serving_decoding(double inside, double ttft_s, double tpot_s, double osl)
{
    const double decode = fmax(osl - 1.0, 0.0) * tpot_s;
    return decode + ttft_s > 0.0 ? inside * decode / (decode + ttft_s) : 0.0;
}

bool rg_serving_unlike(double a, double b)
{
    return fabs(a - b) > unlike_share * fmax(fabs(a), fabs(b));
}

/* A server that several runs share, prepared once. */
typedef struct setup {
    char key[192];
    rg_status status;
    rg_cluster *cluster;
    rg_model *model;
    rg_formats formats;
    rg_parallel parallel;
    rg_engine engine;
    rg_step_context *step;
} setup;

typedef struct reader {
    rg_arena *arena;
    rg_csv *csv;
    rg_err *err;
    setup *setups;
    int setup_count;
} reader;

static double number_or(const reader *in, const char *column, double fallback)
{
    const int at = rg_csv_find(in->csv, column);
    double value;
    return at >= 0 && rg_text_to_real(rg_csv_text(in->csv, at), &value) ? value : fallback;
}

static const char *text_or(const reader *in, const char *column, const char *fallback)
{
    const int at = rg_csv_find(in->csv, column);
    return at >= 0 && rg_csv_text(in->csv, at)[0] ? rg_csv_text(in->csv, at) : fallback;
}

static rg_status positive(const reader *in, const char *column, double *out)
{
    int at;
    RG_TRY(rg_csv_column(in->csv, column, &at, in->err));
    RG_TRY(rg_csv_real(in->csv, at, out, in->err));
    if (!(*out > 0.0))
        return rg_fail(in->err, RG_ERR_INPUT, rg_csv_pos(in->csv, at), "%s '%s' is not above 0",
                       column, rg_csv_text(in->csv, at));
    return RG_OK;
}

/* "meta-llama/Llama-3.1-8B-Instruct-FP8" and the like: the last part, small letters, and then
 * without endings that name a tuning or a number type. */
static rg_status load_model(rg_arena *arena, const char *path, rg_model **out)
{
    static const char *const endings[] = {"-instruct-fp8", "-instruct", "-fp8", "-chat", "-it", ""};
    const char *slash = strrchr(path, '/');
    char name[96];
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (rg_model_load(arena, name, out, NULL) == RG_OK)
        return RG_OK;
    for (int i = 0; endings[i][0]; i++)
        if (rg_text_ends_with(name, endings[i])) {
            name[strlen(name) - strlen(endings[i])] = 0;
            return rg_model_load(arena, name, out, NULL);
        }
    return RG_ERR_INPUT;
}

/* "h200_sxm" is "h200-sxm"; one whose variants differ in memory alone is the larger. */
static rg_status load_cluster(rg_arena *arena, const char *system, rg_cluster **out)
{
    char name[96];
    snprintf(name, sizeof name, "%s", system);
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
    if (strcmp(name, "a100-sxm") == 0)
        snprintf(name, sizeof name, "a100-sxm-80gb");
    return rg_cluster_load(arena, name, out, NULL);
}

static rg_status prepare(const reader *in, setup *s, const char *model, const char *system,
                         const char *weights, const char *backend)
{
    RG_TRY(load_model(in->arena, model, &s->model));
    RG_TRY(load_cluster(in->arena, system, &s->cluster));
    rg_format ignored;
    /* A quantised checkpoint is served as it is; the table's word for it is coarser (its "fp8" has
     * block scales too, its "nvfp4" of gpt-oss is mxfp4 experts alone). */
    const bool quantised = s->model->quantisation != NULL || s->model->expert_quantisation != NULL;
    const bool known =
        !quantised && weights[0] && rg_format_parse(weights, RG_NOWHERE, &ignored, NULL) == RG_OK;
    RG_TRY(rg_formats_choose(s->model, known ? weights : NULL, NULL, NULL, &s->formats, NULL));
    s->formats.fused_attention = true;
    s->formats.page_tokens = 64;
    rg_formats_expand(s->cluster->accel, &s->formats);
    if (rg_engine_load(in->arena, backend, &s->engine, NULL) != RG_OK)
        RG_TRY(rg_engine_load(in->arena, "vllm", &s->engine, NULL));
    const rg_kernel_options kernel = {.cold_l2 = true, .core_attention = true};
    return rg_step_prepare(in->arena, s->cluster, s->model, &s->formats, &s->parallel, &s->engine,
                           &kernel, &s->step, NULL);
}

static rg_status setup_of(reader *in, const rg_serving_run *run, int64_t ep, int64_t attention_dp,
                          setup **out)
{
    char key[192];
    const char *weights = text_or(in, "gemm_quant_mode", "");
    const char *backend = text_or(in, "backend", "vllm");
    snprintf(key, sizeof key, "%.60s|%.30s|%.20s|%.20s|%lld|%lld|%lld", run->model, run->system,
             weights, backend, (long long)run->tp, (long long)ep, (long long)attention_dp);
    for (int i = 0; i < in->setup_count; i++)
        if (strcmp(in->setups[i].key, key) == 0) {
            *out = &in->setups[i];
            return RG_OK;
        }
    if (in->setup_count == MOST_SETUPS)
        return rg_fail(in->err, RG_ERR_LIMIT, RG_NOWHERE, "more than '%d' kinds of servers",
                       MOST_SETUPS);
    setup *s = &in->setups[in->setup_count++];
    memcpy(s->key, key, sizeof key);
    s->parallel = (rg_parallel){.tp = run->tp * attention_dp,
                                .pp = 1,
                                .ep = ep,
                                .cp = 1,
                                .dp = 1,
                                .pp_interleave = 1,
                                .attention_dp = attention_dp > 1};
    s->status = prepare(in, s, run->model, run->system, weights, backend);
    *out = s;
    return RG_OK;
}

static bool predict(const setup *s, rg_serving_run *run)
{
    const rg_load load = {.batch = (int64_t)fmax(1.0, floor(run->concurrency + 0.5)),
                          .context_tokens = run->isl,
                          .output_tokens = run->osl};
    rg_estimate held;
    if (rg_estimate_load(s->step, s->cluster, &s->formats, &s->parallel, &s->engine, &load, &held,
                         NULL) != RG_OK)
        return false;
    const double decode = held.tpot_excl_first.v, prefill = held.prefill_each.v;
    run->predicted_tpot_s = decode + (double)load.batch * prefill / (double)run->osl;
    const double busy = (double)load.batch * prefill / ((double)run->osl * run->predicted_tpot_s);
    run->predicted_ttft_s = decode + held.prefill.total.v / (1.0 - fmin(busy, 0.9));
    return true;
}

static void judge_load(rg_serving_run *run)
{
    const double osl = (double)run->osl;
    double inside = run->concurrency;
    if (run->requests_per_s > 0.0) /* what was really in flight */
        inside = run->requests_per_s * (run->ttft_s + (osl - 1.0) * run->tpot_s);
    run->measured_decoding = rg_serving_decoding(inside, run->ttft_s, run->tpot_s, osl);
    run->predicted_decoding =
        rg_serving_decoding(run->concurrency, run->predicted_ttft_s, run->predicted_tpot_s, osl);
    if (rg_serving_unlike(run->measured_decoding, run->predicted_decoding) ||
        (run->batch > 0.0 && rg_serving_unlike(run->batch * run->ranks, run->concurrency)))
        run->skip = RG_SERVING_UNLIKE_LOAD;
}

static rg_status read_run(reader *in, rg_serving_run *run)
{
    double isl, osl, tp, ttft_ms, tpot_ms;
    int model_at, system_at;
    RG_TRY(rg_csv_column(in->csv, "model_path", &model_at, in->err));
    RG_TRY(rg_csv_column(in->csv, "system", &system_at, in->err));
    RG_TRY(positive(in, "isl", &isl));
    RG_TRY(positive(in, "osl", &osl));
    RG_TRY(positive(in, "tp_size", &tp));
    RG_TRY(positive(in, "concurrency", &run->concurrency));
    RG_TRY(positive(in, "ttft_ms", &ttft_ms));
    RG_TRY(positive(in, "tpot_ms", &tpot_ms));
    run->isl = (int64_t)isl;
    run->osl = (int64_t)osl;
    run->tp = (int64_t)tp;
    run->ttft_s = ttft_ms * 1e-3;
    run->tpot_s = tpot_ms * 1e-3;
    run->batch = number_or(in, "batch_size", 0.0);
    run->requests_per_s = number_or(in, "requests_per_s", 0.0);
    run->line = rg_csv_pos(in->csv, model_at).line;
    run->predicted_ttft_s = run->predicted_tpot_s = NAN;
    run->id = rg_arena_strdup(in->arena, text_or(in, "id", ""), in->err);
    run->model = rg_arena_strdup(in->arena, rg_csv_text(in->csv, model_at), in->err);
    run->system = rg_arena_strdup(in->arena, rg_csv_text(in->csv, system_at), in->err);
    run->origin = rg_arena_strdup(in->arena, text_or(in, "origin", ""), in->err);
    if (!run->id || !run->model || !run->system || !run->origin)
        return RG_ERR_LIMIT;
    if (tolower((unsigned char)text_or(in, "wip", "false")[0]) == 't') {
        run->skip = RG_SERVING_UNFINISHED;
        return RG_OK;
    }
    const double ep = number_or(in, "moe_ep_size", 1.0);
    /* Attention is split one way or the other. */
    const double dp = fmax(1.0, number_or(in, "attention_dp_size", 1.0));
    if ((dp > 1.0 && run->tp > 1) || strcmp(text_or(in, "mode", "agg"), "agg") != 0) {
        run->skip = RG_SERVING_UNSUPPORTED;
        return RG_OK;
    }
    run->ranks = dp;
    setup *s;
    RG_TRY(setup_of(in, run, (int64_t)fmax(1.0, ep), (int64_t)dp, &s));
    if (s->status != RG_OK)
        run->skip = s->model && s->cluster ? RG_SERVING_UNSUPPORTED : RG_SERVING_UNKNOWN;
    else if (!predict(s, run))
        run->skip = RG_SERVING_UNSUPPORTED;
    else
        judge_load(run);
    return RG_OK;
}

rg_status rg_serving_compare(rg_arena *arena, const char *path, rg_serving_table *out, rg_err *err)
{
    *out = (rg_serving_table){0};
    reader in = {.arena = arena, .err = err};
    in.setups = RG_NEW(arena, setup, MOST_SETUPS, err);
    if (!in.setups)
        return RG_ERR_LIMIT;
    size_t capacity = 0;
    RG_TRY(rg_csv_open(arena, path, &in.csv, err));
    rg_status status = RG_OK;
    for (bool more = true; status == RG_OK;) {
        status = rg_csv_next(in.csv, &more, err);
        if (status != RG_OK || !more)
            break;
        if (out->count == MOST_RUNS) {
            status = rg_fail(err, RG_ERR_LIMIT, (rg_pos){.file = path}, "more than '%d' runs",
                             MOST_RUNS);
            break;
        }
        if (out->count == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            rg_serving_run *runs = RG_NEW(arena, rg_serving_run, capacity, err);
            if (!runs) {
                status = RG_ERR_LIMIT;
                break;
            }
            if (out->count)
                memcpy(runs, out->runs, out->count * sizeof *runs);
            out->runs = runs;
        }
        status = read_run(&in, &out->runs[out->count]);
        if (status == RG_OK)
            out->count++;
    }
    rg_csv_close(in.csv);
    if (status == RG_OK && out->count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){.file = path}, "the table has no runs");
    return status;
}

typedef struct ranked {
    double value;
    size_t at;
} ranked;

static int by_value(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Ranks from 1, ties share their mean rank. */
static void rank(ranked *sorted, size_t n, double *out)
{
    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && sorted[end].value == sorted[i].value)
            end++;
        for (size_t j = i; j < end; j++)
            out[sorted[j].at] = 0.5 * (double)(i + end + 1);
        i = end;
    }
}

double rg_serving_rank_correlation(rg_arena *arena, const rg_serving_table *table, rg_err *err)
{
    ranked *sorted = RG_NEW(arena, ranked, table->count, err);
    double *ranks[2] = {RG_NEW(arena, double, table->count, err),
                        RG_NEW(arena, double, table->count, err)};
    if (!sorted || !ranks[0] || !ranks[1])
        return NAN;
    size_t n = 0;
    for (int side = 0; side < 2; side++) {
        n = 0;
        for (size_t i = 0; i < table->count; i++)
            if (table->runs[i].skip == RG_SERVING_COMPARED) {
                const rg_serving_run *r = &table->runs[i];
                sorted[n] = (ranked){.value = side ? r->predicted_tpot_s : r->tpot_s, .at = n};
                n++;
            }
        rank(sorted, n, ranks[side]);
    }
    if (n < 3)
        return NAN;
    const double middle = 0.5 * ((double)n + 1.0);
    double both = 0.0, first = 0.0, second = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double a = ranks[0][i] - middle, b = ranks[1][i] - middle;
        both += a * b;
        first += a * a;
        second += b * b;
    }
    return first > 0.0 && second > 0.0 ? both / sqrt(first * second) : NAN;
}

/* serve/replay_load.c: the record of a measured run: a folder, one table of requests, or what
 * vLLM's or SGLang's benchmark writes. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/doc.h"
#include "core/file.h"
#include "core/text.h"

enum { MAX_ASSUMED = 12 };

/* ---- meta.yaml */

typedef struct reader {
    rg_arena *arena;
    rg_replay_run *run;
    const char **assumed;
    rg_err *err;
} reader;

static void assume(reader *r, const char *text)
{
    if (r->run->assumed_count < MAX_ASSUMED)
        r->assumed[r->run->assumed_count++] = text;
}

/* A value that may be null or absent. */
static rg_node *given(rg_node *map, const char *key)
{
    rg_node *node = map ? rg_map_find(map, key) : NULL;
    return node && !rg_node_is_null(node) ? node : NULL;
}

static rg_status text_of(rg_node *map, const char *key, const char **out, rg_err *err)
{
    rg_node *node = given(map, key);
    return node ? rg_node_text(node, out, err) : RG_OK;
}

static rg_status int_of(rg_node *map, const char *key, int64_t *out, bool *known, rg_err *err)
{
    rg_node *node = given(map, key);
    *known = node != NULL;
    return node ? rg_node_int(node, 1, INT64_C(1) << 40, out, err) : RG_OK;
}

static rg_status bool_of(reader *r, rg_node *map, const char *key, bool *out)
{
    rg_node *node = given(map, key);
    if (!node) {
        assume(r, rg_arena_printf(r->arena, r->err, "%s is not recorded: %s, the engine's default",
                                  key, *out ? "true" : "false"));
        return RG_OK;
    }
    return rg_node_bool(node, out, r->err);
}

static rg_status read_engine(reader *r, rg_node *engine)
{
    rg_engine_rules *rules = &r->run->rules;
    const char *name = "vllm", *scheduler = "v1", *policy = "fcfs";
    RG_TRY(text_of(engine, "name", &name, r->err));
    RG_TRY(text_of(engine, "version", &r->run->engine_version, r->err));
    RG_TRY(text_of(engine, "scheduler", &scheduler, r->err));
    RG_TRY(text_of(engine, "policy", &policy, r->err));
    rg_policy_kind kind = RG_POLICY_VLLM1;
    if (strcmp(name, "sglang") == 0)
        kind = RG_POLICY_SGLANG;
    else if (strncmp(name, "t", 1) == 0)
        kind = RG_POLICY_TRT_NO_EVICT;
    else if (strcmp(scheduler, "v0") == 0)
        kind = RG_POLICY_VLLM0;
    *rules = rg_engine_rules_default(kind);
    rules->by_priority = strcmp(policy, "priority") == 0;
    RG_TRY(bool_of(r, engine, "chunked_prefill", &rules->chunked_prefill));
    RG_TRY(bool_of(r, engine, "async_scheduling", &rules->asynchronous));
    RG_TRY(bool_of(r, engine, "prefix_caching", &rules->prefix_caching));
    rg_node *reserve = given(engine, "reserve_full_isl");
    if (reserve)
        RG_TRY(rg_node_bool(reserve, &rules->reserve_full_prompt, r->err));
    return RG_OK;
}

static rg_status read_limits(reader *r, rg_node *limits)
{
    rg_engine_rules *rules = &r->run->rules;
    bool known;
    RG_TRY(int_of(limits, "max_num_seqs", &rules->max_sequences, &known, r->err));
    if (!known)
        assume(r, "max_num_seqs is not recorded: 256");
    RG_TRY(int_of(limits, "max_num_batched_tokens", &rules->max_batched_tokens, &known, r->err));
    if (!known)
        assume(r, "max_num_batched_tokens is not recorded: 2048");
    RG_TRY(int_of(limits, "max_model_len", &rules->max_model_tokens, &known, r->err));
    RG_TRY(int_of(limits, "block_size", &rules->block_tokens, &known, r->err));
    if (!known)
        assume(r, "block_size is not recorded: 16");
    RG_TRY(int_of(limits, "num_gpu_blocks", &r->run->kv_blocks, &known, r->err));
    rules->blocks = r->run->kv_blocks;
    rg_node *utilisation = given(limits, "gpu_memory_utilization");
    if (utilisation)
        RG_TRY(rg_node_real(utilisation, false, &r->run->memory_utilisation, r->err));
    return RG_OK;
}

/* A part of the record, a map; NULL where it is not given. */
static rg_status part_of(rg_node *root, const char *key, rg_node **out, rg_err *err)
{
    *out = given(root, key);
    return *out ? rg_node_expect(*out, RG_NODE_MAP, key, err) : RG_OK;
}

static rg_status read_meta(reader *r, const char *path)
{
    rg_node *root, *engine, *limits, *model, *gpu, *parallel;
    RG_TRY(rg_doc_load(r->arena, path, &root, r->err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "the record of a run", r->err));
    RG_TRY(text_of(root, "run", &r->run->name, r->err));
    RG_TRY(part_of(root, "engine", &engine, r->err));
    RG_TRY(part_of(root, "limits", &limits, r->err));
    RG_TRY(part_of(root, "model", &model, r->err));
    RG_TRY(part_of(root, "gpu", &gpu, r->err));
    RG_TRY(part_of(root, "parallel", &parallel, r->err));
    RG_TRY(read_engine(r, engine));
    RG_TRY(read_limits(r, limits));
    RG_TRY(text_of(model, "name", &r->run->model, r->err));
    RG_TRY(text_of(model, "dtype", &r->run->dtype, r->err));
    RG_TRY(text_of(gpu, "name", &r->run->gpu, r->err));
    bool known;
    RG_TRY(int_of(parallel, "tp", &r->run->tp, &known, r->err));
    RG_TRY(int_of(parallel, "dp", &r->run->dp, &known, r->err));
    rg_node *experts = given(parallel, "expert_parallel");
    return experts ? rg_node_bool(experts, &r->run->expert_parallel, r->err) : RG_OK;
}

/* ---- requests */

/* A request as it stands in a file: all times from start_s, which is on the clock of the file. */
typedef struct row {
    rg_request request;
    double start_s, first_s, last_s;
} row;

static int by_start(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->start_s != y->start_s)
        return x->start_s < y->start_s ? -1 : 1;
    return (x->request.row > y->request.row) - (x->request.row < y->request.row);
}

/* In order of arrival, from the first arrival on. */
static rg_status keep_rows(reader *r, row *rows, int64_t count)
{
    rg_replay_run *run = r->run;
    if (count == 0)
        return RG_OK;
    qsort(rows, (size_t)count, sizeof *rows, by_start);
    run->requests = RG_NEW(r->arena, rg_request, count, r->err);
    run->measured = RG_NEW(r->arena, rg_replay_request, count, r->err);
    if (!run->requests || !run->measured)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < count; i++) {
        const double at = rows[i].start_s - rows[0].start_s;
        run->requests[i] = rows[i].request;
        run->requests[i].arrival_s = at;
        run->measured[i] = (rg_replay_request){at + rows[i].first_s, at + rows[i].last_s};
    }
    run->count = count;
    return RG_OK;
}

/* ---- requests.csv, prefix.csv */

static rg_status grow(rg_arena *arena, row **rows, int64_t count, int64_t *room, rg_err *err)
{
    if (count < *room)
        return RG_OK;
    *room = *room ? *room * 2 : 512;
    row *more = RG_NEW(arena, row, *room, err);
    if (!more)
        return RG_ERR_LIMIT;
    if (count)
        memcpy(more, *rows, (size_t)count * sizeof *more);
    *rows = more;
    return RG_OK;
}

static rg_status read_rows(reader *r, rg_csv *csv)
{
    int id, arrival, first, last, input, output;
    RG_TRY(rg_csv_column(csv, "request_id", &id, r->err));
    RG_TRY(rg_csv_column(csv, "arrival_s", &arrival, r->err));
    RG_TRY(rg_csv_column(csv, "first_token_s", &first, r->err));
    RG_TRY(rg_csv_column(csv, "last_token_s", &last, r->err));
    RG_TRY(rg_csv_column(csv, "input_tokens", &input, r->err));
    RG_TRY(rg_csv_column(csv, "output_tokens", &output, r->err));
    row *rows = NULL;
    int64_t room = 0, count = 0;
    for (;; count++) {
        bool more;
        RG_TRY(rg_csv_next(csv, &more, r->err));
        if (!more)
            return keep_rows(r, rows, count);
        RG_TRY(grow(r->arena, &rows, count, &room, r->err));
        row *one = &rows[count];
        rg_request *q = &one->request;
        *one = (row){.request = {.session = -1}};
        RG_TRY(rg_csv_int(csv, id, &q->row, r->err));
        RG_TRY(rg_csv_real(csv, arrival, &one->start_s, r->err));
        RG_TRY(rg_csv_real(csv, first, &one->first_s, r->err));
        RG_TRY(rg_csv_real(csv, last, &one->last_s, r->err));
        RG_TRY(rg_csv_int(csv, input, &q->prompt_tokens, r->err));
        RG_TRY(rg_csv_int(csv, output, &q->output_tokens, r->err));
        if (q->prompt_tokens < 1 || q->output_tokens < 1 || q->prompt_tokens > 1000000000 ||
            q->output_tokens > 1000000000)
            return rg_fail(r->err, RG_ERR_INPUT, rg_csv_pos(csv, input),
                           "a request of '%lld' prompt and '%lld' output tokens; both 1 to 1e9",
                           (long long)q->prompt_tokens, (long long)q->output_tokens);
        if (one->first_s < one->start_s || one->last_s < one->first_s)
            return rg_fail(r->err, RG_ERR_INPUT, rg_csv_pos(csv, first),
                           "arrival '%s', first token '%s' and last token '%s' are not in order",
                           rg_csv_text(csv, arrival), rg_csv_text(csv, first),
                           rg_csv_text(csv, last));
        one->first_s -= one->start_s;
        one->last_s -= one->start_s;
    }
}

static rg_request *by_id(rg_replay_run *run, int64_t id)
{
    if (id >= 0 && id < run->count && run->requests[id].row == id)
        return &run->requests[id];
    for (int64_t i = 0; i < run->count; i++)
        if (run->requests[i].row == id)
            return &run->requests[i];
    return NULL;
}

/* Text nobody else has, under the request's own name. */
static uint64_t own_name(const rg_request *q)
{
    return 0x6d656173u + ((uint64_t)q->row << 32);
}

/* What the prompt says: the first `shared` tokens of another prompt, then its own. */
static rg_status share(rg_arena *arena, const rg_request *from, int64_t shared, rg_request *to,
                       rg_err *err)
{
    rg_segment *segments = RG_NEW(arena, rg_segment, from->segment_count + 2, err);
    if (!segments)
        return RG_ERR_LIMIT;
    int n = 0;
    int64_t left = shared;
    for (int i = 0; i < from->segment_count && left > 0; i++) {
        segments[n] = from->segments[i];
        segments[n].tokens = segments[n].tokens < left ? segments[n].tokens : left;
        left -= segments[n++].tokens;
    }
    if (to->prompt_tokens > shared - left)
        segments[n++] = (rg_segment){own_name(to), to->prompt_tokens - (shared - left)};
    to->segments = segments;
    to->segment_count = n;
    return RG_OK;
}

static rg_status read_prefixes(reader *r, rg_csv *csv)
{
    int id, shared, with;
    RG_TRY(rg_csv_column(csv, "request_id", &id, r->err));
    RG_TRY(rg_csv_column(csv, "shared_prefix_tokens", &shared, r->err));
    RG_TRY(rg_csv_column(csv, "shares_with_request", &with, r->err));
    for (;;) {
        bool more;
        int64_t to_id, from_id, tokens;
        RG_TRY(rg_csv_next(csv, &more, r->err));
        if (!more)
            return RG_OK;
        RG_TRY(rg_csv_int(csv, id, &to_id, r->err));
        RG_TRY(rg_csv_int(csv, with, &from_id, r->err));
        RG_TRY(rg_csv_int(csv, shared, &tokens, r->err));
        rg_request *to = by_id(r->run, to_id), *from = by_id(r->run, from_id);
        if (!to || !from)
            return rg_fail(r->err, RG_ERR_INPUT, rg_csv_pos(csv, to ? with : id),
                           "request '%lld' is not in requests.csv",
                           (long long)(to ? from_id : to_id));
        if (tokens < 0 || tokens > to->prompt_tokens || tokens > from->prompt_tokens)
            return rg_fail(r->err, RG_ERR_INPUT, rg_csv_pos(csv, shared),
                           "'%lld' shared tokens are more than a prompt has", (long long)tokens);
        if (!from->segments)
            RG_TRY(share(r->arena, from, 0, from, r->err));
        RG_TRY(share(r->arena, from, tokens, to, r->err));
        r->run->with_prefix++;
    }
}

static rg_status read_csv(reader *r, const char *path, rg_status (*rows)(reader *, rg_csv *))
{
    rg_csv *csv;
    RG_TRY(rg_csv_open(r->arena, path, &csv, r->err));
    const rg_status status = rows(r, csv);
    rg_csv_close(csv);
    return status;
}

static rg_status load_folder(reader *r, const char *folder)
{
    const char *meta = rg_arena_printf(r->arena, r->err, "%s/meta.yaml", folder);
    const char *requests = rg_arena_printf(r->arena, r->err, "%s/requests.csv", folder);
    const char *prefix = rg_arena_printf(r->arena, r->err, "%s/prefix.csv", folder);
    if (!meta || !requests || !prefix)
        return RG_ERR_LIMIT;
    RG_TRY(read_meta(r, meta));
    r->run->limits_recorded = true;
    RG_TRY(read_csv(r, requests, read_rows));
    return rg_file_exists(prefix) ? read_csv(r, prefix, read_prefixes) : RG_OK;
}

/* ---- what a benchmark writes */

enum { LENGTHS_IN, LENGTHS_OUT, FIRST, BETWEEN, STARTS, LISTS };

static rg_status seconds_of(const rg_node *node, double *out, rg_err *err)
{
    RG_TRY(rg_node_real(node, false, out, err));
    if (*out < 0 || *out > 1e9)
        return rg_fail(err, RG_ERR_INPUT, node->pos, "'%s' s is out of range (0 to 1e9)",
                       node->text);
    return RG_OK;
}

/* One request; of those that failed, no output is counted. */
static rg_status bench_one(rg_node *const *at, row *one, rg_err *err)
{
    double between = 0;
    *one = (row){.request = {.session = -1}};
    RG_TRY(rg_node_int(at[LENGTHS_IN], 0, 1000000000, &one->request.prompt_tokens, err));
    RG_TRY(rg_node_int(at[LENGTHS_OUT], 0, 1000000000, &one->request.output_tokens, err));
    RG_TRY(seconds_of(at[FIRST], &one->first_s, err));
    RG_TRY(rg_node_expect(at[BETWEEN], RG_NODE_LIST, "the times between tokens", err));
    for (const rg_node *gap = at[BETWEEN]->first; gap; gap = gap->next) {
        double seconds;
        RG_TRY(seconds_of(gap, &seconds, err));
        between += seconds;
    }
    one->last_s = one->first_s + between;
    return at[STARTS] ? seconds_of(at[STARTS], &one->start_s, err) : RG_OK;
}

/* So many clients, each of which sends the next request when the last one is answered. */
static rg_status starts_of_clients(reader *r, row *rows, int64_t count, int64_t clients)
{
    double *free_s = RG_NEW(r->arena, double, clients, r->err);
    if (!free_s)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < count; i++) {
        int64_t first = 0;
        for (int64_t c = 1; c < clients; c++)
            first = free_s[c] < free_s[first] ? c : first;
        rows[i].start_s = free_s[first];
        free_s[first] += rows[i].last_s;
    }
    return RG_OK;
}

/* When each request was sent, where the file does not say. */
static rg_status bench_starts(reader *r, rg_node *root, row *rows, int64_t count)
{
    const char *rate = "";
    int64_t clients = 0;
    bool limited;
    RG_TRY(text_of(root, "request_rate", &rate, r->err));
    RG_TRY(int_of(root, "max_concurrency", &clients, &limited, r->err));
    if (strcmp(rate, "inf") != 0 && strcmp(rate, "Infinity") != 0)
        return rg_fail(r->err, RG_ERR_INPUT, root->pos,
                       "no 'start_times': when the requests of rate '%s' were sent is not said; "
                       "newer 'vllm bench serve --save-detailed' writes them, and runs with "
                       "--request-rate inf do without",
                       rate);
    if (limited && clients < count) {
        assume(r, rg_arena_printf(r->arena, r->err,
                                  "no start_times: each of %lld clients sent its next request when "
                                  "the last one was answered",
                                  (long long)clients));
        return starts_of_clients(r, rows, count, clients);
    }
    assume(r, "no start_times: all requests were sent at once, as the rate inf says");
    return RG_OK;
}

static rg_status load_bench(reader *r, const char *path)
{
    static const char *const lists[LISTS] = {"input_lens", "output_lens", "ttfts", "itls",
                                             "start_times"};
    rg_node *root, *at[LISTS];
    RG_TRY(rg_doc_load(r->arena, path, &root, r->err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "the result of a serving benchmark", r->err));
    for (int i = 0; i < LISTS; i++) {
        rg_node *list = given(root, lists[i]);
        at[i] = NULL;
        if (!list && i == STARTS)
            continue;
        if (!list)
            return rg_fail(r->err, RG_ERR_INPUT, root->pos,
                           "no '%s': the requests are not in it one by one; run the benchmark with "
                           "--save-detailed (vLLM) or --output-details (SGLang)",
                           lists[i]);
        RG_TRY(rg_node_expect(list, RG_NODE_LIST, lists[i], r->err));
        if (i > 0 && list->count != at[0]->count)
            return rg_fail(r->err, RG_ERR_INPUT, list->pos, "%s has '%zu' entries, %s has %zu",
                           lists[i], list->count, lists[0], at[0]->count);
        at[i] = list;
    }
    const size_t total = at[0]->count;
    row *rows = RG_NEW(r->arena, row, total, r->err);
    if (!rows)
        return RG_ERR_LIMIT;
    const bool starts = at[STARTS] != NULL;
    for (int i = 0; i < LISTS; i++)
        at[i] = at[i] ? at[i]->first : NULL;
    int64_t count = 0;
    for (size_t n = 0; n < total; n++) {
        RG_TRY(bench_one(at, &rows[count], r->err));
        rows[count].request.row = (int64_t)n;
        count += rows[count].request.prompt_tokens > 0 && rows[count].request.output_tokens > 0;
        for (int i = 0; i < LISTS; i++)
            at[i] = at[i] ? at[i]->next : NULL;
    }
    if ((size_t)count < total)
        assume(r, rg_arena_printf(r->arena, r->err, "%lld requests that failed are left out",
                                  (long long)((int64_t)total - count)));
    if (count == 0)
        return RG_OK;
    if (!starts)
        RG_TRY(bench_starts(r, root, rows, count));
    const char *backend = "";
    RG_TRY(text_of(root, "model_id", &r->run->model, r->err));
    RG_TRY(text_of(root, "backend", &backend, r->err));
    r->run->rules =
        rg_engine_rules_default(strncmp(backend, "sglang", 6) == 0     ? RG_POLICY_SGLANG
                                : strncmp(backend, "tensorrt", 8) == 0 ? RG_POLICY_TRT_NO_EVICT
                                                                       : RG_POLICY_VLLM1);
    assume(r, "times are those of the benchmark's client; engine limits are not in its file: the "
              "engine's own");
    return keep_rows(r, rows, count);
}

rg_status rg_replay_load(rg_arena *arena, const char *path, rg_replay_run **out, rg_err *err)
{
    rg_replay_run *run = RG_NEW(arena, rg_replay_run, 1, err);
    const char **assumed = RG_NEW(arena, const char *, MAX_ASSUMED, err);
    if (!run || !assumed)
        return RG_ERR_LIMIT;
    *run = (rg_replay_run){.folder = path, .name = path, .assumed = assumed, .tp = 1, .dp = 1};
    reader r = {arena, run, assumed, err};
    if (rg_text_ends_with(path, ".json") || rg_text_ends_with(path, ".jsonl")) {
        RG_TRY(load_bench(&r, path));
    } else if (rg_text_ends_with(path, ".csv")) {
        run->rules = rg_engine_rules_default(RG_POLICY_VLLM1);
        assume(&r, "engine limits are not in a table of requests: vLLM's own");
        RG_TRY(read_csv(&r, path, read_rows));
    } else {
        RG_TRY(load_folder(&r, path));
    }
    if (run->count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 0, 0}, "no request in it");
    *out = run;
    return RG_OK;
}

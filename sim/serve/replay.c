/* serve/replay.c: replay of a measured run, errors, fit of engine constants. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replay.h"

#include <math.h>
#include <string.h>

#include "core/csv.h"
#include "core/doc.h"
#include "core/file.h"

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

static rg_status read_meta(reader *r, const char *path)
{
    rg_node *root;
    RG_TRY(rg_doc_load(r->arena, path, &root, r->err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "the record of a run", r->err));
    RG_TRY(text_of(root, "run", &r->run->name, r->err));
    rg_node *engine = given(root, "engine"), *limits = given(root, "limits"),
            *model = given(root, "model"), *gpu = given(root, "gpu"),
            *parallel = given(root, "parallel");
    RG_TRY(read_engine(r, engine));
    RG_TRY(read_limits(r, limits));
    RG_TRY(text_of(model, "name", &r->run->model, r->err));
    RG_TRY(text_of(model, "dtype", &r->run->dtype, r->err));
    RG_TRY(text_of(gpu, "name", &r->run->gpu, r->err));
    r->run->tp = 1;
    r->run->dp = 1;
    bool known;
    RG_TRY(int_of(parallel, "tp", &r->run->tp, &known, r->err));
    RG_TRY(int_of(parallel, "dp", &r->run->dp, &known, r->err));
    rg_node *experts = given(parallel, "expert_parallel");
    return experts ? rg_node_bool(experts, &r->run->expert_parallel, r->err) : RG_OK;
}

/* ---- requests.csv, prefix.csv */

static rg_status grow(rg_arena *arena, rg_replay_run *run, int64_t *room, rg_err *err)
{
    if (run->count < *room)
        return RG_OK;
    *room = *room ? *room * 2 : 512;
    rg_request *requests = RG_NEW(arena, rg_request, *room, err);
    rg_replay_request *measured = RG_NEW(arena, rg_replay_request, *room, err);
    if (!requests || !measured)
        return RG_ERR_LIMIT;
    if (run->count) {
        memcpy(requests, run->requests, (size_t)run->count * sizeof *requests);
        memcpy(measured, run->measured, (size_t)run->count * sizeof *measured);
    }
    run->requests = requests;
    run->measured = measured;
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
    int64_t room = 0;
    double before = -INFINITY;
    for (;;) {
        bool more;
        RG_TRY(rg_csv_next(csv, &more, r->err));
        if (!more)
            return RG_OK;
        RG_TRY(grow(r->arena, r->run, &room, r->err));
        rg_request *q = &r->run->requests[r->run->count];
        rg_replay_request *m = &r->run->measured[r->run->count];
        *q = (rg_request){.session = -1};
        RG_TRY(rg_csv_int(csv, id, &q->row, r->err));
        RG_TRY(rg_csv_real(csv, arrival, &q->arrival_s, r->err));
        RG_TRY(rg_csv_real(csv, first, &m->first_token_s, r->err));
        RG_TRY(rg_csv_real(csv, last, &m->last_token_s, r->err));
        RG_TRY(rg_csv_int(csv, input, &q->prompt_tokens, r->err));
        RG_TRY(rg_csv_int(csv, output, &q->output_tokens, r->err));
        if (q->prompt_tokens < 1 || q->output_tokens < 1 || q->prompt_tokens > 1000000000 ||
            q->output_tokens > 1000000000)
            return rg_fail(r->err, RG_ERR_INPUT, rg_csv_pos(csv, input),
                           "a request of '%lld' prompt and '%lld' output tokens; both 1 to 1e9",
                           (long long)q->prompt_tokens, (long long)q->output_tokens);
        if (q->arrival_s < before)
            return rg_fail(r->err, RG_ERR_INPUT, rg_csv_pos(csv, arrival),
                           "arrival '%s' is before that of the row above; sort by arrival_s",
                           rg_csv_text(csv, arrival));
        if (m->first_token_s < q->arrival_s || m->last_token_s < m->first_token_s)
            return rg_fail(r->err, RG_ERR_INPUT, rg_csv_pos(csv, first),
                           "arrival '%s', first token '%s' and last token '%s' are not in order",
                           rg_csv_text(csv, arrival), rg_csv_text(csv, first),
                           rg_csv_text(csv, last));
        before = q->arrival_s;
        r->run->count++;
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

rg_status rg_replay_load(rg_arena *arena, const char *folder, rg_replay_run **out, rg_err *err)
{
    rg_replay_run *run = RG_NEW(arena, rg_replay_run, 1, err);
    const char **assumed = RG_NEW(arena, const char *, MAX_ASSUMED, err);
    if (!run || !assumed)
        return RG_ERR_LIMIT;
    run->folder = run->name = folder;
    run->assumed = assumed;
    reader r = {arena, run, assumed, err};
    const char *meta = rg_arena_printf(arena, err, "%s/meta.yaml", folder);
    const char *requests = rg_arena_printf(arena, err, "%s/requests.csv", folder);
    const char *prefix = rg_arena_printf(arena, err, "%s/prefix.csv", folder);
    if (!meta || !requests || !prefix)
        return RG_ERR_LIMIT;
    RG_TRY(read_meta(&r, meta));
    RG_TRY(read_csv(&r, requests, read_rows));
    if (run->count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){requests, 0, 0}, "no request in it");
    if (rg_file_exists(prefix))
        RG_TRY(read_csv(&r, prefix, read_prefixes));
    *out = run;
    return RG_OK;
}

/* ---- comparison */

typedef struct comparison {
    const rg_replay_run *run;
    const rg_observer *inner;
    double ttft, ttft_of, tpot, tpot_of, e2e, e2e_of;
    double ttft_signed, tpot_signed, e2e_signed, last;
    int64_t requests;
} comparison;

static void add(double predicted, double measured, double *off, double *total, double *bias)
{
    *off += fabs(predicted - measured);
    *bias += predicted - measured;
    *total += measured;
}

static void compare_one(void *context, const rg_served *s)
{
    comparison *c = context;
    const rg_request *q = &c->run->requests[s->index];
    const rg_replay_request *m = &c->run->measured[s->index];
    add(s->first_token_s - s->arrival_s, m->first_token_s - q->arrival_s, &c->ttft, &c->ttft_of,
        &c->ttft_signed);
    add(s->last_token_s - s->arrival_s, m->last_token_s - q->arrival_s, &c->e2e, &c->e2e_of,
        &c->e2e_signed);
    if (q->output_tokens > 1) {
        const double between = (double)(q->output_tokens - 1);
        add((s->last_token_s - s->first_token_s) / between,
            (m->last_token_s - m->first_token_s) / between, &c->tpot, &c->tpot_of, &c->tpot_signed);
    }
    c->last = s->last_token_s > c->last ? s->last_token_s : c->last;
    c->requests++;
    if (c->inner && c->inner->served)
        c->inner->served(c->inner->context, s);
}

static void pass_moment(void *context, const rg_moment *moment)
{
    const comparison *c = context;
    c->inner->moment(c->inner->context, moment);
}

static double share_of(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

rg_status rg_replay_compare(rg_arena *arena, const rg_replay_run *run,
                            const rg_deployment *deployment, const rg_observer *observer,
                            uint64_t seed, rg_serve_result *result, rg_replay_errors *out,
                            rg_err *err)
{
    comparison c = {.run = run, .inner = observer};
    const rg_observer watch = {.context = &c,
                               .served = compare_one,
                               .moment = observer && observer->moment ? pass_moment : NULL,
                               .moment_interval_s = observer ? observer->moment_interval_s : 0};
    rg_requests *stream;
    RG_TRY(rg_requests_array(arena, run->requests, run->count, &stream, err));
    RG_TRY(rg_serve_run(arena, deployment, stream, NULL, &watch, seed, result, err));
    double last = 0;
    for (int64_t i = 0; i < run->count; i++)
        last = run->measured[i].last_token_s > last ? run->measured[i].last_token_s : last;
    *out = (rg_replay_errors){.ttft_wape = share_of(c.ttft, c.ttft_of),
                              .tpot_wape = share_of(c.tpot, c.tpot_of),
                              .e2e_wape = share_of(c.e2e, c.e2e_of),
                              .ttft_bias = share_of(c.ttft_signed, c.ttft_of),
                              .tpot_bias = share_of(c.tpot_signed, c.tpot_of),
                              .e2e_bias = share_of(c.e2e_signed, c.e2e_of),
                              .makespan = c.last / last - 1,
                              .requests = c.requests};
    return RG_OK;
}

/* ---- fit */

/* What the run does not tell apart (a slower kernel against a longer pause) stays near where it
 * began, as a fit of one run must hold for others: a constant moves by its spread only where that
 * takes 0.5 % off the sum of the errors. */
static const double pull = 0.005;

typedef struct trial {
    const rg_tunable *constants;
    double *start, *tried; /* [count] */
    int count;
    const rg_replay_run *run;
    const rg_deployment *deployment;
    rg_replay_errors errors;
    int evaluations;
} trial;

static rg_status evaluate(trial *t, double *loss, rg_err *err)
{
    rg_arena *scratch = rg_arena_new(512);
    if (!scratch)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for a replay");
    rg_serve_result result;
    const rg_status status =
        rg_replay_compare(scratch, t->run, t->deployment, NULL, 1, &result, &t->errors, err);
    rg_arena_free(scratch);
    t->evaluations++;
    *loss = t->errors.ttft_wape + t->errors.tpot_wape + t->errors.e2e_wape;
    for (int i = 0; i < t->count; i++) {
        const rg_tunable *c = &t->constants[i];
        const double moved = (t->tried[i] - t->start[i]) / c->spread;
        *loss += pull * moved * moved;
    }
    return status;
}

static rg_status try_value(trial *t, rg_tunable *c, double value, double *loss, rg_err *err)
{
    t->tried[c - t->constants] = value;
    c->set(c->context, value);
    return evaluate(t, loss, err);
}

static rg_status golden_section(trial *t, rg_tunable *c, double width, double *least, rg_err *err)
{
    const double golden = 0.6180339887498949;
    double low = c->value - width, high = c->value + width;
    low = low < c->least ? c->least : low;
    high = high > c->most ? c->most : high;
    double a = high - golden * (high - low), b = low + golden * (high - low), at_a, at_b;
    RG_TRY(try_value(t, c, a, &at_a, err));
    RG_TRY(try_value(t, c, b, &at_b, err));
    for (int i = 0; i < 10; i++) {
        if (at_a < at_b) {
            high = b;
            b = a;
            at_b = at_a;
            a = high - golden * (high - low);
            RG_TRY(try_value(t, c, a, &at_a, err));
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + golden * (high - low);
            RG_TRY(try_value(t, c, b, &at_b, err));
        }
    }
    const double best = at_a < at_b ? a : b, loss = at_a < at_b ? at_a : at_b;
    if (loss < *least) {
        *least = loss;
        c->value = best;
    }
    t->tried[c - t->constants] = c->value;
    c->set(c->context, c->value);
    return RG_OK;
}

rg_status rg_replay_fit(rg_arena *arena, const rg_replay_run *run, const rg_deployment *deployment,
                        rg_tunable *constants, int count, rg_replay_errors *best, int *evaluations,
                        rg_err *err)
{
    double *start = RG_NEW(arena, double, count, err), *tried = RG_NEW(arena, double, count, err);
    if (!start || !tried)
        return RG_ERR_LIMIT;
    trial t = {.run = run,
               .deployment = deployment,
               .constants = constants,
               .start = start,
               .tried = tried,
               .count = count};
    double least;
    for (int i = 0; i < count; i++) {
        start[i] = tried[i] = constants[i].value;
        constants[i].set(constants[i].context, constants[i].value);
    }
    RG_TRY(evaluate(&t, &least, err));
    double share = 1;
    for (int round = 0; round < 7; round++, share /= 1.8)
        for (int i = 0; i < count; i++)
            RG_TRY(golden_section(&t, &constants[i],
                                  share * (constants[i].most - constants[i].least), &least, err));
    RG_TRY(evaluate(&t, &least, err));
    *best = t.errors;
    *evaluations = t.evaluations;
    return RG_OK;
}

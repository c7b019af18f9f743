/* trace/req_json.c: request traces in JSON: Mooncake and other JSON Lines, vLLM benchmark results,
 * lists of lengths, ShareGPT conversations.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/req_row.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 64 << 20, CHARACTERS_PER_TOKEN = 4 };

typedef struct json_reader {
    rg_row_reader base;
    rg_arena *arena;
    const char *path;
    FILE *stream; /* JSON Lines */
    char *line;
    size_t line_size;
    int line_number;
    rg_segment *segments;
    size_t capacity;
    json_t *root; /* one document */
    json_t *prompts, *outputs, *starts;
    size_t at;
} json_reader;

/* Names under which tools write the same thing. */
static const char *const prompt_names[] = {"input_length",       "prompt_len", "input_len",
                                           "input_tokens",       "input_toks", "prompt_tokens",
                                           "num_prefill_tokens", NULL};
static const char *const output_names[] = {"output_length",     "output_len",  "output_tokens",
                                           "completion_tokens", "output_toks", "completion_len",
                                           "num_decode_tokens", NULL};
static const struct {
    const char *name;
    double to_ns;
} arrival_names[] = {{"timestamp", 1e6}, /* Mooncake: milliseconds */
                     {"arrival_s", 1e9},
                     {"arrival_time", 1e9},
                     {"arrival_time_ns", 1},
                     {NULL, 0}};

static json_t *find_any(const json_t *object, const char *const *names, const char **which)
{
    for (int i = 0; names[i]; i++) {
        json_t *value = json_object_get(object, names[i]);
        if (value) {
            *which = names[i];
            return value;
        }
    }
    return NULL;
}

static rg_status count_of(const json_t *value, const char *name, rg_pos pos, int64_t *out,
                          rg_err *err)
{
    const double x = json_is_number(value) ? json_number_value(value) : -1;
    if (!(x >= 0 && x <= 1e9) || x != floor(x)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        rg_fail(err, RG_ERR_INPUT, pos, "%s '%.60s' is not a number of tokens (0 to 1e9, whole)",
                name, text ? text : "?");
        free(text);
        return RG_ERR_INPUT;
    }
    *out = (int64_t)x;
    return RG_OK;
}

static rg_status room(json_reader *r, size_t count, rg_err *err)
{
    if (count <= r->capacity)
        return RG_OK;
    size_t capacity = r->capacity ? r->capacity : 64;
    while (capacity < count)
        capacity *= 2;
    r->segments = RG_NEW(r->arena, rg_segment, capacity, err);
    r->capacity = capacity;
    return r->segments ? RG_OK : RG_ERR_LIMIT;
}

/* Hash blocks: Mooncake gives one id for 512 tokens, the last block may be partial (FAST'25 trace
 * release, README). */
static rg_status read_hash_blocks(json_reader *r, const json_t *ids, rg_row *row, rg_err *err)
{
    const size_t count = json_array_size(ids);
    const int64_t block = 512;
    if ((int64_t)count > (row->prompt_tokens + block - 1) / block)
        return rg_fail(err, RG_ERR_INPUT, row->pos,
                       "'%zu' hash_ids are more than %lld tokens have blocks of %lld", count,
                       (long long)row->prompt_tokens, (long long)block);
    RG_TRY(room(r, count, err));
    int64_t left = row->prompt_tokens;
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id))
            return rg_fail(err, RG_ERR_INPUT, row->pos, "hash_ids hold something not an integer");
        r->segments[i].id = rg_row_mix(0x6d6f6f6e, (uint64_t)json_integer_value(id));
        r->segments[i].tokens = left < block ? left : block;
        left -= r->segments[i].tokens;
    }
    row->segments = r->segments;
    row->segment_count = (int)count;
    row->block_tokens = block;
    return RG_OK;
}

/* Token ids: every token is a segment of one, so prefixes are exact. */
static rg_status read_token_ids(json_reader *r, const json_t *ids, rg_row *row, rg_err *err)
{
    const size_t count = json_array_size(ids);
    RG_TRY(room(r, count, err));
    for (size_t i = 0; i < count; i++)
        r->segments[i] = (rg_segment){
            rg_row_mix(0x746f6b, (uint64_t)json_integer_value(json_array_get(ids, i))), 1};
    row->segments = r->segments;
    row->segment_count = (int)count;
    return RG_OK;
}

static rg_status read_object(json_reader *r, const json_t *object, rg_row *row, rg_err *err)
{
    const char *name = NULL;
    if (!json_is_object(object))
        return rg_fail(err, RG_ERR_INPUT, row->pos, "a request must be a JSON object");
    const json_t *prompt = find_any(object, prompt_names, &name);
    if (!prompt)
        return rg_fail(err, RG_ERR_INPUT, row->pos,
                       "no prompt length; wanted 'input_length' (Mooncake) or 'prompt_len'");
    RG_TRY(count_of(prompt, name, row->pos, &row->prompt_tokens, err));
    const json_t *output = find_any(object, output_names, &name);
    if (!output)
        return rg_fail(err, RG_ERR_INPUT, row->pos,
                       "no output length; wanted 'output_length' (Mooncake) or 'output_len'");
    RG_TRY(count_of(output, name, row->pos, &row->output_tokens, err));
    for (int i = 0; arrival_names[i].name; i++) {
        const json_t *arrival = json_object_get(object, arrival_names[i].name);
        if (!arrival)
            continue;
        const double x = json_is_number(arrival) ? json_number_value(arrival) : NAN;
        if (!(fabs(x * arrival_names[i].to_ns) < 4e18))
            return rg_fail(err, RG_ERR_INPUT, row->pos, "'%s' is not a time in range",
                           arrival_names[i].name);
        row->arrival_ns = llround(x * arrival_names[i].to_ns);
        row->has_arrival = true;
        break;
    }
    const json_t *priority = json_object_get(object, "priority");
    if (json_is_integer(priority))
        row->priority = json_integer_value(priority);
    const json_t *ids = json_object_get(object, "hash_ids");
    if (json_is_array(ids))
        return read_hash_blocks(r, ids, row, err);
    ids = json_object_get(object, "input_tok_ids");
    if (json_is_array(ids) && (int64_t)json_array_size(ids) == row->prompt_tokens)
        return read_token_ids(r, ids, row, err);
    return RG_OK;
}

static rg_status jsonl_next(rg_row_reader *reader, rg_row *row, bool *more, rg_err *err)
{
    json_reader *r = (json_reader *)reader;
    for (;;) {
        const ssize_t got = getline(&r->line, &r->line_size, r->stream);
        *more = got >= 0;
        if (got < 0)
            return RG_OK;
        r->line_number++;
        if (got > MAX_LINE)
            return rg_fail(err, RG_ERR_LIMIT, (rg_pos){r->path, r->line_number, 1},
                           "line of '%zd' bytes is over the limit of %d", got, MAX_LINE);
        size_t blank = strspn(r->line, " \t\r\n");
        if (r->line_number == 1 && memcmp(r->line, "\xef\xbb\xbf", 3) == 0)
            blank = 3;
        if (!r->line[blank])
            continue;
        json_error_t problem;
        json_t *object = json_loadb(r->line + blank, (size_t)got - blank, 0, &problem);
        *row = (rg_row){.session = -1, .shared_id = -1, .pos = {r->path, r->line_number, 1}};
        if (!object)
            return rg_fail(err, RG_ERR_INPUT,
                           (rg_pos){r->path, r->line_number,
                                    (problem.column > 0 ? problem.column : 1) + (int)blank},
                           "not JSON: %s", problem.text);
        const rg_status status = read_object(r, object, row, err);
        json_decref(object);
        return status;
    }
}

static void json_close(rg_row_reader *reader)
{
    json_reader *r = (json_reader *)reader;
    if (r->stream)
        fclose(r->stream);
    free(r->line);
    if (r->root)
        json_decref(r->root);
    r->stream = NULL;
    r->line = NULL;
    r->root = NULL;
}

rg_status rg_row_reader_jsonl(rg_arena *arena, FILE *stream, const char *path, rg_row_reader **out,
                              rg_err *err)
{
    json_reader *r = RG_NEW(arena, json_reader, 1, err);
    if (!r) {
        fclose(stream);
        return RG_ERR_LIMIT;
    }
    r->arena = arena;
    r->path = path;
    r->stream = stream;
    r->base = (rg_row_reader){"jsonl", true, false, jsonl_next, json_close};
    *out = &r->base;
    return RG_OK;
}

/* ---- one document */

static int64_t characters(const char *text)
{
    int64_t count = 0;
    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

/* The first question and its answer, as vLLM's own benchmark takes them. */
static bool read_conversation(const json_t *talk, rg_row *row)
{
    const json_t *asked = json_object_get(json_array_get(talk, 0), "value");
    const json_t *answer = json_object_get(json_array_get(talk, 1), "value");
    if (!json_is_string(asked) || !json_is_string(answer))
        return false;
    const int64_t a = characters(json_string_value(asked));
    const int64_t b = characters(json_string_value(answer));
    row->prompt_tokens = (a + CHARACTERS_PER_TOKEN - 1) / CHARACTERS_PER_TOKEN;
    row->output_tokens = (b + CHARACTERS_PER_TOKEN - 1) / CHARACTERS_PER_TOKEN;
    return true;
}

static rg_status document_next(rg_row_reader *reader, rg_row *row, bool *more, rg_err *err)
{
    json_reader *r = (json_reader *)reader;
    while (r->at < json_array_size(r->prompts)) {
        const size_t i = r->at++;
        *more = true;
        *row = (rg_row){.session = -1, .shared_id = -1, .pos = {r->path, 0, 0}};
        const json_t *item = json_array_get(r->prompts, i);
        if (r->outputs) { /* vLLM: two arrays side by side */
            RG_TRY(count_of(item, "input_lens", row->pos, &row->prompt_tokens, err));
            RG_TRY(count_of(json_array_get(r->outputs, i), "output_lens", row->pos,
                            &row->output_tokens, err));
            if (r->starts && json_is_number(json_array_get(r->starts, i))) {
                const double start = json_number_value(json_array_get(r->starts, i));
                if (!(fabs(start) < 4e9))
                    return rg_fail(err, RG_ERR_INPUT, row->pos, "start time '%g' is out of range",
                                   start);
                row->arrival_ns = llround(start * 1e9);
                row->has_arrival = true;
            }
            return RG_OK;
        }
        if (json_is_array(item)) { /* [prompt, output] */
            RG_TRY(count_of(json_array_get(item, 0), "prompt length", row->pos, &row->prompt_tokens,
                            err));
            return count_of(json_array_get(item, 1), "output length", row->pos, &row->output_tokens,
                            err);
        }
        const json_t *talk = json_object_get(item, "conversations");
        if (!talk)
            return read_object(r, item, row, err);
        if (read_conversation(talk, row))
            return RG_OK;
    }
    *more = false;
    return RG_OK;
}

rg_status rg_row_reader_json(rg_arena *arena, FILE *stream, const char *path, rg_row_reader **out,
                             rg_err *err)
{
    json_error_t problem;
    json_t *root = json_loadf(stream, JSON_REJECT_DUPLICATES, &problem);
    fclose(stream);
    if (!root)
        return rg_fail(err, RG_ERR_INPUT,
                       (rg_pos){path, problem.line > 0 ? problem.line : 1,
                                problem.column > 0 ? problem.column : 1},
                       "not JSON: %s", problem.text);
    json_reader *r = RG_NEW(arena, json_reader, 1, err);
    if (!r) {
        json_decref(root);
        return RG_ERR_LIMIT;
    }
    r->arena = arena;
    r->path = path;
    r->root = root;
    r->base = (rg_row_reader){"lengths", false, false, document_next, json_close};
    if (json_is_object(root)) {
        r->prompts = json_object_get(root, "input_lens");
        r->outputs = json_object_get(root, "output_lens");
        r->starts = json_object_get(root, "start_times");
        r->base.format = "vllm-bench";
        r->base.has_arrivals = json_is_array(r->starts);
        if (json_array_size(r->prompts) == 0 ||
            json_array_size(r->prompts) != json_array_size(r->outputs)) {
            json_close(&r->base);
            return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                           "no 'input_lens' and 'output_lens' of equal length; run vLLM's "
                           "benchmark with --save-detailed");
        }
    } else {
        r->prompts = root;
        const json_t *first = json_array_get(root, 0);
        if (json_object_get(first, "conversations")) {
            r->base.format = "sharegpt";
            r->base.estimated_lengths = true;
        } else {
            for (int i = 0; arrival_names[i].name; i++)
                if (json_object_get(first, arrival_names[i].name))
                    r->base.has_arrivals = true;
        }
    }
    *out = &r->base;
    return RG_OK;
}

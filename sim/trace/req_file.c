/* trace/req_file.c: a trace file as a stream: picks the reader, puts rows in order, counts quirks.
 *
 * Rows that are a little out of order pass through a window; a row that is earlier than what has
 * already been delivered is an error at its line, as sorting it would take the whole file.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/req_row.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/text.h"

enum { WINDOW = 1024 };

typedef struct slot {
    rg_request request;
    int64_t arrival_ns, order;
    rg_segment *segments;
    int capacity;
} slot;

typedef struct file_stream {
    rg_requests base;
    rg_request_facts facts;
    rg_arena *arena;
    rg_row_reader *reader;
    const char *path;
    slot *slots;      /* [WINDOW + 1] */
    int heap[WINDOW]; /* slots that wait, least arrival first */
    int heap_count;
    int spare[WINDOW + 1];
    int spare_count;
    int out; /* slot handed out last, free again at the next call */
    bool ended;
    int64_t first_ns, last_read_ns, last_out_ns, index;
    bool started;
} file_stream;

uint64_t rg_row_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ (b * 0x9e3779b97f4a7c15u);
    (void)rg_rng_splitmix(&x);
    return rg_rng_splitmix(&x);
}

static bool before(const slot *a, const slot *b)
{
    return a->arrival_ns != b->arrival_ns ? a->arrival_ns < b->arrival_ns : a->order < b->order;
}

static void heap_push(file_stream *f, int item)
{
    int i = f->heap_count++;
    for (int parent; i > 0 && before(&f->slots[item], &f->slots[f->heap[parent = (i - 1) / 2]]);
         i = parent)
        f->heap[i] = f->heap[parent];
    f->heap[i] = item;
}

static int heap_pop(file_stream *f)
{
    const int top = f->heap[0], last = f->heap[--f->heap_count];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= f->heap_count)
            break;
        if (child + 1 < f->heap_count &&
            before(&f->slots[f->heap[child + 1]], &f->slots[f->heap[child]]))
            child++;
        if (!before(&f->slots[f->heap[child]], &f->slots[last]))
            break;
        f->heap[i] = f->heap[child];
        i = child;
    }
    f->heap[i] = last;
    return top;
}

/* What the prompt says, as segments: given ones, a shared prefix, a session's growing text. */
static rg_status keep_segments(file_stream *f, slot *s, const rg_row *row, rg_err *err)
{
    rg_segment made[2];
    const rg_segment *from = row->segments;
    int count = row->segment_count;
    if (!from) {
        const int64_t shared =
            row->shared_tokens < row->prompt_tokens ? row->shared_tokens : row->prompt_tokens;
        count = 0;
        if (row->shared_id >= 0 && shared > 0)
            made[count++] = (rg_segment){rg_row_mix(0x70726566, (uint64_t)row->shared_id), shared};
        if (row->session >= 0 && row->prompt_tokens > (count ? shared : 0)) {
            s->request.output_id = rg_row_mix(0x73657373, (uint64_t)row->session);
            made[count] =
                (rg_segment){s->request.output_id, row->prompt_tokens - (count ? shared : 0)};
            count++;
        }
        from = made;
    }
    if (count > s->capacity) {
        s->capacity = count + count / 2;
        s->segments = RG_NEW(f->arena, rg_segment, s->capacity, err);
        if (!s->segments)
            return RG_ERR_LIMIT;
    }
    if (count > 0)
        memcpy(s->segments, from, (size_t)count * sizeof *from);
    s->request.segments = s->segments;
    s->request.segment_count = count;
    return RG_OK;
}

static rg_status read_one(file_stream *f, rg_err *err)
{
    rg_row row;
    bool more;
    RG_TRY(f->reader->next(f->reader, &row, &more, err));
    if (!more) {
        f->ended = true;
        return RG_OK;
    }
    f->facts.rows++;
    if (row.output_tokens == 0 || row.prompt_tokens == 0) {
        f->facts.empty_output += row.output_tokens == 0;
        f->facts.empty_prompt += row.output_tokens != 0;
        return RG_OK;
    }
    const int64_t ns = row.has_arrival ? row.arrival_ns : 0;
    f->facts.no_arrivals |= !row.has_arrival;
    if (f->started && row.has_arrival) {
        f->facts.out_of_order += ns < f->last_read_ns;
        f->facts.equal_stamps += ns == f->last_read_ns;
        if (f->index > 0 && ns < f->last_out_ns)
            return rg_fail(err, RG_ERR_INPUT, row.pos,
                           "arrival is '%.6f' s earlier than requests already delivered, more than "
                           "%d rows out of order; sort the file by arrival",
                           (double)(f->last_out_ns - ns) * 1e-9, WINDOW);
    }
    f->started = true;
    f->last_read_ns = ns;
    const int item = f->spare[--f->spare_count];
    slot *s = &f->slots[item];
    s->arrival_ns = ns;
    s->order = f->facts.rows;
    s->request = (rg_request){.row = f->facts.rows,
                              .prompt_tokens = row.prompt_tokens,
                              .output_tokens = row.output_tokens,
                              .priority = row.priority,
                              .session = row.session,
                              .turn = row.turn,
                              .trace_block_tokens = row.block_tokens};
    RG_TRY(keep_segments(f, s, &row, err));
    heap_push(f, item);
    return RG_OK;
}

static rg_status fill(file_stream *f, rg_err *err)
{
    if (f->out >= 0)
        f->spare[f->spare_count++] = f->out;
    f->out = -1;
    /* Without arrivals there is nothing to put in order, so nothing to read ahead. */
    const int want = f->reader->has_arrivals ? WINDOW : 1;
    while (!f->ended && f->heap_count < want)
        RG_TRY(read_one(f, err));
    if (f->index == 0 && f->heap_count > 0)
        f->first_ns = f->slots[f->heap[0]].arrival_ns;
    return RG_OK;
}

static rg_status file_peek(rg_requests *stream, double *arrival_s, rg_err *err)
{
    file_stream *f = (file_stream *)stream;
    *arrival_s = INFINITY;
    RG_TRY(fill(f, err));
    if (f->heap_count > 0)
        *arrival_s = (double)(f->slots[f->heap[0]].arrival_ns - f->first_ns) * 1e-9;
    return RG_OK;
}

static rg_status file_next(rg_requests *stream, rg_request *out, bool *more, rg_err *err)
{
    file_stream *f = (file_stream *)stream;
    RG_TRY(fill(f, err));
    *more = f->heap_count > 0;
    if (!*more)
        return RG_OK;
    f->out = heap_pop(f);
    slot *s = &f->slots[f->out];
    s->request.index = f->index++;
    s->request.arrival_s = (double)(s->arrival_ns - f->first_ns) * 1e-9;
    f->last_out_ns = s->arrival_ns;
    f->facts.delivered++;
    *out = s->request;
    return RG_OK;
}

static void file_close(rg_requests *stream)
{
    file_stream *f = (file_stream *)stream;
    if (f->reader->close)
        f->reader->close(f->reader);
    f->reader->close = NULL;
}

static void release_file(void *stream)
{
    file_close(stream);
}

static const rg_requests_class file_class = {file_peek, file_next, NULL, file_close};

static rg_status start(rg_arena *arena, rg_row_reader *reader, const char *path, rg_requests **out,
                       rg_err *err)
{
    file_stream *f = RG_NEW(arena, file_stream, 1, err);
    slot *slots = f ? RG_NEW(arena, slot, WINDOW + 1, err) : NULL;
    if (!slots) {
        reader->close(reader);
        return RG_ERR_LIMIT;
    }
    f->base = (rg_requests){&file_class, NULL, &f->facts};
    f->facts.path = path;
    f->facts.format = reader->format;
    f->facts.estimated_lengths = reader->estimated_lengths;
    f->arena = arena;
    f->reader = reader;
    f->path = path;
    f->slots = slots;
    f->out = -1;
    /* A run that ends in an error closes nothing; the arena does. */
    if (rg_arena_defer(arena, release_file, &f->base, err) != RG_OK) {
        reader->close(reader);
        return RG_ERR_LIMIT;
    }
    for (int i = 0; i <= WINDOW; i++)
        f->spare[f->spare_count++] = WINDOW - i;
    /* Read ahead now, so that the first row's mistakes and missing arrivals show at once. */
    double first;
    const rg_status status = file_peek(&f->base, &first, err);
    if (status != RG_OK) {
        file_close(&f->base);
        return status;
    }
    if (f->heap_count == 0) {
        file_close(&f->base);
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                       "no request in it (%lld rows, %lld without output)",
                       (long long)f->facts.rows, (long long)f->facts.empty_output);
    }
    *out = &f->base;
    return RG_OK;
}

static bool is_json(const char *name, const char *format)
{
    if (format)
        return strcmp(format, "mooncake") == 0 || strcmp(format, "json") == 0 ||
               strcmp(format, "jsonl") == 0;
    return rg_text_ends_with(name, ".json") || rg_text_ends_with(name, ".jsonl");
}

static bool is_lines(const char *name, const char *format)
{
    return format ? strcmp(format, "json") != 0 : rg_text_ends_with(name, ".jsonl");
}

static rg_status open_json(rg_arena *arena, FILE *stream, const char *path, const char *format,
                           rg_row_reader **reader, rg_err *err)
{
    return is_lines(path, format) ? rg_row_reader_jsonl(arena, stream, path, reader, err)
                                  : rg_row_reader_json(arena, stream, path, reader, err);
}

static const char *plain(const char *format)
{
    return format && strcmp(format, "auto") != 0 ? format : NULL;
}

/* Traces are often handed out packed. */
static rg_status check_packed(const char *path, rg_err *err)
{
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return rg_fail(err, RG_ERR_IO, (rg_pos){path, 0, 0}, "cannot be read: %s", strerror(errno));
    const int first = fgetc(stream), second = fgetc(stream);
    fclose(stream);
    if ((first == 0x1f && second == 0x8b) || (first == 0x28 && second == 0xb5))
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 0, 0},
                       "packed with %s; unpack it first, as with '%s %s'",
                       first == 0x1f ? "gzip" : "zstd", first == 0x1f ? "gunzip -k" : "unzstd",
                       path);
    return RG_OK;
}

rg_status rg_requests_open(rg_arena *arena, const char *path, const char *format, rg_requests **out,
                           rg_err *err)
{
    rg_row_reader *reader = NULL;
    format = plain(format);
    path = rg_arena_strdup(arena, path, err);
    if (!path)
        return RG_ERR_LIMIT;
    RG_TRY(check_packed(path, err));
    if (is_json(path, format)) {
        FILE *stream = fopen(path, "rb");
        if (!stream)
            return rg_fail(err, RG_ERR_IO, (rg_pos){path, 0, 0}, "cannot open: %s",
                           strerror(errno));
        RG_TRY(open_json(arena, stream, path, format, &reader, err));
    } else {
        rg_csv *csv;
        RG_TRY(rg_csv_open(arena, path, &csv, err));
        const rg_status status = rg_row_reader_csv(arena, csv, path, format, &reader, err);
        if (status != RG_OK) {
            rg_csv_close(csv);
            return status;
        }
    }
    return start(arena, reader, path, out, err);
}

rg_status rg_requests_parse(rg_arena *arena, const char *name, const char *text, size_t length,
                            const char *format, rg_requests **out, rg_err *err)
{
    rg_row_reader *reader = NULL;
    format = plain(format);
    if (is_json(name, format)) {
        char *copy = length > 0 ? rg_arena_copy(arena, text, length, err) : NULL;
        FILE *stream = copy ? fmemopen(copy, length, "rb") : NULL;
        if (!stream)
            return rg_fail(err, RG_ERR_INPUT, (rg_pos){name, 1, 1}, "the file is empty");
        RG_TRY(open_json(arena, stream, name, format, &reader, err));
    } else {
        rg_csv *csv;
        RG_TRY(rg_csv_open_text(arena, name, text, length, &csv, err));
        const rg_status status = rg_row_reader_csv(arena, csv, name, format, &reader, err);
        if (status != RG_OK) {
            rg_csv_close(csv);
            return status;
        }
    }
    return start(arena, reader, name, out, err);
}

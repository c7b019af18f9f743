/* trace/req_row.h: between the readers of single file formats and req_file.c, which puts rows in
 * order and counts them. Private to trace/.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TRACE_REQ_ROW_H
#define RG_TRACE_REQ_ROW_H

#include <stdio.h>

#include "core/csv.h"
#include "trace/req.h"

/** One row as read. Absent fields: arrival false, session -1. Segments are valid until the next
 * row. */
typedef struct rg_row {
    bool has_arrival;
    int64_t arrival_ns; /* any epoch */
    int64_t prompt_tokens, output_tokens, priority, session, turn;
    int64_t shared_tokens; /* leading tokens that are shared text, named shared_id */
    int64_t shared_id;     /* -1: none */
    rg_segment *segments;
    int segment_count;
    int64_t block_tokens; /* of hash blocks, 0: segments are plain */
    rg_pos pos;
} rg_row;

typedef struct rg_row_reader rg_row_reader;
struct rg_row_reader {
    const char *format;
    bool has_arrivals;      /* known after opening */
    bool estimated_lengths; /* token counts come from characters */
    rg_status (*next)(rg_row_reader *reader, rg_row *row, bool *more, rg_err *err);
    void (*close)(rg_row_reader *reader);
};

/** A CSV trace; steals csv. format NULL: by the header. */
rg_status rg_row_reader_csv(rg_arena *arena, rg_csv *csv, const char *path, const char *format,
                            rg_row_reader **out, rg_err *err);
/** JSON Lines, one request a line; steals stream. */
rg_status rg_row_reader_jsonl(rg_arena *arena, FILE *stream, const char *path, rg_row_reader **out,
                              rg_err *err);
/** One JSON document: vLLM benchmark result, list of lengths, ShareGPT conversations. */
rg_status rg_row_reader_json(rg_arena *arena, FILE *stream, const char *path, rg_row_reader **out,
                             rg_err *err);
/** "2023-11-16 18:17:03.9799600", also with T, Z or +00:00, to ns since 1970; false when it is not
 * a time. */
bool rg_row_parse_time(const char *text, int64_t *ns);
/** Well-mixed 64-bit value of two. */
uint64_t rg_row_mix(uint64_t a, uint64_t b);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "plan/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

enum { LINE_SIZE = 8192, FIRST_SIZE = 160 };

struct rg_journal {
    int descriptor;
    const char *path;
    unsigned char *has; /* [cells] bit set of finished ones */
};

static const char *part_path(rg_arena *arena, const char *output, int64_t shard, int64_t shards,
                             rg_err *err)
{
    return rg_arena_printf(arena, err, "%s.shard-%lld-of-%lld.part", output, (long long)shard,
                           (long long)shards);
}

/* FNV-1a over index and row: a line cut by a kill, or two that ran into each other, fail it. */
static uint32_t check_of(int64_t index, const char *row)
{
    uint32_t h = 2166136261u ^ (uint32_t)index;
    for (; *row; row++)
        h = (h ^ (unsigned char)*row) * 16777619u;
    return h;
}

/* "INDEX CHECK ROW": the row and its index, or NULL when the line is not whole. */
static const char *parse_line(const char *line, int64_t cells, int64_t *index)
{
    char *end;
    const long long i = strtoll(line, &end, 10);
    if (end == line || *end != ' ' || i < 0 || i >= cells)
        return NULL;
    const char *check_text = end + 1;
    const unsigned long check = strtoul(check_text, &end, 16);
    if (end != check_text + 8 || *end != ' ')
        return NULL;
    *index = i;
    return check_of(i, end + 1) == check ? end + 1 : NULL;
}

static void first_line(char out[FIRST_SIZE], const char *digest)
{
    snprintf(out, FIRST_SIZE, "# ridge sweep 1 %s", digest);
}

/* Next whole line without its line feed; NULL at the end or for a line without one. */
static char *next_line(FILE *stream, char line[LINE_SIZE])
{
    if (!fgets(line, LINE_SIZE, stream))
        return NULL;
    char *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = 0;
    return line;
}

/* Read a journal from its start: calls take for each whole row, *good is where the whole part ends,
 * 0 when not even the first line is whole. */
static rg_status scan(const char *path, FILE *stream, const char *digest, int64_t cells, long *good,
                      rg_status (*take)(void *context, int64_t index, const char *row, rg_err *err),
                      void *context, rg_err *err)
{
    char line[LINE_SIZE], first[FIRST_SIZE];
    *good = 0;
    first_line(first, digest);
    if (!next_line(stream, line))
        return RG_OK;
    if (strcmp(line, first) != 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                       "belongs to another grid, or to other files than those now named; finish "
                       "that one, or remove this file to begin anew");
    *good = ftell(stream);
    while (next_line(stream, line)) {
        int64_t index;
        const char *row = parse_line(line, cells, &index);
        if (!row)
            break;
        RG_TRY(take(context, index, row, err));
        *good = ftell(stream);
    }
    return RG_OK;
}

static rg_status mark(void *context, int64_t index, const char *row, rg_err *err)
{
    (void)row;
    (void)err;
    unsigned char *has = context;
    has[index / 8] |= (unsigned char)(1u << (index % 8));
    return RG_OK;
}

static rg_status io_error(const char *path, const char *what, rg_err *err)
{
    return rg_fail(err, RG_ERR_IO, (rg_pos){.file = path}, "cannot be %s: %s", what,
                   strerror(errno));
}

static rg_status write_all(const rg_journal *journal, const char *text, size_t length, rg_err *err)
{
    for (size_t done = 0; done < length;) {
        const ssize_t n = write(journal->descriptor, text + done, length - done);
        if (n < 0 && errno != EINTR)
            return io_error(journal->path, "written", err);
        done += n > 0 ? (size_t)n : 0;
    }
    return RG_OK;
}

/* Read what is there, cut a broken tail off, begin an empty one. */
static rg_status recover(rg_journal *journal, const char *digest, int64_t cells, rg_err *err)
{
    FILE *stream = fopen(journal->path, "r");
    if (!stream)
        return io_error(journal->path, "read", err);
    long good;
    const rg_status status =
        scan(journal->path, stream, digest, cells, &good, mark, journal->has, err);
    fclose(stream);
    RG_TRY(status);
    if (ftruncate(journal->descriptor, good) != 0)
        return io_error(journal->path, "cut", err);
    if (good > 0)
        return RG_OK;
    char first[FIRST_SIZE], line[FIRST_SIZE + 1];
    first_line(first, digest);
    const int length = snprintf(line, sizeof line, "%s\n", first);
    return write_all(journal, line, (size_t)length, err);
}

rg_status rg_journal_open(rg_arena *arena, const char *output, const char *digest, int64_t cells,
                          int64_t shard, int64_t shards, rg_journal **out, rg_err *err)
{
    rg_journal *journal = RG_NEW(arena, rg_journal, 1, err);
    if (!journal)
        return RG_ERR_LIMIT;
    journal->path = part_path(arena, output, shard, shards, err);
    journal->has = RG_NEW(arena, unsigned char, cells / 8 + 1, err);
    if (!journal->path || !journal->has)
        return RG_ERR_LIMIT;
    journal->descriptor = open(journal->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (journal->descriptor < 0)
        return io_error(journal->path, "written", err);
    rg_status status = RG_OK;
    if (flock(journal->descriptor, LOCK_EX | LOCK_NB) != 0)
        status = rg_fail(err, RG_ERR_INPUT, (rg_pos){.file = journal->path},
                         "is in use by another run of the same shard; wait for it");
    if (status == RG_OK)
        status = recover(journal, digest, cells, err);
    if (status != RG_OK) {
        close(journal->descriptor);
        return status;
    }
    *out = journal;
    return RG_OK;
}

void rg_journal_close(rg_journal *journal)
{
    if (journal->descriptor >= 0)
        close(journal->descriptor);
    journal->descriptor = -1;
}

void rg_journal_drop(rg_journal *journal)
{
    unlink(journal->path);
    rg_journal_close(journal);
}

bool rg_journal_has(const rg_journal *journal, int64_t index)
{
    return journal->has[index / 8] >> (index % 8) & 1;
}

rg_status rg_journal_append(rg_journal *journal, int64_t index, const char *row, rg_err *err)
{
    char line[LINE_SIZE];
    const int length = snprintf(line, sizeof line, "%lld %08x %s\n", (long long)index,
                                (unsigned)check_of(index, row), row);
    if (length < 0 || length >= (int)sizeof line)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "a row of more than %d bytes", LINE_SIZE);
    rg_status status;
#pragma omp critical(rg_journal_write)
    status = write_all(journal, line, (size_t)length, err);
    return status;
}

bool rg_journal_is_done(const char *output, const char *digest)
{
    char line[LINE_SIZE], first[FIRST_SIZE];
    FILE *stream = fopen(output, "r");
    if (!stream)
        return false;
    first_line(first, digest);
    const char *got = next_line(stream, line);
    const bool done = got && strcmp(got, first) == 0;
    fclose(stream);
    return done;
}

/* ---- merge ---- */

typedef struct gathered {
    rg_arena *arena;
    const char **rows; /* [cells] */
    int64_t count;
} gathered;

static rg_status gather(void *context, int64_t index, const char *row, rg_err *err)
{
    gathered *all = context;
    if (all->rows[index])
        return RG_OK;
    all->rows[index] = rg_arena_strdup(all->arena, row, err);
    all->count++;
    return all->rows[index] ? RG_OK : RG_ERR_LIMIT;
}

static rg_status write_output(const char *output, const char *digest, const char *header,
                              const gathered *all, int64_t cells, rg_err *err)
{
    char first[FIRST_SIZE];
    rg_out_file file;
    first_line(first, digest);
    RG_TRY(rg_out_open(&file, output, err));
    fprintf(file.stream, "%s\n%s\n", first, header);
    for (int64_t i = 0; i < cells; i++)
        fprintf(file.stream, "%s\n", all->rows[i]);
    return rg_out_commit(&file, err);
}

rg_status rg_journal_merge(rg_arena *arena, const char *output, const char *digest, int64_t cells,
                           int64_t shards, const char *header, bool *complete, rg_err *err)
{
    gathered all = {arena, RG_NEW(arena, const char *, cells, err), 0};
    *complete = false;
    if (!all.rows)
        return RG_ERR_LIMIT;
    for (int64_t s = 0; s < shards; s++) {
        const char *path = part_path(arena, output, s, shards, err);
        if (!path)
            return RG_ERR_LIMIT;
        FILE *stream = fopen(path, "r");
        if (!stream) /* not begun, or another shard has just merged and removed it */
            continue;
        long good;
        const rg_status status = scan(path, stream, digest, cells, &good, gather, &all, err);
        fclose(stream);
        RG_TRY(status);
    }
    if (all.count < cells) {
        *complete = rg_journal_is_done(output, digest);
        return RG_OK;
    }
    RG_TRY(write_output(output, digest, header, &all, cells, err));
    for (int64_t s = 0; s < shards; s++) {
        const char *path = part_path(arena, output, s, shards, err);
        if (path)
            unlink(path);
    }
    *complete = true;
    return RG_OK;
}

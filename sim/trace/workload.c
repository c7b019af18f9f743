/* trace/workload.c: what both kinds of workload have in common. */
// SPDX-License-Identifier: Apache-2.0
#include "trace/workload.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "trace/workload_reader.h"

enum { RG_WORK_MOST_BYTES = 1 << 30 };

const char *rg_work_group_name(rg_work_group group)
{
    static const char *const names[RG_GROUP_COUNT] = {"all", "tp", "dp", "ep", "dp_ep"};
    return names[group];
}

rg_status rg_work_add(rg_work_reader *r, rg_work_node **out, rg_err *err)
{
    rg_workload *w = r->work;
    if (w->count == r->capacity) {
        if (w->count >= RG_WORK_MOST_NODES)
            return rg_fail(err, RG_ERR_LIMIT, (rg_pos){.file = r->path}, "more than %d nodes",
                           RG_WORK_MOST_NODES);
        const int room = r->capacity == 0 ? 256 : 2 * r->capacity;
        rg_work_node *larger = RG_NEW(r->arena, rg_work_node, room, err);
        if (larger == NULL)
            return RG_ERR_LIMIT;
        if (w->count > 0)
            memcpy(larger, w->nodes, (size_t)w->count * sizeof *larger);
        w->nodes = larger;
        r->capacity = room;
    }
    *out = &w->nodes[w->count++];
    return RG_OK;
}

rg_status rg_work_note(rg_work_reader *r, rg_err *err, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (r->work->note_count == RG_WORK_MOST_NOTES)
        return RG_OK;
    const char *kept = rg_arena_strdup(r->arena, text, err);
    if (kept == NULL)
        return RG_ERR_LIMIT;
    r->work->notes[r->work->note_count++] = kept;
    return RG_OK;
}

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Ids are unique, every dependency is a node, and something is done. */
static rg_status check(rg_work_reader *r, rg_err *err)
{
    const rg_workload *w = r->work;
    const rg_pos file = {.file = r->path};
    uint64_t *ids = RG_NEW(r->arena, uint64_t, w->count, err);
    if (ids == NULL)
        return RG_ERR_LIMIT;
    bool work = false;
    for (int i = 0; i < w->count; i++) {
        ids[i] = w->nodes[i].id;
        work = work || w->nodes[i].kind == RG_WORK_COMM || w->nodes[i].time_s > 0 ||
               w->nodes[i].flops > 0 || w->nodes[i].memory_bytes > 0;
    }
    if (!work)
        return rg_fail(err, RG_ERR_INPUT, file,
                       "%d nodes, and no work in any of them: no communication and no time",
                       w->count);
    qsort(ids, (size_t)w->count, sizeof *ids, by_id);
    for (int i = 1; i < w->count; i++)
        if (ids[i] == ids[i - 1])
            return rg_fail(err, RG_ERR_INPUT, file, "two nodes have the id %" PRIu64, ids[i]);
    for (int i = 0; i < w->count; i++)
        for (int d = 0; d < w->nodes[i].after_count; d++)
            if (bsearch(&w->nodes[i].after[d], ids, (size_t)w->count, sizeof *ids, by_id) == NULL)
                return rg_fail(err, RG_ERR_INPUT, w->nodes[i].pos,
                               "node %" PRIu64 " '%s' depends on node %" PRIu64
                               ", which the file does not have",
                               w->nodes[i].id, w->nodes[i].name, w->nodes[i].after[d]);
    return RG_OK;
}

rg_status rg_workload_parse(rg_arena *arena, const char *path, const char *text, size_t length,
                            rg_workload **out, rg_err *err)
{
    rg_work_reader r = {.arena = arena, .path = path, .text = text, .length = length};
    r.work = RG_NEW(arena, rg_workload, 1, err);
    if (r.work == NULL)
        return RG_ERR_LIMIT;
    r.work->notes = RG_NEW(arena, const char *, RG_WORK_MOST_NOTES, err);
    r.text = rg_arena_copy(arena, text, length, err); /* ends in a 0 */
    if (r.work->notes == NULL || r.text == NULL)
        return RG_ERR_LIMIT;
    if (rg_work_is_simai(r.text))
        RG_TRY(rg_work_read_simai(&r, err));
    else if (rg_work_is_chakra(r.text, length))
        RG_TRY(rg_work_read_chakra(&r, err));
    else
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){path, 1, 1},
                       "no workload: neither a Chakra trace (.et) nor workload text of ASTRA-sim "
                       "or SimAI, which starts with a policy like "
                       "HYBRID_TRANSFORMER_FWD_IN_BCKWD");
    RG_TRY(check(&r, err));
    *out = r.work;
    return RG_OK;
}

rg_status rg_workload_load(rg_arena *arena, const char *path, rg_workload **out, rg_err *err)
{
    char *text;
    size_t length;
    RG_TRY(rg_file_read(arena, path, RG_WORK_MOST_BYTES, &text, &length, err));
    return rg_workload_parse(arena, path, text, length, out, err);
}

/* noc/anynet.c: lines of "router N node N [latency] router N [latency] ...". */
// SPDX-License-Identifier: Apache-2.0
#include "noc/anynet.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

typedef struct any_link {
    int from, to; /* router; to is a node when to_node */
    bool to_node, listed_back;
    int latency;
    rg_pos pos;
} any_link;

typedef struct any_reader {
    rg_arena *arena;
    const char *name, *cursor, *end;
    int line;
    const char *line_start;
    any_link *links;
    size_t count, room;
    int nodes, routers;
} any_reader;

static rg_pos place(const any_reader *r)
{
    return (rg_pos){r->name, r->line, (int)(r->cursor - r->line_start) + 1};
}

static void skip_blanks(any_reader *r)
{
    while (r->cursor < r->end && (*r->cursor == ' ' || *r->cursor == '\t' || *r->cursor == '\r'))
        r->cursor++;
    if (r->cursor < r->end && *r->cursor == '#')
        while (r->cursor < r->end && *r->cursor != '\n')
            r->cursor++;
}

static bool at_line_end(const any_reader *r)
{
    return r->cursor == r->end || *r->cursor == '\n';
}

static int word_length(const any_reader *r)
{
    int n = 0;
    while (r->cursor + n < r->end && strchr(" \t\r\n#", r->cursor[n]) == NULL && n < 40)
        n++;
    return n;
}

static bool take_word(any_reader *r, const char *word)
{
    const int n = word_length(r);
    if ((size_t)n != strlen(word) || strncmp(r->cursor, word, (size_t)n) != 0)
        return false;
    r->cursor += n;
    return true;
}

/* A number, when there is one here. */
static bool take_number(any_reader *r, int most, int *out)
{
    const int n = word_length(r);
    int64_t value = 0;
    for (int i = 0; i < n; i++) {
        if (r->cursor[i] < '0' || r->cursor[i] > '9')
            return false;
        value = value * 10 + (r->cursor[i] - '0');
        if (value > most)
            return false;
    }
    if (n == 0)
        return false;
    r->cursor += n;
    *out = (int)value;
    return true;
}

static rg_status need_number(any_reader *r, const char *what, int most, int *out, rg_err *err)
{
    skip_blanks(r);
    if (take_number(r, most, out))
        return RG_OK;
    return rg_fail(err, RG_ERR_INPUT, place(r), "'%.*s' is no %s; write a number from 0 to %d",
                   word_length(r), r->cursor, what, most);
}

static rg_status add_link(any_reader *r, any_link link, rg_err *err)
{
    if (r->count == r->room) {
        const size_t room = r->room > 0 ? 2 * r->room : 64;
        any_link *grown = RG_NEW(r->arena, any_link, room, err);
        if (grown == NULL)
            return RG_ERR_LIMIT;
        if (r->count > 0)
            memcpy(grown, r->links, r->count * sizeof *grown);
        r->links = grown;
        r->room = room;
    }
    r->links[r->count++] = link;
    return RG_OK;
}

/* "node N [latency]" or "router N [latency]" from a router's line. */
static rg_status read_link(any_reader *r, int from, rg_err *err)
{
    any_link link = {.from = from, .latency = 1, .pos = place(r)};
    if (take_word(r, "node"))
        link.to_node = true;
    else if (!take_word(r, "router"))
        return rg_fail(err, RG_ERR_INPUT, place(r),
                       "'%.*s' is not understood; 'node N' or 'router N' would do", word_length(r),
                       r->cursor);
    RG_TRY(need_number(r, link.to_node ? "node number" : "router number", RG_NOC_MAX_NODES - 1,
                       &link.to, err));
    int *highest = link.to_node ? &r->nodes : &r->routers;
    *highest = link.to + 1 > *highest ? link.to + 1 : *highest;
    if (!link.to_node && link.to == from)
        return rg_fail(err, RG_ERR_INPUT, link.pos, "router '%d' is linked with itself", from);
    skip_blanks(r);
    const rg_pos pos = place(r);
    if (take_number(r, RG_NOC_MAX_LATENCY, &link.latency) && link.latency < 1)
        return rg_fail(err, RG_ERR_INPUT, pos, "latency '0' is below one cycle");
    return add_link(r, link, err);
}

static rg_status read_line(any_reader *r, rg_err *err)
{
    int router;
    if (!take_word(r, "router"))
        return rg_fail(err, RG_ERR_INPUT, place(r),
                       "'%.*s' does not start a router; write 'router N node N router N ...'",
                       word_length(r), r->cursor);
    RG_TRY(need_number(r, "router number", RG_NOC_MAX_NODES - 1, &router, err));
    r->routers = router + 1 > r->routers ? router + 1 : r->routers;
    for (skip_blanks(r); !at_line_end(r); skip_blanks(r))
        RG_TRY(read_link(r, router, err));
    return RG_OK;
}

static int by_ends(const void *left, const void *right)
{
    const any_link *a = left, *b = right;
    if (a->to_node != b->to_node)
        return a->to_node ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return (a->to > b->to) - (a->to < b->to);
}

static rg_status refuse_doubles(const any_reader *r, rg_err *err)
{
    for (size_t i = 1; i < r->count; i++) {
        const any_link *a = &r->links[i - 1], *b = &r->links[i];
        if (a->from == b->from && a->to == b->to && a->to_node == b->to_node)
            return rg_fail(err, RG_ERR_INPUT, b->pos.line > a->pos.line ? b->pos : a->pos,
                           "router '%d' and %s '%d' are linked twice", b->from,
                           b->to_node ? "node" : "router", b->to);
    }
    return RG_OK;
}

static rg_noc_channel channel_of(const any_link *link, bool back)
{
    const int far = link->to_node ? -1 : link->to;
    return (rg_noc_channel){.from_router = back ? far : link->from,
                            .to_router = back ? link->from : far,
                            .node = link->to_node ? link->to : -1,
                            .latency = link->latency,
                            .credit_latency = link->latency,
                            .period = 1};
}

/* Ports go by nodes first, then routers, each by number. */
static rg_status add_channels(any_reader *r, rg_noc_builder *builder, const any_link *link,
                              rg_err *err)
{
    if (link->to_node) {
        RG_TRY(rg_noc_builder_add(builder, channel_of(link, false), link->to, 0, err));
        return rg_noc_builder_add(builder, channel_of(link, true), 0, link->to, err);
    }
    const any_link wanted = {.from = link->to, .to = link->from};
    const bool back_listed =
        bsearch(&wanted, r->links, r->count, sizeof *r->links, by_ends) != NULL;
    const int key = r->nodes;
    RG_TRY(rg_noc_builder_add(builder, channel_of(link, false), key + link->to, key + link->from,
                              err));
    return back_listed ? RG_OK
                       : rg_noc_builder_add(builder, channel_of(link, true), key + link->from,
                                            key + link->to, err);
}

rg_status rg_noc_anynet_parse(rg_arena *arena, const char *name, const char *text, size_t length,
                              rg_noc_graph **out, rg_err *err)
{
    any_reader r = {.arena = arena,
                    .name = name,
                    .cursor = text,
                    .end = text + length,
                    .line = 1,
                    .line_start = text};
    while (r.cursor < r.end) {
        skip_blanks(&r);
        if (!at_line_end(&r))
            RG_TRY(read_line(&r, err));
        if (r.cursor < r.end) {
            r.cursor++;
            r.line++;
            r.line_start = r.cursor;
        }
    }
    if (r.count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){name, 1, 1}, "holds no router");
    qsort(r.links, r.count, sizeof *r.links, by_ends);
    RG_TRY(refuse_doubles(&r, err));
    rg_noc_builder *builder = rg_noc_builder_new(arena, r.nodes, r.routers, err);
    if (builder == NULL)
        return err != NULL ? err->status : RG_ERR_LIMIT;
    for (size_t i = 0; i < r.count; i++)
        RG_TRY(add_channels(&r, builder, &r.links[i], err));
    return rg_noc_builder_finish(builder, out, err);
}

rg_status rg_noc_anynet_load(rg_arena *arena, const char *path, rg_noc_graph **out, rg_err *err)
{
    char *text;
    size_t length;
    RG_TRY(rg_file_read(arena, path, 64u << 20, &text, &length, err));
    return rg_noc_anynet_parse(arena, path, text, length, out, err);
}

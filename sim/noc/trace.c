/* noc/trace.c: readers of trace files. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/file.h"
#include "core/text.h"
#include "noc/route.h"

enum { MAX_MESSAGES = 100000000 };
static const size_t max_file = (size_t)2 << 30;

int rg_noc_slice_of(uint64_t address, int line_bytes, int slices)
{
    uint64_t h = address / (uint64_t)line_bytes;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    h ^= h >> 33;
    return (int)(((h >> 32) * (uint64_t)slices) >> 32);
}

/* Cycles on the links of the first way from core to slice. */
static int path_latency(const rg_noc_ways *ways, const rg_noc_graph *g, int core, int slice)
{
    rg_noc_way list[RG_NOC_MAX_WAYS];
    int latency = 0, r = g->in_router[g->node_input[core]];
    for (int hops = 0; r >= 0 && hops <= g->routers; hops++) {
        rg_noc_ways_at(ways, r, slice, list);
        latency += 1 + g->out_channel[list[0].output].latency;
        r = g->out_channel[list[0].output].to_router;
    }
    return latency;
}

rg_status rg_noc_mapping_near(rg_arena *arena, rg_noc_mapping *map, rg_err *err)
{
    const rg_noc_graph *g = map->design->graph;
    const size_t cores = (size_t)map->cores->count, slices = (size_t)map->slices->count;
    rg_noc_ways ways;
    RG_TRY(rg_noc_ways_new(arena, g, map->design->router.routing, &ways, err));
    map->near_first = RG_NEW(arena, int, cores + 1, err);
    map->near_slice = RG_NEW(arena, int, cores *slices, err);
    int *latency = RG_NEW(arena, int, slices, err);
    if (map->near_first == NULL || map->near_slice == NULL || latency == NULL)
        return RG_ERR_LIMIT;
    int count = 0;
    for (int c = 0; c < map->cores->count; c++) {
        int best = INT32_MAX;
        for (int s = 0; s < map->slices->count; s++) {
            latency[s] = path_latency(&ways, g, map->cores->first + c, map->slices->first + s);
            best = latency[s] < best ? latency[s] : best;
        }
        for (int s = 0; s < map->slices->count; s++)
            if (latency[s] == best)
                map->near_slice[count++] = map->slices->first + s;
        map->near_first[c + 1] = count;
    }
    map->near = true;
    return RG_OK;
}

int rg_noc_mapping_slice(const rg_noc_mapping *map, int core, uint64_t address)
{
    if (!map->near)
        return map->slices->first + rg_noc_slice_of(address, map->line_bytes, map->slices->count);
    const int first = map->near_first[core], count = map->near_first[core + 1] - first;
    return map->near_slice[first + rg_noc_slice_of(address, map->line_bytes, count)];
}

int32_t rg_noc_flits(double bytes, double flit_bytes)
{
    const double flits = ceil(bytes / flit_bytes);
    return flits < 1.0 ? 1 : flits < 2147483647.0 ? (int32_t)flits : INT32_MAX;
}

static void *grow(rg_noc_trace_builder *b, void *list, int64_t count, int64_t *room, size_t size)
{
    if (count < *room)
        return list;
    const int64_t wanted = *room > 0 ? 2 * *room : 1024;
    if (count >= MAX_MESSAGES) {
        rg_fail(b->err, RG_ERR_LIMIT, RG_NOWHERE, "more than %d messages", MAX_MESSAGES);
        return NULL;
    }
    void *grown = rg_arena_alloc(b->arena, (size_t)wanted, size, b->err);
    if (grown != NULL && count > 0)
        memcpy(grown, list, (size_t)count * size);
    *room = wanted;
    return grown;
}

rg_status rg_noc_trace_add(rg_noc_trace_builder *b, rg_noc_send send)
{
    rg_noc_trace *t = b->trace;
    rg_noc_send *list = grow(b, t->sends, t->send_count, &b->send_room, sizeof *list);
    if (list == NULL)
        return RG_ERR_LIMIT;
    t->sends = list;
    t->sends[t->send_count++] = send;
    return RG_OK;
}

rg_status rg_noc_trace_order(rg_noc_trace_builder *b, rg_noc_order order)
{
    rg_noc_trace *t = b->trace;
    rg_noc_order *list = grow(b, t->orders, t->order_count, &b->order_room, sizeof *list);
    if (list == NULL)
        return RG_ERR_LIMIT;
    t->orders = list;
    t->orders[t->order_count++] = order;
    return RG_OK;
}

/* CSV */

typedef struct csv_reader {
    rg_noc_trace_builder build;
    const rg_noc_mapping *map;
    rg_csv *csv;
    int cycle, source, destination, bytes, class_index, id, after, delay; /* columns, -1: absent */
    const char **ids, **waits; /* [room] of each message; NULL: none */
    uint32_t *delays;
    rg_pos *places;
    int64_t room;
} csv_reader;

static rg_status read_node(const csv_reader *r, int column, int32_t *out, rg_err *err)
{
    const char *text = rg_csv_text(r->csv, column);
    const char *colon = strchr(text, ':');
    const rg_noc_group *group = &r->map->design->groups[0];
    int64_t index;
    if (colon != NULL) {
        char name[64];
        if (colon - text >= (long)sizeof name)
            return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(r->csv, column),
                           "'%.60s' is no node; write a number or group:index", text);
        memcpy(name, text, (size_t)(colon - text));
        name[colon - text] = 0;
        if (rg_noc_design_group(r->map->design, name, &group, err) != RG_OK)
            return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(r->csv, column),
                           "node '%.60s' is of a group that the network has not", text);
    }
    if (!rg_text_to_int(colon != NULL ? colon + 1 : text, &index) || index < 0 ||
        index >= group->count)
        return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(r->csv, column),
                       "node '%.60s' is not in the network; %s has 0 to %d", text, group->name,
                       group->count - 1);
    *out = (int32_t)(group->first + index);
    return RG_OK;
}

static rg_status read_whole(const csv_reader *r, int column, int64_t most, int64_t *out,
                            rg_err *err)
{
    if (!rg_text_to_int(rg_csv_text(r->csv, column), out) || *out < 0 || *out > most)
        return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(r->csv, column),
                       "%s '%.60s' is not a whole number from 0 to %lld",
                       rg_csv_name(r->csv, column), rg_csv_text(r->csv, column), (long long)most);
    return RG_OK;
}

static rg_status grow_rows(csv_reader *r, int64_t count, rg_err *err)
{
    if (count < r->room)
        return RG_OK;
    const int64_t room = r->room > 0 ? 2 * r->room : 1024;
    rg_arena *arena = r->build.arena;
    const char **ids = RG_NEW(arena, const char *, room, err);
    const char **waits = RG_NEW(arena, const char *, room, err);
    uint32_t *delays = RG_NEW(arena, uint32_t, room, err);
    rg_pos *places = RG_NEW(arena, rg_pos, room, err);
    if (ids == NULL || waits == NULL || delays == NULL || places == NULL)
        return RG_ERR_LIMIT;
    if (count > 0) {
        memcpy(ids, r->ids, (size_t)count * sizeof *ids);
        memcpy(waits, r->waits, (size_t)count * sizeof *waits);
        memcpy(delays, r->delays, (size_t)count * sizeof *delays);
        memcpy(places, r->places, (size_t)count * sizeof *places);
    }
    r->ids = ids;
    r->waits = waits;
    r->delays = delays;
    r->places = places;
    r->room = room;
    return RG_OK;
}

static rg_status read_csv_row(csv_reader *r, rg_err *err)
{
    rg_noc_trace *t = r->build.trace;
    const int64_t i = t->send_count;
    rg_noc_send send = {0};
    int64_t cycle, bytes, class_index = 0, delay = 0;
    RG_TRY(read_whole(r, r->cycle, INT64_C(1) << 62, &cycle, err));
    RG_TRY(read_node(r, r->source, &send.source, err));
    RG_TRY(read_node(r, r->destination, &send.destination, err));
    RG_TRY(read_whole(r, r->bytes, INT64_C(1) << 40, &bytes, err));
    if (r->class_index >= 0 && rg_csv_text(r->csv, r->class_index)[0] != 0)
        RG_TRY(read_whole(r, r->class_index, RG_NOC_MAX_CLASSES - 1, &class_index, err));
    if (r->delay >= 0 && rg_csv_text(r->csv, r->delay)[0] != 0)
        RG_TRY(read_whole(r, r->delay, UINT32_MAX, &delay, err));
    send.cycle = (uint64_t)cycle;
    send.flits = rg_noc_flits((double)bytes, r->map->flit_bytes);
    send.class_index = (int32_t)class_index;
    if (class_index >= t->class_count)
        t->class_count = (int)class_index + 1;
    t->bytes += (double)bytes;
    RG_TRY(grow_rows(r, i, err));
    r->ids[i] = r->id >= 0 ? rg_arena_strdup(r->build.arena, rg_csv_text(r->csv, r->id), err)
                           : rg_arena_printf(r->build.arena, err, "%lld", (long long)i);
    if (r->ids[i] == NULL)
        return RG_ERR_LIMIT;
    r->waits[i] = NULL;
    if (r->after >= 0 && rg_csv_text(r->csv, r->after)[0] != 0) {
        r->waits[i] = rg_arena_strdup(r->build.arena, rg_csv_text(r->csv, r->after), err);
        if (r->waits[i] == NULL)
            return RG_ERR_LIMIT;
    }
    r->delays[i] = (uint32_t)delay;
    r->places[i] = rg_csv_pos(r->csv, r->after >= 0 ? r->after : 0);
    return rg_noc_trace_add(&r->build, send);
}

typedef struct named {
    const char *id;
    int32_t index;
} named;

static int by_id(const void *left, const void *right)
{
    return strcmp(((const named *)left)->id, ((const named *)right)->id);
}

static rg_status link_row(csv_reader *r, const named *table, int64_t i, rg_err *err)
{
    const size_t count = (size_t)r->build.trace->send_count;
    char *list = rg_arena_strdup(r->build.arena, r->waits[i], err), *save = NULL;
    if (list == NULL)
        return RG_ERR_LIMIT;
    for (char *id = strtok_r(list, "; ", &save); id != NULL; id = strtok_r(NULL, "; ", &save)) {
        const named wanted = {.id = id};
        const named *found = bsearch(&wanted, table, count, sizeof *table, by_id);
        if (found == NULL)
            return rg_fail(err, RG_ERR_INPUT, r->places[i],
                           "after '%.60s' names no message of this trace", id);
        const rg_noc_order order = {
            .before = found->index, .after = (int32_t)i, .delay = r->delays[i]};
        RG_TRY(rg_noc_trace_order(&r->build, order));
    }
    return RG_OK;
}

static rg_status link_rows(csv_reader *r, rg_err *err)
{
    const int64_t count = r->build.trace->send_count;
    named *table = RG_NEW(r->build.arena, named, count, err);
    if (table == NULL)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < count; i++)
        table[i] = (named){r->ids[i], (int32_t)i};
    qsort(table, (size_t)count, sizeof *table, by_id);
    for (int64_t i = 1; i < count && r->id >= 0; i++)
        if (strcmp(table[i - 1].id, table[i].id) == 0)
            return rg_fail(err, RG_ERR_INPUT, r->places[table[i].index],
                           "id '%.60s' is given twice", table[i].id);
    for (int64_t i = 0; i < count; i++)
        if (r->waits[i] != NULL)
            RG_TRY(link_row(r, table, i, err));
    return RG_OK;
}

static rg_status read_csv(rg_arena *arena, const char *name, const char *text, size_t length,
                          const rg_noc_mapping *map, rg_noc_trace *out, rg_err *err)
{
    csv_reader r = {.build = {.arena = arena, .trace = out, .err = err}, .map = map};
    bool more;
    out->kind = "csv";
    RG_TRY(rg_csv_open_text(arena, name, text, length, &r.csv, err));
    RG_TRY(rg_csv_column(r.csv, "cycle", &r.cycle, err));
    RG_TRY(rg_csv_column(r.csv, "src", &r.source, err));
    RG_TRY(rg_csv_column(r.csv, "dst", &r.destination, err));
    RG_TRY(rg_csv_column(r.csv, "bytes", &r.bytes, err));
    r.class_index = rg_csv_find(r.csv, "class");
    r.id = rg_csv_find(r.csv, "id");
    r.after = rg_csv_find(r.csv, "after");
    r.delay = rg_csv_find(r.csv, "delay");
    RG_TRY(rg_csv_next(r.csv, &more, err));
    while (more) {
        RG_TRY(read_csv_row(&r, err));
        RG_TRY(rg_csv_next(r.csv, &more, err));
    }
    out->payload_bytes = out->bytes;
    rg_csv_close(r.csv);
    return link_rows(&r, err);
}

/* netrace */

static uint64_t little_endian(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static const unsigned char netrace_magic[4] = {0x55, 0x54, 0x4a, 0x48};

enum { NETRACE_HEADER = 72, NETRACE_REGION = 24, NETRACE_PACKET = 21 };

/* Bytes of a packet type; 0 for types that no trace holds. */
static int netrace_bytes(int type)
{
    static const unsigned char size[31] = {
        [1] = 8,  [2] = 72,  [3] = 72, [4] = 72, [5] = 8,  [6] = 72, [13] = 8, [14] = 8,
        [15] = 8, [16] = 72, [25] = 8, [27] = 8, [28] = 8, [29] = 8, [30] = 72};
    return type >= 0 && type < 31 ? size[type] : 0;
}

typedef struct netrace_id {
    uint32_t id;
    int32_t index;
} netrace_id;

static int by_number(const void *left, const void *right)
{
    const uint32_t a = ((const netrace_id *)left)->id, b = ((const netrace_id *)right)->id;
    return (a > b) - (a < b);
}

static rg_status netrace_fault(const char *name, size_t at, const char *what, rg_err *err)
{
    return rg_fail(err, RG_ERR_INPUT, (rg_pos){name, 0, 0}, "byte %zu: %s", at, what);
}

static rg_status read_netrace(rg_arena *arena, const char *name, const unsigned char *data,
                              size_t length, const rg_noc_mapping *map, rg_noc_trace *out,
                              rg_err *err)
{
    rg_noc_trace_builder build = {.arena = arena, .trace = out, .err = err};
    out->kind = "netrace";
    if (length < NETRACE_HEADER)
        return netrace_fault(name, length, "the netrace header is cut short", err);
    if (little_endian(data + 4, 4) != 0x3f800000)
        return netrace_fault(name, 4, "the netrace version is not 1.0", err);
    const uint64_t notes = little_endian(data + 56, 4), regions = little_endian(data + 60, 4);
    size_t at = NETRACE_HEADER + (notes < 8192 ? notes : 0) + regions * NETRACE_REGION;
    if (notes >= 8192 || regions > 100 || at > length)
        return netrace_fault(name, 56, "notes or regions of the netrace header are out of range",
                             err);
    const size_t first = at;
    const int nodes = map->design->graph->nodes;
    while (at < length) {
        if (length - at < NETRACE_PACKET)
            return netrace_fault(name, at, "a netrace packet is cut short", err);
        const unsigned char *p = data + at;
        const int bytes = netrace_bytes(p[16]);
        if (bytes == 0)
            return netrace_fault(name, at + 16, "a netrace packet has no valid type", err);
        if (p[17] >= nodes || p[18] >= nodes)
            return rg_fail(err, RG_ERR_INPUT, (rg_pos){name, 0, 0},
                           "byte %zu: a packet goes from node %d to %d; the network has %d",
                           at + 17, p[17], p[18], nodes);
        const size_t next = at + NETRACE_PACKET + 4u * p[20];
        if (next > length)
            return netrace_fault(name, at + 20, "a netrace packet's dependants are cut short", err);
        out->bytes += bytes;
        RG_TRY(
            rg_noc_trace_add(&build, (rg_noc_send){.cycle = little_endian(p, 8),
                                                   .source = p[17],
                                                   .destination = p[18],
                                                   .flits = rg_noc_flits(bytes, map->flit_bytes)}));
        at = next;
    }
    out->payload_bytes = out->bytes;
    netrace_id *ids = RG_NEW(arena, netrace_id, out->send_count, err);
    if (ids == NULL)
        return RG_ERR_LIMIT;
    at = first;
    for (int64_t i = 0; i < out->send_count; i++) {
        ids[i] = (netrace_id){(uint32_t)little_endian(data + at + 8, 4), (int32_t)i};
        at += NETRACE_PACKET + 4u * data[at + 20];
    }
    qsort(ids, (size_t)out->send_count, sizeof *ids, by_number);
    at = first;
    for (int64_t i = 0; i < out->send_count; i++) {
        const int dependants = data[at + 20];
        for (int d = 0; d < dependants; d++) {
            const netrace_id wanted = {
                (uint32_t)little_endian(data + at + NETRACE_PACKET + 4 * d, 4), 0};
            const netrace_id *found =
                bsearch(&wanted, ids, (size_t)out->send_count, sizeof *ids, by_number);
            if (found == NULL)
                continue; /* beyond the end of a cut trace */
            RG_TRY(rg_noc_trace_order(
                &build, (rg_noc_order){.before = (int32_t)i, .after = found->index, .delay = 0}));
        }
        at += NETRACE_PACKET + 4u * (size_t)dependants;
    }
    return RG_OK;
}

/* SCALE-Sim */

static rg_status add_read(rg_noc_trace_builder *b, const rg_noc_mapping *map, uint64_t cycle,
                          int core, uint64_t address)
{
    const int slice = rg_noc_mapping_slice(map, core, address);
    const double header = map->design->header_bytes, reply = map->line_bytes + header;
    const int64_t request = b->trace->send_count;
    b->trace->bytes += header + reply;
    b->trace->payload_bytes += map->line_bytes;
    RG_TRY(rg_noc_trace_add(b, (rg_noc_send){.cycle = cycle,
                                             .source = map->cores->first + core,
                                             .destination = slice,
                                             .flits = rg_noc_flits(header, map->flit_bytes),
                                             .class_index = 0}));
    RG_TRY(rg_noc_trace_add(b, (rg_noc_send){.cycle = 0,
                                             .source = slice,
                                             .destination = map->cores->first + core,
                                             .flits = rg_noc_flits(reply, map->flit_bytes),
                                             .class_index = 1}));
    return rg_noc_trace_order(b, (rg_noc_order){.before = (int32_t)request,
                                                .after = (int32_t)request + 1,
                                                .delay = (uint32_t)map->slice_delay});
}

static rg_status read_scale_sim(rg_arena *arena, const char *name, const char *text, size_t length,
                                const rg_noc_mapping *map, rg_noc_trace *out, rg_err *err)
{
    rg_noc_trace_builder build = {.arena = arena, .trace = out, .err = err};
    const char *cursor = text, *end = text + length;
    out->kind = "scale-sim";
    out->class_count = 2;
    for (int line = 1; cursor < end; line++) {
        const char *stop = memchr(cursor, '\n', (size_t)(end - cursor));
        const char *line_start = cursor;
        double cycle = -1.0;
        stop = stop != NULL ? stop : end;
        for (int column = 0; cursor < stop; column++) {
            char word[64];
            const char *comma = memchr(cursor, ',', (size_t)(stop - cursor));
            const char *word_end = comma != NULL ? comma : stop;
            const char *from = cursor, *to = word_end;
            while (from < to && (*from == ' ' || *from == '\t'))
                from++;
            while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
                to--;
            cursor = comma != NULL ? comma + 1 : stop;
            if (from == to)
                continue;
            double value;
            const size_t n =
                (size_t)(to - from) < sizeof word - 1 ? (size_t)(to - from) : sizeof word - 1;
            memcpy(word, from, n);
            word[n] = 0;
            if (!rg_text_to_real(word, &value) || value > 9e15 || (column == 0 && value < 0.0))
                return rg_fail(
                    err, RG_ERR_INPUT, (rg_pos){name, line, (int)(from - line_start) + 1},
                    "'%s' is no %s of a SCALE-Sim trace", word, column == 0 ? "cycle" : "address");
            if (column == 0)
                cycle = value;
            else if (value >= 0.0) /* -1 stands for an idle port */
                RG_TRY(add_read(&build, map, (uint64_t)cycle, (column - 1) % map->cores->count,
                                (uint64_t)value));
        }
        cursor = stop < end ? stop + 1 : end;
    }
    return RG_OK;
}

rg_status rg_noc_trace_parse(rg_arena *arena, const char *name, const char *text, size_t length,
                             const rg_noc_mapping *map, rg_noc_trace *out, rg_err *err)
{
    *out = (rg_noc_trace){.class_count = 1};
    if (length >= 4 && memcmp(text, netrace_magic, 4) == 0)
        RG_TRY(read_netrace(arena, name, (const unsigned char *)text, length, map, out, err));
    else if (length >= 3 && memcmp(text, "BZh", 3) == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){name, 0, 0},
                       "is packed with bzip2; unpack it first: bunzip2 FILE");
    else if (length > 0 && ((text[0] >= '0' && text[0] <= '9') || text[0] == ' '))
        RG_TRY(read_scale_sim(arena, name, text, length, map, out, err));
    else
        RG_TRY(read_csv(arena, name, text, length, map, out, err));
    if (out->send_count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){name, 0, 0}, "holds no message");
    return RG_OK;
}

rg_status rg_noc_trace_load(rg_arena *arena, const char *path, const rg_noc_mapping *map,
                            rg_noc_trace *out, rg_err *err)
{
    char *text;
    size_t length;
    RG_TRY(rg_file_read(arena, path, max_file, &text, &length, err));
    return rg_noc_trace_parse(arena, path, text, length, map, out, err);
}

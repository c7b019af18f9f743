/* trace/workload_chakra.c: Chakra execution traces.
 *
 * A file is a chain of protobuf messages, each behind its length: one GlobalMetadata, then Nodes
 * (MLCommons Chakra, et_def.proto, versions 0.0.4 and 1.x). Attributes have changed their integer
 * type between releases, so any of them is read. comm_size is counted as ASTRA-sim counts it: what
 * one rank brings, which for an all-gather is its own part.
 */
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "trace/workload_reader.h"

/* ---- protobuf's wire format ---- */

typedef struct bytes {
    const unsigned char *at, *end;
} bytes;

typedef struct field {
    uint32_t number;
    int wire;       /* 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes */
    uint64_t value; /* of wires 0, 1, 5 */
    bytes inner;    /* of wire 2 */
} field;

static bool take_varint(bytes *b, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 70 && b->at < b->end; shift += 7) {
        const unsigned char byte = *b->at++;
        if (shift < 64)
            *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool take_fixed(bytes *b, int width, uint64_t *out)
{
    if (b->end - b->at < width)
        return false;
    *out = 0;
    for (int i = 0; i < width; i++)
        *out |= (uint64_t)b->at[i] << (8 * i);
    b->at += width;
    return true;
}

static bool take_bytes(bytes *b, bytes *out)
{
    uint64_t length;
    if (!take_varint(b, &length) || length > (uint64_t)(b->end - b->at))
        return false;
    *out = (bytes){b->at, b->at + length};
    b->at += length;
    return true;
}

/* The next field of a message; false when the message is broken there. */
static bool take_field(bytes *b, field *out)
{
    uint64_t key;
    if (!take_varint(b, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return false;
    *out = (field){.number = (uint32_t)(key >> 3), .wire = (int)(key & 7)};
    switch (out->wire) {
    case 0:
        return take_varint(b, &out->value);
    case 1:
        return take_fixed(b, 8, &out->value);
    case 2:
        return take_bytes(b, &out->inner);
    case 5:
        return take_fixed(b, 4, &out->value);
    default:
        return false;
    }
}

/* ---- nodes ---- */

enum {
    NODE_ID = 1,
    NODE_NAME = 2,
    NODE_TYPE = 3,
    NODE_CTRL_DEPS = 4,
    NODE_DATA_DEPS = 5,
    NODE_DURATION = 7, /* microseconds */
    NODE_ATTR = 10,
};
enum { TYPE_METADATA = 1, TYPE_LOAD, TYPE_STORE, TYPE_COMPUTE, TYPE_SEND, TYPE_RECV, TYPE_COLL };
enum { MOST_DEPENDENCIES = 1 << 20 };

/* Attributes that are read; NaN where a node does not have them. */
typedef struct attributes {
    double on_host, comm_type, comm_size, ops, tensor_size, dims_out;
    bool named_group;
} attributes;

static double zigzag(uint64_t value)
{
    return (double)(int64_t)((value >> 1) ^ (0 - (value & 1)));
}

static double real_of(uint64_t bits, int width)
{
    double wide;
    float narrow;
    const uint32_t low = (uint32_t)bits;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    return width == 8 ? wide : narrow;
}

/* Value of an attribute, whichever of the number types it was written in; NaN for others. */
static double number_of(const field *f)
{
    switch (f->number) {
    case 3:
        return real_of(f->value, 8); /* double */
    case 5:
        return real_of(f->value, 4); /* float */
    case 7:
        return (double)(int32_t)f->value;
    case 9:
        return (double)(int64_t)f->value;
    case 15:
    case 17:
        return zigzag(f->value); /* sint32, sint64 */
    case 23:
        return (double)(int32_t)f->value; /* sfixed32 */
    case 25:
        return (double)(int64_t)f->value; /* sfixed64 */
    case 11:
    case 13: /* uint32, uint64 */
    case 19:
    case 21: /* fixed32, fixed64 */
    case 27: /* bool */
        return (double)f->value;
    default:
        return NAN;
    }
}

/* A list of booleans: how many of them are false. */
static double false_of(bytes list)
{
    int n = 0;
    field f;
    while (list.at < list.end && take_field(&list, &f)) {
        if (f.number != 1)
            continue;
        if (f.wire == 0)
            n += f.value == 0;
        for (uint64_t value; f.wire == 2 && f.inner.at < f.inner.end;) {
            if (!take_varint(&f.inner, &value))
                break;
            n += value == 0;
        }
    }
    return n;
}

static bool same(bytes text, const char *word)
{
    return (size_t)(text.end - text.at) == strlen(word) && memcmp(text.at, word, strlen(word)) == 0;
}

static bool read_attribute(bytes message, attributes *out)
{
    static const struct {
        const char *name;
        size_t offset;
    } known[] = {
        {"is_cpu_op", offsetof(attributes, on_host)},
        {"comm_type", offsetof(attributes, comm_type)},
        {"comm_size", offsetof(attributes, comm_size)},
        {"num_ops", offsetof(attributes, ops)},
        {"tensor_size", offsetof(attributes, tensor_size)},
    };
    bytes name = {0};
    double value = NAN, missing = NAN;
    bool text = false;
    for (field f; message.at < message.end;) {
        if (!take_field(&message, &f))
            return false;
        if (f.number == 1 && f.wire == 2)
            name = f.inner;
        else if (f.number == 28 && f.wire == 2)
            missing = false_of(f.inner);
        else if (f.number == 29 && f.wire == 2)
            text = f.inner.end > f.inner.at;
        else if (f.wire != 2 && f.number >= 3)
            value = number_of(&f);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (same(name, known[i].name))
            *(double *)((char *)out + known[i].offset) = value;
    if (same(name, "involved_dim"))
        out->dims_out = missing;
    if (same(name, "pg_name") || same(name, "comm_group"))
        out->named_group = text || isfinite(value);
    return true;
}

typedef struct counts {
    int memory, other, empty, groups, barriers, receives;
} counts;

typedef struct raw_node {
    uint64_t id, type, duration_us;
    bytes name;
    attributes has;
} raw_node;

static rg_status broken(const rg_work_reader *r, const unsigned char *at, const char *what,
                        rg_err *err)
{
    return rg_fail(err, RG_ERR_INPUT, (rg_pos){.file = r->path},
                   "%s at byte %zu: the trace is cut or damaged", what,
                   (size_t)(at - (const unsigned char *)r->text));
}

static rg_status add_dependency(rg_work_reader *r, rg_work_node *node, uint64_t **list, int *room,
                                uint64_t id, rg_err *err)
{
    if (node->after_count == *room) {
        if (*room >= MOST_DEPENDENCIES)
            return rg_fail(err, RG_ERR_LIMIT, (rg_pos){.file = r->path},
                           "a node with more than %d dependencies", MOST_DEPENDENCIES);
        const int more = *room == 0 ? 4 : 2 * *room;
        uint64_t *larger = RG_NEW(r->arena, uint64_t, more, err);
        if (larger == NULL)
            return RG_ERR_LIMIT;
        if (*room > 0)
            memcpy(larger, *list, (size_t)*room * sizeof *larger);
        *list = larger;
        *room = more;
    }
    (*list)[node->after_count++] = id;
    node->after = *list;
    return RG_OK;
}

static rg_status read_fields(rg_work_reader *r, bytes message, raw_node *raw, rg_work_node *node,
                             rg_err *err)
{
    uint64_t *list = NULL;
    int room = 0;
    for (field f; message.at < message.end;) {
        const unsigned char *at = message.at;
        if (!take_field(&message, &f))
            return broken(r, at, "no field of a node", err);
        if (f.number == NODE_ID && f.wire == 0)
            raw->id = f.value;
        else if (f.number == NODE_NAME && f.wire == 2)
            raw->name = f.inner;
        else if (f.number == NODE_TYPE && f.wire == 0)
            raw->type = f.value;
        else if (f.number == NODE_DURATION && f.wire == 0)
            raw->duration_us = f.value;
        else if (f.number == NODE_ATTR && f.wire == 2) {
            if (!read_attribute(f.inner, &raw->has))
                return broken(r, at, "no attribute", err);
        } else if (f.number == NODE_CTRL_DEPS || f.number == NODE_DATA_DEPS) {
            if (f.wire == 0)
                RG_TRY(add_dependency(r, node, &list, &room, f.value, err));
            for (uint64_t id; f.wire == 2 && f.inner.at < f.inner.end;) {
                if (!take_varint(&f.inner, &id))
                    return broken(r, at, "no list of dependencies", err);
                RG_TRY(add_dependency(r, node, &list, &room, id, err));
            }
        }
    }
    return RG_OK;
}

static rg_status set_communication(const raw_node *raw, rg_work_node *node, counts *n, rg_err *err)
{
    /* CollectiveCommType of et_def.proto; without op: ridge has no such operation */
    static const struct {
        const char *name, *op;
    } types[] = {{"ALL_REDUCE", "all_reduce"},
                 {"REDUCE", "reduce"},
                 {"ALL_GATHER", "all_gather"},
                 {"GATHER", NULL},
                 {"SCATTER", NULL},
                 {"BROADCAST", "broadcast"},
                 {"ALL_TO_ALL", "all_to_all"},
                 {"REDUCE_SCATTER", "reduce_scatter"},
                 {"REDUCE_SCATTER_BLOCK", "reduce_scatter"},
                 {"BARRIER", "all_reduce"}};
    enum { GATHER_ALL = 2, BARRIER = 9, KNOWN = sizeof types / sizeof *types };
    node->kind = RG_WORK_COMM;
    if (raw->type == TYPE_COLL) {
        const double type = raw->has.comm_type;
        if (!isfinite(type))
            return rg_fail(err, RG_ERR_INPUT, node->pos,
                           "node %" PRIu64 " '%s' is a collective without the attribute comm_type",
                           node->id, node->name);
        const bool known = type >= 0 && type < KNOWN;
        if (!known || types[(int)type].op == NULL)
            return rg_fail(err, RG_ERR_INPUT, node->pos,
                           "node %" PRIu64 " '%s': comm_type %.0f%s%s; ridge knows all-reduce, "
                           "reduce, all-gather, broadcast, all-to-all, reduce-scatter, barrier",
                           node->id, node->name, type, known ? " is " : "",
                           known ? types[(int)type].name : "");
        node->op = types[(int)type].op;
        node->bytes_a_rank = (int)type == GATHER_ALL;
        if ((int)type == BARRIER) {
            n->barriers++;
            node->bytes = 1;
            return RG_OK;
        }
    } else {
        node->op = raw->type == TYPE_SEND ? "send" : "receive";
        n->receives += raw->type == TYPE_RECV;
    }
    if (raw->has.dims_out > 0)
        return rg_fail(err, RG_ERR_INPUT, node->pos,
                       "node %" PRIu64 " '%s': involved_dim leaves out %.0f dimensions of "
                       "ASTRA-sim's network; write one trace for each group of ranks",
                       node->id, node->name, raw->has.dims_out);
    if (!isfinite(raw->has.comm_size))
        return rg_fail(err, RG_ERR_INPUT, node->pos,
                       "node %" PRIu64 " '%s' communicates, and the attribute comm_size is absent",
                       node->id, node->name);
    if (raw->has.comm_size < 0)
        return rg_fail(err, RG_ERR_INPUT, node->pos, "node %" PRIu64 " '%s': comm_size %.0f",
                       node->id, node->name, raw->has.comm_size);
    node->bytes = raw->has.comm_size;
    n->groups += raw->has.named_group;
    if (node->bytes == 0) {
        n->empty++;
        node->kind = RG_WORK_NOTHING;
    }
    return RG_OK;
}

static rg_status add_node(rg_work_reader *r, bytes message, counts *n, rg_err *err)
{
    raw_node raw = {.has = {NAN, NAN, NAN, NAN, NAN, NAN, false}};
    rg_work_node *node;
    RG_TRY(rg_work_add(r, &node, err));
    RG_TRY(read_fields(r, message, &raw, node, err));
    node->id = raw.id;
    node->pos = (rg_pos){.file = r->path};
    node->name = raw.name.at == NULL ? ""
                                     : rg_arena_copy(r->arena, (const char *)raw.name.at,
                                                     (size_t)(raw.name.end - raw.name.at), err);
    if (node->name == NULL)
        return RG_ERR_LIMIT;
    node->kind = RG_WORK_NOTHING;
    switch (raw.type) {
    case TYPE_SEND:
    case TYPE_RECV:
    case TYPE_COLL:
        return set_communication(&raw, node, n, err);
    case TYPE_COMPUTE:
        node->kind = raw.has.on_host > 0 ? RG_WORK_HOST : RG_WORK_COMPUTE;
        node->time_s = (double)raw.duration_us * 1e-6;
        if (node->kind == RG_WORK_COMPUTE && raw.duration_us == 0 && raw.has.ops > 0) {
            node->time_s = NAN;
            node->flops = raw.has.ops;
            node->memory_bytes = raw.has.tensor_size > 0 ? raw.has.tensor_size : 0;
        }
        return RG_OK;
    case TYPE_LOAD:
    case TYPE_STORE:
        n->memory++;
        return RG_OK;
    case TYPE_METADATA:
        return RG_OK;
    default:
        n->other++;
        return RG_OK;
    }
}

/* A metadata record has a text where a node has its id, and no type. */
static bool is_node(bytes message)
{
    for (field f; message.at < message.end;) {
        if (!take_field(&message, &f))
            return false;
        if ((f.number == NODE_ID || f.number == NODE_TYPE) && f.wire == 0)
            return true;
    }
    return false;
}

bool rg_work_is_chakra(const char *text, size_t length)
{
    bytes all = {(const unsigned char *)text, (const unsigned char *)text + length}, message;
    if (length < 2 || !take_bytes(&all, &message))
        return false;
    for (field f; message.at < message.end;)
        if (!take_field(&message, &f) || f.number > 16)
            return false;
    return true;
}

rg_status rg_work_read_chakra(rg_work_reader *r, rg_err *err)
{
    bytes all = {(const unsigned char *)r->text, (const unsigned char *)r->text + r->length};
    counts n = {0};
    r->work->tool = "chakra";
    for (bool first = true; all.at < all.end; first = false) {
        const unsigned char *at = all.at;
        bytes message;
        if (!take_bytes(&all, &message))
            return broken(r, at, "no whole record", err);
        if (!first || is_node(message))
            RG_TRY(add_node(r, message, &n, err));
    }
    if (r->work->count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){.file = r->path},
                       "a Chakra trace without nodes");
    const struct {
        int nodes;
        const char *what;
    } notes[] = {
        {n.memory, "load or store remote memory: left out"},
        {n.other, "neither compute nor communicate: left out"},
        {n.empty, "communicate 0 bytes: no time"},
        {n.barriers, "are barriers: all-reduces of 1 byte, as libraries do them"},
        {n.receives, "receive: the sender is ready when the receiver is"},
        {n.groups, "name a process group, whose ranks the trace does not hold: --ranks is taken"},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (notes[i].nodes > 0)
            RG_TRY(rg_work_note(r, err, "nodes that %s (%d)", notes[i].what, notes[i].nodes));
    return RG_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "core/doc.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/file.h"
#include "core/text.h"

enum { MAX_DEPTH = 64, MAX_TEXT = 1 << 20 };
static const size_t MAX_BYTES = (size_t)64 << 20;

typedef struct reader {
    rg_arena *arena;
    const char *file;
    yaml_parser_t parser;
    rg_err *err;
} reader;

static rg_pos place(const reader *in, yaml_mark_t mark)
{
    return (rg_pos){in->file, (int)mark.line + 1, (int)mark.column + 1};
}

/* Line and column of a byte offset, counted in characters as libyaml does. */
static rg_pos place_of_offset(const char *file, const char *text, size_t offset)
{
    int line = 1, column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            column++;
        }
    }
    return (rg_pos){file, line, column};
}

static rg_status next_event(reader *in, yaml_event_t *event)
{
    if (yaml_parser_parse(&in->parser, event))
        return RG_OK;
    const yaml_parser_t *p = &in->parser;
    const char *problem = p->problem ? p->problem : "cannot be read as YAML";
    if (p->error == YAML_MEMORY_ERROR)
        return rg_fail(in->err, RG_ERR_LIMIT, (rg_pos){.file = in->file}, "not enough memory");
    if (p->error == YAML_READER_ERROR)
        return rg_fail(in->err, RG_ERR_INPUT, place(in, p->mark), "%s", problem);
    return rg_fail(in->err, RG_ERR_INPUT, place(in, p->problem_mark), "syntax: %s%s%s", problem,
                   p->context ? ", " : "", p->context ? p->context : "");
}

static rg_status refuse_anchor(reader *in, const yaml_event_t *event, const void *anchor,
                               const void *tag)
{
    if (anchor)
        return rg_fail(in->err, RG_ERR_INPUT, place(in, event->start_mark),
                       "anchors (&name) are not supported; write the value out");
    if (tag)
        return rg_fail(in->err, RG_ERR_INPUT, place(in, event->start_mark),
                       "tags (!name) are not supported; leave the tag out");
    return RG_OK;
}

static rg_status read_node(reader *in, const yaml_event_t *event, int depth, rg_node **out);

static rg_status new_node(reader *in, const yaml_event_t *event, rg_node_kind kind, rg_node **out)
{
    rg_node *node = RG_NEW(in->arena, rg_node, 1, in->err);
    if (!node)
        return RG_ERR_LIMIT;
    node->kind = kind;
    node->pos = place(in, event->start_mark);
    node->arena = in->arena;
    *out = node;
    return RG_OK;
}

static rg_status read_scalar(reader *in, const yaml_event_t *event, rg_node **out)
{
    RG_TRY(refuse_anchor(in, event, event->data.scalar.anchor, event->data.scalar.tag));
    const char *value = (const char *)event->data.scalar.value;
    const size_t length = event->data.scalar.length;
    if (length > MAX_TEXT)
        return rg_fail(in->err, RG_ERR_LIMIT, place(in, event->start_mark),
                       "a value of %zu bytes; the most is %d", length, MAX_TEXT);
    if (memchr(value, 0, length))
        return rg_fail(in->err, RG_ERR_INPUT, place(in, event->start_mark),
                       "a value holds a NUL character; leave it out");
    RG_TRY(new_node(in, event, RG_NODE_SCALAR, out));
    (*out)->text = rg_arena_copy(in->arena, value, length, in->err);
    if (!(*out)->text)
        return RG_ERR_LIMIT;
    (*out)->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return RG_OK;
}

static rg_status read_list(reader *in, int depth, rg_node *list)
{
    rg_node **tail = &list->first;
    for (;;) {
        yaml_event_t event;
        RG_TRY(next_event(in, &event));
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return RG_OK;
        }
        const rg_status status = read_node(in, &event, depth, tail);
        yaml_event_delete(&event);
        RG_TRY(status);
        tail = &(*tail)->next;
        list->count++;
    }
}

/* Keys are compared over a hash of the map, so that a hostile map of many keys stays linear. */
typedef struct key_set {
    const rg_node **slots;
    size_t size, count;
} key_set;

static uint64_t hash_text(const char *s)
{
    uint64_t h = 1469598103934665603u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h ^ (h >> 29);
}

static rg_status key_set_add(reader *in, key_set *set, const rg_node *child, const rg_node **twin)
{
    *twin = NULL;
    if (set->count * 2 >= set->size) {
        const size_t size = set->size ? set->size * 2 : 16;
        const rg_node **slots = RG_NEW(in->arena, const rg_node *, size, in->err);
        if (!slots)
            return RG_ERR_LIMIT;
        for (size_t i = 0; i < set->size; i++) {
            if (!set->slots[i])
                continue;
            size_t j = hash_text(set->slots[i]->key) & (size - 1);
            while (slots[j])
                j = (j + 1) & (size - 1);
            slots[j] = set->slots[i];
        }
        set->slots = slots;
        set->size = size;
    }
    size_t i = hash_text(child->key) & (set->size - 1);
    for (; set->slots[i]; i = (i + 1) & (set->size - 1))
        if (strcmp(set->slots[i]->key, child->key) == 0) {
            *twin = set->slots[i];
            return RG_OK;
        }
    set->slots[i] = child;
    set->count++;
    return RG_OK;
}

static rg_status read_map(reader *in, int depth, rg_node *map)
{
    rg_node **tail = &map->first;
    key_set keys = {0};
    for (;;) {
        yaml_event_t event;
        RG_TRY(next_event(in, &event));
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return RG_OK;
        }
        const rg_pos key_pos = place(in, event.start_mark);
        rg_node *key = NULL;
        rg_status status = RG_OK;
        if (event.type != YAML_SCALAR_EVENT)
            status = rg_fail(in->err, RG_ERR_INPUT, key_pos, "a key must be plain text");
        else
            status = read_scalar(in, &event, &key);
        yaml_event_delete(&event);
        RG_TRY(status);

        RG_TRY(next_event(in, &event));
        status = read_node(in, &event, depth, tail);
        yaml_event_delete(&event);
        RG_TRY(status);
        assert(key);
        (*tail)->key = key->text;
        (*tail)->key_pos = key_pos;
        const rg_node *twin;
        RG_TRY(key_set_add(in, &keys, *tail, &twin));
        if (twin)
            return rg_fail(in->err, RG_ERR_INPUT, key_pos,
                           "key '%s' is given twice, first on line %d; keep one", key->text,
                           twin->key_pos.line);
        tail = &(*tail)->next;
        map->count++;
    }
}

static rg_status read_node(reader *in, const yaml_event_t *event, int depth, rg_node **out)
{
    if (depth > MAX_DEPTH)
        return rg_fail(in->err, RG_ERR_LIMIT, place(in, event->start_mark),
                       "nested deeper than %d levels", MAX_DEPTH);
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(in, event, out);
    case YAML_SEQUENCE_START_EVENT:
        RG_TRY(refuse_anchor(in, event, event->data.sequence_start.anchor,
                             event->data.sequence_start.tag));
        RG_TRY(new_node(in, event, RG_NODE_LIST, out));
        return read_list(in, depth + 1, *out);
    case YAML_MAPPING_START_EVENT:
        RG_TRY(refuse_anchor(in, event, event->data.mapping_start.anchor,
                             event->data.mapping_start.tag));
        RG_TRY(new_node(in, event, RG_NODE_MAP, out));
        return read_map(in, depth + 1, *out);
    case YAML_ALIAS_EVENT:
        return rg_fail(in->err, RG_ERR_INPUT, place(in, event->start_mark),
                       "aliases (*name) are not supported; write the value out");
    default:
        return rg_fail(in->err, RG_ERR_INPUT, place(in, event->start_mark),
                       "the document is empty");
    }
}

static rg_status read_document(reader *in, rg_node **root)
{
    yaml_event_t event;
    do {
        RG_TRY(next_event(in, &event));
        const yaml_event_type_t type = event.type;
        if (type == YAML_STREAM_END_EVENT) {
            yaml_event_delete(&event);
            return rg_fail(in->err, RG_ERR_INPUT, (rg_pos){in->file, 1, 1},
                           "the document is empty");
        }
        if (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT) {
            yaml_event_delete(&event);
            continue;
        }
        const rg_status status = read_node(in, &event, 1, root);
        yaml_event_delete(&event);
        RG_TRY(status);
        break;
    } while (true);
    for (;;) {
        RG_TRY(next_event(in, &event));
        const yaml_event_type_t type = event.type;
        const rg_pos pos = place(in, event.start_mark);
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return RG_OK;
        if (type == YAML_DOCUMENT_START_EVENT)
            return rg_fail(in->err, RG_ERR_INPUT, pos,
                           "a second document in the file; keep one a file");
    }
}

/* Python writes Infinity and NaN as bare words. For the syntax check, stand digits in for them. */
static void mask_bare_words(char *text, size_t length)
{
    bool in_string = false;
    for (size_t i = 0; i < length; i++) {
        if (in_string) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                in_string = false;
        } else if (text[i] == '"') {
            in_string = true;
        } else if (length - i >= 8 && memcmp(text + i, "Infinity", 8) == 0) {
            memset(text + i, '1', 8);
        } else if (length - i >= 3 && memcmp(text + i, "NaN", 3) == 0) {
            memset(text + i, '1', 3);
        }
    }
}

/* \uD83D\uDE00 as one \U0001F600, which YAML reads; shorter, so in place. */
static size_t join_surrogates(char *text, size_t length)
{
    size_t to = 0;
    for (size_t i = 0; i < length;) {
        unsigned high, low;
        if (text[i] == '\\' && length - i >= 12 && text[i + 1] == 'u' && text[i + 6] == '\\' &&
            text[i + 7] == 'u' && sscanf(text + i + 2, "%4x", &high) == 1 &&
            sscanf(text + i + 8, "%4x", &low) == 1 && high >= 0xd800 && high < 0xdc00 &&
            low >= 0xdc00 && low < 0xe000) {
            const unsigned point = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            char joined[16];
            snprintf(joined, sizeof joined, "\\U%08X", point);
            memcpy(text + to, joined, 10);
            to += 10;
            i += 12;
        } else if (text[i] == '\\' && i + 1 < length) {
            text[to++] = text[i++];
            text[to++] = text[i++];
        } else {
            text[to++] = text[i++];
        }
    }
    text[to] = 0;
    return to;
}

static rg_status check_json(rg_arena *arena, const char *name, const char *text, size_t length,
                            rg_err *err)
{
    char *masked = rg_arena_copy(arena, text, length, err);
    if (!masked)
        return RG_ERR_LIMIT;
    mask_bare_words(masked, length);
    json_error_t json_error;
    json_t *json =
        json_loadb(masked, length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &json_error);
    if (!json)
        return rg_fail(
            err, RG_ERR_INPUT,
            (rg_pos){name, json_error.line, json_error.column > 0 ? json_error.column : 1},
            "not valid JSON: %s", json_error.text);
    json_decref(json);
    return RG_OK;
}

rg_status rg_doc_parse(rg_arena *arena, const char *name, const char *text, size_t length,
                       bool json, rg_node **root, rg_err *err)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf"; /* editors on Windows write it */
    const size_t mark = sizeof byte_order_mark - 1;
    if (length >= mark && memcmp(text, byte_order_mark, mark) == 0) {
        text += mark;
        length -= mark;
    }
    char *file = rg_arena_strdup(arena, name, err);
    char *copy = rg_arena_copy(arena, text, length, err);
    if (!file || !copy)
        return RG_ERR_LIMIT;
    if (length > MAX_BYTES)
        return rg_fail(err, RG_ERR_LIMIT, (rg_pos){.file = file}, "is larger than %zu MiB",
                       MAX_BYTES >> 20);
    const size_t valid = rg_text_utf8_valid(copy, length);
    if (valid < length)
        return rg_fail(err, RG_ERR_INPUT, place_of_offset(file, copy, valid),
                       "byte 0x%02x is not UTF-8; save the file as UTF-8",
                       (unsigned char)copy[valid]);
    if (json) {
        RG_TRY(check_json(arena, file, copy, length, err));
        length = join_surrogates(copy, length);
    }
    reader in = {.arena = arena, .file = file, .err = err};
    if (!yaml_parser_initialize(&in.parser))
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "not enough memory");
    yaml_parser_set_input_string(&in.parser, (const unsigned char *)copy, length);
    yaml_parser_set_encoding(&in.parser, YAML_UTF8_ENCODING);
    const rg_status status = read_document(&in, root);
    yaml_parser_delete(&in.parser);
    return status;
}

rg_status rg_doc_load(rg_arena *arena, const char *path, rg_node **root, rg_err *err)
{
    char *text;
    size_t length;
    RG_TRY(rg_file_read(arena, path, MAX_BYTES, &text, &length, err));
    return rg_doc_parse(arena, path, text, length, rg_text_ends_with(path, ".json"), root, err);
}

void rg_doc_put_quoted(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', stream);
        fputc((unsigned char)*text < 0x20 ? ' ' : *text, stream);
    }
    fputc('"', stream);
}

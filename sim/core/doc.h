/* core/doc.h: one reader for YAML and JSON documents, with the place of every value.
 *
 * Reads core/arena.h, core/quantity.h. A document becomes a tree of nodes in an arena. Caps: size
 * 64 MiB, depth 64, anchors and aliases refused. Duplicate keys, bad UTF-8 and syntax errors end in
 * file:line:column. Getters register the keys that were asked for, so that rg_map_done can name an
 * unknown key and the nearest known one.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_DOC_H
#define RG_CORE_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/quantity.h"

typedef enum rg_node_kind { RG_NODE_SCALAR, RG_NODE_LIST, RG_NODE_MAP } rg_node_kind;

typedef struct rg_node rg_node;
struct rg_node {
    rg_node_kind kind;
    rg_pos pos;
    const char *key;        /* name under which its map holds it; NULL in lists and at the root */
    rg_pos key_pos;         /* place of that name */
    const char *text;       /* scalars: value, UTF-8, 0-terminated, without NUL inside */
    bool quoted;            /* scalars: was in quotes, so a string whatever it looks like */
    rg_node *first;         /* maps and lists: first child, in file order */
    rg_node *next;          /* next sibling */
    size_t count;           /* children */
    bool used;              /* a getter has read it */
    struct rg_asked *asked; /* maps: names that getters asked for */
    rg_arena *arena;
};

/** Load a file; ".json" is held to strict JSON (bare Infinity and NaN excepted), all else is YAML.
 * Errors: RG_ERR_IO, RG_ERR_INPUT, RG_ERR_LIMIT. */
rg_status rg_doc_load(rg_arena *arena, const char *path, rg_node **root, rg_err *err);
/** The same from memory; name stands in messages; json picks the strict mode. */
rg_status rg_doc_parse(rg_arena *arena, const char *name, const char *text, size_t length,
                       bool json, rg_node **root, rg_err *err);

/** A node, or RG_ERR_INPUT when it is of another kind; what names it in the message. */
rg_status rg_node_expect(const rg_node *node, rg_node_kind kind, const char *what, rg_err *err);

/** Child of a map, NULL when absent. Registers the name. Asserts that map is a map. */
rg_node *rg_map_find(rg_node *map, const char *key);
/** Child of a map; RG_ERR_INPUT "missing key 'x'" when absent. */
rg_status rg_map_get(rg_node *map, const char *key, rg_node **out, rg_err *err);
/** RG_ERR_INPUT for the first key that no getter asked for, with the nearest asked name. Call it
 * on every map after reading it. */
rg_status rg_map_done(const rg_node *map, rg_err *err);

/** YAML 1.2 core / JSON: null, ~ and empty plain scalars. */
bool rg_node_is_null(const rg_node *node);
/** Scalars as typed values. Strict: no trailing text, no overflow, no NaN; infinities only by
 * rg_node_real with allow_infinite. Integers accept 1e6 and 1_000_000 never. */
rg_status rg_node_real(const rg_node *node, bool allow_infinite, double *out, rg_err *err);
rg_status rg_node_int(const rg_node *node, int64_t least, int64_t most, int64_t *out, rg_err *err);
rg_status rg_node_bool(const rg_node *node, bool *out, rg_err *err);
rg_status rg_node_text(const rg_node *node, const char **out, rg_err *err);
rg_status rg_node_quantity(const rg_node *node, rg_dim dim, double *out, rg_err *err);
/** Index of the scalar among names (NULL-terminated); error with the nearest name. */
rg_status rg_node_choice(const rg_node *node, const char *const *names, int *out, rg_err *err);

/** As above, by key. Required keys fail when absent; the _or forms take a default, which the caller
 * prints where it matters. */
rg_status rg_map_real(rg_node *map, const char *key, double *out, rg_err *err);
rg_status rg_map_real_or(rg_node *map, const char *key, double fallback, double *out, rg_err *err);
rg_status rg_map_int(rg_node *map, const char *key, int64_t least, int64_t most, int64_t *out,
                     rg_err *err);
rg_status rg_map_int_or(rg_node *map, const char *key, int64_t least, int64_t most,
                        int64_t fallback, int64_t *out, rg_err *err);
rg_status rg_map_bool_or(rg_node *map, const char *key, bool fallback, bool *out, rg_err *err);
rg_status rg_map_text(rg_node *map, const char *key, const char **out, rg_err *err);
rg_status rg_map_text_or(rg_node *map, const char *key, const char *fallback, const char **out,
                         rg_err *err);
rg_status rg_map_quantity(rg_node *map, const char *key, rg_dim dim, double *out, rg_err *err);
rg_status rg_map_quantity_or(rg_node *map, const char *key, rg_dim dim, double fallback,
                             double *out, rg_err *err);

/** Write text as a double-quoted YAML scalar; control characters become blanks. */
void rg_doc_put_quoted(FILE *stream, const char *text);

#endif

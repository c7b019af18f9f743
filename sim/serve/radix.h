/* serve/radix.h: a radix tree of cached text, as SGLang's RadixCache keeps it.
 *
 * Reads core, trace/req.h. A node holds a stretch of text between two places where texts part. Text
 * is matched token by token, or page by page where pages are larger than a token. A sequence that
 * runs locks the node where its cached text ends, and so all above it. What nobody locks can be
 * evicted: whole leaves, the one least recently touched first, until enough is free; matching and
 * inserting touch. Source: SGLang mem_cache/radix_cache.py: _match_prefix_helper, _split_node,
 * _insert_helper, inc_lock_ref, evict with LRUStrategy.
 *
 * Tokens have no numbers here: a token is (the identity of its segment, its place in it), and
 * segments of one identity that follow each other count on.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_RADIX_H
#define RG_SERVE_RADIX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "trace/req.h"

/** A whole text, shared by those who keep parts of it. */
typedef struct rg_radix_text rg_radix_text;
typedef struct rg_radix_node rg_radix_node;
typedef struct rg_radix rg_radix;

/** A tree of pages of so many tokens; NULL with err when memory ends. */
rg_radix *rg_radix_new(rg_arena *arena, int32_t page_tokens, rg_err *err);

/** A text: these segments, then tail_id without end. The caller is its user until it drops it. */
rg_radix_text *rg_radix_text_new(rg_radix *tree, const rg_segment *segments, int count,
                                 uint64_t tail_id);
void rg_radix_text_drop(rg_radix *tree, rg_radix_text *text);
/** Leading tokens that two texts have in common, at most `tokens`. */
int32_t rg_radix_common(const rg_radix_text *a, const rg_radix_text *b, int32_t tokens);

/** Pages of the first `tokens` tokens that are cached; touches them and splits the node in which
 * the match ends. *last is where it ends. */
int32_t rg_radix_match(rg_radix *tree, const rg_radix_text *text, int64_t tokens,
                       rg_radix_node **last);
/** The same number, but nothing is touched or split. */
int32_t rg_radix_peek(const rg_radix *tree, const rg_radix_text *text, int64_t tokens);
/** Keep the whole pages of the first `tokens` tokens; *last is where they end. Returns how many of
 * them were there already. */
int32_t rg_radix_insert(rg_radix *tree, rg_radix_text *text, int64_t tokens, rg_radix_node **last);

/** Protect a node and all above it; pages that nobody protected before. */
int32_t rg_radix_lock(rg_radix *tree, rg_radix_node *node);
/** Undo one lock; pages that nobody protects any more. */
int32_t rg_radix_unlock(rg_radix *tree, rg_radix_node *node);
/** Pages at the node and above that nobody protects. */
int32_t rg_radix_unlocked(const rg_radix *tree, const rg_radix_node *node);

/** Drop leaves until so many pages are free or nothing is left to drop; pages freed, which are more
 * where a leaf is larger than what was missing. */
int32_t rg_radix_evict(rg_radix *tree, int32_t pages);
/** Called with the text and its pages [from, to) when they are evicted. */
void rg_radix_on_evict(rg_radix *tree,
                       void (*evicted)(void *context, const rg_segment *segments, int count,
                                       uint64_t tail_id, int32_t from, int32_t to),
                       void *context);

rg_radix_node *rg_radix_root(rg_radix *tree);
/** Pages in the tree, and those that could be evicted. */
int32_t rg_radix_pages(const rg_radix *tree);
int32_t rg_radix_evictable(const rg_radix *tree);
/** Memory ended: the tree forgets text, and its owner must stop. */
rg_status rg_radix_failed(const rg_radix *tree);

#endif

/* serve/kv.h: KV memory of one replica in blocks, with a prefix cache as vLLM v1 keeps it.
 *
 * Reads core, trace/req.h. Free blocks wait in one queue: taken from its head, which forgets what
 * the block held; given back at its tail in reverse order, so the tail of a sequence is reused
 * first. Only full blocks have a name, a hash of their parent's name and their text. Block 0 is
 * reserved. Source: vLLM v1, core/block_pool.py and core/kv_cache_manager.py.
 *
 * A pool with a tree (serve/radix.h) keeps cached text as SGLang does instead: blocks are only
 * counted, and what is free is vacant or could be evicted.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_KV_H
#define RG_SERVE_KV_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "serve/radix.h"
#include "trace/req.h"

/** What of a sequence stays in memory. All zero: every token. */
typedef struct rg_kv_rule {
    int64_t window;    /* newest tokens kept; 0: all */
    int64_t sinks;     /* oldest tokens kept beside the window */
    double keep_ratio; /* selective caching: share of tokens kept; 0: all */
} rg_kv_rule;

int64_t rg_kv_resident_by_rule(const rg_kv_rule *rule, int64_t tokens);
/** Tokens of a sequence of that length which lie in the cache. */
static inline int64_t rg_kv_resident(const rg_kv_rule *rule, int64_t tokens)
{
    return rule->window == 0 && rule->keep_ratio == 0 ? tokens
                                                      : rg_kv_resident_by_rule(rule, tokens);
}

/** The blocks of one sequence, and how its text is named. */
typedef struct rg_kv_seq {
    int32_t *blocks;    /* places of the registered ones; NULL before there are any */
    int32_t held;       /* blocks, its own or shared */
    int32_t registered; /* leading blocks whose name is known to the cache */
    int32_t room;       /* power of two, room in blocks and names */
    uint64_t *names;    /* chain hashes of full blocks, named of them are computed */
    int32_t named;
    int32_t segment;             /* cursor of naming, */
    int64_t segment_used, place; /* tokens used of that segment, and of all of its identity */
    const rg_segment *segments;
    int32_t segment_count;
    uint64_t tail_id;     /* identity of all text behind the segments */
    bool shareable;       /* others may know this text; else named only when preempted */
    rg_radix_text *text;  /* in a pool with a tree: what it says, */
    rg_radix_node *node;  /* where its registered blocks end, */
    rg_radix_node *found; /* and where lookup ended */
} rg_kv_seq;

/** A place in the free queue: one named block, or a run of blocks that are called nothing, which
 * one is as good as the other. Named blocks keep their place while they are held. */
typedef struct rg_kv_block {
    int32_t next, previous; /* in the free queue; place 0 is its anchor */
    int32_t references;     /* who holds the block; of a run, how many blocks */
    int32_t twin;           /* the next block of the same name, 0: none */
    uint64_t name;          /* 0: a run */
} rg_kv_block;

typedef struct rg_kv_pool {
    rg_arena *arena;
    int32_t block_tokens;
    int32_t total; /* blocks with the reserved one; 0 and unlimited: grows */
    bool unlimited, caching;
    rg_radix *tree;     /* SGLang; NULL: named blocks */
    int32_t own;        /* blocks held that nobody else can find */
    int32_t free_count; /* that can be taken; cached ones are forgotten then */
    int32_t fresh;      /* unlimited: blocks held or known, and the reserved one */
    int32_t size;       /* of blocks */
    int32_t places;     /* used of it */
    int32_t spare;      /* places given back, linked by next */
    rg_kv_block *blocks;
    uint64_t *keys; /* open addressing: name -> first block */
    int32_t *firsts;
    int64_t table_size, table_used;
    int32_t *spare32[32]; /* freed arrays of power-of-two sizes, linked through their first bytes */
    uint64_t *spare64[32];
    int64_t evicted; /* named blocks reused */
    void (*on_evict)(void *context, uint64_t name);
    void *evict_context;
    rg_err failed; /* out of memory; looked at by the replica */
} rg_kv_pool;

/** total counts the reserved block, as the engine's log does; 0: as many as needed. */
rg_status rg_kv_start(rg_kv_pool *pool, rg_arena *arena, int64_t total, int64_t block_tokens,
                      bool caching, rg_err *err);
/** The same with a radix tree. */
rg_status rg_kv_start_tree(rg_kv_pool *pool, rg_arena *arena, int64_t total, int64_t block_tokens,
                           rg_err *err);
/** Tell of blocks whose text is forgotten, by name. */
void rg_kv_on_evict(rg_kv_pool *pool, void (*evicted)(void *context, uint64_t name), void *context);
static inline int32_t rg_kv_used(const rg_kv_pool *pool)
{
    return pool->unlimited ? pool->fresh - 1 - pool->free_count
                           : pool->total - 1 - pool->free_count;
}
static inline bool rg_kv_fits(const rg_kv_pool *pool, int64_t blocks)
{
    return pool->unlimited || blocks <= pool->free_count;
}

/** Prepare a sequence of at most so many tokens that says these segments, then tail_id. The
 * segments must stay where they are. */
void rg_kv_open(rg_kv_pool *pool, rg_kv_seq *seq, int64_t tokens, const rg_segment *segments,
                int32_t count, uint64_t tail_id);
/** Give its arrays back; it must hold no blocks. */
void rg_kv_close(rg_kv_pool *pool, rg_kv_seq *seq);

/** Leading full blocks of at most `tokens` tokens that are cached. *unused counts those among them
 * that lie in the free queue now. The ids are in seq->blocks[0..hits), not yet held. */
int32_t rg_kv_lookup(rg_kv_pool *pool, rg_kv_seq *seq, int64_t tokens, int32_t *unused);
/** How many lookup would find; looking does not count as use. */
int32_t rg_kv_peek(rg_kv_pool *pool, rg_kv_seq *seq, int64_t tokens);
/** Hold the blocks that lookup found. */
void rg_kv_adopt(rg_kv_pool *pool, rg_kv_seq *seq, int32_t hits);
/** Hold so many more blocks; they must fit. */
void rg_kv_take(rg_kv_pool *pool, rg_kv_seq *seq, int32_t blocks);
/** Make the full blocks of the first `tokens` tokens known. */
void rg_kv_register(rg_kv_pool *pool, rg_kv_seq *seq, int64_t tokens);
/** Give back all blocks, last first. */
void rg_kv_release(rg_kv_pool *pool, rg_kv_seq *seq);
/** Give back the newest blocks down to `keep` (speculation, windows). */
void rg_kv_shrink(rg_kv_pool *pool, rg_kv_seq *seq, int32_t keep);
/** Names of the first count full blocks are computed. */
void rg_kv_name(rg_kv_pool *pool, rg_kv_seq *seq, int32_t count);
/** Blocks are conserved: every one but the reserved is either referenced or free. Walks all. */
bool rg_kv_conserved(const rg_kv_pool *pool);

#endif

/* serve/kv.c: block pool with a prefix cache. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/kv.h"

#include <assert.h>
#include <string.h>

#include "serve/kv_tree.h"

enum { MAX_BLOCKS = 1 << 30, FIRST_SIZE = 1 << 12 };

int64_t rg_kv_resident_by_rule(const rg_kv_rule *rule, int64_t tokens)
{
    int64_t kept = tokens;
    if (rule->window > 0 && kept > rule->window + rule->sinks)
        kept = rule->window + rule->sinks;
    if (rule->keep_ratio > 0 && rule->keep_ratio < 1) {
        const int64_t share = (int64_t)((double)kept * rule->keep_ratio + 0.999999);
        kept = share > 0 ? share : 1;
    }
    return kept;
}

static bool grow(rg_kv_pool *p, int32_t size)
{
    if (size <= p->size)
        return true;
    int64_t wanted = p->size ? p->size : FIRST_SIZE;
    while (wanted < size)
        wanted *= 2;
    rg_kv_block *blocks = RG_NEW(p->arena, rg_kv_block, wanted, &p->failed);
    if (!blocks)
        return false;
    if (p->size)
        memcpy(blocks, p->blocks, (size_t)p->size * sizeof *blocks);
    p->blocks = blocks;
    p->size = (int32_t)wanted;
    return true;
}

/* ---- free queue: named blocks one by one, runs of others by their number */

static int32_t new_place(rg_kv_pool *p)
{
    const int32_t spare = p->spare;
    if (spare) {
        p->spare = p->blocks[spare].next;
        return spare;
    }
    return grow(p, p->places + 2) ? ++p->places : 0;
}

static void drop_place(rg_kv_pool *p, int32_t b)
{
    p->blocks[b] = (rg_kv_block){.next = p->spare};
    p->spare = b;
}

static void leave_queue(rg_kv_pool *p, int32_t b)
{
    const rg_kv_block *block = &p->blocks[b];
    p->blocks[block->previous].next = block->next;
    p->blocks[block->next].previous = block->previous;
}

static void enter_queue(rg_kv_pool *p, int32_t b)
{
    const int32_t last = p->blocks[0].previous;
    p->blocks[last].next = b;
    p->blocks[b].previous = last;
    p->blocks[b].next = 0;
    p->blocks[0].previous = b;
}

/* Blocks without a name go to the tail of the queue. */
static void append_run(rg_kv_pool *p, int32_t blocks)
{
    int32_t last = p->blocks[0].previous;
    if (last == 0 || p->blocks[last].name) {
        last = new_place(p);
        if (last == 0)
            return;
        p->blocks[last] = (rg_kv_block){0};
        enter_queue(p, last);
    }
    p->blocks[last].references += blocks;
    p->free_count += blocks;
}

static rg_status check_size(int64_t total, int64_t block_tokens, rg_err *err)
{
    if (block_tokens < 1 || block_tokens > 1 << 20)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "block of '%lld' tokens; 1 to 1048576",
                       (long long)block_tokens);
    if (total != 0 && (total < 2 || total > MAX_BLOCKS))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "'%lld' KV blocks; wanted 2 (one is reserved) to %d, or 0 for no limit",
                       (long long)total, MAX_BLOCKS);
    return RG_OK;
}

static rg_kv_pool empty_pool(rg_arena *arena, int64_t total, int64_t block_tokens, bool caching)
{
    return (rg_kv_pool){.arena = arena,
                        .block_tokens = (int32_t)block_tokens,
                        .caching = caching,
                        .unlimited = total == 0,
                        .total = (int32_t)total,
                        .fresh = 1};
}

rg_status rg_kv_start(rg_kv_pool *pool, rg_arena *arena, int64_t total, int64_t block_tokens,
                      bool caching, rg_err *err)
{
    RG_TRY(check_size(total, block_tokens, err));
    *pool = empty_pool(arena, total, block_tokens, caching);
    if (!grow(pool, FIRST_SIZE))
        return RG_ERR_LIMIT;
    if (!pool->unlimited)
        append_run(pool, pool->total - 1);
    return RG_OK;
}

rg_status rg_kv_start_tree(rg_kv_pool *pool, rg_arena *arena, int64_t total, int64_t block_tokens,
                           rg_err *err)
{
    RG_TRY(check_size(total, block_tokens, err));
    *pool = empty_pool(arena, total, block_tokens, true);
    pool->free_count = pool->unlimited ? 0 : pool->total - 1;
    pool->tree = rg_radix_new(arena, pool->block_tokens, err);
    return pool->tree ? RG_OK : RG_ERR_LIMIT;
}

/* ---- arrays of sequences, in powers of two */

static int size_class(int64_t count)
{
    int c = 2;
    while (((int64_t)1 << c) < count)
        c++;
    return c;
}

int32_t rg_kv_room(int64_t count)
{
    return (int32_t)1 << size_class(count);
}

void rg_kv_open(rg_kv_pool *pool, rg_kv_seq *seq, int64_t tokens, const rg_segment *segments,
                int32_t count, uint64_t tail_id)
{
    const int c = size_class(tokens / pool->block_tokens + 2);
    *seq = (rg_kv_seq){.room = (int32_t)1 << c,
                       .segments = segments,
                       .segment_count = count,
                       .tail_id = tail_id,
                       .shareable = count > 0};
    if (pool->tree) {
        seq->text = rg_radix_text_new(pool->tree, segments, count, tail_id);
        seq->node = seq->found = rg_radix_root(pool->tree);
    }
}

static void open_blocks(rg_kv_pool *pool, rg_kv_seq *seq)
{
    const int c = size_class(seq->room);
    if (pool->spare32[c]) {
        seq->blocks = pool->spare32[c];
        memcpy(&pool->spare32[c], seq->blocks, sizeof(int32_t *));
    } else {
        seq->blocks = RG_NEW(pool->arena, int32_t, (size_t)1 << c, &pool->failed);
    }
}

static void open_names(rg_kv_pool *pool, rg_kv_seq *seq)
{
    const int c = size_class(seq->room);
    if (pool->spare64[c]) {
        seq->names = pool->spare64[c];
        memcpy(&pool->spare64[c], seq->names, sizeof(uint64_t *));
    } else {
        seq->names = RG_NEW(pool->arena, uint64_t, (size_t)1 << c, &pool->failed);
    }
}

void rg_kv_close(rg_kv_pool *pool, rg_kv_seq *seq)
{
    assert(seq->held == 0);
    const int c = size_class(seq->room);
    if (seq->blocks) {
        memcpy(seq->blocks, &pool->spare32[c], sizeof(int32_t *));
        pool->spare32[c] = seq->blocks;
    }
    if (seq->names) {
        memcpy(seq->names, &pool->spare64[c], sizeof(uint64_t *));
        pool->spare64[c] = seq->names;
    }
    if (pool->tree)
        rg_radix_text_drop(pool->tree, seq->text);
    seq->blocks = NULL;
    seq->names = NULL;
    seq->text = NULL;
}

/* ---- names */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 29;
    x *= 0x94d049bb133111ebu;
    x ^= x >> 32;
    return x ? x : 1;
}

static uint64_t segment_id(const rg_kv_seq *seq)
{
    return seq->segment < seq->segment_count ? seq->segments[seq->segment].id : seq->tail_id;
}

void rg_kv_name(rg_kv_pool *pool, rg_kv_seq *seq, int32_t count)
{
    if (count <= seq->named)
        return;
    if (!seq->names)
        open_names(pool, seq);
    if (!seq->names)
        return;
    uint64_t chain = seq->named ? seq->names[seq->named - 1] : 0x726f6f74;
    for (; seq->named < count; seq->named++) {
        int64_t left = pool->block_tokens;
        while (left > 0) {
            /* One piece is all that goes on under one identity, however it is cut. */
            const uint64_t id = segment_id(seq);
            int64_t piece = 0;
            do {
                int64_t have = left;
                if (seq->segment < seq->segment_count) {
                    const int64_t rest = seq->segments[seq->segment].tokens - seq->segment_used;
                    have = rest < left ? rest : left;
                    seq->segment_used += have;
                    if (have == rest) {
                        seq->segment++;
                        seq->segment_used = 0;
                    }
                }
                piece += have;
                left -= have;
            } while (left > 0 && segment_id(seq) == id);
            if (piece > 0)
                chain = mix(mix(chain, id), (uint64_t)seq->place << 24 ^ (uint64_t)piece);
            seq->place = segment_id(seq) == id ? seq->place + piece : 0;
        }
        seq->names[seq->named] = chain;
    }
}

static int64_t table_find(const rg_kv_pool *p, uint64_t name)
{
    const uint64_t mask = (uint64_t)p->table_size - 1;
    uint64_t i = (name * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (p->keys[i] && p->keys[i] != name)
        i = (i + 1) & mask;
    return (int64_t)i;
}

static bool table_reserve(rg_kv_pool *p)
{
    if (p->table_used * 2 < p->table_size)
        return true;
    const int64_t old_size = p->table_size;
    uint64_t *old_keys = p->keys;
    int32_t *old_firsts = p->firsts;
    p->table_size = old_size ? old_size * 2 : 1 << 13;
    p->keys = RG_NEW(p->arena, uint64_t, p->table_size, &p->failed);
    p->firsts = RG_NEW(p->arena, int32_t, p->table_size, &p->failed);
    if (!p->keys || !p->firsts) {
        p->keys = old_keys;
        p->firsts = old_firsts;
        p->table_size = old_size;
        return false;
    }
    for (int64_t i = 0; i < old_size; i++) {
        if (!old_keys[i])
            continue;
        const int64_t at = table_find(p, old_keys[i]);
        p->keys[at] = old_keys[i];
        p->firsts[at] = old_firsts[i];
    }
    return true;
}

/* Deletion shifts later entries back, so no tombstones pile up. */
static void table_delete(rg_kv_pool *p, int64_t at)
{
    const uint64_t mask = (uint64_t)p->table_size - 1;
    uint64_t hole = (uint64_t)at, i = hole;
    for (;;) {
        i = (i + 1) & mask;
        if (!p->keys[i])
            break;
        const uint64_t home = (p->keys[i] * 0x9e3779b97f4a7c15u >> 20) & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        p->keys[hole] = p->keys[i];
        p->firsts[hole] = p->firsts[i];
        hole = i;
    }
    p->keys[hole] = 0;
    p->table_used--;
}

static void remember(rg_kv_pool *p, int32_t b, uint64_t name)
{
    if (!table_reserve(p))
        return;
    const int64_t at = table_find(p, name);
    p->blocks[b].name = name;
    p->blocks[b].twin = 0;
    if (!p->keys[at]) {
        p->keys[at] = name;
        p->firsts[at] = b;
        p->table_used++;
        return;
    }
    int32_t last = p->firsts[at]; /* equal blocks are not merged; the oldest serves */
    while (p->blocks[last].twin)
        last = p->blocks[last].twin;
    p->blocks[last].twin = b;
}

static void forget(rg_kv_pool *p, int32_t b)
{
    const int64_t at = table_find(p, p->blocks[b].name);
    if (p->firsts[at] == b) {
        if (p->blocks[b].twin)
            p->firsts[at] = p->blocks[b].twin;
        else
            table_delete(p, at);
    } else {
        int32_t before = p->firsts[at];
        while (p->blocks[before].twin != b)
            before = p->blocks[before].twin;
        p->blocks[before].twin = p->blocks[b].twin;
    }
    if (p->on_evict)
        p->on_evict(p->evict_context, p->blocks[b].name);
    p->blocks[b].name = 0;
    p->evicted++;
}

/* ---- sequences */

void rg_kv_take(rg_kv_pool *pool, rg_kv_seq *seq, int32_t blocks)
{
    assert(seq->held + blocks <= seq->room);
    if (pool->tree) {
        rg_kv_tree_reserve(pool, blocks);
        seq->held += blocks;
        return;
    }
    pool->own += blocks;
    seq->held += blocks;
    if (pool->unlimited) {
        pool->fresh += blocks;
        return;
    }
    pool->free_count -= blocks;
    while (blocks > 0) {
        const int32_t b = pool->blocks[0].next;
        assert(b != 0);
        int32_t *left = &pool->blocks[b].references;
        if (pool->blocks[b].name) {
            forget(pool, b);
            blocks--;
        } else if (*left > blocks) {
            *left -= blocks;
            return;
        } else {
            blocks -= *left;
        }
        leave_queue(pool, b);
        drop_place(pool, b);
    }
}

int32_t rg_kv_lookup(rg_kv_pool *pool, rg_kv_seq *seq, int64_t tokens, int32_t *unused)
{
    *unused = 0;
    if (pool->tree) {
        if (seq->held > 0 || !seq->text)
            return 0;
        const int32_t found = rg_radix_match(pool->tree, seq->text, tokens, &seq->found);
        *unused = rg_radix_unlocked(pool->tree, seq->found);
        return found;
    }
    if (!pool->caching || pool->table_used == 0 || seq->held > 0 ||
        (!seq->shareable && seq->named == 0))
        return 0;
    const int32_t most = (int32_t)(tokens / pool->block_tokens);
    int32_t hits = 0;
    for (; hits < most; hits++) {
        rg_kv_name(pool, seq, hits + 1);
        if (!seq->names)
            return 0;
        const int64_t at = table_find(pool, seq->names[hits]);
        if (!pool->keys[at])
            break;
        const int32_t b = pool->firsts[at];
        if (!seq->blocks)
            open_blocks(pool, seq);
        if (!seq->blocks)
            return 0;
        seq->blocks[hits] = b;
        *unused += pool->blocks[b].references == 0;
    }
    return hits;
}

int32_t rg_kv_peek(rg_kv_pool *pool, rg_kv_seq *seq, int64_t tokens)
{
    int32_t unused;
    if (pool->tree)
        return seq->text ? rg_radix_peek(pool->tree, seq->text, tokens) : 0;
    return rg_kv_lookup(pool, seq, tokens, &unused);
}

void rg_kv_adopt(rg_kv_pool *pool, rg_kv_seq *seq, int32_t hits)
{
    if (pool->tree) {
        pool->free_count -= rg_radix_lock(pool->tree, seq->found);
        seq->node = seq->found;
    }
    for (int32_t i = 0; !pool->tree && i < hits; i++) {
        const int32_t b = seq->blocks[i];
        if (pool->blocks[b].references++ > 0)
            continue;
        leave_queue(pool, b);
        pool->free_count--;
    }
    seq->held = hits;
    seq->registered = hits;
}

void rg_kv_register(rg_kv_pool *pool, rg_kv_seq *seq, int64_t tokens)
{
    if (!pool->caching)
        return;
    if (pool->tree) {
        rg_kv_tree_register(pool, seq, tokens);
        return;
    }
    int32_t full = (int32_t)(tokens / pool->block_tokens);
    if (full > seq->held)
        full = seq->held;
    if (full <= seq->registered)
        return;
    rg_kv_name(pool, seq, full);
    if (!seq->blocks)
        open_blocks(pool, seq);
    if (!seq->names || !seq->blocks)
        return;
    for (; seq->registered < full; seq->registered++) {
        const int32_t b = new_place(pool);
        if (b == 0)
            return;
        pool->blocks[b] = (rg_kv_block){.references = 1};
        seq->blocks[seq->registered] = b;
        remember(pool, b, seq->names[seq->registered]);
        pool->own--;
    }
}

void rg_kv_shrink(rg_kv_pool *pool, rg_kv_seq *seq, int32_t keep)
{
    if (pool->tree) {
        rg_kv_tree_shrink(pool, seq, keep);
        return;
    }
    const int32_t named = keep > seq->registered ? keep : seq->registered;
    if (seq->held > named) {
        if (pool->unlimited)
            pool->fresh -= seq->held - named;
        else
            append_run(pool, seq->held - named);
        pool->own -= seq->held - named;
        seq->held = named;
    }
    while (seq->held > keep) {
        const int32_t b = seq->blocks[--seq->held];
        if (--pool->blocks[b].references > 0)
            continue;
        enter_queue(pool, b);
        pool->free_count++;
    }
    if (seq->registered > keep)
        seq->registered = keep;
}

void rg_kv_release(rg_kv_pool *pool, rg_kv_seq *seq)
{
    rg_kv_shrink(pool, seq, 0);
}

bool rg_kv_conserved(const rg_kv_pool *pool)
{
    if (pool->tree)
        return (pool->unlimited ? pool->fresh : pool->total) - 1 ==
                   rg_radix_pages(pool->tree) + pool->own + pool->free_count -
                       rg_radix_evictable(pool->tree) &&
               pool->own >= 0 && pool->free_count >= rg_radix_evictable(pool->tree);
    int64_t queued = 0, held = pool->own;
    for (int32_t b = pool->blocks[0].next; b != 0; b = pool->blocks[b].next) {
        const rg_kv_block *block = &pool->blocks[b];
        if (block->name ? block->references != 0 : block->references < 1)
            return false;
        queued += block->name ? 1 : block->references;
    }
    for (int32_t b = 1; b <= pool->places; b++)
        held += pool->blocks[b].name && pool->blocks[b].references > 0;
    return pool->own >= 0 && queued == pool->free_count &&
           queued + held == (pool->unlimited ? pool->fresh : pool->total) - 1;
}

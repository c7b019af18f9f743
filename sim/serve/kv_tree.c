/* serve/kv_tree.c: KV memory with a radix tree. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/kv_tree.h"

void rg_kv_tree_reserve(rg_kv_pool *p, int32_t blocks)
{
    const int32_t short_by = blocks - (p->free_count - rg_radix_evictable(p->tree));
    if (short_by > 0 && p->unlimited) {
        p->fresh += short_by;
        p->free_count += short_by;
    } else if (short_by > 0) {
        p->evicted += rg_radix_evict(p->tree, short_by);
    }
    p->free_count -= blocks;
    p->own += blocks;
}

void rg_kv_tree_register(rg_kv_pool *p, rg_kv_seq *seq, int64_t tokens)
{
    int32_t full = (int32_t)(tokens / p->block_tokens);
    full = full < seq->held ? full : seq->held;
    if (full <= seq->registered || !seq->text)
        return;
    rg_radix_node *node;
    rg_radix_insert(p->tree, seq->text, (int64_t)full * p->block_tokens, &node);
    p->own -= full - seq->registered;
    p->free_count += full - seq->registered; /* vacant, or in the tree and not yet locked */
    p->free_count -= rg_radix_lock(p->tree, node);
    p->free_count += rg_radix_unlock(p->tree, seq->node);
    seq->node = node;
    seq->registered = full;
    if (rg_radix_failed(p->tree) != RG_OK)
        p->failed.status = rg_radix_failed(p->tree);
}

void rg_kv_tree_shrink(rg_kv_pool *p, rg_kv_seq *seq, int32_t keep)
{
    const int32_t gone = seq->held - (keep > seq->registered ? keep : seq->registered);
    p->own -= gone;
    p->free_count += gone;
    seq->held -= gone;
    if (keep > 0)
        return;
    p->free_count += rg_radix_unlock(p->tree, seq->node);
    seq->node = rg_radix_root(p->tree);
    seq->held = seq->registered = 0;
}

static void name_evicted(void *context, const rg_segment *segments, int count, uint64_t tail_id,
                         int32_t from, int32_t to)
{
    rg_kv_pool *p = context;
    rg_kv_seq seq = {
        .room = rg_kv_room(to), .segments = segments, .segment_count = count, .tail_id = tail_id};
    rg_kv_name(p, &seq, to);
    /* Tails first, as text is of use from its head on: heads are forgotten last below, too. */
    for (int32_t i = to; seq.names && i-- > from;)
        p->on_evict(p->evict_context, seq.names[i]);
    rg_kv_close(p, &seq);
}

void rg_kv_on_evict(rg_kv_pool *pool, void (*evicted)(void *context, uint64_t name), void *context)
{
    pool->on_evict = evicted;
    pool->evict_context = context;
    if (pool->tree)
        rg_radix_on_evict(pool->tree, name_evicted, pool);
}

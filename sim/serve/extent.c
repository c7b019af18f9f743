/* serve/extent.c: contiguous KV memory, first fit, to show what paging saves. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

#include <string.h>

static bool room(rg_replica *r, int count)
{
    if (count <= r->extent_room)
        return true;
    const int wanted = r->extent_room ? r->extent_room * 2 : 256;
    rg_extent *extents = RG_NEW(r->arena, rg_extent, wanted, &r->failed);
    if (!extents)
        return false;
    if (r->extent_count)
        memcpy(extents, r->extents, (size_t)r->extent_count * sizeof *extents);
    r->extents = extents;
    r->extent_room = wanted;
    return true;
}

static void insert(rg_replica *r, int i, rg_extent extent)
{
    if (!room(r, r->extent_count + 1))
        return;
    memmove(&r->extents[i + 1], &r->extents[i], (size_t)(r->extent_count - i) * sizeof *r->extents);
    r->extents[i] = extent;
    r->extent_count++;
}

static void remove_at(rg_replica *r, int i)
{
    r->extent_count--;
    memmove(&r->extents[i], &r->extents[i + 1], (size_t)(r->extent_count - i) * sizeof *r->extents);
}

bool rg_extent_take(rg_replica *r, rg_live *live, int64_t tokens)
{
    if (r->pool.unlimited) {
        live->reserved = true;
        live->extent_size = tokens;
        r->extent_total += tokens;
        return true;
    }
    if (r->extent_total == 0) {
        r->extent_total = r->extent_free = (int64_t)(r->pool.total - 1) * r->pool.block_tokens;
        insert(r, 0, (rg_extent){0, r->extent_total});
    }
    for (int i = 0; i < r->extent_count; i++) {
        rg_extent *e = &r->extents[i];
        if (e->size < tokens)
            continue;
        live->reserved = true;
        live->extent = e->at;
        live->extent_size = tokens;
        e->at += tokens;
        e->size -= tokens;
        r->extent_free -= tokens;
        if (e->size == 0)
            remove_at(r, i);
        return true;
    }
    return false;
}

void rg_extent_give(rg_replica *r, rg_live *live)
{
    live->reserved = false;
    if (r->pool.unlimited) {
        r->extent_total -= live->extent_size;
        return;
    }
    int i = 0;
    while (i < r->extent_count && r->extents[i].at < live->extent)
        i++;
    insert(r, i, (rg_extent){live->extent, live->extent_size});
    r->extent_free += live->extent_size;
    if (i + 1 < r->extent_count && r->extents[i].at + r->extents[i].size == r->extents[i + 1].at) {
        r->extents[i].size += r->extents[i + 1].size;
        remove_at(r, i + 1);
    }
    if (i > 0 && r->extents[i - 1].at + r->extents[i - 1].size == r->extents[i].at) {
        r->extents[i - 1].size += r->extents[i].size;
        remove_at(r, i);
    }
}

double rg_extent_fragmentation(const rg_replica *r)
{
    int64_t largest = 0;
    for (int i = 0; i < r->extent_count; i++)
        largest = r->extents[i].size > largest ? r->extents[i].size : largest;
    return r->extent_free > 0 ? 1 - (double)largest / (double)r->extent_free : 0;
}

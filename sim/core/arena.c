// SPDX-License-Identifier: Apache-2.0
#include "core/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, FIRST_BLOCK = 64 * 1024 };

typedef struct block {
    struct block *next;
    size_t size, used;
    _Alignas(ALIGNMENT) unsigned char bytes[];
} block;

typedef struct deferred {
    struct deferred *next;
    void (*release)(void *);
    void *object;
} deferred;

struct rg_arena {
    block *first, *current;
    size_t cap, used; /* handed out, alignment included */
    size_t reserved;  /* taken from the system */
    deferred *last;
};

rg_arena *rg_arena_new(size_t cap_mib)
{
    rg_arena *arena = calloc(1, sizeof *arena);
    if (arena)
        arena->cap = cap_mib << 20;
    return arena;
}

static void run_deferred(rg_arena *arena)
{
    for (deferred *d = arena->last; d; d = d->next)
        d->release(d->object);
    arena->last = NULL;
}

rg_status rg_arena_defer(rg_arena *arena, void (*release)(void *), void *object, rg_err *err)
{
    deferred *d = RG_NEW(arena, deferred, 1, err);
    if (!d)
        return RG_ERR_LIMIT;
    *d = (deferred){arena->last, release, object};
    arena->last = d;
    return RG_OK;
}

void rg_arena_free(rg_arena *arena)
{
    if (!arena)
        return;
    run_deferred(arena);
    for (block *b = arena->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(arena);
}

void rg_arena_reset(rg_arena *arena)
{
    run_deferred(arena);
    for (block *b = arena->first; b; b = b->next)
        b->used = 0;
    arena->current = arena->first;
    arena->used = 0;
}

size_t rg_arena_used_bytes(const rg_arena *arena)
{
    return arena->used;
}

/* A block with room behind the current one: one kept from before a reset, or a new one. */
static block *block_for(rg_arena *arena, size_t need)
{
    block **link = arena->current ? &arena->current->next : &arena->first;
    for (; *link; link = &(*link)->next) {
        if ((*link)->size - (*link)->used >= need)
            return *link;
    }
    size_t size = arena->reserved < FIRST_BLOCK ? FIRST_BLOCK : arena->reserved / 2;
    if (size > (size_t)64 << 20)
        size = (size_t)64 << 20;
    if (size < need)
        size = need;
    block *b = NULL;
    if (posix_memalign((void **)&b, ALIGNMENT, sizeof(block) + size) != 0)
        return NULL;
    *b = (block){.size = size};
    arena->reserved += size;
    *link = b;
    return b;
}

void *rg_arena_alloc(rg_arena *arena, size_t count, size_t size, rg_err *err)
{
    size_t need;
    if (__builtin_mul_overflow(count, size, &need) || need > SIZE_MAX - ALIGNMENT)
        need = SIZE_MAX - ALIGNMENT;
    const size_t step = need >= ALIGNMENT ? ALIGNMENT : 16;
    need = need == 0 ? 16 : (need + 15) / 16 * 16;
    if (need > arena->cap || arena->used > arena->cap - need) {
        rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE,
                "needs more than %zu MiB of memory; the input is too large", arena->cap >> 20);
        return NULL;
    }
    block *b = arena->current;
    size_t start = b ? (b->used + step - 1) / step * step : 0;
    if (!b || start > b->size || b->size - start < need) {
        b = block_for(arena, need + step);
        if (!b) {
            rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "the system has no memory left");
            return NULL;
        }
        arena->current = b;
        start = (b->used + step - 1) / step * step;
    }
    b->used = start + need;
    arena->used += need;
    return memset(b->bytes + start, 0, need);
}

char *rg_arena_copy(rg_arena *arena, const char *text, size_t length, rg_err *err)
{
    char *copy = rg_arena_alloc(arena, length + 1, 1, err);
    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

char *rg_arena_strdup(rg_arena *arena, const char *text, rg_err *err)
{
    return rg_arena_copy(arena, text, strlen(text), err);
}

char *rg_arena_printf(rg_arena *arena, rg_err *err, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : rg_arena_alloc(arena, (size_t)length + 1, 1, err);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

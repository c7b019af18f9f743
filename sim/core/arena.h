/* core/arena.h: memory that lives as long as one command, or one step of an inner loop.
 *
 * Reads core/err.h. The command makes an arena, passes it first, frees it at its end; no function
 * below frees. Memory comes zeroed. An arena has a cap, so hostile input ends in RG_ERR_LIMIT.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_ARENA_H
#define RG_CORE_ARENA_H

#include <stddef.h>

#include "core/err.h"

typedef struct rg_arena rg_arena;

enum { RG_ARENA_DEFAULT_CAP_MIB = 2048 };

/** A new arena that hands out at most cap_mib MiB; NULL when the system has no memory. */
rg_arena *rg_arena_new(size_t cap_mib);
/** Free the arena and all that came from it; NULL is fine. */
void rg_arena_free(rg_arena *arena);
/** Make everything available again; keeps the memory for the next round. */
void rg_arena_reset(rg_arena *arena);
/** Call release(object) when the arena is freed or reset, last deferred first: for file handles and
 * library objects that outlive one function. */
rg_status rg_arena_defer(rg_arena *arena, void (*release)(void *), void *object, rg_err *err);
/** Bytes handed out since the last reset. */
size_t rg_arena_used_bytes(const rg_arena *arena);

/** count * size zeroed bytes, aligned for any type; NULL with RG_ERR_LIMIT in err beyond the cap.
 * count 0 gives a valid pointer. */
void *rg_arena_alloc(rg_arena *arena, size_t count, size_t size, rg_err *err);
#define RG_NEW(arena, type, count, err) \
    ((type *)rg_arena_alloc((arena), (size_t)(count), sizeof(type), (err)))

/** Copy of length bytes with a 0 behind; NULL beyond the cap. */
char *rg_arena_copy(rg_arena *arena, const char *text, size_t length, rg_err *err);
char *rg_arena_strdup(rg_arena *arena, const char *text, rg_err *err);
char *rg_arena_printf(rg_arena *arena, rg_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

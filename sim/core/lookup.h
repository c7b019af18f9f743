/* core/lookup.h: values by name, wherever a user wrote them: options, a scenario, cells of a grid.
 *
 * Reads core/err.h. One reader of a group of settings then serves every command and file. A value
 * that is not set leaves *out alone, so that the caller's default stays. Errors: RG_ERR_INPUT at
 * the value's place in a file, else RG_ERR_USAGE for the option of that name.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_LOOKUP_H
#define RG_CORE_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"

typedef struct rg_lookup {
    /** Text of a value, NULL when there is none; *pos is its place, without a file for options. */
    const char *(*text)(const void *from, const char *name, rg_pos *pos);
    const void *from;
} rg_lookup;

/** The text, NULL when there is none. */
const char *rg_lookup_text(const rg_lookup *l, const char *name);
bool rg_lookup_given(const rg_lookup *l, const char *name);
rg_status rg_lookup_int(const rg_lookup *l, const char *name, int64_t least, int64_t most,
                        int64_t *out, rg_err *err);
rg_status rg_lookup_real(const rg_lookup *l, const char *name, double least, double most,
                         double *out, rg_err *err);
/** "true" or "false". */
rg_status rg_lookup_flag(const rg_lookup *l, const char *name, bool *out, rg_err *err);
/** "0.9,0.8": up to most numbers; *count is 0 when there is none. */
rg_status rg_lookup_reals(rg_arena *arena, const rg_lookup *l, const char *name, int most,
                          double **out, int *count, rg_err *err);
/** "option --tp '0' is not <wanted>", or "tp '0' is not <wanted>" at its place. */
rg_status rg_lookup_fail(const rg_lookup *l, const char *name, rg_err *err, const char *wanted, ...)
    __attribute__((format(printf, 4, 5)));
/** The error of another parser of the value's text, brought to the value's place. */
rg_status rg_lookup_placed(rg_status status, const rg_lookup *l, const char *name, rg_err *err);

#endif

/* core/text.h: strict numbers, nearest names, paths.
 *
 * Reads core/arena.h, core/err.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_TEXT_H
#define RG_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whole text as a finite real in the C locale's form, whatever the locale; false otherwise. */
bool rg_text_to_real(const char *text, double *out);
/** Whole text as an integer; "1e6" counts when exact; false otherwise. */
bool rg_text_to_int(const char *text, int64_t *out);
/** The name in names (NULL-terminated) with the least edit distance to text, NULL when none is near
 * (more than a third of its length away, at least 2). */
const char *rg_text_nearest(const char *text, const char *const *names);
/** All names in use for what this one means, itself among them, the preferred one first
 * (NULL-terminated); NULL for a name without others. */
const char *const *rg_text_synonyms(const char *name);
/** The one of known (NULL-terminated) that means the same as name; NULL when none or several do. */
const char *rg_text_synonym(const char *name, const char *const *known);
/** Damerau-Levenshtein distance (adjacent swaps cost 1), capped at 64-byte prefixes. */
int rg_text_distance(const char *a, const char *b);
/** Length of the valid UTF-8 prefix of text, in bytes. */
size_t rg_text_utf8_valid(const char *text, size_t length);
bool rg_text_ends_with(const char *text, const char *ending);

#endif

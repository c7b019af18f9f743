/* core/override.h: what-if changes of single values in a document, before it is read.
 *
 * Reads core/doc.h. "memory.hbm.bandwidth=x1.5" scales a quantity and keeps its unit;
 * "memory.hbm.bandwidth=6 TB/s" replaces it. A figure {value, source} changes its value, and its
 * source becomes "what-if: ...", so that no report passes it off as the vendor's.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_OVERRIDE_H
#define RG_CORE_OVERRIDE_H

#include "core/doc.h"

typedef struct rg_override {
    const char *path;  /* keys joined by '.', list items by number from 0 */
    const char *value; /* new text, or "x1.5" */
    rg_pos pos;        /* where the change is asked for: mistakes in it are told there */
} rg_override;

/** Split "path=value" in place of a copy; the place is the option. RG_ERR_USAGE without '=' or
 * path. */
rg_status rg_override_parse(rg_arena *arena, const char *text, rg_override *out, rg_err *err);

/** All changes of a run. The first key of a path is its scope: which document it changes. */
typedef struct rg_changes {
    const rg_override *items;
    int count;
} rg_changes;

/** Apply those changes to root whose path begins with "<scope>.". changes may be NULL. */
rg_status rg_changes_apply(rg_node *root, const char *scope, const rg_changes *changes,
                           rg_err *err);
bool rg_changes_has(const rg_changes *changes, const char *scope);

/** Apply to a tree. RG_ERR_USAGE for a path that is not there (with the nearest key), for a scale
 * of something that is no number, or for a path that ends at a map or list. */
rg_status rg_override_apply(rg_node *root, const rg_override *change, rg_err *err);

#endif

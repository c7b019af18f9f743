/* core/find.h: where data files live, and which file a name means.
 *
 * Reads core/arena.h. A kind is a data folder: "hw", "hw/nodes", "models"; "hw/nodes:hw" is two, of
 * which the first wins. It is looked for, in
 * this order, in $RIDGE_DATA, in the current folder, in the checkout that the program was built in,
 * in share/ridge beside the program's bin, and in PREFIX/share/ridge. The first folder that has a
 * name wins, so that a user's own file replaces one that came with ridge.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_FIND_H
#define RG_CORE_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"

typedef struct rg_data_entry {
    const char *name; /* file name without ".yaml" */
    const char *path;
} rg_data_entry;

/** Whether text is a path rather than a name: it has a '/', or ends in ".yaml", ".yml" or ".json".
 */
bool rg_data_is_path(const char *text);

/** All files NAME.yaml of a kind, by name in byte order; where folders share a name, the first
 * one's. Errors: RG_ERR_IO when a folder cannot be read, RG_ERR_LIMIT. No folder at all gives count
 * 0. */
rg_status rg_data_list(rg_arena *arena, const char *kind, const rg_data_entry **out, size_t *count,
                       rg_err *err);

/** Path of the file that name_or_path means; a path comes back as it is. Case does not count, and
 * '_' is '-'. A name that begins one file's name ("l40" for l40-pcie) means that one; one that
 * begins several ("h100": h100-pcie, h100-sxm) is refused with the list, an unknown one with the
 * nearest name. what names the thing in messages: "hardware", "model". Errors: RG_ERR_USAGE,
 * RG_ERR_IO. */
rg_status rg_data_find(rg_arena *arena, const char *kind, const char *what,
                       const char *name_or_path, const char **path, rg_err *err);

/** Like rg_data_find, but *path is NULL for a name that no file of the kind has to the letter
 * (case and '_' aside), so that the caller may look elsewhere. */
rg_status rg_data_try(rg_arena *arena, const char *kind, const char *name_or_path,
                      const char **path, rg_err *err);

/** Path of one file of a kind by its full name ("plots", "roofline.gp"). RG_ERR_IO when no folder
 * has it. */
rg_status rg_data_file(rg_arena *arena, const char *kind, const char *file, const char **path,
                       rg_err *err);

#endif

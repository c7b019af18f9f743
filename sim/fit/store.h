/* fit/store.h: fitted constants into the fit: section of a hardware file, the rest untouched.
 *
 * Reads core/file.h, fit/calibrate.h. Text in, text out: comments and order of the file stay; the
 * file appears whole or not at all.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_STORE_H
#define RG_FIT_STORE_H

#include "fit/calibrate.h"

/** What stands beside the constants of a group. */
typedef struct rg_fit_provenance {
    const char *date;  /* as the caller gives it; NULL: left out */
    const char *data;  /* table, digest, device */
    const char *split; /* as it was declared */
} rg_fit_provenance;

/** Replace or add the groups of the calibrations in the hardware file at path. */
rg_status rg_fit_store(rg_arena *arena, const char *path, const rg_calibration *calibrations,
                       int count, const rg_fit_provenance *provenance, rg_err *err);
/** The same on text in memory: file text in, new text out. */
rg_status rg_fit_store_text(rg_arena *arena, const char *text, const rg_calibration *calibrations,
                            int count, const rg_fit_provenance *provenance, char **out,
                            rg_err *err);

/** Put a band of carried-over predictions (what these constants were worth on another device) into
 * a group that the file at path has; a group that it has not is passed over. */
rg_status rg_fit_store_carried(rg_arena *arena, const char *path, const char *group,
                               const rg_class_errors *classes, int count, const char *data,
                               rg_err *err);

#endif

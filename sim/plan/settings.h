/* plan/settings.h: what settings.c, typed.c and read.c share; nobody else reads it.
 *
 * Reads plan/plan.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_SETTINGS_H
#define RG_PLAN_SETTINGS_H

#include "plan/plan.h"

/** Values of a setting that is known; count 0 when it was not given. */
const rg_plan_names *rg_plan_text_get(const rg_plan_text *text, const char *name);
/** The plan file, NULL for none. */
const char *rg_plan_text_path(const rg_plan_text *text);

/** A value that will not do: RG_ERR_INPUT at its place in a file, RG_ERR_USAGE as an option. */
rg_status rg_plan_text_bad(rg_err *err, const rg_plan_names *values, int i, const char *name,
                           const char *expected);
/** The error of a reader, as that of a setting. */
rg_status rg_plan_text_relay(rg_status status, const rg_plan_names *values, const char *name,
                             rg_err *err);
/* Settings by name; what is not given is left as it is. */
rg_status rg_plan_text_quantity(const rg_plan_text *text, const char *name, rg_dim dim, double *out,
                                rg_err *err);
rg_status rg_plan_text_real(const rg_plan_text *text, const char *name, double least, double most,
                            double *out, rg_err *err);
rg_status rg_plan_text_int(const rg_plan_text *text, const char *name, int64_t least, int64_t most,
                           int64_t *out, rg_err *err);
/** NULL when it is not given. */
const char *rg_plan_text_one(const rg_plan_text *text, const char *name);
rg_status rg_plan_text_ints(const rg_plan_text *text, const char *name, int64_t least,
                            rg_plan_ints *out, rg_err *err);
rg_status rg_plan_text_bools(const rg_plan_text *text, const char *name, bool out[2], bool *given,
                             rg_err *err);
/** Index of a value among names, NULL behind the last. */
rg_status rg_plan_text_choice(const rg_plan_names *values, int i, const char *name,
                              const char *const *names, int *out, rg_err *err);

#endif

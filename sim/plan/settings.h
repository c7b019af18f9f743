/* plan/settings.h: what settings.c and read.c share; nobody else reads it.
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

#endif

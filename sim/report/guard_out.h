/* report/guard_out.h: verdicts of the guard in the forms that CI systems read.
 *
 * Reads fit/guard.h. JUnit XML: regressed is a failure, missing and incomparable are errors,
 * inconclusive is skipped with its reason; the figures stand in the suite's properties, where every
 * common schema allows them. Lines of GitHub annotations point at the baseline's line. GitLab takes
 * its code quality JSON.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_REPORT_GUARD_OUT_H
#define RG_REPORT_GUARD_OUT_H

#include <stdio.h>

#include "fit/guard.h"

/** Write JUnit XML. */
rg_status rg_guard_write_junit(const char *path, const rg_run *run, const rg_guard_result *result,
                               rg_err *err);
/** Write a Markdown summary: counts, then every verdict that is not ok, then the ok ones folded. */
rg_status rg_guard_write_markdown(const char *path, const rg_run *run,
                                  const rg_guard_result *result, rg_err *err);
/** Write GitLab's code quality report. */
rg_status rg_guard_write_gitlab(const char *path, const rg_guard_result *result, rg_err *err);
/** Print GitHub workflow commands ("::error file=…,line=…::…"). */
void rg_guard_print_github(FILE *out, const rg_guard_result *result);

#endif

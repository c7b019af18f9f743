/* cli/noc.h: the parts of `ridge noc` that fill a report.
 *
 * Reads noc, report.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_NOC_H
#define RG_CLI_NOC_H

#include "cli/args.h"

/** --replay CURVE.csv: reference and result side by side. RG_ERR_NO when --strict is given and a
 * row is outside its tolerance. */
rg_status rg_noc_command_replay(rg_arena *arena, const rg_args *args, rg_report *report,
                                rg_err *err);

#endif

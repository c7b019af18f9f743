/* cli/validate.h: what the two halves of ridge validate share.
 *
 * Reads cli/args.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_VALIDATE_H
#define RG_CLI_VALIDATE_H

#include "cli/args.h"

/** Runs of whole servers (table serving_agg): errors of time to first token and per token, ranking,
 * and the runs whose load is unlike the one predicted. */
rg_status rg_validate_serving(rg_arena *arena, const rg_args *args, const char *path, rg_err *err);

#endif

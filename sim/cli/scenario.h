/* cli/scenario.h: the scenario file of serve (kind: serve), whose keys are the options of serve.
 *
 * Reads cli/command.h, core/doc.h. Private to cli/.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_SCENARIO_H
#define RG_CLI_SCENARIO_H

#include "cli/command.h"
#include "core/doc.h"

/** Refuse a scenario with keys that are none of the options, with lists or with another kind. */
rg_status rg_scenario_read(rg_node *root, const rg_option *options, rg_err *err);

#endif

/* cli/commands.h: the list of commands, and their help in three forms.
 *
 * Reads cli/command.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_COMMANDS_H
#define RG_CLI_COMMANDS_H

#include <stdio.h>

#include "cli/command.h"

/** All commands in the order of the help; ends with NULL. */
extern const rg_command *const rg_commands[];
const rg_command *rg_command_find(const char *name);
/** The nearest command's name, NULL when none is near. */
const char *rg_command_nearest(const char *name);

void rg_help_all(FILE *out);
void rg_help_command(FILE *out, const rg_command *command);
/** ridge.1 in man(7) macros. */
void rg_help_man(FILE *out);
/** Completion script for bash. */
void rg_help_completion(FILE *out);

#endif

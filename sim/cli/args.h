/* cli/args.h: a command line parsed against a command's option table.
 *
 * Reads cli/command.h. getopt_long does the parsing; the table is the only list of options.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_ARGS_H
#define RG_CLI_ARGS_H

#include "cli/command.h"
#include "core/lookup.h"
#include "report/report.h"

/** Options that every command has: format, output, quiet, seed, help. Ends with name NULL. */
extern const rg_option rg_common_options[];

/** Parse argv[1..]; argv[0] is the command's name. RG_ERR_USAGE for an unknown option (with the
 * nearest), a missing value, too few or too many operands. */
rg_status rg_args_parse(rg_arena *arena, const rg_command *command, int argc, char **argv,
                        rg_args **out, rg_err *err);

/** The options as named values, for readers that serve files too. */
rg_lookup rg_arg_lookup(const rg_args *args);

/** The form that --format asks for. */
rg_status rg_arg_form(const rg_args *args, rg_form *out, rg_err *err);
/** A new report in the form that --format asks for. */
rg_status rg_arg_report(rg_arena *arena, const rg_args *args, int version, rg_report **out,
                        rg_err *err);
/** Write it to --output or stdout. */
rg_status rg_arg_write(const rg_args *args, rg_report *report, const char *csv_key, rg_err *err);

#endif

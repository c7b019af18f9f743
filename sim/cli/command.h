/* cli/command.h: a command as one const row; parser, help, completion and man page come from it.
 *
 * Reads everything below. One file cli/cmd_<name>.c per command defines rg_cmd_<name>;
 * cli/commands.c lists them.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_COMMAND_H
#define RG_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/quantity.h"

typedef struct rg_option {
    const char *name;     /* long name without dashes */
    char letter;          /* short form, 0 for none */
    const char *argument; /* "FILE", "N"; NULL for a flag */
    const char *fallback; /* default as text, shown in help; NULL for none */
    const char *help;     /* one line */
    bool repeatable;
} rg_option;

typedef struct rg_args rg_args; /* parsed command line */

typedef struct rg_command {
    const char *name, *group, *summary;
    const char *operands;              /* "SCENARIO.yaml", NULL for none */
    int least_operands, most_operands; /* most -1: any number */
    const char *description;           /* paragraphs for --help and the man page */
    const char *examples;              /* lines */
    const rg_option *options;          /* ends with name NULL; the common ones are added */
    rg_status (*run)(rg_arena *arena, const rg_args *args, rg_err *err);
} rg_command;

/** Value of an option: given, else its default, else NULL. The typed forms fail with RG_ERR_USAGE
 * "option --batch '0': ..." and assert that the option is declared. */
const char *rg_arg_text(const rg_args *args, const char *name);
bool rg_arg_flag(const rg_args *args, const char *name);
bool rg_arg_given(const rg_args *args, const char *name);
rg_status rg_arg_int(const rg_args *args, const char *name, int64_t least, int64_t most,
                     int64_t *out, rg_err *err);
rg_status rg_arg_real(const rg_args *args, const char *name, double least, double most, double *out,
                      rg_err *err);
rg_status rg_arg_quantity(const rg_args *args, const char *name, rg_dim dim, double *out,
                          rg_err *err);
/** Index of the value among names (NULL-terminated). */
rg_status rg_arg_choice(const rg_args *args, const char *name, const char *const *names, int *out,
                        rg_err *err);
/** All values of a repeatable option. */
int rg_arg_count(const rg_args *args, const char *name);
const char *rg_arg_nth(const rg_args *args, const char *name, int index);
int rg_arg_operands(const rg_args *args);
const char *rg_arg_operand(const rg_args *args, int index);
uint64_t rg_arg_seed(const rg_args *args);

#endif

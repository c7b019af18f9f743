// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <string.h>

#include "core/text.h"

/* One row a command; the order is that of the help. */
extern const rg_command rg_cmd_check;
extern const rg_command rg_cmd_coll;
extern const rg_command rg_cmd_estimate;
extern const rg_command rg_cmd_roofline;
extern const rg_command rg_cmd_fit;
extern const rg_command rg_cmd_guard;
extern const rg_command rg_cmd_help;
extern const rg_command rg_cmd_import;
extern const rg_command rg_cmd_list;
extern const rg_command rg_cmd_noc;
extern const rg_command rg_cmd_plan;
extern const rg_command rg_cmd_serve;
extern const rg_command rg_cmd_show;
extern const rg_command rg_cmd_sweep;
extern const rg_command rg_cmd_train;
extern const rg_command rg_cmd_validate;

const rg_command *const rg_commands[] = {
    /* answer */
    &rg_cmd_estimate,
    &rg_cmd_roofline,
    &rg_cmd_train,
    &rg_cmd_coll,
    &rg_cmd_noc,
    &rg_cmd_serve,
    &rg_cmd_plan,
    &rg_cmd_sweep,
    /* measure */
    &rg_cmd_fit,
    &rg_cmd_guard,
    &rg_cmd_validate,
    /* data */
    &rg_cmd_check,
    &rg_cmd_import,
    &rg_cmd_list,
    &rg_cmd_show,
    /* about ridge */
    &rg_cmd_help,
    NULL,
};

const rg_command *rg_command_find(const char *name)
{
    for (int i = 0; rg_commands[i]; i++)
        if (strcmp(rg_commands[i]->name, name) == 0)
            return rg_commands[i];
    return NULL;
}

const char *rg_command_nearest(const char *name)
{
    const char *names[sizeof rg_commands / sizeof rg_commands[0]] = {NULL};
    for (int i = 0; rg_commands[i]; i++)
        names[i] = rg_commands[i]->name;
    return rg_text_nearest(name, names);
}

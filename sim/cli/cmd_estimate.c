// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"
extern const rg_command rg_cmd_estimate;
static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    (void)arena;
    (void)args;
    return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "estimate is not linked in yet");
}
const rg_command rg_cmd_estimate = {.name = "estimate",
                                    .group = "answer",
                                    .summary =
                                        "time, memory and bottleneck of one model on one machine",
                                    .run = run};

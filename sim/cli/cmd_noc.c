/* cli/cmd_noc.c: latency, throughput and hot links of an on-chip network. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"
#include "cli/noc.h"

extern const rg_command rg_cmd_noc;

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    rg_report *report;
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    if (rg_arg_given(args, "replay"))
        return rg_noc_command_replay(arena, args, report, err);
    return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "nothing to do; give --replay CURVE.csv");
}

static const rg_option options[] = {
    {"replay", 0, "CURVE.csv", NULL, "run every row of a reference curve and compare", false},
    {"topology", 0, "FILE", NULL, "network of the curve (anynet), instead of its network column",
     false},
    {"seeds", 0, "N", "5", "runs per point, averaged", false},
    {"strict", 0, NULL, NULL, "exit 1 when a row is outside its tolerance", false},
    {"check", 0, NULL, NULL, "verify flits and credits at every cycle (slow)", false},
    {0}};

const rg_command rg_cmd_noc = {
    .name = "noc",
    .group = "answer",
    .summary = "latency, throughput and hot links of an on-chip network",
    .description = "Simulates an on-chip network cycle by cycle.",
    .examples = "  ridge noc --replay m8_uni_p1_v4_b8.csv\n",
    .options = options,
    .run = run,
};

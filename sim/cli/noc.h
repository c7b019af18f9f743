/* cli/noc.h: the parts of `ridge noc` that fill a report.
 *
 * Reads noc, report.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_NOC_H
#define RG_CLI_NOC_H

#include "cli/args.h"
#include "noc/design.h"
#include "noc/sweep.h"

/** --replay CURVE.csv: reference and result side by side. RG_ERR_NO when --strict is given and a
 * row is outside its tolerance. */
rg_status rg_noc_command_replay(rg_arena *arena, const rg_args *args, rg_report *report,
                                rg_err *err);
/** NETWORK: closed form, loads, saturation, hot links, under drawn traffic. */
rg_status rg_noc_command_run(rg_arena *arena, const rg_args *args, rg_report *report, rg_err *err);
/** --hw NAME: what the accelerator's network feeds its units with, beside what its file says. */
rg_status rg_noc_command_feed(rg_arena *arena, const rg_args *args, rg_report *report, rg_err *err);
/** NETWORK with --trace or --operator: what a stream of packets takes. */
rg_status rg_noc_command_trace(rg_arena *arena, const rg_args *args, rg_report *report,
                               rg_err *err);

/** The network of the first operand, with what it assumes put into the report. */
rg_status rg_noc_command_design(rg_arena *arena, const rg_args *args, rg_report *report,
                                rg_noc_design **out, rg_err *err);
/** Router and link of an output as text: "gpc 3 to router 9", "router 5 to node 12". */
const char *rg_noc_link_name(rg_arena *arena, const rg_noc_graph *graph, int output, rg_err *err);
/** Table of the busiest links; load[] is flits per cycle of each output, injected[] of each node
 * (NULL: left out). */
rg_status rg_noc_report_links(rg_arena *arena, rg_report *report, const rg_noc_graph *graph,
                              const double *load, const double *injected, int rows, rg_err *err);
/** Heat map of the links. */
rg_status rg_noc_plot_links(rg_arena *arena, const rg_noc_design *design, const double *load,
                            const char *title, const char *path, rg_err *err);

#endif

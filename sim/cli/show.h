/* cli/show.h: one hardware thing or engine in full, for `ridge show`.
 *
 * Reads hw/cluster.h, hw/price.h, step/step.h, report/report.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_SHOW_H
#define RG_CLI_SHOW_H

#include "hw/cluster.h"
#include "hw/price.h"
#include "report/report.h"
#include "step/step.h"

/** Everything that the file of a device says, each figure with its source. */
rg_status rg_show_accel(rg_arena *arena, rg_accel *accel, rg_form form, rg_report *report,
                        rg_err *err);
/** A node or cluster; the device by name only. */
rg_status rg_show_cluster(rg_arena *arena, rg_cluster *cluster, rg_form form, rg_report *report,
                          rg_err *err);
/** Constants of a serving engine. */
rg_status rg_show_engine(rg_arena *arena, const rg_engine *engine, rg_form form, rg_report *report,
                         rg_err *err);
/** A price list. */
rg_status rg_show_prices(const rg_price_list *prices, rg_report *report, rg_err *err);
#endif

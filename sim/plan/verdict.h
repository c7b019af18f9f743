/* plan/verdict.h: why the others lost, their order, and the nearest where nothing keeps the limits.
 *
 * Reads plan/search.h, of which it is a part.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_VERDICT_H
#define RG_PLAN_VERDICT_H

#include "plan/search.h"

/** Explain each outcome and put the candidates in order. */
rg_status rg_plan_put_in_order(rg_arena *arena, rg_plan_run *run, rg_err *err);
/** Without a winner: try those that were ruled out unseen, and name the nearest. */
rg_status rg_plan_look_for_nearest(rg_plan_run *run, const int *list, int count, rg_err *err);

#endif

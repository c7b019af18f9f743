/* plan/machines.h: the devices of a plan, with their prices; part of the space, nobody else reads
 * it.
 *
 * Reads plan/space.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_MACHINES_H
#define RG_PLAN_MACHINES_H

#include "plan/space.h"

/** Machines of the plan's list, or all that have a price at its term. Errors: unknown names. */
rg_status rg_machines_list(rg_arena *arena, const rg_changes *changes, rg_space *space,
                           rg_err *err);
/** What is made least: the plan's goal, or devices where no price is known. */
void rg_machines_goal(rg_space *space);

#endif

/* hw/follow.h: figures that a what-if change takes with it.
 *
 * Reads hw/cluster.h. A change of one figure would otherwise be without effect where another, of
 * the same thing, is what predictions read. One that is changed by name itself stays as given.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_FOLLOW_H
#define RG_HW_FOLLOW_H

#include "hw/cluster.h"

/** Peaks follow the boost clock; a memory's usable part its capacity; a port's rate the number and
 * the rate of its links. before: the same device without the changes. */
rg_status rg_follow_device(rg_arena *arena, const rg_accel *before, rg_accel *accel, rg_err *err);

/** The scale-up fabric follows rate and latency of the device's port of its technology. */
rg_status rg_follow_links(rg_arena *arena, const rg_accel *before, const rg_changes *changes,
                          rg_cluster *cluster, rg_err *err);

#endif

/* hw/fit.h: the fitted constants of a hardware file.
 *
 * Reads hw/accel.h. fit: holds groups of constants, groups within groups, and what the fit was made
 * of: date, data, rows, error, source, note. borrow: NAME uses another device's constants wherever
 * the file has none of its own.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_FIT_H
#define RG_HW_FIT_H

#include "hw/accel.h"

/** Read fit: into accel; lender (may be NULL) is the loaded device of borrow:. */
rg_status rg_fit_read(rg_arena *arena, rg_node *map, const rg_accel *lender, rg_accel *accel,
                      rg_err *err);
/** Use all of lender's constants, marked as borrowed. */
rg_status rg_fit_borrow(rg_arena *arena, const rg_accel *lender, rg_accel *accel, rg_err *err);

#endif

/* hw/accel_keys.h: the keys of a hardware file, section by section.
 *
 * Reads hw/accel.h. For the loader and the list of figures only: what can be read can be shown.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_ACCEL_KEYS_H
#define RG_HW_ACCEL_KEYS_H

#include "hw/accel.h"

extern const rg_figure_key rg_accel_unit_keys[];  /* units: in rg_accel */
extern const rg_figure_key rg_accel_clock_keys[]; /* clocks: in rg_accel */
extern const rg_figure_key rg_accel_power_keys[]; /* power: in rg_accel */
extern const rg_figure_key rg_accel_noc_keys[];   /* noc: in rg_accel */
extern const rg_figure_key rg_accel_peak_keys[];  /* a peak: in rg_peak */
extern const rg_figure_key rg_accel_level_keys[]; /* a level: in rg_memory_level */
extern const rg_figure_key rg_accel_port_keys[];  /* a link: in rg_link_port */

#endif

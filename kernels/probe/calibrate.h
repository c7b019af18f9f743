/* kernels/probe/calibrate.h: the figures of a hardware file, measured.
 *
 * Reads command.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_CALIBRATE_H
#define RG_PROBE_CALIBRATE_H

#include "command.h"

rg_status rg_probe_calibrate(rg_arena *arena, const rg_probe_options *options, rg_err *err);

#endif

/* roofline/roofline.h: bounds of time per memory level, ridge points, and axes to draw them on.
 *
 * Reads core, hw/accel.h. A kernel that does F flops and moves Q_l bytes at level l takes at least
 *
 *   t >= max( F / peak, Q_l / bandwidth_l for every level l )
 *
 * Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009, for one level; Ilic, Pratas,
 * Sousa, "Cache-aware roofline model", IEEE CAL 13(1), 2014, for several.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_ROOFLINE_ROOFLINE_H
#define RG_ROOFLINE_ROOFLINE_H

#include <stdbool.h>

#include "core/units.h"
#include "hw/accel.h"

/** Work of one kernel: flops in one type, and bytes at each level of the accelerator's order; 0 for
 * a level that is not known. */
typedef struct rg_work {
    rg_dtype math;
    bool vector; /* runs on the vector unit even if a matrix unit has the type */
    rg_flops flops;
    rg_bytes bytes[RG_MAX_LEVELS];
} rg_work;

enum { RG_LIMIT_COMPUTE = -1 };

typedef struct rg_roof_time {
    rg_seconds total;                /* the largest of the bounds */
    rg_seconds compute;              /* flops / peak */
    rg_seconds level[RG_MAX_LEVELS]; /* bytes / bandwidth, 0 where bytes are */
    int limit;                       /* RG_LIMIT_COMPUTE or the index of the level */
} rg_roof_time;

/** Bandwidth of a level over the whole device: the spec figure, else bytes per clock at its clock,
 * else the measured figure. Errors: RG_ERR_MODEL naming the missing figure. */
rg_status rg_roof_bandwidth(const rg_accel *accel, int level, rg_byte_rate *out, rg_err *err);

/** Dense peak for a type, accumulating in fp32, int32 or fp64 where the device tells them apart.
 * RG_ERR_MODEL when the device has none; the text lists the types that it has. */
rg_status rg_roof_peak(const rg_accel *accel, rg_dtype math, bool vector, rg_flop_rate *out,
                       rg_err *err);

/** Bounds of one kernel. Zero flops and bytes are RG_ERR_MODEL: zero work has no time. */
rg_status rg_roof_time_of(const rg_accel *accel, const rg_work *work, rg_roof_time *out,
                          rg_err *err);

/** Intensity at which compute and a level bind alike, flop/byte: peak / bandwidth. */
double rg_roof_ridge(rg_flop_rate peak, rg_byte_rate bandwidth);

/** Attainable rate at an intensity: min(peak, intensity * bandwidth). */
rg_flop_rate rg_roof_attainable(double intensity_flops_per_byte, rg_flop_rate peak,
                                rg_byte_rate bandwidth);

/** Axis limits in whole decades around the machine's ceilings, whatever the points: intensity from
 * 0.1 (decode lives near 1) to past the highest ridge point, rate over the five decades
 * below the one above the highest peak. Errors: RG_ERR_MODEL when the file gives no roof. */
typedef struct rg_roof_axes {
    double x_least, x_most, y_least, y_most;
} rg_roof_axes;
rg_status rg_roof_axes_of(const rg_accel *accel, rg_roof_axes *out, rg_err *err);

#endif

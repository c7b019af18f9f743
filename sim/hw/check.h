/* hw/check.h: does a hardware file agree with itself and with what is known of its architecture?
 *
 * Reads hw/accel.h. Loading already refuses unknown keys, missing keys and figures without a
 * source; this compares figures with one another. Each finding has a name, so that it can be looked
 * up.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_CHECK_H
#define RG_HW_CHECK_H

#include "hw/accel.h"

typedef enum rg_severity {
    RG_SEVERITY_ERROR,   /* two figures contradict each other */
    RG_SEVERITY_WARNING, /* unlikely, worth a look */
} rg_severity;

typedef struct rg_finding {
    rg_severity severity;
    const char *name; /* "peak-recompute", "peak-sparse", "bandwidth-recompute", ... */
    rg_pos pos;
    const char *text; /* what is wrong, the values, what would do */
} rg_finding;

typedef struct rg_findings {
    const rg_finding *list;
    int count;
    int errors;
} rg_findings;

/** All findings on one accelerator, in file order of the sections.
 *
 *   peak-recompute       rate against units x ops_per_clock_per_unit x clock, 1 %
 *   peak-sparse          rate is twice that, twice the known dense rate, or equal to sparse:
 *   sparse-ratio         sparse is not twice the dense rate, 3 %
 *   sustained-over-peak  a measured rate above the dense peak
 *   bandwidth-recompute  bandwidth against bytes_per_clock x clock, 1 %
 *   pin-recompute        bandwidth against bus_width x pin_rate, 1 %
 *   measured-over-spec   a measured bandwidth above the specification
 *   usable-capacity      more memory usable than GB read as GiB could explain
 *   level-order          a level further out is faster than one nearer the arithmetic
 *   link-recompute       rate_per_direction against links x rate_per_link, 1 %
 *   link-both-directions rate_per_direction is twice that
 *   clock-order          base or sustained above boost, or a peak's clock above boost
 *   power-order          idle power not below TDP
 *   register-capacity    registers x 4 bytes against the capacity of the register file
 *   systolic-shape       flop per clock are no multiple of 2 x rows x columns
 *   name-differs         name: is not the name of the file
 *   unknown-node         usual_node: is no node or cluster
 *   unknown-network      noc: file: is no network
 */
rg_status rg_accel_check(rg_arena *arena, const rg_accel *accel, rg_findings *out, rg_err *err);

#endif

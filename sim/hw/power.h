/* hw/power.h: watts, energy, carbon and money of devices at work.
 *
 * Reads hw/cluster.h. A first-order model: good for comparing arrangements, not for a wall meter.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_HW_POWER_H
#define RG_HW_POWER_H

#include "core/units.h"
#include "hw/cluster.h"

/** How the shares of compute and memory in use make up the dynamic power; see rg_accel_power. */
extern const double rg_power_compute_full_ratio; /* of peak compute at which TDP is reached: 0.78 */
extern const double rg_power_memory_ratio; /* of (TDP - idle) at full memory bandwidth: 0.36 */

/** Power of one device.
 *
 *   P = idle + (TDP - idle) min(1, c / 0.78 + 0.36 m)
 *
 *   c  model or kernel flop/s over the dense peak of the type in use
 *   m  bytes/s moved over the memory bandwidth
 *
 * c: large dense products of random data are capped by power at 0.78 of peak on an H200 (770 to 800
 * of 989 TFLOP/s). m: autoregressive decode, bound by memory, draws up to 300 of 700 W on an H200
 * (arXiv:2605.11999, abstract): (300 - 75) / (700 - 75) = 0.36. Assumed to carry over to other
 * devices. A missing idle power counts as a tenth of TDP. Errors: RG_ERR_MODEL when the file gives
 * no TDP, or a share is negative or no number.
 */
rg_status rg_accel_power(const rg_accel *accel, double compute_ratio, double memory_ratio,
                         rg_watts *out, rg_err *err);

/** The share of (TDP - idle) in it: min(1, c / 0.78 + 0.36 m). */
double rg_power_dynamic_ratio(double compute_ratio, double memory_ratio);

/** What the place costs: the user's figures, none of them assumed by ridge. */
typedef struct rg_site {
    double overhead_ratio;     /* power usage effectiveness: all power over that of servers; 1 */
    double carbon_g_per_kwh;   /* of the grid; 0: not asked for */
    double tariff_usd_per_kwh; /* of electricity; 0: part of the hourly price */
} rg_site;

typedef struct rg_energy_account {
    rg_joules devices, hosts, site; /* devices; the rest of their nodes; what the place adds */
    rg_joules total;
    double carbon_g; /* total times the grid's intensity */
    rg_dollars electricity;
} rg_energy_account;

/** Energy of so many devices at a mean power over a time. Hosts count by the share of a node's
 * devices in use; a cluster without that figure counts none. Errors: RG_ERR_MODEL for a negative or
 * infinite argument, or an overhead below 1. */
rg_status rg_energy_of(const rg_cluster *cluster, double devices, rg_watts each, rg_seconds time,
                       const rg_site *site, rg_energy_account *out, rg_err *err);

#endif

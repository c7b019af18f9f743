/* hw/power.c: watts, energy, carbon and money of devices at work. */
// SPDX-License-Identifier: Apache-2.0
#include "hw/power.h"

#include <math.h>

const double rg_power_compute_full_ratio = 0.78;
const double rg_power_memory_ratio = 0.36;

/* Of TDP, where a file gives no idle power. */
static const double idle_ratio = 0.1;
static const double joules_per_kwh = 3.6e6;

double rg_power_dynamic_ratio(double compute_ratio, double memory_ratio)
{
    return fmin(1.0,
                compute_ratio / rg_power_compute_full_ratio + rg_power_memory_ratio * memory_ratio);
}

rg_status rg_accel_power(const rg_accel *accel, double compute_ratio, double memory_ratio,
                         rg_watts *out, rg_err *err)
{
    if (!accel->tdp.known)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "%s: no figure for power.tdp", accel->name);
    if (!(compute_ratio >= 0) || !(memory_ratio >= 0) || isinf(compute_ratio) ||
        isinf(memory_ratio))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "power of %s at '%g' of compute and '%g' of memory; shares are 0 or more",
                       accel->name, compute_ratio, memory_ratio);
    const double tdp = accel->tdp.value;
    const double idle = accel->idle_power.known ? accel->idle_power.value : idle_ratio * tdp;
    *out = RG_W(idle + (tdp - idle) * rg_power_dynamic_ratio(compute_ratio, memory_ratio));
    return RG_OK;
}

rg_status rg_energy_of(const rg_cluster *cluster, double devices, rg_watts each, rg_seconds time,
                       const rg_site *site, rg_energy_account *out, rg_err *err)
{
    const double values[] = {devices, each.v, time.v, site->carbon_g_per_kwh,
                             site->tariff_usd_per_kwh};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (!(values[i] >= 0) || isinf(values[i]))
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "energy of '%g' devices at %g W for %g s at %g g/kWh and %g $/kWh; none "
                           "may be below 0",
                           devices, each.v, time.v, site->carbon_g_per_kwh,
                           site->tariff_usd_per_kwh);
    if (!(site->overhead_ratio >= 1) || isinf(site->overhead_ratio))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "power usage effectiveness '%g'; it is 1 or more", site->overhead_ratio);
    const double per_device = cluster->overhead_power.known ? cluster->overhead_power.value /
                                                                  (double)cluster->devices_per_node
                                                            : 0.0;
    out->devices = RG_J(devices * each.v * time.v);
    out->hosts = RG_J(devices * per_device * time.v);
    const double servers = out->devices.v + out->hosts.v;
    out->site = RG_J(servers * (site->overhead_ratio - 1.0));
    out->total = RG_J(servers + out->site.v);
    out->carbon_g = out->total.v / joules_per_kwh * site->carbon_g_per_kwh;
    out->electricity = RG_USD(out->total.v / joules_per_kwh * site->tariff_usd_per_kwh);
    return RG_OK;
}

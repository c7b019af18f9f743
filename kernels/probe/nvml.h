/* kernels/probe/nvml.h: clocks, power, temperature and throttling from the management library.
 *
 * Reads driver.h. libnvidia-ml.so.1 comes with the driver and has no header in the toolkit; the few
 * functions are declared here. Never required: what it does not tell stays unknown.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_NVML_H
#define RG_PROBE_NVML_H

#include "driver.h"

typedef struct rg_nvml {
    void *library, *device;
    char reason[512]; /* why there is none */
    char driver[96];
    int mig_mode;         /* 1 on, 0 off, -1 unknown */
    double power_limit_w; /* negative: unknown */
} rg_nvml;

/** One look at the device; negative values are unknown. */
typedef struct rg_nvml_state {
    double sm_mhz, memory_mhz, power_w, temperature_c;
    bool throttle_known;
    unsigned long long throttle; /* bits of nvmlClocksThrottleReasons */
} rg_nvml_state;

/** Open for the device at a PCI address; without the library only `reason` is set. */
void rg_nvml_open(rg_nvml *nvml, const char *folder, const char *pci);
rg_nvml_state rg_nvml_look(const rg_nvml *nvml);
/** Reasons that slow a kernel (power, heat, brake) as "sw_power_cap,hw_slowdown"; "" for none. */
void rg_nvml_throttle_text(unsigned long long bits, char *out, size_t size);

#endif

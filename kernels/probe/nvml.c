/* kernels/probe/nvml.c: looking at clocks, power and heat.
 *
 * Reads nvml.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define RG_NVML_CALLS(X)                                         \
    X(nvmlInit_v2, (void))                                       \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *, void **)) \
    X(nvmlSystemGetDriverVersion, (char *, unsigned))            \
    X(nvmlDeviceGetMigMode, (void *, unsigned *, unsigned *))    \
    X(nvmlDeviceGetEnforcedPowerLimit, (void *, unsigned *))     \
    X(nvmlDeviceGetClockInfo, (void *, int, unsigned *))         \
    X(nvmlDeviceGetPowerUsage, (void *, unsigned *))             \
    X(nvmlDeviceGetTemperature, (void *, int, unsigned *))       \
    X(nvmlDeviceGetCurrentClocksThrottleReasons, (void *, unsigned long long *))

/* One device is measured in a process, so one table does. */
static struct {
#define RG_NVML_MEMBER(name, arguments) int(*name) arguments;
    RG_NVML_CALLS(RG_NVML_MEMBER)
#undef RG_NVML_MEMBER
} calls;

void rg_nvml_open(rg_nvml *nvml, const char *folder, const char *pci)
{
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    *nvml = (rg_nvml){.mig_mode = -1, .power_limit_w = -1};
    nvml->library = rg_cuda_library(folder, names, nvml->reason, sizeof nvml->reason);
    if (!nvml->library)
        return;
#define RG_NVML_LOOKUP(name, arguments) *(void **)&calls.name = dlsym(nvml->library, #name);
    RG_NVML_CALLS(RG_NVML_LOOKUP)
#undef RG_NVML_LOOKUP
    int result = calls.nvmlInit_v2 ? calls.nvmlInit_v2() : -1;
    if (result == 0)
        result = calls.nvmlDeviceGetHandleByPciBusId_v2
                     ? calls.nvmlDeviceGetHandleByPciBusId_v2(pci, &nvml->device)
                     : -1;
    if (result != 0) {
        snprintf(nvml->reason, sizeof nvml->reason, "NVML error %d for device %s", result, pci);
        nvml->device = NULL;
        return;
    }
    if (!calls.nvmlSystemGetDriverVersion ||
        calls.nvmlSystemGetDriverVersion(nvml->driver, sizeof nvml->driver) != 0)
        nvml->driver[0] = 0;
    unsigned current = 0, pending = 0, milliwatt = 0;
    if (calls.nvmlDeviceGetMigMode &&
        calls.nvmlDeviceGetMigMode(nvml->device, &current, &pending) == 0)
        nvml->mig_mode = (int)current;
    if (calls.nvmlDeviceGetEnforcedPowerLimit &&
        calls.nvmlDeviceGetEnforcedPowerLimit(nvml->device, &milliwatt) == 0)
        nvml->power_limit_w = milliwatt / 1000.0;
}

rg_nvml_state rg_nvml_look(const rg_nvml *nvml)
{
    rg_nvml_state state = {-1, -1, -1, -1, false, 0};
    unsigned value = 0;
    if (!nvml->device)
        return state;
    if (calls.nvmlDeviceGetClockInfo) {
        if (calls.nvmlDeviceGetClockInfo(nvml->device, 1, &value) == 0)
            state.sm_mhz = value;
        if (calls.nvmlDeviceGetClockInfo(nvml->device, 2, &value) == 0)
            state.memory_mhz = value;
    }
    if (calls.nvmlDeviceGetPowerUsage && calls.nvmlDeviceGetPowerUsage(nvml->device, &value) == 0)
        state.power_w = value / 1000.0;
    if (calls.nvmlDeviceGetTemperature &&
        calls.nvmlDeviceGetTemperature(nvml->device, 0, &value) == 0)
        state.temperature_c = value;
    state.throttle_known =
        calls.nvmlDeviceGetCurrentClocksThrottleReasons &&
        calls.nvmlDeviceGetCurrentClocksThrottleReasons(nvml->device, &state.throttle) == 0;
    return state;
}

void rg_nvml_throttle_text(unsigned long long bits, char *out, size_t size)
{
    static const struct {
        unsigned long long bit;
        const char *name;
    } reasons[] = {{0x4, "sw_power_cap"},
                   {0x8, "hw_slowdown"},
                   {0x20, "sw_thermal_slowdown"},
                   {0x40, "hw_thermal_slowdown"},
                   {0x80, "hw_power_brake"}};
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if ((bits & reasons[i].bit) && used < size)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "", reasons[i].name);
}

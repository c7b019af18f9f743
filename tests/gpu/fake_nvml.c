/* tests/gpu/fake_nvml.c: a management library that gives fixed figures.
 *
 * RIDGE_FAKE_THROTTLE holds the bits of the clocks' throttle reasons.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device)
{
    *device = (void *)pci;
    return 0;
}
int nvmlSystemGetDriverVersion(char *text, unsigned size);
int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "570.00.01");
    return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    (void)device;
    *current = *pending = 0;
    return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatt);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatt)
{
    (void)device;
    *milliwatt = 700000;
    return 0;
}
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    (void)device;
    *mhz = type == 1 ? 1980 : 3201;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatt);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatt)
{
    (void)device;
    *milliwatt = 123456;
    return 0;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)device, (void)sensor;
    *celsius = 45;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits)
{
    const char *text = getenv("RIDGE_FAKE_THROTTLE");
    (void)device;
    *bits = text ? strtoull(text, NULL, 0) : 0;
    return 0;
}

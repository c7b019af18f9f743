/* tests/gpu/fake_cupti.c: a CUPTI that answers what a test asks for, for paths that need a GPU.
 *
 * Reads the toolkit's CUPTI headers for its types. Environment: RIDGE_FAKE_CUPTI=call=code[,...]
 * makes calls fail, RIDGE_FAKE_LOG=FILE gets the names of the calls in order. Kernel records have
 * 1000 ns each; metric i of a set is counted as 1000 (i + 1).
 */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

static CUptiResult step(const char *call)
{
    const char *log = getenv("RIDGE_FAKE_LOG"), *text = getenv("RIDGE_FAKE_CUPTI");
    if (log) {
        FILE *out = fopen(log, "a");
        fprintf(out, "%s\n", call);
        fclose(out);
    }
    const size_t length = strlen(call);
    for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
        if (strncmp(text, call, length) == 0 && text[length] == '=')
            return (CUptiResult)atoi(text + length + 1);
    return CUPTI_SUCCESS;
}

#define PLAIN(name, type)     \
    CUptiResult name(type *p) \
    {                         \
        (void)p;              \
        return step(#name);   \
    }

CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = 130001;
    return CUPTI_SUCCESS;
}

PLAIN(cuptiProfilerInitialize, CUpti_Profiler_Initialize_Params)
PLAIN(cuptiProfilerHostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params)
PLAIN(cuptiProfilerHostGetBaseMetrics, CUpti_Profiler_Host_GetBaseMetrics_Params)
PLAIN(cuptiProfilerHostGetMetricProperties, CUpti_Profiler_Host_GetMetricProperties_Params)
PLAIN(cuptiProfilerHostConfigAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params)
PLAIN(cuptiProfilerHostGetConfigImage, CUpti_Profiler_Host_GetConfigImage_Params)
PLAIN(cuptiRangeProfilerDisable, CUpti_RangeProfiler_Disable_Params)
PLAIN(cuptiRangeProfilerSetConfig, CUpti_RangeProfiler_SetConfig_Params)
PLAIN(cuptiRangeProfilerStart, CUpti_RangeProfiler_Start_Params)
PLAIN(cuptiRangeProfilerPushRange, CUpti_RangeProfiler_PushRange_Params)
PLAIN(cuptiRangeProfilerPopRange, CUpti_RangeProfiler_PopRange_Params)
PLAIN(cuptiRangeProfilerDecodeData, CUpti_RangeProfiler_DecodeData_Params)
PLAIN(cuptiRangeProfilerGetCounterDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params)

CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *p)
{
    const char *vgpu = getenv("RIDGE_FAKE_VGPU");
    p->isSupported =
        vgpu ? CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED : CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    p->architecture = p->sli = p->confidentialCompute = p->cmp =
        CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    p->vGpu = vgpu ? CUPTI_PROFILER_CONFIGURATION_DISABLED : CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    return step("cuptiProfilerDeviceSupported");
}
CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
    const char *chip = getenv("RIDGE_FAKE_CHIP");
    p->pChipName = chip ? chip : "GH100";
    return step("cuptiDeviceGetChipName");
}
CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    if (!p->pCounterAvailabilityImage)
        p->counterAvailabilityImageSize = 64;
    return step("cuptiProfilerGetCounterAvailability");
}
CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *p)
{
    p->pHostObject = (CUpti_Profiler_Host_Object *)p;
    return step("cuptiProfilerHostInitialize");
}
CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *p)
{
    p->configImageSize = 128;
    return step("cuptiProfilerHostGetConfigImageSize");
}
CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *p)
{
    p->numOfPasses = 1;
    return step("cuptiProfilerHostGetNumOfPasses");
}
CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    for (size_t i = 0; i < p->numMetrics; i++)
        p->pMetricValues[i] = getenv("RIDGE_FAKE_NAN") ? 0.0 / 0.0 : 1000.0 * (double)(i + 1);
    return step("cuptiProfilerHostEvaluateToGpuValues");
}
CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
    p->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)p;
    return step("cuptiRangeProfilerEnable");
}
CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    p->counterDataSize = 256;
    return step("cuptiRangeProfilerGetCounterDataSize");
}
CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    memset(p->pCounterData, 7, p->counterDataSize);
    return step("cuptiRangeProfilerCounterDataImageInitialize");
}
CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p)
{
    p->isAllPassSubmitted = 1;
    return step("cuptiRangeProfilerStop");
}

/* Activity: records for the launches that a test names. */
static CUpti_BuffersCallbackRequestFunc wanted;
static CUpti_BuffersCallbackCompleteFunc completed;
static int left;

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete)
{
    wanted = request;
    completed = complete;
    return step("cuptiActivityRegisterCallbacks");
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    (void)kind;
    return step("cuptiActivityEnable");
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    (void)kind;
    return step("cuptiActivityDisable");
}
CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0;
    const char *records = getenv("RIDGE_FAKE_RECORDS");
    left = records ? atoi(records) : 20;
    wanted(&buffer, &size, &most);
    completed(NULL, 0, buffer, size, size);
    return step("cuptiActivityFlushAll");
}
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    (void)valid;
    if (left-- <= 0)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    CUpti_ActivityKernel10 *kernel = (CUpti_ActivityKernel10 *)buffer;
    memset(kernel, 0, sizeof *kernel);
    kernel->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel->start = 5000;
    kernel->end = 6000;
    *record = (CUpti_Activity *)kernel;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = 0;
    return CUPTI_SUCCESS;
}

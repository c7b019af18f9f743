/* kernels/probe/counters.c: counting and tracing on a GPU through CUPTI.
 *
 * Reads counters.h, cupti_calls.h. The order of the calls is that of CUPTI 13's range profiler:
 * enable, size and initialise a counter data image, configure, then start, push, launch, pop, stop
 * until all passes are in, decode, disable. A user range with user replay: with sets of one pass
 * the operation runs once.
 */
// SPDX-License-Identifier: Apache-2.0
#include "counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *rg_cupti_meaning(int result)
{
    switch (result) {
    case 0:
        return "no error";
    case 8:
        return "CUPTI has no memory (8)";
    case 26:
        return "the counters are taken by another program (26): DCGM, nsys or ncu; `dcgmi "
               "profiling "
               "--pause` frees them from DCGM";
    case 27:
        return "not supported on this device (27)";
    case 31:
        return "not supported under MPS (31)";
    case 33:
        return "not supported on this virtual GPU (33)";
    case 35:
        return "no permission to read counters (35): run as root, or load the driver with "
               "NVreg_RestrictProfilingToAdminUsers=0";
    case 36:
    case 38:
        return "the old profiling interface is in use in this process (36, 38)";
    case 39:
        return "another CUPTI client is attached to this process (39): run outside nsys, ncu and "
               "framework profilers";
    case 40:
        return "the virtual GPU's host does not allow profiling (40)";
    case 41:
        return "counters cannot be read in confidential computing mode (41)";
    case 42:
        return "mining cards have no counters (42)";
    case 43:
        return "this MIG instance cannot be profiled (43): take an instance that owns all its "
               "memory slices, or switch MIG off";
    case 44:
        return "not supported with SLI (44)";
    case 45:
        return "not supported under WSL (45)";
    case 46:
        return "CUPTI does not know this chip (46): a newer CUPTI is needed";
    case 999:
        return "unknown CUPTI error (999): mostly another profiler or DCGM that holds the "
               "counters, "
               "or a driver that does not fit";
    default: {
        static char text[32];
        snprintf(text, sizeof text, "CUPTI error %d", result);
        return text;
    }
    }
}

static void give_reason(char *reason, size_t size, const char *call, int result)
{
    snprintf(reason, size, "%s: %s", call, rg_cupti_meaning(result));
}

#if RG_HAVE_CUPTI
#include "cupti_calls.h"

#include "core/stat.h"
#include "image.h"

static rg_status target_start(rg_cupti *cupti, const rg_gpu *gpu, rg_err *err)
{
    if (cupti->profiler_ready)
        return RG_OK;
    CUpti_Profiler_Initialize_Params init = {.structSize =
                                                 CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    CUptiResult result = cupti->cuptiProfilerInitialize(&init);
    if (result != CUPTI_SUCCESS)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "cuptiProfilerInitialize: %s",
                       rg_cupti_meaning((int)result));
    CUpti_Profiler_DeviceSupported_Params supported = {
        .structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE, .cuDevice = gpu->device};
    result = cupti->cuptiProfilerDeviceSupported(&supported);
    if (result != CUPTI_SUCCESS)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "cuptiProfilerDeviceSupported: %s",
                       rg_cupti_meaning((int)result));
    if (supported.isSupported != CUPTI_PROFILER_CONFIGURATION_SUPPORTED)
        return rg_fail(
            err, RG_ERR_DEVICE, RG_NOWHERE, "this device cannot be profiled:%s%s%s%s%s%s",
            supported.architecture != CUPTI_PROFILER_CONFIGURATION_SUPPORTED ? " architecture" : "",
            supported.sli != CUPTI_PROFILER_CONFIGURATION_SUPPORTED ? " SLI" : "",
            supported.vGpu == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED ? " virtual GPU" : "",
            supported.vGpu == CUPTI_PROFILER_CONFIGURATION_DISABLED
                ? " virtual GPU with profiling switched off"
                : "",
            supported.confidentialCompute != CUPTI_PROFILER_CONFIGURATION_SUPPORTED
                ? " confidential computing"
                : "",
            supported.cmp != CUPTI_PROFILER_CONFIGURATION_SUPPORTED ? " mining card" : "");
    RG_CUPTI_PARAMS(CUpti_Device_GetChipName_Params, name);
    name.deviceIndex = (size_t)gpu->device;
    result = cupti->cuptiDeviceGetChipName(&name);
    if (result != CUPTI_SUCCESS)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "cuptiDeviceGetChipName: %s",
                       rg_cupti_meaning((int)result));
    snprintf(cupti->chip, sizeof cupti->chip, "%s", name.pChipName);
    cupti->profiler_ready = true;
    return RG_OK;
}

rg_status rg_cupti_chip(rg_cupti *cupti, const rg_gpu *gpu, const char **chip, rg_err *err)
{
    RG_TRY(target_start(cupti, gpu, err));
    *chip = cupti->chip;
    return RG_OK;
}

/* One counting session, for the cleanup. */
typedef struct session {
    rg_cupti *cupti;
    rg_arena *arena;
    CUpti_RangeProfiler_Object *profiler;
    const char *const *metrics;
    size_t metric_count;
    uint8_t *config, *data;
    size_t config_bytes, data_bytes;
} session;

#define RG_COUNT(call, params)                                              \
    do {                                                                    \
        const CUptiResult result_ = s->cupti->call(&(params));              \
        if (result_ != CUPTI_SUCCESS)                                       \
            return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "%s: %s", #call, \
                           rg_cupti_meaning((int)result_));                 \
    } while (0)

static rg_status availability_image(session *s, rg_gpu *gpu, uint8_t **image, rg_err *err)
{
    RG_CUPTI_PARAMS(CUpti_Profiler_GetCounterAvailability_Params, p);
    p.ctx = (CUcontext)gpu->context;
    RG_COUNT(cuptiProfilerGetCounterAvailability, p);
    p.pCounterAvailabilityImage = RG_NEW(s->arena, uint8_t, p.counterAvailabilityImageSize, err);
    if (!p.pCounterAvailabilityImage)
        return RG_ERR_LIMIT;
    RG_COUNT(cuptiProfilerGetCounterAvailability, p);
    *image = p.pCounterAvailabilityImage;
    return RG_OK;
}

static rg_status configure(session *s, rg_gpu *gpu, rg_err *err)
{
    uint8_t *availability = NULL;
    size_t passes = 0;
    RG_TRY(availability_image(s, gpu, &availability, err));
    RG_TRY(rg_cupti_config(s->cupti, s->arena, s->cupti->chip, availability, s->metrics, &s->config,
                           &s->config_bytes, &passes, err));
    RG_CUPTI_PARAMS(CUpti_RangeProfiler_Enable_Params, enable);
    enable.ctx = (CUcontext)gpu->context;
    RG_COUNT(cuptiRangeProfilerEnable, enable);
    s->profiler = enable.pRangeProfilerObject;
    RG_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);
    size.pRangeProfilerObject = s->profiler;
    size.pMetricNames = (const char **)s->metrics;
    size.numMetrics = s->metric_count;
    size.maxNumOfRanges = 1;
    size.maxNumRangeTreeNodes = 1;
    RG_COUNT(cuptiRangeProfilerGetCounterDataSize, size);
    s->data_bytes = size.counterDataSize;
    s->data = RG_NEW(s->arena, uint8_t, s->data_bytes, err);
    if (!s->data)
        return RG_ERR_LIMIT;
    RG_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, init);
    init.pRangeProfilerObject = s->profiler;
    init.counterDataSize = s->data_bytes;
    init.pCounterData = s->data;
    RG_COUNT(cuptiRangeProfilerCounterDataImageInitialize, init);
    RG_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig_Params, config);
    config.pRangeProfilerObject = s->profiler;
    config.configSize = s->config_bytes;
    config.pConfig = s->config;
    config.counterDataImageSize = s->data_bytes;
    config.pCounterDataImage = s->data;
    config.range = CUPTI_UserRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = 1;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.targetNestingLevel = 1;
    RG_COUNT(cuptiRangeProfilerSetConfig, config);
    return RG_OK;
}

static rg_status count_passes(session *s, rg_gpu *gpu, rg_bench *bench, rg_err *err)
{
    for (int pass = 0, done = 0; !done; pass++) {
        RG_CUPTI_PARAMS(CUpti_RangeProfiler_Start_Params, start);
        start.pRangeProfilerObject = s->profiler;
        RG_COUNT(cuptiRangeProfilerStart, start);
        RG_CUPTI_PARAMS(CUpti_RangeProfiler_PushRange_Params, push);
        push.pRangeProfilerObject = s->profiler;
        push.pRangeName = "operation";
        RG_COUNT(cuptiRangeProfilerPushRange, push);
        const rg_status launched = bench->launch(gpu, bench, pass % bench->sets, err);
        RG_CUPTI_PARAMS(CUpti_RangeProfiler_PopRange_Params, pop);
        pop.pRangeProfilerObject = s->profiler;
        RG_COUNT(cuptiRangeProfilerPopRange, pop);
        RG_TRY(launched);
        RG_TRY(rg_gpu_sync(gpu, err));
        RG_CUPTI_PARAMS(CUpti_RangeProfiler_Stop_Params, stop);
        stop.pRangeProfilerObject = s->profiler;
        RG_COUNT(cuptiRangeProfilerStop, stop);
        done = stop.isAllPassSubmitted;
        if (pass > 64)
            return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "counting takes more than 64 passes");
    }
    RG_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData_Params, decode);
    decode.pRangeProfilerObject = s->profiler;
    RG_COUNT(cuptiRangeProfilerDecodeData, decode);
    if (decode.numOfRangeDropped > 0)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "CUPTI dropped the range");
    return RG_OK;
}

static rg_status keep_image(const session *s, const rg_gpu *gpu, const rg_counters *counters,
                            const char *path, rg_err *err)
{
    rg_image image = {.chip = s->cupti->chip,
                      .device = gpu->figures.name,
                      .metric_count = (int)s->metric_count,
                      .data = s->data,
                      .bytes = s->data_bytes};
    for (size_t i = 0; i < s->metric_count; i++) {
        image.metrics[i] = s->metrics[i];
        image.values[i] = counters->values[i];
    }
    return rg_image_write(path, &image, err);
}

static rg_status count(session *s, rg_gpu *gpu, rg_bench *bench, const char *image_path,
                       rg_counters *out, rg_err *err)
{
    RG_TRY(configure(s, gpu, err));
    RG_TRY(count_passes(s, gpu, bench, err));
    RG_TRY(rg_cupti_evaluate(s->cupti, s->cupti->chip, s->data, s->data_bytes, s->metrics, 0,
                             out->values, err));
    if (image_path)
        RG_TRY(keep_image(s, gpu, out, image_path, err));
    out->dram_bytes = NAN;
    for (size_t i = 0; i < s->metric_count; i++) {
        out->names[i] = s->metrics[i];
        if (strncmp(s->metrics[i], "dram__bytes", 11) == 0)
            out->dram_bytes = (isnan(out->dram_bytes) ? 0 : out->dram_bytes) + out->values[i];
    }
    out->count = (int)s->metric_count;
    out->valid = true;
    return RG_OK;
}

void rg_cupti_count(rg_cupti *cupti, rg_arena *arena, rg_gpu *gpu, rg_bench *bench,
                    rg_metric_set set, const char *dtype, const char *image_path, rg_counters *out)
{
    rg_err problem = {0}, *err = &problem;
    *out = (rg_counters){.dram_bytes = NAN};
    session s = {.cupti = cupti, .arena = arena};
    rg_status status = target_start(cupti, gpu, err);
    if (status == RG_OK) {
        s.metrics = rg_metrics_of(arena, cupti->chip, set, dtype, err);
        status = s.metrics ? RG_OK : RG_ERR_MODEL;
    }
    if (status == RG_OK) {
        while (s.metrics[s.metric_count])
            s.metric_count++;
        status = count(&s, gpu, bench, image_path, out, err);
    }
    if (s.profiler) {
        RG_CUPTI_PARAMS(CUpti_RangeProfiler_Disable_Params, disable);
        disable.pRangeProfilerObject = s.profiler;
        cupti->cuptiRangeProfilerDisable(&disable);
    }
    if (status != RG_OK)
        snprintf(out->reason, sizeof out->reason, "%s", problem.text);
}

/* Activity records come through callbacks without a user pointer. */
enum { ACTIVITY_BUFFER_BYTES = 4 << 20, ACTIVITY_MAX = 65536 };
static struct {
    rg_cupti *cupti;
    double ns[ACTIVITY_MAX];
    int count, dropped;
} activity_log;

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *most_records)
{
    *buffer = aligned_alloc(8, ACTIVITY_BUFFER_BYTES);
    *size = *buffer ? ACTIVITY_BUFFER_BYTES : 0;
    *most_records = 0;
}

static void CUPTIAPI buffer_done(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    (void)size;
    CUpti_Activity *record = NULL;
    while (valid > 0 && activity_log.cupti->cuptiActivityGetNextRecord(buffer, valid, &record) ==
                            CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            continue;
        /* start and end lie at the same place in all versions of this record since CUDA 9 */
        const CUpti_ActivityKernel10 *kernel = (const CUpti_ActivityKernel10 *)record;
        if (activity_log.count < ACTIVITY_MAX)
            activity_log.ns[activity_log.count++] = (double)(kernel->end - kernel->start);
    }
    size_t dropped = 0;
    activity_log.cupti->cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
    activity_log.dropped += (int)dropped;
    free(buffer);
}

static int trace(rg_cupti *cupti, rg_gpu *gpu, rg_bench *bench, int launches, const char **call)
{
    static bool registered;
    rg_err ignored;
    activity_log.cupti = cupti;
    activity_log.count = activity_log.dropped = 0;
    int result = 0;
    *call = "cuptiActivityRegisterCallbacks";
    if (!registered)
        result = (int)cupti->cuptiActivityRegisterCallbacks(buffer_wanted, buffer_done);
    if (result != 0)
        return result;
    registered = true;
    *call = "cuptiActivityEnable";
    result = (int)cupti->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (result != 0)
        return result;
    for (int i = 0; i < launches && result == 0; i++)
        if (bench->launch(gpu, bench, i % bench->sets, &ignored) != RG_OK)
            result = 1;
    if (rg_gpu_sync(gpu, &ignored) != RG_OK)
        result = 1;
    *call = "cuptiActivityFlushAll";
    const int flushed = (int)cupti->cuptiActivityFlushAll(1);
    cupti->cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    return result != 0 ? result : flushed;
}

void rg_cupti_activity(rg_cupti *cupti, rg_arena *arena, rg_gpu *gpu, rg_bench *bench, int launches,
                       rg_activity *out)
{
    rg_err ignored;
    const char *call = NULL;
    *out = (rg_activity){.valid = false};
    const int result = trace(cupti, gpu, bench, launches, &call);
    if (result != 0) {
        give_reason(out->reason, sizeof out->reason, call, result);
        return;
    }
    out->count = activity_log.count;
    out->dropped = activity_log.dropped;
    /* records of one operation follow each other on the stream */
    const int per = activity_log.count / launches;
    double *times = RG_NEW(arena, double, launches, &ignored);
    if (!times || per < 1 || per * launches != activity_log.count || out->dropped > 0) {
        snprintf(out->reason, sizeof out->reason,
                 "%d kernel records (%d dropped) do not divide among %d operations",
                 activity_log.count, out->dropped, launches);
        return;
    }
    for (int i = 0; i < launches; i++) {
        times[i] = 0;
        for (int j = 0; j < per; j++)
            times[i] += activity_log.ns[i * per + j] / 1e3;
    }
    rg_stat_sort(times, (size_t)launches);
    out->median_us = rg_stat_quantile_sorted(times, (size_t)launches, 0.5);
    out->valid = true;
}

#else /* without the headers */

rg_status rg_cupti_chip(rg_cupti *cupti, const rg_gpu *gpu, const char **chip, rg_err *err)
{
    (void)cupti, (void)gpu, (void)chip;
    return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                   "this ridge-probe was built without CUPTI's headers");
}
void rg_cupti_count(rg_cupti *cupti, rg_arena *arena, rg_gpu *gpu, rg_bench *bench,
                    rg_metric_set set, const char *dtype, const char *image_path, rg_counters *out)
{
    (void)cupti, (void)arena, (void)gpu, (void)bench, (void)set, (void)dtype, (void)image_path;
    *out = (rg_counters){.dram_bytes = NAN};
    give_reason(out->reason, sizeof out->reason, "counters", 27);
}
void rg_cupti_activity(rg_cupti *cupti, rg_arena *arena, rg_gpu *gpu, rg_bench *bench, int launches,
                       rg_activity *out)
{
    (void)cupti, (void)arena, (void)gpu, (void)bench, (void)launches;
    *out = (rg_activity){.valid = false};
    give_reason(out->reason, sizeof out->reason, "activity records", 27);
}
#endif

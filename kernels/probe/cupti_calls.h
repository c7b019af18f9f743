/* kernels/probe/cupti_calls.h: the CUPTI functions that ridge-probe uses, as a table.
 *
 * Reads the toolkit's cupti headers. Only metrics.c and counters.c include it, and only in builds
 * that have the headers. The directory compat/ holds an empty `string`, because
 * cupti_profiler_host.h includes that C++ header although its interface is C.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_CUPTI_CALLS_H
#define RG_PROBE_CUPTI_CALLS_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_version.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#pragma GCC diagnostic pop

#define RG_CUPTI_CALLS(X)                           \
    X(cuptiGetVersion)                              \
    X(cuptiActivityRegisterCallbacks)               \
    X(cuptiActivityEnable)                          \
    X(cuptiActivityDisable)                         \
    X(cuptiActivityFlushAll)                        \
    X(cuptiActivityGetNextRecord)                   \
    X(cuptiActivityGetNumDroppedRecords)            \
    X(cuptiProfilerInitialize)                      \
    X(cuptiProfilerDeviceSupported)                 \
    X(cuptiDeviceGetChipName)                       \
    X(cuptiProfilerGetCounterAvailability)          \
    X(cuptiProfilerHostInitialize)                  \
    X(cuptiProfilerHostDeinitialize)                \
    X(cuptiProfilerHostGetBaseMetrics)              \
    X(cuptiProfilerHostGetMetricProperties)         \
    X(cuptiProfilerHostConfigAddMetrics)            \
    X(cuptiProfilerHostGetConfigImageSize)          \
    X(cuptiProfilerHostGetConfigImage)              \
    X(cuptiProfilerHostGetNumOfPasses)              \
    X(cuptiProfilerHostEvaluateToGpuValues)         \
    X(cuptiRangeProfilerEnable)                     \
    X(cuptiRangeProfilerDisable)                    \
    X(cuptiRangeProfilerSetConfig)                  \
    X(cuptiRangeProfilerStart)                      \
    X(cuptiRangeProfilerStop)                       \
    X(cuptiRangeProfilerPushRange)                  \
    X(cuptiRangeProfilerPopRange)                   \
    X(cuptiRangeProfilerDecodeData)                 \
    X(cuptiRangeProfilerGetCounterDataSize)         \
    X(cuptiRangeProfilerCounterDataImageInitialize) \
    X(cuptiRangeProfilerGetCounterDataInfo)

struct rg_cupti {
    void *library;
    uint32_t version;
    bool profiler_ready;
    char chip[64];
#define RG_CUPTI_MEMBER(name) __typeof__(&name) name;
    RG_CUPTI_CALLS(RG_CUPTI_MEMBER)
#undef RG_CUPTI_MEMBER
};

/** Zeroed parameter struct of a CUPTI call with its size set. */
#define RG_CUPTI_PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}

/** Config image for metrics on a chip, in the arena. availability NULL: no device. */
rg_status rg_cupti_config(rg_cupti *cupti, rg_arena *arena, const char *chip,
                          const uint8_t *availability, const char *const *metrics, uint8_t **image,
                          size_t *bytes, size_t *passes, rg_err *err);

#endif

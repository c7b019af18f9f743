/* kernels/probe/metrics.c: metric sets of each chip, and the part of CUPTI that needs no GPU.
 *
 * Reads counters.h, cupti_calls.h. A set is what fits one pass, so that counting needs no replay of
 * the kernel. DRAM bytes are the roofline's HBM axis; lts__t_bytes contains traffic inside L2, and
 * what the SMs took from L2 is l1tex__m_xbar2l1tex_read_bytes. Link counters share no pass with
 * DRAM or SM counters.
 */
// SPDX-License-Identifier: Apache-2.0
#include "counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const rg_metric_set_names[RG_SET_COUNT + 1] = {"core", "flops", "link", NULL};

/* Data centre parts since Ampere, and the Ada and Blackwell workstation parts. */
const char *const rg_metric_chips[] = {"GA100", "GA102", "AD102", "GH100", "GB100",
                                       "GB102", "GB110", "GB202", NULL};

/* Which name of a figure a chip knows. */
typedef enum rg_chip_class {
    CHIP_GA100,
    CHIP_GA10X,
    CHIP_AD10X,
    CHIP_GH100,
    CHIP_GB10X,
    CHIP_GB110,
    CHIP_GB20X,
    CHIP_UNKNOWN
} rg_chip_class;

static rg_chip_class chip_class(const char *chip)
{
    static const struct {
        const char *name;
        rg_chip_class class;
    } chips[] = {{"GA100", CHIP_GA100}, {"GA102", CHIP_GA10X}, {"AD102", CHIP_AD10X},
                 {"GH100", CHIP_GH100}, {"GB100", CHIP_GB10X}, {"GB102", CHIP_GB10X},
                 {"GB110", CHIP_GB110}, {"GB202", CHIP_GB20X}};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        if (strcmp(chip, chips[i].name) == 0)
            return chips[i].class;
    return CHIP_UNKNOWN;
}

/* Tensor operations counted for a type; NULL: the chip has no such counter. */
static const char *tensor_operations(rg_chip_class class, const char *dtype)
{
    if (strcmp(dtype, "fp8") == 0) {
        static const char *const by_class[] = {
            [CHIP_GA100] = NULL,
            [CHIP_GA10X] = NULL,
            [CHIP_AD10X] = "sm__ops_path_tensor_src_fp8.sum",
            [CHIP_GH100] = "sm__ops_path_tensor_src_fp8.sum",
            [CHIP_GB10X] = "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32.sum",
            [CHIP_GB110] = "sm__ops_path_tensor_src_fp8_dst_fp32.sum",
            [CHIP_GB20X] = "sm__ops_path_tensor_src_fp8_dst_fp32.sum",
        };
        return by_class[class];
    }
    if (strcmp(dtype, "int8") == 0)
        return "sm__ops_path_tensor_src_int8.sum";
    if (strcmp(dtype, "float16") == 0)
        return class == CHIP_GH100 ? "sm__ops_path_tensor_src_fp16.sum"
                                   : "sm__ops_path_tensor_src_fp16_dst_fp32.sum";
    return "sm__ops_path_tensor_src_bf16_dst_fp32.sum";
}

const char *const *rg_metrics_of(rg_arena *arena, const char *chip, rg_metric_set set,
                                 const char *dtype, rg_err *err)
{
    const rg_chip_class class = chip_class(chip);
    const char **names = RG_NEW(arena, const char *, RG_MAX_METRICS + 1, err);
    if (!names)
        return NULL;
    if (class == CHIP_UNKNOWN) {
        rg_fail(err, RG_ERR_INPUT, RG_NOWHERE,
                "no metric sets for chip '%s'; there are some for GA100, GA102, AD102, GH100, "
                "GB100, GB102, GB110 and GB202",
                chip);
        return NULL;
    }
    const bool links = class != CHIP_GA10X && class != CHIP_AD10X && class != CHIP_GB20X;
    int n = 0;
    if (set == RG_SET_LINK) {
        if (!links) {
            rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "chip '%s' has no NVLink counters", chip);
            return NULL;
        }
        names[n++] = "nvlrx__bytes.sum";
        names[n++] = "nvltx__bytes.sum";
        names[n++] = "gpu__time_duration.sum";
        return names;
    }
    const bool new_spelling = class == CHIP_GB20X;
    names[n++] = new_spelling ? "dram__bytes_op_read.sum" : "dram__bytes_read.sum";
    names[n++] = new_spelling ? "dram__bytes_op_write.sum" : "dram__bytes_write.sum";
    names[n++] = "gpu__time_duration.sum";
    if (set == RG_SET_FLOPS) {
        names[n] = tensor_operations(class, dtype);
        if (!names[n]) {
            rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                    "chip '%s' does not count tensor operations in '%s'", chip, dtype);
            return NULL;
        }
        return names;
    }
    static const char *const core[] = {
        "lts__t_bytes.sum",
        "lts__t_sectors_op_read.sum",
        "lts__t_sectors_op_write.sum",
        "sm__cycles_active.avg",
        "sm__cycles_elapsed.max",
        "sm__inst_executed_pipe_tensor.sum",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    };
    for (size_t i = 0; i < sizeof core / sizeof *core; i++)
        names[n++] = core[i];
    return names;
}

#if RG_HAVE_CUPTI
#include <dlfcn.h>

#include "cupti_calls.h"

rg_cupti *rg_cupti_open(rg_arena *arena, const char *folder, char *why, size_t why_size)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL};
    rg_err ignored;
    rg_cupti *cupti = RG_NEW(arena, rg_cupti, 1, &ignored);
    if (!cupti)
        return NULL;
    cupti->library = rg_cuda_library(folder, names, why, why_size);
    if (!cupti->library)
        return NULL;
#define RG_CUPTI_LOOKUP(name)                                                                 \
    *(void **)&cupti->name = dlsym(cupti->library, #name);                                    \
    if (!cupti->name) {                                                                       \
        snprintf(why, why_size, "it lacks %s; CUPTI of CUDA 12.6 or later is needed", #name); \
        return NULL;                                                                          \
    }
    RG_CUPTI_CALLS(RG_CUPTI_LOOKUP)
#undef RG_CUPTI_LOOKUP
    cupti->cuptiGetVersion(&cupti->version);
    return cupti;
}

int rg_cupti_version(const rg_cupti *cupti)
{
    return (int)cupti->version;
}

/** A host object for a chip; the caller closes it. */
static rg_status host_open(rg_cupti *cupti, const char *chip, const uint8_t *availability,
                           CUpti_Profiler_Host_Object **out, rg_err *err)
{
    RG_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize_Params, p);
    p.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    p.pChipName = chip;
    p.pCounterAvailabilityImage = availability;
    const CUptiResult result = cupti->cuptiProfilerHostInitialize(&p);
    if (result == CUPTI_ERROR_INVALID_CHIP_NAME)
        return rg_fail(err, RG_ERR_INPUT, RG_NOWHERE,
                       "CUPTI %u does not know chip '%s'; names are like 'GH100', 'GA100'",
                       cupti->version, chip);
    if (result != CUPTI_SUCCESS)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "CUPTI host interface: %s",
                       rg_cupti_meaning((int)result));
    *out = p.pHostObject;
    return RG_OK;
}

static void host_close(rg_cupti *cupti, CUpti_Profiler_Host_Object *host)
{
    RG_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, p);
    p.pHostObject = host;
    cupti->cuptiProfilerHostDeinitialize(&p);
}

static size_t name_count(const char *const *names)
{
    size_t n = 0;
    while (names[n])
        n++;
    return n;
}

static CUptiResult properties(rg_cupti *cupti, CUpti_Profiler_Host_Object *host, const char *metric,
                              CUpti_Profiler_Host_GetMetricProperties_Params *p)
{
    memset(p, 0, sizeof *p);
    p->structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE;
    p->pHostObject = host;
    p->pMetricName = metric;
    return cupti->cuptiProfilerHostGetMetricProperties(p);
}

/** Add metrics to a host object's configuration. One bad name spoils the object and is not named by
 * CUPTI, so each is looked up alone first. */
static rg_status add_metrics(rg_cupti *cupti, CUpti_Profiler_Host_Object *host, const char *chip,
                             const char *const *metrics, rg_err *err)
{
    for (const char *const *name = metrics; *name; name++) {
        CUpti_Profiler_Host_GetMetricProperties_Params p;
        if (!strchr(*name, '.') || properties(cupti, host, *name, &p) != CUPTI_SUCCESS)
            return rg_fail(err, RG_ERR_INPUT, RG_NOWHERE,
                           "chip '%s' has no metric '%s'; `ridge-probe metrics --chip %s --all` "
                           "lists base names, which need a rollup such as '.sum'",
                           chip, *name, chip);
    }
    RG_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, p);
    p.pHostObject = host;
    p.ppMetricNames = (const char **)metrics;
    p.numMetrics = name_count(metrics);
    const CUptiResult result = cupti->cuptiProfilerHostConfigAddMetrics(&p);
    if (result == CUPTI_ERROR_NOT_SUPPORTED)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "these metrics cannot be counted together on '%s' (link and PCIe counters "
                       "share no pass with DRAM or SM counters)",
                       chip);
    if (result != CUPTI_SUCCESS)
        return rg_fail(err, RG_ERR_INPUT, RG_NOWHERE, "'%s' refuses metric '%s' or one with it: %s",
                       chip, metrics[0], rg_cupti_meaning((int)result));
    return RG_OK;
}

static rg_status config_image(rg_cupti *cupti, rg_arena *arena, CUpti_Profiler_Host_Object *host,
                              const char *chip, const char *const *metrics, uint8_t **image,
                              size_t *bytes, size_t *passes, rg_err *err)
{
    RG_TRY(add_metrics(cupti, host, chip, metrics, err));
    RG_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = host;
    CUptiResult result = cupti->cuptiProfilerHostGetConfigImageSize(&size);
    RG_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, get);
    get.pHostObject = host;
    get.configImageSize = size.configImageSize;
    get.pConfigImage = RG_NEW(arena, uint8_t, size.configImageSize, err);
    if (!get.pConfigImage)
        return RG_ERR_LIMIT;
    if (result == CUPTI_SUCCESS)
        result = cupti->cuptiProfilerHostGetConfigImage(&get);
    RG_CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, count);
    count.configImageSize = get.configImageSize;
    count.pConfigImage = get.pConfigImage;
    if (result == CUPTI_SUCCESS)
        result = cupti->cuptiProfilerHostGetNumOfPasses(&count);
    if (result != CUPTI_SUCCESS)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "no counter configuration for '%s': %s",
                       chip, rg_cupti_meaning((int)result));
    *image = get.pConfigImage;
    *bytes = get.configImageSize;
    *passes = count.numOfPasses;
    return RG_OK;
}

rg_status rg_cupti_config(rg_cupti *cupti, rg_arena *arena, const char *chip,
                          const uint8_t *availability, const char *const *metrics, uint8_t **image,
                          size_t *bytes, size_t *passes, rg_err *err)
{
    CUpti_Profiler_Host_Object *host = NULL;
    RG_TRY(host_open(cupti, chip, availability, &host, err));
    const rg_status status =
        config_image(cupti, arena, host, chip, metrics, image, bytes, passes, err);
    host_close(cupti, host);
    return status;
}

rg_status rg_cupti_passes(rg_cupti *cupti, const char *chip, const char *const *metrics,
                          int *passes, rg_err *err)
{
    rg_arena *arena = rg_arena_new(64);
    if (!arena)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory");
    uint8_t *image = NULL;
    size_t bytes = 0, count = 0;
    const rg_status status =
        rg_cupti_config(cupti, arena, chip, NULL, metrics, &image, &bytes, &count, err);
    *passes = (int)count;
    rg_arena_free(arena);
    return status;
}

rg_status rg_cupti_describe(rg_cupti *cupti, rg_arena *arena, const char *chip, const char *metric,
                            const char **unit, const char **text, rg_err *err)
{
    CUpti_Profiler_Host_Object *host = NULL;
    RG_TRY(host_open(cupti, chip, NULL, &host, err));
    CUpti_Profiler_Host_GetMetricProperties_Params p;
    const CUptiResult result = properties(cupti, host, metric, &p);
    if (result == CUPTI_SUCCESS) { /* the texts go with the object */
        *unit = rg_arena_strdup(arena, p.pDimUnit ? p.pDimUnit : "", err);
        *text = rg_arena_strdup(arena, p.pDescription ? p.pDescription : "", err);
    }
    host_close(cupti, host);
    if (result != CUPTI_SUCCESS)
        return rg_fail(err, RG_ERR_INPUT, RG_NOWHERE, "chip '%s' has no metric '%s'", chip, metric);
    return *unit && *text ? RG_OK : RG_ERR_LIMIT;
}

rg_status rg_cupti_list(rg_cupti *cupti, rg_arena *arena, const char *chip,
                        const char *const **names, size_t *count, rg_err *err)
{
    CUpti_Profiler_Host_Object *host = NULL;
    RG_TRY(host_open(cupti, chip, NULL, &host, err));
    static const CUpti_MetricType types[] = {CUPTI_METRIC_TYPE_COUNTER, CUPTI_METRIC_TYPE_RATIO,
                                             CUPTI_METRIC_TYPE_THROUGHPUT};
    const char **all = NULL;
    size_t total = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t n = 0;
        for (size_t t = 0; t < 3; t++) {
            RG_CUPTI_PARAMS(CUpti_Profiler_Host_GetBaseMetrics_Params, p);
            p.pHostObject = host;
            p.metricType = types[t];
            if (cupti->cuptiProfilerHostGetBaseMetrics(&p) != CUPTI_SUCCESS)
                continue;
            for (size_t i = 0; all && i < p.numMetrics; i++)
                all[n + i] = rg_arena_strdup(arena, p.ppMetricNames[i], err);
            n += p.numMetrics;
        }
        total = n;
        if (!all)
            all = RG_NEW(arena, const char *, total + 1, err);
        if (!all)
            break;
    }
    host_close(cupti, host);
    if (!all)
        return RG_ERR_LIMIT;
    *names = all;
    *count = total;
    return RG_OK;
}

rg_status rg_cupti_evaluate(rg_cupti *cupti, const char *chip, const void *image, size_t bytes,
                            const char *const *metrics, size_t range, double *values, rg_err *err)
{
    CUpti_Profiler_Host_Object *host = NULL;
    RG_TRY(host_open(cupti, chip, NULL, &host, err));
    RG_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, p);
    p.pHostObject = host;
    p.pCounterDataImage = image;
    p.counterDataImageSize = bytes;
    p.rangeIndex = range;
    p.ppMetricNames = (const char **)metrics;
    p.numMetrics = name_count(metrics);
    p.pMetricValues = values;
    const CUptiResult result = cupti->cuptiProfilerHostEvaluateToGpuValues(&p);
    host_close(cupti, host);
    if (result != CUPTI_SUCCESS)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "the counter data cannot be evaluated for '%s': %s", chip,
                       rg_cupti_meaning((int)result));
    for (size_t i = 0; i < p.numMetrics; i++)
        if (!isfinite(values[i]))
            return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                           "metric '%s' was not counted: the counter data holds no number for it",
                           metrics[i]);
    return RG_OK;
}

#else /* without the headers */

static rg_status absent(rg_err *err)
{
    return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                   "this ridge-probe was built without CUPTI's headers");
}
rg_cupti *rg_cupti_open(rg_arena *arena, const char *folder, char *why, size_t why_size)
{
    (void)arena, (void)folder;
    snprintf(why, why_size, "this ridge-probe was built without CUPTI's headers");
    return NULL;
}
int rg_cupti_version(const rg_cupti *cupti)
{
    (void)cupti;
    return 0;
}
rg_status rg_cupti_passes(rg_cupti *cupti, const char *chip, const char *const *metrics,
                          int *passes, rg_err *err)
{
    (void)cupti, (void)chip, (void)metrics, (void)passes;
    return absent(err);
}
rg_status rg_cupti_describe(rg_cupti *cupti, rg_arena *arena, const char *chip, const char *metric,
                            const char **unit, const char **text, rg_err *err)
{
    (void)cupti, (void)arena, (void)chip, (void)metric, (void)unit, (void)text;
    return absent(err);
}
rg_status rg_cupti_list(rg_cupti *cupti, rg_arena *arena, const char *chip,
                        const char *const **names, size_t *count, rg_err *err)
{
    (void)cupti, (void)arena, (void)chip, (void)names, (void)count;
    return absent(err);
}
rg_status rg_cupti_evaluate(rg_cupti *cupti, const char *chip, const void *image, size_t bytes,
                            const char *const *metrics, size_t range, double *values, rg_err *err)
{
    (void)cupti, (void)chip, (void)image, (void)bytes, (void)metrics, (void)range, (void)values;
    return absent(err);
}
#endif

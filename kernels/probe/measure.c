/* kernels/probe/measure.c: graph replay, events, clocks, statistics.
 *
 * Reads measure.h, ../micro.h, core/stat.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "core/stat.h"
#include "micro.h"

typedef struct meter {
    rg_gpu *gpu;
    rg_bench *bench;
    rg_cu_event start, stop;
    rg_cu_graph_exec graph; /* NULL: launched one by one */
    int launches;
    rg_gpu_kernel stamp;
    rg_cu_ptr stamps; /* two rg_stamp */
} meter;

static rg_status launch_round(meter *m, int launches, rg_err *err)
{
    for (int i = 0; i < launches; i++)
        RG_TRY(m->bench->launch(m->gpu, m->bench, i % m->bench->sets, err));
    return RG_OK;
}

static rg_status capture(meter *m, rg_err *err)
{
    const rg_cuda *cuda = m->gpu->cuda;
    rg_cu_graph graph = NULL;
    RG_CU(cuda, cuStreamBeginCapture_v2, (m->gpu->stream, RG_CU_CAPTURE_RELAXED), err);
    const rg_status launched = launch_round(m, m->launches, err);
    const rg_cu_result ended = cuda->cuStreamEndCapture(m->gpu->stream, &graph);
    RG_TRY(launched);
    RG_TRY(rg_cuda_check(cuda, ended, "cuStreamEndCapture", err));
    const rg_cu_result made = cuda->cuGraphInstantiateWithFlags(&m->graph, graph, 0);
    cuda->cuGraphDestroy(graph);
    return rg_cuda_check(cuda, made, "cuGraphInstantiate", err);
}

static rg_status stamp(meter *m, int which, rg_err *err)
{
    const rg_stamp_params p = {(rg_stamp *)rg_gpu_address(m->stamps) + which};
    return rg_gpu_launch(m->gpu, &m->stamp, &p, err);
}

/** One sample: time of one operation and the clock, 0 when two SMs read it. */
static rg_status sample(meter *m, double *us, double *mhz, rg_err *err)
{
    const rg_cuda *cuda = m->gpu->cuda;
    RG_TRY(stamp(m, 0, err));
    RG_CU(cuda, cuEventRecord, (m->start, m->gpu->stream), err);
    if (m->graph)
        RG_CU(cuda, cuGraphLaunch, (m->graph, m->gpu->stream), err);
    else
        RG_TRY(launch_round(m, m->launches, err));
    RG_CU(cuda, cuEventRecord, (m->stop, m->gpu->stream), err);
    RG_TRY(stamp(m, 1, err));
    rg_stamp stamps[2];
    RG_TRY(rg_gpu_download(m->gpu, stamps, m->stamps, sizeof stamps, err));
    float ms = 0;
    RG_CU(cuda, cuEventElapsedTime, (&ms, m->start, m->stop), err);
    *us = 1e3 * (double)ms / m->launches / m->bench->per_launch;
    const bool same = stamps[0].sm == stamps[1].sm && stamps[1].ns > stamps[0].ns;
    *mhz = same ? 1e3 * (double)(stamps[1].cycles - stamps[0].cycles) /
                      (double)(stamps[1].ns - stamps[0].ns)
                : 0;
    return RG_OK;
}

static void pause_ms(double ms)
{
    const struct timespec t = {(time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6)};
    nanosleep(&t, NULL);
}

/** Samples until enough are valid. A throttled one is thrown away, and the pause before the next
 * grows, up to twice as many samples as were asked for. */
static rg_status collect(meter *m, const rg_measure_options *options, rg_timing *out, rg_err *err)
{
    const double least_mhz = options->clock_ratio * m->gpu->figures.clock_khz / 1e3;
    double wait_ms = 50;
    while (out->count < options->samples && out->discarded <= options->samples) {
        double us = 0, mhz = 0;
        RG_TRY(sample(m, &us, &mhz, err));
        if (mhz > 0 && mhz < least_mhz) {
            out->discarded++;
            pause_ms(wait_ms);
            wait_ms = fmin(2 * wait_ms, 1000);
            continue;
        }
        if (!isfinite(us) || us <= 0)
            return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "a sample took '%g' us", us);
        out->samples_us[out->count] = us;
        out->clock_mhz[out->count++] = mhz;
    }
    if (out->count == 0)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE,
                       "no valid sample: all '%d' ran below %.0f MHz, %.0f %% of the default "
                       "clock; the GPU is throttled or its clock is capped (--clock-ratio 0 takes "
                       "them anyway)",
                       out->discarded, least_mhz, 100 * options->clock_ratio);
    return RG_OK;
}

static rg_status summarise(rg_arena *arena, rg_timing *t, rg_err *err)
{
    double *sorted = RG_NEW(arena, double, t->count, err);
    if (!sorted)
        return RG_ERR_LIMIT;
    const size_t n = (size_t)t->count;
    memcpy(sorted, t->samples_us, n * sizeof *sorted);
    rg_stat_sort(sorted, n);
    t->median_us = rg_stat_quantile_sorted(sorted, n, 0.5);
    t->q1_us = rg_stat_quantile_sorted(sorted, n, 0.25);
    t->q3_us = rg_stat_quantile_sorted(sorted, n, 0.75);
    t->min_us = sorted[0];
    size_t known = 0;
    for (size_t i = 0; i < n; i++)
        if (t->clock_mhz[i] > 0)
            sorted[known++] = t->clock_mhz[i];
    if (known > 0) {
        rg_stat_sort(sorted, known);
        t->median_clock_mhz = rg_stat_quantile_sorted(sorted, known, 0.5);
    }
    return RG_OK;
}

static rg_status run(rg_arena *arena, meter *m, const rg_nvml *nvml,
                     const rg_measure_options *options, rg_timing *out, rg_err *err)
{
    const rg_cuda *cuda = m->gpu->cuda;
    double us = 0, mhz = 0;
    RG_CU(cuda, cuEventCreate, (&m->start, RG_CU_EVENT_DEFAULT), err);
    RG_CU(cuda, cuEventCreate, (&m->stop, RG_CU_EVENT_DEFAULT), err);
    RG_TRY(rg_gpu_kernel_get(m->gpu, "rg_stamp_now", RG_STAMP_THREADS, 0, &m->stamp, err));
    RG_TRY(rg_gpu_alloc(m->gpu, 2 * sizeof(rg_stamp), &m->stamps, err));
    /* once round for first-use costs, then once round to choose how many make a sample */
    m->launches = m->bench->sets;
    RG_TRY(sample(m, &us, &mhz, err));
    RG_TRY(sample(m, &us, &mhz, err));
    const double wanted = ceil(options->least_us / fmax(us * m->bench->per_launch, 0.5));
    const double rounds = fmax(1, ceil(fmin(wanted, 2000) / m->bench->sets));
    m->launches = (int)rounds * m->bench->sets;
    /* a driver that cannot capture this gets launches one by one, and the record says so */
    rg_err why = {0};
    out->graph = !m->bench->no_graph && capture(m, &why) == RG_OK;
    if (m->bench->must_graph && !out->graph)
        return rg_fail(err, RG_ERR_DEVICE, RG_NOWHERE, "%s", why.text);
    RG_TRY(sample(m, &us, &mhz, err)); /* warm the graph itself */
    out->launches = m->launches;
    out->before = rg_nvml_look(nvml);
    RG_TRY(collect(m, options, out, err));
    out->after = rg_nvml_look(nvml);
    return summarise(arena, out, err);
}

rg_status rg_measure(rg_arena *arena, rg_gpu *gpu, const rg_nvml *nvml, rg_bench *bench,
                     const rg_measure_options *options, rg_timing *out, rg_err *err)
{
    memset(out, 0, sizeof *out);
    out->samples_us = RG_NEW(arena, double, options->samples, err);
    out->clock_mhz = RG_NEW(arena, double, options->samples, err);
    if (!out->samples_us || !out->clock_mhz)
        return RG_ERR_LIMIT;
    meter m = {.gpu = gpu, .bench = bench};
    const rg_status status = run(arena, &m, nvml, options, out, err);
    if (m.graph)
        gpu->cuda->cuGraphExecDestroy(m.graph);
    if (m.start)
        gpu->cuda->cuEventDestroy_v2(m.start);
    if (m.stop)
        gpu->cuda->cuEventDestroy_v2(m.stop);
    return status;
}

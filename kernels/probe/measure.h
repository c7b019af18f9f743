/* kernels/probe/measure.h: the time of a prepared problem.
 *
 * Reads bench.h, nvml.h. Timing and counting are separate passes: nothing here runs under a
 * profiler. A sample is one replay of a CUDA graph of many launches between two events; cycles and
 * nanoseconds read on the device around it give the clock that it ran at. Clocks are never locked.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_MEASURE_H
#define RG_PROBE_MEASURE_H

#include "bench.h"
#include "nvml.h"

enum { RG_MAX_SAMPLES = 1000 };

typedef struct rg_measure_options {
    int samples;        /* wanted, at least 3 */
    double least_us;    /* length of a sample; launches are repeated to reach it */
    double clock_ratio; /* samples below this share of the default clock are thrown away */
} rg_measure_options;

typedef struct rg_timing {
    double *samples_us; /* per operation, in order of measurement */
    double *clock_mhz;  /* effective SM clock of each; 0 when unknown */
    int count, discarded;
    int launches; /* per sample */
    bool graph;
    double median_us, q1_us, q3_us, min_us;
    double median_clock_mhz;
    rg_nvml_state before, after;
} rg_timing;

/** Take samples. RG_ERR_DEVICE when no sample was valid. */
rg_status rg_measure(rg_arena *arena, rg_gpu *gpu, const rg_nvml *nvml, rg_bench *bench,
                     const rg_measure_options *options, rg_timing *out, rg_err *err);

#endif

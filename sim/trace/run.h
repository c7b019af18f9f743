/* trace/run.h: run records: what a benchmark or a profiler says it measured, in one form.
 *
 * Reads core. One reader per tool: ridge-probe, nvbench, Google Benchmark, pytest-benchmark,
 * hyperfine, nccl-tests (log and JSON), Nsight Compute and Nsight Systems CSV, rocprof CSV,
 * PyTorch profiler traces, serving benchmarks (vLLM, SGLang, genai-perf), and tables such as
 * Triton's perf_report or a do_bench loop writes. A value that a file does not give
 * is NaN; a value that a file gives but that is no measurement ("n/a", nan, zero samples) makes the
 * entry unusable, with the reason, and never becomes 0. A note names it by file:line.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TRACE_RUN_H
#define RG_TRACE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"

/** One kernel on one problem. Times in seconds. Where only a rate was measured (TFLOP/s, GB/s), the
 * costs are its reciprocal, so that less is better everywhere; rate_unit then names the rate. */
typedef struct rg_run_entry {
    const char *kernel;
    const char *problem;   /* "m=8192 n=8192 k=8192", "" when the file names none */
    const char *dtype;     /* "" when unknown */
    const char *cache;     /* "cold", "warm", "" when unknown */
    const char *rate_unit; /* NULL: costs are seconds; "TFLOP/s": costs are 1/rate */
    rg_pos pos;            /* where the file says it */

    double *samples; /* costs in the order of measurement; NULL when the file has a summary only */
    int *process;    /* which process each sample came from, 0.. */
    int sample_count, sample_capacity;
    int processes; /* processes behind the samples or summaries */

    double count; /* measurements behind the summary; NaN when unknown */
    double median, mean, q1, q3, least, most, deviation; /* summary, NaN where not given */

    double clock_hz;                       /* mean clock while it ran */
    double cycles;                         /* of one run of the kernel */
    double flops, model_bytes, dram_bytes; /* of one run */
    double registers, spill_bytes, shared_bytes, blocks_per_sm;
    double rank_count;     /* collectives */
    const char *throttled; /* why the clock was held down, NULL when not known to be */
    bool left_out;         /* unusable because the tool chose not to run it */
    bool refused;          /* unusable because a value that the file gives is no measurement */
    const char *unusable;  /* why there is no number, NULL when there is one */
    const char *wrong;     /* the tool's own check of the result failed: its words */
} rg_run_entry;

typedef struct rg_run {
    const char *path;
    const char *tool;   /* "ridge-probe", "nvbench", "google-benchmark", "nccl-tests", "ncu", ... */
    const char *device; /* as the tool names it, "" when it does not */
    const char *driver; /* version, "" when unknown */
    const char *date, *command, *commit; /* as recorded, "" when not */
    const char *ecc;                     /* "on", "off", "" */
    const char *clocks;  /* "locked", "unlocked", "base" (ncu), "" when not recorded */
    int host_ranks;      /* collectives: ranks on the host of the first one; 0 when not told */
    const char *skipped; /* the run says that it was skipped (no device): its reason; else NULL */
    rg_run_entry *entries;
    int count, capacity;
    const char **notes; /* things a reader should know: rows left out, units assumed */
    int note_count, note_capacity;
} rg_run;

typedef struct rg_run_options {
    const char
        *unit; /* of times in tables that name none: "ms", "us", "s", "ns", "TFLOP/s", "GB/s" */
} rg_run_options;

/** Read a file of any of the kinds above; the kind is found from the content. options may be NULL.
 * Errors: RG_ERR_IO, RG_ERR_INPUT with file:line and what was expected, RG_ERR_LIMIT. */
rg_status rg_run_load(rg_arena *arena, const char *path, const rg_run_options *options,
                      rg_run **out, rg_err *err);
/** The same from memory; path stands in messages and is where side files are looked for. */
rg_status rg_run_parse(rg_arena *arena, const char *path, const char *text, size_t length,
                       const rg_run_options *options, rg_run **out, rg_err *err);

/** Put the entries of another run of the same program into run: equal kernels become repeats in
 * separate processes. Errors: RG_ERR_INPUT when device or tool differ. */
rg_status rg_run_merge(rg_arena *arena, rg_run *run, const rg_run *other, rg_err *err);

/** Entry with the same kernel, problem and dtype ("" matches any dtype), NULL when there is none.
 */
const rg_run_entry *rg_run_find(const rg_run *run, const char *kernel, const char *problem,
                                const char *dtype);

/** The one cost that stands for the entry: median of samples, else the median given, else the mean;
 * NaN when unusable. */
double rg_run_cost(rg_arena *arena, const rg_run_entry *entry, rg_err *err);

#endif

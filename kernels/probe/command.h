/* kernels/probe/command.h: the commands of ridge-probe and their options.
 *
 * Reads counters.h, measure.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_COMMAND_H
#define RG_PROBE_COMMAND_H

#include "counters.h"
#include "measure.h"

enum { RG_PROBE_OPERANDS = 64 };

typedef struct rg_probe_options {
    const char *command_line;
    const char *output, *csv, *images, *variant, *dtype, *cuda_lib, *chip, *base;
    struct {
        const char *name;
        int64_t value;
    } settings[RG_PROBLEM_KEYS];
    int setting_count;
    int extent;   /* rg_extent */
    int counters; /* rg_metric_set, RG_SET_COUNT for none */
    rg_measure_options measure;
    bool warm, skip, all;
    int device;
    const char *operands[RG_PROBE_OPERANDS];
    int operand_count;
} rg_probe_options;

rg_status rg_probe_run(rg_arena *arena, const rg_probe_options *options, rg_err *err);
rg_status rg_probe_check(rg_arena *arena, const rg_probe_options *options, rg_err *err);
rg_status rg_probe_list(rg_arena *arena, const rg_probe_options *options, rg_err *err);
rg_status rg_probe_metrics(rg_arena *arena, const rg_probe_options *options, rg_err *err);
rg_status rg_probe_evaluate(rg_arena *arena, const rg_probe_options *options, rg_err *err);
rg_status rg_probe_targets(rg_arena *arena, const rg_probe_options *options, rg_err *err);
rg_status rg_probe_env(rg_arena *arena, const rg_probe_options *options, rg_err *err);

/** The driver, a device and the optional libraries, opened as the options say. */
typedef struct rg_session {
    rg_cuda cuda;
    rg_gpu gpu;
    rg_nvml nvml;
    rg_cupti *cupti;
    char cupti_reason[512];
    bool emulated; /* the driver is ridge's emulation: times mean nothing */
} rg_session;
rg_status rg_session_open(rg_arena *arena, rg_session *session, const rg_probe_options *options,
                          rg_err *err);
void rg_session_close(rg_session *session);

/** Whether a family was named on the command line, or none was. */
bool rg_probe_chosen(const rg_probe_options *options, const rg_family *family);

#endif

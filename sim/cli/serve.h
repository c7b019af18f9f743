/* cli/serve.h: parts of the command serve: settings, deployment, output. Private to cli/.
 *
 * A setting comes from the command line, else from the scenario file, whose keys are the names of
 * the options; else it has the default of the option.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_SERVE_H
#define RG_CLI_SERVE_H

#include "cli/args.h"
#include "cli/scenario.h"
#include "cli/setup.h"
#include "core/doc.h"
#include "hw/cluster.h"
#include "model/spec.h"
#include "serve/capacity.h"
#include "serve/kernel_times.h"
#include "serve/replay.h"
#include "step/step.h"

typedef struct rg_settings {
    rg_arena *arena;
    const rg_args *args;
    rg_node *scenario; /* NULL: none */
    const char *path;
} rg_settings;

/** Read the scenario (operand 0, if any) and refuse keys that are no option of serve. */
rg_status rg_settings_open(rg_arena *arena, const rg_args *args, const rg_option *options,
                           rg_settings *out, rg_err *err);
/** The text of a setting, NULL when there is none; *pos is its place in the scenario. */
const char *rg_setting(const rg_settings *s, const char *name, rg_pos *pos);
/** The settings as named values, for readers that serve other commands too. */
rg_lookup rg_setting_lookup(const rg_settings *s);
bool rg_setting_given(const rg_settings *s, const char *name);
bool rg_setting_flag(const rg_settings *s, const char *name);
rg_status rg_setting_int(const rg_settings *s, const char *name, int64_t least, int64_t most,
                         int64_t *out, rg_err *err);
rg_status rg_setting_real(const rg_settings *s, const char *name, double least, double most,
                          double *out, rg_err *err);
rg_status rg_setting_quantity(const rg_settings *s, const char *name, rg_dim dim, double *out,
                              rg_err *err);
rg_status rg_setting_choice(const rg_settings *s, const char *name, const char *const *names,
                            int *out, rg_err *err);

/** All that one run of the command needs. */
typedef struct rg_serve_job {
    rg_arena *arena;
    rg_settings settings;
    rg_report *report;
    rg_setup setup; /* what-if changes */
    rg_replay_run *measured;
    rg_cluster *cluster;
    rg_model *model;
    rg_formats formats;
    rg_parallel parallel;
    rg_engine engine;
    rg_deployment deployment;
    rg_goals goals;
    rg_requests *stream;
    rg_kernel_times *kernel_times;
    double constant_step_s;
    rg_step_context *step;
    double step_full_power_s;                    /* of the last pass, see rg_step_model */
    double peak_flops_per_s, memory_bytes_per_s; /* of a device, for it */
    rg_err step_err;
    bool have_capacity;
    rg_capacity capacity;
    double reduce_latency_s, reduce_bytes_per_s;
    double kernel_scale, communication_scale; /* of ridge's own step time */
} rg_serve_job;

/** Hardware, model, engine rules, step time, KV memory. */
rg_status rg_serve_job_deploy(rg_serve_job *job, rg_err *err);
/** Replicas, router, pools, scaling, power and price. */
rg_status rg_serve_job_fleet(rg_serve_job *job, rg_err *err);
/** Step time from ridge's own model. */
rg_status rg_serve_job_own_step(rg_serve_job *job, rg_err *err);
/** The stream of requests. */
rg_status rg_serve_job_stream(rg_serve_job *job, rg_err *err);

/** Files written beside the report: requests, time line, series, plots. */
typedef struct rg_serve_files rg_serve_files;
rg_status rg_serve_files_open(rg_serve_job *job, rg_serve_files **out, rg_observer *observer,
                              rg_err *err);
rg_status rg_serve_files_close(rg_serve_files *files, rg_err *err);
/** Figures that were drawn into the report; after the answer. */
void rg_serve_files_show(const rg_serve_files *files);
void rg_serve_files_abandon(rg_serve_files *files);

/** Latency against load, as a table and a figure. */
rg_status rg_serve_job_load(rg_serve_job *job, rg_err *err);
/** Whether the queue kept growing. */
bool rg_serve_overloaded(const rg_serve_result *result);

/** The result as facts of the report. */
void rg_serve_report(rg_serve_job *job, rg_serve_result *result);
void rg_serve_report_errors(rg_serve_job *job, const rg_replay_errors *errors);
/** Fit engine constants on the measured run. */
rg_status rg_serve_job_fit(rg_serve_job *job, rg_err *err);

#endif

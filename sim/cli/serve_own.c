/* cli/serve_own.c: step time of serve from ridge's own model. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include "hw/power.h"
#include "roofline/roofline.h"
#include "step/arrangement.h"

#include <string.h>

/* The simulator asks for a number; what went wrong is kept and reported when the run is over. */
static rg_seconds own_step(void *context, const rg_pass *pass)
{
    rg_serve_job *job = context;
    rg_step_time time;
    rg_err err = {0};
    if (rg_step_time_of(job->step, pass, &time, &err) == RG_OK) {
        const double devices = (double)job->deployment.devices_per_replica;
        job->step_full_power_s =
            time.total.v *
            rg_power_dynamic_ratio(time.flops.v / (time.total.v * job->peak_flops_per_s * devices),
                                   time.bytes.v / (time.total.v * job->memory_bytes_per_s));
        return RG_S(time.total.v + (job->kernel_scale - 1) * time.compute.v +
                    (job->communication_scale - 1) * time.communication.v);
    }
    if (job->step_err.status == RG_OK)
        job->step_err = err;
    return RG_S(1);
}

/* Scales belong to a device and its links; constants of an engine go with it to others. */
static rg_status read_scales(rg_serve_job *job, rg_err *err)
{
    rg_pos pos;
    const char *device = rg_setting(&job->settings, "fitted-on", &pos);
    job->kernel_scale = job->communication_scale = 1;
    if (device && strcmp(device, job->cluster->accel->name) != 0 &&
        !rg_arg_given(job->settings.args, "kernel-scale")) {
        rg_report_assume(
            job->report,
            "constants were fitted on %s: its kernel and communication scales are left "
            "out on %s",
            device, job->cluster->accel->name);
        return RG_OK;
    }
    RG_TRY(rg_setting_real(&job->settings, "kernel-scale", 0.01, 100, &job->kernel_scale, err));
    return rg_setting_real(&job->settings, "communication-scale", 0.01, 100,
                           &job->communication_scale, err);
}

rg_status rg_serve_job_own_step(rg_serve_job *job, rg_err *err)
{
    if (!job->model || !job->cluster)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "what runs on what? give --model and --hw, or --kernel-times, or a constant "
                       "--step-time");
    job->engine.async_scheduling = job->deployment.rules.asynchronous;
    RG_TRY(read_scales(job, err));
    const rg_lookup settings = rg_setting_lookup(&job->settings);
    rg_kernel_options options;
    RG_TRY(rg_step_kernels_read(&settings, &options, err));
    RG_TRY(rg_step_prepare(job->arena, job->cluster, job->model, &job->formats, &job->parallel,
                           &job->engine, &options, &job->step, err));
    rg_flop_rate peak;
    rg_byte_rate bandwidth;
    const rg_accel *accel = job->cluster->accel;
    RG_TRY(rg_roof_peak(accel, job->formats.math, false, &peak, err));
    RG_TRY(rg_roof_bandwidth(accel, accel->level_count - 1, &bandwidth, err));
    job->peak_flops_per_s = peak.v;
    job->memory_bytes_per_s = bandwidth.v;
    job->deployment.step = (rg_step_model){.step_time = own_step,
                                           .context = job,
                                           .full_power_s = &job->step_full_power_s,
                                           .costly = true};
    return RG_OK;
}

/* cli/serve_fit.c: engine constants fitted on one measured run, to be used on others. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include "core/file.h"

static void set_double(void *context, double value)
{
    *(double *)context = value;
}

static void set_reduce_rate(void *context, double value)
{
    rg_serve_job *job = context;
    job->reduce_bytes_per_s = value;
    rg_kernel_times_set_reduce(job->kernel_times, job->reduce_latency_s, value);
}

static rg_status write_constants(rg_serve_job *job, const rg_tunable *c, const rg_dim *dims,
                                 int count, const rg_replay_errors *e, const char *path,
                                 rg_err *err)
{
    rg_out_file file;
    RG_TRY(rg_out_open(&file, path, err));
    fprintf(
        file.stream,
        "# Engine constants fitted on %s (%lld requests): errors of that run TTFT %.2f %%, TPOT "
        "%.2f %%,\n# whole request %.2f %%. Use it as a scenario: ridge serve THIS --measured "
        "ANOTHER.\n",
        job->measured->name, (long long)e->requests, 100 * e->ttft_wape, 100 * e->tpot_wape,
        100 * e->e2e_wape);
    if (job->cluster)
        fprintf(file.stream, "fitted-on: %s\n", job->cluster->accel->name);
    for (int i = 0; i < count; i++) {
        char text[64];
        rg_quantity_format(c[i].value, dims[i], 6, text, sizeof text);
        fprintf(file.stream, "%s: %s\n", c[i].name, text);
    }
    return rg_out_commit(&file, err);
}

enum { MAX_FITTED = 8 };

static int tunables(rg_serve_job *job, rg_tunable *all, rg_dim *dims)
{
    rg_engine_constants *c = &job->deployment.constants;
    const bool own = job->step != NULL;
    int n = 0;
    if (own && job->parallel.tp > 1) {
        dims[n] = RG_DIM_NONE;
        all[n++] = (rg_tunable){
            "communication-scale",    job->communication_scale, 0.2, 12, 0.5, set_double,
            &job->communication_scale};
    }
    if (job->kernel_times && job->parallel.tp > 1) {
        dims[n] = RG_DIM_BYTES_PER_S;
        all[n++] = (rg_tunable){"reduce-rate",
                                job->reduce_bytes_per_s,
                                job->reduce_bytes_per_s / 16,
                                job->reduce_bytes_per_s * 4,
                                job->reduce_bytes_per_s / 2,
                                set_reduce_rate,
                                job};
    }
    dims[n] = RG_DIM_SECONDS;
    all[n++] = (rg_tunable){"step-overhead", c->step_overhead_s, 0, 0.01, 5e-4,
                            set_double,      &c->step_overhead_s};
    if (own) {
        dims[n] = RG_DIM_NONE;
        all[n++] = (rg_tunable){"kernel-scale", job->kernel_scale, 0.5, 2, 0.05,
                                set_double,     &job->kernel_scale};
    }
    dims[n] = RG_DIM_SECONDS;
    all[n++] = (rg_tunable){"request-overhead", c->request_overhead_s, 0, 0.05, 2e-3,
                            set_double,         &c->request_overhead_s};
    dims[n] = RG_DIM_SECONDS;
    all[n++] = (rg_tunable){"per-sequence", c->per_sequence_s, 0, 1e-4, 3e-6,
                            set_double,     &c->per_sequence_s};
    dims[n] = RG_DIM_NONE;
    all[n++] = (rg_tunable){"attention-skew", c->attention_skew, 0, 1, 0.1,
                            set_double,       &c->attention_skew};
    return n;
}

rg_status rg_serve_job_fit(rg_serve_job *job, rg_err *err)
{
    rg_tunable all[MAX_FITTED];
    rg_dim dims[MAX_FITTED];
    int evaluations = 0;
    const int count = tunables(job, all, dims);
    rg_replay_errors best;
    RG_TRY(rg_replay_fit(job->arena, job->measured, &job->deployment, all, count, &best,
                         &evaluations, err));
    rg_report_assume(job->report,
                     "engine constants are fitted on this very run (%d replays); its "
                     "errors are not a validation",
                     evaluations);
    json_t *object = json_object();
    for (int i = 0; i < count; i++) {
        json_object_set_new(object, all[i].name, json_real(all[i].value));
        rg_report_line(job->report, "fitted %-20s %.6g", all[i].name, all[i].value);
    }
    rg_report_json(job->report, "fitted", object);
    rg_report_line(job->report, "%s", "");
    rg_pos pos;
    const char *path = rg_setting(&job->settings, "fit-engine", &pos);
    return path && *path && *path != '-' ? write_constants(job, all, dims, count, &best, path, err)
                                         : RG_OK;
}

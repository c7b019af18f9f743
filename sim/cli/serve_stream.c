/* cli/serve_stream.c: the requests of serve: a trace, or made-up ones. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include <string.h>

/* Mistakes in a setting's words are told where the scenario says them. */
static rg_status read_length(const rg_settings *s, const char *name, const char *usual,
                             rg_length_spec *out, rg_err *err)
{
    const rg_lookup from = rg_setting_lookup(s);
    const char *text = rg_lookup_text(&from, name);
    return rg_lookup_placed(rg_length_parse(text ? text : usual, out, err), &from, name, err);
}

static rg_status read_arrivals(const rg_settings *s, rg_arrival_spec *out, rg_err *err)
{
    const rg_lookup from = rg_setting_lookup(s);
    return rg_lookup_placed(rg_arrival_parse(rg_lookup_text(&from, "arrivals"), out, err), &from,
                            "arrivals", err);
}

static rg_status made_up(rg_serve_job *job, rg_err *err)
{
    const rg_settings *s = &job->settings;
    rg_pos pos;
    rg_synth_spec spec = {.seed = rg_arg_seed(s->args), .requests = 1000};
    RG_TRY(rg_setting_int(s, "limit", 1, INT64_C(1) << 40, &spec.requests, err));
    const char *const usual_prompt = "512", *const usual_answer = "128";
    const char *prompt = rg_setting(s, "isl", &pos), *answer = rg_setting(s, "osl", &pos);
    RG_TRY(read_arrivals(s, &spec.arrivals, err));
    RG_TRY(read_length(s, "isl", usual_prompt, &spec.prompt, err));
    RG_TRY(read_length(s, "osl", usual_answer, &spec.output, err));
    if (!prompt || !answer)
        rg_report_assume(job->report, "made-up lengths: prompt %s, answer %s tokens",
                         prompt ? prompt : usual_prompt, answer ? answer : usual_answer);
    spec.sessions.turns = 1;
    RG_TRY(rg_setting_int(s, "turns", 1, 10000, &spec.sessions.turns, err));
    if (spec.sessions.turns > 1)
        rg_report_assume(job->report,
                         "--arrivals counts sessions: each brings up to %lld requests, one a turn",
                         (long long)spec.sessions.turns);
    RG_TRY(rg_setting_quantity(s, "think", RG_DIM_SECONDS, &spec.sessions.think_s, err));
    RG_TRY(rg_setting_int(s, "system-prompt", 0, 10000000, &spec.sessions.system_tokens, err));
    return rg_requests_synth(job->arena, &spec, &job->stream, err);
}

static rg_status from_trace(rg_serve_job *job, const char *path, rg_err *err)
{
    const rg_settings *s = &job->settings;
    rg_pos pos;
    RG_TRY(rg_report_input(job->report, "trace", path, err));
    RG_TRY(
        rg_requests_open(job->arena, path, rg_setting(s, "trace-format", &pos), &job->stream, err));
    const char *arrivals = rg_setting(s, "arrivals", &pos);
    if (arrivals) {
        rg_arrival_spec spec;
        RG_TRY(read_arrivals(s, &spec, err));
        RG_TRY(rg_requests_with_arrivals(job->arena, job->stream, &spec, rg_arg_seed(s->args),
                                         &job->stream, err));
    } else if (rg_requests_facts(job->stream)->no_arrivals) {
        return rg_fail(err, RG_ERR_USAGE, (rg_pos){path, 1, 1},
                       "the trace has lengths only; say when requests come, such as --arrivals "
                       "poisson:4/s or --arrivals closed:32");
    }
    int64_t limit = 0;
    RG_TRY(rg_setting_int(s, "limit", 1, INT64_C(1) << 40, &limit, err));
    if (limit > 0)
        RG_TRY(rg_requests_head(job->arena, job->stream, limit, &job->stream, err));
    return RG_OK;
}

rg_status rg_serve_job_stream(rg_serve_job *job, rg_err *err)
{
    static const char *const overlong[] = {"reject", "cut", "fail", NULL};
    const rg_settings *s = &job->settings;
    rg_pos pos;
    const char *path = rg_setting(s, "trace", &pos);
    if (path)
        RG_TRY(from_trace(job, path, err));
    else if (rg_setting_given(s, "arrivals"))
        RG_TRY(made_up(job, err));
    else
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "no requests: give --trace FILE, --measured RUN, or --arrivals with --isl "
                       "and --osl");
    double factor = 1;
    RG_TRY(rg_setting_real(s, "speed-up", 1e-6, 1e6, &factor, err));
    if (factor != 1)
        RG_TRY(rg_requests_scale_time(job->arena, job->stream, factor, &job->stream, err));
    int policy = RG_OVERLONG_REJECT;
    RG_TRY(rg_setting_choice(s, "over-long", overlong, &policy, err));
    return rg_requests_limit(job->arena, job->stream, job->deployment.rules.max_model_tokens,
                             (rg_overlong)policy, &job->stream, err);
}

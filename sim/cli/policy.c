/* cli/policy.c: options of speculation, offloading and life without a cache. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "step/offload.h"
#include "step/speculate.h"

/* ---- speculation ---- */

/** What writes the drafts, prepared on the same arrangement; the engine's own time is the target's.
 */
static rg_status prepare_draft(rg_arena *arena, const rg_args *args, const rg_setup *s,
                               rg_spec *spec, rg_report *report, rg_err *err)
{
    rg_spec_draft draft;
    int64_t layers = 0;
    if (rg_arg_given(args, "exit-layer"))
        RG_TRY(rg_arg_int(args, "exit-layer", 1, s->model->layer_count, &layers, err));
    RG_TRY(rg_spec_draft_of(arena, spec->kind, s->model, &s->formats, &s->parallel,
                            rg_arg_text(args, "draft-model"), layers, &draft, err));
    if (!draft.model)
        return RG_OK;
    if (spec->kind == RG_SPEC_SELF && layers == 0)
        rg_report_assume(report, "self-speculation leaves after %lld of %lld layers",
                         (long long)draft.model->layer_count, (long long)s->model->layer_count);
    if (spec->kind == RG_SPEC_EAGLE || spec->kind == RG_SPEC_MTP)
        rg_report_assume(report, "the draft is one layer like the model's %s, and its head",
                         spec->kind == RG_SPEC_EAGLE ? "first" : "last");
    if (spec->kind == RG_SPEC_MTP && s->model->mtp_layers < 1)
        rg_report_assume(report, "%s carries no multi-token-prediction layer; one is assumed",
                         s->model->name);
    return rg_step_prepare(arena, s->cluster, draft.model, &draft.formats, &draft.parallel,
                           &s->engine, &s->kernel, &spec->draft, err);
}

/* Options that only some ways of speculating read; given to another they would change nothing. */
static rg_status no_idle_option(const rg_args *args, rg_spec_kind kind, rg_err *err)
{
    static const char *const names[] = {"drafts", "acceptance", "tree"};
    for (int i = 0; i < 3; i++)
        if (kind == RG_SPEC_NONE && rg_arg_given(args, names[i]))
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "--%s '%s' changes nothing without --speculate HOW", names[i],
                           rg_arg_text(args, names[i]));
    if (kind != RG_SPEC_DRAFT_MODEL && rg_arg_given(args, "draft-model"))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "--draft-model '%s' changes nothing without --speculate draft_model",
                       rg_arg_text(args, "draft-model"));
    if (kind != RG_SPEC_SELF && rg_arg_given(args, "exit-layer"))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "--exit-layer '%s' changes nothing without --speculate self",
                       rg_arg_text(args, "exit-layer"));
    return RG_OK;
}

static rg_status read_spec(rg_arena *arena, const rg_args *args, rg_spec *spec, rg_err *err)
{
    const rg_lookup options = rg_arg_lookup(args);
    double *list;
    int count;
    *spec = (rg_spec){0};
    RG_TRY(rg_spec_kind_parse(rg_arg_text(args, "speculate"), &spec->kind, err));
    RG_TRY(no_idle_option(args, spec->kind, err));
    RG_TRY(rg_arg_int(args, "drafts", 1, RG_SPEC_MOST_DEPTH, &spec->depth, err));
    RG_TRY(rg_lookup_reals(arena, &options, "acceptance", RG_SPEC_MOST_DEPTH, &list, &count, err));
    spec->acceptance = count > 0 ? list[0] : 0;
    if (count > 1) {
        memcpy(spec->list, list, (size_t)count * sizeof *list);
        spec->list_count = count;
    }
    RG_TRY(rg_lookup_reals(arena, &options, "tree", RG_SPEC_MOST_DEPTH, &list, &count, err));
    for (int i = 0; i < count; i++) {
        if (!(list[i] >= 1 && list[i] <= 1024 && list[i] == floor(list[i])))
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "option --tree: %g is no number of candidates", list[i]);
        spec->width[i] = (int64_t)list[i];
    }
    return RG_OK;
}

static rg_status report_speculation(rg_arena *arena, const rg_args *args, const rg_setup *s,
                                    rg_step_context *step, int64_t batch, double context,
                                    rg_report *report, rg_err *err)
{
    rg_spec spec;
    rg_spec_time t;
    int64_t even;
    RG_TRY(read_spec(arena, args, &spec, err));
    if (spec.kind == RG_SPEC_NONE)
        return RG_OK;
    RG_TRY(prepare_draft(arena, args, s, &spec, report, err));
    const rg_pass pass = {
        .decodes = batch, .decode_kv_tokens = (double)batch * context, .decode_kv_max = context};
    RG_TRY(rg_spec_time_of(step, &spec, &pass, &t, err));
    RG_TRY(rg_spec_break_even(step, &spec, context, 8192, &even, err));
    rg_report_text(report, "speculation", "speculation by", rg_spec_kind_name(spec.kind));
    rg_report_int(report, "speculation_candidates", "  candidates verified a pass",
                  (long long)rg_spec_nodes(&spec));
    rg_report_figure(report, "speculation_tokens_per_pass", "  expected tokens a pass",
                     t.tokens_per_pass, RG_DIM_NONE);
    rg_report_figure(report, "speculation_draft_s", "  drafting", t.draft.v, RG_DIM_SECONDS);
    rg_report_figure(report, "speculation_verify_s", "  verification", t.verify.v, RG_DIM_SECONDS);
    rg_report_figure(report, "speculation_tpot_s", "  time per output token", t.per_token.v,
                     RG_DIM_SECONDS);
    rg_report_figure(report, "speculation_speedup", "  faster than without", t.speedup,
                     RG_DIM_NONE);
    rg_report_int(report, "speculation_break_even_batch",
                  even == 0   ? "  pays at every batch up to 8192 (0)"
                  : even == 1 ? "  never pays (1)"
                              : "  no longer pays from batch",
                  (long long)even);
    return RG_OK;
}

/* ---- offloading, no cache, experts ---- */

static rg_status report_offload(const rg_args *args, rg_step_context *step, int64_t batch,
                                double context, rg_report *report, rg_err *err)
{
    rg_offload offload = {0};
    rg_offload_time t;
    if (rg_arg_given(args, "offload-weights"))
        RG_TRY(rg_arg_real(args, "offload-weights", 0, 1, &offload.weight_ratio, err));
    if (rg_arg_given(args, "offload-kv"))
        RG_TRY(rg_arg_real(args, "offload-kv", 0, 1, &offload.kv_ratio, err));
    const rg_pass pass = {
        .decodes = batch, .decode_kv_tokens = (double)batch * context, .decode_kv_max = context};
    RG_TRY(rg_offload_time_of(step, &pass, &offload, &t, err));
    rg_report_figure(report, "offload_tpot_s", "decode pass with host memory", t.step.total.v,
                     RG_DIM_SECONDS);
    rg_report_figure(report, "offload_weight_bytes", "  weights streamed in", t.weight_bytes.v,
                     RG_DIM_BYTES);
    rg_report_figure(report, "offload_kv_bytes", "  cache streamed in", t.kv_bytes.v, RG_DIM_BYTES);
    rg_report_figure(report, "offload_stream_s", "  the host link alone", t.stream.v,
                     RG_DIM_SECONDS);
    rg_report_text(report, "offload_bound", "  bound by", t.link_bound ? "host link" : "device");
    return RG_OK;
}

rg_status rg_policy_report(rg_arena *arena, const rg_args *args, const rg_setup *setup,
                           rg_step_context *step, int64_t batch, double context, rg_report *report,
                           rg_err *err)
{
    rg_step_balance balance;
    rg_step_balance_of(step, &balance);
    if (balance.imbalance != 1 || balance.dropped_ratio > 0) {
        rg_report_figure(report, "expert_imbalance_ratio", "rows of the busiest expert rank",
                         balance.imbalance, RG_DIM_NONE);
        rg_report_figure(report, "expert_dropped_ratio", "rows dropped", balance.dropped_ratio,
                         RG_DIM_NONE);
    }
    if (rg_arg_given(args, "speculate"))
        RG_TRY(report_speculation(arena, args, setup, step, batch, context, report, err));
    else
        RG_TRY(no_idle_option(args, RG_SPEC_NONE, err));
    if (rg_arg_given(args, "offload-weights") || rg_arg_given(args, "offload-kv"))
        RG_TRY(report_offload(args, step, batch, context, report, err));
    if (rg_arg_flag(args, "no-cache")) {
        rg_no_cache n;
        RG_TRY(rg_no_cache_of(arena, step, batch, (int64_t)context, &n, err));
        rg_report_figure(report, "no_cache_tpot_s", "next token without a cache", n.uncached.v,
                         RG_DIM_SECONDS);
        rg_report_figure(report, "no_cache_ratio", "  slower than with one", n.ratio, RG_DIM_NONE);
    }
    return RG_OK;
}

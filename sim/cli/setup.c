// SPDX-License-Identifier: Apache-2.0
#include "cli/setup.h"

#include <string.h>

rg_status rg_setup_changes(rg_arena *arena, const rg_args *args, rg_report *report, rg_setup *out,
                           rg_err *err)
{
    static const char *const scopes[] = {"hw", "cluster", "model", "engine", NULL};
    const int count = rg_arg_count(args, "set");
    rg_override *items = RG_NEW(arena, rg_override, count, err);
    if (!items)
        return RG_ERR_LIMIT;
    for (int i = 0; i < count; i++) {
        RG_TRY(rg_override_parse(arena, rg_arg_nth(args, "set", i), &items[i], err));
        const rg_changes one = {&items[i], 1};
        int scope = 0;
        while (scopes[scope] && !rg_changes_has(&one, scopes[scope]))
            scope++;
        if (!scopes[scope])
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "change '%s' begins with none of hw., cluster., model., engine.",
                           items[i].path);
        rg_report_assume(report, "what-if: %s=%s", items[i].path, items[i].value);
    }
    out->changes = (rg_changes){items, count};
    return RG_OK;
}

rg_status rg_setup_machine(rg_arena *arena, const rg_args *args, rg_report *report, rg_setup *out,
                           rg_err *err)
{
    const char *name = rg_arg_text(args, "hw");
    if (!name)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "missing option --hw NAME; 'ridge list hw' names the machines");
    RG_TRY(rg_cluster_load_changed(arena, name, &out->changes, &out->cluster, err));
    out->accel = out->cluster->accel;
    RG_TRY(rg_report_input(report, "hardware", out->accel->path, err));
    if (out->cluster->path && strcmp(out->cluster->path, out->accel->path) != 0)
        RG_TRY(rg_report_input(report, "cluster", out->cluster->path, err));
    return RG_OK;
}

static rg_status read_format(const rg_args *args, const char *option, rg_format *out, rg_err *err)
{
    const rg_status status = rg_format_parse(rg_arg_text(args, option), RG_NOWHERE, out, err);
    if (status != RG_OK && err) {
        char text[RG_ERR_TEXT_SIZE - 64];
        snprintf(text, sizeof text, "%.900s", err->text);
        rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "option --%s: %s", option, text);
    }
    return status;
}

rg_status rg_setup_model(rg_arena *arena, const rg_args *args, rg_report *report, rg_setup *out,
                         rg_err *err)
{
    const char *name = rg_arg_text(args, "model");
    if (!name)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "missing option --model NAME; 'ridge list models' names the models");
    RG_TRY(rg_model_load_changed(arena, name, &out->changes, &out->model, err));
    const rg_model *model = out->model;
    if (model->path)
        RG_TRY(rg_report_input(report, "model", model->path, err));

    rg_formats *f = &out->formats;
    *f = (rg_formats){.fused_attention = !rg_arg_flag(args, "unfused"), .page_tokens = 16};
    rg_format act;
    RG_TRY(read_format(args, "act-type", &act, err));
    f->act = act.math;
    f->head = act;
    if (rg_arg_given(args, "weight-type")) {
        RG_TRY(read_format(args, "weight-type", &f->weight, err));
    } else {
        const char *weight = model->quantisation ? model->quantisation : "bf16";
        RG_TRY(rg_format_parse(weight, RG_NOWHERE, &f->weight, err));
        rg_report_assume(report, "weights in %s (%s); --weight-type changes it", weight,
                         model->quantisation ? "the checkpoint's own" : "default");
    }
    if (rg_arg_given(args, "kv-type")) {
        RG_TRY(read_format(args, "kv-type", &f->kv, err));
    } else {
        const char *kv = model->kv_quantisation ? model->kv_quantisation : "bf16";
        RG_TRY(rg_format_parse(kv, RG_NOWHERE, &f->kv, err));
        rg_report_assume(report, "KV cache in %s (%s); --kv-type changes it", kv,
                         model->kv_quantisation ? "the checkpoint's own" : "default");
    }
    f->math = f->weight.weight_only ? f->act : f->weight.math;
    RG_TRY(rg_arg_real(args, "moe-skew", 0.0, 4.0, &f->moe_skew, err));
    return RG_OK;
}

rg_status rg_setup_arrangement(const rg_args *args, rg_report *report, rg_setup *out, rg_err *err)
{
    rg_parallel *p = &out->parallel;
    *p = (rg_parallel){.attention_dp = rg_arg_flag(args, "attention-dp"),
                       .sequence_parallel = rg_arg_flag(args, "sequence-parallel"),
                       .pp_interleave = 1,
                       .micro_batches = 0};
    RG_TRY(rg_arg_int(args, "tp", 1, 4096, &p->tp, err));
    RG_TRY(rg_arg_int(args, "pp", 1, 4096, &p->pp, err));
    RG_TRY(rg_arg_int(args, "ep", 1, 4096, &p->ep, err));
    RG_TRY(rg_arg_int(args, "cp", 1, 4096, &p->cp, err));
    RG_TRY(rg_arg_int(args, "dp", 1, 4096, &p->dp, err));
    out->kernel = (rg_kernel_options){.ideal = rg_arg_flag(args, "ideal"),
                                      .sustained = rg_arg_flag(args, "sustained")};
    if (out->kernel.ideal)
        rg_report_assume(report, "bare roofline: every efficiency is 1, nothing has a fixed cost");
    return RG_OK;
}

rg_status rg_setup_engine(rg_arena *arena, const rg_args *args, rg_report *report, rg_setup *out,
                          rg_err *err)
{
    const char *name = rg_arg_text(args, "engine");
    RG_TRY(rg_engine_load_changed(arena, name, &out->changes, &out->engine, err));
    if (out->kernel.ideal) {
        out->engine.step_overhead_s = 0.0;
        out->engine.per_sequence_s = 0.0;
        out->engine.device_gap_s = 0.0;
        out->engine.launch_s = 0.0;
        out->engine.graph_kernel_s = 0.0;
    } else {
        rg_report_assume(report, "engine constants of '%s'; --engine changes them", name);
    }
    return RG_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "cli/setup.h"

#include <string.h>

#include "step/arrangement.h"

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

static void say_source(rg_report *report, const char *what, const char *format, const char *own,
                       const char *option)
{
    rg_report_assume(report, "%s in %s (%s); --%s changes it", what, format,
                     own ? "the checkpoint's own" : "default", option);
}

/* A checkpoint may store experts and attention otherwise than the rest. */
static void say_formats(const rg_args *args, const rg_model *model, const rg_formats *f,
                        rg_report *report)
{
    if (!rg_arg_given(args, "weight-type")) {
        say_source(report, "weights", f->weight.name, model->quantisation, "weight-type");
        if (f->expert.name[0])
            say_source(report, "routed experts", f->expert.name, f->expert.name, "weight-type");
        if (f->mixer.name[0])
            say_source(report, "attention weights", f->mixer.name, f->mixer.name, "weight-type");
    }
    if (!rg_arg_given(args, "kv-type"))
        say_source(report, "KV cache", f->kv.name, model->kv_quantisation, "kv-type");
}

void rg_setup_expand(const rg_accel *accel, rg_formats *f, rg_report *report)
{
    const rg_format *const all[] = {&f->weight, &f->expert, &f->mixer};
    const rg_dtype asked = f->act;
    const unsigned changed = rg_formats_expand(accel, f);
    if (changed & 1u << 3)
        rg_report_assume(report, "%s has no %s products: what is in it runs in %s", accel->name,
                         rg_dtype_name(asked), rg_dtype_name(f->act));
    for (unsigned i = 0; i < 3; i++)
        if (changed & 1u << i)
            rg_report_assume(report, "%s has no %s products: weights in %s are expanded to %s",
                             accel->name, rg_dtype_name(all[i]->math), all[i]->name,
                             rg_dtype_name(f->act));
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

    const rg_lookup options = rg_arg_lookup(args);
    rg_formats *f = &out->formats;
    RG_TRY(rg_formats_read(&options, model, f, err));
    f->page_tokens = 16;
    say_formats(args, model, f, report);
    rg_report_setting(report, "kv_layout", rg_kv_layout_name(f->kv_layout));
    rg_setup_expand(out->accel, f, report);
    return RG_OK;
}

rg_status rg_setup_arrangement(rg_arena *arena, const rg_args *args, rg_report *report,
                               rg_setup *out, rg_err *err)
{
    const rg_lookup options = rg_arg_lookup(args);
    out->parallel = rg_parallel_default();
    RG_TRY(rg_parallel_read(arena, &options, &out->parallel, err));
    RG_TRY(rg_step_kernels_read(&options, &out->kernel, err));
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
        rg_engine_without_host(&out->engine);
    } else {
        rg_report_assume(report, "engine constants of '%s'; --engine changes them", name);
    }
    return RG_OK;
}

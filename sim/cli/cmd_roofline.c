/* cli/cmd_roofline.c: the machine's roofs, and under them the operators of a model and measured
 * kernels. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>

#include "cli/roofline.h"
#include "core/csv.h"
#include "trace/run.h"
#include "report/plot.h"
#include "roofline/roofline.h"
#include "step/estimate.h"

static rg_status add_model(rg_roof_figure *f, const rg_args *args, rg_setup *setup, rg_err *err)
{
    static const char *const phases[] = {"both", "decode", "prefill", NULL};
    int phase;
    int64_t batch, context, prompt;
    RG_TRY(rg_arg_choice(args, "phase", phases, &phase, err));
    RG_TRY(rg_arg_int(args, "batch", 1, 1 << 20, &batch, err));
    RG_TRY(rg_arg_int(args, "context", 1, 1 << 30, &context, err));
    RG_TRY(rg_arg_int(args, "prompt", 1, 1 << 30, &prompt, err));
    RG_TRY(rg_setup_model(f->arena, args, f->report, setup, err));
    RG_TRY(rg_setup_arrangement(f->arena, args, f->report, setup, err));
    RG_TRY(rg_setup_engine(f->arena, args, f->report, setup, err));
    rg_step_context *step;
    RG_TRY(rg_step_prepare(f->arena, setup->cluster, setup->model, &setup->formats,
                           &setup->parallel, &setup->engine, &setup->kernel, &step, err));
    rg_report_assume(f->report, "%s", rg_kernel_device_note(rg_step_kernels(step)));
    if (phase != 2) {
        const rg_pass decode = rg_load_decode_pass(batch, (double)context);
        RG_TRY(rg_roof_add_pass(f, step, &decode, "decode", 'd', err));
    }
    if (phase != 1) {
        const rg_chunk chunk = {.new_tokens = prompt};
        const rg_pass prefill = {.chunks = &chunk, .chunk_count = 1};
        RG_TRY(rg_roof_add_pass(f, step, &prefill, "prefill", 'p', err));
    }
    return RG_OK;
}

/* One measured kernel: under the roof of its type, with what is wrong about it said. */
static rg_status add_measured_point(rg_roof_figure *f, rg_roof_point *p, rg_err *err)
{
    p->source = "measured kernel";
    p->phase = "measured";
    p->count = 1;
    p->class = RG_ROOF_MEASURED;
    p->roofline_seconds = NAN;
    if (!(p->flops > 0.0 && p->bytes > 0.0 && p->seconds > 0.0))
        return rg_roof_add(f, p, err);
    rg_work work = {.math = p->math, .flops = RG_F(p->flops)};
    work.bytes[f->setup->accel->level_count - 1] = RG_B(p->bytes);
    rg_roof_time roof;
    rg_err why = {0};
    const rg_status status = rg_roof_time_of(f->setup->accel, &work, &roof, &why);
    if (status == RG_ERR_MODEL) {
        rg_report_assume(f->report, "measured kernel %s is not on the plot: %s", p->name, why.text);
        return RG_OK;
    }
    if (status != RG_OK)
        return rg_fail(err, status, why.pos, "%s", why.text);
    p->roofline_seconds = roof.total.v;
    if (p->seconds < roof.total.v)
        rg_report_assume(f->report,
                         "measured kernel %s is %.2f times faster than the roofline allows: "
                         "served from cache, or a wrong count",
                         p->name, roof.total.v / p->seconds);
    snprintf(p->id, sizeof p->id, "m%d", f->count + 1);
    return rg_roof_add(f, p, err);
}

static rg_status read_count(const rg_csv *csv, int column, double *out, rg_err *err)
{
    RG_TRY(rg_csv_real(csv, column, out, err));
    if (*out >= 0.0)
        return RG_OK;
    return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(csv, column), "'%s' is under 0",
                   rg_csv_text(csv, column));
}

/* A table with columns name, flops, bytes, time_us (or time_s); dtype is optional. */
static rg_status add_table(rg_roof_figure *f, rg_csv *csv, rg_err *err)
{
    int name, flops, bytes, time;
    double unit = 1e-6;
    name = rg_csv_find(csv, "kernel");
    if (name < 0)
        RG_TRY(rg_csv_column(csv, "name", &name, err));
    RG_TRY(rg_csv_column(csv, "flops", &flops, err));
    RG_TRY(rg_csv_column(csv, "bytes", &bytes, err));
    time = rg_csv_find(csv, "time_s");
    if (time >= 0)
        unit = 1.0;
    else
        RG_TRY(rg_csv_column(csv, "time_us", &time, err));
    const int dtype = rg_csv_find(csv, "dtype");
    if (dtype < 0)
        rg_report_assume(f->report,
                         "measured rows are of type bf16: the table has no column dtype");
    for (;;) {
        bool more;
        RG_TRY(rg_csv_next(csv, &more, err));
        if (!more)
            return RG_OK;
        rg_roof_point p = {.math = RG_BF16};
        p.name = rg_arena_strdup(f->arena, rg_csv_text(csv, name), err);
        if (!p.name)
            return RG_ERR_LIMIT;
        RG_TRY(read_count(csv, flops, &p.flops, err));
        RG_TRY(read_count(csv, bytes, &p.bytes, err));
        RG_TRY(read_count(csv, time, &p.seconds, err));
        if (p.seconds == 0.0)
            return rg_fail(err, RG_ERR_INPUT, rg_csv_pos(csv, time),
                           "a time of '%s' gives no rate; leave the row out",
                           rg_csv_text(csv, time));
        if (dtype >= 0)
            RG_TRY(rg_dtype_parse(rg_csv_text(csv, dtype), rg_csv_pos(csv, dtype), &p.math, err));
        p.seconds *= unit;
        RG_TRY(add_measured_point(f, &p, err));
    }
}

/* Entries of a run record; bytes are those counted, else those of the benchmark's own model. */
static rg_status add_run(rg_roof_figure *f, const char *path, rg_err *err)
{
    rg_run *run;
    RG_TRY(rg_run_load(f->arena, path, NULL, &run, err));
    for (int i = 0; i < run->count; i++) {
        const rg_run_entry *e = &run->entries[i];
        rg_roof_point p = {.math = RG_BF16};
        p.name = rg_arena_printf(f->arena, err, "%s%s%s", e->kernel, e->problem[0] ? " " : "",
                                 e->problem);
        if (!p.name)
            return RG_ERR_LIMIT;
        if (e->unusable || e->rate_unit) {
            rg_report_assume(f->report, "measured kernel %s is not on the plot: %s", p.name,
                             e->unusable ? e->unusable : "the file gives a rate and no time");
            continue;
        }
        p.seconds = rg_run_cost(f->arena, e, err);
        p.flops = e->flops > 0.0 ? e->flops : 0.0;
        p.bytes = e->dram_bytes > 0.0 ? e->dram_bytes : e->model_bytes > 0.0 ? e->model_bytes : 0.0;
        if (e->dtype[0])
            RG_TRY(rg_dtype_parse(e->dtype, e->pos, &p.math, err));
        RG_TRY(add_measured_point(f, &p, err));
    }
    return RG_OK;
}

/* A table with flops and bytes, or any run record that ridge reads. */
static rg_status add_measured(rg_roof_figure *f, const char *path, rg_err *err)
{
    rg_csv *csv;
    if (rg_csv_open(f->arena, path, &csv, NULL) == RG_OK) {
        const bool table = rg_csv_find(csv, "flops") >= 0 || rg_csv_find(csv, "bytes") >= 0;
        const rg_status status = table ? add_table(f, csv, err) : RG_OK;
        rg_csv_close(csv);
        if (table)
            return status;
    }
    return add_run(f, path, err);
}

/* Roofs that a tool measured on the machine stand beside those of the data sheet. */
static rg_status add_ceilings(rg_roof_figure *f, const char *path, rg_err *err)
{
    RG_TRY(rg_report_input(f->report, "ceilings", path, err));
    RG_TRY(rg_ceilings_load(f->arena, path, &f->measured, err));
    rg_byte_rate spec;
    if (rg_roof_bandwidth(f->setup->accel, f->setup->accel->level_count - 1, &spec, NULL) == RG_OK)
        rg_ceilings_compare(&f->measured, spec.v);
    rg_table *t = rg_report_table(f->report, "measured_roofs", "\nMeasured roofs");
    rg_table_column(t, "name", "roof", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "bandwidth_bytes_per_s", "bandwidth", RG_CELL_REAL, RG_DIM_BYTES_PER_S,
                    false);
    rg_table_column(t, "rate_flops_per_s", "rate", RG_CELL_REAL, RG_DIM_FLOPS_PER_S, false);
    rg_table_column(t, "doubtful", "left out because", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int i = 0; i < f->measured.count; i++) {
        const rg_ceiling *c = &f->measured.items[i];
        rg_table_text(t, c->name);
        rg_table_real(t, c->compute ? NAN : c->value);
        rg_table_real(t, c->compute ? c->value : NAN);
        rg_table_text(t, c->doubtful);
    }
    return RG_OK;
}

static void report_roofs(const rg_roof_figure *f)
{
    const rg_accel *accel = f->setup->accel;
    rg_table *t = rg_report_table(f->report, "levels", "Roofs");
    rg_table_column(t, "name", "level", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "bandwidth_bytes_per_s", "bandwidth", RG_CELL_REAL, RG_DIM_BYTES_PER_S,
                    false);
    rg_table_column(t, "capacity_bytes", "capacity", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(t, "line_bytes", "line", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_flop_rate peak;
    const bool has_bf16 = rg_roof_peak(accel, RG_BF16, false, &peak, NULL) == RG_OK;
    rg_table_column(t, "ridge_bf16_flops_per_byte", "ridge bf16", RG_CELL_REAL, RG_DIM_NONE, false);
    for (int l = 0; l < accel->level_count; l++) {
        const rg_memory_level *level = &accel->levels[l];
        rg_byte_rate bandwidth;
        const bool known = rg_roof_bandwidth(accel, l, &bandwidth, NULL) == RG_OK;
        rg_table_text(t, level->name);
        rg_table_real(t, known ? bandwidth.v : NAN);
        rg_table_real(t, level->capacity.known
                             ? level->capacity.value * (level->per_unit ? accel->units.value : 1.0)
                             : NAN);
        rg_table_real(t, level->line.known ? level->line.value : NAN);
        rg_table_real(t, known && has_bf16 ? rg_roof_ridge(peak, bandwidth) : NAN);
    }
    t = rg_report_table(f->report, "peaks", "\nDense peaks");
    rg_table_column(t, "name", "type", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "unit", "unit", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "rate_flops_per_s", "rate", RG_CELL_REAL, RG_DIM_FLOPS_PER_S, false);
    for (int i = 0; i < accel->peak_count; i++) {
        rg_table_text(t, accel->peaks[i].name);
        rg_table_text(t, accel->peaks[i].matrix ? "matrix" : "vector");
        rg_table_real(t, accel->peaks[i].rate.known ? accel->peaks[i].rate.value : NAN);
    }
}

static void report_points(const rg_roof_figure *f)
{
    rg_table *t = rg_report_table(f->report, "points", "\nPoints");
    rg_table_column(t, "id", "id", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "name", "operator", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "phase", "phase", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "dtype", "type", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "count", "count", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "time_s", "time of one", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "intensity_flops_per_byte", "flop/byte", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "rate_flops_per_s", "rate", RG_CELL_REAL, RG_DIM_FLOPS_PER_S, false);
    rg_table_column(t, "efficiency_ratio", "of roofline", RG_CELL_REAL, RG_DIM_SHARE, false);
    rg_table_column(t, "bound", "bound", RG_CELL_TEXT, RG_DIM_NONE, false);
    for (int i = 0; i < f->count; i++) {
        const rg_roof_point *p = &f->points[i];
        rg_table_text(t, p->id);
        rg_table_text(t, p->name);
        rg_table_text(t, p->phase);
        rg_table_text(t, rg_dtype_name(p->math));
        rg_table_int(t, p->count);
        rg_table_real(t, p->seconds);
        rg_table_real(t, p->flops / p->bytes);
        rg_table_real(t, p->flops / p->seconds);
        rg_table_real(t, p->roofline_seconds / p->seconds);
        rg_table_text(t, p->class == RG_ROOF_MEASURED ? "measured"
                                                      : rg_bound_name((rg_bound)p->class));
    }
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    rg_roof_figure *f = RG_NEW(arena, rg_roof_figure, 1, err);
    rg_setup *setup = RG_NEW(arena, rg_setup, 1, err);
    if (!f || !setup)
        return RG_ERR_LIMIT;
    f->arena = arena;
    f->setup = setup;
    RG_TRY(rg_arg_report(arena, args, 1, &f->report, err));
    RG_TRY(rg_setup_changes(arena, args, f->report, setup, err));
    RG_TRY(rg_setup_machine(arena, args, f->report, setup, err));
    if (rg_arg_given(args, "model"))
        RG_TRY(add_model(f, args, setup, err));
    for (int i = 0; i < rg_arg_count(args, "measured"); i++) {
        const char *path = rg_arg_nth(args, "measured", i);
        RG_TRY(rg_report_input(f->report, "measured", path, err));
        RG_TRY(add_measured(f, path, err));
    }
    report_roofs(f);
    if (rg_arg_given(args, "ceilings"))
        RG_TRY(add_ceilings(f, rg_arg_text(args, "ceilings"), err));
    if (f->count)
        report_points(f);
    else
        rg_report_json(f->report, "points", json_array());
    const char *figure_path = rg_arg_text(args, "plot");
    const char *output = rg_arg_text(args, "output");
    const bool output_is_figure = output && rg_plot_is_figure(output);
    if (output_is_figure && !figure_path)
        figure_path = output;
    if (figure_path) {
        RG_TRY(rg_roof_draw(f, figure_path, err));
        rg_report_image(f->report, figure_path, "Roofline");
    } else if (rg_arg_flag(args, "terminal")) {
        RG_TRY(rg_roof_draw(f, NULL, err));
    }
    return rg_report_write(f->report, output_is_figure ? NULL : output,
                           f->count ? "points" : "levels", err);
}

static const rg_option options[] = {
    RG_SETUP_MACHINE,
    RG_SETUP_MODEL,
    {"plot", 'p', "FILE", NULL,
     "draw to FILE.svg, .png or .pdf, data and script beside it; --output FILE.svg does the same",
     false},
    {"terminal", 't', NULL, NULL, "draw on the terminal", false},
    {"measured", 0, "FILE", NULL,
     "points: a table name,flops,bytes,time_us[,dtype], or a run record of a benchmark or profiler",
     true},
    {"ceilings", 0, "FILE", NULL, "measured roofs: a report of ERT or of gpu-benches", false},
    {"phase", 0, "WHICH", "both", "operators of decode, prefill or both", false},
    {"batch", 'b', "N", "32", "sequences that decode together", false},
    {"context", 'c', "N", "4096", "tokens in the cache of each", false},
    {"prompt", 0, "N", "2048", "tokens of the prefill", false},
    RG_SETUP_FORMATS,
    RG_SETUP_PARALLEL,
    RG_SETUP_SPLITS,
    RG_SETUP_KERNEL,
    RG_SETUP_ENGINE,
    RG_SETUP_CHANGES,
    {NULL, 0, NULL, NULL, NULL, false},
};

extern const rg_command rg_cmd_roofline;
const rg_command rg_cmd_roofline = {
    .name = "roofline",
    .group = "answer",
    .summary = "roofs of a machine, with operators of a model or measured kernels under them",
    .most_operands = 0,
    .description =
        "Roofs come from the hardware file: one slope for each memory level, one ceiling for each\n"
        "dense peak. The axes are whole decades around these ceilings, so that two figures of one\n"
        "machine can be laid over each other. Points come from a model (the operators of a pass "
        "on\n"
        "its arrangement, as 'ridge estimate' lists them) and from measured CSV files.",
    .examples = "  ridge roofline --hw h200-sxm --model llama-3.1-8b --plot roofline.svg\n"
                "  ridge roofline --hw h100-pcie --measured kernels.csv --terminal",
    .options = options,
    .run = run,
};

/* cli/cmd_roofline.c: the machine's roofs, and under them the operators of a model and measured
 * kernels. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/setup.h"
#include "core/csv.h"
#include "report/plot.h"
#include "roofline/roofline.h"

enum { MAX_POINTS = 400, MAX_TABLE_ROWS = 32, MEASURED = RG_BOUND_COUNT };

/* Plot area in pixels of the default figure, for the slope of labels along a roof. */
enum { WIDTH = 1100, HEIGHT = 680, LABEL_HEIGHT = 11, LETTER_WIDTH = 7 };
static const double AREA_WITH_TABLE = 0.625, AREA_ALONE = 0.895, AREA_HEIGHT = 0.785;

typedef struct point {
    char id[16];
    const char *name, *source, *phase;
    rg_dtype math;
    double flops, bytes, seconds, roofline_seconds, share;
    int64_t count;
    int class;
} point;

typedef struct figure {
    rg_arena *arena;
    rg_report *report;
    rg_setup setup;
    point points[MAX_POINTS];
    int count;
} figure;

static rg_status add_point(figure *f, const point *p, rg_err *err)
{
    if (f->count == MAX_POINTS)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than %d points in one figure",
                       MAX_POINTS);
    f->points[f->count++] = *p;
    return RG_OK;
}

/* A kernel without a place in the plane is named, never dropped in silence. */
static bool has_place(figure *f, const point *p)
{
    if (p->flops > 0.0 && p->bytes > 0.0 && p->seconds > 0.0)
        return true;
    rg_report_assume(f->report, "%s %s is not on the plot: it has %s", p->source, p->name,
                     p->flops > 0.0   ? "no bytes"
                     : p->bytes > 0.0 ? "bytes but no flops, so its intensity is 0"
                                      : "no work");
    return false;
}

static rg_dtype math_of(const rg_op *op)
{
    switch (op->kind) {
    case RG_OP_GEMM:
        return op->u.gemm.math;
    case RG_OP_MOE:
        return op->u.moe.math;
    case RG_OP_ATTN_PREFILL:
    case RG_OP_ATTN_DECODE:
    case RG_OP_MLA_PREFILL:
    case RG_OP_MLA_DECODE:
        return op->u.attention.math;
    default:
        return RG_FP32;
    }
}

static rg_status add_pass(figure *f, const rg_kernel_device *device, const rg_pass *pass,
                          const char *phase, char letter, rg_err *err)
{
    const rg_parallel *p = &f->setup.parallel;
    const rg_shard shard = {.tp = p->tp,
                            .attention_tp = p->attention_dp ? 1 : p->tp,
                            .ep = p->ep,
                            .expert_tp = p->tp / p->ep > 0 ? p->tp / p->ep : 1,
                            .cp = p->cp,
                            .embedding = true,
                            .head = true};
    rg_op_list ops = {0};
    RG_TRY(rg_pass_ops(f->arena, f->setup.model, &f->setup.formats, &shard, pass, &ops, err));
    const int first = f->count;
    double total = 0.0;
    for (int i = 0; i < ops.count; i++) {
        const rg_op *op = &ops.items[i];
        rg_kernel_time time;
        RG_TRY(rg_kernel_op_time(device, op, &time, err));
        point q = {.name = op->name,
                   .source = "operator",
                   .phase = phase,
                   .math = math_of(op),
                   .flops = op->flops.v,
                   .bytes = rg_op_bytes(op).v,
                   .seconds = time.total.v,
                   .roofline_seconds = time.roofline.v,
                   .share = time.total.v * (double)op->count,
                   .count = op->count,
                   .class = (int)time.bound};
        total += q.share;
        if (!has_place(f, &q))
            continue;
        snprintf(q.id, sizeof q.id, "%c%d", letter, f->count - first + 1);
        RG_TRY(add_point(f, &q, err));
    }
    for (int i = first; i < f->count; i++)
        f->points[i].share /= total;
    return RG_OK;
}

static rg_status add_model(figure *f, const rg_args *args, rg_err *err)
{
    static const char *const phases[] = {"both", "decode", "prefill", NULL};
    int phase;
    int64_t batch, context, prompt;
    RG_TRY(rg_arg_choice(args, "phase", phases, &phase, err));
    RG_TRY(rg_arg_int(args, "batch", 1, 1 << 20, &batch, err));
    RG_TRY(rg_arg_int(args, "context", 1, 1 << 30, &context, err));
    RG_TRY(rg_arg_int(args, "prompt", 1, 1 << 30, &prompt, err));
    RG_TRY(rg_setup_model(f->arena, args, f->report, &f->setup, err));
    RG_TRY(rg_setup_arrangement(args, f->report, &f->setup, err));
    rg_kernel_device *device;
    RG_TRY(rg_kernel_prepare(f->arena, f->setup.accel, &f->setup.kernel, &device, err));
    rg_report_assume(f->report, "%s", rg_kernel_device_note(device));
    if (phase != 2) {
        const rg_pass decode = {.decodes = batch,
                                .tokens_per_decode = 1,
                                .decode_kv_tokens = (double)batch * (double)context,
                                .decode_kv_max = (double)context};
        RG_TRY(add_pass(f, device, &decode, "decode", 'd', err));
    }
    if (phase != 1) {
        const rg_chunk chunk = {.new_tokens = prompt};
        const rg_pass prefill = {.chunks = &chunk, .chunk_count = 1};
        RG_TRY(add_pass(f, device, &prefill, "prefill", 'p', err));
    }
    return RG_OK;
}

/* Measured kernels: columns name, flops, bytes, time_us (or time_s); dtype is optional. */
static rg_status add_measured(figure *f, const char *path, rg_err *err)
{
    rg_csv *csv;
    int name, flops, bytes, time, dtype;
    double unit = 1e-6;
    RG_TRY(rg_csv_open(f->arena, path, &csv, err));
    rg_status status = RG_OK;
    name = rg_csv_find(csv, "name") >= 0 ? rg_csv_find(csv, "name") : rg_csv_find(csv, "kernel");
    if (name < 0)
        status = rg_csv_column(csv, "name", &name, err);
    if (status == RG_OK)
        status = rg_csv_column(csv, "flops", &flops, err);
    if (status == RG_OK)
        status = rg_csv_column(csv, "bytes", &bytes, err);
    time = rg_csv_find(csv, "time_us");
    if (time < 0) {
        unit = 1.0;
        time = rg_csv_find(csv, "time_s");
    }
    if (status == RG_OK && time < 0)
        status = rg_csv_column(csv, "time_us", &time, err);
    dtype = rg_csv_find(csv, "dtype");
    bool more = true;
    int row = 0;
    while (status == RG_OK) {
        status = rg_csv_next(csv, &more, err);
        if (status != RG_OK || !more)
            break;
        point p = {.source = "measured kernel",
                   .phase = "measured",
                   .count = 1,
                   .math = RG_BF16,
                   .class = MEASURED,
                   .roofline_seconds = NAN};
        p.name = rg_arena_strdup(f->arena, rg_csv_text(csv, name), err);
        if (!p.name)
            status = RG_ERR_LIMIT;
        if (status == RG_OK)
            status = rg_csv_real(csv, flops, &p.flops, err);
        if (status == RG_OK)
            status = rg_csv_real(csv, bytes, &p.bytes, err);
        if (status == RG_OK)
            status = rg_csv_real(csv, time, &p.seconds, err);
        if (status == RG_OK && dtype >= 0)
            status = rg_dtype_parse(rg_csv_text(csv, dtype), rg_csv_pos(csv, dtype), &p.math, err);
        p.seconds *= unit;
        if (status != RG_OK || !has_place(f, &p))
            continue;
        rg_work work = {.math = p.math, .flops = RG_F(p.flops)};
        work.bytes[f->setup.accel->level_count - 1] = RG_B(p.bytes);
        rg_roof_time roof;
        status = rg_roof_time_of(f->setup.accel, &work, &roof, err);
        if (status != RG_OK)
            continue;
        p.roofline_seconds = roof.total.v;
        if (p.seconds < roof.total.v)
            rg_report_assume(f->report,
                             "measured kernel %s is %.2f times faster than the roofline allows: "
                             "served from cache, or a wrong count",
                             p.name, roof.total.v / p.seconds);
        snprintf(p.id, sizeof p.id, "m%d", ++row);
        status = add_point(f, &p, err);
    }
    rg_csv_close(csv);
    return status;
}

/* ---- roofs ---- */

static void write_roof(FILE *out, const char *kind, const char *name, double x0, double y0,
                       double x1, double y1, double label_x, double label_y, double angle, int rank)
{
    fprintf(out, "%s,%s,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.2f,%d\n", kind, name, x0, y0 / 1e12, x1,
            y1 / 1e12, label_x, label_y / 1e12, angle, rank);
}

/* Peaks of equal rate share one line and one label: "bf16 fp16 989 TFLOP/s". */
static void write_peaks(FILE *out, const rg_accel *accel, const rg_roof_axes *axes,
                        double best_bandwidth)
{
    bool done[RG_MAX_PEAKS] = {false};
    for (int i = 0; i < accel->peak_count; i++) {
        const rg_peak *p = &accel->peaks[i];
        if (done[i] || !p->rate.known)
            continue;
        char name[200] = "", rate[32];
        size_t used = 0;
        for (int j = i; j < accel->peak_count; j++) {
            const rg_peak *q = &accel->peaks[j];
            if (!q->rate.known || fabs(q->rate.value / p->rate.value - 1.0) > 0.005)
                continue;
            done[j] = true;
            char type[32];
            snprintf(type, sizeof type, "%s%s", rg_dtype_name(q->input),
                     q->matrix ? "" : " vector");
            if (used < sizeof name - 64 && !strstr(name, type))
                used += (size_t)snprintf(name + used, sizeof name - used, "%s ", type);
        }
        rg_quantity_format(p->rate.value, RG_DIM_FLOPS_PER_S, 3, rate, sizeof rate);
        snprintf(name + used, sizeof name - used, "%s", rate);
        const double start = fmax(axes->x_least, p->rate.value / best_bandwidth);
        write_roof(out, "peak", name, start, p->rate.value, axes->x_most, p->rate.value,
                   axes->x_most * 0.93, p->rate.value, 0.0, i);
    }
}

static rg_status write_roofs(FILE *out, const figure *f, const rg_roof_axes *axes, rg_err *err)
{
    const rg_accel *accel = f->setup.accel;
    fprintf(out, "kind,name,x0,y0_tflops,x1,y1_tflops,label_x,label_y_tflops,angle,rank\n");
    double peak = 0.0, best = 0.0;
    for (int i = 0; i < accel->peak_count; i++)
        peak = fmax(peak, accel->peaks[i].rate.known ? accel->peaks[i].rate.value : 0.0);
    const double width = WIDTH * (f->count ? AREA_WITH_TABLE : AREA_ALONE);
    const double x_decade = width / log10(axes->x_most / axes->x_least);
    const double y_decade = HEIGHT * AREA_HEIGHT / log10(axes->y_most / axes->y_least);
    const double angle = atan2(y_decade, x_decade) * 57.29577951308232;
    for (int l = accel->level_count - 1; l >= 0; l--) {
        rg_byte_rate bandwidth;
        if (rg_roof_bandwidth(accel, l, &bandwidth, err) != RG_OK) {
            rg_report_assume(f->report, "level %s is not drawn: its file gives no bandwidth",
                             accel->levels[l].name);
            continue;
        }
        best = fmax(best, bandwidth.v);
        char name[96], rate[32];
        rg_quantity_format(bandwidth.v, RG_DIM_BYTES_PER_S, 3, rate, sizeof rate);
        snprintf(name, sizeof name, "%s %s", accel->levels[l].name, rate);
        const double x0 = fmax(axes->x_least, axes->y_least / bandwidth.v);
        const double ridge = peak / bandwidth.v;
        if (ridge <= x0)
            continue;
        const double label_x = x0 * pow(10.0, 0.08 + 0.3 * ((accel->level_count - 1 - l) % 3));
        write_roof(out, "level", name, x0, x0 * bandwidth.v, ridge, peak, label_x,
                   label_x * bandwidth.v, angle, accel->level_count - 1 - l);
    }
    write_peaks(out, accel, axes, best);
    return RG_OK;
}

/* Labels stand right of their points; one that would cover an earlier one moves down. Pixels. */
typedef struct label {
    double x, y, width;
} label;

static void place_labels(const figure *f, const rg_roof_axes *axes, label *labels)
{
    const double x_scale = WIDTH * AREA_WITH_TABLE / log10(axes->x_most / axes->x_least);
    const double y_scale = HEIGHT * AREA_HEIGHT / log10(axes->y_most / axes->y_least);
    for (int i = 0; i < f->count; i++) {
        const point *p = &f->points[i];
        label *l = &labels[i];
        l->x = log10(p->flops / p->bytes / axes->x_least) * x_scale + 12.0;
        l->y = log10(p->flops / p->seconds / axes->y_least) * y_scale;
        l->width = (double)(LETTER_WIDTH * strlen(p->id));
        for (int j = 0; j < i; j++) {
            const label *o = &labels[j];
            if (l->x < o->x + o->width && o->x < l->x + l->width &&
                fabs(l->y - o->y) < LABEL_HEIGHT) {
                l->y = o->y - LABEL_HEIGHT;
                j = -1; /* look again at all earlier ones */
            }
        }
    }
    for (int i = 0; i < f->count; i++) {
        labels[i].x = axes->x_least * pow(10.0, labels[i].x / x_scale);
        labels[i].y = axes->y_least * pow(10.0, labels[i].y / y_scale);
    }
}

static rg_status write_points(FILE *out, const figure *f, const rg_roof_axes *axes, rg_err *err)
{
    label *labels = RG_NEW(f->arena, label, f->count, err);
    if (!labels)
        return RG_ERR_LIMIT;
    place_labels(f, axes, labels);
    fprintf(out, "id,name,intensity_flops_per_byte,tflops,share,class,label_x,label_y,phase\n");
    for (int i = 0; i < f->count; i++) {
        const point *p = &f->points[i];
        const double x = p->flops / p->bytes, y = p->flops / p->seconds;
        fprintf(out, "%s,%s,%.9g,%.9g,%.6g,%d,%.9g,%.9g,%s\n", p->id, p->name, x, y / 1e12,
                p->share, p->class, labels[i].x, labels[i].y / 1e12, p->phase);
        if (x < axes->x_least || x > axes->x_most || y < axes->y_least || y > axes->y_most)
            rg_report_assume(f->report,
                             "point %s (%s) lies outside the axes, at %.3g flop/byte and %.3g "
                             "TFLOP/s",
                             p->id, p->name, x, y / 1e12);
    }
    return RG_OK;
}

static void write_rows(rg_plot *plot, const figure *f)
{
    const int rows = f->count < MAX_TABLE_ROWS ? f->count : MAX_TABLE_ROWS;
    for (int i = 0; i < rows; i++) {
        const point *p = &f->points[i];
        char key[32];
        snprintf(key, sizeof key, "row_%d", i + 1);
        rg_plot_text(plot, key, "%-4s %-20.20s %5.1f %% %5.1f %%", p->id, p->name,
                     p->class == MEASURED ? 0.0 : 100.0 * p->share,
                     100.0 * p->roofline_seconds / p->seconds);
        snprintf(key, sizeof key, "row_class_%d", i + 1);
        rg_plot_number(plot, key, p->class);
    }
    if (f->count > rows)
        rg_report_assume(f->report, "the figure's table shows %d of %d points; all are in the CSV",
                         rows, f->count);
    rg_plot_number(plot, "point_rows", rows);
    rg_plot_number(plot, "has_points", f->count > 0);
    rg_plot_text(plot, "point_heading", "id   operator             share  of roof");
}

static rg_status draw(const figure *f, const char *path, rg_err *err)
{
    rg_roof_axes axes;
    RG_TRY(rg_roof_axes_of(f->setup.accel, &axes, err));
    rg_plot *plot;
    FILE *out;
    RG_TRY(rg_plot_new(f->arena, "roofline", path, &plot, err));
    rg_plot_size(plot, WIDTH, HEIGHT);
    RG_TRY(rg_plot_data(plot, "roofs", &out, err));
    RG_TRY(write_roofs(out, f, &axes, err));
    RG_TRY(rg_plot_data(plot, "points", &out, err));
    RG_TRY(write_points(out, f, &axes, err));
    rg_plot_number(plot, "x_least", axes.x_least);
    rg_plot_number(plot, "x_most", axes.x_most);
    rg_plot_number(plot, "y_least", axes.y_least / 1e12);
    rg_plot_number(plot, "y_most", axes.y_most / 1e12);
    rg_plot_text(plot, "figure_title", "%s%s%s", f->setup.accel->title, f->setup.model ? ": " : "",
                 f->setup.model ? f->setup.model->name : "");
    rg_plot_text(plot, "figure_note", "dense peaks; ridge %s", RG_VERSION);
    write_rows(plot, f);
    return rg_plot_write(plot, err);
}

/* ---- report ---- */

static void report_roofs(const figure *f)
{
    const rg_accel *accel = f->setup.accel;
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

static void report_points(const figure *f)
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
        const point *p = &f->points[i];
        rg_table_text(t, p->id);
        rg_table_text(t, p->name);
        rg_table_text(t, p->phase);
        rg_table_text(t, rg_dtype_name(p->math));
        rg_table_int(t, p->count);
        rg_table_real(t, p->seconds);
        rg_table_real(t, p->flops / p->bytes);
        rg_table_real(t, p->flops / p->seconds);
        rg_table_real(t, p->roofline_seconds / p->seconds);
        rg_table_text(t, p->class == MEASURED ? "measured" : rg_bound_name((rg_bound)p->class));
    }
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    figure *f = RG_NEW(arena, figure, 1, err);
    if (!f)
        return RG_ERR_LIMIT;
    f->arena = arena;
    RG_TRY(rg_arg_report(arena, args, 1, &f->report, err));
    RG_TRY(rg_setup_machine(arena, args, f->report, &f->setup, err));
    if (rg_arg_given(args, "model"))
        RG_TRY(add_model(f, args, err));
    for (int i = 0; i < rg_arg_count(args, "measured"); i++) {
        const char *path = rg_arg_nth(args, "measured", i);
        RG_TRY(rg_report_input(f->report, "measured", path, err));
        RG_TRY(add_measured(f, path, err));
    }
    report_roofs(f);
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
        RG_TRY(draw(f, figure_path, err));
        rg_report_image(f->report, figure_path, "Roofline");
    } else if (rg_arg_flag(args, "terminal")) {
        RG_TRY(draw(f, NULL, err));
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
    {"measured", 0, "FILE.csv", NULL, "points with columns name,flops,bytes,time_us[,dtype]", true},
    {"phase", 0, "WHICH", "both", "operators of decode, prefill or both", false},
    {"batch", 'b', "N", "32", "sequences that decode together", false},
    {"context", 'c', "N", "4096", "tokens in the cache of each", false},
    {"prompt", 0, "N", "2048", "tokens of the prefill", false},
    RG_SETUP_FORMATS,
    RG_SETUP_PARALLEL,
    RG_SETUP_KERNEL,
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
        "machine can be laid over each other. Points come from a model (one for each operator, at\n"
        "the time of ridge's kernel model) and from measured CSV files.",
    .examples = "  ridge roofline --hw h200-sxm --model llama-3.1-8b --plot roofline.svg\n"
                "  ridge roofline --hw h100-pcie --measured kernels.csv --terminal",
    .options = options,
    .run = run,
};

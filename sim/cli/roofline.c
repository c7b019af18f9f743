// SPDX-License-Identifier: Apache-2.0
#include "cli/roofline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/plot.h"
#include "roofline/roofline.h"

enum { MAX_TABLE_ROWS = 32 };

/* Plot area in pixels of the default figure, for the slope of labels along a roof. */
enum { WIDTH = 1100, HEIGHT = 680, LABEL_HEIGHT = 11, LETTER_WIDTH = 7 };
static const double AREA_WITH_TABLE = 0.625, AREA_ALONE = 0.895, AREA_HEIGHT = 0.785;

/* A kernel without a place in the plane is named, never dropped in silence. */
static bool has_place(rg_roof_figure *f, const rg_roof_point *p)
{
    if (p->flops > 0.0 && p->bytes > 0.0 && p->seconds > 0.0)
        return true;
    rg_report_assume(f->report, "%s %s is not on the plot: it has %s", p->source, p->name,
                     p->flops > 0.0   ? "no bytes"
                     : p->bytes > 0.0 ? "bytes but no flops, so its intensity is 0"
                                      : "no work");
    return false;
}

rg_status rg_roof_add(rg_roof_figure *f, const rg_roof_point *p, rg_err *err)
{
    if (!has_place(f, p))
        return RG_OK;
    if (f->count == RG_ROOF_POINTS)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than %d points in one figure",
                       RG_ROOF_POINTS);
    f->points[f->count++] = *p;
    return RG_OK;
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

rg_status rg_roof_add_pass(rg_roof_figure *f, const rg_kernel_device *device, const rg_pass *pass,
                           const char *phase, char letter, rg_err *err)
{
    const rg_parallel *p = &f->setup->parallel;
    const rg_shard shard = {.tp = p->tp,
                            .attention_tp = p->attention_dp ? 1 : p->tp,
                            .ep = p->ep,
                            .expert_tp = p->tp / p->ep > 0 ? p->tp / p->ep : 1,
                            .cp = p->cp,
                            .embedding = true,
                            .head = true};
    rg_op_list ops = {0};
    RG_TRY(rg_pass_ops(f->arena, f->setup->model, &f->setup->formats, &shard, pass, &ops, err));
    const int first = f->count;
    double total = 0.0;
    for (int i = 0; i < ops.count; i++) {
        const rg_op *op = &ops.items[i];
        rg_kernel_time time;
        RG_TRY(rg_kernel_op_time(device, op, &time, err));
        rg_roof_point q = {.name = op->name,
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
        snprintf(q.id, sizeof q.id, "%c%d", letter, f->count - first + 1);
        RG_TRY(rg_roof_add(f, &q, err));
    }
    for (int i = first; i < f->count; i++)
        f->points[i].share /= total;
    return RG_OK;
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

/* Roofs that a tool measured, thin and grey beside those of the data sheet. */
static void write_measured_roofs(FILE *out, const rg_roof_figure *f, const rg_roof_axes *axes,
                                 double peak, double angle)
{
    enum { GREY = 9 };
    for (int i = 0; i < f->measured.count; i++) {
        const rg_ceiling *c = &f->measured.items[i];
        char name[96], rate[32];
        if (c->doubtful)
            continue;
        rg_quantity_format(c->value, c->compute ? RG_DIM_FLOPS_PER_S : RG_DIM_BYTES_PER_S, 3, rate,
                           sizeof rate);
        snprintf(name, sizeof name, "%s %s measured", c->name, rate);
        if (c->compute) {
            write_roof(out, "peak", name, axes->x_most / 100.0, c->value, axes->x_most, c->value,
                       axes->x_most * 0.93, c->value, 0.0, GREY);
            continue;
        }
        const double x0 = fmax(axes->x_least, axes->y_least / c->value);
        const double label_x = x0 * pow(10.0, 1.0);
        if (peak / c->value > x0)
            write_roof(out, "level", name, x0, x0 * c->value, peak / c->value, peak, label_x,
                       label_x * c->value, angle, GREY);
    }
}

static rg_status write_roofs(FILE *out, const rg_roof_figure *f, const rg_roof_axes *axes,
                             rg_err *err)
{
    const rg_accel *accel = f->setup->accel;
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
    write_measured_roofs(out, f, axes, peak, angle);
    return RG_OK;
}

/* Labels stand right of their points; one that would cover an earlier one moves down. Pixels. */
typedef struct label {
    double x, y, width;
} label;

static void place_labels(const rg_roof_figure *f, const rg_roof_axes *axes, label *labels)
{
    const double x_scale = WIDTH * AREA_WITH_TABLE / log10(axes->x_most / axes->x_least);
    const double y_scale = HEIGHT * AREA_HEIGHT / log10(axes->y_most / axes->y_least);
    for (int i = 0; i < f->count; i++) {
        const rg_roof_point *p = &f->points[i];
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

static rg_status write_points(FILE *out, const rg_roof_figure *f, const rg_roof_axes *axes,
                              rg_err *err)
{
    label *labels = RG_NEW(f->arena, label, f->count, err);
    if (!labels)
        return RG_ERR_LIMIT;
    place_labels(f, axes, labels);
    fprintf(out, "id,name,intensity_flops_per_byte,tflops,share,class,label_x,label_y,phase\n");
    for (int i = 0; i < f->count; i++) {
        const rg_roof_point *p = &f->points[i];
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

static void write_rows(rg_plot *plot, const rg_roof_figure *f)
{
    const int rows = f->count < MAX_TABLE_ROWS ? f->count : MAX_TABLE_ROWS;
    for (int i = 0; i < rows; i++) {
        const rg_roof_point *p = &f->points[i];
        char key[32];
        snprintf(key, sizeof key, "row_%d", i + 1);
        rg_plot_text(plot, key, "%-4s %-20.20s %5.1f %% %5.1f %%", p->id, p->name,
                     p->class == RG_ROOF_MEASURED ? 0.0 : 100.0 * p->share,
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

rg_status rg_roof_draw(const rg_roof_figure *f, const char *path, rg_err *err)
{
    rg_roof_axes axes;
    RG_TRY(rg_roof_axes_of(f->setup->accel, &axes, err));
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
    rg_plot_text(plot, "figure_title", "%s%s%s", f->setup->accel->title,
                 f->setup->model ? ": " : "", f->setup->model ? f->setup->model->name : "");
    rg_plot_text(plot, "figure_note", "dense peaks; ridge %s", RG_VERSION);
    write_rows(plot, f);
    return rg_plot_write(plot, err);
}

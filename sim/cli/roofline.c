// SPDX-License-Identifier: Apache-2.0
#include "cli/roofline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/roof_labels.h"
#include "report/plot.h"
#include "roofline/roofline.h"

enum { MAX_TABLE_ROWS = 48 };

/* The default figure and its letters in pixels, as plots/roofline.gp draws them. */
enum { WIDTH = 1100, HEIGHT = 680, LABEL_HEIGHT = 11, LETTER_WIDTH = 7 };
static const double AREA_WITH_TABLE = 0.615, AREA_ALONE = 0.885, AREA_HEIGHT = 0.785;
static const double ROOF_LETTER_WIDTH = 6.4, ROOF_LABEL_RISE = 9.0; /* of the names of roofs */
static const double POINT_LEAST = 7.0, POINT_GROWTH = 13.0; /* diameter, with the root of share */

/* The plane, and what is written on it already. */
enum { MAX_TAKEN = 1024 };
typedef struct canvas {
    rg_roof_axes axes;
    double width, height; /* of the plot area */
    rg_roof_box taken[MAX_TAKEN];
    int taken_count;
} canvas;

static double x_of(const canvas *c, double intensity)
{
    return log10(intensity / c->axes.x_least) * c->width / log10(c->axes.x_most / c->axes.x_least);
}

static double y_of(const canvas *c, double rate)
{
    return log10(rate / c->axes.y_least) * c->height / log10(c->axes.y_most / c->axes.y_least);
}

static double intensity_of(const canvas *c, double x)
{
    return c->axes.x_least * pow(c->axes.x_most / c->axes.x_least, x / c->width);
}

static double rate_of(const canvas *c, double y)
{
    return c->axes.y_least * pow(c->axes.y_most / c->axes.y_least, y / c->height);
}

static void take(canvas *c, rg_roof_box box)
{
    if (c->taken_count < MAX_TAKEN)
        c->taken[c->taken_count++] = box;
}

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

/* Communication has no flops: it is told in one line, and counts in the shares. */
static void tell_communication(rg_roof_figure *f, const char *phase, double communication,
                               double total)
{
    if (communication > 0.0)
        rg_report_assume(f->report,
                         "%s: %.1f %% of the time of all parts is communication, which has no "
                         "place under the roofs; 'ridge estimate' lists it",
                         phase, 100.0 * communication / total);
}

rg_status rg_roof_add_pass(rg_roof_figure *f, rg_step_context *step, const rg_pass *pass,
                           const char *phase, char letter, rg_err *err)
{
    const rg_step_part *parts;
    int count;
    RG_TRY(rg_step_parts(f->arena, step, pass, &parts, &count, err));
    double total = 0.0, communication = 0.0;
    for (int i = 0; i < count; i++) {
        const double time = parts[i].time.total.v * (double)parts[i].count;
        total += time;
        communication += parts[i].communication ? time : 0.0;
    }
    const int first = f->count;
    for (int i = 0; i < count; i++) {
        const rg_step_part *part = &parts[i];
        if (part->communication)
            continue;
        rg_roof_point q = {.name = part->name,
                           .source = "operator",
                           .phase = phase,
                           .math = math_of(&part->op),
                           .flops = part->op.flops.v,
                           .bytes = rg_op_bytes(&part->op).v,
                           .seconds = part->time.total.v,
                           .roofline_seconds = part->time.roofline.v,
                           .share = part->time.total.v * (double)part->count / total,
                           .count = part->count,
                           .class = (int)part->time.bound};
        snprintf(q.id, sizeof q.id, "%c%d", letter, f->count - first + 1);
        RG_TRY(rg_roof_add(f, &q, err));
    }
    tell_communication(f, phase, communication, total);
    return RG_OK;
}

/* ---- roofs ---- */

typedef struct roof {
    const char *kind, *name;
    double x0, y0, x1, y1; /* flop/byte, flop/s */
    double label_x, label_y, angle;
    int rank; /* its colour */
} roof;

static void write_roof(FILE *out, canvas *c, const roof *r)
{
    fprintf(out, "%s,%s,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.2f,%d\n", r->kind, r->name, r->x0,
            r->y0 / 1e12, r->x1, r->y1 / 1e12, r->label_x, r->label_y / 1e12, r->angle, r->rank);
    /* letter by letter, so that a name along a slope takes no more than its own place */
    const double length = ROOF_LETTER_WIDTH * (double)strlen(r->name);
    const double x = x_of(c, r->label_x), y = y_of(c, r->label_y) + ROOF_LABEL_RISE;
    const double slope = r->angle / 57.29577951308232, start = r->angle > 0.0 ? 0.0 : -length;
    for (double at = start; at < start + length; at += ROOF_LETTER_WIDTH)
        take(c, (rg_roof_box){x + at * cos(slope), y + at * sin(slope), ROOF_LETTER_WIDTH,
                              LABEL_HEIGHT});
}

/* Peaks of equal rate share one line and one label: "bf16 fp16 989 TFLOP/s". */
static void write_peaks(FILE *out, canvas *c, const rg_accel *accel, double best_bandwidth)
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
        const double x1 = c->axes.x_most, y = p->rate.value;
        write_roof(out, c,
                   &(roof){"peak", name, fmax(c->axes.x_least, y / best_bandwidth), y, x1, y,
                           x1 * 0.93, y, 0.0, i});
    }
}

/* A slope from the left or lower edge up to the highest peak; its name a few letters in. */
static void write_slope(FILE *out, canvas *c, const char *name, double bandwidth, double peak,
                        double decades, int rank)
{
    const double x0 = fmax(c->axes.x_least, c->axes.y_least / bandwidth), x1 = peak / bandwidth;
    const double label_x = x0 * pow(10.0, decades);
    const double angle =
        atan2(y_of(c, 10.0 * c->axes.y_least), x_of(c, 10.0 * c->axes.x_least)) * 57.29577951308232;
    if (x1 > x0)
        write_roof(out, c,
                   &(roof){"level", name, x0, x0 * bandwidth, x1, peak, label_x,
                           label_x * bandwidth, angle, rank});
}

/* Roofs that a tool measured, thin and grey beside those of the data sheet. */
static void write_measured_roofs(FILE *out, canvas *c, const rg_roof_figure *f, double peak)
{
    enum { GREY = 9 };
    for (int i = 0; i < f->measured.count; i++) {
        const rg_ceiling *m = &f->measured.items[i];
        char name[96], rate[32];
        if (m->doubtful)
            continue;
        rg_quantity_format(m->value, m->compute ? RG_DIM_FLOPS_PER_S : RG_DIM_BYTES_PER_S, 3, rate,
                           sizeof rate);
        snprintf(name, sizeof name, "%s %s measured", m->name, rate);
        const double x1 = c->axes.x_most;
        if (m->compute)
            write_roof(out, c,
                       &(roof){"peak", name, x1 / 100.0, m->value, x1, m->value, x1 * 0.93,
                               m->value, 0.0, GREY});
        else
            write_slope(out, c, name, m->value, peak, 1.0, GREY);
    }
}

/* Colours of levels are those of the bounds with their names. */
static int colour_of(const rg_accel *accel, int level)
{
    const char *name = accel->levels[level].name;
    return level == accel->level_count - 1 ? 0
           : strcmp(name, "l2") == 0       ? 1
           : strcmp(name, "l1") == 0       ? 2
                                           : 3;
}

static rg_status write_roofs(FILE *out, canvas *c, const rg_roof_figure *f, rg_err *err)
{
    const rg_accel *accel = f->setup->accel;
    fprintf(out, "kind,name,x0,y0_tflops,x1,y1_tflops,label_x,label_y_tflops,angle,rank\n");
    double peak = 0.0, best = 0.0;
    for (int i = 0; i < accel->peak_count; i++)
        peak = fmax(peak, accel->peaks[i].rate.known ? accel->peaks[i].rate.value : 0.0);
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
        write_slope(out, c, name, bandwidth.v, peak,
                    0.08 + 0.3 * ((accel->level_count - 1 - l) % 3), colour_of(accel, l));
    }
    write_peaks(out, c, accel, best);
    write_measured_roofs(out, c, f, peak);
    return RG_OK;
}

static rg_status write_points(FILE *out, canvas *c, const rg_roof_figure *f, rg_err *err)
{
    rg_roof_box *points = RG_NEW(f->arena, rg_roof_box, f->count, err);
    rg_roof_box *labels = RG_NEW(f->arena, rg_roof_box, f->count, err);
    if (!points || !labels)
        return RG_ERR_LIMIT;
    const rg_roof_axes *axes = &c->axes;
    for (int i = 0; i < f->count; i++) {
        const rg_roof_point *p = &f->points[i];
        const double size = POINT_LEAST + POINT_GROWTH * sqrt(fmax(p->share, 0.0));
        points[i] =
            (rg_roof_box){x_of(c, p->flops / p->bytes), y_of(c, p->flops / p->seconds), size, size};
        labels[i].width = (double)(LETTER_WIDTH * strlen(p->id));
        labels[i].height = LABEL_HEIGHT;
    }
    rg_roof_place_labels(labels, points, f->count, c->taken, c->taken_count, c->width, c->height);
    fprintf(out, "id,name,intensity_flops_per_byte,tflops,share,class,label_x,label_y,line_x,"
                 "phase\n");
    for (int i = 0; i < f->count; i++) {
        const rg_roof_point *p = &f->points[i];
        const double x = p->flops / p->bytes, y = p->flops / p->seconds;
        const double half = 0.5 * labels[i].width, left = labels[i].x - half;
        const double near = labels[i].x > points[i].x ? left - 1.0 : left + 2.0 * half + 1.0;
        fprintf(out, "%s,%s,%.9g,%.9g,%.6g,%d,%.9g,%.9g,%.9g,%s\n", p->id, p->name, x, y / 1e12,
                p->share, p->class, intensity_of(c, left), rate_of(c, labels[i].y) / 1e12,
                intensity_of(c, near), p->phase);
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
        char share[16] = "      -"; /* of a pass; a measured kernel belongs to none */
        if (p->class != RG_ROOF_MEASURED)
            snprintf(share, sizeof share, "%5.1f %%", 100.0 * p->share);
        rg_plot_text(plot, key, "%-4s %-20.20s %s %5.1f %%", p->id, p->name, share,
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
    canvas *c = RG_NEW(f->arena, canvas, 1, err);
    if (!c)
        return RG_ERR_LIMIT;
    RG_TRY(rg_roof_axes_of(f->setup->accel, &c->axes, err));
    c->width = WIDTH * (f->count ? AREA_WITH_TABLE : AREA_ALONE);
    c->height = HEIGHT * AREA_HEIGHT;
    rg_plot *plot;
    FILE *out;
    RG_TRY(rg_plot_new(f->arena, "roofline", path, &plot, err));
    rg_plot_size(plot, WIDTH, HEIGHT);
    RG_TRY(rg_plot_data(plot, "roofs", &out, err));
    RG_TRY(write_roofs(out, c, f, err));
    RG_TRY(rg_plot_data(plot, "points", &out, err));
    RG_TRY(write_points(out, c, f, err));
    rg_plot_number(plot, "x_least", c->axes.x_least);
    rg_plot_number(plot, "x_most", c->axes.x_most);
    rg_plot_number(plot, "y_least", c->axes.y_least / 1e12);
    rg_plot_number(plot, "y_most", c->axes.y_most / 1e12);
    rg_plot_text(plot, "figure_title", "%s%s%s", f->setup->accel->title,
                 f->setup->model ? ": " : "", f->setup->model ? f->setup->model->name : "");
    rg_plot_text(plot, "figure_note", "dense peaks; ridge %s", RG_VERSION);
    write_rows(plot, f);
    return rg_plot_write(plot, err);
}

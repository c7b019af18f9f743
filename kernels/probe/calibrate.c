/* kernels/probe/calibrate.c: the figures of a hardware file, measured.
 *
 * Reads calibrate.h. The file that comes out starts from the datasheet's (base: NAME) and adds what
 * was measured under keys of their own: measured_bandwidth, latency, sustained. Each source says
 * the kernel, the quartiles, clock, driver and date. What a hardware file has no key for is a
 * comment.
 */
// SPDX-License-Identifier: Apache-2.0
#include "calibrate.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "core/file.h"

enum { MOST_FIGURES = 64 };

/* A measured figure. path is "section/level/key"; a path that starts with '#' is a comment. */
typedef struct figure {
    const char *path, *unit;
    double value, low, high; /* in unit; quartiles */
    char source[320];
} figure;

typedef struct calibration {
    rg_arena *arena;
    rg_session *session;
    const rg_probe_options *options;
    figure figures[MOST_FIGURES];
    int count;
    char date[16];
} calibration;

/** A timed problem: what it did and how long it took. */
typedef struct measurement {
    rg_bench bench;
    rg_timing timing;
    bool ran;
} measurement;

static rg_status time_problem(calibration *c, const rg_problem *problem, measurement *out,
                              rg_err *err)
{
    const rg_family *family = rg_family_find(problem->kernel);
    rg_gpu *gpu = &c->session->gpu;
    char why[512];
    *out = (measurement){.bench = {.per_launch = 1}};
    if (family->usable && !family->usable(gpu, problem, why, sizeof why))
        return RG_OK;
    const int mark = rg_gpu_mark(gpu);
    rg_status status = family->prepare(c->arena, gpu, problem, true, &out->bench, err);
    if (status == RG_OK)
        status = rg_measure(c->arena, gpu, &c->session->nvml, &out->bench, &c->options->measure,
                            &out->timing, err);
    if (status == RG_OK && out->bench.release)
        out->bench.release(&out->bench);
    rg_gpu_release_to(gpu, mark);
    out->ran = status == RG_OK;
    char text[256];
    rg_problem_text(problem, text, sizeof text);
    if (out->ran)
        fprintf(stderr, "%-10s %-10s %-9s %-48s %10.2f us\n", problem->kernel, problem->variant,
                problem->dtype, text, out->timing.median_us);
    return status;
}

static figure *new_figure(calibration *c, const char *path, const char *unit,
                          const rg_problem *problem, const measurement *m)
{
    if (c->count == MOST_FIGURES)
        return NULL;
    char text[200], clock[40] = "";
    rg_problem_text(problem, text, sizeof text);
    if (m->timing.median_clock_mhz > 0)
        snprintf(clock, sizeof clock, ", %.0f MHz", m->timing.median_clock_mhz);
    figure *f = &c->figures[c->count++];
    f->path = path;
    f->unit = unit;
    snprintf(f->source, sizeof f->source, "measured: ridge-probe calibrate, %s %s %s %s, %s%s",
             problem->kernel, problem->variant, problem->dtype, text, c->date, clock);
    return f;
}

/** A rate: work / time in units of `unit_size` per second. */
static void add_rate(calibration *c, const char *path, const char *unit, double unit_size,
                     double work, const rg_problem *problem, const measurement *m)
{
    figure *f = new_figure(c, path, unit, problem, m);
    if (!f)
        return;
    f->value = work / (m->timing.median_us * 1e-6) / unit_size;
    f->low = work / (m->timing.q3_us * 1e-6) / unit_size;
    f->high = work / (m->timing.q1_us * 1e-6) / unit_size;
}

static void add_time(calibration *c, const char *path, const char *unit, double per_us,
                     const rg_problem *problem, const measurement *m)
{
    figure *f = new_figure(c, path, unit, problem, m);
    if (!f)
        return;
    f->value = m->timing.median_us * per_us;
    f->low = m->timing.q1_us * per_us;
    f->high = m->timing.q3_us * per_us;
}

static bool is_hbm(const calibration *c)
{
    return c->session->gpu.figures.bus_bits >= 1024;
}

static bool small(const calibration *c)
{
    return c->options->extent == RG_EXTENT_SMALL;
}

static rg_status measure_memory(calibration *c, rg_problem_list *list, rg_err *err)
{
    static const char *const reads[] = {"read_2", "read_4", "read_8"};
    const int64_t bytes = small(c) ? 65536 : (int64_t)1 << 30;
    measurement best = {.ran = false};
    const rg_problem *best_problem = NULL;
    for (size_t r = 0; r < 3; r++)
        for (int64_t blocks = 2; blocks <= (small(c) ? 2 : 8); blocks *= 2) {
            measurement m;
            const rg_problem *problem = rg_problem_add(list, "stream", reads[r], "uint32", "bytes",
                                                       bytes, "blocks_per_sm", blocks, NULL);
            RG_TRY(time_problem(c, problem, &m, err));
            if (!best_problem || m.timing.median_us < best.timing.median_us) {
                best = m;
                best_problem = problem;
            }
        }
    add_rate(c, is_hbm(c) ? "memory/hbm/measured_bandwidth" : "memory/gddr/measured_bandwidth",
             "GB/s", 1e9, best.bench.bytes, best_problem, &best);
    static const char *const others[][2] = {
        {"write", "# write"}, {"copy", "# copy"}, {"triad", "# triad"}};
    for (size_t o = 0; o < 3; o++) {
        measurement m;
        const rg_problem *problem = rg_problem_add(list, "stream", others[o][0], "float32", "bytes",
                                                   bytes, "blocks_per_sm", (int64_t)0, NULL);
        RG_TRY(time_problem(c, problem, &m, err));
        add_rate(c, others[o][1], "GB/s", 1e9, m.bench.bytes, problem, &m);
    }
    return RG_OK;
}

static rg_status measure_caches(calibration *c, rg_problem_list *list, rg_err *err)
{
    const int64_t l2 = c->session->gpu.figures.l2_bytes;
    const int64_t steps = small(c) ? 16 : 8192;
    measurement m;
    const rg_problem *problem =
        rg_problem_add(list, "latency", "chase", "uint32", "bytes",
                       small(c) ? (int64_t)8192 : (int64_t)2 << 20, "steps", steps, NULL);
    RG_TRY(time_problem(c, problem, &m, err));
    add_time(c, "memory/l2/latency", "ns", 1e3, problem, &m);
    problem = rg_problem_add(list, "latency", "chase", "uint32", "bytes",
                             small(c) ? (int64_t)65536 : 8 * l2, "steps", steps, NULL);
    RG_TRY(time_problem(c, problem, &m, err));
    add_time(c, is_hbm(c) ? "memory/hbm/latency" : "memory/gddr/latency", "ns", 1e3, problem, &m);
    /* a quarter of L2: within one of two partitions, with room for both copies */
    problem =
        rg_problem_add(list, "l2", "read_4", "uint32", "bytes", l2 / 4 / 65536 * 65536 + 16384,
                       "passes", (int64_t)(small(c) ? 2 : 32), "sms", (int64_t)0, NULL);
    RG_TRY(time_problem(c, problem, &m, err));
    add_rate(c, "memory/l2/measured_bandwidth", "GB/s", 1e9, m.bench.bytes, problem, &m);
    problem = rg_problem_add(list, "shared", "read", "uint32", "loops",
                             (int64_t)(small(c) ? 4 : 4096), "stride", (int64_t)1, NULL);
    RG_TRY(time_problem(c, problem, &m, err));
    add_rate(c, "# shared memory of all SMs", "GB/s", 1e9, m.bench.bytes, problem, &m);
    return RG_OK;
}

static rg_status measure_peaks(calibration *c, rg_problem_list *list, rg_err *err)
{
    static const struct {
        const char *dtype, *path, *unit;
        const char *variants[2];
    } types[] = {
        {"bfloat16", "peaks/matrix/bf16_fp32/sustained", "TFLOP/s", {"mma", "wgmma"}},
        {"float16", "peaks/matrix/fp16_fp32/sustained", "TFLOP/s", {"mma", NULL}},
        {"tf32", "peaks/matrix/tf32_fp32/sustained", "TFLOP/s", {"mma", NULL}},
        {"int8", "peaks/matrix/int8_int32/sustained", "TOP/s", {"mma", NULL}},
        {"fp8", "peaks/matrix/fp8_fp32/sustained", "TFLOP/s", {"mma", "wgmma"}},
        {"float32", "peaks/vector/fp32_fp32/sustained", "TFLOP/s", {"fma", NULL}},
    };
    const int cc = c->session->gpu.figures.major;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        measurement best = {.ran = false};
        const rg_problem *best_problem = NULL;
        for (int v = 0; v < 2 && types[t].variants[v]; v++) {
            measurement m;
            const rg_problem *problem =
                rg_problem_add(list, "tensor", types[t].variants[v], types[t].dtype, "loops",
                               (int64_t)(small(c) ? 2 : 16384), NULL);
            RG_TRY(time_problem(c, problem, &m, err));
            if (m.ran && (!best.ran || m.bench.flops / m.timing.median_us >
                                           best.bench.flops / best.timing.median_us)) {
                best = m;
                best_problem = problem;
            }
        }
        if (!best.ran)
            continue;
        /* from Hopper on mma.sync does not reach the peak of the tensor cores: it is no peak then
         */
        const bool partial = cc >= 9 && strcmp(best_problem->variant, "mma") == 0;
        add_rate(c, partial ? "# mma.sync, which is below this chip's tensor peak" : types[t].path,
                 types[t].unit, 1e12, best.bench.flops, best_problem, &best);
        if (t == 0 && best.timing.median_clock_mhz > 0) {
            figure *f = new_figure(c, "clocks/sustained", "MHz", best_problem, &best);
            if (f)
                f->value = f->low = f->high = best.timing.median_clock_mhz;
        }
    }
    return RG_OK;
}

static rg_status measure_overheads(calibration *c, rg_problem_list *list, rg_err *err)
{
    static const char *const launches[][2] = {{"stream", "# launch, one call after the other"},
                                              {"graph", "# node of a graph"},
                                              {"grid_barrier", "# barrier over the grid"},
                                              {"ping_pong", "# flag there and back"}};
    for (size_t l = 0; l < 4; l++) {
        measurement m;
        const rg_problem *problem =
            rg_problem_add(list, "launch", launches[l][0], "uint32", "rounds",
                           (int64_t)(l < 2 ? 1 : (small(c) ? 4 : 1000)), NULL);
        RG_TRY(time_problem(c, problem, &m, err));
        if (m.ran)
            add_time(c, launches[l][1], "us", 1, problem, &m);
    }
    static const char *const copies[][2] = {
        {"h2d", "# host to device"}, {"d2h", "# device to host"}, {"p2p", "# peer to peer"}};
    for (size_t d = 0; d < 3; d++) {
        measurement m;
        const rg_problem *problem =
            rg_problem_add(list, "copy", copies[d][0], "uint32", "bytes",
                           small(c) ? (int64_t)1024 : (int64_t)1 << 28, NULL);
        RG_TRY(time_problem(c, problem, &m, err));
        if (m.ran)
            add_rate(c, copies[d][1], "GB/s", 1e9, m.bench.bytes, problem, &m);
    }
    return RG_OK;
}

/* Hardware files by what the driver calls the device. */
static const char *base_of(const char *device)
{
    static const char *const names[][2] = {
        {"H200 NVL", "h200-nvl"},
        {"H200", "h200-sxm"},
        {"GH200", "gh200"},
        {"H100 NVL", "h100-nvl"},
        {"H100 PCIe", "h100-pcie"},
        {"H100 80GB HBM3", "h100-sxm"},
        {"H20", "h20-sxm"},
        {"A100-SXM4-80GB", "a100-sxm-80gb"},
        {"A100-SXM4-40GB", "a100-sxm-40gb"},
        {"A100 80GB PCIe", "a100-pcie-80gb"},
        {"A100-PCIE-40GB", "a100-pcie-40gb"},
        {"GB300", "gb300"},
        {"GB200", "gb200"},
        {"B300", "b300-sxm"},
        {"B200", "b200-sxm"},
        {"L40S", "l40s"},
        {"L20", "l20"},
        {"L4", "l4"},
        {"A10", "a10"},
        {"A30", "a30"},
        {"RTX 3090", "rtx-3090"},
        {"RTX 4090", "rtx-4090"},
        {"RTX 5090", "rtx-5090"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = strstr(device, names[i][0]);
        const char after = found ? found[strlen(names[i][0])] : 0;
        if (found && !(after >= '0' && after <= '9'))
            return names[i][1];
    }
    return NULL;
}

static void print_figure(FILE *out, int indent, const char *key, const figure *f)
{
    fprintf(out, "%*s%s: {value: %.5g %s, source: \"%s, quartiles %.5g to %.5g\"}\n", indent, "",
            key, f->value, f->unit, f->source, f->low, f->high);
}

/** Figures as nested maps; they come in the order of their paths' sections. */
static void print_section(FILE *out, const calibration *c, const char *section)
{
    char open[2][64] = {"", ""};
    const size_t length = strlen(section);
    bool begun = false;
    for (int i = 0; i < c->count; i++) {
        const figure *f = &c->figures[i];
        if (strncmp(f->path, section, length) != 0 || f->path[length] != '/')
            continue;
        if (!begun)
            fprintf(out, "%s:\n", section);
        begun = true;
        const char *rest = f->path + length + 1;
        int level = 0;
        for (const char *slash = strchr(rest, '/'); slash && level < 2;
             rest = slash + 1, slash = strchr(rest, '/'), level++) {
            const int n = (int)(slash - rest);
            if ((int)strlen(open[level]) == n && strncmp(open[level], rest, (size_t)n) == 0)
                continue;
            snprintf(open[level], sizeof open[level], "%.*s", n, rest);
            if (level == 0)
                open[1][0] = 0;
            fprintf(out, "%*s%s:\n", 2 + 2 * level, "", open[level]);
        }
        print_figure(out, 2 + 2 * level, rest, f);
    }
}

/* Figures of one map must stand together. */
static void sort_figures(calibration *c)
{
    for (int i = 1; i < c->count; i++) {
        const figure f = c->figures[i];
        int at = i;
        for (; at > 0 && strcmp(c->figures[at - 1].path, f.path) > 0; at--)
            c->figures[at] = c->figures[at - 1];
        c->figures[at] = f;
    }
}

static void print_file(FILE *out, const calibration *c)
{
    static const char *const sections[] = {"clocks", "peaks", "memory"};
    const rg_gpu_figures *f = &c->session->gpu.figures;
    const char *base = c->options->base ? c->options->base : base_of(f->name);
    const char *driver = c->session->nvml.driver;
    fprintf(out, "# %s, measured by ridge-probe calibrate on %s; driver %s, CUDA %d.%d; ECC %s.\n",
            f->name, c->date, driver[0] ? driver : "unknown",
            c->session->cuda.driver_version / 1000, c->session->cuda.driver_version % 1000 / 10,
            f->ecc ? "on" : "off");
    if (c->session->emulated)
        fputs("# A CPU EMULATION: these figures say nothing of any GPU.\n", out);
    if (f->mig || c->session->nvml.mig_mode == 1 || f->mps)
        fprintf(out, "# The device was shared (%s): figures are those of a part of it.\n",
                f->mps ? "MPS" : "MIG");
    fprintf(out, "kind: accelerator\nname: %s-measured\n", base ? base : "device");
    if (base)
        fprintf(out, "base: %s\n", base);
    else
        fputs("# base: NAME of the hardware file of this device is missing; see ridge list hw\n",
              out);
    for (size_t s = 0; s < 3; s++)
        print_section(out, c, sections[s]);
    for (int i = 0; i < c->count; i++)
        if (c->figures[i].path[0] == '#')
            print_figure(out, 0, c->figures[i].path, &c->figures[i]);
}

static rg_status measure_all(calibration *c, rg_err *err)
{
    rg_problem_list *list = RG_NEW(c->arena, rg_problem_list, 1, err);
    if (!list)
        return RG_ERR_LIMIT;
    RG_TRY(measure_memory(c, list, err));
    RG_TRY(measure_caches(c, list, err));
    RG_TRY(measure_peaks(c, list, err));
    RG_TRY(measure_overheads(c, list, err));
    sort_figures(c);
    if (!c->options->output) {
        print_file(stdout, c);
        return RG_OK;
    }
    rg_out_file file;
    RG_TRY(rg_out_open(&file, c->options->output, err));
    print_file(file.stream, c);
    return rg_out_commit(&file, err);
}

rg_status rg_probe_calibrate(rg_arena *arena, const rg_probe_options *options, rg_err *err)
{
    rg_session session;
    calibration *c = RG_NEW(arena, calibration, 1, err);
    if (!c)
        return RG_ERR_LIMIT;
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(c->date, sizeof c->date, "%Y-%m-%d", &utc);
    c->arena = arena;
    c->session = &session;
    c->options = options;
    rg_status status = rg_session_open(arena, &session, options, err);
    if (status == RG_OK)
        status = measure_all(c, err);
    rg_session_close(&session);
    return status;
}

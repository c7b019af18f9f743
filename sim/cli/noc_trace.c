/* cli/noc_trace.c: a trace, or an operator's own traffic, on one network. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/noc.h"
#include "core/stat.h"
#include "noc/trace.h"

typedef struct trace_run {
    rg_arena *arena;
    const rg_args *args;
    rg_report *report;
    rg_err *err;
    rg_noc_design *design;
    rg_noc_mapping map;
    rg_noc_trace trace;
    rg_noc_config config;
    rg_noc_result result;
    uint64_t makespan, *start, *finish;
} trace_run;

/* The group that an option names, else the first of the usual names that the network has, else
 * all nodes. */
static rg_status pick_group(trace_run *t, const char *option, const char *const *usual,
                            const rg_noc_group **out)
{
    if (rg_arg_given(t->args, option))
        return rg_noc_design_group(t->design, rg_arg_text(t->args, option), out, t->err);
    for (int i = 0; usual[i] != NULL; i++)
        if (rg_noc_design_group(t->design, usual[i], out, NULL) == RG_OK) {
            rg_report_assume(t->report, "no --%s was given: nodes '%s'", option, usual[i]);
            return RG_OK;
        }
    *out = &t->design->groups[0];
    rg_report_assume(t->report, "no --%s was given: all nodes", option);
    return RG_OK;
}

static rg_status read_mapping(trace_run *t)
{
    static const char *const cores[] = {"sm", "core", "pe", NULL};
    static const char *const slices[] = {"slice", "l2", "bank", NULL};
    int64_t line, delay;
    RG_TRY(pick_group(t, "from", cores, &t->map.cores));
    RG_TRY(pick_group(t, "to", slices, &t->map.slices));
    RG_TRY(rg_arg_int(t->args, "line", 1, 1 << 20, &line, t->err));
    RG_TRY(rg_arg_int(t->args, "slice-delay", 0, 1000000, &delay, t->err));
    t->map.design = t->design;
    t->map.line_bytes = (int)line;
    t->map.slice_delay = (int)delay;
    t->map.flit_bytes = t->design->flit_bytes;
    if (rg_arg_given(t->args, "flit"))
        RG_TRY(rg_arg_quantity(t->args, "flit", RG_DIM_BYTES, &t->map.flit_bytes, t->err));
    if (!(t->map.flit_bytes > 0.0))
        return rg_fail(t->err, RG_ERR_USAGE, RG_NOWHERE,
                       "the network does not say how many bytes a flit has; give it with --flit "
                       "'32 B'");
    return rg_arg_flag(t->args, "near") ? rg_noc_mapping_near(t->arena, &t->map, t->err) : RG_OK;
}

/* "128x256x64" into three numbers. */
static rg_status read_three(trace_run *t, const char *option, int64_t *out)
{
    const char *text = rg_arg_text(t->args, option);
    long long a, b, c;
    int used = 0;
    if (text == NULL || sscanf(text, "%9lldx%9lldx%9lld%n", &a, &b, &c, &used) != 3 ||
        text[used] != 0 || a < 1 || b < 1 || c < 1)
        return rg_fail(t->err, RG_ERR_USAGE, RG_NOWHERE,
                       "option --%s '%.40s': write three sizes, as 4096x4096x4096", option,
                       text != NULL ? text : "");
    out[0] = a;
    out[1] = b;
    out[2] = c;
    return RG_OK;
}

static rg_status make_operator(trace_run *t)
{
    rg_noc_operator op = {0};
    int kind;
    int64_t shape[3], tile[3], window, stages;
    double bytes;
    RG_TRY(rg_arg_choice(t->args, "operator", rg_noc_operator_names, &kind, t->err));
    RG_TRY(read_three(t, "shape", shape));
    RG_TRY(read_three(t, "tile", tile));
    RG_TRY(rg_arg_int(t->args, "window", 1, 1 << 20, &window, t->err));
    RG_TRY(rg_arg_int(t->args, "stages", 1, 64, &stages, t->err));
    RG_TRY(rg_arg_quantity(t->args, "bytes", RG_DIM_BYTES, &bytes, t->err));
    RG_TRY(rg_arg_real(t->args, "element", 0.25, 16.0, &op.element_bytes, t->err));
    op.kind = (rg_noc_operator_kind)kind;
    op.m = shape[0];
    op.n = shape[1];
    op.k = shape[2];
    op.tile_m = (int)tile[0];
    op.tile_n = (int)tile[1];
    op.tile_k = (int)tile[2];
    op.window = (int)window;
    op.stages = (int)stages;
    op.bytes = (int64_t)bytes;
    RG_TRY(rg_noc_operator_trace(t->arena, &op, &t->map, &t->trace, t->err));
    rg_report_assume(t->report, "the operator asks as fast as its lines in flight allow; no time "
                                "for arithmetic");
    if (op.kind == RG_NOC_GEMM || op.kind == RG_NOC_KV_READ || op.kind == RG_NOC_ALLREDUCE_L2)
        rg_report_assume(
            t->report,
            "addresses are spread over the %sslices by a 64-bit mix of the line number; "
            "a request has %g bytes, a line carries %g more",
            t->map.near ? "nearest " : "", t->design->header_bytes, t->design->header_bytes);
    return RG_OK;
}

/* Requests and replies on halves of the VCs; further classes share them all. */
static rg_status make_config(trace_run *t)
{
    int64_t longest;
    const int vcs = t->design->router.vcs, classes = t->trace.class_count;
    RG_TRY(rg_arg_int(t->args, "max-packet", 1, 65535, &longest, t->err));
    t->config = (rg_noc_config){.graph = t->design->graph,
                                .router = t->design->router,
                                .class_count = classes,
                                .sends = t->trace.sends,
                                .send_count = t->trace.send_count,
                                .orders = t->trace.orders,
                                .order_count = t->trace.order_count,
                                .max_packet = (int)longest,
                                .seed = rg_arg_seed(t->args),
                                .check = rg_arg_flag(t->args, "check")};
    if (classes > vcs)
        return rg_fail(t->err, RG_ERR_USAGE, RG_NOWHERE,
                       "'%d' classes of messages need as many virtual channels, and there are %d",
                       classes, vcs);
    for (int c = 0; c < classes; c++) {
        const int first = vcs * c / classes, next = vcs * (c + 1) / classes;
        t->config.classes[c] =
            (rg_noc_class){.flits = 1, .vc_first = first, .vc_count = next - first};
    }
    return RG_OK;
}

/* What the ports of the cores carry, both directions together, bytes per cycle. */
static double inside_bytes_per_cycle(const trace_run *t)
{
    const rg_noc_graph *g = t->design->graph;
    double flits = 0.0;
    for (int i = 0; i < t->map.cores->count; i++) {
        const int node = t->map.cores->first + i;
        flits += 1.0 / g->in_channel[g->node_input[node]].period +
                 1.0 / g->out_channel[g->node_output[node]].period;
    }
    return flits * t->map.flit_bytes;
}

static void report_rates(trace_run *t)
{
    rg_report *r = t->report;
    const double cycles = (double)t->makespan, clock = t->design->clock_hz;
    const double inside = inside_bytes_per_cycle(t);
    rg_report_line(r, "%s: %lld messages on %s, done in %.0f cycles%s", t->trace.kind,
                   (long long)t->trace.send_count, t->design->title, cycles,
                   clock > 0.0 ? "" : " (the network names no clock)");
    rg_report_int(r, "makespan_cycles", "cycles", (long long)t->makespan);
    if (clock > 0.0)
        rg_report_figure(r, "makespan_s", "time", cycles / clock, RG_DIM_SECONDS);
    rg_report_figure(r, "payload_bytes", "payload", t->trace.payload_bytes, RG_DIM_BYTES);
    rg_report_figure(r, "payload_bytes_per_cycle", "payload per cycle, bytes",
                     t->trace.payload_bytes / cycles, RG_DIM_NONE);
    if (clock > 0.0) {
        rg_report_figure(r, "payload_bytes_per_s", "payload rate",
                         t->trace.payload_bytes / cycles * clock, RG_DIM_BYTES_PER_S);
        rg_report_figure(r, "inside_bytes_per_s", "what the cores' ports carry, both directions",
                         inside * clock, RG_DIM_BYTES_PER_S);
    }
    rg_report_figure(r, "inside_share_ratio", "payload as a share of that",
                     t->trace.payload_bytes / cycles / inside, RG_DIM_NONE);
    double busiest = 0.0;
    for (int o = 0; o < t->design->graph->outputs; o++)
        busiest = fmax(busiest, t->result.link_load[o] * t->design->graph->out_channel[o].period);
    for (int n = 0; n < t->design->graph->nodes; n++)
        busiest =
            fmax(busiest, t->result.node_injected[n] *
                              t->design->graph->in_channel[t->design->graph->node_input[n]].period);
    rg_report_figure(r, "busiest_link_ratio", "utilisation of the busiest link", busiest,
                     RG_DIM_NONE);
}

static rg_status report_latencies(trace_run *t)
{
    double *latency = RG_NEW(t->arena, double, t->trace.send_count, t->err);
    if (latency == NULL)
        return RG_ERR_LIMIT;
    rg_table *table = rg_report_table(t->report, "latencies", "Latency in cycles");
    rg_table_column(table, "of", "of", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "count", "count", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(table, "mean_cycles", "mean", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "p50_cycles", "p50", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "p95_cycles", "p95", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "p99_cycles", "p99", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(table, "most_cycles", "most", RG_CELL_REAL, RG_DIM_NONE, false);
    for (int c = 0; c < t->trace.class_count; c++) {
        size_t count = 0;
        for (int64_t i = 0; i < t->trace.send_count; i++)
            if (t->trace.sends[i].class_index == c)
                latency[count++] = (double)(t->finish[i] - t->start[i]);
        if (count == 0)
            continue;
        const rg_summary s = rg_stat_summary(latency, count);
        const char *name = rg_arena_printf(t->arena, t->err, "messages of class %d", c);
        if (name == NULL)
            return RG_ERR_LIMIT;
        rg_table_text(table, name);
        rg_table_int(table, (long long)count);
        rg_table_real(table, s.mean);
        rg_table_real(table, s.p50);
        rg_table_real(table, s.p95);
        rg_table_real(table, s.p99);
        rg_table_real(table, s.most);
    }
    const rg_noc_spread *p = &t->result.packet_latency;
    rg_table_text(table, "packets");
    rg_table_int(table, (long long)p->count);
    rg_table_real(table, p->mean);
    rg_table_real(table, p->p50);
    rg_table_real(table, p->p95);
    rg_table_real(table, p->p99);
    rg_table_real(table, p->most);
    return RG_OK;
}

rg_status rg_noc_command_trace(rg_arena *arena, const rg_args *args, rg_report *report, rg_err *err)
{
    trace_run t = {.arena = arena, .args = args, .report = report, .err = err};
    int64_t rows;
    RG_TRY(rg_noc_command_design(arena, args, report, &t.design, err));
    RG_TRY(read_mapping(&t));
    if (rg_arg_given(args, "operator")) {
        RG_TRY(make_operator(&t));
    } else {
        RG_TRY(rg_report_input(report, "trace", rg_arg_text(args, "trace"), err));
        RG_TRY(rg_noc_trace_load(arena, rg_arg_text(args, "trace"), &t.map, &t.trace, err));
    }
    RG_TRY(make_config(&t));
    t.start = RG_NEW(arena, uint64_t, t.trace.send_count, err);
    t.finish = RG_NEW(arena, uint64_t, t.trace.send_count, err);
    if (t.start == NULL || t.finish == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(
        rg_noc_run_trace(arena, &t.config, true, &t.makespan, t.start, t.finish, &t.result, err));
    report_rates(&t);
    RG_TRY(report_latencies(&t));
    RG_TRY(rg_arg_int(args, "links", 0, 1000000, &rows, err));
    if (rows > 0)
        RG_TRY(rg_noc_report_links(arena, report, t.design->graph, t.result.link_load,
                                   t.result.node_injected, (int)rows, err));
    if (rg_arg_given(args, "heat")) {
        const char *title = rg_arena_printf(arena, err, "%s on %s: link utilisation", t.trace.kind,
                                            t.design->title);
        if (title == NULL)
            return RG_ERR_LIMIT;
        RG_TRY(rg_noc_plot_links(arena, t.design, t.result.link_load, title,
                                 rg_arg_text(args, "heat"), err));
        rg_report_image(report, rg_arg_text(args, "heat"), title);
    }
    return rg_arg_write(args, report, "latencies", err);
}

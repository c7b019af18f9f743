/* cli/noc_run.c: one network under drawn traffic: closed form, loads, saturation, links. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/noc.h"
#include "core/text.h"
#include "noc/closed.h"
#include "noc/workload.h"
#include "report/plot.h"

enum { MAX_LOADS = 256 };

typedef struct noc_run {
    rg_arena *arena;
    const rg_args *args;
    rg_report *report;
    rg_err *err;
    rg_noc_design *design;
    rg_noc_config config;
    rg_noc_protocol protocol;
    rg_noc_closed closed;
    int seeds;
    double offered; /* flits per cycle of all nodes at load 1 */
    double loads[MAX_LOADS];
    int load_count;
    rg_noc_result *results;
    rg_noc_saturation saturation;
} noc_run;

rg_status rg_noc_command_design(rg_arena *arena, const rg_args *args, rg_report *report,
                                rg_noc_design **out, rg_err *err)
{
    static const char *const numbers[] = {"vcs", "buffer", NULL};
    RG_TRY(rg_noc_design_load(arena, rg_arg_operand(args, 0), out, err));
    rg_noc_design *d = *out;
    if (d->path != NULL)
        RG_TRY(rg_report_input(report, "network", d->path, err));
    else
        rg_report_setting(report, "network", d->name);
    for (int i = 0; numbers[i] != NULL; i++) {
        int64_t value;
        if (!rg_arg_given(args, numbers[i]))
            continue;
        RG_TRY(rg_arg_int(args, numbers[i], 1, i == 0 ? RG_NOC_MAX_VCS : 4096, &value, err));
        *(i == 0 ? &d->router.vcs : &d->router.buffer) = (int)value;
    }
    if (rg_arg_given(args, "routing")) {
        int routing;
        RG_TRY(rg_arg_choice(args, "routing", rg_noc_routing_names, &routing, err));
        d->router.routing = (rg_noc_routing)routing;
    }
    if (d->router.routing == RG_NOC_ROUTE_ADAPTIVE && !d->router.wait_for_tail_credit) {
        d->router.wait_for_tail_credit = true;
        rg_report_assume(report, "adaptive routing deadlocks when packets share a virtual channel "
                                 "in a row, so routers wait for the tail's credit");
    }
    if (rg_arg_given(args, "allocator")) {
        int allocator;
        RG_TRY(rg_arg_choice(args, "allocator", rg_noc_allocator_names, &allocator, err));
        d->router.vc_allocator = d->router.switch_allocator = (rg_noc_allocator)allocator;
    }
    if (rg_arg_flag(args, "speculative"))
        d->router.speculative = true;
    if (d->path == NULL || rg_text_ends_with(d->path, ".any"))
        rg_report_assume(
            report,
            "the network names no router: %d VC%s of %d flit%s, lookahead routing, one "
            "cycle each for VC allocation, switch allocation and traversal",
            d->router.vcs, d->router.vcs == 1 ? "" : "s", d->router.buffer,
            d->router.buffer == 1 ? "" : "s");
    for (int i = 0; i < d->assumed_count; i++)
        rg_report_assume(report, "%s", d->assumed[i]);
    return RG_OK;
}

/* "1,5,5,1": flits of read request, read reply, write request, write reply. */
static rg_status read_transactions(const noc_run *n, rg_noc_class *cl)
{
    const char *text = rg_arg_text(n->args, "request-reply");
    int *const flits[] = {&cl->read_request, &cl->read_reply, &cl->write_request, &cl->write_reply};
    const char *cursor = text;
    for (int i = 0; i < 4; i++) {
        char *end;
        const long value = strtol(cursor, &end, 10);
        if (end == cursor || value < 1 || value > 65535 || *end != (i < 3 ? ',' : 0))
            return rg_fail(n->err, RG_ERR_USAGE, RG_NOWHERE,
                           "option --request-reply '%.40s': write four lengths in flits: read "
                           "request, read reply, write request, write reply, as 1,5,5,1",
                           text);
        *flits[i] = (int)value;
        cursor = end + 1;
    }
    if (n->design->router.vcs < 2)
        return rg_fail(n->err, RG_ERR_USAGE, RG_NOWHERE,
                       "requests and replies need 2 virtual channels or more, or they deadlock");
    RG_TRY(rg_arg_real(n->args, "write-share", 0.0, 1.0, &cl->write_share, n->err));
    cl->request_reply = true;
    cl->vc_first = 0;
    cl->vc_count = n->design->router.vcs / 2;
    cl->reply_vc_first = cl->vc_count;
    cl->reply_vc_count = n->design->router.vcs - cl->vc_count;
    return RG_OK;
}

/* Classes from a file; loads then multiply their shares. */
static rg_status read_workload(noc_run *n)
{
    rg_noc_workload w;
    RG_TRY(rg_noc_workload_load(n->arena, rg_arg_text(n->args, "workload"), n->design, &w, n->err));
    RG_TRY(rg_report_input(n->report, "workload", w.path, n->err));
    for (int c = 0; c < w.count; c++)
        n->config.classes[c] = w.classes[c];
    n->config.class_count = w.count;
    rg_report_assume(n->report, "loads multiply the shares of the %d classes", w.count);
    return RG_OK;
}

static rg_status read_traffic(noc_run *n)
{
    if (rg_arg_given(n->args, "workload"))
        return read_workload(n);
    rg_noc_class *cl = &n->config.classes[0];
    int64_t flits;
    int injecting;
    const char *from = rg_arg_given(n->args, "from") ? rg_arg_text(n->args, "from") : "all";
    const char *to = rg_arg_given(n->args, "to") ? rg_arg_text(n->args, "to") : "all";
    const rg_noc_group *unused;
    if (!rg_arg_given(n->args, "from") && !rg_arg_given(n->args, "to") &&
        !rg_arg_given(n->args, "traffic") &&
        rg_noc_design_group(n->design, "sm", &unused, NULL) == RG_OK &&
        rg_noc_design_group(n->design, "slice", &unused, NULL) == RG_OK) {
        from = "sm";
        to = "slice";
        rg_report_assume(n->report, "no --traffic, --from or --to was given: each sm sends to all "
                                    "slices alike");
    }
    RG_TRY(rg_arg_int(n->args, "packet", 1, 65535, &flits, n->err));
    RG_TRY(rg_noc_group_traffic(n->arena, n->design, from, to, cl, &injecting, n->err));
    if (rg_arg_given(n->args, "traffic") || strcmp(to, "all") == 0) {
        rg_noc_pattern *pattern;
        RG_TRY(rg_noc_pattern_parse(n->arena, rg_arg_text(n->args, "traffic"), n->design->graph,
                                    RG_NOWHERE, &pattern, n->err));
        cl->pattern = pattern;
    }
    cl->flits = (int)flits;
    rg_report_setting(n->report, "traffic", cl->pattern->text);
    return rg_arg_given(n->args, "request-reply") ? read_transactions(n, cl) : RG_OK;
}

/* The load at which some source starts a packet every cycle: no more can be offered. */
static double most_load(const noc_run *n)
{
    double most = INFINITY;
    for (int c = 0; c < n->config.class_count; c++) {
        const rg_noc_class *cl = &n->config.classes[c];
        double factor = 0.0;
        for (int node = 0; node < n->design->graph->nodes; node++)
            factor = fmax(factor, cl->node_factor != NULL ? cl->node_factor[node] : 1.0);
        most = fmin(most, rg_noc_class_flits(cl) / (rg_noc_class_share(cl) * factor));
    }
    return most;
}

/* --load 0.1,0.2 or, when none is given, ten steps up to the estimated saturation and beyond. */
static rg_status read_loads(noc_run *n)
{
    const double most = most_load(n);
    for (int i = 0; i < rg_arg_count(n->args, "load"); i++) {
        const char *text = rg_arg_nth(n->args, "load", i);
        for (const char *cursor = text;;) {
            char *end;
            const double load = strtod(cursor, &end);
            if (end == cursor || !(load > 0.0) || load > most || (*end != 0 && *end != ',') ||
                n->load_count == MAX_LOADS)
                return rg_fail(n->err, RG_ERR_USAGE, RG_NOWHERE,
                               "option --load '%.60s': write loads in flits per node and cycle, "
                               "above 0 and up to %g, as 0.1,0.2",
                               text, most);
            n->loads[n->load_count++] = load;
            if (*end == 0)
                break;
            cursor = end + 1;
        }
    }
    if (n->load_count > 0)
        return RG_OK;
    for (int i = 1; i <= 11; i++) {
        const double load = n->closed.saturation * 0.1 * i;
        n->loads[n->load_count++] = load < most ? load : most;
    }
    rg_report_assume(n->report, "no --load was given: ten steps up to the estimated saturation and "
                                "one beyond");
    return RG_OK;
}

/* An average age of this many times the empty network's latency says that queues grow without end;
 * the 500 cycles of the protocol are 19 times the 27 of an 8 x 8 mesh. */
static const double QUEUES_ARE_ENDLESS = 20.0;

static rg_status read_protocol(noc_run *n)
{
    int64_t period, seeds;
    n->protocol = RG_NOC_PROTOCOL_DEFAULT;
    RG_TRY(rg_arg_int(n->args, "cycles", 10, 10000000, &period, n->err));
    RG_TRY(rg_arg_int(n->args, "seeds", 1, 1024, &seeds, n->err));
    n->protocol.sample_period = (int)period;
    n->seeds = (int)seeds;
    return RG_OK;
}

static void report_closed(noc_run *n)
{
    const rg_noc_closed *c = &n->closed;
    rg_report *r = n->report;
    rg_report_figure(r, "zero_load_latency_cycles", "latency of an empty network, cycles",
                     c->zero_load_latency, RG_DIM_NONE);
    rg_report_figure(r, "zero_load_hops", "routers per packet", c->hops, RG_DIM_NONE);
    rg_report_figure(r, "channel_bound_flits",
                     "bound by the busiest channel, flits per injecting node and cycle", c->bound,
                     RG_DIM_NONE);
    if (isfinite(c->cut_bound))
        rg_report_figure(r, "cut_bound_flits", "bound by the tightest cut, any routing",
                         c->cut_bound, RG_DIM_NONE);
    rg_report_figure(r, "saturation_estimate_flits", "saturation by the closed form", c->saturation,
                     RG_DIM_NONE);
    const rg_noc_design *d = n->design;
    if (d->clock_hz > 0.0 && d->flit_bytes > 0.0)
        rg_report_figure(r, "channel_bound_bytes_per_s",
                         "the same bound, all injecting nodes together",
                         c->bound * n->offered * d->flit_bytes * d->clock_hz, RG_DIM_BYTES_PER_S);
}

static void add_point_columns(rg_table *t)
{
    rg_table_column(t, "offered_flits", "offered", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "accepted_flits", "accepted", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "saturated", "saturated", RG_CELL_BOOL, RG_DIM_NONE, false);
    rg_table_column(t, "packet_latency_cycles", "latency", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "packet_latency_half_width_cycles", "+- 95 %", RG_CELL_REAL, RG_DIM_NONE,
                    false);
    rg_table_column(t, "packet_latency_p50_cycles", "p50", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "packet_latency_p99_cycles", "p99", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "network_latency_cycles", "in network", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "hops", "hops", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "fairness", "fairness", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "estimate_cycles", "closed form", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "packet_latency_p90_cycles", "p90", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "packet_latency_p95_cycles", "p95", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "packet_latency_p999_cycles", "p99.9", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "packet_latency_least_cycles", "least", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "packet_latency_most_cycles", "most", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "network_latency_p99_cycles", "p99", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "per_hop_cycles", "per hop", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "per_hop_p99_cycles", "p99", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "fragmentation_cycles", "fragmentation", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "accepted_flits_least_node", "least", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "accepted_flits_most_node", "most", RG_CELL_REAL, RG_DIM_NONE, true);
    rg_table_column(t, "deadlocked", "deadlocked", RG_CELL_BOOL, RG_DIM_NONE, true);
    rg_table_column(t, "converged", "converged", RG_CELL_BOOL, RG_DIM_NONE, true);
    rg_table_column(t, "cycles", "cycles", RG_CELL_INT, RG_DIM_NONE, true);
    rg_table_column(t, "flit_hops", "flit hops", RG_CELL_INT, RG_DIM_NONE, true);
}

static void add_point(rg_table *t, const noc_run *n, double load, const rg_noc_result *r)
{
    rg_table_real(t, load);
    rg_table_real(t, r->accepted * n->design->graph->nodes / n->offered);
    rg_table_bool(t, r->saturated);
    rg_table_real(t, r->packet_latency.mean);
    rg_table_real(t, r->packet_half_width);
    rg_table_real(t, r->packet_latency.p50);
    rg_table_real(t, r->packet_latency.p99);
    rg_table_real(t, r->network_latency.mean);
    rg_table_real(t, r->hops);
    rg_table_real(t, r->fairness);
    rg_table_real(t, rg_noc_closed_latency(&n->closed, n->design->graph, load));
    rg_table_real(t, r->packet_latency.p90);
    rg_table_real(t, r->packet_latency.p95);
    rg_table_real(t, r->packet_latency.p999);
    rg_table_real(t, r->packet_latency.least);
    rg_table_real(t, r->packet_latency.most);
    rg_table_real(t, r->network_latency.p99);
    rg_table_real(t, r->per_hop.mean);
    rg_table_real(t, r->per_hop.p99);
    rg_table_real(t, r->fragmentation);
    rg_table_real(t, r->accepted_least);
    rg_table_real(t, r->accepted_most);
    rg_table_bool(t, r->deadlocked);
    rg_table_bool(t, r->converged);
    rg_table_int(t, r->cycles);
    rg_table_int(t, r->flit_hops);
}

static rg_status plot_curve(const noc_run *n, const char *path)
{
    rg_plot *plot;
    FILE *points, *estimate;
    RG_TRY(rg_plot_new(n->arena, "noc_latency", path, &plot, n->err));
    RG_TRY(rg_plot_data(plot, "points", &points, n->err));
    fprintf(points, "offered,latency,p99,accepted\n");
    double most_load = 0.0, most_latency = 0.0;
    for (int i = 0; i < n->load_count; i++) {
        const rg_noc_result *r = &n->results[i];
        fprintf(points, "%.6f,%.4f,%.4f,%.6f\n", n->loads[i], r->packet_latency.mean,
                r->packet_latency.p99, r->accepted * n->design->graph->nodes / n->offered);
        most_load = fmax(most_load, n->loads[i]);
        most_latency = fmax(most_latency, r->packet_latency.mean);
    }
    RG_TRY(rg_plot_data(plot, "estimate", &estimate, n->err));
    fprintf(estimate, "offered,latency\n");
    for (int i = 0; i < 100; i++) {
        const double load = n->closed.saturation * (i + 0.5) / 100.0;
        fprintf(estimate, "%.6f,%.4f\n", load,
                rg_noc_closed_latency(&n->closed, n->design->graph, load));
    }
    rg_plot_text(plot, "figure_title", "%s, %s traffic", n->design->title,
                 n->config.class_count > 1 ? "mixed" : n->config.classes[0].pattern->text);
    rg_plot_number(plot, "x_most", 1.05 * fmax(most_load, n->closed.saturation));
    rg_plot_number(plot, "y_most", most_latency > 0.0 ? 1.6 * most_latency : 100.0);
    rg_plot_number(plot, "zero_load", n->closed.zero_load_latency);
    rg_plot_number(plot, "bound", n->closed.bound);
    rg_plot_number(plot, "saturation_found",
                   isfinite(n->saturation.unstable) && n->saturation.runs > 0
                       ? 0.5 * (n->saturation.stable + n->saturation.unstable)
                       : -1.0);
    return rg_plot_write(plot, n->err);
}

static rg_status find_saturation(noc_run *n)
{
    rg_noc_saturation *s = &n->saturation;
    const double most = fmin(most_load(n), 1.02 * n->closed.bound);
    RG_TRY(rg_noc_find_saturation(n->arena, &n->config, &n->protocol, most, 0.02, n->seeds, s,
                                  n->err));
    if (isfinite(s->unstable)) {
        rg_report_line(n->report,
                       "Saturates between %.4g and %.4g flits per injecting node and cycle; %.4g "
                       "get through at the latter.",
                       s->stable, s->unstable, s->accepted);
    } else {
        rg_report_line(n->report,
                       "Does not saturate up to %.4g flits per injecting node and cycle, all that "
                       "its channels can carry.",
                       s->stable);
    }
    rg_report_figure(n->report, "saturation_stable_flits", "highest steady load found", s->stable,
                     RG_DIM_NONE);
    rg_report_figure(n->report, "saturation_unstable_flits", "lowest load found not steady",
                     isfinite(s->unstable) ? s->unstable : NAN, RG_DIM_NONE);
    rg_report_figure(n->report, "saturation_accepted_flits", "what gets through there", s->accepted,
                     RG_DIM_NONE);
    return RG_OK;
}

/* The heaviest load that is still steady, or the heaviest of all. */
static int showcase(const noc_run *n)
{
    int best = 0;
    for (int i = 1; i < n->load_count; i++)
        if (n->results[i].saturated <= n->results[best].saturated && n->loads[i] > n->loads[best])
            best = i;
    return best;
}

static rg_status report_points(noc_run *n)
{
    rg_table *t = rg_report_table(n->report, "points", "Loads");
    bool deadlock = false;
    add_point_columns(t);
    for (int i = 0; i < n->load_count; i++) {
        add_point(t, n, n->loads[i], &n->results[i]);
        deadlock |= n->results[i].deadlocked;
    }
    if (deadlock)
        rg_report_line(n->report,
                       "DEADLOCK: flits were found that can never move again. Routing "
                       "'%s' is not free of deadlock with these virtual channels.",
                       rg_noc_routing_names[n->design->router.routing]);
    const int shown = showcase(n);
    int64_t rows;
    RG_TRY(rg_arg_int(n->args, "links", 0, 1000000, &rows, n->err));
    if (rows > 0)
        RG_TRY(rg_noc_report_links(n->arena, n->report, n->design->graph,
                                   n->results[shown].link_load, n->results[shown].node_injected,
                                   (int)rows, n->err));
    if (rg_arg_given(n->args, "heat")) {
        const char *title = rg_arena_printf(
            n->arena, n->err, "%s: link utilisation at %.3g flits per injecting node and cycle",
            n->design->title, n->loads[shown]);
        if (title == NULL)
            return RG_ERR_LIMIT;
        RG_TRY(rg_noc_plot_links(n->arena, n->design, n->results[shown].link_load, title,
                                 rg_arg_text(n->args, "heat"), n->err));
        rg_report_image(n->report, rg_arg_text(n->args, "heat"), title);
    }
    if (rg_arg_given(n->args, "plot")) {
        RG_TRY(plot_curve(n, rg_arg_text(n->args, "plot")));
        rg_report_image(n->report, rg_arg_text(n->args, "plot"), "latency against load");
    }
    return RG_OK;
}

rg_status rg_noc_command_run(rg_arena *arena, const rg_args *args, rg_report *report, rg_err *err)
{
    noc_run n = {.arena = arena, .args = args, .report = report, .err = err};
    RG_TRY(rg_noc_command_design(arena, args, report, &n.design, err));
    n.config = (rg_noc_config){.graph = n.design->graph,
                               .router = n.design->router,
                               .class_count = 1,
                               .seed = rg_arg_seed(args),
                               .check = rg_arg_flag(args, "check")};
    RG_TRY(read_traffic(&n));
    n.offered = rg_noc_offered(n.config.classes, n.config.class_count, n.design->graph->nodes);
    RG_TRY(read_protocol(&n));
    RG_TRY(rg_noc_closed_form(arena, n.design->graph, &n.design->router, n.config.classes,
                              n.config.class_count, &n.closed, err));
    n.protocol.latency_threshold =
        fmax(n.protocol.latency_threshold, QUEUES_ARE_ENDLESS * n.closed.zero_load_latency);
    rg_report_line(report, "%s: %d nodes, %d routers", n.design->title, n.design->graph->nodes,
                   n.design->graph->routers);
    if (rg_arg_flag(args, "closed")) {
        report_closed(&n);
        int64_t rows;
        RG_TRY(rg_arg_int(args, "links", 0, 1000000, &rows, err));
        for (int o = 0; o < n.design->graph->outputs; o++)
            n.closed.link_load[o] *= n.closed.bound; /* as at the bound */
        if (rows > 0)
            RG_TRY(rg_noc_report_links(arena, report, n.design->graph, n.closed.link_load, NULL,
                                       (int)rows, err));
        return rg_arg_write(args, report, NULL, err);
    }
    RG_TRY(read_loads(&n));
    n.results = RG_NEW(arena, rg_noc_result, n.load_count, err);
    if (n.results == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(rg_noc_sweep(arena, &n.config, &n.protocol, n.loads, n.load_count, n.seeds, true,
                        n.results, err));
    if (rg_arg_flag(args, "saturation"))
        RG_TRY(find_saturation(&n));
    report_closed(&n);
    RG_TRY(report_points(&n));
    return rg_arg_write(args, report, "points", err);
}

/* cli/noc_links.c: the links of a network: the busiest as a table, all of them as a picture. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "cli/noc.h"
#include "report/plot.h"

const char *rg_noc_link_name(rg_arena *arena, const rg_noc_graph *graph, int output, rg_err *err)
{
    const rg_noc_channel *c = &graph->out_channel[output];
    return c->to_router >= 0
               ? rg_arena_printf(arena, err, "router %d to router %d", c->from_router, c->to_router)
               : rg_arena_printf(arena, err, "router %d to node %d", c->from_router, c->node);
}

/* Share of link i that is busy; links are the outputs, then the nodes' injection channels. */
static double link_use(const rg_noc_graph *graph, const double *load, const double *injected, int i)
{
    if (i < graph->outputs)
        return load[i] * graph->out_channel[i].period;
    const int node = i - graph->outputs;
    return injected[node] * graph->in_channel[graph->node_input[node]].period;
}

rg_status rg_noc_report_links(rg_arena *arena, rg_report *report, const rg_noc_graph *graph,
                              const double *load, const double *injected, int rows, rg_err *err)
{
    const int links = graph->outputs + (injected != NULL ? graph->nodes : 0);
    bool *shown = RG_NEW(arena, bool, links, err);
    if (shown == NULL)
        return RG_ERR_LIMIT;
    rg_table *t = rg_report_table(report, "links", "Busiest links");
    rg_table_column(t, "link", "link", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "flits_per_cycle", "flits per cycle", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "utilisation_ratio", "utilisation", RG_CELL_REAL, RG_DIM_NONE, false);
    for (int row = 0; row < rows && row < links; row++) {
        int best = -1;
        double most = -1.0;
        for (int i = 0; i < links; i++)
            if (!shown[i] && link_use(graph, load, injected, i) > most) {
                most = link_use(graph, load, injected, i);
                best = i;
            }
        shown[best] = true;
        const int node = best - graph->outputs;
        const char *name = node < 0 ? rg_noc_link_name(arena, graph, best, err)
                                    : rg_arena_printf(arena, err, "node %d to router %d", node,
                                                      graph->in_router[graph->node_input[node]]);
        if (name == NULL)
            return RG_ERR_LIMIT;
        rg_table_text(t, name);
        rg_table_real(t, node < 0 ? load[best] : injected[node]);
        rg_table_real(t, most);
    }
    return RG_OK;
}

/* Where a router stands in the picture: cubes by their first two digits (further ones side by
 * side), flies and trees by stage and place, free graphs by distance from the best connected. */
static rg_status place_routers(rg_arena *arena, const rg_noc_graph *g, double *x, double *y,
                               rg_err *err)
{
    const bool cube = g->shape == RG_NOC_MESH || g->shape == RG_NOC_TORUS;
    const int per_row = cube                       ? g->extent[0]
                        : g->shape == RG_NOC_GRAPH ? 1
                                                   : g->nodes / g->extent[0];
    if (cube) {
        const int rows = g->dims > 1 ? g->extent[1] : 1;
        for (int r = 0; r < g->routers; r++) {
            const int plane = r / (per_row * rows);
            x[r] = r % per_row + plane * (per_row + 1);
            y[r] = r / per_row % rows;
        }
        return RG_OK;
    }
    if (g->shape != RG_NOC_GRAPH) {
        for (int r = 0; r < g->routers; r++) {
            x[r] = r % per_row;
            y[r] = g->shape == RG_NOC_TREE ? g->dims - 1 - r / per_row : r / per_row;
        }
        return RG_OK;
    }
    int *queue = RG_NEW(arena, int, g->routers, err), *tier = RG_NEW(arena, int, g->routers, err);
    int *width = RG_NEW(arena, int, g->routers + 1, err);
    if (queue == NULL || tier == NULL || width == NULL)
        return RG_ERR_LIMIT;
    int root = 0, most = -1;
    for (int r = 0; r < g->routers; r++) {
        int links = 0;
        tier[r] = -1;
        for (int o = g->out_first[r]; o < g->out_first[r + 1]; o++)
            links += g->out_target[o] >= 0;
        if (links > most) {
            most = links;
            root = r;
        }
    }
    int count = 1;
    queue[0] = root;
    tier[root] = 0;
    for (int i = 0; i < count; i++)
        for (int o = g->out_first[queue[i]]; o < g->out_first[queue[i] + 1]; o++) {
            const int to = g->out_channel[o].to_router;
            if (to >= 0 && tier[to] < 0) {
                tier[to] = tier[queue[i]] + 1;
                queue[count++] = to;
            }
        }
    for (int r = 0; r < g->routers; r++) {
        const int t = tier[r] >= 0 ? tier[r] : g->routers;
        x[r] = width[t]++;
        y[r] = t;
    }
    for (int r = 0; r < g->routers; r++) {
        const int t = tier[r] >= 0 ? tier[r] : g->routers;
        x[r] = (x[r] + 0.5) / width[t] * 12.0;
        y[r] = -2.0 * t;
    }
    return RG_OK;
}

/* Of parallel links the busiest is drawn. */
static bool hidden_lane(const rg_noc_graph *g, const double *load, int output)
{
    const int r = g->out_router[output], to = g->out_channel[output].to_router;
    for (int o = g->out_first[r]; o < g->out_first[r + 1]; o++)
        if (o != output && g->out_channel[o].to_router == to &&
            (load[o] > load[output] || (load[o] == load[output] && o < output)))
            return true;
    return false;
}

rg_status rg_noc_plot_links(rg_arena *arena, const rg_noc_design *design, const double *load,
                            const char *title, const char *path, rg_err *err)
{
    const rg_noc_graph *g = design->graph;
    rg_plot *plot;
    FILE *links, *routers;
    double *x = RG_NEW(arena, double, g->routers, err), *y = RG_NEW(arena, double, g->routers, err);
    if (x == NULL || y == NULL)
        return RG_ERR_LIMIT;
    RG_TRY(place_routers(arena, g, x, y, err));
    RG_TRY(rg_plot_new(arena, "noc_heat", path, &plot, err));
    RG_TRY(rg_plot_data(plot, "links", &links, err));
    fprintf(links, "from,to,x0,y0,dx,dy,utilisation\n");
    for (int o = 0; o < g->outputs; o++) {
        const int a = g->out_router[o], b = g->out_channel[o].to_router;
        if (b < 0 || hidden_lane(g, load, o))
            continue;
        double dx = x[b] - x[a], dy = y[b] - y[a];
        const double length = hypot(dx, dy);
        const bool wrap = g->shape == RG_NOC_TORUS && length > 1.5;
        if (wrap) { /* a stub that leaves the picture on the far side */
            dx = dx > 0.5 ? -0.6 : dx < -0.5 ? 0.6 : 0.0;
            dy = dy > 0.5 ? -0.6 : dy < -0.5 ? 0.6 : 0.0;
        }
        const double ox = length > 0.0 ? -0.08 * dy / hypot(dx, dy) : 0.0;
        const double oy = length > 0.0 ? 0.08 * dx / hypot(dx, dy) : 0.0;
        fprintf(links, "%d,%d,%.4f,%.4f,%.4f,%.4f,%.6f\n", a, b, x[a] + 0.14 * dx + ox,
                y[a] + 0.14 * dy + oy, 0.72 * dx, 0.72 * dy, load[o] * g->out_channel[o].period);
    }
    RG_TRY(rg_plot_data(plot, "routers", &routers, err));
    fprintf(routers, "router,x,y,exit_utilisation\n");
    for (int r = 0; r < g->routers; r++) {
        double most = 0.0;
        for (int o = g->out_first[r]; o < g->out_first[r + 1]; o++)
            if (g->out_target[o] < 0)
                most = fmax(most, load[o] * g->out_channel[o].period);
        fprintf(routers, "%d,%.4f,%.4f,%.6f\n", r, x[r], y[r], most);
    }
    rg_plot_text(plot, "figure_title", "%s", title);
    rg_plot_number(plot, "router_count", g->routers);
    return rg_plot_write(plot, err);
}

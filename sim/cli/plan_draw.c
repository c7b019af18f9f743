/* cli/plan_draw.c: the figure of a plan: cost against latency. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "cli/plan_parts.h"
#include "report/plot.h"

rg_status rg_plan_draw(const rg_plan_answer *x, const char *path, rg_err *err)
{
    const rg_plan_run *run = x->run;
    rg_plot *plot;
    FILE *out;
    RG_TRY(rg_plot_new(x->arena, "plan_frontier", path, &plot, err));
    rg_plot_size(plot, 1000, 620);
    rg_plot_text(plot, "plot_title", "%s: cost against latency", run->space.model->name);
    rg_plot_text(plot, "cost_label", "%s",
                 run->space.goal == RG_PLAN_COST    ? "cost ($/h)"
                 : run->space.goal == RG_PLAN_POWER ? "power (W)"
                                                    : "devices");
    rg_plot_number(plot, "winner_cost", rg_plan_goal_of_winner(run));
    rg_plot_number(plot, "winner_latency", run->outcomes[run->winner].at.e2e_p95);
    double cost[2] = {INFINITY, 0}, latency[2] = {INFINITY, 0};
    for (int i = 0; i < x->point_count; i++) {
        const rg_plan_point *p = &x->points[i];
        cost[0] = fmin(cost[0], p->goal);
        cost[1] = fmax(cost[1], p->goal);
        latency[0] = fmin(latency[0], p->trial.e2e_p95);
        latency[1] = fmax(latency[1], p->trial.e2e_p95);
    }
    rg_plot_number(plot, "least_cost", cost[0]);
    rg_plot_number(plot, "most_cost", cost[1]);
    rg_plot_number(plot, "least_latency", latency[0]);
    rg_plot_number(plot, "most_latency", latency[1]);
    rg_plot_number(plot, "whole", run->space.goal == RG_PLAN_DEVICES);
    int series = 0;
    for (int m = 0; m < run->space.machine_count; m++) {
        char name[24];
        bool any = false;
        for (int i = 0; i < x->point_count; i++)
            any |= rg_part_arrangement(run, x->points[i].candidate)->machine == m;
        if (!any)
            continue;
        snprintf(name, sizeof name, "s%d", ++series);
        RG_TRY(rg_plot_data(plot, name, &out, err));
        fprintf(out, "cost,e2e_p95_s,meets_limits,on_frontier\n");
        for (int i = 0; i < x->point_count; i++) {
            const rg_plan_point *p = &x->points[i];
            if (rg_part_arrangement(run, p->candidate)->machine == m)
                fprintf(out, "%.9g,%.9g,%d,%d\n", p->goal, p->trial.e2e_p95, p->trial.ok,
                        p->on_frontier);
        }
        snprintf(name, sizeof name, "s%d_title", series);
        rg_plot_text(plot, name, "%s", run->space.machines[m].name);
    }
    rg_plot_number(plot, "series", series);
    RG_TRY(rg_plot_data(plot, "frontier", &out, err));
    fprintf(out, "cost,e2e_p95_s\n");
    for (int i = 0; i < x->point_count; i++)
        if (x->points[i].on_frontier)
            fprintf(out, "%.9g,%.9g\n", x->points[i].goal, x->points[i].trial.e2e_p95);
    return rg_plot_write(plot, err);
}

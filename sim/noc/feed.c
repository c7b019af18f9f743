/* noc/feed.c: what groups of nodes can move between them, and what feeds an accelerator's units. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "noc/closed.h"

rg_status rg_noc_group_traffic(rg_arena *arena, const rg_noc_design *design, const char *from,
                               const char *to, rg_noc_class *out, int *injecting, rg_err *err)
{
    const rg_noc_group *sources, *targets;
    RG_TRY(rg_noc_design_group(design, from, &sources, err));
    RG_TRY(rg_noc_design_group(design, to, &targets, err));
    rg_noc_pattern *p = RG_NEW(arena, rg_noc_pattern, 1, err);
    double *factor = RG_NEW(arena, double, design->graph->nodes, err);
    if (p == NULL || factor == NULL)
        return RG_ERR_LIMIT;
    *p = (rg_noc_pattern){.kind = RG_NOC_HOTSPOT,
                          .text = to,
                          .nodes = design->graph->nodes,
                          .spots = targets->count,
                          .spot = RG_NEW(arena, int32_t, targets->count, err),
                          .spot_before = RG_NEW(arena, int64_t, targets->count + 1, err)};
    if (p->spot == NULL || p->spot_before == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < targets->count; i++) {
        p->spot[i] = targets->first + i;
        p->spot_before[i + 1] = i + 1;
    }
    for (int i = 0; i < sources->count; i++)
        factor[sources->first + i] = 1.0;
    *out = (rg_noc_class){.pattern = p,
                          .packets_per_cycle = 1.0,
                          .node_factor = factor,
                          .flits = 1,
                          .vc_count = design->router.vcs,
                          .reply_vc_count = design->router.vcs};
    *injecting = sources->count;
    return RG_OK;
}

static rg_status need_units(const rg_noc_design *design, bool flit, rg_err *err)
{
    if (design->clock_hz > 0.0 && (!flit || design->flit_bytes > 0.0))
        return RG_OK;
    return rg_fail(err, RG_ERR_MODEL, (rg_pos){design->path, 0, 0},
                   "the network says no %s, so cycles cannot become %s",
                   design->clock_hz > 0.0 ? "flit" : "clock",
                   flit ? "bytes per second" : "seconds");
}

rg_status rg_noc_group_bandwidth(rg_arena *arena, const rg_noc_design *design, const char *from,
                                 const char *to, rg_byte_rate *bound, rg_byte_rate *sustained,
                                 rg_err *err)
{
    rg_noc_class traffic;
    rg_noc_closed closed;
    int injecting;
    RG_TRY(need_units(design, true, err));
    RG_TRY(rg_noc_group_traffic(arena, design, from, to, &traffic, &injecting, err));
    traffic.vc_count = (design->router.vcs + 1) / 2; /* the other direction has the other half */
    RG_TRY(rg_noc_closed_form(arena, design->graph, &design->router, &traffic, 1, &closed, err));
    const double scale = injecting * design->flit_bytes * design->clock_hz;
    *bound = RG_BPS(closed.bound * scale);
    *sustained = RG_BPS(closed.saturation * scale);
    return RG_OK;
}

rg_status rg_noc_group_round_trip(rg_arena *arena, const rg_noc_design *design, const char *from,
                                  const char *to, int reply_flits, rg_seconds *out, rg_err *err)
{
    rg_noc_class there, back;
    rg_noc_closed a, b;
    int injecting;
    RG_TRY(need_units(design, false, err));
    RG_TRY(rg_noc_group_traffic(arena, design, from, to, &there, &injecting, err));
    RG_TRY(rg_noc_group_traffic(arena, design, to, from, &back, &injecting, err));
    back.flits = reply_flits;
    RG_TRY(rg_noc_closed_form(arena, design->graph, &design->router, &there, 1, &a, err));
    RG_TRY(rg_noc_closed_form(arena, design->graph, &design->router, &back, 1, &b, err));
    *out = RG_S((a.zero_load_latency + b.zero_load_latency) / design->clock_hz);
    return RG_OK;
}

rg_status rg_noc_feed_of(rg_arena *arena, const rg_accel *accel, rg_noc_feed *out, rg_err *err)
{
    rg_byte_rate unused;
    const rg_noc_group *links;
    *out = (rg_noc_feed){0};
    if (accel->noc_file == NULL)
        return rg_fail(err, RG_ERR_MODEL, (rg_pos){accel->path, 0, 0},
                       "%s names no on-chip network; add noc: {file: NAME}", accel->name);
    RG_TRY(rg_noc_design_load(arena, accel->noc_file, &out->design, err));
    const rg_noc_design *d = out->design;
    const int reply =
        d->flit_bytes > 0.0 ? (int)ceil((128.0 + d->header_bytes) / d->flit_bytes) : 1;
    RG_TRY(
        rg_noc_group_bandwidth(arena, d, "slice", "sm", &out->l2_bound, &out->l2_sustained, err));
    RG_TRY(rg_noc_group_bandwidth(arena, d, "mem", "slice", &out->memory_bound, &unused, err));
    RG_TRY(rg_noc_group_round_trip(arena, d, "sm", "slice", reply, &out->l2_round_trip, err));
    if (rg_noc_design_group(d, "nvlink", &links, NULL) == RG_OK)
        RG_TRY(rg_noc_group_bandwidth(arena, d, "nvlink", "slice", &out->link_bound, &unused, err));
    return RG_OK;
}

/* hw/follow.c: figures that a what-if change takes with it. */
// SPDX-License-Identifier: Apache-2.0
#include "hw/follow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static rg_status scale(rg_arena *arena, rg_figure *figure, double ratio, const char *reason,
                       rg_err *err)
{
    figure->value *= ratio;
    figure->source = rg_arena_printf(arena, err, "what-if: %s (%s)", reason, figure->source);
    return figure->source == NULL ? RG_ERR_LIMIT : RG_OK;
}

/* By what a change multiplied a figure; 1 when either is not known. */
static double ratio_of(const rg_figure *now, const rg_figure *before)
{
    return now->known && before->known && before->value > 0.0 ? now->value / before->value : 1.0;
}

/* Peaks follow a changed boost clock. One that is quoted at a clock of its own, below the boost
 * clock, stays until the boost clock comes below that. */
static rg_status follow_clock(rg_arena *arena, const rg_accel *before, rg_accel *accel, rg_err *err)
{
    const double old = before->boost_clock.value, now = accel->boost_clock.value;
    if (!before->boost_clock.known || !(old > 0.0) || now == old)
        return RG_OK;
    char reason[32];
    snprintf(reason, sizeof reason, "at %.4g GHz", now / 1e9);
    for (int i = 0; i < accel->peak_count; i++) {
        rg_peak *peak = &accel->peaks[i];
        if (peak->rate.value != before->peaks[i].rate.value)
            continue; /* changed by name */
        const double own = peak->clock.known ? peak->clock.value : old;
        const double ratio = now > old ? now / old : fmin(1.0, now / own);
        rg_figure *const figures[] = {&peak->rate, &peak->sparse, &peak->sustained, &peak->clock};
        for (size_t f = 0; f < sizeof figures / sizeof figures[0]; f++) {
            if (!figures[f]->known || ratio == 1.0)
                continue;
            RG_TRY(scale(arena, figures[f], ratio, reason, err));
        }
    }
    return RG_OK;
}

/* What software gets of a memory is the same share of a changed capacity. */
static rg_status follow_capacity(rg_arena *arena, const rg_accel *before, rg_accel *accel,
                                 rg_err *err)
{
    for (int i = 0; i < accel->level_count; i++) {
        rg_memory_level *level = &accel->levels[i];
        const rg_memory_level *was = &before->levels[i];
        const double ratio = ratio_of(&level->capacity, &was->capacity);
        if (level->usable.known && ratio != 1.0 && ratio_of(&level->usable, &was->usable) == 1.0)
            RG_TRY(scale(arena, &level->usable, ratio, "as the capacity", err));
    }
    return RG_OK;
}

/* All links of a port together are as many times faster as one, and as many times as there are. */
static rg_status follow_port(rg_arena *arena, const rg_accel *before, rg_accel *accel, rg_err *err)
{
    for (int i = 0; i < accel->port_count; i++) {
        rg_link_port *port = &accel->ports[i];
        const rg_link_port *was = &before->ports[i];
        const double ratio = ratio_of(&port->links, &was->links) *
                             ratio_of(&port->rate_per_link, &was->rate_per_link);
        if (ratio != 1.0 && ratio_of(&port->rate_per_direction, &was->rate_per_direction) == 1.0)
            RG_TRY(scale(arena, &port->rate_per_direction, ratio, "as links x rate of one", err));
    }
    return RG_OK;
}

rg_status rg_follow_device(rg_arena *arena, const rg_accel *before, rg_accel *accel, rg_err *err)
{
    RG_TRY(follow_clock(arena, before, accel, err));
    RG_TRY(follow_capacity(arena, before, accel, err));
    return follow_port(arena, before, accel, err);
}

static bool changed_by_name(const rg_changes *changes, const char *path)
{
    for (int i = 0; i < changes->count; i++)
        if (strncmp(changes->items[i].path, path, strlen(path)) == 0)
            return true;
    return false;
}

rg_status rg_follow_links(rg_arena *arena, const rg_accel *before, const rg_changes *changes,
                          rg_cluster *cluster, rg_err *err)
{
    rg_fabric *up = &cluster->scale_up;
    for (int i = 0; i < cluster->accel->port_count && up->kind != RG_FABRIC_NONE; i++) {
        const rg_link_port *port = &cluster->accel->ports[i], *was = &before->ports[i];
        if (strcmp(port->kind, up->technology) != 0)
            continue;
        const double rate = ratio_of(&port->rate_per_direction, &was->rate_per_direction);
        if (rate != 1.0 && !changed_by_name(changes, "cluster.scale_up.rate_per_direction"))
            RG_TRY(scale(arena, &up->rate_per_direction, rate, "as the device's links", err));
        const double latency = ratio_of(&port->latency, &was->latency);
        if (latency != 1.0 && !changed_by_name(changes, "cluster.scale_up.latency"))
            RG_TRY(scale(arena, &up->latency, latency, "as the device's links", err));
    }
    return RG_OK;
}

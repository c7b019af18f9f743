// SPDX-License-Identifier: Apache-2.0
#include "roofline/roofline.h"

#include <math.h>
#include <stdio.h>

rg_status rg_roof_bandwidth(const rg_accel *accel, int level, rg_byte_rate *out, rg_err *err)
{
    const rg_memory_level *l = &accel->levels[level];
    const double units = l->per_unit ? accel->units.value : 1.0;
    const rg_figure *clock = l->clock.known ? &l->clock : &accel->boost_clock;
    if (l->bandwidth.known)
        *out = RG_BPS(l->bandwidth.value * units);
    else if (l->bytes_per_clock.known && clock->known)
        *out = RG_BPS(l->bytes_per_clock.value * units * clock->value);
    else if (l->measured_bandwidth.known)
        *out = RG_BPS(l->measured_bandwidth.value);
    else
        return rg_fail(err, RG_ERR_MODEL, l->pos,
                       "level '%s' gives no bandwidth; add bandwidth or bytes_per_clock", l->name);
    return RG_OK;
}

static bool is_wide(rg_dtype accumulate)
{
    return accumulate == RG_FP32 || accumulate == RG_INT32 || accumulate == RG_FP64;
}

rg_status rg_roof_peak(const rg_accel *accel, rg_dtype math, bool vector, rg_flop_rate *out,
                       rg_err *err)
{
    const rg_peak *best = NULL;
    char known[256] = "";
    size_t used = 0;
    for (int i = 0; i < accel->peak_count; i++) {
        const rg_peak *p = &accel->peaks[i];
        if (!p->rate.known || p->matrix == vector)
            continue;
        if (used < sizeof known - 24)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                     p->name);
        /* The wide accumulator is what inference uses; a narrow one may be faster (GeForce). */
        if (p->input == math && (!best || (is_wide(p->accumulate) && !is_wide(best->accumulate))))
            best = p;
    }
    if (!best)
        return rg_fail(err, RG_ERR_MODEL, (rg_pos){.file = accel->path},
                       "%s has no %s peak for '%s'; it has %s", accel->name,
                       vector ? "vector" : "matrix", rg_dtype_name(math), used ? known : "none");
    *out = RG_FPS(best->rate.value);
    return RG_OK;
}

rg_status rg_roof_time_of(const rg_accel *accel, const rg_work *work, rg_roof_time *out,
                          rg_err *err)
{
    *out = (rg_roof_time){.limit = RG_LIMIT_COMPUTE};
    if (work->flops.v > 0.0) {
        rg_flop_rate peak;
        RG_TRY(rg_roof_peak(accel, work->math, work->vector, &peak, err));
        out->total = out->compute = rg_compute_time(work->flops, peak);
    }
    for (int l = accel->level_count - 1; l >= 0; l--) {
        if (!(work->bytes[l].v > 0.0))
            continue;
        rg_byte_rate bandwidth;
        RG_TRY(rg_roof_bandwidth(accel, l, &bandwidth, err));
        out->level[l] = rg_move_time(work->bytes[l], bandwidth);
        if (out->level[l].v > out->total.v) {
            out->total = out->level[l];
            out->limit = l;
        }
    }
    if (!(out->total.v > 0.0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "a kernel without flops and bytes has no time");
    return RG_OK;
}

double rg_roof_ridge(rg_flop_rate peak, rg_byte_rate bandwidth)
{
    return peak.v / bandwidth.v;
}

rg_flop_rate rg_roof_attainable(double intensity_flops_per_byte, rg_flop_rate peak,
                                rg_byte_rate bandwidth)
{
    return RG_FPS(fmin(intensity_flops_per_byte * bandwidth.v, peak.v));
}

static double decade_above(double x)
{
    return pow(10.0, ceil(log10(x) - 1e-9));
}

rg_status rg_roof_axes_of(const rg_accel *accel, rg_roof_axes *out, rg_err *err)
{
    double most_ridge = 0.0, most_peak = 0.0;
    for (int i = 0; i < accel->peak_count; i++) {
        if (!accel->peaks[i].rate.known)
            continue;
        const rg_flop_rate peak = RG_FPS(accel->peaks[i].rate.value);
        most_peak = fmax(most_peak, peak.v);
        for (int l = 0; l < accel->level_count; l++) {
            rg_byte_rate bandwidth;
            if (rg_roof_bandwidth(accel, l, &bandwidth, NULL) != RG_OK)
                continue;
            most_ridge = fmax(most_ridge, rg_roof_ridge(peak, bandwidth));
        }
    }
    if (!(most_peak > 0.0) || !(most_ridge > 0.0))
        return rg_fail(err, RG_ERR_MODEL, (rg_pos){.file = accel->path},
                       "%s gives no peak and bandwidth to draw a roof from", accel->name);
    out->y_most = decade_above(most_peak * 1.5);
    out->y_least = out->y_most * 1e-5;
    out->x_least = 0.1;
    out->x_most = decade_above(most_ridge * 3.0);
    return RG_OK;
}

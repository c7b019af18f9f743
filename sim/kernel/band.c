/* kernel/band.c: how far predictions can be trusted: errors stored by the fit, by group and size.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/device.h"

static const char *tokens_class(int64_t tokens)
{
    return tokens <= 16     ? "m<=16"
           : tokens <= 128  ? "m<=128"
           : tokens <= 1024 ? "m<=1024"
                            : "m>1024";
}

static const char *length_class(double tokens)
{
    return tokens <= 127.0 ? "len<128" : tokens < 1023.0 ? "len<1024" : "len>=1024";
}

const char *rg_kernel_size_class(const rg_op *op)
{
    switch (op->kind) {
    case RG_OP_GEMM:
        return tokens_class(op->u.gemm.m);
    case RG_OP_MOE:
        return tokens_class(op->u.moe.tokens);
    case RG_OP_ATTN_PREFILL:
    case RG_OP_MLA_PREFILL:
        return length_class((double)op->u.attention.q_tokens);
    case RG_OP_ATTN_DECODE:
    case RG_OP_MLA_DECODE:
        return length_class(op->u.attention.kv_tokens);
    default:
        return tokens_class(op->u.stream.rows);
    }
}

static bool read_band(const rg_accel *accel, const char *group, const char *key,
                      const char *size_class, rg_band *out)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s.%s", group, key, size_class);
    out->median = rg_accel_fit_or(accel, name, "median_ratio", -1.0, NULL);
    out->p90 = rg_accel_fit_or(accel, name, "p90_ratio", -1.0, NULL);
    out->bias = rg_accel_fit_or(accel, name, "bias_ratio", 0.0, NULL);
    out->size_class = size_class;
    return out->median >= 0.0 && out->p90 >= 0.0;
}

/* Operators up to so many times outside the range of the measured ones still count as covered. */
static const double beyond = 4.0;

static bool in_range(const rg_accel *accel, const char *group, const rg_op *op)
{
    char name[64];
    snprintf(name, sizeof name, "%s.band.range", group);
    const double work = op->flops.v > 0.0 ? op->flops.v : rg_op_bytes(op).v;
    const double least = rg_accel_fit_or(accel, name, "least_work", 0.0, NULL);
    const double most = rg_accel_fit_or(accel, name, "most_work", INFINITY, NULL);
    return work * beyond >= least && work <= most * beyond;
}

rg_band rg_kernel_band(const rg_kernel_device *device, const rg_op *op)
{
    const rg_kernel_group group = rg_kernel_group_of(op);
    const rg_accel *accel = device->band_from[group];
    rg_band band = {.basis = RG_BAND_NONE, .size_class = rg_kernel_size_class(op)};
    if (!accel || device->options.ideal)
        return band;
    const bool own = device->origin[group] == RG_KO_OWN;
    /* Constants were carried between devices of one vendor; of others nothing is known. */
    if (!own && device->vendor && strcmp(accel->vendor, device->vendor) != 0)
        return band;
    const char *name = rg_kernel_groups[group].name, *key = own ? "band" : "band_carried";
    if (in_range(accel, name, op) && (read_band(accel, name, key, band.size_class, &band) ||
                                      read_band(accel, name, key, "all", &band)))
        band.basis = own ? RG_BAND_VALIDATED : RG_BAND_CARRIED;
    return band;
}

/* kernel/kernel.c: one operator in, its time and what bounds it out. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel.h"

#include <math.h>

#include "kernel/device.h"

const char *rg_bound_name(rg_bound bound)
{
    static const char *const names[RG_BOUND_COUNT] = {
        [RG_BOUND_COMPUTE] = "compute", [RG_BOUND_MEMORY] = "memory", [RG_BOUND_L2] = "l2",
        [RG_BOUND_L1] = "l1",           [RG_BOUND_FIXED] = "fixed",   [RG_BOUND_LINK] = "link",
    };
    return names[bound];
}

rg_kernel_group rg_kernel_group_of(const rg_op *op)
{
    switch (op->kind) {
    case RG_OP_GEMM:
        return rg_kernel_gemm_group(&op->u.gemm);
    case RG_OP_ATTN_PREFILL:
        return op->u.attention.no_cache ? RG_KG_ENCODER : RG_KG_PREFILL;
    case RG_OP_ATTN_DECODE:
        return RG_KG_DECODE;
    case RG_OP_MLA_PREFILL:
        return RG_KG_MLA_PREFILL;
    case RG_OP_MLA_DECODE:
        return RG_KG_MLA_DECODE;
    case RG_OP_MOE:
        return rg_kernel_moe_group(&op->u.moe);
    default:
        return RG_KG_STREAM;
    }
}

static rg_status sheet_peak(const rg_kernel_device *device, rg_dtype type, double *out, rg_err *err)
{
    RG_TRY(rg_kernel_peak(device, type, out, err));
    *out = device->peak[type];
    return RG_OK;
}

/* Rate of the data sheet that the operator's flops are held against: the matrix peak of its type,
 * or the vector peak where it has no products. */
static rg_status peak_of(const rg_kernel_device *device, const rg_op *op, double *out, rg_err *err)
{
    switch (op->kind) {
    case RG_OP_GEMM:
        return sheet_peak(device, op->u.gemm.math, out, err);
    case RG_OP_ATTN_PREFILL:
    case RG_OP_ATTN_DECODE:
    case RG_OP_MLA_PREFILL:
    case RG_OP_MLA_DECODE:
        return sheet_peak(device, op->u.attention.math, out, err);
    case RG_OP_MOE:
        return sheet_peak(device, op->u.moe.math, out, err);
    default:
        *out = device->vector_peak > 0.0 ? device->vector_peak : device->peak[RG_BF16];
        return RG_OK;
    }
}

static rg_bound bound_of(const rg_kernel_parts *parts)
{
    rg_bound bound = RG_BOUND_FIXED;
    double most = parts->fixed;
    if (parts->memory > most) {
        most = parts->memory;
        bound = RG_BOUND_MEMORY;
    }
    if (parts->l2 > most) {
        most = parts->l2;
        bound = RG_BOUND_L2;
    }
    if (parts->compute > most)
        bound = RG_BOUND_COMPUTE;
    return bound;
}

static rg_status model(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *parts,
                       rg_err *err)
{
    switch (op->kind) {
    case RG_OP_GEMM:
        return rg_kernel_gemm(device, op, parts, err);
    case RG_OP_ATTN_PREFILL:
    case RG_OP_MLA_PREFILL:
        return rg_kernel_prefill(device, op, parts, err);
    case RG_OP_ATTN_DECODE:
        return rg_kernel_decode(device, op, parts, err);
    case RG_OP_MLA_DECODE:
        return rg_kernel_mla(device, op, parts, err);
    case RG_OP_MOE:
        return rg_kernel_moe(device, op, parts, err);
    default:
        return rg_kernel_stream(device, op, parts, err);
    }
}

rg_status rg_kernel_op_time(const rg_kernel_device *device, const rg_op *op, rg_kernel_time *out,
                            rg_err *err)
{
    double peak;
    RG_TRY(peak_of(device, op, &peak, err));
    const double bytes = rg_op_bytes(op).v;
    const double compute = peak > 0.0 ? op->flops.v / peak : 0.0;
    const double memory = bytes / device->memory_rate;
    if (!(compute > 0.0) && !(memory > 0.0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "operator '%s' has neither flops nor bytes",
                       op->name ? op->name : "?");
    const double roofline = compute > memory ? compute : memory;
    if (device->options.ideal) {
        *out = (rg_kernel_time){.total = RG_S(roofline),
                                .roofline = RG_S(roofline),
                                .products = RG_S(compute),
                                .compute = RG_S(compute),
                                .memory = RG_S(memory),
                                .bound = compute > memory ? RG_BOUND_COMPUTE : RG_BOUND_MEMORY,
                                .choice = "roofline"};
        return RG_OK;
    }
    rg_kernel_parts parts = {0};
    RG_TRY(model(device, op, &parts, err));
    if (!isfinite(parts.total) || !(parts.total > 0.0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "operator '%s' is outside what the kernel model holds for",
                       op->name ? op->name : "?");
    *out = (rg_kernel_time){.total = RG_S(parts.total),
                            .roofline = RG_S(roofline),
                            .products = RG_S(compute),
                            .fixed = RG_S(parts.fixed),
                            .compute = RG_S(parts.compute),
                            .memory = RG_S(parts.memory),
                            .l2 = RG_S(parts.l2),
                            .bound = bound_of(&parts),
                            .choice = parts.choice};
    return RG_OK;
}

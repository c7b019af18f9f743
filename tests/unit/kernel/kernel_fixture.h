/* A device with round figures for hand calculations of attention. */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TEST_KERNEL_FIXTURE_H
#define RG_TEST_KERNEL_FIXTURE_H

#include <string.h>

#include "unit.h"

#include "kernel/device.h"

/* 100 SMs at 1 GHz, 1000 flop a cycle and SM, endless memory; constants under which nothing but the
 * products takes time. A step of 128 rows, 128 keys and 128 + 128 columns: 2 128 128 256 / 1000
 * cycles. */
static const double step_s = 8388.608e-9;

static inline rg_kernel_device bare_device(bool warp_groups)
{
    rg_kernel_device d = {.name = "bare",
                          .units = 100,
                          .hz = 1e9,
                          .memory_rate = 1e30,
                          .l2_rate = 1e30,
                          .exp_per_cycle = 16,
                          .shared_bytes_per_cycle = 1e30,
                          .fine_tiles = warp_groups};
    d.peak[RG_BF16] = 1e14;
    double *c = d.c[RG_KG_PREFILL];
    c[RG_PRE_COMPUTE] = c[RG_PRE_IO] = c[RG_PRE_FUSED] = c[RG_PRE_ALONE] = 1.0;
    c[RG_PRE_SHORT] = 0.5;
    memcpy(d.c[RG_KG_ENCODER], c, sizeof d.c[RG_KG_ENCODER]);
    d.c[RG_KG_DECODE][RG_DEC_MEMORY] = d.c[RG_KG_DECODE][RG_DEC_VECTOR_MEMORY] = 1.0;
    d.c[RG_KG_DECODE][RG_DEC_OVERLAP] = 1.0;
    return d;
}

static inline rg_format format_of(const char *name)
{
    rg_format out;
    rg_err err;
    assert_ok(rg_format_parse(name, RG_NOWHERE, &out, &err));
    return out;
}

static inline double seconds_of(const rg_kernel_device *device, const rg_op *op)
{
    rg_kernel_time t;
    rg_err err;
    assert_ok(rg_kernel_op_time(device, op, &t, &err));
    return t.total.v;
}

#endif

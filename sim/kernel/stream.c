/* kernel/stream.c: time of kernels that move bytes: norms, rotary embedding, activations, casts,
 * gathers of rows, recurrences, sampling.
 *
 *   t = kernels start / f + max(missed / (eta_m W) + hit / W_L2, flops / F_vector)
 *
 * What the kernel before has just written lies in L2 when it fits there.
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "kernel/device.h"

rg_status rg_kernel_stream(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                           rg_err *err)
{
    (void)err;
    const double *c = device->c[RG_KG_STREAM];
    const double kernels = op->u.stream.kernels > 0 ? (double)op->u.stream.kernels : 1.0;
    const double bytes = rg_op_bytes(op).v, weights = op->weight_bytes.v;
    const double hit_ratio =
        rg_kernel_hit_ratio(bytes - weights, c[RG_STREAM_SHARE] * device->l2_room);
    const double hit = hit_ratio * (bytes - weights), missed = bytes - hit;
    const double l2_rate = fmin(device->l2_rate, c[RG_STREAM_L2] * device->units * device->hz);
    out->fixed = kernels * c[RG_STREAM_START] / device->hz;
    out->memory = missed / (c[RG_STREAM_MEMORY] * device->memory_rate);
    out->l2 = hit / fmax(l2_rate, c[RG_STREAM_MEMORY] * device->memory_rate);
    out->compute = device->vector_peak > 0.0 ? op->flops.v / device->vector_peak : 0.0;
    out->total = out->fixed + fmax(out->memory + out->l2, out->compute);
    out->choice = "stream";
    return RG_OK;
}

/* kernel/mla.c: time of decode with multi-head latent attention in its absorbed form.
 *
 * All heads of a rank attend to one latent cache entry of 512 + 64 elements a token (DeepSeek-AI,
 * "DeepSeek-V2", 2024, section 2.1), so 64 head rows fill the rows of a matrix instruction. A work
 * unit is (request, 64 heads, split of the cache); a step is 64 tokens (cycles):
 *
 *   step = 2 64 64 (2 latent + rope) N f / (eta_c F) + 64 64 / 16 softmax
 *   t    = start / f + passes (queries + results) / W + join(waves (cta + tiles step) / f,
 *          cache / W; p) + [split] merge / f
 */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "kernel/device.h"

enum { ROWS = 64, TOKENS = 64 };

rg_status rg_kernel_mla(const rg_kernel_device *device, const rg_op *op, rg_kernel_parts *out,
                        rg_err *err)
{
    const rg_op_attention *a = &op->u.attention;
    const double *c = device->c[RG_KG_MLA_DECODE];
    double peak;
    RG_TRY(rg_kernel_peak(device, rg_dtype_bits(a->math) < 16.0 ? RG_FP8 : a->math, &peak, err));
    const double units = device->units, f = device->hz, batch = (double)a->batch;
    const double span =
        rg_attention_span((double)a->q_tokens, a->kv_tokens, (double)a->window, (double)a->sinks);
    const double blocks = rg_kernel_up((double)a->heads * (double)a->q_tokens / ROWS);
    const double splits = fmax(
        1.0, fmin(rg_kernel_down(units / (batch * blocks)), rg_kernel_up(span / (2.0 * TOKENS))));
    const double width = 2.0 * (double)a->latent + (double)a->rope_dim;
    const double step = 2.0 * ROWS * TOKENS * width * units * f / (c[RG_MLA_COMPUTE] * peak) +
                        (double)ROWS * TOKENS / device->exp_per_cycle * c[RG_MLA_SOFTMAX];
    const double waves = fmax(1.0, batch * blocks * splits / units);
    const double sm =
        waves * (c[RG_MLA_CTA] + (rg_kernel_up(span / splits / TOKENS) - 1.0) * step) / f;
    const double cache = op->kv_read_bytes.v;
    const double hit_ratio = device->options.cold_l2
                                 ? 0.0
                                 : rg_kernel_hit_ratio(cache, c[RG_MLA_L2_SHARE] * device->l2_room);
    const double memory = cache * (1.0 - hit_ratio) / (c[RG_MLA_MEMORY] * device->memory_rate);
    const double l2 = cache * hit_ratio / device->l2_rate;
    const double moved = c[RG_MLA_PASSES] *
                         (op->input_bytes.v + op->output_bytes.v + op->kv_write_bytes.v) /
                         device->memory_rate;
    out->fixed = (c[RG_MLA_START] + (splits > 1.0 ? c[RG_MLA_MERGE] : 0.0)) / f;
    out->compute = sm;
    out->memory = memory + moved;
    out->l2 = l2;
    out->total = out->fixed + moved + rg_kernel_join(sm, memory + l2, c[RG_MLA_OVERLAP]);
    out->choice = splits > 1.0 ? "latent, split" : "latent";
    return RG_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "step/estimate.h"

#include "hw/power.h"
#include "roofline/roofline.h"

rg_pass rg_load_decode_pass(int64_t batch, double context_tokens)
{
    return (rg_pass){.decodes = batch,
                     .tokens_per_decode = 1,
                     .decode_kv_tokens = (double)batch * context_tokens,
                     .decode_kv_max = context_tokens};
}

int64_t rg_parallel_devices(const rg_parallel *parallel)
{
    return parallel->tp * parallel->pp * parallel->cp * parallel->dp;
}

/* One prompt alone, chunk by chunk; time, flops and bytes add up in out. */
static rg_status prefill_alone(rg_step_context *step, const rg_engine *engine, int64_t tokens,
                               rg_step_time *out, rg_err *err)
{
    const int64_t budget = engine->max_batched_tokens;
    *out = (rg_step_time){0};
    for (int64_t done = 0; done < tokens;) {
        int64_t size = tokens - done;
        if (budget > 0 && size > budget)
            size = budget;
        const rg_chunk chunk = {.new_tokens = size, .past_tokens = done};
        const rg_pass pass = {.chunks = &chunk, .chunk_count = 1};
        rg_step_time time;
        RG_TRY(rg_step_time_of(step, &pass, &time, err));
        out->total = rg_s_add(out->total, time.total);
        out->compute = rg_s_add(out->compute, time.compute);
        out->communication = rg_s_add(out->communication, time.communication);
        out->bubble = rg_s_add(out->bubble, time.bubble);
        out->host = rg_s_add(out->host, time.host);
        out->flops.v += time.flops.v;
        out->bytes = rg_b_add(out->bytes, time.bytes);
        done += size;
    }
    return RG_OK;
}

static rg_status utilisation(const rg_accel *accel, const rg_formats *formats,
                             const rg_parallel *parallel, int64_t batch, rg_estimate *out,
                             rg_err *err)
{
    rg_flop_rate peak;
    rg_byte_rate bandwidth;
    RG_TRY(rg_roof_peak(accel, formats->math, false, &peak, err));
    RG_TRY(rg_roof_bandwidth(accel, accel->level_count - 1, &bandwidth, err));
    const double ranks = (double)out->devices / (double)parallel->dp;
    out->mfu_prefill_ratio = out->prefill.flops.v / (out->prefill.total.v * peak.v * ranks);
    out->mfu_decode_ratio = out->decode.flops.v / (out->decode.total.v * peak.v * ranks);
    out->mbu_decode_ratio = out->decode.bytes.v / (out->decode.total.v * bandwidth.v);
    if (!accel->tdp.known)
        return RG_OK;
    rg_watts each;
    RG_TRY(rg_accel_power(accel, out->mfu_decode_ratio, out->mbu_decode_ratio, &each, err));
    out->energy_per_output_token = RG_J(each.v * ranks * out->decode.total.v / (double)batch);
    return RG_OK;
}

rg_status rg_estimate_load(rg_step_context *step, const rg_cluster *cluster,
                           const rg_formats *formats, const rg_parallel *parallel,
                           const rg_engine *engine, const rg_load *load, rg_estimate *out,
                           rg_err *err)
{
    *out = (rg_estimate){0};
    if (load->batch < 1 || load->context_tokens < 1 || load->output_tokens < 1)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "a load of %lld sequences with %lld and %lld tokens; each must be 1 or more",
                       (long long)load->batch, (long long)load->context_tokens,
                       (long long)load->output_tokens);
    const double context = (double)load->context_tokens, outputs = (double)load->output_tokens;
    const double batch = (double)load->batch, dp = (double)parallel->dp;
    out->devices = rg_parallel_devices(parallel);
    const rg_pass decode = rg_load_decode_pass(load->batch, context);
    const rg_pass alone = rg_load_decode_pass(1, context);
    rg_step_time single;
    RG_TRY(prefill_alone(step, engine, load->context_tokens, &out->prefill, err));
    RG_TRY(rg_step_time_of(step, &decode, &out->decode, err));
    RG_TRY(rg_step_time_of(step, &alone, &single, err));
    RG_TRY(rg_step_memory_of(step, load->batch, context + outputs, &out->memory, err));

    const double ttft = out->prefill.total.v, tpot = out->decode.total.v;
    out->ttft = RG_S(ttft);
    out->tpot_excl_first = RG_S(tpot);
    out->tpot_incl_first = RG_S((ttft + (outputs - 1.0) * tpot) / outputs);
    out->single_stream_tokens_per_s = 1.0 / single.total.v;
    out->output_tokens_per_s = dp * batch / tpot;
    out->total_tokens_per_s = dp * batch * (context + outputs) / (batch * ttft + outputs * tpot);
    out->fits = out->memory.max_sequences >= load->batch;
    return utilisation(cluster->accel, formats, parallel, load->batch, out, err);
}

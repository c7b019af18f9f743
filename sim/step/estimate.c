// SPDX-License-Identifier: Apache-2.0
#include "step/estimate.h"

#include "hw/power.h"
#include "roofline/roofline.h"

enum { MOST_BESIDE = 1024 }; /* prompts in one pass */

rg_pass rg_load_decode_pass(int64_t batch, double context_tokens)
{
    return (rg_pass){.decodes = batch,
                     .tokens_per_decode = 1,
                     .decode_kv_tokens = (double)batch * context_tokens,
                     .decode_kv_max = context_tokens};
}

double rg_load_context(const rg_load *load)
{
    return (double)load->context_tokens + 0.5 * (double)load->output_tokens;
}

int64_t rg_parallel_devices(const rg_parallel *parallel)
{
    return parallel->tp * parallel->pp * parallel->cp * parallel->dp;
}

/* Equal prompts side by side, chunk by chunk; time, flops and bytes add up in out. */
static rg_status prefill_of(rg_step_context *step, const rg_engine *engine, int64_t tokens,
                            int64_t prompts, rg_step_time *out, rg_err *err)
{
    rg_chunk chunks[MOST_BESIDE];
    const int64_t budget = engine->max_batched_tokens;
    *out = (rg_step_time){0};
    for (int64_t done = 0; done < tokens;) {
        int64_t size = tokens - done;
        if (budget > 0 && size > budget)
            size = budget;
        for (int64_t i = 0; i < prompts; i++)
            chunks[i] = (rg_chunk){.new_tokens = size, .past_tokens = done};
        const rg_pass pass = {.chunks = chunks, .chunk_count = (int)prompts};
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

/* Ranks that data-parallel attention deals sequences out to; 1 when heads are split instead. */
static int64_t attention_ranks(const rg_parallel *parallel)
{
    const int64_t ranks = parallel->attention_dp ? parallel->tp : 1;
    return ranks < MOST_BESIDE ? ranks : MOST_BESIDE;
}

/* What the passes of a load do and take. A step counts the busiest rank's flops for all, so flops
 * of a sequence come from a pass that gives each rank of attention equally many. */
static rg_status measure(rg_step_context *step, const rg_engine *engine,
                         const rg_parallel *parallel, const rg_load *load, rg_estimate *out,
                         rg_err *err)
{
    const int64_t ranks = attention_ranks(parallel);
    const int64_t beside = load->batch < ranks ? load->batch : ranks;
    const int64_t even = (load->batch + ranks - 1) / ranks * ranks;
    const rg_pass decode = rg_load_decode_pass(load->batch, rg_load_context(load));
    const rg_pass full = rg_load_decode_pass(even, rg_load_context(load));
    rg_step_time together, whole;
    RG_TRY(prefill_of(step, engine, load->context_tokens, 1, &out->prefill, err));
    RG_TRY(rg_step_time_of(step, &decode, &out->decode, err));
    out->prefill_each = out->prefill.total;
    if (ranks == 1)
        return RG_OK;
    RG_TRY(prefill_of(step, engine, load->context_tokens, beside, &together, err));
    RG_TRY(prefill_of(step, engine, load->context_tokens, ranks, &whole, err));
    out->prefill_each = RG_S(together.total.v / (double)beside);
    out->prefill.flops = RG_F(whole.flops.v / (double)ranks);
    RG_TRY(rg_step_time_of(step, &full, &whole, err));
    out->decode.flops = RG_F(whole.flops.v * (double)load->batch / (double)even);
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
    out->mfu_prefill_ratio = out->prefill.flops.v / (out->prefill_each.v * peak.v * ranks);
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
    const double prompt = (double)load->context_tokens, outputs = (double)load->output_tokens;
    const double context = rg_load_context(load);
    const double batch = (double)load->batch, dp = (double)parallel->dp;
    out->devices = rg_parallel_devices(parallel);
    const rg_pass alone = rg_load_decode_pass(1, context);
    rg_step_time single;
    RG_TRY(measure(step, engine, parallel, load, out, err));
    RG_TRY(rg_step_time_of(step, &alone, &single, err));
    RG_TRY(rg_step_memory_of(step, load->batch, prompt + outputs, &out->memory, err));

    const double ttft = out->prefill.total.v, tpot = out->decode.total.v;
    out->ttft = RG_S(ttft);
    out->tpot_excl_first = RG_S(tpot);
    out->tpot_incl_first = RG_S((ttft + (outputs - 1.0) * tpot) / outputs);
    out->single_stream_tokens_per_s = 1.0 / single.total.v;
    out->output_tokens_per_s = dp * batch / tpot;
    out->total_tokens_per_s =
        dp * batch * (prompt + outputs) / (batch * out->prefill_each.v + outputs * tpot);
    out->fits = out->memory.max_sequences >= load->batch;
    return utilisation(cluster->accel, formats, parallel, load->batch, out, err);
}

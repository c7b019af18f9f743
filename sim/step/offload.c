/* step/offload.c: weights and KV in host memory, KV sent between pools, and life without a cache.
 */
// SPDX-License-Identifier: Apache-2.0
#include "step/offload.h"

#include <math.h>

#include "step/inner.h"

rg_status rg_offload_time_of(rg_step_context *x, const rg_pass *pass, const rg_offload *offload,
                             rg_offload_time *out, rg_err *err)
{
    *out = (rg_offload_time){0};
    if (!(offload->weight_ratio >= 0 && offload->weight_ratio <= 1) ||
        !(offload->kv_ratio >= 0 && offload->kv_ratio <= 1))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "shares of weights (%g) and cache (%g) in host memory must be 0 to 1",
                       offload->weight_ratio, offload->kv_ratio);
    const rg_figure *link = &x->cluster->host_link;
    const bool moves = offload->weight_ratio > 0 || offload->kv_ratio > 0;
    if (moves && (!link->known || !(link->value > 0)))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cluster '%s' gives no host link; add host: link: to its file",
                       x->cluster->name);
    RG_TRY(rg_step_time_of(x, pass, &out->step, err));
    const stage *s = &x->stages[0];
    const double weights = rg_shard_weight_bytes(x->model, &x->formats, &s->shard).v;
    const double sequences = (double)(pass->decodes + pass->chunk_count);
    double past = pass->decode_kv_tokens;
    for (int i = 0; i < pass->chunk_count; i++)
        past += (double)pass->chunks[i].past_tokens;
    const double mean = sequences > 0 ? past / sequences : 0;
    const double kv = sequences / (double)x->attention_ranks *
                      rg_shard_kv_bytes(x->model, &x->formats, &s->shard, mean).v;
    out->weight_bytes = RG_B(offload->weight_ratio * weights);
    out->kv_bytes = RG_B(offload->kv_ratio * kv);
    out->freed = out->weight_bytes;
    const double stream = moves ? (out->weight_bytes.v + out->kv_bytes.v) / link->value : 0;
    out->stream = RG_S(stream);
    const double step = out->step.total.v;
    out->link_bound = stream > step;
    const double layers = (double)s->shard.layer_count;
    out->step.total = RG_S(offload->serial ? step + stream : fmax(step, stream) + stream / layers);
    return RG_OK;
}

rg_status rg_kv_transfer_of(rg_step_context *x, double tokens, int64_t to_ranks, bool within,
                            bool by_layer, rg_kv_transfer *out, rg_err *err)
{
    *out = (rg_kv_transfer){.within_domain = within};
    if (!(tokens >= 0) || to_ranks < 1)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "a cache of %g tokens to %lld ranks", tokens,
                       (long long)to_ranks);
    const rg_fabric *fabric = within ? &x->cluster->scale_up : &x->cluster->scale_out;
    if (!fabric->rate_per_direction.known || !(fabric->rate_per_direction.value > 0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "cluster '%s' gives no rate of its %s",
                       x->cluster->name, within ? "scale-up fabric" : "network");
    rg_bytes all = RG_B(0);
    int64_t layers = 0;
    for (int i = 0; i < x->stage_count; i++) {
        rg_shard whole = x->stages[i].shard;
        whole.tp = whole.attention_tp = whole.cp = 1;
        all = rg_b_add(all, rg_shard_kv_bytes(x->model, &x->formats, &whole, tokens));
        all = rg_b_add(all, rg_shard_state_bytes(x->model, &whole));
        layers += whole.layer_count;
    }
    const int64_t from = x->parallel.tp * x->parallel.cp / x->attention_ranks;
    const double links = (double)(from < to_ranks ? from : to_ranks);
    const rg_coll_constants c = rg_coll_constants_of(x->cluster);
    const double ratio = x->options.ideal ? 1 : within ? c.direct_ratio : c.net_ratio;
    const double latency = x->options.ideal ? 0 : 1e-6 * (c.base_us + c.net_simple_us);
    out->bytes = all;
    out->rate = RG_BPS(links * fabric->rate_per_direction.value * ratio);
    out->time = RG_S(latency + all.v / out->rate.v);
    out->visible = by_layer ? RG_S(latency + all.v / (double)layers / out->rate.v) : out->time;
    return RG_OK;
}

rg_status rg_no_cache_of(rg_arena *arena, rg_step_context *x, int64_t batch, int64_t tokens,
                         rg_no_cache *out, rg_err *err)
{
    *out = (rg_no_cache){0};
    if (batch < 1 || tokens < 1 || batch > 1 << 20)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "%lld sequences of %lld tokens",
                       (long long)batch, (long long)tokens);
    rg_chunk *chunks = RG_NEW(arena, rg_chunk, batch, err);
    if (chunks == NULL)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < batch; i++)
        chunks[i].new_tokens = tokens + 1;
    const rg_pass again = {.chunks = chunks, .chunk_count = (int)batch};
    const rg_pass cached = {.decodes = batch,
                            .decode_kv_tokens = (double)(batch * tokens),
                            .decode_kv_max = (double)tokens};
    rg_step_time a, b;
    RG_TRY(rg_step_time_of(x, &cached, &a, err));
    RG_TRY(rg_step_time_of(x, &again, &b, err));
    out->cached = a.total;
    out->uncached = b.total;
    out->ratio = b.total.v / a.total.v;
    out->cached_flops = a.flops;
    out->uncached_flops = b.flops;
    return RG_OK;
}

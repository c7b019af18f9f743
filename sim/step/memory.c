/* step/memory.c: what lies in the memory of the fullest rank, and how many sequences fit. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "step/inner.h"

/* What the engine may fill with weights, activations, reserve and KV. */
static double usable_bytes(const rg_engine *e, const rg_step_memory *m)
{
    const double u = e->memory_utilisation, beside = m->activations.v + m->reserve.v;
    switch (e->memory_share_of) {
    case RG_SHARE_TOTAL:
        break;
    case RG_SHARE_STATIC: /* weights and KV in the share, the rest beside them */
        return fmin(u * m->capacity.v + beside, m->capacity.v);
    case RG_SHARE_FREE:
        return u * m->capacity.v + (1 - u) * fmin(m->weights.v + beside, m->capacity.v);
    }
    return u * m->capacity.v;
}

/** Memory of one stage's rank beside KV and state of sequences. */
static rg_step_memory stage_memory(const rg_step_context *x, const stage *s, double tokens_each)
{
    const rg_engine *e = &x->engine;
    rg_step_memory m = {.capacity = RG_B(rg_accel_memory_bytes(x->cluster->accel))};
    m.weights = rg_shard_weight_bytes(x->model, &x->formats, &s->shard);
    if (x->parallel.expert_replicas > 0 && s->moes > 0) {
        int64_t layers = 0, experts = 0, inter = 0, matrices = 0;
        for (int64_t i = 0; i < s->shard.layer_count; i++) {
            const rg_layer *layer = &x->model->layers[s->shard.first_layer + i];
            if (layer->ffn != RG_FFN_MOE)
                continue;
            layers++;
            experts = layer->experts;
            inter = layer->inter;
            matrices = layer->gated ? 3 : 2;
        }
        const rg_format *f =
            x->formats.expert.name[0] != 0 ? &x->formats.expert : &x->formats.weight;
        const double ep = (double)x->parallel.ep;
        const double copies = (double)(experts + x->parallel.expert_replicas) / ep -
                              ceil((double)experts / ep); /* beyond those of the plan */
        m.weights.v += copies * (double)layers *
                       rg_format_bytes(f, (double)(matrices * inter * s->moe_width)).v;
    }
    int64_t widest = e->max_batched_tokens;
    const int64_t longest = (int64_t)fmin(tokens_each > 0 ? tokens_each : 1, 1e12);
    if (widest > 1 << 20) /* an engine without a limit takes a prompt at once */
        widest = longest;
    const int64_t rows = e->max_sequences < widest ? e->max_sequences : widest;
    const int64_t logit_rows =
        rows < 256 ? rows : 256; /* of prompts only the last token is drawn */
    m.activations = rg_shard_activation_bytes(x->model, &x->formats, &s->shard, widest,
                                              s->shard.head ? logit_rows : 0);
    m.reserve = RG_B(e->reserve_bytes);
    m.usable = RG_B(usable_bytes(e, &m));
    return m;
}

rg_status rg_step_memory_of(rg_step_context *x, int64_t sequences, double tokens_each,
                            rg_step_memory *out, rg_err *err)
{
    if (sequences < 0 || !(tokens_each >= 0) || !isfinite(tokens_each))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "%lld sequences of %g tokens",
                       (long long)sequences, tokens_each);
    const int64_t page = x->formats.page_tokens > 0 ? x->formats.page_tokens : 1;
    const double pages = ceil(tokens_each / (double)page) * (double)page;
    bool first = true;
    int64_t least = INT64_MAX;
    for (int i = 0; i < x->stage_count; i++) {
        const stage *s = &x->stages[i], *shape = &x->stages[s->same_as];
        rg_step_memory m = stage_memory(x, shape, tokens_each);
        const double kv = rg_shard_kv_bytes(x->model, &x->formats, &shape->shard, pages).v;
        const double next =
            rg_shard_kv_bytes(x->model, &x->formats, &shape->shard, pages + (double)page).v;
        const double state = rg_shard_state_bytes(x->model, &shape->shard).v;
        /* sequences are dealt out over the ranks of data-parallel attention */
        const double dealt = (double)x->attention_ranks;
        const double here = ceil((double)sequences / dealt);
        m.kv = RG_B(here * kv);
        m.state = RG_B(here * state);
        m.kv_per_token = RG_B((next - kv) / (double)page);
        const double fixed = m.weights.v + m.activations.v + m.reserve.v;
        m.total = RG_B(fixed + m.kv.v + m.state.v);
        const double left = m.usable.v - fixed, each = kv + state;
        double fit = 0;
        if (left > 0)
            fit = each > 0 ? floor(left / each) * dealt : 1e15;
        m.max_sequences = (int64_t)fmin(fit, 1e15);
        least = m.max_sequences < least ? m.max_sequences : least;
        if (first || m.total.v > out->total.v)
            *out = m;
        first = false;
    }
    out->max_sequences = least;
    return RG_OK;
}

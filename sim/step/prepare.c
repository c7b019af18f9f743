/* step/prepare.c: an arrangement resolved once: its stages, kernels, links and hops. */
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "step/inner.h"

static bool same_stage(const rg_model *model, const rg_shard *a, const rg_shard *b)
{
    if (a->layer_count != b->layer_count || a->embedding != b->embedding || a->head != b->head)
        return false;
    for (int64_t i = 0; i < a->layer_count; i++)
        if (model->layers[a->first_layer + i].same_as != model->layers[b->first_layer + i].same_as)
            return false;
    return true;
}

static rg_status prepare_stages(rg_arena *arena, rg_step_context *x, rg_err *err)
{
    const rg_parallel *p = &x->parallel;
    x->stage_count = (int)p->pp;
    x->stages = RG_NEW(arena, stage, p->pp, err);
    if (x->stages == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < x->stage_count; i++) {
        stage *s = &x->stages[i];
        s->shard = (rg_shard){.tp = p->tp,
                              .attention_tp = p->attention_dp ? 1 : p->tp,
                              .ep = p->ep,
                              .expert_replicas = p->expert_replicas,
                              .ep_groups = p->ep > p->tp ? p->ep / p->tp : 1,
                              .cp = p->cp,
                              .embedding = i == 0,
                              .head = i == x->stage_count - 1};
        rg_step_stage_layers(x->model->layer_count, p->pp, i, &s->shard.first_layer,
                             &s->shard.layer_count);
        s->same_as = i;
        for (int k = 0; k < i && s->same_as == i; k++)
            if (same_stage(x->model, &x->stages[k].shard, &s->shard))
                s->same_as = k;
        if (s->same_as != i)
            continue;
        RG_TRY(rg_step_stage_prepare(arena, x, s, err));
    }
    return RG_OK;
}

/** The slowest of the ranks that pass activations on from stage index, found with a message large
 * enough that rates count and small enough that latencies do. */
static rg_status slowest_hop(const rg_step_context *x, int64_t index, stage_hop *out, rg_err *err)
{
    enum { MOST_TRIED = 64 }; /* wider stages fill whole domains: their ranks lie alike */
    const int64_t width = x->parallel.tp * x->parallel.cp;
    *out = (stage_hop){.time_s = -1, .count = 1};
    for (int64_t rank = 0; rank < width && rank < MOST_TRIED; rank++) {
        const rg_coll_query query = {.op = RG_COLL_SEND_RECV,
                                     .ranks = 2,
                                     .first = index * width + rank,
                                     .stride = width,
                                     .bytes = RG_B(1 << 20),
                                     .library = RG_LIB_NCCL};
        rg_coll_result r;
        RG_TRY(rg_coll_time(x->coll, &query, &r, err));
        if (r.time.v <= out->time_s)
            continue;
        out->time_s = r.time.v;
        out->first = query.first;
    }
    return RG_OK;
}

/** Hops over alike links are kept as one kind. */
static rg_status prepare_hops(rg_step_context *x, rg_err *err)
{
    for (int64_t i = 0; i + 1 < x->parallel.pp; i++) {
        stage_hop hop;
        RG_TRY(slowest_hop(x, i, &hop, err));
        int kind = 0;
        while (kind < x->hop_kinds && x->hops[kind].time_s != hop.time_s)
            kind++;
        if (kind < x->hop_kinds)
            x->hops[kind].count++;
        else if (kind < MOST_HOP_KINDS)
            x->hops[x->hop_kinds++] = hop;
        else
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE,
                           "hops between stages over more than %d kinds of links", MOST_HOP_KINDS);
    }
    return RG_OK;
}

static bool same_options(const rg_kernel_options *a, const rg_kernel_options *b)
{
    return a->ideal == b->ideal && a->sustained == b->sustained && a->cold_l2 == b->cold_l2 &&
           a->no_quantise == b->no_quantise && a->core_attention == b->core_attention &&
           a->attention == b->attention && a->experts == b->experts &&
           a->constants_from == b->constants_from;
}

static rg_status kernel_device(rg_arena *arena, rg_step_shared *shared, const rg_accel *accel,
                               const rg_kernel_options *options, rg_kernel_device **out,
                               rg_err *err)
{
    for (int i = 0; shared != NULL && i < shared->count; i++)
        if (shared->accel[i] == accel && same_options(&shared->options[i], options)) {
            *out = shared->device[i];
            return RG_OK;
        }
    RG_TRY(rg_kernel_prepare(arena, accel, options, out, err));
    if (shared != NULL && shared->count < RG_STEP_SHARED) {
        shared->accel[shared->count] = accel;
        shared->options[shared->count] = *options;
        shared->device[shared->count++] = *out;
    }
    return RG_OK;
}

rg_status rg_step_prepare(rg_arena *arena, const rg_cluster *cluster, const rg_model *model,
                          const rg_formats *formats, const rg_parallel *parallel,
                          const rg_engine *engine, const rg_kernel_options *options,
                          rg_step_context **out, rg_err *err)
{
    return rg_step_prepare_shared(arena, NULL, cluster, model, formats, parallel, engine, options,
                                  out, err);
}

rg_status rg_step_prepare_shared(rg_arena *arena, rg_step_shared *shared, const rg_cluster *cluster,
                                 const rg_model *model, const rg_formats *formats,
                                 const rg_parallel *parallel, const rg_engine *engine,
                                 const rg_kernel_options *options, rg_step_context **out,
                                 rg_err *err)
{
    rg_step_context *x = RG_NEW(arena, rg_step_context, 1, err);
    if (x == NULL)
        return RG_ERR_LIMIT;
    x->cluster = cluster;
    x->model = model;
    x->formats = *formats;
    x->parallel = *parallel;
    x->engine = *engine;
    if (options != NULL)
        x->options = *options;
    RG_TRY(rg_step_check(cluster, model, &x->parallel, err));
    const rg_parallel *p = &x->parallel;
    x->attention_ranks = p->attention_dp ? p->tp : 1;
    x->expert_ranks = p->ep;
    x->exchange = p->ep > 1 && (p->attention_dp || p->ep > p->tp);
    x->dispatch_bytes = rg_dtype_bits(formats->act) / 8.0;
    if (rg_dtype_bits(formats->math) < 16) /* sent as the experts multiply, with a scale per 128 */
        x->dispatch_bytes = rg_dtype_bits(formats->math) / 8.0 + 4.0 / 128;
    RG_TRY(rg_step_expert_balance(arena, x, err));
    x->options.experts = engine->experts;
    if (x->options.attention == RG_ATTENTION_AUTO)
        x->options.attention = x->engine.attention;
    if (x->engine.quantises && !x->options.ideal) {
        x->options.no_quantise = true;
        x->quantise_rate =
            0.8 * rg_accel_level_bandwidth(cluster->accel, rg_accel_memory(cluster->accel));
    }
    RG_TRY(kernel_device(arena, shared, cluster->accel, &x->options, &x->device, err));
    RG_TRY(rg_coll_prepare(arena, cluster, NULL, &x->coll, err));
    RG_TRY(prepare_stages(arena, x, err));
    RG_TRY(prepare_hops(x, err));
    *out = x;
    return RG_OK;
}

const rg_kernel_device *rg_step_kernels(const rg_step_context *context)
{
    return context->device;
}

/* step/train.c: time, memory and utilisation of one training step. */
// SPDX-License-Identifier: Apache-2.0
#include "step/train.h"

#include <math.h>
#include <string.h>

#include "step/inner.h"

const char *rg_recompute_name(rg_recompute recompute)
{
    static const char *const names[] = {"none", "selective", "full"};
    return names[recompute];
}

rg_train rg_train_defaults(void)
{
    return (rg_train){.sequence_tokens = 4096,
                      .micro_batch = 1,
                      .global_batch = 1,
                      .zero = 1,
                      .recompute = RG_RECOMPUTE_SELECTIVE,
                      .weight_bytes = 2,
                      .gradient_bytes = 4,
                      .optimiser_bytes = 12,
                      .overlap_ratio = 0.5,
                      .gradient_algorithm = RG_ALG_AUTO};
}

/** Y = X W^T backwards: dX[m,k] = dY[m,n] W[n,k] and dW[n,k] = dY^T[n,m] X[m,k]. */
static rg_status product_backward(const rg_step_context *x, const rg_op *op, double *time,
                                  rg_err *err)
{
    rg_op back = *op;
    rg_kernel_time t;
    back.u.gemm.n = op->u.gemm.k;
    back.u.gemm.k = op->u.gemm.n;
    rg_op_fill_gemm(&back);
    RG_TRY(rg_step_op_time(x, &back, &t, err));
    *time = t.total.v;
    back.u.gemm.m = op->u.gemm.n;
    back.u.gemm.n = op->u.gemm.k;
    back.u.gemm.k = op->u.gemm.m;
    rg_op_fill_gemm(&back);
    RG_TRY(rg_step_op_time(x, &back, &t, err));
    *time += t.total.v;
    return RG_OK;
}

/** Backward over forward in time: attention does five products where forward does two
 * (FlashAttention-2, Dao 2023, section 3.1); experts two for one; everything else reads what it
 * wrote once more. */
static double backward_ratio(const rg_op *op)
{
    switch (op->kind) {
    case RG_OP_ATTN_PREFILL:
    case RG_OP_ATTN_DECODE:
    case RG_OP_MLA_PREFILL:
    case RG_OP_MLA_DECODE:
        return 2.5;
    default:
        return 2;
    }
}

static bool is_attention(const rg_op *op)
{
    return op->kind == RG_OP_ATTN_PREFILL || op->kind == RG_OP_MLA_PREFILL;
}

/** Whether a layer's forward operator runs once more before its backward. */
static bool runs_again(const rg_train *train, const rg_op *op)
{
    if (train->recompute == RG_RECOMPUTE_SELECTIVE)
        return is_attention(op) && !op->u.attention.fused;
    return train->recompute == RG_RECOMPUTE_FULL && strcmp(op->name, "lm_head") != 0;
}

/** Whole sequences of one micro-batch, all logits. */
static rg_status micro_batch_pass(rg_arena *arena, const rg_train *train, rg_pass *out, rg_err *err)
{
    rg_chunk *chunks = RG_NEW(arena, rg_chunk, train->micro_batch, err);
    if (chunks == NULL)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < train->micro_batch; i++)
        chunks[i].new_tokens = train->sequence_tokens;
    *out = (rg_pass){.chunks = chunks,
                     .chunk_count = (int)train->micro_batch,
                     .logit_rows = train->micro_batch * train->sequence_tokens};
    return RG_OK;
}

/** Flops of a micro-batch through the whole model, however it is split: forward and twice that
 * backward, attention's causal half alone (model), and what is computed again (again). Backward,
 * flash attention makes the scores anew, one product of its two (Dao 2023, section 3.1). */
static rg_status micro_batch_flops(rg_arena *arena, const rg_step_context *x, const rg_train *train,
                                   const rg_pass *pass, double *model, double *again, rg_err *err)
{
    const rg_shard whole = {.embedding = true, .head = true};
    rg_op_list list;
    RG_TRY(rg_pass_ops(arena, x->model, &x->formats, &whole, pass, &list, err));
    *model = *again = 0;
    for (int i = 0; i < list.count; i++) {
        const rg_op *op = &list.items[i];
        if (op->kind == RG_OP_SAMPLE)
            continue;
        const double forward = (double)op->count * op->flops.v;
        *model += 3 * forward;
        *again += runs_again(train, op) ? forward : 0;
        *again += is_attention(op) && op->u.attention.fused ? forward / 2 : 0;
    }
    return RG_OK;
}

/** Times of one micro-batch on the slowest stage. */
typedef struct micro {
    double forward, backward, recompute, communication, hop;
} micro;

static rg_status micro_batch_time(rg_arena *arena, rg_step_context *x, const rg_train *train,
                                  const rg_pass *pass, micro *out, rg_err *err)
{
    const rg_step_part *parts;
    int count;
    RG_TRY(rg_step_parts(arena, x, pass, &parts, &count, err));
    *out = (micro){0};
    for (int i = 0; i < count; i++) {
        const rg_step_part *p = &parts[i];
        const double n = (double)p->count, t = p->time.total.v;
        if (p->communication) {
            if (p->hop)
                out->hop = fmax(out->hop, t);               /* the slowest sets the pace */
            else if (strcmp(p->name, "gather logits") != 0) /* the loss is computed in parts */
                out->communication += 2 * n * t;            /* once forward, once backward */
            continue;
        }
        if (p->op.kind == RG_OP_SAMPLE) {
            out->forward += n * t; /* stands for softmax and loss */
            continue;
        }
        double back = backward_ratio(&p->op) * t;
        if (p->op.kind == RG_OP_GEMM)
            RG_TRY(product_backward(x, &p->op, &back, err));
        out->forward += n * t;
        out->backward += n * back;
        if (runs_again(train, &p->op))
            out->recompute += n * t;
    }
    return RG_OK;
}

/** Bytes of activations that one layer keeps of one token for its backward pass, 16-bit: inputs of
 * the two norms, their outputs, Q K V, the result of attention with its softmax sums, the FFN's
 * inside. With the GPT-3 layer (a gate-free FFN of 4 h, no dropout) this is 28 h, as in Korthikanti
 * et al. 2022, equation 1, less the 6 h of dropout masks and fp32 softmax statistics. shared: what
 * every tp rank keeps unless sequence-parallel. */
static void layer_activation(const rg_model *model, const rg_layer *layer, double *split,
                             double *shared)
{
    const double h = (double)model->hidden;
    *shared = 8 * h;
    *split = 0;
    if (layer->mixer >= RG_MIX_FULL && layer->mixer <= RG_MIX_MLA) {
        const double q = (double)(layer->heads * layer->head_dim);
        const double kv = (double)rg_layer_kv_elements(layer, false);
        *split += 2 * (2 * q + kv) + 4 * (double)layer->heads;
    } else if (layer->mixer != RG_MIX_NONE) {
        const double inner = (double)(layer->ssm_heads * layer->ssm_head_dim);
        *split += 2 * 4 * inner;
    }
    const double inside = layer->gated ? 3 : 2;
    if (layer->ffn == RG_FFN_DENSE)
        *split += 2 * inside * (double)layer->inter;
    if (layer->ffn == RG_FFN_MOE)
        *split +=
            2 * inside * ((double)(layer->top_k * layer->inter) + (double)layer->shared_inter) +
            4 * h * (double)layer->top_k;
}

static double activation_bytes(const rg_model *model, const rg_parallel *p, const rg_train *train,
                               const stage *s, int64_t micro_batches)
{
    const double tokens = (double)(train->micro_batch * train->sequence_tokens) / (double)p->cp;
    const double tp = (double)p->tp;
    double kept = 0, widest = 0;
    for (int64_t i = 0; i < s->shard.layer_count; i++) {
        const rg_layer *layer = &model->layers[s->shard.first_layer + i];
        double split, shared;
        layer_activation(model, layer, &split, &shared);
        const double whole = split / tp + shared / (p->sequence_parallel ? tp : 1);
        const double input = 2 * (double)model->hidden / (p->sequence_parallel ? tp : 1);
        kept += train->recompute == RG_RECOMPUTE_FULL ? input : whole;
        widest = fmax(widest, train->recompute == RG_RECOMPUTE_FULL ? whole : 0);
    }
    /* 1F1B: the first stage holds pp micro-batches at most; interleaving adds (pp - 1)/(pp v) of
     * them (Narayanan et al. 2021, section 2.2; Korthikanti et al. 2022, section 4.2.3) */
    const double pp = (double)p->pp, v = (double)p->pp_interleave;
    double held = fmin(pp, (double)micro_batches);
    if (v > 1)
        held *= 1 + (pp - 1) / (pp * v);
    const double logits = s->shard.head ? 4.0 * (double)model->vocab / tp * 2 : 0;
    return tokens * (kept * held + widest + logits);
}

/** Gradients and weights over the replicas, nothing hidden yet. ZeRO 0 reduces the gradients once a
 * step, ZeRO 1 to the rank that updates them, which then hands the weights out (Rajbhandari et al.
 * 2020, section 7). Ranks that keep only their part of the gradients (ZeRO 2) must reduce those of
 * every micro-batch, and ranks that keep only their part of the weights (ZeRO 3) gather them for
 * every forward and again for every backward pass: DeepSpeed's engine reduces outside of
 * accumulation boundaries too once gradients are split, FSDP2 by default as well. */
static rg_status replica_traffic(const rg_step_context *x, const rg_train *train, double parameters,
                                 double expert_parameters, int64_t micro_batches,
                                 rg_train_time *out, rg_err *err)
{
    const rg_parallel *p = &x->parallel;
    const int64_t stride = p->tp * p->cp * p->pp;
    /* experts split over dp are held by dp / (ep / tp) replicas only */
    const int64_t spread = p->ep > p->tp ? p->ep / p->tp : 1;
    const double dense = parameters - expert_parameters;
    const struct {
        double parameters;
        int64_t ranks;
    } groups[2] = {{spread > 1 ? dense : parameters, p->dp * p->cp},
                   {spread > 1 ? expert_parameters : 0, p->dp * p->cp / spread}};
    for (int i = 0; i < 2; i++) {
        if (groups[i].ranks < 2 || !(groups[i].parameters > 0))
            continue;
        rg_coll_query q = {.op = train->zero >= 1 ? RG_COLL_REDUCE_SCATTER : RG_COLL_ALL_REDUCE,
                           .algorithm = train->gradient_algorithm,
                           .ranks = groups[i].ranks,
                           .stride = i == 0 ? (p->cp > 1 ? p->tp : stride) : stride * spread,
                           .bytes = RG_B(groups[i].parameters * train->gradient_bytes),
                           .library = x->options.ideal ? RG_LIB_IDEAL : RG_LIB_NCCL};
        rg_coll_result r;
        if (i == 0)
            out->gradient_query = q;
        RG_TRY(rg_coll_time(x->coll, &q, &r, err));
        out->reduce.calls = train->zero >= 2 ? micro_batches : 1;
        out->reduce.bytes.v += q.bytes.v;
        out->reduce.each.v += r.time.v;
        if (train->zero < 1)
            continue;
        q.op = RG_COLL_ALL_GATHER;
        q.bytes = RG_B(groups[i].parameters * train->weight_bytes);
        RG_TRY(rg_coll_time(x->coll, &q, &r, err));
        out->gather.calls = train->zero >= 3 ? 2 * micro_batches : 1;
        out->gather.bytes.v += q.bytes.v;
        out->gather.each.v += r.time.v;
    }
    return RG_OK;
}

/** Share of some traffic that compute does not hide: what the overlap leaves, and never less than
 * what compute is too short for. */
static double exposed_ratio(double overlap, double traffic, double compute)
{
    return traffic > 0 ? 1 - fmin(overlap, compute / traffic) : 0;
}

/** Gradients flow behind the backward pass; weights behind forward, and with ZeRO 3 half of the
 * gathers behind backward too, where both share the links. */
static void hide_traffic(const rg_train *train, const micro *one, rg_train_time *out)
{
    const double reduce = out->reduce.each.v, gather = out->gather.each.v;
    const bool again = train->zero >= 3;
    const double behind_forward = exposed_ratio(train->overlap_ratio, gather, one->forward);
    const double behind_backward =
        exposed_ratio(train->overlap_ratio, reduce + (again ? gather : 0), one->backward);
    out->reduce.exposed = RG_S((double)out->reduce.calls * reduce * behind_backward);
    const double mean = again ? (behind_forward + behind_backward) / 2 : behind_forward;
    out->gather.exposed = RG_S((double)out->gather.calls * gather * mean);
    out->gradients = RG_S(out->reduce.exposed.v + out->gather.exposed.v);
}

static rg_status check(const rg_cluster *cluster, const rg_parallel *p, const rg_train *train,
                       int64_t *micro_batches, rg_err *err)
{
    (void)cluster;
    if (train->sequence_tokens < 1 || train->micro_batch < 1 || train->global_batch < 1)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "sequence, micro-batch and global batch must be 1 or more");
    const int64_t together = train->micro_batch * p->dp;
    if (train->global_batch % together != 0)
        return rg_fail(
            err, RG_ERR_MODEL, RG_NOWHERE,
            "a global batch of '%lld' sequences does not divide into micro-batches of %lld "
            "on %lld replicas; a multiple of %lld would do",
            (long long)train->global_batch, (long long)train->micro_batch, (long long)p->dp,
            (long long)together);
    *micro_batches = train->global_batch / together;
    if (p->pp_interleave > 1 && *micro_batches % p->pp != 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "interleaved stages need micro-batches (%lld) in multiples of pp %lld",
                       (long long)*micro_batches, (long long)p->pp);
    if (train->zero < 0 || train->zero > 3)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "zero stage %d is not 0 to 3", train->zero);
    if (train->zero >= 2 && p->pp > 1)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "zero stage %d with pp %lld would reduce gradients after every micro-batch; "
                       "engines refuse it, stage 1 would do",
                       train->zero, (long long)p->pp);
    return RG_OK;
}

/** Parameters on the rank that holds most, and those in experts. */
static void parameters_of(const rg_step_context *x, double *most, double *experts,
                          const stage **fullest)
{
    rg_formats bytes = x->formats;
    rg_err ignored = {0};
    rg_format one;
    *most = *experts = 0;
    if (rg_format_parse("bf16", RG_NOWHERE, &one, &ignored) != RG_OK)
        return;
    bytes.weight = bytes.head = one;
    bytes.expert = bytes.mixer = (rg_format){0};
    for (int i = 0; i < x->stage_count; i++) {
        const stage *s = &x->stages[i];
        const double n = rg_shard_weight_bytes(x->model, &bytes, &s->shard).v / 2;
        if (n <= *most)
            continue;
        *most = n;
        *fullest = s;
        *experts = 0;
        for (int64_t k = 0; k < s->shard.layer_count; k++) {
            const rg_layer *l = &x->model->layers[s->shard.first_layer + k];
            if (l->ffn != RG_FFN_MOE)
                continue;
            const double width = (double)(l->latent > 0 ? l->latent : x->model->hidden);
            const double ranks =
                (double)(x->parallel.ep > x->parallel.tp ? x->parallel.ep : x->parallel.tp);
            *experts += (l->gated ? 3 : 2) * width * (double)(l->inter * l->experts) / ranks;
        }
    }
}

rg_status rg_train_step(rg_arena *arena, const rg_cluster *cluster, const rg_model *model,
                        const rg_formats *formats, const rg_parallel *parallel,
                        const rg_train *train, const rg_kernel_options *options, rg_train_time *out,
                        rg_err *err)
{
    *out = (rg_train_time){0};
    rg_parallel p = *parallel;
    rg_kernel_options kernel = options != NULL ? *options : (rg_kernel_options){0};
    rg_engine engine = rg_engine_ideal();
    engine.cuda_graphs = false;
    kernel.core_attention = true; /* no cache is written */
    p.micro_batches = 1;          /* a pass is one micro-batch */
    rg_step_context *x;
    RG_TRY(rg_step_prepare(arena, cluster, model, formats, &p, &engine, &kernel, &x, err));
    p = x->parallel;
    int64_t m;
    RG_TRY(check(cluster, &p, train, &m, err));
    micro one;
    rg_pass pass;
    double flops, again;
    RG_TRY(micro_batch_pass(arena, train, &pass, err));
    RG_TRY(micro_batch_time(arena, x, train, &pass, &one, err));
    RG_TRY(micro_batch_flops(arena, x, train, &pass, &flops, &again, err));
    const double pp = (double)p.pp, v = (double)p.pp_interleave, n = (double)m;
    /* stage hops of interleaved chunks are v times as many (Narayanan et al. 2021, section 2.2) */
    const double hops = p.pp > 1 ? 2 * one.hop * v : 0;
    const double each = one.forward + one.backward + one.recompute + one.communication + hops;
    out->forward = RG_S(n * one.forward);
    out->backward = RG_S(n * one.backward);
    out->recompute = RG_S(n * one.recompute);
    out->communication = RG_S(n * (one.communication + hops));
    out->bubble = RG_S((pp - 1) / v * each);

    double parameters, experts;
    const stage *fullest = &x->stages[0];
    parameters_of(x, &parameters, &experts, &fullest);
    RG_TRY(replica_traffic(x, train, parameters, experts, m, out, err));
    hide_traffic(train, &one, out);
    const double replicas = (double)p.dp;
    const double updated = parameters / (train->zero >= 1 ? replicas : 1);
    const double state_bytes =
        train->gradient_bytes + 2 * train->optimiser_bytes + train->weight_bytes;
    const rg_memory_level *memory = rg_accel_memory(cluster->accel);
    const double bandwidth = rg_accel_level_bandwidth(cluster->accel, memory);
    if (!(bandwidth > 0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "'%s' gives no memory bandwidth",
                       cluster->accel->name);
    out->optimiser = RG_S(updated * state_bytes / ((kernel.ideal ? 1 : 0.8) * bandwidth));
    out->total = RG_S(n * each + out->bubble.v + out->gradients.v + out->optimiser.v);

    out->micro_batches = m;
    out->devices = p.tp * p.pp * p.cp * p.dp;
    out->parameters_per_device = parameters;
    const double tokens = (double)train->global_batch * (double)train->sequence_tokens;
    out->model_flops = RG_F(flops * n * replicas);
    const rg_peak *peak = rg_accel_peak(cluster->accel, formats->math);
    if (peak != NULL && peak->rate.known) {
        const double all = peak->rate.value * (double)out->devices * out->total.v;
        out->mfu_ratio = out->model_flops.v / all;
        out->hfu_ratio = (flops + again) / flops * out->mfu_ratio;
    }
    out->tokens_per_s = tokens / out->total.v;
    out->tokens_per_s_per_device = out->tokens_per_s / (double)out->devices;

    out->weights = RG_B(parameters * train->weight_bytes / (train->zero >= 3 ? replicas : 1));
    out->gradient_memory =
        RG_B(parameters * train->gradient_bytes / (train->zero >= 2 ? replicas : 1));
    out->optimiser_memory = RG_B(updated * train->optimiser_bytes);
    out->activations = RG_B(activation_bytes(model, &p, train, fullest, m));
    out->memory = RG_B(out->weights.v + out->gradient_memory.v + out->optimiser_memory.v +
                       out->activations.v);
    out->capacity = RG_B(rg_accel_memory_bytes(cluster->accel));
    out->fits = out->memory.v <= out->capacity.v;
    if (!isfinite(out->total.v))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "the training step has no finite time");
    return RG_OK;
}

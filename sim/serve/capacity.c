/* serve/capacity.c: KV blocks by the engine's own sum. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/capacity.h"

#include <math.h>

#define MIB (1024.0 * 1024.0)

/* What nvidia-smi lists and what the CUDA runtime gives as total differ: 24564 and 24217 MiB on an
 * RTX 4090 (PyTorch's "23.65 GiB"), 81559 and 81079 on an H100 (79.18 GiB), 97887 and 97250 on an
 * RTX PRO 6000 (94.97 GiB). A fixed part and a share describe all three within 170 MiB. */
static const double driver_fixed_bytes = 229 * MIB, driver_ratio = 0.0048;

/* Sampling in 16-bit logits (2 B), 32-bit copy (4), sorted values (4) and 64-bit indices (8), and
 * the sort's second buffer of both (12). Source: vLLM v1 sampler with PyTorch's top-p. */
static const double bytes_per_logit = 30;

/* CUDA graphs of the captured batch sizes, and libraries outside the allocator. Assumed: what vLLM
 * 0.19 left over on one RTX 4090 (2588 blocks of Llama-3.1-8B) is 0.33 GiB in all, of which such
 * logs give about 80 MiB to what is not tensors. */
static const double graph_bytes = 256 * MIB, context_bytes = 80 * MIB;

/* Communicator buffers of a group of ranks. Assumed: NCCL's channels and the engine's own
 * all-reduce buffers of 2 x 8 MiB and more. */
static const double group_bytes = 200 * MIB;

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Recurrent state of as many sequences as are wanted, up to half of what is left where the model
 * has a cache too. Assumed: engines that page state beside KV find their own balance; half of each
 * holds for sequences whose state and cache are alike. */
static void reserve_state(const rg_capacity_query *q, rg_capacity *c)
{
    const double each = rg_shard_state_bytes(q->model, q->shard).v;
    c->state_sequences = q->max_sequences;
    if (each <= 0 || c->kv_bytes <= 0)
        return;
    const double most = (c->block_bytes > 0 ? 0.5 : 1) * c->kv_bytes / each;
    if ((double)c->state_sequences > most)
        c->state_sequences = (int64_t)most;
    c->state_bytes = each * (double)c->state_sequences;
    c->kv_bytes -= c->state_bytes;
}

static void share_out(const rg_capacity_query *q, rg_capacity *c)
{
    const double there = c->device_bytes - c->driver_bytes;
    const double beside = c->activation_bytes + c->graph_bytes + c->context_bytes;
    const double left = there - c->weight_bytes - beside;
    switch (q->share_of) {
    case RG_SHARE_TOTAL:
        c->usable_bytes = q->utilisation * there;
        c->kv_bytes = c->usable_bytes - c->weight_bytes - beside;
        return;
    case RG_SHARE_STATIC:
        c->usable_bytes = q->utilisation * (there - c->context_bytes);
        c->kv_bytes = smaller(c->usable_bytes - c->weight_bytes, left);
        return;
    case RG_SHARE_FREE:
        c->usable_bytes = there;
        c->kv_bytes = q->utilisation * left;
        return;
    }
}

rg_capacity rg_capacity_of(const rg_capacity_query *q)
{
    rg_capacity c = {.device_bytes = q->device_bytes};
    if (c.device_bytes <= 0) {
        c.device_bytes = rg_accel_memory_bytes(q->accel);
        c.driver_bytes = driver_fixed_bytes + driver_ratio * c.device_bytes;
    }
    c.weight_bytes = rg_shard_weight_bytes(q->model, q->formats, q->shard).v + q->draft_bytes;
    const int64_t rows =
        q->max_sequences < q->max_batched_tokens ? q->max_sequences : q->max_batched_tokens;
    const double hidden = 2 * (double)q->max_batched_tokens * (double)q->model->hidden *
                          rg_dtype_bits(q->formats->act) / 8;
    const double logit = q->bytes_per_logit > 0 ? q->bytes_per_logit : bytes_per_logit;
    const double sampling = (double)rows * (double)q->model->vocab * logit + hidden;
    const double pass =
        rg_shard_activation_bytes(q->model, q->formats, q->shard, q->max_batched_tokens, 0).v;
    c.activation_bytes = q->shard->head ? greater(sampling, pass) : pass;
    c.graph_bytes = graph_bytes;
    c.context_bytes = context_bytes + (q->ranks > 1 ? group_bytes : 0);
    /* Ranks that split sequences keep a share of every block: whole pages of them all, shared out.
     */
    const double split = q->shard->cp > 1 ? (double)q->shard->cp : 1;
    c.block_bytes = rg_shard_kv_bytes_in(q->model, q->formats, q->shard, RG_KV_UNIFORM_PAGE,
                                         split * (double)q->block_tokens)
                        .v /
                    split;
    c.block_bytes += q->draft_token_bytes * (double)q->block_tokens;
    share_out(q, &c);
    reserve_state(q, &c);
    c.blocks = c.kv_bytes > 0 && c.block_bytes > 0 ? (int64_t)floor(c.kv_bytes / c.block_bytes) : 0;
    return c;
}

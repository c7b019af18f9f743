// SPDX-License-Identifier: Apache-2.0
#include "serve/deploy.h"

#include <string.h>

#include "net/coll.h"

bool rg_rules_follow_engine(rg_policy_kind policy)
{
    return policy == RG_POLICY_VLLM1 || policy == RG_POLICY_SGLANG ||
           policy == RG_POLICY_TRT_NO_EVICT || policy == RG_POLICY_TRT_MAX_UTILISATION ||
           policy == RG_POLICY_TRT_STATIC;
}

void rg_rules_for_device(const rg_engine *engine, const rg_accel *accel,
                         const rg_parallel *parallel, rg_engine_rules *rules)
{
    const double large = 70.0 * (1 << 30);
    if (!rg_rules_follow_engine(rules->policy))
        return;
    if (rules->policy != RG_POLICY_VLLM1) {
        rules->max_sequences = engine->max_sequences;
    } else if (rg_accel_memory_bytes(accel) >= large && strncmp(accel->name, "a100", 4) != 0) {
        rules->max_sequences = engine->max_sequences;
        rules->max_batched_tokens = engine->max_batched_tokens;
    }
    if (parallel->attention_dp && rules->policy != RG_POLICY_SGLANG) {
        rules->max_sequences *= parallel->tp;
        rules->max_batched_tokens *= parallel->tp;
    }
}

rg_status rg_replica_memory(const rg_replica_query *q, rg_engine_rules *rules, rg_capacity *out,
                            rg_err *err)
{
    const rg_parallel *p = q->parallel;
    rg_shard shard = {.tp = p->tp,
                      .attention_tp = p->attention_dp ? 1 : p->tp,
                      .ep = p->ep,
                      .cp = p->cp,
                      .embedding = true,
                      .head = true};
    if (p->pp > 1)
        shard.layer_count = (q->model->layer_count + p->pp - 1) / p->pp;
    RG_TRY(rg_shard_check(q->model, &shard, err));
    /* Bytes are those of whole pages on all ranks that split a sequence. */
    const double page = (double)(rules->block_tokens * p->cp);
    const double token =
        rg_shard_kv_bytes_in(q->model, q->formats, &shard, RG_KV_UNIFORM_PAGE, page).v / page;
    const double ranks = (double)(p->attention_dp ? p->pp : p->tp * p->pp * p->cp);
    rules->kv_bytes_per_token = token * ranks * (1 - rules->recompute_layers_ratio);
    *out = (rg_capacity){0};
    if (!q->cluster)
        return RG_OK;
    const int64_t dealt = p->attention_dp ? p->tp : 1; /* sequences, over ranks */
    const rg_capacity_query query = {.accel = q->cluster->accel,
                                     .model = q->model,
                                     .formats = q->formats,
                                     .shard = &shard,
                                     .utilisation = q->utilisation,
                                     .share_of = q->share_of,
                                     .bytes_per_logit = q->bytes_per_logit,
                                     .draft_bytes = q->draft_bytes,
                                     .draft_token_bytes = q->draft_token_bytes,
                                     .max_batched_tokens =
                                         (rules->max_batched_tokens + dealt - 1) / dealt,
                                     .max_sequences = (rules->max_sequences + dealt - 1) / dealt,
                                     .block_tokens = rules->block_tokens,
                                     .device_bytes = q->device_bytes,
                                     .ranks = p->tp * p->pp};
    *out = rg_capacity_of(&query);
    if (out->state_sequences > 0 && out->state_sequences * dealt < rules->max_sequences)
        rules->max_sequences = out->state_sequences * dealt;
    out->blocks = (int64_t)((double)(out->blocks * dealt) / (1 - rules->recompute_layers_ratio));
    return RG_OK;
}

rg_status rg_replica_link(rg_arena *arena, const rg_cluster *c, int64_t ranks, double *bytes_per_s,
                          double *latency_s, rg_err *err)
{
    const int64_t apart = c->nodes > 1 ? c->devices_per_node : ranks;
    rg_coll_query small = {.op = RG_COLL_SEND_RECV,
                           .library = RG_LIB_NCCL,
                           .ranks = 2,
                           .stride = apart < c->devices_per_node * c->nodes ? apart : 1,
                           .bytes = {4096}},
                  large = small;
    large.bytes.v = 256.0 * (1 << 20);
    rg_coll_result a, b;
    rg_coll_context *links;
    RG_TRY(rg_coll_prepare(arena, c, NULL, &links, err));
    RG_TRY(rg_coll_time(links, &small, &a, err));
    RG_TRY(rg_coll_time(links, &large, &b, err));
    *latency_s = a.time.v;
    *bytes_per_s = (large.bytes.v - small.bytes.v) / (b.time.v - a.time.v) * (double)ranks;
    return RG_OK;
}

/* serve/deploy.h: what runs on what, as limits, memory and links of a deployment.
 *
 * Reads hw/cluster.h, step/step.h, serve/capacity.h. Shared by the commands serve and plan, so that
 * a replica means the same in both.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_DEPLOY_H
#define RG_SERVE_DEPLOY_H

#include "serve/capacity.h"
#include "serve/serve.h"
#include "step/step.h"

/** Whether a scheduler takes limits from the file of its engine; research schedulers do not. */
bool rg_rules_follow_engine(rg_policy_kind policy);
/** Limits that the engine sets by itself for a device: vLLM's server takes larger steps on GPUs
 * with 70 GiB or more, other than A100 (vllm/engine/arg_utils.py); others take as many sequences on
 * any. With data-parallel attention the limits of vLLM and TensorRT-LLM are those of one rank, and
 * the replica has them for each; SGLang's are of all. */
void rg_rules_for_device(const rg_engine *engine, const rg_accel *accel,
                         const rg_parallel *parallel, rg_engine_rules *rules);

/** What a replica's memory depends on; cluster NULL: kv_bytes_per_token only. */
typedef struct rg_replica_query {
    const rg_cluster *cluster;
    const rg_model *model;
    const rg_formats *formats;
    const rg_parallel *parallel;
    double utilisation; /* of device memory */
    rg_memory_share share_of;
    double bytes_per_logit;                /* of sampling, as rg_capacity_query */
    double draft_bytes, draft_token_bytes; /* of speculation on a device; see rg_spec_memory */
    double device_bytes;                   /* as the runtime reports it; 0: by the hardware file */
} rg_replica_query;

/** KV blocks of a replica, and rules->kv_bytes_per_token. With data-parallel attention each rank
 * has blocks of its own for the sequences dealt to it; the replica has them all together. Errors:
 * RG_ERR_MODEL when the model cannot be split so. */
rg_status rg_replica_memory(const rg_replica_query *query, rg_engine_rules *rules, rg_capacity *out,
                            rg_err *err);

/** Rate and latency of KV from one replica to another, by the modelled network: a message between
 * devices that are a node apart where the cluster has several, all `ranks` devices of a replica at
 * once. Errors: those of rg_coll_prepare. */
rg_status rg_replica_link(rg_arena *arena, const rg_cluster *cluster, int64_t ranks,
                          double *bytes_per_s, double *latency_s, rg_err *err);

#endif

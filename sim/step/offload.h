/* step/offload.h: weights and KV in host memory, KV sent between pools, and life without a cache.
 *
 * Reads step/step.h. The host link is the cluster's host_link: PCIe or C2C, one direction, of one
 * device.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_STEP_OFFLOAD_H
#define RG_STEP_OFFLOAD_H

#include "step/step.h"

typedef struct rg_offload {
    double weight_ratio; /* share of a rank's weights that lie in host memory, 0..1 */
    double kv_ratio;     /* share of the cache that does */
    bool serial;         /* no prefetch: the device waits for every layer */
} rg_offload;

typedef struct rg_offload_time {
    rg_step_time step;               /* with what the host link costs in total */
    rg_bytes weight_bytes, kv_bytes; /* over the link in this pass, one rank */
    rg_seconds stream;               /* time of the link alone */
    rg_bytes freed;                  /* device memory that offloading gives back, weights */
    bool link_bound;
} rg_offload_time;

/** A pass with part of weights and cache streamed in. With prefetch the next layer comes while this
 * one computes, so only the first layer's share is seen:
 *
 *   total = max(step, stream) + stream / layers,   serial: step + stream
 *
 * Errors: RG_ERR_MODEL for shares outside 0..1, or a cluster without host link. */
rg_status rg_offload_time_of(rg_step_context *context, const rg_pass *pass,
                             const rg_offload *offload, rg_offload_time *out, rg_err *err);

typedef struct rg_kv_transfer {
    rg_bytes bytes;     /* the whole cache of the sequence */
    rg_seconds time;    /* from first byte to last */
    rg_seconds visible; /* after the prefill has ended: the last layer's, when sent by layer */
    rg_byte_rate rate;  /* all links together */
    bool within_domain;
} rg_kv_transfer;

/** Send the cache of a sequence of so many tokens from this arrangement to another. from_ranks and
 * to_ranks of it send and receive at once (tp x cp of each side); within: over the scale-up fabric,
 * else over the network ports. by_layer: each layer's part leaves as soon as it is computed. */
rg_status rg_kv_transfer_of(rg_step_context *context, double tokens, int64_t to_ranks, bool within,
                            bool by_layer, rg_kv_transfer *out, rg_err *err);

typedef struct rg_no_cache {
    rg_seconds cached, uncached; /* the next token of sequences of this length */
    double ratio;
    rg_flops cached_flops, uncached_flops;
} rg_no_cache;
/** One more token for each of batch sequences of length tokens, with the cache and by running all
 * tokens again. */
rg_status rg_no_cache_of(rg_arena *arena, rg_step_context *context, int64_t batch, int64_t tokens,
                         rg_no_cache *out, rg_err *err);

#endif

/* serve/tier.c: slower memory below the KV cache: what one level evicts, the next one keeps.
 *
 * A tier is a block pool of its own whose blocks are all free and named, so its queue is the order
 * in which they were last used.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

#include <math.h>

/* A name comes down into a tier, whose oldest makes room; known ones are made young again. */
static void keep(void *context, uint64_t name)
{
    rg_kv_pool *tier = context;
    int32_t unused, slot;
    rg_kv_seq seq = {.blocks = &slot, .room = 1, .names = &name, .named = 1, .shareable = true};
    if (rg_kv_lookup(tier, &seq, tier->block_tokens, &unused) == 1)
        rg_kv_adopt(tier, &seq, 1);
    else
        rg_kv_take(tier, &seq, 1);
    rg_kv_register(tier, &seq, tier->block_tokens);
    rg_kv_release(tier, &seq);
}

rg_status rg_tiers_start(rg_replica *r, rg_err *err)
{
    const rg_engine_rules *rules = r->rules;
    const double block = rules->kv_bytes_per_token * (double)rules->block_tokens;
    rg_kv_pool *above = &r->pool;
    for (int i = 0; i < RG_KV_TIERS && rules->tiers[i].capacity_bytes > 0; i++) {
        const double slots = block > 0 ? floor(rules->tiers[i].capacity_bytes / block) : 0;
        if (slots < 1 || slots > 1e9)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "an offload tier of '%.0f' KV blocks; wanted 1 to 1e9 (and a model, for "
                           "the bytes of a block)",
                           slots);
        if (!(rules->tiers[i].bytes_per_s > 0 || rules->host_bytes_per_s > 0))
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "an offload tier without a rate; set --offload-rate");
        RG_TRY(rg_kv_start(&r->tiers[i], r->arena, (int64_t)slots + 1, rules->block_tokens, true,
                           err));
        rg_kv_on_evict(above, keep, &r->tiers[i]);
        above = &r->tiers[i];
        r->tier_count++;
    }
    return RG_OK;
}

int32_t rg_tiers_find(rg_replica *r, rg_kv_seq *seq, int32_t have, int64_t tokens, double *load_s)
{
    const int32_t most = (int32_t)(tokens / r->pool.block_tokens);
    const double block = r->rules->kv_bytes_per_token * (double)r->pool.block_tokens;
    int32_t hits = 0;
    for (bool found = r->tier_count > 0; found && have + hits < most;) {
        rg_kv_name(&r->pool, seq, have + hits + 1);
        found = false;
        for (int i = 0; i < r->tier_count && !found; i++) {
            int32_t slot, unused;
            rg_kv_seq one = {.blocks = &slot,
                             .room = 1,
                             .names = &seq->names[have + hits],
                             .named = 1,
                             .shareable = true};
            found = rg_kv_lookup(&r->tiers[i], &one, r->pool.block_tokens, &unused) == 1;
            if (!found)
                continue;
            const double own = r->rules->tiers[i].bytes_per_s;
            *load_s += block / (own > 0 ? own : r->rules->host_bytes_per_s);
        }
        hits += found;
    }
    return hits;
}

/* serve/sched_static.c: static batches (FasterTransformer, TensorRT-LLM STATIC_BATCH).
 *
 * A batch is filled, its output reserved, and run to the end of its longest member. Who is done
 * leaves the step, but memory comes back only with the whole batch, and nobody joins.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

#include <string.h>

/* Memory of members that are done, kept until the batch is. */
static void keep(rg_replica *r, rg_live *live)
{
    rg_kept *kept = &r->kept[r->kept_count++];
    kept->kv = live->kv;
    kept->extent = live->extent;
    kept->extent_size = live->extent_size;
    kept->reserved = live->reserved;
    kept->c = live->c;
    live->kv = (rg_kv_seq){.room = 4};
    live->reserved = false;
    live->c = 0;
}

static void give_back(rg_replica *r)
{
    for (int i = 0; i < r->kept_count; i++) {
        const rg_kept *kept = &r->kept[i];
        rg_live live = {.kv = kept->kv,
                        .extent = kept->extent,
                        .extent_size = kept->extent_size,
                        .reserved = kept->reserved,
                        .c = kept->c};
        rg_replica_release(r, &live);
        rg_kv_close(&r->pool, &live.kv);
    }
    r->kept_count = 0;
}

static void build(rg_replica *r, rg_batch *batch)
{
    if (r->running_count > 0) {
        for (int i = 0; i < r->running_count; i++)
            rg_replica_compute(r, batch, r->running[i], 1);
        return;
    }
    give_back(r);
    while (r->waiting.count > 0 && r->running_count < r->rules->max_sequences) {
        rg_live *live = rg_queue_head(&r->waiting);
        if (!rg_replica_hold(r, live, (int64_t)live->n + live->o - 1, 0))
            return;
        rg_queue_pop(&r->waiting);
        rg_replica_scheduled(r, live, 0);
        rg_replica_admit(r, live);
        rg_replica_compute(r, batch, live, live->n);
    }
}

const rg_policy rg_policy_static = {build, keep, true, false};

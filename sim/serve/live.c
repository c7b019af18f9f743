/* serve/live.c: requests in and out of being. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/fleet.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 256 };

rg_live *rg_fleet_new_live(rg_fleet *f)
{
    if (!f->spare) {
        rg_live *many = RG_NEW(f->arena, rg_live, CHUNK, &f->failed);
        if (!many)
            return NULL;
        for (int i = 0; i < CHUNK; i++) {
            many[i].link = f->spare;
            f->spare = &many[i];
        }
    }
    rg_live *live = f->spare;
    f->spare = live->link;
    rg_segment *segments = live->segments;
    const int32_t room = live->segment_room;
    *live = (rg_live){.segments = segments,
                      .segment_room = room,
                      .last_token_s = -1,
                      .scheduled_s = -1,
                      .first_token_s = -1,
                      .ready_s = -1};
    f->live_count++;
    return live;
}

void rg_fleet_drop_live(rg_fleet *f, rg_replica *r, rg_live *live)
{
    rg_kv_close(&r->pool, &live->kv);
    live->link = f->spare;
    f->spare = live;
    f->live_count--;
}

void rg_fleet_open_sequence(rg_fleet *f, rg_replica *r, rg_live *live)
{
    const rg_request *q = &live->request;
    const int64_t total = q->prompt_tokens + q->output_tokens + rg_replica_ahead(r) + 1;
    /* Text that nobody else knows gets a name of its own. */
    uint64_t own = f->seed ^ (0x6f776e00 + (uint64_t)q->index * 0x9e3779b97f4a7c15u);
    rg_kv_open(&r->pool, &live->kv, total, live->segments, q->segment_count,
               q->output_id ? q->output_id : rg_rng_splitmix(&own));
    live->shares = live->kv.shareable && r->pool.caching && !r->pool.tree;
    f->failed.status = f->failed.status ? f->failed.status : r->pool.failed.status;
}

rg_live *rg_fleet_make_live(rg_fleet *f, const rg_request *request)
{
    rg_live *live = rg_fleet_new_live(f);
    if (!live)
        return NULL;
    live->request = *request;
    live->n = (int32_t)request->prompt_tokens;
    live->o = (int32_t)request->output_tokens;
    live->priority = (int32_t)request->priority;
    live->order = f->order++;
    if (request->segment_count > live->segment_room) {
        live->segment_room = request->segment_count + request->segment_count / 2;
        live->segments = RG_NEW(f->arena, rg_segment, live->segment_room, &f->failed);
        if (!live->segments)
            return NULL;
    }
    if (request->segment_count > 0)
        memcpy(live->segments, request->segments,
               (size_t)request->segment_count * sizeof *live->segments);
    live->request.segments = live->segments;
    return live;
}

/* serve/fleet.h: the replicas of a run, its requests and its books. Private to serve/.
 *
 * Reads serve/replica.h. fleet.c owns time, live.c requests, pools.c their places, books.c the
 * counts.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_FLEET_H
#define RG_SERVE_FLEET_H

#include "serve/replica.h"

/** What has ended by when, from the first arrival on, in bins of equal width that doubles whenever
 * a run outlasts them. */
enum { RG_ENDED_BINS = 1024 };
typedef struct rg_ended {
    double width_s;
    struct rg_ended_bin {
        int64_t requests, output_tokens, prompt_tokens;
    } bins[RG_ENDED_BINS];
} rg_ended;

struct rg_fleet {
    rg_arena *arena;
    const rg_deployment *deployment;
    rg_requests *stream;
    const rg_goals *goals;
    const rg_observer *observer;
    rg_serve_result *out;
    uint64_t seed;
    rg_replica **replicas; /* prefill first, then the others */
    int count, first_decode;
    rg_live *spare;
    int64_t order, turn, prefill_turn, live_count;
    int64_t deepest_turn;
    double deepest_s; /* when the first request of that turn came, after the first arrival */
    double now_s, last_token_s, first_arrival_s, last_arrival_s, next_scale_s;
    double *link_free_s; /* [prefill replicas] */
    uint64_t *seen;      /* names of trace blocks already asked for, open addressing */
    int64_t seen_size, seen_used;
    struct delayed { /* arrivals on their way into the engine */
        rg_live *live;
        double at_s;
    } * entering;
    int64_t entering_head, entering_count, entering_room;
    rg_live *sending; /* KV under way: memory of the prefill side is freed at ready_s */
    rg_ended ended;
    rg_err failed;
};

/** A request as it comes; NULL with fleet->failed when memory ends. */
rg_live *rg_fleet_make_live(rg_fleet *fleet, const rg_request *request);
rg_live *rg_fleet_new_live(rg_fleet *fleet);
void rg_fleet_drop_live(rg_fleet *fleet, rg_replica *r, rg_live *live);
/** Prepare its sequence in the memory of a replica. */
void rg_fleet_open_sequence(rg_fleet *fleet, rg_replica *r, rg_live *live);

/** The replica among [from, to) that the router picks; *turn is the router's own. */
rg_replica *rg_fleet_route(rg_fleet *fleet, const rg_live *live, int from, int to, int64_t *turn);
bool rg_replica_serves(const rg_replica *r);
/** When the next KV under way arrives, INFINITY for none; and giving its source's memory back. */
double rg_fleet_next_sent(const rg_fleet *fleet);
void rg_fleet_free_sent(rg_fleet *fleet, double time_s);

/** Makespan, energy, cost. */
void rg_fleet_close_books(rg_fleet *fleet);

#endif

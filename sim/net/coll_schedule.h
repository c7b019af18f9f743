/* net/coll_schedule.h: what the schedules of collectives share; coll_simulate.c and coll_stream.c.
 *
 * Reads net/coll_inner.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NET_COLL_SCHEDULE_H
#define RG_NET_COLL_SCHEDULE_H

#include "net/coll_inner.h"

typedef struct schedule {
    rg_arena *arena;
    const rg_net *net;
    const rg_coll_context *context;
    rg_coll_group group;
    rg_flow *flows; /* of the round being laid */
    int32_t count, room;
    double time; /* of the rounds so far */
    int64_t steps;
    rg_flow_result total;
    double *sent; /* [devices] */
    rg_err *err;
} schedule;

/** Empty the list of flows, with room for so many. RG_ERR_LIMIT. */
rg_status rg_schedule_room(schedule *s, int64_t flows);
int32_t rg_schedule_device(const schedule *s, int64_t rank);
/** One transfer from rank to rank, begun with the others of its round. */
void rg_schedule_send(schedule *s, int64_t from, int64_t to, double bytes);
/** Simulate what is laid, `times` times over, one after the other. */
rg_status rg_schedule_round(schedule *s, double times /* count */);

/** Broadcast or reduce along a ring, chunk after chunk. */
rg_status rg_schedule_chain(schedule *s, rg_coll_op op, double bytes);
/** Two trees over the domains for each rail, chains within. */
rg_status rg_schedule_trees(schedule *s, rg_coll_op op, double bytes);
/** Sums in the switch of each domain; between domains in the network or by trees. */
rg_status rg_schedule_in_switch(schedule *s, double bytes);

#endif

/* net/flow.h: transfers that share links, in max-min fair shares, from event to event.
 *
 * Reads net/graph.h. At every moment the rates are those of progressive filling: all flows grow
 * alike until a link is full; its flows stop there, the rest grow on (Bertsekas and Gallager, Data
 * Networks, 2nd edition, section 6.5.2). Rates change only when a flow begins or ends, so time
 * jumps from one such event to the next.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NET_FLOW_H
#define RG_NET_FLOW_H

#include "net/graph.h"

typedef struct rg_flow {
    int32_t source, target; /* devices, or one of them a switch (rg_net_switch) */
    double bytes;           /* to move */
    int32_t after[2];       /* flows that must have arrived before this one begins; -1 = none */
    double delay_s;         /* between that and the first byte: software, per-step latency */
    double start_s;         /* out: first byte leaves */
    double arrive_s;        /* out: last byte is there: transfer and the way's latency */
} rg_flow;

typedef struct rg_flow_result {
    double end_s;         /* last arrival */
    double bytes_sent;    /* over all flows */
    double link_bytes;    /* over all links: bytes times hops */
    int32_t busiest_link; /* most bytes over rate; -1 when nothing moved */
    double busiest_ratio; /* of the time until end_s that it is full */
    int64_t events;
} rg_flow_result;

/** Run the flows to their end. A flow whose source is its target takes no time beyond its delay.
 * Errors: RG_ERR_MODEL when a flow has no way, or waits for one that waits for it; RG_ERR_LIMIT. */
rg_status rg_flow_run(rg_arena *arena, const rg_net *net, rg_flow *flows, int32_t count,
                      rg_flow_result *out, rg_err *err);

#endif

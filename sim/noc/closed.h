/* noc/closed.h: what can be said of a network without simulating it.
 *
 * Reads core, hw, noc/sim.h, noc/design.h. Channel loads follow the routing function pair by pair;
 * random choices (ties, up ports, Valiant's node on the way) count by their probability, adaptive
 * ones as an even split over the productive ports.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_CLOSED_H
#define RG_NOC_CLOSED_H

#include "core/units.h"
#include "hw/accel.h"
#include "noc/design.h"

typedef struct rg_noc_closed {
    double zero_load_latency; /* cycles, mean over the traffic, of a packet alone */
    double zero_load_least;   /* the luckiest pair */
    double hops;              /* routers per packet, mean */
    double *link_load;        /* [outputs] flits per cycle when each injecting node offers one */
    double inject_load, eject_load; /* the busiest node's channels, likewise */
    int hottest;         /* output with the highest load for its width, -1: a node's channel */
    double bound;        /* offered flits per injecting node and cycle that fill it */
    double cut_bound;    /* the same by the tightest balanced cut that was found, any routing */
    double efficiency;   /* share of a channel that the routers can fill */
    double packet_flits; /* mean length of a packet */
    double saturation;   /* estimate: bound times efficiency */
} rg_noc_closed;

/** Closed form of all classes of traffic together, each by its share. Zero load is exact,
 * multi-flit packets and short buffers included (the packet's flits are followed through the credit
 * loops of its path). Errors: RG_ERR_LIMIT beyond 4096 nodes, RG_ERR_MODEL for impossible routings.
 */
rg_status rg_noc_closed_form(rg_arena *arena, const rg_noc_graph *graph,
                             const rg_noc_router *router, const rg_noc_class *classes, int count,
                             rg_noc_closed *out, rg_err *err);

/** Share of a channel that v virtual channels with one-pass allocation can fill: v / (v + 1/sqrt
 * 2). For v = 1 this is 2 - sqrt 2 = 0.586, the limit of input queueing under uniform traffic
 * (Karol, Hluchyj and Morgan, IEEE Trans. Comm. 35(12), 1987, table I); the growth with v is
 * assumed to be that of v independent lanes. */
double rg_noc_channel_efficiency(int vcs);

/** Estimate of the mean packet latency at a load in flits per injecting node and cycle: zero load
 * plus at each channel the wait of an M/D/1 queue, u n / (2 (1 - u)), u the channel's load over its
 * efficiency and n the flits of a packet (Kleinrock, "Queueing Systems" vol. 1, 1975, eq. 5.63).
 * NaN at and above saturation. */
double rg_noc_closed_latency(const rg_noc_closed *closed, const rg_noc_graph *graph, double load);

/** Bytes per second that group `from` can move to group `to` at most, every source sending to every
 * destination alike: by channel loads. bound is the wire limit, sustained what the channels'
 * efficiency leaves of it when half of the VCs are kept for the other direction. Needs flit and
 * clock in the file: RG_ERR_MODEL names what is missing. */
rg_status rg_noc_group_bandwidth(rg_arena *arena, const rg_noc_design *design, const char *from,
                                 const char *to, rg_byte_rate *bound, rg_byte_rate *sustained,
                                 rg_err *err);

/** Seconds from `from` to `to` and back without contention: a request of one flit, a reply of
 * reply_flits. */
rg_status rg_noc_group_round_trip(rg_arena *arena, const rg_noc_design *design, const char *from,
                                  const char *to, int reply_flits, rg_seconds *out, rg_err *err);

/** What an accelerator's network can feed its units with, from the file that its hardware file
 * names: groups sm, slice, mem and nvlink. */
typedef struct rg_noc_feed {
    rg_noc_design *design;
    rg_byte_rate l2_bound, l2_sustained; /* slices to units */
    rg_byte_rate memory_bound;           /* memory ports to slices */
    rg_byte_rate link_bound;             /* link ports to slices, 0 without such ports */
    rg_seconds l2_round_trip;            /* wires and routers alone, 128 bytes back */
} rg_noc_feed;

/** Errors: RG_ERR_MODEL when the hardware file names no network, or the network has no such group,
 * clock or flit. */
rg_status rg_noc_feed_of(rg_arena *arena, const rg_accel *accel, rg_noc_feed *out, rg_err *err);

/** Uniform traffic from one group to another as a class; VCs: all. */
rg_status rg_noc_group_traffic(rg_arena *arena, const rg_noc_design *design, const char *from,
                               const char *to, rg_noc_class *out, int *injecting, rg_err *err);

#endif

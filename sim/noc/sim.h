/* noc/sim.h: cycle-level simulation of an on-chip network.
 *
 * Reads core, noc/graph.h, noc/traffic.h. Input-queued virtual-channel routers with credit flow
 * control (Dally, "Virtual-channel flow control", IEEE TPDS 3(2), 1992; Peh and Dally, "A delay
 * model and speculative architecture for pipelined routers", HPCA 2001).
 *
 * One cycle: channels hand over what has arrived; sources put in one flit each; routers allocate on
 * the state read at the start; winners leave. Latency of a head flit through H routers with no
 * waiting, in cycles from birth to the sink:
 *
 *   1 + Linj + H (rd + alloc + st) + (H - 1) Llink + Lej + (flits - 1)
 *
 *   rd   routing_delay              alloc  vc_alloc_delay + switch_alloc_delay, or the larger of
 *   st   traversal_delay                   the two when speculative
 *
 * Stages longer than one cycle are pipelined: each takes new work every cycle, decides in its last
 * cycle, and only adds latency.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_SIM_H
#define RG_NOC_SIM_H

#include <stdbool.h>

#include "noc/traffic.h"

typedef enum rg_noc_routing {
    RG_NOC_ROUTE_TABLE,    /* shortest path; dimension order on meshes, by digit on flies */
    RG_NOC_ROUTE_TORUS,    /* dimension order, shorter way round, VCs split at the wrap link */
    RG_NOC_ROUTE_TREE,     /* up by a random port until the destination is below, then down */
    RG_NOC_ROUTE_ADAPTIVE, /* mesh, torus: any productive port; the first VC (torus: two) is the
                              dimension-order escape. Free of deadlock only with
                              wait_for_tail_credit */
    RG_NOC_ROUTE_VALIANT,  /* mesh, torus: by way of a random node, half of the VCs each leg */
    RG_NOC_ROUTE_ROMM,     /* mesh: the same by a node between source and destination */
    RG_NOC_ROUTE_XY_YX, /* mesh: lowest or highest dimension first by a coin, half of the VCs each
                         */
    RG_NOC_ROUTE_ADAPTIVE_XY_YX, /* mesh: the same by which first output holds fewer flits */
    RG_NOC_ROUTE_TREE_ADAPTIVE,  /* tree: of two random up ports the one that holds fewer flits */
} rg_noc_routing;

typedef enum rg_noc_allocator {
    RG_NOC_SEPARABLE_INPUT_FIRST,
    RG_NOC_SEPARABLE_OUTPUT_FIRST,
    RG_NOC_ISLIP,
    RG_NOC_WAVEFRONT,
} rg_noc_allocator;
/** Name as the user writes it; the list ends with NULL. */
extern const char *const rg_noc_allocator_names[];
extern const char *const rg_noc_routing_names[];

typedef struct rg_noc_router {
    int vcs;           /* virtual channels per port, 1 to 32 */
    int buffer;        /* flits per VC */
    int routing_delay; /* cycles; 0: the route came with the flit (lookahead) */
    int vc_alloc_delay, switch_alloc_delay, traversal_delay, credit_delay;
    bool speculative;          /* a head bids for its VC and the switch at once */
    bool wait_for_tail_credit; /* an output VC is free again only when its buffer is empty */
    rg_noc_allocator vc_allocator, switch_allocator;
    int iterations; /* of iSLIP */
    rg_noc_routing routing;
    bool one_adaptive_vc; /* adaptive on a torus: the fourth VC of a class alone, as in BookSim;
                             else all but the two escapes */
} rg_noc_router;

enum { RG_NOC_MAX_CLASSES = 8, RG_NOC_MAX_VCS = 32 };

/** One kind of traffic. With request_reply a source draws requests; the destination answers each.
 */
typedef struct rg_noc_class {
    const rg_noc_pattern *pattern;
    double packets_per_cycle;  /* of each injecting node, 0 to 1 */
    const double *node_factor; /* [nodes] multiplies packets_per_cycle; NULL: all 1 */
    double share;              /* of a sweep's load; 0 stands for 1 */
    int flits;                 /* per packet */
    int vc_first, vc_count;    /* range of VCs of its packets (requests) */
    bool request_reply;
    double write_share;                                       /* of requests */
    int read_request, read_reply, write_request, write_reply; /* flits */
    int reply_vc_first, reply_vc_count;
} rg_noc_class;

/** A message of a trace; longer ones than max_packet go as several packets, in order. */
typedef struct rg_noc_send {
    uint64_t cycle; /* earliest birth */
    int32_t source, destination;
    int32_t flits;
    int32_t class_index;
} rg_noc_send;

/** Message `after` waits until `before` has arrived in full, and delay cycles more. */
typedef struct rg_noc_order {
    int32_t before, after;
    uint32_t delay;
} rg_noc_order;

typedef struct rg_noc_config {
    const rg_noc_graph *graph;
    rg_noc_router router;
    rg_noc_class classes[RG_NOC_MAX_CLASSES];
    int class_count;
    const rg_noc_send *sends; /* trace instead of drawn traffic; NULL: none */
    int64_t send_count;
    const rg_noc_order *orders;
    int64_t order_count;
    int max_packet; /* flits of the longest packet of a trace */
    uint64_t seed;
    bool lockstep; /* packets and coins are drawn from seed as BookSim 2 draws them, one trial for
                      each node and cycle: the very packets of a run of it (slower) */
    bool check;    /* verify conservation of flits and credits at every cycle (slow) */
} rg_noc_config;

/** How long to run and when to believe it. */
typedef struct rg_noc_protocol {
    int sample_period;        /* cycles */
    int warmup_periods;       /* sample periods that are not measured */
    int max_periods;          /* in all, warm-up included */
    double latency_threshold; /* cycles; an average above it: saturated */
    double stop_threshold;    /* relative change of latency and throughput; 3 in a row end it */
    bool latency;             /* false: throughput only, nothing is drained */
    double backlog_threshold; /* share of the offered load that piles up, in network and sources,
                                 during the measured periods; above it: saturated. INFINITY: not
                                 looked at */
} rg_noc_protocol;
#define RG_NOC_PROTOCOL_DEFAULT ((rg_noc_protocol){1000, 3, 8, 500.0, 0.05, true, 0.02})

/** Mean and percentiles of a count of cycles; NaN where there is no sample. */
typedef struct rg_noc_spread {
    int64_t count;
    double mean, least, p50, p90, p95, p99, p999, most;
} rg_noc_spread;

typedef struct rg_noc_result {
    bool saturated;  /* no steady latency: the latencies below are NaN */
    bool converged;  /* false: ran out of periods before three agreed */
    bool deadlocked; /* flits that can never move again were found */
    rg_noc_spread packet_latency, network_latency, per_hop;
    double packet_half_width; /* 95 % confidence by batch means; NaN with fewer than 8 batches */
    double fragmentation;     /* mean extra cycles between head and tail */
    double hops;              /* routers per packet */
    double offered, injected, accepted; /* flits per node and cycle over all nodes */
    double accepted_packets;
    double accepted_least, accepted_most; /* of the nodes that take anything at all / of all */
    double fairness;                      /* Jain's index of what the injecting nodes got in */
    int64_t cycles, flit_hops;
    int64_t measured_cycles;
    double *link_load;                     /* [outputs] flits per cycle, NULL unless asked for */
    double *node_accepted, *node_injected; /* [nodes] flits per cycle, likewise */
} rg_noc_result;

/** One run by the protocol. detail: also fill the per-link and per-node arrays.
 * Errors: RG_ERR_MODEL for combinations that cannot be simulated, by name. */
rg_status rg_noc_run(rg_arena *arena, const rg_noc_config *config, const rg_noc_protocol *protocol,
                     bool detail, rg_noc_result *out, rg_err *err);

/** Run config->sends until the last message has arrived; *makespan is that cycle. finish and start
 * [send_count], the cycle of each one's arrival and of its earliest birth, may be NULL.
 * Errors: RG_ERR_MODEL when it deadlocks, or when messages wait for one another. */
rg_status rg_noc_run_trace(rg_arena *arena, const rg_noc_config *config, bool detail,
                           uint64_t *makespan, uint64_t *start, uint64_t *finish,
                           rg_noc_result *out, rg_err *err);

/** Range of seeds averaged: seeds runs, each by the protocol, on all cores. The result does not
 * depend on the number of threads. */
rg_status rg_noc_run_seeds(rg_arena *arena, const rg_noc_config *config,
                           const rg_noc_protocol *protocol, int seeds, bool detail,
                           rg_noc_result *out, rg_err *err);

/* The stepping interface, for tests and benches. */
typedef struct rg_noc_sim rg_noc_sim;
rg_status rg_noc_sim_new(rg_arena *arena, const rg_noc_config *config, rg_noc_sim **out,
                         rg_err *err);
void rg_noc_sim_step(rg_noc_sim *sim, int64_t cycles);
/** Flits that won a switch so far: the unit of work. */
int64_t rg_noc_sim_flit_hops(const rg_noc_sim *sim);
/** Flits and credits are where they must be: RG_ERR_MODEL with the first place where not. */
rg_status rg_noc_sim_check(const rg_noc_sim *sim, rg_err *err);
/** Input VCs whose flits can never move again; 0: none. */
int rg_noc_sim_deadlocked(rg_noc_sim *sim);

#endif

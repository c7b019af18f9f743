/* net/coll.h: time of collectives among ranks of a cluster.
 *
 * Reads hw/cluster.h, net/flow.h. Two views of the same algorithms:
 *
 *   ideal       link rates and link latencies alone, in closed form; the flow simulation of the
 *               same schedule (rg_coll_simulate) agrees with it where nobody is in the way
 *   calibrated  what a library reaches: a software floor, a cost per step by protocol, shares of
 *               the link rate, in-switch reduction; constants from fit: collective of the hardware
 *               file, else of its architecture (net/coll_constants.c)
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NET_COLL_H
#define RG_NET_COLL_H

#include "core/units.h"
#include "hw/cluster.h"
#include "net/flow.h"

typedef enum rg_coll_op {
    RG_COLL_ALL_REDUCE,
    RG_COLL_REDUCE_SCATTER,
    RG_COLL_ALL_GATHER,
    RG_COLL_ALL_TO_ALL,
    RG_COLL_BROADCAST,
    RG_COLL_REDUCE,
    RG_COLL_SEND_RECV,
    RG_COLL_OP_COUNT,
} rg_coll_op;

typedef enum rg_coll_algorithm {
    RG_ALG_AUTO,
    RG_ALG_RING,
    RG_ALG_TREE, /* double binary tree between domains, chains within them */
    RG_ALG_HALVING_DOUBLING,
    RG_ALG_ONE_SHOT,     /* every rank reads all others' buffers */
    RG_ALG_TWO_SHOT,     /* direct reduce-scatter, direct all-gather */
    RG_ALG_IN_SWITCH,    /* NVLS within a domain, SHARP between them */
    RG_ALG_HIERARCHICAL, /* reduce-scatter within, all-reduce between, all-gather within */
    RG_ALG_TORUS,        /* a ring in each dimension at once, parts in rotated order */
    RG_ALG_DIRECT,       /* all-to-all: every rank to every rank */
    RG_ALG_COUNT,
} rg_coll_algorithm;

typedef enum rg_coll_protocol {
    RG_PROTO_AUTO,
    RG_PROTO_LL,     /* a flag with every 4 bytes: least latency, half the wire */
    RG_PROTO_LL128,  /* a flag with every 120 bytes */
    RG_PROTO_SIMPLE, /* chunks behind memory fences: full rate, most latency */
    RG_PROTO_COUNT,
} rg_coll_protocol;

typedef enum rg_coll_library {
    RG_LIB_NCCL,   /* NCCL, RCCL and kin, called one by one */
    RG_LIB_CUSTOM, /* a serving engine's own all-reduce inside a captured graph; else NCCL there */
    RG_LIB_IDEAL,  /* no software: closed forms over link rates and latencies */
    RG_LIB_COUNT,
} rg_coll_library;

const char *rg_coll_op_name(rg_coll_op op); /* "all_reduce" */
const char *rg_coll_algorithm_name(rg_coll_algorithm algorithm);
const char *rg_coll_protocol_name(rg_coll_protocol protocol);
/** By name; '-' counts as '_', "alltoall", "allreduce" and the like are known. RG_ERR_USAGE. */
rg_status rg_coll_op_parse(const char *name, rg_coll_op *out, rg_err *err);
rg_status rg_coll_algorithm_parse(const char *name, rg_coll_algorithm *out, rg_err *err);

/** What is asked. bytes, as nccl-tests counts: all-reduce, broadcast, reduce, send: the buffer of
 * one rank; all-gather: the gathered result; reduce-scatter: the buffer that is scattered;
 * all-to-all: what one rank holds for all, itself counted. */
typedef struct rg_coll_query {
    rg_coll_op op;
    rg_coll_algorithm algorithm;
    rg_coll_protocol protocol;
    rg_coll_library library;
    int64_t ranks;
    int64_t first;  /* device number of the first rank */
    int64_t stride; /* device numbers between neighbours of the group; 0 counts as 1 */
    int64_t local;  /* most ranks in one domain; 0: as many as the stride lets fit */
    rg_bytes bytes;
    bool integer;     /* int8: switches do not add it up, devices slower */
    double imbalance; /* all-to-all: bytes of the busiest rank over the mean; below 1 counts as 1 */
} rg_coll_query;

/** What holds the time: for people and for the JSON key "limit". */
typedef enum rg_coll_limit {
    RG_LIMIT_NONE,    /* one rank: nothing to do */
    RG_LIMIT_LATENCY, /* software and steps */
    RG_LIMIT_LINK,    /* scale-up port */
    RG_LIMIT_UPLINK,  /* shared PCIe switch */
    RG_LIMIT_SOCKET,
    RG_LIMIT_NETWORK, /* network port or oversubscribed network */
    RG_LIMIT_SWITCH,  /* in-switch reduction */
    RG_LIMIT_COUNT,
} rg_coll_limit;
const char *rg_coll_limit_name(rg_coll_limit limit);

typedef struct rg_coll_result {
    rg_seconds time;
    rg_seconds latency; /* part that no byte pays for */
    rg_byte_rate algbw; /* bytes / time */
    rg_byte_rate
        busbw;     /* algbw x 2(n-1)/n all-reduce, (n-1)/n gather, scatter, all-to-all, else 1 */
    rg_bytes sent; /* bytes that the busiest rank sends */
    rg_coll_algorithm algorithm;
    rg_coll_protocol protocol;
    int64_t steps; /* that follow one another */
    rg_coll_limit limit;
    bool above_link; /* busbw passes the link rate: in-switch reduction halves the traffic */
} rg_coll_result;

/** Fitted constants, group "collective". Times in us, rates as shares of the link's. */
typedef struct rg_coll_constants {
    double base_us;                   /* software floor of one call */
    double hop_us;                    /* one LL step to a neighbour */
    double gather_hop_us;             /* the same in all-gather and reduce-scatter */
    double wide_base_us, wide_hop_us; /* added when many channels take part */
    double wide_store_us;             /* each step of all-gather stores what it passes on, too */
    double wide_bytes;                /* a rank's part at which half of that is added */
    double ll_ratio;                  /* reached, of the library's table rate for LL */
    double ll_wire_ratio;             /* of the path's rate: LL sends flags beside the data */
    double ll128_base_us, ll128_hop_us, ll128_ratio; /* ratio: of simple_ratio */
    double simple_base_us, simple_hop_us, simple_ratio;
    double copy_all_reduce, copy_all_gather, copy_reduce_scatter; /* local step, link times */
    double byte_reduce;   /* all-reduce and reduce-scatter of int8, in times of half */
    double overlap_power; /* latency and transfer: (L^q + W^q)^(1/q) */
    double nvls_base_us;  /* in-switch reduction beyond the floor */
    double
        nvls_fill_us; /* first chunk at 450 GB/s and full size; grows with the root of the size */
    double nvls_ratio, nvls_least_ranks;
    double direct_base_us, direct_peer_us, direct_ll_gbs, direct_simple_us, direct_ratio;
    double direct_copy, direct_power, direct_fill_us;
    double one_shot_base_us, one_shot_rank_us, one_shot_wide_us, one_shot_ratio,
        one_shot_most_bytes;
    double two_shot_base_us, two_shot_rank_us, two_shot_ratio;
    double graph_saves_us;    /* of a library call inside a captured graph */
    double switch_ratio;      /* PCIe: copies staged in host memory, of the uplink's rate */
    double socket_ratio;      /* staged between sockets, of that rate; all streams together */
    double socket_crossings;  /* ring hops over a socket link in one direction */
    double peer_ratio;        /* direct reads through a CPU, of the uplink's rate */
    double socket_link_ratio; /* streams of devices, of the link between sockets */
    double net_ll_us, net_simple_us, net_tree_us; /* one step between domains */
    double net_ll_gbs, net_ratio;                 /* LL over one port; reached share of a port */
} rg_coll_constants;

typedef struct rg_coll_constant {
    const char *name; /* in fit: collective */
    size_t offset;    /* of the double in rg_coll_constants */
    double least, most;
    const char *meaning;
} rg_coll_constant;
/** All constants, *count of them, for fitting and for listing. */
const rg_coll_constant *rg_coll_constant_table(int *count);
/** Constants of a cluster: those of its devices' architecture and its kind of link, overridden by
 * what the device's file says. */
rg_coll_constants rg_coll_constants_of(const rg_cluster *cluster);

typedef struct rg_coll_context rg_coll_context;

/** Resolve a cluster for collectives. constants NULL: the device's. Errors: RG_ERR_MODEL when a
 * fabric lacks a figure. */
rg_status rg_coll_prepare(rg_arena *arena, const rg_cluster *cluster,
                          const rg_coll_constants *constants, rg_coll_context **out, rg_err *err);
/** Change the constants of a context, for fitting. */
void rg_coll_retune(rg_coll_context *context, const rg_coll_constants *constants);
/** Where the constants come from, in words. */
const char *rg_coll_note(const rg_coll_context *context);

/** Time of one collective. Allocates nothing; safe to call millions of times. Errors: RG_ERR_MODEL
 * with the reason: more ranks than the cluster has, an algorithm that does not do the operation, a
 * dimension mismatch. */
rg_status rg_coll_time(const rg_coll_context *context, const rg_coll_query *query,
                       rg_coll_result *out, rg_err *err);

/** The same by flow simulation of the algorithm's schedule over ideal links, for every algorithm.
 * The limit is the fullest link. */
rg_status rg_coll_simulate(rg_arena *arena, const rg_coll_context *context,
                           const rg_coll_query *query, rg_coll_result *out, rg_flow_result *flows,
                           rg_err *err);

/** Factor from algbw to busbw. */
double rg_coll_bus_factor(rg_coll_op op, int64_t ranks);

/** Where automatic choice changes between two sizes: algorithm, protocol from this size on. */
typedef struct rg_coll_crossover {
    rg_bytes from;
    rg_coll_algorithm algorithm;
    rg_coll_protocol protocol;
} rg_coll_crossover;
/** Crossovers of query (its bytes ignored) between least and most, to 1 byte in 64. */
rg_status rg_coll_crossovers(const rg_coll_context *context, const rg_coll_query *query,
                             rg_bytes least, rg_bytes most, rg_coll_crossover *out, int capacity,
                             int *count, rg_err *err);

#endif

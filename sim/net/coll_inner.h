/* net/coll_inner.h: what the files coll*.c share; nobody else reads it.
 *
 * Reads net/coll.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NET_COLL_INNER_H
#define RG_NET_COLL_INNER_H

#include "net/coll.h"

struct rg_coll_context {
    const rg_cluster *cluster;
    rg_coll_constants c;
    bool ideal;
    int64_t devices, domain; /* all; of one scale-up domain */
    int64_t per_switch, per_socket;
    double up_rate, up_latency; /* byte/s of a device's ports, s */
    double switch_rate, socket_rate;
    double net_rate, net_latency; /* of one device's network port, oversubscription applied */
    double ll_rate;               /* byte/s */
    const char *note;
};

/** A query's ranks as they lie on the cluster. */
typedef struct rg_coll_group {
    int64_t ranks, first, stride;
    int64_t local, domains; /* ranks in one domain, domains in use */
    double ring_rate;       /* byte/s to the ring neighbour within the domain */
    double net_rate;        /* byte/s of a rank's network port */
    double path_rate;       /* byte/s of a ring through all ranks */
    rg_coll_limit ring_limit, path_limit;
} rg_coll_group;

rg_status rg_coll_group_of(const rg_coll_context *x, const rg_coll_query *q, rg_coll_group *g,
                           rg_err *err);
/** Sequential steps of a ring, and bytes that each rank sends for S bytes. */
void rg_coll_ring_work(rg_coll_op op, double n /* ranks */, double S /* bytes */,
                       double *steps /* count */, double *bytes /* of one rank */);
/** Seconds for each byte that a rank sends to its next one within the domain, all ranks at once. */
double rg_coll_neighbour_cost(const rg_coll_context *x, const rg_coll_group *g, double device_ratio,
                              rg_coll_limit *limit);
/** Seconds that every byte of a rank's buffer costs when all send to all within the domain: the
 * slowest of port, uplink and socket link. share: part of the buffer for one peer. */
double rg_coll_direct_cost(const rg_coll_context *x, const rg_coll_group *g, double device_ratio,
                           double share /* ratio */, rg_coll_limit *limit);
/** Hops from the root of two binary trees over m domains to their deepest leaf; one way: the source
 * feeds both from outside. */
double rg_coll_tree_levels(int64_t m, bool both_ways);
/** Buffers that pass the busiest domain's ports in one direction: an inner node has three edges in
 * its tree and one in the other, each with half of the data up and down. */
double rg_coll_tree_load(int64_t m, bool both_ways);
bool rg_coll_power_of_two(int64_t n);
/** Closed form over link rates and latencies; the algorithm fits the group. */
rg_status rg_coll_ideal_time(const rg_coll_context *x, const rg_coll_query *q,
                             const rg_coll_group *g, rg_coll_algorithm algorithm,
                             rg_coll_result *out, rg_err *err);
/** Time by one algorithm: ideal, or what the library reaches. */
rg_status rg_coll_time_by(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                          rg_coll_algorithm algorithm, rg_coll_result *out, rg_err *err);
/** Whether NCCL's own tuning model prefers in-switch reduction to a ring within a domain. */
bool rg_coll_tuner_in_switch(const rg_coll_context *x, const rg_coll_query *q,
                             const rg_coll_group *g);
/** LL bus rate of NCCL's own tuning model, byte/s. */
double rg_coll_ll_table_rate(const char *arch);
/** Rates from bytes and time; refuses what is not finite. */
rg_status rg_coll_finish(const rg_coll_context *x, const rg_coll_query *q, rg_coll_result *out,
                         rg_err *err);

#endif

/* net/coll_constants.c: the constants of collectives: names, bounds, defaults by architecture.
 *
 * The defaults of ampere, hopper and of PCIe were fitted to seven tenths of the rows of all-reduce,
 * reduce-scatter, all-gather and all-to-all tables of the A100 SXM, H200 SXM and L40S (NCCL 2.27
 * and 2.29, 2 to 8 ranks of one node); their files have the errors of the rest. An A100 shares with
 * the H200 all that set_ampere does not name. The two-shot kernel has three rows, one of them among
 * those fitted; its step and rate were guessed from all three.
 */
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <string.h>

#include "net/coll.h"

#define ROW(field, least, most, meaning)                                 \
    {                                                                    \
#field, offsetof(rg_coll_constants, field), least, most, meaning \
    }

static const rg_coll_constant table[] = {
    ROW(base_us, 0.5, 50, "software floor of one call"),
    ROW(hop_us, 0.1, 10, "one LL step to a neighbour"),
    ROW(gather_hop_us, 0.1, 10, "the same in all-gather and reduce-scatter"),
    ROW(wide_base_us, 0, 20, "added once many channels take part"),
    ROW(wide_hop_us, 0, 2, "the same, for each step"),
    ROW(wide_store_us, 0, 2, "the same, for each step of all-gather: what it passes on is stored"),
    ROW(wide_bytes, 64, 1e5, "a rank's part at which half of that is added"),
    ROW(ll_ratio, 0.2, 3, "LL rate over the library's table rate"),
    ROW(ll_wire_ratio, 0.2, 1, "LL rate over the path's rate"),
    ROW(ll128_base_us, 0, 30, "LL128 beyond the floor"),
    ROW(ll128_hop_us, 0.1, 20, "one LL128 step"),
    ROW(ll128_ratio, 0.2, 1.2, "LL128 rate over the Simple rate"),
    ROW(simple_base_us, 0, 60, "Simple beyond the floor"),
    ROW(simple_hop_us, 0.1, 30, "one Simple step"),
    ROW(simple_ratio, 0.2, 1, "Simple rate over the link rate"),
    ROW(copy_all_reduce, 0, 3, "local step of all-reduce, in link times of its chunk"),
    ROW(copy_all_gather, 0, 3, "local step of all-gather"),
    ROW(copy_reduce_scatter, 0, 3, "local step of reduce-scatter"),
    ROW(byte_reduce, 1, 2, "reductions of int8, in times of half"),
    ROW(overlap_power, 0.4, 4, "how latency and transfer add: (L^q + W^q)^(1/q)"),
    ROW(nvls_base_us, 0, 200, "in-switch reduction beyond the floor"),
    ROW(nvls_fill_us, 0, 200, "its first chunk, full size at 450 GB/s"),
    ROW(nvls_ratio, 0.2, 1, "in-switch reduction, of the link rate"),
    ROW(nvls_least_ranks, 2, 64, "least ranks for in-switch reduction"),
    ROW(direct_base_us, 0, 20, "all-to-all beyond the floor"),
    ROW(direct_peer_us, 0, 5, "all-to-all, for each peer"),
    ROW(direct_ll_gbs, 0.5, 100, "all-to-all in LL, GB/s of one peer"),
    ROW(direct_simple_us, 0, 40, "all-to-all in Simple beyond LL"),
    ROW(direct_ratio, 0.2, 1, "all-to-all rate over the link rate"),
    ROW(direct_copy, 0, 3, "a rank's own part, in link times"),
    ROW(direct_power, 0.4, 4, "as overlap_power, for all-to-all"),
    ROW(direct_fill_us, 0, 200, "its last chunks, of 32 MiB and more"),
    ROW(one_shot_base_us, 0.5, 50, "engine's one-shot all-reduce in a graph"),
    ROW(one_shot_rank_us, 0, 5, "the same, for each rank"),
    ROW(one_shot_wide_us, 0, 5, "the same, for each peer, beyond 4 KiB"),
    ROW(one_shot_ratio, 0.1, 1, "one-shot rate over the link rate"),
    ROW(one_shot_most_bytes, 0, 1e9, "largest message of the engine's own kernels"),
    ROW(two_shot_base_us, 0.5, 50, "engine's two-shot all-reduce in a graph"),
    ROW(two_shot_rank_us, 0, 10, "the same, for each rank"),
    ROW(two_shot_ratio, 0.1, 1, "two-shot rate over the link rate"),
    ROW(graph_saves_us, 0, 30, "of a library call inside a captured graph"),
    ROW(switch_ratio, 0.02, 1, "copies staged in host memory, of a PCIe uplink's rate"),
    ROW(socket_ratio, 0.02, 1, "staged between sockets, of that; all streams together"),
    ROW(socket_crossings, 1, 16, "ring hops over a socket link, one direction"),
    ROW(peer_ratio, 0.1, 1, "direct reads through a CPU, of a PCIe uplink's rate"),
    ROW(socket_link_ratio, 0.02, 1, "streams of devices, of the link between sockets"),
    ROW(net_ll_us, 0.5, 50, "one LL step over the network"),
    ROW(net_simple_us, 0.5, 100, "one Simple step over the network"),
    ROW(net_tree_us, 0.5, 100, "one tree level over the network, LL"),
    ROW(net_ll_gbs, 0.1, 100, "LL over one network port, GB/s"),
    ROW(net_ratio, 0.2, 1, "reached share of a network port"),
};

const rg_coll_constant *rg_coll_constant_table(int *count)
{
    *count = (int)(sizeof table / sizeof table[0]);
    return table;
}

/* H200. Network steps and the LL rates of rg_coll (ll_table_rate) are the figures of NCCL's own
 * tuning model, src/graph/tuning.cc; net_ratio is the plateau of an nccl-tests log of two nodes
 * with two H100 each, 98.6 GB/s through two ports of 50 GB/s. */
static const rg_coll_constants hopper = {
    .base_us = 4.12,
    .hop_us = 0.9036,
    .gather_hop_us = 1.084,
    .wide_base_us = 0.5422,
    .wide_hop_us = 0.08896,
    .wide_store_us = 0.1167,
    .wide_bytes = 2567,
    .ll_ratio = 1.569,
    .ll_wire_ratio = 0.9,
    .ll128_base_us = 10.18,
    .ll128_hop_us = 0.9399,
    .ll128_ratio = 0.857,
    .simple_base_us = 9.628,
    .simple_hop_us = 2.091,
    .simple_ratio = 0.8502,
    .copy_all_reduce = 0.5839,
    .copy_all_gather = 0.5719,
    .copy_reduce_scatter = 0.7041,
    .byte_reduce = 1.023,
    .overlap_power = 0.8765,
    .nvls_base_us = 13.3,
    .nvls_fill_us = 58.45,
    .nvls_ratio = 0.685,
    .nvls_least_ranks = 8,
    .direct_base_us = 1.766,
    .direct_peer_us = 0.4145,
    .direct_ll_gbs = 5.945,
    .direct_simple_us = 4.824,
    .direct_ratio = 0.7148,
    .direct_copy = 0.09436,
    .direct_power = 0.9902,
    .direct_fill_us = 14.25,
    .one_shot_base_us = 2.54,
    .one_shot_rank_us = 0.08167,
    .one_shot_wide_us = 0.01772,
    .one_shot_ratio = 0.6633,
    .one_shot_most_bytes = 16e6,
    .two_shot_base_us = 1.404,
    .two_shot_rank_us = 1.521,
    .two_shot_ratio = 0.4841,
    .graph_saves_us = 1.403,
    .switch_ratio = 1,
    .socket_ratio = 1,
    .socket_crossings = 1,
    .peer_ratio = 1,
    .socket_link_ratio = 1,
    .net_ll_us = 3.9,
    .net_simple_us = 14.0,
    .net_tree_us = 5.0,
    .net_ll_gbs = 1.6,
    .net_ratio = 0.97,
};

/** What an A100 changes. */
static void set_ampere(rg_coll_constants *c)
{
    c->base_us = 7.801;
    c->hop_us = 1.048;
    c->gather_hop_us = 1.025;
    c->wide_base_us = 2.469;
    c->simple_base_us = 14.65;
    c->simple_hop_us = 5.45;
    c->simple_ratio = 0.7902;
    c->direct_base_us = 2.554;
    c->direct_peer_us = 0.6412;
    c->direct_ll_gbs = 6.063;
    c->direct_simple_us = 0.4265;
    c->direct_ratio = 0.7944;
    c->direct_copy = 0.439;
    c->direct_power = 0.6127;
    c->direct_fill_us = 0;
    c->ll128_base_us = 13.01;
    c->one_shot_base_us = 4.093;
    c->one_shot_rank_us = 0.009557;
    c->one_shot_wide_us = 0.4971;
    c->one_shot_ratio = 0.6446;
    c->one_shot_most_bytes = 1 << 20;
    c->graph_saves_us = 0.015;
    c->wide_bytes = 3894;
    c->ll128_ratio = 0.6518;
    c->copy_all_gather = 0.7205;
    c->copy_reduce_scatter = 0.5058;
}

/** What PCIe changes: an L40S. How hops beyond a switch are taken: coll_group.c. */
static void set_pcie(rg_coll_constants *c)
{
    c->base_us = 4.384;
    c->hop_us = 1.218;
    c->gather_hop_us = 1.248;
    c->wide_base_us = 0;
    c->wide_hop_us = 0;
    c->wide_store_us = 0;
    c->byte_reduce = 1;
    c->simple_base_us = 13.59;
    c->simple_hop_us = 6.94;
    c->simple_ratio = 0.6577;
    c->copy_all_reduce = 0.136;
    c->copy_all_gather = 0.127;
    c->copy_reduce_scatter = 0.1931;
    c->overlap_power = 1.215;
    c->direct_base_us = 3.058;
    c->direct_peer_us = 0.4921;
    c->direct_ll_gbs = 21.75;
    c->direct_simple_us = 4.889;
    c->direct_ratio = 0.7475;
    c->direct_copy = 0.03664;
    c->direct_power = 0.7615;
    c->direct_fill_us = 0;
    c->one_shot_most_bytes = 0;
    c->graph_saves_us = 0;
    c->ll_wire_ratio = 0.8258;
    /* staged in host memory: both servers that were measured; from socket to socket: the L40S */
    c->switch_ratio = 0.19;
    c->socket_ratio = 0.47;
    c->socket_crossings = 2;
    /* NCCL, src/graph/topo.h: reads through an Intel CPU cost 6/5 of their bytes; two sockets pass
     * on 10 GB/s (SKL_QPI_BW), of the 62 GB/s of three UPI links */
    c->peer_ratio = 5.0 / 6;
    c->socket_link_ratio = 10.0 / 62;
}

rg_coll_constants rg_coll_constants_of(const rg_cluster *cluster)
{
    const rg_accel *accel = cluster->accel;
    rg_coll_constants c = hopper;
    const char *arch = accel->arch != NULL ? accel->arch : "";
    if (strcmp(arch, "ampere") == 0)
        set_ampere(&c);
    if (strncmp(arch, "blackwell", 9) == 0)
        c.nvls_ratio *= 0.74 / 0.85; /* NCCL, src/graph/tuning.cc: nvlsEfficiency by architecture */
    if (cluster->scale_up.kind == RG_FABRIC_PCIE_TREE)
        set_pcie(&c);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        double *value = (double *)(void *)((char *)&c + table[i].offset);
        *value = rg_accel_fit_or(accel, "collective", table[i].name, *value, NULL);
    }
    return c;
}

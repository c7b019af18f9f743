/* noc/trace.h: messages from trace files and from operators.
 *
 * Reads core, noc/design.h. Trace files, told apart by their content:
 *   CSV      cycle,src,dst,bytes[,class,id,after,delay]; src and dst are node numbers or
 *            "group:index"; id defaults to the row's number from 0; after lists ids, separated by
 *            ';', that must have arrived, and delay cycles pass then
 *   netrace  binary, version 1.0, unpacked (Hestness and Keckler, "Netrace: dependency-tracking
 *            traces for efficient network-on-chip experimentation", UT Austin TR-10-11, 2011);
 *            packets that depend on others wait for them
 *   SCALE-Sim rows "cycle, address, address, ...": each address is read by the array's port of its
 *            column from the slice that the address hash picks
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_TRACE_H
#define RG_NOC_TRACE_H

#include "noc/design.h"

typedef struct rg_noc_trace {
    const char *kind; /* "csv", "netrace", "scale-sim", "gemm", ... */
    rg_noc_send *sends;
    int64_t send_count;
    rg_noc_order *orders;
    int64_t order_count;
    double payload_bytes; /* what the operator is about: without headers and requests */
    double bytes;         /* all that is sent */
    int class_count;
} rg_noc_trace;

/** How addresses and bytes become nodes and flits. */
typedef struct rg_noc_mapping {
    const rg_noc_design *design;
    const rg_noc_group *cores, *slices; /* who asks and who holds the data */
    double flit_bytes;
    int line_bytes; /* of one read */
    bool near;      /* a core reads from the slices that are nearest to it, which hold copies */
    int *near_first, *near_slice; /* [cores + 1], lists; of rg_noc_mapping_near */
    int slice_delay;              /* cycles from a request's arrival to its reply */
} rg_noc_mapping;

/** Slice of an address: the line number mixed by the 64-bit finaliser of MurmurHash3 and reduced to
 * 0 .. slices-1, so that any stride is spread. Assumed: vendors do not publish theirs. */
int rg_noc_slice_of(uint64_t address, int line_bytes, int slices);

/** Find the slices nearest to each core, by the latency of the path, and use them. */
rg_status rg_noc_mapping_near(rg_arena *arena, rg_noc_mapping *map, rg_err *err);
/** The node that core (its number in the group) asks for an address. */
int rg_noc_mapping_slice(const rg_noc_mapping *map, int core, uint64_t address);

/** Flits of a message: bytes over the flit, rounded up, at least 1. */
int32_t rg_noc_flits(double bytes, double flit_bytes);

/** Load a trace. Errors: RG_ERR_INPUT with line and column (or byte) of what is wrong: unknown
 * nodes, unknown ids, negative cycles; RG_ERR_LIMIT beyond 100 million messages. */
rg_status rg_noc_trace_load(rg_arena *arena, const char *path, const rg_noc_mapping *map,
                            rg_noc_trace *out, rg_err *err);
rg_status rg_noc_trace_parse(rg_arena *arena, const char *name, const char *text, size_t length,
                             const rg_noc_mapping *map, rg_noc_trace *out, rg_err *err);

typedef enum rg_noc_operator_kind {
    RG_NOC_GEMM,      /* Y[m,n] = X[m,k] W[n,k]: output tiles on the cores, operands from slices */
    RG_NOC_KV_READ,   /* each core streams its share of the KV cache */
    RG_NOC_ALLREDUCE, /* ring among the cores: reduce-scatter, then all-gather */
    RG_NOC_ALLREDUCE_L2, /* every core adds its part into the slices, then reads the sum */
} rg_noc_operator_kind;
extern const char *const rg_noc_operator_names[];

typedef struct rg_noc_operator {
    rg_noc_operator_kind kind;
    int64_t m, n, k;            /* GEMM */
    int tile_m, tile_n, tile_k; /* elements */
    int stages;                 /* k-steps that a core has in flight */
    double element_bytes;
    int64_t bytes; /* KV read: in all; all-reduce: of each core */
    int window;    /* lines in flight per core */
} rg_noc_operator;

/** The messages of an operator, as fast as the network lets it: no time for arithmetic.
 * Errors: RG_ERR_MODEL for sizes below one, RG_ERR_LIMIT beyond 100 million messages. */
rg_status rg_noc_operator_trace(rg_arena *arena, const rg_noc_operator *op,
                                const rg_noc_mapping *map, rg_noc_trace *out, rg_err *err);

/* Growing lists, for the readers and generators. */
typedef struct rg_noc_trace_builder {
    rg_arena *arena;
    rg_noc_trace *trace;
    int64_t send_room, order_room;
    rg_err *err;
} rg_noc_trace_builder;
rg_status rg_noc_trace_add(rg_noc_trace_builder *builder, rg_noc_send send);
rg_status rg_noc_trace_order(rg_noc_trace_builder *builder, rg_noc_order order);

#endif

/* noc/design.h: an on-chip network as its file describes it: topology, routers, groups of nodes.
 *
 * Reads core, noc/sim.h. Files are YAML (kind: noc), BookSim anynet (any other ending), or a few
 * words: "mesh:8x8", "torus:4x4x4", "ring:16", "crossbar:16", "fly:4,3", "tree:4,3".
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_NOC_DESIGN_H
#define RG_NOC_DESIGN_H

#include "noc/sim.h"

/** Nodes of one kind, numbered in a row: SMs, L2 slices, memory stacks, link ports. */
typedef struct rg_noc_group {
    const char *name;
    int first, count;
} rg_noc_group;

enum { RG_NOC_MAX_GROUPS = 16 };

typedef struct rg_noc_design {
    const char *name, *title;
    const char *path; /* NULL when it came from words */
    rg_noc_graph *graph;
    rg_noc_router router;
    rg_noc_group groups[RG_NOC_MAX_GROUPS]; /* group 0 is "all" */
    int group_count;
    double clock_hz;     /* 0: not given; rates are then per cycle only */
    double flit_bytes;   /* 0: not given */
    double header_bytes; /* address and command that travel with a request and with data; 8 unless
                            the file says otherwise, 0 where they have wires of their own */
    const char *const *assumed; /* figures of the file whose source says "assumed", in words */
    int assumed_count;
} rg_noc_design;

/** Load by name (looked up in hw/noc), path or words. Errors: RG_ERR_INPUT with the place,
 * RG_ERR_USAGE for an unknown name, RG_ERR_MODEL for what cannot be built. */
rg_status rg_noc_design_load(rg_arena *arena, const char *what, rg_noc_design **out, rg_err *err);

/** A router as in many papers: 4 VCs of 8 flits, lookahead routing, one cycle each for VC and
 * switch allocation and traversal, routed as the topology asks. */
rg_noc_router rg_noc_router_default(const rg_noc_graph *graph);

/** The group by name; RG_ERR_USAGE with the list when there is none. */
rg_status rg_noc_design_group(const rg_noc_design *design, const char *name,
                              const rg_noc_group **out, rg_err *err);

#endif

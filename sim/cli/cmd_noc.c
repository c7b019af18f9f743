/* cli/cmd_noc.c: latency, throughput and hot links of an on-chip network. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"
#include "cli/noc.h"

extern const rg_command rg_cmd_noc;

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    rg_report *report;
    RG_TRY(rg_arg_report(arena, args, 1, &report, err));
    if (rg_arg_given(args, "replay")) {
        if (rg_arg_operands(args) > 0)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "--replay takes its network from the curve; leave '%.80s' out, or give "
                           "an anynet file with --topology",
                           rg_arg_operand(args, 0));
        return rg_noc_command_replay(arena, args, report, err);
    }
    if (rg_arg_given(args, "hw"))
        return rg_noc_command_feed(arena, args, report, err);
    if (rg_arg_operands(args) == 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "no network; name one (mesh:8x8, a file of hw/noc, an anynet file) or give "
                       "--replay CURVE.csv");
    if (rg_arg_given(args, "trace") || rg_arg_given(args, "operator"))
        return rg_noc_command_trace(arena, args, report, err);
    return rg_noc_command_run(arena, args, report, err);
}

static const rg_option options[] = {
    {"hw", 0, "NAME", NULL, "the network that this accelerator's file names, and what it feeds",
     false},
    {"traffic", 't', "PATTERN", "uniform",
     "uniform, transpose, bitcomp, bitrev, shuffle, tornado, neighbor, diagonal, asymmetric, "
     "hotspot({{nodes},{weights}}) or permutation(SEED)",
     false},
    {"from", 0, "GROUP", NULL, "nodes that send (all), or ask (sm)", false},
    {"to", 0, "GROUP", NULL, "nodes that are sent to, each alike, or that answer (slice)", false},
    {"workload", 0, "FILE", NULL,
     "classes of traffic with their rates and channels (kind: noc-traffic)", false},
    {"load", 'l', "L,...", NULL, "flits per sending node and cycle; default: a sweep", true},
    {"packet", 0, "FLITS", "1", "flits per packet", false},
    {"request-reply", 0, "R,RR,W,WR", NULL,
     "answer each request: flits of read request, read reply, write request, write reply", false},
    {"write-share", 0, "SHARE", "0.25", "share of writes among the requests", false},
    {"saturation", 0, NULL, NULL, "find the saturation load by bisection", false},
    {"closed", 0, NULL, NULL, "closed form only, no simulation", false},
    {"links", 0, "N", "8", "rows of the table of busiest links", false},
    {"plot", 0, "FILE", NULL, "draw latency against load (.svg, .png, .pdf)", false},
    {"heat", 0, "FILE", NULL, "draw the links by utilisation (.svg, .png, .pdf)", false},
    {"vcs", 0, "N", NULL, "virtual channels per port, instead of the network's", false},
    {"buffer", 0, "FLITS", NULL, "flits per virtual channel, instead of the network's", false},
    {"routing", 0, "NAME", NULL,
     "table, torus, tree, adaptive, valiant, romm, xy_yx, adaptive_xy_yx or tree_adaptive", false},
    {"allocator", 0, "NAME", NULL,
     "separable_input_first, separable_output_first, islip or wavefront", false},
    {"speculative", 0, NULL, NULL, "heads bid for VC and switch at once", false},
    {"cycles", 0, "N", "1000", "cycles of a sample period; three of warm-up, five at most after",
     false},
    {"seeds", 0, "N", "3", "runs per point, averaged (replay: one, with the reference's packets)",
     false},
    {"trace", 0, "FILE", NULL,
     "run a trace: CSV cycle,src,dst,bytes[,class,id,after,delay], netrace, or SCALE-Sim", false},
    {"operator", 0, "NAME", NULL,
     "run an operator's traffic: gemm, kv-read, allreduce, allreduce-l2", false},
    {"shape", 0, "MxNxK", "2048x2048x1024", "product of --operator gemm", false},
    {"tile", 0, "MxNxK", "128x128x64", "output tile and k-step of a core", false},
    {"stages", 0, "N", "4", "k-steps that a core has in flight", false},
    {"element", 0, "BYTES", "2", "bytes of an operand's element", false},
    {"bytes", 0, "SIZE", "16 MiB", "KV cache to read, or what each core reduces", false},
    {"window", 0, "LINES", "64", "lines that a core has in flight", false},
    {"line", 0, "BYTES", "128", "bytes of one read", false},
    {"near", 0, NULL, NULL, "cores read from their nearest slices, which hold copies", false},
    {"slice-delay", 0, "CYCLES", "0", "cycles from a request's arrival to its reply", false},
    {"flit", 0, "SIZE", NULL, "bytes of a flit, instead of the network's", false},
    {"max-packet", 0, "FLITS", "32", "longer messages go as several packets", false},
    {"replay", 0, "CURVE.csv", NULL, "run every row of a reference curve and compare", false},
    {"topology", 0, "FILE", NULL, "anynet file of the curve, instead of its network column", false},
    {"strict", 0, NULL, NULL, "exit 1 when a replayed row is outside its tolerance", false},
    {"check", 0, NULL, NULL, "verify flits and credits at every cycle (slow)", false},
    {0}};

const rg_command rg_cmd_noc = {
    .name = "noc",
    .group = "answer",
    .summary = "latency, throughput and hot links of an on-chip network",
    .operands = "[NETWORK]",
    .least_operands = 0,
    .most_operands = 1,
    .description =
        "Simulates an on-chip network cycle by cycle: input-queued virtual-channel routers with "
        "credit flow control. NETWORK is a name from hw/noc, a YAML file, a BookSim anynet file, "
        "or words: mesh:8x8, torus:4x4x4, ring:16, crossbar:16, fly:4,3, tree:4,3.\n\n"
        "The closed form (empty-network latency, channel loads, bounds) is always printed beside. "
        "Where the network is saturated there is no steady latency, and none is printed; what "
        "gets through still is.\n\n"
        "--replay runs each row of a reference curve with every parameter from its columns, on the "
        "very packets that BookSim 2 draws from the row's seed, so that what differs is the model.",
    .examples = "  ridge noc mesh:8x8 --saturation\n"
                "  ridge noc h100-like --from sm --to slice --closed\n"
                "  ridge noc torus:8x8 -t tornado -l 0.1,0.2 --heat links.svg\n"
                "  ridge noc h100-like --operator kv-read --bytes '32 MiB'\n"
                "  ridge noc --replay m8_uni_p1_v4_b8.csv\n",
    .options = options,
    .run = run,
};

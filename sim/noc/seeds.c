/* noc/seeds.c: the same run with several seeds, averaged. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core/stat.h"
#include "noc/state.h"

enum { MOST_SEEDS = 1024 };

static double field_of(const rg_noc_result *r, size_t offset)
{
    return *(const double *)((const char *)r + offset);
}

/* Mean over the runs, or their median; NaN when one of them has no value. */
static double middle_of(const rg_noc_result *r, int n, size_t offset, bool median)
{
    double value[MOST_SEEDS], sum = 0.0;
    for (int i = 0; i < n; i++) {
        value[i] = field_of(&r[i], offset);
        if (isnan(value[i]))
            return NAN;
        sum += value[i];
    }
    if (!median)
        return sum / n;
    rg_stat_sort(value, (size_t)n);
    return rg_stat_quantile_sorted(value, (size_t)n, 0.5);
}

/* Averages over the runs; a latency only when every run has one. Past saturation the median: a
 * network that collapses does so at another time in each run, and some runs not at all. */
static void average_results(const rg_noc_result *r, int n, rg_noc_result *out)
{
    static const size_t reals[] = {
#define SPREAD(name)                                                          \
    offsetof(rg_noc_result, name.mean), offsetof(rg_noc_result, name.p50),    \
        offsetof(rg_noc_result, name.p90), offsetof(rg_noc_result, name.p95), \
        offsetof(rg_noc_result, name.p99), offsetof(rg_noc_result, name.p999)
        SPREAD(packet_latency),
        SPREAD(network_latency),
        SPREAD(per_hop),
#undef SPREAD
        offsetof(rg_noc_result, fragmentation),
        offsetof(rg_noc_result, hops),
        offsetof(rg_noc_result, offered),
        offsetof(rg_noc_result, injected),
        offsetof(rg_noc_result, accepted),
        offsetof(rg_noc_result, accepted_packets),
        offsetof(rg_noc_result, accepted_least),
        offsetof(rg_noc_result, accepted_most),
        offsetof(rg_noc_result, fairness),
    };
    *out = r[0];
    double means[MOST_SEEDS];
    for (int i = 0; i < n; i++)
        out->saturated |= r[i].saturated;
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        *(double *)((char *)out + reals[i]) = middle_of(r, n, reals[i], out->saturated);
    for (int i = 0; i < n; i++) {
        means[i] = r[i].packet_latency.mean;
        out->deadlocked |= r[i].deadlocked;
        out->converged &= r[i].converged;
        if (i == 0)
            continue;
        out->cycles += r[i].cycles;
        out->flit_hops += r[i].flit_hops;
        out->measured_cycles += r[i].measured_cycles;
        out->packet_latency.count += r[i].packet_latency.count;
        out->packet_latency.least = fmin(out->packet_latency.least, r[i].packet_latency.least);
        out->packet_latency.most = fmax(out->packet_latency.most, r[i].packet_latency.most);
    }
    if (n >= 3 && !isnan(out->packet_latency.mean))
        out->packet_half_width = rg_stat_mean_half_width(means, (size_t)n, 0.95);
    if (out->saturated)
        rg_noc_state_blank_latencies(out);
}

static void average_arrays(rg_noc_result *r, int n, const rg_noc_graph *graph, rg_noc_result *out)
{
    for (int i = 1; i < n; i++) {
        for (int o = 0; o < graph->outputs; o++)
            out->link_load[o] += r[i].link_load[o];
        for (int k = 0; k < graph->nodes; k++) {
            out->node_accepted[k] += r[i].node_accepted[k];
            out->node_injected[k] += r[i].node_injected[k];
        }
    }
    for (int o = 0; o < graph->outputs; o++)
        out->link_load[o] /= n;
    for (int k = 0; k < graph->nodes; k++) {
        out->node_accepted[k] /= n;
        out->node_injected[k] /= n;
    }
}

rg_status rg_noc_run_seeds(rg_arena *arena, const rg_noc_config *config,
                           const rg_noc_protocol *protocol, int seeds, bool detail,
                           rg_noc_result *out, rg_err *err)
{
    if (seeds < 1 || seeds > MOST_SEEDS)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "'%d' seeds; 1 to %d can be averaged", seeds,
                       MOST_SEEDS);
    rg_noc_result *results = RG_NEW(arena, rg_noc_result, seeds, err);
    rg_status *status = RG_NEW(arena, rg_status, seeds, err);
    rg_err *errors = RG_NEW(arena, rg_err, seeds, err);
    rg_arena **arenas = RG_NEW(arena, rg_arena *, seeds, err);
    if (results == NULL || status == NULL || errors == NULL || arenas == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < seeds; i++) /* arenas are not shared among threads */
        arenas[i] = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < seeds; i++) {
        rg_noc_config mine = *config;
        uint64_t mix = config->seed + 0x632be59bd9b4e019u * (uint64_t)i;
        mine.seed = i == 0 ? config->seed : rg_rng_splitmix(&mix);
        status[i] = arenas[i] == NULL
                        ? RG_ERR_LIMIT
                        : rg_noc_run(arenas[i], &mine, protocol, detail, &results[i], &errors[i]);
    }
    rg_status first = RG_OK;
    for (int i = 0; i < seeds && first == RG_OK; i++) {
        first = status[i];
        if (first != RG_OK && err != NULL)
            *err = errors[i];
    }
    if (first == RG_OK) {
        average_results(results, seeds, out);
        if (detail) {
            rg_noc_result kept = *out;
            average_arrays(results, seeds, config->graph, &kept);
            const size_t nodes = (size_t)config->graph->nodes;
            const size_t outputs = (size_t)config->graph->outputs;
            out->link_load = RG_NEW(arena, double, outputs, err);
            out->node_accepted = RG_NEW(arena, double, nodes, err);
            out->node_injected = RG_NEW(arena, double, nodes, err);
            if (out->link_load != NULL && out->node_accepted != NULL &&
                out->node_injected != NULL) {
                memcpy(out->link_load, kept.link_load, outputs * sizeof(double));
                memcpy(out->node_accepted, kept.node_accepted, nodes * sizeof(double));
                memcpy(out->node_injected, kept.node_injected, nodes * sizeof(double));
            } else {
                first = RG_ERR_LIMIT;
            }
        }
    }
    for (int i = 0; i < seeds; i++)
        rg_arena_free(arenas[i]);
    return first;
}

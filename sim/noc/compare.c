/* noc/compare.c: replayed rows run, and set against their reference. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "core/rng.h"
#include "noc/replay.h"

/* Load at which the latency reaches three times that of the lowest load, by linear interpolation;
 * infinite when no stable row gets there. */
static double load_at_three_times(const rg_noc_replay *replay)
{
    const rg_noc_reference *first = &replay->rows[0].reference, *before = first;
    const double limit = 3.0 * first->packet_latency;
    for (int i = 1; i < replay->count; i++) {
        const rg_noc_reference *ref = &replay->rows[i].reference;
        if (!ref->stable || !(ref->packet_latency > before->packet_latency))
            continue;
        if (ref->packet_latency >= limit)
            return before->offered_flits + (ref->offered_flits - before->offered_flits) *
                                               (limit - before->packet_latency) /
                                               (ref->packet_latency - before->packet_latency);
        before = ref;
    }
    return INFINITY;
}

/* Saturation of the reference: the most that it lets through, per injecting node, or the load at
 * which latency has tripled when that comes first. */
void rg_noc_replay_find_saturation(rg_noc_replay *replay)
{
    for (int i = 0; i < replay->count; i++) {
        const rg_noc_replay_row *row = &replay->rows[i];
        double through = row->reference.accepted * row->config.graph->nodes / row->injecting_nodes;
        if (isnan(through))
            through = row->reference.stable ? row->reference.offered_flits : 0.0;
        through = fmin(through, row->reference.offered_flits);
        replay->saturation = fmax(replay->saturation, through);
        replay->saturation_bracketed |= !row->reference.stable;
    }
    replay->saturation = fmin(replay->saturation, load_at_three_times(replay));
}

rg_status rg_noc_replay_run(rg_arena *arena, rg_noc_replay *replay, int seeds, bool check,
                            rg_err *err)
{
    const int count = replay->count;
    rg_status *status = RG_NEW(arena, rg_status, count, err);
    rg_err *errors = RG_NEW(arena, rg_err, count, err);
    if (status == NULL || errors == NULL)
        return RG_ERR_LIMIT;
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < count; i++) {
        rg_noc_replay_row *row = &replay->rows[count - 1 - i]; /* the heaviest come last */
        rg_arena *work = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
        uint64_t mix = row->config.seed ^ (uint64_t)(count - i) << 32;
        row->config.check = check;
        row->config.lockstep = seeds == 0;
        if (seeds > 0) /* rows of one curve often share a seed; their runs should not */
            row->config.seed = rg_rng_splitmix(&mix);
        status[i] = work == NULL
                        ? RG_ERR_LIMIT
                        : rg_noc_run_seeds(work, &row->config, &row->protocol,
                                           seeds > 0 ? seeds : 1, false, &row->result, &errors[i]);
        rg_arena_free(work);
    }
    for (int i = count - 1; i >= 0; i--)
        if (status[i] != RG_OK)
            return rg_fail(err, status[i], replay->rows[count - 1 - i].pos, "%s", errors[i].text);
    return RG_OK;
}

rg_noc_deviation rg_noc_replay_compare(const rg_noc_replay *replay, const rg_noc_replay_row *row)
{
    const rg_noc_reference *ref = &row->reference;
    const rg_noc_result *got = &row->result;
    rg_noc_deviation d = {.load_share = ref->offered_flits / replay->saturation};
    const double expected = ref->packet_latency + row->cycles_per_hop * (got->hops - ref->hops);
    d.latency_cycles = ref->stable ? got->packet_latency.mean - expected : NAN;
    d.latency_ratio = d.latency_cycles / expected;
    d.hops_ratio = got->hops / ref->hops - 1.0;
    d.accepted_ratio = got->accepted / ref->accepted - 1.0;
    if (!ref->stable) {
        d.judged = true;
        d.within = fabs(d.accepted_ratio) <= 0.03;
    } else if (d.load_share <= 0.7) {
        d.judged = true;
        d.within = fabs(d.latency_ratio) <= 0.02 || fabs(d.latency_cycles) <= 0.5;
    } else if (d.load_share <= 0.9) {
        d.judged = true;
        d.within = fabs(d.latency_ratio) <= 0.08;
    }
    return d;
}

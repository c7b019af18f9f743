/* noc/measure.c: how long to run, what to count, and when there is no latency to report. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "core/stat.h"
#include "noc/state.h"
#include "noc/sweep.h"

/* One source may lag by this times the share that all together may. */
static const double WORST_LAG = 2.5;

/* Upper end of bucket i, the exact value below TALLY_EXACT. */
static double bucket_value(int i)
{
    if (i < TALLY_EXACT)
        return i;
    const int step = (i - TALLY_EXACT) % TALLY_STEPS, power = (i - TALLY_EXACT) / TALLY_STEPS + 11;
    return ldexp(TALLY_STEPS + step + 0.5, power - 7);
}

static double tally_quantile(const tally *t, double q)
{
    const double rank = q * (double)(t->count - 1);
    double before = 0.0;
    for (int i = 0; i < TALLY_BUCKETS; i++) {
        before += t->bucket[i];
        if (before > rank)
            return bucket_value(i);
    }
    return t->most;
}

static rg_noc_spread tally_spread(const tally *t, double scale)
{
    if (t->count == 0)
        return (rg_noc_spread){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    return (rg_noc_spread){.count = t->count,
                           .mean = t->sum / (double)t->count * scale,
                           .least = t->least * scale,
                           .p50 = tally_quantile(t, 0.50) * scale,
                           .p90 = tally_quantile(t, 0.90) * scale,
                           .p95 = tally_quantile(t, 0.95) * scale,
                           .p99 = tally_quantile(t, 0.99) * scale,
                           .p999 = tally_quantile(t, 0.999) * scale,
                           .most = t->most * scale};
}

static void clear_tally(tally *t)
{
    memset(t->bucket, 0, TALLY_BUCKETS * sizeof *t->bucket);
    t->count = 0;
    t->sum = 0.0;
    t->least = UINT32_MAX;
    t->most = 0;
}

static void clear_counts(rg_noc_sim *s)
{
    clear_tally(&s->packet_latency);
    clear_tally(&s->network_latency);
    clear_tally(&s->per_hop);
    s->fragmentation = s->hop_sum = 0.0;
    for (uint32_t n = 0; n < s->nodes; n++)
        s->node_injected[n] = s->node_accepted[n] = s->node_packets[n] = 0;
    for (uint32_t o = 0; o < s->outputs + s->nodes; o++)
        s->output[o].flits = 0;
    for (int b = 0; b < BATCHES; b++) {
        s->batch_sum[b] = 0.0;
        s->batch_count[b] = 0;
    }
}

/* Age of what is in the network, a packet counted once for each flit that has not arrived. */
static void age_in_flight(const rg_noc_sim *s, bool recorded_only, double *sum, double *count)
{
    for (uint32_t i = 0; i < s->pool_size; i++) {
        const packet *p = &s->pool[i];
        if (p->length == 0 || (recorded_only && !(p->flags & PACKET_RECORD)))
            continue;
        const double left = p->length - p->arrived;
        *sum += left * (double)(s->now - p->birth);
        *count += left;
    }
}

rg_status rg_noc_state_step(rg_noc_sim *s, int64_t cycles, rg_err *err)
{
    if (!s->config->check) {
        rg_noc_sim_step(s, cycles);
    } else {
        for (int64_t i = 0; i < cycles; i++) {
            rg_noc_sim_step(s, 1);
            RG_TRY(rg_noc_sim_check(s, err));
        }
    }
    if (s->starved)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE,
                       "packets that wait at their sources no longer fit in memory; the offered "
                       "load is far above saturation");
    return RG_OK;
}

static int64_t accepted_flits(const rg_noc_sim *s)
{
    int64_t sum = 0;
    for (uint32_t n = 0; n < s->nodes; n++)
        sum += s->node_accepted[n];
    return sum;
}

static bool sources_behind(const rg_noc_sim *s)
{
    for (uint32_t i = 0; i < s->nodes * (uint32_t)s->config->class_count; i++)
        if (s->source[i].birth < s->drain_from)
            return true;
    return false;
}

/* Let every recorded packet arrive; *late when their average age passes the threshold first. */
static rg_status drain(rg_noc_sim *s, const rg_noc_protocol *p, bool *late, rg_err *err)
{
    s->counting = false;
    s->drain_from = s->now;
    for (int64_t steps = 1; s->recorded_out > 0 || sources_behind(s); steps++) {
        RG_TRY(rg_noc_state_step(s, 1, err));
        if (steps % 1000 != 0)
            continue;
        double sum = s->packet_latency.sum, count = (double)s->packet_latency.count;
        age_in_flight(s, true, &sum, &count);
        if (count > 0.0 && sum / count > p->latency_threshold) {
            *late = true;
            return RG_OK;
        }
        if (rg_noc_sim_deadlocked(s) > 0) {
            *late = true;
            return RG_OK;
        }
    }
    return RG_OK;
}

typedef struct progress {
    double latency, accepted; /* of the period before */
    int agreed;
    bool running, late; /* late: the average age has passed the threshold */
    uint32_t since;     /* cycle of the last clearing */
    double backlog;     /* flits that waited at the sources then */
} progress;

static double relative_change(double now, double before)
{
    return fabs((now - before) / now); /* 0/0 and x/0 compare as not above any threshold */
}

/* Look at the figures after one period; true ends the run. */
static bool judge_period(rg_noc_sim *s, const rg_noc_protocol *p, progress *g)
{
    const double latency = s->packet_latency.sum / (double)s->packet_latency.count;
    const double accepted =
        (double)accepted_flits(s) / (double)(s->now - g->since) / (double)s->nodes;
    const bool latency_moves = relative_change(latency, g->latency) > p->stop_threshold;
    const bool accepted_moves = relative_change(accepted, g->accepted) > p->stop_threshold;
    g->latency = latency;
    g->accepted = accepted;
    double sum = s->packet_latency.sum, count = (double)s->packet_latency.count;
    age_in_flight(s, false, &sum, &count);
    g->late |= count > 0.0 && sum / count > p->latency_threshold;
    if (p->latency && g->late)
        return true;
    if (g->running)
        g->agreed = (p->latency && latency_moves) || accepted_moves ? 0 : g->agreed + 1;
    return g->agreed >= 3;
}

static double offered_load(const rg_noc_config *config)
{
    if (config->sends != NULL)
        return NAN;
    double sum = 0.0;
    for (int c = 0; c < config->class_count; c++)
        for (int n = 0; n < config->graph->nodes; n++) {
            const rg_noc_class *cl = &config->classes[c];
            sum += cl->packets_per_cycle * (cl->node_factor ? cl->node_factor[n] : 1.0) *
                   rg_noc_class_flits(cl);
        }
    return sum / config->graph->nodes;
}

static double longest_packet(const rg_noc_config *config)
{
    double most = 1.0;
    for (int c = 0; c < config->class_count; c++)
        most = fmax(most, rg_noc_class_flits(&config->classes[c]));
    return most;
}

/* Flits in the network and those that sources are behind with: drawn traffic is made when its turn
 * comes, so a source that lags by some cycles owes what its rate makes in them. */
static double backlog_of(const rg_noc_sim *s)
{
    const uint32_t classes = (uint32_t)s->config->class_count;
    double flits = (double)(s->flits_in - s->flits_out);
    for (uint32_t i = 0; i < s->nodes * classes; i++) {
        const rg_noc_class *cl = &s->config->classes[i % classes];
        const double factor = cl->node_factor != NULL ? cl->node_factor[i / classes] : 1.0;
        if (s->source[i].birth < s->now)
            flits += (double)(s->now - s->source[i].birth) * cl->packets_per_cycle * factor *
                     rg_noc_class_flits(cl);
        for (uint32_t p = s->source[i].queue; p != RG_NOC_NONE; p = s->pool[p].link)
            flits += s->pool[p].length;
    }
    return flits;
}

/* Cycles by which the worst source is behind. A few flows of a permutation may be choked while the
 * rest, and so the average, look well. */
static double worst_lag(const rg_noc_sim *s)
{
    uint64_t worst = 0;
    for (uint32_t i = 0; i < s->nodes * (uint32_t)s->config->class_count; i++)
        if (s->source[i].birth < s->now && s->now - s->source[i].birth > worst)
            worst = s->now - s->source[i].birth;
    return (double)worst;
}

/* Does more wait now than chance explains? What a steady network holds goes up and down by about
 * the root of its packets, and a source that drew some packets in a row lags by their flits. */
static bool falls_behind(const rg_noc_sim *s, const rg_noc_protocol *p, const progress *g)
{
    const double cycles = (double)(s->now - g->since), length = longest_packet(s->config);
    const double offered = offered_load(s->config) * s->nodes * cycles;
    const double backlog = backlog_of(s);
    const double chance = 3.0 * length * sqrt(backlog / length + 1.0);
    return backlog - g->backlog > p->backlog_threshold * offered + chance ||
           worst_lag(s) > WORST_LAG * p->backlog_threshold * cycles + 10.0 * length;
}

static rg_status run_periods(rg_noc_sim *s, const rg_noc_protocol *p, progress *g, rg_err *err)
{
    *g = (progress){.latency = NAN, .accepted = NAN};
    s->counting = true;
    s->batch_length =
        (uint32_t)((int64_t)p->sample_period * (p->max_periods - p->warmup_periods) / BATCHES);
    s->batch_length = s->batch_length > 0 ? s->batch_length : 1;
    s->warming = true;
    for (int period = 0; period < p->max_periods; period++) {
        if (period == p->warmup_periods) {
            s->warming = false;
            rg_noc_state_start_counting(s);
            g->running = true;
            g->since = s->now;
            g->backlog = backlog_of(s);
        } else if (s->warming &&
                   period % 2 == 0) { /* so that the last one tells the steady state */
            clear_counts(s);
            g->since = s->now;
        }
        RG_TRY(rg_noc_state_step(s, p->sample_period, err));
        if (judge_period(s, p, g))
            break;
    }
    if (g->running && falls_behind(s, p, g))
        g->late = true;
    if (rg_noc_sim_deadlocked(s) > 0)
        g->late = true;
    return RG_OK;
}

static double jain(const uint32_t *got, const rg_noc_config *config, uint32_t nodes)
{
    double sum = 0.0, squares = 0.0;
    int count = 0;
    for (uint32_t n = 0; n < nodes; n++) {
        const double *factor = config->classes[0].node_factor;
        if (factor != NULL && factor[n] == 0.0)
            continue;
        const double share = factor != NULL ? got[n] / factor[n] : got[n]; /* of what it asks for */
        sum += share;
        squares += share * share;
        count++;
    }
    return squares > 0.0 ? sum * sum / (count * squares) : NAN;
}

static rg_status fill_arrays(rg_arena *arena, const rg_noc_sim *s, double cycles,
                             rg_noc_result *out, rg_err *err)
{
    out->link_load = RG_NEW(arena, double, s->outputs, err);
    out->node_accepted = RG_NEW(arena, double, s->nodes, err);
    out->node_injected = RG_NEW(arena, double, s->nodes, err);
    if (out->link_load == NULL || out->node_accepted == NULL || out->node_injected == NULL)
        return RG_ERR_LIMIT;
    for (uint32_t o = 0; o < s->outputs; o++)
        out->link_load[o] = s->output[o].flits / cycles;
    for (uint32_t n = 0; n < s->nodes; n++) {
        out->node_accepted[n] = s->node_accepted[n] / cycles;
        out->node_injected[n] = s->node_injected[n] / cycles;
    }
    return RG_OK;
}

/* Rates over the measured cycles; taken before the drain, which is not measured. */
static void fill_rates(const rg_noc_sim *s, double cycles, rg_noc_result *out)
{
    double injected = 0.0, accepted = 0.0, packets = 0.0;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t n = 0; n < s->nodes; n++) {
        injected += s->node_injected[n];
        accepted += s->node_accepted[n];
        packets += s->node_packets[n];
        least = s->node_accepted[n] < least ? s->node_accepted[n] : least;
        most = s->node_accepted[n] > most ? s->node_accepted[n] : most;
    }
    out->offered = offered_load(s->config);
    out->injected = injected / cycles / s->nodes;
    out->accepted = accepted / cycles / s->nodes;
    out->accepted_packets = packets / cycles / s->nodes;
    out->accepted_least = least / cycles;
    out->accepted_most = most / cycles;
    out->fairness = jain(s->node_injected, s->config, s->nodes);
    out->measured_cycles = (int64_t)cycles;
}

/* 95 % by batch means over the batches that have packets (Law, "Simulation Modeling and Analysis",
 * 5th ed., section 9.5.3). */
static double batch_half_width(const rg_noc_sim *s)
{
    double mean[BATCHES];
    size_t count = 0;
    for (int b = 0; b < BATCHES; b++)
        if (s->batch_count[b] > 0)
            mean[count++] = s->batch_sum[b] / (double)s->batch_count[b];
    return count >= 8 ? rg_stat_mean_half_width(mean, count, 0.95) : NAN;
}

static void fill_latencies(const rg_noc_sim *s, rg_noc_result *out)
{
    out->packet_latency = tally_spread(&s->packet_latency, 1.0);
    out->network_latency = tally_spread(&s->network_latency, 1.0);
    out->per_hop = tally_spread(&s->per_hop, 1.0 / 16.0);
    out->packet_half_width = batch_half_width(s);
    const double count = (double)s->packet_latency.count;
    out->fragmentation = count > 0.0 ? s->fragmentation / count : NAN;
    out->hops = count > 0.0 ? s->hop_sum / count : NAN;
}

void rg_noc_state_start_counting(rg_noc_sim *s)
{
    clear_counts(s);
    s->counting = s->recording = true;
    s->record_from = s->now;
}

rg_status rg_noc_state_results(rg_arena *arena, const rg_noc_sim *s, double cycles, bool detail,
                               rg_noc_result *out, rg_err *err)
{
    fill_rates(s, cycles, out);
    fill_latencies(s, out);
    out->cycles = s->now;
    out->flit_hops = s->flit_hops;
    return detail ? fill_arrays(arena, s, cycles, out, err) : RG_OK;
}

void rg_noc_state_blank_latencies(rg_noc_result *out)
{
    const rg_noc_spread none = {0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    out->packet_latency = out->network_latency = out->per_hop = none;
    out->packet_half_width = out->fragmentation = NAN;
}

static rg_status check_protocol(const rg_noc_protocol *p, rg_err *err)
{
    if (p->sample_period < 1 || p->warmup_periods < 0 || p->max_periods <= p->warmup_periods)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "a protocol of '%d' periods with '%d' of warm-up and '%d' cycles each; "
                       "periods must exceed the warm-up and last 1 cycle or more",
                       p->max_periods, p->warmup_periods, p->sample_period);
    if ((int64_t)p->sample_period * p->max_periods > 1000000000)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE,
                       "'%lld' cycles in all; up to 1000000000 can be simulated",
                       (long long)p->sample_period * p->max_periods);
    return RG_OK;
}

static rg_status run_once(rg_arena *work, rg_arena *arena, const rg_noc_config *config,
                          const rg_noc_protocol *protocol, bool detail, bool *late,
                          rg_noc_result *out, rg_err *err)
{
    rg_noc_sim *s;
    progress g;
    RG_TRY(rg_noc_sim_new(work, config, &s, err));
    RG_TRY(run_periods(s, protocol, &g, err));
    const double cycles = (double)(s->now - g.since);
    fill_rates(s, cycles, out);
    if (detail)
        RG_TRY(fill_arrays(arena, s, cycles, out, err));
    *late = g.late;
    if (protocol->latency && !g.late)
        RG_TRY(drain(s, protocol, late, err));
    fill_latencies(s, out);
    out->deadlocked = rg_noc_sim_deadlocked(s) > 0;
    out->converged = g.agreed >= 3 && !*late;
    out->cycles = s->now;
    out->flit_hops = s->flit_hops;
    return RG_OK;
}

rg_status rg_noc_run(rg_arena *arena, const rg_noc_config *config, const rg_noc_protocol *protocol,
                     bool detail, rg_noc_result *out, rg_err *err)
{
    *out = (rg_noc_result){0};
    RG_TRY(check_protocol(protocol, err));
    rg_arena *work = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
    if (work == NULL)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for a simulation");
    bool late = false;
    rg_status status = run_once(work, arena, config, protocol, detail, &late, out, err);
    if (status == RG_OK && protocol->latency && late) {
        /* No steady latency: what can still be said is what gets through. */
        const bool deadlocked = out->deadlocked;
        rg_noc_protocol throughput = *protocol;
        throughput.latency = false;
        rg_arena_reset(work);
        status = run_once(work, arena, config, &throughput, detail, &late, out, err);
        out->deadlocked |= deadlocked;
        out->saturated = true;
    }
    if (!protocol->latency)
        out->saturated |= late || out->accepted < 0.95 * out->offered;
    if (out->saturated || !protocol->latency)
        rg_noc_state_blank_latencies(out);
    rg_arena_free(work);
    if (status == RG_OK && protocol->latency && !out->saturated && out->packet_latency.count == 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "no packet was born in the %lld measured cycles; more cycles or a higher "
                       "load would do",
                       (long long)out->measured_cycles);
    return status;
}

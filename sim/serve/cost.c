/* serve/cost.c: time of one step: what the model of step time says, skew, drafts, the engine.
 *
 * Steps that only decode are asked for on a fine grid of mean lengths and interpolated where asking
 * is costly.
 */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replica.h"

#include <math.h>

/* Of a pass: its time, and the time at full power that its energy is worth. */
typedef struct rg_grid_node {
    double time_s, full_power_s;
} rg_grid_node;

static rg_grid_node ask(const rg_replica *r, const rg_pass *pass)
{
    const double time = r->step->step_time(r->step->context, pass).v;
    return (rg_grid_node){time, r->step->full_power_s ? *r->step->full_power_s
                                                      : time * r->constants->kernel_scale};
}

static rg_grid_node ask_decode(const rg_replica *r, int64_t decodes, double mean)
{
    const rg_pass pass = {.decodes = decodes,
                          .tokens_per_decode = 1 + r->rules->speculation.drafts,
                          .decode_kv_tokens = mean * (double)decodes,
                          .decode_kv_max = mean};
    return ask(r, &pass);
}

/* Grid of mean lengths: every 16 tokens up to 256, then 16 to the octave. */
enum { GRID_LINEAR = 16, GRID_STEP = 16, GRID_NODES = GRID_LINEAR + 16 * 24 };

static double grid_node(int i)
{
    if (i <= GRID_LINEAR)
        return (double)i * GRID_STEP;
    const int octave = (i - GRID_LINEAR) / 16, part = (i - GRID_LINEAR) % 16;
    return ldexp(256.0 * (1 + part / 16.0), octave);
}

static int grid_index(double mean)
{
    if (mean < GRID_LINEAR * GRID_STEP)
        return (int)(mean / GRID_STEP);
    int exponent;
    const double fraction = frexp(mean / 256, &exponent); /* mean/256 = fraction * 2^exponent */
    const int index = GRID_LINEAR + (exponent - 1) * 16 + (int)((fraction * 2 - 1) * 16);
    return index < GRID_NODES - 1 ? index : GRID_NODES - 2;
}

static rg_grid_node decode_cost(rg_replica *r, int64_t decodes, double mean)
{
    if (!r->step->costly || decodes >= r->grid_room)
        return ask_decode(r, decodes, mean);
    rg_grid_node **row = &r->grid[decodes];
    if (!*row) {
        *row = RG_NEW(r->arena, rg_grid_node, GRID_NODES, &r->failed);
        if (!*row)
            return ask_decode(r, decodes, mean);
    }
    const int i = grid_index(mean);
    for (int j = i; j <= i + 1; j++)
        if ((*row)[j].time_s == 0)
            (*row)[j] = ask_decode(r, decodes, grid_node(j));
    const double a = grid_node(i), b = grid_node(i + 1);
    const rg_grid_node *x = &(*row)[i], *y = x + 1;
    return (rg_grid_node){x->time_s + (y->time_s - x->time_s) * (mean - a) / (b - a),
                          x->full_power_s +
                              (y->full_power_s - x->full_power_s) * (mean - a) / (b - a)};
}

double rg_replica_decode_cost(rg_replica *r, int64_t decodes, double mean)
{
    const rg_grid_node x = decode_cost(r, decodes, mean);
    r->full_power_s += x.full_power_s;
    return x.time_s;
}

double rg_replica_skew_cost(rg_replica *r, int64_t decodes, double sum, double most)
{
    const double skew = r->constants->attention_skew, mean = sum / (double)decodes;
    if (mean > 0) { /* every decoding step passes here once */
        r->result->longest_over_mean += most / mean;
        r->result->decoding_steps++;
    }
    if (skew == 0 || most <= mean)
        return 0;
    return skew * (decode_cost(r, decodes, most).time_s - decode_cost(r, decodes, mean).time_s);
}

/* Early layers whose KV is not kept are computed again for all earlier tokens of the sequence. */
static double recompute_cost(rg_replica *r, double tokens)
{
    const double ratio = r->rules->recompute_layers_ratio;
    if (ratio <= 0 || tokens <= 0)
        return 0;
    const rg_chunk chunk = {.new_tokens = (int64_t)tokens};
    const rg_pass pass = {.chunks = &chunk, .chunk_count = 1};
    const rg_grid_node x = ask(r, &pass);
    r->full_power_s += ratio * x.full_power_s;
    return ratio * x.time_s;
}

double rg_replica_batch_cost(rg_replica *r, const rg_batch *b)
{
    double time;
    if (b->chunk_count == 0) {
        time = rg_replica_decode_cost(r, b->decodes, b->kv_sum / (double)b->decodes);
    } else {
        const rg_pass pass = {.chunks = b->chunks,
                              .chunk_count = b->chunk_count,
                              .decodes = b->decodes,
                              .tokens_per_decode = 1 + r->rules->speculation.drafts,
                              .decode_kv_tokens = b->kv_sum,
                              .decode_kv_max = b->decodes ? b->kv_sum / (double)b->decodes : 0,
                              .follows = b->follows};
        const rg_grid_node x = ask(r, &pass);
        r->full_power_s += x.full_power_s;
        time = x.time_s;
    }
    if (b->decodes > 0) {
        time += rg_replica_skew_cost(r, b->decodes, b->kv_sum, b->kv_max);
        const rg_speculation *s = &r->rules->speculation;
        if (s->drafts > 0) {
            const double drafts = (double)s->drafts * s->draft_time_ratio;
            const rg_grid_node x = decode_cost(r, b->decodes, b->kv_sum / (double)b->decodes);
            r->full_power_s += drafts * x.full_power_s;
            time += drafts * x.time_s;
        }
    }
    time += recompute_cost(r, b->recompute_tokens);
    return time * r->constants->kernel_scale + b->extra_s + r->constants->step_overhead_s +
           r->constants->per_sequence_s * (double)(b->count + b->lane_count);
}

/* plan/traffic.c: the requests of a plan. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/traffic.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "core/stat.h"

/* Made-up traffic lasts so many lives of a request as the limits let it be, and three minutes at
 * least; the first third finds the fleet emptier than it will be and is left out of the latencies
 * (a truncated warm-up; Law, Simulation Modeling and Analysis, 5th edition, section 9.5.1). The
 * lengths are assumed. */
static const double least_covered_s = 180, lives = 12;
enum { LEAST_REQUESTS = 1500, MOST_REQUESTS = 20000, REQUESTS_OF_A_USER = 30 };
/* Draws that verify an answer are longer and leave half of themselves out: a fleet that is nearly
 * full takes many lives to settle. */
enum { LONGER = 2, WARM_UP_PART = 3, WARM_UP_PART_LONGER = 2 };

/* Time in the system of a mean request that just keeps the limits, s; 0: they do not say. */
static double life_of(const rg_plan *plan)
{
    double parts[RG_PLAN_METRICS] = {0};
    for (int i = 0; i < plan->limit_count; i++) {
        const rg_plan_limit *x = &plan->limits[i];
        if (!x->assumed && (parts[x->metric] == 0 || x->seconds < parts[x->metric]))
            parts[x->metric] = x->seconds;
    }
    return fmax(parts[RG_PLAN_TTFT] + parts[RG_PLAN_TPOT] * plan->traffic.mean_output,
                parts[RG_PLAN_E2E]);
}

/* Made-up requests that a fleet should see. */
static double requests_wanted(const rg_plan *plan)
{
    const rg_plan_traffic *t = &plan->traffic;
    const double wanted = t->users > 0
                              ? (double)REQUESTS_OF_A_USER * (double)t->users
                              : t->rate_per_s * fmax(least_covered_s, lives * life_of(plan));
    return fmax(wanted, LEAST_REQUESTS);
}

static int64_t request_count(const rg_plan *plan, int draw)
{
    if (plan->traffic.requests > 0)
        return plan->traffic.requests;
    return (int64_t)fmin(requests_wanted(plan), MOST_REQUESTS) * (draw > 0 ? LONGER : 1);
}

/* The user's own requests, their number too, are all judged, in one run. */
static bool users_own(const rg_plan *plan)
{
    return plan->traffic.trace || plan->traffic.requests > 0 || plan->offline;
}

static double coverage_of(const rg_plan *plan)
{
    return plan->traffic.trace || plan->traffic.requests > 0
               ? 1
               : fmin(1, MOST_REQUESTS / requests_wanted(plan));
}

static rg_status open_source(rg_arena *arena, const rg_plan *plan, const rg_traffic_change *change,
                             int draw, uint64_t seed, rg_requests **out, rg_err *err)
{
    const rg_plan_traffic *t = &plan->traffic;
    const double rate = t->rate_per_s * change->rate;
    const rg_arrival_spec open = {.kind = RG_ARRIVE_POISSON, .rate_per_s = rate},
                          at_once = {.kind = RG_ARRIVE_AT_ONCE};
    const rg_arrival_spec *arrivals = rate > 0 ? &open : &at_once;
    if (!t->trace) {
        /* as many requests whatever the change: the same draws at other times */
        const rg_synth_spec spec = {
            .requests = request_count(plan, draw),
            .arrivals = *arrivals,
            .prompt = t->prompt,
            .output = t->output,
            .sessions = {.turns = 1,
                         .system_tokens = (int64_t)((double)t->system_tokens * change->system)},
            .seed = seed};
        return rg_requests_synth(arena, &spec, out, err);
    }
    RG_TRY(rg_requests_open(arena, t->trace, t->trace_format, out, err));
    if (rate > 0 || t->users > 0 || plan->offline)
        RG_TRY(rg_requests_with_arrivals(arena, *out, arrivals, seed, out, err));
    else if (rg_requests_facts(*out)->no_arrivals)
        return rg_fail(
            err, RG_ERR_USAGE, (rg_pos){t->trace, 0, 0},
            "the trace has lengths only; say when requests come with --rate, --users or --offline");
    else if (change->rate != 1)
        RG_TRY(rg_requests_scale_time(arena, *out, change->rate, out, err));
    return t->requests > 0 ? rg_requests_head(arena, *out, t->requests, out, err) : RG_OK;
}

/* ---- into memory */

static rg_status keep_segments(rg_arena *arena, rg_request *q, rg_err *err)
{
    rg_segment *copy = RG_NEW(arena, rg_segment, q->segment_count, err);
    if (!copy)
        return RG_ERR_LIMIT;
    if (q->segment_count > 0)
        memcpy(copy, q->segments, (size_t)q->segment_count * sizeof *copy);
    q->segments = copy;
    return RG_OK;
}

static rg_status read_all(rg_arena *arena, rg_requests *stream, rg_plan_requests *out, rg_err *err)
{
    int64_t room = 0;
    for (;;) {
        rg_request q;
        bool more;
        RG_TRY(rg_requests_next(stream, &q, &more, err));
        if (!more)
            return RG_OK;
        if (out->count == room) {
            room = room > 0 ? 2 * room : 1024;
            rg_request *items = RG_NEW(arena, rg_request, room, err);
            if (!items)
                return RG_ERR_LIMIT;
            if (out->count > 0)
                memcpy(items, out->items, (size_t)out->count * sizeof *items);
            out->items = items;
        }
        RG_TRY(keep_segments(arena, &q, err));
        q.session = -1; /* its turns come when the trace says, whatever the answers */
        out->items[out->count++] = q;
    }
}

/* ---- sums */

/* Which requests a text stands in, open addressing: the first of them, and whether there are more.
 */
typedef struct mentions {
    uint64_t *ids;
    int64_t *first; /* request + 1; 0: none yet */
    bool *more;
    size_t size;
} mentions;

static size_t mention(const mentions *m, uint64_t id)
{
    size_t i = (size_t)(id * 0x9e3779b97f4a7c15u) & (m->size - 1);
    id += id == 0;
    while (m->ids[i] != 0 && m->ids[i] != id)
        i = (i + 1) & (m->size - 1);
    m->ids[i] = id;
    return i;
}

static void add_mention(mentions *m, uint64_t id, int64_t request)
{
    const size_t i = mention(m, id);
    if (m->first[i] == 0)
        m->first[i] = request + 1;
    m->more[i] |= m->first[i] != request + 1;
}

static rg_status list_mentions(rg_arena *arena, const rg_plan_requests *r, mentions *m, rg_err *err)
{
    size_t segments = (size_t)r->count;
    for (int64_t i = 0; i < r->count; i++)
        segments += (size_t)r->items[i].segment_count;
    for (m->size = 16; m->size < 2 * segments;)
        m->size *= 2;
    m->ids = RG_NEW(arena, uint64_t, m->size, err);
    m->first = RG_NEW(arena, int64_t, m->size, err);
    m->more = RG_NEW(arena, bool, m->size, err);
    if (!m->ids || !m->first || !m->more)
        return RG_ERR_LIMIT;
    for (int64_t i = 0; i < r->count; i++) {
        const rg_request *q = &r->items[i];
        for (int k = 0; k < q->segment_count; k++)
            add_mention(m, q->segments[k].id, i);
        if (q->output_id != 0)
            add_mention(m, q->output_id, i);
    }
    return RG_OK;
}

/* Tokens of each prompt that no other request can have left in a cache, whoever is served first. */
static rg_status fresh_tokens(rg_arena *arena, rg_plan_requests *r, double *fresh, rg_err *err)
{
    mentions m = {0};
    RG_TRY(list_mentions(arena, r, &m, err));
    for (int64_t i = 0; i < r->count; i++) {
        const rg_request *q = &r->items[i];
        int64_t shared = 0;
        for (int k = 0; k < q->segment_count; k++)
            if (m.more[mention(&m, q->segments[k].id)])
                shared += q->segments[k].tokens;
        r->shared |= shared > 0;
        const double own = (double)(q->prompt_tokens - shared);
        fresh[i] = fmax(own, 1); /* one token is always computed */
    }
    return RG_OK;
}

static const double *sums_of(rg_arena *arena, const double *values, int64_t count, rg_err *err)
{
    double *sums = RG_NEW(arena, double, count + 1, err);
    if (!sums)
        return NULL;
    if (count > 0)
        memcpy(sums + 1, values, (size_t)count * sizeof *sums);
    rg_stat_sort(sums + 1, (size_t)count);
    for (int64_t i = 1; i <= count; i++)
        sums[i] += sums[i - 1];
    return sums;
}

static rg_status least_sums(rg_arena *arena, rg_plan_requests *r, rg_err *err)
{
    double *fresh = RG_NEW(arena, double, r->count, err), *x = RG_NEW(arena, double, r->count, err);
    if (!fresh || !x)
        return RG_ERR_LIMIT;
    RG_TRY(fresh_tokens(arena, r, fresh, err));
    rg_least_sums *s = &r->least;
    s->fresh = sums_of(arena, fresh, r->count, err);
    for (int64_t i = 0; i < r->count; i++)
        x[i] = fresh[i] + (double)(r->items[i].output_tokens - 1);
    s->tokens = sums_of(arena, x, r->count, err);
    for (int64_t i = 0; i < r->count; i++)
        x[i] = (double)(r->items[i].output_tokens - 1);
    s->decodes = sums_of(arena, x, r->count, err);
    for (int64_t i = 0; i < r->count; i++)
        x[i] = (double)(r->items[i].output_tokens - 1) * (double)r->items[i].prompt_tokens;
    s->decode_cache = sums_of(arena, x, r->count, err);
    return s->fresh && s->tokens && s->decodes && s->decode_cache ? RG_OK : RG_ERR_LIMIT;
}

static void count_up(rg_plan_requests *r)
{
    double prompt = 0, output = 0;
    r->least_prompt = INT64_MAX;
    for (int64_t i = 0; i < r->count; i++) {
        const rg_request *q = &r->items[i];
        prompt += (double)q->prompt_tokens;
        output += (double)q->output_tokens;
        r->least_prompt = q->prompt_tokens < r->least_prompt ? q->prompt_tokens : r->least_prompt;
        r->most_prompt = q->prompt_tokens > r->most_prompt ? q->prompt_tokens : r->most_prompt;
        r->most_output = q->output_tokens > r->most_output ? q->output_tokens : r->most_output;
    }
    r->mean_prompt = prompt / (double)r->count;
    r->mean_output = output / (double)r->count;
    if (r->users > 0)
        return;
    r->span_s = r->items[r->count - 1].arrival_s - r->items[0].arrival_s;
    r->judged_span_s = r->items[r->count - 1].arrival_s - r->items[r->warm_up].arrival_s;
    r->rate_per_s = r->span_s > 0 ? (double)(r->count - 1) / r->span_s : 0;
}

static void change_outputs(rg_plan_requests *r, double factor)
{
    for (int64_t i = 0; factor != 1 && i < r->count; i++) {
        const double tokens = floor((double)r->items[i].output_tokens * factor + 0.5);
        r->items[i].output_tokens = tokens < 1 ? 1 : (int64_t)tokens;
    }
}

rg_status rg_plan_requests_make(rg_arena *arena, const rg_plan *plan, int64_t max_model_tokens,
                                const rg_traffic_change *change, int draw, rg_plan_requests *out,
                                rg_err *err)
{
    rg_requests *stream;
    *out = (rg_plan_requests){.think_s = plan->traffic.think_s,
                              .coverage_ratio = coverage_of(plan),
                              .draws = users_own(plan) ? 1 : RG_PLAN_DRAWS,
                              .seed = plan->seed};
    if (draw > 0) {
        rg_rng rng;
        rg_rng_seed(&rng, plan->seed, (uint64_t)draw);
        out->seed = rg_rng_next(&rng);
    }
    out->users = (int64_t)floor((double)plan->traffic.users * change->rate + 0.5);
    RG_TRY(open_source(arena, plan, change, draw, out->seed, &stream, err));
    rg_status status =
        rg_requests_limit(arena, stream, max_model_tokens, RG_OVERLONG_REJECT, &stream, err);
    if (status == RG_OK)
        status = read_all(arena, stream, out, err);
    const rg_request_facts *facts = rg_requests_facts(stream);
    out->over_long = facts->overlong;
    out->facts = plan->traffic.trace ? facts : NULL;
    rg_requests_close(stream);
    RG_TRY(status);
    if (out->count == 0)
        return rg_fail(err, RG_ERR_INPUT, (rg_pos){plan->traffic.trace, 0, 0},
                       "no request is left: %lld are longer than the model's %lld tokens",
                       (long long)out->over_long, (long long)max_model_tokens);
    out->warm_up =
        users_own(plan) ? 0 : out->count / (draw > 0 ? WARM_UP_PART_LONGER : WARM_UP_PART);
    change_outputs(out, change->output);
    count_up(out);
    return least_sums(arena, out, err);
}

rg_status rg_plan_requests_open(rg_arena *arena, const rg_plan_requests *r, bool one_by_one,
                                double speed_up, rg_requests **out, rg_err *err)
{
    RG_TRY(rg_requests_array(arena, r->items, r->count, out, err));
    if (one_by_one || r->users > 0) {
        const double users = floor((double)r->users * speed_up + 0.5);
        const rg_arrival_spec closed = {.kind = RG_ARRIVE_CLOSED,
                                        .users = one_by_one ? 1 : (int64_t)fmax(users, 1),
                                        .think_s = one_by_one ? 0 : r->think_s};
        return rg_requests_with_arrivals(arena, *out, &closed, r->seed, out, err);
    }
    return speed_up != 1 ? rg_requests_scale_time(arena, *out, speed_up, out, err) : RG_OK;
}

/* trace/req_synth.c: made-up requests: arrival processes, lengths, users in a closed loop, sessions
 * whose turns carry the talk so far.
 */
// SPDX-License-Identifier: Apache-2.0
#include "trace/req_row.h"

#include <math.h>
#include <string.h>

/* ---- arrival processes */

typedef struct process {
    rg_arrival_spec spec;
    rg_rng rng;
    double now;
    double switch_s; /* mmpp: when the state changes */
    bool burst;
} process;

static void process_start(process *p, const rg_arrival_spec *spec, uint64_t seed)
{
    *p = (process){.spec = *spec};
    rg_rng_seed(&p->rng, seed, 1);
    if (spec->kind == RG_ARRIVE_MMPP)
        p->switch_s = spec->calm_s * rg_rng_exponential(&p->rng);
}

/* Next arrival of an open process. MMPP: by memorylessness a draw that passes the change of state
 * is thrown away and drawn again from the change. */
static double process_next(process *p)
{
    const rg_arrival_spec *s = &p->spec;
    switch (s->kind) {
    case RG_ARRIVE_POISSON:
        p->now += rg_rng_exponential(&p->rng) / s->rate_per_s;
        break;
    case RG_ARRIVE_GAMMA: {
        const double shape = 1 / (s->cv * s->cv);
        p->now += rg_rng_gamma(&p->rng, shape) / shape / s->rate_per_s;
        break;
    }
    case RG_ARRIVE_MMPP:
        for (;;) {
            const double rate = p->burst ? s->burst_rate_per_s : s->rate_per_s;
            const double at = p->now + rg_rng_exponential(&p->rng) / rate;
            if (at <= p->switch_s) {
                p->now = at;
                break;
            }
            p->now = p->switch_s;
            p->burst = !p->burst;
            p->switch_s += (p->burst ? s->burst_s : s->calm_s) * rg_rng_exponential(&p->rng);
        }
        break;
    case RG_ARRIVE_UNIFORM:
        p->now += 1 / s->rate_per_s;
        break;
    case RG_ARRIVE_AT_ONCE:
    case RG_ARRIVE_CLOSED:
        break;
    }
    return p->now;
}

static rg_status check_arrivals(const rg_arrival_spec *s, rg_err *err)
{
    const bool rated = s->kind != RG_ARRIVE_AT_ONCE && s->kind != RG_ARRIVE_CLOSED;
    if (rated && !(s->rate_per_s > 0 && isfinite(s->rate_per_s)))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "arrival rate '%g' must be positive, such as 10/s", s->rate_per_s);
    if (s->kind == RG_ARRIVE_GAMMA && !(s->cv > 0 && s->cv <= 100))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "gamma cv '%g' must be within 0 and 100",
                       s->cv);
    if (s->kind == RG_ARRIVE_MMPP && !(s->burst_rate_per_s > 0 && s->calm_s > 0 && s->burst_s > 0))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "mmpp needs two positive rates and two positive stays, such as "
                       "mmpp:2/s,20/s,30s,5s");
    if (s->kind == RG_ARRIVE_CLOSED && (s->users < 1 || s->users > 1000000))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "closed loop of '%lld' users; 1 to 1000000",
                       (long long)s->users);
    return RG_OK;
}

/* ---- lengths */

typedef struct lengths {
    rg_length_spec spec;
    double *cumulative; /* zipf: [most - least + 1] */
} lengths;

enum { MAX_ZIPF = 1 << 20 };

static rg_status lengths_start(rg_arena *arena, lengths *l, const rg_length_spec *spec, rg_err *err)
{
    l->spec = *spec;
    if (spec->least < 1)
        l->spec.least = 1;
    if (spec->kind == RG_LENGTH_LOGNORMAL && !(spec->mean >= 1 && spec->cv >= 0))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "lognormal length of mean '%g' and cv '%g'; wanted a mean of 1 or more",
                       spec->mean, spec->cv);
    if ((spec->kind == RG_LENGTH_UNIFORM || spec->kind == RG_LENGTH_ZIPF) &&
        spec->most < l->spec.least)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "length range '%lld-%lld' is empty",
                       (long long)spec->least, (long long)spec->most);
    if (spec->kind != RG_LENGTH_ZIPF)
        return RG_OK;
    const int64_t n = l->spec.most - l->spec.least + 1;
    if (n > MAX_ZIPF)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "zipf over '%lld' lengths; at most %d",
                       (long long)n, MAX_ZIPF);
    l->cumulative = RG_NEW(arena, double, n, err);
    if (!l->cumulative)
        return RG_ERR_LIMIT;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        l->cumulative[i] = sum += pow((double)(l->spec.least + i), -spec->exponent);
    return RG_OK;
}

static int64_t lengths_draw(const lengths *l, rg_rng *rng)
{
    const rg_length_spec *s = &l->spec;
    double x = s->mean;
    switch (s->kind) {
    case RG_LENGTH_FIXED:
        break;
    case RG_LENGTH_UNIFORM:
        x = (double)s->least + floor(rg_rng_real(rng) * (double)(s->most - s->least + 1));
        break;
    case RG_LENGTH_LOGNORMAL: {
        const double variance = log1p(s->cv * s->cv);
        x = exp(log(s->mean) - variance / 2 + sqrt(variance) * rg_rng_normal(rng));
        break;
    }
    case RG_LENGTH_ZIPF: {
        int64_t low = 0, high = s->most - s->least;
        const double u = rg_rng_real(rng) * l->cumulative[high];
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (l->cumulative[middle] > u)
                high = middle;
            else
                low = middle + 1;
        }
        x = (double)(s->least + low);
        break;
    }
    }
    int64_t tokens = x < 1e9 ? (int64_t)llround(x) : 1000000000;
    if (tokens < s->least)
        tokens = s->least;
    if (s->most > 0 && tokens > s->most)
        tokens = s->most;
    return tokens;
}

/* ---- turns that wait for their time */

typedef struct turn {
    double at;
    int64_t order, session, number, history;
} turn;

typedef struct turns {
    turn *items;
    size_t count, capacity;
    int64_t order;
} turns;

static bool turn_before(const turn *a, const turn *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static rg_status turns_reserve(rg_arena *arena, turns *t, size_t count, rg_err *err)
{
    if (count <= t->capacity)
        return RG_OK;
    const size_t capacity = count < 64 ? 64 : 2 * count;
    turn *items = RG_NEW(arena, turn, capacity, err);
    if (!items)
        return RG_ERR_LIMIT;
    if (t->count)
        memcpy(items, t->items, t->count * sizeof *items);
    t->items = items;
    t->capacity = capacity;
    return RG_OK;
}

static void turns_push(turns *t, turn item)
{
    item.order = t->order++;
    size_t i = t->count++;
    for (; i > 0 && turn_before(&item, &t->items[(i - 1) / 2]); i = (i - 1) / 2)
        t->items[i] = t->items[(i - 1) / 2];
    t->items[i] = item;
}

static turn turns_pop(turns *t)
{
    const turn top = t->items[0], last = t->items[--t->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= t->count)
            break;
        if (child + 1 < t->count && turn_before(&t->items[child + 1], &t->items[child]))
            child++;
        if (!turn_before(&t->items[child], &last))
            break;
        t->items[i] = t->items[child];
        i = child;
    }
    t->items[i] = last;
    return top;
}

/* ---- the made-up stream */

typedef struct synth {
    rg_requests base;
    rg_request_facts facts;
    rg_arena *arena;
    rg_synth_spec spec;
    process arrivals;
    lengths prompt, output;
    turns waiting;
    double next_open; /* next arrival of the open process */
    int64_t sessions, delivered;
    rg_segment segments[2];
    rg_err late; /* out of memory in finished() shows at the next call */
} synth;

static bool open_process(const synth *s)
{
    return s->spec.arrivals.kind != RG_ARRIVE_CLOSED;
}

static int64_t turns_of(const synth *s)
{
    return s->spec.sessions.turns > 1 ? s->spec.sessions.turns : 1;
}

static void issue(synth *s, double at, int64_t session, int64_t number, int64_t history)
{
    /* Which requests there are must not depend on when earlier ones are answered, so sessions are
     * numbered as they open, each with its turns; the last one may have fewer. */
    if (session * turns_of(s) + number >= s->spec.requests)
        return;
    if (turns_reserve(s->arena, &s->waiting, s->waiting.count + 1, &s->late) != RG_OK)
        return;
    turns_push(&s->waiting, (turn){at, 0, session, number, history});
}

/* Keep one arrival of the open process in the queue of turns. */
static void refill(synth *s)
{
    while (open_process(s) && s->sessions * turns_of(s) < s->spec.requests &&
           (s->waiting.count == 0 || s->next_open <= s->waiting.items[0].at)) {
        issue(s, s->next_open, s->sessions++, 0, 0);
        s->next_open = process_next(&s->arrivals);
    }
}

static rg_status synth_peek(rg_requests *stream, double *arrival_s, rg_err *err)
{
    synth *s = (synth *)stream;
    refill(s);
    if (s->late.status != RG_OK)
        return rg_fail(err, s->late.status, RG_NOWHERE, "%s", s->late.text);
    *arrival_s = s->waiting.count ? s->waiting.items[0].at : INFINITY;
    return RG_OK;
}

static rg_status synth_next(rg_requests *stream, rg_request *out, bool *more, rg_err *err)
{
    synth *s = (synth *)stream;
    double at;
    RG_TRY(synth_peek(stream, &at, err));
    *more = s->waiting.count > 0;
    if (!*more)
        return RG_OK;
    const turn t = turns_pop(&s->waiting);
    rg_rng rng;
    rg_rng_seed(&rng, s->spec.seed, rg_row_mix((uint64_t)t.session, (uint64_t)t.number + 2));
    const int64_t fresh = lengths_draw(&s->prompt, &rng);
    const int64_t system = t.number == 0 ? s->spec.sessions.system_tokens : 0;
    *out = (rg_request){.index = s->delivered++,
                        .arrival_s = t.at,
                        .prompt_tokens = t.history + system + fresh,
                        .output_tokens = lengths_draw(&s->output, &rng),
                        .session = s->spec.sessions.turns > 1 ? t.session : -1,
                        .turn = t.number};
    if (s->spec.sessions.turns > 1 || s->spec.sessions.system_tokens > 0) {
        const int64_t common = s->spec.sessions.system_tokens;
        int n = 0;
        out->output_id = rg_row_mix(0x73657373, (uint64_t)t.session);
        if (common > 0)
            s->segments[n++] = (rg_segment){rg_row_mix(0x737973, 0), common};
        s->segments[n++] = (rg_segment){out->output_id, out->prompt_tokens - common};
        out->segments = s->segments;
        out->segment_count = n;
    }
    s->facts.delivered++;
    return RG_OK;
}

static double think(synth *s, const rg_request *request, double mean)
{
    rg_rng rng;
    /* Free of the order in which others are answered. */
    const int64_t which = request->session >= 0 ? request->session : request->index;
    rg_rng_seed(&rng, s->spec.seed,
                rg_row_mix((uint64_t)which, 0x7468696e6b00 + (uint64_t)request->turn));
    return mean * rg_rng_exponential(&rng);
}

static void synth_finished(rg_requests *stream, const rg_request *request, double time_s)
{
    synth *s = (synth *)stream;
    if (request->session >= 0 && request->turn + 1 < s->spec.sessions.turns)
        issue(s, time_s + think(s, request, s->spec.sessions.think_s), request->session,
              request->turn + 1, request->prompt_tokens + request->output_tokens);
    else if (!open_process(s))
        issue(s, time_s + think(s, request, s->spec.arrivals.think_s), s->sessions++, 0, 0);
}

static const rg_requests_class synth_class = {synth_peek, synth_next, synth_finished, NULL};

rg_status rg_requests_synth(rg_arena *arena, const rg_synth_spec *spec, rg_requests **out,
                            rg_err *err)
{
    RG_TRY(check_arrivals(&spec->arrivals, err));
    if (spec->requests < 1)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "'%lld' requests; 1 or more",
                       (long long)spec->requests);
    if (spec->sessions.turns < 0 || spec->sessions.system_tokens < 0 ||
        !(spec->sessions.think_s >= 0))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "sessions of '%lld' turns, %lld system tokens: none may be negative",
                       (long long)spec->sessions.turns, (long long)spec->sessions.system_tokens);
    synth *s = RG_NEW(arena, synth, 1, err);
    if (!s)
        return RG_ERR_LIMIT;
    s->base = (rg_requests){&synth_class, NULL, &s->facts};
    s->facts.format = "made up";
    s->arena = arena;
    s->spec = *spec;
    RG_TRY(lengths_start(arena, &s->prompt, &spec->prompt, err));
    RG_TRY(lengths_start(arena, &s->output, &spec->output, err));
    process_start(&s->arrivals, &spec->arrivals, spec->seed);
    if (open_process(s))
        s->next_open = process_next(&s->arrivals);
    else
        for (int64_t i = 0; i < spec->arrivals.users; i++)
            issue(s, 0, s->sessions++, 0, 0);
    if (s->late.status != RG_OK)
        return rg_fail(err, s->late.status, RG_NOWHERE, "%s", s->late.text);
    *out = &s->base;
    return RG_OK;
}

/* ---- lengths of a file, arrivals of a process */

typedef struct rearrived {
    rg_requests base;
    process arrivals;
    rg_arena *arena;
    turns waiting; /* closed loop: when users send next */
    double next_open;
    bool ended;
    uint64_t seed;
} rearrived;

static rg_status rearrived_peek(rg_requests *stream, double *arrival_s, rg_err *err)
{
    rearrived *r = (rearrived *)stream;
    double inner;
    RG_TRY(rg_requests_peek(stream->inner, &inner, err));
    r->ended = isinf(inner);
    *arrival_s = INFINITY;
    if (r->ended)
        return RG_OK;
    if (r->arrivals.spec.kind == RG_ARRIVE_CLOSED)
        *arrival_s = r->waiting.count ? r->waiting.items[0].at : INFINITY;
    else
        *arrival_s = r->next_open;
    return RG_OK;
}

static rg_status rearrived_next(rg_requests *stream, rg_request *out, bool *more, rg_err *err)
{
    rearrived *r = (rearrived *)stream;
    double at;
    *more = false;
    RG_TRY(rearrived_peek(stream, &at, err));
    if (isinf(at))
        return RG_OK;
    RG_TRY(rg_requests_next(stream->inner, out, more, err));
    out->arrival_s = at;
    if (r->arrivals.spec.kind == RG_ARRIVE_CLOSED)
        turns_pop(&r->waiting);
    else
        r->next_open = process_next(&r->arrivals);
    return RG_OK;
}

static void rearrived_finished(rg_requests *stream, const rg_request *request, double time_s)
{
    rearrived *r = (rearrived *)stream;
    rg_requests_finished(stream->inner, request, time_s);
    if (r->arrivals.spec.kind != RG_ARRIVE_CLOSED)
        return;
    rg_rng rng;
    rg_rng_seed(&rng, r->seed, rg_row_mix((uint64_t)request->index, 0x7468696e6b));
    turns_push(&r->waiting,
               (turn){.at = time_s + r->arrivals.spec.think_s * rg_rng_exponential(&rng)});
}

static void rearrived_close(rg_requests *stream)
{
    rg_requests_close(stream->inner);
}

static const rg_requests_class rearrived_class = {rearrived_peek, rearrived_next,
                                                  rearrived_finished, rearrived_close};

rg_status rg_requests_with_arrivals(rg_arena *arena, rg_requests *inner,
                                    const rg_arrival_spec *spec, uint64_t seed, rg_requests **out,
                                    rg_err *err)
{
    RG_TRY(check_arrivals(spec, err));
    rearrived *r = RG_NEW(arena, rearrived, 1, err);
    if (!r)
        return RG_ERR_LIMIT;
    r->base = (rg_requests){&rearrived_class, inner, inner->facts};
    r->arena = arena;
    r->seed = seed;
    process_start(&r->arrivals, spec, seed);
    if (spec->kind == RG_ARRIVE_CLOSED) {
        RG_TRY(turns_reserve(arena, &r->waiting, (size_t)spec->users + 1, err));
        for (int64_t i = 0; i < spec->users; i++)
            turns_push(&r->waiting, (turn){.at = 0});
    } else {
        r->next_open = process_next(&r->arrivals);
    }
    *out = &r->base;
    return RG_OK;
}

/* serve/replay.c: replay of a measured run, errors, fit of engine constants. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/replay.h"

#include <math.h>

/* ---- comparison */

typedef struct comparison {
    const rg_replay_run *run;
    const rg_observer *inner;
    double ttft, ttft_of, tpot, tpot_of, e2e, e2e_of;
    double ttft_signed, tpot_signed, e2e_signed, last;
    int64_t requests;
} comparison;

static void add(double predicted, double measured, double *off, double *total, double *bias)
{
    *off += fabs(predicted - measured);
    *bias += predicted - measured;
    *total += measured;
}

static void compare_one(void *context, const rg_served *s)
{
    comparison *c = context;
    const rg_request *q = &c->run->requests[s->index];
    const rg_replay_request *m = &c->run->measured[s->index];
    add(s->first_token_s - s->arrival_s, m->first_token_s - q->arrival_s, &c->ttft, &c->ttft_of,
        &c->ttft_signed);
    add(s->last_token_s - s->arrival_s, m->last_token_s - q->arrival_s, &c->e2e, &c->e2e_of,
        &c->e2e_signed);
    if (q->output_tokens > 1) {
        const double between = (double)(q->output_tokens - 1);
        add((s->last_token_s - s->first_token_s) / between,
            (m->last_token_s - m->first_token_s) / between, &c->tpot, &c->tpot_of, &c->tpot_signed);
    }
    c->last = s->last_token_s > c->last ? s->last_token_s : c->last;
    c->requests++;
    if (c->inner && c->inner->served)
        c->inner->served(c->inner->context, s);
}

static void pass_moment(void *context, const rg_moment *moment)
{
    const comparison *c = context;
    c->inner->moment(c->inner->context, moment);
}

static double share_of(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

rg_status rg_replay_compare(rg_arena *arena, const rg_replay_run *run,
                            const rg_deployment *deployment, const rg_observer *observer,
                            uint64_t seed, rg_serve_result *result, rg_replay_errors *out,
                            rg_err *err)
{
    comparison c = {.run = run, .inner = observer};
    const rg_observer watch = {.context = &c,
                               .served = compare_one,
                               .moment = observer && observer->moment ? pass_moment : NULL,
                               .moment_interval_s = observer ? observer->moment_interval_s : 0};
    rg_requests *stream;
    RG_TRY(rg_requests_array(arena, run->requests, run->count, &stream, err));
    RG_TRY(rg_serve_run(arena, deployment, stream, NULL, &watch, seed, result, err));
    double last = 0;
    for (int64_t i = 0; i < run->count; i++)
        last = run->measured[i].last_token_s > last ? run->measured[i].last_token_s : last;
    *out = (rg_replay_errors){.ttft_wape = share_of(c.ttft, c.ttft_of),
                              .tpot_wape = share_of(c.tpot, c.tpot_of),
                              .e2e_wape = share_of(c.e2e, c.e2e_of),
                              .ttft_bias = share_of(c.ttft_signed, c.ttft_of),
                              .tpot_bias = share_of(c.tpot_signed, c.tpot_of),
                              .e2e_bias = share_of(c.e2e_signed, c.e2e_of),
                              .makespan = c.last / last - 1,
                              .requests = c.requests};
    return RG_OK;
}

/* ---- fit */

/* What the run does not tell apart (a slower kernel against a longer pause) stays near where it
 * began, as a fit of one run must hold for others: a constant moves by its spread only where that
 * takes 0.5 % off the sum of the errors. */
static const double pull = 0.005;

typedef struct trial {
    const rg_tunable *constants;
    double *start, *tried; /* [count] */
    int count;
    const rg_replay_run *run;
    const rg_deployment *deployment;
    rg_replay_errors errors;
    int evaluations;
} trial;

static rg_status evaluate(trial *t, double *loss, rg_err *err)
{
    rg_arena *scratch = rg_arena_new(512);
    if (!scratch)
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for a replay");
    rg_serve_result result;
    const rg_status status =
        rg_replay_compare(scratch, t->run, t->deployment, NULL, 1, &result, &t->errors, err);
    rg_arena_free(scratch);
    t->evaluations++;
    *loss = t->errors.ttft_wape + t->errors.tpot_wape + t->errors.e2e_wape;
    for (int i = 0; i < t->count; i++) {
        const rg_tunable *c = &t->constants[i];
        const double moved = (t->tried[i] - t->start[i]) / c->spread;
        *loss += pull * moved * moved;
    }
    return status;
}

static rg_status try_value(trial *t, rg_tunable *c, double value, double *loss, rg_err *err)
{
    t->tried[c - t->constants] = value;
    c->set(c->context, value);
    return evaluate(t, loss, err);
}

static rg_status golden_section(trial *t, rg_tunable *c, double width, double *least, rg_err *err)
{
    const double golden = 0.6180339887498949;
    double low = c->value - width, high = c->value + width;
    low = low < c->least ? c->least : low;
    high = high > c->most ? c->most : high;
    double a = high - golden * (high - low), b = low + golden * (high - low), at_a, at_b;
    RG_TRY(try_value(t, c, a, &at_a, err));
    RG_TRY(try_value(t, c, b, &at_b, err));
    for (int i = 0; i < 10; i++) {
        if (at_a < at_b) {
            high = b;
            b = a;
            at_b = at_a;
            a = high - golden * (high - low);
            RG_TRY(try_value(t, c, a, &at_a, err));
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + golden * (high - low);
            RG_TRY(try_value(t, c, b, &at_b, err));
        }
    }
    const double best = at_a < at_b ? a : b, loss = at_a < at_b ? at_a : at_b;
    if (loss < *least) {
        *least = loss;
        c->value = best;
    }
    t->tried[c - t->constants] = c->value;
    c->set(c->context, c->value);
    return RG_OK;
}

rg_status rg_replay_fit(rg_arena *arena, const rg_replay_run *run, const rg_deployment *deployment,
                        rg_tunable *constants, int count, rg_replay_errors *best, int *evaluations,
                        rg_err *err)
{
    double *start = RG_NEW(arena, double, count, err), *tried = RG_NEW(arena, double, count, err);
    if (!start || !tried)
        return RG_ERR_LIMIT;
    trial t = {.run = run,
               .deployment = deployment,
               .constants = constants,
               .start = start,
               .tried = tried,
               .count = count};
    double least;
    for (int i = 0; i < count; i++) {
        start[i] = tried[i] = constants[i].value;
        constants[i].set(constants[i].context, constants[i].value);
    }
    RG_TRY(evaluate(&t, &least, err));
    double share = 1;
    for (int round = 0; round < 7; round++, share /= 1.8)
        for (int i = 0; i < count; i++)
            RG_TRY(golden_section(&t, &constants[i],
                                  share * (constants[i].most - constants[i].least), &least, err));
    RG_TRY(evaluate(&t, &least, err));
    *best = t.errors;
    *evaluations = t.evaluations;
    return RG_OK;
}

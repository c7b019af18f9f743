/* plan/trial.c: simulations of candidates. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/judge.h"

enum { KEPT_MIB = 512 };

/* What the simulator asks for the time of a pass. */
typedef struct stepper {
    rg_worker *worker;
    rg_step_context *step;
    rg_spec spec; /* kind none: no drafts but those that the simulator times itself */
} stepper;

struct rg_worker {
    const rg_space *space;
    rg_arena *kept, *scratch;
    rg_step_shared shared;
    /* in kept: [arrangements x engines x 2, 1 for asynchronous scheduling][RG_SPEC_COUNT]: of the
     * model, at RG_SPEC_NONE, and of what writes drafts */
    rg_step_context **steps;
    /* of the trial that runs: replicas, and those of a prefill pool */
    stepper replica, prefill;
    rg_err step_err;
};

rg_status rg_worker_new(const rg_space *space, rg_worker **out, rg_err *err)
{
    rg_worker *w = calloc(1, sizeof *w);
    if (w) {
        w->kept = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
        w->scratch = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
    }
    if (!w || !w->kept || !w->scratch) {
        rg_worker_free(w);
        return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "the system has no memory left");
    }
    w->space = space;
    *out = w;
    return RG_OK;
}

void rg_worker_free(rg_worker *w)
{
    if (!w)
        return;
    rg_arena_free(w->kept);
    rg_arena_free(w->scratch);
    free(w);
}

/* Step context of an arrangement under an engine, prepared when first asked for: of the model, or
 * of what writes its drafts. */
static rg_status step_of(rg_worker *w, const rg_candidate *c, int arrangement,
                         const rg_engine_rules *rules, rg_spec_kind kind, rg_step_context **out,
                         rg_err *err)
{
    const rg_space *s = w->space;
    const size_t rows = (size_t)s->arrangement_count * (size_t)s->plan->policy_count * 2;
    if (!w->steps) {
        w->steps = RG_NEW(w->kept, rg_step_context *, rows * RG_SPEC_COUNT, err);
        if (!w->steps)
            return RG_ERR_LIMIT;
    }
    const size_t row =
        2 * (size_t)(arrangement * s->plan->policy_count + c->engine) + rules->asynchronous;
    rg_step_context **slot = &w->steps[row * RG_SPEC_COUNT + (size_t)kind];
    if (!*slot) {
        const rg_arrangement *a = &s->arrangements[arrangement];
        /* as in estimate: weights and cache pass through L2 between two uses, RoPE is an operator
         */
        const rg_kernel_options options = {.cold_l2 = true, .core_attention = true};
        rg_engine engine = s->engines[c->engine];
        rg_spec_draft x = {s->model, a->formats, a->parallel};
        if (kind != RG_SPEC_NONE)
            RG_TRY(rg_spec_draft_of(w->kept, kind, s->model, &a->formats, &a->parallel,
                                    s->plan->draft_model, 0, &x, err));
        engine.async_scheduling = rules->asynchronous;
        x.formats.page_tokens = rules->block_tokens;
        rg_err why = {0};
        const rg_status status =
            rg_step_prepare_shared(w->kept, &w->shared, s->machines[a->machine].cluster, x.model,
                                   &x.formats, &x.parallel, &engine, &options, slot, &why);
        if (status != RG_OK)
            return rg_fail(err, status, why.pos, "%s%.900s",
                           kind == RG_SPEC_NONE ? "" : "what writes the drafts: ", why.text);
    }
    *out = *slot;
    return RG_OK;
}

/* The model of an arrangement with what writes its drafts. */
static rg_status stepper_of(rg_worker *w, const rg_candidate *c, stepper *out, rg_err *err)
{
    const rg_spec_kind kind = c->speculate;
    *out = (stepper){.worker = w};
    RG_TRY(step_of(w, c, c->arrangement, &c->rules, RG_SPEC_NONE, &out->step, err));
    out->spec = (rg_spec){.kind = kind,
                          .depth = c->rules.speculation.drafts,
                          .acceptance = c->rules.speculation.acceptance};
    return kind == RG_SPEC_NONE || kind == RG_SPEC_MEDUSA
               ? RG_OK
               : step_of(w, c, c->arrangement, &c->rules, kind, &out->spec.draft, err);
}

static rg_status pass_time(const stepper *x, const rg_pass *pass, rg_seconds *out, rg_err *err)
{
    rg_step_time time;
    rg_seconds drafting;
    RG_TRY(rg_step_time_of(x->step, pass, &time, err));
    RG_TRY(rg_spec_draft_time(x->step, &x->spec, pass, &drafting, err));
    *out = rg_s_add(time.total, drafting);
    return RG_OK;
}

/* Contexts are dropped between trials only, as one trial may use two. */
static void make_room(rg_worker *w)
{
    if (rg_arena_used_bytes(w->kept) >> 20 <= KEPT_MIB)
        return;
    rg_arena_reset(w->kept);
    w->steps = NULL;
    w->shared.count = 0;
}

rg_status rg_worker_step(rg_worker *w, const rg_candidate *c, rg_step_context **out, rg_err *err)
{
    make_room(w);
    return step_of(w, c, c->arrangement, &c->rules, RG_SPEC_NONE, out, err);
}

/* The simulator asks for a number; what went wrong is kept and reported when the run is over. */
static rg_seconds step_time(void *context, const rg_pass *pass)
{
    const stepper *x = context;
    rg_seconds time;
    rg_err err = {0};
    if (pass_time(x, pass, &time, &err) == RG_OK)
        return time;
    if (x->worker->step_err.status == RG_OK)
        x->worker->step_err = err;
    return RG_S(1);
}

/* KV leaves a prefill replica no faster than either side's network takes it. */
static rg_status link_pools(rg_worker *w, const rg_candidate *c, rg_deployment *d, rg_err *err)
{
    const int sides[] = {c->prefill.arrangement, c->arrangement};
    d->transfer_bytes_per_s = INFINITY;
    for (int i = 0; i < 2; i++) {
        const rg_arrangement *a = &w->space->arrangements[sides[i]];
        double rate, latency;
        RG_TRY(rg_replica_link(w->scratch, w->space->machines[a->machine].cluster, a->devices,
                               &rate, &latency, err));
        d->transfer_bytes_per_s = fmin(d->transfer_bytes_per_s, rate);
        d->transfer_latency_s = fmax(d->transfer_latency_s, latency);
    }
    return RG_OK;
}

static rg_status deploy(rg_worker *w, const rg_candidate *c, int64_t replicas, rg_deployment *d,
                        rg_err *err)
{
    const rg_space *s = w->space;
    const rg_arrangement *a = &s->arrangements[c->arrangement],
                         *b = &s->arrangements[c->prefill.arrangement];
    const rg_usage u = rg_candidate_usage(s, c, replicas);
    make_room(w);
    RG_TRY(stepper_of(w, c, &w->replica, err));
    *d = (rg_deployment){.rules = c->rules,
                         .constants = {.kernel_scale = 1},
                         .step = {.step_time = step_time, .context = &w->replica, .costly = true},
                         .replicas = u.others,
                         .prefill_replicas = u.prefill,
                         .router = RG_ROUTE_LEAST_LOADED,
                         .layers = s->model->layer_count,
                         .devices_per_replica = a->devices,
                         .devices_per_prefill_replica = b->devices,
                         .transfer_overlap = true};
    if (u.prefill == 0)
        return RG_OK;
    w->prefill = (stepper){.worker = w};
    RG_TRY(step_of(w, c, c->prefill.arrangement, &c->prefill.rules, RG_SPEC_NONE, &w->prefill.step,
                   err));
    d->prefill_rules = c->prefill.rules;
    d->prefill_step =
        (rg_step_model){.step_time = step_time, .context = &w->prefill, .costly = true};
    return link_pools(w, c, d, err);
}

/* ---- what came of it */

static double ratio_or_0(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void take(const rg_plan *plan, const rg_serve_result *r, rg_judged *judged, rg_trial *out)
{
    out->runs = 1;
    out->finished = r->finished;
    out->refused = r->refused;
    out->over_step = r->over_step;
    out->makespan_s = r->makespan_s;
    out->busy_s = r->busy_s;
    out->replica_s = r->replica_s;
    out->steps = r->steps;
    out->most_running = r->most_running;
    out->preemptions = r->preemptions;
    out->output_tokens = r->output_tokens;
    out->prompt_tokens = r->prompt_tokens;
    out->prefill_tokens = r->prefill_tokens;
    out->mean_batch = ratio_or_0(r->batch_time, r->busy_s);
    out->kv_use_ratio =
        r->kv_blocks > 1 ? ratio_or_0(r->kv_time, r->busy_s * (double)(r->kv_blocks - 1)) : 0;
    out->prefix_hit_ratio = ratio_or_0((double)r->hit_tokens, (double)r->queried_tokens);
    rg_judge(plan, judged, out);
}

int64_t rg_trial_part(const rg_plan_requests *r, const rg_candidate *c, int64_t replicas)
{
    const double wanted = fmax(ceil((double)replicas * r->coverage_ratio), RG_PLAN_LEAST_PART);
    if (r->coverage_ratio >= 1 || wanted >= (double)replicas)
        return replicas;
    /* whole proportions of the pools, so that neither is busier than in the fleet */
    const int64_t unit = c->pools.prefill > 0 ? c->pools.prefill + c->pools.decode : 1;
    const int64_t part = ((int64_t)wanted + unit - 1) / unit * unit;
    return part < replicas ? part : replicas;
}

/* Arrivals of a part over those of the fleet: no replica of it gets less than in the fleet. */
static double part_of_arrivals(const rg_space *s, const rg_candidate *c, int64_t all, int64_t part)
{
    const rg_usage u = rg_candidate_usage(s, c, all), v = rg_candidate_usage(s, c, part);
    const double others = (double)v.others / (double)u.others;
    return u.prefill > 0 ? fmax(others, (double)v.prefill / (double)u.prefill) : others;
}

rg_status rg_trial_run(rg_worker *w, const rg_candidate *c, const rg_plan_requests *requests,
                       int64_t replicas, const rg_trial_how *how, rg_trial *out, rg_err *err)
{
    rg_deployment d;
    rg_requests *stream;
    const rg_goals goals = {0};
    const int64_t part = rg_trial_part(requests, c, replicas);
    const double share = part_of_arrivals(w->space, c, replicas, part);
    *out = (rg_trial){.replicas = replicas,
                      .simulated = part,
                      .prefill = rg_candidate_usage(w->space, c, replicas).prefill};
    rg_arena_reset(w->scratch);
    w->step_err = (rg_err){0};
    rg_serve_result *result = RG_NEW(w->scratch, rg_serve_result, 1, err);
    if (!result)
        return RG_ERR_LIMIT;
    RG_TRY(deploy(w, c, part, &d, err));
    rg_judged judged;
    RG_TRY(rg_judged_start(w->scratch, requests->warm_up, requests->count, &judged, err));
    const rg_observer observer = {.context = &judged, .served = rg_judged_add};
    RG_TRY(rg_plan_requests_open(w->scratch, requests, how->one_by_one, how->speed_up * share,
                                 &stream, err));
    const rg_status status =
        rg_serve_run(w->scratch, &d, stream, &goals, &observer, requests->seed, result, err);
    rg_requests_close(stream);
    RG_TRY(status);
    if (w->step_err.status != RG_OK)
        return rg_fail(err, w->step_err.status, w->step_err.pos, "%s", w->step_err.text);
    take(w->space->plan, result, &judged, out);
    return RG_OK;
}

/* ---- by averages */

rg_status rg_trial_alone(rg_worker *w, const rg_candidate *c, double context_tokens, int64_t batch,
                         double *step_s, rg_err *err)
{
    stepper x;
    rg_seconds time;
    make_room(w);
    RG_TRY(stepper_of(w, c, &x, err));
    const rg_pass pass = {.decodes = batch,
                          .tokens_per_decode = 1 + c->rules.speculation.drafts,
                          .decode_kv_tokens = context_tokens * (double)batch,
                          .decode_kv_max = context_tokens};
    RG_TRY(pass_time(&x, &pass, &time, err));
    *step_s = time.v;
    return RG_OK;
}

static double tokens_per_pass(const rg_speculation *x)
{
    double sum = 1, chance = 1;
    for (int64_t i = 0; i < x->drafts; i++) {
        chance *= x->acceptance;
        sum += chance;
    }
    return sum;
}

rg_status rg_trial_guess(rg_worker *w, const rg_candidate *c, const rg_plan_requests *r,
                         int64_t *replicas, rg_err *err)
{
    rg_step_context *step;
    rg_step_time prefill;
    *replicas = 1;
    if (r->rate_per_s <= 0)
        return RG_OK;
    RG_TRY(rg_worker_step(w, c, &step, err));
    const rg_chunk chunk = {.new_tokens = (int64_t)fmax(r->mean_prompt, 1)};
    const rg_pass pass = {.chunks = &chunk, .chunk_count = 1, .follows = true};
    RG_TRY(rg_step_time_of(step, &pass, &prefill, err));
    double tpot = INFINITY;
    for (int i = 0; i < w->space->plan->limit_count; i++)
        if (w->space->plan->limits[i].metric == RG_PLAN_TPOT)
            tpot = fmin(tpot, w->space->plan->limits[i].seconds);
    const double context = r->mean_prompt + 0.5 * r->mean_output;
    const double cache = (double)c->rules.blocks * (double)c->rules.block_tokens;
    double most = (double)c->rules.max_sequences;
    if (cache > 0)
        most = fmin(most, floor(cache / context));
    const double per_pass = tokens_per_pass(&c->rules.speculation);
    double best = INFINITY; /* replica seconds of a mean request */
    for (int64_t b = 1; (double)b <= fmax(most, 1); b *= 2) {
        double decode;
        RG_TRY(rg_trial_alone(w, c, context, b, &decode, err));
        decode *= 1 + (double)c->rules.speculation.drafts * c->rules.speculation.draft_time_ratio;
        const double passes = fmax(r->mean_output - 1, 0) / per_pass;
        const double each = prefill.total.v + passes * decode / (double)b;
        /* while a request decodes, prompts of the others take their share of its time */
        const double seen =
            (passes * decode + (double)b * prefill.total.v) / fmax(r->mean_output - 1, 1);
        if (b > 1 && seen > tpot)
            break;
        best = each;
    }
    const double need = ceil(r->rate_per_s * best);
    *replicas = need < 1 ? 1 : need > RG_PLAN_MOST_REPLICAS ? RG_PLAN_MOST_REPLICAS : (int64_t)need;
    return RG_OK;
}

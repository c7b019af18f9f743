/* plan/after.c: bill, saturation and frontier of an answer. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/after.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "plan/verify.h"

static double over(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

/* ---- bill */

/* One pool at work: what its devices do and draw. */
typedef struct side {
    int arrangement;
    const rg_least_work *work;
    double devices, simulated;    /* all of them; those that did the rest */
    double tokens, steps, cached; /* tokens computed; decodes that read a cache */
} side;

/* Steps are counted together; a prefill pool takes as many as its prompts fill. */
static int sides_of(const rg_candidate *c, const rg_works_of *w, const rg_space *s,
                    const rg_trial *t, side out[2])
{
    const rg_usage u = rg_candidate_usage(s, c, t->replicas),
                   part = rg_candidate_usage(s, c, t->simulated);
    const double each = (double)s->arrangements[c->arrangement].devices,
                 each_prefill = (double)s->arrangements[c->prefill.arrangement].devices;
    const double prompts = (double)t->prefill_tokens, answers = (double)t->output_tokens;
    const double filled =
        fmin(ceil(prompts / (double)c->prefill.rules.max_batched_tokens), (double)t->steps);
    out[0] = (side){.arrangement = c->arrangement,
                    .work = w->replica,
                    .devices = (double)u.others * each,
                    .simulated = (double)part.others * each,
                    .tokens = answers + (u.prefill > 0 ? 0 : prompts),
                    .steps = (double)t->steps - (u.prefill > 0 ? filled : 0),
                    .cached = answers};
    out[1] = (side){.arrangement = c->prefill.arrangement,
                    .work = w->prefill,
                    .devices = (double)u.prefill * each_prefill,
                    .simulated = (double)part.prefill * each_prefill,
                    .tokens = prompts,
                    .steps = filled};
    return u.prefill > 0 ? 2 : 1;
}

/* Use of peak and bandwidth, power and energy of one pool, added to the bill. */
static void add_side(const rg_plan_run *run, const side *x, double makespan, rg_plan_bill *out)
{
    rg_watts each;
    rg_energy_account energy;
    const rg_arrangement *a = &run->space.arrangements[x->arrangement];
    const rg_cluster *cluster = run->space.machines[a->machine].cluster;
    const double span = makespan * x->simulated, share = x->devices / (double)out->devices;
    const double cache = rg_model_kv_bytes(run->space.model, &a->formats.kv, RG_KV_IDEAL,
                                           run->requests.mean_prompt, 1)
                             .v;
    const double bytes =
        x->steps * (x->work->dense_bytes + x->work->expert_bytes) + cache * x->cached;
    const double compute = over(x->work->flops_per_token * x->tokens, x->work->peak * span),
                 memory = over(bytes, x->work->bandwidth * span);
    out->compute_ratio += share * compute;
    out->memory_ratio += share * memory;
    if (!isfinite(compute) ||
        rg_accel_power(cluster->accel, compute, memory, &each, NULL) != RG_OK ||
        rg_energy_of(cluster, x->devices, each, RG_S(3600), &run->plan->site, &energy, NULL) !=
            RG_OK) {
        out->watts = out->device_watts = NAN;
        return;
    }
    out->device_watts += share * each.v;
    out->watts += energy.total.v / 3600;
    if (run->plan->site.carbon_g_per_kwh > 0)
        out->carbon_g_per_hour += energy.carbon_g;
    if (run->plan->site.tariff_usd_per_kwh > 0)
        out->electricity_usd_per_hour += energy.electricity.v;
}

double rg_plan_served_per_s(const rg_trial *t)
{
    return over((double)t->finished, t->makespan_s) * (double)t->replicas / (double)t->simulated;
}

static void money(const rg_plan_run *run, const rg_trial *t, rg_plan_bill *out)
{
    const rg_plan_requests *r = &run->requests;
    /* tokens come as fast as requests do; in a closed loop, as fast as they are served */
    const double asked = run->plan->traffic.rate_per_s, per_s = asked > 0 ? asked * run->change.rate
                                                                : r->rate_per_s > 0
                                                                    ? r->rate_per_s
                                                                    : rg_plan_served_per_s(t);
    const double millions_in = per_s * r->mean_prompt * 3600 / 1e6,
                 millions_out = per_s * r->mean_output * 3600 / 1e6;
    out->usd_per_million_input = over(out->usd_per_hour, millions_in);
    out->usd_per_million_output = over(out->usd_per_hour, millions_out);
    out->usd_per_million_tokens = over(out->usd_per_hour, millions_in + millions_out);
    out->joules_per_output_token = over(out->watts, per_s * r->mean_output);
    out->carbon_g_per_million_output = over(out->carbon_g_per_hour, millions_out);
}

void rg_plan_bill_of(rg_arena *arena, const rg_plan_run *run, int candidate, const rg_trial *t,
                     rg_plan_bill *out)
{
    const rg_candidate *c = &run->space.candidates[candidate];
    const rg_usage u = rg_candidate_usage(&run->space, c, t->replicas);
    rg_least_works works = {0};
    rg_works_of work;
    side sides[2];
    *out = (rg_plan_bill){.devices = u.devices, .usd_per_hour = u.usd_per_hour};
    if (rg_least_work_of(arena, &works, &run->space, c, &run->requests, &work, NULL) != RG_OK) {
        out->compute_ratio = out->memory_ratio = out->watts = out->device_watts = NAN;
    } else {
        const int count = sides_of(c, &work, &run->space, t, sides);
        for (int i = 0; i < count; i++)
            add_side(run, &sides[i], t->makespan_s, out);
    }
    if (!isfinite(out->watts) || run->plan->site.carbon_g_per_kwh <= 0)
        out->carbon_g_per_hour = NAN;
    if (!isfinite(out->watts) || run->plan->site.tariff_usd_per_kwh <= 0)
        out->electricity_usd_per_hour = NAN;
    money(run, t, out);
}

/* ---- saturation */

static rg_status carries(rg_plan_run *run, double load, bool *out, rg_err *err)
{
    rg_trial t;
    const rg_trial_how how = {.speed_up = load};
    const rg_candidate *c = &run->space.candidates[run->winner];
    const int64_t replicas = run->outcomes[run->winner].replicas;
    if (rg_plan_can_verify(run)) {
        RG_TRY(rg_plan_verify_fleet(run, c, replicas, load, &t, err));
    } else {
        RG_TRY(rg_trial_run(run->workers[0], c, &run->requests, replicas, &how, &t, err));
        run->trials++;
        rg_plan_show_progress(run, run->settled);
    }
    *out = t.ok;
    return RG_OK;
}

rg_status rg_plan_saturation(rg_plan_run *run, double *load_ratio, rg_err *err)
{
    double low = 1, high = 1.25;
    bool ok = true;
    for (int i = 0; i < 12; i++) {
        RG_TRY(carries(run, high, &ok, err));
        if (!ok)
            break;
        low = high;
        high *= 1.5;
    }
    while (!ok && high / low > 1.02) {
        const double middle = sqrt(low * high);
        bool works;
        RG_TRY(carries(run, middle, &works, err));
        if (works)
            low = middle;
        else
            high = middle;
    }
    *load_ratio = low;
    return RG_OK;
}

/* ---- frontier */

enum { MOST_SHOWN = 5, STEPS = 6 };

typedef struct ask {
    int candidate;
    int64_t replicas;
} ask;

/* Replica counts beside the least that works. */
static int counts_beside(int64_t least, int64_t at_least, int64_t most, int64_t out[STEPS])
{
    static const double factors[STEPS] = {0.75, 1, 1.25, 1.5, 2, 3};
    int n = 0;
    for (int i = 0; i < STEPS; i++) {
        int64_t count = (int64_t)(factors[i] < 1 ? floor((double)least * factors[i])
                                                 : ceil((double)least * factors[i]));
        count = count > most ? most : count;
        if (count >= at_least && (n == 0 || count > out[n - 1]))
            out[n++] = count;
    }
    return n;
}

/* The winner and the best of each other machine, in order of cost. */
static int shown(const rg_plan_run *run, int out[], int room)
{
    int n = 0;
    for (int k = 0; k < run->space.candidate_count && n < room; k++) {
        const int i = run->order[k];
        const rg_plan_state state = run->outcomes[i].state;
        if (state != RG_PLAN_FOUND && state != RG_PLAN_PRUNED)
            continue;
        const int machine = run->space.arrangements[run->space.candidates[i].arrangement].machine;
        bool known = false;
        for (int j = 0; j < n; j++)
            known |= run->space.arrangements[run->space.candidates[out[j]].arrangement].machine ==
                     machine;
        if (!known)
            out[n++] = i;
    }
    return n;
}

static int by_cost(const void *a, const void *b)
{
    const rg_plan_point *x = a, *y = b;
    if (x->goal != y->goal)
        return x->goal < y->goal ? -1 : 1;
    if (x->trial.e2e_p95 != y->trial.e2e_p95)
        return x->trial.e2e_p95 < y->trial.e2e_p95 ? -1 : 1;
    return x->candidate - y->candidate;
}

static void mark(rg_plan_point *points, int count)
{
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        points[i].on_frontier = points[i].trial.refused == 0 && points[i].trial.e2e_p95 < least;
        if (points[i].on_frontier)
            least = points[i].trial.e2e_p95;
    }
}

rg_status rg_plan_frontier(rg_arena *arena, rg_plan_run *run, rg_plan_point **out, int *count,
                           rg_err *err)
{
    int list[MOST_SHOWN];
    ask asks[MOST_SHOWN * STEPS];
    rg_err errors[MOST_SHOWN * STEPS];
    *count = 0;
    const int n = shown(run, list, MOST_SHOWN);
    for (int i = 0; i < n; i++) {
        bool by_power;
        int64_t counts[STEPS];
        const rg_candidate *c = &run->space.candidates[list[i]];
        const int steps = counts_beside(run->outcomes[list[i]].replicas, rg_candidate_least(c),
                                        rg_candidate_most(&run->space, c, &by_power), counts);
        for (int k = 0; k < steps; k++)
            asks[(*count)++] = (ask){list[i], counts[k]};
    }
    rg_plan_point *points = RG_NEW(arena, rg_plan_point, *count, err);
    if (!points)
        return RG_ERR_LIMIT;
    const rg_trial_how how = {.speed_up = 1};
#pragma omp parallel for schedule(dynamic, 1) num_threads(run->worker_count)
    for (int i = 0; i < *count; i++) {
        rg_plan_point *p = &points[i];
        const rg_candidate *c = &run->space.candidates[asks[i].candidate];
        errors[i] = (rg_err){0};
        p->candidate = asks[i].candidate;
        p->goal = rg_candidate_goal(&run->space, c, asks[i].replicas);
        rg_trial_run(run->workers[omp_get_thread_num()], c, &run->requests, asks[i].replicas, &how,
                     &p->trial, &errors[i]);
    }
    run->trials += *count;
    for (int i = 0; i < *count; i++) { /* what is known better already */
        const rg_outcome *o = &run->outcomes[points[i].candidate];
        if (o->verified && o->simulated && o->at.replicas == asks[i].replicas)
            points[i].trial = o->at;
    }
    for (int i = 0; i < *count; i++)
        if (errors[i].status != RG_OK)
            return rg_fail(err, errors[i].status, errors[i].pos, "%s", errors[i].text);
    qsort(points, (size_t)*count, sizeof *points, by_cost);
    mark(points, *count);
    *out = points;
    return RG_OK;
}

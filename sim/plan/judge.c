/* plan/judge.c: latencies against limits. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/judge.h"

#include <math.h>

#include "core/stat.h"

enum { BATCHES = 8, LEAST_BATCH = 20 };
static const double confidence = 0.95;

rg_status rg_judged_start(rg_arena *arena, int64_t warm_up, int64_t requests, rg_judged *out,
                          rg_err *err)
{
    *out = (rg_judged){.warm_up = warm_up, .count = requests - warm_up};
    for (int m = 0; m < RG_PLAN_METRICS; m++) {
        out->values[m] = RG_NEW(arena, double, out->count, err);
        if (!out->values[m])
            return RG_ERR_LIMIT;
        for (int64_t i = 0; i < out->count; i++)
            out->values[m][i] = NAN;
    }
    return RG_OK;
}

void rg_judged_add(void *context, const rg_served *s)
{
    const rg_judged *j = context;
    const int64_t i = s->index - j->warm_up;
    if (i < 0 || i >= j->count)
        return;
    j->values[RG_PLAN_TTFT][i] = s->first_token_s - s->arrival_s;
    j->values[RG_PLAN_E2E][i] = s->last_token_s - s->arrival_s;
    if (s->output_tokens > 1)
        j->values[RG_PLAN_TPOT][i] =
            (s->last_token_s - s->first_token_s) / (double)(s->output_tokens - 1);
}

/* Without the NaNs; returns how many are left. */
static size_t keep_known(double *values, int64_t count)
{
    size_t n = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[n++] = values[i];
    return n;
}

/* Value at a quantile, or the mean; sorts. n is 1 or more. */
static double value_at(const rg_plan_limit *x, double *values, size_t n)
{
    if (x->quantile < 0)
        return rg_stat_mean(values, n);
    rg_stat_sort(values, n);
    return rg_stat_quantile_sorted(values, n, x->quantile);
}

/* Half the interval of a value at a limit, from batches in order of arrival, s; NaN: too few. */
static double half_of_batches(const rg_plan_limit *x, double *values, size_t n)
{
    double parts[BATCHES];
    const size_t size = n / BATCHES;
    if (size < LEAST_BATCH)
        return NAN;
    for (size_t b = 0; b < BATCHES; b++)
        parts[b] = value_at(x, values + b * size, size);
    return rg_stat_mean_half_width(parts, BATCHES, confidence);
}

/* From value, low and high at each limit. */
static void conclude(const rg_plan *plan, bool by_interval, rg_trial *t)
{
    bool within = true, beyond = false;
    t->ok = t->refused == 0;
    t->excess = 0;
    for (int i = 0; i < plan->limit_count; i++) {
        const double limit = plan->limits[i].seconds, ratio = t->value[i] / limit;
        if (ratio > t->excess) {
            t->excess = ratio;
            t->worst = i;
        }
        t->ok &= ratio <= 1;
        within &= t->high[i] <= limit;
        beyond |= t->low[i] > limit;
    }
    t->ok &= within || !by_interval;
    t->sure = t->refused > 0 || within || beyond;
}

/* Where a trial keeps mean, p50, p95 and p99 of a metric. */
static double *const *latencies_of(rg_trial *t, int metric, double *out[4])
{
    double *const all[RG_PLAN_METRICS][4] = {
        [RG_PLAN_TTFT] = {&t->ttft_mean, &t->ttft_p50, &t->ttft_p95, &t->ttft_p99},
        [RG_PLAN_TPOT] = {&t->tpot_mean, &t->tpot_p50, &t->tpot_p95, &t->tpot_p99},
        [RG_PLAN_E2E] = {&t->e2e_mean, &t->e2e_p50, &t->e2e_p95, &t->e2e_p99}};
    for (int k = 0; k < 4; k++)
        out[k] = all[metric][k];
    return out;
}

void rg_judge(const rg_plan *plan, rg_judged *j, rg_trial *t)
{
    static const double quantiles[] = {0, 0.5, 0.95, 0.99};
    size_t known[RG_PLAN_METRICS];
    double halves[RG_PLAN_LIMITS], *into[4];
    for (int m = 0; m < RG_PLAN_METRICS; m++)
        known[m] = keep_known(j->values[m], j->count);
    if (known[RG_PLAN_TTFT] == 0) {
        t->excess = INFINITY;
        t->sure = true;
        return;
    }
    for (int i = 0; i < plan->limit_count; i++) { /* sorts within batches alone */
        const rg_plan_limit *x = &plan->limits[i];
        halves[i] = half_of_batches(x, j->values[x->metric], known[x->metric]);
    }
    for (int m = 0; m < RG_PLAN_METRICS; m++) {
        if (known[m] == 0) /* no request has a second token: all stays 0 */
            continue;
        rg_stat_sort(j->values[m], known[m]);
        latencies_of(t, m, into);
        *into[0] = rg_stat_mean(j->values[m], known[m]);
        for (int k = 1; k < 4; k++)
            *into[k] = rg_stat_quantile_sorted(j->values[m], known[m], quantiles[k]);
    }
    for (int i = 0; i < plan->limit_count; i++) {
        const rg_plan_limit *x = &plan->limits[i];
        if (known[x->metric] == 0)
            continue;
        t->value[i] = value_at(x, j->values[x->metric], known[x->metric]);
        t->low[i] = t->value[i] - halves[i];
        t->high[i] = t->value[i] + halves[i];
    }
    conclude(plan, false, t);
}

void rg_judge_runs(const rg_plan *plan, rg_trial *runs, int count, rg_trial *out)
{
    double values[RG_PLAN_DRAWS], *from[4], *into[4];
    *out = runs[0];
    out->runs = count;
    for (int k = 1; k < count; k++) {
        out->refused += runs[k].refused;
        out->over_step += runs[k].over_step;
    }
    for (int m = 0; m < RG_PLAN_METRICS; m++)
        for (int x = 0; x < 4; x++) {
            for (int k = 0; k < count; k++)
                values[k] = *latencies_of(&runs[k], m, from)[x];
            *latencies_of(out, m, into)[x] = rg_stat_mean(values, (size_t)count);
        }
    for (int i = 0; i < plan->limit_count; i++) {
        for (int k = 0; k < count; k++)
            values[k] = runs[k].value[i];
        const double half = rg_stat_mean_half_width(values, (size_t)count, confidence);
        out->value[i] = rg_stat_mean(values, (size_t)count);
        out->low[i] = out->value[i] - half;
        out->high[i] = out->value[i] + half;
    }
    conclude(plan, true, out);
}

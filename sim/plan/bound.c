/* plan/bound.c: the least number of replicas; the proof stands in the header. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/bound.h"

#include <math.h>
#include <string.h>

#include "model/pass.h"

/* Chance that drafts fare better than the bound takes them to, as -ln: e^-28 is below 1e-12. */
static const double unlikely = 28;

/* Sequences that can share a decode step at most. */
static int64_t most_together(const rg_candidate *c, const rg_plan_requests *r)
{
    int64_t most = c->rules.max_sequences;
    const double cache = (double)c->rules.blocks * (double)c->rules.block_tokens;
    if (!r->shared && c->rules.blocks > 0 && r->least_prompt > 0) {
        const int64_t fit = (int64_t)(cache / (double)r->least_prompt);
        most = fit < most ? fit : most;
    }
    return most > 1 ? most : 1;
}

static bool is_head(const rg_op *op)
{
    return strcmp(op->name, "lm_head") == 0;
}

/* Flops of products, and weights of dense products and of experts, of one pass. */
static rg_status pass_work(rg_arena *arena, const rg_space *s, const rg_arrangement *a,
                           const rg_pass *pass, double *flops, double *dense, double *experts,
                           rg_err *err)
{
    const rg_shard whole = {.tp = 1, .attention_tp = 1, .ep = 1, .embedding = true, .head = true};
    rg_op_list ops = {0};
    RG_TRY(rg_pass_ops(arena, s->model, &a->formats, &whole, pass, &ops, err));
    *flops = *dense = *experts = 0;
    for (int i = 0; i < ops.count; i++) {
        const rg_op *op = &ops.items[i];
        if (op->kind != RG_OP_GEMM && op->kind != RG_OP_MOE)
            continue;
        if (!is_head(op))
            *flops += (double)op->count * op->flops.v;
        *(op->kind == RG_OP_MOE ? experts : dense) += (double)op->count * op->weight_bytes.v;
    }
    return RG_OK;
}

static double highest_peak(const rg_accel *accel, const rg_formats *f)
{
    const rg_dtype types[] = {f->math,        f->act,        f->weight.math,
                              f->expert.math, f->mixer.math, f->head.math};
    double peak = 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const rg_peak *p = rg_accel_peak(accel, types[i]);
        if (p && p->rate.known)
            peak = fmax(peak, p->rate.value);
    }
    return peak;
}

static rg_status work_out(rg_arena *arena, const rg_space *s, const rg_arrangement *a,
                          int64_t tokens, rg_least_work *out, rg_err *err)
{
    const rg_accel *accel = s->machines[a->machine].cluster->accel;
    const rg_pass decode = {.decodes = 1,
                            .tokens_per_decode = 1,
                            .decode_kv_tokens = 1,
                            .decode_kv_max = 1},
                  full = {.decodes = tokens,
                          .tokens_per_decode = 1,
                          .decode_kv_tokens = (double)tokens,
                          .decode_kv_max = 1};
    const rg_chunk chunk = {.new_tokens = 64};
    const rg_pass prefill = {.chunks = &chunk, .chunk_count = 1};
    double dense, experts, one, many;
    *out = (rg_least_work){.of = a, .tokens = tokens};
    RG_TRY(pass_work(arena, s, a, &decode, &one, &dense, &experts, err));
    RG_TRY(pass_work(arena, s, a, &prefill, &many, &dense, &experts, err));
    out->flops_per_token = fmin(one, many / 64);
    RG_TRY(pass_work(arena, s, a, &full, &many, &out->dense_bytes, &out->expert_bytes, err));
    out->peak = highest_peak(accel, &a->formats);
    out->bandwidth = rg_accel_level_bandwidth(accel, rg_accel_memory(accel));
    return RG_OK;
}

static bool same_types(const rg_arrangement *a, const rg_arrangement *b)
{
    return a->machine == b->machine && a->weight_type == b->weight_type && a->kv_type == b->kv_type;
}

static rg_status work_on(rg_arena *arena, rg_least_works *works, const rg_space *s,
                         const rg_arrangement *a, int64_t tokens, const rg_least_work **out,
                         rg_err *err)
{
    for (int i = 0; i < works->count; i++)
        if (works->items[i]->tokens == tokens && same_types(works->items[i]->of, a)) {
            *out = works->items[i];
            return RG_OK;
        }
    if (works->count == works->room) {
        works->room = works->room > 0 ? 2 * works->room : 64;
        rg_least_work **items = RG_NEW(arena, rg_least_work *, works->room, err);
        if (!items)
            return RG_ERR_LIMIT;
        if (works->count > 0)
            // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
            memcpy(items, works->items, (size_t)works->count * sizeof *items);
        works->items = items;
    }
    rg_least_work *w = RG_NEW(arena, rg_least_work, 1, err);
    if (!w)
        return RG_ERR_LIMIT;
    RG_TRY(work_out(arena, s, a, tokens, w, err));
    *out = works->items[works->count++] = w;
    return RG_OK;
}

rg_status rg_least_work_of(rg_arena *arena, rg_least_works *works, const rg_space *s,
                           const rg_candidate *c, const rg_plan_requests *r, rg_works_of *out,
                           rg_err *err)
{
    const int64_t tokens = most_together(c, r) * (1 + c->rules.speculation.drafts);
    RG_TRY(work_on(arena, works, s, &s->arrangements[c->arrangement], tokens, &out->replica, err));
    return work_on(arena, works, s, &s->arrangements[c->prefill.arrangement], tokens, &out->prefill,
                   err);
}

/* KV bytes that a decode reads at least for each token of its prompt. */
static double cache_bytes_per_token(const rg_space *s, const rg_arrangement *a,
                                    const rg_plan_requests *r)
{
    double length = (double)r->most_prompt;
    for (int64_t i = 0; i < s->model->layer_count; i++) /* a sparse indexer reads its picks alone */
        if (s->model->layers[i].index_top_k > 0)
            length = 0;
    if (length <= 0)
        return 0;
    return rg_model_kv_bytes(s->model, &a->formats.kv, RG_KV_IDEAL, length, 1).v / length;
}

/* Tokens that a decode pass of a request gives at most, over so many decodes. */
static double tokens_per_pass(const rg_speculation *x, double decodes)
{
    const double most = 1 + (double)x->drafts;
    double mean = 1, chance = 1;
    for (int64_t i = 0; i < x->drafts; i++) {
        chance *= x->acceptance;
        mean += chance;
    }
    const double passes = decodes / most; /* at least */
    if (x->drafts == 0 || passes < 1)
        return most;
    return fmin(most, mean + (double)x->drafts * sqrt(unlikely / (2 * passes)));
}

double rg_least_busy(const rg_space *s, const rg_candidate *c, const rg_works_of *work,
                     const rg_plan_requests *r, int64_t k, rg_part part, rg_bound_by *by)
{
    const bool prompts = part == RG_PART_PROMPTS;
    const rg_least_work *w = prompts ? work->prefill : work->replica;
    const rg_arrangement *a = &s->arrangements[prompts ? c->prefill.arrangement : c->arrangement];
    const rg_speculation *x = &c->rules.speculation;
    const double devices = (double)a->devices, verified = 1 + (double)x->drafts;
    *by = RG_LEAST_ONE;
    if (k <= 0)
        return 0;
    const double drafted = tokens_per_pass(x, r->least.decodes[k]);
    const double drafting = 1 + (double)x->drafts * x->draft_time_ratio;
    const double decoded =
        r->least.decodes[k] * (x->drafts > 0 ? verified / drafted * drafting : 1);
    double tokens = r->least.fresh[k];
    if (part == RG_PART_ANSWERS)
        tokens = decoded;
    else if (part == RG_PART_WHOLE)
        tokens = x->drafts > 0 ? r->least.fresh[k] + decoded : r->least.tokens[k];
    const double compute = w->peak > 0 ? w->flops_per_token * tokens / (devices * w->peak) : 0;
    double bytes = 0;
    if (!prompts) {
        const double passes = r->least.decodes[k] / drafted;
        const double cache = (double)c->rules.blocks * (double)c->rules.block_tokens;
        const double full = passes / (double)most_together(c, r);
        double steps = passes / (double)c->rules.max_sequences;
        if (!r->shared && cache > 0)
            steps = fmax(steps, r->least.decode_cache[k] / drafted / cache);
        bytes = steps * w->dense_bytes + full * w->expert_bytes +
                cache_bytes_per_token(s, a, r) * r->least.decode_cache[k] / drafted;
        bytes *= drafting;
    }
    const double moved = w->bandwidth > 0 ? bytes / (devices * w->bandwidth) : 0;
    *by = moved > compute ? RG_LEAST_BANDWIDTH : RG_LEAST_COMPUTE;
    return fmax(compute, moved);
}

/* Requests that keep a limit on a quantile at least. */
static int64_t keepers(const rg_plan_limit *limit, int64_t count)
{
    return limit->quantile < 0 ? 0 : (int64_t)floor((double)(count - 1) * limit->quantile) + 1;
}

/* k requests' part of the work is done within the window by the pool that it falls to. */
static void demand(rg_plan_bound *bound, const rg_space *s, const rg_candidate *c,
                   const rg_works_of *w, const rg_plan_requests *r, int64_t k, rg_part part,
                   double window_s)
{
    rg_bound_by by;
    if (c->pools.prefill > 0 && part == RG_PART_WHOLE) {
        demand(bound, s, c, w, r, k, RG_PART_PROMPTS, window_s);
        demand(bound, s, c, w, r, k, RG_PART_ANSWERS, window_s);
        return;
    }
    const double busy = rg_least_busy(s, c, w, r, k, part, &by);
    /* a hair is taken off, so that rounding never asks for one more */
    const double need = window_s > 0 ? ceil(busy / window_s * (1 - 1e-9)) : 1;
    const int64_t least = need < 1e9 ? (int64_t)need : 1000000000;
    int64_t replicas = least;
    if (c->pools.prefill > 0) {
        const int64_t own = part == RG_PART_PROMPTS ? c->pools.prefill : c->pools.decode;
        const int64_t all = c->pools.prefill + c->pools.decode;
        /* shares are rounded: begin where they are surely too few */
        replicas = least > 2 ? (int64_t)((double)(least - 2) / (double)own * (double)all) : 2;
        for (;; replicas++) {
            const rg_usage u = rg_candidate_usage(s, c, replicas);
            if ((part == RG_PART_PROMPTS ? u.prefill : u.others) >= least)
                break;
        }
    }
    if (replicas > bound->replicas) {
        bound->replicas = replicas;
        bound->by = by;
    }
}

rg_plan_bound rg_plan_bound_of(const rg_space *s, const rg_candidate *c, const rg_works_of *w,
                               const rg_plan_requests *r)
{
    const rg_plan *plan = s->plan;
    rg_plan_bound bound = {.replicas = rg_candidate_least(c), .by = RG_LEAST_ONE};
    const int64_t judged = r->count - r->warm_up;
    if (r->users > 0)
        return bound;
    for (int i = 0; i < plan->limit_count; i++) {
        const rg_plan_limit *x = &plan->limits[i];
        const int64_t k = keepers(x, judged);
        if (x->metric == RG_PLAN_TPOT)
            continue;
        demand(&bound, s, c, w, r, k, x->metric == RG_PLAN_E2E ? RG_PART_WHOLE : RG_PART_PROMPTS,
               r->judged_span_s + x->seconds);
        for (int j = 0; j < plan->limit_count && x->metric == RG_PLAN_TTFT; j++) {
            const rg_plan_limit *y = &plan->limits[j];
            if (y->metric == RG_PLAN_TPOT)
                demand(&bound, s, c, w, r, k + keepers(y, judged) - judged, RG_PART_WHOLE,
                       r->judged_span_s + x->seconds + y->seconds * (double)(r->most_output - 1));
        }
    }
    return bound;
}

bool rg_plan_bound_kept(const rg_space *s, const rg_candidate *c, const rg_works_of *w,
                        const rg_plan_requests *r, double busy_s)
{
    rg_bound_by by;
    double least = rg_least_busy(s, c, w, r, r->count, RG_PART_WHOLE, &by);
    if (c->pools.prefill > 0)
        least = rg_least_busy(s, c, w, r, r->count, RG_PART_PROMPTS, &by) +
                rg_least_busy(s, c, w, r, r->count, RG_PART_ANSWERS, &by);
    return busy_s >= least * (1 - 1e-6);
}

double rg_least_makespan(const rg_space *s, const rg_candidate *c, const rg_works_of *w,
                         const rg_plan_requests *r, int64_t replicas)
{
    rg_bound_by by;
    const rg_usage u = rg_candidate_usage(s, c, replicas);
    if (u.prefill == 0)
        return rg_least_busy(s, c, w, r, r->count, RG_PART_WHOLE, &by) / (double)u.others;
    return fmax(rg_least_busy(s, c, w, r, r->count, RG_PART_PROMPTS, &by) / (double)u.prefill,
                rg_least_busy(s, c, w, r, r->count, RG_PART_ANSWERS, &by) / (double)u.others);
}

/* plan/space.c: enumeration of arrangements and candidates. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/space.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/machines.h"

/* ---- arrangements */

static bool is_moe(const rg_model *model)
{
    for (int64_t i = 0; i < model->layer_count; i++)
        if (model->layers[i].ffn == RG_FFN_MOE)
            return true;
    return false;
}

static bool is_mla(const rg_model *model)
{
    for (int64_t i = 0; i < model->layer_count; i++)
        if (model->layers[i].mixer == RG_MIX_MLA)
            return true;
    return false;
}

/* Powers of two up to the devices of a domain: what engines are run with. */
static rg_plan_ints powers(int64_t most)
{
    rg_plan_ints out = {.count = 0};
    for (int64_t n = 1; n <= most && out.count < 8; n *= 2)
        out.items[out.count++] = n;
    return out;
}

/* The list of a pool: for prefill its own, else the common one, else ridge's own choice. */
static rg_plan_ints choose_tp(const rg_plan *plan, const rg_cluster *cluster, bool for_decode)
{
    if (!for_decode && plan->prefill_tp.count > 0)
        return plan->prefill_tp;
    return plan->tp.count > 0
               ? plan->tp
               : powers(cluster->scale_up_devices > 0 ? cluster->scale_up_devices : 1);
}

static rg_plan_ints choose_pp(const rg_plan *plan, const rg_cluster *cluster, bool for_decode)
{
    if (!for_decode && plan->prefill_pp.count > 0)
        return plan->prefill_pp;
    if (plan->pp.count > 0)
        return plan->pp;
    const int64_t devices = cluster->devices_per_node * cluster->nodes;
    return powers(devices < 4 ? devices : 4);
}

static rg_plan_ints choose_ep(const rg_space *s, int64_t tp, bool for_decode)
{
    if (!for_decode && s->plan->prefill_ep.count > 0)
        return s->plan->prefill_ep;
    if (s->plan->ep.count > 0)
        return s->plan->ep;
    return (rg_plan_ints){.items = {1, tp}, .count = is_moe(s->model) && tp > 1 ? 2 : 1};
}

static bool same_split(const rg_parallel *a, const rg_parallel *b)
{
    return a->tp == b->tp && a->pp == b->pp && a->cp == b->cp && a->ep == b->ep &&
           a->attention_dp == b->attention_dp;
}

static rg_status add_arrangement(rg_arena *arena, rg_space *s, const rg_arrangement *base,
                                 const rg_parallel *p, bool for_decode, rg_err *err)
{
    rg_machine *m = &s->machines[base->machine];
    rg_parallel parallel = *p;
    rg_err reason = {0};
    if (rg_step_check(m->cluster, s->model, &parallel, &reason) != RG_OK) {
        if (m->impossible++ == 0)
            memcpy(m->reason, reason.text, sizeof m->reason);
        return RG_OK;
    }
    for (int i = s->arrangement_count - 1; i >= 0; i--) {
        rg_arrangement *known = &s->arrangements[i];
        if (known->machine != base->machine || known->weight_type != base->weight_type ||
            known->kv_type != base->kv_type)
            break;
        if (same_split(&known->parallel, &parallel)) {
            known->decodes |= for_decode;
            known->prefills |= !for_decode;
            return RG_OK;
        }
    }
    if (s->arrangement_count == s->arrangement_room) {
        s->arrangement_room = s->arrangement_room > 0 ? 2 * s->arrangement_room : 256;
        rg_arrangement *items = RG_NEW(arena, rg_arrangement, s->arrangement_room, err);
        if (!items)
            return RG_ERR_LIMIT;
        if (s->arrangement_count > 0)
            memcpy(items, s->arrangements, (size_t)s->arrangement_count * sizeof *items);
        s->arrangements = items;
    }
    rg_arrangement *a = &s->arrangements[s->arrangement_count++];
    *a = *base;
    a->parallel = parallel;
    a->decodes = for_decode;
    a->prefills = !for_decode;
    a->devices = parallel.tp * parallel.pp * parallel.cp;
    return RG_OK;
}

static rg_status add_splits(rg_arena *arena, rg_space *s, const rg_arrangement *base,
                            const rg_parallel *p, bool for_decode, rg_err *err)
{
    const rg_plan *plan = s->plan;
    const bool mla = is_mla(s->model), moe = is_moe(s->model);
    for (int dp = 0; dp < 2; dp++) {
        /* of its own accord ridge tries data-parallel attention where it is used: latent caches
         * beside experts that are spread out */
        const bool wanted = plan->attention_dp_given
                                ? plan->attention_dp[dp]
                                : dp == 0 || (mla && moe && p->tp > 1 && p->ep == p->tp);
        rg_parallel with = *p;
        with.attention_dp = dp;
        if (wanted)
            RG_TRY(add_arrangement(arena, s, base, &with, for_decode, err));
    }
    return RG_OK;
}

static rg_status list_splits(rg_arena *arena, rg_space *s, const rg_arrangement *base,
                             bool for_decode, rg_err *err)
{
    const rg_plan *plan = s->plan;
    const rg_cluster *cluster = s->machines[base->machine].cluster;
    static const rg_plan_ints one = {.items = {1}, .count = 1};
    const rg_plan_ints tp = choose_tp(plan, cluster, for_decode),
                       pp = choose_pp(plan, cluster, for_decode);
    const rg_plan_ints cp = plan->cp.count > 0 ? plan->cp : one;
    for (int i = 0; i < tp.count; i++) {
        const rg_plan_ints ep = choose_ep(s, tp.items[i], for_decode);
        for (int k = 0; k < pp.count; k++)
            for (int j = 0; j < cp.count; j++)
                for (int e = 0; e < ep.count; e++) {
                    const rg_parallel p = {.tp = tp.items[i],
                                           .pp = pp.items[k],
                                           .cp = cp.items[j],
                                           .ep = ep.items[e],
                                           .dp = 1,
                                           .pp_interleave = 1};
                    RG_TRY(add_splits(arena, s, base, &p, for_decode, err));
                }
    }
    return RG_OK;
}

static bool splits_pools(const rg_plan *plan)
{
    bool any = false;
    for (int i = 0; i < plan->pool_count; i++)
        any |= plan->pools[i].prefill > 0;
    return any;
}

static rg_status list_arrangements(rg_arena *arena, rg_space *s, rg_err *err)
{
    const rg_plan *plan = s->plan;
    const int weights = plan->weight_types.count > 0 ? plan->weight_types.count : 1;
    const int kvs = plan->kv_types.count > 0 ? plan->kv_types.count : 1;
    const bool split = splits_pools(plan);
    for (int m = 0; m < s->machine_count; m++)
        for (int w = 0; w < weights; w++)
            for (int k = 0; k < kvs; k++) {
                rg_arrangement base = {.machine = m,
                                       .weight_type = plan->weight_types.items[w],
                                       .kv_type = plan->kv_types.items[k]};
                RG_TRY(rg_formats_choose(s->model, base.weight_type, base.kv_type, "bf16",
                                         &base.formats, err));
                base.formats.fused_attention = true;
                base.expanded = rg_formats_expand(s->machines[m].cluster->accel, &base.formats);
                if (s->machines[m].decodes)
                    RG_TRY(list_splits(arena, s, &base, true, err));
                if (s->machines[m].prefills && split)
                    RG_TRY(list_splits(arena, s, &base, false, err));
            }
    return RG_OK;
}

/* ---- candidates */

static const char *engine_of(const rg_plan *plan, rg_policy_kind policy)
{
    if (plan->engine)
        return plan->engine;
    switch (policy) {
    case RG_POLICY_SGLANG:
        return "sglang";
    case RG_POLICY_TRT_NO_EVICT:
    case RG_POLICY_TRT_MAX_UTILISATION:
    case RG_POLICY_TRT_STATIC:
        return "trtllm";
    default:
        return "vllm";
    }
}

static rg_status load_engines(rg_arena *arena, const rg_changes *changes, rg_space *s, rg_err *err)
{
    for (int i = 0; i < s->plan->policy_count; i++) {
        RG_TRY(rg_engine_load_changed(arena, engine_of(s->plan, s->plan->policies[i]), changes,
                                      &s->engines[i], err));
        if (s->plan->memory_utilisation > 0)
            s->engines[i].memory_utilisation = s->plan->memory_utilisation;
    }
    return RG_OK;
}

/* KV memory of a replica, into rules and out; whether it holds the model at all. */
static rg_status memory_of(rg_arena *arena, const rg_space *s, const rg_candidate *c,
                           int arrangement, rg_engine_rules *rules, rg_capacity *out, bool *fits,
                           rg_err *err)
{
    const rg_arrangement *a = &s->arrangements[arrangement];
    const double utilisation = s->engines[c->engine].memory_utilisation;
    rg_replica_query query = {.cluster = s->machines[a->machine].cluster,
                              .model = s->model,
                              .formats = &a->formats,
                              .parallel = &a->parallel,
                              .utilisation = utilisation > 0 ? utilisation : 0.9,
                              .share_of = s->engines[c->engine].memory_share_of,
                              .bytes_per_logit = s->engines[c->engine].bytes_per_logit};
    if (c->speculate != RG_SPEC_NONE) {
        rg_spec_draft draft;
        RG_TRY(rg_spec_draft_of(arena, c->speculate, s->model, &a->formats, &a->parallel,
                                s->plan->draft_model, 0, &draft, err));
        rg_spec_memory(c->speculate, c->rules.speculation.drafts, s->model, &a->formats,
                       &a->parallel, &draft, &query.draft_bytes, &query.draft_token_bytes);
    }
    RG_TRY(rg_replica_memory(&query, rules, out, err));
    rules->blocks = out->blocks;
    /* a model without KV needs room for its state alone */
    *fits = out->block_bytes > 0 ? out->blocks >= 2 : out->kv_bytes > 0;
    return RG_OK;
}

static rg_status finish(rg_arena *arena, const rg_space *s, rg_candidate *c, rg_err *err)
{
    bool both = true;
    RG_TRY(memory_of(arena, s, c, c->arrangement, &c->rules, &c->capacity, &c->fits, err));
    if (c->pools.prefill > 0)
        RG_TRY(memory_of(arena, s, c, c->prefill.arrangement, &c->prefill.rules,
                         &c->prefill.capacity, &both, err));
    else
        c->prefill = (rg_prefill_pool){c->arrangement, c->rules, c->capacity};
    c->replica_fits = c->fits;
    c->fits &= both;
    return RG_OK;
}

static rg_status add_candidate(rg_arena *arena, rg_space *s, const rg_candidate *base, rg_err *err)
{
    if (s->candidate_count == s->candidate_room) {
        s->candidate_room = s->candidate_room > 0 ? 2 * s->candidate_room : 256;
        rg_candidate *items = RG_NEW(arena, rg_candidate, s->candidate_room, err);
        if (!items)
            return RG_ERR_LIMIT;
        if (s->candidate_count > 0)
            memcpy(items, s->candidates, (size_t)s->candidate_count * sizeof *items);
        s->candidates = items;
    }
    rg_candidate *c = &s->candidates[s->candidate_count];
    *c = *base;
    RG_TRY(finish(arena, s, c, err));
    s->candidate_count++;
    return RG_OK;
}

/* Without a price nothing can be said where others have one and the goal is cost. */
static bool priced(const rg_space *s, const rg_arrangement *a)
{
    return s->goal != RG_PLAN_COST || isfinite(s->machines[a->machine].usd_per_hour);
}

static rg_engine_rules rules_of(const rg_space *s, int engine, const rg_arrangement *a)
{
    const rg_plan *plan = s->plan;
    rg_engine_rules r = rg_engine_rules_default(plan->policies[engine]);
    if (s->model->max_positions > 0)
        r.max_model_tokens = s->model->max_positions;
    rg_rules_for_device(&s->engines[engine], s->machines[a->machine].cluster->accel, &a->parallel,
                        &r);
    return r;
}

/* A candidate as it is, or once for every arrangement that may compute its prompts. */
static rg_status add_with_prefill(rg_arena *arena, rg_space *s, const rg_candidate *base,
                                  rg_err *err)
{
    if (base->pools.prefill == 0)
        return add_candidate(arena, s, base, err);
    const rg_arrangement *a = &s->arrangements[base->arrangement];
    for (int i = 0; i < s->arrangement_count; i++) {
        const rg_arrangement *b = &s->arrangements[i];
        if (!b->prefills || b->weight_type != a->weight_type || b->kv_type != a->kv_type ||
            !priced(s, b))
            continue;
        if (s->plan->prefill_devices.count == 0 && b->machine != a->machine)
            continue;
        rg_candidate c = *base;
        rg_engine_rules own = rules_of(s, c.engine, b);
        c.prefill.arrangement = i;
        c.prefill.rules = c.rules;
        c.prefill.rules.speculation = (rg_speculation){0};
        c.prefill.rules.asynchronous = own.asynchronous;
        if (s->plan->max_sequences.count == 0)
            c.prefill.rules.max_sequences = own.max_sequences;
        if (s->plan->max_tokens.count == 0)
            c.prefill.rules.max_batched_tokens = own.max_batched_tokens;
        RG_TRY(add_candidate(arena, s, &c, err));
    }
    return RG_OK;
}

/* The choices within one arrangement and scheduler: limits, cache, drafts, pools. */
static rg_status list_choices(rg_arena *arena, rg_space *s, const rg_candidate *base, rg_err *err)
{
    const rg_plan *plan = s->plan;
    const int sequences = plan->max_sequences.count > 0 ? plan->max_sequences.count : 1;
    const int tokens = plan->max_tokens.count > 0 ? plan->max_tokens.count : 1;
    const int caches = plan->prefix_caching[0] && plan->prefix_caching[1] ? 2 : 1;
    const int64_t all = (int64_t)sequences * tokens * plan->speculation_count * caches *
                        plan->reservation_count * plan->pool_count;
    for (int64_t n = 0; n < all; n++) {
        int64_t rest = n;
        rg_candidate c = *base;
        rg_engine_rules *r = &c.rules;
        c.pools = plan->pools[rest % plan->pool_count];
        rest /= plan->pool_count;
        r->reservation = plan->reservations[rest % plan->reservation_count];
        rest /= plan->reservation_count;
        if (plan->prefix_caching_given)
            r->prefix_caching = caches == 2 ? rest % 2 == 1 : plan->prefix_caching[1];
        rest /= caches;
        const rg_plan_speculation *x = &plan->speculations[rest % plan->speculation_count];
        c.speculate = x->kind;
        r->speculation = x->rule;
        rest /= plan->speculation_count;
        if (plan->max_tokens.count > 0)
            r->max_batched_tokens = plan->max_tokens.items[rest % tokens];
        rest /= tokens;
        if (plan->max_sequences.count > 0)
            r->max_sequences = plan->max_sequences.items[rest];
        RG_TRY(add_with_prefill(arena, s, &c, err));
    }
    return RG_OK;
}

static rg_status list_candidates(rg_arena *arena, rg_space *s, rg_err *err)
{
    for (int a = 0; a < s->arrangement_count; a++) {
        if (!s->arrangements[a].decodes || !priced(s, &s->arrangements[a]))
            continue;
        for (int e = 0; e < s->plan->policy_count; e++) {
            const rg_candidate base = {
                .arrangement = a, .engine = e, .rules = rules_of(s, e, &s->arrangements[a])};
            RG_TRY(list_choices(arena, s, &base, err));
        }
    }
    return RG_OK;
}

rg_status rg_space_make(rg_arena *arena, const rg_plan *plan, const rg_changes *changes,
                        rg_space *out, rg_err *err)
{
    *out = (rg_space){.plan = plan};
    rg_model *model;
    RG_TRY(rg_model_load_changed(arena, plan->model, changes, &model, err));
    out->model = model;
    RG_TRY(rg_machines_list(arena, changes, out, err));
    rg_machines_goal(out);
    RG_TRY(load_engines(arena, changes, out, err));
    RG_TRY(list_arrangements(arena, out, err));
    return list_candidates(arena, out, err);
}

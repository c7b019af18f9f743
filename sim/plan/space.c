/* plan/space.c: enumeration of machines, arrangements and candidates. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/space.h"

#include "core/text.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- machines */

static double price_given(const rg_plan *plan, const rg_machine *m)
{
    for (int i = plan->price_names.count - 1; i >= 0; i--) {
        const char *name = plan->price_names.items[i];
        if (strcmp(name, m->name) == 0 || strcmp(name, m->cluster->accel->name) == 0)
            return plan->price_values[i];
    }
    return NAN;
}

static void set_price(const rg_plan *plan, const rg_price_list *prices, rg_machine *m)
{
    m->usd_per_hour = price_given(plan, m);
    if (isfinite(m->usd_per_hour)) {
        m->provider = "given";
        return;
    }
    const rg_price *p = rg_price_least(prices, m->cluster->accel->name, plan->term, plan->provider);
    if (!p)
        return;
    m->usd_per_hour = p->price.value;
    m->provider = p->provider;
    m->date = p->date;
    m->source = p->price.source;
}

static rg_status add_machine(rg_arena *arena, const char *name, const rg_changes *changes,
                             const rg_price_list *prices, rg_space *s, rg_err *err)
{
    rg_machine *m = &s->machines[s->machine_count];
    rg_cluster *cluster;
    RG_TRY(rg_cluster_load_changed(arena, name, changes, &cluster, err));
    *m = (rg_machine){.name = name, .cluster = cluster};
    set_price(s->plan, prices, m);
    if (cluster->accel->tdp.known)
        m->watts = cluster->accel->tdp.value;
    if (cluster->overhead_power.known && cluster->devices_per_node > 0)
        m->watts += cluster->overhead_power.value / (double)cluster->devices_per_node;
    s->machine_count++;
    return RG_OK;
}

/* Without a list: every device that has a price at this term. */
static rg_status machines_with_price(rg_arena *arena, const rg_changes *changes,
                                     const rg_price_list *prices, rg_space *s, rg_err *err)
{
    s->machines = RG_NEW(arena, rg_machine, prices->count, err);
    if (!s->machines)
        return RG_ERR_LIMIT;
    for (int i = 0; i < prices->count; i++) {
        bool known = prices->list[i].term != s->plan->term;
        for (int k = 0; k < s->machine_count; k++)
            known |= strcmp(s->machines[k].name, prices->list[i].device) == 0;
        if (!known)
            RG_TRY(add_machine(arena, prices->list[i].device, changes, prices, s, err));
    }
    if (s->machine_count == 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                       "no device has a price of this kind; name devices with --hw");
    return RG_OK;
}

static rg_status placed(rg_status status, rg_pos pos, rg_err *err)
{
    if (status != RG_ERR_USAGE || !err || !pos.file)
        return status;
    char text[RG_ERR_TEXT_SIZE];
    memcpy(text, err->text, sizeof text);
    return rg_fail(err, RG_ERR_INPUT, pos, "%s", text);
}

/* A provider without one price would silently leave all devices without a price. */
static rg_status known_provider(const rg_plan *plan, const rg_price_list *prices, rg_err *err)
{
    if (!plan->provider)
        return RG_OK;
    const char *near = NULL;
    int least = INT_MAX;
    for (int i = 0; i < prices->count; i++) {
        const char *name = prices->list[i].provider;
        const int distance = rg_text_distance(plan->provider, name);
        if (distance == 0)
            return RG_OK;
        if (distance < least) {
            least = distance;
            near = name;
        }
    }
    return rg_fail(err, RG_ERR_USAGE, plan->provider_pos, "no price of provider '%s' in %s%s%s%s",
                   plan->provider, prices->path ? prices->path : "any price file",
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static rg_status list_machines(rg_arena *arena, const rg_changes *changes, rg_space *s, rg_err *err)
{
    const rg_plan_names *names = &s->plan->devices;
    rg_price_list prices;
    RG_TRY(rg_prices_load(arena, s->plan->prices, &prices, err));
    RG_TRY(known_provider(s->plan, &prices, err));
    if (names->count == 0)
        return machines_with_price(arena, changes, &prices, s, err);
    s->machines = RG_NEW(arena, rg_machine, names->count, err);
    if (!s->machines)
        return RG_ERR_LIMIT;
    for (int i = 0; i < names->count; i++)
        RG_TRY(placed(add_machine(arena, names->items[i], changes, &prices, s, err), names->pos[i],
                      err));
    return RG_OK;
}

static void choose_goal(rg_space *s)
{
    int priced = 0;
    for (int i = 0; i < s->machine_count; i++)
        priced += isfinite(s->machines[i].usd_per_hour);
    s->goal = s->plan->goal;
    if (s->goal == RG_PLAN_COST && priced == 0) {
        s->goal = RG_PLAN_DEVICES;
        s->goal_defaulted = true;
    }
}

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

static rg_plan_ints choose_tp(const rg_plan *plan, const rg_cluster *cluster)
{
    return plan->tp.count > 0
               ? plan->tp
               : powers(cluster->scale_up_devices > 0 ? cluster->scale_up_devices : 1);
}

static rg_plan_ints choose_pp(const rg_plan *plan, const rg_cluster *cluster)
{
    if (plan->pp.count > 0)
        return plan->pp;
    const int64_t devices = cluster->devices_per_node * cluster->nodes;
    return powers(devices < 4 ? devices : 4);
}

static rg_plan_ints choose_ep(const rg_space *s, int64_t tp)
{
    if (s->plan->ep.count > 0)
        return s->plan->ep;
    return (rg_plan_ints){.items = {1, tp}, .count = is_moe(s->model) && tp > 1 ? 2 : 1};
}

static rg_status add_arrangement(rg_arena *arena, rg_space *s, const rg_arrangement *base,
                                 const rg_parallel *p, rg_err *err)
{
    rg_machine *m = &s->machines[base->machine];
    rg_parallel parallel = *p;
    rg_err reason = {0};
    if (rg_step_check(m->cluster, s->model, &parallel, &reason) != RG_OK) {
        if (m->impossible++ == 0)
            memcpy(m->reason, reason.text, sizeof m->reason);
        return RG_OK;
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
    a->devices = parallel.tp * parallel.pp * parallel.cp;
    return RG_OK;
}

static rg_status add_splits(rg_arena *arena, rg_space *s, const rg_arrangement *base,
                            const rg_parallel *p, rg_err *err)
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
            RG_TRY(add_arrangement(arena, s, base, &with, err));
    }
    return RG_OK;
}

static rg_status list_splits(rg_arena *arena, rg_space *s, const rg_arrangement *base, rg_err *err)
{
    const rg_plan *plan = s->plan;
    const rg_cluster *cluster = s->machines[base->machine].cluster;
    static const rg_plan_ints one = {.items = {1}, .count = 1};
    const rg_plan_ints tp = choose_tp(plan, cluster), pp = choose_pp(plan, cluster);
    const rg_plan_ints cp = plan->cp.count > 0 ? plan->cp : one;
    for (int i = 0; i < tp.count; i++) {
        const rg_plan_ints ep = choose_ep(s, tp.items[i]);
        for (int k = 0; k < pp.count; k++)
            for (int j = 0; j < cp.count; j++)
                for (int e = 0; e < ep.count; e++) {
                    const rg_parallel p = {.tp = tp.items[i],
                                           .pp = pp.items[k],
                                           .cp = cp.items[j],
                                           .ep = ep.items[e],
                                           .dp = 1,
                                           .pp_interleave = 1};
                    RG_TRY(add_splits(arena, s, base, &p, err));
                }
    }
    return RG_OK;
}

static rg_status list_arrangements(rg_arena *arena, rg_space *s, rg_err *err)
{
    const rg_plan *plan = s->plan;
    const int weights = plan->weight_types.count > 0 ? plan->weight_types.count : 1;
    const int kvs = plan->kv_types.count > 0 ? plan->kv_types.count : 1;
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
                RG_TRY(list_splits(arena, s, &base, err));
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

static rg_status finish(const rg_space *s, rg_candidate *c, rg_err *err)
{
    const rg_arrangement *a = &s->arrangements[c->arrangement];
    const rg_machine *m = &s->machines[a->machine];
    const double utilisation = s->engines[c->engine].memory_utilisation;
    const rg_replica_query query = {.cluster = m->cluster,
                                    .model = s->model,
                                    .formats = &a->formats,
                                    .parallel = &a->parallel,
                                    .utilisation = utilisation > 0 ? utilisation : 0.9,
                                    .share_of = s->engines[c->engine].memory_share_of};
    RG_TRY(rg_replica_memory(&query, &c->rules, &c->capacity, err));
    c->rules.blocks = c->capacity.blocks;
    /* a model without KV needs room for its state alone */
    c->fits = c->capacity.block_bytes > 0 ? c->capacity.blocks >= 2 : c->capacity.kv_bytes > 0;
    const double devices = (double)a->devices;
    c->usd_per_hour = devices * m->usd_per_hour;
    c->goal_each = s->goal == RG_PLAN_COST    ? c->usd_per_hour
                   : s->goal == RG_PLAN_POWER ? devices * m->watts
                                              : devices;
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
    RG_TRY(finish(s, c, err));
    s->candidate_count++;
    return RG_OK;
}

static rg_engine_rules rules_of(const rg_space *s, int engine, const rg_arrangement *a)
{
    const rg_plan *plan = s->plan;
    rg_engine_rules r = rg_engine_rules_default(plan->policies[engine]);
    if (s->model->max_positions > 0)
        r.max_model_tokens = s->model->max_positions;
    rg_rules_for_device(&s->engines[engine], s->machines[a->machine].cluster->accel, &r);
    return r;
}

/* The choices within one arrangement and scheduler: limits, cache, drafts, pools. */
static rg_status list_choices(rg_arena *arena, rg_space *s, const rg_candidate *base, rg_err *err)
{
    const rg_plan *plan = s->plan;
    const int sequences = plan->max_sequences.count > 0 ? plan->max_sequences.count : 1;
    const int tokens = plan->max_tokens.count > 0 ? plan->max_tokens.count : 1;
    const int drafts = plan->drafts.count > 0 ? plan->drafts.count : 1;
    const int caches = plan->prefix_caching[0] && plan->prefix_caching[1] ? 2 : 1;
    const int64_t all =
        (int64_t)sequences * tokens * drafts * caches * plan->reservation_count * plan->pool_count;
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
        if (plan->drafts.count > 0)
            r->speculation = (rg_speculation){.drafts = plan->drafts.items[rest % drafts],
                                              .acceptance = plan->acceptance,
                                              .draft_time_ratio = plan->draft_cost};
        r->asynchronous &= r->speculation.drafts == 0;
        rest /= drafts;
        if (plan->max_tokens.count > 0)
            r->max_batched_tokens = plan->max_tokens.items[rest % tokens];
        rest /= tokens;
        if (plan->max_sequences.count > 0)
            r->max_sequences = plan->max_sequences.items[rest];
        RG_TRY(add_candidate(arena, s, &c, err));
    }
    return RG_OK;
}

static rg_status list_candidates(rg_arena *arena, rg_space *s, rg_err *err)
{
    for (int a = 0; a < s->arrangement_count; a++) {
        const rg_machine *m = &s->machines[s->arrangements[a].machine];
        if (s->goal == RG_PLAN_COST && !isfinite(m->usd_per_hour))
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
    RG_TRY(list_machines(arena, changes, out, err));
    choose_goal(out);
    RG_TRY(load_engines(arena, changes, out, err));
    RG_TRY(list_arrangements(arena, out, err));
    return list_candidates(arena, out, err);
}

int64_t rg_candidate_most(const rg_space *s, const rg_candidate *c, bool *by_power)
{
    const rg_arrangement *a = &s->arrangements[c->arrangement];
    int64_t most = s->plan->most_devices / a->devices;
    *by_power = false;
    const double watts = s->machines[a->machine].watts * (double)a->devices;
    if (s->plan->power_cap_w > 0 && watts > 0) {
        const double fit = floor(s->plan->power_cap_w / watts);
        if (fit < (double)most) {
            most = (int64_t)fit;
            *by_power = true;
        }
    }
    return most < RG_PLAN_MOST_REPLICAS ? most : RG_PLAN_MOST_REPLICAS;
}

void rg_candidate_text(const rg_space *s, const rg_candidate *c, char *out, size_t size)
{
    const rg_arrangement *a = &s->arrangements[c->arrangement];
    const rg_parallel *p = &a->parallel;
    size_t used = (size_t)snprintf(out, size, "tp%lld", (long long)p->tp);
    const struct {
        const char *name;
        int64_t value;
        bool shown;
    } parts[] = {{"pp", p->pp, p->pp > 1}, {"ep", p->ep, p->ep > 1}, {"cp", p->cp, p->cp > 1}};
    for (int i = 0; i < 3; i++)
        if (parts[i].shown && used < size)
            used += (size_t)snprintf(out + used, size - used, " %s%lld", parts[i].name,
                                     (long long)parts[i].value);
    if (p->attention_dp && used < size)
        used += (size_t)snprintf(out + used, size - used, " attention-dp");
    if (c->pools.prefill > 0 && used < size)
        used += (size_t)snprintf(out + used, size - used, " pools %lld:%lld",
                                 (long long)c->pools.prefill, (long long)c->pools.decode);
    if (c->rules.speculation.drafts > 0 && used < size)
        snprintf(out + used, size - used, " drafts%lld", (long long)c->rules.speculation.drafts);
}

/* cli/plan_json.c: an arrangement of a plan, its latencies and its bill as JSON. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_parts.h"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void split_json(json_t *o, const rg_arrangement *a, const rg_machine *m)
{
    const rg_parallel *p = &a->parallel;
    json_object_set_new(o, "device", json_string(m->cluster->accel->name));
    json_object_set_new(o, "cluster", json_string(m->cluster->name));
    json_object_set_new(o, "tp", json_integer(p->tp));
    json_object_set_new(o, "pp", json_integer(p->pp));
    json_object_set_new(o, "ep", json_integer(p->ep));
    json_object_set_new(o, "cp", json_integer(p->cp));
    json_object_set_new(o, "attention_dp", json_boolean(p->attention_dp));
}

static void rules_json(json_t *o, const rg_engine_rules *r)
{
    json_object_set_new(o, "max_sequences", json_integer(r->max_sequences));
    json_object_set_new(o, "max_batched_tokens", json_integer(r->max_batched_tokens));
    json_object_set_new(o, "kv_blocks", json_integer(r->blocks));
    json_object_set_new(o, "kv_block_tokens", json_integer(r->block_tokens));
}

json_t *rg_part_arrangement_json(const rg_plan_run *run, int i, const rg_trial *t)
{
    const rg_candidate *c = rg_part_candidate(run, i);
    const rg_arrangement *a = rg_part_arrangement(run, i);
    const rg_usage u = rg_part_usage(run, i, t->replicas);
    json_t *o = json_object();
    split_json(o, a, rg_part_machine(run, i));
    json_object_set_new(o, "replicas", json_integer(t->replicas));
    json_object_set_new(o, "prefill_replicas", json_integer(u.prefill));
    json_object_set_new(o, "devices", json_integer(u.devices));
    json_object_set_new(o, "weight_type", json_string(rg_part_weights(a)));
    json_object_set_new(o, "kv_type", json_string(a->formats.kv.name));
    json_object_set_new(o, "scheduler", json_string(rg_policy_names[c->rules.policy]));
    rules_json(o, &c->rules);
    json_object_set_new(o, "prefix_caching", json_boolean(c->rules.prefix_caching));
    json_object_set_new(o, "speculation", json_string(rg_spec_kind_name(c->speculate)));
    json_object_set_new(o, "drafts", json_integer(c->rules.speculation.drafts));
    json_object_set_new(o, "usd_per_hour", number(u.usd_per_hour));
    if (u.prefill > 0) {
        const rg_arrangement *b = &run->space.arrangements[c->prefill.arrangement];
        json_t *pool = json_object();
        split_json(pool, b, &run->space.machines[b->machine]);
        json_object_set_new(pool, "replicas", json_integer(u.prefill));
        json_object_set_new(pool, "devices", json_integer(u.prefill * b->devices));
        rules_json(pool, &c->prefill.rules);
        json_object_set_new(o, "prefill_pool", pool);
    }
    return o;
}

json_t *rg_part_limits_json(const rg_plan_run *run, const rg_trial *t)
{
    json_t *list = json_array();
    for (int i = 0; i < run->plan->limit_count; i++) {
        const rg_plan_limit *x = &run->plan->limits[i];
        json_t *o = json_object();
        json_object_set_new(o, "metric", json_string(rg_plan_metric_name(x->metric)));
        json_object_set_new(o, "quantile", x->quantile < 0 ? json_null() : number(x->quantile));
        json_object_set_new(o, "limit_s", number(x->seconds));
        json_object_set_new(o, "value_s", number(t->value[i]));
        json_object_set_new(o, "low_s", number(t->low[i]));
        json_object_set_new(o, "high_s", number(t->high[i]));
        json_object_set_new(o, "margin_ratio", number(1 - t->value[i] / x->seconds));
        json_array_append_new(list, o);
    }
    return list;
}

void rg_part_latencies_json(json_t *o, const rg_trial *t)
{
    const struct {
        const char *key;
        double mean, p50, p95, p99;
    } all[] = {{"ttft_s", t->ttft_mean, t->ttft_p50, t->ttft_p95, t->ttft_p99},
               {"tpot_excl_first_s", t->tpot_mean, t->tpot_p50, t->tpot_p95, t->tpot_p99},
               {"e2e_s", t->e2e_mean, t->e2e_p50, t->e2e_p95, t->e2e_p99}};
    for (int i = 0; i < 3; i++) {
        json_t *x = json_object();
        json_object_set_new(x, "mean", number(all[i].mean));
        json_object_set_new(x, "p50", number(all[i].p50));
        json_object_set_new(x, "p95", number(all[i].p95));
        json_object_set_new(x, "p99", number(all[i].p99));
        json_object_set_new(o, all[i].key, x);
    }
    json_object_set_new(o, "mean_batch", number(t->mean_batch));
    json_object_set_new(o, "utilisation", number(t->busy_s / t->replica_s));
    json_object_set_new(o, "kv_mean_use", number(t->kv_use_ratio));
    json_object_set_new(o, "prefix_hit_tokens_share", number(t->prefix_hit_ratio));
    json_object_set_new(o, "preemptions", json_integer(t->preemptions));
}

void rg_part_bill_json(json_t *o, const rg_plan_bill *b)
{
    json_object_set_new(o, "cost_per_million_input_tokens_usd", number(b->usd_per_million_input));
    json_object_set_new(o, "cost_per_million_output_tokens_usd", number(b->usd_per_million_output));
    json_object_set_new(o, "cost_per_million_tokens_usd", number(b->usd_per_million_tokens));
    json_object_set_new(o, "watts", number(b->watts));
    json_object_set_new(o, "device_watts", number(b->device_watts));
    json_object_set_new(o, "energy_per_output_token_joules", number(b->joules_per_output_token));
    json_object_set_new(o, "carbon_g_per_hour", number(b->carbon_g_per_hour));
    json_object_set_new(o, "carbon_g_per_million_output_tokens",
                        number(b->carbon_g_per_million_output));
    json_object_set_new(o, "electricity_usd_per_hour", number(b->electricity_usd_per_hour));
}

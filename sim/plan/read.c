/* plan/read.c: settings of a plan, typed and checked. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "plan/settings.h"

static const char *const metric_names[] = {"ttft", "tpot", "e2e", NULL};

const char *rg_plan_metric_name(rg_plan_metric metric)
{
    return metric_names[metric];
}

/* ---- limits: "p95:1s", "mean:300ms", "1s" (p95) */

static rg_status read_limit(const rg_plan_names *v, int i, rg_plan_metric metric, rg_plan *out,
                            rg_err *err)
{
    static const char expected[] = "a limit such as p95:1s, p99.9:300ms or mean:2s";
    const char *name = metric_names[metric], *text = v->items[i], *time = text;
    rg_plan_limit limit = {.metric = metric, .quantile = 0.95, .text = text};
    const char *colon = strchr(text, ':');
    if (colon) {
        char share[32];
        double percent;
        time = colon + 1;
        if ((size_t)(colon - text) >= sizeof share)
            return rg_plan_text_bad(err, v, i, name, expected);
        memcpy(share, text, (size_t)(colon - text));
        share[colon - text] = 0;
        if (strcmp(share, "mean") == 0)
            limit.quantile = -1;
        else if (share[0] == 'p' && rg_text_to_real(share + 1, &percent) && percent > 0 &&
                 percent <= 100)
            limit.quantile = percent / 100;
        else
            return rg_plan_text_bad(err, v, i, name, expected);
    }
    RG_TRY(rg_plan_text_relay(
        rg_quantity_parse(time, RG_DIM_SECONDS, v->pos[i], name, &limit.seconds, err), v, name,
        err));
    if (!(limit.seconds > 0))
        return rg_plan_text_bad(err, v, i, name, expected);
    if (out->limit_count == RG_PLAN_LIMITS)
        return rg_fail(err, RG_ERR_LIMIT, v->pos[i], "more than %d limits", RG_PLAN_LIMITS);
    out->limits[out->limit_count++] = limit;
    return RG_OK;
}

/* Without a limit on waiting a queue may grow for ever, and one replica would do for anything. */
static void limit_waiting(rg_plan *out)
{
    for (int i = 0; i < out->limit_count; i++)
        if (out->limits[i].metric != RG_PLAN_TPOT)
            return;
    out->limits[out->limit_count++] = (rg_plan_limit){.metric = RG_PLAN_TTFT,
                                                      .quantile = 0.99,
                                                      .seconds = 10,
                                                      .text = "p99:10s",
                                                      .assumed = true};
}

static rg_status read_limits(const rg_plan_text *t, rg_plan *out, rg_err *err)
{
    for (rg_plan_metric m = 0; m < RG_PLAN_METRICS; m++) {
        const rg_plan_names *v = rg_plan_text_get(t, metric_names[m]);
        for (int i = 0; i < v->count; i++)
            RG_TRY(read_limit(v, i, m, out, err));
    }
    if (out->offline)
        return RG_OK;
    if (out->limit_count == RG_PLAN_LIMITS)
        out->limit_count--;
    limit_waiting(out);
    return RG_OK;
}

/* ---- traffic */

static rg_status read_length(const rg_plan_text *t, const char *name, const char *fallback,
                             rg_length_spec *out, double *mean, rg_err *err)
{
    const rg_plan_names *v = rg_plan_text_get(t, name);
    RG_TRY(rg_plan_text_relay(rg_length_parse(v->count > 0 ? v->items[0] : fallback, out, err), v,
                              name, err));
    *mean = out->kind == RG_LENGTH_FIXED || out->kind == RG_LENGTH_LOGNORMAL
                ? out->mean
                : 0.5 * (double)(out->least + out->most);
    if (*mean < 1 && out->least > 0)
        *mean = (double)out->least;
    return RG_OK;
}

/* Requests that are all made up when nothing else says how many: several times what replicas hold
 * at once, so that filling and draining them is a small part. */
static const int64_t offline_requests = 8192;

static rg_status read_offline(const rg_plan_text *t, rg_plan *out, rg_err *err)
{
    static const char *const not_offline[] = {"rate", "users", "think", "ttft", "e2e"};
    bool given, values[2] = {false, false};
    RG_TRY(rg_plan_text_bools(t, "offline", values, &given, err));
    out->offline = values[true];
    for (size_t i = 0; i < sizeof not_offline / sizeof not_offline[0] && out->offline; i++) {
        const rg_plan_names *v = rg_plan_text_get(t, not_offline[i]);
        if (v->count > 0)
            return rg_fail(err, v->pos[0].file ? RG_ERR_INPUT : RG_ERR_USAGE, v->pos[0],
                           "offline, all requests are there at once: '%s' says nothing then; a "
                           "limit on tpot would do",
                           not_offline[i]);
    }
    if (out->offline && !out->traffic.trace && out->traffic.requests == 0)
        out->traffic.requests = offline_requests;
    return RG_OK;
}

static rg_status read_traffic(const rg_plan_text *t, rg_plan *out, rg_err *err)
{
    rg_plan_traffic *x = &out->traffic;
    RG_TRY(rg_plan_text_quantity(t, "rate", RG_DIM_PER_SECOND, &x->rate_per_s, err));
    RG_TRY(rg_plan_text_int(t, "users", 1, 1 << 24, &x->users, err));
    RG_TRY(rg_plan_text_quantity(t, "think", RG_DIM_SECONDS, &x->think_s, err));
    RG_TRY(rg_plan_text_int(t, "system-prompt", 0, 1 << 24, &x->system_tokens, err));
    RG_TRY(rg_plan_text_int(t, "limit", 1, 1 << 24, &x->requests, err));
    x->trace = rg_plan_text_one(t, "trace");
    x->trace_format = rg_plan_text_one(t, "trace-format");
    RG_TRY(read_length(t, "isl", "2048", &x->prompt, &x->mean_prompt, err));
    RG_TRY(read_length(t, "osl", "256", &x->output, &x->mean_output, err));
    RG_TRY(read_offline(t, out, err));
    out->has_traffic = x->rate_per_s > 0 || x->users > 0 || x->trace || out->offline;
    if (x->rate_per_s > 0 && x->users > 0)
        return rg_fail(err, RG_ERR_USAGE, rg_plan_text_get(t, "users")->pos[0],
                       "a rate and users that wait for answers exclude each other; keep one");
    if (x->think_s > 0 && x->users == 0)
        return rg_fail(err, RG_ERR_USAGE, rg_plan_text_get(t, "think")->pos[0],
                       "a time to think needs users: say how many");
    if (rg_plan_text_get(t, "rate")->count > 0 && !(x->rate_per_s > 0))
        return rg_plan_text_bad(err, rg_plan_text_get(t, "rate"), 0, "rate",
                                "above 0, such as 20/s");
    return RG_OK;
}

/* ---- what may be chosen */

static rg_status read_pools(const rg_plan_text *t, rg_plan *out, rg_err *err)
{
    const rg_plan_names *v = rg_plan_text_get(t, "pools");
    static const rg_plan_pools usual[] = {{1, 1}, {1, 2}, {2, 1}, {1, 4}, {4, 1}};
    for (int i = 0; i < v->count; i++) {
        const char *text = v->items[i];
        if (strcmp(text, "disaggregated") == 0) {
            for (size_t k = 0; k < sizeof usual / sizeof usual[0]; k++)
                if (out->pool_count < RG_PLAN_LIST)
                    out->pools[out->pool_count++] = usual[k];
            continue;
        }
        rg_plan_pools p = {0, 0};
        char left[24];
        const char *colon = strchr(text, ':');
        if (colon && (size_t)(colon - text) < sizeof left) {
            memcpy(left, text, (size_t)(colon - text));
            left[colon - text] = 0;
            if (!rg_text_to_int(left, &p.prefill) || !rg_text_to_int(colon + 1, &p.decode) ||
                p.prefill < 1 || p.decode < 1 || p.prefill > 1024 || p.decode > 1024)
                p.prefill = -1;
        }
        if (p.prefill < 0 || (p.prefill == 0 && strcmp(text, "aggregated") != 0))
            return rg_plan_text_bad(err, v, i, "pools",
                                    "aggregated, disaggregated, or prefill:decode such as 1:2");
        if (out->pool_count < RG_PLAN_LIST)
            out->pools[out->pool_count++] = p;
    }
    if (out->pool_count == 0)
        out->pool_count = 1;
    return RG_OK;
}

/* Settings of a prefill pool change nothing where no pools are split, and are refused there. */
static rg_status check_prefill(const rg_plan_text *t, const rg_plan *plan, rg_err *err)
{
    static const char *const names[] = {"prefill-hw", "prefill-tp", "prefill-pp", "prefill-ep"};
    bool split = false;
    for (int i = 0; i < plan->pool_count; i++)
        split |= plan->pools[i].prefill > 0;
    for (int i = 0; i < 4 && !split; i++)
        if (rg_plan_text_get(t, names[i])->count > 0)
            return rg_plan_text_bad(err, rg_plan_text_get(t, names[i]), 0, names[i],
                                    "read without split pools; add --pools disaggregated");
    if (plan->prefill_devices.count > 0 && plan->devices.count == 0)
        return rg_plan_text_bad(err, &plan->prefill_devices, 0, "prefill-hw",
                                "read without --hw, the devices that decode");
    return RG_OK;
}

static rg_status read_rules(const rg_plan_text *t, rg_plan *out, rg_err *err)
{
    static const char *const reservations[] = {"paged", "output", "model", NULL};
    const rg_plan_names *v = rg_plan_text_get(t, "scheduler");
    for (int i = 0; i < v->count && i < RG_POLICY_COUNT; i++) {
        int kind;
        RG_TRY(rg_plan_text_choice(v, i, "scheduler", rg_policy_names, &kind, err));
        out->policies[out->policy_count++] = (rg_policy_kind)kind;
    }
    if (out->policy_count == 0)
        out->policies[out->policy_count++] = RG_POLICY_VLLM1;
    v = rg_plan_text_get(t, "reservation");
    for (int i = 0; i < v->count && i < 3; i++) {
        int kind;
        RG_TRY(rg_plan_text_choice(v, i, "reservation", reservations, &kind, err));
        out->reservations[out->reservation_count++] = (rg_reservation)kind;
    }
    if (out->reservation_count == 0)
        out->reservation_count = 1;
    out->engine = rg_plan_text_one(t, "engine");
    return rg_plan_text_real(t, "memory-utilisation", 0.01, 1, &out->memory_utilisation, err);
}

/* ---- speculation */

/* "0.7" for all kinds, "eagle=0.8" for one; the later wins. */
static rg_status read_acceptance(const rg_plan_text *t, double by_kind[RG_SPEC_COUNT], rg_err *err)
{
    const rg_plan_names *v = rg_plan_text_get(t, "acceptance");
    for (int k = 0; k < RG_SPEC_COUNT; k++)
        by_kind[k] = 0.7;
    for (int i = 0; i < v->count; i++) {
        const char *text = v->items[i], *sign = strchr(text, '=');
        double value;
        bool known = sign == NULL;
        if (!rg_text_to_real(sign ? sign + 1 : text, &value) || value < 0 || value > 1)
            return rg_plan_text_bad(err, v, i, "acceptance",
                                    "a number from 0 to 1, or KIND=NUMBER");
        for (int k = 0; k < RG_SPEC_COUNT; k++) {
            const char *name = rg_spec_kind_name((rg_spec_kind)k);
            const bool meant = !sign || (strlen(name) == (size_t)(sign - text) &&
                                         strncmp(name, text, strlen(name)) == 0);
            known |= meant;
            if (meant)
                by_kind[k] = value;
        }
        if (!known)
            return rg_plan_text_bad(err, v, i, "acceptance",
                                    "of a kind of speculation; eagle=0.8 would do");
    }
    return RG_OK;
}

static void add_speculation(rg_plan *out, rg_spec_kind kind, int64_t drafts, double acceptance,
                            double cost)
{
    if (out->speculation_count < RG_PLAN_LIST)
        out->speculations[out->speculation_count++] = (rg_plan_speculation){
            kind, {.drafts = drafts, .acceptance = acceptance, .draft_time_ratio = cost}};
}

static rg_status add_kinds(const rg_plan_text *t, const double *acceptance,
                           const rg_plan_ints *drafts, rg_plan *out, rg_err *err)
{
    static const rg_plan_ints three = {.items = {3}, .count = 1};
    const rg_plan_names *v = rg_plan_text_get(t, "speculate");
    const rg_plan_ints *lengths = drafts->count > 0 ? drafts : &three;
    for (int i = 0; i < v->count; i++) {
        rg_spec_kind kind;
        RG_TRY(
            rg_plan_text_relay(rg_spec_kind_parse(v->items[i], &kind, err), v, "speculate", err));
        if (kind == RG_SPEC_DRAFT_MODEL && !out->draft_model)
            return rg_plan_text_bad(err, v, i, "speculate", "possible without --draft-model NAME");
        if (kind == RG_SPEC_NONE)
            add_speculation(out, kind, 0, 0, 0);
        for (int k = 0; k < lengths->count && kind != RG_SPEC_NONE; k++)
            if (lengths->items[k] > 0)
                add_speculation(out, kind, lengths->items[k], acceptance[kind], 0);
    }
    return RG_OK;
}

static rg_status read_speculation(const rg_plan_text *t, rg_plan *out, rg_err *err)
{
    double acceptance[RG_SPEC_COUNT], cost = 0.1;
    rg_plan_ints drafts = {.count = 0};
    const rg_plan_names *kinds = rg_plan_text_get(t, "speculate"),
                        *draft_cost = rg_plan_text_get(t, "draft-cost"),
                        *model = rg_plan_text_get(t, "draft-model");
    RG_TRY(read_acceptance(t, acceptance, err));
    RG_TRY(rg_plan_text_real(t, "draft-cost", 0, 10, &cost, err));
    RG_TRY(rg_plan_text_ints(t, "drafts", 0, &drafts, err));
    for (int i = 0; i < drafts.count; i++)
        if (drafts.items[i] > RG_SPEC_MOST_DEPTH)
            return rg_plan_text_bad(err, rg_plan_text_get(t, "drafts"), i, "drafts", "64 or less");
    out->draft_model = rg_plan_text_one(t, "draft-model");
    if (kinds->count > 0 && draft_cost->count > 0)
        return rg_plan_text_bad(err, draft_cost, 0, "draft-cost",
                                "read with --speculate, which knows what drafts take");
    RG_TRY(add_kinds(t, acceptance, &drafts, out, err));
    bool wanted = out->draft_model == NULL;
    for (int i = 0; i < out->speculation_count; i++)
        wanted |= out->speculations[i].kind == RG_SPEC_DRAFT_MODEL;
    if (!wanted)
        return rg_plan_text_bad(err, model, 0, "draft-model",
                                "read without --speculate draft_model");
    for (int i = 0; i < drafts.count && kinds->count == 0; i++)
        add_speculation(out, RG_SPEC_NONE, drafts.items[i], acceptance[RG_SPEC_NONE],
                        drafts.items[i] > 0 ? cost : 0);
    if (out->speculation_count == 0)
        add_speculation(out, RG_SPEC_NONE, 0, 0, 0);
    return RG_OK;
}

static rg_status check_formats(const rg_plan_names *v, rg_err *err)
{
    for (int i = 0; i < v->count; i++) {
        rg_format format;
        RG_TRY(rg_format_parse(v->items[i], v->pos[i], &format, err));
    }
    return RG_OK;
}

static rg_status read_choices(const rg_plan_text *t, rg_plan *out, rg_err *err)
{
    out->devices = *rg_plan_text_get(t, "hw");
    out->weight_types = *rg_plan_text_get(t, "weight-type");
    out->kv_types = *rg_plan_text_get(t, "kv-type");
    RG_TRY(check_formats(&out->weight_types, err));
    RG_TRY(check_formats(&out->kv_types, err));
    RG_TRY(rg_plan_text_ints(t, "tp", 1, &out->tp, err));
    RG_TRY(rg_plan_text_ints(t, "pp", 1, &out->pp, err));
    RG_TRY(rg_plan_text_ints(t, "ep", 1, &out->ep, err));
    RG_TRY(rg_plan_text_ints(t, "cp", 1, &out->cp, err));
    out->prefill_devices = *rg_plan_text_get(t, "prefill-hw");
    RG_TRY(rg_plan_text_ints(t, "prefill-tp", 1, &out->prefill_tp, err));
    RG_TRY(rg_plan_text_ints(t, "prefill-pp", 1, &out->prefill_pp, err));
    RG_TRY(rg_plan_text_ints(t, "prefill-ep", 1, &out->prefill_ep, err));
    RG_TRY(rg_plan_text_ints(t, "max-sequences", 1, &out->max_sequences, err));
    RG_TRY(rg_plan_text_ints(t, "max-tokens", 1, &out->max_tokens, err));
    RG_TRY(read_speculation(t, out, err));
    RG_TRY(rg_plan_text_bools(t, "attention-dp", out->attention_dp, &out->attention_dp_given, err));
    RG_TRY(rg_plan_text_bools(t, "prefix-caching", out->prefix_caching, &out->prefix_caching_given,
                              err));
    RG_TRY(read_pools(t, out, err));
    RG_TRY(check_prefill(t, out, err));
    return read_rules(t, out, err);
}

/* ---- money, power, caps */

static rg_status read_prices(const rg_plan_text *t, rg_plan *out, rg_err *err)
{
    const rg_plan_names *v = rg_plan_text_get(t, "price");
    for (int i = 0; i < v->count; i++) {
        static const char expected[] = "DEVICE=PRICE, such as h100-sxm=2.5 $/h";
        const char *sign = strchr(v->items[i], '=');
        if (!sign)
            return rg_plan_text_bad(err, v, i, "price", expected);
        rg_plan_names *names = &out->price_names;
        RG_TRY(rg_plan_text_relay(rg_quantity_parse(sign + 1, RG_DIM_USD_PER_HOUR, v->pos[i],
                                                    "price", &out->price_values[i], err),
                                  v, "price", err));
        if (!(out->price_values[i] > 0))
            return rg_plan_text_bad(err, v, i, "price", expected);
        names->items[i] = rg_plan_text_cut(t, v->items[i], (size_t)(sign - v->items[i]), err);
        if (!names->items[i])
            return RG_ERR_LIMIT;
        names->count++;
    }
    return RG_OK;
}

static rg_status read_money(const rg_plan_text *t, rg_plan *out, rg_err *err)
{
    static const char *const goals[] = {"cost", "devices", "power", NULL};
    const char *terms[RG_PRICE_TERM_COUNT + 1] = {NULL};
    for (int i = 0; i < RG_PRICE_TERM_COUNT; i++)
        terms[i] = rg_price_term_name((rg_price_term)i);
    const rg_plan_names *v = rg_plan_text_get(t, "goal");
    int index = 0;
    out->goal_given = v->count > 0;
    if (v->count > 0)
        RG_TRY(rg_plan_text_choice(v, 0, "goal", goals, &index, err));
    out->goal = (rg_plan_goal)index;
    index = RG_PRICE_ON_DEMAND;
    v = rg_plan_text_get(t, "term");
    if (v->count > 0)
        RG_TRY(rg_plan_text_choice(v, 0, "term", terms, &index, err));
    out->term = (rg_price_term)index;
    out->prices = rg_plan_text_one(t, "prices");
    out->provider = rg_plan_text_one(t, "provider");
    if (out->provider)
        out->provider_pos = rg_plan_text_get(t, "provider")->pos[0];
    RG_TRY(read_prices(t, out, err));
    out->most_devices = 1024;
    out->few = RG_PLAN_FEW;
    RG_TRY(rg_plan_text_int(t, "most-devices", 1, 1 << 20, &out->most_devices, err));
    RG_TRY(rg_plan_text_quantity(t, "power-cap", RG_DIM_WATTS, &out->power_cap_w, err));
    out->site.overhead_ratio = 1;
    RG_TRY(
        rg_plan_text_quantity(t, "carbon", RG_DIM_GRAMS_PER_KWH, &out->site.carbon_g_per_kwh, err));
    RG_TRY(rg_plan_text_real(t, "overhead", 1, 10, &out->site.overhead_ratio, err));
    RG_TRY(
        rg_plan_text_quantity(t, "tariff", RG_DIM_USD_PER_KWH, &out->site.tariff_usd_per_kwh, err));
    v = rg_plan_text_get(t, "exhaustive");
    if (v->count > 0 && strcmp(v->items[0], "true") != 0 && strcmp(v->items[0], "false") != 0)
        return rg_plan_text_bad(err, v, 0, "exhaustive", "true or false");
    out->exhaustive = v->count > 0 && strcmp(v->items[0], "true") == 0;
    return RG_OK;
}

rg_status rg_plan_read(rg_plan_text *t, rg_plan *out, rg_err *err)
{
    *out =
        (rg_plan){.path = rg_plan_text_path(t), .model = rg_plan_text_one(t, "model"), .seed = 1};
    if (!out->model)
        return rg_fail(err, out->path ? RG_ERR_INPUT : RG_ERR_USAGE, (rg_pos){out->path, 1, 1},
                       "what model? give model: NAME; 'ridge list models' names them");
    RG_TRY(read_traffic(t, out, err));
    RG_TRY(read_limits(t, out, err));
    RG_TRY(read_choices(t, out, err));
    return read_money(t, out, err);
}

rg_status rg_plan_load(rg_arena *arena, const char *path, rg_plan *out, rg_err *err)
{
    rg_plan_text *text;
    RG_TRY(rg_plan_text_new(arena, &text, err));
    RG_TRY(rg_plan_text_load(text, path, err));
    return rg_plan_read(text, out, err);
}

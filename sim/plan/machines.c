/* plan/machines.c: the devices of a plan, with their prices. */
// SPDX-License-Identifier: Apache-2.0
#include "plan/machines.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/text.h"

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
    *m = (rg_machine){.name = name,
                      .cluster = cluster,
                      .decodes = true,
                      .prefills = s->plan->prefill_devices.count == 0};
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

rg_status rg_machines_list(rg_arena *arena, const rg_changes *changes, rg_space *s, rg_err *err)
{
    const rg_plan_names *names = &s->plan->devices;
    rg_price_list prices;
    RG_TRY(rg_prices_load(arena, s->plan->prices, &prices, err));
    RG_TRY(known_provider(s->plan, &prices, err));
    if (names->count == 0)
        return machines_with_price(arena, changes, &prices, s, err);
    const rg_plan_names *prefill = &s->plan->prefill_devices;
    s->machines = RG_NEW(arena, rg_machine, names->count + prefill->count, err);
    if (!s->machines)
        return RG_ERR_LIMIT;
    for (int i = 0; i < names->count; i++)
        RG_TRY(placed(add_machine(arena, names->items[i], changes, &prices, s, err), names->pos[i],
                      err));
    for (int i = 0; i < prefill->count; i++) {
        int at = 0;
        while (at < s->machine_count && strcmp(s->machines[at].name, prefill->items[i]) != 0)
            at++;
        if (at == s->machine_count) {
            RG_TRY(placed(add_machine(arena, prefill->items[i], changes, &prices, s, err),
                          prefill->pos[i], err));
            s->machines[at].decodes = false;
        }
        s->machines[at].prefills = true;
    }
    return RG_OK;
}

void rg_machines_goal(rg_space *s)
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

/* cli/serve_fleet.c: replicas of serve: routers, split pools, scaling, and what devices cost. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include "hw/power.h"
#include "hw/price.h"
#include "serve/deploy.h"

static rg_status read_fleet(rg_serve_job *job, rg_err *err)
{
    static const char *const routers[] = {"round-robin", "least-loaded", "prefix", "session", NULL};
    const rg_settings *s = &job->settings;
    rg_deployment *d = &job->deployment;
    int router = RG_ROUTE_ROUND_ROBIN;
    d->replicas = job->measured ? job->measured->dp : 1;
    RG_TRY(rg_setting_int(s, "replicas", 1, 4096, &d->replicas, err));
    RG_TRY(rg_setting_choice(s, "router", routers, &router, err));
    d->router = (rg_router)router;
    RG_TRY(rg_setting_int(s, "prefill-replicas", 0, 4096, &d->prefill_replicas, err));
    d->prefill_rules = d->rules;
    d->prefill_step = d->step;
    d->layers = job->model ? job->model->layer_count : 1;
    d->transfer_overlap = !rg_setting_flag(s, "no-transfer-overlap");
    d->transfer_latency_s = 1e-3;
    const bool given =
        rg_setting_given(s, "transfer-rate") && rg_setting_given(s, "transfer-latency");
    if (d->prefill_replicas > 0 && job->cluster && !given)
        RG_TRY(rg_replica_link(job->arena, job->cluster, job->parallel.tp, &d->transfer_bytes_per_s,
                               &d->transfer_latency_s, err));
    RG_TRY(
        rg_setting_quantity(s, "transfer-rate", RG_DIM_BYTES_PER_S, &d->transfer_bytes_per_s, err));
    RG_TRY(rg_setting_quantity(s, "transfer-latency", RG_DIM_SECONDS, &d->transfer_latency_s, err));
    if (d->prefill_replicas > 0)
        rg_report_assume(job->report, "KV leaves a prefill replica at %.1f GB/s, %.3g ms later%s",
                         d->transfer_bytes_per_s * 1e-9, d->transfer_latency_s * 1e3,
                         given || !job->cluster ? "" : ", by ridge's model of the network");
    rg_autoscale *a = &d->autoscale;
    int64_t most = 0;
    RG_TRY(rg_setting_int(s, "most-replicas", 1, 4096, &most, err));
    *a = (rg_autoscale){.on = most > 0,
                        .least = d->replicas,
                        .most = most,
                        .target_waiting = 4,
                        .idle_waiting = 0.5,
                        .start_s = 60,
                        .interval_s = 10};
    RG_TRY(rg_setting_real(s, "scale-waiting", 0, 1e6, &a->target_waiting, err));
    RG_TRY(rg_setting_quantity(s, "scale-start", RG_DIM_SECONDS, &a->start_s, err));
    RG_TRY(rg_setting_quantity(s, "scale-interval", RG_DIM_SECONDS, &a->interval_s, err));
    if (!(a->interval_s > 0))
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "scale-interval must be above zero");
    d->devices_per_replica = d->devices_per_prefill_replica =
        job->parallel.tp * job->parallel.pp * job->parallel.cp;
    return RG_OK;
}

static rg_status read_money(rg_serve_job *job, rg_err *err)
{
    rg_deployment *d = &job->deployment;
    const rg_settings *s = &job->settings;
    if (job->cluster) {
        const rg_accel *accel = job->cluster->accel;
        if (accel->tdp.known) {
            rg_watts full, idle;
            RG_TRY(rg_accel_power(accel, 1, 1, &full, err));
            RG_TRY(rg_accel_power(accel, 0, 0, &idle, err));
            d->busy_watts = full.v;
            d->idle_watts = idle.v;
        }
        rg_price_list prices;
        RG_TRY(rg_prices_load(job->arena, NULL, &prices, err));
        const rg_price *price = rg_price_least(&prices, accel->name, RG_PRICE_ON_DEMAND, NULL);
        if (price) {
            d->usd_per_device_hour = price->price.value;
            if (!rg_setting_given(s, "price"))
                rg_report_assume(job->report, "price %.2f $/h a device, %s on demand, read %s",
                                 price->price.value, price->provider, price->date);
        }
    }
    return rg_setting_quantity(s, "price", RG_DIM_USD_PER_HOUR, &d->usd_per_device_hour, err);
}

rg_status rg_serve_job_fleet(rg_serve_job *job, rg_err *err)
{
    RG_TRY(read_fleet(job, err));
    return read_money(job, err);
}

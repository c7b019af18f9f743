/* cli/serve_report.c: the result of serve as text, CSV and JSON. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

#include <math.h>

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *interval(double low, double high)
{
    return json_pack("[o,o]", number(low), number(high));
}

static rg_sample_summary sample(rg_report *report, const char *key, rg_sample *from)
{
    const rg_sample_summary s = rg_sample_summarise(from);
    json_t *o = json_object();
    json_object_set_new(o, "mean", number(s.mean));
    json_object_set_new(o, "p50", number(s.p50));
    json_object_set_new(o, "p90", number(s.p90));
    json_object_set_new(o, "p95", number(s.p95));
    json_object_set_new(o, "p99", number(s.p99));
    json_object_set_new(o, "max", number(s.most));
    json_object_set_new(o, "mean_half_width_95", number(s.mean_half_width));
    json_object_set_new(o, "p50_interval_95", interval(s.p50_low, s.p50_high));
    json_object_set_new(o, "p90_interval_95", interval(s.p90_low, s.p90_high));
    json_object_set_new(o, "p95_interval_95", interval(s.p95_low, s.p95_high));
    json_object_set_new(o, "p99_interval_95", interval(s.p99_low, s.p99_high));
    json_object_set_new(o, "count", json_integer(s.count));
    json_object_set_new(o, "exact", json_boolean(rg_sample_exact(from)));
    rg_report_json(report, key, o);
    return s;
}

static void row(rg_table *table, const char *what, const rg_sample_summary *s)
{
    rg_table_text(table, what);
    rg_table_real(table, s->mean);
    rg_table_real(table, s->mean_half_width);
    rg_table_real(table, s->p50);
    rg_table_real(table, s->p90);
    rg_table_real(table, s->p95);
    rg_table_real(table, s->p99);
    rg_table_real(table, s->p99_low);
    rg_table_real(table, s->p99_high);
    rg_table_real(table, s->most);
}

static void latencies(rg_report *report, rg_serve_result *r)
{
    rg_table *table = rg_report_table(report, "latencies", "What users see");
    rg_table_column(table, "what", "", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(table, "mean_s", "mean", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "mean_half_width_95_s", "+-", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "p50_s", "p50", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "p90_s", "p90", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "p95_s", "p95", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "p99_s", "p99", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "p99_low_s", "p99 from", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "p99_high_s", "to", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(table, "max_s", "max", RG_CELL_REAL, RG_DIM_SECONDS, false);
    const struct {
        const char *key, *name;
        rg_sample *from;
    } all[] = {{"ttft_s", "time to first token", &r->ttft},
               {"ttft_queue_s", "  of it in the queue", &r->queue},
               {"ttft_prefill_s", "  earlier chunks", &r->prefill},
               {"ttft_first_step_s", "  step of the token", &r->first_step},
               {"tpot_excl_first_s", "time per output token", &r->tpot_excl_first},
               {"tpot_incl_first_s", "  first one included", &r->tpot_incl_first},
               {"inter_token_s", "between tokens", &r->gap},
               {"e2e_s", "whole request", &r->e2e}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const rg_sample_summary s = sample(report, all[i].key, all[i].from);
        row(table, all[i].name, &s);
    }
    if (!rg_sample_exact(&r->e2e))
        rg_report_assume(report, "percentiles from bins of 0.1 %%: more than %d requests",
                         RG_SAMPLE_EXACT);
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

/* Mean of the batches of a part of the run, in order of finishing. */
static double part_mean(const rg_sample *s, int from, int to)
{
    double sum = 0;
    for (int i = from; i < to; i++)
        sum += s->batch_sum[i];
    return sum / ((double)(to - from) * (double)s->batch_size);
}

/* Waiting that keeps growing means that the load is more than is served: the last quarter waits
 * three times as long as the first, and over a second. */
bool rg_serve_overloaded(const rg_serve_result *r)
{
    const int full = r->queue.batches - (r->queue.batch_filled != 0);
    if (full < 12)
        return false;
    const double first = part_mean(&r->queue, 0, full / 4),
                 last = part_mean(&r->queue, full - full / 4, full);
    return last > 1 && last > 3 * first;
}

static bool limited(const rg_goals *g)
{
    return g->ttft_s > 0 || g->tpot_s > 0 || g->e2e_s > 0;
}

static void answer(rg_serve_job *job, rg_serve_result *r)
{
    rg_report *report = job->report;
    const bool over = rg_serve_overloaded(r);
    char ttft[2][40], tpot[40], e2e[40];
    const rg_sample_summary first = rg_sample_summarise(&r->ttft),
                            each = rg_sample_summarise(&r->tpot_excl_first),
                            whole = rg_sample_summarise(&r->e2e);
    rg_quantity_format(first.p50, RG_DIM_SECONDS, 3, ttft[0], sizeof ttft[0]);
    rg_quantity_format(first.p99, RG_DIM_SECONDS, 3, ttft[1], sizeof ttft[1]);
    rg_quantity_format(isfinite(each.p50) ? each.p50 : 0, RG_DIM_SECONDS, 3, tpot, sizeof tpot);
    rg_quantity_format(whole.p50, RG_DIM_SECONDS, 3, e2e, sizeof e2e);
    rg_report_json(report, "overloaded", json_boolean(over));
    rg_report_line(report,
                   "%s: first token after %s (p99 %s), then one every %s; whole request %s.",
                   over ? "Overloaded, the queue keeps growing" : "Half of the requests", ttft[0],
                   ttft[1], tpot, e2e);
    const double share = (double)r->good / (double)r->finished;
    if (limited(&job->goals))
        rg_report_line(report, "%.1f %% of the requests meet every limit.", 100 * share);
    if (r->preemptions > 0)
        rg_report_line(report,
                       "KV memory runs short: %lld preemptions, %lld tokens computed again.",
                       (long long)r->preemptions, (long long)r->recomputed_tokens);
    rg_report_line(report, "%s", "");
}

static void within(rg_serve_job *job, const rg_serve_result *r)
{
    const double rate = ratio((double)r->good, r->makespan_s),
                 share = ratio((double)r->good, (double)r->finished);
    if (limited(&job->goals)) {
        rg_report_figure(job->report, "goodput_requests_per_s", "requests within all limits", rate,
                         RG_DIM_PER_SECOND);
        rg_report_figure(job->report, "good_share", "share of them", share, RG_DIM_NONE);
        return;
    }
    /* all meet every one of no limits: so the keys mean what they always mean */
    rg_report_json(job->report, "goodput_requests_per_s", number(rate));
    rg_report_json(job->report, "good_share", number(share));
    rg_report_text(job->report, "goodput_limits", "requests within all limits", "no limits given");
}

static void steady(rg_report *report, const rg_steady *s)
{
    char from[40], to[40];
    if (!s->known) {
        rg_report_text(report, "steady_state", "in steady state",
                       "not reached: arrivals end too soon");
        return;
    }
    rg_quantity_format(s->from_s, RG_DIM_SECONDS, 3, from, sizeof from);
    rg_quantity_format(s->to_s, RG_DIM_SECONDS, 3, to, sizeof to);
    rg_report_json(report, "steady_window_s", interval(s->from_s, s->to_s));
    rg_report_line(report, "%s", "");
    rg_report_line(report, "Steady state, from warm-up (%s) to the last arrival (%s)", from, to);
    rg_report_figure(report, "steady_requests_per_s", "requests served", s->requests_per_s,
                     RG_DIM_PER_SECOND);
    rg_report_figure(report, "steady_output_tokens_per_s", "output tokens", s->output_tokens_per_s,
                     RG_DIM_PER_SECOND);
    rg_report_figure(report, "steady_total_tokens_per_s", "prompt and output tokens",
                     s->total_tokens_per_s, RG_DIM_PER_SECOND);
}

static void throughput(rg_serve_job *job, const rg_serve_result *r)
{
    rg_report *report = job->report;
    const double seconds = r->makespan_s,
                 devices = ratio(r->replica_s * (double)job->deployment.devices_per_replica,
                                 r->makespan_s);
    rg_report_int(report, "requests", "requests", r->requests);
    rg_report_int(report, "finished", "finished", r->finished);
    if (r->refused > 0)
        rg_report_int(report, "refused", "refused, larger than the KV memory or a step",
                      r->refused);
    rg_report_figure(report, "makespan_s", "first arrival to last token", seconds, RG_DIM_SECONDS);
    rg_report_figure(report, "requests_per_s", "requests served",
                     ratio((double)r->finished, seconds), RG_DIM_PER_SECOND);
    within(job, r);
    rg_report_figure(report, "output_tokens_per_s", "output tokens",
                     ratio((double)r->output_tokens, seconds), RG_DIM_PER_SECOND);
    rg_report_figure(report, "total_tokens_per_s", "prompt and output tokens",
                     ratio((double)(r->output_tokens + r->prompt_tokens), seconds),
                     RG_DIM_PER_SECOND);
    rg_report_figure(report, "output_tokens_per_s_per_gpu", "output tokens per device",
                     ratio((double)r->output_tokens, seconds * devices), RG_DIM_PER_SECOND);
    rg_report_int(report, "output_tokens", "output tokens in all", r->output_tokens);
    rg_report_int(report, "prompt_tokens", "prompt tokens in all", r->prompt_tokens);
    steady(report, &r->steady);
}

/* Requests sent to each of the replicas that all requests pass through. */
static void spread(rg_serve_job *job, const rg_serve_result *r)
{
    rg_report *report = job->report;
    const int first = (int)job->deployment.prefill_replicas;
    int64_t least = INT64_MAX, most = 0, all = 0;
    json_t *list = json_array();
    for (int i = 0; i < r->replica_count; i++) {
        json_array_append_new(list, json_integer(r->routed[i]));
        if (i < first)
            continue;
        least = r->routed[i] < least ? r->routed[i] : least;
        most = r->routed[i] > most ? r->routed[i] : most;
        all += r->routed[i];
    }
    rg_report_json(report, "replica_requests", list);
    if (r->replica_count - first < 2)
        return;
    rg_report_int(report, "replica_requests_least", "requests of a replica, fewest", least);
    rg_report_int(report, "replica_requests_most", "requests of a replica, most", most);
    if (job->deployment.router == RG_ROUTE_PREFIX)
        rg_report_int(report, "balanced_requests", "requests sent by queue, not by prefix",
                      r->balanced);
    const double mean = (double)all / (double)(r->replica_count - first);
    if (!job->deployment.autoscale.on && mean >= 10 && (double)most > 1.5 * mean)
        rg_report_assume(report,
                         "replicas are loaded unevenly: one of %d got %lld of %lld requests, as "
                         "the router sends them",
                         r->replica_count - first, (long long)most, (long long)all);
}

static void engine(rg_serve_job *job, const rg_serve_result *r)
{
    rg_report *report = job->report;
    const rg_engine_rules *rules = &job->deployment.rules;
    rg_report_line(report, "%s", "");
    rg_report_heading(report, "Engine");
    rg_report_int(report, "steps", "steps", r->steps);
    rg_report_figure(report, "mean_batch", "mean sequences a step", ratio(r->batch_time, r->busy_s),
                     RG_DIM_NONE);
    rg_report_int(report, "max_batch", "most sequences at once", r->most_running);
    rg_report_figure(report, "mean_waiting", "mean requests waiting",
                     ratio(r->waiting_time, r->busy_s), RG_DIM_NONE);
    rg_report_int(report, "max_waiting", "most requests waiting", r->most_waiting);
    rg_report_figure(report, "utilisation", "share of time computing",
                     ratio(r->busy_s, r->replica_s), RG_DIM_NONE);
    spread(job, r);
    rg_report_int(report, "preemptions", "preemptions", r->preemptions);
    rg_report_int(report, "recomputed_tokens", "tokens computed again", r->recomputed_tokens);
    rg_report_int(report, "prefill_tokens", "prompt tokens computed", r->prefill_tokens);
    if (r->swapped_blocks > 0)
        rg_report_int(report, "swapped_blocks", "KV blocks swapped out", r->swapped_blocks);
    rg_report_line(report, "%s", "");
    rg_report_heading(report, "KV memory");
    if (r->kv_blocks > 0) {
        rg_report_int(report, "kv_blocks", "blocks of one replica", r->kv_blocks);
        rg_report_figure(report, "kv_mean_use", "mean share in use",
                         ratio(r->kv_time, r->busy_s * (double)(r->kv_blocks - 1)), RG_DIM_NONE);
    } else {
        rg_report_json(report, "kv_blocks", json_null());
        rg_report_line(report, "unlimited blocks of %lld tokens", (long long)rules->block_tokens);
    }
    rg_report_int(report, "kv_block_tokens", "tokens of a block", rules->block_tokens);
    rg_report_int(report, "kv_blocks_max", "most blocks in use", r->most_blocks);
    rg_report_figure(report, "kv_internal_fragmentation", "reserved and not filled, mean share",
                     ratio(r->internal_time, r->busy_s), RG_DIM_NONE);
    rg_report_figure(report, "kv_external_fragmentation", "free, but not in one piece, mean share",
                     ratio(r->external_time, r->busy_s), RG_DIM_NONE);
    rg_report_figure(report, "prefix_hit_blocks_share", "prompt blocks found in the cache",
                     r->queried_blocks > 0 ? (double)r->hit_blocks / (double)r->queried_blocks : 0,
                     RG_DIM_NONE);
    rg_report_figure(report, "prefix_hit_tokens_share", "prompt tokens found in the cache",
                     r->queried_tokens > 0 ? (double)r->hit_tokens / (double)r->queried_tokens : 0,
                     RG_DIM_NONE);
    rg_report_int(report, "prefix_queried_blocks", "prompt blocks looked up", r->queried_blocks);
    rg_report_int(report, "prefix_hit_blocks", "of them found", r->hit_blocks);
    if (r->tier_hit_tokens > 0)
        rg_report_int(report, "tier_hit_tokens", "of them loaded from the offload tier",
                      r->tier_hit_tokens);
    if (r->drafts > 0)
        rg_report_figure(report, "accepted_share", "drafts accepted",
                         ratio((double)r->accepted_drafts, (double)r->drafts), RG_DIM_NONE);
    if (r->transfers > 0) {
        rg_report_figure(report, "transfer_bytes", "KV sent between pools", r->transfer_bytes,
                         RG_DIM_BYTES);
        rg_report_figure(report, "transfer_mean_s", "first token to KV arrived, mean",
                         r->transfer_wait_s / (double)r->transfers, RG_DIM_SECONDS);
    }
}

static void costs(rg_serve_job *job, const rg_serve_result *r)
{
    rg_report *report = job->report;
    if (!isfinite(r->energy_j) && !isfinite(r->cost_usd))
        return;
    rg_report_line(report, "%s", "");
    rg_report_heading(report, "Energy and cost");
    if (isfinite(r->energy_j)) {
        rg_report_figure(report, "energy_joules", "energy of the devices", r->energy_j,
                         RG_DIM_JOULES);
        rg_report_figure(report, "energy_per_output_token_joules", "of it per output token",
                         ratio(r->energy_j, (double)r->output_tokens), RG_DIM_JOULES);
        rg_report_figure(report, "device_watts", "mean power of a device",
                         ratio(r->energy_j, r->device_s), RG_DIM_WATTS);
        rg_report_assume(report,
                         job->step ? "devices draw %g W at most and %g W idle, between them by the "
                                     "flops and bytes of each step, a first-order model"
                                   : "devices draw %g W while computing and %g W idle: given step "
                                     "times do not say what a step computes",
                         job->deployment.busy_watts, job->deployment.idle_watts);
    }
    if (isfinite(r->cost_usd)) {
        rg_report_figure(report, "cost_usd", "devices", r->cost_usd, RG_DIM_USD);
        rg_report_figure(report, "cost_per_million_output_tokens_usd", "per million output tokens",
                         ratio(r->cost_usd * 1e6, (double)r->output_tokens), RG_DIM_USD);
        rg_report_figure(report, "cost_per_million_tokens_usd", "per million tokens of both kinds",
                         ratio(r->cost_usd * 1e6, (double)(r->output_tokens + r->prompt_tokens)),
                         RG_DIM_USD);
        if (r->steady.known) {
            const double usd_per_s = r->cost_usd / r->makespan_s; /* of all devices */
            rg_report_figure(report, "steady_cost_per_million_output_tokens_usd",
                             "in steady state, per million output tokens",
                             ratio(usd_per_s * 1e6, r->steady.output_tokens_per_s), RG_DIM_USD);
            rg_report_figure(report, "steady_cost_per_million_tokens_usd",
                             "in steady state, of both kinds",
                             ratio(usd_per_s * 1e6, r->steady.total_tokens_per_s), RG_DIM_USD);
        }
    }
}

static void capacity(rg_serve_job *job)
{
    if (!job->have_capacity)
        return;
    const rg_capacity *c = &job->capacity;
    json_t *o = json_object();
    json_object_set_new(o, "device", number(c->device_bytes));
    json_object_set_new(o, "driver", number(c->driver_bytes));
    json_object_set_new(o, "usable", number(c->usable_bytes));
    json_object_set_new(o, "weights", number(c->weight_bytes));
    json_object_set_new(o, "activations", number(c->activation_bytes));
    json_object_set_new(o, "graphs", number(c->graph_bytes));
    json_object_set_new(o, "context", number(c->context_bytes));
    json_object_set_new(o, "kv", number(c->kv_bytes));
    json_object_set_new(o, "block", number(c->block_bytes));
    rg_report_json(job->report, "kv_memory_bytes", o);
    rg_report_int(job->report, "kv_blocks_derived", "blocks by the engine's own sum", c->blocks);
}

static void trace_facts(rg_serve_job *job)
{
    if (!job->stream)
        return;
    const rg_request_facts *f = rg_requests_facts(job->stream);
    rg_report *report = job->report;
    rg_report_text(report, "trace_format", "requests are", f->format);
    const struct {
        int64_t count;
        const char *key, *label;
    } all[] = {{f->out_of_order, "trace_out_of_order", "rows out of order, put in order"},
               {f->equal_stamps, "trace_equal_stamps", "rows with the stamp of the row before"},
               {f->empty_output, "trace_empty_output", "rows without output, left out"},
               {f->empty_prompt, "trace_empty_prompt", "rows without prompt, left out"},
               {f->overlong, "trace_over_long", "requests longer than the model takes"},
               {f->cut_tokens, "trace_cut_tokens", "tokens cut off them"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].count > 0)
            rg_report_int(report, all[i].key, all[i].label, all[i].count);
    if (f->estimated_lengths)
        rg_report_assume(report, "token counts are characters / 4: the file holds text only");
}

void rg_serve_report_errors(rg_serve_job *job, const rg_replay_errors *e)
{
    rg_report *report = job->report;
    json_t *o = json_object();
    json_object_set_new(o, "ttft_wape", number(e->ttft_wape));
    json_object_set_new(o, "tpot_wape", number(e->tpot_wape));
    json_object_set_new(o, "e2e_wape", number(e->e2e_wape));
    json_object_set_new(o, "makespan", number(e->makespan));
    json_object_set_new(o, "ttft_bias", number(e->ttft_bias));
    json_object_set_new(o, "tpot_bias", number(e->tpot_bias));
    json_object_set_new(o, "e2e_bias", number(e->e2e_bias));
    rg_report_json(report, "errors", o);
    rg_report_line(report,
                   "Against %lld measured requests of %s (sum |predicted - measured| / sum "
                   "measured, and bias)",
                   (long long)e->requests, job->measured->name);
    rg_report_line(report, "  time to first token    %6.2f %%   %+6.2f %%", 100 * e->ttft_wape,
                   100 * e->ttft_bias);
    rg_report_line(report, "  time per output token  %6.2f %%   %+6.2f %%", 100 * e->tpot_wape,
                   100 * e->tpot_bias);
    rg_report_line(report, "  whole request          %6.2f %%   %+6.2f %%", 100 * e->e2e_wape,
                   100 * e->e2e_bias);
    rg_report_line(report, "  makespan                          %+6.2f %%", 100 * e->makespan);
    rg_report_line(report, "%s", "");
}

/** What the mean length of a batch leaves out, when that may matter. */
static void tell_skew(rg_serve_job *job, const rg_serve_result *r)
{
    const double spread = ratio(r->longest_over_mean, (double)r->decoding_steps);
    if (!job->step || job->deployment.constants.attention_skew > 0 || !(spread > 1.25))
        return;
    rg_report_assume(job->report,
                     "decode attention is charged for the mean length of its batch, whose longest "
                     "sequence had %.1f times as many tokens on average; --attention-skew, 0 by "
                     "default and not calibrated, charges for a part of the difference",
                     spread);
}

void rg_serve_report(rg_serve_job *job, rg_serve_result *result)
{
    answer(job, result);
    throughput(job, result);
    latencies(job->report, result);
    engine(job, result);
    capacity(job);
    trace_facts(job);
    costs(job, result);
    tell_skew(job, result);
    if (job->step)
        rg_report_assume(job->report, "%s", rg_kernel_device_note(rg_step_kernels(job->step)));
    if (!job->measured)
        rg_report_assume(job->report,
                         "not validated: no measured run of this deployment is stored");
}

/* cli/cmd_estimate.c: time, memory and bottleneck of one model on one arrangement of devices. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/policy.h"
#include "cli/roofline.h"
#include "step/estimate.h"

typedef struct estimate {
    rg_arena *arena;
    rg_report *report;
    rg_setup setup;
    rg_step_context *step;
    rg_load load;
    rg_estimate result;
} estimate;

/* ---- tables ---- */

static const char *bound_of(const rg_step_part *part)
{
    return part->communication ? "link" : rg_bound_name(part->time.bound);
}

static void operator_columns(rg_table *t)
{
    rg_table_column(t, "name", "operator", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "count", "count", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "time_s", "time of one", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "share", "share", RG_CELL_REAL, RG_DIM_SHARE, false);
    rg_table_column(t, "bound", "bound", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "flops", "flop", RG_CELL_REAL, RG_DIM_FLOPS, false);
    rg_table_column(t, "hbm_bytes", "device bytes", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(t, "l2_bytes", "L2 bytes", RG_CELL_REAL, RG_DIM_BYTES, false);
    rg_table_column(t, "intensity_flops_per_byte", "flop/byte", RG_CELL_REAL, RG_DIM_NONE, false);
    rg_table_column(t, "roofline_time_s", "roofline", RG_CELL_REAL, RG_DIM_SECONDS, false);
    rg_table_column(t, "choice", "as", RG_CELL_TEXT, RG_DIM_NONE, true);
}

/* What binds a pass. */
typedef struct bindings {
    double share[RG_BOUND_COUNT];
    double
        products; /* share of the pass that flops at the peak rate would take where compute binds */
} bindings;

static rg_status operator_table(estimate *e, const rg_pass *pass, const char *key,
                                const char *title, bindings *binds, rg_err *err)
{
    const rg_step_part *parts;
    int count;
    RG_TRY(rg_step_parts(e->arena, e->step, pass, &parts, &count, err));
    double total = 0.0;
    for (int i = 0; i < count; i++)
        total += parts[i].time.total.v * (double)parts[i].count;
    rg_table *t = rg_report_table(e->report, key, title);
    operator_columns(t);
    for (int i = 0; i < count; i++) {
        const rg_step_part *p = &parts[i];
        const double bytes = p->communication ? p->message.v : rg_op_bytes(&p->op).v;
        const double flops = p->communication ? 0.0 : p->op.flops.v;
        const double share = p->time.total.v * (double)p->count / total;
        const rg_bound bound = p->communication ? RG_BOUND_LINK : p->time.bound;
        binds->share[bound] += share;
        if (bound == RG_BOUND_COMPUTE)
            binds->products += p->time.products.v * (double)p->count / total;
        rg_table_text(t, p->name);
        rg_table_int(t, p->count);
        rg_table_real(t, p->time.total.v);
        rg_table_real(t, share);
        rg_table_text(t, bound_of(p));
        rg_table_real(t, flops);
        rg_table_real(t, bytes);
        rg_table_real(t, p->communication ? 0.0 : p->op.l2_bytes.v);
        rg_table_real(t, bytes > 0.0 ? flops / bytes : NAN);
        rg_table_real(t, p->communication ? NAN : p->time.roofline.v);
        rg_table_text(t, p->communication ? p->algorithm : p->time.choice);
    }
    return RG_OK;
}

/* "memory 71 %, compute 15 % (at 40 % of peak)": what binds, largest first. Compute is the SMs at
 * work; below the peak they pad tiles, take exponentials, fill and drain. */
static void bottleneck_text(const bindings *binds, char *out, size_t size)
{
    const double *shares = binds->share;
    bool done[RG_BOUND_COUNT] = {false};
    size_t used = 0;
    out[0] = 0;
    for (int n = 0; n < 3 && used < size; n++) {
        int best = -1;
        for (int i = 0; i < RG_BOUND_COUNT; i++)
            if (!done[i] && shares[i] >= 0.01 && (best < 0 || shares[i] > shares[best]))
                best = i;
        if (best < 0)
            break;
        done[best] = true;
        used += (size_t)snprintf(out + used, size - used, "%s%s %.0f %%", n ? ", " : "",
                                 rg_bound_name((rg_bound)best), 100.0 * shares[best]);
        if (best == RG_BOUND_COMPUTE && used < size)
            used += (size_t)snprintf(out + used, size - used, " (at %.0f %% of peak)",
                                     100.0 * binds->products / shares[best]);
    }
}

/* ---- figures ---- */

static void report_speed(const estimate *e)
{
    rg_report *r = e->report;
    const rg_estimate *x = &e->result;
    rg_report_figure(r, "ttft_s", "time to first token (one prompt, idle machine)", x->ttft.v,
                     RG_DIM_SECONDS);
    rg_report_figure(r, "tpot_excl_first_s", "time per output token after the first (mean)",
                     x->tpot_excl_first.v, RG_DIM_SECONDS);
    rg_report_figure(r, "tpot_incl_first_s", "time per output token, first included",
                     x->tpot_incl_first.v, RG_DIM_SECONDS);
    rg_report_figure(r, "single_stream_tokens_per_s", "one user alone, tokens/s",
                     x->single_stream_tokens_per_s, RG_DIM_NONE);
    rg_report_figure(r, "output_tokens_per_s", "all users, decoding, tokens/s",
                     x->output_tokens_per_s, RG_DIM_NONE);
    rg_report_figure(r, "total_tokens_per_s", "all users, prompts and outputs, tokens/s",
                     x->total_tokens_per_s, RG_DIM_NONE);
}

static void report_utilisation(const estimate *e)
{
    rg_report *r = e->report;
    const rg_estimate *x = &e->result;
    rg_report_figure(r, "mfu_prefill_ratio", "MFU of the prefill", x->mfu_prefill_ratio,
                     RG_DIM_SHARE);
    rg_report_figure(r, "mfu_decode_ratio", "MFU of decoding", x->mfu_decode_ratio, RG_DIM_SHARE);
    rg_report_figure(r, "mbu_decode_ratio", "MBU of decoding", x->mbu_decode_ratio, RG_DIM_SHARE);
    if (x->energy_per_output_token.v > 0.0)
        rg_report_figure(r, "energy_joules_per_output_token", "energy per output token, decoding",
                         x->energy_per_output_token.v, RG_DIM_JOULES);
}

static void report_memory(const estimate *e)
{
    const rg_step_memory *m = &e->result.memory;
    rg_report_json(e->report, "memory_bytes",
                   json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "weights", m->weights.v,
                             "activations", m->activations.v, "kv", m->kv.v, "state", m->state.v,
                             "reserve", m->reserve.v, "total", m->total.v, "capacity",
                             m->capacity.v, "usable", m->usable.v));
    char parts[6][32];
    const double values[] = {m->weights.v,     m->kv.v,      m->state.v,
                             m->activations.v, m->reserve.v, m->total.v};
    for (int i = 0; i < 6; i++)
        rg_quantity_format(values[i], RG_DIM_BYTES, 3, parts[i], sizeof parts[i]);
    char line[320], capacity[32];
    rg_quantity_format(m->capacity.v, RG_DIM_BYTES, 4, capacity, sizeof capacity);
    snprintf(line, sizeof line, "%s of %s: weights %s, KV %s, state %s, activations %s, reserve %s",
             parts[5], capacity, parts[0], parts[1], parts[2], parts[3], parts[4]);
    const rg_memory_level *memory = rg_accel_memory(e->setup.accel);
    if (memory->usable.known && fabs(memory->usable.value / memory->capacity.value - 1.0) > 0.01) {
        char printed[32];
        rg_quantity_format(memory->capacity.value, RG_DIM_BYTES, 3, printed, sizeof printed);
        rg_report_assume(e->report,
                         "device memory is %s as its driver reports it; the data sheet prints %s",
                         capacity, printed);
    }
    rg_report_text(e->report, "memory_text", "memory of the fullest device", line);
    rg_report_int(e->report, "max_batch", "most sequences of this length that fit",
                  m->max_sequences * e->setup.parallel.dp);
    if (m->capacity.v > 0.0)
        rg_report_assume(e->report,
                         "the engine takes %.2f of the device's memory; a sequence fits when its "
                         "prompt and its output do, beside weights, activations and reserve",
                         m->usable.v / m->capacity.v);
}

static void setting(rg_report *report, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    rg_report_setting(report, key, text);
}

/* Machine, model, arrangement and engine with e->setup.changes, and what the load takes there. */
static rg_status predict(estimate *e, const rg_args *args, rg_err *err)
{
    rg_setup *s = &e->setup;
    RG_TRY(rg_setup_machine(e->arena, args, e->report, s, err));
    RG_TRY(rg_setup_model(e->arena, args, e->report, s, err));
    RG_TRY(rg_setup_arrangement(e->arena, args, e->report, s, err));
    RG_TRY(rg_setup_engine(e->arena, args, e->report, s, err));
    RG_TRY(rg_step_prepare(e->arena, s->cluster, s->model, &s->formats, &s->parallel, &s->engine,
                           &s->kernel, &e->step, err));
    return rg_estimate_load(e->step, s->cluster, &s->formats, &s->parallel, &s->engine, &e->load,
                            &e->result, err);
}

static bool same_figures(const rg_estimate *a, const rg_estimate *b)
{
    const double of_a[] = {a->ttft.v,
                           a->tpot_excl_first.v,
                           a->single_stream_tokens_per_s,
                           a->total_tokens_per_s,
                           a->mfu_prefill_ratio,
                           a->mbu_decode_ratio,
                           a->energy_per_output_token.v,
                           a->memory.total.v,
                           a->memory.capacity.v,
                           (double)a->memory.max_sequences};
    const double of_b[] = {b->ttft.v,
                           b->tpot_excl_first.v,
                           b->single_stream_tokens_per_s,
                           b->total_tokens_per_s,
                           b->mfu_prefill_ratio,
                           b->mbu_decode_ratio,
                           b->energy_per_output_token.v,
                           b->memory.total.v,
                           b->memory.capacity.v,
                           (double)b->memory.max_sequences};
    for (size_t i = 0; i < sizeof of_a / sizeof of_a[0]; i++)
        if (of_a[i] != of_b[i])
            return false;
    return true;
}

/* Says which what-if changes leave the result as it is without them. */
static rg_status report_inert(const estimate *e, const rg_args *args, rg_err *err)
{
    const rg_changes *all = &e->setup.changes;
    rg_override *items = RG_NEW(e->arena, rg_override, all->count, err);
    if (!items)
        return RG_ERR_LIMIT;
    for (int out = 0; out < all->count; out++) {
        estimate without = {.arena = e->arena, .load = e->load};
        for (int i = 0; i < all->count; i++)
            if (i != out)
                items[without.setup.changes.count++] = all->items[i];
        without.setup.changes.items = items;
        RG_TRY(rg_arg_report(e->arena, args, 1, &without.report, err));
        if (predict(&without, args, NULL) == RG_OK && same_figures(&without.result, &e->result))
            rg_report_assume(e->report, "what-if: %s has no effect on these figures",
                             all->items[out].path);
    }
    return RG_OK;
}

static rg_status prepare(estimate *e, const rg_args *args, rg_err *err)
{
    RG_TRY(rg_arg_int(args, "batch", 1, 1 << 20, &e->load.batch, err));
    RG_TRY(rg_arg_int(args, "isl", 1, 1 << 30, &e->load.context_tokens, err));
    RG_TRY(rg_arg_int(args, "osl", 1, 1 << 24, &e->load.output_tokens, err));
    RG_TRY(rg_setup_changes(e->arena, args, e->report, &e->setup, err));
    RG_TRY(predict(e, args, err));
    setting(e->report, "batch", e->load.batch);
    setting(e->report, "context_tokens", e->load.context_tokens);
    setting(e->report, "output_tokens", e->load.output_tokens);
    return report_inert(e, args, err);
}

static void report_heading(const estimate *e)
{
    const rg_setup *s = &e->setup;
    const rg_parallel *p = &s->parallel;
    rg_report_line(e->report, "%s on %lld x %s (tp %lld, pp %lld, ep %lld, cp %lld, dp %lld)",
                   s->model->name, (long long)e->result.devices, s->accel->title, (long long)p->tp,
                   (long long)p->pp, (long long)p->ep, (long long)p->cp, (long long)p->dp);
    rg_report_line(
        e->report,
        "weights %s, KV %s (%s); batch %lld, %lld tokens of context and %lld of output each\n",
        s->formats.weight.name, s->formats.kv.name, rg_kv_layout_name(s->formats.kv_layout),
        (long long)e->load.batch, (long long)e->load.context_tokens,
        (long long)e->load.output_tokens);
}

/* The first thing to know: whether it runs at all, and if not, how many devices would hold it. */
static void report_fit(const estimate *e)
{
    const rg_step_memory *m = &e->result.memory;
    rg_report_json(e->report, "fits", json_boolean(e->result.fits));
    if (e->result.fits)
        return;
    char total[32], usable[32];
    rg_quantity_format(m->total.v, RG_DIM_BYTES, 3, total, sizeof total);
    rg_quantity_format(m->usable.v, RG_DIM_BYTES, 3, usable, sizeof usable);
    rg_report_line(e->report,
                   "DOES NOT FIT: needs %s of the %s that the engine may use on each device; about "
                   "%.0f devices would hold it. The times are what it would take if it did fit.\n",
                   total, usable, ceil(m->total.v / m->usable.v) * (double)e->result.devices);
}

static rg_status report_operators(estimate *e, rg_err *err)
{
    rg_report *r = e->report;
    const rg_pass decode = rg_load_decode_pass(e->load.batch, rg_load_context(&e->load));
    const rg_chunk chunk = {.new_tokens = e->load.context_tokens};
    const rg_pass prefill = {.chunks = &chunk, .chunk_count = 1};
    bindings of_decode = {0}, of_prefill = {0};
    char text[160];
    const char *title = rg_arena_printf(
        e->arena, err,
        "\nOne decode pass, at %.6g tokens in the cache of each (mean of the answer)",
        decode.decode_kv_max);
    if (!title)
        return RG_ERR_LIMIT;
    RG_TRY(operator_table(e, &decode, "operators", title, &of_decode, err));
    RG_TRY(operator_table(e, &prefill, "prefill_operators", "\nThe prefill, in one chunk",
                          &of_prefill, err));
    rg_report_line(r, "%s", "");
    bottleneck_text(&of_prefill, text, sizeof text);
    rg_report_text(r, "prefill_bottleneck", "what binds the prefill", text);
    bottleneck_text(&of_decode, text, sizeof text);
    rg_report_text(r, "decode_bottleneck", "what binds decoding", text);
    rg_report_figure(r, "decode_communication_s", "communication in a decode pass, not hidden",
                     e->result.decode.communication.v, RG_DIM_SECONDS);
    rg_report_figure(r, "decode_host_s", "engine time in a decode pass", e->result.decode.host.v,
                     RG_DIM_SECONDS);
    return RG_OK;
}

/* Bands of the operators of one pass, weighed by their times: [validated, carried over, none]. */
typedef struct pass_band {
    double share[3], median[3], p90[3];
} pass_band;

static rg_status band_of_pass(const estimate *e, const rg_kernel_device *device,
                              const rg_pass *pass, pass_band *out, rg_err *err)
{
    const rg_step_part *parts;
    int count;
    RG_TRY(rg_step_parts(e->arena, e->step, pass, &parts, &count, err));
    *out = (pass_band){0};
    double total = 0.0;
    for (int i = 0; i < count; i++) {
        const double time = parts[i].time.total.v * (double)parts[i].count;
        rg_band band = {.basis = RG_BAND_NONE};
        if (!parts[i].communication)
            band = rg_kernel_band(device, &parts[i].op);
        const int at = band.basis == RG_BAND_VALIDATED ? 0 : band.basis == RG_BAND_CARRIED ? 1 : 2;
        out->share[at] += time;
        out->median[at] += band.median * time;
        out->p90[at] += band.p90 * time;
        total += time;
    }
    for (int k = 0; k < 3; k++) {
        if (out->share[k] > 0.0) {
            out->median[k] /= out->share[k];
            out->p90[k] /= out->share[k];
        }
        out->share[k] = total > 0.0 ? out->share[k] / total : 0.0;
    }
    return RG_OK;
}

/* "operators within 4 % (median), 11 % (9 of 10), as validated for 83 % of the time; ..." */
static void band_text(const pass_band *b, char *out, size_t size)
{
    static const char *const basis[2] = {
        "validated on this device", "seen when these constants were carried to another device"};
    size_t used = 0;
    out[0] = 0;
    for (int k = 0; k < 2 && used < size; k++)
        if (b->share[k] >= 0.005)
            used += (size_t)snprintf(out + used, size - used,
                                     "%soperator errors of %.0f %% (median) and %.0f %% (9 of 10), "
                                     "%s, for %.0f %% of the time",
                                     used ? "; " : "", 100.0 * b->median[k], 100.0 * b->p90[k],
                                     basis[k], 100.0 * b->share[k]);
    if (b->share[2] >= 0.005 && used < size)
        snprintf(out + used, size - used, used ? "; %.0f %% not validated" : "not validated",
                 100.0 * b->share[2]);
}

static json_t *band_json(const pass_band *b)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "validated_share", b->share[0],
                     "validated_median_ape", b->median[0], "validated_p90_ape", b->p90[0],
                     "carried_share", b->share[1], "carried_median_ape", b->median[1],
                     "carried_p90_ape", b->p90[1], "not_validated_share", b->share[2]);
}

static rg_status report_band(const estimate *e, const rg_kernel_device *device, rg_err *err)
{
    const rg_pass decode = rg_load_decode_pass(e->load.batch, rg_load_context(&e->load));
    const rg_chunk chunk = {.new_tokens = e->load.context_tokens};
    const rg_pass prefill = {.chunks = &chunk, .chunk_count = 1};
    pass_band of_decode, of_prefill;
    RG_TRY(band_of_pass(e, device, &decode, &of_decode, err));
    RG_TRY(band_of_pass(e, device, &prefill, &of_prefill, err));
    char text[512];
    band_text(&of_decode, text, sizeof text);
    rg_report_text(e->report, "band_decode_text", "band of decoding", text);
    band_text(&of_prefill, text, sizeof text);
    rg_report_text(e->report, "band_prefill_text", "band of the prefill", text);
    rg_report_json(e->report, "band",
                   json_pack("{s:o, s:o}", "decode", band_json(&of_decode), "prefill",
                             band_json(&of_prefill)));
    return RG_OK;
}

/* Both passes under the machine's roofs. */
static rg_status draw(const estimate *e, const char *path, rg_err *err)
{
    rg_roof_figure *figure = RG_NEW(e->arena, rg_roof_figure, 1, err);
    if (!figure)
        return RG_ERR_LIMIT;
    figure->arena = e->arena;
    figure->report = e->report;
    figure->setup = &e->setup;
    const rg_pass decode = rg_load_decode_pass(e->load.batch, rg_load_context(&e->load));
    const rg_chunk chunk = {.new_tokens = e->load.context_tokens};
    const rg_pass prefill = {.chunks = &chunk, .chunk_count = 1};
    RG_TRY(rg_roof_add_pass(figure, e->step, &decode, "decode", 'd', err));
    RG_TRY(rg_roof_add_pass(figure, e->step, &prefill, "prefill", 'p', err));
    RG_TRY(rg_roof_draw(figure, path, err));
    rg_report_image(e->report, path,
                    "The operators under the machine's roofs: d decode, p prefill");
    return RG_OK;
}

static rg_status run(rg_arena *arena, const rg_args *args, rg_err *err)
{
    estimate *e = RG_NEW(arena, estimate, 1, err);
    if (!e)
        return RG_ERR_LIMIT;
    e->arena = arena;
    RG_TRY(rg_arg_report(arena, args, 1, &e->report, err));
    RG_TRY(prepare(e, args, err));
    const rg_setup *s = &e->setup;
    const rg_kernel_device *device = rg_step_kernels(e->step);
    rg_report_assume(e->report, "%s", rg_kernel_device_note(device));
    if (s->model->max_positions > 0 &&
        e->load.context_tokens + e->load.output_tokens > s->model->max_positions)
        rg_report_assume(e->report,
                         "%lld tokens are more than the %lld that the model takes; engines refuse "
                         "that unless told otherwise",
                         (long long)(e->load.context_tokens + e->load.output_tokens),
                         (long long)s->model->max_positions);
    report_heading(e);
    report_fit(e);
    report_speed(e);
    report_memory(e);
    report_utilisation(e);
    RG_TRY(rg_policy_report(arena, args, s, e->step, e->load.batch, rg_load_context(&e->load),
                            e->report, err));
    RG_TRY(report_band(e, device, err));
    if (rg_arg_given(args, "plot"))
        RG_TRY(draw(e, rg_arg_text(args, "plot"), err));
    RG_TRY(report_operators(e, err));
    RG_TRY(rg_arg_write(args, e->report, "operators", err));
    if (!e->result.fits)
        return rg_fail(err, RG_ERR_NO, RG_NOWHERE,
                       "%lld sequences do not fit in memory; the most is %lld",
                       (long long)e->load.batch, (long long)e->result.memory.max_sequences);
    return RG_OK;
}

static const rg_option options[] = {
    RG_SETUP_MACHINE,
    RG_SETUP_MODEL,
    {"batch", 'b', "N", "1", "sequences that decode together, on each replica", false},
    {"isl", 'c', "N", "2048", "tokens of the prompt", false},
    {"osl", 'n', "N", "256",
     "tokens that each sequence writes; figures of decoding are means over them", false},
    {"plot", 'p', "FILE", NULL,
     "roofline figure to FILE.svg, .png or .pdf, data and script beside it", false},
    RG_SETUP_FORMATS,
    RG_SETUP_PARALLEL,
    RG_SETUP_SPLITS,
    RG_SETUP_KERNEL,
    RG_SETUP_CHANGES,
    RG_SETUP_ENGINE,
    RG_POLICY_OPTIONS,
    {NULL, 0, NULL, NULL, NULL, false},
};

extern const rg_command rg_cmd_estimate;
const rg_command rg_cmd_estimate = {
    .name = "estimate",
    .group = "answer",
    .summary = "time, memory and bottleneck of one model on one machine",
    .most_operands = 0,
    .description =
        "Predicts one prompt's prefill and one decode pass, operator by operator, on the busiest\n"
        "device. Queueing is left out: 'ridge serve' adds it. The operator table gives time, "
        "flops\n"
        "and bytes of ONE operator; share counts all of them. Where compute binds far below the "
        "peak,\n"
        "tiles are mostly padding, or take exponentials, fill and drain.",
    .examples = "  ridge estimate --hw h200-sxm --model llama-3.1-8b --batch 64 --isl 4096\n"
                "  ridge estimate --hw hgx-h100 --model ./config.json --tp 8 --weight-type fp8",
    .options = options,
    .run = run,
};

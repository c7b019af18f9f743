/* step/step.c: one pass on a parallel arrangement, from prepared plans and tables of times. */
// SPDX-License-Identifier: Apache-2.0
#include "step/step.h"

#include <math.h>

#include "step/inner.h"

/** Communication that computing hides: a stated share, no more than there is to compute. */
static double visible(const rg_step_context *x, const step_cost *cost)
{
    const double hidden = fmin(x->engine.overlap_ratio * cost->communication, cost->compute);
    return cost->communication - hidden;
}

static double host_time(const rg_step_context *x, const rg_pass *pass, double kernels)
{
    const rg_engine *e = &x->engine;
    const double sequences = (double)(pass->decodes + pass->chunk_count);
    /* Graphs are captured for decode batches; passes with chunks launch kernel by kernel. */
    const bool graph = e->cuda_graphs && pass->chunk_count == 0;
    return e->step_overhead_s + e->per_sequence_s * sequences + (graph ? 0 : e->launch_s * kernels);
}

/** One of m equal micro-batches: sequences are dealt out, a lone chunk is cut. */
static rg_pass micro_batch(const rg_pass *pass, int64_t m, rg_chunk chunk[1])
{
    rg_pass part = *pass;
    const int64_t decodes = (pass->decodes + m - 1) / m;
    part.decodes = decodes;
    if (pass->decodes > 0)
        part.decode_kv_tokens *= (double)decodes / (double)pass->decodes;
    if (pass->chunk_count >= m)
        part.chunk_count = (int)((pass->chunk_count + m - 1) / m);
    else if (pass->chunk_count > 0) {
        int64_t tokens = 0, past = 0;
        for (int i = 0; i < pass->chunk_count; i++) {
            tokens += pass->chunks[i].new_tokens;
            past += pass->chunks[i].past_tokens;
        }
        /* parts of a chunk stand behind the parts before them: half of it on average */
        chunk[0] =
            (rg_chunk){.new_tokens = (tokens + m - 1) / m,
                       .past_tokens = past / pass->chunk_count + tokens / 2 - tokens / m / 2};
        part.chunks = chunk;
        part.chunk_count = 1;
    }
    if (pass->logit_rows > 0)
        part.logit_rows = (pass->logit_rows + m - 1) / m;
    return part;
}

/** All hops of a micro-batch on its way from the first stage to the last. */
static rg_status hops_time(const rg_step_context *x, const rg_pass *part, double *out, rg_err *err)
{
    comm hops[MOST_HOP_KINDS];
    const int kinds = rg_step_stage_hops(x, rg_step_size(x, part).tokens, hops);
    *out = 0;
    for (int i = 0; i < kinds; i++) {
        rg_coll_result r;
        RG_TRY(rg_step_comm_time(x, &hops[i], &r, err));
        *out += r.time.v * (double)hops[i].count;
    }
    return RG_OK;
}

static rg_status pipeline(rg_step_context *x, const rg_pass *pass, step_cost *all,
                          rg_step_time *out, rg_err *err)
{
    const int64_t stages = x->parallel.pp;
    int64_t m = x->parallel.micro_batches;
    const int64_t sequences = pass->decodes + pass->chunk_count;
    if (pass->chunk_count == 0 && m > sequences)
        m = sequences; /* a sequence cannot be cut while it decodes */
    rg_chunk chunk[1];
    const rg_pass part = micro_batch(pass, m, chunk);
    double sum = 0, slowest = 0, most_compute = 0, most_comm = 0;
    for (int i = 0; i < stages; i++) {
        step_cost cost;
        RG_TRY(rg_step_stage_cost(x, i, &part, &cost, err));
        const double shown = visible(x, &cost), time = cost.compute + shown;
        sum += time;
        if (time > slowest) {
            slowest = time;
            most_compute = cost.compute;
            most_comm = shown;
        }
        all->flops += cost.flops * (double)m;
        all->bytes = fmax(all->bytes, cost.bytes * (double)m);
        all->kernels = fmax(all->kernels, cost.kernels * (double)m);
    }
    double hops = 0;
    RG_TRY(hops_time(x, &part, &hops, err));
    const double n = (double)m;
    /* A lone pass with prompts fills the pipeline and drains it. Behind another pass it finds the
     * pipeline full, as engines keep pp batches on their way; and while decoding, a micro-batch
     * begins its next token as soon as it has left the last stage. */
    const bool full = pass->follows || pass->chunk_count == 0;
    const double total = full ? fmax(sum + hops, n * slowest) : sum + (n - 1) * slowest + hops;
    out->compute = RG_S(n * most_compute);
    out->communication = RG_S(n * most_comm + hops);
    out->bubble = RG_S(fmax(0, total - n * slowest - hops));
    all->compute = total;
    return RG_OK;
}

rg_status rg_step_time_of(rg_step_context *x, const rg_pass *pass, rg_step_time *out, rg_err *err)
{
    *out = (rg_step_time){0};
    if (rg_pass_tokens(pass) <= 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "a pass without tokens takes no step");
    step_cost cost = {0};
    double device;
    if (x->parallel.pp > 1) {
        RG_TRY(pipeline(x, pass, &cost, out, err));
        device = cost.compute;
    } else {
        RG_TRY(rg_step_stage_cost(x, 0, pass, &cost, err));
        out->compute = RG_S(cost.compute);
        out->communication = RG_S(visible(x, &cost));
        device = cost.compute + out->communication.v;
    }
    const double host = host_time(x, pass, cost.kernels);
    device += x->engine.device_gap_s;
    const double total = x->engine.async_scheduling ? fmax(device, host) : device + host;
    out->total = RG_S(total);
    out->host = RG_S(total - device + x->engine.device_gap_s);
    out->flops = RG_F(cost.flops * (double)(x->parallel.tp * x->parallel.cp));
    out->bytes = RG_B(cost.bytes);
    if (!isfinite(total) || total <= 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "the step has no finite time");
    return RG_OK;
}

/* ---- the account ---- */

static rg_status add_comm_part(const rg_step_context *x, const comm *c, rg_step_part *part,
                               rg_err *err)
{
    rg_coll_result r;
    RG_TRY(rg_step_comm_time(x, c, &r, err));
    *part = (rg_step_part){.name = c->name,
                           .count = c->count,
                           .communication = true,
                           .hop = c->hop,
                           .message = c->query.bytes,
                           .ranks = c->query.ranks,
                           .algorithm = rg_coll_algorithm_name(r.algorithm)};
    part->time.total = r.time;
    part->time.fixed = r.latency;
    part->time.bound = r.limit == RG_LIMIT_LATENCY ? RG_BOUND_FIXED : RG_BOUND_LINK;
    part->time.choice = part->algorithm;
    return RG_OK;
}

rg_status rg_step_parts(rg_arena *arena, rg_step_context *x, const rg_pass *pass,
                        const rg_step_part **parts, int *count, rg_err *err)
{
    rg_chunk chunk[1];
    rg_pass part = *pass;
    if (x->parallel.pp > 1) {
        int64_t m = x->parallel.micro_batches;
        if (pass->chunk_count == 0 && m > pass->decodes)
            m = pass->decodes;
        part = micro_batch(pass, m, chunk);
    }
    int slowest = 0;
    double most = -1;
    for (int i = 0; i < x->stage_count; i++) {
        step_cost cost;
        RG_TRY(rg_step_stage_cost(x, i, &part, &cost, err));
        if (cost.compute + cost.communication > most) {
            most = cost.compute + cost.communication;
            slowest = i;
        }
    }
    stage *s = &x->stages[x->stages[slowest].same_as];
    const int capacity = rg_pass_plan_capacity(s->plan) + MOST_COMMS + MOST_HOP_KINDS;
    rg_step_part *list = RG_NEW(arena, rg_step_part, capacity, err);
    if (list == NULL)
        return RG_ERR_LIMIT;
    int n = rg_step_fill(x, s, &part);
    for (int i = 0; i < n; i++) {
        list[i] = (rg_step_part){
            .name = s->items[i].name, .count = s->items[i].count, .op = s->items[i], .ranks = 1};
        RG_TRY(rg_step_op_time(x, &s->items[i], &list[i].time, err));
    }
    comm comms[MOST_COMMS];
    const pass_size size = rg_step_size(x, &part);
    const int comm_count = rg_step_comms(x, s, &size, comms);
    for (int i = 0; i < comm_count; i++)
        RG_TRY(add_comm_part(x, &comms[i], &list[n++], err));
    comm hops[MOST_HOP_KINDS];
    const int kinds = rg_step_stage_hops(x, size.tokens, hops);
    for (int i = 0; i < kinds; i++)
        RG_TRY(add_comm_part(x, &hops[i], &list[n++], err));
    *parts = list;
    *count = n;
    return RG_OK;
}

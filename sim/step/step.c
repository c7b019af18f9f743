/* step/step.c: one pass on a parallel arrangement, from prepared plans and tables of times. */
// SPDX-License-Identifier: Apache-2.0
#include "step/step.h"

#include <math.h>
#include <string.h>

#include "step/inner.h"

/* ---- tables by rows ---- */

/** Places around a number of rows, and how far it lies from the first to the second. */
static void places_of(int64_t rows, int *low, int *high, double *ratio)
{
    *ratio = 0;
    if (rows <= EXACT_ROWS) {
        *low = *high = (int)rows;
        return;
    }
    int octave = 0;
    while (octave + 1 < OCTAVES && rows >= (int64_t)EXACT_ROWS << (octave + 1))
        octave++;
    const int64_t base = (int64_t)EXACT_ROWS << octave, step = base / PLACES_PER_OCTAVE;
    const int64_t place = (rows - base) / step;
    if (place >= PLACES_PER_OCTAVE) { /* beyond the table: its last place */
        *low = *high = PLACES - 1;
        return;
    }
    *low = EXACT_ROWS + octave * PLACES_PER_OCTAVE + (int)place;
    *high = *low + 1;
    *ratio = (double)(rows - base - place * step) / (double)step;
    if (*ratio == 0)
        *high = *low;
}

static int64_t rows_at(int place)
{
    if (place <= EXACT_ROWS)
        return place;
    const int octave = (place - EXACT_ROWS) / PLACES_PER_OCTAVE;
    const int64_t base = (int64_t)EXACT_ROWS << octave;
    return base + (place - EXACT_ROWS) % PLACES_PER_OCTAVE * (base / PLACES_PER_OCTAVE);
}

/* ---- kernels ---- */

static bool is_decode_attention(const rg_op *op)
{
    return op->kind == RG_OP_ATTN_DECODE || op->kind == RG_OP_MLA_DECODE;
}

/** The engine quantises X in a kernel of its own: its start-up, X in and out. */
static void add_quantise(const rg_step_context *x, const rg_op *op, rg_kernel_time *out)
{
    if (op->kind != RG_OP_GEMM || op->u.gemm.weight.weight_only)
        return;
    const double wide = rg_dtype_bits(op->u.gemm.act), narrow = rg_dtype_bits(op->u.gemm.math);
    if (narrow >= wide)
        return;
    const double elements = (double)op->u.gemm.m * (double)op->u.gemm.k;
    const double moved = elements * (wide + narrow) / 8.0 / x->quantise_rate;
    out->fixed.v += x->engine.quantise_s;
    out->memory.v += moved;
    out->total.v += x->engine.quantise_s + moved;
}

/** Sequences of a batch end at different times; the kernel waits for the longest as far as its
 * splits do not even that out: t (1 + skew (longest / mean - 1)), start-up apart. */
static void add_skew(const rg_step_context *x, const rg_op *op, rg_kernel_time *out)
{
    const rg_op_attention *a = &op->u.attention;
    if (!is_decode_attention(op) || !(a->kv_tokens > 0) || a->kv_tokens_max <= a->kv_tokens)
        return;
    const double longer = a->kv_tokens_max / a->kv_tokens - 1;
    out->total.v += x->engine.attention_skew_ratio * longer * fmax(0, out->total.v - out->fixed.v);
}

rg_status rg_step_op_time(const rg_step_context *x, const rg_op *op, rg_kernel_time *out,
                          rg_err *err)
{
    RG_TRY(rg_kernel_op_time(x->device, op, out, err));
    if (x->quantise_rate > 0 && x->engine.quantise_s > 0)
        add_quantise(x, op, out);
    if (x->engine.attention_skew_ratio > 0)
        add_skew(x, op, out);
    if (x->options.ideal || !x->engine.cuda_graphs || x->engine.graph_kernel_s == 0)
        return RG_OK;
    /* Constants were measured one kernel a graph; in a graph of many, each begins while the one
     * before it drains. No more than half of the start-up goes that way. */
    const double saved = fmin(x->engine.graph_kernel_s, 0.5 * out->fixed.v);
    out->total.v -= saved;
    out->fixed.v -= saved;
    return RG_OK;
}

static double launches_of(const rg_op *op)
{
    switch (op->kind) {
    case RG_OP_MOE:
        return 5; /* routing, permutation, two products, combine */
    case RG_OP_STREAM:
    case RG_OP_EMBED:
    case RG_OP_SCAN:
    case RG_OP_SAMPLE:
        return (double)(op->u.stream.kernels > 0 ? op->u.stream.kernels : 1);
    default:
        return 1;
    }
}

static void add_op(step_cost *sum, const rg_op *op, double time)
{
    const double n = (double)op->count;
    sum->compute += n * time;
    sum->flops += n * op->flops.v;
    sum->bytes += n * rg_op_bytes(op).v;
    sum->kernels += n * launches_of(op);
}

/** Rows that decide an operator's time, -1 when more than rows does. */
static int64_t deciding_rows(const rg_op *op)
{
    if (op->kind == RG_OP_GEMM)
        return op->u.gemm.m;
    return op->kind == RG_OP_MOE ? op->u.moe.tokens : -1;
}

static rg_status place_time(const rg_step_context *x, double *table, const rg_op *op, int place,
                            double *out, rg_err *err)
{
    if (isnan(table[place])) {
        rg_op at = *op;
        rg_kernel_time t;
        if (at.kind == RG_OP_GEMM) {
            at.u.gemm.m = rows_at(place);
            rg_op_fill_gemm(&at);
        } else {
            at.u.moe.tokens = rows_at(place);
            rg_op_fill_moe(&at);
        }
        RG_TRY(rg_step_op_time(x, &at, &t, err));
        table[place] = t.total.v;
    }
    *out = table[place];
    return RG_OK;
}

static rg_status op_time(const rg_step_context *x, const known_op *known, const rg_op *op,
                         double *out, rg_err *err)
{
    const int64_t rows = deciding_rows(op);
    if (known == NULL || known->time == NULL || rows < 1) {
        rg_kernel_time t;
        RG_TRY(rg_step_op_time(x, op, &t, err));
        *out = t.total.v;
        return RG_OK;
    }
    int low, high;
    double ratio, a, b;
    places_of(rows, &low, &high, &ratio);
    RG_TRY(place_time(x, known->time, op, low, &a, err));
    if (high == low) {
        *out = a;
        return RG_OK;
    }
    RG_TRY(place_time(x, known->time, op, high, &b, err));
    *out = a + ratio * (b - a);
    return RG_OK;
}

/* ---- a stage ---- */

/** Ranks reach a collective at slightly different times, and all wait for the last: the expected
 * largest of p delays grows about as the logarithm of p. */
static double rank_wait(const rg_step_context *x, const comm *c)
{
    return x->options.ideal ? 0 : x->engine.rank_wait_s * log2((double)c->query.ranks);
}

static rg_status add_comms(const rg_step_context *x, const stage *s, const pass_size *size,
                           step_cost *sum, rg_err *err)
{
    comm list[MOST_COMMS];
    const int count = rg_step_comms(x, s, size, list);
    for (int i = 0; i < count; i++) {
        rg_coll_result r;
        RG_TRY(rg_coll_time(x->coll, &list[i].query, &r, err));
        sum->communication += (r.time.v + rank_wait(x, &list[i])) * (double)list[i].count;
    }
    return RG_OK;
}

/** Operators of any pass one by one, products and experts from their tables. */
static rg_status whole_pass(const rg_step_context *x, const stage *s, const rg_pass *pass,
                            bool without_decode_attention, step_cost *sum, rg_err *err)
{
    const int count = rg_step_fill(x, s, pass);
    int k = 0;
    for (int i = 0; i < count; i++) {
        const rg_op *op = &s->items[i];
        /* The pass has the plan's operators in the plan's order, some left out. */
        while (k < s->op_count && (s->ops[k].name != op->name || s->ops[k].kind != op->kind))
            k++;
        if (without_decode_attention && is_decode_attention(op))
            continue;
        double t;
        RG_TRY(op_time(x, k < s->op_count ? &s->ops[k] : NULL, op, &t, err));
        add_op(sum, op, t);
        k += k < s->op_count;
    }
    const pass_size size = rg_step_size(x, pass);
    return add_comms(x, s, &size, sum, err);
}

static rg_status decode_place(const rg_step_context *x, stage *s, int place, rg_err *err)
{
    step_cost *cost = &s->decode[place];
    if (cost->kernels >= 0)
        return RG_OK;
    step_cost sum = {0};
    const double n = (double)rows_at(place);
    const rg_pass pass = {.decodes = rows_at(place),
                          .tokens_per_decode = s->decode_width,
                          .decode_kv_tokens = n,
                          .decode_kv_max = 1};
    if (pass.decodes > 0)
        RG_TRY(whole_pass(x, s, &pass, true, &sum, err));
    *cost = sum;
    return RG_OK;
}

/** Decode attention from templates: the fill of model/pass.c for these operators alone. */
static rg_status decode_attention(const rg_step_context *x, const stage *s, const rg_pass *pass,
                                  step_cost *sum, rg_err *err)
{
    const double cp = (double)x->parallel.cp;
    const int64_t batch = (pass->decodes + x->attention_ranks - 1) / x->attention_ranks;
    for (int i = 0; i < s->decode_attention_count; i++) {
        rg_op *op = &s->decode_attention[i];
        rg_op_attention *a = &op->u.attention;
        a->batch = batch;
        a->kv_tokens = pass->decode_kv_tokens / (double)pass->decodes / cp;
        a->kv_tokens_max = fmax(pass->decode_kv_max / cp, a->kv_tokens);
        const double q = (double)a->q_tokens, window = (double)a->window / cp;
        rg_op_fill_attention(op,
                             (double)batch * rg_attention_pairs(q, a->kv_tokens, window, 0, true),
                             (double)batch * rg_attention_span(q, a->kv_tokens, window, 0));
        rg_kernel_time t;
        RG_TRY(rg_step_op_time(x, op, &t, err));
        add_op(sum, op, t.total.v);
    }
    return RG_OK;
}

/** Templates and table of decode passes with so many tokens a sequence. */
static void set_decode_width(const rg_step_context *x, stage *s, int64_t width)
{
    s->decode_width = width;
    for (int i = 0; i < PLACES; i++)
        s->decode[i].kernels = -1;
    const rg_pass pass = {.decodes = x->attention_ranks,
                          .tokens_per_decode = width,
                          .decode_kv_tokens = (double)x->attention_ranks,
                          .decode_kv_max = 1};
    const int count = rg_step_fill(x, s, &pass);
    s->decode_attention_count = 0;
    for (int i = 0; i < count; i++)
        if (is_decode_attention(&s->items[i]))
            s->decode_attention[s->decode_attention_count++] = s->items[i];
}

static rg_status decode_pass(const rg_step_context *x, stage *s, const rg_pass *pass,
                             step_cost *sum, rg_err *err)
{
    const int64_t width = pass->tokens_per_decode > 0 ? pass->tokens_per_decode : 1;
    if (width != s->decode_width)
        set_decode_width(x, s, width);
    int low, high;
    double ratio;
    places_of(pass->decodes, &low, &high, &ratio);
    RG_TRY(decode_place(x, s, low, err));
    *sum = s->decode[low];
    if (high != low) {
        RG_TRY(decode_place(x, s, high, err));
        const step_cost *b = &s->decode[high];
        sum->compute += ratio * (b->compute - sum->compute);
        sum->communication += ratio * (b->communication - sum->communication);
        sum->flops += ratio * (b->flops - sum->flops);
        sum->bytes += ratio * (b->bytes - sum->bytes);
    }
    return decode_attention(x, s, pass, sum, err);
}

static rg_status stage_cost(rg_step_context *x, int index, const rg_pass *pass, step_cost *sum,
                            rg_err *err)
{
    stage *s = &x->stages[x->stages[index].same_as];
    *sum = (step_cost){0};
    const bool plain = pass->chunk_count == 0 && pass->logit_rows == 0 && !s->indexed;
    if (plain && pass->decodes > 0)
        return decode_pass(x, s, pass, sum, err);
    return whole_pass(x, s, pass, false, sum, err);
}

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
        RG_TRY(stage_cost(x, i, &part, &cost, err));
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
    rg_coll_result hop;
    const comm send = rg_step_stage_hop(x, rg_step_size(x, &part).tokens);
    RG_TRY(rg_coll_time(x->coll, &send.query, &hop, err));
    const double hops = hop.time.v * (double)(stages - 1), n = (double)m;
    /* A pass with prompts fills the pipeline and drains it. While decoding, a micro-batch begins
     * its next token as soon as it has left the last stage, and the pipeline stays full. */
    const double total =
        pass->chunk_count > 0 ? sum + (n - 1) * slowest + hops : fmax(sum + hops, n * slowest);
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
        RG_TRY(stage_cost(x, 0, pass, &cost, err));
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

/* ---- preparation ---- */

static void count_layers(const rg_step_context *x, stage *s)
{
    for (int64_t i = 0; i < s->shard.layer_count; i++) {
        const rg_layer *layer = &x->model->layers[s->shard.first_layer + i];
        s->mixers += layer->mixer != RG_MIX_NONE;
        s->dense_ffns += layer->ffn == RG_FFN_DENSE;
        if (layer->ffn == RG_FFN_MOE) {
            s->moes++;
            s->moe_width = layer->latent > 0 ? layer->latent : x->model->hidden;
            s->top_k = (double)layer->top_k;
        }
        if (!rg_layer_has_kv(layer))
            continue;
        s->attentions++;
        const int64_t elements = rg_layer_kv_elements(layer, false);
        if (elements >= s->kv_elements) {
            s->kv_elements = elements;
            s->heads = layer->heads;
            s->value_dim = rg_layer_v_dim(layer);
        }
    }
}

/** All operators that the plan can yield, in its order. */
static rg_status list_ops(rg_arena *arena, const rg_step_context *x, stage *s, rg_err *err)
{
    const int capacity = rg_pass_plan_capacity(s->plan);
    s->items = RG_NEW(arena, rg_op, capacity, err);
    s->ops = RG_NEW(arena, known_op, capacity, err);
    s->decode_attention = RG_NEW(arena, rg_op, capacity, err);
    s->decode = RG_NEW(arena, step_cost, PLACES, err);
    if (!s->items || !s->ops || !s->decode_attention || !s->decode)
        return RG_ERR_LIMIT;
    const int64_t groups = x->attention_ranks;
    const rg_chunk chunk = {.new_tokens = 64 * groups, .past_tokens = 64};
    const rg_pass pass = {.chunks = &chunk,
                          .chunk_count = 1,
                          .decodes = 2 * groups,
                          .decode_kv_tokens = 64.0 * (double)groups,
                          .decode_kv_max = 64};
    s->op_count = rg_step_fill(x, s, &pass);
    for (int i = 0; i < s->op_count; i++) {
        const rg_op *op = &s->items[i];
        s->ops[i] = (known_op){.name = op->name, .kind = op->kind};
        s->indexed |= strcmp(op->name, "index_scores") == 0;
        if (deciding_rows(op) < 0)
            continue;
        s->ops[i].time = RG_NEW(arena, double, PLACES, err);
        if (s->ops[i].time == NULL)
            return RG_ERR_LIMIT;
        for (int k = 0; k < PLACES; k++)
            s->ops[i].time[k] = NAN;
    }
    set_decode_width(x, s, 1);
    return RG_OK;
}

static bool same_stage(const rg_model *model, const rg_shard *a, const rg_shard *b)
{
    if (a->layer_count != b->layer_count || a->embedding != b->embedding || a->head != b->head)
        return false;
    for (int64_t i = 0; i < a->layer_count; i++)
        if (model->layers[a->first_layer + i].same_as != model->layers[b->first_layer + i].same_as)
            return false;
    return true;
}

static rg_status prepare_stages(rg_arena *arena, rg_step_context *x, rg_err *err)
{
    const rg_parallel *p = &x->parallel;
    x->stage_count = (int)p->pp;
    x->stages = RG_NEW(arena, stage, p->pp, err);
    if (x->stages == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < x->stage_count; i++) {
        stage *s = &x->stages[i];
        s->shard = (rg_shard){.tp = p->tp,
                              .attention_tp = p->attention_dp ? 1 : p->tp,
                              .ep = p->ep,
                              .expert_replicas = p->expert_replicas,
                              .ep_groups = p->ep > p->tp ? p->ep / p->tp : 1,
                              .cp = p->cp,
                              .embedding = i == 0,
                              .head = i == x->stage_count - 1};
        rg_step_stage_layers(x->model->layer_count, p->pp, i, &s->shard.first_layer,
                             &s->shard.layer_count);
        s->same_as = i;
        for (int k = 0; k < i && s->same_as == i; k++)
            if (same_stage(x->model, &x->stages[k].shard, &s->shard))
                s->same_as = k;
        if (s->same_as != i)
            continue;
        count_layers(x, s);
        RG_TRY(rg_pass_prepare(arena, x->model, &x->formats, &s->shard, &s->plan, err));
        RG_TRY(list_ops(arena, x, s, err));
    }
    return RG_OK;
}

static bool same_options(const rg_kernel_options *a, const rg_kernel_options *b)
{
    return a->ideal == b->ideal && a->sustained == b->sustained && a->cold_l2 == b->cold_l2 &&
           a->no_quantise == b->no_quantise && a->core_attention == b->core_attention &&
           a->attention == b->attention && a->constants_from == b->constants_from;
}

static rg_status kernel_device(rg_arena *arena, rg_step_shared *shared, const rg_accel *accel,
                               const rg_kernel_options *options, rg_kernel_device **out,
                               rg_err *err)
{
    for (int i = 0; shared != NULL && i < shared->count; i++)
        if (shared->accel[i] == accel && same_options(&shared->options[i], options)) {
            *out = shared->device[i];
            return RG_OK;
        }
    RG_TRY(rg_kernel_prepare(arena, accel, options, out, err));
    if (shared != NULL && shared->count < RG_STEP_SHARED) {
        shared->accel[shared->count] = accel;
        shared->options[shared->count] = *options;
        shared->device[shared->count++] = *out;
    }
    return RG_OK;
}

rg_status rg_step_prepare(rg_arena *arena, const rg_cluster *cluster, const rg_model *model,
                          const rg_formats *formats, const rg_parallel *parallel,
                          const rg_engine *engine, const rg_kernel_options *options,
                          rg_step_context **out, rg_err *err)
{
    return rg_step_prepare_shared(arena, NULL, cluster, model, formats, parallel, engine, options,
                                  out, err);
}

rg_status rg_step_prepare_shared(rg_arena *arena, rg_step_shared *shared, const rg_cluster *cluster,
                                 const rg_model *model, const rg_formats *formats,
                                 const rg_parallel *parallel, const rg_engine *engine,
                                 const rg_kernel_options *options, rg_step_context **out,
                                 rg_err *err)
{
    rg_step_context *x = RG_NEW(arena, rg_step_context, 1, err);
    if (x == NULL)
        return RG_ERR_LIMIT;
    x->cluster = cluster;
    x->model = model;
    x->formats = *formats;
    x->parallel = *parallel;
    x->engine = *engine;
    if (options != NULL)
        x->options = *options;
    RG_TRY(rg_step_check(cluster, model, &x->parallel, err));
    const rg_parallel *p = &x->parallel;
    x->attention_ranks = p->attention_dp ? p->tp : 1;
    x->expert_ranks = p->ep;
    x->exchange = p->ep > 1 && (p->attention_dp || p->ep > p->tp);
    x->dispatch_bytes = rg_dtype_bits(formats->act) / 8.0;
    if (rg_dtype_bits(formats->math) < 16) /* sent as the experts multiply, with a scale per 128 */
        x->dispatch_bytes = rg_dtype_bits(formats->math) / 8.0 + 4.0 / 128;
    RG_TRY(rg_step_expert_balance(arena, x, err));
    if (x->options.attention == RG_ATTENTION_AUTO)
        x->options.attention = x->engine.attention;
    if (x->engine.quantises && !x->options.ideal) {
        x->options.no_quantise = true;
        x->quantise_rate =
            0.8 * rg_accel_level_bandwidth(cluster->accel, rg_accel_memory(cluster->accel));
    }
    RG_TRY(kernel_device(arena, shared, cluster->accel, &x->options, &x->device, err));
    RG_TRY(rg_coll_prepare(arena, cluster, NULL, &x->coll, err));
    if (x->options.ideal)
        x->engine.collectives = RG_LIB_IDEAL;
    RG_TRY(prepare_stages(arena, x, err));
    *out = x;
    return RG_OK;
}

const rg_kernel_device *rg_step_kernels(const rg_step_context *context)
{
    return context->device;
}

/* ---- the account ---- */

static rg_status add_comm_part(const rg_step_context *x, const comm *c, rg_step_part *part,
                               rg_err *err)
{
    rg_coll_result r;
    RG_TRY(rg_coll_time(x->coll, &c->query, &r, err));
    *part = (rg_step_part){.name = c->name,
                           .count = c->count,
                           .communication = true,
                           .message = c->query.bytes,
                           .ranks = c->query.ranks,
                           .algorithm = rg_coll_algorithm_name(r.algorithm)};
    const double wait = strcmp(c->name, "send to next stage") == 0 ? 0 : rank_wait(x, c);
    part->time.total = RG_S(r.time.v + wait);
    part->time.fixed = RG_S(r.latency.v + wait);
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
        RG_TRY(stage_cost(x, i, &part, &cost, err));
        if (cost.compute + cost.communication > most) {
            most = cost.compute + cost.communication;
            slowest = i;
        }
    }
    stage *s = &x->stages[x->stages[slowest].same_as];
    const int capacity = rg_pass_plan_capacity(s->plan) + MOST_COMMS + 1;
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
    if (x->parallel.pp > 1) {
        const comm hop = rg_step_stage_hop(x, size.tokens);
        RG_TRY(add_comm_part(x, &hop, &list[n++], err));
    }
    *parts = list;
    *count = n;
    return RG_OK;
}

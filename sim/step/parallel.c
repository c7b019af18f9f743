/* step/parallel.c: arrangements: what is possible, who holds what, what must be communicated. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "step/inner.h"

static void at_least_one(int64_t *n)
{
    if (*n == 0)
        *n = 1;
}

static rg_status check_heads(const rg_model *model, int64_t tp, rg_err *err)
{
    for (int64_t i = 0; i < model->layer_count; i++) {
        const rg_layer *layer = &model->layers[i];
        if (layer->mixer >= RG_MIX_FULL && layer->mixer <= RG_MIX_MLA && layer->heads % tp != 0)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "tp '%lld' does not divide the %lld query heads of layer %lld; engines "
                           "refuse that, a divisor of %lld would do",
                           (long long)tp, (long long)layer->heads, (long long)i,
                           (long long)layer->heads);
        const bool grouped = layer->mixer >= RG_MIX_FULL && layer->mixer <= RG_MIX_CHUNKED;
        if (grouped && layer->kv_heads > 0 && layer->kv_heads % tp != 0 &&
            tp % layer->kv_heads != 0)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                           "tp '%lld' neither divides the %lld KV heads of layer %lld nor is a "
                           "multiple of them, so that they cannot be split or repeated evenly",
                           (long long)tp, (long long)layer->kv_heads, (long long)i);
    }
    return RG_OK;
}

static rg_status check_experts(const rg_model *model, const rg_parallel *p, rg_err *err)
{
    if (p->ep == 1)
        return RG_OK;
    int64_t experts = 0;
    for (int64_t i = 0; i < model->layer_count; i++)
        if (model->layers[i].ffn == RG_FFN_MOE)
            experts = model->layers[i].experts;
    if (experts == 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "ep '%lld': model '%s' has no experts to split", (long long)p->ep,
                       model->name);
    if (p->ep > experts)
        return rg_fail(
            err, RG_ERR_MODEL, RG_NOWHERE,
            "ep '%lld' is more than the %lld experts of '%s'; some ranks would hold none",
            (long long)p->ep, (long long)experts, model->name);
    const int64_t slots = experts + p->expert_replicas, over = slots % p->ep;
    if (over != 0)
        return rg_fail(
            err, RG_ERR_MODEL, RG_NOWHERE,
            "ep '%lld' does not divide %lld experts and %lld replicas evenly; %lld replicas "
            "would do",
            (long long)p->ep, (long long)experts, (long long)p->expert_replicas,
            (long long)(p->expert_replicas + p->ep - over));
    if (p->tp * p->dp % p->ep != 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "ep '%lld' lies on the ranks of tp %lld and dp %lld, so it must divide %lld",
                       (long long)p->ep, (long long)p->tp, (long long)p->dp,
                       (long long)(p->tp * p->dp));
    if (p->ep > p->tp && p->dp % (p->ep / p->tp) != 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "ep '%lld' over tp %lld needs dp to be a multiple of %lld", (long long)p->ep,
                       (long long)p->tp, (long long)(p->ep / p->tp));
    return RG_OK;
}

rg_status rg_step_check(const rg_cluster *cluster, const rg_model *model, rg_parallel *p,
                        rg_err *err)
{
    int64_t *const sizes[] = {&p->tp, &p->pp, &p->ep, &p->cp, &p->dp, &p->pp_interleave};
    static const char *const names[] = {"tp", "pp", "ep", "cp", "dp", "pp_interleave"};
    double ranks = 1;
    for (int i = 0; i < 6; i++) {
        if (*sizes[i] < 0 || *sizes[i] > 65536)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "%s %lld is not 1 to 65536", names[i],
                           (long long)*sizes[i]);
        at_least_one(sizes[i]);
        if (i != 2 && i != 5)
            ranks *= (double)*sizes[i];
    }
    if (p->micro_batches == 0)
        p->micro_batches = p->pp;
    if (p->micro_batches < 1 || p->expert_replicas < 0 || !(p->capacity_factor >= 0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "micro_batches, expert_replicas and capacity_factor must not be negative");
    const double devices = (double)cluster->devices_per_node * (double)cluster->nodes;
    if (ranks > devices)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "tp %lld x pp %lld x cp %lld x dp %lld are %.0f devices; '%s' has %.0f",
                       (long long)p->tp, (long long)p->pp, (long long)p->cp, (long long)p->dp,
                       ranks, cluster->name, devices);
    if (p->pp > model->layer_count || p->pp > MOST_STAGES)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "pp '%lld' is more than the %lld layers of '%s' (and %d at most)",
                       (long long)p->pp, (long long)model->layer_count, model->name, MOST_STAGES);
    if (!p->attention_dp)
        RG_TRY(check_heads(model, p->tp, err));
    return check_experts(model, p, err);
}

/** Even shares; what is left goes to stages from the last but one backwards, because the last has
 * the LM head and the first the embedding (vLLM, distributed/utils.py, get_pp_indices). */
void rg_step_stage_layers(int64_t layers, int64_t stages, int64_t index, int64_t *first,
                          int64_t *count)
{
    const int64_t share = layers / stages, left = layers % stages;
    *first = 0;
    for (int64_t i = 0; i <= index; i++) {
        /* places from the end, the last being 1: 2 .. left + 1 have one more */
        const int64_t from_end = stages - i;
        *count = share + (from_end >= 2 && from_end < left + 2 ? 1 : 0);
        if (i < index)
            *first += *count;
    }
}

static double act_bytes(const rg_step_context *x)
{
    return rg_dtype_bits(x->formats.act) / 8.0;
}

/** Whose kernels communicate: an engine's own all-reduce, else the library; bare links if ideal. */
static rg_coll_library library_of(const rg_step_context *x, rg_coll_op op)
{
    if (x->options.ideal)
        return RG_LIB_IDEAL;
    return op == RG_COLL_ALL_REDUCE ? x->engine.collectives : RG_LIB_NCCL;
}

static void add(comm *out, int *n, const char *name, rg_coll_op op, int64_t ranks, int64_t stride,
                double bytes, int64_t count, const rg_step_context *x)
{
    if (ranks < 2 || count < 1 || !(bytes > 0))
        return;
    out[(*n)++] = (comm){.name = name,
                         .query = {.op = op,
                                   .ranks = ranks,
                                   .stride = stride,
                                   .bytes = RG_B(bytes),
                                   .library = library_of(x, op)},
                         .count = count};
}

/** Sum over the tp group: one all-reduce, or its two halves around norms that work on a share. */
static void add_sum(comm *out, int *n, const char *names[3], double bytes, int64_t count,
                    const rg_step_context *x)
{
    const int64_t tp = x->parallel.tp;
    if (x->parallel.sequence_parallel) {
        add(out, n, names[1], RG_COLL_REDUCE_SCATTER, tp, 1, bytes, count, x);
        add(out, n, names[2], RG_COLL_ALL_GATHER, tp, 1, bytes, count, x);
    } else {
        add(out, n, names[0], RG_COLL_ALL_REDUCE, tp, 1, bytes, count, x);
    }
}

/** Tokens go to the ranks of their experts and come back. All-to-all sends a token once to each
 * rank that has one of its experts: of e ranks, e (1 - (1 - 1/e)^k) are hit by k even choices. */
static void add_expert_exchange(comm *out, int *n, const rg_step_context *x, const stage *s,
                                double tokens)
{
    const double e = (double)x->expert_ranks, width = (double)s->moe_width;
    const int first = *n;
    if (x->parallel.ep_all_to_all) {
        const double copies = e * (1.0 - pow(1.0 - 1.0 / e, s->top_k));
        const double kept = 1.0 - x->dropped_ratio;
        const double rows = tokens * copies * kept;
        add(out, n, "dispatch to experts", RG_COLL_ALL_TO_ALL, x->expert_ranks, 1,
            rows * width * x->dispatch_bytes, s->moes, x);
        add(out, n, "combine from experts", RG_COLL_ALL_TO_ALL, x->expert_ranks, 1,
            rows * width * act_bytes(x), s->moes, x);
    } else {
        add(out, n, "gather tokens for experts", RG_COLL_ALL_GATHER, x->expert_ranks, 1,
            tokens * e * width * act_bytes(x), s->moes, x);
        add(out, n, "scatter sums of experts", RG_COLL_REDUCE_SCATTER, x->expert_ranks, 1,
            tokens * e * width * act_bytes(x), s->moes, x);
    }
    for (int i = first; i < *n; i++)
        out[i].query.imbalance = x->expert_imbalance;
}

int rg_step_comms(const rg_step_context *x, const stage *s, const pass_size *size,
                  comm out[MOST_COMMS])
{
    static const char *embedding[] = {"all_reduce embedding", "reduce_scatter embedding",
                                      "all_gather embedding"};
    static const char *mixer[] = {"all_reduce attention", "reduce_scatter attention",
                                  "all_gather attention"};
    static const char *ffn[] = {"all_reduce ffn", "reduce_scatter ffn", "all_gather ffn"};
    static const char *experts[] = {"all_reduce experts", "reduce_scatter experts",
                                    "all_gather experts"};
    const rg_parallel *p = &x->parallel;
    const double hidden_bytes = (double)size->tokens * (double)x->model->hidden * act_bytes(x);
    int n = 0;
    if (!p->attention_dp) {
        if (s->shard.embedding)
            add_sum(out, &n, embedding, hidden_bytes, 1, x);
        /* Q and K normed over all heads: ranks add up their sums of squares, two in fp32 a token
         * (vLLM and SGLang, MiniMaxText01RMSNormTP). */
        add(out, &n, "all_reduce qk_norm", RG_COLL_ALL_REDUCE, p->tp, 1,
            (double)size->tokens * 2.0 * 4.0, s->full_norms, x);
        add_sum(out, &n, mixer, hidden_bytes, s->mixers, x);
        add_sum(out, &n, ffn, hidden_bytes, s->dense_ffns, x);
        if (!x->exchange)
            add_sum(out, &n, experts, hidden_bytes, s->moes, x);
        if (s->shard.head)
            add(out, &n, "gather logits", RG_COLL_ALL_GATHER, p->tp, 1,
                (double)size->rows * (double)x->model->vocab * act_bytes(x), 1, x);
    } else {
        /* dense FFN split over tp while tokens are dealt out: gather them, scatter the sums */
        add(out, &n, "gather tokens for ffn", RG_COLL_ALL_GATHER, p->tp, 1, hidden_bytes,
            s->dense_ffns, x);
        add(out, &n, "scatter sums of ffn", RG_COLL_REDUCE_SCATTER, p->tp, 1, hidden_bytes,
            s->dense_ffns, x);
    }
    if (x->exchange)
        add_expert_exchange(out, &n, x, s, (double)size->rank_tokens);
    if (p->cp > 1 && s->attentions > 0) {
        const double kv_bytes =
            rg_format_bytes(&x->formats.kv, (double)s->kv_elements).v / (double)p->tp;
        const double outputs = (double)(s->heads * s->value_dim) / (double)p->tp * act_bytes(x);
        /* decode: every rank has a part of the cache; partial results are summed up */
        add(out, &n, "reduce partial attention", RG_COLL_ALL_REDUCE, p->cp, p->tp,
            (double)size->decode_tokens * outputs, s->attentions, x);
        /* prefill: ranks hold a share of the tokens and must see all keys */
        const double keys = (double)size->chunk_tokens * kv_bytes;
        if (p->cp_all_gather)
            add(out, &n, "gather keys and values", RG_COLL_ALL_GATHER, p->cp, p->tp,
                keys * (double)p->cp, s->attentions, x);
        else
            add(out, &n, "pass on keys and values", RG_COLL_SEND_RECV, 2, p->tp, keys,
                s->attentions * (p->cp - 1), x);
    }
    return n;
}

int rg_step_stage_hops(const rg_step_context *x, int64_t tokens, comm out[MOST_HOP_KINDS])
{
    /* each rank of the tp group sends its share, or all send the same whole */
    const double share = x->parallel.sequence_parallel ? 1.0 / (double)x->parallel.tp : 1.0;
    const double bytes = (double)tokens * (double)x->model->hidden * act_bytes(x) * share;
    const int64_t width = x->parallel.tp * x->parallel.cp;
    const int64_t domain = x->cluster->scale_up_devices;
    for (int i = 0; i < x->hop_kinds; i++) {
        const stage_hop *hop = &x->hops[i];
        const bool within = domain > 0 && hop->first / domain == (hop->first + width) / domain;
        out[i] = (comm){.name = within ? "send to next stage" : "send to next stage over network",
                        .query = {.op = RG_COLL_SEND_RECV,
                                  .ranks = 2,
                                  .first = hop->first,
                                  .stride = width,
                                  .bytes = RG_B(bytes),
                                  .library = library_of(x, RG_COLL_SEND_RECV)},
                        .count = hop->count,
                        .hop = true};
    }
    return x->hop_kinds;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

pass_size rg_step_size(const rg_step_context *x, const rg_pass *pass)
{
    const int64_t groups = x->attention_ranks, cp = x->parallel.cp;
    const int64_t width = pass->tokens_per_decode > 0 ? pass->tokens_per_decode : 1;
    int64_t sum = 0, biggest = 0;
    for (int i = 0; i < pass->chunk_count; i++) {
        const int64_t n = pass->chunks[i].new_tokens;
        sum += n;
        biggest = n > biggest ? n : biggest;
    }
    pass_size s = {.decode_tokens = pass->decodes * width,
                   .chunk_tokens = ceil_div(sum, cp),
                   .rows = rg_pass_logit_rows(pass),
                   .prefills = sum > 0};
    s.tokens = s.decode_tokens + s.chunk_tokens;
    /* a chunk stays with one rank, so the busiest has an equal part or the longest chunk */
    const int64_t dealt = ceil_div(sum, groups);
    s.rank_tokens =
        ceil_div(pass->decodes, groups) * width + ceil_div(dealt > biggest ? dealt : biggest, cp);
    return s;
}

/* ---- experts ---- */

/** Shares of the experts, sorted down by need: given, or by the power law of moe_skew. */
static double share_of(const rg_step_context *x, int64_t expert, int64_t experts)
{
    if (x->parallel.expert_load != NULL)
        return x->parallel.expert_load[expert];
    (void)experts;
    return pow((double)expert + 0.5, -x->formats.moe_skew);
}

/** The experts' rows after replicas and capacity; the busiest rank's rows over the mean.
 *
 * Replicas go one by one to the expert whose copies are busiest. With replicas a balancer places
 * copies by load, heaviest first, on the rank that has least; without, experts lie in the
 * checkpoint's order, and a power law, whose order says nothing, is dealt out likewise. */
rg_status rg_step_expert_balance(rg_arena *arena, rg_step_context *x, rg_err *err)
{
    x->expert_imbalance = 1;
    x->dropped_ratio = 0;
    int64_t experts = 0;
    for (int64_t i = 0; i < x->model->layer_count; i++)
        if (x->model->layers[i].ffn == RG_FFN_MOE)
            experts = x->model->layers[i].experts;
    const rg_parallel *p = &x->parallel;
    if (experts == 0 && p->expert_load != NULL)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "a load of %lld experts is given, model '%s' has no experts",
                       (long long)p->expert_load_count, x->model->name);
    if (experts == 0)
        return RG_OK;
    if (p->expert_load != NULL && p->expert_load_count != experts)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "a load of %lld experts is given, the model has %lld",
                       (long long)p->expert_load_count, (long long)experts);
    double *load = RG_NEW(arena, double, experts, err);
    int64_t *copies = RG_NEW(arena, int64_t, experts, err);
    double *rank = RG_NEW(arena, double, p->ep, err);
    int64_t *held = RG_NEW(arena, int64_t, p->ep, err);
    if (!load || !copies || !rank || !held)
        return RG_ERR_LIMIT;
    double sum = 0;
    for (int64_t i = 0; i < experts; i++) {
        load[i] = share_of(x, i, experts);
        if (!(load[i] >= 0) || !isfinite(load[i]))
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "load %g of expert %lld", load[i],
                           (long long)i);
        sum += load[i];
        copies[i] = 1;
    }
    if (!(sum > 0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "the experts' loads sum to 0");
    const double room = p->capacity_factor / (double)experts;
    double kept = 0;
    for (int64_t i = 0; i < experts; i++) {
        load[i] /= sum;
        if (p->capacity_factor > 0 && p->capacity_drop && load[i] > room)
            load[i] = room;
        kept += load[i];
        if (p->capacity_factor > 0 && !p->capacity_drop)
            load[i] = fmax(load[i] > room ? load[i] : room, 0); /* padded up to the room */
    }
    x->dropped_ratio = 1 - kept;
    if (x->dropped_ratio < 1e-12)
        x->dropped_ratio = 0;
    for (int64_t r = 0; r < p->expert_replicas; r++) {
        int64_t busiest = 0;
        for (int64_t i = 1; i < experts; i++)
            if (load[i] / (double)copies[i] > load[busiest] / (double)copies[busiest])
                busiest = i;
        copies[busiest]++;
    }
    const int64_t slots = (experts + p->expert_replicas) / p->ep;
    const bool in_order = p->expert_load != NULL && p->expert_replicas == 0;
    for (int64_t placed = 0; placed < experts + p->expert_replicas; placed++) {
        int64_t next = -1;
        for (int64_t i = 0; i < experts && !in_order; i++)
            if (copies[i] > 0 && (next < 0 || load[i] > load[next]))
                next = i;
        if (in_order)
            next = placed;
        int64_t to = -1;
        for (int64_t k = 0; k < p->ep && !in_order; k++)
            if (held[k] < slots && (to < 0 || rank[k] < rank[to]))
                to = k;
        if (in_order)
            to = placed / slots;
        /* a copy's rows: all copies of an expert share them evenly */
        int64_t all = copies[next];
        rank[to] += load[next] / (double)(all > 0 ? all : 1);
        load[next] -= load[next] / (double)(all > 0 ? all : 1);
        copies[next]--;
        held[to]++;
    }
    double most = 0;
    for (int64_t k = 0; k < p->ep; k++)
        most = fmax(most, rank[k]);
    /* The plan counts whole experts: experts / ep rounded up, of all experts. */
    const double planned = ceil((double)experts / (double)p->ep);
    x->expert_imbalance = most * (double)experts / planned;
    return RG_OK;
}

int rg_step_fill(const rg_step_context *x, const stage *s, const rg_pass *pass)
{
    const int count = rg_pass_fill(s->plan, pass, s->items);
    for (int i = 0; i < count; i++) {
        rg_op *op = &s->items[i];
        if (op->kind != RG_OP_MOE || x->expert_imbalance == 1)
            continue;
        op->u.moe.tokens = (int64_t)ceil((double)op->u.moe.tokens * x->expert_imbalance - 1e-9);
        if (x->expert_ranks > 1)
            op->u.moe.skew = 0; /* what skew does between ranks is in the imbalance */
        rg_op_fill_moe(op);
    }
    return count;
}

void rg_step_balance_of(const rg_step_context *context, rg_step_balance *out)
{
    *out = (rg_step_balance){context->expert_imbalance, context->dropped_ratio};
}

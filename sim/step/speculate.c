/* step/speculate.c: speculative decoding. */
// SPDX-License-Identifier: Apache-2.0
#include "step/speculate.h"

#include <math.h>
#include <string.h>

#include "core/text.h"

#include "step/inner.h"

static const char *const names[] = {"none", "draft_model", "self", "medusa", "eagle", "mtp", NULL};

const char *rg_spec_kind_name(rg_spec_kind kind)
{
    return names[kind];
}

rg_status rg_spec_kind_parse(const char *name, rg_spec_kind *out, rg_err *err)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (rg_spec_kind)i;
            return RG_OK;
        }
    const char *near = rg_text_nearest(name, names);
    return rg_fail(
        err, RG_ERR_USAGE, RG_NOWHERE,
        "speculation '%s' is not known%s%s; none, draft_model, self, medusa, eagle or mtp "
        "would do",
        name, near ? ", nearest is " : "", near ? near : "");
}

static int64_t width_at(const rg_spec *spec, int64_t depth)
{
    return spec->width[depth] > 0 ? spec->width[depth] : 1;
}

int64_t rg_spec_nodes(const rg_spec *spec)
{
    int64_t nodes = 0;
    for (int64_t i = 0; i < spec->depth && spec->kind != RG_SPEC_NONE; i++)
        nodes += width_at(spec, i);
    return nodes;
}

rg_status rg_spec_expected_tokens(const rg_spec *spec, double *out, rg_err *err)
{
    *out = 1;
    if (spec->kind == RG_SPEC_NONE)
        return RG_OK;
    if (spec->depth < 1 || spec->depth > RG_SPEC_MOST_DEPTH)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "%lld drafts in a row; 1 to %d would do",
                       (long long)spec->depth, RG_SPEC_MOST_DEPTH);
    if (spec->list_count > 0 && spec->list_count < spec->depth)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "acceptance is given for %d positions, but %lld drafts are written",
                       spec->list_count, (long long)spec->depth);
    double all = 1;
    for (int64_t i = 0; i < spec->depth; i++) {
        const double a = spec->list_count > 0 ? spec->list[i] : spec->acceptance;
        if (!(a >= 0 && a <= 1))
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "acceptance '%g' is not within 0 to 1",
                           a);
        const double w = (double)width_at(spec, i);
        all *= spec->list_count > 0 || w == 1 ? a : 1 - pow(1 - a, w);
        *out += all;
    }
    return RG_OK;
}

/** Device time of one pass of the draft, with the engine's part left out: it runs in the same step.
 */
static rg_status draft_pass(rg_step_context *draft, const rg_pass *pass, double *out, rg_err *err)
{
    rg_step_time t;
    RG_TRY(rg_step_time_of(draft, pass, &t, err));
    *out = t.compute.v + t.communication.v + t.bubble.v;
    return RG_OK;
}

/** Extra heads of Medusa (Cai et al. 2024): a square product with a residual, then a head each. */
static rg_status medusa_heads(const rg_step_context *x, int64_t heads, int64_t rows, double *out,
                              rg_err *err)
{
    const int64_t tp = x->parallel.tp, h = x->model->hidden;
    const rg_format *f = &x->formats.head;
    const rg_op ops[] = {
        rg_op_make_gemm("medusa_block", rows, h, h, f, x->formats.act, x->formats.act),
        rg_op_make_gemm("medusa_head", rows, (x->model->vocab + tp - 1) / tp, h, f, x->formats.act,
                        x->formats.act),
    };
    *out = 0;
    for (int i = 0; i < 2; i++) {
        rg_kernel_time t;
        RG_TRY(rg_step_op_time(x, &ops[i], &t, err));
        *out += (double)heads * t.total.v;
    }
    return RG_OK;
}

rg_status rg_spec_draft_time(rg_step_context *target, const rg_spec *spec, const rg_pass *pass,
                             rg_seconds *out, rg_err *err)
{
    double sum = 0;
    *out = RG_S(0);
    if (spec->kind == RG_SPEC_NONE || (pass->decodes == 0 && pass->chunk_count == 0))
        return RG_OK;
    if (spec->kind == RG_SPEC_MEDUSA) {
        if (pass->decodes > 0)
            RG_TRY(medusa_heads(target, spec->depth, pass->decodes, &sum, err));
        *out = RG_S(sum);
        return RG_OK;
    }
    if (spec->draft == NULL)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "speculation by %s needs a draft to be prepared", names[spec->kind]);
    for (int64_t i = 0; i < (pass->decodes > 0 ? spec->depth : 1); i++) {
        rg_pass part = *pass;
        /* the first pass of a depth starts from one token, later ones from all candidates before */
        part.tokens_per_decode = i == 0 ? 1 : width_at(spec, i - 1);
        if (i > 0)
            part.chunk_count = 0;
        part.logit_rows = 0;
        double t;
        RG_TRY(draft_pass(spec->draft, &part, &t, err));
        sum += t;
    }
    *out = RG_S(sum);
    return RG_OK;
}

rg_status rg_spec_time_of(rg_step_context *target, const rg_spec *spec, const rg_pass *decode,
                          rg_spec_time *out, rg_err *err)
{
    *out = (rg_spec_time){0};
    rg_pass pass = *decode;
    pass.tokens_per_decode = 1;
    rg_step_time t;
    if (pass.decodes < 1 || pass.chunk_count > 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "speculation is about passes in which sequences decode, and nothing else");
    RG_TRY(rg_step_time_of(target, &pass, &t, err));
    out->plain = t.total;
    RG_TRY(rg_spec_expected_tokens(spec, &out->tokens_per_pass, err));
    if (spec->kind != RG_SPEC_NONE) {
        RG_TRY(rg_spec_draft_time(target, spec, &pass, &out->draft, err));
        pass.tokens_per_decode = 1 + rg_spec_nodes(spec);
        RG_TRY(rg_step_time_of(target, &pass, &t, err));
    }
    out->verify = t.total;
    out->per_token = RG_S((out->draft.v + t.total.v) / out->tokens_per_pass);
    out->speedup = out->plain.v / out->per_token.v;
    return RG_OK;
}

rg_status rg_spec_break_even(rg_step_context *target, const rg_spec *spec, double context_tokens,
                             int64_t most, int64_t *out, rg_err *err)
{
    int64_t pays = 0, fails = 0;
    for (int64_t batch = 1; batch <= most && fails == 0; batch *= 2) {
        const rg_pass pass = {.decodes = batch,
                              .decode_kv_tokens = (double)batch * context_tokens,
                              .decode_kv_max = context_tokens};
        rg_spec_time t;
        RG_TRY(rg_spec_time_of(target, spec, &pass, &t, err));
        if (t.speedup > 1)
            pays = batch;
        else
            fails = batch;
    }
    while (fails > 0 && fails - pays > 1) {
        const int64_t batch = pays + (fails - pays) / 2;
        const rg_pass pass = {.decodes = batch,
                              .decode_kv_tokens = (double)batch * context_tokens,
                              .decode_kv_max = context_tokens};
        rg_spec_time t;
        RG_TRY(rg_spec_time_of(target, spec, &pass, &t, err));
        if (t.speedup > 1)
            pays = batch;
        else
            fails = batch;
    }
    *out = fails;
    return RG_OK;
}

rg_status rg_spec_layers(rg_arena *arena, const rg_model *model, int64_t first, int64_t count,
                         rg_model **out, rg_err *err)
{
    if (first < 0 || count < 1 || first + count > model->layer_count)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "a draft of %lld layers; '%s' has %lld",
                       (long long)count, model->name, (long long)model->layer_count);
    rg_model *part = RG_NEW(arena, rg_model, 1, err);
    if (part == NULL)
        return RG_ERR_LIMIT;
    *part = *model;
    part->name = rg_arena_printf(arena, err, "%s, %lld layers", model->name, (long long)count);
    if (part->name == NULL)
        return RG_ERR_LIMIT;
    part->layers = model->layers + first;
    part->layer_count = count;
    RG_TRY(rg_model_count(part, err));
    *out = part;
    return RG_OK;
}

rg_status rg_spec_draft_of(rg_arena *arena, rg_spec_kind kind, const rg_model *target,
                           const rg_formats *formats, const rg_parallel *parallel,
                           const char *draft_name, int64_t exit_layers, rg_spec_draft *out,
                           rg_err *err)
{
    rg_model *model;
    *out = (rg_spec_draft){.formats = *formats, .parallel = *parallel};
    out->parallel.pp = 1;
    switch (kind) {
    case RG_SPEC_NONE:
    case RG_SPEC_MEDUSA:
    case RG_SPEC_COUNT:
        return RG_OK;
    case RG_SPEC_DRAFT_MODEL:
        if (draft_name == NULL)
            return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE,
                           "--speculate draft_model needs --draft-model NAME");
        RG_TRY(rg_model_load(arena, draft_name, &model, err));
        RG_TRY(rg_formats_choose(model, NULL, NULL, NULL, &out->formats, err));
        out->formats.fused_attention = formats->fused_attention;
        out->parallel = (rg_parallel){.tp = parallel->tp};
        break;
    case RG_SPEC_SELF:
        if (exit_layers < 1)
            exit_layers = target->layer_count / 4 > 0 ? target->layer_count / 4 : 1;
        RG_TRY(rg_spec_layers(arena, target, 0, exit_layers, &model, err));
        break;
    case RG_SPEC_EAGLE:
        RG_TRY(rg_spec_layers(arena, target, 0, 1, &model, err));
        break;
    case RG_SPEC_MTP:
        RG_TRY(rg_spec_layers(arena, target, target->layer_count - 1, 1, &model, err));
        break;
    }
    out->model = model;
    return RG_OK;
}

void rg_spec_memory(rg_spec_kind kind, int64_t depth, const rg_model *target,
                    const rg_formats *formats, const rg_parallel *parallel,
                    const rg_spec_draft *draft, double *weight_bytes, double *token_bytes)
{
    const rg_parallel *p = draft->model ? &draft->parallel : parallel;
    const bool own = kind == RG_SPEC_DRAFT_MODEL;
    const rg_shard shard = {.tp = p->tp,
                            .attention_tp = p->attention_dp ? 1 : p->tp,
                            .ep = p->ep,
                            .cp = p->cp,
                            .embedding = own,
                            .head = own};
    *weight_bytes = *token_bytes = 0;
    if (kind == RG_SPEC_MEDUSA) { /* a square product and a head for each position */
        const double h = (double)target->hidden, v = (double)target->vocab / (double)p->tp;
        *weight_bytes = (double)depth * rg_format_bytes(&formats->head, h * h + h * v).v;
    }
    if (draft->model == NULL || kind == RG_SPEC_SELF)
        return;
    *weight_bytes = rg_shard_weight_bytes(draft->model, &draft->formats, &shard).v;
    *token_bytes =
        rg_shard_kv_bytes_in(draft->model, &draft->formats, &shard, RG_KV_UNIFORM_PAGE, 1024).v /
        1024;
}

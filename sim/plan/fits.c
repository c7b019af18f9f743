/* plan/fits.c: does it fit, and how fast is it? */
// SPDX-License-Identifier: Apache-2.0
#include "plan/fits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static rg_status usual_types(rg_arena *arena, const rg_plan *plan, rg_plan *out, rg_err *err)
{
    static const char *const usual[] = {"bf16", "fp8", "int4_g128"};
    rg_model *model;
    rg_formats own;
    *out = *plan;
    out->goal = RG_PLAN_DEVICES;
    out->policy_count = 1;
    out->pools[0] = (rg_plan_pools){0, 0};
    out->pool_count = 1;
    if (plan->weight_types.count > 0)
        return RG_OK;
    RG_TRY(rg_model_load(arena, plan->model, &model, err));
    RG_TRY(rg_formats_choose(model, NULL, NULL, "bf16", &own, err));
    rg_plan_names *names = &out->weight_types;
    names->items[names->count++] = NULL; /* as the checkpoint has them */
    const bool mixed = own.expert.name[0] || own.mixer.name[0];
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (mixed || strcmp(own.weight.name, usual[i]) != 0)
            names->items[names->count++] = usual[i];
    return RG_OK;
}

/* Bytes that one decode of one sequence reads: weights that a token touches, and its cache. */
static rg_status bound_of(rg_arena *arena, const rg_space *s, const rg_candidate *c, double context,
                          double *tokens_per_s, rg_err *err)
{
    const rg_arrangement *a = &s->arrangements[c->arrangement];
    const rg_plan_requests one = {.shared = true};
    rg_candidate single = *c;
    rg_least_works works = {0};
    rg_works_of work;
    single.rules.max_sequences = 1;
    RG_TRY(rg_least_work_of(arena, &works, s, &single, &one, &work, err));
    const rg_least_work *w = work.replica;
    const double cache = rg_model_kv_bytes(s->model, &a->formats.kv, RG_KV_IDEAL, context, 1).v;
    /* the stages of a pipeline take turns: one user has the memory of one of them at a time */
    const double at_work = (double)a->devices / (double)a->parallel.pp;
    *tokens_per_s = at_work * w->bandwidth / (w->dense_bytes + w->expert_bytes + cache);
    return RG_OK;
}

static rg_status prompt_time(rg_worker *w, const rg_candidate *c, int64_t tokens, double *out,
                             rg_err *err)
{
    rg_step_context *step;
    RG_TRY(rg_worker_step(w, c, &step, err));
    *out = 0;
    for (int64_t done = 0; done < tokens;) {
        const int64_t budget = c->rules.max_batched_tokens, left = tokens - done;
        const rg_chunk chunk = {.new_tokens = budget > 0 && budget < left ? budget : left,
                                .past_tokens = done};
        const rg_pass pass = {.chunks = &chunk, .chunk_count = 1};
        rg_step_time time;
        RG_TRY(rg_step_time_of(step, &pass, &time, err));
        *out += time.total.v;
        done += chunk.new_tokens;
    }
    return RG_OK;
}

static rg_status speed(rg_arena *arena, rg_worker *w, const rg_space *s, const rg_candidate *c,
                       rg_fit *f, rg_err *err)
{
    const double prompt = s->plan->traffic.mean_prompt, output = s->plan->traffic.mean_output;
    const int64_t page = c->rules.block_tokens;
    const double pages = ceil((prompt + output) / (double)page);
    double step;
    RG_TRY(rg_trial_alone(w, c, prompt, 1, &step, err));
    f->single_tokens_per_s = 1 / step;
    RG_TRY(prompt_time(w, c, (int64_t)prompt, &f->ttft_s, err));
    RG_TRY(bound_of(arena, s, c, prompt, &f->bound_tokens_per_s, err));
    f->sequences = c->rules.blocks > 0 ? (int64_t)((double)(c->rules.blocks - 1) / pages)
                                       : c->rules.max_sequences;
    f->batch = f->sequences < c->rules.max_sequences ? f->sequences : c->rules.max_sequences;
    if (f->batch < 1)
        return RG_OK;
    RG_TRY(rg_trial_alone(w, c, prompt + 0.5 * output, f->batch, &step, err));
    f->output_tokens_per_s = (double)f->batch / step;
    f->usd_per_million_output = f->usd_per_hour / (f->output_tokens_per_s * 3600) * 1e6;
    return RG_OK;
}

static int by_size(const void *a, const void *b)
{
    const rg_fit *x = a, *y = b;
    if (x->machine != y->machine)
        return x->machine - y->machine;
    const int types = strcmp(x->weight_type, y->weight_type);
    if (x->checkpoint != y->checkpoint)
        return x->checkpoint ? -1 : 1;
    if (types != 0)
        return types;
    if (x->devices != y->devices)
        return x->devices < y->devices ? -1 : 1;
    if (x->attention_dp != y->attention_dp)
        return x->attention_dp ? 1 : -1;
    return x->candidate - y->candidate;
}

static bool alike(const rg_fit *a, const rg_fit *b)
{
    return a->machine == b->machine && a->checkpoint == b->checkpoint &&
           strcmp(a->weight_type, b->weight_type) == 0;
}

/* One row of each number of devices, without and with data-parallel attention, which is slower for
 * one user and faster for many: of several splits the one that is best at what it is for. */
static int keep_fastest(rg_fit *rows, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        rg_fit *last = kept > 0 ? &rows[kept - 1] : NULL;
        if (last && alike(last, &rows[i]) && last->devices == rows[i].devices &&
            last->attention_dp == rows[i].attention_dp) {
            if (last->attention_dp ? rows[i].output_tokens_per_s > last->output_tokens_per_s
                                   : rows[i].single_tokens_per_s > last->single_tokens_per_s)
                *last = rows[i];
            continue;
        }
        rows[kept] = rows[i];
        rows[kept].least =
            rows[kept].devices > 0 &&
            (kept == 0 || !alike(&rows[kept - 1], &rows[i]) || rows[kept - 1].devices == 0);
        kept++;
    }
    return kept;
}

/* A type that fits nowhere is one row that says what it would need; one that fits is not. */
static int drop_misfits(rg_fit *rows, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        const bool fits_later =
            rows[i].devices == 0 && i + 1 < count && alike(&rows[i], &rows[i + 1]);
        if (!fits_later)
            rows[kept++] = rows[i];
    }
    for (int i = 0; i < kept; i++)
        rows[i].least = rows[i].devices > 0 && (i == 0 || !alike(&rows[i - 1], &rows[i]));
    return kept;
}

static rg_status fill(rg_arena *arena, rg_worker *w, const rg_space *s, int index, rg_fit *f,
                      rg_err *err)
{
    const rg_candidate *c = &s->candidates[index];
    const rg_arrangement *a = &s->arrangements[c->arrangement];
    const rg_shard whole = {.tp = 1, .attention_tp = 1, .ep = 1, .embedding = true, .head = true};
    *f = (rg_fit){.machine = a->machine,
                  .candidate = index,
                  .weight_type = a->weight_type ? a->weight_type : a->formats.weight.name,
                  .checkpoint = a->weight_type == NULL,
                  .devices = a->devices,
                  .attention_dp = a->parallel.attention_dp,
                  .usd_per_hour = rg_candidate_usage(s, c, 1).usd_per_hour,
                  .usd_per_million_output = NAN};
    f->weight_bytes = rg_shard_weight_bytes(s->model, &a->formats, &whole).v;
    f->needed_bytes = c->capacity.weight_bytes + c->capacity.activation_bytes +
                      c->capacity.graph_bytes + c->capacity.context_bytes;
    if (c->fits)
        RG_TRY(speed(arena, w, s, c, f, err));
    if (!c->fits || f->sequences < 1)
        f->devices = 0;
    return RG_OK;
}

rg_status rg_plan_fits(rg_arena *arena, const rg_plan *plan, rg_space *space, rg_fit **out,
                       int *count, rg_err *err)
{
    rg_plan *usual = RG_NEW(arena, rg_plan, 1, err);
    rg_worker *worker;
    if (!usual)
        return RG_ERR_LIMIT;
    RG_TRY(usual_types(arena, plan, usual, err));
    RG_TRY(rg_space_make(arena, usual, NULL, space, err));
    rg_fit *rows = RG_NEW(arena, rg_fit, space->candidate_count, err);
    if (!rows)
        return RG_ERR_LIMIT;
    RG_TRY(rg_worker_new(space, &worker, err));
    rg_status status = RG_OK;
    *count = 0;
    for (int i = 0; i < space->candidate_count && status == RG_OK; i++) {
        const rg_arrangement *a = &space->arrangements[space->candidates[i].arrangement];
        rg_machine *m = &space->machines[a->machine];
        rg_err reason = {0};
        status = fill(arena, worker, space, i, &rows[*count], &reason);
        if (status == RG_ERR_MODEL) { /* a figure that the machine's file lacks */
            memcpy(m->lacks, reason.text, sizeof m->lacks);
            status = RG_OK;
            continue;
        }
        if (status != RG_OK && err)
            *err = reason;
        (*count)++;
    }
    rg_worker_free(worker);
    RG_TRY(status);
    qsort(rows, (size_t)*count, sizeof *rows, by_size);
    *count = keep_fastest(rows, *count);
    *count = drop_misfits(rows, *count);
    *out = rows;
    return RG_OK;
}

/* serve/kernel_times_vidur.c: operator times as Vidur's profiler writes them, and as LLMServingSim
 * did before 2026.
 *
 * Vidur: mlp.csv has a row for each number of tokens and of tensor-parallel ranks, and a column
 * time_stats.<layer>.median, ms, for each layer; attention.csv has prompts (prefill_chunk_size
 * behind kv_cache_size) and decodes (batch_size of kv_cache_size), each in its own column, and the
 * time of storing keys and values by tokens. Source: microsoft/vidur, data/profiling and
 * vidur/execution_time_predictor/sklearn_execution_time_predictor.py. LLMServingSim: layers.csv has
 * layer_name, input (tokens), tp_size and latency(ns); its attention.csv is Vidur's.
 */
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "serve/kernel_tables.h"

/* Rows of other models and other numbers of ranks may stand in the same table. */
typedef struct filter {
    int ranks, hidden;
} filter;

static rg_status wanted(const rg_time_loader *l, rg_csv *csv, filter f, bool *yes, rg_err *err)
{
    int64_t ranks = l->use->tp, hidden = l->use->hidden;
    if (f.ranks >= 0)
        RG_TRY(rg_csv_int(csv, f.ranks, &ranks, err));
    if (f.hidden >= 0)
        RG_TRY(rg_csv_int(csv, f.hidden, &hidden, err));
    *yes = ranks == l->use->tp && hidden == l->use->hidden;
    return RG_OK;
}

static rg_status none_wanted(const rg_time_loader *l, rg_csv *csv, int64_t taken, rg_err *err)
{
    rg_pos pos = rg_csv_pos(csv, 0);
    pos.line = pos.column = 0;
    return taken > 0 ? RG_OK
                     : rg_fail(err, RG_ERR_INPUT, pos,
                               "no row of %lld tensor-parallel ranks and hidden size %lld; is it "
                               "another model's?",
                               (long long)l->use->tp, (long long)l->use->hidden);
}

static int column_of(rg_csv *csv, const char *layer)
{
    char name[80];
    snprintf(name, sizeof name, "time_stats.%s.median", layer);
    return rg_csv_find(csv, name);
}

/* A cell is empty where its kernel did not run. */
static bool empty(rg_csv *csv, int column)
{
    return column < 0 || !*rg_csv_text(csv, column);
}

static rg_status read_mlp(rg_time_loader *l, rg_csv *csv, int64_t *taken, rg_err *err)
{
    static const char *const layers[] = {
        "emb",         "input_layernorm", "attn_pre_proj",
        "attn_rope",   "attn_post_proj",  "post_attention_layernorm",
        "mlp_up_proj", "mlp_act",         "mlp_down_proj",
        "add"};
    enum { LAYERS = sizeof layers / sizeof layers[0] };
    int tokens, times[LAYERS];
    RG_TRY(rg_csv_column(csv, "num_tokens", &tokens, err));
    RG_TRY(rg_csv_column(csv, "time_stats.mlp_up_proj.median", &times[0], err));
    for (int i = 0; i < LAYERS; i++)
        times[i] = column_of(csv, layers[i]);
    const filter f = {rg_csv_find(csv, "num_tensor_parallel_workers"), rg_csv_find(csv, "n_embd")};
    for (bool more = true, yes;;) {
        double x, seconds;
        RG_TRY(rg_csv_next(csv, &more, err));
        if (!more)
            return none_wanted(l, csv, *taken, err);
        RG_TRY(wanted(l, csv, f, &yes, err));
        if (!yes)
            continue;
        RG_TRY(rg_csv_real(csv, tokens, &x, err));
        for (int i = 0; i < LAYERS; i++) {
            if (empty(csv, times[i]))
                continue;
            RG_TRY(rg_time_read(csv, times[i], 1e-3, &seconds, err));
            RG_TRY(rg_time_rows_add(l->arena, &l->dense, layers[i], x, seconds, err));
        }
        ++*taken;
    }
}

static rg_status read_layers(rg_time_loader *l, rg_csv *csv, int64_t *taken, rg_err *err)
{
    int layer, tokens, time;
    RG_TRY(rg_csv_column(csv, "layer_name", &layer, err));
    RG_TRY(rg_csv_column(csv, "input", &tokens, err));
    RG_TRY(rg_csv_column(csv, "latency(ns)", &time, err));
    const filter f = {rg_csv_find(csv, "tp_size"), -1};
    for (bool more = true, yes;;) {
        double x, seconds;
        RG_TRY(rg_csv_next(csv, &more, err));
        if (!more)
            return none_wanted(l, csv, *taken, err);
        RG_TRY(wanted(l, csv, f, &yes, err));
        const char *name = rg_csv_text(csv, layer);
        if (!yes || strcmp(name, "attn") == 0) /* attention.csv has it */
            continue;
        RG_TRY(rg_csv_real(csv, tokens, &x, err));
        RG_TRY(rg_time_read(csv, time, 1e-9, &seconds, err));
        rg_time_rows *to = strcmp(name, "lm_head") == 0 ? &l->heads : &l->dense;
        RG_TRY(rg_time_rows_add(l->arena, to, name, x, seconds, err));
        ++*taken;
    }
}

static rg_status read_attention(rg_time_loader *l, rg_csv *csv, int64_t *taken, rg_err *err)
{
    int batch, chunk, kv, prefill, decode;
    RG_TRY(rg_csv_column(csv, "batch_size", &batch, err));
    RG_TRY(rg_csv_column(csv, "prefill_chunk_size", &chunk, err));
    RG_TRY(rg_csv_column(csv, "kv_cache_size", &kv, err));
    RG_TRY(rg_csv_column(csv, "time_stats.attn_prefill.median", &prefill, err));
    RG_TRY(rg_csv_column(csv, "time_stats.attn_decode.median", &decode, err));
    const int save = column_of(csv, "attn_kv_cache_save");
    const filter f = {rg_csv_find(csv, "num_tensor_parallel_workers"), rg_csv_find(csv, "n_embd")};
    for (bool more = true, yes;;) {
        double sequences, new_tokens, past, seconds;
        RG_TRY(rg_csv_next(csv, &more, err));
        if (!more)
            return none_wanted(l, csv, *taken, err);
        RG_TRY(wanted(l, csv, f, &yes, err));
        if (!yes)
            continue;
        RG_TRY(rg_csv_real(csv, batch, &sequences, err));
        RG_TRY(rg_csv_real(csv, chunk, &new_tokens, err));
        RG_TRY(rg_csv_real(csv, kv, &past, err));
        if (new_tokens > 0 && sequences != 1)
            continue;
        const int column = new_tokens > 0 ? prefill : decode;
        if (empty(csv, column))
            continue;
        rg_ragged_point p = {.at = {new_tokens, past, 0, 0}};
        if (new_tokens == 0)
            p = (rg_ragged_point){.at = {0, 0, sequences, past}};
        RG_TRY(rg_time_read(csv, column, 1e-3, &p.value, err));
        RG_TRY(rg_time_points_add(l->arena, &l->attention, p, err));
        if (!empty(csv, save)) {
            const double tokens = new_tokens > sequences ? new_tokens : sequences;
            RG_TRY(rg_time_read(csv, save, 1e-3, &seconds, err));
            RG_TRY(
                rg_time_rows_add(l->arena, &l->dense, "attn_kv_cache_save", tokens, seconds, err));
        }
        ++*taken;
    }
}

rg_status rg_time_read_vidur(rg_time_loader *l, bool mlp, rg_err *err)
{
    if (l->use->moe_layers > 0)
        return rg_fail(
            err, RG_ERR_INPUT, (rg_pos){l->folder, 0, 0},
            "these tables have no times of experts, and the model has %lld layers of them",
            (long long)l->use->moe_layers);
    RG_TRY(mlp ? rg_time_table(l, "mlp.csv", read_mlp, err)
               : rg_time_table(l, "layers.csv", read_layers, err));
    return rg_time_table(l, "attention.csv", read_attention, err);
}

/* cli/show_model.c: a model in full, for `ridge show` and `ridge import`. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/show_model.h"

#include <math.h>
#include <stdio.h>

rg_status rg_show_kv_options(const rg_args *args, rg_show_kv *out, rg_err *err)
{
    *out = (rg_show_kv){0};
    RG_TRY(rg_format_parse(rg_arg_text(args, "kv-type"), RG_NOWHERE, &out->format, err));
    RG_TRY(rg_kv_layout_parse(rg_arg_text(args, "kv-layout"), &out->layout, err));
    RG_TRY(rg_arg_int(args, "page", 1, 1 << 20, &out->page_tokens, err));
    if (rg_arg_given(args, "context"))
        RG_TRY(rg_arg_real(args, "context", 1, 1e12, &out->context_tokens, err));
    return RG_OK;
}

static void describe_mixer(const rg_layer *l, char *out, size_t size)
{
    switch (l->mixer) {
    case RG_MIX_NONE:
        snprintf(out, size, "none");
        break;
    case RG_MIX_MLA:
        snprintf(out, size, "mla: %lld heads, latent %lld + %lld", (long long)l->heads,
                 (long long)l->kv_lora, (long long)l->rope_dim);
        break;
    case RG_MIX_LINEAR:
    case RG_MIX_MAMBA1:
    case RG_MIX_MAMBA2:
        snprintf(out, size, "%s: %lld x %lld, state %lld", rg_mixer_name(l->mixer),
                 (long long)l->ssm_heads, (long long)l->ssm_head_dim, (long long)l->ssm_state);
        break;
    default: {
        char window[40] = "";
        if (l->window > 0)
            snprintf(window, sizeof window, ", last %lld", (long long)l->window);
        snprintf(out, size, "%s: %lld heads, %lld KV, dim %lld%s", rg_mixer_name(l->mixer),
                 (long long)l->heads, (long long)l->kv_heads, (long long)l->head_dim, window);
    }
    }
}

static void describe_ffn(const rg_layer *l, char *out, size_t size)
{
    if (l->ffn == RG_FFN_NONE)
        snprintf(out, size, "none");
    else if (l->ffn == RG_FFN_DENSE)
        snprintf(out, size, "dense %s %lld", l->gated ? "gated" : "plain", (long long)l->inter);
    else if (l->shared_inter > 0)
        snprintf(out, size, "moe %lld of %lld x %lld + shared %lld", (long long)l->top_k,
                 (long long)l->experts, (long long)l->inter, (long long)l->shared_inter);
    else
        snprintf(out, size, "moe %lld of %lld x %lld", (long long)l->top_k, (long long)l->experts,
                 (long long)l->inter);
}

static void add_columns(rg_table *t, bool each)
{
    rg_table_column(t, each ? "index" : "count", each ? "layer" : "layers", RG_CELL_INT,
                    RG_DIM_NONE, false);
    rg_table_column(t, "attention", "attention", RG_CELL_TEXT, RG_DIM_NONE, !each);
    rg_table_column(t, "ffn", "FFN", RG_CELL_TEXT, RG_DIM_NONE, !each);
    rg_table_column(t, "attention_detail", "attention", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "ffn_detail", "FFN", RG_CELL_TEXT, RG_DIM_NONE, false);
    rg_table_column(t, "heads", "heads", RG_CELL_INT, RG_DIM_NONE, true);
    rg_table_column(t, "kv_heads", "KV heads", RG_CELL_INT, RG_DIM_NONE, true);
    rg_table_column(t, "head_dim", "head dim", RG_CELL_INT, RG_DIM_NONE, true);
    rg_table_column(t, "window_tokens", "window", RG_CELL_INT, RG_DIM_NONE, true);
    rg_table_column(t, "experts", "experts", RG_CELL_INT, RG_DIM_NONE, true);
    rg_table_column(t, "top_k", "top-k", RG_CELL_INT, RG_DIM_NONE, true);
    rg_table_column(t, "parameters", "parameters", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "parameters_active", "active", RG_CELL_INT, RG_DIM_NONE, false);
    rg_table_column(t, "kv_bytes_per_token", "KV a token", RG_CELL_REAL, RG_DIM_BYTES, false);
}

static void add_row(rg_table *t, long long number, const rg_layer *l, const rg_format *kv,
                    bool expanded)
{
    char mixer[96], ffn[96];
    describe_mixer(l, mixer, sizeof mixer);
    describe_ffn(l, ffn, sizeof ffn);
    rg_table_int(t, number);
    rg_table_text(t, rg_mixer_name(l->mixer));
    rg_table_text(t, rg_ffn_name(l->ffn));
    rg_table_text(t, mixer);
    rg_table_text(t, ffn);
    rg_table_int(t, l->heads);
    rg_table_int(t, l->kv_heads);
    rg_table_int(t, l->head_dim);
    rg_table_int(t, l->window);
    rg_table_int(t, l->experts);
    rg_table_int(t, l->top_k);
    rg_table_int(t, l->mixer_params + l->ffn_params + l->norm_params);
    rg_table_int(t, l->mixer_params + l->ffn_active_params + l->norm_params);
    rg_table_real(t, rg_format_bytes(kv, (double)rg_layer_kv_elements(l, expanded)).v);
}

static void add_layers(const rg_model *m, const rg_show_kv *kv, rg_form form, rg_report *report)
{
    const bool each = form != RG_FORM_TEXT, expanded = kv->layout == RG_KV_MLA_EXPANDED;
    rg_table *t = rg_report_table(report, "layers", "Layers");
    add_columns(t, each);
    for (int64_t i = 0; i < m->layer_count; i++) {
        int64_t count = 0;
        bool seen = false;
        for (int64_t j = 0; j < m->layer_count && !each; j++) {
            const bool equal = m->layers[i].same_as == m->layers[j].same_as;
            seen = seen || (equal && j < i);
            count += equal;
        }
        if (!seen)
            add_row(t, each ? (long long)i : (long long)count, &m->layers[i], &kv->format,
                    expanded);
    }
}

static void add_quantisation(const rg_model *m, rg_report *report)
{
    if (m->dtype != NULL)
        rg_report_text(report, "dtype", "type before quantisation", m->dtype);
    if (m->quantisation_scheme != NULL)
        rg_report_text(report, "quantisation_scheme", "quantised by", m->quantisation_scheme);
    if (m->quantisation != NULL)
        rg_report_text(report, "weight_type", "weights", m->quantisation);
    if (m->expert_quantisation != NULL)
        rg_report_text(report, "expert_weight_type", "expert weights", m->expert_quantisation);
    if (m->mixer_quantisation != NULL)
        rg_report_text(report, "attention_weight_type", "attention weights", m->mixer_quantisation);
    if (m->activation_quantisation != NULL)
        rg_report_text(report, "activation_type", "activations in products",
                       m->activation_quantisation);
    if (m->kv_quantisation != NULL)
        rg_report_text(report, "kv_type_of_checkpoint", "cache of the checkpoint",
                       m->kv_quantisation);
}

static rg_status add_memory(const rg_model *m, const rg_show_kv *kv, rg_report *report, rg_err *err)
{
    rg_formats formats;
    const rg_shard whole = {.embedding = true, .head = true};
    RG_TRY(rg_formats_choose(m, NULL, NULL, NULL, &formats, err));
    const double state = rg_shard_state_bytes(m, &whole).v;
    const bool expanded = kv->layout == RG_KV_MLA_EXPANDED;
    rg_report_figure(report, "weight_bytes", "weights as engines load them",
                     rg_shard_weight_bytes(m, &formats, &whole).v, RG_DIM_BYTES);
    rg_report_text(report, "kv_type", "cache type", kv->format.name);
    rg_report_text(report, "kv_layout", "cache layout", rg_kv_layout_name(kv->layout));
    rg_report_figure(report, "kv_bytes_per_token", "cache a token, all layers",
                     rg_model_kv_bytes_per_token(m, &kv->format, expanded).v, RG_DIM_BYTES);
    double index = 0;
    for (int64_t i = 0; i < m->layer_count; i++)
        index += (double)rg_layer_index_bytes(&m->layers[i]);
    if (index > 0)
        rg_report_figure(report, "index_bytes_per_token", "indexer keys a token, beside it", index,
                         RG_DIM_BYTES);
    if (kv->context_tokens > 0) {
        rg_report_int(report, "context_tokens", "context", (long long)kv->context_tokens);
        rg_report_figure(
            report, "kv_bytes", "cache of one sequence of that context",
            rg_model_kv_bytes(m, &kv->format, kv->layout, kv->context_tokens, kv->page_tokens).v,
            RG_DIM_BYTES);
    }
    rg_report_figure(report, "state_bytes", "recurrent state a sequence", state, RG_DIM_BYTES);
    if (state > 0 && m->state_type == NULL)
        rg_report_assume(report, "recurrent state in bf16: the config names no type for it");
    return RG_OK;
}

rg_status rg_show_model(const rg_model *m, const rg_show_kv *kv, rg_form form, rg_report *report,
                        rg_err *err)
{
    rg_report_text(report, "name", "model", m->name);
    if (m->family != NULL)
        rg_report_text(report, "family", "family", m->family);
    if (m->source != NULL)
        rg_report_text(report, "source", "source", m->source);
    rg_report_int(report, "parameters_total", "parameters", m->parameters_total);
    rg_report_int(report, "parameters_active", "active", m->parameters_active);
    rg_report_text(report, "parameters_active_convention", "active means", m->active_convention);
    rg_report_int(report, "parameters_active_without_embedding", "active without input embedding",
                  rg_model_active_without_embedding(m));
    rg_report_int(report, "embedding_parameters", "input embedding", m->embedding_params);
    rg_report_int(report, "head_parameters", "LM head beside it", m->head_params);
    rg_report_int(report, "hidden", "hidden size", m->hidden);
    rg_report_int(report, "vocabulary", "vocabulary", m->vocab);
    rg_report_int(report, "layer_count", "layers", m->layer_count);
    if (m->max_positions > 0)
        rg_report_int(report, "max_context_tokens", "longest context", m->max_positions);
    rg_report_text(report, "tied_embeddings", "embedding and head",
                   m->tied_embeddings ? "one matrix" : "two matrices");
    if (m->mtp_layers > 0)
        rg_report_int(report, "mtp_layers", "multi-token-prediction layers, not counted",
                      m->mtp_layers);
    add_quantisation(m, report);
    RG_TRY(add_memory(m, kv, report, err));
    for (int i = 0; i < m->note_count; i++)
        rg_report_assume(report, "%s", m->notes[i]);
    add_layers(m, kv, form, report);
    return RG_OK;
}

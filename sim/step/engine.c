/* step/engine.c: constants of serving engines from their YAML files. */
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/doc.h"
#include "core/find.h"
#include "hw/figure.h"
#include "step/step.h"

/* Figures as the file gives them, before they go into rg_engine. */
typedef struct engine_figures {
    rg_figure step_overhead, per_sequence, overlap, memory_utilisation, reserve, max_batched_tokens,
        max_sequences, block_tokens, device_gap, launch, graph_kernel, quantise, attention_skew,
        rank_wait, bytes_per_logit;
} engine_figures;

static const rg_figure_key keys[] = {
    {"step_overhead", RG_DIM_SECONDS, offsetof(engine_figures, step_overhead),
     RG_FIGURE_REQUIRED | RG_FIGURE_ZERO},
    {"per_sequence", RG_DIM_SECONDS, offsetof(engine_figures, per_sequence),
     RG_FIGURE_REQUIRED | RG_FIGURE_ZERO},
    {"device_gap", RG_DIM_SECONDS, offsetof(engine_figures, device_gap),
     RG_FIGURE_REQUIRED | RG_FIGURE_ZERO},
    {"launch", RG_DIM_SECONDS, offsetof(engine_figures, launch),
     RG_FIGURE_REQUIRED | RG_FIGURE_ZERO},
    {"quantise", RG_DIM_SECONDS, offsetof(engine_figures, quantise), RG_FIGURE_OPTIONAL},
    {"rank_wait", RG_DIM_SECONDS, offsetof(engine_figures, rank_wait), RG_FIGURE_OPTIONAL},
    {"attention_skew", RG_DIM_NONE, offsetof(engine_figures, attention_skew), RG_FIGURE_OPTIONAL},
    {"bytes_per_logit", RG_DIM_BYTES, offsetof(engine_figures, bytes_per_logit),
     RG_FIGURE_OPTIONAL},
    {"graph_kernel", RG_DIM_SECONDS, offsetof(engine_figures, graph_kernel),
     RG_FIGURE_REQUIRED | RG_FIGURE_ZERO},
    {"overlap", RG_DIM_NONE, offsetof(engine_figures, overlap),
     RG_FIGURE_REQUIRED | RG_FIGURE_ZERO},
    {"memory_utilisation", RG_DIM_NONE, offsetof(engine_figures, memory_utilisation),
     RG_FIGURE_REQUIRED},
    {"reserve", RG_DIM_BYTES, offsetof(engine_figures, reserve), RG_FIGURE_REQUIRED},
    {"max_batched_tokens", RG_DIM_NONE, offsetof(engine_figures, max_batched_tokens),
     RG_FIGURE_REQUIRED | RG_FIGURE_WHOLE},
    {"max_sequences", RG_DIM_NONE, offsetof(engine_figures, max_sequences),
     RG_FIGURE_REQUIRED | RG_FIGURE_WHOLE},
    {"block_tokens", RG_DIM_NONE, offsetof(engine_figures, block_tokens),
     RG_FIGURE_REQUIRED | RG_FIGURE_WHOLE},
    {NULL, RG_DIM_NONE, 0, 0},
};

static rg_status within(const rg_figure *figure, const char *key, double least, double most,
                        rg_err *err)
{
    if (figure->value >= least && figure->value <= most)
        return RG_OK;
    char value[32], low[32], high[32];
    rg_quantity_format(figure->value, figure->dim, 4, value, sizeof value);
    rg_quantity_format(least, figure->dim, 4, low, sizeof low);
    rg_quantity_format(most, figure->dim, 4, high, sizeof high);
    return rg_fail(err, RG_ERR_INPUT, figure->pos, "%s '%s' is not within %s to %s", key, value,
                   low, high);
}

static rg_status check(const engine_figures *f, rg_err *err)
{
    RG_TRY(within(&f->step_overhead, "step_overhead", 0, 1, err));
    RG_TRY(within(&f->per_sequence, "per_sequence", 0, 1, err));
    RG_TRY(within(&f->device_gap, "device_gap", 0, 1, err));
    RG_TRY(within(&f->launch, "launch", 0, 1e-2, err));
    RG_TRY(within(&f->rank_wait, "rank_wait", 0, 1e-3, err));
    RG_TRY(within(&f->attention_skew, "attention_skew", 0, 1, err));
    RG_TRY(within(&f->quantise, "quantise", 0, 1e-3, err));
    RG_TRY(within(&f->graph_kernel, "graph_kernel", 0, 1e-4, err));
    RG_TRY(within(&f->overlap, "overlap", 0, 1, err));
    RG_TRY(within(&f->memory_utilisation, "memory_utilisation", 0.01, 1, err));
    RG_TRY(within(&f->reserve, "reserve", 0, 1e12, err));
    RG_TRY(within(&f->max_batched_tokens, "max_batched_tokens", 1, 1e9, err));
    RG_TRY(within(&f->max_sequences, "max_sequences", 1, 1e9, err));
    return within(&f->block_tokens, "block_tokens", 1, 65536, err);
}

static rg_status keep_figures(rg_arena *arena, const engine_figures *f, rg_engine *out, rg_err *err)
{
    const int count = (int)(sizeof keys / sizeof keys[0]) - 1;
    engine_figures *kept = RG_NEW(arena, engine_figures, 1, err);
    rg_named_figure *list = RG_NEW(arena, rg_named_figure, count, err);
    if (kept == NULL || list == NULL)
        return RG_ERR_LIMIT;
    *kept = *f;
    for (int i = 0; i < count; i++)
        if (rg_figure_at(&keys[i], kept)->known)
            list[out->figure_count++] =
                (rg_named_figure){keys[i].key, rg_figure_at(&keys[i], kept)};
    out->figures = list;
    return RG_OK;
}

rg_status rg_engine_read(rg_arena *arena, rg_node *root, rg_engine *out, rg_err *err)
{
    static const char *const kinds[] = {"engine", NULL};
    static const char *const libraries[] = {"nccl", "custom", NULL};
    static const char *const shares[] = {"total", "static", "free", NULL};
    static const char *const experts[] = {"grouped", "triton", NULL};
    static const char *const attentions[] = {"auto", "trtllm", "flash", NULL};
    *out = (rg_engine){0};
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "an engine file", err));
    rg_node *node;
    int choice;
    RG_TRY(rg_map_get(root, "kind", &node, err));
    RG_TRY(rg_node_choice(node, kinds, &choice, err));
    RG_TRY(rg_map_text(root, "name", &out->name, err));
    RG_TRY(rg_map_text(root, "title", &out->title, err));
    RG_TRY(rg_map_text_or(root, "note", NULL, &out->note, err));
    engine_figures f = {0};
    RG_TRY(rg_figures_read(root, keys, true, &f, err));
    RG_TRY(check(&f, err));
    RG_TRY(rg_map_bool_or(root, "async_scheduling", false, &out->async_scheduling, err));
    RG_TRY(rg_map_bool_or(root, "cuda_graphs", true, &out->cuda_graphs, err));
    RG_TRY(rg_map_get(root, "attention", &node, err));
    RG_TRY(rg_node_choice(node, attentions, &choice, err));
    out->attention = (rg_attention_library)choice;
    RG_TRY(rg_map_get(root, "experts", &node, err));
    RG_TRY(rg_node_choice(node, experts, &choice, err));
    out->experts = (rg_expert_library)choice;
    RG_TRY(rg_map_get(root, "collectives", &node, err));
    RG_TRY(rg_node_choice(node, libraries, &choice, err));
    out->collectives = choice == 0 ? RG_LIB_NCCL : RG_LIB_CUSTOM;
    RG_TRY(rg_map_get(root, "memory_share_of", &node, err));
    RG_TRY(rg_node_choice(node, shares, &choice, err));
    out->memory_share_of = (rg_memory_share)choice;
    RG_TRY(rg_map_done(root, err));
    out->step_overhead_s = f.step_overhead.value;
    out->per_sequence_s = f.per_sequence.value;
    out->device_gap_s = f.device_gap.value;
    out->launch_s = f.launch.value;
    out->graph_kernel_s = f.graph_kernel.value;
    out->quantise_s = f.quantise.value;
    out->quantises = true;
    out->rank_wait_s = f.rank_wait.value;
    out->attention_skew_ratio = f.attention_skew.value;
    out->bytes_per_logit = f.bytes_per_logit.value;
    out->overlap_ratio = f.overlap.value;
    out->memory_utilisation = f.memory_utilisation.value;
    out->reserve_bytes = f.reserve.value;
    out->max_batched_tokens = (int64_t)f.max_batched_tokens.value;
    out->max_sequences = (int64_t)f.max_sequences.value;
    out->block_tokens = (int64_t)f.block_tokens.value;
    return keep_figures(arena, &f, out, err);
}

rg_status rg_engine_load_changed(rg_arena *arena, const char *name_or_path,
                                 const rg_changes *changes, rg_engine *out, rg_err *err)
{
    const char *path;
    RG_TRY(rg_data_find(arena, "hw/engines", "engine", name_or_path, &path, err));
    rg_node *root;
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(rg_changes_apply(root, "engine", changes, err));
    RG_TRY(rg_engine_read(arena, root, out, err));
    out->path = path;
    return RG_OK;
}

rg_status rg_engine_load(rg_arena *arena, const char *name_or_path, rg_engine *out, rg_err *err)
{
    return rg_engine_load_changed(arena, name_or_path, NULL, out, err);
}

rg_engine rg_engine_ideal(void)
{
    return (rg_engine){.name = "ideal",
                       .title = "no engine: no host work, all memory",
                       .async_scheduling = true,
                       .cuda_graphs = true,
                       .memory_utilisation = 1,
                       .max_batched_tokens = INT32_MAX,
                       .max_sequences = INT32_MAX,
                       .block_tokens = 1,
                       .collectives = RG_LIB_NCCL};
}

void rg_engine_without_host(rg_engine *engine)
{
    engine->step_overhead_s = 0.0;
    engine->per_sequence_s = 0.0;
    engine->device_gap_s = 0.0;
    engine->launch_s = 0.0;
    engine->graph_kernel_s = 0.0;
}

/** The other 16-bit type in place of one that the device does not multiply (V100 and T4: bf16).
 * Bytes stay as they are. */
static bool swap_half(const rg_accel *accel, rg_formats *formats)
{
    const rg_dtype old = formats->act, other = old == RG_BF16 ? RG_FP16 : RG_BF16;
    if ((old != RG_BF16 && old != RG_FP16) || rg_accel_peak(accel, old) ||
        !rg_accel_peak(accel, other))
        return false;
    rg_format *const all[] = {&formats->weight, &formats->expert, &formats->mixer, &formats->head,
                              &formats->kv};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->math == old)
            all[i]->math = other;
        if (strcmp(all[i]->name, rg_dtype_name(old)) == 0)
            snprintf(all[i]->name, sizeof all[i]->name, "%s", rg_dtype_name(other));
    }
    formats->act = other;
    if (formats->math == old)
        formats->math = other;
    return true;
}

unsigned rg_formats_expand(const rg_accel *accel, rg_formats *formats)
{
    rg_format *const all[] = {&formats->weight, &formats->expert, &formats->mixer};
    unsigned changed = swap_half(accel, formats) ? 1u << 3 : 0;
    for (unsigned i = 0; i < 3; i++) {
        rg_format *one = all[i];
        if (!one->name[0] || one->weight_only || rg_dtype_bits(one->math) >= 16 ||
            rg_accel_peak(accel, one->math))
            continue;
        one->weight_only = true;
        changed |= 1u << i;
        if (i == 0)
            formats->math = formats->act;
    }
    return changed;
}

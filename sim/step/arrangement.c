// SPDX-License-Identifier: Apache-2.0
#include "step/arrangement.h"

enum { MOST_RANKS = 65536, MOST_COUNT = 1 << 20, MOST_LOADS = 4096 };

rg_parallel rg_parallel_default(void)
{
    return (rg_parallel){.tp = 1, .pp = 1, .ep = 1, .cp = 1, .dp = 1, .pp_interleave = 1};
}

rg_status rg_parallel_read(rg_arena *arena, const rg_lookup *from, rg_parallel *p, rg_err *err)
{
    RG_TRY(rg_lookup_int(from, "tp", 1, MOST_RANKS, &p->tp, err));
    RG_TRY(rg_lookup_int(from, "pp", 1, MOST_RANKS, &p->pp, err));
    RG_TRY(rg_lookup_int(from, "ep", 1, MOST_RANKS, &p->ep, err));
    RG_TRY(rg_lookup_int(from, "cp", 1, MOST_RANKS, &p->cp, err));
    RG_TRY(rg_lookup_int(from, "dp", 1, MOST_RANKS, &p->dp, err));
    RG_TRY(rg_lookup_flag(from, "attention-dp", &p->attention_dp, err));
    RG_TRY(rg_lookup_flag(from, "sequence-parallel", &p->sequence_parallel, err));
    RG_TRY(rg_lookup_int(from, "micro-batches", 1, MOST_COUNT, &p->micro_batches, err));
    RG_TRY(rg_lookup_flag(from, "all-to-all", &p->ep_all_to_all, err));
    RG_TRY(rg_lookup_int(from, "expert-replicas", 0, MOST_COUNT, &p->expert_replicas, err));
    RG_TRY(rg_lookup_flag(from, "cp-gather", &p->cp_all_gather, err));
    RG_TRY(rg_lookup_real(from, "capacity-factor", 0.01, 1e6, &p->capacity_factor, err));
    RG_TRY(rg_lookup_flag(from, "capacity-drop", &p->capacity_drop, err));
    if (p->capacity_drop && p->capacity_factor == 0)
        return rg_lookup_placed(
            rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "needs a capacity-factor; 1.25 is common"), from,
            "capacity-drop", err);
    double *load;
    int count;
    RG_TRY(rg_lookup_reals(arena, from, "expert-load", MOST_LOADS, &load, &count, err));
    if (count > 0) {
        p->expert_load = load;
        p->expert_load_count = count;
    }
    return RG_OK;
}

rg_status rg_formats_read(const rg_lookup *from, const rg_model *model, rg_formats *f, rg_err *err)
{
    static const char *const types[] = {"weight-type", "kv-type", "act-type"};
    const char *texts[3];
    for (int i = 0; i < 3; i++) {
        rg_format named;
        texts[i] = rg_lookup_text(from, types[i]);
        if (texts[i])
            RG_TRY(rg_lookup_placed(rg_format_parse(texts[i], RG_NOWHERE, &named, err), from,
                                    types[i], err));
    }
    RG_TRY(rg_formats_choose(model, texts[0], texts[1], texts[2], f, err));
    const char *layout = rg_lookup_text(from, "kv-layout");
    if (layout)
        RG_TRY(rg_lookup_placed(rg_kv_layout_parse(layout, &f->kv_layout, err), from, "kv-layout",
                                err));
    bool unfused = false;
    RG_TRY(rg_lookup_flag(from, "unfused", &unfused, err));
    f->fused_attention = !unfused;
    return rg_lookup_real(from, "moe-skew", 0.0, 4.0, &f->moe_skew, err);
}

rg_status rg_step_kernels_read(const rg_lookup *from, rg_kernel_options *out, rg_err *err)
{
    *out = (rg_kernel_options){.cold_l2 = true, .core_attention = true};
    RG_TRY(rg_lookup_flag(from, "ideal", &out->ideal, err));
    return rg_lookup_flag(from, "sustained", &out->sustained, err);
}

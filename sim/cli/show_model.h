/* cli/show_model.h: a model in full, for `ridge show` and `ridge import`.
 *
 * Reads model/pass.h, report/report.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_SHOW_MODEL_H
#define RG_CLI_SHOW_MODEL_H

#include "cli/args.h"
#include "model/pass.h"

/** What the user asked of the cache: --kv-type, --kv-layout, --context, --page. */
typedef struct rg_show_kv {
    rg_format format;
    rg_kv_layout layout;
    double context_tokens; /* 0: not asked */
    int64_t page_tokens;
} rg_show_kv;

/** Those four options, for a command's table. */
#define RG_SHOW_KV_OPTIONS                                                                      \
    {"kv-type",                                                                                 \
     0,                                                                                         \
     "TYPE",                                                                                    \
     "bf16",                                                                                    \
     "storage of keys and values: bf16, fp8, int8, int4_g32, int2_g32 ...",                     \
     false},                                                                                    \
        {"kv-layout",                                                                           \
         0,                                                                                     \
         "LAYOUT",                                                                              \
         "ideal",                                                                               \
         "ideal, window_capped, uniform_page, mla_latent or mla_expanded",                      \
         false},                                                                                \
        {"context", 0, "TOKENS", NULL, "also the cache of one sequence of this length", false}, \
    {                                                                                           \
        "page", 0, "TOKENS", "16", "page size of the layouts that have pages", false            \
    }

rg_status rg_show_kv_options(const rg_args *args, rg_show_kv *out, rg_err *err);
/** Parameters, cache, state, layers. In text, equal layers are one row; else each has its own. */
rg_status rg_show_model(const rg_model *model, const rg_show_kv *kv, rg_form form,
                        rg_report *report, rg_err *err);

#endif

/* cli/policy.h: options of finer splits, and of speculation, offloading and life without a cache.
 *
 * Reads cli/setup.h, step. Used by estimate.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_POLICY_H
#define RG_CLI_POLICY_H

#include "cli/setup.h"

#define RG_POLICY_OPTIONS                                                                           \
    {                                                                                               \
        "micro-batches",                                                                            \
        0,                                                                                          \
        "N",                                                                                        \
        NULL,                                                                                       \
        "parts of a pass over the pipeline [as many as stages]",                                    \
        false},                                                                                     \
        {"all-to-all",                                                                              \
         0,                                                                                         \
         NULL,                                                                                      \
         NULL,                                                                                      \
         "tokens go to their experts by all-to-all, not gather and scatter",                        \
         false},                                                                                    \
        {"expert-replicas", 0, "N", "0", "extra copies of the busiest experts", false},             \
        {"expert-load", 0, "X,X,...", NULL, "share of the rows of each expert", false},             \
        {"capacity-factor",                                                                         \
         0,                                                                                         \
         "X",                                                                                       \
         NULL,                                                                                      \
         "room of an expert over its even share: pads up to it",                                    \
         false},                                                                                    \
        {"capacity-drop", 0, NULL, NULL, "tokens beyond the capacity are dropped", false},          \
        {"cp-gather", 0, NULL, NULL, "cp gathers keys and values, not passed round a ring", false}, \
        {"speculate", 0, "HOW", NULL, "draft_model, self, medusa, eagle or mtp", false},            \
        {"drafts", 0, "N", "4", "drafts in a row", false},                                          \
        {"acceptance",                                                                              \
         0,                                                                                         \
         "A,A,...",                                                                                 \
         "0.7",                                                                                     \
         "chance that a draft is right, one for all or one a position",                             \
         false},                                                                                    \
        {"tree", 0, "W,W,...", NULL, "candidates at each depth [1]", false},                        \
        {"draft-model", 0, "NAME", NULL, "model that writes drafts", false},                        \
        {"exit-layer", 0, "N", NULL, "self: layers that write drafts [a quarter]", false},          \
        {"offload-weights", 0, "X", NULL, "share of the weights in host memory", false},            \
        {"offload-kv", 0, "X", NULL, "share of the cache in host memory", false},                   \
    {                                                                                               \
        "no-cache", 0, NULL, NULL, "compare with running all tokens again for each one", false      \
    }

/** The finer splits into setup->parallel; after rg_setup_arrangement. */
rg_status rg_policy_arrangement(rg_arena *arena, const rg_args *args, rg_setup *setup, rg_err *err);
/** Tables "speculation", "offload", "no_cache", "experts" for a decode batch, each when asked. */
rg_status rg_policy_report(rg_arena *arena, const rg_args *args, const rg_setup *setup,
                           rg_step_context *step, int64_t batch, int64_t context_tokens,
                           rg_report *report, rg_err *err);

#endif

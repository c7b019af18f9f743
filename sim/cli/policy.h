/* cli/policy.h: options of speculation, offloading and life without a cache.
 *
 * Reads cli/setup.h, step. Used by estimate.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_POLICY_H
#define RG_CLI_POLICY_H

#include "cli/setup.h"

#define RG_POLICY_OPTIONS                                                                      \
    {"speculate", 0, "HOW", NULL, "draft_model, self, medusa, eagle or mtp", false},           \
        {"drafts", 0, "N", "4", "drafts in a row", false},                                     \
        {"acceptance",                                                                         \
         0,                                                                                    \
         "A,A,...",                                                                            \
         "0.7",                                                                                \
         "chance that a draft is right, one for all or one a position",                        \
         false},                                                                               \
        {"tree", 0, "W,W,...", NULL, "candidates at each depth [1]", false},                   \
        {"draft-model", 0, "NAME", NULL, "model that writes drafts", false},                   \
        {"exit-layer", 0, "N", NULL, "self: layers that write drafts [a quarter]", false},     \
        {"offload-weights", 0, "X", NULL, "share of the weights in host memory", false},       \
        {"offload-kv", 0, "X", NULL, "share of the cache in host memory", false},              \
    {                                                                                          \
        "no-cache", 0, NULL, NULL, "compare with running all tokens again for each one", false \
    }

/** Tables "speculation", "offload", "no_cache", "experts" for a decode batch, each
 * sequence with so many tokens in the cache; each when asked. */
rg_status rg_policy_report(rg_arena *arena, const rg_args *args, const rg_setup *setup,
                           rg_step_context *step, int64_t batch, double context, rg_report *report,
                           rg_err *err);

#endif

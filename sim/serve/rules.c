/* serve/rules.c: names of the schedulers and what their engines do by default. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/serve.h"

const char *const rg_policy_names[RG_POLICY_COUNT + 1] = {
    "vllm",   "vllm-v0",    "sarathi",       "orca",   "static", "vidur-vllm",
    "trtllm", "trtllm-max", "trtllm-static", "sglang", NULL};

rg_engine_rules rg_engine_rules_default(rg_policy_kind policy)
{
    rg_engine_rules rules = {.policy = policy,
                             .max_sequences = 256,
                             .max_batched_tokens = 2048,
                             .max_model_tokens = 32768,
                             .block_tokens = 16,
                             .conservativeness = 1,
                             .preempt = RG_PREEMPT_RECOMPUTE};
    switch (policy) {
    case RG_POLICY_VLLM1: /* vLLM 0.19, as it resolves its own defaults for a server */
        rules.chunked_prefill = true;
        rules.asynchronous = true;
        rules.prefix_caching = true;
        rules.reserve_full_prompt = true;
        break;
    case RG_POLICY_VLLM0:
    case RG_POLICY_VIDUR_VLLM:
        rules.watermark_ratio = 0.01;
        rules.max_batched_tokens = 4096;
        break;
    case RG_POLICY_SARATHI:
        rules.watermark_ratio = 0.01;
        rules.chunked_prefill = true;
        rules.max_batched_tokens = 512;
        break;
    case RG_POLICY_ORCA:
    case RG_POLICY_STATIC:
        break;
    case RG_POLICY_TRT_NO_EVICT:
    case RG_POLICY_TRT_MAX_UTILISATION:
        rules.block_tokens = 32;
        rules.max_batched_tokens = 8192;
        rules.prefix_caching = true;
        break;
    case RG_POLICY_TRT_STATIC:
        rules.block_tokens = 32;
        rules.max_batched_tokens = 8192;
        break;
    case RG_POLICY_SGLANG: /* page size 1, chunked prefill of 8192 */
        rules.block_tokens = 1;
        rules.max_batched_tokens = 8192;
        rules.chunked_prefill = true;
        rules.prefix_caching = true;
        rules.longest_prefix_first = false;
        break;
    case RG_POLICY_COUNT:
        break;
    }
    return rules;
}

/* model/hf_sizes.h: families whose sizes or layers need more than their row in the table.
 *
 * Reads model/hf.h. The _sizes functions run after the shared sizes, the _layers ones after the
 * shared layout.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_MODEL_HF_SIZES_H
#define RG_MODEL_HF_SIZES_H

#include "model/hf.h"

rg_status rg_hf_mistral_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_mla_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_minicpm3_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_deepseek_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_deepseek_v3_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_qwen1_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_chatglm_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_falcon_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_mpt_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_dbrx_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_bigcode_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_opt_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_bloom_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_head_bias(rg_hf *hf, rg_err *err);
rg_status rg_hf_phimoe_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_stablelm_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_gpt_neo_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_gemma3_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_llama4_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_llama4_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_gpt_oss_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_hunyuan_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_arctic_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_arctic_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_mimo2_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_apertus_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_olmo_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_minimax_m2_sizes(rg_hf *hf, rg_err *err);

#endif

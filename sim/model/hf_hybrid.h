/* model/hf_hybrid.h: families with state-space or linear layers, or with a plan for every layer.
 *
 * Reads model/hf.h. Each function finishes the layers of its family.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_MODEL_HF_HYBRID_H
#define RG_MODEL_HF_HYBRID_H

#include "model/hf.h"

rg_status rg_hf_mamba_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_jamba_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_bamba_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_granite_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_nemotron_h_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_delta_net_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_lightning_layers(rg_hf *hf, rg_err *err);
rg_status rg_hf_nas_sizes(rg_hf *hf, rg_err *err);
rg_status rg_hf_nas_layers(rg_hf *hf, rg_err *err);

#endif

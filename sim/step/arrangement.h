/* step/arrangement.h: how a model is spread and stored, from named values: the options of a
 * command, a scenario, the cells of a grid.
 *
 * Reads step/step.h, core/lookup.h. What is not set stays as the caller left it.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_STEP_ARRANGEMENT_H
#define RG_STEP_ARRANGEMENT_H

#include "core/lookup.h"
#include "step/step.h"

/** All sizes 1, no further choice. */
rg_parallel rg_parallel_default(void);
/** tp, pp, ep, cp, dp, attention-dp, sequence-parallel, and the finer micro-batches, all-to-all,
 * expert-replicas, expert-load, capacity-factor, capacity-drop, cp-gather. Errors: as
 * core/lookup.h, and RG_ERR_USAGE for capacity-drop without a factor. Whether they go together on a
 * machine says rg_step_check. */
rg_status rg_parallel_read(rg_arena *arena, const rg_lookup *from, rg_parallel *out, rg_err *err);

/** weight-type, kv-type, act-type, kv-layout, unfused, moe-skew over a checkpoint's own formats. */
rg_status rg_formats_read(const rg_lookup *from, const rg_model *model, rg_formats *out,
                          rg_err *err);

/** Kernels inside a step: between two uses of a layer's weights and cache all others pass through
 * L2, and RoPE is an operator of its own. Reads ideal and sustained. */
rg_status rg_step_kernels_read(const rg_lookup *from, rg_kernel_options *out, rg_err *err);

#endif

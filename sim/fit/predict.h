/* fit/predict.h: one door to every model that a measured table can be held against.
 *
 * Reads kernel, net, fit/measured.h. Constants are seen as one flat list of groups, those of
 * kernels and the one of collectives, so that fitting does not care which model it turns.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_PREDICT_H
#define RG_FIT_PREDICT_H

#include "fit/lsq.h"
#include "fit/measured.h"
#include "kernel/constant.h"
#include "net/coll.h"

typedef struct rg_predictor rg_predictor;

enum { RG_PREDICT_COLLECTIVE = -1 }; /* group of collectives; kernels: rg_kernel_group */

/** Resolve a device by name or path for rows of one kind. Errors as rg_kernel_prepare,
 * rg_coll_prepare. */
rg_status rg_predictor_new(rg_arena *arena, const char *hw, const rg_kernel_options *options,
                           rg_measured_kind kind, rg_predictor **out, rg_err *err);
const rg_accel *rg_predictor_accel(const rg_predictor *predictor);
/** Where the constants come from, in words. */
const char *rg_predictor_note(const rg_predictor *predictor);
/** Whether the constants of a row's group were fitted on this very device. */
bool rg_predictor_own(const rg_predictor *predictor, const rg_measured_row *row);
/** Fill residency and mark the rows that no model holds for or no such device can have run in
 * that time (rg_measured_judge). */
rg_status rg_predictor_judge(const rg_predictor *predictor, rg_measured_table *table, rg_err *err);

/** Seconds, or NaN when the model does not hold for the row. */
double rg_predict_seconds(const rg_predictor *predictor, const rg_measured_row *row);

/** Group whose constants a row depends on. */
int rg_predict_group(const rg_measured_row *row);
/** Whether the kernel of another group runs a row: one query token of flash attention takes the
 * kernel that decode takes. Such rows are tested, not fitted. */
bool rg_predict_elsewhere(const rg_measured_row *row);
/** Key of a group under fit:. */
const char *rg_predict_group_name(int group);
/** Constants of a group as parameters at their present values, at most RG_LSQ_MAX_PARAMETERS. */
int rg_predict_parameters(const rg_predictor *predictor, int group, rg_lsq_parameter *out);
/** Set them, in the order of rg_predict_parameters. Cheap. */
void rg_predict_set(rg_predictor *predictor, int group, const double *values);

#endif

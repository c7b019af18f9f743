/* plan/verify.h: the answer of a search held against traffic drawn with other seeds.
 *
 * Reads plan/search.h, of which it is a part. The search compares candidates on one draw of the
 * traffic, which is fair but leaves to chance how much the winner's percentile is worth. So the
 * winner's count is hunted once more with runs of independent seeds, four more until the 95 %
 * interval across them is on one side of each limit, RG_PLAN_DRAWS at most; a count that is still
 * undecided then is not kept. Whatever could now be cheaper than the winner is hunted in the same
 * way, until the cheapest is one that was.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_VERIFY_H
#define RG_PLAN_VERIFY_H

#include "plan/search.h"

/** Whether other draws of the traffic can be had, so that an answer is verified. */
static inline bool rg_plan_can_verify(const rg_plan_run *run)
{
    return run->requests.draws > 1;
}

/** A fleet on several draws: the mean of the runs, with the interval across them. Needs
 * rg_plan_can_verify. speed_up as of rg_trial_how. Not for use within a parallel region. */
rg_status rg_plan_verify_fleet(rg_plan_run *run, const rg_candidate *candidate, int64_t replicas,
                               double speed_up, rg_trial *out, rg_err *err);

/** Make the winner one that is verified. list: candidates that fit, [count]. */
rg_status rg_plan_verify(rg_plan_run *run, const int *list, int count, rg_err *err);

#endif

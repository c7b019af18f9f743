/* cli/serve_own.c: step time of serve from ridge's own model. */
// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.h"

rg_status rg_serve_job_own_step(rg_serve_job *job, rg_err *err)
{
    (void)job;
    return rg_fail(
        err, RG_ERR_MODEL, RG_NOWHERE,
        "ridge's own step time is not linked in yet; give --kernel-times or --step-time");
}

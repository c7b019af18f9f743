/* kernels/probe/calibrate.c: the figures of a hardware file, measured.
 *
 * Reads calibrate.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "calibrate.h"

rg_status rg_probe_calibrate(rg_arena *arena, const rg_probe_options *options, rg_err *err)
{
    rg_session session;
    const rg_status status = rg_session_open(arena, &session, options, err);
    rg_session_close(&session);
    RG_TRY(status);
    return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "not there yet");
}

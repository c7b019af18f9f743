/* noc/sweep.c: loads in parallel, bisection for saturation. */
// SPDX-License-Identifier: Apache-2.0
#include "noc/sweep.h"

#include <math.h>

double rg_noc_class_flits(const rg_noc_class *cl)
{
    if (!cl->request_reply)
        return cl->flits;
    return cl->write_share * (cl->write_request + cl->write_reply) +
           (1.0 - cl->write_share) * (cl->read_request + cl->read_reply);
}

double rg_noc_class_share(const rg_noc_class *cl)
{
    return cl->share > 0.0 ? cl->share : 1.0;
}

double rg_noc_offered(const rg_noc_class *classes, int count, int nodes)
{
    double sum = 0.0;
    for (int c = 0; c < count; c++)
        for (int n = 0; n < nodes; n++)
            sum += rg_noc_class_share(&classes[c]) *
                   (classes[c].node_factor != NULL ? classes[c].node_factor[n] : 1.0);
    return sum;
}

/* One load; arrays of the result, when asked for, lie in arena, which this thread alone uses. */
static rg_status run_load(rg_arena *arena, const rg_noc_config *config,
                          const rg_noc_protocol *protocol, double load, int seeds, bool detail,
                          rg_noc_result *out, rg_err *err)
{
    rg_noc_config mine = *config;
    for (int c = 0; c < mine.class_count; c++)
        mine.classes[c].packets_per_cycle =
            load * rg_noc_class_share(&mine.classes[c]) / rg_noc_class_flits(&mine.classes[c]);
    return rg_noc_run_seeds(arena, &mine, protocol, seeds, detail, out, err);
}

static void release_arena(void *arena)
{
    rg_arena_free(arena);
}

rg_status rg_noc_sweep(rg_arena *arena, const rg_noc_config *config,
                       const rg_noc_protocol *protocol, const double *loads, int count, int seeds,
                       bool detail, rg_noc_result *out, rg_err *err)
{
    rg_status *status = RG_NEW(arena, rg_status, count, err);
    rg_err *errors = RG_NEW(arena, rg_err, count, err);
    rg_arena **arenas = RG_NEW(arena, rg_arena *, count, err);
    if (status == NULL || errors == NULL || arenas == NULL)
        return RG_ERR_LIMIT;
    for (int i = 0; i < count; i++) {
        arenas[i] = rg_arena_new(RG_ARENA_DEFAULT_CAP_MIB);
        if (arenas[i] == NULL)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "no memory for a simulation");
        RG_TRY(rg_arena_defer(arena, release_arena, arenas[i], err));
    }
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = count - 1; i >= 0; i--)
        status[i] =
            run_load(arenas[i], config, protocol, loads[i], seeds, detail, &out[i], &errors[i]);
    for (int i = 0; i < count; i++)
        if (status[i] != RG_OK) {
            if (err != NULL)
                *err = errors[i];
            return status[i];
        }
    return RG_OK;
}

rg_status rg_noc_find_saturation(rg_arena *arena, const rg_noc_config *config,
                                 const rg_noc_protocol *protocol, double highest, double tolerance,
                                 int seeds, rg_noc_saturation *out, rg_err *err)
{
    const int nodes = config->graph->nodes;
    const double share = nodes / rg_noc_offered(config->classes, config->class_count, nodes);
    rg_noc_result result;
    double load = highest;
    *out = (rg_noc_saturation){.unstable = INFINITY, .accepted = NAN};
    for (;;) {
        RG_TRY(run_load(arena, config, protocol, load, seeds, false, &result, err));
        out->runs++;
        if (result.saturated) {
            out->unstable = load;
            out->accepted = result.accepted * share;
        } else {
            out->stable = load;
        }
        if (out->stable >= highest || out->unstable < 1e-9 ||
            out->unstable - out->stable <= tolerance * out->unstable || out->runs >= 40)
            return RG_OK;
        load = 0.5 * (out->stable + fmin(out->unstable, highest));
    }
}

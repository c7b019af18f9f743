/* cli/coll_log.c: measured logs of nccl-tests and rccl-tests beside predictions. */
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/coll.h"
#include "trace/run.h"

/** "ranks=8 bytes=1024 out-of-place" of a run record. */
static bool problem_number(const char *problem, const char *key, double *out)
{
    const char *at = strstr(problem, key);
    if (at == NULL)
        return false;
    *out = strtod(at + strlen(key), NULL);
    return *out > 0;
}

/** Seconds of an entry: its samples' mean, else its summary. */
static double seconds_of(const rg_run_entry *e)
{
    double sum = 0;
    for (int i = 0; i < e->sample_count; i++)
        sum += e->samples[i];
    if (e->sample_count > 0)
        return sum / e->sample_count;
    return isfinite(e->median) ? e->median : e->mean;
}

/** Lay the log's ranks on nodes as it says, where the options do not. */
static rg_status fit_cluster_to(rg_coll_job *j, const rg_run *log, int64_t ranks, rg_err *err)
{
    rg_cluster *c = j->setup.cluster;
    const int64_t local = log->host_ranks;
    if (rg_arg_given(j->args, "ranks-per-node"))
        return RG_OK;
    j->base.local = 0;
    if (local < 1 || local >= ranks)
        return RG_OK;
    j->base.local = local;
    const int64_t nodes = (ranks + local - 1) / local;
    rg_report_assume(j->report, "%s: %lld %s on each of %lld nodes", log->path, (long long)local,
                     local == 1 ? "rank" : "ranks", (long long)nodes);
    if (nodes <= c->nodes || rg_arg_given(j->args, "nodes"))
        return RG_OK;
    c->nodes = nodes;
    return rg_coll_prepare(j->arena, c, NULL, &j->links, err);
}

/** Ranks of a row: as the log lists them, else by --ranks. */
static rg_status ranks_of(const rg_coll_job *j, const rg_run_entry *e, double *out, rg_err *err)
{
    *out = e->rank_count;
    if (*out > 0 || problem_number(e->problem, "ranks=", out))
        return RG_OK;
    int64_t given;
    if (!rg_arg_given(j->args, "ranks"))
        return rg_fail(err, RG_ERR_INPUT, e->pos,
                       "the log lists no ranks (\"# Rank 0 ...\"); give --ranks N");
    RG_TRY(rg_arg_int(j->args, "ranks", 1, 1 << 20, &given, err));
    *out = (double)given;
    return RG_OK;
}

rg_status rg_coll_read_log(rg_coll_job *j, const char *path, rg_err *err)
{
    rg_run *log;
    RG_TRY(rg_run_load(j->arena, path, NULL, &log, err));
    if (strcmp(log->tool, "nccl-tests") != 0)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "'%s' is a record of %s, not of nccl-tests",
                       path, log->tool);
    RG_TRY(rg_report_input(j->report, "measured", path, err));
    for (int i = 0; i < log->note_count; i++)
        if (strncmp(log->notes[i], path, strlen(path)) == 0) /* a place in it */
            rg_report_assume(j->report, "%s", log->notes[i]);
        else
            rg_report_assume(j->report, "%s: %s", path, log->notes[i]);
    int used = 0, other = 0, broken = 0;
    if (log->count > 0)
        RG_TRY(fit_cluster_to(j, log, (int64_t)log->entries[0].rank_count, err));
    for (int i = 0; i < log->count; i++) {
        const rg_run_entry *e = &log->entries[i];
        rg_coll_op op;
        double bytes, ranks;
        if (strstr(e->problem, "in-place") != NULL)
            continue;
        if (e->unusable != NULL || !(seconds_of(e) > 0) || e->rate_unit != NULL) {
            broken++;
            continue;
        }
        const bool unnamed = strcmp(e->kernel, "collective") == 0;
        if (unnamed && !rg_arg_given(j->args, "op"))
            return rg_fail(err, RG_ERR_INPUT, e->pos,
                           "nothing before this row says which operation ran (\"all_reduce_perf "
                           "...\"), nor do its rates over the ranks; give --op OP");
        if (rg_coll_op_parse(unnamed ? rg_arg_nth(j->args, "op", 0) : e->kernel, &op, NULL) !=
            RG_OK) {
            other++;
            continue;
        }
        if (!problem_number(e->problem, "bytes=", &bytes))
            continue;
        RG_TRY(ranks_of(j, e, &ranks, err));
        j->base.integer = strstr(e->dtype, "int") != NULL;
        RG_TRY(rg_coll_add_point(j, op, (int64_t)ranks, bytes, seconds_of(e), err));
        used++;
    }
    if (other > 0)
        rg_report_assume(j->report, "%s: %d rows of '%s' are left out; no model of it", path, other,
                         log->entries[0].kernel);
    if (broken > 0)
        rg_report_assume(j->report, "%s: %d %s without a time %s left out", path, broken,
                         broken == 1 ? "row" : "rows", broken == 1 ? "is" : "are");
    if (used == 0)
        return rg_fail(err, RG_ERR_INPUT,
                       log->count > 0 ? log->entries[0].pos : (rg_pos){.file = path, .line = 1},
                       broken > 0 ? "no out-of-place row holds a time" : "no out-of-place row");
    j->measured = true;
    return RG_OK;
}

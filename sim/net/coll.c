/* net/coll.c: time of a collective: which algorithms do it here, which the library would pick. */
// SPDX-License-Identifier: Apache-2.0
#include "net/coll.h"

#include <math.h>
#include <string.h>

#include "net/coll_inner.h"

/* ---- choice ---- */

static bool reduces_in_switch(const rg_coll_context *x, const rg_coll_query *q,
                              const rg_coll_group *g)
{
    return x->cluster->scale_up.in_network_reduction && q->op == RG_COLL_ALL_REDUCE &&
           !q->integer && (double)g->local >= x->c.nvls_least_ranks &&
           (g->domains == 1 || g->local * g->domains == g->ranks);
}

/** Whether the algorithm does the operation on this group; else why not. */
static const char *unfit(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                         rg_coll_algorithm algorithm)
{
    const bool all = q->op == RG_COLL_ALL_REDUCE;
    const bool gather = q->op == RG_COLL_ALL_GATHER || q->op == RG_COLL_REDUCE_SCATTER;
    const rg_fabric *up = &x->cluster->scale_up;
    switch (algorithm) {
    case RG_ALG_RING:
        return q->op == RG_COLL_ALL_TO_ALL || q->op == RG_COLL_SEND_RECV
                   ? "all-to-all and send-recv go straight from rank to rank"
                   : NULL;
    case RG_ALG_TREE:
        return all || q->op == RG_COLL_BROADCAST || q->op == RG_COLL_REDUCE
                   ? NULL
                   : "a tree does all-reduce, broadcast and reduce";
    case RG_ALG_HALVING_DOUBLING:
        if (!all && !gather)
            return "halving-doubling does all-reduce, reduce-scatter and all-gather";
        if (up->kind != RG_FABRIC_SWITCHED && up->kind != RG_FABRIC_NONE)
            return "halving-doubling is modelled on switched fabrics";
        return rg_coll_power_of_two(g->ranks) ? NULL
                                              : "halving-doubling needs a power of two of ranks";
    case RG_ALG_ONE_SHOT:
    case RG_ALG_TWO_SHOT:
        if (!all)
            return "one-shot and two-shot do all-reduce";
        return g->domains == 1 ? NULL : "one-shot and two-shot stay within a scale-up domain";
    case RG_ALG_IN_SWITCH:
        if (!all || q->integer)
            return "in-switch reduction does all-reduce of floating-point numbers";
        if (!up->in_network_reduction)
            return "the switches of this cluster do not reduce";
        if (g->local == 1 && !x->cluster->scale_out.in_network_reduction)
            return "the network between these ranks does not reduce";
        return NULL;
    case RG_ALG_HIERARCHICAL:
        if (!all && !gather)
            return "the hierarchical algorithm does all-reduce, reduce-scatter and all-gather";
        if (g->domains == 1 || g->local == 1)
            return "hierarchical needs several ranks in each of several domains";
        return g->local * g->domains == g->ranks ? NULL : "hierarchical needs equally full domains";
    case RG_ALG_TORUS:
        if (up->kind != RG_FABRIC_TORUS)
            return "the cluster is no torus";
        if (!all && !gather)
            return "the torus algorithm does all-reduce, reduce-scatter and all-gather";
        return g->ranks == x->domain && g->stride == 1
                   ? NULL
                   : "the torus algorithm needs the whole torus";
    case RG_ALG_DIRECT:
        return q->op == RG_COLL_ALL_TO_ALL || q->op == RG_COLL_SEND_RECV
                   ? NULL
                   : "direct is for all-to-all and send-recv";
    default:
        return "no algorithm";
    }
}

/** The engine's own kernel for an all-reduce on NVLink, or RG_ALG_AUTO when it calls the library:
 * TensorRT-LLM, customAllReduceUtils.h: getMaxRequiredWorkspaceSize, and where its tables of best
 * strategies turn from one shot to two. */
static rg_coll_algorithm shot_of(const rg_coll_context *x, const rg_coll_query *q,
                                 const rg_coll_group *g)
{
    const char *arch = x->cluster->accel->arch;
    const bool blackwell = arch != NULL && strncmp(arch, "blackwell", 9) == 0;
    const bool ampere = arch != NULL && strcmp(arch, "ampere") == 0; /* one shot, as measured */
    const double workspace = g->ranks <= 2 ? 16e6 : 8e6, MiB = 1 << 20;
    const double two_shot = g->ranks <= 2 || ampere ? INFINITY
                            : g->ranks <= 4         ? (blackwell ? 4 : 2) * MiB
                                                    : (blackwell ? 2 : 0.5) * MiB;
    if (q->library != RG_LIB_CUSTOM || q->op != RG_COLL_ALL_REDUCE || x->ideal ||
        x->cluster->scale_up.kind == RG_FABRIC_PCIE_TREE ||
        q->bytes.v > fmin(workspace, x->c.one_shot_most_bytes))
        return RG_ALG_AUTO;
    const rg_coll_algorithm shot = q->bytes.v < two_shot ? RG_ALG_ONE_SHOT : RG_ALG_TWO_SHOT;
    return unfit(x, q, g, shot) == NULL ? shot : RG_ALG_AUTO;
}

/** What the library would consider, best first found wins ties. */
static rg_status choose(const rg_coll_context *x, const rg_coll_query *q, const rg_coll_group *g,
                        rg_coll_result *out, rg_err *err)
{
    if (q->op == RG_COLL_ALL_TO_ALL || q->op == RG_COLL_SEND_RECV)
        return rg_coll_time_by(x, q, g, RG_ALG_DIRECT, out, err);
    const rg_coll_algorithm shot = shot_of(x, q, g);
    if (shot != RG_ALG_AUTO)
        return rg_coll_time_by(x, q, g, shot, out, err);
    rg_coll_algorithm candidates[8];
    int count = 0;
    if (x->cluster->scale_up.kind == RG_FABRIC_TORUS && unfit(x, q, g, RG_ALG_TORUS) == NULL)
        candidates[count++] = RG_ALG_TORUS;
    const bool in_switch = reduces_in_switch(x, q, g);
    /* Within a domain the library decides by its own model, whatever would be faster. */
    const bool settled = in_switch && !x->ideal && g->domains == 1 && q->protocol == RG_PROTO_AUTO;
    const bool pick_switch = settled && rg_coll_tuner_in_switch(x, q, g);
    if (!pick_switch)
        candidates[count++] = RG_ALG_RING;
    if (x->ideal && unfit(x, q, g, RG_ALG_HALVING_DOUBLING) == NULL &&
        x->cluster->scale_up.kind == RG_FABRIC_SWITCHED)
        candidates[count++] = RG_ALG_HALVING_DOUBLING;
    /* NCCL takes broadcast and reduce by rings alone (src/graph/tuning.cc) */
    const bool tree = x->ideal || q->op == RG_COLL_ALL_REDUCE;
    if (g->domains > 1 && tree && unfit(x, q, g, RG_ALG_TREE) == NULL)
        candidates[count++] = RG_ALG_TREE;
    if (in_switch && (!settled || pick_switch))
        candidates[count++] = RG_ALG_IN_SWITCH;
    if (x->ideal && unfit(x, q, g, RG_ALG_HIERARCHICAL) == NULL)
        candidates[count++] = RG_ALG_HIERARCHICAL;
    rg_coll_result best = {.time = {INFINITY}};
    for (int i = 0; i < count; i++) {
        rg_coll_result t;
        RG_TRY(rg_coll_time_by(x, q, g, candidates[i], &t, err));
        if (q->library == RG_LIB_CUSTOM) {
            const double saved = fmin(1e-6 * x->c.graph_saves_us, 0.5 * t.latency.v);
            t.time.v -= saved;
            t.latency.v -= saved;
        }
        if (t.time.v < best.time.v)
            best = t;
    }
    *out = best;
    return RG_OK;
}

rg_status rg_coll_finish(const rg_coll_context *x, const rg_coll_query *q, rg_coll_result *out,
                         rg_err *err)
{
    if (!isfinite(out->time.v) || out->time.v < 0)
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "no finite time for %s over %lld ranks of '%s'; a link rate is missing",
                       rg_coll_op_name(q->op), (long long)q->ranks, x->cluster->name);
    out->algbw = RG_BPS(out->time.v > 0 ? q->bytes.v / out->time.v : 0);
    out->busbw = RG_BPS(out->algbw.v * rg_coll_bus_factor(q->op, q->ranks));
    out->above_link = q->ranks > 1 && out->busbw.v > x->up_rate && x->up_rate > 0;
    return RG_OK;
}

rg_status rg_coll_time(const rg_coll_context *context, const rg_coll_query *query,
                       rg_coll_result *out, rg_err *err)
{
    *out = (rg_coll_result){.algorithm = query->algorithm, .protocol = query->protocol};
    rg_coll_context ideal;
    const rg_coll_context *x = context;
    if (query->library == RG_LIB_IDEAL && !context->ideal) {
        ideal = *context;
        ideal.ideal = true;
        x = &ideal;
    }
    rg_coll_group g;
    RG_TRY(rg_coll_group_of(x, query, &g, err));
    if (query->ranks == 1)
        return RG_OK; /* nothing moves */
    if (query->algorithm == RG_ALG_AUTO) {
        RG_TRY(choose(x, query, &g, out, err));
    } else {
        const char *why = unfit(x, query, &g, query->algorithm);
        if (why != NULL)
            return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE, "%s by %s over %lld ranks: %s",
                           rg_coll_op_name(query->op), rg_coll_algorithm_name(query->algorithm),
                           (long long)query->ranks, why);
        RG_TRY(rg_coll_time_by(x, query, &g, query->algorithm, out, err));
    }
    return rg_coll_finish(x, query, out, err);
}

rg_status rg_coll_crossovers(const rg_coll_context *context, const rg_coll_query *query,
                             rg_bytes least, rg_bytes most, rg_coll_crossover *out, int capacity,
                             int *count, rg_err *err)
{
    *count = 0;
    rg_coll_query q = *query;
    rg_coll_result now, next;
    q.bytes = least;
    RG_TRY(rg_coll_time(context, &q, &now, err));
    out[(*count)++] = (rg_coll_crossover){least, now.algorithm, now.protocol};
    /* Steps of an eighth of an octave, then halving of the step in which the choice changes. */
    for (double size = least.v; size < most.v && *count < capacity;) {
        const double ahead = fmin(size * 1.0905077326652577, most.v);
        q.bytes = RG_B(ahead);
        RG_TRY(rg_coll_time(context, &q, &next, err));
        if (next.algorithm != now.algorithm || next.protocol != now.protocol) {
            double low = size, high = ahead;
            while (high > low * (1 + 1.0 / 64)) {
                const double middle = sqrt(low * high);
                rg_coll_result between;
                q.bytes = RG_B(middle);
                RG_TRY(rg_coll_time(context, &q, &between, err));
                if (between.algorithm == now.algorithm && between.protocol == now.protocol)
                    low = middle;
                else
                    high = middle;
            }
            out[(*count)++] = (rg_coll_crossover){RG_B(high), next.algorithm, next.protocol};
            now = next;
        }
        size = ahead;
    }
    return RG_OK;
}

/* ---- preparation ---- */

rg_status rg_coll_prepare(rg_arena *arena, const rg_cluster *cluster,
                          const rg_coll_constants *constants, rg_coll_context **out, rg_err *err)
{
    rg_coll_context *x = RG_NEW(arena, rg_coll_context, 1, err);
    if (x == NULL)
        return RG_ERR_LIMIT;
    x->cluster = cluster;
    x->c = constants != NULL ? *constants : rg_coll_constants_of(cluster);
    const rg_fabric *up = &cluster->scale_up, *net = &cluster->scale_out;
    const int64_t domain =
        cluster->scale_up_devices > 0 ? cluster->scale_up_devices : cluster->devices_per_node;
    x->devices = cluster->devices_per_node * cluster->nodes;
    x->domain = up->kind == RG_FABRIC_NONE ? 1 : domain;
    x->up_rate = up->rate_per_direction.known ? up->rate_per_direction.value : 0;
    if (x->domain > 1 && !(x->up_rate > 0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cluster '%s' gives no scale-up link rate; add rate_per_direction",
                       cluster->name);
    x->up_latency = up->latency.known ? up->latency.value : 0;
    x->per_switch = up->devices_per_switch > 0 ? up->devices_per_switch : x->domain;
    x->per_socket = up->devices_per_socket > 0 ? up->devices_per_socket : x->domain;
    x->switch_rate = up->uplink_rate.known ? up->uplink_rate.value : x->up_rate;
    x->socket_rate = up->socket_rate.known ? up->socket_rate.value : x->switch_rate;
    const bool several = x->devices > x->domain;
    x->net_rate = net->rate_per_direction.known ? net->rate_per_direction.value : 0;
    if (several && !(x->net_rate > 0))
        return rg_fail(err, RG_ERR_MODEL, RG_NOWHERE,
                       "cluster '%s' has several scale-up domains and no scale_out network rate",
                       cluster->name);
    if (net->oversubscription > 1)
        x->net_rate /= net->oversubscription;
    /* port, leaf, core, leaf, port */
    x->net_latency = net->latency.known ? net->latency.value : 0;
    x->ll_rate = rg_coll_ll_table_rate(cluster->accel->arch);
    const char *from = cluster->accel->fit_borrowed_from;
    bool own = false;
    for (int i = 0; i < cluster->accel->fit_count; i++) {
        const rg_fit_constant *constant = &cluster->accel->fit[i];
        own |= strcmp(constant->group, "collective") == 0 && !constant->borrowed;
    }
    const char *arch = cluster->accel->arch != NULL ? cluster->accel->arch : "";
    const char *like =
        up->kind == RG_FABRIC_PCIE_TREE ? "an L40S server (PCIe)"
        : strcmp(arch, "ampere") == 0   ? "an A100 node"
        : strncmp(arch, "blackwell", 9) == 0
            ? "an H200 node, in-switch reduction and LL by NCCL's own model of Blackwell"
            : "an H200 node";
    x->note =
        own ? rg_arena_strdup(arena, "collectives: constants fitted on this device", err)
            : rg_arena_printf(arena, err,
                              "collectives: constants of %s%s%s, not validated on this device",
                              like, from ? " by way of " : "", from ? from : "");
    if (x->note == NULL)
        return RG_ERR_LIMIT;
    *out = x;
    return RG_OK;
}

void rg_coll_retune(rg_coll_context *context, const rg_coll_constants *constants)
{
    context->c = *constants;
}

const char *rg_coll_note(const rg_coll_context *context)
{
    return context->note;
}

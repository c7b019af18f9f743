/* plan/bound.h: how many replicas a candidate needs at the very least, proved before anything is
 * simulated.
 *
 * Reads plan/space.h, model/pass.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PLAN_BOUND_H
#define RG_PLAN_BOUND_H

#include "plan/space.h"

/** What a model costs whatever the arrangement: one whole copy, every operand touched once. */
typedef struct rg_least_work {
    const rg_arrangement *of; /* machine and types that it holds for */
    int64_t tokens;           /* of the decode pass that expert_bytes holds for */
    double flops_per_token;   /* products of all layers, without the LM head */
    double dense_bytes;       /* weights that every decode pass reads, LM head with them */
    double expert_bytes;      /* experts that a pass of `tokens` touches */
    double peak;              /* flop/s of one device, the highest of the types in use */
    double bandwidth;         /* byte/s of one device's memory */
} rg_least_work;

/** Least works that were worked out already; zeroed at the start. Filled only by
 * rg_least_work_of. */
typedef struct rg_least_works {
    rg_least_work **items;
    int count, room;
} rg_least_works;

/** Of a candidate: on its replicas, and on those of its prefill pool (the same without pools). */
typedef struct rg_works_of {
    const rg_least_work *replica, *prefill;
} rg_works_of;
rg_status rg_least_work_of(rg_arena *arena, rg_least_works *works, const rg_space *space,
                           const rg_candidate *candidate, const rg_plan_requests *requests,
                           rg_works_of *out, rg_err *err);

typedef enum rg_bound_by { RG_LEAST_ONE, RG_LEAST_COMPUTE, RG_LEAST_BANDWIDTH } rg_bound_by;

typedef struct rg_plan_bound {
    int64_t replicas; /* fewer cannot meet the limits; 1 or more */
    rg_bound_by by;   /* what demands them */
} rg_plan_bound;

/** The bound and its proof.
 *
 * Let a run judge N requests that arrive within span seconds (those behind the warm-up), R replicas
 * of n devices each with peak P (flop/s) and memory bandwidth B (byte/s). A limit "quantile q of x
 * is at most T" by type-7 quantiles (core/stat.h) puts sorted value number k = floor((N - 1) q) + 1
 * at or below T, so at least k requests keep it.
 *
 *   TTFT     k prompts are computed between the first arrival and span + T_ttft after it.
 *   E2E      k requests are computed whole within span + T_e2e.
 *   TTFT and TPOT   at least k_ttft + k_tpot - N requests keep both; each ends within
 *            T_ttft + T_tpot (outputs - 1) of its arrival, so all of them within
 *            span + T_ttft + T_tpot (most outputs - 1).
 *
 * No choice of requests has less work than the k least of all (rg_least_sums; of a sum of terms,
 * each taken over its own k least). Their work in steps of a replica, which take one another's
 * place in time:
 *
 *   flops    f x tokens: a token passes every product of the model once. A replica does no more
 *            than n P flop/s, as its slowest rank has at least the mean of the ranks' work.
 *   bytes    S decode steps read the dense weights W_d and touched experts W_e, and each decode of
 *            a request reads its cache, K bytes per prompt token: S W_d + (S' W_e) + K x
 *            sum (outputs - 1) prompt, no faster than n B byte/s in one replica.
 *   S        decode passes of requests, (outputs - 1) / (1 + drafts) each, come at most
 *            max_sequences to a step; and, where nothing is shared, sequences in a step hold at
 *            least their prompts' tokens of the replica's C cache tokens:
 *            S >= max(passes / max_sequences, sum (outputs - 1) prompt / (1 + drafts) / C).
 *   S'       experts touched by b tokens are a concave function of b that is 0 at 0, so touched
 *            experts per token are least in full steps of b = most sequences x (1 + drafts):
 *            S' = passes / most sequences.
 *   drafts   a pass verifies 1 + drafts tokens and gives g of them: 1 + a + a^2 + ... on average
 *            for acceptance a. By Hoeffding the mean over P passes exceeds that by more than
 *            drafts sqrt(28 / 2P) with a chance below 1e-12; with that added (and never above
 *            1 + drafts) it takes the place of "1 + drafts" in S and K, flops grow by
 *            (1 + drafts) / g, and all decoding by the time of drafting, 1 + drafts x its cost.
 *   K        KV bytes are concave in the length (windows cap them), so KV(p) >= p KV(p_max)/p_max.
 *
 * Where pools are split, prompts are computed by the P replicas of the one and answers by the D of
 * the other: P x window and D x window bound their own parts of the work, and R is the least count
 * whose P and D are enough.
 *
 * Then R x window >= max(flops / (n P), bytes / (n B)) for every window above; R is the ceiling of
 * the greatest. In a closed loop no arrivals are given, and the bound is 1. What it rests on, that
 * a step is never faster than its roofline, is checked on every simulated run (rg_plan_bound_kept).
 */
rg_plan_bound rg_plan_bound_of(const rg_space *space, const rg_candidate *candidate,
                               const rg_works_of *work, const rg_plan_requests *requests);

/** Whether a run that served all requests was at least as long at work as their flops and bytes
 * take; false would refute the bound's premise. */
bool rg_plan_bound_kept(const rg_space *space, const rg_candidate *candidate,
                        const rg_works_of *work, const rg_plan_requests *requests, double busy_s);

/** Which part of requests' work. */
typedef enum rg_part { RG_PART_PROMPTS, RG_PART_ANSWERS, RG_PART_WHOLE } rg_part;

/** Time that one replica is busy with a part of k requests at least, s: prompts on a replica of the
 * prefill pool, answers and whole requests on one of the others. */
double rg_least_busy(const rg_space *space, const rg_candidate *candidate, const rg_works_of *work,
                     const rg_plan_requests *requests, int64_t k, rg_part part, rg_bound_by *by);

/** Time that all requests keep a fleet of so many replicas busy at least, s. */
double rg_least_makespan(const rg_space *space, const rg_candidate *candidate,
                         const rg_works_of *work, const rg_plan_requests *requests,
                         int64_t replicas);

#endif

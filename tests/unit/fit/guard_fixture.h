/* tests/unit/fit/guard_fixture.h: pairs of simulated runs in several shapes of noise. */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_TESTS_GUARD_FIXTURE_H
#define RG_TESTS_GUARD_FIXTURE_H

#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "fit/guard.h"

typedef enum sim_shape {
    SIM_NORMAL,
    SIM_LOGNORMAL,
    SIM_EXPONENTIAL,
    SIM_HEAVY, /* |t| with 2 degrees of freedom on top of the least time */
    SIM_CAUCHY,
    SIM_SPIKES,     /* every tenth sample is 50 % slower */
    SIM_TWO_GROUPS, /* half of the samples are 10 % slower */
    SIM_CORRELATED, /* first-order autoregression, 0.8 */
    SIM_DRIFTING,   /* the clock drifts by a random amount of about 3 % within the run */
    SIM_CYCLING,    /* the clock swings by 3 % with a random phase */
    SIM_SHAPES,
} sim_shape;

static const char *const sim_names[SIM_SHAPES] = {
    "normal", "lognormal",  "exponential", "heavy tails", "Cauchy",
    "spikes", "two groups", "correlated",  "drifting",    "cycling"};

typedef struct sim_plan {
    sim_shape shape;
    double noise;   /* of one sample */
    double between; /* of a process */
    int samples, processes, kernels;
    double slowdown; /* of the first `slowed` kernels of the second run */
    int slowed;
} sim_plan;

static inline double sim_sample(sim_shape shape, double noise, int i, int n, double *state,
                                rg_rng *rng)
{
    const double g = rg_rng_normal(rng);
    switch (shape) {
    case SIM_LOGNORMAL:
        return exp(noise * g);
    case SIM_EXPONENTIAL:
        return 1 + noise * rg_rng_exponential(rng);
    case SIM_HEAVY:
        return 1 + noise * fabs(g) / sqrt(rg_rng_exponential(rng));
    case SIM_CAUCHY:
        return 1 + noise * fabs(g / rg_rng_normal(rng));
    case SIM_SPIKES:
        return (rg_rng_real(rng) < 0.1 ? 1.5 : 1) * (1 + noise * g);
    case SIM_TWO_GROUPS:
        return (rg_rng_real(rng) < 0.5 ? 1.1 : 1) * (1 + noise * g);
    case SIM_CORRELATED:
        *state = i == 0 ? g : 0.8 * *state + 0.6 * g;
        return 1 + noise * *state;
    case SIM_DRIFTING:
        if (i == 0)
            *state = 0.03 * rg_rng_normal(rng);
        return 1 + *state * i / n + noise * g;
    case SIM_CYCLING:
        if (i == 0)
            *state = 6.283185307179586 * rg_rng_real(rng);
        return 1 + 0.03 * sin(9.42477796 * i / n + *state) + noise * g;
    default:
        return 1 + noise * g;
    }
}

static inline rg_run *sim_run(rg_arena *arena, const sim_plan *plan, bool second, rg_rng *rng)
{
    rg_run *run = RG_NEW(arena, rg_run, 1, NULL);
    *run = (rg_run){.path = "sim",
                    .tool = "",
                    .device = "",
                    .driver = "",
                    .date = "",
                    .command = "",
                    .commit = "",
                    .ecc = "",
                    .clocks = ""};
    run->count = plan->kernels;
    run->entries = RG_NEW(arena, rg_run_entry, plan->kernels, NULL);
    for (int k = 0; k < plan->kernels; k++) {
        rg_run_entry *e = &run->entries[k];
        const int n = plan->samples * plan->processes;
        *e = (rg_run_entry){.kernel = rg_arena_printf(arena, NULL, "k%02d", k),
                            .problem = "",
                            .dtype = "",
                            .cache = "",
                            .sample_count = n,
                            .processes = plan->processes,
                            .samples = RG_NEW(arena, double, n, NULL),
                            .process = RG_NEW(arena, int, n, NULL)};
        e->count = e->median = e->mean = e->q1 = e->q3 = e->least = e->most = e->deviation = NAN;
        e->clock_hz = e->cycles = e->flops = e->model_bytes = e->dram_bytes = NAN;
        e->registers = e->spill_bytes = e->shared_bytes = e->blocks_per_sm = NAN;
        for (int p = 0; p < plan->processes; p++) {
            const double level = 100e-6 * (1 + 0.37 * k) *
                                 (1 + plan->between * rg_rng_normal(rng)) *
                                 (second && k < plan->slowed ? 1 + plan->slowdown : 1);
            double state = 0;
            for (int i = 0; i < plan->samples; i++) {
                e->process[p * plan->samples + i] = p;
                e->samples[p * plan->samples + i] =
                    level * sim_sample(plan->shape, plan->noise, i, plan->samples, &state, rng);
            }
        }
    }
    return run;
}

/** Judge a simulated pair; the arena is the caller's. */
static inline rg_status sim_pair(rg_arena *arena, const sim_plan *plan, rg_rng *rng,
                                 rg_guard_result *out, rg_err *err)
{
    const rg_run *first = sim_run(arena, plan, false, rng);
    const rg_run *second = sim_run(arena, plan, true, rng);
    rg_baseline *base;
    const rg_guard_options options = {.alpha = 0.005};
    RG_TRY(rg_baseline_of_run(arena, first, "", &base, err));
    return rg_guard_judge(arena, second, base, &options, out, err);
}

typedef struct sim_score {
    int pairs, alarmed, slowed, found;
} sim_score;

/** Many pairs: how many raise an alarm over an unchanged kernel, how many slowed kernels are found.
 */
static inline rg_status sim_many(const sim_plan *plan, int pairs, uint64_t seed, sim_score *score,
                                 rg_err *err)
{
    rg_rng rng;
    rg_rng_seed(&rng, seed, 7);
    *score = (sim_score){.pairs = pairs};
    rg_arena *arena = rg_arena_new(512);
    rg_status status = RG_OK;
    for (int p = 0; p < pairs && status == RG_OK; p++) {
        rg_guard_result result;
        rg_arena_reset(arena);
        status = sim_pair(arena, plan, &rng, &result, err);
        bool alarm = false;
        for (int i = 0; i < result.count && status == RG_OK; i++) {
            int k = 0;
            sscanf(result.items[i].kernel, "k%d", &k);
            const bool regressed = result.items[i].kind == RG_REGRESSED;
            if (k < plan->slowed && plan->slowdown > 0) {
                score->slowed++;
                score->found += regressed;
            } else {
                alarm = alarm || regressed;
            }
        }
        score->alarmed += alarm;
    }
    rg_arena_free(arena);
    return status;
}

#endif

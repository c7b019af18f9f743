/* serve/sample.h: what a long run leaves behind: quantiles in bounded memory, means with
 * confidence.
 *
 * Reads core/arena.h. Values are kept exactly up to a cap; past it they are counted in bins of at
 * most 0.1 % width, and rg_sample_exact says so. Weighted series (inter-token gaps) are binned from
 * the start.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_SERVE_SAMPLE_H
#define RG_SERVE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"

enum { RG_SAMPLE_EXACT = 1 << 19, RG_SAMPLE_BATCHES = 64 };

typedef struct rg_sample {
    rg_arena *arena;
    double *exact;
    int64_t exact_room;
    bool binned;
    int64_t *bins; /* NULL until needed */
    int64_t count;
    double sum, least, most;
    /* batch means: 64 batches of batch_size values in order of arrival, merged in pairs when full
     */
    double batch_sum[RG_SAMPLE_BATCHES]; /* of values */
    int batches;
    int64_t batch_size, batch_filled;
    rg_err failed;
} rg_sample;

/** binned: never keep single values. */
void rg_sample_start(rg_sample *sample, rg_arena *arena, bool binned);
/** Add a value, 0 or more and finite, weight times. */
void rg_sample_add(rg_sample *sample, double value, int64_t weight);
static inline bool rg_sample_exact(const rg_sample *sample)
{
    return !sample->binned;
}

typedef struct rg_sample_summary {
    int64_t count;
    double mean, p50, p90, p95, p99, most;
    /* half width of the 95 % interval of the mean, by batch means (requests are not independent);
     * NaN with fewer than 10 batches */
    double mean_half_width; /* in the unit of the values */
    /* 95 % intervals of the quantiles by order statistics */
    double p50_low, p50_high, p90_low, p90_high, p95_low, p95_high, p99_low, p99_high;
} rg_sample_summary;

/** All NaN when empty. Sorts the exact values: add none afterwards. */
rg_sample_summary rg_sample_summarise(rg_sample *sample);

#endif

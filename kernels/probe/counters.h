/* kernels/probe/counters.h: hardware counters and activity records through CUPTI.
 *
 * Reads bench.h. CUPTI is opened at run time. Its target side crashes where no driver runs, so it
 * is called only after the driver has started and shown a device; its host side (metric names,
 * passes, evaluation of counter data) needs no GPU. Without counters a run has times only, which is
 * a normal result with its reason beside it.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_COUNTERS_H
#define RG_PROBE_COUNTERS_H

#include "bench.h"

enum { RG_MAX_METRICS = 32, RG_METRIC_NAME = 96 };

/** Metrics of one pass. */
typedef enum rg_metric_set { RG_SET_CORE, RG_SET_FLOPS, RG_SET_LINK, RG_SET_COUNT } rg_metric_set;
extern const char *const rg_metric_set_names[RG_SET_COUNT + 1];

typedef struct rg_counters {
    bool valid;
    char reason[RG_ERR_TEXT_SIZE]; /* why not valid */
    int count;
    const char *names[RG_MAX_METRICS];
    double values[RG_MAX_METRICS];
    double dram_bytes; /* read and written; NaN when unknown */
} rg_counters;

typedef struct rg_activity {
    bool valid;
    char reason[RG_ERR_TEXT_SIZE];
    int count; /* kernel records */
    int dropped;
    double median_us; /* end - start of one operation's kernels, summed */
} rg_activity;

typedef struct rg_cupti rg_cupti;

/** Open CUPTI; NULL with the reason when it is absent or this build has none of its headers. */
rg_cupti *rg_cupti_open(rg_arena *arena, const char *folder, char *why, size_t why_size);
int rg_cupti_version(const rg_cupti *cupti);

/** The metrics of a set on a chip ("GH100"), as ridge asks for them; ends with NULL. dtype picks
 * the tensor operations of the flops set. NULL when ridge does not know the chip. */
const char *const *rg_metrics_of(rg_arena *arena, const char *chip, rg_metric_set set,
                                 const char *dtype, rg_err *err);
/** Chips that ridge claims to count on; ends with NULL. */
extern const char *const rg_metric_chips[];

/** Host side, no GPU: passes that the metrics need on a chip together. RG_ERR_INPUT names the
 * metric that the chip does not have, RG_ERR_MODEL a set that cannot be counted together. */
rg_status rg_cupti_passes(rg_cupti *cupti, const char *chip, const char *const *metrics,
                          int *passes, rg_err *err);
/** Unit and description of a metric ("byte"). */
rg_status rg_cupti_describe(rg_cupti *cupti, rg_arena *arena, const char *chip, const char *metric,
                            const char **unit, const char **text, rg_err *err);
/** All base metrics of a chip. */
rg_status rg_cupti_list(rg_cupti *cupti, rg_arena *arena, const char *chip,
                        const char *const **names, size_t *count, rg_err *err);
/** Evaluate one range of a counter data image. A NaN is RG_ERR_DEVICE: it was not counted. */
rg_status rg_cupti_evaluate(rg_cupti *cupti, const char *chip, const void *image, size_t bytes,
                            const char *const *metrics, size_t range, double *values, rg_err *err);

/** Target side: what a CUPTI error means, in the user's words. */
const char *rg_cupti_meaning(int result);
/** Chip name of an opened device. */
rg_status rg_cupti_chip(rg_cupti *cupti, const rg_gpu *gpu, const char **chip, rg_err *err);
/** Count one launch of a prepared problem in a user range; image_path (NULL: no) keeps the counter
 * data image. Never fails the run: the reason goes into out. */
void rg_cupti_count(rg_cupti *cupti, rg_arena *arena, rg_gpu *gpu, rg_bench *bench,
                    rg_metric_set set, const char *dtype, const char *image_path, rg_counters *out);
/** Time the kernels of `launches` operations by activity records. */
void rg_cupti_activity(rg_cupti *cupti, rg_arena *arena, rg_gpu *gpu, rg_bench *bench, int launches,
                       rg_activity *out);

#endif

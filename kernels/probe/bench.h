/* kernels/probe/bench.h: kernel families, their problems, and one problem made ready on a GPU.
 *
 * Reads gpu.h, core/arena.h. A family lists problems, prepares one, launches it, and checks its
 * kernels against their references in double precision.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_BENCH_H
#define RG_PROBE_BENCH_H

#include <stdio.h>

#include "core/arena.h"
#include "gpu.h"

enum { RG_PROBLEM_KEYS = 14, RG_BENCH_KERNELS = 4, RG_MAX_PROBLEMS = 512 };

/** What is computed: named whole numbers, a variant of the kernel and a number type. */
typedef struct rg_problem {
    const char *kernel;  /* family */
    const char *variant; /* "mma", "simt", "one_shot" */
    const char *dtype;   /* as in measured tables: bfloat16, fp8, int8, int4 */
    struct {
        const char *name;
        int64_t value;
    } keys[RG_PROBLEM_KEYS];
    int key_count;
} rg_problem;

/** Value of a key that the family itself has put in. */
int64_t rg_problem_get(const rg_problem *problem, const char *name);
void rg_problem_set(rg_problem *problem, const char *name, int64_t value);
/** "batch=64 kv_len=4096 ..." */
void rg_problem_text(const rg_problem *problem, char *out, size_t size);

typedef struct rg_problem_list {
    rg_problem items[RG_MAX_PROBLEMS];
    int count;
} rg_problem_list;
/** Append a problem; keys as name, value pairs ended by NULL. */
rg_problem *rg_problem_add(rg_problem_list *list, const char *kernel, const char *variant,
                           const char *dtype, ...);

/** How much: a few problems (tests), the default set (minutes), all. */
typedef enum rg_extent { RG_EXTENT_SMALL, RG_EXTENT_DEFAULT, RG_EXTENT_FULL } rg_extent;

typedef struct rg_bench rg_bench;
struct rg_bench {
    double flops;      /* 2 for each multiply-add that the problem asks for */
    double bytes;      /* that must cross HBM once when nothing is cached */
    double link_bytes; /* that must cross links, per rank; 0 for none */
    double set_bytes;  /* footprint of one set of buffers */
    int sets;          /* buffer sets that are rotated */
    int per_launch;    /* operations in one launch call (loops inside a kernel), usually 1 */
    rg_gpu_kernel kernels[RG_BENCH_KERNELS];
    int kernel_count;
    bool must_graph;   /* means nothing outside a graph */
    bool no_graph;     /* cannot be captured */
    const char *label; /* what must be said beside the figure; NULL for nothing */
    rg_status (*launch)(rg_gpu *gpu, rg_bench *bench, int set, rg_err *err);
    void (*release)(rg_bench *bench); /* NULL: nothing beyond device buffers */
    void *state;
};

/** Results of checks against references, as TAP lines. */
typedef struct rg_check_log {
    FILE *stream;
    int count, failed;
} rg_check_log;
/** One check: error against its limit. NaN fails. */
void rg_check_add(rg_check_log *log, double error, double limit, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void rg_check_skip(rg_check_log *log, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Norm of got - want over norm of want; NaN when any element of got is. */
double rg_check_error(const float *got, const double *want, size_t n);

typedef struct rg_family {
    const char *name, *summary;
    const char *measured_op; /* table of measured CSVs that its rows fit into; NULL for none */
    void (*problems)(rg_problem_list *list, rg_extent extent);
    /** Whether this GPU and build can run it; why gets the reason when not. NULL: always. */
    bool (*usable)(const rg_gpu *gpu, const rg_problem *problem, char *why, size_t why_size);
    rg_status (*prepare)(rg_arena *arena, rg_gpu *gpu, const rg_problem *problem, bool cold,
                         rg_bench *out, rg_err *err);
    rg_status (*check)(rg_arena *arena, rg_gpu *gpu, rg_check_log *log, rg_err *err);
} rg_family;

extern const rg_family *const rg_families[]; /* ends with NULL */
const rg_family *rg_family_find(const char *name);

/** Buffer sets to rotate so that no launch finds its data in L2: together at least three times L2
 * and at least 2; 1 when warm. At most what half the free memory holds. */
int rg_bench_sets(const rg_gpu *gpu, double set_bytes, bool cold);

#endif

/* fit/measured.h: measured operator times from a table, as operators that the models understand.
 *
 * Reads kernel, model, core. The op is the file's name (gemm, context_attention,
 * generation_attention, encoder_attention, context_mla, generation_mla, mla_bmm, moe, scale_matrix,
 * computescale, nccl, custom_allreduce); columns are found by name, time_us is microseconds for one
 * call on one device.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_FIT_MEASURED_H
#define RG_FIT_MEASURED_H

#include <stdint.h>

#include "core/arena.h"
#include "kernel/kernel.h"

typedef enum rg_measured_kind {
    RG_MEASURED_GEMM,
    RG_MEASURED_CONTEXT_ATTENTION,
    RG_MEASURED_GENERATION_ATTENTION,
    RG_MEASURED_ENCODER_ATTENTION,
    RG_MEASURED_CONTEXT_MLA,
    RG_MEASURED_GENERATION_MLA,
    RG_MEASURED_MLA_BMM,
    RG_MEASURED_MOE,
    RG_MEASURED_SCALE_MATRIX,
    RG_MEASURED_COMPUTESCALE,
    RG_MEASURED_NCCL,
    RG_MEASURED_CUSTOM_ALLREDUCE,
    RG_MEASURED_KIND_COUNT,
} rg_measured_kind;

const char *rg_measured_kind_name(rg_measured_kind kind);
/** Kind by name, or by the name of a file when text is NULL ("dir/gemm.csv"); RG_ERR_USAGE with the
 * nearest name. */
rg_status rg_measured_kind_parse(const char *text, const char *path, rg_measured_kind *out,
                                 rg_err *err);

/** Why a row takes no part in errors and fits. */
typedef enum rg_skip {
    RG_SKIP_NONE,
    RG_SKIP_OUTLIER,     /* listed by the caller */
    RG_SKIP_IMPOSSIBLE,  /* faster than the peak rate or the memory bandwidth allows */
    RG_SKIP_UNSUPPORTED, /* the device has no rate for the type, or the model no such operator */
    RG_SKIP_INVALID,     /* time zero, negative or not a number */
    RG_SKIP_COUNT,
} rg_skip;
const char *rg_skip_name(rg_skip skip);

typedef struct rg_measured_row {
    rg_op op;               /* kernels; for collectives see below */
    const char *collective; /* "all_reduce", ...; NULL for kernels */
    int64_t ranks;
    double bytes, element_bytes; /* collectives: as the table's README counts them */
    const char *dtype;           /* as grouped in reports: "bf16", "fp8", "bf16/kv-fp8" */
    const char *size_class;      /* "m<=16", "len>=1024", ... */
    const char *residency;       /* "dram", "l2" or "any" */
    rg_attention_library library;
    uint64_t shape_hash; /* of the columns that make the shape */
    double seconds;      /* measured */
    rg_skip skip;
    int line;
    const char **fields; /* [columns], texts of the row */
} rg_measured_row;

typedef struct rg_measured_table {
    rg_measured_kind kind;
    const char *path;
    int columns;
    const char **column; /* [columns] names */
    rg_measured_row *rows;
    size_t count;
} rg_measured_table;

/** Read a table. Errors: missing columns, bad numbers, with their place. */
rg_status rg_measured_load(rg_arena *arena, rg_measured_kind kind, const char *path,
                           rg_measured_table *out, rg_err *err);
/** Mark rows that a list names: columns op, time_us and point ("m=1;n=2;..."). */
rg_status rg_measured_mark_outliers(rg_arena *arena, rg_measured_table *table, const char *path,
                                    rg_err *err);
/** Fill residency, and mark the rows that the device cannot have run in that time: above the matrix
 * peak, or above the memory bandwidth with at least 4 times L2 of bytes. */
rg_status rg_measured_judge(rg_measured_table *table, const rg_accel *accel,
                            const rg_kernel_device *ideal, rg_err *err);

#endif

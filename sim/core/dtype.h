/* core/dtype.h: number types, and the formats in which weights, activations and KV are stored.
 *
 * Reads core/err.h. A type is what a compute unit multiplies; a format is how elements lie in
 * memory, with its scales and zero points counted.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_DTYPE_H
#define RG_CORE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

typedef enum rg_dtype {
    RG_FP64,
    RG_FP32,
    RG_TF32,
    RG_BF16,
    RG_FP16,
    RG_FP8, /* e4m3 or e5m2 */
    RG_INT8,
    RG_FP6,
    RG_FP4, /* e2m1, with whatever block scales the format adds */
    RG_INT4,
    RG_INT32, /* accumulator only */
    RG_DTYPE_COUNT,
} rg_dtype;

const char *rg_dtype_name(rg_dtype type);
/** Type by name ("bf16", "e4m3" counts as fp8); RG_ERR_INPUT with the nearest name. */
rg_status rg_dtype_parse(const char *name, rg_pos pos, rg_dtype *out, rg_err *err);
/** Storage bits of one element. */
double rg_dtype_bits(rg_dtype type);

/** A storage format: elements of some bits, in groups that share a scale and maybe a zero point. */
typedef struct rg_format {
    char name[24]; /* "bf16", "fp8_block", "int4_g128", "nvfp4", "int2_g32" */
    double element_bits;
    int64_t group;     /* elements that share a scale; 0 = per tensor, nothing counted */
    double scale_bits; /* per group */
    double zero_bits;  /* per group */
    rg_dtype math;     /* type it is multiplied in by default (int4 weight-only: bf16) */
    bool weight_only;  /* dequantised before the product */
} rg_format;

/** Format by name. Known: fp32 tf32 bf16 fp16 fp8 (per tensor) fp8_block (one fp32 scale per
 * 128x128) int8 (per channel: group counted by the caller's row, scales neglected below) int8_wo
 * int4 (= int4_g128) int4_gN, int4_gN_sym, int3_gN, int2_gN, nvfp4 mxfp4 mxfp8 fp6 fp4. */
rg_status rg_format_parse(const char *name, rg_pos pos, rg_format *out, rg_err *err);
/** Bytes of count elements, scales and zero points included. */
rg_bytes rg_format_bytes(const rg_format *format, double count);

#endif

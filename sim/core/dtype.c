// SPDX-License-Identifier: Apache-2.0
#include "core/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

static const struct {
    const char *name;
    double bits;
} types[RG_DTYPE_COUNT] = {
    [RG_FP64] = {"fp64", 64}, [RG_FP32] = {"fp32", 32},   [RG_TF32] = {"tf32", 32},
    [RG_BF16] = {"bf16", 16}, [RG_FP16] = {"fp16", 16},   [RG_FP8] = {"fp8", 8},
    [RG_INT8] = {"int8", 8},  [RG_FP6] = {"fp6", 6},      [RG_FP4] = {"fp4", 4},
    [RG_INT4] = {"int4", 4},  [RG_INT32] = {"int32", 32},
};

static const struct {
    const char *alias;
    rg_dtype type;
} aliases[] = {{"bfloat16", RG_BF16}, {"float16", RG_FP16},  {"half", RG_FP16},
               {"float32", RG_FP32},  {"float", RG_FP32},    {"float64", RG_FP64},
               {"e4m3", RG_FP8},      {"e5m2", RG_FP8},      {"nvfp4", RG_FP4},
               {"mxfp4", RG_FP4},     {"fp8_block", RG_FP8}, {"mxfp8", RG_FP8}};

const char *rg_dtype_name(rg_dtype type)
{
    return types[type].name;
}
double rg_dtype_bits(rg_dtype type)
{
    return types[type].bits;
}

rg_status rg_dtype_parse(const char *name, rg_pos pos, rg_dtype *out, rg_err *err)
{
    const char *names[RG_DTYPE_COUNT + 1] = {NULL};
    for (int i = 0; i < RG_DTYPE_COUNT; i++) {
        names[i] = types[i].name;
        if (strcmp(name, types[i].name) == 0) {
            *out = (rg_dtype)i;
            return RG_OK;
        }
    }
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(name, aliases[i].alias) == 0) {
            *out = aliases[i].type;
            return RG_OK;
        }
    const char *nearest = rg_text_nearest(name, names);
    return rg_fail(err, RG_ERR_INPUT, pos, "type '%s' is not known%s%s%s", name,
                   nearest ? "; did you mean '"
                           : "; known are fp32, bf16, fp16, fp8, int8, fp4 ...",
                   nearest ? nearest : "", nearest ? "'?" : "");
}

/* Scales: fp8_block one fp32 per 128x128 tile (DeepSeek-V3 report, section 3.3.2); nvfp4 one e4m3
 * per 16, mxfp4/mxfp8 one e8m0 per 32 (OCP Microscaling Formats v1.0, table 1); int4 groups one
 * fp16 scale and a zero point of the element's width (GPTQ, AWQ checkpoints). */
static const rg_format fixed[] = {
    {"fp32", 32, 0, 0, 0, RG_FP32, false},    {"tf32", 32, 0, 0, 0, RG_TF32, false},
    {"bf16", 16, 0, 0, 0, RG_BF16, false},    {"fp16", 16, 0, 0, 0, RG_FP16, false},
    {"fp8", 8, 0, 0, 0, RG_FP8, false},       {"fp8_block", 8, 16384, 32, 0, RG_FP8, false},
    {"int8", 8, 0, 0, 0, RG_INT8, false},     {"int8_wo", 8, 0, 0, 0, RG_BF16, true},
    {"fp8_wo", 8, 0, 0, 0, RG_BF16, true},    {"nvfp4", 4, 16, 8, 0, RG_FP4, false},
    {"mxfp4", 4, 32, 8, 0, RG_FP4, false},    {"mxfp8", 8, 32, 8, 0, RG_FP8, false},
    {"fp6", 6, 0, 0, 0, RG_FP6, false},       {"fp4", 4, 0, 0, 0, RG_FP4, false},
    {"int4", 4, 128, 16, 4, RG_BF16, true},   {"int4_wo", 4, 128, 16, 4, RG_BF16, true},
    {"mxfp4_wo", 4, 32, 8, 0, RG_BF16, true}, {"nvfp4_wo", 4, 16, 8, 0, RG_BF16, true},
};

/* "int4_g64", "int2_g32_sym": bits, group and whether a zero point is stored. */
static bool parse_grouped(const char *name, rg_format *out)
{
    static const struct {
        const char *stem;
        double bits;
    } stems[] = {{"int8_g", 8}, {"int4_g", 4}, {"int3_g", 3}, {"int2_g", 2}};
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        const size_t n = strlen(stems[i].stem);
        if (strncmp(name, stems[i].stem, n) != 0)
            continue;
        char *end;
        const long group = strtol(name + n, &end, 10);
        const bool symmetric = strcmp(end, "_sym") == 0;
        if (end == name + n || group < 1 || group > 65536 || (*end && !symmetric))
            return false;
        *out = (rg_format){.element_bits = stems[i].bits,
                           .group = group,
                           .scale_bits = 16,
                           .zero_bits = symmetric ? 0 : stems[i].bits,
                           .math = RG_BF16,
                           .weight_only = true};
        snprintf(out->name, sizeof out->name, "%s%ld%s", stems[i].stem, group,
                 symmetric ? "_sym" : "");
        return true;
    }
    return false;
}

rg_status rg_format_parse(const char *name, rg_pos pos, rg_format *out, rg_err *err)
{
    enum { COUNT = sizeof fixed / sizeof fixed[0] };
    const char *names[COUNT + 3] = {NULL};
    for (int i = 0; i < COUNT; i++) {
        names[i] = fixed[i].name;
        if (strcmp(name, fixed[i].name) == 0) {
            *out = fixed[i];
            return RG_OK;
        }
    }
    names[COUNT] = "int4_g128";
    names[COUNT + 1] = "int2_g32";
    if (parse_grouped(name, out))
        return RG_OK;
    rg_dtype type;
    rg_err ignored;
    if (rg_dtype_parse(name, pos, &type, &ignored) == RG_OK && type != RG_FP64 && type != RG_INT32)
        return rg_format_parse(rg_dtype_name(type), pos, out, err);
    const char *nearest = rg_text_nearest(name, names);
    return rg_fail(
        err, RG_ERR_INPUT, pos, "format '%s' is not known%s%s%s", name,
        nearest ? "; did you mean '"
                : "; known are bf16, fp8, fp8_block, int8, nvfp4, mxfp4, int4_g128, int2_g32 ...",
        nearest ? nearest : "", nearest ? "'?" : "");
}

rg_bytes rg_format_bytes(const rg_format *format, double count)
{
    double bits = format->element_bits;
    if (format->group > 0)
        bits += (format->scale_bits + format->zero_bits) / (double)format->group;
    return RG_B(count * bits / 8.0);
}

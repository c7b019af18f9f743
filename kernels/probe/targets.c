/* kernels/probe/targets.c: a run record against what ridge's kernels are to reach.
 *
 * Reads command.h, jansson. Targets are shares of what the same run measured, never of a datasheet:
 * reading a paged cache against reading plainly, own products against the vendor's, counted bytes
 * against the model's.
 */
// SPDX-License-Identifier: Apache-2.0
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "core/stat.h"

enum { MOST_VALUES = 4096 };

typedef struct values {
    double x[MOST_VALUES];
    size_t count;
} values;

static const char *text_of(const json_t *kernel, const char *key)
{
    const char *text = json_string_value(json_object_get(kernel, key));
    return text ? text : "";
}

static double number_of(const json_t *kernel, const char *key)
{
    const json_t *value = json_object_get(kernel, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double problem_of(const json_t *kernel, const char *key)
{
    return number_of(json_object_get(kernel, "problem"), key);
}

static bool is(const json_t *kernel, const char *name)
{
    return strcmp(text_of(kernel, "kernel"), name) == 0;
}

static void keep(values *list, double x)
{
    if (isfinite(x) && list->count < MOST_VALUES)
        list->x[list->count++] = x;
}

static double most_of(const values *list)
{
    double most = NAN;
    for (size_t i = 0; i < list->count; i++)
        most = fmax(most, list->x[i]);
    return most;
}

/** One line; false when the target is missed. The least value counts, or the largest deviation. */
static bool judge(const char *what, values *list, double target, bool at_least)
{
    if (list->count == 0) {
        printf("%-62s %8s  not measured\n", what, "-");
        return true;
    }
    rg_stat_sort(list->x, list->count);
    const double worst = at_least ? list->x[0] : list->x[list->count - 1];
    const bool reached = at_least ? worst >= target : worst <= target;
    printf("%-62s %7.1f%%  %s (median %.1f%%, %zu rows; %s %.0f%%)\n", what, 100 * worst,
           reached ? "reached" : "MISSED", 100 * rg_stat_quantile_sorted(list->x, list->count, 0.5),
           list->count, at_least ? "at least" : "at most", 100 * target);
    return reached;
}

typedef struct sorted_rows {
    values reads, kv, decode, own, vendor, traffic;
} sorted_rows;

/** Whether no other variant reads the same cache faster. */
static bool is_best_variant(const json_t *kernels, const json_t *kernel)
{
    size_t i = 0;
    json_t *other = NULL;
    json_array_foreach((json_t *)kernels, i, other)
    {
        if (is(other, "kv_read") &&
            strcmp(text_of(other, "dtype"), text_of(kernel, "dtype")) == 0 &&
            json_equal(json_object_get(other, "problem"), json_object_get(kernel, "problem")) &&
            number_of(other, "bytes_per_s") > number_of(kernel, "bytes_per_s"))
            return false;
    }
    return true;
}

static void sort_row(sorted_rows *rows, const json_t *kernels, const json_t *kernel,
                     double l2_bytes)
{
    const double rate = number_of(kernel, "bytes_per_s"), bytes = number_of(kernel, "model_bytes");
    const char *variant = text_of(kernel, "variant");
    const bool cold = strcmp(text_of(kernel, "cache"), "cold") == 0;
    const bool decode =
        (is(kernel, "decode") || is(kernel, "decode_mla")) && strcmp(variant, "mma") == 0;
    if (is(kernel, "stream") && strncmp(variant, "read", 4) == 0 && bytes >= 4 * l2_bytes)
        keep(&rows->reads, rate);
    if (is(kernel, "kv_read") && cold && problem_of(kernel, "page") >= 16 &&
        is_best_variant(kernels, kernel))
        keep(&rows->kv, rate);
    if (decode && cold && bytes >= 0.5e9)
        keep(&rows->decode, rate);
    if (is(kernel, "gemm") && strcmp(text_of(kernel, "dtype"), "bfloat16") == 0 &&
        problem_of(kernel, "m") == 8192 && problem_of(kernel, "n") == 8192 &&
        problem_of(kernel, "k") == 8192)
        keep(strncmp(variant, "cublaslt", 8) == 0 ? &rows->vendor : &rows->own,
             number_of(kernel, "flops_per_s"));
    if ((is(kernel, "kv_read") || decode) && cold && bytes >= 4 * l2_bytes)
        keep(&rows->traffic, fabs(number_of(kernel, "dram_bytes") / bytes - 1));
}

static bool judge_all(const json_t *root, sorted_rows *rows)
{
    const double l2 = number_of(json_object_get(root, "device"), "l2_bytes");
    size_t i = 0;
    json_t *kernel = NULL;
    const json_t *kernels = json_object_get(root, "kernels");
    json_array_foreach((json_t *)kernels, i, kernel)
    {
        sort_row(rows, kernels, kernel, l2);
    }
    const double read = most_of(&rows->reads);
    values gemm = {.count = 0};
    for (size_t k = 0; k < rows->kv.count; k++)
        rows->kv.x[k] /= read;
    for (size_t k = 0; k < rows->decode.count; k++)
        rows->decode.x[k] /= read;
    keep(&gemm, most_of(&rows->own) / most_of(&rows->vendor));
    if (!isfinite(read))
        rows->kv.count = rows->decode.count = 0;
    else
        printf("best plain read %.1f GB/s\n", read / 1e9);
    bool fine =
        judge("KV read, pages of 16 and more, of the best plain read", &rows->kv, 0.90, true);
    fine &= judge("decode attention of 0.5 GB and more, of the best plain read", &rows->decode,
                  0.85, true);
    fine &= judge("own bf16 product at 8192^3, of cuBLASLt", &gemm, 0.80, true);
    fine &=
        judge("counted DRAM bytes from the model's, read and decode", &rows->traffic, 0.03, false);
    return fine;
}

rg_status rg_probe_targets(rg_arena *arena, const rg_probe_options *options, rg_err *err)
{
    json_error_t error;
    if (options->operand_count != 1)
        return rg_fail(err, RG_ERR_USAGE, RG_NOWHERE, "targets needs one run record");
    sorted_rows *rows = RG_NEW(arena, sorted_rows, 1, err);
    if (!rows)
        return RG_ERR_LIMIT;
    json_t *root = json_load_file(options->operands[0], 0, &error);
    const char *schema = root ? text_of(root, "schema") : "";
    if (strcmp(schema, "ridge.probe/1") != 0) {
        const rg_pos pos = {options->operands[0], root ? 1 : error.line, root ? 1 : error.column};
        json_decref(root);
        return rg_fail(err, RG_ERR_INPUT, pos, "%s; want a run record of schema 'ridge.probe/1'",
                       root ? "another schema" : error.text);
    }
    const json_t *device = json_object_get(root, "device");
    printf("%s%s\n", text_of(device, "name"),
           json_is_true(json_object_get(device, "emulated"))
               ? ": a CPU emulation, times say nothing of any GPU"
               : "");
    const bool fine = judge_all(root, rows);
    json_decref(root);
    if (!fine)
        return rg_fail(err, RG_ERR_NO, RG_NOWHERE, "not all targets are reached");
    return RG_OK;
}

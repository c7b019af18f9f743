/* kernels/probe/bench.c: problems, check lines, buffer rotation.
 *
 * Reads bench.h.
 */
// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int64_t rg_problem_get(const rg_problem *problem, const char *name)
{
    for (int i = 0; i < problem->key_count; i++)
        if (strcmp(problem->keys[i].name, name) == 0)
            return problem->keys[i].value;
    assert(!"a key that the family did not put in");
    return 0;
}

void rg_problem_set(rg_problem *problem, const char *name, int64_t value)
{
    for (int i = 0; i < problem->key_count; i++)
        if (strcmp(problem->keys[i].name, name) == 0) {
            problem->keys[i].value = value;
            return;
        }
    assert(problem->key_count < RG_PROBLEM_KEYS);
    problem->keys[problem->key_count].name = name;
    problem->keys[problem->key_count++].value = value;
}

void rg_problem_text(const rg_problem *problem, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < problem->key_count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s=%lld", i > 0 ? " " : "",
                                 problem->keys[i].name, (long long)problem->keys[i].value);
}

rg_problem *rg_problem_add(rg_problem_list *list, const char *kernel, const char *variant,
                           const char *dtype, ...)
{
    assert(list->count < RG_MAX_PROBLEMS);
    rg_problem *problem = &list->items[list->count++];
    memset(problem, 0, sizeof *problem);
    problem->kernel = kernel;
    problem->variant = variant;
    problem->dtype = dtype;
    va_list keys;
    va_start(keys, dtype);
    for (const char *name = va_arg(keys, const char *); name; name = va_arg(keys, const char *))
        rg_problem_set(problem, name, va_arg(keys, int64_t));
    va_end(keys);
    return problem;
}

void rg_check_add(rg_check_log *log, double error, double limit, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const bool fine = error <= limit; /* false for NaN */
    log->count++;
    log->failed += !fine;
    fprintf(log->stream, "%sok %d - %s (error %.2e, limit %.0e)\n", fine ? "" : "not ", log->count,
            text, error, limit);
    fflush(log->stream);
}

void rg_check_skip(rg_check_log *log, const char *reason, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(log->stream, "ok %d - %s # SKIP %s\n", ++log->count, text, reason);
}

double rg_check_error(const float *got, const double *want, size_t n)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)got[i] - want[i];
        difference += d * d;
        norm += want[i] * want[i];
    }
    return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}

const rg_family *rg_family_find(const char *name)
{
    for (const rg_family *const *family = rg_families; *family; family++)
        if (strcmp((*family)->name, name) == 0)
            return *family;
    return NULL;
}

int rg_bench_sets(const rg_gpu *gpu, double set_bytes, bool cold)
{
    if (!cold)
        return 1;
    const double wanted = ceil(3.0 * gpu->figures.l2_bytes / fmax(set_bytes, 1.0));
    const double possible = floor(0.5 * (double)gpu->figures.memory_free_bytes / set_bytes);
    return (int)fmax(1, fmin(fmin(fmax(wanted, 2), 64), possible));
}

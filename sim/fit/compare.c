/* fit/compare.c: predicted against measured: errors by group, worst rows, limits. */
// SPDX-License-Identifier: Apache-2.0
#include "fit/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/doc.h"

const char *rg_provenance_name(rg_provenance sample)
{
    static const char *const names[RG_PROVENANCE_COUNT] = {"in_sample", "out_of_sample",
                                                           "carried_over"};
    return names[sample];
}

static bool counts(const rg_compared_row *r)
{
    return r->row->skip == RG_SKIP_NONE;
}

static bool same(const char *wanted, const char *have)
{
    return !wanted || strcmp(wanted, have) == 0;
}

static rg_status pool(rg_arena *arena, const rg_comparison *c, const char *dtype,
                      const char *size_class, const char *residency, const char *sample,
                      bool without_l2, rg_error_summary *out, rg_err *err)
{
    (void)arena;
    (void)err;
    *out = (rg_error_summary){0};
    double *predicted = c->scratch, *measured = predicted + c->table->count;
    size_t n = 0;
    for (size_t i = 0; i < c->table->count; i++) {
        const rg_compared_row *r = &c->rows[i];
        if (!counts(r) || !same(dtype, r->row->dtype) || !same(size_class, r->row->size_class) ||
            !same(residency, r->row->residency) || !same(sample, rg_provenance_name(r->sample)) ||
            (without_l2 && strcmp(r->row->residency, "l2") == 0))
            continue;
        predicted[n] = r->predicted;
        measured[n++] = r->row->seconds;
    }
    if (n > 0)
        *out = rg_stat_errors(predicted, measured, n, measured + c->table->count);
    return RG_OK;
}

rg_status rg_compare_pool(rg_arena *arena, const rg_comparison *comparison, const char *dtype,
                          const char *size_class, const char *residency, const char *sample,
                          rg_error_summary *out, rg_err *err)
{
    return pool(arena, comparison, dtype, size_class, residency, sample, false, out, err);
}

rg_status rg_compare_overall(rg_arena *arena, const rg_comparison *comparison, const char *dtype,
                             const char *sample, rg_error_summary *out, rg_err *err)
{
    return pool(arena, comparison, dtype, NULL, NULL, sample, true, out, err);
}

static bool same_group(const rg_compared_group *g, const rg_compared_row *r)
{
    return g->sample == r->sample && same(g->dtype, r->row->dtype) &&
           same(g->size_class, r->row->size_class) && same(g->residency, r->row->residency);
}

static rg_status collect(rg_arena *arena, rg_comparison *c, bool summary, rg_compared_group **list,
                         int *count, rg_err *err)
{
    enum { MOST_GROUPS = 512 };
    *list = RG_NEW(arena, rg_compared_group, MOST_GROUPS, err);
    if (!*list)
        return RG_ERR_LIMIT;
    *count = 0;
    for (size_t i = 0; i < c->table->count; i++) {
        const rg_compared_row *r = &c->rows[i];
        if (!counts(r) || (summary && strcmp(r->row->residency, "l2") == 0))
            continue;
        bool known = false;
        for (int g = 0; g < *count && !known; g++)
            known = same_group(&(*list)[g], r);
        if (known)
            continue;
        if (*count == MOST_GROUPS)
            return rg_fail(err, RG_ERR_LIMIT, RG_NOWHERE, "more than '%d' groups of rows",
                           MOST_GROUPS);
        (*list)[(*count)++] = (rg_compared_group){.dtype = r->row->dtype,
                                                  .size_class = summary ? NULL : r->row->size_class,
                                                  .residency = summary ? NULL : r->row->residency,
                                                  .sample = r->sample};
    }
    for (int g = 0; g < *count; g++) {
        rg_compared_group *group = &(*list)[g];
        RG_TRY(pool(arena, c, group->dtype, group->size_class, group->residency,
                    rg_provenance_name(group->sample), summary, &group->errors, err));
    }
    return RG_OK;
}

rg_status rg_compare(rg_arena *arena, const rg_predictor *predictor, const rg_measured_table *table,
                     const rg_split *split, rg_comparison *out, rg_err *err)
{
    *out = (rg_comparison){.table = table};
    out->rows = RG_NEW(arena, rg_compared_row, table->count, err);
    out->scratch = RG_NEW(arena, double, 3 * table->count, err);
    if (!out->rows || !out->scratch)
        return RG_ERR_LIMIT;
    for (size_t i = 0; i < table->count; i++) {
        rg_compared_row *r = &out->rows[i];
        r->row = &table->rows[i];
        r->predicted = rg_predict_seconds(predictor, r->row);
        out->skipped[r->row->skip]++;
        bool fitted, tested;
        RG_TRY(rg_split_row(split, table, r->row, &fitted, &tested, err));
        r->sample = !rg_predictor_own(predictor, r->row) ? RG_CARRIED_OVER
                    : fitted                             ? RG_IN_SAMPLE
                                                         : RG_OUT_OF_SAMPLE;
    }
    RG_TRY(collect(arena, out, false, &out->groups, &out->group_count, err));
    return collect(arena, out, true, &out->summary, &out->summary_count, err);
}

static rg_status class_errors(const rg_comparison *c, int group, const char *size_class,
                              double *scratch, rg_error_summary *out)
{
    double *predicted = scratch, *measured = scratch + c->table->count;
    size_t n = 0;
    for (size_t i = 0; i < c->table->count; i++) {
        const rg_compared_row *r = &c->rows[i];
        if (!counts(r) || rg_predict_group(r->row) != group ||
            strcmp(r->row->residency, "l2") == 0 || !same(size_class, r->row->size_class))
            continue;
        predicted[n] = r->predicted;
        measured[n++] = r->row->seconds;
    }
    *out = (rg_error_summary){0};
    if (n > 0)
        *out = rg_stat_errors(predicted, measured, n, measured + c->table->count);
    return RG_OK;
}

rg_status rg_compare_classes(rg_arena *arena, const rg_comparison *comparison, int group,
                             rg_class_errors *out, int capacity, int *count, rg_err *err)
{
    *count = 0;
    (void)arena;
    (void)err;
    double *scratch = comparison->scratch;
    rg_error_summary all;
    RG_TRY(class_errors(comparison, group, NULL, scratch, &all));
    if (all.count == 0)
        return RG_OK;
    out[(*count)++] = (rg_class_errors){.name = "all", .errors = all};
    for (size_t i = 0; i < comparison->table->count && *count < capacity; i++) {
        const rg_measured_row *row = comparison->rows[i].row;
        bool known = !counts(&comparison->rows[i]) || rg_predict_group(row) != group;
        for (int c = 1; c < *count && !known; c++)
            known = strcmp(out[c].name, row->size_class) == 0;
        if (known)
            continue;
        rg_class_errors *class = &out[(*count)++];
        class->name = row->size_class;
        RG_TRY(class_errors(comparison, group, class->name, scratch, &class->errors));
    }
    return RG_OK;
}

static double log_error(const rg_compared_row *r)
{
    return fabs(log(r->predicted / r->row->seconds));
}

static int worse_first(const void *a, const void *b)
{
    const rg_compared_row *x = *(const rg_compared_row *const *)a;
    const rg_compared_row *y = *(const rg_compared_row *const *)b;
    const double p = log_error(x), q = log_error(y);
    if (p != q)
        return p > q ? -1 : 1;
    return x->row->line < y->row->line ? -1 : x->row->line > y->row->line;
}

rg_status rg_compare_worst(rg_arena *arena, const rg_comparison *comparison, int count,
                           const rg_compared_row **out, int *found, rg_err *err)
{
    const rg_compared_row **all =
        RG_NEW(arena, const rg_compared_row *, comparison->table->count, err);
    if (!all)
        return RG_ERR_LIMIT;
    size_t n = 0;
    for (size_t i = 0; i < comparison->table->count; i++)
        if (counts(&comparison->rows[i]))
            all[n++] = &comparison->rows[i];
    qsort(all, n, sizeof(const rg_compared_row *), worse_first);
    *found = n < (size_t)count ? (int)n : count;
    for (int i = 0; i < *found; i++)
        out[i] = all[i];
    return RG_OK;
}

static double measure_of(const rg_error_summary *e, int which)
{
    const double values[4] = {e->mean_ape, e->median_ape, e->p90_ape, fabs(e->bias)};
    return values[which];
}

static rg_status check_limit(rg_arena *arena, const rg_comparison *c, rg_node *node,
                             rg_limit_breach *out, int capacity, int *count, rg_err *err)
{
    static const char *const measures[4] = {"mean_ape", "median_ape", "p90_ape", "bias"};
    RG_TRY(rg_node_expect(node, RG_NODE_MAP, "a limit", err));
    rg_limit_breach limit = {0};
    RG_TRY(rg_map_text_or(node, "op", NULL, &limit.op, err));
    RG_TRY(rg_map_text_or(node, "dtype", NULL, &limit.dtype, err));
    RG_TRY(rg_map_text_or(node, "size_class", NULL, &limit.size_class, err));
    RG_TRY(rg_map_text_or(node, "residency", NULL, &limit.residency, err));
    RG_TRY(rg_map_text_or(node, "sample", NULL, &limit.sample, err));
    double limits[4];
    for (int i = 0; i < 4; i++)
        RG_TRY(rg_map_quantity_or(node, measures[i], RG_DIM_NONE, INFINITY, &limits[i], err));
    RG_TRY(rg_map_done(node, err));
    if (limit.op && strcmp(limit.op, rg_measured_kind_name(c->table->kind)) != 0)
        return RG_OK;
    rg_error_summary errors;
    RG_TRY(rg_compare_pool(arena, c, limit.dtype, limit.size_class, limit.residency, limit.sample,
                           &errors, err));
    for (int i = 0; i < 4; i++) {
        if (!isfinite(limits[i]))
            continue;
        limit.measure = measures[i];
        limit.limit = limits[i];
        limit.value = errors.count > 0 ? measure_of(&errors, i) : NAN;
        if (limit.value <= limit.limit)
            continue;
        if (*count == capacity)
            return rg_fail(err, RG_ERR_LIMIT, node->pos, "more than '%d' limits passed", capacity);
        out[(*count)++] = limit;
    }
    return RG_OK;
}

rg_status rg_compare_limits(rg_arena *arena, const rg_comparison *comparison, const char *path,
                            rg_limit_breach *out, int capacity, int *count, rg_err *err)
{
    *count = 0;
    rg_node *root, *list;
    RG_TRY(rg_doc_load(arena, path, &root, err));
    RG_TRY(rg_node_expect(root, RG_NODE_MAP, "the file of limits", err));
    RG_TRY(rg_map_get(root, "limits", &list, err));
    RG_TRY(rg_map_done(root, err));
    RG_TRY(rg_node_expect(list, RG_NODE_LIST, "limits", err));
    for (rg_node *node = list->first; node; node = node->next)
        RG_TRY(check_limit(arena, comparison, node, out, capacity, count, err));
    return RG_OK;
}

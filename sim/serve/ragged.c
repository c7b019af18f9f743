/* serve/ragged.c: interpolation in tables with holes. */
// SPDX-License-Identifier: Apache-2.0
#include "serve/ragged.h"

#include <stdlib.h>

static int by_place(const void *a, const void *b)
{
    const rg_ragged_point *p = a, *q = b;
    for (int i = 0; i < RG_RAGGED_AXES; i++)
        if (p->at[i] != q->at[i])
            return p->at[i] < q->at[i] ? -1 : 1;
    return (p->value > q->value) - (p->value < q->value);
}

/* Children of a node from points[0..count), which agree in all coordinates before `axis`. */
static rg_status branch(rg_arena *arena, const rg_ragged_point *points, int count, int axis,
                        int axes, rg_ragged *out, rg_err *err)
{
    int values = 0;
    for (int i = 0; i < count; i++)
        values += i == 0 || points[i].at[axis] != points[i - 1].at[axis];
    out->children = RG_NEW(arena, rg_ragged, values, err);
    if (!out->children)
        return RG_ERR_LIMIT;
    out->count = values;
    for (int start = 0, n = 0; start < count; n++) {
        int end = start + 1;
        while (end < count && points[end].at[axis] == points[start].at[axis])
            end++;
        rg_ragged *child = &out->children[n];
        child->at = points[start].at[axis];
        child->value = points[start].value;
        if (axis + 1 < axes)
            RG_TRY(branch(arena, points + start, end - start, axis + 1, axes, child, err));
        start = end;
    }
    return RG_OK;
}

rg_status rg_ragged_build(rg_arena *arena, rg_ragged_point *points, int count, int axes,
                          rg_ragged *out, rg_err *err)
{
    *out = (rg_ragged){0};
    qsort(points, (size_t)count, sizeof *points, by_place);
    return branch(arena, points, count, 0, axes, out, err);
}

void rg_ragged_bracket(const rg_ragged *node, int first, double x, int *low, int *high,
                       double *weight)
{
    int a = first, b = node->count - 1;
    *weight = 0;
    if (b <= first) {
        *low = *high = first;
        return;
    }
    while (b - a > 1) {
        const int middle = (a + b) / 2;
        if (node->children[middle].at <= x)
            a = middle;
        else
            b = middle;
    }
    *low = a;
    *high = b;
    const double from = node->children[a].at, to = node->children[b].at;
    if (x > from)
        *weight = (x - from) / (to - from);
}

double rg_ragged_at(const rg_ragged *node, const double *x)
{
    if (!node->children)
        return node->value;
    int low, high;
    double weight;
    rg_ragged_bracket(node, 0, *x, &low, &high, &weight);
    const double a = rg_ragged_at(&node->children[low], x + 1);
    if (weight == 0)
        return a;
    const double b = rg_ragged_at(&node->children[high], x + 1);
    return a + (b - a) * weight;
}

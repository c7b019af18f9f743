// SPDX-License-Identifier: Apache-2.0
#include "cli/roof_labels.h"

#include <math.h>
#include <stdbool.h>

enum { ROWS = 9, COLUMNS = 5, COVERED = 10000, OUTSIDE = 1000 };
static const double gap = 5.0, column_step = 14.0;

static bool meet(const rg_roof_box *a, const rg_roof_box *b)
{
    return fabs(a->x - b->x) < 0.5 * (a->width + b->width) &&
           fabs(a->y - b->y) < 0.5 * (a->height + b->height);
}

static int covered(const rg_roof_box *box, const rg_roof_box *others, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        n += meet(box, &others[i]);
    return n;
}

/** How far a place lies from the point, and what it hides. */
static double cost_of(const rg_roof_box *box, const rg_roof_box *labels, int placed,
                      const rg_roof_box *points, int count, const rg_roof_box *taken,
                      int taken_count, const rg_roof_box *area)
{
    const int hidden = covered(box, labels, placed) + covered(box, points, count) +
                       covered(box, taken, taken_count);
    const bool inside = fabs(box->x - area->x) <= 0.5 * (area->width - box->width) &&
                        fabs(box->y - area->y) <= 0.5 * (area->height - box->height);
    return COVERED * (double)hidden + (inside ? 0.0 : OUTSIDE);
}

void rg_roof_place_labels(rg_roof_box *labels, const rg_roof_box *points, int count,
                          const rg_roof_box *taken, int taken_count, double area_width,
                          double area_height)
{
    const rg_roof_box area = {0.5 * area_width, 0.5 * area_height, area_width, area_height};
    for (int i = 0; i < count; i++) {
        const rg_roof_box *p = &points[i];
        rg_roof_box best = labels[i];
        double least = INFINITY;
        for (int n = 0; n < ROWS * COLUMNS * 4; n++) {
            const int row = n / 4 % ROWS, column = n / 4 / ROWS;
            const double side = n % 2 ? -1.0 : 1.0, way = n / 2 % 2 ? 1.0 : -1.0;
            const double across =
                0.5 * (p->width + labels[i].width) + gap + column_step * (double)column;
            const double up = labels[i].height * (double)row;
            rg_roof_box at = labels[i];
            at.x = p->x + side * across;
            at.y = p->y + way * up;
            /* to the right at the same height first, as one reads */
            const double cost = cost_of(&at, labels, i, points, count, taken, taken_count, &area) +
                                hypot(across, up) + (side < 0 ? 4.0 : 0.0) + (way > 0 ? 1.0 : 0.0);
            if (cost < least) {
                least = cost;
                best = at;
            }
        }
        labels[i] = best;
    }
}

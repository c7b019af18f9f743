/* cli/roof_labels.h: places for the names of points in a crowded figure.
 *
 * Reads nothing. Lengths are pixels from the lower left of the plot area.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CLI_ROOF_LABELS_H
#define RG_CLI_ROOF_LABELS_H

/** Middle and size of something drawn. */
typedef struct rg_roof_box {
    double x, y, width, height; /* pixels */
} rg_roof_box;

/** Put labels[count], whose sizes are given, beside their points: the nearest of a fan of places to
 * the right and the left that covers no other point, no label placed before and none of taken; the
 * place that covers least when all cover something. Stays within the area where it can. */
void rg_roof_place_labels(rg_roof_box *labels, const rg_roof_box *points, int count,
                          const rg_roof_box *taken, int taken_count, double area_width /* pixels */,
                          double area_height /* pixels */);

#endif

/* kernels/probe/image.h: counter data images in files.
 *
 * Reads core. A file is one line of JSON (schema "ridge.counterdata/1": chip, device, metrics, the
 * values as first evaluated, size and SHA-256 of the image) and the image's bytes. CUPTI crashes on
 * bytes that are no image, so nothing reaches it whose sum is wrong.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_IMAGE_H
#define RG_PROBE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

enum { RG_IMAGE_METRICS = 32 };

typedef struct rg_image {
    const char *chip, *device;
    const char *metrics[RG_IMAGE_METRICS + 1]; /* ends with NULL */
    double values[RG_IMAGE_METRICS];           /* as evaluated when recorded; NaN: not given */
    int metric_count;
    const uint8_t *data;
    size_t bytes;
} rg_image;

rg_status rg_image_write(const char *path, const rg_image *image, rg_err *err);
/** RG_ERR_INPUT when the file is no such image, cut or changed. */
rg_status rg_image_read(rg_arena *arena, const char *path, rg_image *image, rg_err *err);

#endif

/* kernels/probe/embedded.h: the device code inside this program; the table is written by make.
 *
 * Reads nothing.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_PROBE_EMBEDDED_H
#define RG_PROBE_EMBEDDED_H

#include <stdbool.h>

typedef struct rg_embedded_image {
    const char *name;
    const unsigned char *image; /* fatbin */
    bool optional;              /* built for some architectures only */
} rg_embedded_image;

extern const rg_embedded_image rg_embedded[];
extern const int rg_embedded_count;

#endif

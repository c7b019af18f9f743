/* model/field.h: the fields of a layer as one table; the YAML reader, the writer and the comparison
 * of layers work from it, so that none can forget one.
 *
 * Reads model/spec.h.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_MODEL_FIELD_H
#define RG_MODEL_FIELD_H

#include <stddef.h>

#include "model/spec.h"

typedef enum rg_field_type { RG_FIELD_INT, RG_FIELD_BOOL, RG_FIELD_QK_NORM } rg_field_type;

typedef struct rg_field {
    const char *part; /* "mixer", "ffn", "norms" */
    const char *key;
    rg_field_type type;
    size_t offset;
} rg_field;

/** Ends with key NULL. The kinds themselves (mixer, ffn) are not in it. */
extern const rg_field rg_layer_fields[];

int64_t rg_field_get(const rg_field *field, const rg_layer *layer);
void rg_field_set(const rg_field *field, rg_layer *layer, int64_t value);

#endif

/* core/quantity.h: values with units as a datasheet prints them, "4.8 TB/s", "50 MiB", "700 W".
 *
 * Reads core/err.h. GB is 1e9 and GiB is 2^30. A bare number for a dimension is an error.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef RG_CORE_QUANTITY_H
#define RG_CORE_QUANTITY_H

#include <stddef.h>

#include "core/err.h"

typedef enum rg_dim {
    RG_DIM_NONE,          /* a plain number, no unit allowed; "35 %" is 0.35 */
    RG_DIM_SHARE,         /* a part of a whole, 0.35, printed as "35.0 %" */
    RG_DIM_BYTES,         /* B kB MB GB TB KiB MiB GiB TiB */
    RG_DIM_BYTES_PER_S,   /* ... /s; also Gbit/s (Gb/s) */
    RG_DIM_FLOPS,         /* FLOP GFLOP TFLOP */
    RG_DIM_FLOPS_PER_S,   /* TFLOP/s, TOP/s, PFLOP/s */
    RG_DIM_SECONDS,       /* s ms us ns */
    RG_DIM_HERTZ,         /* Hz MHz GHz */
    RG_DIM_WATTS,         /* W kW MW */
    RG_DIM_JOULES,        /* J pJ kJ kWh */
    RG_DIM_USD,           /* $ */
    RG_DIM_USD_PER_HOUR,  /* $/h */
    RG_DIM_USD_PER_KWH,   /* $/kWh */
    RG_DIM_GRAMS_PER_KWH, /* g/kWh, carbon intensity */
    RG_DIM_PER_SECOND,    /* 1/s, /s, req/s, requests/s, /min */
    RG_DIM_CYCLES,        /* cycles, clk */
    RG_DIM_COUNT_OF,      /* number of dimensions */
} rg_dim;

/** Parse text ("4.8 TB/s") as dim into SI without prefix. Finite results only. On error the text
 * says what was found and gives an example of what would do; what is "bandwidth" or the like. */
rg_status rg_quantity_parse(const char *text, rg_dim dim, rg_pos pos, const char *what, double *out,
                            rg_err *err);
/** SI value for people: 4.8e12, RG_DIM_BYTES_PER_S -> "4.8 TB/s"; digits significant digits. */
void rg_quantity_format(double value, rg_dim dim, int digits, char *out, size_t size);
/** Suffix for a CSV column or JSON key: "_s", "_bytes_per_s", "" for none. */
const char *rg_dim_suffix(rg_dim dim);
/** SI unit as text: "byte/s". */
const char *rg_dim_unit(rg_dim dim);

#endif
